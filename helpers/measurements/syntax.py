"""Heads as parsers: the word that each head points to, beside the tree (Clark et al. 2019, sections 4.1 and 4.2).

Heads and offsets are chosen on one part of a treebank and scored on another; intervals are over documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from helpers import attention, stats
from helpers.corpora import treebanks
from helpers.corpora.sources import CorpusError
from helpers.corpora.treebanks import Document, Sentence
from helpers.encoders import Encoder
from helpers.stats import Estimate
from helpers.tokens import EncodedText, fits

DIRECTIONS = ("dependent to governor", "governor to dependent")
"""Which word attends: the governor is the word *to* which a word attends most, or the word that attends most *to* it."""
OFFSETS = tuple(offset for offset in range(-10, 11) if offset)
FEWEST = 30
"""Relations with fewer words in the test part are marked: one word more or less moves them by three points."""

Head = tuple[int, int, int]
"""Layer, head, direction; from 0."""


def point(maps: Float[Tensor, "layer head word word"], text: EncodedText) -> Int[Tensor, "layer head 2 word"]:
    """The other word that each word attends to most, and the one that attends most to it."""
    maps = maps.clone()
    maps.diagonal(dim1=-2, dim2=-1).fill_(-1)  # no word governs itself
    return torch.stack([maps.argmax(-1), maps.argmax(-2)], -2)


@dataclass(frozen=True, eq=False)
class Answers:
    """The word that each head points to, for every word of some documents.

    Attributes:
        sentences: with trees.
        pointed: [layer, head, direction, word], index in its sentence of the word pointed to; words of all sentences one after another.
    """

    sentences: tuple[Sentence, ...]
    pointed: Int[np.ndarray, "layer head direction word"]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of words of each sentence."""
        return np.array([len(s.words) for s in self.sentences])

    @property
    def documents(self) -> NDArray[np.int64]:
        """Number of each sentence's document."""
        return np.array([s.document for s in self.sentences])


def predict(encoder: Encoder, documents: Sequence[Document], **options: Any) -> Answers:
    """Let every head of an encoder point; options as in :func:`helpers.attention.measure`. A sentence that is longer than the model allows is left out.

    Raises:
        CorpusError: when no sentence has a tree and fits.
    """
    sentences = tuple(s for d in documents for s in d.sentences if s.governors and fits(encoder, s.words))
    if not sentences:
        said, wanted = "No sentence has a tree and fits the model.", f"trees of at most {encoder.max_length} tokens."
        raise CorpusError("The treebank", None, said, wanted)
    found = attention.measure(encoder, sentences, point, units="words", **options)
    return Answers(sentences, np.concatenate(found, -1).astype(np.int16))


@dataclass(frozen=True, eq=False)
class Scores:
    """Which answers are right.

    Attributes:
        relations: names, ``all`` first; punctuation and roots are not scored.
        hits: [layer, head, direction, word], whether the head names the governor.
        by_offset: [offset, word], whether the governor stands at this distance, see :data:`OFFSETS`.
        label: [word], index of the word's relation, -1 where it is not scored.
        documents: [word], number of its document.
    """

    relations: tuple[str, ...]
    hits: Bool[np.ndarray, "layer head direction word"]
    by_offset: Bool[np.ndarray, "offset word"]
    label: NDArray[np.int64]
    documents: NDArray[np.int64]

    def asked(self, relation: str) -> Bool[np.ndarray, "word"]:
        """Which words have the relation."""
        return self.label >= 0 if relation == "all" else self.label == self.relations.index(relation)

    def count(self, relation: str) -> int:
        """How many words have it."""
        return int(self.asked(relation).sum())

    def accuracy(self, relation: str) -> Float[np.ndarray, "layer head direction"]:
        """Share of right answers of every head."""
        return self.hits[..., self.asked(relation)].mean(-1)

    def best(self, relation: str) -> Head:
        """Layer, head and direction with the most right answers."""
        found = self.accuracy(relation)
        return tuple(map(int, np.unravel_index(found.argmax(), found.shape)))

    def best_offset(self, relation: str) -> int:
        """The distance at which the governor most often stands; negative to the left."""
        return OFFSETS[int(self.by_offset[:, self.asked(relation)].mean(-1).argmax())]

    def share(self, relation: str, hits: Bool[np.ndarray, "word"], seed: int = 0) -> Estimate:
        """Share of a relation's words that are right, with an interval over documents."""
        asked = self.asked(relation)
        return stats.mean(hits[asked], self.documents[asked], seed=seed)


def score(answers: Answers, *, stanford: bool = False) -> Scores:
    """Compare answers with the trees. A possessor is right, too, if its *'s* points to the right word, as in the paper.

    Args:
        stanford: with Stanford-style relations (:func:`helpers.corpora.treebanks.stanford`) in place of those of UD.
    """
    trees = [treebanks.stanford(s) if stanford else s for s in answers.sentences]
    governors = np.concatenate([s.governors for s in trees])
    words = [word for s in trees for word in zip(s.governors, s.relations, s.upos, strict=True)]
    names = [r if g >= 0 and r != "punct" and u != "PUNCT" else None for g, r, u in words]
    relations = ("all", *sorted({*names} - {None}))
    label = np.array([-1 if name is None else relations.index(name) for name in names])
    hits = answers.pointed == governors
    position = np.concatenate([np.arange(n) for n in answers.lengths])  # of each word in its sentence
    offsets = governors - position == np.array(OFFSETS)[:, None]
    owners, marks = _possessors(trees, "poss" if stanford else "nmod:poss")
    hits[..., owners] |= answers.pointed[..., marks] == governors[owners]
    offsets[:, owners] |= governors[owners] - position[marks] == np.array(OFFSETS)[:, None]
    return Scores(relations, hits, offsets, label, np.repeat(answers.documents, answers.lengths))


