"""A link under each table, figure and drawing with which it can be saved: a table as CSV, a figure as its picture, a drawing as SVG.

The links lead to files beside the pages; nothing is added to the notebooks, and no script is needed.
"""

import base64
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape, unescape
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

FOLDER = "_downloads"
WIDE = 2
"""Columns that a table has at least: those with fewer only lay out a page."""
DRAWN = '<figure class="drawing">'
PICTURE = re.compile(r'src="data:image/svg\+xml;base64,([^"]+)"')
TOUCHED = re.compile(r'<div class="touch">.*?<div class="plot">(<svg.*?</svg>)(.*?)</div>', re.DOTALL)
LABEL = re.compile(r'<i style="background:(#\w+)"></i>(.*?)</li>')
STYLE = re.compile(r"^\.touch (\.\w+\{[^}]*\})", re.MULTILINE)


def add(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Write the tables of a page as CSV and its drawings as SVG, and put a link under each and under each figure."""
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

    for count, (raw, kind, text) in enumerate(_drawings(tree), 1):
        name = f"{page.rpartition('/')[2]}-drawing-{count}.{kind}"
        _write(Path(app.outdir) / FOLDER / name, text)
        _put_under(_end(raw), _link(app, page, f"{FOLDER}/{name}", name, f"drawing {count} of this page"))


def _put_under(node: nodes.Element, link: nodes.raw) -> None:
    node.parent.insert(node.parent.index(node) + 1, link)


def _drawings(tree: nodes.document) -> Iterator[tuple[nodes.raw, str, str]]:
    """What code draws into a page as HTML, with what is saved of it: its kind and its text; a view without a picture is not there."""
    for raw in list(tree.findall(nodes.raw)):
        text = raw.astext() if raw.get("format") == "html" else ""
        if text.startswith(DRAWN) and (picture := PICTURE.search(text)):
            yield raw, "svg", base64.b64decode(picture[1]).decode()
        elif touched := TOUCHED.search(text):
            yield raw, "svg", _alone(*touched.groups())
        elif text.startswith(DRAWN) and (rows := re.findall(r"<tr>(.*?)</tr>", text)):
            yield raw, "csv", _csv([unescape(re.sub(r"<[^>]+>", "", c)) for c in _cells(row)] for row in rows)


def _end(raw: nodes.raw) -> nodes.Element:
    """The last node of a drawing: the one that ends its caption, if it has one."""
    if not raw.astext().startswith(DRAWN):
        return raw
    after = raw.parent.children[raw.parent.index(raw) :]
    return next(one for one in after if isinstance(one, nodes.raw) and "</figcaption>" in one.astext())


def _alone(svg: str, legend: str) -> str:
    """A picture of a figure to touch as a file: with the style that its page gives it, on white, its legend below."""
    drawn, labels = ElementTree.fromstring(svg), LABEL.findall(legend)
    width, height = map(int, drawn.get("viewBox", "").split()[2:])
    columns = max(1, width // (30 + 7 * max((len(unescape(text)) for _, text in labels), default=0)))
    tall = height + 18 * -(-len(labels) // columns) + 6
    for number, (colour, text) in enumerate(labels):
        x, y = 12 + number % columns * (width // columns), height + 14 + number // columns * 18
        ElementTree.SubElement(drawn, "circle", cx=str(x), cy=str(y - 4), r="5", fill=colour)
        ElementTree.SubElement(drawn, "text", x=str(x + 9), y=str(y)).text = unescape(text)
    ground, style = (
        ElementTree.Element("rect", width="100%", height="100%", fill="white"),
        ElementTree.Element("style"),
    )
    style.text = "".join(STYLE.findall((files("helpers.figures") / "touch.css").read_text("utf-8")))
    drawn[:0] = [style, ground]
    said = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width} {tall}", "width": str(2 * width)}
    drawn.attrib.update(said, height=str(2 * tall), style="font:12px sans-serif;color:#222;fill:#222")
    return ElementTree.tostring(drawn, encoding="unicode")


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
    return _csv([cell.astext() for cell in row.findall(nodes.entry)] for row in table.findall(nodes.row))


def _cells(row: str) -> list[str]:
    return re.findall(r"<t[hd]>(.*?)</t[hd]>", row)


def _csv(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([" ".join(cell.split()) for cell in row] for row in rows)
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
