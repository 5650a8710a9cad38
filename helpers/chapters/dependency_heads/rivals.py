"""Chapter 04: what else could point at governors, and where a head's lines land.

Rules that know the class of every word and no attention; the accuracy of a head by how far away the governor is; and
whether a head that goes from objects to verbs goes to the verb from other nouns too.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from helpers.chapters.dependency_heads.measures import Predictions, Row, Scores, score, table
from helpers.corpora.treebanks import Sentence
from helpers.engine.estimates import Estimate, ratio

NOUNS = ("NOUN", "PROPN", "PRON")
CLASSES: Mapping[str, tuple[str, ...]] = {
    "verb": ("VERB",),
    "verb or auxiliary": ("VERB", "AUX"),
    "noun": ("NOUN", "PROPN"),
    "noun or pronoun": NOUNS,
    "adjective": ("ADJ",),
    "preposition": ("ADP",),
    "word": (),
}
"""Classes of words that a rule may look for, by their tags in the treebank; without tags, any word."""
SIDES = ("left", "right")
LANDED = ("the verb", "the preposition", "another word")
"""Where a noun's line can land, see :func:`landing`."""


def by_class(predictions: Predictions) -> Predictions:
    """Rules in place of heads: "the nearest word of a class to the left (or right)", for every word of the same sentences.

    Returns:
        Predictions with an entry for each of :data:`CLASSES` where layers stand, and for each of :data:`SIDES` where heads
        stand; -1 where a sentence has no such word. To be scored like those of heads.
    """
    nearest = [np.stack([_nearest(s, tags) for tags in CLASSES.values()]) for s in predictions.sentences]
    return Predictions(predictions.sentences, np.concatenate(nearest, axis=-1)[:, :, None])


def _nearest(sentence: Sentence, tags: Sequence[str]) -> NDArray[np.int16]:
    """[side, word], the nearest word with one of the tags on each side, -1 without one."""
    n = len(sentence.words)
    there = np.array([not tags or tag in tags for tag in sentence.upos])
    left = np.maximum.accumulate(np.where(there, np.arange(n), -1))
    right = np.minimum.accumulate(np.where(there, np.arange(n), n)[::-1])[::-1]
    before, after = np.append(-1, left[:-1]), np.append(right[1:], n)
    return np.stack([before, np.where(after == n, -1, after)]).astype(np.int16)


def class_rows(dev: Predictions, test: Predictions, *, seed: int = 0) -> dict[str, Row]:
    """For each relation the rule by class that is best on ``dev``, scored on ``test``, see :func:`by_class`."""
    there, here = (score(by_class(part)) for part in (dev, test))
    return {row.relation: row for row in table(there, here, seed=seed)}


def rule_name(row: Row) -> str:
    """``last verb``: what a row of :func:`class_rows` looks for and on which side."""
    kind, side, _ = row.head
    return f"{('last', 'next')[side]} {list(CLASSES)[kind]}"


def by_distance(
    predictions: Predictions,
    scores: Scores,
    relation: str,
    head: tuple[int, int, int],
    *,
    side: int,
    farthest: int = 3,
    seed: int = 0,
) -> dict[str, tuple[int, Estimate]]:
    """How often a head is right about a relation, by how many words away the governor stands.

    Args:
        side: of the governor, -1 left and 1 right; words whose governor is on the other side are left out.
        farthest: from this distance on, all count together.

    Returns:
        "1", "2", …, "3 or more" -> number of words, and accuracy with an interval over sentences; only distances that occur.
    """
    governors = np.concatenate([s.governors for s in predictions.sentences])
    away = side * (governors - predictions.position)
    asked = scores.asked(relation) & (away > 0)
    found, size = {}, len(predictions.sentences)
    for distance in range(1, farthest + 1):
        here = asked & ((away == distance) if distance < farthest else (away >= distance))
        if here.any():
            at = scores.sentence[here]
            hits = np.bincount(at, scores.hits[0][head][here], size)
            answers = np.stack([hits, np.bincount(at, minlength=size)], 1)
            name = str(distance) if distance < farthest else f"{distance} or more"
            found[name] = int(here.sum()), ratio(answers, seed=seed)
    return found


def landing(
    predictions: Predictions, head: tuple[int, int, int], *, verb_at: tuple[int, int] = (2, 3)
) -> dict[str, list[str]]:
    """Where a head's line lands from nouns that stand a few words after the last verb.

    Args:
        verb_at: the least and the largest distance of that verb.

    Returns:
        "objects" and "behind a preposition" -> for each such noun one of :data:`LANDED`. Objects are objects of that verb;
        the others have their own preposition between the verb and themselves.
    """
    found: dict[str, list[str]] = {"objects": [], "behind a preposition": []}
    pointed = np.split(predictions.governors[head], np.cumsum(predictions.lengths)[:-1])
    for sentence, lines in zip(predictions.sentences, pointed, strict=True):
        for kind, word, verb, preposition in _after_verbs(sentence, verb_at):
            landed = {verb: LANDED[0], preposition: LANDED[1]}
            found[kind].append(landed.get(int(lines[word]), LANDED[2]))
    return found


def _after_verbs(sentence: Sentence, verb_at: tuple[int, int]) -> Iterator[tuple[str, int, int, int | None]]:
    """Kind, place, last verb and own preposition of each noun that :func:`landing` asks about."""
    last = _nearest(sentence, CLASSES["verb"])[0]
    for word, (verb, tag) in enumerate(zip(last.tolist(), sentence.upos, strict=True)):
        if tag not in NOUNS or verb < 0 or not verb_at[0] <= word - verb <= verb_at[1]:
            continue
        own = [w for w in range(verb + 1, word) if sentence.governors[w] == word and sentence.relations[w] == "case"]
        if own:
            yield "behind a preposition", word, verb, own[0]
        elif sentence.relations[word] == "obj" and sentence.governors[word] == verb:
            yield "objects", word, verb, None


def shares(landed: Mapping[str, Sequence[str]]) -> dict[str, NDArray[np.float64]]:
    """The share of each of :data:`LANDED` for each kind of noun with its number, for bars; kinds that do not occur are left out."""
    return {
        f"{kind} ({len(lines)})": np.array([lines.count(place) / len(lines) for place in LANDED])
        for kind, lines in landed.items()
        if lines
    }
