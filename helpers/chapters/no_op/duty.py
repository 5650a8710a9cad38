"""A head off duty: where it looks from words that its function does not concern."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from helpers import attention, stats
from helpers.corpora.records import Sentence
from helpers.encoders import Encoder
from helpers.measurements.syntax import Scores
from helpers.stats import Estimate, stack
from helpers.tokens import EncodedText, by_word


@dataclass(frozen=True)
class Leader:
    """The best head of a relation, where heads are chosen.

    Attributes:
        head: (layer, head, direction).
        accuracy: its accuracy there.
        lead: by how much this exceeds that of the best offset.
    """

    head: tuple[int, ...]
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
    found = {}
    for relation in (*always, *counted):
        asked = dev.asked(relation)
        accuracy = float(dev.accuracy(relation).max())
        offset = float(dev.offsets[asked].accuracy().max())
        if relation in always or accuracy - offset >= lead:
            found[relation] = Leader(dev.hits[asked].best(), accuracy, accuracy - offset)
    return found


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

    def retreats(self) -> dict[str, Estimate]:
        """How a retreat off duty is counted, each stricter than the one before, (layer, head).

        Returns:
            ``all``: of all attention; ``of_rest``: of what does not go to the partner; ``no_nouns``: the same, from words that are no nouns.
        """
        on_duty = self.of_rest(GROUPS[0])
        rest = {"of_rest": "off duty", "no_nouns": "no nouns"}
        return {"all": self.retreat()} | {name: self.of_rest(group) - on_duty for name, group in rest.items()}


def groups(tree: Sentence, relation: str, direction: int) -> Bool[np.ndarray, "group word"]:
    """Which words of a sentence are of which of :data:`GROUPS`.

    Args:
        direction: 0 if the dependent of the relation attends to its governor, 1 if the governor attends to its dependent.
    """
    links = [(w, g) for w, (g, r) in enumerate(zip(tree.governors, tree.relations, strict=True)) if r == relation]
    attending = [link[direction] for link in links if link[1] >= 0]
    punctuation, nouns = np.array(tree.upos) == "PUNCT", np.isin(tree.upos, NOUNS)
    on = np.isin(np.arange(len(tree.words)), attending) & ~punctuation
    off = ~on & ~punctuation
    return np.stack([on, off & nouns, off & ~nouns, punctuation, off])


def look_from_words(
    maps: Float[Tensor, "layer head query key"], text: EncodedText, functions: Mapping[str, int]
) -> dict[str, Any]:
    """Sums of word-level attention over the words of each group of one sentence, [function, layer, head, group, place]; how many words
    there are, [function, group].

    Args:
        text: of a sentence with a tree, as its ``source``.
        functions: relation -> direction, see :func:`groups`.
    """
    tree, n = text.source, len(text.words)
    words = by_word(maps, text, special=True)[..., 2:, :]
    cls, sep, words = words[..., 0], words[..., 1], words[..., 2:]
    same = words.diagonal(dim1=-2, dim2=-1)
    governors = (torch.tensor(tree.governors)[:, None] == torch.arange(n)).to(words)  # [word, governor]
    places = []  # one for each direction, [layer, head, word, place]
    for partners in (governors, governors.T):
        partner = (words * partners).sum(-1)
        places.append(torch.stack([cls, sep, same, partner, 1 - cls - sep - same - partner], -1))
    marks = np.stack([groups(tree, *function) for function in functions.items()])
    rows = torch.as_tensor(marks).to(words)
    sums = [row @ places[direction] for row, direction in zip(rows, functions.values(), strict=True)]
    return {"sums": torch.stack(sums), "counts": marks.sum(-1)}


def duties(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    functions: Mapping[str, int],
    *,
    seed: int = 0,
    shuffled: bool = False,
) -> dict[str, Duty]:
    """Where each group of words looks, for all heads and several relations in one pass, with intervals over documents.

    Args:
        sentences: with trees, each short enough for the model.
        functions: relation -> direction, see :func:`groups`.
        shuffled: of the control whose scores are shuffled (:mod:`helpers.controls`).
    """
    function = partial(look_from_words, functions=dict(functions))
    found = attention.measure(encoder, sentences, function, shuffled=shuffled, seed=seed)
    by_relation = {}
    for n, relation in enumerate(functions):  # one after another: the arrays are large
        pairs = ((one["sums"][n], one["counts"][n, :, None]) for one in found)
        share = stats.ratio(pairs, sentences, seed=seed)
        by_relation[relation] = Duty(share, sum(one["counts"][n] for one in found))
    return by_relation


def beyond(retreat: Estimate, layer: int, head: int) -> Estimate:
    """How much more one head retreats than the mean of all heads, from the same words; paired.

    Args:
        retreat: (layer, head), as of :meth:`Duty.retreat`.
    """
    return retreat[layer, head] - retreat.mean((-2, -1))


def of_working(found: Mapping[str, Duty], heads: Mapping[str, tuple[int, int]]) -> dict[str, Estimate]:
    """Means over relations of how their heads, given as (layer, head), retreat off duty (:meth:`Duty.retreats`); ``…_beyond``: beyond the
    mean of all heads."""
    ways = {relation: found[relation].retreats() for relation in heads}
    means = {}
    for name in next(iter(ways.values())):
        pairs = [(ways[relation][name], head) for relation, head in heads.items()]
        means[name] = stack([retreat[head] for retreat, head in pairs]).mean()
        means[f"{name}_beyond"] = stack([beyond(retreat, *head) for retreat, head in pairs]).mean()
    return means


def duty_as_dict(found: Duty, layer: int, head: int) -> dict[str, Any]:
    """One head's words and places, and how its retreat compares with that of all heads (rank 1: the largest)."""
    retreat, retreats = found.retreat(), found.retreats()
    return {
        "layer": layer,
        "head": head,
        "groups": list(GROUPS),
        "places": list(PLACES),
        "count": found.count,
        "share": found.share[layer, head],
        "sink": stack([found.sink(group)[layer, head] for group in GROUPS]),
        "of_rest": stack([found.of_rest(group)[layer, head] for group in GROUPS]),
        "retreat": {group: found.retreat(group)[layer, head] for group in GROUPS[1:]},
        "off_duty": {name: one[layer, head] for name, one in retreats.items()},
        "beyond": {name: beyond(one, layer, head) for name, one in retreats.items()},
        "rank": int((retreat.value > retreat.value[layer, head]).sum()) + 1,
        "retreat_of_all": retreat.value,
        "retreat_of_all_nouns": found.retreat("other nouns").value,
    }