def _possessors(trees: Sequence[Sentence], relation: str) -> Int[np.ndarray, "2 possessor"]:
    """Places of possessors and of their *'s* among all words."""
    found, start = [], 0
    for tree in trees:
        marked = ((word, treebanks.possessive(tree, word)) for word, r in enumerate(tree.relations) if r == relation)
        found += [(start + word, start + mark) for word, mark in marked if mark is not None]
        start += len(tree.words)
    return np.array(found, int).reshape(-1, 2).T


@dataclass(frozen=True)
class Row:
    """One relation: the head chosen on the development part, scored on the test part.

    Attributes:
        relation, count: name, number of words in the test part.
        head: chosen on the development part; ``chosen`` is its accuracy there, ``held_out`` that on the test part.
        same_data: accuracy of the best head when chosen on the test part itself, as in the paper.
        offset: the distance that is best on the development part; ``baseline`` is its accuracy on the test part.
        gain: ``held_out - baseline``, paired over documents.
        p: how often so large a gain over all heads would come by chance (:func:`helpers.stats.max_t`, signs by document).
        beaten_by: number of (head, direction) pairs with such a p below 0.05.
    """

    relation: str
    count: int
    head: Head
    chosen: float
    held_out: Estimate
    same_data: float
    offset: int
    baseline: Estimate
    gain: Estimate
    p: float
    beaten_by: int

    @property
    def few(self) -> bool:
        """Whether there are too few words for the numbers to be trusted."""
        return self.count < FEWEST

    def as_dict(self) -> dict[str, Any]:
        """The row for a record, the head by layer, number and direction."""
        layer, head, direction = self.head
        kept = {name: value for name, value in vars(self).items() if name != "relation"}
        return kept | {"layer": layer, "head": head, "direction": DIRECTIONS[direction]}


def table(dev: Scores, test: Scores, relations: Sequence[str] | None = None, *, seed: int = 0) -> list[Row]:
    """A row for each relation that occurs in both parts, in the order given (default: by frequency)."""
    both = [r for r in dev.relations if r in test.relations and dev.count(r) and test.count(r)]
    chosen = [r for r in relations if r in both] if relations else sorted(both, key=lambda r: -test.count(r))
    return [_row(dev, test, relation, seed) for relation in chosen]


def _row(dev: Scores, test: Scores, relation: str, seed: int) -> Row:
    head, offset = dev.best(relation), dev.best_offset(relation)
    held_out = test.share(relation, test.hits[head], seed)
    baseline = test.share(relation, test.by_offset[OFFSETS.index(offset)], seed)
    p = stats.max_t(gains(test, relation, offset), seed=seed).reshape(test.hits.shape[:3])
    tried = {"chosen": float(dev.accuracy(relation)[head]), "same_data": float(test.accuracy(relation).max())}
    shares = {"held_out": held_out, "baseline": baseline, "gain": held_out - baseline}
    beyond = {"p": float(p[head]), "beaten_by": int((p < 0.05).sum())}
    return Row(relation, test.count(relation), head, offset=offset, **tried, **shares, **beyond)


def gains(scores: Scores, relation: str, offset: int) -> Float[np.ndarray, "candidate document"]:
    """Right answers of each head (layer, head, direction in one axis) minus those of an offset, document by document."""
    asked = scores.asked(relation)
    _, place = np.unique(scores.documents[asked], return_inverse=True)
    heads = scores.hits[..., asked].reshape(-1, asked.sum()).astype(np.float32)
    return (heads - scores.by_offset[OFFSETS.index(offset), asked]) @ np.eye(place.max() + 1, dtype=np.float32)[place]


def as_dict(rows: Sequence[Row], test: Scores) -> dict[str, Any]:
    """Numbers for a record: the table, and every head's accuracy on the test part."""
    accuracy = {row.relation: test.accuracy(row.relation) for row in rows}
    return {"table": {row.relation: row.as_dict() for row in rows}, "accuracy": accuracy}


def select_relations(dev: Scores, test: Sequence[Sentence], *wanted: str) -> tuple[str, ...]:
    """Those of the wanted relations that both parts have; where they have none of them, the most frequent that both have.

    Raises:
        CorpusError: when the two parts have no relation in common.
    """
    both = [r for r in sorted(dev.relations[1:], key=lambda r: -dev.count(r)) if any(r in s.relations for s in test)]
    if not both:
        raise CorpusError("The treebank", None, "Its parts share no relation.", "trees with names of relations.")
    return tuple(r for r in wanted if r in both) or (both[0],)
