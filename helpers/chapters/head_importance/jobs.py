"""What is run: examples of a task with a model that answers it, what its answers are worth, and with what uncertainty."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, norm
from torch import Tensor

from helpers import stats, tasks
from helpers.corpora.sources import CorpusError
from helpers.encoders import Encoder
from helpers.stats import Estimate, Numbers
from helpers.tasks import Asked, Example

Heads = Iterable[tuple[int, int]]
"""Pairs (layer, head), from 0."""

REPLICATES = 9_999
"""Of the bootstrap behind a test: the smallest p-value is 2 / 10,000, which 72 tests together need."""

LEVEL = 0.05
"""False discovery rate (Benjamini & Hochberg 1995)."""


@dataclass(frozen=True, eq=False)
class Job:
    """Examples of a task and the encoder that is scored on them.

    Attributes:
        encoder: loaded with the examples' task, or with ``entailment`` for examples of ``rte``.
        examples: see :func:`helpers.examples.examples`.
        seed: of the hidden words (mlm).
        batch_size: inputs in a batch.
        rows: inputs, times sets of heads, that go through the upper layers together: bounds the memory.
        max_length: tokens of an input (default: the task's).

    Raises:
        helpers.adapters.AdapterError: when the head is for another task.
    """

    encoder: Encoder
    examples: Sequence[Example]
    seed: int = 0
    batch_size: int = 16
    rows: int = 64
    max_length: int | None = None

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
        """Every batch with ``function(encoder, asked, *given)``, with a progress bar (:func:`helpers.tasks.each`)."""
        what = f"{self.encoder.name}, {self.task}: {doing}, {len(self.examples)} examples"
        return tasks.each(self.encoder, self.examples, function, *given, what=what, **self._cut)

    def on(self, chosen: Sequence[int]) -> "Job":
        """The same with some of the examples, by number."""
        return replace(self, examples=[self.examples[n] for n in chosen])

    @property
    def _cut(self) -> dict[str, Any]:
        return {"seed": self.seed, "batch_size": self.batch_size, "max_length": self.max_length}


def job(encoder: Encoder, examples: Sequence[Example], **settings: Any) -> Job:
    """A :class:`Job`; on a processor with small batches, so that what goes through a layer stays in its cache."""
    small = {"batch_size": 1, "rows": 16} if encoder.device.type == "cpu" else {}
    return Job(encoder, examples, **{**small, **settings})


def halves(examples: Sequence[Example], *, seed: int = 0) -> tuple[list[int], list[int]]:
    """Numbers of the examples in two halves of the documents, drawn at random: one to choose on, one to measure on.

    Raises:
        CorpusError: when they are from a single document.
    """
    documents = np.array([e.document for e in examples])
    if len(np.unique(documents)) < 2:
        said = (
            "They are all from one document: heads are chosen on one half of the documents and measured on the other."
        )
        raise CorpusError(f"{len(examples)} examples", None, said, "examples from two documents, better from ten.")
    order = np.random.default_rng(seed).permutation(np.unique(documents))
    first = np.isin(documents, order[: (len(order) + 1) // 2])
    return np.flatnonzero(first).tolist(), np.flatnonzero(~first).tolist()


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
        found[:, LOSS], found[:, COUNT] = numpy_of(loss), numpy_of(there.sum(-1))
        np.add.at(found[:, RIGHT], row, numpy_of(restored))
        return found
    logits = tasks.answers(encoder, hidden, asked)
    found[:, LOSS] = numpy_of(tasks.cross_entropy(logits, asked))
    if asked.task != "qa":
        found[:, COUNT], found[:, RIGHT] = 1, numpy_of(logits.argmax(-1) == asked.targets)
        return found
    found[:, COUNT] = numpy_of((asked.targets != tasks.IGNORED).any(-1))
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
        """The mean with its interval, ``(*tried)``; that of a score stays between 0 and 1."""
        found = resampled(getattr(self, name), self._weights(name), self.documents, seed=seed)
        return found.within(0.0, 1.0) if name == "score" else found

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


def numpy_of(tensor: Tensor) -> NDArray[np.float64]:
    """In float64, on the processor."""
    return tensor.detach().double().cpu().numpy()


def resampled(
    values: Float[np.ndarray, "*shape example"],
    weights: Float[np.ndarray, "example"],
    documents: Int[np.ndarray, "example"],
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Estimate:
    """Weighted means over examples with a bootstrap over documents, all of them on the same draws, ``(*shape)``."""
    pairs = zip(np.moveaxis(values * weights, -1, 0), weights, strict=True)
    return stats.ratio(pairs, documents, seed=seed, replicates=replicates)


def per_document(
    values: Float[np.ndarray, "*shape example"], documents: Int[np.ndarray, "example"]
) -> Float[np.ndarray, "document *shape"]:
    """Sums over the examples of each document."""
    _, which = np.unique(documents, return_inverse=True)
    sums = np.zeros((which.max() + 1, *values.shape[:-1]))
    np.add.at(sums, which, np.moveaxis(values, -1, 0))
    return sums


def p_values(cost: Estimate) -> Numbers:
    """Two-sided bootstrap p-values of "no change": twice the smaller share of replicates on either side of 0."""
    drawn = cost.replicates  # NaN where none of a few documents was drawn
    smaller = np.minimum((drawn <= 0).sum(0), (drawn >= 0).sum(0))
    return np.minimum(1.0, 2 * (1 + smaller) / (1 + np.isfinite(drawn).sum(0)))


def significant(p: Float[np.ndarray, "*shape"]) -> Bool[np.ndarray, "*shape"]:
    """Which p-values stand when all of them are tested together: false discovery rate (Benjamini & Hochberg 1995)."""
    return false_discovery_control(p.ravel()).reshape(p.shape) <= LEVEL


ALONE = 0.01
"""The level at which Michel et al. 2019 test each head by itself."""


def count(cost: Estimate, p: Float[np.ndarray, "..."]) -> dict[str, int]:
    """How many removals help and hurt; how many significantly, all tested together (``significant``) and each ``alone``
    at :data:`ALONE`; ``none``: not a single outcome changes the mean."""
    helps, hurts, stands, alone = cost.value < -1e-12, cost.value > 1e-12, significant(p), p < ALONE
    kinds = {"heads": helps | True, "helps": helps, "hurts": hurts, "none": ~helps & ~hurts}
    kinds |= {"helps_significantly": helps & stands, "hurts_significantly": hurts & stands}
    kinds |= {"helps_alone": helps & alone, "hurts_alone": hurts & alone}
    return {name: int(which.sum()) for name, which in kinds.items()}


def balance(cost: Estimate) -> Estimate:
    """Share of removals that help minus the share that hurt, with a bootstrap over documents."""
    return cost.map(lambda c: (np.sign(-c) * (np.abs(c) > 1e-12)).mean((-2, -1)))


SEEN = 0.8
"""The power that :func:`visible` asks for."""


def visible(cost: Estimate) -> dict[str, float]:
    """The smallest cost of a head that this many examples show in four of five samples: tested ``alone`` at :data:`ALONE`, or
    ``together``, where the first of all heads has to pass :data:`LEVEL` divided by their number.

    From the standard error of the median head, of those whose removal changes anything.
    """
    errors = np.nanstd(cost.replicates, 0)
    error = float(np.median(errors[errors > 0])) if (errors > 0).any() else 0.0
    levels = {"alone": ALONE, "together": LEVEL / errors.size}
    return {name: float(norm.ppf(1 - level / 2) + norm.ppf(SEEN)) * error for name, level in levels.items()}
