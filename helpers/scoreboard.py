"""The scoreboard: what papers and chapters claim, joined with the recorded numbers, and judged by a few stated rules.

A claim is a row of ``data/claims/NN_chapter.yml``; the papers' numbers are in ``data/papers.yml``, ours in the tables beside the
records (:mod:`helpers.tidy`). No number is typed by hand, and verdicts are computed whenever the page is built.
"""

import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from tabulate import tabulate

from helpers import places, results, tidy
from helpers.results import ResultError, Table

HOLDS, ALSO, MIXED, UNDECIDED, FAILS = "holds", "also the control", "mixed", "undecided", "fails"
APART, ABSENT = "not comparable", "no number"
DECIDED = {HOLDS: "●", ALSO: "◎", MIXED: "◪", UNDECIDED: "◐", FAILS: "○"}
"""Verdict of a comparison that could be made -> its mark."""
VERDICTS = (*DECIDED, APART, ABSENT)
PLURAL = {HOLDS: "hold", ALSO: "hold of a control, too", FAILS: "fail"}
REASONS = {
    "setup": "the set-up of the paper's experiment (sizes, lengths, thresholds); ours stands in the parameters of each record",
    "background": "a fact about a model or a tokenizer, not about its attention",
    "definition": "a definition or a procedure, which the chapter follows or discusses",
    "same": "the same number as another claim, which is in the tables",
    "elsewhere": "needs a model or a system that this book does not have",
    "undefined": "the source does not say closely enough what was counted",
}
"""Why a paper's number has none of ours beside it."""
FIRM = "\N{NO-BREAK SPACE}"
UNITS = dict.fromkeys(("%", "UAS", "points"), (100, 1)) | dict.fromkeys(("heads", "count"), (1, 0))
UNITS |= dict.fromkeys(("nats", "layers"), (1, 2))
"""Unit -> factor that turns a recorded number into it, decimals shown. Others: 1, and 3."""
WRITTEN = {"%": " %", "UAS": " %"} | {unit: f" {unit}" for unit in ("points", "nats", "layers", "heads")}
LEVEL = 0.05
"""Where a chapter records a p-value of a test of its own, "holds" also needs one below this."""
FACTOR = 1.25
RULES = {
    "above": "holds if the whole interval lies above the bound, fails if it lies below, undecided if the bound is inside",
    "below": "holds if the whole interval lies below the bound, fails if it lies above, undecided if the bound is inside",
    "about": "holds if the whole interval lies between four fifths and five quarters of the paper's number, fails if it lies outside, undecided if it lies across one of the two",
    "at least": "for counts, which have no interval: holds if the count reaches the bound, and fails otherwise",
    "equal": "holds if the number is the same, and fails otherwise",
    "every": "for several comparisons at once (pairs of an order, layers): holds if all come out as in the paper, fails if none does, and is mixed otherwise",
    "passed": "holds if the chapter's own yes-or-no test was passed, and fails otherwise",
    "shown": "not judged: the two numbers measure different things and only stand beside each other",
}


