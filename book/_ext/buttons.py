"""The buttons above a page: launching opens the copies in the branch ``launch``, and releases offer the whole book."""

from sphinx.application import Sphinx

from helpers.run import address, publishing

FILES = {"pdf": "fas fa-book", "zip": "fas fa-file-archive"}
"""Kinds of files of the whole book in a release, and their icons."""


def arrange(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Change the theme's groups of buttons in place."""
    groups = {
        group.get("label"): group["buttons"] for group in context.get("header_buttons", ()) if "buttons" in group
    }
    for button in groups.get("launch-buttons", ()):
        button["url"] = address.in_launch(button["url"])
    releases = address.releases()
    if releases and "download-buttons" in groups:
        for kind, icon in FILES.items():
            button = {"type": "link", "label": f"download-book-{kind}", "icon": icon, "text": f"whole book .{kind}"}
            button["url"] = f"{releases}/latest/download/{publishing.NAME}.{kind}"
            groups["download-buttons"].append(button | {"tooltip": f"Download the whole book .{kind}"})


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", arrange, priority=900)  # after the theme has made the buttons
    return {"parallel_read_safe": True, "parallel_write_safe": True}
