"""How a chapter is told, counted: words, figures, minutes to read, its longest paragraph and sentence, its exercises.

What counts is what a first reader reads: prose outside folded boxes and outside the exercises.
"""

import ast
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import nbformat

from helpers import places
from helpers.run import notebooks
from helpers.run.durations import PEAKS, Noted

MODEL = "minilm"
WORDS_A_MINUTE = 130
MINUTES_A_PICTURE = 1.5
ROUNDED_TO = 5
MOST_WORDS, MOST_IN_PARAGRAPH, MOST_IN_SENTENCE, MOST_NUMBERS, MOST_LINES = 3000, 90, 30, 5, 15
KINDS = {"Predict": (1, 1), "Build": (1, 2), "Interpret": (1, 1), "Open project": (1, 1)}
"""Kinds of exercises in the order of a chapter, and how many there are at least and at most."""
PARTS = (
    "{admonition} In this chapter",
    "**You need:**",
    "{admonition} Predict",
    "## Exercises",
    "## Summary",
    "## One might think",
    "**Further reading.**",
)
"""What every chapter has, in this order."""

_FENCE = re.compile(r"^\s*(`{3,}|:{3,}|~{3,})")
_READ = re.compile(r"\*\*Read:\*\* \d+ minutes")
_MEMORY = re.compile(r"[\d.]+ GB(?= of memory)")
_KIND = re.compile(rf"^\*\*({'|'.join(KINDS)})\*\* (★[★☆]{{2}}), (\d+) (minutes?|hours?)\.", re.MULTILINE)
_LISTED = re.compile(r"^\s*(?:[-*] |\d+\. )")
_SENTENCE = re.compile(r"(?<=[a-z\d)\]*`”’%][.!?])\*{0,2}\s+(?=[A-Z*`“‘])")
_CITED = re.compile(r"\{(?:cite[:\w]*|doc|numref|eq|ref)\}`[^`]*`")
_NUMBER = re.compile(r"(?<![\w`.-])[−-]?\d+(?:[.,]\d+)*(?![\w`-]|\.\d)")


@dataclass(frozen=True)
class Telling:
    """Counts of one chapter.

    Attributes:
        paragraphs: of the prose that counts, in order, as plain text.
        pictures: figures, views and tables that are not folded and belong to no exercise.
        exercises: kind, stars and minutes of each, in order.
    """

    paragraphs: Sequence[str]
    pictures: int
    exercises: Sequence[tuple[str, int, int]]

    @property
    def words(self) -> int:
        """Of all paragraphs."""
        return sum(len(paragraph.split()) for paragraph in self.paragraphs)

    @property
    def minutes(self) -> int:
        """To read it: 130 words a minute and a minute and a half for each picture, rounded up to five minutes."""
        exact = self.words / WORDS_A_MINUTE + MINUTES_A_PICTURE * self.pictures
        return ROUNDED_TO * math.ceil(exact / ROUNDED_TO)

    @property
    def longest(self) -> str:
        """The paragraph with most words."""
        return max(self.paragraphs, key=lambda paragraph: len(paragraph.split()))

    @property
    def sentences(self) -> list[str]:
        """Of all paragraphs."""
        return [sentence for paragraph in self.paragraphs for sentence in _SENTENCE.split(paragraph)]


def problems(chapter: str) -> list[str]:
    """What in a chapter's telling is not as every chapter's should be, a sentence each."""
    notebook = nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4)
    prose = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    found, told = of(chapter), []
    if found.words > MOST_WORDS:
        told.append(f"{found.words} words outside folds and exercises, over {MOST_WORDS}")
    for paragraph in found.paragraphs:
        if (words := len(paragraph.split())) > MOST_IN_PARAGRAPH:
            told.append(f"a paragraph of {words} words, over {MOST_IN_PARAGRAPH}: {paragraph[:60]} …")
        if len(quoted := numbers(paragraph)) > MOST_NUMBERS:
            told.append(f"a paragraph with {len(quoted)} numbers, over {MOST_NUMBERS}: {paragraph[:60]} …")
    for sentence in found.sentences:
        if (words := len(sentence.split())) > MOST_IN_SENTENCE:
            told.append(f"a sentence of {words} words, over {MOST_IN_SENTENCE}: {sentence[:60]} …")
    places_of = [prose.find(part) for part in PARTS]
    told += [f"no {part!r}" for part, place in zip(PARTS, places_of, strict=True) if place < 0]
    if -1 not in places_of and places_of != sorted(places_of):
        told.append(f"its parts stand in another order than {', '.join(PARTS)}")
    if f"**Read:** {found.minutes} minutes" not in prose:
        told.append(f"the box should say {found.minutes} minutes to read")
    if (needed := memory(chapter)) and f"{needed} of memory" not in prose:
        told.append(f"the box should say {needed} of memory")
    return [*told, *_of_exercises(found), *_of_cells(notebook.cells)]


def _of_exercises(found: Telling) -> Iterator[str]:
    kinds = [kind for kind, _, _ in found.exercises]
    for kind, (least, most) in KINDS.items():
        if not least <= kinds.count(kind) <= most:
            yield f"{kinds.count(kind)} exercises of the kind {kind!r}"
    if any((kind == "Open project") != (stars == 3) for kind, stars, _ in found.exercises):
        yield "three stars are for open projects, and open projects have three"