@dataclass(frozen=True)
class Claim:
    """A row of ``data/claims``.

    Attributes:
        chapter: name of the notebook.
        claim: what has to be true of our models, as a sentence.
        paper: paper and claim of ``data/papers.yml``: ``clark2019 table1``; without one the claim is the chapter's own.
        ours: our number, a quantity of the chapter's table; with what it is ``of`` after a slash: ``heads_over_half/previous``;
            ``@random NAME`` is the control's, where the claim is of a control.
        rule: one of :data:`RULES`, with what our number is held against in the unit shown: ``above 50``, ``at least 1``, ``above paper`` (the
            paper's number), ``above clark2019 NAME`` (another of its numbers), ``above QUANTITY`` (one of ours). A claim without a rule stands in the chapter's own table only.
        against, difference: what ours is compared with, and the paired difference, which is judged; where none is recorded, the interval
            is the widest that the two allow.
        judged, p: a number that is judged in the place of ours, and a p-value.
        controls: name -> its number, by default the same as ours. ``@random`` and ``@shuffled`` are networks recorded with ours; another name
            needs a number of its own, or several: ``{ours, against, difference}``. What holds of a control, too, is no finding.
        uncontrolled: where nothing could have shown the same, why.
        power, visible: a number of the test (how many cases there were, or the smallest effect that it would have seen in the unit shown), and the
            least or most that it may be, as a rule: ``at least 20``, ``below 5``. Without it a verdict that rests on seeing nothing
            (a count that is not reached, a bound that is not crossed) is undecided.
        row, number, beside, note: of a paper's table, the row with these fields and which of its fields is the number; the field, or the row, that it is
            compared with; fields to show beside the place in the paper.
        unit: of what is shown, where it is not the paper's; "count" for whole numbers.
        label: what stands in the first column of the chapter's own table.
    """

    chapter: str
    claim: str = ""
    paper: str = ""
    ours: str = ""
    rule: str = ""
    against: str = ""
    difference: str = ""
    judged: str = ""
    p: str = ""
    controls: Mapping[str, Any] = field(default_factory=dict)
    uncontrolled: str = ""
    power: str = ""
    visible: str = ""
    row: Mapping[str, Any] | None = None
    number: str = ""
    beside: Any = None
    note: Sequence[str] = ()
    unit: str | None = None
    label: str = ""

    @property
    def source(self) -> Mapping[str, Any]:
        """The claim in ``data/papers.yml``; of a chapter's own there is nothing."""
        return results.paper(*self.paper.split()) if self.paper else {}

    @property
    def shown_in(self) -> str:
        """The unit of what is shown."""
        return self.source.get("unit", "") if self.unit is None else self.unit

    def cited(self, row: Mapping[str, Any], name: str) -> Any:
        """A number of the paper's table.

        Raises:
            ResultError: if not exactly one row has these fields, or it has no such number.
        """
        found = [one for one in self.source["rows"] if all(one[key] == value for key, value in row.items())]
        if len(found) != 1 or name not in found[0]:
            raise ResultError(f"{self.paper}: the paper has {len(found)} rows with {dict(row)} and a field {name!r}.")
        return found[0][name]

    @property
    def theirs(self) -> str:
        """The paper's number in words, with the place it is from."""
        source = self.source
        if not source or self.row is None:
            return results.paper_text(source) if source else ""
        numbers = [self.cited(self.row, self.number)]
        if self.beside is not None:
            other = (self.row, self.beside) if isinstance(self.beside, str) else (self.beside, self.number)
            numbers.append(self.cited(*other))
        notes = [str(self.cited(self.row, name)) for name in self.note]
        unit = None if isinstance(numbers[0], str) else source.get("unit")
        value, where = " vs ".join(map(str, numbers)), "; ".join([*notes, source["where"]])
        return results.paper_text({"value": value, "unit": unit, "where": where})

    def ruled(self, rule: str, numbers: "Numbers", network: str = "") -> tuple[str, float]:
        """A rule's name, and what a number is held against.

        Raises:
            ResultError: for an unknown rule.
        """
        name = next((one for one in RULES if f"{rule} ".startswith(f"{one} ")), None)
        if name is None:
            raise ResultError(f"{self.claim}: there is no rule {rule!r}; there are {', '.join(RULES)}.")
        than = rule.removeprefix(name).strip()
        if than == "paper":
            return name, float(self.source["value"] if self.row is None else self.cited(self.row, self.number))
        try:
            return name, float(than or 0)
        except ValueError:
            if " " in than:
                return name, float(results.paper(*than.split())["value"])
            return name, UNITS.get(self.shown_in, (1, 3))[0] * numbers.get((network, than), Number(math.nan)).value


