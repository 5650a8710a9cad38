"""The exercises of chapter 01."""

import numpy as np
from scipy import special

from helpers.chapters.checks import Exercise, known_by, maps
from helpers.chapters.progress import desk


def _head(seed: int, size: float = 1) -> tuple:
    """Hidden states [4, 6], and matrix [6, 3] and bias [3] of queries, keys and values."""
    rng = np.random.default_rng(seed)
    return size * rng.normal(size=(4, 6)), *((rng.normal(size=(6, 3)), rng.normal(size=3)) for _ in range(3))


def _attended(x, query, key, value, *, d=None, biased=True, axis=-1, softmax=special.softmax):
    q, k, v = (x @ matrix + biased * bias for matrix, bias in (query, key, value))
    weights = softmax(q @ k.T / np.sqrt(d or k.shape[1]), axis=axis)
    return weights, weights @ v


class attend(Exercise):
    """Weights and outputs of one head."""

    solved = "right, also where the scores reach the thousands."
    means = "A head does two things: the weights say where it looks, the values say what it takes from there."
    leads_on = "If all keys were equal, what would every row of the weights be, and what the output?"
    hints = (
        "Three products come first: `q = x @ query[0] + query[1]`, and the same for the keys and the values.",
        "Each row of `q @ k.T / np.sqrt(d)` becomes a row of weights. Take its largest score away before `np.exp`, divide by its sum, and multiply the weights with `v`.",
    )

    cases = (_head(0), _head(1), _head(2, size=60))

    def right(x, query, key, value):
        """the weights or the outputs are wrong. Take the steps of the drawing one by one: q, k, v; scores; softmax; sum."""
        return _attended(x, query, key, value)

    def unscaled(x, query, key, value):
        """the scores are not divided by √d."""
        return _attended(x, query, key, value, d=1)

    def by_width(x, query, key, value):
        """the scores are divided by the root of the width of `x`; d is the width of a query."""
        return _attended(x, query, key, value, d=x.shape[1])

    def columns(x, query, key, value):
        """the columns of the weights sum to 1, not the rows; check the axis of the softmax."""
        return _attended(x, query, key, value, axis=0)

    def unbiased(x, query, key, value):
        """the biases are missing: q = x W + b."""
        return _attended(x, query, key, value, biased=False)

    def overflowing(x, query, key, value):
        """it overflows for large scores; subtract each row's largest score first, which changes no weight."""

        def naive(scores, axis):
            return np.exp(scores) / np.exp(scores).sum(axis, keepdims=True)

        return _attended(x, query, key, value, softmax=naive)

    def outputs_alone(x, query, key, value):
        """it returns the outputs alone; return the pair, first the weights, then the outputs."""
        return tuple(_attended(x, query, key, value)[1])

    def swapped(x, query, key, value):
        """the two are in the wrong order; return first the weights, then the outputs."""
        return _attended(x, query, key, value)[::-1]


class causal_attention(Exercise):
    """The map of a head that sees nothing after each token."""

    solved = "right: the first token can only see itself, and every row sums to 1."
    means = "A mask takes choices away; what is left keeps its proportions, since a softmax over fewer scores divides by less."
    leads_on = "Which token loses most by the mask, and which loses nothing?"
    hints = (
        "Set every weight to a later token to 0. `np.tril` does that for the whole map.",
        "Terms that leave the denominator make it smaller for all the others alike: divide each row by its sum.",
    )

    cases = tuple((maps(4, seed),) for seed in range(3))

    def right(weights):
        """the weights that remain should keep their proportions."""
        return np.tril(weights) / np.tril(weights).sum(-1, keepdims=True)

    @known_by(lambda got, _: np.isnan(got).any())
    def self_hidden(weights):
        """a row is 0 divided by 0: a token still sees itself, so the diagonal stays."""
        return np.tril(weights, -1) / np.tril(weights, -1).sum(-1, keepdims=True)

    @known_by(lambda got, _: np.triu(got, 1).any())
    def all_seen(weights):
        """some token still sees a later one; `np.tril` keeps the lower triangle."""
        return weights

    def not_rescaled(weights):
        """the rows do not sum to 1 any more; divide each by its sum."""
        return np.tril(weights)

    def by_column(weights):
        """the columns sum to 1, not the rows; `keepdims=True` with `axis=1` divides each row by its own sum."""
        return np.tril(weights) / np.tril(weights).sum(0)

    def softmax_again(weights):
        """a second softmax over the weights flattens them; they are weights already, so divide by what is left."""
        return special.softmax(np.where(np.tril(np.ones(weights.shape)), weights, -np.inf), axis=-1)


check, hint, progress = desk(globals())
