"""Switching heads off: each head alone, each layer, with what these have in common computed once."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from helpers import attention, tokens
from helpers.chapters.head_importance.jobs import (
    Heads,
    Job,
    Scored,
    balance,
    combine,
    count,
    outcomes,
    p_values,
    significant,
    visible,
)
from helpers.encoders import Encoder, EncoderError
from helpers.layers import layers, standing_aside
from helpers.tasks import Asked


def switched_off(encoder: Encoder, asked: Asked, heads: Heads, *, even: bool = False) -> Float[np.ndarray, "row 5"]:
    """Outcomes of one batch with the weights of some heads at zero, or all 1/n: an ordinary forward pass under an editor."""
    edit = attention.uniform(heads, asked.batch.mask) if even else attention.zero(heads)
    with torch.inference_mode(), attention.tap(encoder, edit=edit):
        return outcomes(encoder, encoder.model(**asked.batch.inputs).last_hidden_state, asked)


def variants(layer: int, heads: int) -> list[list[tuple[int, int]]]:
    """What is switched off in one layer: each head alone, and at last all of them."""
    return [*([(layer, head)] for head in range(heads)), [(layer, head) for head in range(heads)]]


class Sweep:
    """All removals from one batch, layer by layer, sharing what they have in common.

    A first pass keeps what enters each layer and the contributions of its heads. To switch off head h of layer ℓ its
    contribution o_h W_O is taken from the sum z that the layer's attention adds, and only what lies above is
    computed, for several heads at a time as one large batch; the layers below stand aside. The model's own
    forward pass is used throughout, so whatever a family does before, between and after its layers stays as it is.

    Where a head's weights are made ``even`` instead, its contribution is exchanged for that of the mean of its values
    over the input's tokens.
    """

    def __init__(self, encoder: Encoder, asked: Asked, *, rows: int = 64, even: bool = False) -> None:
        self.encoder, self.asked = encoder, asked
        self.instead: list[
            Tensor
        ] = []  # for each layer what the heads give when they are even, [row, token, features]
        self.at_once = max(1, rows // len(asked.example))
        self.layers, self.projections = layers(encoder), attention.output_projections(encoder)
        self.calls: list[tuple[tuple, dict]] = []
        with torch.inference_mode(), ExitStack() as hooks:
            for layer in self.layers:
                keep = layer.register_forward_pre_hook(lambda _, a, k: self.calls.append((a, k)), with_kwargs=True)
                hooks.callback(keep.remove)
            if even:
                hooks.enter_context(attention.tap(encoder, observe=self._keep_means))
            hidden = encoder.model(**asked.batch.inputs).last_hidden_state
            self.whole = outcomes(encoder, hidden, asked)

    def _keep_means(self, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        """The mean value of each head over an input's real tokens, heads side by side."""
        assert values is not None, "sharing() has looked"
        mask = self.asked.batch.mask.to(values.dtype)
        mean = torch.einsum("bn,bhnd->bhd", mask / mask.sum(-1, keepdim=True), values)
        self.instead.append(mean.flatten(1)[:, None])

    def layer(self, layer: int) -> Float[np.ndarray, "variant row 5"]:
        """Outcomes with each of :func:`variants` switched off."""
        tried = np.zeros((self.encoder.heads + 1, self.encoder.heads))
        tried[:-1], tried[-1] = np.eye(self.encoder.heads), 1  # variant × head: 1 is off
        parts = np.split(tried, range(self.at_once, len(tried), self.at_once))
        return np.concatenate([self._run(layer, torch.from_numpy(part).float()) for part in parts])

    @torch.inference_mode()
    def _run(self, layer: int, off: Float[Tensor, "variant head"]) -> Float[np.ndarray, "variant row 5"]:
        many = repeated(self.asked, len(off))

        def without(module: nn.Linear, inputs: tuple[Tensor], z: Tensor) -> Float[Tensor, "variant row token width"]:
            gone = inputs[0] - self.instead[layer] if self.instead else inputs[0]
            return z - contributions(gone, module.weight, off.to(z))

        args, kwargs = self.calls[layer]
        hook = self.projections[layer].register_forward_hook(without)
        try:
            made = self.layers[layer](*args, **kwargs)
        finally:
            hook.remove()
        made = (made[0].flatten(0, 1), *made[1:]) if isinstance(made, tuple) else made.flatten(0, 1)
        with standing_aside(self.encoder, self.layers[: layer + 1], lambda: made):
            hidden = self.encoder.model(**many.batch.inputs).last_hidden_state
        return outcomes(self.encoder, hidden, many).reshape(len(off), len(self.asked.example), 5)


def contributions(
    joined: Float[Tensor, "row token features"],
    weight: Float[Tensor, "width features"],
    off: Float[Tensor, "variant head"],
) -> Float[Tensor, "variant row token width"]:
    """Σ_h o_h W_O over the heads that are off, for each variant; each head goes through the output map once.

    Args:
        joined: the outputs o of all heads, side by side.
        weight: of the output map.
        off: 1 where a head is off.
    """
    heads = off.shape[1]
    shares = weight.view(len(weight), heads, -1).permute(1, 2, 0)  # [head, d, width]
    each = joined.unflatten(-1, (heads, -1)).flatten(0, 1).transpose(0, 1)  # [head, row × token, d]
    found = (off @ (each @ shares).flatten(1)).view(len(off), *joined.shape[:2], len(weight))
    return found


