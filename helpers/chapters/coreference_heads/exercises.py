"""Checks for the exercises of chapter 05."""

from collections.abc import Callable

import numpy as np

from helpers.chapters.checks import _close, _exercise, _maps, _Wrong


def _chains(seed: int) -> tuple[list[str], np.ndarray]:
    """Chains of the mentions of a text, in order, and attention between their head words."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 9))
    return [str(c) for c in rng.choice(["a", "b", "c"], count)], _maps(count, seed)


def _antecedent_hits(chains: list[str], choices: list[int]) -> list[bool]:
    return [chains[choices[i]] == chains[i] for i in range(len(chains)) if chains[i] in chains[:i]]


@_exercise
def antecedent_accuracy(answer: Callable) -> str:
    """Chapter 05: how often the most attended earlier mention corefers."""
    for seed in range(6):
        chains, weights = _chains(seed)
        picked = [int(weights[i, :i].argmax()) if i else 0 for i in range(len(chains))]
        hits = _antecedent_hits(chains, picked)
        got = answer(weights, chains)
        anywhere = [int(np.where(np.arange(len(row)) == i, -1, row).argmax()) for i, row in enumerate(weights)]
        others = _antecedent_hits(chains, anywhere)
        if got is not None and not np.isclose(got, np.mean(hits)) and np.isclose(got, np.mean(others)):
            raise _Wrong("it also chooses later mentions; an antecedent comes before: look at weights[i, :i] only.")
        if got is not None and np.isclose(got, sum(hits) / len(chains)) and len(hits) < len(chains):
            raise _Wrong("mentions without an antecedent are counted as wrong; leave them out.")
        _close(
            got,
            float(np.mean(hits)),
            "count the mentions with an antecedent whose most attended earlier mention has their chain.",
        )
    return "right: only earlier mentions are chosen, and only mentions with an antecedent are asked."


@_exercise
def nearest_match(answer: Callable) -> str:
    """Chapter 05: the nearest earlier mention with the same head word, else the nearest."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        words = [str(w) for w in rng.choice(["she", "otter", "it", "shell", "king"], int(rng.integers(3, 9)))]
        for i in range(1, len(words)):
            same = [j for j in range(i) if words[j] == words[i]]
            wanted = same[-1] if same else i - 1
            got = answer(words, i)
            if same and got == same[0] != wanted:
                raise _Wrong(f"for {words} and mention {i} it says {got}: that one matches, but {wanted} is nearer.")
            if got != wanted:
                raise _Wrong(f"for {words} and mention {i} it says {got}, not {wanted}.")
    return "right, also where no word matches."


@_exercise
def chance_of_antecedent(answer: Callable) -> str:
    """Chapter 05: expected accuracy of a random earlier mention."""
    for seed in range(6):
        chains, _ = _chains(seed + 10)
        asked = [i for i in range(len(chains)) if chains[i] in chains[:i]]
        wanted = np.mean([chains[:i].count(chains[i]) / i for i in asked])
        got = answer(chains)
        if got is not None and np.isclose(got, np.mean([1 / i for i in asked])) and not np.isclose(got, wanted):
            raise _Wrong("any antecedent counts as right, not only one of them: how many are there before mention i?")
        _close(
            got,
            float(wanted),
            "average, over mentions with an antecedent, the number of antecedents over that of earlier mentions.",
        )
    return "right, without drawing a single random number."
