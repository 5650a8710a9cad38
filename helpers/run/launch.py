"""Copies of the chapters for elsewhere: to launch on a hosted notebook, to open in JupyterLab, to teach with.

The pages are built from notebooks in MyST Markdown, which hosted notebooks show as it is typed. In a copy each role is a
link, a citation or the number of a figure, and each directive a heading, a quoted or a folded box. Copies are made when they
are needed and never kept beside the chapters.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from pybtex.database import parse_file

import helpers
from helpers import places
from helpers.run import address, notebooks, template

#: What the wheel of this version is called.
WHEEL = f"attention_heads_book-{helpers.__version__}-py3-none-any.whl"
#: Tag, in a copy, of the cells that belong to the solution of an exercise.
SOLUTION = "solution"
#: A directive; the book never puts one into another.
BOX = re.compile(
    r"^(`{3,}|:{3,})\{(?P<name>[\w-]+)\} *(?P<title>.*)\n(?P<options>(?::[\w-]+:.*\n)*)(?P<body>(?:.*\n)*?)\1$",
    re.MULTILINE,
)
GATE = re.compile(r"^(?=`{3,}\{(?:exercise|solution)-)", re.MULTILINE)
ROLE = re.compile(r"\{([\w:]+)\}`(?:([^`<]*?)\s*<([^`>]+)>|([^`]+))`")
#: The heading of a solution, in plain Markdown.
ANSWER = re.compile(r"(#### Solution to .+)\n*")
#: Tags of the book, and what JupyterLab calls the same.
HIDDEN = {"hide-input": "source_hidden", "hide-output": "outputs_hidden"}


def rendered(notebook: NotebookNode, chapter: str, site: str | None = None) -> NotebookNode:
    """A copy of a chapter in plain Markdown; its code and outputs are as they were.

    A figure is followed by its number and caption, which notebooks do not show. What the page hides is hidden, and the
    cells of a solution have the tag :data:`SOLUTION`, under headings that JupyterLab folds.

    Args:
        notebook: a chapter as it is in git.
        chapter: ``02_surface_patterns``; its number is the first part of those of figures and exercises.
        site: address of the built book; without one there are no links to its pages.

    Raises:
        KeyError: for a figure, an exercise or a cited work that does not exist.
    """
    made, numbers, inside = deepcopy(notebook), numbered(notebook, chapter), False
    cells, made.cells = made.cells, []
    for cell in cells:
        source = cell.source
        if cell.cell_type == "code":
            tags = cell.metadata.setdefault("tags", [])
            cell.metadata["jupyter"] = {HIDDEN[tag]: "parameters" not in tags for tag in tags if tag in HIDDEN}
            tags += [SOLUTION] * inside
            made.cells.append(cell)
            figure = cell.metadata.get("mystnb", {}).get("figure")
            source = f"**{numbers[figure['name']]}** {figure['caption']}" if figure else ""
        for place, part in enumerate(GATE.split(source)):
            inside = "{solution-start}" in part or (inside and not GATE.match(part))
            # a heading folds the cells after its own
            for n, text in enumerate(filter(None, ANSWER.split(plain(part, numbers, site)))):
                about = {"tags": [SOLUTION]} if inside else {}
                about |= {"jp-MarkdownHeadingCollapsed": True} if ANSWER.match(text) else {}
                made.cells.append(new_markdown_cell(text, metadata=about, id=f"{cell.id}-{place}-{n}"))
    return made


def copy(chapter: str, wheel: str = "") -> NotebookNode:
    """A chapter as it is in git, in plain Markdown; links lead to the built pages where their address is known.

    Args:
        wheel: address or path of a wheel, which a cell after the title installs where none lies beside the copy.
    """
    made = rendered(nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4), chapter, address.site())
    install = template("install.py.j2").render(wheel=WHEEL, address=wheel)
    made.cells[1:1] = [new_code_cell(install, id="install")] if wheel else []
    return made


def numbered(notebook: NotebookNode, chapter: str) -> dict[str, str]:
    """What the built book numbers: label -> ``Fig. 2.1`` or ``Exercise 2.3``."""
    numbers, counts = {}, Counter()
    for cell in notebook.cells:
        figure = cell.metadata.get("mystnb", {}).get("figure")
        exercises = re.findall(r"^`{3,}\{exercise-start\}.*\n:label: *(\S+)", cell.source, re.MULTILINE)
        for label in [figure["name"]] if figure else exercises:
            kind = "Fig." if figure else "Exercise"
            counts[kind] += 1
            numbers[label] = f"{kind} {int(chapter[:2])}.{counts[kind]}"
    return numbers


def plain(text: str, numbers: Mapping[str, str], site: str | None = None) -> str:
    """Plain Markdown of MyST Markdown; ``numbers`` are those of :func:`numbered`."""

    def box(match: re.Match[str]) -> str:
        name, title, options, body = match["name"], match["title"], match["options"], match["body"]
        if name == "exercise-start":
            return f"### {numbers[re.search(r':label: *(.+)', options)[1]]}: {title}\n"
        if name == "solution-start":
            return f"#### Solution to {numbers[title]}\n"
        if name.endswith("-end"):
            return ""
        if "dropdown" in options:
            return f"<details><summary><b>{MarkdownIt().renderInline(title)}</b></summary>\n\n{body}\n</details>"
        return "\n".join(f"> {line}".rstrip() for line in (f"**{title}**", "", *body.splitlines()))

    def role(match: re.Match[str]) -> str:
        name, title, target = match[1], match[2], match[3] or match[4]
        if name == "doc":
            page = posixpath.normpath(posixpath.join("notebooks", target))
            title = title or posixpath.basename(page).replace("_", " ")
            return f"[{title}]({site}/{page}.html)" if site else f"*{title}*"
        if name == "cite:p":
            return f"({'; '.join(cited(key, '{}, {}') for key in target.split(','))})"
        if name == "cite:t":
            return cited(target, "{} ({})")
        return numbers[target] if name in ("numref", "ref") else f"`{target}`"

    return re.sub(r"\n{3,}", "\n\n", ROLE.sub(role, BOX.sub(box, text))).strip("\n")


def cited(key: str, form: str) -> str:
    """A link to a cited work: its authors and its year, set as ``form`` says."""
    entry = bibliography()[key]
    names = [person.rich_prelast_names + person.rich_last_names for person in entry.persons["author"]]
    last = [" ".join(map(str, name)) for name in names]
    text = form.format(f"{last[0]} et al." if len(last) > 2 else " and ".join(last), entry.fields.get("year", "n.d."))
    link = f"https://doi.org/{entry.fields['doi']}" if "doi" in entry.fields else entry.fields.get("url")
    return f"[{text}]({link})" if link else text


@cache
def bibliography() -> Mapping:
    """The works that the book cites, by their keys."""
    return parse_file(str(places.ROOT / "book" / "references.bib")).entries


def write(folder: Path, *, wheel: str = "", replace: bool = True, outputs: bool = False) -> list[Path]:
    """Write copies of all chapters, ``notebooks/NN_name.ipynb``.

    Args:
        wheel: as in :func:`copy`.
        replace: whether copies that are there are written again; what was changed in them is lost.
        outputs: whether they keep the outputs that the book keeps; bertviz' views are drawn in them.
    """
    from helpers import views  # with torch, which most of what is built does not need

    site, files = address.site(), [folder / "notebooks" / f"{chapter}.ipynb" for chapter in notebooks.chapters()]
    for file in files if replace else [file for file in files if not file.is_file()]:
        made = copy(file.stem, wheel)
        for cell in made.cells:
            if cell.cell_type == "code" and not outputs:
                cell.outputs, cell.execution_count = [], None
            for output in cell.get("outputs", ()):
                if "text/html" in output.get("data", {}):
                    output.data["text/html"] = views.with_frames(output.data["text/html"])
        if site:
            note = f"*This is a copy to run. Its page has the figures, too: {site}/notebooks/{file.stem}.html*"
            made.cells.insert(2 if wheel else 1, new_markdown_cell(note, id="page"))
        places.write(file, nbformat.writes(made) + "\n")
    return files


def checked(wheel: Path) -> Path:
    """A wheel of this version.

    Raises:
        BookError: for any other file, and for none.
    """
    if wheel.name != WHEEL or not wheel.is_file():
        raise places.BookError(
            f"{wheel} is no wheel of this version, {WHEEL}, or does not exist. Build it with: make wheel"
        )
    return wheel


def branch(folder: Path, wheel: Path) -> list[Path]:
    """Write what the branch ``launch`` holds: the copies, the wheel that they install, and what Binder makes of it.

    Without an address of a repository the copies install the wheel from where it lies in ``folder``.

    Raises:
        BookError: when the wheel is no wheel of this version.
    """
    environment = (places.ROOT / "environment.yml").read_text("utf-8")
    places.write(folder / wheel.name, checked(wheel).read_bytes())
    places.write(folder / "environment.lock", (places.ROOT / "environment.lock").read_text("utf-8"))
    places.write(folder / "environment.yml", re.sub(r"--editable \S+", f"./{wheel.name}[lab]", environment))
    return write(folder, wheel=address.raw(wheel.name) or str((folder / wheel.name).resolve()))
