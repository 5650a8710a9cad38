"""Chapter 10: what becomes of answers to questions when all heads of a type are edited at once.

Four editors over the tap (all weights to 0, all to 1/n, those inside sentences to 0, those between sentences to
0) for any set of heads; the rows of the two tables of Guan et al. 2020, section 5; and what the paper lacks:
the same rows for types shuffled among the heads of each layer.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from helpers import attention, tasks
from helpers.chapters.ablation_by_type.edits import (
    ROWS,
    SINGLE,
    TABLE2,
    TABLE3,
    TYPES,
    VARIANTS,
    Ablation,
    Core,
    ablation,
    deal,
    editor,
)
from helpers.encoders import Encoder
from helpers.inputs import MAX_LENGTH, windows
from helpers.layers import batched_interventions
from helpers.stats import Estimate, mean
from helpers.tasks import Asked, Example
from helpers.tokens import EncodedText

SCORES = ("f1", "em")

Span = tuple[int, float, int, int]
"""An answer: number of the example, sum of two logits, where it begins and ends in the context, in characters."""


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
        return mean(self.values.transpose(1, 0, 2), self.documents.tolist(), seed=self.seed)

    def mean(self, keys: str | Sequence[str], score: str = "f1") -> Estimate:
        """Mean score under an ablation, or on average under several."""
        places = [self.at(key) for key in ([keys] if isinstance(keys, str) else keys)]
        return self.means[places, SCORES.index(score)].mean()

    def change(self, keys: str | Sequence[str], score: str = "f1", *, to: str | Sequence[str] = BASE) -> Estimate:
        """What an ablation (or several, on average) changes, on the same questions; compared with the model as it is, or with others."""
        return self.mean(keys, score) - self.mean(to, score)

    def dealt(self, key: str) -> list[str]:
        """The deals of an ablation."""
        return [one for one in self.keys if one.startswith(f"{key} dealt ")]

    def turned(self, key: str) -> Estimate:
        """Share of questions whose F1 falls, stays and rises, (3,)."""
        difference = self.values[self.at(key), :, 0] - self.values[self.at(BASE), :, 0]
        kinds = np.stack([difference < 0, difference == 0, difference > 0], axis=-1).astype(np.float64)
        return mean(kinds, self.documents.tolist(), seed=self.seed)

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
    seed: int = 0,
) -> Scores:
    """Answer every question with the model as it is and under each ablation, with a progress bar.

    Inputs are encoded once, and their batches measured wherever :mod:`helpers.parallel` is told to. Long contexts are cut into windows, as in :func:`helpers.tasks.score`.

    Args:
        ablations: name -> ablation.
        batch_size: rows in a forward pass; on a processor one at a time is fastest, since maps then stay in its cache.
        seed: of the bootstrap.

    Raises:
        helpers.adapters.AdapterError: without a head for questions.
    """
    tasks.check(encoder, "qa")
    keys = (BASE, *ablations)
    best = np.full((len(keys), len(examples)), -np.inf)
    answers = [[""] * len(examples) for _ in keys]
    tried = [None, *ablations.values()]
    what = f"{len(examples)} questions, {len(ablations)} ablations"
    for _, found in tasks.each(encoder, examples, _answers, tried, what=what, batch_size=batch_size):
        for number, rows in enumerate(found):
            for example, value, begin, end in rows:
                if value > best[number, example]:
                    best[number, example] = value
                    answers[number][example] = examples[example].texts[1][begin:end]
    documents = np.array([e.document for e in examples])
    return Scores(keys, graded(answers, examples), documents, tuple(map(tuple, answers)), seed)


def _answers(encoder: Encoder, asked: Asked, tried: Sequence[Ablation | None]) -> list[list[Span]]:
    """The answers of one batch under each ablation (None: the model as it is); what several have in common is computed once."""
    paths, edits = [], {}
    for one in tried:
        paths.append([one and one.step(layer) for layer in range(encoder.layers)])
        if one is not None:
            edits |= dict.fromkeys(enumerate(paths[-1]), editor(one, asked.batch))
    made = batched_interventions(encoder, asked.batch, paths, lambda layer, step, p: edits[layer, step](layer, p))
    with torch.inference_mode():
        return [spans(encoder.head(hidden, asked.batch), asked) for hidden in made]


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


PLACES = ("special", "intra", "inter")


@dataclass(frozen=True, eq=False)
class Weights:
    """Attention of ordinary tokens to special tokens, in their own sentence and to others.

    Attributes:
        sums: [layer, head, place], over the ordinary tokens of all inputs.
        rows: number of these tokens.
    """

    sums: Float[np.ndarray, "layer head place"]
    rows: int

    def shares(self, names: np.ndarray) -> dict[str, Float[np.ndarray, "place"]]:
        """Means over the heads of each type that there is."""
        return {name: (self.sums / self.rows)[names == name].mean(0) for name in TYPES if (names == name).any()}


def weigh(encoder: Encoder, examples: Sequence[Example]) -> Weights:
    """:class:`Weights` of the model as it is, over questions with their contexts."""
    longest = min(MAX_LENGTH["qa"], encoder.max_length)
    rows = [row.texts for number, one in enumerate(examples) for row in windows(encoder, one, number, longest)]
    found = attention.measure(encoder, rows, by_place)
    return Weights(np.sum([one["sums"] for one in found], 0, np.float64), sum(int(one["rows"]) for one in found))


def by_place(maps: Float[Tensor, "layer head token token"], text: EncodedText) -> dict[str, Tensor]:
    """Weights of one text's ordinary tokens to each of :data:`PLACES`, summed, [layer, head, place]; how many tokens these are."""
    ordinary, same = ~text.special, text.sentence[:, None] == text.sentence
    pairs = ordinary[:, None] & ordinary
    member = torch.stack([ordinary[:, None] & text.special, pairs & same, pairs & ~same]).to(maps)
    return {"sums": torch.einsum("lhij,pij->lhp", maps, member), "rows": ordinary.sum()}


