"""A copy of the checkout with one chapter more than the book has: what the chapter holds, and how the copy is made."""

import json
import os
import shutil
import subprocess
import sys

import nbformat

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
REPOSITORY = "https://github.com/example/attention"
HOSTILE = (
    "</script><script>parent.document.title = 'taken'</script>",
    "<!--<script>",
    "<img src=x onerror=\"parent.document.title='taken'\">",
)
SHOWN = f"""import numpy as np
from helpers.figures import touch
from helpers.figures.views import attention_view, bertviz
from helpers.record.results import Table
hostile = {HOSTILE!r}
maps = np.full((2, 2, 3, 3), 1 / 3)
labels = {{"alt": hostile[2], "xlabel": hostile[0], "ylabel": hostile[1], "texts": hostile, "tokens": hostile}}
display(touch.points([0, 1, 2], [0, 1, 2], hostile, colours={{hostile[0]: (hostile, dict.fromkeys(hostile, "#000000"))}}, maps=np.full((3, 3, 3), 1 / 3), **labels))
display(touch.frames([0], [hostile[2]], [[hostile, [(one, "#ffdd88") for one in hostile]]], alt=hostile[0]))
display(attention_view(maps, hostile), bertviz("head_view", maps, hostile), Table(["token", hostile[0]], [[t, f"`{{t}}`"] for t in hostile]))
print(*hostile)
"""
FINDING = """Finding(
        Claim("clark2019 first_token", "above", "paper"),
        "In some head more than half of all attention goes to the first token",
        Ours("largest"),
    ),"""


def helpers(tree, *arguments):
    """Run ``python -m helpers`` on the copy, and return what it prints."""
    return python(tree, "-m", "helpers", *arguments)


def python(tree, *arguments, **variables):
    path = os.pathsep.join([str(tree), os.environ.get("PYTHONPATH", "")])
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BOOK_")} | {"PYTHONPATH": path}
    environment |= variables
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def digests(tree):
    code = "import json; from helpers.run import notebooks as n; print(json.dumps({c: n.digest(c, n.parameters(c, 'book')) for c in n.chapters()}))"
    return json.loads(python(tree, "-c", code))


def files_of(tree):
    return {f: f.read_bytes() for f in tree.rglob("*") if f.is_file() and f.suffix != ".pyc"}


def copied(tree):
    """Copy what the book is made of."""
    tree.mkdir()
    for name in COPIED:
        source = places.ROOT / name
        ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
        shutil.copytree(source, tree / name, ignore=ignored) if source.is_dir() else shutil.copy(source, tree / name)


def grow(tree):
    """Give the copy a chapter more: files and digests before and after, and what the command said."""
    from helpers.run import notebooks  # what the copy was made of: the digests say nothing of where they are

    files = files_of(tree)
    before = {name: notebooks.digest(name, notebooks.parameters(name, "book")) for name in notebooks.chapters()}
    told = helpers(tree, "new", NAME, "--question", QUESTION).split("\n")
    changed = [f.relative_to(tree).as_posix() for f, now in files_of(tree).items() if files.get(f) != now]
    notebook = nbformat.read(tree / f"notebooks/15_{NAME}.ipynb", as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(SHOWN))
    nbformat.write(notebook, tree / f"notebooks/15_{NAME}.ipynb")
    for file, old, new in (
        ("data/papers.yml", "  claims:\n", "  claims:" + CLAIM),
        (
            f"helpers/chapters/{NAME}/findings.py",
            "FINDINGS: tuple[Finding, ...] = ()",
            f"FINDINGS = (\n    {FINDING}\n)",
        ),
    ):
        text = (tree / file).read_text("utf-8")
        assert old in text
        (tree / file).write_text(text.replace(old, new, 1), "utf-8")
    helpers(tree, "run", NAME, "--profile", "smoke", "--to", "notebooks", "--record")
    return {"told": [*filter(None, told)], "changed": changed, "before": before, "after": digests(tree)}
