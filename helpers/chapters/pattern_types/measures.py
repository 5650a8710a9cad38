"""Chapter 09: five types of attention map, told apart by a classifier and checked against maps labelled by hand.

The types are those of Kovaleva et al. 2019. Unlike the clusters of chapter 08 they belong to one map of one input,
not to a head: the same head may show one type on one input and another type on the next.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from tqdm import tqdm

from helpers import corpora, places
from helpers.corpora import sources
from helpers.corpora.sources import CorpusError
from helpers.engine import attention
from helpers.engine.encoders import Encoder
from helpers.engine.estimates import REPLICATES, Additive, Estimate, StreamingMean
from helpers.engine.tokens import Batch, Batches, Input, encode

TYPES = ("vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous")
VERTICAL, DIAGONAL, BOTH, BLOCK, REST = range(len(TYPES))

# ---------------------------------------------------------------------------------------- inputs

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


def items(task: str, corpus: str, *, split: str | None = None, limit: int | None = None, seed: int = 0) -> list[Item]:
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
        found = [(s.texts, str(s.document)) for s in corpora.segments(corpora.read(corpus, split))]
    elif task == "question":
        found = [((q.question, q.context), q.document) for q in corpora.questions(corpus, split)]
    elif task in TASKS:
        # The book's pairs are named after their article, "caroline-herschel-1"; other sets number them
        found = [((p.first, p.second), p.id.rpartition("-")[0] or p.id) for p in corpora.pairs(corpus, split)]
    else:
        raise ValueError(f"task={task!r}: say one of {', '.join(TASKS)}.")
    documents = {name: number for number, name in enumerate(dict.fromkeys(name for _, name in found))}
    chosen = range(len(found))
    if limit is not None and limit < len(found):
        chosen = sorted(np.random.default_rng(seed).choice(len(found), size=limit, replace=False).tolist())
    return [Item(f"{task}/{n}", task, found[n][0], documents[found[n][1]]) for n in chosen]


@dataclass(frozen=True)
class Cell:
    """One map: one head (layer and head from 0) on one input."""

    layer: int
    head: int
    item: Item


def draw(encoder: Encoder, choice: Sequence[Item], n: int, *, seed: int) -> list[Cell]:
    """``n`` different cells at random: a task, then one of its items, then a head, each with equal chances.

    Raises:
        ValueError: if there are fewer than ``n`` cells.
    """
    if n > len(choice) * encoder.layers * encoder.heads:
        raise ValueError(
            f"{n} cells are wanted of {len(choice)} items × {encoder.layers * encoder.heads} heads; give more items."
        )
    random = np.random.default_rng(seed)
    by_task = [[item for item in choice if item.task == task] for task in dict.fromkeys(i.task for i in choice)]
    cells: dict[tuple[str, int, int], Cell] = {}
    while len(cells) < n:
        of_task = by_task[random.integers(len(by_task))]
        item = of_task[random.integers(len(of_task))]
        layer, head = divmod(int(random.integers(encoder.layers * encoder.heads)), encoder.heads)
        cells.setdefault((item.id, layer, head), Cell(layer, head, item))
    return list(cells.values())


def map_of(encoder: Encoder, cell: Cell) -> tuple[Float[np.ndarray, "query key"], Batch]:
    """The attention map of one cell, and its input as a batch of one (cut to 64 tokens)."""
    most = min(MOST_TOKENS, encoder.max_length)
    batch = encode(encoder, [cell.item.texts], max_length=most, overlong="truncate")
    return attention.maps(encoder, batch)[cell.layer, 0, cell.head].double().numpy(), batch


def texts_of(batch: Batch) -> Int[Tensor, "batch length"]:
    """Which text each token belongs to, 0 or 1; a special token belongs to the text before it, the first one to text 0."""
    return batch.text.cummax(-1).values.clamp(min=0)


# ---------------------------------------------------------------------------------------- features of a map

FEATURES = (
    "column",  # columns: the largest median of a column's weights;
    "steady",  # the largest mean grey of a column;
    "dark_rows",  # the largest share of rows in which one column is dark;
    "column_fit",  # how much of the variance of the greys lies between columns;
    "concentration",  # how far the mean row is from even: 1 - H / ln n
    "line",  # diagonals, in what columns leave over: the largest mean along an offset from -3 to 3;
    "dark_steps",  # the share of rows with a dark cell at most 2 from the diagonal;
    "band_contrast",  # ln of the mean there over the mean elsewhere;
    "band_fit",  # correlation with "at most 2 from the diagonal"
    "block_contrast",  # blocks, also in what columns leave over, and more than 3 from the diagonal:
    "block_fit",  # ln of the mean within a text over the mean across; correlation with "the same text"
    "entropy",  # mean entropy of the rows, as a share of ln n
)
"""What the classifier knows of a map. Greys are weights relative to the map's own darkest cells (:func:`greys`)."""

