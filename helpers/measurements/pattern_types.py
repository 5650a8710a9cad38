"""Single attention maps of five types (Kovaleva et al. 2019): those that are labelled, synthetic ones whose type is known, and how a network's types are recorded."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import entr, softmax

from helpers import corpora, places
from helpers.corpora import sources
from helpers.corpora.records import sample
from helpers.corpora.sources import CorpusError
from helpers.encoders import Encoder
from helpers.heads import Head
from helpers.tokens import EncodedText, Input

TYPES = ("vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous")
TASKS = ("text", "paraphrase", "entailment", "question")
"""Two paragraphs of running text; two sentences that may say the same; premise and hypothesis; question and context."""
BOOK_CORPORA = {
    "text": "encyclopedia",
    "paraphrase": "encyclopedia-paraphrase",
    "entailment": "encyclopedia-entailment",
    "question": "encyclopedia",
}
"""The book tier's corpus for each task; the labelled maps are of its inputs."""
MOST_TOKENS = 64  # so that a map can be looked at, and every column of it be told from its neighbours


@dataclass(frozen=True)
class Item:
    """One input of one task.

    Attributes:
        id: ``<task>/<number>``, the number counting the corpus's inputs from 0 in the order of its file.
        document: what the bootstrap resamples: number of the article (or of the pair, where pairs stand alone).
    """

    id: str
    task: str
    texts: Input
    document: int


def items(task: str, corpus: str, *, limit: int | None = None, seed: int = 0) -> list[Item]:
    """The inputs of one task, each a pair of texts.

    Args:
        task: one of :data:`TASKS`.
        corpus: a corpus of the task's kind, by name (:mod:`helpers.corpora.sources`).
        limit: draw this many at random, without replacement; all when there are no more.
        seed: of the draw.

    Raises:
        ValueError: for an unknown task.
    """
    if task == "text":
        inputs = [(s.texts, str(s.document)) for s in corpora.segments(corpora.read(corpus))]
    elif task == "question":
        inputs = [((q.question, q.context), q.document) for q in corpora.questions(corpus)]
    elif task in TASKS:
        # The pairs of the catalogue that are named after their article, "caroline-herschel-1"; a reader's stand alone
        known = sources.entry(corpus, "pairs") is not None
        pairs = corpora.pairs(corpus, labels=False)
        names = [(p.id.rpartition("-")[0] or p.id) if known else str(n) for n, p in enumerate(pairs)]
        inputs = [((p.first, p.second), name) for p, name in zip(pairs, names, strict=True)]
    else:
        raise ValueError(f"task={task!r}: say one of {', '.join(TASKS)}.")
    documents = {name: number for number, name in enumerate(dict.fromkeys(name for _, name in inputs))}
    every = [Item(f"{task}/{n}", task, texts, documents[name]) for n, (texts, name) in enumerate(inputs)]
    return sample(every, limit, seed=seed)


def draw(encoder: Encoder, choice: Sequence[Item], n: int, *, seed: int) -> list[tuple[Head, Item]]:
    """``n`` different maps to look at: each time a task, one of its items and a head, at random with equal chances.

    Raises:
        ValueError: if there are fewer than ``n`` maps.
    """
    heads = encoder.layers * encoder.heads
    if n > len(choice) * heads:
        raise ValueError(f"{n} maps are wanted of {len(choice)} items × {heads} heads; give more items.")
    random = np.random.default_rng(seed)
    by_task = [[item for item in choice if item.task == task] for task in dict.fromkeys(i.task for i in choice)]
    drawn: dict[tuple[Head, str], Item] = {}
    while len(drawn) < n:
        of_task = by_task[random.integers(len(by_task))]
        item = of_task[random.integers(len(of_task))]
        head = Head.of(divmod(int(random.integers(heads)), encoder.heads))
        drawn.setdefault((head, item.id), item)
    return [(head, item) for (head, _), item in drawn.items()]


