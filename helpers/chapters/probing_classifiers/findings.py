"""Chapter 06: what the papers report of probes on the attention of all heads, and our numbers for it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from helpers.engine.estimates import Estimate, percent
from helpers.record import results
from helpers.record.results import Table
from helpers.record.verdicts import OWN, Cited, Claim, Control, Finding, Number, Ours, judge, taken

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
READERS = ("attention", "distance", "words and distance", "attention, words and distance")
"""Of :data:`helpers.chapters.probing_classifiers.pairs.READERS`, those that the chapter's table has."""


def _control(kind: str, part: str) -> Control:
    """A part of the record in which the outcomes that a control has stand in the place of ours."""

    def read(values: Any) -> dict[str, Any]:
        found = values[part]
        if not any(name.endswith(kind) for name in found):
            raise KeyError(kind)
        return {name: found.get(f"{name}, {kind}", one) for name, one in found.items()}

    return Control(kind, read)


def _paired(probe: str, rival: str, name: str | None = None) -> Callable[[Any], Any]:
    """A way to the paired difference of two outcomes of a part; the widest that the two intervals allow where a run recorded none.

    Args:
        name: of the rival among the outcomes, where it is another than among the differences.
    """

    def read(part: Any) -> Any:
        one, other = part[probe], part[name or rival]
        return one["over"][rival] if "over" in one else Number.of(one["score"]).minus(Number.of(other["score"]))

    return read


def _over(probe: str, rival: str) -> Ours:
    return Ours(f"{probe}.score", "outcomes", f"{rival}.score", _paired(probe, rival))


def _cited(probe: str, rival: str) -> Cited:
    return Cited({"model": PROBES[probe]}, "score", against=Cited({"model": PROBES[rival]}, "score"))


FINDINGS = (
    *(
        Finding(
            Claim("clark2019 table3", "above", cited=_cited(probe, rival)),
            text,
            _over(probe, rival),
            control=_control("@random", "outcomes"),
        )
        for text, probe, rival in (
            ("The attention of all heads beats right-branching", "attention", "right-branching"),
            ("Attention alone beats distances and words", "attention", "distances and words"),
            ("Attention and words beat attention alone", "attention and words", "attention"),
            ("Attention and words beat distances and words", "attention and words", "distances and words"),
        )
    ),
    Finding(
        Claim("clark2019 table3", "above", cited=_cited("attention and words", "attention and words, @random")),
        "Trained attention and words beat random attention and words",
        Ours("attention and words.score", "outcomes", "attention and words, @random.score"),
        uncontrolled="The random network is the control.",
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
        Ours(
            "edge, attention.score",
            "edges",
            "edge, distance.score",
            _paired("edge, attention", "distance", "edge, distance"),
        ),
        control=_control("@random", "edges"),
    ),
    Finding(
        Claim("coenen2019 relation_accuracy", "above", 50),
        "The attention of all heads tells the relation of two joined words, in more than half of the cases",
        Ours("which relation, attention.score", "edges"),
        control=_control("@random", "edges"),
    ),
)
ABSENT = "not recorded"
_BOTH = (_control("@random", "outcomes"), _control("@shuffled", "outcomes"))
_ALL = "edge, equally far, attention, words and distance"
HEADLINES = (
    Finding(
        Claim(OWN, "above", unit="points"),
        "A weighted sum of all heads finds more governors than the best single head.",
        _over("attention", "best single head"),
        control=_BOTH,
    ),
    Finding(
        Claim(OWN, "above", unit="points"),
        "With the two words' vectors, attention finds more governors than words and distances do without it.",
        _over("attention and words", "distances and words"),
        control=_control("@random", "outcomes"),
    ),
    Finding(
        Claim(OWN, "above", unit="points"),
        "Attention holds arcs: among pairs of words that are equally far apart it adds to what the two words tell.",
        Ours(
            f"{_ALL}.score", "edges", "edge, equally far, words and distance.score", f"{_ALL}.over.words and distance"
        ),
        control=(_control("@random", "edges"), _control("@shuffled", "edges")),
    ),
    Finding(
        Claim(OWN, "above", unit="points"),
        "Hidden states of the best layer hold more of a tree than those of a random network.",
        Ours("structural probe.score", "outcomes", "structural probe, @random.score"),
        uncontrolled="The random network is the control.",
    ),
)
NOT_MEASURED = {"same": ("clark2019 attn_glove_uas",), "setup": ("coenen2019 attention_vector_length",)}

