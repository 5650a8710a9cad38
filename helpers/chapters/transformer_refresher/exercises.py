"""The exercises of chapter 01."""

import numpy as np
from scipy import special

from helpers.chapters.checks import Exercise, checker, known_by, maps


class softmax(Exercise):
    solved = "right, also for scores of 1,000."

    cases = ((np.array([[0.0, 1.0, 2.0], [3.0, 3.0, 3.0]]),), (np.array([[1000.0, 1000.0]]),))

    def right(scores):
        """rows should be exp(score) divided by their own sum; check the axis."""
        return special.softmax(scores, axis=-1)

    def overflowing(scores):
        """it overflows for large scores; subtract each row's maximum first."""
        return np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)


class strongest(Exercise):
    solved = "right for 25 rows."

    cases = tuple(
        (maps(5, seed), ["[CLS]", "a", "b", "c", "[SEP]"], query) for seed in range(5) for query in range(5)
    )

    def right(weights, names, query):
        """for token {2} it says {got!r}, not {wanted!r}. Rows are attending tokens, columns attended ones."""
        return names[1 + weights[query, 1:-1].argmax()]

    def special_too(weights, names, query):
        """for token {2} it says {got!r}, not {wanted!r}. It is a special token: leave those out."""
        return names[weights[query].argmax()]


class causal_attention(Exercise):
    solved = "right: the first token can only see itself, and every row sums to 1."

    cases = tuple((maps(4, seed),) for seed in range(3))

    def right(weights):
        """the weights that remain should keep their proportions."""
        return np.tril(weights) / np.tril(weights).sum(-1, keepdims=True)

    @known_by(lambda got, _: np.triu(got, 1).any())
    def all_seen(weights):
        """some token still sees a later one; `np.tril` keeps the lower triangle."""
        return weights

    def not_rescaled(weights):
        """the rows do not sum to 1 any more; divide each by its sum."""
        return np.tril(weights)


check = checker(globals())
