"""A course made from chapters: copies for students and for instructors, slides, a guide, a folder for nbgrader."""

import re
import shutil
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import distribution
from importlib.resources import files
from itertools import pairwise, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
import numpy as np
import yaml
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from tqdm import tqdm

from helpers import places
from helpers.run import address, launch, notebooks, part, template

#: Of an exercise with a check.
POINTS = 2
WORDS_A_MINUTE, MINUTES_A_FIGURE = 130, 1.5
#: Words on a slide beneath a figure.
MOST_WORDS = 42
#: Folders that are made anew in a course; anything else in it is the teacher's own and stays.
MADE = ("students", "solutions", "slides", "guide", "static", "nbgrader/source")
TEST = "verdict = {}\nassert verdict.solved, verdict.message\nprint(verdict.message)"
CHECK = re.compile(r"^exercises\.check\(\s*\"(\w+)\",\s*(\w+)\s*\)$", re.MULTILINE)
WRITTEN = re.compile(r"^\*\*(Predict|Interpret|Open project)\*\* ★", re.MULTILINE)
EXERCISE = re.compile(
    r"^### Exercise [\d.]+: (?P<title>.+)\n+\*\*(?P<kind>[\w ]+)\*\* (?P<stars>★[★☆]{2}), (?P<time>\d+ \w+)\. (?P<text>.*)",
    re.MULTILINE,
)
BOX = re.compile(r"(^> \*\*Predict\*\*\n(?:>[^\n]*\n?)*|<details>.*?</details>)", re.MULTILINE | re.DOTALL)
LIMITS = re.compile(
    r"^(?:## |> \*\*)What this does not show[*]*\n((?:>[^\n]*\n)+|.*?(?=^## |^\|))", re.MULTILINE | re.DOTALL
)


def wheel() -> str:
    """What students install where no wheel lies beside their copy: its address; its name where none is known."""
    return address.raw(launch.WHEEL) or launch.WHEEL


def student(notebook: NotebookNode) -> NotebookNode:
    """The notebook without the cells that belong to solutions; checks stay."""
    notebook.cells = [cell for cell in notebook.cells if launch.SOLUTION not in cell.metadata.get("tags", ())]
    return notebook


def instructor(chapter: str) -> NotebookNode:
    """A chapter with its solutions and nbgrader's marks: handed in as it is, it gets all points.

    The solution of an exercise stands in the cell where students answer, between the comments that nbgrader looks for, and a
    locked cell after it checks the answer and gives points. A written answer has a cell without points.
    """
    made, cells = launch.copy(chapter, wheel()), []
    for cell in made.cells:
        if launch.SOLUTION in cell.metadata.get("tags", ()):
            cell.source = re.sub(r"(\w)_solution\b", r"\1", cell.source)
    checked = [cell for cell in made.cells if cell.cell_type == "code" and CHECK.search(cell.source)]
    answers = dict(zip((cell.id for cell in checked[::2]), checked[1::2], strict=True))  # each after its exercise
    for cell, after in pairwise([*made.cells, None]):
        if cell.id in answers:
            answer, check = answers[cell.id], CHECK.search(cell.source)
            stub, solution = (CHECK.sub("", part.source).strip() for part in (cell, answer))
            cell.source = f"{stub}\n\n\n### BEGIN SOLUTION\n{solution}\n### END SOLUTION"
            test = new_code_cell(TEST.format(check[0]), outputs=answer.outputs)
            cells.append(marked(cell, check[1], solution=True))
            cells.append(marked(test, f"test-{check[1]}", points=POINTS, grade=True, locked=True))
        elif cell not in answers.values() and not (launch.ANSWER.match(cell.source) and after in answers.values()):
            cells.append(cell)
        if written := WRITTEN.search(cell.source):
            answer, kind = new_markdown_cell("*Your answer here.*"), written[1].lower().replace(" ", "-")
            count = 1 + sum(re.fullmatch(rf"{kind}(-\d+)?", other.id) is not None for other in cells)
            name = kind if count == 1 else f"{kind}-{count}"
            cells.append(marked(answer, name, points=0, grade=True, solution=True))
    made.cells = cells
    return made


def marked(cell: NotebookNode, name: str, **marks: Any) -> NotebookNode:
    """The cell, with a name and nbgrader's metadata."""
    usual = {"grade": False, "locked": False, "solution": False, "task": False}
    cell.metadata["nbgrader"] = {"schema_version": 3, "grade_id": name, "cell_type": cell.cell_type, **usual, **marks}
    cell.id = name
    return cell


