"""Chapter 06: how much syntax do all heads hold together?

Small classifiers read the attention of every head between two words and answer a question about them: is one the governor
of the other, does an edge of the tree join them, which relation is it? After Clark et al. 2019, section 5, Coenen et al.
2019 and Hewitt & Manning 2019, each beside a control task (Hewitt & Liang 2019).
"""

import copy
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import Tensor, nn
from tqdm import tqdm

from helpers.corpora.readers import Vectors
from helpers.corpora.treebanks import Document, Sentence
from helpers.engine import attention, shards
from helpers.engine.encoders import Encoder
from helpers.engine.estimates import Estimate, ratio
from helpers.engine.tokens import Batch, encode, fits, to_words, word_states

TASKS = ("governor", "control", "next word")
"""What a parser can be trained to point at: the governor, the control task's word, or the word to the right."""

ROOT = 0
"""The candidate that is no word: chosen for the word on which all others depend. Word ``w`` is candidate ``w + 1``."""

PAIRS = 6000
"""Pairs of words, padding included, that a block holds at most (unless one sentence has more)."""

PASS_GAIN = 0.0005
"""A pass over the training part that brings less than this on the development part cuts the step."""


# ---------------------------------------------------------------------------------------- what the probes read


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

    def rows(self, keep: NDArray[np.bool_]) -> "Block":
        """The block with some of its sentences."""
        at = torch.from_numpy(np.flatnonzero(keep))
        return replace(
            self,
            numbers=self.numbers[keep],
            maps=self.maps[at],
            vectors=self.vectors[at],
            present=self.present[at],
            scored=self.scored[at],
            targets={k: v[at] for k, v in self.targets.items()},
            states=None if self.states is None else self.states[:, at],
            distances={k: v[at] for k, v in self.distances.items()},
        )


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

    def target(self, task: str) -> NDArray[np.int64]:
        """[word], the candidate that the task asks for."""
        return self.flat(lambda block: block.targets[task])

    def flat(self, of: Callable[[Block], Tensor]) -> NDArray[np.int64]:
        """[word], from a function that gives [sentence, word] for a block."""
        found = np.zeros(self.starts[-1], np.int64)
        for block in self.blocks:
            values = of(block).cpu().numpy()
            for number, row in zip(block.numbers, values, strict=True):
                low, high = self.starts[number], self.starts[number + 1]
                found[low:high] = row[: high - low]
        return found

    def first(self, count: int) -> "Part":
        """The part with its first sentences only."""
        blocks = (b.rows(b.numbers < count) for b in self.blocks if (b.numbers < count).any())
        return Part(self.sentences[:count], tuple(blocks), self.shape)

    def without_states(self) -> "Part":
        """The part without hidden states, which take the most memory."""
        return replace(self, blocks=tuple(replace(b, states=None) for b in self.blocks))


def choose(
    encoder: Encoder, documents: Sequence[Document], limit: int | None = None, *, seed: int = 0
) -> list[Sentence]:
    """Sentences with trees that fit the model, in random order, at most ``limit``.

    Raises:
        ValueError: if there are none.
    """
    found = [s for d in documents for s in d.sentences if s.governors]
    order = np.random.default_rng(seed).permutation(len(found))
    chosen = []
    for number in order:
        if fits(encoder, found[number].words):
            chosen.append(found[number])
        if len(chosen) == limit:
            break
    if not chosen:
        raise ValueError("No sentence of these documents has a tree and fits the model.")
    return chosen


