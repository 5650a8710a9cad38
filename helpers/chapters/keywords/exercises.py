"""The exercises of chapter 13."""

import numpy as np

from helpers.chapters.checks import Exercise, checker, maps


def _with_special(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A map of eight tokens, of which the first, the last and one between are special and get much."""
    weights, special = maps(8, seed), np.isin(np.arange(8), (0, 3 + seed % 3, 7))
    weights[:, special] += 0.4
    return weights / weights.sum(-1, keepdims=True), special


class received_without_special(Exercise):
    solved = "right: now every document hands out as much as it has ordinary tokens."

    cases = tuple(_with_special(seed) for seed in range(4))

    def right(weights, special):
        """cut rows and columns of special tokens, rescale each row, then sum the columns."""
        return (weights / weights[:, ~special].sum(-1, keepdims=True))[~special][:, ~special].sum(0)

    def not_rescaled(weights, special):
        """the rows do not sum to 1 any more; divide each by what is left of it."""
        return weights[~special][:, ~special].sum(0)


class average_precision(Exercise):
    solved = "right: 1 when all key words come first."

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


check = checker(globals())
