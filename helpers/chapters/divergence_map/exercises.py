"""The exercises of chapter 07."""

import numpy as np
from scipy.spatial.distance import pdist, squareform

from helpers.chapters.checks import Exercise
from helpers.chapters.progress import desk


def _distances(points: np.ndarray, *_: object) -> np.ndarray:
    return squareform(pdist(points))


def _groups(seed: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Distances of two groups of four points, their labels, and 49 orders."""
    rng, labels = np.random.default_rng(seed), np.repeat([0, 1], 4)
    points = rng.normal(size=(8, 2)) + 0.7 * labels[:, None] * [1, 0]
    return _distances(points), labels, [rng.permutation(8) for _ in range(49)]


class classical_scaling(Exercise):
    """Classical multidimensional scaling to two dimensions."""

    solved = "right: the plane is recovered, but for a turn and a reflection, which distances cannot tell."
    means = "Distances fix a picture up to turning and mirroring, so an axis means something only by comparison."
    leads_on = "What does a negative eigenvalue say of the distances you were given?"
    hints = (
        "Square the distances, then subtract the means of rows and of columns and add the mean of all; times -1/2 this is a table of inner products.",
        "`values, vectors = np.linalg.eigh(table)`: the last two columns of `vectors`, each times the root of its value.",
    )

    cases = tuple((_distances(np.random.default_rng(seed).normal(size=(7, 2))),) for seed in range(4))

    def right(distances):
        """the distances between your points are not those given. Did you square the distances, centre rows and columns, and take the two largest eigenvalues (`eigh` sorts from small to large)?"""
        centre = np.eye(7) - 1 / 7
        values, vectors = np.linalg.eigh(centre @ (-(distances**2) / 2) @ centre)
        return vectors[:, -2:] * np.sqrt(values[-2:])

    view = _distances

    def bare_vectors(distances):
        """these are bare eigenvectors; multiply each by the square root of its eigenvalue."""
        points = classical_scaling.right(distances)
        return points / np.linalg.norm(points, axis=0)


class permutation_p(Exercise):
    """P-value of the mean distance within labels among permuted labels."""

    solved = "right, and never 0."
    means = "A p-value counts how often luck does as well, and luck includes what was observed."
    leads_on = "What is the smallest p that 49 orders can give, and is it small enough?"
    hints = (
        "Write the mean within labels for one labelling, over the pairs below the diagonal.",
        "Count the orders whose mean is at most the observed one, add 1, and divide by the number of orders plus 1.",
    )

    cases = tuple(_groups(seed) for seed in range(4))

    def right(matrix, labels, orders):
        """p is (1 + number of orders whose mean within labels is at most the observed one) / (1 + orders)."""
        means = [matrix[np.tril(np.equal.outer(y, y), -1)].mean() for y in (labels, *(labels[o] for o in orders))]
        return np.mean(means <= means[0] + 1e-12)  # the labels as they are count, too

    def never_counted(*case):
        """add 1 above and below: the labels as they are, are one of the possible orders, and p is never 0."""
        return (50 * permutation_p.right(*case) - 1) / 49

    def larger(*case):
        """that is the share of orders with a larger mean; closer than chance means a smaller one."""
        return 1 - permutation_p.never_counted(*case)


check, hint, progress = desk(globals())
