"""The scoreboard: what the papers report, beside what was recorded here, judged by a few stated rules.

``book/scoreboard.yml`` says, for every claim of ``data/papers.yml``, which recorded number stands beside it and
by which rule it is judged, or why nothing stands beside it. Nothing here is typed by hand: the papers' numbers are read
from the one file, ours from ``data/results``, and the verdicts are computed from both whenever the page is built.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from tabulate import tabulate

from helpers import places
from helpers.record import results
from helpers.record.results import ResultError, Table

FILE = places.ROOT / "book" / "scoreboard.yml"
PROFILES = ("book", "full")
RANDOM = "@random"

HOLDS, PART, FAILS = "holds", "in part", "fails"
APART, ABSENT, MISSING = "not comparable", "no number", "not recorded yet"
VERDICTS = (HOLDS, PART, FAILS, APART, ABSENT, MISSING)
MARKS = {HOLDS: "●", PART: "◐", FAILS: "○", APART: "", ABSENT: "", MISSING: ""}
ALSO_RANDOM = "†"
FIRM = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Number:
    """A number, the ends of its 95 % interval where one was recorded, and words to show instead where it has some."""

    value: int | float
    low: int | float | None = None
    high: int | float | None = None
    words: str | None = None

    def times(self, factor: int | float) -> "Number":
        """In another unit."""
        ends = (None if end is None else factor * end for end in (self.low, self.high))
        return Number(factor * self.value, *ends, self.words)

    def minus(self, other: "Number") -> "Number":
        """The difference; with two intervals, the widest that they allow, since nothing is known of their pairing."""
        low = high = None
        if None not in (self.low, self.high, other.low, other.high):
            low, high = self.low - other.high, self.high - other.low
        return Number(self.value - other.value, low, high)

    def __format__(self, spec: str) -> str:
        if self.words is not None:
            return self.words
        ends = spec.lstrip("+")
        interval = "" if self.low is None else f" [{self.low:{ends}},{FIRM}{self.high:{ends}}]"
        return f"{self.value:{spec}}{interval}".replace("-", "−")


# ---------------------------------------------------------------------------------------- rules


def above(found: Number, bound: int | float) -> str:
    """Holds if the whole interval lies above the bound; in part if only the number itself does."""
    if found.value <= bound:
        return FAILS
    return HOLDS if found.low is None or found.low > bound else PART


def below(found: Number, bound: int | float) -> str:
    """Holds if the whole interval lies below the bound; in part if only the number itself does."""
    if found.value >= bound:
        return FAILS
    return HOLDS if found.high is None or found.high < bound else PART


FACTOR = 1.25


def about(found: Number, bound: int | float) -> str:
    """Holds if the whole interval lies between four fifths and five quarters of the paper's number; in part if only the number itself does."""
    inside = [
        bound / FACTOR <= end <= bound * FACTOR for end in (found.value, found.low, found.high) if end is not None
    ]
    return HOLDS if all(inside) else PART if inside[0] else FAILS


def at_least(found: Number, bound: int | float) -> str:
    """For counts, which have no interval: holds if the count reaches the bound."""
    return HOLDS if found.value >= bound else FAILS


def equal(found: Number, bound: int | float) -> str:
    """Holds if the number is the same."""
    return HOLDS if found.value == bound else FAILS


def every(found: Number, bound: int | float) -> str:
    """For several comparisons at once (pairs of an order, layers): holds if all come out as in the paper, in part if more than half do."""
    return HOLDS if found.value == 1 else PART if found.value > 0.5 else FAILS


def passed(found: Number, bound: int | float) -> str:
    """Holds if the chapter's own yes-or-no test was passed."""
    return HOLDS if found.value else FAILS


def shown(found: Number, bound: int | float) -> str:
    """Not judged: the two numbers measure different things and only stand beside each other."""
    return APART


RULES: dict[str, Callable[[Number, float], str]] = {
    "above": above,
    "below": below,
    "about": about,
    "at least": at_least,
    "equal": equal,
    "every": every,
    "passed": passed,
    "shown": shown,
}
LEVEL = 0.05
"""Where a chapter records a p-value of a test of its own, "holds" also needs one below this."""


