"""What only chapter 04 draws."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from helpers.figures.look import COLOURS, REFERENCE, in_rows, legend_below, titled
from helpers.figures.series import intervals
from helpers.figures.words import lines
from helpers.stats import Estimate, stack


def pointing(panels: Mapping[str, tuple[Sequence[str], NDArray, Mapping[int, bool]]]) -> Figure:
    """Word-level attention as lines; those of the words in question are coloured by whether they point right, the strongest is thick.

    Args:
        panels: title -> (words, map [unit, unit] between these words, word -> whether its strongest line is right).
    """
    tallest = max(len(words) for words, _, _ in panels.values())
    figure, axes = titled(panels, (2.9, 0.6 + 0.2 * tallest), columns=2)
    for ax, (words, weights, asked) in zip(axes.flat, panels.values(), strict=False):
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


def to_special(series: Mapping[str, Mapping[str, Estimate]], everywhere: Mapping[str, Estimate]) -> Figure:
    """What words of each relation give to special tokens: a panel for each head, and the mean of all heads in both."""
    figure, axes = titled(series, (3.3, 0.9 + 0.26 * len(everywhere)), margin=(0, 0.4), sharex=True)
    look = {"color": COLOURS["cls"], "marker": "|", "markersize": 10, "markeredgewidth": 2, "linestyle": ""}
    for ax, found in zip(axes.flat, series.values(), strict=True):
        rows = range(len(found))
        intervals(ax, rows, stack(list(found.values())), across=True, color=COLOURS["first"], label="this head")
        ax.plot([everywhere[relation].value for relation in found], rows, label="mean of all heads", **look)
        in_rows(ax, found)
        ax.set(xlim=(0, 1), xlabel="attention to [CLS] and [SEP]")
    legend_below(axes[0, 0], ncols=2)
    return figure


def costs(found: Mapping[str, Estimate], named: str) -> Figure:
    """What each intervention costs, with its interval; one in colour."""
    figure, ax = plt.subplots(figsize=(6.6, 3.0))
    for place, (name, cost) in enumerate(found.items()):
        intervals(ax, place, cost, color=COLOURS["first" if name == named else "self"])
    ax.axhline(0, **REFERENCE)
    ax.set_xticks(range(len(found)), list(found), rotation=45, ha="right", rotation_mode="anchor")
    ax.set(ylabel="more loss on hidden objects (nats)")
    return figure
