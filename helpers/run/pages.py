"""The pages: what they are built from, building them with warnings as errors, and the whole book as one PDF or zip."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin

import yaml

from helpers import places

#: What the files of a release are called, without their endings.
NAME = "what-attention-heads-look-at"
HTML = places.ROOT / "_build" / "html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ("--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND")
UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true; }); MathJax.startup.promise.then(() => 0)"


def stage(folder: Path, executed: Path) -> None:
    """Copy what the book is built from into a folder: pages, data cards, and the executed chapters of the folder ``executed``.

    Files that are there already with the same content keep their date, so that Sphinx does not read them again.
    """
    pages = [file for file in (places.ROOT / "book").rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    for file in (*pages, *(places.ROOT / "data").rglob("*.md"), places.ROOT / "_config.yml"):
        places.write(folder / file.relative_to(places.ROOT), file.read_bytes())
    for file in executed.glob("[0-9][0-9]_*.ipynb"):
        places.write(folder / "notebooks" / file.name, file.read_bytes())


def build(folder: Path, output: Path, records: Path | None = None) -> Path:
    """Build the staged book into ``output/_build/html`` and return its first page.

    Args:
        records: folder of the numbers that the pages show (default: those that the book keeps).

    Raises:
        BookError: if the build fails or warns.
    """
    program = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", program, "build", folder, "--path-output", output]
    command += ["--toc", folder / "book" / "_toc.yml", "--config", folder / "_config.yml"]
    command += ["-W", "--keep-going", "--quiet"]
    variables = os.environ | {"BOOK_RESULTS": str(records or places.ROOT / "data" / "results")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        shutil.rmtree(output / "_build" / ".doctrees", ignore_errors=True)  # else the next build would not warn again
        raise places.BookError(f"jupyter-book failed:\n{done.stderr[-8000:]}")
    return output / "_build" / "html" / "index.html"


def pack(folder: Path, target: Path) -> Path:
    """Zip a folder, so that it unpacks into a folder named like the file, and return the zip.

    Raises:
        BookError: if there is nothing in the folder.
    """
    packed = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.suffix != ".map"]
    if not packed:
        raise places.BookError(f"There is nothing in {folder}. Run: make site (for the data set: make data)")
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in packed:
            archive.write(file, Path(target.stem) / file.relative_to(folder))
    return target


def join(html: Path, contents: Path) -> str:
    """One page with the articles of all built pages of a table of contents, but for pages below pages; links lead within it."""
    from bs4 import BeautifulSoup

    toc = yaml.safe_load(contents.read_text("utf-8"))
    pages = [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]
    sheets = [BeautifulSoup((html / f"{page}.html").read_text("utf-8"), "html.parser") for page in pages]
    articles = [sheet.select_one("article.bd-article") for sheet in sheets]
    for page, article in zip(pages, articles, strict=True):
        for element in article.select(":not(svg *)[id]"):
            element["id"] = f"{page}.html#{element['id']}"
        for link in article.select("a[href]"):
            target = urljoin(f"{page}.html", link["href"])
            if urldefrag(target).url.removesuffix(".html") in pages:
                link["href"] = f"#{target}"
        article["id"] = f"{page}.html"
    articles[1].insert_before(articles[0])  # into the sheet of a chapter, which has formulas and so loads MathJax
    articles[1].insert_after(*articles[2:])
    return str(sheets[1])


@contextmanager
def browser(what: str = "Printing the book") -> Iterator[Any]:
    """A headless Chromium of playwright that reaches no network; ``what`` it is for, should something be missing.

    Raises:
        BookError: without playwright, and without Chromium or Chrome.
    """
    with places.extra("book", what):
        from playwright.sync_api import sync_playwright
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise places.BookError(f"{what} needs Chromium, which is not on this machine. Install it.")
    with sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=program, args=FLAGS)


def write_pdf(target: Path, html: Path = HTML, contents: Path = places.ROOT / "book" / "_toc.yml") -> Path:
    """Print the built pages below ``html`` as one PDF, without the reference of the package, and return it.

    Raises:
        BookError: without Chromium or Chrome.
    """
    sheet = html / "notebooks" / "paper.html"  # as deep as all pages, so that their pictures are found
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with browser() as chromium:
            sheet.write_text(join(html, contents), "utf-8")
            tab = chromium.new_page()
            tab.goto(sheet.as_uri(), timeout=0)
            tab.add_style_tag(path=str(files("helpers.run") / "paper.css"))
            tab.evaluate(UNFOLD)
            tab.pdf(path=target, format="A4", outline=True, tagged=True, prefer_css_page_size=True)
    finally:
        sheet.unlink(missing_ok=True)
    return target
