"""The exercises of chapter 10."""

import numpy as np

from helpers.chapters.checks import Exercise, known_by, maps
from helpers.chapters.progress import desk

NAMES = np.array([list("aabc"), list("bbbb"), list("caab"), list("abcc")])
SENTENCE = np.array([-1, 0, 0, -1, 1, 1, 2, -1])


class inside_only(Exercise):
    """The map without what passes between sentences; its rows rescaled to 1 on demand."""

    solved = "right, both as the tables do it and renormalised."
    means = "Removing weights and sharing them out again are two interventions, and a table that does not say which it did cannot be compared."
    leads_on = "Why can a pruned head not be renormalised?"
    hints = (
        "A pair stays when both tokens are of one sentence, or when either is special: `sentence < 0`.",
        "`np.where(keep, weights, 0)`; with `renormalise` divide each row by its sum.",
    )

    cases = tuple((maps(8, seed), SENTENCE, renormalise) for seed in range(4) for renormalise in (False, True))

    def right(weights, sentence, renormalise):
        """weights between two different sentences are 0, all others stay (or grow in proportion)."""
        special = sentence < 0
        kept = np.where((sentence[:, None] == sentence) | special[:, None] | special, weights, 0)
        return kept / kept.sum(-1, keepdims=True) if renormalise else kept

    @known_by(lambda got, weights, sentence, _: np.allclose(got[1][sentence < 0], 0))
    def special_gone(weights, sentence, _):
        """attention to special tokens (sentence -1) is gone; it belongs to no sentence and stays."""
        return np.where(sentence[:, None] == sentence, weights, 0)

    def not_renormalised(weights, sentence, _):
        """with renormalise=True every row has to sum to 1 again."""
        return inside_only.right(weights, sentence, False)

    def always_renormalised(weights, sentence, _):
        """with renormalise=False the weights that are left stay as they were."""
        return inside_only.right(weights, sentence, True)


class deal_anew(Exercise):
    """The types of heads shuffled within each layer, as many of each type as before."""

    solved = "right: each layer keeps its types, and which head has which is chance."
    means = "The control keeps how many heads of each type a layer has, so only the *which* is left to be tested."
    leads_on = "In which layers can this control show nothing at all?"
    hints = (
        "Each row of the grid is a layer; deal each by itself.",
        "`np.array([rng.permutation(layer) for layer in names])` leaves the array it was given alone.",
    )

    cases = tuple((NAMES, np.random.default_rng(seed)) for seed in range(20))
    untouched = True

    def right(names, rng):
        """the number of heads of each type has changed."""
        return rng.permuted(names, axis=1)

    def view(grid, *_):
        return np.sort(grid, axis=1)

    @known_by(lambda got, names, _: np.array_equal(np.sort(got, None), np.sort(names, None)))
    def across_layers(names, rng):
        """types moved from layer to layer; deal within each layer only."""
        return rng.permuted(names)

    @known_by(lambda grids: len(np.unique(grids, axis=0)) < 10, over_all=True)
    def not_dealt(names, rng):
        """twenty draws gave hardly any different grids; use the generator, and deal each layer by itself."""
        return names


check, hint, progress = desk(globals())