PRUNED = {next(iter(row.actions)): row.id for row in TABLE2[:4]}
"""Type -> the row in which it alone is pruned."""


def costliest(scores: Scores, label: str = "") -> str:
    """The type without which F1 is lowest; with ``label="tuned"`` of those of :func:`helpers.chapters.ablation_by_type.edits.retyped`."""
    left = {name: scores.mean(f"{row} {label}".strip()).value for name, row in PRUNED.items()}
    return min(left, key=left.__getitem__)


def as_dict(
    scores: Scores,
    names: np.ndarray,
    core: Core,
    *,
    control: Scores,
    seed: int = 0,
    sizes: Sequence[int] = (),
    ladders: int = 0,
) -> dict[str, Any]:
    """Numbers for :func:`helpers.results.record`.

    Args:
        scores: rows, :func:`floors`, :func:`ladder`, :func:`retyped` and the plans of the core.
        names: the types.
        control: these, :func:`controls` and, if they were measured, :func:`variants`, often on fewer questions.
        seed: of the deals.
        sizes, ladders: of :func:`ladder`.
    """
    return {
        "questions": scores.values.shape[1],
        "documents": len(set(scores.documents.tolist())),
        "counts": {name: int((names == name).sum()) for name in TYPES},
        **{score: scores.mean(BASE, score) for score in SCORES},
        "rows": {str(row): _row(scores, names, row) for row in ROWS},
        "differences": differences(scores),
        "floors": {key: _plain(scores, key) for key in scores.keys if key.startswith("all ")},
        "ladder": {
            "sizes": list(sizes),
            "f1_change": [[scores.change(f"any {n} {d}").value for d in range(ladders)] for n in sizes],
        },
        "tuned": {
            "rows": {str(row): _plain(scores, f"{row} tuned", str(row)) for row in SINGLE},
            "control": {str(row): beside_deals(control, f"{row} tuned") for row in PRUNED.values()},
        },
        "core": {
            "first": core.first,
            "second": core.second,
            "heads": np.argwhere(core.both).tolist(),
            "rows": {name: _of_core(scores, core, name) for name in core.sets},
        },
        "control": {
            "questions": control.values.shape[1],
            "documents": len(set(control.documents.tolist())),
            **{score: control.mean(BASE, score) for score in SCORES},
            "rows": {str(row): _control(control, names, row, seed) for row in ROWS},
            "differences": differences(control, dealt=True),
            "core": {name: beside_deals(control, name) for name in core.sets},
        },
        "variants": {
            name: {str(r.id): _plain(control, f"{r.id} {name}", str(r.id)) for r in TABLE3}
            for name in VARIANTS
            if f"{TABLE3[0].id} {name}" in control.keys
        },
    }


