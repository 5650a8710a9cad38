"""A link under each table and figure with which it can be saved: a table as CSV, a figure as its picture.

The links lead to files beside the pages; nothing is added to the notebooks, and no script is needed.
"""

import csv
import io
from collections.abc import Iterator
from html import escape
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
    for count, table in enumerate(_tables(tree), 1):
        name = f"{page.rpartition('/')[2]}-table-{count}.csv"
        _write(Path(app.outdir) / FOLDER / name, _as_csv(table))
        _put_under(table, _link(app, page, f"{FOLDER}/{name}", name, f"table {count} of this page"))
    for figure, image in _figures(tree):
        if file := app.builder.env.images.get(image["uri"], (None, ""))[1]:
            number = app.builder.env.toc_fignumbers.get(page, {}).get("figure", {}).get(figure["ids"][0], ())
            name, called = f"{figure['ids'][0]}{Path(file).suffix}", ".".join(map(str, number))
            _put_under(figure, _link(app, page, f"{app.builder.imagedir}/{file}", name, f"figure {called}".strip()))


def _put_under(node: nodes.Element, link: nodes.raw) -> None:
    node.parent.insert(node.parent.index(node) + 1, link)


def _tables(tree: nodes.document) -> Iterator[nodes.table]:
    """The tables of a page, but for those that only lay it out."""
    for table in list(tree.findall(nodes.table)):
        groups = list(table.findall(nodes.tgroup))
        if len(groups) == 1 and groups[0]["cols"] >= WIDE:
            yield table


def _figures(tree: nodes.document) -> Iterator[tuple[nodes.figure, nodes.image]]:
    """The figures that can be referred to, with their pictures."""
    for figure in list(tree.findall(nodes.figure)):
        image = next(iter(figure.findall(nodes.image)), None)
        if image is not None and figure["ids"]:
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
    """``CSV`` or ``PNG``; what it saves is said to those who hear the page."""
    address, form = relative_uri(app.builder.get_target_uri(page), target), Path(target).suffix[1:].upper()
    said = f'href="{escape(address)}" download="{escape(name)}" aria-label="Save {what} as {form}"'
    return nodes.raw("", f'<p class="save"><a {said}>{form}</a></p>', format="html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-resolved", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
