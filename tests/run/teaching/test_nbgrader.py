"""Assignments for nbgrader: its marks are as its own validation asks, and the answers between them are right."""

from itertools import pairwise

import pytest

from helpers.run import notebooks
from helpers.run.teaching import fresh, nbgrader

pytest.importorskip("pybtex", reason="the extra lab is not installed")


@pytest.fixture(scope="module", params=notebooks.chapters())
def assignment(request):
    made = nbgrader.assignment(request.param)
    return request.param, made, [cell for cell in made.cells if "nbgrader" in cell.metadata]


def test_every_exercise_is_marked_once(assignment):
    chapter, _, marked = assignment
    names = [cell.metadata.nbgrader.grade_id for cell in marked]
    builds = list(fresh.exercises(chapter))
    assert sorted(names) == sorted([*builds, *(f"test-{n}" for n in builds), "predict", "interpret", "open-project"])
    for cell in marked:
        mark = cell.metadata.nbgrader
        assert mark.schema_version == 3 and mark.cell_type == cell.cell_type and not mark.task
        assert ("points" in mark) == mark.grade and mark.locked == (mark.grade and not mark.solution)


def test_answers_stand_between_the_marks_and_pass_the_test_after_them(assignment):
    chapter, _, marked = assignment
    module = __import__(f"helpers.chapters.{chapter[3:]}.exercises", fromlist=["check"])
    for answer, test in pairwise(marked):
        if not test.metadata.nbgrader.grade_id.startswith("test-"):
            continue
        space = {"np": __import__("numpy"), "exercises": module}
        exec(answer.source, space)
        exec(test.source, space)
        before, between, _ = answer.source.partition(f"    {nbgrader.BEGIN}\n")
        assert between and before.startswith("def ") and '"""' in before
        exec(f"{before}    raise NotImplementedError", space)
        with pytest.raises(AssertionError, match="not solved yet"):
            exec(test.source, space)


def test_nothing_but_the_answers_is_given_away(assignment):
    _, made, _ = assignment
    assert "_solution" not in "".join(cell.source for cell in made.cells)
    assert all(cell.outputs == [] for cell in made.cells if cell.cell_type == "code")
