"""Checks for the exercises: each says what is right, or what is wrong and where to look."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Verdict:
    """What a check found, shown under the exercise."""

    exercise: str
    solved: bool
    message: str

    def _repr_markdown_(self) -> str:
        return f"{'✅' if self.solved else '⬜'} **{self.exercise}**: {self.message}"

    def __repr__(self) -> str:
        return f"{'solved' if self.solved else 'open'}: {self.exercise}: {self.message}"


class _Wrong(Exception):
    """An answer that is not right yet."""


_CHECKS: dict[str, Callable[[Callable], str]] = {}


def check(exercise: str, answer: Callable) -> Verdict:
    """Try an answer on cases it has not seen.

    Args:
        exercise: its name, as printed in the chapter.
        answer: the reader's function.
    """
    if exercise not in _CHECKS:
        raise ValueError(f"There is no exercise {exercise!r}. There are: {', '.join(_CHECKS)}.")
    try:
        return Verdict(exercise, True, _CHECKS[exercise](answer))
    except NotImplementedError:
        return Verdict(
            exercise, False, "not solved yet. Replace the `raise` with your own lines and run the cell again."
        )
    except _Wrong as wrong:
        return Verdict(exercise, False, str(wrong))
    except Exception as error:  # a reader's code may fail in any way; say how instead of stopping the page
        return Verdict(exercise, False, f"your function raised {type(error).__name__}: {error}")


def _exercise(test: Callable[[Callable], str]) -> Callable[[Callable], str]:
    _CHECKS[test.__name__] = test
    return test


def _close(got: object, wanted: np.ndarray | float, complaint: str) -> None:
    if got is None:
        raise _Wrong("your function returns None; does it end in `return`?")
    got = np.asarray(got, dtype=np.float64)
    if got.shape != np.shape(wanted):
        raise _Wrong(f"the result has shape {got.shape}, wanted is {np.shape(wanted)}.")
    if not np.allclose(got, wanted, atol=1e-6):
        raise _Wrong(complaint)


def _maps(size: int, seed: int) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=(size, size)) * 2
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)
