"""The environment keeps what the repository says about Python and versions."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from importlib.util import find_spec

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from helpers import places

PROJECT = tomllib.loads((places.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LOCK = places.ROOT / "requirements.lock"
as_locked = pytest.mark.skipif(not find_spec("jupyter_book"), reason="the extra book is not installed")


def oldest(claim: str) -> Version:
    return min(Version(one.version) for one in SpecifierSet(claim) if one.operator == ">=")


@as_locked
def test_everything_locked_runs_on_the_oldest_python_claimed():
    claimed, refuses, known = oldest(PROJECT["requires-python"]), [], 0
    for line in filter(lambda line: "==" in line, LOCK.read_text("utf-8").splitlines()):
        try:
            found = metadata.metadata(line.split("==")[0])
        except metadata.PackageNotFoundError:  # needed on another system
            continue
        known += 1
        if not SpecifierSet(found.get("Requires-Python") or "").contains(claimed):
            refuses.append(f"{found['Name']} {found['Version']} needs Python {found.get('Requires-Python')}")
    assert not refuses, (
        f"{refuses}. pyproject.toml claims {claimed}: say 'make lock', then make the environment again."
    )
    assert known > 150


def test_the_lock_holds_what_pyproject_allows():
    locked = dict(line.lower().split("==") for line in LOCK.read_text("utf-8").splitlines() if "==" in line)
    locked = {name.replace("_", "-"): version for name, version in locked.items()}
    for text in sum(PROJECT["optional-dependencies"].values(), PROJECT["dependencies"]):
        wanted = Requirement(text)
        assert wanted.specifier.contains(locked[wanted.name]), text


def pins(name):
    """What a file of versions says: name -> version."""
    lines = (places.ROOT / name).read_text("utf-8").splitlines()
    return {line.split("==")[0].replace("_", "-").lower(): line.split("==")[1] for line in lines if "==" in line}


def test_conda_and_binder_take_the_same_with_a_torch_that_has_no_cuda():
    packages = yaml.safe_load((places.ROOT / "environment.yml").read_text("utf-8"))["dependencies"]
    locked = pins(LOCK.name)
    assert packages[:2] == [f"python={oldest(PROJECT['requires-python'])}", f"pytorch-cpu={locked.pop('torch')}"]
    assert packages[-1]["pip"] == ["--constraint environment.lock", "--editable .[book,long,train,lab]"]
    assert pins("environment.lock") == locked


def test_the_core_takes_the_versions_of_the_hosted_notebook_and_none_older():
    """A lower bound below what 'make test-oldest' tries would be a claim that nobody tests."""
    tried = pins("requirements.oldest")
    bounds = {one.name: one.specifier for one in map(Requirement, PROJECT["dependencies"])}
    assert len(tried.keys() & bounds.keys()) >= 25
    for name, bound in bounds.items():
        if name in tried:
            assert bound.contains(tried[name]), name
    for name in ("torch", "transformers", "numpy", "scikit-learn", "matplotlib", "pyarrow", "ipykernel", "ipython"):
        least = oldest(str(bounds[name])).release
        assert Version(tried[name]).release[: len(least)] == least, name


def test_the_core_holds_nothing_that_only_builds_trains_or_tests():
    core = {Requirement(text).name for text in PROJECT["dependencies"]}
    assert core.isdisjoint({"jupyter-book", "sphinx", "jupyterlab", "dask", "peft", "bertviz", "pytest"})
    assert set(PROJECT["optional-dependencies"]) == {"book", "long", "train", "lab", "test"}
    makefile = (places.ROOT / "Makefile").read_text("utf-8")
    assert "EXTRAS := book,long,train,lab,test\n" in makefile and "--editable '.[$(EXTRAS)]'" in makefile


MOST = 95
"""Distributions that the core may bring, torch's own for CUDA apart; what takes a few lines to write is no reason for another."""


