"""You describe each head by how far it looks, cluster the heads, and ask whether the clusters are there.

After {cite:t}`guan2020`, sections 3 and 4.
"""

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import silhouette_score

from helpers.exercises.checks import desk, exercise

SIZE = 30


def _heads(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Heads in three groups; with an odd seed one more head is alone in a fourth."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(SIZE) % 3)
    labels[0] = 3 if seed % 2 else labels[0]
    return rng.dirichlet(np.ones(21), SIZE), labels


@exercise([_heads(seed) for seed in range(4)])
def mean_silhouette(points, labels):
    """The mean silhouette of a grouping, from Euclidean distances."""
    apart = squareform(pdist(points))
    member = np.equal.outer(labels, np.unique(labels))  # [head, group]
    means, size = apart @ member / member.sum(0), (member @ member.T).sum(1)
    with_itself = means[member]
    without_itself = with_itself * size / (size - 1)
    nearest = np.where(member, np.inf, means).min(1)
    others = (apart @ ~member)[member] / (SIZE - size)

    def mean(a, b):
        return np.nan_to_num((b - a) / np.maximum(a, b)).mean()  # a head alone has no a, and counts as 0

    right, all_others = silhouette_score(points, labels), mean(without_itself, others)
    squared = silhouette_score(apart**2, labels, metric="precomputed")
    return {"right": right, "with_itself": mean(with_itself, nearest), "all_others": all_others, "squared": squared}


@exercise([(np.log(_heads(seed)[0]),) for seed in range(3)])
def uncorrelated(logs):
    """The covariance of logarithms without correlations."""
    spread, variance = np.cov(logs.T), logs.var(0, ddof=1)
    mistakes = {"correlated": spread, "deviations": np.diag(variance**0.5), "by_all": np.diag(logs.var(0))}
    return {"right": np.diag(variance), "alike": variance.mean() * np.eye(21), **mistakes}


check, hint, progress = desk("distance_features", mean_silhouette, uncorrelated)
