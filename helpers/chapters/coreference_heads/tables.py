"""Chapter 05: its numbers as rows of the tidy table, and the paper's Table 2 beside ours."""

from collections.abc import Mapping
from typing import Any

from helpers import results
from helpers.chapters.coreference_heads.measures import FEWEST, KINDS
from helpers.results import Blocks, Record, Table, rows
from helpers.stats import percent

NETWORKS = {"": "by_kind", "@random": "random", "@shuffled": "shuffled"}
BASELINES = {"nearest": "nearest mention", "rules": "four-sieve rules", "random": "random mention"}
"""Baseline in a record -> its name in words; the others keep theirs."""


def tidy(record: Record) -> Blocks:
    """The numbers of a record, for :func:`helpers.results.record`."""
    values = record["values"]
    for network, name in NETWORKS.items():
        measured = values.get(name) or {"table": {}}
        for kind, row in measured["table"].items():
            common = _columns(network, kind, row)
            nearest = common | {"control": row["rules"]["nearest"], "against": BASELINES["nearest"]}
            best = common | {"place": (row["layer"], row["head"])}
            yield rows("finds_antecedent", measured["accuracy"][kind], "layer", "head", **nearest)
            yield rows("best_for_antecedent", row["held_out"], **nearest | best)
            yield rows("lead_for_antecedent", row["gains"]["nearest"], **best, against=BASELINES["nearest"])
            yield rows("lead_over_rules", row["gains"]["rules"], **best, against=BASELINES["rules"])
            for name, accuracy in row["rules"].items():
                by = common | {"of": f"{kind} by {BASELINES.get(name, name)}"}
                yield rows("antecedent_by_rule", accuracy, **by, against="")
    one_head = values.get("one_head") or {}
    yield from _one_head("one_head", "", one_head.get("earlier"))
    yield from _one_head("one_head", "@random", values.get("random"))
    yield from _one_head("one_head", "@shuffled", values.get("shuffled"))
    yield from _one_head("one_head_among_words", "", one_head.get("words"))


def _one_head(quantity: str, network: str, measured: Record | None) -> Blocks:
    """The accuracy of a head for each kind of mention, and its leads over all baselines."""
    for kind, row in (measured or {"table": {}})["table"].items():
        common = _columns(network, kind, row) | {"place": (row["layer"], row["head"])}
        nearest = {"control": row["rules"]["nearest"], "against": BASELINES["nearest"]}
        yield rows(quantity, row["held_out"], **common, **nearest)
        for baseline, lead in row["gains"].items():
            name = BASELINES.get(baseline, baseline)
            yield rows(f"{quantity}_lead", lead, **common | {"of": f"{kind} over {name}"}, against=name)


def _columns(network: str, kind: str, row: Record) -> dict[str, Any]:
    return {"network": network, "of": kind, "n": row["count"], "split": "test"}


def cell(found: Record, kind: str = "all", baseline: str = "") -> str:
    """A head's accuracy, or a baseline's, in per cent: ``78 [71, 85]``; with * when there are few mentions, – when there are none.

    Args:
        found: what :func:`helpers.chapters.coreference_heads.as_dict` made.
    """
    if (row := found["table"].get(kind)) is None:
        return "–"
    return percent(row["rules"][baseline] if baseline else row["held_out"]) + "*" * (row["count"] < FEWEST)


def table_2(runs: Mapping[str, Record]) -> Table:
    """The paper's Table 2 beside recorded values of several runs: baselines, then the head by what it chooses from."""
    theirs = {row["system"]: row for row in results.paper("clark2019", "table2")["rows"]}
    systems = {
        "Nearest": ("Nearest", "earlier", "nearest"),
        "Head match": ("Head match", "earlier", "head match"),
        "Rule-based": ("Rule-based", "earlier", "rules"),
        "one head": ("Head 5-4", "earlier", ""),
        "one head, among all words": ("Head 5-4", "words", ""),
    }
    lines = []
    for label, (system, reading, baseline) in systems.items():
        for kind in KINDS:
            ours = [cell(values["one_head"][reading], kind, baseline) for values in runs.values()]
            lines.append([f"{label}, {kind}", theirs[system].get(kind) or "–", *ours])
    return Table(["", "BERT-base, CoNLL-2012 (Table 2)", *runs], lines)
