"""Chapter 07: which heads behave alike?

Two heads are as far apart as the Jensen–Shannon divergence between what they attend to, on average over
tokens. All pairs of heads are compared, drawn as a map, and asked whether heads of one layer lie closer
than chance would have it. After Clark et al. 2019, section 6.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from scipy.spatial.distance import squareform
from torch import Tensor

from helpers import attention, stats
from helpers.corpora.readers import Segment
from helpers.encoders import Encoder, EncoderError
from helpers.results import Recorded
from helpers.stats import Estimate, Numbers
from helpers.tokens import EncodedText

MOST_TOKENS = 128  # Clark et al. 2019, section 3
LARGEST = float(np.log(2))  # nats, or one bit: the divergence of two distributions that share no token
TINY = float(np.finfo(np.float32).tiny)
PLACES = {"cpu": 2048, "other": 8192}  # weights of each head compared at a time: few, to stay in a processor's cache


def refuse_small(encoder: Encoder) -> None:
    """Make sure that there are heads of one layer and heads of different layers, which the chapter compares.

    Raises:
        EncoderError: for a single layer, or a single head in each.
    """
    if encoder.layers < 2 or encoder.heads < 2:
        raise EncoderError(
            f"{encoder.name!r} has {encoder.layers} x {encoder.heads} heads (layers x heads of each). This chapter asks whether "
            "heads of one layer lie closer together than heads of different layers, for which it needs a model with at least "
            "two layers of at least two heads."
        )


def divergence(p: Float[np.ndarray, "*rows key"], q: Float[np.ndarray, "*rows key"]) -> Numbers:
    """Jensen–Shannon divergence of distributions, row by row, in nats; 0 · ln 0 = 0.

    The definition, in float64, for a few rows; :func:`divergences` is for all pairs of heads.
    """
    p, q = np.asarray(p, np.float64), np.asarray(q, np.float64)
    return np.maximum(entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2, 0.0)


def entropy(p: Float[np.ndarray, "*rows key"]) -> Numbers:
    """Entropy of distributions, row by row, in nats; 0 · ln 0 = 0."""
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(-1)


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
        with ThreadPoolExecutor(threads := torch.get_num_threads()) as pool:
            each = map if threads == 1 else pool.map
            parts = list(each(lambda chunk: mixtures(chunk.numpy(), np), chunks))
    else:
        parts = [np.asarray(mixtures(chunk, torch)) for chunk in chunks]
    mixed = np.sum(parts, axis=0, dtype=np.float64)
    own = mixed.diagonal()
    found = np.triu((own[:, None] + own) / 2 - mixed, 1).clip(min=0) * (LARGEST / keys)
    return found + found.T


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


@dataclass(frozen=True, eq=False)
class Divergences:
    """Divergences of all pairs of heads, kept for every segment.

    Attributes:
        layers, heads: of the encoder; head number k = layer · heads + head.
        sums: [segment, pair], summed over the segment's tokens, in nats; pairs k < l in the order of
            :func:`numpy.triu_indices`. float32, so that 1,000 segments of a 144-head encoder take 41 MB.
        tokens: [segment], attending tokens.
        documents: [segment], the document that each is from, the unit of the bootstrap.
    """

    layers: int
    heads: int
    sums: Float[np.ndarray, "segment pair"]
    tokens: Int[np.ndarray, "segment"]
    documents: Int[np.ndarray, "segment"]

    @classmethod
    def of(cls, encoder: Encoder, segments: Sequence[Segment], found: Sequence[Mapping[str, Any]]) -> "Divergences":
        """What :func:`look` found of each segment."""
        sums, tokens = (np.stack([segment[name] for segment in found]) for name in ("sums", "tokens"))
        return cls(encoder.layers, encoder.heads, sums, tokens, np.array([s.document for s in segments]))

    @cached_property
    def layer(self) -> Int[np.ndarray, "head"]:
        """The layer of each head, from 0."""
        return np.repeat(np.arange(self.layers), self.heads)

    @cached_property
    def number(self) -> Int[np.ndarray, "head"]:
        """The number of each head in its layer, from 0."""
        return np.tile(np.arange(self.heads), self.layers)

    def mean(
        self, segments: NDArray[np.integer] | NDArray[np.bool_] | slice = slice(None)
    ) -> Float[np.ndarray, "head head"]:
        """Mean divergence per token over the segments named (default: all), as a symmetric matrix."""
        return squareform(self.sums[segments].sum(0, dtype=np.float64) / self.tokens[segments].sum())

    @property
    def overall(self) -> float:
        """Mean divergence of all pairs, per token."""
        return float(self.sums.mean(1, dtype=np.float64).sum() / self.tokens.sum())

    def some(self, segments: slice) -> "Divergences":
        """Of some of the segments only."""
        kept = {name: getattr(self, name)[segments] for name in ("sums", "tokens", "documents")}
        return replace(self, **kept)

    def name(self, head: int) -> tuple[int, int]:
        """Layer and head, from 0, of head number ``head``."""
        return divmod(int(head), self.heads)

    def estimate(self, weights: Float[np.ndarray, "pair *some"], *, seed: int = 0) -> Estimate:
        """A weighted sum of the mean divergences with its interval over documents.

        Args:
            weights: [pair] or [pair, statistic], such as 1 / (number of pairs) at pairs of one layer.
        """
        each = self.sums.astype(np.float64) @ weights
        return stats.ratio(zip(each, self.tokens, strict=True), self.documents, seed=seed)


def look(maps: Float[Tensor, "layer head query key"], text: EncodedText) -> dict[str, Any]:
    """Divergences of all pairs of heads in one text, [pair], summed over its tokens; and how many tokens these are."""
    sums = squareform(divergences(maps.flatten(0, 1)), checks=False)
    return {"sums": sums.astype(np.float32), "tokens": maps.shape[-1]}


def ordinary(
    maps: Float[Tensor, "layer head query key"], text: EncodedText
) -> Float[Tensor, "layer head ordinary ordinary"]:
    """The maps without the rows and columns of special tokens; each row sums to 1 again, and one with nothing left is even."""
    kept = maps[:, :, ~text.special][..., ~text.special].float() + TINY
    return kept / kept.sum(-1, keepdim=True)


def look_twice(maps: Float[Tensor, "layer head query key"], text: EncodedText) -> dict[str, dict[str, Any]]:
    """:func:`look` at all tokens, and at the :func:`ordinary` ones alone."""
    return {"all": look(maps, text), "ordinary": look(ordinary(maps, text), text)}


def measure(encoder: Encoder, segments: Sequence[Segment], *, shuffled: bool = False) -> Divergences:
    """Divergences of all pairs of heads over segments of at most 128 tokens.

    Args:
        shuffled: whether every map has its scores shuffled (:mod:`helpers.controls`).
    """
    found = attention.measure(encoder, segments, look, longest=MOST_TOKENS, shuffled=shuffled)
    return Divergences.of(encoder, segments, found)


def measure_both(
    encoder: Encoder, segments: Sequence[Segment], *, shuffled: bool = False
) -> tuple[Divergences, Divergences]:
    """:func:`measure`, and the same of ordinary tokens alone: special ones neither attend nor are attended to."""
    found = attention.measure(encoder, segments, look_twice, longest=MOST_TOKENS, shuffled=shuffled)
    every, others = (Divergences.of(encoder, segments, [one[kind] for one in found]) for kind in ("all", "ordinary"))
    return every, others


LEANING = 1 / 3
"""Share of its attention from which a head counts as attending to a place; chapter 02's specialists need half."""

