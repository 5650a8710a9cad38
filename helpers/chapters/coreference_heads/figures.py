"""What only chapter 05 draws."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from helpers.figures.look import COLOURS, HEAD_COLOURS


def mention_links(
    panels: Mapping[str, tuple[Sequence[str], Mapping[int, str], Sequence[tuple[int, int, bool]]]], *, width: int = 84
) -> Figure:
    """Texts with the head words of their mentions boxed, one colour a chain, and arrows from mentions to chosen antecedents.

    Args:
        panels: title -> (words, word -> its chain, arrows). An arrow is (from, to, right), in words; it is solid and green
            when right, dashed and orange when wrong.
        width: characters in a line.
    """
    placed = {title: _flow(words, width) for title, (words, _, _) in panels.items()}
    heights = [1.2 + lines[-1][1] for lines in placed.values()]
    figure, axes = plt.subplots(
        len(panels), figsize=(0.075 * (width + 5), 0.46 * sum(heights)), height_ratios=heights, squeeze=False
    )
    for ax, (title, (words, chains, arrows)) in zip(axes[:, 0], panels.items(), strict=True):
        spots, names = placed[title], list(dict.fromkeys(chains.values()))
        for word, ((x, y), text) in enumerate(zip(spots, words, strict=True)):
            colour = HEAD_COLOURS[names.index(chains[word]) % len(HEAD_COLOURS)] if word in chains else "none"
            ax.text(
                x,
                y,
                text,
                ha="left",
                va="center",
                fontsize=8.6,
                family="DejaVu Sans Mono",
                bbox={"boxstyle": "round,pad=0.12", "facecolor": colour, "edgecolor": colour, "alpha": 0.28},
            )
        for start, end, right in arrows:
            ends = [(spots[w][0] + len(words[w]) / 2, spots[w][1] - 0.24) for w in (start, end)]
            same = spots[start][1] == spots[end][1]
            bend = min(0.35, 3.2 / (1 + abs(ends[0][0] - ends[1][0]))) if same else 0.08
            ax.annotate(
                "",
                ends[1],
                ends[0],
                arrowprops={
                    "arrowstyle": "-|>",
                    "connectionstyle": f"arc3,rad={bend if ends[0][0] > ends[1][0] else -bend}",
                    "color": COLOURS["stop"] if right else COLOURS["first"],
                    "linestyle": "-" if right else (0, (3, 2)),
                    "linewidth": 1.3,
                    "shrinkA": 1,
                    "shrinkB": 1,
                },
            )
        ax.set(xlim=(-1, width + 4), ylim=(spots[-1][1] + 0.6, -0.9))
        ax.set_title(title, fontsize=9)
        ax.axis("off")
    return figure


def _flow(words: Sequence[str], width: int) -> list[tuple[int, int]]:
    """Column and line at which each word begins, in characters and lines."""
    spots, column, line = [], 0, 0
    for word in words:
        if column and column + len(word) > width:
            column, line = 0, line + 1
        spots.append((column, line))
        column += len(word) + 1
    return spots
