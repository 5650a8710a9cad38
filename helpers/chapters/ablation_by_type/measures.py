"""Chapter 10: what becomes of answers to questions when all heads of a type are edited at once.

Four editors over the tap (all weights to 0, all to 1/n, those inside sentences to 0, those between sentences to
0) for any set of heads; the rows of the two tables of Guan et al. 2020, section 5; and what the paper lacks:
the same rows for types dealt anew to the heads of each layer.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from helpers.engine import attention, tasks
from helpers.engine.encoders import Encoder
from helpers.engine.estimates import Estimate, StreamingMean
from helpers.engine.tasks import Asked, Example
from helpers.engine.tokens import Batch

TYPES = ("dense", "diagonal", "dense_vertical", "vertical")
"""The four types of chapter 08."""

ACTIONS = ("keep", "prune", "substitute", "no_intra", "no_inter")
"""What can be done to a head: nothing; all weights to 0; all to 1/n; those inside, or those between, sentences to 0."""

SCORES = ("f1", "em")

Span = tuple[int, float, int, int]
"""An answer: number of the example, sum of two logits, where it begins and ends in the context, in characters."""


# ---------------------------------------------------------------------------------------- the tables' rows


@dataclass(frozen=True)
class Row:
    """A row of one of the paper's tables.

    Attributes:
        id: the paper's number.
        part: ``prune``, ``substitute``, ``one type``, ``all but diagonal`` or ``all but dense_vertical``.
        actions: type -> what is done to its heads, from :data:`ACTIONS`; a type that is not named is kept.
    """

    id: int
    part: str
    actions: Mapping[str, str]

    @property
    def label(self) -> str:
        """What is done, in a few words."""
        done = set(self.actions.values())
        kept = [name for name in TYPES if name not in self.actions]
        whom = ", ".join(map(spoken, self.actions)) if len(self.actions) < 3 else f"all but {spoken(kept[0])}"
        return f"{whom}: {ACTION_LABELS[done.pop()]}"

    @property
    def shade(self) -> str:
        """The type whose colour the row has: the one that is left alone, if only one is, else the first that is edited."""
        kept = [name for name in TYPES if name not in self.actions]
        return kept[0] if len(kept) == 1 else next(iter(self.actions))


ACTION_LABELS = {
    "keep": "as it is",
    "prune": "pruned",
    "substitute": "1/n",
    "no_intra": "no intra",
    "no_inter": "no inter",
}


def spoken(name: str) -> str:
    """The name of a type as it is written in text."""
    return name.replace("_", " & ")


def _all_but(kept: str, action: str) -> dict[str, str]:
    return {name: action for name in TYPES if name != kept}


TABLE2 = (
    Row(2, "prune", {"dense": "prune"}),
    Row(3, "prune", {"diagonal": "prune"}),
    Row(4, "prune", {"dense_vertical": "prune"}),
    Row(5, "prune", {"vertical": "prune"}),
    Row(6, "prune", {"dense": "prune", "vertical": "prune"}),
    Row(7, "prune", {"dense_vertical": "prune", "vertical": "prune"}),
    Row(8, "substitute", {"dense": "substitute"}),
    Row(9, "substitute", {"diagonal": "substitute"}),
    Row(10, "substitute", {"dense_vertical": "substitute"}),
    Row(11, "substitute", {"vertical": "substitute"}),
)
TABLE3 = (
    Row(12, "one type", {"diagonal": "no_intra"}),
    Row(13, "one type", {"diagonal": "no_inter"}),
    Row(14, "one type", {"dense_vertical": "no_intra"}),
    Row(15, "one type", {"dense_vertical": "no_inter"}),
    Row(16, "all but diagonal", _all_but("diagonal", "no_intra")),
    Row(17, "all but diagonal", _all_but("diagonal", "no_inter")),
    Row(18, "all but dense_vertical", _all_but("dense_vertical", "no_intra")),
    Row(19, "all but dense_vertical", _all_but("dense_vertical", "no_inter")),
)
ROWS = {row.id: row for row in (*TABLE2, *TABLE3)}
"""Rows 2 to 19 of the paper; row 1 is the model as it is."""


# ---------------------------------------------------------------------------------------- the editors


@dataclass(frozen=True, eq=False)
class Ablation:
    """What is done to each head of an encoder.

    Attributes:
        actions: [layer, head], from :data:`ACTIONS`.
        span: what counts as a sentence: ``sentence``, or ``text`` for the whole question and the whole passage.
        special: special tokens belong to no sentence and weights from and to them are ``kept``; or each stands
            ``apart`` as a sentence of its own, so that its weight on itself is intra and all others are inter.
        renormalise: divide rows that have lost weights inside or between sentences by their sum.
    """

    actions: np.ndarray
    span: str = "sentence"
    special: str = "kept"
    renormalise: bool = False

    def __post_init__(self) -> None:
        if unknown := set(np.unique(self.actions)) - set(ACTIONS):
            raise ValueError(
                f"Unknown actions {', '.join(sorted(map(str, unknown)))}; there are {', '.join(ACTIONS)}."
            )
        if self.span not in ("sentence", "text"):
            raise ValueError(f"span={self.span!r}: say 'sentence' or 'text'.")
        if self.special not in ("kept", "apart"):
            raise ValueError(f"special={self.special!r}: say 'kept' or 'apart'.")

    @property
    def size(self) -> int:
        """Number of heads that are edited."""
        return int((self.actions != "keep").sum())


def ablation(names: np.ndarray, actions: Mapping[str, str], **options: Any) -> Ablation:
    """The same action for all heads of a type.

    Args:
        names: [layer, head], the type of each head.
        actions: type -> action; types that are not named are kept.
        options: see :class:`Ablation`.

    Raises:
        ValueError: for a type that is none of the four, or an unknown action.
    """
    if unknown := set(actions) - set(TYPES):
        raise ValueError(f"Unknown types {', '.join(sorted(unknown))}; there are {', '.join(TYPES)}.")
    done = np.full(np.shape(names), "keep", dtype=object)
    for name, action in actions.items():
        done[np.asarray(names) == name] = action
    return Ablation(done.astype(str), **options)


def substituted(
    probabilities: Float[Tensor, "batch head query key"], mask: Bool[Tensor, "batch key"]
) -> Float[Tensor, "batch head query key"]:
    """The same weight, 1/n, for each of an input's n real tokens, special ones included; 0 for padding."""
    even = mask.to(probabilities.dtype) / mask.sum(-1, keepdim=True)
    return even[:, None, None].expand_as(probabilities)


