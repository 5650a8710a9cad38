"""How well what is computed on one half of the documents foretells what is measured on the other half."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.stats import norm, rankdata

from helpers.chapters.head_importance.jobs import per_document
from helpers.chapters.head_importance.measures import Importance, by_layer_norm
from helpers.chapters.head_importance.sweep import Removals
from helpers.stats import Estimate, widened

SPLITS = 500
"""Random halves of the documents that an agreement is the mean of, and replicates of its bootstrap."""

ASKED = {
    "importance_cost": ("importance", "cost"),
    "importance_size": ("importance", "size"),
    "normalised_cost": ("normalised", "cost"),
    "fisher_cost": ("fisher", "cost"),
    "first_order_cost": ("first_order", "cost"),
    "importance_twice": ("importance", "importance"),
    "cost_twice": ("cost", "cost"),
}
"""Name -> what is taken on the first half, and on the second."""


def halves_of(documents: int, count: int, *, seed: int = 0) -> Bool[np.ndarray, "split document"]:
    """Random halves: true for the documents of the first."""
    rng = np.random.default_rng(seed)
    rank = rng.permuted(np.tile(np.arange(documents), (count, 1)), axis=1)
    return rank < (documents + 1) // 2


def spearman(x: Float[np.ndarray, "*many head"], y: Float[np.ndarray, "*many head"]) -> Float[np.ndarray, "*many"]:
    """Rank correlations over the last axis; NaN where one side does not vary."""
    a, b = (rankdata(v, axis=-1) for v in (x, y))
    a, b = (v - v.mean(-1, keepdims=True) for v in (a, b))
    size = np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return np.divide((a * b).sum(-1), size, out=np.full(size.shape, np.nan), where=size > 1e-300)


def agreement(found: Importance, removed: Removals, *, splits: int = SPLITS, seed: int = 0) -> dict[str, Estimate]:
    """Rank correlations over heads between halves of the documents, under the names of :data:`ASKED`.

    The value is the mean over random halves. Its interval is from a bootstrap over documents: in each split the documents
    of either half are drawn again. Drawing adds noise, which lowers every correlation, so only the *spread* of the
    replicates is used, on Fisher's scale: tanh(artanh r ± 1.96 s), wider for few documents.
    """
    sums, sizes = _sums(found, removed)
    first = halves_of(len(sizes), splits, seed=seed)
    plain = _correlations(sums, sizes, first, ~first)
    rng = np.random.default_rng([seed, 1])
    drawn = _correlations(sums, sizes, *(_drawn(rng, half) for half in (first, ~first)))
    return {name: _estimate(plain[name], drawn[name], len(sizes)) for name in ASKED}


def _sums(found: Importance, removed: Removals) -> tuple[Mapping[str, np.ndarray], Float[np.ndarray, "document"]]:
    """Sums over the examples of each document, [document, layer, head], and the documents' numbers of examples."""
    added = removed.heads.loss - removed.whole.loss
    given = {"importance": np.abs(found.gradients), "fisher": found.gradients**2, "first_order": -found.gradients}
    sums = {name: per_document(one, found.documents) for name, one in (given | {"cost": added}).items()}
    return sums, per_document(np.ones(len(found.documents)), found.documents)


def _drawn(rng: np.random.Generator, half: Bool[np.ndarray, "split document"]) -> Int[np.ndarray, "split document"]:
    """How often each document of a half is drawn, with replacement, as many as there are."""
    sizes = half.sum(1)
    return rng.multinomial(sizes, half / sizes[:, None])


def _correlations(
    sums: Mapping[str, np.ndarray],
    sizes: Float[np.ndarray, "document"],
    first: Shaped[np.ndarray, "split document"],
    second: Shaped[np.ndarray, "split document"],
) -> dict[str, Float[np.ndarray, "split"]]:
    """Of each split; the two arrays say how often a document counts in either half."""
    sides = []
    for counts in (first.astype(float), second.astype(float)):
        share = counts / (counts @ sizes)[:, None]
        means = {name: np.tensordot(share, one, axes=1) for name, one in sums.items()}
        means |= {"normalised": by_layer_norm(means["importance"]), "size": np.abs(means["cost"])}
        sides.append({name: one.reshape(len(one), -1) for name, one in means.items()})
    return {name: spearman(sides[0][one], sides[1][two]) for name, (one, two) in ASKED.items()}


def _estimate(plain: Float[np.ndarray, "split"], drawn: Float[np.ndarray, "split"], documents: int) -> Estimate:
    value = np.nanmean(plain)
    scale = np.arctanh(np.clip(drawn, -0.9999, 0.9999))
    half = norm.ppf(0.975) * widened(documents) * np.nanstd(scale)
    low, high = np.tanh(np.arctanh(np.clip(value, -0.9999, 0.9999)) + np.array([-half, half]))
    return Estimate(np.float64(value), low, high, drawn, documents)
