"""One self-contained HTML file of a run of the whole book on one model: figures, tables, provenance, and what was left out.

The prose of the chapters is not in it: it speaks of the models that the book was written with. The file needs no network,
and prints on A4; only the atlas of the model's heads, where it was measured, needs a script.
"""

import base64
import io
import json
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat
from markdown_it import MarkdownIt
from markupsafe import Markup
from mdit_py_plugins.dollarmath import dollarmath_plugin
from PIL import Image

import helpers
from helpers import places
from helpers.figures.touch import TooLarge
from helpers.run.atlas import content, measuring, page
from helpers.run.notebooks import Run
from helpers.run.templates import template

CARD = "fig-card"
"""The figure that opens the report, with the first table of its chapter."""

LARGEST = 15_000_000
"""Most bytes of a report; figures are kept in fewer colours, then smaller, until they fit."""

MOST_LINES = 24
LEFT_OUT = ("Exercises", "Summary", "In this chapter")
STEPS = ((None, 1.0), (256, 1.0), (128, 0.75), (64, 0.5), (32, 0.35), None)
"""Number of colours (None: all) and size of figures, tried in order; at last no figures at all."""


@dataclass
class Chapter:
    """What the report keeps of an executed chapter: its model, its title and blocks, each ``(kind, content)``.

    Kinds: ``heading`` (text), ``figure`` (dict with png, caption, name, width), ``table`` (Markdown), ``log`` (text),
    ``view`` (nothing: an interactive view was here).
    """

    number: int
    model: str | None
    title: str = ""
    blocks: list[tuple[str, Any]] = field(default_factory=list)


def write(done: Sequence[Run], target: Path, *, results: Path, profile: str, largest: int = LARGEST) -> Path:
    """Write the report of a run.

    Args:
        done: what happened to each chapter, as :func:`helpers.run.notebooks.run` returns it.
        target: the HTML file.
        results: folder of the numbers that the chapters recorded.
        largest: most bytes.

    Returns:
        ``target``.
    """
    chapters = [read(run.file) for run in done if not run.problem and run.file.exists()]
    model = str(next((c.model for c in chapters if c.model), "minilm"))
    numbers = _figure_numbers(chapters)
    own = [block for c in chapters if CARD in (f["name"] for k, f in c.blocks if k == "figure") for block in c.blocks]
    opening = dict(reversed(own))  # the first of each kind
    opening |= {kind: held for kind, held in own if kind == "figure" and held["name"] == CARD}
    origins = provenance(results, profile, model)
    shown = atlas_of(model, results, {p["model"]["sha256"] for _, p in origins})
    layout = template("report.html.j2", escaped=True)
    for how in STEPS:
        text = layout.render(
            name=Path(model).name,
            profile=profile,
            chapters=chapters,
            done=done,
            origins=origins,
            atlas=shown,
            opening=opening,
            version=helpers.__version__,
            inline=lambda text: Markup(MARKDOWN.renderInline(_without_roles(text, numbers))),
            table=lambda text: Markup(MARKDOWN.render(_without_roles(text, {}))),
            smaller=partial(_smaller, how),
        )
        if len(text.encode()) <= largest:
            break
    places.write(target, text)
    return target


# ---------------------------------------------------------------------------------------- reading a chapter


def read(file: Path) -> Chapter:
    """Figures, tables and printed lines of an executed chapter, in order, exercises left out."""
    notebook = nbformat.read(file, as_version=4)
    given = notebook.metadata.get("book", {}).get("parameters", {})
    chapter = Chapter(int(file.stem[:2]), given.get("model"))
    waiting, skipping = None, False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for heading in re.findall(r"^(#{1,2} .+)$", _without_fences(cell.source), flags=re.MULTILINE):
                text = heading.lstrip("# ").strip()
                if heading.startswith("# ") and not chapter.title:
                    chapter.title = text
                else:
                    skipping = text in LEFT_OUT
                    waiting = None if skipping else text
        elif cell.cell_type == "code" and not skipping:
            found = list(_blocks(cell))
            if found and waiting:
                chapter.blocks.append(("heading", waiting))
                waiting = None
            chapter.blocks += found
    return chapter


def _without_fences(markdown: str) -> str:
    return re.sub(r"^(:::+|```+).*?^\1\s*$", "", markdown, flags=re.MULTILINE | re.DOTALL)


