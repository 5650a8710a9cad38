"""The pages: what they are built from, and building them with warnings as errors."""

import base64
import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

from helpers import places
from helpers.run import address


def stage(folder: Path, notebooks: Path) -> None:
    """Copy what the book is built from into a folder: pages, data cards, and the executed chapters of the folder ``notebooks``.

    Files that are there already with the same content keep their date, so that Sphinx does not read them again.
    """
    pages = [file for file in (places.ROOT / "book").rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    cards = (places.ROOT / "data").rglob("*.md")
    copies = {folder / file.relative_to(places.ROOT): file for file in (*pages, *cards)}
    copies |= {folder / "notebooks" / file.name: file for file in notebooks.glob("[0-9][0-9]_*.ipynb")}
    for copy, file in copies.items():
        if not (copy.is_file() and filecmp.cmp(file, copy, shallow=False)):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
    config = (places.ROOT / "_config.yml").read_text("utf-8")
    (folder / "_config.yml").write_text(address.configured(config), "utf-8")


def build(folder: Path, output: Path, results: Path | None = None) -> Path:
    """Build the staged book into ``output/_build/html`` and return its first page.

    Args:
        results: folder of the records that the pages show (default: those that the book keeps).

    Raises:
        BookError: if the build fails or warns.
    """
    program = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", program, "build", folder, "--path-output", output]
    command += ["--toc", folder / "book" / "_toc.yml", "--config", folder / "_config.yml"]
    command += ["-W", "--keep-going", "--quiet"]
    variables = os.environ | {"BOOK_RESULTS": str(results or places.ROOT / "data" / "results")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        shutil.rmtree(output / "_build" / ".doctrees", ignore_errors=True)  # else the next build would not warn again
        raise places.BookError(f"jupyter-book failed:\n{done.stderr[-8000:]}")
    return output / "_build" / "html" / "index.html"


def cover() -> bytes:
    """PNG of the figure that the README shows, from the stored outputs of chapter 02."""
    notebook = nbformat.read(places.ROOT / "notebooks" / "02_surface_patterns.ipynb", as_version=4)
    figures = {cell.metadata.mystnb.figure.name: cell for cell in notebook.cells if "mystnb" in cell.metadata}
    outputs = figures["fig-special"].outputs
    return base64.b64decode(next(o.data["image/png"] for o in outputs if "image/png" in o.get("data", {})))
