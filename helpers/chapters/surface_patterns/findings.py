"""Chapter 02: what the papers report of position, special tokens and entropy, and our numbers for it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from helpers.chapters.surface_patterns.measures import sink_of
from helpers.engine.estimates import Estimate
from helpers.figures.look import head_name
from helpers.record.verdicts import Cited, Claim, Control, Finding, Number, Ours, Row, beside, judge, ordered

TITLE = "position, special tokens, entropy"
INTRO = (
    "Simple statistics of where heads look, on segments of two paragraphs. In BERT the token that takes surplus attention is `[SEP]`; "
    "these rows ask for `[SEP]` where the paper does, even if another token plays its part in our models."
)
of_summary = partial(Ours, of="summary")
CONTROLS = (Control("@random", "control"), Control("@shuffled", "shuffled"))


def _whole(control: str, summary: str) -> Control:
    """A control where a finding reads the whole record."""
    return Control(
        f"@{control}", lambda record: {"summary": record[summary], "patterns": record["control_patterns"][control]}
    )


WHOLE = (_whole("random", "control"), _whole("shuffled", "shuffled"))


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


def best_of(role: str) -> Callable[[Any], Estimate | None]:
    """The largest held-out share of a head with a role; None if there is none."""

    def taken(summary: Any) -> Estimate | None:
        found = [one["held_out"] for one in summary["specialists"] if one["role"] == role]
        return max(found, key=lambda one: one.value, default=None)

    return taken


def least_narrow(summary: Any) -> Estimate:
    """Of the layers before the last, where entropy from [CLS] is least below that from all tokens."""
    before = summary["cls_narrower_by_layer"][:-1]
    return before[int(before.value.argmin())]


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


def _last(summary: Any) -> str:
    return f"{summary['entropy_from_cls_by_layer'][-1]:.2f}; even: {summary['uniform_from_cls']:.2f}"


def _peak(summary: Any) -> str:
    return f"{summary['largest_peak_of_broad']:.1%}" if summary["largest_peak_of_broad"] else "no broad head"


FINDINGS = (
    *(
        Finding(
            Claim("clark2019 figure1_example_heads", "at least", 1, Cited({"behaviour": behaviour}, "head"), "count"),
            f"There are heads of this kind: {what}",
            of_summary(count(role)),
            control=CONTROLS,
        )
        for behaviour, role, what in (
            ("attends broadly", "broad", "broad"),
            ("next token", "next", "most attention to the next token"),
            ("[SEP]", "sep", "most attention to [SEP]"),
            ("periods", "stop", "most attention to full stops and commas"),
        )
    ),
    *(
        finding
        for place in ("previous", "next")
        for finding in (
            Finding(
                Claim(f"clark2019 heads_over_half_{place}", "at least", 1),
                f"Some heads give more than half of their attention to the {place} token",
                of_summary(count(place)),
                Row(f"heads with over 50 % on the {place} token", named(place)),
                control=CONTROLS,
            ),
            Finding(
                Claim(f"clark2019 layers_over_half_{place}", "below", 0.5),
                "Where there are such heads, they stand in the earlier half of the layers, on average",
                Ours(depth(place)),
                uncontrolled="The controls have no such heads, so there is no depth to compare.",
            ),
        )
    ),
    Finding(
        Claim("clark2019 self_attention", "above", 50, unit="%"),
        "More than half of the heads give less than 10 % of their attention to the token itself (share of heads)",
        Ours(lambda v: (v["patterns"]["self"].value < 0.1).mean()),
        control=WHOLE,
    ),
    Finding(
        Claim("clark2019 broad_head_max_share"),
        ours=Ours(of="summary"),
        row=Row("largest weight in a row of a broad head, mean", _peak),
    ),
    Finding(
        Claim("clark2019 sep_share_middle_layers", "above", "paper"),
        "In some layer more than half of all attention goes to [SEP] (share in the layer with most)",
        of_summary(lambda s: largest(s["to_sep_by_layer"])),
        Row("attention to all [SEP], the layer with most", lambda s: _most(s["to_sep_by_layer"])),
        control=CONTROLS,
    ),
    Finding(
        Claim("clark2019 sep_to_sep", "above", "paper"),
        "In some layer more than 90 % of the attention from [SEP] goes to [SEP] (share in the layer with most)",
        of_summary(lambda s: largest(s["sep_from_sep_by_layer"])),
        Row(
            "attention to all [SEP] from [SEP] itself, the layer with most",
            lambda s: _most(s["sep_from_sep_by_layer"]),
        ),
        control=CONTROLS,
    ),
    Finding(
        Claim("clark2019 special_token_order", "every"),
        "Attention to [CLS] is highest in an earlier layer than to [SEP], and to [SEP] in an earlier one than to full stops and commas",
        Ours(peaks),
        Row("the sink, and its share of all attention", lambda v: _sink(v["summary"])),
        control=WHOLE,
    ),
    Finding(
        Claim("clark2019 special_token_share_of_head", "at least", 1, unit="count"),
        "Some heads give more than half of their attention to [CLS], to [SEP], or to full stops and commas (how many)",
        of_summary(count("cls", "sep", "stop")),
        control=CONTROLS,
    ),
    Finding(
        Claim(
            "clark2019 cls_entropy_last_layer", "above", lambda s: s["entropy_from_cls_by_layer"].value[:-1].mean()
        ),
        "Attention from [CLS] is broader in the last layer than in the others on average (entropy there)",
        of_summary(lambda s: s["entropy_from_cls_by_layer"][-1]),
        Row("entropy from [CLS] in the last layer (nats)", _last),
        control=CONTROLS,
    ),
    Finding(
        Claim("clark2019 cls_entropy_other_layers", "above", 50, unit="%"),
        "In more than half of the other layers, entropy from [CLS] is within 10 % of that from all tokens (share of layers)",
        of_summary(close),
        control=CONTROLS,
    ),
    Finding(
        Claim("clark2019 broad_head_max_share", "below", "paper"),
        "Broad heads give no token more than 10 %, on average (the largest of them)",
        of_summary("largest_peak_of_broad"),
        control=CONTROLS,
    ),
)
HEADLINES = (
    Finding(
        Claim("own", "above", 90, unit="%"),
        "A head of `minilm` gives over 90 % of its attention to the previous token, on articles that did not choose it.",
        of_summary(best_of("previous")),
        control=CONTROLS,
    ),
    Finding(
        Claim("own", "above", 30, unit="times"),
        "`[CLS]` draws over thirty times its even share of all attention.",
        of_summary(lambda s: Number.of(s["to_cls"]).times(1 / s["chance"]["cls"])),
        control=CONTROLS,
    ),
    Finding(
        Claim("own", "above", 0.5, unit="nats"),
        "In every layer but the last, `[CLS]` looks more narrowly than tokens do on average.",
        of_summary(least_narrow),
        control=CONTROLS,
    ),
)
"""The first sentences of the chapter's summary."""
NOT_MEASURED = {
    "setup": ("clark2019 segments, max_tokens, input_format, relative_position_threshold",),
    "definition": ("clark2019 sep_uniform_baseline",),
    "elsewhere": ("clark2019 uncased_model",),
}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""
table = partial(beside, findings)
"""Paper beside book: ``table(paper, {heading: values})``, see :func:`helpers.record.verdicts.beside`."""
