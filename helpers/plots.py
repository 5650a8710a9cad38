"""The look of every figure, and the plots that chapters share: maps and lines of attention, layer × head grids, heads by layer, rows with intervals, stacked shares."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import cycle

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import yaml
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray

from helpers.corpora.treebanks import Sentence
from helpers.stats import Estimate

Size = tuple[float, float]
Names = Sequence[str]
Labels = Mapping[str, str]
Style = Mapping[str, object]
#: Width and height in inches, or two ends; names of rows, words, tokens; name -> what it is called, or a colour;
#: matplotlib's keywords; series -> a value for each row, None where there is none, or row -> value.
Points = Mapping[str, Sequence[Estimate | float | None] | Mapping[str, Estimate | float]]

ASSETS = files("helpers") / "assets"
LOOKS = yaml.safe_load((ASSETS / "styles.yml").read_text("utf-8"))
#: Of each thing that is drawn: colour, name, marker.
STYLES = LOOKS["things"]

COLOURS, LABELS, MARKERS = ({name: style[n] for name, style in STYLES.items()} for n in range(3))
#: Guan et al.'s four types of heads, in the order of every table and legend.
TYPE_NAMES = ("dense", "diagonal", "dense_vertical", "vertical")
HEAD_COLOURS = LOOKS["heads"]
INK = "#222222"
REST = "#bbbbbb"  # of points without a kind
#: A line that values are compared with.
REFERENCE = {"color": COLOURS["self"], "linewidth": 1, "linestyle": ":"}
CENTRED = {"ha": "center", "va": "center"}


def use_style() -> None:
    """Switch to the book's style; every chapter calls it once."""
    plt.style.use(str(ASSETS / "book.mplstyle"))
    if "inline" not in (backend := matplotlib.get_backend()):
        return
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("retina", metadata={"Software": None})
    plt.switch_backend(backend)  # pyplot installs its hook here, otherwise with the first figure
    plt.uninstall_repl_displayhook()  # it would draw every figure once more than is shown, for windows that there are none of


def group_names(fits: Mapping[str, bool]) -> dict[str, str]:
    """What each of four groups of heads is called: the type that it stands for where it fits, else only "group" and its number.

    Args:
        fits: type -> whether the group that stands for it has the marks of its name (``head_types.Types.fits``).
    """
    return {name: LABELS[name] if fits[name] else f"group {n}" for n, name in enumerate(TYPE_NAMES, 1)}


def ink_on(colour: object) -> str:
    """The colour of text that can be read on a colour, itself on white: white where that is dark."""
    *rgb, opacity = to_rgba(colour)
    return "white" if 1 - opacity + opacity * np.dot(rgb, (0.299, 0.587, 0.114)) < 0.5 else INK


