"""Probes that point at a word's governor, their training, and how often they are right."""

import copy
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from helpers import parallel
from helpers.chapters.probing_classifiers.reading import Block, Part

PASS_GAIN = 0.0005
"""A pass over the training part that brings less than this on the development part cuts the step."""


RIDGE = 0.01
"""L2 penalty of :func:`penalised`, in nats a word for a weight of 1."""


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
        far, near = _offsets(words.shape[1], self.NEAR)
        near, far = near @ self.distance[2:], far @ self.distance[:2] / block.present.sum(-1)[:, None, None, None]
        inside = (words @ self.dependent)[:, :, None] + (words @ self.candidate)[:, None] + near + far
        root = (words @ self.dependent)[:, :, None] + self.root
        return (torch.cat([root, inside], 2).tanh() @ self.out).squeeze(-1)


@lru_cache(maxsize=256)
@torch.inference_mode(False)  # what is kept from scoring must serve training, too
def _offsets(
    length: int, near: int
) -> tuple[Float[Tensor, "word candidate 2"], Float[Tensor, "word candidate offset"]]:
    """How far each candidate lies to the right and to the left, and whether it is one of the nearest."""
    offset = torch.arange(length)[None] - torch.arange(length)[:, None]
    close = torch.stack([(offset == k).float() for k in range(-near, near + 1)], -1)
    return torch.stack([offset.clamp(min=0), (-offset).clamp(min=0)], -1).float(), close


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
    scores, right = masked(probe, block).flatten(0, 1), block.targets[task].flatten()
    return nn.functional.cross_entropy(scores, right, ignore_index=-1, reduction="sum")


def penalised(probe: nn.Module, block: Block, task: str) -> Tensor:
    """:func:`parser_loss` of an attention-only probe plus :data:`RIDGE` times its squared weights for each word."""
    return parser_loss(probe, block, task) + RIDGE * block.present.sum() * (probe.bias**2).sum()


@parallel.one_thread()
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
    rate, order = rate or probe.rate, np.random.default_rng(seed)
    optimiser = torch.optim.Adam(probe.parameters(), lr=rate)
    best, kept = -np.inf, copy.deepcopy(probe.state_dict())
    for _ in range(epochs):
        for number in order.permutation(len(part.blocks)):
            probe.zero_grad()
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
    right = asked & (pointed == part.targets[task])
    return np.stack([np.bincount(part.sentence, hits, len(part.sentences)) for hits in (right, asked)], 1)


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
        for row, (low, high) in enumerate(
            zip(part.starts[block.numbers], part.starts[block.numbers + 1], strict=True)
        ):
            found[:, :, low:high] = pointed[:, row, :, : high - low]
    return found


def head_accuracy(pointed: Int[np.ndarray, "direction head word"], part: Part) -> Float[np.ndarray, "direction head"]:
    """Share of words, punctuation left out, whose governor a head names."""
    return (pointed == part.targets["governor"])[..., part.scored].mean(-1)
