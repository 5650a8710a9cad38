"""The drawing of a layer that grows through chapter 01, and how an input and a map are drawn there."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from helpers import attention, plots, tokens
from helpers.encoders import Encoder
from helpers.measurements import one_head
from helpers.plots import CENTRED, INK, Names, head_name
from helpers.tokens import Batch

Array = NDArray[np.float64]
Number = float | int

STEPS = ("embeddings", "projections", "scores", "weights", "values", "heads", "output", "residual", "layers")
"""The steps in order: hidden states; q, k and v; their products; the softmax; the weighted sum of values; all heads side by
side; the output map; what is added to the residual stream; the layers below and above."""

COLOURS = {"stream": "#44546A", "query": "#B4690E", "key": "#0F766E", "value": "#7A3E9D", "weight": "#2F6BA8"}
"""Of the residual stream, of queries, keys, values (and mixtures of them), and of scores and weights."""

OLD, FAINT = "#6a6a6a", "#c4c4c4"  # what an earlier step drew, and its frames


MOST_TOKENS, MOST_HEADS, SHOWN = 6, 12, 3


@dataclass(frozen=True, eq=False)
class Numbers:
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

    tokens: tuple[str, ...]
    layer: int
    head: int
    layers: int
    hidden: Float[np.ndarray, "n D"]
    query: Float[np.ndarray, "n d"]
    key: Float[np.ndarray, "n d"]
    value: Float[np.ndarray, "n d"]
    scores: Float[np.ndarray, "n n"]
    weights: Float[np.ndarray, "n n"]
    output: Float[np.ndarray, "n d"]
    heads: Float[np.ndarray, "n H d"]
    added: Float[np.ndarray, "n D"]
    residual: Float[np.ndarray, "n D"]
    after: Float[np.ndarray, "n D"]


def as_text(number: Number, *, inside: bool = False) -> str:
    """Two decimals, with a true minus sign and no negative zero; ``inside`` a sum, negative numbers have brackets."""
    text = f"{abs(number):.2f}"
    if number > 0 or float(text) == 0:
        return text
    return f"(−{text})" if inside else f"−{text}"


# inches
CELL, ROW, GAP, WIDE = 0.40, 0.22, 0.50, 7.2
BLOCK = SHOWN * CELL
COLUMNS = tuple(0.78 + (BLOCK + GAP) * n for n in range(4))
SQUARE, SCORES, WEIGHTS = 4 * CELL, 1.62, 3.80
HEADS, HEADS_END = 1.52, COLUMNS[3] + BLOCK
STREAM = COLUMNS[0] + 0.08  # where the residual stream passes by the head
ABOVE = (0.74, 0.88, 0.86, 0.86)  # above each row of blocks


def draw(numbers: Numbers, upto: str = STEPS[-1], *, lit: Sequence[str] = ()) -> Figure:
    """The steps up to the one named, with their numbers; the last is lit, the others are grey.

    Hidden states and heads are cut to a few dimensions, and the drawing says so. The numbers of the second token are framed,
    and worked out in a line of their own.

    Args:
        upto: one of :data:`STEPS`.
        lit: steps that are lit instead of the last.
    """
    lit = lit or (upto,)
    page = _Page(numbers, upto, max(lit, key=STEPS.index))
    for step, add in zip(STEPS[: STEPS.index(upto) + 1], FUNCTIONS, strict=False):
        page.lit = step in lit
        add(page)
    return page.figure


class _Page:
    """Axes in inches, y downwards: four rows of blocks below one another, at the foot a strip of layers, and the shapes that these are made of.

    Attributes:
        row: the token that is followed.
        upto: the last step.
        worked: the step whose numbers are framed and worked out.
        lit: whether the step that is being drawn is lit.
    """

    def __init__(self, numbers: Numbers, upto: str, worked: str) -> None:
        self.numbers, self.row, self.upto, self.worked, self.lit = numbers, 1, upto, worked, True
        self.tokens, self.tall = numbers.tokens, len(numbers.tokens) * ROW
        self.square_cell = SQUARE / len(numbers.tokens)
        self.tops = [float(sum(ABOVE[: n + 1]) + n * self.tall) for n in range(4)]
        self.strip = self.tops[3] + self.tall + 0.40
        rows = {"embeddings": 0, "projections": 0, "scores": 1, "weights": 1, "values": 1, "heads": 2}
        height = self.strip + 0.60 if upto == "layers" else self.bottom(rows.get(upto, 3)) + 0.34
        self.figure = plt.figure(figsize=(WIDE, height), layout="none")
        self.ax: Axes = self.figure.add_axes((0, 0, 1, 1))
        self.ax.set(xlim=(0, WIDE), ylim=(height, 0))
        self.ax.axis("off")
        # without it a notebook would cut off the margins, and the drawing would not stay where it is while it grows
        self.rectangle(0, 0, WIDE, height, facecolor="white", zorder=-1)

    @property
    def ink(self) -> str:
        return INK if self.lit else OLD

    def rectangle(self, x: Number, y: Number, width: Number, height: Number, **look: object) -> None:
        self.ax.add_patch(plt.Rectangle((x, y), width, height, **{"edgecolor": "none"} | look))

    def text(self, x: Number, y: Number, text: str, size: Number = 8, **look: object) -> None:
        self.ax.text(x, y, text, **CENTRED | {"fontsize": size, "color": self.ink, "zorder": 5} | look)

    def path(self, *points: tuple[Number, Number], end: str = "", **look: object) -> None:
        """A line with corners and, at its end, the head of an arrow: one of v, ^, > and <."""
        look = {"color": self.ink, "linewidth": 1.1, "solid_joinstyle": "round", "zorder": 1} | look
        self.ax.plot(*zip(*points, strict=True), **look)
        if end:
            self.ax.plot(*points[-1], marker=end, markersize=4.5, color=look["color"], zorder=2)

    def bottom(self, row: int) -> Number:
        return self.tops[row] + self.tall

    def names(self, x: Number, y: Number) -> None:
        """The tokens down the side of a block."""
        for place, token in enumerate(self.tokens):
            weight = "bold" if self.lit and place == self.row else "normal"
            self.text(x - 0.07, y + (place + 0.5) * ROW, token, _fitting(token, 0.5), ha="right", weight=weight)

    def title(self, x: Number, y: Number, title: str, below: str, kind: str, **look: object) -> None:
        """What stands above a block: its name and, in plain letters, what is shown of it."""
        self.text(x, y - 0.29, title, 9, color=COLOURS[kind] if self.lit else OLD, weight="bold", **look)
        self.text(x, y - 0.12, below, **look)

    def numbered(
        self, x: Number, y: Number, numbers: ArrayLike, kind: str, *, wide: Number = CELL, most: Number = 0
    ) -> None:
        """Cells with numbers in a frame, darker for numbers further from 0; ``most``: that of the darkest (default: the largest)."""
        numbers = np.asarray(numbers, np.float64)
        shades = 0.05 + 0.50 * np.minimum(1, np.abs(numbers) / (most or np.abs(numbers).max() or 1))
        colour, edge, width, shown = (COLOURS[kind], COLOURS[kind], 1.4, 1) if self.lit else (OLD, FAINT, 0.8, 1 / 3)
        for (row, column), number in np.ndenumerate(numbers):
            left, top, text = x + column * wide, y + row * ROW, as_text(number)
            face = (colour, float(shades[row, column] * shown))
            self.rectangle(left, top, wide, ROW, facecolor=face, edgecolor="white", linewidth=0.8)
            self.text(left + wide / 2, top + ROW / 2, text, _fitting(text, wide))
        rows, columns = numbers.shape
        self.rectangle(x, y, columns * wide, rows * ROW, fill=False, zorder=3, edgecolor=edge, linewidth=width)

    def block(self, column: int, row: int, title: str, numbers: Array, kind: str, *, most: Number = 0) -> None:
        """A few dimensions of each token's row of numbers, in one of the four columns."""
        x, y, of = COLUMNS[column], self.tops[row], numbers.shape[1]
        self.numbered(x, y, numbers[:, :SHOWN], kind, most=most)
        self.title(x + BLOCK / 2, y, title, f"{min(SHOWN, of)} of {of} dimensions", kind)

    def square(self, x: Number, title: str, below: str, numbers: Array) -> None:
        """A map: attending tokens down the side, attended tokens along the top."""
        y = self.tops[1]
        self.numbered(x, y, numbers, "weight", wide=self.square_cell)
        self.title(x + SQUARE / 2, y - 0.18, title, below, "weight")
        for place, token in enumerate(self.tokens):
            where = x + (place + 0.5) * self.square_cell, y - 0.11
            self.text(*where, token, _fitting(token, self.square_cell))

    def frame(
        self, x: Number, y: Number, row: int, *, columns: int = SHOWN, wide: Number = CELL, rows: int = 1
    ) -> None:
        """Around numbers that are to be followed."""
        look = {"edgecolor": INK, "linewidth": 1.7, "zorder": 4}
        self.rectangle(x, y + row * ROW, columns * wide, rows * ROW, fill=False, **look)

    def sum(self, row: int, text: str) -> None:
        """A line of arithmetic below a row of blocks."""
        self.text(WIDE / 2, self.bottom(row) + 0.19, text, _fitting(text, 7.6))


