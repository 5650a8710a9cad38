"""The exercises of chapter 07."""

import numpy as np
from scipy.spatial.distance import pdist, squareform

from helpers.chapters.checks import desk, exercise


def _plane(seed: int, labels: np.ndarray) -> np.ndarray:
    """Distances of points in the plane, of which those labelled 1 lie further to the right."""
    points = np.random.default_rng(seed).normal(size=(len(labels), 2))
    return squareform(pdist(points + np.outer(labels, [0.7, 0])))


LABELS = np.repeat([0, 1], 4)
ORDERS = [np.random.default_rng(seed).permutation(8) for seed in range(49)]


@exercise([(_plane(seed, np.zeros(7)),) for seed in range(4)], view=pdist)
def classical_scaling(distances):
    """Classical multidimensional scaling to two dimensions."""
    centre = np.eye(7) - 1 / 7
    values, vectors = np.linalg.eigh(centre @ (-(distances**2) / 2) @ centre)
    bare = vectors[:, -2:]
    right = bare * np.sqrt(values[-2:])
    return {
        "the distances between your points are not those given. Did you square the distances, centre rows and columns, and take the two largest eigenvalues (`eigh` sorts from small to large)?": right,
        "these are bare eigenvectors; multiply each by the square root of its eigenvalue.": bare,
    }


@exercise([(_plane(seed, LABELS), LABELS, ORDERS) for seed in range(4)])
def permutation_p(matrix, labels, orders):
    """P-value of the mean distance within labels among permuted labels."""
    labellings = [labels, *(labels[order] for order in orders)]
    observed, *drawn = (matrix[np.tril(np.equal.outer(y, y), -1)].mean() for y in labellings)
    reached = np.mean(drawn <= observed + 1e-12)
    right = (1 + 49 * reached) / 50
    return {
        "p is (1 + number of orders whose mean within labels is at most the observed one) / (1 + orders).": right,
        "add 1 above and below: the labels as they are, are one of the possible orders, and p is never 0.": reached,
        "that is the share of orders with a larger mean; closer than chance means a smaller one.": 1 - reached,
    }


check, hint, progress = desk("divergence_map", classical_scaling, permutation_p)
