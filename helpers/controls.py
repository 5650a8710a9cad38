"""The control for everything that is read off a map of attention: the same scores in other places.

A network with random weights attends nearly evenly, so much of what is said of trained heads is bound to be missing there,
and what is found in it may be missing here for the same reason. Shuffled scores are as varied as the trained head's: in each
map of each head the scores of all pairs of tokens are shuffled among the pairs, and each row is made into weights again.
Whatever survives that follows from how sharp a head is, not from where it looks. Where it is shown beside a model it is called
``<model>@shuffled``.
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from helpers.tokens import Batch

SHUFFLED = "@shuffled"


def shuffled(
    probabilities: Float[Tensor, "batch head query key"],
    mask: Bool[Tensor, "batch length"],
    seeds: Callable[[int, int], list[int]],
) -> Float[Tensor, "batch head query key"]:
    """Maps whose scores, among real tokens, are shuffled among the map's pairs; rows sum to 1 again.

    Scores are taken back from the weights as their logarithms less the mean of each row, which is all that a softmax knows of them.

    Args:
        mask: true at real tokens, which come before those that pad a row.
        seeds: (row of the batch, head) -> what the permutation is drawn from.
    """
    made = torch.zeros_like(probabilities)
    for row, real in enumerate(mask):
        length = int(real.sum())
        scores = probabilities[row, :, :length, :length].clamp_min(torch.finfo(probabilities.dtype).tiny).log()
        scores = (scores - scores.mean(-1, keepdim=True)).flatten(1)
        orders = [np.random.default_rng(seeds(row, head)).permutation(scores.shape[1]) for head in range(len(scores))]
        order = torch.from_numpy(np.stack(orders)).to(scores.device)
        made[row, :, :length, :length] = scores.gather(1, order).view(-1, length, length).softmax(-1)
    return made


def shuffled_maps(
    maps: Float[Tensor, "layer head query key"], number: int, seed: int = 0
) -> Float[Tensor, "layer head query key"]:
    """All maps of one text with the scores of each shuffled.

    Args:
        number: of the text; the same text, layer, head and seed are shuffled alike wherever they are measured.
    """
    every = torch.ones(1, maps.shape[-1], dtype=torch.bool, device=maps.device)
    layers = (
        shuffled(layer[None], every, lambda _, head, at=at: [seed, number, at, head]) for at, layer in enumerate(maps)
    )
    return torch.cat(list(layers)).view_as(maps)


def shuffling(batch: Batch, seed: int = 0) -> Callable[[int, Tensor], Tensor]:
    """Editor with which every head of the running model looks at its own shuffled scores.

    Later layers compute their scores from what has become of the earlier ones. For one batch; the same input, layer, head and
    seed are shuffled alike in every batch.
    """

    def edit(layer: int, probabilities: Tensor) -> Tensor:
        return shuffled(probabilities, batch.mask, lambda row, head: [seed, batch.index[row], layer, head])

    return edit
