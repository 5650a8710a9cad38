"""Forward passes that share layers: what is done to one layer leaves all that lies below it as it was.

:func:`batched_interventions` runs many passes over one batch, each edited in its own way, and computes once what several of them
have in common. The model's own forward pass is used throughout, so whatever a family does before, between and after its layers stays
as it is.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from helpers import attention
from helpers.encoders import Encoder, EncoderError
from helpers.tokens import Batch


def layers(encoder: Encoder) -> list[nn.Module]:
    """The model's layers, each with its own output map, in order.

    Raises:
        EncoderError: for a family whose layers are not modules of their own, as ALBERT's.
    """
    projections = attention.output_projections(encoder)
    for module in encoder.model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == encoder.layers:
            owns = [any(p is m for m in layer.modules()) for layer, p in zip(module, projections, strict=True)]
            if all(owns) and len({id(p) for p in projections}) == encoder.layers:
                return list(module)
    raise EncoderError(f"The layers of {encoder.name!r} ({type(encoder.model).__name__}) are no list of modules.")


#: What is done at a layer: equal where two passes do the same, None where nothing is done.
Step = Hashable | None


def batched_interventions(
    encoder: Encoder,
    batch: Batch,
    paths: Sequence[Sequence[Step]],
    edit: Callable[[int, Step, Tensor], Tensor],
    *,
    at_once: int = 8,
) -> Float[Tensor, "pass batch length width"]:
    """The last hidden states of many passes over a batch, each with its own edits. ::

        paths = [[None, None, None], [None, "a", None], [None, "a", "b"]]
        plain, one, two = batched_interventions(encoder, batch, paths, edit)

    Layer after layer, passes that have done the same so far are one; those that differ go through the layer side by side.

    Args:
        paths: for each pass what is done at each layer, [pass][layer].
        edit: ``edit(layer, step, probabilities)``, called for the probabilities [batch, head, query, key] of a pass where its
            step is not None.
        at_once: passes that go through a layer together: on a processor few, so that they stay in its cache.
    """
    running: list[Sequence[Step]] = []  # the paths of the passes that go side by side

    def every(layer: int, probabilities: Tensor) -> Tensor:
        steps = [path[layer] for path in running]
        if all(step is None for step in steps):
            return probabilities
        own = zip(steps, probabilities.chunk(len(steps)), strict=True)
        return torch.cat([p if step is None else edit(layer, step, p) for step, p in own])

    def run(several: Sequence[Sequence[Step]]) -> Tensor:
        running[:] = several
        inputs = {name: tensor.repeat(len(several), 1) for name, tensor in batch.inputs.items()}
        return encoder.model(**inputs).last_hidden_state

    with torch.inference_mode(), attention.tap(encoder, edit=every):
        try:
            modules = layers(encoder)
        except EncoderError:
            return torch.stack([run([path]) for path in paths])
        made: list[Any] = [None]
        where = [0] * len(paths)  # for each pass its place among the distinct ones
        with _one_layer(encoder, modules) as now:
            for layer in range(len(modules)):
                keys = [(before, path[layer]) for before, path in zip(where, paths, strict=True)]
                distinct = dict(zip(keys, paths, strict=True))  # one path for all that have done the same so far
                passes, below, made = [*distinct.items()], made, []
                for n in range(0, len(passes), at_once):
                    part = passes[n : n + at_once]
                    now.update(layer=layer, made=_joined([below[before] for (before, _), _ in part]))
                    last = run([path for _, path in part])
                    made += _apart(last if layer == len(modules) - 1 else now["made"], len(part))
                place = {key: n for n, key in enumerate(distinct)}
                where = [place[key] for key in keys]
        return torch.stack([made[n] for n in where])


@contextmanager
def _one_layer(encoder: Encoder, modules: Sequence[nn.Module]) -> Iterator[dict[str, Any]]:
    """As long as this is open, a pass computes the layer ``"layer"`` of the mapping that it gives: those below hand on what is ``"made"``
    before the pass, those above what this one makes, which is ``"made"`` after it.
    """
    now: dict[str, Any] = {}

    def forward(layer: int, own: Callable[..., Any], *given: Any, **named: Any) -> Any:
        if layer == now["layer"]:
            now["made"] = own(*given, **named)
        else:
            attention.pass_by(encoder)
        return now["made"]

    try:
        for layer, module in enumerate(modules):
            module.forward = partial(forward, layer, module.forward)
        yield now
    finally:
        for module in modules:
            module.__dict__.pop("forward", None)


def _joined(made: Sequence[Any]) -> Any:
    """Results of a layer as those of one larger batch."""
    if isinstance(made[0], tuple):
        return tuple(map(_joined, zip(*made, strict=True)))
    return torch.cat(list(made)) if isinstance(made[0], Tensor) and made[0].dim() > 1 else made[0]


def _apart(made: Any, parts: int) -> list[Any]:
    """The result of a layer for a larger batch as those of its parts, of equal size."""
    if isinstance(made, tuple):
        return list(zip(*(_apart(part, parts) for part in made), strict=True))
    return list(made.chunk(parts)) if isinstance(made, Tensor) and made.dim() > 1 else [made] * parts
