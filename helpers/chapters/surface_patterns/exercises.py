"""The exercises of chapter 02."""

import numpy as np
from scipy.special import entr

from helpers.chapters.checks import Exercise, checker, maps


class breadth(Exercise):
    solved = "right: 0 is a head that looks at one token, 1 a head that looks everywhere alike."

    cases = ((np.eye(4)[[0, 0, 1, 2]],), (np.full((8, 8), 1 / 8),), (maps(6, 3),))

    def right(weights):
        """it should be the mean of the rows' -Σ p ln p, divided by ln n."""
        return entr(weights).sum(-1).mean() / np.log(len(weights))

    def undefined_at_0(weights):
        """a head that looks at one token should score 0; take 0 · ln 0 as 0."""
        return -(weights * np.log(weights)).sum(-1).mean() / np.log(len(weights))

    def in_nats(weights):
        """even attention to 8 tokens is ln 8 = 2.079 nats; divide by that, and it is 1."""
        return entr(weights).sum(-1).mean()

    def not_averaged(weights):
        """every row of an even map has the entropy ln 8; take the mean over rows, not the sum."""
        return entr(weights).sum() / np.log(len(weights))


class sinks(Exercise):
    solved = "right, chosen on one half and confirmed on the other, counted from 1."

    cases = (tuple(np.random.default_rng(0).random((2, 3, 3, 4)) / 3),)

    def right(even, odd):
        """it lists {got}; wanted are the heads whose three shares sum to more than 0.5 in both halves."""
        return pairs((even.sum(0) > 0.5) & (odd.sum(0) > 0.5))

    def from_0(even, odd):
        """the heads are right, but counted from 0; the book counts layers and heads from 1."""
        return {(layer - 1, head - 1) for layer, head in sinks.right(even, odd)}

    def only_chosen(even, odd):
        """these are the heads chosen on the even articles; list those that stay above a half on the odd ones."""
        return pairs(even.sum(0) > 0.5)

    def averaged(even, odd):
        """the two halves are averaged; a head that one half alone lifts above 0.5 should not pass."""
        return pairs((even.sum(0) + odd.sum(0)) / 2 > 0.5)

    def one_place(even, odd):
        """no head here gives a single place more than 0.5; add the three shares before you compare."""
        return pairs((even.max(0) > 0.5) & (odd.max(0) > 0.5))


def pairs(chosen):
    """(layer, head), from 1, where an array [layer, head] is true."""
    return {(layer + 1, head + 1) for layer, head in np.argwhere(chosen).tolist()}


check = checker(globals())
