"""Checks for the exercises of chapter 06."""

from collections.abc import Callable

import numpy as np

from helpers.chapters.checks import _close, _exercise, _maps, _Wrong


@_exercise
def governor_scores(answer: Callable) -> str:
    """Chapter 06: the scores of the attention-only probe for one sentence."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        maps, w, u = np.stack([_maps(5, seed + n) for n in range(4)]), rng.normal(size=4), rng.normal(size=4)
        wanted = np.zeros((5, 5))
        for j in range(5):
            for i in range(5):
                wanted[j, i] = sum(w[k] * maps[k, i, j] + u[k] * maps[k, j, i] for k in range(4))
        got = answer(maps, w, u)
        if got is not None and np.shape(got) == (5, 5) and np.allclose(np.asarray(got, np.float64).T, wanted):
            raise _Wrong(
                "the directions are mixed up: u goes with attention from the dependent, which is the row of the result."
            )
        _close(
            got, wanted, "it should be w_k * maps[k, i, j] + u_k * maps[k, j, i], summed over k, in row j, column i."
        )
    return "right: dependents are rows, and each head has a weight for either direction."


@_exercise
def edges_by_guessing(answer: Callable) -> str:
    """Chapter 06: how often "no edge" is right when pairs are not balanced."""
    for words in (5, 20, 2):
        got = answer(words)
        if words > 2 and got is not None and np.isclose(got, 0.5):
            raise _Wrong("it is one half only if the pairs are balanced; here all pairs of the sentence are asked.")
        if words > 2 and got is not None and np.isclose(got, 2 / words):
            raise _Wrong('that is the share of pairs with an edge; the guess is "no edge".')
        _close(got, 1 - 2 / words, f"a tree over {words} words has {words - 1} edges; how many pairs are there?")
    return "right: with 20 words, always saying no is right nine times in ten."


@_exercise
def undirected_score(answer: Callable) -> str:
    """Chapter 06: UUAS of a sentence."""
    gold = [3, -1, 1, 1, 3]
    for predicted, wanted in (
        ([(0, 3), (1, 2), (1, 3), (3, 4)], 1.0),
        ([(3, 0), (2, 1), (0, 1), (0, 2)], 0.5),
        ([(0, 1), (0, 2), (0, 4), (2, 3)], 0.0),
    ):
        got = answer(gold, predicted)
        if got is not None and np.isclose(got, wanted * 4 / 5) and wanted:
            raise _Wrong("a sentence of five words has four edges: the root (-1) has no governor.")
        _close(
            got, wanted, "it is the share of the tree's edges that are among the predicted ones, in either direction."
        )
    return "right, whichever end comes first."
