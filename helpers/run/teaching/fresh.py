"""Cases of an exercise that no notebook shows: its own table, drawn with other seeds.

A table is data and functions (:mod:`helpers.chapters.checks`), and what is random in it comes from seeds. Its module is run
once more with a number of the grader's added to every seed. Cases so drawn are used when the table holds for them as the
tests ask of the printed ones: the right answer is right and each typical mistake is seen.
"""

import importlib.util
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import count, islice
from types import ModuleType
from unittest.mock import patch

import numpy as np

from helpers import places
from helpers.chapters import checks
from helpers.chapters.checks import Exercise

TRIES = 200
"""Draws of a table before it is given up: some cases must be lucky to tell mistakes apart."""


def exercises(chapter: str) -> dict[str, type[Exercise]]:
    """The exercises of a chapter, named by its file, as they are printed."""
    return checks.exercises(vars(import_module(f"helpers.chapters.{chapter[3:]}.exercises")))


def redrawn(chapter: str, name: str, seed: int) -> type[Exercise]:
    """An exercise with cases of other seeds.

    Raises:
        BookError: when no draw tells all of its mistakes from the right answer.
    """
    printed = exercises(chapter)[name]
    drawn = (exercise for salt in count(seed) for exercise in _drawn(chapter, name, salt))
    for exercise in islice(drawn, TRIES):
        if _holds(name, exercise) and not _alike(exercise.cases, printed.cases):
            return exercise
    raise places.BookError(
        f"{chapter}: no other cases of {name} tell its mistakes apart. Give its table more of them."
    )


def _drawn(chapter: str, name: str, salt: int) -> Iterator[type[Exercise]]:
    with patch("numpy.random.default_rng", _salted(salt)):
        module = _again(chapter)
        exercise = checks.exercises(vars(module))[name]
        if hasattr(exercise, "fresh"):
            rng = np.random.default_rng(0)
            exercise.cases = tuple(exercise.fresh(rng) for _ in range(max(4, len(exercise.cases))))
    yield exercise


def _salted(salt: int) -> Callable[[int], np.random.Generator]:
    plain = np.random.default_rng
    return lambda seed: plain([salt, seed])


def _again(chapter: str) -> ModuleType:
    """The chapter's module of exercises, run once more under a name of its own."""
    spec = importlib.util.find_spec(f"helpers.chapters.{chapter[3:]}.exercises")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _holds(name: str, exercise: type[Exercise]) -> bool:
    """Whether the right answer is right and no mistake is, on these cases."""
    try:
        right = checks.check({name: exercise}, name, exercise.right).solved
        return right and not any(
            checks.check({name: exercise}, name, one).solved for one in checks.mistakes(exercise)
        )
    except Exception:  # a table that was not made for this draw
        return False


def _alike(one: object, other: object) -> bool:
    """Whether two cases hold the same values; generators of random numbers are never alike."""
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, np.random.Generator):
        return False
    return np.array_equal(one, other)
