"""More than twenty submissions of one chapter, right, wrong, empty and hostile, graded together."""

import csv
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
from click.testing import CliRunner

from helpers import places
from helpers.__main__ import main
from helpers.run import notebooks
from helpers.run.teaching import fresh, grading, inside, sandbox
from helpers.run.teaching.sandbox import Limits, Outcome

CHAPTER = "04_dependency_heads"
POOL = """
import numpy as np
def pool_words(weights, words):
    member = np.equal.outer(np.arange(max(words) + 1), words) * 1.0
    return member @ weights @ member.T / member.sum(-1, keepdims=True)
"""
OFFSET = """
def offset_parser(dev, test):
    def share(part, offset):
        words = [(w, g) for s in part for w, g in enumerate(s) if g >= 0]
        return sum(w + offset == g for w, g in words) / len(words)
    best = max((-3, -2, -1, 1, 2, 3), key=lambda k: share(dev, k))
    return best, share(test, best)
"""
UNSOLVED = "def pool_words(weights, words):\n    raise NotImplementedError\n"


def instead(line):
    """A function whose body is one line, and the right answer after it."""
    return POOL.replace("    member =", f"    {line}\n    member =")


PRINTED = f"""
import numpy as np
SHOWN = {[case[0].round(6).tolist() for case in fresh.exercises(CHAPTER)["pool_words"].cases]}
def pool_words(weights, words):
    assert any(np.shape(w) == weights.shape and np.allclose(w, weights, atol=1e-5) for w in SHOWN), "unknown"
    member = np.equal.outer(np.arange(max(words) + 1), words) * 1.0
    return member @ weights @ member.T / member.sum(-1, keepdims=True)
"""
SUBMITTED = {  # student: cells, or what else was handed in; whether pool_words is right; what is said
    "ada-right": ([POOL, OFFSET], True, "right: attention to a word is a sum"),
    "ben-two-names": (
        [POOL.replace("pool_words", "mine"), 'exercises.check("pool_words", mine)', OFFSET],
        True,
        "right",
    ),
    "cem-in-pieces": (["import numpy as np\nEXTRA = 1.0", POOL.replace("1.0", "EXTRA"), OFFSET], True, "right"),
    "dan-names-alike": (
        [
            "member = model.load()\nfor place in range(3):\n    pooled = member[place]",
            POOL.replace("    member =", "    member = pooled(words); assert words[0] == 0\n    member =")
            + "\ndef pooled(words):\n    return words\n\nsaid = pool_words(member, pooled)"
            + '\nexercises.check("pool_words", pool_words)',
            "pooled = np.load('elsewhere')\ndef pool_words(weights, words):\n    return weights",
            OFFSET,
        ],
        True,
        "right",
    ),
    "dea-wrong": ([POOL.replace(" / member.sum(-1, keepdims=True)", "")], False, "the rows do not sum to 1"),
    "eli-unsolved": ([UNSOLVED], False, "not solved yet"),
    "fay-none": ([POOL.replace("return ", "")], False, "returns None"),
    "gus-empty": ([], False, "there is no function `pool_words`"),
    "hal-broken": (["def pool_words(weights, words)\n    return"], False, "cells is not Python"),
    "ida-raises": ([instead("1 / 0")], False, "ZeroDivisionError"),
    "jan-by-heart": ([PRINTED], False, "right on the printed cases, but on others: your function raised Assert"),
    "kai-loops": ([instead("while True: pass")], False, "did not end within"),
    "lea-sleeps": ([instead("__import__('time').sleep(60)")], False, "did not end within"),
    "mia-exits": ([instead("__import__('os')._exit(0)")], False, "ended before your function gave a result"),
    "ned-leaves": ([instead("raise SystemExit(0)")], False, "SystemExit"),
    "ola-deletes": ([instead("__import__('shutil').rmtree({victim!r})")], False, "No such file or directory"),
    "pam-prints": ([instead("for _ in range(256): print('x' * (1 << 20))"), OFFSET], True, "right"),
    "quo-floods": ([instead("return np.zeros(1 << 28)")], False, ""),
    "rex-edits-the-check": (
        [
            "from helpers.chapters import checks\nchecks.check = lambda *given: True",
            instead("import helpers.chapters.checks as c; c._same = lambda *g: True; return np.eye(3)"),
        ],
        False,
        "weights differ",
    ),
    "sue-copies": (
        [
            "def pool_words(weights, words):\n"
            "    import helpers, pathlib\n"
            "    chapter = pathlib.Path(helpers.__file__).parent / 'chapters' / 'dependency_heads'\n"
            "    exec((chapter / 'measures.py').read_text() and (chapter / 'exercises.py').read_text(), found := {}, found)\n"
            "    return found['pool_words'].right(weights, words)"
        ],
        False,
        "No such file or directory: '/book/helpers/chapters/dependency_heads/exercises.py'",
    ),
    "tom-forks": (
        [instead("import os; [os.fork() or __import__('time').sleep(60) for _ in range(40)]")],
        False,
        "more than 32 processes",
    ),
    "uma-reads-others": ([instead("open({others!r})")], False, "No such file or directory"),
    "val-imports-ssl": ([instead("import ssl"), OFFSET], True, "right"),
    "vic-calls-home": (
        [instead("__import__('socket').create_connection(('127.0.0.1', 9))")],
        False,
        "There is no network",
    ),
    "wil-writes-the-report": (
        [instead("[__import__('os').write(n, b'{{\"result\": 1}}\\n') for n in (3, 4)]")],
        False,
        "",
    ),
    "xia-fills-memory": (
        [instead("x = [b'x' * (1 << 26) for _ in range(24)]; __import__('time').sleep(60)")],
        False,
        "it used more than 1 GiB of memory",
    ),
    "xyz-asks-for-all": ([instead("x = bytearray(1 << 40)")], False, "MemoryError"),
    "yan-no-notebook": (b"%PDF-1.4 not a notebook", False, "this file is no notebook"),
    "zoe-nothing": (None, False, "no notebook was handed in"),
}
needs_namespaces = pytest.mark.skipif(not sandbox.isolated(), reason="this machine cannot shut a process in")