def read(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    vectors: Vectors,
    *,
    states: bool = False,
    pairs: int = PAIRS,
    seed: int = 0,
) -> Part:
    """Run the sentences through the encoder and keep what the probes need, in half precision.

    Args:
        states: whether to keep the words' hidden states, too.
        pairs: pairs of units in a block, see :data:`PAIRS`; the memory of one step of training goes with it.
        seed: of the control task.
    """
    order = sorted(range(len(sentences)), key=lambda n: -len(sentences[n].words))
    blocks, progress = [], tqdm(total=len(order), desc=f"{encoder.name}: sentences")
    while order:
        count = max(1, pairs // (len(sentences[order[0]].words) + 2) ** 2)
        here, order = order[:count], order[count:]
        blocks.append(_block(encoder, np.array(here), [sentences[n] for n in here], vectors, states, seed))
        progress.update(len(here))
    progress.close()
    return Part(tuple(sentences), tuple(blocks), (encoder.layers, encoder.heads))


def _block(
    encoder: Encoder,
    numbers: NDArray[np.int64],
    sentences: Sequence[Sentence],
    vectors: Vectors,
    states: bool,
    seed: int,
) -> Block:
    batch = encode(encoder, [list(s.words) for s in sentences])
    gather = _special_first(batch)
    size, units = gather.shape
    maps = torch.zeros(size, units, units, encoder.layers * encoder.heads, dtype=torch.float16)

    def keep(layer: int, probabilities: Tensor, _: Tensor | None) -> None:
        words = to_words(probabilities, batch)
        words = words.gather(2, gather[:, None, :, None].expand(-1, encoder.heads, -1, units))
        words = words.gather(3, gather[:, None, None, :].expand(-1, encoder.heads, units, -1))
        maps[..., layer * encoder.heads : (layer + 1) * encoder.heads] = words.permute(0, 2, 3, 1).half().cpu()

    with torch.inference_mode(), attention.tap(encoder, observe=keep):
        output = encoder.model(**batch.inputs, output_hidden_states=states)
    hidden = None
    if states:
        layers = [
            word_states(layer, batch).gather(1, gather[:, 2:, None].expand(-1, -1, layer.shape[-1]))
            for layer in output.hidden_states
        ]
        hidden = torch.stack(layers).half().cpu()
    longest = units - 2
    table = np.zeros((size, units, vectors.matrix.shape[1]), np.float32)
    for row, sentence in enumerate(sentences):
        table[row, 2 : 2 + len(sentence.words)] = vectors(sentence.words)
    scored = [scored_words(s) for s in sentences]
    targets = {task: _padded([target(s, task, seed) for s in sentences], longest, -1) for task in TASKS}
    trees = {"governor": [s.governors for s in sentences], "control": [control_tree(s, seed) for s in sentences]}
    distances = {
        task: torch.from_numpy(_square([tree_distances(g) for g in found], longest)) for task, found in trees.items()
    }
    return Block(
        numbers,
        maps,
        torch.from_numpy(table),
        _padded([[1] * len(s) for s in scored], longest, 0).bool(),
        _padded(scored, longest, 0).bool(),
        targets,
        hidden,
        distances if states else {},
    )


def _special_first(batch: Batch) -> Int[Tensor, "sentence unit"]:
    """For each sentence its units in the order [CLS], [SEP], words, padding."""
    size, units = batch.is_word.shape
    lengths = torch.tensor([len(w) for w in batch.words], device=batch.ids.device)
    place = torch.arange(units, device=batch.ids.device).expand(size, -1)
    # Words after the two special units, padding last; a stable sort keeps the order within each kind
    rank = torch.where(batch.is_word, 1, torch.where(place < lengths[:, None], 0, 2))
    return rank.sort(dim=1, stable=True).indices


def _padded(rows: Sequence[Sequence[int]], length: int, fill: int) -> Int[Tensor, "sentence word"]:
    return torch.tensor([[*map(int, row), *[fill] * (length - len(row))] for row in rows])


def _square(tables: Sequence[NDArray[np.float32]], length: int) -> Float[np.ndarray, "sentence word word"]:
    return np.stack([np.pad(t, (0, length - len(t))) for t in tables])


def scored_words(sentence: Sentence) -> list[bool]:
    """Which words count: all but punctuation."""
    return [r != "punct" and u != "PUNCT" for r, u in zip(sentence.relations, sentence.upos, strict=True)]


# ---------------------------------------------------------------------------------------- tasks


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


# ---------------------------------------------------------------------------------------- parsers


class AttentionProbe(nn.Module):
    """Attention-only probe, or attention-and-words probe (Clark et al. 2019, section 5).

    Args:
        scale: [head], by how much a head's weights vary within a row (:func:`spread`). It is divided out while training, so
            that all heads take steps of like size; the formula stays the same.
        dimensions: of the word vectors; 0 for the attention-only probe.
    """

    def __init__(self, scale: Float[np.ndarray, "head"], dimensions: int = 0) -> None:
        super().__init__()
        heads = len(scale)
        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float32))
        self.bias = nn.Parameter(torch.zeros(heads, 2))  # w and u: candidate attends, dependent attends
        self.root = nn.Parameter(torch.ones(2))  # how [CLS] and [SEP] stand for ROOT
        self.attending = nn.Parameter(torch.zeros(dimensions, heads * 2)) if dimensions else None
        self.attended = nn.Parameter(torch.zeros(dimensions, heads * 2)) if dimensions else None
        self.rate = 0.003 if dimensions else 0.02

    def forward(self, block: Block) -> Float[Tensor, "sentence word candidate"]:
        """Score of every candidate for every word, before the softmax; padding is not masked."""
        maps, units = block.maps.float(), block.vectors  # (B, U, U, K), (B, U, D)
        shape = (*units.shape[:2], *self.bias.shape)
        if self.attending is None:
            each = maps @ (self.bias / self.scale[:, None])  # (B, from, to, 2)
        else:
            rows = ((units @ self.attending).view(shape) + self.bias) / self.scale[:, None]
            columns = (units @ self.attended).view(shape) / self.scale[:, None]
            each = maps @ rows + (maps.transpose(1, 2) @ columns).transpose(1, 2)
        scores = each[..., 0].transpose(1, 2) + each[..., 1]  # dependents are rows, candidates are columns
        root = scores[:, 2:, :2] @ self.root
        return torch.cat([root[..., None], scores[:, 2:, 2:]], -1)

    def weights(
        self,
        governor: Float[np.ndarray, "dimension"] | None = None,
        dependent: Float[np.ndarray, "dimension"] | None = None,
    ) -> Float[np.ndarray, "2 head"]:
        """w (candidate attends) and u (dependent attends) of every head, times how much the head varies.

        Args:
            governor, dependent: vectors of two words, for the attention-and-words probe; without them the weights are those
                of unknown words.
        """
        found = self.bias.detach().double().numpy().copy()
        if governor is not None and dependent is not None and self.attending is not None:
            rows, columns = (
                p.detach().double().numpy().reshape(len(governor), -1, 2) for p in (self.attending, self.attended)
            )
            for role, (attending, attended) in enumerate(((governor, dependent), (dependent, governor))):
                found[:, role] += np.tensordot(attending, rows[..., role], 1)
                found[:, role] += np.tensordot(attended, columns[..., role], 1)
        return found.T


