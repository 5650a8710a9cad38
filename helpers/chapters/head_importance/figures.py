"""Chapter 11: what heads and layers are worth, gates, orders of pruning, size and speed."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from helpers.engine.estimates import Estimate
from helpers.figures.look import COLOURS, head_name

ORDER_STYLES = {
    "I_h": ("cls", "-", "o", "$I_h$"),
    "I_h, layers normalised": ("broad", "--", "s", "$I_h$, layers normalised"),
    "oracle": ("stop", "-", "^", "oracle, by loss"),
    "oracle, score": ("sep", "-", "v", "oracle, by score"),
    "random": ("other", "-", "D", "random (mean; band: all draws)"),
}
"""Colour, line, marker and label of each order of pruning."""


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
    colours = (COLOURS["sep"], COLOURS["cls"], COLOURS["stop"], COLOURS["previous"])
    for (head, values), colour, marker in zip(losses.items(), colours, "os^v", strict=False):
        values = np.asarray(values)
        at_one = values[np.abs(x - 1).argmin()]
        ax.plot(x, values, color=colour, marker=marker, markersize=4, label=f"head {head_name(*head)}")
        ax.plot(x, at_one + slopes[head] * (x - 1), color=colour, linestyle=":", linewidth=1.3)
    ax.axvline(1, color=COLOURS["self"], linewidth=0.8)
    ax.set(xlabel="gate ξ (0: switched off, 1: as it is)", ylabel="loss of the pair (nats)")
    handles, _ = ax.get_legend_handles_labels()
    handles.append(Line2D([], [], color=COLOURS["self"], linestyle=":", label="slope at ξ = 1"))
    ax.legend(handles=handles, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def cost_grids(
    costs: Mapping[str, ArrayLike], stands: Mapping[str, ArrayLike], *, bars: Mapping[str, str], columns: int = 2
) -> Figure:
    """For each title a layer × head grid of what removals cost, red where it hurts and blue where it helps.

    Args:
        costs: title -> [layer, head]; each grid has its own scale.
        stands: title -> [layer, head], true where the change is significant: these cells carry a dot.
        bars: title -> what the shade means.
    """
    layers, heads = np.shape(next(iter(costs.values())))
    columns = min(columns, len(costs))
    rows = -(-len(costs) // columns)
    size = ((2.3 + 0.16 * layers) * columns, (1.1 + 0.14 * heads) * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for ax in axes.ravel()[len(costs) :]:
        ax.axis("off")
    for ax, (title, values) in zip(axes.ravel(), costs.items(), strict=False):
        values = np.asarray(values, float)
        largest = max(np.abs(values).max(), 1e-9)
        extent = (0.5, layers + 0.5, heads + 0.5, 0.5)
        image = ax.imshow(values.T, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto", extent=extent)
        marked = np.argwhere(np.asarray(stands[title], bool)) + 1
        ax.plot(marked[:, 0], marked[:, 1], "o", color="black", markerfacecolor="white", markersize=4.5)
        ax.set(xticks=range(1, layers + 1), yticks=range(1, heads + 1, 2), xlabel="layer", ylabel="head")
        ax.set_title(title, fontsize=9)
        ax.grid(visible=False)
        figure.colorbar(image, ax=ax, label=bars[title])
    return figure


def layer_costs(costs: Mapping[str, Estimate], stands: Mapping[str, ArrayLike], *, ylabel: str) -> Figure:
    """For each task a panel with a bar for each layer: what it costs when all of its heads are off, with intervals.

    Args:
        costs: task -> estimate (layer,).
        stands: task -> [layer], true where the change is significant: filled bars; others are hollow.
    """
    figure, axes = plt.subplots(
        1, len(costs), figsize=(2.2 * len(costs) + 0.4, 2.9), squeeze=False, layout="constrained"
    )
    for ax, (task, cost) in zip(axes[0], costs.items(), strict=True):
        x = np.arange(1, len(cost.value) + 1)
        for layer, value, stand in zip(x, cost.value, np.asarray(stands[task], bool), strict=True):
            colour = COLOURS["first"] if value > 0 else COLOURS["second"]
            ax.bar(layer, value, width=0.7, edgecolor=colour, color=colour if stand else "white", linewidth=1.2)
        around = np.abs(np.stack([cost.value - cost.low, cost.high - cost.value]))
        ax.errorbar(x, cost.value, around, fmt="none", ecolor="#222222", elinewidth=1, capsize=2)
        ax.axhline(0, color=COLOURS["self"], linewidth=0.8)
        ax.set(xlabel="layer", xticks=x)
        ax.set_title(task, fontsize=9)
        ax.grid(axis="x", visible=False)
        ax.yaxis.set_major_locator(MaxNLocator(5))
    axes[0, 0].set_ylabel(ylabel)
    return figure


def importance_and_cost(
    series: Mapping[str, tuple[ArrayLike, ArrayLike]], *, names: int = 2, columns: int = 4
) -> Figure:
    """For each task a point for each head: its importance, and what its removal adds to the loss; the largest are named.

    Args:
        series: title -> ([layer, head] importance, [layer, head] added loss).
        names: how many of the heads with the largest importance, and with the largest cost, are named.
    """
    rows = -(-len(series) // columns)
    width = min(columns, len(series))
    figure, axes = plt.subplots(
        rows, width, figsize=(2.4 * width + 0.3, 2.7 * rows), squeeze=False, layout="constrained"
    )
    for ax in axes.ravel()[len(series) :]:
        ax.axis("off")
    for ax, (title, (value, cost)) in zip(axes.ravel(), series.items(), strict=False):
        value, cost = np.asarray(value), np.asarray(cost)
        layer = np.repeat(np.arange(1, len(value) + 1), value.shape[1])
        points = ax.scatter(
            value.ravel(), cost.ravel(), c=layer, cmap="viridis", s=16, linewidths=0, vmin=1, vmax=len(value)
        )
        ax.axhline(0, color=COLOURS["self"], linewidth=0.8)
        chosen = {*np.argsort(-value, axis=None)[:names].tolist(), *np.argsort(-cost, axis=None)[:names].tolist()}
        for n in chosen:
            at = np.unravel_index(n, value.shape)
            ax.annotate(
                head_name(*map(int, at)), (value[at], cost[at]), (3, 3), textcoords="offset points", fontsize=7
            )
        ax.set(xlabel="$I_h$ (nats)")
        ax.set_title(title, fontsize=9)
        ax.xaxis.set_major_locator(MaxNLocator(3))
    for ax in axes[:, 0]:
        ax.set_ylabel("added loss when off (nats)")
    bar = figure.colorbar(points, ax=axes, label="layer", shrink=0.8)
    bar.locator = MaxNLocator(integer=True)
    bar.update_ticks()
    return figure


def pruning_curves(
    shares: Sequence[float],
    curves: Mapping[str, Mapping[str, Mapping[str, object]]],
    *,
    ylabels: Mapping[str, str],
    baselines: Mapping[str, float | None] | None = None,
    columns: int = 2,
) -> Figure:
    """For each task what is left as heads are taken away in several orders.

    Args:
        shares: of heads taken away, [k].
        curves: task -> order (a key of :data:`ORDER_STYLES`) -> ``mean`` (estimate [k]), ``least`` and ``most`` [k].
        ylabels: task -> what is measured.
        baselines: task -> value of a dashed line: the majority class.
    """
    rows = -(-len(curves) // columns)
    width = min(columns, len(curves))
    figure, axes = plt.subplots(
        rows, width, figsize=(3.7 * width, 2.7 * rows + 0.4), squeeze=False, layout="constrained"
    )
    for ax in axes.ravel()[len(curves) :]:
        ax.axis("off")
    x = 100 * np.asarray(shares)
    for ax, (task, orders) in zip(axes.ravel(), curves.items(), strict=False):
        for name, found in orders.items():
            colour, line, marker, label = ORDER_STYLES[name]
            mean = Estimate.from_record(found["mean"])
            low, high = (found["least"], found["most"]) if name == "random" else (mean.low, mean.high)
            if name in ("I_h", "oracle", "random"):  # more bands cannot be read
                ax.fill_between(x, low, high, color=COLOURS[colour], alpha=0.18, linewidth=0)
            ax.plot(x, mean.value, line, color=COLOURS[colour], marker=marker, markersize=4, label=label)
        if baselines and baselines.get(task) is not None:
            ax.axhline(baselines[task], color=COLOURS["self"], linestyle="--", linewidth=1, label="majority class")
        ax.set(xlabel="heads taken away (%)", ylabel=ylabels[task])
        ax.set_title(task, fontsize=9)
    handles, labels = [], []
    for ax in axes.ravel():
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def size_and_speed(variants: Mapping[str, Mapping[str, float]]) -> Figure:
    """Parameters and time of a forward pass over the share of heads removed, as multiples of the whole model.

    Args:
        variants: name -> ``removed`` (share of heads), ``all``, ``layers``, ``attention`` (parameters), ``one_ms``, ``batch_ms``;
            the one with nothing removed first, then the same number from every layer, then those named "all heads of …".
    """
    whole = next(iter(variants.values()))
    even = [v for name, v in variants.items() if not name.startswith("all heads of")]
    layers = [v for name, v in variants.items() if name.startswith("all heads of")]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.3), sharey=True, layout="constrained")

    def line(ax: plt.Axes, rows: Sequence[Mapping[str, float]], key: str, **style: object) -> None:
        ax.plot([100 * r["removed"] for r in rows], [r[key] / whole[key] for r in rows], **style)

    kinds = {
        "attention": ("attention", "sep", "^"),
        "layers": ("all layers", "cls", "s"),
        "all": ("whole model", "self", "o"),
    }
    for key, (label, colour, marker) in kinds.items():
        line(axes[0], even, key, color=COLOURS[colour], marker=marker, label=label)
    for key, label, colour in (("one_ms", "one input", "next"), ("batch_ms", "a batch", "stop")):
        line(axes[1], even, key, color=COLOURS[colour], marker="o", label=f"{label}, the same from every layer")
        line(
            axes[1],
            layers,
            key,
            color=COLOURS[colour],
            marker="D",
            linestyle="",
            markerfacecolor="white",
            label=f"{label}, whole layers",
        )
    axes[0].set(title="parameters", ylabel="multiple of the whole model", ylim=(0, 1.15))
    axes[1].set(title="processor time of a forward pass")
    for ax in axes:
        ax.set_xlabel("heads removed (%)")
        ax.title.set_fontsize(10)
        ax.axhline(1, color=COLOURS["self"], linewidth=0.8, linestyle=":")
        ax.legend(fontsize=8, loc="lower left")
    return figure


def grids_of(records: Mapping[str, Mapping[str, object]], name: str) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """What removals cost, and where it stands, from the records of several tasks: two arguments of :func:`cost_grids`."""
    found = {task: values["cost"][name]["heads"] for task, values in records.items()}
    costs = {task: np.asarray(Estimate.from_record(f["cost"]).value) for task, f in found.items()}
    return costs, {task: np.asarray(f["significant"], bool) for task, f in found.items()}
