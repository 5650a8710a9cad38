"""Chapter 08: which heads behave alike, seen from how far they look.

A head is described by 21 numbers: its mean attention to [CLS], to [SEP], to commas and to full stops, to the
token itself, and to 16 windows of distance that grow with the input. Heads are then clustered on these
numbers and the clusters named. After Guan et al. 2020, sections 3 and 4, with controls for what clustering
finds where there is nothing to find.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import ThreadpoolController
from torch import Tensor
from tqdm import tqdm

from helpers.engine import attention
from helpers.engine.encoders import Encoder, EncoderError
from helpers.engine.estimates import Additive, Estimate, StreamingMean
from helpers.engine.tokens import Batch, Batches, Input

WINDOWS = 16
KINDS = ("cls", "sep", "comma", "period")
FEATURES = ("self", *(f"window {w}" for w in range(1, WINDOWS + 1)), *KINDS)
"""The 21 numbers of a head, in the order of every array whose last axis is ``feature``."""

SPECIAL = len(FEATURES) - len(KINDS)  # where the four kinds of token begin
PAD = len(FEATURES)  # the number of cells that belong to no feature


# ---------------------------------------------------------------------------------------- the feature


def cells(batch: Batch) -> Int[Tensor, "batch query key"]:
    """Which of the 21 features each cell (i, j) of an input's map belongs to; 21 where i or j is padding.

    The kind of the attended token comes first: a cell whose key is [CLS], [SEP], a comma or a full stop counts
    there, also on the diagonal and at any distance. Then the diagonal (``self``). Every other cell falls in
    window ``1 + ⌊16 |i - j| / n⌋``, with n real tokens, the same for both directions. So the cells of the real
    tokens are divided among the features, whatever the length; windows narrower than one token stay empty.
    """
    length = batch.mask.shape[1]
    place = torch.arange(length, device=batch.ids.device)
    distance = (place[:, None] - place[None, :]).abs()
    found = 1 + (WINDOWS * distance)[None] // batch.lengths[:, None, None].clamp_min(1)
    found = found.masked_fill(distance == 0, 0)
    comma = _commas(batch)
    for kind, keys in enumerate((batch.cls, batch.sep, comma, batch.stop & ~comma), SPECIAL):
        found = found.masked_fill(keys[:, None, :], kind)
    return found.masked_fill(~(batch.mask[:, :, None] & batch.mask[:, None, :]), PAD)


def _commas(batch: Batch) -> Bool[Tensor, "batch length"]:
    """The commas among ``batch.stop``: token strings may carry a mark in front, never behind."""
    length = batch.mask.shape[1]
    found = [[t.endswith(",") for t in row] + [False] * (length - len(row)) for row in batch.tokens]
    return batch.stop & torch.tensor(found, dtype=torch.bool, device=batch.ids.device)


def features(
    probabilities: Float[Tensor, "batch head query key"], member: Float[Tensor, "batch cell feature"]
) -> Float[Tensor, "batch head feature"]:
    """Sums of attention over the cells of each feature: one matrix product for all heads and features.

    Args:
        member: [batch, query · key, feature], 1 where a cell belongs to a feature (:func:`membership`).
    """
    return probabilities.flatten(2) @ member.to(probabilities.dtype)


def membership(batch: Batch) -> Float[Tensor, "batch cell feature"]:
    """:func:`cells` as one column of ones and zeros for each feature."""
    where = cells(batch).flatten(1)[..., None]
    member = torch.zeros(*where.shape[:2], PAD, device=where.device)
    return member.scatter_(2, where.clamp_max(PAD - 1), (where < PAD).float())


@dataclass(frozen=True, eq=False)
class DistanceFeatures:
    """The 21 numbers of every head, means over inputs.

    Attributes:
        all: [layer, head, feature], over all inputs, with replicates of a bootstrap over documents.
        halves: [draw, layer, head, feature], each over a random half of the inputs.
        even: [feature], what a head with equal weights on all tokens of each input would have.
        inputs, tokens, truncated: how many were measured; how many inputs were cut to fit.
    """

    all: Estimate
    halves: Float[np.ndarray, "draw layer head feature"]
    even: Float[np.ndarray, "feature"]
    inputs: int
    tokens: int
    truncated: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of layers and heads."""
        return self.all.value.shape[:2]

    @property
    def points(self) -> Float[np.ndarray, "point feature"]:
        """Every head as a point, layer by layer."""
        return points(self.all.value)


