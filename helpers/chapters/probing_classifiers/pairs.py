"""Pairs of words: whether an edge joins them, and which relation it is (Coenen et al. 2019)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from helpers.chapters.probing_classifiers.reading import Part, drawn, scored_words
from helpers.corpora.treebanks import Sentence
from helpers.engine.estimates import Estimate, ratio


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of words of one sentence and what is asked of them.

    Attributes:
        attention: [pair, 2 × head], weights of all heads from the first word to the second, then back.
        distance: [pair], places from the first word to the second.
        label: [pair], 1 where an edge joins them (or the name of the relation).
        sentence: [pair], index of their sentence.
        kinds: [pair], both words in lower case.
    """

    attention: Float[np.ndarray, "pair feature"]
    distance: Int[np.ndarray, "pair"]
    label: np.ndarray
    sentence: Int[np.ndarray, "pair"]
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
    by_sentence = np.argsort(sentence, kind="stable")
    bounds = np.searchsorted(sentence[by_sentence], np.arange(len(part.sentences) + 1))
    for block in part.blocks:
        for row, number in enumerate(block.numbers):
            at = by_sentence[bounds[number] : bounds[number + 1]]
            one, two = torch.from_numpy(first[at] + 2), torch.from_numpy(second[at] + 2)
            weights[at] = torch.cat([block.maps[row, one, two], block.maps[row, two, one]], 1).float().numpy()
    kinds = tuple(tuple(part.sentences[n].words[w].lower() for w in (a, b)) for n, a, b, _ in chosen)
    return Pairs(weights, second - first, np.array([c[3] for c in chosen]), sentence, kinds)


def control_labels(pairs: Pairs, seed: int = 0) -> np.ndarray:
    """A label for each pair that depends on its two words only: drawn once for all from the labels there are, as often as these."""
    labels = np.sort(pairs.label)
    return np.array([labels[drawn("\n".join(kinds), len(labels), seed)] for kinds in pairs.kinds])


def classify(
    train: Pairs, test: Pairs, *, of: str = "attention", labels: tuple[np.ndarray, np.ndarray] | None = None
) -> Float[np.ndarray, "pair"]:
    """Fit a logistic regression on some pairs and say where it is right on others.

    Args:
        of: ``attention`` (all heads, both directions) or ``distance`` (which of 21 classes, −10 to 10, the rest at the ends).
        labels: of both sets of pairs, in place of their own.

    Raises:
        ValueError: for another ``of``.
    """
    if of == "attention":
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300, tol=1e-3))
        inputs = train.attention, test.attention
    elif of == "distance":
        model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=300))
        inputs = tuple(p.distance.clip(-10, 10)[:, None] for p in (train, test))
    else:
        raise ValueError(f"of={of!r}: say 'attention' or 'distance'.")
    wanted = labels or (train.label, test.label)
    return (model.fit(inputs[0], wanted[0]).predict(inputs[1]) == wanted[1]).astype(np.float64)


def share(right: Float[np.ndarray, "pair"], pairs: Pairs, *, seed: int = 0) -> Estimate:
    """Share of pairs that were classified rightly, with an interval over sentences."""
    found, at = np.unique(pairs.sentence, return_inverse=True)
    return ratio(np.stack([np.bincount(at, right, len(found)), np.bincount(at, minlength=len(found))], 1), seed=seed)
