"""Chapter 04: does a single head know who depends on whom?

Each head is read as a parser that never saw a tree: for every word it points at one other word of the
sentence, and that is compared with the word's governor. After Clark et al. 2019, sections 4.1 and 4.2,
with heads chosen on one part of the data and scored on another.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from helpers.corpora import treebanks
from helpers.corpora.sources import CorpusError
from helpers.corpora.treebanks import Document, Sentence
from helpers.engine import attention, controls
from helpers.engine.encoders import Encoder
from helpers.engine.estimates import Estimate, InRows, ratio
from helpers.engine.tokens import Batch, Batches, fits, to_words

DIRECTIONS = ("dependent to governor", "governor to dependent")
"""Which word attends. Either way the head is asked for a word's governor: by the strongest weight *from* the word,
or by the word that attends most strongly *to* it."""

TABLE_1 = ("all", "prep", "pobj", "det", "nn", "nsubj", "amod", "dobj")
TABLE_1 += ("advmod", "aux", "poss", "auxpass", "ccomp", "mark", "prt")
"""The rows of Clark et al.'s Table 1."""

OFFSETS = tuple(o for o in range(-10, 11) if o)
FEWEST = 30
"""Relations with fewer instances in the test part are marked: one word more or less moves them by three points."""


# ---------------------------------------------------------------------------------------- one pass over the corpus


@dataclass(frozen=True, eq=False)
class Predictions:
    """The word that each head points at, for every word of a corpus.

    Attributes:
        sentences: the sentences, with trees.
        governors: [layer, head, direction, word], index in its sentence of the word pointed at; words of all
            sentences one after another. -1 where a sentence has no other word.
    """

    sentences: tuple[Sentence, ...]
    governors: Int[np.ndarray, "layer head direction word"]

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Number of words of each sentence."""
        return np.array([len(s.words) for s in self.sentences])

    @cached_property
    def sentence(self) -> NDArray[np.int64]:
        """[word], index of the word's sentence."""
        return np.repeat(np.arange(len(self.sentences)), self.lengths)

    @cached_property
    def position(self) -> NDArray[np.int64]:
        """[word], index of the word in its sentence."""
        return np.arange(self.lengths.sum()) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)


def predict(
    encoder: Encoder, documents: Sequence[Document], *, shuffled: bool = False, batch_size: int = 32
) -> Predictions:
    """Let every head of an encoder point, in both directions, in one pass with a progress bar.

    Attention is taken from words to words (:func:`helpers.engine.tokens.to_words`); [CLS], [SEP] and the word itself
    are left out of the choice. A sentence that is longer than the model allows is left out.

    Args:
        shuffled: of the control whose scores are shuffled (:mod:`helpers.engine.controls`).
    """
    sentences = [s for d in documents for s in d.sentences if s.governors]
    sentences = [s for s in sentences if fits(encoder, s.words)]
    if not sentences:
        said, wanted = "No sentence has a tree and fits the model.", f"trees of at most {encoder.max_length} tokens."
        raise CorpusError("The treebank", None, said, wanted)
    starts = np.concatenate(([0], np.cumsum([len(s.words) for s in sentences])))
    found = np.full((encoder.layers, encoder.heads, 2, starts[-1]), -1, np.int16)
    words, pointer = [list(s.words) for s in sentences], _Pointer(found, starts)
    observer = controls.Shuffled(pointer) if shuffled else pointer
    attention.accumulate(encoder, words, observer, what=f"{len(words)} sentences", batch_size=batch_size)
    return Predictions(tuple(sentences), found)


