"""A tagger of keyphrases, and what it loses when its heads are removed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from tqdm import tqdm

from helpers.chapters.keywords.measures import Words
from helpers.chapters.keywords.predictors import Head, in_order
from helpers.corpora import phrases
from helpers.engine import attention, shards, tasks
from helpers.engine.encoders import Encoder
from helpers.engine.estimates import Estimate, over
from helpers.engine.inputs import IGNORED, Asked, batches
from helpers.engine.layers import FirstPass
from helpers.engine.tasks import Example

Heads = Sequence[Head]


def tagged_chances(tagger: Encoder, words: Words, *, batch_size: int = 16) -> Float[np.ndarray, "word"]:
    """The tagger's probability that a word is part of a keyphrase."""
    found = np.zeros(len(words.key))
    options = {"what": f"{tagger.name}: keyphrases", "batch_size": batch_size, "max_length": tagger.max_length}
    for asked, chances in tasks.each(tagger, words.examples, _chances, **options):
        for number, values in zip(asked.example, chances, strict=True):
            found[words.starts[number] : words.starts[number] + len(values)] = values
    return found


@torch.no_grad()
def _chances(tagger: Encoder, asked: Asked) -> list[Float[np.ndarray, "word"]]:
    outside = tagger.logits(asked.batch).double().softmax(-1)[..., phrases.OUTSIDE].cpu()
    known = (asked.targets != IGNORED).cpu()
    return [1 - row[here].numpy() for row, here in zip(outside, known, strict=True)]


SCORES = ("f1", "f1_all", "loss")
"""Scores of the tagger for each document, see :class:`helpers.engine.tasks.Scores`."""


def tagging(tagger: Encoder, examples: Sequence[Example], without: Heads = ()) -> Float[np.ndarray, "document 3"]:
    """The tagger's :data:`SCORES` of each document, with some heads' weights set to zero."""
    with attention.tap(tagger, edit=attention.zero(without)):
        scores = tasks.score(tagger, examples, max_length=tagger.max_length)
    return np.stack([scores.values[name] for name in SCORES], axis=-1)


@dataclass(frozen=True, eq=False)
class RemoveOne:
    """What the tagger loses or gains when one head is removed.

    Attributes:
        whole: [document, 3], the scores of the whole tagger.
        each: [layer, head, document, 3], without one head.
        change: (layer, head, 3), mean change over documents.
    """

    whole: Float[np.ndarray, "document score"]
    each: Float[np.ndarray, "layer head document score"]
    change: Estimate

    def order(self) -> list[Head]:
        """All heads, from the one whose removal raises the loss least (or lowers it most) to the one that is missed most."""
        return in_order(self.change.value[..., SCORES.index("loss")])


def remove_one(tagger: Encoder, examples: Sequence[Example], *, seed: int = 0) -> RemoveOne:
    """Remove each head in turn."""
    sets = [(), *([head] for head in np.ndindex(tagger.layers, tagger.heads))]
    whole, *each = _each_set(tagger, examples, sets)
    each = np.stack(each).reshape(tagger.layers, tagger.heads, *whole.shape)
    return RemoveOne(whole, each, over(np.moveaxis(each - whole, 2, 0), seed=seed))


TOGETHER = 24
"""Sets of heads that share a first pass over a batch, and are measured in one part of the work."""


def _each_set(
    tagger: Encoder, examples: Sequence[Example], sets: Sequence[Heads]
) -> Float[np.ndarray, "set document 3"]:
    """:func:`tagging` without each set of heads, measured wherever :mod:`helpers.engine.shards` is told to."""
    found = np.zeros((len(sets), len(examples), len(SCORES)))
    groups = [range(low, min(low + TOGETHER, len(sets))) for low in range(0, len(sets), TOGETHER)]
    cut = list(product(batches(tagger, examples, max_length=tagger.max_length), groups))
    parts = ((asked, [sets[n] for n in group]) for asked, group in cut)
    what = f"{len(sets)} sets of heads"
    scores = shards.each(tagger, _without, parts, examples, what=what, total=len(cut))
    for (asked, group), values in zip(cut, tqdm(scores, desc=what, total=len(cut)), strict=True):
        found[np.ix_(group, asked.example)] = values
    return found


