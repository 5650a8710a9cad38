"""Chapter 01: what one attention head computes, by hand, from the model's own weights."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from helpers import attention, tokens
from helpers.encoders import Encoder, EncoderError
from helpers.tokens import Batch

PROJECTIONS = (("query", "key", "value"), ("q", "k", "v"), ("q_lin", "k_lin", "v_lin"))


@dataclass(frozen=True)
class OneHead:
    """Everything that one head computes for one input of n tokens, d numbers a token and head.

    Attributes:
        query, key, value: [n, d], what the three projections make of the layer's input.
        scores: [n, n], query·key / √d (plus the position bias of families that have one).
        probabilities: [n, n], softmax of the scores over the attended tokens; rows sum to 1.
        output: [n, d], probabilities @ value.
    """

    query: Float[Tensor, "n d"]
    key: Float[Tensor, "n d"]
    value: Float[Tensor, "n d"]
    scores: Float[Tensor, "n n"]
    probabilities: Float[Tensor, "n n"]
    output: Float[Tensor, "n d"]


def one_head(encoder: Encoder, batch: Batch, layer: int, head: int) -> OneHead:
    """Compute one head for the first input of a batch, step by step (Vaswani et al. 2017, section 3.2.1).

    Args:
        layer, head: from 0.

    Raises:
        EncoderError: for families whose scores have further terms (rotary or disentangled positions).
    """
    length = int(batch.lengths[0])
    project_q, project_k, project_v = projections(encoder, layer)
    with torch.inference_mode():
        hidden_states = encoder.model(**batch.inputs, output_hidden_states=True).hidden_states
        x = hidden_states[layer][0, :length]  # (n, width of the model)
        d = project_q.out_features // encoder.heads
        rows = slice(head * d, (head + 1) * d)  # this head's share of each projection
        q, k, v = (x @ p.weight[rows].T + p.bias[rows] for p in (project_q, project_k, project_v))
        scores = q @ k.T / math.sqrt(d) + position_term(encoder, x, head)
        probabilities = scores.softmax(dim=-1)
        return OneHead(q, k, v, scores, probabilities, probabilities @ v)


def position_term(encoder: Encoder, x: Float[Tensor, "n width"], head: int) -> Float[Tensor, "n n"]:
    """What a head adds to its scores for the distance between two tokens: learned in MPNet, 0 in a BERT.

    Args:
        x: what enters the layer.
        head: from 0.
    """
    bias = _position_bias(encoder, x[None])
    return x.new_zeros(len(x), len(x)) if bias is None else bias[0, head]


def projections(encoder: Encoder, layer: int) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
    """The query, key and value projections of a layer (from 0), each for all heads at once.

    Raises:
        EncoderError: for families whose weights are not those of queries and keys alone.
    """
    found = [
        tuple(getattr(module, name) for name in names)
        for module in encoder.model.modules()
        for names in PROJECTIONS
        if all(isinstance(getattr(module, name, None), nn.Linear) for name in names)
    ]
    if not found or not _explain(encoder, layer, *found[layer % len(found)][:2]):
        raise EncoderError(
            f"{type(encoder.model).__name__} does not compute its scores from queries and keys alone, so this "
            "chapter's worked example does not fit it; BERT, RoBERTa, ELECTRA, ALBERT, DistilBERT and MPNet do."
        )
    return found[layer % len(found)]  # ALBERT uses one set for all layers


def _explain(encoder: Encoder, layer: int, query: nn.Linear, key: nn.Linear) -> bool:
    """Whether the weights of a layer follow from these two projections of its input: rotated ones, say, do not."""
    batch, maps = tokens.encode(encoder, ["A short one."]), []
    with torch.inference_mode(), attention.tap(encoder, observe=lambda _, p, __: maps.append(p)):
        x = encoder.model(**batch.inputs, output_hidden_states=True).hidden_states[layer]
        if not x.shape[-1] == query.in_features == key.in_features:
            return False
        q, k = (p(x).view(*x.shape[:2], encoder.heads, -1).transpose(1, 2) for p in (query, key))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if (bias := _position_bias(encoder, x)) is not None:
            scores = scores + bias
        return torch.allclose(scores.softmax(-1), maps[layer], atol=1e-4)


def _position_bias(encoder: Encoder, hidden: Tensor) -> Tensor | None:
    """MPNet adds a learned bias for the distance between two tokens to every score."""
    inner = getattr(encoder.model, "encoder", None)
    return inner.compute_position_bias(hidden) if hasattr(inner, "relative_attention_bias") else None


def causal(scores: Float[Tensor, "*many n n"]) -> Float[Tensor, "*many n n"]:
    """The probabilities a decoder would make of the same scores: no token sees those after it."""
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -math.inf).softmax(dim=-1)


MASKED_SHARE, TO_MASK, TO_RANDOM = 0.15, 0.8, 0.1  # Devlin et al. 2019, section 3.1


def corrupt(
    ids: Int[Tensor, "batch length"],
    special: Bool[Tensor, "batch length"],
    *,
    mask_id: int,
    vocabulary: int,
    seed: int = 0,
) -> tuple[Int[Tensor, "batch length"], Bool[Tensor, "batch length"]]:
    """What masked language modelling does to an input (Devlin et al. 2019, section 3.1).

    15 % of the ordinary tokens are to be predicted; of these 80 % become ``[MASK]``, 10 % a random token,
    and 10 % stay as they are.

    Returns:
        the corrupted ids, and which tokens are to be predicted.
    """
    rng = np.random.default_rng(seed)
    draw = torch.from_numpy(rng.random((2, *ids.shape)))
    random_ids = torch.from_numpy(rng.integers(vocabulary, size=tuple(ids.shape))).to(ids)
    chosen = (draw[0] < MASKED_SHARE).to(ids.device) & ~special
    fate = draw[1].to(ids.device)
    corrupted = torch.where(chosen & (fate < TO_MASK), mask_id, ids)
    corrupted = torch.where(chosen & (fate >= TO_MASK) & (fate < TO_MASK + TO_RANDOM), random_ids, corrupted)
    return corrupted, chosen
