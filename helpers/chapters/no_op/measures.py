"""Chapter 03: what is attention to tokens without content good for?

Four measurements around one hypothesis, that a head attends to [SEP] (here: mostly [CLS]) when it has nothing to do.
How the loss reacts to a weight (Clark et al. 2019, section 3.2, Figure 3); how long the vectors are that the weights
multiply (Kobayashi et al. 2020); where a head looks from words its function does not concern; and what happens when
the weights are taken away.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from helpers.corpora.treebanks import Sentence
from helpers.engine import adapters, attention, shards, tasks
from helpers.engine.encoders import Encoder, EncoderError
from helpers.engine.estimates import REPLICATES, Additive, Estimate, StreamingMean
from helpers.engine.tasks import IGNORED, Asked, Example
from helpers.engine.tokens import WINDOW, Batch, Batches, to_words

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


def _ask(
    encoder: Encoder, examples: Sequence[Example], sums: Additive, *, seed: int, batch_size: int, doing: str
) -> None:
    """Show examples of at most 128 tokens with hidden words to ``sums.add``, in parts (:mod:`helpers.engine.shards`)."""
    size = batch_size * WINDOW * -(-shards.batches_per_shard() // WINDOW)
    starts = range(0, len(examples), size)
    pieces = ((start, examples[start : start + size]) for start in starts)
    parts = ((start, some, sums.part(range(start, start + len(some)))) for start, some in pieces)
    what = f"{encoder.name}: {doing}, {len(examples)} segments"
    measured = shards.each(encoder, _ask_part, parts, seed, batch_size, what=what, total=len(starts))
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


# ---------------------------------------------------------------------------------------- gradients


def gradients(encoder: Encoder, asked: Asked, see: Callable[[int, Tensor, Tensor], None]) -> Float[Tensor, "batch"]:
    """Differentiate the loss with respect to every attention weight.

    What is differentiated is the *sum* of the examples' own losses: an example has no part in the loss of another, so
    each gets its own gradient, whatever else is in the batch.

    Args:
        see: called as ``see(layer, probabilities, gradient)``, both [batch, head, query, key], from the last layer
            down; no more than one layer's gradient exists at a time.

    Returns:
        each example's loss, see :func:`helpers.engine.tasks.losses`.
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
        return _over_other(getattr(self, of))


class GradientSums(Additive):
    """Sums of the gradients' sizes; shown to :func:`gradients` batch by batch.

    Args:
        documents: for each input, the number of its document (the unit of the bootstrap).
    """

    ADDED = ("sizes", "share", "predicted", "loss", "segments", "tokens")
    PER_INPUT = ("documents",)

    def __init__(self, encoder: Encoder, documents: Sequence[int], *, replicates: int = REPLICATES, seed: int = 0):
        self.encoder, self.documents, self.seed = encoder, documents, seed
        shape, how = (encoder.layers, encoder.heads, len(KINDS)), {"replicates": replicates, "seed": seed}
        self.sizes = StreamingMean((*shape, 2), denominators=(encoder.layers, 1, len(KINDS), 1), **how)
        self.share = StreamingMean(shape, denominators=(encoder.layers, 1, 1), **how)
        self.predicted = StreamingMean(shape, denominators=(encoder.layers, 1, 1), **how)
        self.loss = StreamingMean((), **how)
        self.segments = self.tokens = 0

    def add(self, asked: Asked) -> None:
        """Run a batch forwards and backwards and add what it shows."""
        self._numbers = [self.documents[i] for i in asked.example]
        self._kinds, self._real = kinds(asked.batch, asked), asked.batch.mask.float()
        self.loss.add(self._numbers, _numpy(gradients(self.encoder, asked, self._see)), np.ones(len(self._numbers)))
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
        sums = {name: (column @ member)[:, :, 0].double().cpu().numpy() for name, column in columns.items()}
        queries, keys = (t.double().cpu().numpy() for t in (self._real.sum(-1), self._kinds.sum(-2)))
        numbers, ones = self._numbers, np.ones((len(queries), 1, 1))
        both = np.stack([sums["gradient"], sums["moved"]], axis=-1)
        self.sizes.add(numbers, both, (queries[:, None] * keys)[:, None, :, None], at=(layer,))
        self.share.add(numbers, sums["share"], queries[:, None, None], at=(layer,))
        self.predicted.add(numbers, sums["predicted"], ones, at=(layer,))

    def merge(self, other: "GradientSums") -> "GradientSums":
        """Sums over both; they must cover different segments."""
        merged = GradientSums(self.encoder, self.documents, replicates=0, seed=self.seed)
        for name in ("sizes", "share", "predicted", "loss"):
            setattr(merged, name, getattr(self, name).merge(getattr(other, name)))
        merged.segments, merged.tokens = self.segments + other.segments, self.tokens + other.tokens
        return merged

    def result(self) -> Sensitivity:
        sizes = self.sizes.estimate()
        return Sensitivity(
            sizes[..., 0],
            sizes[..., 1],
            self.share.estimate(),
            self.predicted.estimate(),
            self.loss.estimate(),
            self.segments,
            self.tokens,
        )


