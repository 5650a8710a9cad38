"""Chapter 05: does a single head know what a mention refers to?

Each head is read as a resolver that never saw a coreference chain: from the head word of a mention it points at
the head word of an earlier mention, and that is right if the two corefer. After Clark et al. 2019, section
4.3 and Table 2, with heads chosen on one part of the data and scored on another.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from helpers import attention
from helpers.chapters.coreference_heads.mentions import Passage, Placed, passages
from helpers.corpora.treebanks import NOMINAL, PRONOUN, PROPER, Document
from helpers.encoders import Encoder
from helpers.stats import Estimate, mean
from helpers.tokens import EncodedText, by_word

KINDS = ("all", PRONOUN, PROPER, NOMINAL)
"""The columns of Clark et al.'s Table 2."""

GROUPS = (*KINDS, "repeated", "new word", "new name")
"""Kinds, and: an antecedent has the mention's own head word; none has; none has, and the mention is not a pronoun."""

READINGS = ("earlier", "mentions", "words")
"""What a head chooses from: head words of earlier mentions; of all other mentions; all other words of the passage."""

PLACES = ("cls", "sep", "self", "antecedent", "later", "mention", "other")
"""Where attention can go: [CLS]; [SEP]; the head word itself; head words of antecedents, of later mentions of the
same chain, of other mentions; any other word."""

FEWEST = 30
"""Kinds with fewer mentions in the test part are marked: one mention more or less moves them by three points."""


@dataclass(frozen=True, eq=False)
class Choices:
    """What each head chose for every mention, and where its attention went; mentions of all passages in a row.

    Attributes:
        passages: the passages.
        word: [reading, layer, head, mention], place in its passage of the word chosen; -1 without a candidate.
        share: [layer, head, mention, place], attention from the head word to each of :data:`PLACES`; sums to 1.
    """

    passages: tuple[Passage, ...]
    word: Int[np.ndarray, "reading layer head mention"]
    share: Float[np.ndarray, "layer head mention place"]

    @property
    def document(self) -> NDArray[np.int64]:
        """[mention], number of its document."""
        return np.repeat([p.document for p in self.passages], [len(p.mentions) for p in self.passages])


def predict(
    encoder: Encoder, documents: Sequence[Document], *, max_length: int = 128, shuffled: bool = False
) -> Choices:
    """Let every head choose for every mention, with a progress bar.

    Args:
        max_length: tokens kept of each document; 128 as in the paper's footnote 4, fewer if the encoder takes fewer.
        shuffled: of the control whose scores are shuffled (:mod:`helpers.controls`).
    """
    kept = passages(encoder, documents, max_length=min(max_length, encoder.max_length))
    texts = [list(p.words) for p in kept]
    found = attention.measure(encoder, texts, partial(read, passages=kept), shuffled=shuffled)
    word, share = ([one[name] for one in found] for name in ("word", "share"))
    return Choices(kept, np.concatenate(word, axis=3), np.concatenate(share, axis=2))


def read(
    maps: Float[Tensor, "layer head token token"], text: EncodedText, passages: Sequence[Passage]
) -> dict[str, Tensor]:
    """What every head chose in one of the passages, and where its attention went: the arrays of :class:`Choices`."""
    passage = passages[text.number]
    weights = by_word(maps, text)[:, :, passage.heads]
    candidates = (torch.from_numpy(passage.candidates[reading]).to(maps.device) for reading in READINGS)
    word = torch.stack([choose(weights, candidate) for candidate in candidates])
    pieces = (text.word == torch.from_numpy(passage.heads)[:, None].to(maps.device)).to(maps)  # [mention, token]
    to_special = maps @ torch.stack([text.cls, text.sep], -1).to(maps)
    from_heads = (pieces / pieces.sum(-1, keepdim=True)) @ to_special  # [layer, head, mention, 2]
    to_words = torch.einsum("lhmw,mwp->lhmp", weights, torch.from_numpy(_places(passage)).to(maps))
    share = torch.cat([from_heads, to_words], -1)
    return {"word": word.to(torch.int16), "share": share}


