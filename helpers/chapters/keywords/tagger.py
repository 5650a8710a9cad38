"""A tagger of keyphrases, and what it loses when its heads are removed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy import stats
from tqdm import tqdm

from helpers import attention, parallel, phrases, tasks
from helpers.chapters.keywords.measures import Words
from helpers.chapters.keywords.predictors import Head, in_order
from helpers.encoders import Encoder
from helpers.inputs import IGNORED, Asked, batches
from helpers.layers import FirstPass
from helpers.stats import Estimate, mean
from helpers.tasks import Example

Heads = Sequence[Head]


def tagged_chances(tagger: Encoder, words: Words, *, batch_size: int = 16) -> Float[np.ndarray, "word"]:
    """The tagger's probability that a word is part of a keyphrase."""
    found = np.zeros(len(words.key))
    options = {"what": f"{tagger.name}: keyphrases", "batch_size": batch_size, "max_length": tagger.max_length}
    for asked, chances in tasks.each(tagger, words.examples, _chances, **options):
        for number, places, values in zip(asked.example, asked.words, chances, strict=True):
            found[words.starts[number] + places] = values
    return found


@torch.no_grad()
def _chances(tagger: Encoder, asked: Asked) -> list[Float[np.ndarray, "word"]]:
    outside = tagger.logits(asked.batch).double().softmax(-1)[..., phrases.OUTSIDE].cpu()
    known = (asked.targets != IGNORED).cpu()
    return [1 - row[here].numpy() for row, here in zip(outside, known, strict=True)]


SCORES = ("f1", "f1_all", "loss", "given", "hits", "right")
"""What is measured of the tagger for each document, three scores that :mod:`helpers.tasks` gives, and how many phrases it gives,
how many of them are right, and how many would be."""


def tagging(tagger: Encoder, examples: Sequence[Example], without: Heads = ()) -> Float[np.ndarray, "document score"]:
    """The tagger's :data:`SCORES` of each document, with some heads' weights set to zero."""
    with attention.tap(tagger, edit=attention.zero(without)):
        scores = tasks.score(tagger, examples, max_length=tagger.max_length)
    return _values(scores, examples, range(len(examples)))


def _values(
    scores: tasks.Scores, examples: Sequence[Example], numbers: Sequence[int]
) -> Float[np.ndarray, "document score"]:
    """The :data:`SCORES` of the examples with some numbers."""
    counts = []
    for number in numbers:
        said = set(filter(None, scores.predictions[number].split("; ")))
        right = set(phrases.locate(examples[number].spelled, examples[number].keyphrases))
        counts.append([len(said), len(said & right), len(right)])
    own = np.stack([scores.values[name][list(numbers)] for name in SCORES[:3]], axis=-1)
    return np.concatenate([own, counts], axis=-1)


LEVEL = 0.05
"""The share of false discoveries among heads that stand (:meth:`RemoveOne.stands`)."""


@dataclass(frozen=True, eq=False)
class RemoveOne:
    """What the tagger loses or gains when one head is removed.

    Attributes:
        whole: [document, score], the :data:`SCORES` of the whole tagger.
        each: [layer, head, document, score], without one head.
        change: (layer, head, score), mean change over documents.
    """

    whole: Float[np.ndarray, "document score"]
    each: Float[np.ndarray, "layer head document score"]
    change: Estimate

    def order(self, by: str = "loss") -> list[Head]:
        """All heads, from the one that is missed least to the one that is missed most.

        Args:
            by: ``loss``, which rises without a head that is missed, or ``f1``, which falls; heads that F1 misses alike are in
                the order of the loss.
        """
        loss, f1 = (self.change.value[..., SCORES.index(name)] for name in ("loss", "f1"))
        if by == "loss":
            return in_order(loss)
        return [divmod(int(n), loss.shape[1]) for n in np.lexsort((loss.ravel(), -f1.ravel()))]

    def stands(self, by: str = "loss", level: float = LEVEL) -> Bool[np.ndarray, "layer head"]:
        """Heads whose change is not 0 when all heads are tested together.

        Student's t over documents for each head, and a false discovery rate for all of them (Benjamini & Hochberg 1995).

        Args:
            by: one of the :data:`SCORES`.
            level: the share of false discoveries.
        """
        change = (self.each - self.whole)[..., SCORES.index(by)]
        varied = change.std(-1) > 0  # of one document, or of equal changes, there is nothing to test
        p = np.ones(varied.shape)
        if varied.any():
            p[varied] = stats.ttest_1samp(change[varied], 0, axis=-1).pvalue
        return stats.false_discovery_control(p.ravel()).reshape(p.shape) <= level


def remove_one(tagger: Encoder, examples: Sequence[Example], *, seed: int = 0) -> RemoveOne:
    """Remove each head in turn."""
    sets = [(), *([head] for head in np.ndindex(tagger.layers, tagger.heads))]
    whole, *each = _each_set(tagger, examples, sets)
    each = np.stack(each).reshape(tagger.layers, tagger.heads, *whole.shape)
    return RemoveOne(whole, each, mean(np.moveaxis(each - whole, 2, 0), range(len(examples)), seed=seed))


TOGETHER = 24
"""Sets of heads that share a first pass over a batch, and are measured in one part of the work."""


