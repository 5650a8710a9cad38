"""You ask which heads find what a pronoun refers to, against rules, and widen the choice to all words.

After {cite:t}`clark2019`, section 4.3.
"""

import numpy as np

from helpers.exercises.checks import desk, exercise, maps


def _chains(seed: int) -> list[str]:
    """Chains of the mentions of a text, in order."""
    rng = np.random.default_rng(seed)
    return rng.choice(["a", "b", "c"], rng.integers(4, 9)).tolist()


@exercise([(maps(len(chains), seed), chains) for seed, chains in enumerate(map(_chains, range(6)))])
def antecedent_accuracy(weights, chains):
    """Share of the mentions with an antecedent whose most attended earlier mention is one."""
    asked = [i for i, chain in enumerate(chains) if chain in chains[:i]]
    hits = [chains[weights[i, :i].argmax()] == chains[i] for i in asked]
    others = weights - np.eye(len(chains))
    later_too = [chains[others[i].argmax()] == chains[i] for i in asked]
    return {"right": np.mean(hits), "later_too": np.mean(later_too), "all_mentions": sum(hits) / len(chains)}


check, hint, progress = desk("coreference_heads", antecedent_accuracy)