def _fitting(text: str, width: Number) -> float:
    """The size of letters, at most 8 points, in which a text is not wider than so many inches."""
    return min(8.0, width * 72 / (0.66 * max(len(text), 1)))


def _embeddings(page: _Page) -> None:
    page.names(COLUMNS[0], page.tops[0])
    page.block(0, 0, "hidden states x", page.numbers.hidden, "stream")


def _projections(page: _Page) -> None:
    y, middles = page.tops[0], [x + BLOCK / 2 for x in COLUMNS]
    page.path((middles[0], y - 0.42), (middles[0], 0.14), (middles[3], 0.14))
    for column, kind in enumerate(("query", "key", "value"), 1):
        page.path((middles[column], 0.14), (middles[column], y - 0.43), end="v")
        page.text(middles[column] + 0.20, 0.24, f"$W_{kind[0].upper()}$", 9, parse_math=True)
        name = {"query": "queries q", "key": "keys k", "value": "values v"}[kind]
        page.block(column, 0, name, getattr(page.numbers, kind), kind)


def _scores(page: _Page) -> None:
    numbers, row, (above, y) = page.numbers, page.row, page.tops[:2]
    root, middle, bend = f"√{numbers.query.shape[1]}", SCORES + SQUARE / 2, page.bottom(0) + 0.12
    for column in (1, 2):
        x = COLUMNS[column] + BLOCK / 2
        page.path((x, page.bottom(0)), (x, bend), (middle, bend))
    page.path((middle, bend), (middle, bend + 0.13), end="v")
    page.names(SCORES, y)
    page.square(SCORES, f"scores s = q · k / {root}", "each query with each key", numbers.scores)
    if page.worked == "scores":
        q, k, score = numbers.query[row], numbers.key[0], float(numbers.scores[row, 0])
        page.frame(COLUMNS[1], above, row)
        page.frame(COLUMNS[2], above, 0)
        page.frame(SCORES, y, row, columns=1, wide=page.square_cell)
        whole = float(q @ k)
        rest = f"{as_text(whole - float(q[:SHOWN] @ k[:SHOWN]), inside=True)} from the other {len(q) - SHOWN}"
        term = score - whole / len(q) ** 0.5
        further = f" + {as_text(term, inside=True)} for the distance" if abs(term) > 0.005 else ""
        pair = f"{page.tokens[row]}, {page.tokens[0]}:   {_products(q[:SHOWN], k[:SHOWN])}"
        page.sum(1, f"{pair} + {rest} = {as_text(whole)};   / {root}{further} = {as_text(score)}")


