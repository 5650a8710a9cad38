"""Chapter 11: which heads matter?

Switch off every head, and every layer, and measure what a task loses (Kovaleva et al. 2019; Michel et al. 2019, Table 1);
estimate the same from one backward pass (Michel et al. 2019, equation 2); remove heads in an order, and at last remove their
parameters. A :class:`Job` is a model with a head, examples of its task, and how to run them; everything else takes one.

The heads of one layer share all that lies below it and their own attention maps, so :func:`remove_each` computes these
once for all of them; :func:`switched_off`, one forward pass for each set of heads, gives the same numbers and is what it is tested
against. Batches are measured wherever :mod:`helpers.parallel` is told to.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from helpers import attention, tasks
from helpers.chapters.head_importance.jobs import Heads, Job, Scored, combine, numpy_of, outcomes, resampled
from helpers.chapters.head_importance.sweep import Removals, costs
from helpers.encoders import Encoder
from helpers.layers import Step, batched_interventions
from helpers.stats import Estimate, Numbers
from helpers.tasks import Asked

Order = list[tuple[int, int]]
"""Heads, (layer, head) from 0, in the order in which they go."""


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
        return found.map(by_layer_norm) if normalised else found

    def first_order(self, *, seed: int = 0) -> Estimate:
        """-E ∂L/∂ξ_h, (layer, head): what switching the head off would cost if the loss were a straight line in ξ."""
        return self._mean(-self.gradients, seed)

    def _mean(self, values: NDArray[np.float64], seed: int) -> Estimate:
        return resampled(values, np.ones(len(self.documents)), self.documents, seed=seed)


def by_layer_norm(importance: Numbers) -> Numbers:
    """Each layer, the last axis, divided by the ℓ2 norm of its heads."""
    return importance / np.maximum(np.linalg.norm(importance, axis=-1, keepdims=True), np.finfo(float).tiny)


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
    return numpy_of(gate_gradients(encoder, asked)[0])


def ascending(values: Float[np.ndarray, "layer head"]) -> Order:
    """Heads from the smallest value to the largest: the order in which they go."""
    return [tuple(map(int, np.unravel_index(n, values.shape))) for n in np.argsort(values, axis=None, kind="stable")]


def orders(found: Importance, removed: Removals, *, draws: int = 5, seed: int = 0) -> dict[str, list[Order]]:
    """Orders in which to remove heads, least important first: by I_h, by I_h with layers normalised, by what the removal
    of a head alone adds to the loss, or takes from the score (two oracles; equal scores in random order), and at random, ``draws`` times."""
    value = np.abs(found.gradients).mean(-1)
    alone = (removed.heads.loss - removed.whole.loss).mean(-1)
    random = np.random.default_rng(seed)
    lost = removed.whole.mean() - removed.heads.mean()
    tied = np.random.default_rng([seed, 1]).permutation(lost.size)
    by_score = np.empty(lost.size)
    by_score[np.lexsort((tied, lost.ravel().round(9)))] = np.arange(lost.size)
    shuffled = [ascending(random.permutation(value.size).reshape(value.shape).astype(float)) for _ in range(draws)]
    return {
        "I_h": [ascending(value)],
        "I_h, layers normalised": [ascending(by_layer_norm(value))],
        "oracle": [ascending(alone)],
        "oracle, score": [ascending(by_score.reshape(lost.shape))],
        "random": shuffled,
    }


def steps(total: int, shares: Sequence[float | int]) -> list[int]:
    """Numbers of heads for shares of all heads, rounded, without repetition."""
    return sorted({round(share * total) for share in shares})


def in_order(task: Job, given: Mapping[str, list[Order]], counts: Sequence[int]) -> dict[str, Scored]:
    """Scores with the first k heads of each order switched off, (draw, k, example); equal sets are computed once."""
    sets = {name: [[frozenset(o[:k]) for k in counts] for o in every] for name, every in given.items()}
    distinct = sorted({s for every in sets.values() for o in every for s in o}, key=lambda s: (len(s), sorted(s)))
    measured = task.each(_without, list(map(sorted, distinct)), doing=f"{len(distinct)} sets of heads")
    found = combine(task, [(asked.example, one) for asked, one in measured])
    scored = {heads: found[n] for n, heads in enumerate(distinct)}
    return {name: _stacked([_stacked([scored[s] for s in o]) for o in every]) for name, every in sets.items()}


def _without(encoder: Encoder, asked: Asked, sets: Sequence[Heads]) -> Float[np.ndarray, "set row 5"]:
    """Outcomes of one batch without each of several sets of heads, as :func:`switched_off` has them, one set at a time."""
    layers = range(encoder.layers)
    paths = [[tuple(sorted(h for n, h in heads if n == layer)) or None for layer in layers] for heads in sets]

    def edit(layer: int, off: Step, probabilities: Tensor) -> Tensor:
        return attention.zero([(layer, head) for head in off])(layer, probabilities)

    made = batched_interventions(encoder, asked.batch, paths, edit)
    with torch.inference_mode():
        return np.stack([outcomes(encoder, hidden, asked) for hidden in made])


def _stacked(scored: Sequence[Scored]) -> Scored:
    score, loss = (np.stack([getattr(s, name) for s in scored]) for name in ("score", "loss"))
    return replace(scored[0], score=score, loss=loss)


def along(encoder: Encoder, asked: Asked, heads: Heads, gates: Iterable[float]) -> Float[np.ndarray, "head gate row"]:
    """Loss of each input with one gate at other values than 1, for each of some heads: a picture of what ξ does."""

    def loss(head: Sequence, gate: float) -> NDArray[np.float64]:
        scale = torch.ones(encoder.layers, encoder.heads, 1, 1, device=encoder.device)
        scale[tuple(head)] = gate
        with torch.inference_mode(), attention.tap(encoder, edit=lambda layer, p: p * scale[layer]):
            return numpy_of(tasks.losses(encoder, asked))

    gates = list(gates)
    return np.array([[loss(head, gate) for gate in gates] for head in heads])


NAMES = ("score", "loss")


def without(task: Job, heads: Heads) -> Scored:
    """All examples with some heads switched off."""
    return combine(
        task, [(asked.example, one[0]) for asked, one in task.each(_without, [list(heads)], doing="some heads off")]
    )


def above(task: Job, removed: Removals, bare: Scored, *, seed: int = 0) -> Estimate:
    """How far the score lies above the simplest answer, example by example: the most frequent class or word; for
    questions, which have none, the model without any head (``bare``)."""
    whole = removed.whole
    if task.task == "qa":
        return bare.cost(whole, seed=seed)
    simple = tasks.majority(task.examples)
    if task.task == "mlm":
        return whole.estimate(seed=seed).map(lambda score: score - simple)
    labels, counts = np.unique([e.label for e in task.examples], return_counts=True)
    constant = np.array([float(e.label == labels[counts.argmax()]) for e in task.examples])
    return replace(whole, score=constant).cost(whole, seed=seed)


def extremes(removed: Removals, one: Sequence[int], two: Sequence[int], *, seed: int = 0) -> dict[str, Any]:
    """The heads whose removal takes most from the score, and adds most, on one half of the documents; what it costs on the other."""
    chosen, scored = removed.on(one), removed.on(two)
    lost = chosen.whole.mean() - chosen.heads.mean()
    cost = scored.heads.cost(scored.whole, seed=seed)
    ends = {"worst": lost.argmax(), "best": lost.argmin()}
    places = {name: np.unravel_index(n, lost.shape) for name, n in ends.items()}
    return {name: {"head": list(map(int, at)), "cost": cost[at]} for name, at in places.items()}


def curve(scored: Scored, name: str, *, seed: int = 0) -> dict[str, Any]:
    """A curve of :func:`in_order`: mean over draws with its interval, (k,), and the smallest and largest draw."""
    per_draw = scored.mean(name)
    over = replace(scored, score=scored.score.mean(0), loss=scored.loss.mean(0))
    ends = {"least": per_draw.min(0), "most": per_draw.max(0)}
    return {"mean": over.estimate(name, seed=seed), **ends, "draws": len(per_draw)}


def kept_more(scored: Scored, random: Scored, *, seed: int = 0) -> Estimate:
    """How much more of the score an order keeps than random orders do on average, example by example, (k,)."""
    mean = replace(random, score=random.score.mean(0), loss=random.loss.mean(0))
    return mean.cost(replace(scored, score=scored.score.mean(0), loss=scored.loss.mean(0)), seed=seed)


def leads_at(values: Mapping[str, Any], share: float) -> tuple[int, dict[str, Estimate]]:
    """The number of heads gone that is nearest to a share of all, and how much more each order then keeps than random ones."""
    gone, found = values["pruning"]["heads"], values["pruning"]["beside_random"]
    step = int(np.abs(np.array(gone) / gone[-1] - share).argmin())
    return gone[step], {order: Estimate.from_record(lead)[step] for order, lead in found.items()}


COMPACT = ("examples", "documents", "score", "majority", "bare", "above", "extremes", "agreement", "pruning")
"""What :func:`compact` keeps as it is."""


def compact(values: Mapping[str, Any]) -> dict[str, Any]:
    """A task's numbers without its grids of heads."""

    def shortened(cost: Mapping[str, Any] | None) -> Any:
        heads = ("count", "balance", "visible")
        return cost and {
            name: {"heads": {k: one["heads"][k] for k in heads}, "layers": one["layers"]}
            for name, one in cost.items()
        }

    return {name: values[name] for name in COMPACT} | {part: shortened(values[part]) for part in ("cost", "even")}


