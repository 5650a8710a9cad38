"""Types of single attention maps, their shares, and how they change."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from helpers import plots
from helpers.plots import COLOURS, LABELS, REFERENCE, Names, Series, Values
from helpers.tokens import Batch


def marks(batch: Batch) -> dict[int, str]:
    """Where the first input's special tokens and its full stops and commas are, as ticks for :func:`grey_maps`."""
    kinds = {"C": batch.cls[0], "S": batch.sep[0], ".": batch.stop[0]}
    return {int(place): name for name, at in kinds.items() for place in at.nonzero()[:, 0].tolist()}


def grey_maps(panels: Mapping[str, tuple[NDArray, Mapping[int, str]]], *, columns: int = 5) -> Figure:
    """Maps in grey, each relative to its own darkest cells: black from the 99th percentile on, mid-tones a little darker.

    The labels of ``data/pattern_labels.csv`` were given to maps drawn like this.

    Args:
        panels: title -> (map, position -> tick label).
    """
    figure, axes = plots.titled(panels, (2.1, 2.5), columns=columns, size=8)
    figure.get_layout_engine().set(h_pad=0.12)  # titles of three lines, under the tick letters of the row above
    for ax, (weights, ticks) in zip(axes.flat, panels.values(), strict=False):
        shade = np.clip(weights / np.quantile(weights, 0.99), 0, 1) ** 0.7
        ax.imshow(shade, cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
        places = sorted(ticks)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticks(places, [ticks[p] for p in places], fontsize=6)
        ax.tick_params(length=2, pad=1)
        ax.grid(visible=False)
    return figure


def type_scatter(points: Values, *, thresholds: tuple[float, float], ax: Axes, **labels: str) -> Figure:
    """Two numbers of every map, coloured by the type of the map.

    Args:
        points: type -> [map, 2].
        thresholds: where to draw a vertical and a horizontal line.
        labels: ``xlabel``, ``ylabel`` and ``title``.
    """
    for (name, xy), marker in zip(points.items(), "osD^x", strict=False):
        edge = {"linewidths": 1.2} if marker == "x" else {"edgecolors": "white", "linewidths": 0.3}
        ax.scatter(*xy.T, s=24, marker=marker, color=COLOURS[name], alpha=0.8, label=LABELS[name], **edge)
    ax.axvline(thresholds[0], **REFERENCE | {"linestyle": "--"})
    ax.axhline(thresholds[1], **REFERENCE | {"linestyle": "--"})
    ax.set(xlim=(0, 1), ylim=(0, 1), **labels)
    return ax.figure


def accuracies(sets: Mapping[str, Series]) -> Figure:
    """How many maps each way to name them names rightly, with intervals: a panel for each set of maps, rows in one order.

    Args:
        sets: title -> (way -> accuracy); a way that a set lacks stays empty.
    """
    ways = list(dict.fromkeys(way for accuracy in sets.values() for way in accuracy))
    figure, axes = plots.titled(sets, (2.6, 0.8 + 0.3 * len(ways)), margin=(1.4, 0), sharex=True, sharey=True)
    for ax, accuracy in zip(axes.flat, sets.values(), strict=True):
        plots.dot_rows(ax, ways, {"": [accuracy.get(way) for way in ways]}, [{"color": COLOURS["cls"]}])
        ax.set(xlabel="maps named as labelled", xlim=(0, 1.03))
    return figure


def share_table(table: ArrayLike, *, rows: Names, columns: Names, counts: bool = False, **labels: str) -> Figure:
    """A table as shades, each row relative to its own sum, with the numbers written out.

    Args:
        table: [row, column]; a row of NaN stays empty.
        counts: whether the numbers are counts; else they are shares and written in per cent.
        labels: ``xlabel`` and ``ylabel``.
    """
    table = np.asarray(table, np.float64)
    total = table.sum(-1, keepdims=True)
    figure, ax = plt.subplots(figsize=(1.9 + 0.95 * len(columns), 1.0 + 0.5 * len(rows)))
    ax.imshow(table / np.where(total > 0, total, 1), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    plots.number_cells(ax, table, "{:.0f}" if counts else "{:.0%}", fontsize=9)
    ax.set_xticks(range(len(columns)), [c.replace(" + ", " +\n") for c in columns], fontsize=8)
    ax.set_yticks(range(len(rows)), rows, fontsize=8)
    ax.set(**labels)
    ax.tick_params(length=0)
    ax.grid(visible=False)
    return figure


def type_shares(rows: Values, types: Names) -> Figure:
    """Stacked bars: which share of the maps is of which type; shares of 4 % and more are written out.

    Args:
        rows: label -> shares of the types, which sum to 1.
    """
    return plots.share_bars(rows, plots.coloured(types), xlabel="share of maps", least=0.04, row=0.4)


def types_and_changes(typical: NDArray, entropy: NDArray, types: Names) -> Figure:
    """Two layer × head grids: the type each head shows most often, and how much its type changes; layers on x.

    Args:
        typical: [layer, head], indices into ``types``.
        entropy: [layer, head], in nats.
    """
    layers, heads = typical.shape
    each, most = (2.6 + 0.18 * layers, 1.4 + 0.17 * heads), np.log(len(types))
    figure, axes = plots.titled(("most frequent type", "entropy of the types"), each)
    left, right = axes[0]
    plots.grid(left, np.asarray(types)[typical], every=(1, 2))
    left.vlines(np.arange(layers + 1) + 0.5, 0.5, heads + 0.5, color="white", linewidth=2)
    left.hlines(np.arange(heads + 1) + 0.5, 0.5, layers + 0.5, color="white", linewidth=2)
    image = plots.grid(right, entropy, scale=(0, most), every=(1, 2))
    figure.colorbar(image, ax=right, label=f"nats (at most {most:.2f})")
    handles = plots.squares([name for number, name in enumerate(types) if (typical == number).any()])
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)
    return figure
