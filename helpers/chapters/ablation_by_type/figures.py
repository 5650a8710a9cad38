"""Chapter 10: edited maps, and what ablations change."""

from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from helpers import views
from helpers.plots import (
    COLOURS,
    INK,
    LABELS,
    MARKERS,
    REFERENCE,
    TYPE_NAMES,
    grid,
    in_rows,
    intervals,
    legend_below,
    named,
    outer_labels,
    references,
    squares,
    stacked,
    titled,
    token_axes,
)
from helpers.stats import Estimate

CHANGE = "change of F1 (points)"
CONTROL = {"color": COLOURS["random"], "marker": "D", "linestyle": "", "markerfacecolor": "none", "markersize": 4.5}
CITED = {"color": INK, "marker": "x", "linestyle": "", "markersize": 6, "markeredgewidth": 1.6}
MANY = 20
"""Draws that are drawn one by one; more of them are small and pale."""
BELOW = 0.26
"""How far below its row, of height 1, a control is drawn, so that neither hides the other."""


def edited_maps(maps: Mapping[str, ArrayLike], tokens: Sequence[str], borders: Sequence[int] = ()) -> Figure:
    """One head's map under several edits, three in a row and on one scale; thin lines where a new sentence or a special token begins.

    Args:
        maps: title -> [query, key].
        borders: places before which a line is drawn.
    """
    columns = min(3, len(maps))
    width, few = 7.6 / columns, columns < 3
    size = (width, 0.85 * width)
    figure, axes = titled(maps, size, columns=columns, margin=(0, 0.75), sharex=True, sharey=True)
    largest = max(float(np.max(weights)) for weights in maps.values())
    for ax, weights in zip(axes.flat, maps.values(), strict=False):
        image = ax.imshow(np.asarray(weights), cmap="Blues", vmin=0, vmax=largest)
        for place in borders:
            ax.axhline(place - 0.5, color=COLOURS["next"], linewidth=0.8)
            ax.axvline(place - 0.5, color=COLOURS["next"], linewidth=0.8)
        token_axes(ax, tokens, size=8 if few else 6, rotation=90, top=False)
    for ax in axes[:, 0]:
        ax.set_ylabel("attending token", fontsize=8)
    figure.colorbar(image, ax=axes, shrink=0.6, label="attention weight")
    return figure


def ablation_rows(
    panels: Mapping[str, Mapping[str, tuple[Estimate, float, ArrayLike]]],
    colours: Mapping[str, str],
    cuts: Sequence[int],
    cited: Mapping[str, float] | None = None,
) -> Figure:
    """Rows of a table as points with intervals, and just below them the draws of their control as open diamonds; a panel for each run.

    Args:
        panels: title -> (row -> (ours on all questions, ours on those of the control, [draw] of the control)); fractions,
            shown as percentage points.
        colours: row -> colour.
        cuts: rows above which a thin line separates groups, counted from 0.
        cited: row -> the change that a paper reports, in points: crosses.
    """
    names = list(next(iter(panels.values())))
    size = (7.8 / len(panels), 0.9 + 0.36 * len(names))
    figure, axes = titled(panels, size, size=9.5, sharey=True, sharex=True)
    for ax, shown in zip(axes.flat, panels.values(), strict=True):
        for place, name in enumerate(names):
            one, same, draws = shown[name]
            draws = np.atleast_1d(np.asarray(draws, np.float64))
            many = {"alpha": 0.3, "markersize": 3.5} if len(draws) > MANY else {}
            ax.plot(100 * draws, np.full(len(draws), place + BELOW), **CONTROL | many, markeredgewidth=0.9, zorder=2)
            bar = {"linewidth": 2.4, "alpha": 0.55}
            intervals(ax, place, one, across=True, scale=100, color=colours[name], bar=bar, zorder=3)
            ax.plot(100 * same, place, "o", color=colours[name], markerfacecolor="white", zorder=2)
            if cited:
                ax.plot(cited[name], place, **CITED, zorder=4)
        ax.axvline(0, **REFERENCE)
        ax.set_xlabel(CHANGE, fontsize=9)
        _rows(ax, names, cuts, size=8.5)
    grey = {"marker": "o", "color": "#666666"}
    handles = [
        Line2D([], [], **grey, linewidth=2.4, label="the heads named, with 95 % interval"),
        Line2D([], [], **grey, linestyle="", markerfacecolor="white", label="the same heads on the deals' questions"),
        Line2D([], [], **CONTROL, label="heads shuffled within each layer"),
    ]
    if cited:
        handles.append(Line2D([], [], **CITED, label="BERT-large, in the paper"))
    figure.legend(handles=handles, loc="outside lower center", ncols=2 if cited else 3, fontsize=8)
    return figure


def without_heads(names: ArrayLike, gone: Mapping[str, ArrayLike], *, called: Mapping[str, str] = LABELS) -> Figure:
    """The heads of a model in the colours of their types, a grid for each answer; heads that are gone are white with a cross.

    Args:
        names: [layer, head], types.
        gone: title -> [layer, head], true at heads that are gone.
        called: type -> what its group is called.
    """
    figure, axes = titled(gone, (7.8 / len(gone), 3.0), margin=(0, 0.3), sharex=True, sharey=True)
    cross = {"marker": "x", "color": "#888888", "markersize": 3.5}
    for ax, lost in zip(axes.flat, gone.values(), strict=True):
        shown = np.where(lost, "white", np.asarray(names))
        grid(ax, shown, colours={**COLOURS, "white": "white"}, marked=lost, mark=cross, every=(1, 3))
    outer_labels(axes, "layer", "head")
    handles = squares({called[name]: COLOURS[name] for name in TYPE_NAMES})
    figure.legend(handles=handles, loc="outside lower center", ncols=len(TYPE_NAMES), fontsize=8)
    return figure


