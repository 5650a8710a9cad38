"""The look of every figure: colours, markers, names; panels, legends and axes that every figure shares."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import NDArray

Number = float | int
Size = tuple[Number, Number]
Style = Mapping[str, object]

# Okabe and Ito's colours, which colour-blind readers can tell apart; one meaning each in the whole book
STYLES = {
    "cls": ("#0072B2", "[CLS]", "o"),
    "sep": ("#D55E00", "[SEP]", "s"),
    "stop": ("#009E73", ". or ,", "^"),
    "comma": ("#66C2A5", "comma", "o"),
    "period": ("#009E73", "full stop", "o"),
    "other": ("#999999", "other tokens", "o"),
    "previous": ("#CC79A7", "previous token", "v"),
    "self": ("#555555", "same token", "D"),
    "next": ("#E69F00", "next token", "^"),
    "broad": ("#56B4E9", "broad", "o"),
    "entropy": ("#44546A", "mean over heads", "o"),
    "entropy_from_cls": ("#44546A", "mean over heads", "o"),
    "sep_from_sep": ("#D55E00", "from [SEP]", "s"),
    "sep_from_other": ("#999999", "from other tokens", "o"),
    # what several words can be to the word that attends
    "antecedent": ("#009E73", "antecedents", "o"),
    "partner": ("#009E73", "its partner in the tree", "o"),
    "object": ("#AA4499", "objects", "o"),
    "later": ("#56B4E9", "later in its chain", "o"),
    "mention": ("#E69F00", "other mentions", "o"),
    "special": ("#0072B2", "special tokens", "o"),
    "intra": ("#E69F00", "own sentence", "o"),
    "inter": ("#56B4E9", "other sentences", "o"),
    "minilm": ("#332288", "minilm", "o"),
    "mpnet": ("#882255", "mpnet", "s"),
    "random": ("#999933", "random", "D"),
    "shuffled": ("#44AA99", "shuffled scores", "v"),
    "first": ("#D55E00", "first", "o"),
    "second": ("#0072B2", "second", "o"),
    # the four types of chapter 08: apart from one another in hue and in grey
    "dense": ("#EECC66", "dense", "o"),
    "diagonal": ("#2F6BA8", "diagonal", "s"),
    "dense_vertical": ("#CC6677", "dense & vertical", "D"),
    "vertical": ("#4A1030", "vertical", "^"),
    # the other types of chapter 09, next to these two
    "vertical_diagonal": ("#B78AC0", "vertical + diagonal", "o"),
    "block": ("#117733", "block", "D"),
    "heterogeneous": ("#BBBBBB", "heterogeneous", "x"),
}
"""Of each thing that is drawn: colour, name, marker."""

COLOURS, LABELS, MARKERS = ({name: style[n] for name, style in STYLES.items()} for n in range(3))
TYPE_NAMES = ("dense", "diagonal", "dense_vertical", "vertical")
"""Guan et al.'s four types of heads, in the order of every table and legend."""
# tab10 repeats for heads 11 and 12; these twelve do not
HEAD_COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#8C564B", "#6A3D9A", "#7F7F7F", "#B2182B", "#1B7837", "#8C6D31"),
)
INK = "#222222"
PALE = "#eeeeee"  # of what has no meaning of its own
REFERENCE = {"color": COLOURS["self"], "linewidth": 1, "linestyle": ":"}
"""A line that values are compared with."""
CENTRED = {"ha": "center", "va": "center"}


def use_style() -> None:
    """Switch to the book's style; every chapter calls it once."""
    plt.style.use(str(files("helpers.figures") / "book.mplstyle"))
    if "inline" not in (backend := matplotlib.get_backend()):
        return
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("retina", metadata={"Software": None})
    plt.switch_backend(backend)  # pyplot installs its hook here, otherwise with the first figure
    plt.uninstall_repl_displayhook()  # it would draw every figure once more than is shown, for windows that there are none of


def head_name(layer: int, head: int) -> str:
    """The field's name of a head, layer-head, both from 1: ``head_name(7, 9)`` is ``"8-10"``."""
    return f"{layer + 1}-{head + 1}"


