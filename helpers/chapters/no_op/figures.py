"""Chapter 03: weights beside their gradients, norms, and what removing attention costs."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from helpers import plots
from helpers.plots import COLOURS, INK, REFERENCE, Names, Series
from helpers.stats import Estimate


def weights_and_gradient(weights: ArrayLike, gradient: ArrayLike, tokens: Names, *, title: str = "") -> Figure:
    """One head's map and, beside it, how the loss reacts to each of its weights; attending tokens down the side.

    Args:
        weights, gradient: [query, key]; the gradient has both signs and is drawn from blue (negative) to red.
    """
    weights, gradient = np.asarray(weights), np.asarray(gradient)
    size, largest = 0.9 + 0.215 * len(tokens), np.abs(gradient).max()
    figure, axes = plt.subplots(1, 2, figsize=(2 * size + 1.5, size + 0.3), sharey=True)
    images = (
        axes[0].imshow(weights, cmap="Blues", vmin=0, vmax=weights.max()),
        axes[1].imshow(gradient, cmap="RdBu_r", vmin=-largest, vmax=largest),
    )
    for image, label in zip(images, ("attention weight", "∂ loss / ∂ weight (nats)"), strict=True):
        plots.token_axes(image.axes, tokens, size=7.5, rotation=90)
        figure.colorbar(image, ax=image.axes, shrink=0.7, label=label)
    axes[0].set_ylabel("attending token")
    figure.suptitle(title, fontsize=9)
    return figure


def weights_and_lengths(
    weights: ArrayLike, lengths: ArrayLike, tokens: Names, kinds: Names, *, title: str = ""
) -> Figure:
    """For each token of a text, how much of a head's attention it gets, and how long the vector is that the attention multiplies.

    Args:
        weights, lengths: [token], means over the attending tokens, and lengths.
        kinds: of the tokens, names of colours.
    """
    figure, axes = plt.subplots(2, 1, figsize=(0.9 + 0.34 * len(tokens), 3.8), sharex=True)
    labels = ("share of the attention", "length of f(x)")
    for ax, sizes, label in zip(axes, (weights, lengths), labels, strict=True):
        ax.bar(range(len(tokens)), sizes, color=[COLOURS[kind] for kind in kinds])
        ax.set_ylabel(label)
        plots.on_tokens(ax, tokens, fontsize=8)
    axes[0].set_title(title, fontsize=10)
    return figure


MODEL_LINES = (("minilm", "-", "o"), ("first", "--", "s"), ("random", "-.", "D"), ("shuffled", ":", "v"))
"""Colour, dashes and marker of the model, the model with its adapter, and two controls."""
MEASURE_LINES = (("broad", "--", "o"), ("cls", "-", "s"), ("", ":", "D"))
"""The same of the plain gradient, the gradient of a move, and the length."""


def over_layers(panels: Mapping[str, Series], *, ylabel: str, reference: str = "") -> Figure:
    """A line with its band over the layers for each series, in a panel for each measurement.

    Args:
        panels: title -> (name -> estimate (layer,)), in the order of :data:`MODEL_LINES`, or of :data:`MEASURE_LINES` for multiples.
        reference: for multiples, what the line at 1 stands for, and the scale is logarithmic; without it shares are drawn.
    """
    styles = MEASURE_LINES if reference else MODEL_LINES
    figure, axes = plots.titled(panels, (2.75, 2.9), margin=(1.2, 0), size=10, sharey=True)
    for ax, shown in zip(axes.flat, panels.values(), strict=True):
        for (name, estimate), (kind, dashes, marker) in zip(shown.items(), styles, strict=False):
            x = np.arange(1, len(estimate.value) + 1)
            look = {"colour": COLOURS.get(kind, INK), "linestyle": dashes, "marker": marker, "markersize": 4}
            plots.band(ax, x, estimate, alpha=0.15, label=name, **look)
        plots.on_layers(ax, len(x))
        if reference:
            ax.axhline(1, **REFERENCE)
            plots.logarithmic(ax.yaxis)
        else:
            ax.set_ylim(0, 1)
    if reference:
        axes[0, 0].annotate(reference, (x[-1], 1), (0, 4), textcoords="offset points", ha="right", fontsize=8)
    axes[0, 0].set_ylabel(ylabel)
    plots.legend_beside(axes[0, -1], fontsize=8)
    return figure


CHANGES = {
    "special": {"color": COLOURS["cls"], "marker": "o", "label": "all of [CLS] and [SEP]"},
    "matched": {"color": COLOURS["broad"], "marker": "s", "label": "a part of this"},
    "random": {"color": COLOURS["other"], "marker": "D", "label": "as much as this part, of other tokens"},
    "predicted": {
        "color": COLOURS["stop"],
        "marker": "x",
        "markeredgewidth": 1.8,
        "label": "all of both, first order",
    },
}
"""Looks of each way of taking attention away."""


def loss_changes(panels: Mapping[str, Series], *, losses: Sequence[float]) -> Figure:
    """What taking attention away does to the loss: layers on x, last all layers at once, in a panel of its own scale.

    Args:
        panels: title -> (``special``, ``matched``, ``random`` or ``predicted`` -> change (layer + 1,), in nats); an estimate may lack the last.
        losses: of the untouched model, for each panel.
    """
    layers = max(len(e.value) for shown in panels.values() for e in shown.values()) - 1
    size, ratios = (8.2, 2.9 * len(panels)), (layers, 1.5)
    figure, axes = plt.subplots(len(panels), 2, figsize=size, squeeze=False, width_ratios=ratios)
    for (each, together), (title, shown), loss in zip(axes, panels.items(), losses, strict=True):
        for number, (name, estimate) in enumerate(shown.items()):
            shift = 0.17 * (number - (len(shown) - 1) / 2)
            plots.intervals(each, np.arange(1, layers + 1) + shift, estimate[:layers], **CHANGES[name])
            last = estimate[layers:]
            plots.intervals(together, np.full(len(last.value), shift), last, **CHANGES[name])
        for ax in (each, together):
            ax.axhline(0, **REFERENCE)
        plots.on_layers(each, layers, ylabel="change of the loss (nats)")
        each.set_title(title, fontsize=10)
        together.set(xticks=[0], xticklabels=["all layers"], xlim=(-0.6, 0.6))
        together.grid(axis="x", visible=False)
        together.set_title(f"loss itself: {loss:.2f}", fontsize=9)
    plots.legend_below(axes[0, 0], ncols=2)
    return figure


def at_once(runs: Mapping[str, Mapping[str, Any]]) -> Figure:
    """What taking attention away from all layers at once does to the loss, in a panel for each run.

    Args:
        runs: title -> a record's ``removed`` (:func:`helpers.chapters.no_op.sink.removed_as_dict`).
    """
    ways = {"the rest as it is": "as_left", "the rest sums to 1 again": "renormalised"}
    looks = {what: CHANGES[what] for what in ("special", "matched", "random")}
    figure, axes = plots.titled(runs, (3.1, 2.3), margin=(1.4, 0.4), size=9.5, sharex=True, sharey=True)
    for ax, removed in zip(axes.flat, runs.values(), strict=True):
        series = {what: [Estimate.from_record(removed[way][what])[-1] for way in ways.values()] for what in looks}
        plots.dot_rows(ax, [*ways], series, looks.values(), apart=0.2, line=0)
        ax.set_xlabel("change of the loss (nats)")
    plots.legend_below(axes[0, 0], ncols=3)
    return figure
