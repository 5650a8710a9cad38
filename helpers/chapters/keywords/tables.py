"""Chapter 13: its numbers as rows of the tidy table, and the lecture's numbers beside ours."""

from collections.abc import Mapping

import numpy as np

from helpers import results
from helpers.plots import head_name
from helpers.results import Blocks, Record, Table, rows
from helpers.stats import Estimate

NETWORKS = {"": "", "@random": "_random", "@shuffled": "_shuffled"}
"""Network -> how the names of its parts of a record end."""


def tidy(record: Record) -> Blocks:
    """The numbers of a record, for :func:`helpers.results.record`."""
    values = record["values"]
    common = {"n": values["coverage"]["documents"]}
    for network, ending in NETWORKS.items():
        relative, content = values[f"relative{ending}"], values[f"content{ending}"]
        yield rows("key_word_attention", relative, "layer", "head", network=network, **common)
        yield rows("key_word_attention_content", content, "layer", "head", network=network, **common)
        certain = Estimate.from_record(content).low > 0
        upper = certain[len(certain) // 2 :].sum()
        yield rows("upper_heads_that_favour_key_words", upper, network=network, **common)
        name = f"all heads, {network}" if network else "all heads"
        yield rows("all_heads_over_rule", values["over_rules"].get(name), network=network, **common)
    summed = (Estimate.from_record(values["relative_summed"]).low > 0).sum()
    yield rows("heads_that_favour_key_words_summed", summed, network="@random", **common)
    heads = values["heads"]
    rule = {"control": heads["constant"], "against": "share of key words"}
    yield rows("keyword_entropy", heads["entropy"], "layer", "head", **rule, **common)
    yield rows("keyword_precision", heads["precision"], "layer", "head", **common)
    yield rows("keyword_precision_content", heads["content"], "layer", "head", **common)
    yield rows("keyword_weight", np.asarray(values["learned"])[..., 0], "layer", "head", **common)
    yield rows("tagger_f1", values.get("tagger", {}).get("f1"), **common)
    if "curves" in values:
        yield from _removal(values)


def _removal(values: Record) -> Blocks:
    """What the tagger loses without a head, and without the first heads of an order."""
    chosen_on, scored_on = values["removal"]["chosen_on"], values["removal"]["scored_on"]
    removed = Estimate.from_record(values["removed"])
    yield rows("keyword_removal_cost", removed[..., 0], "layer", "head", n=chosen_on)
    yield rows("keyword_removal_loss", removed[..., 2], "layer", "head", n=chosen_on)
    for order, curve in values["curves"].items():
        common = {"of": order, "n": scored_on, "against": ""}
        scores, change = (Estimate.from_record(curve[name]) for name in ("scores", "change"))
        yield rows("tagger_f1_whole", scores[0, 0], **common)
        yield rows("tagger_f1_first_heads_removed", scores[1, 0], **common)
        yield rows("tagger_f1_change_first_heads_removed", change[1, 0], **common)
        if len(curve["counts"]) > 2:
            more = Estimate.from_record(values["given_beside_random"][order])
            yield rows("phrases_beyond_random_order", more[2], **common)


def cell(values: Record, *path: str) -> str:
    """An estimate of a run at a path; a network without a tagger, say, has none of it."""
    for key in path:
        values = values.get(key, {})
    return f"{Estimate.from_record(values):.3f}" if values else "not measured"


def tagger(runs: Mapping[str, Record]) -> Table:
    """The lecture's tagger, whole and pruned, beside those of several runs."""
    lines = {
        "tagger, F1": ("tagger_f1", ("tagger", "f1")),
        "tagger, F1, all keyphrases": ("", ("tagger", "f1_all")),
        "whole, where pruned": ("", ("pruned", "whole")),
        "pruned": ("tagger_f1_pruned", ("pruned", "f1")),
    }
    table = []
    for label, (claim, path) in lines.items():
        theirs = results.paper_text(results.paper("stefaniknd", claim)) if claim else ""
        table.append([label, theirs, *(cell(values, *path) for values in runs.values())])
    table.append(["heads pruned", "", *(values.get("pruned", {}).get("heads", "") for values in runs.values())])
    best = results.paper_text(results.paper("stefaniknd", "sota_f1"))
    table.append(["best system known to the author", best, *[""] * len(runs)])
    return Table(["", "lecture: BERT-base", *runs], table)


def heads(runs: Mapping[str, Record]) -> Table:
    """Cross-entropies of the lecture's heads, and our best heads and simple rankings, in units of their own."""
    lecture = results.paper("stefaniknd", "head_cross_entropy")["rows"][:3]
    theirs = [f"head {head['head']}: {head['cross_entropy']:.0f}" for head in lecture]
    lines = [["cross-entropy of a head", value, *[""] * len(runs)] for value in theirs]
    best = [(tuple(values["best"]), Estimate.from_record(values["heads"]["entropy"])) for values in runs.values()]
    lines.append(["best head, nats a word", "", *(f"{head_name(*head)}: {found[head]:.3f}" for head, found in best)])
    for name in ("first phrases", "tf-idf", "best head", "all heads"):
        ours = [cell(values, "scores", name, "precision") for values in runs.values()]
        lines.append([f"average precision: {name}", "", *ours])
    return Table(["", "lecture: BERT", *runs], lines)
