"""Chapter 14: the whole book on one page, for any encoder.

A card gathers from small samples what chapters 02, 04, 05, 07 and 08 measure at length, with their own code:
specialists, sink, entropy, types, the best head for each relation and for coreference, a map of the heads. This module
stands on the floor of ``figures`` and ``results``, above the chapters' modules that it calls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from helpers import attention, corpora, encoders
from helpers.corpora.readers import Segment
from helpers.corpora.records import numbered
from helpers.corpora.records import sample as drawn
from helpers.corpora.treebanks import Document
from helpers.encoders import Encoder
from helpers.measurements import coreference as antecedents
from helpers.measurements import divergence, head_types, surface, syntax
from helpers.measurements.divergence import Divergences
from helpers.measurements.head_types import TYPES, DistanceFeatures
from helpers.measurements.surface import SurfacePatterns
from helpers.plots import group_names
from helpers.stats import Estimate, percent, stack
from helpers.tokens import EncodedText

MOST_TOKENS = 128  # as in chapters 02, 05, 07 and 08
PLACES = ("cls", "sep", "stop", "other")
RELATIONS = 8
"""How many relations a card shows: the most frequent, those with few words in the test part left out."""
FEWEST_HEADS = 3  # fewer make no map


def load(name: str, *, beside: str | None = None, seed: int = 0) -> Encoder:
    """An encoder for a card; a name that begins with ``@`` is added to that of the model it stands beside.

    Args:
        beside: the first model's name. If the second is the same random network, it is drawn with another seed.
    """
    if beside is not None and name.startswith("@"):
        name = beside.removesuffix("@random") + name
    return encoders.load(name, seed=seed + (name == beside))


def short_name(name: str) -> str:
    """A model's name as a label: of a folder its last part."""
    return Path(name).name or name


@dataclass(frozen=True, eq=False)
class Sample:
    """The texts that cards are measured on; the same for all models that are compared.

    Attributes:
        segments: plain text.
        trees, chains: documents to choose heads on, and documents to score them on.
    """

    segments: tuple[Segment, ...]
    trees: tuple[tuple[Document, ...], tuple[Document, ...]]
    chains: tuple[tuple[Document, ...], tuple[Document, ...]]


def sample(
    corpus: str,
    treebank: str,
    coreference: str,
    *,
    choose_on: Sequence[str] = ("dev",),
    segments: int | None = 200,
    documents: int | None = None,
    seed: int = 0,
) -> Sample:
    """Draw small samples of three corpora, by name or path.

    Args:
        segments: of plain text (None: all).
        documents: at most so many of each part of a treebank (default: all).

    Raises:
        CorpusError: when a text or a treebank is too small to choose heads on one part of it and to score them on another.
    """
    found = tuple(corpora.segments(corpora.read(corpus), limit=segments, seed=seed))
    surface.refuse_few(found)
    trees, chains = (
        tuple(numbered(drawn(part, documents, seed=seed)) for part in corpora.held_out(name, choose_on))
        for name in (treebank, coreference)
    )
    return Sample(found, trees, chains)


