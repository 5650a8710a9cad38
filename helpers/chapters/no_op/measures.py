"""Chapter 03: what is attention to tokens without content good for?

Four measurements around one hypothesis, that a head attends to [SEP] (here: mostly [CLS]) when it has nothing to do.
How the loss reacts to a weight (Clark et al. 2019, section 3.2, Figure 3); how long the vectors are that the weights
multiply (Kobayashi et al. 2020); where a head looks from words its function does not concern; and what happens when
the weights are taken away.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from helpers import adapters, attention, parallel, tasks
from helpers.encoders import Encoder, EncoderError
from helpers.engine import sweeps
from helpers.engine.accumulators import Additive, StreamingMean
from helpers.stats import Estimate
from helpers.tasks import IGNORED, Asked, Example
from helpers.tokens import WINDOW, Batch

KINDS = ("cls", "sep", "stop", "other")
"""Kinds of attended token: [CLS], [SEP], full stops and commas, everything else."""

MOST_TOKENS = 128  # Clark et al. 2019, section 3


def kinds(batch: Batch, asked: Asked | None = None) -> Float[Tensor, "batch key 4"]:
    """1 where a token is of a kind of :data:`KINDS`; each real token is of one kind, padding of none.

    Args:
        asked: the same batch as a question; a full stop or comma that is hidden there counts as another token.
    """
    hidden = asked is not None and asked.targets.shape == batch.ids.shape  # tasks on whole inputs hide nothing
    shown = batch.stop & (asked.targets == IGNORED) if hidden else batch.stop
    named = torch.stack([batch.cls, batch.sep & ~batch.cls, shown & ~batch.special], dim=-1)
    return torch.cat([named, (batch.mask & ~named.any(-1))[..., None]], dim=-1).float()


def ask(
    encoder: Encoder, examples: Sequence[Example], sums: Additive, *, seed: int, batch_size: int, doing: str
) -> None:
    """Show examples of at most 128 tokens with hidden words to ``sums.add``, in parts (:mod:`helpers.parallel`)."""
    size = batch_size * WINDOW
    starts = range(0, len(examples), size)
    pieces = ((start, examples[start : start + size]) for start in starts)
    parts = ((start, some, sums.part(range(start, start + len(some)))) for start, some in pieces)
    what = f"{encoder.name}: {doing}, {len(examples)} segments"
    measured = parallel.each(encoder, _ask_part, parts, seed, batch_size)
    for part in tqdm(measured, desc=what, total=len(starts)):
        sums.absorb(part)


def _ask_part(
    encoder: Encoder, part: tuple[int, Sequence[Example], Additive], seed: int, batch_size: int
) -> Additive:
    first, examples, sums = part
    longest = min(MOST_TOKENS, encoder.max_length)
    sums.attach(encoder)
    for asked in tasks.batches(encoder, examples, batch_size=batch_size, max_length=longest, seed=seed, first=first):
        sums.add(asked)
    return sums


def gradients(encoder: Encoder, asked: Asked, see: Callable[[int, Tensor, Tensor], None]) -> Float[Tensor, "batch"]:
    """Differentiate the loss with respect to every attention weight.

    What is differentiated is the *sum* of the examples' own losses: an example has no part in the loss of another, so
    each gets its own gradient, whatever else is in the batch.

    Args:
        see: called as ``see(layer, probabilities, gradient)``, both [batch, head, query, key], from the last layer
            down; no more than one layer's gradient exists at a time.

    Returns:
        each example's loss, see :func:`helpers.tasks.losses`.
    """

    def edit(layer: int, probabilities: Tensor) -> Tensor:
        if not probabilities.requires_grad:  # nothing below the first layer has a gradient
            probabilities = probabilities.detach().requires_grad_()
        shown = probabilities.detach()  # the hook must not hold on to the graph
        probabilities.register_hook(lambda gradient: see(layer, shown, gradient))
        return probabilities

    with torch.enable_grad(), attention.tap(encoder, edit=edit):
        loss = tasks.losses(encoder, asked)
        loss.sum().backward()
    return loss.detach()


def moved(
    probabilities: Float[Tensor, "batch head query key"], gradient: Float[Tensor, "batch head query key"]
) -> Float[Tensor, "batch head query key"]:
    """The gradient when the row still has to sum to 1: what a weight costs beyond the mean of its row.

    To first order the loss changes by this much per unit of weight that is moved to a token from all tokens of the
    row, from each in proportion to its own weight.
    """
    return gradient - (probabilities * gradient).sum(-1, keepdim=True)


@dataclass(frozen=True)
class Sensitivity:
    """How the loss reacts to attention weights, by kind of attended token (:data:`KINDS`).

    Attributes:
        gradient: mean of ``|∂L/∂α_ij|`` over the weights to tokens of a kind, (layer, head, kind), nats per unit of weight.
        moved: the same for :func:`moved`.
        share: share of attention that goes to a kind, (layer, head, kind).
        predicted: change of the loss if the weights to a kind vanished, to first order, -Σ α ∂L/∂α, (layer, head, kind).
        loss: of the untouched model, mean over segments.
        segments, tokens: how many segments, and how many hidden tokens.
    """

    gradient: Estimate
    moved: Estimate
    share: Estimate
    predicted: Estimate
    loss: Estimate
    segments: int
    tokens: int

    def ratio(self, of: str = "gradient") -> Estimate:
        """Mean over a layer's heads for each kind, as a multiple of that for other tokens, (layer, kind)."""
        return getattr(self, of).mean(-2).map(over_other)


