"""Layer × head grids."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from helpers.figures.look import COLOURS, LABELS, TYPE_NAMES


def type_grids(grids: Mapping[str, ArrayLike], *, columns: int = 3) -> Figure:
    """Layer × head grids coloured by type; a cross marks heads of another type than in the first grid; layers on x.

    Args:
        grids: title -> [layer, head], names of types; the first is what the others are compared with.
    """
    first = np.asarray(next(iter(grids.values())))
    layers, heads = first.shape
    rows = -(-len(grids) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(7.6, (0.9 + 0.125 * heads) * rows + 0.3), squeeze=False, sharex=True, sharey=True
    )
    for ax in axes.ravel():
        ax.axis("off")
    for number, (ax, (title, types)) in enumerate(zip(axes.ravel(), grids.items(), strict=False)):
        types = np.asarray(types)
        ax.axis("on")
        shades = np.array([to_rgba(COLOURS[name]) for name in types.ravel()]).reshape(layers, heads, 4)
        ax.imshow(shades.transpose(1, 0, 2), aspect="auto", extent=(0.5, layers + 0.5, heads + 0.5, 0.5))
        for layer, head in np.argwhere(types != first):
            dark = str(types[layer, head]) in ("vertical", "diagonal")
            ax.plot(
                layer + 1, head + 1, "x", color="white" if dark else "#222222", markersize=4.5, markeredgewidth=1.3
            )
        ax.set(xticks=range(1, layers + 1, max(1, layers // 6)), yticks=range(1, heads + 1, max(1, heads // 4)))
        changed = int((types != first).sum())
        ax.set_title(f"{title}: {changed} changed" if number else title, fontsize=9)
        ax.grid(visible=False)
    for ax in axes[-1]:
        ax.set_xlabel("layer")
    for ax in axes[:, 0]:
        ax.set_ylabel("head")
    handles = [
        Line2D([], [], marker="s", linestyle="", markersize=8, color=COLOURS[n], label=LABELS[n]) for n in TYPE_NAMES
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(TYPE_NAMES), fontsize=8)
    return figure


def relation_maps(accuracy: Mapping[str, NDArray], baselines: Mapping[str, float], *, columns: int = 5) -> Figure:
    """For each relation a layer × head grid of accuracies, on one scale; layers on x.

    Args:
        accuracy: relation -> [layer, head].
        baselines: relation -> accuracy of the best offset, shown in the title; heads above it get a dot.
    """
    layers, heads = next(iter(accuracy.values())).shape
    rows = -(-len(accuracy) // columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(1.95 * columns + 0.6, (1.0 + 0.115 * heads) * rows),
        squeeze=False,
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    for ax in axes.ravel():
        ax.axis("off")
    for ax, (relation, values) in zip(axes.ravel(), accuracy.items(), strict=False):
        ax.axis("on")
        image = ax.imshow(
            values.T, cmap="Blues", vmin=0, vmax=1, aspect="auto", extent=(0.5, layers + 0.5, heads + 0.5, 0.5)
        )
        above = np.argwhere(values > baselines[relation]) + 1
        ax.plot(above[:, 0], above[:, 1], ".", color=COLOURS["first"], markersize=4)
        ax.set_title(f"{relation} ({baselines[relation]:.2f})", fontsize=9)
        ax.grid(visible=False)
        ax.set(xticks=range(1, layers + 1, max(1, layers // 6)), yticks=range(1, heads + 1, max(1, heads // 4)))
    for ax in axes[-1]:
        ax.set_xlabel("layer")
    for ax in axes[:, 0]:
        ax.set_ylabel("head")
    figure.colorbar(image, ax=axes, shrink=0.6, label="accuracy")
    return figure


def head_grids(
    grids: Mapping[str, ArrayLike],
    *,
    bars: Mapping[str, str],
    columns: int = 2,
    signed: Sequence[str] = (),
    one_scale: bool = False,
) -> Figure:
    """Layer × head grids side by side, each with its own scale unless one is asked for; layers on x.

    Args:
        grids: title -> [layer, head].
        bars: title -> what the shade means.
        signed: titles of the grids with values of both signs, which are drawn from blue (negative) to red.
    """
    layers, heads = np.shape(next(iter(grids.values())))
    rows = -(-len(grids) // columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=((2.3 + 0.16 * layers) * columns, (1.1 + 0.14 * heads) * rows),
        squeeze=False,
        layout="constrained",
    )
    for ax, (title, values) in zip(axes.ravel(), grids.items(), strict=False):
        values = np.asarray(values)
        largest = max(np.abs(v).max() for v in (grids.values() if one_scale else [values]))
        scale = {"cmap": "RdBu_r", "vmin": -largest} if title in signed else {"cmap": "Blues", "vmin": 0}
        extent = (0.5, layers + 0.5, heads + 0.5, 0.5)
        image = ax.imshow(values.T, vmax=largest, aspect="auto", extent=extent, **scale)
        ax.set(xticks=range(1, layers + 1), yticks=range(1, heads + 1, 2), xlabel="layer", ylabel="head")
        ax.set_title(title, fontsize=9)
        ax.grid(visible=False)
        figure.colorbar(image, ax=ax, label=bars[title])
    return figure