def _plain(scores: Scores, key: str, to: str = "") -> dict[str, Any]:
    """Scores and changes; with ``to`` also the change of F1 from another ablation."""
    found = {score: scores.mean(key, score) for score in SCORES}
    found |= {f"{score}_change": scores.change(key, score) for score in SCORES}
    return found | ({"f1_beside": scores.change(key, to=to)} if to else {})


PAIRS = ((12, 13), (15, 14), (17, 16), (18, 19), (6, 7))
"""Rows that the paper compares with one another."""


def differences(scores: Scores, *, dealt: bool = False) -> dict[str, Estimate]:
    """F1 of the first row of each of :data:`PAIRS` minus that of the second, ``"12-13"``, …; with ``dealt`` of the means of their deals."""

    def keys(row: int) -> list[str]:
        return scores.dealt(str(row)) if dealt else [key for key in scores.keys if key == str(row)]

    return {f"{one}-{two}": scores.change(keys(one), to=keys(two)) for one, two in PAIRS if keys(one) and keys(two)}


def _row(scores: Scores, names: np.ndarray, row: int) -> dict[str, Any]:
    heads = ablation(names, ROWS[row].actions).size
    return {"heads": heads, **_plain(scores, str(row)), "turned": scores.turned(str(row))}


def _of_core(scores: Scores, core: Core, name: str) -> dict[str, Any]:
    """A set of :attr:`Core.sets`; ``f1_beside`` is what pruning the core changes more than pruning this set does."""
    beside = scores.change("core", to=name)
    return {"heads": int(core.sets[name].sum()), **_plain(scores, name), "f1_beside": beside}


def _control(scores: Scores, names: np.ndarray, row: int, seed: int) -> dict[str, Any]:
    """:func:`beside_deals`, and the share of the row's heads that a deal leaves to it, on average: ``shared``."""
    found, own = beside_deals(scores, str(row)), ablation(names, ROWS[row].actions)
    draws = range(len(found["f1_dealt"]))
    dealt = [ablation(deal(names, draw, seed=seed), ROWS[row].actions).actions for draw in draws]
    both = [((one != "keep") & (own.actions != "keep")).sum() for one in dealt]
    return {"shared": float(np.mean(both) / max(1, own.size)) if dealt else None, **found}


def beside_deals(scores: Scores, key: str) -> dict[str, Any]:
    """What an ablation changes beside its deals, on the same questions.

    ``beyond`` is its change minus the mean of theirs; its interval is over questions. ``p`` is over deals: the share of
    them, the ablation itself counted as one, that change F1 by as much or by more in its direction from their mean.
    """
    others = scores.dealt(key)
    found: dict[str, Any] = {f"{score}_change": scores.change(key, score) for score in SCORES}
    for score in SCORES:
        found[f"{score}_dealt"] = [scores.change(other, score).value for other in others]
        if others:
            found[f"{score}_mean"] = scores.change(others, score)
            found[f"{score}_beyond"] = scores.change(key, score, to=others)
    if others:
        found["f1_p"] = by_chance(float(found["f1_change"].value), found["f1_dealt"])
    return found


def by_chance(own: float, dealt: Sequence[float]) -> float:
    """Share of deals, ours counted as one, that lie as far from the mean of the deals as ours, on the same side."""
    values = np.append(dealt, own)
    side = np.sign(own - np.mean(dealt)) or 1.0
    return float((side * values >= side * own - 1e-12).mean())


def percent(record: Estimate | Mapping[str, Any], spec: str = ".0f") -> str:
    """A share in per cent, or a change in percentage points, whose interval has signs as well: ``+3 [-1, +6]``."""
    one = Estimate.from_record(record)
    return format(Estimate(100 * one.value, 100 * one.low, 100 * one.high, one.replicates), spec)


def spread(values: Sequence[float]) -> str:
    """Least and greatest of several changes, in percentage points: ``-41 to -8``."""
    return f"{100 * min(values):+.0f} to {100 * max(values):+.0f}"


def doubled(ladder: Mapping[str, Any]) -> dict[int, float]:
    """Number of random heads -> what twice as many change F1 beyond twice what these do, means over the orders; where both were pruned."""
    means = dict(zip(ladder["sizes"], np.mean(ladder["f1_change"], axis=1), strict=True))
    return {size: float(means[2 * size] - 2 * one) for size, one in means.items() if 2 * size in means}


