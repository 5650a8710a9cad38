"""Chapter 08: which heads behave alike, seen from how far they look.

A head is described by 21 numbers: its mean attention to [CLS], to [SEP], to commas and to full stops, to the
token itself, and to 16 windows of distance that grow with the input. Heads are then clustered on these
numbers and the clusters named. After Guan et al. 2020, sections 3 and 4, with controls for what clustering
finds where there is nothing to find.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from helpers import attention, stats
from helpers.encoders import Encoder
from helpers.stats import Estimate
from helpers.tokens import EncodedText, Input

WINDOWS = 16
KINDS = ("cls", "sep", "comma", "period")
FEATURES = ("self", *(f"window {w}" for w in range(1, WINDOWS + 1)), *KINDS)
"""The 21 numbers of a head, in the order of every array whose last axis is ``feature``."""

SPECIAL = len(FEATURES) - len(KINDS)  # where the four kinds of token begin
REPLICATES = 200
"""Of the bootstrap over documents: heads are clustered anew in each."""


def cells(text: EncodedText) -> Int[Tensor, "query key"]:
    """Which of the 21 features each cell (i, j) of a text's map belongs to.

    The kind of the attended token comes first: a cell whose key is [CLS], [SEP], a comma or a full stop counts
    there, also on the diagonal and at any distance. Then the diagonal (``self``). Every other cell falls in
    window ``1 + ⌊16 |i - j| / n⌋``, with n tokens, the same for both directions. So all cells are divided among
    the features, whatever the length; windows narrower than one token stay empty.
    """
    device, n = text.stop.device, len(text.tokens)
    place = torch.arange(n, device=device)
    distance = (place[:, None] - place).abs()
    found = torch.where(distance == 0, 0, 1 + WINDOWS * distance // n)
    commas = torch.tensor([t.endswith(",") for t in text.tokens], device=device)  # a mark may stand before one
    for kind, keys in enumerate((text.cls, text.sep, text.stop & commas, text.stop & ~commas), SPECIAL):
        found[:, keys] = kind
    return found


def look(maps: Float[Tensor, "layer head query key"], text: EncodedText) -> dict[str, Any]:
    """The features of every head in one text, [layer, head, feature]: attention to the cells of each, mean over the rows.

    One matrix product for all heads and features. Also what even attention has, [feature], and the number of tokens.
    """
    n = len(text.tokens)
    member = one_hot(cells(text).flatten(), len(FEATURES)).to(maps.dtype)  # [cell, feature]
    return {"features": maps.flatten(-2) @ member / n, "even": member.mean(0), "tokens": n, "cut": text.cut}


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

    @classmethod
    def of(
        cls, found: Sequence[Mapping[str, Any]], documents: Sequence[int], *, draws: int = 50, seed: int = 0
    ) -> "DistanceFeatures":
        """Means of what :func:`look` found of each text, so that each counts once, whatever its length.

        Args:
            documents: for each text the number of its document, the unit of the bootstrap.
            draws: number of random halves.
        """
        features, even, tokens, cut = (np.stack([text[name] for text in found]) for name in found[0])
        mean = stats.mean(features, by=documents, seed=seed)
        replicates = mean.replicates[:REPLICATES]
        replicates = replicates[np.isfinite(replicates).all((1, 2, 3))]  # with few documents one may hold none
        halves = random_halves(len(found), draws=draws, seed=seed)
        means = np.tensordot(halves / halves.sum(1, keepdims=True), features, 1)
        every = Estimate.of(mean.value, replicates, mean.units)
        return cls(every, means, even.mean(0, dtype=np.float64), len(found), int(tokens.sum()), int(cut.sum()))

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
    seed: int = 0,
) -> DistanceFeatures:
    """The features of every head, over inputs cut to ``max_length`` tokens.

    Args:
        documents: for each input the number of its document; default: each is one of its own.
        draws: number of random halves.
        shuffled: measure the control instead: every map with its scores shuffled (:mod:`helpers.controls`).
        seed: of the halves, of the bootstrap and of the shuffling.
    """
    found = attention.measure(encoder, inputs, look, longest=max_length, shuffled=shuffled, seed=seed)
    return DistanceFeatures.of(found, range(len(inputs)) if documents is None else documents, draws=draws, seed=seed)
