"""Chapter 10: what the paper reports of a network without a type of head, and our numbers for it."""

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from helpers.chapters.ablation_by_type.edits import ROWS
from helpers.chapters.ablation_by_type.measures import percent, spread
from helpers.record import results
from helpers.record.results import Table
from helpers.record.verdicts import Cited, Finding, Judged, judge, ordered

TITLE = "without a type of head"
INTRO = (
    "Tables 2 and 3 of the paper: extractive question answering with heads of a type pruned, given even attention, or cut off from their own or from other sentences. "
    "Whether a type costs more than as many heads of other types is asked in the chapter; the paper did not ask it."
)
WHOLE = 1
"""The paper's row of the model as it is."""


def _cited(row: int, rival: int = WHOLE) -> Cited:
    return Cited({"id": row}, "f1", against=Cited({"id": rival}, "f1"))


def _fitting(values: Any) -> Any:
    """The record, if the group called vertical fits that name."""
    return values if values["fits"]["vertical"] else None


def _of(row: int, name: str = "f1_change") -> Callable[[Any], Any]:
    return lambda v: v["rows"][str(row)][name]


def _cost(row: int) -> dict[str, Callable[[Any], Any]]:
    return {"value": _of(row, "f1"), "against": itemgetter("f1"), "difference": _of(row)}


FINDINGS = (
    *(
        Finding(
            claim="guan2020 table2",
            text=f"{what} leaves less than a quarter of F1 (row {row} of the paper)",
            cited=_cited(row),
            rule="below",
            than=25,
            value=lambda v, row=row: float(v["rows"][str(row)]["f1"].value / v["f1"].value),
        )
        for row, what in ((3, "Pruning diagonal heads"), (9, "Even attention in diagonal heads"))
    ),
    *(
        Finding(
            claim="guan2020 table2",
            text=f"{what} costs less than {most} points of F1 (row {row} of the paper)",
            cited=_cited(row),
            rule="above",
            than=-most,
            of=part,
            **_cost(row),
        )
        for row, what, most, part in (
            (2, "Pruning dense heads", 5, lambda v: v),
            (8, "Even attention in dense heads", 10, lambda v: v),
            (5, "Pruning vertical heads", 5, _fitting),
        )
    ),
    *(
        Finding(
            claim="guan2020 table2",
            text=f"{what} costs F1 (row 4 of the paper)",
            cited=_cited(4),
            rule="below",
            of=part,
            value=_of(4),
        )
        for what, part in (
            ("Pruning dense & vertical heads", lambda v: v),
            ("With types found in the tuned model, pruning dense & vertical heads", itemgetter("tuned")),
        )
    ),
    Finding(
        claim="guan2020 table2",
        text="With types found in the tuned model, pruning dense heads costs less than 5 points of F1 (row 2 of the paper)",
        cited=_cited(2),
        rule="above",
        than=-5,
        of=itemgetter("tuned"),
        value=_of(2),
    ),
    *(
        Finding(
            claim="guan2020 table2",
            text=f"Even attention in {what} heads costs more than {least} points of F1 (row {row} of the paper)",
            cited=_cited(row),
            rule="below",
            than=-least,
            of=part,
            **_cost(row),
        )
        for row, what, least, part in ((10, "dense & vertical", 30, lambda v: v), (11, "vertical", 20, _fitting))
    ),
    Finding(
        claim="guan2020 table2",
        text="F1 is higher without dense and vertical heads than without dense & vertical and vertical ones (rows 6 and 7 of the paper)",
        cited=_cited(6, 7),
        rule="above",
        of=_fitting,
        value=_of(6),
        against=_of(7),
    ),
    Finding(
        claim="guan2020 table2",
        text="Pruning costs most F1 for diagonal heads, then dense & vertical, and least for dense heads (F1 left)",
        cited=_cited(3, 2),
        rule="every",
        value=lambda v: ordered(
            {
                name: float(v["rows"][row]["f1"].value)
                for name, row in (("diagonal", "3"), ("dense & vertical", "4"), ("dense", "2"))
            },
            ".2f",
        ),
    ),
    Finding(
        claim="guan2020 prune_vertical_loss",
        text="Pruning vertical heads costs less than 1.5 points of exact match",
        rule="above",
        than=-1.5,
        of=_fitting,
        value=_of(5, "em_change"),
    ),
    Finding(
        claim="guan2020 substitute_dense_loss",
        text="Even attention in dense heads costs less than 10 points of exact match",
        rule="above",
        than=-10,
        value=_of(8, "em_change"),
    ),
    Finding(
        claim="guan2020 substitute_vertical_accuracy",
        text="Even attention in vertical heads leaves more than 50 % exact matches",
        rule="above",
        than="paper",
        of=_fitting,
        value=_of(11, "em"),
    ),
    *(
        Finding(
            claim="guan2020 table3",
            text=f"{what}: F1 is lower without attention {less} sentences than without attention {more} them (rows {low} and {high} of the paper)",
            cited=_cited(low, high),
            rule="below",
            value=_of(low),
            against=_of(high),
        )
        for low, high, what, less, more in (
            (12, 13, "Diagonal heads", "inside", "between"),
            (15, 14, "Dense & vertical heads", "between", "inside"),
            (17, 16, "All heads but diagonal ones", "between", "inside"),
            (18, 19, "All heads but dense & vertical ones", "inside", "between"),
        )
    ),
)
NOT_MEASURED = {
    "same": (
        "guan2020 diagonal_intra_removed_accuracy_text",
        "guan2020 only_diagonal_intra_accuracy",
        "guan2020 only_dense_vertical_inter_accuracy",
        "guan2020 local_and_global_types",
    )
}


def findings(values: Mapping[str, Any]) -> list[Judged]:
    """The chapter's findings on what it records."""
    return judge(FINDINGS, values)


COLUMNS = ("heads", "F1", "EM", "change of F1", "dealt anew", "beyond")


def cells(values: Mapping[str, Any], row: int) -> list[object]:
    """A row of a fresh or recorded :func:`helpers.chapters.ablation_by_type.as_dict` under :data:`COLUMNS`; the last two are those of the control."""
    one = values["rows"][str(row)]
    cells: list[object] = [one["heads"], percent(one["f1"]), percent(one["em"]), percent(one["f1_change"], "+.0f")]
    if "control" not in values:
        return [*cells, "", ""]
    control = values["control"]["rows"][str(row)]
    return [*cells, spread(control["f1_dealt"]), percent(control["f1_beyond"], "+.0f")]


def table(claim: str, runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """The paper's rows with ours beside them, a line for each run.

    Args:
        claim: ``table2`` or ``table3`` of ``guan2020``.
        runs: title -> fresh or recorded values.
    """
    lines = []
    for row in (row for row in results.paper("guan2020", claim)["rows"] if row["id"] in ROWS):
        theirs = f"{row['f1']:.1f} / {row['accuracy']:.1f}"
        for title, values in runs.items():
            lines.append([f"{row['id']} {ROWS[row['id']].label}", title, *cells(values, row["id"]), theirs])
    return Table(["row and edit", "run", *COLUMNS, "BERT-large, SQuAD: F1 / Acc."], lines)
