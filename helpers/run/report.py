"""One self-contained HTML file of a run of the whole book on one model: figures, tables, provenance, and what was left out.

The prose of the chapters is not in it: it speaks of the models that the book was written with. The file needs no network
and no script, and prints on A4.
"""

import base64
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from PIL import Image

import helpers
from helpers import places
from helpers.record.results import Table
from helpers.run.notebooks import Run

FIRST = "14_your_own_model"
"""The chapter whose first figure is the card that opens the report."""

LARGEST = 15_000_000
"""Most bytes of a report; figures are kept in fewer colours, then smaller, until they fit."""

MOST_LINES = 24
LEFT_OUT = ("Exercises", "Summary", "In this chapter")
STEPS = ((None, 1.0), (256, 1.0), (128, 0.75), (64, 0.5), (32, 0.35))
"""Number of colours and size of figures, tried in order."""


@dataclass
class Chapter:
    """What the report keeps of an executed chapter: a title and blocks, each ``(kind, content)``.

    Kinds: ``heading`` (text), ``figure`` (dict with png, caption, name, width), ``table`` (Markdown), ``log`` (text),
    ``view`` (nothing: an interactive view was here).
    """

    number: int
    title: str
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
    model = next((c for run in done if not run.problem for c in [_parameters(run.file).get("model")] if c), "minilm")
    origins = provenance(results, profile, str(model))
    pages = (_page(chapters, done, origins, str(model), profile, how) for how in STEPS)
    page = next((p for p in pages if len(p.encode()) <= largest), None)
    if page is None:
        page = _page(chapters, done, origins, str(model), profile, None)
    places.write(target, page)
    return target


def _parameters(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    return dict(nbformat.read(file, as_version=4).metadata.get("book", {}).get("parameters", {}))


# ---------------------------------------------------------------------------------------- reading a chapter


def read(file: Path) -> Chapter:
    """Figures, tables and printed lines of an executed chapter, in order, exercises left out."""
    notebook = nbformat.read(file, as_version=4)
    number = int(file.stem[:2])
    chapter = Chapter(number, "")
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
            yield (
                "figure",
                {
                    "png": data["image/png"].strip(),
                    "caption": shown.get("caption", ""),
                    "name": shown.get("name", ""),
                    "width": width,
                },
            )
        elif "text/html" in data:
            yield "view", None
        elif str(data.get("text/markdown", "")).startswith("|"):
            yield "table", "".join(data["text/markdown"])


# ---------------------------------------------------------------------------------------- where numbers come from


def provenance(results: Path, profile: str, model: str) -> list[tuple[str, dict[str, Any]]]:
    """What each chapter recorded about its run: chapter -> provenance, in the order of their names."""
    folder = results / profile / model.replace("/", "--")
    found = ((f.stem, json.loads(f.read_text("utf-8"))["provenance"]) for f in sorted(folder.glob("*.json")))
    return list(found)


def _provenance_html(origins: Sequence[tuple[str, dict[str, Any]]]) -> str:
    if not origins:
        return "<p>No chapter recorded numbers in this run.</p>"
    rows = []
    for chapter, p in origins:
        corpus, head = p["corpus"] or {}, p.get("head") or {}
        rows.append(
            [
                chapter,
                f"{corpus.get('name', '–')} {corpus.get('sha256', '')[:10]}",
                str(head.get("task", "–")),
                p["date"],
                ", ".join(f"{k} = {v}" for k, v in p["parameters"].items()),
            ]
        )
    first = origins[0][1]
    model, versions = first["model"], first["versions"]
    facts = [
        ("model", f"{model['name']} ({model['class']})"),
        ("sha256 of the weights", model["sha256"]),
        ("profile", first["profile"]),
        ("device", first["device"]),
        ("versions", ", ".join(f"{name} {number}" for name, number in versions.items())),
    ]
    listed = "".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in facts)
    table = _table(["recorded by", "corpus, sha256", "head", "date", "parameters"], rows)
    return f'<dl class="facts">{listed}</dl>{table}'


