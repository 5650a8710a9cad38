"""The characters of the book: a few heads that several chapters speak of, and what is known of each so far, from the records.

Who they are is computed: for each speciality (finding antecedents, objects, …) the head that its chapter singles out, if its number
stands beyond the simple rival of that chapter. Another model has other characters, or none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape

import numpy as np
from IPython.display import HTML

from helpers import results
from helpers.plots import COLOURS, LABELS, group_names, head_name
from helpers.results import Record
from helpers.stats import Estimate, percent

FEWEST = 20
"""A relation that occurs less often makes no character."""
SHOWN = 3
"""Relations that a card names."""

Head = tuple[int, int]
Records = Mapping[str, Record]
"""Chapter, ``"04"`` -> the values of its record."""


@dataclass(frozen=True)
class HeadProfile:
    """A head with a speciality.

    Attributes:
        head: (layer, head) from 0.
        speciality: one of :data:`SPECIALITIES`.
        facts: chapter, ``"04"`` -> what it found about this head.
    """

    head: Head
    speciality: str
    facts: Mapping[str, str]

    @property
    def label(self) -> str:
        """``3-1, the object head``."""
        return f"{head_name(*self.head)}, the {self.speciality} head"

    def card(self, upto: str = "14") -> str:
        """What is known up to a chapter, as HTML."""
        known = (f"<li><b>{chapter}</b> {fact}</li>" for chapter, fact in self.facts.items() if chapter <= upto)
        style = f"--trade: {COLOURS[SPECIALITIES[self.speciality][0]]}"
        return f'<div class="character" style="{style}"><p>{escape(self.label)}</p><ul>{"".join(known)}</ul></div>'


def of(model: str) -> tuple[HeadProfile, ...]:
    """The characters of a model in the order of :data:`SPECIALITIES`; a head with two specialities goes by the first."""
    records = records_of(model)
    cast: dict[Head, str] = {}
    for name, (_, find) in SPECIALITIES.items():
        if (head := find(records)) is not None:
            cast.setdefault(head, name)
    return tuple(HeadProfile(head, name, dict(_facts(records, head))) for head, name in cast.items())


def records_of(model: str) -> Records:
    """What the chapters of :data:`FACTS` have recorded of a model: in the book's run, or in a full one."""
    found = {}
    chapters = {notebook[:2]: name for name, notebook in results.notebooks().items() if notebook[:2] in FACTS}
    for number, name in chapters.items():
        runs = results.runs(name, profile="book")
        runs = runs if model in runs else results.runs(name, profile="full")
        if model in runs:
            found[number] = runs[model]["values"]
    return found


# Specialities


def _antecedents(records: Records) -> Head | None:
    """The head that finds most antecedents, if it is beyond the nearest mention."""
    found = records.get("05", {}).get("one_head", {}).get("earlier", {}).get("table", {}).get("all")
    return _place(found) if found and Estimate.from_record(found["gains"]["nearest"]).low > 0 else None


def _led(records: Records) -> dict[str, Record]:
    """The relations in which the head chosen on other documents is beyond the best fixed offset, the largest lead first."""
    table = records.get("04", {}).get("ud", {}).get("table", {})
    known = {r: e for r, e in table.items() if r != "all" and e["count"] >= FEWEST}
    led = {r: e for r, e in known.items() if Estimate.from_record(e["gain"]).low > 0}
    return dict(sorted(led.items(), key=lambda item: -item[1]["gain"]["value"]))


def _phrases(records: Records) -> Head | None:
    """The head that leads most relations, if it leads more than one."""
    led = [_place(found) for found in _led(records).values()]
    most = max(led, key=led.count, default=None)
    return most if led.count(most) > 1 else None


def _objects(records: Records) -> Head | None:
    """The head that finds the verb of an object, if it is beyond the best fixed offset."""
    found = _led(records).get("obj")
    return found and _place(found)


def _previous(records: Records) -> Head | None:
    """The head that gives most of its attention to the token before, if that is more than half."""
    found = [s for s in records.get("02", {}).get("summary", {}).get("specialists", ()) if s["role"] == "previous"]
    return _place(max(found, key=lambda s: s["chosen"])) if found else None


