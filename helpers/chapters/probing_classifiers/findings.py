"""Chapter 06: what the papers report of probes on the attention of all heads, and our numbers for it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from helpers.engine.estimates import percent
from helpers.record import results
from helpers.record.results import Table
from helpers.record.verdicts import Cited, Claim, Control, Finding, Ours, judge

TITLE = "all heads at once"
INTRO = "Table 3 of the paper: probes that read the attention of all heads, with and without word vectors."
PROBES = {
    "structural probe": "Structural probe",
    "right-branching": "Right-branching",
    "best single head": "",
    "distances and words": "Distances + GloVe",
    "attention and words, @random": "Random Init Attn + GloVe",
    "attention": "Attn",
    "attention and words": "Attn + GloVe",
}
"""Our probes -> rows of the paper's Table 3."""
QUESTIONS = ("edge", "edge, equally far", "which relation")


def _random(values: Any) -> dict[str, Any]:
    """The outcomes with those of the random network in the place of the trained one's."""
    outcomes = values["outcomes"]
    return {**outcomes, **{name: outcomes[f"{name}, @random"] for name in ("attention", "attention and words")}}


def _cited(probe: str, rival: str) -> Cited:
    return Cited({"model": PROBES[probe]}, "score", against=Cited({"model": PROBES[rival]}, "score"))


FINDINGS = (
    *(
        Finding(
            Claim("clark2019 table3", "above", cited=_cited(probe, rival)),
            text,
            Ours(f"{probe}.score", "outcomes", against=f"{rival}.score"),
            control=() if rival.endswith("@random") else Control("@random", _random),
        )
        for text, probe, rival in (
            ("The attention of all heads beats right-branching", "attention", "right-branching"),
            ("Attention alone beats distances and words", "attention", "distances and words"),
            ("Attention and words beat attention alone", "attention and words", "attention"),
            ("Attention and words beat distances and words", "attention and words", "distances and words"),
            (
                "Trained attention and words beat random attention and words",
                "attention and words",
                "attention and words, @random",
            ),
        )
    ),
    Finding(
        Claim("clark2019 table3", "shown", cited=Cited({"model": "Structural probe"}, "score")),
        "The structural probe, UUAS, which reads hidden states of one layer",
        Ours("outcomes.structural probe.score"),
    ),
    Finding(
        Claim("clark2019 determiner_head", "shown", unit="count"),
        "For determiners the probe gives the largest weight to the head that is best at them alone (rank of its weight)",
        Ours("determiner.rank"),
    ),
    Finding(
        Claim("coenen2019 edge_accuracy", "above"),
        "The attention of all heads tells whether two words share an edge, better than their distance does",
        Ours("edge, attention.score", "edges", against="edge, distance.score"),
    ),
)
NOT_MEASURED = {"same": ("clark2019 attn_glove_uas",), "setup": ("coenen2019 attention_vector_length",)}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""


def table(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """The paper's Table 3 beside fresh or recorded values of several runs."""
    source = results.paper("clark2019", "table3")
    theirs = {row["model"]: row["score"] for row in source["rows"]}
    rows = []
    for probe, name in PROBES.items():
        ours = [percent(values["outcomes"][probe]["score"], ".1f") for values in runs.values()]
        rows.append([probe + " (UUAS)" * (probe == "structural probe"), theirs.get(name, ""), *ours])
    return Table(["UAS, %", f"Clark et al. 2019: {source['model']}", *runs], rows)


def edges(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """How well attention and distance tell edges and relations, beside the one number that Coenen et al. 2019 report."""
    source = results.paper("coenen2019", "edge_accuracy")
    rows = []
    for question in QUESTIONS:
        for of in ("attention", "distance"):
            theirs = str(source["value"]) if (question, of) == ("edge", "attention") else ""
            ours = [percent(values["edges"][f"{question}, {of}"]["score"], ".1f") for values in runs.values()]
            rows.append([f"{question}: {of}", theirs, *ours])
    return Table(["accuracy, %", f"Coenen et al. 2019: {source['model']}", *runs], rows)