def _products(ones: Array, others: Array) -> str:
    """A sum of products as it is written out."""
    pairs = zip(ones, others, strict=True)
    return " + ".join(f"{as_text(a, inside=True)}·{as_text(b, inside=True)}" for a, b in pairs)


def _weights(page: _Page) -> None:
    numbers, row, y = page.numbers, page.row, page.tops[1]
    middle = y + page.tall / 2
    page.path((SCORES + SQUARE + 0.04, middle), (WEIGHTS - 0.06, middle), end=">")
    page.text((SCORES + SQUARE + WEIGHTS) / 2, middle - 0.11, "softmax", _fitting("softmax", 0.52))
    page.square(WEIGHTS, "weights α", "each row sums to 1", numbers.weights)
    if page.worked == "weights":
        for x in (SCORES, WEIGHTS):
            page.frame(x, y, row, columns=len(page.tokens), wide=page.square_cell)
        powers = " + ".join(f"$e^{{{as_text(s)}}}$" for s in numbers.scores[row])
        share = f"{np.exp(numbers.scores[row, 0]):.4g} / {np.exp(numbers.scores[row]).sum():.4g}"
        text = f"$e^{{{as_text(numbers.scores[row, 0])}}}$ / ({powers})  =  {share}  =  {as_text(numbers.weights[row, 0])}"
        page.text(WIDE / 2, page.bottom(1) + 0.19, text, parse_math=True)


