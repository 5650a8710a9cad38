"""Sphinx extension: what a folder of pages needs to be a site: a map of it, a picture for links to it, and a sign for its host."""

from pathlib import Path
from xml.sax.saxutils import escape

from sphinx.application import Sphinx

from helpers.run import card

QUESTION = "What do the attention heads of a BERT-like encoder look at, and which of them matter?"


def complete(app: Sphinx, exception: Exception | None) -> None:
    """Write ``.nojekyll``, without which folders that begin with _ would not be served, the card, and where the address is known a sitemap."""
    if exception is not None or app.builder.format != "html":
        return
    output, home = Path(app.outdir), app.config.html_baseurl
    (output / ".nojekyll").touch()
    (output / "_static" / "card.png").write_bytes(card.draw(app.config.project, QUESTION))
    if home:
        pages = sorted(app.builder.get_target_uri(name) for name in app.env.found_docs)
        urls = "".join(f"<url><loc>{escape(home + page)}</loc></url>\n" for page in pages)
        head = (
            '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        )
        (output / "sitemap.xml").write_text(f"{head}{urls}</urlset>\n", "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("build-finished", complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