@dataclass(frozen=True)
class Number:
    """A number, the ends of its 95 % interval where one was recorded, and words to show instead where it has some."""

    value: float
    low: float = math.nan
    high: float = math.nan
    words: str | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the interval; of a number without one, the number itself."""
        return (self.value, self.value) if math.isnan(self.low) else (self.low, self.high)

    def times(self, factor: float) -> "Number":
        """In another unit."""
        return Number(factor * self.value, factor * self.low, factor * self.high, self.words)

    def minus(self, other: "Number") -> "Number":
        """The difference, with the widest interval that two intervals allow."""
        return Number(self.value - other.value, self.low - other.high, self.high - other.low)

    def __format__(self, spec: str) -> str:
        if self.words is not None:
            return self.words
        interval = "" if math.isnan(self.low) else f" [{self.low:{spec[-3:]}},{FIRM}{self.high:{spec[-3:]}}]"
        return f"{self.value:{spec}}{interval}".replace("-", "−")


Numbers = Mapping[tuple[str, str], Number]
"""(network, number as claims name it) -> the number."""


def numbers_of(table: pd.DataFrame) -> Numbers:
    """The numbers of a stored table that claims can name: of whole models, and of the one head or layer that a quantity is of.

    The label of a whole model's number is how it is shown.
    """
    named = table.assign(name=table.quantity + ("/" + table.of.astype(object)).fillna(""))
    single = ~named.duplicated(["network", "name"], keep=False)
    found = named[named.layer.isna() | single]
    words = found.label.astype(object).where(found.label.notna() & found.layer.isna(), None)
    columns = (found.network, found.name, found.value, found.low, found.high, words)
    return {(network, name): Number(*number) for network, name, *number in zip(*columns, strict=True)}


# ---------------------------------------------------------------------------------------- verdicts


def verdict(rule: str, number: Number, bound: float) -> str:
    """What a rule says of a number and its interval."""
    low, high = number.ends
    if rule == "about":
        least, most = sorted((bound / FACTOR, bound * FACTOR))
        return HOLDS if least <= low and high <= most else FAILS if high < least or low > most else UNDECIDED
    if rule in ("above", "below"):
        inside = low > bound if rule == "above" else high < bound
        outside = high < bound if rule == "above" else low > bound
        return HOLDS if inside else FAILS if outside else UNDECIDED
    if rule == "every":
        return HOLDS if number.value == 1 else FAILS if number.value == 0 else MIXED
    met = {"at least": number.value >= bound, "equal": number.value == bound, "passed": bool(number.value)}
    return APART if rule == "shown" else HOLDS if met[rule] else FAILS


def compared(claim: Claim, numbers: Numbers, network: str = "", **other: str) -> tuple[str, str]:
    """Our number of a network in words, with its unit, and what the claim's rule says of it.

    Args:
        other: numbers in the place of the claim's.
    """
    factor, digits = UNITS.get(claim.shown_in, (1, 3))
    unit = WRITTEN.get(claim.shown_in, "").replace(" ", FIRM)
    named = other or {name: getattr(claim, name) for name in ("ours", "against", "difference", "judged", "p")}
    found = {name: numbers.get(_key(one, network)) for name, one in named.items() if one}
    if any(found[name] is None for name in ("ours", "against", "judged") if name in found):
        return "–", ABSENT
    number = found["ours"].times(factor)
    unit = unit.removesuffix("s") if number.value == 1 and claim.shown_in == "heads" else unit
    text = f"{number:.{digits}f}" + (unit if number.words is None else "")
    if "against" in found:
        second = found["against"].times(factor)
        text = f"{number.value:.{digits}f}{FIRM}vs{FIRM}{second.value:.{digits}f}{unit}, ".replace("-", "−")
        number = found["difference"].times(factor) if found.get("difference") else number.minus(second)
        text += f"{number:+.{digits}f}" + (f"{FIRM}points" if "%" in unit else unit)
    rule, bound = claim.ruled(claim.rule or "shown", numbers, network)
    said = verdict(rule, found.get("judged", number), bound)
    if said == HOLDS and "p" in found and found["p"].value >= LEVEL:
        said = UNDECIDED
    return text, said


def _key(name: str, network: str) -> tuple[str, str]:
    """Network and name of a number; ``@random NAME`` is that of a control, of which a claim can be, too."""
    return tuple(name.split(" ", 1)) if name.startswith("@") else (network, name)


@dataclass(frozen=True)
class Cell:
    """One run's number for a claim, as text with its mark, and its verdict; controls: name -> cell."""

    text: str
    verdict: str
    controls: Mapping[str, "Cell"] = field(default_factory=dict)


