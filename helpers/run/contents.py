"""What the pages list and nobody types: tables of chapters, the families of encoders (``pages.md.j2``), the reference of the package.

The docstring of a chapter's folder says what the reader will do and after which source.
"""

import ast
import re
from pathlib import Path

import helpers
from helpers import models, places
from helpers.run import course, notebooks
from helpers.run.templates import part


def purpose(chapter: str) -> tuple[str, str]:
    """What a reader will do in a chapter, and after which source, from its folder's docstring: "You …" and "After …".

    Raises:
        BookError: when the docstring has another form.
    """
    file = places.HOME / "helpers" / "chapters" / chapter[3:] / "__init__.py"
    found = re.fullmatch(r"You (.+)\. After (.+)\.", " ".join(_docstring(file).split()))
    if not found:
        wanted = "'You (do what).', a blank line, 'After (whom).'"
        raise places.BookError(f"{file}: its docstring should read {wanted}")
    return found[1], found[2]


def package(folder: str) -> str:
    """The reference of a folder of the package, or of the modules that lie in none (``core``): a part for each module."""
    house = places.HOME / "helpers"
    modules = house.glob("*.py") if folder == "core" else (house / folder).rglob("*.py")
    parts = [] if folder == "core" else [_docstring(house / folder / "__init__.py").strip()]
    for file in sorted(file for file in modules if not file.stem.startswith("__")):
        name = ".".join(file.relative_to(house).with_suffix("").parts)
        members = "" if file.stem == "exercises" else "\n   :members:"  # what is in those are answers
        parts.append(f"## {name}\n\n```{{eval-rst}}\n.. automodule:: helpers.{name}{members}\n```")
    return "\n\n".join(parts)


def _docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""


def filled(page: str) -> str:
    """The text of a page with each ``<!-- generated: NAME -->`` replaced by what is named, and ``<!-- version -->``."""

    about = {"names": notebooks.chapters(), "purpose": purpose, "outline": course.outline, "models": models.FAMILIES}

    def text(found: re.Match[str]) -> str:
        room, name = found.groups()
        return package(name) if room else part("pages.md.j2", name, **about)

    return re.sub(
        r"<!-- generated: (package_)?(\w+) -->", text, page.replace("<!-- version -->", helpers.__version__)
    )
