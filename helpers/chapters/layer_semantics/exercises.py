"""The exercises of chapter 12."""

from collections.abc import Sequence

import numpy as np
from scipy import special

from helpers.chapters.checks import Exercise
from helpers.chapters.progress import desk


def _batch(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tokens of four targets of different lengths, their scores, and whose each is; not in order."""
    rng = np.random.default_rng(seed)
    owner = rng.permutation(np.repeat(np.arange(4), [3, 1, 2, 1 + seed]))
    return rng.normal(size=(len(owner), 3)), 2 * rng.normal(size=len(owner)), owner


def _hits(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hits of five probes, each better than the one before, on the targets of six documents, and replicates of these."""
    rng = np.random.default_rng(seed)
    document = np.sort(np.concatenate([np.arange(6), rng.integers(6, size=60)]))
    hits = rng.random(len(document)) < np.linspace(0.4, 0.9, 5)[:, None] ** (1 + seed)
    return hits.astype(float), document, rng.integers(6, size=(50, 6))


class attention_pooled(Exercise):
    """Each target's tokens, weighted by a softmax of their scores."""

    solved = "right: a target of one token keeps its vector, whatever the score."
    means = (
        "The softmax runs within a target, so a long target and a short one both give one vector of the same kind."
    )
    leads_on = "What does the pooling become when all scores are equal?"
    hints = (
        "Go through the targets: `owner == target` picks its tokens and its scores.",
        "A softmax of these scores, times these tokens, summed over them; one row for each target, in order.",
    )

    cases = tuple(_batch(seed) for seed in range(4))

    def right(tokens, scores, owner):
        """each row should be the target's own tokens, weighted by a softmax of their own scores."""
        return attention_pooled.by(tokens, np.exp(scores), owner)

    def by(tokens, weights, owner):
        """that weights tokens by their scores; take the softmax of the scores."""
        own = owner == np.arange(owner.max() + 1)[:, None]
        return own * weights @ tokens / (own * weights).sum(1, keepdims=True)

    def mean(tokens, scores, owner):
        """that is the plain mean of a target's tokens; it does not depend on the scores."""
        return attention_pooled.by(tokens, np.ones(len(owner)), owner)

    def over_all(tokens, scores, owner):
        """the weights of a target do not sum to 1; the softmax runs over its own tokens only."""
        return (owner == np.arange(owner.max() + 1)[:, None]) * special.softmax(scores) @ tokens


def _place(scores: np.ndarray) -> np.floating:
    """Mean layer at which a score is gained."""
    return np.average(np.arange(1, len(scores)), weights=np.diff(scores))


def _with_ends(
    hits: np.ndarray, document: np.ndarray, draws: Sequence[np.ndarray], ends: tuple[float, float] = (2.5, 97.5)
) -> np.ndarray:
    """The expected layer of all documents, and percentiles of that of the drawn ones."""
    sums = (document == np.arange(document.max() + 1)[:, None]) @ hits.T
    each = [_place(sums[drawn].sum(0)) for drawn in draws]
    return np.array([_place(sums.sum(0)), *np.percentile(each, ends)])


class expected_layer(Exercise):
    """Tenney's expected layer, with the ends of its interval over drawn documents."""

    solved = "right: and where the gain is small, the interval is wide."
    means = "An expected layer divides by the whole gain, so where the gain is small the number is nearly free."
    leads_on = "Can an expected layer be negative, or larger than the number of layers?"
    hints = (
        "The gain of layer l is the score of probe l less that of probe l - 1; the expected layer is the mean of l weighted by the gains.",
        "Sum the hits of each document; a draw is the sum over its documents, repeated ones too. Percentiles 2.5 and 97.5 of the draws are the ends.",
    )

    cases = tuple(_hits(seed) for seed in range(3))

    def right(hits, document, draws):
        """value and ends should be the mean layer, weighted by the gains, of all documents and of each draw."""
        return _with_ends(hits, document, draws)

    def from_0(hits, document, draws):
        """that counts layers from 0; the first gain belongs to layer 1."""
        return _with_ends(hits, document, draws) - 1

    def narrow(hits, document, draws):
        """these ends leave out 10 % of the replicates; 95 % lie between the percentiles 2.5 and 97.5."""
        return _with_ends(hits, document, draws, (5, 95))

    def once(hits, document, draws):
        """a document that is drawn twice counts twice."""
        return _with_ends(hits, document, [np.unique(drawn) for drawn in draws])


check, hint, progress = desk(globals())