def _cell(text: str, said: str) -> Cell:
    return Cell(f"{text}{FIRM}{DECIDED.get(said, '')}".strip(), said)


def judge(claim: Claim, numbers: Numbers) -> Cell:
    """What one record says of a claim, and of each control what it says by the same rule."""
    text, said = compared(claim, numbers)
    controls = {}
    for name, other in claim.controls.items():
        other = {"ours": other} if isinstance(other, str) else other or {}
        controls[name] = _cell(*compared(claim, numbers, name if name.startswith("@") else "", **other))
    rests_on_absence = FAILS if claim.rule.startswith("at least") else HOLDS
    if said == HOLDS and any(cell.verdict == HOLDS for cell in controls.values()):
        said = ALSO
    elif claim.power and said == rests_on_absence and (power := numbers.get(("", claim.power))):
        rule, bound = claim.ruled(claim.visible, numbers)
        shown = power if rule == "at least" else power.times(UNITS.get(claim.shown_in, (1, 3))[0])
        said = said if verdict(rule, shown, bound) == HOLDS else UNDECIDED
    return replace(_cell(text, said), controls=controls)


def overall(verdicts: Iterable[str]) -> str:
    """Of several models: the verdict of those that decide it if they agree, mixed if they do not, undecided if none does."""
    judged = set(verdicts) - {ABSENT}
    deciding = judged - {UNDECIDED} or judged or {ABSENT}
    return deciding.pop() if len(deciding) == 1 else MIXED


# ---------------------------------------------------------------------------------------- all claims and all runs


@cache
def chapters() -> dict[str, dict[str, Any]]:
    """Notebook -> what its file in ``data/claims`` says (:func:`read`), in the order of the book."""
    return {file.stem: read(file) for file in sorted((places.book_data() / "claims").glob("*.yml"))}


def read(file: Path) -> dict[str, Any]:
    """What a file of ``data/claims`` says: title, intro, claims and headlines as :class:`Claim`, and papers' numbers that are not measured.

    Raises:
        ResultError: for a row with an unknown field.
    """
    said = yaml.safe_load(file.read_text("utf-8"))
    try:
        rows = {kind: [Claim(file.stem, **row) for row in said.get(kind, ())] for kind in ("claims", "headlines")}
    except TypeError as error:
        raise ResultError(f"{file.name}: {error}") from None
    return {"intro": "", "not measured": {}} | said | rows


def judged(model: str | None = None) -> pd.DataFrame:
    """Every claim that has a rule, judged on every recorded run of all models or of one.

    Returns:
        A row for each claim, run and network: notebook, the claim's number there, profile, model, network ("" or a control, of the runs that
        count), text, verdict, and whether it is the run that counts for the model: on real corpora if it has such a number, else on the book's own.
    """
    rows = []
    for chapter, said in chapters().items():
        for profile in tidy.PROFILES:
            for name, record in tidy.runs_of(chapter[3:], profile).items():
                numbers = numbers_of(record["table"])
                for n, claim in enumerate(said["claims"]):
                    if claim.rule and model in (None, name):
                        cells = {"": judge(claim, numbers)}
                        cells |= {name: cell for name, cell in cells[""].controls.items() if name.startswith("@")}
                        rows += [[chapter, n, profile, name, whose, *_shown(cell)] for whose, cell in cells.items()]
    key, columns = ["chapter", "claim", "model"], ["profile", "network", "text", "verdict"]
    found = pd.DataFrame(rows, columns=["chapter", "claim", "profile", "model", "network", "text", "verdict"])
    there = found[(found.network == "") & (found.verdict != ABSENT)].drop_duplicates(key, keep="last")
    counts = pd.MultiIndex.from_frame(found[[*key, "profile"]]).isin(
        pd.MultiIndex.from_frame(there[[*key, "profile"]])
    )
    return found.assign(counts=counts)[counts | (found.network == "")][[*key, *columns, "counts"]]


