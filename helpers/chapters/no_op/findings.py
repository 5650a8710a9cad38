"""Chapter 03: what the papers report of attention that does nothing, and our numbers for it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from helpers.chapters.no_op.measures import shares
from helpers.engine.estimates import Estimate
from helpers.figures.look import head_name
from helpers.record.results import Table
from helpers.record.verdicts import Claim, Control, Finding, Number, Ours, Row, beside, judge, opened

TITLE = "attention that does nothing"
INTRO = (
    "Gradients of the loss on hidden words, and lengths of what heads move. The first layer that the paper names is layer 5 of 12; "
    "in networks of another depth the same share of the way is meant."
)
SMALL = 0.5
"""A mean gradient of less than this multiple of that on other tokens is called small."""
START = 0.333
"""The depth, as a share of all layers, from which the paper calls them small."""
CLS, SEP = 0, 1
of_norms = partial(Ours, of="without_adapter")
"""Of the model itself: the adapter for hidden words makes the sink larger, and the papers' models have none."""
UNTRAINED = Control("@random", "random")
DEALT = Control("@shuffled", "shuffled")
NO_SKILL = (Control("output layer untrained", "untrained_head"), Control("@random", "random_head"))
OFF_DUTY = (Control("@random", "duty_random.obj"), Control("@shuffled", "duty_shuffled.obj"))


def deep(values: Any) -> Number:
    """The share of layers, from :data:`START` on, in which the gradient for [SEP] is small."""
    ratio = values["gradient_ratio"].value[:, SEP]
    late = ratio[np.arange(len(ratio)) >= START * len(ratio)]
    small = int((late < SMALL).sum())
    return Number(small / len(late), words=f"{small} of {len(late)}")


def _small(values: Any) -> str:
    high = values["gradient_ratio"].high
    layers = {name: np.flatnonzero(high[:, n] < SMALL) + 1 for n, name in enumerate(("[CLS]", "[SEP]"))}
    return "; ".join(f"{name}: {', '.join(map(str, found)) or 'none'}" for name, found in layers.items())


def _no_nouns(head: Any) -> Estimate:
    return head["sink"][2]


def _objects(head: Any) -> str:
    return f"{head_name(head['layer'], head['head'])}; {head['sink'][0]:.0%}, {head['sink'][2]:.0%}"


def at_peak(name: str) -> Callable[[Any], Estimate]:
    """Of the layer and the token, [CLS] or [SEP], that draw most attention."""
    return lambda norms: norms[name][divmod(int(norms["share"].value[:, [CLS, SEP]].argmax()), 2)]


def _lengths(norms: Any) -> str:
    most, length = int(norms["share"].value[:, CLS].argmax()), norms["norm_ratio"]
    return f"{length[most, CLS]:.3f}, {length[most, SEP]:.2f} (layer {most + 1})"


def _shares(norms: Any) -> str:
    most = int(norms["share"].value[:, CLS].argmax())
    return f"{norms['share'][most, CLS]:.0%}, {norms['weighted_share'][most, CLS]:.1%}"


FINDINGS = (
    Finding(
        Claim("clark2019 gradient_small_from_layer", "every"),
        "From that depth on, the loss reacts less than half as much to attention to [SEP] as to other tokens (in how many of the layers)",
        Ours(deep),
        Row("layers with less than half the gradient of other tokens", _small),
        control=NO_SKILL,
    ),
    Finding(
        Claim("clark2019 no_op_example_head", "above", unit="%"),
        "The head of direct objects gives [CLS] and [SEP] more from words that are no nouns than from objects",
        Ours(_no_nouns, "duty.obj", against=lambda head: head["sink"][0], difference="retreat.no nouns"),
        Row("head of direct objects; to [CLS] and [SEP] from objects, from words that are no nouns", _objects),
        control=OFF_DUTY,
    ),
    Finding(
        Claim("clark2019 no_op_example_head", "above", 50, unit="%"),
        "Words that are no nouns give [CLS] and [SEP] most of their attention in that head, more than half",
        Ours(_no_nouns, "duty.obj"),
        control=OFF_DUTY,
    ),
    Finding(
        Claim("kobayashi2020 special_token_value_norm", "below", 0.5, unit="ratio"),
        "Where [CLS] or [SEP] draws most attention, what it hands on is less than half as long as what other tokens do (length, as a multiple)",
        of_norms(at_peak("norm_ratio")),
        Row(
            "length of [CLS] and of [SEP], as a multiple of that of other tokens, in the layer with most attention to [CLS]",
            _lengths,
        ),
        control=UNTRAINED,
    ),
    Finding(
        Claim("kobayashi2020 special_token_weighted_output", "below", -10, unit="%"),
        "There, its share of attention × length is over 10 points below its share of attention",
        of_norms(at_peak("weighted_share"), against=at_peak("share")),
        Row("share of [CLS] there: of attention, and of attention × length", _shares),
        control=UNTRAINED,
    ),
)
HEADLINES = (
    Finding(
        Claim("own", "above", 30, unit="points"),
        "In `minilm` itself `[CLS]` draws over 30 points more of the attention than of what the heads hand on, where it draws most.",
        of_norms(at_peak("kept")),
        control=(UNTRAINED, DEALT),
    ),
    Finding(
        Claim("own", "below", 0.05, unit="ratio"),
        "The vectors behind that attention are short: in that layer less than a twentieth as long as those of other tokens.",
        of_norms(at_peak("norm_ratio")),
        control=UNTRAINED,
    ),
    Finding(
        Claim("own", "below", unit="nats"),
        "With nothing in its place, weight on the special tokens can be deleted at less cost than as much weight on others.",
        Ours(lambda removed: removed["difference"][-1], "removed.as_left"),
        uncontrolled="The other tokens are the control: the same weight of the same rows, in another place.",
    ),
    Finding(
        Claim("own", "above", unit="nats"),
        "Beyond what deleting costs, spending the sink's weight on other tokens costs the model more than moving as much weight among others.",
        Ours(lambda removed: removed["difference"][-1], "removed.spent"),
        uncontrolled="Weight of other tokens, moved in the same way, is the control.",
    ),
)
"""The first sentences of the chapter's summary."""
NOT_MEASURED: Mapping[str, tuple[str, ...]] = {}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""
table = partial(beside, findings)
"""Paper beside book: ``table(paper, {heading: values})``, see :func:`helpers.record.verdicts.beside`."""


