"""Probes of the layers: where scores are gained, how layers are mixed, single cases layer by layer."""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from helpers.engine.estimates import Estimate
from helpers.figures.look import COLOURS, INK, Number, in_rows, legend_below, outer_labels, panels, titled
from helpers.figures.series import band, references

WEIGHT_COLOUR, GAIN_COLOUR = COLOURS["diagonal"], "#7B3294"


def layers_of_tasks(rows: Mapping[str, tuple[Estimate, Estimate | None]], *, layers: int) -> Figure:
    """Two bars for each task: centre of gravity of the mixing weights, and expected layer of the gains.

    Args:
        rows: task -> (centre of gravity, expected layer); None where the layers bring no certain gain.
        layers: of the encoder; the axis runs from 0, the embeddings, to it.
    """
    figure, (ax,) = panels(1, width=7.2, height=0.62 * len(rows) + 1.3)
    looks = (
        (-0.19, {"facecolor": WEIGHT_COLOUR, "edgecolor": WEIGHT_COLOUR}, "centre of gravity"),
        (0.19, {"facecolor": "white", "edgecolor": GAIN_COLOUR}, "expected layer"),
    )
    for number, (shift, look, name) in enumerate(looks):
        ax.barh(-9, 0, **look, linewidth=1.4, label=name)
        for place, pair in enumerate(rows.values()):
            estimate, y = pair[number], place + shift
            if estimate is None:
                ax.text(0.05, y, "no certain gain", va="center", fontsize=8, color=GAIN_COLOUR, style="italic")
                continue
            ax.barh(y, estimate.value, 0.34, **look, linewidth=1.4)
            low, high = np.clip((estimate.low, estimate.high), 0, layers)
            ax.plot([low, high], [y, y], color=INK, linewidth=1.3, solid_capstyle="butt")
            end = max(high, estimate.value) + 0.012 * layers
            ax.text(end, y, f"{estimate.value:.2f}", va="center", fontsize=8.5)
    in_rows(ax, rows, margin=0.55)
    ax.set(xlabel="layer (0: embeddings)", xlim=(0, 1.08 * layers), xticks=range(layers + 1))
    ax.grid(axis="y", visible=False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def _tasks(
    titles: Iterable[str], each: tuple[Number, Number], xlabel: str, ylabel: str, *, size: Number = 10.5
) -> tuple[Figure, NDArray]:
    """A panel for each task, two in a row, with labels at the outer ones only."""
    figure, axes = titled(titles, each, columns=2, size=size)
    outer_labels(axes, xlabel, ylabel)
    for ax in axes.flat:
        ax.grid(axis="x", visible=False)
    return figure, axes.ravel()


def weights_and_gains(rows: Mapping[str, tuple[ArrayLike, Estimate]]) -> Figure:
    """For each task a panel with the mixing weights as filled bars and the gains of the layers as outlined ones.

    Args:
        rows: task -> (weights [seed, layer], gains of the layers 1 to L). The bar of a weight is the mean over the seeds, dots
            are the seeds. Gains are divided by their sum, so that they add up to 1; negative ones hang down. Where the sum
            is not above 0 there is nothing to share, and no bar.
    """
    figure, axes = _tasks(rows, (3.75, 2.45), "layer (0: embeddings)", "weight, or share")
    for ax, (weights, gains) in zip(axes, rows.values(), strict=False):
        weights = np.asarray(weights)
        layers = np.arange(weights.shape[1])
        ax.bar(layers, weights.mean(0), 0.8, color=WEIGHT_COLOUR, alpha=0.85, label="mixing weight")
        ax.plot(layers, weights.T, ".", color="#12304f", markersize=3.5)
        total = gains.value.sum()
        total = total if total > 0 else np.nan
        look = {"facecolor": "none", "edgecolor": GAIN_COLOUR, "linewidth": 1.5}
        ax.bar(layers[1:], gains.value / total, 0.5, **look, label="share of the gain")
        ax.vlines(layers[1:], gains.low / total, gains.high / total, color=GAIN_COLOUR, linewidth=1)
        ax.axhline(0, color=COLOURS["self"], linewidth=0.8)
        ax.set_xticks(layers)
        ax.set_ylim(*np.clip(ax.get_ylim(), -0.8, 1.3))
    axes[0].legend(fontsize=8)
    return figure


def prefix_scores(
    rows: Mapping[str, tuple[Estimate, Estimate, Mapping[str, float]]], *, names: tuple[str, str]
) -> Figure:
    """Scores of probes that read the layers 0 to l, over l, with intervals; a panel for each task.

    Args:
        rows: task -> (ours, the control's, baseline -> value as a line).
        names: of the two.
    """
    figure, axes = _tasks(rows, (3.75, 2.6), "layers 0 to …", "accuracy")
    looks = (("minilm", "-", "o"), ("random", "--", "s"))
    for ax, (*pair, lines) in zip(axes, rows.values(), strict=False):
        for estimate, name, (colour, line, marker) in zip(pair, names, looks, strict=True):
            look = {"colour": COLOURS[colour], "linestyle": line, "marker": marker, "markersize": 4}
            band(ax, range(len(estimate.value)), estimate, label=name, **look)
        for (name, value), dashes in zip(lines.items(), (":", "-."), strict=False):
            references(ax, {name: value}, linestyle=dashes, linewidth=1.1)
        ax.set_xticks(range(len(pair[0].value)))
    legend_below(axes[0], loc="outside upper center", ncols=4, fontsize=8.5)
    return figure


def cases_by_layer(cases: Sequence[Any], *, title: str = "") -> Figure:
    """A panel for each target of a sentence: probabilities of the right label and of one wrong label, by layers read.

    Args:
        cases: with ``task``, ``words``, ``label``, ``rival`` and the probabilities ``right`` and ``wrong`` [prefix], such as
            :class:`helpers.chapters.layer_semantics.measures.Case`.
        title: over all panels.
    """
    titles = [f"{c.task}: {c.words if len(c.words) <= 44 else c.words[:41] + '…'}" for c in cases]
    figure, axes = _tasks(titles, (7.4 / min(2, len(cases)), 2.15), "layers 0 to …", "probability", size=8.5)
    for ax, one in zip(axes, cases, strict=False):
        layers = np.arange(len(one.right))
        look = {"edgecolor": "white", "linewidth": 0.4}
        ax.bar(layers - 0.2, one.right, 0.38, color=COLOURS["second"], label=f"{one.label} (right)", **look)
        ax.bar(layers + 0.2, one.wrong, 0.38, color=COLOURS["next"], label=one.rival, hatch="///", **look)
        ax.set(xticks=layers, ylim=(0, 1.28), yticks=(0, 0.5, 1))
        ax.legend(fontsize=7.5, ncols=2, loc="upper left", borderaxespad=0.1)
    if title:
        figure.suptitle(fill(title, 100), fontsize=9.5, x=0.01, ha="left")
    return figure


def label_changes(rows: Mapping[str, tuple[float, float, int]], *, names: tuple[str, str]) -> Figure:
    """For each label two accuracies joined by a line, say at layer 0 and at the top; sorted by the change.

    Args:
        rows: label -> (first, second, number of targets).
        names: of the two values.
    """
    order = sorted(rows, key=lambda label: rows[label][1] - rows[label][0])
    pairs = np.array([rows[label][:2] for label in order]).T
    y = np.arange(len(order))
    figure, (ax,) = panels(1, width=6.6, height=0.24 * len(rows) + 1.1)
    ax.plot(pairs, [y, y], color="#aaaaaa", linewidth=1.6, zorder=1)
    for name, values, colour, marker in zip(names, pairs, ("other", "minilm"), "so", strict=True):
        ax.scatter(values, y, color=COLOURS[colour], marker=marker, s=28, label=name, zorder=2)
    ax.set_yticks(y, [f"{label} ({rows[label][2]})" for label in order])
    ax.set(xlabel="accuracy", xlim=(-0.02, 1.02))
    ax.grid(axis="y", visible=False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure
