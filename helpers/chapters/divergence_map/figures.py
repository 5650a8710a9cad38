"""How far apart heads are: pairs of rows, matrices, maps and trees of heads."""

from collections.abc import Mapping, Sequence
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist, squareform

from helpers import plots, views
from helpers.chapters.divergence_map.scaling import Map, Stability
from helpers.measurements.head_types import Types
from helpers.plots import COLOURS, INK, LABELS, MARKERS, REFERENCE, Names, Series, Values
from helpers.stats import Estimate


def row_pairs(panels: Mapping[str, tuple[str, NDArray, str, NDArray]], tokens: Names) -> Figure:
    """What two heads attend to from one token, side by side for every attended token; one panel under another.

    Args:
        panels: title -> (name of one head, its row [key], name of the other, its row [key]).
        tokens: the attended tokens.
    """
    size = (1.2 + 0.42 * len(tokens), 2.0 * len(panels) + 0.4)
    figure, axes = plt.subplots(len(panels), figsize=size, squeeze=False, sharex=True)
    x = np.arange(len(tokens))
    for ax, (title, (one, p, other, q)) in zip(axes[:, 0], panels.items(), strict=True):
        ax.bar(x - 0.2, p, 0.4, color=COLOURS["second"], label=one)
        ax.bar(x + 0.2, q, 0.4, color=COLOURS["first"], label=other)
        ax.plot(x, (p + q) / 2, "_", color=INK, markersize=13, markeredgewidth=1.4, label="mixture")
        ax.set(ylabel="attention", title=title)
        ax.grid(axis="x", visible=False)
        ax.legend(ncols=3)
    plots.on_tokens(ax, tokens, fontsize=8)
    ax.set_xlabel("attended token")
    return figure


def pair_matrices(matrices: Values, heads: int, *, bar: str) -> Figure:
    """Distances between all pairs of heads, dark where they are small; lines part the layers. Each matrix has its own scale.

    Args:
        matrices: title -> [head, head], in the order of the layers; the diagonal is left white.
        heads: in a layer.
    """
    figure, axes = plots.panels(len(matrices), width=4.7, height=4.1)
    for ax, (title, matrix) in zip(axes, matrices.items(), strict=True):
        image = ax.imshow(np.where(np.eye(len(matrix), dtype=bool), np.nan, matrix), cmap="Blues_r")
        borders = np.arange(heads, len(matrix), heads) - 0.5
        lines = {"color": "white", "linewidth": 0.8}
        ax.hlines(borders, -0.5, len(matrix) - 0.5, **lines)
        ax.vlines(borders, -0.5, len(matrix) - 0.5, **lines)
        middles = np.arange((heads - 1) / 2, len(matrix), heads)
        ax.set(title=title, xlabel="layer", ylabel="layer", xticks=middles, yticks=middles)
        ax.set(xticklabels=range(1, len(middles) + 1), yticklabels=range(1, len(middles) + 1))
        ax.grid(visible=False)
        figure.colorbar(image, ax=ax, shrink=0.8, label=bar)
    return figure


def layer_map(points: NDArray, layer: Sequence[int]) -> Figure:
    """Heads in the plane, coloured by layer only.

    Args:
        points: [head, 2], in nats.
        layer: of each head, from 0.
    """
    figure, ax = plt.subplots(figsize=(5.6, 4.4))
    _by_layer(ax, points, layer)
    ax.set(xlabel="nats", ylabel="nats", aspect="equal")
    plots.legend_beside(ax, title="layer")
    return figure


def _by_layer(ax: Axes, points: NDArray, layer: Sequence[int]) -> None:
    for number, colour in enumerate(plots.layer_colours(max(layer) + 1)):
        of_layer = points[np.asarray(layer) == number]
        ax.scatter(*of_layer.T, s=34, linewidths=0.5, color=[colour], edgecolors="#555555", label=str(number + 1))


