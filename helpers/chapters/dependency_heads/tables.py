"""Chapter 04: its numbers as rows of the tidy table, and the paper's Table 1 beside ours."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from helpers.chapters.dependency_heads.measures import Row
from helpers.figures.look import head_name
from helpers.record import results
from helpers.record.results import Table
from helpers.record.tidy import rows

PARTS = {
    "ud": ("", ""),
    "random": ("@random", ""),
    "shuffled": ("@shuffled", ""),
    "stanford": ("", "_stanford"),
    "random_stanford": ("@random", "_stanford"),
    "shuffled_stanford": ("@shuffled", "_stanford"),
}
"""Part of a record -> whose numbers, and how the names of their quantities end."""


def tidy(record: Mapping[str, Any]) -> Iterator[pd.DataFrame]:
    """The numbers of a record, for :func:`helpers.record.results.record`."""
    for part, (network, ending) in PARTS.items():
        measured = record["values"].get(part) or {"table": {}}
        for relation, row in measured["table"].items():
            common = {"network": network, "of": relation, "n": row["count"], "split": "test"}
            offset = common | {"control": row["baseline"], "against": "best fixed offset"}
            accuracy = np.asarray(measured["accuracy"][relation])
            yield rows(f"finds_governor{ending}", accuracy[..., 0], "layer", "head", **offset)
            yield rows(f"found_by_governor{ending}", accuracy[..., 1], "layer", "head", **offset)
            best = {"place": (row["layer"], row["head"]), "label": row["direction"]}
            yield rows(f"best_for_relation{ending}", row["held_out"], **offset, **best)
            yield rows(f"lead_for_relation{ending}", row["gain"], **offset | best | {"control": None})
            yield rows(f"best_offset{ending}", row["baseline"], **common, against="")


def table_1(model: str, found: Sequence[Row]) -> Table:
    """The paper's Table 1 beside the rows of a model: the best head of each relation, the best offset."""
    theirs = {row["relation"].lower(): row for row in results.paper("clark2019", "table1")["rows"]}
    lines = []
    for row in found:
        paper = theirs[row.relation]
        head, offset = head_name(*row.head[:2]), f"{row.baseline.value:.1%} ({row.offset:+d})"
        published = [f"{paper['accuracy']} % ({paper['head']})", f"{paper['baseline']} % ({paper['offset']:+d})"]
        lines.append([row.relation + " (few)" * row.few, *published, f"{row.held_out:.1%}", head, offset])
    return Table(["relation", "BERT-base, WSJ", "their offset", model, "head", "our offset"], lines)
