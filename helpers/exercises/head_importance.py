"""You switch off every head and layer, estimate the same from one backward pass, and remove heads for real.

After {cite:t}`michel2019`, {cite:t}`kovaleva2019`.
"""

import numpy as np

from helpers.exercises.checks import desk, exercise


def _batches(seed: int) -> list[np.ndarray]:
    """Gradients [example, head] of the mean loss of three batches."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, 5)) / size for size in (4, 1, 7)]


def _layer(head: int) -> tuple:
    rng = np.random.default_rng(head)
    return (*rng.normal(size=(3, 12, 5)), rng.normal(size=(5, 12)), head, 4)


@exercise([(_batches(seed),) for seed in range(4)])
def gate_importance(batches):
    """Mean |gradient| of each example's loss by each gate, from gradients of batch means."""
    own = np.concatenate([len(batch) * batch for batch in batches])
    return {
        "right": np.abs(own).mean(0),
        "divided": np.abs(np.concatenate(batches)).mean(0),
        "by_batch": np.mean([np.abs(len(batch) * batch).mean(0) for batch in batches], axis=0),
        "cancels": np.abs(own.mean(0)),
        "twice": np.abs(np.concatenate([batch / len(batch) for batch in batches])).mean(0),
        "sum": np.abs(own).sum(0),
    }


@exercise([_layer(head) for head in (0, 2, 3)])
def cut_head(query, key, value, output, head, heads):
    """The four maps of a layer without one head."""
    own = np.repeat(np.arange(heads) == head, len(query) // heads)
    rows = np.stack([query, key, value])
    three = tuple(rows[:, ~own])
    right = (*three, output[:, ~own])
    return {
        "right": right,
        "three": three,
        "rows_of_all": (*three, output[~own[: len(output)]]),
        "set_to_0": (*(rows * ~own[:, None]), output * ~own),
        "alone": (*rows[:, own], output[:, own]),
        "turned": tuple(each.T for each in right),
    }


check, hint, progress = desk("head_importance", gate_importance, cut_head)
