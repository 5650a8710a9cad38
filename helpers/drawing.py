"""The drawing of a layer that grows through chapter 01, and how an input and a map are drawn there."""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from helpers import attention, plots, tokens
from helpers.encoders import Encoder
from helpers.measurements import one_head
from helpers.plots import CENTRED, INK, Names, head_name
from helpers.tokens import Batch

Number = float | int

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
    text = f"{number:z.2f}".replace("-", "−")
    return f"({text})" if inside and text.startswith("−") else text


# inches
CELL, ROW, GAP, WIDE = 0.40, 0.22, 0.50, 7.2
BLOCK = SHOWN * CELL
FIRST, SECOND, THIRD, FOURTH = (0.78 + (BLOCK + GAP) * n for n in range(4))  # columns of blocks
SQUARE, SCORES, WEIGHTS = 4 * CELL, 1.62, 3.80
HEADS, HEADS_END = 1.52, FOURTH + BLOCK
STREAM = FIRST + 0.08  # where the residual stream passes by the head
ABOVE = (0.74, 0.88, 0.86, 0.86)  # above each row of blocks
HEADING = 0.43  # from the end of an arrow down to the block below it


class _Page:
    """Axes in inches, y downwards: four rows of blocks below one another, at the foot a strip of layers, and the shapes that these are made of.

    Attributes:
        row: the token that is followed.
        tops, bottoms: of the rows of blocks.
        lit: whether the step that is being drawn is the last.
    """

    def __init__(self, numbers: Numbers, upto: str) -> None:
        self.numbers, self.row, self.lit = numbers, 1, True
        tall = len(numbers.tokens) * ROW
        self.tops = [float(sum(ABOVE[: n + 1]) + n * tall) for n in range(4)]
        self.bottoms = [top + tall for top in self.tops]
        self.strip = self.bottoms[3] + 0.40
        lowest = {"projections": 0, "output": 3}.get(upto, 1)
        height = self.strip + 0.60 if upto == "layers" else self.bottoms[lowest] + 0.34
        self.figure = plt.figure(figsize=(WIDE, height), layout="none")
        self.ax: Axes = self.figure.add_axes((0, 0, 1, 1))
        self.ax.set(xlim=(0, WIDE), ylim=(height, 0))
        self.ax.axis("off")
        # without it a notebook would cut off the margins, and the drawing would not stay where it is while it grows
        self.rectangle(0, 0, WIDE, height, facecolor="white", zorder=-1)

    def rectangle(self, x: Number, y: Number, width: Number, height: Number, **look: object) -> None:
        self.ax.add_patch(plt.Rectangle((x, y), width, height, **{"edgecolor": "none"} | look))

    def text(self, x: Number, y: Number, text: str, size: Number = 8, within: Number = WIDE, **look: object) -> None:
        """Letters of at most such a size, smaller where the text would be wider than so many inches."""
        look = {"color": INK if self.lit else OLD, "zorder": 5} | look
        self.ax.text(x, y, text, **CENTRED | {"fontsize": min(size, within * 72 / (0.66 * max(len(text), 1)))} | look)

    def arrow(self, *corners: tuple[Number, Number], head: str = "v", **look: object) -> None:
        """A line with corners and, at its end, a marker."""
        look = {"color": INK if self.lit else OLD, "linewidth": 1.1, "solid_joinstyle": "round", "zorder": 1} | look
        self.ax.plot(*zip(*corners, strict=True), marker=head, markersize=4.5, markevery=[-1], **look)

    def bent(self, x: Number, y: Number, end: Number, below: Number, bend: Number) -> None:
        """An arrow down from a block, across at a height, and down to what stands below."""
        self.arrow((x, y), (x, bend), (end, bend), (end, below))

    def across(self, x: Number, end: Number, row: int, text: str = "") -> None:
        """An arrow from a block to the one on its right, with what is done on the way."""
        y = (self.tops[row] + self.bottoms[row]) / 2
        self.arrow((x + 0.04, y), (end - 0.06, y), head=">")
        self.text((x + end) / 2, y - 0.11, text, within=0.52)

    def frame(self, x: Number, row: int, token: int, width: Number = BLOCK, rows: int = 1) -> None:
        """Around numbers that are to be followed, where the step is lit."""
        if self.lit:
            look = {"edgecolor": INK, "linewidth": 1.7, "zorder": 4}
            self.rectangle(x, self.tops[row] + token * ROW, width, rows * ROW, fill=False, **look)

    def block(
        self,
        x: Number,
        row: int,
        kind: str,
        numbers: np.ndarray,
        title: str = "",
        below: str = "",
        *,
        wide: Number = CELL,
        columns: Names = (),
        most: Number = 0,
        middle: Number = 0,
        named: bool = False,
    ) -> None:
        """Numbers in a frame, a row for each token, darker for those further from 0, NaN left out; above them what they are.

        Args:
            x, row: the left side, and which of the rows of blocks.
            title, below: its name and, in plain letters, what is shown of it.
            columns: names of the columns.
            most: the number of the darkest cell (default: the largest).
            middle: of the title, if not that of the block.
            named: whether the tokens stand down the side.
        """
        y, (rows, count) = self.tops[row], numbers.shape
        shades = 0.05 + 0.50 * np.minimum(1, np.abs(numbers) / (most or np.abs(numbers).max() or 1))
        colour, edge, width, shown = (COLOURS[kind], COLOURS[kind], 1.4, 1) if self.lit else (OLD, FAINT, 0.8, 1 / 3)
        for line, column in np.argwhere(np.isfinite(numbers)).tolist():
            left, top = x + column * wide, y + line * ROW
            face = (colour, float(shades[line, column] * shown))
            self.rectangle(left, top, wide, ROW, facecolor=face, edgecolor="white", linewidth=0.8)
            self.text(left + wide / 2, top + ROW / 2, as_text(numbers[line, column]), within=wide)
        self.rectangle(x, y, count * wide, rows * ROW, fill=False, zorder=3, edgecolor=edge, linewidth=width)
        for column, name in enumerate(columns):
            self.text(x + (column + 0.5) * wide, y - 0.11, name, within=wide)
        for line, token in enumerate(self.numbers.tokens if named else ()):
            weight = "bold" if self.lit and line == self.row else "normal"
            self.text(x - 0.07, y + (line + 0.5) * ROW, token, within=0.5, ha="right", weight=weight)
        middle, y = middle or x + count * wide / 2, y - 0.18 * bool(columns)
        self.text(middle, y - 0.29, title, 9, color=colour, weight="bold")
        self.text(middle, y - 0.12, below)

    def few(self, x: Number, row: int, kind: str, numbers: np.ndarray, title: str, **options: object) -> None:
        """A block of the first dimensions."""
        self.block(x, row, kind, numbers[:, :SHOWN], title, f"{SHOWN} of {numbers.shape[1]} dimensions", **options)

    def sum(self, text: str, **look: object) -> None:
        """A line of arithmetic at the foot of a lit step of one head."""
        if self.lit:
            self.text(WIDE / 2, self.bottoms[1] + 0.19, text, **look)


