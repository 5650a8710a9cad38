"""The exercises of chapter 12."""

import numpy as np
from scipy import special

from helpers.chapters.checks import Exercise, checker, says


def _states(seed: int) -> tuple[np.ndarray, np.ndarray, float, int]:
    """States of five layers, their raw weights, gamma, and the last layer that is read."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(5, 4)), rng.normal(size=5) * 2, 1.5 + seed, 4 - seed


class expected_layer(Exercise):
    solved = "right: a task that gains everything at layer 3 has expected layer 3."

    cases = tuple((np.sort(np.random.default_rng(seed).random(5 + seed)),) for seed in range(4))

    @says("it should be the mean layer, weighted by the gains.")
    def right(scores):
        return np.average(np.arange(1, len(scores)), weights=np.diff(scores))

    @says("that counts layers from 0; the first gain belongs to layer 1.")
    def from_0(scores):
        return np.average(np.arange(len(scores) - 1), weights=np.diff(scores))

    @says("the gains have to be divided by their sum, to be shares.")
    def not_divided(scores):
        return np.diff(scores) @ np.arange(1, len(scores))

    @says("that weights the layers by the scores; take what each layer adds to the one below.")
    def by_scores(scores):
        return np.average(np.arange(len(scores)), weights=scores)


class mixture(Exercise):
    solved = "right: whatever layers are read, their weights sum to 1."

    cases = tuple(_states(seed) for seed in range(4))

    @says("gamma times the weighted sum of the layers 0 to top, top included.")
    def right(states, a, gamma, top):
        return gamma * special.softmax(a[: top + 1]) @ states[: top + 1]

    @says("the weights of the layers that are read do not sum to 1; cut before the softmax.")
    def cut_late(states, a, gamma, top):
        return gamma * special.softmax(a)[: top + 1] @ states[: top + 1]

    @says("gamma is missing.")
    def without_gamma(states, a, gamma, top):
        return special.softmax(a[: top + 1]) @ states[: top + 1]

    @says("that is the uniform mixture; it does not depend on a.")
    def uniform(states, a, gamma, top):
        return gamma * states[: top + 1].mean(0)


class letters(Exercise):
    solved = "right: eleven classes, and no context needed for any of them."

    cases = tuple((word,) for word in ("a", "Ada", "half-sisters", "1,500", ".", "unbelievable", "O'Brien"))

    @says("for {0!r} it should be {wanted!r}, not {got!r}.")
    def right(word):
        return str(min(letters.a_number(word), 10))

    @says("labels are strings here; wrap the number in str().")
    def a_number(word):
        return sum(map(str.isalpha, word))

    @says("{0!r} has characters that are no letters; they do not count.")
    def characters(word):
        return str(min(len(word), 10))

    @says("{0!r} has more than ten letters; the label is '10' from ten on.")
    def above_ten(word):
        return str(letters.a_number(word))


check = checker(globals())
