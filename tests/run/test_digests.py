"""What makes outputs stale: code that is used, data, parameters, five libraries; no comment, no docstring, no other chapter."""

import ast
import shutil

import nbformat
import pytest

from helpers import places
from helpers.engine import code
from helpers.run import digests, notebooks

PLACES = ("helpers", "data", "notebooks", "book/profiles", "requirements.lock")


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of this repository: the package, the data, the notebooks' cells."""
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
    """Function: a file with another text -> the chapters whose outputs are then stale."""
    monkeypatch.setattr(places, "ROOT", house)
    read = {c: nbformat.read(notebooks.FOLDER / f"{c}.ipynb", as_version=4) for c in notebooks.chapters()}

    def now():
        return {name: digests.digest(name, notebook, {"profile": "book"}) for name, notebook in read.items()}

    before = now()

    def after(**changes):
        """``helpers__places="…"``: a new text, or a function of the old one."""
        files = {house / name: change for name, change in changes["files"].items()}
        kept = {file: file.read_bytes() for file in files}
        try:
            for file, change in files.items():
                file.write_text(change(file.read_text("utf-8")), "utf-8")
            return {name[:2] for name, found in now().items() if found != before[name]}
        finally:
            for file, old in kept.items():
                file.write_bytes(old)

    return lambda **files: after(files=files) if "files" not in files else after(**files)


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
    assert stale(files=dict.fromkeys(modules(house), noted)) == set()


def test_a_printed_function_makes_the_chapter_that_prints_it_stale(house, stale):
    def told(text):
        return text.replace("\ndef norms(", "\n# Above it is not printed.\ndef norms(", 1)

    def inside(text):
        start = text.index("\ndef norms(")
        end = text.index("\n    return", start)
        return text[:end] + "\n    # A comment that readers see." + text[end:]

    file = "helpers/chapters/no_op/measures.py"
    assert stale(files={file: told}) == set()
    assert stale(files={file: inside}) == {"03"}


def test_a_chapters_own_figures_and_exercises_concern_nobody_else(house, stale):
    for chapter in notebooks.chapters():
        for part in ("figures", "exercises"):
            file = f"helpers/chapters/{chapter[3:]}/{part}.py"
            if (house / file).exists():
                assert stale(files={file: "{}\nchanged = 1\n".format}) == {chapter[:2]}, file


def test_the_tap_concerns_all(stale):
    assert stale(files={"helpers/engine/attention.py": "{}\nchanged = 1\n".format}) == ALL
