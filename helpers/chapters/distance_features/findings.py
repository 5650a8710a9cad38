"""Chapter 08: what the paper reports of types of heads by distance, and our numbers for it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from helpers.engine.estimates import percent
from helpers.figures.look import LABELS, group_names
from helpers.record import results
from helpers.record.results import Table
from helpers.record.verdicts import Cited, Claim, Control, Finding, Number, Ours, judge, ordered

TITLE = "types of heads"
INTRO = (
    "Groups of heads by how far they look. The paper compares one network fine-tuned on several tasks, "
    "we one network on the texts of several tasks."
)


RANDOM, SHUFFLED = partial(Control, "@random"), partial(Control, "@shuffled")


def clearest(values: Any, of: str = "silhouette") -> int:
    """The number of groups with the largest silhouette."""
    return int(max(values["k"], key=lambda k: values["k"][k][of].value))


def _fit(name: str) -> dict[str, Any]:
    """A type's share and whether its group fits the name; for the controls the second stands for the first."""

    def own(values: Any) -> dict[str, Any]:
        return {"share": values["shares"][name], "fits": values["fits"][name]}

    def of(control: str) -> Callable[[Any], dict[str, Any]]:
        return lambda values: dict.fromkeys(("share", "fits"), values[control]["fits"][name])

    return {"ours": Ours("share", own, test="fits"), "control": (RANDOM(of("random")), SHUFFLED(of("shuffled")))}


def _fitting(part: Any) -> int:
    """How many groups have the marks of the type that they stand for."""
    return sum(part["fits"].values())


def _invented(value: str) -> Control:
    return Control("invented heads", value=value)


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
        control=Control("invented heads", value=partial(clearest, of="silhouette_control")),
    ),
    *(
        Finding(
            Claim("guan2020 clusters_alternative", "above", "guan2020 stability_summary", unit="%"),
            f"{k} groups are stable as well: over 95 % of heads keep their group on half of the inputs",
            Ours(f"k.{k}.inputs"),
            control=_invented(f"k.{k}.inputs_control"),
        )
        for k in (3, 5)
    ),
    Finding(
        Claim("guan2020 gaussian_mixture", "above", 0.8),
        "A Gaussian mixture finds similar groups (adjusted Rand index with k-means over 0.8)",
        Ours("scales.as they are.mixture"),
        control=_invented("scales.as they are.mixture_control"),
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
        uncontrolled="Heads without types have no order of types.",
    ),
    Finding(
        Claim("guan2020 table1", "above", "guan2020 stability_summary", Cited({"task": "Pre-train"}, "stability")),
        "On plain text, over 95 % of heads keep their type on half of the inputs",
        Ours("inputs", "stability.plain text"),
        control=(RANDOM("stability.random"), Control("invented heads", "stability.plain text", "inputs_control")),
    ),
    *(
        Finding(
            Claim("guan2020 table1", "above", bound, Cited({"task": task}, "stability")),
            f"On {texts}, over {bound} % of heads keep their type on half of the inputs",
            Ours(f"stability.{ours}.inputs"),
            control=_invented(f"stability.{ours}.inputs_control"),
        )
        for task, texts, ours, bound in (
            ("SQuAD", "questions with their paragraphs", "questions", 95),
            ("MRPC", "paraphrase pairs", "paraphrase", 95),
            ("MNLI", "entailment pairs", "entailment", 94),
        )
    ),
)
HEADLINES = (
    Finding(
        Claim("own", "above", 80, unit="%"),
        "Two of the 21 numbers hold over four fifths of what sets the heads of `minilm` apart.",
        Ours("largest"),
        control=(RANDOM("random"), SHUFFLED("shuffled")),
    ),
    Finding(
        Claim("own", "equal", 3, unit="count"),
        "Three of four groups fit the type that they stand for, and the fourth does not.",
        Ours(_fitting),
        control=(RANDOM("random"), SHUFFLED("shuffled")),
    ),
    Finding(
        Claim("own", "every"),
        "Four groups are a little clearer in our heads than in one cloud of invented heads, on each of three scales.",
        Ours(lambda values: np.mean([one["excess"]["4"].low > 0 for one in values["scales"].values()])),
        uncontrolled="The number is a difference from invented heads, which are its control.",
    ),
    Finding(
        Claim("own", "above", unit="points"),
        "When the same texts are cut short, more heads change their group than when half of the texts go.",
        Ours("texts.cut short.change", against="changed_in_half"),
        uncontrolled="What another half of the texts changes is the control, and stands on the other side.",
    ),
)
"""What the chapter says itself, as in its summary."""

NOT_MEASURED = {
    "setup": ("guan2020 heads_total, layers, heads_per_layer, samples, stability_refits, stability_train_share",),
    "definition": ("guan2020 feature_dimensions, windows, special_tokens, feature_sum",),
    "same": ("guan2020 stability_summary",),
}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""


def shares(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """Shares of the types beside the paper's; a group that does not fit the name is given by its own."""
    rows = []
    for row in results.paper("guan2020", "type_shares")["rows"]:
        name = row["type"].replace("&", "_")
        ours = [percent(v["shares"][name]) + _aside(v["fits"], name) for v in runs.values()]
        rows.append([LABELS[name], f"{row['share']} ({row['layers']} layers)", *ours])
    return Table(["type", "BERT-large, SQuAD", *runs], rows)


def _aside(fits: Mapping[str, bool], name: str) -> str:
    return "" if fits[name] else f" ({group_names(fits)[name]})"


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
    plain = [one["plain text"] for one in found]
    rows += [[label, "", *(percent(p[key]) if key in p else "–" for p in plain)] for key, label in REST.items()]
    return Table(["refits see", "BERT-large", *runs], rows)
