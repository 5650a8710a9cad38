"""Chapter 05: does a single head know what a mention refers to?

Each head is read as a resolver that never saw a coreference chain: from the head word of a mention it points at
the head word of an earlier mention, and that is right if the two corefer. After Clark et al. 2019, section
4.3 and Table 2, with heads chosen on one part of the data and scored on another.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from helpers import corpora
from helpers.corpora import sources
from helpers.corpora.treebanks import NOMINAL, PRONOUN, PROPER, Document, Mention, Sentence
from helpers.engine import attention
from helpers.engine.encoders import Encoder
from helpers.engine.estimates import Additive, Estimate, StreamingMean
from helpers.engine.tokens import Batch, Batches, to_words

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


# ---------------------------------------------------------------------------------------- passages


def parts(treebank: str, choose_on: Sequence[str]) -> tuple[tuple[Document, ...], tuple[Document, ...]]:
    """The documents to choose heads on, and those to score them on.

    Args:
        treebank: a name of the catalogue: its parts ``choose_on``, and its part ``test``. Or a path, which has no parts:
            then every other document.
    """
    if sources.entry(treebank, "treebank") is None:
        found = corpora.documents(treebank)
        return found[1::2], found[::2]
    if "test" in choose_on:
        raise ValueError("The part 'test' is for scoring: choose heads on 'train', 'dev' or both.")
    return tuple(d for part in choose_on for d in corpora.documents(treebank, part)), corpora.documents(
        treebank, "test"
    )


@dataclass(frozen=True)
class Placed:
    """A mention in a passage: words counted from the passage's first; texts in lower case.

    Attributes:
        start, end, head: first word, the one after the last, head word.
        chain, kind: as in :class:`helpers.corpora.records.Mention`.
        text, word: all its words, and its head word.
        agreement: number, gender and person; empty where unknown.
    """

    start: int
    end: int
    head: int
    chain: str
    kind: str
    text: str
    word: str
    agreement: tuple[str, str, str]


@dataclass(frozen=True, eq=False)
class Passage:
    """The beginning of a document, as far as it fits the model, and the mentions that lie wholly in it.

    Mentions are in the order of their head words. Chains of one mention in the whole document are left out;
    a mention whose partners all lie behind the cut stays, as something to choose.

    Attributes:
        document: number of the document: the unit that intervals resample.
        name: its id.
    """

    document: int
    name: str
    words: tuple[str, ...]
    mentions: tuple[Placed, ...]

    @cached_property
    def heads(self) -> Int[np.ndarray, "mention"]:
        """Place of each mention's head word."""
        return np.array([m.head for m in self.mentions], np.int64)

    @cached_property
    def earlier(self) -> Bool[np.ndarray, "mention candidate"]:
        """Whether the candidate's head word stands before the mention's."""
        return self.heads[None, :] < self.heads[:, None]

    @cached_property
    def antecedent(self) -> Bool[np.ndarray, "mention candidate"]:
        """Whether the candidate is an earlier mention of the same chain."""
        return self.earlier & self.compare(lambda a, b: a.chain == b.chain)

    def compare(self, test) -> Bool[np.ndarray, "mention candidate"]:
        """``test(mention, candidate)`` for all pairs."""
        table = [[bool(test(a, b)) for b in self.mentions] for a in self.mentions]
        return np.array(table, bool).reshape(len(table), len(table))

    def at_heads(self, pairs: Bool[np.ndarray, "mention candidate"]) -> Bool[np.ndarray, "mention word"]:
        """The same table with the candidates' head words as columns, of all words."""
        table = np.zeros((len(self.mentions), len(self.words)), bool)
        rows, columns = pairs.nonzero()
        table[rows, self.heads[columns]] = True
        return table

    @cached_property
    def candidates(self) -> dict[str, Bool[np.ndarray, "mention word"]]:
        """For each of :data:`READINGS` the words among which the head word of each mention chooses; never itself."""
        other = self.heads[:, None] != np.arange(len(self.words))
        mentions = self.at_heads(np.ones_like(self.earlier)) & other
        return {"earlier": self.at_heads(self.earlier), "mentions": mentions, "words": other}


def passages(encoder: Encoder, documents: Sequence[Document], *, max_length: int = 128) -> tuple[Passage, ...]:
    """Cut every document after the last word that fits whole into ``max_length`` tokens, [CLS] and [SEP] included.

    Raises:
        ValueError: if no document has a mention with an antecedent before the cut.
    """
    found = tuple(_passage(encoder, number, d, max_length) for number, d in enumerate(documents))
    if not any(p.antecedent.any() for p in found):
        raise ValueError(f"No mention of these documents has an antecedent within {max_length} tokens.")
    return found


