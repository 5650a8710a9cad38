"""The tasks a model with a head can be scored on: examples, losses and scores.

::

    encoder = encoders.load("minilm", task="qa")
    examples = tasks.examples("qa", "xquad")
    scores = tasks.score(encoder, examples)      # per question: exact match and F1
    scores.mean("f1")

Scores are per example and in the order of the examples, so that what a changed model does can be compared
pair by pair with what it did before. :func:`score` runs ordinary forward passes; an
:func:`helpers.engine.attention.tap` around it ablates heads. For gradients there are :func:`batches` and :func:`losses`, and
for long measurements :func:`each`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torchmetrics.functional.text import squad
from tqdm import tqdm

from helpers import corpora
from helpers.corpora import phrases
from helpers.engine import encoders, shards, tokens
from helpers.engine.adapters import LABELS, AdapterError
from helpers.engine.encoders import Encoder
from helpers.engine.tokens import Batch

IGNORED = -100
"""The target of a position that is not asked about."""
MASKED, SHOWN_AS_MASK, SHOWN_AS_ANOTHER = 0.15, 0.8, 0.1  # BERT's rule, Devlin et al. 2019, section 3.1
LONGEST_ANSWER = 30  # tokens
STRIDE = 64  # tokens that two consecutive windows of a long context share
MAX_LENGTH = {"mlm": 256, "qa": 384, "paraphrase": 256, "entailment": 256, "rte": 384, "keywords": 384}
"""Tokens of an input when scoring, special ones included."""


@dataclass(frozen=True)
class Example:
    """One thing to get right.

    Attributes:
        task: a key of :data:`helpers.engine.adapters.LABELS`.
        id: of the question, pair or segment.
        document: number of the article or source it is from, the unit that intervals resample.
        texts: two paragraphs (mlm), question and context (qa), title and text (keywords), or the two sentences of a pair.
        label: the class (pairs only).
        answers: of the question (qa only).
        keyphrases: of the text (keywords only).
    """

    task: str
    id: str
    document: int
    texts: tuple[str, str]
    label: str = ""
    answers: tuple[corpora.Answer, ...] = ()
    keyphrases: tuple[str, ...] = ()

    @property
    def spelled(self) -> phrases.Spelled:
        """Title and text as words and marks."""
        return phrases.spell("\n".join(self.texts))


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


# ---------------------------------------------------------------------------------------- models and examples


def loaded(model: str, wanted: Iterable[str], *, least: int = 0) -> tuple[dict[str, Encoder], list[str]]:
    """The encoder with a head for each task that it has one for, and a sentence for each other task.

    ``rte`` may be answered by a three-class head for ``entailment``.

    Raises:
        AdapterError: when it has a head for fewer than ``least`` of them.
    """
    found, missing = {}, {}
    for task in wanted:
        try:
            found[task] = _headed(model, task)
        except AdapterError as error:
            missing[task] = str(error)
    if len(found) < least:
        reason = next(iter(missing.values()), f"Name some of {', '.join(MAX_LENGTH)}.")
        named = ", ".join([*found, *missing]) or "the tasks named, and none is"
        raise AdapterError(f"This chapter needs a head for at least {least} of {named}. {reason}")
    return found, [f"{task}: left out. {error}" for task, error in missing.items()]


def _headed(model: str, task: str) -> Encoder:
    try:
        return encoders.load(model, task=task)
    except AdapterError:
        if task != "rte":
            raise
        return encoders.load(model, task="entailment")


def examples(
    task: str, corpus: str, split: str | None = None, *, limit: int | None = None, seed: int = 0
) -> list[Example]:
    """Read a corpus as examples of a task.

    Args:
        task: a key of :data:`helpers.engine.adapters.LABELS`.
        corpus: a name of the catalogue or a path; for pairs of the book tier ``encyclopedia`` is enough.
        limit: draw this many at random; all when there are no more.

    For ``rte`` a three-class corpus is read with neutral and contradiction as ``not_entailment``.

    Raises:
        helpers.corpora.readers.CorpusError: when the corpus is not here or is malformed.
    """
    if task not in LABELS:
        raise AdapterError(f"There is no task {task!r}. The tasks are {', '.join(LABELS)}.")
    found = {"mlm": _segments, "qa": _questions, "keywords": _keyed}.get(task, _pairs)(task, corpus, split)
    if limit is None or limit >= len(found):
        return found
    chosen = np.random.default_rng(seed).choice(len(found), size=limit, replace=False)
    return [found[i] for i in sorted(chosen)]


def _segments(task: str, corpus: str, split: str | None) -> list[Example]:
    found = corpora.segments(corpora.read(corpus, split))
    return [Example(task, str(n), s.document, s.texts) for n, s in enumerate(found)]


def _questions(task: str, corpus: str, split: str | None) -> list[Example]:
    found = corpora.questions(corpus, split)
    number = {d: n for n, d in enumerate(dict.fromkeys(q.document for q in found))}
    return [Example(task, q.id, number[q.document], (q.question, q.context), answers=q.answers) for q in found]


def _keyed(task: str, corpus: str, split: str | None) -> list[Example]:
    found = corpora.keyphrases(corpus, split)
    return [Example(task, k.id, n, (k.title, k.text), keyphrases=k.keyphrases) for n, k in enumerate(found)]


def _pairs(task: str, corpus: str, split: str | None) -> list[Example]:
    kind = {"paraphrase": "mrpc", "entailment": "nli"}.get(task, task)
    if corpus == "encyclopedia":
        path = corpora.locate(f"encyclopedia-{'paraphrase' if task == 'paraphrase' else 'entailment'}", "pairs")
        found = corpora.read_pairs(path, kind)
    elif task == "paraphrase":
        found = corpora.pairs(corpus, split, task=kind)
    else:
        known = corpora.sources.entry(corpus, "pairs")
        found = corpora.pairs(corpus, split, task=known.task if known else kind)
    labels = [p.label for p in found]
    if task == "rte":
        labels = ["not_entailment" if label in ("neutral", "contradiction") else label for label in labels]
    if wrong := set(labels) - set(LABELS[task]):
        raise corpora.CorpusError(
            corpus,
            None,
            f"The labels are {', '.join(sorted(map(str, wrong)))}.",
            f"for the task {task!r}, {', '.join(LABELS[task])}.",
        )
    articles: dict[str, int] = {}
    return [
        Example(
            task,
            p.id,
            articles.setdefault(p.id.rsplit("-", 1)[0] if corpus == "encyclopedia" else str(n), len(articles)),
            (p.first, p.second),
            str(label),
        )
        for n, (p, label) in enumerate(zip(found, labels, strict=True))
    ]


# ---------------------------------------------------------------------------------------- inputs


@dataclass(frozen=True, eq=False)
class Asked(tokens.OfTensors):
    """A batch with what is right for it.

    Attributes:
        task: of the examples, a key of :data:`helpers.engine.adapters.LABELS`.
        batch: the inputs. ``batch.index`` numbers the rows' *inputs*; ``example`` says whose they are.
        targets: mlm: [batch, length], the token that was there, :data:`IGNORED` where nothing is asked; qa:
            [batch, 2], first and last token of the answer, :data:`IGNORED` in a window without it; keywords: [batch,
            length], the class of each word at its first piece, :data:`IGNORED` elsewhere; pairs: [batch].
        example: for each row, the number of its example.
        spans: for qa, where each token of the context lies in it, in characters: one array [token, 2] a row.
    """

    task: str
    batch: Batch
    targets: Tensor
    example: tuple[int, ...]
    spans: tuple[Int[np.ndarray, "_ 2"], ...] = ()


@dataclass(frozen=True)
class Window:
    """A question with a stretch of its context; ``start`` is where the stretch begins, in characters."""

    example: int
    texts: tuple[str, str]
    start: int
    answer: tuple[int, int] | None  # in the stretch, in characters


def batches(
    encoder: Encoder,
    examples: Sequence[Example],
    *,
    batch_size: int = 16,
    max_length: int | None = None,
    seed: int = 0,
    first: int = 0,
) -> Iterator[Asked]:
    """Batches of inputs of like length, with their targets.

    Long contexts of questions are cut into overlapping windows, a row each; other long inputs are cut short.

    Args:
        seed: which tokens are masked (mlm); an example's masks depend on the seed and its number only.
        first: number of the first example, when they are a part of many (not for qa).
    """
    if not examples:
        raise tokens.NoWords("There is no example to score.")
    task = examples[0].task
    longest = min(max_length or MAX_LENGTH[task], encoder.max_length)
    if task == "qa":
        rows = [w for n, e in enumerate(examples) for w in windows(encoder, e, n, longest)]
        order = sorted(range(len(rows)), key=lambda i: -len(rows[i].texts[1]))
        for start in range(0, len(order), batch_size):
            yield asked_questions(encoder, [rows[i] for i in order[start : start + batch_size]])
        return
    source = tokens.Batches(
        encoder,
        [texts_of(encoder, e) for e in examples],
        batch_size=batch_size,
        max_length=longest,
        overlong="truncate",
        first=first,
    )
    for batch in source:
        if task == "mlm":
            yield masked(encoder, batch, [(seed, n) for n in batch.index])
        elif task == "keywords":
            yield tagged(batch, examples)
        else:
            targets = classes([examples[n - first] for n in batch.index]).to(encoder.device)
            yield Asked(task, batch, targets, batch.index)


def each(
    encoder: Encoder,
    examples: Sequence[Example],
    function: Callable[..., Any],
    *given: Any,
    what: str,
    batch_size: int = 16,
    max_length: int | None = None,
    seed: int = 0,
    keep: Path | None = None,
) -> Iterator[tuple[Asked, Any]]:
    """Every batch with ``function(encoder, asked, *given)``, measured wherever :mod:`helpers.engine.shards` is told to.

    Args:
        function: of a module, see :func:`helpers.engine.shards.each`.
        what: for the progress bar.
        keep: a folder for finished batches, if the environment names none.

    Other arguments as in :func:`batches`.
    """
    cut = list(batches(encoder, examples, batch_size=batch_size, max_length=max_length, seed=seed))
    found = shards.each(encoder, _on_its_device, cut, function, *given, what=what, total=len(cut), keep=keep)
    yield from zip(cut, tqdm(found, desc=what, total=len(cut)), strict=True)


def _on_its_device(encoder: Encoder, asked: Asked, function: Callable[..., Any], *given: Any) -> Any:
    return function(encoder, asked.to(encoder.device), *given)


def texts_of(encoder: Encoder, example: Example) -> tuple[str, str] | list[str]:
    """What the encoder is given: two texts, or for keywords the words and marks of title and text.

    WikiText's ``<unk>`` is the tokenizer's unknown token, which is never asked about.
    """
    if example.task == "keywords":
        return list(example.spelled.units)
    first, second = (t.replace("<unk>", str(encoder.tokenizer.unk_token)) for t in example.texts)
    return (first, second) if example.task == "mlm" else example.texts


def classes(given: Sequence[Example]) -> Int[Tensor, "batch"]:
    """The pairs' classes as numbers, in the order of :data:`helpers.engine.adapters.LABELS`."""
    return torch.tensor([LABELS[e.task].index(e.label) for e in given])


