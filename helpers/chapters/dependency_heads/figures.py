"""What only chapter 04 draws."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from helpers.engine.estimates import Estimate, stack
from helpers.figures.grids import grid
from helpers.figures.look import COLOURS, MARKERS, REFERENCE, in_rows, legend_below, legend_beside, titled
from helpers.figures.series import PLACE_COLOURS, PLACE_LABELS, against_baseline, intervals, share_bars
from helpers.figures.words import lines

Rows = tuple[Sequence[str], Mapping[str, Sequence[Estimate | float]]]
"""Names of rows, and for each series a value for each row."""

Retreats = tuple[Mapping[str, str], Mapping[str, Mapping[str, Estimate | float]]]
"""Relation -> the name of its row, in order; and series -> (relation -> a number, for its head an estimate)."""


def labelled_grid(labels: Mapping[tuple[int, int], str], strength: NDArray, *, bar: str) -> Figure:
    """The layer × head grid with a word in each cell and a shade for how strongly it holds; layers on x.

    Args:
        labels: (layer, head) -> word, from 0; their cells are framed, and those without one stay empty.
        strength: [layer, head], the shade.
        bar: what the shade means.
    """
    layers, heads = strength.shape
    figure, ax = plt.subplots(figsize=(1.6 + 0.92 * layers, 1 + 0.3 * heads))
    shown = np.full(strength.shape, np.nan)
    for where in labels:
        shown[where] = strength[where]
    figure.colorbar(grid(ax, shown, words=labels), ax=ax, shrink=0.8, label=bar)
    for layer, head in labels:
        frame = {"fill": False, "edgecolor": COLOURS["self"], "linewidth": 0.9}
        ax.add_patch(Rectangle((layer + 0.54, head + 0.56), 0.92, 0.88, **frame))
    return figure


def pointing(panels: Mapping[str, tuple[Sequence[str], NDArray, Mapping[int, bool]]]) -> Figure:
    """Word-level attention as lines; those of the words in question are coloured by whether they point right, the strongest is thick.

    Args:
        panels: title -> (words, map [unit, unit] between these words, word -> whether its strongest line is right).
    """
    tallest = max(len(words) for words, _, _ in panels.values())
    figure, axes = titled(panels, (2.9, 0.6 + 0.2 * tallest))
    for ax, (words, weights, asked) in zip(axes.flat, panels.values(), strict=True):
        chosen = {word: COLOURS["stop" if right else "first"] for word, right in asked.items()}
        look = {"least": 0.03, "widths": (0.9, 2.2), "faint": 0.15, "weight": "bold"}
        lines(ax, weights, words, chosen, colour=COLOURS["other"], **look)
        for word, colour in chosen.items():
            strongest = int(np.where(np.arange(len(words)) == word, -1, weights[word]).argmax())
            ax.plot([0, 1], [word, strongest], color=colour, linewidth=4.5, solid_capstyle="round", zorder=3)
        ax.set_ylim(tallest - 0.1, -0.6)
    return figure


def strongest(panels: Mapping[str, tuple[Sequence[str], NDArray]], *, least: float = 0.2) -> Figure:
    """Of each word only the strongest line to another word; words whose lines meet share a colour.

    Args:
        panels: title -> (words, map [unit, unit] between these words).
        least: the smallest weight of a line that is drawn.
    """
    tallest = max(len(words) for words, _ in panels.values())
    figure, axes = titled(panels, (3.3, 0.6 + 0.26 * tallest))
    for ax, (words, weights) in zip(axes.flat, panels.values(), strict=True):
        others = np.where(np.eye(len(words), dtype=bool), 0, weights)
        kept = np.where(others == others.max(-1, keepdims=True), others, 0)
        look = {"least": least, "widths": (1.2, 2.6), "faint": 0.35, "weight": "bold"}
        lines(ax, kept, words, _meeting(kept, least), colour=COLOURS["other"], **look)
        ax.set_ylim(tallest - 0.4, -0.6)
    return figure


def _meeting(kept: NDArray, least: float) -> dict[int, str]:
    """A colour for each word whose line meets another's, by the word where they meet."""
    pointed = {word: int(row.argmax()) for word, row in enumerate(kept) if row.max() >= least}
    places = [*pointed.values()]
    meet = [place for place in dict.fromkeys(places) if places.count(place) > 1]
    colours = dict(zip(meet, ("first", "second", "stop", "previous", "next"), strict=False))
    return {word: COLOURS[colours[place]] for word, place in pointed.items() if place in colours}


