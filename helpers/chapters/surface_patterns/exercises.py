"""The exercises of chapter 02."""

import numpy as np
from scipy.special import entr

from helpers.chapters.checks import Exercise, checker, maps


class to_previous(Exercise):
    solved = "right, and not mixed up with the next token."

    cases = ((np.eye(4)[[0, 0, 1, 2]],), *((maps(7, seed),) for seed in range(5)))

    def right(weights):
        """average weights[i, i - 1] over i = 1, 2, …; a head that only looks back one token scores 1."""
        return np.diagonal(weights, -1).mean()

    def to_next(weights):
        """a head that only looks back one token should score 1. Did you take the diagonal above the main one? That is the next token."""
        return np.diagonal(weights, 1).mean()

    def first_too(weights):
        """a head that only looks back one token should score 1. The first token has no previous one: average over the others."""
        return np.diagonal(weights, -1).sum() / len(weights)


class entropy(Exercise):
    solved = "right, in nats, also where a weight is 0."

    cases = ((np.array([0.0, 1.0, 0.0]),), (np.full(8, 1 / 8),), (maps(6, 3)[0],))

    def right(row):
        """it should be -Σ p ln p."""
        return entr(row).sum()

    def undefined_at_0(row):
        """all attention on one token is an entropy of 0; take 0 · ln 0 as 0."""
        return -(row * np.log(row)).sum()

    def in_bits(row):
        """equal attention to 8 tokens is ln 8 = 2.079 nats; use the natural logarithm."""
        return entr(row).sum() / np.log(2)


class sinks(Exercise):
    solved = "right, counted from 1."

    cases = (tuple(np.random.default_rng(0).random((3, 3, 4)) / 3),)

    def right(cls, sep, stop):
        """it lists {got}; wanted are the heads whose three shares sum to more than 0.5."""
        return {tuple(pair) for pair in (np.argwhere(cls + sep + stop > 0.5) + 1).tolist()}

    def from_0(*case):
        """the heads are right, but counted from 0; the book counts layers and heads from 1."""
        return {(layer - 1, head - 1) for layer, head in sinks.right(*case)}


check = checker(globals())
