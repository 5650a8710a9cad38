"""Attention between the tokens or words of one text, and annotated text itself."""

import html
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import HTML
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from helpers.corpora.readers import Question
from helpers.corpora.treebanks import Document, Sentence
from helpers.figures.look import CENTRED, COLOURS, HEAD_COLOURS, INK, Number, Size, ink_on, titled


def token_axes(
    ax: Axes,
    tokens: Sequence[str],
    keys: Sequence[str] = (),
    *,
    size: Number = 8,
    rotation: int = 60,
    top: bool = True,
) -> None:
    """The axes of a map: attending tokens down the side, attended tokens (``keys``, if they are others) along the top."""
    keys = keys or tokens
    ends = {"ha": "left", "rotation_mode": "anchor"} if rotation < 90 else {}
    ax.set_xticks(range(len(keys)), keys, rotation=rotation, fontsize=size, **ends)
    ax.set_yticks(range(len(tokens)), tokens, fontsize=size)
    above = {"top": True, "labeltop": True, "bottom": False, "labelbottom": False} if top else {}
    ax.tick_params(length=0, **above)
    ax.grid(visible=False)


def heatmap(
    matrix: ArrayLike,
    tokens: Sequence[str],
    keys: Sequence[str] = (),
    *,
    title: str = "",
    ax: Axes | None = None,
    numbers: bool = False,
    most: Number | None = None,
    ylabel: str = "attending token",
    bar: str = "attention",
) -> Figure:
    """An attention map: the attending token (query) down the side, the attended token (key) along the top.

    Args:
        keys: the attended tokens, if they are others.
        numbers: write each weight into its cell.
        most: the weight shown in the darkest colour; default: the largest.
        bar: what the shade means.
    """
    matrix = np.asarray(matrix)
    size = (1.2 + 0.36 * matrix.shape[1], 1.0 + 0.32 * len(tokens))
    ax = ax or plt.subplots(figsize=size)[1]
    image = ax.imshow(matrix, cmap="Blues", vmin=0, vmax=most or matrix.max())
    token_axes(ax, tokens, keys)
    ax.set(title=title, ylabel=ylabel)
    if numbers:
        number_cells(ax, matrix, "{:.2f}", fontsize=7)
    else:
        ax.figure.colorbar(image, ax=ax, shrink=0.7, label=bar)
    return ax.figure


def number_cells(ax: Axes, numbers: ArrayLike, number: str, **text: object) -> None:
    """Write a number into each cell of the image that was drawn last, unless it is NaN."""
    image = ax.images[-1]
    for (row, column), value in np.ndenumerate(numbers):
        if np.isfinite(value):
            colour = ink_on(image.to_rgba(image.get_array())[row, column])
            ax.text(column, row, number.format(value), color=colour, **CENTRED, **text)


def line_diagrams(panels: Mapping[str, NDArray], tokens: Sequence[str]) -> Figure:
    """Attention as lines from the attending tokens (left) to the attended tokens (right), darker for larger weights.

    Args:
        panels: title -> map [query, key].
    """
    figure, axes = titled(panels, (2.9, 0.5 + 0.178 * len(tokens)), columns=2, size=10.5)
    for ax, weights in zip(axes.flat, panels.values(), strict=False):
        lines(ax, weights, tokens, {}, colour=COLOURS["cls"])
        ax.set_ylim(len(tokens) - 0.4, -0.6)
    return figure


def lines(
    ax: Axes,
    weights: ArrayLike,
    tokens: Sequence[str],
    chosen: Mapping[int, str],
    *,
    colour: str,
    least: Number = 0.02,
    widths: Size = (1.6, 1.6),
    faint: Number = 0,
    **text: object,
) -> None:
    """Lines from each attending token on the left to what it attends to on the right.

    Args:
        weights: [query, key].
        chosen: query -> the colour of its word and its lines; those of the others are in ``colour``.
        least: the smallest weight that is drawn.
        widths: of the lines of the others, and of those chosen.
        faint: how opaque a line of no weight would be.
        text: style of the chosen words.
    """
    for query, key in np.argwhere(np.asarray(weights) >= least).tolist():
        own = query in chosen
        look = {"alpha": float(min(1, faint + weights[query, key])), "linewidth": widths[own], "zorder": 1 + own}
        ax.plot([0, 1], [query, key], color=chosen.get(query, colour), solid_capstyle="round", **look)
    for position, token in enumerate(tokens):
        style = {"color": chosen[position]} | text if position in chosen else {"color": INK}
        ax.text(-0.05, position, token, ha="right", va="center", fontsize=8, **style)
        ax.text(1.05, position, token, ha="left", va="center", fontsize=8, color=INK)
    ax.set(xlim=(-1.0, 2.0))
    ax.axis("off")


