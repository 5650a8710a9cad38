"""The scoreboard: what the papers report, beside what was recorded here, judged by a few stated rules.

It is made from the chapters' findings (:func:`helpers.chapters.scoreboard`). Nothing here is typed by hand: the papers'
numbers are read from ``data/papers.yml``, ours from ``data/results``, and the verdicts are computed from both
whenever the page is built.
"""

import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from helpers import places
from helpers.record import results
from helpers.record.results import ResultError, Table
from helpers.record.verdicts import (
    ABSENT,
    DECIDED,
    FIRM,
    MISSING,
    RULES,
    UNDECIDED,
    VERDICTS,
    Cell,
    Finding,
    Judged,
    judge,
    overall,
)

PROFILES = ("book", "full")
REASONS = {
    "setup": "the set-up of the paper's experiment (sizes, lengths, thresholds); ours stands in the parameters of each record",
    "background": "a fact about a model or a tokenizer, not about its attention",
    "definition": "a definition or a procedure, which the chapter follows or discusses",
    "same": "the same number as another claim, which is in the tables",
    "elsewhere": "needs a model or a system that this book does not have",
    "undefined": "the source does not say closely enough what was counted",
}
"""Why a claim has no number of ours beside it: the names that chapters' ``NOT_MEASURED`` uses, and what they mean."""


@dataclass(frozen=True)
class Run:
    """Whose numbers: a profile, a model, and which of the model's controls (``@random``), recorded with it; none for the model itself."""

    profile: str
    model: str
    control: str = ""

    @property
    def label(self) -> str:
        return f"{self.model}{self.control}, {self.profile}"


@dataclass(frozen=True)
class Line:
    """A finding with what was recorded for it.

    Attributes:
        cells: ours, then those of the controls that are networks; what other controls say stands in our cell's text.
        deciding: the verdict in the run that counts, for each model that has one.
    """

    finding: Finding
    cells: Mapping[Run, Cell]
    deciding: Mapping[str, str]

    @property
    def verdict(self) -> str:
        """Over all models."""
        return overall(self.deciding.values())

    @property
    def told(self) -> str:
        """The verdict, and how many of the models that have a number decide it."""
        there = [verdict for verdict in self.deciding.values() if verdict not in (ABSENT, MISSING)]
        decide = sum(verdict in DECIDED and verdict != UNDECIDED for verdict in there)
        return f"{self.verdict}, {decide}{FIRM}of{FIRM}{len(there)}" if self.verdict in DECIDED else self.verdict


def records(chapter: str, model: str | None = None) -> dict[Run, dict[str, Any]]:
    """Every record of a chapter, of all models or of one: book first, then full."""
    found = {profile: results.runs(chapter[3:], profile=profile) for profile in PROFILES}
    named = ((Run(profile, name), record) for profile, runs in found.items() for name, record in runs.items())
    return {run: record for run, record in named if model in (None, run.model)}


def line(finding: Finding, judged: Mapping[Run, Judged]) -> Line:
    """A finding's verdict over models, from what each run's record says."""
    cells, controls = {}, {}
    for run, one in judged.items():
        networks = {name: cell for name, cell in one.controls.items() if name.startswith("@")}
        rivals = [f"{name}: {cell.text}" for name, cell in one.controls.items() if name not in networks]
        cells[run] = replace(one.ours, text="; ".join([one.ours.text, *rivals]))
        if one.ours.verdict not in (ABSENT, MISSING):
            controls |= {replace(run, control=name): cell for name, cell in networks.items()}
    deciding = decisive([run for run, cell in cells.items() if cell.verdict not in (ABSENT, MISSING)] or cells)
    shown = {run: cell for run, cell in controls.items() if replace(run, control="") in deciding}
    return Line(finding, {**cells, **shown}, {run.model: cells[run].verdict for run in deciding})


def decisive(runs: Iterable[Run]) -> list[Run]:
    """The run that counts for each model: on real corpora if there is one, else on the book's own."""
    ordered = sorted(runs, key=lambda run: PROFILES.index(run.profile))
    return list({run.model: run for run in ordered}.values())


# ---------------------------------------------------------------------------------------- all chapters


