"""You switch off or flatten whole types of heads while the model answers questions, beside types shuffled within each layer.

After {cite:t}`guan2020`, section 5.
"""

import numpy as np

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


check, hint, progress = desk("ablation_by_type", inside_only)