def ratios(series: Mapping[str, Series]) -> Figure:
    """A row for each grouping of the heads and a point for each series: how far apart heads of one group are, as a share of how far apart others are.

    Args:
        series: name -> grouping -> ratio; groupings that a series has not are left out, and so is a series without any. Controls, whose names end with
            ``@shuffled`` or ``@random``, have their own colours; a second one is hollow. Where nothing is left, the picture says so.
    """
    series = {name: found for name, found in series.items() if found}
    rows = list(dict.fromkeys(group for found in series.values() for group in found))
    figure, ax = plt.subplots(figsize=(6.6, 0.9 + 0.42 * len(rows)))
    if not rows:
        ax.set_axis_off()
        ax.text(0.5, 0.5, "no two heads of this model share a label", ha="center", va="center")
        return figure
    looks = {"first": "o", "second": "s", "shuffled": MARKERS["shuffled"], "random": MARKERS["random"]}
    plain, looks_of = iter(("first", "second")), []
    for name in series:
        kind = next((kind for kind in ("shuffled", "random") if name.endswith(f"@{kind}")), None) or next(plain)
        look = {"color": COLOURS[kind], "marker": looks[kind]}
        looks_of.append(look | {"markerfacecolor": "none"} if look in looks_of else look)
    values = {name: [found.get(group) for group in rows] for name, found in series.items()}
    plots.dot_rows(ax, rows, values, looks_of, apart=0.16, line=1)
    ax.set_xlabel("mean divergence: same label / different labels")
    plots.legend_beside(ax, fontsize=8)
    return figure


def head_map(points: NDArray, kinds: Names, layer: Sequence[int], notes: Mapping[int, str] | None = None) -> Figure:
    """Heads in the plane, twice: coloured by what they do (left) and by layer (right).

    Args:
        points: [head, 2], in nats.
        kinds: of each head, its kind of behaviour; an empty string where it has none.
        layer: of each head, from 0.
        notes: head -> what to write beside it.
    """
    spread = np.ptp(points, axis=0)
    height = 4.3 * min(1.3, max(0.6, spread[1] / spread[0]))
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, height + 1.5), sharex=True, sharey=True)
    plots.scatter_groups(left, *points.T, kinds, s=34, linewidths=0.5, edgecolors="white")
    _notes(left, points, notes or {})
    _by_layer(right, points, layer)
    for ax, title, columns, place in ((left, "behaviour", 3, "left"), (right, "layer", 6, "right")):
        ax.set(title=f"by {title}", xlabel="nats", aspect="equal")
        plots.legend_below(ax, loc=f"outside lower {place}", ncols=columns, title=title)
    left.set_ylabel("nats")
    return figure


def map_to_touch(
    points: NDArray,
    names: Names,
    colours: views.Colourings,
    maps: ArrayLike,
    tokens: Names,
    duties: Mapping[int, Names],
) -> views.InteractiveFigure:
    """The same map to touch; each head shows its map of one sentence, unless that is too much for a page.

    Args:
        points: [head, 2], in nats.
        colours: what heads can be coloured by.
        maps: [head, query, key].
        duties: head -> what is known of it.
    """
    texts = [", ".join(duties.get(head, ())) for head in range(len(names))]
    alt = "Heads in the plane, near where they attend alike."
    look = {"xlabel": "nats", "ylabel": "nats", "alt": alt, "first": min(duties, default=0), "equal": True}
    plain = partial(views.points, *points.T, names, colours=colours, texts=texts, **look)
    return views.largest(partial(plain, maps=maps, tokens=tokens), plain)


def colourings(layer: Sequence[int], kinds: Names, grouped: Types | None = None) -> views.Colourings:
    """What heads can be coloured by: behaviour, layer, and type if that is known.

    Args:
        layer, kinds: as in :func:`head_map`.
        grouped: what chapter 08 has recorded.
    """
    found = {"behaviour": views.by_kind(kinds), "layer": views.by_layer(layer)}
    if grouped is not None:
        called = plots.group_names(grouped.fits)
        found["type"] = views.by_kind(grouped.names.ravel().tolist(), called=called)
    return found


def _shown(kinds: Names) -> list[str]:
    """Kinds of behaviour that occur, in the order of ``look``."""
    return [kind for kind in LABELS if kind in kinds]


