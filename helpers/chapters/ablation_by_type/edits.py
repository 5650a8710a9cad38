"""What is done to which heads: four editors, the rows of the paper's tables, and what they are compared with."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from helpers import attention
from helpers.plots import LABELS
from helpers.tokens import Batch

Maps = Float[Tensor, "batch head query key"]
Pairs = Bool[Tensor, "batch query key"]

TYPES = ("dense", "diagonal", "dense_vertical", "vertical")
"""The four types of chapter 08."""

ACTIONS = ("keep", "prune", "substitute", "no_intra", "no_inter")
"""What can be done to a head: nothing; all weights to 0; all to 1/n; those inside, or those between, sentences to 0."""


@dataclass(frozen=True)
class Row:
    """A row of one of the paper's tables.

    Attributes:
        id: the paper's number.
        part: ``prune``, ``substitute``, ``one type``, ``all but diagonal`` or ``all but dense_vertical``.
        actions: type -> what is done to its heads, from :data:`ACTIONS`; a type that is not named is kept.
    """

    id: int
    part: str
    actions: Mapping[str, str]

    def label(self, called: Mapping[str, str] = LABELS) -> str:
        """What is done, in a few words; ``called``: type -> what its group is called (:func:`helpers.plots.group_names`)."""
        done = set(self.actions.values())
        kept = [name for name in TYPES if name not in self.actions]
        whom = ", ".join(map(called.__getitem__, self.actions))
        return f"{whom if len(self.actions) < 3 else f'all but {called[kept[0]]}'}: {ACTION_LABELS[done.pop()]}"

    @property
    def shade(self) -> str:
        """The type whose colour the row has: the one that is left alone, if only one is, else the first that is edited."""
        kept = [name for name in TYPES if name not in self.actions]
        return kept[0] if len(kept) == 1 else next(iter(self.actions))


ACTION_LABELS = dict(zip(ACTIONS, ("as it is", "pruned", "1/n", "no intra", "no inter"), strict=True))


def _all_but(kept: str, action: str) -> dict[str, str]:
    return {name: action for name in TYPES if name != kept}


TABLE2 = (
    Row(2, "prune", {"dense": "prune"}),
    Row(3, "prune", {"diagonal": "prune"}),
    Row(4, "prune", {"dense_vertical": "prune"}),
    Row(5, "prune", {"vertical": "prune"}),
    Row(6, "prune", {"dense": "prune", "vertical": "prune"}),
    Row(7, "prune", {"dense_vertical": "prune", "vertical": "prune"}),
    Row(8, "substitute", {"dense": "substitute"}),
    Row(9, "substitute", {"diagonal": "substitute"}),
    Row(10, "substitute", {"dense_vertical": "substitute"}),
    Row(11, "substitute", {"vertical": "substitute"}),
)
TABLE3 = (
    Row(12, "one type", {"diagonal": "no_intra"}),
    Row(13, "one type", {"diagonal": "no_inter"}),
    Row(14, "one type", {"dense_vertical": "no_intra"}),
    Row(15, "one type", {"dense_vertical": "no_inter"}),
    Row(16, "all but diagonal", _all_but("diagonal", "no_intra")),
    Row(17, "all but diagonal", _all_but("diagonal", "no_inter")),
    Row(18, "all but dense_vertical", _all_but("dense_vertical", "no_intra")),
    Row(19, "all but dense_vertical", _all_but("dense_vertical", "no_inter")),
)
ROWS = {row.id: row for row in (*TABLE2, *TABLE3)}
"""Rows 2 to 19 of the paper; row 1 is the model as it is."""


@dataclass(frozen=True, eq=False)
class Ablation:
    """What is done to each head of an encoder.

    Attributes:
        actions: [layer, head], from :data:`ACTIONS`.
        span: what counts as a sentence: ``sentence``, or ``text`` for the whole question and the whole passage.
        special: special tokens belong to no sentence and weights from and to them are ``kept``; or each stands
            ``apart`` as a sentence of its own, so that its weight on itself is intra and all others are inter.
        renormalise: divide rows that have lost weights inside or between sentences by their sum.
    """

    actions: np.ndarray
    span: str = "sentence"
    special: str = "kept"
    renormalise: bool = False

    def __post_init__(self) -> None:
        if unknown := set(self.actions.flat) - set(ACTIONS):
            raise ValueError(f"Unknown actions {', '.join(sorted(unknown))}; there are {', '.join(ACTIONS)}.")
        if self.span not in ("sentence", "text"):
            raise ValueError(f"span={self.span!r}: say 'sentence' or 'text'.")
        if self.special not in ("kept", "apart"):
            raise ValueError(f"special={self.special!r}: say 'kept' or 'apart'.")

    @property
    def size(self) -> int:
        """Number of heads that are edited."""
        return int((self.actions != "keep").sum())

    def step(self, layer: int) -> tuple | None:
        """What is done at a layer, equal where two ablations do the same; None where nothing is done."""
        actions = tuple(self.actions[layer].tolist())
        reads = any(action.startswith("no_") for action in actions)
        options = (self.span, self.special, self.renormalise) if reads else ()
        return (actions, *options) if set(actions) != {"keep"} else None


def ablation(names: np.ndarray, actions: Mapping[str, str], **options: Any) -> Ablation:
    """The same action for all heads of a type.

    Args:
        names: [layer, head], the type of each head.
        actions: type -> action; types that are not named are kept.
        options: see :class:`Ablation`.

    Raises:
        ValueError: for a type that is none of the four, or an unknown action.
    """
    if unknown := set(actions) - set(TYPES):
        raise ValueError(f"Unknown types {', '.join(sorted(unknown))}; there are {', '.join(TYPES)}.")
    done = np.vectorize(lambda name: actions.get(name, "keep"), otypes=[str])(names)
    return Ablation(done, **options)


def substituted(probabilities: Maps, mask: Bool[Tensor, "batch key"]) -> Maps:
    """The same weight, 1/n, for each of an input's n real tokens, special ones included; 0 for padding."""
    even = mask.to(probabilities.dtype) / mask.sum(-1, keepdim=True)
    return even[:, None, None].expand_as(probabilities)