def overall(verdicts: Iterable[str]) -> str:
    """Of several models: holds if it does for all of them, fails if it does for all, else in part."""
    verdicts = set(verdicts)
    judged = verdicts - {ABSENT, MISSING}
    if not judged:
        return ABSENT if ABSENT in verdicts else MISSING
    return judged.pop() if len(judged) == 1 else PART


# ---------------------------------------------------------------------------------------- from a record to a number


def at(values: Any, path: Sequence[str | int]) -> Any:
    """What lies at a path of a record; None if nothing does. A number as a step also goes into the lists of an estimate."""
    for step in path:
        if _is_estimate(values) and isinstance(step, int):
            values = {end: values[end][step] for end in ("value", "low", "high")}
        elif isinstance(values, Mapping):
            values = values.get(str(step))
        elif isinstance(values, list) and isinstance(step, int):
            values = values[step]
        else:
            return None
    return values


def _is_estimate(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"value", "low", "high"}


def _number(node: Any) -> Number | None:
    if node is None:
        return None
    if _is_estimate(node):
        return Number(*(float(node[end]) for end in ("value", "low", "high")))
    if isinstance(node, bool | int | float):
        return Number(float(node), words=("no", "yes")[node] if isinstance(node, bool) else None)
    raise ResultError(f"A number or an estimate was expected, not {str(node)[:80]!r}; name a way to take one.")


def _values(node: Any) -> np.ndarray:
    """Numbers or names of a list or of an estimate of lists."""
    return np.asarray(node["value"] if _is_estimate(node) else node)


def _entry(node: Any, where: int) -> Number:
    return _number(at(node, [where]))


def largest(node: Any) -> Number:
    """The largest entry of a list."""
    return _entry(node, int(_values(node).argmax()))


def last(node: Any) -> Number:
    """The last entry of a list."""
    return _entry(node, len(_values(node)) - 1)


def mean_but_last(node: Any) -> Number:
    """The mean of a list without its last entry."""
    return Number(float(_values(node)[:-1].mean()))


def count(*nodes: Any, where: Mapping[str, Any] | None = None, over: float | None = None) -> Number:
    """How many entries are over a number, or have certain fields."""
    if where is not None:
        found = sum(
            all(entry[k] in (v if isinstance(v, list) else [v]) for k, v in where.items()) for entry in nodes[0]
        )
    else:
        found = sum(int((_values(node) > over).sum()) for node in nodes)
    return Number(float(found))


def share(node: Any, *, under: float | None = None, among: Sequence[str] = ()) -> Number:
    """The share of entries under a number, or with one of several names."""
    values = _values(node)
    return Number(float((values < under).mean() if under is not None else np.isin(values, among).mean()))


def depth(node: Any, *, over: float) -> Number | None:
    """Mean depth of the heads over a number: 0 is the first layer, 1 the last. None if there is no such head."""
    values = _values(node)
    layers = np.nonzero(values > over)[0]
    if not len(layers):
        return None
    names = ", ".join(str(layer + 1) for layer in layers)
    return Number(float(layers.mean()) / (len(values) - 1), words=f"{names} of {len(values)}")


def peaks(*nodes: Any, names: Sequence[str]) -> Number:
    """Layers in which several things are largest, as the share of pairs whose layers stand in the order given."""
    layers = [_values(node).reshape(len(_values(node)), -1).mean(1) for node in nodes]
    return _ordered([float(values.argmax()) + 1 for values in layers], names, ".0f")


def depths(node: Any, *, names: Sequence[str]) -> Number | None:
    """Mean layer of the heads of each name, as the share of pairs whose mean layers stand in the order given."""
    values = _values(node)
    layers = [np.nonzero(values == name)[0] for name in names]
    if not all(map(len, layers)):
        return None
    return _ordered(
        [float(found.mean()) + 1 for found in layers], [name.replace("_", " & ") for name in names], ".1f"
    )


def ordered(*nodes: Any, names: Sequence[str]) -> Number:
    """Several numbers, as the share of pairs that stand in the order given, the smallest first."""
    return _ordered([_number(node).value for node in nodes], names, ".2f")


