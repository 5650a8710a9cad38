"""A book that needs no network: MathJax from an installed package, and bertviz's frames as pages of their own.

Stored notebooks keep the weights of a bertviz view, not its scripts. A frame that may do nothing but run scripts cannot load a file
beside it, so that its page holds all of them.
"""

import hashlib
import html
import json
import re
from importlib.resources import files
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

from helpers import views

MATHJAX = files("sphinx-mathjax-offline") / "static" / "mathjax" / "tex-svg-full.js"


def add_mathjax(app: Sphinx, config: Config) -> None:
    """Copy MathJax, one file without fonts, into ``_static``."""
    config.html_static_path.append(str(MATHJAX))


def write_frames(app: Sphinx, exception: Exception | None) -> None:
    """Give each bertviz frame its page, which is loaded when a reader comes near (``book.js``)."""
    if exception is not None or app.builder.format != "html":
        return
    output = Path(app.outdir)
    folder = output / "_static" / "bertviz"
    folder.mkdir(parents=True, exist_ok=True)

    def with_page(frame: re.Match[str]) -> str:
        weights = html.unescape(frame[2])
        name = f"{hashlib.sha256(weights.encode()).hexdigest()[:16]}.html"
        (folder / name).write_text(views.bertviz_document(json.loads(weights)), "utf-8")
        return f'{frame[1]} data-src="../_static/bertviz/{name}"'

    for page in output.glob("notebooks/*.html"):
        text = page.read_text("utf-8")
        if 'class="bertviz"' in text:
            page.write_text(views.FRAME.sub(with_page, views.FRAME_DOCUMENT.sub("", text)), "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("config-inited", add_mathjax)
    app.connect("build-finished", write_frames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