def relations(batch: Batch, *, span: str = "sentence", special: str = "kept") -> tuple[Pairs, Pairs]:
    """Which pairs of tokens stand in one sentence (intra) and which in two (inter).

    With ``special="kept"`` a pair with a special token is neither; with ``apart`` each special token is a sentence of its
    own. Pairs with padding are neither.
    """
    place = batch.sentence if span == "sentence" else batch.text
    real = batch.mask & ~batch.special
    if special == "apart":
        numbers = torch.arange(2, 2 + batch.mask.shape[1], device=place.device)
        place, real = torch.where(batch.special, -numbers, place), batch.mask
    both = real[:, :, None] & real[:, None, :]
    same = place[:, :, None] == place[:, None, :]
    return both & same, both & ~same


def without(probabilities: Maps, pairs: Pairs, renormalise: bool = False) -> Maps:
    """Attention with the weights of some pairs of tokens set to 0; a row that keeps nothing stays 0."""
    left = probabilities.masked_fill(pairs[:, None], 0.0)
    if not renormalise:
        return left
    return left / left.sum(-1, keepdim=True).clamp_min(torch.finfo(left.dtype).tiny)


def editor(ablation: Ablation, batch: Batch) -> attention.Editor:
    """The ablation as an editor for one batch: each head of a layer is changed as ``ablation.actions`` says."""
    intra, inter = relations(batch, span=ablation.span, special=ablation.special)
    change: dict[str, Callable[[Tensor], Tensor]] = {
        "prune": torch.zeros_like,
        "substitute": lambda p: substituted(p, batch.mask),
        "no_intra": lambda p: without(p, intra, ablation.renormalise),
        "no_inter": lambda p: without(p, inter, ablation.renormalise),
    }

    def edit(layer: int, probabilities: Tensor) -> Tensor:
        actions = set(ablation.actions[layer]) - {"keep"}
        edited = probabilities.clone() if actions else probabilities
        for action in actions:
            heads = np.flatnonzero(ablation.actions[layer] == action)
            edited[:, heads] = change[action](probabilities[:, heads])
        return edited

    return edit


def deal(names: np.ndarray, draw: int, *, seed: int = 0) -> np.ndarray:
    """The types shuffled among the heads of each layer: (layer, head).

    As many heads of each type in each layer as before, so a row of the tables edits as many heads in the same layers.
    Where a layer has one type only, nothing changes.
    """
    rng = np.random.default_rng([seed, draw])
    return np.stack([rng.permutation(layer) for layer in np.asarray(names)])


def table(names: np.ndarray, rows: Iterable[int] = tuple(ROWS), **options: Any) -> dict[str, Ablation]:
    """Rows of the paper's tables, ``"2"`` to ``"19"``. Options as in :class:`Ablation`."""
    return {str(n): ablation(names, ROWS[n].actions, **options) for n in rows}


