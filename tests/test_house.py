"""The rooms of the package: imports run downward only, chapters stand apart, no module is long."""

import ast
from pathlib import Path

import pytest

from helpers import places

HOUSE = places.ROOT / "helpers"
ROOMS = ("__main__", "run", "chapters", "record", "figures", "engine", "corpora", "places")
"""From top to bottom."""
MODULES = sorted(file.relative_to(HOUSE).with_suffix("").parts for file in HOUSE.rglob("*.py"))


def imported(source: str, own: tuple[str, ...]) -> set[tuple[str, ...]]:
    """What a module of the house imports of the house, also inside functions: ``("engine", "tokens")``, ``("places",)``."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = ("helpers", *own[: len(own) - node.level]) if node.level else ()
            stem = (*above, *(node.module or "").split(".")) if node.module else above
            found |= {(*stem, alias.name) for alias in node.names}
    return {name[1:] for name in found if name[0] == "helpers" and len(name) > 1 and name[1] in ROOMS}


def upward(source: str, own: tuple[str, ...]) -> list[str]:
    """Imports of a room above, and of another chapter."""
    wrong = []
    for name in imported(source, own):
        another = (own[0], name[0]) == ("chapters", "chapters") and len(name) > 1 and name[1] != own[1]
        if ROOMS.index(name[0]) < ROOMS.index(own[0]):
            wrong.append(f"{'.'.join(own)} imports {'.'.join(name)}, which is above it")
        elif another and own[1] != "your_own_model" and (HOUSE / "chapters" / name[1]).is_dir():
            wrong.append(f"{'.'.join(own)} imports {'.'.join(name)}, another chapter")
    return wrong


@pytest.mark.parametrize(
    ("source", "own", "count"),
    [
        ("from helpers.engine import tokens", ("corpora", "readers"), 1),
        ("def f():\n    import helpers.run.bench", ("places",), 1),
        ("from helpers import corpora, places", ("engine", "tasks"), 0),
        ("from ..engine import tokens", ("corpora", "readers"), 1),
        ("from .. import places", ("corpora", "readers"), 0),
        ("from helpers.chapters import no_op", ("chapters", "keywords", "measures"), 1),
        ("from helpers.chapters.no_op.measures import f", ("chapters", "keywords", "measures"), 1),
        ("from helpers.chapters.keywords import measures", ("chapters", "keywords", "figures"), 0),
        ("from helpers.chapters import checks", ("chapters", "keywords", "exercises"), 0),
        ("from helpers.chapters import no_op", ("chapters", "your_own_model", "measures"), 0),
        ("import helpers", ("record", "results"), 0),
    ],
)
def test_an_import_upward_or_across_is_seen(source, own, count):
    assert len(upward(source, own)) == count


def test_imports_run_downward_only():
    known = [own for own in MODULES if own[0] in ROOMS]
    assert len(known) > 40 and {own[0] for own in known} == set(ROOMS)
    assert [
        w for own in known for w in upward((HOUSE / "/".join(own)).with_suffix(".py").read_text("utf-8"), own)
    ] == []


def test_no_module_is_long():
    lengths = {
        ".".join(own): len((HOUSE / "/".join(own)).with_suffix(".py").read_text("utf-8").splitlines())
        for own in MODULES
    }
    assert {name: n for name, n in lengths.items() if n >= 500} == {}


def test_the_listing_of_the_package_is_its_architecture():
    names = {path.name for path in HOUSE.iterdir() if path.name != "__pycache__"}
    assert len(names) <= 9 and {name.removesuffix(".py") for name in names} == {*ROOMS, "__init__"}


def test_the_formatter_lays_all_code():
    mark = "# fmt: " + "skip"
    folders = (HOUSE, places.ROOT / "tests", places.ROOT / "book" / "_ext")
    assert [f for folder in folders for f in folder.rglob("*.py") if mark in Path(f).read_text("utf-8")] == []


def test_every_test_that_is_said_to_take_long_is_there():
    """``make times`` writes the list; one that was renamed would be taken for a quick one."""
    tests = places.ROOT / "tests"
    there = {
        f"{file.relative_to(tests).as_posix()}::{node.name}"
        for file in tests.rglob("test_*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    assert set((tests / "long.txt").read_text("utf-8").split()) <= there
