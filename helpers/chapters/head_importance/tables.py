"""Chapter 11: its numbers as rows of the tidy table."""

from scipy.stats import binom

from helpers.chapters.head_importance.jobs import ALONE
from helpers.chapters.head_importance.measures import solved
from helpers.plots import head_name
from helpers.results import Blocks, Record, rows
from helpers.stats import Estimate, percent

LITTLE = 0.05
"""Share of the score. Where a test would overlook so large a cost, heads that it does not find are no evidence."""


def tidy(record: Record) -> Blocks:
    """The numbers of a record, for :func:`helpers.results.record`."""
    values, texts = record["values"], record["provenance"]["parameters"].get("texts", {})
    for task, found in values["tasks"].items():
        corpus, split = texts.get(task, (None, None))
        common = {"of": task, "n": found["examples"], "corpus": corpus, "split": split}
        for name, ending in (("score", "cost"), ("loss", "loss")):
            for what, axes in (("heads", ("layer", "head")), ("layers", ("layer",))):
                removed = found["cost"][name][what]
                yield rows(f"removal_{ending}", removed["cost"], *axes, **common)
                yield rows(f"removal_{ending}_p", removed["p"], *axes, **common)
            if found["even"] is not None:
                yield rows(f"even_{ending}", found["even"][name]["heads"]["cost"], "layer", "head", **common)
        yield rows("importance", found["importance"], "layer", "head", **common)
        yield rows("importance_normalised", found["normalised"], "layer", "head", **common)
        yield rows("first_order", found["first_order"], "layer", "head", **common)
        yield from _of_task(found, common)
    yield from _headlines(values)


def of_task(record: Record) -> Blocks:
    """The numbers of one task, fresh or recorded, for a column of the chapter's own tables."""
    return _of_task(record["values"], {})


def _of_task(found: Record, common: Record) -> Blocks:
    """What is said of all heads together; beyond the score only where the task is solved, since elsewhere nothing can be lost."""
    majority = {"control": found["majority"], "against": "most frequent answer"}
    yield rows("score", found["score"], **common, **majority)
    if not solved(found):
        return
    count = found["cost"]["score"]["heads"]["count"]
    by_luck = binom.sf(count["helps_alone"] - 1, count["heads"], ALONE / 2)
    yield rows("heads_tested", count["heads"], **common)
    yield rows("needed_share", count["hurts_alone"] / count["heads"], **common)
    yield rows("harmful_by_luck", float(by_luck), **common)
    for name, ending in (("score", ""), ("loss", "_by_loss")):
        count = found["cost"][name]["heads"]["count"]
        yield rows(f"needed_heads{ending}", count["hurts_alone"], **common)
        yield rows(f"harmful_heads{ending}", count["helps_alone"], **common)
    for part, quantity in (("cost", "balance"), ("even", "balance_even")):
        if found[part] is not None:
            yield rows(quantity, found[part]["score"]["heads"]["balance"], **common)
    yield rows("smallest_cost_seen", _seen(found, "alone"), **common)
    yield rows("smallest_cost_seen_together", _seen(found, "together"), **common)
    for which, one in found["extremes"].items():
        cost = Estimate.from_record(one["cost"])
        change = {"value": -cost.value, "low": -cost.high, "high": -cost.low}
        words = percent(change, "+.1f").replace("-", "−")
        yield rows(f"{which}_removal", change, label=f"{words}, {head_name(*one['head'])}", **common)
    cost, score = Estimate.from_record(found["extremes"]["worst"]["cost"]), found["score"]["value"]
    share = {end: getattr(cost, end) / score for end in ("value", "low", "high")}
    yield rows("worst_removal_share", share, **common)


def _seen(found: Record, test: str) -> float:
    """The smallest cost that a test sees in four of five samples, as a share of the score; all of it where no removal changes anything."""
    score = found["score"]["value"]
    return (found["cost"]["score"]["heads"]["visible"][test] or score) / score


def _headlines(values: Record) -> Blocks:
    """What the chapter's headlines are about: numbers of the tasks that the page draws, and of the pruned model."""
    drawn, sizes = values.get("drawn", {}), values.get("parameters", {})
    sensitive = [one for one in drawn.values() if solved(one) and _seen(one, "alone") < LITTLE]
    counts = [one["cost"]["score"]["heads"]["count"] for one in sensitive]
    needed = [count["hurts_alone"] / count["heads"] for count in counts]
    yield rows("most_needed_share", max(needed, default=None))
    some = [one["cost"]["loss"] for title, one in drawn.items() if title.startswith(("mlm ", "paraphrase "))]
    low = [Estimate.from_record(one["layers"]["cost"]).low for one in some if "layers" in one]
    yield rows("needed_layers_share", min(((one > 0).mean() for one in low), default=None))
    agreements = [Estimate.from_record(one["agreement"]["importance_twice"]) for one in drawn.values()]
    yield rows("least_steady_importance", min(agreements, key=lambda one: one.low, default=None))
    if "without them" in sizes:
        yield rows("parameters_gone", 1 - sizes["without them"]["all"] / sizes["whole"]["all"])