@dataclass(frozen=True)
class Label:
    """A real map that was looked at.

    Attributes:
        model, head, item: whose map, on which input of the book tier.
        split: ``dev`` (settings were chosen on it) or ``test``.
        type, second: what it was called, and in the second labelling ("" where there was none).
    """

    model: str
    head: Head
    item: Item
    split: str
    type: str
    second: str


COLUMNS = ("model", "layer", "head", "task", "input", "split", "label", "second")


def read_labels(path: Path | None = None) -> tuple[Label, ...]:
    """The labels of ``data/pattern_labels.csv``, or of a file of that form.

    Raises:
        CorpusError: with the line, for wrong columns, an unknown type or input, or a head numbered below 1.
    """
    path = path or places.book_data() / "pattern_labels.csv"
    columns, *rows = csv.reader(sources.lines(path))
    if tuple(columns) != COLUMNS:
        raise CorpusError(path, 1, f"The columns are {', '.join(columns)}.", ", ".join(COLUMNS))
    known = {(item.task, item.id): item for task in TASKS for item in items(task, BOOK_CORPORA[task])}
    labels = []
    for number, row in enumerate(rows, 2):
        model, layer, head, task, name, split, called, second = row if len(row) == len(COLUMNS) else [""] * 8
        if (task, name) not in known:
            wanted = f"{len(COLUMNS)} columns, with an input of the book tier."
            raise CorpusError(path, number, f"{row!r:.90}", wanted)
        if not {called, second or called} <= set(TYPES):
            raise CorpusError(path, number, f"The types are {row[-2:]}.", f"of {', '.join(TYPES)}.")
        if not (layer.isdecimal() and head.isdecimal() and int(layer) * int(head)):
            raise CorpusError(path, number, f"Layer {layer!r}, head {head!r}.", "numbers from 1.")
        labels.append(Label(model, Head(int(layer), int(head)), known[task, name], split, called, second))
    return tuple(labels)


# Synthetic maps: their type is known, because they were made so

RANGES = {
    "vertical": ((0.15, 1.0), (0.0, 0.08), (0.0, 0.1)),
    "diagonal": ((0.0, 0.06), (0.35, 1.0), (0.0, 0.1)),
    "vertical_diagonal": ((0.15, 0.7), (0.15, 0.6), (0.0, 0.1)),
    "block": ((0.0, 0.15), (0.0, 0.12), (0.6, 1.0)),
    "heterogeneous": ((0.0, 0.06), (0.0, 0.12), (0.0, 0.2)),
}
"""For each type, from where to where the shares of columns, diagonal and blocks in the mixture are drawn; the rest is noise."""
SHORTEST = 24  # synthetic maps have this many tokens or more
SAME_LENGTH = 50  # so many are of one length


