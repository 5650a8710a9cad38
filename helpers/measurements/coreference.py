"""Heads and rules that choose what a mention refers to (Clark et al. 2019, section 4.3 and Table 2).

Heads are chosen on one part of a corpus and scored on another (:mod:`helpers.measurements.choosing`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from helpers import attention
from helpers.corpora import sources
from helpers.corpora.sources import CorpusError
from helpers.corpora.treebanks import ENGLISH, NOMINAL, NOUNS, PRONOUN, PRONOUNS, PROPER, Document, Mention, Sentence
from helpers.encoders import Encoder
from helpers.heads import Head
from helpers.measurements import choosing
from helpers.measurements.choosing import Choice, Hits
from helpers.results import Run
from helpers.stats import Estimate
from helpers.tokens import EncodedText, tokens_of_words

#: The columns of Clark et al.'s Table 2.
KINDS = ("all", PRONOUN, PROPER, NOMINAL)
#: Kinds, and: an antecedent has the mention's own head word; none has; none has, and the mention is not a pronoun.
GROUPS = (*KINDS, "repeated", "new word", "new name")
#: Of each document, as in the paper's footnote 4.
MOST_TOKENS = 128


@dataclass(frozen=True)
class Placed:
    """A mention at its place in a text, whose words are counted from 0; strings in lower case.

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
    kind: str = ""
    text: str = ""
    word: str = ""
    agreement: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True, eq=False)
class Passage:
    """The beginning of a document, as far as it fits the model, and the mentions that lie wholly in it.

    Mentions are in the order of their head words. Chains of one mention in the whole document are left out;
    a mention whose partners all lie behind the cut stays, as something to choose.

    Attributes:
        document: number of the document, the unit that intervals resample.
    """

    words: tuple[str, ...]
    mentions: tuple[Placed, ...]
    document: int = 0

    def antecedents(self, mention: Placed) -> list[Placed]:
        """The earlier mentions of the same thing."""
        return [m for m in self.mentions if m.chain == mention.chain and m.head < mention.head]


def passages(encoder: Encoder, documents: Iterable[Document]) -> list[Passage]:
    """Cut every document after the last word that fits whole into :data:`MOST_TOKENS`, or fewer if the encoder takes fewer.

    Raises:
        CorpusError: if no document has a mention with an antecedent before the cut.
    """
    most = min(MOST_TOKENS, encoder.max_length)
    room = most - encoder.tokenizer.num_special_tokens_to_add()
    cut = [_passage(encoder, document, room) for document in documents]
    if not any(p.antecedents(m) for p in cut for m in p.mentions):
        problem = f"No mention of these documents has an antecedent within {most} tokens."
        wanted = "documents with coreference (Entity= in CoNLL-U, or the last column of CoNLL-2012)."
        raise CorpusError("The treebank", None, problem, wanted)
    return cut


def _passage(encoder: Encoder, document: Document, room: int) -> Passage:
    words = [w for s in document.sentences for w in s.words]
    counts = tokens_of_words(encoder, words[: 4 * room])
    length = int((np.cumsum(counts) <= room).sum())  # whole words only
    starts = np.cumsum([0, *(len(s.words) for s in document.sentences)]).tolist()
    inside = []
    for m in chain.from_iterable(document.chains.values()):
        sentence = document.sentences[m.sentence]
        start, end, head = (starts[m.sentence] + at for at in (m.start, m.end, m.head))
        if end <= length:
            text = " ".join(words[start:end]).lower()
            named = text, words[head].lower(), agreement(sentence, m)
            inside.append(Placed(start, end, head, m.chain, m.kind, *named))
    kept = sorted((m for m in inside if counts[m.head]), key=lambda m: (m.head, m.start, -m.end))
    if len(kept) < len(inside):
        left_out = f"{len(inside) - len(kept)} of {len(inside)} mentions are left out"
        sources.say(encoder.name, f"document {document.id!r}: {left_out}: their head words leave no token.")
    return Passage(tuple(words[:length]), tuple(kept), document.document)