def card(encoder: Encoder, texts: Sample, *, shuffled: bool = False, seed: int = 0) -> dict[str, Any]:
    """What the book has to say about an encoder: one pass over the plain text for three chapters at once, one over each treebank.

    Args:
        shuffled: also what the control shows whose scores are shuffled in every map (:mod:`helpers.controls`).
        seed: of bootstraps, permutations and clustering.

    Returns:
        All that is on a card, for recording, drawing and comparing; estimates keep their replicates until recorded.
        Of chapter 02: ``specialists`` by its rule, ``shares`` (mean attention of each layer's heads to :data:`PLACES`, (layer,
        place); rows sum to 1), ``to`` (of all heads), ``chance``, ``sink``, ``entropy``, ``uniform``, and ``breadth``, mean entropy of
        all heads as a share of that of even attention. Of chapter 08: ``types`` (layer, head); ``type_shares``; ``fits``,
        whether a type's name fits its group (with too few heads to group, each head is named by rule alone); and
        ``rule_shares`` by rule alone, which two models can be compared by: groups are relative to a model's own heads.
        Of chapters 04 and 05: ``relations`` and ``coreference``, held out; empty where nothing could be scored. Of chapter 07:
        ``map`` and ``closeness``, None where there are too few heads. ``missing``: part of the card -> why it is empty.
        ``shuffled``: the control's ``shares``, ``to``, ``entropy``, ``breadth``, ``rule_shares``, ``relations`` and ``coreference``,
        its heads chosen anew; None if it was not asked for.
    """
    patterns, features, divergences, dealt = sweep(encoder, texts.segments, shuffled=shuffled, seed=seed)
    types, shares, by_rule, fits = typed(features, seed=seed)
    missing: dict[str, str] = {}
    relations, sentences = _tried(missing, "relations", lambda: _relations(encoder, texts, seed))
    coreference, mentions = _tried(missing, "coreference", lambda: _coreference(encoder, texts, seed))
    near = divergences is not None and min(encoder.layers, encoder.heads) > 1
    if divergences is None:
        missing["map"] = f"{encoder.layers * encoder.heads} heads are too few for a map."
    numbers = {name: getattr(encoder, name) for name in ("layers", "heads", "parameters", "max_length", "sha256")}
    counts = {"segments": patterns.segments, "tokens": patterns.tokens, "sentences": sentences, "mentions": mentions}
    return {
        "model": {"name": short_name(encoder.name), "family": type(encoder.model).__name__, **numbers},
        "units": counts,
        "specialists": [vars(s) for s in surface.specialists(patterns)],
        **_where(patterns),
        "chance": {name: float(patterns[f"chance_{name}"].value) for name in PLACES[:-1]},
        "sink": sink(patterns),
        "uniform": float(patterns["uniform"].value),
        "types": types,
        "type_shares": head_types.by_type(shares),
        "rule_shares": head_types.by_type(by_rule),
        "fits": fits,
        "relations": relations,
        "coreference": coreference,
        "map": None if divergences is None else placed(divergences),
        "closeness": _closeness(divergences, seed) if near else None,
        "missing": missing,
        "shuffled": None if dealt is None else _shuffled(encoder, texts, dealt, relations, coreference, seed),
    }


def _where(patterns: SurfacePatterns) -> dict[str, Any]:
    """Where attention goes, and how evenly."""
    return {
        "shares": stack([patterns[name].mean() for name in PLACES]).map(lambda x: np.swapaxes(x, -2, -1)),
        "to": {name: patterns[name].mean((-2, -1)) for name in PLACES},
        "entropy": patterns["entropy"].mean(),
        "breadth": surface.relative_entropy(patterns).mean((-2, -1)),
    }


def _shuffled(
    encoder: Encoder,
    texts: Sample,
    dealt: tuple[SurfacePatterns, DistanceFeatures],
    relations: Mapping[str, Any],
    coreference: Mapping[str, Any],
    seed: int,
) -> dict[str, Any]:
    """The control's part of a card: of the relations and kinds of mentions that the card has."""
    patterns, features = dealt
    found: dict[str, Any] = {"rule_shares": head_types.by_type(_by_rule(features)), "closeness": None}
    found |= _where(patterns) | {"relations": {}, "coreference": {}}
    if relations:
        parts = [syntax.trees(encoder, part) for part in texts.trees]
        dev, test = map(syntax.score, syntax.answers(encoder, *parts, shuffled=True), parts)
        made = {name: row.choice.held_out for name, row in syntax.table(dev, test, [*relations], seed=seed).items()}
        found["relations"] = {
            name: {"held_out": one, "gain": one - relations[name]["baseline"]} for name, one in made.items()
        }
    if coreference:
        rows = _chains(encoder, texts, seed, shuffled=True)[0]
        found["coreference"] = {
            kind: {"held_out": rows[kind].choice.held_out} for kind in coreference if kind in rows
        }
    return found


