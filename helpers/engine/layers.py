"""Forward passes that begin in the middle: what is done to one layer leaves all that lies below it as it was. ::

    first = FirstPass(encoder)
    with attention.tap(encoder), first.kept():
        encoder.model(**batch.inputs)
    with attention.tap(encoder, edit=edit), first.above(3):
        encoder.model(**batch.inputs)

The second pass computes layers 3, 4, … only, with the same numbers bit for bit if ``edit`` changes nothing below them. The model's own
forward pass is used throughout, so whatever a family does before, between and after its layers stays as it is.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from helpers.engine import attention
from helpers.engine.encoders import Encoder, EncoderError


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


@contextmanager
def standing_aside(encoder: Encoder, below: Sequence[nn.Module], made: Any) -> Iterator[None]:
    """Passes in which some layers, the lowest ones, compute nothing and hand on what the last of them once made."""

    def stand_aside(*_: object, **__: object) -> Any:
        attention.pass_by(encoder)
        return made

    try:
        for layer in below:
            layer.forward = stand_aside
        yield
    finally:
        for layer in below:
            layer.__dict__.pop("forward", None)


@dataclass(eq=False)
class FirstPass:
    """What the layers made of a batch, for further passes over the same batch that begin above some of them.

    Where a family's layers are no modules of their own, every pass is a whole one.
    """

    encoder: Encoder
    made: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        try:
            self.layers = layers(self.encoder)
        except EncoderError:
            self.layers = []

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep what the layers make of the pass inside the ``with`` block."""
        with ExitStack() as hooks:
            for layer in self.layers:
                hooks.callback(layer.register_forward_hook(lambda _, __, made: self.made.append(made)).remove)
            yield

    @contextmanager
    def above(self, layer: int) -> Iterator[None]:
        """Passes that begin at a layer, from 0, with what entered it in the first pass."""
        with standing_aside(self.encoder, self.layers[:layer], self.made[layer - 1] if self.made else None):
            yield