def as_dict(
    task: Job,
    removed: Removals,
    found: Importance,
    curves: Mapping[str, Scored],
    counts: Sequence[int],
    parts: tuple[Sequence[int], Sequence[int]],
    *,
    bare: Scored,
    even: Removals | None = None,
    further: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """One task's numbers for :func:`helpers.results.record`.

    Args:
        bare: the model without any head (:func:`without`).
        even: removals by weights of 1/n, where they were measured.
        further: more of them, such as ``agreement`` and ``calibrated``.
    """
    encoder = task.encoder
    assert encoder.head is not None
    simple, (_, two) = tasks.majority(task.examples), parts
    held_out = above(task.on(two), removed.on(two), bare.on(two), seed=seed)
    return {
        "examples": len(task.examples),
        "documents": len(np.unique(task.documents)),
        "adapter": encoder.head.sha256,
        "score": removed.whole.estimate("score", seed=seed),
        "loss": removed.whole.estimate("loss", seed=seed),
        "majority": None if np.isnan(simple) else simple,
        "bare": bare.estimate("score", seed=seed),
        "above": {"all": above(task, removed, bare, seed=seed), "held_out": held_out},
        "cost": {name: costs(removed, name, seed=seed) for name in NAMES},
        "even": None if even is None else {name: costs(even, name, seed=seed) for name in NAMES},
        "extremes": extremes(removed, *parts, seed=seed),
        "importance": found.of(seed=seed),
        "normalised": found.of(normalised=True, seed=seed).value,
        "first_order": found.first_order(seed=seed).value,
        "pruning": {
            "heads": list(counts),
            "examples": len(two),
            "curves": {n: {name: curve(c, name, seed=seed) for name in NAMES} for n, c in curves.items()},
            "beside_random": {
                n: kept_more(c, curves["random"], seed=seed) for n, c in curves.items() if n != "random"
            },
        },
        **(further or {}),
    }


def solved(values: Mapping[str, Any], on: str = "all") -> bool:
    """Whether a record's score is above the simplest answer, with its whole interval; ``on`` all examples, or those ``held_out``."""
    return bool(Estimate.from_record(values["above"][on]).low > 0)


def drawn(
    here: Mapping[str, Mapping[str, Any]],
    there: Mapping[str, Mapping[str, Any]],
    texts: Mapping[str, str],
    *,
    few: Collection[str] = (),
) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """What is drawn of each task: the record of these texts where the task is solved on them, on all examples and on those
    held out, else a recorded run on real texts where it is, else nothing. Where no task is, all of these texts, and a line says so.
    Texts that are only a taste make way for a recorded run with more documents.

    Args:
        here: task -> its record on these texts.
        there: "task (texts)" -> a record on real texts.
        texts: task -> what these texts are called.
        few: names of texts that are only a taste.

    Returns:
        title -> record, and a line for each task that is not drawn on these texts.
    """
    shown, lines = {}, []
    for task, values in here.items():
        other = {title: v for title, v in there.items() if title.split(" (")[0] == task and solved(v)}
        if solved(values) and solved(values, "held_out"):
            larger = other if texts[task] in few else {}
            larger = {title: v for title, v in larger.items() if v["documents"] > values["documents"]}
            shown |= larger or {f"{task} ({texts[task]})": values}
            for title, v in larger.items():
                lines.append(
                    f"{task}: {values['documents']} documents here, {v['documents']} in the recorded run; drawn: {title}."
                )
            continue
        more, rest = (Estimate.from_record(values["above"][on]) for on in ("all", "held_out"))
        shown |= other
        instead = f"drawn instead: {', '.join(other)}" if other else "nothing is drawn"
        lines.append(
            f"{task}: {values['examples']} examples of {texts[task]} do not show that the task is solved "
            f"(score less the simplest answer: {more:+.2f}, held out {rest:+.2f}); {instead}."
        )
    shown |= {title: v for title, v in there.items() if title.split(" (")[0] not in here and solved(v)}
    if not shown:
        lines.append(
            "No task is solved, here or in a recorded run: what is drawn below is these texts, and shows noise."
        )
        shown = {f"{task} ({texts[task]})": values for task, values in here.items()}
    return shown, lines