DARK, NEAR, FAR, TINY = 0.35, 2, 3, 0.01


def greys(weights: Float[Tensor, "map n n"]) -> Float[Tensor, "map n n"]:
    """Weights as shades from 0 to 1: relative to the map's 99th percentile, where they are cut off."""
    return (weights / _darkest(weights)[:, None, None]).clamp(max=1)


def _darkest(weights: Float[Tensor, "map n n"]) -> Float[Tensor, "map"]:
    """The 99th percentile of each map."""
    cells = weights.flatten(1)
    return _ranked(cells, max(1, int(0.99 * cells.shape[1])) - 1).clamp(min=1e-9)


def _ranked(x: Float[Tensor, "map n *more"], rank: int) -> Float[Tensor, "map *more"]:
    """The value of a rank, from 0, along the second axis; NumPy does this ten times faster than torch on a CPU."""
    return torch.from_numpy(np.partition(x.cpu().numpy(), rank, axis=1)[:, rank]).to(x.device)


def features(weights: Float[Tensor, "map n n"], texts: Int[Tensor, "#map n"]) -> Float[Tensor, "map feature"]:
    """:data:`FEATURES` of maps of one length, in float64.

    Args:
        weights: rows sum to 1, no padding.
        texts: which text each token belongs to (:func:`texts_of`); one row serves all maps.
    """
    weights = weights.double()
    n = weights.shape[-1]
    darkest, medians = _darkest(weights), _ranked(weights, (n - 1) // 2)
    grey = (weights / darkest[:, None, None]).clamp(max=1)
    left = (grey - (medians / darkest[:, None]).clamp(max=1)[:, None, :]).clamp(min=0)  # what columns leave over
    near, far, same = _regions(texts, n)
    regions = torch.stack([near, far, far & same, far & ~same, torch.ones_like(near)], -1).double()
    cells = regions.sum(-2)  # [map or 1, region]
    sums, squares = _sums(left, regions), _sums(left * left, regions)
    mean = sums / cells.clamp(min=1)
    columns = grey.mean(-2)
    lines = [left.diagonal(k, -2, -1).mean(-1) for k in range(-min(3, n - 1), min(3, n - 1) + 1)]
    elsewhere = (sums[:, 4] - sums[:, 0]) / (cells[:, 4] - cells[:, 0]).clamp(min=1)
    across = torch.log((mean[:, 2] + TINY) / (mean[:, 3] + TINY))
    found = [
        medians.amax(-1),
        columns.amax(-1),
        (grey >= DARK).double().mean(-2).amax(-1),
        columns.var(-1, correction=0) / grey.flatten(1).var(-1, correction=0).clamp(min=1e-12),
        1 - _entropy(weights.mean(-2)) / math.log(n),
        torch.stack(lines, -1).amax(-1),
        ((left * near.view(-1, n, n)).amax(-1) >= DARK).double().mean(-1),
        torch.log((mean[:, 0] + TINY) / (elsewhere + TINY)),
        _correlation(sums, squares, cells, part=0, whole=4),
        torch.where(cells[:, 3] > 0, across, 0.0),  # with one text there is nothing across
        _correlation(sums, squares, cells, part=2, whole=1),
        _entropy(weights).mean(-1) / math.log(n),
    ]
    return torch.stack(found, -1)


def _regions(texts: Int[Tensor, "#map n"], n: int) -> list[Bool[Tensor, "#map cell"]]:
    """Which cells are near the diagonal, which far from it, which within one text."""
    place = torch.arange(n, device=texts.device)
    distance = (place[None, :] - place[:, None]).abs().expand(len(texts), n, n)
    same = texts[:, :, None] == texts[:, None, :]
    return [region.flatten(1) for region in (distance <= NEAR, distance > FAR, same)]


def _sums(x: Float[Tensor, "map n n"], regions: Float[Tensor, "#map cell region"]) -> Float[Tensor, "map region"]:
    return (x.flatten(1)[:, None, :] @ regions)[:, 0]


def _correlation(sums: Tensor, squares: Tensor, cells: Tensor, *, part: int, whole: int) -> Float[Tensor, "map"]:
    """Correlation, over a whole region, of the values with being in a part of it; 0 where either does not vary."""
    count = cells[:, whole].clamp(min=1)
    mean, share = sums[:, whole] / count, cells[:, part] / count
    covariance = sums[:, part] / count - mean * share
    spread = (squares[:, whole] / count - mean**2).clamp(min=0) * (share - share**2)
    return torch.where(spread > 1e-12, covariance / spread.clamp(min=1e-12).sqrt(), 0.0)


def masses(weights: Float[Tensor, "map n n"]) -> Float[Tensor, "map two"]:
    """Two numbers that anyone would try first: the sink mass and the near-diagonal mass of each map.

    The sink mass is the largest mean weight of a column; the other is the mean weight that a row gives to the
    previous, the same and the next token together.
    """
    weights = weights.double()
    near = sum(weights.diagonal(k, -2, -1).sum(-1) for k in (-1, 0, 1)) / weights.shape[-1]
    return torch.stack([weights.mean(-2).amax(-1), near], -1)


def _entropy(p: Float[Tensor, "*rows n"]) -> Float[Tensor, "*rows"]:
    return torch.special.entr(p).sum(-1)


# ---------------------------------------------------------------------------------------- prototypes

RANGES = {
    "vertical": ((0.15, 1.0), (0.0, 0.08), (0.0, 0.1)),
    "diagonal": ((0.0, 0.06), (0.35, 1.0), (0.0, 0.1)),
    "vertical_diagonal": ((0.15, 0.7), (0.15, 0.6), (0.0, 0.1)),
    "block": ((0.0, 0.15), (0.0, 0.12), (0.6, 1.0)),
    "heterogeneous": ((0.0, 0.06), (0.0, 0.12), (0.0, 0.2)),
}
"""For each type, from where to where the shares of columns, diagonal and blocks in the mixture are drawn; the rest is noise."""

SHORTEST = 24  # prototypes have this many tokens or more


def prototype(kind: str, texts: Int[np.ndarray, "n"], random: np.random.Generator) -> Float[np.ndarray, "n n"]:
    """An artificial map of one type: a mixture of columns, a diagonal, blocks and noise, whose rows sum to 1.

    Args:
        kind: one of :data:`TYPES`.
        texts: 0 for tokens of the first text, 1 for those of the second.
    """
    n = len(texts)
    shares = np.array([random.uniform(*bounds) for bounds in RANGES[kind]])
    shares = np.append(shares, max(0.0, 1 - shares.sum()))
    parts = [columns(texts, random), diagonal(n, random), blocks(texts, random), noise(n, random)]
    if kind == "vertical" and random.random() < 0.4:  # many faint columns instead of a few dark ones
        shares, parts[0] = np.array([shares.sum(), 0, 0, random.uniform(0, 0.4)]), stripes(n, random)
    uneven = np.exp(random.uniform(0, 0.8) * random.normal(size=(4, n)))  # no two rows mix alike
    rows = shares[:, None] * uneven
    return np.einsum("pq,pqk->qk", rows / rows.sum(0), np.stack(parts))


def columns(texts: Int[np.ndarray, "n"], random: np.random.Generator) -> Float[np.ndarray, "n n"]:
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
    return _softmax(scores)


def stripes(n: int, random: np.random.Generator) -> Float[np.ndarray, "n n"]:
    """Every token is more or less popular, with all rows alike."""
    popular = random.uniform(1, 2.5) * random.normal(size=n)
    return _softmax(popular + random.uniform(0.1, 0.5) * random.normal(size=(n, n)))


def diagonal(n: int, random: np.random.Generator) -> Float[np.ndarray, "n n"]:
    """A band around an offset from -2 to 2, sharp or some tokens wide; sometimes one that fades to one side only."""
    distance = np.arange(n)[None, :] - np.arange(n)[:, None]
    if random.random() < 0.3:
        ahead = distance * random.choice([-1, 1]) > 0
        band = np.where(ahead, -np.abs(distance) / random.uniform(1, 8), -6)
    else:
        band = -(((distance - random.integers(-2, 3)) / random.uniform(0.3, 3)) ** 2) / 2
    popular = random.uniform(0, 1) * random.normal(size=n)
    return _softmax(band + popular + random.uniform(0, 1) * random.normal(size=(n, n)))


def blocks(texts: Int[np.ndarray, "n"], random: np.random.Generator) -> Float[np.ndarray, "n n"]:
    """Even attention within one's own text, next to none across."""
    n = len(texts)
    across = np.where(texts[:, None] == texts[None, :], 0, -random.uniform(2, 9))
    popular = random.uniform(0, 0.8) * random.normal(size=n)
    return _softmax(across + popular + random.uniform(0.1, 0.8) * random.normal(size=(n, n)))


def noise(n: int, random: np.random.Generator) -> Float[np.ndarray, "n n"]:
    """Likes and dislikes of pairs of tokens, some popularity, sometimes a wide smear around the diagonal."""
    pairs = random.normal(size=(n, 4)) @ random.normal(size=(4, n)) / 2
    scores = random.uniform(0, 1.2) * pairs + random.uniform(0, 0.7) * random.normal(size=n)
    if random.random() < 0.3:
        scores -= random.uniform(0, 3) * np.abs(np.arange(n)[None, :] - np.arange(n)[:, None]) / n
    return _softmax(scores + random.uniform(0.3, 1.3) * random.normal(size=(n, n)))


def _softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@dataclass(frozen=True)
class Examples:
    """Maps with a type: what a classifier is trained on, or judged on.

    Attributes:
        features: [map, feature].
        masses: [map, 2] (:func:`masses`).
        types: [map], indices into :data:`TYPES`.
    """

    features: Float[np.ndarray, "map feature"]
    masses: Float[np.ndarray, "map two"]
    types: Int[np.ndarray, "map"]

    def __len__(self) -> int:
        return len(self.types)


SAME_LENGTH = 50  # prototypes of one length are measured together


def prototypes(count: int = 2000, *, seed: int = 0) -> Examples:
    """Artificial maps of 24 to 64 tokens, as many of each type, with the border between the texts anywhere."""
    random = np.random.default_rng(seed)
    found = []
    for start in range(0, count, SAME_LENGTH):
        kinds = np.arange(start, min(start + SAME_LENGTH, count)) % len(TYPES)
        n = int(random.integers(SHORTEST, MOST_TOKENS + 1))
        texts = (np.arange(n) >= random.integers(5, n - 5, (len(kinds), 1))).astype(np.int64)
        maps = np.stack([prototype(TYPES[k], t, random) for k, t in zip(kinds, texts, strict=True)])
        weights = torch.from_numpy(maps)
        found.append((features(weights, torch.from_numpy(texts)).numpy(), masses(weights).numpy(), kinds))
    return Examples(*(np.concatenate(part) for part in zip(*found, strict=True)))


# ---------------------------------------------------------------------------------------- classifiers

KINDS = ("forest", "logistic")


@dataclass(frozen=True)
class Classifier:
    """From features to types; trained in seconds, so that nothing but its recipe has to be kept."""

    kind: str
    model: BaseEstimator

    def __call__(self, features: Float[np.ndarray, "map feature"]) -> Int[np.ndarray, "map"]:
        """Indices into :data:`TYPES`."""
        return self.model.predict(features)


def train(examples: Examples, kind: str = "forest", *, seed: int = 0) -> Classifier:
    """Train a classifier on prototypes.

    Args:
        kind: ``forest`` (200 random trees) or ``logistic`` (regression on standardised features).
    """
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r}: say one of {', '.join(KINDS)}.")
    if kind == "forest":
        model = RandomForestClassifier(200, min_samples_leaf=3, random_state=seed)
    else:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    return Classifier(kind, model.fit(examples.features, examples.types))


