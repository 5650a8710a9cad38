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
from helpers.engine.tokens import Batch
from helpers.figures.look import COLOURS, HEAD_COLOURS


def heatmap(
    matrix: ArrayLike, tokens: Sequence[str], *, title: str = "", ax: Axes | None = None, numbers: bool = False,
    most: float | None = None,
) -> Figure:  # fmt: skip
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
    panels: Mapping[str, NDArray], tokens: Sequence[str], *, colour: str = COLOURS["cls"],
    highlight: Mapping[str, Sequence[int]] | None = None,
) -> Figure:  # fmt: skip
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
                ax.plot([0, 1], [query, key], color=COLOURS["first"] if query in chosen else colour,
                        alpha=float(min(1.0, weights[query, key])), linewidth=1.6, solid_capstyle="round")  # fmt: skip
        for place, align, x in ((0, "right", -0.05), (1, "left", 1.05)):
            for position, token in enumerate(tokens):
                strong = place == 0 and position in chosen
                ax.text(x, position, token, ha=align, va="center", fontsize=8,
                        color=COLOURS["first"] if strong else "#222222")  # fmt: skip
        ax.set(xlim=(-1.0, 2.0), ylim=(count - 0.4, -0.6), title=title)
        ax.title.set_fontsize(9)
        ax.axis("off")
    return figure


def all_heads(maps: ArrayLike, *, title: str = "") -> Figure:
    """Every head's map of one input as a grid of thumbnails: a row for each layer, a column for each head.

    Args:
        maps: [layer, head, query, key]. Each thumbnail has its own scale.
    """
    maps = np.asarray(maps)
    layers, heads = maps.shape[:2]
    figure, axes = plt.subplots(layers, heads, figsize=(0.68 * heads, 0.7 * layers + 0.5), squeeze=False)
    for layer, head in np.ndindex(layers, heads):
        ax = axes[layer, head]
        ax.imshow(maps[layer, head], cmap="Blues", vmin=0)
        ax.set_xticks([])
        ax.set_yticks([])
        if layer == 0:
            ax.set_title(head + 1, fontsize=8, loc="center", weight="normal")
        if head == 0:
            ax.set_ylabel(layer + 1, fontsize=8, rotation=0, ha="right", va="center")
    figure.supylabel("layer", fontsize=9)
    figure.suptitle(title or "head", fontsize=9)
    return figure


def input_diagram(batch: Batch, row: int = 0) -> Figure:
    """How an input is put together: token, number in the vocabulary, text it belongs to, position.

    Args:
        row: which input of the batch.
    """
    length = int(batch.lengths[row])
    types = batch.types[row, :length].tolist() if batch.types is not None else ["-"] * length
    lines = {"token": batch.tokens[row], "vocabulary id": batch.ids[row, :length].tolist(),
             "text (type)": types, "position": range(length)}  # fmt: skip
    shades = [COLOURS[("other", "second", "first")[text + 1]] for text in batch.text[row, :length].tolist()]
    figure, ax = plt.subplots(figsize=(min(9.5, 1.1 + 0.46 * length), 1.9))
    for y, (label, cells) in enumerate(lines.items()):
        for x, (cell, shade) in enumerate(zip(cells, shades, strict=True)):
            ax.add_patch(plt.Rectangle((x, y), 0.94, 0.82, color=shade, alpha=0.28, linewidth=0))
            ax.text(x + 0.47, y + 0.42, str(cell), ha="center", va="center", fontsize=6.5)
        ax.text(-0.15, y + 0.42, label, ha="right", va="center", fontsize=8, weight="bold")
    ax.set(xlim=(-0.2 * length**0.5 - 2, length), ylim=(len(lines), -0.1))
    ax.axis("off")
    return figure


def pointing(panels: Mapping[str, tuple[Sequence[str], NDArray, Mapping[int, bool]]]) -> Figure:
    """Word-level attention as lines; those of the words in question are coloured by whether they point right.

    Args:
        panels: title -> (words, map [unit, unit] between these words, word -> whether its strongest line is right).
    """
    tallest = max(len(words) for words, _, _ in panels.values())
    figure, axes = plt.subplots(1, len(panels), figsize=(2.9 * len(panels), 0.6 + 0.2 * tallest), squeeze=False)
    for ax, (title, (words, weights, asked)) in zip(axes[0], panels.items(), strict=True):
        for row, column in np.ndindex(weights.shape):
            if weights[row, column] >= 0.03:
                colour = COLOURS["other"] if row not in asked else COLOURS["stop"] if asked[row] else COLOURS["first"]
                ax.plot([0, 1], [row, column], color=colour, alpha=float(min(1, 0.15 + weights[row, column])),
                        linewidth=2.2 if row in asked else 0.9, solid_capstyle="round", zorder=2 if row in asked else 1)  # fmt: skip
        for place, align, x in ((0, "right", -0.05), (1, "left", 1.05)):
            for position, word in enumerate(words):
                strong = place == 0 and position in asked
                colour = (COLOURS["stop"] if asked[position] else COLOURS["first"]) if strong else "#222222"
                ax.text(
                    x,
                    position,
                    word,
                    ha=align,
                    va="center",
                    fontsize=8.5,
                    color=colour,
                    weight="bold" if strong else "normal",
                )
        ax.set(xlim=(-1.0, 2.0), ylim=(tallest - 0.1, -0.6))
        ax.set_title(title, fontsize=9)
        ax.axis("off")
    return figure