BROAD = 0.9  # of the entropy of even attention, as in chapter 02
KINDS = ("previous", "self", "next", "cls", "sep", "stop", "broad")


def behaviours(patterns: Mapping[str, Any], shape: tuple[int, int]) -> Int[np.ndarray, "head"]:
    """What each head mostly does, by chapter 02's statistics: its number in :data:`KINDS`, or -1.

    ``broad`` if its entropy is at least 90 % of that of even attention; else the place with most of its attention,
    if that is a third or more.

    Args:
        patterns: statistic -> numbers [layer, head] (:func:`helpers.measurements.surface.statistics_of`); empty if there is none.
        shape: layers and heads.
    """
    if not patterns:
        return np.full(shape[0] * shape[1], -1)
    shares = np.stack([patterns[name] for name in KINDS[:-1]])
    leading = np.where(shares.max(0) >= LEANING, shares.argmax(0), -1)
    return np.where(patterns["entropy"] >= BROAD * patterns["uniform"], KINDS.index("broad"), leading).ravel()


def duties(dependencies: Recorded | None, coreference: Recorded | None) -> dict[tuple[int, int], tuple[str, ...]]:
    """Heads that beat a baseline in chapter 04 or 05, and in what, by the numbers recorded there.

    Relations: the head chosen for one, if it beats the best fixed offset (p < 0.05 over all heads); the largest gain first.
    Coreference: the head chosen for all mentions, if it beats "nearest mention with the same head word, else nearest".

    Args:
        dependencies, coreference: the records of chapters 04 and 05; None if there is none.
    """
    found: dict[tuple[int, int], list[str]] = {}
    if dependencies:
        certain = dependencies.rows("lead_by_chance")
        certain = set(certain.of[certain.value < 0.05]) - {"all"}
        leads = dependencies.rows("lead_for_relation").sort_values("value", ascending=False)
        for row in leads[leads.of.isin(certain)].to_dict("records"):
            found.setdefault((int(row["layer"]) - 1, int(row["head"]) - 1), []).append(row["of"])
    if coreference:
        row = coreference.row("one_head_lead", of="all over head match, else nearest")
        if row.low > 0:
            found.setdefault((int(row.layer) - 1, int(row["head"]) - 1), []).append("coreference")
    return {head: tuple(names) for head, names in found.items()}