def relations(
    batch: Batch, *, span: str = "sentence", special: str = "kept"
) -> tuple[Bool[Tensor, "batch query key"], Bool[Tensor, "batch query key"]]:
    """Which pairs of tokens stand in one sentence (intra) and which in two (inter).

    With ``special="kept"`` a pair with a special token is neither; with ``apart`` each special token is a sentence of its
    own. Pairs with padding are neither.
    """
    place = batch.sentence if span == "sentence" else batch.text
    real = batch.mask & ~batch.special
    if special == "apart":
        numbers = torch.arange(2, 2 + batch.mask.shape[1], device=place.device)
        place, real = torch.where(batch.special, -numbers, place), batch.mask
    both = real[:, :, None] & real[:, None, :]
    same = place[:, :, None] == place[:, None, :]
    return both & same, both & ~same


def without(
    probabilities: Float[Tensor, "batch head query key"],
    pairs: Bool[Tensor, "batch query key"],
    renormalise: bool = False,
) -> Float[Tensor, "batch head query key"]:
    """Attention with the weights of some pairs of tokens set to 0; a row that keeps nothing stays 0."""
    left = probabilities.masked_fill(pairs[:, None], 0.0)
    if not renormalise:
        return left
    return left / left.sum(-1, keepdim=True).clamp_min(torch.finfo(left.dtype).tiny)


def editor(ablation: Ablation, batch: Batch) -> attention.Editor:
    """The ablation as an editor for one batch: each head of a layer is changed as ``ablation.actions`` says."""
    intra, inter = relations(batch, span=ablation.span, special=ablation.special)
    change: dict[str, Callable[[Tensor], Tensor]] = {
        "prune": torch.zeros_like,
        "substitute": lambda p: substituted(p, batch.mask),
        "no_intra": lambda p: without(p, intra, ablation.renormalise),
        "no_inter": lambda p: without(p, inter, ablation.renormalise),
    }

    def edit(layer: int, probabilities: Tensor) -> Tensor:
        actions = set(ablation.actions[layer]) - {"keep"}
        edited = probabilities.clone() if actions else probabilities
        for action in actions:
            heads = np.flatnonzero(ablation.actions[layer] == action)
            edited[:, heads] = change[action](probabilities[:, heads])
        return edited

    return edit