def choose(
    weights: Float[Tensor, "*heads mention word"], candidate: Bool[Tensor, "mention word"]
) -> Int[Tensor, "*heads mention"]:
    """The candidate to which the head word of each mention attends most; -1 where there is no candidate.

    Args:
        weights: attention from the head words of the mentions to all words.
    """
    chosen = weights.masked_fill(~candidate, -1.0).argmax(-1)
    return chosen.masked_fill(~candidate.any(-1), -1)


def _places(passage: Passage) -> Bool[np.ndarray, "mention word place"]:
    """For each mention, which of :data:`PLACES` after the special tokens each word of the passage is."""
    words = np.full((len(passage.mentions), len(passage.words)), PLACES.index("other"))
    words[:, passage.heads] = PLACES.index("mention")
    words[passage.at_heads(passage.compare(lambda a, b: a.chain == b.chain))] = PLACES.index("later")
    words[passage.at_heads(passage.antecedent)] = PLACES.index("antecedent")
    words[np.arange(len(words)), passage.heads] = PLACES.index("self")
    return words[..., None] == np.arange(len(PLACES))[2:]


def mention_map(encoder: Encoder, passage: Passage, head: tuple[int, int]) -> Float[np.ndarray, "mention candidate"]:
    """A head's attention from the head word of each mention to the head words of all."""

    def of_head(maps: Tensor, text: EncodedText) -> Tensor:
        return maps[*head][passage.heads][:, passage.heads]

    [found] = attention.measure(encoder, [list(passage.words)], of_head, units="words")
    return found


def agree(a: Placed, b: Placed) -> bool:
    """Whether two mentions have the same number, gender and person as far as both are known."""
    return all(x == y or not x or not y for x, y in zip(a.agreement, b.agreement, strict=True))


SIEVES = {
    "text": lambda a, b: a.text == b.text,
    "word": lambda a, b: a.word == b.word,
    "agreement": agree,
    "any": lambda a, b: True,
}
"""Tests of (mention, candidate): same string, same head word (capitals aside), agreement, none."""

BASELINES: dict[str, tuple[str, ...]] = {
    "nearest": ("any",),
    "head match": ("word",),
    "head match, else nearest": ("word", "any"),
    "rules": ("text", "word", "agreement", "any"),
}
"""Sieves of each rule system, in order. After ``head match`` alone a mention without a match stays unresolved and counts
as wrong: the paper names no other way."""


def resolve(passage: Passage, sieves: Sequence[str]) -> Int[np.ndarray, "mention"]:
    """For each mention the nearest earlier mention that passes the first sieve that any passes; -1 if none does.

    Lee et al. 2011 order their sieves by precision in the same way.
    """
    choice = np.full(len(passage.mentions), -1)
    for name in sieves:
        passing = passage.earlier & passage.compare(SIEVES[name])
        nearest = np.where(passing, np.arange(len(choice)), -1).max(-1, initial=-1)  # mentions are in order
        choice = np.where(choice < 0, nearest, choice)
    return choice


