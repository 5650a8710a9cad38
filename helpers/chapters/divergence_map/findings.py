"""Chapter 07: what the paper reports of heads that are close to each other, and our numbers for it."""

from functools import partial
from typing import Any

import numpy as np

from helpers.record.verdicts import OWN, Claim, Control, Finding, Ours, Row, beside, judge

TITLE = "which heads are close"
INTRO = "The paper shows a map and describes it in words; the chapter tests the words with ratios of divergences and permutations."


def _tested(one: Any) -> str:
    return f"ratio {one['ratio']:.3f}, p = {one['p']:.4f}, R = {one['r']:.2f}"


def _layers(one: Any) -> str:
    return f"{one['within'].value:.3f} against {one['between'].value:.3f}, {_tested(one)}"


def _beyond(name: str) -> tuple[Ours, Control]:
    """A number of the trained maps less that of shuffled ones, and the same of the random network."""
    part = f"beyond.{name}"
    return Ours("ours", f"{part}.model", "control", "difference", p="p"), Control("@random", f"{part}.random")


CLOSE, CLOSE_UNTRAINED = _beyond("all")
FINDINGS = (
    Finding(
        Claim("clark2019 same_layer_heads_close", "below"),
        "Heads of one layer are closer than heads of different layers, and more so than shuffled scores as sharp as theirs (ratio of mean divergences)",
        CLOSE,
        control=CLOSE_UNTRAINED,
    ),
    Finding(
        Claim("clark2019 same_layer_heads_close"),
        ours=Ours(of="model.closeness.layer"),
        row=Row("heads of one layer against heads of different layers (nats)", _layers),
    ),
    Finding(
        Claim("clark2019 clear_clusters", "shown"),
        "Heads that behave alike, by where most of their attention goes, are closer than others (ratio of mean divergences)",
        Ours("ratio", "model.closeness.behaviour"),
        Row("clusters by behaviour: heads of like behaviour against others", _tested),
    ),
    Finding(
        Claim("clark2019 clear_clusters"),
        ours=Ours(of="ordinary.closeness.behaviour"),
        row=Row("the same on ordinary tokens alone", _tested),
    ),
    Finding(
        Claim("clark2019 map_dimensions"),
        ours=Ours(of="model.map"),
        row=Row("dimensions of the map; its stress", lambda m: f"{len(m['points'][0])}; {m['stress']:.2f}"),
    ),
)


HEADLINES = (
    *(
        Finding(Claim(OWN, "below", unit=unit), text, ours, control=control)
        for text, unit, (ours, control) in (
            (
                "Heads of one layer are closer than heads of different layers, and more so than heads of the same sharpness that look anywhere.",
                "ratio",
                (CLOSE, CLOSE_UNTRAINED),
            ),
            (
                "Heads of one layer that are equally broad and give `[CLS]` equally much are still closer than chance.",
                "nats",
                _beyond("held"),
            ),
            ("On ordinary tokens alone heads of one layer are closer, too.", "ratio", _beyond("ordinary")),
        )
    ),
    Finding(
        Claim(OWN, "below", 0.1, unit="disparity"),
        "A map drawn from other articles is nearly the same map.",
        Ours(lambda stable: float(np.median(stable["disparity"][-1])), "stability"),
        control=Control("heads shuffled", "stability", lambda stable: float(np.mean(stable["shuffled"]))),
    ),
)
NOT_MEASURED = {"setup": ("clark2019 map_dimensions",)}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""
table = partial(beside, findings)
"""Paper beside book: ``table(paper, {heading: values})``, see :func:`helpers.record.verdicts.beside`."""
