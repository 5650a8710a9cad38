"""Checks for the exercises: each says what is right, or what is wrong and where to look."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Verdict:
    """What a check found, shown under the exercise."""

    exercise: str
    solved: bool
    message: str

    def _repr_markdown_(self) -> str:
        return f"{'✅' if self.solved else '⬜'} **{self.exercise}**: {self.message}"

    def __repr__(self) -> str:
        return f"{'solved' if self.solved else 'open'}: {self.exercise}: {self.message}"


class _Wrong(Exception):
    """An answer that is not right yet."""


_CHECKS: dict[str, Callable[[Callable], str]] = {}


def check(exercise: str, answer: Callable) -> Verdict:
    """Try an answer on cases it has not seen.

    Args:
        exercise: its name, as printed in the chapter.
        answer: the reader's function.
    """
    if exercise not in _CHECKS:
        raise ValueError(f"There is no exercise {exercise!r}. There are: {', '.join(_CHECKS)}.")
    try:
        return Verdict(exercise, True, _CHECKS[exercise](answer))
    except NotImplementedError:
        return Verdict(
            exercise, False, "not solved yet. Replace the `raise` with your own lines and run the cell again."
        )
    except _Wrong as wrong:
        return Verdict(exercise, False, str(wrong))
    except Exception as error:  # a reader's code may fail in any way; say how instead of stopping the page
        return Verdict(exercise, False, f"your function raised {type(error).__name__}: {error}")


def _exercise(test: Callable[[Callable], str]) -> Callable[[Callable], str]:
    _CHECKS[test.__name__] = test
    return test


def _close(got: object, wanted: np.ndarray | float, complaint: str) -> None:
    if got is None:
        raise _Wrong("your function returns None; does it end in `return`?")
    got = np.asarray(got, dtype=np.float64)
    if got.shape != np.shape(wanted):
        raise _Wrong(f"the result has shape {got.shape}, wanted is {np.shape(wanted)}.")
    if not np.allclose(got, wanted, atol=1e-6):
        raise _Wrong(complaint)


def _maps(size: int, seed: int) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=(size, size)) * 2
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


# ------------------------------------------------------------------ chapter 01


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
    _close(
        answer(large),
        np.array([[0.5, 0.5]]),
        "it overflows for large scores; subtract each row's maximum first.",
    )
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


# ------------------------------------------------------------------ chapter 02


@_exercise
def to_previous(answer: Callable) -> str:
    """Chapter 02: mean attention to the previous token."""
    weights = np.zeros((4, 4))
    weights[0, 0] = weights[1, 0] = weights[2, 1] = weights[3, 2] = 1
    _close(
        answer(weights),
        1.0,
        "a head that only looks back one token should score 1. Did you take the diagonal above the main one? That is the next token. The first token has no previous one: average over the others.",
    )
    for seed in range(5):
        weights = _maps(7, seed)
        _close(
            answer(weights),
            float(np.mean([weights[i, i - 1] for i in range(1, 7)])),
            "it is right for a pure head but not for a mixed one; average weights[i, i - 1] over i = 1, 2, ….",
        )
    return "right, and not mixed up with the next token."


@_exercise
def entropy(answer: Callable) -> str:
    """Chapter 02: entropy of a row, with 0 ln 0 = 0."""
    _close(
        answer(np.array([0.0, 1.0, 0.0])),
        0.0,
        "all attention on one token is an entropy of 0; take 0 · ln 0 as 0.",
    )
    _close(
        answer(np.full(8, 1 / 8)),
        float(np.log(8)),
        "equal attention to 8 tokens is ln 8 = 2.079 nats; use the natural logarithm.",
    )
    row = _maps(6, 3)[0]
    _close(answer(row), float(-(row * np.log(row)).sum()), "it should be -Σ p ln p.")
    return "right, in nats, also where a weight is 0."


@_exercise
def sinks(answer: Callable) -> str:
    """Chapter 02: heads with over half of their attention on tokens without content."""
    rng = np.random.default_rng(0)
    shares = {name: rng.random((3, 4)) / 3 for name in ("cls", "sep", "stop")}
    total = sum(shares.values())
    wanted = [(int(layer) + 1, int(head) + 1) for layer, head in np.argwhere(total > 0.5)]
    got = answer(shares["cls"], shares["sep"], shares["stop"])
    if got is None:
        raise _Wrong("your function returns None; does it end in `return`?")
    got = [tuple(map(int, pair)) for pair in got]
    if sorted((a + 1, b + 1) for a, b in got) == wanted:
        raise _Wrong("the heads are right, but counted from 0; the book counts layers and heads from 1.")
    if sorted(got) != wanted:
        raise _Wrong(
            f"it lists {len(got)} heads, wanted are {len(wanted)}: those whose three shares sum to more than 0.5."
        )
    return "right, counted from 1."
