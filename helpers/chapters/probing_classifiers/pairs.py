"""Pairs of words: whether an edge joins them, and which relation it is (Coenen et al. 2019)."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers import stats
from helpers.chapters.probing_classifiers.reading import Part, drawn, scored_words
from helpers.corpora.treebanks import Sentence
from helpers.stats import Estimate


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of words of one sentence and what is asked of them.

    Attributes:
        attention: [pair, 2 × head], weights of all heads from the first word to the second, then back.
        distance: [pair], places from the first word to the second.
        words: [pair, 2 × dimension], the vectors of both words.
        label: [pair], 1 where an edge joins them (or the name of the relation).
        sentence, document: [pair], index of their sentence, and number of its document.
        kinds: [pair], both words in lower case.
    """

    attention: Float[np.ndarray, "pair feature"]
    distance: Int[np.ndarray, "pair"]
    words: Float[np.ndarray, "pair dimension"]
    label: np.ndarray
    sentence: Int[np.ndarray, "pair"]
    document: Int[np.ndarray, "pair"]
    kinds: tuple[tuple[str, str], ...]


def edge_pairs(part: Part, *, equally_far: bool = False, limit: int | None = None, seed: int = 0) -> Pairs:
    """As many pairs with an edge as without, the left word first; punctuation is left out.

    Args:
        equally_far: each pair without an edge is as far apart as one with an edge of the same sentence, so that
            distance says nothing; edges for which there is no such pair are left out.
        limit: most edges.
        seed: of the choice of pairs without an edge.
    """
    rng = np.random.default_rng(seed)
    chosen: list[tuple[int, int, int, int]] = []
    for number, sentence in enumerate(part.sentences):
        chosen += [(number, *pair) for pair in _balanced(sentence, equally_far, rng)]
        if limit is not None and len(chosen) >= 2 * limit:
            break
    return _pairs(part, chosen)


def _balanced(sentence: Sentence, equally_far: bool, rng: np.random.Generator) -> list[tuple[int, int, int]]:
    words = np.flatnonzero(scored_words(sentence))
    scored = set(words.tolist())
    edges = {(min(w, g), max(w, g)) for w, g in enumerate(sentence.governors) if {w, g} <= scored}
    others = [(int(a), int(b)) for i, a in enumerate(words) for b in words[i + 1 :] if (a, b) not in edges]
    others = [others[n] for n in rng.permutation(len(others))]
    found = []
    for edge in sorted(edges):
        apart = edge[1] - edge[0]
        match = next((n for n, (a, b) in enumerate(others) if not equally_far or b - a == apart), None)
        if match is not None:
            found += [(*edge, 1), (*others.pop(match), 0)]
    return found


def relation_pairs(
    part: Part, *, fewest: int = 30, relations: Sequence[str] | None = None, limit: int | None = None
) -> Pairs:
    """Pairs of a dependent and its governor, in this order, with the name of their relation.

    Args:
        relations: only these (default: those with at least ``fewest`` pairs; all where fewer than two have so many).
        limit: most pairs.
    """
    places = [
        (n, w, g)
        for n, s in enumerate(part.sentences)
        for w, (g, keep) in enumerate(zip(s.governors, scored_words(s), strict=True))
        if keep and g >= 0
    ]
    names = [part.sentences[n].relations[w] for n, w, _ in places]
    frequent = {r for r, c in Counter(names).items() if c >= fewest}
    wanted = set(relations) if relations is not None else frequent if len(frequent) > 1 else set(names)
    return _pairs(part, [(*p, r) for p, r in zip(places, names, strict=True) if r in wanted][:limit])


def usual(part: Part, wanted: str) -> str:
    """The relation that is wanted for an example, or the most frequent one where the part has none of it."""
    relations = part.relation[part.scored]
    return wanted if wanted in relations else str(Counter(relations.tolist()).most_common(1)[0][0])


