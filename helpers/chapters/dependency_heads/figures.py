"""What only chapter 04 draws."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from helpers.figures.grids import grid
from helpers.figures.look import COLOURS, titled
from helpers.figures.words import lines


def labelled_grid(labels: Mapping[tuple[int, int], str], strength: NDArray, *, bar: str) -> Figure:
    """The layer × head grid with a word in each cell and a shade for how strongly it holds; layers on x.

    Args:
        labels: (layer, head) -> word, from 0; cells without one stay empty.
        strength: [layer, head], the shade.
        bar: what the shade means.
    """
    layers, heads = strength.shape
    figure, ax = plt.subplots(figsize=(1.6 + 0.92 * layers, 1 + 0.3 * heads))
    shown = np.full(strength.shape, np.nan)
    for where in labels:
        shown[where] = strength[where]
    figure.colorbar(grid(ax, shown, words=labels), ax=ax, shrink=0.8, label=bar)
    return figure


def pointing(panels: Mapping[str, tuple[Sequence[str], NDArray, Mapping[int, bool]]]) -> Figure:
    """Word-level attention as lines; those of the words in question are coloured by whether they point right.

    Args:
        panels: title -> (words, map [unit, unit] between these words, word -> whether its strongest line is right).
    """
    tallest = max(len(words) for words, _, _ in panels.values())
    figure, axes = titled(panels, (2.9, 0.6 + 0.2 * tallest))
    for ax, (words, weights, asked) in zip(axes.flat, panels.values(), strict=True):
        chosen = {word: COLOURS["stop" if right else "first"] for word, right in asked.items()}
        look = {"least": 0.03, "widths": (0.9, 2.2), "faint": 0.15, "weight": "bold"}
        lines(ax, weights, words, chosen, colour=COLOURS["other"], **look)
        ax.set_ylim(tallest - 0.1, -0.6)
    return figure
