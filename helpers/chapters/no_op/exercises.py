"""The exercises of chapter 03."""

import numpy as np

from helpers.chapters.checks import Exercise, checker, maps

WEIGHTS = np.vstack([maps(4, 0)[:3], [1.0, 0.0, 0.0, 0.0]])
GRADIENTS = np.random.default_rng(0).normal(size=(9, 3, 3))


def _vectors(seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return maps(5, seed), rng.normal(size=(5, 3)), rng.normal(size=(3, 7))


def _batches(*sizes: int) -> tuple[list[np.ndarray]]:
    """The gradients as those of the mean loss of batches."""
    return ([part / len(part) for part in np.split(GRADIENTS, np.cumsum(sizes)[:-1])],)


def _own(batches: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([len(batch) * batch for batch in batches])


class norm_weighted(Exercise):
    solved = "right: a length for each token, and every row of weights times these lengths."

    cases = tuple(_vectors(seed) for seed in range(3))

    def right(weights, values, output):
        """it should be weights[i, j] times the length of values[j] @ output."""
        return weights * np.linalg.norm(values @ output, axis=-1)

    def of_values(weights, values, output):
        """these are lengths of the values themselves; they still have to go through `output`."""
        return weights * np.linalg.norm(values, axis=-1)

    def of_rows(weights, values, output):
        """each weight has to meet the vector of the *attended* token, its column."""
        return weights * np.linalg.norm(values @ output, axis=-1)[:, None]


class without_sink(Exercise):
    solved = "right, also for a row with nothing left."

    cases = ((WEIGHTS, [0]), (WEIGHTS, [0, 3]))
    untouched = True

    def right(*case):
        """the weights that remain should keep their proportions within a row."""
        return (left := without_sink.not_renormalised(*case)) / np.maximum(left.sum(-1, keepdims=True), 1e-300)

    def zero_by_zero(*case):
        """the last row gives everything to the sink: 0 / 0. Let such a row stay zero."""
        return (left := without_sink.not_renormalised(*case)) / left.sum(-1, keepdims=True)

    def not_renormalised(weights, sink):
        """the weights are gone, but the rest of each row does not sum to 1 yet."""
        return np.where(np.isin(np.arange(4), sink), 0, weights)


class gradient_per_example(Exercise):
    solved = "right: the same number however the examples are batched."

    cases = (_batches(9), _batches(4, 4, 1), _batches(*[1] * 9), _batches(2, 7))

    def right(batches):
        """it is not the mean of |gradient| over the nine examples, however they are batched."""
        return np.abs(_own(batches)).mean(0)

    def not_multiplied(batches):
        """each gradient is still divided by the size of its batch; multiply it back."""
        return np.abs(np.concatenate(batches)).mean(0)

    def size_after_mean(batches):
        """gradients of opposite sign cancel: take the absolute value of each example's first."""
        return np.abs(_own(batches).mean(0))

    def batch_by_batch(batches):
        """that is a mean of batches; a small batch must not count as much as a large one."""
        return np.mean([np.abs(len(b) * b).mean(0) for b in batches], axis=0)


check = checker(globals())
