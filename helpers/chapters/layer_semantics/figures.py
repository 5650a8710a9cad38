"""Probes of the layers: where scores are gained, how layers are mixed, single cases layer by layer."""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from helpers import plots, views
from helpers.plots import CENTRED, COLOURS, INK, MARKERS, REFERENCE, Levels, Names, Series, Values
from helpers.stats import Estimate

WEIGHT_COLOUR, GAIN_COLOUR = COLOURS["diagonal"], "#7B3294"
NETWORKS = [{"color": COLOURS[n], "marker": MARKERS[n], "markersize": 5} for n in ("minilm", "random", "shuffled")]
"""Looks of the network that is measured, and of its controls."""


def tags_by_layer(networks: Values, words: Names, right: Names) -> Figure:
    """A sentence below and the layers above it, a panel for each network: in each cell the label that wins there, wrong ones hatched.

    Args:
        networks: name -> labels that win [layer, word]; layer 0, the embeddings, is the lowest row.
        right: the right label of each word.
    """
    layers = len(next(iter(networks.values())))
    figure, axes = plots.titled(networks, (8.4, 0.27 * layers + 0.75), columns=1, size=10)
    good, bad = {"facecolor": "#dbe7f3"}, {"facecolor": COLOURS["next"], "hatch": "///"}
    for ax, labels in zip(axes[:, 0], networks.values(), strict=True):
        for (layer, place), label in np.ndenumerate(np.asarray(labels)):
            look = good if label == right[place] else bad
            ax.add_patch(Rectangle((place - 0.47, layer - 0.42), 0.94, 0.84, edgecolor="white", linewidth=0, **look))
            plain = {"facecolor": look["facecolor"], "edgecolor": "none", "pad": 0.6}
            ax.text(place, layer, label, fontsize=7.5, color=INK, bbox=plain, **CENTRED)
        ax.set(xlim=(-0.55, len(words) - 0.45), ylim=(-0.6, layers - 0.4), ylabel="layers 0 to …")
        ax.set_xticks(range(len(words)), words, fontsize=9)
        ax.set_yticks(range(layers))
        ax.tick_params(length=0)
        ax.grid(visible=False)
    for label, look in {"right": good, "wrong": bad}.items():
        axes[0, 0].add_patch(Rectangle((0, 0), 0, 0, edgecolor="white", linewidth=0, label=label, **look))
    plots.legend_below(axes[0, 0], loc="outside upper right", ncols=2, fontsize=8.5)
    return figure


def sentence_to_touch(networks: Values, words: Names, right: Names) -> views.InteractiveFigure:
    """A sentence with the label that wins for each word, a step of a slider for each layer; arguments as for :func:`tags_by_layer`."""

    def line(name: str, labels: Names) -> list[views.Word]:
        said = [f"{name}:"]
        for word, label, true in zip(words, labels, right, strict=True):
            said.append((f"{word} {label}", views.GOOD) if label == true else (f"{word} {label} ✗", views.BAD))
        return said

    layers = range(len(next(iter(networks.values()))))
    pieces = [[line(name, labels[layer]) for name, labels in networks.items()] for layer in layers]
    alt = f"The label that wins for each of {len(words)} words, after each of {len(layers) - 1} layers."
    return views.frames(layers, [f"layer {layer}" for layer in layers], pieces, alt=alt)


def layers_of_tasks(
    measures: Mapping[str, Mapping[str, Mapping[str, Estimate | None]]], *, layers: Mapping[str, int], even: Levels
) -> Figure:
    """A panel for each measure, two in a row; in it a row for each task, a point with its interval for each network.

    Args:
        measures: title -> network -> task -> layer; None where the layers bring no certain gain, and nothing is drawn. The first
            network is ours, the others are controls.
        layers: title -> of the encoder; the axis runs from 0, the embeddings, to it.
        even: title -> where a measure lies that prefers no layer, drawn as a line.
    """
    tasks = list(next(iter(next(iter(measures.values())).values())))
    figure, axes = plots.titled(measures, (3.9, 0.5 * len(tasks) + 1.0), columns=2, size=10)
    for ax, (title, networks) in zip(axes.flat, measures.items(), strict=False):
        most, ours = float(layers[title]), next(iter(networks.values()))
        series = {name: [e.within(0.0, most) if e else np.nan for e in of.values()] for name, of in networks.items()}
        plots.dot_rows(ax, tasks, series, NETWORKS, apart=0.22, margin=0.55)
        for y in [y for y, estimate in enumerate(ours.values()) if estimate is None]:
            text = {"fontsize": 8, "style": "italic", "color": NETWORKS[0]["color"]}
            ax.text(0.1, y, "no certain gain", va="center", **text)
        if title in even:
            ax.axvline(even[title], **REFERENCE)
        ticks = range(0, layers[title] + 1, 1 if layers[title] < 9 else 2)
        ax.set(xlabel="layer (0: embeddings)", xlim=(-0.1, layers[title] + 0.1), xticks=ticks)
        ax.grid(axis="y", visible=False)
    plots.legend_below(axes[0, 0], loc="outside upper center", ncols=3, fontsize=8.5)
    return figure


