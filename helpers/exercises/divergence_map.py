"""You measure how far apart any two heads are, test which heads of one layer are close, and draw all heads as a map.

After {cite:t}`clark2019`, section 6.
"""

import numpy as np
from scipy.spatial.distance import pdist, squareform

from helpers.exercises.checks import desk, exercise

LABELS, GROUPS = np.repeat(range(4), 5), np.tile([0, 1, 1, 2, 2], 4)
DRAWS = [(LABELS, GROUPS, np.random.default_rng(seed)) for seed in range(20)]


def _not_shuffled(results):
    """What is wrong with the last labels, or with all of them, if something is."""
    members = [np.flatnonzero(group == GROUPS) for group in set(GROUPS)]
    if any(np.any(np.sort(results[-1][m]) != np.sort(LABELS[m])) for m in members):
        return "moved"
    if len(results) == len(DRAWS) and len(np.unique(results, axis=0)) < 10:
        return "same_order"
    return None


PLANES = [squareform(pdist(np.random.default_rng(seed).normal(size=(7, 2)))) for seed in range(4)]


@exercise([(distances,) for distances in PLANES], view=pdist)
def classical_scaling(distances):
    """Classical multidimensional scaling to two dimensions."""
    centre = np.eye(7) - 1 / 7
    values, vectors = np.linalg.eigh(centre @ (-(distances**2) / 2) @ centre)
    return {"right": vectors[:, -2:] * np.sqrt(values[-2:]), "bare": vectors[:, -2:]}


@exercise(DRAWS, view=np.sort, remark=_not_shuffled, untouched=True)
def shuffle_within(labels, groups, rng):
    """Labels shuffled among the heads of each group."""
    order = np.lexsort((rng.random(len(labels)), groups))
    shuffled = labels.copy()
    shuffled[np.argsort(groups, kind="stable")] = labels[order]
    return {"right": shuffled}


check, hint, progress = desk("divergence_map", classical_scaling, shuffle_within)
