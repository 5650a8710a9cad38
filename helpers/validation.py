"""What is checked once of every model that is loaded: that its weights are numbers, that its tokenizer fits, that the tap sees
what it computes, and that each token sees the whole text. A chapter need not ask again.
"""

import torch
from torch import Tensor

from helpers import attention, places, tokens
from helpers.encoder import Encoder
from helpers.models import OWN_TOKENIZER, WORKING_FAMILIES, DamagedModel, NotAnEncoder, in_a_line

#: An encoder that takes fewer tokens than this has no text to look at.
LEAST_TOKENS = 8
#: A pair, and a text that is padded beside it.
PROBE = [("Each token looks at every other one.", "So it does."), "A short one."]
TOLERANCE = 1e-3


def check(encoder: Encoder) -> None:
    """Look at weights and tokenizer, run a short text through the encoder with and without the tap, and see whether all is as the book needs it.

    Raises:
        NotAnEncoder: for attention that neither route of :mod:`helpers.attention` reaches, for a slow tokenizer, which has no character
            offsets, and when the encoder takes too few tokens, its forward pass fails, the tap does not see all that is computed,
            padding is seen, or a token does not see those after it.
        DamagedModel: for weights that are NaN or infinite, naming the first, and for a tokenizer that knows no words, or more than the
            model has embeddings for.
    """
    model, tokenizer, name = encoder.model, encoder.tokenizer, f"{encoder.name!r} ({type(encoder.model).__name__})"
    reached = getattr(model, "_supports_attention_backend", False)
    if not reached and len(attention.with_dropout(model)) != encoder.layers:
        raise NotAnEncoder(
            f"The self-attention of {name} neither goes through transformers' AttentionInterface nor applies a dropout to its "
            f"probabilities, so it cannot be observed. Families that work: {WORKING_FAMILIES}."
        )
    for key, tensor in model.named_parameters():
        if not tensor.sum().isfinite() and not tensor.isfinite().all():  # a sum is ten times faster, and may overflow
            raise DamagedModel(f"{name} has weights that are NaN or infinite, in {key}. Get its files again.")
    if not tokenizer.is_fast:
        raise NotAnEncoder(
            f"{name} comes with a slow tokenizer; the book needs character offsets. Save a fast one (tokenizer.json) into its folder."
        )
    known, embedded = tokenizer.get_vocab(), model.get_input_embeddings().weight.shape[0]
    if len(known) <= len({*tokenizer.all_special_tokens}):
        raise DamagedModel(f"The tokenizer of {name} knows no word. {OWN_TOKENIZER}")
    most = max(known.values())
    if most >= embedded:
        raise DamagedModel(
            f"The tokenizer of {name} has tokens up to number {most}, but the model has embeddings for {embedded} only. {OWN_TOKENIZER}"
        )
    if encoder.max_length < LEAST_TOKENS:
        raise NotAnEncoder(
            f"{name} takes {encoder.max_length} tokens, special ones included; an encoder of text takes {LEAST_TOKENS} or more."
        )
    try:
        batch = tokens.encode(encoder, PROBE, truncate=True)
        seen: list[Tensor] = []
        with torch.inference_mode():
            plain = model(**batch.inputs).last_hidden_state
            with attention.tap(encoder, observe=lambda _, p, __: seen.append(p)):
                tapped = model(**batch.inputs).last_hidden_state
    except places.BookError as error:
        raise NotAnEncoder(str(error)) from None
    except Exception as error:  # a model of another kind fails in any way
        raise NotAnEncoder(f"{name} cannot read a short text ({in_a_line(error)}).") from None
    problem = _problem(encoder, batch, plain, tapped, torch.stack(seen))
    if problem:
        raise NotAnEncoder(f"{name}: {problem}")


def _problem(encoder: Encoder, batch: tokens.Batch, plain: Tensor, tapped: Tensor, maps: Tensor) -> str:
    """What is wrong, as a sentence; empty when nothing is."""
    real = batch.mask[..., None]
    rows = maps.masked_select(batch.mask[:, None, :, None].expand_as(maps)).view(-1, maps.shape[-1])
    to_padding = maps.masked_select(real[:, None] & ~batch.mask[:, None, None, :]).sum()
    later = (batch.mask[:, None, :] & real).triu(1)
    ahead = (maps * later[:, None]).amax((1, 2, 3, 4))
    if not plain.masked_select(real).isfinite().all():
        return "what it computes of a short text is NaN or infinite. Get its files again."
    if not (batch.cls.any(-1) & batch.sep.any(-1)).all():
        return (
            f"its tokenizer does not put {encoder.special.cls!r} and {encoder.special.sep!r} around a text, "
            f"which chapters count on. {OWN_TOKENIZER}"
        )
    if ((plain - tapped) * real).abs().max() > TOLERANCE * max(1.0, float((plain * real).abs().max())):
        return "its attention has terms that cannot be observed: the model computes something else while it is looked at."
    if (rows.sum(-1) - 1).abs().max() > TOLERANCE or to_padding > TOLERANCE:
        return "its attention is no share over the tokens of a text."
    blind = [str(layer + 1) for layer, most in enumerate(ahead.tolist()) if most == 0]
    return f"it is a decoder: in layer {', '.join(blind)} a token sees only its past." if blind else ""
