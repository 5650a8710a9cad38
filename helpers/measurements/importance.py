"""What a task loses without some heads, and models whose heads are cut out of the weights (Michel et al. 2019; Kovaleva et al. 2019).

::

    whole, without = importance.without(encoder, examples, [[], [(0, 1), (3, 4)]])
    whole, heads, layers = importance.one_by_one(encoder, examples)
    smaller = importance.cut_out(encoder, [(0, 1), (3, 4)])

Passes without different heads share all that lies below these (:func:`helpers.tasks.rows_under_edits`).
"""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from helpers import attention, tasks
from helpers.encoders import Encoder, EncoderError
from helpers.inputs import Asked
from helpers.layers import layers
from helpers.measurements.one_head import PROJECTIONS
from helpers.tasks import Example

Heads = Iterable[tuple[int, int]]
"""Pairs (layer, head), from 0."""


@dataclass(frozen=True, eq=False)
class Results:
    """Per example, for each thing that was tried.

    Attributes:
        score: [tried, example], share of hidden words restored (mlm), F1 of the answer (qa) or of the phrases (keywords), right or
            wrong (pairs).
        loss: [tried, example], nats.
        weights: [example], what a mean of the score weighs an example with: number of hidden words (mlm), else 1.
    """

    score: Float[np.ndarray, "... example"]
    loss: Float[np.ndarray, "... example"]
    weights: Float[np.ndarray, "example"]

    def __getitem__(self, where: Any) -> "Results":
        """Some of what was tried, all examples."""
        return replace(self, score=self.score[where], loss=self.loss[where])

    def on(self, chosen: Sequence[int]) -> "Results":
        """All that was tried, some of the examples."""
        return Results(self.score[..., chosen], self.loss[..., chosen], self.weights[chosen])

    def mean(self) -> Any:
        """Mean score, [tried]."""
        return np.average(self.score, axis=-1, weights=self.weights)


def without(
    encoder: Encoder,
    examples: Sequence[Example],
    sets: Sequence[Heads],
    *,
    even: bool = False,
    longest: int | None = None,
    seed: int = 0,
) -> Results:
    """Results without each of several sets of heads, [set]: their weights are zero.

    Args:
        even: make the weights 1/n instead, as Kovaleva et al. 2019 do.
        longest: cut inputs to so many tokens.
        seed: of the hidden words (mlm).
    """
    numbers, off = range(encoder.layers), [sorted(map(tuple, heads)) for heads in sets]
    passes = [[tuple(at for at in heads if at[0] == n) or None for n in numbers] for heads in off]
    # on a processor what goes through a layer should stay in its cache
    options = {"batch_size": 1 if encoder.device.type == "cpu" else 16, "max_length": longest, "seed": seed}
    by_set = tasks.rows_under_edits(encoder, examples, passes, _even if even else _zero, **options)
    score = [[next(iter(row.values.values())) for row in of_set] for of_set in by_set]
    loss = [[row.loss for row in of_set] for of_set in by_set]
    return Results(np.array(score), np.array(loss), np.array([row.weight for row in by_set[0]]))


def _zero(asked: Asked, layer: int, off: Sequence[tuple[int, int]], weights: Tensor) -> Tensor:
    return attention.zero(off)(layer, weights)


def _even(asked: Asked, layer: int, off: Sequence[tuple[int, int]], weights: Tensor) -> Tensor:
    return attention.uniform(off, asked.batch.mask)(layer, weights)


def one_by_one(
    encoder: Encoder, examples: Sequence[Example], *, longest: int | None = None, seed: int = 0
) -> tuple[Results, Results, Results]:
    """Results of the whole model, without each head, [layer, head], and without each layer's heads, [layer]; options as of :func:`without`."""
    layers, heads = encoder.layers, encoder.heads
    single = [[place] for place in np.ndindex(layers, heads)]
    whole_layers = [[(layer, head) for head in range(heads)] for layer in range(layers)]
    results = without(encoder, examples, [[], *single, *whole_layers], longest=longest, seed=seed)
    tried = np.arange(1, 1 + layers * heads).reshape(layers, heads)
    return results[0], results[tried], results[-layers:]


class PruneError(EncoderError):
    """The heads of this family cannot be cut out."""


