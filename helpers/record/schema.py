"""What is in the long table, for readers: its columns, its quantities with their units, the encoders and corpora in it."""

from collections.abc import Sequence

import pandas as pd

from helpers.record import quantities
from helpers.record.results import Table
from helpers.record.scoreboard import titled


def columns() -> Table:
    """The columns and what is in each."""
    return Table(
        ["column", "kind", "what is in it"], [[f"`{n}`", kind(n), said] for n, said in quantities.COLUMNS.items()]
    )


def kind(column: str) -> str:
    """Of a column: whole number, number or text."""
    return "whole number" if column in quantities.WHOLE else "number" if column in quantities.NUMBERS else "text"


def chapters(table: pd.DataFrame) -> list[str]:
    """The chapters that numbers in a table are of, as their notebooks are called, in order."""
    return sorted(table.chapter.unique())


def listed(table: pd.DataFrame, chapter: str) -> Table:
    """The quantities of a chapter: unit, meaning, of what there are numbers, and for which encoders."""
    found = table[table.chapter == chapter]
    there = set(found.quantity.unique())
    lines = [one for one in quantities.vocabulary() if one.chapter == chapter[3:] and one.name in there]
    rows = [[f"`{one.name}`", one.unit, one.meaning, *_there(found[found.quantity == one.name])] for one in lines]
    return Table(["quantity", "unit", "what it is", "of", "numbers", "encoders"], rows)


def _there(rows: pd.DataFrame) -> tuple[str, str, str]:
    """Whether numbers are of heads, layers or models, how many, and for which encoders."""
    levels = {
        "heads": rows["head"].notna(),
        "layers": rows["head"].isna() & rows.layer.notna(),
        "models": rows.layer.isna(),
    }
    there = ", ".join(name for name, found in levels.items() if found.any())
    return there, f"{len(rows):,}", ", ".join(rows.model.unique())


def encoders(table: pd.DataFrame) -> Table:
    """Each model with its weights and how many layers, heads in each, and numbers there are."""
    rows = []
    for (model, profile), found in table.groupby(["model", "profile"], sort=True):
        weights = next(iter(found.sha256.dropna()), "")
        rows.append(
            [
                f"`{model}`",
                profile,
                f"`{weights[:16]}…`" if weights else "",
                found.layer.max(),
                found["head"].max(),
                f"{len(found):,}",
            ]
        )
    return Table(["model", "profile", "sha256 of the weights", "layers", "heads", "numbers"], rows)


def corpora(table: pd.DataFrame) -> Table:
    """Each corpus with the profile and the chapters that measured on it."""
    groups = table.dropna(subset="corpus").groupby(["corpus", "profile"], sort=True)
    rows = [[f"`{corpus}`", profile, _numbers(found.chapter)] for (corpus, profile), found in groups]
    return Table(["corpus", "profile", "chapters"], rows)


def _numbers(chapters: Sequence[str]) -> str:
    return ", ".join(sorted({name[:2] for name in chapters}))


def sections(table: pd.DataFrame) -> str:
    """A heading for each chapter with its quantities, in Markdown."""
    parts = (f"## {name[:2]} {titled(name)}\n\n{listed(table, name)}" for name in chapters(table))
    return "\n\n".join(parts)
