"""Grading: the functions that students handed in, each tried in a process of its own, judged out here.

A submission's notebook is opened and its function called inside (:mod:`helpers.run.teaching.inside`); only results come
back, and the same check that the notebook shows (:mod:`helpers.chapters.checks`) compares them here with the right ones,
first on the printed cases, then on others. So a submission that edits the check has edited its own copy.
"""

import base64
import csv
import io
import json
import pickle
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from tqdm import tqdm

from helpers import places
from helpers.chapters import checks
from helpers.chapters.checks import Exercise
from helpers.run.teaching import fresh, sandbox
from helpers.run.teaching.sandbox import Limits, Outcome

LARGEST = 64 << 20
"""Bytes of a file that is opened as a notebook."""
LONGEST = 600
"""Characters of a message."""
START = 4
"""Seconds of the processor that a process may use beside its limit, to start Python."""
COLUMNS = ("student", "exercise", "solved", "message", "seconds")
NO_RESULT = "the process ended before your function gave a result; does it exit, or use too much memory?"


@dataclass(frozen=True)
class Submission:
    """Who handed in, and the file; none for a folder without one."""

    student: str
    file: Path | None


@dataclass(frozen=True)
class Grade:
    """What was found of one exercise of one student."""

    student: str
    exercise: str
    solved: bool
    message: str
    seconds: float


def submissions(folder: Path) -> list[Submission]:
    """What was handed in: each file in a folder, named by its student, or each folder in it, named likewise.

    Of a student's folder with one notebook that one is graded; with several, each as ``student/name``.

    Raises:
        BookError: when nothing is there.
    """
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    if not entries:
        raise places.BookError(f"{folder} is empty. Put one notebook for each student there, or one folder for each.")
    return [found for entry in entries for found in _of(entry)]


def _of(entry: Path) -> list[Submission]:
    if entry.is_symlink() or not entry.is_dir():
        return [Submission(entry.stem, entry)]
    files = sorted(f for f in entry.rglob("*.ipynb") if not any(part.startswith(".") for part in f.parts))
    if len(files) < 2:
        return [Submission(entry.name, files[0] if files else None)]
    return [Submission(f"{entry.name}/{f.relative_to(entry).with_suffix('')}", f) for f in files]


def grade(
    folder: Path, chapter: str, *, seed: int | None = None, limits: Limits | None = None, shut_in: bool = True
) -> tuple[list[Grade], int]:
    """Grade all submissions for a chapter.

    Args:
        folder: what was handed in (:func:`submissions`).
        chapter: the name of its file, ``04_dependency_heads``.
        seed: of the cases that no notebook shows; drawn when None.
        limits: of each function.
        shut_in: in namespaces of its own (:mod:`helpers.run.teaching.sandbox`).

    Returns:
        Grades by student and exercise, and the seed.
    """
    seed = secrets.randbits(32) if seed is None else seed
    handed_in, limits = submissions(folder), limits or Limits()
    tables = {
        name: (printed, fresh.redrawn(chapter, name, seed)) for name, printed in fresh.exercises(chapter).items()
    }
    jobs = [(one, name) for one in handed_in for name in tables]
    with (
        _shown(shut_in) as folders,
        ThreadPoolExecutor(max(1, joblib.cpu_count())) as pool,
        tqdm(total=len(jobs), desc="functions", unit="function") as bar,
    ):

        def graded(job: tuple[Submission, str]) -> Grade:
            one, name = job
            found = _graded(one, name, tables[name], limits, folders, shut_in)
            bar.update()
            return found

        return list(pool.map(graded, jobs)), seed


@contextmanager
def _shown(shut_in: bool) -> Iterator[Mapping[Path, str]]:
    """The folders that a submission sees: a copy of the package without answers, and the data."""
    if not shut_in:
        yield {places.ROOT: ""}
        return
    with tempfile.TemporaryDirectory() as scratch:
        hidden = shutil.ignore_patterns("__pycache__", "exercises.py", "skeleton")
        shutil.copytree(places.ROOT / "helpers", Path(scratch) / "helpers", ignore=hidden)
        (Path(scratch) / "data").mkdir()
        yield {Path(scratch): "/book", places.book_data(): "/book/data"}


def _graded(
    one: Submission,
    name: str,
    tables: tuple[type[Exercise], ...],
    limits: Limits,
    folders: Mapping[Path, str],
    shut_in: bool,
) -> Grade:
    try:
        content = _content(one.file)
    except (Unreadable, OSError) as error:
        return Grade(one.student, name, False, str(error), 0.0)
    job = {
        "notebook": content,
        "exercise": name,
        "cases": [case for table in tables for case in table.cases],
        "untouched": tables[0].untouched,
        "seconds": int(limits.seconds) + START,
        "memory": limits.memory + (2 << 30),  # of addresses, which libraries reserve and do not use
    }
    arguments = ["-m", "helpers.run.teaching.inside"]
    outcome = sandbox.run(arguments, pickle.dumps(job), folders, limits, shut_in=shut_in)
    solved, message = judged(name, tables, outcome)
    return Grade(one.student, name, solved, message, outcome.seconds)


