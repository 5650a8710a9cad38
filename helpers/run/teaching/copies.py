"""Copies of a chapter for students, without its solutions, and for teachers, with them; both in plain Markdown."""

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy

import nbformat
from nbformat import NotebookNode

from helpers.run import launch, notebooks, plain
from helpers.run.failures import NotebookError

_GATE = re.compile(r"^(`{3,}|:{3,})\{solution(?P<kind>|-start|-end)\}.*?^\1[ \t]*$\n?", re.MULTILINE | re.DOTALL)
"""The start or the end of a solution, or a solution that is one block of text."""


def read(chapter: str) -> NotebookNode:
    """A chapter as it is in git."""
    return nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4)


def student(chapter: str, site: str | None = None, wheel: str = "") -> NotebookNode:
    """A chapter without its solutions, their outputs and what is known of its run; checks stay.

    Args:
        site: address of the built book, which links lead to.
        wheel: address of the package, for a cell that installs it where it is missing.
    """
    return _copy(without_solutions(read(chapter)), chapter, site, wheel)


def solution(chapter: str, site: str | None = None, wheel: str = "") -> NotebookNode:
    """A chapter with everything, its solutions under headings that JupyterLab folds."""
    return _copy(read(chapter), chapter, site, wheel)


def _copy(notebook: NotebookNode, chapter: str, site: str | None, wheel: str) -> NotebookNode:
    made = plain.rendered(notebook, chapter, site)
    made.metadata.pop("book", None)  # a digest of the whole chapter
    made.cells[1:1] = launch.installing(wheel)
    return made


def without_solutions(notebook: NotebookNode) -> NotebookNode:
    """A copy of a notebook without what stands between the gates of solutions, gates included, and without solutions in one block."""
    made = deepcopy(notebook)
    made.cells = [cell for cell, inside in gated(made.cells) if not inside]
    return made


def gated(cells: Sequence[NotebookNode]) -> Iterator[tuple[NotebookNode, bool]]:
    """Each cell, and whether it belongs to a solution; a cell of text with both becomes two or more.

    Raises:
        NotebookError: when gates do not come in pairs.
    """
    inside = False
    for cell in cells:
        if cell.cell_type == "code":
            yield cell, inside
            continue
        for number, (text, within, after) in enumerate(_parts(cell.source, inside)):
            inside = after
            if text.strip():
                yield _part(cell, text, number), within
    if inside:
        raise NotebookError("A solution is opened and never closed.")


def _parts(source: str, inside: bool) -> Iterator[tuple[str, bool, bool]]:
    """Stretches of text, whether each belongs to a solution, and whether what follows does."""
    done = 0
    for gate in _GATE.finditer(source):
        if gate["kind"] != "" and (gate["kind"] == "-end") != inside:
            raise NotebookError(f"A solution's gate without its other half: {gate[0][:80]!r}")
        yield source[done : gate.start()], inside, inside
        inside = gate["kind"] == "-start" or (inside and gate["kind"] == "")
        yield gate[0], True, inside
        done = gate.end()
    yield source[done:], inside, inside


def _part(cell: NotebookNode, text: str, number: int) -> NotebookNode:
    if text == cell.source:
        return cell
    name = f"{cell.get('id', 'cell')}-{number}"
    return nbformat.v4.new_markdown_cell(text.strip("\n"), metadata=dict(cell.metadata), id=name)
