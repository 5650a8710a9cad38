"""Chapter 13: words shaded by the attention they receive, rankings, weights, and heads taken away."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from helpers.engine.estimates import Estimate
from helpers.figures.look import COLOURS, head_name

LINE = 88  # characters


def shaded_text(
    panels: Mapping[str, ArrayLike], units: Sequence[str], places: Sequence[int], key: Sequence[bool]
) -> Figure:
    """A text once for each panel, each word on a shade for its value; key words are bold and underlined.

    Args:
        panels: title -> value of each word, none below 0; the darkest shade is the panel's 98th percentile.
        units: words and marks.
        places: for each word which unit it is.
        key: for each word whether it is part of a keyphrase.
    """
    word = {unit: number for number, unit in enumerate(places)}
    spots, x, y = [], 0, 0
    for number, unit in enumerate(units):
        space = number > 0 and unit not in ".,;:!?)’'-" and units[number - 1] not in "(’'-"
        if x + space + len(unit) > LINE:
            x, y, space = 0, y + 1, False
        x += space
        spots.append((x, y))
        x += len(unit)
    height = 0.21 * (y + 1) + 0.4
    figure, axes = plt.subplots(len(panels), 1, figsize=(8.2, height * len(panels)), squeeze=False)
    for ax, (title, values) in zip(axes[:, 0], panels.items(), strict=True):
        shades = np.clip(np.asarray(values) / max(np.percentile(values, 98), 1e-12), 0, 1)
        for number, (unit, (x, y)) in enumerate(zip(units, spots, strict=True)):
            n = word.get(number)
            strong = n is not None and key[n]
            if n is not None:
                ax.add_patch(
                    plt.Rectangle(
                        (x - 0.1, y - 0.42), len(unit) + 0.2, 0.84, color=plt.cm.Blues(0.75 * shades[n]), linewidth=0
                    )
                )
            ax.text(
                x,
                y,
                unit,
                va="center",
                fontsize=7.6,
                family="monospace",
                weight="bold" if strong else "normal",
                color="white" if n is not None and shades[n] > 0.85 else "#222222",
            )
            if strong:
                ax.plot([x, x + len(unit)], [y + 0.4, y + 0.4], color=COLOURS["first"], linewidth=1.4)
        ax.set(xlim=(-0.5, LINE + 0.5), ylim=(max(y for _, y in spots) + 0.6, -0.7))
        ax.set_title(title, fontsize=9)
        ax.axis("off")
    return figure


def signed_grids(
    grids: Mapping[str, ArrayLike],
    *,
    bar: str,
    certain: Mapping[str, ArrayLike] | None = None,
    percentile: float = 100,
) -> Figure:
    """Layer × head grids of values of both signs, red above 0 and blue below, on one scale; layers on x.

    Args:
        grids: title -> [layer, head].
        certain: title -> [layer, head], where to draw a dot: the interval leaves 0 out.
        percentile: of the absolute values, where the scale ends.
    """
    arrays = {title: np.asarray(values, float) for title, values in grids.items()}
    layers, heads = next(iter(arrays.values())).shape
    most = np.percentile(np.abs(np.concatenate([a.ravel() for a in arrays.values()])), percentile) or 1.0
    figure, axes = plt.subplots(
        1,
        len(arrays),
        figsize=((0.95 + 0.3 * layers) * len(arrays) + 1.1, 1 + 0.21 * heads),
        squeeze=False,
        sharey=True,
        layout="constrained",
    )
    for ax, (title, values) in zip(axes[0], arrays.items(), strict=True):
        image = ax.imshow(
            values.T,
            cmap="RdBu_r",
            vmin=-most,
            vmax=most,
            aspect="auto",
            extent=(0.5, layers + 0.5, heads + 0.5, 0.5),
        )
        if certain is not None:
            x, y = np.nonzero(np.asarray(certain[title]))
            ax.plot(x + 1, y + 1, ".", color="#222222", markersize=3.5)
        ax.set(xticks=range(1, layers + 1), yticks=range(1, heads + 1), xlabel="layer")
        ax.set_title(title, fontsize=9.5)
        ax.grid(visible=False)
    axes[0, 0].set_ylabel("head")
    figure.colorbar(image, ax=axes, label=bar)
    return figure


def ranked_heads(
    precision: Estimate, order: Sequence[tuple[int, int]], lines: Mapping[str, float], *, named: int = 8, ylabel: str
) -> Figure:
    """A point and interval for each head in a given order, the first ones named, and horizontal lines for other methods.

    Args:
        precision: (layer, head).
        lines: label -> value.
    """
    figure, ax = plt.subplots(figsize=(7.4, 3.8))
    x = np.arange(1, len(order) + 1)
    value, low, high = (
        np.array([getattr(precision, name)[head] for head in order]) for name in ("value", "low", "high")
    )
    ax.vlines(x, low, high, color=COLOURS["minilm"], alpha=0.4, linewidth=2)
    ax.plot(x, value, "o", color=COLOURS["minilm"], markersize=3.5, label="one head")
    top = 1.06 * max([*high, *lines.values()])
    for n, head in enumerate(order[:named]):  # spread out above the points, which are too close for names
        ax.annotate(
            head_name(*head),
            (x[n], high[n]),
            (1 + n * len(order) / 18, top),
            fontsize=7,
            ha="center",
            arrowprops={"arrowstyle": "-", "color": COLOURS["other"], "linewidth": 0.6},
        )
    styles = ["-", "--", ":", "-."]
    colours = [COLOURS["first"], COLOURS["self"], COLOURS["stop"], COLOURS["random"], COLOURS["other"]]
    for n, (label, at) in enumerate(lines.items()):
        ax.axhline(at, color=colours[n % 5], linestyle=styles[n % 4], linewidth=1.4, label=label)
    ax.set(xlabel="head, from the lowest cross-entropy where it was fitted", ylabel=ylabel, xlim=(0, len(order) + 1))
    ax.set_ylim(0, 1.06 * top)
    ax.grid(axis="x", visible=False)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    return figure


def score_bars(
    scores: Mapping[str, Mapping[str, Estimate]], *, xlabel: str, groups: Mapping[str, str] | None = None
) -> Figure:
    """Horizontal bars with intervals: a row for each method, a bar for each kind of score.

    Args:
        scores: method -> kind -> estimate.
        groups: method -> name of its colour in ``COLOURS`` (default: that of minilm).
    """
    kinds = list(next(iter(scores.values())))
    figure, ax = plt.subplots(figsize=(7.4, 0.9 + 0.42 * len(scores)))
    size = 0.8 / len(kinds)
    for row, (method, values) in enumerate(scores.items()):
        colour = COLOURS[(groups or {}).get(method, "minilm")]
        for n, kind in enumerate(kinds):
            found, y = values[kind], row + (n - (len(kinds) - 1) / 2) * size
            ax.barh(
                y, float(found.value), height=size * 0.92, color=colour, alpha=1 - 0.5 * n / max(1, len(kinds) - 1)
            )
            ax.plot([float(found.low), float(found.high)], [y, y], color="#222222", linewidth=1.2)
    handles = [
        Line2D(
            [],
            [],
            marker="s",
            linestyle="",
            markersize=8,
            color=COLOURS["self"],
            alpha=1 - 0.5 * n / max(1, len(kinds) - 1),
            label=kind,
        )
        for n, kind in enumerate(kinds)
    ]
    ax.set(yticks=range(len(scores)), yticklabels=list(scores), ylim=(len(scores) - 0.5, -0.5), xlabel=xlabel)
    ax.grid(axis="y", visible=False)
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def removal_curves(
    panels: Mapping[str, Mapping[str, Estimate]],
    counts: Sequence[int],
    *,
    ylabels: Mapping[str, str],
    range_of: Mapping[str, NDArray] | None = None,
) -> Figure:
    """What is left as heads are removed one after another, a line with its interval for each order.

    Args:
        panels: title -> order -> estimate [count].
        ylabels: title -> what is measured.
        range_of: title -> [2, count], lowest and highest of the random orders, drawn as dotted lines.
    """
    figure, axes = plt.subplots(1, len(panels), figsize=(4.1 * len(panels), 3.5), squeeze=False, layout="constrained")
    looks = ((COLOURS["cls"], "o", "-"), (COLOURS["first"], "s", "-"), (COLOURS["random"], "D", "--"))
    for ax, (title, series) in zip(axes[0], panels.items(), strict=True):
        for (name, found), (colour, marker, line) in zip(series.items(), looks, strict=False):
            ax.fill_between(counts, found.low, found.high, color=colour, alpha=0.16, linewidth=0)
            ax.plot(counts, found.value, line, color=colour, marker=marker, label=name)
        for edge in (range_of or {}).get(title, ()):
            ax.plot(counts, edge, ":", color=COLOURS["random"], linewidth=1)
        ax.axhline(float(next(iter(series.values())).value[0]), color=COLOURS["self"], linewidth=1, linestyle=":")
        ax.set(xlabel="heads removed", ylabel=ylabels[title], xticks=counts)
        ax.set_title(title, fontsize=10)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8.5)
    return figure