def _products(ones: np.ndarray, others: np.ndarray) -> str:
    """A sum of products as it is written out."""
    pairs = zip(ones, others, strict=True)
    return " + ".join(f"{as_text(a, inside=True)}·{as_text(b, inside=True)}" for a, b in pairs)


def _projections(page: _Page) -> None:
    numbers, y, middle = page.numbers, page.tops[0], BLOCK / 2
    page.few(FIRST, 0, "stream", numbers.hidden, "hidden states x", named=True)
    parts = {"query": (SECOND, "queries q"), "key": (THIRD, "keys k"), "value": (FOURTH, "values v")}
    for kind, (x, title) in parts.items():
        page.bent(FIRST + middle, y - HEADING, x + middle, y - HEADING, 0.14)
        page.text(x + middle + 0.20, 0.24, f"$W_{kind[0].upper()}$", 9, parse_math=True)
        page.few(x, 0, kind, getattr(numbers, kind), title)


def _scores(page: _Page) -> None:
    numbers, row, cell, end = page.numbers, page.row, SQUARE / len(page.numbers.tokens), page.bottoms[0]
    q, k, score, root = numbers.query[row], numbers.key[0], float(numbers.scores[row, 0]), numbers.query.shape[1]
    for x in (SECOND, THIRD):
        page.bent(x + BLOCK / 2, end, SCORES + SQUARE / 2, end + 0.25, end + 0.12)
    look = {"wide": cell, "columns": numbers.tokens, "named": True}
    page.block(SCORES, 1, "weight", numbers.scores, f"scores s = q · k / √{root}", "each query with each key", **look)
    page.frame(SECOND, 0, row)
    page.frame(THIRD, 0, 0)
    page.frame(SCORES, 1, row, width=cell)
    whole = float(q @ k)
    rest = f"{as_text(whole - float(q[:SHOWN] @ k[:SHOWN]), inside=True)} from the other {root - SHOWN}"
    term = score - whole / root**0.5
    further = f" + {as_text(term, inside=True)} for the distance" if abs(term) > 0.005 else ""
    pair = f"{numbers.tokens[row]}, {numbers.tokens[0]}:   {_products(q[:SHOWN], k[:SHOWN])}"
    page.sum(f"{pair} + {rest} = {as_text(whole)};   / √{root}{further} = {as_text(score)}", within=7.6)


