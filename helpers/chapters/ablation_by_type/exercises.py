"""The exercises of chapter 10."""

import numpy as np

from helpers.chapters.checks import desk, exercise, maps

NAMES = np.array([list("aabc"), list("bbbb"), list("caab"), list("abcc")])
SENTENCE = np.array([-1, 0, 0, -1, 1, 1, 2, -1])
DRAWS = [(NAMES, np.random.default_rng(seed)) for seed in range(20)]


@exercise([(maps(8, seed), SENTENCE, renormalise) for seed in range(4) for renormalise in (False, True)])
def inside_only(weights, sentence, renormalise):
    """The map without what passes between sentences; its rows rescaled to 1 on demand."""
    special, same = sentence < 0, np.equal.outer(sentence, sentence)
    kept = np.where(same | special[:, None] | special, weights, 0)
    rescaled = kept / kept.sum(-1, keepdims=True)
    special_gone = np.where(same, weights, 0)
    right = rescaled if renormalise else kept
    return {
        "weights between two different sentences are 0, all others stay (or grow in proportion).": right,
        "attention to special tokens (sentence -1) is gone; it belongs to no sentence and stays.": special_gone,
        "with renormalise=True every row has to sum to 1 again.": kept,
        "with renormalise=False the weights that are left stay as they were.": rescaled,
    }


def _not_dealt(grids):
    if len(grids) == len(DRAWS) and len(np.unique(grids, axis=0)) < 10:
        return "twenty draws gave hardly any different grids; use the generator, and deal each layer by itself."
    by_layer, all_layers = (np.array_equal(np.sort(grids[-1], axis), np.sort(NAMES, axis)) for axis in (1, None))
    if all_layers and not by_layer:
        return "types moved from layer to layer; deal within each layer only."


@exercise(DRAWS, view=np.sort, remark=_not_dealt, untouched=True)
def deal_anew(names, rng):
    """The types of heads shuffled within each layer, as many of each type as before."""
    return {"the number of heads of each type has changed.": rng.permuted(names, axis=1)}


check, hint, progress = desk("ablation_by_type", inside_only, deal_anew)
