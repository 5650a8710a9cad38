"""What the page *Teach with it* lists: which chapter builds on which, and the questions to discuss of all chapters."""

from collections.abc import Mapping, Sequence
from html import escape

from helpers.run import notebooks
from helpers.run.teaching import form

ACROSS, DOWN, WIDTH, HEIGHT, GAP = 178, 92, 162, 48, 8
"""Pixels: of the grid, of a chapter's box, and around the map."""


def concept_map() -> str:
    """The chapters and what each builds on directly, as SVG for a page in ``book/``."""
    before = {chapter: form.of(chapter).before for chapter in notebooks.chapters()}
    return drawn(directly(before), "../notebooks/{}.html")


def directly(before: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """What each chapter builds on, without what those build on already."""
    behind: dict[str, set[str]] = {}
    for chapter in sorted(before):
        behind[chapter] = set(before[chapter]).union(*(behind[one] for one in before[chapter]))
    return {c: [b for b in found if not any(b in behind[other] for other in found)] for c, found in before.items()}


def rows(before: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Chapters by how many others have to be read one after the other before them."""
    depth: dict[str, int] = {}
    for chapter in sorted(before):
        depth[chapter] = 1 + max((depth[one] for one in before[chapter]), default=-1)
    return [[c for c in sorted(depth) if depth[c] == row] for row in range(max(depth.values()) + 1)]


def drawn(before: Mapping[str, Sequence[str]], address: str) -> str:
    """A map of chapters: a row for each depth, a line to each chapter that one builds on directly.

    Args:
        before: chapter -> chapters.
        address: of a chapter's page, with ``{}`` in place of its name.
    """
    grid = rows(before)
    across = max(map(len, grid))
    width, height = across * ACROSS + GAP, len(grid) * DOWN
    at = {
        chapter: (GAP + ACROSS * (column + (across - len(row)) / 2), GAP + DOWN * number)
        for number, row in enumerate(grid)
        for column, chapter in enumerate(row)
    }
    lines = [_line(at[one], at[chapter]) for chapter, found in before.items() for one in found]
    boxes = [_box(chapter, *at[chapter], address.format(chapter)) for chapter in before]
    told = escape(
        "; ".join(f"{c[:2]} builds on {', '.join(b[:2] for b in found)}" for c, found in before.items() if found)
    )
    head = f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="group" aria-label="{told}">'
    return f'<div class="concept-map">\n{head}\n' + "\n".join([*lines, *boxes]) + "\n</svg>\n</div>"


def _line(start: tuple[float, float], end: tuple[float, float]) -> str:
    x1, y1, x2, y2 = start[0] + WIDTH / 2, start[1] + HEIGHT, end[0] + WIDTH / 2, end[1]
    middle = (y1 + y2) / 2
    curve = f"M{x1:g} {y1:g} C{x1:g} {middle:g} {x2:g} {middle:g} {x2:g} {y2:g}"
    return f'<path d="{curve}" fill="none" stroke="currentColor" stroke-opacity="0.45" stroke-width="1.5"/>'


def _box(chapter: str, x: float, y: float, address: str) -> str:
    number, name = chapter[:2], chapter[3:].replace("_", " ")
    frame = f'x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6"'
    middle = x + WIDTH / 2
    return (
        f'<a href="{address}"><rect {frame} fill="var(--pst-color-background, Canvas)" stroke="currentColor"/>'
        f'<text x="{middle:g}" y="{y + 20:g}" text-anchor="middle" font-size="14" font-weight="700" fill="currentColor">{number}</text>'
        f'<text x="{middle:g}" y="{y + 38:g}" text-anchor="middle" font-size="13" fill="currentColor">{name}</text></a>'
    )


def discussion() -> str:
    """The questions to discuss of every chapter, each with what to listen for."""
    return "\n\n".join(map(_bank, notebooks.chapters()))


def _bank(chapter: str) -> str:
    asked = "\n".join(f"- **{one['ask']}** {one['listen']}" for one in form.of(chapter).taught["discussion"])
    return f":::{{dropdown}} {int(chapter[:2])}. {form.of(chapter).title}\n{asked}\n:::"


def lessons() -> str:
    """A table of what each chapter needs before it and takes."""
    lines = ["| chapter | after | read | run | predictions | with a check |", "| --- | --- | --- | --- | --- | --- |"]
    return "\n".join([*lines, *map(_lesson, notebooks.chapters())])


def _lesson(chapter: str) -> str:
    told = form.of(chapter)
    after = ", ".join(str(int(one[:2])) for one in told.before) or "none"
    checked = sum(one.kind == "Build" for one in told.exercises)
    run = told.run.split(" on two cores")[0]
    link = f"{{doc}}`{told.number} <../notebooks/{chapter}>`"
    return f"| {link} | {after} | {told.minutes} min | {run} | {len(told.predictions)} | {checked} exercises |"