def points(array: Float[np.ndarray, "*draws layer head feature"]) -> Float[np.ndarray, "*draws point feature"]:
    """Layers and heads as one axis."""
    return array.reshape(*array.shape[:-3], -1, array.shape[-1])


class Accumulator(Additive):
    """Sums of every input's features; an observer for :func:`helpers.engine.attention.sweep`.

    An input's feature is the mean over its rows, so that each input counts once, whatever its length.

    Args:
        documents: for each input, the number of its document (the unit of the bootstrap).
        halves: [draw, input], which inputs belong to each random half (:func:`random_halves`).
    """

    ADDED = ("all", "halves", "even", "counts", "inputs", "tokens")
    PER_INPUT = ("documents",)

    def __init__(
        self,
        encoder: Encoder,
        documents: Sequence[int],
        halves: Bool[np.ndarray, "draw input"],
        *,
        replicates: int = 200,
        seed: int = 0,
    ) -> None:
        shape = (encoder.layers, encoder.heads, len(FEATURES))
        self.documents, self.members, self.first = documents, halves, 0
        self.all = StreamingMean(shape, denominators=(encoder.layers, 1, 1), replicates=replicates, seed=seed)
        self.halves = np.zeros((len(halves), *shape))
        self.even = np.zeros(len(FEATURES))
        self.counts = np.zeros(len(halves))
        self.inputs = self.tokens = 0

    def __call__(self, batch: Batch, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        if layer == 0:
            self._member = membership(batch)
            self._lengths = batch.lengths.double().cpu().numpy()
            self.even += (self._member.sum(1).double().cpu().numpy() / self._lengths[:, None] ** 2).sum(0)
            self._counted = self.members[:, [i - self.first for i in batch.index]].astype(np.float64)
            self.counts += self._counted.sum(-1)
            self.inputs += len(batch.index)
            self.tokens += int(self._lengths.sum())
        found = features(probabilities, self._member).double().cpu().numpy() / self._lengths[:, None, None]
        documents = [self.documents[i] for i in batch.index]
        self.all.add(documents, found, np.ones((len(found), 1, 1)), at=(layer,))
        self.halves[:, layer] += np.tensordot(self._counted, found, axes=1)

    def part(self, inputs: range) -> "Accumulator":
        """An empty one for some of the inputs."""
        made = super().part(inputs)
        made.members, made.first = self.members[:, inputs.start : inputs.stop], inputs.start
        return made

    def merge(self, other: "Accumulator") -> "Accumulator":
        """Sums over both; they must have the same documents and halves and have seen different inputs."""
        if not np.array_equal(self.members, other.members) or list(self.documents) != list(other.documents):
            raise ValueError("Only sums over the same inputs, cut into the same halves, can be merged.")
        merged = object.__new__(Accumulator)
        merged.documents, merged.members, merged.first = self.documents, self.members, self.first
        merged.all = self.all.merge(other.all)
        for name in ("halves", "counts", "even", "inputs", "tokens"):
            setattr(merged, name, getattr(self, name) + getattr(other, name))
        return merged

    def result(self) -> DistanceFeatures:
        """Means over the inputs seen so far.

        Raises:
            ValueError: when a random half, or the whole, has seen no input.
        """
        if not self.inputs or not self.counts.all():
            raise ValueError("There are too few inputs for random halves of them; measure at least two.")
        means = self.halves / self.counts[:, None, None, None]
        estimate = self.all.estimate()
        drawn = np.isfinite(estimate.replicates).all((1, 2, 3))  # with few documents a replicate may hold none
        found = Estimate.of(estimate.value, estimate.replicates[drawn])
        return DistanceFeatures(found, means, self.even / self.inputs, self.inputs, self.tokens)


def random_halves(inputs: int, *, draws: int = 50, seed: int = 0) -> Bool[np.ndarray, "draw input"]:
    """Draws of half of the inputs, without replacement."""
    order = np.random.default_rng(seed).random((draws, inputs)).argsort(-1)
    return order < max(1, inputs // 2)


def measure(
    encoder: Encoder,
    inputs: Sequence[Input],
    *,
    documents: Sequence[int] | None = None,
    max_length: int = 128,
    draws: int = 50,
    batch_size: int = 16,
    seed: int = 0,
) -> DistanceFeatures:
    """The features of every head, over inputs cut to ``max_length`` tokens, in one pass with a progress bar.

    Args:
        documents: for each input the number of its document; default: each is one of its own.
        draws: number of random halves.
        seed: of the halves and of the bootstrap.
    """
    inputs = list(inputs)
    documents = list(range(len(inputs))) if documents is None else list(documents)
    halves = random_halves(len(inputs), draws=draws, seed=seed)
    accumulator = Accumulator(encoder, documents, halves, seed=seed)
    longest = min(max_length, encoder.max_length)
    batches = Batches(encoder, inputs, batch_size=batch_size, max_length=longest, overlong="truncate")
    attention.sweep(encoder, tqdm(batches, desc=f"{encoder.name}: {len(inputs)} inputs"), accumulator)
    return replace(accumulator.result(), truncated=batches.truncated)


def sample(items: Sequence[Any], limit: int, *, seed: int = 0) -> list[Any]:
    """At most ``limit`` of the items, drawn at random without replacement, in their order."""
    if limit >= len(items):
        return list(items)
    return [items[i] for i in sorted(np.random.default_rng(seed).choice(len(items), limit, replace=False))]


def measure_all(
    encoders: Mapping[str, Encoder], inputs: Sequence[Input], **options: Any
) -> dict[str, DistanceFeatures]:
    """:func:`measure` for several encoders on the same inputs, such as one encoder and what it was tuned to."""
    return {name: measure(encoder, inputs, **options) for name, encoder in encoders.items()}


# ---------------------------------------------------------------------------------------- clustering


TYPES = ("dense", "diagonal", "dense_vertical", "vertical")
"""Guan et al.'s four types."""

MASSES = ("near", "far", "special")


def masses(features: Float[np.ndarray, "*heads feature"]) -> Float[np.ndarray, "*heads 3"]:
    """The 21 numbers as three that sum to 1: near (self and window 1), far (windows 2 to 16), the special kinds."""
    near, far, special = np.split(features, (2, SPECIAL), axis=-1)
    return np.stack([near.sum(-1), far.sum(-1), special.sum(-1)], axis=-1)


@dataclass(frozen=True, eq=False)
class Clustering:
    """Heads in groups.

    Attributes:
        labels: [point], the group of each head, layer by layer.
        centroids: [group, feature], mean of each group.
    """

    labels: Int[np.ndarray, "point"]
    centroids: Float[np.ndarray, "group feature"]


STARTS, REFIT_STARTS = 100, 10
"""Random starts of k-means, of which the best counts: for a result, and for one of many refits."""

LEAST_HEADS = 2 * (len(TYPES) + 1)
"""Heads that the chapter needs: half of them are put into groups, and must be more than the groups."""


def refuse_small(encoder: Encoder) -> None:
    """Make sure that half of the heads can be put into as many groups as there are types.

    Raises:
        EncoderError: for fewer than :data:`LEAST_HEADS` heads.
    """
    if (count := encoder.layers * encoder.heads) < LEAST_HEADS:
        raise EncoderError(
            f"{encoder.name!r} has {count} heads in all. This chapter puts heads, and halves of them, into {len(TYPES)} groups, "
            f"for which it needs a model with at least {LEAST_HEADS} heads; chapter 14 names each head of yours by rule."
        )


def k_means(
    points: Float[np.ndarray, "point feature"], k: int = 4, *, seed: int = 0, starts: int = STARTS
) -> Clustering:
    """The grouping with the smallest squared distances to the group means, over many random starts.

    Raises:
        EncoderError: when there are no more heads than groups.
    """
    fitted = _fit(points, k, seed, starts)
    return Clustering(fitted.labels_.astype(np.int64), fitted.cluster_centers_.astype(np.float64))


@cache
def _threads() -> ThreadpoolController:
    """Kept, since looking for the libraries that have threads takes as long as a small k-means."""
    return ThreadpoolController()


def _fit(points: Float[np.ndarray, "point feature"], k: int, seed: int, starts: int) -> KMeans:
    if len(points) <= k:
        raise EncoderError(
            f"{len(points)} heads cannot be put into {k} groups; there must be more heads than groups."
        )
    with _threads().limit(limits=1):  # a few hundred numbers: threads would only get in each other's way
        return KMeans(k, n_init=starts, random_state=seed).fit(points)


def mixture(points: Float[np.ndarray, "point feature"], k: int = 4, *, seed: int = 0) -> Clustering:
    """A mixture of Gaussians with a variance of its own for each group and feature; each head to its likeliest group."""
    fitted = GaussianMixture(k, covariance_type="diag", n_init=REFIT_STARTS, random_state=seed).fit(points)
    return Clustering(fitted.predict(points).astype(np.int64), fitted.means_.astype(np.float64))


def agreement(a: Int[np.ndarray, "point"], b: Int[np.ndarray, "point"]) -> float:
    """Adjusted Rand index of two groupings: 1 when they are the same, 0 on average for unrelated ones."""
    return float(adjusted_rand_score(a, b))


def mixture_agreement(
    points: Float[np.ndarray, "point feature"], k: int, *, controls: int = 10, seed: int = 0
) -> dict[str, Estimate | float]:
    """Agreement of k-means with a Gaussian mixture for our heads and for invented ones, and with k-means of four groups.

    Returns:
        ``mixture``; ``control``, the mean over sets of invented heads (:func:`structureless`) with the interval in which
        95 % of them lie; ``four``.
    """

    def both(heads: Float[np.ndarray, "point feature"]) -> float:
        return agreement(k_means(heads, k, seed=seed).labels, mixture(heads, k, seed=seed).labels)

    chance = np.array([both(structureless(points, seed=seed + 1 + number)) for number in range(controls)])
    four = agreement(k_means(points, k, seed=seed).labels, k_means(points, len(TYPES), seed=seed).labels)
    return {"mixture": both(points), "control": Estimate.of(np.float64(chance.mean()), chance), "four": four}


def silhouette(points: Float[np.ndarray, "point feature"], labels: Int[np.ndarray, "point"]) -> float:
    """Mean silhouette of the heads (Rousseeuw 1987), from -1 to 1."""
    return float(silhouette_score(points, labels))


def matched(labels: Int[np.ndarray, "point"], reference: Int[np.ndarray, "point"]) -> Int[np.ndarray, "point"]:
    """The same groups, renumbered so that as many heads as possible have the number they have in ``reference``.

    The pairing is found by the Hungarian method on the table of shared heads.
    """
    size = int(max(labels.max(), reference.max())) + 1
    shared = np.zeros((size, size), np.int64)
    np.add.at(shared, (labels, reference), 1)
    return linear_sum_assignment(-shared)[1][labels]


# ---------------------------------------------------------------------------------------- naming


def prototypes(even: Float[np.ndarray, "feature"]) -> Float[np.ndarray, "type mass"]:
    """The three masses of a pure head of each of :data:`TYPES`.

    Dense: those of even attention; diagonal: all near; vertical: all on the special kinds; dense and vertical: half-way
    between the two.

    Args:
        even: what even attention gives each feature on the same texts (``DistanceFeatures.even``).
    """
    dense, near, special = masses(even), np.array([1.0, 0, 0]), np.array([0, 0, 1.0])
    return np.stack([dense, near, (dense + special) / 2, special])


def distances(
    features: Float[np.ndarray, "*heads feature"], even: Float[np.ndarray, "feature"]
) -> Float[np.ndarray, "*heads type"]:
    """Squared distance, in the three masses, to the prototype of each type."""
    return ((masses(features)[..., None, :] - prototypes(even)) ** 2).sum(-1)


def name_groups(
    centroids: Float[np.ndarray, "group feature"], even: Float[np.ndarray, "feature"]
) -> Int[np.ndarray, "group"]:
    """The type of each of four groups, as its number: one each, with the smallest sum of squared distances."""
    return linear_sum_assignment(distances(centroids, even))[1]


@dataclass(frozen=True, eq=False)
class Types:
    """A name for every head.

    Attributes:
        names: [layer, head], from :data:`TYPES`.
        centroids: [type, feature], in the order of :data:`TYPES`.
        fits: type -> whether the prototype of its name is also the one nearest to its centroid. Where it is not,
            the name was left over: the model has no such group.
    """

    names: np.ndarray
    centroids: Float[np.ndarray, "type feature"]
    fits: dict[str, bool]

    @property
    def shares(self) -> Float[np.ndarray, "type"]:
        """Share of heads of each type."""
        return np.array([(self.names == name).mean() for name in TYPES])

    @property
    def labels(self) -> Int[np.ndarray, "point"]:
        """Names as numbers, in the order of :data:`TYPES`, layer by layer."""
        return _numbers(self.names)

    def of(self, name: str) -> list[tuple[int, int]]:
        """The heads of a type, (layer, head) from 0."""
        return [(int(layer), int(head)) for layer, head in np.argwhere(self.names == name)]


def types(
    features: Float[np.ndarray, "layer head feature"],
    even: Float[np.ndarray, "feature"],
    *,
    seed: int = 0,
    starts: int = STARTS,
) -> Types:
    """K-means with four groups, each named after a prototype of its own."""
    found = k_means(points(features), len(TYPES), seed=seed, starts=starts)
    named = name_groups(found.centroids, even)
    centroids = found.centroids[named.argsort()]
    nearest = distances(centroids, even).argmin(-1)
    names = np.array(TYPES)[named[found.labels]].reshape(features.shape[:2])
    return Types(names, centroids, {name: bool(nearest[i] == i) for i, name in enumerate(TYPES)})


def by_rule(features: Float[np.ndarray, "layer head feature"], even: Float[np.ndarray, "feature"]) -> np.ndarray:
    """Each head named after the prototype nearest to it, with no clustering: the simple baseline, (layer, head)."""
    return np.array(TYPES)[distances(features, even).argmin(-1)]


def type_shares(found: DistanceFeatures, *, seed: int = 0) -> Estimate:
    """Share of heads of each type, (type,), clustered and named anew in every replicate of the bootstrap over documents."""
    with _threads().limit(limits=1):
        replicates = [types(one, found.even, seed=seed, starts=REFIT_STARTS).shares for one in found.all.replicates]
    return Estimate.of(types(found.all.value, found.even, seed=seed).shares, np.stack(replicates))


def retyped(
    measured: Mapping[str, Float[np.ndarray, "layer head feature"]], reference: Types, *, seed: int = 0
) -> dict[str, np.ndarray]:
    """The same heads clustered anew on each of several measurements: name -> type of each head, (layer, head).

    Groups are matched to those of the reference by the heads they share (:func:`matched`) and take over their names, so
    that what differs is the company a head keeps.

    Args:
        measured: features on other texts, or of other encoders of the same shape, such as task-tuned ones.

    Raises:
        ValueError: for features of another number of layers or heads.
    """
    found = {}
    for name, one in measured.items():
        if one.shape[:2] != reference.names.shape:
            raise ValueError(
                f"{name!r} has {one.shape[:2]} layers and heads, the reference {reference.names.shape}; only encoders "
                "of one shape have heads that correspond."
            )
        labels = matched(k_means(points(one), len(TYPES), seed=seed).labels, reference.labels)
        found[name] = np.array(TYPES)[labels].reshape(one.shape[:2])
    return found


def examples(
    features: Float[np.ndarray, "layer head feature"], types: Types, count: int = 2
) -> dict[str, list[tuple[int, int]]]:
    """For each type the heads nearest to its centroid, nearest first."""
    return {
        name: sorted(types.of(name), key=lambda head: float(((features[head] - centroid) ** 2).sum()))[:count]
        for name, centroid in zip(TYPES, types.centroids, strict=True)
    }


def embedding(points: Float[np.ndarray, "point feature"], *, seed: int = 0) -> Float[np.ndarray, "point 2"]:
    """Heads in the plane by t-SNE (van der Maaten & Hinton 2008): neighbours stay neighbours, distances mean little."""
    perplexity = min(15.0, (len(points) - 1) / 3)
    return TSNE(2, perplexity=perplexity, init="pca", method="exact", random_state=seed).fit_transform(points)


# ---------------------------------------------------------------------------------------- stability


REFITS = 10


def refits(
    samples: Sequence[Float[np.ndarray, "_ feature"]],
    whole: Float[np.ndarray, "point feature"],
    reference: Int[np.ndarray, "point"],
    *,
    seed: int = 0,
) -> Int[np.ndarray, "draw point"]:
    """K-means fitted on each sample and asked for the group of every head.

    Args:
        whole: the heads that are grouped.
        reference: their groups in a fit on all of them; says how many groups there are and how they are numbered.
    """
    k = int(reference.max()) + 1
    found = [_fit(sample, k, seed, REFIT_STARTS).predict(whole) for sample in samples]
    return np.stack([matched(labels.astype(np.int64), reference) for labels in found])


def half_heads(
    points: Float[np.ndarray, "point feature"], *, draws: int = 50, seed: int = 0
) -> list[Float[np.ndarray, "_ feature"]]:
    """Random halves of the heads themselves, to fit on."""
    return [points[half] for half in random_halves(len(points), draws=draws, seed=seed)]


def stability(labels: Int[np.ndarray, "draw point"], *, groups: int = 200, seed: int = 0) -> Estimate:
    """Share of heads on which ten refits agree: its mean over sets of ten drawn from all refits, and where 95 % of them lie."""
    rng = np.random.default_rng(seed)
    drawn = [labels[rng.choice(len(labels), min(REFITS, len(labels)), replace=False)] for _ in range(groups)]
    shares = np.array([(ten == ten[0]).all(0).mean() for ten in drawn])
    return Estimate.of(np.float64(shares.mean()), shares)


def structureless(points: Float[np.ndarray, "point feature"], *, seed: int = 0) -> Float[np.ndarray, "point feature"]:
    """As many invented heads from one Gaussian with the mean and covariance of the given ones: spread, but no groups."""
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(points.mean(0), np.cov(points.T), size=len(points), method="eigh")


def robustness(found: DistanceFeatures, k: int = 4, *, controls: int = 10, seed: int = 0) -> dict[str, Estimate]:
    """How good and how stable k groups are, beside the same for invented heads without groups.

    Returns:
        ``silhouette`` (interval over documents); ``inputs`` and ``heads``, the :func:`stability` when each refit sees a
        random half of the inputs, or of the heads; and each with ``_control``, the mean over invented heads
        (:func:`structureless`), with the interval in which 95 % of them lie.
    """
    real, halves = found.points, points(found.halves)
    noise = halves[:REFITS] - real  # what a half of the inputs changes; invented heads are given the same
    labels = k_means(real, k, seed=seed).labels
    few = points(found.all.replicates[:50])
    scores = [silhouette(p, k_means(p, k, seed=seed, starts=REFIT_STARTS).labels) for p in few]
    controls = [_control(structureless(real, seed=seed + 1 + n), noise, k, seed) for n in range(controls)]
    mean = np.mean(controls, axis=0)
    return {
        "silhouette": Estimate.of(np.float64(silhouette(real, labels)), np.array(scores)),
        "inputs": stability(refits(list(halves), real, labels, seed=seed), seed=seed),
        "heads": stability(
            refits(half_heads(real, draws=len(halves), seed=seed), real, labels, seed=seed), seed=seed
        ),
    } | {
        f"{name}_control": Estimate.of(mean[i], np.array(controls)[:, i])
        for i, name in enumerate(("silhouette", "inputs", "heads"))
    }


def _control(
    invented: Float[np.ndarray, "point feature"], noise: Float[np.ndarray, "draw point feature"], k: int, seed: int
) -> list[float]:
    """Silhouette and both stabilities (ten refits each) of one set of invented heads."""
    labels = k_means(invented, k, seed=seed, starts=REFIT_STARTS).labels
    parts = list(invented + noise), half_heads(invented, draws=REFITS, seed=seed)
    agreed = [stability(refits(part, invented, labels, seed=seed), groups=1) for part in parts]
    return [silhouette(invented, labels), *(float(a.value) for a in agreed)]


def stacked(estimates: Sequence[Estimate]) -> Estimate:
    """Single estimates as one, with a first axis; replicates are left out."""
    value, low, high = (np.array([getattr(one, name) for one in estimates]) for name in ("value", "low", "high"))
    return Estimate(value, low, high, np.empty((0, len(value))))


# ---------------------------------------------------------------------------------------- recording


def as_dict(found: DistanceFeatures, types: Types, *, seed: int = 0) -> dict[str, Any]:
    """The features and types of an encoder's heads, for recording: names of types as text, (layer, head)."""
    rule = by_rule(found.all.value, found.even)
    return {
        "feature_names": FEATURES,
        "features": found.all,
        "even": found.even,
        "types": types.names,
        "fits": types.fits,
        "centroids": dict(zip(TYPES, types.centroids, strict=True)),
        "masses": dict(zip(TYPES, masses(types.centroids), strict=True)),
        "shares": by_type(type_shares(found, seed=seed)),
        "rule": {"types": rule, "agreement": agreement(_numbers(rule), types.labels)},
        "inputs": found.inputs,
        "tokens": found.tokens,
        "truncated": found.truncated,
    }


def by_type(shares: Estimate) -> dict[str, Estimate]:
    """Shares (type,) as type -> share."""
    return {name: shares[i] for i, name in enumerate(TYPES)}


def _numbers(names: np.ndarray) -> Int[np.ndarray, "point"]:
    return np.array([TYPES.index(name) for name in names.ravel()])
