"""Chapter 10: what the paper reports of a network without a type of head, and our numbers for it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from helpers.chapters.ablation_by_type.edits import ROWS
from helpers.chapters.ablation_by_type.measures import percent, spread
from helpers.figures.look import group_names
from helpers.record import results
from helpers.record.results import Table
from helpers.record.verdicts import OWN, Cited, Claim, Control, Finding, Number, Ours, Take, judge, ordered

TITLE = "without a type of head"
INTRO = (
    "Tables 2 and 3 of the paper: extractive question answering with heads of a type pruned, given even attention, or cut off from their own or from other sentences. "
    "Whether a type costs more than as many heads of other types is asked in the chapter; the paper did not ask it."
)
WHOLE = 1
"""The paper's row of the model as it is."""


def _cited(row: int, rival: int = WHOLE) -> Cited:
    return Cited({"id": row}, "f1", against=Cited({"id": rival}, "f1"))


DEALT = "heads dealt anew"


def _dealt(row: int, score: str = "f1", of: str = "control.rows") -> Control:
    """The mean change of a row's deals."""
    return Control(DEALT, f"{of}.{row}", value=f"{score}_mean")


def _fitting(values: Any) -> Any:
    """The record, if the group called vertical fits that name."""
    return values if values["fits"]["vertical"] else None


def _left(row: int) -> Callable[[Any], float]:
    """F1 of a row as a share of that of the model as it is."""
    return lambda v: float(v["rows"][str(row)]["f1"].value / v["f1"].value)


def _left_of_deals(row: int) -> Control:
    """What :func:`_left` takes of a row, of the mean of its deals."""
    return Control(DEALT, "control", lambda v: float(1 + v["rows"][str(row)]["f1_mean"].value / v["f1"].value))


def _cost(row: int, of: Take) -> Ours:
    return Ours(f"rows.{row}.f1", of, against="f1", difference=f"rows.{row}.f1_change")


ORDER = {"diagonal": "3", "dense & vertical": "4", "dense": "2"}
"""The paper's order of types, from the one whose pruning leaves least F1, with their rows."""


def _order(values: Any) -> Number:
    return ordered({name: float(values["rows"][row]["f1"].value) for name, row in ORDER.items()}, ".2f")


def _order_of_deals(control: Any) -> Number:
    left = {name: control["f1"].value + control["rows"][row]["f1_mean"].value for name, row in ORDER.items()}
    return ordered({name: float(one) for name, one in left.items()}, ".2f")


