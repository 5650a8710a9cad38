"""What a new chapter costs: its own files, a line of the table of contents; everything else follows from them."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from helpers import places

COPIED = (
    "helpers",
    "notebooks",
    "book",
    "data",
    "tests",
    "_config.yml",
    "README.md",
    "requirements.lock",
    "pyproject.toml",
)
NAME, QUESTION = "first_tokens", "Does every head look at the beginning?"
CLAIM = f"""
    first_token:
      value: 50
      unit: "%"
      bound: lower
      what: A claim for a chapter that a test adds.
      model: BERT-base
      where: section 0
      data: n/a
      chapter: {NAME}
"""
FINDING = """Finding(
        claim="clark2019 first_token", text="In some head more than half of all attention goes to the first token", rule="above", than="paper",
        value=lambda v: v["largest"],
    ),"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the checkout."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in COPIED:
        source = places.ROOT / name
        ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
        shutil.copytree(source, folder / name, ignore=ignored) if source.is_dir() else shutil.copy(
            source, folder / name
        )
    return folder


def helpers(tree, *arguments):
    """Run ``python -m helpers`` on the copy, and return what it prints."""
    return python(tree, "-m", "helpers", *arguments)


def python(tree, *arguments):
    path = os.pathsep.join([str(tree), os.environ.get("PYTHONPATH", "")])
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BOOK_")} | {"PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def digests(tree):
    code = "import json; from helpers.run import notebooks as n; print(json.dumps({c: n.digest(c, n.parameters(c, 'book')) for c in n.chapters()}))"
    return json.loads(python(tree, "-c", code))


@pytest.mark.slow
@pytest.mark.notebooks
def test_a_new_chapter_is_its_own_files_and_one_line(tree):
    before, files = digests(tree), {f: f.read_bytes() for f in tree.rglob("*") if f.is_file() and f.suffix != ".pyc"}
    told = helpers(tree, "new", NAME, "--question", QUESTION).split("\n")
    changed = {
        f.relative_to(tree).as_posix()
        for f in tree.rglob("*")
        if f.is_file() and f.suffix != ".pyc" and files.get(f) != f.read_bytes()
    }
    own = {
        f"helpers/chapters/{NAME}/{part}.py" for part in ("__init__", "measures", "figures", "exercises", "findings")
    }
    own |= {f"notebooks/15_{NAME}.ipynb", f"tests/chapters/test_{NAME}.py"}
    assert changed == own | {"book/_toc.yml", "README.md"} == set(filter(None, told))
    papers = tree / "data" / "papers.yml"
    text = papers.read_text("utf-8")
    papers.write_text(text.replace("  claims:\n", "  claims:" + CLAIM, 1), "utf-8")
    findings = tree / "helpers" / "chapters" / NAME / "findings.py"
    findings.write_text(
        findings.read_text("utf-8").replace("FINDINGS: tuple[Finding, ...] = ()", f"FINDINGS = (\n    {FINDING}\n)"),
        "utf-8",
    )
    assert "FINDINGS = (\n" in findings.read_text("utf-8")

    helpers(tree, "run", NAME, "--profile", "smoke", "--to", "notebooks", "--record")
    python(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/chapters/test_{NAME}.py")
    after = digests(tree)
    assert set(after) - set(before) == {f"15_{NAME}"}
    assert {c: after[c] for c in before} == before, "no other chapter is stale"

    helpers(tree, "book", "--stored", "--output", "out")
    pages = tree / "out" / "_build" / "html"
    page = (pages / "notebooks" / f"15_{NAME}.html").read_text("utf-8")
    assert QUESTION in page and "<figure" in page and "not solved yet" in page
    assert f"notebooks/15_{NAME}.html" in (pages / "book" / "intro.html").read_text("utf-8")
    assert re.search(
        rf"\| \[15\]\(notebooks/15_{NAME}\.ipynb\) \| {re.escape(QUESTION)} \|",
        (tree / "README.md").read_text("utf-8"),
    )
    assert f"helpers.chapters.{NAME}.measures.measure" in (pages / "book" / "helpers.html").read_text("utf-8")
    board = (pages / "book" / "scoreboard.html").read_text("utf-8")
    assert "In some head more than half of all attention goes to the first token" in board