@dataclass(frozen=True)
class Rule:
    """The simple rule: much mass in a sink makes a map vertical, much near the diagonal makes it diagonal.

    Attributes:
        sink, near: the two thresholds. A map above both is vertical+diagonal, below both heterogeneous, never block.
    """

    sink: float
    near: float

    def __call__(self, masses: Float[np.ndarray, "map two"]) -> Int[np.ndarray, "map"]:
        """Indices into :data:`TYPES`."""
        above = masses >= [self.sink, self.near]
        return np.array([[REST, DIAGONAL], [VERTICAL, BOTH]])[above[:, 0].astype(int), above[:, 1].astype(int)]


def fit_rule(examples: Examples) -> Rule:
    """The thresholds, in steps of 0.02, with the largest macro-F1."""
    steps = [round(0.02 * step, 2) for step in range(1, 41)]
    grid = [Rule(sink, near) for sink in steps for near in steps]
    return max(grid, key=lambda rule: macro(f1(confusion(examples.types, rule(examples.masses)))))


# ---------------------------------------------------------------------------------------- judging


def confusion(labels: Int[np.ndarray, "map"], predicted: Int[np.ndarray, "map"]) -> Float[np.ndarray, "type type"]:
    """How many maps of each label (row) were given each type (column)."""
    table = np.zeros((len(TYPES), len(TYPES)))
    np.add.at(table, (labels, predicted), 1)
    return table


