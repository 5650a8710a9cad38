"""What the pages list and nobody types: the tables of chapters, the families of encoders, the reference of the package.

The docstring of a chapter's folder says what the reader will do and after which source.
"""

import ast
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import helpers
from helpers import places
from helpers.results import Table
from helpers.run import address, notebooks

PACKAGES = ("run", "chapters", "record", "figures", "measurements", "engine", "corpora", "core")
"""Folders of the package, from top to bottom, and ``core``, the modules that lie in none."""


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


def chapters() -> str:
    """The welcome page's table: what a reader does in each chapter, and after whom."""
    rows = [[f"{{doc}}`{int(c[:2])} <../notebooks/{c}>`", *purpose(c)] for c in notebooks.chapters()]
    return Table(["chapter", "you will", "after"], rows)._repr_markdown_()


def families() -> str:
    """The families of encoders that work, as the tests measure them."""
    from helpers import models  # takes seconds, and most pages do not need it

    *most, last = (family["name"] for family in models.FAMILIES.values())
    without = " and ".join(family["name"] for family in models.FAMILIES.values() if not family.get("values", True))
    return f"{', '.join(most)} and {last} (of {without} the value vectors, which chapter 03 measures, cannot be seen)"


def package(folder: str) -> str:
    """The reference of a folder of the package: a part for each of its modules."""
    house = places.HOME / "helpers"
    files = house.glob("*.py") if folder == "core" else (house / folder).rglob("*.py")
    sections = [] if folder == "core" else [_docstring(house / folder / "__init__.py").strip()]
    for file in sorted(f for f in files if not f.stem.startswith("__")):
        name = ".".join(file.relative_to(house).with_suffix("").parts)
        members = "" if file.stem == "exercises" else "\n   :members:"  # what is in those are answers
        sections.append(f"## {name}\n\n```{{eval-rst}}\n.. automodule:: helpers.{name}{members}\n```")
    return "\n\n".join(sections)


def reference(name: str) -> str:
    """The page that documents a name of the package, ``helpers.engine.shards.each``."""
    folder = name.partition(".")[2].partition(".")[0]
    return f"book/helpers/{folder if folder in PACKAGES else 'core'}"


def clone() -> str:
    """How to get the book from its repository, where the address is known."""
    found = address.repository()
    if not found:
        return "In the folder of the book:"
    return f"```bash\ngit clone {found}\ncd {found.rsplit('/', 1)[1]}\n```"


def browser() -> str:
    """What the buttons at the top of a chapter do, where there are any."""
    if not address.repository():
        return "These pages were built without the address of a repository, so chapters have no button that launches them."
    return (
        "The rocket at the top of each chapter opens a copy of it on Binder or on Colab. The first cell installs the package where it is "
        "missing, and leaves alone what is there. Binder takes some minutes to start and gives 2 GB of memory; the box at the head "
        "of each chapter says how much it needs."
    )


def _docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""


def _concepts(name: str) -> str:
    """A part of the page *Teach with it*."""
    from helpers.run.teaching import concepts  # which reads every chapter

    return getattr(concepts, name)()


GENERATED: dict[str, Callable[[], str]] = {
    "chapters": chapters,
    "families": families,
    "clone": clone,
    "browser": browser,
    "version": partial(str, helpers.__version__),
    **{name: partial(_concepts, name) for name in ("concept_map", "discussion", "lessons")},
    **{f"package_{folder}": partial(package, folder) for folder in PACKAGES},
}


def filled(page: str) -> str:
    """The text of a page with ``<!-- generated: NAME -->`` replaced by what :data:`GENERATED` makes."""
    return re.sub(r"<!-- generated: (\w+) -->", lambda found: GENERATED[found[1]](), page)
