"""Chapter 03: what is attention to tokens without content good for?

Four measurements around one hypothesis, that a head attends to [SEP] (here: mostly [CLS]) when it has nothing to do.
How the loss reacts to a weight (Clark et al. 2019, section 3.2, Figure 3); how long the vectors are that the weights
multiply (Kobayashi et al. 2020); where a head looks from words its function does not concern; and what happens when
the weights are taken away.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from helpers import adapters, attention, stats, tasks
from helpers.corpora.records import Segment
from helpers.encoders import Encoder
from helpers.stats import Estimate
from helpers.tasks import IGNORED, Asked, Example
from helpers.tokens import EncodedText, Marks

KINDS = ("cls", "sep", "stop", "other")
"""Kinds of attended token: [CLS], [SEP], full stops and commas, everything else."""

MOST_TOKENS = 128  # Clark et al. 2019, section 3

Weights = Float[Tensor, "batch head query key"]


def kinds(marks: Marks, targets: Int[Tensor, "*batch token"] | None = None) -> Float[Tensor, "*batch token 4"]:
    """1 where a token is of a kind of :data:`KINDS`; each real token is of one kind, padding of none.

    Args:
        marks: a batch, or a text without padding.
        targets: of the batch, where words are hidden; a full stop or comma that is hidden counts as another token.
    """
    sep, stop = marks.sep & ~marks.cls, marks.stop
    if targets is not None:
        stop = stop & (targets == IGNORED)
    real = marks.special | (marks.text >= 0)
    return torch.stack([marks.cls, sep, stop, real & ~(marks.cls | sep | stop)], dim=-1).float()


def by_example(
    encoder: Encoder, examples: Sequence[Example], function: Callable[..., Any], *given: Any, **options: Any
) -> list[NDArray]:
    """The arrays that ``function(encoder, asked, *given)`` makes of batches with hidden words, a row for each example, in their order.

    Args:
        examples: cut to :data:`MOST_TOKENS` tokens.
        options: ``what``, ``seed`` and ``batch_size``, see :func:`helpers.tasks.each`.
    """
    batches = list(tasks.each(encoder, examples, function, *given, max_length=MOST_TOKENS, **options))
    order = np.argsort([number for asked, _ in batches for number in asked.example])
    return [np.concatenate(rows)[order] for rows in zip(*(arrays for _, arrays in batches), strict=True)]


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


def moved(probabilities: Weights, gradient: Weights) -> Weights:
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
        predicted: change of the loss if the weights to a kind vanished, to first order, -Σ α ∂L/∂α, (layer, head, kind).
        loss: of the untouched model, mean over segments.
        segments, tokens: how many segments, and how many hidden tokens.
    """

    gradient: Estimate
    moved: Estimate
    predicted: Estimate
    loss: Estimate
    segments: int
    tokens: int

    def ratio(self, of: str = "gradient") -> Estimate:
        """Mean over a layer's heads for each kind, as a multiple of that for other tokens, (layer, kind)."""
        return over_other(getattr(self, of))


def sensitivity(encoder: Encoder, examples: Sequence[Example], *, seed: int = 0, batch_size: int = 16) -> Sensitivity:
    """Gradients of the loss on hidden words with respect to all attention weights of all examples.

    Args:
        encoder: loaded with ``task="mlm"``.
        examples: segments of two paragraphs, ``tasks.examples("mlm", ...)``; cut to 128 tokens.
        seed: of the hidden words and of the bootstrap over documents.
    """
    what = f"{encoder.name}: gradients, {len(examples)} segments"
    found = by_example(encoder, examples, _gradient_sums, what=what, seed=seed, batch_size=batch_size)
    sums, counts, loss, hidden = found
    means = stats.ratio(zip(sums, counts, strict=True), examples, seed=seed)
    loss = stats.mean(loss, examples, seed=seed)
    return Sensitivity(*(means[..., n] for n in range(3)), loss, len(examples), int(hidden.sum()))


