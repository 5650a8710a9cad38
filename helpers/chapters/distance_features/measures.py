"""Chapter 08: which heads behave alike, seen from how far they look.

A head is described by 21 numbers: its mean attention to [CLS], to [SEP], to commas and to full stops, to the
token itself, and to 16 windows of distance that grow with the input. Heads are then clustered on these
numbers and the clusters named. After Guan et al. 2020, sections 3 and 4, with controls for what clustering
finds where there is nothing to find.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from tqdm import tqdm

from helpers.encoders import Encoder
from helpers.engine import sweeps
from helpers.engine.accumulators import Additive, StreamingMean
from helpers.stats import Estimate
from helpers.tokens import Batch, Batches, Input

WINDOWS = 16
KINDS = ("cls", "sep", "comma", "period")
FEATURES = ("self", *(f"window {w}" for w in range(1, WINDOWS + 1)), *KINDS)
"""The 21 numbers of a head, in the order of every array whose last axis is ``feature``."""

SPECIAL = len(FEATURES) - len(KINDS)  # where the four kinds of token begin
PAD = len(FEATURES)  # the number of cells that belong to no feature


def cells(batch: Batch) -> Int[Tensor, "batch query key"]:
    """Which of the 21 features each cell (i, j) of an input's map belongs to; 21 where i or j is padding.

    The kind of the attended token comes first: a cell whose key is [CLS], [SEP], a comma or a full stop counts
    there, also on the diagonal and at any distance. Then the diagonal (``self``). Every other cell falls in
    window ``1 + ⌊16 |i - j| / n⌋``, with n real tokens, the same for both directions. So the cells of the real
    tokens are divided among the features, whatever the length; windows narrower than one token stay empty.
    """
    length = batch.mask.shape[1]
    place = torch.arange(length, device=batch.ids.device)
    distance = (place[:, None] - place[None, :]).abs()
    found = 1 + (WINDOWS * distance)[None] // batch.lengths[:, None, None].clamp_min(1)
    found = found.masked_fill(distance == 0, 0)
    comma = _commas(batch)
    for kind, keys in enumerate((batch.cls, batch.sep, comma, batch.stop & ~comma), SPECIAL):
        found = found.masked_fill(keys[:, None, :], kind)
    return found.masked_fill(~(batch.mask[:, :, None] & batch.mask[:, None, :]), PAD)


def _commas(batch: Batch) -> Bool[Tensor, "batch length"]:
    """The commas among ``batch.stop``: token strings may carry a mark in front, never behind."""
    length = batch.mask.shape[1]
    found = [[t.endswith(",") for t in row] + [False] * (length - len(row)) for row in batch.tokens]
    return batch.stop & torch.tensor(found, dtype=torch.bool, device=batch.ids.device)


def features(
    probabilities: Float[Tensor, "batch head query key"], member: Float[Tensor, "batch cell feature"]
) -> Float[Tensor, "batch head feature"]:
    """Sums of attention over the cells of each feature: one matrix product for all heads and features.

    Args:
        member: [batch, query · key, feature], 1 where a cell belongs to a feature (:func:`membership`).
    """
    return probabilities.flatten(2) @ member.to(probabilities.dtype)


def membership(batch: Batch) -> Float[Tensor, "batch cell feature"]:
    """:func:`cells` as one column of ones and zeros for each feature."""
    where = cells(batch).flatten(1)[..., None]
    member = torch.zeros(*where.shape[:2], PAD, device=where.device)
    return member.scatter_(2, where.clamp_max(PAD - 1), (where < PAD).float())


@dataclass(frozen=True, eq=False)
class DistanceFeatures:
    """The 21 numbers of every head, means over inputs.

    Attributes:
        all: [layer, head, feature], over all inputs, with replicates of a bootstrap over documents.
        halves: [draw, layer, head, feature], each over a random half of the inputs.
        even: [feature], what a head with equal weights on all tokens of each input would have.
        inputs, tokens, truncated: how many were measured; how many inputs were cut to fit.
    """

    all: Estimate
    halves: Float[np.ndarray, "draw layer head feature"]
    even: Float[np.ndarray, "feature"]
    inputs: int
    tokens: int
    truncated: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of layers and heads."""
        return self.all.value.shape[:2]

    @property
    def points(self) -> Float[np.ndarray, "point feature"]:
        """Every head as a point, layer by layer."""
        return points(self.all.value)


def points(array: Float[np.ndarray, "*draws layer head feature"]) -> Float[np.ndarray, "*draws point feature"]:
    """Layers and heads as one axis."""
    return array.reshape(*array.shape[:-3], -1, array.shape[-1])


