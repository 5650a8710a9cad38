"""What the drawing of chapter 01 and its small form are made of: names of the parts, colours, cells, lines with corners."""

from collections.abc import Iterable, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from helpers.figures.look import CENTRED, INK, Number

STEPS = ("embeddings", "projections", "scores", "weights", "values", "heads", "output", "residual", "layers")
"""The steps in order: hidden states; q, k and v; their products; the softmax; the weighted sum of values; all heads side by
side; the output map; what is added to the residual stream; the layers below and above."""

PARTS = (*STEPS, "gate")
"""What :func:`helpers.figures.strip.schema` can light: each step, and a switch at the output of a head, which is drawn only when it is lit."""

COLOURS = {"stream": "#44546A", "query": "#B4690E", "key": "#0F766E", "value": "#7A3E9D", "weight": "#2F6BA8"}
"""Of the residual stream, of queries, keys, values (and mixtures of them), and of scores and weights."""

OLD, FAINT = "#6a6a6a", "#c4c4c4"  # what an earlier step drew; what is not lit in the schema


def known(names: Iterable[str], allowed: Sequence[str]) -> tuple[str, ...]:
    """The names, if each is one of those allowed; else a ``ValueError`` that lists them."""
    names = tuple(names)
    if unknown := [name for name in names if name not in allowed]:
        raise ValueError(f"The drawing has no part {unknown[0]!r} here. There are: {', '.join(allowed)}.")
    return names


class Sheet:
    """Axes in inches, y downwards, and the few shapes that the drawing is made of."""

    def __init__(self, width: Number, height: Number) -> None:
        self.figure = plt.figure(figsize=(width, height), layout="none")
        self.ax: Axes = self.figure.add_axes((0, 0, 1, 1))
        self.ax.set(xlim=(0, width), ylim=(height, 0))
        self.ax.axis("off")
        # without it a notebook would cut off the margins, and the drawing would not stay where it is while it grows
        self.rectangle(0, 0, width, height, facecolor="white", zorder=-1)

    def rectangle(self, x: Number, y: Number, width: Number, height: Number, **look: object) -> None:
        self.ax.add_patch(plt.Rectangle((x, y), width, height, **{"edgecolor": "none"} | look))

    def text(self, x: Number, y: Number, text: str, size: Number = 8, **look: object) -> None:
        self.ax.text(x, y, text, **CENTRED | {"fontsize": size, "color": INK, "zorder": 5} | look)

    def path(self, *points: tuple[Number, Number], end: str = "", **look: object) -> None:
        """A line with corners and, at its end, the head of an arrow: one of v, ^, > and <."""
        look = {"linewidth": 1.1, "solid_joinstyle": "round", "zorder": 1} | look
        self.ax.plot(*zip(*points, strict=True), **look)
        if end:
            self.ax.plot(*points[-1], marker=end, markersize=4.5, color=look["color"], zorder=2)

    def cells(
        self,
        x: Number,
        y: Number,
        shades: NDArray[np.float64],
        cell: tuple[Number, Number],
        colour: str,
        *,
        lit: bool,
    ) -> None:
        """A block of cells in shades from 0 to 1 of a colour, with a frame."""
        for (row, column), shade in np.ndenumerate(shades):
            look = {"facecolor": (colour, float(shade)), "edgecolor": "white", "linewidth": 0.8}
            self.rectangle(x + column * cell[0], y + row * cell[1], *cell, **look)
        rows, columns = shades.shape
        edge = {"edgecolor": colour if lit else FAINT, "linewidth": 1.4 if lit else 0.8}
        self.rectangle(x, y, columns * cell[0], rows * cell[1], fill=False, zorder=3, **edge)
