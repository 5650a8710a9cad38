"""Probes of the layers: where scores are gained, how layers are mixed, single cases layer by layer."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from helpers.engine.estimates import Estimate
from helpers.figures.look import COLOURS, panels

WEIGHT_COLOUR, GAIN_COLOUR = "#2F6BA8", "#7B3294"
RIGHT_COLOUR, WRONG_COLOUR = "#0072B2", "#E69F00"


def layers_of_tasks(
    rows: Mapping[str, tuple[Estimate, Estimate | None]], *, layers: int, notes: Mapping[str, str] | None = None
) -> Figure:
    """Two bars for each task: centre of gravity of the mixing weights, and expected layer of the gains.

    Args:
        rows: task -> (centre of gravity, expected layer); None where the layers bring no certain gain.
        layers: of the encoder; the axis runs from 0, the embeddings, to it.
        notes: task -> text beside its name.
    """
    figure, (ax,) = panels(1, width=7.2, height=0.62 * len(rows) + 1.3)
    for place, pair in enumerate(rows.values()):
        for shift, estimate, face, edge in (
            (-0.19, pair[0], WEIGHT_COLOUR, WEIGHT_COLOUR),
            (0.19, pair[1], "white", GAIN_COLOUR),
        ):
            y = place + shift
            if estimate is None:
                ax.text(0.05, y, "no certain gain", va="center", fontsize=8, color=GAIN_COLOUR, style="italic")
                continue
            ax.barh(y, estimate.value, 0.34, facecolor=face, edgecolor=edge, linewidth=1.4)
            low, high = np.clip((estimate.low, estimate.high), 0, layers)
            ax.plot([low, high], [y, y], color="#222222", linewidth=1.3, solid_capstyle="butt")
            ax.text(max(high, estimate.value) + 0.012 * layers, y, f"{estimate.value:.2f}", va="center", fontsize=8.5)
    names = [f"{task}\n{(notes or {})[task]}" if task in (notes or {}) else task for task in rows]
    ax.set_yticks(range(len(rows)), names)
    ax.set(
        xlabel="layer (0: embeddings)",
        xlim=(0, 1.08 * layers),
        ylim=(len(rows) - 0.45, -0.55),
        xticks=range(layers + 1),
    )
    ax.grid(axis="y", visible=False)
    handles = [
        ax.barh(-9, 0, facecolor=WEIGHT_COLOUR, label="centre of gravity"),
        ax.barh(-9, 0, facecolor="white", edgecolor=GAIN_COLOUR, linewidth=1.4, label="expected layer"),
    ]
    ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def _tasks(count: int, width: float, height: float, *, xlabel: str, ylabel: str) -> tuple[Figure, list[Axes]]:
    """So many panels, two in a row, with labels at the outer ones only."""
    columns = min(2, count)
    figure, axes = panels(columns, rows=-(-count // columns), width=width, height=height)
    grid = np.reshape(axes, (-1, columns))
    for ax in grid.ravel()[count:]:
        ax.set_visible(False)
    for ax in grid[-1]:
        ax.set_xlabel(xlabel)
    for ax in grid[:, 0]:
        ax.set_ylabel(ylabel)
    return figure, list(grid.ravel()[:count])


def weights_and_gains(rows: Mapping[str, tuple[ArrayLike, Estimate]]) -> Figure:
    """For each task a panel with the mixing weights as filled bars and the gains of the layers as outlined ones.

    Args:
        rows: task -> (weights [seed, layer], gains of the layers 1 to L). The bar of a weight is the mean over the seeds, dots
            are the seeds. Gains are divided by their sum, so that they add up to 1; negative ones hang down. Where the sum
            is not above 0 there is nothing to share, and no bar.
    """
    figure, axes = _tasks(len(rows), 3.75, 2.45, xlabel="layer (0: embeddings)", ylabel="weight, or share")
    for ax, (task, (weights, gains)) in zip(axes, rows.items(), strict=True):
        weights = np.asarray(weights)
        layers = np.arange(weights.shape[1])
        ax.bar(layers, weights.mean(0), 0.8, color=WEIGHT_COLOUR, alpha=0.85, label="mixing weight")
        for seed in weights:
            ax.plot(layers, seed, ".", color="#12304f", markersize=3.5)
        total = gains.value.sum()
        total = total if total > 0 else np.nan
        ax.bar(
            layers[1:],
            gains.value / total,
            0.5,
            facecolor="none",
            edgecolor=GAIN_COLOUR,
            linewidth=1.5,
            label="share of the gain",
        )
        ax.vlines(layers[1:], gains.low / total, gains.high / total, color=GAIN_COLOUR, linewidth=1)
        ax.axhline(0, color="#555555", linewidth=0.8)
        ax.set(title=task, xticks=layers)
        ax.set_ylim(*np.clip(ax.get_ylim(), -0.8, 1.3))
        ax.grid(axis="x", visible=False)
    axes[0].legend(fontsize=8)
    return figure


def prefix_scores(
    rows: Mapping[str, tuple[Estimate, Estimate, Mapping[str, float]]],
    *,
    names: tuple[str, str],
    ylabel: str = "accuracy",
) -> Figure:
    """Scores of probes that read the layers 0 to l, over l, with intervals; a panel for each task.

    Args:
        rows: task -> (ours, the control's, baseline -> value as a line).
        names: of the two.
    """
    figure, axes = _tasks(len(rows), 3.75, 2.6, xlabel="layers 0 to …", ylabel=ylabel)
    for ax, (task, (ours, control, lines)) in zip(axes, rows.items(), strict=True):
        for estimate, name, colour, style, marker in (
            (ours, names[0], COLOURS["minilm"], "-", "o"),
            (control, names[1], COLOURS["random"], "--", "s"),
        ):
            x = np.arange(len(estimate.value))
            ax.fill_between(x, estimate.low, estimate.high, color=colour, alpha=0.18, linewidth=0)
            ax.plot(x, estimate.value, style, color=colour, marker=marker, markersize=4, label=name)
        for (name, value), dashes in zip(lines.items(), (":", "-."), strict=False):
            ax.axhline(value, color="#555555", linestyle=dashes, linewidth=1.1, label=name)
        ax.set(title=task, xticks=range(len(ours.value)))
        ax.grid(axis="x", visible=False)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8.5)
    return figure


def cases_by_layer(cases: Sequence[Any], *, title: str = "") -> Figure:
    """A panel for each target of a sentence: probabilities of the right label and of one wrong label, by layers read.

    Args:
        cases: with ``task``, ``words``, ``label``, ``rival`` and the probabilities ``right`` and ``wrong`` [prefix], such as
            :class:`helpers.chapters.layer_semantics.measures.Case`.
        title: over all panels.
    """
    width = 7.4 / min(2, len(cases))
    figure, axes = _tasks(len(cases), width, 2.15, xlabel="layers 0 to …", ylabel="probability")
    for ax, one in zip(axes, cases, strict=True):
        _case(ax, one)
    if title:
        figure.suptitle(fill(title, 100), fontsize=9.5, x=0.01, ha="left")
    return figure


def _case(ax: Axes, one: Any) -> None:
    layers = np.arange(len(one.right))
    for shift, values, colour, hatch, name in (
        (-0.2, one.right, RIGHT_COLOUR, None, f"{one.label} (right)"),
        (0.2, one.wrong, WRONG_COLOUR, "///", one.rival),
    ):
        ax.bar(layers + shift, values, 0.38, color=colour, hatch=hatch, edgecolor="white", linewidth=0.4, label=name)
    words = one.words if len(one.words) <= 44 else one.words[:41] + "…"
    ax.set_title(f"{one.task}: {words}", fontsize=8.5)
    ax.set(xticks=layers, ylim=(0, 1.28), yticks=(0, 0.5, 1))
    ax.grid(axis="x", visible=False)
    ax.legend(fontsize=7.5, ncols=2, loc="upper left", borderaxespad=0.1)


def label_changes(rows: Mapping[str, tuple[float, float, int]], *, xlabel: str, names: tuple[str, str]) -> Figure:
    """For each label two values joined by a line, say at layer 0 and at the top; sorted by the change.

    Args:
        rows: label -> (first, second, number of targets).
        names: of the two values.
    """
    order = sorted(rows, key=lambda label: rows[label][1] - rows[label][0])
    figure, (ax,) = panels(1, width=6.6, height=0.24 * len(rows) + 1.1)
    for y, label in enumerate(order):
        first, second, _ = rows[label]
        ax.plot([first, second], [y, y], color="#aaaaaa", linewidth=1.6, zorder=1)
    for number, (name, colour, marker) in enumerate(
        zip(names, (COLOURS["other"], COLOURS["minilm"]), "so", strict=True)
    ):
        ax.scatter(
            [rows[label][number] for label in order],
            range(len(order)),
            color=colour,
            marker=marker,
            s=28,
            label=name,
            zorder=2,
        )
    ax.set_yticks(range(len(order)), [f"{label} ({rows[label][2]})" for label in order])
    ax.set(xlabel=xlabel, xlim=(-0.02, 1.02))
    ax.grid(axis="y", visible=False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure
