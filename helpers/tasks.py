"""The tasks a model with a head can be scored on: examples, losses and scores.

::

    encoder = encoders.load("minilm", task="qa")
    examples = tasks.examples("qa", "xquad")
    scores = tasks.score(encoder, examples)      # per question: exact match and F1
    scores.mean("f1")

Scores are per example and in the order of the examples, so that what a changed model does can be compared
pair by pair with what it did before. :func:`score` runs ordinary forward passes; an
:func:`helpers.attention.tap` around it ablates heads. For gradients there are :func:`helpers.inputs.batches` and :func:`losses`, and
for long measurements :func:`each`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from tqdm import tqdm

from helpers import TASKS, encoders, parallel, phrases
from helpers.adapters import LABELS, AdapterError
from helpers.encoders import Encoder
from helpers.examples import Example
from helpers.examples import examples as examples
from helpers.examples import majority as majority
from helpers.inputs import IGNORED, Asked, batches
from helpers.layers import batched_interventions

LONGEST_ANSWER = 30  # tokens


@dataclass(frozen=True, eq=False)
class Scores:
    """Per example, in the order given.

    Attributes:
        task: what was scored.
        values: name -> [example]. mlm: ``accuracy`` (share of the masked tokens restored), ``loss``; qa: ``f1``, ``em``
            (0 or 1); pairs: ``accuracy`` (0 or 1), ``loss``; keywords: ``f1`` (of the set of phrases, against those
            keyphrases that stand in what was read of the text), ``f1_all`` (against all), ``loss``. The first is the one
            to quote.
        weights: [example], what a mean weighs each with: the number of masked tokens (mlm), else 1.
        documents: [example], the unit to resample.
        predictions: the answer's text (qa), the class (pairs), phrases with semicolons between them (keywords); empty
            strings for mlm.
    """

    task: str
    values: dict[str, Float[np.ndarray, "example"]]
    weights: Float[np.ndarray, "example"]
    documents: Int[np.ndarray, "example"]
    predictions: tuple[str, ...]

    def mean(self, name: str = "") -> float:
        """Weighted mean of a score over all examples (default: the one to quote)."""
        return float(np.average(self.values[name or next(iter(self.values))], weights=self.weights))


def loaded(model: str, wanted: Iterable[str], *, least: int = 0) -> tuple[dict[str, Encoder], list[str]]:
    """The encoder with a head for each task that it has one for, and a sentence for each other task.

    ``rte`` may be answered by a three-class head for ``entailment``.

    Raises:
        AdapterError: when it has a head for fewer than ``least`` of them.
    """
    heads, missing = {}, {}
    for task in wanted:
        for kind in (task, "entailment") if task == "rte" else (task,):
            try:
                heads[task] = encoders.load(model, task=kind)
                break
            except AdapterError as error:
                missing[task] = str(error)
    missing = {task: reason for task, reason in missing.items() if task not in heads}
    if len(heads) < least:
        reason = next(iter(missing.values()), f"Name some of {', '.join(TASKS)}.")
        named = ", ".join([*heads, *missing]) or "the tasks named, and none is"
        raise AdapterError(f"This chapter needs a head for at least {least} of {named}. {reason}")
    return heads, [f"{task}: left out. {error}" for task, error in missing.items()]


def each(
    encoder: Encoder,
    examples: Sequence[Example],
    function: Callable[..., Any],
    *given: Any,
    what: str,
    **options: Any,
) -> Iterator[tuple[Asked, Any]]:
    """Every batch with ``function(encoder, asked, *given)``, measured wherever :mod:`helpers.parallel` is told to.

    Args:
        function: of a module, see :func:`helpers.parallel.each`.
        what: for the progress bar.
        options: of :func:`helpers.inputs.batches`.
    """
    cut = list(batches(encoder, examples, **options))
    results = parallel.each(encoder, _on_its_device, cut, function, *given)
    yield from zip(cut, tqdm(results, desc=what, total=len(cut)), strict=True)


def measure(
    encoder: Encoder,
    examples: Sequence[Example],
    function: Callable[[Encoder, Asked], Any],
    *,
    longest: int | None = None,
    seed: int = 0,
) -> list[Any]:
    """What a function makes of each example alone, in the order of the examples: :func:`helpers.attention.measure` for inputs with targets.

    Args:
        function: called as ``function(encoder, asked)`` with a batch of one input; may be defined in a notebook.
        longest: cut inputs to so many tokens; of a question that needs several windows, one that holds the answer is measured.
        seed: of the tokens that are masked (mlm).
    """
    how = {"what": encoder.name, "batch_size": 1, "max_length": longest, "seed": seed}
    results: dict[int, Any] = {}
    for asked, result in each(encoder, examples, function, **how):
        if asked.example[0] not in results or (asked.targets != IGNORED).any():
            results[asked.example[0]] = result
    return [results[number] for number in range(len(examples))]


def _on_its_device(encoder: Encoder, asked: Asked, function: Callable[..., Any], *given: Any) -> Any:
    return function(encoder, asked.to(encoder.device), *given)


def check(encoder: Encoder, task: str) -> None:
    """Nothing, if the encoder's head is for the task; a three-class ``entailment`` head will do for ``rte``.

    Raises:
        AdapterError: when the head is for another task, or there is none.
    """
    if encoder.head is None or (encoder.task != task and (encoder.task, task) != ("entailment", "rte")):
        raise AdapterError(
            f"{encoder.name!r} was loaded with task={encoder.task!r}, the examples are of {task!r}. "
            f"Load it with task={task!r}."
        )


def answers(encoder: Encoder, hidden: Tensor, asked: Asked) -> Float[Tensor, "batch *token answer"]:
    """The head's logits, classes in the order of :data:`helpers.adapters.LABELS`, in which the targets are.

    The classes of a checkpoint may come in another order. For ``rte`` the probabilities of neutral and
    contradiction are added up.

    Args:
        hidden: the encoder's last layer, [batch, length, width].
    """
    assert encoder.head is not None
    logits, given, wanted = encoder.head(hidden, asked.batch), encoder.head.labels, LABELS[asked.task]
    if given == wanted or not wanted:
        return logits
    merged = [c if c in wanted else "not_entailment" for c in given]
    columns = [[n for n, c in enumerate(merged) if c == name] for name in wanted]
    return torch.stack([logits[..., column].logsumexp(-1) for column in columns], dim=-1)


def losses(
    encoder: Encoder, asked: Asked, smoothing: float = 0.0, hidden: Tensor | None = None
) -> Float[Tensor, "batch"]:
    """Cross-entropy of each row, in nats, with gradients where the encoder's parameters or editors have them.

    mlm: mean over the hidden tokens; qa: mean of start and end, among the tokens of the context (0 in a window
    without the answer); keywords: mean over the words; pairs: of the class.

    Args:
        smoothing: share of a target that is spread over all classes (keywords and pairs, in training).
        hidden: the encoder's last layer [batch, length, width], if it is known already.
    """
    check(encoder, asked.task)
    hidden = encoder.model(**asked.batch.inputs).last_hidden_state if hidden is None else hidden
    if asked.task == "mlm":
        return masked_losses(encoder, hidden, asked)[0]
    return cross_entropy(answers(encoder, hidden, asked), asked, smoothing)


def cross_entropy(logits: Tensor, asked: Asked, smoothing: float = 0.0) -> Float[Tensor, "batch"]:
    """The same, from the logits (:func:`answers`)."""
    how = {"reduction": "none", "label_smoothing": smoothing}
    if asked.task in ("mlm", "keywords"):
        per = torch.nn.functional.cross_entropy(logits.flatten(0, 1), asked.targets.flatten(), **how)
        there = asked.targets != IGNORED
        return per.view_as(asked.targets).sum(-1) / there.sum(-1).clamp_min(1)
    if asked.task == "qa":
        outside = asked.batch.text != 1
        logits = logits.masked_fill(outside[..., None], float("-inf"))
    per = torch.nn.functional.cross_entropy(logits, asked.targets, **how)
    return per.mean(-1) if asked.task == "qa" else per


def masked_losses(
    encoder: Encoder, hidden: Float[Tensor, "batch length width"], asked: Asked
) -> tuple[Float[Tensor, "batch"], Bool[Tensor, "hidden"]]:
    """Loss of each row and, for each hidden token, whether it was restored; only hidden positions meet the vocabulary."""
    there, head = asked.targets != IGNORED, encoder.head
    assert head is not None
    logits = head(hidden, asked.batch)[there] if head.whole else head(hidden[there], asked.batch)
    per = torch.nn.functional.cross_entropy(logits, asked.targets[there], reduction="none")
    row = there.nonzero()[:, 0]
    total = torch.zeros(len(there), dtype=per.dtype, device=per.device).index_add(0, row, per)
    return total / there.sum(-1).clamp_min(1), logits.argmax(-1) == asked.targets[there]


@torch.no_grad()
def score(encoder: Encoder, examples: Sequence[Example], *, progress: bool = False, **options: Any) -> Scores:
    """Score an encoder with a head on examples of its task.

    A three-class ``entailment`` model may be scored on ``rte``: neutral and contradiction count as ``not_entailment``,
    their probabilities added up.

    Args:
        progress: show a bar.
        options: of :func:`helpers.inputs.batches`.

    Raises:
        AdapterError: when the encoder's head is for another task.
    """
    task = examples[0].task if examples else "none"
    check(encoder, task)
    scored, rounds = [], batches(encoder, examples, **options)
    for asked in tqdm(rounds, desc=f"scoring {task}", unit=" batches", leave=False, disable=not progress):
        hidden = encoder.model(**asked.batch.inputs).last_hidden_state
        scored.append((asked, rows(encoder, hidden, asked, examples)))
    results = _by_example(scored)
    values = {name: np.array([row.values[name] for row in results]) for name in results[0].values}
    weights, documents = np.array([row.weight for row in results]), np.array([e.document for e in examples])
    return Scores(task, values, weights, documents, tuple(row.prediction for row in results))


@dataclass(frozen=True)
class Row:
    """What one input scores.

    Attributes:
        values, prediction, weight: as of :class:`Scores`.
        loss: nats.
        certainty: chooses among the windows of a question.
        asked: whether a window holds the answer; without it there is no loss.
    """

    values: dict[str, float]
    loss: float
    prediction: str = ""
    weight: float = 1.0
    certainty: float = 0.0
    asked: bool = True


def rows(encoder: Encoder, hidden: Tensor, asked: Asked, examples: Sequence[Example]) -> list[Row]:
    """What each input of a batch scores, from the encoder's last layer, [row, token, width].

    Args:
        examples: those that ``asked.example`` numbers.
    """
    by_task = {"mlm": _masked_rows, "qa": _span_rows, "keywords": _tagged_rows}
    return list(by_task.get(asked.task, _class_rows)(encoder, hidden, asked, examples))


def _by_example(scored: Iterable[tuple[Asked, Sequence[Row]]]) -> list[Row]:
    """What each example scores: of several windows of a question the one with the surest answer, of equals the first, with the mean loss of
    those that hold the answer.
    """
    windows = defaultdict(list)
    for asked, of_batch in scored:
        for number, row in zip(asked.example, of_batch, strict=True):
            windows[number].append(row)
    results = []
    for _, own in sorted(windows.items()):
        losses = [row.loss for row in own if row.asked]
        surest = max(own, key=attrgetter("certainty"))
        results.append(replace(surest, loss=sum(losses) / max(1, len(losses))))
    return results


def _masked_rows(encoder: Encoder, hidden: Tensor, asked: Asked, _: Sequence[Example]) -> Iterator[Row]:
    losses, restored = masked_losses(encoder, hidden, asked)
    counts = (asked.targets != IGNORED).sum(-1).tolist()
    for loss, right, count in zip(losses.tolist(), restored.split(counts), counts, strict=True):
        yield Row({"accuracy": int(right.sum()) / max(count, 1), "loss": loss}, loss, weight=float(count))


def _class_rows(encoder: Encoder, hidden: Tensor, asked: Asked, _: Sequence[Example]) -> Iterator[Row]:
    logits = answers(encoder, hidden, asked)
    losses, given = cross_entropy(logits, asked).tolist(), logits.argmax(-1).tolist()
    for best, answer, loss in zip(given, asked.targets.tolist(), losses, strict=True):
        yield Row({"accuracy": float(best == answer), "loss": loss}, loss, LABELS[asked.task][best])


def _span_rows(encoder: Encoder, hidden: Tensor, asked: Asked, examples: Sequence[Example]) -> Iterator[Row]:
    logits = answers(encoder, hidden, asked)
    losses, there = cross_entropy(logits, asked).tolist(), (asked.targets != IGNORED).any(-1).tolist()
    logits, context = logits.double().cpu().numpy(), (asked.batch.text == 1).cpu().numpy()
    for row, number in enumerate(asked.example):
        certainty, first, last = best_span(logits[row, context[row]])
        prediction = examples[number].texts[1][asked.spans[row][first, 0] : asked.spans[row][last, 1]]
        em, f1 = em_and_f1(prediction, tuple(answer.text for answer in examples[number].answers))
        yield Row({"f1": f1, "em": em}, losses[row], prediction, certainty=certainty, asked=there[row])


def _tagged_rows(encoder: Encoder, hidden: Tensor, asked: Asked, examples: Sequence[Example]) -> Iterator[Row]:
    """F1 of each row's phrases against those that could be found, and against all."""
    logits = answers(encoder, hidden, asked)
    losses, best = cross_entropy(logits, asked).tolist(), logits.argmax(-1).cpu()
    for row, number in enumerate(asked.example):
        spelled, wanted = examples[number].spelled, examples[number].keyphrases
        tags = np.full(max(asked.words[row], default=-1) + 1, phrases.OUTSIDE)
        tags[asked.words[row]] = best[row, (asked.targets[row] != IGNORED).cpu()].numpy()
        words = phrases.tagged(spelled, tags.tolist())
        right = [p for p, at in phrases.locate(spelled, wanted).items() if at[0] + len(p.split()) <= len(tags)]
        f1 = {"f1": phrases.f1(words, right), "f1_all": phrases.f1(words, filter(None, map(phrases.normal, wanted)))}
        yield Row(f1 | {"loss": losses[row]}, losses[row], "; ".join(words))


