"""Chapter 08: its numbers as rows of the tidy table, and types and their stability beside the paper's."""

from collections.abc import Mapping

import numpy as np

from helpers import results
from helpers.plots import LABELS, group_names
from helpers.results import Blocks, Record, Table, in_order, rows
from helpers.stats import Estimate, percent

BY_DEPTH = {"dense": "dense", "dense_vertical": "dense & vertical", "vertical": "vertical"}
"""Types in the paper's order of depth, and how they are written."""
INVENTED = "invented heads"
CORPORA = {"questions": "questions", "paraphrase": "paraphrases", "entailment": "entailment"}
"""Inputs that are not of the plain text -> the parameter that names their corpus."""
TUNED = {"plain text": "", "questions": "qa", "paraphrase": "paraphrase", "entailment": "entailment"}
"""Texts in the order of the rows of the paper's Table 1 -> the task that a network was tuned for."""
REST = {
    "inputs_control": "invented heads: half of the inputs",
    "heads": "plain text: half of the heads",
    "heads_control": "invented heads: half of the heads",
}


def tidy(record: Record) -> Blocks:
    """The numbers of a record, for :func:`helpers.results.record`."""
    values, parameters = record["values"], record["provenance"]["parameters"]
    n, heads = values["inputs"], ("layer", "head")
    networks = {"": values, "@random": values.get("random", {}), "@shuffled": values.get("shuffled", {})}
    for network, found in networks.items():
        common, fits = {"network": network, "n": found.get("inputs", n)}, found.get("fits")
        yield rows("distance_feature", found.get("features"), *heads, values["feature_names"], **common)
        for name, fit in (fits or {}).items():
            yield rows("type_fits", fit, of=name, label="yes" if fit else "no", **common)
        yield rows("fitting_groups", sum(fits.values()) if fits else None, **common)
        yield rows("two_largest", found.get("largest"), **common)
    yield rows("type", values["types"], *heads, n=n)
    yield rows("type_by_rule", values.get("rule", {}).get("types"), *heads, n=n)
    yield rows("type_share", values.get("shares", {}), n=n)
    types = np.array(values["types"])
    if values.get("fits", {}).get("vertical") and np.isin(list(BY_DEPTH), types).all():
        depths = {written: np.nonzero(types == name)[0].mean() + 1 for name, written in BY_DEPTH.items()}
        yield in_order("order_of_depth", depths, ".1f")
    for name, found in values.get("texts", {}).items():
        common = {"of": name, "n": found["inputs"], "corpus": parameters.get(CORPORA.get(name))}
        yield rows("type_on_texts", found["types"], *heads, **common)
        yield rows("changed_on_texts", found["change"], **common)
    yield rows("changed_in_half", values.get("changed_in_half"), n=n)
    yield from _groups(values, parameters)


def _groups(values: Record, parameters: Record) -> Blocks:
    """Whether the groups are there: how clear and how stable they are, beside those of invented heads."""
    by_k, scales = values.get("k", {}), values.get("scales", {})
    for quantity, key in {"clearest_groups": "silhouette", "clearest_groups_invented": "silhouette_control"}.items():
        scores = {int(k): found[key]["value"] for k, found in by_k.items()}
        yield rows(quantity, max(scores, key=scores.get, default=None))
    stability = {f"{k} groups": found for k, found in by_k.items()} | values.get("stability", {})
    for name, found in stability.items():
        common = {"network": "@random", "of": "plain text"} if name == "random" else {"of": name}
        common["corpus"] = parameters.get(CORPORA.get(name))
        control = found["inputs_control"]
        yield rows("stability", found["inputs"], control=control, against=INVENTED, **common)
        yield rows("stability_invented", control, against="", **common)
    for name, found in scales.items():
        control = found["mixture_control"]
        yield rows("mixture_agreement", found["mixture"], of=name, control=control, against=INVENTED)
        yield rows("mixture_agreement_invented", control, of=name)
    if scales:
        clearer = [Estimate.from_record(found["excess"]["4"]).low > 0 for found in scales.values()]
        yield rows("clearer_scales", np.mean(clearer))


def shares(runs: Mapping[str, Record]) -> Table:
    """Shares of the types in fresh or recorded values beside the paper's; a group that does not fit the name is given by its own."""
    lines = []
    for row in results.paper("guan2020", "type_shares")["rows"]:
        name = row["type"].replace("&", "_")
        ours = []
        for values in runs.values():
            called = "" if values["fits"][name] else f" ({group_names(values['fits'])[name]})"
            ours.append(percent(values["shares"][name]) + called)
        lines.append([LABELS[name], f"{row['share']} ({row['layers']} layers)", *ours])
    return Table(["type", "BERT-large, SQuAD", *runs], lines)


def stability(runs: Mapping[str, Record]) -> Table:
    """Stability of four groups beside the paper's Table 1, on the texts of each task and after tuning for it."""
    found = [values["stability"] for values in runs.values()]
    lines = []
    for (texts, task), row in zip(TUNED.items(), results.paper("guan2020", "table1")["rows"], strict=True):
        ours = [percent(one[texts]["inputs"]) for one in found]
        lines.append([f"{texts} ({row['task']}): half of the inputs", f"{row['stability']:.2f}", *ours])
        tuned = [percent(one[f"tuned: {task}"]["inputs"]) if f"tuned: {task}" in one else "–" for one in found]
        if set(tuned) != {"–"}:
            lines.append([f"tuned: {task}, plain text: half of the inputs", "", *tuned])
    plain = [one["plain text"] for one in found]
    lines += [[label, "", *(percent(p[key]) if key in p else "–" for p in plain)] for key, label in REST.items()]
    return Table(["refits see", "BERT-large", *runs], lines)