def _values(page: _Page) -> None:
    numbers, row, (above, y) = page.numbers, page.row, page.tops[:2]
    x, middle = COLUMNS[3] + BLOCK / 2, y + page.tall / 2
    page.path((x, page.bottom(0)), (x, y - 0.43), end="v")
    page.path((WEIGHTS + SQUARE + 0.04, middle), (COLUMNS[3] - 0.06, middle), end=">")
    page.text((WEIGHTS + SQUARE + COLUMNS[3]) / 2, middle - 0.11, "× v")
    most = float(np.abs(numbers.value[:, :SHOWN]).max())  # one scale: what a mixture keeps of its values is seen
    page.block(3, 1, "outputs o = Σ α v", numbers.output, "value", most=most)
    if page.worked == "values":
        page.frame(WEIGHTS, y, row, columns=len(page.tokens), wide=page.square_cell)
        page.frame(COLUMNS[3], above, 0, columns=1, rows=len(page.tokens))
        page.frame(COLUMNS[3], y, row, columns=1)
        page.sum(1, f"{_products(numbers.weights[row], numbers.value[:, 0])} = {as_text(numbers.output[row, 0])}")


def _heads(page: _Page) -> None:
    numbers, y = page.numbers, page.tops[2]
    count = numbers.heads.shape[1]
    shown = min(count, MOST_HEADS)
    first = min(max(numbers.head - shown // 2, 0), count - shown)
    wide, own = (HEADS_END - HEADS) / shown, numbers.head - first
    x, bend, target = COLUMNS[3] + BLOCK / 2, page.bottom(1) + 0.13, HEADS + (own + 0.5) * wide
    page.path((x, page.bottom(1)), (x, bend), (target, bend), (target, y - 0.23), end="v")
    page.names(HEADS, y)
    for begin, end, kind in ((0, own, "stream"), (own + 1, shown, "stream"), (own, own + 1, "value")):
        if begin < end:
            column = numbers.heads[:, first + begin : first + end, 0]
            most = np.abs(numbers.heads[:, :, 0]).max()
            page.numbered(HEADS + begin * wide, y, column, kind, wide=wide, most=most)
    for place in range(shown):
        look = {"weight": "bold", "color": COLOURS["value"]} if page.lit and place == own else {}
        name = head_name(numbers.layer, first + place)
        page.text(HEADS + (place + 0.5) * wide, y - 0.11, name, _fitting(name, wide), **look)
    # on the side that the arrow does not come down on
    place, side = (HEADS_END, "right") if own < shown / 2 else (HEADS, "left")
    cut = f"1 of {numbers.output.shape[1]} dimensions each" + (f", {shown} of {count} heads" if shown < count else "")
    page.title(place, y - 0.18, "the heads of the layer, side by side", cut, "stream", ha=side)
    if page.worked == "heads":
        page.frame(COLUMNS[3], page.tops[1], 0, columns=1, rows=len(page.tokens))
        page.frame(target - wide / 2, y, 0, columns=1, wide=wide, rows=len(page.tokens))


def _output(page: _Page) -> None:
    numbers, y, x = page.numbers, page.tops[3], COLUMNS[1] + BLOCK / 2
    low = page.bottom(2) + 0.10
    for edge in (HEADS, HEADS_END):
        page.path((edge, low - 0.05), (edge, low), (x, low))
    page.path((x, low), (x, y - 0.43), end="v")
    page.text(x + 0.20, low + 0.13, "$W_O$", 9, parse_math=True)
    page.block(1, 3, "added: z", numbers.added, "stream", most=_largest(numbers))
    if page.worked == "output":
        page.frame(HEADS, page.tops[2], page.row, columns=1, wide=HEADS_END - HEADS)
        page.frame(COLUMNS[1], y, page.row)
        whole = np.prod(numbers.heads.shape[1:])
        text = f"each number of z is made of all {whole} in its row above"
        page.text(COLUMNS[1] + BLOCK + 0.15, y + (page.row + 0.5) * ROW, text, ha="left")


def _largest(numbers: Numbers) -> Number:
    """Of what is shown of x, z and their sum: one scale for the three."""
    return max(float(np.abs(a[:, :SHOWN]).max()) for a in (numbers.hidden, numbers.added, numbers.residual))


def _residual(page: _Page) -> None:
    numbers, y, row = page.numbers, page.tops[3], page.row
    look = {"color": COLOURS["stream"] if page.lit else OLD, "linewidth": 2.6}
    page.path((STREAM, page.bottom(0)), (STREAM, y - 0.43), end="v", **look)
    middle = (page.bottom(0) + y) / 2
    page.text(STREAM - 0.14, middle, "residual stream", color=look["color"], weight="bold", rotation=90)
    page.names(COLUMNS[0], y)
    page.block(0, 3, "x, as it was", numbers.hidden, "stream", most=_largest(numbers))
    page.block(2, 3, "x + z", numbers.residual, "stream", most=_largest(numbers))
    for column, sign in ((0, "+"), (1, "=")):
        page.text(COLUMNS[column] + BLOCK + GAP / 2, y + page.tall / 2, sign, 14)
    if page.lit:
        for column in (0, 1, 2):
            page.frame(COLUMNS[column], y, row, columns=1)
    if page.upto == "residual":
        hidden, added, residual = (float(a[row, 0]) for a in (numbers.hidden, numbers.added, numbers.residual))
        page.sum(3, f"{as_text(hidden)} + {as_text(added, inside=True)} = {as_text(residual)}")


def _layers(page: _Page) -> None:
    numbers, y, strip = page.numbers, page.tops[3], page.strip
    middle = y + page.tall / 2
    page.path((COLUMNS[2] + BLOCK + 0.04, middle), (COLUMNS[3] - 0.06, middle), end=">")
    last = numbers.layer + 1 == numbers.layers
    page.block(3, 3, "last x" if last else f"x of layer {numbers.layer + 2}", numbers.after, "stream")
    wide = min(0.62, (HEADS_END - HEADS - 0.5) / numbers.layers)
    high, end = 0.28, HEADS + wide * numbers.layers
    for layer in range(numbers.layers):
        this = layer == numbers.layer
        face = (COLOURS["stream"], 0.55 if this and page.lit else 0.10)
        edge = {"edgecolor": COLOURS["stream"] if page.lit else FAINT, "linewidth": 1.6 if this and page.lit else 0.8}
        page.rectangle(HEADS + (layer + 0.06) * wide, strip, 0.88 * wide, high, facecolor=face, **edge)
        look = {"weight": "bold" if this else "normal"}
        name = str(layer + 1)
        page.text(HEADS + (layer + 0.5) * wide, strip + high / 2, name, _fitting(name, 0.88 * wide), **look)
    page.text(HEADS - 0.10, strip + high / 2, "layers", 9, ha="right", weight="bold")
    x, bend = COLUMNS[3] + BLOCK / 2, page.bottom(3) + 0.16
    target = end + 0.2 if last else HEADS + (numbers.layer + 1.5) * wide
    page.path((x, page.bottom(3)), (x, bend), (target, bend), (target, strip - 0.05), end="v")
    note = "the arrow after x + z: normalise, then a small network for each token alone, normalise again"
    page.text(WIDE / 2, strip + high + 0.17, note)


FUNCTIONS = (_embeddings, _projections, _scores, _weights, _values, _heads, _output, _residual, _layers)
"""What draws each of :data:`STEPS`."""


def input_diagram(batch: Batch) -> Figure:
    """How the first input of a batch is put together: token, number in the vocabulary, text it belongs to, position."""
    length = int(batch.lengths[0])
    types = batch.types[0, :length].tolist() if batch.types is not None else ["-"] * length
    ids = batch.ids[0, :length].tolist()
    lines = {"token": batch.tokens[0], "vocabulary id": ids, "text (type)": types, "position": range(length)}
    shades = [plots.COLOURS[("other", "second", "first")[text + 1]] for text in batch.text[0, :length].tolist()]
    figure, ax = plt.subplots(figsize=(min(9.5, 1.1 + 0.46 * length), 1.9))
    for y, (label, cells) in enumerate(lines.items()):
        for x, (cell, shade) in enumerate(zip(cells, shades, strict=True)):
            ax.add_patch(plt.Rectangle((x, y), 0.94, 0.82, color=shade, alpha=0.28, linewidth=0))
            ax.text(x + 0.47, y + 0.42, str(cell), **CENTRED, fontsize=6.5)
        ax.text(-0.15, y + 0.42, label, ha="right", va="center", fontsize=8, weight="bold")
    ax.set(xlim=(-0.2 * length**0.5 - 2, length), ylim=(len(lines), -0.1))
    ax.axis("off")
    return figure


def marked_map(weights: ArrayLike, pieces: Names, *, title: str = "") -> Figure:
    """A head's map [query, key] with its weights from 0.05 on written in; framed: the largest of each row that is not in the first column."""
    weights = np.asarray(weights)
    n = len(weights)
    figure, ax = plt.subplots(figsize=(1.2 + 0.42 * n, 0.9 + 0.34 * n))
    ax.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    plots.token_axes(ax, pieces, size=9, rotation=90 if n > 20 else 45)
    plots.number_cells(ax, np.where(weights >= 0.05, weights, np.nan), "{:.2f}", fontsize=8)
    for row, column in enumerate(weights.argmax(-1).tolist()):
        if column:
            ax.add_patch(plt.Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=INK, linewidth=2))
    ax.set(title=title, ylabel="attending token")
    return figure


def short(encoder: Encoder, *texts: str) -> Batch:
    """The first of some texts that has few enough tokens to be drawn number by number, or the last.

    A tokenizer with another vocabulary may cut words to pieces that are whole in BERT's.
    """
    batches = [tokens.encode(encoder, [text]) for text in texts]
    return next((batch for batch in batches if int(batch.lengths[0]) <= MOST_TOKENS), batches[-1])


def numbers(encoder: Encoder, batch: Batch, layer: int, head: int) -> Numbers:
    """What the drawing shows: a head, and the layer around it, on the first input of a batch.

    Args:
        layer, head: from 0.
    """
    length, model = int(batch.lengths[0]), encoder.model
    projections, width = one_head.projections(encoder, layer), (encoder.heads, -1)
    with torch.inference_mode():
        states = model(**batch.inputs, output_hidden_states=True).hidden_states
        hidden, after = (states[n][0, :length] for n in (layer, layer + 1))
        q, k, v = (project(hidden).unflatten(-1, width).transpose(0, 1) for project in projections)
        scores = q @ k.mT / q.shape[-1] ** 0.5 + one_head.position_term(encoder, hidden)  # [head, n, n]
        weights = scores.softmax(-1)
        outputs = weights @ v
        side_by_side = outputs.transpose(0, 1)
        added = attention.output_projections(encoder)[layer](side_by_side.flatten(1))
    own = (part[head] for part in (q, k, v, scores, weights, outputs))
    drawn = (hidden, *own, side_by_side, added, hidden + added, after)
    arrays = (array.double().cpu().numpy() for array in drawn)
    return Numbers(tuple(batch.tokens[0]), layer, head, encoder.layers, *arrays)