# Rules


def agreement(sentence: Sentence, mention: Mention) -> tuple[str, str, str]:
    """Number (Sing, Plur), gender (Masc, Fem, Neut) and person (1, 2, 3) of a mention; empty where unknown.

    From the features of its head word; where they say nothing, from its tag and from short word lists. Coordinated heads are
    plural. Whatever is not a pronoun is in the third person.
    """
    feats = sentence.feats[mention.head] if sentence.feats else "_"
    given = dict(f.split("=", 1) for f in feats.split("|") if "=" in f)
    word, tag = sentence.words[mention.head].lower(), sentence.xpos[mention.head] if sentence.xpos else ""
    number, gender, person = (PRONOUNS if mention.kind == PRONOUN else NOUNS).get(word, ("", "", "3"))
    number = given.get("Number") or number or ENGLISH["tags"].get(tag, "")
    inside = range(mention.start, mention.end) if sentence.governors else ()
    if any(sentence.governors[w] == mention.head and sentence.relations[w] == "conj" for w in inside):
        number = "Plur"
    return number, given.get("Gender") or gender, given.get("Person") or person


def same_text(mention: Placed, other: Placed) -> bool:
    """Whether two mentions are the same string, capitals aside."""
    return mention.text == other.text


def same_word(mention: Placed, other: Placed) -> bool:
    """Whether they have the same head word."""
    return mention.word == other.word


def agree(mention: Placed, other: Placed) -> bool:
    """Whether they have the same number, gender and person as far as both are known."""
    pairs = zip(mention.agreement, other.agreement, strict=True)
    return all(mine == theirs or not mine or not theirs for mine, theirs in pairs)


def anything(mention: Placed, other: Placed) -> bool:
    """No test at all."""
    return True


Test = Callable[[Placed, Placed], bool]
#: Tests of each rule system, in order, as Lee et al. 2011 order their sieves: it names the nearest earlier mention that passes the first
#: test that any passes. After ``head match`` alone a mention without a match stays unresolved and counts as wrong: the paper names no other
#: way.
RULES: dict[str, tuple[Test, ...]] = {
    "nearest mention": (anything,),
    "head match": (same_word,),
    "head match, else nearest": (same_word, anything),
    "four-sieve rules": (same_text, same_word, agree, anything),
}


# Heads


def choose(maps: Float[Tensor, "layer head word word"], text: EncodedText) -> Int[Tensor, "layer head mention"]:
    """The head word of an earlier mention that the head word of each mention of a :class:`Passage` attends to most.

    Without an earlier mention the word chosen is the text's first.
    """
    heads = torch.tensor([m.head for m in text.source.mentions], dtype=torch.long, device=maps.device)
    words = torch.arange(len(text.words), device=maps.device)
    allowed = (words < heads[:, None]) & torch.isin(words, heads)
    return maps[:, :, heads].masked_fill(~allowed, -1).argmax(-1).to(torch.int16)


@dataclass(frozen=True, eq=False)
class Scores:
    """Which answers are right, for every mention that has an antecedent, one passage after another.

    Attributes:
        hits: of every head, [layer, head, mention].
        rules: name -> the same of each of :data:`RULES`, and the chance of a ``random mention``; they choose among earlier mentions.
        groups: [group, mention], which mentions are in each of :data:`GROUPS`.
    """

    hits: Hits
    rules: Mapping[str, Hits]
    groups: Bool[np.ndarray, "group mention"]

    def of(self, group: str) -> "Scores":
        """The mentions of a group only."""
        kept = self.groups[GROUPS.index(group)]
        return Scores(self.hits[kept], {name: hits[kept] for name, hits in self.rules.items()}, self.groups[:, kept])