FINDINGS = (
    *(
        Finding(
            Claim("guan2020 table2", "below", 25, _cited(row)),
            f"{what} leaves less than a quarter of F1 (row {row} of the paper)",
            Ours(_left(row)),
            control=_left_of_deals(row),
        )
        for row, what in ((3, "Pruning diagonal heads"), (9, "Even attention in diagonal heads"))
    ),
    *(
        Finding(
            Claim("guan2020 table2", "above", -most, _cited(row)),
            f"{what} costs less than {most} points of F1 (row {row} of the paper)",
            _cost(row, part),
            control=_dealt(row),
        )
        for row, what, most, part in (
            (2, "Pruning dense heads", 5, ""),
            (8, "Even attention in dense heads", 10, ""),
            (5, "Pruning vertical heads", 5, _fitting),
        )
    ),
    *(
        Finding(
            Claim("guan2020 table2", "below", cited=_cited(4)),
            f"{what} costs F1 (row 4 of the paper)",
            Ours("rows.4.f1_change", part),
            control=_dealt(4, of="tuned.control" if part else "control.rows"),
        )
        for what, part in (
            ("Pruning dense & vertical heads", ""),
            ("With types found in the tuned model, pruning dense & vertical heads", "tuned"),
        )
    ),
    Finding(
        Claim("guan2020 table2", "above", -5, _cited(2)),
        "With types found in the tuned model, pruning dense heads costs less than 5 points of F1 (row 2 of the paper)",
        Ours("rows.2.f1_change", "tuned"),
        control=_dealt(2, of="tuned.control"),
    ),
    *(
        Finding(
            Claim("guan2020 table2", "below", -least, _cited(row)),
            f"Even attention in {what} heads costs more than {least} points of F1 (row {row} of the paper)",
            _cost(row, part),
            control=_dealt(row),
        )
        for row, what, least, part in ((10, "dense & vertical", 30, ""), (11, "vertical", 20, _fitting))
    ),
    Finding(
        Claim("guan2020 table2", "above", cited=_cited(6, 7)),
        "F1 is higher without dense and vertical heads than without dense & vertical and vertical ones (rows 6 and 7 of the paper)",
        Ours("rows.6.f1_change", _fitting, against="rows.7.f1_change", difference="differences.6-7"),
        control=Control(DEALT, "control", value="differences.6-7"),
    ),
    Finding(
        Claim("guan2020 table2", "every", cited=_cited(3, 2)),
        "Pruning costs most F1 for diagonal heads, then dense & vertical, and least for dense heads (F1 left)",
        Ours(_order),
        control=Control(DEALT, "control", value=_order_of_deals),
    ),
    Finding(
        Claim("guan2020 prune_vertical_loss", "above", -1.5),
        "Pruning vertical heads costs less than 1.5 points of exact match",
        Ours("rows.5.em_change", _fitting),
        control=_dealt(5, "em"),
    ),
    Finding(
        Claim("guan2020 substitute_dense_loss", "above", -10),
        "Even attention in dense heads costs less than 10 points of exact match",
        Ours("rows.8.em_change"),
        control=_dealt(8, "em"),
    ),
    Finding(
        Claim("guan2020 substitute_vertical_accuracy", "above", "paper"),
        "Even attention in vertical heads leaves more than 50 % exact matches",
        Ours("rows.11.em", _fitting),
        control=Control(DEALT, "control", lambda v: float(v["em"].value + v["rows"]["11"]["em_mean"].value)),
    ),
    *(
        Finding(
            Claim("guan2020 table3", "below", cited=_cited(low, high)),
            f"{what}: F1 is lower without attention {less} sentences than without attention {more} them (rows {low} and {high} of the paper)",
            Ours(f"rows.{low}.f1_change", against=f"rows.{high}.f1_change", difference=f"differences.{low}-{high}"),
            control=Control(DEALT, "control", value=f"differences.{low}-{high}"),
        )
        for low, high, what, less, more in (
            (12, 13, "Diagonal heads", "inside", "between"),
            (15, 14, "Dense & vertical heads", "between", "inside"),
            (17, 16, "All heads but diagonal ones", "between", "inside"),
            (18, 19, "All heads but dense & vertical ones", "inside", "between"),
        )
    ),
)
NOT_MISSED = "it says what is not missed; heads dealt by chance that are not missed either would tell nothing"
HEADLINES = (
    Finding(
        Claim(OWN, "above", -15, unit="points"),
        "Without the six diagonal heads, vital in BERT-large, F1 falls by 9 points on XQuAD and by 3 on the book's thirty questions.",
        Ours("rows.3.f1_change"),
        uncontrolled=NOT_MISSED,
    ),
    Finding(
        Claim(OWN, "below", unit="points"),
        "Most heads, all but the dense & vertical ones, need their weights inside sentences more than those between sentences.",
        Ours("rows.18.f1_change", against="rows.19.f1_change", difference="differences.18-19"),
        uncontrolled="it says what most heads need, not that their type matters; heads dealt by chance need the same",
    ),
    Finding(
        Claim(OWN, "above", unit="points"),
        "When types are found after tuning, pruning the dense & vertical heads costs less than it did.",
        Ours("f1_beside", "tuned.rows.4"),
        uncontrolled="two sortings of the same heads are compared on the same questions",
    ),
    Finding(
        Claim(OWN, "above", -15, unit="points"),
        "Thirteen of the twenty dense & vertical heads can go, as long as the other seven stay: F1 falls by 2 points on XQuAD, by nothing visible on 30 questions.",
        Ours("core.rows.rest.f1_change"),
        uncontrolled=NOT_MISSED,
    ),
)
"""The chapter's own claims, first sentences of its summary."""

NOT_MEASURED = {
    "same": (
        "guan2020 diagonal_intra_removed_accuracy_text, only_diagonal_intra_accuracy, only_dense_vertical_inter_accuracy, local_and_global_types",
    )
}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""


COLUMNS = ("heads", "F1", "EM", "change of F1", "deals: lowest to highest", "lead over the deals", "p")


def cells(values: Mapping[str, Any], row: int) -> list[object]:
    """A row of a fresh or recorded :func:`helpers.chapters.ablation_by_type.as_dict` under :data:`COLUMNS`; the last three are those of the control."""
    one, control = values["rows"][str(row)], values["control"]["rows"][str(row)]
    cells: list[object] = [one["heads"], percent(one["f1"]), percent(one["em"]), percent(one["f1_change"], "+.0f")]
    dealt = f"{spread(control['f1_dealt'])} ({len(control['f1_dealt'])})"
    p = f"{control['f1_p']:.2f}" if len(control["f1_dealt"]) >= TELLING else ""
    return [*cells, dealt, percent(control["f1_beyond"], "+.0f"), p]


TELLING = 19
"""Deals from which on a p-value can be 0.05."""


def cited(claim: str) -> dict[str, float]:
    """Row -> the change of F1, in points, that a table of the paper reports: ``table2`` or ``table3`` of ``guan2020``."""
    whole = next(row["f1"] for row in results.paper("guan2020", "table2")["rows"] if row["id"] == WHOLE)
    return {str(r["id"]): r["f1"] - whole for r in results.paper("guan2020", claim)["rows"] if r["id"] in ROWS}


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
            label = ROWS[row["id"]].label(group_names(values["fits"]))
            lines.append([f"{row['id']} {label}", title, *cells(values, row["id"]), theirs])
    return Table(["row and edit", "run", *COLUMNS, "BERT-large, SQuAD: F1 / Acc."], lines)