@dataclass(frozen=True)
class Scoreboard:
    """The findings of several chapters, judged on all that is recorded.

    Attributes:
        modules: name of a notebook, ``04_dependency_heads`` -> its chapter's ``findings`` module, in the order of the book.
            A module has ``FINDINGS``, ``findings(values)`` and ``NOT_MEASURED`` (name in :data:`REASONS` -> claims, as
            ``clark2019 layers, heads_total``); it may have ``TITLE`` and ``INTRO``, the heading and the first words of its part of the page.
    """

    modules: Mapping[str, ModuleType]

    def chapters(self) -> list[str]:
        """Chapters with findings in order, as names of notebooks."""
        return [chapter for chapter in self.modules if self.findings(chapter)]

    def findings(self, chapter: str | None = None) -> list[Finding]:
        """Every row of the scoreboard, or of one chapter.

        Raises:
            ResultError: for an unknown chapter.
        """
        if chapter is not None and chapter not in self.modules:
            raise ResultError(f"There is no chapter {chapter!r} with findings; there are {', '.join(self.modules)}.")
        named = self.modules if chapter is None else [chapter]
        return [one for name in named for one in self.modules[name].FINDINGS if one.claim.rule is not None]

    def not_measured(self) -> dict[str, list[tuple[str, str]]]:
        """Reason -> (paper, claim) of every claim that has no number of ours beside it.

        Raises:
            ResultError: for an unknown reason.
        """
        listed: dict[str, list[tuple[str, str]]] = {reason: [] for reason in REASONS}
        for chapter, module in self.modules.items():
            for reason, claims in module.NOT_MEASURED.items():
                if reason not in listed:
                    raise ResultError(f"{chapter}: there is no reason {reason!r}; there are {', '.join(REASONS)}.")
                for key, names in (claim.split(maxsplit=1) for claim in claims):
                    listed[reason] += [(key, name) for name in names.split(", ")]
        return listed

    def lines(self, chapter: str, model: str | None = None) -> list[Line]:
        """The scoreboard of a chapter, of all recorded models or of one."""
        return self._lines(chapter, records(chapter, model))

    def _lines(self, chapter: str, stored: Mapping[Run, Mapping[str, Any]]) -> list[Line]:
        module = self.modules[chapter]
        judged = {run: module.findings(record["values"]) for run, record in stored.items()}
        by_finding = [{run: found[n] for run, found in judged.items()} for n in range(len(module.FINDINGS))]
        both = zip(module.FINDINGS, by_finding, strict=True)
        return [line(finding, ours) for finding, ours in both if finding.claim.rule is not None]

    # ------------------------------------------------------------------------------------ tables

    def headlines(self) -> Table:
        """What the chapters claim themselves, with the numbers of the runs on the book's own texts, and the controls."""
        rows = []
        for chapter, module in self.modules.items():
            for record in results.runs(chapter[3:], profile="book").values():
                for one in judge(getattr(module, "HEADLINES", ()), record["values"]):
                    against = [f"{name}: {cell.text}" for name, cell in one.controls.items()]
                    rows.append(
                        [
                            linked(chapter),
                            one.finding.text,
                            one.ours.text,
                            "; ".join(against) or one.finding.uncontrolled,
                        ]
                    )
        return Table(["chapter", "headline", "ours", "control"], rows)

    def tally(self, model: str | None = None) -> dict[str, Counter[str]]:
        """Chapter -> verdict -> number of findings."""
        return {chapter: Counter(line.verdict for line in self.lines(chapter, model)) for chapter in self.chapters()}

    def by_run(self) -> Table:
        """Findings by run and mark, control networks included; a finding without a number in a run is left out there."""
        counts: dict[Run, Counter[str]] = {}
        for found in (one for chapter in self.chapters() for one in self.lines(chapter)):
            for run, cell in found.cells.items():
                counts.setdefault(run, Counter())[cell.verdict] += 1
        order = sorted(counts, key=lambda run: (run.control, PROFILES.index(run.profile), run.model))
        rows = [[run.label, *(counts[run][v] for v in DECIDED)] for run in order]
        return Table(["run", *(f"{mark} {v}" for v, mark in DECIDED.items())], rows)

    def summary(self, model: str | None = None, *, plain: bool = False) -> Table:
        """Findings by chapter and verdict, with a line for all.

        Args:
            plain: without references to the chapter's page and to its part of this page.
        """
        counts = self.tally(model)
        total = sum(counts.values(), Counter())
        shown = [verdict for verdict in VERDICTS if total[verdict]]
        rows = []
        for chapter, found in counts.items():
            number, name = chapter[:2], titled(chapter)
            if not plain:
                number, name = linked(chapter), f"{{ref}}`{name} <{label(chapter)}>`"
            rows.append([number, name, *(found[verdict] for verdict in shown)])
        return Table(["chapter", "", *shown], [*rows, ["all", "", *(total[verdict] for verdict in shown)]])

    def rules(self) -> Table:
        """The rules, each with the number of findings it judges."""
        used = Counter(finding.claim.rule for finding in self.findings())
        rows = [[name, rule.__doc__, used[name]] for name, rule in RULES.items() if used[name]]
        return Table(["rule", "what it asks", "findings"], rows)

    def reasons(self) -> Table:
        """Why claims have no number of ours beside them: reason, how many, which."""
        rows = []
        for reason, claims in self.not_measured().items():
            which = (f"{{cite:t}}`{key}`: {_names(claims, key)}" for key in dict(claims))
            rows += [[REASONS[reason], len(claims), "; ".join(which)]] if claims else []
        return Table(["reason", "claims", "which"], rows)

    # ------------------------------------------------------------------------------------ the page

    def chapter_text(self, chapter: str) -> str:
        """A chapter's part of the page in Markdown: whose numbers these are, and a table for each paper and model."""
        stored = records(chapter)
        found = self._lines(chapter, stored)
        parts = [f"Chapter {linked(chapter)}. " + (_told(stored) or "Nothing is recorded yet.")]
        for key, model in dict.fromkeys(
            (one.finding.claim.paper, one.finding.claim.source["model"]) for one in found
        ):
            rows = [
                one for one in found if (one.finding.claim.paper, one.finding.claim.source["model"]) == (key, model)
            ]
            data = "; ".join(dict.fromkeys(one.finding.claim.source["data"] for one in rows))
            parts += [f"{{cite:t}}`{key}`: {model}. Their data: {data}.", compact(rows)._repr_markdown_()]
        return "\n\n".join(parts)

    def twelve(self) -> Table:
        """The findings of ``data/twelve.yml``, in the words to tell them: survived, taken away by a control, undecided.

        Raises:
            ResultError: for a finding that is not on the scoreboard.
        """
        found, named = {}, {chapter[3:]: chapter for chapter in self.modules}
        for row in yaml.safe_load((places.book_data() / "twelve.yml").read_text("utf-8")):
            lines = [one for one in self.lines(named[row["chapter"]]) if one.finding.text == row["finding"]]
            if not lines:
                raise ResultError(f"data/twelve.yml: the scoreboard has no finding {row['finding']!r}.")
            said = replace(lines[0].finding, text=f"{row['say']} ({linked(named[row['chapter']])})")
            found.setdefault(lines[0].verdict, []).append(replace(lines[0], finding=said))
        return compact([line for verdict in VERDICTS for line in found.get(verdict, ())])

    def sections(self) -> str:
        """The page's part of every chapter in Markdown: label, heading, what its findings are about, tables."""
        return "\n\n".join(self._section(chapter) for chapter in self.chapters())

    def _section(self, chapter: str) -> str:
        module = self.modules[chapter]
        title = getattr(module, "TITLE", titled(chapter))
        counts = Counter(line.verdict for line in self.lines(chapter))
        summed = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
        told = [
            getattr(module, "INTRO", ""),
            f"::::{{dropdown}} {counts.total()} findings: {summed}",
            self.chapter_text(chapter),
            "::::",
        ]
        return f"({label(chapter)})=\n## Chapter {int(chapter[:2])}: {title}\n\n" + "\n\n".join(filter(None, told))

    def sources(self) -> list[Path]:
        """Every file that the page is made from."""
        roots = dict.fromkeys((places.results(), places.book_data() / "results"))
        names = {chapter[3:] for chapter in self.modules}
        found = (f for root in roots for profile in PROFILES for f in (root / profile).glob("*/*.json"))
        stored = [file for file in found if file.stem in names]
        written = [Path(module.__file__) for module in self.modules.values()]
        return [*written, toc(), places.book_data() / "papers.yml", *sorted(stored)]

    # ------------------------------------------------------------------------------------ the terminal

    def as_text(self, model: str | None = None, chapter: str | None = None, *, width: int | None = None) -> str:
        """The scoreboard for a terminal: a table a chapter, and the summary.

        Args:
            model: show this model's runs only.
            chapter: show this chapter only, by its number or name.
            width: of the terminal (default: as it is).

        Raises:
            ResultError: for a chapter that is not on the scoreboard, or a model of which nothing is recorded.
        """
        wanted = [c for c in self.chapters() if chapter in (None, c, c[:2], c[3:], str(int(c[:2])))]
        if not wanted:
            raise ResultError(f"The scoreboard has no chapter {chapter!r}. It has: {', '.join(self.chapters())}.")
        if model is not None and not any(records(c, model) for c in wanted):
            known = {run.model for c in wanted for run in records(c)}
            raise ResultError(
                f"Nothing is recorded for the model {model!r}. Recorded: {', '.join(sorted(known)) or 'nothing'}."
            )
        width = width or shutil.get_terminal_size((160, 24)).columns
        parts = [f"{c}\n{_wrapped(table(self.lines(c, model)), width)}" for c in wanted]
        parts.append("  ".join(f"{mark} {verdict}" for verdict, mark in DECIDED.items()))
        if chapter is None:
            parts.append(_wrapped(self.summary(model, plain=True), width))
        return "\n\n".join(parts)


