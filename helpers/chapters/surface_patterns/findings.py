"""Chapter 02: what the papers report of position, special tokens and entropy, and our numbers for it."""

from collections.abc import Callable, Mapping
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from helpers.chapters.surface_patterns.measures import sink_of
from helpers.engine.estimates import Estimate
from helpers.figures.look import head_name
from helpers.record.verdicts import Cited, Finding, Judged, Number, beside, judge, ordered

TITLE = "position, special tokens, entropy"
INTRO = (
    "Simple statistics of where heads look, on segments of two paragraphs. In BERT the token that takes surplus attention is `[SEP]`; "
    "these rows ask for `[SEP]` where the paper does, even if another token plays its part in our models."
)
SUMMARY = {"of": itemgetter("summary"), "random": itemgetter("control")}


def count(*roles: str) -> Callable[[Any], int]:
    """How many heads have one of these roles."""
    return lambda summary: sum(one["role"] in roles for one in summary["specialists"])


def named(role: str) -> Callable[[Any], str]:
    """How many heads have a role, and which."""

    def shown(summary: Any) -> str:
        heads = [head_name(one["layer"], one["head"]) for one in summary["specialists"] if one["role"] == role]
        return f"{len(heads)}: {', '.join(heads)}" if heads else "0"

    return shown


def depth(where: str) -> Callable[[Any], Number | None]:
    """Mean depth of the heads that give over half: 0 is the first layer, 1 the last. None if there is no such head."""

    def taken(values: Any) -> Number | None:
        found = values["patterns"][where].value
        layers = np.nonzero(found > 0.5)[0]
        if not len(layers):
            return None
        words = f"{', '.join(str(layer + 1) for layer in layers)} of {len(found)}"
        return Number(float(layers.mean()) / (len(found) - 1), words=words)

    return taken


def largest(by_layer: Estimate) -> Estimate:
    """Of the layer with most."""
    return by_layer[int(by_layer.value.argmax())]


def _most(by_layer: Estimate) -> str:
    return f"{largest(by_layer):.1%} (layer {int(by_layer.value.argmax()) + 1})"


def peaks(values: Any) -> Number:
    """The layers with most attention to [CLS], to [SEP], to full stops and commas."""
    by_layer = {
        "[CLS]": values["summary"]["to_cls_by_layer"].value,
        "[SEP]": values["summary"]["to_sep_by_layer"].value,
        "full stops": values["patterns"]["stop"].value.mean(1),
    }
    return ordered({name: float(found.argmax()) + 1 for name, found in by_layer.items()}, ".0f")


def close(summary: Any) -> np.float64:
    """The share of layers, the last left out, in which entropy from [CLS] is within a tenth of that from all tokens."""
    every, from_cls = (summary[name].value[:-1] for name in ("entropy_by_layer", "entropy_from_cls_by_layer"))
    return (abs(every - from_cls) <= 0.1 * abs(every)).mean()


def _sink(summary: Any) -> str:
    if (found := sink_of(summary)) is None:
        return "none"
    kind, multiple = found
    return f"[{kind.upper()}], {summary[f'to_{kind}']:.1%}, {multiple:.0f} times its even share"


def _peak(summary: Any) -> str:
    return f"{summary['largest_peak_of_broad']:.1%}" if summary["largest_peak_of_broad"] else "no broad head"


