"""What the probes of chapter 12 are asked: runs of sentences that the encoder reads together, and the targets in them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from helpers.corpora.sources import CorpusError
from helpers.corpora.treebanks import Document, Mention, Sentence
from helpers.encoders import Encoder
from helpers.tokens import tokens_of_words, usable

TASKS = ("part of speech", "dependency", "entity", "coreference")
"""In the order of the paper's pipeline."""

COUNTED = ("start", "end", "head")
"""What a mention counts in words."""

SAME, OTHER = "same", "other"
"""The labels of coreference: two mentions refer to the same thing, or to different ones."""


@dataclass(frozen=True)
class Context:
    """Consecutive sentences of one document that the encoder reads together.

    Attributes:
        document: number of its document in the corpus.
        sentences: one or more.
        mentions: with ``start``, ``end`` and ``head`` counted through the whole context.
    """

    document: int
    sentences: tuple[Sentence, ...]
    mentions: tuple[Mention, ...] = ()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of all sentences."""
        return tuple(w for s in self.sentences for w in s.words)

    @cached_property
    def first(self) -> tuple[int, ...]:
        """Place of each sentence's first word."""
        return tuple(np.cumsum([0, *(len(s.words) for s in self.sentences[:-1])]).tolist())

    def sentence_of(self, word: int) -> int:
        """Index of the sentence that a word belongs to."""
        return int(np.searchsorted(self.first, word, side="right")) - 1


def contexts(
    encoder: Encoder, documents: Sequence[Document], *, limit: int = 128, most: int | None = None, seed: int = 0
) -> list[Context]:
    """Cut documents into runs of whole sentences, as long as ``limit`` tokens allow (special ones included).

    Sentences without a tree, longer than the limit, or with a word that has no token are left out.

    Args:
        most: so many documents, drawn at random; all when there are no more.
        seed: of the draw.

    Raises:
        CorpusError: if nothing is left.
    """
    limit = min(limit, encoder.max_length)
    drawn = np.random.default_rng(seed).permutation(len(documents))[:most]
    found: list[Context] = []
    special, drawn = encoder.tokenizer.num_special_tokens_to_add(), sorted(drawn.tolist())
    every = [sentence for number in drawn for sentence in documents[number].sentences]
    kept = {id(sentence) for sentence in usable(encoder, every, longest=limit)}
    for number in drawn:
        runs: list[list[int]] = []
        room = 0
        for place, sentence in enumerate(documents[number].sentences):
            if id(sentence) not in kept:
                continue
            size = sum(tokens_of_words(encoder, sentence.words))
            if not runs or size > room:
                runs.append([])
                room = limit - special
            runs[-1].append(place)
            room -= size
        found += [_context(number, documents[number], run) for run in runs]
    if not found:
        said, wanted = f"No sentence has a tree and at most {limit} tokens.", "trees of sentences that fit the model."
        raise CorpusError("The treebank", None, said, wanted)
    return found


def _context(number: int, document: Document, run: Sequence[int]) -> Context:
    sentences = tuple(document.sentences[place] for place in run)
    first = dict(zip(run, np.cumsum([0, *(len(s.words) for s in sentences)]).tolist(), strict=False))
    mentions = (
        replace(m, sentence=run.index(m.sentence), **{at: getattr(m, at) + first[m.sentence] for at in COUNTED})
        for m in document.mentions
        if m.sentence in first
    )
    return Context(number, sentences, tuple(mentions))


@dataclass(frozen=True)
class Target:
    """A span, or a pair of spans, with the label that a probe should give it.

    Attributes:
        context: index of its context.
        spans: ``(first word, one after the last)``, one or two of them, counted through the context.
        label: the right answer.
        key: what the look-up baseline knows it by.
    """

    context: int
    spans: tuple[tuple[int, int], ...]
    label: str
    key: str


