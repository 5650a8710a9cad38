"""Checks for the exercises of chapter 02."""

from collections.abc import Callable

import numpy as np

from helpers.chapters.checks import _close, _exercise, _maps, _Wrong


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
        answer(np.array([0.0, 1.0, 0.0])), 0.0, "all attention on one token is an entropy of 0; take 0 · ln 0 as 0."
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
