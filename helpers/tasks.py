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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from tqdm import tqdm

from helpers import parallel, phrases
from helpers.adapters import LABELS, AdapterError
from helpers.encoders import Encoder
from helpers.examples import Example
from helpers.examples import examples as examples
from helpers.examples import majority as majority
from helpers.inputs import IGNORED, Asked, batches
from helpers.layers import batched_interventions

LONGEST_ANSWER = 30  # tokens
#: What a task's examples are scored by, where it is not accuracy and loss; the first is the one to quote.
NAMES = {"qa": ("f1", "em"), "keywords": ("f1", "f1_all", "loss")}


@dataclass(frozen=True, eq=False)
class Scores:
    """Of each example, in the order given, in one pass or in several.

    Attributes:
        values: name -> [..., example]. mlm: ``accuracy`` (share of the masked tokens restored), ``loss``; qa: ``f1``, ``em``
            (0 or 1); pairs: ``accuracy`` (0 or 1), ``loss``; keywords: ``f1`` (of the set of phrases, against those
            keyphrases that stand in what was read of the text), ``f1_all`` (against all), ``loss``.
        loss: nats; of a question the mean over the windows that hold the answer, 0 without one.
        weights: what a mean weighs an example with: the number of masked tokens (mlm), else 1.
        documents: the unit to resample.
        predictions: the answer's text (qa), the class (pairs), phrases with semicolons between them (keywords); empty
            strings for mlm.
    """

    values: dict[str, Float[np.ndarray, "... example"]]
    loss: Float[np.ndarray, "... example"]
    weights: Float[np.ndarray, "... example"]
    documents: Int[np.ndarray, "... example"]
    predictions: Shaped[np.ndarray, "... example"]

    @property
    def score(self) -> Float[np.ndarray, "... example"]:
        """The score to quote."""
        return next(iter(self.values.values()))

    def __getitem__(self, where: Any) -> "Scores":
        """Some passes and examples, indexed as an array [..., example]."""
        values = {name: array[where] for name, array in self.values.items()}
        others = self.loss, self.weights, self.documents, self.predictions
        return Scores(values, *(array[where] for array in others))

    def mean(self, name: str = "") -> Any:
        """Weighted mean of a score over the examples (default: the one to quote)."""
        return np.average(self.values[name] if name else self.score, axis=-1, weights=self.weights)


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
    return answers(encoder, hidden, asked, smoothing)[1]


def answers(
    encoder: Encoder, hidden: Float[Tensor, "batch length width"], asked: Asked, smoothing: float = 0.0
) -> tuple[Float[Tensor, "..."], Float[Tensor, "batch"]]:
    """The head's logits, classes in the order of :data:`helpers.adapters.LABELS`, and the loss of each row (:func:`losses`).

    Logits are [batch, token, start or end] (qa, outside the context -inf), [batch, token, class] (keywords), [batch, class] (pairs),
    and [hidden, word] (mlm): only hidden tokens meet the vocabulary, row after row. For ``rte`` the probabilities of neutral and
    contradiction are added up.
    """
    assert encoder.head is not None
    targets, there, head = asked.targets, asked.targets != IGNORED, encoder.head
    if asked.task == "mlm":
        targets = targets[there]
        logits = head(hidden, asked.batch)[there] if head.whole else head(hidden[there], asked.batch)
    else:
        logits = head(hidden, asked.batch)
    wanted = LABELS[asked.task]
    if head.labels != wanted:
        merged = [c if c in wanted else "not_entailment" for c in head.labels]
        columns = [[n for n, c in enumerate(merged) if c == name] for name in wanted]
        logits = torch.stack([logits[..., column].logsumexp(-1) for column in columns], dim=-1)
    if asked.task == "qa":
        logits = logits.masked_fill((asked.batch.text != 1)[..., None], float("-inf"))
    by_class = logits.mT if asked.task == "keywords" else logits
    per = torch.nn.functional.cross_entropy(by_class, targets, reduction="none", label_smoothing=smoothing)
    if asked.task == "mlm":
        row = there.nonzero()[:, 0]
        per = torch.zeros(len(there), 1, dtype=per.dtype, device=per.device).index_add(0, row, per[:, None])
    if asked.task in ("mlm", "keywords"):
        return logits, per.sum(-1) / there.sum(-1).clamp_min(1)
    return logits, per.mean(-1) if asked.task == "qa" else per


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
    rounds = batches(encoder, examples, **options)
    rounds = tqdm(rounds, desc=f"scoring {task}", unit=" batches", leave=False, disable=not progress)
    return _by_example([_scored(encoder, asked, examples) for asked in rounds], examples)[0]


def scores_under_edits(
    encoder: Encoder,
    examples: Sequence[Example],
    passes: Sequence[Sequence[Any]],
    edit: Callable[[Asked, int, Any, Tensor], Tensor],
    *,
    batch_size: int = 1,
    **options: Any,
) -> Scores:
    """What each example scores in each of several passes, [pass, example]; what passes have in common is computed once.

    Args:
        passes: what is done at each layer, [pass][layer], as for :func:`helpers.layers.batched_interventions`.
        edit: ``edit(asked, layer, step, weights)``, the new weights [row, head, query, key] of a batch; may be defined in a notebook.
        batch_size, options: of :func:`helpers.inputs.batches`.
    """
    check(encoder, examples[0].task)
    options |= {"batch_size": batch_size, "what": f"{len(passes)} passes"}
    tables = [table for _, table in each(encoder, examples, _scored, examples, passes, edit, **options)]
    return _by_example(tables, examples)


