"""A model on one page: its card, two cards side by side, the gaps between them."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from helpers.engine.estimates import Estimate
from helpers.figures.look import COLOURS, LABELS, TYPE_NAMES, head_name, layer_colours

ROLE_MARKS = {"previous": "P", "self": "=", "next": "N", "cls": "C", "sep": "S", "stop": ".", "broad": "B"}
"""The letter of a specialist on a card's grid."""

PLACES = ("cls", "sep", "stop", "other")
PALE = 0.4  # opacity of a type whose name fits no group of heads
HATCHES = {"cls": "", "sep": "////", "stop": "....", "other": ""}


def model_card(values: Mapping[str, Any]) -> Figure:
    """Six panels on a sheet of A4's shape: types and specialists, where attention goes, entropy, relations, coreference, map.

    Args:
        values: what ``your_own_model.as_dict`` makes, fresh or recorded.
    """
    figure, axes = plt.subplot_mosaic(
        [["grid", "shares", "entropy"], ["relations", "coref", "map"]], figsize=(10.4, 7.35), height_ratios=(1.05, 1)
    )
    model, units = values["model"], values["units"]
    type_grid(axes["grid"], values, title="types and specialists")
    layer_shares(axes["shares"], values, title="where attention goes")
    layer_entropy(axes["entropy"], values)
    for key, part, rows in (
        ("relations", "relations", [_relation(n, r) for n, r in values["relations"].items()]),
        ("coref", "coreference", [_mention(n, r) for n, r in values["coreference"].items()]),
    ):
        title = {"relations": "best head for each relation", "coref": "coreference"}[key]
        baseline = {"relations": "best fixed offset", "coref": "four-sieve rules"}[key]
        scored_rows(axes[key], rows, title=title, baseline=baseline, missing=values["missing"].get(part))
    _map(axes["map"], values)
    handles = [
        _square(
            to_rgba(COLOURS[n], 1.0 if values["fits"][n] else PALE),
            f"{LABELS[n]} {_share(values['type_shares'][n])}" + ("" if values["fits"][n] else "*"),
        )
        for n in TYPE_NAMES
    ]
    axes["grid"].legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, fontsize=7.5, handletextpad=0.2
    )
    roles = {s["role"] for s in values["specialists"]}
    letters = ", ".join(f"{mark} {LABELS[role]}" for role, mark in ROLE_MARKS.items() if role in roles)
    figure.suptitle(
        f"{model['name']}: {model['family']}, {model['layers']} × {model['heads']} heads, "
        f"{model['parameters'] / 1e6:.0f} M parameters",
        fontsize=13,
        weight="bold",
        x=0.01,
        ha="left",
    )
    star = "" if all(values["fits"].values()) else "   * pale: no group of heads fits this name"
    figure.supxlabel(
        f"letters: {letters or 'no specialist by chapter 02’s rule'}{star}\n{units['segments']} segments, {units['sentences']} sentences, "
        f"{units['mentions']} mentions; bars and ticks: 95 %; heads chosen on one part, scored on another; "
        f"sha256 {model['sha256'][:10]}",
        fontsize=7.5,
        x=0.01,
        ha="left",
        color="#444444",
    )
    return figure


def cards_beside(one: Mapping[str, Any], other: Mapping[str, Any]) -> Figure:
    """Two models, a row each: types and specialists, where attention goes, and the map of heads by layer.

    Args:
        one, other: as for :func:`model_card`; layers and heads may differ in number.
    """
    figure, axes = plt.subplots(2, 3, figsize=(9.6, 6.6))
    for row, values in zip(axes, (one, other), strict=True):
        model = values["model"]
        type_grid(row[0], values, title=f"{model['name']}: types")
        layer_shares(row[1], values, title="attention to", legend=values is one)
        _map(row[2], values)
    names = [n for n in TYPE_NAMES if any((np.asarray(v["types"]) == n).any() for v in (one, other))]
    figure.legend(
        handles=[_square(COLOURS[n], LABELS[n]) for n in names], loc="outside lower left", ncols=4, fontsize=8
    )
    return figure


