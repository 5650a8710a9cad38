"""Chapter 13: does attention know which words of a text matter?

How much attention each word of a document receives, from every head, and what that says about keyphrases: key words
against the others (mean relative attention), heads one by one and together as predictors, and a tagger of keyphrases
whose heads are taken away. After M. Štefánik's lecture on attention semantics, last part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from tqdm import tqdm

from helpers import inputs, tasks
from helpers.corpora import phrases, sources
from helpers.corpora.records import sample
from helpers.encoders import Encoder
from helpers.engine import sweeps
from helpers.engine.accumulators import Additive, InRows
from helpers.stats import Estimate, mean
from helpers.tasks import Example
from helpers.tokens import Batch, Batches

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
    offsets, _ = inputs.tokens_of(encoder, " ".join(units))
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


def received(
    probabilities: Float[Tensor, "batch head query key"], batch: Batch
) -> Float[Tensor, "batch head key statistic"]:
    """What each token receives from the words and marks of its text: the sum of their weights, and the greatest.

    Special tokens are not counted among those that attend. With even weights over all tokens of an input a token would
    receive a sum of almost 1, whatever the length.
    """
    attending = (batch.text >= 0).to(probabilities.dtype)[:, None, :, None]
    shown = probabilities * attending
    return torch.stack([shown.sum(-2), shown.amax(-2)], dim=-1)


class Received(InRows):
    """Attention that each word receives from each head; an observer for :func:`helpers.engine.sweeps.sweep`.

    A split word receives the mean of what its pieces receive, and the mean of their greatest weights. (A sum, or the
    greatest of several, would count pieces: rare words have more of them, and are key more often.) Memory: two numbers
    for each word and head; no map is kept.

    Attributes:
        words: the words; a part has only its own documents' ``examples``.
        values: [word, layer, head, statistic] (:data:`STATISTICS`), float32.
        pieces: [word], how many tokens each word has.
        special: [layer, head], attention of words and marks that goes to special tokens, summed; ``attending`` of them.
    """

    ADDED = ("special", "attending")
    PER_INPUT = ("examples",)
    ROWS = (("values", 0), ("pieces", 0))

    def __init__(self, encoder: Encoder, words: Words) -> None:
        self.words, self.examples, self.starts = words, words.examples, words.starts
        self.values = np.zeros((len(words.key), encoder.layers, encoder.heads, len(STATISTICS)), np.float32)
        self.pieces = np.zeros(len(words.key))
        self.special = np.zeros((encoder.layers, encoder.heads))
        self.attending = 0

    def part(self, inputs: range) -> "Received":
        """An empty one for some of the documents."""
        made = super().part(inputs)
        made.words = None
        return made

    def __call__(self, batch: Batch, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        if layer == 0:
            self._places = [_word_units(batch, row, self.examples[n]) for row, n in enumerate(batch.index)]
            self._unit = batch.unit.clamp_min(0)[:, None].expand(-1, probabilities.shape[1], -1)
            self._real = batch.mask[:, None].float()
            self._counts = torch.zeros(len(batch.index), max(map(len, batch.words)), device=batch.ids.device)
            self._counts.scatter_add_(1, self._unit[:, 0], self._real[:, 0])
            counts = self._counts.cpu().numpy()
            for row, (number, places) in enumerate(zip(batch.index, self._places, strict=True)):
                self.pieces[self.rows(number)] = counts[row, places]
            self.attending += int((batch.text >= 0).sum())
        tokens = received(probabilities, batch) * self._real[..., None]
        units = torch.zeros(*tokens.shape[:2], max(map(len, batch.words)), tokens.shape[-1], device=tokens.device)
        units.scatter_add_(2, self._unit[..., None].expand_as(tokens), tokens)
        units /= self._counts[:, None, :, None].clamp_min(1)
        self.special[layer] += (tokens[..., 0] * batch.special[:, None]).sum((0, 2)).double().cpu().numpy()
        found = units.transpose(1, 2).cpu().numpy()
        for row, (number, places) in enumerate(zip(batch.index, self._places, strict=True)):
            self.values[self.rows(number), layer] = found[row, places]

    def to_special(self) -> Float[np.ndarray, "layer head"]:
        """Share of the attention of words and marks that goes to special tokens."""
        return self.special / max(1, self.attending)


def _word_units(batch: Batch, row: int, example: Example) -> Int[np.ndarray, "word"]:
    """Which units of a row are the words of its document."""
    first = int(batch.unit[row, batch.text[row] >= 0].min())
    places = np.array(example.spelled.places)
    if first + len(example.spelled.units) > len(batch.words[row]):
        raise ValueError(f"Document {example.id!r} was cut while it was encoded; cut it with shortened() before.")
    return first + places


def measure(encoder: Encoder, examples: Sequence[Example], *, batch_size: int = 16) -> Received:
    """Attention received by each word of documents that fit (:func:`shortened`), in one pass with a progress bar."""
    found = Received(encoder, Words.of(examples))
    _sweep(encoder, examples, batch_size, found)
    return found


def with_shuffled(
    encoder: Encoder, examples: Sequence[Example], *, batch_size: int = 16, seed: int = 0
) -> tuple[Received, Received]:
    """As :func:`measure`, and beside it what words receive of maps whose scores are shuffled, in the same pass."""
    words = Words.of(examples)
    found, control = Received(encoder, words), Received(encoder, words)
    _sweep(encoder, examples, batch_size, found, sweeps.Shuffled(control, seed))
    return found, control


def _sweep(encoder: Encoder, examples: Sequence[Example], batch_size: int, *observers: Additive) -> None:
    batches = Batches(encoder, [list(e.spelled.units) for e in examples], batch_size=batch_size)
    sweeps.sweep(encoder, tqdm(batches, desc=f"{encoder.name}: {len(examples)} documents"), *observers)


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
    return mean(each, seed=seed)