def sink(patterns: SurfacePatterns) -> dict[str, Any] | None:
    """The special token that draws most, and how many times its even share; None if that is under three times."""
    found = {}
    for kind in ("cls", "sep"):
        even = patterns[f"chance_{kind}"]
        if even.value > 0:  # a tokenizer may add no token in this role
            found[kind] = patterns[kind].mean((-2, -1)) / even
    best = max(found, key=lambda kind: float(found[kind].value), default=None)
    if best is None or found[best].value < surface.SINK_FACTOR:
        return None
    return {"kind": best, "multiple": found[best]}


def look(maps: Float[Tensor, "layer head query key"], text: EncodedText) -> dict[str, Any]:
    """What chapters 02 and 08 measure of one text."""
    return {"patterns": surface.look(maps, text), "features": head_types.look(maps, text)}


def look_also_at_pairs(maps: Float[Tensor, "layer head query key"], text: EncodedText) -> dict[str, Any]:
    """What chapters 02, 08 and 07 measure of one text."""
    return look(maps, text) | {"pairs": divergence.look(maps, text)}


def sweep(
    encoder: Encoder, segments: Sequence[Segment], *, shuffled: bool = False, seed: int = 0
) -> tuple[SurfacePatterns, DistanceFeatures, Divergences | None, tuple[SurfacePatterns, DistanceFeatures] | None]:
    """The statistics of chapters 02, 08 and 07; with ``shuffled`` also those of 02 and 08 with the scores of each map shuffled."""
    documents = [s.document for s in segments]

    def means(found: Sequence[Mapping[str, Any]]) -> tuple[SurfacePatterns, DistanceFeatures]:
        features = DistanceFeatures.of([text["features"] for text in found], documents, seed=seed)
        return surface.patterns([text["patterns"] for text in found], segments, seed=seed), features

    options = {"longest": MOST_TOKENS, "seed": seed}
    own = attention.measure(encoder, segments, look_also_at_pairs, **options)
    control = means(attention.measure(encoder, segments, look, shuffled=True, **options)) if shuffled else None
    divergences = None
    if encoder.layers * encoder.heads >= FEWEST_HEADS:
        divergences = Divergences.of(encoder, segments, [text["pairs"] for text in own])
    return *means(own), divergences, control


def typed(features: DistanceFeatures, *, seed: int = 0) -> tuple[np.ndarray, Estimate, Estimate, dict[str, bool]]:
    """The type of each head, (layer, head), the types' shares by groups and by rule alone, and whether the names fit."""
    by_rule = _by_rule(features)
    if len(features.points) > len(TYPES):
        found = head_types.types(features.all.value, features.even, seed=seed)
        return found.names, head_types.type_shares(features, seed=seed), by_rule, found.fits
    names = head_types.by_rule(features.all.value, features.even)
    return names, by_rule, by_rule, {name: bool((names == name).any()) for name in TYPES}


def _by_rule(features: DistanceFeatures) -> Estimate:
    """(type), share of heads whose nearest prototype is the type's."""

    def shares(found: Float[np.ndarray, "*draws layer head feature"]) -> Float[np.ndarray, "*draws type"]:
        names = head_types.by_rule(found, features.even)
        return np.stack([(names == name).mean((-2, -1)) for name in TYPES], -1)

    return features.all.map(shares)


def _tried(missing: dict[str, str], part: str, measure: Any) -> tuple[dict[str, Any], int]:
    """What ``measure`` finds, or nothing and the reason."""
    try:
        return measure()
    except ValueError as error:  # no sentence, or no chain, fits into the model's longest input
        missing[part] = str(error)
        return {}, 0


