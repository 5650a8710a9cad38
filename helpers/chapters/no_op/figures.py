"""Chapter 03: weights beside their gradients, norms, and what removing attention costs."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from helpers.engine.estimates import Estimate
from helpers.figures.look import (
    COLOURS,
    LABELS,
    MARKERS,
    REFERENCE,
    legend_below,
    legend_beside,
    logarithmic,
    on_layers,
    titled,
)
from helpers.figures.series import band, intervals
from helpers.figures.words import token_axes


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


def multiples(series: Mapping[str, Estimate], kinds: Sequence[str], *, reference: str, ylabel: str) -> Figure:
    """For each kind of token but the last a panel with a line for each series over the layers, on a logarithmic scale.

    Args:
        series: name -> estimate (layer, kind), multiples of the last kind's value.
        reference: what the line at 1 stands for.
    """
    figure, axes = titled([LABELS[kind] for kind in kinds[:-1]], (2.75, 3.1), size=10, sharey=True)
    styles = (("-", 1.0, None), ("--", 0.85, "white"), ("-.", 0.6, "white"), (":", 0.85, "white"))
    for number, (ax, kind) in enumerate(zip(axes.flat, kinds, strict=False)):
        for (name, estimate), (line, opacity, face) in zip(series.items(), styles, strict=False):
            x, shown = np.arange(1, len(estimate.value) + 1), estimate[:, number]
            colour = (COLOURS[kind], opacity)
            look = {"linestyle": line, "marker": MARKERS[kind], "markerfacecolor": face, "label": name}
            band(ax, x, shown, colour=colour, alpha=0.15, **look)
        ax.axhline(1, **REFERENCE)
        on_layers(ax, len(x))
        logarithmic(ax.yaxis)
    axes[0, 0].set_ylabel(ylabel)
    axes[0, 0].annotate(reference, (x[-1], 1), (0, 4), textcoords="offset points", ha="right", fontsize=8)
    legend_beside(axes[0, -1], fontsize=8)
    return figure


CHANGE_STYLES = {
    "special": ("cls", "o", "all of [CLS] and [SEP]"),
    "matched": ("broad", "s", "as much of [CLS] and [SEP]"),
    "random": ("other", "D", "as much of other tokens"),
    "predicted": ("stop", "x", "all of both, first order"),
}
"""Colour, marker and label of each way of taking attention away."""


def loss_changes(panels: Mapping[str, Mapping[str, Estimate]], *, loss: float) -> Figure:
    """What taking attention away does to the loss: layers on x, last all layers at once, in a panel of its own scale.

    Args:
        panels: title -> (``special``, ``matched``, ``random`` or ``predicted`` -> change (layer + 1,), in nats); an estimate may lack the last.
        loss: of the untouched model, for the right-hand scale in per cent.
    """
    layers = max(len(e.value) for shown in panels.values() for e in shown.values()) - 1
    size, widths = (8.2, 2.9 * len(panels)), (layers, 1.5)
    figure, axes = plt.subplots(
        len(panels), 2, figsize=size, squeeze=False, layout="constrained", width_ratios=widths
    )
    for (each, together), (title, shown) in zip(axes, panels.items(), strict=True):
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


def retreats(points: Mapping[str, tuple[float, Estimate]], *, xlabel: str, ylabel: str) -> Figure:
    """A labelled point with a vertical interval for each relation.

    Args:
        points: label -> (x, estimate).
    """
    figure, ax = plt.subplots(figsize=(6.4, 3.8))
    for label, (x, estimate) in points.items():
        intervals(ax, x, estimate, color=COLOURS["cls"])
        crowded = any(0 < other - x < 0.05 for other, _ in points.values())
        place = {"xytext": (-6 if crowded else 6, 3), "ha": "right" if crowded else "left"}
        ax.annotate(label, (x, float(estimate.value)), **place, textcoords="offset points", fontsize=8.5)
    ax.axhline(0, **REFERENCE)
    ax.set(xlabel=xlabel, ylabel=ylabel, xlim=(0, 1))
    return figure
