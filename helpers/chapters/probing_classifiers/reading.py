"""What the probes of chapter 06 read of a treebank, and what they are asked."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

from helpers import attention, controls, parallel
from helpers.corpora.readers import Vectors
from helpers.corpora.sources import CorpusError
from helpers.corpora.treebanks import Document, Sentence
from helpers.encoders import Encoder
from helpers.tokens import EncodedText, by_word, encode, usable, word_states

TASKS = ("governor", "control", "next word")
"""What a parser can be trained to point at: the governor, the control task's word, or the word to the right."""

ROOT = 0
"""The candidate that is no word: chosen for the word on which all others depend. Word ``w`` is candidate ``w + 1``."""

PAIRS = 6000
"""Pairs of words, padding included, that a block holds at most (unless one sentence has more)."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some sentences of like length, padded, with all that a probe may read or is asked.

    Units are [CLS], [SEP], then the words: the two special tokens come first, so that word ``w`` is unit ``w + 2`` in
    every sentence. Heads of all layers are numbered through, layer by layer.

    Attributes:
        numbers: [sentence], which sentence of the part each is.
        maps: word-level attention from one unit to another, half precision; 0 at padding.
        vectors: word vectors of the units; zeros for special tokens and unknown words.
        present: true at words, false at padding.
        targets: task -> candidate to point at (0: ROOT, w + 1: word w), -1 at padding.
        states: hidden states of the words in every layer, embeddings first, half precision; None if they were not asked for.
        distances: task -> number of edges between two words in the tree; only with states.
        scored: true at words that are not punctuation.
    """

    numbers: Int[np.ndarray, "sentence"]
    maps: Float[Tensor, "sentence unit unit head"]
    vectors: Float[Tensor, "sentence unit dimension"]
    present: Bool[Tensor, "sentence word"]
    scored: Bool[Tensor, "sentence word"]
    targets: Mapping[str, Int[Tensor, "sentence word"]]
    states: Float[Tensor, "layer sentence word width"] | None
    distances: Mapping[str, Float[Tensor, "sentence word word"]]

    @cached_property
    def candidates(self) -> Bool[Tensor, "sentence candidate"]:
        """ROOT and the words, as [sentence, 1 + word]."""
        return nn.functional.pad(self.present, (1, 0), value=True)

    @property
    def hidden(self) -> Float[Tensor, "layer sentence word width"]:
        """The hidden states.

        Raises:
            ValueError: if the block was read without them.
        """
        if self.states is None:
            raise ValueError("These sentences were read without hidden states; call read(..., states=True).")
        return self.states

    def rows(self, places: Int[np.ndarray, "row"]) -> "Block":
        """The block with the sentences at some of its places, which may occur more than once."""
        at = torch.from_numpy(places)
        kept = {name: getattr(self, name)[at] for name in ("maps", "vectors", "present", "scored")}
        kept |= {name: {k: v[at] for k, v in getattr(self, name).items()} for name in ("targets", "distances")}
        states = None if self.states is None else self.states[:, at]
        return replace(self, numbers=self.numbers[places], states=states, **kept)


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a treebank as the probes read it.

    Attributes:
        sentences: in their order; all ``[word]`` arrays below hold their words one after another.
        blocks: the same sentences by length.
        shape: layers and heads of the encoder.
    """

    sentences: tuple[Sentence, ...]
    blocks: tuple[Block, ...]
    shape: tuple[int, int]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Place of each sentence's first word; the number of words at the end."""
        return np.concatenate(([0], np.cumsum([len(s.words) for s in self.sentences])))

    @cached_property
    def sentence(self) -> NDArray[np.int64]:
        """[word], index of the word's sentence."""
        return np.repeat(np.arange(len(self.sentences)), np.diff(self.starts))

    @cached_property
    def relation(self) -> np.ndarray:
        """[word], name of the relation to the governor."""
        return np.array([r for s in self.sentences for r in s.relations])

    @cached_property
    def scored(self) -> NDArray[np.bool_]:
        """[word], false at punctuation."""
        return self.flat(lambda block: block.scored).astype(bool)

    @cached_property
    def places(self) -> tuple[NDArray[np.int64], ...]:
        """For each block [sentence, word], the place of each of its words among all; padding's is that of no word."""
        blocks = ((b.present, self.starts[b.numbers][:, None] + np.arange(b.present.shape[1])) for b in self.blocks)
        return tuple(np.where(present, place, self.starts[-1]) for present, place in blocks)

    @cached_property
    def targets(self) -> dict[str, NDArray[np.int64]]:
        """Task -> [word], the candidate that it asks for."""
        return {task: self.flat(lambda block, task=task: block.targets[task]) for task in TASKS}

    def flat(self, of: Callable[[Block], Tensor]) -> NDArray[np.int64]:
        """[word], from a function that gives [sentence, word] for a block."""
        found = np.zeros(self.starts[-1] + 1, np.int64)
        for block, place in zip(self.blocks, self.places, strict=True):
            found[place] = of(block).cpu().numpy()
        return found[:-1]

    def first(self, count: int) -> "Part":
        """The part with its first sentences only."""
        return replace(
            self,
            sentences=self.sentences[:count],
            blocks=self._blocks((np.arange(len(self.sentences)) < count).astype(int)),
        )

    def redrawn(self, seed: int) -> "Part":
        """The part to train on with each sentence in it Poisson(1) times, as a replicate of the bootstrap has it."""
        counts = np.random.default_rng(seed).poisson(1.0, len(self.sentences))
        return replace(self, blocks=self._blocks(counts))

    def _blocks(self, counts: Int[np.ndarray, "sentence"]) -> tuple[Block, ...]:
        """The blocks with each sentence as often as counted; blocks without any are left out."""
        places = (np.repeat(np.arange(len(b.numbers)), counts[b.numbers]) for b in self.blocks)
        return tuple(b.rows(at) for b, at in zip(self.blocks, places, strict=True) if len(at))

    def without_states(self) -> "Part":
        """The part without hidden states, which take the most memory."""
        return replace(self, blocks=tuple(replace(b, states=None) for b in self.blocks))