def steps_of_tasks(runs: Mapping[str, Mapping[str, Series]]) -> Figure:
    """A panel for each run; in it a row for each step from a task to a later one, a point with its interval for each network.

    Args:
        runs: title -> network -> step -> layers. The first network is the trained one, the others are controls.
    """
    names = list(dict.fromkeys(name for run in runs.values() for of in run.values() for name in of))
    look = {"columns": 3, "margin": (1.4, 0.4), "size": 9.5, "sharex": True, "sharey": True}
    figure, axes = plots.titled(runs, (2.75, 0.7 * len(names) + 0.7), **look)
    for ax, run in zip(axes.flat, runs.values(), strict=False):
        series = {network: [of.get(name) for name in names] for network, of in run.items()}
        plots.dot_rows(ax, names, series, NETWORKS, apart=0.22, margin=0.55, line=0)
        ax.set_xlabel("layers later")
        ax.grid(axis="y", visible=False)
    plots.legend_below(axes[0, 0], ncols=len(NETWORKS), fontsize=8.5)
    return figure


def _tasks(
    titles: Iterable[str], each: tuple[float, float], xlabel: str, ylabel: str, *, size: float = 10.5
) -> tuple[Figure, NDArray]:
    """A panel for each task, two in a row, with labels at the outer ones only."""
    figure, axes = plots.titled(titles, each, columns=2, size=size)
    plots.outer_labels(axes, xlabel, ylabel)
    for ax in axes.flat:
        ax.grid(axis="x", visible=False)
    return figure, axes.ravel()


def weights_and_gains(rows: Mapping[str, tuple[ArrayLike, Estimate, ArrayLike]]) -> Figure:
    """For each task a panel with the mixing weights as filled bars and the gains of the layers as outlined ones.

    Args:
        rows: task -> (weights [seed, layer], gains of the layers 1 to L, weights in the random network, drawn as diamonds). The bar of a weight is the mean over the seeds, dots
            are the seeds. Gains are divided by their sum, so that they add up to 1; negative ones hang down. Where the sum
            is not above 0 there is nothing to share, and no bar.
    """
    figure, axes = _tasks(rows, (3.75, 2.45), "layer (0: embeddings)", "weight, or share")
    for ax, (weights, gains, random) in zip(axes, rows.values(), strict=False):
        weights = np.asarray(weights)
        layers = np.arange(weights.shape[1])
        ax.bar(layers, weights.mean(0), 0.8, color=WEIGHT_COLOUR, alpha=0.85, label="mixing weight")
        ax.plot(layers, weights.T, ".", color="#12304f", markersize=3.5)
        blank = {"color": COLOURS["random"], "marker": MARKERS["random"], "markerfacecolor": "white"}
        ax.plot(layers, np.mean(random, 0), linestyle="", **blank, label="mixing weight, random network")
        total = gains.value.sum()
        total = total if total > 0 else np.nan
        look = {"facecolor": "none", "edgecolor": GAIN_COLOUR, "linewidth": 1.5}
        ax.bar(layers[1:], gains.value / total, 0.5, **look, label="share of the gain")
        ax.vlines(layers[1:], gains.low / total, gains.high / total, color=GAIN_COLOUR, linewidth=1)
        ax.axhline(0, color=COLOURS["self"], linewidth=0.8)
        ax.set_xticks(layers)
        ax.set_ylim(*np.clip(ax.get_ylim(), -0.8, 1.3))
    plots.legend_below(axes[0], loc="outside upper center", ncols=3, fontsize=8.5)
    return figure


def prefix_scores(rows: Mapping[str, tuple[Series, Levels]]) -> Figure:
    """Scores of probes that read the layers 0 to l, over l, with intervals; a panel for each task.

    Args:
        rows: task -> (network -> scores, ours first; baseline -> value as a line).
    """
    figure, axes = _tasks(rows, (3.75, 2.6), "layers 0 to …", "accuracy")
    for ax, (networks, lines) in zip(axes, rows.values(), strict=False):
        for (name, estimate), look, line in zip(networks.items(), NETWORKS, ("-", "--", "-."), strict=False):
            style = {"colour": look["color"], "linestyle": line, "marker": look["marker"], "markersize": 4}
            plots.band(ax, range(len(estimate.value)), estimate, label=name, **style)
        for (name, value), dashes in zip(lines.items(), (":", "-."), strict=False):
            plots.references(ax, {name: value}, linestyle=dashes, linewidth=1.1)
        ax.set_xticks(range(len(estimate.value)))
    plots.legend_below(axes[0], loc="outside upper center", ncols=5, fontsize=8.5)
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


def label_changes(rows: Mapping[str, tuple[float, float, float, int]], *, names: tuple[str, str, str]) -> Figure:
    """For each label two accuracies joined by a line, say at layer 0 and at the top, and a control's; sorted by the change.

    Args:
        rows: label -> (first, second, the control's second, number of targets).
        names: of the three values.
    """
    order = sorted(rows, key=lambda label: rows[label][1] - rows[label][0])
    values = np.array([rows[label][:3] for label in order]).T
    y = np.arange(len(order))
    figure, (ax,) = plots.panels(1, width=6.6, height=0.24 * len(rows) + 1.1)
    ax.plot(values[:2], [y, y], color="#aaaaaa", linewidth=1.6, zorder=1)
    for name, each, colour, marker in zip(names, values, ("other", "minilm", "random"), "sox", strict=True):
        ax.scatter(each, y, color=COLOURS[colour], marker=marker, s=28, label=name, zorder=2)
    ax.set_yticks(y, [f"{label} ({rows[label][3]})" for label in order])
    ax.set(xlabel="accuracy", xlim=(-0.02, 1.02))
    ax.grid(axis="y", visible=False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return figure
