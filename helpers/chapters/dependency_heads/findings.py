"""Chapter 04: what the papers report of single heads as parsers, and our numbers for it."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from helpers.chapters.dependency_heads.measures import FEWEST, TABLE_1
from helpers.figures.look import head_name
from helpers.record import results
from helpers.record.results import Table
from helpers.record.verdicts import Cited, Finding, Judged, Record, judge

TITLE = "one head as a parser"
INTRO = (
    "Table 1 of the paper, row by row: accuracy of the best head against that of the best fixed offset. "
    "The paper chose and scored its heads on the same data, we on different parts."
)
LEAD = {"value": itemgetter("held_out"), "against": itemgetter("baseline"), "difference": itemgetter("gain")}


def _both(relation: str) -> dict[str, Any]:
    return {
        "of": lambda v: v["stanford"]["table"][relation],
        "random": lambda v: v["random_stanford"]["table"][relation],
    }


def _cited(relation: str) -> Cited:
    row = {"relation": relation}
    return Cited(row, "accuracy", against=Cited(row, "baseline"), note=("head",))


FINDINGS = (
    *(
        Finding(
            claim="clark2019 table1",
            text=f"{relation}: the best head beats the best fixed offset",
            cited=_cited(relation),
            rule="above",
            **_both(relation),
            **LEAD,
        )
        for relation in TABLE_1[1:]
    ),
    Finding(
        claim="clark2019 table1",
        text="All relations together: no head does well, the best leads the best fixed offset by less than 10 points",
        cited=_cited("All"),
        rule="below",
        than=10,
        of=lambda v: v["stanford"]["table"]["all"],
        **LEAD,
    ),
    *(
        Finding(
            claim="clark2019 specialist_accuracy",
            text=f"One head is right in more than 75 % of {what}",
            rule="above",
            than="paper",
            **_both(relation),
            value=itemgetter("held_out"),
        )
        for what, relation in (
            ("direct objects", "dobj"),
            ("determiners", "det"),
            ("objects of prepositions", "pobj"),
            ("possessives", "poss"),
        )
    ),
)
NOT_MEASURED = {
    "same": ("clark2019 best_single_head_uas", "clark2019 right_branching_uas", "clark2019 figure5"),
    "background": ("clark2019 split_words",),
    "undefined": ("koreanslides2022 strong_relations",),
}


def findings(values: Mapping[str, Any]) -> list[Judged]:
    """The chapter's findings on what it records."""
    return judge(FINDINGS, values)


def table(model: str, values: Mapping[str, Any]) -> Table:
    """The paper's Table 1 beside one model's fresh or recorded values: the best head of each relation, the best offset."""
    theirs = {row["relation"].lower(): row for row in results.paper("clark2019", "table1")["rows"]}
    rows = []
    for relation, ours in Record(results.plain(values))["stanford"]["table"].items():
        paper = theirs[relation]
        rows.append(
            [
                relation + " (few)" * (ours["count"] < FEWEST),
                f"{paper['accuracy']} % ({paper['head']})",
                f"{paper['baseline']} % ({paper['offset']:+d})",
                f"{ours['held_out']:.1%}",
                head_name(ours["layer"], ours["head"]),
                f"{ours['baseline'].value:.1%} ({ours['offset']:+d})",
            ]
        )
    return Table(["relation", "BERT-base, WSJ", "their offset", model, "head", "our offset"], rows)
