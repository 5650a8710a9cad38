"""Chapter 06: its numbers as rows of the tidy table, and those of several runs beside the papers'."""

from collections.abc import Mapping

import numpy as np

from helpers import results, scoreboard
from helpers.results import Blocks, Record, Table, from_yaml, rows
from helpers.stats import Estimate

NETWORKS = {"": "", "@random": ", @random", "@shuffled": ", @shuffled"}
"""Network -> how the names of its outcomes end."""
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
COMPARED = (
    ("outcomes", "attention", "right-branching"),
    ("outcomes", "attention", "best single head"),
    ("outcomes", "attention", "distances and words"),
    ("outcomes", "attention and words", "attention"),
    ("outcomes", "attention and words", "distances and words"),
    ("edges", "edge, attention", "edge, distance"),
    ("edges", "edge, equally far, attention, words and distance", "edge, equally far, words and distance"),
)
"""Part of the record, a probe in it, and its baseline."""
LARGEST = 6
"""So many of a probe's weights are looked at one by one."""


def tidy(record: Record) -> Blocks:
    """The numbers of a record, for :func:`helpers.results.record`."""
    values = record["values"]
    test, train = ({"split": split, "against": ""} for split in ("test", "train"))
    for probe, found in values.get("outcomes", {}).items():
        yield rows("uas", found["score"], of=probe, **test)
        yield rows("uas_on_control_task", found.get("control"), of=probe, **test)
    for network, ending in NETWORKS.items():
        for part, probe, baseline in COMPARED:
            yield from _compared(values.get(part, {}), probe, baseline, network, ending)
    for name, found in values.get("edges", {}).items():
        reader, _, network = name.partition(", @")
        network = f"@{network}" if network else ""
        yield rows("pair_accuracy", found["score"], network=network, of=reader, split="test")
    yield rows("next_word_found", values.get("next_word", {}), **test)
    layers, by_random = values.get("layers"), values.get("random_layers")
    embeddings = layers and Estimate.from_record(layers)[0]
    yield rows("structural_probe_uas", layers, "state", control=by_random, against="@random", split="dev")
    yield rows("embeddings_uas", embeddings, split="dev", against="")
    yield rows("neighbours_joined_uas", values.get("neighbours"), split="dev", against="")
    weights = values.get("weights", {})
    yield rows("probe_weight_to_governor", weights.get("w"), "layer", "head", **train)
    yield rows("probe_weight_from_governor", weights.get("u"), "layer", "head", **train)
    if weights:
        both = np.ravel([weights["w"], weights["u"]])
        largest = both[np.argsort(-np.abs(both))[:LARGEST]]
        yield rows("largest_weights_below_zero", int((largest < 0).sum()), **train)
    if fits := weights.get("again", {}).get("other orders"):
        low, high = min(fits["scores"]), max(fits["scores"])
        yield rows("uas_from_fit_to_fit", high - low, label=f"{100 * low:.1f} to {100 * high:.1f}", **test)
    if curve := values.get("curve"):
        yield rows("fewest_sentences", curve["sentences"][0], **train)
        yield rows("uas_with_fewest_sentences", Estimate.from_record(curve["attention"])[0], **test)
    yield rows("determiner_head_rank", values.get("determiner", {}).get("rank"), **train)


def _compared(found: Record, probe: str, baseline: str, network: str, ending: str) -> Blocks:
    """A probe's score on the attention of a network, its baseline's, and the paired difference; a baseline that reads no attention is the same for all."""
    ours, against = found.get(probe + ending), found.get(baseline + ending) or found.get(baseline)
    if ours and against:
        less = baseline.rpartition(", ")[2]
        common = {"network": network, "of": f"{probe} over {less}", "split": "test", "against": ""}
        yield rows("score_over_baseline", ours["score"], **common)
        yield rows("score_of_baseline", against["score"], **common)
        yield rows("gain_over_baseline", ours.get("over", {}).get(less), **common)


def cited() -> dict[str, float]:
    """Our probe -> its UAS in the paper, in %: Table 3, and for the best single head Table 1, which has no roots."""
    theirs = {row["model"]: row["score"] for row in results.paper("clark2019", "table3")["rows"]}
    found = {probe: theirs[name] for probe, name in PROBES.items() if name in theirs}
    return found | {"best single head": results.paper("clark2019", "best_single_head_uas")["value"]}


def table(runs: Mapping[str, Record]) -> Table:
    """The paper's Table 3 beside fresh or recorded values of several runs."""
    ours = _ours({probe: f"uas/{probe}" for probe in PROBES}, runs)
    rows = [[p + " (UUAS)" * (p == "structural probe"), cited().get(p, ""), *cells] for p, *cells in ours]
    return Table(["UAS, %", f"Clark et al. 2019: {results.paper('clark2019', 'table3')['model']}", *runs], rows)


def edges(runs: Mapping[str, Record]) -> Table:
    """How well attention and its baselines tell edges and relations, beside the two numbers of Coenen et al. 2019."""
    names = {f"{question}: {of}": f"pair_accuracy/{question}, {of}" for question in QUESTIONS for of in READERS}
    source = {"edge: attention": "edge_accuracy", "which relation: attention": "relation_accuracy"}
    theirs = {label: results.paper("coenen2019", name) for label, name in source.items()}
    model = theirs["edge: attention"]["model"]
    rows = [[label, str(theirs.get(label, {}).get("value", "")), *cells] for label, *cells in _ours(names, runs)]
    return Table(["accuracy, %", f"Coenen et al. 2019: {model}", *runs], rows)


MORE = {
    "attention, from fit to fit, UAS, %": "uas_from_fit_to_fit",
    f"of its {LARGEST} largest weights below 0": "largest_weights_below_zero",
    "next word found by attention, %": "next_word_found/trained",
    "the same, @random, %": "next_word_found/random",
    "fewest sentences to train on": "fewest_sentences",
    "attention with these, UAS, %": "uas_with_fewest_sentences",
    "control task, attention and words, %": "uas_on_control_task/attention and words",
    "control task, distances and words, %": "uas_on_control_task/distances and words",
    "structural probe, @random, UUAS, %": "uas/structural probe, @random",
    "neighbours joined, UUAS, %": "uas/neighbours joined",
    "neighbours joined, development part, UUAS, %": "neighbours_joined_uas",
    "embeddings there, UUAS, %": "embeddings_uas",
    "rank of the best determiner head": "determiner_head_rank",
}
"""What else the chapter says of several runs -> name of the number."""


def more(runs: Mapping[str, Record]) -> Table:
    """Fits, weights, the order of words, the learning curve, control tasks, trees, the determiner head."""
    return Table(["", *runs], _ours(MORE, runs))


def _ours(names: Mapping[str, str], runs: Mapping[str, Record]) -> list[list[str]]:
    """Labels, and our numbers of several runs; shares in per cent."""
    numbers = [scoreboard.numbers_in(values, tidy) for values in runs.values()]
    units = from_yaml("quantities")["probing_classifiers"]
    shown = []
    for label, name in names.items():
        factor, digits, _ = scoreboard.UNITS["%" if units[name.split("/")[0]]["unit"] == "share" else "count"]
        found = [one.get(("", name)) for one in numbers]
        shown.append([label, *("" if one is None else one.words or f"{one * factor:.{digits}f}" for one in found)])
    return shown