def _ordered(numbers: Sequence[float], names: Sequence[str], spec: str) -> Number:
    pairs = [a < b for place, a in enumerate(numbers) for b in numbers[place + 1 :]]
    words = ", ".join(f"{name} {number:{spec}}" for name, number in zip(names, numbers, strict=True))
    return Number(sum(pairs) / len(pairs), words=words)


def best_key(node: Mapping[str, Any], *, by: Sequence[str]) -> Number:
    """The key, a number, of the entry in which something is largest."""
    return Number(float(max(node, key=lambda key: _number(at(node[key], by)).value)))


def close(first: Any, second: Any, *, within: float) -> Number:
    """The share of places, the last left out, at which two lists differ by at most a share of the first."""
    a, b = _values(first)[:-1], _values(second)[:-1]
    return Number(float((abs(a - b) <= within * abs(a)).mean()))


def deep(node: Any, *, column: Sequence[int], under: float, start: float) -> Number:
    """The share of layers, from a depth on (0: the first layer, 1: past the last), in which a column of a table by layer is small."""
    values = _values(node)[:, column[0]]
    layers = np.arange(len(values))[np.arange(len(values)) >= start * len(values)]
    small = int((values[layers] < under).sum())
    return Number(small / len(layers), words=f"{small} of {len(layers)}")


def at_peak(node: Any, of: Any, *, column: Sequence[int]) -> Number:
    """The cell of a table by layer that lies where another such table is largest, among some columns."""
    layer, place = divmod(int(_values(of)[:, column].argmax()), len(column))
    return _number(at(node, [layer, column[place]]))


def total(*nodes: Any) -> Number:
    """The sum of several numbers; with intervals, the widest that they allow."""
    found = [_number(node) for node in nodes]
    low, high = (None if None in ends else sum(ends) for ends in ([n.low for n in found], [n.high for n in found]))
    return Number(sum(n.value for n in found), low, high)


def ratio(*nodes: Any) -> Number:
    """The sum of all numbers but the last, as a share of the last."""
    *parts, whole = (_number(node).value for node in nodes)
    return Number(sum(parts) / whole)


def concentration(node: Any) -> Number:
    """How far weights of layers (or of seeds by layers, then their mean) are from even, as a divergence in nats: 0 if they are even."""
    weights = _values(node)
    weights = weights.reshape(-1, weights.shape[-1]).mean(0)
    weights = weights / weights.sum()
    return Number(
        float((weights * np.log(weights * len(weights), where=weights > 0, out=np.zeros(len(weights)))).sum())
    )


TAKES: dict[str, Callable[..., Number | None]] = {
    "number": _number,
    "largest": largest,
    "last": last,
    "mean but last": mean_but_last,
    "count": count,
    "share": share,
    "depth": depth,
    "peaks": peaks,
    "depths": depths,
    "ordered": ordered,
    "best key": best_key,
    "close": close,
    "deep": deep,
    "at peak": at_peak,
    "total": total,
    "ratio": ratio,
    "concentration": concentration,
}
OPTIONS = ("where", "over", "under", "among", "names", "by", "within", "column", "start")


def take(values: Mapping[str, Any], spec: Mapping[str, Any], part: str = "value") -> Number | None:
    """A number out of a record's values; None if the record has none there.

    Args:
        spec: ``at``, a path in front of all others; ``value`` (or another part), a path or a list of paths;
            ``take``, a name in :data:`TAKES`, for the value and what it is compared with; and its options; ``only``, a
            path at which the record must not say false.
    """
    if "only" in spec and at(values, spec["only"]) is False:
        return None
    path = spec[part]
    several = bool(path) and isinstance(path[0], list)
    nodes = [at(values, [*spec.get("at", ()), *one]) for one in (path if several else [path])]
    if any(node is None for node in nodes):
        return None
    if part not in ("value", "against"):
        return _number(*nodes)
    return TAKES[spec.get("take", "number")](*nodes, **{name: spec[name] for name in OPTIONS if name in spec})


# ---------------------------------------------------------------------------------------- findings


