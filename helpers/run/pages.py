"""The pages: what they are built from, and building them with warnings as errors."""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

import helpers
from helpers import places
from helpers.engine import orphans
from helpers.run import address, notebooks
from helpers.run.notebooks import NotebookError

COVER = ("02_surface_patterns", "fig-special")


def cover() -> bytes:
    """PNG of the figure that the README and the welcome page show, from the stored outputs."""
    chapter, name = COVER
    for cell in nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4).cells:
        if cell.metadata.get("mystnb", {}).get("figure", {}).get("name") == name:
            for output in cell.outputs:
                if "image/png" in output.get("data", {}):
                    return base64.b64decode(output.data["image/png"])
    raise NotebookError(f"{chapter} has no figure {name!r} among its stored outputs; run 'make notebooks'.")


def stage(folder: Path) -> None:
    """Copy what the book is built from (pages, data cards), except the notebooks, into a folder of the same layout."""
    folder.mkdir(parents=True, exist_ok=True)
    places.write(folder / "_config.yml", address.configured((places.ROOT / "_config.yml").read_text("utf-8")))
    shutil.copytree(places.ROOT / "book", folder / "book", dirs_exist_ok=True)
    for card in places.book_data().rglob("*.md"):
        copy = folder / card.relative_to(places.ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(card, copy)
    (folder / "notebooks").mkdir(exist_ok=True)


def stage_stored(folder: Path) -> None:
    """Copy the notebooks with the outputs kept in git into a staged folder."""
    for chapter in notebooks.chapters():
        shutil.copyfile(notebooks.FOLDER / f"{chapter}.ipynb", folder / "notebooks" / f"{chapter}.ipynb")


SEEN, MADE_BY = "built-from.txt", "built-by.txt"
"""Beside the pages: digests of all that they were built from, and of the extensions and settings that each of them goes through."""


def build(folder: Path, output: Path) -> Path:
    """Build the staged book with warnings as errors and return its first page; nothing is done when nothing has changed.

    Raises:
        NotebookError: if the build fails or a page of the table of contents is missing.
    """
    with places.extra("book", "Building the pages"):
        import jupyter_book  # noqa: F401
    pages, seen = output / "_build" / "html", _seen(folder)
    wanted = [pages / f"{page}.html" for page in ("index", *pages_of(folder / "book" / "_toc.yml"))]
    stamp = output / "_build" / SEEN
    if stamp.is_file() and stamp.read_text("utf-8") == seen and all(page.is_file() for page in wanted):
        return wanted[0]
    stamp.unlink(missing_ok=True)
    read, by = output / "_build" / ".doctrees", _digest(folder / "book" / "_ext", folder / "_config.yml")
    if not (made := stamp.with_name(MADE_BY)).is_file() or made.read_text("utf-8") != by:
        shutil.rmtree(read, ignore_errors=True)  # or pages that have not changed themselves would stay as they are
    places.write(made, by)
    options = {"--path-output": output, "--toc": folder / "book" / "_toc.yml", "--config": folder / "_config.yml"}
    begin = f"{orphans.beginning()}import helpers.run; from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", begin, "build", str(folder)]
    command += [*(str(part) for option in options.items() for part in option), "-W", "--keep-going", "--quiet"]
    variables = os.environ | {"BOOK_STAGE": str(folder), "BOOK_RESULTS": str(folder / "data" / "results")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        shutil.rmtree(read, ignore_errors=True)  # or the next build would not read, and warn, again
        raise NotebookError(f"jupyter-book failed:\n{done.stdout[-4000:]}\n{done.stderr[-6000:]}")
    if missing := [str(page.relative_to(pages)) for page in wanted if not page.is_file()]:
        raise NotebookError(f"The build ended without these pages: {', '.join(missing)}.")
    places.write(stamp, seen)
    return wanted[0]


def _seen(folder: Path) -> str:
    """Digest of all that pages are made of: what is staged, the package that they describe and its version, the data that they draw."""
    used = (places.ROOT / name for name in ("helpers", "notebooks", "data", "requirements.lock"))
    return f"{sys.version} {helpers.__version__} {_digest(folder, *used)}"


def _digest(*of: Path) -> str:
    """sha256 over names and contents of files, and of all that is in folders."""
    total = hashlib.sha256()
    for place in of:
        files = [place] if place.is_file() else sorted(f for f in place.rglob("*") if f.is_file())
        for file in files:
            if "__pycache__" not in file.parts:
                total.update(f"{file} {places.sha256(file)}".encode())
    return total.hexdigest()


def pages_of(toc: Path) -> list[str]:
    """Every page that a table of contents names."""
    return re.findall(r"^[- ]*(?:root|file): *(\S+)", toc.read_text("utf-8"), re.MULTILINE)