@lru_cache(maxsize=32)
def outline(chapter: str) -> Mapping[str, Any]:
    """What slides, guide and the page on teaching tell of a chapter, in plain Markdown.

    Returns:
        What is in the YAML file beside its exercises, and ``chapter``, ``number``, ``title``; ``box``, the points of "In this chapter", with
        ``minutes`` to read, what it ``needs``, what a ``run`` takes, and the chapters ``before`` it; its ``cells``; ``sections``
        up to the exercises; ``predictions``, ``limits``, ``summary``, ``misconceptions``, ``exercises``.
    """
    known = yaml.safe_load((places.ROOT / "helpers" / "exercises" / f"{chapter[3:]}.yml").read_text("utf-8"))
    cells = student(launch.copy(chapter, wheel())).cells
    prose = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    opening, *parts = re.split(r"^## (.+)\n", prose, flags=re.MULTILINE)
    texts = {"Opening": opening} | dict(zip(parts[::2], parts[1::2], strict=True))
    box = unquoted(re.search(r"^> \*\*In this chapter\*\*\n((?:>.*\n?)+)", opening, re.MULTILINE)[1])
    needs = re.search(r"\*\*You need:\*\* (.+)", box)[1]
    asked = [unquoted(text).split("\n", 1)[1].strip() for text in BOX.findall(prose) if text.startswith(">")]
    answers = re.findall(r"<b>What comes out</b></summary>\n+(.*?)\n+</details>", prose, re.DOTALL)
    usual = zip(asked, answers, known["predictions"], strict=True)
    read, sections, loads = int(re.search(r"\*\*Read:\*\* (\d+) minutes", box)[1]), [], [0.0]
    for title, text in takewhile(lambda part: part[0] != "Exercises", texts.items()):
        figures, words = text.count("**Fig. "), re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL).split()
        sections.append({"title": title, "figures": figures, "predictions": text.count("> **Predict**")})
        loads.append(len(words) / WORDS_A_MINUTE + MINUTES_A_FIGURE * figures)
    ends = np.cumsum(loads)
    for section, minutes in zip(sections, np.diff(np.rint(read * ends / ends[-1])).tolist(), strict=True):
        section["minutes"] = int(minutes)
    exercises = [match.groupdict() for match in EXERCISE.finditer(texts["Exercises"])]
    names = iter(CHECK.findall("\n".join(cell.source for cell in cells if cell.cell_type == "code")))
    for exercise in exercises:
        exercise["name"] = next(names)[0] if exercise["kind"] == "Build" else ""
    return known | {
        "chapter": chapter,
        "number": int(chapter[:2]),
        "title": re.match("# (.+)", prose)[1],
        "box": points(box),
        "minutes": read,
        "run": re.search(r"\*\*Run:\*\* (.+)", box)[1],
        "needs": needs,
        "before": [c for c in notebooks.chapters() if c < chapter and c[:2] in re.findall(r"\b\d\d", needs)],
        "cells": cells,
        "sections": sections,
        "predictions": [{"ask": ask, "answer": answer} | told for ask, answer, told in usual],
        "limits": unquoted(LIMITS.search(prose)[1]),
        "summary": points(texts["Summary"]),
        "misconceptions": re.findall(r"^(?:- )?(One might think .*(?:\n(?!- |\n).*)*)", prose, re.MULTILINE),
        "exercises": exercises,
    }


def unquoted(text: str) -> str:
    """A quoted text without its marks."""
    return re.sub(r"^> ?", "", text, flags=re.MULTILINE).strip()


def points(text: str) -> list[str]:
    """The items of a list, each on one line."""
    return [" ".join(point.split()) for point in re.findall(r"^- (.*(?:\n(?!- |\n).*)*)", text, re.MULTILINE)]


def brief(text: str, most: int) -> str:
    """The first sentences of a text: one, and as many more as have no more words together."""
    first, *more = re.split(r"(?:(?<=[.?!])|(?<=[.?!]\*\*))\s+(?=[A-Z*`\"“])", text)
    for sentence in more:
        if len(f"{first} {sentence}".split()) > most:
            break
        first = f"{first} {sentence}"
    return first


