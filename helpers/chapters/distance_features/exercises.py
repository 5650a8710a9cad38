"""The exercises of chapter 08."""

from itertools import permutations

import numpy as np

from helpers.chapters.checks import Exercise, checker, known_by

PAIRS = ((0, 1), (1, 0), (0, -1), (-1, 0), (2, 7), (8, 2), (5, 5))


def _labels(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Groups of heads with numbers of their own, and the reference that most of them agree with."""
    rng = np.random.default_rng(seed)
    reference = rng.integers(0, 4, 24)
    return rng.permutation(4)[np.where(rng.random(24) < 0.7, reference, rng.integers(0, 4, 24))], reference


def _agreement(got: np.ndarray, labels: np.ndarray, reference: np.ndarray) -> int | float:
    """How many new numbers are the reference's; NaN where groups are not just renumbered."""
    pairs = set(zip(labels.tolist(), got.tolist(), strict=True))
    return int((got == reference).sum()) if len(pairs) == len(set(labels)) == len(set(got.tolist())) else np.nan


def _refits(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where(rng.random((10, 30)) < 0.95, rng.integers(0, 4, 30), rng.integers(0, 4, (10, 30)))


class window_of(Exercise):
    solved = "right, in both directions and for inputs of 9 to 128 tokens."

    cases = tuple((i % n, j % n, n) for n in (128, 40, 17, 9) for i, j in (*PAIRS, (3, 3 + n // 2)))

    def right(i, j, n):
        """for tokens {0} and {1} of {2} it says {got}, not {wanted}."""
        return 0 if i == j else 1 + 16 * abs(i - j) // n

    def from_0(i, j, n):
        """windows are counted from 1; 0 is kept for the token itself."""
        return 16 * abs(i - j) // n

    def one_sided(i, j, n):
        """to the left it says something else than to the right; take the absolute distance."""
        return 0 if i == j else 1 + abs(16 * (i - j) // n)


class renumbered(Exercise):
    solved = "right: the groups stay, only their numbers change."

    cases = tuple(_labels(seed) for seed in range(8))

    def right(labels, reference):
        """{got} heads agree with the reference, but {wanted} could; try all 24 ways."""
        return max(
            (np.array(way)[labels] for way in permutations(range(4))), key=lambda way: (way == reference).sum()
        )

    view = _agreement

    @known_by(lambda got, *case: np.isnan(_agreement(got, *case)))
    def moved(labels, reference):
        """it moves heads to other groups: each old number must become one new number, and no two the same."""
        return reference


class agreed_by_all(Exercise):
    solved = "right: one refit that differs is enough to lose a head."

    cases = tuple((_refits(seed),) for seed in range(5))

    def right(labels):
        """count the columns in which all rows are equal, and divide by their number; check the axis."""
        return (labels == labels[0]).all(0).mean()

    def mean_agreement(labels):
        """that is the mean agreement with the first refit; a head counts only if all ten agree on it."""
        return (labels == labels[0]).mean()


check = checker(globals())
