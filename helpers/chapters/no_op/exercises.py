"""The exercises of chapter 03."""

import numpy as np

from helpers.chapters.checks import Exercise, maps
from helpers.chapters.progress import desk

GRADIENTS = np.random.default_rng(0).normal(size=(9, 3, 3))
KINDS = np.array([0, 2, 1, 2, 2])


def _head(seed: int) -> tuple[np.ndarray, ...]:
    """Weights, values and output map of a head over five tokens of three kinds."""
    rng = np.random.default_rng(seed)
    return maps(5, seed), rng.normal(size=(5, 3)), rng.normal(size=(3, 7)), KINDS


def _batches(*sizes: int) -> tuple[list[np.ndarray]]:
    """The gradients as those of the mean loss of batches."""
    return ([part / len(part) for part in np.split(GRADIENTS, np.cumsum(sizes)[:-1])],)


def _own(batches: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([len(batch) * batch for batch in batches])


def _parts(sizes: np.ndarray) -> np.ndarray:
    return sizes / sizes.sum()


class handed_on(Exercise):
    """How much of a head's output comes from each kind of token, by length of the sums."""

    solved = "right: vectors are added up kind by kind before they are measured, and the parts sum to 1."
    means = (
        "What a head hands on is a sum of vectors, and vectors that cancel hand on nothing, whatever their weights."
    )
    leads_on = "When would the share of a kind in what is handed on be larger than its share of attention?"
    hints = (
        "For one kind: `weights * (kinds == kind)` keeps its weights only; multiply with `values` and `output`.",
        "The length of each row (`np.linalg.norm(…, axis=-1)`) comes after the sum, the mean over rows after the length.",
    )

    cases = tuple(_head(seed) for seed in range(3))
    untouched = True

    def right(weights, values, output, kinds):
        """the parts should be the mean lengths of the kinds' sums, over the sum of the three."""
        sums = [(weights * (kinds == kind)) @ values @ output for kind in range(3)]
        return _parts(np.linalg.norm(sums, axis=-1).mean(-1))

    def of_lengths(weights, values, output, kinds):
        """these are sums of lengths, in which nothing cancels; add the vectors up first."""
        lengths = (weights * np.linalg.norm(values @ output, axis=-1)).mean(0)
        return _parts(np.array([lengths[kinds == kind].sum() for kind in range(3)]))

    def of_values(weights, values, output, kinds):
        """these are lengths before the output map; the vectors still have to go through `output`."""
        sums = [(weights * (kinds == kind)) @ values for kind in range(3)]
        return _parts(np.linalg.norm(sums, axis=-1).mean(-1))

    def of_attention(weights, values, output, kinds):
        """these are parts of the attention; each weight still has to meet its vector."""
        return np.array([weights[:, kinds == kind].sum(-1).mean() for kind in range(3)])

    def over_all(weights, values, output, kinds):
        """each attending token has a sum of its own: take the length for each row, and the mean over rows last."""
        sums = [(weights * (kinds == kind)) @ values @ output for kind in range(3)]
        return _parts(np.linalg.norm(np.mean(sums, axis=1), axis=-1))


class gradient_per_example(Exercise):
    """Mean |gradient| over examples, from gradients of batch means."""

    solved = "right: the same number however the examples are batched."
    means = "A number that changes with the size of the batch says something of the program, not of the model."
    leads_on = "Why would the mean of the gradients themselves tell so little here?"
    hints = (
        "The mean over a batch of n divides each example's gradient by n: multiply each batch by `len(batch)`.",
        "Put all examples into one array with `np.concatenate`, take absolute values, then the mean over the first axis.",
    )

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


check, hint, progress = desk(globals())
