"""Chapter 10: its numbers as rows of the tidy table, and the paper's two tables beside ours."""

from collections.abc import Mapping

from helpers import results
from helpers.chapters.ablation_by_type.edits import ROWS
from helpers.chapters.ablation_by_type.measures import SCORES, percent, spread
from helpers.plots import group_names
from helpers.results import Blocks, Record, Table, in_order, rows

DEALT = "shuffled heads"
VERTICAL = ("5", "6", "7", "11")
"""Rows about vertical heads: there is nothing to say of them where no group fits that name."""
ORDER = {"diagonal": "3", "dense & vertical": "4", "dense": "2"}
"""The paper's order of types, from the one whose pruning leaves least F1, with their rows."""
TELLING = 19
"""Deals from which on a p-value can be 0.05."""


def tidy(record: Record) -> Blocks:
    """The numbers of a record, for :func:`helpers.results.record`."""
    values = record["values"]
    control, tuned = values["control"], values["tuned"]
    common, few = {"n": values["questions"]}, {"n": control["questions"]}
    yield rows("f1", values["f1"], **common)
    yield rows("f1_of_control", control["f1"], **few)
    yield rows("control_questions", control["questions"])
    for row, found in values["rows"].items():
        change = found["f1_change"]
        dealt = {"control": control["rows"][row].get("f1_mean"), "against": DEALT}
        yield rows("f1_cost_of_row", change, of=row, **dealt, **common)
        if row not in VERTICAL or values["fits"]["vertical"]:
            yield rows("f1_in_row", found["f1"], of=row, **common)
            yield rows("f1_left_in_row", _left(found["f1"]["value"], values["f1"]), of=row, **common)
            yield rows("em_in_row", found["em"], of=row, **common)
            yield rows("em_cost_of_row", found["em_change"], of=row, **common)
    left = _of_deals(control)
    for row, found in control["rows"].items():
        for score in SCORES:
            yield rows(f"{score}_cost_of_deals", found.get(f"{score}_mean"), of=row, **few)
            yield rows(f"{score}_of_deals", left[score].get(row), of=row, **few)
        if row in left["f1"]:
            yield rows("f1_left_of_deals", _left(left["f1"][row], control["f1"]), of=row, **few)
    for row, found in tuned["rows"].items():
        yield rows("f1_cost_of_row_tuned", found["f1_change"], of=row, **common)
        yield rows("f1_tuned_less_own", found["f1_beside"], of=row, **common)
    dealt = {row: found.get("f1_mean") for row, found in tuned["control"].items()}
    yield rows("f1_cost_of_deals_tuned", dealt, **few)
    parts = {part: found["f1_change"] for part, found in values["core"]["rows"].items()}
    yield rows("f1_cost_of_part", parts, **common)
    yield rows("f1_difference", values["differences"], **common)
    yield rows("f1_difference_of_deals", control["differences"], **few)
    yield from _order("pruning_order", {row: found["f1"]["value"] for row, found in values["rows"].items()}, common)
    yield from _order("pruning_order_of_deals", left["f1"], few)


def _left(f1: float, whole: Mapping[str, float]) -> float | None:
    """F1 as a share of that of the model as it is."""
    return f1 / whole["value"] if whole["value"] else None


def _of_deals(control: Record) -> dict[str, dict[str, float]]:
    """Score -> row -> its mean over the row's deals."""
    return {
        score: {
            row: control[score]["value"] + found[f"{score}_mean"]["value"]
            for row, found in control["rows"].items()
            if f"{score}_mean" in found
        }
        for score in SCORES
    }


def _order(quantity: str, f1: Mapping[str, float], common: Record) -> Blocks:
    """Whether types come in the paper's order, by what is left of F1."""
    if set(ORDER.values()) <= set(f1):
        yield in_order(quantity, {name: f1[row] for name, row in ORDER.items()}, ".2f", **common)


COLUMNS = ("heads", "F1", "EM", "change of F1", "deals: lowest to highest", "lead over the deals", "p")


def cited(claim: str) -> dict[str, float]:
    """Row -> the change of F1, in points, that a table of the paper reports: ``table2`` or ``table3`` of ``guan2020``."""
    whole = results.paper("guan2020", "table2")["rows"][0]["f1"]
    return {
        str(row["id"]): row["f1"] - whole for row in results.paper("guan2020", claim)["rows"] if row["id"] in ROWS
    }


def rows_of_paper(claim: str, runs: Mapping[str, Record]) -> Table:
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
            lines.append([f"{row['id']} {label}", title, *_cells(values, str(row["id"])), theirs])
    return Table(["row and edit", "run", *COLUMNS, "BERT-large, SQuAD: F1 / Acc."], lines)


def _cells(values: Record, row: str) -> list[object]:
    """A row under :data:`COLUMNS`; the last three are those of the control."""
    one, control = values["rows"][row], values["control"]["rows"][row]
    cells: list[object] = [one["heads"], percent(one["f1"]), percent(one["em"]), percent(one["f1_change"], "+.0f")]
    dealt = f"{spread(control['f1_dealt'])} ({len(control['f1_dealt'])})"
    p = f"{control['f1_p']:.2f}" if len(control["f1_dealt"]) >= TELLING else ""
    return [*cells, dealt, percent(control["f1_beyond"], "+.0f"), p]