@dataclass(frozen=True, eq=False)
class Scores:
    """Every answer of every head and every rule, with mentions of all passages in a row.

    Attributes:
        reading: what the heads chose from.
        hits: [layer, head, mention], whether the word chosen is the head word of an antecedent.
        rules: baseline -> the same, [mention]; ``random`` is the chance of a random earlier mention.
        member: [group, mention], which mentions count for each of :data:`GROUPS`; those with an antecedent only.
        document: [mention], number of its document.
    """

    reading: str
    hits: Bool[np.ndarray, "layer head mention"]
    rules: Mapping[str, Float[np.ndarray, "mention"]]
    member: Bool[np.ndarray, "group mention"]
    document: NDArray[np.int64]

    def count(self, group: str) -> int:
        """Number of mentions asked about."""
        return int(self.member[GROUPS.index(group)].sum())

    def accuracy(self, group: str) -> Float[np.ndarray, "layer head"]:
        """Share of right answers of every head."""
        asked = self.member[GROUPS.index(group)]
        return self.hits[..., asked].sum(-1) / max(int(asked.sum()), 1)

    def best(self, group: str) -> tuple[int, int]:
        """Layer and head with the most right answers; the first of equals."""
        return divmod(int(self.accuracy(group).argmax()), self.hits.shape[1])

    def estimate(self, group: str, system: str | tuple[int, int], *, seed: int = 0) -> Estimate:
        """Accuracy of a rule (by name) or a head (layer, head), with an interval over documents; NaN without mentions."""
        answers = self.rules[system] if isinstance(system, str) else self.hits[system]
        asked = self.member[GROUPS.index(group)]
        return mean(np.where(asked, answers, np.nan), self.document.tolist(), seed=seed)


def score(choices: Choices, *, reading: str = "earlier") -> Scores:
    """Compare choices with the chains: right is the head word of any antecedent.

    Args:
        reading: one of :data:`READINGS`. The rules, and the random mention, choose from earlier mentions always.
    """
    if reading not in READINGS:
        raise ValueError(f"reading={reading!r}: say one of {', '.join(READINGS)}.")
    kept = choices.passages
    width = max(len(p.words) for p in kept) + 1  # the last column is never right: where -1, no choice, points
    gold = np.concatenate([np.pad(p.at_heads(p.antecedent), ((0, 0), (0, width - len(p.words)))) for p in kept])
    row = np.arange(len(gold))
    rules = {name: np.concatenate([_chosen_words(p, sieves) for p in kept]) for name, sieves in BASELINES.items()}
    rules = {name: gold[row, word].astype(np.float64) for name, word in rules.items()}
    rules["random"] = gold.sum(-1) / np.maximum([n for p in kept for n in p.candidates["earlier"].sum(-1)], 1)
    hits, member = (
        gold[row, choices.word[READINGS.index(reading)]],
        np.concatenate([_groups(p) for p in kept], axis=1),
    )
    return Scores(reading, hits, rules, member, choices.document)


def _chosen_words(passage: Passage, sieves: Sequence[str]) -> Int[np.ndarray, "mention"]:
    choice = resolve(passage, sieves)
    return np.where(choice < 0, -1, np.append(passage.heads, -1)[choice])


def _groups(passage: Passage) -> Bool[np.ndarray, "group mention"]:
    asked = passage.antecedent.any(-1)
    kind = np.array([m.kind for m in passage.mentions])
    repeated = (passage.antecedent & passage.compare(SIEVES["word"])).any(-1)
    new = ~repeated
    members = [np.ones_like(asked), *(kind == k for k in KINDS[1:]), repeated, new, new & (kind != PRONOUN)]
    return np.stack(members) & asked


@dataclass(frozen=True)
class Row:
    """One kind of mention: the head chosen on the development documents, scored on the test documents.

    Attributes:
        group, count: one of :data:`GROUPS`, number of mentions in the test part.
        head: (layer, head), chosen on the development part.
        chosen: its accuracy there.
        held_out: its accuracy on the test part, with an interval over documents.
        same_data: (layer, head) and accuracy of the best head when chosen on the test part itself, as the paper does.
        rules: baseline -> its accuracy on the test part.
        gains: baseline -> ``held_out`` minus it, paired over documents.
    """

    group: str
    count: int
    head: tuple[int, int]
    chosen: float
    held_out: Estimate
    same_data: tuple[tuple[int, int], float]
    rules: Mapping[str, Estimate]
    gains: Mapping[str, Estimate]

    @property
    def few(self) -> bool:
        """Whether there are too few mentions for the numbers to be trusted."""
        return self.count < FEWEST

    def as_dict(self) -> dict[str, Any]:
        """The row for a record, heads by layer and number."""
        (layer, head), ((best_layer, best), value) = self.head, self.same_data
        found = {"count": self.count, "layer": layer, "head": head, "chosen": self.chosen, "held_out": self.held_out}
        same_data = {"layer": best_layer, "head": best, "value": value}
        return found | {"same_data": same_data, "rules": self.rules, "gains": self.gains}


