"""What people run: executing chapters, training, atlas, report, teaching, publishing; and the templates (``*.j2``) of what is written."""

from jinja2 import Environment, PackageLoader, Template

from helpers.results import as_markdown


def template(name: str, *, escaped: bool = False) -> Template:
    """A template of this folder; ``escaped`` for HTML, in which every value that is not marked as HTML itself is escaped.

    ``|cell`` makes Markdown for a table of a value.
    """
    options = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    environment = Environment(loader=PackageLoader("helpers.run", "."), autoescape=escaped, **options)
    environment.filters["cell"] = as_markdown
    return environment.get_template(name)


def part(name: str, macro: str, **context: object) -> str:
    """What one macro of a template makes.

    Raises:
        AttributeError: if there is no such macro.
    """
    return str(getattr(template(name).make_module(context), macro)())
