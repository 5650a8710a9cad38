"""What only chapter 06 draws."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from helpers.figures.look import COLOURS


def governor_map(probabilities: ArrayLike, words: Sequence[str], right: Sequence[int], *, title: str = "") -> Figure:
    """How likely each candidate is to be each word's governor: words down the side, ROOT and the words along the top.

    Args:
        probabilities: [word, candidate].
        right: each word's right candidate, which gets a frame.
    """
    probabilities = np.asarray(probabilities)
    figure, ax = plt.subplots(figsize=(2.0 + 0.36 * len(words), 1.0 + 0.32 * len(words)))
    image = ax.imshow(probabilities, cmap="Blues", vmin=0, vmax=1)
    for word, candidate in enumerate(right):
        frame = plt.Rectangle(
            (candidate - 0.5, word - 0.5), 1, 1, fill=False, edgecolor=COLOURS["first"], linewidth=1.6
        )
        ax.add_patch(frame)
    ax.set_xticks(range(len(words) + 1), ["ROOT", *words], rotation=60, ha="left", rotation_mode="anchor", fontsize=8)
    ax.set_yticks(range(len(words)), words, fontsize=8)
    ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    ax.set(title=title, ylabel="dependent")
    ax.grid(visible=False)
    figure.colorbar(image, ax=ax, shrink=0.7, label="probability")
    return figure