def sensitivity(encoder: Encoder, examples: Sequence[Example], *, seed: int = 0, batch_size: int = 16) -> Sensitivity:
    """Gradients of the loss on hidden words with respect to all attention weights of all examples.

    Args:
        encoder: loaded with ``task="mlm"``.
        examples: segments of two paragraphs, ``tasks.examples("mlm", ...)``; cut to 128 tokens.
        seed: of the hidden words and of the bootstrap over documents.
    """
    sums = GradientSums(encoder, [e.document for e in examples], seed=seed)
    _ask(encoder, examples, sums, seed=seed, batch_size=batch_size, doing="gradients")
    return sums.result()


def untrained(encoder: Encoder, *, seed: int = 0) -> Encoder:
    """The same encoder with a head for hidden words that has learned nothing: what gradients show without any skill."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = adapters.new_head(encoder.model, "mlm")
    return replace(encoder, head=head.eval().requires_grad_(False).to(encoder.device))


# ---------------------------------------------------------------------------------------- norms


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

    def weighted_share(self) -> Estimate:
        """``weighted`` as a share of its sum over the kinds, (layer, head, kind)."""
        return _shares(self.weighted)

    def ratio(self) -> Estimate:
        """Mean norm over a layer's heads for each kind, as a multiple of that of other tokens, (layer, kind)."""
        return _over_other(self.norm)


class NormSums(Additive):
    """Sums for :class:`Norms`; an observer for :func:`helpers.engine.attention.sweep`."""

    ADDED = ("rows", "norm", "segments")
    PER_INPUT = ("documents",)

    def __init__(self, encoder: Encoder, documents: Sequence[int], *, replicates: int = REPLICATES, seed: int = 0):
        self.encoder, self.documents, self.seed = encoder, documents, seed
        self.attach(encoder)
        shape, how = (encoder.layers, encoder.heads, len(KINDS)), {"replicates": replicates, "seed": seed}
        self.rows = StreamingMean((*shape, 3), denominators=(encoder.layers, 1, 1, 1), **how)
        self.norm = StreamingMean(shape, denominators=(encoder.layers, 1, len(KINDS)), **how)
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
        joint = [
            (norms(probabilities @ (values * member[..., kind, None]), output) * real[:, :, 0]).sum(-1)
            for kind in range(len(KINDS))
        ]
        per_kind = [columns[:, :, None] @ member, (columns * length)[:, :, None] @ member]
        sums = torch.stack([*(p[:, :, 0] for p in per_kind), torch.stack(joint, -1)], dim=-1)
        queries, keys = self._real.sum(-1), self._kinds.sum(-2)
        self.rows.add(self._numbers, _numpy(sums), _numpy(queries)[:, None, None, None], at=(layer,))
        lengths = (length[:, :, None] @ member)[:, :, 0]
        self.norm.add(self._numbers, _numpy(lengths), _numpy(keys)[:, None], at=(layer,))

    def merge(self, other: "NormSums") -> "NormSums":
        """Sums over both; they must cover different segments."""
        merged = NormSums(self.encoder, self.documents, replicates=0, seed=self.seed)
        merged.rows, merged.norm = self.rows.merge(other.rows), self.norm.merge(other.norm)
        merged.segments = self.segments + other.segments
        return merged

    def result(self) -> Norms:
        rows = self.rows.estimate()
        return Norms(rows[..., 0], rows[..., 1], rows[..., 2], self.norm.estimate(), self.segments)