class DistanceProbe(nn.Module):
    """Distances and word vectors through one hidden layer; reads no attention (Clark et al. 2019, section 5, footnote 5).

    Args:
        dimensions: of the word vectors.
        hidden: units of the hidden layer.
        seed: of the first weights.
    """

    NEAR = 2
    rate = 0.01

    def __init__(self, dimensions: int, hidden: int = 64, *, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)

        def drawn(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(*shape, generator=generator) / shape[0] ** 0.5)

        self.dependent, self.candidate = drawn(dimensions, hidden), drawn(dimensions, hidden)
        self.distance = drawn(2 * self.NEAR + 3, hidden)
        self.root = nn.Parameter(torch.zeros(hidden))
        self.out = drawn(hidden, 1)

    def forward(self, block: Block) -> Float[Tensor, "sentence word candidate"]:
        """Score of every candidate for every word, before the softmax; padding is not masked."""
        words = block.vectors[:, 2:]
        place = torch.arange(words.shape[1])
        offset = place[None, :] - place[:, None]
        near = torch.stack([(offset == k).float() for k in range(-self.NEAR, self.NEAR + 1)], -1) @ self.distance[2:]
        length = block.present.sum(-1)[:, None, None, None]
        far = torch.stack([offset.clamp(min=0), (-offset).clamp(min=0)], -1).float() @ self.distance[:2] / length
        inside = (words @ self.dependent)[:, :, None] + (words @ self.candidate)[:, None] + near + far
        root = (words @ self.dependent)[:, :, None] + self.root
        return (torch.cat([root, inside], 2).tanh() @ self.out).squeeze(-1)