# ---------------------------------------------------------------------------------------- the page


def _page(
    chapters: Sequence[Chapter],
    done: Sequence[Run],
    origins: Sequence[tuple[str, dict[str, Any]]],
    model: str,
    profile: str,
    how: tuple[int | None, float] | None,
) -> str:
    """The whole file; ``how`` is a row of ``STEPS``, None for no figures at all."""
    name = Path(model).name
    numbers = _figure_numbers(chapters)
    card, opening = _opening(chapters)
    problems = [run for run in done if run.problem]
    parts = [
        f"<h1>What the attention heads of {escape(name)} look at</h1>",
        f'<p class="lead">Every chapter of the book that this model can run, profile <b>{escape(profile)}</b>: '
        f"{len(chapters)} of {len(done)} chapters. Figures, tables and printed lines only: the chapters' prose speaks of the "
        "models that the book was written with. Layers and heads count from 1; intervals are 95 %.</p>",
        "" if card is None else _figure_html(card, numbers, how, "The card"),
        *(_table_html(table) for table in opening),
        _problems_html(problems),
        "<h2>Where the numbers come from</h2>",
        _provenance_html(origins),
        '<h2>Contents</h2><ol class="contents">',
        *(
            f'<li value="{c.number}"><a href="#chapter-{c.number}">{_inline(c.title, numbers)}</a></li>'
            for c in chapters
        ),
        "</ol>",
        *(_chapter_html(chapter, numbers, how) for chapter in chapters),
        f"<footer>Made by the book's helpers, version {escape(helpers.__version__)}.</footer>",
    ]
    body = "\n".join(part for part in parts if part)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(name)}: attention heads</title>'
        f"<style>{STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _opening(chapters: Sequence[Chapter]) -> tuple[dict[str, Any] | None, list[str]]:
    """The card's figure and its table, from the chapter that draws it."""
    own = [c for c in chapters if c.number == int(FIRST[:2])]
    figures = [content for c in own for kind, content in c.blocks if kind == "figure"]
    tables = [content for c in own for kind, content in c.blocks if kind == "table"]
    return (figures[0] if figures else None), tables[:1]


