"""Rows with intervals, points and bands over layers, stacked shares."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

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
            x, estimate.value, s=13, marker=MARKERS.get(name, "o"), color=COLOURS.get(name), alpha=0.6, linewidths=0
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


def against_baseline(
    names: Sequence[str],
    values: Mapping[str, Sequence[Estimate | float]],
    *,
    xlabel: str = "accuracy",
    colours: Mapping[str, str] | None = None,
    chance: float | None = None,
) -> Figure:
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
            ax.plot(
                value,
                row,
                markers[number % len(markers)],
                color=colour,
                markersize=9 if markers[number % len(markers)] == "|" else 6,
                markeredgewidth=2 if markers[number % len(markers)] in "|x" else 1,
                label=series if row == 0 else None,
            )
    if chance is not None:
        ax.axvline(chance, color=COLOURS["self"], linewidth=1, linestyle=":")
    ax.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.5), xlim=(0, 1), xlabel=xlabel)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


PLACE_COLOURS = {
    "cls": COLOURS["cls"],
    "sep": COLOURS["sep"],
    "self": COLOURS["self"],
    "antecedent": COLOURS["stop"],
    "later": "#56B4E9",
    "mention": "#E69F00",
    "partner": COLOURS["stop"],
    "other": "#d9d9d9",
}


PLACE_LABELS = {
    "cls": "[CLS]",
    "sep": "[SEP]",
    "self": "the word itself",
    "antecedent": "antecedents",
    "later": "later in its chain",
    "mention": "other mentions",
    "partner": "its partner in the tree",
    "other": "other words",
}


def where_to(rows: Mapping[str, Estimate], places: Sequence[str]) -> Figure:
    """Stacked bars: what share of attention goes where, from each kind of word.

    Args:
        rows: label -> shares of the places, which sum to 1; numbers of 3 % and more are written out.
    """
    figure, ax = plt.subplots(figsize=(7.6, 0.9 + 0.5 * len(rows)))
    for y, shares in enumerate(rows.values()):
        left = 0.0
        for place, share in zip(places, shares.value, strict=True):
            ax.barh(
                y,
                share,
                left=left,
                height=0.62,
                color=PLACE_COLOURS[place],
                edgecolor="white",
                linewidth=0.6,
                label=PLACE_LABELS[place] if y == 0 else None,
            )
            if share >= 0.03:
                ax.text(
                    left + share / 2,
                    y,
                    f"{share:.0%}",
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if place in ("cls", "self", "antecedent", "partner", "sep") else "#222222",
                )
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


def curves(
    x: Sequence[float | int],
    series: Mapping[str, Estimate],
    *,
    xlabel: str,
    ylabel: str,
    lines: Mapping[str, float] | None = None,
    logarithmic: bool = False,
    limits: tuple[float, float] = (0, 1),
) -> Figure:
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


# dark to light, so that the order can be read in grey; the last three have no colour because there is nothing to say
VERDICT_STYLES = {
    "holds": {"facecolor": "#1B4965", "edgecolor": "#1B4965"},
    "in part": {"facecolor": "#8FB8D0", "edgecolor": "#1B4965"},
    "fails": {"facecolor": "#F3E3C3", "edgecolor": "#8A6D2F", "hatch": "///"},
    "not comparable": {"facecolor": "white", "edgecolor": "#999999"},
    "no number": {"facecolor": "white", "edgecolor": "#999999", "linestyle": "--"},
    "not recorded yet": {"facecolor": "white", "edgecolor": "#999999", "linestyle": ":"},
}


def verdict_bars(counts: Mapping[str, Mapping[str, int]], *, order: Sequence[str] = tuple(VERDICT_STYLES)) -> Figure:
    """A bar for each chapter, cut by verdict, with the counts written in.

    Args:
        counts: name of the chapter -> verdict -> number of findings.
        order: of the verdicts, from the left; those that never occur are left out.
    """
    order = [verdict for verdict in order if any(found.get(verdict) for found in counts.values())]
    figure, ax = plt.subplots(figsize=(7.2, 0.36 * len(counts) + 1.1))
    for row, found in enumerate(counts.values()):
        left = 0
        for verdict in order:
            width = found.get(verdict, 0)
            if not width:
                continue
            ax.barh(row, width, 0.72, left, linewidth=0.8, **VERDICT_STYLES[verdict])
            dark = verdict == "holds"
            ax.text(
                left + width / 2,
                row,
                str(width),
                ha="center",
                va="center",
                fontsize=8.5,
                color="white" if dark else "#222222",
                bbox=None
                if dark
                else {"facecolor": VERDICT_STYLES[verdict]["facecolor"], "edgecolor": "none", "pad": 1.2},
            )
            left += width
    ax.set_yticks(range(len(counts)), counts)
    ax.invert_yaxis()
    ax.set_xlabel("findings of the papers")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(axis="y", visible=False)
    handles = [plt.Rectangle((0, 0), 1, 1, **VERDICT_STYLES[verdict], label=verdict) for verdict in order]
    ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(order))
    return figure
