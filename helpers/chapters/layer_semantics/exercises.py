"""The exercises of chapter 12."""

import numpy as np
from scipy import special

from helpers.chapters.checks import Exercise, checker


def _states(seed: int) -> tuple[np.ndarray, np.ndarray, float, int]:
    """States of five layers, their raw weights, gamma, and the last layer that is read."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(5, 4)), rng.normal(size=5) * 2, 1.5 + seed, 4 - seed


class expected_layer(Exercise):
    solved = "right: a task that gains everything at layer 3 has expected layer 3."

    cases = tuple((np.sort(np.random.default_rng(seed).random(5 + seed)),) for seed in range(4))

    def right(scores):
        """it should be the mean layer, weighted by the gains."""
        return np.average(np.arange(1, len(scores)), weights=np.diff(scores))

    def from_0(scores):
        """that counts layers from 0; the first gain belongs to layer 1."""
        return np.average(np.arange(len(scores) - 1), weights=np.diff(scores))

    def not_divided(scores):
        """the gains have to be divided by their sum, to be shares."""
        return np.diff(scores) @ np.arange(1, len(scores))

    def by_scores(scores):
        """that weights the layers by the scores; take what each layer adds to the one below."""
        return np.average(np.arange(len(scores)), weights=scores)


class mixture(Exercise):
    solved = "right: whatever layers are read, their weights sum to 1."

    cases = tuple(_states(seed) for seed in range(4))

    def right(states, a, gamma, top):
        """gamma times the weighted sum of the layers 0 to top, top included."""
        return gamma * special.softmax(a[: top + 1]) @ states[: top + 1]

    def cut_late(states, a, gamma, top):
        """the weights of the layers that are read do not sum to 1; cut before the softmax."""
        return gamma * special.softmax(a)[: top + 1] @ states[: top + 1]

    def without_gamma(states, a, gamma, top):
        """gamma is missing."""
        return special.softmax(a[: top + 1]) @ states[: top + 1]

    def uniform(states, a, gamma, top):
        """that is the uniform mixture; it does not depend on a."""
        return gamma * states[: top + 1].mean(0)


class letters(Exercise):
    solved = "right: eleven classes, and no context needed for any of them."

    cases = tuple((word,) for word in ("a", "Ada", "half-sisters", "1,500", ".", "unbelievable", "O'Brien"))

    def right(word):
        """for {0!r} it should be {wanted!r}, not {got!r}."""
        return str(min(letters.a_number(word), 10))

    def a_number(word):
        """labels are strings here; wrap the number in str()."""
        return sum(map(str.isalpha, word))

    def characters(word):
        """{0!r} has characters that are no letters; they do not count."""
        return str(min(len(word), 10))

    def above_ten(word):
        """{0!r} has more than ten letters; the label is '10' from ten on."""
        return str(letters.a_number(word))


check = checker(globals())
