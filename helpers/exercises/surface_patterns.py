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
    return {
        "it should be the mean of the rows' -Σ p ln p, divided by ln n.": right,
        "a head that looks at one token should score 0; take 0 · ln 0 as 0.": undefined,
        "even attention to 8 tokens is ln 8 = 2.079 nats; divide by that, and it is 1.": entropy.mean(),
        "every row of an even map has the entropy ln 8; take the mean over rows, not the sum.": right * len(weights),
        "it returns a number for each row; take their mean.": entropy / most,
        "an even map should score 1, and yours has {got:.0f}: the logarithm of a weight is negative, so the sum needs a minus.": -right,
    }


def _pairs(chosen: np.ndarray, start: int = 1) -> set:
    """(layer, head) where an array [layer, head] is true."""
    return set(map(tuple, (np.argwhere(chosen) + start).tolist()))


@exercise([tuple(np.random.default_rng(0).random((2, 3, 3, 4)) / 3)])
def sinks(even, odd):
    """Heads that give more than half of their attention to three kinds of token, in both halves of the articles."""
    chosen, confirmed = (half.sum(0) > 0.5 for half in (even, odd))
    right, from_0 = _pairs(chosen & confirmed), _pairs(chosen & confirmed, start=0)
    only_chosen = _pairs(chosen)
    averaged = _pairs((even + odd).sum(0) > 1)
    one_place = _pairs(np.minimum(even.max(0), odd.max(0)) > 0.5)
    return {
        "it lists {got}; wanted are the heads whose three shares sum to more than 0.5 in both halves.": right,
        "the heads are right, but counted from 0; the book counts layers and heads from 1.": from_0,
        "the heads are right, but named the other way round; write (layer, head).": {pair[::-1] for pair in right},
        "these are the heads chosen on the even articles; list those that stay above a half on the odd ones.": only_chosen,
        "the two halves are averaged; a head that one half alone lifts above 0.5 should not pass.": averaged,
        "no head here gives a single place more than 0.5; add the three shares before you compare.": one_place,
    }


check, hint, progress = desk("surface_patterns", breadth, sinks)