def _blocks(cell: nbformat.NotebookNode) -> Iterator[tuple[str, Any]]:
    if "inspect.getsource" in cell.source:  # a helper's own lines, printed for readers of the chapter
        return
    shown = cell.metadata.get("mystnb", {}).get("figure", {})
    for output in cell.outputs:
        data = output.get("data", {})
        if output.output_type == "stream" and output.name == "stdout":
            lines = output.text.strip("\n").split("\n")
            rest = len(lines) - MOST_LINES
            yield "log", "\n".join(lines[:MOST_LINES] + ([f"… {rest} more lines"] if rest > 0 else []))
        elif "image/png" in data:
            width = output.get("metadata", {}).get("image/png", {}).get("width")
            named = {key: shown.get(key, "") for key in ("caption", "name")}
            yield "figure", named | {"png": data["image/png"].strip(), "width": width}
        elif "text/html" in data:
            yield "view", None
        elif str(data.get("text/markdown", "")).startswith("|"):
            yield "table", "".join(data["text/markdown"])


# ---------------------------------------------------------------------------------------- where numbers come from


def provenance(results: Path, profile: str, model: str) -> list[tuple[str, dict[str, Any]]]:
    """What each chapter recorded about its run: chapter -> provenance, in the order of their names."""
    folder = results / profile / places.label(model)
    return [(f.stem, json.loads(f.read_text("utf-8"))["provenance"]) for f in sorted(folder.glob("*.json"))]


def atlas_of(model: str, results: Path, weights: Collection[str]) -> dict[str, str]:
    """The atlas of the model's heads as it stands in the page, ``html``, or why it is ``lacking`` and the ``command`` that measures it.

    Args:
        results: folder of the numbers that the run recorded; those that travel with the book come after them.
        weights: checksums of the model's in the run, if it recorded any.
    """
    command = f"python -m helpers atlas --models {shlex.quote(model)}"
    with patch.dict(os.environ, {"BOOK_RESULTS": str(results)}):
        told = {name: record["provenance"]["model"] for name, record in measuring.recorded().items()}
        found = next((name for name, one in told.items() if one["name"] == model), None)
        if found is None:
            return {"lacking": "was not measured for this model", "command": command}
        if weights and told[found]["sha256"] not in weights:
            return {"lacking": "was measured with other weights", "command": command}
        try:
            return {"html": Markup(page.inline(content.models([found])[found] | {"model": Path(model).name}))}
        except TooLarge as error:
            return {"lacking": f"does not fit into this page. {error}"}


# ---------------------------------------------------------------------------------------- figures


def _figure_numbers(chapters: Iterable[Chapter]) -> dict[str, str]:
    """Name of a figure -> its number, such as ``4.2``."""
    numbers = {}
    for chapter in chapters:
        for count, figure in enumerate((held for kind, held in chapter.blocks if kind == "figure"), 1):
            numbers[figure["name"]] = figure["number"] = f"{chapter.number}.{count}"
    return numbers


def _smaller(how: tuple[int | None, float] | None, png: str) -> str:
    """A base64 picture in fewer colours and smaller (a row of ``STEPS``), as it is where that gains nothing; none for None."""
    if how is None:
        return ""
    colours, size = how
    if colours is None:
        return "".join(png.split())
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA")
    plain = Image.new("RGB", picture.size, "white")
    plain.paste(picture, mask=picture.getchannel("A"))
    if size != 1:
        plain = plain.resize(tuple(max(1, round(side * size)) for side in plain.size), Image.Resampling.LANCZOS)
    saved = io.BytesIO()
    plain.quantize(colours, dither=Image.Dither.NONE).save(saved, "PNG", optimize=True)
    text = base64.b64encode(saved.getvalue()).decode()
    return min(text, "".join(png.split()), key=len)


# ---------------------------------------------------------------------------------------- Markdown

MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").use(dollarmath_plugin)


def _without_roles(text: str, numbers: dict[str, str]) -> str:
    """What the book's own marks stand for: the number of a figure, a name and a year, else the text they mark."""
    text = re.sub(r"\{numref\}`([^`]*)`", lambda m: f"Figure {numbers.get(m[1], '(not here)')}" if m[1] else "", text)
    text = re.sub(r"\{cite(?::\w+)?\}`([^`]*)`", lambda m: ", ".join(map(_cited, m[1].split(","))), text)
    return re.sub(r"\{\w+\}`([^`<]*?)\s*(?:<[^`]*>)?`", r"\1", text)


def _cited(key: str) -> str:
    found = re.fullmatch(r"([a-z]+)(\d{4})\w*", key.strip())
    return f"{found[1].capitalize()} {found[2]}" if found else key.strip()
