"""The form that every chapter has (:mod:`helpers.run.telling`), read as a lecture needs it: sections with figures and predictions."""

import base64
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import nbformat
import yaml

from helpers import places
from helpers.run import contents, notebooks, plain, telling
from helpers.run.failures import NotebookError
from helpers.run.teaching import copies

KEYS = {"goals", "claims", "drawing", "predictions", "discussion", "rubric", "skip"}
"""What a chapter's ``teaching.yml`` says: all that is not in the chapter itself."""

_BOX = re.compile(
    r"^(?P<fence>:{3,})\{admonition\} (?P<title>[^\n]*)\n(?::class: (?P<kind>[^\n]*)\n)?(?P<body>.*?)^(?P=fence)[ \t]*$\n?",
    re.MULTILINE | re.DOTALL,
)
_OTHER = re.compile(r"^(`{3,}|:{3,})\{.*?^\1[ \t]*$\n?", re.MULTILINE | re.DOTALL)
_NOTICE = re.compile(r"\*\*What to notice\.\*\*\s*")
_BOLD = re.compile(r"\*\*[^*]+[.!?]\*\*(?=\s)")
"""A claim in bold, as a paragraph under a figure may begin."""
_EXERCISE = re.compile(
    r"\{exercise(?:-start)?\} (?P<title>.+)\n(?:.*\n)*?\*\*(?P<kind>[A-Z][\w ]+)\*\* (?P<stars>★[★☆]{2}), "
    r"(?P<time>\d+ (?:minutes?|hours?))\. (?P<text>.*(?:\n(?!```).*)*)"
)


@dataclass(frozen=True)
class Figure:
    """A figure that is not folded: name, number, caption as plain Markdown, and its picture as PNG; ``claim`` is what it shows."""

    name: str
    number: str
    caption: str
    picture: bytes
    alt: str
    claim: str = ""


@dataclass(frozen=True)
class Prediction:
    """What the reader commits to before a measurement, and what comes out."""

    ask: str
    answer: str


@dataclass
class Section:
    """A section: its minutes to read, and its prose, figures and predictions in their order."""

    title: str
    minutes: float = 0.0
    items: list[str | Figure | Prediction] = field(default_factory=list)

    @property
    def figures(self) -> list[Figure]:
        """Its figures."""
        return [item for item in self.items if isinstance(item, Figure)]


@dataclass(frozen=True)
class Exercise:
    """An exercise's title, kind, stars, time in words, text without its hint, and the name by which an answer is checked."""

    title: str
    kind: str
    stars: str
    time: str
    text: str
    name: str = ""


@dataclass(frozen=True)
class Form:
    """A chapter as a lecture needs it; texts are plain Markdown.

    Attributes:
        box: the points of "In this chapter".
        needs, run: what the box says of knowledge, and of time and memory.
        before: the chapters that it builds on.
        sections: without exercises, summary and misconceptions.
        limits: what it does not show.
        taught: the chapter's ``teaching.yml``.
    """

    chapter: str
    title: str
    box: Sequence[str]
    needs: str
    run: str
    before: Sequence[str]
    sections: Sequence[Section]
    limits: str
    summary: Sequence[str]
    misconceptions: Sequence[str]
    exercises: Sequence[Exercise]
    taught: dict[str, Any]

    @property
    def number(self) -> int:
        """From 1."""
        return int(self.chapter[:2])

    @property
    def minutes(self) -> int:
        """To read it."""
        return telling.of(self.chapter).minutes

    @property
    def predictions(self) -> list[Prediction]:
        """All of the chapter, in their order."""
        return [item for section in self.sections for item in section.items if isinstance(item, Prediction)]


def teaching(chapter: str) -> dict[str, Any]:
    """What a chapter's ``teaching.yml`` says.

    Raises:
        NotebookError: when it is missing or says too little or too much.
    """
    file = places.ROOT / "helpers" / "chapters" / chapter[3:] / "teaching.yml"
    if not file.is_file():
        raise NotebookError(f"{file} is missing: it holds what a course needs and the chapter does not say.")
    found = yaml.safe_load(file.read_text("utf-8"))
    if wrong := KEYS ^ set(found):
        raise NotebookError(f"{file} should have exactly {', '.join(sorted(KEYS))}; see {', '.join(sorted(wrong))}.")
    return found


