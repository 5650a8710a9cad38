"""Heads in groups by their distance features: k-means, and what the groups are called."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture

from helpers.chapters.distance_features.measures import FEATURES, SPECIAL, DistanceFeatures, points
from helpers.encoders import Encoder, EncoderError
from helpers.plots import group_names
from helpers.stats import Estimate

Features = Float[np.ndarray, "feature"]
Points = Float[np.ndarray, "point feature"]
Grid = Float[np.ndarray, "layer head feature"]
Labels = Int[np.ndarray, "point"]
"""The numbers of one head, of all heads in a row, of all heads by layer; and the group of each head in a row."""

TYPES = ("dense", "diagonal", "dense_vertical", "vertical")
"""Guan et al.'s four types. In arrays and records a group has the key of the type that it stands for, also where it is called otherwise."""

MASSES = ("near", "far", "special")


def masses(features: Float[np.ndarray, "*heads feature"]) -> Float[np.ndarray, "*heads 3"]:
    """The 21 numbers as three that sum to 1: near (self and window 1), far (windows 2 to 16), the special kinds."""
    near, far, special = np.split(features, (2, SPECIAL), axis=-1)
    return np.stack([near.sum(-1), far.sum(-1), special.sum(-1)], axis=-1)


@dataclass(frozen=True, eq=False)
class Clustering:
    """Heads in groups.

    Attributes:
        labels: [..., point], the group of each head, layer by layer.
        centroids: [..., group, feature], mean of each group.
    """

    labels: Int[np.ndarray, "... point"]
    centroids: Float[np.ndarray, "... group feature"]


STARTS, REFIT_STARTS = 100, 10
"""Random starts of k-means, of which the best counts: for a result, and for one of many refits."""