SPECIALITIES = {
    "antecedent": ("antecedent", _antecedents),
    "phrase": ("next", _phrases),
    "object": ("object", _objects),
    "previous-token": ("previous", _previous),
}
"""What a head can be known for -> its name in :data:`helpers.plots.COLOURS`, and the function that finds it in the records, or None."""


# Facts


def _facts(records: Records, head: Head) -> Iterator[tuple[str, str]]:
    for chapter, values in records.items():
        if fact := FACTS[chapter](values, head):
            yield chapter, fact


def _surface(values: Record, head: Head) -> str:
    shares = {
        name: np.array(values["patterns"][name]["value"])[head] for name in ("cls", "sep", "stop", "previous", "next")
    }
    most = max(shares, key=shares.__getitem__)
    return f"{_percent(shares[most])} of its attention goes to the {LABELS[most]}.".replace("the [", "[")


def _retreat(values: Record, head: Head) -> str:
    """The relation for which the share of [CLS] falls most where its partner is there, if the intervals lie apart."""
    ends = {}
    for relation, found in values.get("duty", {}).items():
        share = Estimate.from_record(found["share"])
        on, off = (share[found["groups"].index(f"{kind} duty"), 0] for kind in ("on", "off"))
        if _place(found) == head and off.low > on.high:
            ends[relation] = off.value, on.value
    if not ends:
        return ""
    relation = max(ends, key=lambda r: ends[r][0] - ends[r][1])
    idle, busy = map(_percent, ends[relation])
    return (
        f"Gives [CLS] {busy} from words that have a <code>{escape(relation)}</code> partner, {idle} from all others."
    )


def _relations(values: Record, head: Head) -> str:
    parts = [
        f"<code>{escape(r)}</code> {_interval(e['held_out'])}; offset {_percent(e['baseline']['value'])}"
        for r, e in _led({"04": values}).items()
        if _place(e) == head
    ]
    more = f", and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
    return f"Finds {'; '.join(parts[:SHOWN])}{more}." if parts else ""


def _chains(values: Record, head: Head) -> str:
    found = values["one_head"]["earlier"]["table"]["all"]
    nearest = _percent(found["rules"]["nearest"]["value"])
    said = (
        f"Picks an antecedent among earlier mentions: {_interval(found['held_out'])}; the nearest mention {nearest}."
    )
    return said if _place(found) == head else ""


def _probed(values: Record, head: Head) -> str:
    said = f"The best single head for joining words: {_interval(values['outcomes']['best single head']['score'])}."
    return said if values["head"]["name"] == head_name(*head) else ""


def _type(values: Record, head: Head) -> str:
    return f"Its type: {escape(group_names(values['fits'])[values['types'][head[0]][head[1]]])}."


def _missed(values: Record, head: Head) -> str:
    """Tasks in which it is the head missed most, where that is beyond chance."""
    worst = {name: task["extremes"]["worst"] for name, task in values.get("drawn", {}).items()}
    own = {name: Estimate.from_record(one["cost"]) for name, one in worst.items() if tuple(one["head"]) == head}
    named = [escape(name) for name, cost in own.items() if cost.low > 0]
    return f"The head missed most: {', '.join(named)}." if named else ""


def _keywords(values: Record, head: Head) -> str:
    return "Looks at key words more than any other head." if tuple(values["best"]) == head else ""


FACTS = {
    "02": _surface,
    "03": _retreat,
    "04": _relations,
    "05": _chains,
    "06": _probed,
    "08": _type,
    "11": _missed,
    "13": _keywords,
}
"""Chapters that know something of single heads -> what they say of one."""


def _place(found: Record) -> Head:
    return found["layer"], found["head"]


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


def _interval(found: Mapping[str, float]) -> str:
    value, _, interval = percent(found).partition(" ")
    return f"{value}\N{NO-BREAK SPACE}% {interval}"


def show(chapter: str, model: str, *, unfolded: bool = False) -> HTML:
    """What is known of the characters up to a chapter that has something to add about them, ``"04"``, as a box; all of them in the last."""
    known = [one.card(chapter) for one in of(model) if chapter in one.facts or chapter > max(FACTS)]
    cards = "".join(known) or "<p>Nothing is recorded yet of single heads of this model.</p>"
    head = "<summary>What we know of these heads so far</summary>"
    return HTML(f'<details class="characters"{" open" if unfolded else ""}>{head}{cards}</details>')
