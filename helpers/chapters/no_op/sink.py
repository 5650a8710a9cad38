"""Removing the sink: what becomes of the loss when the weights to special tokens are taken away, beside as much from others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from helpers import attention, tasks
from helpers.chapters.no_op.measures import (
    KINDS,
    Norms,
    Sensitivity,
    ask,
    norms_as_dict,
    numpy_of,
    predicted_by_layer,
)
from helpers.encoders import Encoder
from helpers.engine.accumulators import Additive, StreamingMean
from helpers.layers import FirstPass
from helpers.stats import Estimate, stack
from helpers.tasks import Asked, Example
from helpers.tokens import Batch


@dataclass(frozen=True)
class Removal:
    """What is taken out of the attention.

    Attributes:
        what: ``special`` ([CLS] and [SEP]), ``cls``, ``sep``: all of these; ``matched``: a part of the weight on special
            tokens (:func:`freed`); ``random``: as much from other tokens.
        layer: where, from 0; None: in every layer.
        renormalise: give what was taken to the other tokens that are left (:func:`renormalised`).
        draw: which random order of the tokens.
    """

    what: str
    layer: int | None
    renormalise: bool
    draw: int = 0


def removals(layers: int, *, draws: int = 2) -> tuple[tuple[Removal, ...], tuple[Removal, ...]]:
    """The chapter's: special tokens, and random others, with and without renormalising.

    Returns:
        those from one layer at a time, with those of one special token; and those from all layers at once.
    """
    whats = [("special", 0), ("matched", 0), *(("random", draw) for draw in range(draws))]
    ways = (False, True)
    single = [Removal(what, layer, r, draw) for r in ways for layer in range(layers) for what, draw in whats]
    ends = [Removal(what, None, r) for r in ways for what in ("cls", "sep")]
    return (*single, *ends), tuple(Removal(what, None, r, draw) for r in ways for what, draw in whats)


def without(
    probabilities: Float[Tensor, "batch head query key"], keys: Bool[Tensor, "batch key"]
) -> Float[Tensor, "batch head query key"]:
    """Attention with the weights to some tokens set to 0."""
    return probabilities.masked_fill(keys[:, None, None], 0.0)


def freed(
    probabilities: Float[Tensor, "batch head query key"], keys: Bool[Tensor, "batch key"]
) -> Float[Tensor, "batch head query 1"]:
    """The weight that can be taken from ``keys`` or from the others alike: half of what a row gives to the side that has less.

    Half, so that on both sides something is left: what is taken from other tokens can then go to others as well.
    """
    on_keys = (probabilities * keys[:, None, None]).sum(-1, keepdim=True)
    return on_keys.minimum(without(probabilities, keys).sum(-1, keepdim=True)) / 2


def thinned(
    probabilities: Float[Tensor, "batch head query key"],
    keys: Bool[Tensor, "batch key"],
    order: Int[Tensor, "batch key"],
) -> Float[Tensor, "batch head query key"]:
    """Attention from which other tokens than ``keys`` lose :func:`freed`; emptied one after another in the order given, the last in part."""
    rank = order.argsort(-1)
    earlier = (rank[:, :, None] < rank[:, None, :]).to(probabilities)[:, None]  # [batch, 1, key, later key]
    budget, weights = freed(probabilities, keys), without(probabilities, keys)
    return probabilities - (budget - weights @ earlier).clamp_min(0).minimum(weights)


def matched(
    probabilities: Float[Tensor, "batch head query key"], keys: Bool[Tensor, "batch key"]
) -> Float[Tensor, "batch head query key"]:
    """Attention from which ``keys`` lose :func:`freed` in proportion: as much of each row as :func:`thinned` takes from the others."""
    on_keys = (probabilities * keys[:, None, None]).sum(-1, keepdim=True)
    part = freed(probabilities, keys) / on_keys.clamp_min(torch.finfo(on_keys.dtype).tiny)
    return probabilities * (1 - part * keys[:, None, None])


def renormalised(
    probabilities: Float[Tensor, "batch head query key"], keys: Bool[Tensor, "batch key"]
) -> Float[Tensor, "batch head query key"]:
    """Rows that sum to 1 again: ``keys`` keep what they have, the others grow in proportion; where they have nothing, they stay so.

    Where ``keys`` have lost everything, this divides the row by its sum.
    """
    others = without(probabilities, keys)
    left, kept = others.sum(-1, keepdim=True), (probabilities * keys[:, None, None]).sum(-1, keepdim=True)
    grown = others * ((1 - kept) / left.clamp_min(torch.finfo(left.dtype).tiny))
    return torch.where(keys[:, None, None], probabilities, grown)


def editor(removal: Removal, batch: Batch, *, seed: int = 0) -> attention.Editor:
    """The removal as an editor for this batch.

    Args:
        seed: of the random orders; a segment's order depends on it, on ``removal.draw`` and on the segment's number.
    """
    keys = {"cls": batch.cls, "sep": batch.sep}.get(removal.what, batch.cls | batch.sep)
    order = _orders(batch, [seed, removal.draw]) if removal.what == "random" else None

    def edit(layer: int, probabilities: Tensor) -> Tensor:
        if removal.layer not in (None, layer):
            return probabilities
        if order is not None:
            left = thinned(probabilities, keys, order)
        else:
            left = (matched if removal.what == "matched" else without)(probabilities, keys)
        return renormalised(left, keys) if removal.renormalise else left

    return edit


def _orders(batch: Batch, seed: Sequence[int]) -> Int[Tensor, "batch key"]:
    """A random order of each input's real tokens, then its padding."""
    orders = torch.arange(batch.ids.shape[1]).repeat(len(batch.index), 1)
    for row, (number, length) in enumerate(zip(batch.index, batch.lengths.tolist(), strict=True)):
        orders[row, :length] = torch.from_numpy(np.random.default_rng([*seed, number]).permutation(length))
    return orders.to(batch.ids.device)