@dataclass(frozen=True)
class Finding:
    """One row of the scoreboard: a claim of a paper, where our number for it is recorded, and the rule.

    Attributes:
        chapter: the notebook's name, ``04_dependency_heads``.
        paper, claim: in ``data/papers.yml``.
        text: what has to be true of our models.
        theirs: the paper's number in words, with the place it is from.
        rule, than: name in :data:`RULES`; a number, or a number of the same record (see :func:`take`).
        ours, random: see :func:`take`; ``ours`` is None as long as the chapter has no record, ``random`` where it has no control.
        unit: of the paper's number; shares of ours are shown in per cent where it is "%", "UAS" or "points".
    """

    chapter: str
    paper: str
    claim: str
    text: str
    theirs: str
    rule: str
    than: int | float | Mapping[str, Any]
    ours: Mapping[str, Any] | None
    random: Mapping[str, Any] | None
    unit: str

    @property
    def module(self) -> str:
        """Under which name results are recorded."""
        return self.chapter[3:]


UNITS = {
    "%": (100, 1),
    "UAS": (100, 1),
    "points": (100, 1),
    "heads": (1, 0),
    "count": (1, 0),
    "nats": (1, 2),
    "layers": (1, 2),
}
"""Unit -> factor that turns a recorded number into it, decimals shown. Others: 1, and 3."""


@cache
def _file() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text("utf-8"))


def chapters() -> list[str]:
    """Chapters of the scoreboard in order, as names of notebooks, those still to be written among them."""
    return list(_file()["chapters"])


def findings(chapter: str | None = None) -> list[Finding]:
    """Every row of the scoreboard, or of one chapter.

    Raises:
        ResultError: for an unknown chapter, claim, row or rule; the message names the place in the file.
    """
    named = _file()["chapters"]
    if chapter is not None and chapter not in named:
        raise ResultError(f"There is no chapter {chapter!r} in {FILE.name}; there are {', '.join(named)}.")
    return [finding for name in ([chapter] if chapter else named) for finding in _findings(name)]


@cache
def _findings(chapter: str) -> tuple[Finding, ...]:
    return tuple(
        _finding(chapter, _filled({k: v for k, v in entry.items() if k != "each"}, row))
        for entry in _file()["chapters"][chapter].get("findings") or ()
        for row in entry.get("each", [{}])
    )


def _filled(spec: Any, row: Mapping[str, Any]) -> Any:
    """The same with {names} of the row filled in."""
    if isinstance(spec, str):
        return (
            row[spec[1:-1]]
            if spec[1:-1] in row and spec == f"{{{spec[1:-1]}}}"
            else spec.format(**row)
            if row
            else spec
        )
    if isinstance(spec, dict):
        return {_filled(key, row): _filled(value, row) for key, value in spec.items()}
    return [_filled(item, row) for item in spec] if isinstance(spec, list) else spec


def _finding(chapter: str, entry: Mapping[str, Any]) -> Finding:
    key, name = entry["claim"].split()
    claim = results.paper(key, name)
    if entry["rule"] not in RULES:
        raise ResultError(f"{chapter}, {name}: there is no rule {entry['rule']!r}; there are {', '.join(RULES)}.")
    than = entry.get("than", 0.0)
    if than == "paper":
        than = _theirs(claim, entry.get("paper", {}), f"{chapter}, {name}")[0]
    elif isinstance(than, str):
        than = results.paper(*than.split())["value"]
    ours = entry.get("ours")
    return Finding(
        chapter,
        key,
        name,
        entry["finding"],
        _in_words(claim, entry.get("paper", {}), f"{chapter}, {name}"),
        entry["rule"],
        than if isinstance(than, Mapping) else float(than),
        ours,
        ours | entry["random"] if "random" in entry else None,
        entry.get("unit", claim.get("unit", "")),
    )


def _theirs(claim: Mapping[str, Any], spec: Mapping[str, Any], place: str) -> list[Any]:
    """The paper's number, and the one it is compared with if there is one."""
    if "rows" not in claim:
        return [claim["value"]]

    def cell(row: Mapping[str, Any], field: str) -> Any:
        found = [r for r in claim["rows"] if all(r[k] == v for k, v in row.items())]
        if len(found) != 1 or field not in found[0]:
            raise ResultError(f"{place}: the paper has {len(found)} rows with {dict(row)} and a field {field!r}.")
        return found[0][field]

    against = spec.get("against")
    return [cell(spec["row"], spec["field"])] + (
        [] if against is None else [cell(against.get("row", spec["row"]), against.get("field", spec["field"]))]
    )