def _passage(encoder: Encoder, number: int, document: Document, max_length: int) -> Passage:
    words = [w for s in document.sentences for w in s.words]
    length = _whole_words(encoder, words, max_length)
    starts = np.cumsum([0, *(len(s.words) for s in document.sentences)]).tolist()
    placed = [
        _placed(document.sentences[m.sentence], m, starts[m.sentence])
        for chain in document.chains.values()
        for m in chain
    ]
    inside = sorted((p for p in placed if p.end <= length), key=lambda p: (p.head, p.start, -p.end))
    return Passage(number, document.id, tuple(words[:length]), tuple(inside))


def _placed(sentence: Sentence, mention: Mention, start: int) -> Placed:
    words = [w.lower() for w in sentence.words[mention.start : mention.end]]
    return Placed(
        start + mention.start,
        start + mention.end,
        start + mention.head,
        mention.chain,
        mention.kind,
        " ".join(words),
        sentence.words[mention.head].lower(),
        agreement(sentence, mention),
    )


def _whole_words(encoder: Encoder, words: Sequence[str], max_length: int) -> int:
    """How many words fit, none of them cut in the middle."""
    words = words[:max_length]  # a word has at least one token
    encoding = encoder.tokenizer(" ".join(words), return_offsets_mapping=True, verbose=False).encodings[0]
    if len(encoding.ids) <= max_length:
        return len(words)
    ends = [end for (_, end), side in zip(encoding.offsets, encoding.sequence_ids, strict=True) if side is not None]
    kept = len(ends) - (len(encoding.ids) - max_length)
    last = np.cumsum([len(w) + 1 for w in words]) - 1
    return int((last <= ends[kept - 1]).sum())


# ---------------------------------------------------------------------------------------- one pass over the passages


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


def predict(
    encoder: Encoder, documents: Sequence[Document], *, max_length: int = 128, batch_size: int = 16
) -> Choices:
    """Let every head choose for every mention, in one pass with a progress bar.

    Args:
        max_length: tokens kept of each document; 128 as in the paper's footnote 4, fewer if the encoder takes fewer.
    """
    max_length = min(max_length, encoder.max_length)
    kept = passages(encoder, documents, max_length=max_length)
    starts = np.cumsum([0, *(len(p.mentions) for p in kept)])
    shape = encoder.layers, encoder.heads, int(starts[-1])
    choices = Choices(
        kept, np.full((len(READINGS), *shape), -1, np.int16), np.zeros((*shape, len(PLACES)), np.float32)
    )
    batches = Batches(encoder, [list(p.words) for p in kept], batch_size=batch_size, max_length=max_length)
    attention.sweep(encoder, tqdm(batches, desc=f"{encoder.name}: {len(kept)} documents"), _Chooser(choices, starts))
    return choices


