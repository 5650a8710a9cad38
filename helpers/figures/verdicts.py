"""The scoreboard: how many findings hold, by chapter."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

# dark to light, so that the order can be read in grey; the last three have no colour because there is nothing to say
VERDICT_STYLES = {
    "holds": {"facecolor": "#1B4965", "edgecolor": "#1B4965"},
    "in part": {"facecolor": "#8FB8D0", "edgecolor": "#1B4965"},
    "fails": {"facecolor": "#F3E3C3", "edgecolor": "#8A6D2F", "hatch": "///"},
    "not comparable": {"facecolor": "white", "edgecolor": "#999999"},
    "no number": {"facecolor": "white", "edgecolor": "#999999", "linestyle": "--"},
    "not recorded yet": {"facecolor": "white", "edgecolor": "#999999", "linestyle": ":"},
}


def verdict_bars(counts: Mapping[str, Mapping[str, int]], *, order: Sequence[str] = tuple(VERDICT_STYLES)) -> Figure:
    """A bar for each chapter, cut by verdict, with the counts written in.

    Args:
        counts: name of the chapter -> verdict -> number of findings.
        order: of the verdicts, from the left; those that never occur are left out.
    """
    order = [verdict for verdict in order if any(found.get(verdict) for found in counts.values())]
    figure, ax = plt.subplots(figsize=(7.2, 0.36 * len(counts) + 1.1))
    for row, found in enumerate(counts.values()):
        left = 0
        for verdict in order:
            width = found.get(verdict, 0)
            if not width:
                continue
            ax.barh(row, width, 0.72, left, linewidth=0.8, **VERDICT_STYLES[verdict])
            dark = verdict == "holds"
            ax.text(left + width / 2, row, str(width), ha="center", va="center", fontsize=8.5,
                    color="white" if dark else "#222222",
                    bbox=None if dark else {"facecolor": VERDICT_STYLES[verdict]["facecolor"], "edgecolor": "none", "pad": 1.2})  # fmt: skip
            left += width
    ax.set_yticks(range(len(counts)), counts)
    ax.invert_yaxis()
    ax.set_xlabel("findings of the papers")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(axis="y", visible=False)
    handles = [plt.Rectangle((0, 0), 1, 1, **VERDICT_STYLES[verdict], label=verdict) for verdict in order]
    ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(order))
    return figure
