"""The control for everything that is read off a map of attention: the same scores in other places.

A network with random weights attends nearly evenly, so much of what is said of trained heads is bound to be missing there,
and what is found in it may be missing here for the same reason. Shuffled scores are as varied as the trained head's: in each
map of each head the scores of all pairs of tokens are shuffled among the pairs, and each row is made into weights again.
Whatever survives that follows from how sharp a head is, not from where it looks. Where it is shown beside a model it is called
``<model>@shuffled``.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor


def shuffled(maps: Float[Tensor, "head query key"], drawn_from: tuple[int, ...]) -> Float[Tensor, "head query key"]:
    """One layer's maps of one text whose scores are shuffled among each map's pairs; rows sum to 1 again.

    Scores are taken back from the weights as their logarithms less the mean of each row, which is all that a softmax knows of them.

    Args:
        drawn_from: with the head's number behind it the seed of the head's permutation.
    """
    scores = maps.clamp_min(torch.finfo(maps.dtype).tiny).log()
    scores = (scores - scores.mean(-1, keepdim=True)).flatten(1)
    orders = [np.random.default_rng([*drawn_from, head]).permutation(scores.shape[1]) for head in range(len(scores))]
    return scores.gather(1, torch.from_numpy(np.stack(orders)).to(scores.device)).view_as(maps).softmax(-1)


def shuffled_maps(
    maps: Float[Tensor, "layer head query key"], number: int, seed: int = 0
) -> Float[Tensor, "layer head query key"]:
    """All maps of one text with the scores of each shuffled.

    Args:
        number: of the text; the same text, layer, head and seed are shuffled alike wherever they are measured.
    """
    return torch.stack([shuffled(of_layer, (seed, number, layer)) for layer, of_layer in enumerate(maps)])
