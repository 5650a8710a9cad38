"""Chapter 08: what the paper reports of types of heads by distance, and our numbers for it."""

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from helpers.engine.estimates import percent
from helpers.figures.look import LABELS
from helpers.record import results
from helpers.record.results import Table
from helpers.record.verdicts import Cited, Finding, Judged, Number, judge, ordered

TITLE = "types of heads"
INTRO = (
    "Groups of heads by how far they look. The paper compares one network fine-tuned on several tasks, "
    "we one network on the texts of several tasks."
)


def clearest(values: Any) -> int:
    """The number of groups with the largest silhouette."""
    return int(max(values["k"], key=lambda k: values["k"][k]["silhouette"].value))


def _fit(name: str) -> dict[str, Callable[[Any], Any]]:
    """A type's share and whether its group fits the name; for the random network the second stands for the first."""
    return {
        "of": lambda v: {"share": v["shares"][name], "fits": v["fits"][name]},
        "random": lambda v: {"share": v["random"]["fits"][name], "fits": v["random"]["fits"][name]},
        "value": itemgetter("share"),
        "test": itemgetter("fits"),
    }


def depths(values: Any) -> Number | None:
    """Mean layers of dense, dense & vertical and vertical heads; None if a type has no heads, or vertical heads do not fit."""
    if not values["fits"]["vertical"]:
        return None
    types = np.array(values["types"])
    layers = {name: np.nonzero(types == name)[0] for name in ("dense", "dense_vertical", "vertical")}
    if not all(map(len, layers.values())):
        return None
    return ordered({name.replace("_", " & "): float(found.mean()) + 1 for name, found in layers.items()}, ".1f")


FINDINGS = (
    Finding(
        claim="guan2020 clusters",
        text="Four groups describe the heads best (number of groups with the largest silhouette)",
        rule="equal",
        than="paper",
        unit="count",
        value=clearest,
    ),
    *(
        Finding(
            claim="guan2020 clusters_alternative",
            text=f"{k} groups are stable as well: over 95 % of heads keep their group on half of the inputs",
            rule="above",
            than="guan2020 stability_summary",
            unit="%",
            value=lambda v, k=k: v["k"][k]["inputs"],
        )
        for k in ("3", "5")
    ),
    Finding(
        claim="guan2020 gaussian_mixture",
        text="A Gaussian mixture finds similar groups (adjusted Rand index with k-means over 0.8)",
        rule="above",
        than=0.8,
        value=lambda v: v["mixture"]["4"]["mixture"],
    ),
    *(
        Finding(
            claim="guan2020 type_shares",
            text=f"One of four groups is {name}: its mean has the marks of the name (share of heads)",
            cited=Cited({"type": name}, "share"),
            rule="passed",
            **_fit(name.replace("&", "_")),
        )
        for name in ("dense", "diagonal", "dense&vertical", "vertical")
    ),
    Finding(
        claim="guan2020 type_shares",
        text="Dense heads come first, then dense & vertical, then vertical (mean layer)",
        cited=Cited({"type": "dense"}, "layers", against=Cited({"type": "vertical"}, "layers")),
        rule="every",
        unit="count",
        value=depths,
    ),
    Finding(
        claim="guan2020 table1",
        text="On plain text, over 95 % of heads keep their type on half of the inputs",
        cited=Cited({"task": "Pre-train"}, "stability"),
        rule="above",
        than="guan2020 stability_summary",
        of=lambda v: v["stability"]["plain text"],
        random=lambda v: v["stability"]["random"],
        value=itemgetter("inputs"),
    ),
    *(
        Finding(
            claim="guan2020 table1",
            text=f"On {texts}, over {bound} % of heads keep their type on half of the inputs",
            cited=Cited({"task": task}, "stability"),
            rule="above",
            than=bound,
            value=lambda v, ours=ours: v["stability"][ours]["inputs"],
        )
        for task, texts, ours, bound in (
            ("SQuAD", "questions with their paragraphs", "questions", 95),
            ("MRPC", "paraphrase pairs", "paraphrase", 95),
            ("MNLI", "entailment pairs", "entailment", 94),
        )
    ),
)
NOT_MEASURED = {
    "setup": (
        "guan2020 heads_total",
        "guan2020 layers",
        "guan2020 heads_per_layer",
        "guan2020 samples",
        "guan2020 stability_refits",
        "guan2020 stability_train_share",
    ),
    "definition": (
        "guan2020 feature_dimensions",
        "guan2020 windows",
        "guan2020 special_tokens",
        "guan2020 feature_sum",
    ),
    "same": ("guan2020 stability_summary",),
}


def findings(values: Mapping[str, Any]) -> list[Judged]:
    """The chapter's findings on what it records."""
    return judge(FINDINGS, values)


def shares(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """Shares of the types beside the paper's; a dagger marks groups that do not fit their name."""
    rows = []
    for row in results.paper("guan2020", "type_shares")["rows"]:
        name = row["type"].replace("&", "_")
        ours = [percent(v["shares"][name]) + " †" * (not v["fits"][name]) for v in runs.values()]
        rows.append([LABELS[name], f"{row['share']} ({row['layers']} layers)", *ours])
    return Table(["type", "BERT-large, SQuAD", *runs], rows)


TUNED = {"plain text": "", "questions": "qa", "paraphrase": "paraphrase", "entailment": "entailment"}
"""Texts in the order of the rows of the paper's Table 1 -> the task that a network was tuned for."""
REST = {
    "inputs_control": "invented heads: half of the inputs",
    "heads": "plain text: half of the heads",
    "heads_control": "invented heads: half of the heads",
}


def stability(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """Stability of four groups beside the paper's Table 1, on the texts of each task and after tuning for it."""
    found = [values["stability"] for values in runs.values()]
    rows = []
    for (texts, task), row in zip(TUNED.items(), results.paper("guan2020", "table1")["rows"], strict=True):
        ours = [percent(one[texts]["inputs"]) for one in found]
        rows.append([f"{texts} ({row['task']}): half of the inputs", f"{row['stability']:.2f}", *ours])
        tuned = [percent(one[f"tuned: {task}"]["inputs"]) if f"tuned: {task}" in one else "–" for one in found]
        if set(tuned) != {"–"}:
            rows.append([f"tuned: {task}, plain text: half of the inputs", "", *tuned])
    rows += [[label, "", *(percent(one["plain text"][key]) for one in found)] for key, label in REST.items()]
    return Table(["refits see", "BERT-large", *runs], rows)
