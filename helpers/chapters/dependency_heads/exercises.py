"""Checks for the exercises of chapter 04."""

from collections.abc import Callable

import numpy as np

from helpers.chapters.checks import _close, _exercise, _maps, _Wrong


@_exercise
def pool_words(answer: Callable) -> str:
    """Chapter 04: token-level attention as word-level attention."""
    for seed, words in enumerate(([0, 1, 1, 2], [0, 0, 1, 2, 2, 2], [0, 1, 2])):
        weights = _maps(len(words), seed)
        size = max(words) + 1
        wanted = np.zeros((size, size))
        for i, row in enumerate(words):
            for j, column in enumerate(words):
                wanted[row, column] += weights[i, j] / words.count(row)
        got = answer(weights, words)
        if got is not None and np.shape(got) == wanted.shape and not np.allclose(np.asarray(got).sum(-1), 1):
            raise _Wrong(
                "the rows do not sum to 1: take the sum over the attended pieces, but the mean over the attending ones."
            )
        _close(got, wanted, "the rows sum to 1, but the weights differ; is it the mean over a word's own pieces?")
    return "right: attention to a word is a sum, attention from it a mean, and rows still sum to 1."


@_exercise
def offset_accuracy(answer: Callable) -> str:
    """Chapter 04: how often the governor stands at a fixed distance."""
    rng = np.random.default_rng(0)
    for offset in (1, -2, 3):
        sentences = []
        for _ in range(6):
            n = int(rng.integers(2, 8))
            root = int(rng.integers(0, n))
            sentences.append(
                [-1 if w == root else int(rng.choice([g for g in range(n) if g != w])) for w in range(n)]
            )
        asked = [(w, g) for s in sentences for w, g in enumerate(s) if g >= 0]
        got = answer(sentences, offset)
        if got is not None and np.isclose(
            got, np.mean([w + offset == g for s in sentences for w, g in enumerate(s)])
        ):
            raise _Wrong("the root has no governor (-1): leave it out of the count.")
        _close(
            got,
            float(np.mean([w + offset == g for w, g in asked])),
            f"for offset {offset} it should be the share of words w with governor w + offset.",
        )
    return "right, roots left out."


@_exercise
def held_out(answer: Callable) -> str:
    """Chapter 04: choose on one part, score on the other."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        dev, test = rng.random((6, 12)), rng.random((6, 12))
        layer, head = np.unravel_index(dev.argmax(), dev.shape)
        got = answer(dev, test)
        if got is not None and np.isclose(got, test.max()):
            raise _Wrong("that is the best test accuracy: the head was chosen on the data that scores it.")
        if got is not None and np.isclose(got, dev.max()):
            raise _Wrong("that is the accuracy on the part on which the head was chosen.")
        _close(
            got, float(test[layer, head]), "take the head that is best in `dev` and return its accuracy in `test`."
        )
    return "right: chosen on one part, scored on the other."