def by_model(values: Mapping[str, Any], part: str) -> dict[str, Estimate]:
    """A part of [CLS] by layer in a run's recorded values: in the model itself, with the adapter, and in the controls.

    Args:
        part: one of the keys of :func:`helpers.chapters.no_op.measures.norms_as_dict`.
    """
    records = {"the model itself": "without_adapter", "with adapter": "norms"}
    records |= {"@random": "random", "@shuffled": "shuffled"}
    return {name: Estimate.from_record(values[key][part])[:, CLS] for name, key in records.items()}


def by_layer(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """The layers of several runs' recorded values, one under another."""
    columns: dict[str, tuple[Any, str]] = {}
    rows = []
    for model, values in runs.items():
        found = opened(values)
        norms, left, summed = found["norms"], found["removed"]["as_left"], found["removed"]["renormalised"]
        columns = {
            "to [CLS]": (norms["share"][:, CLS], ".0%"),
            "part of the sums": (shares(norms["joint"].value)[:, CLS], ".0%"),
            "length, × others": (norms["norm_ratio"][:, CLS], ".3f"),
            "move, × others": (found["moved_ratio"][:, CLS], ".2f"),
            "loss without special tokens": (left["special"], "+.3f"),
            "renormalised": (summed["special"], "+.3f"),
            "without others": (left["random"], "+.3f"),
            "renormalised ": (summed["random"], "+.3f"),
        }
        layers = range(len(found["gradient_ratio"].value))
        rows += [[model, n + 1, *(f"{one[n]:{spec}}" for one, spec in columns.values())] for n in layers]
    return Table(["model", "layer", *columns], rows)


def retreats_of(values: Mapping[str, Any], way: str) -> tuple[dict[str, str], dict[str, dict[str, Estimate | float]]]:
    """How the heads of relations retreat off duty, best found first, and beside each the mean of all heads.

    Args:
        values: fresh or recorded.
        way: one of :data:`helpers.chapters.no_op.duty.RETREATS`.

    Returns:
        relation -> relation, head, and how often it is right; and series -> (relation -> share).
    """
    duty = opened(values)["duty"]
    names, own, every = {}, {}, {}
    for relation, head in sorted(duty.items(), key=lambda one: -one[1]["accuracy"]):
        names[relation] = f"{relation}, {head_name(head['layer'], head['head'])} ({head['accuracy']:.0%})"
        own[relation] = head["off_duty"][way]
        every[relation] = float(own[relation].value - head["beyond"][way].value)
    return names, {"its head": own, "mean of all heads": every}


def duties_of(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """The relations of several runs' recorded values, best found first: how much more goes to the special tokens off duty."""
    rows = []
    for model, values in runs.items():
        duty = opened(values)["duty"]
        for relation in sorted(duty, key=lambda r: -duty[r]["accuracy"]):
            head = duty[relation]
            numbers = [head["retreat"]["off duty"], float(np.mean(head["retreat_of_all"]))]
            place = head_name(head["layer"], head["head"])
            rows.append([model, relation, place, f"{head['accuracy']:.0%}", *numbers])
    columns = ["model", "relation", "head", "finds", "to special tokens, off minus on duty", "mean of all heads"]
    return Table(columns, rows, digits=2)