Climb = tuple[Sequence[int], ArrayLike, Mapping[str, tuple[int, Estimate]], float]
"""Numbers of heads; [size, draw], the change with so many random heads pruned; type, or the name of another set -> (heads, change); the change with every head pruned."""


def heads_and_loss(panels: Mapping[str, Climb], *, called: Mapping[str, str] = LABELS) -> Figure:
    """Change against the number of heads pruned, a panel for each run: grey lines for random heads from anywhere, a point for each type or other set.

    Args:
        panels: title -> what is drawn; changes are fractions, shown as percentage points.
        called: type -> what its group is called.
    """
    figure, axes = titled(panels, (7.8 / len(panels), 3.4), margin=(0, 0.6), size=9.5, sharex=True, sharey=True)
    for ax, (sizes, ladder, points, floor) in zip(axes.flat, panels.values(), strict=True):
        for number, line in enumerate(100 * np.asarray(ladder).T):
            label = None if number else "random heads from anywhere"
            ax.plot([0, *sizes], [0, *line], color=COLOURS["other"], linewidth=1.2, marker=".", zorder=1, label=label)
        others = iter("*PX")
        for name, (heads, change) in points.items():
            colour, marker = COLOURS.get(name, INK), MARKERS[name] if name in MARKERS else next(others)
            look = {"color": colour, "marker": marker, "markeredgecolor": "#333333", "markersize": 8}
            label = called.get(name, name)
            intervals(ax, heads, change, scale=100, bar={"linewidth": 2.4}, label=label, zorder=3, **look)
        references(ax, {"every head pruned": 100 * floor}, linewidth=1)
        ax.set_xlabel("heads pruned")
    axes[0, 0].set_ylabel(CHANGE)
    legend_below(axes[0, 0], ncols=3)
    return figure


def answers_to_touch(
    gone: Sequence[int], change: ArrayLike, questions: Sequence[str], answers: Sequence[Sequence[str]]
) -> views.InteractiveFigure:
    """More and more heads pruned, by a slider: F1 over all questions above, what the model answers to some of them below.

    Args:
        gone: heads pruned in each step, from 0; the first answers are those of the whole model.
        change: [step], of F1, a fraction; shown as percentage points.
        answers: [step][question].
    """
    kept = {True: views.GOOD, False: views.BAD}
    pieces = [
        [
            [question, (said or "no answer", kept[said == whole])]
            for question, said, whole in zip(questions, row, answers[0], strict=True)
        ]
        for row in answers
    ]
    curve = views.Curve(gone, {"all questions": 100 * np.asarray(change)}, "heads pruned", "change of F1 (points)")
    labels = [f"{n} heads gone" for n in gone]
    alt = f"Change of F1 over the number of heads pruned, and the answers to {len(questions)} questions at each step."
    return views.frames(gone, labels, pieces, alt=alt, curve=curve)


TURNS = {"answered worse": COLOURS["sep"], "as before": "#e3e3e3", "answered better": COLOURS["cls"]}


def turned_bars(rows: Mapping[str, ArrayLike], cuts: Sequence[int]) -> Figure:
    """For each row the share of questions that are answered worse, as before, and better, as stacked bars.

    Args:
        rows: row -> [3], fractions.
        cuts: rows above which a thin line separates groups, counted from 0.
    """
    parts = {label: {"color": colour} for label, colour in TURNS.items()}
    figure, ax = _shares(rows, parts, 0.24, "share of questions (%)")
    _rows(ax, rows, cuts, size=8.0, colour="#888888")
    return figure


def attention_by_place(shares: Mapping[str, ArrayLike], *, called: Mapping[str, str] = LABELS) -> Figure:
    """For each type, how its attention is shared out among places, as a stacked bar.

    Args:
        shares: type -> [place], fractions that sum to 1: special tokens, the same sentence, other sentences.
        called: type -> what its group is called.
    """
    figure, ax = _shares(shares, named(("special", "intra", "inter")), 0.34, "share of attention (%)")
    _rows(ax, [called.get(name, name) for name in shares])
    return figure


def _shares(
    rows: Mapping[str, ArrayLike], parts: Mapping[str, Mapping[str, str]], height: float, xlabel: str
) -> tuple[Figure, Axes]:
    figure, ax = plt.subplots(figsize=(7.2, 0.9 + height * len(rows)))
    stacked(ax, [100 * np.asarray(v) for v in rows.values()], parts, least=4, number="{:.0f}", size=0.72)
    ax.set(xlabel=xlabel, xlim=(0, 100))
    legend_below(ax, ncols=3)
    return figure, ax


def _rows(
    ax: Axes, names: Iterable[str], cuts: Sequence[int] = (), *, size: float | None = None, colour: str = "#bbbbbb"
) -> None:
    """Names of rows, and thin lines above some."""
    in_rows(ax, names, size=size, margin=0.6)
    ax.grid(axis="y", visible=False)
    for cut in cuts:
        ax.axhline(cut - 0.5, color=colour, linewidth=0.8)


READING_STYLES = {
    "as in the table": ("o", COLOURS["cls"]),
    "renormalised": ("s", COLOURS["next"]),
    "special tokens apart": ("^", COLOURS["stop"]),
    "question and passage": ("v", COLOURS["previous"]),
}


def readings(rows: Mapping[str, Mapping[str, Estimate]], cuts: Sequence[int]) -> Figure:
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
            label = None if place else name
            intervals(ax, y, one, across=True, scale=100, marker=marker, color=colour, markersize=5.5, label=label)
    ax.axvline(0, **REFERENCE)
    _rows(ax, rows, cuts, size=8.5)
    ax.set_xlabel(CHANGE)
    legend_below(ax, ncols=4)
    return figure
