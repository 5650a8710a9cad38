"""The whole book as one PDF: the built pages one after another as a browser prints them, solutions at the back.

Nothing moves on paper: scripts and views are left out, and the figures that stand beside them stay. What is folded is open; code
that is hidden on the page is hidden here. The pages are printed twice, since only the first print tells on which page a heading stands:
in that one, pictures are empty fields of their size.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path, PurePosixPath

import yaml
from bs4 import BeautifulSoup, Tag

from helpers import places
from helpers.run.failures import NotebookError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--allow-file-access-from-files"),
    "--no-pdf-header-footer",
)
TRIAL, FINAL = "--disable-pdf-tagging", "--generate-pdf-document-outline"
"""What only the first print is made with, and only the last."""
MOVING = "script, iframe, .attention-view, .headerlink, .copybtn, .save, button, .bar, details.above-input, details.hide > summary, .sd-summary-state-marker, link, noscript"
SOLUTIONS = "solutions"


def chromium() -> str:
    """The browser that prints.

    Raises:
        NotebookError: if there is none on this machine.
    """
    if found := next(filter(None, map(shutil.which, BROWSERS)), None):
        return found
    raise NotebookError(
        "A PDF is printed by Chromium or Chrome, and neither is on this machine; install one of them."
    )


def parts(toc: Path) -> list[tuple[str, list[str]]]:
    """The pages of a table of contents under the captions of its parts; the welcome page has none.

    Pages below a page, such as the reference of a part of the package, are read on a screen only.
    """
    read = yaml.safe_load(toc.read_text("utf-8"))
    found = [("", [read["root"]])]
    for part in read.get("parts", [read]):
        found.append((part.get("caption", ""), [chapter["file"] for chapter in part["chapters"]]))
    return found


def make(html: Path, toc: Path, target: Path, *, title: str, below: str) -> int:
    """Print the pages under ``html`` into ``target`` and return how many sheets that are.

    Args:
        html: folder of built pages.
        below: what the first sheet says below the title.

    Raises:
        NotebookError: if there is no browser, a page is missing, or nothing is printed.
    """
    browser, contents = chromium(), parts(toc)
    body, heads = assembled(html, contents)
    with tempfile.TemporaryDirectory(prefix="paper-") as folder:
        sheet, printed = html / "_static" / "paper.html", Path(folder) / "book.pdf"
        try:
            numbers: Mapping[str, int] = {}
            for shown, flag in ((blank(body), TRIAL), (body, FINAL)):
                front = cover(title, below) + listed(contents, heads, numbers)
                sheet.write_text(document(title, front + shown), "utf-8")
                _print(browser, sheet, printed, flag)
                numbers = sheets(printed.read_bytes())
        finally:
            sheet.unlink(missing_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(printed, target)
    return numbers[""]


def _print(browser: str, sheet: Path, printed: Path, flag: str) -> None:
    profile = printed.parent / "profile"
    command = [browser, *FLAGS, flag, f"--user-data-dir={profile}", f"--print-to-pdf={printed}", sheet.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode or not printed.is_file():
        raise NotebookError(f"{browser} printed nothing:\n{done.stderr[-2000:]}")


# ---------------------------------------------------------------------------------------- one page out of many


def assembled(html: Path, contents: Iterable[tuple[str, list[str]]]) -> tuple[str, dict[str, str]]:
    """The articles of all pages and, at the end, the solutions; and the heading of each page."""
    bodies, heads, solved = [], {}, []
    every = [page for _, pages in contents for page in pages]
    for page in every:
        if not (file := html / f"{page}.html").is_file():
            raise NotebookError(f"There is no {file}; say 'make site' first.")
        article = BeautifulSoup(file.read_text("utf-8"), "html.parser").select_one("article.bd-article > section")
        heads[page] = _text(article.h1)
        still(article)
        link(article, page, every)
        answers = [answer.extract() for answer in article.select("div.solution")]
        bodies.append(f'<article id="{slug(page)}">{article.decode_contents()}</article>')
        if answers:
            solved.append(f"<h2>{escape(heads[page])}</h2>{''.join(map(str, answers))}")
    bodies.append(f'<article id="{SOLUTIONS}"><h1>Solutions</h1>{"".join(solved)}</article>')
    return "".join(bodies), heads | {SOLUTIONS: "Solutions"}


FIELD = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}'/%3E"


def blank(body: str) -> str:
    """The pages with an empty field for each picture, which takes the same place and a fraction of the time."""

    def emptied(found: re.Match[str]) -> str:
        size = dict(re.findall(r' (width|height)="(\d+)"', found[0]))
        return re.sub(r'src="[^"]*\.png"', f'src="{FIELD.format(**size)}"', found[0]) if len(size) == 2 else found[0]

    return re.sub(r"<img [^>]*>", emptied, body)


def slug(page: str) -> str:
    """What the anchors of a page begin with."""
    return re.sub(r"\W+", "-", page)


def still(article: Tag) -> None:
    """Leave out what moves, open what is folded, fetch every picture at once; of steps keep the first, the middle one, the last."""
    for moving in article.select(MOVING):
        moving.decompose()
    for empty in [one for one in article.select("details.hide") if not one.select("table, pre, img, svg, p")]:
        empty.decompose()
    for steps in article.select(".steps"):
        every = steps.find_all("details", recursive=False)
        for one in set(every) - {every[n] for n in (0, len(every) // 2, -1) if every}:
            one.decompose()
    for folded in article.select("details"):
        if folded.find("summary", recursive=False):
            folded["open"] = ""
        else:  # a browser would say "Details" above it
            folded.name = "div"
    for picture in article.select("img"):
        del picture["loading"], picture["decoding"]
    for field in article.select("[tabindex]"):
        del field["tabindex"]


def link(article: Tag, page: str, every: Iterable[str]) -> None:
    """Lead links and pictures of a page to where they are in the one document; a link out of the book stays, others become text."""
    known = {f"{name}.html": slug(name) for name in every}
    for anchored in article.select("[id]"):
        if not anchored.find_parent("svg") and anchored.name != "svg":
            anchored["id"] = f"{slug(page)}--{anchored['id']}"
    for picture in article.select("img[src]"):
        if not picture["src"].startswith("data:"):
            picture["src"] = f"../{_absolute(page, picture['src'])}"
    for one in article.select("a[href]"):
        address = one["href"]
        if re.match(r"[a-z]+:", address):
            continue
        path, _, anchor = address.partition("#")
        place = known.get(_absolute(page, path) if path else f"{page}.html")
        if place is None:
            del one["href"]
        else:
            one["href"] = f"#{place}--{anchor}" if anchor else f"#{place}"


def _absolute(page: str, address: str) -> str:
    steps: list[str] = []
    for step in (PurePosixPath(page).parent / address.partition("?")[0]).parts:
        steps = steps[:-1] if step == ".." else [*steps, step]
    return "/".join(steps)


def _text(heading: Tag) -> str:
    return " ".join(heading.get_text().replace("#", "").split())


# ---------------------------------------------------------------------------------------- what stands before


def cover(title: str, below: str) -> str:
    """The first sheet."""
    mark = (places.ROOT / "book" / "_static" / "mark.svg").read_text("utf-8")
    return f'<header>{mark}<p class="title">{escape(title)}</p><p>{escape(below)}</p></header>'


def listed(contents: Iterable[tuple[str, list[str]]], heads: Mapping[str, str], numbers: Mapping[str, int]) -> str:
    """The contents, with the sheets on which pages begin."""
    rows = []
    for caption, pages in [*contents, ("At the back", [SOLUTIONS])]:
        rows.append(f"<h2>{escape(caption)}</h2>" if caption else "")
        for page in pages:
            place = slug(page)
            number = f"<span>{numbers.get(place, '')}</span>"
            rows.append(f'<p><a href="#{place}">{escape(heads[page])}</a>{number}</p>')
    return f'<nav><p class="title">Contents</p>{"".join(rows)}</nav>'


def document(title: str, body: str) -> str:
    """A whole HTML page, to lie in the folder of the pages' style sheets."""
    style = (files("helpers.run") / "paper.css").read_text("utf-8")
    sheets = "".join(f'<link rel="stylesheet" href="{name}">' for name in ("pygments.css", "book.css"))
    head = f'<meta charset="utf-8"><title>{escape(title)}</title>{sheets}<style>{style}</style>'
    return f'<!doctype html><html lang="en" data-theme="light"><head>{head}</head><body>{body}</body></html>'


def sheets(pdf: bytes) -> dict[str, int]:
    """The sheet, from 1, on which each anchor stands that something links to, and under ``""`` the number of all."""
    objects = [int(number) for number in re.findall(rb"\b(\d+) 0 obj\s*<<\s*/Type /Page\b(?!s)", pdf)]
    place = {number: sheet for sheet, number in enumerate(sorted(objects), 1)}
    anchors = re.findall(rb"/([\w.#:-]+) \[(\d+) 0 R /XYZ", pdf)
    return {name.decode(): place[int(number)] for name, number in anchors if int(number) in place} | {"": len(place)}
