"""A few heads that several chapters speak of, and what is recorded of each so far.

Who they are is computed: for each speciality (finding antecedents, objects, …) the head that its chapter singles out, if its number
stands beyond the simple baseline of that chapter. Another model has other such heads, or none.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd
from IPython.display import HTML

from helpers import results
from helpers.heads import Head
from helpers.plots import COLOURS, LABELS, group_names
from helpers.results import Recorded

#: A relation that occurs less often singles out no head.
FEWEST = 20
#: Relations that a card names.
SHOWN = 3

#: Chapter, ``"04"`` -> what it has recorded.
Records = Mapping[str, Recorded]


@dataclass(frozen=True)
class HeadProfile:
    """A head with a speciality.

    Attributes:
        head: which it is.
        speciality: one of :data:`SPECIALITIES`.
        facts: chapter, ``"04"`` -> what it found about this head.
    """

    head: Head
    speciality: str
    facts: Mapping[str, str]

    def card(self, upto: str = "14") -> str:
        """What is known up to a chapter, as HTML; named by its speciality once that is found: ``3-1, the object head``."""
        known = (f"<li><b>{chapter}</b> {fact}</li>" for chapter, fact in self.facts.items() if chapter <= upto)
        colour, since, _ = SPECIALITIES[self.speciality]
        label = f"{self.head}, the {self.speciality} head" if since <= upto else f"Head {self.head}"
        style = f"--trade: {COLOURS[colour]}"
        return f'<div class="character" style="{style}"><p>{escape(label)}</p><ul>{"".join(known)}</ul></div>'


def of(model: str) -> tuple[HeadProfile, ...]:
    """The heads of a model in the order of :data:`SPECIALITIES`; one with two specialities goes by the first."""
    records, heads = records_of(model), {}
    for name, (_, chapter, find) in SPECIALITIES.items():
        for head in find(records[chapter])[:1] if chapter in records else ():
            heads.setdefault(head, name)
    return tuple(HeadProfile(head, name, facts(records, head)) for head, name in heads.items())


def records_of(model: str) -> Records:
    """What the chapters of :data:`FACTS` have recorded of a model: in the book's run, or in a full one, which comes first but for minilm."""
    records, order = {}, ("full", "book") if model.startswith("minilm") else ("book", "full")
    for name, notebook in results.notebooks().items():
        runs = results.runs(name, profile=order[0]) | results.runs(name, profile=order[1])
        if notebook[:2] in FACTS and model in runs:
            records[notebook[:2]] = runs[model]
    return records


def facts(records: Records, head: Head) -> dict[str, str]:
    """Chapter -> what it says of a head, where it says something."""
    told = {chapter: FACTS[chapter](recorded, head) for chapter, recorded in records.items()}
    return {chapter: fact for chapter, fact in told.items() if fact}


# Specialities: the heads that have one, the best first


def _heads(rows: pd.DataFrame) -> list[Head]:
    return [Head(*place) for place in zip(rows.layer, rows["head"], strict=True)]


def _antecedents(recorded: Recorded) -> list[Head]:
    """The head that finds most antecedents, if it is beyond the nearest mention."""
    lead = recorded.rows("one_head_lead", of="all over nearest mention")
    return _heads(lead[lead.low > 0])


def _leading(recorded: Recorded) -> pd.Series:
    """Relation -> the head chosen for it on other documents, where it is beyond the best fixed distance; the largest lead first."""
    lead = recorded.rows("lead_for_relation")
    lead = lead[(lead.of != "all") & (lead.n >= FEWEST) & (lead.low > 0)].sort_values("value", ascending=False)
    return pd.Series(_heads(lead), lead.of, dtype=object)


def _phrases(recorded: Recorded) -> list[Head]:
    """The head that leads most relations, if it leads more than one."""
    return [head for head, count in Counter(_leading(recorded)).most_common(1) if count > 1]


def _objects(recorded: Recorded) -> list[Head]:
    """The head that finds the verb of an object, if it is beyond the best fixed distance."""
    return [*_leading(recorded).filter(["obj"])]