def table(dev: Scores, test: Scores, *, head: tuple[int, int] | None = None, seed: int = 0) -> list[Row]:
    """A row for each group that occurs in both parts.

    Args:
        head: one head for every row; default: for each row the one that is best for it on ``dev``.
        seed: of the bootstrap.
    """
    both = [g for g in GROUPS if min(dev.count(g), test.count(g)) > 0]
    return [_row(dev, test, group, head or dev.best(group), seed) for group in both]


def _row(dev: Scores, test: Scores, group: str, head: tuple[int, int], seed: int) -> Row:
    held_out, best = test.estimate(group, head, seed=seed), test.best(group)
    chosen, same_data = float(dev.accuracy(group)[head]), (best, float(test.accuracy(group)[best]))
    rules = {name: test.estimate(group, name, seed=seed) for name in test.rules}
    gains = {name: held_out - rule for name, rule in rules.items()}
    return Row(group, test.count(group), head, chosen, held_out, same_data, rules, gains)


def attended(choices: Choices, head: tuple[int, int], *, seed: int = 0) -> dict[str, Estimate]:
    """Mean share of a head's attention for each of :data:`PLACES`, an array with an interval over documents.

    Returns:
        ``with antecedent``, ``of these, no pronouns`` and ``first``: from mentions that have an antecedent in their
        passage, from those among them that are no pronouns, and from mentions that have none; what does not occur is left out.
    """
    asked = np.concatenate([p.antecedent.any(-1) for p in choices.passages])
    pronoun = np.array([m.kind == PRONOUN for p in choices.passages for m in p.mentions], bool)
    share = choices.share[head].astype(np.float64)
    wanted = {"with antecedent": asked, "of these, no pronouns": asked & ~pronoun, "first": ~asked}
    masked = {name: np.where(kept[:, None], share, np.nan) for name, kept in wanted.items() if kept.any()}
    return {name: mean(values, choices.document.tolist(), seed=seed) for name, values in masked.items()}


@dataclass(frozen=True)
class Link:
    """A mention, the candidate that a head chose for it, and whether they corefer."""

    mention: Placed
    chosen: Placed
    right: bool


def links(choices: Choices, head: tuple[int, int], passage: int) -> list[Link]:
    """A head's choices among earlier mentions in one passage, for the mentions that have an antecedent."""
    here = choices.passages[passage]
    start = sum(len(p.mentions) for p in choices.passages[:passage])
    words = choices.word[0][head][start : start + len(here.mentions)]
    found = []
    for mention, word, antecedents in zip(here.mentions, words, here.antecedent, strict=True):
        right = [m for m, ok in zip(here.mentions, antecedents, strict=True) if ok]
        if right:
            named = {m.head: m for m in (*here.mentions, *right)}  # a shared head word counts as the antecedent's
            found.append(Link(mention, named[int(word)], named[int(word)] in right))
    return found


def examples(
    choices: Choices, head: tuple[int, int], *, right: bool, fewest: int = 5
) -> Iterator[tuple[Passage, list[Link]]]:
    """Passages with ``fewest`` or more links, all of them right or some wrong, in the corpus's order."""
    for number, passage in enumerate(choices.passages):
        found = links(choices, head, number)
        if len(found) >= fewest and all(link.right for link in found) == right:
            yield passage, found


def as_dict(rows: Sequence[Row], test: Scores) -> dict[str, Any]:
    """Numbers for :func:`helpers.results.record`: the table, and every head's accuracy on the test part."""
    return {
        "reading": test.reading,
        "table": {r.group: r.as_dict() for r in rows},
        "accuracy": {r.group: test.accuracy(r.group) for r in rows},
    }