WHOLES = {"rest": "whole", "others": "again"}
"""Set of :attr:`Core.sets` -> what it makes up together with the core: the costliest type as first sorted, and as sorted again."""


def wholes(values: Mapping[str, Any], *, control: bool = False) -> dict[str, Any]:
    """The rows in which the two types that hold the core are pruned, ``whole`` and ``again``; with ``control`` those on the control's questions."""
    core, tuned = values["core"], values["tuned"]
    first, second = (str(PRUNED[core[sorting]]) for sorting in ("first", "second"))
    whole, again = (values["control"]["rows"], tuned["control"]) if control else (values["rows"], tuned["rows"])
    return {"whole": whole[first], "again": again[second]}


def beyond(values: Mapping[str, Any], rest: str = "rest") -> Estimate:
    """What pruning a type changes F1 more than pruning its two parts apart, added up: below 0 where the whole costs more.

    The interval is paired over questions where the values are fresh. A record has no replicates: there it is the widest that
    the recorded intervals of the whole, the parts and their difference allow.

    Args:
        values: fresh or recorded values of :func:`as_dict`.
        rest: the part besides the core, from :data:`WHOLES`.
    """
    rows = values["core"]["rows"]
    found = wholes(values)[WHOLES[rest]], rows["core"], rows[rest]
    whole, core, other = (Estimate.from_record(one["f1_change"]) for one in found)
    if all(len(one.replicates) for one in (whole, core, other)):
        return whole - core - other
    value = whole.value - core.value - other.value
    reach = _reach(whole) + _of_sum(_reach(core), _reach(other), _reach(rows[rest]["f1_beside"]))
    return Estimate(value, value - reach, value + reach, whole.replicates)


def _reach(record: Estimate | Mapping[str, Any]) -> float:
    """Half the width of an interval."""
    one = Estimate.from_record(record)
    return float(one.high - one.low) / 2


def _of_sum(one: float, two: float, difference: float) -> float:
    """Half the width for a sum, from those of its terms and of their difference: both squares add up to twice those of the terms."""
    return math.sqrt(max(0.0, 2 * (one**2 + two**2) - difference**2))


Shown = tuple[Estimate, float, Sequence[float]]


def panel(values: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, Shown]:
    """Changes of F1 for :func:`helpers.chapters.ablation_by_type.figures.ablation_rows`: title -> (on all questions, on the control's, for each deal).

    Args:
        titles: row, such as ``"3"``, a set of the core, such as ``"rest"``, or one of :func:`wholes` -> its title.
    """
    ours = values["rows"] | values["core"]["rows"] | wholes(values)
    dealt = values["control"]["rows"] | values["control"]["core"] | wholes(values, control=True)
    whole = {n: Estimate.from_record(ours[n]["f1_change"]) for n in titles}
    part = {n: float(Estimate.from_record(dealt[n]["f1_change"]).value) for n in titles}
    return {title: (whole[n], part[n], dealt[n]["f1_dealt"]) for n, title in titles.items()}


def parts(values: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, Shown]:
    """:func:`panel` of the core's sets and of the types they make up, with what each type costs beyond its parts.

    Args:
        titles: of :func:`part_titles`.
    """
    plain = {key: title for key, title in titles.items() if not key.startswith("beyond ")}
    found = panel(values, plain)
    for rest, whole in WHOLES.items():
        few = (found[titles[name]][1] for name in (whole, "core", rest))
        found[titles[f"beyond {whole}"]] = (beyond(values, rest), next(few) - sum(few), [])
    return {title: found[title] for title in titles.values()}


def part_titles(runs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Set, type or difference -> what is pruned, with its number of heads; where runs differ, a number for each."""
    sizes = [{name: row["heads"] for name, row in values["core"]["rows"].items()} for values in runs]
    for found in sizes:
        found |= {whole: found["core"] + found[rest] for rest, whole in WHOLES.items()}
    n = {name: "/".join(dict.fromkeys(str(found[name]) for found in sizes)) for name in sizes[0]}
    return {
        "core": f"the {n['core']}",
        "rest": f"the other {n['rest']}",
        "whole": f"all {n['whole']}",
        "beyond whole": "… beyond both apart",
        "others": f"{n['others']} others after tuning",
        "again": f"all {n['again']} after tuning",
        "beyond again": "… beyond both apart, after tuning",
        "alone": f"all but the {n['core']}",
    }
