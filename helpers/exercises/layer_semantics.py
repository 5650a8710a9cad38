"""You locate four tasks in the layers with probes that read hidden states, and ask controls whether the order means anything.

After {cite:t}`tenney2019`.
"""

import numpy as np

from helpers.exercises.checks import desk, exercise


def _hits(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hits of five probes, each better than the one before, on the targets of six documents, and replicates of these."""
    rng = np.random.default_rng(seed)
    document = np.sort(np.concatenate([np.arange(6), rng.integers(6, size=60)]))
    hits = rng.random(len(document)) < np.linspace(0.4, 0.9, 5)[:, None] ** (1 + seed)
    return hits.astype(float), document, rng.integers(6, size=(50, 6))


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


check, hint, progress = desk("layer_semantics", layer_with_interval)
