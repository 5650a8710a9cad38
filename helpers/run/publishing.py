"""What a release carries beside the pages: the book as one PDF, which Chromium prints, and folders as zips."""

import shutil
import zipfile
from importlib.resources import files
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import yaml

from helpers import places

NAME = "what-attention-heads-look-at"
"""What the files of a release are called, without their endings."""
PAGES = places.ROOT / "_build" / "html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ("--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND")
UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true; }); MathJax.startup.promise.then(() => 0)"


def pack(folder: Path, target: Path) -> None:
    """Zip a folder, so that it unpacks into a folder named like the file.

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


def write_pdf(target: Path, html: Path = PAGES, contents: Path = places.ROOT / "book" / "_toc.yml") -> None:
    """Print the built pages below ``html`` as one PDF, without the reference of the package.

    Raises:
        BookError: without Chromium or Chrome.
    """
    with places.extra("book", "Printing the book"):
        from playwright.sync_api import sync_playwright
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise places.BookError("A PDF is printed by Chromium, which is not on this machine. Install it.")
    sheet = html / "notebooks" / "paper.html"  # as deep as all pages, so that their pictures are found
    sheet.write_text(join(html, contents), "utf-8")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with sync_playwright() as driver:
            tab = driver.chromium.launch(executable_path=browser, args=FLAGS).new_page()
            tab.goto(sheet.as_uri(), timeout=0)
            tab.add_style_tag(path=str(files("helpers.run") / "paper.css"))
            tab.evaluate(UNFOLD)
            tab.pdf(path=target, format="A4", outline=True, tagged=True, prefer_css_page_size=True)
    finally:
        sheet.unlink()