def spread(part: Part) -> Float[np.ndarray, "head"]:
    """By how much each head's weights differ from the mean of their row: root mean square over all rows of a part."""
    total, count = 0.0, 0.0
    for block in part.blocks:
        units = nn.functional.pad(block.present, (2, 0), value=True).float()
        maps = block.maps.float()
        mean = maps.sum(2, keepdim=True) / units.sum(-1)[:, None, None, None]
        inside = (units[:, :, None] * units[:, None])[..., None]
        total = total + (((maps - mean) ** 2) * inside).sum((0, 1, 2)).double()
        count += float(inside.sum())
    return np.sqrt((total / count).numpy()).clip(min=1e-6)


def masked(probe: nn.Module, block: Block) -> Float[Tensor, "sentence word candidate"]:
    """A parser's scores, minus infinity at candidates that pad the block."""
    return probe(block).masked_fill(~block.candidates[:, None], -torch.inf)


def parser_loss(probe: nn.Module, block: Block, task: str) -> Tensor:
    """Cross-entropy of the right candidates, in nats, summed over the words."""
    scores = masked(probe, block)
    return nn.functional.cross_entropy(
        scores.flatten(0, 1), block.targets[task].flatten(), ignore_index=-1, reduction="sum"
    )


def train(
    probe: nn.Module,
    part: Part,
    score: Callable[[nn.Module], float],
    loss: Callable[[nn.Module, Block, str], Tensor] = parser_loss,
    *,
    task: str = "governor",
    epochs: int = 30,
    rate: float | None = None,
    cuts: int = 4,
    seed: int = 0,
) -> nn.Module:
    """Fit a probe with Adam; a pass that brings nothing is taken back and the step cut to 0.3 of its size.

    Args:
        score: what a probe is worth on the development part; more is better.
        loss: of a probe on a block for a task.
        epochs: most passes over the training part.
        rate: size of the first steps (default: the probe's own).
        cuts: after so many cuts of the step the training ends.
        seed: of the order of the blocks.

    Returns:
        the same probe, as it was when its score was best.
    """
    with shards.one_thread():
        return _fit(probe, part, score, loss, task, epochs, rate or probe.rate, cuts, np.random.default_rng(seed))


def _fit(
    probe: nn.Module,
    part: Part,
    score: Callable[[nn.Module], float],
    loss: Callable[[nn.Module, Block, str], Tensor],
    task: str,
    epochs: int,
    rate: float,
    cuts: int,
    order: np.random.Generator,
) -> nn.Module:
    optimiser = torch.optim.Adam(probe.parameters(), lr=rate)
    best, kept = -np.inf, copy.deepcopy(probe.state_dict())
    for _ in range(epochs):
        for number in order.permutation(len(part.blocks)):
            optimiser.zero_grad()
            loss(probe, part.blocks[number], task).backward()
            optimiser.step()
        now = score(probe)
        if now > best + PASS_GAIN:
            best, kept = now, copy.deepcopy(probe.state_dict())
            continue
        cuts -= 1
        if not cuts:
            break
        rate *= 0.3
        probe.load_state_dict(kept)
        optimiser = torch.optim.Adam(probe.parameters(), lr=rate)
    probe.load_state_dict(kept)
    return probe


def train_parser(probe: nn.Module, part: Part, dev: Part, *, task: str = "governor", **options: Any) -> nn.Module:
    """:func:`train` a parser by its share of right words on the development part."""

    def score(probe: nn.Module) -> float:
        right, asked = answers(parse(probe, dev), dev, task).sum(0)
        return right / asked

    return train(probe, part, score, task=task, **options)


# ---------------------------------------------------------------------------------------- scoring parsers