def mention_links(
    panels: Mapping[str, tuple[Sequence[str], Mapping[int, str], Sequence[tuple[int, int, bool]]]], *, width: int = 84
) -> Figure:
    """Texts with the head words of their mentions boxed, one colour a chain, and arrows from mentions to chosen antecedents.

    Args:
        panels: title -> (words, word -> its chain, arrows). An arrow is (from, to, right), in words; it is solid and green
            when right, dashed and orange when wrong.
        width: characters in a line.
    """
    placed = {title: _flow(words, width) for title, (words, _, _) in panels.items()}
    heights = [1.2 + lines[-1][1] for lines in placed.values()]
    figure, axes = plt.subplots(
        len(panels), figsize=(0.075 * (width + 5), 0.46 * sum(heights)), height_ratios=heights, squeeze=False
    )
    for ax, (title, (words, chains, arrows)) in zip(axes[:, 0], panels.items(), strict=True):
        spots, names = placed[title], list(dict.fromkeys(chains.values()))
        for word, ((x, y), text) in enumerate(zip(spots, words, strict=True)):
            colour = HEAD_COLOURS[names.index(chains[word]) % len(HEAD_COLOURS)] if word in chains else "none"
            ax.text(x, y, text, ha="left", va="center", fontsize=8.6, family="DejaVu Sans Mono",
                    bbox={"boxstyle": "round,pad=0.12", "facecolor": colour, "edgecolor": colour, "alpha": 0.28})  # fmt: skip
        for start, end, right in arrows:
            ends = [(spots[w][0] + len(words[w]) / 2, spots[w][1] - 0.24) for w in (start, end)]
            same = spots[start][1] == spots[end][1]
            bend = min(0.35, 3.2 / (1 + abs(ends[0][0] - ends[1][0]))) if same else 0.08
            ax.annotate("", ends[1], ends[0], arrowprops={
                "arrowstyle": "-|>", "connectionstyle": f"arc3,rad={bend if ends[0][0] > ends[1][0] else -bend}",
                "color": COLOURS["stop"] if right else COLOURS["first"], "linestyle": "-" if right else (0, (3, 2)),
                "linewidth": 1.3, "shrinkA": 1, "shrinkB": 1})  # fmt: skip
        ax.set(xlim=(-1, width + 4), ylim=(spots[-1][1] + 0.6, -0.9))
        ax.set_title(title, fontsize=9)
        ax.axis("off")
    return figure


def _flow(words: Sequence[str], width: int) -> list[tuple[int, int]]:
    """Column and line at which each word begins, in characters and lines."""
    spots, column, line = [], 0, 0
    for word in words:
        if column and column + len(word) > width:
            column, line = 0, line + 1
        spots.append((column, line))
        column += len(word) + 1
    return spots


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
    arcs = sorted(((min(w, g), max(w, g), w) for w, g in enumerate(sentence.governors) if g >= 0),
                  key=lambda a: a[1] - a[0])  # fmt: skip
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
        ax.text((start + end) / 2, height, sentence.relations[word], ha="center", va="center", fontsize=7, color=colour,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})  # fmt: skip
    root = sentence.governors.index(-1)
    ax.plot([places[root]] * 2, [0.28, top - 0.2], color=COLOURS["self"], linewidth=1.1)
    ax.plot(places[root], 0.22, marker="v", color=COLOURS["self"], markersize=4)
    ax.text(places[root], top - 0.2, "root", ha="center", va="center", fontsize=7, color=COLOURS["self"],
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})  # fmt: skip
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


def governor_map(probabilities: ArrayLike, words: Sequence[str], right: Sequence[int], *, title: str = "") -> Figure:
    """How likely each candidate is to be each word's governor: words down the side, ROOT and the words along the top.

    Args:
        probabilities: [word, candidate].
        right: each word's right candidate, which gets a frame.
    """
    probabilities = np.asarray(probabilities)
    figure, ax = plt.subplots(figsize=(2.0 + 0.36 * len(words), 1.0 + 0.32 * len(words)))
    image = ax.imshow(probabilities, cmap="Blues", vmin=0, vmax=1)
    for word, candidate in enumerate(right):
        frame = plt.Rectangle(
            (candidate - 0.5, word - 0.5), 1, 1, fill=False, edgecolor=COLOURS["first"], linewidth=1.6
        )
        ax.add_patch(frame)
    ax.set_xticks(range(len(words) + 1), ["ROOT", *words], rotation=60, ha="left", rotation_mode="anchor", fontsize=8)
    ax.set_yticks(range(len(words)), words, fontsize=8)
    ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    ax.set(title=title, ylabel="dependent")
    ax.grid(visible=False)
    figure.colorbar(image, ax=ax, shrink=0.7, label="probability")
    return figure
