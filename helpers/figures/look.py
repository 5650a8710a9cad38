"""The look of every figure: colours, markers, names of heads."""

from importlib.resources import files

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

# Okabe and Ito's colours, which colour-blind readers can tell apart; one meaning each in the whole book
COLOURS = {
    "cls": "#0072B2",
    "sep": "#D55E00",
    "stop": "#009E73",
    "other": "#999999",
    "previous": "#CC79A7",
    "self": "#555555",
    "next": "#E69F00",
    "broad": "#56B4E9",
    "entropy": "#44546A",
    "entropy_from_cls": "#44546A",
    "sep_from_sep": "#D55E00",
    "sep_from_other": "#999999",
    "minilm": "#332288",
    "mpnet": "#882255",
    "random": "#999933",
    "first": "#D55E00",
    "second": "#0072B2",
    # the four types of chapter 08: apart from one another in hue and in grey
    "dense": "#EECC66",
    "diagonal": "#2F6BA8",
    "dense_vertical": "#CC6677",
    "vertical": "#4A1030",
    # the other types of chapter 09, next to these two
    "vertical_diagonal": "#B78AC0",
    "block": "#117733",
    "heterogeneous": "#BBBBBB",
}
MARKERS = {"cls": "o", "sep": "s", "stop": "^", "previous": "v", "self": "D", "next": "^", "sep_from_sep": "s"}
LABELS = {
    "cls": "[CLS]",
    "sep": "[SEP]",
    "stop": ". or ,",
    "other": "other tokens",
    "previous": "previous token",
    "self": "same token",
    "next": "next token",
    "broad": "broad",
    "entropy": "mean over heads",
    "entropy_from_cls": "mean over heads",
    "sep_from_sep": "from [SEP]",
    "sep_from_other": "from other tokens",
    "dense": "dense",
    "diagonal": "diagonal",
    "dense_vertical": "dense & vertical",
    "vertical": "vertical",
    "vertical_diagonal": "vertical + diagonal",
    "block": "block",
    "heterogeneous": "heterogeneous",
}
# tab10 repeats for heads 11 and 12; these twelve do not
HEAD_COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#8C564B",
    "#6A3D9A",
    "#7F7F7F",
    "#B2182B",
    "#1B7837",
    "#8C6D31",
)


def use_style() -> None:
    """Switch to the book's style; every chapter calls it once."""
    plt.style.use(str(files("helpers.figures") / "book.mplstyle"))
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:
        return
    set_matplotlib_formats("retina", metadata={"Software": None})


def head_name(layer: int, head: int) -> str:
    """The field's name of a head, layer-head, both from 1: ``head_name(7, 9)`` is ``"8-10"``."""
    return f"{layer + 1}-{head + 1}"


def panels(columns: int, *, rows: int = 1, width: float = 3.8, height: float = 3.3) -> tuple[Figure, NDArray]:
    """An empty figure of panels side by side, as an array of axes."""
    figure, axes = plt.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False)
    return figure, axes if rows > 1 else axes[0]


def layer_colours(layers: int) -> list:
    """A colour for each layer, from dark (next to the embeddings) to light."""
    return [plt.get_cmap("viridis")(x) for x in np.linspace(0.0, 0.95, layers)]


TYPE_NAMES = ("dense", "diagonal", "dense_vertical", "vertical")


TYPE_MARKERS = dict(zip(TYPE_NAMES, "osD^", strict=True))
