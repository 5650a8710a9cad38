"""The wheel: its version, what it carries, and that chapters run from it in an empty folder."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile

import nbformat
import pytest

from helpers import places

MOST = 25_000_000


@pytest.fixture(scope="module")
def setup():
    spec = importlib.util.spec_from_file_location("setup_of_the_book", places.ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_the_newest_tag(setup, tmp_path, monkeypatch):
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    assert setup.version() == setup.BEFORE_ANY_TAG
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: x\nVersion: 1.4.0\n")
    assert setup.version() == "1.4.0", "an unpacked source distribution"

    def git(*arguments):
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], check=True)

    git("init", "-q")
    for tag in ("v0.9.0", "v0.10.0", "other"):
        git("commit", "-q", "--allow-empty", "-m", tag)
        git("tag", tag)
    git("commit", "-q", "--allow-empty", "-m", "after")
    assert setup.version() == "0.10.0"
    git("tag", "v0.11-test")
    with pytest.raises(SystemExit, match=r"v0\.11-test"):
        setup.version()


def test_it_carries_what_running_needs(setup):
    names = {name.as_posix() for name in setup.carried()}
    wanted = (
        "data/papers.yml",
        "data/encyclopedia/treebank/test.conllu",
        "book/profiles/book.yml",
        "requirements.lock",
    )
    assert names >= {*wanted, "data/adapters/minilm-qa/adapter.safetensors", "notebooks/04_dependency_heads.ipynb"}
    assert sum((places.ROOT / name).stat().st_size for name in names if not name.startswith("notebooks")) < MOST
    assert not any("checkpoint" in name or name.endswith("ruff.toml") for name in names)


def test_its_notebooks_have_no_outputs(setup):
    stored = (places.ROOT / "notebooks" / "04_dependency_heads.ipynb").read_text("utf-8")
    bare = nbformat.reads(setup.without_outputs(stored), as_version=4)
    nbformat.validate(bare)
    assert not any(cell.get("outputs") for cell in bare.cells) and "book" not in bare.metadata
    sources = [cell.source for cell in nbformat.reads(stored, as_version=4).cells]
    assert [cell.source for cell in bare.cells] == sources


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """A wheel of a copy of the checkout, unpacked as pip would."""
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("__pycache__", ".git", ".venv", "_build", "build", "tests", "*.egg-info")
    shutil.copytree(places.ROOT, folder / "source", ignore=ignored)
    code = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=folder / "source", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    assert wheel.stat().st_size < MOST
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(folder / "site")
    return folder / "site"


def run(installed, folder, *arguments):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BOOK_")}
    path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "helpers", *arguments]
    environment = kept | {"PYTHONPATH": path}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.notebooks
def test_a_chapter_runs_from_a_wheel_in_an_empty_folder(installed, tmp_path):
    before = {file: file.stat().st_mtime_ns for file in installed.rglob("*") if file.suffix != ".pyc"}
    done = run(installed, tmp_path, "run", "04", "--profile", "smoke")
    assert done.returncode == 0, done.stderr
    made = tmp_path / "_build" / "runs"
    assert nbformat.read(made / "smoke" / "minilm" / "04_dependency_heads.ipynb", as_version=4).metadata.book
    (record,) = made.glob("results/smoke/minilm/dependency_heads.json")
    assert json.loads(record.read_text("utf-8"))["values"]["ud"]["table"]
    after = {file: file.stat().st_mtime_ns for file in installed.rglob("*") if file.suffix != ".pyc"}
    folders = [file for file in after if after[file] != before.get(file) and not file.is_dir()]
    assert folders == [], "nothing is written into the package"


@pytest.mark.slow
def test_what_needs_a_checkout_says_so(installed, tmp_path):
    for command in (["book"], ["notebooks"], ["run", "04", "--record"], ["new", "some_chapter"]):
        done = run(installed, tmp_path, *command)
        assert done.returncode == 1 and "needs a checkout" in done.stderr and "Traceback" not in done.stderr, command