def _gradient_sums(encoder: Encoder, asked: Asked) -> tuple[NDArray, ...]:
    """For each example of a batch: the sums of the first three of :class:`Sensitivity`, [row, layer, head, kind, 3], and what they
    are means over, [row, 1, 1, kind, 3]; the loss; the number of hidden tokens."""
    of_kind = kinds(asked.batch, asked.targets).to(encoder.dtype)
    real = asked.batch.mask.to(encoder.dtype)
    layers: list[Tensor] = []  # from the last down

    def see(layer: int, probabilities: Tensor, gradient: Tensor) -> None:
        grids = (gradient.abs(), moved(probabilities, gradient).abs(), -probabilities * gradient)
        received = torch.stack([(real[:, None, None] @ grid)[:, :, 0] for grid in grids], -1)  # [batch, head, key, 3]
        layers.append(of_kind.mT[:, None] @ received)

    loss = gradients(encoder, asked, see)
    pairs = real.sum(-1, keepdim=True) * of_kind.sum(-2)
    counts = torch.stack([pairs, pairs, torch.ones_like(pairs)], -1)[:, None, None]
    hidden = (asked.targets != IGNORED).sum(-1)
    return tuple(one.cpu().numpy() for one in (torch.stack(layers[::-1], 1), counts, loss, hidden))


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
    """

    share: Estimate
    weighted: Estimate
    joint: Estimate
    norm: Estimate

    def ratio(self) -> Estimate:
        """Mean norm over a layer's heads for each kind, as a multiple of that of other tokens, (layer, kind)."""
        return over_other(self.norm)


def weigh_text(
    maps: Float[Tensor, "layer head query key"],
    text: EncodedText,
    values: Float[Tensor, "layer head key d"],
    outputs: Sequence[Float[np.ndarray, "width features"]],
) -> dict[str, Tensor]:
    """Sums over the attending tokens of one text: attention, weighted attention and joint length, [layer, head, kind, 3]; the sums of norms
    over the tokens of each kind, [layer, head, kind]; their number.

    Args:
        outputs: weights of the layers' output maps, see :func:`norms`.
    """
    of_kind = kinds(text).to(maps)
    parts = (values[..., None] * of_kind[:, None]).flatten(-2)  # all kinds' vectors side by side: one product
    joint = (maps @ parts).unflatten(-1, (-1, len(KINDS)))
    vectors = torch.stack([values, *joint.unbind(-1)], 1)  # [layer, 1 + kind, head, token, d]
    weights = (torch.as_tensor(output, device=maps.device) for output in outputs)
    lengths = torch.stack([norms(one, weight) for one, weight in zip(vectors, weights, strict=True)])
    length, received = lengths[:, 0], maps.sum(-2)
    together = lengths[:, 1:].sum(-1).movedim(1, -1)
    sums = torch.stack([received @ of_kind, (received * length) @ of_kind, together], -1)
    return {"sums": sums, "norm": length @ of_kind, "tokens": of_kind.sum(0)}


def weigh(encoder: Encoder, segments: Sequence[Example | Segment], *, seed: int = 0, shuffled: bool = False) -> Norms:
    """Attention, and attention times the length of what it multiplies, over segments of at most 128 tokens.

    No word is hidden here, and any encoder will do, with or without a head.

    Args:
        shuffled: of the control whose scores are shuffled (:mod:`helpers.controls`); the vectors are the model's own.

    Raises:
        TapError: for a family that does not show its value vectors.
    """
    outputs = [module.weight.detach().cpu().numpy() for module in attention.output_projections(encoder)]
    options: dict[str, Any] = {"longest": MOST_TOKENS, "values": True, "shuffled": shuffled, "seed": seed}
    function = partial(weigh_text, outputs=outputs)
    found = attention.measure(encoder, [s.texts for s in segments], function, **options)
    rows = stats.ratio(((one["sums"], one["tokens"].sum()) for one in found), segments, seed=seed)
    norm = stats.ratio(((one["norm"], one["tokens"]) for one in found), segments, seed=seed)
    return Norms(*(rows[..., n] for n in range(3)), norm)


def shares(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Parts of the last axis over their sum."""
    return parts / parts.sum(-1, keepdims=True)


def over_other(means: Estimate) -> Estimate:
    """Means (layer, head, kind) over a layer's heads, each kind as a multiple of the last one, (layer, kind)."""
    return means.mean(-2).map(lambda x: x / x[..., -1:])


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