def _shown(cell: Cell) -> tuple[str, str]:
    """Text and verdict of a cell; what controls say that are no networks stands in its text."""
    others = [f"{name}: {one.text}" for name, one in cell.controls.items() if not name.startswith("@")]
    return "; ".join([cell.text, *others]), cell.verdict


def verdicts(board: pd.DataFrame) -> pd.Series:
    """(notebook, number of the claim) -> verdict over models, of every claim that has a rule."""
    rows = [
        (chapter, n) for chapter, said in chapters().items() for n, claim in enumerate(said["claims"]) if claim.rule
    ]
    found = board[board.counts & (board.network == "")].groupby(["chapter", "claim"]).verdict.agg(overall)
    return found.reindex(pd.MultiIndex.from_tuples(rows), fill_value=ABSENT)


def decided_by(found: pd.Series) -> str:
    """How many of the models that have a number decide a claim: ``, 1 of 2``."""
    there = found[found != ABSENT]
    decide = sum(verdict in DECIDED and verdict != UNDECIDED for verdict in there)
    return f", {decide}{FIRM}of{FIRM}{len(there)}" if decide else ""


def tally(board: pd.DataFrame) -> pd.DataFrame:
    """Notebook by verdict: how many claims."""
    found = verdicts(board).groupby(level=0).value_counts().unstack(fill_value=0)
    return found.reindex(columns=[verdict for verdict in VERDICTS if verdict in found])


# ---------------------------------------------------------------------------------------- tables of the page


def compact(board: pd.DataFrame, rows: Mapping[tuple[str, int], str]) -> Table:
    """Claims: verdict, the paper's number, that of the run that counts for each model, and what controls say of the same.

    Args:
        rows: notebook and number of a claim -> what to call it.
    """
    total = verdicts(board)
    named = pd.MultiIndex.from_frame(board[["chapter", "claim"]]).isin(list(rows))
    board = board[board.counts & named]
    models = list(dict.fromkeys(board[board.network == ""].model))
    cells = []
    for (chapter, n), name in rows.items():
        found = board[(board.chapter == chapter) & (board.claim == n)]
        said = total[chapter, n] + decided_by(found[found.network == ""].verdict)
        ours = found[found.network == ""].set_index("model").text.reindex(models, fill_value="–")
        controls = found[found.network != ""]
        shown = "; ".join(controls.model + controls.network + " " + controls.text)
        cells.append([name, said, chapters()[chapter]["claims"][n].theirs, *ours, shown])
    return Table(["finding", "verdict", "paper", *models, "controls"], cells)


def twelve(board: pd.DataFrame) -> Table:
    """The claims of ``data/twelve.yml``, in the words to tell them: survived, taken away by a control, undecided.

    Raises:
        ResultError: for a claim that is not on the scoreboard.
    """
    known = {
        claim.claim: (name, n)
        for name, said in chapters().items()
        for n, claim in enumerate(said["claims"])
        if claim.rule
    }
    found = {}
    for row in yaml.safe_load((places.book_data() / "twelve.yml").read_text("utf-8")):
        if row["finding"] not in known:
            raise ResultError(f"data/twelve.yml: the scoreboard has no finding {row['finding']!r}.")
        place = known[row["finding"]]
        found[place] = f"{row['say']} ({linked(place[0])})"
    total = verdicts(board)
    return compact(
        board, {place: found[place] for place in sorted(found, key=lambda place: VERDICTS.index(total[place]))}
    )


def headlines(board: pd.DataFrame) -> Table:
    """What the chapters claim themselves, with the numbers of the runs on the book's own texts, and the controls."""
    rows = []
    for chapter, said in chapters().items():
        for record in tidy.runs_of(chapter[3:], "book").values():
            numbers = numbers_of(record["table"])
            for claim in said["headlines"]:
                cell = judge(claim, numbers)
                controls = "; ".join(f"{name}: {one.text}" for name, one in cell.controls.items())
                text = f"{cell.text} ({claim.rule})"
                rows.append([linked(chapter), claim.claim, text, controls or claim.uncontrolled])
    return Table(["chapter", "headline", "ours", "control"], rows)