def _of_cells(cells: Sequence[nbformat.NotebookNode]) -> Iterator[str]:
    for cell in cells:
        if cell.cell_type != "code" or "parameters" in cell.metadata.get("tags", ()):
            continue
        if (lines := lines_but_imports(cell.source)) > MOST_LINES:
            yield f"a cell of {lines} lines, over {MOST_LINES}: {cell.source[:60]!r} …"


def lines_but_imports(source: str) -> int:
    """Lines of a cell's code, imports apart."""
    imports = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return len(source.split("\n")) - sum(node.end_lineno - node.lineno + 1 for node in imports)


def numbers(paragraph: str) -> list[str]:
    """Numbers that a paragraph quotes; the name of a head, ``3-5``, is none, nor is what stands in code."""
    return _NUMBER.findall(re.sub(r"`[^`]*`", "", paragraph))


def of(chapter: str) -> Telling:
    """Count a chapter as it is in git."""
    notebook = nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4)
    told = list(without_exercises(notebook.cells))
    prose = "\n\n".join(part for part in told if isinstance(part, str))
    every = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return Telling(
        list(paragraphs(prose)),
        sum(pictured(part) for part in told if not isinstance(part, str)),
        list(_exercises(every)),
    )


def paragraphs(prose: str) -> Iterator[str]:
    """Plain paragraphs of Markdown outside folded boxes, code, formulas, tables, pictures and headings; an item of a list is one."""
    for block in re.split(r"\n\s*\n", "\n".join(_unfolded(prose.split("\n")))):
        for part in re.split(r"\n(?=\s*(?:[-*] |\d+\. ))", block):
            text = _plain(_LISTED.sub("", part))
            if re.search(r"\w", text) and not part.lstrip().startswith(("#", "|", "![", "<", "$$")):
                yield text


def renew(chapter: str) -> bool:
    """Write the minutes to read, and the memory that the last run took, into the chapter's box; whether they have changed."""
    file = notebooks.FOLDER / f"{chapter}.ipynb"
    notebook = nbformat.read(file, as_version=4)
    first = notebook.cells[0]
    said = _READ.sub(f"**Read:** {of(chapter).minutes} minutes", first.source)
    said = _MEMORY.sub(memory(chapter) or r"\g<0>", said)
    if changed := said != first.source:
        first.source = said
        places.write(file, nbformat.writes(notebook) + "\n")
    return changed


def memory(chapter: str) -> str:
    """What a chapter's kernel needs with the book's model, in steps of half a GB, from the run of the stored outputs; "" if that is not known."""
    found = Noted(notebooks.FOLDER / PEAKS).numbers.get(chapter, {}).get(MODEL)
    return f"{math.ceil(2 * found / 1024) / 2:g} GB" if found else ""


def without_exercises(cells: Sequence[nbformat.NotebookNode]) -> Iterator[nbformat.NotebookNode | str]:
    """The cells of code, and the text of the others, but what stands between the heading of the exercises and the next of its rank."""
    inside = False
    for cell in cells:
        for part in [cell] if cell.cell_type == "code" else re.split(r"^(?=## )", cell.source, flags=re.MULTILINE):
            if isinstance(part, str) and (heading := re.match(r"## (.*)", part)):
                inside = heading[1].strip() == "Exercises"
            if not inside:
                yield part


def _unfolded(lines: Sequence[str]) -> Iterator[str]:
    """Lines outside code, formulas and boxes that are folded; a box that is open keeps its text and loses its fence and options."""
    open_: list[tuple[str, bool]] = []
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence and open_ and line.strip() == open_[-1][0]:
            open_.pop()
        elif fence and line.strip() != fence[1]:
            options = [one for one in lines[number + 1 : number + 5] if one.startswith(":class:")]
            admonition = "{admonition}" in line or "{margin}" in line
            hidden = not admonition or any("dropdown" in one for one in options[:1])
            open_.append((fence[1], hidden))
        elif fence and not open_:
            open_.append((fence[1], True))
        elif not any(hidden for _, hidden in open_) and not (open_ and re.match(r":[\w-]+:", line)):
            yield line


def _plain(text: str) -> str:
    """Without citations, links' addresses and formulas; roles keep their text."""
    text = re.sub(r"\$\$.*?\$\$", " ", text, flags=re.DOTALL)
    text = re.sub(r"\$[^$]*\$", "x", text)
    text = re.sub(r"\s*\{cite:p\}`[^`]*`", "", text)
    text = re.sub(r"\{math\}`[^`]*`", "x", text)
    text = _CITED.sub("X", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return " ".join(text.split())


def pictured(cell: nbformat.NotebookNode) -> bool:
    """Whether a cell shows a figure, a view or a table."""
    tags = set(cell.metadata.get("tags", ()))
    if cell.cell_type != "code" or tags & {"hide-output", "hide-cell", "remove-output", "remove-cell"}:
        return False
    shown = [data for output in cell.get("outputs", ()) if (data := output.get("data"))]
    table = any("| --- |" in str(data.get("text/markdown", "")) for data in shown)
    return "mystnb" in cell.metadata or table or any("text/html" in data or "image/png" in data for data in shown)


def _exercises(prose: str) -> Iterator[tuple[str, int, int]]:
    for kind, stars, length, unit in _KIND.findall(prose):
        yield kind, stars.count("★"), int(length) * (60 if unit.startswith("hour") else 1)