class Unreadable(Exception):
    """What was handed in is not opened, and why."""


def _content(file: Path | None) -> bytes:
    if file is None:
        raise Unreadable("no notebook was handed in.")
    if file.is_symlink() or not file.is_file():
        raise Unreadable("this is no file of its own.")
    if file.stat().st_size > LARGEST:
        raise Unreadable("this file is too large for a notebook.")
    return file.read_bytes()


# ---------------------------------------------------------------------------------------- judging


def judged(name: str, tables: Sequence[type[Exercise]], outcome: Outcome) -> tuple[bool, str]:
    """Whether the results that came back are right, and what the check says of them."""
    replies = iter(_replies(outcome))
    for number, table in enumerate(tables):
        found = checks.check({name: table}, name, _played(replies, outcome, table))
        if not found.solved:
            message = found.message.removeprefix(f"your function raised {Stopped.__name__}: ")
            return False, ("right on the printed cases, but on others: " if number else "") + message[:LONGEST]
    return True, found.message


def _replies(outcome: Outcome) -> list[Any]:
    """The lines of a report, as far as they are such."""
    found = []
    for line in outcome.report[: sandbox.LONGEST].split(b"\n"):
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            break
    return found


def _played(replies: Iterator[Any], outcome: Outcome, table: type[Exercise]) -> Callable:
    """A function that answers with what came back, errors included, and leaves its arguments as the student's did."""

    def answer(*case: Any) -> Any:
        reply = next(replies, None)
        if not isinstance(reply, dict):
            raise Stopped(outcome.ended or NO_RESULT)
        if "error" in reply:
            raise _error(str(reply["error"]), str(reply.get("message", "")))
        if table.untouched:
            for before, after in zip(case, reply.get("after", ()), strict=False):
                _as_left(before, after)
        return opened(reply.get("result"))

    return answer


class Stopped(Exception):
    """The process was ended, or ended itself."""


def _error(name: str, message: str) -> Exception:
    """The error that the student's function raised, under its name."""
    if name == "NotImplementedError":
        return NotImplementedError()
    own = Stopped if name == "Missing" else type(name if name.isidentifier() else "Error", (Exception,), {})
    return own(message)


def _as_left(before: Any, after: Any) -> None:
    if isinstance(before, np.ndarray) and after is not None:
        left = opened(after)
        if left.shape == before.shape and left.dtype == before.dtype:
            before[...] = left


def opened(value: Any) -> Any:
    """A result from what :func:`helpers.run.teaching.inside.plain` made of it.

    Raises:
        ValueError: for anything else.
    """
    if not isinstance(value, dict):
        return value
    [(kind, held)] = value.items()
    if kind == "array":
        return np.load(io.BytesIO(base64.b64decode(held)), allow_pickle=False)
    return {"list": list, "tuple": tuple, "set": set}[kind](map(opened, held))


# ---------------------------------------------------------------------------------------- writing


def write(grades: Sequence[Grade], folder: Path, chapter: str) -> tuple[Path, Path]:
    """Write ``grades.csv`` and a feedback file for each student; return the table and the folder of feedback."""
    table, feedback = folder / "grades.csv", folder / "feedback"
    places.write(table, as_csv(grades))
    for student, own in groupby(grades, key=lambda one: one.student):
        places.write(feedback / f"{_file_name(student)}.md", _feedback(student, list(own), chapter))
    return table, feedback


def as_csv(grades: Sequence[Grade]) -> str:
    """The table, of which no cell is taken for a formula."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for one in grades:
        cells = (one.student, one.exercise, "yes" if one.solved else "no", one.message)
        rows.writerow([*map(_no_formula, cells), f"{one.seconds:.1f}"])
    return text.getvalue()


def _no_formula(cell: str) -> str:
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def _file_name(student: str) -> str:
    return re.sub(r"[^\w.-]+", "-", student).strip(".") or "student"


def _feedback(student: str, grades: Sequence[Grade], chapter: str) -> str:
    lines = [f"- **{one.exercise}**: {'solved' if one.solved else 'open'}. {_inert(one.message)}" for one in grades]
    solved = sum(one.solved for one in grades)
    head = f"# {_inert(student)}, chapter {chapter[:2]}\n\n{solved} of {len(grades)} exercises solved."
    return f"{head}\n\n" + "\n".join(lines) + "\n"


def _inert(text: str) -> str:
    """Text of a student's in which nothing is markup, on one line."""
    return re.sub(r"([<>\[\]|!])", r"\\\1", " ".join(text.split()))
