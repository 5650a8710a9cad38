"""The exercises of chapter 06."""

import numpy as np

from helpers.chapters.checks import Exercise, checker, maps

GOVERNORS = [3, -1, 1, 1, 3]


def _probe(seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return np.stack([maps(5, seed + n) for n in range(4)]), rng.normal(size=4), rng.normal(size=4)


class governor_scores(Exercise):
    solved = "right: dependents are rows, and each head has a weight for either direction."

    cases = tuple(_probe(seed) for seed in range(3))

    def right(maps, w, u):
        """it should be w_k * maps[k, i, j] + u_k * maps[k, j, i], summed over k, in row j, column i."""
        return np.einsum("k,kij->ji", w, maps) + np.einsum("k,kji->ji", u, maps)

    def turned(*case):
        """the directions are mixed up: u goes with attention from the dependent, which is the row of the result."""
        return governor_scores.right(*case).T


class edges_by_guessing(Exercise):
    solved = "right: with 20 words, always saying no is right nine times in ten."

    cases = ((5,), (20,), (2,))

    def right(words):
        """a tree over {0} words has one edge less than that; how many pairs are there?"""
        return 1 - 2 / words

    def one_half(words):
        """it is one half only if the pairs are balanced; here all pairs of the sentence are asked."""
        return 0.5

    def with_an_edge(words):
        """that is the share of pairs with an edge; the guess is "no edge"."""
        return 2 / words


class undirected_score(Exercise):
    solved = "right, whichever end comes first."

    cases = (
        (GOVERNORS, [(0, 3), (1, 2), (1, 3), (3, 4)]),
        (GOVERNORS, [(3, 0), (2, 1), (0, 1), (0, 2)]),
        (GOVERNORS, [(0, 1), (0, 2), (0, 4), (2, 3)]),
    )

    def right(governors, predicted):
        """it is the share of the tree's edges that are among the predicted ones, in either direction."""
        return sum((w, g) in predicted or (g, w) in predicted for w, g in enumerate(governors)) / 4

    def root_too(*case):
        """a sentence of five words has four edges: the root (-1) has no governor."""
        return undirected_score.right(*case) * 4 / 5


check = checker(globals())
