"""Checks for the exercises of chapter 12."""

from collections.abc import Callable

import numpy as np

from helpers.chapters.checks import _close, _exercise, _Wrong


@_exercise
def expected_layer(answer: Callable) -> str:
    """Chapter 12: the expected layer from the scores of the prefixes 0 to L."""
    for seed in range(4):
        scores = np.sort(np.random.default_rng(seed).random(5 + seed))
        gains = np.diff(scores)
        layers = np.arange(1, len(scores))
        got = answer(scores)
        if got is not None and np.isclose(got, (gains * (layers - 1)).sum() / gains.sum()):
            raise _Wrong("that counts layers from 0; the first gain belongs to layer 1.")
        if got is not None and np.isclose(got, (gains * layers).sum()):
            raise _Wrong("the gains have to be divided by their sum, to be shares.")
        if got is not None and np.isclose(got, (scores * np.arange(len(scores))).sum() / scores.sum()):
            raise _Wrong("that weights the layers by the scores; take what each layer adds to the one below.")
        _close(got, (gains * layers).sum() / gains.sum(), "it should be the mean layer, weighted by the gains.")
    return "right: a task that gains everything at layer 3 has expected layer 3."


@_exercise
def mixture(answer: Callable) -> str:
    """Chapter 12: the mixed state of a token from the layers 0 to ``top``."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        states, a, gamma, top = rng.normal(size=(5, 4)), rng.normal(size=5) * 2, 1.5 + seed, 4 - seed
        weights = np.exp(a[: top + 1]) / np.exp(a[: top + 1]).sum()
        got = answer(states, a, gamma, top)
        cut = np.exp(a) / np.exp(a).sum()
        if top < 4 and got is not None and np.allclose(got, gamma * cut[: top + 1] @ states[: top + 1]):
            raise _Wrong("the weights of the layers that are read do not sum to 1; cut before the softmax.")
        if got is not None and np.allclose(got, weights @ states[: top + 1]):
            raise _Wrong("gamma is missing.")
        if got is not None and top and np.allclose(got, gamma * states[: top + 1].mean(0)):
            raise _Wrong("that is the uniform mixture; it does not depend on a.")
        _close(
            got,
            gamma * weights @ states[: top + 1],
            "gamma times the weighted sum of the layers 0 to top, top included.",
        )
    return "right: whatever layers are read, their weights sum to 1."


@_exercise
def letters(answer: Callable) -> str:
    """Chapter 12: the label of a word in a task that needs no context."""
    for word in ("a", "Ada", "half-sisters", "1,500", ".", "unbelievable", "O'Brien"):
        wanted = str(min(sum(c.isalpha() for c in word), 10))
        got = answer(word)
        if isinstance(got, int) and str(got) == wanted:
            raise _Wrong("labels are strings here; wrap the number in str().")
        if got == str(min(len(word), 10)) != wanted:
            raise _Wrong(f"{word!r} has characters that are no letters; they do not count.")
        if got == str(sum(c.isalpha() for c in word)) != wanted:
            raise _Wrong(f"{word!r} has more than ten letters; the label is '10' from ten on.")
        if got != wanted:
            raise _Wrong(f"for {word!r} it should be {wanted!r}, not {got!r}.")
    return "right: eleven classes, and no context needed for any of them."