class Accumulator(Additive):
    """Sums of every input's features; an observer for :func:`helpers.engine.sweeps.sweep`.

    An input's feature is the mean over its rows, so that each input counts once, whatever its length.

    Args:
        documents: for each input, the number of its document (the unit of the bootstrap).
        halves: [draw, input], which inputs belong to each random half (:func:`random_halves`).
    """

    ADDED = ("all", "halves", "even", "counts", "inputs", "tokens")
    PER_INPUT = ("documents",)

    def __init__(
        self, encoder: Encoder, documents: Sequence[int], halves: Bool[np.ndarray, "draw input"], *, seed: int = 0
    ) -> None:
        shape = (encoder.layers, encoder.heads, len(FEATURES))
        self.documents, self.members, self.first = documents, halves, 0
        self.all = StreamingMean(shape, denominators=(encoder.layers, 1, 1), replicates=200, seed=seed)
        self.halves = np.zeros((len(halves), *shape))
        self.even = np.zeros(len(FEATURES))
        self.counts = np.zeros(len(halves))
        self.inputs = self.tokens = 0

    def __call__(self, batch: Batch, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        if layer == 0:
            self._member = membership(batch)
            self._lengths = batch.lengths.double().cpu().numpy()
            self.even += (self._member.sum(1).double().cpu().numpy() / self._lengths[:, None] ** 2).sum(0)
            self._counted = self.members[:, [i - self.first for i in batch.index]].astype(np.float64)
            self.counts += self._counted.sum(-1)
            self.inputs += len(batch.index)
            self.tokens += int(self._lengths.sum())
        found = features(probabilities, self._member).double().cpu().numpy() / self._lengths[:, None, None]
        documents = [self.documents[i] for i in batch.index]
        self.all.add(documents, found, np.ones((len(found), 1, 1)), at=(layer,))
        self.halves[:, layer] += np.tensordot(self._counted, found, axes=1)

    def part(self, inputs: range) -> "Accumulator":
        """An empty one for some of the inputs."""
        made = super().part(inputs)
        made.members, made.first = self.members[:, inputs.start : inputs.stop], inputs.start
        return made

    def result(self) -> DistanceFeatures:
        """Means over the inputs seen so far.

        Raises:
            ValueError: when a random half, or the whole, has seen no input.
        """
        if not self.inputs or not self.counts.all():
            raise ValueError("There are too few inputs for random halves of them; measure at least two.")
        means = self.halves / self.counts[:, None, None, None]
        estimate = self.all.estimate()
        drawn = np.isfinite(estimate.replicates).all((1, 2, 3))  # with few documents a replicate may hold none
        found = Estimate.of(estimate.value, estimate.replicates[drawn], estimate.units)
        return DistanceFeatures(found, means, self.even / self.inputs, self.inputs, self.tokens)


def random_halves(inputs: int, *, draws: int = 50, seed: int = 0) -> Bool[np.ndarray, "draw input"]:
    """Draws of half of the inputs, without replacement."""
    order = np.random.default_rng(seed).random((draws, inputs)).argsort(-1)
    return order < max(1, inputs // 2)


def measure(
    encoder: Encoder,
    inputs: Sequence[Input],
    *,
    documents: Sequence[int] | None = None,
    max_length: int = 128,
    draws: int = 50,
    shuffled: bool = False,
    batch_size: int = 16,
    seed: int = 0,
) -> DistanceFeatures:
    """The features of every head, over inputs cut to ``max_length`` tokens, in one pass with a progress bar.

    Args:
        documents: for each input the number of its document; default: each is one of its own.
        draws: number of random halves.
        shuffled: measure the control instead: every map with its scores shuffled (:mod:`helpers.controls`).
        seed: of the halves, of the bootstrap and of the deals.
    """
    inputs = list(inputs)
    documents = list(range(len(inputs))) if documents is None else list(documents)
    halves = random_halves(len(inputs), draws=draws, seed=seed)
    accumulator = Accumulator(encoder, documents, halves, seed=seed)
    longest = min(max_length, encoder.max_length)
    batches = Batches(encoder, inputs, batch_size=batch_size, max_length=longest, overlong="truncate")
    observer = sweeps.Shuffled(accumulator, seed) if shuffled else accumulator
    sweeps.sweep(encoder, tqdm(batches, desc=f"{encoder.name}: {len(inputs)} inputs"), observer)
    return replace(accumulator.result(), truncated=batches.truncated)
