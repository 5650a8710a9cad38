"""The buttons above a page: launching and downloading give copies to run, releases offer the whole book, discussions are linked. Below it, when its file was last changed."""

import re
import subprocess
from pathlib import Path

from sphinx.application import Sphinx

from helpers import places
from helpers.run import address, launch, pages

FILES = {"pdf": "fas fa-book", "zip": "fas fa-file-archive"}
"""Kinds of files of the whole book in a release, and their icons."""


def arrange(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Change the theme's groups of buttons in place."""
    groups = {
        group.get("label"): group["buttons"] for group in context.get("header_buttons", ()) if "buttons" in group
    }
    for button in groups.get("launch-buttons", ()):
        branch = rf"(?<=/blob/){address.BRANCH}(?=/)|(?<=/){address.BRANCH}(?=\?)"
        button["url"] = re.sub(branch, address.LAUNCH, button["url"])
    repository = address.repository() or ""
    if repository.startswith("https://github.com/") and "download-buttons" in groups:
        for kind, icon in FILES.items():
            button = {"type": "link", "label": f"download-book-{kind}", "icon": icon, "text": f"whole book .{kind}"}
            button["url"] = f"{repository}/releases/latest/download/{pages.NAME}.{kind}"
            groups["download-buttons"].append(button | {"tooltip": f"Download the whole book .{kind}"})
    if repository.startswith("https://github.com/") and "source-buttons" in groups:
        button = {"type": "link", "label": "discussions-button", "icon": "fas fa-comments", "text": "Discussions"}
        button |= {"url": f"{repository}/discussions", "tooltip": "Ask a question, or discuss a chapter"}
        groups["source-buttons"].append(button)
    if (places.ROOT / ".git").exists():
        changed = ["git", "log", "-1", "--format=%cs", "--", *(f"{page}.{kind}" for kind in ("md", "ipynb"))]
        context["last_updated"] = subprocess.run(
            changed, cwd=places.ROOT, capture_output=True, text=True
        ).stdout.strip()


def offer_copies(app: Sphinx, exception: Exception | None) -> None:
    """What a chapter's page offers to download is the copy to run: plain Markdown, and a cell that installs the package."""
    if exception is None and app.builder.format == "html":
        launch.write(Path(app.outdir) / "_sources", wheel=address.raw(launch.WHEEL) or "")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", arrange, priority=900)  # after the theme has made the buttons
    app.connect("build-finished", offer_copies)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
