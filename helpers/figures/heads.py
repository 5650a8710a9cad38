"""Statistics of heads: over layers, on the layer × head grid, against baselines, as curves."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from helpers.engine.estimates import Estimate
from helpers.figures.look import COLOURS, LABELS, MARKERS


def heads_by_layer(
    series: Mapping[str, Estimate],
    *,
    ylabel: str,
    title: str = "",
    lines: Mapping[str, float] | None = None,
    ax: Axes | None = None,
    limits: tuple[float, float] | None = None,
) -> Figure:
    """A point for each head over its layer, and a line through the layers' means, for one or more statistics.

    Args:
        series: statistic -> estimate (layer, head); colour, marker and label go by the statistic's name.
        lines: label -> value of horizontal reference lines.
        limits: of the y axis.
    """
    ax = ax or plt.subplots()[1]
    for place, (name, estimate) in enumerate(series.items()):
        layers, heads = estimate.value.shape
        shift = 0.16 * (place - (len(series) - 1) / 2)
        jitter = np.linspace(-0.07, 0.07, heads)
        x = np.arange(1, layers + 1)[:, None] + shift + jitter
        ax.scatter(
            x,
            estimate.value,
            s=13,
            marker=MARKERS.get(name, "o"),
            color=COLOURS.get(name),
            alpha=0.6,
            linewidths=0,
        )
        ax.plot(
            np.arange(1, layers + 1) + shift,
            estimate.value.mean(-1),
            color=COLOURS.get(name),
            label=LABELS.get(name, name),
        )
    for number, (label, value) in enumerate((lines or {}).items()):
        ax.axhline(value, color="#222222", linestyle=("--", ":", "-.")[number % 3], linewidth=1, label=label)
    ax.set(xlabel="layer", ylabel=ylabel, xticks=range(1, layers + 1), title=title)
    if limits:
        ax.set_ylim(*limits)
    ax.grid(axis="x", visible=False)
    ax.legend()
    return ax.figure


def specialist_map(roles: Mapping[tuple[int, int], str], shape: tuple[int, int]) -> Figure:
    """The layer × head grid with the specialists in the colour of their role; layers on x.

    Args:
        roles: (layer, head) -> role, from 0.
        shape: numbers of layers and heads.
    """
    layers, heads = shape
    figure, ax = plt.subplots(figsize=(1.4 + 0.44 * layers + 1.8, 1 + 0.24 * heads))
    for layer, head in np.ndindex(shape):
        role = roles.get((layer, head))
        ax.add_patch(plt.Rectangle((layer + 0.55, head + 0.55), 0.9, 0.9, color=COLOURS[role] if role else "#eeeeee"))
    ax.set(xlim=(0.4, layers + 0.6), ylim=(heads + 0.6, 0.4), xlabel="layer", ylabel="head",
           xticks=range(1, layers + 1), yticks=range(1, heads + 1))  # fmt: skip
    ax.grid(visible=False)
    shown = [role for role in LABELS if role in roles.values()]
    handles = [
        Line2D([], [], marker="s", linestyle="", markersize=9, color=COLOURS[r], label=LABELS[r]) for r in shown
    ]
    handles.append(Line2D([], [], marker="s", linestyle="", markersize=9, color="#eeeeee", label="no specialist"))
    ax.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def relation_maps(accuracy: Mapping[str, NDArray], baselines: Mapping[str, float], *, columns: int = 5) -> Figure:
    """For each relation a layer × head grid of accuracies, on one scale; layers on x.

    Args:
        accuracy: relation -> [layer, head].
        baselines: relation -> accuracy of the best offset, shown in the title; heads above it get a dot.
    """
    layers, heads = next(iter(accuracy.values())).shape
    rows = -(-len(accuracy) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(1.95 * columns + 0.6, (1.0 + 0.115 * heads) * rows),
                                squeeze=False, sharex=True, sharey=True, layout="constrained")  # fmt: skip
    for ax in axes.ravel():
        ax.axis("off")
    for ax, (relation, values) in zip(axes.ravel(), accuracy.items(), strict=False):
        ax.axis("on")
        image = ax.imshow(
            values.T, cmap="Blues", vmin=0, vmax=1, aspect="auto", extent=(0.5, layers + 0.5, heads + 0.5, 0.5)
        )
        above = np.argwhere(values > baselines[relation]) + 1
        ax.plot(above[:, 0], above[:, 1], ".", color=COLOURS["first"], markersize=4)
        ax.set_title(f"{relation} ({baselines[relation]:.2f})", fontsize=9)
        ax.grid(visible=False)
        ax.set(xticks=range(1, layers + 1, max(1, layers // 6)), yticks=range(1, heads + 1, max(1, heads // 4)))
    for ax in axes[-1]:
        ax.set_xlabel("layer")
    for ax in axes[:, 0]:
        ax.set_ylabel("head")
    figure.colorbar(image, ax=axes, shrink=0.6, label="accuracy")
    return figure


def against_baseline(
    names: Sequence[str], values: Mapping[str, Sequence[Estimate | float]], *, xlabel: str = "accuracy",
    colours: Mapping[str, str] | None = None, chance: float | None = None,
) -> Figure:  # fmt: skip
    """One row a name, from top to bottom, with a point for each series and a bar for its interval.

    Args:
        values: series -> one value for each name; an :class:`Estimate` shows its interval, NaN nothing.
        chance: where to draw a vertical line.
    """
    figure, ax = plt.subplots(figsize=(6.6, 0.6 + 0.3 * len(names)))
    default = [COLOURS["first"], COLOURS["cls"], COLOURS["random"], COLOURS["other"]]
    markers = ["o", "|", "x", "D"]
    for number, (series, points) in enumerate(values.items()):
        colour = (colours or {}).get(series, default[number % len(default)])
        for row, point in enumerate(points):
            value = point.value if isinstance(point, Estimate) else point
            if isinstance(point, Estimate):
                ax.plot(
                    [point.low, point.high], [row, row], color=colour, linewidth=2.2, alpha=0.5, solid_capstyle="butt"
                )
            ax.plot(value, row, markers[number % len(markers)], color=colour, markersize=9 if markers[number % len(markers)] == "|" else 6,
                    markeredgewidth=2 if markers[number % len(markers)] in "|x" else 1, label=series if row == 0 else None)  # fmt: skip
    if chance is not None:
        ax.axvline(chance, color=COLOURS["self"], linewidth=1, linestyle=":")
    ax.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.5), xlim=(0, 1), xlabel=xlabel)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def labelled_grid(labels: Mapping[tuple[int, int], str], strength: NDArray, *, bar: str) -> Figure:
    """The layer × head grid with a word in each cell and a shade for how strongly it holds; layers on x.

    Args:
        labels: (layer, head) -> word, from 0; cells without one stay empty.
        strength: [layer, head], the shade.
        bar: what the shade means.
    """
    layers, heads = strength.shape
    figure, ax = plt.subplots(figsize=(1.6 + 0.92 * layers, 1 + 0.3 * heads))
    shown = np.where(
        [[(layer, head) in labels for head in range(heads)] for layer in range(layers)], strength, np.nan
    )
    image = ax.imshow(shown.T, cmap="Blues", vmin=0, aspect="auto", extent=(0.5, layers + 0.5, heads + 0.5, 0.5))
    for (layer, head), label in labels.items():
        dark = strength[layer, head] > 0.6 * np.nanmax(shown)
        ax.text(
            layer + 1, head + 1, label, ha="center", va="center", fontsize=8, color="white" if dark else "#222222"
        )
    ax.set(xticks=range(1, layers + 1), yticks=range(1, heads + 1), xlabel="layer", ylabel="head")
    ax.grid(visible=False)
    figure.colorbar(image, ax=ax, shrink=0.8, label=bar)
    return figure


PLACE_COLOURS = {"cls": COLOURS["cls"], "sep": COLOURS["sep"], "self": COLOURS["self"], "antecedent": COLOURS["stop"],
                 "later": "#56B4E9", "mention": "#E69F00", "partner": COLOURS["stop"], "other": "#d9d9d9"}  # fmt: skip
PLACE_LABELS = {"cls": "[CLS]", "sep": "[SEP]", "self": "the word itself", "antecedent": "antecedents",
                "later": "later in its chain", "mention": "other mentions", "partner": "its partner in the tree",
                "other": "other words"}  # fmt: skip


def where_to(rows: Mapping[str, Estimate], places: Sequence[str]) -> Figure:
    """Stacked bars: what share of attention goes where, from each kind of word.

    Args:
        rows: label -> shares of the places, which sum to 1; numbers of 3 % and more are written out.
    """
    figure, ax = plt.subplots(figsize=(7.6, 0.9 + 0.5 * len(rows)))
    for y, shares in enumerate(rows.values()):
        left = 0.0
        for place, share in zip(places, shares.value, strict=True):
            ax.barh(y, share, left=left, height=0.62, color=PLACE_COLOURS[place], edgecolor="white", linewidth=0.6,
                    label=PLACE_LABELS[place] if y == 0 else None)  # fmt: skip
            if share >= 0.03:
                ax.text(left + share / 2, y, f"{share:.0%}", ha="center", va="center", fontsize=8,
                        color="white" if place in ("cls", "self", "antecedent", "partner", "sep") else "#222222")  # fmt: skip
            left += share
    ax.set(
        yticks=range(len(rows)),
        yticklabels=rows,
        ylim=(len(rows) - 0.5, -0.5),
        xlim=(0, 1),
        xlabel="share of attention",
    )
    ax.grid(visible=False)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.05), fontsize=8)
    return figure


def head_grids(
    grids: Mapping[str, ArrayLike], *, bars: Mapping[str, str], columns: int = 2, signed: Sequence[str] = (),
    one_scale: bool = False,
) -> Figure:  # fmt: skip
    """Layer × head grids side by side, each with its own scale unless one is asked for; layers on x.

    Args:
        grids: title -> [layer, head].
        bars: title -> what the shade means.
        signed: titles of the grids with values of both signs, which are drawn from blue (negative) to red.
    """
    layers, heads = np.shape(next(iter(grids.values())))
    rows = -(-len(grids) // columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=((2.3 + 0.16 * layers) * columns, (1.1 + 0.14 * heads) * rows),
        squeeze=False,
        layout="constrained",
    )
    for ax, (title, values) in zip(axes.ravel(), grids.items(), strict=False):
        values = np.asarray(values)
        largest = max(np.abs(v).max() for v in (grids.values() if one_scale else [values]))
        scale = {"cmap": "RdBu_r", "vmin": -largest} if title in signed else {"cmap": "Blues", "vmin": 0}
        extent = (0.5, layers + 0.5, heads + 0.5, 0.5)
        image = ax.imshow(values.T, vmax=largest, aspect="auto", extent=extent, **scale)
        ax.set(xticks=range(1, layers + 1), yticks=range(1, heads + 1, 2), xlabel="layer", ylabel="head")
        ax.set_title(title, fontsize=9)
        ax.grid(visible=False)
        figure.colorbar(image, ax=ax, label=bars[title])
    return figure


def curves(
    x: Sequence[float | int], series: Mapping[str, Estimate], *, xlabel: str, ylabel: str, lines: Mapping[str, float] | None = None,
    logarithmic: bool = False, limits: tuple[float, float] = (0, 1),
) -> Figure:  # fmt: skip
    """A line with its interval as a band for each series, over one axis.

    Args:
        series: name -> estimate [x].
        lines: name -> value of horizontal reference lines.
        logarithmic: whether x doubles from step to step.
    """
    figure, ax = plt.subplots(figsize=(6.4, 3.6))
    colours = (COLOURS["cls"], COLOURS["first"], COLOURS["stop"], COLOURS["previous"])
    for (name, estimate), colour, marker in zip(series.items(), colours, "os^v", strict=False):
        ax.fill_between(x, estimate.low, estimate.high, color=colour, alpha=0.18, linewidth=0)
        ax.plot(x, estimate.value, color=colour, marker=marker, label=name)
    for number, (name, value) in enumerate((lines or {}).items()):
        ax.axhline(value, color=COLOURS["self"], linestyle=("--", ":", "-.")[number % 3], linewidth=1.2, label=name)
    if logarithmic:
        ax.set_xscale("log", base=2)
        ax.minorticks_off()
    ax.set_xticks(x, [f"{value:,g}" for value in x])
    ax.set(xlabel=xlabel, ylabel=ylabel, ylim=limits)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
