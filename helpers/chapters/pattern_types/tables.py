"""Chapter 09: its numbers as rows of the tidy table."""

import numpy as np

from helpers.chapters.pattern_types.classifiers import FOREST, KNOWN, LAYER, MAJORITY, NEW, OWN_HEAD, RULE
from helpers.results import Blocks, Record, rows

ACCURACIES = {"accuracy_known_heads": KNOWN, "accuracy_new_heads": NEW}
GAINS = {
    "head": f"{OWN_HEAD} over {LAYER}",
    "majority": f"{MAJORITY} over {LAYER}",
    "forest": f"{FOREST} over {RULE}",
    "majority over rule": f"{MAJORITY} over {RULE}",
}
"""Recorded difference of two accuracies -> of what over what."""
FAINT = ("heterogeneous", "block")


def tidy(record: Record) -> Blocks:
    """The numbers of a record, for :func:`helpers.results.record`."""
    values = record["values"]
    networks = {"": values} | {f"@{name}": found for name, found in values.get("controls", {}).items()}
    for network, found in networks.items():
        types, common = found["types"], {"network": network}
        yield rows("pattern_share", found["heads"], "layer", "head", types, **common)
        yield rows("pattern_share", found["layers"], "layer", types, **common)
        yield rows("pattern_share", found["all"], types, **common)
        yield rows("pattern_type", found["typical"], "layer", "head", **common)
        yield rows("pattern_entropy", found["entropy"], "layer", "head", **common)
        shares = dict(zip(types, found["all"]["value"], strict=True))
        yield rows("frequent_types", sum(share > 0.01 for share in shares.values()), **common)
        yield rows("heterogeneous_or_block_maps", sum(shares[name] for name in FAINT), **common)
        yield rows("heterogeneous_or_block_heads", np.isin(found["typical"], FAINT).mean(), **common)
        yield rows("vertical_heads", np.isin(found["typical"], "vertical").mean(), **common)
        yield rows("dark_column", found["column"], **common)
        yield rows("heterogeneous_in_first_layer", found.get("first"), **common)
        yield rows("vertical_target", found["targets"], **common)
    yield from _accuracies(values, record["provenance"].get("model", {}).get("name"))


def _accuracies(values: Record, model: str | None) -> Blocks:
    """How well maps are named; those of another model where this one's are not labelled."""
    judged = values.get("judged", {}).get("model")
    common = {"split": "test", "against": ""} | ({} if judged == model else {"model": judged})
    for quantity, heads in ACCURACIES.items():
        for name, score in values.get("scores", {}).get(heads, {}).items():
            yield rows(quantity, score["accuracy"], of=name, n=np.sum(score["confusion"]), **common)
    gains = {of: values.get("gains", {}).get(name) for name, of in GAINS.items()}
    yield rows("accuracy_gain", gains, **common)
