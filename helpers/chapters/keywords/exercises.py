"""The exercises of chapter 13."""

import numpy as np

from helpers.chapters.checks import Exercise, maps
from helpers.chapters.progress import desk


def _with_special(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A map of eight tokens, of which the first, the last and one between are special and get much."""
    weights, special = maps(8, seed), np.isin(np.arange(8), (0, 3 + seed % 3, 7))
    weights[:, special] += 0.4
    return weights / weights.sum(-1, keepdims=True), special


class received_without_special(Exercise):
    """Attention that each word receives from words alone."""

    solved = "right: now every document hands out as much as it has ordinary tokens."
    means = "Once special tokens are out, documents hand out the same for each word, and words of different documents can be compared."
    leads_on = "Which words gain most by this: those of short documents or of long ones?"
    hints = (
        "`weights[~special][:, ~special]` cuts rows and columns.",
        "Divide each row of what is left by its sum, then sum the columns.",
    )

    cases = tuple(_with_special(seed) for seed in range(4))

    def right(weights, special):
        """cut rows and columns of special tokens, rescale each row, then sum the columns."""
        return (weights / weights[:, ~special].sum(-1, keepdims=True))[~special][:, ~special].sum(0)

    def not_rescaled(weights, special):
        """the rows do not sum to 1 any more; divide each by what is left of it."""
        return weights[~special][:, ~special].sum(0)


class average_precision(Exercise):
    """Average precision of a ranking of words."""

    solved = "right: 1 when all key words come first."
    means = "Average precision looks at the whole ranking, so no number of keywords has to be chosen."
    leads_on = "What does it become when the ranking is random and a quarter of the words are key words?"
    hints = (
        "`key[np.argsort(-scores)]` is the ranking as true and false.",
        "Divide its `cumsum()` by 1, 2, 3, …, and take the mean where the ranking is true.",
    )

    cases = tuple(
        (np.random.default_rng(seed).permutation(12) / 12, np.arange(12) % 4 == seed % 4) for seed in range(5)
    )

    def right(scores, key):
        """it should be the mean, over key words, of hits so far / words so far."""
        hits = key[np.argsort(-scores)]
        return (hits.cumsum() / np.arange(1, 13))[hits].mean()

    def lowest_first(scores, key):
        """you ranked from the lowest score; the highest comes first."""
        return average_precision.right(-scores, key)

    def at_all_ranks(scores, key):
        """that is the mean over all ranks; only the ranks of key words count."""
        return (key[np.argsort(-scores)].cumsum() / np.arange(1, 13)).mean()


check, hint, progress = desk(globals())