def _previous(recorded: Recorded) -> list[Head]:
    """The head that gives most of its attention to the token before, if that is more than half."""
    return _heads(recorded.rows("specialist", label="previous").nlargest(1, "value"))


#: What a head can be known for -> its name in :data:`helpers.plots.COLOURS`, the chapter, and the function that finds such heads there.
SPECIALITIES = {
    "antecedent": ("antecedent", "05", _antecedents),
    "phrase": ("next", "04", _phrases),
    "object": ("object", "04", _objects),
    "previous-token": ("previous", "02", _previous),
}


# Facts


def _percent(row: Any, rule: str = "") -> str:
    """A number with its interval, and beside it that of a simple rule."""
    beside = f"; {rule} {100 * row.control:.0f}\N{NO-BREAK SPACE}%" if rule else ""
    return f"{100 * row.value:.0f}\N{NO-BREAK SPACE}% [{100 * row.low:.0f}, {100 * row.high:.0f}]{beside}"


def _surface(recorded: Recorded, head: Head) -> str:
    names = {"cls": "cls", "sep": "sep", "punctuation": "stop", "previous": "previous", "next": "next"}
    share, most = max((recorded.array(f"share_{quantity}")[head], LABELS[name]) for quantity, name in names.items())
    place = most if most.startswith("[") else f"the {most}"
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}% of its attention goes to {place}."


def _relations(recorded: Recorded, head: Head) -> str:
    leading = _leading(recorded)
    relations = leading.index[leading == head]
    rows = [recorded.row("best_for_relation", of=relation) for relation in relations[:SHOWN]]
    parts = [f"<code>{escape(row.of)}</code> {_percent(row, 'best fixed distance')}" for row in rows]
    more = f", and {len(relations) - SHOWN} more" if len(relations) > SHOWN else ""
    return f"Finds {'; '.join(parts)}{more}." if parts else ""


def _chains(recorded: Recorded, head: Head) -> str:
    rows = recorded.rows("one_head", of="all", head=head).itertuples()
    numbers = [_percent(row, "the nearest mention") for row in rows]
    return "".join(f"Picks an antecedent among earlier mentions: {number}." for number in numbers)


def _probed(recorded: Recorded, head: Head) -> str:
    rows = recorded.rows("uas", of="best single head", head=head)
    return "".join(f"Of single heads it finds the most governors: {_percent(row)}." for row in rows.itertuples())


def _type(recorded: Recorded, head: Head) -> str:
    fits = recorded.rows("type_fits").set_index("of").value.astype(bool)
    return f"Its type: {escape(group_names(fits)[recorded.row('type', head=head).label])}."


def _missed(recorded: Recorded, head: Head) -> str:
    """Tasks in which it is the head without which the score falls most, where that is beyond chance."""
    removals = recorded.rows("worst_removal")
    named = removals[(removals.high < 0) & removals.label.str.endswith(f", {head}")].of
    return f"The head whose removal costs most: {', '.join(map(escape, named))}." if len(named) else ""


def _keywords(recorded: Recorded, head: Head) -> str:
    received = recorded.array("key_word_attention")
    return "Looks at key words more than any other head." if received[head] == received.max() else ""


#: Chapters that know something of single heads -> what they say of one.
FACTS = {"02": _surface, "04": _relations, "05": _chains, "06": _probed, "08": _type, "11": _missed, "13": _keywords}


def show(chapter: str, model: str, *, unfolded: bool = False) -> HTML:
    """What is known up to a chapter, ``"04"``, of the heads named by then that it has something to add about, as a box; of all in the last."""
    named = [p for p in of(model) if chapter > max(FACTS) or SPECIALITIES[p.speciality][1] <= chapter in p.facts]
    cards = "".join(p.card(chapter) for p in named) or "<p>Nothing is recorded yet of single heads of this model.</p>"
    head = "<summary>What we know of these heads so far</summary>"
    return HTML(f'<details class="characters"{" open" if unfolded else ""}>{head}{cards}</details>')