def _relations(encoder: Encoder, texts: Sample, seed: int) -> tuple[dict[str, Any], int]:
    parts = [syntax.trees(encoder, part) for part in texts.trees]
    rows = syntax.table(*map(syntax.score, syntax.answers(encoder, *parts), parts), seed=seed)
    named = [r for r in rows if r != "all" and not rows[r].few][:RELATIONS]
    shown = [rows[r] for r in rows if r == "all" or r in named]
    found = {
        r.relation: {"count": r.count, "layer": r.head[0], "head": r.head[1], "direction": r.direction}
        | {"held_out": r.choice.held_out, "same_data": r.choice.same_data}
        | {"offset": syntax.OFFSETS[r.offset.candidate[0]], "baseline": r.offset.held_out, "gain": r.gain, "p": r.p}
        for r in shown
    }
    return found, len(parts[1])


def _chains(
    encoder: Encoder, texts: Sample, seed: int, *, shuffled: bool = False
) -> tuple[dict[str, antecedents.Row], int]:
    """Chapter 05's rows for the kinds of mentions, and how many mentions there are."""
    dev, test = (antecedents.measure(encoder, part, shuffled=shuffled) for part in texts.chains)
    rows = antecedents.table(dev, test, seed=seed)
    return {kind: row for kind, row in rows.items() if kind in antecedents.KINDS}, len(test.hits)


def _coreference(encoder: Encoder, texts: Sample, seed: int) -> tuple[dict[str, Any], int]:
    rows, count = _chains(encoder, texts, seed)
    if not rows:
        raise ValueError(
            "No kind of mention has an antecedent both where heads are chosen and where they are scored."
        )
    found = {}
    for kind, row in rows.items():
        layer, head = row.head
        found[kind] = {"count": row.count, "layer": layer, "head": head, "held_out": row.choice.held_out}
        found[kind] |= {"same_data": row.choice.same_data, "gain": row.gains["four-sieve rules"]}
        found[kind] |= {"nearest": row.rules["nearest mention"], "rules": row.rules["four-sieve rules"]}
    return found, count


def placed(divergences: Divergences) -> dict[str, Any]:
    """Heads in the plane, [head, 2], and how far their distances there are from their divergences."""
    matrix = divergences.mean()
    points = divergence.place(matrix)
    return {"points": points, "stress": divergence.stress(matrix, points)}


def _closeness(divergences: Divergences, seed: int) -> dict[str, Any]:
    found = divergence.closeness(divergences, divergences.layer, seed=seed)
    return {name: getattr(found, name) for name in ("ratio", "p", "nearest", "nearest_by_chance")}


@dataclass(frozen=True)
class Line:
    """One number of two cards.

    Attributes:
        measure: what it is.
        one, other: the first card's and the second's; None where a card has none.
        gap: ``one - other``, paired over the same texts; None where the two cannot be paired.
    """

    measure: str
    one: Estimate | None
    other: Estimate | None
    gap: Estimate | None


def compare(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Line]:
    """Two cards (:func:`card`), or a card and its control's part, number by number; layers and heads need not be as many.

    A gap has an interval if both numbers were measured in this run on the same texts: recorded numbers have no
    replicates, and models with different longest inputs may have left out different sentences.
    """
    first, second = _numbers(one), _numbers(other)
    lines = []
    for name in [*first, *(n for n in second if n not in first)]:
        unit, a = first.get(name, ("", None))
        _, b = second.get(name, ("", None))
        same = other.get("units", one["units"])  # a control's part has the texts of its card
        paired = a is not None and b is not None and one["units"][unit] == same[unit]
        paired = paired and len(a.replicates) and a.replicates.shape == b.replicates.shape
        lines.append(Line(name, a, b, a - b if paired else None))
    return lines


