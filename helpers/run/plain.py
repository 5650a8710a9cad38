"""Chapters in plain Markdown, for notebooks that know no roles and no directives: copies to launch, and those of a course.

The pages are built from notebooks in MyST Markdown. JupyterLab, the classic notebook and hosted notebooks show ``{doc}`` or
``:::{admonition}`` as they are typed. Here each becomes what these can show: a link, a citation with its year, a numbered
figure or exercise as in the built book, a quoted or a folded box. Links lead to the built pages when their address is known.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any

import nbformat
from markdown_it import MarkdownIt

from helpers import places
from helpers.run import contents
from helpers.run.failures import NotebookError

BIBLIOGRAPHY = places.ROOT / "book" / "references.bib"
HIDDEN = {"hide-input": "source_hidden", "hide-output": "outputs_hidden"}
"""Tags of the book, and what JupyterLab calls the same."""
_FENCE = re.compile(r"^(\s*)(`{3,}|:{3,}|~{3,})\s*(.*)$")
_DIRECTIVE = re.compile(r"^\{([\w:-]+)\}\s*(.*)$")
_OPTION = re.compile(r"^:([\w-]+):\s*(.*)$")
_ROLE = re.compile(r"\{([\w:.-]+)\}`([^`]+)`")
_EXPLICIT = re.compile(r"^(.*?)\s*<([^<>]+)>$", re.DOTALL)
_LABELLED = re.compile(r"\{(exercise(?:-start)?|math)\}(.*)\n:label: *(\S+)")
_SOLUTION = re.compile(r"^(?=#### Solution to )", re.MULTILINE)
_FORMULA = re.compile(r"\$\$.*?\$\$", re.DOTALL)


def rendered(notebook: nbformat.NotebookNode, chapter: str, site: str | None = None) -> nbformat.NotebookNode:
    """A copy of a chapter whose Markdown is plain; its code and outputs are as they were.

    A figure is followed by its number and caption, which notebooks do not show. Solutions stand under headings that
    JupyterLab folds, and what the page hides is hidden there.

    Args:
        chapter: ``02_surface_patterns``; its number is the first part of those of figures and exercises.
        site: address of the built book; without one there are no links to its pages.

    Raises:
        NotebookError: for a role or a directive that has no plain form here.
    """
    made = deepcopy(notebook)
    page = Page(chapter, site and site.rstrip("/"), numbers(notebook, chapter))
    made.cells = [cell for old in made.cells for cell in page.cells(old)]
    return made


def numbers(notebook: nbformat.NotebookNode, chapter: str) -> dict[str, tuple[str, str]]:
    """What the built book numbers: label -> what it is with its number, ``("Fig. 2.1", "")``, ``("Exercise 2.3", title)``."""
    counted = {kind: count(1) for kind in ("Fig.", "Exercise", "Equation")}
    first, found = int(chapter[:2]), {}
    for cell in notebook.cells:
        for kind, label, title in _labels(cell):
            found[label] = (f"{kind} {first}.{next(counted[kind])}", title)
    return found


def _labels(cell: nbformat.NotebookNode) -> Iterator[tuple[str, str, str]]:
    if figure := cell.metadata.get("mystnb", {}).get("figure"):
        yield "Fig.", figure["name"], ""
    if cell.cell_type == "markdown":
        for kind, title, label in _LABELLED.findall(cell.source):
            yield "Equation" if kind == "math" else "Exercise", label, title.strip()


@dataclass(frozen=True)
class Page:
    """A chapter that is made plain."""

    chapter: str
    site: str | None
    numbers: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def cells(self, cell: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
        """What becomes of one cell."""
        if cell.cell_type == "markdown":
            yield from self._told(cell)
            return
        tags = cell.metadata.get("tags", ())
        if hidden := {name: True for tag, name in HIDDEN.items() if tag in tags and "parameters" not in tags}:
            cell.metadata["jupyter"] = hidden
        yield cell
        if figure := cell.metadata.get("mystnb", {}).get("figure"):
            caption = f"**{self.numbers[figure['name']][0]}** {self.inline(figure['caption'])}"
            yield _markdown(caption, f"caption-{figure['name']}")

    def _told(self, cell: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
        """A cell of prose; from a solution's heading on it is one of its own, which can be folded."""
        parts = [part.strip("\n") for part in _SOLUTION.split(self.text(cell.source))]
        for number, part in enumerate(filter(None, parts)):
            folded = {"jp-MarkdownHeadingCollapsed": True} if _SOLUTION.match(part) else {}
            own = {} if number else dict(cell.metadata)
            yield _markdown(part, f"{cell['id']}-{number}" if number else cell["id"], **own, **folded)

    def text(self, source: str) -> str:
        """Plain Markdown of MyST Markdown: directives and the roles outside code."""
        said, prose, lines = [], [], source.split("\n")
        while lines:
            if not (fence := _FENCE.match(lines[0])):
                prose.append(lines.pop(0))
                continue
            said, prose = [*said, self.inline("\n".join(prose))], []
            body, lines = _to_the_end(fence[2], lines[1:])
            if directive := _DIRECTIVE.match(fence[3]):
                said += ["", self._directive(directive[1], directive[2].strip(), body), ""]
            else:
                said += [fence[0], *body, fence[1] + fence[2]]
        return re.sub(r"\n{3,}", "\n\n", "\n".join([*said, self.inline("\n".join(prose))]))

    # ------------------------------------------------------------------------------------ directives

    def _directive(self, name: str, argument: str, body: Sequence[str]) -> str:
        options = {}
        while body and (option := _OPTION.match(body[0])):
            options[option[1]], body = option[2], body[1:]
        label, text = options.get("label", ""), "\n".join(body)
        if name in ("exercise-end", "solution-end"):
            return ""
        if name in ("exercise", "exercise-start"):
            return f"### {self.numbers[label][0]}: {self.inline(argument)}\n\n{self.text(text)}"
        if name == "solution-start":
            return f"#### {self._solution(argument)}\n\n{self.text(text)}"
        if name == "solution":
            return _folded(self._solution(argument), self.text(text))
        if name == "math":
            tag = f" \\tag{{{self._number(label)}}}" if label else ""
            return f"$$\n{text.strip()}{tag}\n$$"
        if name == "characters":
            box = _quoted if "open" in options else _folded
            return box("What we know of these heads so far", _cards(argument, options.get("model", "minilm")))
        if name not in BOXES:
            raise NotebookError(f"{self.chapter}: the directive {{{name}}} has no form in plain Markdown.")
        box = _folded if "dropdown" in options.get("class", name) else _quoted
        named = argument if name in ("admonition", "dropdown") else name.capitalize()
        untitled = "" if named == argument or not argument else f"{argument}\n"
        return box(self.inline(named), self.text(untitled + text))

    def _solution(self, label: str) -> str:
        return f"Solution to {self.numbers[label][0]}"

    def _number(self, label: str) -> str:
        return self.numbers[label][0].split()[-1]

    # ------------------------------------------------------------------------------------ roles

    def inline(self, text: str) -> str:
        """Plain Markdown of text with roles."""
        return _ROLE.sub(lambda found: self._role(found[1], found[2]), text)

    def _role(self, name: str, content: str) -> str:
        if name not in ROLES:
            raise NotebookError(f"{self.chapter}: the role {{{name}}} has no form in plain Markdown.")
        return ROLES[name](self, content)

    def _linked(self, text: str, page: str, anchor: str = "") -> str:
        if not self.site:
            return text
        return f"[{text}]({self.site}/{page}.html{anchor and '#' + anchor})"

    def _doc(self, content: str) -> str:
        title, target = _explicit(content)
        page = posixpath.normpath(posixpath.join("notebooks", target))
        return self._linked(title or title_of(page), page) if self.site else f"*{title or title_of(page)}*"

    def _ref(self, content: str) -> str:
        title, label = _explicit(content)
        if label not in self.numbers:
            raise NotebookError(f"{self.chapter}: it refers to {label!r}, which is no figure or exercise of its own.")
        return self._linked(title or self.numbers[label][0], f"notebooks/{self.chapter}", label)

    def _eq(self, label: str) -> str:
        return self._linked(f"({self._number(label)})", f"notebooks/{self.chapter}", f"equation-{label}")

    def _code(self, content: str) -> str:
        name = content.removeprefix("~")
        return self._linked(f"`{name}`", contents.reference(name), name)

    def _term(self, content: str) -> str:
        title, term = _explicit(content)
        return self._linked(title or term, "book/glossary", f"term-{term.replace(' ', '-')}")

    def _cited(self, keys: str) -> str:
        return "; ".join(_work(*citation(key), "{} ({})") for key in keys.split(","))

    def _cited_apart(self, keys: str) -> str:
        return f"({'; '.join(_work(*citation(key), '{}, {}') for key in keys.split(','))})"