def choose(
    encoder: Encoder, documents: Sequence[Document], limit: int | None = None, *, seed: int = 0
) -> list[Sentence]:
    """Sentences with trees that fit the model, in random order, at most ``limit``.

    Raises:
        CorpusError: if there are none.
    """
    found = [s for d in documents for s in d.sentences if s.governors]
    order = np.random.default_rng(seed).permutation(len(found))
    chosen = usable(encoder, [found[n] for n in order])[:limit]
    if not chosen:
        said, wanted = "No sentence has a tree and fits the model.", f"trees of at most {encoder.max_length} tokens."
        raise CorpusError("The treebank", None, said, wanted)
    return chosen


def read(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    vectors: Vectors,
    *,
    states: bool = False,
    shuffled: bool = False,
    pairs: int = PAIRS,
    seed: int = 0,
) -> Part:
    """Run the sentences through the encoder and keep what the probes need, in half precision.

    Args:
        states: whether to keep the words' hidden states, too.
        shuffled: whether to keep each map with its scores shuffled (:func:`helpers.controls.shuffled`).
        pairs: pairs of units in a block, see :data:`PAIRS`; the memory of one step of training goes with it.
        seed: of the control task, and of the dealing.
    """
    order = sorted(range(len(sentences)), key=lambda n: -len(sentences[n].words))
    parts = []
    while order:
        count = max(1, pairs // (len(sentences[order[0]].words) + 2) ** 2)
        parts.append(order[:count])
        order = order[count:]
    words = ([list(sentences[n].words) for n in part] for part in parts)
    what, blocks = f"{encoder.name}: sentences", []
    seen = parallel.each(encoder, _seen, words, states, shuffled, seed)
    for part, found in zip(parts, tqdm(seen, desc=what, total=len(parts)), strict=True):
        blocks.append(_block(np.array(part), [sentences[n] for n in part], *found, vectors, seed))
    return Part(tuple(sentences), tuple(blocks), (encoder.layers, encoder.heads))


def _seen(
    encoder: Encoder, inputs: list[list[str]], states: bool, shuffled: bool, seed: int
) -> tuple[Float[Tensor, "sentence unit unit head"], Float[Tensor, "layer sentence word width"] | None]:
    """Maps and, if asked for, hidden states of some sentences, see :class:`Block`."""
    batch = encode(encoder, inputs)
    texts = [EncodedText.of(batch, row, words) for row, words in enumerate(inputs)]
    size, units = batch.is_word.shape
    maps = torch.zeros(size, units, units, encoder.layers * encoder.heads, dtype=torch.float16)

    deal = controls.shuffling(batch, seed) if shuffled else None

    def keep(layer: int, probabilities: Tensor, _: Tensor | None) -> None:
        if deal is not None:
            probabilities = deal(layer, probabilities)
        for row, text in enumerate(texts):
            length, count = len(text.tokens), len(text.words) + 2
            words = by_word(probabilities[row, :, :length, :length], text, special=True)
            here = slice(layer * encoder.heads, (layer + 1) * encoder.heads)
            maps[row, :count, :count, here] = words.permute(1, 2, 0).half().cpu()

    with torch.inference_mode(), attention.tap(encoder, observe=keep):
        output = encoder.model(**batch.inputs, output_hidden_states=states)
    if not states:
        return maps, None
    no_word = ~batch.is_word[:, 1:-1, None]  # [CLS] is the first unit
    layers = [word_states(layer, batch)[:, 1:-1].masked_fill(no_word, 0) for layer in output.hidden_states]
    return maps, torch.stack(layers).half().cpu()


def _block(
    numbers: NDArray[np.int64],
    sentences: Sequence[Sentence],
    maps: Tensor,
    hidden: Tensor | None,
    vectors: Vectors,
    seed: int,
) -> Block:
    size, units = maps.shape[:2]
    longest = units - 2
    table = np.zeros((size, units, vectors.matrix.shape[1]), np.float32)
    for row, sentence in enumerate(sentences):
        table[row, 2 : 2 + len(sentence.words)] = vectors(sentence.words)
    scored = [scored_words(s) for s in sentences]
    targets = {task: _padded([target(s, task, seed) for s in sentences], longest, -1) for task in TASKS}
    words = (_padded(marks, longest, 0).bool() for marks in ([[1] * len(s) for s in scored], scored))
    distances = {} if hidden is None else _distances(sentences, longest, seed)
    return Block(numbers, maps, torch.from_numpy(table), *words, targets, hidden, distances)


def _distances(
    sentences: Sequence[Sentence], length: int, seed: int
) -> dict[str, Float[Tensor, "sentence word word"]]:
    trees = {"governor": [s.governors for s in sentences], "control": [control_tree(s, seed) for s in sentences]}
    apart = {task: map(tree_distances, found) for task, found in trees.items()}
    padded = {task: [np.pad(one, (0, length - len(one))) for one in found] for task, found in apart.items()}
    return {task: torch.from_numpy(np.stack(found)) for task, found in padded.items()}


def _padded(rows: Sequence[Sequence[int]], length: int, fill: int) -> Int[Tensor, "sentence word"]:
    return torch.tensor([[*map(int, row), *[fill] * (length - len(row))] for row in rows])


def scored_words(sentence: Sentence) -> list[bool]:
    """Which words count: all but punctuation."""
    return [r != "punct" and u != "PUNCT" for r, u in zip(sentence.relations, sentence.upos, strict=True)]


@lru_cache(maxsize=100_000)
def drawn(kind: str, choices: int, seed: int) -> int:
    """A number below ``choices`` that looks random and is always the same for a kind of word, upper case ignored."""
    return int(np.random.default_rng([seed, zlib.crc32(kind.lower().encode())]).integers(choices))


def target(sentence: Sentence, task: str, seed: int = 0) -> list[int]:
    """The candidate that each word should point at (0: ROOT, w + 1: word w).

    In the control task each kind of word always points at itself, at the first or at the last word of its sentence, as drawn
    once for all (Hewitt & Liang 2019, section 2.2).

    Raises:
        ValueError: for an unknown task.
    """
    count = len(sentence.words)
    if task == "governor":
        return [g + 1 for g in sentence.governors]
    if task == "control":
        return [(w + 1, 1, count)[drawn(word, 3, seed)] for w, word in enumerate(sentence.words)]
    if task == "next word":
        return [*range(2, count + 1), ROOT]
    raise ValueError(f"Unknown task {task!r}; there are {', '.join(TASKS)}.")


def control_tree(sentence: Sentence, seed: int = 0) -> list[int]:
    """A tree without syntax: each kind of word always hangs on the first or on the last word, which are joined.

    Punctuation does not count as first or last. Governors, -1 at the root.
    """
    words = np.flatnonzero(scored_words(sentence))
    first, last = (int(words[0]), int(words[-1])) if len(words) else (0, 0)
    tree = [(first, last)[drawn(word, 2, seed)] for word in sentence.words]
    tree[last] = first
    tree[first] = -1
    return tree


def tree_distances(governors: Sequence[int]) -> Float[np.ndarray, "word word"]:
    """Number of edges between two words of a tree."""
    above = np.eye(len(governors), dtype=np.float32)  # above[w, a]: a is w or lies on the way from w to the root
    for word in range(len(governors)):
        place = governors[word]
        while place >= 0:
            above[word, place] = 1
            place = governors[place]
    depth = above.sum(-1)
    return depth[:, None] + depth[None] - 2 * above @ above.T
