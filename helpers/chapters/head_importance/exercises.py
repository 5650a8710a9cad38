"""The exercises of chapter 11."""

import numpy as np

from helpers.chapters.checks import Exercise, checker, says


def _batches(seed: int) -> list[np.ndarray]:
    """Gradients [example, head] of the mean loss of three batches."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, 5)) / size for size in (4, 1, 7)]


def _own(batches: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([len(batch) * batch for batch in batches])


def _layer(head: int) -> tuple:
    rng = np.random.default_rng(head)
    return (*rng.normal(size=(3, 12, 5)), rng.normal(size=(5, 12)), head, 4)


class gate_importance(Exercise):
    solved = "right: the same whatever the batches."

    cases = tuple((_batches(seed),) for seed in range(4))

    @says("multiply by the batch's size, take absolute values, average over all examples.")
    def right(batches):
        return np.abs(_own(batches)).mean(0)

    @says("each gradient is still divided by the size of its batch; multiply first.")
    def not_multiplied(batches):
        return np.abs(np.concatenate(batches)).mean(0)

    @says("a small batch counts as much as a large one; average over examples, not over batches.")
    def batch_by_batch(batches):
        return np.mean([np.abs(len(b) * b).mean(0) for b in batches], axis=0)

    @says("examples of opposite sign cancel; take the absolute value before the mean.")
    def size_after_mean(batches):
        return np.abs(_own(batches).mean(0))


class size_before_mean(Exercise):
    solved = "right: they differ for a head that helps some examples and harms others."

    cases = tuple((np.random.default_rng(seed).normal(size=(9, 4)),) for seed in range(3))

    @says("the first row is mean(|g|), the second |mean(g)|, both over examples.")
    def right(gradients):
        return np.stack([np.abs(gradients).mean(0), np.abs(gradients.mean(0))])

    @says("the two rows are exchanged: first the absolute value of each example, then that of the mean.")
    def exchanged(gradients):
        return size_before_mean.right(gradients)[::-1]


class cut_head(Exercise):
    solved = "right: rows from three maps, columns from the fourth."

    cases = tuple(_layer(head) for head in (0, 2, 3))

    @says(
        "a map does not hold what is left; the three features of head {4}, counted from 0, should be gone, and no others."
    )
    def right(query, key, value, output, head, heads):
        gone = np.arange(len(query)).reshape(heads, -1)[head]
        return (*(np.delete(rows, gone, axis=0) for rows in (query, key, value)), np.delete(output, gone, axis=1))

    @says("it returns three arrays instead of four.")
    def three_maps(*case):
        return cut_head.right(*case)[:3]

    @says("the maps are turned round; rows go from the first three maps, columns from the last.")
    def turned(*case):
        return tuple(one.T for one in cut_head.right(*case))


check = checker(globals())
