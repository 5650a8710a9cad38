"""Chapter 09: what the papers report of types of attention map, and our numbers for it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from helpers.chapters.pattern_types.measures import TYPES
from helpers.record.verdicts import Claim, Control, Finding, Ours, Row, beside, judge

TITLE = "types of maps"
INTRO = "Shares of five types of attention map, read by us in a secondary source, which gives them in words."


def typical(*types: str) -> Callable[[Any], np.float64]:
    """The share of heads with one of these as their most frequent type."""
    return lambda v: np.isin(v["typical"], types).mean()


def _both(*types: str) -> Callable[[Any], str]:
    maps = [TYPES.index(name) for name in types]
    return lambda v: f"{v['all'].value[maps].sum():.1%} of maps; {typical(*types)(v):.1%} of heads"


def _seen(values: Any) -> str:
    kinds = [name for name, share in zip(TYPES, values["all"].value, strict=True) if share >= 0.01]
    return ", ".join(name.replace("_", "+") for name in kinds)


def _targets(values: Any) -> str:
    names = {"[CLS]": "cls", "[SEP]": "sep", "punctuation": "stop"}
    return ", ".join(f"{name} {values['targets'][key].value:.0%}" for name, key in names.items())


RANDOM, SHUFFLED = Control("@random", "random"), Control("@shuffled", "shuffled")

FINDINGS = (
    Finding(
        Claim("kovaleva2019 pattern_types", "equal", "kovaleva2019 n_pattern_types", unit="count"),
        "All five kinds of map occur (kinds with at least 1 % of the maps)",
        Ours(lambda v: float((v["all"].value > 0.01).sum())),
        Row("types with at least 1 % of all maps", _seen),
        control=(RANDOM, SHUFFLED),
    ),
    Finding(Claim("kovaleva2019 vertical_share"), row=Row("vertical", _both("vertical"))),
    Finding(
        Claim("kovaleva2019 heterogeneous_plus_block_share", "about", "paper"),
        "About half of the heads are heterogeneous or block, by their most frequent type",
        Ours(typical("heterogeneous", "block")),
        Row("heterogeneous or block", _both("heterogeneous", "block")),
        control=(RANDOM, SHUFFLED),
    ),
    Finding(
        Claim("kovaleva2019 vertical_share", "about", "paper"),
        "About a third of the heads are vertical, by their most frequent type",
        Ours(typical("vertical")),
        control=(RANDOM, SHUFFLED),
    ),
    Finding(
        Claim("kovaleva2019 vertical_targets", "below", 50, unit="%"),
        "Fewer than half of the vertical maps look at a token other than [CLS], [SEP] and punctuation (share)",
        Ours("targets.other"),
        Row("what the darkest column of vertical maps belongs to", _targets),
        control=(RANDOM, SHUFFLED),
    ),
)
FOREST, RULE, MAJORITY = "forest on synthetic maps", "simple rule", "always the majority type"
OWN_HEAD, LAYER = "other maps of the head", "other heads of the layer"
"""Ways to name a map, as they are called in tables and records."""
NEW, KNOWN, EVERY = "heads not in dev", "heads in dev", "all test maps"
"""Test maps by whether the labels of their head were seen before."""

HEADLINES = (
    Finding(
        Claim("own", "above", unit="points"),
        "What the other maps of a head are called names its next map better than those of the other heads of its layer.",
        Ours(
            f"scores.{KNOWN}.{OWN_HEAD}.accuracy", against=f"scores.{KNOWN}.{LAYER}.accuracy", difference="gains.head"
        ),
        control=Control(MAJORITY, value="gains.majority"),
    ),
    Finding(
        Claim("own", "above", unit="points"),
        "On maps of heads that it has never met, a forest that learned from synthetic maps beats the rule of two thresholds.",
        Ours(f"scores.{NEW}.{FOREST}.accuracy", against=f"scores.{NEW}.{RULE}.accuracy", difference="gains.forest"),
        control=Control(MAJORITY, value="gains.majority over rule"),
    ),
    Finding(
        Claim("own", "above", 80, unit="%"),
        "More than four in five maps of `minilm` have a dark column.",
        Ours("column"),
        control=(RANDOM, SHUFFLED),
    ),
    Finding(
        Claim("own", "above", 90, unit="%"),
        "More than nine in ten heterogeneous maps are of the first layer.",
        Ours("first"),
        control=(RANDOM, SHUFFLED),
    ),
)
"""What the chapter says itself, as in its summary."""

NOT_MEASURED = {"same": ("kovaleva2019 n_pattern_types",)}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""
table = partial(beside, findings)
"""Paper beside book: ``table(paper, {heading: values})``, see :func:`helpers.record.verdicts.beside`."""
