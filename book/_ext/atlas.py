"""``{atlas}``: the atlas of heads, its data, and the ways to it from figures in which a point is a head; ``{holdings}``: what is recorded of whom."""

import re
from functools import cache
from pathlib import Path

import nbformat
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

from helpers.figures import atlas
from helpers.record import quantities, results
from helpers.run.atlas import content, measuring, page

PAGE = "book/atlas"
POINT = re.compile(r'class="point"')
DRAW_HEADS = (
    *("aim_and_breadth", "embeddings", "groups_by_k", "head_grids", "head_map", "head_tree", "heads_by_layer"),
    *("importance_and_cost", "labelled_grid", "layer_map", "model_card", "ranked_heads", "relation_maps"),
    *("signed_grids", "type_grids", "type_triangle", "typed_heads", "types_and_changes", "without_heads"),
)
"""Functions that draw figures in which a point, a cell or a picture is a head."""

models = cache(content.models)


class Atlas(Directive):
    """The atlas of every model that has been measured for it."""

    def run(self) -> list[nodes.Node]:
        env = self.state.document.settings.env
        for model in (known := measuring.recorded()):
            env.note_dependency(str(_file_of(model)))
        if not known:
            raise self.error("No model is measured for the atlas. Run: python -m helpers atlas --record")
        first = next(iter(models()))
        element = atlas.element(models(), folder=f"../{atlas.FOLDER}", still=page.still(models()[first]))
        return [nodes.raw("", element, format="html")]


class Holdings(Directive):
    """What is recorded of which model, as a table."""

    def run(self) -> list[nodes.Node]:
        for file in quantities.sources():
            self.state.document.settings.env.note_dependency(str(file))
        found = nodes.container()
        lines = content.holdings()._repr_markdown_().split("\n")
        self.state.nested_parse(StringList(lines, source="holdings"), 0, found)
        return [found]


def _file_of(model: str) -> Path:
    return results.path(measuring.CHAPTER, model=model, profile=measuring.PROFILE)


def drawn(notebook: nbformat.NotebookNode) -> set[str]:
    """The names of a notebook's figures in which a point is a head."""
    found = set()
    for cell in notebook.cells:
        figure = cell.metadata.get("mystnb", {}).get("figure")
        if figure and set(re.findall(r"(\w+)\(", cell.source)) & set(DRAW_HEADS):
            found.add(figure["name"])
    return found


def lead_on(app: Sphinx, tree: nodes.document, name: str) -> None:
    """A line under every static figure in which a point is a head."""
    if not name.startswith("notebooks/"):
        return
    wanted = drawn(nbformat.read(app.env.doc2path(name), as_version=4))
    for figure in tree.findall(nodes.figure):
        if wanted & set(figure["ids"]):
            link = '<p class="to-atlas"><a href="../book/atlas.html">Look a head up in the atlas</a></p>'
            figure.append(nodes.raw("", link, format="html"))


def load_where_needed(app: Sphinx, name: str, template: str, context: dict, tree: nodes.document | None) -> None:
    """Script and style on the atlas's own page, and on those with heads to touch."""
    if name != PAGE and not POINT.search(context.get("body", "")):
        return
    app.add_css_file("atlas/atlas.css")
    told = {"data-atlas": _links(app, name)} if name != PAGE else {}
    app.add_js_file("atlas/atlas.js", loading_method="defer", **told)


def _links(app: Sphinx, name: str) -> str:
    """What the script is told of the heads of a page: whose they are, where data and atlas lie."""
    up = "../" * name.count("/")
    chosen = next(iter(models()))
    if name.startswith("notebooks/"):
        kept = nbformat.read(app.env.doc2path(name), as_version=4).metadata.get("book", {})
        chosen = kept.get("parameters", {}).get("model", chosen)
    return atlas.links(chosen, models(), folder=f"{up}{atlas.FOLDER}", page=f"{up}{PAGE}.html")


def write(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        page.write_data(Path(app.outdir) / atlas.FOLDER, models())


def setup(app: Sphinx) -> dict[str, object]:
    """Called by Sphinx."""
    app.add_directive("atlas", Atlas)
    app.add_directive("holdings", Holdings)
    app.connect("doctree-resolved", lead_on)
    app.connect("html-page-context", load_where_needed)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
