"""The exercises of chapter 05."""

import numpy as np

from helpers.chapters.checks import Exercise, maps
from helpers.chapters.progress import desk


def _chains(seed: int) -> list[str]:
    """Chains of the mentions of a text, in order."""
    rng = np.random.default_rng(seed)
    return rng.choice(["a", "b", "c"], rng.integers(4, 9)).tolist()


def _hits(scores: np.ndarray, chains: list[str]) -> list[bool]:
    return [chains[scores[i].argmax()] == chain for i, chain in enumerate(chains) if chain in chains[:i]]


class antecedent_accuracy(Exercise):
    """Share of the mentions with an antecedent whose most attended earlier mention is one."""

    solved = "right: only earlier mentions are chosen, and only mentions with an antecedent are asked."
    means = "The score asks only where there is a right answer, so the share of mentions with an antecedent does not move it."
    leads_on = "A head that always looks one mention back: on which texts would it score well?"
    hints = (
        "Mention `i` is asked when its chain stands among `chains[:i]`.",
        "Of a mention that is asked, look at `weights[i, :i]` only, and compare the chain of its largest with `chains[i]`.",
    )

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
    """What picking any earlier mention gets on average."""

    solved = "right, without drawing a single random number."
    means = "Chance is not the same everywhere: it is high where a text keeps returning to few things."
    leads_on = "Why must a head be compared with this number on the same texts, and not with one half?"
    hints = (
        "For mention `i`, `chains[:i].count(chains[i])` of the `i` earlier mentions are right.",
        "Take the share only for mentions with at least one antecedent, and the mean of these shares.",
    )

    cases = tuple((_chains(seed),) for seed in range(10, 16))

    def right(chains):
        """average, over mentions with an antecedent, the number of antecedents over that of earlier mentions."""
        return np.mean([chains[:i].count(c) / i for i, c in enumerate(chains) if c in chains[:i]])

    def one_antecedent(chains):
        """any antecedent counts as right, not only one of them: how many are there before mention i?"""
        return np.mean([1 / i for i, c in enumerate(chains) if c in chains[:i]])


check, hint, progress = desk(globals())
