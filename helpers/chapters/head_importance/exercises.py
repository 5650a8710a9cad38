"""Checks for the exercises of chapter 11."""

from collections.abc import Callable

import numpy as np

from helpers.chapters.checks import _close, _exercise, _Wrong


@_exercise
def gate_importance(answer: Callable) -> str:
    """Chapter 11: the mean size of single examples' gradients, from gradients of batches' means."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        own = [rng.normal(size=(size, 5)) for size in (4, 1, 7)]
        given = [batch / len(batch) for batch in own]
        wanted = np.abs(np.concatenate(own)).mean(0)
        got = answer([batch.copy() for batch in given])
        if got is not None and np.shape(got) == wanted.shape:
            if np.allclose(got, np.abs(np.concatenate(given)).mean(0)):
                raise _Wrong("each gradient is still divided by the size of its batch; multiply first.")
            if np.allclose(got, np.mean([np.abs(batch).mean(0) for batch in own], axis=0)):
                raise _Wrong("a small batch counts as much as a large one; average over examples, not over batches.")
            if np.allclose(got, np.abs(np.concatenate(own).mean(0))):
                raise _Wrong("examples of opposite sign cancel; take the absolute value before the mean.")
        _close(got, wanted, "multiply by the batch's size, take absolute values, average over all examples.")
    return "right: the same whatever the batches."


@_exercise
def size_before_mean(answer: Callable) -> str:
    """Chapter 11: absolute value before and after the mean over examples."""
    for seed in range(3):
        gradients = np.random.default_rng(seed).normal(size=(9, 4))
        before, after = np.abs(gradients).mean(0), np.abs(gradients.mean(0))
        got = answer(gradients.copy())
        if got is not None and np.shape(got) == (2, 4) and np.allclose(got, [after, before]):
            raise _Wrong(
                "the two rows are exchanged: first the absolute value of each example, then that of the mean."
            )
        _close(
            got, np.stack([before, after]), "the first row is mean(|g|), the second |mean(g)|, both over examples."
        )
    return "right: they differ for a head that helps some examples and harms others."


@_exercise
def cut_head(answer: Callable) -> str:
    """Chapter 11: a layer's four maps without one head."""
    rng = np.random.default_rng(0)
    for head in (0, 2, 3):
        maps = [rng.normal(size=(12, 5)) for _ in range(3)] + [rng.normal(size=(5, 12))]
        kept = [n for n in range(12) if n // 3 != head]
        wanted = [*(m[kept] for m in maps[:3]), maps[3][:, kept]]
        got = answer(*(m.copy() for m in maps), head, 4)
        if got is None:
            raise _Wrong("your function returns None; does it end in `return`?")
        if len(got) != 4:
            raise _Wrong(f"it returns {len(got)} arrays instead of four.")
        for name, one, right in zip(("query", "key", "value", "output"), got, wanted, strict=True):
            if np.shape(one) == (5, 9) != right.shape or np.shape(one) == (9, 5) != right.shape:
                raise _Wrong(f"{name} is turned round; rows go from the first three maps, columns from the last.")
            _close(
                one,
                right,
                f"{name} does not hold what is left; features {3 * head} to {3 * head + 2} should be gone.",
            )
    return "right: rows from three maps, columns from the fourth."
