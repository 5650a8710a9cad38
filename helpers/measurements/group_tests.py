"""Whether groups of heads are there (chapter 08): how stable and how clear they are beside heads invented without groups, and which heads change theirs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture

from helpers.measurements import head_types
from helpers.measurements.head_types import REFIT_STARTS, STARTS, DistanceFeatures, k_means, matched, points
from helpers.results import Run
from helpers.stats import Estimate

Heads = Float[np.ndarray, "head feature"]
Sets = Float[np.ndarray, "set head feature"]
Samples = Float[np.ndarray, "draw sample feature"]
Refits = Int[np.ndarray, "refit head"]
"""The numbers of all heads; of the heads of several sets; of some or all heads in several draws; the group of each head in each refit."""

REFITS = 10  # as in the paper: a head is stable if so many refits put it into the same group
DRAWS = 50  # halves of the heads, from which ten are drawn again and again


def refits(samples: Samples, heads: Heads, k: int = 4, *, starts: int = STARTS, seed: int = 0) -> Refits:
    """The group of each head by a fit on each sample, numbered like the groups of the heads themselves."""
    whole = k_means(heads, k, seed=seed, starts=starts).labels
    means = k_means(samples, k, seed=seed, starts=REFIT_STARTS).centroids
    nearest = ((heads[:, None] - means[:, None]) ** 2).sum(-1).argmin(-1)
    return np.stack([matched(labels, whole) for labels in nearest])


def refits_on_heads(heads: Heads, k: int, draws: int, *, starts: int = STARTS, seed: int = 0) -> Refits:
    """The same by fits on random halves of the heads."""
    order = np.random.default_rng(seed).random((DRAWS, len(heads))).argsort(-1)
    halves = order[:draws] < max(1, len(heads) // 2)
    return refits(np.stack([heads[half] for half in halves]), heads, k, starts=starts, seed=seed)


def agreement(labels: Refits, seed: int = 0) -> Float[np.ndarray, "200"]:
    """The share of heads that ten of the refits agree on, for 200 draws of ten."""
    rng, count = np.random.default_rng(seed), min(REFITS, len(labels))
    draws = [rng.choice(len(labels), count, replace=False) for _ in range(200)]
    return np.array([np.ptp(labels[ten], 0) == 0 for ten in draws]).mean(-1)


def silhouettes(sets: Sets, k: int = 4, *, starts: int = REFIT_STARTS, seed: int = 0) -> Float[np.ndarray, "set"]:
    """How clear k groups are in each set of heads."""
    labels = k_means(sets, k, seed=seed, starts=starts).labels
    return np.array([silhouette_score(*pair) for pair in zip(sets, labels, strict=True)])


def stability_of_invented(invented: Sets, noise: Samples, k: int = 4, seed: int = 0) -> Float[np.ndarray, "set"]:
    """For each invented set the share of its heads that a refit with each noise agrees on."""
    each = (refits(heads + noise, heads, k, starts=REFIT_STARTS, seed=seed) for heads in invented)
    return np.array([(np.ptp(labels, 0) == 0).mean() for labels in each])


def compare(heads: Heads, halves: Samples, invented: Sets, k: int = 4, *, seed: int = 0) -> list[dict[str, Estimate]]:
    """Stability over halves of the texts and of the heads, and silhouette, of k groups: of the heads, and of invented sets.

    Args:
        halves: the heads, measured on random halves of the texts.
        invented: sets without groups, to which the first ten of these halves lend their noise.
    """
    noise = (halves - heads)[:REFITS]
    real = {
        "stability": agreement(refits(halves, heads, k, seed=seed), seed),
        "stability_over_heads": agreement(refits_on_heads(heads, k, DRAWS, seed=seed), seed),
        "silhouette": silhouettes(heads[None], k, starts=STARTS, seed=seed),
    }
    over_heads = [refits_on_heads(crowd, k, REFITS, starts=REFIT_STARTS, seed=seed) for crowd in invented]
    chance = {
        "stability": stability_of_invented(invented, noise, k, seed),
        "stability_over_heads": (np.ptp(over_heads, 1) == 0).mean(-1),
        "silhouette": silhouettes(invented, k, seed=seed),
    }
    return [{name: Estimate.of(x.mean(), x) for name, x in part.items()} for part in (real, chance)]


def shrunk(invented: Sets, heads: Heads) -> Sets:
    """Invented heads whose logarithms are drawn towards their mean until, on average, they vary as much as the heads."""
    logs = np.log(invented)
    middle = logs.mean(1, keepdims=True)

    def drawn(by: float) -> Sets:
        return softmax(middle + by * (logs - middle), axis=-1)

    return drawn(brentq(lambda by: drawn(by).var(1).sum(-1).mean() - heads.var(0).sum(), 0.01, 10))


# Other scales of the numbers, and other yardsticks


def standardise(heads: Float[np.ndarray, "*sets head feature"]) -> Float[np.ndarray, "*sets head feature"]:
    """Each number divided by its standard deviation over the heads."""
    spread = heads.std(-2, keepdims=True).clip(1e-6)
    return (heads - heads.mean(-2, keepdims=True)) / spread


def square_roots(heads: Float[np.ndarray, "*sets head feature"]) -> Float[np.ndarray, "*sets head feature"]:
    """Scales on which all numbers count the same, or more alike than they do."""
    return np.sqrt(heads.clip(0))


SCALES = {"as they are": np.asarray, "standardised": standardise, "square roots": square_roots}


def inertia(sets: Sets, k: int, seed: int = 0) -> Float[np.ndarray, "set"]:
    """Mean squared distance of the heads of each set from the mean of their group."""
    fits = [KMeans(k, n_init=REFIT_STARTS, random_state=seed).fit(heads) for heads in sets]
    return np.array([fit.inertia_ for fit in fits]) / sets.shape[1]


def gap_groups(heads: Heads, invented: Sets, most: int = 6, seed: int = 0) -> int:
    """How many groups the gap statistic (Tibshirani et al. 2001) finds, with invented heads in place of their even box."""
    sizes = range(1, most + 1)
    ours = np.log([inertia(heads[None], k, seed)[0] for k in sizes])
    logs = np.log([inertia(invented, k, seed) for k in sizes])
    gaps = logs.mean(1) - ours
    errors = logs.std(1) * np.sqrt(1 + 1 / len(invented))
    enough = gaps[:-1] >= gaps[1:] - errors[1:]
    return int(enough.argmax()) + 1 if enough.any() else most


def mixture_agreement(heads: Heads, seed: int = 0) -> float:
    """Adjusted Rand index of k-means with a mixture of Gaussians, four groups each."""
    groups = k_means(heads, seed=seed, starts=REFIT_STARTS).labels
    mixture = GaussianMixture(4, covariance_type="diag", n_init=10, random_state=seed).fit(heads)
    return adjusted_rand_score(groups, mixture.predict(heads))


# Which heads change their group


def clustered_anew(measured: DistanceFeatures, reference: head_types.Labels, seed: int = 0) -> Refits:
    """The group of each head in a clustering of its own, as measured and in each replicate of the bootstrap."""
    whole = k_means(measured.points, seed=seed).labels
    drawn = k_means(points(measured.all.replicates), seed=seed, starts=REFIT_STARTS).labels
    return np.stack([matched(labels, reference) for labels in (whole, *drawn)])


def sorted_into(measured: DistanceFeatures, means: Float[np.ndarray, "group feature"]) -> Refits:
    """The group whose mean each head is nearest to, as measured and in each replicate."""
    sets = np.stack([measured.points, *points(measured.all.replicates)])
    return ((sets[:, :, None] - means) ** 2).sum(-1).argmin(-1)


def changed(before: Refits, after: Refits, units: int) -> Estimate:
    """The share of heads in another group, with its interval over documents."""
    count = min(len(before), len(after))
    share = (before[:count] != after[:count]).mean(-1)
    return Estimate.of(share[0], share[1:], units)


# Records


def record(run: Run, real: Mapping[str, Estimate], chance: Mapping[str, Estimate], **columns: Any) -> None:
    """What :func:`compare` finds, of real heads and of invented ones."""
    for quantity, number in real.items():
        number = number.value if quantity == "silhouette" else number
        run.number(quantity, number, control=chance[quantity], **{"against": "invented heads"} | columns)
        run.number(f"{quantity}_invented", chance[quantity], **{"against": ""} | columns)


def record_scales(run: Run, heads: Heads, invented: Sets, most: int, seed: int = 0) -> None:
    """Silhouette, gap statistic and mixture on each of the three scales, of four groups or of up to ``most``."""
    clearer = []
    for of, scale in SCALES.items():
        ours, sets = scale(heads), scale(invented)
        [clear], chance = silhouettes(ours[None], starts=STARTS, seed=seed), silhouettes(sets, seed=seed)
        clearer.append(clear > np.percentile(chance, 97.5))
        mixed = np.array([mixture_agreement(crowd, seed) for crowd in sets[:20]])
        numbers = {"silhouette": (clear, chance), "mixture_agreement": (mixture_agreement(ours, seed), mixed)}
        for quantity, (number, control) in numbers.items():
            control = Estimate.of(control.mean(), control)
            run.number(quantity, number, control=control, of=of, against="invented heads")
            run.number(f"{quantity}_invented", control, of=of, against="" if quantity == "silhouette" else None)
        run.number("gap_groups", gap_groups(ours, sets, most, seed), of=of)
    run.number("clearer_scales", np.mean(clearer))