def by_run(board: pd.DataFrame) -> Table:
    """Findings by run and mark, control networks included; a finding without a number in a run is left out there."""
    place = board.profile.map(tidy.PROFILES.index)
    ordered = board.assign(place=place, run=board.model + board.network + ", " + board.profile)
    counts = ordered.groupby(["network", "place", "model", "run"]).verdict.value_counts().unstack(fill_value=0)
    counts = counts.reindex(columns=list(DECIDED), fill_value=0).droplevel([0, 1, 2])
    return Table(
        ["run", *(f"{mark} {name}" for name, mark in DECIDED.items())],
        [[run, *row] for run, *row in counts.itertuples()],
    )


def summary(board: pd.DataFrame) -> Table:
    """Findings by chapter and verdict, with a line for all."""
    counts = tally(board)
    rows = [
        [linked(chapter), f"{{ref}}`{titled(chapter)} <{label(chapter)}>`", *row]
        for chapter, *row in counts.itertuples()
    ]
    return Table(["chapter", "", *counts.columns], [*rows, ["all", "", *counts.sum()]])


def rules(board: pd.DataFrame) -> Table:
    """The rules, each with the number of findings it judges."""
    claims = [claim for said in chapters().values() for claim in said["claims"]]
    used = {rule: sum(f"{claim.rule} ".startswith(f"{rule} ") for claim in claims) for rule in RULES}
    return Table(["rule", "what it asks", "findings"], [[rule, RULES[rule], n] for rule, n in used.items() if n])


def reasons(board: pd.DataFrame) -> Table:
    """Why numbers of the papers have none of ours beside them: reason, how many, which."""
    rows = []
    for reason, meaning in REASONS.items():
        listed = [text for said in chapters().values() for text in said["not measured"].get(reason, ())]
        names = {key: [] for key, _ in (text.split(maxsplit=1) for text in listed)}
        for text in listed:
            key, claims = text.split(maxsplit=1)
            names[key] += [name.replace("_", " ") for name in claims.split(", ")]
        which = "; ".join(f"{{cite:t}}`{key}`: {', '.join(found)}" for key, found in names.items())
        rows += [[meaning, sum(map(len, names.values())), which]] if listed else []
    return Table(["reason", "claims", "which"], rows)


def sections(board: pd.DataFrame) -> str:
    """A part of the page for every chapter in Markdown: what its findings are about, and folded, a table for each paper and model."""
    parts, counts = [], tally(board)
    for chapter in counts.index:
        said = chapters()[chapter]
        found = ", ".join(f"{n} {PLURAL.get(name, name)}" for name, n in counts.loc[chapter].items() if n)
        parts += [f"({label(chapter)})=\n## Chapter {int(chapter[:2])}: {said['title']}", said["intro"]]
        parts += [
            f"::::{{dropdown}} {counts.loc[chapter].sum()} findings: {found}",
            f"Chapter {linked(chapter)}. {_texts(chapter)}",
        ]
        groups: dict[tuple[str, str], dict] = {}
        for n, claim in enumerate(said["claims"]):
            if claim.rule:
                groups.setdefault((claim.paper.split()[0], claim.source["model"]), {})[chapter, n] = claim.claim
        for (paper, model), rows in groups.items():
            data = dict.fromkeys(said["claims"][n].source["data"] for _, n in rows)
            parts += [f"{{cite:t}}`{paper}`: {model}. Their data: {'; '.join(data)}.", repr(compact(board, rows))]
        parts.append("::::")
    return "\n\n".join(filter(None, parts))


