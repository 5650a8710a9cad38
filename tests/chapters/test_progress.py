"""What a reader's notebook remembers, and hints one by one."""

import json
from types import SimpleNamespace

import pytest

from helpers.exercises import checks
from helpers.exercises import dependency_heads as exercises


def pool_words(weights, words):
    return next(iter(exercises.pool_words.results(weights, words).values()))


def pool_words_solution(weights, words):
    return pool_words(weights, words)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checks, "get_ipython", lambda: SimpleNamespace(kernel=True))
    checks.ASKED.clear()
    return tmp_path


def test_a_solved_exercise_is_remembered_in_the_notebooks_folder(folder):
    assert "**0 of 2** solved" in repr(exercises.progress())
    exercises.check("pool_words", pool_words)
    assert json.loads((folder / checks.FILE).read_text()) == {"dependency_heads": {"pool_words": {"solved": True}}}
    assert "**1 of 2** solved" in repr(exercises.progress()) and "offset_parser" in repr(exercises.progress())


def test_the_books_solution_and_a_wrong_answer_are_not(folder):
    exercises.check("pool_words", pool_words_solution)
    exercises.check("pool_words", lambda weights, words: weights)
    assert not (folder / checks.FILE).exists()


def test_outside_a_notebook_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exercises.check("pool_words", pool_words)
    exercises.hint("pool_words")
    assert list(tmp_path.iterdir()) == []


def test_hints_come_one_by_one(folder):
    assert "hint 1 of 2: `member = np" in repr(exercises.hint("pool_words"))
    assert "hint 2 of 2: For the attending" in repr(exercises.hint("pool_words"))
    assert "solution" in repr(exercises.hint("pool_words"))
    with pytest.raises(ValueError, match="There are: pool_words, offset_parser"):
        exercises.hint("pool_word")