def rows_under_edits(
    encoder: Encoder,
    examples: Sequence[Example],
    passes: Sequence[Sequence[Any]],
    edit: Callable[[Asked, int, Any, Tensor], Tensor],
    *,
    batch_size: int = 1,
    **options: Any,
) -> list[list[Row]]:
    """What each example scores in each of several passes, [pass][example]; what passes have in common is computed once.

    Args:
        passes: what is done at each layer, [pass][layer], as for :func:`helpers.layers.batched_interventions`.
        edit: ``edit(asked, layer, step, weights)``, the new weights [row, head, query, key] of a batch; may be defined in a notebook.
        batch_size, options: of :func:`helpers.inputs.batches`.
    """
    check(encoder, examples[0].task)
    options |= {"batch_size": batch_size, "what": f"{len(passes)} passes"}
    scored = list(each(encoder, examples, _rows_in_passes, passes, edit, examples, **options))
    return [_by_example((asked, by_pass[n]) for asked, by_pass in scored) for n in range(len(passes))]


@torch.inference_mode()
def _rows_in_passes(
    encoder: Encoder,
    asked: Asked,
    passes: Sequence[Sequence[Any]],
    edit: Callable[..., Tensor],
    examples: Sequence[Example],
) -> list[list[Row]]:
    states = batched_interventions(encoder, asked.batch, passes, lambda *step: edit(asked, *step))
    together = 16 if asked.task == "mlm" and not encoder.head.whole else 1  # one product with the vocabulary for many
    by_pass, count = [], len(asked.example)
    for some in states.split(together):
        repeated = replace(asked, targets=torch.cat([asked.targets] * len(some)))
        of_all = rows(encoder, some.flatten(0, 1), repeated, examples)
        by_pass += [of_all[n : n + count] for n in range(0, len(of_all), count)]
    return by_pass


