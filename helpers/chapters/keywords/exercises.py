"""Checks for the exercises of chapter 13."""

from collections.abc import Callable

import numpy as np

from helpers.chapters.checks import _close, _exercise, _maps, _Wrong


def _with_special(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A map of eight tokens, of which the first, the last and one between are special and get much."""
    weights = _maps(8, seed)
    special = np.zeros(8, bool)
    special[[0, 3 + seed % 3, 7]] = True
    weights[:, special] += 0.4
    return weights / weights.sum(-1, keepdims=True), special


@_exercise
def attention_received(answer: Callable) -> str:
    """Chapter 13: column sums over the rows of ordinary tokens."""
    for seed in range(4):
        weights, special = _with_special(seed)
        got = answer(weights, special)
        if got is not None and np.shape(got) == (8,):
            if np.allclose(got, weights.sum(0)):
                raise _Wrong("special tokens attend in your sum; leave their rows out.")
            if np.allclose(got, weights[:, ~special].sum(1)):
                raise _Wrong(
                    "you summed over a row, which is what a token gives; what it receives stands in its column."
                )
        _close(got, weights[~special].sum(0), "it should be the column sums over the rows of ordinary tokens.")
    return "right: columns receive, and special tokens are not asked."


@_exercise
def received_without_special(answer: Callable) -> str:
    """Chapter 13: the same once rows are rescaled over ordinary tokens."""
    for seed in range(4):
        weights, special = _with_special(seed)
        kept = weights[~special][:, ~special]
        got = answer(weights, special)
        if got is not None and np.shape(got) == (5,) and np.allclose(got, kept.sum(0)):
            raise _Wrong("the rows do not sum to 1 any more; divide each by what is left of it.")
        _close(
            got,
            (kept / kept.sum(-1, keepdims=True)).sum(0),
            "cut rows and columns of special tokens, rescale each row, then sum the columns.",
        )
    return "right: now every document hands out as much as it has ordinary tokens."


@_exercise
def average_precision(answer: Callable) -> str:
    """Chapter 13: mean precision at the ranks of the key words."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        scores, key = rng.permutation(12) / 12, np.arange(12) % 4 == seed % 4
        hits = key[np.argsort(-scores)]
        wanted = float((hits.cumsum() / np.arange(1, 13))[hits].mean())
        got = answer(scores, key)
        rising = key[np.argsort(scores)]
        if got is not None and np.isclose(got, (rising.cumsum() / np.arange(1, 13))[rising].mean()):
            raise _Wrong("you ranked from the lowest score; the highest comes first.")
        if got is not None and np.isclose(got, (hits.cumsum() / np.arange(1, 13)).mean()):
            raise _Wrong("that is the mean over all ranks; only the ranks of key words count.")
        _close(got, wanted, "it should be the mean, over key words, of hits so far / words so far.")
    return "right: 1 when all key words come first."
