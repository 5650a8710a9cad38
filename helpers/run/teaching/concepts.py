"""What the page *Teach with it* lists: which chapter builds on which, and the questions to discuss of all chapters."""

from collections.abc import Mapping, Sequence

from helpers.run import notebooks
from helpers.run.teaching import form
from helpers.run.templates import template

ACROSS, DOWN = 178, 92
"""Pixels between chapters of the map, and between its rows."""


def concept_map() -> str:
    """The chapters and what each builds on directly, as SVG for a page in ``book/``."""
    return drawn({chapter: form.of(chapter).before for chapter in notebooks.chapters()})


def drawn(before: Mapping[str, Sequence[str]]) -> str:
    """A map of chapters: a row for each depth, a line to each chapter that one builds on and that no other one leads to.

    Args:
        before: chapter -> the chapters that it builds on, each of which stands before it.
    """
    behind: dict[str, set[str]] = {}
    direct: dict[str, list[str]] = {}
    rows: dict[int, list[str]] = {}
    depth: dict[str, int] = {}
    for chapter, needed in before.items():
        behind[chapter] = set(needed).union(*(behind[one] for one in needed))
        direct[chapter] = [one for one in needed if not any(one in behind[other] for other in needed)]
        depth[chapter] = 1 + max((depth[one] for one in needed), default=-1)
        rows.setdefault(depth[chapter], []).append(chapter)
    across = max(map(len, rows.values()))
    places = {
        chapter: (int(ACROSS * (column + (across - len(row)) / 2)), DOWN * number)
        for number, row in rows.items()
        for column, chapter in enumerate(row)
    }
    return template("course_map.svg.j2").render(
        places=places, direct=direct, width=across * ACROSS, height=len(rows) * DOWN
    )


def discussion() -> str:
    """The questions to discuss of every chapter, each with what to listen for."""
    parts = []
    for told in map(form.of, notebooks.chapters()):
        asked = "\n".join(f"- **{one['ask']}** {one['listen']}" for one in told.taught["discussion"])
        parts.append(f":::{{dropdown}} {told.number}. {told.title}\n{asked}\n:::")
    return "\n\n".join(parts)


def lessons() -> str:
    """A table of what each chapter needs before it and takes."""
    lines = ["| chapter | after | read | run | predictions | with a check |", "| --- | --- | --- | --- | --- | --- |"]
    for told in map(form.of, notebooks.chapters()):
        after = ", ".join(str(int(one[:2])) for one in told.before) or "none"
        run, checked = told.run.split(" on two cores")[0], sum(bool(one["name"]) for one in told.exercises)
        link = f"{{doc}}`{told.number} <../notebooks/{told.chapter}>`"
        predicted = len(told.predictions)
        lines.append(f"| {link} | {after} | {told.minutes} min | {run} | {predicted} | {checked} exercises |")
    return "\n".join(lines)
