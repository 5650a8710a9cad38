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
from helpers.chapters.probing_classifiers.parsers import AttentionProbe, answers, parse, train_parser
from helpers.chapters.probing_classifiers.reading import Part
from helpers.chapters.probing_classifiers.structural import neighbours, train_structural, undirected
from helpers.engine.estimates import Estimate, ratio, stack


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a probe scores on the test part.

    Attributes:
        score: on the question itself, with an interval over sentences.
        control: of the same kind of probe trained and scored on the control task; None where there is none.
        probe: the trained probe, None for rules and for logistic regressions.
    """

    score: Estimate
    control: Estimate | None = None
    probe: nn.Module | None = None

    @property
    def selectivity(self) -> Estimate | None:
        """``score - control``, paired over sentences (Hewitt & Liang 2019)."""
        return None if self.control is None else self.score - self.control


Parts = tuple[Part, Part, Part]
"""Training, development and test part."""


def parser_outcome(
    make: Callable[[], nn.Module],
    parts: Parts,
    *,
    task: str = "governor",
    control: bool = True,
    seed: int = 0,
    **options: Any,
) -> Outcome:
    """Train a parser and score it on the test part; the same again for the control task.

    Args:
        make: gives a new parser each time.
        task: of :data:`TASKS`.
        control: whether to train for the control task, too.
        options: of :func:`train`.
    """
    train_part, dev, test = parts
    asked = (task, "control")[: 1 + control]
    probes = [train_parser(make(), train_part, dev, task=t, seed=seed, **options) for t in asked]
    return _outcome(probes, [answers(parse(p, test), test, t) for p, t in zip(probes, asked, strict=True)], seed)


def structural_outcome(parts: Parts, layer: int, *, seed: int = 0, **options: Any) -> Outcome:
    """Train a structural probe of a layer and score its UUAS on the test part; the same again for the control trees."""
    train_part, dev, test = parts
    asked = ("governor", "control")
    probes = [train_structural(train_part, dev, layer, task=t, seed=seed, **options) for t in asked]
    return _outcome(probes, [undirected(p, test, t) for p, t in zip(probes, asked, strict=True)], seed)


def _outcome(probes: Sequence[nn.Module], right: Sequence[Float[np.ndarray, "sentence 2"]], seed: int) -> Outcome:
    """Of a probe's right answers and, if it was asked, its control's."""
    score, *control = (ratio(found, seed=seed) for found in right)
    return Outcome(score, *control or [None], probes[0])


def layer_scores(parts: Parts, *, seed: int = 0, **options: Any) -> Estimate:
    """UUAS on the development part of a structural probe of every layer, embeddings first."""
    train_part, dev, _ = parts
    layers = range(len(train_part.blocks[0].hidden))
    probes = (train_structural(train_part, dev, layer, seed=seed, **options) for layer in layers)
    return stack([ratio(undirected(probe, dev), seed=seed) for probe in probes])


def neighbours_outcome(part: Part, *, seed: int = 0) -> Outcome:
    """UUAS of the rule that joins each word to the next, which reads nothing."""
    return Outcome(ratio(neighbours(part), seed=seed))


@dataclass(frozen=True, eq=False)
class Refits:
    """An attention-only probe trained again and again.

    Attributes:
        scores: [fit], UAS on the test part.
        weights: [fit, 2, head], w and u of every head, see :meth:`AttentionProbe.weights`.
    """

    scores: Float[np.ndarray, "fit"]
    weights: Float[np.ndarray, "fit 2 head"]


def refits(
    make: Callable[[], AttentionProbe], parts: Parts, seeds: Sequence[int], *, redrawn: bool, **options: Any
) -> Refits:
    """Train a probe once for each seed and score it on the test part.

    Args:
        make: gives a new probe each time.
        redrawn: whether each fit has training sentences of its own, drawn anew with its seed (:meth:`Part.redrawn`).
        options: of :func:`train`.
    """
    train_part, dev, test = parts
    probes = [
        train_parser(make(), train_part.redrawn(seed) if redrawn else train_part, dev, seed=seed, **options)
        for seed in seeds
    ]
    scores = [float(np.divide(*answers(parse(probe, test), test).sum(0))) for probe in probes]
    return Refits(np.array(scores), np.stack([probe.weights() for probe in probes]))


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
    """Scores, controls and selectivities for :func:`helpers.record.results.record`, and ``over``: the paired differences from all others.

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
    return found
