"""Chapter 06: what the papers report of probes on the attention of all heads, and our numbers for it."""

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from helpers.engine.estimates import percent
from helpers.record import results
from helpers.record.results import Table
from helpers.record.verdicts import Cited, Finding, Judged, judge

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


def _score(probe: str) -> Callable[[Any], Any]:
    return lambda outcomes: outcomes[probe]["score"]


def _random(values: Any) -> dict[str, Any]:
    """The outcomes with those of the random network in the place of the trained one's."""
    outcomes = values["outcomes"]
    return {**outcomes, **{name: outcomes[f"{name}, @random"] for name in ("attention", "attention and words")}}


FINDINGS = (
    *(
        Finding(
            claim="clark2019 table3",
            text=text,
            cited=Cited({"model": PROBES[probe]}, "score", against=Cited({"model": PROBES[rival]}, "score")),
            rule="above",
            of=itemgetter("outcomes"),
            random=None if rival.endswith("@random") else _random,
            value=_score(probe),
            against=_score(rival),
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
        claim="clark2019 table3",
        text="The structural probe, UUAS, which reads hidden states of one layer",
        cited=Cited({"model": "Structural probe"}, "score"),
        rule="shown",
        of=itemgetter("outcomes"),
        value=_score("structural probe"),
    ),
    Finding(
        claim="clark2019 determiner_head",
        text="For determiners the probe gives the largest weight to the head that is best at them alone (rank of its weight)",
        rule="shown",
        unit="count",
        value=lambda v: v["determiner"]["rank"],
    ),
    Finding(
        claim="coenen2019 edge_accuracy",
        text="The attention of all heads tells whether two words share an edge, better than their distance does",
        rule="above",
        of=itemgetter("edges"),
        value=_score("edge, attention"),
        against=_score("edge, distance"),
    ),
)
NOT_MEASURED = {"same": ("clark2019 attn_glove_uas",), "setup": ("coenen2019 attention_vector_length",)}


def findings(values: Mapping[str, Any]) -> list[Judged]:
    """The chapter's findings on what it records."""
    return judge(FINDINGS, values)


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
