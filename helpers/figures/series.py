"""Rows with intervals, points and bands over layers, stacked shares."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from helpers.figures.look import COLOURS, INK, LABELS, MARKERS, Number, in_rows, ink_on, legend_beside, on_layers
from helpers.stats import Estimate

Places = ArrayLike | Sequence[Number] | Number
Parts = Mapping[str, Mapping[str, object]]
"""Places on an axis; labels of the parts of a bar, with the style of each."""


def intervals(
    ax: Axes,
    at: Places,
    estimate: Estimate,
    *,
    across: bool = False,
    scale: Number = 1,
    bar: Mapping[str, object] | None = None,
    **point: object,
) -> None:
    """A point and the bar of its interval for each value, upright at places on x, or across in rows.

    Args:
        at: the place of each value.
        scale: what values are multiplied with, 100 for per cent.
        bar: what is different about the bars.
        point: style of the points; the colour is that of the bars too.
    """
    look = {"color": point.get("color"), "linewidth": 2.2, "alpha": 0.5} | (bar or {})
    (ax.hlines if across else ax.vlines)(at, scale * estimate.low, scale * estimate.high, **look)
    value = scale * estimate.value
    ax.plot(*((value, at) if across else (at, value)), **{"marker": "o", "linestyle": ""} | point)


def band(ax: Axes, x: Places, estimate: Estimate, *, colour: object, alpha: Number = 0.18, **line: object) -> None:
    """A line with its interval as a band."""
    ax.fill_between(x, estimate.low, estimate.high, color=colour, alpha=alpha, linewidth=0)
    ax.plot(x, estimate.value, color=colour, **line)


def references(
    ax: Axes, lines: Mapping[str, Number] | None, *, colour: str = COLOURS["self"], **style: object
) -> None:
    """Horizontal lines with names, which differ in their dashes."""
    for number, (name, value) in enumerate((lines or {}).items()):
        ax.axhline(value, **{"color": colour, "linestyle": ("--", ":", "-.")[number % 3], "label": name} | style)


def stacked(
    ax: Axes,
    rows: ArrayLike,
    parts: Parts,
    *,
    upright: bool = False,
    least: Number = np.inf,
    number: str = "{:.0%}",
    **style: object,
) -> None:
    """Bars cut into parts: across with the first on top, or upright with the first at 1.

    Args:
        rows: [bar, part].
        parts: label -> style of each part.
        least: sizes from which numbers are written into the parts; default: none are.
        number: how.
        style: of all parts; ``size`` is the thickness of a bar.
    """
    rows = np.asarray(rows, np.float64)
    starts = rows.cumsum(1) - rows
    places = np.arange(len(rows)) + upright
    size = style.pop("size", 0.7)
    for (label, own), sizes, start in zip(parts.items(), rows.T, starts.T, strict=True):
        look = {"label": label} | style | dict(own)
        there = sizes > 0 if (sizes > 0).any() else [0]  # what is nothing would still have an edge
        (ax.bar if upright else ax.barh)(places[there], sizes[there], size, start[there], **look)
        for place, long, left in zip(places, sizes, start, strict=True):
            if long >= least:
                face = look.get("color") or look["facecolor"]
                box = {"facecolor": face, "edgecolor": "none", "pad": 1.2} if "hatch" in look else None
                text = number.format(long)
                ax.text(
                    left + long / 2, place, text, ha="center", va="center", fontsize=8, color=ink_on(face), bbox=box
                )
    ax.grid(visible=False)


def named(parts: Iterable[str]) -> Parts:
    """Parts for :func:`stacked` by their names in ``look``."""
    return {LABELS[name]: {"color": COLOURS[name]} for name in parts}


def heads_by_layer(
    series: Mapping[str, Estimate],
    *,
    ylabel: str,
    title: str = "",
    lines: Mapping[str, Number] | None = None,
    ax: Axes | None = None,
    limits: tuple[Number, Number] | None = None,
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
        x = np.arange(1, layers + 1) + 0.16 * (place - (len(series) - 1) / 2)
        spread = x[:, None] + np.linspace(-0.07, 0.07, heads)
        look = {"color": COLOURS.get(name), "alpha": 0.6, "linewidths": 0, "marker": MARKERS.get(name, "o")}
        ax.scatter(spread, estimate.value, s=13, **look)
        ax.plot(x, estimate.value.mean(-1), color=COLOURS.get(name), label=LABELS.get(name, name))
    references(ax, lines, colour=INK, linewidth=1)
    on_layers(ax, layers, ylabel=ylabel, title=title, ylim=limits)
    ax.legend()
    return ax.figure


def against_baseline(
    names: Sequence[str],
    values: Mapping[str, Sequence[Estimate | float]],
    *,
    xlabel: str = "accuracy",
    ax: Axes | None = None,
) -> Figure:
    """One row a name, from top to bottom, with a point for each series and a bar for its interval.

    Args:
        values: series -> one value for each name; an :class:`Estimate` shows its interval, NaN nothing. Four looks, and one that
            is that of shuffled scores wherever a name begins with ``@shuffled``.
    """
    ax = ax or plt.subplots(figsize=(6.6, 0.6 + 0.3 * len(names)))[1]
    looks = [
        {"color": COLOURS["first"], "marker": "o"},
        {"color": COLOURS["cls"], "marker": "|", "markersize": 9, "markeredgewidth": 2},
        {"color": COLOURS["random"], "marker": "x", "markeredgewidth": 2},
        {"color": COLOURS["other"], "marker": "D"},
    ]
    dealt = {"color": COLOURS["shuffled"], "marker": MARKERS["shuffled"]}
    others = cycle(looks)
    for series, points in values.items():
        look = (dealt if series.startswith("@shuffled") else next(others)) | {"linestyle": ""}
        for row, point in enumerate(points):
            label = series if row == 0 else None
            if isinstance(point, Estimate):
                intervals(ax, row, point, across=True, label=label, **look)
            else:
                ax.plot(point, row, label=label, **look)
    in_rows(ax, names)
    ax.set(xlim=(0, 1), xlabel=xlabel)
    legend_beside(ax)
    return ax.figure


PLACE_COLOURS = COLOURS | {"other": "#d9d9d9"}
PLACE_LABELS = LABELS | {"self": "the word itself", "other": "other words"}


def where_to(rows: Mapping[str, Estimate], places: Sequence[str]) -> Figure:
    """Stacked bars: what share of attention goes where, from each kind of word.

    Args:
        rows: label -> shares of the places, which sum to 1; numbers of 3 % and more are written out.
    """
    parts = {PLACE_LABELS[place]: {"color": PLACE_COLOURS[place]} for place in places}
    bars = {label: shares.value for label, shares in rows.items()}
    return share_bars(bars, parts, xlabel="share of attention", least=0.03, row=0.5)


def share_bars(rows: Mapping[str, ArrayLike], parts: Parts, *, xlabel: str, least: Number, row: Number) -> Figure:
    """A stacked bar for each row.

    Args:
        rows: label -> shares of the parts, which sum to 1.
        parts: as for :func:`stacked`.
        least: from which share on numbers are written out.
        row: height of a row, in inches.
    """
    figure, ax = plt.subplots(figsize=(7.6, 0.9 + row * len(rows)))
    stacked(ax, [*rows.values()], parts, least=least, edgecolor="white", linewidth=0.6)
    in_rows(ax, rows)
    ax.set(xlim=(0, 1), xlabel=xlabel)
    legend_beside(ax, bbox_to_anchor=(1.0, 1.05), fontsize=8)
    return figure


def curves(
    x: Sequence[Number],
    series: Mapping[str, Estimate],
    *,
    lines: Mapping[str, Number] | None = None,
    logarithmic: bool = False,
    **labels: str,
) -> Figure:
    """A line with its interval as a band for each series, over one axis.

    Args:
        series: name -> estimate [x].
        lines: name -> value of horizontal reference lines.
        logarithmic: whether x doubles from step to step.
        labels: ``xlabel`` and ``ylabel``.
    """
    figure, ax = plt.subplots(figsize=(6.4, 3.6))
    looks = zip(("cls", "first", "stop", "previous"), "os^v", strict=True)
    for (name, estimate), (colour, marker) in zip(series.items(), looks, strict=False):
        band(ax, x, estimate, colour=COLOURS[colour], marker=marker, label=name)
    references(ax, lines, linewidth=1.2)
    if logarithmic:
        ax.set_xscale("log", base=2)
        ax.minorticks_off()
    ax.set_xticks(x, [f"{value:,g}" for value in x])
    ax.set(ylim=(0, 1), **labels)
    legend_beside(ax)
    return figure


# dark to light, so that the order can be read in grey; the last three have no colour because there is nothing to say
VERDICT_STYLES = {
    "holds": {"facecolor": "#1B4965", "edgecolor": "#1B4965"},
    "also the control": {"facecolor": "#4F86A6", "edgecolor": "#1B4965", "hatch": "..."},
    "mixed": {"facecolor": "#8FB8D0", "edgecolor": "#1B4965"},
    "undecided": {"facecolor": "#D5E3EC", "edgecolor": "#1B4965"},
    "fails": {"facecolor": "#F3E3C3", "edgecolor": "#8A6D2F", "hatch": "///"},
    "not comparable": {"facecolor": "white", "edgecolor": "#999999"},
    "no number": {"facecolor": "white", "edgecolor": "#999999", "linestyle": "--"},
}


def verdict_bars(counts: Mapping[str, Mapping[str, int]], *, order: Sequence[str] = tuple(VERDICT_STYLES)) -> Figure:
    """A bar for each chapter, cut by verdict, with the counts written in.

    Args:
        counts: name of the chapter -> verdict -> number of findings.
        order: of the verdicts, from the left; those that never occur are left out.
    """
    parts = {v: VERDICT_STYLES[v] for v in order if any(found.get(v) for found in counts.values())}
    figure, ax = plt.subplots(figsize=(7.2, 0.36 * len(counts) + 1.1))
    sizes = [[found.get(verdict, 0) for verdict in parts] for found in counts.values()]
    stacked(ax, sizes, parts, least=1, number="{:.0f}", size=0.72, linewidth=0.8)
    in_rows(ax, counts)
    ax.grid(axis="x")
    ax.set_xlabel("findings of the papers")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(parts))
    return figure