def _in_words(claim: Mapping[str, Any], spec: Mapping[str, Any], place: str) -> str:
    if "rows" not in claim:
        return results.paper_text(claim)
    numbers = _theirs(claim, spec, place)
    notes = [str(_theirs(claim, {"row": spec["row"], "field": f}, place)[0]) for f in spec.get("note", ())]
    unit = None if isinstance(numbers[0], str) else claim.get("unit")
    return results.paper_text(
        {"value": " vs ".join(map(str, numbers)), "unit": unit, "where": "; ".join([*notes, claim["where"]])}
    )


def not_measured() -> dict[str, list[tuple[str, str]]]:
    """Reason -> (paper, claim) of every claim that has no number of ours beside it."""
    listed: dict[str, list[tuple[str, str]]] = {reason: [] for reason in _file()["reasons"]}
    for chapter in _file()["chapters"].values():
        for reason, claims in (chapter.get("not measured") or {}).items():
            listed[reason] += [tuple(claim.split(maxsplit=1)) for claim in claims]
    return listed


# ---------------------------------------------------------------------------------------- lines


@dataclass(frozen=True)
class Run:
    """Whose numbers: a profile, a model, and whether it is the model's random control, recorded with it."""

    profile: str
    model: str
    random: bool = False

    @property
    def label(self) -> str:
        return f"{self.model}{RANDOM if self.random else ''}, {self.profile}"


@dataclass(frozen=True)
class Cell:
    """One run's number for a finding, as text, and its verdict."""

    text: str
    verdict: str


@dataclass(frozen=True)
class Line:
    """A finding with what was recorded for it; ``also_random``: whether it holds, at least in part, and for a random network as well."""

    finding: Finding
    cells: Mapping[Run, Cell]
    verdict: str
    also_random: bool


def records(chapter: str, model: str | None = None) -> dict[Run, dict[str, Any]]:
    """Every record of a chapter, of all models or of one: book first, then full."""
    found = {
        Run(profile, name): record
        for profile in PROFILES
        for name, record in results.runs(chapter[3:], profile=profile).items()
    }
    return {run: record for run, record in found.items() if model in (None, run.model)}


def lines(chapter: str, model: str | None = None) -> list[Line]:
    """The scoreboard of a chapter, of all recorded models or of one."""
    stored = records(chapter, model)
    return [_line(finding, stored) for finding in findings(chapter)]


def _line(finding: Finding, stored: Mapping[Run, Mapping[str, Any]]) -> Line:
    cells = {run: judge(finding, record["values"]) for run, record in stored.items()}
    deciding = _decisive([run for run, cell in cells.items() if cell.verdict not in (ABSENT, MISSING)] or cells)
    controls = {}
    for run in deciding:
        if finding.random is not None:
            controls[Run(run.profile, run.model, random=True)] = judge(finding, stored[run]["values"], random=True)
    verdict = overall(cells[run].verdict for run in deciding)
    untrained = verdict != FAILS and any(cell.verdict == HOLDS for cell in controls.values())
    return Line(finding, {**cells, **controls}, verdict, untrained)


def _decisive(runs: Iterable[Run]) -> list[Run]:
    """The run that counts for each model: on real corpora if there is one, else on the book's own."""
    best: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: PROFILES.index(run.profile)):
        best[run.model] = run
    return list(best.values())


def judge(finding: Finding, values: Mapping[str, Any], *, random: bool = False) -> Cell:
    """What a record says about a finding, or about the same in the random control."""
    spec = finding.random if random else finding.ours
    if spec is None:
        return Cell("–", MISSING)
    factor, digits = UNITS.get(finding.unit, (1, 3))
    number = take(values, spec)
    if number is None:
        return Cell("–", ABSENT)
    found = number = number.times(factor)
    text = f"{number:.{digits}f}"
    if "against" in spec:
        other = take(values, spec, "against")
        if other is None:
            return Cell("–", ABSENT)
        other = other.times(factor)
        found = take(values, spec, "difference").times(factor) if "difference" in spec else number.minus(other)
        text = f"{number.value:.{digits}f}{FIRM}vs{FIRM}{other.value:.{digits}f}, {found:+.{digits}f}"
    if "test" in spec:
        found = take(values, spec, "test")
    bound = finding.than
    if isinstance(bound, Mapping):
        bound = take(values, {**{k: spec[k] for k in ("at",) if k in spec}, **bound}).times(factor).value
    verdict = RULES[finding.rule](found, bound)
    if verdict == HOLDS and "p" in spec and take(values, spec, "p").value >= LEVEL:
        verdict = PART
    return Cell(f"{text}{FIRM}{MARKS[verdict]}".strip(), verdict)


