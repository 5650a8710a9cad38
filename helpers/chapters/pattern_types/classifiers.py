"""Telling types of maps apart: synthetic maps to learn from, classifiers, and labelled maps to judge them by."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers import places
from helpers.chapters.pattern_types.measures import (
    BOOK_CORPORA,
    BOTH,
    DIAGONAL,
    MOST_TOKENS,
    REST,
    TASKS,
    TYPES,
    VERTICAL,
    Cell,
    Typed,
    features,
    items,
    map_of,
    masses,
    texts_of,
)
from helpers.corpora import sources
from helpers.corpora.sources import CorpusError
from helpers.encoders import Encoder
from helpers.stats import Estimate, mean

RANGES = {
    "vertical": ((0.15, 1.0), (0.0, 0.08), (0.0, 0.1)),
    "diagonal": ((0.0, 0.06), (0.35, 1.0), (0.0, 0.1)),
    "vertical_diagonal": ((0.15, 0.7), (0.15, 0.6), (0.0, 0.1)),
    "block": ((0.0, 0.15), (0.0, 0.12), (0.6, 1.0)),
    "heterogeneous": ((0.0, 0.06), (0.0, 0.12), (0.0, 0.2)),
}
"""For each type, from where to where the shares of columns, diagonal and blocks in the mixture are drawn; the rest is noise."""

SHORTEST = 24  # synthetic maps have this many tokens or more


def synthetic_map(kind: str, texts: Int[np.ndarray, "n"], random: np.random.Generator) -> Float[np.ndarray, "n n"]:
    """A map of one type that is drawn, not measured: a mixture of columns, a diagonal, blocks and noise, whose rows sum to 1.

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


SAME_LENGTH = 50  # maps of one length are measured together


def synthetic(count: int = 2000, *, seed: int = 0) -> Examples:
    """Synthetic maps of 24 to 64 tokens, as many of each type, with the border between the texts anywhere."""
    random = np.random.default_rng(seed)
    found = []
    for start in range(0, count, SAME_LENGTH):
        kinds = np.arange(start, min(start + SAME_LENGTH, count)) % len(TYPES)
        n = int(random.integers(SHORTEST, MOST_TOKENS + 1))
        texts = (np.arange(n) >= random.integers(5, n - 5, (len(kinds), 1))).astype(np.int64)
        maps = np.stack([synthetic_map(TYPES[k], t, random) for k, t in zip(kinds, texts, strict=True)])
        weights = torch.from_numpy(maps)
        found.append((features(weights, torch.from_numpy(texts)).numpy(), masses(weights).numpy(), kinds))
    return Examples(*(np.concatenate(part) for part in zip(*found, strict=True)))


KINDS = ("forest", "logistic")


def train(examples: Examples, kind: str = "forest", *, seed: int = 0) -> Typed:
    """A classifier trained on maps of known type, in seconds, so that nothing but its recipe has to be kept.

    Args:
        kind: ``forest`` (200 random trees) or ``logistic`` (regression on standardised features).
    """
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r}: say one of {', '.join(KINDS)}.")
    if kind == "forest":
        model = RandomForestClassifier(200, min_samples_leaf=3, random_state=seed)
    else:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    return model.fit(examples.features, examples.types).predict


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


FOREST, RULE, MAJORITY = "forest on synthetic maps", "simple rule", "always the majority type"
OWN_HEAD, LAYER = "other maps of the head", "other heads of the layer"
"""Ways to name a map, as they are called in tables and records."""
NEW, KNOWN, EVERY = "heads not in dev", "heads in dev", "all test maps"
"""Test maps by whether the labels of their head were seen before."""


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
        macro_f1, accuracy: with 95 % bootstrap intervals over heads: maps of one head are much alike.
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
        return vars(self) | {"f1": by_name, "confusion": self.confusion.astype(int)}


def score(
    labels: Int[np.ndarray, "map"], predicted: Int[np.ndarray, "map"], heads: Int[np.ndarray, "map"], *, seed: int = 0
) -> Score:
    """Compare types with labels.

    Args:
        heads: a number for the head of each map, the unit of the bootstrap (:func:`heads_of`).
        seed: of the bootstrap; scores of the same maps with the same seed can be subtracted pairwise.

    Raises:
        ValueError: if there is nothing to compare.
    """
    if not len(labels):
        raise ValueError("There are no labelled maps to judge by.")
    table = np.zeros((len(labels), len(TYPES), len(TYPES)))
    table[np.arange(len(labels)), labels, predicted] = 1
    confusion = mean(table, heads, seed=seed)
    accuracy = mean(labels == predicted, heads, seed=seed)
    return Score(confusion.map(lambda c: macro(f1(c))), accuracy, f1(table.sum(0)), table.sum(0))


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


def heads_of(labels: Sequence[Label]) -> Int[np.ndarray, "map"]:
    """A number for the head of each map."""
    return np.array([1000 * label.cell.layer + label.cell.head for label in labels])


def by_others(
    labels: Sequence[Label], known: Sequence[Label], alike: Callable[[Cell, Cell], bool]
) -> Int[np.ndarray, "map"]:
    """The rival that looks at no map: the most frequent label of known maps that are alike, as an index into :data:`TYPES`; -1 if there is none.

    Args:
        alike: (cell of a map, cell of a known one) -> whether the second counts, such as :func:`same_head`.
    """
    found = []
    for label in labels:
        votes = [TYPES.index(other.type) for other in known if alike(label.cell, other.cell)]
        found.append(int(np.bincount(votes).argmax()) if votes else -1)
    return np.array(found)


def same_head(one: Cell, other: Cell) -> bool:
    """Whether two maps are of one head."""
    return (one.layer, one.head) == (other.layer, other.head)


def layer_mates(one: Cell, other: Cell) -> bool:
    """Whether two maps are of different heads of one layer."""
    return one.layer == other.layer and one.head != other.head


def agreement(labels: Iterable[Label]) -> dict[str, int | float]:
    """How far two annotators agree: number of maps seen by both, share with the same label, Cohen's kappa."""
    pairs = [(label.type, label.second) for label in labels if label.second]
    first, second = zip(*pairs, strict=True)
    same = float(np.mean([a == b for a, b in pairs]))
    return {"maps": len(pairs), "agreement": same, "kappa": float(cohen_kappa_score(first, second))}
