"""The data of the atlas of heads, links to it from figures of heads, and its script on pages with interactive points."""

import json
import re
from pathlib import Path

import nbformat
from docutils import nodes
from sphinx.application import Sphinx

from helpers.run import atlas

PAGE = "book/atlas"
HEAD_FIGURES = re.compile(r"\b(head_grids|heads_by_layer|scatter_groups|thumbnails|views\.points)\(")
"""Functions that draw figures in which a point, a cell or a picture is a head."""
LINK = '<p class="to-atlas"><a href="../book/atlas.html">Look a head up in the atlas</a></p>'


def link_figures(app: Sphinx, tree: nodes.document, name: str) -> None:
    """Put a link to the atlas under every static figure of heads."""
    if not name.startswith("notebooks/"):
        return
    cells = nbformat.read(app.env.doc2path(name), as_version=4).cells
    figures = {
        cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
        for cell in cells
        if HEAD_FIGURES.search(cell.source)
    }
    for figure in tree.findall(nodes.figure):
        if figures.intersection(figure["ids"]):
            figure.append(nodes.raw("", LINK, format="html"))


def load_script(app: Sphinx, name: str, template: str, context: dict, tree: nodes.document | None) -> None:
    """Add script and style to the atlas and to pages with interactive points; the latter also learn whose heads they show."""
    if name != PAGE and 'class="point"' not in context.get("body", ""):
        return
    attributes = {}
    if name != PAGE:
        model, up = next(iter(atlas.shown())), "../" * name.count("/")
        if name.startswith("notebooks/"):
            metadata = nbformat.read(app.env.doc2path(name), as_version=4).metadata
            model = metadata.get("papermill", {}).get("parameters", {}).get("model", model)
        data = atlas.data_files(atlas.shown(), f"{up}{atlas.FOLDER}", page=f"{up}{PAGE}.html")
        attributes["data-atlas"] = json.dumps({"model": model} | data)
    app.add_css_file("atlas/atlas.css")
    app.add_js_file("atlas/atlas.js", loading_method="defer", **attributes)


def write_data(app: Sphinx, exception: Exception | None) -> None:
    """Write script, style and the data of each model."""
    if exception is None and app.builder.format == "html":
        atlas.write_data(Path(app.outdir) / atlas.FOLDER, atlas.shown())


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-resolved", link_figures)
    app.connect("html-page-context", load_script)
    app.connect("build-finished", write_data)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