def _texts(chapter: str) -> str:
    """Which corpus each run used."""
    corpora: dict[str, list[str]] = {}
    for profile in tidy.PROFILES:
        for model, record in tidy.runs_of(chapter[3:], profile).items():
            name = (record["provenance"]["corpus"] or {"name": "several corpora"})["name"]
            corpora.setdefault(name, []).append(f"{model}, {profile}")
    texts = "; ".join(f"{' and '.join(runs)}: *{corpus}*" for corpus, runs in corpora.items())
    return f"Our data: {texts}." if texts else "Nothing is recorded yet."


def as_text(model: str | None = None, chapter: str | None = None) -> str:
    """The scoreboard for a terminal: a table a chapter with all runs, and how many findings hold.

    Raises:
        ResultError: for a chapter that is not on the scoreboard, or a model of which nothing is recorded.
    """
    names = [name for name, said in chapters().items() if any(claim.rule for claim in said["claims"])]
    wanted = [c for c in names if chapter in (None, c, c[:2], c[3:], str(int(c[:2])))]
    if not wanted:
        raise ResultError(f"The scoreboard has no chapter {chapter!r}. It has: {', '.join(names)}.")
    board = judged()
    board = board[board.chapter.isin(wanted)]
    if model not in (None, *board.model):
        raise ResultError(
            f"Nothing is recorded for the model {model!r}. Recorded: {', '.join(sorted(set(board.model))) or 'nothing'}."
        )
    board = board if model is None else board[board.model == model]
    total, parts = verdicts(board), []
    for name in wanted:
        found = board[board.chapter == name]
        cells = found.assign(run=found.model + found.network + ", " + found.profile).pivot(
            index="claim", columns="run", values="text"
        )
        claims = chapters()[name]["claims"]
        rows = [
            [claims[n].claim, total[name, n], claims[n].theirs, *row] for n, *row in cells.fillna("").itertuples()
        ]
        heads = ["finding", "verdict", "paper", *cells.columns]
        width = max(10, (shutil.get_terminal_size((160, 24)).columns - 2 * len(heads)) // (len(heads) + 1))
        parts.append(f"{name}\n" + tabulate(rows, heads, maxcolwidths=[2 * width, *[width] * (len(heads) - 1)]))
    parts.append("  ".join(f"{mark} {name}" for name, mark in DECIDED.items()))
    if chapter is None:
        parts.append(tabulate(tally(board), headers="keys"))
    return "\n\n".join(parts)


def titled(chapter: str) -> str:
    """The chapter's name in words."""
    return chapter[3:].replace("_", " ")


def label(chapter: str) -> str:
    """The label of the chapter's part of the page."""
    return f"scoreboard-{chapter[3:].replace('_', '-')}"


def linked(chapter: str) -> str:
    """A reference to the chapter's page."""
    return f"{{doc}}`{chapter[:2]} <../notebooks/{chapter}>`"


# ---------------------------------------------------------------------------------------- a chapter's own table


def numbers_in(values: Mapping[str, Any], rows: Any, network: str = "") -> Numbers:
    """The numbers of a network in fresh or recorded values, by the ``tidy`` of a chapter's ``tables``."""
    record = {"values": results.plain(values), "provenance": {"parameters": {}}}
    found = numbers_of(tidy.joined(rows(record)))
    return {("", name): number for (whose, name), number in found.items() if whose == network}


def beside(chapter: str, paper: str, columns: Mapping[str, Numbers]) -> Table:
    """A paper's claims that have a label, beside the numbers of several runs.

    Args:
        chapter: name of the notebook.
        paper: its key in ``data/papers.yml``.
        columns: heading -> numbers (:func:`numbers_in`).
    """
    said = read(places.book_data() / "claims" / f"{chapter}.yml")["claims"]
    claims = [claim for claim in said if claim.label and claim.paper.split()[:1] == [paper]]
    models = sorted({claim.source["model"] for claim in claims})
    rows = [[claim.label, claim.theirs, *(compared(claim, one)[0] for one in columns.values())] for claim in claims]
    return Table(["", f"{paper[:-4].capitalize()} et al. {paper[-4:]}: {', '.join(models)}", *columns], rows)
