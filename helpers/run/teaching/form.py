"""A chapter as a lecture needs it: its goals, sections with figures and predictions, exercises, summary, in plain Markdown."""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

import yaml
from nbformat import NotebookNode

from helpers import places
from helpers.run import notebooks, plain
from helpers.run.teaching import copies

WORDS_A_MINUTE, MINUTES_A_PICTURE = 130, 1.5
SPOKEN, PREDICTION, DISCUSSION = 1.25, 4, 5
"""Minutes of a lesson: for a minute of reading, for a prediction, and for a question that is discussed."""

_PREDICT = re.compile(
    r"^> \*\*Predict\*\*\n(?P<ask>(?:>.*\n)*)\s*<details><summary><b>What comes out</b></summary>\n(?P<answer>.*?)</details>",
    re.MULTILINE | re.DOTALL,
)
_EXERCISE = re.compile(
    r"^### Exercise [\d.]+: (?P<title>.+)\n+\*\*(?P<kind>[\w ]+)\*\* (?P<stars>★[★☆]{2}), (?P<time>\d+ \w+)\. "
    r"(?P<text>.*(?:\n.+)*)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Figure:
    """A figure of a chapter: its name, its number with the caption, what a reader who cannot see it is told, and its PNG."""

    name: str
    caption: str
    alt: str
    picture: bytes


@dataclass(frozen=True)
class Prediction:
    """What the reader commits to before a measurement, and what comes out."""

    ask: str
    answer: str


@dataclass
class Section:
    """A section: paragraphs, figures and predictions in their order; ``pictures`` counts figures, views and tables."""

    title: str
    items: list[str | Figure | Prediction] = field(default_factory=list)
    pictures: int = 0

    @property
    def figures(self) -> int:
        """How many it has."""
        return sum(isinstance(item, Figure) for item in self.items)

    @property
    def predictions(self) -> int:
        """How many it asks for."""
        return sum(isinstance(item, Prediction) for item in self.items)

    @property
    def minutes(self) -> float:
        """To read it."""
        words = sum(len(item.split()) for item in self.items if isinstance(item, str))
        return words / WORDS_A_MINUTE + MINUTES_A_PICTURE * self.pictures


@dataclass(frozen=True)
class Form:
    """A chapter.

    Attributes:
        box: the points of "In this chapter"; ``minutes`` to read, what readers ``need``, and what a ``run`` takes.
        before: the chapters that it builds on.
        sections: those before the exercises.
        limits: what the chapter does not show.
        exercises: title, kind, stars, time and text of each; of one with a check, also its name.
        taught: the chapter's ``teaching.yml``.
    """

    chapter: str
    title: str
    box: list[str]
    minutes: int
    needs: str
    run: str
    before: list[str]
    sections: list[Section]
    limits: str
    summary: list[str]
    misconceptions: list[str]
    exercises: list[dict[str, str]]
    taught: Mapping[str, Any]

    @property
    def number(self) -> int:
        """From 1."""
        return int(self.chapter[:2])

    @property
    def predictions(self) -> list[Prediction]:
        """All of the chapter."""
        return [item for section in self.sections for item in section.items if isinstance(item, Prediction)]

    @property
    def kept(self) -> list[Section]:
        """The sections of a short lesson."""
        return [section for section in self.sections if section.title not in self.taught["skip"]]


def lesson(sections: list[Section], questions: int) -> int:
    """Minutes that sections take when they are taught, with so many questions for discussion."""
    spoken = sum(SPOKEN * section.minutes + PREDICTION * section.predictions for section in sections)
    return round(spoken + DISCUSSION * questions)


@lru_cache(maxsize=32)
def of(chapter: str) -> Form:
    """Read a chapter.

    Raises:
        BookError: for a chapter without one of its parts.
    """
    stored = copies.read(chapter)
    cells = copies.without_solutions(plain.rendered(stored, chapter)).cells
    prose = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")

    def part(pattern: str, text: str = prose) -> str:
        found = re.search(pattern, text, re.MULTILINE | re.DOTALL)
        if not found:
            raise places.BookError(f"{chapter} has no part like {pattern!r}.")
        return _unquoted(found[1])

    box = part(r"^> \*\*In this chapter\*\*\n((?:>[^\n]*\n?)*)")
    named = set(re.findall(r"\b(\d\d)(?=_|\b)", part(r"\*\*You need:\*\*([^\n]*)", stored.cells[0].source)))
    checked = re.findall(
        r"exercises\.check\(\s*\"(\w+)\"", "\n".join(c.source for c in cells if c.cell_type == "code")
    )
    names, exercises = iter(checked), [found.groupdict() for found in _EXERCISE.finditer(prose)]
    for exercise in exercises:
        exercise["text"] = re.split(r"\s*\*Hint[:.]\*", exercise["text"])[0]
        exercise["name"] = next(names) if exercise["kind"] == "Build" else ""
    return Form(
        chapter=chapter,
        title=part(r"\A# ([^\n]+)"),
        box=[point.rstrip(";.") for point in _points(box)],
        minutes=int(part(r"\*\*Read:\*\* (\d+)", box)),
        needs=part(r"\*\*You need:\*\*([^\n]*)", box),
        run=part(r"\*\*Run:\*\*([^\n]*)", box),
        before=[one for one in notebooks.chapters() if one[:2] in named and one < chapter],
        sections=list(_sections(cells)),
        limits=part(r"^(?:## |> \*\*)What this does not show[*]*\n((?:>[^\n]*\n?)+|.*?(?=^## |^\|))"),
        summary=_points(part(r"^## Summary\n(.*?)(?=^## |\Z)")),
        misconceptions=re.findall(r"^(?:- )?(One might think .*(?:\n(?!- |\n).*)*)", prose, re.MULTILINE),
        exercises=exercises,
        taught=yaml.safe_load(
            (places.ROOT / "helpers" / "chapters" / chapter[3:] / "teaching.yml").read_text("utf-8")
        ),
    )


def _unquoted(text: str) -> str:
    return re.sub(r"^> ?", "", text, flags=re.MULTILINE).strip()


def _points(text: str) -> list[str]:
    """The items of a list, each on one line."""
    return [" ".join(point.split()) for point in re.findall(r"^- (.*(?:\n(?!- |\n).*)*)", text, re.MULTILINE)]


def _sections(cells: list[NotebookNode]) -> Iterator[Section]:
    """Sections up to the exercises; what stands before the first heading is one without a title."""
    section = Section("")
    for last, cell in pairwise([cells[0], *cells]):
        if cell.cell_type == "code":
            kinds = {kind for output in cell.outputs for kind in output.get("data", ())}
            shown = kinds & {"image/png", "text/html", "text/markdown"} and "hide-output" not in cell.metadata.tags
            section.pictures += bool(shown)
            continue
        if cell.source.startswith("**Fig. "):
            pictures = [o.data["image/png"] for o in last.outputs if "image/png" in o.get("data", {})]
            if pictures and "hide-output" not in last.metadata.tags:
                about = last.metadata.mystnb
                picture, alt = base64.b64decode(pictures[0]), about.get("image", {}).get("alt", "")
                section.items.append(Figure(about.figure.name, cell.source, alt, picture))
            continue
        for text in re.split(r"^(?=## )", cell.source, flags=re.MULTILINE):
            if heading := re.match(r"## (.+)\n?", text):
                if section.items:
                    yield section
                section = Section(heading[1])
                if section.title == "Exercises":
                    return
            done = 0
            for found in _PREDICT.finditer(text):
                section.items += _paragraphs(text[done : found.start()])
                section.items.append(Prediction(_unquoted(found["ask"]), found["answer"].strip()))
                done = found.end()
            section.items += _paragraphs(text[done:])


def _paragraphs(text: str) -> list[str]:
    """Paragraphs of prose and formulas, without headings, tables, boxes and code."""
    bare = re.sub(r"<details>.*?</details>|^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    blocks = [block.strip() for block in re.split(r"\n\s*\n", bare)]
    return [block for block in blocks if block and not block.startswith(("#", "|", "![", "<", ">"))]
