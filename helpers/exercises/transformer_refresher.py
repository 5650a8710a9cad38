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


def _overflowing(scores: np.ndarray, axis: int) -> np.ndarray:
    return np.exp(scores) / np.exp(scores).sum(axis, keepdims=True)


@exercise([_head(0), _head(1), _head(2, size=60)])
def attend(x, query, key, value):
    """Weights and outputs of one head."""

    def head(d=3, bias=1, axis=-1, rows=softmax):
        q, k, v = (x @ matrix + bias * shift for matrix, shift in (query, key, value))
        weights = rows(q @ k.T / np.sqrt(d), axis)
        return weights, weights @ v

    right = head()
    return {
        "right": right,
        "undivided": head(d=1),
        "by_width": head(d=6),
        "columns": head(axis=0),
        "no_bias": head(bias=0),
        "overflow": head(rows=_overflowing),
        "outputs": tuple(right[1]),
        "turned": right[::-1],
    }


def _beyond_the_mask(results):
    if np.isnan(results[-1]).any():
        return "diagonal_gone"
    if not np.allclose(np.triu(results[-1], 1), 0):
        return "sees_later"


@exercise([(maps(4, seed),) for seed in range(3)], remark=_beyond_the_mask)
def causal_attention(weights):
    """The map of a head that sees nothing after each token."""
    past = np.tril(weights)
    again = softmax(np.where(past, weights, -np.inf), axis=-1)
    right = past / past.sum(-1, keepdims=True)
    return {"right": right, "not_rescaled": past, "by_column": past / past.sum(0), "again": again}


check, hint, progress = desk("transformer_refresher", attend, causal_attention)
