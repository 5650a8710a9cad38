"""What only chapter 01 draws."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from helpers.engine.tokens import Batch
from helpers.figures.grids import thumbnails
from helpers.figures.look import CENTRED, COLOURS


def all_heads(maps: ArrayLike, *, title: str = "") -> Figure:
    """Every head's map of one input as a grid of thumbnails: a row for each layer, a column for each head.

    Args:
        maps: [layer, head, query, key]. Each thumbnail has its own scale.
    """
    maps = np.asarray(maps)
    layers, heads = maps.shape[:2]
    size = (0.68 * heads, 0.7 * layers + 0.5)
    figure = thumbnails((layers, heads), size, lambda ax, *at: ax.imshow(maps[at], cmap="Blues", vmin=0))
    figure.suptitle(title or "head", fontsize=9)
    return figure


def input_diagram(batch: Batch) -> Figure:
    """How the first input of a batch is put together: token, number in the vocabulary, text it belongs to, position."""
    length = int(batch.lengths[0])
    types = batch.types[0, :length].tolist() if batch.types is not None else ["-"] * length
    ids = batch.ids[0, :length].tolist()
    lines = {"token": batch.tokens[0], "vocabulary id": ids, "text (type)": types, "position": range(length)}
    shades = [COLOURS[("other", "second", "first")[text + 1]] for text in batch.text[0, :length].tolist()]
    figure, ax = plt.subplots(figsize=(min(9.5, 1.1 + 0.46 * length), 1.9))
    for y, (label, cells) in enumerate(lines.items()):
        for x, (cell, shade) in enumerate(zip(cells, shades, strict=True)):
            ax.add_patch(plt.Rectangle((x, y), 0.94, 0.82, color=shade, alpha=0.28, linewidth=0))
            ax.text(x + 0.47, y + 0.42, str(cell), **CENTRED, fontsize=6.5)
        ax.text(-0.15, y + 0.42, label, ha="right", va="center", fontsize=8, weight="bold")
    ax.set(xlim=(-0.2 * length**0.5 - 2, length), ylim=(len(lines), -0.1))
    ax.axis("off")
    return figure
