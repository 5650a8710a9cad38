"""Chapter 02: where heads look when one knows nothing about language.

Position (previous, same, next token), special tokens and punctuation, entropy: everything of Clark et al.
2019, section 3, for all heads in one pass over a corpus.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from helpers.corpora.readers import Segment, sentences
from helpers.corpora.sources import CorpusError
from helpers.engine import attention, controls
from helpers.engine.encoders import Encoder
from helpers.engine.estimates import Additive, Estimate, StreamingMean
from helpers.engine.tokens import Batch, Batches

STATISTICS = ("previous", "self", "next", "cls", "sep", "stop", "other", "sep_from_sep", "sep_from_other")
STATISTICS += ("cls_from_cls", "entropy", "entropy_from_cls", "peak")
"""Every statistic is a mean over the attending (query) tokens of all segments, special tokens included.

Attention to the previous token, the same token, the next token; to [CLS], to all [SEP], to all full stops and commas, to
everything else; to all [SEP] when the attending token is [SEP], when it is another; to [CLS] when it is [CLS]. Entropy in
nats, over all attending tokens, and of [CLS] only. The largest weight in a row.
"""

BACKGROUND = ("uniform", "uniform_from_cls", "chance_cls", "chance_sep", "chance_stop")
"""What the same means would be for a head without preferences, that looks everywhere alike: its entropy, ln(tokens), over all
attending tokens and from [CLS] only, and what it would give to [CLS], [SEP], full stops and commas. One number each."""

SPECIALIST_SHARE = 0.5  # Clark et al. 2019, section 3.1: "more than half of its attention"
BROAD_SHARE = 0.9  # of the uniform entropy
ROLES = ("previous", "self", "next", "cls", "sep", "stop")


@dataclass(frozen=True)
class SurfacePatterns:
    """Statistics of every head, each an :class:`Estimate` of shape (layer, head).

    Attributes:
        all: over the whole corpus, (layer, head, statistic).
        halves: over the articles with even and with odd numbers, to choose heads on one and score on the other.
        background: over the whole corpus, (statistic,).
        segments, tokens, truncated: how many were measured; how many segments were cut to fit.
    """

    all: Estimate
    halves: tuple[Estimate, Estimate]
    background: Estimate
    segments: int
    tokens: int
    truncated: int = 0

    def __getitem__(self, statistic: str) -> Estimate:
        """One statistic over the whole corpus: (layer, head), or () for those of ``BACKGROUND``."""
        if statistic in BACKGROUND:
            return self.background[BACKGROUND.index(statistic)]
        return self.all[..., STATISTICS.index(statistic)]

    def half(self, number: int, statistic: str) -> Estimate:
        """One statistic over one half of the articles, (layer, head)."""
        return self.halves[number][..., STATISTICS.index(statistic)]


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


MOST_TOKENS = 128  # Clark et al. 2019, section 3


def measure(
    encoder: Encoder, segments: Sequence[Segment], *, seed: int = 0, shuffled: bool = False, batch_size: int = 16
) -> SurfacePatterns:
    """All statistics of every head over segments of at most 128 tokens, in one pass, with a progress bar.

    Args:
        seed: of the bootstrap over documents.
        shuffled: of the control whose scores are shuffled (:mod:`helpers.engine.controls`).
    """
    accumulator = Accumulator(encoder, [s.document for s in segments], seed=seed)
    told = {"what": f"{len(segments)} segments", "most": MOST_TOKENS, "batch_size": batch_size}
    observer = controls.Shuffled(accumulator, seed) if shuffled else accumulator
    truncated = attention.accumulate(encoder, [s.texts for s in segments], observer, **told)
    return replace(accumulator.result(), truncated=truncated)


class Accumulator(Additive):
    """Sums of the chapter's statistics; an observer for :func:`helpers.engine.attention.sweep`.

    Args:
        documents: for each input, the number of its document (the unit of the bootstrap and of the halves).
    """

    ADDED = ("halves", "background", "segments", "tokens")
    PER_INPUT = ("documents",)

    def __init__(self, encoder: Encoder, documents: list[int], *, seed: int = 0) -> None:
        self.documents = documents
        shape, counts = (encoder.layers, encoder.heads, len(STATISTICS)), (encoder.layers, 1, len(STATISTICS))
        self.halves = tuple(StreamingMean(shape, denominators=counts, seed=seed) for _ in range(2))
        self.background = StreamingMean((len(BACKGROUND),), seed=seed)
        self.segments = self.tokens = 0

    def __call__(self, batch: Batch, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        if layer == 0:
            self._queries = _Queries.of(batch)
        queries = self._queries
        parts = (probabilities, queries.kinds, queries.weights)
        size = ROWS_AT_A_TIME if probabilities.device.type == "cpu" else len(probabilities)
        sums = torch.cat([_sums(*rows) for rows in zip(*(part.split(size) for part in parts), strict=True)])
        sums = sums.double().cpu().numpy()
        documents = np.array([self.documents[i] for i in batch.index])
        if layer == 0:
            self.segments += len(documents)
            self.tokens += int(batch.lengths.sum())
            self.background.add(documents.tolist(), *queries.background)
        for number, half in enumerate(self.halves):
            rows = documents % 2 == number
            if rows.any():
                half.add(documents[rows].tolist(), sums[rows], queries.counts[rows, None], at=(layer,))

    def result(self) -> SurfacePatterns:
        both = self.halves[0].empty()
        for half in self.halves:
            both.absorb(half)
        halves = tuple(half.estimate() for half in self.halves)
        return SurfacePatterns(both.estimate(), halves, self.background.estimate(), self.segments, self.tokens)


@dataclass(frozen=True, eq=False)
class _Queries:
    """What a batch's tokens weigh in each statistic; the same for all layers and heads.

    Attributes:
        kinds: [batch, key, 3], 1 where the key is [CLS], [SEP], a full stop or comma.
        weights: [batch, 4, query], 1 where the query is real, [SEP], real but not [SEP], [CLS].
        counts: [batch, statistic], the denominators.
    """

    kinds: Float[Tensor, "batch key 3"]
    weights: Float[Tensor, "batch 4 query"]
    counts: NDArray[np.float64]

    @classmethod
    def of(cls, batch: Batch) -> "_Queries":
        kinds = torch.stack([batch.cls, batch.sep, batch.stop], dim=-1).float()
        weights = torch.stack([batch.mask, batch.sep, batch.mask & ~batch.sep, batch.cls], dim=1).float()
        real, sep, other, from_cls = weights.sum(-1).double().cpu().numpy().T
        counted = {"previous": real - 1, "next": real - 1, "sep_from_sep": sep, "sep_from_other": other}
        counted |= {"cls_from_cls": from_cls, "entropy_from_cls": from_cls}
        counts = np.stack([counted.get(name, real) for name in STATISTICS], axis=-1)
        return cls(kinds, weights, counts)

    @property
    def background(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Numerators and denominators of the ``BACKGROUND`` statistics, each [batch, statistic]."""
        real, _, _, from_cls = self.weights.sum(-1).double().cpu().numpy().T
        sums = [real * np.log(real), from_cls * np.log(real), *self.kinds.sum(1).double().cpu().numpy().T]
        return np.stack(sums, axis=-1), np.stack([real, from_cls, real, real, real], axis=-1)


