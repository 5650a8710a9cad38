"""The scoreboard: what papers and chapters claim, joined with the recorded numbers, and judged by a few stated rules.

A claim is a row of ``data/claims/NN_chapter.yml``; the papers' numbers are in ``data/papers.yml``, ours in the tables beside the
records (:mod:`helpers.results`). No number is typed by hand, and verdicts are computed whenever the page is built.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from helpers import places, results
from helpers.stats import Estimate

HOLDS, ALSO, MIXED, UNDECIDED, FAILS = "holds", "also the control", "mixed", "undecided", "fails"
LEVEL = "level"
APART, ABSENT = "not comparable", "no number"
#: Verdict of a comparison that could be made -> its mark.
MARKS = {HOLDS: "●", ALSO: "◎", MIXED: "◪", UNDECIDED: "◐", LEVEL: "≈", FAILS: "○"}
VERDICTS = (*MARKS, APART, ABSENT)
FIRM = "\N{NO-BREAK SPACE}"
#: Unit -> factor that turns a recorded number into it, decimals shown, how it is written, and what a person says after it.
UNITS = yaml.safe_load(Path(__file__).with_name("units.yml").read_text("utf-8"))
#: What the page says of them is in ``book/scoreboard.md``.
RULES = ("above", "below", "about", "around", "at least", "equal", "every", "passed", "shown")
#: What a claim, or a control of it, names numbers for.
ROLES = ("ours", "against", "difference", "judged", "p")
#: Where a chapter records a p-value of a test of its own, "holds" also needs one below this.
LARGEST_P = 0.05
#: How far from the paper's number "about" reaches.
FACTOR = 1.25


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
        level: how far from the bound, in the unit shown, still counts as level: an undecided interval that lies within it says so.
        controls: name -> its number, by default the same as ours. ``@random`` and ``@shuffled`` are networks recorded with ours; another name
            needs a number of its own, or several: ``{ours, against, difference}``, and where its interval is a band of random draws the rule
            ``around`` our number. What holds of a control, too, is a finding only where ours is past the bound by more (:func:`lead`).
        uncontrolled: where nothing could have shown the same, why.
        power, visible: a number of the test (how many cases there were, or the smallest effect that it would have seen in the unit shown), and the
            least or most that it may be, as a rule: ``at least 20``, ``below 5``. Without it a verdict that rests on seeing nothing
            (a count that is not reached, a bound that is not crossed) is undecided.
        row, number, beside, note: of a paper's table, the row with these fields and which of its fields is the number; the field, or the row, that it is
            compared with; fields to show beside the place in the paper.
        unit: of what is shown, where it is not the paper's; "count" for whole numbers.
        missing: what a model lacks that has no such number: ``no such head``.
        comparison: claims of a chapter that share this name are readings of one comparison, which counts once.
        label: what stands in the first column of the chapter's own table.
        tell: how one would say it to a colleague, for the first table of the page.
        run: profile of the run that decides a headline, where it is not that on the book's own texts.
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
    level: float = 0
    controls: Mapping[str, Any] = field(default_factory=dict)
    uncontrolled: str = ""
    power: str = ""
    visible: str = ""
    row: Mapping[str, Any] = field(default_factory=dict)
    number: str = ""
    beside: Any = None
    note: Sequence[str] = ()
    unit: str | None = None
    missing: str = "–"
    comparison: str = ""
    label: str = ""
    tell: str = ""
    run: str = "book"

    @property
    def source(self) -> Mapping[str, Any]:
        """The claim in ``data/papers.yml``; of a chapter's own there is nothing."""
        return results.paper(*self.paper.split()) if self.paper else {}

    @property
    def shown_in(self) -> list[Any]:
        """The unit of what is shown, as in :data:`UNITS`."""
        return UNITS.get(self.source.get("unit") if self.unit is None else self.unit, UNITS[""])

    def cited(self, row: Mapping[str, Any], name: str) -> Any:
        """A number of the one row of the paper's table that has these fields; without a row the paper's number."""
        if not row:
            return self.source["value"]
        (same,) = [line for line in self.source["rows"] if row.items() <= line.items()]
        return same[name]

    @property
    def theirs(self) -> str:
        """The paper's number in words, with the place it is from."""
        if not self.row:
            return results.paper_text(self.source) if self.paper else ""
        numbers = [self.cited(self.row, self.number)]
        if self.beside is not None:
            other = (self.row, self.beside) if isinstance(self.beside, str) else (self.beside, self.number)
            numbers.append(self.cited(*other))
        notes = [str(self.cited(self.row, name)) for name in self.note]
        parts = {"value": " vs ".join(map(str, numbers)), "where": "; ".join([*notes, self.source["where"]])}
        return results.paper_text(parts | ({} if isinstance(numbers[0], str) else {"unit": self.source.get("unit")}))


