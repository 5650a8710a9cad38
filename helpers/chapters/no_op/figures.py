"""Chapter 03: weights beside their gradients, norms, and what removing attention costs."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from helpers.plots import (
    COLOURS,
    INK,
    REFERENCE,
    band,
    in_rows,
    intervals,
    legend_below,
    legend_beside,
    logarithmic,
    on_layers,
    titled,
    token_axes,
)
from helpers.stats import Estimate


def weights_and_gradient(
    weights: ArrayLike, gradient: ArrayLike, tokens: Sequence[str], *, title: str = ""
) -> Figure:
    """One head's map and, beside it, how the loss reacts to each of its weights; attending tokens down the side.

    Args:
        weights, gradient: [query, key]; the gradient has both signs and is drawn from blue (negative) to red.
    """
    weights, gradient = np.asarray(weights), np.asarray(gradient)
    size, largest = 0.9 + 0.215 * len(tokens), np.abs(gradient).max()
    figure, axes = plt.subplots(1, 2, figsize=(2 * size + 1.5, size + 0.3), sharey=True, layout="constrained")
    for ax, matrix, cmap, low, label in (
        (axes[0], weights, "Blues", 0, "attention weight"),
        (axes[1], gradient, "RdBu_r", -largest, "∂ loss / ∂ weight (nats)"),
    ):
        image = ax.imshow(matrix, cmap=cmap, vmin=low, vmax=-low or matrix.max())
        token_axes(ax, tokens, size=7.5, rotation=90)
        figure.colorbar(image, ax=ax, shrink=0.7, label=label)
    axes[0].set_ylabel("attending token")
    figure.suptitle(title, fontsize=9)
    return figure


def weights_and_lengths(
    weights: ArrayLike, lengths: ArrayLike, tokens: Sequence[str], kinds: Sequence[str], *, title: str = ""
) -> Figure:
    """For each token of a text, how much of a head's attention it gets, and how long the vector is that the attention multiplies.

    Args:
        weights, lengths: [token], means over the attending tokens, and lengths.
        kinds: of the tokens, names of colours.
    """
    figure, axes = plt.subplots(2, 1, figsize=(0.9 + 0.34 * len(tokens), 3.8), sharex=True, layout="constrained")
    labels = ("share of the attention", "length of f(x)")
    for ax, sizes, label in zip(axes, (weights, lengths), labels, strict=True):
        ax.bar(range(len(tokens)), sizes, color=[COLOURS[kind] for kind in kinds])
        ax.set_ylabel(label)
        ax.grid(axis="x", visible=False)
    axes[1].set_xticks(range(len(tokens)), tokens, rotation=60, fontsize=8, ha="right", rotation_mode="anchor")
    axes[0].set_title(title, fontsize=10)
    return figure


MODEL_LINES = (
    (COLOURS["minilm"], "-", "o"),
    (COLOURS["first"], "--", "s"),
    (COLOURS["random"], "-.", "D"),
    (COLOURS["shuffled"], ":", "v"),
)
"""Colour, dashes and marker of the model, the model with its adapter, and two controls."""
MEASURE_LINES = ((COLOURS["broad"], "--", "o"), (COLOURS["cls"], "-", "s"), (INK, ":", "D"))
"""The same of the plain gradient, the gradient of a move, and the length."""


def over_layers(panels: Mapping[str, Mapping[str, Estimate]], *, ylabel: str, reference: str = "") -> Figure:
    """A line with its band over the layers for each series, in a panel for each measurement.

    Args:
        panels: title -> (name -> estimate (layer,)), in the order of :data:`MODEL_LINES`, or of :data:`MEASURE_LINES` for multiples.
        reference: for multiples, what the line at 1 stands for, and the scale is logarithmic; without it shares are drawn.
    """
    styles = MEASURE_LINES if reference else MODEL_LINES
    figure, axes = titled(panels, (2.75, 2.9), margin=(1.2, 0), size=10, sharey=True)
    for ax, shown in zip(axes.flat, panels.values(), strict=True):
        for (name, estimate), (colour, dashes, marker) in zip(shown.items(), styles, strict=False):
            x = np.arange(1, len(estimate.value) + 1)
            band(
                ax, x, estimate, colour=colour, alpha=0.15, linestyle=dashes, marker=marker, markersize=4, label=name
            )
        on_layers(ax, len(x))
        if reference:
            ax.axhline(1, **REFERENCE)
            logarithmic(ax.yaxis)
        else:
            ax.set_ylim(0, 1)
    if reference:
        axes[0, 0].annotate(reference, (x[-1], 1), (0, 4), textcoords="offset points", ha="right", fontsize=8)
    axes[0, 0].set_ylabel(ylabel)
    legend_beside(axes[0, -1], fontsize=8)
    return figure


CHANGE_STYLES = {
    "special": ("cls", "o", "all of [CLS] and [SEP]"),
    "matched": ("broad", "s", "a part of this"),
    "random": ("other", "D", "as much as this part, of other tokens"),
    "predicted": ("stop", "x", "all of both, first order"),
}
"""Colour, marker and label of each way of taking attention away."""


def loss_changes(panels: Mapping[str, Mapping[str, Estimate]], *, losses: Sequence[float]) -> Figure:
    """What taking attention away does to the loss: layers on x, last all layers at once, in a panel of its own scale.

    Args:
        panels: title -> (``special``, ``matched``, ``random`` or ``predicted`` -> change (layer + 1,), in nats); an estimate may lack the last.
        losses: of the untouched model, for each panel.
    """
    layers = max(len(e.value) for shown in panels.values() for e in shown.values()) - 1
    size, widths = (8.2, 2.9 * len(panels)), (layers, 1.5)
    figure, axes = plt.subplots(
        len(panels), 2, figsize=size, squeeze=False, layout="constrained", width_ratios=widths
    )
    for (each, together), (title, shown), loss in zip(axes, panels.items(), losses, strict=True):
        for number, (name, estimate) in enumerate(shown.items()):
            colour, marker, label = CHANGE_STYLES[name]
            shift = 0.17 * (number - (len(shown) - 1) / 2)
            look = {"color": COLOURS[colour], "marker": marker, "label": label}
            look["markeredgewidth"] = 1.8 if marker == "x" else 1
            intervals(each, np.arange(1, layers + 1) + shift, estimate[:layers], **look)
            last = estimate[layers:]
            intervals(together, np.full(len(last.value), shift), last, **look)
        for ax in (each, together):
            ax.axhline(0, **REFERENCE)
        on_layers(each, layers, ylabel="change of the loss (nats)")
        each.set_title(title, fontsize=10)
        together.set(xticks=[0], xticklabels=["all layers"], xlim=(-0.6, 0.6))
        together.grid(axis="x", visible=False)
        together.set_title(f"loss itself: {loss:.2f}", fontsize=9)
    legend_below(axes[0, 0], ncols=2)
    return figure


def at_once(runs: Mapping[str, Mapping[str, Any]]) -> Figure:
    """What taking attention away from all layers at once does to the loss, in a panel for each run.

    Args:
        runs: title -> a record's ``removed`` (:func:`helpers.chapters.no_op.sink.removed_as_dict`).
    """
    ways = {"the rest as it is": "as_left", "the rest sums to 1 again": "renormalised"}
    figure, axes = titled(
        runs, (3.1, 2.3), margin=(1.4, 0.4), size=9.5, sharex=True, sharey=True, layout="constrained"
    )
    for ax, removed in zip(axes.flat, runs.values(), strict=True):
        for number, what in enumerate(("special", "matched", "random")):
            colour, marker, label = CHANGE_STYLES[what]
            look = {"color": COLOURS[colour], "marker": marker, "label": label}
            for row, way in enumerate(ways.values()):
                change = Estimate.from_record(removed[way][what])[-1]
                intervals(
                    ax, row + 0.2 * (number - 1), change, across=True, **look | {"label": label if row else None}
                )
        in_rows(ax, ways)
        ax.axvline(0, **REFERENCE)
        ax.set_xlabel("change of the loss (nats)")
    legend_below(axes[0, 0], ncols=3)
    return figure
