"""The records of a run beside those that travel with the book: what says that stored outputs are of this code."""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from helpers import places, results
from helpers.run import pages

ROUNDING = 1e-4
"""How far a number may lie from the stored one."""
TOLERANCES = {
    "distance_features": {"": 0.02},
    "head_importance": {"": 0.005},
    "keywords": {"": 0.02},
    "layer_semantics": {"": 0.2, "expected": 3.0},
    "probing_classifiers": {"": 0.05},
}
"""How far it may in a chapter, and below a key of its record: what is fitted or clustered anew, and p-values, differ between processors.
The expected layer is a ratio whose denominator, what the layers add, may be close to 0."""


def differences(new: Path, old: Path) -> dict[Path, str]:
    """Where the records of two folders differ by more than is allowed.

    Returns:
        The records that only one of them has, or that differ, each with a sentence on what is different; of a profile and
        model that is in both.
    """
    there = {file.relative_to(new) for file in new.rglob("*.json")}
    stored = {file.relative_to(old) for name in there for file in (old / name.parent).glob("*.json")}
    found = {}
    for name in sorted(there | stored):
        if name not in there or name not in stored:
            found[name] = f"{name} is not among the {'stored' if name in there else 'new'} records."
            continue
        values = [json.loads((root / name).read_text("utf-8"))["values"] for root in (new, old)]
        if apart := list(differing(*values, TOLERANCES.get(name.stem, {}))):
            where, now, before = apart[0]
            found[name] = f"{name}: {len(apart)} values differ; {where} is {now}, stored is {before}."
    return found


def differing(new: Any, old: Any, tolerances: Mapping[str, float], where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Each value that is not the old one, or lies farther from it than a tolerance: where it is, what it is, what it was.

    Args:
        tolerances: key of a record -> tolerance of all below it; ``""`` is that of the rest.
    """
    if isinstance(new, dict) and isinstance(old, dict) and new.keys() == old.keys():
        for key in new:
            below = tolerances | {"": tolerances[key]} if key in tolerances else tolerances
            yield from differing(new[key], old[key], below, f"{where}.{key}")
    elif isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        for number, pair in enumerate(zip(new, old, strict=True)):
            yield from differing(*pair, tolerances, f"{where}[{number}]")
    elif isinstance(new, int | float) and isinstance(old, int | float):
        if abs(new - old) > tolerances.get("", ROUNDING):
            yield where, new, old
    elif new != old:
        yield where, new, old


def keep(executed: Path, root: Path) -> None:
    """Copy executed notebooks into ``notebooks/``, records whose numbers have changed into ``data/results``, and the README's picture."""
    for file in sorted((executed / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        shutil.copy2(file, root / "notebooks" / file.name)  # with its time: it is no newer than what it was made of
    for name in differences(executed / "results", root / "data" / "results"):
        if (executed / "results" / name).is_file():
            places.write(root / "data" / "results" / name, (executed / "results" / name).read_bytes())
    results.renew(root / "data" / "results")
    (root / "book" / "_static" / "cover.png").write_bytes(pages.cover())
