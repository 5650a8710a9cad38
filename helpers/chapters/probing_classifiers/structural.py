"""The structural probe: distances of hidden states as distances in the tree (Hewitt & Manning 2019)."""

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree
from torch import Tensor, nn

from helpers.chapters.probing_classifiers.parsers import train
from helpers.chapters.probing_classifiers.reading import Block, Part, scored_words


class StructuralProbe(nn.Module):
    """A matrix B of hidden states under which squared distance should be distance in the tree (Hewitt & Manning 2019).

    Args:
        layer: which hidden states to read; 0 stands for the embeddings.
        scale: [width], standard deviation of each dimension, divided out before B.
        rank: columns of B.
    """

    rate = 0.002

    def __init__(self, layer: int, scale: Float[np.ndarray, "width"], rank: int = 64) -> None:
        super().__init__()
        self.layer = layer
        generator = torch.Generator().manual_seed(0)
        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float32))
        self.map = nn.Parameter(torch.randn(len(scale), rank, generator=generator) / (len(scale) * rank) ** 0.5)

    def forward(self, block: Block) -> Float[Tensor, "sentence word word"]:
        """Squared distance of all pairs of words.

        Raises:
            ValueError: if the block was read without hidden states.
        """
        mapped = (block.hidden[self.layer].float() / self.scale) @ self.map  # (B, N, rank)
        length = (mapped**2).sum(-1)
        return (length[:, :, None] + length[:, None] - 2 * mapped @ mapped.transpose(1, 2)).clamp_min(0)


def state_scale(part: Part, layer: int) -> Float[np.ndarray, "width"]:
    """Standard deviation of each dimension of a layer's hidden states over all words."""
    words = torch.cat([b.hidden[layer][b.present] for b in part.blocks]).float()
    return words.std(0).double().numpy().clip(min=1e-6)


def structural_loss(probe: nn.Module, block: Block, task: str) -> Tensor:
    """The size of tree distance − squared distance, averaged over the pairs of a sentence and summed over sentences."""
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


def neighbours(part: Part) -> Float[np.ndarray, "sentence 2"]:
    """Per sentence, the tree's edges between neighbours, and all its edges; punctuation is left out, as in :func:`undirected`."""
    sums = np.zeros((len(part.sentences), 2))
    for number, sentence in enumerate(part.sentences):
        words = np.flatnonzero(scored_words(sentence)).tolist()
        edges = {frozenset((w, g)) for w in words if (g := sentence.governors[w]) in words}
        sums[number] = len(edges & set(map(frozenset, pairwise(words)))), len(edges)
    return sums


def edges_found(distances: Float[np.ndarray, "word word"], edges: Bool[np.ndarray, "word word"]) -> tuple[int, int]:
    """How many of a tree's edges are in the minimum spanning tree of some distances, and how many there are."""
    if len(distances) < 2:
        return 0, 0
    count = len(distances)
    rows, columns = np.triu_indices(count, 1)
    starts = np.concatenate(([0], np.cumsum(np.arange(count)[::-1])))
    # scipy takes a zero for "no edge", checks a matrix that is sparse already in a third of the time, and 1.16 refuses places of 64 bits
    places = columns.astype(np.int32), starts.astype(np.int32)
    weights = csr_array((distances[rows, columns].astype(np.float64) + 1e-9, *places), (count, count))
    spanning = minimum_spanning_tree(weights).toarray() > 0
    return int((spanning & edges).sum()), int(np.triu(edges).sum())


def train_structural(
    part: Part, dev: Part, layer: int, *, task: str = "governor", rank: int = 64, **options: Any
) -> StructuralProbe:
    """:func:`train` a structural probe of one layer by UUAS on the development part."""

    def score(probe: nn.Module) -> float:
        found, edges = undirected(probe, dev, task).sum(0)
        return found / max(edges, 1)

    probe = StructuralProbe(layer, state_scale(part, layer), rank)
    return train(probe, part, score, structural_loss, task=task, **options)
