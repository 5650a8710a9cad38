"""``<!-- generated: NAME PART -->`` and ``<!-- version -->`` in a page are replaced by the text that :mod:`helpers.run.pages` makes."""

from pathlib import Path

from sphinx.application import Sphinx

from helpers.run import pages


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    """Replace the marks of a page, and read it again in the next build, since what is generated may have changed."""
    filled = pages.filled(source[0], Path(app.srcdir) / "book" / "_static") if page.startswith("book/") else source[0]
    if filled != source[0]:
        source[0] = filled
        app.env.note_reread()


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}