def parse(probe: nn.Module, part: Part) -> NDArray[np.int64]:
    """[word], the most probable candidate of each word."""
    with torch.inference_mode():
        return part.flat(lambda block: masked(probe, block).argmax(-1))


def probabilities(probe: nn.Module, part: Part, sentence: int) -> Float[np.ndarray, "word candidate"]:
    """p(candidate | word) in one sentence of a part."""
    for block in part.blocks:
        for row in np.flatnonzero(block.numbers == sentence):
            count = len(part.sentences[sentence].words)
            with torch.inference_mode():
                return masked(probe, block)[row, :count, : count + 1].softmax(-1).double().numpy()
    raise ValueError(f"There is no sentence {sentence}; the part has {len(part.sentences)}.")


def answers(
    pointed: Int[np.ndarray, "word"], part: Part, task: str = "governor", relation: str | None = None
) -> Float[np.ndarray, "sentence 2"]:
    """Per sentence, the words that point at the right candidate and the words asked; punctuation is not asked.

    Args:
        relation: ask only words with this relation.
    """
    asked = part.scored if relation is None else part.scored & (part.relation == relation)
    right = asked & (pointed == part.target(task))
    size = len(part.sentences)
    return np.stack([np.bincount(part.sentence, hits, size) for hits in (right, asked)], 1)


def right_branching(part: Part) -> NDArray[np.int64]:
    """[word], the next word's candidate; after the last word there is none, which is never right."""
    return np.arange(part.starts[-1]) - part.starts[part.sentence] + 2


def single_heads(part: Part) -> Int[np.ndarray, "direction head word"]:
    """The word that each head points at, as candidate: from the word to the strongest, and from the strongest to the word.

    As in chapter 04 neither special tokens nor the word itself can be chosen, so a head never finds the root.
    """
    heads = part.shape[0] * part.shape[1]
    found = np.zeros((2, heads, part.starts[-1]), np.int16)
    for block in part.blocks:
        maps = block.maps[:, 2:, 2:].permute(0, 3, 1, 2).float()
        size = maps.shape[-1]
        allowed = (block.present[:, None] & block.present[:, :, None] & ~torch.eye(size, dtype=torch.bool))[:, None]
        maps = maps.masked_fill(~allowed, -1.0)
        pointed = torch.stack([maps.argmax(-1), maps.argmax(-2)]).numpy() + 1  # (2, B, K, N)
        for row, number in enumerate(block.numbers):
            low, high = part.starts[number], part.starts[number + 1]
            found[:, :, low:high] = pointed[:, row, :, : high - low]
    return found


def head_accuracy(pointed: Int[np.ndarray, "direction head word"], part: Part) -> Float[np.ndarray, "direction head"]:
    """Share of words, punctuation left out, whose governor a head names."""
    scored = part.scored
    return (pointed[..., scored] == part.target("governor")[scored]).mean(-1)


# ---------------------------------------------------------------------------------------- structural probe


class StructuralProbe(nn.Module):
    """A matrix B of hidden states under which squared distance should be distance in the tree (Hewitt & Manning 2019).

    Args:
        layer: which hidden states to read; 0 stands for the embeddings.
        scale: [width], standard deviation of each dimension, divided out before B.
        rank: columns of B.
        seed: of the first weights.
    """

    rate = 0.002

    def __init__(self, layer: int, scale: Float[np.ndarray, "width"], rank: int = 64, *, seed: int = 0) -> None:
        super().__init__()
        self.layer = layer
        generator = torch.Generator().manual_seed(seed)
        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float32))
        self.map = nn.Parameter(torch.randn(len(scale), rank, generator=generator) / (len(scale) * rank) ** 0.5)

    def forward(self, block: Block) -> Float[Tensor, "sentence word word"]:
        """Squared distance of all pairs of words.

        Raises:
            ValueError: if the block was read without hidden states.
        """
        if block.states is None:
            raise ValueError("These sentences were read without hidden states; call read(..., states=True).")
        mapped = (block.states[self.layer].float() / self.scale) @ self.map  # (B, N, rank)
        length = (mapped**2).sum(-1)
        return (length[:, :, None] + length[:, None] - 2 * mapped @ mapped.transpose(1, 2)).clamp_min(0)