# ---------------------------------------------------------------------------------------- what to compare


def deal(names: np.ndarray, draw: int, *, seed: int = 0) -> np.ndarray:
    """The types dealt anew to the heads of each layer: (layer, head).

    As many heads of each type in each layer as before, so a row of the tables edits as many heads in the same layers.
    Where a layer has one type only, nothing changes.
    """
    rng = np.random.default_rng([seed, draw])
    return np.stack([rng.permutation(layer) for layer in np.asarray(names)])


def table(names: np.ndarray, rows: Iterable[int] = tuple(ROWS), **options: Any) -> dict[str, Ablation]:
    """Rows of the paper's tables, ``"2"`` to ``"19"``. Options as in :class:`Ablation`."""
    return {str(n): ablation(names, ROWS[n].actions, **options) for n in rows}


def controls(names: np.ndarray, draws: int, *, seed: int = 0) -> dict[str, Ablation]:
    """All rows for each of several deals (:func:`deal`): ``"2 dealt 0"``, …"""
    dealt = {draw: table(deal(names, draw, seed=seed)) for draw in range(draws)}
    return {f"{row} dealt {draw}": one for draw, rows in dealt.items() for row, one in rows.items()}


VARIANTS: dict[str, dict[str, Any]] = {
    "renormalised": {"renormalise": True},
    "apart": {"special": "apart"},
    "text": {"span": "text"},
}
"""Other readings of "removing attention inside, or between, sentences"."""


def variants(names: np.ndarray) -> dict[str, Ablation]:
    """The rows of Table 3 under each of :data:`VARIANTS`: ``"12 renormalised"``, …"""
    rows = [row.id for row in TABLE3]
    readings = {name: table(names, rows, **options) for name, options in VARIANTS.items()}
    return {f"{row} {name}": one for name, found in readings.items() for row, one in found.items()}


SINGLE = (2, 3, 4, 5, 12, 13, 14, 15)
"""Rows that edit one type only, but for substitution."""


def retyped(names: np.ndarray) -> dict[str, Ablation]:
    """The rows of :data:`SINGLE` under other types of the same heads: ``"2 tuned"``, …"""
    return {f"{row} tuned": one for row, one in table(names, SINGLE).items()}


def floors(shape: tuple[int, int]) -> dict[str, Ablation]:
    """Every head pruned (no token sees another), and every head even: ``"all prune"`` and ``"all substitute"``."""
    return {f"all {action}": Ablation(np.full(shape, action)) for action in ("prune", "substitute")}


def ladder(shape: tuple[int, int], sizes: Sequence[int], draws: int, *, seed: int = 0) -> dict[str, Ablation]:
    """Random heads from anywhere pruned, more and more of them in one random order: ``"any 12 0"`` (12 heads, draw 0)."""
    found = {}
    for draw in range(draws):
        order = np.random.default_rng([seed, draw]).permutation(shape[0] * shape[1])
        for size in sizes:
            actions = np.full(shape[0] * shape[1], "keep", dtype=object)
            actions[order[:size]] = "prune"
            found[f"any {size} {draw}"] = Ablation(actions.reshape(shape).astype(str))
    return found


# ---------------------------------------------------------------------------------------- scores


