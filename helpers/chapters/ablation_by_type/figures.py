"""Chapter 10: edited maps, and what ablations change."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from helpers.engine.estimates import Estimate
from helpers.figures.look import COLOURS, LABELS, TYPE_MARKERS, TYPE_NAMES

CONTROL = {"color": COLOURS["random"], "marker": "D", "linestyle": "", "markerfacecolor": "none"}


def edited_maps(maps: Mapping[str, ArrayLike], tokens: Sequence[str], borders: Sequence[int] = ()) -> Figure:
    """One head's map under several edits, on one scale; thin lines where a new sentence or a special token begins.

    Args:
        maps: title -> [query, key].
        borders: places before which a line is drawn.
    """
    columns = min(3, len(maps))
    rows, count = -(-len(maps) // columns), len(tokens)
    figure, axes = plt.subplots(
        rows, columns, figsize=(7.6, 2.15 * rows + 0.75), squeeze=False, sharex=True, sharey=True
    )
    largest = float(np.max(np.asarray(next(iter(maps.values())))))
    for ax in axes.ravel()[len(maps) :]:
        ax.axis("off")
    for ax, (title, weights) in zip(axes.ravel(), maps.items(), strict=False):
        image = ax.imshow(np.asarray(weights), cmap="Blues", vmin=0, vmax=largest)
        for place in borders:
            ax.axhline(place - 0.5, color=COLOURS["next"], linewidth=0.8)
            ax.axvline(place - 0.5, color=COLOURS["next"], linewidth=0.8)
        ax.set_title(title, fontsize=9)
        ax.set_xticks(range(count), tokens, rotation=90, fontsize=6)
        ax.set_yticks(range(count), tokens, fontsize=6)
        ax.tick_params(length=0)
        ax.grid(visible=False)
    for ax in axes[:, 0]:
        ax.set_ylabel("attending token", fontsize=8)
    figure.colorbar(image, ax=axes, shrink=0.6, label="attention weight")
    return figure


def ablation_rows(
    panels: Mapping[str, Mapping[str, tuple[Estimate, float, ArrayLike]]],
    colours: Mapping[str, str],
    *,
    xlabel: str,
    cuts: Sequence[int] = (),
) -> Figure:
    """Rows of a table as points with intervals, and the draws of their control as open diamonds; a panel for each run.

    Args:
        panels: title -> (row -> (ours on all questions, ours on those of the control, [draw] of the control)); fractions,
            shown as percentage points.
        colours: row -> colour.
        cuts: rows above which a thin line separates groups, counted from 0.
    """
    names = list(next(iter(panels.values())))
    figure, axes = plt.subplots(
        1, len(panels), figsize=(7.8, 0.9 + 0.3 * len(names)), sharey=True, sharex=True, squeeze=False
    )
    for ax, (title, shown) in zip(axes[0], panels.items(), strict=True):
        for place, name in enumerate(names):
            one, same, draws = shown[name]
            draws = np.atleast_1d(np.asarray(draws, np.float64))
            ax.plot(100 * draws, np.full(len(draws), place), **CONTROL, markersize=4.5, markeredgewidth=0.9, zorder=2)
            ax.plot([100 * one.low, 100 * one.high], [place, place], color=colours[name], linewidth=2.4, alpha=0.55)
            ax.plot(100 * one.value, place, "o", color=colours[name], markersize=6, zorder=3)
            ax.plot(100 * same, place, "o", color=colours[name], markersize=6, markerfacecolor="white", zorder=2)
        for cut in cuts:
            ax.axhline(cut - 0.5, color="#bbbbbb", linewidth=0.8)
        ax.axvline(0, color=COLOURS["self"], linewidth=1, linestyle=":")
        ax.set_title(title, fontsize=9.5)
        ax.set_xlabel(xlabel, fontsize=9)
        ax.grid(axis="y", visible=False)
    axes[0, 0].set_yticks(range(len(names)), names, fontsize=8.5)
    axes[0, 0].set_ylim(len(names) - 0.4, -0.6)
    handles = [
        Line2D([], [], marker="o", color="#666666", linewidth=2.4, label="the type, with 95 % interval"),
        Line2D(
            [],
            [],
            marker="o",
            color="#666666",
            linestyle="",
            markerfacecolor="white",
            label="on the control's questions",
        ),
        Line2D([], [], **CONTROL, label="types dealt anew within each layer"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def heads_and_loss(
    sizes: Sequence[int],
    ladder: ArrayLike,
    points: Mapping[str, tuple[int, Estimate, ArrayLike]],
    *,
    ylabel: str,
    floor: float | None = None,
) -> Figure:
    """Change against the number of heads pruned: grey lines for random heads from anywhere, a point for each type.

    Args:
        sizes, ladder: numbers of heads; [size, draw], fractions, shown as percentage points.
        points: type -> (heads, change, [draw] of the control with the same heads in each layer).
        floor: the change when every head is pruned.
    """
    figure, ax = plt.subplots(figsize=(7.2, 4.0))
    for number, line in enumerate(100 * np.asarray(ladder).T):
        ax.plot(
            [0, *sizes],
            [0, *line],
            color=COLOURS["other"],
            linewidth=1.2,
            marker=".",
            zorder=1,
            label="random heads from anywhere" if number == 0 else None,
        )
    for name, (heads, change, draws) in points.items():
        colour = COLOURS[name]
        draws = 100 * np.atleast_1d(np.asarray(draws, np.float64))
        ax.plot(np.full(len(draws), heads + 0.7), draws, **CONTROL, markersize=4.5, zorder=2)
        ax.plot([heads, heads], [100 * change.low, 100 * change.high], color=colour, linewidth=2.4, alpha=0.6)
        ax.plot(
            heads,
            100 * change.value,
            TYPE_MARKERS[name],
            color=colour,
            markeredgecolor="#333333",
            markersize=8,
            label=LABELS[name],
            zorder=3,
        )
    if floor is not None:
        ax.axhline(100 * floor, color=COLOURS["self"], linewidth=1, linestyle="--", label="every head pruned")
    ax.plot([], [], **CONTROL, markersize=4.5, label="same number in each layer")
    ax.set(xlabel="heads pruned", ylabel=ylabel)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    return figure


TURN_COLOURS = (COLOURS["sep"], "#e3e3e3", COLOURS["cls"])
TURN_LABELS = ("answered worse", "as before", "answered better")


def turned_bars(rows: Mapping[str, ArrayLike], *, cuts: Sequence[int] = ()) -> Figure:
    """For each row the share of questions that are answered worse, as before, and better, as stacked bars.

    Args:
        rows: row -> [3], fractions.
        cuts: rows above which a thin line separates groups, counted from 0.
    """
    figure, ax = plt.subplots(figsize=(7.2, 0.9 + 0.24 * len(rows)))
    _stack(ax, [100 * np.asarray(v, np.float64) for v in rows.values()], TURN_COLOURS, TURN_LABELS)
    for cut in cuts:
        ax.axhline(cut - 0.5, color="#888888", linewidth=0.8)
    ax.set_yticks(range(len(rows)), list(rows), fontsize=8)
    ax.set(xlabel="share of questions (%)", xlim=(0, 100), ylim=(len(rows) - 0.4, -0.6))
    ax.grid(visible=False)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)
    return figure


READING_STYLES = {
    "as in the table": ("o", COLOURS["cls"]),
    "renormalised": ("s", COLOURS["next"]),
    "special tokens apart": ("^", COLOURS["stop"]),
    "question and passage": ("v", COLOURS["previous"]),
}


def readings(rows: Mapping[str, Mapping[str, Estimate]], *, xlabel: str, cuts: Sequence[int] = ()) -> Figure:
    """Each row under several readings of "sentence" and "removing": a marker with interval for each.

    Args:
        rows: row -> (reading, a key of :data:`READING_STYLES` -> estimate), fractions, shown as percentage points.
        cuts: rows above which a thin line separates groups, counted from 0.
    """
    figure, ax = plt.subplots(figsize=(7.2, 1.1 + 0.42 * len(rows)))
    for place, shown in enumerate(rows.values()):
        for number, (name, one) in enumerate(shown.items()):
            marker, colour = READING_STYLES[name]
            y = place + 0.17 * (number - (len(shown) - 1) / 2)
            ax.plot([100 * one.low, 100 * one.high], [y, y], color=colour, linewidth=2, alpha=0.5)
            ax.plot(100 * one.value, y, marker, color=colour, markersize=5.5, label=name if place == 0 else None)
    for cut in cuts:
        ax.axhline(cut - 0.5, color="#bbbbbb", linewidth=0.8)
    ax.axvline(0, color=COLOURS["self"], linewidth=1, linestyle=":")
    ax.set_yticks(range(len(rows)), list(rows), fontsize=8.5)
    ax.set(xlabel=xlabel, ylim=(len(rows) - 0.4, -0.6))
    ax.grid(axis="y", visible=False)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8)
    return figure


PLACE_SHADES = {"special": COLOURS["cls"], "intra": COLOURS["next"], "inter": COLOURS["broad"]}
PLACE_WORDS = {"special": "special tokens", "intra": "own sentence", "inter": "other sentences"}


def attention_by_place(shares: Mapping[str, ArrayLike], places: Sequence[str]) -> Figure:
    """For each type, how its attention is shared out among places, as a stacked bar.

    Args:
        shares: type -> [place], fractions that sum to 1.
        places: keys of :data:`PLACE_WORDS`.
    """
    figure, ax = plt.subplots(figsize=(7.2, 0.9 + 0.34 * len(shares)))
    _stack(
        ax,
        [100 * np.asarray(v) for v in shares.values()],
        [PLACE_SHADES[p] for p in places],
        [PLACE_WORDS[p] for p in places],
    )
    ax.set_yticks(range(len(shares)), [LABELS[name] if name in TYPE_NAMES else name for name in shares])
    ax.set(xlabel="share of attention (%)", xlim=(0, 100), ylim=(len(shares) - 0.4, -0.6))
    ax.grid(visible=False)
    figure.legend(loc="outside lower center", ncols=len(places), fontsize=8)
    return figure


def _stack(ax: Axes, rows: Sequence[ArrayLike], colours: Sequence[str], labels: Sequence[str]) -> None:
    left = np.zeros(len(rows))
    for part, (colour, label) in enumerate(zip(colours, labels, strict=True)):
        sizes = np.array([np.asarray(row)[part] for row in rows])
        ax.barh(range(len(rows)), sizes, left=left, color=colour, label=label, height=0.72)
        for place, (start, size) in enumerate(zip(left, sizes, strict=True)):
            if size >= 4:
                ax.text(start + size / 2, place, f"{size:.0f}", ha="center", va="center", fontsize=8, color="#111111")
        left += sizes