# ---------------------------------------------------------------------------------------- tables


def tally(model: str | None = None) -> dict[str, Counter[str]]:
    """Chapter -> verdict -> number of findings."""
    return {chapter: Counter(line.verdict for line in lines(chapter, model)) for chapter in chapters()}


def by_run() -> Table:
    """Findings by run and mark, controls included; a finding without a number in a run is left out there."""
    counts: dict[Run, Counter[str]] = {}
    for line in (line for chapter in chapters() for line in lines(chapter)):
        for run, cell in line.cells.items():
            counts.setdefault(run, Counter())[cell.verdict] += 1
    order = sorted(counts, key=lambda run: (run.random, PROFILES.index(run.profile), run.model))
    judged = (HOLDS, PART, FAILS)
    return Table(
        ["run", *(f"{MARKS[v]} {v}" for v in judged)],
        [[run.label, *(counts[run][v] for v in judged)] for run in order],
    )


def titled(chapter: str) -> str:
    """The chapter's name in words."""
    return chapter[3:].replace("_", " ")


def label(chapter: str) -> str:
    """The label of the chapter's part of the page."""
    return f"scoreboard-{chapter[3:].replace('_', '-')}"


def linked(chapter: str) -> str:
    """A reference to the chapter's page, or its name as long as there is no such page."""
    toc = (FILE.parent / "_toc.yml").read_text("utf-8").split()
    there = f"notebooks/{chapter}" in toc and (places.ROOT / "notebooks" / f"{chapter}.ipynb").is_file()
    return f"{{doc}}`{chapter[:2]} <../notebooks/{chapter}>`" if there else chapter[:2]


def summary(model: str | None = None, *, plain: bool = False) -> Table:
    """Findings by chapter and verdict, with a line for all.

    Args:
        plain: without references to the chapter's page and to its part of this page.
    """
    counts = {chapter: found for chapter, found in tally(model).items() if found}
    total = sum(counts.values(), Counter())
    shown = [verdict for verdict in VERDICTS if total[verdict]]
    rows = []
    for chapter, found in counts.items():
        number, name = chapter[:2], titled(chapter)
        if not plain:
            number, name = linked(chapter), f"{{ref}}`{name} <{label(chapter)}>`"
        rows.append([number, name, *(found[verdict] for verdict in shown)])
    return Table(["chapter", "", *shown], [*rows, ["all", "", *(total[verdict] for verdict in shown)]])


def rules() -> Table:
    """The rules, each with the number of findings it judges."""
    used = Counter(finding.rule for finding in findings())
    return Table(
        ["rule", "what it asks", "findings"], [[n, rule.__doc__, used[n]] for n, rule in RULES.items() if used[n]]
    )


def reasons() -> Table:
    """Why claims have no number of ours beside them: reason, how many, which."""
    told = _file()["reasons"]
    return Table(
        ["reason", "claims", "which"],
        [
            [
                told[reason],
                len(claims),
                "; ".join(f"{{cite:t}}`{key}`: {_names(claims, key)}" for key in dict(claims)),
            ]
            for reason, claims in not_measured().items()
            if claims
        ],
    )


def _names(claims: Iterable[tuple[str, str]], key: str) -> str:
    return ", ".join(name.replace("_", " ") for paper, name in claims if paper == key)


def columns(found: Sequence[Line]) -> list[Run]:
    """Runs that have a number in one of the lines: ours first, then the controls."""
    runs = dict.fromkeys(run for line in found for run in line.cells)
    return sorted(runs, key=lambda run: run.random)