@as_locked
def test_the_core_brings_no_more_than_it_did():
    """What is locked, followed from the core's dependencies; whoever adds one finds out here what comes with it."""
    found, waiting = set(), {Requirement(text).name for text in PROJECT["dependencies"]}
    while waiting:
        name = waiting.pop()
        found.add(name)
        needed = map(Requirement, metadata.requires(name) or [])
        here = (one for one in needed if not one.marker or one.marker.evaluate({"extra": ""}))
        waiting |= {canonicalize_name(one.name) for one in here} - found
    ours = {name for name in found if not re.match(r"nvidia-|triton$|cuda-|setuptools$", name)}
    assert len(ours) <= MOST, sorted(ours)
    assert ours <= pins(LOCK.name).keys()


def test_a_checkout_that_was_moved_is_noticed_and_put_right(tmp_path):
    """The scripts of .venv name the place where it was made: after mv they are not found, after cp -r they run the old checkout."""
    for name in ("Makefile", "pyproject.toml", "setup.py", "requirements.lock"):
        shutil.copy(places.ROOT / name, tmp_path)
    venv = tmp_path / ".venv"
    packages = venv / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (venv / "bin").mkdir()
    (venv / "bin" / "python").symlink_to(sys.executable)
    before = {
        venv / "pyvenv.cfg": "home = /usr/bin\ncommand = /usr/bin/python3 -m venv --clear /old/place/.venv\n",
        venv / "bin" / "jupyter": "#!/old/place/.venv/bin/python\nprint('/old/places')\n",
        packages / "__editable___finder.py": "MAPPING = {'helpers': '/old/place/helpers'}\n",
        packages / "other.py": "'/old/place/x'\n",
    }
    for file, text in before.items():
        file.write_text(text)
    (venv / ".ready").touch()  # younger than what it is made from: nothing is installed

    def make(folder=tmp_path, where="VENV=.venv"):
        ready = f"{where.removeprefix('VENV=')}/.ready"
        done = subprocess.run(["make", where, ready], cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout

    assert f"moved or copied here from /old/place/; the scripts in {venv} now say so" in make()
    for file, text in before.items():
        assert file.read_text() == (text if file.name == "other.py" else text.replace("/old/place/", f"{tmp_path}/"))
    assert "moved or copied" not in make()
    (elsewhere := tmp_path / "elsewhere").mkdir()
    for name in ("Makefile", "pyproject.toml", "setup.py", "requirements.lock"):
        (elsewhere / name).symlink_to(tmp_path / name)
    (elsewhere / ".venv").symlink_to(venv)
    assert "moved or copied" not in make(elsewhere) + make(elsewhere, f"VENV={venv}"), (
        "an environment that others share stays theirs"
    )


@pytest.mark.parametrize("there", ["the same", "another", "a folder", "none"])
def test_an_environment_of_another_python_is_made_anew(tmp_path, there):
    """Renewed in place it would have the one's interpreter and the other's libraries. Nothing but an environment is emptied."""
    for name in ("Makefile", "pyproject.toml", "setup.py", "requirements.lock"):
        shutil.copy(places.ROOT / name, tmp_path)

    def script(file, text):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    given = tmp_path / "given"
    script(given, f'[ "$1" = -m ] && echo "$@" > {tmp_path}/asked && exit 1; exec {sys.executable} "$@"')
    if there != "none":
        same = there == "the same"
        script(tmp_path / ".venv/bin/python", f'exec {sys.executable} "$@"' if same else "echo /usr 3.10")
    if there in ("the same", "another"):
        (tmp_path / ".venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    done = subprocess.run(["make", f"PYTHON={given}", ".venv/.ready"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 2, "the script makes none"
    assert (tmp_path / "asked").read_text() == f"-m venv {'--clear ' if there == 'another' else ''}.venv\n"


def test_what_make_starts_ends_with_make():
    text = (places.ROOT / "Makefile").read_text("utf-8")
    for target in ("book", "site", "notebooks", "full"):
        recipe = text.split(f"\n{target}: ")[1].split("\n")[1]
        assert recipe.startswith("\t@$(HELPERS) "), target
    assert "HELPERS := BOOK_PARENT=$$PPID exec " in text