def gaps(lines: Sequence[Any], *, names: tuple[str, str]) -> Figure:
    """How far two models are apart in each number, with intervals; those that exclude zero are filled.

    Args:
        lines: of ``your_own_model.compare``; those without a gap are left out. Two panels with scales of their own would
            hide how unlike the gaps are, so all share one.
        names: of the two models.
    """
    shown = [line for line in lines if line.gap is not None]
    figure, ax = plt.subplots(figsize=(7.4, 1.0 + 0.27 * len(shown)))
    for row, line in enumerate(shown):
        gap, clear = line.gap, line.gap.low > 0 or line.gap.high < 0
        ax.plot([gap.low, gap.high], [row, row], color=COLOURS["cls"], linewidth=2.2, alpha=0.5)
        ax.plot(gap.value, row, "o", color=COLOURS["cls"], markerfacecolor=COLOURS["cls"] if clear else "white")
    ax.axvline(0, color="#222222", linewidth=1)
    ax.set(
        yticks=range(len(shown)),
        yticklabels=[line.measure for line in shown],
        ylim=(len(shown) - 0.5, -0.5),
        xlabel=f"{names[0]} minus {names[1]} (shares and ratios)",
    )
    return figure


# ---------------------------------------------------------------------------------------- panels


def type_grid(ax: Axes, values: Mapping[str, Any], *, title: str) -> None:
    """The layer × head grid coloured by type, pale where the type's name fits no group, with a letter on each specialist."""
    types = np.asarray(values["types"])
    layers, heads = types.shape
    fits = values["fits"]
    shades = np.array([to_rgba(COLOURS[name], 1.0 if fits[name] else PALE) for name in types.ravel()])
    shades = shades.reshape(layers, heads, 4)
    ax.imshow(shades.transpose(1, 0, 2), aspect="auto", extent=(0.5, layers + 0.5, heads + 0.5, 0.5))
    for s in values["specialists"]:
        name = str(types[s["layer"], s["head"]])
        dark = fits[name] and name in ("vertical", "diagonal")
        ax.text(
            s["layer"] + 1,
            s["head"] + 1,
            ROLE_MARKS[s["role"]],
            ha="center",
            va="center",
            weight="bold",
            fontsize=8 if heads <= 16 else 6,
            color="white" if dark else "#111111",
        )
    ax.set(xlabel="layer", ylabel="head", title=title, xticks=_ticks(layers), yticks=_ticks(heads))
    ax.grid(visible=False)


def layer_shares(ax: Axes, values: Mapping[str, Any], *, title: str, legend: bool = True) -> None:
    """Stacked bars: the share of each layer's attention that goes to special tokens, punctuation and the rest."""
    shares = Estimate.from_record(values["shares"]).value
    below = np.zeros(len(shares))
    for kind, column in zip(PLACES, shares.T, strict=True):
        ax.bar(
            np.arange(1, len(shares) + 1),
            column,
            bottom=below,
            width=0.85,
            edgecolor="white",
            linewidth=0.5,
            color="#dddddd" if kind == "other" else COLOURS[kind],
            hatch=HATCHES[kind],
            label=LABELS[kind],
        )
        below += column
    ax.set(xlabel="layer", ylabel="share of attention", ylim=(0, 1), title=title, xticks=_ticks(len(shares)))
    ax.grid(axis="x", visible=False)
    if legend:
        ax.legend(loc="upper right", fontsize=7.5, ncols=2, frameon=True, framealpha=0.9, edgecolor="none")


def layer_entropy(ax: Axes, values: Mapping[str, Any]) -> None:
    """Mean entropy of each layer's heads with its interval, beside that of even attention."""
    entropy = Estimate.from_record(values["entropy"])
    x = np.arange(1, len(entropy.value) + 1)
    ax.vlines(x, entropy.low, entropy.high, color=COLOURS["entropy"], linewidth=2)
    ax.plot(x, entropy.value, "o-", color=COLOURS["entropy"], markersize=4)
    ax.axhline(values["uniform"], color="#222222", linestyle="--", linewidth=1)
    ax.annotate(
        "even",
        (x[-1], values["uniform"]),
        xytext=(0, -3),
        textcoords="offset points",
        fontsize=7.5,
        ha="right",
        va="top",
    )
    ax.set(xlabel="layer", ylabel="nats", title="entropy", xticks=_ticks(len(x)), ylim=(0, 1.08 * values["uniform"]))