@dataclass(eq=False)
class _Pointer(InRows):
    """An observer that keeps, for every word, the word that each head points at; -1 until it is known."""

    ROWS = (("found", 3),)
    found: Int[np.ndarray, "layer head direction word"]
    starts: NDArray[np.int64]

    def __call__(self, batch: Batch, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        if layer == 0:
            words = batch.is_word
            others = ~torch.eye(words.shape[1], dtype=torch.bool, device=words.device)
            self._candidate = (words[:, :, None] & words[:, None, :] & others)[:, None]
        pointed = point(to_words(probabilities, batch), self._candidate).cpu().numpy()
        for row, number in enumerate(batch.index):
            here = self.rows(number)
            self.found[layer, :, :, here] = pointed[row, :, :, 1 : 1 + here.stop - here.start] - 1


def point(
    words: Float[Tensor, "batch head unit unit"], candidate: Bool[Tensor, "batch 1 unit unit"]
) -> Int[Tensor, "batch head 2 unit"]:
    """The strongest candidate for each unit: by what it attends to, and by what attends to it.

    Args:
        words: word-level attention, from rows to columns.
        candidate: [batch, 1, unit, other], symmetric: whether ``other`` may be chosen for ``unit`` (and the reverse).
    """
    words = words.masked_fill(~candidate, -1.0)
    return torch.stack([words.max(-1).indices, words.max(-2).indices], dim=2)


# ---------------------------------------------------------------------------------------- scoring


@dataclass(frozen=True, eq=False)
class Scores:
    """How often each head, and each fixed offset, is right, for every relation.

    Attributes:
        relations: names, ``all`` first; punctuation and roots are not scored.
        right: [layer, head, direction, relation], number of words whose governor the head names.
        by_offset: [offset, relation], the same for "the governor is the word at this distance", see :data:`OFFSETS`.
        count: [relation], number of words.
        hits: [layer, head, direction, word], [offset, word]: every single answer.
        label: [word], index of the word's relation, -1 where it is not scored.
        sentence: [word], index of its sentence.
    """

    relations: tuple[str, ...]
    right: NDArray[np.int64]
    by_offset: NDArray[np.int64]
    count: NDArray[np.int64]
    hits: tuple[Bool[np.ndarray, "layer head direction word"], Bool[np.ndarray, "offset word"]]
    label: NDArray[np.int64]
    sentence: NDArray[np.int64]

    def accuracy(self, relation: str) -> Float[np.ndarray, "layer head direction"]:
        """Share of right answers of every head."""
        at = self.relations.index(relation)
        return self.right[..., at] / max(self.count[at], 1)

    def best(self, relation: str) -> tuple[int, int, int]:
        """Layer, head and direction with the most right answers."""
        right = self.right[..., self.relations.index(relation)]
        return tuple(map(int, np.unravel_index(right.argmax(), right.shape)))

    def best_offset(self, relation: str) -> int:
        """The distance at which the governor most often lies; negative to the left."""
        return OFFSETS[int(self.by_offset[:, self.relations.index(relation)].argmax())]

    def answers(self, relation: str, of: tuple[int, int, int] | int) -> Float[np.ndarray, "sentence 2"]:
        """Per sentence, the right answers of a head (layer, head, direction) or an offset, and the number asked."""
        asked = self.asked(relation)
        hits = self.hits[1][OFFSETS.index(of)] if isinstance(of, int) else self.hits[0][of]
        at, size = self.sentence[asked], int(self.sentence.max()) + 1
        return np.stack([np.bincount(at, hits[asked], size), np.bincount(at, minlength=size)], 1)

    def asked(self, relation: str) -> Bool[np.ndarray, "word"]:
        """Which words have the relation."""
        return (self.label >= 0) if relation == "all" else (self.label == self.relations.index(relation))


def score(predictions: Predictions, *, stanford: bool = False, possessive: bool | str = True) -> Scores:
    """Compare what the heads point at with the trees.

    Args:
        stanford: with Stanford-style relations (:func:`helpers.corpora.treebanks.stanford`) in place of those of UD.
        possessive: count a possessor as right also when its *'s* points at the right governor, as Clark et al. (2019) say in
            their section 4.2; it can only help, and helps the offsets too. ``"instead"``: only when the *'s* does, where there
            is one, as in the code that they released. False: only when the possessor itself does.

    Raises:
        ValueError: for anything else as ``possessive``.
    """
    if possessive not in (True, False, "instead"):
        raise ValueError(f"possessive={possessive!r}: say True, False or 'instead'.")
    trees = [treebanks.stanford(s) if stanford else s for s in predictions.sentences]
    owner = "poss" if stanford else "nmod:poss"
    governors = np.concatenate([s.governors for s in trees])
    words = [word for s in trees for word in zip(s.governors, s.relations, s.upos, strict=True)]
    names = [r if g >= 0 and r != "punct" and u != "PUNCT" else None for g, r, u in words]
    relations = ("all", *sorted({*names} - {None}))
    label = np.array([-1 if name is None else relations.index(name) for name in names])
    heads = predictions.governors == governors
    offsets = np.stack([governors - predictions.position == o for o in OFFSETS])
    if possessive:
        owners, marks = _possessives(predictions, trees, owner)
        if possessive == "instead":
            heads[..., owners], offsets[:, owners] = False, False
        heads[..., owners] |= predictions.governors[..., marks] == governors[owners]
        distance = governors[owners] - predictions.position[marks]
        offsets[:, owners] |= np.stack([distance == o for o in OFFSETS])
    sums = (_by_relation(hits, label, len(relations)) for hits in (heads, offsets, np.ones_like(governors)))
    return Scores(relations, *sums, (heads, offsets), label, predictions.sentence)


def _possessives(predictions: Predictions, trees: Sequence[Sentence], owner: str) -> tuple[list[int], list[int]]:
    """Places of possessors and of their marks among all words."""
    owners, marks = [], []
    starts = np.cumsum(predictions.lengths) - predictions.lengths
    for start, tree in zip(starts, trees, strict=True):
        for word, relation in enumerate(tree.relations):
            if relation == owner and (mark := treebanks.possessive(tree, word)) is not None:
                owners.append(int(start) + word)
                marks.append(int(start) + mark)
    return owners, marks


def _by_relation(hits: np.ndarray, label: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Sums of the last axis for each relation; those of ``all`` (index 0) are sums over every scored word."""
    order = np.argsort(label, kind="stable")
    order = order[label[order] >= 0]
    sums = np.zeros((*hits.shape[:-1], count), np.int64)
    present, starts = np.unique(label[order], return_index=True)
    sums[..., present] = np.add.reduceat(hits[..., order], starts, axis=-1, dtype=np.int64)
    sums[..., 0] = sums[..., 1:].sum(-1)
    return sums


# ---------------------------------------------------------------------------------------- held-out scores


@dataclass(frozen=True)
class Row:
    """One relation: the head chosen on the development part, scored on the test part.

    Attributes:
        relation, count: name, number of words in the test part.
        head: (layer, head, direction), chosen on the development part.
        chosen: its accuracy there.
        held_out: its accuracy on the test part, with an interval over sentences.
        same_data: accuracy of the best head when chosen on the test part itself, as the papers do.
        offset: the distance that is best on the development part.
        baseline: its accuracy on the test part.
        gain: ``held_out - baseline``, paired over sentences.
        p: how often a gain this large over all heads would come by chance, see :func:`beats_baseline`.
        beaten_by: number of (head, direction) pairs that beat the baseline on the test part, at 5 % over all.
    """

    relation: str
    count: int
    head: tuple[int, int, int]
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
    """A row for each relation that occurs in both parts, in the order given (default: by frequency).

    Args:
        seed: of the bootstrap and of the permutations.
    """
    both = [r for r in dev.relations if r in test.relations and min(_count(dev, r), _count(test, r)) > 0]
    relations = [r for r in relations if r in both] if relations else sorted(both, key=lambda r: -_count(test, r))
    return [_row(dev, test, relation, seed) for relation in relations]


def followed(dev: Scores, test: Sequence[Sentence], *wanted: str) -> tuple[str, ...]:
    """Those of the wanted relations that both parts have, for examples; where they have none of them the most frequent that both have.

    Raises:
        CorpusError: when the two parts have no relation in common.
    """
    there = {relation for s in test for relation in s.relations}
    both = [r for r in sorted(dev.relations[1:], key=lambda r: -_count(dev, r)) if r in there]
    if not both:
        said = "No relation occurs both where heads are chosen and where they are scored."
        raise CorpusError("The treebank", None, said, "more sentences with trees and with names of relations.")
    return tuple(r for r in wanted if r in both) or (both[0],)


def _count(scores: Scores, relation: str) -> int:
    return int(scores.count[scores.relations.index(relation)])


def _row(dev: Scores, test: Scores, relation: str, seed: int) -> Row:
    head, offset = dev.best(relation), dev.best_offset(relation)
    held_out = ratio(test.answers(relation, head), seed=seed)
    baseline = ratio(test.answers(relation, offset), seed=seed)
    p = beats_baseline(test, relation, offset, seed=seed)
    chosen, same_data = float(dev.accuracy(relation)[head]), float(test.accuracy(relation).max())
    count, gain, beaten_by = _count(test, relation), held_out - baseline, int((p < 0.05).sum())
    return Row(relation, count, head, chosen, held_out, same_data, offset, baseline, gain, float(p[head]), beaten_by)


def gains(scores: Scores, relation: str, offset: int) -> Float[np.ndarray, "candidate sentence"]:
    """Per sentence with the relation: right answers of each head (layer, head, direction in one axis) minus those of an offset."""
    asked = scores.asked(relation)
    heads = scores.hits[0][..., asked].reshape(-1, asked.sum()).astype(np.float32)
    difference = heads - scores.hits[1][OFFSETS.index(offset)][asked]
    starts = np.flatnonzero(np.diff(scores.sentence[asked], prepend=-1))
    return np.add.reduceat(difference, starts, axis=-1)


def beats_baseline(
    scores: Scores, relation: str, offset: int, *, permutations: int = 999, seed: int = 0
) -> Float[np.ndarray, "layer head direction"]:
    """For every head, the chance of such a gain over an offset if head and offset were interchangeable.

    In each permutation every sentence's difference between head and offset changes its sign or not, the same way for all
    heads, and the *largest* gain over all heads is kept. A head's p is the share of those that reach its own
    gain: with hundreds of heads tried, a chance winner does not count (Westfall & Young's max-T correction).
    """
    found = gains(scores, relation, offset)
    signs = np.random.default_rng(seed).choice(np.float32([-1, 1]), (permutations, found.shape[1]))
    largest = (signs @ found.T).max(-1)
    p = (1 + (largest[:, None] >= found.sum(-1)).sum(0)) / (1 + permutations)
    return p.reshape(scores.right.shape[:3])


@dataclass(frozen=True)
class Leader:
    """The best head of a relation, where heads are chosen.

    Attributes:
        head: (layer, head, direction).
        accuracy: its accuracy there.
        lead: by how much this exceeds that of the best offset.
    """

    head: tuple[int, int, int]
    accuracy: float
    lead: float


def leaders(dev: Scores, *always: str, words: int = 60, lead: float = 0.1) -> dict[str, Leader]:
    """Heads with a job: the best of each relation whose best head leads the best offset clearly, where heads are chosen.

    Args:
        always: relations that are kept in any case, first.
        words: the fewest that another relation has there.
        lead: the least by which the head of another relation exceeds the best offset.
    """
    counted = [r for r in dev.relations[1:] if _count(dev, r) >= words]
    found = {r: _leader(dev, r) for r in (*always, *counted)}
    return {r: one for r, one in found.items() if r in always or one.lead >= lead}


def _leader(dev: Scores, relation: str) -> Leader:
    offsets = dev.by_offset[:, dev.relations.index(relation)] / max(_count(dev, relation), 1)
    accuracy = float(dev.accuracy(relation).max())
    return Leader(dev.best(relation), accuracy, accuracy - float(offsets.max()))


# ---------------------------------------------------------------------------------------- examples


LONGEST = 12


@dataclass(frozen=True)
class Example:
    """A sentence in which a head's answers for one relation are all right, or one is wrong."""

    sentence: Sentence
    words: tuple[int, ...]
    right: tuple[bool, ...]


def examples(
    predictions: Predictions, scores: Scores, relation: str, head: tuple[int, int, int], *, right: bool
) -> Iterator[Example]:
    """Sentences of at most :data:`LONGEST` words with the relation, in the corpus's order, all right or not all right."""
    hits = scores.hits[0][head]
    for number, sentence in enumerate(predictions.sentences):
        here = np.flatnonzero(scores.sentence == number)
        asked = here[scores.label[here] == scores.relations.index(relation)]
        if len(asked) and len(sentence.words) <= LONGEST and bool(hits[asked].all()) == right:
            yield Example(sentence, tuple(int(w) for w in asked - here[0]), tuple(bool(h) for h in hits[asked]))


def word_map(encoder: Encoder, sentence: Sentence, head: tuple[int, int, int]) -> Float[np.ndarray, "unit unit"]:
    """A head's word-level attention in one sentence, [CLS] first and [SEP] last."""
    batch = next(iter(Batches(encoder, [list(sentence.words)])))
    return to_words(attention.maps(encoder, batch)[head[0]], batch)[0, head[1]].numpy()


# ---------------------------------------------------------------------------------------- recording


def trades(labels: dict[tuple[int, int], str], elsewhere: Float[np.ndarray, "layer head"]) -> dict[str, Any]:
    """What :func:`specialities` finds: how many heads have each trade, and how many still exceed its offset by :data:`CLEARLY` elsewhere."""
    counts = {name: list(labels.values()).count(name) for name in dict.fromkeys(labels.values())}
    held = [name for at, name in labels.items() if elsewhere[at] >= CLEARLY]
    return {
        "heads": len(labels),
        "held": len(held),
        "counts": counts,
        "held_counts": {n: held.count(n) for n in counts},
    }


def as_dict(rows: Sequence[Row], test: Scores) -> dict[str, Any]:
    """Numbers for :func:`helpers.record.results.record`: the table, and every head's accuracy on the test part."""
    return {
        "table": {r.relation: r.as_dict() for r in rows},
        "accuracy": {r.relation: test.accuracy(r.relation) for r in rows},
    }


def per_head(scores: Scores, relations: Sequence[str]) -> dict[str, Float[np.ndarray, "layer head"]]:
    """For each relation the accuracy of every head, in its better direction."""
    return {relation: scores.accuracy(relation).max(-1) for relation in relations}


def frequent(rows: Sequence[Row]) -> list[Row]:
    """The rows of relations with enough words to be trusted, in their order; all relations where none has enough."""
    relations = [r for r in rows if r.relation != "all"]
    return [r for r in relations if not r.few] or relations


CLEARLY = 2.0
"""Standard errors by which a head must exceed an offset to be shown as its relation's specialist."""


def specialities(
    rows: Sequence[Row], dev: Scores, test: Scores
) -> tuple[dict[tuple[int, int], str], Float[np.ndarray, "layer head"]]:
    """The relation in which each head exceeds that relation's offset most clearly, and by how many standard errors it does elsewhere.

    Labels, and the direction in which a head is read, are chosen on ``dev``, the standard errors are those of ``test``. Relations with
    few words are left out, unless all have few; and so are heads that exceed no offset by :data:`CLEARLY` on ``dev``.
    """
    there, here = (
        np.stack([standard_errors(scores, row.relation, row.offset) for row in frequent(rows)])
        for scores in (dev, test)
    )
    direction = there.argmax(-1)[..., None]
    there, here = (np.take_along_axis(found, direction, -1)[..., 0] for found in (there, here))
    best = there.argmax(0)[None]
    names = [row.relation for row in frequent(rows)]
    clear = np.argwhere(there.max(0) >= CLEARLY)
    return {(int(a), int(b)): names[best[0, a, b]] for a, b in clear}, np.take_along_axis(here, best, 0)[0]


def standard_errors(scores: Scores, relation: str, offset: int) -> Float[np.ndarray, "layer head direction"]:
    """By how many standard errors over sentences each head exceeds an offset."""
    found = gains(scores, relation, offset).astype(np.float64)
    error = np.sqrt((found**2).sum(-1)).clip(min=1)
    return (found.sum(-1) / error).reshape(scores.right.shape[:3])
