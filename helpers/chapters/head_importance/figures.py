"""Chapter 11: what heads and layers are worth, gates, orders of pruning, size and speed."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from helpers import plots, views
from helpers.plots import COLOURS, INK, REFERENCE, Levels, Names, Series, Values
from helpers.stats import Estimate

ORDER_STYLES = {
    "I_h": ("cls", "-", "o", "Iₕ"),
    "I_h, layers normalised": ("broad", "--", "s", "Iₕ, layers normalised"),
    "oracle": ("stop", "-", "^", "measured, by loss"),
    "oracle, score": ("sep", "-", "v", "measured, by score"),
    "random": ("other", "-", "D", "random (mean; band: all draws)"),
}
"""Colour, line, marker and label of each order of pruning."""
ZERO = {"color": COLOURS["self"], "linewidth": 0.8}


def gate_lines(
    gates: Sequence[float], losses: Mapping[tuple[int, int], ArrayLike], slopes: Mapping[tuple[int, int], float]
) -> Figure:
    """Loss over the value of one gate for some heads, and the straight line that the slope at 1 foretells.

    Args:
        losses: (layer, head) from 0 -> [gate], nats.
        slopes: (layer, head) -> derivative at gate 1.
    """
    figure, ax = plt.subplots(figsize=(5.8, 3.5))
    x = np.asarray(gates)
    for (head, values), name, marker in zip(losses.items(), ("sep", "cls", "stop", "previous"), "os^v", strict=False):
        at_one = np.asarray(values)[np.abs(x - 1).argmin()]
        ax.plot(x, values, color=COLOURS[name], marker=marker, markersize=4, label=f"head {plots.head_name(*head)}")
        ax.plot(x, at_one + slopes[head] * (x - 1), color=COLOURS[name], linestyle=":", linewidth=1.3)
    ax.axvline(1, **ZERO)
    ax.set(xlabel="gate ξ (0: switched off, 1: as it is)", ylabel="loss of the pair (nats)")
    slope = Line2D([], [], color=COLOURS["self"], linestyle=":", label="slope at ξ = 1")
    plots.legend_beside(ax, handles=[*ax.get_legend_handles_labels()[0], slope], fontsize=8)
    return figure


def gate_to_touch(gates: Sequence[float], losses: ArrayLike, asked: Names, head: str) -> views.InteractiveFigure:
    """One gate to turn: the probability that the model gives to the right answer of some inputs, as a curve and in words.

    Args:
        losses: [input, gate], nats; e to the power of minus a loss is a probability.
        asked: what the model is asked, in words, for each input.
    """
    right = np.exp(-np.asarray(losses))
    names = [str(number) for number in range(1, len(asked) + 1)]

    def line(name: str, text: str, share: float) -> list[views.Word]:
        return [f"{name}.", text, (f"{share:.0%}", views.GOOD if share > 0.5 else views.BAD)]

    pieces = [list(map(line, names, asked, row)) for row in right.T]
    series = dict(zip(names, right, strict=True))
    curve = views.Curve(gates, series, f"gate of head {head}", "probability of the right answer")
    labels = [f"gate of head {head} at {gate:.3g}" for gate in gates]
    alt = f"Probability of the right answer to {len(asked)} inputs over the gate of head {head}."
    return views.frames(gates, labels, pieces, alt=alt, curve=curve)


def layer_costs(costs: Series, stands: Values, heads: Values, *, ylabel: str) -> Figure:
    """For each task a panel with a bar for each layer: what it costs when all of its heads are off, with intervals.

    Args:
        costs: task -> estimate (layer,).
        stands: task -> [layer], true where the change is significant: filled bars; others are hollow.
        heads: task -> [layer, head], costs of single heads: a diamond at the sum of each layer's.
    """
    figure, axes = plots.titled(costs, (2.5, 2.5), columns=3, margin=(0.4, 0))
    for ax, (task, cost) in zip(axes.flat, costs.items(), strict=False):
        x = np.arange(1, len(cost.value) + 1)
        colours = np.where(cost.value > 0, COLOURS["first"], COLOURS["second"])
        faces = np.where(stands[task], colours, "white")
        ax.bar(x, cost.value, width=0.7, edgecolor=colours, color=faces, linewidth=1.2)
        plots.intervals(ax, x, cost, marker="", color=INK, bar={"linewidth": 1, "alpha": 1})
        alone = {"marker": "D", "facecolors": "white", "edgecolors": INK, "linewidths": 1, "zorder": 4}
        ax.scatter(x, np.sum(heads[task], -1), 22, **alone, label="sum over its heads, each off alone")
        ax.axhline(0, **ZERO)
        plots.on_layers(ax, len(x))
        ax.yaxis.set_major_locator(MaxNLocator(5))
    for ax in axes[:, 0]:
        ax.set_ylabel(ylabel)
    plots.legend_below(axes[0, 0])
    return figure


def importance_and_cost(series: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Figure:
    """For each task a point for each head: its importance, and what its removal adds to the loss; the two largest of each are named.

    Args:
        series: title -> ([layer, head] importance, [layer, head] added loss).
    """
    figure, axes = plots.titled(series, (2.5, 2.5), columns=3, margin=(0.3, 0))
    for ax, (value, cost) in zip(axes.flat, series.values(), strict=False):
        value, cost = np.asarray(value), np.asarray(cost)
        look = {"cmap": "viridis", "vmin": 1, "vmax": len(value), "s": 16, "linewidths": 0}
        points = ax.scatter(value, cost, c=np.indices(value.shape)[0] + 1, **look)
        ax.axhline(0, **ZERO)
        largest = np.unique([np.argsort(-numbers, axis=None)[:2] for numbers in (value, cost)])
        names = {n: plots.head_name(*np.unravel_index(n, value.shape)) for n in largest}
        _named(ax, value.ravel(), cost.ravel(), names)
        ax.set(xlabel="Iₕ (nats)")
        ax.xaxis.set_major_locator(MaxNLocator(3))
    for ax in axes[:, 0]:
        ax.set_ylabel("added loss when off (nats)")
    figure.colorbar(points, ax=axes, label="layer", shrink=0.8, ticks=MaxNLocator(integer=True))
    return figure


PANEL = 140
"""Width and height of a scatter plot, in points; names in it are about 20 wide and 8 high."""


def _named(ax: plt.Axes, x: NDArray, y: NDArray, names: Mapping[int, str]) -> None:
    """Names beside some of the points, each on the side where other points and names are farther away."""
    spots = np.stack([PANEL * (v - v.min()) / max(np.ptp(v), np.finfo(float).tiny) for v in (x, y)], axis=1)
    for n, name in names.items():
        centres = {align: spots[n] + (way * 13, 7) for align, way in (("left", 1), ("right", -1))}
        free = {align: (np.abs(spots - at) / (10, 4)).max(1).min() for align, at in centres.items()}
        align = max(free, key=free.__getitem__)
        spots = np.vstack([spots, centres[align]])
        offset = (3 if align == "left" else -3, 3)
        ax.annotate(name, (x[n], y[n]), offset, textcoords="offset points", ha=align, fontsize=7)


def pruning_curves(
    shares: Values, curves: Mapping[str, Mapping[str, Mapping]], *, ylabel: str, baselines: Mapping[str, float | None]
) -> Figure:
    """For each task what is left as heads are taken away in several orders.

    Args:
        shares: task -> of heads taken away, [k].
        curves: task -> order (a key of :data:`ORDER_STYLES`) -> ``mean`` (estimate [k]), ``least`` and ``most`` [k].
        ylabel: what is measured.
        baselines: task -> value of a dashed line: the majority class.
    """
    figure, axes = plots.titled(curves, (3.7, 2.7), columns=2, margin=(0, 0.4))
    entries = {}
    for ax, (task, orders) in zip(axes.flat, curves.items(), strict=False):
        x = 100 * np.asarray(shares[task])
        for name, found in orders.items():
            colour, line, marker, label = ORDER_STYLES[name]
            mean = Estimate.from_record(found["mean"])
            low, high = (found["least"], found["most"]) if name == "random" else (mean.low, mean.high)
            if name in ("I_h", "oracle", "random"):  # more bands cannot be read
                ax.fill_between(x, low, high, color=COLOURS[colour], alpha=0.18, linewidth=0)
            ax.plot(x, mean.value, line, color=COLOURS[colour], marker=marker, markersize=4, label=label)
        if baselines.get(task) is not None:
            plots.references(ax, {"majority class": baselines[task]}, linewidth=1)
        ax.set(xlabel="heads taken away (%)", ylabel=ylabel)
        handles, labels = ax.get_legend_handles_labels()
        entries = dict(zip(labels, handles, strict=True)) | entries
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def leads(series: Mapping[str, Series]) -> Figure:
    """How much more of the score each order keeps than random orders do, a row for each task; right of the line is better than chance.

    Args:
        series: task -> order (a key of :data:`ORDER_STYLES`) -> estimate, a fraction, shown as percentage points.
    """
    figure, ax = plt.subplots(figsize=(7.2, 1.0 + 0.62 * len(series)))
    values = plots.by_series(series)
    styles = [ORDER_STYLES[order] for order in values]
    looks = [{"color": COLOURS[colour], "marker": marker, "label": label} for colour, _, marker, label in styles]
    plots.dot_rows(ax, [*series], values, looks, apart=0.18, margin=0.6, line=0, scale=100, markersize=5.5)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("score kept beyond random orders (points)")
    plots.legend_below(ax, ncols=4)
    return figure


def size_and_speed(variants: Mapping[str, Levels]) -> Figure:
    """Parameters and time of a forward pass over the share of heads removed, as multiples of the whole model.

    Args:
        variants: name -> ``removed`` (share of heads), ``all``, ``layers``, ``attention`` (parameters), ``one_ms``, ``batch_ms``;
            the one with nothing removed first, then the same number from every layer, then those named "all heads of …".
    """
    whole = next(iter(variants.values()))
    layers = {name: v for name, v in variants.items() if name.startswith("all heads of")}
    even = [v for name, v in variants.items() if name not in layers]
    titles = "parameters", "processor time of a forward pass"
    figure, axes = plots.titled(titles, (3.7, 3.3), size=10.5, sharey=True)
    sizes, times = axes[0]

    def line(ax: plt.Axes, rows: Sequence[Levels], key: str, name: str, label: str, **style: object):
        x, y = [100 * r["removed"] for r in rows], [r[key] / whole[key] for r in rows]
        ax.plot(x, y, color=COLOURS[name], label=label, **style)

    line(sizes, even, "attention", "sep", "attention", marker="^")
    line(sizes, even, "layers", "cls", "all layers", marker="s")
    line(sizes, even, "all", "self", "whole model", marker="o")
    hollow = {"marker": "D", "linestyle": "", "markerfacecolor": "white"}
    for key, label, name in (("one_ms", "one input", "next"), ("batch_ms", "a batch", "stop")):
        line(times, even, key, name, f"{label}, the same from every layer", marker="o")
        line(times, list(layers.values()), key, name, f"{label}, whole layers", **hollow)
    sizes.set(ylabel="multiple of the whole model", ylim=(0, 1.15))
    for ax in axes.flat:
        ax.set_xlabel("heads removed (%)")
        ax.axhline(1, **REFERENCE)
        ax.legend(fontsize=8, loc="lower left")
    return figure


def grids_of(records: Mapping[str, Mapping[str, object]], name: str) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """What removals cost, and where it stands, from the records of several tasks: what ``head_grids`` draws and marks."""
    found = {task: values["cost"][name]["heads"] for task, values in records.items()}
    costs = {task: np.asarray(Estimate.from_record(f["cost"]).value) for task, f in found.items()}
    return costs, {task: np.asarray(f["significant"], bool) for task, f in found.items()}