@torch.no_grad()
def _scored(
    encoder: Encoder,
    asked: Asked,
    examples: Sequence[Example],
    passes: Sequence[Sequence[Any]] = (),
    edit: Callable[..., Tensor] | None = None,
) -> pd.DataFrame:
    """What each input of a batch scores in one ordinary pass or in each edited one: a row for each pass and input, in this order."""
    if passes:
        states = batched_interventions(encoder, asked.batch, passes, partial(edit, asked))
    else:
        states = encoder.model(**asked.batch.inputs).last_hidden_state[None]
    own = {"mlm": _restored, "qa": _spans, "keywords": _phrases}.get(asked.task, _classes)
    together = 1 if asked.task == "mlm" and encoder.head.whole else 16  # passes that go through the head side by side
    tables = []
    for some in states.split(together):
        repeated = asked.repeated(len(some))
        logits, losses = answers(encoder, some.flatten(0, 1), repeated)
        columns = {"loss": losses.tolist(), "prediction": "", "weight": 1.0, "certainty": 0.0, "asked": True}
        tables.append(pd.DataFrame(columns | own(logits, repeated, examples)))
    numbers = {"turn": np.repeat(range(len(states)), len(asked.example)), "example": asked.example * len(states)}
    return pd.concat(tables, ignore_index=True).assign(**numbers)


def _restored(logits: Tensor, asked: Asked, _: Sequence[Example]) -> dict[str, Any]:
    there = asked.targets != IGNORED
    counts = there.sum(-1).tolist()
    restored = (logits.argmax(-1) == asked.targets[there]).split(counts)
    return {"accuracy": [int(row.sum()) / max(1, len(row)) for row in restored], "weight": map(float, counts)}


def _classes(logits: Tensor, asked: Asked, _: Sequence[Example]) -> dict[str, Any]:
    best, names = logits.argmax(-1), LABELS[asked.task]
    return {"accuracy": (best == asked.targets).double().tolist(), "prediction": [names[n] for n in best.tolist()]}


def _spans(logits: Tensor, asked: Asked, examples: Sequence[Example]) -> dict[str, Any]:
    """The best span of each window; ``certainty`` chooses among the windows of a question, ``asked`` says which hold the answer."""
    rows = []
    for row, number in enumerate(asked.example):
        certainty, first, last = best_span(logits[row, asked.batch.text[row] == 1].double().cpu().numpy())
        prediction = examples[number].texts[1][asked.spans[row][first, 0] : asked.spans[row][last, 1]]
        em, f1 = em_and_f1(prediction, tuple(answer.text for answer in examples[number].answers))
        rows.append((f1, em, prediction, certainty, bool((asked.targets[row] != IGNORED).any())))
    return dict(zip(("f1", "em", "prediction", "certainty", "asked"), zip(*rows, strict=True), strict=True))


def _phrases(logits: Tensor, asked: Asked, examples: Sequence[Example]) -> dict[str, Any]:
    """F1 of each row's phrases against those that could be found, and against all."""
    rows = []
    for row, (number, words) in enumerate(zip(asked.example, asked.words, strict=True)):
        spelled, wanted = examples[number].spelled, examples[number].keyphrases
        tags = np.full(max(words, default=-1) + 1, phrases.OUTSIDE)
        tags[words] = logits[row, asked.targets[row] != IGNORED].argmax(-1).cpu().numpy()
        predicted = phrases.tagged(spelled, tags.tolist())
        right = [p for p, at in phrases.locate(spelled, wanted).items() if at[0] + len(p.split()) <= len(tags)]
        every = filter(None, map(phrases.normal, wanted))
        rows.append((phrases.f1(predicted, right), phrases.f1(predicted, every), "; ".join(predicted)))
    return dict(zip(("f1", "f1_all", "prediction"), zip(*rows, strict=True), strict=True))


def _by_example(tables: Sequence[pd.DataFrame], examples: Sequence[Example]) -> Scores:
    """What each example scores: of several windows of a question the one with the surest answer, of equals the first, with the mean loss of
    those that hold the answer.
    """
    table, place = pd.concat(tables), ["turn", "example"]
    ranked = table.sort_values("certainty", ascending=False, kind="stable")
    surest = ranked.drop_duplicates(place).set_index(place).sort_index()
    loss = table[table["asked"]].groupby(place)["loss"].mean()
    surest["loss"] = loss.reindex(surest.index, fill_value=0.0)
    surest["document"] = np.resize([example.document for example in examples], len(surest))
    arrays = {name: column.to_numpy().reshape(-1, len(examples)) for name, column in surest.items()}
    values = {name: arrays[name] for name in NAMES.get(examples[0].task, ("accuracy", "loss"))}
    return Scores(values, *(arrays[name] for name in ("loss", "weight", "document", "prediction")))


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