@dataclass(frozen=True)
class Removed:
    """How the loss changes when attention is taken away.

    Attributes:
        removals: what was tried.
        change: for each removal, mean over segments of the loss with minus the loss without it, in nats.
        loss: of the untouched model.
        mass: (layer, 2), mean share of attention that goes to special tokens, and that is taken of them or of others (:func:`freed`).
        segments: how many were measured with removals from all layers at once.
    """

    removals: tuple[Removal, ...]
    change: tuple[Estimate, ...]
    loss: Estimate
    mass: Estimate
    segments: int

    def by_layer(self, what: str, renormalise: bool) -> Estimate:
        """The change for a removal in each layer, and last in all of them, (layer + 1,); mean over random draws."""
        return self._by_layer(lambda layer: self.at(what, layer, renormalise))

    def spent(self, what: str) -> Estimate:
        """How much more a removal costs where the rest of the row takes its place, (layer + 1,); paired."""
        return self._by_layer(lambda layer: self._spent(what, layer))

    def apart(self, renormalise: bool) -> Estimate:
        """How much more it costs to take weight from special tokens than as much from others, (layer + 1,); paired."""
        return self._by_layer(
            lambda layer: self.at("matched", layer, renormalise) - self.at("random", layer, renormalise)
        )

    def spent_apart(self) -> Estimate:
        """The same for :meth:`spent`."""
        return self._by_layer(lambda layer: self._spent("matched", layer) - self._spent("random", layer))

    def at(self, what: str, layer: int | None, renormalise: bool) -> Estimate:
        """The change for one removal; mean over random draws."""
        return stack(self._found(what, layer, renormalise)).mean()

    def draws(self, layer: int | None, renormalise: bool) -> NDArray[np.float64]:
        """The change for each random draw."""
        return np.array([one.value for one in self._found("random", layer, renormalise)])

    def _spent(self, what: str, layer: int | None) -> Estimate:
        return self.at(what, layer, True) - self.at(what, layer, False)

    def _by_layer(self, found: Callable[[int | None], Estimate]) -> Estimate:
        return stack([found(layer) for layer in (*sorted({r.layer for r in self.removals} - {None}), None)])

    def _found(self, *wanted: object) -> list[Estimate]:
        tried = zip(self.removals, self.change, strict=True)
        return [change for r, change in tried if (r.what, r.layer, r.renormalise) == wanted]


def remove(
    encoder: Encoder,
    examples: Sequence[Example],
    *,
    few: int | None = None,
    draws: int = 2,
    seed: int = 0,
    batch_size: int = 16,
) -> Removed:
    """Take attention away and measure what it does to the loss on hidden words, segment by segment.

    Args:
        encoder, examples: as in :func:`sensitivity`.
        few: how many of the examples are measured with removals from one layer at a time, and of one special token (default: all).
        draws: random orders in which other tokens lose weight.
        seed: of the hidden words (the same as in :func:`sensitivity`), the orders and the bootstrap over documents.
    """
    single, together = removals(encoder.layers, draws=draws)

    def measured(tried: tuple[Removal, ...], some: Sequence[Example]) -> RemovalSums:
        sums = RemovalSums(encoder, [e.document for e in some], tried, seed=seed)
        ask(encoder, some, sums, seed=seed, batch_size=batch_size, doing=f"{len(tried)} removals")
        return sums

    ours = measured(together, examples)
    changes = (measured(single, examples[:few]).change.estimate(), ours.change.estimate())
    each = tuple(change[n] for change in changes for n in range(len(change.value)))
    return Removed(single + together, each, ours.plain.estimate(), ours.mass.estimate(), len(examples))