def sharing(encoder: Encoder, *, even: bool = False) -> str:
    """Why this model's heads have to be switched off, or made ``even``, in one whole pass each; empty where the fast sweep works."""
    try:
        _try(encoder, layers(encoder)[0], even)
    except EncoderError as error:
        return f"{error} Each head takes a whole forward pass; the numbers are the same."
    return ""


def _try(encoder: Encoder, first: nn.Module, even: bool) -> None:
    """Whether a layer takes a batch of variants, [variant, row, token, width] (X-MOD's, for one, looks for its rows in front), and
    whether heads that are to be even show their values (DeBERTa's do not)."""
    calls: list[tuple[tuple, dict]] = []
    hidden: list[bool] = []
    keep = first.register_forward_pre_hook(lambda _, a, k: calls.append((a, k)), with_kwargs=True)
    with torch.inference_mode():
        with attention.tap(encoder, observe=lambda _, __, values: hidden.append(values is None)):
            encoder.model(**tokens.encode(encoder, ["A short one."]).inputs)
        keep.remove()
        if even and any(hidden):
            raise EncoderError(f"{encoder.name!r} does not show the values of its heads.")
        args, kwargs = calls[0]
        hook = attention.output_projections(encoder)[0].register_forward_hook(lambda _, __, z: z.expand(2, *z.shape))
        try:
            first(*args, **kwargs)
        except Exception as error:  # whatever a family does with the first dimension
            raise EncoderError(f"The layers of {encoder.name!r} take no batch of variants ({error}).") from None
        finally:
            hook.remove()


def repeated(asked: Asked, times: int) -> Asked:
    """The same inputs several times over, as one batch."""
    batch = asked.batch
    changed = {f.name: getattr(batch, f.name) for f in fields(batch)}
    changed = {k: v.repeat(times, 1) if isinstance(v, Tensor) else v for k, v in changed.items()}
    changed |= {k: getattr(batch, k) * times for k in ("index", "tokens", "words", "cut")}
    targets = asked.targets.repeat(times, *(1,) * (asked.targets.dim() - 1))
    return Asked(asked.task, tokens.Batch(**changed), targets, asked.example * times, asked.spans * times)


@dataclass(frozen=True, eq=False)
class Removals:
    """What every example's outcome is with each head, and each layer, switched off.

    Attributes:
        whole: the untouched model, (example,).
        heads: (layer, head, example).
        layers: all heads of a layer at once, (layer, example).
    """

    whole: Scored
    heads: Scored
    layers: Scored

    def on(self, chosen: Sequence[int]) -> "Removals":
        """The same for some of the examples."""
        return Removals(self.whole.on(chosen), self.heads.on(chosen), self.layers.on(chosen))


def remove_each(task: Job, *, even: bool = False, fast: bool = True) -> Removals:
    """Switch off each head alone, then all heads of each layer, and score every example each time.

    Args:
        even: give the head's weights 1/n, as Kovaleva et al. 2019 do, in the place of 0.
        fast: share what removals from a layer have in common, where the family allows it (:func:`sharing`).
    """
    rows = task.rows if fast and not sharing(task.encoder, even=even) else None
    found = [(asked.example, *one) for asked, one in task.each(_remove_each, rows, even, doing="each head")]
    whole = combine(task, [(numbers, plain) for numbers, plain, _ in found])
    both = combine(task, [(numbers, removed) for numbers, _, removed in found])
    return Removals(whole, both[:, :-1], both[:, -1])


def _remove_each(
    encoder: Encoder, asked: Asked, rows: int | None, even: bool
) -> tuple[Float[np.ndarray, "row 5"], Float[np.ndarray, "layer variant row 5"]]:
    """Outcomes of one batch with the whole model and with each of :func:`variants`; ``rows`` as in :class:`Sweep`, if that works."""
    layers = range(encoder.layers)
    if rows is not None:
        shared = Sweep(encoder, asked, rows=rows, even=even)
        return shared.whole, np.stack([shared.layer(n) for n in layers])
    each = [[switched_off(encoder, asked, heads, even=even) for heads in variants(n, encoder.heads)] for n in layers]
    return switched_off(encoder, asked, ()), np.array(each)


def costs(removed: Removals, name: str, *, seed: int = 0) -> dict[str, Any]:
    """What switching off each head (layer, head), and each layer, costs: with intervals, p-values, what stands, and counts;
    of heads also the ``balance`` of those that help and hurt, and the smallest cost that would be ``visible``."""
    found: dict[str, Any] = {}
    for what in ("heads", "layers"):
        cost = getattr(removed, what).cost(removed.whole, name, seed=seed)
        p = np.asarray(p_values(cost))
        found[what] = {"cost": cost, "p": p, "significant": significant(p), "count": count(cost, p)}
        if what == "heads":
            found[what] |= {"balance": balance(cost), "visible": visible(cost)}
    return found
