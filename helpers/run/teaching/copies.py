"""Copies of a chapter in plain Markdown: for students, without solutions, and for instructors, with nbgrader's marks.

In the instructor's copy the solution of an exercise stands in the cell where students answer, between the comments that
nbgrader replaces by a stub, and a locked cell after it checks the answer and gives points.
"""

import re
import textwrap
from copy import deepcopy
from typing import Any

import nbformat
from nbformat import NotebookNode

from helpers import places
from helpers.run import address, launch, notebooks, plain

POINTS = 2
"""Of an exercise with a check."""
BEGIN, END = "    ### BEGIN SOLUTION", "    ### END SOLUTION"
TEST = "verdict = {}\nassert verdict.solved, verdict.message\nprint(verdict.message)"
_CHECK = re.compile(r"^exercises\.check\(\s*\"(\w+)\",\s*(\w+)\s*\)$", re.MULTILINE)
_WRITTEN = re.compile(r"^\*\*(Predict|Interpret|Open project)\*\* ★", re.MULTILINE)
_HEADING = re.compile(r"#### Solution to .*")


def read(chapter: str) -> NotebookNode:
    """A chapter as it is in git."""
    return nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4)


def student(chapter: str) -> NotebookNode:
    """A chapter without its solutions and their outputs; checks stay."""
    return without_solutions(_copy(chapter))


def without_solutions(notebook: NotebookNode) -> NotebookNode:
    """A copy of a notebook in plain Markdown, without the cells that belong to solutions."""
    made = deepcopy(notebook)
    made.cells = [cell for cell in made.cells if not _in_solution(cell)]
    return made


def _copy(chapter: str) -> NotebookNode:
    made = plain.rendered(read(chapter), chapter, address.site())
    made.metadata = {name: about for name, about in made.metadata.items() if name in ("kernelspec", "language_info")}
    made.cells[1:1] = launch.installing(address.raw(launch.wheel_name()) or "")
    return made


def instructor(chapter: str) -> NotebookNode:
    """A chapter with its solutions and nbgrader's marks: handed in as it is, it gets all points.

    Raises:
        BookError: when an exercise with a check has no solution with one.
    """
    made = _copy(chapter)
    checks = {cell.id: _CHECK.search(cell.source) for cell in made.cells if cell.cell_type == "code"}
    solved = {checks[cell.id][1]: cell for cell in made.cells if checks.get(cell.id) and _in_solution(cell)}
    cells = []
    for cell in made.cells:
        check = checks.get(cell.id)
        if check and not _in_solution(cell):
            if check[1] not in solved:
                raise places.BookError(f"{chapter}: the exercise {check[1]} has no solution with a check.")
            cells += _checked(cell, solved[check[1]])
        elif not check and not _HEADING.fullmatch(cell.source):
            cells.append(cell)
        if found := _WRITTEN.search(cell.source):
            name = found[1].lower().replace(" ", "-")
            answer = nbformat.v4.new_markdown_cell("*Your answer here.*", id=name)
            cells.append(_marked(answer, name, points=0, grade=True, solution=True))
    for cell in filter(_in_solution, cells):
        cell.source = re.sub(r"\b(\w+)_solution\(", r"\1(", cell.source)
    made.cells = cells
    return made


def _in_solution(cell: NotebookNode) -> bool:
    return plain.SOLUTION in cell.metadata.get("tags", ())


def _checked(cell: NotebookNode, solution: NotebookNode) -> list[NotebookNode]:
    """The cell to answer in, with the code of the solution, and the test of it."""
    check, theirs = _CHECK.search(cell.source), _CHECK.search(solution.source)
    function = re.search(rf'^def {theirs[2]}\(.*?""".*?"""\n', solution.source, re.MULTILINE | re.DOTALL)
    helpers = textwrap.indent(solution.source[: function.start()].rstrip("\n"), "    ")
    body = solution.source[function.end() : theirs.start()].rstrip()
    region = [BEGIN, *filter(None, [helpers]), body, END]
    cell.source = cell.source.partition("    raise NotImplementedError")[0] + "\n".join(region)
    test = nbformat.v4.new_code_cell(TEST.format(check[0]), id=f"test-{cell.id}", outputs=solution.outputs)
    return [
        _marked(cell, check[1], solution=True),
        _marked(test, f"test-{check[1]}", points=POINTS, grade=True, locked=True),
    ]


def _marked(cell: NotebookNode, name: str, **marks: Any) -> NotebookNode:
    usual = {"grade": False, "locked": False, "solution": False, "task": False}
    cell.metadata["nbgrader"] = {"schema_version": 3, "grade_id": name, "cell_type": cell.cell_type, **usual, **marks}
    return cell