class GradientSums(Additive):
    """Sums of the gradients' sizes; shown to :func:`gradients` batch by batch.

    Args:
        documents: for each input, the number of its document (the unit of the bootstrap).
    """

    ADDED = ("sizes", "share", "predicted", "loss", "segments", "tokens")
    PER_INPUT = ("documents",)

    def __init__(self, encoder: Encoder, documents: Sequence[int], *, seed: int = 0) -> None:
        self.encoder, self.documents = encoder, documents
        layers, shape = encoder.layers, (encoder.layers, encoder.heads, len(KINDS))
        self.sizes = StreamingMean((*shape, 2), denominators=(layers, 1, len(KINDS), 1), seed=seed)
        self.share, self.predicted = (StreamingMean(shape, denominators=(layers, 1, 1), seed=seed) for _ in range(2))
        self.loss = StreamingMean((), seed=seed)
        self.segments = self.tokens = 0

    def add(self, asked: Asked) -> None:
        """Run a batch forwards and backwards and add what it shows."""
        self._numbers = [self.documents[i] for i in asked.example]
        self._kinds, self._real = kinds(asked.batch, asked), asked.batch.mask.float()
        self.loss.add(self._numbers, numpy_of(gradients(self.encoder, asked, self._see)), np.ones(len(self._numbers)))
        self.segments += len(self._numbers)
        self.tokens += int((asked.targets != IGNORED).sum())

    def _see(self, layer: int, probabilities: Tensor, gradient: Tensor) -> None:
        real = self._real[:, None, None]  # [batch, 1, 1, query], a row vector that adds up the attending tokens
        member = self._kinds[:, None]
        columns = {
            "gradient": real @ gradient.abs(),
            "moved": real @ moved(probabilities, gradient).abs(),
            "share": real @ probabilities,
            "predicted": -(real @ (probabilities * gradient)),
        }
        sums = {name: numpy_of((column @ member)[:, :, 0]) for name, column in columns.items()}
        queries, keys = numpy_of(self._real.sum(-1)), numpy_of(self._kinds.sum(-2))
        numbers, ones = self._numbers, np.ones((len(queries), 1, 1))
        both = np.stack([sums["gradient"], sums["moved"]], axis=-1)
        self.sizes.add(numbers, both, (queries[:, None] * keys)[:, None, :, None], at=(layer,))
        self.share.add(numbers, sums["share"], queries[:, None, None], at=(layer,))
        self.predicted.add(numbers, sums["predicted"], ones, at=(layer,))

    def result(self) -> Sensitivity:
        sizes, *others = (sums.estimate() for sums in (self.sizes, self.share, self.predicted, self.loss))
        return Sensitivity(sizes[..., 0], sizes[..., 1], *others, self.segments, self.tokens)


