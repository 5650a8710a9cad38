"""Whether heads with something in common lie closer together than chance would have it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray
from scipy.linalg import orth
from scipy.spatial.distance import squareform
from scipy.stats import rankdata

from helpers import stats
from helpers.chapters.divergence_map.measures import Divergences
from helpers.chapters.divergence_map.scaling import Map
from helpers.stats import Estimate


@dataclass(frozen=True, eq=False)
class Closeness:
    """Whether heads with the same label lie closer together than heads with different ones.

    Attributes:
        within, between: mean divergence of pairs with the same label, of pairs with different ones, with intervals
            over documents; ``ratio`` of the two.
        expected: mean of ``within`` over shuffled labels.
        p: share of shuffled labels with so small a ``within``.
        r: ANOSIM's R (Clarke 1993), the difference of their mean ranks, scaled to −1 … 1; 0 means no difference.
        nearest: share of heads whose nearest head has the same label; ``nearest_by_chance`` with labels shuffled.
    """

    within: Estimate
    between: Estimate
    ratio: Estimate
    expected: float
    p: float
    r: float
    nearest: float
    nearest_by_chance: float


def closeness(
    found: Divergences,
    labels: Int[np.ndarray, "head"],
    *,
    among: Int[np.ndarray, "head"] | None = None,
    permutations: int = 1999,
    seed: int = 0,
) -> Closeness:
    """Compare heads of one label with heads of different labels, by a permutation test over the labels.

    Args:
        labels: of each head; heads with a negative one are left out.
        among: shuffle labels only among heads with the same value, which asks for closeness beyond what that
            value explains.

    Raises:
        ValueError: if no two heads share a label, or all do.
    """
    labelled = labels >= 0
    same = squareform((labels[:, None] == labels) & labelled & labelled[:, None], checks=False)
    different = squareform((labels[:, None] != labels) & labelled & labelled[:, None], checks=False)
    if not (same.any() and different.any()):
        raise ValueError("There must be pairs of heads with the same label and pairs with different ones.")
    means = found.estimate(np.stack([same / same.sum(), different / different.sum()], axis=1), seed=seed)
    within, between = means[0], means[1]
    matrix, labels = found.mean()[np.ix_(labelled, labelled)], labels[labelled]
    shuffled = labels[shuffles(np.zeros_like(labels) if among is None else among[labelled], permutations, seed)]
    null = np.trace(block_sums(matrix, shuffled), axis1=1, axis2=2) / (2 * same.sum())
    nearest = (matrix + np.diag(np.full(len(matrix), np.inf))).argmin(1)
    ranks = rankdata(squareform(found.mean())[same | different])
    of_same = same[same | different]
    return Closeness(
        within=within,
        between=between,
        ratio=within / between,
        expected=float(null.mean()),
        p=_p(null, float(within.value)),
        r=float((ranks[~of_same].mean() - ranks[of_same].mean()) / (len(ranks) / 2)),
        nearest=float((labels == labels[nearest]).mean()),
        nearest_by_chance=float((shuffled == shuffled[:, nearest]).mean()),
    )


def shuffles(groups: Int[np.ndarray, "head"], permutations: int, seed: int) -> Int[np.ndarray, "permutation head"]:
    """Orders of the heads that exchange heads of one group only."""
    drawn = np.random.default_rng(seed).random((permutations, len(groups)))
    orders = np.empty(drawn.shape, np.int64)
    orders[:, np.argsort(groups, kind="stable")] = np.argsort(groups + drawn, axis=1)
    return orders


def block_sums(
    matrix: Float[np.ndarray, "head head"], labels: Int[np.ndarray, "permutation head"]
) -> Float[np.ndarray, "permutation label label"]:
    """Sums of the matrix over all heads of one label (rows) and all heads of another (columns)."""
    members = (labels == np.unique(labels)[:, None, None]).astype(np.float64)
    return np.einsum("aph,bph->pab", members @ matrix, members, optimize=True)


def _p(null: Float[np.ndarray, "permutation"], observed: float) -> float:
    """Share of permutations that reach a value as small as the observed one, itself counted (with room for rounding)."""
    return float((1 + (null <= observed * (1 + 1e-9)).sum()) / (1 + len(null)))


@dataclass(frozen=True, eq=False)
class Explained:
    """How much of the divergences, and of the closeness within layers, goes with properties that each head has on its own.

    Attributes:
        r2: share of the variance of all pairs that the properties explain.
        gap: pairs of one layer less pairs of different layers, mean divergence in nats.
        held: the same gap between pairs whose heads have the same properties: what belonging to one layer adds in the regression.
        left: ``held / gap``.
        p: share of shuffles with so small a ``held``: what the properties leave is shuffled among the heads.
        predicted: [pair], what the properties alone predict, in nats.
    """

    r2: Estimate
    gap: Estimate
    held: Estimate
    left: Estimate
    p: float
    predicted: Float[np.ndarray, "pair"]


def explained(
    found: Divergences,
    properties: Mapping[str, Float[np.ndarray, "head"]],
    *,
    permutations: int = 1999,
    seed: int = 0,
) -> Explained:
    """Regress the divergences of all pairs on properties of their two heads, with and without "both of one layer".

    Each property x enters as the sum, the absolute difference and the product of its two values. The intervals are over documents, with the properties as they are.
    """
    one, other = np.triu_indices(len(found.layer), 1)
    same = (found.layer[one] == found.layer[other]).astype(np.float64)
    columns = [np.ones_like(same)]
    for value in properties.values():
        columns += [value[one] + value[other], np.abs(value[one] - value[other]), value[one] * value[other]]
    basis = orth(np.stack(columns, 1))

    def residual(values: Float[np.ndarray, "*rows pair"]) -> Float[np.ndarray, "*rows pair"]:
        return values - values @ basis @ basis.T

    beyond = residual(same)
    unlike = 1 - same
    each = stats.ratio(zip(found.sums, found.tokens, strict=True), found.documents, seed=seed)
    pairs = each.value
    gap = each.map(lambda d: d @ (same / same.sum() - unlike / unlike.sum()))
    held = each.map(lambda d: d @ (beyond / (beyond @ beyond)))
    left = squareform(residual(pairs), checks=False)
    orders = shuffles(np.zeros_like(found.layer), permutations, seed)
    null = np.array([squareform(left[np.ix_(o, o)], checks=False) @ beyond for o in orders])
    return Explained(
        r2=each.map(lambda d: 1 - residual(d).var(-1) / d.var(-1)),
        gap=gap,
        held=held,
        left=held / gap,
        p=float((1 + (null <= pairs @ beyond).sum()) / (1 + len(null))),
        predicted=pairs - residual(pairs),
    )


def beyond(
    ours: Divergences, control: Divergences, of: Callable[[Divergences], tuple[Estimate, float]]
) -> dict[str, Estimate | float]:
    """A number of ours and of a control on the same segments, their paired difference, and the p-value of ours, for recording.

    Args:
        of: gives the number and its p-value.
    """
    (one, p), (other, _) = of(ours), of(control)
    return {"ours": one, "control": other, "difference": one - other, "p": p}


@dataclass(frozen=True, eq=False)
class Apart:
    """Mean divergence of heads by how many layers lie between them.

    Attributes:
        mean: [gap], of all pairs that are 0, 1, … layers apart, with intervals over documents.
        each: [layer], of the pairs within each layer.
        null: [2, gap], the middle 95 % when heads are shuffled over layers.
        null_each: [2], the same for the pairs within one layer.
        p_adjacent: share of orders of the layers in which neighbouring layers are as close as they are.
    """

    mean: Estimate
    each: Estimate
    null: Float[np.ndarray, "2 gap"]
    null_each: Float[np.ndarray, "2"]
    p_adjacent: float

    def relative(self, overall: float) -> tuple[Estimate, NDArray, Estimate, NDArray]:
        """``mean``, ``null``, ``each`` and ``null_each`` as multiples of the mean divergence of all pairs."""

        def share(values: Any) -> Any:
            return values / overall

        return self.mean.map(share), share(self.null), self.each.map(share), share(self.null_each)


def layers_apart(found: Divergences, *, permutations: int = 1999, seed: int = 0) -> Apart:
    """Mean divergence by distance in layers, against heads shuffled over layers and layers shuffled in their order.

    Raises:
        ValueError: for encoders with a single head in each layer, which have no pairs within one.
    """
    if found.heads < 2:
        raise ValueError("Layers of a single head hold no pairs to compare.")
    layers, heads = found.layers, found.heads
    one, other = (found.layer[k] for k in np.triu_indices(layers * heads, 1))
    gaps = (np.abs(one - other)[:, None] == np.arange(layers)).astype(np.float64)
    homes = ((one == other) & (one == np.arange(layers)[:, None])).T.astype(np.float64)
    orders = shuffles(np.zeros_like(found.layer), permutations, seed)
    sums = block_sums(found.mean(), found.layer[np.concatenate([np.arange(layers * heads)[None], orders])])
    apart = np.abs(np.subtract.outer(np.arange(layers), np.arange(layers)))
    counts = np.where(apart == 0, heads * (heads - 1), heads**2)
    null = np.stack([sums[1:, apart == g].sum(-1) / counts[apart == g].sum() for g in range(layers)], axis=1)
    rng = np.random.default_rng(seed)
    order = np.stack([np.arange(layers), *(rng.permutation(layers) for _ in range(permutations))])
    adjacent = sums[0][order[:, 1:], order[:, :-1]].sum(-1)
    return Apart(
        mean=found.estimate(gaps / gaps.sum(0), seed=seed),
        each=found.estimate(homes / homes.sum(0), seed=seed),
        null=np.quantile(null, (0.025, 0.975), axis=0),
        null_each=np.quantile(sums[1:, 0, 0] / counts[0, 0], (0.025, 0.975)),
        p_adjacent=_p(adjacent[1:], float(adjacent[0])),
    )


def comparisons(found: Divergences, behaviour: Int[np.ndarray, "head"], *, seed: int = 0) -> dict[str, Closeness]:
    """The chapter's questions: same layer; same number in its layer; same behaviour; same layer, behaviour held.

    Two heads of one number are never of one layer, so numbers are shuffled within layers only. With behaviour held, layers
    are shuffled among heads of like behaviour only; and the layers of the heads with a behaviour alone are compared, too. These
    three are left out where no two heads share a behaviour, or all do.
    """
    answers = {
        "layer": closeness(found, found.layer, seed=seed),
        "number": closeness(found, found.number, among=found.layer, seed=seed),
    }
    known = behaviour[behaviour >= 0]
    if len(set(known.tolist())) > 1 and len(set(known.tolist())) < len(known):
        answers["behaviour"] = closeness(found, behaviour, seed=seed)
        of_labelled = np.where(behaviour >= 0, found.layer, -1)
        if len(set(of_labelled[behaviour >= 0].tolist())) > 1:
            answers["layer, these heads"] = closeness(found, of_labelled, seed=seed)
        answers["layer, behaviour held"] = closeness(found, found.layer, among=behaviour, seed=seed)
    return answers


def as_dict(
    found: Divergences, drawn: Map, apart: Apart, compared: Mapping[str, Closeness], links: float
) -> dict[str, Any]:
    """The chapter's numbers for one encoder, for recording.

    Args:
        links: cophenetic correlation of the tree.
    """
    return {
        "layers": found.layers,
        "heads": found.heads,
        "segments": len(found.tokens),
        "tokens": int(found.tokens.sum()),
        "pairs": squareform(found.mean()),
        "closeness": {name: vars(one) for name, one in compared.items()},
        "apart": vars(apart),
        "map": vars(drawn),
        "cophenetic": links,
    }