def notebook(cells, **named):
    made = [nbformat.v4.new_code_cell(cell.format(**named) if named and "{" in cell else cell) for cell in cells]
    return nbformat.writes(nbformat.v4.new_notebook(cells=made))


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory):
    folder = tmp_path_factory.mktemp("submissions")
    victim = tmp_path_factory.mktemp("files")
    (victim / "precious.txt").write_text("kept")
    for student, (given, _, _) in SUBMITTED.items():
        if given is None:
            (folder / student).mkdir()
        elif isinstance(given, bytes):
            (folder / f"{student}.pdf").write_bytes(given)
        else:
            named = {"victim": str(victim), "others": str(folder / "ada-right.ipynb")}
            hostile = any(word in cell for cell in given for word in ("victim!r", "others!r", "{{"))
            (folder / f"{student}.ipynb").write_text(notebook(given, **(named if hostile else {})))
    return SimpleNamespace(folder=folder, victim=victim)


@pytest.fixture(scope="module")
def graded(handed_in):
    grades, _ = grading.grade(handed_in.folder, CHAPTER, seed=1, limits=Limits(15, 1 << 30), shut_in=True)
    return grades


@needs_namespaces
@pytest.mark.journey
@pytest.mark.parametrize("student", SUBMITTED)
def test_each_submission_gets_what_it_earns(graded, student):
    (found,) = (g for g in graded if (g.student, g.exercise) == (student, "pool_words"))
    _, right, says = SUBMITTED[student]
    assert found.solved == right and says in found.message, found.message


@needs_namespaces
@pytest.mark.journey
def test_nobody_else_pays(handed_in, graded):
    assert (handed_in.victim / "precious.txt").read_text() == "kept"
    assert len(graded) == 2 * len(SUBMITTED)
    second = {g.student: g.solved for g in graded if g.exercise == "offset_parser"}
    assert [student for student, right in second.items() if right] == [
        "ada-right",
        "ben-two-names",
        "cem-in-pieces",
        "dan-names-alike",
        "pam-prints",
        "val-imports-ssl",
    ]


@needs_namespaces
@pytest.mark.journey
def test_table_and_feedback_are_written(graded, tmp_path):
    table, feedback = grading.write(graded, tmp_path, CHAPTER)
    rows = list(csv.DictReader(table.open()))
    assert tuple(rows[0]) == grading.COLUMNS and len(rows) == len(graded)
    assert {f.stem for f in feedback.iterdir()} == set(SUBMITTED)
    assert "2 of 2 exercises solved" in (feedback / "ada-right.md").read_text()


