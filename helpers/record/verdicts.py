"""A claim of a paper, the recorded number that stands beside it, and the rule that judges the two.

A chapter's ``findings.py`` lists its :class:`Finding` objects and hands on ``findings(values)``, which judges them on one
record. The chapter's own table (:func:`beside`), the scoreboard and the tests all read that.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from typing import Any

from helpers.engine.estimates import Estimate
from helpers.record import results
from helpers.record.results import ResultError, Table

HOLDS, ALSO, MIXED, UNDECIDED, FAILS = "holds", "also the control", "mixed", "undecided", "fails"
APART, ABSENT, MISSING = "not comparable", "no number", "not recorded yet"
DECIDED = {HOLDS: "●", ALSO: "◎", MIXED: "◪", UNDECIDED: "◐", FAILS: "○"}
"""Verdict of a comparison that could be made -> its mark."""
MARKS = DECIDED | dict.fromkeys((APART, ABSENT, MISSING), "")
VERDICTS = tuple(MARKS)
FIRM = "\N{NO-BREAK SPACE}"
OWN = "own"
"""The name of a claim that is a chapter's own, and no paper's."""


# ---------------------------------------------------------------------------------------- numbers


@dataclass(frozen=True)
class Number:
    """A number, the ends of its 95 % interval where one was recorded, and words to show instead where it has some."""

    value: int | float
    low: int | float | None = None
    high: int | float | None = None
    words: str | None = None

    @classmethod
    def of(cls, found: Any) -> "Number | None":
        """A number, a yes or no, or a single estimate as a Number; None stays None.

        Raises:
            ResultError: for anything else, such as a list.
        """
        if found is None or isinstance(found, Number):
            return found
        if isinstance(found, Estimate) and not found.value.shape:
            return cls(float(found.value), float(found.low), float(found.high))
        if isinstance(found, bool | int | float):
            return cls(float(found), words=("no", "yes")[found] if isinstance(found, bool) else None)
        raise ResultError(f"A number or an estimate was expected, not {str(found)[:80]!r}; take one of it.")

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the interval; of a number without one, the number itself."""
        return (self.value if self.low is None else self.low, self.value if self.high is None else self.high)

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


def ordered(numbers: Mapping[str, float], spec: str) -> Number:
    """Several named numbers, as the share of pairs that stand in the order given, the smallest first."""
    found = list(numbers.values())
    pairs = [a < b for place, a in enumerate(found) for b in found[place + 1 :]]
    return Number(sum(pairs) / len(pairs), words=", ".join(f"{name} {n:{spec}}" for name, n in numbers.items()))


def opened(found: Any) -> Any:
    """Recorded values as findings read them: what was recorded of an estimate is an :class:`Estimate` again."""
    if isinstance(found, list):
        return [opened(item) for item in found]
    if not isinstance(found, Mapping):
        return found
    if set(found) == {"value", "low", "high"}:
        return Estimate.from_record(found)
    return {str(key): opened(item) for key, item in found.items()}


# ---------------------------------------------------------------------------------------- rules


def above(found: Number, bound: int | float) -> str:
    """Holds if the whole interval lies above the bound, fails if it lies below, undecided if the bound is inside."""
    low, high = found.ends
    return HOLDS if low > bound else FAILS if high < bound else UNDECIDED


def below(found: Number, bound: int | float) -> str:
    """Holds if the whole interval lies below the bound, fails if it lies above, undecided if the bound is inside."""
    return {HOLDS: FAILS, FAILS: HOLDS}.get(above(found, bound), UNDECIDED)


FACTOR = 1.25


def about(found: Number, bound: int | float) -> str:
    """Holds if the whole interval lies between four fifths and five quarters of the paper's number, fails if it lies outside, undecided if it lies across one of the two."""
    (low, high), (least, most) = found.ends, sorted((bound / FACTOR, bound * FACTOR))
    return HOLDS if least <= low and high <= most else FAILS if high < least or low > most else UNDECIDED


