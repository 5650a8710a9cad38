"""Chapter 05: what the papers report of a head that resolves coreference, and our numbers for it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from helpers.chapters.coreference_heads.measures import FEWEST, KINDS
from helpers.engine.estimates import percent
from helpers.record import results
from helpers.record.results import Table
from helpers.record.verdicts import Cited, Claim, Control, Finding, Ours, judge

TITLE = "one head that resolves coreference"
INTRO = (
    "Table 2 of the paper: one head, the same for all kinds of mention, against two simple rules and a system of four. "
    "For the random network the best head was chosen for each kind by itself, which favours it."
)
ONE_HEAD = "Head 5-4"
RIVALS = (
    ("Nearest", "nearest", 0, "beats the nearest mention"),
    ("Head match", "head match", 0, "beats head match"),
    ("Rule-based", "rules", -6, "is close to the rules, at most 6 points below"),
)
"""Row of the paper's Table 2, the rule's name here, by how many points the head has to lead, in words."""
MENTIONS = dict(zip(KINDS, ("All mentions", "Pronouns", "Names", "Other nouns"), strict=True))


def _earlier(kind: str) -> str:
    return f"one_head.earlier.table.{kind}"


def _untrained(kind: str) -> tuple[Control, ...]:
    return tuple(Control(f"@{name}", f"{name}.table.{kind}") for name in ("random", "shuffled"))


def _over(rival: str, of: str) -> Ours:
    return Ours("held_out", of, against=f"rules.{rival}", difference=f"gains.{rival}")


def _cited(system: str, kind: str) -> Cited:
    return Cited({"system": ONE_HEAD}, kind, against=Cited({"system": system}, kind))


FINDINGS = (
    *(
        Finding(
            Claim("clark2019 table2", "above", bound, _cited(system, kind)),
            f"{what}: one head, choosing among earlier mentions, {does}",
            _over(rival, _earlier(kind)),
            control=_untrained(kind),
        )
        for system, rival, bound, does in RIVALS
        for kind, what in MENTIONS.items()
    ),
    Finding(
        Claim("clark2019 coref_gain_over_string_match", "above", "paper"),
        "One head, choosing among earlier mentions, beats head match by more than 10 points, all mentions together",
        Ours("gains.head match", _earlier("all")),
        control=_untrained("all"),
    ),
    *(
        Finding(
            Claim("clark2019 table2", "above", bound, _cited(system, "all")),
            f"All mentions: one head, choosing among all other words, {does}",
            _over(rival, "one_head.words.table.all"),
            uncontrolled="Controls were read among earlier mentions only, which is easier; there they are at the level of chance.",
        )
        for system, rival, bound, does in RIVALS
    ),
)
HEADLINES = (
    Finding(
        Claim("own", "above", unit="%"),
        "Head 3-5 of `minilm` points from mentions to an antecedent, more often than the nearest mention is one.",
        _over("nearest", _earlier("all")),
        control=_untrained("all"),
    ),
    Finding(
        Claim("own", "above", 20, unit="%"),
        "It does not only match words: where no head word of an antecedent recurs, the head is right over 20 points more often than a random mention.",
        _over("random", _earlier("new word")),
        control=_untrained("new word"),
    ),
    Finding(
        Claim("own", "below", -20, unit="%"),
        "Among all words instead of mentions the same head is over 20 points less often right than the rules.",
        _over("rules", "one_head.words.table.all"),
        uncontrolled="It is a limit of the finding; a control that is worse still would tell nothing.",
    ),
)
"""The first sentences of the chapter's summary."""
NOT_MEASURED = {
    "elsewhere": ("clark2019 table2: Neural coref",),
    "same": ("clark2019 coref_head_accuracy", "simon2021 coref_head_accuracy, coref_nearest_baseline"),
    "setup": ("clark2019 coref_max_tokens",),
}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""


def cell(found: Mapping[str, Any], kind: str = "all", rival: str | None = None) -> str:
    """A head's accuracy, or a rule's, in per cent: ``78 [71, 85]``; with * when there are few mentions, – when there are none.

    Args:
        found: what :func:`helpers.chapters.coreference_heads.as_dict` made.
    """
    if (row := found["table"].get(kind)) is None:
        return "–"
    shown = percent(row["held_out"] if rival is None else row["rules"][rival])
    return shown + "*" * (row["count"] < FEWEST)


def table(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """The paper's Table 2 beside fresh or recorded values of several runs: rules, then the head by what it chooses from."""
    theirs = {row["system"]: row for row in results.paper("clark2019", "table2")["rows"]}
    lines = [(system, system, "earlier", rival) for system, rival, *_ in RIVALS]
    lines.append(("one head", ONE_HEAD, "earlier", None))
    lines.append(("one head, among all words", ONE_HEAD, "words", None))
    rows = []
    for label, system, reading, rival in lines:
        for kind in KINDS:
            paper = "–" if theirs[system].get(kind) is None else theirs[system][kind]
            ours = [cell(values["one_head"][reading], kind, rival) for values in runs.values()]
            rows.append([f"{label}, {kind}", paper, *ours])
    return Table(["", "BERT-base, CoNLL-2012 (Table 2)", *runs], rows)