def score(chosen: Sequence[Int[np.ndarray, "layer head _"]], passages: Sequence[Passage]) -> Scores:
    """Compare what heads chose with the chains: right is the head word of any antecedent.

    Raises:
        ValueError: when there are not as many choices as mentions.
    """
    hits, groups, documents = [], [], []
    rules: dict[str, list[float]] = {name: [] for name in (*RULES, "random mention")}
    for answers, passage in zip(chosen, passages, strict=True):
        for answer, mention in zip(np.moveaxis(answers, -1, 0), passage.mentions, strict=True):
            right = {m.head for m in passage.antecedents(mention)}
            if not right:
                continue
            earlier = [m for m in passage.mentions if m.head < mention.head]
            for name, tests in RULES.items():
                passing = ([m for m in earlier if test(mention, m)] for test in tests)
                nearest = next(filter(None, passing), [])[-1:]
                rules[name].append(any(m.head in right for m in nearest))
            rules["random mention"].append(len(right) / len({m.head for m in earlier}))
            hits.append(np.isin(answer, list(right)))
            repeated = any(same_word(mention, m) for m in passage.antecedents(mention))
            new_name = not repeated and mention.kind != PRONOUN
            groups.append([True, *(mention.kind == k for k in KINDS[1:]), repeated, not repeated, new_name])
            documents.append(passage.document)
    of = np.array(documents)
    by_name = {name: Hits(np.array(correct, float), of) for name, correct in rules.items()}
    return Scores(Hits(np.stack(hits, -1), of), by_name, np.array(groups).T)


def measure(encoder: Encoder, documents: Iterable[Document], *, shuffled: bool = False) -> Scores:
    """The scores of an encoder's heads, or of their control with shuffled scores, among earlier mentions."""
    texts = passages(encoder, documents)
    return score(attention.measure(encoder, texts, choose, units="words", shuffled=shuffled), texts)


@dataclass(frozen=True)
class Row:
    """One group of mentions: the head chosen on the development part, scored on the test part.

    Attributes:
        count: number of mentions in the test part.
        choice: of the head.
        rules: name -> accuracy on the test part.
    """

    count: int
    choice: Choice
    rules: Mapping[str, Estimate]

    @property
    def head(self) -> Head:
        """The head chosen."""
        return Head.of(self.choice.candidate)

    @property
    def gains(self) -> dict[str, Estimate]:
        """Rule -> how much more often the head is right, paired over documents."""
        return {name: self.choice.held_out - rule for name, rule in self.rules.items()}


def table(dev: Scores, test: Scores, *, head: Sequence[int] | None = None, seed: int = 0) -> dict[str, Row]:
    """Group -> row, for each that occurs in both parts.

    Args:
        head: one head for every row; default: for each row the one that is best for it on ``dev``.
    """
    rows = {}
    for group in GROUPS:
        there, here = dev.of(group), test.of(group)
        if len(there.hits) and len(here.hits):
            choice = choosing.choose(there.hits, here.hits, candidate=head, seed=seed)
            rules = {name: hits.estimate(seed=seed) for name, hits in here.rules.items()}
            rows[group] = Row(len(here.hits), choice, rules)
    return rows


def record(run: Run, rows: Mapping[str, Row], test: Scores, *, network: str = "") -> None:
    """Record, for each group, how often every head, the best head and each rule are right."""
    for group, row in rows.items():
        about = {"network": network, "of": group, "n": row.count, "split": "test"}
        nearest = {"control": row.rules["nearest mention"].value, "against": "nearest mention"}
        held_out, gains = row.choice.held_out, row.gains
        run.number("finds_antecedent", test.of(group).hits.accuracy(), **about, **nearest)
        run.number("best_for_antecedent", held_out, head=row.head, **about, **nearest)
        for quantity, rule in (("lead_for_antecedent", "nearest mention"), ("lead_over_rules", "four-sieve rules")):
            run.number(quantity, gains[rule], head=row.head, **about, against=rule)
        for rule, accuracy in row.rules.items():
            run.number("antecedent_by_rule", accuracy, **about | {"of": f"{group} by {rule}"}, against="")
