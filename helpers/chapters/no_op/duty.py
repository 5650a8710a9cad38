"""A head off duty: where it looks from words that its function does not concern."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from helpers.chapters.no_op.measures import numpy_of
from helpers.corpora.treebanks import Sentence
from helpers.encoders import Encoder
from helpers.engine import sweeps
from helpers.engine.accumulators import Additive, StreamingMean
from helpers.measurements.syntax import Head, Scores
from helpers.stats import Estimate, stack
from helpers.tokens import Batch, to_words


@dataclass(frozen=True)
class Leader:
    """The best head of a relation, where heads are chosen.

    Attributes:
        head: (layer, head, direction).
        accuracy: its accuracy there.
        lead: by how much this exceeds that of the best offset.
    """

    head: Head
    accuracy: float
    lead: float


def leaders(dev: Scores, *always: str, words: int = 60, lead: float = 0.1) -> dict[str, Leader]:
    """The best head of each relation whose best head leads the best offset clearly, where heads are chosen.

    Args:
        always: relations that are kept in any case, first.
        words: the fewest that another relation has there.
        lead: the least by which the head of another relation exceeds the best offset.
    """
    counted = [r for r in dev.relations[1:] if dev.count(r) >= words]
    found = {r: _leader(dev, r) for r in (*always, *counted)}
    return {r: one for r, one in found.items() if r in always or one.lead >= lead}


def _leader(dev: Scores, relation: str) -> Leader:
    offset = dev.by_offset[:, dev.asked(relation)].mean(-1).max()
    accuracy = float(dev.accuracy(relation).max())
    return Leader(dev.best(relation), accuracy, accuracy - float(offset))


GROUPS = ("on duty", "other nouns", "no nouns", "punctuation", "off duty")
"""Kinds of attending word: those that the head's function concerns; nouns and pronouns that it does not; words of other
kinds; punctuation; and all that are neither on duty nor punctuation."""

PLACES = ("cls", "sep", "self", "partner", "other")
"""Where a word's attention goes: the special tokens, the word itself, its partner in the tree, other words."""

NOUNS = ("NOUN", "PROPN", "PRON")


@dataclass(frozen=True)
class Duty:
    """Where words look, on and off a head's duty.

    Attributes:
        share: share of word-level attention, (layer, head, group, place), see :data:`GROUPS` and :data:`PLACES`.
        count: (group,), number of words.
    """

    share: Estimate
    count: NDArray[np.int64]

    def sink(self, group: str) -> Estimate:
        """Attention to [CLS] and [SEP] together from a group of words, (layer, head)."""
        return self.share[:, :, GROUPS.index(group)].map(lambda x: x[..., :2].sum(-1))

    def of_rest(self, group: str) -> Estimate:
        """Attention to [CLS] and [SEP] as a share of what does not go to the word's partner, (layer, head)."""
        partner = PLACES.index("partner")
        return self.share[:, :, GROUPS.index(group)].map(lambda x: x[..., :2].sum(-1) / (1 - x[..., partner]))

    def retreat(self, group: str = "off duty") -> Estimate:
        """How much more a group of words attends to [CLS] and [SEP] than those on duty, (layer, head)."""
        return self.sink(group) - self.sink(GROUPS[0])

    def retreat_of_rest(self, group: str = "off duty") -> Estimate:
        """The same for :meth:`of_rest`: what remains when the partner's own share is left out, (layer, head)."""
        return self.of_rest(group) - self.of_rest(GROUPS[0])


