"""Where heads look, by position, kind of token and entropy (Clark et al. 2019, sections 3.1 to 3.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from helpers import attention, stats
from helpers.corpora.readers import Segment, sentences
from helpers.corpora.sources import CorpusError
from helpers.encoders import Encoder
from helpers.stats import Estimate
from helpers.tokens import Batch, EncodedText, encode

STATISTICS = ("previous", "self", "next", "cls", "sep", "stop", "other", "sep_from_sep", "sep_from_other")
STATISTICS += ("cls_from_cls", "entropy", "entropy_from_cls", "peak")
"""Means over the attending tokens of all segments, special tokens included.

Attention to the previous token, the same token, the next token; to [CLS], to all [SEP], to all full stops and commas, to
everything else; to all [SEP] when the attending token is [SEP], when it is another; to [CLS] when it is [CLS]. Entropy in
nats, over all attending tokens, and of [CLS] only. The largest weight in a row.
"""
BACKGROUND = ("uniform", "uniform_from_cls", "chance_cls", "chance_sep", "chance_stop")
"""What the same means would be for a head that looks everywhere alike: its entropy, over all attending tokens and from [CLS] only,
and what it would give to [CLS], [SEP], full stops and commas. One number each."""
MOST_TOKENS = 128  # Clark et al. 2019, section 3
SPECIALIST_SHARE = 0.5  # section 3.1: "more than half of its attention"
BROAD_SHARE = 0.9  # of the uniform entropy
ROLES = ("previous", "self", "next", "cls", "sep", "stop")
SINK_FACTOR = 3.0  # times what even attention would give, on average over all heads


def look(maps: Float[Tensor, "layer head token token"], text: EncodedText) -> dict[str, Any]:
    """Sums over the attending tokens of one text, [layer, head, statistic]; how many tokens each is over; the same for even attention."""
    n, cls, sep = maps.shape[-1], text.cls.float(), text.sep.float()
    kinds = torch.stack([cls, sep, text.stop.float()], -1)
    entropy = -torch.linalg.vecdot(maps, maps.clamp_min(torch.finfo(maps.dtype).tiny).log_())
    to = torch.cat([maps @ kinds, entropy[..., None], maps.amax(-1, keepdim=True)], -1)  # [layer, head, query, 5]
    attending = torch.stack([torch.ones_like(cls), sep, 1 - sep, cls])
    every, from_sep, from_other, from_cls = (attending @ to).unbind(-2)
    position = [maps.diagonal(offset, -2, -1).sum(-1) for offset in (-1, 0, 1)]
    rest = n - every[..., :3].sum(-1)
    sums = [*position, *every[..., :3].unbind(-1), rest, from_sep[..., 1], from_other[..., 1], from_cls[..., 0]]
    seps, ones = float(sep.sum()), float(cls.sum())
    counts = {"previous": n - 1, "next": n - 1, "sep_from_sep": seps, "sep_from_other": n - seps}
    counts |= {"cls_from_cls": ones, "entropy_from_cls": ones}
    sums += [every[..., 3], from_cls[..., 3], every[..., 4]]  # in the order of STATISTICS
    return {
        "sums": torch.stack(sums, -1),
        "counts": np.array([counts.get(name, n) for name in STATISTICS], float),
        "even": np.array([n * np.log(n), ones * np.log(n), *kinds.sum(0).tolist()]),
        "even_counts": np.array([n, ones, n, n, n], float),
    }


@dataclass(frozen=True)
class SurfacePatterns:
    """Statistics of every head, each an :class:`Estimate` of shape [layer, head].

    Attributes:
        all: over the whole corpus, [layer, head, statistic].
        halves: over the articles with even and with odd numbers, to choose heads on one and score on the other.
        background: over the whole corpus, [statistic].
        segments, tokens: how many were measured.
    """

    all: Estimate
    halves: tuple[Estimate, Estimate]
    background: Estimate
    segments: int
    tokens: int

    def __getitem__(self, statistic: str) -> Estimate:
        """One statistic over the whole corpus: [layer, head], or one number for those of :data:`BACKGROUND`."""
        if statistic in BACKGROUND:
            return self.background[BACKGROUND.index(statistic)]
        return self.all[..., STATISTICS.index(statistic)]

    def half(self, number: int, statistic: str) -> Estimate:
        """One statistic over one half of the articles."""
        return self.halves[number][..., STATISTICS.index(statistic)]


def measure(encoder: Encoder, segments: Sequence[Segment], *, seed: int = 0, **options: Any) -> SurfacePatterns:
    """All statistics of every head over segments of at most :data:`MOST_TOKENS` tokens; options as in :func:`helpers.attention.measure`."""
    found = attention.measure(encoder, segments, look, longest=MOST_TOKENS, seed=seed, **options)
    return patterns(found, segments, seed=seed)


def patterns(found: Sequence[Mapping[str, Any]], segments: Sequence[Segment], *, seed: int = 0) -> SurfacePatterns:
    """What :func:`look` found of each segment, with intervals over documents."""

    def estimate(sums: str, counts: str, halves: tuple[int, ...] = (0, 1)) -> Estimate:
        kept = [(one, s) for one, s in zip(found, segments, strict=True) if s.document % 2 in halves]
        return stats.ratio(((one[sums], one[counts]) for one, _ in kept), [s for _, s in kept], seed=seed)

    whole, *halves = (estimate("sums", "counts", which) for which in ((0, 1), (0,), (1,)))
    tokens = int(sum(one["counts"][STATISTICS.index("self")] for one in found))
    return SurfacePatterns(whole, tuple(halves), estimate("even", "even_counts"), len(found), tokens)


@dataclass(frozen=True)
class Specialist:
    """A head that gives most of its attention to one place.

    ``chosen`` is the share in the half of the articles on which the head was picked, ``held_out`` its
    estimate in the other half. For ``broad`` heads both are shares of the uniform entropy.
    """

    layer: int
    head: int
    role: str
    chosen: float
    held_out: Estimate


def specialists(found: SurfacePatterns) -> list[Specialist]:
    """Heads that give more than half of their attention to one place, or nearly the same to all.

    The rule looks at the even articles only: the largest of attention to the previous, same or next token, to
    ``[CLS]``, ``[SEP]``, or full stops and commas, if above 50 %; else ``broad`` if the entropy is at least 90 % of
    the uniform one. What the book reports for each is its estimate on the odd articles.
    """
    shares = np.stack([found.half(0, role).value for role in ROLES])
    breadth = relative_entropy(found, 0).value
    listed = []
    for layer, head in np.ndindex(shares.shape[1:]):
        best = int(shares[:, layer, head].argmax())
        if shares[best, layer, head] > SPECIALIST_SHARE:
            role, chosen, held_out = ROLES[best], shares[best, layer, head], found.half(1, ROLES[best])
        elif breadth[layer, head] >= BROAD_SHARE:
            role, chosen, held_out = "broad", breadth[layer, head], relative_entropy(found, 1)
        else:
            continue
        listed.append(Specialist(layer, head, role, float(chosen), held_out[layer, head]))
    return listed


def relative_entropy(found: SurfacePatterns, half: int | None = None) -> Estimate:
    """Entropy as a share of the uniform one, [layer, head]; of a half of the articles as a share of the uniform entropy of all."""
    uniform = found["uniform"]
    if half is None:
        return found["entropy"] / uniform
    return found.half(half, "entropy").map(lambda x: x / uniform.value)


def summary(found: SurfacePatterns) -> dict[str, Any]:
    """The numbers that stand beside the paper's: specialists by role, the sink, entropies."""
    listed = specialists(found)
    peaks = [found["peak"].value[s.layer, s.head] for s in listed if s.role == "broad"]
    return {
        "layers": found.all.value.shape[0],
        "heads": found.all.value.shape[1],
        "segments": found.segments,
        "tokens": found.tokens,
        "specialists": [vars(s) for s in listed],
        **{f"to_{kind}": found[kind].mean((-2, -1)) for kind in ("cls", "sep", "stop")},
        "chance": {name: float(found[f"chance_{name}"].value) for name in ("cls", "sep", "stop")},
        **{f"to_{kind}_by_layer": found[kind].mean() for kind in ("cls", "sep")},
        **{f"{kind}_from_{kind}_by_layer": found[f"{kind}_from_{kind}"].mean() for kind in ("sep", "cls")},
        **{f"{name}_by_layer": found[name].mean() for name in ("entropy", "entropy_from_cls")},
        "cls_narrower_by_layer": (found["entropy"] - found["entropy_from_cls"]).mean(),
        **{name: float(found[name].value) for name in ("uniform", "uniform_from_cls")},
        "largest_peak_of_broad": float(max(peaks, default=0.0)),
    }


