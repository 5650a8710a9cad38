"""You switch off every head and layer, estimate the same from one backward pass, and remove heads for real.

After {cite:t}`michel2019`, {cite:t}`kovaleva2019`.
"""

import numpy as np

from helpers.exercises.checks import by_example, desk, exercise


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
    return by_example(batches)


@exercise([_layer(head) for head in (0, 2, 3)])
def cut_head(query, key, value, output, head, heads):
    """The four maps of a layer without one head."""
    own = np.repeat(np.arange(heads) == head, len(query) // heads)
    rows = np.stack([query, key, value])
    three = tuple(rows[:, ~own])
    right = (*three, output[:, ~own])
    rows_of_all = (*three, output[~own[: len(output)]])
    set_to_0 = (*(rows * ~own[:, None]), output * ~own)
    alone = (*rows[:, own], output[:, own])
    turned = tuple(each.T for each in right)
    return {
        f"a map does not hold what is left; the three features of head {head}, counted from 0, should be gone, and no others.": right,
        "it returns three arrays instead of four.": three,
        "the output map loses columns, not rows: what a head makes is a column there.": rows_of_all,
        "the maps have kept their size; take the rows and columns out instead of setting them to 0.": set_to_0,
        "this is the head itself; return what is left without it.": alone,
        "the maps are turned round; rows go from the first three maps, columns from the last.": turned,
    }


check, hint, progress = desk("head_importance", gate_importance, cut_head)
