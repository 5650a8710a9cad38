"""Keyphrases in a text: its words, where phrases lie in it, candidates, and how well a list of phrases does.

Two phrases are the same when their words are, capitals and punctuation aside: "State-of-the-art" is "state of the art".
There is no stemming: "neural network" is not "neural networks".
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

OUTSIDE, BEGIN, INSIDE = range(3)
"""What a word is for a tagger: part of no keyphrase, the first word of one, another word of it."""

_UNIT = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"\w+")
_JOIN = re.compile(r"(?:[^\S\n]|[-–'’/&+]|\.(?!\s))*")  # what may stand between two words of one candidate


@dataclass(frozen=True)
class Spelled:
    """A text as words and marks.

    Attributes:
        units: words and punctuation marks, in order; what an encoder is given.
        spans: first and last character (excluded) of each unit.
        places: for each word (marks left out), which unit it is.
        words: the words, in lower case.
        joined: for each word, whether a phrase may go on from the word before it: not across a comma, say.
    """

    units: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    places: tuple[int, ...]
    words: tuple[str, ...]
    joined: tuple[bool, ...]

    @cached_property
    def content(self) -> tuple[bool, ...]:
        """For each word whether it may be part of a candidate: no stop word, no number, more than one letter."""
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # takes longer to import than all else here

        return tuple(w not in ENGLISH_STOP_WORDS and len(w) > 1 and not w.isdecimal() for w in self.words)


@lru_cache(maxsize=8192)
def spell(text: str) -> Spelled:
    """Cut a text into words and punctuation marks."""
    matches = list(_UNIT.finditer(text))
    places = [n for n, match in enumerate(matches) if _WORD.fullmatch(match.group())]
    gaps = [text[matches[a].end() : matches[b].start()] for a, b in pairwise(places)]
    joined = [False, *(_JOIN.fullmatch(gap) is not None for gap in gaps)]
    units, spans = (tuple(match.group() for match in matches), tuple(match.span() for match in matches))
    words = tuple(units[n].lower() for n in places)
    return Spelled(units, spans, tuple(places), words, tuple(joined[: len(places)]))


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


def _spans(spelled: Spelled, phrases: Iterable[str]) -> list[slice]:
    """The words of each phrase wherever it stands, longest first, then in order."""
    spans = [slice(n, n + len(p.split())) for p, starts in locate(spelled, phrases).items() for n in starts]
    return sorted(spans, key=lambda span: (span.start - span.stop, span.start))


def key_words(spelled: Spelled, phrases: Iterable[str]) -> list[bool]:
    """For each word whether it is part of one of the phrases."""
    key = np.zeros(len(spelled.words), bool)
    for span in _spans(spelled, phrases):
        key[span] = True
    return key.tolist()


def tags(spelled: Spelled, phrases: Iterable[str]) -> list[int]:
    """:data:`OUTSIDE`, :data:`BEGIN` or :data:`INSIDE` for each word; where phrases overlap, the longer one counts."""
    tags = np.full(len(spelled.words), OUTSIDE)
    for span in _spans(spelled, phrases):
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


def candidates(spelled: Spelled) -> list[tuple[int, int]]:
    """Longest stretches of words without a stop word, number or mark between them: (first word, number of words).

    The candidates of Rose et al. 2010 (RAKE): noun phrases, more or less, phrases without a tagger.
    """
    content, joined = np.array(spelled.content, bool), np.array(spelled.joined, bool)
    goes_on = content & joined & np.append(False, content)[:-1]
    first = np.flatnonzero(content & ~goes_on).tolist()
    return [(a, int(content[a:b].sum())) for a, b in pairwise([*first, len(content)])]


def ranked(spelled: Spelled, scores: Sequence[float]) -> list[str]:
    """The candidates of a text, best first: a candidate's score is the sum over its occurrences of its words' scores.

    Args:
        scores: one for each word. Of equal candidates the one that comes first in the text is first.
    """
    total: dict[str, float] = {}
    for start, size in candidates(spelled):
        phrase = " ".join(spelled.words[start : start + size])
        total[phrase] = total.get(phrase, 0.0) + float(sum(scores[start : start + size]))
    return sorted(total, key=lambda phrase: -total[phrase])


def f1(predicted: Iterable[str], right: Iterable[str]) -> float:
    """F1 of a set of phrases against the right ones, both in normal form; 1 when both are empty."""
    predicted, right = set(predicted), set(right)
    return 2 * len(predicted & right) / (len(predicted) + len(right)) if predicted or right else 1.0
