"""You ask whether key words receive more attention, head by head and together, and what of that a rule without attention lacks.

After {cite:t}`stefaniknd`.
"""

import numpy as np

from helpers.exercises.checks import desk, exercise, maps


def _with_special(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A map of eight tokens, of which the first, the last and one between are special and get much."""
    weights, special = maps(8, seed), np.isin(np.arange(8), (0, 3 + seed % 3, 7))
    weights[:, special] += 0.4
    return weights / weights.sum(-1, keepdims=True), special


@exercise([_with_special(seed) for seed in range(4)])
def received_without_special(weights, special):
    """Attention that each word receives from words alone."""
    kept = weights[~special][:, ~special]
    return {"right": (kept / kept.sum(-1, keepdims=True)).sum(0), "not_rescaled": kept.sum(0)}


@exercise([(np.random.default_rng(seed).permutation(12) / 12, np.arange(12) % 4 == seed % 4) for seed in range(5)])
def average_precision(scores, key):
    """Average precision of a ranking of words."""
    hits, from_lowest = key[np.argsort(-scores)], key[np.argsort(scores)]
    precision, upwards = (order.cumsum() / np.arange(1, 13) for order in (hits, from_lowest))
    return {
        "right": precision[hits].mean(),
        "from_lowest": upwards[from_lowest].mean(),
        "all_ranks": precision.mean(),
    }


check, hint, progress = desk("keywords", received_without_special, average_precision)
