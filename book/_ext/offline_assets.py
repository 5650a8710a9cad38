"""Sphinx extension: a book that needs no network.

After the build, bertviz's frames (stored as weights only) become pages of their own, which hold the third-party scripts of installed
Python packages: a frame that may do nothing but run scripts cannot load a file beside it. Any page that would still load something from
elsewhere fails the build.
"""

import hashlib
import html
import json
import re
from functools import cache
from pathlib import Path

import pybtex.plugin
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from helpers.figures import views

FRAME = re.compile(r'<iframe class="bertviz"[^>]*?data-bertviz="([^"]*)"[^>]*></iframe>')
ICON_SCRIPT = re.compile(r'<script [^>]*src="[^"]*/scripts/fontawesome\.js[^"]*"></script>\s*')
REACHED = """<script>
for (const frame of document.querySelectorAll("iframe[data-src]")) {
  new IntersectionObserver((seen, watch) => {
    if (!seen.some((one) => one.isIntersecting)) return;
    watch.disconnect();
    frame.src = frame.dataset.src;
  }, { rootMargin: "500px" }).observe(frame);
}
</script>"""
"""A frame gets its page when a reader comes near: browsers fetch a lazy one at once where it is folded."""
LOADED_FROM_ELSEWHERE = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*?\bsrc=["'](?:https?:)?//[^"']+["']"""
    r"""|<link\b(?=[^>]*rel=["'](?:stylesheet|preload|icon|shortcut icon)["'])[^>]*?\bhref=["'](?:https?:)?//[^"']+["']""",
    re.IGNORECASE,
)


def without_thebe(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Leave out the scripts for live code, which Jupyter Book adds (twice) even when they are switched off."""
    context["script_files"] = [
        script
        for script in context.get("script_files", ())
        if "thebe" not in str(getattr(script, "filename", script)).lower()
        and "THEBE" not in str(getattr(script, "attributes", {}).get("body", ""))
    ]


def mend(page: Path) -> None:
    """Leave out the theme's script of all icons, one and a half megabytes: its style sheet has them as a font already; and what
    calls a bibliography a list, whose entries are none."""
    text = page.read_text("utf-8")
    better = ICON_SCRIPT.sub("", text).replace(
        '<div role="list" class="citation-list">', '<div class="citation-list">'
    )
    if better != text:
        page.write_text(better, "utf-8")


def write_frames(page: Path, output: Path) -> None:
    """Give each bertviz frame of a page its document, with the scripts that it runs."""
    text = page.read_text("utf-8")
    if 'class="bertviz"' not in text:
        return
    folder = output / "_static" / "bertviz"
    folder.mkdir(parents=True, exist_ok=True)
    scripts = views.vendored(*views.FRAME_LIBRARIES).values()
    libraries = "".join(f"<script>{file.read_text('utf-8')}</script>" for file in scripts)
    up = "../" * (len(page.relative_to(output).parts) - 1)

    def with_source(match: re.Match[str]) -> str:
        data = html.unescape(match[1])
        name = f"{hashlib.sha256(data.encode()).hexdigest()[:16]}.html"
        (folder / name).write_text(views.bertviz_document(json.loads(data), libraries), "utf-8")
        frame = match[0].replace(f' data-bertviz="{match[1]}"', "")
        return frame.replace("<iframe ", f'<iframe data-src="{up}_static/bertviz/{name}" ', 1)

    page.write_text(FRAME.sub(with_source, text).replace("</body>", f"{REACHED}\n</body>", 1), "utf-8")


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Copy, complete, check."""
    if exception is not None or app.builder.format != "html":
        return
    output = Path(app.outdir)
    elsewhere = []
    for page in sorted(output.rglob("*.html")):
        if "_static" in page.relative_to(output).parts:
            continue
        mend(page)
        write_frames(page, output)
        found = LOADED_FROM_ELSEWHERE.findall(page.read_text("utf-8"))
        elsewhere += [f"{page.relative_to(output)}: {tag}" for tag in found]
    if elsewhere:
        raise ExtensionError("Pages load files from elsewhere:\n" + "\n".join(elsewhere))


# else each citation lists all installed packages again
pybtex.plugin.entry_points = cache(pybtex.plugin.entry_points)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", without_thebe, priority=900)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
