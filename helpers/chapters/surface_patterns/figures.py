"""What only chapter 02 draws."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from helpers.figures.grids import grid
from helpers.figures.look import COLOURS, LABELS, PALE, squares


def specialist_map(roles: Mapping[tuple[int, int], str], shape: tuple[int, int]) -> Figure:
    """The layer × head grid with the specialists in the colour of their role; layers on x.

    Args:
        roles: (layer, head) -> role, from 0.
        shape: numbers of layers and heads.
    """
    layers, heads = shape
    figure, ax = plt.subplots(figsize=(1.4 + 0.44 * layers + 1.8, 1 + 0.24 * heads))
    names = [[roles.get((layer, head), "") for head in range(heads)] for layer in range(layers)]
    grid(ax, names, colours=COLOURS | {"": PALE}, apart=True)
    shown = {LABELS[role]: COLOURS[role] for role in LABELS if role in roles.values()}
    handles = squares(shown | {"no specialist": PALE})
    ax.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