def scored_rows(
    ax: Axes, rows: Sequence[tuple[str, Estimate, float]], *, title: str, baseline: str, missing: str | None = None
) -> None:
    """One row a name: a dot with its interval for the head, a bar for the baseline; or why there is nothing."""
    ax.set_title(title)
    if not rows:
        ax.axis("off")
        ax.text(0, 0.9, _wrapped(f"Not on this card: {missing}"), transform=ax.transAxes, va="top", fontsize=8)
        return
    for row, (_, held_out, simple) in enumerate(rows):
        ax.plot([held_out.low, held_out.high], [row, row], color=COLOURS["first"], linewidth=2.2, alpha=0.5)
        ax.plot(held_out.value, row, "o", color=COLOURS["first"], markersize=5, label="head" if row == 0 else None)
        ax.plot(
            simple,
            row,
            "|",
            color=COLOURS["cls"],
            markersize=9,
            markeredgewidth=2,
            label=baseline if row == 0 else None,
        )
    ax.set(yticks=range(len(rows)), xlim=(0, 1), ylim=(len(rows) - 0.5, -0.5), xlabel="accuracy, held out")
    ax.set_yticklabels([label for label, _, _ in rows], fontsize=8)
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.17), fontsize=7.5, ncols=2, handletextpad=0.2, columnspacing=0.8
    )


def _relation(name: str, row: Mapping[str, Any]) -> tuple[str, Estimate, float]:
    star = "*" if row["p"] < 0.05 else ""
    label = f"{name}{star} {head_name(row['layer'], row['head'])}"
    return label, Estimate.from_record(row["held_out"]), float(Estimate.from_record(row["baseline"]).value)


def _mention(name: str, row: Mapping[str, Any]) -> tuple[str, Estimate, float]:
    label = f"{name} ({row['count']}) {head_name(row['layer'], row['head'])}"
    return label, Estimate.from_record(row["held_out"]), float(Estimate.from_record(row["rules"]).value)


def _map(ax: Axes, values: Mapping[str, Any]) -> None:
    """Heads in the plane, in the colour of their layer, the layer's number at the mean of its heads."""
    if values["map"] is None:
        ax.axis("off")
        ax.text(0, 0.9, _wrapped(values["missing"].get("map", "")), transform=ax.transAxes, va="top", fontsize=8)
        return
    points: NDArray = np.asarray(values["map"]["points"], np.float64)
    layers, heads = values["model"]["layers"], values["model"]["heads"]
    for layer, colour in enumerate(layer_colours(layers)):
        own = points[layer * heads : (layer + 1) * heads]
        ax.scatter(*own.T, s=22, color=[colour], edgecolors="#555555", linewidths=0.4)
        ax.text(
            *own.mean(0),
            layer + 1,
            fontsize=8,
            weight="bold",
            ha="center",
            va="center",
            bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": colour, "alpha": 0.9},
        )
    ax.set_title(f"map, by layer (stress {values['map']['stress']:.2f})")
    ax.set(xlabel="nats", ylabel="nats")
    ax.set_aspect("equal", adjustable="datalim")


def _ticks(count: int) -> range:
    return range(1, count + 1, max(1, -(-count // 12)))


def _share(record: Estimate | Mapping[str, Any]) -> str:
    return f"{float(Estimate.from_record(record).value):.0%}"


def _square(colour: str | tuple, label: str) -> Line2D:
    return Line2D([], [], marker="s", linestyle="", markersize=8, color=colour, label=label)


def _wrapped(text: str, width: int = 34) -> str:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + len(word) >= width:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return "\n".join([*lines, line])
