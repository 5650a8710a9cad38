"""A chapter as an nbgrader assignment: nbgrader makes the students' version of it, collects, and gives points.

Cells carry nbgrader's metadata (schema 3). Each exercise with a check is a cell to answer in, whose right answer stands
between the marks that nbgrader takes out, and a test that is locked and counts; written exercises are graded by hand.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from helpers.run import plain
from helpers.run.failures import NotebookError
from helpers.run.teaching import copies

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
POINTS = {"★☆☆": 1, "★★☆": 2, "★★★": 6}
"""Of an exercise, by its stars."""
_CHECK = re.compile(r"^exercises\.check\(\s*\"(\w+)\",\s*(\w+)\s*\)$", re.MULTILINE)
_KIND = re.compile(r"^\*\*(Predict|Interpret|Open project)\*\* (★[★☆]{2}), ", re.MULTILINE)


def place(folder: Path, chapter: str) -> Path:
    """Where nbgrader looks for an assignment's source: ``source/CHAPTER/CHAPTER.ipynb`` of the course's folder."""
    return folder / "source" / chapter / f"{chapter}.ipynb"


def assignment(chapter: str, site: str | None = None) -> NotebookNode:
    """The source version of an assignment, in plain Markdown.

    Raises:
        NotebookError: when a checked exercise has no solution of its own.
    """
    stored = copies.read(chapter)
    answers = dict(_answers(stored))
    made = plain.rendered(copies.without_solutions(stored), chapter, site)
    made.metadata.pop("book", None)
    made.cells = [new for cell in made.cells for new in _cells(cell, answers, chapter)]
    return made


def _answers(notebook: NotebookNode) -> Iterator[tuple[str, tuple[str, str]]]:
    """Exercise -> the code of its solution without the check, and the name of the function that is checked there."""
    for cell, inside in copies.gated(notebook.cells):
        if inside and cell.cell_type == "code" and (asked := _CHECK.search(cell.source)):
            yield asked[1], (_CHECK.sub("", cell.source).strip(), asked[2])


def _cells(cell: NotebookNode, answers: dict[str, tuple[str, str]], chapter: str) -> Iterator[NotebookNode]:
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = [], None
        if asked := _CHECK.search(cell.source):
            yield from _checked(cell, asked[1], asked[2], answers, chapter)
            return
    yield cell
    if cell.cell_type == "markdown" and (found := _KIND.search(cell.source)):
        name = found[1].lower().replace(" ", "-")
        written = nbformat.v4.new_markdown_cell("*Your answer here.*", id=name)
        yield _marked(written, name, points=POINTS[found[2]], grade=True, solution=True)


def _checked(
    cell: NotebookNode, exercise: str, name: str, answers: dict[str, tuple[str, str]], chapter: str
) -> Iterator[NotebookNode]:
    """The cell to answer in, whose function has a name of its own, and the test."""
    if exercise not in answers:
        raise NotebookError(f"{chapter}: the exercise {exercise} has no checked solution between gates.")
    body = textwrap.indent("\n".join([BEGIN, _body(*answers[exercise]), END]), "    ")
    cell.source = _CHECK.sub("", cell.source).strip().replace("    raise NotImplementedError", body)
    yield _marked(cell, exercise, solution=True)
    found = f'exercises.check("{exercise}", {name})'
    test = nbformat.v4.new_code_cell(f"found = {found}\nassert found.solved, found.message", id=f"test-{cell['id']}")
    yield _marked(test, f"test-{exercise}", points=POINTS["★★☆"], grade=True, locked=True)


def _body(code: str, name: str) -> str:
    """What a solution's function does, its docstring left out; other functions of the cell are put inside."""
    lines, statements = code.split("\n"), ast.parse(code).body
    function = next(one for one in statements if isinstance(one, ast.FunctionDef) and one.name == name)
    first = function.body[1 if ast.get_docstring(function) else 0]
    beside = "\n".join(lines[: function.lineno - 1] + lines[function.end_lineno :]).strip()
    own = textwrap.dedent("\n".join(lines[first.lineno - 1 : function.end_lineno]))
    return "\n\n".join(filter(None, [beside, own]))


def _marked(cell: NotebookNode, name: str, *, points: int | None = None, **marks: bool) -> NotebookNode:
    """A cell with nbgrader's marks."""
    chosen: dict[str, Any] = {"schema_version": 3, "grade_id": name, "grade": False, "locked": False}
    chosen |= {"solution": False, "task": False, "cell_type": cell.cell_type, **marks}
    cell.metadata["nbgrader"] = chosen | ({} if points is None else {"points": points})
    return cell