def at_least(found: Number, bound: int | float) -> str:
    """For counts, which have no interval: holds if the count reaches the bound, and fails otherwise."""
    return HOLDS if found.value >= bound else FAILS


def equal(found: Number, bound: int | float) -> str:
    """Holds if the number is the same, and fails otherwise."""
    return HOLDS if found.value == bound else FAILS


def every(found: Number, bound: int | float) -> str:
    """For several comparisons at once (pairs of an order, layers): holds if all come out as in the paper, fails if none does, and is mixed otherwise."""
    return HOLDS if found.value == 1 else FAILS if found.value == 0 else MIXED


def passed(found: Number, bound: int | float) -> str:
    """Holds if the chapter's own yes-or-no test was passed, and fails otherwise."""
    return HOLDS if found.value else FAILS


def shown(found: Number, bound: int | float) -> str:
    """Not judged: the two numbers measure different things and only stand beside each other."""
    return APART


RULES: dict[str, Callable[[Number, float], str]] = {
    rule.__name__.replace("_", " "): rule for rule in (above, below, about, at_least, equal, every, passed, shown)
}
LEVEL = 0.05
"""Where a chapter records a p-value of a test of its own, "holds" also needs one below this."""


def overall(verdicts: Iterable[str]) -> str:
    """Of several models: the verdict of those that decide it if they agree, mixed if they do not, undecided if none does."""
    found = set(verdicts)
    judged = found - {ABSENT, MISSING}
    if not judged:
        return ABSENT if ABSENT in found else MISSING
    deciding = judged - {UNDECIDED} or judged
    return deciding.pop() if len(deciding) == 1 else MIXED


# ---------------------------------------------------------------------------------------- findings


@dataclass(frozen=True)
class Cited:
    """Which number of a claim that has rows: the row with these fields, and one of its other fields.

    Attributes:
        against: the number that the paper compares it with.
        note: fields of the row to show beside the place in the paper.
    """

    row: Mapping[str, Any]
    field: str
    against: "Cited | None" = None
    note: Sequence[str] = ()


UNITS = dict.fromkeys(("%", "UAS", "points"), (100, 1)) | dict.fromkeys(("heads", "count"), (1, 0))
UNITS |= dict.fromkeys(("nats", "layers"), (1, 2))
"""Unit -> factor that turns a recorded number into it, decimals shown. Others: 1, and 3."""
WRITTEN = {"%": " %", "UAS": " %"} | {unit: f" {unit}" for unit in ("points", "nats", "layers", "heads")}
"""Unit -> how it is written after a number; differences of per cent are points."""

Take = str | Callable[[Any], Any]
"""How to get at something: keys with dots between them, such as ``"summary.layers"``, or a function."""


