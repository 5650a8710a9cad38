"""What the pages list and nobody types: the tables of chapters, the families of encoders, the reference of the package.

A chapter is what it is in three places: its notebook's title is the question, the docstring of its folder says what the
reader will do and after which source, ``book/_toc.yml`` says where it stands. The rest follows from these.
"""

import ast
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import nbformat

import helpers
from helpers import places
from helpers.record.results import Table
from helpers.run import address, notebooks

ROOMS = ("run", "chapters", "record", "figures", "engine", "corpora")
"""From top to bottom; a module imports what stands below it."""


def question(chapter: str) -> str:
    """The title of a chapter."""
    first = nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4).cells[0].source
    return first.split("\n")[0].removeprefix("# ")


def purpose(chapter: str) -> tuple[str, str]:
    """What a reader will do in a chapter, and after which source, from its folder's docstring: "You …" and "After …".

    Raises:
        NotebookError: when the docstring has another form.
    """
    file = places.HOME / "helpers" / "chapters" / chapter[3:] / "__init__.py"
    found = re.fullmatch(r"You (.+)\. After (.+)\.", " ".join(_docstring(file).split()))
    if not found:
        wanted = "'You (do what).', a blank line, 'After (whom).'"
        raise notebooks.NotebookError(f"{file}: its docstring should read {wanted}")
    return found[1], found[2]


def chapters() -> str:
    """The welcome page's table: what a reader does in each chapter, and after whom."""
    rows = [[f"{{doc}}`{int(c[:2])} <../notebooks/{c}>`", *purpose(c)] for c in notebooks.chapters()]
    return Table(["chapter", "you will", "after"], rows)._repr_markdown_()


def questions() -> str:
    """README's table: the question of each chapter."""
    rows = [[f"[{c[:2]}](notebooks/{c}.ipynb)", question(c)] for c in notebooks.chapters()]
    return Table(["chapter", "question"], rows)._repr_markdown_()


def families() -> str:
    """The families of encoders that work, as the tests measure them."""
    from helpers.engine import models  # takes seconds, and most pages do not need it

    *most, last = (family["name"] for family in models.FAMILIES.values())
    without = " and ".join(family["name"] for family in models.FAMILIES.values() if not family.get("values", True))
    return f"{', '.join(most)} and {last} (of {without} the value vectors, which chapter 03 measures, cannot be seen)"


README = {"chapters": questions, "families": families}
"""What stands in README.md between ``<!-- NAME -->`` and ``<!-- /NAME -->``."""


def renewed(readme: str) -> str:
    """The text of README.md with its lists made anew."""
    lists = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- /\2 -->)", re.DOTALL)
    return lists.sub(lambda found: f"{found[1]}{README[found[2]]()}\n{found[3]}", readme)


def renew_readme() -> None:
    """Write the lists into README.md."""
    file = places.ROOT / "README.md"
    places.write(file, renewed(file.read_text("utf-8")))


def package(room: str) -> str:
    """The reference of a room of the package: a part for each of its modules."""
    house = places.HOME / "helpers"
    sections = [_docstring(house / room / "__init__.py").strip()]
    for file in sorted(f for f in (house / room).rglob("*.py") if f.stem != "__init__"):
        name = ".".join(file.relative_to(house).with_suffix("").parts)
        members = "" if file.stem == "exercises" else "\n   :members:"  # what is in those are answers
        sections.append(f"## {name}\n\n```{{eval-rst}}\n.. automodule:: helpers.{name}{members}\n```")
    return "\n\n".join(sections)


def reference(name: str) -> str:
    """The page that documents a name of the package, ``helpers.engine.shards.each``."""
    room = name.partition(".")[2].partition(".")[0]
    return f"book/helpers/{room}" if room in ROOMS else "book/helpers"


def clone() -> str:
    """How to get the book from its repository, where the address is known."""
    if not (found := address.repository()):
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


def _teaching(name: str) -> Callable[[], str]:
    """A part of *Teach with it*, whose module reads every chapter, and this one for their titles."""

    def made() -> str:
        from helpers.run.teaching import concepts

        return getattr(concepts, name)()

    return made


GENERATED = {
    "chapters": chapters,
    "families": families,
    "clone": clone,
    "browser": browser,
    "version": lambda: helpers.__version__,
    "concept_map": _teaching("concept_map"),
    "discussion": _teaching("discussion"),
    "lessons": _teaching("lessons"),
    **{f"package_{room}": partial(package, room) for room in ROOMS},
}


def filled(page: str) -> str:
    """The text of a page with ``<!-- generated: NAME -->`` replaced by what :data:`GENERATED` makes."""
    return re.sub(r"<!-- generated: (\w+) -->", lambda found: GENERATED[found[1]](), page)
