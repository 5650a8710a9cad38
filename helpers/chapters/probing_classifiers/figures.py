"""What only chapter 06 draws."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from helpers.figures.look import COLOURS
from helpers.figures.words import heatmap


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
