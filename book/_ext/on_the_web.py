"""Sphinx extension: what a folder of pages needs to be a site: a map of it, a picture for links to it, and a sign for its host."""

from pathlib import Path
from xml.sax.saxutils import escape

from sphinx.application import Sphinx

from helpers.run import address, publishing, social_card

QUESTION = "What do the attention heads of a BERT-like encoder look at, and which of them matter?"


def complete(app: Sphinx, exception: Exception | None) -> None:
    """Write ``.nojekyll``, without which folders that begin with _ would not be served, the card, and where the address is known a sitemap."""
    if exception is not None or app.builder.format != "html":
        return
    output, home = Path(app.outdir), app.config.html_baseurl
    (output / ".nojekyll").touch()
    (output / "_static" / "card.png").write_bytes(social_card.draw(app.config.project, QUESTION))
    if home:
        pages = sorted(app.builder.get_target_uri(name) for name in app.env.found_docs)
        urls = "".join(f"<url><loc>{escape(home + page)}</loc></url>\n" for page in pages)
        head = (
            '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        )
        (output / "sitemap.xml").write_text(f"{head}{urls}</urlset>\n", "utf-8")


BOOK_AS = (("pdf", "whole book .pdf", "fas fa-book"), ("zip", "whole book .zip", "fas fa-file-archive"))


def offer(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Beside the page, the whole book can be downloaded where there are releases."""
    if not (found := address.releases()):
        return
    for group in context.get("header_buttons", ()):
        if group.get("label") == "download-buttons":
            for kind, text, icon in BOOK_AS:
                url, told = f"{found}/latest/download/{publishing.NAME}.{kind}", f"Download the {text}"
                button = {"type": "link", "url": url, "text": text, "tooltip": told, "icon": icon}
                group["buttons"].append(button | {"label": f"download-book-{kind}"})


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", offer, priority=900)
    app.connect("build-finished", complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
