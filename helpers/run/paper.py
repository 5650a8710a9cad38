"""The whole book as one PDF: the articles of all pages joined to one page, which Chromium prints."""

import shutil
from importlib.resources import files
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import yaml
from bs4 import BeautifulSoup
from playwright.sync_api import sync_playwright

from helpers import places

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ("--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND")
UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true; }); MathJax.startup.promise.then(() => 0)"


def join(html: Path, toc: Path) -> str:
    """One page with the articles of all pages of the table of contents, but for pages below pages; links lead within it."""
    contents = yaml.safe_load(toc.read_text("utf-8"))
    pages = [contents["root"], *(chapter["file"] for part in contents["parts"] for chapter in part["chapters"])]
    soups = [BeautifulSoup((html / f"{page}.html").read_text("utf-8"), "html.parser") for page in pages]
    articles = [soup.select_one("article.bd-article") for soup in soups]
    for page, article in zip(pages, articles, strict=True):
        for element in article.select(":not(svg *)[id]"):
            element["id"] = f"{page}.html#{element['id']}"
        for link in article.select("a[href]"):
            path, fragment = urldefrag(urljoin(f"{page}.html", link["href"]))
            if path.removesuffix(".html") in pages:
                link["href"] = f"#{path}#{fragment}" if fragment else f"#{path}"
        article["id"] = f"{page}.html"
    sheet = soups[1]  # a chapter, with formulas, whose page loads MathJax
    articles[1].insert_before(articles[0])
    articles[1].insert_after(*articles[2:])
    return str(sheet)


def write(html: Path, toc: Path, target: Path) -> None:
    """Print the built pages below ``html`` into the file ``target``.

    Raises:
        BookError: without Chromium.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise places.BookError("A PDF is printed by Chromium, which is not on this machine. Install it.")
    sheet = html / "notebooks" / "paper.html"  # as deep as all pages, so that their pictures are found
    sheet.write_text(join(html, toc), "utf-8")
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