ROLES: dict[str, Callable[[Page, str], str]] = {
    "doc": Page._doc,
    "numref": Page._ref,
    "ref": Page._ref,
    "eq": Page._eq,
    "term": Page._term,
    "math": lambda _, formula: f"${formula}$",
    "cite:t": Page._cited,
    "cite:p": Page._cited_apart,
    **dict.fromkeys(("func", "meth", "class", "mod", "data", "attr", "exc"), Page._code),
}
"""Roles, and what is made of their content."""

BOXES = ("admonition", "dropdown", "note", "tip", "hint", "important", "warning", "caution", "seealso", "margin")


def _to_the_end(fence: str, lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """The lines of a block that this fence has opened, and those after its end."""
    for n, line in enumerate(lines):
        closed = line.strip()
        if closed.startswith(fence) and not closed.strip(fence[0]):
            return [*lines[:n]], [*lines[n + 1 :]]
    raise NotebookError(f"A block that {fence} opens has no end: {' '.join(lines)[:80]} …")


def _markdown(text: str, name: str, **metadata: Any) -> nbformat.NotebookNode:
    return nbformat.v4.new_markdown_cell(text, metadata=metadata, id=name)


def _quoted(title: str, body: str) -> str:
    """A box that is open: a quotation. Formulas are put on one line, or the marks of the quotation would be read as part of them."""
    body = _FORMULA.sub(lambda found: " ".join(found[0].split()), body.strip("\n"))
    return "\n".join(f"> {line}".rstrip() for line in (f"**{title}**", "", *body.split("\n")))


def _folded(title: str, body: str) -> str:
    """A box to unfold, which notebooks show as browsers do."""
    said = MarkdownIt().renderInline(title)
    return f"<details><summary><b>{said}</b></summary>\n\n{body.strip(chr(10))}\n\n</details>"


def _cards(upto: str, model: str) -> str:
    """The margin cards of the heads that come back, as a list."""
    from helpers.record import characters  # takes seconds, and most commands write no copies

    said = []
    for one in characters.cards(model, upto):
        known = (f"  - **{chapter}** {fact}" for chapter, fact in one.facts.items() if chapter <= upto)
        said += [f"- *{one.label}*", *known]
    return "\n".join(said)


def _explicit(content: str) -> tuple[str, str]:
    """``text <target>`` as both; a target alone has no text."""
    found = _EXPLICIT.match(content)
    return (found[1], found[2]) if found else ("", content.strip())


@lru_cache(maxsize=256)
def title_of(page: str) -> str:
    """The title of a page of the book, ``book/glossary`` or ``notebooks/02_surface_patterns``.

    Raises:
        NotebookError: when there is no such page.
    """
    file = places.ROOT / page
    if (written := file.with_name(f"{file.name}.md")).is_file():
        text = written.read_text("utf-8")
    elif (chapter := file.with_name(f"{file.name}.ipynb")).is_file():
        text = nbformat.read(chapter, as_version=4).cells[0].source
    else:
        raise NotebookError(f"There is no page {page!r}.")
    return re.search(r"^# (.+)$", text, re.MULTILINE)[1].strip()


# ---------------------------------------------------------------------------------------- citations


def citation(key: str) -> tuple[str, str, str]:
    """Authors, year and address (or "") of a work: ``("Clark et al.", "2019", "https://doi.org/…")``.

    Raises:
        NotebookError: for a key that the bibliography does not have.
    """
    entries = _bibliography()
    if key not in entries:
        raise NotebookError(f"{BIBLIOGRAPHY.name} has no work {key!r}.")
    entry = entries[key]
    last = [" ".join(map(str, one.rich_prelast_names + one.rich_last_names)) for one in entry.persons["author"]]
    names = f"{last[0]} et al." if len(last) > 2 else " and ".join(last)
    doi = entry.fields.get("doi")
    return names, entry.fields.get("year", "n.d."), f"https://doi.org/{doi}" if doi else entry.fields.get("url", "")


@lru_cache(maxsize=1)
def _bibliography() -> Mapping[str, Any]:
    with places.extra("lab", "Citations in plain Markdown"):
        from pybtex.database import parse_file

    return parse_file(str(BIBLIOGRAPHY)).entries


def _work(authors: str, year: str, address: str, form: str) -> str:
    said = form.format(authors, year)
    return f"[{said}]({address})" if address else said
