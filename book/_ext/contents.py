"""``<!-- generated: NAME -->`` in a page: a table or a reference that follows from what there is."""

from sphinx.application import Sphinx

from helpers.run import contents


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    if page.startswith("book/"):
        source[0] = contents.filled(source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}