def _numbers(card: Mapping[str, Any]) -> dict[str, tuple[str, Estimate]]:
    """Measure -> (the unit that its intervals resample, its estimate), of those that two models can share."""
    found = {
        f"attention to {label}": ("segments", card["to"][kind])
        for kind, label in (("cls", "[CLS]"), ("sep", "[SEP]"), ("stop", ". and ,"))
    }
    found["entropy, of even attention's"] = ("segments", card["breadth"])
    for name in TYPES:
        found[f"{name.replace('_', ' & ')} heads, by rule"] = ("segments", card["rule_shares"][name])
    if card["closeness"]:
        found["divergence within layers ÷ between"] = ("segments", card["closeness"]["ratio"])
    for name, row in card["relations"].items():
        found[f"best head: {name}"] = ("sentences", row["held_out"])
    for name, row in card["coreference"].items():
        found[f"coreference: {name}"] = ("mentions", row["held_out"])
    return {name: (unit, Estimate.from_record(estimate)) for name, (unit, estimate) in found.items()}


def summary(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A card (:func:`card`, fresh or recorded) in words and numbers, one row a finding."""
    model, units = card["model"], card["units"]
    count, total, called = len(card["specialists"]), model["layers"] * model["heads"], group_names(card["fits"])
    by_role: dict[str, list[str]] = {}
    for s in card["specialists"]:
        by_role.setdefault(s["role"], []).append(f"{s['layer'] + 1}-{s['head'] + 1}")
    rows = {
        "model": f"{model['name']}: {model['family']}, {model['layers']} × {model['heads']} heads, "
        f"{model['parameters'] / 1e6:.1f} M parameters, up to {model['max_length']} tokens",
        "measured on": f"{units['segments']} segments ({units['tokens']:,} tokens), {units['sentences']} sentences, "
        f"{units['mentions']} mentions",
        "specialists": "; ".join(
            [
                f"{count} of {total} heads",
                *(f"{role}: {_listed(names)}" for role, names in sorted(by_role.items(), key=lambda r: -len(r[1]))),
            ]
        ),
        "sink": _sink(card),
        "entropy": f"{_per_cent(card['breadth'])} of even attention's",
        "types": "; ".join(f"{called[name]} {_per_cent(share)}" for name, share in card["type_shares"].items()),
    }
    if "all" in card["relations"]:
        beaten = [n for n, r in card["relations"].items() if n != "all" and r["p"] < 0.05]
        rows["relations"] = (
            f"a head beats the best fixed offset (p < 0.05) for {len(beaten)} of {len(card['relations']) - 1}"
            + (f": {', '.join(beaten)}" if beaten else "")
        )
    if "all" in card["coreference"]:
        best = card["coreference"]["all"]
        rows["coreference"] = (
            f"head {best['layer'] + 1}-{best['head'] + 1}: {_per_cent(best['held_out'])}; "
            f"four-sieve rules: {_per_cent(best['rules'])}; nearest mention: {_per_cent(best['nearest'])}"
        )
    if near := card["closeness"]:
        rows["heads of one layer"] = (
            f"{_times(near['ratio'])} as far apart as heads of different layers (p = {near['p']:.4f}); "
            f"the nearest head is of the same layer for {near['nearest']:.0%} (chance {near['nearest_by_chance']:.0%})"
        )
    return [*rows.items(), *((f"no {part}", reason) for part, reason in card["missing"].items())]


def _sink(card: Mapping[str, Any]) -> str:
    if card["sink"] is None:
        return "none: neither [CLS] nor [SEP] gets three times its even share"
    kind = card["sink"]["kind"]
    return f"[{kind.upper()}]: {_per_cent(card['to'][kind])} of all attention, {_times(card['sink']['multiple'])} its even share"


def _listed(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _per_cent(record: Estimate | Mapping[str, Any]) -> str:
    return f"{percent(record, '.1f')} %"


def _times(record: Estimate | Mapping[str, Any]) -> str:
    return f"{Estimate.from_record(record):.2f} times"
