"""Chapter 10: edited maps, and what ablations change."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from helpers import plots, views
from helpers.plots import COLOURS, INK, LABELS, MARKERS, REFERENCE, Labels, Levels, Names, Series, Values
from helpers.stats import Estimate

CHANGE = "change of F1 (points)"
CONTROL = {"color": COLOURS["random"], "marker": "D", "linestyle": "", "markerfacecolor": "none", "markersize": 4.5}
CITED = {"color": INK, "marker": "x", "linestyle": "", "markersize": 6, "markeredgewidth": 1.6}
MANY = 20
"""Draws that are drawn one by one; more of them are small and pale."""
BELOW = 0.26
"""How far below its row, of height 1, a control is drawn, so that neither hides the other."""


def edited_maps(maps: Values, tokens: Names, borders: Sequence[int] = ()) -> Figure:
    """One head's map under several edits, three in a row and on one scale; thin lines where a new sentence or a special token begins.

    Args:
        maps: title -> [query, key].
        borders: places before which a line is drawn.
    """
    columns = min(3, len(maps))
    size = (7.6 / columns, 0.85 * 7.6 / columns)
    figure, axes = plots.titled(maps, size, columns=columns, margin=(0, 0.75), sharex=True, sharey=True)
    for ax, weights in zip(axes.flat, maps.values(), strict=False):
        image = ax.imshow(np.asarray(weights), cmap="Blues", vmin=0, vmax=max(map(np.max, maps.values())))
        for place in borders:
            ax.axhline(place - 0.5, color=COLOURS["next"], linewidth=0.8)
            ax.axvline(place - 0.5, color=COLOURS["next"], linewidth=0.8)
        plots.token_axes(ax, tokens, size=8 if columns < 3 else 6, rotation=90, top=False)
    for ax in axes[:, 0]:
        ax.set_ylabel("attending token", fontsize=8)
    figure.colorbar(image, ax=axes, shrink=0.6, label="attention weight")
    return figure


Rows = Mapping[str, tuple[Estimate, float, ArrayLike]]
"""Row -> ours on all questions, ours on those of the control, [draw] of the control; fractions, shown as percentage points."""


def ablation_rows(
    panels: Mapping[str, Rows], colours: Labels, cuts: Sequence[int], cited: Levels | None = None
) -> Figure:
    """Rows of a table as points with intervals, and just below them the draws of their control as open diamonds; a panel for each run.

    Args:
        panels: title -> rows.
        colours: row -> colour.
        cuts: rows above which a thin line separates groups, counted from 0.
        cited: row -> the change that a paper reports, in points: crosses.
    """
    names = list(next(iter(panels.values())))
    size = (7.8 / len(panels), 0.9 + 0.36 * len(names))
    figure, axes = plots.titled(panels, size, size=9.5, sharey=True, sharex=True)
    for ax, shown in zip(axes.flat, panels.values(), strict=True):
        for place, name in enumerate(names):
            ours, same, draws = shown[name]
            draws = 100 * np.ravel(draws)
            many = {"alpha": 0.3, "markersize": 3.5} if len(draws) > MANY else {}
            ax.plot(draws, np.full(len(draws), place + BELOW), **CONTROL | many, markeredgewidth=0.9, zorder=2)
            look = {"color": colours[name], "bar": {"linewidth": 2.4, "alpha": 0.55}, "zorder": 3}
            plots.intervals(ax, place, ours, across=True, scale=100, **look)
            ax.plot(100 * same, place, "o", color=colours[name], markerfacecolor="white", zorder=2)
            if cited:
                ax.plot(cited[name], place, **CITED, zorder=4)
        ax.axvline(0, **REFERENCE)
        ax.set_xlabel(CHANGE, fontsize=9)
        plots.in_rows(ax, names, size=8.5, margin=0.6)
        _parted(ax, cuts)
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


def _parted(ax: Axes, cuts: Sequence[int], colour: str = "#bbbbbb") -> None:
    """Thin lines above some rows, and no others."""
    ax.grid(axis="y", visible=False)
    for cut in cuts:
        ax.axhline(cut - 0.5, color=colour, linewidth=0.8)


def without_heads(names: ArrayLike, gone: Values, *, called: Labels = LABELS) -> Figure:
    """The heads of a model in the colours of their types, a grid for each answer; heads that are gone are white with a cross.

    Args:
        names: [layer, head], types.
        gone: title -> [layer, head], true at heads that are gone.
        called: type -> what its group is called.
    """
    figure, axes = plots.titled(gone, (7.8 / len(gone), 3.0), margin=(0, 0.3), sharex=True, sharey=True)
    cross = {"marker": "x", "color": "#888888", "markersize": 3.5}
    for ax, lost in zip(axes.flat, gone.values(), strict=True):
        plots.grid(ax, np.where(lost, "white", np.asarray(names)), marked=lost, mark=cross, every=(1, 3))
    plots.outer_labels(axes, "layer", "head")
    plots.type_legend(figure, called, "lower")
    return figure


Climb = tuple[Sequence[int], ArrayLike, Mapping[str, tuple[int, Estimate]], float]
"""Numbers of heads; [size, draw], the change with so many random heads pruned; type, or the name of another set -> (heads, change); the change with every head pruned."""


def heads_and_loss(panels: Mapping[str, Climb], *, called: Labels = LABELS) -> Figure:
    """Change against the number of heads pruned, a panel for each run: grey lines for random heads from anywhere, a point for each type or other set.

    Args:
        panels: title -> what is drawn; changes are fractions, shown as percentage points.
        called: type -> what its group is called.
    """
    figure, axes = plots.titled(panels, (7.8 / len(panels), 3.4), margin=(0, 0.6), size=9.5, sharex=True, sharey=True)
    for ax, (sizes, ladder, points, floor) in zip(axes.flat, panels.values(), strict=True):
        draws = 100 * np.vstack([np.zeros(np.shape(ladder)[1]), ladder])
        grey = {"color": COLOURS["other"], "linewidth": 1.2, "marker": ".", "zorder": 1}
        ax.plot([0, *sizes], draws, **grey)[0].set_label("random heads from anywhere")
        others = iter("*PX")
        for name, (heads, change) in points.items():
            look = {"color": COLOURS.get(name, INK), "marker": MARKERS[name] if name in MARKERS else next(others)}
            look |= {"markeredgecolor": "#333333", "markersize": 8, "label": called.get(name, name), "zorder": 3}
            plots.intervals(ax, heads, change, scale=100, bar={"linewidth": 2.4}, **look)
        plots.references(ax, {"every head pruned": 100 * floor}, linewidth=1)
        ax.set_xlabel("heads pruned")
    axes[0, 0].set_ylabel(CHANGE)
    plots.legend_below(axes[0, 0], ncols=3)
    return figure


def answers_to_touch(
    gone: Sequence[int], change: ArrayLike, questions: Names, answers: Sequence[Names]
) -> views.InteractiveFigure:
    """More and more heads pruned, by a slider: F1 over all questions above, what the model answers to some of them below.

    Args:
        gone: heads pruned in each step, from 0; the first answers are those of the whole model.
        change: [step], of F1, a fraction; shown as percentage points.
        answers: [step][question].
    """

    def line(question: str, answer: str, whole: str) -> list[views.Word]:
        return [question, (answer or "no answer", views.GOOD if answer == whole else views.BAD)]

    pieces = [list(map(line, questions, row, answers[0])) for row in answers]
    curve = views.Curve(gone, {"all questions": 100 * np.asarray(change)}, "heads pruned", CHANGE)
    labels = [f"{n} heads gone" for n in gone]
    alt = f"Change of F1 over the number of heads pruned, and the answers to {len(questions)} questions at each step."
    return views.frames(gone, labels, pieces, alt=alt, curve=curve)


TURNS = {
    "answered worse": {"color": COLOURS["sep"]},
    "as before": {"color": "#e3e3e3"},
    "answered better": {"color": COLOURS["cls"]},
}


def turned_bars(rows: Values, cuts: Sequence[int]) -> Figure:
    """For each row the share of questions that are answered worse, as before, and better, as stacked bars.

    Args:
        rows: row -> [3], fractions.
        cuts: rows above which a thin line separates groups, counted from 0.
    """
    figure = _shares(rows, TURNS, 0.24, "share of questions (%)", size=8)
    _parted(figure.axes[0], cuts, "#888888")
    return figure


def attention_by_place(shares: Values, *, called: Labels = LABELS) -> Figure:
    """For each type, how its attention is shared out among places, as a stacked bar.

    Args:
        shares: type -> [place], fractions that sum to 1: special tokens, the same sentence, other sentences.
        called: type -> what its group is called.
    """
    rows = {called.get(name, name): values for name, values in shares.items()}
    return _shares(rows, plots.coloured(("special", "intra", "inter")), 0.34, "share of attention (%)")


def _shares(rows: Values, parts: plots.Parts, height: float, xlabel: str, *, size: float | None = None) -> Figure:
    figure, ax = plt.subplots(figsize=(7.2, 0.9 + height * len(rows)))
    plots.stacked(ax, 100 * np.array([*rows.values()]), parts, least=4, number="{:.0f}", size=0.72)
    ax.set(xlabel=xlabel, xlim=(0, 100))
    plots.legend_below(ax, ncols=3)
    plots.in_rows(ax, rows, size=size, margin=0.6)
    return figure


READING_STYLES = {
    "as in the table": {"marker": "o", "color": COLOURS["cls"]},
    "renormalised": {"marker": "s", "color": COLOURS["next"]},
    "special tokens apart": {"marker": "^", "color": COLOURS["stop"]},
    "question and passage": {"marker": "v", "color": COLOURS["previous"]},
}


def readings(rows: Mapping[str, Series], cuts: Sequence[int]) -> Figure:
    """Each row under several readings of "sentence" and "removing": a marker with interval for each.

    Args:
        rows: row -> (reading, a key of :data:`READING_STYLES` -> estimate), fractions, shown as percentage points.
        cuts: rows above which a thin line separates groups, counted from 0.
    """
    figure, ax = plt.subplots(figsize=(7.2, 1.1 + 0.42 * len(rows)))
    series = plots.by_series(rows)
    looks = [READING_STYLES[name] for name in series]
    plots.dot_rows(ax, [*rows], series, looks, apart=0.17, margin=0.6, line=0, scale=100, markersize=5.5)
    ax.tick_params(axis="y", labelsize=8.5)
    _parted(ax, cuts)
    ax.set_xlabel(CHANGE)
    plots.legend_below(ax, ncols=4)
    return figure
