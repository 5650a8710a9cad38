"""The records of a run beside those that travel with the book: what says that stored outputs are of this code."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helpers import places
from helpers.run import pages

TOLERANCES = {
    "distance_features": 0.02,
    "head_importance": 0.005,
    "keywords": 0.02,
    "layer_semantics": 3.0,
    "probing_classifiers": 0.05,
}
"""How far a number may lie from the stored one, by chapter: what is fitted or clustered anew, and p-values, differ between processors."""
ROUNDING = 1e-4
"""How far any other number may."""


def differences(new: Path, old: Path) -> dict[Path, str]:
    """Where the records of two folders differ by more than is allowed.

    Returns:
        The records in ``new`` that are missing in ``old`` or differ, each with a sentence on what is different.
    """
    found = {}
    for file in sorted(new.rglob("*.json")):
        name = file.relative_to(new)
        if not (old / name).is_file():
            found[name] = f"{name} is not among the stored records."
            continue
        values = [json.loads(one.read_text("utf-8"))["values"] for one in (file, old / name)]
        if apart := list(differing(*values, TOLERANCES.get(file.stem, ROUNDING))):
            where, now, before = apart[0]
            found[name] = f"{name}: {len(apart)} values differ; {where} is {now}, stored is {before}."
    return found


def differing(new: Any, old: Any, tolerance: float, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Each value that is not the old one, or lies farther from it than the tolerance: where it is, what it is, what it was."""
    if isinstance(new, dict) and isinstance(old, dict) and new.keys() == old.keys():
        for key in new:
            yield from differing(new[key], old[key], tolerance, f"{where}.{key}")
    elif isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        for number, pair in enumerate(zip(new, old, strict=True)):
            yield from differing(*pair, tolerance, f"{where}[{number}]")
    elif isinstance(new, int | float) and isinstance(old, int | float):
        if abs(new - old) > tolerance:
            yield where, new, old
    elif new != old:
        yield where, new, old


def keep(executed: Path, root: Path) -> None:
    """Copy executed notebooks into ``notebooks/``, records whose numbers have changed into ``data/results``, and the README's picture."""
    for file in sorted((executed / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        shutil.copy2(file, root / "notebooks" / file.name)  # with its time: it is no newer than what it was made of
    for name in differences(executed / "results", root / "data" / "results"):
        places.write(root / "data" / "results" / name, (executed / "results" / name).read_bytes())
    (root / "book" / "_static" / "cover.png").write_bytes(pages.cover())
