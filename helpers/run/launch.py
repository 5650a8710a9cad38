"""Copies of the chapters for elsewhere: to launch on a hosted notebook, or to open in JupyterLab.

Their Markdown is plain (:mod:`helpers.run.plain`), they have no outputs, and links lead to the built pages. Those to launch
begin by installing the package where it is missing. They are made when they are needed and never kept beside the chapters.
"""

from pathlib import Path

import nbformat

import helpers
from helpers import places
from helpers.run import address, notebooks, plain

INSTALL = """\
# Installs the book's package where it is missing; where it is there, nothing happens
import importlib.util

if importlib.util.find_spec("helpers") is None:
    %pip install --quiet "{wheel}\""""
CONDA = """\
# For Binder, which reads this file: torch without CUDA from conda-forge, the rest as locked.
name: attention-heads-book
channels: [conda-forge, nodefaults]
dependencies:
  - python=3.11
  - pytorch-cpu={torch}
  - pip
  - pip:
      - --constraint environment.lock
      - ./{wheel}[lab]
"""


def wheel_name() -> str:
    """What the wheel of this version is called."""
    return f"attention_heads_book-{helpers.__version__}-py3-none-any.whl"


def installing(wheel: str) -> list[nbformat.NotebookNode]:
    """The cell that installs a wheel, named by its address or path; none without one."""
    return [nbformat.v4.new_code_cell(INSTALL.format(wheel=wheel), id="install")] if wheel else []


def copy(chapter: str, *, wheel: str = "") -> nbformat.NotebookNode:
    """A chapter in plain Markdown without outputs; with the address or path of a wheel, a cell after the title installs that."""
    site = address.site()
    made = plain.rendered(nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4), chapter, site)
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    made.cells[1:1] = installing(wheel)
    if site:
        note = f"*This is a copy to run. Its page has the figures, too: {site}/notebooks/{chapter}.html*"
        made.cells.insert(1, nbformat.v4.new_markdown_cell(note, id="page"))
    return made


def write(folder: Path, *, wheel: str = "", replace: bool = True) -> list[Path]:
    """Write copies of all chapters, ``notebooks/NN_name.ipynb``; unless ``replace``, those that are there stay as they are."""
    files = [folder / "notebooks" / f"{chapter}.ipynb" for chapter in notebooks.chapters()]
    for file in files:
        if replace or not file.is_file():
            places.write(file, nbformat.writes(copy(file.stem, wheel=wheel)) + "\n")
    return files


def branch(folder: Path, wheel: Path) -> list[Path]:
    """Write what the branch ``launch`` holds: the copies, the wheel that they install, and what Binder makes of it.

    Without an address of a repository the copies install the wheel from where it lies in ``folder``.

    Raises:
        BookError: when the wheel is no wheel of this version.
    """
    if wheel.name != wheel_name() or not wheel.is_file():
        raise places.BookError(f"{wheel} is no wheel of this version, {wheel_name()}. Build it with: make wheel")
    inside = folder / wheel.name
    places.write(inside, wheel.read_bytes())
    places.write(folder / "environment.lock", (places.ROOT / "environment.lock").read_text("utf-8"))
    locked = (places.ROOT / "requirements.lock").read_text("utf-8").split()
    torch = next(line.removeprefix("torch==") for line in locked if line.startswith("torch=="))
    places.write(folder / "environment.yml", CONDA.format(torch=torch, wheel=wheel.name))
    return [*write(folder, wheel=address.raw(wheel.name) or str(inside.resolve())), inside]
