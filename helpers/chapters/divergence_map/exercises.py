"""The exercises of chapter 07."""

import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.special import entr

from helpers.chapters.checks import Exercise, checker, maps


def _distances(points: np.ndarray, *_: object) -> np.ndarray:
    return squareform(pdist(points))


def _groups(seed: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Distances of two groups of four points, their labels, and 49 orders."""
    rng, labels = np.random.default_rng(seed), np.repeat([0, 1], 4)
    points = rng.normal(size=(8, 2)) + 0.7 * labels[:, None] * [1, 0]
    return _distances(points), labels, [rng.permutation(8) for _ in range(49)]


class row_divergence(Exercise):
    solved = "right, from 0 for equal rows to ln 2 for rows that share no token."

    cases = (
        (np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.5, 0.5])),
        *((row, other) for p, q in (maps(6, seed)[:2] for seed in range(4)) for row, other in ((p, p), (p, q))),
    )

    def right(p, q):
        """it should be H((p + q) / 2) - H(p) / 2 - H(q) / 2: 0 for equal rows, and ln 2 = 0.693 nats for two rows that share no token."""
        return entr((p + q) / 2).sum() - (entr(p).sum() + entr(q).sum()) / 2

    def undefined_at_0(p, q):
        """it is NaN where a weight is 0: take 0 · ln 0 as 0, for instance with a logarithm of positive weights only."""
        return (p * np.log(2 * p / (p + q)) + q * np.log(2 * q / (p + q))).sum() / 2

    def in_bits(p, q):
        """that is in bits; use the natural logarithm."""
        return row_divergence.right(p, q) / np.log(2)

    def twice(p, q):
        """it is twice too large: the mixture is (p + q) / 2, and each entropy counts one half."""
        return 2 * row_divergence.right(p, q)


class classical_scaling(Exercise):
    solved = "right: the plane is recovered, but for a turn and a reflection, which distances cannot tell."

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
    solved = "right, and never 0."

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


check = checker(globals())