def weigh(encoder: Encoder, examples: Sequence[Example], *, seed: int = 0, batch_size: int = 16) -> Norms:
    """Attention, and attention times the length of what it multiplies, over segments of at most 128 tokens.

    No word is hidden here, and any encoder will do, with or without a head.
    """
    sums = NormSums(encoder, [e.document for e in examples], seed=seed)
    texts, longest = [e.texts for e in examples], min(MOST_TOKENS, encoder.max_length)
    batches = Batches(encoder, texts, batch_size=batch_size, max_length=longest, overlong="truncate")
    attention.sweep(encoder, tqdm(batches, desc=f"{encoder.name}: norms, {len(texts)} segments"), sums)
    return sums.result()


def _numpy(tensor: Tensor) -> NDArray[np.float64]:
    return tensor.double().cpu().numpy()


def _shares(estimate: Estimate) -> Estimate:
    """Parts of the last axis over their sum."""
    value, replicates = estimate.value, estimate.replicates
    return Estimate.of(value / value.sum(-1, keepdims=True), replicates / replicates.sum(-1, keepdims=True))


def over_heads(estimate: Estimate) -> Estimate:
    """Mean over the heads of each layer, (layer, ...)."""
    return Estimate.of(estimate.value.mean(1), estimate.replicates.mean(2))


def _over_other(estimate: Estimate) -> Estimate:
    """Mean over heads, then each kind over the last one."""
    mean = over_heads(estimate)
    return Estimate.of(mean.value / mean.value[..., -1:], mean.replicates / mean.replicates[..., -1:])


# ---------------------------------------------------------------------------------------- a head off duty

GROUPS = ("on duty", "other nouns", "no nouns", "punctuation", "off duty")
"""Kinds of attending word: those that the head's function concerns; nouns and pronouns that it does not; words of other
kinds; punctuation; and all that are neither on duty nor punctuation."""

PLACES = ("cls", "sep", "self", "partner", "other")
"""Where a word's attention goes: the special tokens, the word itself, its partner in the tree, other words."""

NOUNS = ("NOUN", "PROPN", "PRON")


@dataclass(frozen=True)
class Duty:
    """Where words look, on and off a head's duty.

    Attributes:
        share: share of word-level attention, (layer, head, group, place), see :data:`GROUPS` and :data:`PLACES`.
        count: (group,), number of words.
    """

    share: Estimate
    count: NDArray[np.int64]

    def sink(self, group: str) -> Estimate:
        """Attention to [CLS] and [SEP] together from a group of words, (layer, head)."""
        here = self.share[:, :, GROUPS.index(group)]
        return Estimate.of(here.value[..., :2].sum(-1), here.replicates[..., :2].sum(-1))

    def of_rest(self, group: str) -> Estimate:
        """Attention to [CLS] and [SEP] as a share of what does not go to the word's partner, (layer, head)."""
        here = self.share[:, :, GROUPS.index(group)]
        partner = PLACES.index("partner")
        return Estimate.of(*(x[..., :2].sum(-1) / (1 - x[..., partner]) for x in (here.value, here.replicates)))

    def retreat(self, group: str = "off duty") -> Estimate:
        """How much more a group of words attends to [CLS] and [SEP] than those on duty, (layer, head)."""
        return self.sink(group) - self.sink(GROUPS[0])


