"""What makes outputs stale: code that is used, data, parameters, five libraries; no comment, no docstring, no other chapter."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from helpers import places
from helpers.engine import code
from helpers.run import digests, notebooks

PLACES = ("helpers", "requirements.lock", "data/papers.yml")


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of this repository; of the data, which is looked at elsewhere, only the claims of papers."""
    root = tmp_path_factory.mktemp("house")
    for place in PLACES:
        source, target = places.ROOT / place, root / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_file():
            shutil.copyfile(source, target)
        else:
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture
def stale(house, monkeypatch):
    """Function of {file: its new text, made of the old one}: the chapters whose outputs are then stale."""
    monkeypatch.setattr(places, "ROOT", house)
    monkeypatch.setattr(places, "HOME", house)
    read = {c: nbformat.read(notebooks.FOLDER / f"{c}.ipynb", as_version=4) for c in notebooks.chapters()}

    def now():
        return {name[:2]: digests.digest(name, notebook, {"profile": "book"}) for name, notebook in read.items()}

    before = now()

    def after(changes):
        kept = {house / name: (house / name).read_text("utf-8") for name in changes}
        try:
            for name, change in changes.items():
                (house / name).write_text(change(kept[house / name]), "utf-8")
            return {name for name, found in now().items() if found != before[name]}
        finally:
            for file, old in kept.items():
                file.write_text(old, "utf-8")

    return after


ALL = {chapter[:2] for chapter in notebooks.chapters()}


def modules(house):
    return [str(f.relative_to(house)) for f in sorted((house / "helpers").rglob("*.py"))]


def noted(text):
    """The same code with comments, other docstrings and other blank lines, but not inside functions that a chapter may print."""
    tree, lines = ast.parse(text), text.split("\n")
    for node in sorted(ast.walk(tree), key=lambda n: -getattr(n, "lineno", 0)):
        if code.is_text(node):
            lines[node.lineno - 1 : node.end_lineno] = [" " * node.col_offset + '"""Other words."""']
    return "# A comment.\n\n\n" + "\n".join(lines) + "\n\n# Another.\n"


def test_no_comment_and_no_docstring_makes_outputs_stale(house, stale):
    assert stale(dict.fromkeys(modules(house), noted)) == set()


def test_a_printed_function_makes_the_chapter_that_prints_it_stale(house, stale):
    def told(text):
        return text.replace("\ndef norms(", "\n# Above it is not printed.\ndef norms(", 1)

    def inside(text):
        start = text.index("\ndef norms(")
        end = text.index("\n    return", start)
        return text[:end] + "\n    # A comment that readers see." + text[end:]

    file = "helpers/chapters/no_op/measures.py"
    assert stale({file: told}) == set()
    assert stale({file: inside}) == {"03"}


def test_a_chapters_own_figures_and_exercises_concern_nobody_else(house, stale):
    for number, chapter in enumerate(notebooks.chapters()):
        files = [f"helpers/chapters/{chapter[3:]}/{part}.py" for part in ("figures", "exercises")]
        there = [file for file in files if (house / file).exists()]
        for changed in [there] if number else [there, *([file] for file in there)]:
            assert stale(dict.fromkeys(changed, "{}\nchanged = 1\n".format)) == {chapter[:2]}, changed


def test_the_engine_concerns_all_that_use_it(stale):
    assert stale({"helpers/engine/encoders.py": "{}\nchanged = 1\n".format}) == ALL
    assert (
        stale({"helpers/engine/attention.py": "{}\nchanged = 1\n".format}) == ALL
    )  # a model is looked at when it is loaded
    removing_heads = {"03", "04", "10", "11", "13"}
    assert stale({"helpers/engine/layers.py": "{}\nchanged = 1\n".format}) == removing_heads


def test_a_look_that_is_no_code_concerns_all(stale):
    assert stale({"helpers/figures/book.mplstyle": "{}\nlines.linewidth: 9\n".format}) == ALL


def test_every_file_beside_code_is_known_to_be_read(house, monkeypatch):
    """Otherwise nobody would notice that it has changed."""
    monkeypatch.setattr(places, "ROOT", house)
    monkeypatch.setattr(places, "HOME", house)
    everything = [".".join(Path(m).with_suffix("").parts).removesuffix(".__init__") for m in modules(house)]
    outside = house / "helpers" / "run" / "skeleton"  # what a new chapter begins with
    there = {f for f in (house / "helpers").rglob("*") if f.is_file() and outside not in f.parents}
    known = set(code.used(everything)) - set(outside.rglob("*"))
    named = {text for file in modules(house) for text in code.module(house / file).texts}
    assert known <= there and {f for f in there - known if f.name not in named} == set(), "read by nobody"


def test_only_pins_of_libraries_that_compute_or_draw_count(stale):
    def without(name):
        return lambda lock: "\n".join(line for line in lock.split("\n") if not line.startswith(f"{name}=="))

    for name in ("torch", "transformers", "numpy", "scikit-learn", "matplotlib"):
        assert stale({"requirements.lock": without(name)}) == ALL, name
    for name in ("Sphinx", "nbclient", "pytest", "torchmetrics", "matplotlib-inline"):
        assert stale({"requirements.lock": without(name)}) == set(), name


def test_modules_are_found_as_python_finds_them(house):
    """The files followed are those that an interpreter loads, and no more than stand behind its imports."""
    wanted = "helpers.chapters.no_op.figures"
    script = (
        f"import sys, {wanted}; print(*(m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'helpers'))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=places.ROOT, capture_output=True, text=True, check=True)
    loaded = {Path(name) for name in done.stdout.split()}
    assert loaded <= set(code.used([wanted]))


def test_the_empty_end_that_python_3_12_gives_an_f_string_says_nothing():
    plain = "x = f'{a:>{b}}', ['', c]"
    tree = ast.parse(plain)
    width = next(node for node in ast.walk(tree) if isinstance(node, ast.FormattedValue)).format_spec
    if sys.version_info[:2] != (3, 12):
        width.values.append(ast.Constant(""))
    assert code.parsed(tree) == code.parsed(ast.parse(plain)) and "value=''" in code.parsed(tree), "in a list it does"
    assert code.parsed(tree).count("value=''") == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("x = 1", "x  =  (1)  # one", True),
        ("def f():\n    'told'\n    return 1", "def f():\n    return 1", True),
        ("x = 1\n'about x'", "x = 1", True),
        ("x = 'a' 'b'", "x = 'ab'", True),
        ("x = None", "x = 0", False),
        ("x = 1", "x = 1.0", False),
        ("f(a=1)", "f(b=1)", False),
        ("x = {**a}", "x = {None: a}", False),
    ],
)
def test_equal_code(one, other, same):
    assert (code.code_of(one).said == code.code_of(other).said) == same
