"""The environment keeps what the repository says about Python and versions."""

import tomllib
from importlib import metadata

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from helpers import places

PROJECT = tomllib.loads((places.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LOCK = places.ROOT / "requirements.lock"


def oldest(claim: str) -> Version:
    return min(Version(one.version) for one in SpecifierSet(claim) if one.operator == ">=")


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
    for text in PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]:
        wanted = Requirement(text)
        assert wanted.specifier.contains(locked[wanted.name]), text


@pytest.mark.parametrize("line", ["--constraint requirements.lock", "--editable .[test]"])
def test_conda_and_binder_take_the_same(line):
    packages = yaml.safe_load((places.ROOT / "environment.yml").read_text("utf-8"))["dependencies"]
    assert f"python={oldest(PROJECT['requires-python'])}" in packages and line in packages[-1]["pip"]
