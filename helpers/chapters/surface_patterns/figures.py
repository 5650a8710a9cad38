"""What only chapter 02 draws."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from helpers.figures.look import COLOURS, LABELS


def specialist_map(roles: Mapping[tuple[int, int], str], shape: tuple[int, int]) -> Figure:
    """The layer × head grid with the specialists in the colour of their role; layers on x.

    Args:
        roles: (layer, head) -> role, from 0.
        shape: numbers of layers and heads.
    """
    layers, heads = shape
    figure, ax = plt.subplots(figsize=(1.4 + 0.44 * layers + 1.8, 1 + 0.24 * heads))
    for layer, head in np.ndindex(shape):
        role = roles.get((layer, head))
        ax.add_patch(plt.Rectangle((layer + 0.55, head + 0.55), 0.9, 0.9, color=COLOURS[role] if role else "#eeeeee"))
    ax.set(
        xlim=(0.4, layers + 0.6),
        ylim=(heads + 0.6, 0.4),
        xlabel="layer",
        ylabel="head",
        xticks=range(1, layers + 1),
        yticks=range(1, heads + 1),
    )
    ax.grid(visible=False)
    shown = [role for role in LABELS if role in roles.values()]
    handles = [
        Line2D([], [], marker="s", linestyle="", markersize=9, color=COLOURS[r], label=LABELS[r]) for r in shown
    ]
    handles.append(Line2D([], [], marker="s", linestyle="", markersize=9, color="#eeeeee", label="no specialist"))
    ax.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
