"""Chapter 13: what a lecture reports of attention and keywords, and our numbers for it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from helpers.engine.estimates import Estimate
from helpers.figures.look import head_name
from helpers.record import results
from helpers.record.results import Table
from helpers.record.verdicts import Claim, Control, Finding, Ours, judge, taken

TITLE = "attention and keywords"
INTRO = "Numbers from a lecture, on a data set that it does not name."
FINDINGS = (
    Finding(
        Claim("stefaniknd tagger_f1", "shown"), "F1 of a tagger of keywords, on another data set", Ours("tagger.f1")
    ),
    Finding(
        Claim("stefaniknd tagger_f1_pruned", "above", -0.02),
        "Without a sixth or a fifth of its heads, those that its F1 misses least one by one, the tagger loses less than 0.02 of F1",
        Ours(
            lambda curve: curve["scores"][1, 0],
            "curves.least missed first, by F1",
            against=lambda curve: curve["scores"][0, 0],
            difference=lambda curve: curve["change"][1, 0],
        ),
        control=Control("random heads", "curves.random order"),
    ),
)
SILENT = "least missed first, by loss"


def _favouring(key: str) -> Callable[[Any], int]:
    """How many heads certainly give key words more."""
    return lambda values: int((values[key].low > 0).sum())


def _upper(key: str) -> Callable[[Any], int]:
    """How many heads of the upper half of the layers certainly give key words more."""
    return lambda values: int((values[key].low > 0)[len(values[key].low) // 2 :].sum())


def _fewer(order: str) -> Callable[[Any], Estimate]:
    """How many phrases more the tagger gives without the first two fifths of the heads than without as many random ones."""
    return lambda given: given[order][2]


HEADLINES = (
    Finding(
        Claim("own", "at least", 30, unit="heads"),
        "In the upper half of `minilm` nearly all heads give key words more attention than other content words.",
        Ours(_upper("content")),
        control=tuple(Control(f"@{name}", value=_upper(f"content_{name}")) for name in ("random", "shuffled")),
    ),
    Finding(
        Claim("own", "above"),
        "All heads together rank the words of a text better than rarity, frequency, place and number of pieces do.",
        Ours("all heads", "over_rules"),
        control=tuple(Control(name, "over_rules", f"all heads, {name}") for name in ("@random", "@shuffled")),
    ),
    Finding(
        Claim("own", "at least", 72, unit="heads"),
        "Where a split word receives the sum over its pieces, every head of a random network favours key words.",
        Ours(_favouring("relative_summed")),
        uncontrolled="It is a control of which this is claimed.",
    ),
    Finding(
        Claim("own", "below", -3, unit="phrases"),
        "Without the 29 heads that its loss misses least the tagger gives over three phrases fewer than without 29 random ones.",
        Ours(_fewer(SILENT), "given_beside_random"),
        control=tuple(
            Control(name, "given_beside_random", _fewer(name))
            for name in ("least missed first, by F1", "most missed first, by loss")
        ),
    ),
)
"""The first sentences of the chapter's summary."""
NOT_MEASURED = {
    "elsewhere": ("stefaniknd sota_f1",),
    "undefined": ("stefaniknd head_cross_entropy",),
    "definition": ("stefaniknd mean_relative_attention",),
}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""


def cell(values: Mapping[str, Any], *path: str) -> str:
    """An estimate of a run at a path; a network without a tagger, say, has none of it."""
    found = taken(".".join(path), values)
    return "not measured" if found is None else f"{Estimate.from_record(found):.3f}"


def tagger(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """The lecture's tagger, whole and pruned, beside those of several runs."""
    rows = []
    for label, claim, ours in (
        ("tagger, F1", "tagger_f1", lambda v: cell(v, "tagger", "f1")),
        ("tagger, F1, all keyphrases", None, lambda v: cell(v, "tagger", "f1_all")),
        ("whole, where pruned", None, lambda v: cell(v, "pruned", "whole")),
        ("pruned", "tagger_f1_pruned", lambda v: cell(v, "pruned", "f1")),
        ("heads pruned", None, lambda v: v["pruned"]["heads"] if "pruned" in v else ""),
        ("best system known to the author", "sota_f1", lambda v: ""),
    ):
        theirs = results.paper_text(results.paper("stefaniknd", claim)) if claim else ""
        rows.append([label, theirs, *map(ours, runs.values())])
    return Table(["", "lecture: BERT-base", *runs], rows)


def heads(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """Cross-entropies of the lecture's heads, and our best heads and simple rankings, in units of their own."""
    rows = []
    for head in results.paper("stefaniknd", "head_cross_entropy")["rows"][:3]:
        value = f"head {head['head']}: {head['cross_entropy']:.0f}"
        rows.append(["cross-entropy of a head", value, *[""] * len(runs)])
    best = [
        f"{head_name(*values['best'])}: {Estimate.from_record(values['heads']['entropy'])[tuple(values['best'])]:.3f}"
        for values in runs.values()
    ]
    rows.append(["best head, nats a word", "", *best])
    for name in ("first phrases", "tf-idf", "best head", "all heads"):
        ours = [cell(values, "scores", name, "precision") for values in runs.values()]
        rows.append([f"average precision: {name}", "", *ours])
    return Table(["", "lecture: BERT", *runs], rows)
