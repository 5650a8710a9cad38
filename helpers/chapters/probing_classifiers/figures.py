"""What only chapter 06 draws."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from helpers import plots
from helpers.plots import COLOURS, INK, MARKERS, REFERENCE, Levels, Names, Points, Series, Values

CONTROLS = {"@random": "random", "@shuffled": "shuffled", "control task": "other"}
"""How the name of a control ends -> its style."""


def arcs(words: Names, right: Mapping[int, int], parsers: Mapping[str, Sequence[int]]) -> Figure:
    """One sentence as several parsers see it: an arc from each governor to its dependents, in colour where it is right; ROOT is a line from above.

    Args:
        right: word -> its right candidate (0: ROOT, w + 1: word w); words that are missing are not asked.
        parsers: name -> [word], the candidate named for each word.
    """
    widths = np.array([0.1 * len(word) + 0.4 for word in words])
    places = np.cumsum(widths) - widths / 2
    farthest = max(abs(int(named[word]) - 1 - word) for named in parsers.values() for word in right if named[word])
    top = 0.3 + _rise(max(farthest, 2))
    figure, axes = plt.subplots(len(parsers), figsize=(widths.sum() + 0.2, 1.25 * len(parsers)), squeeze=False)
    for ax, (name, named) in zip(axes[:, 0], parsers.items(), strict=True):
        hits = {word: int(named[word]) == candidate for word, candidate in right.items()}
        for word, hit in hits.items():
            _arc(ax, places, word, int(named[word]) - 1, hit, top)
        for place, word in zip(places, words, strict=True):
            ax.text(place, -0.1, word, ha="center", va="top", fontsize=9)
        ax.set_title(f"{name}: {sum(hits.values())} of {len(hits)}", fontsize=9)
        ax.set(xlim=(0, widths.sum()), ylim=(-0.5, top))
        ax.axis("off")
    return figure


def _rise(steps: int) -> float:
    """How high an arc over so many steps is."""
    return 0.55 * abs(steps) ** 0.6


def _arc(ax: Axes, places: NDArray, word: int, governor: int, hit: bool, top: float) -> None:
    """An arc that ends above a dependent; a ring where it is its own governor, a line from above where that is ROOT."""
    look = {"color": COLOURS["first"], "linewidth": 1.7} if hit else {"color": COLOURS["other"], "linewidth": 1.2}
    x, turn = places[word], np.linspace(0, np.pi, 60)
    if governor < 0:
        at = np.full(60, x), np.linspace(top, 0.12, 60)
    elif governor == word:
        at = x + 0.13 * np.sin(2 * turn), 0.12 + 0.2 * (1 - np.cos(2 * turn))
    else:
        start = places[governor] + 0.1 * np.sign(word - governor)
        high = _rise(governor - word) * (1 if governor > word else 0.8)  # words that name each other have two arcs
        at = (start + x) / 2 + (start - x) / 2 * np.cos(turn), 0.12 + high * np.sin(turn)
    ax.plot(*at, linestyle="-" if hit else "--", **look)
    ax.plot(x, 0.1, marker="v", markersize=4.5, color=look["color"])


def governor_map(probabilities: ArrayLike, words: Names, right: Sequence[int]) -> Figure:
    """How likely each candidate is to be each word's governor: words down the side, ROOT and the words along the top.

    Args:
        probabilities: [word, candidate].
        right: each word's right candidate, which gets a frame.
    """
    figure, ax = plt.subplots(figsize=(1.56 + 0.36 * len(words), 1.0 + 0.32 * len(words)))
    image = ax.imshow(probabilities, cmap="Blues", vmin=0, vmax=1)
    plots.token_axes(ax, words, ["ROOT", *words])
    ax.set_ylabel("dependent")
    figure.colorbar(image, ax=ax, shrink=0.7, label="probability")
    for word, candidate in enumerate(right):
        style = {"fill": False, "edgecolor": COLOURS["first"], "linewidth": 1.6}
        ax.add_patch(plt.Rectangle((candidate - 0.5, word - 0.5), 1, 1, **style))
    return figure


def parsers_and_weights(grids: Values, weights: Names) -> Figure:
    """Layer × head grids of accuracies, and of signed weights; all of a kind share a scale.

    Args:
        grids: title -> [layer, head].
        weights: the titles of those that are weights.
    """
    layers, heads = np.shape(next(iter(grids.values())))
    figure, axes = plots.titled(grids, (2.5 + 0.16 * layers, 1.1 + 0.14 * heads), columns=2)
    most = {kind: max(np.abs(v).max() for t, v in grids.items() if (t in weights) == kind) for kind in (True, False)}
    for ax, (title, values) in zip(axes.flat, grids.items(), strict=True):
        signed = title in weights
        image = plots.grid(ax, values, scale=(-most[signed] if signed else 0, most[signed]), every=(1, 2))
        figure.colorbar(image, ax=ax, label="weight" if signed else "UAS")
    return figure


def readers(questions: Mapping[str, Series], guesses: Levels) -> Figure:
    """A panel for each question and a row for each thing that a classifier may read; controls in their own colours, per cent beside the points.

    Args:
        questions: question -> reader -> accuracy; readers that were not asked a question have no point there.
        guesses: question -> what guessing scores, a dotted line.
    """
    rows = list(dict.fromkeys(name for found in questions.values() for name in found))
    figure, axes = plots.panels(len(questions), width=2.6, height=0.9 + 0.28 * len(rows))
    for ax, (question, found) in zip(axes, questions.items(), strict=True):
        for name, accuracy in found.items():
            kind = next((look for end, look in CONTROLS.items() if name.endswith(end)), "first")
            look = {"color": COLOURS[kind], "marker": MARKERS.get(kind, "o")}
            plots.intervals(ax, rows.index(name), accuracy, across=True, **look)
            number = {"fontsize": 7.5, "va": "center", "color": INK}
            ax.text(float(accuracy.high) + 0.04, rows.index(name), f"{100 * float(accuracy.value):.0f}", **number)
        ax.axvline(guesses[question], **REFERENCE)
        plots.in_rows(ax, rows if ax is axes[0] else [""] * len(rows))
        ax.set(title=question, xlim=(0, 1.1), xticks=(0, 0.5, 1), xlabel="accuracy")
    return figure


def runs(names: Names, series: Points) -> Figure:
    """A row for each name, and in it a point for each run below the other, so that none hides another.

    Args:
        series: run -> [name]; a number without an interval, or NaN for none.
    """
    figure, ax = plt.subplots(figsize=(6.6, 0.6 + 0.15 * len(series) * len(names)))
    looks = (("first", "o"), ("cls", "s"), ("random", "^"), ("minilm", "D"))
    looks = cycle({"color": COLOURS[colour], "marker": marker, "markersize": 4.5} for colour, marker in looks)
    plots.dot_rows(ax, names, series, looks, apart=0.8 / len(series))
    ax.hlines(np.arange(len(names) - 1) + 0.5, 0, 1, color=COLOURS["other"], linewidth=0.4)
    ax.grid(axis="y", visible=False)
    ax.set(xlim=(0, 1), xlabel="share of words (UAS)")
    plots.legend_beside(ax)
    return figure


def differences(names: Names, series: Series) -> Figure:
    """A row for each name with paired differences in points, and a line at none.

    Args:
        series: what is subtracted from what -> [name], in shares.
    """
    figure, ax = plt.subplots(figsize=(6.6, 0.8 + 0.34 * len(names)))
    looks = ({"color": COLOURS["first"], "marker": "o"}, {"color": COLOURS["cls"], "marker": "s"})
    plots.dot_rows(ax, names, series, looks, apart=0.2, scale=100)
    ax.axvline(0, color=INK, linewidth=0.9)
    ax.set_xlabel("difference (points)")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=8)
    return figure