def as_dict(found: SurfacePatterns) -> dict[str, Estimate]:
    """Every statistic of every head, for recording."""
    return {name: found[name] for name in (*STATISTICS, *BACKGROUND)}


def refuse_few(segments: Sequence[Segment]) -> None:
    """Make sure that there are articles with even and with odd numbers: heads are chosen on the one half and scored on the other.

    Raises:
        CorpusError: when all are from one half.
    """
    if {s.document % 2 for s in segments} != {0, 1}:
        said = "They are all from one half of the articles: heads are chosen on one and scored on the other."
        raise CorpusError(f"{len(segments)} segments", None, said, "more segments, or a text of several articles.")


def short_sentence(segments: Sequence[Segment], *, words: int = 14) -> str:
    """The first sentence of the segments with a comma and about this many words, or without one where none has any."""
    found = [s.first[a:b].strip() for s in segments for a, b in sentences(s.first)]
    return min([f for f in found if "," in f] or found, key=lambda f: abs(len(f.split()) - words))


def drawable(encoder: Encoder, segments: Sequence[Segment], *, most: int = 40) -> tuple[Batch, str]:
    """A short sentence of the segments as a batch of one, cut where it is too long to be drawn, and a remark if it was."""
    room = min(most, encoder.max_length)
    batch = encode(encoder, [short_sentence(segments)], max_length=room, truncate=True)
    return batch, f"The first {room} tokens of a longer sentence are shown." if batch.cut[0] else ""