def f1(table: Float[np.ndarray, "*more type type"]) -> Float[np.ndarray, "*more type"]:
    """F1 of each type from a confusion table; NaN for types that nothing is labelled with."""
    labelled, given = table.sum(-1), table.sum(-2)
    hits = np.diagonal(table, axis1=-2, axis2=-1)
    with np.errstate(invalid="ignore"):
        return np.where(labelled > 0, 2 * hits / (labelled + given), np.nan)


def macro(per_type: Float[np.ndarray, "*more type"]) -> Float[np.ndarray, "*more"] | np.float64:
    """The mean F1 over the types that occur among the labels."""
    return np.nanmean(per_type, axis=-1)


@dataclass(frozen=True)
class Score:
    """How well types were told apart.

    Attributes:
        macro_f1, accuracy: with 95 % bootstrap intervals over maps.
        f1: [type], NaN for types without a labelled map.
        confusion: [label, given].
    """

    macro_f1: Estimate
    accuracy: Estimate
    f1: Float[np.ndarray, "type"]
    confusion: Float[np.ndarray, "type type"]

    def as_dict(self) -> dict[str, Any]:
        """The numbers to record; F1 by the name of the type."""
        by_name = {name: float(value) for name, value in zip(TYPES, self.f1, strict=True) if not np.isnan(value)}
        return {
            "macro_f1": self.macro_f1,
            "accuracy": self.accuracy,
            "f1": by_name,
            "confusion": self.confusion.astype(int),
        }


