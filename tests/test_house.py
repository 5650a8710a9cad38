"""The rooms of the package: imports run downward only."""

import ast

from helpers import places

HOUSE = places.ROOT / "helpers"
ROOMS = ("__main__", "run", "exercises", "scoreboard", "head_profiles", "views", "drawing", "plots")
ROOMS += ("measurements", "results", "tasks", "inputs", "examples", "phrases", "layers", "encoders")
ROOMS += ("validation", "attention", "controls", "tokens", "parallel", "encoder", "adapters", "models")
ROOMS += ("stats", "heads", "corpora", "places")
"""From top to bottom."""


def imported(module: tuple[str, ...]) -> set[tuple[str, ...]]:
    """What a module imports of the house, also inside functions: ``("corpora", "treebanks")``, ``("places",)``."""
    names = set()
    for node in ast.walk(ast.parse((HOUSE / "/".join(module)).with_suffix(".py").read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{'.'.join(module)} imports by a relative name"
            names |= {(*node.module.split("."), alias.name) for alias in node.names}
    return {name[1:] for name in names if name[0] == "helpers" and len(name) > 1 and name[1] in ROOMS}


def test_imports_run_downward():
    modules = [file.relative_to(HOUSE).with_suffix("").parts for file in HOUSE.rglob("*.py")]
    modules = [module for module in modules if module[0] in ROOMS]
    assert {module[0] for module in modules} == set(ROOMS)
    wrong = []
    for module in modules:
        for name in imported(module):
            if ROOMS.index(name[0]) < ROOMS.index(module[0]):
                wrong.append(f"{'.'.join(module)} imports {'.'.join(name)}")
    assert not wrong
