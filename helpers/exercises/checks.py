"""Exercises: cases to try an answer on, the right answer and typical mistakes; hints, and a reader's own progress.

What is said (of mistakes, as hints, of a right answer) stands in the YAML file beside a chapter's exercises. Progress is
kept only by notebooks, in ``progress.json`` of the folder that they run in, and only for answers of the reader's own: a
cell of the book's solutions, or a run of the whole book, leaves no trace.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from IPython import get_ipython
from scipy.special import softmax
from tabulate import tabulate

from helpers import places

FILE = "progress.json"
#: The minutes of an exercise in a notebook's text, and its name in the first check after them.
TIMED = re.compile(r"★[★☆]{2}, (\d+) minutes[^★]*?exercises\.check\(\s*\"(\w+)\"")
#: How often hints to an exercise were asked for.
ASKED: Counter[str] = Counter()


class Text(str):
    """Markdown for a reader."""

    __repr__ = _repr_markdown_ = str.__str__


@dataclass(frozen=True)
class Verdict:
    """What a check found, shown under the exercise; of a right answer also what it means, and a question that leads on, its answer folded."""

    exercise: str
    solved: bool
    message: str
    after: str = ""

    def _repr_markdown_(self) -> str:
        return f"{'✅' if self.solved else '⬜'} **{self.exercise}**: {self.message}{self.after}"

    def __repr__(self) -> str:
        return f"{'solved' if self.solved else 'open'}: {self.exercise}: {self.message}"


@dataclass(frozen=True)
class Exercise:
    """An exercise of a chapter.

    Attributes:
        results: called with a case, gives the ``right`` result and those of typical mistakes, by their names. A tuple stands for
            several results, a set for pairs in any order. What is said of each is among the ``answers`` of the YAML file, under
            ``right`` of a wrong result that no mistake explains; it may show ``{got}``, the reader's result, ``{right}`` and ``{case}``.
        cases: arguments that the reader's function is called with, a tuple for each call.
        view: what is compared of a result, where several are right.
        remark: given the results so far, the name of what is said of them, where they show something by themselves.
        untouched: whether the function must not change the arrays that it is given.
    """

    results: Callable[..., dict[str, Any]]
    cases: Sequence[tuple]
    view: Callable | None = None
    remark: Callable[[list], str | None] | None = None
    untouched: bool = False


def exercise(cases: Sequence[tuple], **about: Any) -> Callable[[Callable], Exercise]:
    """Make an exercise of the function that gives its results (:class:`Exercise`)."""
    return partial(Exercise, cases=cases, **about)


def desk(chapter: str, *exercises: Exercise) -> tuple[Callable, ...]:
    """What a chapter offers its readers: ``check(name, answer)``, ``hint(name)`` and ``progress()``."""
    by_name = {exercise.results.__name__: exercise for exercise in exercises}
    return tuple(partial(function, chapter, by_name) for function in (check, hint, progress))


def check(chapter: str, exercises: Mapping[str, Exercise], name: str, answer: Callable) -> Verdict:
    """Try an answer on cases it has not seen, and remember a right one that is the reader's own.

    Args:
        chapter: such as ``dependency_heads``.
        exercises: those of the chapter, by name.
        name: the exercise's, as printed in the chapter.
        answer: the reader's function.

    Raises:
        ValueError: there is no such exercise.
    """
    texts = _texts(chapter, exercises, name)
    try:
        with np.errstate(all="ignore"):
            complaint = _complaint(exercises[name], texts["answers"], answer)
    except NotImplementedError:
        how = f"Replace the `raise` with your own lines and run the cell again; `exercises.hint({name!r})` helps."
        complaint = f"not solved yet. {how}"
    except Exception as error:  # a reader's code may fail in any way; say how instead of stopping the page
        complaint = f"your function raised {type(error).__name__}: {error}"
    if complaint:
        return Verdict(name, False, complaint)
    in_notebook = getattr(get_ipython(), "kernel", None) is not None
    if in_notebook and not getattr(answer, "__name__", "").endswith("_solution"):
        kept = _kept()
        kept[chapter] = kept.get(chapter, {}) | {name: {"solved": True}}
        with suppress(OSError):  # a folder that takes no files keeps nothing, and the check goes on
            places.write(Path(FILE), json.dumps(kept, indent=1, sort_keys=True) + "\n")
    question = f"<details><summary>{texts['leads_on']}</summary>\n\n{texts['then']}\n\n</details>"
    return Verdict(name, True, texts["solved"], f"\n\n{texts['means']}\n\n{question}")


def hint(chapter: str, exercises: Mapping[str, Exercise], name: str) -> Text:
    """The first hint of an exercise; asked again, the second; then both.

    Raises:
        ValueError: there is no such exercise.
    """
    first, second = _texts(chapter, exercises, name)["hints"]
    solution = "The solution stands folded under the exercise on the book's page."
    both = f"all hints:\n\n1. {first}\n2. {second}\n\n{solution}"
    ASKED[name] += 1
    return Text(f"**{name}**, " + {1: f"hint 1 of 2: {first}", 2: f"hint 2 of 2: {second}"}.get(ASKED[name], both))


def progress(chapter: str, exercises: Mapping[str, Exercise]) -> Text:
    """What is solved of the chapter, the minutes left, and what comes next."""
    minutes = {}  # none where there is no notebook
    for file in (places.ROOT / "notebooks").glob(f"[0-9][0-9]_{chapter}.ipynb"):
        cells = json.loads(file.read_text("utf-8"))["cells"]  # nbformat takes more than a second to import
        text = "\n".join("".join(cell["source"]) for cell in cells)
        minutes = {name: int(number) for number, name in TIMED.findall(text)}
    solved = _kept().get(chapter, {})
    left = [name for name in exercises if name not in solved]
    states = {name: "⬜ open" if name in left else "✅ solved" for name in exercises}
    rows = [(f"`{name}`", state, minutes.get(name, "")) for name, state in states.items()]
    after = f", about {sum(minutes.get(name, 0) for name in left)} minutes left. Next: `{left[0]}`." if left else ""
    summary = f"**{len(exercises) - len(left)} of {len(exercises)}** solved{after or '. Next: the open project.'}"
    return Text(f"{tabulate(rows, ('exercise', 'state', 'minutes'), tablefmt='github')}\n\n{summary}")


def maps(size: int, seed: int) -> np.ndarray:
    """Weights [query, key] whose rows sum to 1, others for each seed."""
    return softmax(np.random.default_rng(seed).normal(size=(size, size)) * 2, axis=-1)


def _texts(chapter: str, exercises: Mapping[str, Exercise], name: str) -> dict[str, Any]:
    if name not in exercises:
        raise ValueError(f"There is no exercise {name!r}. There are: {', '.join(exercises)}.")
    texts = Path(__file__).with_name(f"{chapter}.yml")
    if not texts.is_file():
        raise ValueError(
            f"{texts} is missing, which says what a check answers; see step 2 of 'A new chapter' in book/contributing.md."
        )
    return yaml.safe_load(texts.read_text("utf-8"))["checks"][name]


def _kept() -> dict[str, dict[str, Any]]:
    """What is kept in the folder; a file that cannot be read holds nothing."""
    with suppress(OSError, ValueError):
        return json.loads(Path(FILE).read_text("utf-8"))
    return {}


def _complaint(exercise: Exercise, sentences: Mapping[str, str], answer: Callable) -> str | None:
    """What is wrong with an answer, if anything."""
    results = []
    for case in exercise.cases:
        given = deepcopy(case)
        got = answer(*given)
        if got is None:
            return "your function returns None; does it end in `return`?"
        arrays = [pair for pair in zip(case, given, strict=True) if isinstance(pair[0], np.ndarray)]
        if exercise.untouched and not all(np.array_equal(*pair) for pair in arrays):
            return "it changes the array it was given; work on a copy."
        known = exercise.results(*deepcopy(case))
        right = known["right"]
        got = _like(right, got)
        results.append(got)
        same = [name for name, result in known.items() if _same(got, result, exercise.view)]
        if not same and _shape(got) != _shape(right):
            return f"the result has shape {_shape(got)}, wanted is {_shape(right)}."
        remark = exercise.remark and _shape(got) == _shape(right) and exercise.remark(results)
        if remark or "right" not in same:
            return sentences[remark or [*same, "right"][0]].format(got=got, right=right, case=case)
    return None


def _like(right: Any, got: Any) -> Any:
    if isinstance(right, set):
        return set(map(tuple, np.asarray([*got]).tolist()))
    kind = {tuple: tuple, np.ndarray: np.asarray}.get(type(right))
    return kind(got) if kind else got


def _shape(result: Any) -> tuple:
    return tuple(map(np.shape, result)) if isinstance(result, tuple) else np.shape(result)


def _same(got: Any, other: Any, view: Callable | None = None) -> bool:
    if _shape(got) != _shape(other):
        return False
    if isinstance(got, tuple):
        return all(map(_same, got, other))
    pair = [np.asarray(view(result) if view else result) for result in (got, other)]
    numbers = all(result.dtype.kind in "biuf" for result in pair)
    return np.allclose(*pair, atol=1e-6, equal_nan=True) if numbers else np.array_equal(*pair)
