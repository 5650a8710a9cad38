"""Chapter 03: its numbers as rows of the tidy table, and the tables and lines of several runs."""

from collections.abc import Mapping

import numpy as np

from helpers.results import Blocks, Record, Table, rows
from helpers.stats import Estimate

SMALL = 0.5
"""A mean gradient of less than this multiple of that on other tokens is called small."""
START = 0.333
"""The depth, as a share of all layers, from which the paper calls them small."""
CLS, SEP = 0, 1
NORMS = {"": "without_adapter", "@random": "random", "@shuffled": "shuffled"}
"""Network -> its part of a record: of the model itself, since the adapter makes the sink larger and the papers' models have none."""
SINK = ("share", "weighted_share", "kept", "norm_ratio")
DUTIES = {"": "duty", "@random": "duty_random", "@shuffled": "duty_shuffled"}


def tidy(record: Record) -> Blocks:
    """The numbers of a record, for :func:`helpers.results.record`."""
    values, kinds = record["values"], record["values"]["kinds"]
    yield rows("weighted_share", values["norms"]["weighted_share"], "layer", kinds, n=values["segments"])
    yield rows("gradient_by_kind", values["gradient"], "layer", kinds, n=values["segments"])
    yield from _small_gradients("small_gradient", values)
    yield from _small_gradients("small_gradient", values["random_head"], network="@random")
    yield from _small_gradients("small_gradient_untrained", values["untrained_head"])
    for network, part in NORMS.items():
        norms = values[part]
        layer, sink = divmod(int(np.array(norms["share"]["value"])[:, [CLS, SEP]].argmax()), 2)
        found = {name: Estimate.from_record(norms[name]) for name in SINK}
        for name, share in found.items():
            yield rows(f"sink_{name}", share[layer, sink], network=network)
        yield rows("other_special_norm_ratio", found["norm_ratio"][layer, 1 - sink], network=network)
    for way in ("as_left", "renormalised", "spent"):
        every_layer = Estimate.from_record(values["removed"][way]["difference"])[-1]
        yield rows("removal_beyond_others", every_layer, of=way, n=values["removed"]["segments"])
    treebank = record["provenance"]["parameters"].get("treebank")
    for network, part in DUTIES.items():
        common = {"network": network, "corpus": treebank, "split": "test"}
        for relation, head in values[part].items():
            yield rows("retreat", head["retreat_of_all"], "layer", "head", of=relation, **common)
        if "obj" in values[part]:
            head = values[part]["obj"]
            common["place"] = head["layer"], head["head"]
            yield rows("object_head_to_special", head["sink"], head["groups"], n=head["count"], **common)
            yield rows("object_head_retreat", head["retreat"], **common)


def _small_gradients(quantity: str, found: Record, **columns: str) -> Blocks:
    """In how many of the later layers the gradient for a special token is small."""
    ratio = np.array(found["gradient_ratio"]["value"])
    late = ratio[np.arange(len(ratio)) >= START * len(ratio)]
    for name, token in (("cls", CLS), ("sep", SEP)):
        small = int((late[:, token] < SMALL).sum())
        if len(late):
            yield rows(quantity, small / len(late), of=name, label=f"{small} of {len(late)}", **columns)


def _of_cls(found: Record) -> Estimate:
    return Estimate.from_record(found)[:, CLS]


def by_model(values: Record, part: str) -> dict[str, Estimate]:
    """A part of [CLS] by layer in a run's recorded values: in the model itself, with the adapter, and in the controls.

    Args:
        part: one of the keys of :func:`helpers.chapters.no_op.measures.norms_as_dict`.
    """
    names = {"the model itself": "without_adapter", "with adapter": "norms"}
    names |= {"@random": "random", "@shuffled": "shuffled"}
    return {name: _of_cls(values[key][part]) for name, key in names.items()}


def by_layer(runs: Mapping[str, Record]) -> Table:
    """The layers of several runs' recorded values, one under another."""
    columns, lines = {}, []
    for model, values in runs.items():
        norms, left, summed = values["norms"], values["removed"]["as_left"], values["removed"]["renormalised"]
        columns = {
            "to [CLS]": (_of_cls(norms["share"]), ".0%"),
            "part of the sums": (_of_cls(norms["joint_share"]).value, ".0%"),
            "length, × others": (_of_cls(norms["norm_ratio"]), ".3f"),
            "move, × others": (_of_cls(values["moved_ratio"]), ".2f"),
            "loss without special tokens": (Estimate.from_record(left["special"]), "+.3f"),
            "renormalised": (Estimate.from_record(summed["special"]), "+.3f"),
            "without others": (Estimate.from_record(left["random"]), "+.3f"),
            "renormalised ": (Estimate.from_record(summed["random"]), "+.3f"),
        }
        layers = range(len(values["gradient_ratio"]["value"]))
        lines += [[model, n + 1, *(f"{one[n]:{spec}}" for one, spec in columns.values())] for n in layers]
    return Table(["model", "layer", *columns], lines)