def controls(names: np.ndarray, draws: Mapping[int, int], *, seed: int = 0, label: str = "") -> dict[str, Ablation]:
    """Rows of the tables for several deals (:func:`deal`): ``"4 dealt 0"``, …; every row sees the same deals.

    Args:
        draws: row -> number of deals.
        label: what a row is called besides its number, such as ``tuned``: ``"4 tuned dealt 0"``.
    """
    dealt = [deal(names, draw, seed=seed) for draw in range(max(draws.values(), default=0))]
    titles = {row: f"{row} {label}".strip() for row in draws}
    return {
        f"{titles[row]} dealt {draw}": ablation(dealt[draw], ROWS[row].actions)
        for row, count in draws.items()
        for draw in range(count)
    }


VARIANTS = {"renormalised": {"renormalise": True}, "apart": {"special": "apart"}, "text": {"span": "text"}}
"""Other readings of "removing attention inside, or between, sentences"."""


def variants(names: np.ndarray) -> dict[str, Ablation]:
    """The rows of Table 3 under each of :data:`VARIANTS`: ``"12 renormalised"``, …"""
    rows = [row.id for row in TABLE3]
    readings = {name: table(names, rows, **options) for name, options in VARIANTS.items()}
    return {f"{row} {name}": one for name, found in readings.items() for row, one in found.items()}


SINGLE = (2, 3, 4, 5, 12, 13, 14, 15)
"""Rows that edit one type only, but for substitution."""


def retyped(names: np.ndarray) -> dict[str, Ablation]:
    """The rows of :data:`SINGLE` under other types of the same heads: ``"2 tuned"``, …"""
    return {f"{row} tuned": one for row, one in table(names, SINGLE).items()}


def prune(chosen: Bool[np.ndarray, "layer head"]) -> Ablation:
    """The heads of a set pruned, whatever their types."""
    return Ablation(np.where(chosen, "prune", "keep"))


@dataclass(frozen=True, eq=False)
class Core:
    """The heads that are of one type in one sorting and of another type, or the same, in a second sorting.

    Attributes:
        first, second: the types, from :data:`TYPES`.
        own, again: [layer, head], true at the heads of the first type in the first sorting, of the second in the second.
    """

    first: str
    second: str
    own: Bool[np.ndarray, "layer head"]
    again: Bool[np.ndarray, "layer head"]

    @classmethod
    def of(cls, names: np.ndarray, again: np.ndarray, first: str, second: str) -> "Core":
        """From the types of both sortings."""
        return cls(first, second, names == first, again == second)

    @property
    def both(self) -> Bool[np.ndarray, "layer head"]:
        """The heads themselves."""
        return self.own & self.again

    @property
    def sets(self) -> dict[str, Bool[np.ndarray, "layer head"]]:
        """What is pruned: ``core``, these heads; ``rest``, the others of the first sorting's type; ``others``, those of the second's; ``alone``, all but these."""
        both = self.both
        return {"core": both, "rest": self.own & ~both, "others": self.again & ~both, "alone": ~both}

    def plans(self) -> dict[str, Ablation]:
        """:attr:`sets`, each pruned."""
        return {name: prune(chosen) for name, chosen in self.sets.items()}

    def controls(self, draws: int, *, seed: int = 0) -> dict[str, Ablation]:
        """As many heads of the same layers, dealt by chance: ``"core dealt 0"``, …"""
        return {f"core dealt {draw}": prune(deal(self.both, draw, seed=seed)) for draw in range(draws)}


def floors(shape: tuple[int, int]) -> dict[str, Ablation]:
    """Every head pruned (no token sees another), and every head even: ``"all prune"`` and ``"all substitute"``."""
    return {f"all {action}": Ablation(np.full(shape, action)) for action in ("prune", "substitute")}


def ladder(shape: tuple[int, int], sizes: Sequence[int], draws: int, *, seed: int = 0) -> dict[str, Ablation]:
    """Random heads from anywhere pruned, more and more of them in one random order: ``"any 12 0"`` (12 heads, draw 0)."""
    found = {}
    for draw in range(draws):
        rank = np.random.default_rng([seed, draw]).permutation(shape[0] * shape[1]).argsort().reshape(shape)
        found |= {f"any {size} {draw}": prune(rank < size) for size in sizes}
    return found
