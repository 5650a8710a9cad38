"""Checks for the exercises of chapter 01."""

from collections.abc import Callable

import numpy as np

from helpers.chapters.checks import _close, _exercise, _maps, _Wrong


@_exercise
def softmax(answer: Callable) -> str:
    """Chapter 01: rows of scores as weights, without overflow."""
    scores = np.array([[0.0, 1.0, 2.0], [3.0, 3.0, 3.0]])
    weights = np.exp(scores)
    _close(
        answer(scores),
        weights / weights.sum(-1, keepdims=True),
        "rows should be exp(score) divided by their own sum; check the axis.",
    )
    large = np.array([[1000.0, 1000.0]])
    _close(answer(large), np.array([[0.5, 0.5]]), "it overflows for large scores; subtract each row's maximum first.")
    return "right, also for scores of 1,000."


@_exercise
def strongest(answer: Callable) -> str:
    """Chapter 01: the most-attended word of a row."""
    tokens = ["[CLS]", "a", "b", "c", "[SEP]"]
    for seed in range(5):
        weights = _maps(5, seed)
        ordinary = [1, 2, 3]
        for query in range(5):
            wanted = tokens[ordinary[int(weights[query, ordinary].argmax())]]
            got = answer(weights, tokens, query)
            if got != wanted:
                hint = " It is a special token: leave those out." if got in ("[CLS]", "[SEP]") else ""
                hint = hint or (" Rows are attending tokens, columns attended ones." if seed else "")
                raise _Wrong(f"for {tokens[query]!r} it says {got!r}, not {wanted!r}.{hint}")
    return "right for 25 rows."


@_exercise
def causal_attention(answer: Callable) -> str:
    """Chapter 01: an encoder's weights under a causal mask."""
    for seed in range(3):
        weights = _maps(4, seed)
        wanted = np.tril(weights)
        wanted /= wanted.sum(-1, keepdims=True)
        got = answer(weights)
        if got is not None and np.shape(got) == (4, 4):
            if np.any(np.triu(np.asarray(got), 1) != 0):
                raise _Wrong("some token still sees a later one; `np.tril` keeps the lower triangle.")
            if not np.allclose(np.asarray(got).sum(-1), 1):
                raise _Wrong("the rows do not sum to 1 any more; divide each by its sum.")
        _close(got, wanted, "the weights that remain should keep their proportions.")
    return "right: the first token can only see itself, and every row sums to 1."