def beside(panels: Mapping[str, Rows], *, width: float = 3.9, margin: float = 1.0) -> Figure:
    """Rows with points and intervals, a panel for each title, with one legend.

    Args:
        panels: title -> what :func:`helpers.figures.series.against_baseline` draws; a series may be missing in some.
        width, margin: of a panel, and of what is above and below its rows, in inches.
    """
    most = max(len(names) for names, _ in panels.values())
    figure, axes = titled(panels, (width, margin + 0.3 * most))
    for ax, (names, series) in zip(axes.flat, panels.values(), strict=True):
        against_baseline(names, series, ax=ax)
        ax.get_legend().remove()
    named = {}
    for ax in axes.flat:
        handles, labels = ax.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    legend_beside(axes.flat[-1], handles=[*named.values()], labels=[*named])
    return figure


def word_lines(weights: NDArray, words: Sequence[str], chosen: Mapping[int, str]) -> Figure:
    """One head's attention as lines, attending words on the left; the lines of some words in colours, the others' in grey.

    Args:
        weights: [unit, unit] between these words.
        chosen: attending word -> colour.
    """
    figure, ax = plt.subplots(figsize=(4.2, 0.5 + 0.19 * len(words)))
    lines(ax, weights, words, chosen, colour=COLOURS["other"], least=0.1, widths=(1.4, 2.6), weight="bold")
    ax.set_ylim(len(words) - 0.4, -0.6)
    return figure


def places_looked_at(rows: Mapping[str, Estimate], places: Sequence[str]) -> Figure:
    """Stacked bars: what share of attention goes where; numbers of a tenth and more are written out.

    Args:
        rows: label -> shares of the places, which sum to 1.
    """
    parts = {PLACE_LABELS[place]: {"color": PLACE_COLOURS[place]} for place in places}
    shares = {label: one.value for label, one in rows.items()}
    return share_bars(shares, parts, xlabel="share of attention", least=0.1, row=0.36)


RETREAT_STYLES = {
    "its head": {"color": COLOURS["first"], "marker": "o"},
    "mean of all heads": {"color": COLOURS["self"], "marker": "|", "markersize": 11},
    "@random": {"color": COLOURS["random"], "marker": "x"},
    "@shuffled": {"color": COLOURS["shuffled"], "marker": MARKERS["shuffled"]},
}
"""Looks of a relation's head, of its rival and of the controls."""


def retreats(panels: Mapping[str, Retreats], *, xlabel: str) -> Figure:
    """For each relation, from top to bottom, its head with an interval, and without one what rival and controls show in its place.

    Args:
        panels: title -> what :func:`helpers.chapters.no_op.tables.retreats_of` finds, with controls or without; two in a row.
    """
    most = max(len(names) for names, _ in panels.values())
    each, margin = (3.9, 0.9 + 0.3 * most), (0, 0.4)
    figure, axes = titled(panels, each, columns=2, margin=margin, size=9.5, sharex=True, layout="constrained")
    for ax, (names, series) in zip(axes.flat, panels.values(), strict=False):
        for label, points in series.items():
            look = {"linestyle": "", "markeredgewidth": 1.8, "label": label} | RETREAT_STYLES[label]
            rows, found = range(len(names)), [points[relation] for relation in names]
            if label == "its head":
                intervals(ax, rows, stack(found), across=True, **look)
            else:
                ax.plot(found, rows, **look)
        in_rows(ax, names.values())
        ax.axvline(0, **REFERENCE)
        ax.set_xlabel(xlabel)
    legend_below(axes[0, 0], ncols=len(RETREAT_STYLES))
    return figure
