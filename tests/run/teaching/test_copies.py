"""Copies for students: no trace of a solution is left, and everything else is there."""

import json
import re

import nbformat
import pytest

from helpers.run import notebooks
from helpers.run.failures import NotebookError
from helpers.run.teaching import copies

pytest.importorskip("pybtex", reason="the extra lab is not installed")


def words(text):
    return re.sub(r"[\s\"'\\]+", " ", text)


def pieces(cell):
    """What could give a solution away: the lines of its code, outputs and sentences that are long enough to be its own."""
    if cell.cell_type == "code":
        shown = json.dumps(cell.outputs, ensure_ascii=False)
        yield from (line.strip() for line in cell.source.split("\n"))
        yield from re.findall(r"\"(?:text/plain|text)\": \[?\"(.{12,200})", shown)
        yield from re.findall(r"\"image/png\": \"(.{200})", shown)
    else:
        yield from re.split(r"(?<=[.?!]) ", re.sub(r"^`.*$|^:.*$", "", cell.source, flags=re.MULTILINE).strip())


@pytest.fixture(scope="module", params=notebooks.chapters())
def chapter(request):
    name, stored = request.param, copies.read(request.param)
    inside = [cell for cell, within in copies.gated(stored.cells) if within]
    outside = [cell for cell, within in copies.gated(stored.cells) if not within]
    return name, inside, outside, copies.student(name)


def test_no_trace_of_a_solution_is_left(chapter):
    _, inside, outside, student = chapter
    text, before = words(json.dumps(student, ensure_ascii=False)), words(json.dumps(outside, ensure_ascii=False))
    assert "_solution" not in text and "Solution to" not in text and "{solution" not in text
    secret = {words(piece) for cell in inside for piece in pieces(cell) if len(piece) >= 12}
    secret = {piece for piece in secret if piece not in before}
    assert len(secret) > 10, "there is something to look for"
    assert [piece for piece in secret if piece in text] == []


def test_the_rest_is_there(chapter):
    name, _, outside, student = chapter
    nbformat.validate(student)
    code = [cell.source for cell in outside if cell.cell_type == "code"]
    assert [cell.source for cell in student.cells if cell.cell_type == "code"] == code
    asked = [source for source in code if "exercises.check(" in source]
    assert asked and all("raise NotImplementedError" in source for source in asked)
    assert "book" not in student.metadata and f"### Exercise {int(name[:2])}.1" in json.dumps(student)


def test_a_solution_copy_has_both(chapter):
    name, inside, outside, _ = chapter
    made = copies.solution(name)
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    assert len(code) == sum(cell.cell_type == "code" for cell in [*inside, *outside])
    assert "_solution(" in "".join(cell.source for cell in code)


@pytest.mark.parametrize(
    "sources",
    [
        ["````{solution-start} ex-1\n````"],
        ["````{solution-end}\n````"],
        ["````{solution-start} ex-1\n````\n\n````{solution-start} ex-2\n````"],
    ],
)
def test_gates_that_enclose_nothing_certain_are_refused(sources):
    cells = [nbformat.v4.new_markdown_cell(source) for source in sources]
    with pytest.raises(NotebookError, match="solution"):
        copies.without_solutions(nbformat.v4.new_notebook(cells=cells))


@pytest.mark.parametrize(
    "solution",
    [
        "````{solution} ex-1\n:class: dropdown\nTold.\n````",
        "````{solution-start} ex-1\n:class: dropdown\n````\nTold.\n\n````{solution-end}\n````",
    ],
)
def test_a_solution_amid_other_text_goes_alone(solution):
    cell = nbformat.v4.new_markdown_cell(f"Before.\n\n{solution}\n\nAfter.")
    left = copies.without_solutions(nbformat.v4.new_notebook(cells=[cell])).cells
    assert [one.source for one in left] == ["Before.", "After."]