BASE = "1"
"""The model as it is, row 1 of the paper."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of each question under each ablation.

    Attributes:
        keys: names of the ablations, the first :data:`BASE`.
        values: [ablation, question, score], F1 and exact match, from 0 to 1.
        documents: [question], the article a question is about; what intervals resample.
        predictions: for each ablation, the answer given to each question.
        seed: of the bootstrap.
    """

    keys: tuple[str, ...]
    values: Float[np.ndarray, "ablation question 2"]
    documents: Int[np.ndarray, "question"]
    predictions: tuple[tuple[str, ...], ...]
    seed: int = 0

    def at(self, key: Hashable) -> int:
        """Where an ablation stands among the keys."""
        if key not in self.keys:
            raise KeyError(f"There is no ablation {key!r}; there are {', '.join(self.keys)}.")
        return self.keys.index(str(key))

    @cached_property
    def means(self) -> Estimate:
        """Mean scores over questions, (ablation, score), with a bootstrap over documents; replicates are shared."""
        sums = StreamingMean(self.values.shape[::2], denominators=(1, 1), seed=self.seed)
        per_question = self.values.transpose(1, 0, 2)
        sums.add(self.documents.tolist(), per_question, np.ones((len(per_question), 1, 1)))
        return _with_data(sums.estimate())

    def mean(self, keys: str | Sequence[str], score: str = "f1") -> Estimate:
        """Mean score under an ablation, or on average under several."""
        return self._average(keys, SCORES.index(score))

    def change(self, keys: str | Sequence[str], score: str = "f1", *, to: str | Sequence[str] = BASE) -> Estimate:
        """What an ablation (or several, on average) changes, on the same questions; compared with the model as it is, or with others."""
        return self.mean(keys, score) - self.mean(to, score)

    def turned(self, key: str) -> Estimate:
        """Share of questions whose F1 falls, stays and rises, (3,)."""
        difference = self.values[self.at(key), :, 0] - self.values[self.at(BASE), :, 0]
        kinds = np.stack([difference < 0, difference == 0, difference > 0], axis=-1).astype(np.float64)
        sums = StreamingMean((3,), denominators=(1,), seed=self.seed)
        sums.add(self.documents.tolist(), kinds, np.ones((len(kinds), 1)))
        return _with_data(sums.estimate())

    def merge(self, other: "Scores") -> "Scores":
        """Both sets of questions; the ablations must be the same."""
        if (self.keys, self.seed) != (other.keys, other.seed):
            raise ValueError("Only scores under the same ablations, with the same seed, can be merged.")
        return replace(
            self,
            values=np.concatenate([self.values, other.values], axis=1),
            documents=np.concatenate([self.documents, other.documents]),
            predictions=tuple((*a, *b) for a, b in zip(self.predictions, other.predictions, strict=True)),
        )

    def take(self, questions: Sequence[int]) -> "Scores":
        """Some of the questions, by number."""
        chosen = list(questions)
        return replace(
            self,
            values=self.values[:, chosen],
            documents=self.documents[chosen],
            predictions=tuple(tuple(given[n] for n in chosen) for given in self.predictions),
        )

    def beside(self, other: "Scores") -> "Scores":
        """Further ablations of the same questions.

        Raises:
            ValueError: for questions on other documents.
        """
        if not np.array_equal(self.documents, other.documents):
            raise ValueError("Only scores on the same questions can stand beside one another.")
        new = [n for n, key in enumerate(other.keys) if key not in self.keys]
        return replace(
            self,
            keys=(*self.keys, *(other.keys[n] for n in new)),
            values=np.concatenate([self.values, other.values[new]]),
            predictions=(*self.predictions, *(other.predictions[n] for n in new)),
        )

    def _average(self, keys: str | Sequence[str], score: int) -> Estimate:
        places = [self.at(key) for key in ([keys] if isinstance(keys, str) else keys)]
        means = self.means
        return Estimate.of(means.value[places, score].mean(0), means.replicates[:, places, score].mean(-1))


def _with_data(estimate: Estimate) -> Estimate:
    """Without the replicates that happened to draw no document."""
    drawn = np.isfinite(estimate.replicates).all(tuple(range(1, estimate.replicates.ndim)))
    return Estimate.of(estimate.value, estimate.replicates[drawn])


def draw(examples: Sequence[Example], limit: int, *, seed: int = 0) -> list[Example]:
    """Examples in a random order that depends on the seed only, cut off at ``limit``: a smaller sample begins a larger one."""
    order = np.random.default_rng(seed).permutation(len(examples))
    return [examples[n] for n in order[:limit]]


def measure(
    encoder: Encoder,
    examples: Sequence[Example],
    ablations: Mapping[str, Ablation],
    *,
    batch_size: int = 1,
    max_length: int | None = None,
    seed: int = 0,
) -> Scores:
    """Answer every question with the model as it is and under each ablation, with a progress bar.

    Inputs are encoded once, and their batches measured wherever :mod:`helpers.engine.shards` is told to. Long contexts are cut into windows, as in :func:`helpers.engine.tasks.score`.

    Args:
        ablations: name -> ablation.
        batch_size: rows in a forward pass; on a processor one at a time is fastest, since maps then stay in its cache.
        seed: of the bootstrap.

    Raises:
        helpers.engine.adapters.AdapterError, helpers.engine.encoders.EncoderError: without a head for questions.
    """
    keys = (BASE, *ablations)
    best = np.full((len(keys), len(examples)), -np.inf)
    answers = [[""] * len(examples) for _ in keys]
    tried = [None, *ablations.values()]
    what = f"{len(examples)} questions, {len(ablations)} ablations"
    cut = {"batch_size": batch_size, "max_length": max_length}
    for _, found in tasks.each(encoder, examples, _answers, tried, what=what, **cut):
        for number, rows in enumerate(found):
            for example, value, begin, end in rows:
                if value > best[number, example]:
                    best[number, example] = value
                    answers[number][example] = examples[example].texts[1][begin:end]
    documents = np.array([e.document for e in examples])
    return Scores(keys, graded(answers, examples), documents, tuple(map(tuple, answers)), seed)