class DutySums(Additive):
    """Sums for :class:`Duty`; an observer for :func:`helpers.engine.attention.sweep` over sentences given as words.

    Args:
        functions: relation -> 0 if the dependent attends to its governor, 1 if the governor attends to its dependent.
    """

    ADDED = ("sums",)
    PER_INPUT = ("sentences",)

    def __init__(
        self,
        encoder: Encoder,
        sentences: Sequence[Sentence],
        functions: Mapping[str, int],
        *,
        replicates: int = REPLICATES,
        seed: int = 0,
    ) -> None:
        self.encoder, self.sentences, self.functions, self.seed = encoder, sentences, functions, seed
        kept = (len(functions), len(GROUPS), len(PLACES))
        shape, denominators = (encoder.layers, encoder.heads, *kept), (encoder.layers, 1, *kept[:-1], 1)
        self.sums = StreamingMean(shape, denominators=denominators, replicates=replicates, seed=seed)

    def __call__(self, batch: Batch, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        words = to_words(probabilities, batch)
        if layer == 0:
            self._groups, self._governors = self._marks(batch, words)
            self._cls, self._sep = (_units(batch, at, words) for at in (batch.cls, batch.sep))
        ends = [(words * at[:, None, None]).sum(-1) for at in (self._cls, self._sep)]
        same, whole = words.diagonal(dim1=-2, dim2=-1), words.sum(-1)
        places = []  # one for each direction
        for partners in (self._governors, self._governors.mT):
            partner = (words * partners[:, None]).sum(-1)
            places.append(torch.stack([*ends, same, partner, whole - sum(ends) - same - partner], dim=-1))
        sums = [self._groups[:, None, f] @ places[d] for f, d in enumerate(self.functions.values())]
        counts = _numpy(self._groups.sum(-1))[:, None, :, :, None]
        self.sums.add(list(batch.index), _numpy(torch.stack(sums, dim=2)), counts, at=(layer,))

    def _marks(self, batch: Batch, words: Tensor) -> tuple[Tensor, Tensor]:
        """Each word's group, [batch, function, group, unit], and its governor, [batch, unit, unit]."""
        size, _, units, _ = words.shape
        groups, governors = (
            words.new_zeros(size, len(self.functions), len(GROUPS), units),
            words.new_zeros(size, units, units),
        )
        for row, number in enumerate(batch.index):
            tree = self.sentences[number]
            links = [(w, g, r) for w, (g, r) in enumerate(zip(tree.governors, tree.relations, strict=True)) if g >= 0]
            for word, governor, _ in links:
                governors[row, 1 + word, 1 + governor] = 1  # unit 0 is [CLS]
            for function, (relation, direction) in enumerate(self.functions.items()):
                on_duty = {(w, g)[direction] for w, g, r in links if r == relation}
                for word, tag in enumerate(tree.upos):
                    group = 3 if tag == "PUNCT" else 0 if word in on_duty else 1 if tag in NOUNS else 2
                    groups[row, function, [group, 4] if group in (1, 2) else [group], 1 + word] = 1
        return groups, governors

    def merge(self, other: "DutySums") -> "DutySums":
        """Sums over both; they must cover different sentences."""
        merged = DutySums(self.encoder, self.sentences, self.functions, replicates=0, seed=self.seed)
        merged.sums = self.sums.merge(other.sums)
        return merged

    def result(self) -> dict[str, Duty]:
        found = self.sums.estimate()
        counts = self.sums.denominator[0, 0, 0, :, :, 0].astype(np.int64)
        return {relation: Duty(found[:, :, n], counts[n]) for n, relation in enumerate(self.functions)}


def _units(batch: Batch, marks: Tensor, words: Tensor) -> Float[Tensor, "batch unit"]:
    """1 at the units of marked special tokens."""
    found = words.new_zeros(len(words), words.shape[-1])
    rows, columns = marks.nonzero(as_tuple=True)
    found[rows, batch.unit[rows, columns]] = 1
    return found


def duties(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    functions: Mapping[str, int],
    *,
    seed: int = 0,
    batch_size: int = 32,
) -> dict[str, Duty]:
    """Where each group of words looks, for all heads and several relations in one pass, with intervals over sentences.

    Args:
        sentences: with trees, each short enough for the model.
        functions: relation -> direction, see :class:`DutySums`.
    """
    sums = DutySums(encoder, sentences, functions, seed=seed)
    batches = Batches(encoder, [list(s.words) for s in sentences], batch_size=batch_size)
    attention.sweep(encoder, tqdm(batches, desc=f"{encoder.name}: {len(sentences)} sentences"), sums)
    return sums.result()


# ---------------------------------------------------------------------------------------- removing the sink


@dataclass(frozen=True)
class Removal:
    """What is taken out of the attention.

    Attributes:
        what: ``special`` ([CLS] and [SEP]), ``cls``, ``sep``; ``random``: as much as the row gives to special tokens,
            but from others, or all that these have; ``matched``: from special tokens, just as much as ``random`` takes.
        layer: where, from 0; None: in every layer.
        renormalise: divide the rest of each row by its sum, so that it sums to 1 again.
        draw: which random order of the tokens.
    """

    what: str
    layer: int | None
    renormalise: bool
    draw: int = 0


def removals(layers: int, *, draws: int = 2) -> tuple[Removal, ...]:
    """The chapter's: special tokens, and random others, in each layer and in all, with and without renormalising."""
    whats = [("special", 0), ("matched", 0), *(("random", draw) for draw in range(draws))]
    places = [*range(layers), None]
    found = [Removal(what, layer, r, draw) for r in (False, True) for layer in places for what, draw in whats]
    return (*found, *(Removal(what, None, r) for r in (False, True) for what in ("cls", "sep")))


def without(
    probabilities: Float[Tensor, "batch head query key"], keys: Bool[Tensor, "batch key"]
) -> Float[Tensor, "batch head query key"]:
    """Attention with the weights to some tokens set to 0."""
    return probabilities.masked_fill(keys[:, None, None], 0.0)


def thinned(
    probabilities: Float[Tensor, "batch head query key"],
    keys: Bool[Tensor, "batch key"],
    order: Int[Tensor, "batch key"],
) -> Float[Tensor, "batch head query key"]:
    """Attention from which each row loses as much weight as it gives to ``keys``, but from other tokens.

    They are emptied one after another in the order given, the last one in part; a row that gives more than half of its
    weight to ``keys`` has less than that to lose and loses all of it.
    """
    order = order[:, None, None].expand_as(probabilities)
    budget = (probabilities * keys[:, None, None]).sum(-1, keepdim=True)
    weights = without(probabilities, keys).gather(-1, order)
    taken = (budget - (weights.cumsum(-1) - weights)).clamp_min(0).minimum(weights)
    return probabilities - torch.zeros_like(taken).scatter(-1, order, taken)


def matched(
    probabilities: Float[Tensor, "batch head query key"], keys: Bool[Tensor, "batch key"]
) -> Float[Tensor, "batch head query key"]:
    """Attention from which ``keys`` lose as much of each row as :func:`thinned` takes from the others, in proportion."""
    budget = (probabilities * keys[:, None, None]).sum(-1, keepdim=True)
    others = without(probabilities, keys).sum(-1, keepdim=True)
    part = budget.minimum(others) / budget.clamp_min(torch.finfo(budget.dtype).tiny)
    return probabilities * (1 - part * keys[:, None, None])


def renormalised(probabilities: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
    """Rows divided by their sum; a row of zeros stays one."""
    sums = probabilities.sum(-1, keepdim=True)
    return probabilities / sums.clamp_min(torch.finfo(probabilities.dtype).tiny)


def editor(removal: Removal, batch: Batch, *, seed: int = 0) -> attention.Editor:
    """The removal as an editor for this batch.

    Args:
        seed: of the random orders; a segment's order depends on it, on ``removal.draw`` and on the segment's number.
    """
    keys = {"cls": batch.cls, "sep": batch.sep}.get(removal.what, batch.cls | batch.sep)
    order = _orders(batch, [seed, removal.draw]) if removal.what == "random" else None

    def edit(layer: int, probabilities: Tensor) -> Tensor:
        if removal.layer not in (None, layer):
            return probabilities
        if order is not None:
            left = thinned(probabilities, keys, order)
        else:
            left = (matched if removal.what == "matched" else without)(probabilities, keys)
        return renormalised(left) if removal.renormalise else left

    return edit


def _orders(batch: Batch, seed: Sequence[int]) -> Int[Tensor, "batch key"]:
    """A random order of each input's real tokens, then its padding."""
    orders = torch.arange(batch.ids.shape[1]).repeat(len(batch.index), 1)
    for row, (number, length) in enumerate(zip(batch.index, batch.lengths.tolist(), strict=True)):
        orders[row, :length] = torch.from_numpy(np.random.default_rng([*seed, number]).permutation(length))
    return orders.to(batch.ids.device)


@dataclass(frozen=True)
class Removed:
    """How the loss changes when attention is taken away.

    Attributes:
        removals: what was tried.
        change: (removal,), mean over segments of the loss with minus the loss without the removal, in nats.
        loss: of the untouched model.
        mass: (layer, 2), mean share of attention that goes to special tokens, and that the others can give up for it.
        segments: how many were measured.
    """

    removals: tuple[Removal, ...]
    change: Estimate
    loss: Estimate
    mass: Estimate
    segments: int

    def by_layer(self, what: str, renormalise: bool) -> Estimate:
        """The change for a removal in each layer, and last in all of them, (layer + 1,); mean over random draws."""
        layers = [*sorted({r.layer for r in self.removals if r.layer is not None}), None]
        return _stack([self.at(what, layer, renormalise) for layer in layers])

    def at(self, what: str, layer: int | None, renormalise: bool) -> Estimate:
        """The change for one removal; mean over random draws."""
        here = self._places(what, layer, renormalise)
        return Estimate.of(self.change.value[here].mean(-1), self.change.replicates[:, here].mean(-1))

    def draws(self, layer: int | None, renormalise: bool) -> NDArray[np.float64]:
        """The change for each random draw."""
        return self.change.value[self._places("random", layer, renormalise)]

    def _places(self, *wanted: object) -> list[int]:
        return [n for n, r in enumerate(self.removals) if (r.what, r.layer, r.renormalise) == wanted]


def _stack(estimates: Sequence[Estimate]) -> Estimate:
    return Estimate.of(np.stack([e.value for e in estimates]), np.stack([e.replicates for e in estimates], axis=-1))


def remove(
    encoder: Encoder, examples: Sequence[Example], *, draws: int = 2, seed: int = 0, batch_size: int = 16
) -> Removed:
    """Take attention away and measure what it does to the loss on hidden words, segment by segment.

    Args:
        encoder, examples: as in :func:`sensitivity`.
        draws: random orders in which other tokens lose the same weight.
        seed: of the hidden words (the same as in :func:`sensitivity`), the orders and the bootstrap over documents.
    """
    sums = RemovalSums(encoder, [e.document for e in examples], removals(encoder.layers, draws=draws), seed=seed)
    _ask(encoder, examples, sums, seed=seed, batch_size=batch_size, doing=f"{len(sums.tried)} removals")
    return Removed(sums.tried, sums.change.estimate(), sums.plain.estimate(), sums.mass.estimate(), len(examples))


class RemovalSums(Additive):
    """Sums of what removals do to the loss.

    Args:
        documents: for each input, the number of its document (the unit of the bootstrap).
        tried: the removals.
        seed: of the bootstrap and of the random orders.
    """

    ADDED = ("change", "plain", "mass")
    PER_INPUT = ("documents",)

    def __init__(self, encoder: Encoder, documents: Sequence[int], tried: tuple[Removal, ...], *, seed: int) -> None:
        self.encoder, self.documents, self.tried, self.seed = encoder, documents, tried, seed
        self.change, self.plain = (
            StreamingMean(shape, denominators=(1,) * len(shape), seed=seed) for shape in ((len(tried),), ())
        )
        self.mass = StreamingMean((encoder.layers, 2), denominators=(encoder.layers, 1), seed=seed)

    def add(self, asked: Asked) -> None:
        """Measure a batch's loss as it is and under every removal."""
        numbers, ones = [self.documents[i] for i in asked.example], np.ones(len(asked.example))

        def look(layer: int, p: Tensor, _: object) -> None:
            self.mass.add(numbers, *_mass(p, asked.batch), at=(layer,))

        with torch.inference_mode():
            with attention.tap(self.encoder, observe=look):
                before = tasks.losses(self.encoder, asked)
            after = []
            for removal in self.tried:
                with attention.tap(self.encoder, edit=editor(removal, asked.batch, seed=self.seed)):
                    after.append(tasks.losses(self.encoder, asked))
        self.plain.add(numbers, _numpy(before), ones)
        self.change.add(numbers, _numpy(torch.stack(after, -1) - before[:, None]), ones[:, None])


def _mass(probabilities: Tensor, batch: Batch) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weight of each row on special tokens, and what others can give up for it: sums over rows and heads, and counts."""
    to_special = (probabilities * (batch.cls | batch.sep)[:, None, None]).sum(-1)  # [batch, head, query]
    both = torch.stack([to_special, to_special.minimum(1 - to_special)], dim=-1)
    sums = (both * batch.mask[:, None, :, None]).sum((1, 2))
    return _numpy(sums), _numpy(batch.lengths * probabilities.shape[1])[:, None]


# ---------------------------------------------------------------------------------------- recording


def as_dict(sensed: Sensitivity, weighed: Norms, removed: Removed, *, control: Norms | None = None) -> dict[str, Any]:
    """Numbers for :func:`helpers.record.results.record`, by layer; head by head where the figures show heads."""
    kinds = {"kinds": list(KINDS), "segments": sensed.segments, "hidden_tokens": sensed.tokens}
    return {
        **kinds,
        "loss": sensed.loss,
        "gradient": over_heads(sensed.gradient),
        "moved": over_heads(sensed.moved),
        "gradient_ratio": sensed.ratio(),
        "moved_ratio": sensed.ratio("moved"),
        "predicted": predicted_by_layer(sensed),
        "norms": norms_as_dict(weighed),
        "removed": removed_as_dict(removed),
    }


def norms_as_dict(weighed: Norms) -> dict[str, Estimate]:
    """Attention, weighted attention and norms by layer and kind."""
    return {
        "share": over_heads(weighed.share),
        "weighted_share": _shares(over_heads(weighed.weighted)),
        "weighted": over_heads(weighed.weighted),
        "joint": over_heads(weighed.joint),
        "norm": over_heads(weighed.norm),
        "norm_ratio": weighed.ratio(),
    }


def predicted_by_layer(sensed: Sensitivity) -> Estimate:
    """Change of the loss, to first order, if attention to [CLS] and [SEP] vanished from a layer, (layer,)."""
    predicted = sensed.predicted
    return Estimate.of(predicted.value[..., :2].sum((1, 2)), predicted.replicates[..., :2].sum((2, 3)))


def removed_as_dict(removed: Removed) -> dict[str, Any]:
    """Changes of the loss by layer (the last entry: all layers at once)."""
    found: dict[str, Any] = {"segments": removed.segments, "loss": removed.loss, "mass": removed.mass}
    for renormalise in (False, True):
        special, matched, other = (removed.by_layer(w, renormalise) for w in ("special", "matched", "random"))
        found["renormalised" if renormalise else "as_left"] = {
            "special": special,
            "matched": matched,
            "random": other,
            "difference": matched - other,
            "draws": [removed.draws(layer, renormalise) for layer in (*range(len(special.value) - 1), None)],
            "cls_everywhere": removed.at("cls", None, renormalise),
            "sep_everywhere": removed.at("sep", None, renormalise),
        }
    return found


def duty_as_dict(found: Duty, layer: int, head: int) -> dict[str, Any]:
    """One head's words and places, and how its retreat compares with that of all heads (rank 1: the largest)."""
    retreat = found.retreat()
    return {
        "layer": layer,
        "head": head,
        "groups": list(GROUPS),
        "places": list(PLACES),
        "count": found.count,
        "share": found.share[layer, head],
        "sink": _stack([found.sink(g)[layer, head] for g in GROUPS]),
        "of_rest": _stack([found.of_rest(g)[layer, head] for g in GROUPS]),
        "retreat": {g: found.retreat(g)[layer, head] for g in GROUPS[1:]},
        "rank": int((retreat.value > retreat.value[layer, head]).sum()) + 1,
        "retreat_of_all": retreat.value,
        "retreat_of_all_nouns": found.retreat("other nouns").value,
    }


LAYER_COLUMNS = (
    "model",
    "layer",
    "to [CLS]",
    "attention × length",
    "length, × others",
    "gradient, × others",
    "loss without special tokens",
    "renormalised",
    "without others",
    "renormalised ",
)


def layer_row(values: Mapping[str, Any], layer: int, model: str) -> list[object]:
    """A layer of a recorded :func:`as_dict` as a row of the table with :data:`LAYER_COLUMNS`."""

    def number(record: Mapping[str, Any], *at: int, spec: str) -> str:
        return f"{Estimate.from_record(record)[at]:{spec}}" if at else ""

    norms, removed = values["norms"], values["removed"]
    changes = [
        number(removed[how][what], layer, spec="+.3f")
        for what in ("special", "random")
        for how in ("as_left", "renormalised")
    ]
    return [
        model,
        layer + 1,
        number(norms["share"], layer, 0, spec=".0%"),
        number(norms["weighted_share"], layer, 0, spec=".1%"),
        number(norms["norm_ratio"], layer, 0, spec=".3f"),
        number(values["gradient_ratio"], layer, 0, spec=".3f"),
        *changes,
    ]