def score(labels: Int[np.ndarray, "map"], predicted: Int[np.ndarray, "map"], *, seed: int = 0) -> Score:
    """Compare types with labels.

    Args:
        seed: of the bootstrap over maps.

    Raises:
        ValueError: if there is nothing to compare.
    """
    if not len(labels):
        raise ValueError("There are no labelled maps to judge by.")
    table = confusion(labels, predicted)
    pairs = table.ravel() / table.sum()
    drawn = np.random.default_rng(seed).multinomial(len(labels), pairs, REPLICATES).reshape(-1, *table.shape)
    hits = np.trace(drawn, axis1=1, axis2=2) / len(labels)
    return Score(
        Estimate.of(macro(f1(table)), macro(f1(drawn.astype(np.float64)))),
        Estimate.of(np.trace(table) / len(labels), hits),
        f1(table),
        table,
    )


# ---------------------------------------------------------------------------------------- labels


@dataclass(frozen=True)
class Label:
    """A real map that was looked at.

    Attributes:
        model, cell: whose map, on which input of the book tier.
        split: ``dev`` (settings were chosen on it) or ``test``.
        type, second: what it was called, and by a second annotator ("" where there was none).
    """

    model: str
    cell: Cell
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
    rows = list(csv.reader(io.StringIO("\n".join(sources.lines(path)))))
    if tuple(rows[0]) != COLUMNS:
        raise CorpusError(path, 1, f"The columns are {', '.join(rows[0])}.", ", ".join(COLUMNS))
    known = {item.id: item for task in TASKS for item in items(task, BOOK_CORPORA[task])}
    found = []
    for number, row in enumerate(rows[1:], 2):
        given = dict(zip(COLUMNS, row, strict=False))
        if len(row) != len(COLUMNS) or given["input"] not in known or known[given["input"]].task != given["task"]:
            raise CorpusError(
                path, number, f"{row!r:.90}", f"{len(COLUMNS)} columns, with an input of the book tier."
            )
        if not {given["label"], given["second"] or TYPES[0]} <= set(TYPES):
            raise CorpusError(path, number, f"The types are {row[-2:]}.", f"of {', '.join(TYPES)}.")
        if not (
            given["layer"].isdecimal() and given["head"].isdecimal() and int(given["layer"]) * int(given["head"])
        ):
            raise CorpusError(path, number, f"Layer {given['layer']!r}, head {given['head']!r}.", "numbers from 1.")
        cell = Cell(int(given["layer"]) - 1, int(given["head"]) - 1, known[given["input"]])
        found.append(Label(given["model"], cell, given["split"], given["label"], given["second"]))
    return tuple(found)


