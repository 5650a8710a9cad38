"""The parts of a model from which the scores of one attention head are computed by hand."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from helpers import attention, tokens
from helpers.encoders import Encoder, EncoderError


def position_term(encoder: Encoder, x: Float[Tensor, "n width"]) -> Float[Tensor, "head n n"]:
    """What each head adds to its scores for the distance between two tokens: learned in MPNet, 0 in a BERT.

    Args:
        x: what enters the layer.
    """
    inner = getattr(encoder.model, "encoder", None)
    if hasattr(inner, "relative_attention_bias"):
        return inner.compute_position_bias(x[None])[0]
    return x.new_zeros(encoder.heads, len(x), len(x))


def projections(encoder: Encoder, layer: int) -> tuple[nn.Linear, ...]:
    """The query, key and value projections of a layer (from 0), each for all heads at once: the first maps of its attention.

    Raises:
        EncoderError: for families whose weights do not follow from two of these projections of the layer's input: rotated ones, say.
    """
    output, maps = attention.output_projections(encoder)[layer], []
    for part in encoder.model.modules():  # the innermost that holds the output map comes last
        inside = [module for module in part.modules() if isinstance(module, nn.Linear)]
        maps = inside[:3] if output in inside[3:] else maps
    batch, weights = tokens.encode(encoder, ["A short one."]), []
    with torch.inference_mode(), attention.tap(encoder, observe=lambda _, p, __: weights.append(p)):
        x = encoder.model(**batch.inputs, output_hidden_states=True).hidden_states[layer]
        if {tuple(m.weight.shape) for m in maps} == {(output.in_features, x.shape[-1])}:
            q, k = (m(x).unflatten(-1, (encoder.heads, -1)).transpose(1, 2) for m in maps[:2])
            scores = q @ k.mT / q.shape[-1] ** 0.5 + position_term(encoder, x[0])
            if torch.allclose(scores.softmax(-1), weights[layer], atol=1e-4):
                return tuple(maps)
    raise EncoderError(
        f"{type(encoder.model).__name__} does not compute its scores from queries and keys alone, so this "
        "chapter's worked example does not fit it; BERT, RoBERTa, ELECTRA, ALBERT, DistilBERT and MPNet do."
    )
