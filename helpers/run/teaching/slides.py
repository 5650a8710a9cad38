"""The slides of a chapter: puzzle, predictions, drawing, claims with their figures, limits, summary; prose is in the notes.

They are made by nbconvert, and load reveal.js and MathJax from a folder beside them, so that they need no network.
"""

import base64
import io
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path

from nbformat.v4 import new_markdown_cell, new_notebook
from PIL import Image

from helpers import places
from helpers.run.teaching.form import Figure, Form, Prediction

MOST_WORDS, MOST_LIMITS = 42, 110
"""Words beneath a figure, and of what a chapter does not show; the rest stands in the notes."""
TALL = 1.7
"""A figure that is less wide than so many times its height stands beside its text."""


@dataclass
class Slide:
    """A slide: heading, text as Markdown, a figure, and what the speaker has before her."""

    title: str
    text: str
    figure: Figure | None = None
    notes: list[str] = field(default_factory=list)


def deck(form: Form) -> list[Slide]:
    """The slides of a chapter, in the order in which it is told; prose becomes the notes of the slide before it."""
    puzzle = next(item for section in form.sections for item in section.items if isinstance(item, Figure))
    shown = {puzzle.name, form.taught["drawing"], *form.taught["claims"]}
    usual, questions = iter(form.taught["predictions"]), form.taught["discussion"]
    slides = [
        Slide(form.title, f"Chapter {form.number}", notes=[f"You need: {form.needs}", f"To run it: {form.run}"]),
        Slide("In this chapter", listed(form.box), notes=["Afterwards students can:", listed(form.taught["goals"])]),
    ]
    for section in form.sections:
        last = None
        for item in section.items:
            if isinstance(item, Prediction):
                said = next(usual)
                notes = [f"Usual answer: {said['usual']}", f"Why: {said['why']}"]
                slides += [Slide("Predict", item.ask, notes=notes), Slide("What comes out", item.answer)]
            elif isinstance(item, str):
                slide = slides[-1]
                if slide.figure is last and slide.text.startswith("**Fig. ") and item.startswith("**"):
                    slide.text = brief(item.removeprefix("**What to notice.** "), MOST_WORDS)
                slide.notes.append(item)
            else:
                last = item
                if item.name in shown:
                    slides.append(Slide(section.title or form.title, brief(item.caption, MOST_WORDS), item))
    claims = [claim for point in form.summary for claim in re.findall(r"^\*\*(.+?)\*\*", point)]
    claims = [claim for claim in claims if len(claim.split()) > 3] or form.summary
    heard = [f"{question['ask']} Listen for: {question['listen']}" for question in questions]
    asked = [f"**{one['kind']}** {one['stars']} {one['title']} ({one['time']})" for one in form.exercises]
    return [
        *slides,
        Slide("What this does not show", brief(form.limits, MOST_LIMITS), notes=[form.limits]),
        Slide("One might think …", listed(form.misconceptions)),
        Slide("Summary", listed(claims), notes=form.summary),
        Slide("To discuss", listed(question["ask"] for question in questions), notes=heard),
        Slide("Exercises", listed(asked), notes=[one["text"] for one in form.exercises]),
    ]


def listed(points: Iterable[str]) -> str:
    """A list in Markdown."""
    return "\n".join(f"- {' '.join(point.split())}" for point in points)


def brief(text: str, most: int) -> str:
    """The first sentences of a text: one, and as many more as have no more words together."""
    first, *more = re.split(r"(?:(?<=[.?!])|(?<=[.?!]\*\*))\s+(?=[A-Z*`\"“])", text)
    for sentence in more:
        if len(f"{first} {sentence}".split()) > most:
            break
        first = f"{first} {sentence}"
    return first


def write(form: Form, file: Path) -> None:
    """Write the slides of a chapter, a page that needs what :func:`carry` puts into the folder ``static`` beside its own."""
    with places.extra("course", "Making slides"):
        from nbconvert import SlidesExporter
    cells = []
    for slide in deck(form):
        heading, text, attachments, tags = "##" if cells else "#", slide.text, {}, []
        if slide.figure:
            text = f"![{slide.figure.alt}](attachment:figure.png)\n\n{text}"
            attachments = {"figure.png": {"image/png": base64.b64encode(slide.figure.picture).decode()}}
            width, height = Image.open(io.BytesIO(slide.figure.picture)).size
            tags = ["figure", *["tall"] * (width < TALL * height)]
        about = {"slideshow": {"slide_type": "slide"}, "tags": tags}
        cells.append(new_markdown_cell(f"{heading} {slide.title}\n\n{text}", metadata=about, attachments=attachments))
        cells.append(new_markdown_cell("\n\n".join(slide.notes), metadata={"slideshow": {"slide_type": "notes"}}))
    template = str(files("helpers.run") / "slides.html.j2")
    exporter = SlidesExporter(template_file=template, reveal_url_prefix="../static/reveal", reveal_theme="white")
    exporter.exclude_anchor_links = True
    page, _ = exporter.from_notebook_node(new_notebook(cells=cells), {"metadata": {"name": form.title}})
    places.write(file, page)


def html(text: str) -> str:
    """HTML of Markdown."""
    with places.extra("course", "Making pages"):
        from nbconvert import HTMLExporter
    exporter = HTMLExporter(template_name="basic", exclude_anchor_links=True)
    return exporter.from_notebook_node(new_notebook(cells=[new_markdown_cell(text)]))[0]


def carry(folder: Path) -> None:
    """Copy reveal.js and MathJax out of the packages that hold them."""
    with places.extra("book", "Making slides"):
        import sphinx_revealjs
    reveal = Path(sphinx_revealjs.__file__).parent / "_static" / "revealjs"
    ignored = shutil.ignore_patterns("*.map", "*.esm.js", "league-gothic")
    for part in ("dist", "plugin/notes", "plugin/zoom"):
        shutil.copytree(reveal / part, folder / "reveal" / part, ignore=ignored, dirs_exist_ok=True)
    mathjax = distribution("sphinx-mathjax-offline").locate_file(
        "sphinx-mathjax-offline/static/mathjax/tex-svg-full.js"
    )
    shutil.copyfile(mathjax, folder / "mathjax.js")