AT_ONCE = 20_000  # starts × heads that go on side by side, so that they stay in the processor's cache
MOST_STEPS, TOLERANCE = 300, 1e-4  # scikit-learn's: steps, and when the means stand still, as a share of the variance

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
    points: Float[np.ndarray, "*sample point feature"], k: int = 4, *, seed: int = 0, starts: int = STARTS
) -> Clustering:
    """The grouping with the smallest squared distances to the group means, over many random starts.

    For one sample of heads, or for each of many samples of equally many. All starts go on side by side, from the draws and by the
    rules of scikit-learn's ``KMeans(k, n_init=starts, random_state=seed)``, which finds the same groups, one start at a time.

    Raises:
        EncoderError: when there are no more heads than groups.
    """
    *samples, count, width = points.shape
    if count <= k:
        raise EncoderError(f"{count} heads cannot be put into {k} groups; there must be more heads than groups.")
    each = max(1, AT_ONCE // (starts * count))
    flat = points.reshape(-1, count, width)
    parts = [_lloyd(flat[first : first + each], k, seed, starts) for first in range(0, len(flat), each)]
    labels, centroids = map(np.concatenate, zip(*parts, strict=True))
    return Clustering(labels.reshape(*samples, count), centroids.reshape(*samples, k, width))


def _lloyd(
    points: Float[np.ndarray, "sample point feature"], k: int, seed: int, starts: int
) -> tuple[Int[np.ndarray, "sample point"], Float[np.ndarray, "sample group feature"]]:
    """Labels and centroids of each sample's best start: nearest mean, new means, until nothing moves."""
    middle = points.mean(1, keepdims=True)
    x, samples = points - middle, np.arange(len(points))
    still = TOLERANCE * x.var(1).mean(-1)[:, None]
    means = _seeds(x, k, seed, starts)
    moving, empty = np.ones(means.shape[:2], bool), np.zeros(len(x), bool)
    labels = np.full((*means.shape[:2], x.shape[1]), -1)
    for _ in range(MOST_STEPS):
        left = np.flatnonzero(moving.any(1))  # samples of which a start still moves
        if not len(left):
            break
        old, nearest = means[left], squared_gaps(x[left], means[left]).argmin(2)
        member = nearest[:, :, None] == np.arange(k)[:, None]  # [sample, start, group, point]
        sizes = member.sum(-1)[..., None]
        sums = member.reshape(len(left), -1, x.shape[1]).astype(float) @ x[left]
        means[left] = np.where(moving[left][..., None, None], sums.reshape(old.shape) / np.maximum(sizes, 1), old)
        empty[left] |= (moving[left] & (sizes == 0).any((2, 3))).any(1)
        moving[left] &= ((means[left] - old) ** 2).sum((2, 3)) > still[left]
        moving[left] &= (nearest != labels[left]).any(-1)
        labels[left] = nearest
    gaps = squared_gaps(x, means)
    best = gaps.min(2).sum(-1).argmin(-1)
    found, centroids = gaps.argmin(2)[samples, best], means[samples, best] + middle
    for n in np.flatnonzero(
        empty
    ):  # a start left a group without heads, as among equal heads: the library's rule for that
        fitted = KMeans(k, n_init=starts, random_state=seed).fit(points[n])
        found[n], centroids[n] = fitted.labels_, fitted.cluster_centers_
    return found, centroids


def squared_gaps(
    x: Float[np.ndarray, "sample point feature"], means: Float[np.ndarray, "sample start group feature"]
) -> Float[np.ndarray, "sample start group point"]:
    """Squared distances from the means, each less what is the same for all means: the point's own square."""
    flat = means.reshape(len(x), -1, x.shape[-1])
    found = (flat**2).sum(-1, keepdims=True) - 2 * flat @ x.transpose(0, 2, 1)
    return found.reshape(*means.shape[:3], x.shape[1])


def _seeds(
    x: Float[np.ndarray, "sample point feature"], k: int, seed: int, starts: int
) -> Float[np.ndarray, "sample start group feature"]:
    """First means by k-means++ (Arthur & Vassilvitskii 2007): far points are likely, and the best of a few draws counts."""
    count, tries = x.shape[1], 2 + int(np.log(k))
    random = np.random.RandomState(seed).random_sample((starts, 1 + (k - 1) * tries))
    squares = np.stack([cdist(one, one, "sqeuclidean") for one in x])
    samples, even = np.arange(len(x))[:, None], np.full(count, 1 / count).cumsum()
    first = np.searchsorted(even / even[-1], random[:, 0], side="right")
    chosen = [np.broadcast_to(first, (len(x), starts))]
    left = squares[samples, chosen[0]]  # [sample, start, point], squared distance from the nearest mean so far
    for drawn in np.split(random[:, 1:], k - 1, axis=1):
        wanted = drawn * left.sum(-1, keepdims=True)
        tried = (left.cumsum(-1)[:, :, None] < wanted[..., None]).sum(-1).clip(max=count - 1)  # [sample, start, try]
        after = np.minimum(left[:, :, None], squares[samples[..., None], tried])
        best = after.sum(-1).argmin(-1)[..., None]
        chosen.append(np.take_along_axis(tried, best, -1)[..., 0])
        left = np.take_along_axis(after, best[..., None], 2)[:, :, 0]
    return x[samples[..., None], np.stack(chosen, -1)]


def mixture(points: Points, k: int = 4, *, seed: int = 0) -> Clustering:
    """A mixture of Gaussians with a variance of its own for each group and feature; each head to its likeliest group."""
    fitted = GaussianMixture(k, covariance_type="diag", n_init=REFIT_STARTS, random_state=seed).fit(points)
    return Clustering(fitted.predict(points).astype(np.int64), fitted.means_.astype(np.float64))


def agreement(a: Labels, b: Labels) -> float:
    """Adjusted Rand index of two groupings: 1 when they are the same, 0 on average for unrelated ones."""
    return float(adjusted_rand_score(a, b))


def silhouette(
    points: Float[np.ndarray, "*sample point feature"], labels: Int[np.ndarray, "*sample point"]
) -> Float[np.ndarray, "*sample"] | np.float64:
    """Mean silhouette of the heads (Rousseeuw 1987), from -1 to 1: for one sample of heads, or for each of many.

    A head's is (b - a) / max(a, b), with its mean distances a from the others of its group and b from the heads of the
    group that is next; 0 for a head that is alone in its group.

    Raises:
        ValueError: when all heads of a sample are in one group.
    """
    *samples, count, width = points.shape
    pairs = zip(points.reshape(-1, count, width), labels.reshape(-1, count), strict=True)
    return np.array([silhouette_score(*pair) for pair in pairs]).reshape(samples)[()]


def matched(labels: Labels, reference: Labels) -> Labels:
    """The same groups, renumbered so that as many heads as possible have the number they have in ``reference``.

    The pairing is found by the Hungarian method on the table of shared heads.
    """
    size = int(max(labels.max(), reference.max())) + 1
    shared = np.zeros((size, size), np.int64)
    np.add.at(shared, (labels, reference), 1)
    return linear_sum_assignment(-shared)[1][labels]


def over_k(points: Points, ks: Sequence[int], reference: Labels, *, seed: int = 0) -> Int[np.ndarray, "number point"]:
    """The group of every head when k groups are asked for, for each k; a group has the number of the group of ``reference`` it resembles."""
    return np.stack([matched(k_means(points, k, seed=seed).labels, reference) for k in ks])


def prototypes(even: Features) -> Float[np.ndarray, "type mass"]:
    """The three masses of a pure head of each of :data:`TYPES`.

    Dense: those of even attention; diagonal: all near; vertical: all on the special kinds; dense and vertical: half-way
    between the two.

    Args:
        even: what even attention gives each feature on the same texts (``DistanceFeatures.even``).
    """
    dense, near, special = masses(even), np.array([1.0, 0, 0]), np.array([0, 0, 1.0])
    return np.stack([dense, near, (dense + special) / 2, special])


def distances(features: Float[np.ndarray, "*heads feature"], even: Features) -> Float[np.ndarray, "*heads type"]:
    """Squared distance, in the three masses, to the prototype of each type."""
    return ((masses(features)[..., None, :] - prototypes(even)) ** 2).sum(-1)


def name_groups(centroids: Float[np.ndarray, "group feature"], even: Features) -> Int[np.ndarray, "group"]:
    """The type of each of four groups, as its number: one each, with the smallest sum of squared distances."""
    return linear_sum_assignment(distances(centroids, even))[1]


@dataclass(frozen=True, eq=False)
class Types:
    """A group for every head; each group stands for one of the four types, and is called after it if it fits.

    Attributes:
        names: [layer, head], from :data:`TYPES`: the type that the head's group stands for.
        centroids: [type, feature], in the order of :data:`TYPES`.
        fits: type -> whether its prototype is also the one nearest to its centroid. Where it is not, the type was left over:
            the model has no such group, and the group is called by its number (``called``).
    """

    names: np.ndarray
    centroids: Float[np.ndarray, "type feature"]
    fits: dict[str, bool]

    @property
    def called(self) -> dict[str, str]:
        """Type -> what the group that stands for it is called, in words."""
        return group_names(self.fits)

    @property
    def shares(self) -> Float[np.ndarray, "type"]:
        """Share of heads of each type."""
        return np.array([(self.names == name).mean() for name in TYPES])

    @property
    def labels(self) -> Labels:
        """Names as numbers, in the order of :data:`TYPES`, layer by layer."""
        return _numbers(self.names)

    def of(self, name: str) -> list[tuple[int, int]]:
        """The heads of a type, (layer, head) from 0."""
        return [(int(layer), int(head)) for layer, head in np.argwhere(self.names == name)]


def types(features: Grid, even: Features, *, seed: int = 0) -> Types:
    """K-means with four groups, each standing for a type of its own."""
    found = k_means(points(features), len(TYPES), seed=seed)
    named = name_groups(found.centroids, even)
    centroids = found.centroids[named.argsort()]
    nearest = distances(centroids, even).argmin(-1)
    names = np.array(TYPES)[named[found.labels]].reshape(features.shape[:2])
    return Types(names, centroids, {name: bool(nearest[i] == i) for i, name in enumerate(TYPES)})


def by_rule(features: Float[np.ndarray, "*heads feature"], even: Features) -> np.ndarray:
    """Each head named after the prototype nearest to it, with no clustering: the simple baseline, ``(*heads)``."""
    return np.array(TYPES)[distances(features, even).argmin(-1)]


def type_shares(found: DistanceFeatures, *, seed: int = 0) -> Estimate:
    """Share of heads of each type, (type,), clustered and named anew in every replicate of the bootstrap over documents."""
    drawn = k_means(points(found.all.replicates), len(TYPES), seed=seed, starts=REFIT_STARTS)
    named = [name_groups(c, found.even)[labels] for labels, c in zip(drawn.labels, drawn.centroids, strict=True)]
    shares = [np.bincount(labels, minlength=len(TYPES)) / len(labels) for labels in named]
    return Estimate.of(types(found.all.value, found.even, seed=seed).shares, np.stack(shares), found.all.units)


def retyped(measured: Mapping[str, Grid], reference: Types, *, seed: int = 0) -> dict[str, np.ndarray]:
    """The same heads clustered anew on each of several measurements: name -> type of each head, (layer, head).

    Groups are matched to those of the reference by the heads they share (:func:`matched`) and take over their names, so
    that what differs is the company a head keeps.

    Args:
        measured: features on other texts, or of other encoders of the same shape, such as task-tuned ones.

    Raises:
        ValueError: for features of another number of layers or heads.
    """
    for name, one in measured.items():
        if one.shape[:2] != reference.names.shape:
            raise ValueError(
                f"{name!r} has {one.shape[:2]} layers and heads, the reference {reference.names.shape}; only encoders "
                "of one shape have heads that correspond."
            )
    labels = k_means(points(np.stack(list(measured.values()))), len(TYPES), seed=seed).labels
    renumbered = [np.array(TYPES)[matched(one, reference.labels)] for one in labels]
    return {name: one.reshape(reference.names.shape) for name, one in zip(measured, renumbered, strict=True)}


def examples(features: Grid, types: Types, count: int = 2) -> dict[str, list[tuple[int, int]]]:
    """For each type the heads nearest to its centroid, nearest first."""
    return {
        name: sorted(types.of(name), key=lambda head: float(((features[head] - centroid) ** 2).sum()))[:count]
        for name, centroid in zip(TYPES, types.centroids, strict=True)
    }


def embedding(points: Points, *, seed: int = 0) -> Float[np.ndarray, "point 2"]:
    """Heads in the plane by t-SNE (van der Maaten & Hinton 2008): neighbours stay neighbours, distances mean little."""
    perplexity = min(15.0, (len(points) - 1) / 3)
    return TSNE(2, perplexity=perplexity, init="pca", method="exact", random_state=seed).fit_transform(points)


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


def _numbers(names: np.ndarray) -> Labels:
    return np.array([TYPES.index(name) for name in names.ravel()])