def deck(told: Mapping[str, Any]) -> NotebookNode:
    """A notebook of cells that are tagged as slides and as notes.

    In the order of the chapter its predictions and the figures that have the tag ``slide``, each with the sentence in bold that
    follows it; then what closes a lesson. Prose becomes the notes of the slide before it.
    """
    cells, heading, predictions = [], told["title"], iter(told["predictions"])
    claims = [claim for point in told["summary"] for claim in re.findall(r"^\*\*(.+?)\*\*", point)]
    about = told | {"claims": [claim for claim in claims if len(claim.split()) > 3], "brief": brief}

    def add(slide: str, notes: str = "", **figure: Any) -> None:
        tags = {"slideshow": {"slide_type": "slide"}, "tags": ["figure"] if figure else []}
        cells.append(new_markdown_cell(slide.strip(), metadata=tags, **figure))
        cells.append(new_markdown_cell(notes.strip(), metadata={"slideshow": {"slide_type": "notes"}}))

    for slide in part("deck.md.j2", "first", **about).split("<!-- slide -->"):
        add(*slide.split("<!-- notes -->"))
    for cell, caption, after in zip(told["cells"][2:], told["cells"][3:], told["cells"][4:], strict=False):
        if cell.source.startswith("## Exercises"):
            break
        if cell.cell_type == "code":
            picture = next((o.data["image/png"] for o in cell.outputs if "image/png" in o.get("data", {})), None)
            if picture and "slide" in cell.metadata.tags:
                claim = after.source.removeprefix("**What to notice.** ")
                text = brief(claim if claim.startswith("**") else caption.source, MOST_WORDS)
                alt, attached = cell.metadata.mystnb.get("image", {}).get("alt", ""), {"image/png": picture}
                slide = f"## {heading}\n\n![{alt}](attachment:figure.png)\n\n{text}"
                add(slide, attachments={"figure.png": attached})
            continue
        for text in BOX.split(cell.source):
            heading = (re.findall(r"^## (.+)$", text, re.MULTILINE) or [heading])[-1]
            if text.startswith("> **Predict**"):
                entry = next(predictions)
                add(f"## Predict\n\n{entry['ask']}", f"Usual answer: {entry['usual']}\n\nWhy: {entry['why']}")
                add(f"## What comes out\n\n{entry['answer']}")
            elif not text.startswith("<details>"):
                cells[-1].source += "\n\n" + re.sub(r"^[>|#!].*\n?", "", text, flags=re.MULTILINE)
    for slide in part("deck.md.j2", "last", **about).split("<!-- slide -->"):
        add(*slide.split("<!-- notes -->"))
    return new_notebook(cells=cells)


def make(chapters: Sequence[str], folder: Path, packed: Path) -> Path:
    """Write a course of chapters, anew where it was written before, and return the zip of it all.

    Args:
        chapters: names of their files, in the order of the course.
        folder: where to; other files in it stay.
        packed: the wheel, which lies beside the students' copies.

    Raises:
        BookError: when it is no wheel of this version.
    """
    installed = launch.checked(packed).read_bytes()
    with places.extra("book,course", "Making a course"):
        import sphinx_revealjs
        from nbconvert import SlidesExporter
    slides = SlidesExporter(template_file=str(files("helpers.run") / "slides.html.j2"), exclude_anchor_links=True)
    slides.reveal_url_prefix, slides.reveal_theme = "../static/reveal", "white"
    with TemporaryDirectory() as scratch:
        made = Path(scratch) / folder.name
        # reveal.js and MathJax out of the packages that hold them, so that slides need no network
        reveal = Path(sphinx_revealjs.__file__).parent / "_static" / "revealjs"
        ignored = shutil.ignore_patterns("*.map", "*.esm.js", "league-gothic")
        for piece in ("dist", "plugin/notes", "plugin/zoom"):
            shutil.copytree(reveal / piece, made / "static" / "reveal" / piece, ignore=ignored)
        mathjax = "sphinx-mathjax-offline/static/mathjax/tex-svg-full.js"
        shutil.copyfile(distribution("sphinx-mathjax-offline").locate_file(mathjax), made / "static" / "mathjax.js")
        for chapter in tqdm(chapters, desc="course", unit="chapter"):
            told = outline(chapter)
            copies = {
                "students": student(launch.copy(chapter, wheel())),
                "solutions": instructor(chapter),
                f"nbgrader/source/{chapter}": student(instructor(chapter)),
            }
            for place, notebook in copies.items():
                notebook.metadata.pop("papermill", None)
                places.write(made / place / f"{chapter}.ipynb", nbformat.writes(notebook) + "\n")
            page, _ = slides.from_notebook_node(deck(told), {"metadata": {"name": told["title"]}})
            places.write(made / "slides" / f"{chapter}.html", page)
            write(template("guide.md.j2").render(told), told["title"], made / "guide" / chapter, "../")
        given = {f"nbgrader/source/{chapter}": [chapter] for chapter in chapters} | {"students": chapters}
        for place, those in given.items():
            about = {"chapters": [outline(chapter) for chapter in those], "wheel": launch.WHEEL}
            places.write(made / place / launch.WHEEL, installed)
            places.write(made / place / "README.md", template("students.md.j2").render(about))
        places.write(made / "nbgrader" / "nbgrader_config.py", template("nbgrader_config.py.j2").render())
        write(template("course.md.j2").render(about), "A course", made / "README")
        shutil.make_archive(str(made / "students"), "zip", made, "students")
        for name in MADE:
            shutil.rmtree(folder / name, ignore_errors=True)
        shutil.copytree(made, folder, dirs_exist_ok=True)
        return Path(shutil.make_archive(str(folder), "zip", scratch, folder.name))


def write(text: str, title: str, file: Path, root: str = "") -> None:
    """A page as Markdown and as HTML; ``root`` leads from it to the folder of the course."""
    from nbconvert.filters import markdown2html

    page = template("course.html.j2").render(title=title, body=markdown2html(text), root=root)
    places.write(file.with_name(f"{file.name}.md"), text)
    places.write(file.with_name(f"{file.name}.html"), page)
