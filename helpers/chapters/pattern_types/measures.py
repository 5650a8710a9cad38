"""Chapter 09: five types of attention map, told apart by a classifier and checked against labelled maps.

The types are those of Kovaleva et al. 2019. Unlike the clusters of chapter 08 they belong to one map of one input,
not to a head: the same head may show one type on one input and another type on the next.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from helpers import attention, corpora
from helpers.corpora import sources
from helpers.corpora.records import sample
from helpers.encoders import Encoder
from helpers.stats import Estimate, mean, ratio, stack
from helpers.tokens import Batch, EncodedText, Input, Marks, encode

TYPES = ("vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous")
VERTICAL, DIAGONAL, BOTH, BLOCK, REST = range(len(TYPES))


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
        # The pairs of the catalogue that are named after their article, "caroline-herschel-1"; a reader's stand alone
        known = sources.entry(corpus, "pairs") is not None
        pairs = corpora.pairs(corpus, split, labels=False)
        names = [(p.id.rpartition("-")[0] or p.id) if known else str(n) for n, p in enumerate(pairs)]
        found = [((p.first, p.second), name) for p, name in zip(pairs, names, strict=True)]
    else:
        raise ValueError(f"task={task!r}: say one of {', '.join(TASKS)}.")
    documents = {name: number for number, name in enumerate(dict.fromkeys(name for _, name in found))}
    every = [Item(f"{task}/{n}", task, texts, documents[name]) for n, (texts, name) in enumerate(found)]
    return sample(every, limit, seed=seed)


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
    batch = encode(encoder, [cell.item.texts], max_length=MOST_TOKENS, truncate=True)
    return attention.maps(encoder, batch)[cell.layer, 0, cell.head].double().numpy(), batch


def texts_of(text: Marks) -> Int[Tensor, "*batch token"]:
    """Which text each token belongs to, 0 or 1; a special token belongs to the text before it, the first one to text 0."""
    return text.text.cummax(-1).values.clamp(min=0)


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
    return described(weights, texts)[0]


def described(
    weights: Float[Tensor, "map n n"], texts: Int[Tensor, "#map n"]
) -> tuple[Float[Tensor, "map feature"], Int[Tensor, "map"]]:
    """:func:`features`, and which column of each map is darkest on average."""
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
        correlation(sums, squares, cells, part=0, whole=4),
        torch.where(cells[:, 3] > 0, across, 0.0),  # with one text there is nothing across
        correlation(sums, squares, cells, part=2, whole=1),
        _entropy(weights).mean(-1) / math.log(n),
    ]
    return torch.stack(found, -1), columns.argmax(-1)


def _regions(texts: Int[Tensor, "#map n"], n: int) -> list[Bool[Tensor, "#map cell"]]:
    """Which cells are near the diagonal, which far from it, which within one text."""
    place = torch.arange(n, device=texts.device)
    distance = (place[None, :] - place[:, None]).abs().expand(len(texts), n, n)
    same = texts[:, :, None] == texts[:, None, :]
    return [region.flatten(1) for region in (distance <= NEAR, distance > FAR, same)]


def _sums(x: Float[Tensor, "map n n"], regions: Float[Tensor, "#map cell region"]) -> Float[Tensor, "map region"]:
    return (x.flatten(1)[:, None, :] @ regions)[:, 0]


def correlation(sums: Tensor, squares: Tensor, cells: Tensor, *, part: int, whole: int) -> Float[Tensor, "map"]:
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


Typed = Callable[[NDArray[np.float64]], NDArray[np.int64]]
"""From features, [map, feature], to types, [map]: a classifier (:mod:`helpers.chapters.pattern_types.classifiers`)."""

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
        return self.tasks[task].mean((-3, -2))

    @property
    def heads(self) -> Estimate:
        """Share of inputs on which each head shows each type, every task counting the same: (layer, head, type)."""
        return stack(list(self.tasks.values())).mean(-4)

    @property
    def all(self) -> Estimate:
        """Share of all maps, every task counting the same: (type,)."""
        return self.heads.mean((-3, -2))

    @property
    def column(self) -> Estimate:
        """Share of all maps with a dark column: vertical, or vertical and diagonal."""
        return self.all.map(lambda x: x[..., [VERTICAL, BOTH]].sum(-1))

    @property
    def first(self) -> Estimate:
        """Share of the heterogeneous maps that are of the first layer; NaN where there are none."""

        def shares(x: Float[np.ndarray, "*draws layer head type"]) -> Float[np.ndarray, "*draws"] | np.float64:
            by_layer = x[..., REST].sum(-1)
            with np.errstate(invalid="ignore", divide="ignore"):
                return by_layer[..., 0] / by_layer.sum(-1)

        return self.heads.map(shares)

    @property
    def layers(self) -> Estimate:
        """Share of the maps of each layer: (layer, type)."""
        return self.heads.mean(-2)

    @property
    def typical(self) -> Int[np.ndarray, "layer head"]:
        """The type that each head shows most often."""
        return self.heads.value.argmax(-1)

    @property
    def entropy(self) -> Estimate:
        """Entropy of each head's types over inputs in nats: 0 for a head that never changes, at most ln 5. (layer, head)"""
        return self.heads.map(mixture_entropy)

    def as_dict(self) -> dict[str, Any]:
        """The numbers to record."""
        return {
            "types": list(TYPES),
            "inputs": self.inputs,
            "truncated": self.truncated,
            "tasks": {task: self.share(task) for task in self.tasks},
            "all": self.all,
            "column": self.column,
            **({"first": self.first} if np.isfinite(self.first.value) else {}),  # none where no map is heterogeneous
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


def measure(
    encoder: Encoder,
    by_task: Mapping[str, Sequence[Item]],
    classifier: Typed,
    *,
    shuffled: bool = False,
    seed: int = 0,
) -> PatternTypes:
    """The type of every head's map on every input, cut to 64 tokens, in one pass, with a progress bar.

    Args:
        by_task: task -> its items (:func:`items`).
        shuffled: measure the control instead: every map with its scores shuffled (:mod:`helpers.controls`).
        seed: of the bootstrap over documents, and of the shuffling.
    """
    every = [item for of_task in by_task.values() for item in of_task]
    options = {"longest": MOST_TOKENS, "shuffled": shuffled, "seed": seed}
    found = attention.measure(encoder, [item.texts for item in every], look, **options)
    measured, darkest = (np.stack([one[name] for one in found]) for name in ("features", "darkest"))
    types = classifier(measured.reshape(-1, len(FEATURES))).reshape(darkest.shape)  # a forest is asked once for all
    vertical = (types == VERTICAL)[..., None]
    documents, tasks = (np.array([getattr(item, name) for item in every]) for name in ("document", "task"))
    shown = np.eye(len(TYPES))[types]
    shares = {}
    for task in by_task:
        mine = tasks == task
        shares[task] = mean(shown[mine], documents[mine], seed=seed)
    hits = (np.eye(len(TARGETS))[darkest] * vertical).sum((1, 2))
    targets = ratio(zip(hits, vertical.sum((1, 2)), strict=True), documents, seed=seed)
    inputs = {task: len(some) for task, some in by_task.items()}
    return PatternTypes(shares, targets, inputs, sum(int(one["cut"]) for one in found))


def look(maps: Float[Tensor, "layer head token token"], text: EncodedText) -> dict[str, Any]:
    """:data:`FEATURES` of the maps of one text, [layer, head, feature]; which of :data:`TARGETS` the darkest column of each belongs to; whether the text was cut."""
    found, column = described(maps.flatten(0, 1), texts_of(text)[None])
    kinds = torch.stack([text.cls, text.sep, text.punctuation, torch.ones_like(text.cls)]).int().argmax(0)
    shape = maps.shape[:2]
    return {"features": found.view(*shape, -1), "darkest": kinds[column].view(shape), "cut": text.cut}


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


def type_of(classifier: Typed, weights: Float[np.ndarray, "query key"], batch: Batch) -> str:
    """What a classifier calls one map (:func:`map_of`)."""
    one = features(torch.from_numpy(weights)[None], texts_of(batch))
    return TYPES[int(classifier(one.numpy())[0])]
