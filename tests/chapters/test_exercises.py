"""The tables of exercises hold together, and the notebooks ask what they hold."""

import json
import math
import re
from importlib import import_module

import numpy as np
import pytest

from helpers import places
from helpers.chapters import checks, divergence_map, pattern_types

CHAPTERS = {
    notebook.stem[3:]: json.loads(notebook.read_text(encoding="utf-8"))
    for notebook in sorted((places.ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
}
MODULES = {name: import_module(f"helpers.chapters.{name}.exercises") for name in CHAPTERS}
EXERCISES = {name: (m, e) for m in MODULES.values() for name, e in checks.exercises(vars(m)).items()}
MISTAKES = [(name, mistake) for name, (_, e) in EXERCISES.items() for mistake in checks.mistakes(e)]


def verdict(name, answer):
    return EXERCISES[name][0].check(name, answer)


def pattern(message):
    """A message, with anything in place of an argument, a result or what is wanted."""
    return re.sub(r"\\{.*?\\}", ".*", re.escape(message))


def test_every_folder_has_its_exercises_under_names_of_their_own():
    assert {f.parent.name for f in (places.ROOT / "helpers" / "chapters").glob("*/exercises.py")} == set(CHAPTERS)
    assert len(EXERCISES) == sum(len(checks.exercises(vars(module))) for module in MODULES.values())


@pytest.mark.parametrize("name", EXERCISES)
def test_the_right_answer_is_right(name):
    module, exercise = EXERCISES[name]
    found = module.check(name, exercise.right)
    assert found.solved and re.fullmatch(pattern(exercise.solved), found.message)


@pytest.mark.parametrize(("name", "mistake"), MISTAKES)
def test_every_mistake_is_told_so(name, mistake):
    found = verdict(name, mistake)
    assert not found.solved and re.fullmatch(pattern(mistake.__doc__), found.message), found.message
    for case in EXERCISES[name][1].cases:
        with np.errstate(all="ignore"):
            mistake(*case)  # it is compared with a result at any of them


def test_no_two_mistakes_of_an_exercise_say_the_same():
    for name, (_, exercise) in EXERCISES.items():
        said = [exercise.solved, *(one.__doc__ for one in (exercise.right, *checks.mistakes(exercise)))]
        assert len(set(said)) == len(said), name


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_notebook_asks_and_solves_each_once(chapter):
    cells = [cell for cell in CHAPTERS[chapter]["cells"] if "exercises.check(" in "".join(cell["source"])]
    found = []

    class Watched:
        def check(name, answer):
            found.append(MODULES[chapter].check(name, answer))

    for cell in cells:
        exec("".join(cell["source"]), {"np": np, "exercises": Watched})
    wanted = checks.exercises(vars(MODULES[chapter]))
    assert sorted(v.exercise for v in found if v.solved) == sorted(wanted)
    assert sorted(v.exercise for v in found if v.message.startswith("not solved yet")) == sorted(wanted)
    stored = ["".join(o["data"]["text/plain"]) for cell in cells for o in cell["outputs"]]
    assert stored == list(map(repr, found)), "what the page shows"


RIGHT = [
    ("classical_scaling", divergence_map.classical),
    ("macro_f1", lambda table: pattern_types.macro(pattern_types.f1(table * 1.0))),
    ("sinks", lambda even, odd: np.argwhere(np.minimum(even.sum(0), odd.sum(0)) > 0.5)[::-1] + 1),
    ("offset_parser", lambda *parts: tuple(EXERCISES["offset_parser"][1].right(*parts))),
    ("paired_gap", lambda one, other: list(np.percentile(one - other, (2.5, 97.5)))),
    ("cut_head", lambda *case: list(EXERCISES["cut_head"][1].right(*case))),
    ("deal_anew", lambda names, rng: [rng.permutation(layer) for layer in names]),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_other_right_answers_are_accepted(name, answer):
    assert verdict(name, answer).solved


def in_place(weights, values, output, kinds):
    weights[:, kinds == 0] = 0
    return weights[0, :3]


def shuffled(names, rng):
    rng.permuted(names, axis=1, out=names)
    return names


WRONG = [
    ("received_without_special", lambda w, s: w[~s].sum(0), "shape"),
    ("causal_attention", lambda w: None, "returns None"),
    ("causal_attention", lambda w: w[0], "the result has shape (4,), wanted is (4, 4)."),
    ("causal_attention", lambda w: 1 / 0, "ZeroDivisionError"),
    ("causal_attention", lambda w: "weights", "shape"),
    ("attend", lambda x, *_: (np.eye(4), x[:, :3]), "Take the steps of the drawing one by one"),
    ("attend", lambda x, q, k, v: None, "returns None"),
    ("causal_attention", lambda w: np.triu(w) / np.triu(w).sum(-1, keepdims=True), "still sees a later one"),
    ("breadth", lambda w: -sum(p * math.log(p) for p in w[0]), "ValueError"),
    ("breadth", lambda w: "0", "Σ p ln p"),
    ("sinks", lambda even, odd: [(1, 1)], "it lists {(1, 1)}"),
    ("sinks", lambda even, odd: [], "add the three shares"),
    ("is_tree", lambda c: False, "must end at ROOT"),
    ("undirected_score", lambda g, p: sum((w, v) in p for w, v in enumerate(g)) / 4, "either direction"),
    ("offset_parser", lambda dev, test: (1, 0.5), "the pair should be"),
    ("offset_parser", lambda dev, test: 0.5, "shape"),
    ("handed_on", lambda w, v, o, k: np.linalg.norm(w @ v @ o, axis=-1), "shape"),
    ("handed_on", lambda w, v, o, k: np.full(3, 1 / 3), "the parts should be"),
    ("handed_on", in_place, "work on a copy"),
    ("inside_only", lambda w, s, r: w, "weights between two different"),
    ("deal_anew", lambda n, g: np.stack([g.permutation(x) for x in n.T]).T, "from layer to layer"),
    ("deal_anew", lambda n, g: np.roll(n, 1, axis=1), "hardly any different"),
    ("deal_anew", lambda n, g: np.full_like(n, "a"), "number of heads of each type"),
    ("deal_anew", shuffled, "work on a copy"),
    ("attention_pooled", lambda t, s, o: t[:4], "weighted by a softmax of their own scores"),
    ("cut_head", lambda q, k, v, o, h, n: (q, k, v, o), "shape"),
    ("cut_head", lambda q, k, v, o, h, n: (q[3:], k[3:], v[3:], o[:, 3:]), "should be gone"),
    ("cut_head", lambda q, k, v, o, h, n: None, "returns None"),
    ("antecedent_accuracy", lambda w, c: 0.513, "whose most attended earlier mention"),
    ("classical_scaling", lambda d: None, "returns None"),
    ("classical_scaling", lambda d: divergence_map.classical(d, 3), "shape"),
    ("classical_scaling", lambda d: divergence_map.classical(np.sqrt(d)), "square the distances"),
    ("agreed_by_all", lambda labels: (labels == labels[:, :1]).all(1).mean(), "number their groups as they like"),
    ("type_entropy", lambda names: 0.0, "should be 0.693: minus the sum of p ln p"),
    ("macro_f1", lambda table: 0.5, "2 · hits"),
]


@pytest.mark.parametrize(("name", "answer", "says"), WRONG)
def test_other_wrong_answers_are_told_why(name, answer, says):
    found = verdict(name, answer)
    assert not found.solved and says in found.message, found.message


def test_cases_are_kept_from_a_reader_who_changes_them():
    def spoiled(inputs):
        for weights, kind in inputs:
            weights[:], kind[:] = 0, True
        return 1.0

    assert not verdict("even_multiple", spoiled).solved
    test_the_right_answer_is_right("even_multiple")


def test_an_unknown_exercise_is_named_beside_the_known():
    with pytest.raises(ValueError, match=r"'nothing'\. There are: attend, causal_attention"):
        MODULES["transformer_refresher"].check("nothing", len)
