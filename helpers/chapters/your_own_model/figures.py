"""A model on one page: its card, two cards side by side, the gaps between them."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers import plots
from helpers.plots import COLOURS, INK, LABELS, MARKERS, head_name
from helpers.stats import Estimate

ROLE_MARKS = {"previous": "P", "self": "=", "next": "N", "cls": "C", "sep": "S", "stop": "•", "broad": "B"}
"""The letter of a specialist on a card's grid."""

PLACES = ("cls", "sep", "stop", "other")
HATCHES = {"sep": "////", "stop": "...."}
DEALT = {"color": COLOURS["shuffled"], "marker": MARKERS["shuffled"], "linestyle": "", "markersize": 5}
"""Look of the control with shuffled scores."""


def model_card(values: Mapping[str, Any]) -> Figure:
    """Six panels on a sheet of A4's shape: types and specialists, where attention goes, entropy, relations, coreference, map.

    Args:
        values: what ``your_own_model.card`` makes, fresh or recorded; where it has a control with shuffled scores, that stands
            beside the entropy and the accuracies.
    """
    rooms = [["grid", "shares", "entropy"], ["relations", "coreference", "map"]]
    figure, axes = plt.subplot_mosaic(rooms, figsize=(10.4, 7.35), height_ratios=(1.05, 1))
    model, units = values["model"], values["units"]
    type_grid(axes["grid"], values, title="types and specialists")
    layer_shares(axes["shares"], values, title="where attention goes")
    layer_entropy(axes["entropy"], values)
    scored_rows(axes["relations"], values, "relations", "best head for each relation", "best fixed offset")
    scored_rows(axes["coreference"], values, "coreference", "coreference", "four-sieve rules")
    _map(axes["map"], values)
    _type_legend(axes["grid"], values)
    roles = {s["role"] for s in values["specialists"]}
    letters = "; ".join(f"{mark} for {LABELS[role]}" for role, mark in ROLE_MARKS.items() if role in roles)
    title = f"{model['name']}: {model['family']}, {model['layers']} × {model['heads']} heads, "
    left = {"x": 0.01, "ha": "left"}
    figure.suptitle(f"{title}{model['parameters'] / 1e6:.0f} M parameters", fontsize=13, weight="bold", **left)
    beaten = any(row["p"] < 0.05 for row in values["relations"].values())
    star = "; * better than the best fixed offset, p < 0.05" if beaten else ""
    notes = (
        f"letters: {letters or 'no specialist by chapter 02’s rule'}{star}\n{units['segments']} segments, "
        f"{units['sentences']} sentences, {units['mentions']} mentions; bars: 95 % intervals; heads chosen on one part, "
        f"scored on another; sha256 {model['sha256'][:10]}"
    )
    figure.supxlabel(notes, fontsize=7.5, color="#444444", **left)
    return figure


def cards_beside(one: Mapping[str, Any], other: Mapping[str, Any]) -> Figure:
    """Two models, a row each: types and specialists, where attention goes, and the map of heads by layer.

    Args:
        one, other: as for :func:`model_card`; layers and heads may differ in number.
    """
    figure, axes = plt.subplots(2, 3, figsize=(9.6, 7.0))
    for row, values in zip(axes, (one, other), strict=True):
        type_grid(row[0], values, title=f"{values['model']['name']}: types")
        _type_legend(row[0], values)
        layer_shares(row[1], values, title="attention to", legend=values is one)
        _map(row[2], values)
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
        face = COLOURS["cls"] if line.gap.low > 0 or line.gap.high < 0 else "white"
        plots.intervals(ax, row, line.gap, across=True, color=COLOURS["cls"], markerfacecolor=face)
    ax.axvline(0, color=INK, linewidth=1)
    plots.in_rows(ax, [line.measure for line in shown])
    ax.set_xlabel(f"{names[0]} minus {names[1]} (shares and ratios)")
    return figure


def _type_legend(ax: Axes, values: Mapping[str, Any]) -> None:
    """What the groups of heads are called, with their shares; groups without a head are left out."""
    called = plots.group_names(values["fits"])
    shares = {n: float(Estimate.from_record(values["type_shares"][n]).value) for n in called}
    there = [n for n in called if (np.asarray(values["types"]) == n).any()]
    _below(ax, handles=plots.squares({f"{called[n]} {shares[n]:.0%}": COLOURS[n] for n in there}))


def type_grid(ax: Axes, values: Mapping[str, Any], *, title: str) -> None:
    """The layer × head grid coloured by group of heads, with a letter on each specialist."""
    types = np.asarray(values["types"])
    letters = {(s["layer"], s["head"]): ROLE_MARKS[s["role"]] for s in values["specialists"]}
    every, size = (_every(types.shape[0]), _every(types.shape[1])), 8 if types.shape[1] <= 16 else 6
    plots.grid(ax, types, words=letters, every=every, weight="bold", fontsize=size)
    ax.set_title(title)


