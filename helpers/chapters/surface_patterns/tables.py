"""Chapter 02: its numbers as rows of the tidy table."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from helpers.measurements.surface import ROLES, SINK_FACTOR, SPECIALIST_SHARE, STATISTICS
from helpers.results import Blocks, Record, in_order, rows
from helpers.stats import Estimate

QUANTITIES = {name: f"share_{name}" for name in STATISTICS} | {"stop": "share_punctuation"}
QUANTITIES |= {name: name for name in ("entropy", "entropy_from_cls", "peak")}
LITTLE = 0.1
"""A head that gives less of its attention than this to the token itself gives it little."""
CLOSE = 0.1
"""Entropies that differ by no more than this share of one of them are close."""


def tidy(record: Record) -> Blocks:
    """The numbers of a record, for :func:`helpers.results.record`."""
    values = record["values"]
    networks = {"": (values["summary"], values["patterns"])}
    if "control" in values:
        networks["@random"] = values["control"], values["control_patterns"]["random"]
        networks["@shuffled"] = values["shuffled"], values["control_patterns"]["shuffled"]
    for network, (summary, patterns) in networks.items():
        common = {"network": network, "n": summary["tokens"]}
        for statistic, quantity in QUANTITIES.items():
            yield rows(quantity, patterns[statistic], "layer", "head", **common)
        for statistic in ("cls", "sep", "stop"):
            yield rows(QUANTITIES[statistic], summary[f"to_{statistic}"], **common)
        for part in ("to_cls", "to_sep", "entropy", "entropy_from_cls"):
            yield rows(QUANTITIES[part.removeprefix("to_")], summary[f"{part}_by_layer"], "layer", **common)
        yield rows("entropy_even", patterns["uniform"], **common)
        yield from _specialists(summary["specialists"], common)
        yield from _in_brief(summary, patterns, common)


def _specialists(specialists: list[dict[str, Any]], common: Record) -> Blocks:
    """Every one; of each role, the one with the largest share, and how many there are."""
    scored = common | {"split": "one half of the articles", "against": ""}  # a random network's are other heads
    best: dict[str, dict[str, Any]] = {}
    for one in specialists:
        place, role = (one["layer"], one["head"]), one["role"]
        yield rows("specialist", one["held_out"], place=place, label=role, **scored)
        if role not in best or one["held_out"]["value"] > best[role]["held_out"]["value"]:
            best[role] = one
    for role, one in best.items():
        yield rows("best_specialist", one["held_out"], place=(one["layer"], one["head"]), of=role, **scored)
    roles = [one["role"] for one in specialists]
    counts = {role: roles.count(role) for role in (*ROLES, "broad")}
    counts["cls, sep or stop"] = counts["cls"] + counts["sep"] + counts["stop"]
    yield rows("specialists", counts, **common)


def _in_brief(summary: Record, patterns: Record, common: Record) -> Blocks:
    """What the chapter's claims are about: numbers of the whole network, or of the layer with the most."""
    count = summary["layers"]
    for place in ("previous", "next"):
        layers = np.nonzero(np.array(patterns[place]["value"]) > SPECIALIST_SHARE)[0]
        if len(layers):
            words = f"{', '.join(str(layer + 1) for layer in layers)} of {count}"
            yield rows("depth_over_half", layers.mean() / max(count - 1, 1), of=place, label=words, **common)
    yield rows("little_on_self", (np.array(patterns["self"]["value"]) < LITTLE).mean(), **common)
    yield rows("largest_peak_of_broad", summary["largest_peak_of_broad"] or None, **common)

    for kind in ("cls", "sep"):
        multiple = {end: share / summary["chance"][kind] for end, share in summary[f"to_{kind}"].items()}
        yield rows("times_even_share", multiple, of=kind, **common)
    kind, multiple = sink_of(summary) or ("", 0.0)
    share = summary[f"to_{kind}"]["value"] if kind else 0.0
    words = f"[{kind.upper()}], {100 * share:.1f} %, {multiple:.0f} times its even share" if kind else "none"
    yield rows("sink", words, **common)

    to_cls, to_sep, from_sep, from_all, from_cls, narrower = (
        Estimate.from_record(summary[f"{part}_by_layer"])
        for part in ("to_cls", "to_sep", "sep_from_sep", "entropy", "entropy_from_cls", "cls_narrower")
    )
    yield rows("most_in_a_layer", to_sep[to_sep.value.argmax()], of="sep", **common)
    yield rows("most_in_a_layer", from_sep[from_sep.value.argmax()], of="sep from sep", **common)
    to_stop = np.mean(patterns["stop"]["value"], 1)
    by_layer = {"[CLS]": to_cls.value, "[SEP]": to_sep.value, "full stops": to_stop}
    yield in_order("peaks_in_order", {name: np.argmax(to) + 1 for name, to in by_layer.items()}, **common)
    if count > 1:
        yield rows("entropy_from_cls_last", from_cls[-1], **common)
        of_all, of_cls = from_all.value[:-1], from_cls.value[:-1]
        yield rows("entropy_from_cls_before_last", of_cls.mean(), **common)
        yield rows("layers_cls_close", (np.abs(of_all - of_cls) <= CLOSE * np.abs(of_all)).mean(), **common)
        yield rows("cls_narrower", narrower[narrower.value[:-1].argmin()], **common)


def sink_of(values: Mapping[str, Any]) -> tuple[str, float] | None:
    """The special token that draws most attention for its number, and how many times its even share it gets.

    Returns:
        ``("cls" or "sep", multiple)`` from a fresh or recorded :func:`helpers.measurements.surface.summary`; None if neither gets three times
        its even share. Some models have several tokens in the role of ``[SEP]``, hence the multiple.
    """
    chance = {kind: values["chance"][kind] for kind in ("cls", "sep")}
    gain = {kind: float(Estimate.from_record(values[f"to_{kind}"]).value) / even for kind, even in chance.items()}
    best = max(gain, key=gain.__getitem__)
    return (best, gain[best]) if gain[best] >= SINK_FACTOR else None
