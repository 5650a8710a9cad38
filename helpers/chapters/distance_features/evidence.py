"""Whether groups of heads are there at all: heads invented without groups, other scales of the 21 numbers, other samples."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from helpers.chapters.distance_features.clusters import (
    REFIT_STARTS,
    TYPES,
    Clustering,
    Labels,
    Points,
    agreement,
    k_means,
    matched,
    mixture,
    silhouette,
    squared_gaps,
)
from helpers.chapters.distance_features.measures import DistanceFeatures, points, random_halves
from helpers.stats import Estimate

REFITS, CONTROLS, CROWDS = 10, 20, 50
"""Refits that have to agree on a head; sets of invented heads that ours are compared with, where each is refitted and where not."""

LEAST = 1e-6  # stands for an empty feature where logarithms are taken


def structureless(points: Points, *, seed: int = 0) -> Points:
    """As many invented heads from one cloud without groups, each of 21 shares that sum to 1, as those of a head are.

    A logistic-normal distribution (Aitchison 1982): logarithms of the shares, less their mean over the features, are Gaussian, with
    the mean and the covariance of the given heads'. (A Gaussian of the shares themselves invents heads with negative shares.)
    """
    logs = np.log(points.clip(LEAST))
    logs -= logs.mean(1, keepdims=True)
    rng = np.random.default_rng(seed)
    drawn = rng.multivariate_normal(logs.mean(0), np.cov(logs.T), size=len(logs), method="eigh")
    return softmax(drawn, axis=1)


def crowds(points: Points, count: int, *, seed: int = 0) -> Float[np.ndarray, "crowd point feature"]:
    """Several sets of invented heads (:func:`structureless`)."""
    return np.stack([structureless(points, seed=seed + 1 + n) for n in range(count)])


SCALES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "as they are": lambda x: x,
    "standardised": lambda x: (x - x.mean(-2, keepdims=True)) / np.maximum(x.std(-2, keepdims=True), LEAST),
    "square roots": lambda x: np.sqrt(np.maximum(x, 0)),
}
"""Ways to weigh the 21 numbers before distances between heads are taken: a feature counts by its variance, all count the same
(each divided by its standard deviation over the heads), or as in Hellinger's distance between distributions."""


def variances(points: Float[np.ndarray, "*sample point feature"]) -> dict[str, Float[np.ndarray, "*sample feature"]]:
    """Share of each feature in the variance over heads, on each of :data:`SCALES`: how much it counts in k-means."""
    found = {name: scaled(points).var(-2) for name, scaled in SCALES.items()}
    return {name: one / one.sum(-1, keepdims=True) for name, one in found.items()}


def two_largest(found: DistanceFeatures) -> Estimate:
    """The share of the variance over heads that the two features with most of it hold together."""
    return found.all.map(lambda x: np.sort(variances(points(x))["as they are"])[..., -2:].sum(-1))


def inertia(
    points: Float[np.ndarray, "*sample point feature"], found: Clustering | None = None
) -> Float[np.ndarray, "*sample"] | np.float64:
    """Mean squared distance of a head from the mean of its group; without groups, of all heads."""
    if found is None:
        return points.var(-2).sum(-1)
    means = np.take_along_axis(found.centroids, found.labels[..., None], -2)
    return ((points - means) ** 2).sum(-1).mean(-1)


def gap(ours: Float[np.ndarray, "k"], invented: Float[np.ndarray, "crowd k"]) -> int:
    """The number of groups by the gap statistic (Tibshirani et al. 2001): the smallest k whose gap is within one error of the next.

    A gap is how much smaller the logarithm of our inertia is than that of heads without groups.

    Args:
        ours, invented: :func:`inertia` of the k groups of k-means, for k = 1, 2, …
    """
    logs = np.log(invented)
    gaps = logs.mean(0) - np.log(ours)
    errors = logs.std(0) * np.sqrt(1 + 1 / len(logs))
    enough = gaps[:-1] >= gaps[1:] - errors[1:]
    return int(enough.argmax()) + 1 if enough.any() else len(ours)


def by_scale(points: Points, ks: Sequence[int], *, seed: int = 0) -> dict[str, dict[str, Any]]:
    """What the groups owe to how the 21 numbers are weighed: k-means on each of :data:`SCALES`, beside invented heads.

    Returns:
        Scale -> ``silhouette`` (k -> a number), ``control`` (k -> the mean over sets of invented heads, with the interval in which
        95 % of them lie), ``excess`` (k -> ours minus theirs, likewise), ``groups`` (:func:`gap`), ``four`` (adjusted Rand index of four groups
        with four groups of the numbers as they are), ``mixture`` and ``mixture_control`` (of k-means with a mixture of Gaussians, on this scale).
    """
    invented, plain = crowds(points, CROWDS, seed=seed), k_means(points, len(TYPES), seed=seed).labels
    return {name: _on_scale(scaled(points), scaled(invented), plain, ks, seed) for name, scaled in SCALES.items()}