def state_scale(part: Part, layer: int) -> Float[np.ndarray, "width"]:
    """Standard deviation of each dimension of a layer's hidden states over all words."""
    words = torch.cat([b.states[layer][b.present] for b in part.blocks]).float()
    return words.std(0).double().numpy().clip(min=1e-6)


def structural_loss(probe: nn.Module, block: Block, task: str) -> Tensor:
    """|tree distance − squared distance|, averaged over the pairs of a sentence and summed over sentences."""
    pairs = (block.present[:, :, None] & block.present[:, None]).float()
    gap = (block.distances[task] - probe(block)).abs() * pairs
    return (gap.sum((1, 2)) / pairs.sum((1, 2))).sum()


def undirected(probe: nn.Module, part: Part, task: str = "governor") -> Float[np.ndarray, "sentence 2"]:
    """Per sentence, the tree's edges that are in the minimum spanning tree of predicted distances, and all its edges.

    Punctuation is left out of both trees (Hewitt & Manning 2019, section 3.2).
    """
    sums = np.zeros((len(part.sentences), 2))
    with torch.inference_mode():
        for block in part.blocks:
            predicted, true = probe(block).numpy(), block.distances[task].numpy()
            for row, number in enumerate(block.numbers):
                words = np.flatnonzero(block.scored[row].numpy())
                here = np.ix_(words, words)
                sums[number] = edges_found(predicted[row][here], true[row][here] == 1)
    return sums


def edges_found(distances: Float[np.ndarray, "word word"], edges: Bool[np.ndarray, "word word"]) -> tuple[int, int]:
    """How many of a tree's edges are in the minimum spanning tree of some distances, and how many there are."""
    if len(distances) < 2:
        return 0, 0
    # scipy takes a zero for "no edge"
    spanning = minimum_spanning_tree(np.triu(distances.astype(np.float64) + 1e-9, 1)).toarray() > 0
    return int((spanning & edges).sum()), int(np.triu(edges).sum())


def train_structural(
    part: Part, dev: Part, layer: int, *, task: str = "governor", rank: int = 64, **options: Any
) -> StructuralProbe:
    """:func:`train` a structural probe of one layer by UUAS on the development part."""

    def score(probe: nn.Module) -> float:
        found, edges = undirected(probe, dev, task).sum(0)
        return found / max(edges, 1)

    return train(
        StructuralProbe(layer, state_scale(part, layer), rank), part, score, structural_loss, task=task, **options
    )