class DutySums(Additive):
    """Sums for :class:`Duty`; an observer for :func:`helpers.engine.sweeps.sweep` over sentences given as words.

    Args:
        functions: relation -> 0 if the dependent attends to its governor, 1 if the governor attends to its dependent.
    """

    ADDED = ("sums",)
    PER_INPUT = ("sentences",)

    def __init__(
        self, encoder: Encoder, sentences: Sequence[Sentence], functions: Mapping[str, int], *, seed: int = 0
    ) -> None:
        self.sentences, self.functions = sentences, functions
        kept = (len(functions), len(GROUPS), len(PLACES))
        shape, denominators = (encoder.layers, encoder.heads, *kept), (encoder.layers, 1, *kept[:-1], 1)
        self.sums = StreamingMean(shape, denominators=denominators, seed=seed)

    def __call__(self, batch: Batch, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        words = to_words(probabilities, batch)
        if layer == 0:
            self._groups, self._governors = self._marks(batch, words)
            self._cls, self._sep = (_units(batch, at, words) for at in (batch.cls, batch.sep))
        ends = [(words * at[:, None, None]).sum(-1) for at in (self._cls, self._sep)]
        same, whole = words.diagonal(dim1=-2, dim2=-1), words.sum(-1)
        places = []  # one for each direction
        for partners in (self._governors, self._governors.mT):
            partner = (words * partners[:, None]).sum(-1)
            places.append(torch.stack([*ends, same, partner, whole - sum(ends) - same - partner], dim=-1))
        sums = [self._groups[:, None, f] @ places[d] for f, d in enumerate(self.functions.values())]
        counts = numpy_of(self._groups.sum(-1))[:, None, :, :, None]
        self.sums.add(list(batch.index), numpy_of(torch.stack(sums, dim=2)), counts, at=(layer,))

    def _marks(self, batch: Batch, words: Tensor) -> tuple[Tensor, Tensor]:
        """Each word's group, [batch, function, group, unit], and its governor, [batch, unit, unit]."""
        size, _, units, _ = words.shape
        groups = words.new_zeros(size, len(self.functions), len(GROUPS), units)
        governors = words.new_zeros(size, units, units)
        for row, number in enumerate(batch.index):
            tree = self.sentences[number]
            links = [(w, g, r) for w, (g, r) in enumerate(zip(tree.governors, tree.relations, strict=True)) if g >= 0]
            for word, governor, _ in links:
                governors[row, 1 + word, 1 + governor] = 1  # unit 0 is [CLS]
            for function, (relation, direction) in enumerate(self.functions.items()):
                on_duty = {(w, g)[direction] for w, g, r in links if r == relation}
                for word, tag in enumerate(tree.upos):
                    group = 3 if tag == "PUNCT" else 0 if word in on_duty else 1 if tag in NOUNS else 2
                    groups[row, function, [group, 4] if group in (1, 2) else [group], 1 + word] = 1
        return groups, governors

    def result(self) -> dict[str, Duty]:
        found = self.sums.estimate()
        counts = self.sums.denominator[0, 0, 0, :, :, 0].astype(np.int64)
        return {relation: Duty(found[:, :, n], counts[n]) for n, relation in enumerate(self.functions)}


def _units(batch: Batch, marks: Tensor, words: Tensor) -> Float[Tensor, "batch unit"]:
    """1 at the units of marked special tokens."""
    found = words.new_zeros(len(words), words.shape[-1])
    rows, columns = marks.nonzero(as_tuple=True)
    found[rows, batch.unit[rows, columns]] = 1
    return found


def duties(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    functions: Mapping[str, int],
    *,
    seed: int = 0,
    shuffled: bool = False,
    batch_size: int = 32,
) -> dict[str, Duty]:
    """Where each group of words looks, for all heads and several relations in one pass, with intervals over sentences.

    Args:
        sentences: with trees, each short enough for the model.
        functions: relation -> direction, see :class:`DutySums`.
        shuffled: of the control whose scores are shuffled (:mod:`helpers.controls`).
    """
    sums = DutySums(encoder, sentences, functions, seed=seed)
    words = [list(s.words) for s in sentences]
    observer = sweeps.Shuffled(sums, seed) if shuffled else sums
    sweeps.accumulate(encoder, words, observer, what=f"{len(words)} sentences", batch_size=batch_size)
    return sums.result()


def beyond(retreat: Estimate, layer: int, head: int) -> Estimate:
    """How much more one head retreats than the mean of all heads, from the same words; paired.

    Args:
        retreat: (layer, head), as of :meth:`Duty.retreat`.
    """
    return retreat[layer, head] - retreat.mean((-2, -1))


def of_working(found: Mapping[str, Duty], heads: Mapping[str, tuple[int, int]]) -> dict[str, Estimate]:
    """Means over relations of how their heads, given as (layer, head), retreat off duty; ``…_beyond``: beyond the mean of all heads.

    Returns:
        ``all``: of all attention; ``of_rest``: of what does not go to the partner; ``no_nouns``: the same, from words that are no nouns.
    """
    means = {}
    for name, take in RETREATS.items():
        pairs = [(take(found[r]), at) for r, at in heads.items()]
        means[name] = stack([retreat[at] for retreat, at in pairs])
        means[f"{name}_beyond"] = stack([beyond(retreat, *at) for retreat, at in pairs])
    return {name: estimates.mean() for name, estimates in means.items()}


RETREATS: Mapping[str, Callable[[Duty], Estimate]] = {
    "all": Duty.retreat,
    "of_rest": Duty.retreat_of_rest,
    "no_nouns": lambda found: found.retreat_of_rest("no nouns"),
}
"""How a retreat off duty is counted, each stricter than the one before: each from a :class:`Duty` to (layer, head)."""


def duty_as_dict(found: Duty, layer: int, head: int) -> dict[str, Any]:
    """One head's words and places, and how its retreat compares with that of all heads (rank 1: the largest)."""
    retreat = found.retreat()
    return {
        "layer": layer,
        "head": head,
        "groups": list(GROUPS),
        "places": list(PLACES),
        "count": found.count,
        "share": found.share[layer, head],
        "sink": stack([found.sink(g)[layer, head] for g in GROUPS]),
        "of_rest": stack([found.of_rest(g)[layer, head] for g in GROUPS]),
        "retreat": {g: found.retreat(g)[layer, head] for g in GROUPS[1:]},
        "off_duty": {name: take(found)[layer, head] for name, take in RETREATS.items()},
        "beyond": {name: beyond(take(found), layer, head) for name, take in RETREATS.items()},
        "rank": int((retreat.value > retreat.value[layer, head]).sum()) + 1,
        "retreat_of_all": retreat.value,
        "retreat_of_all_nouns": found.retreat("other nouns").value,
    }
