"""The best of many candidates, chosen on one part of a corpus and scored on another, beside a baseline.

A candidate is a head (and a direction), a fixed distance or a rule; an item is a word or a mention, which each candidate is right about or
not. The best of many looks good by luck on the items that picked it, so it is scored on others; intervals are over documents.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from helpers import stats
from helpers.stats import Estimate


@dataclass(frozen=True, eq=False)
class Hits:
    """Which candidates are right about which items of one part of a corpus.

    Attributes:
        right: [..., item], right or not; shares from 0 to 1 for a candidate that is right by chance.
        documents: [item], the number of each item's document.
    """

    right: Shaped[np.ndarray, "... item"]
    documents: Int[np.ndarray, "item"]

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, items: Any) -> "Hits":
        """The same candidates, for some of the items: a mask or indices."""
        return Hits(self.right[..., items], self.documents[items])

    def accuracy(self) -> Float[np.ndarray, "*candidate"]:
        """Share of the items that each candidate is right about; 0 without items."""
        return self.right.sum(-1) / max(len(self), 1)

    def best(self) -> tuple[int, ...]:
        """Index of the candidate that is right most often; the first of equals."""
        accuracy = self.accuracy()
        return tuple(map(int, np.unravel_index(accuracy.argmax(), accuracy.shape)))

    def estimate(self, *candidate: int, seed: int = 0) -> Estimate:
        """Accuracy of one candidate with an interval over documents; two of the same items can be subtracted."""
        return stats.mean(self.right[candidate], self.documents, seed=seed)


@dataclass(frozen=True)
class Choice:
    """A candidate chosen on one part and scored on another.

    Attributes:
        candidate: its index.
        held_out: its accuracy on the other part; ``held_out - baseline.held_out`` is a paired gain.
    """

    candidate: tuple[int, ...]
    held_out: Estimate


def choose(dev: Hits, test: Hits, *, candidate: tuple[int, ...] | None = None, seed: int = 0) -> Choice:
    """Choose the candidate that is best on ``dev`` (or take the one given), and score it on ``test``."""
    best = dev.best() if candidate is None else tuple(candidate)
    return Choice(best, test.estimate(*best, seed=seed))
