"""Chapter 12: what the papers report of the order of tasks over layers, and our numbers for it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from helpers.engine.estimates import Estimate
from helpers.record import results
from helpers.record.results import Table
from helpers.record.verdicts import Claim, Control, Finding, Ours, judge

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
            Claim("tenney2019 task_order", "above", unit="layers"),
            f"Order of tasks: {late} in later layers than {early} (expected layer)",
            Ours(f"between.{early} to {late}.expected"),
        )
        for early, late in (
            ("part of speech", "dependency"),
            ("part of speech", "coreference"),
            ("dependency", "coreference"),
        )
    ),
    Finding(
        Claim("tenney2019 entity_types", "shown", unit="layers"),
        "Expected layer of entity types",
        Ours("tasks.entity.expected"),
    ),
    *(
        Finding(
            Claim("tenney2019 localizability", "above", unit="nats"),
            f"Spread of tasks: {early} is concentrated on fewer layers than {late} (divergence of the mixing weights from even ones, nats)",
            Ours(concentration(early), "tasks", against=concentration(late)),
            control=Control("@random", "random"),
        )
        for early, late in (("part of speech", "entity"), ("dependency", "coreference"))
    ),
)
NOT_MEASURED = {
    "setup": ("tenney2019 models, case_words",),
    "definition": ("tenney2019 scalar_mixing, differential_score",),
}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""


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
