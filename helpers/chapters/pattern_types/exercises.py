"""Checks for the exercises of chapter 09."""

from collections.abc import Callable

import numpy as np

from helpers.chapters.checks import _close, _exercise, _maps, _Wrong


@_exercise
def sink_mass(answer: Callable) -> str:
    """Chapter 09: the largest mean weight of a column."""
    for seed in range(4):
        weights = _maps(6, seed)
        weights[:, seed] += 0.5
        weights /= weights.sum(-1, keepdims=True)
        got = answer(weights)
        if got is not None and np.isclose(got, weights.mean(1).max()):
            raise _Wrong("that is the mean of a row, which is 1/n for every row; columns are the attended tokens.")
        if got is not None and np.isclose(got, weights.max()):
            raise _Wrong("one dark cell makes no column; take the mean over the attending tokens first.")
        _close(got, float(weights.mean(0).max()), "it should be the largest mean over the rows, column by column.")
    return "right: the column that all rows share wins, wherever it stands."


@_exercise
def type_entropy(answer: Callable) -> str:
    """Chapter 09: the entropy of a head's types, given as a list of names."""
    for names in (["a", "b"] * 3, ["a", "a", "a", "b"], ["c"] * 5, ["a", "b", "c", "d", "e"]):
        shares = np.array([names.count(name) for name in sorted(set(names))]) / len(names)
        wanted = float(-(shares * np.log(shares)).sum())
        got = answer(names)
        if got is not None and wanted and np.isclose(got, wanted / np.log(2)):
            raise _Wrong("that is in bits; this book counts in nats, with the natural logarithm.")
        _close(
            got, wanted, f"for {names} it should be {wanted:.3f}: minus the sum of p ln p over the names that occur."
        )
    return "right: 0 for a head that never changes, ln 5 for one that shows all five types alike."


@_exercise
def macro_f1(answer: Callable) -> str:
    """Chapter 09: macro-F1 from a confusion table."""
    for seed in range(4):
        table = np.random.default_rng(seed).integers(0, 9, (4, 4)) + np.diag([9, 1, 4, 2])
        if seed:
            table[seed] = 0  # a type that nothing is labelled with
        kept = table.sum(1) > 0
        per_type = 2 * np.diag(table) / np.maximum(table.sum(0) + table.sum(1), 1)
        got = answer(table)
        if got is not None and np.isclose(got, np.trace(table) / table.sum()):
            raise _Wrong("that is the accuracy; F1 is computed for each type, and then averaged.")
        if seed and got is not None and np.isclose(got, per_type.mean()):
            raise _Wrong("a type without any labelled map (a row of zeros) should be left out of the mean.")
        _close(
            got,
            float(per_type[kept].mean()),
            "F1 of a type is 2 · hits / (labelled so + given so); average it over the rows that are not empty.",
        )
    return "right, also where a type never occurs."
