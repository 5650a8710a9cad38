"""Layer × head grids: of numbers, of kinds, of whole maps. Layers on x from 1, heads down the side."""

from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

from helpers.figures.look import COLOURS, LABELS, TYPE_NAMES, Number, ink_on, on_layers, outer_labels, squares, titled

DOT = {"marker": "o", "color": "black", "markerfacecolor": "white", "markersize": 4.5}


def grid(
    ax: Axes,
    values: ArrayLike,
    *,
    scale: tuple[Number, Number] | None = None,
    colours: Mapping[str, object] = COLOURS,
    words: Mapping[tuple[int, int], str] | None = None,
    marked: ArrayLike | None = None,
    mark: Mapping[str, object] = DOT,
    every: tuple[int, int] = (1, 1),
    apart: bool = False,
    **text: object,
) -> AxesImage:
    """The one layer × head grid of the book, which every other is drawn with.

    Args:
        values: [layer, head], numbers (NaN: an empty cell) or names of colours.
        scale: values of the lightest and the darkest shade (default: 0 and the largest); from a negative number on,
            shades run from blue through white to red.
        words: (layer, head) from 0 -> what is written into the cell.
        marked, mark: [layer, head], cells that carry a marker, and its style.
        every: which layers and which heads have a tick.
        apart: whether white lines part the cells.
    """
    values = np.asarray(values)
    layers, heads = values.shape
    if values.dtype.kind in "fiub":
        low, high = scale or (0, np.nanmax(values, initial=0))
        options = {"cmap": "RdBu_r" if low < 0 else "Blues", "vmin": low, "vmax": high}
        shown = np.asarray(values, np.float64)
    else:
        shown, options = np.array([[to_rgba(colours[name]) for name in row] for row in values.tolist()]), {}
    image = ax.imshow(shown.swapaxes(0, 1), aspect="auto", extent=(0.5, layers + 0.5, heads + 0.5, 0.5), **options)
    if marked is not None:
        ax.plot(*(np.argwhere(marked).T + 1), linestyle="", **mark)
    for where, word in (words or {}).items():
        colour = ink_on(image.to_rgba(shown[where]) if shown.ndim == 2 else shown[where])
        ax.text(
            where[0] + 1, where[1] + 1, word, color=colour, **{"ha": "center", "va": "center", "fontsize": 8} | text
        )
    if apart:
        ax.vlines(np.arange(layers + 1) + 0.5, 0.5, heads + 0.5, color="white", linewidth=2)
        ax.hlines(np.arange(heads + 1) + 0.5, 0.5, layers + 0.5, color="white", linewidth=2)
    on_layers(ax, layers, every=every[0], ylabel="head", yticks=range(1, heads + 1, every[1]))
    ax.grid(visible=False)
    return image


def head_grids(
    grids: Mapping[str, ArrayLike],
    *,
    bars: str | Mapping[str, str],
    columns: int = 2,
    signed: bool | Sequence[str] = False,
    one_scale: bool | tuple[Number, Number] = False,
    percentile: Number = 100,
    marked: Mapping[str, ArrayLike] | None = None,
    mark: Mapping[str, object] = DOT,
    each: tuple[Number, Number] | None = None,
    every: tuple[int, int] = (1, 2),
) -> Figure:
    """Layer × head grids of numbers side by side, each with its own scale unless one is asked for.

    Args:
        grids: title -> [layer, head].
        bars: what the shade means, for all or for each title.
        signed: whether, or the titles of those where, values have both signs: blue (negative) to red.
        one_scale: whether all share a scale and its bar, or the ends of that scale.
        percentile: of the absolute values, where a scale ends.
        marked, mark: title -> [layer, head], cells that carry a marker, and its style.
        each: width and height of a panel, in inches.
        every: which layers and which heads have a tick.
    """
    values = {title: np.asarray(shown, np.float64) for title, shown in grids.items()}
    layers, heads = next(iter(values.values())).shape
    named = dict.fromkeys(values, bars) if isinstance(bars, str) else bars
    each = each or (2.3 + 0.16 * layers, 1.1 + 0.14 * heads)
    shared = bool(one_scale)
    figure, axes = titled(values, each, columns=columns, sharex=shared, sharey=shared, layout="constrained")
    for ax, (title, shown) in zip(axes.flat, values.items(), strict=False):
        most = np.percentile(np.abs(np.stack([*values.values()]) if shared else shown), percentile) or 1e-9
        both = signed if isinstance(signed, bool) else title in signed
        scale = one_scale if isinstance(one_scale, tuple) else (-most if both else 0, most)
        dots = None if marked is None else marked[title]
        image = grid(ax, shown, scale=scale, marked=dots, mark=mark, every=every)
        if not shared:
            figure.colorbar(image, ax=ax, label=named[title])
    if shared:
        outer_labels(axes, "layer", "head")
        figure.colorbar(image, ax=axes, shrink=1 if len(axes) == 1 else 0.6, label=named[title])
    return figure


