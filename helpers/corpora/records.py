"""What corpora are made of: small frozen records of running text, trees, coreference, questions, pairs, keyphrases, vectors.

Words are counted from 0. A word's *governor* is the word it depends on (the "head" of the dependency
literature, a term this book keeps for attention heads); the root's governor is -1.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Article:
    """A document of running text: consecutive paragraphs on one subject."""

    id: str
    title: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Corpus:
    """Where articles came from, and the articles, if they are asked for; ``sha256`` is of the file.

    ``own``: a reader's own, that the catalogue does not know; ``parts``: into which it was cut or drawn, and how, in words.
    """

    name: str
    sha256: str
    articles: tuple[Article, ...] = ()
    own: bool = False
    parts: str = ""


@dataclass(frozen=True)
class Segment:
    """Two consecutive paragraphs, the unit of BERT's pre-training: ``[CLS] first [SEP] second [SEP]``.

    ``document`` is the number of the article in its corpus: the unit that intervals resample.
    """

    texts: tuple[str, str]
    document: int


@dataclass(frozen=True)
class Answer:
    """A span of a question's context: ``context[start : start + len(text)] == text``."""

    text: str
    start: int


@dataclass(frozen=True)
class Question:
    """A question on a paragraph, with one or several answers in it; ``document`` is the article's title."""

    id: str
    document: str
    context: str
    question: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Pair:
    """Two sentences and the class of their relation."""

    id: str
    first: str
    second: str
    label: str


@dataclass(frozen=True)
class KeyedText:
    """A text and its keyphrases."""

    id: str
    title: str
    text: str
    keyphrases: tuple[str, ...]


PRONOUN, PROPER, NOMINAL = "pronoun", "proper", "nominal"


@dataclass(frozen=True)
class Sentence:
    """A sentence of words. All tuples have one item a word; those a format does not have are empty.

    Attributes:
        id: unique in its document.
        words: surface forms; a multiword token such as *don't* counts as its words *do* and *n't*.
        lemmas, upos, xpos, feats: lemma, universal and language-specific part of speech, features as written.
        governors: index of the word's governor in this sentence, -1 at the root.
        relations: dependency relation to the governor.
        spaces: whether white space follows the word.
        document: number of its document in the part of the treebank, the unit that intervals resample.
    """

    id: str
    words: tuple[str, ...]
    lemmas: tuple[str, ...] = ()
    upos: tuple[str, ...] = ()
    xpos: tuple[str, ...] = ()
    feats: tuple[str, ...] = ()
    governors: tuple[int, ...] = ()
    relations: tuple[str, ...] = ()
    spaces: tuple[bool, ...] = ()
    document: int = 0

    @property
    def text(self) -> str:
        """The sentence as it is written."""
        spaces = self.spaces or (True,) * len(self.words)
        return "".join(w + " " * s for w, s in zip(self.words, spaces, strict=True)).rstrip()

    def dependents(self, word: int) -> list[int]:
        """The words that a word governs."""
        return [w for w, governor in enumerate(self.governors) if governor == word]


@dataclass(frozen=True, order=True)
class Mention:
    """A stretch of words of one sentence that refers to something.

    Attributes:
        sentence: index of the sentence in its document.
        start, end: first word, and the one after the last.
        chain: what it refers to; mentions of one document with the same chain corefer.
        head: index of the word of the mention on which the others depend (a *head word*).
        kind: ``pronoun``, ``proper`` or ``nominal``, by the head word's tag.
        type: entity type, where the format has one.
    """

    sentence: int
    start: int
    end: int
    chain: str
    head: int
    kind: str
    type: str = ""


@dataclass(frozen=True)
class Document:
    """Sentences in order, and all their mentions, in order; also those that corefer with no other.

    ``document`` is its number in the part of the treebank, as that of its sentences.
    """

    id: str
    sentences: tuple[Sentence, ...]
    mentions: tuple[Mention, ...] = ()
    document: int = 0

    @cached_property
    def chains(self) -> dict[str, tuple[Mention, ...]]:
        """Coreference chains: the mentions of everything that is mentioned at least twice."""
        counts = Counter(mention.chain for mention in self.mentions)
        return {c: tuple(m for m in self.mentions if m.chain == c) for c, count in counts.items() if count > 1}

    @property
    def text(self) -> str:
        """Sentences joined by blanks."""
        return " ".join(s.text for s in self.sentences)


#: A treebank, or a part of one.
Documents = tuple[Document, ...]


def numbered(documents: Iterable[Document]) -> Documents:
    """The documents with their numbers, from 0, which their sentences know as well."""
    return tuple(
        replace(d, sentences=tuple(replace(s, document=number) for s in d.sentences), document=number)
        for number, d in enumerate(documents)
    )


def depth(governors: Sequence[int], word: int) -> int | None:
    """Arcs between a word and the root; None when a cycle is in the way."""
    for depth in range(len(governors) + 1):
        if governors[word] < 0:
            return depth
        word = governors[word]
    return None


def sample(items: Sequence[Any], limit: int | None, *, seed: int = 0) -> list[Any]:
    """So many items drawn without replacement, in their order; all if there are no more or no limit is given."""
    if limit is None or limit >= len(items):
        return list(items)
    return [items[i] for i in sorted(np.random.default_rng(seed).choice(len(items), limit, replace=False).tolist())]