def first_pieces(batch: Batch) -> Bool[Tensor, "batch length"]:
    """True at the first piece of each word or mark of the given texts."""
    before = torch.nn.functional.pad(batch.unit, (1, 0), value=-1)[:, :-1]
    return (batch.text >= 0) & (batch.unit != before)


def tagged(batch: Batch, examples: Sequence[Example]) -> Asked:
    """The class of each word of each row (:func:`helpers.corpora.phrases.tags`), at its first piece.

    Args:
        examples: those that ``batch.index`` numbers.
    """
    targets = torch.full_like(batch.ids, IGNORED)
    for row, first in enumerate(first_pieces(batch)):
        example = examples[batch.index[row]]
        wanted = torch.full((len(example.spelled.units),), IGNORED)
        wanted[list(example.spelled.places)] = torch.tensor(phrases.tags(example.spelled, example.keyphrases))
        targets[row, first] = wanted[: int(first.sum())].to(targets)
    return Asked("keywords", batch, targets, batch.index)


def masked(encoder: Encoder, batch: Batch, keys: Sequence[tuple[int, ...]], share: float = MASKED) -> Asked:
    """Hide tokens after BERT's rule: of 15 % of them, 80 % become the mask, 10 % another word, 10 % stay.

    Args:
        keys: seeds, one a row.
        share: how many of the row's words and pieces are hidden, rounded, at least 1.
    """
    ids, targets = batch.ids.clone(), torch.full_like(batch.ids, IGNORED)
    unknown, mask = encoder.tokenizer.unk_token_id, encoder.tokenizer.mask_token_id
    if mask is None:
        raise AdapterError(f"The tokenizer of {encoder.name!r} has no mask token, so no words can be hidden.")
    special = set(encoder.tokenizer.all_special_ids)
    words = np.array([i for i in range(len(encoder.tokenizer)) if i not in special])
    candidates = (batch.mask & ~batch.special & (batch.ids != (-1 if unknown is None else unknown))).cpu().numpy()
    for row, key in enumerate(keys):
        random = np.random.default_rng(list(key))
        places = candidates[row].nonzero()[0]
        if not len(places):
            continue
        chosen = random.permutation(places)[: max(1, round(share * len(places)))]
        targets[row, chosen] = batch.ids[row, chosen]
        fate = random.random(len(chosen))
        others = words[random.integers(len(words), size=len(chosen))]
        ids[row, chosen[fate < SHOWN_AS_MASK]] = mask
        swap = (fate >= SHOWN_AS_MASK) & (fate < SHOWN_AS_MASK + SHOWN_AS_ANOTHER)
        ids[row, chosen[swap]] = torch.from_numpy(others[swap]).to(ids)
    return Asked("mlm", replace(batch, ids=ids), targets, batch.index)