def _answers(encoder: Encoder, asked: Asked, tried: Sequence[Ablation | None]) -> list[list[Span]]:
    """The answers of one batch under each ablation; None: the model as it is."""
    found = []
    for one in tried:
        edit = None if one is None else editor(one, asked.batch)
        with torch.inference_mode(), attention.tap(encoder, edit=edit):
            found.append(spans(encoder.logits(asked.batch), asked))
    return found


def spans(logits: Float[Tensor, "row token 2"], asked: Asked) -> list[Span]:
    """The best span of each row: number of its example, sum of its two logits, first and last character (excluded)."""
    found = []
    context = (asked.batch.text == 1).cpu().numpy()
    for row, (example, given) in enumerate(zip(asked.example, logits.double().cpu().numpy(), strict=True)):
        value, first, last = tasks.best_span(given[context[row]])
        found.append((example, value, int(asked.spans[row][first, 0]), int(asked.spans[row][last, 1])))
    return found


def graded(answers: Sequence[Sequence[str]], examples: Sequence[Example]) -> Float[np.ndarray, "ablation question 2"]:
    """F1 and exact match of every answer; an answer given under several ablations is graded once."""
    values = np.zeros((len(answers), len(examples), 2))
    for number, example in enumerate(examples):
        known = [a.text for a in example.answers]
        marks = {text: tasks.em_and_f1(text, known)[::-1] for text in {given[number] for given in answers}}
        values[:, number] = [marks[given[number]] for given in answers]
    return values


# ---------------------------------------------------------------------------------------- how much is removed


PLACES = ("special", "intra", "inter")