def chapter_text(chapter: str) -> str:
    """A chapter's part of the page in Markdown: whose numbers these are, and a table for each paper and model."""
    found, stored = lines(chapter), records(chapter)
    parts = [f"Chapter {linked(chapter)}. " + (_told(stored) or "Nothing is recorded yet.")]
    for key, model in dict.fromkeys((line.finding.paper, _model(line.finding)) for line in found):
        rows = [line for line in found if (line.finding.paper, _model(line.finding)) == (key, model)]
        data = "; ".join(dict.fromkeys(results.paper(key, line.finding.claim)["data"] for line in rows))
        shown = (
            table(rows)._repr_markdown_().replace(RANDOM, f"\N{ZERO WIDTH SPACE}{RANDOM}")
        )  # where a heading may break
        parts += [f"{{cite:t}}`{key}`: {model}. Their data: {data}.", shown]
    return "\n\n".join(parts)


def table(found: Sequence[Line]) -> Table:
    """Lines as a table: finding, verdict, the paper's number, ours of every run."""
    runs = columns(found)
    rows = [
        [
            line.finding.text,
            line.verdict + f"{FIRM}{ALSO_RANDOM}" * line.also_random,
            line.finding.theirs,
            *(line.cells[run].text if run in line.cells else "" for run in runs),
        ]
        for line in found
    ]
    return Table(["finding", "verdict", "paper", *(run.label for run in runs)], rows)


def _model(finding: Finding) -> str:
    return results.paper(finding.paper, finding.claim)["model"]


def _told(stored: Mapping[Run, Mapping[str, Any]]) -> str:
    """Which corpus each run used."""
    corpora: dict[str, list[str]] = {}
    for run, record in stored.items():
        corpus = record["provenance"]["corpus"]
        corpora.setdefault(corpus["name"] if corpus else "several corpora", []).append(run.label)
    return (
        "; ".join(f"{' and '.join(runs)}: *{corpus}*" for corpus, runs in corpora.items()).join(["Our data: ", "."])
        if corpora
        else ""
    )


def sources() -> list[Path]:
    """Every file that the page is made from."""
    roots = dict.fromkeys((places.results(), places.book_data() / "results"))
    names = {chapter[3:] for chapter in chapters()}
    stored = [
        f for root in roots for profile in PROFILES for f in (root / profile).glob("*/*.json") if f.stem in names
    ]
    return [FILE, FILE.parent / "_toc.yml", places.book_data() / "papers.yml", *sorted(stored)]


def as_text(model: str | None = None, chapter: str | None = None, *, width: int | None = None) -> str:
    """The scoreboard for a terminal: a table a chapter, and the summary.

    Args:
        model: show this model's runs only.
        chapter: show this chapter only, by its number or name.
        width: of the terminal (default: as it is).

    Raises:
        ResultError: for a chapter that is not on the scoreboard, or a model of which nothing is recorded.
    """
    wanted = [c for c in chapters() if chapter in (None, c, c[:2], c[3:], str(int(c[:2])))]
    if not wanted:
        raise ResultError(f"The scoreboard has no chapter {chapter!r}. It has: {', '.join(chapters())}.")
    if model is not None and not any(records(c, model) for c in wanted):
        known = {run.model for c in wanted for run in records(c)}
        raise ResultError(
            f"Nothing is recorded for the model {model!r}. Recorded: {', '.join(sorted(known)) or 'nothing'}."
        )
    width = width or shutil.get_terminal_size((160, 24)).columns
    parts = [f"{c}\n{_plain(table(lines(c, model)), width)}" for c in wanted if findings(c)]
    shown = f"{MARKS[HOLDS]} {HOLDS}  {MARKS[PART]} {PART}  {MARKS[FAILS]} {FAILS}  {ALSO_RANDOM} for a random network as well"
    return "\n\n".join([*parts, shown, *([_plain(summary(model, plain=True), width)] if chapter is None else [])])


def _plain(found: Table, width: int) -> str:
    """A table with its cells wrapped, the first column the widest."""
    columns = len(found.columns)
    rest = max(8, (width - 2 * (columns - 1)) // (columns + 1))
    widths = [2 * rest, *[rest] * (columns - 1)]
    return tabulate(
        found.rows, found.columns, "simple", maxcolwidths=widths, maxheadercolwidths=widths, disable_numparse=True
    )
