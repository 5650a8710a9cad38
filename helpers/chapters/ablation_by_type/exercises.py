"""The exercises of chapter 10."""

import numpy as np

from helpers.chapters.checks import Exercise, checker, known_by, maps, says

NAMES = np.array([list("aabc"), list("bbbb"), list("caab"), list("abcc")])
SENTENCE = np.array([-1, 0, 0, -1, 1, 1, 2, -1])


class even_weights(Exercise):
    solved = "right: every row sums to 1 over the real tokens, whatever the padding."

    cases = tuple((np.arange(9) < np.random.default_rng(seed).integers(2, 8, (3, 1)),) for seed in range(4))

    @says("wanted is 1/n at the real tokens of each input and 0 at its padding, in every row.")
    def right(mask):
        return np.repeat((mask / mask.sum(-1, keepdims=True))[:, None], 9, axis=1)

    @says("padding gets weight, too; n counts the real tokens of each input, not the width of the batch.")
    def over_the_width(mask):
        return np.full((3, 9, 9), 1 / 9)

    @says("each row sums to n; each of the n real tokens gets 1/n.")
    def not_divided(mask):
        return np.repeat(mask[:, None] * 1.0, 9, axis=1)


class inside_only(Exercise):
    solved = "right, both as the tables do it and renormalised."

    cases = tuple((maps(8, seed), SENTENCE, renormalise) for seed in range(4) for renormalise in (False, True))

    @says("weights between two different sentences are 0, all others stay (or grow in proportion).")
    def right(weights, sentence, renormalise):
        special = sentence < 0
        kept = np.where((sentence[:, None] == sentence) | special[:, None] | special, weights, 0)
        return kept / kept.sum(-1, keepdims=True) if renormalise else kept

    @says("attention to special tokens (sentence -1) is gone; it belongs to no sentence and stays.")
    @known_by(lambda got, weights, sentence, _: np.allclose(got[1][sentence < 0], 0))
    def special_gone(weights, sentence, _):
        return np.where(sentence[:, None] == sentence, weights, 0)

    @says("with renormalise=True every row has to sum to 1 again.")
    def not_renormalised(weights, sentence, _):
        return inside_only.right(weights, sentence, False)

    @says("with renormalise=False the weights that are left stay as they were.")
    def always_renormalised(weights, sentence, _):
        return inside_only.right(weights, sentence, True)


class deal_anew(Exercise):
    solved = "right: each layer keeps its types, and which head has which is chance."

    cases = tuple((NAMES, np.random.default_rng(seed)) for seed in range(20))
    untouched = True

    @says("the number of heads of each type has changed.")
    def right(names, rng):
        return rng.permuted(names, axis=1)

    def view(grid, *_):
        return np.sort(grid, axis=1)

    @says("types moved from layer to layer; deal within each layer only.")
    @known_by(lambda got, names, _: np.array_equal(np.sort(got, None), np.sort(names, None)))
    def across_layers(names, rng):
        return rng.permuted(names)

    @says("twenty draws gave hardly any different grids; use the generator, and deal each layer by itself.")
    @known_by(lambda grids: len(np.unique(grids, axis=0)) < 10, over_all=True)
    def not_dealt(names, rng):
        return names


check = checker(globals())
