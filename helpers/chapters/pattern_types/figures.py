"""Types of single attention maps, their shares, and how they change."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from helpers.engine.tokens import Batch
from helpers.figures.look import COLOURS, LABELS


def marks(batch: Batch, row: int = 0) -> dict[int, str]:
    """Where an input's special tokens and its full stops and commas are, as ticks for :func:`grey_maps`."""
    kinds = {"C": batch.cls[row], "S": batch.sep[row], ".": batch.stop[row]}
    return {int(place): name for name, at in kinds.items() for place in at.nonzero()[:, 0].tolist()}


def grey_maps(
    panels: Mapping[str, tuple[NDArray, Mapping[int, str]]], *, columns: int = 5, size: float = 2.1
) -> Figure:
    """Maps in grey, each relative to its own darkest cells: black from the 99th percentile on, mid-tones a little darker.

    The labels of ``data/pattern_labels.csv`` were given to maps drawn like this.

    Args:
        panels: title -> (map, position -> tick label).
    """
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(size * columns, (size + 0.35) * rows), squeeze=False, layout="constrained"
    )
    for ax in axes.flat[len(panels) :]:
        ax.axis("off")
    for ax, (title, (weights, ticks)) in zip(axes.flat, panels.items(), strict=False):
        shade = np.clip(weights / np.quantile(weights, 0.99), 0, 1) ** 0.7
        ax.imshow(shade, cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
        places = sorted(ticks)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticks(places, [ticks[p] for p in places], fontsize=6)
        ax.tick_params(length=2, pad=1)
        ax.grid(visible=False)
        ax.set_title(title, fontsize=8)
    return figure


def type_scatter(
    points: Mapping[str, NDArray],
    *,
    xlabel: str,
    ylabel: str,
    thresholds: tuple[float, float] | None = None,
    ax: Axes | None = None,
    title: str = "",
) -> Figure:
    """Two numbers of every map, coloured by the type of the map.

    Args:
        points: type -> [map, 2].
        thresholds: where to draw a vertical and a horizontal line.
    """
    ax = ax or plt.subplots(figsize=(5.2, 3.9))[1]
    for (name, xy), marker in zip(points.items(), "osD^x", strict=False):
        crossed = {"linewidths": 1.2} if marker == "x" else {"edgecolors": "white", "linewidths": 0.3}
        ax.scatter(
            xy[:, 0], xy[:, 1], s=24, marker=marker, color=COLOURS[name], alpha=0.8, label=LABELS[name], **crossed
        )
    if thresholds:
        ax.axvline(thresholds[0], color=COLOURS["self"], linewidth=1, linestyle="--")
        ax.axhline(thresholds[1], color=COLOURS["self"], linewidth=1, linestyle="--")
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title, xlim=(0, 1), ylim=(0, 1))
    return ax.figure


def share_table(
    table: ArrayLike, *, rows: Sequence[str], columns: Sequence[str], ylabel: str, xlabel: str, counts: bool = False
) -> Figure:
    """A table as shades, each row relative to its own sum, with the numbers written out.

    Args:
        table: [row, column]; a row of NaN stays empty.
        counts: whether the numbers are counts; else they are shares and written in per cent.
    """
    table = np.asarray(table, np.float64)
    total = table.sum(-1, keepdims=True)
    shade = table / np.where(total > 0, total, 1)
    figure, ax = plt.subplots(figsize=(1.9 + 0.95 * len(columns), 1.0 + 0.5 * len(rows)))
    ax.imshow(shade, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(table):
        if np.isfinite(value):
            ax.text(
                column,
                row,
                f"{value:.0f}" if counts else f"{value:.0%}",
                ha="center",
                va="center",
                fontsize=9,
                color="white" if shade[row, column] > 0.6 else "#222222",
            )
    ax.set_xticks(range(len(columns)), [c.replace(" + ", " +\n") for c in columns], fontsize=8)
    ax.set_yticks(range(len(rows)), rows, fontsize=8)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.tick_params(length=0)
    ax.grid(visible=False)
    return figure


def type_shares(rows: Mapping[str, ArrayLike], types: Sequence[str], *, xlabel: str = "share of maps") -> Figure:
    """Stacked bars: which share of the maps is of which type; shares of 4 % and more are written out.

    Args:
        rows: label -> shares of the types, which sum to 1.
    """
    figure, ax = plt.subplots(figsize=(7.6, 0.9 + 0.4 * len(rows)))
    for y, shares in enumerate(rows.values()):
        left = 0.0
        for name, share in zip(types, np.asarray(shares), strict=True):
            ax.barh(
                y,
                share,
                left=left,
                height=0.7,
                color=COLOURS[name],
                edgecolor="white",
                linewidth=0.6,
                label=LABELS[name] if y == 0 else None,
            )
            if share >= 0.04:
                ax.text(
                    left + share / 2,
                    y,
                    f"{share:.0%}",
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="#222222" if name == "heterogeneous" else "white",
                )
            left += share
    ax.set(yticks=range(len(rows)), yticklabels=list(rows), ylim=(len(rows) - 0.5, -0.5), xlim=(0, 1), xlabel=xlabel)
    ax.grid(visible=False)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.05), fontsize=8)
    return figure


def types_and_changes(typical: NDArray, entropy: NDArray, types: Sequence[str]) -> Figure:
    """Two layer × head grids: the type each head shows most often, and how much its type changes; layers on x.

    Args:
        typical: [layer, head], indices into ``types``.
        entropy: [layer, head], in nats.
    """
    layers, heads = typical.shape
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(5.2 + 0.36 * layers, 1.4 + 0.17 * heads), layout="constrained"
    )
    for layer, head in np.ndindex(layers, heads):
        colour = COLOURS[types[typical[layer, head]]]
        left.add_patch(plt.Rectangle((layer + 0.55, head + 0.55), 0.9, 0.9, color=colour, linewidth=0))
    extent = (0.5, layers + 0.5, heads + 0.5, 0.5)
    most = np.log(len(types))
    image = right.imshow(entropy.T, cmap="Blues", vmin=0, vmax=most, aspect="auto", extent=extent)
    for ax, title in ((left, "most frequent type"), (right, "entropy of the types")):
        ax.set(
            xlim=(0.4, layers + 0.6),
            ylim=(heads + 0.6, 0.4),
            xlabel="layer",
            ylabel="head",
            xticks=range(1, layers + 1),
            yticks=range(1, heads + 1, 2),
        )
        ax.set_title(title, fontsize=9)
        ax.grid(visible=False)
    figure.colorbar(image, ax=right, label=f"nats (at most {most:.2f})")
    shown = [name for number, name in enumerate(types) if (typical == number).any()]
    handles = [
        Line2D([], [], marker="s", linestyle="", markersize=8, color=COLOURS[n], label=LABELS[n]) for n in shown
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(shown), fontsize=8)
    return figure
