"""You name single attention maps by five types: without looking, by two numbers, and with classifiers judged by labelled maps.

After {cite:t}`kovaleva2019`.
"""

import numpy as np
from scipy.special import entr

from helpers.exercises.checks import desk, exercise


def _confusions(seed: int) -> np.ndarray:
    """A table in which one type is never the label, but for seed 0."""
    table = np.random.default_rng(seed).integers(0, 9, (4, 4)) + np.diag([9, 1, 4, 2])
    return table * (np.arange(4) != (seed or 4))[:, None]


@exercise([(list(names),) for names in ("ababab", "aaab", "ccccc", "abcde")])
def type_entropy(names):
    """Entropy of the types in a list, in nats."""
    right = entr(np.unique(names, return_counts=True)[1] / len(names)).sum()
    return {
        f"for {names} it should be {right:.3f}: minus the sum of p ln p over the names that occur.": right,
        "that is in bits; this book counts in nats, with the natural logarithm.": right / np.log(2),
    }


@exercise([(_confusions(seed),) for seed in range(4)])
def macro_f1(table):
    """F1 averaged over the types that occur, from a table of confusions."""
    labelled, hits = table.sum(1), np.diag(table)
    f1 = 2 * hits / np.maximum(labelled + table.sum(0), 1)
    right = f1[labelled > 0].mean()
    return {
        "F1 of a type is 2 · hits / (labelled so + given so); average it over the rows that are not empty.": right,
        "that is the accuracy; F1 is computed for each type, and then averaged.": hits.sum() / labelled.sum(),
        "a type without any labelled map (a row of zeros) should be left out of the mean.": f1.mean(),
    }


check, hint, progress = desk("pattern_types", type_entropy, macro_f1)