#: Of a row in ``data/claims``.
FIELDS = {column.name for column in fields(Claim)} - {"chapter"}


@dataclass(frozen=True)
class Number:
    """A number, the ends of its 95 % interval where one was recorded, and words to show instead where it has some."""

    value: float
    low: float = math.nan
    high: float = math.nan
    words: str | None = None

    @property
    def ends(self) -> list[float]:
        """Of the interval; twice the number itself where there is none."""
        return [self.value if math.isnan(end) else end for end in (self.low, self.high)]

    def __mul__(self, factor: float) -> "Number":
        low, high = sorted((factor * self.low, factor * self.high))
        return Number(factor * self.value, low, high, self.words)

    def __sub__(self, other: "Number") -> "Number":
        """The difference, with the widest interval that two intervals allow."""
        return Number(self.value - other.value, self.low - other.high, self.high - other.low)

    def __format__(self, spec: str) -> str:
        unsigned = spec.lstrip("+")
        interval = f" [{self.low:{unsigned}},{FIRM}{self.high:{unsigned}}]" if math.isfinite(self.low) else ""
        alone = " (no interval)" if math.isinf(self.low) else ""
        return f"{self.value:{spec}}{interval}{alone}".replace("-", "−")


#: (network, number as claims name it) -> the number.
Numbers = Mapping[tuple[str, str], Number]


def numbers_of(table: pd.DataFrame) -> Numbers:
    """The numbers of a stored table that claims can name: of whole models, and of the one head or layer that a quantity is of.

    The label of a whole model's number is how it is shown.
    """
    named = table.assign(name=table.quantity + ("/" + table.of.astype(object)).fillna(""))
    single = named[named.layer.isna() | ~named.duplicated(["network", "name"], keep=False)]
    words = single.label.astype(object).where(single.label.notna() & single.layer.isna(), None)
    columns = (single.network, single.name, single.value, single.low, single.high, words)
    return {(network, name): Number(*number) for network, name, *number in zip(*columns, strict=True)}


# Verdicts


def verdict(number: Number, rule: str, bound: float, margin: float = 0) -> str:
    """What a rule says of a number and its interval; a number without one, such as a count, is certain.

    Args:
        margin: an interval across the bound that stays within this distance of it is level.
    """
    value, (low, high) = number.value, number.ends
    least, most = sorted((bound / FACTOR, bound * FACTOR))
    holds, fails = {
        "above": (low > bound, high < bound),
        "below": (high < bound, low > bound),
        "about": (least <= low and high <= most, high < least or low > most),
        "around": (-math.inf < low <= bound <= high < math.inf, not low <= bound <= high),
        "at least": (value >= bound, not value >= bound),
        "equal": (value == bound, value != bound),
        "passed": (value != 0, value == 0),
        "every": (value == 1, value == 0),
        "shown": (False, False),
    }[rule]
    if not holds and not fails and bound - margin < low <= high < bound + margin:
        return LEVEL
    return HOLDS if holds else FAILS if fails else {"every": MIXED, "shown": APART}.get(rule, UNDECIDED)


def ruled(claim: Claim, rule: str, numbers: Numbers, network: str = "") -> tuple[str, float]:
    """A rule's name, and what a number is held against.

    Raises:
        ResultError: for an unknown rule.
    """
    parts = re.fullmatch(f"({'|'.join(RULES)})(?: (.+))?", rule)
    if parts is None:
        raise results.ResultError(f"{claim.claim}: there is no rule {rule!r}; there are {', '.join(RULES)}.")
    name, than = parts[1], parts[2] or "0"
    if than == "paper":
        return name, float(claim.cited(claim.row, claim.number))
    if re.fullmatch(r"-?[\d.]+", than):
        return name, float(than)
    if than.split()[0] in results.from_yaml("papers"):
        return name, float(results.paper(*than.split())["value"])
    return name, claim.shown_in[0] * numbers.get((network, than), Number(math.nan)).value