def taken(take: Take, values: Any) -> Any:
    """What a take gives of a record or of a part of one; None if the key or the place that it asks for is not there."""
    try:
        if callable(take):
            return take(values)
        return reduce(getitem, take.split("."), values) if take else values
    except (KeyError, IndexError):
        return None


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and what our number for it is held against.

    Attributes:
        name: paper and claim of ``data/papers.yml``: ``clark2019 table1``; :data:`OWN` for a claim of the chapter's own.
        rule, than: name in :data:`RULES`, and what our number is held against: a number in the unit shown, ``"paper"`` (the
            paper's number), another claim that is a number, or a function of the part of the record that is read. A claim
            without a rule stands in the chapter's own table only.
        cited: for claims with rows, which of their numbers.
        unit: of what is shown, where it is not the claim's; "count" for whole numbers. Shares of ours are shown in per
            cent where it is "%", "UAS" or "points".

    Raises:
        ResultError: for an unknown rule; :attr:`theirs` and :meth:`bound` also for an unknown claim or row.
    """

    name: str
    rule: str | None = None
    than: int | float | str | Callable[[Any], Any] = 0.0
    cited: Cited | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        if self.rule is not None and self.rule not in RULES:
            raise ResultError(f"{self.name}: there is no rule {self.rule!r}; there are {', '.join(RULES)}.")

    @property
    def paper(self) -> str:
        """The paper's key."""
        return self.name.split()[0]

    @property
    def source(self) -> Mapping[str, Any]:
        """The claim in ``data/papers.yml``; of a claim of the chapter's own there is nothing."""
        return {} if self.name == OWN else results.paper(*self.name.split())

    @property
    def theirs(self) -> str:
        """The paper's number in words, with the place it is from."""
        source, cited = self.source, self.cited
        if self.name == OWN:
            return ""
        if cited is None:
            return results.paper_text(source)
        numbers = [self._cell(one) for one in (cited, cited.against) if one is not None]
        notes = [str(self._cell(Cited(cited.row, name))) for name in cited.note]
        unit = None if isinstance(numbers[0], str) else source.get("unit")
        text = " vs ".join(map(str, numbers))
        return results.paper_text({"value": text, "unit": unit, "where": "; ".join([*notes, source["where"]])})

    def _cell(self, cited: Cited) -> Any:
        rows = [row for row in self.source["rows"] if all(row[k] == v for k, v in cited.row.items())]
        if len(rows) != 1 or cited.field not in rows[0]:
            raise ResultError(
                f"{self.name}: the paper has {len(rows)} rows with {dict(cited.row)} and a field {cited.field!r}."
            )
        return rows[0][cited.field]

    @property
    def shown_in(self) -> str:
        """The unit of what is shown."""
        return self.source.get("unit", "") if self.unit is None else self.unit

    @property
    def measure(self) -> tuple[int, int]:
        """The factor that turns a recorded number into the unit shown, and the decimals shown."""
        return UNITS.get(self.shown_in, (1, 3))

    def bound(self, part: Any) -> float:
        """What our number is held against, in the unit shown."""
        if callable(self.than):
            return Number.of(self.than(part)).times(self.measure[0]).value
        if self.than == "paper":
            return float(self.source["value"] if self.cited is None else self._cell(self.cited))
        return float(results.paper(*self.than.split())["value"] if isinstance(self.than, str) else self.than)


@dataclass(frozen=True)
class Ours:
    """How to take our number for a claim out of a record (:func:`opened`).

    Attributes:
        value: from the part of the record that is read to our number (what :meth:`Number.of` takes); None as long as the
            chapter is being written. Where a run has no such number, it is absent.
        of: from the record to that part (by default all of it).
        against, difference: to what the number is compared with, and to the paired difference; where none is recorded, the
            interval is the widest that the two allow.
        test, p: to what is judged in the number's place, and to a p-value.
    """

    value: Take | None = None
    of: Take = ""
    against: Take | None = None
    difference: Take | None = None
    test: Take | None = None
    p: Take | None = None


@dataclass(frozen=True)
class Control:
    """What could have shown the same as our model: a network or maps without what was learned, the simplest rival, a constant answer.

    Attributes:
        name: as it is shown: ``@random``, ``@shuffled``, ``the next word``.
        of: from the record to the part that stands in the place of :attr:`Ours.of`; what :class:`Ours` takes of the one is
            taken of the other.
        value: from that part to the control's number, where it is taken in another way than ours; it is then judged alone,
            without what ours is compared with.
    """

    name: str
    of: Take = ""
    value: Take | None = None


@dataclass(frozen=True)
class Row:
    """A row of the chapter's own table: what is compared, and from the part that is read to our value in words."""

    label: str
    shown: Take


@dataclass(frozen=True)
class Finding:
    """A claim of a paper or of a chapter, what has to be true of our models for it, and our number.

    Attributes:
        text: what has to be true, as a sentence.
        row: its row in the chapter's own table; without one it stands on the scoreboard only.
        control: one or several, judged by the same rule. What holds of our model and of a control is no finding.
        uncontrolled: where nothing could have shown the same, why.
    """

    claim: Claim
    text: str = ""
    ours: Ours = Ours()
    row: Row | None = None
    control: Control | tuple[Control, ...] = ()
    uncontrolled: str = ""

    @property
    def controls(self) -> tuple[Control, ...]:
        """All of them."""
        return (self.control,) if isinstance(self.control, Control) else self.control


@dataclass(frozen=True)
class Cell:
    """One run's number for a finding, as text, and its verdict."""

    text: str
    verdict: str


@dataclass(frozen=True)
class Judged:
    """A finding and what one record says about it.

    Attributes:
        ours: our cell.
        controls: name -> the control's cell.
        part: what the finding reads of the record; None if the record has no such part.
    """

    finding: Finding
    ours: Cell
    controls: Mapping[str, Cell]
    part: Any = field(repr=False)

    @property
    def shown(self) -> str:
        """Our value in words, for the chapter's own table."""
        found = None if self.part is None else taken(self.finding.row.shown, self.part)
        return "not recorded" if found is None else str(found)


def judge(findings: Iterable[Finding], values: Mapping[str, Any]) -> list[Judged]:
    """What a record's values say about each finding."""
    record = opened(values)
    return [_judged(finding, record) for finding in findings]


def _judged(finding: Finding, record: Mapping[str, Any]) -> Judged:
    claim, ours = finding.claim, finding.ours
    part = taken(ours.of, record)
    controls = {}
    for control in finding.controls:
        read = ours if control.value is None else Ours(control.value)
        controls[control.name] = _marked(*_compared(claim, read, taken(control.of, record)))
    text, verdict = _compared(claim, ours, part)
    if verdict == HOLDS and any(cell.verdict == HOLDS for cell in controls.values()):
        verdict = ALSO
    return Judged(finding, _marked(text, verdict), controls, part)


def _marked(text: str, verdict: str) -> Cell:
    return Cell(f"{text}{FIRM}{MARKS[verdict]}".strip(), verdict)


def _compared(claim: Claim, ours: Ours, part: Any) -> tuple[str, str]:
    """Our number in words, with its unit, and what the rule says of it."""
    factor, digits = claim.measure
    unit = WRITTEN.get(claim.shown_in, "").replace(" ", FIRM)

    def number(take: Take) -> Number | None:
        found = None if part is None else Number.of(taken(take, part))
        return None if found is None else found.times(factor)

    if ours.value is None:
        return "–", MISSING
    if (found := number(ours.value)) is None:
        return "–", ABSENT
    text = f"{found:.{digits}f}" + (unit if found.words is None else "")
    if ours.against is not None:
        if (other := number(ours.against)) is None:
            return "–", ABSENT
        both = (f"{Number(one.value):.{digits}f}" for one in (found, other))
        text = f"{FIRM}vs{FIRM}".join(both) + f"{unit}, "
        found = (ours.difference and number(ours.difference)) or found.minus(other)
        text += f"{found:+.{digits}f}" + (f"{FIRM}points" if "%" in unit else unit)
    if ours.test is not None and (found := Number.of(taken(ours.test, part))) is None:
        return "–", ABSENT
    verdict = RULES[claim.rule](found, claim.bound(part))
    if verdict == HOLDS and ours.p is not None and taken(ours.p, part) >= LEVEL:
        verdict = UNDECIDED
    return text, verdict


def beside(
    findings: Callable[[Mapping[str, Any]], list[Judged]], paper: str, columns: Mapping[str, Mapping[str, Any]]
) -> Table:
    """A chapter's own table: a paper's claims in one column, ours in the others.

    Args:
        findings: the chapter's function.
        paper: its key in ``data/papers.yml``.
        columns: heading -> fresh or recorded values.
    """
    found = {name: findings(results.plain(values)) for name, values in columns.items()}
    rows = [
        [first.finding, [first, *rest]]
        for first, *rest in zip(*found.values(), strict=True)
        if first.finding.claim.paper == paper and first.finding.row is not None
    ]
    models = sorted({finding.claim.source["model"] for finding, _ in rows})
    return Table(
        ["", f"{paper[:-4].capitalize()} et al. {paper[-4:]}: {', '.join(models)}", *columns],
        [[finding.row.label, finding.claim.theirs, *(one.shown for one in cells)] for finding, cells in rows],
    )