def labelled(encoder: Encoder, labels: Sequence[Label]) -> Examples:
    """Features of an encoder's labelled maps, in the labels' order."""
    found = []
    for label in labels:
        weights, batch = map_of(encoder, label.cell)
        one = torch.from_numpy(weights)[None]
        found.append((features(one, texts_of(batch)).numpy(), masses(one).numpy(), [TYPES.index(label.type)]))
    if not found:
        raise ValueError(f"No map of {encoder.name!r} is labelled.")
    return Examples(*(np.concatenate(part) for part in zip(*found, strict=True)))


def agreement(labels: Iterable[Label]) -> dict[str, int | float]:
    """How far two annotators agree: number of maps seen by both, share with the same label, Cohen's kappa."""
    pairs = [(label.type, label.second) for label in labels if label.second]
    first, second = zip(*pairs, strict=True)
    same = float(np.mean([a == b for a, b in pairs]))
    return {"maps": len(pairs), "agreement": same, "kappa": float(cohen_kappa_score(first, second))}


# ---------------------------------------------------------------------------------------- the corpus

TARGETS = ("cls", "sep", "stop", "other")
"""What the darkest column of a vertical map belongs to; ``stop`` is any punctuation here."""


@dataclass(frozen=True)
class PatternTypes:
    """Which types every head shows on the inputs of each task.

    Attributes:
        tasks: task -> share of its inputs on which each head shows each type, an Estimate (layer, head, type).
        targets: share of the vertical maps whose darkest column is :data:`TARGETS`, an Estimate (target,).
        inputs: task -> how many inputs there were.
        truncated: how many were cut to 64 tokens.
    """

    tasks: dict[str, Estimate]
    targets: Estimate
    inputs: dict[str, int]
    truncated: int = 0

    def share(self, task: str) -> Estimate:
        """Share of all maps of a task, (type,)."""
        return _over(self.tasks[task], (-3, -2))

    @property
    def heads(self) -> Estimate:
        """Share of inputs on which each head shows each type, every task counting the same: (layer, head, type)."""
        every = list(self.tasks.values())
        return Estimate.of(np.mean([e.value for e in every], axis=0), np.mean([e.replicates for e in every], axis=0))

    @property
    def all(self) -> Estimate:
        """Share of all maps, every task counting the same: (type,)."""
        return _over(self.heads, (-3, -2))

    @property
    def layers(self) -> Estimate:
        """Share of the maps of each layer: (layer, type)."""
        return _over(self.heads, -2)

    @property
    def typical(self) -> Int[np.ndarray, "layer head"]:
        """The type that each head shows most often."""
        return self.heads.value.argmax(-1)

    @property
    def entropy(self) -> Estimate:
        """Entropy of each head's types over inputs in nats: 0 for a head that never changes, at most ln 5. (layer, head)"""
        heads = self.heads
        return Estimate.of(mixture_entropy(heads.value), mixture_entropy(heads.replicates))

    def as_dict(self) -> dict[str, Any]:
        """The numbers to record."""
        return {
            "types": list(TYPES),
            "inputs": self.inputs,
            "truncated": self.truncated,
            "tasks": {task: self.share(task) for task in self.tasks},
            "all": self.all,
            "layers": self.layers.value,
            "heads": self.heads.value,
            "typical": [[TYPES[t] for t in row] for row in self.typical],
            "entropy": self.entropy,
            "targets": {
                name: self.targets[k] for k, name in enumerate(TARGETS) if np.isfinite(self.targets.value[k])
            },  # none where no map is vertical
        }