def spoken(number: Number, claim: Claim, *, compared: bool) -> str:
    """A number as a person says it: ``38 points ahead [34, 42]``; with a decimal more where its interval would have no width."""
    _, digits, _, *words = claim.shown_in
    more, less = words[compared]
    digits -= digits in (1, 2)
    nearest = min(abs(number.low), abs(number.high))  # an end that is not 0 is not shown as 0
    while (
        f"{number.low:.{digits}f}" == f"{number.high:.{digits}f}" != "nan" or 0 < nearest < 0.5 / 10**digits
    ) and digits < 3:
        digits += 1
    value, _, interval = f"{number:z.{digits}f}".partition(" ")
    if "points" in more and not value.strip("0."):
        value, more = "no", "difference"
    elif less and number.value < 0:
        value, _, interval = f"{number * -1:z.{digits}f}".partition(" ")
        more = less
    more = more.replace("points", "point") if value == "1" else more
    return " ".join(filter(None, [f"{value} {more}".strip().replace(" ", FIRM), interval]))


@dataclass(frozen=True)
class Cell:
    """One run's number for a claim in words, and its verdict; controls: name -> cell.

    Attributes:
        said, value: what is judged, as a person says it, and as a number.
        past: how far past the bound what is judged is, and our number itself where it is compared with another; for rules without a direction NaN.
        bound: what it is held against.
        against: that other number.
        band: whether it is a band of random draws, which says nothing of the control itself.
        beyond: of a control that passes as well or is too near, how much further past the bound ours is, or the control, in words.
    """

    text: str
    verdict: str
    controls: Mapping[str, "Cell"] = field(default_factory=dict)
    said: str = "–"
    value: float = math.nan
    past: tuple[Number, Number] = (Number(math.nan), Number(math.nan))
    bound: float = math.nan
    against: float = math.nan
    band: bool = False
    beyond: str = ""

    @property
    def mark(self) -> str:
        """That of the verdict; of the band of random draws, whether ours lies in it."""
        if self.band:
            return ", ours among them" if self.verdict == HOLDS else ", ours outside"
        return f"{FIRM}{MARKS.get(self.verdict, '')}".rstrip()

    def __str__(self) -> str:
        return self.text + self.mark + self.beyond


def compare(claim: Claim, numbers: Numbers, network: str = "") -> Cell:
    """Our number of a network in words, with its unit, and what the claim's rule says of it."""
    factor, digits, unit, *_ = claim.shown_in
    unit = unit.replace(" ", FIRM)
    given = {}
    for role in ROLES:
        if name := getattr(claim, role):  # "@random NAME" is a control's number, of which a claim can be, too
            given[role] = numbers.get(tuple(name.split(" ", 1)) if name.startswith("@") else (network, name))
    if any(given.get(role, 0) is None for role in ("ours", "against", "judged")):
        return Cell(claim.missing, ABSENT, said=claim.missing)
    number = given["ours"] * factor
    if number.value == 1:
        unit = unit.replace("heads", "head")
    text = f"{number:z.{digits}f}{unit}" if number.words is None else number.words
    if "against" in given:
        other = given["against"] * factor
        text = f"{number.value:z.{digits}f}{FIRM}vs{FIRM}{other.value:z.{digits}f}{unit}, ".replace("-", "−")
        number = given["difference"] * factor if given.get("difference") else number - other
        text += f"{number:+z.{digits}f}{f'{FIRM}points' if '%' in unit else unit}"
    tested, (rule, bound) = given.get("judged", number), ruled(claim, claim.rule or "shown", numbers, network)
    result = verdict(tested, rule, bound, claim.level)
    if result == HOLDS and "p" in given and given["p"].value >= LARGEST_P:
        result = UNDECIDED
    side, compared = {"above": 1, "at least": 1, "below": -1}.get(rule, math.nan), "against" in given
    more = {"past": ((tested - Number(bound, bound, bound)) * side, given["ours"] * factor * side)}
    more |= {"bound": bound, "band": rule == "around"} | ({"against": given["against"].value} if compared else {})
    return Cell(text, result, said=spoken(number, claim, compared=compared), value=number.value, **more)


