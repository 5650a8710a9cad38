"""Exercises accept right answers and recognise each mistake that they foresee; what a reader's notebook remembers, and hints one by one."""

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from helpers.exercises import checks
from helpers.exercises import dependency_heads as exercises
from helpers.measurements import divergence

FILES = sorted(Path(checks.__file__).parent.glob("*.yml"))
MODULES = [import_module(f"helpers.exercises.{file.stem}") for file in FILES]
EXERCISES = {name: (m, e) for m in MODULES for name, e in vars(m).items() if isinstance(e, checks.Exercise)}


def verdict(name, answer):
    return EXERCISES[name][0].check(name, answer)


def outcome(name, answer, *case):
    """The right result, or that of a mistake."""
    with np.errstate(all="ignore"):
        return EXERCISES[name][1].results(*case)[answer]


def right(name):
    return lambda *case: outcome(name, "right", *case)


MISTAKES = [(n, m) for n, (_, e) in EXERCISES.items() for m in e.results(*e.cases[-1]) if m != "right"]
SAID = {name: check["answers"] for f in FILES for name, check in yaml.safe_load(f.read_text())["checks"].items()}


@pytest.mark.parametrize(("name", "mistake"), MISTAKES)
def test_every_mistake_is_told_so(name, mistake):
    result = verdict(name, lambda *case: outcome(name, mistake, *case))
    cases = EXERCISES[name][1].cases
    told = {SAID[name][mistake].format(got=outcome(name, mistake, *case), case=case) for case in cases}
    assert not result.solved and result.message in told


RIGHT = [
    *((name, right(name)) for name in EXERCISES),
    ("classical_scaling", divergence.classical),
    ("past_words", lambda even, odd: np.argwhere(np.minimum(even.sum(0), odd.sum(0)) > 0.5)[::-1] + 1),
    ("offset_parser", lambda *parts: tuple(right("offset_parser")(*parts))),
    ("paired_gap", lambda values, other: list(np.percentile(values - other, (2.5, 97.5)))),
    ("cut_head", lambda *case: list(right("cut_head")(*case))),
    ("shuffle_within", lambda labels, groups, rng: list(right("shuffle_within")(labels, groups, rng))),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers_are_accepted(name, answer):
    assert verdict(name, answer).solved


WRONG = [
    ("causal_attention", lambda w: np.tril(w, -1) / np.tril(w, -1).sum(-1, keepdims=True), "0 divided by 0"),
    ("causal_attention", lambda w: w, "still sees a later one"),
    ("pool_words", lambda w, words: right("pool_words")(w, words) * 2, "the rows do not sum to 1"),
    ("shuffle_within", lambda labels, groups, rng: rng.permutation(labels), "moved from group to group"),
    (
        "shuffle_within",
        lambda labels, groups, rng: rng.permutation(labels) if rng.random() > 0.9 else labels,
        "moved from group to group",
    ),
    ("shuffle_within", lambda labels, groups, rng: labels, "hardly any different orders"),
    ("causal_attention", lambda w: None, "returns None"),
    ("causal_attention", lambda w: w[0], "the result has shape (4,), wanted is (4, 4)."),
    ("causal_attention", lambda w: 1 / 0, "ZeroDivisionError"),
    ("causal_attention", lambda w: "weights", "shape"),
    ("past_words", lambda even, odd: [(1, 1)], "it lists {(1, 1)}"),
    ("offset_parser", lambda dev, test: (1, 0.5), "the pair should be"),
    ("antecedent_accuracy", lambda w, c: 0.513, "whose most attended earlier mention"),
]


@pytest.mark.parametrize(("name", "answer", "says"), WRONG)
def test_other_wrong_answers_are_told_why(name, answer, says):
    result = verdict(name, answer)
    assert not result.solved and says in result.message, result.message


def test_cases_are_kept_from_a_reader_who_changes_them():
    def spoiled(inputs):
        for weights, kind in inputs:
            weights[:], kind[:] = 0, True
        return 1.0

    assert not verdict("even_multiple", spoiled).solved
    assert verdict("even_multiple", right("even_multiple")).solved


# What is remembered


pool_words = right("pool_words")


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
