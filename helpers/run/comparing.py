"""The tables of a run beside those that travel with the book: what says that stored outputs are of this code."""

import base64
import json
import shutil
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import yaml

from helpers import places, results

#: How far a number may lie from the stored one where both were computed on processors of one name and model.
ROUNDING = 1e-4
#: Chapter -> how far numbers of which quantities may lie from the stored ones between processors, and why.
TOLERANCES = yaml.safe_load(Path(__file__).with_name("tolerances.yml").read_text("utf-8"))


def differences(new: Path, old: Path) -> dict[Path, str]:
    """Where the tables of two folders differ by more than is allowed.

    Returns:
        The tables that only one of them has, or that differ, each with a sentence on what is different; of a profile and
        model that is in both.
    """
    there = {file.relative_to(new) for file in new.rglob("*.csv")}
    stored = {file.relative_to(old) for name in there for file in (old / name.parent).glob("*.csv")}
    listed = {}
    for name in sorted(there | stored):
        if name not in there or name not in stored:
            listed[name] = f"{name} is not among the {'stored' if name in there else 'new'} tables."
            continue
        tables = [results.from_csv(root / name) for root in (new, old)]
        wider = () if same_processor(new / name, old / name) else TOLERANCES.get(name.stem, ())
        apart = differing(*tables, {quantity: row["within"] for row in wider for quantity in row["quantities"]})
        if len(apart):
            where, now, before = apart.iloc[0]
            listed[name] = f"{name}: {len(apart)} numbers differ; {where} is {now}, stored is {before}."
    return listed


def rule_of(new: Path, old: Path) -> str:
    """Which tolerances hold for the tables of two folders, as a sentence."""
    both = [name for name in (file.relative_to(new) for file in new.rglob("*.csv")) if (old / name).is_file()]
    same = sum(same_processor(new / name, old / name) for name in both)
    return (
        f"{same} of {len(both)} tables are from processors of one name and model, where numbers may differ by {ROUNDING}; "
        "the others by what helpers/run/tolerances.yml allows between processors."
    )


def same_processor(*tables: Path) -> bool:
    """Whether tables were made on processors of one name and model, and on devices of one kind: a graphics card adds in another order."""
    made = [json.loads(table.with_suffix(".json").read_text("utf-8"))["provenance"] for table in tables]
    return all(made[0].get(what, "") == made[1].get(what) for what in ("processor", "device"))


def differing(new: pd.DataFrame, old: pd.DataFrame, tolerances: dict[str, float]) -> pd.DataFrame:
    """Each number, end of an interval or name that is not the old one, or lies farther from it than its quantity's tolerance.

    Returns:
        A row for each: where it is, what it is, what it was.
    """
    key = ["network", "model", "quantity", "layer", "head", "of"]
    shown = [*results.NUMBERS, "label", "n"]
    names = dict.fromkeys(("model", "of", "label"), object)  # a column without any is one of numbers
    sides = [table[[*key, *shown]].astype(names).fillna(dict.fromkeys(names, "")) for table in (new, old)]
    sides = [side.sort_values([*key, "label"], kind="stable") for side in sides]
    sides = [side.assign(turn=side.groupby(key, dropna=False).cumcount()) for side in sides]
    both = sides[0].merge(sides[1], "outer", [*key, "turn"], suffixes=("", " before"))
    within = both.quantity.map(lambda name: tolerances.get(name, ROUNDING))
    rows = []
    for name in shown:
        now, before = both[name], both[f"{name} before"]
        if name == "label":  # with a number it says only how that is shown
            apart = both.value.isna() & (now != before)
        else:
            apart = ~np.isclose(now.astype(float), before.astype(float), rtol=0, atol=within, equal_nan=True)
        for at in np.flatnonzero(apart):
            where = " ".join(str(part) for part in both.loc[at, key] if pd.notna(part) and part != "")
            rows.append((f"{where}, {name}", now[at], before[at]))
    return pd.DataFrame(rows, columns=["where", "now", "before"])


def keep(executed: Path, root: Path) -> None:
    """Copy executed notebooks into ``notebooks/``, tables whose numbers have changed into ``data/results``, and the README's picture."""
    for file in sorted((executed / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        shutil.copy2(file, root / "notebooks" / file.name)  # with its time: it is no newer than what it was made of
    for name in differences(executed / "results", root / "data" / "results"):
        for part in (name, name.with_suffix(".json")):
            if (executed / "results" / part).is_file():
                places.write(root / "data" / "results" / part, (executed / "results" / part).read_bytes())
    notebook = nbformat.read(root / "notebooks" / "04_dependency_heads.ipynb", as_version=4)
    figures = {
        cell.metadata.mystnb.figure.name: cell
        for cell in notebook.cells
        if "figure" in cell.metadata.get("mystnb", {})
    }
    png = next(o.data["image/png"] for o in figures["fig-dep-puzzle"].outputs if "image/png" in o.get("data", {}))
    (root / "book" / "_static" / "cover.png").write_bytes(base64.b64decode(png))
