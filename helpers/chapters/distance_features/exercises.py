"""The exercises of chapter 08."""

from itertools import permutations

import numpy as np

from helpers.chapters.checks import Exercise
from helpers.chapters.progress import desk

SIZE = 30


def _labels(seed: int) -> np.ndarray:
    """Ten refits of 30 heads: mostly the same four groups, numbered anew by each."""
    rng = np.random.default_rng(seed)
    groups = np.where(rng.random((10, SIZE)) < 0.96, rng.integers(0, 4, SIZE), rng.integers(0, 4, (10, SIZE)))
    return np.stack([rng.permutation(4)[one] for one in groups])


def _renumbered(labels: np.ndarray, reference: np.ndarray) -> np.ndarray:
    ways = (np.array(way)[labels] for way in permutations(range(4)))
    return max(ways, key=lambda way: (way == reference).sum())


def _heads(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Heads in three groups; with an odd seed one more head is alone in a fourth."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(SIZE) % 3)
    labels[0] = 3 if seed % 2 else labels[0]
    return rng.dirichlet(np.ones(21), SIZE), labels


def _mean_silhouette(apart: np.ndarray, labels: np.ndarray, itself: bool = False, nearest: bool = True) -> float:
    """From distances, 0 for a head alone; with the head itself in its own group, or against all other heads, it is a typical mistake."""
    found = []
    for head, group in enumerate(labels):
        own = (labels == group) & (itself | (np.arange(len(labels)) != head))
        others = [apart[head, labels == other].mean() for other in set(labels.tolist()) - {int(group)}]
        b = min(others) if nearest else apart[head, labels != group].mean()
        a = apart[head, own].mean() if own.any() else b
        found.append((b - a) / max(a, b))
    return float(np.mean(found))


def _apart(points: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points[:, None] - points, axis=-1)


class mean_silhouette(Exercise):
    """The mean silhouette of a grouping, from Euclidean distances."""

    solved = "right: the own group without the head itself, and the nearest of the others."
    means = "A silhouette asks each head whether it would rather live next door."
    leads_on = "Can the mean be high although one group would be better split in two?"
    hints = (
        "a of a head: the mean distance to the *other* heads of its group, so divide by their number less one.",
        "b: for each other group the mean distance to its heads, and of these means the smallest. Then (b - a) / max(a, b), and the mean.",
    )

    cases = tuple(_heads(seed) for seed in range(4))

    def right(points, labels):
        """it says {got:.4f}, not {wanted:.4f}; work out the head number 0 on paper: its a, its b, its silhouette."""
        return _mean_silhouette(_apart(points), labels)

    def with_itself(points, labels):
        """the distance of a head from itself, 0, is in its a; leave it out."""
        return _mean_silhouette(_apart(points), labels, itself=True)

    def all_others(points, labels):
        """b is a mean over the heads of the nearest other group, not over those of all other groups."""
        return _mean_silhouette(_apart(points), labels, nearest=False)

    def squared(points, labels):
        """these are squared distances; take the root."""
        return _mean_silhouette(_apart(points) ** 2, labels)


class agreed_by_all(Exercise):
    """Share of the heads that all refits put into the same group, after the groups of each were numbered alike."""

    solved = "right: groups are compared, not their numbers, and one refit that differs is enough to lose a head."
    means = "Groups that do not come back were drawn by the seed; groups that do may still be cuts through one cloud."
    leads_on = "Which heads lose their group first: those in the middle of a group, or those between two?"
    hints = (
        "The number of a group means nothing: for each refit try all 24 ways to rename its four groups.",
        "Keep the renaming that agrees with the first refit on most heads, then count the columns in which all ten rows are equal.",
    )

    cases = tuple((_labels(seed),) for seed in range(5))

    def right(labels):
        """it says {got}, not {wanted}; renumber each refit on its own, then count the columns in which all rows are equal."""
        same = np.stack([_renumbered(one, labels[0]) for one in labels])
        return (same == same[0]).all(0).mean()

    def as_numbered(labels):
        """refits number their groups as they like; renumber each as the first, the way in which most heads agree."""
        return (labels == labels[0]).all(0).mean()

    def mean_agreement(labels):
        """that is the mean agreement with the first refit; a head counts only if all ten agree on it."""
        return np.mean([_renumbered(one, labels[0]) == labels[0] for one in labels])


check, hint, progress = desk(globals())
