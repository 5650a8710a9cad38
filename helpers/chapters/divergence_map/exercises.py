"""Checks for the exercises of chapter 07."""

from collections.abc import Callable

import numpy as np

from helpers.chapters.checks import _close, _exercise, _maps, _Wrong


@_exercise
def row_divergence(answer: Callable) -> str:
    """Chapter 07: Jensen-Shannon divergence of two rows, with 0 ln 0 = 0."""
    one, other = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.5, 0.5])
    got = answer(one, other)
    if got is not None and np.isnan(got):
        raise _Wrong(
            "it is NaN where a weight is 0: take 0 · ln 0 as 0, for instance with a logarithm of positive weights only."
        )
    if got is not None and np.isclose(got, 1.0):
        raise _Wrong("that is in bits; use the natural logarithm.")
    if got is not None and np.isclose(got, 2 * np.log(2)):
        raise _Wrong("it is twice too large: the mixture is (p + q) / 2, and each entropy counts one half.")
    _close(got, float(np.log(2)), "two rows that share no token are ln 2 = 0.693 nats apart.")
    for seed in range(4):
        p, q = _maps(6, seed)[:2]
        mixture = (p + q) / 2
        wanted = ((p * np.log(p / mixture)).sum() + (q * np.log(q / mixture)).sum()) / 2
        _close(answer(p, p), 0.0, "a row is 0 away from itself.")
        _close(answer(p, q), float(wanted), "it should be H((p + q) / 2) - H(p) / 2 - H(q) / 2.")
    return "right, from 0 for equal rows to ln 2 for rows that share no token."


@_exercise
def classical_scaling(answer: Callable) -> str:
    """Chapter 07: points in the plane from their distances."""
    for seed in range(4):
        points = np.random.default_rng(seed).normal(size=(7, 2))
        distances = np.linalg.norm(points[:, None] - points, axis=-1)
        got = answer(distances)
        if got is None:
            raise _Wrong("your function returns None; does it end in `return`?")
        got = np.asarray(got, np.float64)
        if got.shape != (7, 2):
            raise _Wrong(f"the result has shape {got.shape}, wanted is (7, 2): a row for each point.")
        shown = np.linalg.norm(got[:, None] - got, axis=-1)
        lengths = np.linalg.norm(got, axis=0)
        if np.allclose(lengths, 1, atol=1e-6):
            raise _Wrong("these are bare eigenvectors; multiply each by the square root of its eigenvalue.")
        if not np.allclose(shown, distances, atol=1e-6):
            raise _Wrong(
                "the distances between your points are not those given. Did you square the distances, centre rows and "
                "columns, and take the two largest eigenvalues (`eigh` sorts from small to large)?"
            )
    return "right: the plane is recovered, but for a turn and a reflection, which distances cannot tell."


@_exercise
def permutation_p(answer: Callable) -> str:
    """Chapter 07: p-value of a mean within labels."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(8, 2)) + np.repeat([[0, 0], [0.7, 0]], 4, axis=0)
        matrix = np.linalg.norm(points[:, None] - points, axis=-1)
        labels = np.repeat([0, 1], 4)
        orders = [rng.permutation(8) for _ in range(49)]

        def within(given: np.ndarray, matrix: np.ndarray = matrix) -> float:
            pairs = [matrix[i, j] for i in range(8) for j in range(i) if given[i] == given[j]]
            return float(np.mean(pairs))

        observed = within(labels)
        count = sum(within(labels[order]) <= observed + 1e-12 for order in orders)
        got = answer(matrix, labels, orders)
        if got is not None and np.isclose(got, count / 49) and not np.isclose(count / 49, (1 + count) / 50):
            raise _Wrong(
                "add 1 above and below: the labels as they are, are one of the possible orders, and p is never 0."
            )
        if got is not None and np.isclose(got, 1 - count / 49):
            raise _Wrong("that is the share of orders with a larger mean; closer than chance means a smaller one.")
        _close(
            got,
            (1 + count) / 50,
            "p is (1 + number of orders whose mean within labels is at most the observed one) / (1 + orders).",
        )
    return "right, and never 0."
