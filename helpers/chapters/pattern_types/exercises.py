"""The exercises of chapter 09."""

import numpy as np
from scipy.special import entr

from helpers.chapters.checks import Exercise
from helpers.chapters.progress import desk


def _confusions(seed: int) -> np.ndarray:
    """A table in which one type is never the label, but for seed 0."""
    table = np.random.default_rng(seed).integers(0, 9, (4, 4)) + np.diag([9, 1, 4, 2])
    return table * (np.arange(4) != (seed or 4))[:, None]


def _f1(table: np.ndarray) -> np.ndarray:
    return 2 * np.diag(table) / np.maximum(table.sum(0) + table.sum(1), 1)


class type_entropy(Exercise):
    """Entropy of the types in a list, in nats."""

    solved = "right: 0 for a head that never changes, ln 5 for one that shows all five types alike."
    means = "A head whose maps change their type from text to text has no type of its own, only a mixture."
    leads_on = "Would you expect entropy to fall or to rise with the length of the texts?"
    hints = (
        "`np.unique(names, return_counts=True)` gives the counts; divide by their sum.",
        "Sum -p ln p with the natural logarithm; what never occurs is not among the counts.",
    )

    cases = ((["a", "b"] * 3,), (["a", "a", "a", "b"],), (["c"] * 5,), (["a", "b", "c", "d", "e"],))

    def right(names):
        """for {0} it should be {wanted:.3f}: minus the sum of p ln p over the names that occur."""
        return entr(np.unique(names, return_counts=True)[1] / len(names)).sum()

    def in_bits(names):
        """that is in bits; this book counts in nats, with the natural logarithm."""
        return type_entropy.right(names) / np.log(2)


class macro_f1(Exercise):
    """F1 averaged over the types that occur, from a table of confusions."""

    solved = "right, also where a type never occurs."
    means = "Each type counts alike, so a rare type that is never found costs as much as a frequent one."
    leads_on = "Which of two classifiers would you prefer: the one with higher accuracy, or with higher macro-F1?"
    hints = (
        "Of type `t`: hits are `table[t, t]`, labelled so `table[t].sum()`, given so `table[:, t].sum()`.",
        "F1 is 2 · hits / (labelled + given). Take the mean over rows whose sum is above 0.",
    )

    cases = tuple((_confusions(seed),) for seed in range(4))

    def right(table):
        """F1 of a type is 2 · hits / (labelled so + given so); average it over the rows that are not empty."""
        return _f1(table)[table.sum(1) > 0].mean()

    def accuracy(table):
        """that is the accuracy; F1 is computed for each type, and then averaged."""
        return np.trace(table) / table.sum()

    def empty_too(table):
        """a type without any labelled map (a row of zeros) should be left out of the mean."""
        return _f1(table).mean()


check, hint, progress = desk(globals())
