"""You measure position, special tokens, punctuation and entropy for every head, and name specialists by a rule.

After {cite:t}`clark2019`, section 3.
"""

import numpy as np
from scipy.special import entr

from helpers.exercises.checks import desk, exercise, maps


@exercise([(np.eye(4)[[0, 0, 1, 2]],), (np.full((8, 8), 1 / 8),), (maps(6, 3),)])
def breadth(weights):
    """Mean entropy of a map's rows, as a share of the greatest there can be."""
    entropy, most = entr(weights).sum(-1), np.log(len(weights))
    right = entropy.mean() / most
    undefined = -(weights * np.log(weights)).sum(-1).mean() / most
    results = {"right": right, "undefined": undefined, "undivided": entropy.mean(), "sum": right * len(weights)}
    return results | {"by_row": entropy / most, "negative": -right}


def _pairs(chosen: np.ndarray, start: int = 1) -> set:
    """(layer, head) where an array [layer, head] is true."""
    return set(map(tuple, (np.argwhere(chosen) + start).tolist()))


@exercise([tuple(np.random.default_rng(0).random((2, 3, 3, 4)) / 3)])
def past_words(even, odd):
    """Heads that give more than half of their attention to three kinds of token, in both halves of the articles."""
    chosen, confirmed = (half.sum(0) > 0.5 for half in (even, odd))
    right = _pairs(chosen & confirmed)
    return {
        "right": right,
        "from_0": _pairs(chosen & confirmed, start=0),
        "turned": {pair[::-1] for pair in right},
        "only_chosen": _pairs(chosen),
        "averaged": _pairs((even + odd).sum(0) > 1),
        "one_place": _pairs(np.minimum(even.max(0), odd.max(0)) > 0.5),
    }


check, hint, progress = desk("surface_patterns", breadth, past_words)
