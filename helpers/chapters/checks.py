"""Exercises: cases to try an answer on, the right answer, and typical mistakes with what to say to each."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from inspect import isfunction

import numpy as np


@dataclass(frozen=True)
class Verdict:
    """What a check found, shown under the exercise; of a right answer also what it means, and a question that leads on."""

    exercise: str
    solved: bool
    message: str
    means: str = ""
    leads_on: str = ""

    def _repr_markdown_(self) -> str:
        found = f"{'✅' if self.solved else '⬜'} **{self.exercise}**: {self.message}"
        return found + (f"\n\n{self.means} *And:* {self.leads_on}" if self.means else "")

    def __repr__(self) -> str:
        return f"{'solved' if self.solved else 'open'}: {self.exercise}: {self.message}"


class Exercise:
    """An exercise is a subclass that holds functions; the docstring of each is what it says to the reader.

    - ``solved``: said when all results are right; then ``means``, a sentence, and ``leads_on``, a question.
    - ``hints``: two, shown one after the other when a reader asks (:mod:`helpers.chapters.progress`).
    - ``cases``: arguments that the reader's function is called with, a tuple for each call.
    - ``right(*case)``: the right result; a tuple of arrays stands for several results, a set for pairs in any order.
      It says what is said of a wrong result that no mistake explains.
    - ``view(result, *case)``: what is compared of a result, where several are right; else the result itself.
    - ``untouched``: whether the function must not change the arrays that it is given.
    - Every other function is a mistake, ``mistake(*case)``: a typical wrong answer, and what is said when the reader's
      result is what the mistake gives, or has the sign by which the mistake is known (``known_by``). The first mistake
      that explains the first wrong result is named.

    What it says may show the arguments (``{0}``, ``{1}``, …), ``{got}`` and ``{wanted}``.
    """

    solved: str
    means = ""
    leads_on = ""
    hints: tuple[str, ...] = ()
    cases: tuple[tuple, ...]
    right: Callable
    untouched = False

    def view(result: object, *case: object) -> object:
        return result


def known_by(sign: Callable[..., bool], over_all: bool = False) -> Callable[[Callable], Callable]:
    """Mark a mistake as known by ``sign(result, *case)``, or, when each result is right, by ``sign(results)``."""

    def mark(mistake: Callable) -> Callable:
        mistake.sign, mistake.over_all = sign, over_all
        return mistake

    return mark


def exercises(names: Mapping[str, object]) -> dict[str, type[Exercise]]:
    """The exercises among a module's names."""
    return {k: v for k, v in names.items() if isinstance(v, type) and issubclass(v, Exercise) and v is not Exercise}


def named(names: Mapping[str, object], name: str) -> type[Exercise]:
    """An exercise of a module.

    Raises:
        ValueError: there is none of this name.
    """
    if (exercise := exercises(names).get(name)) is None:
        raise ValueError(f"There is no exercise {name!r}. There are: {', '.join(exercises(names))}.")
    return exercise


def mistakes(exercise: type[Exercise]) -> list[Callable]:
    """An exercise's mistakes, in the order in which they are tried."""
    return [f for name, f in vars(exercise).items() if isfunction(f) and name not in ("right", "view")]


def check(names: Mapping[str, object], name: str, answer: Callable) -> Verdict:
    """Try an answer on cases it has not seen.

    Args:
        names: those of the chapter's module of exercises.
        name: the exercise's, as printed in the chapter.
        answer: the reader's function.

    Raises:
        ValueError: there is no such exercise.
    """
    exercise = named(names, name)
    try:
        with np.errstate(all="ignore"):
            complaint = _complaint(exercise, answer)
    except NotImplementedError:
        complaint = (
            "not solved yet. Replace the `raise` with your own lines and run the cell again; "
            f"`exercises.hint({name!r})` helps."
        )
    except Exception as error:  # a reader's code may fail in any way; say how instead of stopping the page
        complaint = f"your function raised {type(error).__name__}: {error}"
    if complaint is not None:
        return Verdict(name, False, complaint)
    return Verdict(name, True, exercise.solved, exercise.means, exercise.leads_on)


def maps(size: int, seed: int) -> np.ndarray:
    """Weights [query, key] whose rows sum to 1, others for each seed."""
    scores = np.random.default_rng(seed).normal(size=(size, size)) * 2
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def _complaint(exercise: type[Exercise], answer: Callable) -> str | None:
    results = []
    for case in exercise.cases:
        given = deepcopy(case)
        got, wanted = answer(*given), exercise.right(*deepcopy(case))
        if got is None:
            return "your function returns None; does it end in `return`?"
        if exercise.untouched and not all(map(_unchanged, case, given)):
            return "it changes the array it was given; work on a copy."
        results.append(_like(wanted, got))
        if not _same(exercise, results[-1], wanted, case):
            return _why(exercise, results[-1], wanted, case)
    over_all = (mistake for mistake in mistakes(exercise) if getattr(mistake, "over_all", False))
    return next((mistake.__doc__ for mistake in over_all if mistake.sign(results)), None)


def _why(exercise: type[Exercise], got: object, wanted: object, case: tuple) -> str:
    fits = _shape(got) == _shape(wanted)
    seen = {"got": exercise.view(got, *case), "wanted": exercise.view(wanted, *case)} if fits else {}
    for mistake in mistakes(exercise):
        if not hasattr(mistake, "sign"):
            found = _same(exercise, got, mistake(*deepcopy(case)), case)
        else:
            found = fits and not mistake.over_all and mistake.sign(got, *case)
        if found:
            return mistake.__doc__.format(*case, **seen)
    if fits:
        return exercise.right.__doc__.format(*case, **seen)
    return f"the result has shape {_shape(got)}, wanted is {_shape(wanted)}."


def _same(exercise: type[Exercise], one: object, other: object, case: tuple) -> bool:
    return _shape(one) == _shape(other) and _equal(exercise.view(one, *case), exercise.view(other, *case))


def _like(wanted: object, got: object) -> object:
    if isinstance(wanted, set):
        return set(map(tuple, np.asarray([*got]).tolist()))
    kind = {tuple: tuple, np.ndarray: np.asarray}.get(type(wanted))
    return kind(got) if kind else got


def _shape(result: object) -> tuple:
    return tuple(map(np.shape, result)) if isinstance(result, tuple) else np.shape(result)


def _equal(one: object, other: object) -> bool:
    if isinstance(one, tuple):
        return all(map(_equal, one, other))
    numbers = all(np.asarray(result).dtype.kind in "biuf" for result in (one, other))
    return np.allclose(one, other, atol=1e-6, equal_nan=True) if numbers else np.array_equal(one, other)


def _unchanged(before: object, after: object) -> bool:
    return not isinstance(before, np.ndarray) or np.array_equal(before, after)
