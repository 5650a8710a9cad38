"""How unlike two heads attend: the Jensen–Shannon divergence of all pairs, and the heads' map in the plane (Clark et al. 2019, section 6)."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import smacof
from torch import Tensor

from helpers import attention, stats
from helpers.encoders import Encoder
from helpers.heads import Head
from helpers.results import Run, rows
from helpers.stats import Estimate
from helpers.tokens import EncodedText

MOST_TOKENS = 128  # Clark et al. 2019, section 3
LARGEST = float(np.log(2))  # nats: the divergence of two distributions that share no token
TINY = float(np.finfo(np.float32).tiny)
PLACES = {"cpu": 2048, "other": 8192}  # weights of each head compared at a time: few, to stay in a processor's cache


def divergences(maps: Float[Tensor, "head query key"]) -> Float[np.ndarray, "head head"]:
    """Jensen–Shannon divergence between all pairs of heads, summed over the attending tokens, in nats.

    Only Σ y log₂ y is computed, for y = n (p + q) / 2, each pair once and a few rows of all heads at a time: a mixture's
    entropy but for terms that cancel, and with all its digits also where heads attend nearly evenly (y near 1).

    Args:
        maps: of one input, without padding; rows sum to 1.
    """
    keys = maps.shape[-1]
    on_cpu = maps.device.type == "cpu"
    rows = max(1, PLACES["cpu" if on_cpu else "other"] // keys)
    chunks = maps.float().split(rows, dim=1)
    if on_cpu:
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            parts = list(pool.map(lambda chunk: mixtures(chunk.numpy(), np), chunks))
    else:
        parts = [np.asarray(mixtures(chunk, torch)) for chunk in chunks]
    mixed = np.sum(parts, axis=0, dtype=np.float64)
    own = mixed.diagonal()
    upper = np.triu((own[:, None] + own) / 2 - mixed, 1).clip(min=0) * (LARGEST / keys)
    return upper + upper.T


def mixtures(maps: Any, xp: Any) -> Any:
    """Σ y log₂ y over all places, for y = n (p + q) / 2 of heads i ≤ j: the upper triangle of [head, head].

    Args:
        maps: [head, query, key], float32; weights of 0 become the smallest number, whose y log₂ y is 0.
        xp: NumPy for arrays (its logarithm is three times as fast as torch's on a processor), torch for tensors.
    """
    halves = (maps * (maps.shape[-1] / 2)).clip(TINY).reshape(len(maps), -1)
    sums = xp.zeros((len(maps), len(maps)))
    mixture, logarithm = xp.empty_like(halves), xp.empty_like(halves)
    for i in range(len(maps)):
        xp.add(halves[i], halves[i:], out=mixture[i:])
        xp.log2(mixture[i:], out=logarithm[i:])
        sums[i, i:] = xp.linalg.vecdot(mixture[i:], logarithm[i:])
    return sums


def look(maps: Float[Tensor, "layer head query key"], text: EncodedText) -> dict[str, Any]:
    """Divergences of all pairs of heads in one text, [pair], summed over its tokens; and how many tokens these are."""
    sums = squareform(divergences(maps.flatten(0, 1)), checks=False)
    return {"sums": sums.astype(np.float32), "tokens": maps.shape[-1]}


@dataclass(frozen=True, eq=False)
class Divergences:
    """Divergences of all pairs of heads, kept for every text.

    Attributes:
        layers, heads: of the encoder; heads are numbered layer by layer.
        sums: [text, pair], summed over the text's tokens, in nats; pairs in the order of :func:`numpy.triu_indices`.
            float32, so that 1,000 texts of a 144-head encoder take 41 MB.
        tokens: [text], attending tokens.
        documents: [text], the document that each is from, the unit of the bootstrap.
    """

    layers: int
    heads: int
    sums: Float[np.ndarray, "text pair"]
    tokens: Int[np.ndarray, "text"]
    documents: Int[np.ndarray, "text"]

    @classmethod
    def of(cls, encoder: Encoder, texts: Sequence[Any], looks: Sequence[Mapping[str, Any]]) -> "Divergences":
        """What :func:`look` has seen of each text; one without a ``document`` is a document of its own."""
        sums, tokens = (np.stack([seen[name] for seen in looks]) for name in ("sums", "tokens"))
        documents = np.array([getattr(text, "document", number) for number, text in enumerate(texts)])
        return cls(encoder.layers, encoder.heads, sums, tokens, documents)

    def mean(
        self, texts: NDArray[np.integer] | NDArray[np.bool_] | slice = slice(None)
    ) -> Float[np.ndarray, "head head"]:
        """Mean divergence per token over some of the texts (default: all), as a symmetric matrix."""
        return squareform(self.sums[texts].sum(0, dtype=np.float64) / self.tokens[texts].sum())

    def estimate(self, weights: Float[np.ndarray, "pair *some"], *, seed: int = 0) -> Estimate:
        """A weighted sum of the mean divergences with its interval over documents.

        Args:
            weights: [pair] or [pair, statistic], such as 1 / (number of pairs) at pairs of one layer.
        """
        each = self.sums.astype(np.float64) @ weights
        return stats.ratio(zip(each, self.tokens, strict=True), self.documents, seed=seed)


def measure(
    encoder: Encoder, texts: Sequence[Any], *, look: Callable[..., Any] = look, shuffled: bool = False, seed: int = 0
) -> Divergences:
    """Divergences of all pairs of heads over texts of at most 128 tokens.

    Args:
        look: what sees the maps of a text.
        shuffled: whether every map has its scores shuffled (:mod:`helpers.controls`).
        seed: of the shuffling.
    """
    looks = attention.measure(encoder, texts, look, longest=MOST_TOKENS, shuffled=shuffled, seed=seed)
    return Divergences.of(encoder, texts, looks)


def classical(distances: Float[np.ndarray, "head head"]) -> Float[np.ndarray, "head 2"]:
    """Classical (Torgerson) scaling: the points in the plane whose inner products are nearest to those that the distances imply."""
    centred = np.eye(len(distances)) - 1 / len(distances)
    values, vectors = np.linalg.eigh(-centred @ distances**2 @ centred / 2)
    largest = np.argsort(-values)[:2]
    return vectors[:, largest] * np.sqrt(values[largest].clip(min=0))


def place(
    distances: Float[np.ndarray, "head head"], start: Float[np.ndarray, "head dimension"] | None = None
) -> Float[np.ndarray, "head dimension"]:
    """Heads in the plane by metric multidimensional scaling (scikit-learn's SMACOF), turned to its principal axes.

    Args:
        start: points to begin with (default: those of classical scaling).
    """
    start = classical(distances) if start is None else start
    points, _ = smacof(distances, init=start, n_init=1, max_iter=1000, eps=1e-7, normalized_stress=False)
    points = points - points.mean(0)
    points = points @ np.linalg.svd(points, full_matrices=False)[2].T
    return points * np.where((points**3).sum(0) < 0, -1.0, 1.0)  # the longer tail to the right and to the top


def stress(distances: Float[np.ndarray, "head head"], points: Float[np.ndarray, "head dimension"]) -> float:
    """Kruskal's stress-1: root of the squared differences between distances and those of the map, over the latter squared."""
    shown = squareform(pdist(points))
    return float(np.sqrt(((shown - distances) ** 2).sum() / (shown**2).sum()))


def record(run: Run, of: Divergences, points: Float[np.ndarray, "head 2"], network: str = "") -> None:
    """Each pair of heads twice, from either to the other, and where heads lie on the map."""
    about = {"network": network, "n": len(of.tokens), "against": ""}
    matrix = of.mean()
    names = np.array([str(Head.of(divmod(k, of.heads))) for k in range(len(matrix))], object)
    pairs = np.nonzero(~np.eye(len(matrix), dtype=bool))
    whose = {"layer": pairs[0] // of.heads + 1, "head": pairs[0] % of.heads + 1, "of": names[pairs[1]]}
    run.blocks.append(rows("divergence", matrix[pairs], **whose, **about))
    for quantity, coordinates in zip(("map_x", "map_y"), points.T, strict=True):
        run.number(quantity, coordinates.reshape(of.layers, of.heads), **about)
    about = {"network": network, "n": len(of.tokens)}
    reached, dimensions = stress(matrix, points), points.shape[1]
    run.number("stress", reached, **about)
    run.number("map_dimensions", dimensions, label=f"{dimensions}; {reached:.2f}", **about)
