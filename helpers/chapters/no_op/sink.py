"""Removing the sink: what becomes of the loss when the weights to special tokens are taken away, beside as much from others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from helpers import attention, stats, tasks
from helpers.chapters.no_op import measures
from helpers.chapters.no_op.measures import Weights
from helpers.encoders import Encoder
from helpers.layers import FirstPass
from helpers.stats import Estimate, stack
from helpers.tasks import Asked, Example
from helpers.tokens import Batch

Keys = Bool[Tensor, "batch key"]


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


def without(probabilities: Weights, keys: Keys) -> Weights:
    """Attention with the weights to some tokens set to 0."""
    return probabilities.masked_fill(keys[:, None, None], 0.0)


def freed(probabilities: Weights, keys: Keys) -> Float[Tensor, "batch head query 1"]:
    """The weight that can be taken from ``keys`` or from the others alike: half of what a row gives to the side that has less.

    Half, so that on both sides something is left: what is taken from other tokens can then go to others as well.
    """
    on_keys = (probabilities * keys[:, None, None]).sum(-1, keepdim=True)
    return on_keys.minimum(without(probabilities, keys).sum(-1, keepdim=True)) / 2


def thinned(probabilities: Weights, keys: Keys, order: Int[Tensor, "batch key"]) -> Weights:
    """Attention from which other tokens than ``keys`` lose :func:`freed`; emptied one after another in the order given, the last in part."""
    rank = order.argsort(-1)
    earlier = (rank[:, :, None] < rank[:, None, :]).to(probabilities)[:, None]  # [batch, 1, key, later key]
    budget, weights = freed(probabilities, keys), without(probabilities, keys)
    return probabilities - (budget - weights @ earlier).clamp_min(0).minimum(weights)


def matched(probabilities: Weights, keys: Keys) -> Weights:
    """Attention from which ``keys`` lose :func:`freed` in proportion: as much of each row as :func:`thinned` takes from the others."""
    on_keys = (probabilities * keys[:, None, None]).sum(-1, keepdim=True)
    part = freed(probabilities, keys) / on_keys.clamp_min(torch.finfo(on_keys.dtype).tiny)
    return probabilities * (1 - part * keys[:, None, None])


def renormalised(probabilities: Weights, keys: Keys) -> Weights:
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
        change: (removal,), mean over segments of the loss with minus the loss without it, in nats.
        loss: of the untouched model.
        mass: (layer, 2), mean share of attention that goes to special tokens, and that is taken of them or of others (:func:`freed`).
        segments: how many were measured with removals from all layers at once.
    """

    removals: tuple[Removal, ...]
    change: Estimate
    loss: Estimate
    mass: Estimate
    segments: int

    def draws(self, what: str, layer: int | None, renormalise: bool) -> Estimate:
        """The change for each random draw of a removal, (draw,); one where nothing is drawn."""
        wanted = (what, layer, renormalise)
        return self.change[[n for n, r in enumerate(self.removals) if (r.what, r.layer, r.renormalise) == wanted]]

    def at(self, what: str, layer: int | None, renormalise: bool) -> Estimate:
        """The change for one removal; mean over random draws."""
        return self.draws(what, layer, renormalise).mean()

    def by_layer(self, what: str, renormalise: bool) -> Estimate:
        """The change for a removal in each layer, and last in all of them, (layer + 1,); mean over random draws."""
        return stack([self.at(what, layer, renormalise) for layer in (*range(len(self.mass.value)), None)])


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

    def measured(tried: Sequence[Removal], some: Sequence[Example]) -> list[NDArray]:
        what = f"{encoder.name}: {len(tried)} removals, {len(some)} segments"
        options = {"what": what, "seed": seed, "batch_size": batch_size}
        return measures.by_example(encoder, some, _loss_changes, tried, seed, **options)

    alone = measured(single, examples[:few])[0]
    change, loss, mass, rows = measured(together, examples)
    changes = (stats.mean(one, examples[: len(one)], seed=seed) for one in (alone, change))
    change = stack([one[n] for one in changes for n in range(len(one.value))])
    loss, mass = stats.mean(loss, examples, seed=seed), stats.ratio(zip(mass, rows, strict=True), examples, seed=seed)
    return Removed((*single, *together), change, loss, mass, len(examples))


@torch.inference_mode()
def _loss_changes(encoder: Encoder, asked: Asked, tried: Sequence[Removal], seed: int) -> tuple[NDArray, ...]:
    """For each example of a batch: how its loss changes under every removal, [row, removal]; its loss; the sums over heads and attending
    tokens of the two shares of :attr:`Removed.mass`, [row, layer, 2], and how many these are, [row, 1, 1]."""
    batch, first = asked.batch, FirstPass(encoder)
    keys, masses = batch.cls | batch.sep, []

    def look(_: int, probabilities: Tensor, __: object) -> None:
        to_special = (probabilities * keys[:, None, None]).sum(-1)  # [batch, head, query]
        both = torch.stack([to_special, freed(probabilities, keys)[..., 0]], dim=-1)
        masses.append((both * batch.mask[:, None, :, None]).sum((1, 2)))

    with attention.tap(encoder, observe=look), first.kept():
        before = tasks.losses(encoder, asked)
    after = []
    for removal in tried:
        edit = editor(removal, batch, seed=seed)
        with attention.tap(encoder, edit=edit), first.above(removal.layer or 0):
            after.append(tasks.losses(encoder, asked))
    rows = (batch.lengths * encoder.heads)[:, None, None]
    change = torch.stack(after, -1) - before[:, None]
    return tuple(one.cpu().numpy() for one in (change, before, torch.stack(masses, 1), rows))


def removed_as_dict(removed: Removed) -> dict[str, Any]:
    """Changes of the loss by layer (the last entry: all layers at once).

    ``difference``: how much more it costs to take weight from special tokens than as much from others; ``spent``: how much more a removal
    costs where the rest of the row takes its place; all paired.
    """
    whats = ("special", "matched", "random")
    layers = (*range(len(removed.mass.value)), None)
    ways: dict[str, Any] = {}
    for way, renormalise in (("as_left", False), ("renormalised", True)):
        changes: dict[str, Any] = {what: removed.by_layer(what, renormalise) for what in whats}
        changes["difference"] = changes["matched"] - changes["random"]
        changes["draws"] = [removed.draws("random", layer, renormalise).value for layer in layers]
        changes |= {f"{what}_everywhere": removed.at(what, None, renormalise) for what in ("cls", "sep")}
        ways[way] = changes
    spent = {what: ways["renormalised"][what] - ways["as_left"][what] for what in whats}
    spent["difference"] = spent["matched"] - spent["random"]
    return {"segments": removed.segments, "loss": removed.loss, "mass": removed.mass, "spent": spent, **ways}


def as_dict(sensed: measures.Sensitivity, weighed: measures.Norms, removed: Removed) -> dict[str, Any]:
    """Numbers for :func:`helpers.results.record`, by layer; head by head where the figures show heads."""
    return {
        "kinds": list(measures.KINDS),
        "segments": sensed.segments,
        "hidden_tokens": sensed.tokens,
        "loss": sensed.loss,
        "gradient": sensed.gradient.mean(-2),
        "moved": sensed.moved.mean(-2),
        "gradient_ratio": sensed.ratio(),
        "moved_ratio": sensed.ratio("moved"),
        "predicted": measures.predicted_by_layer(sensed),
        "norms": measures.norms_as_dict(weighed),
        "removed": removed_as_dict(removed),
    }
