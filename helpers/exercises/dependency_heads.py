"""You read every head as a parser, against fixed distances, rules that know word classes, and heads that learned nothing.

After {cite:t}`clark2019`, section 4.2.
"""

import numpy as np

from helpers.exercises.checks import desk, exercise, maps

WORDS = ([0, 1, 1, 2], [0, 0, 1, 2, 2, 2], [0, 1, 2])


def _sentences(seed: int) -> list[list[int]]:
    """Governors of the words of six sentences; a root has -1."""
    rng, sentences = np.random.default_rng(seed), []
    for n in rng.integers(2, 8, 6):
        governors = [int(rng.choice(np.delete(np.arange(n), word))) for word in range(n)]
        governors[rng.integers(n)] = -1
        sentences.append(governors)
    return sentences


def _scored(sentences: list[list[int]], offset: int, roots: bool = False, outside: bool = True) -> np.ndarray:
    """An offset, and how often the governor of a word stands so many words to the right."""
    words = [(w, g, len(sentence)) for sentence in sentences for w, g in enumerate(sentence) if roots or g >= 0]
    hits = [w + offset == g for w, g, n in words if outside or 0 <= w + offset < n]
    return np.array([offset, np.mean(hits or [0])])


def _best(sentences: list[list[int]], **counted: bool) -> int:
    return max((-3, -2, -1, 1, 2, 3), key=lambda offset: _scored(sentences, offset, **counted)[1])


def _not_rows(results):
    if not np.allclose(results[-1].sum(-1), 1):
        return "not_rows"


@exercise([(maps(len(words), 0), words) for words in WORDS], remark=_not_rows)
def pool_words(weights, words):
    """A map of tokens as a map of words: summed over the looked-at, averaged over the looking pieces."""
    member = np.equal.outer(np.arange(max(words) + 1), words) * 1.0
    pooled = member @ weights @ member.T / member.sum(-1, keepdims=True)
    return {"right": pooled}


@exercise([(_sentences(seed), _sentences(seed + 10)) for seed in (3, 7, 8, 12)])
def offset_parser(dev, test):
    """The offset that is right most often in one list, and its share in the other."""
    best = _best(dev)
    right = _scored(test, best)
    return {
        "right": right,
        "chosen_on_test": _scored(test, _best(test)),
        "share_of_dev": _scored(dev, best),
        "roots_too": _scored(test, _best(dev, roots=True), roots=True),
        "to_the_left": right * [-1, 1],
        "inside_only": _scored(test, _best(dev, outside=False), outside=False),
        "by_sentence": np.mean([_scored([sentence], best) for sentence in test], axis=0),
    }


check, hint, progress = desk("dependency_heads", pool_words, offset_parser)
