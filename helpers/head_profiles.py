"""The characters of the book: a few heads that several chapters speak of, and what is known of each so far, from the records.

Who they are is computed: for each speciality (finding antecedents, objects, …) the head that its chapter singles out, if its number
stands beyond the simple rival of that chapter. Another model has other characters, or none.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from IPython.display import HTML

from helpers import results
from helpers.plots import COLOURS, LABELS, group_names, head_name
from helpers.stats import Estimate, percent

FEWEST = 20
"""A relation that occurs less often makes no character."""
SHOWN = 3
"""Relations that a card names."""
CHAPTERS = {
    "02": "surface_patterns",
    "03": "no_op",
    "04": "dependency_heads",
    "05": "coreference_heads",
    "06": "probing_classifiers",
    "08": "distance_features",
    "11": "head_importance",
    "13": "keywords",
}
"""Chapters that know something of single heads, and the names of their records."""

Head = tuple[int, int]
Records = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Speciality:
    """What a head can be known for.

    Attributes:
        name: of the head, "the object head".
        colour: name in :data:`helpers.plots.COLOURS`.
        rule: how the head is chosen, for readers.
        find: the head in the records of a model, or ``None`` if none stands out.
    """

    name: str
    colour: str
    rule: str
    find: Callable[[Records], Head | None]


@dataclass(frozen=True)
class HeadProfile:
    """A head with a speciality: ``head`` is (layer, head) from 0; ``facts`` chapter, ``"04"`` -> what it found about this head."""

    head: Head
    speciality: Speciality
    facts: Mapping[str, str]

    @property
    def label(self) -> str:
        """``3-1, the object head``."""
        return f"{head_name(*self.head)}, the {self.speciality.name} head"

    def card(self, upto: str = "14") -> str:
        """What is known up to a chapter, as HTML."""
        known = {chapter: fact for chapter, fact in self.facts.items() if chapter <= upto}
        facts = "".join(f"<li><b>{chapter}</b> {fact}</li>" for chapter, fact in known.items())
        colour = COLOURS[self.speciality.colour]
        return f'<div class="character" style="--trade: {colour}"><p>{escape(self.label)}</p><ul>{facts}</ul></div>'


def of(model: str) -> tuple[HeadProfile, ...]:
    """The characters of a model in the order of :data:`SPECIALITIES`; a head with two specialities goes by the first.

    Raises:
        ResultError: if no chapter that knows single heads has recorded the model.
    """
    records = {chapter: found for chapter, name in CHAPTERS.items() if (found := _values(name, model))}
    if not records:
        raise results.ResultError(
            f"Nothing is recorded of the heads of {model!r}. Run: python -m helpers run 04 --model {model}"
        )
    cast: dict[Head, Speciality] = {}
    for speciality in SPECIALITIES:
        if (head := speciality.find(records)) is not None:
            cast.setdefault(head, speciality)
    return tuple(HeadProfile(head, speciality, dict(_facts(records, head))) for head, speciality in cast.items())


def _values(name: str, model: str) -> Mapping[str, Any] | None:
    """The values of a chapter's record: of the book's run, or of a full one."""
    for profile in ("book", "full"):
        if model in (found := results.runs(name, profile=profile)):
            return found[model]["values"]
    return None


# Specialities


def _antecedents(records: Records) -> Head | None:
    found = records.get("05", {}).get("one_head", {}).get("earlier", {}).get("table", {}).get("all")
    return _place(found) if found and Estimate.from_record(found["gains"]["nearest"]).low > 0 else None


def _led(records: Records) -> dict[str, Mapping[str, Any]]:
    """The relations in which the head chosen on other documents is beyond the best fixed offset, the largest lead first."""
    table = records.get("04", {}).get("ud", {}).get("table", {})
    known = {r: e for r, e in table.items() if r != "all" and e["count"] >= FEWEST}
    led = {r: e for r, e in known.items() if Estimate.from_record(e["gain"]).low > 0}
    return dict(sorted(led.items(), key=lambda item: -item[1]["gain"]["value"]))


def _objects(records: Records) -> Head | None:
    found = _led(records).get("obj")
    return found and _place(found)


def _phrases(records: Records) -> Head | None:
    led = [_place(found) for found in _led(records).values()]
    most = max(led, key=led.count, default=None)
    return most if led.count(most) > 1 else None


def _previous(records: Records) -> Head | None:
    found = [s for s in records.get("02", {}).get("summary", {}).get("specialists", ()) if s["role"] == "previous"]
    return _place(max(found, key=lambda s: s["chosen"])) if found else None


SPECIALITIES = (
    Speciality("antecedent", "antecedent", "finds most antecedents (05), beyond the nearest mention", _antecedents),
    Speciality("phrase", "next", "leads most relations (04), each beyond the best fixed offset", _phrases),
    Speciality("object", "object", "finds the verb of an object (04), beyond the best fixed offset", _objects),
    Speciality("previous-token", "previous", "more than half of its attention goes one token back (02)", _previous),
)


# Facts


def _facts(records: Records, head: Head) -> Iterator[tuple[str, str]]:
    for chapter, values in records.items():
        if fact := FACTS[chapter](values, head):
            yield chapter, fact


def _surface(values: Mapping[str, Any], head: Head) -> str:
    layer, number = head
    shares = {
        name: values["patterns"][name]["value"][layer][number] for name in ("cls", "sep", "stop", "previous", "next")
    }
    most = max(shares, key=shares.__getitem__)
    return f"{_percent(shares[most])} of its attention goes to the {LABELS[most]}".replace("the [", "[") + "."


def _retreat(values: Mapping[str, Any], head: Head) -> str:
    """The relation for which the share of [CLS] falls most where its partner is there, if the intervals lie apart."""
    found = {r: d for r, d in values.get("duty", {}).items() if _place(d) == head}
    on, off = ({r: d["groups"].index(f"{kind} duty") for r, d in found.items()} for kind in ("on", "off"))
    shares = {r: Estimate.from_record(d["share"]) for r, d in found.items()}
    apart = {r: share for r, share in shares.items() if share.low[off[r], 0] > share.high[on[r], 0]}
    if not apart:
        return ""
    ends = {r: (share.value[off[r], 0], share.value[on[r], 0]) for r, share in apart.items()}
    relation = max(ends, key=lambda r: ends[r][0] - ends[r][1])
    idle, busy = ends[relation]
    return f"Gives [CLS] {_percent(busy)} from words that have a <code>{escape(relation)}</code> partner, {_percent(idle)} from all others."


def _relations(values: Mapping[str, Any], head: Head) -> str:
    led = {r: e for r, e in _led({"04": values}).items() if _place(e) == head}
    parts = [
        f"<code>{escape(r)}</code> {_interval(e['held_out'])}; offset {_percent(e['baseline']['value'])}"
        for r, e in list(led.items())[:SHOWN]
    ]
    more = f", and {len(led) - SHOWN} more" if len(led) > SHOWN else ""
    return f"Finds {'; '.join(parts)}{more}." if parts else ""


def _chains(values: Mapping[str, Any], head: Head) -> str:
    found = values["one_head"]["earlier"]["table"]["all"]
    if _place(found) != head:
        return ""
    nearest = found["rules"]["nearest"]["value"]
    return f"Picks an antecedent among earlier mentions: {_interval(found['held_out'])}; the nearest mention {_percent(nearest)}."


def _probed(values: Mapping[str, Any], head: Head) -> str:
    found = values["outcomes"]["best single head"]["score"]
    return (
        f"The best single head for joining words: {_interval(found)}."
        if values["head"]["name"] == head_name(*head)
        else ""
    )


def _type(values: Mapping[str, Any], head: Head) -> str:
    return f"Its type: {escape(group_names(values['fits'])[values['types'][head[0]][head[1]]])}."


def _missed(values: Mapping[str, Any], head: Head) -> str:
    """Tasks in which it is the head missed most, where that is beyond chance."""
    worst = {name: task["extremes"]["worst"] for name, task in values.get("drawn", {}).items()}
    own = {name: Estimate.from_record(one["cost"]) for name, one in worst.items() if tuple(one["head"]) == head}
    named = [escape(name) for name, cost in own.items() if cost.low > 0]
    return f"The head missed most: {', '.join(named)}." if named else ""


def _keywords(values: Mapping[str, Any], head: Head) -> str:
    return "Looks at key words more than any other head." if tuple(values["best"]) == head else ""


FACTS: Mapping[str, Callable[[Mapping[str, Any], Head], str]] = {
    "02": _surface,
    "03": _retreat,
    "04": _relations,
    "05": _chains,
    "06": _probed,
    "08": _type,
    "11": _missed,
    "13": _keywords,
}


def _place(found: Mapping[str, Any]) -> Head:
    return found["layer"], found["head"]


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


def _interval(found: Mapping[str, float]) -> str:
    value, _, interval = percent(found).partition(" ")
    return f"{value}\N{NO-BREAK SPACE}% {interval}"


def show(chapter: str, model: str, *, unfolded: bool = False) -> HTML:
    """What is known of the characters up to a chapter that has something to add about them, ``"04"``, as a box; all of them in the last."""
    try:
        known = [one.card(chapter) for one in of(model) if chapter in one.facts or chapter > max(CHAPTERS)]
    except results.ResultError:
        known = []
    cards = "".join(known) or "<p>Nothing is recorded yet of single heads of this model.</p>"
    head = "<summary>What we know of these heads so far</summary>"
    return HTML(f'<details class="characters"{" open" if unfolded else ""}>{head}{cards}</details>')