def _problems_html(problems: Sequence[Run]) -> str:
    if not problems:
        return ""
    rows = ((run.chapter, "failed" if run.failed else "skipped", run.problem) for run in problems)
    # What an error says is no Markdown
    cells = ("".join(f"<td>{escape(cell, quote=False)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<h2>Chapters that are not here</h2><table><tr><th>chapter</th><th></th><th>why</th></tr>{body}</table>"


def _figure_numbers(chapters: Iterable[Chapter]) -> dict[str, str]:
    """Name of a figure -> its number, such as ``4.2``."""
    numbers = {}
    for chapter in chapters:
        count = 0
        for kind, content in chapter.blocks:
            if kind == "figure":
                count += 1
                content["number"] = f"{chapter.number}.{count}"
                if content["name"]:
                    numbers[content["name"]] = content["number"]
    return numbers


def _chapter_html(chapter: Chapter, numbers: dict[str, str], how: tuple[int | None, float] | None) -> str:
    parts = [f'<section id="chapter-{chapter.number}"><h2>{chapter.number}. {_inline(chapter.title, numbers)}</h2>']
    views = 0
    for kind, content in chapter.blocks:
        if kind == "heading":
            parts.append(f"<h3>{_inline(content, numbers)}</h3>")
        elif kind == "figure":
            parts.append(_figure_html(content, numbers, how, f"Figure {content['number']}"))
        elif kind == "table":
            parts.append(_table_html(content))
        elif kind == "log":
            parts.append(f"<pre>{escape(content)}</pre>")
        else:
            views += 1
    if views:
        parts.append(f'<p class="note">{views} interactive view{"s" * (views > 1)} in the executed notebook.</p>')
    if not any(kind == "figure" for kind, _ in chapter.blocks):
        parts.append('<p class="note">This chapter drew no figure for this model; see its lines above.</p>')
    return "\n".join(parts) + "</section>"


def _figure_html(
    content: dict[str, Any], numbers: dict[str, str], how: tuple[int | None, float] | None, label: str
) -> str:
    caption = _inline(content["caption"], numbers)
    if how is None:
        return f'<p class="note">{escape(label)}, left out for its size. {caption}</p>'
    width = f' style="width:{content["width"]}px"' if content["width"] else ""
    alt = re.sub(r"<[^>]+>", "", caption) or escape(label)
    return (
        f'<figure><img alt="{alt}" src="data:image/png;base64,{_smaller(content["png"], *how)}"{width}>'
        f"<figcaption><b>{escape(label)}.</b> {caption}</figcaption></figure>"
    )


def _smaller(png: str, colours: int | None, size: float) -> str:
    """A base64 picture in fewer colours and smaller; as it is where that gains nothing."""
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


def _table_html(markdown: str) -> str:
    return f'<div class="table">{MARKDOWN.render(_without_roles(markdown, {}))}</div>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return _table_html(Table(head, [[" ".join(cell.split()) for cell in row] for row in rows])._repr_markdown_())


def _inline(text: str, numbers: dict[str, str]) -> str:
    """A caption, a title or a heading as HTML."""
    return MARKDOWN.renderInline(_without_roles(text, numbers))


def _without_roles(text: str, numbers: dict[str, str]) -> str:
    """What the book's own marks stand for: the number of a figure, a name and a year, else the text they mark."""
    text = re.sub(r"\{numref\}`([^`]*)`", lambda m: f"Figure {numbers.get(m[1], '(not here)')}" if m[1] else "", text)
    text = re.sub(r"\{cite(?::\w+)?\}`([^`]*)`", lambda m: ", ".join(map(_cited, m[1].split(","))), text)
    return re.sub(r"\{\w+\}`([^`<]*?)\s*(?:<[^`]*>)?`", r"\1", text)


def _cited(key: str) -> str:
    found = re.fullmatch(r"([a-z]+)(\d{4})\w*", key.strip())
    return f"{found[1].capitalize()} {found[2]}" if found else key.strip()


STYLE = """
@page { size: A4; margin: 14mm; }
body { font: 10.5pt/1.45 "DejaVu Sans", Verdana, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7em; line-height: 1.2; } h2 { font-size: 1.3em; border-bottom: 1px solid #999; margin-top: 2em; }
h3 { font-size: 1.05em; margin-top: 1.6em; }
figure { margin: 1.2em 0; break-inside: avoid; } img { max-width: 100%; height: auto; }
figcaption { font-size: .85em; color: #333; margin-top: .3em; }
.table { overflow-x: auto; margin: 1em 0; } table { border-collapse: collapse; font-size: .8em; }
th, td { text-align: left; padding: .2em .7em .2em 0; border-bottom: 1px solid #ccc; vertical-align: top; overflow-wrap: anywhere; }
th { border-bottom: 1.5px solid #444; } tr { break-inside: avoid; } thead { display: table-header-group; }
pre { font-size: .75em; background: #f4f4f4; padding: .5em .8em; white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-size: .95em; } .math { font-style: italic; } .note, .lead { color: #444; } dl.facts { display: grid; grid-template-columns: 12em 1fr; font-size: .85em; }
dt { font-weight: bold; } dd { margin: 0; overflow-wrap: anywhere; } footer { margin-top: 3em; font-size: .8em; color: #555; }
@media print {
  body { margin: 0; padding: 0; max-width: none; font-size: 9pt; } section { break-before: page; }
  h2, h3 { break-after: avoid; } pre { background: none; border: 1px solid #ccc; } a { color: inherit; text-decoration: none; }
  .table { overflow: visible; }
}
"""