findings = partial(judge, FINDINGS)
"""The chapter's findings on what it records: ``findings(values)``."""


def cited() -> dict[str, float]:
    """Our probe -> its UAS in the paper, in %: Table 3, and for the best single head Table 1, which has no roots."""
    theirs = {row["model"]: row["score"] for row in results.paper("clark2019", "table3")["rows"]}
    found = {probe: theirs[name] for probe, name in PROBES.items() if name in theirs}
    return found | {"best single head": results.paper("clark2019", "best_single_head_uas")["value"]}


def table(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """The paper's Table 3 beside fresh or recorded values of several runs."""
    rows = []
    for probe in PROBES:
        ours = [percent(values["outcomes"][probe]["score"], ".1f") for values in runs.values()]
        rows.append([probe + " (UUAS)" * (probe == "structural probe"), cited().get(probe, ""), *ours])
    return Table(["UAS, %", f"Clark et al. 2019: {results.paper('clark2019', 'table3')['model']}", *runs], rows)


def edges(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """How well attention and its rivals tell edges and relations, beside the two numbers of Coenen et al. 2019; empty where a run has none."""
    theirs = {"edge": "edge_accuracy", "which relation": "relation_accuracy"}
    source = {question: results.paper("coenen2019", name) for question, name in theirs.items()}
    rows = []
    for question in QUESTIONS:
        for of in READERS:
            paper = str(source[question]["value"]) if question in source and of == "attention" else ""
            found = [values["edges"].get(f"{question}, {of}") for values in runs.values()]
            rows.append(
                [f"{question}: {of}", paper, *("" if o is None else percent(o["score"], ".1f") for o in found)]
            )
    return Table(["accuracy, %", f"Coenen et al. 2019: {source['edge']['model']}", *runs], rows)


LARGEST = 6
"""So many of a probe's weights are looked at one by one."""


def more(runs: Mapping[str, Mapping[str, Any]]) -> Table:
    """What else the chapter says of several runs: fits, weights, the order of words, the learning curve, control tasks, trees, the determiner head."""
    curve = [Estimate.from_record(values["curve"]["attention"]) for values in runs.values()]
    fits = (taken("weights.again.other orders.scores", values) for values in runs.values())
    rows = [
        ["attention, from fit to fit, UAS, %", *map(_ends, fits)],
        [f"of its {LARGEST} largest weights below 0", *(str(_negative(v["weights"])) for v in runs.values())],
        ["next word found by attention, %", *(percent(v["next_word"]["trained"], ".1f") for v in runs.values())],
        ["the same, @random, %", *(percent(v["next_word"]["random"], ".1f") for v in runs.values())],
        ["fewest sentences to train on", *(str(v["curve"]["sentences"][0]) for v in runs.values())],
        ["attention with these, UAS, %", *(percent(one[0], ".1f") for one in curve)],
        *(
            [f"control task, {probe}, %", *(percent(v["outcomes"][probe]["control"], ".1f") for v in runs.values())]
            for probe in ("attention and words", "distances and words")
        ),
        *(
            [f"{name}, UUAS, %", *(_share(path, values) for values in runs.values())]
            for name, path in (
                ("structural probe, @random", "outcomes.structural probe, @random.score"),
                ("neighbours joined", "outcomes.neighbours joined.score"),
                ("neighbours joined, development part", "neighbours"),
            )
        ),
        ["embeddings there, UUAS, %", *(percent(_first(v["layers"]), ".1f") for v in runs.values())],
        ["rank of the best determiner head", *(str(v["determiner"]["rank"]) for v in runs.values())],
    ]
    return Table(["", *runs], rows)


def _ends(scores: Sequence[float] | None) -> str:
    """The lowest and the highest, in per cent."""
    return ABSENT if scores is None else f"{100 * min(scores):.1f} to {100 * max(scores):.1f}"


def _share(path: str, values: Mapping[str, Any]) -> str:
    found = taken(path, values)
    return ABSENT if found is None else percent(found, ".1f")


def _first(layers: Any) -> Estimate:
    """Of the embeddings, layer 0."""
    return Estimate.from_record(layers)[0]


def _negative(weights: Mapping[str, Any]) -> int:
    """How many of a probe's largest weights are below 0."""
    both = np.ravel([weights["w"], weights["u"]])
    return int((both[np.argsort(-np.abs(both))[:LARGEST]] < 0).sum())
