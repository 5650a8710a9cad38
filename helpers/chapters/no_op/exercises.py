"""The exercises of chapter 03."""

import numpy as np

from helpers.chapters.checks import Exercise, checker, maps, says

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

    @says("it should be weights[i, j] times the length of values[j] @ output.")
    def right(weights, values, output):
        return weights * np.linalg.norm(values @ output, axis=-1)

    @says("these are lengths of the values themselves; they still have to go through `output`.")
    def of_values(weights, values, output):
        return weights * np.linalg.norm(values, axis=-1)

    @says("each weight has to meet the vector of the *attended* token, its column.")
    def of_rows(weights, values, output):
        return weights * np.linalg.norm(values @ output, axis=-1)[:, None]


class without_sink(Exercise):
    solved = "right, also for a row with nothing left."

    cases = ((WEIGHTS, [0]), (WEIGHTS, [0, 3]))
    untouched = True

    @says("the weights that remain should keep their proportions within a row.")
    def right(*case):
        return (left := without_sink.not_renormalised(*case)) / np.maximum(left.sum(-1, keepdims=True), 1e-300)

    @says("the last row gives everything to the sink: 0 / 0. Let such a row stay zero.")
    def zero_by_zero(*case):
        return (left := without_sink.not_renormalised(*case)) / left.sum(-1, keepdims=True)

    @says("the weights are gone, but the rest of each row does not sum to 1 yet.")
    def not_renormalised(weights, sink):
        return np.where(np.isin(np.arange(4), sink), 0, weights)


class gradient_per_example(Exercise):
    solved = "right: the same number however the examples are batched."

    cases = (_batches(9), _batches(4, 4, 1), _batches(*[1] * 9), _batches(2, 7))

    @says("it is not the mean of |gradient| over the nine examples, however they are batched.")
    def right(batches):
        return np.abs(_own(batches)).mean(0)

    @says("each gradient is still divided by the size of its batch; multiply it back.")
    def not_multiplied(batches):
        return np.abs(np.concatenate(batches)).mean(0)

    @says("gradients of opposite sign cancel: take the absolute value of each example's first.")
    def size_after_mean(batches):
        return np.abs(_own(batches).mean(0))

    @says("that is a mean of batches; a small batch must not count as much as a large one.")
    def batch_by_batch(batches):
        return np.mean([np.abs(len(b) * b).mean(0) for b in batches], axis=0)


check = checker(globals())