def relation_maps(accuracy: Mapping[str, ArrayLike], baselines: Mapping[str, float], *, columns: int = 5) -> Figure:
    """For each relation a grid of accuracies from 0 to 1.

    Args:
        accuracy: relation -> [layer, head].
        baselines: relation -> accuracy of the best offset, shown in the title; heads above it get a dot.
    """
    layers, heads = np.shape(next(iter(accuracy.values())))
    grids = {f"{name} ({baselines[name]:.2f})": np.asarray(values) for name, values in accuracy.items()}
    above = {title: grids[title] > baselines[name] for title, name in zip(grids, accuracy, strict=True)}
    dot = {"marker": ".", "color": COLOURS["first"], "markersize": 4}
    how = {"each": (1.95 + 0.6 / columns, 1.0 + 0.115 * heads), "every": few_ticks(layers, heads), "mark": dot}
    return head_grids(grids, bars="accuracy", one_scale=(0, 1), marked=above, columns=columns, **how)


def few_ticks(layers: int, heads: int) -> tuple[int, int]:
    """Which layers and heads have a tick in a small grid."""
    return max(1, layers // 6), max(1, heads // 4)


def type_grids(grids: Mapping[str, ArrayLike], *, called: Mapping[str, str] = LABELS, columns: int = 3) -> Figure:
    """Grids coloured by type; a cross marks heads of another type than in the first grid.

    Args:
        grids: title -> [layer, head], types; the first is what the others are compared with.
        called: type -> what its group is called (:func:`helpers.figures.look.group_names`).
    """
    types = {title: np.asarray(names) for title, names in grids.items()}
    first = next(iter(types.values()))
    layers, heads = first.shape
    changed = {title: [tuple(at) for at in np.argwhere(names != first).tolist()] for title, names in types.items()}
    titles = [f"{title}: {len(changed[title])} changed" if n else title for n, title in enumerate(types)]
    each = (7.6 / min(columns, len(types)), 0.9 + 0.125 * heads)
    figure, axes = titled(titles, each, columns=columns, margin=(0, 0.3), sharex=True, sharey=True)
    for ax, (title, names) in zip(axes.flat, types.items(), strict=False):
        crosses = dict.fromkeys(changed[title], "×")
        grid(ax, names, words=crosses, every=few_ticks(layers, heads), fontsize=9, weight="bold")
    outer_labels(axes, "layer", "head")
    handles = squares({called[name]: COLOURS[name] for name in TYPE_NAMES})
    figure.legend(handles=handles, loc="outside upper center", ncols=len(TYPE_NAMES), fontsize=8)
    return figure


def thumbnails(
    shape: tuple[int, int], size: tuple[Number, Number], draw: Callable[[Axes, int, int], object]
) -> Figure:
    """A small picture of every head: a row for each layer, a column for each head.

    Args:
        shape: numbers of layers and heads.
        size: width and height of the figure, in inches.
        draw: what draws a head: called with its axes, layer and head, from 0.
    """
    figure, axes = plt.subplots(*shape, figsize=size, squeeze=False)
    for (layer, head), ax in np.ndenumerate(axes):
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
        draw(ax, layer, head)
    for head, ax in enumerate(axes[0], 1):
        ax.set_title(head, fontsize=8, loc="center", weight="normal")
    for layer, ax in enumerate(axes[:, 0], 1):
        ax.set_ylabel(layer, fontsize=8, rotation=0, ha="right", va="center")
    figure.supylabel("layer", fontsize=9)
    return figure
