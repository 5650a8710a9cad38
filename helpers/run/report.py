"""One self-contained HTML file of a run of the whole book on one model: figures, tables, provenance, and what was left out.

The prose of the chapters is not in it: it describes the models that the book was written with. The file needs no network and
prints on A4; only the atlas of the model's heads, where it was measured, needs a script.
"""

import json
import os
import re
import shlex
from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat
from markdown_it import MarkdownIt
from markupsafe import Markup
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat.v4 import new_markdown_cell

from helpers import places
from helpers.run import atlas, launch, notebooks, template

#: In the page of a model's card (:mod:`helpers.run.card`), whose template lets no text of others be HTML.
CARD = '<div class="encoder-card">'
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").use(dollarmath_plugin)


def write(done: Sequence[notebooks.Run], target: Path, *, results: Path, profile: str) -> Path:
    """Write the report of a run.

    Args:
        done: what happened to each chapter, as :func:`helpers.run.notebooks.run` returns it.
        target: the HTML file.
        results: folder of the numbers that the chapters recorded.

    Returns:
        ``target``.
    """
    chapters = [read(run.file) for run in done if not run.problem]
    model = chapters[0]["model"] if chapters else "minilm"
    records = sorted((results / profile / places.label(model)).glob("*.json"))
    provenance = {file.stem: json.loads(file.read_text("utf-8"))["provenance"] for file in records}
    weights = {record["model"]["sha256"] for record in provenance.values()}
    about = {"name": Path(model).name, "asked": shlex.quote(model), "profile": profile, "chapters": chapters}
    about |= {"done": done, "provenance": provenance, "atlas": atlas_of(model, results, weights)}
    places.write(target, template("report.html.j2", escaped=True).render(about))
    return target


def read(file: Path) -> dict[str, Any]:
    """What the report keeps of an executed chapter; its exercises are left out.

    Returns:
        ``number``, ``model``, ``title``; ``sections``, each a heading with blocks: a ``figure`` with its caption, a ``table``, a model's
        ``card`` (all HTML), or a ``log``, the lines that a cell printed.
    """
    notebook, sections = launch.rendered(nbformat.read(file, as_version=4), file.stem), [(Markup(), [])]
    for cell, after in pairwise([*notebook.cells, new_markdown_cell()]):
        headings = re.findall(r"^##? (.+)$", cell.source, re.MULTILINE) if cell.cell_type == "markdown" else []
        if "Exercises" in headings:
            break
        sections += [(Markup(MARKDOWN.renderInline(heading)), []) for heading in headings]
        for output in cell.get("outputs", ()):
            data, blocks = output.get("data", {}), sections[-1][1]
            if output.output_type == "stream" and output.name == "stdout":
                blocks.append({"kind": "log", "text": output.text})
            elif "image/png" in data:
                caption = after.source if "figure" in cell.metadata.get("mystnb", {}) else ""
                figure = {"kind": "figure", "text": Markup(MARKDOWN.renderInline(caption))}
                width = output.metadata.get("image/png", {}).get("width")
                blocks.append(figure | {"png": data["image/png"], "width": width})
            elif CARD in data.get("text/html", ""):
                blocks.append({"kind": "card", "text": Markup(data["text/html"])})
            elif data.get("text/markdown", "").startswith("|"):
                blocks.append({"kind": "table", "text": Markup(MARKDOWN.render(data["text/markdown"]))})
    model = notebook.metadata.get("papermill", {}).get("parameters", {}).get("model", "minilm")
    title = next((heading for heading, _ in sections if heading), file.stem)
    return {"number": int(file.stem[:2]), "model": model, "title": title, "sections": sections}


def atlas_of(model: str, results: Path, weights: Collection[str]) -> Markup | None:
    """The atlas of the model's heads, None where it was not measured with these weights.

    Args:
        results: folder of the numbers that the run recorded; those that travel with the book come after them.
        weights: checksums of the model's weights in the run, if it recorded any.
    """
    with patch.dict(os.environ, {"BOOK_RESULTS": str(results)}):
        for name, record in atlas.recorded().items():
            measured = record["provenance"]["model"]
            if measured["name"] == model and (not weights or measured["sha256"] in weights):
                return Markup(atlas.inline(atlas.models([name])[name] | {"model": Path(model).name}))
    return None
