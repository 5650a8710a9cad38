"""The drawing of a layer that grows through chapter 01, and how an input and a map are drawn there."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from helpers import attention
from helpers.encoders import Encoder
from helpers.heads import Head
from helpers.measurements import one_head
from helpers.plots import CENTRED, INK, Names
from helpers.tokens import Batch

# of the residual stream, of queries, keys, values (and mixtures of them), and of scores and weights
COLOURS = {"stream": "#44546A", "query": "#B4690E", "key": "#0F766E", "value": "#7A3E9D", "weight": "#2F6BA8"}
OLD, FAINT = "#6a6a6a", "#c4c4c4"  # what an earlier step drew, and its frames
MOST_HEADS, SHOWN = 12, 3

# inches
CELL, ROW, GAP, WIDE = 0.40, 0.22, 0.50, 7.2
ABOVE = (0.74, 0.88, 0.86, 0.86)  # above each row of blocks
HEADING = 0.43  # from the end of an arrow down to the block below it
BLOCK, SQUARE = SHOWN * CELL, 4 * CELL
FIRST, SECOND, THIRD, FOURTH = (0.78 + (BLOCK + GAP) * n for n in range(4))  # left sides of blocks
HEADS, END = 1.52, FOURTH + BLOCK

STEPS = ("scores", "values", "layers")
# array -> the step that draws it, colour, left side, width, row of blocks, title; from where arrows come, with what is done
BLOCKS = {
    "hidden": ("scores", "stream", FIRST, BLOCK, 0, "hidden states x", {}),
    "query": ("scores", "query", SECOND, BLOCK, 0, "queries q", {"hidden": "$W_Q$"}),
    "key": ("scores", "key", THIRD, BLOCK, 0, "keys k", {"hidden": "$W_K$"}),
    "value": ("scores", "value", FOURTH, BLOCK, 0, "values v", {"hidden": "$W_V$"}),
    "scores": ("scores", "weight", 1.62, SQUARE, 1, "scores s = q · k / √{d}", {"query": "", "key": ""}),
    "weights": ("values", "weight", 3.80, SQUARE, 1, "weights α", {"scores": "softmax"}),
    "output": ("values", "value", FOURTH, BLOCK, 1, "outputs o = Σ α v", {"value": "", "weights": "× v"}),
    "heads": ("layers", "stream", HEADS, END - HEADS, 2, "", {}),
    "added": ("layers", "stream", SECOND, BLOCK, 3, "added: z", {}),
    "before": ("layers", "stream", FIRST, BLOCK, 3, "x, as it was", {}),
    "residual": ("layers", "stream", THIRD, BLOCK, 3, "x + z", {}),
    "after": ("layers", "stream", FOURTH, BLOCK, 3, "{after}", {"residual": ""}),
}
ALL, ONE, TWO = slice(None), slice(0, 2), slice(1, 3)  # sides of all rows or columns, of the first, of the second
FOLLOWED = {  # step -> which rows and columns of which blocks it frames
    "scores": {"query": (TWO, ALL), "key": (ONE, ALL), "scores": (TWO, ONE)},
    "values": {"scores": (TWO, ALL), "weights": (TWO, ALL), "value": (ALL, ONE), "output": (TWO, ONE)},
    "layers": {"heads": (TWO, ALL), "before": (TWO, ONE), "added": (TWO, ONE), "residual": (TWO, ONE)},
}
STREAM = ("before", "added", "residual")
# whose largest number is darkest, if not a block's own: x, z and their sum can be compared, and a mixture with its values
SCALES = {"output": ("value",)} | dict.fromkeys(STREAM, STREAM)


class Numbers(SimpleNamespace):
    """What one head, and the layer around it, make of one short input of n tokens: D numbers a hidden state, d a head.

    Attributes:
        tokens: their names.
        layer, head, layers: which head it is, from 0, and of how many layers.
        hidden: [n, D], what enters the layer.
        query, key, value: [n, d].
        scores, weights: [n, n], before and after the softmax.
        output: [n, d], weights @ value.
        heads: [n, H, d], the outputs of all heads of the layer.
        added: [n, D], these side by side through the output map, bias included.
        residual: [n, D], hidden + added.
        after: [n, D], what leaves the layer.
    """

    def update(self, **own: torch.Tensor) -> None:
        """Put a reader's own tensors in place of the numbers of these names."""
        vars(self).update({name: part.double().cpu().numpy() for name, part in own.items()})


def as_text(number: float, *, inside: bool = False) -> str:
    """Two decimals, with a true minus sign and no negative zero; ``inside`` a sum, negative numbers have brackets."""
    text = f"{number:z.2f}".replace("-", "−")
    return f"({text})" if inside and text.startswith("−") else text