def group_names(fits: Mapping[str, bool]) -> dict[str, str]:
    """What each of four groups of heads is called: the type that it stands for where it fits, else only "group" and its number.

    Args:
        fits: type -> whether the group that stands for it has the marks of its name (``distance_features.Types.fits``).
    """
    return {name: LABELS[name] if fits[name] else f"group {n}" for n, name in enumerate(TYPE_NAMES, 1)}


def layer_colours(layers: int) -> list:
    """A colour for each layer, from dark (next to the embeddings) to light."""
    return [plt.get_cmap("viridis")(x) for x in np.linspace(0.0, 0.95, layers)]


def ink_on(colour: object) -> str:
    """The colour of text that can be read on a colour, itself on white: white where that is dark."""
    *rgb, opacity = to_rgba(colour)
    return "white" if 1 - opacity + opacity * np.dot(rgb, (0.299, 0.587, 0.114)) < 0.5 else INK


def panels(columns: int, *, width: Number = 3.8, height: Number = 3.3) -> tuple[Figure, NDArray]:
    """An empty figure of panels side by side, as an array of axes."""
    figure, axes = plt.subplots(1, columns, figsize=(width * columns, height), squeeze=False)
    return figure, axes[0]


def titled(
    titles: Iterable[str], each: Size, *, columns: int = 0, margin: Size = (0, 0), size: Number = 9, **options: object
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


def outer_labels(axes: NDArray, xlabel: str = "", ylabel: str = "", **style: object) -> None:
    """Label the left panels and, of each column, the lowest that is in use, and no others."""
    for ax in axes.flat:
        ax.set(xlabel="", ylabel="")
    for ax in axes[:, 0]:
        ax.set_ylabel(ylabel, **style)
    for column in axes.T:
        lowest = [ax for ax in column if ax.axison][-1]
        lowest.set_xlabel(xlabel, **style)
        lowest.tick_params(labelbottom=True)


def on_layers(ax: Axes, layers: int, *, every: int = 1, **settings: object) -> None:
    """Layers on x, from 1."""
    ax.set(xlabel="layer", xticks=range(1, layers + 1, every), **settings)
    ax.grid(axis="x", visible=False)


def logarithmic(axis: Axis) -> None:
    """A logarithmic scale with plain numbers: in this style a dollar sign is a dollar sign, and no number is set as mathematics.

    A lower limit that has no logarithm, as of an axis that began at 0, becomes one a little below the smallest of the data.
    """
    axes, name, direction = axis.axes, axis.axis_name, "xy".index(axis.axis_name)
    axes.set(**{f"{name}scale": "log"})
    if axis.get_view_interval()[0] <= 0:
        least, most = axes.dataLim.minpos[direction], axes.dataLim.max[direction]
        axes.set(**{f"{name}lim": (least * (least / most) ** 0.05, None)})
    axis.set_major_locator(LogLocator(subs=(1, 3)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def in_rows(ax: Axes, names: Iterable[str], *, size: Number | None = None, margin: float = 0.5) -> None:
    """Names down the side, the first on top."""
    names = list(names)
    ax.set_yticks(range(len(names)), names, fontsize=size)
    ax.set_ylim(len(names) - 1 + margin, -margin)


def squares(colours: Mapping[str, object] | Sequence[str]) -> list[Line2D]:
    """Entries of a legend: a square for each label and its colour, or for each name of :data:`STYLES`."""
    if not isinstance(colours, Mapping):
        colours = {LABELS[name]: COLOURS[name] for name in colours}
    style = {"marker": "s", "linestyle": "", "markersize": 8}
    return [Line2D([], [], color=colour, label=label, **style) for label, colour in colours.items()]


def legend_beside(ax: Axes, **options: object) -> Legend:
    """The legend to the right of a panel."""
    return ax.legend(**{"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} | options)


def legend_below(ax: Axes, **options: object) -> Legend:
    """One legend for all panels, below them; its entries are those of one panel."""
    where = {"loc": "outside lower center", "fontsize": 8}
    return ax.figure.legend(*ax.get_legend_handles_labels(), **where | options)
