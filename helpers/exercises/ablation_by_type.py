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
    special_gone = np.where(same, weights, 0)
    right = rescaled if renormalise else kept
    return {
        "weights between two different sentences are 0, all others stay (or grow in proportion).": right,
        "attention to special tokens (sentence -1) is gone; it belongs to no sentence and stays.": special_gone,
        "with renormalise=True every row has to sum to 1 again.": kept,
        "with renormalise=False the weights that are left stay as they were.": rescaled,
    }


PROTOTYPES = np.array([[0.1, 0.8, 0.1], [1, 0, 0], [0.05, 0.4, 0.55], [0, 0, 1]])
MEANS = np.array([[0.2, 0.6, 0.2], [0.7, 0.1, 0.2], [0.2, 0.3, 0.5], [0.06, 0.25, 0.69]])


@exercise([(MEANS[order], PROTOTYPES) for order in map(np.random.default_rng(0).permutation, [4] * 5)])
def nearest_prototype(means, prototypes):
    """The number of each group's nearest prototype, or -1 where another group is nearer to it."""
    distance = ((means[:, None] - prototypes) ** 2).sum(-1)
    nearest, least = distance.argmin(-1), distance.min(-1)
    rivals = [least[nearest == number].min() for number in nearest]
    all_named = np.empty(len(means), int)
    rows, columns = linear_sum_assignment(distance)
    all_named[rows] = columns
    return {
        "a group has the number of its nearest prototype, if no other group is nearer to that, and else -1.": np.where(
            least > rivals, -1, nearest
        ),
        "two groups have one name; only the nearer of them may keep it.": nearest,
        "a group got the name that was left over, although another prototype is nearer to it.": all_named,
    }


check, hint, progress = desk("ablation_by_type", inside_only, nearest_prototype)