def _products(ones: np.ndarray, others: np.ndarray) -> str:
    """A sum of products as it is written out."""
    pairs = zip(ones, others, strict=True)
    return " + ".join(f"{as_text(a, inside=True)}·{as_text(b, inside=True)}" for a, b in pairs)


def _sums(numbers: Numbers) -> dict[str, list[str]]:
    """How the second token and the first are worked out, a line or two for each step of one head."""
    q, k, d, scores = numbers.query[1], numbers.key[0], numbers.query.shape[1], numbers.scores[1]
    rest = f"{as_text(q[SHOWN:] @ k[SHOWN:], inside=True)} from the other {d - SHOWN} = {as_text(q @ k)}"
    distance = scores[0] - q @ k / d**0.5
    further = f" + {as_text(distance, inside=True)} for the distance" if abs(distance) > 0.005 else ""
    pair = f"{numbers.tokens[1]}, {numbers.tokens[0]}:   {_products(q[:SHOWN], k[:SHOWN])}"
    powers, written = np.exp(scores), [f"$e^{{{as_text(score)}}}$" for score in scores]
    share = f"{powers[0]:.4g} / {powers.sum():.4g}  =  {as_text(numbers.weights[1, 0])}"
    mixture = f"{_products(numbers.weights[1], numbers.value[:, 0])} = {as_text(numbers.output[1, 0])}"
    return {
        "scores": [f"{pair} + {rest};   / √{d}{further} = {as_text(scores[0])}"],
        "values": [f"{written[0]} / ({' + '.join(written)})  =  {share}", mixture],
    }