def synthetic(count: int = 2000, *, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Synthetic maps of 24 to 64 tokens, as many of each type: weights, which text each token is of, and the type's place in :data:`TYPES`."""
    random = np.random.default_rng(seed)
    for start in range(0, count, SAME_LENGTH):
        kinds = np.arange(start, min(start + SAME_LENGTH, count)) % len(TYPES)
        n = int(random.integers(SHORTEST, MOST_TOKENS + 1))
        borders = random.integers(5, n - 5, (len(kinds), 1))
        for kind, texts in zip(kinds, (np.arange(n) >= borders).astype(np.int64), strict=True):
            yield synthetic_map(TYPES[kind], texts, random), texts, int(kind)


def synthetic_map(kind: str, texts: Int[np.ndarray, "n"], random: np.random.Generator) -> Float[np.ndarray, "n n"]:
    """A mixture of columns, a diagonal, blocks and noise, whose rows sum to 1.

    Args:
        kind: one of :data:`TYPES`.
        texts: 0 for tokens of the first text, 1 for those of the second.
    """
    n = len(texts)
    shares = np.array([random.uniform(*bounds) for bounds in RANGES[kind]])
    shares = np.append(shares, max(0.0, 1 - shares.sum()))
    parts = [_columns(texts, random), _diagonal(n, random), _blocks(texts, random), _noise(n, random)]
    if kind == "vertical" and random.random() < 0.4:  # many faint columns instead of a few dark ones
        shares, parts[0] = np.array([shares.sum(), 0, 0, random.uniform(0, 0.4)]), _stripes(n, random)
    uneven = np.exp(random.uniform(0, 0.8) * random.normal(size=(4, n)))  # no two rows mix alike
    rows = shares[:, None] * uneven
    return np.einsum("pq,pqk->qk", rows / rows.sum(0), np.stack(parts))


def _columns(texts: Int[np.ndarray, "n"], random: np.random.Generator) -> Float[np.ndarray, "n n"]:
    """One to three sinks that every row attends to, often the first or last token; or the end of each row's own text."""
    n = len(texts)
    scores = np.full((n, n), -9.0)
    if random.random() < 0.25:
        ends = np.flatnonzero(np.append(texts[1:] != texts[:-1], True))
        scores[:, ends] = random.uniform(-4, 0)
        scores[np.arange(n), ends[np.searchsorted(ends, np.arange(n))]] = 0
        scores += 0.4 * random.normal(size=(n, n))
    else:
        sinks = random.choice(n, random.integers(1, 4), replace=False)
        if random.random() < 0.7:
            sinks[0] = random.choice([0, n - 1])
        scores[:, sinks] = 0.7 * random.normal(size=len(sinks)) + 0.4 * random.normal(size=(n, len(sinks)))
    return softmax(scores, -1)


def _stripes(n: int, random: np.random.Generator) -> Float[np.ndarray, "n n"]:
    """Every token is more or less popular, with all rows alike."""
    popular = random.uniform(1, 2.5) * random.normal(size=n)
    return softmax(popular + random.uniform(0.1, 0.5) * random.normal(size=(n, n)), -1)


def _diagonal(n: int, random: np.random.Generator) -> Float[np.ndarray, "n n"]:
    """A band around an offset from -2 to 2, sharp or some tokens wide; sometimes one that fades to one side only."""
    distance = np.arange(n)[None, :] - np.arange(n)[:, None]
    if random.random() < 0.3:
        ahead = distance * random.choice([-1, 1]) > 0
        band = np.where(ahead, -np.abs(distance) / random.uniform(1, 8), -6)
    else:
        band = -(((distance - random.integers(-2, 3)) / random.uniform(0.3, 3)) ** 2) / 2
    popular = random.uniform(0, 1) * random.normal(size=n)
    return softmax(band + popular + random.uniform(0, 1) * random.normal(size=(n, n)), -1)


def _blocks(texts: Int[np.ndarray, "n"], random: np.random.Generator) -> Float[np.ndarray, "n n"]:
    """Even attention within one's own text, next to none across."""
    n = len(texts)
    across = np.where(texts[:, None] == texts[None, :], 0, -random.uniform(2, 9))
    popular = random.uniform(0, 0.8) * random.normal(size=n)
    return softmax(across + popular + random.uniform(0.1, 0.8) * random.normal(size=(n, n)), -1)


def _noise(n: int, random: np.random.Generator) -> Float[np.ndarray, "n n"]:
    """Likes and dislikes of pairs of tokens, some popularity, sometimes a wide smear around the diagonal."""
    pairs = random.normal(size=(n, 4)) @ random.normal(size=(4, n)) / 2
    scores = random.uniform(0, 1.2) * pairs + random.uniform(0, 0.7) * random.normal(size=n)
    if random.random() < 0.3:
        scores -= random.uniform(0, 3) * np.abs(np.arange(n)[None, :] - np.arange(n)[:, None]) / n
    return softmax(scores + random.uniform(0.3, 1.3) * random.normal(size=(n, n)), -1)


# Numbers that describe a map

Maps = Float[np.ndarray, "*maps query key"]
Texts = Int[np.ndarray, "n"]
Numbers = Float[np.ndarray, "*maps"] | float
"""Maps of one input; which of its texts each token is of, 0 or 1; and a number of each map."""
TOKENS = ("cls", "sep", "stop", "other")
"""To what kinds of token a dark column may belong."""


def texts_of(text: EncodedText) -> Texts:
    """Which text each token is of, 0 or 1; special tokens are of the one before."""
    return np.maximum.accumulate(text.text.cpu().numpy()).clip(0)


def grey(weights: Maps) -> Maps:
    """Weights as shades: 1 for the darkest hundredth of a map's cells."""
    cells = weights.reshape(*weights.shape[:-2], -1)
    place = max(1, int(0.99 * cells.shape[-1])) - 1
    darkest = np.partition(cells, place)[..., place, None, None]
    return np.minimum(weights / np.maximum(darkest, 1e-9), 1)


def twelve(weights: Maps, texts: Texts) -> Float[np.ndarray, "*maps 12"]:
    """The twelve numbers of each map that the forests see."""
    shades = grey(weights)
    # the lower median of each column: one of its own values
    of_shades, of_weights = (np.quantile(rows, 0.5, axis=-2, method="lower") for rows in (shades, weights))
    rest = np.maximum(shades - of_shades[..., None, :], 0)  # without what a whole column has
    step = np.arange(len(texts)) - np.arange(len(texts))[:, None]
    near, far = abs(step) <= 2, abs(step) > 3
    inside = far & (texts == texts[:, None])
    bands = [rest.diagonal(k, -2, -1).mean(-1) for k in range(-3, 4)]
    numbers = {
        "column: largest median": of_weights.max(-1),
        "column: largest mean shade": shades.mean(-2).max(-1),
        "column: how many rows dark": (shades >= 0.35).mean(-2).max(-1),
        "columns: share of variance": shades.mean(-2).var(-1) / shades.var((-2, -1)),
        "columns: how few": 1 - _breadth(weights.mean(-2)),
        "diagonal: largest mean shade": np.max(bands, 0),
        "diagonal: how many rows dark": ((rest * near).max(-1) >= 0.35).mean(-1),
        "diagonal: contrast": _contrast(rest, near, ~near),
        "diagonal: fit": _fit(rest, near, near | ~near),
        "blocks: contrast": _contrast(rest, inside, far & ~inside),
        "blocks: fit": _fit(rest, inside, far),
        "rows: breadth": _breadth(weights).mean(-1),
    }
    return np.stack([*numbers.values()], -1)


def _breadth(rows: Float[np.ndarray, "*rows key"]) -> Float[np.ndarray, "*rows"] | float:
    """Entropy of rows, from 0 (one token) to 1 (all tokens evenly)."""
    return entr(rows).sum(-1) / np.log(rows.shape[-1])


def _contrast(shades: Maps, here: Bool[np.ndarray, "n n"], there: Bool[np.ndarray, "n n"]) -> Numbers:
    """How much darker a region is than another; 0 without one of them."""
    if not (here.any() and there.any()):
        return np.zeros(shades.shape[:-2])
    means = [shades[..., region].mean(-1) for region in (here, there)]
    return np.log((means[0] + 0.01) / (means[1] + 0.01))


def _fit(shades: Maps, part: Bool[np.ndarray, "n n"], whole: Bool[np.ndarray, "n n"]) -> Numbers:
    """Correlation, over the whole, of shades with being in the part."""
    x, y = shades[..., whole], part[whole] - part[whole].mean()
    x = x - x.mean(-1, keepdims=True)
    size = np.sqrt((x**2).sum(-1) * (y**2).sum())
    return (x @ y) / np.where(size > 1e-9, size, np.inf)


def look(weights: Maps, text: EncodedText) -> dict[str, np.ndarray]:
    """Of each map of an input the twelve numbers, and the place in :data:`TOKENS` of the kind of token whose column is darkest."""
    column = grey(weights).mean(-2).argmax(-1)
    kinds = [kind.cpu()[column].numpy() for kind in (text.cls, text.sep, text.punctuation)]
    return {"twelve": twelve(weights, texts_of(text)), "target": np.select(kinds, [0, 1, 2], 3)}
