"""Chapter 04: its numbers as rows of the tidy table."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from helpers.measurements.syntax import Row
from helpers.results import Blocks, Record, rows

PARTS = {
    "ud": ("", ""),
    "random": ("@random", ""),
    "shuffled": ("@shuffled", ""),
    "stanford": ("", "_stanford"),
    "random_stanford": ("@random", "_stanford"),
    "shuffled_stanford": ("@shuffled", "_stanford"),
}
"""Part of a record -> whose numbers, and how the names of their quantities end."""

TABLE_1 = ("all", "prep", "pobj", "det", "nn", "nsubj", "amod", "dobj")
TABLE_1 += ("advmod", "aux", "poss", "auxpass", "ccomp", "mark", "prt")
"""The rows of Clark et al.'s Table 1."""


def tidy(record: Record) -> Blocks:
    """The numbers of a record, for :func:`helpers.results.record`."""
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
    values = record["values"]
    for relation, rule in values.get("rules", {}).items():
        common = {"of": relation, "n": rule["count"], "split": "test", "against": ""}
        yield rows("rule_for_relation", rule["held_out"], label=rule["rule"], **common)
        yield rows("lead_over_rule", rule["gain"], **common)
    rest = {"split": "test", "against": ""}
    for kind, counts in values.get("landing", {}).items():
        number = sum(counts.values())
        shares = {f"{kind}: {place}": count / number for place, count in counts.items()}
        yield rows("lines_landing", shares, n=number, **rest)
    for head, found in values.get("to_special", {}).items():
        shares = {f"{relation}, {head}": share for relation, share in found.items()}
        yield rows("share_to_special", shares, **rest)
    yield rows("cost_on_hidden_objects", values.get("cost", {}), **rest)
    yield rows("cost_beyond_its_layer", values.get("cost_beyond"), **rest)


def rules(found: Sequence[Row], ruled: Mapping[str, Row], classes: Sequence[str]) -> dict[str, Any]:
    """For a record: the rule by word class for each relation, and how much better the head is, paired over documents.

    Args:
        found, ruled: rows of heads; of rules, by relation, whose heads are (class, side, 0).
    """
    kept = {}
    for row in found:
        if rule := ruled.get(row.relation):
            name = f"{('last', 'next')[rule.head[1]]} {classes[rule.head[0]]}"
            gain = row.held_out - rule.held_out
            kept[row.relation] = {"rule": name, "count": row.count, "held_out": rule.held_out, "gain": gain}
    return kept