def flow(words: Sequence[str], width: int, joined: Sequence[bool] | None = None) -> list[tuple[int, int]]:
    """Column and line at which each word begins when a text is set in lines of so many characters.

    Args:
        joined: for each word whether it follows the one before without a space.
    """
    spots, end, line = [], 0, 0
    for number, word in enumerate(words):
        start = end + (number > 0 and not (joined and joined[number]))
        if end and start + len(word) > width:
            start, line = 0, line + 1
        spots.append((start, line))
        end = start + len(word)
    return spots


def dependency_tree(sentence: Sentence, *, highlight: Sequence[int] = ()) -> Figure:
    """Arcs from each governor to its dependents above the words, with relations; parts of speech below.

    Args:
        highlight: words whose arc is drawn in the first colour.
    """
    words, tags = sentence.words, sentence.upos or ("",) * len(sentence.words)
    widths = np.array([max(0.55, 0.095 * max(len(w), len(t)) + 0.18) for w, t in zip(words, tags, strict=True)])
    places = np.cumsum(widths) - widths / 2
    level = _levels(sentence)
    top = max(level.values(), default=0) + 1
    figure, ax = plt.subplots(figsize=(widths.sum() + 0.2, 0.42 * top + 0.75))

    def arc(x: Sequence[Number], y: Sequence[Number], name: str, colour: str) -> None:
        ax.plot(x, y, color=colour, linewidth=1.1, solid_joinstyle="round")
        ax.plot(x[-1], 0.22, marker="v", color=colour, markersize=4)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        ax.text((x[0] + x[-1]) / 2, max(y), name, **CENTRED, fontsize=7, color=colour, bbox=box)

    for word, height in level.items():
        governor = sentence.governors[word]
        start, end = places[governor] + 0.12 * np.sign(word - governor), places[word]
        colour = COLOURS["first"] if word in highlight else COLOURS["cls"]
        arc([start, start, end, end], [0.1, height, height, 0.28], sentence.relations[word], colour)
    arc([places[sentence.governors.index(-1)]] * 2, [0.28, top - 0.2], "root", COLOURS["self"])
    for place, word, tag in zip(places, words, tags, strict=True):
        ax.text(place, -0.1, word, ha="center", va="top", fontsize=9.5)
        ax.text(place, -0.75, tag, ha="center", va="top", fontsize=6.5, color=COLOURS["self"])
    ax.set(xlim=(0, widths.sum()), ylim=(-1.2, top + 0.1))
    ax.axis("off")
    return figure


def _levels(sentence: Sentence) -> dict[int, int]:
    """How high the arc to each word is: one above all that it spans; the shortest first."""
    spans = {w: (min(w, g), max(w, g)) for w, g in enumerate(sentence.governors) if g >= 0}
    level: dict[int, int] = {}
    for word in sorted(spans, key=lambda w: spans[w][1] - spans[w][0]):
        low, high = spans[word]
        level[word] = 1 + max((h for w, h in level.items() if low <= spans[w][0] and spans[w][1] <= high), default=0)
    return level


def coreference(document: Document) -> HTML:
    """A document with its coreference chains underlined, each in a colour and with a number of its own."""
    number = {chain: i for i, chain in enumerate(document.chains, 1)}
    pieces = []
    for place, sentence in enumerate(document.sentences):
        own = [(m, number[m.chain]) for m in document.mentions if m.sentence == place and m.chain in number]
        for word, form in enumerate(sentence.words):
            for _, n in sorted(((m, n) for m, n in own if m.start == word), key=lambda found: -found[0].end):
                colour = HEAD_COLOURS[(n - 1) % len(HEAD_COLOURS)]
                style = f"border-bottom: 2px solid {colour}; background: {colour}22"
                pieces.append(f'<span class="mention" style="{style}">')
            pieces.append(html.escape(form))
            for _, n in sorted(((m, n) for m, n in own if m.end == word + 1), key=lambda found: -found[0].start):
                pieces.append(f'<sub style="color: {HEAD_COLOURS[(n - 1) % len(HEAD_COLOURS)]}">{n}</sub></span>')
            if sentence.spaces[word] if sentence.spaces else True:
                pieces.append(" ")
        pieces.append(" ")
    return HTML(f'<p class="coreference" style="line-height: 2.1">{"".join(pieces).strip()}</p>')


def answers(questions: Sequence[Question]) -> HTML:
    """A paragraph with the answers to its questions marked and numbered, and the questions below."""
    context = questions[0].context
    cuts: list[tuple[int, int, str]] = []
    for number, question in enumerate(questions, 1):
        answer = question.answers[0]
        end = answer.start + len(answer.text)
        cuts += [(answer.start, 1, "<mark>"), (end, 0, f"</mark><sub>{number}</sub>")]
    text, last = [], 0
    for place, _, tag in sorted(cuts):
        text += [html.escape(context[last:place]), tag]
        last = place
    asked = "".join(f"<li>{html.escape(q.question)}</li>" for q in questions)
    return HTML(f'<p class="context">{"".join(text)}{html.escape(context[last:])}</p><ol>{asked}</ol>')
