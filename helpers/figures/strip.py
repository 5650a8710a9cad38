"""The drawing of chapter 01 whole, small and without numbers, for the chapters that work on a part of it; the mark of the book."""

from collections.abc import Iterable

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from helpers.figures.look import INK, Number
from helpers.figures.sheet import COLOURS, FAINT, OLD, PARTS, Sheet, known

UNIT = 0.1  # the side of a cell, in inches
STARES = np.array([[0.9, 0.1, 0.1, 0.1], [0.9, 0.1, 0.1, 0.1], [0.1, 0.1, 0.9, 0.1], [0.9, 0.1, 0.1, 0.1]])
"""A map as the book meets it first: all rows but one on the first column."""


def schema(lit: Iterable[str] = ()) -> Figure:
    """The whole drawing without numbers as a small strip, with the named parts lit.

    Args:
        lit: some of :data:`PARTS`; ``gate`` is drawn only when it is lit, since a model has none.

    Raises:
        ValueError: for a part that there is not.
    """
    return _Strip(frozenset(known(lit, PARTS))).figure


class _Strip(Sheet):
    """From left to right: x, then q, k, v, map, weights, output, heads, output map; above them the residual stream."""

    def __init__(self, lit: frozenset[str]) -> None:
        super().__init__(7.2, 2.0)
        self.lit, high, low, middle = lit, 0.36, 1.74, 1.14
        kinds = {"query": 0.66, "key": middle, "value": low}
        self._stream(high)
        self.small("embeddings", 0.20, high, 2, "stream")
        self.label("embeddings", 0.18, 0.08, "hidden states x", ha="left")
        self.path((0.30, high + 0.22), (0.30, low), **self.line("projections"))
        for kind, y in kinds.items():
            own = ("projections", "values") if kind == "value" else ("projections",)
            self.path((0.30, y), (0.86, y), end=">", **self.line(*own))
            self.small(own, 0.94, y, 3, kind)
            self.label(own, 0.72, y - 0.09, kind[0])
        self._map(kinds, middle)
        self._sum(low, middle)
        self._way_out(high, middle)

    def on(self, *parts: str) -> bool:
        return not self.lit.isdisjoint(parts)

    def line(self, *parts: str) -> dict[str, object]:
        """How a line that belongs to some parts is drawn."""
        return {"color": INK, "linewidth": 1.5} if self.on(*parts) else {"color": FAINT, "linewidth": 1.0}

    def label(self, parts: str | tuple[str, ...], x: Number, y: Number, text: str, **look: object) -> None:
        on = self.on(*([parts] if isinstance(parts, str) else parts))
        self.text(x, y, text, color=INK if on else OLD, weight="bold" if on else "normal", **look)

    def small(
        self,
        parts: str | tuple[str, ...],
        x: Number,
        y: Number,
        columns: int,
        kind: str,
        shades: NDArray[np.float64] | None = None,
        wide: Number = UNIT,
    ) -> None:
        """A block of four rows, its middle at y."""
        on = self.on(*([parts] if isinstance(parts, str) else parts))
        shades = np.full((4, columns), 0.45) if shades is None else shades
        colour = COLOURS[kind] if on else OLD
        self.cells(x, y - 2 * UNIT, shades if on else shades * 0.4, (wide, UNIT), colour, lit=on)

    def _stream(self, y: Number) -> None:
        on = self.on("residual", "embeddings", "layers")
        look = {"color": COLOURS["stream"], "linewidth": 3} if on else {"color": FAINT, "linewidth": 2}
        self.path((0.43, y), (6.28, y), end=">", **look)
        self.label("residual", 3.2, y - 0.14, "residual stream")
        for n in range(3):
            on = self.on("layers")
            face = (COLOURS["stream"], 0.45) if on else (OLD, 0.12)
            edge = {"edgecolor": COLOURS["stream"] if on else FAINT, "linewidth": 1.4 if on else 0.8}
            self.rectangle(6.36 + 0.26 * n, y - 0.24, 0.20, 0.48, facecolor=face, **edge)
        self.label("layers", 6.72, y + 0.36, "next layers")

    def _map(self, kinds: dict[str, Number], y: Number) -> None:
        line = self.line("scores")
        self.path((1.26, kinds["query"]), (1.5, kinds["query"]), (1.5, y), **line)
        self.path((1.26, y), (1.72, y), end=">", **line)
        self.small("scores", 1.80, y, 4, "weight", 0.2 + 0.5 * STARES)
        self.label("scores", 2.0, y + 0.32, "scores")
        self.path((2.24, y), (2.66, y), end=">", **self.line("weights"))
        self.small("weights", 2.74, y, 4, "weight", STARES)
        self.label("weights", 2.94, y + 0.32, "weights")

    def _sum(self, low: Number, y: Number) -> None:
        line = self.line("values")
        self.path((1.26, low), (3.48, low), (3.48, y), **line)
        self.path((3.18, y), (3.82, y), end=">", **line)
        self.small("values", 3.90, y, 3, "value")
        self.label("values", 4.05, y + 0.32, "output o")

    def _way_out(self, high: Number, y: Number) -> None:
        line = self.line("heads", "gate") if self.on("gate") else self.line("heads")
        if not self.on("gate"):
            self.path((4.24, y), (4.76, y), end=">", **line)
        else:  # an open switch between two contacts
            self.path((4.24, y), (4.36, y), **line)
            self.path((4.56, y), (4.76, y), end=">", **line)
            self.path((4.36, y), (4.54, y - 0.14), color=INK, linewidth=2)
            self.ax.plot([4.36, 4.56], [y, y], "o", color=INK, markersize=4, zorder=3)
            self.label("gate", 4.46, y - 0.27, "gate")
        heads = np.full((4, 8), 0.18)
        self.small("heads", 4.84, y, 8, "stream", heads)
        on = self.on("heads", "gate")
        self.cells(5.04, y - 2 * UNIT, np.full((4, 1), 0.55), (UNIT, UNIT), COLOURS["value"] if on else OLD, lit=on)
        self.label("heads", 5.24, y + 0.32, "all heads")
        self.path((5.68, y), (6.0, y), (6.0, high + 0.12), end="^", **self.line("output", "residual"))
        self.rectangle(
            5.80, y - 0.30, 0.40, 0.24, facecolor="white", zorder=2, edgecolor=INK if self.on("output") else FAINT
        )
        self.label("output", 6.0, y - 0.18, "$W_O$", parse_math=True)
        on = self.on("residual")
        colour = COLOURS["stream"] if on else OLD
        self.ax.plot(6.0, high, "o", markersize=11, markerfacecolor="white", markeredgecolor=colour, zorder=3)
        self.label("residual", 6.0, high, "+")


def mark() -> str:
    """SVG of the book's mark: a map of three tokens, of which one does not look where the others look.

    On a grid of 16 units, so that it is sharp at 16 pixels, in colours that can be seen on white and on black.
    """
    dark, pale, odd = "#2F6BA8", "#A9BFD6", "#E69F00"
    cells = [[dark, pale, pale], [dark, pale, pale], [pale, odd, pale]]
    drawn = "".join(
        f'<rect x="{1 + 5 * column}" y="{1 + 5 * row}" width="4" height="4" fill="{colour}"/>'
        for row, colours in enumerate(cells)
        for column, colour in enumerate(colours)
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" role="img"><title>A map of attention</title>{drawn}</svg>\n'
