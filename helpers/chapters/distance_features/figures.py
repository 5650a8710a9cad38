"""Types of heads: distance features, groups, shares."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from helpers.engine.estimates import Estimate
from helpers.figures.look import COLOURS, LABELS, TYPE_MARKERS, TYPE_NAMES, panels

FEATURE_COLOURS = {
    "self": COLOURS["self"],
    "cls": COLOURS["cls"],
    "sep": COLOURS["sep"],
    "comma": "#66C2A5",
    "period": COLOURS["stop"],
}
WINDOW_COLOUR = "#8794a5"


def feature_cells(cells: ArrayLike, tokens: Sequence[str], names: Sequence[str]) -> Figure:
    """A map whose cells are coloured by the distance feature they belong to; windows carry their number.

    Args:
        cells: [query, key], index of the feature of each cell.
        names: of the features; those that begin with ``window`` are shaded, the nearest darkest.
    """
    cells = np.asarray(cells)
    windows = [i for i, name in enumerate(names) if name.startswith("window")]
    shades = plt.get_cmap("Greys")(np.linspace(0.62, 0.04, len(windows)))
    colours = np.array(
        [shades[windows.index(i)] if i in windows else to_rgba(FEATURE_COLOURS[name]) for i, name in enumerate(names)]
    )
    figure, ax = plt.subplots(figsize=(7.2, 6.0))
    ax.imshow(colours[cells])
    for (row, column), cell in np.ndenumerate(cells):
        if cell in windows:
            number = windows.index(cell)
            ax.text(
                column,
                row,
                number + 1,
                ha="center",
                va="center",
                fontsize=6,
                color="white" if number < 4 else "#222222",
            )
    ax.set_xticks(range(len(tokens)), tokens, rotation=60, ha="left", rotation_mode="anchor", fontsize=7.5)
    ax.set_yticks(range(len(tokens)), tokens, fontsize=7.5)
    ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    ax.set_ylabel("attending token")
    ax.grid(visible=False)
    labels = {"cls": "[CLS]", "sep": "[SEP]", "comma": "comma", "period": "full stop", "self": "the token itself"}
    handles = [
        plt.Rectangle((0, 0), 1, 1, color=FEATURE_COLOURS[name], label=label) for name, label in labels.items()
    ]
    handles += [
        plt.Rectangle(
            (0, 0), 1, 1, facecolor=shades[place], edgecolor="#999999", linewidth=0.5, label=f"window {place + 1}"
        )
        for place in (0, len(windows) // 2 - 1, len(windows) - 1)
    ]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    return figure


def feature_bars(
    heads: Mapping[str, ArrayLike], names: Sequence[str], *, even: ArrayLike, colours: Mapping[str, str] | None = None
) -> Figure:
    """The 21 numbers of a few heads, one panel each; a dash marks what even attention would give.

    Args:
        heads: title -> [feature].
        colours: title -> colour of its title.
    """
    figure, axes = panels(len(heads), width=7.4 / len(heads), height=2.9)
    for ax, (title, values) in zip(axes, heads.items(), strict=True):
        ax.bar(range(len(names)), values, color=[FEATURE_COLOURS.get(name, WINDOW_COLOUR) for name in names])
        ax.plot(range(len(names)), even, "_", color="#222222", markersize=5, label="even attention")
        ax.set_title(title, fontsize=9, color=(colours or {}).get(title, "#222222"))
        _feature_axis(ax, names)
        ax.set_ylim(0, 1)
    axes[0].set_ylabel("share of attention")
    axes[-1].legend(fontsize=8)
    return figure


def _feature_axis(ax: Axes, names: Sequence[str]) -> None:
    short = [name.removeprefix("window ").replace("cls", "[CLS]").replace("sep", "[SEP]") for name in names]
    shown = [i for i, name in enumerate(names) if not name.startswith("window") or int(short[i]) in (1, 4, 8, 12, 16)]
    ax.set_xticks(shown, [short[i] for i in shown], fontsize=7, rotation=90)
    ax.set_xlabel("window, or kind of token", fontsize=8)
    ax.grid(axis="x", visible=False)


def feature_boxes(groups: Mapping[str, ArrayLike], names: Sequence[str], *, even: ArrayLike) -> Figure:
    """Box-plots of the 21 numbers over the heads of each type, one panel a type.

    Args:
        groups: type -> [head, feature].
        even: [feature], what even attention would give, as dashes.
    """
    figure, axes = panels(2, rows=2, width=3.75, height=2.7)
    for ax, (name, values) in zip(axes.ravel(), groups.items(), strict=True):
        values = np.asarray(values)
        boxes = ax.boxplot(
            values,
            positions=range(len(names)),
            widths=0.7,
            patch_artist=True,
            showfliers=True,
            medianprops={"color": "#222222"},
            flierprops={"markersize": 2, "markeredgecolor": "#777777"},
        )
        for box in boxes["boxes"]:
            box.set(facecolor=COLOURS[name], alpha=0.85, linewidth=0.6)
        ax.plot(range(len(names)), even, "_", color="#222222", markersize=5, zorder=4)
        ax.set_title(f"{LABELS[name]} ({len(values)} heads)", fontsize=9.5)
        _feature_axis(ax, names)
        ax.set(ylim=(0, 1), xlim=(-0.7, len(names) - 0.3))
    for ax in axes[:, 0]:
        ax.set_ylabel("share of attention")
    return figure


def embeddings(views: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Figure:
    """Heads as points in the plane, in the colour and marker of their type, side by side.

    Args:
        views: title -> (coordinates [head, 2], type of each head). Axes have no unit and are not drawn.
    """
    figure, axes = panels(len(views), width=7.4 / len(views), height=3.4)
    for ax, (title, (places, types)) in zip(axes, views.items(), strict=True):
        places, types = np.asarray(places), np.asarray(types)
        for name in TYPE_NAMES:
            ax.scatter(
                *places[types == name].T,
                color=COLOURS[name],
                marker=TYPE_MARKERS[name],
                s=24,
                edgecolor="#444444",
                linewidth=0.4,
                label=LABELS[name],
            )
        ax.set(title=title, xticks=[], yticks=[])
        ax.title.set_fontsize(9.5)
        ax.grid(visible=False)
    axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    return figure


def versus_control(
    x: Sequence[int], views: Mapping[str, tuple[Estimate, Estimate]], *, xlabel: str, ylabels: Sequence[str]
) -> Figure:
    """One panel a measure: ours as a line with its interval, the control as a dashed line with a band.

    Args:
        views: title -> (ours [x], control [x]).
    """
    figure, axes = panels(len(views), width=7.6 / len(views), height=3.0)
    for ax, ylabel, (title, (ours, control)) in zip(axes, ylabels, views.items(), strict=True):
        ax.fill_between(x, control.low, control.high, color=COLOURS["random"], alpha=0.25, linewidth=0)
        ax.plot(x, control.value, color=COLOURS["random"], marker="x", linestyle="--", label="invented heads")
        error = np.abs(np.stack([ours.low, ours.high]) - ours.value)
        ax.errorbar(x, ours.value, error, color=COLOURS["minilm"], marker="o", capsize=2, label="our heads")
        ax.set(title=title, xlabel=xlabel, ylabel=ylabel, xticks=x)
        ax.title.set_fontsize(9.5)
        ax.set_ylim(0, 1.03 if max(ours.high.max(), control.high.max()) > 0.7 else 0.7)
    axes[0].legend(fontsize=8, loc="lower left")
    return figure


def type_triangle(
    masses: ArrayLike,
    types: ArrayLike,
    *,
    corners: Sequence[str],
    prototypes: Mapping[str, ArrayLike],
    centroids: Mapping[str, ArrayLike],
) -> Figure:
    """Heads in a triangle of three shares that sum to 1, with the mean of each group and the prototype of its name.

    Args:
        masses: [head, 3]; ``corners`` names the three, bottom left, top, bottom right.
        prototypes, centroids: type -> [3].
    """
    place = np.array([[0.0, 0.0], [0.5, np.sqrt(3) / 2], [1.0, 0.0]])
    figure, ax = plt.subplots(figsize=(6.6, 4.9))
    ax.plot(*np.vstack([place, place[:1]]).T, color="#888888", linewidth=1)
    for step in (0.25, 0.5, 0.75):
        for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            ends = [step * place[a] + (1 - step) * place[other] for other in (b, c)]
            ax.plot(*np.transpose(ends), color="#e4e4e4", linewidth=0.7, zorder=0)
    points, types = np.asarray(masses) @ place, np.asarray(types)
    for name in TYPE_NAMES:
        ax.scatter(
            *points[types == name].T,
            color=COLOURS[name],
            marker=TYPE_MARKERS[name],
            s=24,
            edgecolor="#444444",
            linewidth=0.4,
            label=LABELS[name],
        )
        target, mean = np.asarray(prototypes[name]) @ place, np.asarray(centroids[name]) @ place
        ax.plot(*np.transpose([mean, target]), color=COLOURS[name], linewidth=1.4, linestyle=":", zorder=1)
        ax.plot(*target, marker="*", markersize=17, color=COLOURS[name], markeredgecolor="#222222", linestyle="")
        ax.plot(*mean, marker="+", markersize=13, markeredgewidth=2.6, color="#222222", linestyle="")
        ax.plot(*mean, marker="+", markersize=11, markeredgewidth=1.3, color=COLOURS[name], linestyle="")
    for corner, (x, y), shift in zip(corners, place, (-0.045, 0.045, -0.045), strict=True):
        ax.text(x, y + shift, f"all {corner}", ha="center", va="center", fontsize=9)
    extra = [
        Line2D(
            [],
            [],
            marker="*",
            linestyle="",
            markersize=11,
            color="#cccccc",
            markeredgecolor="#222222",
            label="prototype",
        ),
        Line2D(
            [],
            [],
            marker="+",
            linestyle="",
            markersize=9,
            markeredgewidth=2,
            color="#222222",
            label="mean of the group",
        ),
    ]
    ax.legend(
        handles=[*ax.get_legend_handles_labels()[0], *extra], loc="upper left", bbox_to_anchor=(0.84, 1.0), fontsize=8
    )
    ax.set_aspect("equal")
    ax.axis("off")
    return figure


def _type_map(name: str) -> LinearSegmentedColormap:
    """White to the colour of a type, and on to a darker one where that colour is light."""
    colour = np.array(to_rgba(COLOURS[name])[:3])
    return LinearSegmentedColormap.from_list(name, ["#ffffff", colour, colour * 0.45])


def type_examples(examples: Mapping[str, Mapping[str, ArrayLike]]) -> Figure:
    """Maps of the heads that stand for each type: a column a type; each map on its own scale.

    Args:
        examples: type -> head -> map [query, key].
    """
    rows = max(map(len, examples.values()))
    figure, axes = plt.subplots(rows, len(examples), figsize=(7.6, 2.05 * rows + 0.3), squeeze=False)
    for ax in axes.ravel():
        ax.axis("off")
    for column, (name, maps) in enumerate(examples.items()):
        for row, (head, weights) in enumerate(maps.items()):
            ax = axes[row, column]
            ax.axis("on")
            ax.imshow(_clipped(weights), cmap=_type_map(name), vmin=0)
            title = f"{LABELS[name]}\n{head}" if row == 0 else head
            ax.set_title(title, fontsize=9, loc="center", weight="normal")
            _framed(ax, len(weights), COLOURS[name], 2.0)
    axes[0, 0].set_ylabel("attending token", fontsize=8)
    return figure


def _clipped(weights: ArrayLike) -> NDArray:
    """Weights cut off where only three in a hundred are larger, so that a dark column does not hide the rest."""
    weights = np.asarray(weights)
    return weights.clip(max=max(np.quantile(weights, 0.97), 1e-6))


def _framed(ax: Axes, size: int, colour: str, width: float) -> None:
    """A coloured frame around a map, a little apart so that it does not cover the first column, that of [CLS]."""
    gap = 0.03 * size
    ax.set(xticks=[], yticks=[], xlim=(-0.5 - gap, size - 0.5 + gap), ylim=(size - 0.5 + gap, -0.5 - gap))
    ax.grid(visible=False)
    ax.spines[:].set(visible=True, color=colour, linewidth=width)


def types_by_layer(types: ArrayLike, *, title: str = "") -> Figure:
    """How many heads of each layer are of each type, as stacked bars; layer on x from 1.

    Args:
        types: [layer, head], names of types.
    """
    types = np.asarray(types)
    layers, heads = types.shape
    figure, ax = plt.subplots(figsize=(6.8, 3.3))
    below = np.zeros(layers)
    for name in TYPE_NAMES:
        counts = (types == name).sum(-1)
        ax.bar(range(1, layers + 1), counts, bottom=below, color=COLOURS[name], edgecolor="white", label=LABELS[name])
        below += counts
    ax.set(xlabel="layer", ylabel="heads", xticks=range(1, layers + 1), ylim=(0, heads), title=title)
    ax.grid(axis="x", visible=False)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def typed_heads(maps: ArrayLike, types: ArrayLike) -> Figure:
    """Every head's map of one input, in the colour of its type: a row for each layer, a column for each head.

    Args:
        maps: [layer, head, query, key]. Each thumbnail has its own scale.
        types: [layer, head], names of types.
    """
    maps, types = np.asarray(maps), np.asarray(types)
    layers, heads = types.shape
    figure, axes = plt.subplots(layers, heads, figsize=(7.6, 7.0 * layers / heads + 0.7), squeeze=False)
    for layer, head in np.ndindex(layers, heads):
        ax, name = axes[layer, head], str(types[layer, head])
        ax.imshow(_clipped(maps[layer, head]), cmap=_type_map(name), vmin=0, interpolation="antialiased")
        _framed(ax, maps.shape[-1], COLOURS[name], 1.6)
        if layer == 0:
            ax.set_title(head + 1, fontsize=8, loc="center", weight="normal")
        if head == 0:
            ax.set_ylabel(layer + 1, fontsize=8, rotation=0, ha="right", va="center")
    figure.supylabel("layer", fontsize=9)
    handles = [
        Line2D([], [], marker="s", linestyle="", markersize=8, color=COLOURS[n], label=LABELS[n]) for n in TYPE_NAMES
    ]
    figure.legend(
        handles=handles, loc="outside upper center", ncols=len(TYPE_NAMES), fontsize=8, title="head", title_fontsize=9
    )
    return figure