ROWS_AT_A_TIME = 2  # segments whose maps, and what is computed from them, stay in a processor's cache


def _sums(
    probabilities: Float[Tensor, "batch head query key"],
    kinds: Float[Tensor, "batch key 3"],
    weights: Float[Tensor, "batch 4 query"],
) -> Float[Tensor, "batch head statistic"]:
    """Numerators of all statistics: sums over the attending tokens of each segment."""
    real = weights[:, None, 0]
    previous, same, following = (
        (probabilities.diagonal(offset, -2, -1) * real[..., abs(offset) :]).sum(-1) for offset in (-1, 0, 1)
    )
    to_kind = probabilities @ kinds[:, None].to(probabilities.dtype)
    tiny = torch.finfo(probabilities.dtype).tiny
    entropy = -torch.linalg.vecdot(probabilities, probabilities.clamp_min(tiny).log_())
    per_query = torch.cat([to_kind, entropy[..., None], probabilities.amax(-1, keepdim=True)], dim=-1)
    # [batch, head, 4 kinds of query, 5 measures]
    from_all, sep, other, from_cls = (weights[:, None].to(per_query.dtype) @ per_query).unbind(-2)
    to_cls, to_sep, to_stop, total_entropy, peak = from_all.unbind(-1)
    rest = real.sum(-1) - to_cls - to_sep - to_stop
    sums = [previous, same, following, to_cls, to_sep, to_stop, rest, sep[..., 1], other[..., 1], from_cls[..., 0]]
    return torch.stack([*sums, total_entropy, from_cls[..., 3], peak], dim=-1)  # in the order of STATISTICS


def specialists(patterns: SurfacePatterns) -> list[Specialist]:
    """Heads that give more than half of their attention to one place, or nearly the same to all.

    The rule looks at the even articles only: the largest of attention to the previous, same or next token, to
    ``[CLS]``, ``[SEP]``, or full stops and commas, if above 50 %; else ``broad`` if the entropy is at least 90 % of
    the uniform one. What the book reports for each is its estimate on the odd articles.
    """
    chosen_on, scored_on = 0, 1
    shares = np.stack([patterns.half(chosen_on, role).value for role in ROLES])
    breadth = relative_entropy(patterns, chosen_on).value
    found = []
    for layer, head in np.ndindex(shares.shape[1:]):
        best = int(shares[:, layer, head].argmax())
        if shares[best, layer, head] > SPECIALIST_SHARE:
            role, chosen = ROLES[best], shares[best, layer, head]
            held_out = patterns.half(scored_on, role)[layer, head]
        elif breadth[layer, head] >= BROAD_SHARE:
            role, chosen = "broad", breadth[layer, head]
            held_out = relative_entropy(patterns, scored_on)[layer, head]
        else:
            continue
        found.append(Specialist(layer, head, role, float(chosen), held_out))
    return found