def lead(cell: Cell, control: Cell) -> Number:
    """By how much further past its bound a network is than a control, with the interval for two independent numbers (square and add). What
    both are compared with cancels out where it is one number.
    """
    bare = cell.against == control.against and all(math.isfinite(each.past[1].low) for each in (cell, control))
    ours, other = cell.past[bare], control.past[bare]
    value, (low, high), (least, most) = ours.value - other.value, ours.ends, other.ends
    below = math.hypot(ours.value - low, most - other.value)
    above = math.hypot(high - ours.value, other.value - least)
    return Number(value, value - below, value + above) if below or above else Number(value)


def judge(claim: Claim, numbers: Numbers) -> Cell:
    """What one record says of a claim, and of each control what it says by the same rule."""
    cell, controls, rivals = compare(claim, numbers), {}, set()
    for name, other in claim.controls.items():
        names = {"ours": other} if isinstance(other, str) else other
        same = replace(claim, **dict.fromkeys(ROLES, "") | names) if names else claim
        control = compare(same, numbers, name if name.startswith("@") else "")
        if cell.verdict == HOLDS and control.verdict in (HOLDS, LEVEL, UNDECIDED):
            further = lead(cell, control)
            rival = verdict(further, "above", 0) != HOLDS
            rivals |= {control.verdict} if rival else set()
            if math.isfinite(further.value) and (rival or control.verdict == HOLDS):
                if further.ends[0] <= 0 <= further.ends[1]:
                    whose, sign = "ours less the control:", 1
                else:
                    whose, sign = ("the control further by", -1) if further.value < 0 else ("ours further by", 1)
                beyond = f"; {whose} {further * sign:z.{claim.shown_in[1]}f}"
                control = replace(control, beyond=beyond, said=control.said + beyond)
        controls[name] = control
    result, power = cell.verdict, numbers.get(("", claim.power))
    if rivals:
        result = ALSO if HOLDS in rivals else UNDECIDED
    elif power and result == (FAILS if claim.rule.startswith("at least") else HOLDS):  # it rests on seeing nothing
        seen = power if claim.visible.startswith("at least") else power * claim.shown_in[0]
        if verdict(seen, *ruled(claim, claim.visible, numbers)) != HOLDS:
            result = UNDECIDED
    if claim.rule == "passed" and claim.judged and result in (HOLDS, ALSO, FAILS):
        # what was judged stands before what is shown
        cell = replace(cell, text=f"{'no' if result == FAILS else 'yes'} ({cell.text})")
    return replace(cell, verdict=result, controls=controls)


def overall(verdicts: Iterable[str]) -> str:
    """Of several models: the verdict of those that decide it if they agree, mixed if they do not, undecided if none does. Of one that holds
    and one that a control shows as well, the weaker.
    """
    known = set(verdicts) - {ABSENT}
    deciding = known - {UNDECIDED} or known or {ABSENT}
    deciding = deciding - {HOLDS} if ALSO in deciding else deciding
    return deciding.pop() if len(deciding) == 1 else MIXED


# All claims and all runs


@cache
def chapters() -> dict[str, dict[str, Any]]:
    """Notebook -> what its file in ``data/claims`` says, in the order of the book: title, intro, claims and headlines as :class:`Claim`, and
    papers' numbers that are not measured.
    """
    files = {}
    for file in sorted((places.book_data() / "claims").glob("*.yml")):
        content = {"intro": "", "claims": [], "headlines": [], "not measured": {}}
        content |= results.from_yaml(f"claims/{file.stem}")
        for kind, known in (("claims", FIELDS - {"run"}), ("headlines", FIELDS - {"paper"})):
            for row in content[kind]:
                if unknown := ", ".join(sorted(set(row) - known)):
                    raise results.ResultError(
                        f"{file}: under {kind} a row has no {unknown}: {row}. A paper's finding stands under claims."
                    )
            content[kind] = [Claim(file.stem, **row) for row in content[kind]]
        files[file.stem] = content
    return files


@cache
def findings() -> pd.DataFrame:
    """Every claim that has a rule, by notebook and number there: the row, its sentence, and which paper, model and data it is of ("" for our own)."""
    rows = [
        {"chapter": chapter, "number": n, "row": claim, "claim": worded(claim)}
        | {"paper": claim.paper.partition(" ")[0]}
        | {"comparison": claim.comparison or str(n)}
        | {about: claim.source.get(about, "") for about in ("model", "data")}
        for chapter, content in chapters().items()
        for n, claim in enumerate(content["claims"])
        if claim.rule
    ]
    return pd.DataFrame(rows).set_index(["chapter", "number"])


