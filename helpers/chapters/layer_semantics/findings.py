"""Chapter 12: what the papers report of the order of tasks over layers, and our numbers for it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from helpers.engine.estimates import Estimate
from helpers.record import results
from helpers.record.results import Table
from helpers.record.verdicts import Claim, Control, Finding, Ours, judge

TITLE = "what is where in depth"
INTRO = (
    "Order and spread of tasks over layers. The papers print figures, the lecture that we read them in puts them in words. "
    "By the mixing weights a task is later if it is so by more than in the random network."
)

PAIRS = {
    ("part of speech", "dependency"): "task_order",
    ("part of speech", "coreference"): "task_order",
    ("dependency", "coreference"): "task_order",
    ("dependency", "entity"): "ner_order",
    ("entity", "coreference"): "ner_order",
}
"""Two tasks, the earlier first -> the claim of the paper that puts them so."""
BLANK = (Control("@random", "order.random"), Control("@shuffled", "order.shuffled"))
"""Networks whose layers learned nothing, or look at nothing in particular."""


def by_weights(early: str, late: str) -> Ours:
    """By how many layers a task comes later in the mixing weights, against the same in the random network, seed by seed."""
    pair = f"{early} to {late}"
    return Ours(f"{pair}.gravity", "order.trained", against=f"{pair}.random", difference=f"{pair}.beyond")


FINDINGS = (
    *(
        Finding(
            Claim(f"tenney2019 {claim}", "above", unit="layers"),
            f"Order of tasks: {late} in later layers than {early} (expected layer; interval over documents, not over fits of the probes)",
            Ours(f"{early} to {late}.expected", "order.trained"),
            control=BLANK,
        )
        for (early, late), claim in PAIRS.items()
    ),
    *(
        Finding(
            Claim(f"tenney2019 {claim}", "above", unit="layers"),
            f"Order of tasks: {late} in later layers than {early} (centre of gravity, beyond the random network's)",
            by_weights(early, late),
            control=BLANK[1],
        )
        for (early, late), claim in PAIRS.items()
    ),
    Finding(
        Claim("tenney2019 entity_types", "shown", unit="layers"),
        "Expected layer of entity types",
        Ours("tasks.entity.expected"),
    ),
    *(
        Finding(
            Claim("tenney2019 localizability", "above", unit="nats"),
            f"Spread of tasks: {early} is concentrated on fewer layers than {late} (divergence of the mixing weights from even ones)",
            Ours(f"{early} to {late}.spread", "order.trained"),
            control=BLANK,
        )
        for early, late in (("part of speech", "entity"), ("dependency", "coreference"))
    ),
)
NOT_MEASURED = {
    "setup": ("tenney2019 models, case_words",),
    "definition": ("tenney2019 scalar_mixing, differential_score",),
}

NOTHING = (Control("@random", "random"), Control("@shuffled", "shuffled"))
GAINING = ("part of speech", "dependency", "entity")


def least_certain(tasks: Mapping[str, Any]) -> Estimate:
    """What the layers bring to the task for which it is least certain."""
    return min((tasks[task]["gain"] for task in GAINING), key=lambda gain: gain.low)


def most_certain(tasks: Mapping[str, Any]) -> Estimate:
    """What the layers bring to the task for which it is most certain."""
    return max((one["gain"] for one in tasks.values()), key=lambda gain: gain.low)


def latest(tasks: Mapping[str, Any]) -> Estimate | None:
    """The later expected layer of parts of speech and relations."""
    known = [one for task in GAINING[:2] if (one := tasks[task]["expected"]) is not None]
    return max(known, key=lambda layer: layer.high, default=None)


HEADLINES = (
    Finding(
        Claim("own", "above", unit="points"),
        "On parts of speech, relations and entity types the layers bring a probe something, and those of a network that is random, or looks at random places, bring nothing certain.",
        Ours(least_certain, "tasks"),
        control=tuple(Control(one.name, one.of, most_certain) for one in NOTHING),
    ),
    Finding(
        Claim("own", "below", 3, unit="layers"),
        "What the layers bring to parts of speech and relations they bring early: before layer 3 of 6, on average.",
        Ours(latest, "tasks"),
        control=NOTHING,
    ),
    Finding(
        Claim("own", "above", 20, unit="points"),
        "Objects are told by their sentence: with the layers a probe finds over 20 points more of them than with the embeddings alone.",
        Ours("obj", "relation_gains.trained"),
        control=tuple(Control(one.name, f"relation_gains.{one.of}") for one in NOTHING),
    ),
    Finding(
        Claim("own", "above", unit="layers"),
        "A network that looks at random places has coreference in later layers than relations, too, by its mixing weights.",
        Ours("dependency to coreference.gravity", "order.shuffled"),
        uncontrolled="It is a control of which this is claimed.",
    ),
)
"""The first sentences of the chapter's summary."""

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""


def _order(values: Mapping[str, Any], key: str) -> str:
    known = {task: float(Estimate.from_record(one[key]).value) for task, one in values.items() if one[key]}
    return " < ".join(f"{task} {known[task]:.2f}" for task in sorted(known, key=known.get)) or "–"


def table(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """The order of tasks in the paper beside that in fresh or recorded values of several runs and their controls, by two measures."""
    orders = [results.paper("tenney2019", name) for name in ("task_order", "ner_order")]
    theirs = "; ".join(f"{' < '.join(one['value'])} ({one['where']})" for one in orders)
    rows = []
    for label, key in (("expected layer", "expected"), ("centre of gravity", "gravity")):
        rows.append([f"order by {label}", theirs, *(_order(values["tasks"], key) for values in runs.values())])
        for control in ("random", "shuffled"):
            rows.append(
                [f"the same, @{control}", "", *(_order(values.get(control, {}), key) for values in runs.values())]
            )
    return Table(["", f"Tenney et al. 2019: {orders[0]['model']}", *runs], rows)