def _each_set(
    tagger: Encoder, examples: Sequence[Example], sets: Sequence[Heads]
) -> Float[np.ndarray, "set document score"]:
    """:func:`tagging` without each set of heads, measured wherever :mod:`helpers.parallel` is told to."""
    found = np.zeros((len(sets), len(examples), len(SCORES)))
    groups = [range(low, min(low + TOGETHER, len(sets))) for low in range(0, len(sets), TOGETHER)]
    cut = list(product(batches(tagger, examples, max_length=tagger.max_length), groups))
    parts = ((asked, [sets[n] for n in group]) for asked, group in cut)
    what = f"{len(sets)} sets of heads"
    scores = parallel.each(tagger, _without, parts, examples)
    for (asked, group), values in zip(cut, tqdm(scores, desc=what, total=len(cut)), strict=True):
        found[np.ix_(group, asked.example)] = values
    return found


@torch.no_grad()
def _without(
    tagger: Encoder, part: tuple[Asked, Sequence[Heads]], examples: Sequence[Example]
) -> Float[np.ndarray, "set row score"]:
    """Scores of one batch without each set of heads; what lies below a set's lowest layer is computed once for all."""
    asked, first, found = part[0].to(tagger.device), FirstPass(tagger), []
    with attention.tap(tagger), first.kept():
        tagger.model(**asked.batch.inputs)
    for heads in part[1]:
        lowest = min((layer for layer, _ in heads), default=tagger.layers - 1)
        with attention.tap(tagger, edit=attention.zero(heads)), first.above(lowest):
            found.append(_values(tasks.score_tags(tagger, examples, [asked]), examples, asked.example))
    return np.stack(found)


@dataclass(frozen=True, eq=False)
class Curve:
    """The tagger's scores as more and more heads are removed.

    Attributes:
        counts: how many heads are removed.
        each: [count, document, score], the :data:`SCORES`.
        scores: (count, score), mean over documents.
        change: (count, score), mean change from the whole tagger.
    """

    counts: tuple[int, ...]
    each: Float[np.ndarray, "count document score"]
    scores: Estimate
    change: Estimate

    @classmethod
    def of(cls, counts: Sequence[int], each: Float[np.ndarray, "count document score"], *, seed: int = 0) -> "Curve":
        """With means over documents and their intervals."""
        scores, change = (
            mean(np.moveaxis(a, 1, 0), range(each.shape[1]), seed=seed) for a in (each, each - each[:1])
        )
        return cls(tuple(counts), each, scores, change)

    def score(self, name: str) -> Estimate:
        """(count), one of the :data:`SCORES`."""
        return self.scores[:, SCORES.index(name)]

    @property
    def precision(self) -> Estimate:
        """(count), share of the phrases given that are right, over all documents; 0 where none is given."""
        return _share(self.score("hits"), self.score("given"))

    @property
    def recall(self) -> Estimate:
        """(count), share of the right phrases that are given, over all documents."""
        return _share(self.score("hits"), self.score("right"))

    def most(self, score: str = "f1") -> int:
        """The number of heads without which the mean score is highest; the larger number where it is the same."""
        values = self.scores.value[:, SCORES.index(score)]
        return self.counts[int(np.flatnonzero(values == values.max())[-1])]


def _share(part: Estimate, whole: Estimate) -> Estimate:
    """Quotient of two means over the same documents, paired; 0 where there is nothing to divide by."""
    value, replicates = (
        np.divide(a, b, out=np.zeros_like(b), where=b > 0)
        for a, b in ((part.value, whole.value), (part.replicates, whole.replicates))
    )
    return Estimate.of(value, replicates, part.units).within(0.0, 1.0)


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
    """Least missed first and most missed first, by the loss and by F1, and random orders."""
    made = {}
    for by, name in (("loss", "loss"), ("f1", "F1")):
        worst = found.order(by)
        made |= {f"least missed first, by {name}": worst, f"most missed first, by {name}": worst[::-1]}
    worst = found.order()
    shuffled = {
        f"random {n + 1}": [worst[i] for i in np.random.default_rng([seed, n]).permutation(len(worst))]
        for n in range(random)
    }
    return made | shuffled


def averaged(curves: Mapping[str, Curve], *, seed: int = 0) -> Curve:
    """The mean of several curves over the same documents, such as random orders."""
    each = np.mean([c.each for c in curves.values()], axis=0)
    return Curve.of(next(iter(curves.values())).counts, each, seed=seed)


def steps(total: int, points: int) -> tuple[int, ...]:
    """About ``points`` numbers of heads from 0 to all."""
    return tuple(sorted({round(n * total / (points - 1)) for n in range(points)}))


def as_record(curve: Curve) -> dict[str, Any]:
    """A curve for recording."""
    kept = ("counts", "scores", "change", "precision", "recall")
    return {name: getattr(curve, name) for name in kept}


def curve_panels(curves: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Estimate]]:
    """What there is to draw of curves that are recorded, or about to be: what is measured -> order of removal -> (count)."""

    def scored(name: str) -> dict[str, Estimate]:
        column = SCORES.index(name)
        return {order: Estimate.from_record(c["scores"])[:, column] for order, c in curves.items()}

    shown = {"F1 of phrases": "f1", "loss (nats a word)": "loss", "phrases given a document": "given"}
    shares = {n: {order: Estimate.from_record(c[n]) for order, c in curves.items()} for n in ("precision", "recall")}
    return {title: scored(name) for title, name in shown.items()} | shares
