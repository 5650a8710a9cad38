"""What only chapter 06 draws."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from helpers.engine.estimates import Estimate
from helpers.figures.look import COLOURS, INK, MARKERS, REFERENCE, in_rows, panels
from helpers.figures.series import intervals
from helpers.figures.words import heatmap

CONTROLS = {"@random": "random", "@shuffled": "shuffled"}
"""How the name of a control ends -> its style."""


def governor_map(probabilities: ArrayLike, words: Sequence[str], right: Sequence[int]) -> Figure:
    """How likely each candidate is to be each word's governor: words down the side, ROOT and the words along the top.

    Args:
        probabilities: [word, candidate].
        right: each word's right candidate, which gets a frame.
    """
    keys = ["ROOT", *words]
    figure = heatmap(probabilities, words, keys, most=1, ylabel="dependent", bar="probability")
    for word, candidate in enumerate(right):
        style = {"fill": False, "edgecolor": COLOURS["first"], "linewidth": 1.6}
        figure.axes[0].add_patch(plt.Rectangle((candidate - 0.5, word - 0.5), 1, 1, **style))
    return figure


def readers(questions: Mapping[str, Mapping[str, Estimate]], guesses: Mapping[str, float]) -> Figure:
    """A panel for each question and a row for each thing that a classifier may read; controls in their own colour.

    Args:
        questions: question -> reader -> accuracy; readers that were not asked a question have no point there.
        guesses: question -> what guessing scores, a dotted line.
    """
    rows = list(dict.fromkeys(name for found in questions.values() for name in found))
    figure, axes = panels(len(questions), width=2.6, height=0.9 + 0.28 * len(rows))
    for ax, (question, found) in zip(axes, questions.items(), strict=True):
        for name, accuracy in found.items():
            kind = next((look for end, look in CONTROLS.items() if name.endswith(end)), None)
            look = {"color": COLOURS[kind], "marker": MARKERS[kind]} if kind else {"color": COLOURS["first"]}
            intervals(ax, rows.index(name), accuracy, across=True, **look)
        ax.axvline(guesses[question], **REFERENCE)
        in_rows(ax, rows if ax is axes[0] else [""] * len(rows))
        ax.set(title=question, xlim=(0, 1), xlabel="accuracy")
    return figure


def differences(names: Sequence[str], series: Mapping[str, Estimate]) -> Figure:
    """A row for each name with paired differences in points, and a line at none.

    Args:
        series: what is subtracted from what -> [name], in shares.
    """
    figure, ax = plt.subplots(figsize=(6.6, 0.8 + 0.34 * len(names)))
    looks = (("first", "o"), ("cls", "s"))
    for place, ((label, estimate), (colour, marker)) in enumerate(zip(series.items(), looks, strict=False)):
        at = [row + 0.2 * (place - (len(series) - 1) / 2) for row in range(len(names))]
        intervals(ax, at, estimate, across=True, scale=100, color=COLOURS[colour], marker=marker, label=label)
    in_rows(ax, names)
    ax.axvline(0, color=INK, linewidth=0.9)
    ax.set_xlabel("difference (points)")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=8)
    return figure