def titled(
    titles: Iterable[str], each: Size, *, columns: int = 0, margin: Size = (0, 0), size: float = 9, **options: object
) -> tuple[Figure, NDArray]:
    """A panel for each title, row by row; what is left of the last row stays empty.

    Args:
        each, margin: width and height of a panel, and of what is around all of them, in inches.
        columns: at most so many in a row (0: all).
        size: of the titles.
        options: of ``plt.subplots``.

    Returns:
        The figure and its axes [row, column].
    """
    titles = list(titles)
    columns = min(columns or len(titles), len(titles))
    rows = -(-len(titles) // columns)
    shape = (each[0] * columns + margin[0], each[1] * rows + margin[1])
    figure, axes = plt.subplots(rows, columns, figsize=shape, squeeze=False, **options)
    for ax, title in zip(axes.flat, titles, strict=False):
        ax.set_title(title, fontsize=size)
    for ax in axes.flat[len(titles) :]:
        ax.axis("off")
    return figure, axes


def on_layers(ax: Axes, layers: int, *, every: int = 1, **settings: object) -> None:
    """Layers on x, from 1."""
    ax.set(xlabel="layer", xticks=range(1, layers + 1, every), **settings)
    ax.grid(axis="x", visible=False)


def on_tokens(ax: Axes, tokens: Names, **settings: object) -> None:
    """Tokens on x."""
    ax.set_xticks(range(len(tokens)), tokens, rotation=60, ha="right", rotation_mode="anchor", **settings)
    for label in ax.get_xticklabels():
        if len(label.get_text()) == 1:  # a tilted comma would look like an apostrophe
            label.set(rotation=0, ha="center")
    ax.grid(axis="x", visible=False)


def logarithmic(axis: Axis) -> None:
    """A logarithmic scale with plain numbers: in this style a dollar sign is a dollar sign, and no number is set as mathematics."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(LogLocator(subs=(1, 3)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def in_rows(ax: Axes, names: Iterable[str], *, margin: float = 0.5) -> None:
    """Names down the side, the first on top."""
    names = list(names)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 1 + margin, -margin)


def squares(names: Iterable[str], called: Labels = LABELS) -> list[Line2D]:
    """Entries of a legend: a square for each name of :data:`STYLES`, in its colour, or in that of the group that it is called after."""
    style = {"marker": "s", "linestyle": "", "markersize": 8}
    colours = [COLOURS.get(called[name], COLOURS[name]) for name in names]  # a group is grey
    return [Line2D([], [], color=c, label=called[n], **style) for n, c in zip(names, colours, strict=True)]


def legend_below(ax: Axes, **options: object) -> None:
    """One legend for all panels, below them; its entries are those of one panel."""
    where = {"loc": "outside lower center", "fontsize": 8}
    ax.figure.legend(*ax.get_legend_handles_labels(), **where | options)


def intervals(
    ax: Axes, at: ArrayLike, estimate: Estimate | float, *, across: bool = False, scale: float = 1, **point: object
) -> None:
    """A point and the bar of its interval for each value, upright at places on x, or across in rows.

    Args:
        at: the place of each value.
        estimate: without an interval, a number.
        scale: what values are multiplied with, 100 for per cent.
        point: style of the points; the colour is that of the bars too, and ``bar`` is what else is different about those.
    """
    look = {"color": point.get("color"), "linewidth": 2.2, "alpha": 0.5} | point.pop("bar", {})
    if isinstance(estimate, Estimate):
        (ax.hlines if across else ax.vlines)(at, scale * estimate.low, scale * estimate.high, **look)
        estimate = estimate.value
    values = scale * estimate
    ax.plot(*((values, at) if across else (at, values)), **{"marker": "o", "linestyle": ""} | point)


def scatter_groups(
    ax: Axes, x: ArrayLike, y: ArrayLike, groups: ArrayLike, called: Labels = LABELS, **look: object
) -> None:
    """Points in the plane, each in the colour and with the marker of its group, a name of :data:`STYLES` or an empty string.

    Args:
        called: what the groups are called; in its order they are drawn, after those without a name.
    """
    x, y, groups = np.asarray(x), np.asarray(y), np.asarray(groups)
    for name in ("", *called):
        here = groups == name
        if here.any():
            style = {"color": COLOURS.get(name, REST), "marker": MARKERS.get(name, "o")} | look
            ax.scatter(x[here], y[here], label=called.get(name, "none of these"), **style)


def heads_by_layer(
    series: Mapping[str, Estimate | NDArray], ax: Axes, *, limits: Size | None = None, **labels: str
) -> None:
    """A point for each head over its layer, and a line through the layers' means, for one or more statistics; the legend is the page's to place.

    Args:
        series: statistic -> numbers [layer, head]; colour, marker and label go by the statistic's name, up to a comma, if it is one of :data:`STYLES` (else the next colour); the second of a name
            has a dashed line; points are hollow where the number, or the lower end of its interval, is not above 0.
        limits: of the y axis.
        labels: ``ylabel`` and ``title``.
    """
    kinds = [name.removeprefix("@").split(",")[0] for name in series]
    for place, (name, numbers) in enumerate(series.items()):
        kind, again = kinds[place], kinds[place] in kinds[:place]
        values, low = (np.asarray(getattr(numbers, part, numbers)) for part in ("value", "low"))
        layers, heads = values.shape
        x = np.arange(1, layers + 1) + 0.16 * (place - (len(series) - 1) / 2)
        spread = x[:, None] + np.linspace(-0.07, 0.07, heads)
        look = {"color": COLOURS.get(kind), "marker": MARKERS.get(kind, "o")}
        how = {"linestyle": "--", "mfc": "white"} if again else {}  # markers in the legend only
        [line] = ax.plot(x, values.mean(-1), label=LABELS.get(name, name), markersize=4, markevery=[], **look, **how)
        colour, above = line.get_color(), low.ravel() > 0
        face = {"facecolors": [colour if up else "white" for up in above], "linewidths": np.where(above, 0, 0.8)}
        ax.scatter(spread, values, s=18, alpha=0.75, zorder=3, marker=look["marker"], edgecolors=colour, **face)
    on_layers(ax, layers, ylim=limits, **labels)


MODEL_LOOKS = {
    n: {"color": COLOURS[n], "marker": MARKERS[n]} for n in ("minilm", "mpnet", "random", "shuffled", "classes")
} | dict.fromkeys(("no attention", "baseline"), LOOKS["baseline"])


def dots(
    names: Names | Labels,
    values: Points,
    *,
    looks: Iterable[Style] = (),
    xlabel: str = "accuracy",
    limits: Size | None = (0, 1),
    ax: Axes | None = None,
    apart: float = 0,
    **options: object,
) -> Figure:
    """One row a name, from top to bottom, with a point for each series and a bar for its interval; the legend is the page's to place.

    Args:
        names: of the rows, or name -> what it is called.
        values: series -> one value for each name; an :class:`Estimate` shows its interval, NaN and None nothing.
        looks: of each series, with its label if that is another. By default series that are named after a model, ``@shuffled``,
            ``no attention`` or ``baseline``, have its look, hollow from the second run of it on, and others the next of four.
        limits: of the x axis (None: as the values have it, with a line at 0).
        apart: how far below one another the points of a row are.
        options: of :func:`intervals`.
    """
    ax = ax or plt.subplots(figsize=(6.6, 0.6 + 0.3 * len(names)))[1]
    looks, others = [*looks], cycle(LOOKS["series"])
    for name in values if not looks else ():
        model = name if name in MODEL_LOOKS else name.removeprefix("@").split(" ")[0].split(",")[0]
        look = MODEL_LOOKS[model] if model in MODEL_LOOKS else next(others)
        looks.append(look | {"mfc": "white"} if look in looks else look)
    for number, ((label, points), look) in enumerate(zip(values.items(), looks, strict=True)):
        style = {"label": label, **options, **look}
        if isinstance(points, Mapping):
            points = [points.get(name) for name in names]
        for row, point in enumerate(points):
            if point is not None:
                intervals(ax, row + apart * (number - (len(values) - 1) / 2), point, across=True, **style)
                style["label"] = None  # the legend names a series once
    in_rows(ax, names.values() if isinstance(names, Mapping) else names)
    if limits is None:
        ax.axvline(0, **REFERENCE)
    else:
        ax.set_xlim(limits)
    ax.set_xlabel(xlabel)
    return ax.figure


def dot_panels(
    panels: Mapping[str, tuple[Names | Labels, Points]], size: Size, *, beside: bool = False, **options: object
) -> Figure:
    """Panels of :func:`dots`, one below the other and as high as they have rows, or one beside the other; with one legend.

    Args:
        panels: what stands on the x axis -> the rows and the values of :func:`dots`.
        size: of the figure, in inches.
        beside: whether all have the same rows.
        options: of :func:`dots`.
    """
    shape = {"ncols": len(panels), "sharey": True} if beside else {"nrows": len(panels)}
    heights = {} if beside else {"height_ratios": [len(rows) for rows, _ in panels.values()]}
    figure, axes = plt.subplots(**shape, **heights, figsize=size)
    for ax, (xlabel, (rows, values)) in zip(np.atleast_1d(axes), panels.items(), strict=True):
        dots(rows, values, xlabel=xlabel, ax=ax, **options)
    legend_below(figure.axes[0], ncols=2, fontsize=9)
    return figure


DOT = {"marker": "o", "color": "black", "markerfacecolor": "white", "markersize": 4.5}


def grid(
    ax: Axes,
    values: ArrayLike,
    *,
    scale: Size | None = None,
    words: Mapping[tuple[int, int], str] | None = None,
    marked: ArrayLike | None = None,
    mark: Style = DOT,
    every: tuple[int, int] = (1, 1),
    **text: object,
) -> AxesImage:
    """The one layer × head grid of the book, which every other is drawn with.

    Args:
        values: [layer, head], numbers (NaN: an empty cell), or names of :data:`STYLES` and of colours.
        scale: values of the lightest and the darkest shade (default: 0 and the largest); from a negative number on,
            shades run from blue through white to red.
        words, text: (layer, head) from 0 -> what is written into the cell of a number, and its style.
        marked, mark: [layer, head], cells that carry a marker, and its style.
        every: which layers and which heads have a tick.
    """
    values = np.asarray(values)
    layers, heads = values.shape
    if values.dtype.kind in "fiub":
        low, high = scale or (0, np.nanmax(values, initial=0))
        options = {"cmap": "RdBu_r" if low < 0 else "Blues", "vmin": low, "vmax": high}
        shown = np.asarray(values, np.float64)
    else:
        shown, options = np.array([[to_rgba(COLOURS.get(name, name)) for name in row] for row in values.tolist()]), {}
    image = ax.imshow(shown.swapaxes(0, 1), aspect="auto", extent=(0.5, layers + 0.5, heads + 0.5, 0.5), **options)
    if marked is not None:
        ax.plot(*(np.argwhere(marked).T + 1), linestyle="", **mark)
    for (layer, head), word in (words or {}).items():
        look = {"color": ink_on(image.to_rgba(shown[layer, head])), "fontsize": 8}
        ax.text(layer + 1, head + 1, word, **CENTRED, **look | text)
    on_layers(ax, layers, every=every[0], ylabel="head", yticks=range(1, heads + 1, every[1]))
    ax.grid(visible=False)
    return image


def thumbnails(shape: tuple[int, int], size: Size, draw: Callable[[Axes, int, int], object]) -> Figure:
    """A small picture of every head, a column for each layer.

    Args:
        shape: numbers of heads and of layers.
        size: width and height of the figure, in inches.
        draw: what draws a head: called with its axes, head and layer, from 0.
    """
    figure, axes = plt.subplots(*shape, figsize=size, squeeze=False, subplot_kw={"xticks": [], "yticks": []})
    for (head, layer), ax in np.ndenumerate(axes):
        draw(ax, head, layer)
        if head == 0:
            ax.set_title(layer + 1, fontsize=8, loc="center", weight="normal")
        if layer == 0:
            ax.set_ylabel(head + 1, fontsize=8, rotation=0, ha="right", va="center")
    figure.suptitle("layer", fontsize=9)
    figure.supylabel("head", fontsize=9)
    return figure


def token_axes(ax: Axes, tokens: Names, keys: Names = (), *, size: float = 8) -> None:
    """The axes of a map: attending tokens down the side, attended tokens (``keys``, if they are others) along the top."""
    keys = keys or tokens
    ax.set_xticks(range(len(keys)), keys, rotation=60, fontsize=size, ha="left", rotation_mode="anchor")
    ax.set_yticks(range(len(tokens)), tokens, fontsize=size)
    ax.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    ax.grid(visible=False)


def heatmap(
    matrix: ArrayLike, tokens: Names, *, ax: Axes | None = None, most: float = 0, numbers: bool = False, **labels: str
) -> Figure:
    """An attention map: the attending token (query) down the side, the attended token (key) along the top.

    Args:
        most: the weight shown in the darkest colour; default: the largest.
        numbers: write weights from 0.05 on into their cells.
        labels: ``title`` and ``ylabel``.
    """
    matrix = np.asarray(matrix)
    size = (1.2 + 0.36 * len(tokens), 1.0 + 0.32 * len(tokens))
    ax = ax or plt.subplots(figsize=size)[1]
    image = ax.imshow(matrix, cmap="Blues", vmin=0, vmax=most or matrix.max())
    token_axes(ax, tokens)
    ax.set(**{"ylabel": "attending token"} | labels)
    if numbers:
        for row, column in np.argwhere(matrix >= 0.05):
            weight = matrix[row, column]
            ink = ink_on(image.to_rgba(weight))
            ax.text(column, row, f"{weight:.2f}", color=ink, fontsize=7, **CENTRED)
    else:
        ax.figure.colorbar(image, ax=ax, shrink=0.7, label="attention")
    return ax.figure


def line_diagrams(panels: Mapping[str, tuple[Names, ArrayLike, Mapping[int, str]]], *, least: float = 0.02) -> Figure:
    """Attention as lines from the attending tokens (left) to the attended tokens (right), darker for larger weights.

    Args:
        panels: title -> tokens, map [query, key], and for chosen queries the colour of their word and their lines, of which the
            strongest to another token is the thickest.
        least: the smallest weight that is drawn.
    """
    tallest = max(len(tokens) for tokens, _, _ in panels.values())
    figure, axes = titled(panels, (2.9, 0.5 + 0.178 * tallest), columns=2, size=10.5)
    for ax, (tokens, weights, chosen) in zip(axes.flat, panels.values(), strict=False):
        weights = np.asarray(weights)
        strongest = np.where(np.eye(len(tokens), dtype=bool), -1, weights).argmax(-1)
        for query, key in np.argwhere(weights >= least).tolist():
            own = query in chosen
            width = 1.6 if not own else 3.6 if key == strongest[query] else 2.2
            look = {"linewidth": width, "alpha": float(min(1, weights[query, key] + 0.25 * own)), "zorder": 1 + own}
            ax.plot([0, 1], [query, key], color=chosen.get(query, COLOURS["cls"]), solid_capstyle="round", **look)
        for place, token in enumerate(tokens):
            look = {"color": chosen.get(place, INK), "weight": "bold" if place in chosen else "normal"}
            ax.text(-0.05, place, token, ha="right", va="center", fontsize=8, **look)
            ax.text(1.05, place, token, ha="left", va="center", fontsize=8, color=INK)
        ax.set(xlim=(-1.0, 2.0), ylim=(tallest - 0.4, -0.6))
        ax.axis("off")
    return figure


def dependency_tree(sentence: Sentence, *, highlight: Sequence[int] = (), ax: Axes | None = None) -> Figure:
    """An arc from each word to its governor, where the arrowhead is, with its relation, as attention has it; parts of speech below.

    Args:
        sentence: its governors need not make a tree; relations and parts of speech are drawn where it has some.
        highlight: words whose arc is drawn in black, the others in grey.
    """
    words, tags = sentence.words, sentence.upos or ("",) * len(sentence.words)
    relations = sentence.relations or ("",) * len(words)
    widths = np.array([max(0.55, 0.1 * max(len(w), len(t)) + 0.18) for w, t in zip(words, tags, strict=True)])
    places = np.cumsum(widths) - widths / 2
    level: dict[int, int] = {}  # how high the arc to each word is: one above all that it spans; the shortest first
    spans = {w: (min(w, g), max(w, g)) for w, g in enumerate(sentence.governors) if g >= 0}
    for word, (low, high) in sorted(spans.items(), key=lambda item: item[1][1] - item[1][0]):
        below = [height for w, height in level.items() if low <= spans[w][0] and spans[w][1] <= high]
        level[word] = 1 + max(below, default=0)
    top = max(level.values(), default=0) + 1
    ax = ax or plt.subplots(figsize=(widths.sum() + 0.2, 0.42 * top + 0.75))[1]

    for word, height in sorted(level.items(), key=lambda item: item[0] in highlight):  # black over grey
        governor = sentence.governors[word]
        start, end = places[word], places[governor] + 0.12 * np.sign(word - governor)
        colour, width = (INK, 1.8) if word in highlight else ("#777777", 1.1)
        corners = [start, start, end, end], [0.1, height, height, 0.28]
        ax.plot(*corners, color=colour, linewidth=width, solid_joinstyle="round")
        ax.plot(end, 0.22, marker="v", color=colour, markersize=4)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        ax.text((start + end) / 2, height, relations[word], **CENTRED, fontsize=8.5, color=colour, bbox=box)
    for root in (place for place, governor in zip(places, sentence.governors, strict=True) if governor < 0):
        ax.text(root, top - 0.2, "root", **CENTRED, fontsize=8.5, color=COLOURS["self"])
        ax.plot([root, root], [0.1, top - 0.5], color=COLOURS["self"], linewidth=1.1)
    for place, word, tag in zip(places, words, tags, strict=True):
        ax.text(place, -0.1, word, ha="center", va="top", fontsize=10.5)
        ax.text(place, -0.75, tag, ha="center", va="top", fontsize=7.5, color=COLOURS["self"])
    ax.set(xlim=(0, widths.sum()), ylim=(-1.2, top + 0.1))
    ax.axis("off")
    return ax.figure
