"""What only chapter 05 draws."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from helpers.plots import COLOURS, HEAD_COLOURS, Names, Points, dots, flow, legend_beside, line_diagrams, titled

WIDTH = 84  # characters in a line
ARROW = {"arrowstyle": "-|>", "linewidth": 1.3, "shrinkA": 1, "shrinkB": 1}
RIGHT = {"color": COLOURS["stop"], "linestyle": "-"}
WRONG = {"color": COLOURS["first"], "linestyle": (0, (3, 2))}


def mention_links(panels: Mapping[str, tuple[Names, Mapping[int, str], Sequence[tuple[int, int, bool]]]]) -> Figure:
    """Texts with the head words of their mentions boxed, one colour a chain, and arrows from mentions to chosen antecedents.

    Args:
        panels: title -> (words, word -> its chain, arrows). An arrow is (from, to, right), in words; it is solid and green
            when right, dashed and orange when wrong.
    """
    placed = {title: flow(words, WIDTH) for title, (words, _, _) in panels.items()}
    heights = [1.2 + spots[-1][1] for spots in placed.values()]
    size = (0.075 * (WIDTH + 5), 0.46 * sum(heights) / len(heights))
    figure, axes = titled(panels, size, columns=1, height_ratios=heights)
    for ax, (title, (words, chains, arrows)) in zip(axes.flat, panels.items(), strict=True):
        spots, names = placed[title], list(dict.fromkeys(chains.values()))
        for word, ((x, y), text) in enumerate(zip(spots, words, strict=True)):
            colour = HEAD_COLOURS[names.index(chains[word]) % len(HEAD_COLOURS)] if word in chains else "none"
            box = {"boxstyle": "round,pad=0.12", "facecolor": colour, "edgecolor": colour, "alpha": 0.28}
            ax.text(x, y, text, va="center", fontsize=8.6, family="DejaVu Sans Mono", bbox=box)
        for start, end, right in arrows:
            (x, y), (to_x, to_y) = ((spots[w][0] + len(words[w]) / 2, spots[w][1] - 0.24) for w in (start, end))
            bend = min(0.35, 3.2 / (1 + abs(x - to_x))) if y == to_y else 0.08
            arrow = ARROW | (RIGHT if right else WRONG)
            arrow["connectionstyle"] = f"arc3,rad={bend if x > to_x else -bend}"
            ax.annotate("", (to_x, to_y), (x, y), arrowprops=arrow)
        ax.set(xlim=(-1, WIDTH + 4), ylim=(spots[-1][1] + 0.6, -0.9))
        ax.axis("off")
    return figure


def looks(panels: Mapping[str, tuple[Names, NDArray, Sequence[int]]]) -> Figure:
    """The lines of a few tokens to all tokens, in each panel.

    Args:
        panels: title -> (tokens, map [query, key], the tokens whose rows are drawn).
    """
    drawn = {}
    for title, (words, weights, asked) in panels.items():
        kept = np.zeros_like(weights)
        kept[asked] = weights[asked]
        drawn[title] = words, kept, dict.fromkeys(asked, COLOURS["antecedent"])
    return line_diagrams(drawn)


def beside(panels: Mapping[str, tuple[Names, Points]]) -> Figure:
    """Rows with points and intervals, a panel for each title, with one legend.

    Args:
        panels: title -> (names of rows, series -> a value for each row); all have the same series.
    """
    most = max(len(names) for names, _ in panels.values())
    figure, axes = titled(panels, (3.2, 1.0 + 0.34 * most))
    for ax, (names, series) in zip(axes.flat, panels.values(), strict=True):
        dots(names, series, ax=ax)
        ax.get_legend().remove()
    legend_beside(axes.flat[-1])
    return figure
