"""You locate four tasks in the layers with probes that read hidden states, and ask controls whether the order means anything.

After {cite:t}`tenney2019`.
"""

import numpy as np
from scipy.special import softmax

from helpers.exercises.checks import desk, exercise


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


@exercise([_batch(seed) for seed in range(4)])
def attention_pooled(tokens, scores, owner):
    """Each target's tokens, weighted by a softmax of their scores."""
    own = owner == np.arange(owner.max() + 1)[:, None]  # [target, token]
    over_all = own * softmax(scores) @ tokens
    weighted = (own * np.exp(scores), own * scores, own)
    right, by_scores, mean = (weights @ tokens / weights.sum(1, keepdims=True) for weights in weighted)
    return {"right": right, "by_scores": by_scores, "mean": mean, "over_all": over_all}


def _interval(sums: np.ndarray, draws: list[np.ndarray], ends: tuple[float, float] = (2.5, 97.5)) -> np.ndarray:
    """The mean layer at which the hits [document, layer] of all documents are gained, and percentiles of that of drawn ones."""
    scores = np.array([sums.sum(0), *(sums[drawn].sum(0) for drawn in draws)])
    gains = np.diff(scores)
    place, *drawn = gains @ np.arange(1, scores.shape[1]) / gains.sum(1)
    return np.array([place, *np.percentile(drawn, ends)])


@exercise([_hits(seed) for seed in range(3)])
def layer_with_interval(hits, document, draws):
    """Tenney's expected layer, with the ends of its interval over drawn documents."""
    sums = (document == np.arange(document.max() + 1)[:, None]) @ hits.T
    right = _interval(sums, draws)
    once = _interval(sums, [np.unique(drawn) for drawn in draws])
    return {"right": right, "from_0": right - 1, "narrow": _interval(sums, draws, (5, 95)), "once": once}


check, hint, progress = desk("layer_semantics", attention_pooled, layer_with_interval)
