"""Chapter 14: what a card claims of the model that the book was written with."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from helpers.record.verdicts import Claim, Control, Finding, Number, Ours, judge

FINDINGS: tuple[Finding, ...] = ()
"""The card repeats what other chapters find; what the papers report stands there."""
NOT_MEASURED: dict[str, tuple[str, ...]] = {}


def _multiple(part: Mapping[str, Any]) -> Number:
    """How many times its even share ``[CLS]`` gets."""
    return Number.of(part["to"]["cls"]).times(1 / part["chance"]["cls"])


def _dealt(record: Mapping[str, Any]) -> dict[str, Any]:
    """The control with shuffled scores, on the texts of its card."""
    return record["card"]["shuffled"] | {"chance": record["card"]["chance"]}


CONTROLS = (Control("@random", "other"), Control("@shuffled", _dealt))
HEADLINES = (
    Finding(
        Claim("own", "above", 30),
        "`[CLS]` draws over thirty times its even share of the attention of `minilm`.",
        Ours(_multiple, "card"),
        control=CONTROLS,
    ),
    Finding(
        Claim("own", "above", 15, unit="points"),
        "A head of `minilm` finds the verbs of objects over 15 points more often than the best fixed offset does.",
        Ours("relations.obj.gain", "card"),
        control=CONTROLS,
    ),
)
"""The first sentences of the chapter's summary."""

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""