def mixture_entropy(shares: Float[np.ndarray, "*more type"]) -> Float[np.ndarray, "*more"]:
    """Entropy in nats of distributions along the last axis, with 0 ln 0 = 0."""
    return -(shares * np.log(np.where(shares > 0, shares, 1))).sum(-1)


def _over(estimate: Estimate, axes: int | tuple[int, ...]) -> Estimate:
    """The mean of an estimate over some axes, counted from the last."""
    return Estimate.of(estimate.value.mean(axis=axes), estimate.replicates.mean(axis=axes))


def measure(
    encoder: Encoder,
    by_task: Mapping[str, Sequence[Item]],
    classifier: Classifier,
    *,
    seed: int = 0,
    batch_size: int = 16,
) -> PatternTypes:
    """The type of every head's map on every input, cut to 64 tokens, in one pass, with a progress bar.

    Args:
        by_task: task -> its items (:func:`items`).
        seed: of the bootstrap over documents.
    """
    every = [item for of_task in by_task.values() for item in of_task]
    batches = Batches(
        encoder,
        [i.texts for i in every],
        batch_size=batch_size,
        max_length=min(MOST_TOKENS, encoder.max_length),
        overlong="truncate",
    )
    counter = Accumulator(encoder, every, classifier, seed=seed)
    attention.sweep(encoder, tqdm(batches, desc=f"{encoder.name}: {len(every)} inputs"), counter)
    return counter.result(batches.truncated)


