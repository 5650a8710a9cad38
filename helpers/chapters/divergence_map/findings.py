"""Chapter 07: what the paper reports of heads that are close to each other, and our numbers for it."""

from collections.abc import Mapping
from functools import partial
from operator import itemgetter
from typing import Any

from helpers.record.verdicts import Finding, Judged, beside, judge

TITLE = "which heads are close"
INTRO = "The paper shows a map and describes it in words; the chapter tests the words with ratios of divergences and permutations."


def _tested(one: Any) -> str:
    return f"ratio {one['ratio']:.3f}, p = {one['p']:.4f}, R = {one['r']:.2f}"


FINDINGS = (
    Finding(
        claim="clark2019 same_layer_heads_close",
        text="Heads of one layer are closer than heads of different layers (ratio of mean divergences below 1)",
        rule="below",
        than=1,
        of=lambda v: v["model"]["closeness"]["layer"],
        random=lambda v: v["control"]["closeness"]["layer"],
        value=itemgetter("ratio"),
        p=itemgetter("p"),
        label="heads of one layer against heads of different layers (nats)",
        shown=lambda one: f"{one['within'].value:.3f} against {one['between'].value:.3f}, {_tested(one)}",
    ),
    Finding(
        claim="clark2019 clear_clusters",
        text="Heads that behave alike, by where most of their attention goes, are closer than others (ratio of mean divergences)",
        rule="shown",
        of=lambda v: v["model"]["closeness"]["behaviour"],
        value=itemgetter("ratio"),
        label="clusters by behaviour: heads of like behaviour against others",
        shown=_tested,
    ),
    Finding(
        claim="clark2019 map_dimensions",
        of=lambda v: v["model"]["map"],
        label="dimensions of the map; its stress",
        shown=lambda drawn: f"{len(drawn['points'][0])}; {drawn['stress']:.2f}",
    ),
)
NOT_MEASURED = {"setup": ("clark2019 map_dimensions",)}


def findings(values: Mapping[str, Any]) -> list[Judged]:
    """The chapter's findings on what it records."""
    return judge(FINDINGS, values)


table = partial(beside, findings)
"""Paper beside book: ``table(paper, {heading: values})``, see :func:`helpers.record.verdicts.beside`."""