def _pairs(part: Part, chosen: Sequence[tuple[int, int, int, Any]]) -> Pairs:
    heads = part.shape[0] * part.shape[1]
    sentence = np.array([c[0] for c in chosen])
    first, second = (np.array([c[k] for c in chosen]) for k in (1, 2))
    weights = np.zeros((len(chosen), 2 * heads), np.float32)
    vectors = np.zeros((len(chosen), 2 * part.blocks[0].vectors.shape[-1]), np.float32)
    by_sentence = np.argsort(sentence, kind="stable")
    bounds = np.searchsorted(sentence[by_sentence], np.arange(len(part.sentences) + 1))
    for block in part.blocks:
        for row, number in enumerate(block.numbers):
            at = by_sentence[bounds[number] : bounds[number + 1]]
            one, two = torch.from_numpy(first[at] + 2), torch.from_numpy(second[at] + 2)
            weights[at] = torch.cat([block.maps[row, one, two], block.maps[row, two, one]], 1).float().numpy()
            vectors[at] = torch.cat([block.vectors[row, one], block.vectors[row, two]], 1).numpy()
    kinds = tuple(tuple(part.sentences[n].words[w].lower() for w in (a, b)) for n, a, b, _ in chosen)
    document = np.array([part.sentences[n].document for n in sentence])
    return Pairs(weights, second - first, vectors, np.array([c[3] for c in chosen]), sentence, document, kinds)


def control_labels(pairs: Pairs, seed: int = 0) -> np.ndarray:
    """A label for each pair that depends on its two words only: drawn once for all from the labels there are, as often as these."""
    labels = np.sort(pairs.label)
    return np.array([labels[drawn("\n".join(kinds), len(labels), seed)] for kinds in pairs.kinds])


READERS = {
    "attention": ("attention",),
    "distance": ("distance",),
    "words": ("words",),
    "words and distance": ("words", "distance"),
    "attention, words and distance": ("attention", "words", "distance"),
}
"""What a classifier of pairs may read, by name."""

FARTHEST = 10
"""Places from which on distances are one class for the classifiers of pairs."""

HIDDEN, PENALTY, PASSES = 64, 1.0, 60
"""Of the classifiers that read words: hidden units, L2 penalty, passes over the pairs."""


def classify(
    train: Pairs,
    test: Pairs,
    *,
    of: str = "attention",
    labels: tuple[np.ndarray, np.ndarray] | None = None,
    seed: int = 0,
) -> Float[np.ndarray, "pair"]:
    """Fit a classifier on some pairs and say where it is right on others.

    Attention (of all heads, both directions) or distance (which of 21 classes, −10 to 10, the rest at the ends) is read by a
    logistic regression with the library's own L2 penalty. What the words say of a pair is no sum over its two words, so with them it is a network with one
    hidden layer. All that is read has mean 0 and variance 1 on the pairs fitted.

    Args:
        of: name in :data:`READERS`.
        labels: of both sets of pairs, in place of their own.
        seed: of the network's first weights and of the order of its batches.

    Raises:
        ValueError: for another ``of``.
    """
    if of not in READERS:
        raise ValueError(f"of={of!r}: say one of {', '.join(map(repr, READERS))}.")
    if "words" in READERS[of]:
        network = {"activation": "tanh", "alpha": PENALTY, "max_iter": PASSES, "random_state": seed}
        model = MLPClassifier((HIDDEN,), **network)
    else:
        model = LogisticRegression(max_iter=300, tol=1e-3)
    inputs = [np.hstack([_read(pairs, kind) for kind in READERS[of]]) for pairs in (train, test)]
    wanted = labels or (train.label, test.label)
    with warnings.catch_warnings():  # the passes are few on purpose
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make_pipeline(StandardScaler(), model).fit(inputs[0], wanted[0])
    return (model.predict(inputs[1]) == wanted[1]).astype(np.float64)


def _read(pairs: Pairs, kind: str) -> Float[np.ndarray, "pair feature"]:
    if kind == "distance":
        return np.eye(2 * FARTHEST + 1, dtype=np.float32)[pairs.distance.clip(-FARTHEST, FARTHEST) + FARTHEST]
    return getattr(pairs, kind)


def share(right: Float[np.ndarray, "pair"], pairs: Pairs, *, seed: int = 0) -> Estimate:
    """Share of pairs that were classified rightly, with an interval over documents."""
    return stats.mean(right, pairs.document, seed=seed)
