"""The exercises of chapter 14."""

import numpy as np

from helpers.chapters.checks import Exercise, maps
from helpers.chapters.progress import desk


def _inputs(seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights of three inputs, and which of their tokens are of the kind: more of them in a longer input."""
    rng = np.random.default_rng(seed)
    return [(maps(n, seed + n), rng.permutation(n) < 1 + (n > 5)) for n in rng.integers(3, 9, 3).tolist()]


def _replicates(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Replicates of two models' numbers, both larger for the same draws of texts."""
    rng = np.random.default_rng(seed)
    common = 0.05 * rng.normal(size=400)
    return 0.7 + common + 0.01 * rng.normal(size=400), 0.66 + common


def _ends(replicates: np.ndarray) -> np.ndarray:
    return np.percentile(replicates, (2.5, 97.5))


class even_multiple(Exercise):
    """Attention to a kind of token as a multiple of even attention."""

    solved = "right: 1 means no preference, whatever the model and the length of its inputs."
    means = "A multiple of the even share lets models with other tokenizers stand side by side."
    leads_on = "What is the largest value it can have, and for which head?"
    hints = (
        "Above the line: the sum of all weights to tokens of the kind, over all inputs.",
        "Below the line: a head with equal weights gives each row `kind.sum() / n`, and an input has n rows.",
    )

    cases = tuple((_inputs(seed),) for seed in range(4))

    def right(inputs):
        """it should be the mean share of a row, over the mean even share of a row."""
        return sum(w[:, kind].sum() for w, kind in inputs) / sum(kind.sum() for _, kind in inputs)

    def share(inputs):
        """that is the share itself; divide it by what a head with equal weights would give."""
        return sum(w[:, kind].sum() for w, kind in inputs) / sum(len(w) for w, _ in inputs)

    def mean_of_multiples(inputs):
        """that is a mean of multiples, input by input; sum over all rows first, then divide once."""
        return np.mean([w[:, kind].sum() / kind.sum() for w, kind in inputs])


class paired_gap(Exercise):
    """The 95 % interval of a paired difference from replicates."""

    solved = "right: what both models owe to the texts drawn cancels out."
    means = (
        "What the draw of texts does to both models cancels in their difference, which is why pairs need fewer texts."
    )
    leads_on = "When would pairing make the interval wider?"
    hints = (
        "Subtract replicate by replicate first: `one - other`.",
        "`np.percentile(…, (2.5, 97.5))` of these differences.",
    )

    cases = tuple(_replicates(seed) for seed in range(4))

    def right(one, other):
        """it should be the 2.5th and 97.5th percentile of one - other."""
        return _ends(one - other)

    def ends(one, other):
        """these are differences of ends; subtract replicate by replicate, then take percentiles."""
        return _ends(one) - _ends(other)

    def unrelated(one, other):
        """that treats the two as unrelated; the same texts were drawn for both, so subtract first."""
        return _ends(one) - _ends(other)[::-1]


check, hint, progress = desk(globals())
