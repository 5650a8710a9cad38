"""You compute a head by hand from the model's weights, and look at all of them at once.

After {cite:t}`vaswani2017`, {cite:t}`devlin2019`.
"""

import numpy as np
from scipy.special import softmax

from helpers.exercises.checks import desk, exercise, maps


def _head(seed: int, size: float = 1) -> tuple:
    """Hidden states [4, 6], and matrix [6, 3] and bias [3] of queries, keys and values."""
    rng = np.random.default_rng(seed)
    return size * rng.normal(size=(4, 6)), *((rng.normal(size=(6, 3)), rng.normal(size=3)) for _ in range(3))


def _naive(scores: np.ndarray, axis: int) -> np.ndarray:
    return np.exp(scores) / np.exp(scores).sum(axis, keepdims=True)


@exercise([_head(0), _head(1), _head(2, size=60)])
def attend(x, query, key, value):
    """Weights and outputs of one head."""

    def head(d=3, bias=1, axis=-1, rows=softmax):
        q, k, v = (x @ matrix + bias * shift for matrix, shift in (query, key, value))
        weights = rows(q @ k.T / np.sqrt(d), axis)
        return weights, weights @ v

    right, naive = head(), head(rows=_naive)
    return {
        "the weights or the outputs are wrong. Take the steps of the drawing one by one: q, k, v; scores; softmax; sum.": right,
        "the scores are not divided by √d.": head(d=1),
        "the scores are divided by the root of the width of `x`; d is the width of a query.": head(d=6),
        "the columns of the weights sum to 1, not the rows; check the axis of the softmax.": head(axis=0),
        "the biases are missing: q = x W + b.": head(bias=0),
        "it overflows for large scores; subtract each row's largest score first, which changes no weight.": naive,
        "it returns the outputs alone; return the pair, first the weights, then the outputs.": tuple(right[1]),
        "the two are in the wrong order; return first the weights, then the outputs.": right[::-1],
    }


def _beyond_the_mask(results):
    if np.isnan(results[-1]).any():
        return "a row is 0 divided by 0: a token still sees itself, so the diagonal stays."
    if not np.allclose(np.triu(results[-1], 1), 0):
        return "some token still sees a later one; `np.tril` keeps the lower triangle."


@exercise([(maps(4, seed),) for seed in range(3)], remark=_beyond_the_mask)
def causal_attention(weights):
    """The map of a head that sees nothing after each token."""
    past = np.tril(weights)
    by_column = past / past.sum(0)
    again = softmax(np.where(past, weights, -np.inf), axis=-1)
    return {
        "the weights that remain should keep their proportions.": past / past.sum(-1, keepdims=True),
        "the rows do not sum to 1 any more; divide each by its sum.": past,
        "the columns sum to 1, not the rows; `keepdims=True` with `axis=1` divides each row by its own sum.": by_column,
        "a second softmax over the weights flattens them; they are weights already, so divide by what is left.": again,
    }


check, hint, progress = desk("transformer_refresher", attend, causal_attention)