def sensitivity(encoder: Encoder, examples: Sequence[Example], *, seed: int = 0, batch_size: int = 16) -> Sensitivity:
    """Gradients of the loss on hidden words with respect to all attention weights of all examples.

    Args:
        encoder: loaded with ``task="mlm"``.
        examples: segments of two paragraphs, ``tasks.examples("mlm", ...)``; cut to 128 tokens.
        seed: of the hidden words and of the bootstrap over documents.
    """
    sums = GradientSums(encoder, [e.document for e in examples], seed=seed)
    ask(encoder, examples, sums, seed=seed, batch_size=batch_size, doing="gradients")
    return sums.result()


def untrained(encoder: Encoder, *, seed: int = 0) -> Encoder:
    """The same encoder with an output layer for hidden words that has learned nothing: what gradients show without any skill."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = adapters.new_head(encoder.model, "mlm")
    return replace(encoder, head=head.eval().requires_grad_(False).to(encoder.device))


def norms(
    values: Float[Tensor, "batch head key d"], output: Float[Tensor, "width features"]
) -> Float[Tensor, "batch head key"]:
    """Length of f(x_j) = v_j W_O for each head and token (Kobayashi et al. 2020).

    ‖v W‖² = v (W Wᵀ) vᵀ: the d × d products W Wᵀ of each head are enough, and ‖α f‖ = α ‖f‖ needs no vector for each
    pair of tokens.

    Args:
        values: v_j, bias included.
        output: weight of the layer's output map, heads side by side along ``features``.
    """
    shares = output.view(len(output), values.shape[1], -1)  # [width, head, d]
    products = torch.einsum("whd,whe->hde", shares, shares)
    return (values @ products * values).sum(-1).clamp_min(0).sqrt()


@dataclass(frozen=True)
class Norms:
    """Attention and attention times length, by kind of attended token (:data:`KINDS`).

    Attributes:
        share: share of attention α that goes to a kind, (layer, head, kind).
        weighted: mean over attending tokens of Σ_j ‖α_ij f(x_j)‖ over a kind, (layer, head, kind).
        joint: mean over attending tokens of ‖Σ_j α_ij f(x_j)‖ over a kind, (layer, head, kind): what is left when the
            kind's vectors are added up. Never larger than ``weighted``.
        norm: mean of ‖f(x_j)‖ over the tokens of a kind, (layer, head, kind).
        segments: how many were measured.
    """

    share: Estimate
    weighted: Estimate
    joint: Estimate
    norm: Estimate
    segments: int

    def ratio(self) -> Estimate:
        """Mean norm over a layer's heads for each kind, as a multiple of that of other tokens, (layer, kind)."""
        return self.norm.mean(-2).map(over_other)


