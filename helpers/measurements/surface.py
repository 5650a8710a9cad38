"""Where heads look, by position, kind of token and entropy (Clark et al. 2019, sections 3.1 to 3.3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from helpers import stats
from helpers.corpora.readers import Segment
from helpers.corpora.sources import CorpusError
from helpers.heads import Head
from helpers.results import Recorded, Run
from helpers.stats import Estimate
from helpers.tokens import EncodedText

#: Means over the attending tokens of all texts, special tokens included, and the quantities under which they are recorded.
#:
#: Attention to the previous token, the same token, the next token; to [CLS], to all [SEP], to all full stops and commas, to
#: everything else; to all [SEP] when the attending token is [SEP], when it is another; to [CLS] when it is [CLS]. Entropy in
#: nats, over all attending tokens, and of [CLS] only. The largest weight in a row.
STATISTICS = {
    **{name: f"share_{name}" for name in ("previous", "self", "next", "cls", "sep")},
    "stop": "share_punctuation",
    **{name: f"share_{name}" for name in ("other", "sep_from_sep", "sep_from_other", "cls_from_cls")},
    **{name: name for name in ("entropy", "entropy_from_cls", "peak")},
}
#: What a head that attends evenly has instead: its entropy, over all attending tokens and from [CLS] only, and what it gives to
#: [CLS], [SEP], full stops and commas. One number each.
EVEN = {
    "uniform": "entropy",
    "uniform_from_cls": "entropy_from_cls",
    **{f"chance_{k}": k for k in ("cls", "sep", "stop")},
}
MOST_TOKENS = 128  # Clark et al. 2019, section 3
SPECIALIST_SHARE = 0.5  # section 3.1: "more than half of its attention"
BROAD_SHARE = 0.9  # of the uniform entropy
ROLES = ("previous", "self", "next", "cls", "sep", "stop")
SINK_FACTOR = 3.0  # times what even attention would give, on average over all heads
#: A head that gives less of its attention than this to the token itself gives it little; entropies that differ by no more than this
#: share of one of them are close.
LITTLE = 0.1


def look(
    maps: Float[Tensor, "layer head token token"], text: EncodedText
) -> dict[str, Float[Tensor, "2 layers head"]]:
    """Each statistic of one text as a sum over attending tokens and their number; below the last layer stands one that attends evenly."""
    n = len(text.tokens)
    maps = torch.cat([maps, torch.full_like(maps[:1], 1 / n)])
    kinds = {"cls": text.cls, "sep": text.sep, "stop": text.stop}
    cls, sep, stop = (kind.to(maps.dtype) for kind in kinds.values())
    to_cls, to_sep, to_stop = (maps @ kind for kind in (cls, sep, stop))
    entropy = torch.special.entr(maps).sum(-1)
    values = {"cls": to_cls, "sep": to_sep, "stop": to_stop, "other": 1 - to_cls - to_sep - to_stop}
    values |= {"entropy": entropy, "peak": maps.amax(-1)}
    totals = {name: (value.sum(-1), n) for name, value in values.items()}
    for name, offset in {"previous": -1, "self": 0, "next": 1}.items():
        totals[name] = maps.diagonal(offset, -2, -1).sum(-1), n - abs(offset)
    totals["sep_from_sep"] = to_sep @ sep, sep.sum()
    totals["sep_from_other"] = to_sep @ (1 - sep), n - sep.sum()
    totals["cls_from_cls"] = to_cls @ cls, cls.sum()
    totals["entropy_from_cls"] = entropy @ cls, cls.sum()
    return {name: torch.stack([sums, torch.full_like(sums, count)]) for name, (sums, count) in totals.items()}


@dataclass(frozen=True)
class SurfacePatterns:
    """Statistics of every head, each an :class:`Estimate` of shape [layer, head].

    Attributes:
        all: statistic -> estimate over the whole corpus, with the layer that attends evenly as the last.
        halves: the same over the articles with even and with odd numbers, to choose heads on one and score on the other.
        tokens: how many were measured.
    """

    all: Mapping[str, Estimate]
    halves: tuple[Mapping[str, Estimate], Mapping[str, Estimate]]
    tokens: int

    def __getitem__(self, statistic: str) -> Estimate:
        """One statistic over the whole corpus: [layer, head], or one number for those of :data:`EVEN`."""
        return self.all[EVEN[statistic]][-1, 0] if statistic in EVEN else self.all[statistic][:-1]

    def half(self, number: int, statistic: str) -> Estimate:
        """One statistic over one half of the articles."""
        return self.halves[number][statistic][:-1]


def patterns(sums: Sequence[Mapping[str, Any]], segments: Sequence[Segment], *, seed: int = 0) -> SurfacePatterns:
    """What :func:`look` found of each segment, with intervals over documents."""

    def means(halves: tuple[int, ...]) -> dict[str, Estimate]:
        kept = [n for n, segment in enumerate(segments) if segment.document % 2 in halves]
        by = [segments[n] for n in kept]
        return {name: stats.ratio([sums[n][name] for n in kept], by=by, seed=seed) for name in STATISTICS}

    tokens = sum(int(text["self"][1, 0, 0]) for text in sums)
    return SurfacePatterns(means((0, 1)), (means((0,)), means((1,))), tokens)


def specialists(patterns: SurfacePatterns) -> dict[Head, tuple[str, Estimate]]:
    """Heads that give more than half of their attention to one place, or nearly the same to all: what each does, and how much.

    The rule looks at the even articles only: the largest of attention to the previous, same or next token, to
    ``[CLS]``, ``[SEP]``, or full stops and commas, if above 50 %; else ``broad`` if the entropy is at least 90 % of
    the uniform one. What comes back for each is its estimate on the odd articles: a share of its attention, or of the uniform entropy.
    """
    shares = np.stack([patterns.half(0, role).value for role in ROLES])
    breadth = relative_entropy(patterns, 0).value
    listed = {}
    for head in map(Head.of, np.ndindex(breadth.shape)):
        role = ROLES[shares[:, *head].argmax()]
        if shares[:, *head].max() > SPECIALIST_SHARE:
            listed[head] = role, patterns.half(1, role)[head]
        elif breadth[head] >= BROAD_SHARE:
            listed[head] = "broad", relative_entropy(patterns, 1)[head]
    return listed


def relative_entropy(patterns: SurfacePatterns, half: int | None = None) -> Estimate:
    """Entropy as a share of the uniform one, [layer, head]; of a half of the articles as a share of the uniform entropy of all."""
    uniform = patterns["uniform"]
    if half is None:
        return patterns["entropy"] / uniform
    return patterns.half(half, "entropy").map(lambda x: x / uniform.value)


def record(run: Run, patterns: SurfacePatterns, network: str = "") -> None:
    """Put all statistics of a network into the table of chapter 02, and what the chapter's claims are about."""

    number = partial(run.number, network=network, n=patterns.tokens)
    for statistic, quantity in STATISTICS.items():
        number(quantity, patterns[statistic])
    for kind in ("cls", "sep", "stop"):
        number(STATISTICS[kind], patterns[kind].mean((-2, -1)))
    for statistic in ("cls", "sep", "entropy", "entropy_from_cls"):
        number(STATISTICS[statistic], patterns[statistic].mean(), axes=("layer",))
    number("entropy_even", patterns["uniform"])

    listed = specialists(patterns)
    scored = {"split": "one half of the articles", "against": ""}  # a random network's are other heads
    for head, (role, held_out) in listed.items():
        number("specialist", held_out, head=head, label=role, **scored)
    by_role = {role: [head for head, (own, _) in listed.items() if own == role] for role in (*ROLES, "broad")}
    for role, these in by_role.items():
        if these:
            best = max(these, key=lambda head: listed[head][1].value)
            number("best_specialist", listed[best][1], head=best, of=role, **scored)
    counts = {role: len(these) for role, these in by_role.items()}
    number("specialists", counts | {"cls, sep or stop": counts["cls"] + counts["sep"] + counts["stop"]})
    if by_role["broad"]:
        number("largest_peak_of_broad", max(patterns["peak"].value[head] for head in by_role["broad"]))
    number("little_on_self", (patterns["self"].value < LITTLE).mean())
    layers = len(patterns["self"].value)
    for kind in ("previous", "next"):
        deep = np.nonzero(patterns[kind].value > SPECIALIST_SHARE)[0]
        if len(deep):
            label = f"{', '.join(str(layer + 1) for layer in deep)} of {layers}"
            number("depth_over_half", deep.mean() / max(layers - 1, 1), of=kind, label=label)
    _record_sink(number, patterns)
    _record_cls(number, patterns)


