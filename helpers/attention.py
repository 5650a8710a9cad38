"""The one way into a forward pass: observe attention, or edit it. ::

    with attention.tap(encoder, observe=look):
        encoder.model(**batch.inputs)

calls ``look(layer, probabilities, values)`` for each layer while the model runs, so that no more than one
layer's maps of one batch exist at a time. An editor, ``edit(layer, probabilities) -> probabilities``,
replaces them before they meet the values; most ablations in the book are such editors.

Two routes lead in. Families that dispatch through transformers' ``AttentionInterface`` are run with an
attention function of our own (the eager one, with the observer and the editor in its middle). Older
families apply an ``nn.Dropout`` to their probabilities, and a hook before that dropout sees and replaces
them. transformers 5 has no ``head_mask`` any more, and ``output_attentions=True`` keeps all maps of all
layers alive at once; the tap stands for both.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from tqdm import tqdm
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from helpers import controls, parallel
from helpers.corpora.records import Segment
from helpers.encoder import Encoder
from helpers.models import EncoderError
from helpers.tokens import Batch, EncodedText, batches, by_word

#: ``observe(layer, probabilities, values)``: layer from 0, probabilities [batch, head, query, key], values
#: [batch, head, key, dimension] (None where a family does not show them).
Observer = Callable[[int, Tensor, Tensor | None], None]

#: ``edit(layer, probabilities) -> probabilities``, same shape.
Editor = Callable[[int, Tensor], Tensor]

INTERFACE = "book-tap"
#: What some families hand to their attention function beside the mask, and ours does not compute.
FURTHER_TERMS = ("softcap", "s_aux", "sinks", "position_bias")
VALUE_PROJECTIONS = ("v", "value", "value_proj")


class TapError(EncoderError):
    """An edit is impossible, or the attention did not show itself as promised."""


@dataclass(eq=False)
class _Stream:
    """The taps now open on one model, the outermost first, and the layer its forward pass has reached."""

    encoder: Encoder
    taps: list[tuple[Observer | None, Editor | None]] = field(default_factory=list)
    layer: int = 0
    values: Tensor | None = None

    def start(self, *_: object) -> None:
        """Before a forward pass."""
        self.layer = 0

    def through(self, probabilities: Tensor, values: Tensor | None) -> Tensor:
        """Show the probabilities of the next layer to every tap and return what the editors made of them."""
        _, heads, queries, keys = probabilities.shape
        if heads != self.encoder.heads or queries != keys:
            raise TapError(
                f"{self.encoder.name!r}, layer {self.layer + 1}: expected attention of {self.encoder.heads} heads "
                f"over [query, key], got {tuple(probabilities.shape)}; this family cannot be tapped."
            )
        for observe, edit in self.taps:
            if observe is not None:
                observe(self.layer, probabilities, values)
            if edit is not None:
                edited, shape = edit(self.layer, probabilities), tuple(probabilities.shape)
                if getattr(edited, "shape", None) != shape:
                    got = getattr(edited, "shape", type(edited).__name__)
                    raise TapError(f"Layer {self.layer + 1}: the edit returned {got}, not {shape}.")
                if not edited.sum().isfinite():
                    raise TapError(f"Layer {self.layer + 1}: the edit returned NaN or infinite weights.")
                probabilities = edited.to(probabilities.dtype)
        self.layer += 1
        return probabilities

    def check_all_seen(self, *_: object) -> None:
        """After a forward pass."""
        if self.layer != self.encoder.layers:
            raise TapError(
                f"Only {self.layer} of the {self.encoder.layers} layers of {self.encoder.name!r} "
                f"({type(self.encoder.model).__name__}) showed their attention; this family cannot be tapped."
            )


_STREAMS: dict[int, _Stream] = {}  # id(model.config) -> its open taps; the config is what attention modules hold


@contextmanager
def tap(encoder: Encoder, observe: Observer | None = None, edit: Editor | None = None) -> Iterator[None]:
    """Observe or edit the attention of every forward pass inside the ``with`` block.

    Within one tap the observer sees the probabilities before the editor. Taps nest: an inner tap sees
    what the outer one's editor returned. Afterwards, also after an exception, the model is as it was.

    Raises:
        TapError: inside the forward pass, when an edit changes the shape or yields NaN or infinity, or
            when a layer passes by unseen.
    """
    key, mine = id(encoder.model.config), (observe, edit)
    with ExitStack() as restore:
        if key not in _STREAMS:
            _STREAMS[key] = _Stream(encoder)
            restore.callback(_STREAMS.pop, key)
            _open(_STREAMS[key], restore)
        taps = _STREAMS[key].taps
        taps.append(mine)
        restore.callback(taps.remove, mine)
        yield


def _open(stream: _Stream, restore: ExitStack) -> None:
    """Lead the model's attention through the stream, until what ``restore`` is told is undone."""
    model, heads = stream.encoder.model, stream.encoder.heads
    restore.callback(model.register_forward_pre_hook(stream.start).remove)
    restore.callback(model.register_forward_hook(stream.check_all_seen).remove)
    if getattr(model, "_supports_attention_backend", False):
        restore.callback(model.set_attn_implementation, model.config._attn_implementation)
        model.set_attn_implementation(INTERFACE)
        return

    def before_dropout(_: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        probabilities = stream.through(args[0], stream.values)
        stream.values = None
        return (probabilities,)

    def after_values(_: nn.Module, args: object, output: Tensor) -> None:
        stream.values = output.unflatten(-1, (heads, -1)).transpose(1, 2)

    for module in with_dropout(model):
        restore.callback(module.dropout.register_forward_pre_hook(before_dropout).remove)
        linear = (getattr(module, name, None) for name in VALUE_PROJECTIONS)
        projection = next((part for part in linear if isinstance(part, nn.Linear)), None)
        if projection is not None:
            restore.callback(projection.register_forward_hook(after_values).remove)


def with_dropout(model: nn.Module) -> list[nn.Module]:
    """Self-attention modules that apply an ``nn.Dropout`` to their probabilities, in layer order."""
    named = (m for m in model.modules() if "SelfAttention" in type(m).__name__)
    return [m for m in named if isinstance(getattr(m, "dropout", None), nn.Dropout)]


def pass_by(encoder: Encoder) -> None:
    """Count a layer that stands aside in this pass (:mod:`helpers.layers`) as seen."""
    if (stream := _STREAMS.get(id(encoder.model.config))) is not None:
        stream.layer += 1


def _attend(
    module: nn.Module,
    query: Float[Tensor, "batch head query dim"],
    key: Float[Tensor, "batch group key dim"],
    value: Float[Tensor, "batch group key dim"],
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **others: object,
) -> tuple[Tensor, Tensor]:
    """Eager attention, softmax(QKᵀ·scaling + mask)·V, with the taps between the softmax and V.

    Where several query heads share a key head ("grouped queries"), each query head has a map of its own.
    """
    if terms := [name for name in FURTHER_TERMS if others.get(name) is not None]:
        name = _STREAMS[id(module.config)].encoder.name
        raise TapError(f"{name!r} adds {', '.join(terms)} to its scores, so its family cannot be tapped.")
    if (group := query.shape[1] // key.shape[1]) > 1:
        key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)
    scores = query @ key.transpose(-2, -1)
    scores *= query.shape[-1] ** -0.5 if scaling is None else scaling
    if attention_mask is not None:
        scores += attention_mask
    probabilities = scores.softmax(-1, dtype=torch.promote_types(torch.float32, query.dtype)).to(query.dtype)
    probabilities = _STREAMS[id(module.config)].through(probabilities, value)
    probabilities = nn.functional.dropout(probabilities, p=dropout, training=module.training)
    return (probabilities @ value).transpose(1, 2).contiguous(), probabilities


AttentionInterface.register(INTERFACE, _attend)
AttentionMaskInterface.register(INTERFACE, eager_mask)


#: ``function(maps, text)``: maps [layer, head, query, key] of one text without padding -> an array, or a dict of arrays.
Function = Callable[..., Any]

#: Bytes of attention maps that exist at a time, those of one batch; a single text may need more. Eight times as many take a fifth longer:
#: those of a layer would not stay in a processor's cache.
MOST_MAPS = 32 << 20
#: Texts that are measured, kept and sent to other processes together.
PART = 96


def measure(
    encoder: Encoder,
    texts: Sequence[Any],
    function: Function,
    *,
    units: Literal["tokens", "words"] = "tokens",
    longest: int | None = None,
    values: bool = False,
    shuffled: bool = False,
    seed: int = 0,
) -> list[Any]:
    """What a function makes of the attention maps of each text: one array, or dict of arrays, a text, in the order of the texts.

    Texts run through the encoder in batches of like length, with a progress bar; the maps of no more than one batch exist at a time.
    Where that is done is said by :func:`helpers.parallel.use`.

    Args:
        texts: texts, lists of words, pairs of either, or records that hold them (:class:`helpers.corpora.records.Segment`, or ``.words``).
        function: called as ``function(maps, text)`` with maps [layer, head, query, key] and :class:`helpers.tokens.EncodedText`; may be
            defined in a notebook.
        units: what the maps' queries and keys are; of ``"words"`` special tokens are left out (:func:`helpers.tokens.by_word`).
        longest: cut texts to so many tokens, or to the model's limit if that is less (default: longer ones are refused).
        values: call the function as ``function(maps, text, values)`` with the vectors that the weights multiply,
            [layer, head, token, dimension].
        shuffled: give the function the control's maps, in which each head's scores are shuffled (:mod:`helpers.controls`).
        seed: of the shuffling.

    Raises:
        TooLong: for a text that is longer than the model allows, where ``longest`` is not given.
        TapError: where ``values`` are wanted and the family does not show them.
    """
    how = {"units": units, "longest": longest, "values": values, "shuffled": shuffled, "seed": seed}
    pieces = [(start, texts[start : start + PART]) for start in range(0, len(texts), PART)]
    results: list[Any] = []
    with tqdm(total=len(texts), desc=encoder.label, unit=" texts") as bar:
        for arrays in parallel.each(encoder, _part, pieces, function, how):
            results += arrays
            bar.update(len(arrays))
    kinds = [", ".join(sorted(array)) if isinstance(array, dict) else "one array" for array in results]
    other = next((number for number, kind in enumerate(kinds) if kind != kinds[0]), 0)
    if other:
        same = "The function must return the same of every text"
        raise ValueError(f"{same}: of the first {kinds[0]}, of text {other} {kinds[other]}.")
    return results


def _part(encoder: Encoder, part: tuple[int, Sequence[Any]], function: Function, how: Mapping[str, Any]) -> list[Any]:
    """What :func:`measure`, so asked, finds for some of the texts, which are numbered from the part's first."""
    (first, texts), longest = part, how["longest"]
    inputs = [t.texts if isinstance(t, Segment) else list(t.words) if hasattr(t, "words") else t for t in texts]
    cells = MOST_MAPS // (4 * encoder.layers * encoder.heads)
    cut = {"max_length": longest, "truncate": longest is not None, "cells": cells, "batch_size": 32}
    results: list[Any] = [None] * len(texts)
    for batch in batches(encoder, inputs, first=first, **cut):
        layers = _seen(encoder, batch)
        if how["values"] and any(vectors is None for _, vectors in layers):
            raise TapError(f"{encoder.name!r} does not show its value vectors, so they have no length here.")
        for row, number in enumerate(batch.index):
            text = EncodedText.of(batch, row, texts[number - first])
            length = len(text.tokens)
            with torch.inference_mode():
                maps = torch.stack([weights[row, :, :length, :length] for weights, _ in layers])
                if how["shuffled"]:
                    maps = controls.shuffled_maps(maps, number, how["seed"])
                if how["units"] == "words":
                    maps = by_word(maps, text)
                given = [maps, text]
                if how["values"]:
                    given.append(torch.stack([vectors[row, :, :length] for _, vectors in layers]))
                results[number - first] = _as_arrays(function(*given))
        layers.clear()  # before the next batch's maps exist
    # side by side: small arrays that stay where they were made keep the memory between them from use
    return deepcopy(results)


class _AllSeen(Exception):
    """A pass has shown all of its maps."""


def _seen(encoder: Encoder, batch: Batch) -> list[tuple[Tensor, Tensor | None]]:
    """Attention maps [batch, head, query, key] and values of a batch, layer by layer; what the last layer makes of them is left out."""
    seen: list[tuple[Tensor, Tensor | None]] = []

    def observe(_: int, weights: Tensor, values: Tensor | None) -> None:
        seen.append((weights, values))
        if len(seen) == encoder.layers:
            raise _AllSeen

    with suppress(_AllSeen), torch.inference_mode(), tap(encoder, observe=observe):
        encoder.model(**batch.inputs)
    return seen


def _as_arrays(result: Any) -> Any:
    if isinstance(result, Mapping):
        return {name: _as_arrays(value) for name, value in result.items()}
    try:
        return result.cpu().numpy() if isinstance(result, Tensor) else np.asarray(result)
    except ValueError as error:
        raise ValueError(
            "The function must return numbers or arrays, or a dict of them. A sum and its count have one shape: "
            "torch.stack([sums, torch.full_like(sums, count)])."
        ) from error


def maps(encoder: Encoder, batch: Batch) -> Float[Tensor, "layer batch head query key"]:
    """All attention maps of one small batch, for pictures and worked examples."""
    return torch.stack([weights.cpu() for weights, _ in _seen(encoder, batch)])


def zero(heads: Iterable[tuple[int, int]]) -> Editor:
    """Editor that sets all weights of the named (layer, head) pairs, from 0, to zero."""
    return _only(heads, torch.zeros_like)


def uniform(heads: Iterable[tuple[int, int]], mask: Tensor) -> Editor:
    """Editor that gives each of an input's n real tokens the weight 1/n in the named (layer, head) pairs, from 0.

    Args:
        mask: [batch, length], true at real tokens (special ones included), as ``batch.mask``.
    """
    weights = mask.float() / mask.float().sum(-1, keepdim=True)
    return _only(heads, lambda p: weights[:, None, None].to(p.dtype).expand_as(p))


def _only(heads: Iterable[tuple[int, int]], change: Callable[[Tensor], Tensor]) -> Editor:
    chosen = list(heads)

    def edit(layer: int, probabilities: Tensor) -> Tensor:
        own = [head for at, head in chosen if at == layer]
        edited = probabilities.clone()
        edited[:, own] = change(probabilities[:, own])
        return edited

    return edit


OUTPUT_PROJECTION = re.compile(
    r"(?!.*bottleneck)(^|.*\.)(attention|attn|self_attn)\.(output\.dense|out_lin|dense|o|Wo|o_proj|out_proj)"
)


def output_projections(encoder: Encoder) -> list[nn.Linear]:
    """For each layer the linear map that the outputs of all heads go through.

    With d numbers a head, columns ``h * d`` to ``(h + 1) * d`` of its weight (heads from 0) belong to head h.

    Raises:
        TapError: for a family in which it cannot be found.
    """
    named = encoder.model.named_modules()
    linear = [m for name, m in named if isinstance(m, nn.Linear) and OUTPUT_PROJECTION.fullmatch(name)]
    if not linear or encoder.layers % len(linear):
        raise TapError(
            f"{encoder.name!r} ({type(encoder.model).__name__}): {len(linear)} output maps of the attention were found "
            f"for {encoder.layers} layers, so value vectors cannot be followed through them; this family needs its "
            "name for that map in helpers.attention.OUTPUT_PROJECTION."
        )
    return [linear[layer * len(linear) // encoder.layers] for layer in range(encoder.layers)]  # ALBERT's layers share
