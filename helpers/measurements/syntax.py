"""Heads as parsers: the word that each head points to, beside the tree (Clark et al. 2019, sections 4.1 and 4.2).

Heads and offsets are chosen on one part of a treebank and scored on another (:mod:`helpers.measurements.choosing`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from helpers import attention, results, stats
from helpers.corpora import treebanks
from helpers.corpora.sources import CorpusError
from helpers.corpora.treebanks import Document, Sentence
from helpers.encoders import Encoder
from helpers.heads import Head
from helpers.measurements.choosing import Choice, Hits, choose
from helpers.stats import Estimate
from helpers.tokens import EncodedText, usable

#: Which word attends: the governor is the word *to* which a word attends most, or the word that attends most *to* it.
DIRECTIONS = ("dependent to governor", "governor to dependent")
OFFSETS = tuple(offset for offset in range(-10, 11) if offset)
#: Relations with fewer words in the test part are marked: one word more or less moves them by three points.
FEWEST = 30
TABLE_1 = ("all", "prep", "pobj", "det", "nn", "nsubj", "amod", "dobj")
TABLE_1 += ("advmod", "aux", "poss", "auxpass", "ccomp", "mark", "prt")
"""The rows of Clark et al.'s Table 1, in Stanford's scheme."""


def trees(encoder: Encoder, documents: Sequence[Document]) -> list[Sentence]:
    """The sentences that have a tree and fit the model; :func:`helpers.tokens.usable` says what is left out.

    Raises:
        CorpusError: when none fits.
    """
    fitting = usable(encoder, [s for d in documents for s in d.sentences])
    if not fitting:
        wanted = f"trees of at most {encoder.max_length} tokens."
        raise CorpusError("The treebank", None, "No sentence has a tree and fits the model.", wanted)
    return fitting


def point(maps: Float[Tensor, "layer head word word"], text: EncodedText) -> Int[Tensor, "layer head 2 word"]:
    """The other word that each word attends to most, and the one that attends most to it, for each of :data:`DIRECTIONS`."""
    maps = maps.clone()
    maps.diagonal(dim1=-2, dim2=-1).fill_(-1)  # no word governs itself
    return torch.stack([maps.argmax(-1), maps.argmax(-2)], -2).to(torch.int16)


#: For each sentence [..., word], the index of the word that a candidate names: a head and a direction, or a rule.
Answers = Sequence[Int[np.ndarray, "*candidate _"]]


def answers(encoder: Encoder, *parts: Sequence[Sentence], **options: Any) -> list[Answers]:
    """What every head points to in the sentences of each part; options as in :func:`helpers.attention.measure`."""
    return [attention.measure(encoder, part, point, units="words", **options) for part in parts]


@dataclass(frozen=True, eq=False)
class Scores:
    """Which answers are right, for every word of some sentences, one sentence after another.

    Attributes:
        relation: [word], name of the word's relation; empty for punctuation and roots, which are not scored.
        hits: [..., word], whether a candidate (a head and a direction, or a rule) names the governor.
        offsets: [offset, word], whether the governor stands at this distance, see :data:`OFFSETS`.
    """

    relation: np.ndarray
    hits: Hits
    offsets: Hits

    @property
    def relations(self) -> tuple[str, ...]:
        """Names of the relations that occur, ``all`` first."""
        return ("all", *sorted({*self.relation} - {""}))

    def asked(self, relation: str) -> Bool[np.ndarray, "word"]:
        """Which words have the relation."""
        return self.relation != "" if relation == "all" else self.relation == relation

    def count(self, relation: str) -> int:
        """How many words have it."""
        return int(self.asked(relation).sum())

    def accuracy(self, relation: str) -> Float[np.ndarray, "*candidate"]:
        """Share of right answers of every candidate."""
        return self.hits[self.asked(relation)].accuracy()


def score(answers: Answers, sentences: Sequence[Sentence], *, stanford: bool = False) -> Scores:
    """Compare answers with the trees. A possessor is right, too, if its *'s* points to the right word, as in the paper.

    Args:
        stanford: with Stanford-style relations (:func:`helpers.corpora.treebanks.stanford`) in place of those of UD.
    """
    parsed = [treebanks.stanford(s) if stanford else s for s in sentences]
    owner, right, at_offset, names = "poss" if stanford else "nmod:poss", [], [], []
    for pointed, s in zip(answers, parsed, strict=True):
        governors, position = np.array(s.governors), np.arange(len(s.words))
        hits, near = pointed == governors, governors - position == np.array(OFFSETS)[:, None]
        for word, relation in enumerate(s.relations):
            mark = treebanks.possessive(s, word) if relation == owner else None
            if mark is not None:
                hits[..., word] |= pointed[..., mark] == governors[word]
                near[:, word] |= governors[word] - mark == np.array(OFFSETS)
        right.append(hits)
        at_offset.append(near)
        words = zip(s.governors, s.relations, s.upos, strict=True)
        names += [r if g >= 0 and r != "punct" and u != "PUNCT" else "" for g, r, u in words]
    documents = np.repeat([s.document for s in sentences], [len(s.words) for s in sentences])
    hits, offsets = (Hits(np.concatenate(hits_of, -1), documents) for hits_of in (right, at_offset))
    return Scores(np.array(names), hits, offsets)


@dataclass(frozen=True)
class Row:
    """One relation: the head chosen on the development part, scored on the test part.

    Attributes:
        count: number of words in the test part.
        choice: of a head and a direction, or of a rule.
        offset: of a distance, by its place in :data:`OFFSETS`.
        gain: how much more often the first is right on the test part, paired over documents.
    """

    count: int
    choice: Choice
    offset: Choice
    gain: Estimate

    @property
    def head(self) -> Head:
        """The head chosen."""
        return Head.of(self.choice.candidate[:2])

    @property
    def direction(self) -> str:
        """In which of :data:`DIRECTIONS` it is read."""
        return DIRECTIONS[self.choice.candidate[2]]


def table(dev: Scores, test: Scores, relations: Sequence[str] | None = None, *, seed: int = 0) -> dict[str, Row]:
    """Relation -> row, for each that occurs in both parts, in the order given (default: by frequency)."""
    both = {r: test.count(r) for r in dev.relations if r in test.relations}
    chosen = relations or sorted(both, key=both.get, reverse=True)
    rows = {}
    for relation in filter(both.get, chosen):
        there, here = dev.asked(relation), test.asked(relation)
        hits, offsets = test.hits[here], test.offsets[here]
        choice = choose(dev.hits[there], hits, seed=seed)
        offset = choose(dev.offsets[there], offsets, seed=seed)
        rows[relation] = Row(len(hits), choice, offset, choice.held_out - offset.held_out)
    return rows


def record(
    run: results.Run,
    answers: Mapping[str, Sequence[Answers]],
    dev: Sequence[Sentence],
    test: Sequence[Sentence],
    *,
    schemes: Iterable[bool] = (False, True),
    seed: int = 0,
) -> None:
    """Record how often every head is right, and the head and the offset that are best for each relation.

    Args:
        answers: network -> those in the sentences to choose on, and in those to score on.
        schemes: whether for the rows of the paper's Table 1, with Stanford's relations.
    """
    for (network, pointed), stanford in product(answers.items(), schemes):
        parts = zip(pointed, (dev, test), strict=True)
        there, here = (score(named, part, stanford=stanford) for named, part in parts)
        ending = "_stanford" * stanford
        for relation, row in table(there, here, TABLE_1 if stanford else None, seed=seed).items():
            common = {"network": network, "of": relation, "n": row.count, "split": "test"}
            run.number(f"best_offset{ending}", row.offset.held_out, **common, against="")
            common |= {"against": "best fixed offset"}
            best = {"head": row.head, "label": row.direction}
            run.number(f"lead_for_relation{ending}", row.gain, **common, **best)
            common |= {"control": row.offset.held_out.value}
            run.number(f"best_for_relation{ending}", row.choice.held_out, **common, **best)
            finds, found_by = np.moveaxis(here.accuracy(relation), -1, 0)
            run.number(f"finds_governor{ending}", finds, **common)
            run.number(f"found_by_governor{ending}", found_by, **common)


def record_special(
    run: results.Run,
    given: Mapping[str, Sequence[Float[np.ndarray, "layer head _"]]],
    test: Scores,
    groups: Mapping[str, Bool[np.ndarray, "word"]],
    heads: Sequence[Head],
    relations: Sequence[str],
    *,
    seed: int = 0,
) -> None:
    """Record what heads give to special tokens from kinds of words, and how much more each head gives without a relation.

    Args:
        given: network -> for each sentence, what each of its words gives to special tokens.
        groups: kind -> its words; the others are compared with the first, for the first head. ``punctuation`` is left out of what has no
            relation.
        heads: of the model; what they give is recorded for each relation, and what all give on average.
        relations: for which every head of the model is compared; those of other networks for the first.
    """
    documents, marks = test.hits.documents, groups.get("punctuation", np.zeros(len(test.hits.documents), bool))
    for network, of_sentences in given.items():
        special = np.concatenate(of_sentences, -1).astype(np.float64)
        by_kind = {kind: np.where(words, special[heads[0]], np.nan) for kind, words in groups.items()}
        shares = {kind: stats.mean(numbers, by=documents, seed=seed) for kind, numbers in by_kind.items()}
        first, *others = shares
        common = {"network": network, "split": "test"}
        run.number("object_head_to_special", shares, head=heads[0], **common)
        shifts = {kind: shares[kind] - shares[first] for kind in others}
        run.number("object_head_shift", shifts, head=heads[0], **common)
        for relation in relations[:1] if network else relations:
            asked = test.asked(relation)
            shift = special[..., ~asked & ~marks].mean(-1) - special[..., asked].mean(-1)
            run.number("attention_shift", shift, of=relation, **common)
    special = np.concatenate(given[""], -1).astype(np.float64)
    of_heads = {f"{head}": special[head] for head in heads} | {"all heads": special.mean((0, 1))}
    words_of = {relation: test.asked(relation) for relation in relations}
    for (name, numbers), of in product(of_heads.items(), words_of):
        share = stats.mean(np.where(words_of[of], numbers, np.nan), by=documents, seed=seed)
        run.number("share_to_special", share, of=f"{of}, {name}", split="test", against="")


def select_relations(dev: Scores, test: Scores, *wanted: str) -> tuple[str, ...]:
    """Those of the wanted relations that both parts have; where they have none of them, the most frequent that both have.

    Raises:
        CorpusError: when the two parts have no relation in common.
    """
    both = [r for r in sorted(dev.relations[1:], key=dev.count, reverse=True) if r in test.relations]
    if not both:
        raise CorpusError("The treebank", None, "Its parts share no relation.", "trees with names of relations.")
    return tuple(r for r in wanted if r in both) or (both[0],)