class RemovalSums(Additive):
    """Sums of what removals do to the loss.

    Args:
        documents: for each input, the number of its document (the unit of the bootstrap).
        tried: the removals.
        seed: of the bootstrap and of the random orders.
    """

    ADDED = ("change", "plain", "mass")
    PER_INPUT = ("documents",)

    def __init__(self, encoder: Encoder, documents: Sequence[int], tried: tuple[Removal, ...], *, seed: int) -> None:
        self.encoder, self.documents, self.tried, self.seed = encoder, documents, tried, seed
        self.change = StreamingMean((len(tried),), denominators=(1,), seed=seed)
        self.plain = StreamingMean((), seed=seed)
        self.mass = StreamingMean((encoder.layers, 2), denominators=(encoder.layers, 1), seed=seed)

    def add(self, asked: Asked) -> None:
        """Measure a batch's loss as it is and under every removal."""
        numbers, ones = [self.documents[i] for i in asked.example], np.ones(len(asked.example))

        def look(layer: int, p: Tensor, _: object) -> None:
            self.mass.add(numbers, *_mass(p, asked.batch), at=(layer,))

        with torch.inference_mode():
            first, after = FirstPass(self.encoder), []
            with attention.tap(self.encoder, observe=look), first.kept():
                before = tasks.losses(self.encoder, asked)
            for removal in self.tried:
                edit = editor(removal, asked.batch, seed=self.seed)
                with attention.tap(self.encoder, edit=edit), first.above(removal.layer or 0):
                    after.append(tasks.losses(self.encoder, asked))
        self.plain.add(numbers, numpy_of(before), ones)
        self.change.add(numbers, numpy_of(torch.stack(after, -1) - before[:, None]), ones[:, None])


def _mass(probabilities: Tensor, batch: Batch) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weight of each row on special tokens, and what is taken of it: sums over rows and heads, and counts."""
    keys = batch.cls | batch.sep
    to_special = (probabilities * keys[:, None, None]).sum(-1)  # [batch, head, query]
    both = torch.stack([to_special, freed(probabilities, keys)[..., 0]], dim=-1)
    sums = (both * batch.mask[:, None, :, None]).sum((1, 2))
    return numpy_of(sums), numpy_of(batch.lengths * probabilities.shape[1])[:, None]


def removed_as_dict(removed: Removed) -> dict[str, Any]:
    """Changes of the loss by layer (the last entry: all layers at once)."""
    found: dict[str, Any] = {"segments": removed.segments, "loss": removed.loss, "mass": removed.mass}
    whats = ("special", "matched", "random")
    found["spent"] = {what: removed.spent(what) for what in whats} | {"difference": removed.spent_apart()}
    for renormalise in (False, True):
        changes = {what: removed.by_layer(what, renormalise) for what in whats}
        layers = range(len(changes["special"].value) - 1)
        found["renormalised" if renormalise else "as_left"] = changes | {
            "difference": removed.apart(renormalise),
            "draws": [removed.draws(layer, renormalise) for layer in (*layers, None)],
            "cls_everywhere": removed.at("cls", None, renormalise),
            "sep_everywhere": removed.at("sep", None, renormalise),
        }
    return found


def as_dict(sensed: Sensitivity, weighed: Norms, removed: Removed) -> dict[str, Any]:
    """Numbers for :func:`helpers.results.record`, by layer; head by head where the figures show heads."""
    return {
        "kinds": list(KINDS),
        "segments": sensed.segments,
        "hidden_tokens": sensed.tokens,
        "loss": sensed.loss,
        "gradient": sensed.gradient.mean(-2),
        "moved": sensed.moved.mean(-2),
        "gradient_ratio": sensed.ratio(),
        "moved_ratio": sensed.ratio("moved"),
        "predicted": predicted_by_layer(sensed),
        "norms": norms_as_dict(weighed),
        "removed": removed_as_dict(removed),
    }
