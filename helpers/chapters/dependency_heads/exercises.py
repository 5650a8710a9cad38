"""The exercises of chapter 04."""

import numpy as np

from helpers.chapters.checks import Exercise, known_by, maps
from helpers.chapters.progress import desk

OFFSETS = (-3, -2, -1, 1, 2, 3)


def _sentences(seed: int) -> list[list[int]]:
    """Governors of the words of six sentences; a root has -1."""
    rng, sentences = np.random.default_rng(seed), []
    for n in rng.integers(2, 8, 6):
        governors = [int(rng.choice(np.delete(np.arange(n), word))) for word in range(n)]
        governors[rng.integers(n)] = -1
        sentences.append(governors)
    return sentences


def _hits(sentence: list[int], offset: int, roots: bool = False) -> list[bool]:
    """For each word whether its governor stands so many words to the right."""
    return [w + offset == g for w, g in enumerate(sentence) if roots or g >= 0]


def _share(sentences: list[list[int]], offset: int, roots: bool = False) -> float:
    """How often the governor of a word stands so many words to the right."""
    return np.mean([hit for sentence in sentences for hit in _hits(sentence, offset, roots)])


def _inside(sentences: list[list[int]], offset: int) -> float:
    """The same, of the words whose offset stays in the sentence."""
    words = [(w + offset, g) for s in sentences for w, g in enumerate(s) if g >= 0 and 0 <= w + offset < len(s)]
    return np.mean([pointed == g for pointed, g in words] or [0])


def _member(words: list[int]) -> np.ndarray:
    """Whether a piece is of a word, as [word, token] of 0 and 1."""
    return np.equal.outer(np.arange(max(words) + 1), words) * 1.0


class pool_words(Exercise):
    """A map of tokens as a map of words: summed over the looked-at, averaged over the looking pieces."""

    solved = "right: attention to a word is a sum, attention from it a mean, and rows still sum to 1."
    means = "Sums over attended pieces and means over attending ones keep a row a distribution, so words can be compared like tokens."
    leads_on = "What would change in the parser of this chapter if the first piece of each word spoke for the whole?"
    hints = (
        "`member = np.equal.outer(range(max(words) + 1), words)` has a row for each word; `… @ member.T` sums over attended pieces.",
        "For the attending pieces divide each row of `member` by its sum and multiply from the left.",
    )

    cases = tuple(
        (maps(len(words), seed), words) for seed, words in enumerate(([0, 1, 1, 2], [0, 0, 1, 2, 2, 2], [0, 1, 2]))
    )

    def right(weights, words):
        """the rows sum to 1, but the weights differ; is it the mean over a word's own pieces?"""
        return _member(words) @ weights @ _member(words).T / _member(words).sum(-1, keepdims=True)

    @known_by(lambda got, *_: not np.allclose(got.sum(-1), 1))
    def sums_only(weights, words):
        """the rows do not sum to 1: take the sum over the attended pieces, but the mean over the attending ones."""
        return _member(words) @ weights @ _member(words).T


class offset_parser(Exercise):
    """The offset that is right most often in one list, and its share in the other."""

    solved = "right: the offset is chosen on the first part and scored on the second, roots left out."
    means = (
        "A rival that sees no attention is chosen and scored exactly as the heads are, or the comparison is not fair."
    )
    leads_on = "Which offset would win in a language whose verbs stand at the end?"
    hints = (
        "Write the share of right words for one part and one offset first: word `w` is right when `w + offset` is its governor.",
        "Leave out words whose governor is -1. Take the best offset with `max(…, key=…)` on `dev`, and return its share on `test`.",
    )

    cases = tuple((_sentences(seed), _sentences(seed + 10)) for seed in (3, 7, 8, 12))

    def right(dev, test):
        """the pair should be the offset of -3 to 3 that is right most often in `dev`, and its share in `test`."""
        best = max(OFFSETS, key=lambda offset: _share(dev, offset))
        return np.array([best, _share(test, best)])

    def chosen_on_test(dev, test):
        """the offset is the one that is best in `test`: it was chosen on the data that scores it."""
        best = max(OFFSETS, key=lambda offset: _share(test, offset))
        return np.array([best, _share(test, best)])

    def scored_on_dev(dev, test):
        """the offset is right, but its share is that of `dev`, the part that chose it."""
        best = max(OFFSETS, key=lambda offset: _share(dev, offset))
        return np.array([best, _share(dev, best)])

    def roots_too(dev, test):
        """the root has no governor (-1): leave it out of the count, in both parts."""
        best = max(OFFSETS, key=lambda offset: _share(dev, offset, roots=True))
        return np.array([best, _share(test, best, roots=True)])

    def to_the_left(dev, test):
        """the offset has the wrong sign: +1 is the next word, so word `w` points to word `w + offset`."""
        best, share = offset_parser.right(dev, test)
        return np.array([-best, share])

    def inside_only(dev, test):
        """words whose offset leads out of the sentence are missing; they have a governor too, and count as wrong."""
        best = max(OFFSETS, key=lambda offset: _inside(dev, offset))
        return np.array([best, _inside(test, best)])

    def by_sentence(dev, test):
        """it is the mean of the sentences' shares; count all words of the part alike, whatever sentence they are in."""
        best = max(OFFSETS, key=lambda offset: _share(dev, offset))
        return np.array([best, np.mean([np.mean(_hits(sentence, best)) for sentence in test])])


check, hint, progress = desk(globals())
