"""One pass of accumulators over batches, in parts: what chapters 03 and 05 to 14 measure with until they are functions of one text (:func:`helpers.attention.measure`)."""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor
from tqdm import tqdm

from helpers import controls
from helpers.attention import Editor, tap
from helpers.encoders import Encoder
from helpers.engine.accumulators import Additive
from helpers.tokens import Batch, Batches, Input

BatchObserver = Callable[[Batch, int, Tensor, Tensor | None], None]
"""``observer(batch, layer, probabilities, values)``: a chapter's accumulator, which keeps sums and never maps."""


def sweep(encoder: Encoder, batches: Iterable[Batch], *observers: BatchObserver, edit: Editor | None = None) -> None:
    """Run every batch through the encoder once and show each layer's attention to all observers."""
    for batch in batches:

        def show(layer: int, probabilities: Tensor, values: Tensor | None, batch: Batch = batch) -> None:
            for observer in observers:
                observer(batch, layer, probabilities, values)

        with torch.inference_mode(), tap(encoder, edit=edit), tap(encoder, observe=show):
            encoder.model(**batch.inputs)


def accumulate(
    encoder: Encoder,
    inputs: Sequence[Input],
    *observers: BatchObserver,
    what: str,
    most: int | None = None,
    batch_size: int = 16,
) -> int:
    """One pass of observers over inputs, with a progress bar (:func:`sweep`).

    Args:
        what: the inputs in words, for the bar: "12 segments".
        most: tokens to cut an input to, or to the model's limit if that is less (default: longer ones are refused).

    Returns:
        how many inputs were cut.
    """
    cut = {"max_length": min(most, encoder.max_length), "overlong": "truncate"} if most else {}
    batches = Batches(encoder, inputs, batch_size=batch_size, **cut)
    sweep(encoder, tqdm(batches, desc=f"{encoder.name}: {what}"), *observers)
    return batches.truncated


class Shuffled(Additive):
    """An observer that sees every map shuffled, while the model goes on with its own: the control of what the observer measures.

    The observer itself is left as it is, with its results on it::

        trained, control = Observer(...), Observer(...)
        sweeps.sweep(encoder, batches, trained, Shuffled(control))
    """

    def __init__(self, observer: Callable[..., None], seed: int = 0) -> None:
        self.observer, self.seed = observer, seed

    def part(self, inputs: range) -> "Shuffled":
        return Shuffled(self.observer.part(inputs), self.seed)

    def attach(self, encoder: object) -> None:
        self.observer.attach(encoder)

    def absorb(self, part: "Shuffled") -> None:
        self.observer.absorb(part.observer)

    def __call__(self, batch: Batch, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        self.observer(batch, layer, controls.of_batch(batch, layer, probabilities, self.seed), values)