def layer_shares(ax: Axes, values: Mapping[str, Any], *, title: str, legend: bool = True) -> None:
    """Stacked bars: the share of each layer's attention that goes to special tokens, punctuation and the rest."""
    shares = Estimate.from_record(values["shares"]).value
    colours = COLOURS | {"other": "#dddddd"}
    parts = {LABELS[kind]: {"color": colours[kind], "hatch": HATCHES.get(kind, "")} for kind in PLACES}
    plots.stacked(ax, shares, parts, upright=True, size=0.85, edgecolor="white", linewidth=0.5)
    ax.grid(axis="y")
    plots.on_layers(ax, len(shares), every=_every(len(shares)), ylabel="share of attention", ylim=(0, 1), title=title)
    if legend:
        ax.legend(loc="upper right", fontsize=7.5, ncols=2, frameon=True, framealpha=0.9, edgecolor="none")


def layer_entropy(ax: Axes, values: Mapping[str, Any]) -> None:
    """Mean entropy of each layer's heads with its interval, beside that of even attention."""
    entropy, even = Estimate.from_record(values["entropy"]), values["uniform"]
    x = np.arange(1, len(entropy.value) + 1)
    look = {"color": COLOURS["entropy"], "linestyle": "-", "markersize": 4}
    plots.intervals(ax, x, entropy, bar={"alpha": 1, "linewidth": 2}, **look)
    if values.get("shuffled"):
        ax.plot(x, Estimate.from_record(values["shuffled"]["entropy"]).value, **DEALT, label=LABELS["shuffled"])
        ax.legend(fontsize=7.5, loc="lower right")
    ax.axhline(even, color=INK, linestyle="--", linewidth=1)
    ax.annotate("even", (x[-1], even), (0, -3), textcoords="offset points", fontsize=7.5, ha="right", va="top")
    plots.on_layers(ax, len(x), every=_every(len(x)), ylabel="nats", title="entropy", ylim=(0, 1.08 * even))
    ax.grid(axis="x")


def scored_rows(ax: Axes, values: Mapping[str, Any], part: str, title: str, baseline: str) -> None:
    """One row a name: a dot with its interval for the head, a bar for the baseline; or why there is nothing.

    Args:
        part: ``relations`` or ``coreference``.
    """
    ax.set_title(title)
    if not values[part]:
        _instead(ax, f"Not on this card: {values['missing'].get(part)}")
        return
    rows, control = values[part], (values.get("shuffled") or {}).get(part, {})
    names, rival = [], "baseline" if part == "relations" else "rules"
    for name, row in rows.items():
        note = ("*" if row["p"] < 0.05 else "") if part == "relations" else f" ({row['count']})"
        names.append(f"{name}{note} {head_name(row['layer'], row['head'])}")
    held_out = [Estimate.from_record(row["held_out"]) for row in rows.values()]
    simple = [float(Estimate.from_record(row[rival]).value) for row in rows.values()]
    plots.dots(names, {"head": held_out, baseline: simple}, xlabel="accuracy, held out", ax=ax)
    shuffled = [Estimate.from_record(control[name]["held_out"]).value if name in control else None for name in rows]
    plots.dot_rows(ax, names, {LABELS["shuffled"]: shuffled}, [DEALT])
    ax.tick_params(axis="y", labelsize=8)
    _below(ax, columnspacing=0.8)


def _below(ax: Axes, **options: object) -> None:
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, fontsize=7.5, handletextpad=0.2, **options)


def _instead(ax: Axes, text: str) -> None:
    ax.axis("off")
    ax.text(0, 0.9, fill(text, 34), transform=ax.transAxes, va="top", fontsize=8)


def _map(ax: Axes, values: Mapping[str, Any]) -> None:
    """Heads in the plane, in the colour of their layer, the layer's number at the mean of its heads."""
    if values["map"] is None:
        _instead(ax, values["missing"].get("map", ""))
        return
    model = values["model"]
    points = np.asarray(values["map"]["points"], np.float64).reshape(model["layers"], model["heads"], 2)
    for layer, (own, colour) in enumerate(zip(points, plots.layer_colours(len(points)), strict=True), 1):
        ax.scatter(*own.T, s=22, color=[colour], edgecolors="#555555", linewidths=0.4)
        box = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": colour, "alpha": 0.9}
        ax.text(*own.mean(0), layer, ha="center", va="center", fontsize=8, weight="bold", bbox=box)
    ax.set_title(f"map, by layer (stress {values['map']['stress']:.2f})")
    ax.set(xlabel="nats", ylabel="nats")
    ax.set_aspect("equal", adjustable="datalim")


def _every(count: int) -> int:
    """Which layers or heads have a tick."""
    return max(1, -(-count // 12))
