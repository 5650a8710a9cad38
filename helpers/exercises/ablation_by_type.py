"""You switch off or flatten whole types of heads while the model answers questions, beside types shuffled within each layer.

After {cite:t}`guan2020`, section 5.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from helpers.exercises.checks import desk, exercise, maps

SENTENCE = np.array([-1, 0, 0, -1, 1, 1, 2, -1])


@exercise([(maps(8, seed), SENTENCE, renormalise) for seed in range(4) for renormalise in (False, True)])
def inside_only(weights, sentence, renormalise):
    """The map without what passes between sentences; its rows rescaled to 1 on demand."""
    special, same = sentence < 0, np.equal.outer(sentence, sentence)
    kept = np.where(same | special[:, None] | special, weights, 0)
    rescaled = kept / kept.sum(-1, keepdims=True)
    results = {"right": rescaled if renormalise else kept, "special_gone": np.where(same, weights, 0)}
    return results | {"not_rescaled": kept, "rescaled": rescaled}


PROTOTYPES = np.array([[0.1, 0.8, 0.1], [1, 0, 0], [0.05, 0.4, 0.55], [0, 0, 1]])
MEANS = np.array([[0.2, 0.6, 0.2], [0.7, 0.1, 0.2], [0.2, 0.3, 0.5], [0.06, 0.25, 0.69]])


@exercise([(MEANS[order], PROTOTYPES) for order in map(np.random.default_rng(0).permutation, [4] * 5)])
def nearest_prototype(means, prototypes):
    """The number of each group's nearest prototype, or -1 where another group is nearer to it."""
    distance = ((means[:, None] - prototypes) ** 2).sum(-1)
    nearest, least = distance.argmin(-1), distance.min(-1)
    nearest_rival = [least[nearest == number].min() for number in nearest]
    left_over = np.empty(len(means), int)
    rows, columns = linear_sum_assignment(distance)
    left_over[rows] = columns
    right = np.where(least > nearest_rival, -1, nearest)
    return {"right": right, "shared": nearest, "left_over": left_over}


check, hint, progress = desk("ablation_by_type", inside_only, nearest_prototype)