def relative_entropy(patterns: SurfacePatterns, half: int | None = None) -> Estimate:
    """Entropy as a share of the uniform one, (layer, head): 1 is a head that looks everywhere alike.

    The two are paired over all articles; a half is compared with the uniform entropy of all.
    """
    uniform = patterns["uniform"]
    if half is None:
        return patterns["entropy"] / Estimate.of(uniform.value, uniform.replicates[:, None, None])
    entropy = patterns.half(half, "entropy")
    return entropy.map(lambda x: x / uniform.value)


def examples(patterns: SurfacePatterns) -> dict[str, tuple[int, int]]:
    """The clearest head of each kind in Clark et al. 2019, Figure 1, by the statistics alone, (layer, head) from 0.

    Broad: largest entropy; position: most attention to the next or to the previous token; sink: most attention
    to the special token that gets more for its number; punctuation: most attention to full stops and commas.
    """
    position = max(("next", "previous"), key=lambda name: patterns[name].value.max())
    sink = max(("cls", "sep"), key=lambda name: patterns[name].value.mean() / patterns[f"chance_{name}"].value)
    statistics = {"broad": "entropy", position: position, sink: sink, "stop": "stop"}
    heads = patterns.all.value.shape[1]
    return {role: divmod(int(patterns[name].value.argmax()), heads) for role, name in statistics.items()}


def short_sentence(segments: Sequence[Segment], *, words: int = 14) -> str:
    """The first sentence of the segments with a comma and about this many words, or without one where none has any."""
    found = [s.first[a:b].strip() for s in segments for a, b in sentences(s.first)]
    return min([f for f in found if "," in f] or found, key=lambda f: abs(len(f.split()) - words))


MOST_DRAWN = 40  # tokens that a line diagram and the interactive view have room for


def drawable(encoder: Encoder, segments: Sequence[Segment]) -> tuple[Batch, str]:
    """A short sentence of the segments as a batch of one, cut where it is too long to be drawn, and a word on that."""
    room = min(MOST_DRAWN, encoder.max_length)
    batches = Batches(encoder, [short_sentence(segments)], max_length=room, overlong="truncate")
    batch = next(iter(batches))
    return batch, f"The first {room} tokens of a longer sentence are shown." if batches.truncated else ""


def refuse_few(segments: Sequence[Segment]) -> None:
    """Make sure that there are articles with even and with odd numbers: heads are chosen on the one half and scored on the other.

    Raises:
        CorpusError: when all are from one half.
    """
    if {s.document % 2 for s in segments} != {0, 1}:
        said = "They are all from one half of the articles: heads are chosen on one and scored on the other."
        raise CorpusError(f"{len(segments)} segments", None, said, "more segments, or a text of several articles.")


BY_LAYER = ("sep_from_sep", "cls_from_cls", "entropy", "entropy_from_cls")


def summary(patterns: SurfacePatterns) -> dict[str, Any]:
    """The numbers that stand beside the paper's: specialists by role, the sink, entropies."""
    found = specialists(patterns)
    return {
        "layers": patterns.all.value.shape[0],
        "heads": patterns.all.value.shape[1],
        "segments": patterns.segments,
        "tokens": patterns.tokens,
        "specialists": [vars(s) for s in found],
        **{f"to_{kind}": patterns[kind].mean((-2, -1)) for kind in ("cls", "sep", "stop")},
        "chance": {name: float(patterns[f"chance_{name}"].value) for name in ("cls", "sep", "stop")},
        **{f"to_{kind}_by_layer": patterns[kind].mean() for kind in ("cls", "sep")},
        **{f"{name}_by_layer": patterns[name].mean() for name in BY_LAYER},
        "cls_narrower_by_layer": (patterns["entropy"] - patterns["entropy_from_cls"]).mean(),
        **{name: float(patterns[name].value) for name in ("uniform", "uniform_from_cls")},
        "largest_peak_of_broad": float(
            max((patterns["peak"].value[s.layer, s.head] for s in found if s.role == "broad"), default=0.0)
        ),
    }


SINK_FACTOR = 3.0  # times what even attention would give, on average over all heads


def sink_of(summary: Mapping[str, Any]) -> tuple[str, float] | None:
    """The special token that draws most attention for its number, and how many times its even share it gets.

    Returns:
        ``("cls" or "sep", multiple)`` from a fresh or recorded :func:`summary`; None if neither gets three times
        its even share. Some models have several tokens in the role of ``[SEP]``, hence the multiple.
    """
    chance = {kind: summary["chance"][kind] for kind in ("cls", "sep")}
    gain = {kind: float(Estimate.from_record(summary[f"to_{kind}"]).value) / even for kind, even in chance.items()}
    best = max(gain, key=gain.__getitem__)
    return (best, gain[best]) if gain[best] >= SINK_FACTOR else None


def as_dict(patterns: SurfacePatterns) -> dict[str, Estimate]:
    """Every statistic of every head, for recording."""
    return {name: patterns[name] for name in (*STATISTICS, *BACKGROUND)}