def targets(found: Sequence[Context], task: str, *, limit: int | None = None, seed: int = 0) -> list[Target]:
    """All targets of a task, or ``limit`` of them drawn at random, in the order of the text.

    ``part of speech``: every word, universal tag. ``dependency``: every word with its governor, the relation without
    its subtype; roots and punctuation are left out. ``entity``: every mention that has a type. ``coreference``: pairs of
    mentions of one context, :data:`SAME` or :data:`OTHER`; of each label as many as the rarer one has in the context.

    Raises:
        ValueError: for an unknown task, or if the corpus has no such annotation.
    """
    if task not in TASKS:
        raise ValueError(f"Unknown task {task!r}; there are {', '.join(TASKS)}.")
    rng = np.random.default_rng([seed, TASKS.index(task)])
    every = [t for number, context in enumerate(found) for t in _TARGETS[task](number, context, rng)]
    if not every:
        raise ValueError(f"These documents have no annotation for {task!r}: {_NEEDS[task]}.")
    if limit is None or limit >= len(every):
        return every
    return [every[i] for i in sorted(rng.choice(len(every), limit, replace=False))]


def possible(parts: Mapping[str, Sequence[Context]]) -> tuple[tuple[str, ...], list[str]]:
    """The tasks that each part of a treebank has targets for, and a sentence on each of the others.

    Raises:
        CorpusError: when ``dependency``, which the chapter looks at closely, is among the others.
    """
    tasks, missing = [], []
    for task in TASKS:
        try:
            labels = [{t.label for t in targets(found, task)} for found in parts.values()]
            tasks += [task] if len(labels[0]) > 1 else []
        except ValueError:
            labels = [set()]
        if task not in tasks:
            missing.append(f"Without {task!r}: {_NEEDS[task]}, in each of {', '.join(parts)}.")
    if "dependency" not in tasks:
        said = "There is no relation, or only one, in one of its parts."
        raise CorpusError("The treebank", None, said, "trees with names of relations.")
    return tuple(tasks), missing


def _parts_of_speech(number: int, context: Context, _: np.random.Generator) -> Iterator[Target]:
    tags = [tag for s in context.sentences for tag in s.upos]
    for place, (word, tag) in enumerate(zip(context.words, tags, strict=True)):
        if tag != "_":
            yield Target(number, ((place, place + 1),), tag, word.lower())


def _dependencies(number: int, context: Context, _: np.random.Generator) -> Iterator[Target]:
    for start, sentence in zip(context.first, context.sentences, strict=True):
        for place, (governor, relation) in enumerate(zip(sentence.governors, sentence.relations, strict=True)):
            if governor >= 0 and relation not in ("punct", "_"):
                spans = ((start + place, start + place + 1), (start + governor, start + governor + 1))
                yield Target(number, spans, relation.split(":")[0], sentence.words[place].lower())


def _entities(number: int, context: Context, _: np.random.Generator) -> Iterator[Target]:
    for m in context.mentions:
        if m.type:
            yield Target(number, ((m.start, m.end),), m.type, context.words[m.head].lower())


def _coreference(number: int, context: Context, rng: np.random.Generator) -> Iterator[Target]:
    by_label: dict[str, list[Target]] = {SAME: [], OTHER: []}
    for a, b in combinations(context.mentions, 2):
        if (a.start, a.end) != (b.start, b.end):
            label = SAME if a.chain == b.chain else OTHER
            words = [context.words[m.head].lower() for m in (a, b)]
            key = "same head word" if words[0] == words[1] else "other head word"
            by_label[label].append(Target(number, ((a.start, a.end), (b.start, b.end)), label, key))
    count = min(map(len, by_label.values()))
    drawn = [of[i] for of in by_label.values() for i in rng.choice(len(of), count, replace=False)] if count else []
    yield from sorted(drawn, key=lambda t: t.spans)


_TARGETS = dict(zip(TASKS, (_parts_of_speech, _dependencies, _entities, _coreference), strict=True))
_NEEDS = {
    "part of speech": "it needs universal part-of-speech tags",
    "dependency": "it needs dependency trees",
    "entity": "it needs entity types, Entity= in the last column of CoNLL-U",
    "coreference": "it needs mentions of at least two chains in a context",
}
