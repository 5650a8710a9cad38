"""Chapter 11: which heads matter?

Switch off every head, and every layer, and measure what a task loses (Kovaleva et al. 2019; Michel et al. 2019, Table 1);
estimate the same from one backward pass (Michel et al. 2019, equation 2); remove heads in an order, and at last remove their
parameters. A :class:`Job` is a model with a head, examples of its task, and how to run them; everything else takes one.

The heads of one layer share all that lies below it and their own attention maps, so :func:`remove_each` computes these
once for all of them; :func:`switched_off`, one forward pass for each set of heads, gives the same numbers and is what it is tested
against. Batches are measured wherever :mod:`helpers.engine.shards` is told to, and finished ones can be kept in a folder, so that a long
sweep goes on where it was stopped.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from scipy.stats import rankdata
from torch import Tensor, nn

from helpers import places
from helpers.engine import attention, tasks, tokens
from helpers.engine.encoders import Encoder, EncoderError
from helpers.engine.estimates import Estimate, Numbers
from helpers.engine.tasks import Asked, Example

Heads = Iterable[tuple[int, int]]
"""Pairs (layer, head), from 0."""

REPLICATES = 9_999
"""Of the bootstrap behind a test: the smallest p-value is 2 / 10,000, which 72 tests together need."""

LEVEL = 0.05
"""False discovery rate (Benjamini & Hochberg 1995)."""


class PruneError(EncoderError):
    """The heads of this family cannot be taken out."""


# ---------------------------------------------------------------------------------------- what is run


@dataclass(frozen=True, eq=False)
class Job:
    """Examples of a task and the encoder that is scored on them.

    Attributes:
        encoder: loaded with the examples' task, or with ``entailment`` for examples of ``rte``.
        examples: see :func:`helpers.engine.examples.examples`.
        seed: of the hidden words (mlm).
        batch_size: inputs in a batch.
        rows: inputs, times sets of heads, that go through the upper layers together: bounds the memory.
        max_length: tokens of an input (default: the task's).
        folder: where finished batches are kept, if the environment names no place (:mod:`helpers.engine.shards`); None: nowhere.

    Raises:
        helpers.engine.adapters.AdapterError: when the head is for another task.
    """

    encoder: Encoder
    examples: Sequence[Example]
    seed: int = 0
    batch_size: int = 16
    rows: int = 64
    max_length: int | None = None
    folder: Path | None = None

    def __post_init__(self) -> None:
        tasks.check(self.encoder, self.examples[0].task if self.examples else "none")

    @property
    def task(self) -> str:
        return self.examples[0].task

    @property
    def documents(self) -> Int[np.ndarray, "example"]:
        """What the bootstrap resamples."""
        return np.array([e.document for e in self.examples])

    def batches(self) -> Iterator[Asked]:
        """The examples in batches."""
        return tasks.batches(self.encoder, self.examples, **self._cut)

    def each(self, function: Callable[..., Any], *given: Any, doing: str) -> Iterator[tuple[Asked, Any]]:
        """Every batch with ``function(encoder, asked, *given)``, with a progress bar (:func:`helpers.engine.tasks.each`)."""
        what = f"{self.encoder.name}, {self.task}: {doing}, {len(self.examples)} examples"
        return tasks.each(self.encoder, self.examples, function, *given, what=what, keep=self.folder, **self._cut)

    def on(self, chosen: Sequence[int]) -> "Job":
        """The same with some of the examples, by number."""
        return replace(self, examples=[self.examples[n] for n in chosen])

    @property
    def _cut(self) -> dict[str, Any]:
        return {"seed": self.seed, "batch_size": self.batch_size, "max_length": self.max_length}


def job(encoder: Encoder, examples: Sequence[Example], *, keep: bool = False, **settings: Any) -> Job:
    """A :class:`Job`; with ``keep`` finished batches stay in the user's cache, under names made of all they depend on."""
    return Job(encoder, examples, folder=places.cache() / "head_importance" if keep else None, **settings)


def halves(examples: Sequence[Example], *, seed: int = 0) -> tuple[list[int], list[int]]:
    """Numbers of the examples in two halves of the documents, drawn at random: one to choose on, one to measure on."""
    documents = np.array([e.document for e in examples])
    order = np.random.default_rng(seed).permutation(np.unique(documents))
    first = np.isin(documents, order[: (len(order) + 1) // 2])
    return np.flatnonzero(first).tolist(), np.flatnonzero(~first).tolist()


# ---------------------------------------------------------------------------------------- outcomes

LOSS, COUNT, RIGHT, BEGIN, END = range(5)
"""What is kept of an input: its loss; how many things were asked; how many were right (qa: the best span's sum of logits); first and
last character of that span."""


def outcomes(encoder: Encoder, hidden: Tensor, asked: Asked) -> Float[np.ndarray, "row 5"]:
    """What the task needs to know of each input, see :data:`LOSS`; ``hidden`` is the last layer, [row, token, width]."""
    found = np.zeros((len(asked.example), 5))
    if asked.task == "mlm":
        loss, restored = tasks.masked_losses(encoder, hidden, asked)
        there = asked.targets != tasks.IGNORED
        row = there.nonzero()[:, 0].cpu().numpy()
        found[:, LOSS], found[:, COUNT] = _numpy(loss), _numpy(there.sum(-1))
        np.add.at(found[:, RIGHT], row, _numpy(restored))
        return found
    logits = tasks.answers(encoder, hidden, asked)
    found[:, LOSS] = _numpy(tasks.cross_entropy(logits, asked))
    if asked.task != "qa":
        found[:, COUNT], found[:, RIGHT] = 1, _numpy(logits.argmax(-1) == asked.targets)
        return found
    found[:, COUNT] = _numpy((asked.targets != tasks.IGNORED).any(-1))
    inside, logits = (asked.batch.text == 1).cpu().numpy(), logits.double().cpu().numpy()
    for row, spans in enumerate(asked.spans):
        value, first, last = tasks.best_span(logits[row, inside[row]])
        found[row, RIGHT:] = value, spans[first, 0], spans[last, 1]
    return found


@dataclass(frozen=True, eq=False)
class Scored:
    """Per example, for each thing that was tried.

    Attributes:
        score: whatever was tried × example; share of hidden words restored (mlm), F1 (qa), right or wrong (pairs).
        loss: whatever was tried × example, nats.
        weights: [example], what a mean of the score weighs an example with: number of hidden words (mlm), else 1.
        documents: [example], the unit to resample.
    """

    score: Float[np.ndarray, "... example"]
    loss: Float[np.ndarray, "... example"]
    weights: Float[np.ndarray, "example"]
    documents: Int[np.ndarray, "example"]

    def __getitem__(self, where: object) -> "Scored":
        """Some of what was tried, all examples."""
        return replace(self, score=self.score[where], loss=self.loss[where])

    def on(self, chosen: Sequence[int]) -> "Scored":
        """Everything that was tried, some of the examples."""
        return Scored(self.score[..., chosen], self.loss[..., chosen], self.weights[chosen], self.documents[chosen])

    def mean(self, name: str = "score") -> Numbers:
        """Over the examples."""
        return np.average(getattr(self, name), axis=-1, weights=self._weights(name))

    def estimate(self, name: str = "score", *, seed: int = 0) -> Estimate:
        """The mean with its interval, ``(*tried)``."""
        return resampled(getattr(self, name), self._weights(name), self.documents, seed=seed)

    def cost(self, whole: "Scored", name: str = "score", *, seed: int = 0) -> Estimate:
        """What it costs, compared with ``whole`` example by example, ``(*tried)``: lost score, or added loss; negative is a gain."""
        sign = -1 if name == "score" else 1
        change = sign * (getattr(self, name) - getattr(whole, name))
        return resampled(change, self._weights(name), self.documents, seed=seed)

    def _weights(self, name: str) -> NDArray[np.float64]:
        return self.weights if name == "score" else np.ones_like(self.weights)


def combine(task: Job, parts: Sequence[tuple[Sequence[int], Float[np.ndarray, "*tried _ 5"]]]) -> Scored:
    """Outcomes of inputs as scores of examples; an example of qa may have been cut into several inputs.

    Args:
        parts: for each batch, the example of each row and :func:`outcomes`.
    """
    count, tried = len(task.examples), parts[0][1].shape[:-2]
    loss, asked, right = (np.zeros((*tried, count)) for _ in range(3))
    best = np.full((*tried, count), -np.inf)
    span = np.zeros((*tried, count, 2), np.int64)
    for numbers, values in parts:
        for row, number in enumerate(numbers):
            one = values[..., row, :]
            loss[..., number] += one[..., LOSS]
            asked[..., number] += one[..., COUNT]
            right[..., number] += one[..., RIGHT]
            better = one[..., RIGHT] > best[..., number]
            best[..., number] = np.where(better, one[..., RIGHT], best[..., number])
            span[..., number, :] = np.where(
                better[..., None], one[..., BEGIN:].astype(np.int64), span[..., number, :]
            )
    weights = asked.reshape(-1, count)[0]
    if task.task == "qa":
        return Scored(_f1(task.examples, span), loss / np.maximum(asked, 1), np.ones(count), task.documents)
    if task.task == "mlm":
        return Scored(right / np.maximum(asked, 1), loss, weights, task.documents)
    return Scored(right, loss, weights, task.documents)


def _f1(
    examples: Sequence[Example], span: Int[np.ndarray, "*tried example 2"]
) -> Float[np.ndarray, "*tried example"]:
    """F1 of the answers that stand there; most sets of heads give the same answer, which is scored once."""
    found = np.zeros(span.shape[:-1])
    for number, example in enumerate(examples):
        spans, which = np.unique(span[..., number, :].reshape(-1, 2), axis=0, return_inverse=True)
        answers = [a.text for a in example.answers]
        f1 = np.array([tasks.em_and_f1(example.texts[1][begin:end], answers)[1] for begin, end in spans])
        found[..., number] = f1[which.ravel()].reshape(span.shape[:-2])
    return found


# ---------------------------------------------------------------------------------------- switching heads off


def switched_off(encoder: Encoder, asked: Asked, heads: Heads) -> Float[np.ndarray, "row 5"]:
    """Outcomes of one batch with some heads at zero: an ordinary forward pass under an editor."""
    with torch.inference_mode(), attention.tap(encoder, edit=attention.zero(heads)):
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
    """

    def __init__(self, encoder: Encoder, asked: Asked, *, rows: int = 64) -> None:
        self.encoder, self.asked = encoder, asked
        self.at_once = max(1, rows // len(asked.example))
        self.layers, self.projections = stack(encoder), attention.output_projections(encoder)
        self.calls: list[tuple[tuple, dict]] = []
        with torch.inference_mode(), ExitStack() as hooks:
            for layer in self.layers:
                keep = layer.register_forward_pre_hook(lambda _, a, k: self.calls.append((a, k)), with_kwargs=True)
                hooks.callback(keep.remove)
            hidden = encoder.model(**asked.batch.inputs).last_hidden_state
            self.whole = outcomes(encoder, hidden, asked)

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
            return z - contributions(inputs[0], module.weight, off.to(z))

        with self._standing_aside(layer, without):
            hidden = self.encoder.model(**many.batch.inputs).last_hidden_state
        return outcomes(self.encoder, hidden, many).reshape(len(off), len(self.asked.example), 5)

    @contextmanager
    def _standing_aside(self, layer: int, without: Callable) -> Iterator[None]:
        """Layers below hand on what they get; this one hands up what it makes of the first pass, once for each variant."""
        args, kwargs = self.calls[layer]
        hook = self.projections[layer].register_forward_hook(without)
        try:
            made = self.layers[layer](*args, **kwargs)
        finally:
            hook.remove()
        as_tuple = isinstance(made, tuple)
        flat = (made[0] if as_tuple else made).flatten(0, 1)
        rest = made[1:] if as_tuple else ()

        def pass_on(*args: object, **kwargs: object) -> object:
            given = args[0] if args else kwargs["hidden_states"]
            return (given, *rest) if as_tuple else given

        try:
            for below in self.layers[:layer]:
                below.forward = pass_on
            self.layers[layer].forward = lambda *_, **__: (flat, *rest) if as_tuple else flat
            yield
        finally:
            for changed in self.layers[: layer + 1]:
                changed.__dict__.pop("forward", None)


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


def stack(encoder: Encoder) -> list[nn.Module]:
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


def sharing(encoder: Encoder) -> str:
    """Why this model's heads have to be switched off in one whole pass each; empty where the fast sweep works."""
    try:
        stack(encoder)
    except EncoderError as error:
        return f"{error} Each head takes a whole forward pass; the numbers are the same."
    return ""


def repeated(asked: Asked, times: int) -> Asked:
    """The same inputs several times over, as one batch."""
    batch = asked.batch
    changed = {f.name: getattr(batch, f.name) for f in fields(batch)}
    changed = {k: v.repeat(times, 1) if isinstance(v, Tensor) else v for k, v in changed.items()}
    changed |= {k: getattr(batch, k) * times for k in ("index", "tokens", "words")}
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


def remove_each(task: Job, *, fast: bool = True) -> Removals:
    """Switch off each head alone, then all heads of each layer, and score every example each time.

    Args:
        fast: share what removals from a layer have in common, where the family allows it (:func:`sharing`).
    """
    rows = task.rows if fast and not sharing(task.encoder) else None
    found = [(asked.example, *one) for asked, one in task.each(_remove_each, rows, doing="each head")]
    whole = combine(task, [(numbers, plain) for numbers, plain, _ in found])
    both = combine(task, [(numbers, removed) for numbers, _, removed in found])
    return Removals(whole, both[:, :-1], both[:, -1])


def _remove_each(
    encoder: Encoder, asked: Asked, rows: int | None
) -> tuple[Float[np.ndarray, "row 5"], Float[np.ndarray, "layer variant row 5"]]:
    """Outcomes of one batch with the whole model and with each of :func:`variants`; ``rows`` as in :class:`Sweep`, if that works."""
    layers = range(encoder.layers)
    if rows is not None:
        shared = Sweep(encoder, asked, rows=rows)
        return shared.whole, np.stack([shared.layer(n) for n in layers])
    each = [[switched_off(encoder, asked, heads) for heads in variants(n, encoder.heads)] for n in layers]
    return switched_off(encoder, asked, ()), np.array(each)


# ---------------------------------------------------------------------------------------- is it more than chance?


def resampled(
    values: Float[np.ndarray, "*shape example"],
    weights: Float[np.ndarray, "example"],
    documents: Int[np.ndarray, "example"],
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Estimate:
    """Weighted means over examples with a bootstrap over documents, all of them on the same draws, ``(*shape)``."""
    _, which = np.unique(documents, return_inverse=True)
    count = which.max() + 1
    flat = np.asarray(values, np.float64).reshape(-1, len(documents))
    sums, sizes = np.zeros((count, len(flat))), np.bincount(which, weights, count)
    np.add.at(sums, which, (flat * weights).T)
    random = np.random.default_rng(seed)
    drawn = np.empty((replicates, len(flat)))
    for start in range(0, replicates, 1000):
        stop = min(start + 1000, replicates)
        # as many documents as there are, with replacement; few documents would often all be left out by a Poisson draw
        counts = random.multinomial(count, np.full(count, 1 / count), stop - start).astype(np.float64)
        drawn[start:stop] = counts @ sums / np.maximum(counts @ sizes, np.finfo(float).tiny)[:, None]
    shape = values.shape[:-1]
    return Estimate.of((sums.sum(0) / sizes.sum()).reshape(shape), drawn.reshape(replicates, *shape))


def p_values(cost: Estimate) -> Numbers:
    """Two-sided bootstrap p-values of "no change": twice the smaller share of replicates on either side of 0."""
    drawn = cost.replicates
    smaller = np.minimum((drawn <= 0).sum(0), (drawn >= 0).sum(0))
    return np.minimum(1.0, 2 * (1 + smaller) / (1 + len(drawn)))


def significant(p: Float[np.ndarray, "*shape"], level: float = LEVEL) -> Bool[np.ndarray, "*shape"]:
    """Which p-values stand when all of them are tested together: false discovery rate (Benjamini & Hochberg 1995)."""
    flat = np.sort(p.ravel())
    passed = np.flatnonzero(flat <= level * np.arange(1, flat.size + 1) / flat.size)
    return p <= (flat[passed[-1]] if passed.size else -1.0)


@dataclass(frozen=True)
class Count:
    """How many removals help and hurt; ``none``: not a single outcome changes the mean."""

    heads: int
    helps: int
    hurts: int
    none: int
    helps_significantly: int
    hurts_significantly: int


def count(cost: Estimate, stands: Bool[np.ndarray, "..."]) -> Count:
    """Heads by the sign of what their removal costs; ``stands`` says for which it is significant."""
    helps, hurts = cost.value < -1e-12, cost.value > 1e-12
    numbers = (
        cost.value.size,
        helps.sum(),
        hurts.sum(),
        (~helps & ~hurts).sum(),
        (helps & stands).sum(),
        (hurts & stands).sum(),
    )
    return Count(*map(int, numbers))


# ---------------------------------------------------------------------------------------- importance from gradients


def gate_gradients(encoder: Encoder, asked: Asked) -> tuple[Float[Tensor, "row layer head"], Float[Tensor, "row"]]:
    """∂L/∂ξ for every gate of every input, at ξ = 1, and the losses.

    Each input has gates of its own, and no part in the loss of another; so one backward pass of the *sum* of the
    losses gives every input its own gradient, whatever else is in the batch.
    """
    gate = torch.ones(len(asked.example), encoder.layers, encoder.heads, device=encoder.device, requires_grad=True)
    with torch.enable_grad(), attention.tap(encoder, edit=lambda layer, p: p * gate[:, layer, :, None, None]):
        hidden = encoder.model(**asked.batch.inputs).last_hidden_state
        loss = tasks.losses_of(encoder, hidden, asked)
        (gradient,) = torch.autograd.grad(loss.sum(), gate)
    return gradient, loss.detach()


@dataclass(frozen=True, eq=False)
class Importance:
    """Gradients of every example's loss with respect to the gates.

    Attributes:
        gradients: (layer, head, example), nats per unit of gate.
        documents: [example].
    """

    gradients: Float[np.ndarray, "layer head example"]
    documents: Int[np.ndarray, "example"]

    def on(self, chosen: Sequence[int]) -> "Importance":
        return Importance(self.gradients[..., chosen], self.documents[chosen])

    def of(self, *, normalised: bool = False, seed: int = 0) -> Estimate:
        """I_h = E|∂L/∂ξ_h|, (layer, head); ``normalised``: each layer divided by its ℓ2 norm (Michel et al. 2019)."""
        found = self._mean(np.abs(self.gradients), seed)
        return by_layer_norm(found) if normalised else found

    def first_order(self, *, seed: int = 0) -> Estimate:
        """-E ∂L/∂ξ_h, (layer, head): what switching the head off would cost if the loss were a straight line in ξ."""
        return self._mean(-self.gradients, seed)

    def _mean(self, values: NDArray[np.float64], seed: int) -> Estimate:
        return resampled(values, np.ones(len(self.documents)), self.documents, seed=seed)


def by_layer_norm(found: Estimate) -> Estimate:
    """Each layer divided by the ℓ2 norm of its heads."""

    def divided(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), np.finfo(float).tiny)

    return Estimate.of(divided(found.value), divided(found.replicates))


def importance(task: Job) -> Importance:
    """Gate gradients of all examples; of an example cut into several inputs, the mean over those that hold its answer."""
    shape = (task.encoder.layers, task.encoder.heads, len(task.examples))
    total, parts = np.zeros(shape), np.zeros(len(task.examples))
    for asked, gradients in task.each(_gate_gradients, doing="gradients"):
        for row, number in enumerate(asked.example):
            total[..., number] += gradients[row]
            parts[number] += bool((asked.targets[row] != tasks.IGNORED).any())
    return Importance(total / np.maximum(parts, 1), task.documents)


def _gate_gradients(encoder: Encoder, asked: Asked) -> Float[np.ndarray, "row layer head"]:
    return _numpy(gate_gradients(encoder, asked)[0])


def correlation(
    x: Float[np.ndarray, "..."],
    y: Float[np.ndarray, "..."],
    *,
    ranks: bool = True,
    replicates: int = 2000,
    seed: int = 0,
) -> Estimate:
    """Spearman's (``ranks``) or Pearson's correlation over heads, with a bootstrap over heads."""
    x, y = np.ravel(x), np.ravel(y)
    drawn = np.random.default_rng(seed).integers(len(x), size=(replicates, len(x)))
    drawn = np.concatenate([np.arange(len(x))[None], drawn])
    pairs = [v[drawn] for v in (x, y)]
    a, b = (rankdata(v, axis=1) if ranks else v for v in pairs)
    a, b = (v - v.mean(1, keepdims=True) for v in (a, b))
    size = np.sqrt((a * a).sum(1) * (b * b).sum(1))
    found = np.divide((a * b).sum(1), size, out=np.full(len(size), np.nan), where=size > 1e-300)
    return Estimate.of(found[0], found[1:])


# ---------------------------------------------------------------------------------------- removing heads in an order


def ascending(values: Float[np.ndarray, "layer head"]) -> list[tuple[int, int]]:
    """Heads from the smallest value to the largest: the order in which they go."""
    return [tuple(map(int, np.unravel_index(n, values.shape))) for n in np.argsort(values, axis=None, kind="stable")]


def orders(
    found: Importance, removed: Removals, *, draws: int = 5, seed: int = 0
) -> dict[str, list[list[tuple[int, int]]]]:
    """Orders in which to remove heads, least important first: by I_h, by I_h with layers normalised, by what the removal
    of a head alone adds to the loss, or takes from the score (two oracles; equal scores in random order), and at random, ``draws`` times."""
    value = np.abs(found.gradients).mean(-1)
    alone = (removed.heads.loss - removed.whole.loss).mean(-1)
    normalised = value / np.maximum(np.linalg.norm(value, axis=-1, keepdims=True), np.finfo(float).tiny)
    random = np.random.default_rng(seed)
    lost = removed.whole.mean() - removed.heads.mean()
    tied = np.random.default_rng([seed, 1]).permutation(lost.size)
    by_score = np.empty(lost.size)
    by_score[np.lexsort((tied, lost.ravel().round(9)))] = np.arange(lost.size)
    shuffled = [ascending(random.permutation(value.size).reshape(value.shape).astype(float)) for _ in range(draws)]
    return {
        "I_h": [ascending(value)],
        "I_h, layers normalised": [ascending(normalised)],
        "oracle": [ascending(alone)],
        "oracle, score": [ascending(by_score.reshape(lost.shape))],
        "random": shuffled,
    }


def steps(total: int, shares: Sequence[float | int]) -> list[int]:
    """Numbers of heads for shares of all heads, rounded, without repetition."""
    return sorted({round(share * total) for share in shares})


def in_order(task: Job, given: Mapping[str, list[list[tuple[int, int]]]], counts: Sequence[int]) -> dict[str, Scored]:
    """Scores with the first k heads of each order switched off, (draw, k, example); equal sets are computed once."""
    sets = {name: [[frozenset(o[:k]) for k in counts] for o in every] for name, every in given.items()}
    distinct = sorted({s for every in sets.values() for o in every for s in o}, key=lambda s: (len(s), sorted(s)))
    measured = task.each(_without, list(map(sorted, distinct)), doing=f"{len(distinct)} sets of heads")
    found = combine(task, [(asked.example, one) for asked, one in measured])
    scored = {heads: found[n] for n, heads in enumerate(distinct)}
    return {name: _stacked([_stacked([scored[s] for s in o]) for o in every]) for name, every in sets.items()}


def _without(
    encoder: Encoder, asked: Asked, sets: Sequence[Sequence[tuple[int, int]]]
) -> Float[np.ndarray, "set row 5"]:
    return np.stack([switched_off(encoder, asked, heads) for heads in sets])


def _stacked(scored: Sequence[Scored]) -> Scored:
    score, loss = (np.stack([getattr(s, name) for s in scored]) for name in ("score", "loss"))
    return replace(scored[0], score=score, loss=loss)


# ---------------------------------------------------------------------------------------- removing parameters

QUERY_KEY_VALUE = (
    ("query", "key", "value"),
    ("q_lin", "k_lin", "v_lin"),
    ("q", "k", "v"),
    ("query_proj", "key_proj", "value_proj"),
)
NUMBERS = ("num_attention_heads", "n_heads", "num_heads")


class NoHeads(nn.Module):
    """Stands where the attention of a layer was that lost all of its heads; what is left is the output map's bias.

    Args:
        width: of what it returns: 0 before an output map, else that of a hidden state.
        bias: the bias of an output map that went with the heads.
    """

    def __init__(self, width: int, bias: Tensor | None) -> None:
        super().__init__()
        self.width = width
        self.bias = None if bias is None else nn.Parameter(bias.clone(), requires_grad=False)

    def forward(self, hidden_states: Tensor, *_: object, **__: object) -> tuple[Tensor, None]:
        nothing = hidden_states.new_zeros(*hidden_states.shape[:-1], self.width)
        return (nothing if self.bias is None else nothing + self.bias), None


def prune(encoder: Encoder, heads: Heads) -> Encoder:
    """A copy of the encoder without the parameters of some heads: their rows of Q, K, V and their columns of O are gone.

    The copy answers as the model with these heads switched off does. It cannot be tapped, since its layers differ
    in their number of heads.

    Raises:
        PruneError: for a family whose heads share their parameters (ALBERT, DeBERTa) or keep them in another way.
    """
    gone: dict[int, set[int]] = {}
    for layer, head in heads:
        if not (0 <= layer < encoder.layers and 0 <= head < encoder.heads):
            raise PruneError(
                f"{encoder.name!r} has no head ({layer}, {head}): it has {encoder.layers} x {encoder.heads}, "
                "counted from 0."
            )
        gone.setdefault(layer, set()).add(head)
    pruned = replace(encoder, model=copy.deepcopy(encoder.model), sha256=f"{encoder.sha256}-pruned")
    layers, outputs = _prunable(pruned), attention.output_projections(pruned)
    for layer, lost in gone.items():
        kept = [h for h in range(encoder.heads) if h not in lost]
        _shrink(layers[layer], outputs[layer], kept, encoder.heads)
    return pruned


def _prunable(encoder: Encoder) -> list[nn.Module]:
    family = type(encoder.model).__name__
    try:
        layers = stack(encoder)
    except EncoderError as error:
        raise PruneError(f"{error} Its heads cannot be taken out one by one.") from None
    if any("Disentangled" in type(m).__name__ for layer in layers for m in layer.modules()):
        raise PruneError(
            f"{encoder.name!r} ({family}): position and content share the maps of a head; it cannot be taken out."
        )
    return layers


def _shrink(layer: nn.Module, output: nn.Linear, kept: Sequence[int], heads: int) -> None:
    """Cut one layer's attention down to the heads ``kept``."""
    module, names = _projections(layer)
    width = output.in_features // heads
    columns = torch.tensor([h * width + i for h in kept for i in range(width)], dtype=torch.long)
    if not kept:
        _empty(layer, module, output)
        return
    for name in names:
        old, blocks = getattr(module, name), 3 if name == "Wqkv" else 1
        rows = torch.cat([block * heads * width + columns for block in range(blocks)])
        setattr(module, name, _linear(old.weight[rows], None if old.bias is None else old.bias[rows]))
    _set(layer, output, _linear(output.weight[:, columns], output.bias))
    for name in NUMBERS:
        if hasattr(module, name):
            setattr(module, name, len(kept))
    if hasattr(module, "all_head_size"):
        module.all_head_size = len(kept) * width
    if names[0] == "q":  # MPNet hands every layer a table of distances for all heads
        chosen = torch.tensor(kept)
        module.register_forward_pre_hook(
            lambda _, args, kwargs: ((*args[:2], args[2][:, chosen.to(args[2].device)], *args[3:]), kwargs),
            with_kwargs=True,
        )


def _projections(layer: nn.Module) -> tuple[nn.Module, tuple[str, ...]]:
    """The module that holds a layer's query, key and value maps, and their names."""
    for module in layer.modules():
        for names in (*QUERY_KEY_VALUE, ("Wqkv",)):
            if all(isinstance(getattr(module, name, None), nn.Linear) for name in names):
                return module, names
    raise PruneError(
        f"No query, key and value maps were found in a {type(layer).__name__}; its heads cannot be taken out."
    )


def _empty(layer: nn.Module, module: nn.Module, output: nn.Linear) -> None:
    """Take out a layer's attention; the bias of its output map stays."""
    inside = any(m is output for m in module.modules())
    if inside:  # the output map goes as well
        _set(layer, module, NoHeads(output.out_features, output.bias))
        return
    _set(layer, module, NoHeads(0, None))
    _set(layer, output, _linear(output.weight[:, :0], output.bias))


def _set(layer: nn.Module, old: nn.Module, new: nn.Module) -> None:
    path = next(name for name, m in layer.named_modules() if m is old)
    parent, _, name = path.rpartition(".")
    setattr(layer.get_submodule(parent) if parent else layer, name, new)


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    made = nn.Linear(1, 1, bias=bias is not None, device=weight.device)
    made.in_features, made.out_features = weight.shape[1], weight.shape[0]
    made.weight = nn.Parameter(weight.clone(), requires_grad=False)
    if bias is not None:
        made.bias = nn.Parameter(bias.clone(), requires_grad=False)
    return made


def sizes(encoder: Encoder) -> dict[str, int]:
    """Numbers of parameters: in all, without the embeddings, and in the attention (Q, K, V, O)."""
    names, inside = {n for group in QUERY_KEY_VALUE for n in group} | {"Wqkv"}, set()
    for name, module in encoder.model.named_modules():
        known = name.rpartition(".")[2] in names or attention.OUTPUT_PROJECTION.fullmatch(name)
        if isinstance(module, NoHeads) or (isinstance(module, nn.Linear) and known):
            inside |= {id(p) for p in module.parameters()}
    every = list(encoder.model.named_parameters())
    outside = sum(p.numel() for n, p in every if "embeddings" in n.split("."))
    within = sum(p.numel() for _, p in every if id(p) in inside)
    return {"all": encoder.parameters, "layers": encoder.parameters - outside, "attention": within}


def _numpy(tensor: Tensor) -> NDArray[np.float64]:
    return tensor.detach().double().cpu().numpy()


def along(encoder: Encoder, asked: Asked, heads: Heads, gates: Iterable[float]) -> Float[np.ndarray, "head gate row"]:
    """Loss of each input with one gate at other values than 1, for each of some heads: a picture of what ξ does."""
    found = []
    for layer, head in heads:
        found.append([])
        for gate in gates:

            def edit(here: int, p: Tensor, gate: float = gate, layer: int = layer, head: int = head) -> Tensor:
                if here != layer:
                    return p
                scale = torch.ones(p.shape[1], device=p.device)
                scale[head] = gate
                return p * scale[:, None, None]

            with torch.inference_mode(), attention.tap(encoder, edit=edit):
                hidden = encoder.model(**asked.batch.inputs).last_hidden_state
                found[-1].append(_numpy(tasks.losses_of(encoder, hidden, asked)))
    return np.array(found)


# ---------------------------------------------------------------------------------------- recording

NAMES = ("score", "loss")


def costs(removed: Removals, name: str, *, seed: int = 0) -> dict[str, Any]:
    """What switching off each head (layer, head), and each layer, costs: with intervals, p-values, what stands, and counts."""
    found: dict[str, Any] = {}
    for what in ("heads", "layers"):
        cost = getattr(removed, what).cost(removed.whole, name, seed=seed)
        p = np.asarray(p_values(cost))
        stands = significant(p)
        found[what] = {"cost": cost, "p": p, "significant": stands, "count": vars(count(cost, stands))}
    return found


def agreement(
    found: Importance, removed: Removals, one: Sequence[int], two: Sequence[int], *, seed: int = 0
) -> dict[str, Estimate]:
    """Rank correlations over heads between halves of the documents: of I_h, its normalised form and the first-order
    estimate on one half with the added loss on the other; and of I_h, and of the added loss, with themselves."""
    value = {
        "importance": lambda part: np.abs(found.on(part).gradients).mean(-1),
        "first_order": lambda part: -found.on(part).gradients.mean(-1),
        "cost": lambda part: removed.on(part).heads.loss.mean(-1) - removed.on(part).whole.loss.mean(-1),
    }
    first, second = ({name: f(part) for name, f in value.items()} for part in (one, two))
    unit = first["importance"] / np.maximum(np.linalg.norm(first["importance"], axis=-1, keepdims=True), 1e-300)
    pairs = {
        "importance_cost": (first["importance"], second["cost"]),
        "importance_size": (first["importance"], np.abs(second["cost"])),
        "normalised_cost": (unit, second["cost"]),
        "first_order_cost": (first["first_order"], second["cost"]),
        "importance_twice": (first["importance"], second["importance"]),
        "cost_twice": (first["cost"], second["cost"]),
    }
    return {name: correlation(x, y, seed=seed) for name, (x, y) in pairs.items()}


def curve(scored: Scored, name: str, *, seed: int = 0) -> dict[str, Any]:
    """A curve of :func:`in_order`: mean over draws with its interval, (k,), and the smallest and largest draw."""
    per_draw = scored.mean(name)
    over = replace(scored, score=scored.score.mean(0), loss=scored.loss.mean(0))
    return {
        "mean": over.estimate(name, seed=seed),
        "least": per_draw.min(0),
        "most": per_draw.max(0),
        "draws": len(per_draw),
    }


def as_dict(
    task: Job,
    removed: Removals,
    found: Importance,
    curves: Mapping[str, Scored],
    counts: Sequence[int],
    parts: tuple[Sequence[int], Sequence[int]],
    *,
    seed: int = 0,
) -> dict[str, Any]:
    """One task's numbers for :func:`helpers.record.results.record`."""
    encoder = task.encoder
    assert encoder.head is not None
    simple = tasks.majority(task.examples)
    return {
        "examples": len(task.examples),
        "documents": len(np.unique(task.documents)),
        "adapter": encoder.head.sha256,
        "score": removed.whole.estimate("score", seed=seed),
        "loss": removed.whole.estimate("loss", seed=seed),
        "majority": None if np.isnan(simple) else simple,
        "cost": {name: costs(removed, name, seed=seed) for name in NAMES},
        "importance": found.of(seed=seed),
        "normalised": found.of(normalised=True, seed=seed).value,
        "first_order": found.first_order(seed=seed).value,
        "agreement": agreement(found, removed, *parts, seed=seed),
        "pruning": {
            "heads": list(counts),
            "examples": len(parts[1]),
            "curves": {n: {name: curve(c, name, seed=seed) for name in NAMES} for n, c in curves.items()},
        },
    }


def share_helped(values: Mapping[str, Any], name: str = "score") -> float:
    """Share of heads whose removal helps, nominally."""
    found = values["cost"][name]["heads"]["count"]
    return found["helps"] / found["heads"]


def best_and_worst(values: Mapping[str, Any], name: str = "score") -> dict[str, tuple[int, int, float]]:
    """The heads whose removal changes a score most, down and up: (layer, head, change)."""
    cost = np.asarray(Estimate.from_record(values["cost"][name]["heads"]["cost"]).value)
    where = {"down": cost.argmax(), "up": cost.argmin()}
    return {k: (*map(int, np.unravel_index(n, cost.shape)), -float(cost.ravel()[n])) for k, n in where.items()}
