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
    raw = np.concatenate(batches)
    twice = np.concatenate([batch / len(batch) for batch in batches])
    by_batch = np.mean([np.abs(len(batch) * batch).mean(0) for batch in batches], axis=0)
    return {
        "multiply by the batch's size, take absolute values, average over all examples.": np.abs(own).mean(0),
        "each gradient is still divided by the size of its batch; multiply first.": np.abs(raw).mean(0),
        "a small batch counts as much as a large one; average over examples, not over batches.": by_batch,
        "examples of opposite sign cancel; take the absolute value before the mean.": np.abs(own.mean(0)),
        "the mean has divided by the size of the batch already; multiply by it instead.": np.abs(twice).mean(0),
        "it is the sum over examples; take their mean.": np.abs(own).sum(0),
    }


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
