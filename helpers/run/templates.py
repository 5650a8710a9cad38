"""Pages that are written from templates beside this module: ``*.j2``, in Jinja's notation."""

from importlib.resources import files

from jinja2 import Template


def template(name: str, *, escaped: bool = False) -> Template:
    """A template of this folder; ``escaped`` for HTML, in which every value that is not marked as HTML itself is escaped."""
    text = files("helpers.run").joinpath(name).read_text("utf-8")
    return Template(text, autoescape=escaped, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
