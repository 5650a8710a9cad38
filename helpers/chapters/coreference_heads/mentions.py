"""The beginnings of documents that chapter 05 reads, and the mentions in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from helpers.corpora import sources
from helpers.corpora.sources import CorpusError
from helpers.corpora.treebanks import PRONOUN, Document, Mention, Sentence
from helpers.encoders import Encoder
from helpers.tokens import tokens_of_words


def refuse_unlinked(*documents: Sequence[Document]) -> None:
    """Make sure that each part has a document with two mentions of one thing.

    Raises:
        CorpusError: for a part without any.
    """
    if not all(any(d.chains for d in part) for part in documents):
        said = "No document has two mentions of one thing where heads are chosen, or where they are scored."
        raise CorpusError(
            "The treebank", None, said, "coreference: Entity= in CoNLL-U, or the last column of CoNLL-2012."
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
        CorpusError: if no document has a mention with an antecedent before the cut.
    """
    found = tuple(_passage(encoder, number, d, max_length) for number, d in enumerate(documents))
    if not any(p.antecedent.any() for p in found):
        said = f"No mention of these documents has an antecedent within {max_length} tokens."
        raise CorpusError(
            "The treebank", None, said, "more documents with coreference (Entity= in CoNLL-U, or CoNLL-2012)."
        )
    return found


def _passage(encoder: Encoder, number: int, document: Document, max_length: int) -> Passage:
    words = [w for s in document.sentences for w in s.words]
    counts = tokens_of_words(encoder, words[: 4 * max_length])
    room = max_length - encoder.tokenizer.num_special_tokens_to_add()
    length = int((np.cumsum(counts) <= room).sum())  # whole words only
    starts = np.cumsum([0, *(len(s.words) for s in document.sentences)]).tolist()
    placed = [
        _placed(document.sentences[m.sentence], m, starts[m.sentence])
        for chain in document.chains.values()
        for m in chain
    ]
    inside = [p for p in placed if p.end <= length]
    kept = sorted((p for p in inside if counts[p.head]), key=lambda p: (p.head, p.start, -p.end))
    if len(kept) < len(inside):
        without = (
            f"{len(inside) - len(kept)} of {len(inside)} mentions are left out: their head words leave no token."
        )
        sources.say(encoder.name, f"document {document.id!r}: {without}")
    return Passage(number, document.id, tuple(words[:length]), tuple(kept))


def _placed(sentence: Sentence, mention: Mention, start: int) -> Placed:
    words = [w.lower() for w in sentence.words[mention.start : mention.end]]
    places = (start + at for at in (mention.start, mention.end, mention.head))
    known = (mention.chain, mention.kind, " ".join(words), sentence.words[mention.head].lower())
    return Placed(*places, *known, agreement(sentence, mention))


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
