"""Chapter 06: how much syntax do all heads hold together?

Small classifiers read the attention of every head between two words and answer a question about them: is one the governor
of the other, does an edge of the tree join them, which relation is it? After Clark et al. 2019, section 5, Coenen et al.
2019 and Hewitt & Manning 2019, each beside a control task (Hewitt & Liang 2019).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import nn

from helpers.chapters.probing_classifiers.pairs import Pairs, classify, control_labels, share
from helpers.chapters.probing_classifiers.parsers import answers, parse, train_parser
from helpers.chapters.probing_classifiers.reading import Part
from helpers.chapters.probing_classifiers.structural import neighbours, train_structural, undirected
from helpers.stats import Estimate, ratio, stack


@dataclass(frozen=True, eq=False)
class Refits:
    """A parser trained again and again.

    Attributes:
        scores: (fit), UAS on the test part, paired over its sentences.
        probes: one for each fit.
    """

    scores: Estimate
    probes: tuple[nn.Module, ...]

    @property
    def score(self) -> Estimate:
        """The mean over the fits, with an interval over documents."""
        return self.scores.mean()

    @property
    def weights(self) -> Float[np.ndarray, "fit 2 head"]:
        """Of an attention-only probe, w and u of every head, see :meth:`AttentionProbe.weights`."""
        return np.stack([probe.weights() for probe in self.probes])


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a probe scores on the test part.

    Attributes:
        score: on the question itself, with an interval over documents; the mean where there are several fits.
        control: of the same kind of probe trained and scored on the control task, in one fit; None where there is none.
        probe: the trained probe, of several the first; None for rules and for logistic regressions.
        fits: of a parser, all its fits.
    """

    score: Estimate
    control: Estimate | None = None
    probe: nn.Module | None = None
    fits: Refits | None = None

    @property
    def selectivity(self) -> Estimate | None:
        """``score - control``, paired over documents (Hewitt & Liang 2019)."""
        return None if self.control is None else self.score - self.control


Parts = tuple[Part, Part, Part]
"""Training, development and test part."""

Make = Callable[[int], nn.Module]
"""Gives a new parser, whose first weights are drawn with a seed."""


def refits(
    make: Make,
    parts: Parts,
    seeds: Sequence[int],
    *,
    redrawn: bool = False,
    task: str = "governor",
    seed: int = 0,
    **options: Any,
) -> Refits:
    """Train a parser once for each of some seeds and score it on the test part.

    Args:
        redrawn: whether each fit has training sentences of its own, drawn anew with its seed (:meth:`Part.redrawn`).
        task: of :data:`TASKS`.
        seed: of the intervals.
        options: of :func:`train`.
    """
    train_part, dev, test = parts
    probes = tuple(
        train_parser(make(n), train_part.redrawn(n) if redrawn else train_part, dev, task=task, seed=n, **options)
        for n in seeds
    )
    right = (answers(parse(p, test), test, task) for p in probes)
    return Refits(stack([ratio(pairs, test.sentences, seed=seed) for pairs in right]), probes)


def parser_outcome(
    make: Make,
    parts: Parts,
    *,
    task: str = "governor",
    control: bool = True,
    fits: int = 1,
    seed: int = 0,
    **options: Any,
) -> Outcome:
    """Train a parser and score it on the test part; the same again for the control task.

    Args:
        task: of :data:`TASKS`.
        control: whether to train for the control task, too.
        fits: how often to train for the task itself, with seeds from ``seed`` on.
        options: of :func:`train`.
    """
    found = refits(make, parts, range(seed, seed + fits), task=task, seed=seed, **options)
    other = refits(make, parts, [seed], task="control", seed=seed, **options).score if control else None
    return Outcome(found.score, other, found.probes[0], found)


def structural_outcome(parts: Parts, layer: int, *, seed: int = 0, **options: Any) -> Outcome:
    """Train a structural probe of a layer and score its UUAS on the test part; the same again for the control trees."""
    train_part, dev, test = parts
    asked = ("governor", "control")
    probes = [train_structural(train_part, dev, layer, task=t, seed=seed, **options) for t in asked]
    found = (undirected(p, test, t) for p, t in zip(probes, asked, strict=True))
    score, control = (ratio(pairs, test.sentences, seed=seed) for pairs in found)
    return Outcome(score, control, probes[0])


def layer_scores(parts: Parts, *, seed: int = 0, **options: Any) -> Estimate:
    """UUAS on the development part of a structural probe of every layer, embeddings first."""
    train_part, dev, _ = parts
    layers = range(len(train_part.blocks[0].hidden))
    probes = (train_structural(train_part, dev, layer, seed=seed, **options) for layer in layers)
    return stack([ratio(undirected(probe, dev), dev.sentences, seed=seed) for probe in probes])


def neighbours_outcome(part: Part, *, seed: int = 0) -> Outcome:
    """UUAS of the rule that joins each word to the next, which reads nothing."""
    return Outcome(ratio(neighbours(part), part.sentences, seed=seed))


def pair_outcome(
    train: Pairs, test: Pairs, *, of: str = "attention", control: bool = False, seed: int = 0
) -> Outcome:
    """Classify pairs by what :func:`classify` reads of them.

    Args:
        control: whether to do it again with labels that are random but the same for the same two words.
    """
    score = share(classify(train, test, of=of, seed=seed), test, seed=seed)
    if not control:
        return Outcome(score)
    random = control_labels(train, seed), control_labels(test, seed)
    return Outcome(score, share(classify(train, test, of=of, labels=random, seed=seed), test, seed=seed))


CONTROLS = (", @random", ", @shuffled")
"""How the name of an outcome ends that is a control's."""


def as_dict(outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """Scores, controls, selectivities and the scores of several fits for :func:`helpers.results.record`, and ``over``: the paired differences from all others.

    A control's rivals are the same control's where it has them, and else ours.

    Args:
        outcomes: of the same test sentences, or pairs.
    """
    found = {}
    for name, one in outcomes.items():
        kind = next((k for k in CONTROLS if name.endswith(k)), "")
        rivals = {n: outcomes.get(n + kind, o) for n, o in outcomes.items() if not n.endswith(CONTROLS)}
        over = {rival: one.score - other.score for rival, other in rivals.items() if other is not one}
        found[name] = {"score": one.score, "over": over}
        if one.control is not None:
            found[name] |= {"control": one.control, "selectivity": one.selectivity}
        if one.fits is not None and len(one.fits.probes) > 1:
            found[name]["fits"] = one.fits.scores.value
    return found
