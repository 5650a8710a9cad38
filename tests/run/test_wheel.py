"""The wheel: its version, and that a chapter runs from it in an empty folder."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from helpers import places


def python(*arguments, **options):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not on this machine")
def test_the_version_is_the_newest_tag(tmp_path):
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(places.ROOT / name, tmp_path)
    (tmp_path / "helpers").mkdir()
    for arguments in ("init -q", "commit -q --allow-empty -m one", "tag v0.9.0", "tag v0.10.0", "tag other"):
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *who, *arguments.split()], cwd=tmp_path, check=True)
    assert python("setup.py", "--version", cwd=tmp_path).endswith("0.10.0")


@pytest.mark.journey
@pytest.mark.timeout(900)
def test_a_chapter_runs_from_a_wheel_in_an_empty_folder(tmp_path):
    source, site, empty = (tmp_path / name for name in ("source", "site", "an empty folder"))
    ignored = shutil.ignore_patterns("__pycache__", ".git", ".venv", "_build", "build", "tests", "*.egg-info")
    shutil.copytree(places.ROOT, source, ignore=ignored)
    python("-c", f"from setuptools import build_meta; build_meta.build_wheel({os.fspath(tmp_path)!r})", cwd=source)
    [wheel] = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    empty.mkdir()
    before = {file: file.stat().st_mtime_ns for file in site.rglob("*") if file.is_file() and file.suffix != ".pyc"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BOOK_")}
    kept["PYTHONPATH"] = os.pathsep.join([str(site), kept["PYTHONPATH"]])
    python("-m", "helpers", "run", "04", "--profile", "smoke", cwd=empty, env=kept)
    made = empty / "_build" / "runs"
    assert (made / "smoke" / "minilm" / "04_dependency_heads.ipynb").is_file()
    assert (made / "results" / "smoke" / "minilm" / "dependency_heads.json").is_file()
    python("-m", "helpers", "build", "live", "--to", "live", cwd=empty, env=kept)
    assert (empty / "live" / "index.html").is_file()
    command = [sys.executable, "-m", "helpers", "build", "pages"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=empty, env=kept)
    assert done.returncode and "build pages needs a checkout" in done.stderr
    after = {file: file.stat().st_mtime_ns for file in site.rglob("*") if file.is_file() and file.suffix != ".pyc"}
    assert after == before, "nothing is written into the package"
