"""Keyphrases in a text: its words, where phrases lie in it, and how well a list of phrases does.

Two phrases are the same when their words are, capitals and punctuation aside: "State-of-the-art" is "state of the art".
There is no stemming: "neural network" is not "neural networks".
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

#: What a word is for a tagger: part of no keyphrase, the first word of one, another word of it.
OUTSIDE, BEGIN, INSIDE = range(3)

_UNIT = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Spelled:
    """A text as words and marks.

    Attributes:
        units: words and punctuation marks, in order; what an encoder is given.
        spans: first and last character (excluded) of each unit.
        places: for each word (marks left out), which unit it is.
        words: the words, in lower case.
    """

    units: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    places: tuple[int, ...]
    words: tuple[str, ...]


@lru_cache(maxsize=8192)
def spell(text: str) -> Spelled:
    """Cut a text into words and punctuation marks."""
    matches = list(_UNIT.finditer(text))
    units, spans = (tuple(match.group() for match in matches), tuple(match.span() for match in matches))
    places = tuple(n for n, unit in enumerate(units) if _WORD.fullmatch(unit))
    return Spelled(units, spans, places, tuple(units[n].lower() for n in places))


def normal(phrase: str) -> str:
    """A phrase as it is compared: its words in lower case, a space between them."""
    return " ".join(_WORD.findall(phrase.lower()))


def locate(spelled: Spelled, phrases: Iterable[str]) -> dict[str, list[int]]:
    """Where phrases stand in a text, word for word: normal form -> first words, for the phrases that are there."""
    starts_of: dict[str, list[int]] = {}
    for phrase in filter(None, map(normal, phrases)):
        wanted = tuple(phrase.split())
        starts = [n for n in range(len(spelled.words)) if spelled.words[n : n + len(wanted)] == wanted]
        if starts:
            starts_of[phrase] = starts
    return starts_of


def tags(spelled: Spelled, phrases: Iterable[str]) -> list[int]:
    """:data:`OUTSIDE`, :data:`BEGIN` or :data:`INSIDE` for each word; where phrases overlap, the longer one counts, of equals the first."""
    spans = [slice(n, n + len(p.split())) for p, starts in locate(spelled, phrases).items() for n in starts]
    tags = np.full(len(spelled.words), OUTSIDE)
    for span in sorted(spans, key=lambda span: (span.start - span.stop, span.start)):
        if not tags[span].any():
            tags[span] = INSIDE
            tags[span.start] = BEGIN
    return tags.tolist()


def tagged(spelled: Spelled, tags: Sequence[int]) -> tuple[str, ...]:
    """The phrases that tags of the first words stand for, each once, in order; an inside without a begin begins one."""
    phrases: list[str] = []
    for word, tag, before in zip(spelled.words, tags, [OUTSIDE, *tags], strict=False):
        if tag == INSIDE and before != OUTSIDE:
            phrases[-1] += f" {word}"
        elif tag != OUTSIDE:
            phrases.append(word)
    return tuple(dict.fromkeys(phrases))


def f1(predicted: Iterable[str], right: Iterable[str]) -> float:
    """F1 of a set of phrases against the right ones, both in normal form; 1 when both are empty."""
    predicted, right = set(predicted), set(right)
    return 2 * len(predicted & right) / (len(predicted) + len(right)) if predicted or right else 1.0
