"""Checks for the exercises of chapter 03."""

from collections.abc import Callable

import numpy as np

from helpers.chapters.checks import _close, _exercise, _maps, _Wrong


@_exercise
def norm_weighted(answer: Callable) -> str:
    """Chapter 03: lengths of weighted vectors."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        weights, values, output = _maps(5, seed), rng.normal(size=(5, 3)), rng.normal(size=(3, 7))
        f = [sum(values[j, k] * output[k] for k in range(3)) for j in range(5)]
        wanted = np.array([[np.sqrt(((weights[i, j] * f[j]) ** 2).sum()) for j in range(5)] for i in range(5)])
        got = answer(weights, values, output)
        if got is not None and np.shape(got) == (5, 5):
            if np.allclose(got, weights * np.linalg.norm(values, axis=-1)):
                raise _Wrong("these are lengths of the values themselves; they still have to go through `output`.")
            if np.allclose(got, weights * np.linalg.norm(values @ output, axis=-1)[:, None]):
                raise _Wrong("each weight has to meet the vector of the *attended* token, its column.")
        _close(got, wanted, "it should be weights[i, j] times the length of values[j] @ output.")
    return "right: a length for each token, and every row of weights times these lengths."


@_exercise
def without_sink(answer: Callable) -> str:
    """Chapter 03: remove and renormalise."""
    weights = np.vstack([_maps(4, 0), [[1.0, 0.0, 0.0, 0.0]]])[[0, 1, 2, 4]]
    for sink in ([0], [0, 3]):
        wanted = weights.copy()
        wanted[:, sink] = 0
        left = wanted.copy()
        for row in wanted:
            if row.sum() > 0:
                row /= row.sum()
        before = weights.copy()
        with np.errstate(invalid="ignore", divide="ignore"):
            got = answer(before, list(sink))
        if not np.array_equal(before, weights):
            raise _Wrong("it changes the array it was given; work on a copy.")
        if got is not None and np.shape(got) == wanted.shape:
            if not np.isfinite(got).all():
                raise _Wrong("the last row gives everything to the sink: 0 / 0. Let such a row stay zero.")
            if np.allclose(got, left):
                raise _Wrong("the weights are gone, but the rest of each row does not sum to 1 yet.")
        _close(got, wanted, "the weights that remain should keep their proportions within a row.")
    return "right, also for a row with nothing left."


@_exercise
def gradient_per_example(answer: Callable) -> str:
    """Chapter 03: size of the gradient, example by example."""
    rng = np.random.default_rng(0)
    own = rng.normal(size=(9, 3, 3))
    for sizes in ((9,), (4, 4, 1), (1,) * 9, (2, 7)):
        cuts = np.split(own, np.cumsum(sizes)[:-1])
        batches = [part / len(part) for part in cuts]
        got = answer([b.copy() for b in batches])
        if got is not None and np.shape(got) == (3, 3) and len(sizes) < 9:
            if np.allclose(got, np.abs(np.concatenate(batches)).mean(0)):
                raise _Wrong("each gradient is still divided by the size of its batch; multiply it back.")
            if np.allclose(got, np.abs(own.mean(0))):
                raise _Wrong("gradients of opposite sign cancel: take the absolute value of each example's first.")
            if len(set(sizes)) > 1 and np.allclose(got, np.mean([np.abs(c).mean(0) for c in cuts], axis=0)):
                raise _Wrong("that is a mean of batches; a small batch must not count as much as a large one.")
        _close(
            got,
            np.abs(own).mean(0),
            f"for batches of {sizes} it is not the mean of |gradient| over the nine examples.",
        )
    return "right: the same number however the examples are batched."
