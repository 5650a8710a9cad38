"""The exercises of chapter 11."""

import numpy as np

from helpers.chapters.checks import Exercise
from helpers.chapters.progress import desk


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
    """Mean |gradient| of each example's loss by each gate, from gradients of batch means."""

    solved = "right: the same whatever the batches."
    means = "The absolute value stands inside the mean: a head that helps one example and harms another is important."
    leads_on = "Can the importance be 0 for a head whose removal costs something?"
    hints = (
        "Each gradient is that of a mean over its batch: multiply by `len(batch)`.",
        "Put the examples of all batches together, then absolute values, then the mean over examples.",
    )

    cases = tuple((_batches(seed),) for seed in range(4))

    def right(batches):
        """multiply by the batch's size, take absolute values, average over all examples."""
        return np.abs(_own(batches)).mean(0)

    def not_multiplied(batches):
        """each gradient is still divided by the size of its batch; multiply first."""
        return np.abs(np.concatenate(batches)).mean(0)

    def batch_by_batch(batches):
        """a small batch counts as much as a large one; average over examples, not over batches."""
        return np.mean([np.abs(len(b) * b).mean(0) for b in batches], axis=0)

    def size_after_mean(batches):
        """examples of opposite sign cancel; take the absolute value before the mean."""
        return np.abs(_own(batches).mean(0))

    def divided_again(batches):
        """the mean has divided by the size of the batch already; multiply by it instead."""
        return np.abs(np.concatenate([batch / len(batch) for batch in batches])).mean(0)

    def summed(batches):
        """it is the sum over examples; take their mean."""
        return np.abs(_own(batches)).sum(0)


class cut_head(Exercise):
    """The four maps of a layer without one head."""

    solved = "right: rows from three maps, columns from the fourth."
    means = "A head is a stretch of rows in three maps and of columns in the fourth; nothing else of it exists."
    leads_on = (
        "How many numbers of a layer with 12 heads does this save, and why is the layer not one twelfth faster?"
    )
    hints = (
        "A head has `d = len(query) // heads` rows; those of number `head` begin at `head * d`.",
        "`np.delete(rows, range(head * d, head * d + d), axis=0)` for the first three, `axis=1` for `output`.",
    )

    cases = tuple(_layer(head) for head in (0, 2, 3))

    def right(query, key, value, output, head, heads):
        """a map does not hold what is left; the three features of head {4}, counted from 0, should be gone, and no others."""
        gone = np.arange(len(query)).reshape(heads, -1)[head]
        return (*(np.delete(rows, gone, axis=0) for rows in (query, key, value)), np.delete(output, gone, axis=1))

    def three_maps(*case):
        """it returns three arrays instead of four."""
        return cut_head.right(*case)[:3]

    def rows_of_all(*case):
        """the output map loses columns, not rows: what a head makes is a column there."""
        *_, output, head, heads = case
        gone = np.arange(output.shape[1]).reshape(heads, -1)[head]
        return (*cut_head.right(*case)[:3], np.delete(output, gone[gone < len(output)], axis=0))

    def set_to_0(*case):
        """the maps have kept their size; take the rows and columns out instead of setting them to 0."""
        *maps, output, head, heads = case
        kept = np.repeat(np.arange(heads) != head, len(maps[0]) // heads)
        return (*(rows * kept[:, None] for rows in maps), output * kept)

    def kept_alone(*case):
        """this is the head itself; return what is left without it."""
        *maps, output, head, heads = case
        own = np.repeat(np.arange(heads) == head, len(maps[0]) // heads)
        return (*(rows[own] for rows in maps), output[:, own])

    def turned(*case):
        """the maps are turned round; rows go from the first three maps, columns from the last."""
        return tuple(one.T for one in cut_head.right(*case))


check, hint, progress = desk(globals())
