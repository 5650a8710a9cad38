"""Chapters in plain Markdown, for notebooks that know no roles and no directives: copies to launch, and those of a course.

The pages are built from notebooks in MyST Markdown, which hosted notebooks show as it is typed. Here each role becomes a
link, a citation with its year or the number of a figure, and each directive a quoted or a folded box. Links lead to the
built pages when their address is known.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

import nbformat
from markdown_it import MarkdownIt
from nbformat import NotebookNode

from helpers import places
from helpers.run import contents

SOLUTION = "solution"
"""Tag of the cells that belong to the solution of an exercise."""
HIDDEN = {"hide-input": "source_hidden", "hide-output": "outputs_hidden"}
"""Tags of the book, and what JupyterLab calls the same."""
_GATE = "\f"
"""Stands where a solution begins and where it ends, until a cell is divided there."""
_BLOCK = re.compile(
    r"^(?P<fence>`{3,}|:{3,})(?:\{(?P<name>[\w-]+)\} *(?P<argument>.*)|[^`\n]*)\n(?P<options>(?::[\w-]+:.*\n)*)"
    r"(?P<body>(?:.*\n)*?)(?P=fence)[ \t]*$",
    re.MULTILINE,
)
_ROLE = re.compile(r"\{([\w:.-]+)\}`([^`]+)`")
_LABELLED = re.compile(r"\{(exercise(?:-start)?|math)\}(.*)\n:label: *(\S+)")


def rendered(notebook: NotebookNode, chapter: str, site: str | None = None) -> NotebookNode:
    """A copy of a chapter whose Markdown is plain; its code and outputs are as they were.

    A figure is followed by its number and caption, which notebooks do not show. What the page hides is hidden, and the
    cells of a solution have the tag :data:`SOLUTION`, under headings that JupyterLab folds.

    Args:
        notebook: a chapter as it is in git.
        chapter: ``02_surface_patterns``; its number is the first part of those of figures and exercises.
        site: address of the built book; without one there are no links to its pages.

    Raises:
        BookError: for a page, a figure or a cited work that does not exist.
    """
    page = Page(chapter, site and site.rstrip("/"), numbers(notebook, chapter))
    made = deepcopy(notebook)
    made.cells = list(page.cells(made.cells))
    return made


def numbers(notebook: NotebookNode, chapter: str) -> dict[str, tuple[str, str]]:
    """What the built book numbers: label -> what it is with its number, and its title: ``("Exercise 2.3", title)``."""
    counted = {kind: count(1) for kind in ("Fig.", "Exercise", "Equation")}
    labels = []
    for cell in notebook.cells:
        if figure := cell.metadata.get("mystnb", {}).get("figure"):
            labels.append(("Fig.", figure["name"], ""))
        elif cell.cell_type == "markdown":
            for kind, title, label in _LABELLED.findall(cell.source):
                labels.append(("Equation" if kind == "math" else "Exercise", label, title.strip()))
    return {label: (f"{kind} {int(chapter[:2])}.{next(counted[kind])}", title) for kind, label, title in labels}


@dataclass(frozen=True)
class Page:
    """A chapter that is made plain: its name, the address of the book, and the numbers of its figures and exercises."""

    chapter: str
    site: str | None
    numbers: Mapping[str, tuple[str, str]]

    def cells(self, cells: list[NotebookNode]) -> Iterator[NotebookNode]:
        """The cells in plain Markdown; one in which a solution begins or ends becomes several."""
        solution = False
        for cell in cells:
            texts = []
            if cell.cell_type == "markdown":
                texts = self.text(cell.source).split(_GATE)
            else:
                tags = cell.metadata.setdefault("tags", [])
                tags += [SOLUTION] * solution
                hidden = {name: True for tag, name in HIDDEN.items() if tag in tags and "parameters" not in tags}
                if hidden:
                    cell.metadata["jupyter"] = hidden
                yield cell
                if figure := cell.metadata.get("mystnb", {}).get("figure"):
                    texts = [f"**{self.numbers[figure['name']][0]}** {self.inline(figure['caption'])}"]
            for place, text in enumerate(texts):
                solution ^= place > 0
                if text.strip():
                    folded = {"jp-MarkdownHeadingCollapsed": True} if text.startswith("#### Solution") else {}
                    name = f"{cell['id']}-{place}" if place or cell.cell_type == "code" else cell["id"]
                    about = {"tags": [SOLUTION], **folded} if solution else {}
                    yield nbformat.v4.new_markdown_cell(text.strip("\n"), metadata=about, id=name)

    def text(self, source: str) -> str:
        """Plain Markdown of MyST Markdown."""
        done, parts = 0, []
        for block in _BLOCK.finditer(source):
            parts.append(self.inline(source[done : block.start()]))
            parts.append(f"\n\n{self._directive(block)}\n\n" if block["name"] else block[0])
            done = block.end()
        parts.append(self.inline(source[done:]))
        return re.sub(rf"\n*{_GATE}\n*", _GATE, re.sub(r"\n{3,}", "\n\n", "".join(parts)).strip("\n"))

    def _directive(self, block: re.Match[str]) -> str:
        name, argument = block["name"], block["argument"].strip()
        options = dict(re.findall(r"^:([\w-]+): *(.*)$", block["options"], re.MULTILINE))
        text, title = self.text(block["body"]), self.numbers.get(options.get("label", argument), ("", ""))[0]
        if name in ("exercise", "exercise-start"):
            return f"### {title}: {self.inline(argument)}\n\n{text}"
        if name in ("exercise-end", "solution-end"):
            return _GATE * (name == "solution-end")
        if name == "solution-start":
            return f"{_GATE}#### Solution to {title}\n\n{text}"
        if name == "math":
            return f"$$\n{text.strip()}" + (f" \\tag{{{title.split()[-1]}}}" if title else "") + "\n$$"
        heading = f"Solution to {title}" if name == "solution" else self.inline(argument) or name.capitalize()
        if "dropdown" not in options.get("class", name):
            one_line = re.sub(r"\$\$.*?\$\$", lambda formula: " ".join(formula[0].split()), text, flags=re.DOTALL)
            return "\n".join(f"> {line}".rstrip() for line in (f"**{heading}**", "", *one_line.split("\n")))
        folded = f"<details><summary><b>{MarkdownIt().renderInline(heading)}</b></summary>\n\n{text}\n\n</details>"
        return f"{_GATE}{folded}{_GATE}" if name == "solution" else folded

    def inline(self, text: str) -> str:
        """Plain Markdown of text with roles."""
        return _ROLE.sub(lambda role: self._role(role[1], role[2]), text)

    def _role(self, name: str, content: str) -> str:
        titled = re.fullmatch(r"(.*?)\s*<([^<>]+)>", content, re.DOTALL)
        title, target = (titled[1], titled[2]) if titled else ("", content.strip())
        if name == "doc":
            page = posixpath.normpath(posixpath.join("notebooks", target))
            title = title or title_of(page)
            return self._linked(title, page) if self.site else f"*{title}*"
        if name in ("numref", "ref", "eq"):
            if target not in self.numbers:
                raise places.BookError(f"{self.chapter} refers to {target!r}, which it does not have.")
            number = self.numbers[target][0]
            own = f"({number.split()[-1]})" if name == "eq" else title or number
            return self._linked(own, f"notebooks/{self.chapter}", f"equation-{target}" if name == "eq" else target)
        if name == "cite:p":
            return f"({'; '.join(_work(key, '{}, {}') for key in target.split(','))})"
        if name == "cite:t":
            return "; ".join(_work(key, "{} ({})") for key in target.split(","))
        if name == "math":
            return f"${content}$"
        target = target.removeprefix("~")
        return self._linked(f"`{target}`", contents.reference(target), target)

    def _linked(self, text: str, page: str, anchor: str = "") -> str:
        return f"[{text}]({self.site}/{page}.html{anchor and '#' + anchor})" if self.site else text


@lru_cache(maxsize=256)
def title_of(page: str) -> str:
    """The title of a page of the book, ``book/glossary`` or ``notebooks/02_surface_patterns``.

    Raises:
        BookError: when there is no such page.
    """
    written, chapter = places.ROOT / f"{page}.md", places.ROOT / f"{page}.ipynb"
    if not written.is_file() and not chapter.is_file():
        raise places.BookError(f"There is no page {page!r}.")
    source = written.read_text("utf-8") if written.is_file() else nbformat.read(chapter, as_version=4).cells[0].source
    return re.search(r"^# (.+)$", source, re.MULTILINE)[1].strip()


@lru_cache(maxsize=1)
def _bibliography() -> Mapping[str, Any]:
    with places.extra("lab", "Citations in plain Markdown"):
        from pybtex.database import parse_file

    return parse_file(str(places.ROOT / "book" / "references.bib")).entries


def _work(key: str, form: str) -> str:
    """A cited work with a link: authors and year, set as ``form`` says."""
    if key not in _bibliography():
        raise places.BookError(f"The bibliography has no work {key!r}.")
    entry = _bibliography()[key]
    last = [
        " ".join(map(str, person.rich_prelast_names + person.rich_last_names)) for person in entry.persons["author"]
    ]
    authors = f"{last[0]} et al." if len(last) > 2 else " and ".join(last)
    doi = entry.fields.get("doi")
    address = f"https://doi.org/{doi}" if doi else entry.fields.get("url", "")
    text = form.format(authors, entry.fields.get("year", "n.d."))
    return f"[{text}]({address})" if address else text
