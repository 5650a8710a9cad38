"""What only chapter 02 draws."""

from collections.abc import Mapping, Sequence
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from helpers import plots, views
from helpers.measurements.surface import SurfacePatterns
from helpers.plots import COLOURS, INK, LABELS, MARKERS, Names
from helpers.tokens import Batch

Roles = Mapping[tuple[int, int], str]
"""(layer, head) -> role, from 0."""
PLAIN, SHARE, BREADTH = "none of these", "attention to [CLS] (%)", "entropy (nats)"


def received(shares: ArrayLike, sentence: Batch) -> Figure:
    """A bar for each token of a sentence: what it receives of all attention, and the line of an even share.

    Args:
        shares: [token].
        sentence: a batch of one.
    """
    tokens = sentence.tokens[0]
    figure, ax = plt.subplots(figsize=(0.6 + 0.36 * len(tokens), 3.0))
    kinds = np.where(sentence.cls[0].cpu(), "cls", np.where(sentence.sep[0].cpu(), "sep", "other"))
    ax.bar(range(len(tokens)), 100 * np.asarray(shares), color=[COLOURS[kind] for kind in kinds])
    plots.references(ax, {"even share": 100 / len(tokens)}, colour=INK, linewidth=1)
    plots.on_tokens(ax, tokens)
    ax.set_ylabel("share of all attention (%)")
    ax.legend()
    return figure


def aim_and_breadth(trained: SurfacePatterns, dealt: SurfacePatterns, roles: Roles) -> Figure:
    """A point for each head at its share to [CLS] and its entropy, and one for its shuffled scores; focused heads are named."""
    figure, ax = plt.subplots(figsize=(7.4, 4.0))
    layers, heads = trained["cls"].value.shape
    kinds = np.array([[roles.get((layer, head), "") for head in range(heads)] for layer in range(layers)])
    x, y = 100 * trained["cls"].value, trained["entropy"].value
    shuffled = {"color": COLOURS["shuffled"], "marker": MARKERS["shuffled"], "label": LABELS["shuffled"]}
    ax.scatter(100 * dealt["cls"].value, dealt["entropy"].value, s=16, linewidths=0, alpha=0.7, **shuffled)
    plots.scatter_groups(ax, x, y, kinds, s=34, edgecolors="white", linewidths=0.5)
    for (layer, head), role in roles.items():
        if role != "broad":
            at = x[layer, head], y[layer, head]
            ax.annotate(plots.head_name(layer, head), at, (6, 3), textcoords="offset points", fontsize=8)
    even = 100 * float(trained["chance_cls"].value), float(trained["uniform"].value)
    ax.plot(*even, marker="+", linestyle="", color=INK, markersize=11, label="even attention")
    ax.set(xlabel=SHARE, ylabel=BREADTH)
    plots.legend_beside(ax, fontsize=8)
    return figure


def heads_to_touch(
    trained: SurfacePatterns, dealt: SurfacePatterns, roles: Roles, maps: Sequence[ArrayLike], tokens: Names
) -> views.InteractiveFigure:
    """The same points to touch; each shows its head's map of one sentence. A large model gets fewer points, or no maps.

    Args:
        maps: of the trained heads and of their shuffled scores, [layer, head, query, key].
        tokens: of the sentence.
    """
    places = list(np.ndindex(trained["cls"].value.shape))
    heads = [plots.head_name(*place) for place in places]
    both = {name: np.stack([one[name].value for one in (trained, dealt)]).ravel() for name in SAID}
    names = [*heads, *(f"{head}, shuffled" for head in heads)]
    said = [", ".join(SAID[name].format(both[name][n]) for name in SAID) for n in range(len(names))]
    kinds, kind_colours = views.by_kind([*(roles.get(p, "") for p in places), *["shuffled"] * len(heads)], rest=PLAIN)
    layers, layer_colours = views.by_layer([layer for layer, _ in places])
    layers += [LABELS["shuffled"]] * len(heads)
    layer_colours |= {LABELS["shuffled"]: COLOURS["shuffled"]}
    seen = np.concatenate([np.asarray(one).reshape(-1, len(tokens), len(tokens)) for one in maps])

    def drawn(count: int, with_maps: bool) -> views.InteractiveFigure:
        shuffled = " and its shuffled scores" if count > len(heads) else ""
        return views.points(
            100 * both["cls"][:count],
            both["entropy"][:count],
            names[:count],
            xlabel=SHARE,
            ylabel=BREADTH,
            alt=f"Every head{shuffled} by share to [CLS] and entropy.",
            colours={"role": (kinds[:count], kind_colours), "layer": (layers[:count], layer_colours)},
            texts=said[:count],
            maps=seen[:count] if with_maps else None,
            tokens=tokens,
            lines={"even attention": float(trained["uniform"].value)},
            first=int(both["cls"][: len(heads)].argmax()),
        )

    sizes = ((len(names), True), (len(heads), True), (len(names), False), (len(heads), False))
    return views.largest(*(partial(drawn, *size) for size in sizes))


SAID = {"cls": "{:.0%} to [CLS]", "previous": "{:.0%} to the previous token", "next": "{:.0%} to the next"}
SAID |= {"entropy": "entropy {:.2f} nats"}
"""What is said of a point."""