def _shown(numbers: Numbers) -> dict[str, tuple[np.ndarray, Names, str]]:
    """Of each block: its numbers, the names of their columns, and what is said of them below the title."""
    arrays, count = vars(numbers) | {"before": numbers.hidden}, numbers.heads.shape[1]
    few = {name: (arrays[name][:, :SHOWN], (), f"{SHOWN} of {arrays[name].shape[1]} dimensions") for name in BLOCKS}
    first = max(0, min(numbers.head - MOST_HEADS // 2, count - MOST_HEADS))
    heads = range(count)[first : first + MOST_HEADS]
    return few | {
        "scores": (numbers.scores, numbers.tokens, "each query with each key"),
        "weights": (numbers.weights, numbers.tokens, "each row sums to 1"),
        "heads": (numbers.heads[:, heads, 0], [f"{Head.of((numbers.layer, head))}" for head in heads], ""),
    }


class _Page:
    """Axes in inches, y downwards: four rows of blocks below one another.

    Attributes:
        ink, colours: of the step that is being drawn, grey if it is not the last.
        shown: of each block, see :func:`_shown`.
        sides: of each block, between which its columns and its rows stand.
    """

    def __init__(self, numbers: Numbers, upto: str) -> None:
        self.numbers, self.shown, self.sides, rows = numbers, _shown(numbers), {}, np.arange(len(numbers.tokens) + 1)
        tops = np.cumsum(ABOVE) + rows[-1] * ROW * np.arange(4)
        for name, (_, _, left, width, place, *_) in BLOCKS.items():
            columns = self.shown[name][0].shape[1]
            self.sides[name] = np.linspace(left, left + width, columns + 1), tops[place] + ROW * rows
        lowest, below = {"scores": ("scores", 0.34), "values": ("scores", 0.56), "layers": ("added", 1)}[upto]
        height = self.sides[lowest][1][-1] + below
        self.figure = plt.figure(figsize=(WIDE, height), layout="none")
        self.ax = self.figure.add_axes((0, 0, 1, 1), xlim=(0, WIDE), ylim=(height, 0))
        self.ax.axis("off")

    def text(self, x: float, y: float, text: str, size: float = 8, within: float = WIDE, **look: object) -> None:
        """Letters of at most such a size, smaller where the text would be wider than so many inches."""
        size = min(size, within * 72 / (0.66 * max(len(text), 1)))
        self.ax.text(x, y, text, **{"color": self.ink, "fontsize": size, "zorder": 5} | CENTRED | look)

    def title(self, x: float, y: float, title: str, note: str, colour: str) -> None:
        """Above a block: what it is and, in plain letters, what is shown of it."""
        self.text(x, y - 0.29, title, 9, color=colour, weight="bold")
        self.text(x, y - 0.12, note)

    def arrow(self, *corners: tuple[float, float], head: str = "v", **look: object) -> None:
        """A line with corners and, at its end, a marker."""
        look = {"color": self.ink, "linewidth": 1.1, "solid_joinstyle": "round", "zorder": 1} | look
        self.ax.plot(*zip(*corners, strict=True), marker=head, markersize=4.5, markevery=[-1], **look)

    def bent(self, name: str, end: float, below: float, bend: float = 0.12) -> None:
        """An arrow from a block down, across, and down to a point."""
        x, y = self.sides[name][0].mean(), self.sides[name][1][-1]
        self.arrow((x, y), (x, y + bend), (end, y + bend), (end, below))

    def link(self, name: str, target: str, label: str) -> None:
        """An arrow from one block to another, with what is done on the way."""
        (x, y), (end, rows) = self.sides[name], self.sides[target]
        start, middle, above = x.mean(), end.mean(), rows[0] - HEADING
        if name == "hidden":
            self.arrow((start, above), (start, 0.14), (middle, 0.14), (middle, above))
            self.text(middle + 0.20, 0.24, label, 9, parse_math=True)
        elif y[0] == rows[0]:
            self.arrow((x[-1] + 0.04, y.mean()), (end[0] - 0.06, y.mean()), head=">")
            self.text((x[-1] + end[0]) / 2, y.mean() - 0.11, label, within=0.52)
        else:
            self.bent(name, middle, above - 0.20 * bool(self.shown[target][1]))

    def frame(self, x: np.ndarray, y: np.ndarray, **look: object) -> None:
        self.ax.add_patch(plt.Rectangle((x[0], y[0]), np.ptp(x), np.ptp(y), fill=False, **look))

    def cells(self, x: np.ndarray, y: np.ndarray, numbers: np.ndarray, most: float, colour: str) -> None:
        """Cells in a frame, darker for numbers further from 0."""
        shade, edge, width = (1 / 3, FAINT, 0.8) if colour == OLD else (1, colour, 1.4)
        shades = shade * (0.05 + 0.50 * np.minimum(1, np.abs(numbers) / (most or 1)))
        look = {"cmap": LinearSegmentedColormap.from_list("", ["white", colour]), "vmin": 0, "vmax": 1}
        self.ax.pcolormesh(x, y, shades, **look, edgecolor="white", linewidth=0.8)
        self.frame(x, y, edgecolor=edge, linewidth=width, zorder=3)

    def block(self, name: str) -> None:
        """Numbers with a row for each token, named where nothing stands to their left; above them what they are."""
        (x, y), (numbers, names, note) = self.sides[name], self.shown[name]
        _, kind, *_, title, sources = BLOCKS[name]
        most = max(np.abs(self.shown[other][0]).max() for other in SCALES.get(name, (name,)))
        self.cells(x, y, numbers, most, self.colours[kind])
        columns, wide, rows = x[:-1] + np.diff(x) / 2, x[1] - x[0], y[:-1] + ROW / 2
        for (row, column), number in np.ndenumerate(numbers):
            self.text(columns[column], rows[row], as_text(number), within=wide)
        for column, text in enumerate(names):
            self.text(columns[column], y[0] - 0.11, text, within=wide)
        for row, token in enumerate(self.numbers.tokens if x[0] < SECOND else ()):
            weight = "bold" if self.ink == INK and row == 1 else "normal"
            self.text(x[0] - 0.07, rows[row], token, within=0.5, ha="right", weight=weight)
        following = self.numbers.layer + 2
        after = f"x of layer {following}" if following <= self.numbers.layers else "last x"
        title = title.format(d=self.numbers.query.shape[1], after=after)
        self.title(x.mean(), y[0] - 0.18 * bool(names), title, note, self.colours[kind])
        for source, label in sources.items():
            self.link(source, name, label)


def _heads(page: _Page) -> None:
    """The head among all of its layer, and what these go through."""
    (x, y), (target, below), (_, count, d) = page.sides["heads"], page.sides["added"], page.numbers.heads.shape
    shown, names, _ = page.shown["heads"]
    own = names.index(str(Head.of((page.numbers.layer, page.numbers.head))))
    page.cells(x[own : own + 2], y, shown[:, [own]], np.abs(shown).max(), page.colours["value"])
    column, middle, low = x[own : own + 2].mean(), target.mean(), y[-1] + 0.10
    page.bent("output", column, y[0] - 0.23, 0.13)
    beside = (column + (END if own < len(names) / 2 else HEADS)) / 2  # the arrow, where the title has room
    note = f"1 of {d} dimensions each" + (f", {len(names)} of {count} heads" if len(names) < count else "")
    page.title(beside, y[0] - 0.18, "the heads of the layer, side by side", note, page.colours["stream"])
    page.arrow((HEADS, low - 0.05), (HEADS, low), (END, low), (END, low - 0.05), head="")
    page.arrow((middle, low), (middle, below[0] - HEADING))
    page.text(middle + 0.20, low + 0.13, "$W_O$", 9, parse_math=True)


def _layers(page: _Page) -> None:
    """The residual stream, which passes by the head, and the strip of layers."""
    layer, count, blue = page.numbers.layer, page.numbers.layers, COLOURS["stream"]
    start, y, x, high = page.sides["hidden"][1][-1], page.sides["before"][1], FIRST + 0.08, 0.28
    page.arrow((x, start), (x, y[0] - HEADING), color=blue, linewidth=2.6)
    page.text(x - 0.14, (start + y[0]) / 2, "residual stream", color=blue, weight="bold", rotation=90)
    for left, sign in ((SECOND, "+"), (THIRD, "=")):
        page.text(left - GAP / 2, y.mean(), sign, 14)
    strip, wide, own = y[-1] + 0.40, min(0.62, (END - HEADS - 0.5) / count), np.arange(count) == layer
    look = {"color": [(blue, 0.55 if this else 0.10) for this in own], "linewidth": np.where(own, 1.6, 0.8)}
    middles = HEADS + (np.arange(count) + 0.5) * wide
    bars = page.ax.bar(middles, high, 0.88 * wide, strip, edgecolor=blue, **look)
    names = page.ax.bar_label(bars, range(1, count + 1), label_type="center", size=min(8, 48 * wide), color=INK)
    names[layer].set_weight("bold")
    page.text(HEADS - 0.10, strip + high / 2, "layers", 9, ha="right", weight="bold")
    page.bent("after", [*middles[1:], HEADS + count * wide + 0.2][layer], strip - 0.05, 0.16)
    note = "the arrow after x + z: normalise, then a small network for each token alone, normalise again"
    page.text(WIDE / 2, strip + high + 0.17, note)


def draw(numbers: Numbers, upto: str = "layers") -> Figure:
    """The steps up to the one named, with their numbers; the last is lit, the others are grey.

    Hidden states and heads are cut to a few dimensions, and the drawing says so. The numbers of the second token are framed,
    and worked out in a line of their own.

    Args:
        upto: the last step: scores (with what they are made of), values (weights and output) or layers.
    """
    page, sums, besides = _Page(numbers, upto), _sums(numbers), {"heads": _heads, "after": _layers}
    for name, (step, *_) in BLOCKS.items():
        if step in STEPS[: STEPS.index(upto) + 1]:
            page.ink, page.colours = (INK, COLOURS) if step == upto else (OLD, dict.fromkeys(COLOURS, OLD))
            page.block(name)
            if name in besides:
                besides[name](page)
    for name, (rows, columns) in FOLLOWED.get(upto, {}).items():
        x, y = page.sides[name]
        page.frame(x[columns], y[rows], edgecolor=INK, linewidth=1.7, zorder=4)
    for line, text in enumerate(sums.get(upto, ())):
        look = {"within": np.inf, "parse_math": True} if "$" in text else {"within": 7.6}
        page.text(WIDE / 2, page.sides["scores"][1][-1] + 0.19 + 0.22 * line, text, **look)
    return page.figure


def numbers(encoder: Encoder, batch: Batch, layer: int, head: int) -> Numbers:
    """What the drawing shows: a head, and the layer around it, on the first input of a batch.

    Args:
        layer, head: from 0.
    """
    length, width, projections = int(batch.lengths[0]), (encoder.heads, -1), one_head.projections(encoder, layer)
    with torch.inference_mode():
        states = encoder.model(**batch.inputs, output_hidden_states=True).hidden_states
        hidden, after = (states[n][0, :length] for n in (layer, layer + 1))
        q, k, v = (project(hidden).unflatten(-1, width).transpose(0, 1) for project in projections)
        scores = q @ k.mT / q.shape[-1] ** 0.5 + one_head.position_term(encoder, hidden)  # [head, n, n]
        weights = scores.softmax(-1)
        heads = (weights @ v).transpose(0, 1)
        added = attention.output_projections(encoder)[layer](heads.flatten(1))
    parts = {"query": q[head], "key": k[head], "value": v[head], "scores": scores[head], "weights": weights[head]}
    parts |= {"output": heads[:, head], "heads": heads, "hidden": hidden, "added": added, "residual": hidden + added}
    arrays = {name: part.double().cpu().numpy() for name, part in (parts | {"after": after}).items()}
    return Numbers(tokens=tuple(batch.tokens[0]), layer=layer, head=head, layers=encoder.layers, **arrays)