@dataclass(eq=False)
class _Chooser(Additive):
    """An observer that keeps what each head chose.

    Attributes:
        choices: of the passages from number ``first`` on.
        starts: place of each passage's first mention in ``choices``, and the end of the last.
    """

    choices: Choices
    starts: NDArray[np.int64]
    first: int = 0

    def part(self, inputs: range) -> "_Chooser":
        """An empty one for some of the passages."""
        starts = self.starts[inputs.start : inputs.stop + 1] - self.starts[inputs.start]
        mine = self.choices.passages[inputs.start : inputs.stop]
        word = np.full_like(self.choices.word[..., : starts[-1]], -1)
        share = np.zeros_like(self.choices.share[:, :, : starts[-1]])
        return _Chooser(Choices(mine, word, share), starts, inputs.start)

    def absorb(self, part: "_Chooser") -> None:
        """Put the choices of a part in their place."""
        low = self.starts[part.first]
        here = slice(low, low + part.starts[-1])
        self.choices.word[..., here] = part.choices.word
        self.choices.share[:, :, here] = part.choices.share

    def __call__(self, batch: Batch, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        by_word = to_words(probabilities, batch)
        for row, number in enumerate(batch.index):
            own = number - self.first
            passage, here = self.choices.passages[own], slice(self.starts[own], self.starts[own + 1])
            if not passage.mentions:
                continue
            units = torch.nonzero(batch.is_word[row])[:, 0]  # where the passage's words are among the special tokens
            if len(units) != len(passage.words):
                raise ValueError(f"Document {passage.name!r}: one of its first words has no token; leave it out.")
            weights = by_word[row][:, units[torch.from_numpy(passage.heads).to(units.device)]]
            for reading, name in enumerate(READINGS):
                candidate = torch.from_numpy(passage.candidates[name]).to(weights.device)
                self.choices.word[reading, layer, :, here] = choose(weights[:, :, units], candidate).cpu().numpy()
            self.choices.share[layer, :, here] = _shares(weights.cpu().numpy(), _places(passage, batch, row))


def choose(
    weights: Float[Tensor, "head mention word"], candidate: Bool[Tensor, "mention word"]
) -> Int[Tensor, "head mention"]:
    """The candidate to which the head word of each mention attends most; -1 where there is no candidate.

    Args:
        weights: attention from the head words of the mentions to all words.
    """
    chosen = weights.masked_fill(~candidate, -1.0).argmax(-1)
    return chosen.masked_fill(~candidate.any(-1), -1)


def _places(passage: Passage, batch: Batch, row: int) -> Int[np.ndarray, "mention unit"]:
    """For each mention and each unit of the input, index in :data:`PLACES`; -1 at padding."""
    units = np.flatnonzero(batch.is_word[row].cpu().numpy())
    table = np.full((len(passage.mentions), batch.is_word.shape[1]), -1)
    table[:, batch.unit[row][batch.cls[row]].cpu().numpy()] = PLACES.index("cls")
    table[:, batch.unit[row][batch.sep[row]].cpu().numpy()] = PLACES.index("sep")
    words = np.full((len(passage.mentions), len(passage.words)), PLACES.index("other"))
    words[:, passage.heads] = PLACES.index("mention")
    chain = passage.compare(lambda a, b: a.chain == b.chain)
    words[passage.at_heads(chain)] = PLACES.index("later")
    words[passage.at_heads(passage.antecedent)] = PLACES.index("antecedent")
    words[np.arange(len(words)), passage.heads] = PLACES.index("self")
    table[:, units] = words
    return table


def _shares(
    weights: Float[np.ndarray, "head mention unit"], places: Int[np.ndarray, "mention unit"]
) -> Float[np.ndarray, "head mention place"]:
    member = places[:, :, None] == np.arange(len(PLACES))
    return np.einsum("hmu,mup->hmp", weights, member.astype(weights.dtype))


def mention_map(encoder: Encoder, passage: Passage, head: tuple[int, int]) -> Float[np.ndarray, "mention candidate"]:
    """A head's attention from the head word of each mention to the head words of all."""
    batch = next(iter(Batches(encoder, [list(passage.words)])))
    by_word = to_words(attention.maps(encoder, batch)[head[0]], batch)[0, head[1]].numpy()
    places = np.flatnonzero(batch.is_word[0].cpu().numpy())[passage.heads]
    return by_word[np.ix_(places, places)]


# ---------------------------------------------------------------------------------------- rules to compare with


def _words(listed: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {word: tuple(known.split("-")) for known, words in listed.items() for word in words.split()}


_PRONOUNS = _words(
    {
        "Sing--1": "i me my mine myself",
        "Plur--1": "we us our ours ourselves",
        "--2": "you your yours",
        "Sing--2": "yourself",
        "Plur--2": "yourselves",
        "Sing-Masc-3": "he him his himself",
        "Sing-Fem-3": "she her hers herself",
        "Sing-Neut-3": "it its itself",
        "Plur--3": "they them their theirs themselves these those",
        "Sing--3": "this that",
    }
)
_NOUNS = _words(
    {
        "-Masc-3": "man boy father dad son brother uncle nephew husband grandfather king prince duke lord sir mr mr. monk",
        "-Fem-3": "woman girl mother mom daughter sister aunt niece wife grandmother queen duchess lady mrs mrs. ms ms. nun",
    }
)
_PLURAL_TAGS, _SINGULAR_TAGS = {"NNS", "NNPS"}, {"NN", "NNP"}


def agreement(sentence: Sentence, mention: Mention) -> tuple[str, str, str]:
    """Number (Sing, Plur), gender (Masc, Fem, Neut) and person (1, 2, 3) of a mention; empty where unknown.

    From the features of its head word; where they say nothing, from its tag and from short word lists (pronouns, nouns for
    men and women). Coordinated heads are plural. Whatever is not a pronoun is in the third person.
    """
    feats = sentence.feats[mention.head] if sentence.feats else "_"
    given = dict(f.split("=", 1) for f in feats.split("|") if "=" in f)
    word, tag = sentence.words[mention.head].lower(), sentence.xpos[mention.head] if sentence.xpos else ""
    number, gender, person = (_PRONOUNS if mention.kind == PRONOUN else _NOUNS).get(word, ("", "", "3"))
    tagged = "Plur" if tag in _PLURAL_TAGS else "Sing" if tag in _SINGULAR_TAGS else ""
    number = given.get("Number") or number or tagged
    inside = range(mention.start, mention.end) if sentence.governors else ()
    if any(sentence.governors[w] == mention.head and sentence.relations[w] == "conj" for w in inside):
        number = "Plur"
    return number, given.get("Gender") or gender, given.get("Person") or person


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


# ---------------------------------------------------------------------------------------- scoring


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
        layer, head = np.unravel_index(self.accuracy(group).argmax(), self.hits.shape[:2])
        return int(layer), int(head)

    def estimate(self, group: str, system: str | tuple[int, int], *, seed: int = 0) -> Estimate:
        """Accuracy of a rule (by name) or a head (layer, head), with an interval over documents; NaN without mentions."""
        answers = self.rules[system] if isinstance(system, str) else self.hits[system]
        asked = self.member[GROUPS.index(group)]
        numbers, place = np.unique(self.document, return_inverse=True)
        sums = (np.bincount(place, asked * w, len(numbers)) for w in (answers, np.ones(len(asked))))
        mean = StreamingMean((), seed=seed)
        mean.add(numbers.tolist(), *sums)
        return mean.estimate()


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
    choices_there = np.concatenate([p.candidates["earlier"].sum(-1) for p in kept])
    return Scores(
        reading,
        gold[row, choices.word[READINGS.index(reading)]],
        rules | {"random": gold.sum(-1) / np.maximum(choices_there, 1)},
        np.concatenate([_groups(p) for p in kept], axis=1),
        np.repeat([p.document for p in kept], [len(p.mentions) for p in kept]),
    )


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


# ---------------------------------------------------------------------------------------- held-out scores


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


def table(dev: Scores, test: Scores, *, head: tuple[int, int] | None = None, seed: int = 0) -> list[Row]:
    """A row for each group that occurs in both parts.

    Args:
        head: one head for every row; default: for each row the one that is best for it on ``dev``.
        seed: of the bootstrap.
    """
    both = [g for g in GROUPS if min(dev.count(g), test.count(g)) > 0]
    return [_row(dev, test, group, head or dev.best(group), seed) for group in both]


def _row(dev: Scores, test: Scores, group: str, head: tuple[int, int], seed: int) -> Row:
    held_out = test.estimate(group, head, seed=seed)
    rules = {name: test.estimate(group, name, seed=seed) for name in test.rules}
    best = test.best(group)
    return Row(
        group,
        test.count(group),
        head,
        float(dev.accuracy(group)[head]),
        held_out,
        (best, float(test.accuracy(group)[best])),
        rules,
        {name: held_out - rule for name, rule in rules.items()},
    )


def attended(choices: Choices, head: tuple[int, int], *, seed: int = 0) -> dict[str, Estimate]:
    """Mean share of a head's attention for each of :data:`PLACES`, an array with an interval over documents.

    Returns:
        ``with antecedent``, ``of these, no pronouns`` and ``first``: from mentions that have an antecedent in their
        passage, from those among them that are no pronouns, and from mentions that have none.
    """
    asked = np.concatenate([p.antecedent.any(-1) for p in choices.passages])
    pronoun = np.array([m.kind == PRONOUN for p in choices.passages for m in p.mentions], bool)
    document = np.repeat([p.document for p in choices.passages], [len(p.mentions) for p in choices.passages])
    share = choices.share[head].astype(np.float64)
    found = {}
    for name, wanted in (("with antecedent", asked), ("of these, no pronouns", asked & ~pronoun), ("first", ~asked)):
        mean = StreamingMean((len(PLACES),), denominators=(1,), seed=seed)
        mean.add(document.tolist(), share * wanted[:, None], wanted[:, None].astype(np.float64))
        found[name] = mean.estimate()
    return found


# ---------------------------------------------------------------------------------------- examples


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


# ---------------------------------------------------------------------------------------- recording


def as_dict(rows: Sequence[Row], test: Scores) -> dict[str, Any]:
    """Numbers for :func:`helpers.record.results.record`: the table, and every head's accuracy on the test part."""
    return {
        "reading": test.reading,
        "table": {
            r.group: {
                "count": r.count,
                "layer": r.head[0],
                "head": r.head[1],
                "chosen": r.chosen,
                "held_out": r.held_out,
                "same_data": {"layer": r.same_data[0][0], "head": r.same_data[0][1], "value": r.same_data[1]},
                "rules": r.rules,
                "gains": r.gains,
            }
            for r in rows
        },
        "accuracy": {r.group: test.accuracy(r.group) for r in rows},
    }
