"""The exercises of chapter 02."""

import numpy as np
from scipy.special import entr

from helpers.chapters.checks import Exercise, maps
from helpers.chapters.progress import desk


class breadth(Exercise):
    """Mean entropy of a map's rows, as a share of the greatest there can be."""

    solved = "right: 0 is a head that looks at one token, 1 a head that looks everywhere alike."
    means = "Dividing by ln n lets maps of short and of long inputs stand on one scale."
    leads_on = "Can a head be broad on average although each of its rows is narrow or even?"
    hints = (
        "For p = 0 the term is 0, but `np.log(0)` is minus infinity: leave these weights out, or use `scipy.special.entr`.",
        "Sum -p ln p over each row, take the mean over rows, divide by the logarithm of the number of tokens.",
    )

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

    def row_by_row(weights):
        """it returns a number for each row; take their mean."""
        return entr(weights).sum(-1) / np.log(len(weights))

    def negative(weights):
        """an even map should score 1, and yours has {got:.0f}: the logarithm of a weight is negative, so the sum needs a minus."""
        return -entr(weights).sum(-1).mean() / np.log(len(weights))


class sinks(Exercise):
    """Heads that give more than half of their attention to three kinds of token, in both halves of the articles."""

    solved = "right, chosen on one half and confirmed on the other, counted from 1."
    means = "What was picked on one half had to hold on the other, so luck alone names no head."
    leads_on = "How many of the heads picked on the even articles does the second half lose, and what would that number be if the shares were noise?"
    hints = (
        "`even.sum(0)` is what a head gives to all three kinds of token together.",
        "Both halves must be above 0.5 by themselves: combine two arrays of true and false with `&`, then add 1 to what `np.argwhere` lists.",
    )

    cases = (tuple(np.random.default_rng(0).random((2, 3, 3, 4)) / 3),)

    def right(even, odd):
        """it lists {got}; wanted are the heads whose three shares sum to more than 0.5 in both halves."""
        return pairs((even.sum(0) > 0.5) & (odd.sum(0) > 0.5))

    def from_0(even, odd):
        """the heads are right, but counted from 0; the book counts layers and heads from 1."""
        return {(layer - 1, head - 1) for layer, head in sinks.right(even, odd)}

    def head_first(even, odd):
        """the heads are right, but named the other way round; write (layer, head)."""
        return {(head, layer) for layer, head in sinks.right(even, odd)}

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


check, hint, progress = desk(globals())