def _notes(ax: Axes, points: NDArray, notes: Mapping[int, str]) -> None:
    """Ring points and write beside them, towards the middle, none over another."""
    middle, step = points[:, 0].mean(), 0.04 * np.ptp(points[:, 1])
    lowest = {-1: np.inf, 1: np.inf}
    line = {"arrowstyle": "-", "color": INK, "linewidth": 0.5, "shrinkB": 4, "shrinkA": 0}
    for head in sorted(notes, key=lambda head: -points[head, 1]):
        x, y = points[head]
        side = -1 if x > middle else 1
        lowest[side] = min(y + step / 2, lowest[side] - step)
        ax.scatter(x, y, s=90, facecolors="none", edgecolors=INK, linewidths=1.1)
        text = {"fontsize": 7.5, "ha": "right" if x > middle else "left", "va": "center", "arrowprops": line}
        ax.annotate(notes[head], (x, y), (x + side * step, lowest[side]), **text)


def closeness_by_layer(series: Mapping[str, tuple[Estimate, NDArray, Estimate, NDArray]]) -> Figure:
    """Mean distance of heads by how many layers apart they are (left) and within each layer (right), beside chance.

    Args:
        series: model -> (mean [gap], its band by chance [2, gap], mean [layer], its band by chance [2]), all relative to
            the mean of all pairs. Colour and marker go by order: the model, then its control.
    """
    figure, (left, right) = plots.panels(2, width=4.7, height=3.6)
    looks = (("minilm", "o"), ("random", "x"))
    for (name, (apart, chance, each, chance_each)), (look, marker) in zip(series.items(), looks, strict=False):
        gaps, layers = np.arange(len(apart.value)), np.arange(1, len(each.value) + 1)
        shade = {"color": COLOURS[look], "alpha": 0.15, "linewidth": 0}
        left.fill_between(gaps, *chance, **shade, label=f"{name}, heads shuffled")
        right.fill_between(layers[[0, -1]], *chance_each, **shade)
        line = {"color": COLOURS[look], "marker": marker, "linestyle": "-", "label": name}
        for ax, x, estimate in ((left, gaps, apart), (right, layers, each)):
            plots.intervals(ax, x, estimate, bar={"alpha": 1, "linewidth": 2}, **line)
    plots.on_layers(right, len(layers), title="pairs within one layer")
    left.set(title="pairs of heads by layers apart", xlabel="layers apart", xticks=gaps)
    left.set_ylabel("divergence, all pairs = 1")
    for ax in (left, right):
        ax.axhline(1, **REFERENCE | {"color": INK, "linewidth": 0.8})
    plots.legend_below(left, ncols=4, fontsize=9)
    return figure


def predicted_pairs(pairs: NDArray, predicted: NDArray, same: NDArray, gaps: Mapping[str, Series]) -> Figure:
    """Divergences of all pairs against what the heads' own properties predict (left), and what belonging to one layer adds (right).

    Args:
        pairs, predicted: [pair], in nats.
        same: [pair], true for two heads of one layer.
        gaps: row -> model -> pairs of one layer less pairs of different layers, in nats. Colour and marker go by order: the
            model, then its controls.
    """
    figure, (left, right) = plots.panels(2, width=4.7, height=3.6)
    for label, those, colour, alpha in (
        ("different layers", ~same, "other", 0.25),
        ("one layer", same, "first", 0.7),
    ):
        style = {"s": 7, "linewidths": 0, "alpha": alpha, "color": COLOURS[colour]}
        left.scatter(predicted[those], pairs[those], label=label, **style)
    ends = [min(0.0, float(predicted.min())), 1.05 * float(max(pairs.max(), predicted.max()))]
    left.plot(ends, ends, color=INK, linewidth=0.9, linestyle="--")
    left.set(title="pairs of heads", xlabel="predicted divergence (nats)", ylabel="divergence (nats)")
    left.legend(loc="lower right", fontsize=8, markerscale=2)
    looks = [{"color": COLOURS[look], "marker": MARKERS[look]} for look in ("minilm", "shuffled", "random")]
    plots.dot_rows(right, [*gaps], plots.by_series(gaps), looks, apart=0.18, line=0, bar={"alpha": 1})
    right.set(title="one layer, less different layers", xlabel="nats")
    right.legend(loc="lower left", fontsize=8)
    return figure


