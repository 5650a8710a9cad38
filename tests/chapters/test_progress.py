"""What a reader's notebook remembers, hints one by one, and what is said after a right answer."""

import json
import re

import pytest

from helpers.chapters import checks, progress
from helpers.chapters.dependency_heads import exercises
from helpers.run import notebooks
from helpers.run.teaching import fresh

TABLES = {(c, n): e for c in notebooks.chapters() for n, e in fresh.exercises(c).items()}


def pool_words(weights, words):
    return exercises.pool_words.right(weights, words)


def pool_words_solution(weights, words):
    return exercises.pool_words.right(weights, words)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_in_notebook", lambda: True)
    return tmp_path


def test_a_solved_exercise_is_remembered_in_the_notebooks_folder(folder):
    assert "**0 of 2** solved, about 35 minutes left. Next: `pool_words`." in repr(exercises.progress())
    exercises.check("pool_words", pool_words)
    assert json.loads((folder / progress.FILE).read_text()) == {"dependency_heads": {"pool_words": {"solved": True}}}
    said = exercises.progress()._repr_markdown_()
    assert "**1 of 2** solved, about 20 minutes left. Next: `offset_parser`." in said
    assert "| `pool_words` | ✅ solved | 15 |" in said


def test_the_books_solution_and_a_wrong_answer_are_not(folder):
    exercises.check("pool_words", pool_words_solution)
    exercises.check("pool_words", lambda weights, words: weights)
    assert not (folder / progress.FILE).exists()


def test_outside_a_notebook_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exercises.check("pool_words", pool_words)
    exercises.hint("pool_words")
    assert list(tmp_path.iterdir()) == []


def test_hints_come_one_by_one(folder):
    first, second = exercises.pool_words.hints
    assert [first in repr(exercises.hint("pool_words")), second in repr(exercises.hint("pool_words"))] == [True, True]
    assert all(one in repr(exercises.hint("pool_words")) for one in (first, second, "solution"))
    assert "2 of its hints read" in repr(exercises.progress())
    assert second in repr(exercises.hint("pool_words", 2))
    with pytest.raises(ValueError, match="There are: pool_words, offset_parser"):
        exercises.hint("pool_word")


def test_a_spoiled_file_is_an_empty_one(folder):
    (folder / progress.FILE).write_text("{")
    exercises.check("pool_words", pool_words)
    assert "1 of 2" in repr(exercises.progress())


@pytest.mark.parametrize(("chapter", "name"), TABLES)
def test_every_exercise_has_its_hints_meaning_and_next_question(chapter, name):
    table = TABLES[chapter, name]
    assert len(set(table.hints)) == 2 and table.leads_on.endswith("?") and re.fullmatch(r"[A-Z].*\.", table.means)
    shown = checks.check({name: table}, name, table.right)._repr_markdown_()
    assert table.means in shown and table.leads_on in shown


@pytest.mark.parametrize("chapter", notebooks.chapters())
def test_minutes_are_those_of_the_notebook(chapter):
    found = progress._minutes({"__name__": f"helpers.chapters.{chapter[3:]}.exercises"})
    assert set(found) == set(fresh.exercises(chapter)) and all(5 <= minutes <= 30 for minutes in found.values())