@lru_cache(maxsize=32)
def of(chapter: str) -> Form:
    """Read a chapter.

    Raises:
        NotebookError: for a chapter without its parts.
    """
    notebook = copies.read(chapter)
    page = plain.Page(chapter, None, plain.numbers(notebook, chapter))
    prose = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    box = _part(chapter, prose, r":::\{admonition\} In this chapter\n:class: tip\n(.*?)^:::")
    needs = re.search(r"\*\*You need:\*\*(.*)", box)[1]
    limits = _part(
        chapter, prose, r"^(?::::\{admonition\}|## *)\s*What this does not show.*?\n(.*?)(?=^:::|^## |^\|)"
    )
    return Form(
        chapter=chapter,
        title=page.inline(contents.question(chapter)),
        box=[page.inline(point.rstrip(";.")) for point in _points(box)],
        needs=page.inline(needs).strip(),
        run=re.search(r"\*\*Run:\*\*(.*)", box)[1].strip(),
        before=[one for one in _before(needs) if one < chapter],
        sections=list(_sections(notebook, page)),
        limits=page.text(re.sub(r"^:class:.*\n", "", limits)).strip(),
        summary=[page.inline(point) for point in _points(_part(chapter, prose, r"^## Summary\n(.*?)(?=^## |\Z)"))],
        misconceptions=[
            page.inline(" ".join(said.split()))
            for said in re.findall(r"^(?:- )?(One might think .*(?:\n(?!- |\n).*)*)", prose, re.MULTILINE)
        ],
        exercises=list(_exercises(notebook, prose, page)),
        taught=teaching(chapter),
    )


def _part(chapter: str, prose: str, pattern: str) -> str:
    found = re.search(pattern, prose, re.MULTILINE | re.DOTALL)
    if not found:
        raise NotebookError(f"{chapter} has no part like {pattern!r}.")
    return found[1]


def _points(text: str) -> list[str]:
    """The items of a list, each on one line."""
    return [" ".join(point.split()) for point in re.findall(r"^- (.*(?:\n(?!- |\n).*)*)", text, re.MULTILINE)]


def _before(needs: str) -> list[str]:
    """Chapters that "You need" names, as a link or as ``chapter 01``."""
    named = set(re.findall(r"\{doc\}`(\d\d)_", needs))
    for said in re.findall(r"chapters? ((?:\d\d(?:, | and )?)+)", needs):
        named |= set(re.findall(r"\d\d", said))
    return [chapter for chapter in notebooks.chapters() if chapter[:2] in named]


def _exercises(notebook: nbformat.NotebookNode, prose: str, page: plain.Page) -> Iterator[Exercise]:
    """The exercises; those to build have the names that the notebook checks, in the same order."""
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    names = iter(dict.fromkeys(re.findall(r"exercises\.check\(\s*\"(\w+)\"", code)))
    for found in _EXERCISE.finditer(prose):
        text = page.text(re.split(r"\n*\*Hint[:.]\*", found["text"])[0]).strip()
        name = next(names) if found["kind"] == "Build" else ""
        yield Exercise(page.inline(found["title"]), found["kind"], found["stars"], found["time"], text, name)


def _sections(notebook: nbformat.NotebookNode, page: plain.Page) -> Iterator[Section]:
    """Sections up to the summary; what stands before the first heading is the chapter's own."""
    section = Section("")
    for part in telling.without_exercises(notebook.cells):
        if not isinstance(part, str):
            section.minutes += telling.MINUTES_A_PICTURE * telling.pictured(part)
            section.items += _figures(part, page)
            continue
        if heading := re.match(r"## (.+)", part):
            yield from [section] if section.items else []
            section = Section(page.inline(heading[1]))
            if re.match(r"Summary|One might think", heading[1]):
                return
        words = sum(len(paragraph.split()) for paragraph in telling.paragraphs(part))
        section.minutes += words / telling.WORDS_A_MINUTE
        for item in _told(part, page):
            _add(section, item)


def _add(section: Section, item: str | Prediction) -> None:
    """Add prose or a prediction; what is to notice belongs to the figure before it, and so does a bold claim right under one."""
    if isinstance(item, str):
        places = reversed(range(len(section.items)))
        last = next((place for place in places if isinstance(section.items[place], Figure)), None)
        under = last is not None and last == len(section.items) - 1 and _BOLD.match(item)
        if last is not None and (_NOTICE.match(item) or under):
            section.items[last] = replace(section.items[last], claim=_NOTICE.sub("", item))
    section.items.append(item)


def _told(text: str, page: plain.Page) -> Iterator[str | Prediction]:
    """Paragraphs of prose, and predictions with their answers, in their order; other boxes are left out."""
    asked, done = "", 0
    for box in _BOX.finditer(text):
        yield from _paragraphs(text[done : box.start()], page)
        done = box.end()
        if box["title"] == "Predict":
            asked = page.text(box["body"]).strip()
        elif box["title"] == "What comes out" and asked:
            yield Prediction(asked, page.text(box["body"]).strip())
    yield from _paragraphs(text[done:], page)


def _paragraphs(text: str, page: plain.Page) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", _OTHER.sub("", text)):
        if block.strip() and not block.lstrip().startswith(("#", "|", "![", "<")):
            yield page.inline(block.strip())


def _figures(cell: nbformat.NotebookNode, page: plain.Page) -> list[Figure]:
    named = cell.metadata.get("mystnb", {})
    if "figure" not in named or not telling.pictured(cell):
        return []
    pictures = [o.data["image/png"] for o in cell.outputs if "image/png" in o.get("data", {})]
    caption, alt = page.inline(named["figure"]["caption"]), named.get("image", {}).get("alt", "")
    name = named["figure"]["name"]
    return [Figure(name, page.numbers[name][0], caption, base64.b64decode("".join(p)), alt) for p in pictures[:1]]