def head_tree(links: NDArray, names: Names, kinds: Names, layer: Sequence[int], *, ylabel: str) -> Figure:
    """Tree of the heads, with a strip for what each does and one for its layer below.

    Args:
        links: linkage matrix of scipy.
        names, kinds, layer: of each head, in its order before clustering; a kind may be empty.
    """
    from scipy.cluster.hierarchy import dendrogram

    figure, (ax, strip) = plt.subplots(2, figsize=(9.6, 4.6), height_ratios=(7, 1), sharex=True)
    look = {"no_labels": True, "color_threshold": 0, "above_threshold_color": COLOURS["entropy"]}
    order = dendrogram(links, ax=ax, **look)["leaves"]
    plt.setp(ax.collections, linewidth=1)
    shades = plots.layer_colours(max(layer) + 1)
    width = 10 * len(order)
    for row, colours in enumerate(([COLOURS.get(kind, "#dddddd") for kind in kinds], [shades[n] for n in layer])):
        strip.bar(np.arange(0, width, 10), 0.92, 10, row, align="edge", color=[colours[head] for head in order])
    strip.set(ylim=(2, 0), xlim=(0, width), yticks=(0.46, 1.46), yticklabels=("behaviour", "layer"))
    size = 7 if len(order) <= 80 else 4.2
    strip.set_xticks(np.arange(5, width, 10), [names[head] for head in order], rotation=90, fontsize=size)
    strip.tick_params(length=0)
    strip.spines[:].set_visible(False)
    strip.grid(visible=False)
    ax.grid(axis="x", visible=False)
    ax.tick_params(axis="x", length=0)
    ax.set_ylabel(ylabel)
    of_layers = {f"layer {n}": colour for n, colour in enumerate(shades, 1)}
    handles = plots.squares(_shown(kinds)) + plots.squares(of_layers)
    plots.legend_beside(ax, handles=handles, bbox_to_anchor=(1.0, 1.02), fontsize=8)
    return figure


def map_quality(distances: NDArray, drawn: Map, stable: Stability) -> Figure:
    """How far to trust a map: its distances against the true ones, other starts, and other documents.

    Args:
        distances: [head, head], in nats.
    """
    sizes = stable.documents
    figure, (shepard, other, resampled) = plots.panels(3, width=3.25, height=3.3)
    true, shown = squareform(distances, checks=False), pdist(drawn.points)
    shepard.plot(true, shown, ".", markersize=2, color=COLOURS["cls"], alpha=0.35)
    most = 1.05 * max(true.max(), shown.max())
    shepard.plot([0, most], [0, most], color=INK, linewidth=0.9, linestyle="--")
    shepard.set(title="two dimensions", xlim=(0, most), ylim=(0, most))
    shepard.set(xlabel="divergence (nats)", ylabel="distance on the map (nats)")
    starts, disparities = drawn.starts, drawn.disparities
    other.plot(starts[1:], disparities[1:], "o", color=COLOURS["other"], markersize=5, label="random start")
    other.plot(starts[0], disparities[0], "D", color=COLOURS["first"], label="classical start")
    other.set(xlabel="stress", ylabel="disparity from the best map", title="other starts", ylim=(-0.03, 1))
    other.legend(loc="upper right", fontsize=8)
    resampled.plot(sizes, stable.disparity, "o", color=COLOURS["stop"], markersize=3.5, alpha=0.5)
    resampled.plot(sizes, np.median(stable.disparity, axis=1), color=COLOURS["stop"], label="median of draws")
    resampled.axhline(stable.shuffled.mean(), **REFERENCE | {"linewidth": 1.4}, label="heads shuffled")
    resampled.set(title="other documents", xlabel="documents in each set", ylabel="disparity of the two maps")
    plots.logarithmic(resampled.xaxis)
    plots.logarithmic(resampled.yaxis)
    resampled.set_xticks(sizes, [str(size) for size in sizes])
    resampled.minorticks_off()
    resampled.legend(loc="lower left", fontsize=8)
    return figure