def judged() -> pd.DataFrame:
    """Every finding, judged on every recorded run.

    Returns:
        A row for each finding and run, and for each of its controls: notebook, the claim's number there, model, profile, control ("" for the
        model itself; of controls only those of runs that count), whose the number is in words, text, verdict, what is judged in a person's words
        and as a number, how far past its bound that is, and whether it is the run that counts for the model: on real corpora if it has such a
        number, else on the book's own.
    """
    rows = []
    for chapter, claims in findings().row.groupby(level=0):
        for model, run in results.all_runs(chapters=[chapter[3:]]):
            numbers, profile = numbers_of(run.table), run["provenance"]["profile"]
            for key, claim in claims.items():
                cell = judge(claim, numbers)
                for name, each in {"": cell, **cell.controls}.items():
                    whose = model + (name if name.startswith("@") else f", {name}" if name else "")
                    past = (
                        each.past[0] if math.isfinite(each.past[0].value) else Number(-abs(each.value - each.bound))
                    )
                    told_as = str(each), each.verdict, each.said, each.value
                    rows.append([*key, model, profile, name, whose, *told_as, past])
    key = ["chapter", "claim", "model"]
    columns = [*key, "profile", "control", "whose", "text", "verdict", "said", "value", "past"]
    board = pd.DataFrame(rows, columns=columns)
    numbered = board[(board.control == "") & (board.verdict != ABSENT)]
    counting = numbered.groupby(key).profile.last()  # the real corpora come after the book's
    board["counts"] = board.profile == board.join(counting.rename("counting"), on=key).counting
    return board[board.counts | (board.control == "")].reset_index(drop=True)


def verdicts(board: pd.DataFrame) -> pd.Series:
    """(Notebook, number of the claim) -> verdict over models, of every finding."""
    overall_of = board[board.counts & (board.control == "")].groupby(["chapter", "claim"]).verdict.agg(overall)
    return overall_of.reindex(findings().index, fill_value=ABSENT)


def comparisons(board: pd.DataFrame) -> pd.DataFrame:
    """(Notebook, comparison) by model: the verdict, that of all readings of a comparison together; and the claim that is read first."""
    found = findings()
    counting = board[board.counts & (board.control == "")].join(found.comparison, on=["chapter", "claim"])
    by_model = counting.groupby(["chapter", "comparison", "model"]).verdict.agg(overall).unstack(fill_value=ABSENT)
    first = found.reset_index().groupby(["chapter", "comparison"], sort=False).row.first()
    by_model = by_model.reindex(first.index, fill_value=ABSENT)
    return by_model.assign(verdict=by_model.agg(overall, axis=1), row=first)


def agreement(board: pd.DataFrame) -> pd.Series:
    """Of the findings that hold: in how many every model agrees, one leaves it open, or only one has a number."""
    holding = comparisons(board).query("verdict == @HOLDS").drop(columns=["verdict", "row"])
    alone, both = (holding == ABSENT).any(axis=1), (holding == HOLDS).all(axis=1)
    names = ("hold in both", "in one, undecided in the other", "in one, no number in the other")
    return pd.Series(dict(zip(names, (both.sum(), (~both & ~alone).sum(), alone.sum()), strict=True)))


def tally(board: pd.DataFrame) -> pd.DataFrame:
    """Notebook by verdict: how many findings; readings of one comparison count once."""
    counts = comparisons(board).verdict.groupby(level=0).value_counts().unstack(fill_value=0)
    return counts.reindex(columns=list(VERDICTS), fill_value=0)


# Tables of the page


def strongest(claim: Claim, controls: pd.DataFrame, shown: str = "{0.whose} {0.text}") -> str:
    """The control that comes nearest to passing, of rows of :func:`judged`; without one, why there is none."""
    place = controls.verdict.map(VERDICTS.index)
    rule, bound = ruled(claim, claim.rule, {})
    strengths = {"above": controls.value, "at least": controls.value, "equal": -(controls.value - bound).abs()}
    strength = strengths.get(rule, -controls.value)
    known = controls.assign(place=place, strength=-strength)[controls.verdict != ABSENT]
    for control in known.sort_values(["place", "strength"]).head(1).itertuples():
        return shown.format(control)
    return claim.uncontrolled or ("no control has such a number" if claim.controls else "–")


