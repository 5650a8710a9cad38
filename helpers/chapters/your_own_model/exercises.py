"""Checks for the exercises of chapter 14."""

from collections.abc import Callable

import numpy as np

from helpers.chapters.checks import _close, _exercise, _maps, _Wrong


@_exercise
def even_multiple(answer: Callable) -> str:
    """Chapter 14: how many times its even share a kind of token gets."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        inputs = []
        for length in rng.integers(3, 9, 3):
            kind = np.zeros(length, bool)
            kind[rng.choice(length, 1 + int(length > 5), replace=False)] = True
            inputs.append((_maps(int(length), seed + int(length)), kind))
        rows = sum(len(kind) for _, kind in inputs)
        share = sum(float(weights[:, kind].sum()) for weights, kind in inputs) / rows
        even = sum(float(kind.sum()) for _, kind in inputs) / rows
        got = answer([(weights.copy(), kind.copy()) for weights, kind in inputs])
        if got is not None and np.ndim(got) == 0 and np.isclose(got, share):
            raise _Wrong("that is the share itself; divide it by what a head with equal weights would give.")
        if got is not None and np.ndim(got) == 0:
            each = [w[:, k].sum() / len(k) / (k.sum() / len(k)) for w, k in inputs]
            if np.isclose(got, np.mean(each)) and not np.isclose(got, share / even):
                raise _Wrong(
                    "that is a mean of multiples, input by input; sum over all rows first, then divide once."
                )
        _close(got, share / even, "it should be the mean share of a row, over the mean even share of a row.")
    return "right: 1 means no preference, whatever the model and the length of its inputs."


@_exercise
def paired_gap(answer: Callable) -> str:
    """Chapter 14: the interval of a difference, from paired replicates."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        common = rng.normal(size=400)
        one, other = 0.7 + 0.05 * common + 0.01 * rng.normal(size=400), 0.66 + 0.05 * common
        wanted = np.percentile(one - other, (2.5, 97.5))
        got = answer(one.copy(), other.copy())
        if got is not None and np.shape(got) == (2,):
            ends = np.percentile(one, (2.5, 97.5)), np.percentile(other, (2.5, 97.5))
            if np.allclose(got, ends[0] - ends[1]):
                raise _Wrong("these are differences of ends; subtract replicate by replicate, then take percentiles.")
            if np.allclose(got, [ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]]):
                raise _Wrong(
                    "that treats the two as unrelated; the same texts were drawn for both, so subtract first."
                )
        _close(got, wanted, "it should be the 2.5th and 97.5th percentile of one - other.")
    return "right: what both models owe to the texts drawn cancels out."


@_exercise
def least_certain(answer: Callable) -> str:
    """Chapter 14: the number whose interval is widest."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        numbers = {}
        for name in ("relation", "type", "sink", "entropy"):
            value = float(rng.random())
            numbers[name] = (value, value - float(rng.random()) / 5, value + float(rng.random()) / 5)
        numbers["large"] = (50.0, 49.99, 50.01)
        wanted = max(numbers, key=lambda name: numbers[name][2] - numbers[name][1])
        got = answer(dict(numbers))
        if got is None:
            raise _Wrong("your function returns None; does it end in `return`?")
        if got == "large" != wanted:
            raise _Wrong("that is the largest value; ask for the widest interval, high minus low.")
        if got != wanted:
            raise _Wrong(f"it says {got!r}, but the interval of {wanted!r} is wider.")
    return "right. On a card, that is where a larger sample helps most."