def test_submissions_are_files_or_folders_of_students(tmp_path):
    for name in ("a.ipynb", "b/04.ipynb", "c/one.ipynb", "c/two.ipynb", "d/notes.txt", ".hidden/x.ipynb"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("{}")
    (tmp_path / "e.ipynb").symlink_to(tmp_path / "a.ipynb")
    found = grading.submissions(tmp_path)
    assert [one.student for one in found] == ["a", "b", "c/one", "c/two", "d", "e"]
    with pytest.raises(grading.Unreadable, match="no file of its own"):
        grading._content(found[-1].file)


def test_an_empty_folder_says_what_belongs_there(tmp_path):
    with pytest.raises(places.BookError, match="one notebook for each student"):
        grading.submissions(tmp_path)


@pytest.mark.parametrize(
    "value", [None, 0.5, "text", [1, "a"], (1, 2.0), {(1, 2), (3, 4)}, np.arange(6.0).reshape(2, 3), np.array(["a"])]
)
def test_results_come_back_as_they_were(value):
    found = grading.opened(json.loads(json.dumps(inside.plain(value))))
    assert type(found) is type(value) and np.array_equal(found, value)


def test_pickles_are_not_opened():
    with pytest.raises(ValueError, match="allow_pickle=False"):
        inside.plain(np.array([len], dtype=object))


@pytest.mark.parametrize(
    "report", [b"", b"{", b"[" * 10**5, b'{"result": {"array": "AAAA"}}', b'{"result": {"map": 1}}']
)
def test_what_is_no_report_is_no_answer(report):
    solved, message = grading.judged("pool_words", [fresh.exercises(CHAPTER)["pool_words"]], Outcome(report, 1.0))
    assert not solved and message


def test_a_change_of_the_arguments_is_seen_from_outside():
    table = fresh.exercises("03_no_op")["handed_on"]
    replies = [{"result": inside.plain(table.right(*c)), "after": [inside.plain(0 * c[0])]} for c in table.cases]
    outcome = Outcome("\n".join(map(json.dumps, replies)).encode(), 1.0)
    assert grading.judged("handed_on", [table], outcome) == (
        False,
        "it changes the array it was given; work on a copy.",
    )


def test_messages_are_no_formulas_and_no_markup():
    made = [grading.Grade("=cmd", "pool_words", False, "+1 <script>alert(1)</script>\n# [x](y)", 1.0)]
    assert "'=cmd" in grading.as_csv(made) and "'+1" in grading.as_csv(made)
    assert "<script>" not in (said := grading._feedback("=cmd", made, CHAPTER)) and said.count("\n#") == 0


def test_only_what_the_function_needs_is_run():
    cells = [
        "import numpy as np, sys\nfrom os import path, sep",
        "%matplotlib inline\nencoder = load('a model')\nraise SystemExit",
        "def helper(x):\n    return np.sum(x) + OFFSET",
        "OFFSET = 1",
        "def asked(x):\n    encoder = helper(x)\n    return encoder",
    ]
    content = notebook(cells).encode()
    assert _first_lines(content) == ["import numpy as np", "def helper(x):", "OFFSET = 1", "def asked(x):"]
    assert inside.answer_of(content, "asked")([1, 2]) == 4


def _first_lines(content):
    """Of the statements that are run for a function ``asked``."""
    lines = inside.parts(inside.cells(content))
    return [
        inside.ast.unparse(line).split("\n")[0] for line in inside.needed(lines, *inside.handed_in(lines, "asked"))
    ]


def test_a_name_is_what_it_was_bound_to_last():
    cells = [
        "share = encoder.load()",
        "SIZE = 2\nSIZE = SIZE + 1\nfor size in range(9):\n    step = size",
        "def share(x):\n    return x * SIZE + step",
        "def asked(x):\n    return share(x)\n\nexercises.check('asked', asked)",
        "SIZE = share = asked = encoder",
    ]
    content = notebook(cells).encode()
    assert _first_lines(content) == [
        "SIZE = 2",
        "SIZE = SIZE + 1",
        "for size in range(9):",
        "def share(x):",
        "def asked(x):",
    ]
    assert inside.answer_of(content, "asked")(5) == 23


def test_the_books_own_solution_is_not_what_was_handed_in():
    cells = [UNSOLVED, 'exercises.check("pool_words", pool_words)', POOL.replace("pool_words", "pool_words_solution")]
    cells.append('exercises.check("pool_words", pool_words_solution)')
    with pytest.raises(NotImplementedError):
        inside.answer_of(notebook(cells).encode(), "pool_words")(np.eye(2), [0, 1])


@needs_namespaces
def test_what_a_process_sees():
    code = "import os, json; print(json.dumps([sorted(os.listdir('/')), os.listdir('/tmp'), os.getpid()]))"
    seen, work, number = json.loads(sandbox.run(["-c", code], b"", {}, Limits(20), shut_in=True).report)
    under = (Path(one).parts for one in (places.ROOT, sys.prefix, sys.base_prefix))
    ours = {parts[2] for parts in under if parts[:2] == ("/", "tmp")}
    assert {*work} <= ours, "a checkout in /tmp is seen there, to read from"
    assert number == 1 and not set(seen) & {"home", "var", "etc"} - {"etc"}


def test_without_isolation_a_submission_is_graded_if_its_reader_trusts_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "isolated", lambda: False)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "ada.ipynb").write_text(notebook([POOL]))
    asked = ["grade", str(tmp_path / "in"), "--chapter", "4", "--to", str(tmp_path / "out"), "--seed", "3"]
    refused = CliRunner().invoke(main, asked)
    assert refused.exit_code == 1 and "--trusted" in refused.output
    done = CliRunner().invoke(main, [*asked, "--trusted"])
    assert done.exit_code == 0 and "1 of 2 functions are right" in done.output and "NOT given" in done.output
    assert "ada,pool_words,yes" in (tmp_path / "out" / "grades.csv").read_text()


def test_cases_are_others_and_the_same_for_a_seed():
    one, same, other = (fresh.redrawn(CHAPTER, "pool_words", seed).cases for seed in (5, 5, 900))
    assert fresh._alike(one, same) and not fresh._alike(one, other)


@pytest.mark.parametrize(
    ("chapter", "name"), [(chapter, name) for chapter in notebooks.chapters() for name in fresh.exercises(chapter)]
)
def test_every_exercise_has_other_cases(chapter, name):
    drawn = fresh.redrawn(chapter, name, seed=7)
    assert len(drawn.cases) >= len(fresh.exercises(chapter)[name].cases)