def answers_under_edits(
    encoder: Encoder, examples: Sequence[Example], passes: Sequence[Sequence[Any]], edit: Callable[..., Tensor]
) -> tuple[list[list[str]], Float[np.ndarray, "pass example 2"]]:
    """The answer to each question in each of several passes, with its F1 and exact match (:func:`rows_under_edits`)."""
    by_pass = rows_under_edits(encoder, examples, passes, edit)
    scores = [[list(row.values.values()) for row in of_pass] for of_pass in by_pass]
    return [[row.prediction for row in of_pass] for of_pass in by_pass], np.array(scores)


def best_span(logits: Float[np.ndarray, "token 2"]) -> tuple[float, int, int]:
    """The span of at most 30 tokens with the greatest sum of its start and end logits: (sum, first, last)."""
    total = logits[:, 0, None] + logits[None, :, 1]
    ahead = np.arange(len(logits))[None] - np.arange(len(logits))[:, None]
    total = np.where((ahead >= 0) & (ahead < LONGEST_ANSWER), total, -np.inf)
    first, last = divmod(int(total.argmax()), len(logits))
    return float(total[first, last]), first, last


@lru_cache(maxsize=100_000)
def em_and_f1(prediction: str, answers: tuple[str, ...]) -> tuple[float, float]:
    """SQuAD's two scores of one answer, from 0 to 1: the best over the answers that annotators gave (Rajpurkar et al. 2016).

    Most edits of a model leave most answers as they are, which are scored once.
    """
    from torchmetrics.functional.text import squad  # takes seconds to import

    right = {"id": "", "answers": {"text": list(answers)}}
    scores = squad({"id": "", "prediction_text": prediction}, right)
    return float(scores["exact_match"]) / 100, float(scores["f1"]) / 100