def _weights(page: _Page) -> None:
    numbers, row, count = page.numbers, page.row, len(page.numbers.tokens)
    page.across(SCORES + SQUARE, WEIGHTS, 1, "softmax")
    look = {"wide": SQUARE / count, "columns": numbers.tokens}
    page.block(WEIGHTS, 1, "weight", numbers.weights, "weights α", "each row sums to 1", **look)
    for x in (SCORES, WEIGHTS):
        page.frame(x, 1, row, width=SQUARE)
    powers = " + ".join(f"$e^{{{as_text(s)}}}$" for s in numbers.scores[row])
    first, share = as_text(numbers.scores[row, 0]), as_text(numbers.weights[row, 0])
    shown = f"{np.exp(numbers.scores[row, 0]):.4g} / {np.exp(numbers.scores[row]).sum():.4g}"
    page.sum(f"$e^{{{first}}}$ / ({powers})  =  {shown}  =  {share}", within=np.inf, parse_math=True)


def _values(page: _Page) -> None:
    numbers, row, x = page.numbers, page.row, FOURTH + BLOCK / 2
    page.arrow((x, page.bottoms[0]), (x, page.tops[1] - HEADING))
    page.across(WEIGHTS + SQUARE, FOURTH, 1, "× v")
    most = float(np.abs(numbers.value[:, :SHOWN]).max())  # one scale: what a mixture keeps of its values is seen
    page.few(FOURTH, 1, "value", numbers.output, "outputs o = Σ α v", most=most)
    page.frame(WEIGHTS, 1, row, width=SQUARE)
    page.frame(FOURTH, 0, 0, width=CELL, rows=len(numbers.tokens))
    page.frame(FOURTH, 1, row, width=CELL)
    page.sum(
        f"{_products(numbers.weights[row], numbers.value[:, 0])} = {as_text(numbers.output[row, 0])}", within=7.6
    )