FINDINGS = (
    *(
        Finding(
            claim="clark2019 figure1_example_heads",
            text=f"There are heads of this kind: {what}",
            cited=Cited({"behaviour": behaviour}, "head"),
            rule="at least",
            than=1,
            unit="count",
            **SUMMARY,
            value=count(role),
        )
        for behaviour, role, what in (
            ("attends broadly", "broad", "broad"),
            ("next token", "next", "most attention to the next token"),
            ("[SEP]", "sep", "most attention to [SEP]"),
            ("periods", "stop", "most attention to full stops and commas"),
        )
    ),
    Finding(
        claim="clark2019 heads_over_half_previous",
        text="Some heads give more than half of their attention to the previous token",
        rule="at least",
        than=1,
        **SUMMARY,
        value=count("previous"),
        label="heads with over 50 % on the previous token",
        shown=named("previous"),
    ),
    Finding(
        claim="clark2019 layers_over_half_previous",
        text="Where there are such heads, they stand in the earlier half of the layers, on average",
        rule="below",
        than=0.5,
        value=depth("previous"),
    ),
    Finding(
        claim="clark2019 heads_over_half_next",
        text="Some heads give more than half of their attention to the next token",
        rule="at least",
        than=1,
        **SUMMARY,
        value=count("next"),
        label="heads with over 50 % on the next token",
        shown=named("next"),
    ),
    Finding(
        claim="clark2019 layers_over_half_next",
        text="Where there are such heads, they stand in the earlier half of the layers, on average",
        rule="below",
        than=0.5,
        value=depth("next"),
    ),
    Finding(
        claim="clark2019 self_attention",
        text="More than half of the heads give less than 10 % of their attention to the token itself (share of heads)",
        rule="above",
        than=50,
        unit="%",
        value=lambda v: (v["patterns"]["self"].value < 0.1).mean(),
    ),
    Finding(
        claim="clark2019 broad_head_max_share",
        of=itemgetter("summary"),
        label="largest weight in a row of a broad head, mean",
        shown=_peak,
    ),
    Finding(
        claim="clark2019 sep_share_middle_layers",
        text="In some layer more than half of all attention goes to [SEP] (share in the layer with most)",
        rule="above",
        than="paper",
        **SUMMARY,
        value=lambda s: largest(s["to_sep_by_layer"]),
        label="attention to all [SEP], the layer with most",
        shown=lambda s: _most(s["to_sep_by_layer"]),
    ),
    Finding(
        claim="clark2019 sep_to_sep",
        text="In some layer more than 90 % of the attention from [SEP] goes to [SEP] (share in the layer with most)",
        rule="above",
        than="paper",
        **SUMMARY,
        value=lambda s: largest(s["sep_from_sep_by_layer"]),
        label="attention to all [SEP] from [SEP] itself, the layer with most",
        shown=lambda s: _most(s["sep_from_sep_by_layer"]),
    ),
    Finding(
        claim="clark2019 special_token_order",
        text="Attention to [CLS] is highest in an earlier layer than to [SEP], and to [SEP] in an earlier one than to full stops and commas",
        rule="every",
        value=peaks,
        label="the sink, and its share of all attention",
        shown=lambda v: _sink(v["summary"]),
    ),
    Finding(
        claim="clark2019 special_token_share_of_head",
        text="Some heads give more than half of their attention to [CLS], to [SEP], or to full stops and commas (how many)",
        rule="at least",
        than=1,
        unit="count",
        **SUMMARY,
        value=count("cls", "sep", "stop"),
    ),
    Finding(
        claim="clark2019 cls_entropy_last_layer",
        text="Attention from [CLS] is broader in the last layer than in the others on average (entropy there)",
        rule="above",
        than=lambda s: s["entropy_from_cls_by_layer"].value[:-1].mean(),
        **SUMMARY,
        value=lambda s: s["entropy_from_cls_by_layer"][-1],
        label="entropy from [CLS] in the last layer (nats)",
        shown=lambda s: f"{s['entropy_from_cls_by_layer'][-1]:.2f}; even: {s['uniform_from_cls']:.2f}",
    ),
    Finding(
        claim="clark2019 cls_entropy_other_layers",
        text="In more than half of the other layers, entropy from [CLS] is within 10 % of that from all tokens (share of layers)",
        rule="above",
        than=50,
        unit="%",
        **SUMMARY,
        value=close,
    ),
    Finding(
        claim="clark2019 broad_head_max_share",
        text="Broad heads give no token more than 10 %, on average (the largest of them)",
        rule="below",
        than="paper",
        **SUMMARY,
        value=itemgetter("largest_peak_of_broad"),
    ),
)
NOT_MEASURED = {
    "setup": (
        "clark2019 segments",
        "clark2019 max_tokens",
        "clark2019 input_format",
        "clark2019 relative_position_threshold",
    ),
    "definition": ("clark2019 sep_uniform_baseline",),
    "elsewhere": ("clark2019 uncased_model",),
}


def findings(values: Mapping[str, Any]) -> list[Judged]:
    """The chapter's findings on what it records."""
    return judge(FINDINGS, values)


table = partial(beside, findings)
"""Paper beside book: ``table(paper, {heading: values})``, see :func:`helpers.record.verdicts.beside`."""