# ---------------------------------------------------------------------------------------- edges and relations


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of words of one sentence and what is asked of them.

    Attributes:
        attention: [pair, 2 × head], weights of all heads from the first word to the second, then back.
        distance: [pair], places from the first word to the second.
        label: [pair], 1 where an edge joins them (or the name of the relation).
        sentence: [pair], index of their sentence.
        kinds: [pair], both words in lower case.
    """

    attention: Float[np.ndarray, "pair feature"]
    distance: Int[np.ndarray, "pair"]
    label: np.ndarray
    sentence: Int[np.ndarray, "pair"]
    kinds: tuple[tuple[str, str], ...]


def edge_pairs(part: Part, *, equally_far: bool = False, limit: int | None = None, seed: int = 0) -> Pairs:
    """As many pairs with an edge as without, the left word first; punctuation is left out.

    Args:
        equally_far: each pair without an edge is as far apart as one with an edge of the same sentence, so that
            distance says nothing; edges for which there is no such pair are left out.
        limit: most edges.
        seed: of the choice of pairs without an edge.
    """
    rng = np.random.default_rng(seed)
    chosen: list[tuple[int, int, int, int]] = []
    for number, sentence in enumerate(part.sentences):
        chosen += [(number, *pair) for pair in _balanced(sentence, equally_far, rng)]
        if limit is not None and len(chosen) >= 2 * limit:
            break
    return _pairs(part, chosen)


def _balanced(sentence: Sentence, equally_far: bool, rng: np.random.Generator) -> list[tuple[int, int, int]]:
    words = np.flatnonzero(scored_words(sentence))
    scored = set(words.tolist())
    edges = {(min(w, g), max(w, g)) for w, g in enumerate(sentence.governors) if {w, g} <= scored}
    others = [(int(a), int(b)) for i, a in enumerate(words) for b in words[i + 1 :] if (a, b) not in edges]
    others = [others[n] for n in rng.permutation(len(others))]
    found = []
    for edge in sorted(edges):
        apart = edge[1] - edge[0]
        match = next((n for n, (a, b) in enumerate(others) if not equally_far or b - a == apart), None)
        if match is not None:
            found += [(*edge, 1), (*others.pop(match), 0)]
    return found


def relation_pairs(
    part: Part, *, fewest: int = 30, relations: Sequence[str] | None = None, limit: int | None = None
) -> Pairs:
    """Pairs of a dependent and its governor, in this order, with the name of their relation.

    Args:
        relations: only these (default: those with at least ``fewest`` pairs).
        limit: most pairs.
    """
    places = [
        (n, w, g)
        for n, s in enumerate(part.sentences)
        for w, (g, keep) in enumerate(zip(s.governors, scored_words(s), strict=True))
        if keep and g >= 0
    ]
    names = [part.sentences[n].relations[w] for n, w, _ in places]
    wanted = set(relations) if relations is not None else {r for r, c in Counter(names).items() if c >= fewest}
    return _pairs(part, [(*p, r) for p, r in zip(places, names, strict=True) if r in wanted][:limit])


def _pairs(part: Part, chosen: Sequence[tuple[int, int, int, Any]]) -> Pairs:
    heads = part.shape[0] * part.shape[1]
    sentence = np.array([c[0] for c in chosen])
    first, second = (np.array([c[k] for c in chosen]) for k in (1, 2))
    weights = np.zeros((len(chosen), 2 * heads), np.float32)
    by_sentence = np.argsort(sentence, kind="stable")
    bounds = np.searchsorted(sentence[by_sentence], np.arange(len(part.sentences) + 1))
    for block in part.blocks:
        for row, number in enumerate(block.numbers):
            at = by_sentence[bounds[number] : bounds[number + 1]]
            one, two = torch.from_numpy(first[at] + 2), torch.from_numpy(second[at] + 2)
            weights[at] = torch.cat([block.maps[row, one, two], block.maps[row, two, one]], 1).float().numpy()
    kinds = tuple(tuple(part.sentences[n].words[w].lower() for w in (a, b)) for n, a, b, _ in chosen)
    return Pairs(weights, second - first, np.array([c[3] for c in chosen]), sentence, kinds)


def control_labels(pairs: Pairs, seed: int = 0) -> np.ndarray:
    """A label for each pair that depends on its two words only: drawn once for all from the labels there are, as often as these."""
    labels = np.sort(pairs.label)
    return np.array([labels[drawn("\n".join(kinds), len(labels), seed)] for kinds in pairs.kinds])


def classify(
    train: Pairs, test: Pairs, *, of: str = "attention", labels: tuple[np.ndarray, np.ndarray] | None = None
) -> Float[np.ndarray, "pair"]:
    """Fit a logistic regression on some pairs and say where it is right on others.

    Args:
        of: ``attention`` (all heads, both directions) or ``distance`` (which of 21 classes, −10 to 10, the rest at the ends).
        labels: of both sets of pairs, in place of their own.

    Raises:
        ValueError: for another ``of``.
    """
    if of == "attention":
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300, tol=1e-3))
        inputs = train.attention, test.attention
    elif of == "distance":
        model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=300))
        inputs = tuple(p.distance.clip(-10, 10)[:, None] for p in (train, test))
    else:
        raise ValueError(f"of={of!r}: say 'attention' or 'distance'.")
    wanted = labels or (train.label, test.label)
    return (model.fit(inputs[0], wanted[0]).predict(inputs[1]) == wanted[1]).astype(np.float64)


def share(right: Float[np.ndarray, "pair"], pairs: Pairs, *, seed: int = 0) -> Estimate:
    """Share of pairs that were classified rightly, with an interval over sentences."""
    found, at = np.unique(pairs.sentence, return_inverse=True)
    return ratio(np.stack([np.bincount(at, right, len(found)), np.bincount(at, minlength=len(found))], 1), seed=seed)


# ---------------------------------------------------------------------------------------- outcomes


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a probe scores on the test part.

    Attributes:
        score: on the question itself, with an interval over sentences.
        control: of the same kind of probe trained and scored on the control task; None where there is none.
        probe: the trained probe, None for rules and for logistic regressions.
    """

    score: Estimate
    control: Estimate | None = None
    probe: nn.Module | None = None

    @property
    def selectivity(self) -> Estimate | None:
        """``score - control``, paired over sentences (Hewitt & Liang 2019)."""
        return None if self.control is None else self.score - self.control


