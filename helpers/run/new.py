"""The skeleton of a new chapter: a notebook that runs, its folder, its test, its line in the table of contents."""

import re
from importlib.resources import files
from pathlib import Path
from string import Template

import nbformat
from nbformat import NotebookNode

from helpers import places
from helpers.run import contents, notebooks

FOLDER_FILES = ("__init__.py", "measures.py", "figures.py", "exercises.py", "findings.py", "teaching.yml")
CELL = re.compile(r"^```\{code-cell\} *(?P<what>[^\n]*)\n(?P<code>.*?)\n```$", re.DOTALL | re.MULTILINE)


def new(name: str, question: str) -> list[Path]:
    """Write the skeleton of a chapter after the last one, and return the files written or changed.

    Args:
        name: of the folder, such as ``sentence_order``.
        question: the chapter's title.

    Raises:
        NotebookError: for a name that is no Python name in lower case or belongs to a chapter already.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise notebooks.NotebookError(f"{name!r} is no name for a chapter: use small letters, digits and _.")
    if any(chapter[3:] == name for chapter in notebooks.chapters()):
        raise notebooks.NotebookError(f"There is a chapter {name!r} already: {notebooks.find(name)}.")
    number = f"{len(notebooks.chapters()) + 1:02d}"
    words = {"name": name, "number": number, "question": question, "label": name.replace("_", "-")}
    root = places.ROOT
    targets = {f"helpers/chapters/{name}/{file}": file for file in FOLDER_FILES}
    targets[f"tests/chapters/test_{name}.py"] = "test.py"
    for target, template in targets.items():
        places.write(root / target, _filled(template, words))
    notebook = notebooks.FOLDER / f"{number}_{name}.ipynb"
    nbformat.write(as_notebook(_filled("chapter.md", words)), notebook)
    toc = root / "book" / "_toc.yml"
    places.write(toc, _with_chapter(toc.read_text("utf-8"), notebook.stem))
    contents.renew_readme()
    return [*(root / target for target in targets), notebook, toc, root / "README.md"]


def _filled(template: str, words: dict[str, str]) -> str:
    return Template((files("helpers.run") / "skeleton" / f"{template}.in").read_text("utf-8")).substitute(words)


def _with_chapter(toc: str, chapter: str) -> str:
    """The table of contents with one line more, after the last chapter's."""
    last = list(re.finditer(r"^( *- file: notebooks/)\w+\n", toc, re.MULTILINE))[-1]
    return f"{toc[: last.end()]}{last[1]}{chapter}\n{toc[last.end() :]}"


def as_notebook(text: str) -> NotebookNode:
    """A notebook from Markdown in which ``{code-cell}`` fences are cells of code.

    A fence may say ``parameters``, or ``figure NAME "caption" "alternative text"``.
    """
    cells, done = [], 0
    for found in CELL.finditer(text):
        cells += _prose(text[done : found.start()])
        cells.append(nbformat.v4.new_code_cell(found["code"], metadata=_metadata(found["what"])))
        done = found.end()
    cells += _prose(text[done:])
    kernel = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}}
    made = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
    return notebooks.normalised(made)


def _prose(text: str) -> list[NotebookNode]:
    return [nbformat.v4.new_markdown_cell(text.strip())] if text.strip() else []


def _metadata(what: str) -> dict[str, object]:
    if what == "parameters":
        return {"tags": ["parameters", "hide-input"]}
    if figure := re.fullmatch(r'figure (\S+) "(.+)" "(.+)"', what):
        name, caption, alt = figure.groups()
        return {"mystnb": {"figure": {"caption": caption, "name": name}, "image": {"alt": alt, "classes": "figure"}}}
    return {}
