"""Types of heads: distance features, groups, shares."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from helpers import plots, views
from helpers.plots import CENTRED, COLOURS, INK, LABELS, MARKERS, TYPE_NAMES, Labels, Names, Values
from helpers.stats import Estimate

WINDOW_COLOUR = "#8794a5"
CORNERS = np.array([[0.0, 0.0], [0.5, np.sqrt(3) / 2], [1.0, 0.0]])  # all near, all far, all special
TRIANGLE = CORNERS[[0, 1, 2, 0]].T
LOOKS = (*((COLOURS[name], MARKERS[name]) for name in TYPE_NAMES), ("#9d9d9d", "P"), ("#111111", "X"))
"""Colour and marker of up to six groups."""


def feature_cells(cells: ArrayLike, tokens: Names, names: Names) -> Figure:
    """A map whose cells are coloured by the distance feature they belong to; windows carry their number.

    Args:
        cells: [query, key], index of the feature of each cell.
        names: of the features; those that begin with ``window`` are shaded, the nearest darkest.
    """
    cells = np.asarray(cells)
    windows = [name for name in names if name.startswith("window")]
    shades = dict(zip(windows, plt.get_cmap("Greys")(np.linspace(0.62, 0.04, len(windows))), strict=True))
    colours = [to_rgba(shades.get(name, COLOURS.get(name))) for name in names]
    figure, ax = plt.subplots(figsize=(7.2, 6.0))
    ax.imshow(np.array(colours)[cells])
    for (row, column), cell in np.ndenumerate(cells):
        if names[cell] in shades:
            number = names[cell].removeprefix("window ")
            ax.text(column, row, number, **CENTRED, fontsize=6, color=plots.ink_on(colours[cell]))
    plots.token_axes(ax, tokens, size=7.5)
    ax.set_ylabel("attending token")
    handles = plots.squares(("cls", "sep", "comma", "period")) + plots.squares({"the token itself": COLOURS["self"]})
    handles += plots.squares({windows[n]: shades[windows[n]] for n in (0, len(windows) // 2 - 1, -1)})
    plt.setp(handles[-3:], markeredgecolor="#999999", markeredgewidth=0.5)
    plots.legend_beside(ax, handles=handles, fontsize=8)
    return figure


def feature_bars(heads: Values, names: Names, *, even: ArrayLike) -> Figure:
    """The 21 numbers of a few heads, one panel each; a dash marks what even attention would give.

    Args:
        heads: title -> [feature].
    """
    figure, axes = plots.titled(heads, (7.4 / len(heads), 2.9))
    _bars(axes[0], names, heads, dict.fromkeys(heads, even), "even attention")
    plt.setp(axes[0], ylim=(0, 1))
    axes[0, 0].set_ylabel("share of attention")
    return figure


def feature_variances(shares: Values, names: Names, *, control: Values) -> Figure:
    """How much each of the 21 numbers counts when heads are compared: its share of the variance over heads, one panel a scale.

    Args:
        shares, control: title -> [feature], which sum to 1; those of the control as dashes.
    """
    figure, axes = plots.titled(shares, (7.6 / len(shares), 2.7), size=9.5, sharey=True)
    _bars(axes[0], names, shares, control, "shuffled heads")
    axes[0, 0].set_ylabel("share of the variance")
    return figure


def _bars(axes: NDArray, names: Names, values: Values, dashes: Values, label: str) -> None:
    for ax, (title, sizes) in zip(axes, values.items(), strict=True):
        ax.bar(range(len(names)), sizes, color=[COLOURS.get(name, WINDOW_COLOUR) for name in names])
        _dashes(ax, names, dashes[title], label)
    ax.legend(fontsize=8)


def _dashes(ax: Axes, names: Names, values: ArrayLike, label: str) -> None:
    """A dash for each of the 21 numbers, and their axis."""
    ax.plot(range(len(names)), values, "_", color=INK, markersize=5, label=label, zorder=4)
    short = [LABELS[n] if n in ("cls", "sep") else n.removeprefix("window ") for n in names]
    shown = [i for i, name in enumerate(names) if not name.startswith("window") or int(short[i]) in (1, 4, 8, 12, 16)]
    ax.set_xticks(shown, [short[i] for i in shown], fontsize=7, rotation=90)
    ax.set_xlabel("window, or kind of token", fontsize=8)
    ax.set_xlim(-0.7, len(names) - 0.3)
    ax.grid(axis="x", visible=False)


def feature_boxes(groups: Values, names: Names, *, called: Labels = LABELS, even: ArrayLike) -> Figure:
    """Box-plots of the 21 numbers over the heads of each group, one panel a group.

    Args:
        groups: type -> [head, feature].
        called: type -> what its group is called, here and in the other figures (:func:`helpers.plots.group_names`).
        even: [feature], what even attention would give, as dashes.
    """
    titles = [f"{called[name]} ({len(values)} heads)" for name, values in groups.items()]
    figure, axes = plots.titled(titles, (3.75, 2.7), columns=2, size=9.5)
    fliers = {"markersize": 2, "markeredgecolor": "#777777"}
    look = {"widths": 0.7, "patch_artist": True, "medianprops": {"color": INK}, "flierprops": fliers}
    for ax, (name, values) in zip(axes.flat, groups.items(), strict=True):
        box = {"facecolor": to_rgba(COLOURS[name], 0.85), "linewidth": 0.6}
        ax.boxplot(np.asarray(values), positions=range(len(names)), boxprops=box, **look)
        _dashes(ax, names, even, "even attention")
        ax.set_ylim(0, 1)
    for ax in axes[:, 0]:
        ax.set_ylabel("share of attention")
    return figure


def embeddings(views: Mapping[str, tuple[ArrayLike, ArrayLike]], *, called: Labels = LABELS) -> Figure:
    """Heads as points in the plane, in the colour and marker of their group, side by side.

    Args:
        views: title -> (coordinates [head, 2], type of each head). Axes have no unit and are not drawn.
    """
    figure, axes = plots.titled(views, (7.4 / len(views), 3.4), size=10.5)
    for ax, (places, types) in zip(axes.flat, views.values(), strict=True):
        _points(ax, np.asarray(places), types, called)
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
    plots.legend_beside(axes[0, -1], fontsize=8)
    return figure


def _points(ax: Axes, places: NDArray, types: ArrayLike, called: Labels) -> None:
    plots.scatter_groups(ax, *places.T, types, called, s=24, edgecolor="#444444", linewidth=0.4)


def groups_to_touch(
    shares: ArrayLike, groups: ArrayLike, ks: Sequence[int], heads: Names, parts: Names
) -> views.InteractiveFigure:
    """Heads by how much they give near and to special tokens; a slider says into how many groups they are cut.

    Args:
        shares: [head, 3], near, far and special.
        groups: [k, head], a number for each group, of :func:`~helpers.chapters.distance_features.over_k`.
        heads, parts: names of the heads and of the three shares.
    """
    shares = np.asarray(shares)
    palette = {f"group {number}": colour for number, (colour, _) in enumerate(LOOKS, 1)}
    cuts = {f"k = {k}": ([f"group {n + 1}" for n in row], palette) for k, row in zip(ks, groups, strict=True)}
    near, _, special = parts
    labels = {"xlabel": f"share {near}", "ylabel": f"share {special}"}
    alt = f"{len(heads)} heads by their shares {near} and {special}, coloured by group, for {len(ks)} numbers of groups."
    texts = [", ".join(f"{part} {share:.0%}" for part, share in zip(parts, row, strict=True)) for row in shares]
    return views.points(*shares.T[[0, 2]], heads, **labels, alt=alt, colours=cuts, texts=texts, control="slider")


def groups_by_k(sets: Mapping[str, tuple[ArrayLike, ArrayLike]], ks: Sequence[int], corners: Names) -> Figure:
    """Heads in a triangle of three shares, coloured by group when 2, 3, … groups are asked for: a row a set of heads, a column a k.

    Args:
        sets: title -> (shares [head, 3], group of each head for each k [k, head]).
        corners: names of the three shares, said once.
    """
    figure, axes = plt.subplots(len(sets), len(ks), figsize=(7.6, 1.65 * len(sets) + 0.3), squeeze=False)
    for row, (title, (shares, groups)) in zip(axes, sets.items(), strict=True):
        places = np.asarray(shares) @ CORNERS
        for ax, labels in zip(row, np.asarray(groups), strict=True):
            ax.plot(*TRIANGLE, color="#bbbbbb", linewidth=0.8, zorder=0)
            for group in np.unique(labels):
                colour, marker = LOOKS[group]
                look = {"color": colour, "marker": marker, "edgecolor": "#444444", "linewidth": 0.3}
                ax.scatter(*places[labels == group].T, s=12, **look)
            ax.set(xticks=[], yticks=[], aspect="equal")
            ax.grid(visible=False)
            ax.spines[:].set_visible(False)
        row[0].set_ylabel(title, fontsize=9)
    for ax, k in zip(axes[0], ks, strict=True):
        ax.set_title(f"k = {k}", fontsize=9.5, loc="center")
    for (x, y), corner, shift in zip(CORNERS, corners, (-0.09, 0.08, -0.09), strict=True):
        axes[-1, 0].text(x, y + shift, corner, **CENTRED, fontsize=7)
    return figure


def versus_control(
    x: Sequence[int], views: Mapping[str, tuple[Estimate, Estimate]], *, xlabel: str, ylabels: Names
) -> Figure:
    """One panel a measure: ours as a line with its interval, the control as a dashed line with a band.

    Args:
        views: title -> (ours [x], control [x]).
    """
    figure, axes = plots.titled(views, (7.6 / len(views), 3.0), size=10.5)
    for ax, ylabel, (ours, control) in zip(axes.flat, ylabels, views.values(), strict=True):
        look = {"colour": COLOURS["random"], "marker": "x", "linestyle": "--", "label": "invented heads"}
        plots.band(ax, x, control, alpha=0.25, **look)
        line = {"color": COLOURS["minilm"], "linestyle": "-", "label": "our heads"}
        plots.intervals(ax, x, ours, bar={"alpha": 1, "linewidth": 1.6}, **line)
        top = 1.03 if max(ours.high.max(), control.high.max()) > 0.7 else 0.7
        ax.set(xlabel=xlabel, ylabel=ylabel, xticks=x, ylim=(0, top))
    axes[0, 0].legend(fontsize=8, loc="lower left")
    return figure


def type_triangle(
    masses: ArrayLike, types: ArrayLike, *, prototypes: Values, centroids: Values, controls: Values, called: Labels
) -> Figure:
    """Heads in a triangle of three shares that sum to 1, with the mean of each group and the prototype of the type it stands for.

    Args:
        masses: [head, 3]: near, far and special, bottom left, top and bottom right.
        prototypes, centroids: type -> [3].
        controls: title -> [head, 3], heads that are in no group.
    """
    figure, ax = plt.subplots(figsize=(6.6, 4.9))
    ax.plot(*TRIANGLE, color="#888888", linewidth=1)
    for step in (0.25, 0.5, 0.75):
        for corner, others in zip(CORNERS, CORNERS[[[1, 2], [2, 0], [0, 1]]], strict=True):
            ax.plot(*(step * corner + (1 - step) * others).T, color="#e4e4e4", linewidth=0.7, zorder=0)
    _points(ax, np.asarray(masses) @ CORNERS, types, called)
    star = {"marker": "*", "linestyle": "", "markeredgecolor": INK}
    plus = {"marker": "+", "linestyle": ""}
    for name in TYPE_NAMES:
        target, mean = np.asarray(prototypes[name]) @ CORNERS, np.asarray(centroids[name]) @ CORNERS
        ax.plot(*np.transpose([mean, target]), color=COLOURS[name], linewidth=1.4, linestyle=":", zorder=1)
        ax.plot(*target, **star, markersize=17, color=COLOURS[name])
        ax.plot(*mean, **plus, markersize=13, markeredgewidth=2.6, color=INK)
        ax.plot(*mean, **plus, markersize=11, markeredgewidth=1.3, color=COLOURS[name])
    points = ax.get_legend_handles_labels()[0]
    dots = []
    for marker, (title, shares) in zip("x.", controls.items(), strict=False):
        dots += ax.plot(*(np.asarray(shares) @ CORNERS).T, marker, color=INK, markersize=4, label=title, zorder=5)
    for corner, (x, y), shift in zip(("near", "far", "special"), CORNERS, (-0.045, 0.045, -0.045), strict=True):
        ax.text(x, y + shift, f"all {corner}", **CENTRED, fontsize=9)
    extra = [
        Line2D([], [], **star, markersize=11, color="#cccccc", label="prototype of a type"),
        Line2D([], [], **plus, markersize=9, markeredgewidth=2, color=INK, label="mean of the group"),
    ]
    plots.legend_beside(ax, handles=[*points, *extra, *dots], bbox_to_anchor=(0.84, 1.0), fontsize=8)
    ax.set_aspect("equal")
    ax.axis("off")
    return figure


def _framed_map(ax: Axes, weights: NDArray, name: str, width: float) -> None:
    """A map on its own scale in the colour of a type, with a frame a little apart, so that it does not cover the first column.

    The scale ends where only three in a hundred weights are larger, so that a dark column does not hide the rest. Shades
    run in twelve steps from white to the colour, and on to a darker one where that colour is light.
    """
    colour = np.array(to_rgb(COLOURS[name]))
    shades = LinearSegmentedColormap.from_list(name, ["#ffffff", colour, colour * 0.45], N=12)
    ax.imshow(weights, cmap=shades, vmin=0, vmax=max(np.quantile(weights, 0.97), 1e-6), interpolation="antialiased")
    low, high = -0.5 - 0.03 * len(weights), 1.03 * len(weights) - 0.5
    ax.set(xticks=[], yticks=[], xlim=(low, high), ylim=(high, low))
    ax.grid(visible=False)
    ax.spines[:].set(visible=True, color=COLOURS[name], linewidth=width)


def type_examples(examples: Mapping[str, Values], *, called: Labels = LABELS) -> Figure:
    """Maps of the heads that stand for each type: a column a type; each map on its own scale.

    Args:
        examples: type -> head -> map [query, key].
    """
    rows = max(map(len, examples.values()))
    figure, axes = plt.subplots(rows, len(examples), figsize=(7.6, 2.05 * rows + 0.3), squeeze=False)
    for column, (name, maps) in zip(axes.T, examples.items(), strict=True):
        for row, (ax, (head, weights)) in enumerate(zip(column, maps.items(), strict=False)):
            _framed_map(ax, np.asarray(weights), name, 2.0)
            title = head if row else f"{called[name]}\n{head}"
            ax.set_title(title, fontsize=9, loc="center", weight="normal")
        for ax in column[len(maps) :]:
            ax.axis("off")
    axes[0, 0].set_ylabel("attending token", fontsize=8)
    return figure


def types_by_layer(types: ArrayLike, *, called: Labels = LABELS) -> Figure:
    """How many heads of each layer are of each type, as stacked bars; layer on x from 1.

    Args:
        types: [layer, head], names of types.
    """
    types = np.asarray(types)
    figure, ax = plt.subplots(figsize=(6.8, 3.3))
    counts = [[(layer == name).sum() for name in TYPE_NAMES] for layer in types]
    parts = plots.coloured(TYPE_NAMES, called)
    plots.stacked(ax, counts, parts, upright=True, size=0.8, edgecolor="white")
    ax.grid(axis="y")
    plots.on_layers(ax, len(types), ylabel="heads", ylim=(0, types.shape[1]))
    plots.legend_beside(ax)
    return figure


def typed_heads(maps: ArrayLike, types: ArrayLike, *, called: Labels = LABELS) -> Figure:
    """Every head's map of one input, in the colour of its type: a row for each layer, a column for each head.

    Args:
        maps: [layer, head, query, key]. Each thumbnail has its own scale.
        types: [layer, head], names of types.
    """
    maps, types = np.asarray(maps), np.asarray(types)
    size = (7.6, 7.0 * types.shape[0] / types.shape[1] + 0.7)
    figure = plots.thumbnails(types.shape, size, lambda ax, *at: _framed_map(ax, maps[at], str(types[at]), 1.6))
    plots.type_legend(figure, called, "upper", title="head", title_fontsize=9)
    return figure
