"""Checks for the exercises of chapter 08."""

from collections.abc import Callable
from itertools import permutations

import numpy as np

from helpers.chapters.checks import _close, _exercise, _Wrong


@_exercise
def window_of(answer: Callable) -> str:
    """Chapter 08: the window of a pair of tokens."""
    for n in (128, 40, 17, 9):
        for i, j in ((0, 1), (1, 0), (0, n - 1), (n - 1, 0), (3, 3 + n // 2), (2, 7), (8, 2), (5, 5)):
            if max(i, j) >= n:
                continue
            wanted = 0 if i == j else 1 + 16 * abs(i - j) // n
            got = answer(i, j, n)
            if got is None:
                raise _Wrong("your function returns None; does it end in `return`?")
            if got == wanted - 1 and wanted:
                raise _Wrong("windows are counted from 1; 0 is kept for the token itself.")
            if i > j and got == answer(j, i, n) - 1:
                raise _Wrong("to the left it says something else than to the right; take the absolute distance.")
            if got != wanted:
                raise _Wrong(f"for tokens {i} and {j} of {n} it says {got}, not {wanted}.")
    return "right, in both directions and for inputs of 9 to 128 tokens."


@_exercise
def renumbered(answer: Callable) -> str:
    """Chapter 08: group numbers that agree with a reference as far as possible."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        reference = rng.integers(0, 4, 24)
        labels = rng.permutation(4)[np.where(rng.random(24) < 0.7, reference, rng.integers(0, 4, 24))]
        best = max((np.array(p)[labels] == reference).sum() for p in permutations(range(4)))
        got = answer(labels, reference)
        if got is None:
            raise _Wrong("your function returns None; does it end in `return`?")
        got = np.asarray(got)
        pairs = set(zip(labels.tolist(), got.tolist(), strict=True))
        if len(pairs) != len(set(labels.tolist())) or len({new for _, new in pairs}) != len(pairs):
            raise _Wrong(
                "it moves heads to other groups: each old number must become one new number, and no two the same."
            )
        if (got == reference).sum() != best:
            raise _Wrong(
                f"{(got == reference).sum()} heads agree with the reference, but {best} could; try all 24 ways."
            )
    return "right: the groups stay, only their numbers change."


@_exercise
def agreed_by_all(answer: Callable) -> str:
    """Chapter 08: the share of heads that all refits label alike."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        labels = np.where(rng.random((10, 30)) < 0.95, rng.integers(0, 4, 30), rng.integers(0, 4, (10, 30)))
        wanted = float((labels == labels[0]).all(0).mean())
        got = answer(labels)
        if got is not None and np.isclose(got, (labels == labels[0]).mean()) and not np.isclose(got, wanted):
            raise _Wrong(
                "that is the mean agreement with the first refit; a head counts only if all ten agree on it."
            )
        _close(
            got, wanted, "count the columns in which all rows are equal, and divide by their number; check the axis."
        )
    return "right: one refit that differs is enough to lose a head."