class Accumulator(Additive):
    """Counts of types; an observer for :func:`helpers.engine.attention.sweep`.

    Args:
        every: the items in the order of the inputs.
    """

    ADDED = ("tasks", "targets", "inputs")
    PER_INPUT = ("items",)

    def __init__(self, encoder: Encoder, every: Sequence[Item], classifier: Classifier, *, seed: int = 0) -> None:
        self.items = every
        self.classifier = classifier
        shape, counts = (encoder.layers, encoder.heads, len(TYPES)), (encoder.layers, 1, 1)
        self.tasks = {
            task: StreamingMean(shape, denominators=counts, seed=seed)
            for task in dict.fromkeys(item.task for item in every)
        }
        self.targets = StreamingMean((len(TARGETS),), denominators=(1,), seed=seed)
        self.inputs = dict.fromkeys(self.tasks, 0)

    def __call__(self, batch: Batch, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        rows = [self.items[index] for index in batch.index]
        texts = texts_of(batch)
        measured, darkest = [], []
        for row, n in enumerate(batch.lengths.tolist()):
            weights = probabilities[row, :, :n, :n]
            measured.append(features(weights, texts[row : row + 1, :n]).cpu().numpy())
            darkest.append(self._kinds(batch, row)[greys(weights.double()).mean(-2).argmax(-1).cpu().numpy()])
        types = self.classifier(np.concatenate(measured)).reshape(len(rows), -1)
        shown = np.eye(len(TYPES))[types]
        for task in dict.fromkeys(item.task for item in rows):
            mine = [number for number, item in enumerate(rows) if item.task == task]
            documents = [rows[number].document for number in mine]
            self.tasks[task].add(documents, shown[mine], np.ones((len(mine), 1, 1)), at=(layer,))
            if layer == 0:
                self.inputs[task] += len(mine)
        vertical = (types == VERTICAL)[..., None].astype(np.float64)
        hits = (np.eye(len(TARGETS))[np.stack(darkest)] * vertical).sum(1)
        self.targets.add([item.document for item in rows], hits, vertical.sum(1))

    @staticmethod
    def _kinds(batch: Batch, row: int) -> Int[np.ndarray, "length"]:
        marks = torch.stack([batch.cls[row], batch.sep[row], batch.punctuation[row]]).cpu().numpy()
        return np.where(marks.any(0), marks.argmax(0), len(TARGETS) - 1)

    def merge(self, other: "Accumulator") -> "Accumulator":
        """The counts of both; they must cover different inputs of the same tasks, with the same seed."""
        merged = object.__new__(Accumulator)
        merged.items, merged.classifier = self.items, self.classifier
        merged.tasks = {task: mean.merge(other.tasks[task]) for task, mean in self.tasks.items()}
        merged.targets = self.targets.merge(other.targets)
        merged.inputs = {task: count + other.inputs[task] for task, count in self.inputs.items()}
        return merged

    def result(self, truncated: int = 0) -> PatternTypes:
        """Shares with intervals."""
        tasks = {task: mean.estimate() for task, mean in self.tasks.items()}
        return PatternTypes(tasks, self.targets.estimate(), dict(self.inputs), truncated)


CLUSTERS = ("dense", "diagonal", "dense_vertical", "vertical")
"""The clusters of heads in chapter 08, in its order."""


def contingency(
    clusters: Sequence[Sequence[str]], names: Sequence[str], shares: Float[np.ndarray, "layer head type"]
) -> Float[np.ndarray, "cluster type"]:
    """For each cluster of heads the mean share of maps of each type; NaN for clusters without heads.

    Args:
        clusters: [layer][head], the cluster that each head is in (chapter 08).
        names: the clusters, in the order of the rows.

    Raises:
        ValueError: if the clusters are of a network of another shape.
    """
    given = np.array(clusters)
    if given.shape != shares.shape[:2]:
        raise ValueError(f"The clusters are of {given.shape} heads, the types of {shares.shape[:2]}.")
    empty = np.full(len(TYPES), np.nan)
    return np.stack([shares[given == name].mean(0) if (given == name).any() else empty for name in names])


def type_of(classifier: Classifier, weights: Float[np.ndarray, "query key"], batch: Batch) -> str:
    """What a classifier calls one map (:func:`map_of`)."""
    one = features(torch.from_numpy(weights)[None], texts_of(batch))
    return TYPES[int(classifier(one.numpy())[0])]
