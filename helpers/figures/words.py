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
from helpers.figures.look import COLOURS, HEAD_COLOURS


def heatmap(
    matrix: ArrayLike,
    tokens: Sequence[str],
    *,
    title: str = "",
    ax: Axes | None = None,
    numbers: bool = False,
    most: float | None = None,
) -> Figure:
    """An attention map: the attending token (query) down the side, the attended token (key) along the top.

    Args:
        numbers: write each weight into its cell.
        most: the weight shown in the darkest colour; default: the largest.
    """
    matrix = np.asarray(matrix)
    ax = ax or plt.subplots(figsize=(1.2 + 0.36 * len(tokens), 1.0 + 0.32 * len(tokens)))[1]
    image = ax.imshow(matrix, cmap="Blues", vmin=0, vmax=most or matrix.max())
    ax.set_xticks(range(len(tokens)), tokens, rotation=60, ha="left", rotation_mode="anchor", fontsize=8)
    ax.set_yticks(range(len(tokens)), tokens, fontsize=8)
    ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    ax.set(title=title, ylabel="attending token")
    ax.grid(visible=False)
    if numbers:
        for (row, column), value in np.ndenumerate(matrix):
            dark = value > 0.6 * (most or matrix.max())
            ax.text(
                column,
                row,
                f"{value:.2f}",
                ha="center",
                va="center",
                fontsize=7,
                color="white" if dark else "#222222",
            )
    else:
        ax.figure.colorbar(image, ax=ax, shrink=0.7, label="attention")
    return ax.figure


def line_diagrams(
    panels: Mapping[str, NDArray],
    tokens: Sequence[str],
    *,
    colour: str = COLOURS["cls"],
    highlight: Mapping[str, Sequence[int]] | None = None,
) -> Figure:
    """Attention as lines from the attending tokens (left) to the attended tokens (right), darker for larger weights.

    Args:
        panels: title -> map [query, key].
        highlight: title -> queries whose lines are drawn in the second colour.
    """
    count = len(tokens)
    figure, axes = plt.subplots(1, len(panels), figsize=(2.7 * len(panels), 0.5 + 0.178 * count), squeeze=False)
    for ax, (title, weights) in zip(axes[0], panels.items(), strict=True):
        chosen = set((highlight or {}).get(title, ()))
        for query, key in np.ndindex(weights.shape):
            if weights[query, key] >= 0.02:
                ax.plot(
                    [0, 1],
                    [query, key],
                    color=COLOURS["first"] if query in chosen else colour,
                    alpha=float(min(1.0, weights[query, key])),
                    linewidth=1.6,
                    solid_capstyle="round",
                )
        for place, align, x in ((0, "right", -0.05), (1, "left", 1.05)):
            for position, token in enumerate(tokens):
                strong = place == 0 and position in chosen
                ax.text(
                    x,
                    position,
                    token,
                    ha=align,
                    va="center",
                    fontsize=8,
                    color=COLOURS["first"] if strong else "#222222",
                )
        ax.set(xlim=(-1.0, 2.0), ylim=(count - 0.4, -0.6), title=title)
        ax.title.set_fontsize(9)
        ax.axis("off")
    return figure


def dependency_tree(sentence: Sentence, *, highlight: Sequence[int] = ()) -> Figure:
    """Arcs from each governor to its dependents above the words, with relations; parts of speech below.

    Args:
        highlight: words whose arc is drawn in the first colour.
    """
    count = len(sentence.words)
    tags = sentence.upos or ("",) * count
    widths = np.array(
        [max(0.55, 0.095 * max(len(w), len(t)) + 0.18) for w, t in zip(sentence.words, tags, strict=True)]
    )
    places = np.cumsum(widths) - widths / 2
    arcs = sorted(
        ((min(w, g), max(w, g), w) for w, g in enumerate(sentence.governors) if g >= 0), key=lambda a: a[1] - a[0]
    )
    level: dict[tuple[int, int], int] = {}
    for low, high, _ in arcs:
        inside = [h for (a, b), h in level.items() if low <= a and b <= high]
        level[low, high] = 1 + max(inside, default=0)
    top = max(level.values(), default=0) + 1
    figure, ax = plt.subplots(figsize=(widths.sum() + 0.2, 0.42 * top + 0.75))
    for low, high, word in arcs:
        governor = high if word == low else low
        start, end = places[governor] + 0.12 * np.sign(word - governor), places[word]
        height = level[low, high]
        colour = COLOURS["first"] if word in highlight else COLOURS["cls"]
        ax.plot(
            [start, start, end, end],
            [0.1, height, height, 0.28],
            color=colour,
            linewidth=1.1,
            solid_joinstyle="round",
        )
        ax.plot(end, 0.22, marker="v", color=colour, markersize=4)
        ax.text(
            (start + end) / 2,
            height,
            sentence.relations[word],
            ha="center",
            va="center",
            fontsize=7,
            color=colour,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        )
    root = sentence.governors.index(-1)
    ax.plot([places[root]] * 2, [0.28, top - 0.2], color=COLOURS["self"], linewidth=1.1)
    ax.plot(places[root], 0.22, marker="v", color=COLOURS["self"], markersize=4)
    ax.text(
        places[root],
        top - 0.2,
        "root",
        ha="center",
        va="center",
        fontsize=7,
        color=COLOURS["self"],
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
    )
    for place, word, tag in zip(places, sentence.words, tags, strict=True):
        ax.text(place, -0.1, word, ha="center", va="top", fontsize=9.5)
        ax.text(place, -0.75, tag, ha="center", va="top", fontsize=6.5, color=COLOURS["self"])
    ax.set(xlim=(0, widths.sum()), ylim=(-1.2, top + 0.1))
    ax.axis("off")
    return figure


def coreference(document: Document) -> HTML:
    """A document with its coreference chains underlined, each in a colour and with a number of its own."""
    number = {chain: i for i, chain in enumerate(document.chains, 1)}
    pieces = []
    for place, sentence in enumerate(document.sentences):
        own = [m for m in document.mentions if m.sentence == place and m.chain in number]
        for word, form in enumerate(sentence.words):
            for m in sorted((m for m in own if m.start == word), key=lambda m: -m.end):
                colour = HEAD_COLOURS[(number[m.chain] - 1) % len(HEAD_COLOURS)]
                pieces.append(
                    f'<span class="mention" style="border-bottom: 2px solid {colour}; background: {colour}22">'
                )
            pieces.append(html.escape(form))
            for m in sorted((m for m in own if m.end == word + 1), key=lambda m: -m.start):
                colour = HEAD_COLOURS[(number[m.chain] - 1) % len(HEAD_COLOURS)]
                pieces.append(f'<sub style="color: {colour}">{number[m.chain]}</sub></span>')
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
