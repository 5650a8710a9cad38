"""Chapter 07: its numbers as rows of the tidy table."""

import numpy as np
from scipy.spatial.distance import squareform

from helpers.plots import head_name
from helpers.results import Blocks, Record, rows
from helpers.stats import Estimate

NETWORKS = {"": "model", "@random": "control"}
BEYOND = {
    "all": ("layer_ratio", "all tokens"),
    "ordinary": ("layer_ratio", "ordinary tokens"),
    "held": ("layer_gap_held", None),
}
"""Test of heads of one layer, less the same of shuffled maps -> what it measures, and on what."""
PARTS = {"ours": "", "control": "_of_shuffled", "difference": "_beyond_shuffled", "p": "_p"}


def tidy(record: Record) -> Blocks:
    """The numbers of a record, for :func:`helpers.results.record`."""
    values = record["values"]
    for network, name in NETWORKS.items():
        if found := values.get(name):
            common = {"network": network, "n": found["segments"]}
            yield from _of_heads(found, {**common, "against": ""})
            yield rows("divergence_within_layer", found.get("apart", {}).get("each"), "layer", **common)
            stress, dimensions = found["map"].get("stress"), len(found["map"]["points"][0])
            yield rows("stress", stress, **common)
            if stress is not None:
                yield rows("map_dimensions", dimensions, label=f"{dimensions}; {stress:.2f}", **common)
            for alike, test in found.get("closeness", {}).items():
                yield rows("closeness", test["ratio"], of=alike, **common)
                yield rows("closeness_r", test["r"], of=alike, label=_in_words(test), **common)
    few = values.get("shuffled", {}).get("segments")
    for alike, test in values.get("ordinary", {}).get("closeness", {}).items():
        yield rows("closeness_r", test["r"], of=f"{alike}, ordinary tokens", label=_in_words(test), n=few)
    for test, (quantity, of) in BEYOND.items():
        for network, name in {"": "model", "@random": "random"}.items():
            found = values.get("beyond", {}).get(test, {}).get(name, {})
            for part, ending in PARTS.items():
                yield rows(quantity + ending, found.get(part), network=network, of=of, n=few, against="")
    if stable := values.get("stability"):
        common = {"n": stable["documents"][-1], "against": ""}
        yield rows("map_disparity", float(np.median(stable["disparity"][-1])), **common)
        yield rows("map_disparity_heads_shuffled", float(np.mean(stable["shuffled"])), **common)


def _of_heads(found: Record, common: Record) -> Blocks:
    """Each pair of heads twice, from either to the other, and where heads lie on the map."""
    matrix, points = squareform(found["pairs"]), np.asarray(found["map"]["points"])
    layer, head = np.divmod(np.arange(len(matrix)), found["heads"])
    one, other = np.nonzero(~np.eye(len(matrix), dtype=bool))
    names = np.array([head_name(*place) for place in zip(layer, head, strict=True)], object)
    whose = {"layer": layer[one] + 1, "head": head[one] + 1, "of": names[other]}
    yield rows("divergence", matrix[one, other], **whose, **common)
    yield rows("map_x", points[:, 0], layer=layer + 1, head=head + 1, **common)
    yield rows("map_y", points[:, 1], layer=layer + 1, head=head + 1, **common)


def _in_words(test: Record) -> str:
    within, between, ratio = (Estimate.from_record(test[name]) for name in ("within", "between", "ratio"))
    means = f"{within.value:.3f} against {between.value:.3f}"
    return f"{means}, ratio {ratio:.3f}, p = {test['p']:.4f}, R = {test['r']:.2f}"