def windows(encoder: Encoder, example: Example, number: int, max_length: int) -> list[Window]:
    """The question with overlapping stretches of its context, each of at most ``max_length`` tokens.

    Stretches begin and end between words, and share :data:`STRIDE` tokens or a little more.
    """
    question, context = example.texts
    room = room_for_context(encoder, question, max_length)
    spans, words = tokens_of(encoder, context)
    starts = [n for n in range(len(words)) if n == 0 or words[n] != words[n - 1]]
    found, begin = [], 0
    while True:
        end = len(words) if begin + room >= len(words) else max(s for s in starts if s <= begin + room)
        found.append(window(example, number, int(spans[begin, 0]), int(spans[end - 1, 1])))
        if end == len(words):
            return found
        begin = max(s for s in starts if s <= max(end - min(STRIDE, room // 2), begin + 1))


def room_for_context(encoder: Encoder, question: str, max_length: int) -> int:
    """Tokens left for the context, with a margin of two for tokenizers that cut a text's first word in another way."""
    taken = len(encoder.tokenizer(question, add_special_tokens=False, verbose=False)["input_ids"])
    room = max_length - taken - encoder.tokenizer.num_special_tokens_to_add(pair=True) - 2
    if room < 16:
        raise tokens.TooLong(f"The question {question[:60]!r} leaves no room for its context in {max_length} tokens.")
    return room


def tokens_of(encoder: Encoder, text: str) -> tuple[Int[np.ndarray, "token 2"], list[int]]:
    """Where the text's tokens lie in it, in characters, and which word each is a piece of."""
    encoding = encoder.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    return np.array(encoding["offset_mapping"]).reshape(-1, 2), list(encoding.word_ids(0))


def window(example: Example, number: int, begin: int, end: int) -> Window:
    """The stretch of the context from character ``begin`` to ``end``, with the answer if it is there."""
    answer = usual_answer(example)
    inside = answer is not None and begin <= answer.start and answer.start + len(answer.text) <= end
    span = (answer.start - begin, answer.start - begin + len(answer.text)) if answer and inside else None
    return Window(number, (example.texts[0], example.texts[1][begin:end]), begin, span)


def usual_answer(example: Example) -> corpora.Answer | None:
    """The answer that most annotators gave, the first of those where several are."""
    counted = Counter(a.text for a in example.answers)
    return max(example.answers, key=lambda a: counted[a.text]) if example.answers else None


def asked_questions(encoder: Encoder, rows: Sequence[Window]) -> Asked:
    """One batch of windows."""
    batch = tokens.encode(encoder, [row.texts for row in rows], max_length=encoder.max_length)
    spans, targets = [], torch.full((len(rows), 2), IGNORED)
    for n, row in enumerate(rows):
        here, _ = tokens_of(encoder, row.texts[1])
        at = (batch.text[n] == 1).nonzero().flatten().tolist()
        if len(at) != len(here):
            raise AdapterError(
                f"The tokenizer of {encoder.name!r} cuts a context in another way beside a question "
                "than alone, so answers cannot be read from its tokens."
            )
        spans.append(here + row.start)
        if row.answer is not None:
            first = int(np.searchsorted(here[:, 1], row.answer[0], side="right"))
            last = int(np.searchsorted(here[:, 0], row.answer[1], side="left")) - 1
            if first <= last:
                targets[n] = torch.tensor([at[first], at[last]])
    return Asked("qa", batch, targets.to(encoder.device), tuple(r.example for r in rows), tuple(spans))


# ---------------------------------------------------------------------------------------- answers and losses


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
    """The head's logits, classes in the order of :data:`helpers.engine.adapters.LABELS`, in which the targets are.

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


def losses(encoder: Encoder, asked: Asked) -> Float[Tensor, "batch"]:
    """Cross-entropy of each row, in nats, with gradients where the encoder's parameters or editors have them.

    mlm: mean over the hidden tokens; qa: mean of start and end, among the tokens of the context (0 in a window
    without the answer); keywords: mean over the words; pairs: of the class.
    """
    return losses_of(encoder, encoder.model(**asked.batch.inputs).last_hidden_state, asked)


def losses_of(encoder: Encoder, hidden: Float[Tensor, "batch length width"], asked: Asked) -> Float[Tensor, "batch"]:
    """The same, from the encoder's last layer."""
    check(encoder, asked.task)
    if asked.task == "mlm":
        return masked_losses(encoder, hidden, asked)[0]
    return cross_entropy(answers(encoder, hidden, asked), asked)


def cross_entropy(logits: Tensor, asked: Asked) -> Float[Tensor, "batch"]:
    """The same, from the logits (:func:`answers`)."""
    if asked.task in ("mlm", "keywords"):
        per = torch.nn.functional.cross_entropy(logits.flatten(0, 1), asked.targets.flatten(), reduction="none")
        there = asked.targets != IGNORED
        return per.view_as(asked.targets).sum(-1) / there.sum(-1).clamp_min(1)
    if asked.task == "qa":
        outside = asked.batch.text != 1
        logits = logits.masked_fill(outside[..., None], float("-inf"))
        per = torch.nn.functional.cross_entropy(logits, asked.targets, reduction="none")
        return per.mean(-1)
    return torch.nn.functional.cross_entropy(logits, asked.targets, reduction="none")


def masked_losses(
    encoder: Encoder, hidden: Float[Tensor, "batch length width"], asked: Asked
) -> tuple[Float[Tensor, "batch"], Bool[Tensor, "hidden"]]:
    """Loss of each row and, for each hidden token, whether it was restored; only hidden positions meet the vocabulary."""
    there = asked.targets != IGNORED
    assert encoder.head is not None
    logits = (
        encoder.head(hidden, asked.batch)[there] if encoder.head.whole else encoder.head(hidden[there], asked.batch)
    )
    per = torch.nn.functional.cross_entropy(logits, asked.targets[there], reduction="none")
    row = there.nonzero()[:, 0]
    total = torch.zeros(len(there), dtype=per.dtype, device=per.device).index_add(0, row, per)
    return total / there.sum(-1).clamp_min(1), logits.argmax(-1) == asked.targets[there]


# ---------------------------------------------------------------------------------------- scores


@torch.no_grad()
def score(
    encoder: Encoder,
    examples: Sequence[Example],
    *,
    batch_size: int = 16,
    max_length: int | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Scores:
    """Score an encoder with a head on examples of its task.

    A three-class ``entailment`` model may be scored on ``rte``: neutral and contradiction count as ``not_entailment``,
    their probabilities added up.

    Raises:
        AdapterError: when the encoder's head is for another task.
    """
    task = examples[0].task if examples else "none"
    check(encoder, task)
    found = batches(encoder, examples, batch_size=batch_size, max_length=max_length, seed=seed)
    rounds = tqdm(found, desc=f"scoring {task}", unit=" batches", leave=False, disable=not progress)
    count: Callable[..., Scores] = {"mlm": _score_masked, "qa": _score_spans, "keywords": _score_tags}.get(
        task, _score_classes
    )
    return count(encoder, examples, rounds)


def _score_masked(encoder: Encoder, examples: Sequence[Example], rounds: Iterable) -> Scores:
    right, hidden_tokens, loss = (np.zeros(len(examples)) for _ in range(3))
    for asked in rounds:
        hidden = encoder.model(**asked.batch.inputs).last_hidden_state
        per_row, restored = masked_losses(encoder, hidden, asked)
        row = (asked.targets != IGNORED).nonzero()[:, 0].cpu().numpy()
        example = np.array(asked.example)
        np.add.at(right, example[row], restored.cpu().numpy())
        np.add.at(hidden_tokens, example[row], 1)
        loss[example] = per_row.cpu().numpy()
    return _scores(
        examples,
        {"accuracy": right / np.maximum(hidden_tokens, 1), "loss": loss},
        [""] * len(examples),
        hidden_tokens,
    )


def _score_classes(encoder: Encoder, examples: Sequence[Example], rounds: Iterable) -> Scores:
    task = examples[0].task
    chances = np.zeros((len(examples), len(LABELS[task])))
    for asked in rounds:
        hidden = encoder.model(**asked.batch.inputs).last_hidden_state
        chances[list(asked.example)] = answers(encoder, hidden, asked).double().softmax(-1).cpu().numpy()
    answer = classes(examples).numpy()
    best = chances.argmax(-1)
    loss = -np.log(np.maximum(chances[np.arange(len(answer)), answer], 1e-300))
    predictions = [LABELS[task][c] for c in best]
    return _scores(examples, {"accuracy": (best == answer).astype(float), "loss": loss}, predictions)


def _score_spans(encoder: Encoder, examples: Sequence[Example], rounds: Iterable) -> Scores:
    best = np.full(len(examples), -np.inf)
    predictions = [""] * len(examples)
    for asked in rounds:
        logits = encoder.logits(asked.batch).double()
        for row, number in enumerate(asked.example):
            value, first, last = best_span(logits[row, asked.batch.text[row] == 1].cpu().numpy())
            if value > best[number]:
                begin, end = asked.spans[row][first, 0], asked.spans[row][last, 1]
                best[number], predictions[number] = value, examples[number].texts[1][begin:end]
    pairs = [em_and_f1(p, [a.text for a in e.answers]) for p, e in zip(predictions, examples, strict=True)]
    em, f1 = np.array(pairs).T
    return _scores(examples, {"f1": f1, "em": em}, predictions)


def _score_tags(encoder: Encoder, examples: Sequence[Example], rounds: Iterable) -> Scores:
    f1, f1_all, loss = (np.zeros(len(examples)) for _ in range(3))
    predictions = [""] * len(examples)
    for asked in rounds:
        logits = answers(encoder, encoder.model(**asked.batch.inputs).last_hidden_state, asked)
        loss[list(asked.example)] = cross_entropy(logits, asked).double().cpu().numpy()
        best = logits.argmax(-1).cpu()
        for row, number in enumerate(asked.example):
            spelled, wanted = examples[number].spelled, examples[number].keyphrases
            found = best[row, (asked.targets[row] != IGNORED).cpu()].tolist()
            said = phrases.tagged(spelled, found)
            right = [p for p, at in phrases.locate(spelled, wanted).items() if at[0] + len(p.split()) <= len(found)]
            f1[number] = phrases.f1(said, right)
            f1_all[number] = phrases.f1(said, filter(None, map(phrases.normal, wanted)))
            predictions[number] = "; ".join(said)
    return _scores(examples, {"f1": f1, "f1_all": f1_all, "loss": loss}, predictions)


def best_span(logits: Float[np.ndarray, "token 2"]) -> tuple[float, int, int]:
    """The span of at most 30 tokens with the greatest sum of its start and end logits: (sum, first, last)."""
    total = logits[:, 0, None] + logits[None, :, 1]
    ahead = np.arange(len(logits))[None] - np.arange(len(logits))[:, None]
    total = np.where((ahead >= 0) & (ahead < LONGEST_ANSWER), total, -np.inf)
    first, last = divmod(int(total.argmax()), len(logits))
    return float(total[first, last]), first, last


def em_and_f1(prediction: str, answers: Sequence[str]) -> tuple[float, float]:
    """SQuAD's two scores of one answer, from 0 to 1: the best over the answers that annotators gave."""
    given: list[dict[str, Any]] = [{"prediction_text": prediction, "id": "0"}]
    right: list[dict[str, Any]] = [
        {"answers": {"text": list(answers), "answer_start": [0] * len(answers)}, "id": "0"}
    ]
    found = squad(given, right)
    return float(found["exact_match"]) / 100, float(found["f1"]) / 100


def _scores(
    examples: Sequence[Example],
    values: dict[str, np.ndarray],
    predictions: list[str],
    weights: np.ndarray | None = None,
) -> Scores:
    ones = np.ones(len(examples)) if weights is None else weights
    documents = np.array([e.document for e in examples])
    return Scores(examples[0].task, values, ones, documents, tuple(predictions))


def majority(examples: Sequence[Example]) -> float:
    """Accuracy of always giving the most frequent class (pairs), or the most frequent token of the text (mlm): the simple baseline.

    For mlm it is the share of the most frequent lower-case word; for qa and keywords there is none and the answer is NaN.
    """
    task = examples[0].task
    if task in ("qa", "keywords"):
        return float("nan")
    if task == "mlm":
        counted = Counter(w.lower() for e in examples for w in e.texts[0].split())
    else:
        counted = Counter(e.label for e in examples)
    return counted.most_common(1)[0][1] / counted.total()