def _record_sink(number: Callable[..., None], patterns: SurfacePatterns) -> None:
    for kind in ("cls", "sep"):
        number("times_even_share", times_even(patterns, kind), of=kind)
    sink = max(("cls", "sep"), key=lambda kind: times_even(patterns, kind).value)
    times, share = times_even(patterns, sink).value, patterns[sink].value.mean()
    words = f"[{sink.upper()}], {100 * share:.1f} %, {times:.0f} times its even share"
    number("sink", words if times >= SINK_FACTOR else "none")
    by_source = {"sep": patterns["sep"].mean(), "sep from sep": patterns["sep_from_sep"].mean()}
    for source, by_layer in by_source.items():
        number("most_in_a_layer", by_layer[int(by_layer.value.argmax())], of=source)
    kinds = {"[CLS]": "cls", "[SEP]": "sep", "stops": "stop"}
    most = {name: int(patterns[kind].value.mean(1).argmax()) + 1 for name, kind in kinds.items()}
    in_order = np.mean([earlier < other for earlier, other in combinations(most.values(), 2)])
    number("peaks_in_order", in_order, label=", ".join(f"{name} {layer}" for name, layer in most.items()))


def _record_cls(number: Callable[..., None], patterns: SurfacePatterns) -> None:
    """How broadly [CLS] looks in the last layer, and in those before."""
    of_all, of_cls = patterns["entropy"].mean(), patterns["entropy_from_cls"].mean()
    if len(of_all.value) == 1:
        return
    number("entropy_from_cls_last", of_cls[-1])
    number("entropy_from_cls_before_last", of_cls.value[:-1].mean())
    differences = (patterns["entropy"] - patterns["entropy_from_cls"]).mean()
    close = np.abs(differences.value[:-1]) <= LITTLE * np.abs(of_all.value[:-1])
    number("layers_cls_close", close.mean())
    number("cls_narrower", differences[int(differences.value[:-1].argmin())])


def times_even(patterns: SurfacePatterns, kind: str) -> Estimate:
    """What a kind of token gets of all attention, as a multiple of its even share."""
    even = patterns[f"chance_{kind}"].value
    return patterns[kind].mean((-2, -1)).map(lambda share: share / even)


def role_grid(recorded: Recorded) -> np.ndarray:
    """[layer, head]: the role of each specialist or broad head of a recorded run, and an empty string for all others."""
    grid = np.full(recorded.array("entropy").shape, "", dtype="U8")
    rows = recorded.rows("specialist")
    grid[rows.layer.astype(int) - 1, rows["head"].astype(int) - 1] = rows.label
    return grid


def refuse_few(segments: Sequence[Segment]) -> None:
    """Make sure that there are articles with even and with odd numbers: heads are chosen on the one half and scored on the other.

    Raises:
        CorpusError: when all are from one half.
    """
    if {s.document % 2 for s in segments} != {0, 1}:
        problem = "They are all from one half of the articles: heads are chosen on one and scored on the other."
        raise CorpusError(f"{len(segments)} segments", None, problem, "more segments, or a text of several articles.")
