"""What only chapter 04 draws."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from helpers.figures.look import COLOURS


def labelled_grid(labels: Mapping[tuple[int, int], str], strength: NDArray, *, bar: str) -> Figure:
    """The layer × head grid with a word in each cell and a shade for how strongly it holds; layers on x.

    Args:
        labels: (layer, head) -> word, from 0; cells without one stay empty.
        strength: [layer, head], the shade.
        bar: what the shade means.
    """
    layers, heads = strength.shape
    figure, ax = plt.subplots(figsize=(1.6 + 0.92 * layers, 1 + 0.3 * heads))
    shown = np.where(
        [[(layer, head) in labels for head in range(heads)] for layer in range(layers)], strength, np.nan
    )
    image = ax.imshow(shown.T, cmap="Blues", vmin=0, aspect="auto", extent=(0.5, layers + 0.5, heads + 0.5, 0.5))
    for (layer, head), label in labels.items():
        dark = strength[layer, head] > 0.6 * np.nanmax(shown)
        ax.text(
            layer + 1, head + 1, label, ha="center", va="center", fontsize=8, color="white" if dark else "#222222"
        )
    ax.set(xticks=range(1, layers + 1), yticks=range(1, heads + 1), xlabel="layer", ylabel="head")
    ax.grid(visible=False)
    figure.colorbar(image, ax=ax, shrink=0.8, label=bar)
    return figure


def pointing(panels: Mapping[str, tuple[Sequence[str], NDArray, Mapping[int, bool]]]) -> Figure:
    """Word-level attention as lines; those of the words in question are coloured by whether they point right.

    Args:
        panels: title -> (words, map [unit, unit] between these words, word -> whether its strongest line is right).
    """
    tallest = max(len(words) for words, _, _ in panels.values())
    figure, axes = plt.subplots(1, len(panels), figsize=(2.9 * len(panels), 0.6 + 0.2 * tallest), squeeze=False)
    for ax, (title, (words, weights, asked)) in zip(axes[0], panels.items(), strict=True):
        for row, column in np.ndindex(weights.shape):
            if weights[row, column] >= 0.03:
                colour = COLOURS["other"] if row not in asked else COLOURS["stop"] if asked[row] else COLOURS["first"]
                ax.plot(
                    [0, 1],
                    [row, column],
                    color=colour,
                    alpha=float(min(1, 0.15 + weights[row, column])),
                    linewidth=2.2 if row in asked else 0.9,
                    solid_capstyle="round",
                    zorder=2 if row in asked else 1,
                )
        for place, align, x in ((0, "right", -0.05), (1, "left", 1.05)):
            for position, word in enumerate(words):
                strong = place == 0 and position in asked
                colour = (COLOURS["stop"] if asked[position] else COLOURS["first"]) if strong else "#222222"
                ax.text(
                    x,
                    position,
                    word,
                    ha=align,
                    va="center",
                    fontsize=8.5,
                    color=colour,
                    weight="bold" if strong else "normal",
                )
        ax.set(xlim=(-1.0, 2.0), ylim=(tallest - 0.1, -0.6))
        ax.set_title(title, fontsize=9)
        ax.axis("off")
    return figure