@torch.no_grad()
def _without(
    tagger: Encoder, part: tuple[Asked, Sequence[Heads]], examples: Sequence[Example]
) -> Float[np.ndarray, "set row 3"]:
    """Scores of one batch without each set of heads; what lies below a set's lowest layer is computed once for all."""
    asked, first, found = part[0].to(tagger.device), FirstPass(tagger), []
    with attention.tap(tagger), first.kept():
        tagger.model(**asked.batch.inputs)
    for heads in part[1]:
        lowest = min((layer for layer, _ in heads), default=tagger.layers - 1)
        with attention.tap(tagger, edit=attention.zero(heads)), first.above(lowest):
            values = tasks.score_tags(tagger, examples, [asked]).values
        found.append(np.stack([values[name][list(asked.example)] for name in SCORES], axis=-1))
    return np.stack(found)


@dataclass(frozen=True, eq=False)
class Curve:
    """The tagger's scores as more and more heads are removed.

    Attributes:
        counts: how many heads are removed.
        each: [count, document, 3], scores.
        scores: (count, 3), mean over documents.
        change: (count, 3), mean change from the whole tagger.
    """

    counts: tuple[int, ...]
    each: Float[np.ndarray, "count document score"]
    scores: Estimate
    change: Estimate

    @classmethod
    def of(cls, counts: Sequence[int], each: Float[np.ndarray, "count document score"], *, seed: int = 0) -> "Curve":
        """With means over documents and their intervals."""
        scores, change = (over(np.moveaxis(a, 1, 0), seed=seed) for a in (each, each - each[:1]))
        return cls(tuple(counts), each, scores, change)

    def most(self, score: str = "f1") -> int:
        """The number of heads without which the mean score is highest; the larger number where it is the same."""
        values = self.scores.value[:, SCORES.index(score)]
        return self.counts[int(np.flatnonzero(values == values.max())[-1])]


def remove_in_order(
    tagger: Encoder, examples: Sequence[Example], orders: Mapping[str, Heads], counts: Sequence[int], *, seed: int = 0
) -> dict[str, Curve]:
    """Remove the first heads of each order; sets of heads that several orders share are scored once.

    Args:
        counts: how many to remove; should begin with 0.
    """
    sets = {name: [frozenset(order[:count]) for count in counts] for name, order in orders.items()}
    distinct = list(dict.fromkeys(s for found in sets.values() for s in found))
    scored = _each_set(tagger, examples, list(map(sorted, distinct)))
    known = dict(zip(distinct, scored, strict=True))
    return {
        name: Curve.of(counts, np.stack([known[chosen] for chosen in found]), seed=seed)
        for name, found in sets.items()
    }


def orders(found: RemoveOne, *, random: int = 3, seed: int = 0) -> dict[str, list[Head]]:
    """Least missed first, most missed first, and random orders."""
    worst = found.order()
    shuffled = {
        f"random {n + 1}": [worst[i] for i in np.random.default_rng([seed, n]).permutation(len(worst))]
        for n in range(random)
    }
    return {"least missed first": worst, "most missed first": worst[::-1]} | shuffled


def averaged(curves: Mapping[str, Curve], *, seed: int = 0) -> Curve:
    """The mean of several curves over the same documents, such as random orders."""
    each = np.mean([c.each for c in curves.values()], axis=0)
    return Curve.of(next(iter(curves.values())).counts, each, seed=seed)


def steps(total: int, points: int) -> tuple[int, ...]:
    """About ``points`` numbers of heads from 0 to all."""
    return tuple(sorted({round(n * total / (points - 1)) for n in range(points)}))


def as_record(curve: Curve) -> dict[str, Any]:
    """A curve for recording."""
    return {"counts": curve.counts, "scores": curve.scores, "change": curve.change}
