"""Checks for the exercises of chapter 10."""

from collections.abc import Callable

import numpy as np

from helpers.chapters.checks import _close, _exercise, _maps, _Wrong


@_exercise
def even_weights(answer: Callable) -> str:
    """Chapter 10: the weights of a head that is made even."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(2, 8, 3)
        mask = np.arange(9)[None] < lengths[:, None]
        wanted = np.repeat((mask / lengths[:, None])[:, None], 9, axis=1)
        got = answer(mask)
        if got is not None and np.shape(got) == wanted.shape and np.allclose(got, 1 / 9):
            raise _Wrong(
                "padding gets weight, too; n counts the real tokens of each input, not the width of the batch."
            )
        if (
            got is not None
            and np.shape(got) == wanted.shape
            and np.allclose(np.asarray(got).sum(-1), lengths[:, None])
        ):
            raise _Wrong("each row sums to n; each of the n real tokens gets 1/n.")
        _close(got, wanted, "wanted is 1/n at the real tokens of each input and 0 at its padding, in every row.")
    return "right: every row sums to 1 over the real tokens, whatever the padding."


@_exercise
def inside_only(answer: Callable) -> str:
    """Chapter 10: remove the weights between sentences, and let rows sum to 1 again."""
    for seed in range(4):
        weights = _maps(8, seed)
        sentence = np.array([-1, 0, 0, -1, 1, 1, 2, -1])
        special = sentence < 0
        kept = (sentence[:, None] == sentence[None]) | special[:, None] | special[None]
        for renormalise in (False, True):
            wanted = np.where(kept, weights, 0)
            if renormalise:
                wanted = wanted / wanted.sum(-1, keepdims=True)
            got = answer(weights.copy(), sentence, renormalise)
            if got is not None and np.shape(got) == wanted.shape:
                sums = np.asarray(got, np.float64).sum(-1)
                if np.allclose(np.asarray(got)[1][special], 0):
                    raise _Wrong(
                        "attention to special tokens (sentence -1) is gone; it belongs to no sentence and stays."
                    )
                if renormalise and not np.allclose(sums, 1):
                    raise _Wrong("with renormalise=True every row has to sum to 1 again.")
                if not renormalise and np.allclose(sums, 1):
                    raise _Wrong("with renormalise=False the weights that are left stay as they were.")
            _close(
                got, wanted, "weights between two different sentences are 0, all others stay (or grow in proportion)."
            )
    return "right, both as the tables do it and renormalised."


@_exercise
def deal_anew(answer: Callable) -> str:
    """Chapter 10: a control with the same number of heads of each type in each layer."""
    names = np.array([["a", "a", "b", "c"], ["b", "b", "b", "b"], ["c", "a", "a", "b"], ["a", "b", "c", "c"]])
    before, seen = names.copy(), set()
    for seed in range(20):
        got = answer(names, np.random.default_rng(seed))
        if got is None:
            raise _Wrong("your function returns None; does it end in `return`?")
        got = np.asarray(got)
        if not np.array_equal(names, before):
            raise _Wrong("it changes the grid it was given; make a new one.")
        if got.shape != names.shape:
            raise _Wrong(f"the result has shape {got.shape}, wanted is {names.shape}.")
        if not np.array_equal(np.sort(got.ravel()), np.sort(names.ravel())):
            raise _Wrong("the number of heads of each type has changed.")
        if not np.array_equal(np.sort(got, axis=1), np.sort(names, axis=1)):
            raise _Wrong("types moved from layer to layer; deal within each layer only.")
        seen.add(tuple(got.ravel()))
    if len(seen) < 10:
        raise _Wrong(
            "twenty draws gave hardly any different grids; use the generator, and deal each layer by itself."
        )
    return "right: each layer keeps its types, and which head has which is chance."
