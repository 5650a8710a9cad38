"""What only chapter 01 draws."""

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from helpers import attention, plots, tokens, views
from helpers.chapters.transformer_refresher import measures
from helpers.drawing import MOST_TOKENS, Numbers
from helpers.encoders import Encoder
from helpers.plots import CENTRED, COLOURS, INK, Names
from helpers.tokens import Batch


def input_diagram(batch: Batch) -> Figure:
    """How the first input of a batch is put together: token, number in the vocabulary, text it belongs to, position."""
    length = int(batch.lengths[0])
    types = batch.types[0, :length].tolist() if batch.types is not None else ["-"] * length
    ids = batch.ids[0, :length].tolist()
    lines = {"token": batch.tokens[0], "vocabulary id": ids, "text (type)": types, "position": range(length)}
    shades = [COLOURS[("other", "second", "first")[text + 1]] for text in batch.text[0, :length].tolist()]
    figure, ax = plt.subplots(figsize=(min(9.5, 1.1 + 0.46 * length), 1.9))
    for y, (label, cells) in enumerate(lines.items()):
        for x, (cell, shade) in enumerate(zip(cells, shades, strict=True)):
            ax.add_patch(plt.Rectangle((x, y), 0.94, 0.82, color=shade, alpha=0.28, linewidth=0))
            ax.text(x + 0.47, y + 0.42, str(cell), **CENTRED, fontsize=6.5)
        ax.text(-0.15, y + 0.42, label, ha="right", va="center", fontsize=8, weight="bold")
    ax.set(xlim=(-0.2 * length**0.5 - 2, length), ylim=(len(lines), -0.1))
    ax.axis("off")
    return figure


def marked_map(weights: ArrayLike, pieces: Names, *, title: str = "", least: float = 0.05) -> Figure:
    """A head's map with its larger weights written in; framed: the largest of each row that is not in the first column.

    Args:
        weights: [query, key].
        least: the smallest weight that is written.
    """
    weights = np.asarray(weights)
    n = len(weights)
    figure, ax = plt.subplots(figsize=(1.2 + 0.42 * n, 0.9 + 0.34 * n))
    ax.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    plots.token_axes(ax, pieces, size=9, rotation=90 if n > 20 else 45)
    plots.number_cells(ax, np.where(weights >= least, weights, np.nan), "{:.2f}", fontsize=8)
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
    projections, width = measures.projections(encoder, layer), (encoder.heads, -1)
    with torch.inference_mode():
        states = model(**batch.inputs, output_hidden_states=True).hidden_states
        hidden, after = (states[n][0, :length] for n in (layer, layer + 1))
        q, k, v = (project(hidden).unflatten(-1, width).transpose(0, 1) for project in projections)
        terms = torch.stack([measures.position_term(encoder, hidden, h) for h in range(encoder.heads)])
        scores = q @ k.mT / q.shape[-1] ** 0.5 + terms  # [head, n, n]
        weights = scores.softmax(-1)
        outputs = weights @ v
        side_by_side = outputs.transpose(0, 1)
        added = attention.output_projections(encoder)[layer](side_by_side.flatten(1))
    own = (part[head] for part in (q, k, v, scores, weights, outputs))
    drawn = (hidden, *own, side_by_side, added, hidden + added, after)
    arrays = (array.double().cpu().numpy() for array in drawn)
    return Numbers(tuple(batch.tokens[0]), layer, head, encoder.layers, *arrays)


FIRST = 3  # numbers of a vector that are written out


def token_to_touch(numbers: Numbers) -> views.InteractiveFigure:
    """Query, scores, weights, values and output of one token after the other, by a slider; attended tokens are darker the larger their weight."""

    def vector(row: ArrayLike) -> list[str]:
        return [*(f"{number:.2f}" for number in np.asarray(row)[:FIRST]), "…"]

    def step(i: int) -> list[list[views.Word]]:
        lines = [[f"{numbers.tokens[i]} has the query", *vector(numbers.query[i])]]
        for token, score, weight, value in zip(
            numbers.tokens, numbers.scores[i], numbers.weights[i], numbers.value, strict=True
        ):
            scored = f"score {score:.2f},", f"weight {weight:.2f},"
            lines.append([(token, _shade(weight)), *scored, "value", *vector(value)])
        return [*lines, ["output", *vector(numbers.output[i])]]

    steps = range(len(numbers.tokens))
    alt = f"Query, scores, weights, values and output of each of {len(steps)} tokens."
    return views.frames(steps, numbers.tokens, [step(i) for i in steps], alt=alt)


def _shade(weight: float) -> str:
    """White for a weight of 0, blue for 1."""
    return "#" + "".join(f"{round(255 + weight * (channel - 255)):02x}" for channel in (107, 174, 214))