Parts = tuple[Part, Part, Part]
"""Training, development and test part."""


def parser_outcome(
    make: Callable[[], nn.Module],
    parts: Parts,
    *,
    task: str = "governor",
    control: bool = True,
    seed: int = 0,
    **options: Any,
) -> Outcome:
    """Train a parser and score it on the test part; the same again for the control task.

    Args:
        make: gives a new parser each time.
        task: of :data:`TASKS`.
        control: whether to train for the control task, too.
        options: of :func:`train`.
    """
    train_part, dev, test = parts
    scores, probes = [], []
    for asked in (task, "control")[: 1 + control]:
        probe = train_parser(make(), train_part, dev, task=asked, seed=seed, **options)
        scores.append(ratio(answers(parse(probe, test), test, asked), seed=seed))
        probes.append(probe)
    return Outcome(*scores, *[None] * (not control), probes[0])


def structural_outcome(parts: Parts, layer: int, *, seed: int = 0, **options: Any) -> Outcome:
    """Train a structural probe of a layer and score its UUAS on the test part; the same again for the control trees."""
    train_part, dev, test = parts
    scores, probes = [], []
    for task in ("governor", "control"):
        probe = train_structural(train_part, dev, layer, task=task, seed=seed, **options)
        scores.append(ratio(undirected(probe, test, task), seed=seed))
        probes.append(probe)
    return Outcome(*scores, probes[0])


def layer_scores(parts: Parts, *, seed: int = 0, **options: Any) -> Estimate:
    """UUAS on the development part of a structural probe of every layer, embeddings first."""
    train_part, dev, _ = parts
    layers = len(train_part.blocks[0].states) if train_part.blocks[0].states is not None else 0
    if not layers:
        raise ValueError("These sentences were read without hidden states; call read(..., states=True).")
    scores = [
        ratio(undirected(train_structural(train_part, dev, layer, seed=seed, **options), dev), seed=seed)
        for layer in range(layers)
    ]
    return stacked(scores)


def pair_outcome(train: Pairs, test: Pairs, *, of: str = "attention", seed: int = 0) -> Outcome:
    """Classify pairs by attention or distance, and with labels that are random but the same for the same two words."""
    score = share(classify(train, test, of=of), test, seed=seed)
    random = control_labels(train, seed), control_labels(test, seed)
    return Outcome(score, share(classify(train, test, of=of, labels=random), test, seed=seed))


def stacked(estimates: Sequence[Estimate]) -> Estimate:
    """Estimates of single numbers as one estimate of an array."""
    return Estimate(
        np.array([e.value for e in estimates]),
        np.array([e.low for e in estimates]),
        np.array([e.high for e in estimates]),
        np.stack([e.replicates for e in estimates], 1),
    )


def as_dict(outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """Scores, controls and selectivities for :func:`helpers.record.results.record`."""
    return {
        name: {"score": o.score} | ({} if o.control is None else {"control": o.control, "selectivity": o.selectivity})
        for name, o in outcomes.items()
    }