class Weights:
    """Share of the attention of ordinary tokens on special tokens, in their own sentence and in others; an observer.

    Attributes:
        sums: [layer, head, place], over the ordinary tokens of all inputs.
        rows: number of these tokens.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.sums = np.zeros((encoder.layers, encoder.heads, len(PLACES)))
        self.rows = 0

    def __call__(self, batch: Batch, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        if layer == 0:
            ordinary = batch.mask & ~batch.special
            intra, inter = relations(batch)
            special = ordinary[:, :, None] & batch.special[:, None, :]
            self._member = torch.stack([special, intra, inter]).to(probabilities.dtype)
            self.rows += int(ordinary.sum())
        self.sums[layer] += torch.einsum("bhij,pbij->hp", probabilities, self._member).double().cpu().numpy()

    def merge(self, other: "Weights") -> "Weights":
        """Sums over both."""
        merged = object.__new__(Weights)
        merged.sums, merged.rows = self.sums + other.sums, self.rows + other.rows
        return merged

    def shares(self, names: np.ndarray) -> dict[str, Float[np.ndarray, "place"]]:
        """Means over the heads of each type that there is."""
        return {name: (self.sums / self.rows)[names == name].mean(0) for name in TYPES if (names == name).any()}


def weigh(encoder: Encoder, examples: Sequence[Example], *, batch_size: int = 1) -> Weights:
    """:class:`Weights` of the model as it is, over questions with their contexts."""
    found = Weights(encoder)
    for asked in tasks.batches(encoder, examples, batch_size=batch_size):
        attention.sweep(encoder, [asked.batch], found)
    return found


# ---------------------------------------------------------------------------------------- recording


def as_dict(
    scores: Scores,
    names: np.ndarray,
    *,
    control: Scores | None = None,
    draws: int = 0,
    seed: int = 0,
    sizes: Sequence[int] = (),
    ladders: int = 0,
) -> dict[str, Any]:
    """Numbers for :func:`helpers.record.results.record`.

    Args:
        scores: rows, :func:`floors`, :func:`ladder` and :func:`retyped`.
        names: the types.
        control: rows, :func:`controls` and :func:`variants`, often on fewer questions.
        draws, seed: of the controls.
        sizes, ladders: of :func:`ladder`.
    """
    found = {
        "questions": scores.values.shape[1],
        "documents": len(set(scores.documents.tolist())),
        "counts": {name: int((names == name).sum()) for name in TYPES},
        **{score: scores.mean(BASE, score) for score in SCORES},
        "rows": {str(row): _row(scores, names, row) for row in ROWS},
        "floors": {key: _plain(scores, key) for key in scores.keys if key.startswith("all ")},
        "ladder": {
            "sizes": list(sizes),
            "f1_change": [[scores.change(f"any {n} {d}").value for d in range(ladders)] for n in sizes],
        },
    }
    if f"{SINGLE[0]} tuned" in scores.keys:
        found["tuned"] = {"rows": {str(row): _plain(scores, f"{row} tuned", str(row)) for row in SINGLE}}
    if control is not None:
        found["control"] = {
            "questions": control.values.shape[1],
            "documents": len(set(control.documents.tolist())),
            "draws": draws,
            **{score: control.mean(BASE, score) for score in SCORES},
            "rows": {str(row): _control(control, names, row, draws, seed) for row in ROWS},
        }
        found["variants"] = {
            name: {str(r.id): _plain(control, f"{r.id} {name}", str(r.id)) for r in TABLE3} for name in VARIANTS
        }
    return found


def _plain(scores: Scores, key: str, to: str = "") -> dict[str, Any]:
    """Scores and changes; with ``to`` also the change of F1 from another ablation."""
    found = {score: scores.mean(key, score) for score in SCORES}
    found |= {f"{score}_change": scores.change(key, score) for score in SCORES}
    return found | ({"f1_beside": scores.change(key, to=to)} if to else {})


def _row(scores: Scores, names: np.ndarray, row: int) -> dict[str, Any]:
    heads = ablation(names, ROWS[row].actions).size
    return {"heads": heads, **_plain(scores, str(row)), "turned": scores.turned(str(row))}


def _control(scores: Scores, names: np.ndarray, row: int, draws: int, seed: int) -> dict[str, Any]:
    """A row beside its control, on the same questions; ``beyond`` is the row minus the mean of its control.

    ``shared`` is the share of the row's heads that a deal leaves to it, on average.
    """
    own = ablation(names, ROWS[row].actions)
    dealt = [ablation(deal(names, draw, seed=seed), ROWS[row].actions).actions for draw in range(draws)]
    both = [((one != "keep") & (own.actions != "keep")).sum() for one in dealt]
    others = [f"{row} dealt {draw}" for draw in range(draws)]
    found: dict[str, Any] = {"shared": float(np.mean(both) / max(1, own.size))}
    for score in SCORES:
        found[f"{score}_change"] = scores.change(str(row), score)
        found[f"{score}_dealt"] = [scores.change(other, score).value for other in others]
        found[f"{score}_mean"] = scores.change(others, score)
        found[f"{score}_beyond"] = scores.change(str(row), score, to=others)
    return found


def percent(record: Estimate | Mapping[str, Any], spec: str = ".0f") -> str:
    """A share with its interval in per cent, or a change in percentage points: ``62 [58, 66]``."""
    one = Estimate.from_record(record)
    value, low, high = (f"{100 * x:{spec}}" for x in (one.value, one.low, one.high))
    return f"{value} [{low}, {high}]"


def spread(values: Sequence[float]) -> str:
    """Least and greatest of several changes, in percentage points: ``-41 to -8``."""
    return f"{100 * min(values):+.0f} to {100 * max(values):+.0f}"


def panel(values: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, tuple[Estimate, float, Sequence[float]]]:
    """Changes of F1 for :func:`helpers.chapters.ablation_by_type.figures.ablation_rows`: title -> (on all questions, on the control's, for each deal).

    Args:
        titles: row, such as ``"3"`` -> its title.
    """
    ours, dealt = values["rows"], values["control"]["rows"]
    whole = {n: Estimate.from_record(ours[n]["f1_change"]) for n in titles}
    part = {n: float(Estimate.from_record(dealt[n]["f1_change"]).value) for n in titles}
    return {title: (whole[n], part[n], dealt[n]["f1_dealt"]) for n, title in titles.items()}
