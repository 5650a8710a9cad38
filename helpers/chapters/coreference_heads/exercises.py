"""The exercises of chapter 05."""

import numpy as np

from helpers.chapters.checks import Exercise, checker, maps


def _chains(seed: int) -> list[str]:
    """Chains of the mentions of a text, in order."""
    rng = np.random.default_rng(seed)
    return rng.choice(["a", "b", "c"], rng.integers(4, 9)).tolist()


def _hits(scores: np.ndarray, chains: list[str]) -> list[bool]:
    return [chains[scores[i].argmax()] == chain for i, chain in enumerate(chains) if chain in chains[:i]]


class antecedent_accuracy(Exercise):
    solved = "right: only earlier mentions are chosen, and only mentions with an antecedent are asked."

    cases = tuple((maps(len(chains), seed), chains) for seed, chains in enumerate(map(_chains, range(6))))

    def right(weights, chains):
        """count the mentions with an antecedent whose most attended earlier mention has their chain."""
        return np.mean(_hits(np.tril(weights, -1), chains))

    def later_too(weights, chains):
        """it also chooses later mentions; an antecedent comes before: look at weights[i, :i] only."""
        return np.mean(_hits(weights - np.eye(len(chains)), chains))

    def all_mentions(weights, chains):
        """mentions without an antecedent are counted as wrong; leave them out."""
        return sum(_hits(np.tril(weights, -1), chains)) / len(chains)


class chance_of_antecedent(Exercise):
    solved = "right, without drawing a single random number."

    cases = tuple((_chains(seed),) for seed in range(10, 16))

    def right(chains):
        """average, over mentions with an antecedent, the number of antecedents over that of earlier mentions."""
        return np.mean([chains[:i].count(c) / i for i, c in enumerate(chains) if c in chains[:i]])

    def one_antecedent(chains):
        """any antecedent counts as right, not only one of them: how many are there before mention i?"""
        return np.mean([1 / i for i, c in enumerate(chains) if c in chains[:i]])


check = checker(globals())