class NormSums(Additive):
    """Sums for :class:`Norms`; an observer for :func:`helpers.engine.sweeps.sweep`."""

    ADDED = ("rows", "norm", "segments")
    PER_INPUT = ("documents",)

    def __init__(self, encoder: Encoder, documents: Sequence[int], *, seed: int = 0) -> None:
        self.documents = documents
        self.attach(encoder)
        layers, shape = encoder.layers, (encoder.layers, encoder.heads, len(KINDS))
        self.rows = StreamingMean((*shape, 3), denominators=(layers, 1, 1, 1), seed=seed)
        self.norm = StreamingMean(shape, denominators=(layers, 1, len(KINDS)), seed=seed)
        self.segments = 0

    def attach(self, encoder: Encoder) -> None:
        """Called where a part begins, with the encoder of the process it is in."""
        self.encoder = encoder
        self._output = [module.weight for module in attention.output_projections(encoder)]

    def __call__(self, batch: Batch, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        if values is None:
            raise EncoderError(f"{self.encoder.name!r} does not show its value vectors, so they have no length here.")
        if layer == 0:
            self._numbers = [self.documents[i] for i in batch.index]
            self._kinds, self._real = kinds(batch), batch.mask.float()
            self.segments += len(self._numbers)
        member, real, output = self._kinds[:, None], self._real[:, None, None], self._output[layer]
        length = norms(values, output)
        columns = (real @ probabilities)[:, :, 0]  # what each token receives from all attending ones
        parts = (values[..., None] * member[..., None, :]).flatten(-2)  # all kinds' vectors side by side: one product
        handed = (probabilities @ parts).unflatten(-1, (-1, len(KINDS)))
        joint = [(norms(handed[..., kind], output) * real[:, :, 0]).sum(-1) for kind in range(len(KINDS))]
        per_kind = [columns[:, :, None] @ member, (columns * length)[:, :, None] @ member]
        sums = torch.stack([*(p[:, :, 0] for p in per_kind), torch.stack(joint, -1)], dim=-1)
        queries, keys = self._real.sum(-1), self._kinds.sum(-2)
        self.rows.add(self._numbers, numpy_of(sums), numpy_of(queries)[:, None, None, None], at=(layer,))
        lengths = (length[:, :, None] @ member)[:, :, 0]
        self.norm.add(self._numbers, numpy_of(lengths), numpy_of(keys)[:, None], at=(layer,))

    def result(self) -> Norms:
        rows = self.rows.estimate()
        return Norms(*(rows[..., n] for n in range(3)), self.norm.estimate(), self.segments)


def weigh(
    encoder: Encoder, examples: Sequence[Example], *, seed: int = 0, shuffled: bool = False, batch_size: int = 16
) -> Norms:
    """Attention, and attention times the length of what it multiplies, over segments of at most 128 tokens.

    No word is hidden here, and any encoder will do, with or without a head.

    Args:
        shuffled: of the control whose scores are shuffled (:mod:`helpers.controls`); the vectors are the model's own.
    """
    sums = NormSums(encoder, [e.document for e in examples], seed=seed)
    told = {"what": f"norms, {len(examples)} segments", "most": MOST_TOKENS, "batch_size": batch_size}
    observer = sweeps.Shuffled(sums, seed) if shuffled else sums
    sweeps.accumulate(encoder, [e.texts for e in examples], observer, **told)
    return sums.result()


def numpy_of(tensor: Tensor) -> NDArray[np.float64]:
    """In float64, on the processor."""
    return tensor.double().cpu().numpy()


def shares(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Parts of the last axis over their sum."""
    return parts / parts.sum(-1, keepdims=True)


def over_other(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each kind over the last one."""
    return means / means[..., -1:]


def norms_as_dict(weighed: Norms) -> dict[str, Estimate]:
    """Attention, weighted attention and norms by layer and kind; ``kept`` is a kind's share of attention less that of the sums, paired."""
    share, weighted, joint = (found.mean(-2) for found in (weighed.share, weighed.weighted, weighed.joint))
    return {
        "share": share,
        "weighted_share": weighted.map(shares),
        "weighted": weighted,
        "joint": joint,
        "joint_share": joint.map(shares),
        "kept": share - joint.map(shares),
        "norm": weighed.norm.mean(-2),
        "norm_ratio": weighed.ratio(),
    }


def predicted_by_layer(sensed: Sensitivity) -> Estimate:
    """Change of the loss, to first order, if attention to [CLS] and [SEP] vanished from a layer, (layer,)."""
    return sensed.predicted.map(lambda x: x[..., :2].sum((-2, -1)))
