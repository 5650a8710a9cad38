"""A link under each table and figure with which it can be saved: a table as CSV, a figure as its picture.

The links lead to files beside the pages; nothing is added to the notebooks, and no script is needed.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

FOLDER = "_downloads"
WIDE = 2
"""Columns that a table has at least: those with fewer only lay out a page."""


def add(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Write the tables of a page as CSV, and put a link under each and under each figure."""
    if app.builder.format != "html":
        return
    for number, table in enumerate(_tables(tree), 1):
        name = f"{page.rpartition('/')[2]}-table-{number}.csv"
        _write(Path(app.outdir) / FOLDER / name, _as_csv(table))
        table.parent.insert(
            table.parent.index(table) + 1, _link(app, page, f"{FOLDER}/{name}", name, f"Table {number}")
        )
    for number, (figure, image) in enumerate(_figures(tree), 1):
        file = app.builder.env.images[image["uri"]][1] if image["uri"] in app.builder.env.images else ""
        if file:
            name = f"{figure['names'][0] if figure['names'] else f'figure-{number}'}{Path(file).suffix}"
            figure.parent.insert(
                figure.parent.index(figure) + 1,
                _link(app, page, f"{app.builder.imagedir}/{file}", name, f"Figure {number}"),
            )


def _tables(tree: nodes.document) -> Iterator[nodes.table]:
    """The tables of a page; what stands in a table or only lays out a page is none."""
    for table in list(tree.findall(nodes.table)):
        groups = list(table.findall(nodes.tgroup))
        if len(groups) == 1 and groups[0]["cols"] >= WIDE:
            yield table


def _figures(tree: nodes.document) -> Iterator[tuple[nodes.figure, nodes.image]]:
    for figure in list(tree.findall(nodes.figure)):
        if image := next(iter(figure.findall(nodes.image)), None):
            yield figure, image


def _as_csv(table: nodes.table) -> str:
    """The cells as they are read, a row a line."""
    text = io.StringIO()
    rows = (
        [" ".join(cell.astext().split()) for cell in row.findall(nodes.entry)] for row in table.findall(nodes.row)
    )
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, "utf-8")


def _link(app: Sphinx, page: str, target: str, name: str, what: str) -> nodes.raw:
    """``CSV`` or ``PNG`` after an arrow; what it saves is said to those who hear the page."""
    address = relative_uri(app.builder.get_target_uri(page), target)
    form = Path(target).suffix[1:].upper()
    html = f'<p class="save"><a href="{address}" download="{name}" aria-label="Save {what} as {form}">{form}</a></p>'
    return nodes.raw("", html, format="html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-resolved", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
