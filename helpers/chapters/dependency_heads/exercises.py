"""The exercises of chapter 04."""

import numpy as np

from helpers.chapters.checks import Exercise, checker, known_by, maps


def _sentences(seed: int) -> list[list[int]]:
    """Governors of the words of six sentences; a root has -1."""
    rng, sentences = np.random.default_rng(seed), []
    for n in rng.integers(2, 8, 6):
        governors = [int(rng.choice(np.delete(np.arange(n), word))) for word in range(n)]
        governors[rng.integers(n)] = -1
        sentences.append(governors)
    return sentences


def _member(words: list[int]) -> np.ndarray:
    """Whether a piece is of a word, as [word, token] of 0 and 1."""
    return np.equal.outer(np.arange(max(words) + 1), words) * 1.0


class pool_words(Exercise):
    solved = "right: attention to a word is a sum, attention from it a mean, and rows still sum to 1."

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


class offset_accuracy(Exercise):
    solved = "right, roots left out."

    cases = tuple((_sentences(seed), offset) for seed, offset in enumerate((1, -2, 3)))

    def right(sentences, offset):
        """for offset {1} it should be the share of words w with governor w + offset."""
        return np.mean([w + offset == g for s in sentences for w, g in enumerate(s) if g >= 0])

    def roots_too(sentences, offset):
        """the root has no governor (-1): leave it out of the count."""
        return np.mean([w + offset == g for s in sentences for w, g in enumerate(s)])


class held_out(Exercise):
    solved = "right: chosen on one part, scored on the other."

    cases = tuple(tuple(np.random.default_rng(seed).random((2, 6, 12))) for seed in range(4))

    def right(dev, test):
        """take the head that is best in `dev` and return its accuracy in `test`."""
        return test.flat[dev.argmax()]

    def best_in_test(dev, test):
        """that is the best test accuracy: the head was chosen on the data that scores it."""
        return test.max()

    def best_in_dev(dev, test):
        """that is the accuracy on the part on which the head was chosen."""
        return dev.max()


check = checker(globals())
