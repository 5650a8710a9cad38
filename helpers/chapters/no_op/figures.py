"""Chapter 03: weights beside their gradients, norms, and what removing attention costs."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from helpers.engine.estimates import Estimate
from helpers.figures.look import COLOURS, LABELS, MARKERS


def weights_and_gradient(
    weights: ArrayLike, gradient: ArrayLike, tokens: Sequence[str], *, title: str = ""
) -> Figure:
    """One head's map and, beside it, how the loss reacts to each of its weights; attending tokens down the side.

    Args:
        weights, gradient: [query, key]; the gradient has both signs and is drawn from blue (negative) to red.
    """
    weights, gradient = np.asarray(weights), np.asarray(gradient)
    count, largest = len(tokens), np.abs(gradient).max()
    size = 0.9 + 0.215 * count
    figure, axes = plt.subplots(1, 2, figsize=(2 * size + 1.5, size + 0.3), sharey=True, layout="constrained")
    panels = (
        (weights, {"cmap": "Blues", "vmin": 0, "vmax": weights.max()}, "attention weight"),
        (gradient, {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}, "∂ loss / ∂ weight (nats)"),
    )
    for ax, (matrix, scale, label) in zip(axes, panels, strict=True):
        image = ax.imshow(matrix, **scale)
        ax.set_xticks(range(count), tokens, rotation=90, fontsize=7.5)
        ax.set_yticks(range(count), tokens, fontsize=7.5)
        ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
        ax.grid(visible=False)
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
    shown = kinds[:-1]
    figure, axes = plt.subplots(1, len(shown), figsize=(2.75 * len(shown), 3.1), sharey=True, squeeze=False)
    styles = (("-", 1.0, True), ("--", 0.85, False), ("-.", 0.6, False), (":", 0.85, False))
    for number, (ax, kind) in enumerate(zip(axes[0], shown, strict=True)):
        for (name, estimate), (line, alpha, filled) in zip(series.items(), styles, strict=False):
            x = np.arange(1, len(estimate.value) + 1)
            ax.fill_between(
                x, estimate.low[:, number], estimate.high[:, number], color=COLOURS[kind], alpha=0.15, linewidth=0
            )
            ax.plot(
                x,
                estimate.value[:, number],
                line,
                color=COLOURS[kind],
                alpha=alpha,
                marker=MARKERS.get(kind, "o"),
                markerfacecolor=None if filled else "white",
                label=name,
            )
        ax.axhline(1, color=COLOURS["self"], linewidth=1, linestyle=":")
        ax.set(yscale="log", xticks=x, xlabel="layer")
        ax.set_title(LABELS[kind], fontsize=10)
        ax.grid(axis="x", visible=False)
    axes[0, 0].set_ylabel(ylabel)
    axes[0, 0].annotate(reference, (x[-1], 1), (0, 4), textcoords="offset points", ha="right", fontsize=8)
    axes[0, -1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    return figure


CHANGE_STYLES = {
    "special": ("cls", "o"),
    "matched": ("broad", "s"),
    "random": ("other", "D"),
    "predicted": ("stop", "x"),
}
CHANGE_LABELS = {
    "special": "all of [CLS] and [SEP]",
    "matched": "as much of [CLS] and [SEP]",
    "random": "as much of other tokens",
    "predicted": "all of both, first order",
}


def loss_changes(panels: Mapping[str, Mapping[str, Estimate]], *, loss: float) -> Figure:
    """What taking attention away does to the loss: layers on x, last all layers at once, in a panel of its own scale.

    Args:
        panels: title -> (``special``, ``matched``, ``random`` or ``predicted`` -> change (layer + 1,), in nats); an estimate may lack the last.
        loss: of the untouched model, for the right-hand scale in per cent.
    """
    layers = max(len(e.value) for shown in panels.values() for e in shown.values()) - 1
    figure, axes = plt.subplots(
        len(panels),
        2,
        figsize=(8.2, 2.9 * len(panels)),
        squeeze=False,
        layout="constrained",
        width_ratios=(layers, 1.5),
    )
    for row, (title, shown) in zip(axes, panels.items(), strict=True):
        for number, (name, estimate) in enumerate(shown.items()):
            colour, marker = CHANGE_STYLES[name]
            shift = 0.17 * (number - (len(shown) - 1) / 2)
            for ax, places in ((row[0], range(layers)), (row[1], range(layers, len(estimate.value)))):
                for place in places:
                    x = (place + 1 if ax is row[0] else 0) + shift
                    ax.plot(
                        [x, x],
                        [estimate.low[place], estimate.high[place]],
                        color=COLOURS[colour],
                        linewidth=2.2,
                        alpha=0.5,
                    )
                    ax.plot(
                        x,
                        estimate.value[place],
                        marker,
                        color=COLOURS[colour],
                        markersize=6,
                        markeredgewidth=1.8 if marker == "x" else 1,
                        label=CHANGE_LABELS[name] if place == 0 else None,
                    )
        for ax in row:
            ax.axhline(0, color=COLOURS["self"], linewidth=1, linestyle=":")
            ax.grid(axis="x", visible=False)
        row[0].set(xticks=range(1, layers + 1), xlabel="layer", ylabel="change of the loss (nats)")
        row[0].set_title(title, fontsize=10)
        row[1].set(xticks=[0], xticklabels=["all layers"], xlim=(-0.6, 0.6))
        row[1].set_title(f"loss itself: {loss:.2f}", fontsize=9)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    return figure


def retreats(points: Mapping[str, tuple[float, Estimate]], *, xlabel: str, ylabel: str) -> Figure:
    """A labelled point with a vertical interval for each relation.

    Args:
        points: label -> (x, estimate).
    """
    figure, ax = plt.subplots(figsize=(6.4, 3.8))
    for label, (x, estimate) in points.items():
        ax.plot([x, x], [estimate.low, estimate.high], color=COLOURS["cls"], linewidth=2.2, alpha=0.5)
        ax.plot(x, estimate.value, "o", color=COLOURS["cls"], markersize=6)
        crowded = any(0 < other - x < 0.05 for other, _ in points.values())
        ax.annotate(
            label,
            (x, float(estimate.value)),
            (-6 if crowded else 6, 3),
            textcoords="offset points",
            fontsize=8.5,
            ha="right" if crowded else "left",
        )
    ax.axhline(0, color=COLOURS["self"], linewidth=1, linestyle=":")
    ax.set(xlabel=xlabel, ylabel=ylabel, xlim=(0, 1))
    return figure
