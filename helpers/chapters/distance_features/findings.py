"""Chapter 08: what the paper reports of types of heads by distance, and our numbers for it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from helpers.engine.estimates import percent
from helpers.figures.look import LABELS
from helpers.record import results
from helpers.record.results import Table
from helpers.record.verdicts import Cited, Claim, Control, Finding, Number, Ours, judge, ordered

TITLE = "types of heads"
INTRO = (
    "Groups of heads by how far they look. The paper compares one network fine-tuned on several tasks, "
    "we one network on the texts of several tasks."
)


def clearest(values: Any) -> int:
    """The number of groups with the largest silhouette."""
    return int(max(values["k"], key=lambda k: values["k"][k]["silhouette"].value))


def _fit(name: str) -> dict[str, Any]:
    """A type's share and whether its group fits the name; for the random network the second stands for the first."""

    def own(values: Any) -> dict[str, Any]:
        return {"share": values["shares"][name], "fits": values["fits"][name]}

    def random(values: Any) -> dict[str, Any]:
        return dict.fromkeys(("share", "fits"), values["random"]["fits"][name])

    return {"ours": Ours("share", own, test="fits"), "control": Control("@random", random)}


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
        Claim("guan2020 clusters", "equal", "paper", unit="count"),
        "Four groups describe the heads best (number of groups with the largest silhouette)",
        Ours(clearest),
    ),
    *(
        Finding(
            Claim("guan2020 clusters_alternative", "above", "guan2020 stability_summary", unit="%"),
            f"{k} groups are stable as well: over 95 % of heads keep their group on half of the inputs",
            Ours(f"k.{k}.inputs"),
        )
        for k in (3, 5)
    ),
    Finding(
        Claim("guan2020 gaussian_mixture", "above", 0.8),
        "A Gaussian mixture finds similar groups (adjusted Rand index with k-means over 0.8)",
        Ours("mixture.4.mixture"),
    ),
    *(
        Finding(
            Claim("guan2020 type_shares", "passed", cited=Cited({"type": name}, "share")),
            f"One of four groups is {name}: its mean has the marks of the name (share of heads)",
            **_fit(name.replace("&", "_")),
        )
        for name in ("dense", "diagonal", "dense&vertical", "vertical")
    ),
    Finding(
        Claim(
            "guan2020 type_shares",
            "every",
            cited=Cited({"type": "dense"}, "layers", against=Cited({"type": "vertical"}, "layers")),
            unit="count",
        ),
        "Dense heads come first, then dense & vertical, then vertical (mean layer)",
        Ours(depths),
    ),
    Finding(
        Claim("guan2020 table1", "above", "guan2020 stability_summary", Cited({"task": "Pre-train"}, "stability")),
        "On plain text, over 95 % of heads keep their type on half of the inputs",
        Ours("inputs", "stability.plain text"),
        control=Control("@random", "stability.random"),
    ),
    *(
        Finding(
            Claim("guan2020 table1", "above", bound, Cited({"task": task}, "stability")),
            f"On {texts}, over {bound} % of heads keep their type on half of the inputs",
            Ours(f"stability.{ours}.inputs"),
        )
        for task, texts, ours, bound in (
            ("SQuAD", "questions with their paragraphs", "questions", 95),
            ("MRPC", "paraphrase pairs", "paraphrase", 95),
            ("MNLI", "entailment pairs", "entailment", 94),
        )
    ),
)
NOT_MEASURED = {
    "setup": ("guan2020 heads_total, layers, heads_per_layer, samples, stability_refits, stability_train_share",),
    "definition": ("guan2020 feature_dimensions, windows, special_tokens, feature_sum",),
    "same": ("guan2020 stability_summary",),
}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""


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
