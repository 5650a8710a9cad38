"""Chapter 12: at which layer does the network know what?

Edge probing (Tenney et al. 2019): a small classifier reads a mixture of the hidden states of the layers 0 to l and labels a
span, or a pair of spans. How its score grows with l, and how it mixes the layers, tells where a network makes what the task
needs available. Layer 0 is the output of the embeddings.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Shaped
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats

from helpers import parallel
from helpers.chapters.layer_semantics.probes import answers, train
from helpers.chapters.layer_semantics.states import Part, part, stream
from helpers.chapters.layer_semantics.texts import TASKS, Context, Target, targets
from helpers.encoders import Encoder
from helpers.stats import Estimate, mean


def expected_layer(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean layer at which the score is gained, from scores [..., layer] of the prefixes 0 to L; NaN without a gain.

    The sum of l times Delta(l) over the sum of Delta(l), for l from 1 to L (Tenney et al. 2019, equation 4).
    """
    gains = np.diff(scores, axis=-1)
    total = gains.sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, (gains * np.arange(1, gains.shape[-1] + 1)).sum(-1) / total, np.nan)


def centre_of_gravity(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean layer under mixing weights [..., layer] of the layers 0 to L (Tenney et al. 2019, equation 2)."""
    return (np.asarray(weights, np.float64) * np.arange(np.shape(weights)[-1])).sum(-1)


def concentration(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divergence of mixing weights [..., layer] from even ones, in nats: 0 if they are even (Tenney et al. 2019, section 4)."""
    weights = np.asarray(weights, np.float64)
    return (weights * np.log(np.where(weights > 0, weights * weights.shape[-1], 1.0))).sum(-1)


def over_seeds(each: Float[np.ndarray, "seed"]) -> Estimate:
    """Mean over seeds with Student's 95 % interval; one seed has none.

    It says how far training again, and in a control drawing another network, would move the number; texts stay the same.
    """
    each = np.asarray(each, np.float64)
    many = len(each) > 1
    half = stats.t.ppf(0.975, len(each) - 1) * each.std(ddof=1) / len(each) ** 0.5 if many else np.nan
    return Estimate(each.mean(), each.mean() - half, each.mean() + half, each[:, None][:, 0], len(each))


@dataclass(frozen=True, eq=False)
class Outcome:
    """A task on the test part.

    Attributes:
        task, labels: one of :data:`TASKS`, and its classes.
        sizes: number of targets for training, development and test.
        hits: [seed, prefix, target], whether each probe's first choice is right.
        probabilities: [prefix, target, label], mean over the seeds.
        weights: [seed, layer], mixing weights of the probes that read all layers.
        gamma: [seed], their scale.
        truth, document: [target], index of the right label (-1: not in the training part), number of the document.
        baselines: ``majority`` and ``look-up`` -> whether each target is right, [target].
    """

    task: str
    labels: tuple[str, ...]
    sizes: tuple[int, int, int]
    hits: Bool[np.ndarray, "seed prefix target"]
    probabilities: Float[np.ndarray, "prefix target label"]
    weights: Float[np.ndarray, "seed layer"]
    gamma: Float[np.ndarray, "seed"]
    truth: NDArray[np.int64]
    document: NDArray[np.int64]
    baselines: Mapping[str, Bool[np.ndarray, "target"]]

    @cached_property
    def scores(self) -> Estimate:
        """[prefix], share of right answers, mean over the seeds; interval over documents."""
        return mean(self.hits.mean(0).T, self.document.tolist())

    @cached_property
    def seeds(self) -> Float[np.ndarray, "seed prefix"]:
        """Share of right answers of every seed's probes."""
        return self.hits.mean(-1)

    def baseline(self, name: str) -> Estimate:
        """Share of right answers of a baseline, with an interval over documents."""
        return mean(self.baselines[name].astype(np.float64), self.document.tolist())

    @cached_property
    def gains(self) -> Estimate:
        """[layer], differential scores of the layers 1 to L, paired over documents."""
        return self.scores[1:] - self.scores[:-1]

    @cached_property
    def gain(self) -> Estimate:
        """What all layers bring together, above the embeddings."""
        return self.scores[-1] - self.scores[0]

    @cached_property
    def expected(self) -> Estimate:
        """Expected layer; worth reading only where ``gain`` is clearly above 0."""
        return self.scores.map(expected_layer)

    @cached_property
    def gravity(self) -> Estimate:
        """Centre of gravity of the mixing weights, with an interval over seeds."""
        return over_seeds(centre_of_gravity(self.weights))

    @cached_property
    def settled(self) -> NDArray[np.int64]:
        """[target], first layer from which on the right label has the highest probability; L + 1 if never."""
        right = self.probabilities.argmax(-1) == self.truth
        stays = np.logical_and.accumulate(right[::-1], axis=0)[::-1]
        return np.where(stays.any(0), stays.argmax(0), len(right))

    def by_label(self, *, fewest: int = 1) -> dict[str, Float[np.ndarray, "prefix"]]:
        """Label -> share of its targets that are right, mean over seeds; for labels with ``fewest`` test targets or more."""
        return {
            label: self.hits[:, :, self.truth == n].mean((0, 2))
            for n, label in enumerate(self.labels)
            if (self.truth == n).sum() >= fewest
        }

    def gain_by_label(self, labels: Sequence[str]) -> dict[str, Estimate]:
        """What all layers bring on the test targets of each label, above the embeddings; paired over documents."""
        rise = self.hits[:, -1].mean(0) - self.hits[:, 0].mean(0)
        here = {label: self.truth == self.labels.index(label) for label in labels}
        return {label: mean(rise[own], self.document[own].tolist()) for label, own in here.items()}


def baselines(train: Sequence[Target], test: Sequence[Target]) -> dict[str, Bool[np.ndarray, "target"]]:
    """Whether two rules without a network are right on each test target.

    ``majority`` always gives the most frequent label of the training part; ``look-up`` the most frequent one of the same
    word there (word, head word of the mention, or whether the two head words are the same), else the majority's.
    """
    common = Counter(t.label for t in train).most_common(1)[0][0]
    seen: dict[str, Counter[str]] = {}
    for t in train:
        seen.setdefault(t.key, Counter())[t.label] += 1
    known = {key: count.most_common(1)[0][0] for key, count in seen.items()}
    return {
        "majority": np.array([t.label == common for t in test]),
        "look-up": np.array([t.label == known.get(t.key, common) for t in test]),
    }


def prepare(
    encoder: Encoder,
    parts: Mapping[str, Sequence[Context]],
    task: str,
    *,
    limits: Sequence[int | None],
    seed: int = 0,
    shuffled: int | None = None,
) -> dict[str, Part]:
    """The targets of a task in the training, development and test part, with the encoder's states.

    Args:
        parts: ``train``, ``dev`` and ``test`` -> contexts.
        limits: most targets in each part; drawn at random, the same for every encoder.
        shuffled: as for :func:`stream`.
    """
    sizes = zip(("train", "dev", "test"), limits, strict=True)
    drawn = {name: targets(parts[name], task, limit=limit, seed=seed) for name, limit in sizes}
    labels = sorted({t.label for t in drawn["train"]})
    return {
        name: part(stream(encoder, parts[name], shuffled=shuffled), parts[name], chosen, labels)
        for name, chosen in drawn.items()
    }


def measure(ready: Mapping[str, Part], task: str, *, seeds: Sequence[int] = (0, 1), **options: Any) -> Outcome:
    """Train probes for all prefixes of layers with several seeds and score them on the test part.

    Args:
        ready: what :func:`prepare` gives.
        options: of :func:`train`.
    """
    test = ready["test"]
    trained = [train(ready["train"], ready["dev"], seed=seed, **options) for seed in seeds]
    given = np.stack([answers(probes, test) for probes in trained])
    weights = np.stack([probes.weights()[-1].double().numpy() for probes in trained])
    gamma = np.array([float(probes.gamma[-1]) for probes in trained])
    sizes = tuple(len(ready[name].targets) for name in ("train", "dev", "test"))
    right, simple = given.argmax(-1) == test.truth, baselines(ready["train"].targets, test.targets)
    targets = test.truth, test.document, simple
    return Outcome(task, test.labels, sizes, right, given.mean(0), weights, gamma, *targets)


MOST_THREADS = 4
"""Probes that are trained at a time."""

Network = tuple[Encoder, int | None]
"""An encoder, and the seed with which its scores are shuffled; None for those of its own."""


def explore(
    networks: Sequence[Network],
    parts: Mapping[str, Sequence[Context]],
    tasks: Sequence[str],
    *,
    limits: Sequence[int | None],
    seeds: Sequence[int],
    seed: int = 0,
    **options: Any,
) -> dict[str, Outcome]:
    """The outcome of each task, with one network for each seed of the probes: a control is drawn as often as they are.

    Args:
        networks: what the probes of each seed read; the trained network again and again, or several draws of a control.
        parts, limits, seed: as for :func:`prepare`.
        options: of :func:`train`.
    """
    ready: dict[tuple[str, str, int | None], dict[str, Part]] = {}
    for task in tasks:
        for encoder, shuffled in networks:
            if (key := (task, encoder.sha256, shuffled)) not in ready:
                ready[key] = prepare(encoder, parts, task, limits=limits, seed=seed, shuffled=shuffled)
    pairs = [
        (task, encoder.sha256, shuffled, s)
        for task in tasks
        for (encoder, shuffled), s in zip(networks, seeds, strict=True)
    ]
    with parallel.one_thread():
        jobs = Parallel(min(MOST_THREADS, os.cpu_count() or 1), prefer="threads")
        found = jobs(delayed(measure)(ready[task, *of], task, seeds=[s], **options) for task, *of, s in pairs)
    return {task: together([o for o in found if o.task == task]) for task in tasks}


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """Outcomes of one task on the same targets, of a seed or several each, as one."""
    seeds = [len(o.gamma) for o in outcomes]
    stacked = {name: np.concatenate([getattr(o, name) for o in outcomes]) for name in ("hits", "weights", "gamma")}
    mean = np.average([o.probabilities for o in outcomes], axis=0, weights=seeds)
    return replace(outcomes[0], probabilities=mean, **stacked)


@dataclass(frozen=True, eq=False)
class Case:
    """One target of a sentence, followed through the layers.

    Attributes:
        task: which task it is of.
        words: the span, or both.
        label, rival: the right label, and the wrong one with the highest mean probability over the prefixes.
        right, wrong: [prefix], their probabilities.
        settled: first layer from which on the right label wins; L + 1 if never.
    """

    task: str
    words: str
    label: str
    rival: str
    right: Float[np.ndarray, "prefix"]
    wrong: Float[np.ndarray, "prefix"]
    settled: int


def case(outcome: Outcome, found: Sequence[Context], chosen: Sequence[Target], number: int) -> Case:
    """A test target with its probabilities."""
    target, given = chosen[number], outcome.probabilities[:, number].astype(np.float64)
    truth = outcome.truth[number]
    rival = np.where(np.arange(given.shape[1]) == truth, -1.0, given.mean(0)).argmax()
    right = given[:, truth] if truth >= 0 else np.zeros(len(given))
    words = " / ".join(" ".join(found[target.context].words[a:b]) for a, b in target.spans)
    settled = int(outcome.settled[number])
    return Case(outcome.task, words, target.label, outcome.labels[rival], right, given[:, rival], settled)


def turned(
    outcomes: Mapping[str, Outcome],
    found: Sequence[Context],
    chosen: Mapping[str, Sequence[Target]],
    *,
    most: int = 4,
) -> list[tuple[str, list[Case]]]:
    """For each of the first two tasks the sentence with the target whose right label rises most, and what else turns in it.

    A target turns if its right label loses to another with the embeddings alone and wins with all layers; it rises by the
    difference of the two probabilities. With the target that chose the sentence, which comes first, are shown the others
    of its sentence that turn, of all tasks: those that rise most, ``most`` in all. No sentence is taken twice.
    """
    shown: list[tuple[str, list[Case]]] = []
    taken: set[tuple[int, int]] = set()
    for task in [t for t in TASKS[:2] if t in outcomes]:
        for number in rises(outcomes[task]):
            place = _sentence(found, chosen[task][number])
            if place not in taken:
                taken.add(place)
                others = [
                    case(outcomes[t], found, chosen[t], n)
                    for t in outcomes
                    for n in rises(outcomes[t])
                    if _sentence(found, chosen[t][n]) == place and (t, n) != (task, number)
                ]
                others.sort(key=lambda c: c.right[0] - c.right[-1])
                cases = [case(outcomes[task], found, chosen[task], number), *others[: most - 1]]
                shown.append((found[place[0]].sentences[place[1]].text, cases))
                break
    return shown


def told_by_layer(
    outcomes: Sequence[Outcome], found: Sequence[Context], chosen: Sequence[Target], number: int
) -> tuple[list[Target], Shaped[np.ndarray, "outcome prefix target"]]:
    """The targets of the sentence that a target is in, and the label that wins for each, [outcome, prefix, target].

    Args:
        outcomes: of one task on the same targets, by several networks that know the same labels.
    """
    place = _sentence(found, chosen[number])
    here = [n for n, target in enumerate(chosen) if _sentence(found, target) == place]
    winners = np.stack([o.probabilities[:, here].argmax(-1) for o in outcomes])
    return [chosen[n] for n in here], np.array(outcomes[0].labels)[winners]


def rises(outcome: Outcome) -> list[int]:
    """Targets that are wrong with the embeddings alone and right with all layers; the greatest rise first."""
    right = outcome.probabilities.argmax(-1) == outcome.truth
    numbers = np.flatnonzero(~right[0] & right[-1])
    rise = (outcome.probabilities[-1] - outcome.probabilities[0])[numbers, outcome.truth[numbers]]
    return numbers[np.argsort(-rise, kind="stable")].tolist()


def _sentence(found: Sequence[Context], target: Target) -> tuple[int, int]:
    return target.context, found[target.context].sentence_of(target.spans[-1][0])


def as_dict(outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """Numbers for :func:`helpers.results.record`; ``expected`` is None where the layers bring nothing for certain."""
    kept = ("sizes", "scores", "seeds", "gains", "gain", "gravity", "weights", "gamma")
    return {
        task: {name: getattr(o, name) for name in kept}
        | {
            "labels": len(o.labels),
            "expected": o.expected if o.gain.low > 0 else None,
            "baselines": {name: o.baseline(name) for name in o.baselines},
            "settled": np.bincount(o.settled, minlength=len(o.probabilities) + 1) / len(o.settled),
        }
        for task, o in outcomes.items()
    }


def steps_between(
    outcomes: Mapping[str, Outcome], twin: Mapping[str, Outcome] | None = None
) -> dict[str, dict[str, Estimate | None]]:
    """For any two tasks, by how many layers the second comes later, by both measures.

    Args:
        twin: the same tasks in a network that learned nothing.

    Returns:
        ``"dependency to entity"`` -> ``expected``, paired over documents, None where the layers bring nothing for certain to one
        of the two or their targets are of different documents; ``gravity``, paired over seeds, and ``spread``, by how much the first task's mixing weights are
        more concentrated (nats); with a twin ``random``, its own ``gravity``, and ``beyond``, the difference of the two, seed by
        seed. A single seed has no interval, and None.
    """
    known = {name: bool(outcome.gain.low > 0) for name, outcome in outcomes.items()}

    def apart(of: Mapping[str, Outcome], measure: Any, a: str, b: str) -> Float[np.ndarray, "seed"]:
        return measure(of[b].weights) - measure(of[a].weights)

    steps: dict[str, dict[str, Estimate | None]] = {}
    for a, b in combinations(outcomes, 2):
        own = apart(outcomes, centre_of_gravity, a, b)
        seeds = {"gravity": own, "spread": -apart(outcomes, concentration, a, b)}
        if twin is not None:
            seeds["random"] = apart(twin, centre_of_gravity, a, b)
            seeds["beyond"] = own - seeds["random"]
        paired = known[a] and known[b] and outcomes[a].scores.sample == outcomes[b].scores.sample
        steps[f"{a} to {b}"] = {"expected": outcomes[b].expected - outcomes[a].expected if paired else None} | {
            name: over_seeds(each) if len(each) > 1 else None for name, each in seeds.items()
        }
    return steps
