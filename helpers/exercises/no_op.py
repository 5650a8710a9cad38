"""You ask what attention to `[CLS]` and `[SEP]` is for: with lengths of vectors, by deleting it, and with gradients.

After {cite:t}`clark2019`, section 3.2; {cite:t}`kobayashi2020`.
"""

import numpy as np

from helpers.exercises.checks import desk, exercise, maps

KINDS = np.array([0, 2, 1, 2, 2])


def _head(seed: int) -> tuple[np.ndarray, ...]:
    """Weights, values and output map of a head over five tokens of three kinds."""
    rng = np.random.default_rng(seed)
    return maps(5, seed), rng.normal(size=(5, 3)), rng.normal(size=(3, 7)), KINDS


@exercise([_head(seed) for seed in range(3)], untouched=True)
def contribution(weights, values, output, kinds):
    """How much of a head's output comes from each kind of token, by length of the sums."""
    by_kind = weights * (kinds == np.arange(3)[:, None, None])  # [kind, query, key]
    sums = by_kind @ values @ output
    vectors = {"right": sums, "lengths": by_kind @ np.linalg.norm(values @ output, axis=-1)[:, None]}
    vectors |= {"before_the_map": by_kind @ values, "attention": by_kind.sum(-1, keepdims=True)}
    vectors |= {"over_all": sums.mean(1, keepdims=True)}
    sizes = {name: np.linalg.norm(each, axis=-1).mean(-1) for name, each in vectors.items()}
    return {name: size / size.sum() for name, size in sizes.items()}


check, hint, progress = desk("no_op", contribution)