def compact(board: pd.DataFrame, named: Mapping[tuple[str, int], str] | pd.Series) -> results.Table:
    """Findings: verdict, the paper's number, that of the run that counts for each model, and the strongest control.

    Args:
        named: notebook and number of a claim -> what to call it.
    """
    total, board = verdicts(board), board[board.counts].set_index(["chapter", "claim"])
    board = board.loc[board.index.isin(named.keys())]
    models = list(board.model[board.control == ""].unique())
    rows = []
    for key, name in named.items():
        chosen = board[board.index == key]
        ours, controls = chosen[chosen.control == ""], chosen[chosen.control != ""]
        decide = (ours.verdict.isin(list(MARKS)) & (ours.verdict != UNDECIDED)).sum()
        share = f", {decide}{FIRM}of{FIRM}{len(ours)}" if decide else ""
        claim = findings().row[key]
        texts = ours.set_index("model").text.reindex(models, fill_value=claim.missing)
        rows.append([name, total[key] + share, claim.theirs, *texts, strongest(claim, controls)])
    return results.Table(["statement", "verdict", "paper", *models, "strongest control"], rows)


def headlines() -> list[tuple[str, Claim, Cell]]:
    """What the chapters claim themselves, judged on the book's own texts or on the run that a claim names: notebook, claim, cell."""
    return [
        (chapter, claim, judge(claim, numbers_of(run.table)))
        for chapter, content in chapters().items()
        for claim in content["headlines"]
        for model, run in results.all_runs([claim.run], [chapter[3:]])
        if claim.run == "full" or model == "minilm"
    ]


def quoted(board: pd.DataFrame) -> list[tuple[str, int]]:
    """The findings that one would tell a colleague, by verdict: notebook and number of each."""
    order = verdicts(board).map(VERDICTS.index).sort_values(kind="stable").index
    return [key for key in order if findings().row[key].tell]


def beliefs() -> dict[str, tuple[list[str], dict[str, dict[str, Estimate | float]]]]:
    """The findings of ``data/beliefs.yml``, as :func:`helpers.plots.dot_panels` draws them: numbers on real texts, in the unit shown.

    Raises:
        ResultError: when a finding is not true of ``minilm`` any more.
    """
    panels = {}
    for finding in results.from_yaml("beliefs")["findings"]:
        runs = results.runs(finding["chapter"], profile="full", own=False)
        series: dict = {name: {} for name in ("the model", "@random", "@shuffled", "a rule")}
        scale, rule = UNITS.get(finding["unit"], (1,))[0], finding.get("rule", {})
        for model, run in runs.items():
            numbers = numbers_of(run.table)
            for name, network in {"the model": "", "@random": "@random", "@shuffled": "@shuffled"}.items():
                if (network, finding["ours"]) in numbers:
                    number = numbers[network, finding["ours"]] * scale
                    series[name][model] = Estimate.from_record(vars(number))
            if rule and all(("", part) in numbers for part in rule):
                series["a rule"][model] = sum(sign * scale * numbers["", part].value for part, sign in rule.items())
        sign, bound = finding["true if"]
        if (series["the model"]["minilm"].value > bound) != (sign == ">"):
            raise results.ResultError(f"not true any more: {finding['finding']}")
        title = f"{finding['finding']} ({results.notebooks()[finding['chapter']][:2]}; {finding['unit']})"
        panels[title] = ([*runs], {name: values for name, values in series.items() if values})
    return panels


def told(board: pd.DataFrame) -> dict[str, results.Table]:
    """The statements that one would tell a colleague, group by group: the sentence, what each model says of it, and the strongest control."""
    total, claims = verdicts(board), findings().row
    counting = board[board.counts].set_index(["chapter", "claim"])
    models, groups = [*counting.model[counting.control == ""].unique()], {}
    for key in quoted(board):
        claim, rows = claims[key], counting[counting.index == key]
        numbers = rows[rows.control == ""].set_index("model").said.reindex(models, fill_value="–")
        sentence = f"{claim.tell} ({{doc}}`{key[0][:2]} <../notebooks/{key[0]}>`)"
        line = [sentence, *numbers, strongest(claim, rows[rows.control != ""], "{0.said} ({0.whose})")]
        groups.setdefault(total[key].capitalize(), []).append(line)
    return {name: results.Table(["statement", *models, "strongest control"], lines) for name, lines in groups.items()}