def _on_scale(
    ours: Points, invented: Float[np.ndarray, "crowd point feature"], plain: Labels, ks: Sequence[int], seed: int
) -> dict[str, Any]:
    sizes = range(2, max(ks) + 1)
    groups = {k: k_means(invented, k, seed=seed, starts=REFIT_STARTS) for k in sizes}
    found: dict[str, Any] = {"silhouette": {}, "control": {}, "excess": {}}
    for k in ks:
        chance = silhouette(invented, groups[k].labels)
        value = float(silhouette(ours, k_means(ours, k, seed=seed).labels))
        found["silhouette"][k] = value
        found["control"][k] = Estimate.of(np.float64(chance.mean()), chance)
        found["excess"][k] = Estimate.of(np.float64(value - chance.mean()), value - chance)
    own = {k: k_means(ours, k, seed=seed, starts=REFIT_STARTS) for k in sizes}
    spreads = ([inertia(x), *(inertia(x, one[k]) for k in sizes)] for x, one in ((ours, own), (invented, groups)))
    found["groups"] = gap(*(np.stack(one, axis=-1) for one in spreads))
    found["four"] = agreement(k_means(ours, len(TYPES), seed=seed).labels, plain)
    found["mixture"] = _mixed(ours, own[len(TYPES)].labels, seed)
    four = zip(invented[:CONTROLS], groups[len(TYPES)].labels, strict=False)
    chance = np.array([_mixed(one, labels, seed) for one, labels in four])
    return found | {"mixture_control": Estimate.of(np.float64(chance.mean()), chance)}


def _mixed(points: Points, labels: Labels, seed: int) -> float:
    """Agreement of four groups with those of a mixture of Gaussians."""
    return agreement(labels, mixture(points, len(TYPES), seed=seed).labels)


def refits(
    samples: Float[np.ndarray, "*crowd draw _ feature"],
    whole: Float[np.ndarray, "*crowd point feature"],
    reference: Int[np.ndarray, "*crowd point"],
    *,
    seed: int = 0,
) -> Int[np.ndarray, "*crowd draw point"]:
    """K-means fitted on each sample and asked for the group of every head.

    Args:
        whole: the heads that are grouped; one set of heads, or several.
        reference: their groups in a fit on all of them; says how many groups there are and how they are numbered.
    """
    means = k_means(samples, int(reference.max()) + 1, seed=seed, starts=REFIT_STARTS).centroids
    flat = whole.reshape(-1, *whole.shape[-2:])
    nearest = squared_gaps(flat, means.reshape(len(flat), -1, *means.shape[-2:])).argmin(2)
    known = reference.reshape(len(flat), -1)
    found = [[matched(one, old) for one in labels] for labels, old in zip(nearest, known, strict=True)]
    return np.array(found).reshape(*samples.shape[:-2], whole.shape[-2])


def half_heads(points: Points, *, draws: int = 50, seed: int = 0) -> Float[np.ndarray, "draw _ feature"]:
    """Random halves of the heads themselves, to fit on."""
    return np.stack([points[half] for half in random_halves(len(points), draws=draws, seed=seed)])


def stability(labels: Int[np.ndarray, "draw point"], *, groups: int = 200, seed: int = 0) -> Estimate:
    """Share of heads on which ten refits agree: its mean over sets of ten drawn from all refits, and where 95 % of them lie."""
    rng = np.random.default_rng(seed)
    drawn = [labels[rng.choice(len(labels), min(REFITS, len(labels)), replace=False)] for _ in range(groups)]
    shares = np.array([(ten == ten[0]).all(0).mean() for ten in drawn])
    return Estimate.of(np.float64(shares.mean()), shares)


def robustness(found: DistanceFeatures, k: int = 4, *, seed: int = 0) -> dict[str, Estimate]:
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
    scores = silhouette(few, k_means(few, k, seed=seed, starts=REFIT_STARTS).labels)
    controls = _controls(crowds(real, CONTROLS, seed=seed), noise, k, seed)
    found = {"silhouette": Estimate.of(np.float64(silhouette(real, labels)), scores, found.all.units)}
    for name, samples in {"inputs": halves, "heads": half_heads(real, draws=len(halves), seed=seed)}.items():
        found[name] = stability(refits(samples, real, labels, seed=seed), seed=seed)
    invented = zip(found, controls, strict=True)
    return found | {f"{name}_control": Estimate.of(each.mean(), each) for name, each in invented}


def _controls(
    invented: Float[np.ndarray, "crowd point feature"],
    noise: Float[np.ndarray, "draw point feature"],
    k: int,
    seed: int,
) -> list[Float[np.ndarray, "crowd"]]:
    """Silhouette and both stabilities (ten refits each) of sets of invented heads."""
    labels = k_means(invented, k, seed=seed, starts=REFIT_STARTS).labels
    parts = invented[:, None] + noise, np.stack([half_heads(one, draws=REFITS, seed=seed) for one in invented])
    agreed = (refits(part, invented, labels, seed=seed) for part in parts)
    return [silhouette(invented, labels), *((ten == ten[:, :1]).all(1).mean(-1) for ten in agreed)]


def changed(
    one: DistanceFeatures, others: Mapping[str, DistanceFeatures], reference: Labels, *, seed: int = 0
) -> dict[str, Estimate]:
    """Share of heads that are in another group in each of several measurements than in one, clustered anew in every replicate.

    Args:
        one, others: of encoders of one shape; where both are of the same texts, the interval is paired.
        reference: groups that those of all are matched with.
    """

    def labels(found: DistanceFeatures) -> tuple[Labels, Int[np.ndarray, "draw point"]]:
        drawn = k_means(points(found.all.replicates), len(TYPES), seed=seed, starts=REFIT_STARTS).labels
        whole = k_means(found.points, len(TYPES), seed=seed).labels
        return matched(whole, reference), np.stack([matched(each, reference) for each in drawn])

    def share(other: DistanceFeatures) -> Estimate:
        second, others = labels(other)
        size = min(len(drawn), len(others))
        known = [found.all.units for found in (one, other) if found.all.units is not None]
        units = min((int(np.min(found)) for found in known), default=size)
        return Estimate.of((first != second).mean(), (drawn[:size] != others[:size]).mean(-1), units)

    first, drawn = labels(one)
    return {name: share(other) for name, other in others.items()}