# ---------------------------------------------------------------------------------------- how it is shown


def titled(chapter: str) -> str:
    """The chapter's name in words."""
    return chapter[3:].replace("_", " ")


def label(chapter: str) -> str:
    """The label of the chapter's part of the page."""
    return f"scoreboard-{chapter[3:].replace('_', '-')}"


def toc() -> Path:
    """The book's table of contents."""
    return places.ROOT / "book" / "_toc.yml"


def linked(chapter: str) -> str:
    """A reference to the chapter's page, or its name as long as there is no such page."""
    there = f"notebooks/{chapter}" in toc().read_text("utf-8").split()
    there = there and (places.ROOT / "notebooks" / f"{chapter}.ipynb").is_file()
    return f"{{doc}}`{chapter[:2]} <../notebooks/{chapter}>`" if there else chapter[:2]


def table(found: Sequence[Line]) -> Table:
    """Lines as a table: finding, verdict, the paper's number, ours of every run, the controls last."""
    runs = sorted(dict.fromkeys(run for line in found for run in line.cells), key=lambda run: run.control)
    rows = []
    for line in found:
        ours = (line.cells[run].text if run in line.cells else "" for run in runs)
        rows.append([line.finding.text, line.told, line.finding.claim.theirs, *ours])
    return Table(["finding", "verdict, models that decide", "paper", *(run.label for run in runs)], rows)