def _output(page: _Page) -> None:
    numbers, row, x = page.numbers, page.row, SECOND + BLOCK / 2
    count, most = numbers.heads.shape[1], np.abs(numbers.heads[:, :, 0]).max()
    shown = min(count, MOST_HEADS)
    first = min(max(numbers.head - shown // 2, 0), count - shown)
    wide, own = (HEADS_END - HEADS) / shown, numbers.head - first
    target = HEADS + (own + 0.5) * wide
    page.bent(FOURTH + BLOCK / 2, page.bottoms[1], target, page.tops[2] - 0.23, page.bottoms[1] + 0.13)
    cut = f"1 of {numbers.output.shape[1]} dimensions each" + (f", {shown} of {count} heads" if shown < count else "")
    column = numbers.heads[:, first : first + shown, 0]
    others = np.where(np.arange(shown) == own, np.nan, column)
    # on the side that the arrow does not come down on
    look = {"middle": (target + (HEADS_END if own < shown / 2 else HEADS)) / 2, "named": True}
    look |= {"columns": [head_name(numbers.layer, first + place) for place in range(shown)]}
    page.block(HEADS, 2, "stream", others, "the heads of the layer, side by side", cut, wide=wide, most=most, **look)
    page.block(HEADS + own * wide, 2, "value", column[:, [own]], wide=wide, most=most)
    low = page.bottoms[2] + 0.10
    page.arrow((HEADS, low - 0.05), (HEADS, low), (HEADS_END, low), (HEADS_END, low - 0.05), head="")
    page.arrow((x, low), (x, page.tops[3] - HEADING))
    page.text(x + 0.20, low + 0.13, "$W_O$", 9, parse_math=True)
    page.few(SECOND, 3, "stream", numbers.added, "added: z", most=_largest(numbers))
    page.frame(HEADS, 2, row, width=HEADS_END - HEADS)
    page.frame(SECOND, 3, row)
    if page.lit:
        text = f"each number of z is made of all {np.prod(numbers.heads.shape[1:])} in its row above"
        page.text(SECOND + BLOCK + 0.15, page.tops[3] + (row + 0.5) * ROW, text, ha="left")


def _largest(numbers: Numbers) -> float:
    """Of what is shown of x, z and their sum: one scale for the three."""
    return max(float(np.abs(a[:, :SHOWN]).max()) for a in (numbers.hidden, numbers.added, numbers.residual))


def _layers(page: _Page) -> None:
    numbers, y, strip, most = page.numbers, page.tops[3], page.strip, _largest(page.numbers)
    page.arrow((STREAM, page.bottoms[0]), (STREAM, y - HEADING), color=COLOURS["stream"], linewidth=2.6)
    look = {"color": COLOURS["stream"], "weight": "bold", "rotation": 90}
    page.text(STREAM - 0.14, (page.bottoms[0] + y) / 2, "residual stream", **look)
    page.few(FIRST, 3, "stream", numbers.hidden, "x, as it was", most=most, named=True)
    page.few(THIRD, 3, "stream", numbers.residual, "x + z", most=most)
    for x, sign in ((SECOND, "+"), (THIRD, "=")):
        page.text(x - GAP / 2, (y + page.bottoms[3]) / 2, sign, 14)
    for x in (FIRST, SECOND, THIRD):
        page.frame(x, 3, page.row, width=CELL)
    page.across(THIRD + BLOCK, FOURTH, 3)
    last = numbers.layer + 1 == numbers.layers
    page.few(FOURTH, 3, "stream", numbers.after, "last x" if last else f"x of layer {numbers.layer + 2}")
    wide, high = min(0.62, (HEADS_END - HEADS - 0.5) / numbers.layers), 0.28
    for layer in range(numbers.layers):
        this, left = layer == numbers.layer, HEADS + (layer + 0.06) * wide
        look = {"edgecolor": COLOURS["stream"], "linewidth": 1.6 if this else 0.8}
        look["facecolor"] = (COLOURS["stream"], 0.55 if this else 0.10)
        page.rectangle(left, strip, 0.88 * wide, high, **look)
        weight = "bold" if this else "normal"
        page.text(left + 0.44 * wide, strip + high / 2, str(layer + 1), within=0.88 * wide, weight=weight)
    page.text(HEADS - 0.10, strip + high / 2, "layers", 9, ha="right", weight="bold")
    target = HEADS + wide * numbers.layers + 0.2 if last else HEADS + (numbers.layer + 1.5) * wide
    page.bent(FOURTH + BLOCK / 2, page.bottoms[3], target, strip - 0.05, page.bottoms[3] + 0.16)
    note = "the arrow after x + z: normalise, then a small network for each token alone, normalise again"
    page.text(WIDE / 2, strip + high + 0.17, note)


STEPS = {step.__name__[1:]: step for step in (_projections, _scores, _weights, _values, _output, _layers)}
"""What draws each step: hidden states, q, k and v; their products; the softmax; the weighted sum of values; all heads side by side and
the output map; what is added to the residual stream, and the layers below and above."""


def draw(numbers: Numbers, upto: str = "layers") -> Figure:
    """The steps up to the one named, with their numbers; the last is lit, the others are grey.

    Hidden states and heads are cut to a few dimensions, and the drawing says so. The numbers of the second token are framed,
    and worked out in a line of their own.

    Args:
        upto: one of :data:`STEPS`.
    """
    page = _Page(numbers, upto)
    for step in [*STEPS][: [*STEPS].index(upto) + 1]:
        page.lit = step == upto
        STEPS[step](page)
    return page.figure


def input_diagram(batch: Batch) -> Figure:
    """How the first input of a batch is put together: token, number in the vocabulary, text it belongs to, position."""
    length = int(batch.lengths[0])
    types = batch.types[0, :length].tolist() if batch.types is not None else ["-"] * length
    ids = batch.ids[0, :length].tolist()
    lines = {"token": batch.tokens[0], "vocabulary id": ids, "text (type)": types, "position": range(length)}
    shades = [plots.COLOURS[("other", "second", "first")[text + 1]] for text in batch.text[0, :length].tolist()]
    figure, ax = plt.subplots(figsize=(min(9.5, 1.1 + 0.46 * length), 1.9))
    look = {"rowLabels": [*lines], "cellColours": [[(shade, 0.28) for shade in shades]] * len(lines)}
    table = ax.table([*lines.values()], **look, cellLoc="center", rowLoc="right", bbox=(0, 0, 1, 1))
    for cell in table.get_celld().values():
        cell.set(edgecolor="white", linewidth=2)
    ax.axis("off")
    return figure


def marked_map(weights: ArrayLike, pieces: Names, *, title: str = "") -> Figure:
    """A head's map [query, key] with numbers; framed: the largest of each row that is not in the first column."""
    figure = plots.heatmap(weights, pieces, most=1, numbers=True, title=title)
    for row, column in enumerate(np.argmax(weights, -1).tolist()):
        if column:
            frame = plt.Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=INK, linewidth=2)
            figure.axes[0].add_patch(frame)
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