MAPS = (*PROJECTIONS, ("query_proj", "key_proj", "value_proj"), ("Wqkv",))
"""What families call the maps to queries, keys and values."""


class NoHeads(nn.Module):
    """Stands where a layer's attention was that has lost all of its heads: zeros, and the output map's bias if that went as well."""

    def __init__(self, width: int, bias: Tensor | None = None) -> None:
        super().__init__()
        self.width = width
        self.bias = None if bias is None else nn.Parameter(bias.clone(), requires_grad=False)

    def forward(self, hidden_states: Tensor, *_: object, **__: object) -> tuple[Tensor, None]:
        nothing = hidden_states.new_zeros(*hidden_states.shape[:-1], self.width)
        return (nothing if self.bias is None else nothing + self.bias), None


def cut_out(encoder: Encoder, heads: Heads) -> Encoder:
    """A copy of the encoder without the parameters of some heads: their rows of Q, K, V and their columns of O are gone.

    It answers as the model with these heads switched off does. It cannot be tapped, since its layers differ in their number of heads.

    Raises:
        PruneError: for a family whose heads share their parameters (ALBERT, DeBERTa) or keep them in another way.
    """
    gone: dict[int, set[int]] = {}
    for layer, head in heads:
        if not (0 <= layer < encoder.layers and 0 <= head < encoder.heads):
            raise PruneError(f"{encoder.name!r} has no head ({layer}, {head}), counted from 0.")
        gone.setdefault(layer, set()).add(head)
    smaller = replace(encoder, model=copy.deepcopy(encoder.model), sha256=f"{encoder.sha256}-pruned")
    try:
        own = layers(smaller)
    except EncoderError as error:
        raise PruneError(f"{error} Its heads cannot be cut out one by one.") from None
    if any("Disentangled" in type(module).__name__ for layer in own for module in layer.modules()):
        raise PruneError(f"{encoder.name!r}: position and content share the maps of a head; it cannot be cut out.")
    outputs = attention.output_projections(smaller)
    for layer, lost in gone.items():
        _shrink(own[layer], outputs[layer], [h for h in range(encoder.heads) if h not in lost], encoder.heads)
    return smaller


def _shrink(layer: nn.Module, output: nn.Linear, kept: Sequence[int], heads: int) -> None:
    """Cut one layer's attention down to the heads ``kept``."""
    named = [
        (m, names) for m in layer.modules() for names in MAPS if isinstance(getattr(m, names[0], None), nn.Linear)
    ]
    if not named:
        raise PruneError(f"No query, key and value maps were found in a {type(layer).__name__}.")
    module, names = named[0]
    width = output.in_features // heads
    columns = torch.tensor([h * width + i for h in kept for i in range(width)], dtype=torch.long)
    _keep(output, columns=columns)
    if not kept:
        inside = any(part is output for part in module.modules())  # then the output map goes as well
        path = next(name for name, part in layer.named_modules() if part is module)
        layer.set_submodule(path, NoHeads(output.out_features, output.bias) if inside else NoHeads(0))
        return
    for name in names:
        blocks = 3 if name == "Wqkv" else 1
        _keep(getattr(module, name), torch.cat([block * heads * width + columns for block in range(blocks)]))
    counts = dict.fromkeys(("num_attention_heads", "n_heads", "num_heads"), len(kept))
    for name, count in (counts | {"all_head_size": len(kept) * width}).items():
        if hasattr(module, name):
            setattr(module, name, count)
    if names[0] == "q":  # MPNet hands every layer a table of distances for all heads
        chosen = torch.tensor(kept)
        module.register_forward_pre_hook(
            lambda _, args, named: ((*args[:2], args[2][:, chosen.to(args[2].device)], *args[3:]), named),
            with_kwargs=True,
        )


def _keep(linear: nn.Linear, rows: Any = slice(None), columns: Any = slice(None)) -> None:
    """Leave a map only some of its rows and columns."""
    linear.weight = nn.Parameter(linear.weight[rows][:, columns], requires_grad=False)
    if linear.bias is not None:
        linear.bias = nn.Parameter(linear.bias[rows].clone(), requires_grad=False)
    linear.out_features, linear.in_features = linear.weight.shape