def summary(board: pd.DataFrame) -> pd.DataFrame:
    """Findings by chapter and verdict, in few columns, with a line for all."""
    counts = tally(board)
    counts.loc["all"] = counts.sum()
    columns = {"hold": [HOLDS], ALSO: [ALSO], "fail": [FAILS]}
    columns |= {"mixed, level or undecided": [MIXED, LEVEL, UNDECIDED], "no number to compare": [APART, ABSENT]}
    return pd.DataFrame({name: counts[parts].sum(axis=1) for name, parts in columns.items()})


def select(models: Collection[str] = (), chapters: Collection[str] = ()) -> pd.DataFrame:
    """What :func:`judged` says of some models and notebooks (default: all).

    Raises:
        ResultError: for a chapter that is not on the scoreboard, or a model of which nothing is recorded.
    """
    board = judged()
    for column, wanted in (("chapter", chapters), ("model", models)):
        known = set(board[column])
        if unknown := ", ".join(set(wanted) - known):
            raise results.ResultError(
                f"The scoreboard has nothing of the {column} {unknown}. Recorded: {', '.join(sorted(known)) or 'nothing'}. "
                "Headlines are judged by the tests. Numbers of your own texts are not judged; take them with --own --profile own --to FILE."
            )
        board = board[board[column].isin(wanted)] if wanted else board
    return board


# A chapter's own table


def comparison_table(
    run: results.Run, paper: str = "", *, networks: Iterable[str] = ("",), full: str = "full"
) -> results.Table:
    """The chapter's claims that have a label, beside this run, the recorded runs on real corpora, and this run's controls.

    Args:
        paper: its key in ``data/papers.yml``, for the claims of one paper only; without one, the chapter's own are among them, and there is
            no column of papers where no claim is of one.
        networks: of this run: ``""`` for the model itself, ``"@random"``, ``"@shuffled"``.
        full: what the real corpora are called.
    """
    notebook = results.notebooks().get(run.chapter, run.chapter)
    if notebook not in chapters():
        raise results.ResultError(f"There is no data/claims/{notebook}.yml, which says what the chapter claims.")
    known = [row for row in chapters()[notebook]["claims"] if row.label]
    claims = [claim for claim in known if claim.paper.startswith(paper)]
    columns = {"": [claim.label for claim in claims]}
    if paper:
        models = ", ".join(sorted({claim.source["model"] for claim in claims}))
        [(where, count)] = Counter(claim.source["where"] for claim in claims).most_common(1)
        often = f"; {where}" if 2 * count > len(claims) else ""  # then the head of the column says it once
        columns[f"{named(paper)}{often}: {models}"] = [claim.theirs.replace(f"{often})", ")") for claim in claims]
    elif any(claim.paper for claim in claims):
        columns["papers"] = [f"{named(claim.paper)}: {claim.theirs}" if claim.paper else "" for claim in claims]
    table = run.recorded.table
    tables = {run.encoder.label: table} if "" in networks else {}
    tables |= {f"{name}, {full}": there.table for name, there in results.runs(run.chapter, profile="full").items()}
    tables |= {name: table[table.network == name].assign(network="") for name in networks if name}
    for name, there in tables.items():
        numbers = numbers_of(there)
        columns[name] = [compare(claim, numbers).text for claim in claims]
    for row, claim in enumerate(claims):  # a unit that all of a row share stands in its label
        unit = claim.shown_in[2].replace(" ", FIRM)
        if unit and all(columns[name][row].endswith((unit, "–")) for name in tables):
            columns[""][row] += f" ({unit.strip()})"
            for name in tables:
                columns[name][row] = columns[name][row].replace(unit, "")
    return results.Table(list(columns), zip(*columns.values(), strict=True))


def worded(claim: Claim) -> str:
    """A claim with its rule, where that can be said in a word or with a number."""
    rule = re.fullmatch(r"(above|below)|(every|passed|[a-z ]+ (?:paper|-?[\d.]+))", claim.rule)
    return claim.claim + (f" ({rule[2] or f'{rule[1]} 0'})".replace(" -", " −") if rule else "")


def named(paper: str) -> str:
    """``clark2019``, or a claim of it, as ``Clark et al. 2019``."""
    key = paper.split()[0]
    return f"{key[:-4].capitalize()} et al. {key[-4:]}"
