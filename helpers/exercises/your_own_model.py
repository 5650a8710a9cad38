"""You put an encoder of your own beside a control or a second model, get a page about it, and run the whole book on it.

After chapters 2, 4 and 5.
"""

import numpy as np

from helpers.exercises.checks import desk, exercise, maps


def _inputs(seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights of three inputs, and which of their tokens are of the kind: more of them in a longer input."""
    rng = np.random.default_rng(seed)
    return [(maps(n, seed + n), rng.permutation(n) < 1 + (n > 5)) for n in rng.integers(3, 9, 3).tolist()]


def _replicates(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Replicates of two models' numbers, both larger for the same draws of texts."""
    rng = np.random.default_rng(seed)
    common = 0.05 * rng.normal(size=400)
    return 0.7 + common + 0.01 * rng.normal(size=400), 0.66 + common


@exercise([(_inputs(seed),) for seed in range(4)])
def even_multiple(inputs):
    """Attention to a kind of token as a multiple of even attention."""
    given, even, rows = np.array([(weights[:, kind].sum(), kind.sum(), len(kind)) for weights, kind in inputs]).T
    right, share = given.sum() / even.sum(), given.sum() / rows.sum()
    return {"right": right, "share": share, "mean_of_multiples": (given / even).mean()}


@exercise([_replicates(seed) for seed in range(4)])
def paired_gap(first, other):
    """The 95 % interval of a paired difference from replicates."""
    gap, ends, others = (np.percentile(replicates, (2.5, 97.5)) for replicates in (first - other, first, other))
    return {"right": gap, "ends": ends - others, "unrelated": ends - others[::-1]}


check, hint, progress = desk("your_own_model", even_multiple, paired_gap)