def compact(found: Sequence[Line]) -> Table:
    """Lines as a table for a page: finding, verdict, the paper's number, that of the run that counts for each model, and what controls say of the same."""
    counted = [
        decisive(
            [run for run, cell in line.cells.items() if not run.control and cell.verdict not in (ABSENT, MISSING)]
        )
        for line in found
    ]
    models = list(dict.fromkeys(run.model for runs in counted for run in runs))
    rows = []
    for line, runs in zip(found, counted, strict=True):
        ours = {run.model: line.cells[run].text for run in runs}
        controls = [f"{run.model}{run.control} {cell.text}" for run, cell in line.cells.items() if run.control]
        cells = [
            line.finding.text,
            line.verdict,
            line.finding.claim.theirs,
            *(ours.get(model, "–") for model in models),
        ]
        rows.append([*cells, "; ".join(controls)])
    return Table(["finding", "verdict", "paper", *models, "controls"], rows)


def _names(claims: Iterable[tuple[str, str]], key: str) -> str:
    return ", ".join(name.replace("_", " ") for paper, name in claims if paper == key)


def _told(stored: Mapping[Run, Mapping[str, Any]]) -> str:
    """Which corpus each run used."""
    corpora: dict[str, list[str]] = {}
    for run, record in stored.items():
        corpus = record["provenance"]["corpus"]
        corpora.setdefault(corpus["name"] if corpus else "several corpora", []).append(run.label)
    told = "; ".join(f"{' and '.join(runs)}: *{corpus}*" for corpus, runs in corpora.items())
    return f"Our data: {told}." if told else ""


def _wrapped(found: Table, width: int) -> str:
    """A table with its cells wrapped, the first column the widest."""
    columns = len(found.columns)
    rest = max(8, (width - 2 * (columns - 1)) // (columns + 1))
    limits = [2 * rest, *[rest] * (columns - 1)]
    heads, *rows = (
        [textwrap.wrap(str(cell), limit) or [""] for cell, limit in zip(row, limits, strict=True)]
        for row in (found.columns, *found.rows)
    )
    longest = [[max(map(len, cell)) for cell in column] for column in zip(heads, *rows, strict=True)]
    sizes = [max(head + 2, *cells, 0) for head, *cells in longest]
    rule = [["-" * size] for size in sizes]
    return "\n".join(
        "  ".join(map(str.ljust, line, sizes)).rstrip()
        for row in (heads, rule, *rows)
        for line in zip_longest(*row, fillvalue="")
    )
