"""The buttons that launch a chapter open its copy in the branch that publishing fills: install cell, plain Markdown."""

from sphinx.application import Sphinx

from helpers.run import address


def redirect(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    for group in context.get("header_buttons", ()):
        if group.get("label") == "launch-buttons":
            for button in group["buttons"]:
                button["url"] = address.in_launch(button["url"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", redirect, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
