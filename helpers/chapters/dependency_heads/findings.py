"""Chapter 04: what the papers report of single heads as parsers, and our numbers for it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from helpers.chapters.dependency_heads.measures import FEWEST, TABLE_1
from helpers.figures.look import head_name
from helpers.record import results
from helpers.record.results import Table
from helpers.record.verdicts import Cited, Claim, Control, Finding, Ours, judge, opened

TITLE = "one head as a parser"
INTRO = (
    "Table 1 of the paper, row by row: accuracy of the best head against that of the best fixed offset. "
    "The paper chose and scored its heads on the same data, we on different parts."
)
lead = partial(Ours, "held_out", against="baseline", difference="gain")


def _of(relation: str) -> str:
    return f"stanford.table.{relation}"


def _untrained(relation: str) -> tuple[Control, ...]:
    return tuple(Control(f"@{name}", f"{name}_stanford.table.{relation}") for name in ("random", "shuffled"))


def _own(relation: str) -> dict[str, Any]:
    controls = tuple(Control(f"@{name}", f"{name}.table.{relation}") for name in ("random", "shuffled"))
    return {"ours": lead(of=f"ud.table.{relation}"), "control": controls}


def _cited(relation: str) -> Cited:
    row = {"relation": relation}
    return Cited(row, "accuracy", against=Cited(row, "baseline"), note=("head",))


FINDINGS = (
    *(
        Finding(
            Claim("clark2019 table1", "above", cited=_cited(relation)),
            f"{relation}: the best head beats the best fixed offset",
            lead(of=_of(relation)),
            control=_untrained(relation),
        )
        for relation in TABLE_1[1:]
    ),
    Finding(
        Claim("clark2019 table1", "below", 10, _cited("All")),
        "All relations together: no head does well, the best leads the best fixed offset by less than 10 points",
        lead(of="stanford.table.all"),
        uncontrolled="It says what no head does; a control that does not do it either would tell nothing.",
    ),
    *(
        Finding(
            Claim("clark2019 specialist_accuracy", "above", "paper"),
            f"One head is right in more than 75 % of {what}",
            Ours("held_out", _of(relation)),
            control=_untrained(relation),
        )
        for what, relation in (
            ("direct objects", "dobj"),
            ("determiners", "det"),
            ("objects of prepositions", "pobj"),
            ("possessives", "poss"),
        )
    ),
)
HEADLINES = (
    Finding(
        Claim("own", "above", 25, unit="%"),
        "Head 3-1 of `minilm` points from objects to their verbs, over 25 points more often than the best fixed offset.",
        **_own("obj"),
    ),
    Finding(
        Claim("own", "above", 15, unit="%"),
        "Head 3-9 points from prepositions to their nouns, over 15 points more often than the best fixed offset.",
        **_own("case"),
    ),
    Finding(
        Claim("own", "below", 50, unit="%"),
        "No head of `minilm` gets half of all words right.",
        Ours("held_out", "ud.table.all"),
        uncontrolled="It says what no head does; a control that does not do it either would tell nothing.",
    ),
)
"""The first sentences of the chapter's summary."""
NOT_MEASURED = {
    "same": ("clark2019 best_single_head_uas, right_branching_uas, figure5",),
    "background": ("clark2019 split_words",),
    "undefined": ("koreanslides2022 strong_relations",),
}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""


def table(model: str, values: Mapping[str, Any]) -> Table:
    """The paper's Table 1 beside one model's fresh or recorded values: the best head of each relation, the best offset."""
    theirs = {row["relation"].lower(): row for row in results.paper("clark2019", "table1")["rows"]}
    rows = []
    for relation, ours in opened(results.plain(values))["stanford"]["table"].items():
        paper, name = theirs[relation], relation + " (few)" * (ours["count"] < FEWEST)
        published = [f"{paper['accuracy']} % ({paper['head']})", f"{paper['baseline']} % ({paper['offset']:+d})"]
        best = [f"{ours['held_out']:.1%}", head_name(ours["layer"], ours["head"])]
        rows.append([name, *published, *best, f"{ours['baseline'].value:.1%} ({ours['offset']:+d})"])
    return Table(["relation", "BERT-base, WSJ", "their offset", model, "head", "our offset"], rows)
