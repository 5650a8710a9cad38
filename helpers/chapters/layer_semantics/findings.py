"""Chapter 12: what the papers report of the order of tasks over layers, and our numbers for it."""

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from helpers.engine.estimates import Estimate
from helpers.record import results
from helpers.record.results import Table
from helpers.record.verdicts import Finding, Judged, judge

TITLE = "what is where in depth"
INTRO = "Order and spread of tasks over layers. The papers print figures, the lecture that we read them in puts them in words."


def concentration(task: str) -> Callable[[Any], float]:
    """How far a task's weights of layers, as a mean over seeds, are from even: a divergence in nats, 0 if they are even."""

    def taken(tasks: Any) -> float:
        weights = np.mean(tasks[task]["weights"], axis=0)
        weights = weights / weights.sum()
        logs = np.log(weights * len(weights), where=weights > 0, out=np.zeros(len(weights)))
        return float((weights * logs).sum())

    return taken


FINDINGS = (
    *(
        Finding(
            claim="tenney2019 task_order",
            text=f"Order of tasks: {late} in later layers than {early} (expected layer)",
            rule="above",
            unit="layers",
            value=lambda v, step=f"{early} to {late}": v["between"][step]["expected"],
        )
        for early, late in (
            ("part of speech", "dependency"),
            ("part of speech", "coreference"),
            ("dependency", "coreference"),
        )
    ),
    Finding(
        claim="tenney2019 entity_types",
        text="Expected layer of entity types",
        rule="shown",
        unit="layers",
        value=lambda v: v["tasks"]["entity"]["expected"],
    ),
    *(
        Finding(
            claim="tenney2019 localizability",
            text=f"Spread of tasks: {early} is concentrated on fewer layers than {late} (divergence of the mixing weights from even ones, nats)",
            rule="above",
            unit="nats",
            of=itemgetter("tasks"),
            random=itemgetter("random"),
            value=concentration(early),
            against=concentration(late),
        )
        for early, late in (("part of speech", "entity"), ("dependency", "coreference"))
    ),
)
NOT_MEASURED = {
    "setup": ("tenney2019 models", "tenney2019 case_words"),
    "definition": ("tenney2019 scalar_mixing", "tenney2019 differential_score"),
}


def findings(values: Mapping[str, Any]) -> list[Judged]:
    """The chapter's findings on what it records."""
    return judge(FINDINGS, values)


def _order(values: Mapping[str, Any], key: str) -> str:
    known = {task: float(Estimate.from_record(one[key]).value) for task, one in values["tasks"].items() if one[key]}
    return " < ".join(f"{task} {known[task]:.2f}" for task in sorted(known, key=known.get))


def table(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """The order of tasks in the paper beside that in fresh or recorded values of several runs, by two measures."""
    source = results.paper("tenney2019", "task_order")
    theirs = f"{' < '.join(source['value'])} ({source['where']})"
    measures = {"expected": "expected layer", "gravity": "centre of gravity"}
    rows = [
        [f"order by {label}", theirs, *(_order(values, key) for values in runs.values())]
        for key, label in measures.items()
    ]
    return Table(["", f"Tenney et al. 2019: {source['model']}", *runs], rows)
