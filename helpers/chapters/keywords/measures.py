"""Chapter 13: does attention know which words of a text matter?

How much attention each word of a document receives, from every head, and what that says about keyphrases: key words
against the others (mean relative attention), heads one by one and together as predictors, and a tagger of keyphrases
whose heads are taken away. After M. Štefánik's lecture on attention semantics, last part.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from helpers import attention, controls, phrases, tasks
from helpers.corpora import sources
from helpers.corpora.records import sample
from helpers.encoders import Encoder
from helpers.stats import Estimate, mean
from helpers.tasks import Example
from helpers.tokens import EncodedText, Marks, spans_of

STATISTICS = ("mean", "max")
"""What a word's attention received is summed up by: the sum of the weights it gets, and the greatest; means over its pieces."""


def parts(
    corpus: str, limits: Sequence[int | None] = (None, None, None), *, seed: int = 0
) -> tuple[list[Example], list[Example], list[Example]]:
    """Documents to fit on, to choose on, and to score on.

    They are the corpus's own training, development and test parts; in a corpus without parts a random half of the
    documents is for fitting and choosing alike, the other half for scoring.

    Args:
        limits: most documents of each, drawn at random.
    """
    known = sources.entry(corpus, "keyphrases")
    if known is not None and {"train", "dev", "test"} <= set(known.files):
        found = [tasks.examples("keywords", corpus, split) for split in ("train", "dev", "test")]
    else:
        everything = tasks.examples("keywords", corpus)
        chosen = set(np.random.default_rng(seed).permutation(len(everything))[: len(everything) // 2].tolist())
        half = [e for n, e in enumerate(everything) if n in chosen]
        found = [half, half, [e for n, e in enumerate(everything) if n not in chosen]]
    fit, choose, score = (sample(part, limit, seed=seed) for part, limit in zip(found, limits, strict=True))
    return fit, choose, score


def shortened(encoder: Encoder, examples: Sequence[Example], max_length: int) -> list[Example]:
    """The same documents, each cut after the last word that fits, so that every method sees the same words.

    Args:
        max_length: tokens, special ones included.
    """
    room = min(max_length, encoder.max_length) - encoder.tokenizer.num_special_tokens_to_add()
    return [_cut(encoder, example, room) for example in examples]


def _cut(encoder: Encoder, example: Example, room: int) -> Example:
    units, spans = example.spelled.units, example.spelled.spans
    offsets, _ = spans_of(encoder, " ".join(units))
    if len(offsets) <= room:
        return example
    ends = np.cumsum([len(unit) + 1 for unit in units]) - 1  # in the joined text
    whole = int(np.searchsorted(ends, offsets[room, 0], side="right"))
    title, text = example.texts
    return replace(example, texts=(title, text[: max(0, spans[whole - 1][1] - len(title) - 1)]))


@dataclass(frozen=True, eq=False)
class Words:
    """The words of documents one after another, without punctuation marks.

    Attributes:
        examples: the documents.
        starts: [document + 1], where each document's words begin, and the end.
        key: [word], whether it is part of a keyphrase that stands in its document word for word.
        content: [word], whether it is no stop word, no number and no single letter.
    """

    examples: Sequence[Example]
    starts: Int[np.ndarray, "_"]
    key: Bool[np.ndarray, "word"]
    content: Bool[np.ndarray, "word"]

    @classmethod
    def of(cls, examples: Sequence[Example]) -> "Words":
        """Raises ValueError when no document holds any of its keyphrases."""
        sizes = [len(e.spelled.words) for e in examples]
        key = np.concatenate([phrases.key_words(e.spelled, e.keyphrases) for e in examples]).astype(bool)
        if not key.any():
            raise ValueError(
                "None of the documents holds any of its keyphrases word for word; nothing can be predicted."
            )
        content = np.concatenate([e.spelled.content for e in examples]).astype(bool)
        return cls(examples, np.concatenate([[0], np.cumsum(sizes)]), key, content)

    def __iter__(self) -> Iterator[slice]:
        """The words of each document in turn."""
        return (slice(int(a), int(b)) for a, b in zip(self.starts, self.starts[1:], strict=False))

    def present(self) -> list[set[str]]:
        """For each document the keyphrases that stand in it, in normal form."""
        return [set(phrases.locate(e.spelled, e.keyphrases)) for e in self.examples]

    def everything(self) -> list[set[str]]:
        """For each document all its keyphrases, in normal form."""
        return [set(filter(None, map(phrases.normal, e.keyphrases))) for e in self.examples]

    def rank(self) -> Float[np.ndarray, "word"]:
        """Each word's place in its document, 0 for the first word and almost 1 for the last."""
        sizes = np.diff(self.starts)
        return (np.arange(len(self.key)) - np.repeat(self.starts[:-1], sizes)) / np.repeat(sizes, sizes)


def received(maps: Float[Tensor, "*heads query key"], text: Marks) -> Float[Tensor, "*heads key statistic"]:
    """What each token receives from the words and marks of its text: the sum of their weights, and the greatest.

    Special tokens are not counted among those that attend. With even weights over all tokens of an input a token would
    receive a sum of almost 1, whatever the length.

    Args:
        maps: [layer, head, query, key] of one text, or [batch, head, query, key] with the marks of a batch.
    """
    shown = maps * (text.text >= 0)[..., None, :, None]
    return torch.stack([shown.sum(-2), shown.amax(-2)], dim=-1)


def of_words(
    maps: Float[Tensor, "layer head token token"], text: EncodedText, examples: Sequence[Example]
) -> dict[str, Tensor]:
    """What each word of one of the documents receives from each head: the arrays of :class:`Received`.

    A split word receives the mean of what its pieces receive, and the mean of their greatest weights. (A sum, or the
    greatest of several, would count pieces: rare words have more of them, and are key more often.) A word without a token receives 0.
    """
    example = examples[text.number]
    if text.cut:
        raise ValueError(f"Document {example.id!r} was cut: make it shorter first, with shortened().")
    places = torch.tensor(example.spelled.places, device=maps.device)
    own = (text.word == places[:, None]).to(maps)  # [word, token]
    pieces, by_token = own.sum(-1), received(maps, text)
    return {
        "values": ((own / pieces.clamp_min(1)[:, None]) @ by_token).permute(2, 0, 1, 3),
        "pieces": pieces,
        "special": by_token[:, :, text.special, 0].sum(-1),
        "attending": (text.text >= 0).sum(),
    }


@dataclass(frozen=True, eq=False)
class Received:
    """Attention that each word receives from each head; two numbers for each word and head.

    Attributes:
        words: the words.
        values: [word, layer, head, statistic] (:data:`STATISTICS`), float32.
        pieces: [word], how many tokens each word has.
        special: [document, layer, head], attention of words and marks that goes to special tokens, summed; ``attending`` of them.
    """

    words: Words
    values: Float[np.ndarray, "word layer head statistic"]
    pieces: Float[np.ndarray, "word"]
    special: Float[np.ndarray, "document layer head"]
    attending: Int[np.ndarray, "document"]

    @classmethod
    def of(cls, words: Words, found: Sequence[Mapping[str, Any]]) -> "Received":
        """From what :func:`of_words` found of each document."""
        arrays = {name: [one[name] for one in found] for name in found[0]}
        values, pieces = np.concatenate(arrays["values"]), np.concatenate(arrays["pieces"], dtype=np.float64)
        return cls(words, values, pieces, np.stack(arrays["special"]), np.stack(arrays["attending"]))

    def to_special(self) -> Float[np.ndarray, "layer head"]:
        """Share of the attention of words and marks that goes to special tokens."""
        return self.special.sum(0, np.float64) / self.attending.sum()


def measure(encoder: Encoder, examples: Sequence[Example]) -> Received:
    """Attention received by each word of documents that fit (:func:`shortened`), with a progress bar."""
    words, texts = Words.of(examples), [list(e.spelled.units) for e in examples]
    return Received.of(words, attention.measure(encoder, texts, partial(of_words, examples=examples)))


def with_shuffled(encoder: Encoder, examples: Sequence[Example], *, seed: int = 0) -> tuple[Received, Received]:
    """As :func:`measure`, and beside it what words receive of maps whose scores are shuffled, in the same pass."""

    def both(maps: Tensor, text: EncodedText) -> dict[str, dict[str, Tensor]]:
        control = controls.shuffled_maps(maps, text.number, seed)
        return {"own": of_words(maps, text, examples), "control": of_words(control, text, examples)}

    words, texts = Words.of(examples), [list(e.spelled.units) for e in examples]
    found = attention.measure(encoder, texts, both)
    own, control = ([one[name] for one in found] for name in ("own", "control"))
    return Received.of(words, own), Received.of(words, control)


def relative(found: Received, *, among: str = "words", summed: bool = False, seed: int = 0) -> Estimate:
    """Mean relative attention of each head: mean received by key words less the mean received by the others.

    Args:
        among: ``words``, or ``content`` to leave stop words and numbers out of the others (and of the key words).
        summed: let a split word receive the sum over its pieces instead of their mean.

    Returns:
        (layer, head), mean over documents with a bootstrap over them; 1 is what a token would get of even attention.
    """
    words, sums = found.words, found.values[..., 0].astype(np.float64)
    if summed:
        sums = sums * found.pieces[:, None, None]
    counted = words.content if among == "content" else np.ones_like(words.key)
    each = np.full((len(words.examples), *sums.shape[1:]), np.nan)
    for number, here in enumerate(words):
        key, other = (words.key[here] & counted[here], ~words.key[here] & counted[here])
        if key.any() and other.any():
            each[number] = sums[here][key].mean(0) - sums[here][other].mean(0)
    return mean(each, range(len(each)), seed=seed)
