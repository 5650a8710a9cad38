"""Chapter 13: words shaded by the attention they receive, rankings, weights, and heads taken away."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from helpers import plots
from helpers.plots import COLOURS, INK, REFERENCE, Labels, Levels, Names, Series, Values
from helpers.stats import Estimate

LINE = 88  # characters


def word_bars(panels: Values, words: Names, key: Sequence[bool], *, even: float) -> Figure:
    """A bar for each word of a sentence, key words in a colour of their own; a panel for each way to measure.

    Args:
        panels: title -> values [head, word]; the bar is their mean, the line goes from the lowest to the highest.
        words: down the side, marks left out.
        even: what a token gets of even attention, drawn as a line.
    """
    figure, axes = plots.titled(panels, (8.4 / len(panels), 0.24 * len(words) + 0.9), size=9.5, sharey=True)
    places, key = np.arange(len(words)), np.asarray(key)
    for ax, values in zip(axes[0], map(np.asarray, panels.values()), strict=True):
        for label, colour, own in (("key words", "first", key), ("other words", "other", ~key)):
            ax.barh(places[own], values.mean(0)[own], 0.72, color=COLOURS[colour], label=label)
        ax.hlines(places, values.min(0), values.max(0), color=INK, linewidth=1.2)
        ax.axvline(even, **REFERENCE, label="even attention")
        ax.grid(axis="y", visible=False)
        ax.set_xlabel("attention received")
    plots.in_rows(axes[0, 0], words)
    plots.legend_below(axes[0, 0], loc="outside upper right", ncols=3, fontsize=8.5)
    return figure


def shaded_text(panels: Values, units: Names, places: Sequence[int], key: Sequence[bool]) -> Figure:
    """A text once for each panel, each word on a shade for its value; key words are bold and underlined.

    Args:
        panels: title -> value of each word, none below 0; the darkest shade is the panel's 98th percentile.
        units: words and marks.
        places: for each word which unit it is.
        key: for each word whether it is part of a keyphrase.
    """
    joined = [u in ".,;:!?)’'-" or before in "(’'-" for before, u in zip(("", *units), units, strict=False)]
    spots = plots.flow(units, LINE, joined)
    last = spots[-1][1]
    figure, axes = plots.titled(panels, (8.2, 0.21 * (last + 1) + 0.4), columns=1)
    for ax, values in zip(axes.flat, panels.values(), strict=True):
        shades = plt.cm.Blues(0.75 * np.clip(np.asarray(values) / max(np.percentile(values, 98), 1e-12), 0, 1))
        looks = [{"color": INK}] * len(units)
        for place, shade, of_key in zip(places, shades, key, strict=True):
            (x, y), length = spots[place], len(units[place])
            ax.add_patch(plt.Rectangle((x - 0.1, y - 0.42), length + 0.2, 0.84, color=shade, linewidth=0))
            looks[place] = {"color": plots.ink_on(shade), "weight": "bold" if of_key else "normal"}
            if of_key:
                ax.plot([x, x + length], [y + 0.4, y + 0.4], color=COLOURS["first"], linewidth=1.4)
        for unit, at, look in zip(units, spots, looks, strict=True):
            ax.text(*at, unit, va="center", fontsize=7.6, family="monospace", **look)
        ax.set(xlim=(-0.5, LINE + 0.5), ylim=(last + 0.6, -0.7))
        ax.axis("off")
    return figure


def signed_grids(grids: Values, *, bar: str | Labels, certain: Values | None = None, percentile: int = 100) -> Figure:
    """Layer × head grids of values of both signs, red above 0 and blue below; layers on x.

    Args:
        grids: title -> [layer, head].
        bar: what the shade means; grids share a scale where it means the same in all, and have their own where it is title -> meaning.
        certain: title -> [layer, head], where to draw a dot: the interval leaves 0 out.
        percentile: of the absolute values, where the scale ends.
    """
    layers, heads = np.shape(next(iter(grids.values())))
    shared, columns = isinstance(bar, str), min(len(grids), 2)
    each = (0.95 + 0.3 * layers + 1.1 / (columns if shared else 1), 1 + 0.21 * heads)
    look = {"signed": True, "one_scale": shared, "percentile": percentile, "every": (1, 1)}
    return plots.head_grids(grids, bars=bar, marked=certain, each=each, columns=columns, **look)


def ranked_heads(precision: Estimate, order: Sequence[tuple[int, int]], lines: Levels) -> Figure:
    """A point and interval for each head in a given order, the first ones named, and horizontal lines for other methods.

    Args:
        precision: (layer, head).
        lines: label -> value.
    """
    figure, ax = plt.subplots(figsize=(7.4, 3.8))
    x, ranked = np.arange(1, len(order) + 1), precision[tuple(np.transpose(order))]
    look = {"color": COLOURS["minilm"], "markersize": 3.5, "label": "one head"}
    plots.intervals(ax, x, ranked, bar={"linewidth": 2, "alpha": 0.4}, **look)
    top = 1.06 * max([*ranked.high, *lines.values()])
    line = {"arrowstyle": "-", "color": COLOURS["other"], "linewidth": 0.6}
    for n, head in enumerate(order[:5]):  # spread out above the points, which are too close for names
        above = (2 + n * len(order) / 18, top)
        ax.annotate(plots.head_name(*head), (x[n], ranked.high[n]), above, fontsize=7, ha="center", arrowprops=line)
    names = ("first", "self", "stop", "random", "other")
    for (label, at), name, dashes in zip(lines.items(), names, ("-", "--", ":", "-.", "-"), strict=False):
        ax.axhline(at, color=COLOURS[name], linestyle=dashes, linewidth=1.4, label=label)
    ax.set(xlabel="head, from the lowest cross-entropy where it was fitted", ylabel="average precision")
    ax.set(xlim=(0, len(order) + 1), ylim=(0, 1.06 * top))
    ax.grid(axis="x", visible=False)
    plots.legend_beside(ax, fontsize=8)
    return figure


def score_bars(scores: Mapping[str, Series], groups: Labels, *, xlabel: str = "F1 of phrases") -> Figure:
    """Horizontal bars with intervals: a row for each method, a bar for each kind of score, or for each run.

    Args:
        scores: method -> kind -> estimate; NaN, and no bar, where there is none.
        groups: method -> name of its colour in ``COLOURS``.
    """
    kinds = list(next(iter(scores.values())))
    figure, ax = plt.subplots(figsize=(7.4, 0.9 + (0.14 + 0.14 * len(kinds)) * len(scores)))
    size, rows = 0.8 / len(kinds), np.arange(len(scores))
    colours = [COLOURS[groups[method]] for method in scores]
    handles = plots.squares(dict.fromkeys(kinds, COLOURS["self"]))
    for n, (kind, handle, alpha) in enumerate(zip(kinds, handles, np.linspace(1, 0.5, len(kinds)), strict=True)):
        y, shown = rows + (n - (len(kinds) - 1) / 2) * size, [found[kind] for found in scores.values()]
        ax.barh(y, [e.value for e in shown], height=size * 0.92, color=colours, alpha=alpha)
        ax.plot([[e.low for e in shown], [e.high for e in shown]], [y, y], color=INK, linewidth=1.2)
        handle.set_alpha(alpha)
    plots.in_rows(ax, scores)
    ax.set_xlabel(xlabel)
    ax.grid(axis="y", visible=False)
    plots.legend_beside(ax, handles=handles)
    return figure


ORDERS = {
    "least missed first, by loss": ("cls", "o", "-"),
    "most missed first, by loss": ("first", "s", "-"),
    "least missed first, by F1": ("cls", "^", "--"),
    "most missed first, by F1": ("first", "v", "--"),
    "random order": ("random", "D", "-."),
}
"""Colour, marker and line of each order in which heads are removed."""


def removal_curves(panels: Mapping[str, Series], counts: Sequence[int], *, range_of: Values | None = None) -> Figure:
    """What is left as heads are removed one after another, a line with its interval for each order.

    Args:
        panels: what is measured -> order of :data:`ORDERS` -> estimate [count].
        range_of: what is measured -> [2, count], lowest and highest of the random orders, drawn as dotted lines; a record has only
            their mean.
    """
    figure, axes = plots.titled(panels, (3.7, 3.0), columns=3, size=10)
    for ax, (title, series) in zip(axes.flat, panels.items(), strict=False):
        for name, found in series.items():
            colour, marker, line = ORDERS[name]
            look = {"colour": COLOURS[colour], "marker": marker, "linestyle": line, "label": name, "markersize": 4}
            plots.band(ax, counts, found, alpha=0.1, **look)
        for edge in (range_of or {}).get(title, ()):
            ax.plot(counts, edge, ":", color=COLOURS["random"], linewidth=1)
        ax.axhline(float(next(iter(series.values())).value[0]), **REFERENCE)
        ax.set(xlabel="heads removed", xticks=counts)
        ax.tick_params(axis="x", labelsize=7.5)
    plots.legend_below(axes[0, 0], ncols=3, fontsize=8.5)
    return figure
