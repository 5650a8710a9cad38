"""The parts of a model from which the scores of one attention head are computed by hand."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from helpers import attention, tokens
from helpers.encoders import Encoder, EncoderError

PROJECTIONS = (("query", "key", "value"), ("q", "k", "v"), ("q_lin", "k_lin", "v_lin"))


def position_term(encoder: Encoder, x: Float[Tensor, "n width"]) -> Float[Tensor, "head n n"]:
    """What each head adds to its scores for the distance between two tokens: learned in MPNet, 0 in a BERT.

    Args:
        x: what enters the layer.
    """
    inner = getattr(encoder.model, "encoder", None)
    if hasattr(inner, "relative_attention_bias"):
        return inner.compute_position_bias(x[None])[0]
    return x.new_zeros(encoder.heads, len(x), len(x))


def projections(encoder: Encoder, layer: int) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
    """The query, key and value projections of a layer (from 0), each for all heads at once.

    Raises:
        EncoderError: for families whose weights are not those of queries and keys alone.
    """
    modules = [
        tuple(getattr(module, name) for name in names)
        for module in encoder.model.modules()
        for names in PROJECTIONS
        if all(isinstance(getattr(module, name, None), nn.Linear) for name in names)
    ]
    if not modules or not _explain(encoder, layer, *modules[layer % len(modules)][:2]):
        raise EncoderError(
            f"{type(encoder.model).__name__} does not compute its scores from queries and keys alone, so this "
            "chapter's worked example does not fit it; BERT, RoBERTa, ELECTRA, ALBERT, DistilBERT and MPNet do."
        )
    return modules[layer % len(modules)]  # ALBERT uses one set for all layers


def _explain(encoder: Encoder, layer: int, query: nn.Linear, key: nn.Linear) -> bool:
    """Whether the weights of a layer follow from these two projections of its input: rotated ones, say, do not."""
    batch, maps = tokens.encode(encoder, ["A short one."]), []
    with torch.inference_mode(), attention.tap(encoder, observe=lambda _, p, __: maps.append(p)):
        x = encoder.model(**batch.inputs, output_hidden_states=True).hidden_states[layer]
        if not x.shape[-1] == query.in_features == key.in_features:
            return False
        q, k = (p(x).view(*x.shape[:2], encoder.heads, -1).transpose(1, 2) for p in (query, key))
        scores = q @ k.mT / q.shape[-1] ** 0.5 + position_term(encoder, x[0])
        return torch.allclose(scores.softmax(-1), maps[layer], atol=1e-4)
