"""Types of heads by how far they look (Guan et al. 2020, sections 3 and 4): 21 numbers of each head, groups of heads, and what they are called.

Chapter 10 and a model's card use the groups that chapter 08 makes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state
from torch import Tensor
from torch.nn.functional import one_hot

from helpers import attention, stats
from helpers.encoders import Encoder, EncoderError
from helpers.results import Recorded, Run
from helpers.stats import Estimate
from helpers.tokens import EncodedText, Input

WINDOWS = 16
KINDS = ("cls", "sep", "comma", "period")
#: The 21 numbers of a head, in the order of every array whose last axis is ``feature``.
FEATURES = ("self", *(f"window {w}" for w in range(1, WINDOWS + 1)), *KINDS)
SPECIAL = len(FEATURES) - len(KINDS)  # where the four kinds of token begin

#: Guan et al.'s four types. In arrays and records a group has the key of the type that it stands for, also where it is called otherwise.
TYPES = ("dense", "diagonal", "dense_vertical", "vertical")

#: Of the bootstrap over documents: heads are clustered anew in each.
REPLICATES = 200

#: The numbers of one head.
Features = Float[np.ndarray, "feature"]


def cells(text: EncodedText, length: int | None = None) -> Int[Tensor, "query key"]:
    """Which of the 21 features each cell (i, j) of a text's map belongs to.

    The kind of the attended token comes first: a cell whose key is [CLS], [SEP], a comma or a full stop counts
    there, also on the diagonal and at any distance. Then the diagonal (``self``). Every other cell falls in
    window ``1 + ⌊16 |i - j| / n⌋``, with n tokens, or ``length`` in its place, the same for both directions. So all cells
    are divided among the features, whatever the length; windows narrower than one token stay empty.
    """
    device, n = text.stop.device, len(text.tokens)
    place = torch.arange(n, device=device)
    distance = (place[:, None] - place).abs()
    window = (1 + WINDOWS * distance // (length or n)).clamp(max=WINDOWS)
    feature = torch.where(distance == 0, 0, window)
    commas = torch.tensor([t.endswith(",") for t in text.tokens], device=device)  # a mark may stand before one
    for kind, keys in enumerate((text.cls, text.sep, text.stop & commas, text.stop & ~commas), SPECIAL):
        feature[:, keys] = kind
    return feature


def look(maps: Float[Tensor, "layer head query key"], text: EncodedText, length: int | None = None) -> dict[str, Any]:
    """The features of every head in one text, [layer, head, feature]: attention to the cells of each (:func:`cells`), mean over the rows.

    One matrix product for all heads and features. Also what even attention has, [feature], and the number of tokens.
    """
    member = one_hot(cells(text, length).flatten(), len(FEATURES)).to(maps.dtype)  # [cell, feature]
    n = len(text.tokens)
    return {"features": maps.flatten(-2) @ member / n, "even": member.mean(0), "tokens": n}


@dataclass(frozen=True, eq=False)
class DistanceFeatures:
    """The 21 numbers of every head.

    Attributes:
        texts: [text, layer, head, feature], in each text.
        all: [layer, head, feature], means over texts, so that each counts once, whatever its length; with replicates of a bootstrap
            over documents.
        even: [feature], what a head with equal weights on all tokens of each text would have.
        tokens: mean length of a text.
    """

    texts: Float[np.ndarray, "text layer head feature"]
    all: Estimate
    even: Features
    tokens: float

    @classmethod
    def of(
        cls, looked: Sequence[Mapping[str, Any]], documents: Sequence[Any], *, seed: int = 0
    ) -> "DistanceFeatures":
        """What :func:`look` found in each text.

        Args:
            documents: for each text the number of its document, the unit of the bootstrap, or the texts themselves, which know it.
        """
        features, even, tokens = (np.stack([text[n] for text in looked]) for n in ("features", "even", "tokens"))
        mean = stats.mean(features, by=documents, seed=seed)
        draws = mean.replicates[:REPLICATES]
        draws = draws[np.isfinite(draws).all((1, 2, 3))]  # with few documents one may hold none
        mean = Estimate.of(mean.value, draws, mean.units)
        return cls(features, mean, even.mean(0, dtype=np.float64), float(tokens.mean()))

    @property
    def points(self) -> Float[np.ndarray, "point feature"]:
        """Every head as a point, layer by layer."""
        return points(self.all.value)


def points(array: Float[np.ndarray, "*draws layer head feature"]) -> Float[np.ndarray, "*draws point feature"]:
    """Layers and heads as one axis."""
    return array.reshape(*array.shape[:-3], -1, array.shape[-1])


def measure(
    encoder: Encoder,
    inputs: Sequence[Input],
    *,
    documents: Sequence[Any] | None = None,
    max_length: int = 128,
    shuffled: bool = False,
    seed: int = 0,
) -> DistanceFeatures:
    """The features of every head, over inputs cut to ``max_length`` tokens.

    Args:
        documents: for each input the number of its document; default: each is one of its own.
        shuffled: measure the control instead: every map with its scores shuffled (:mod:`helpers.controls`).
        seed: of the bootstrap and of the shuffling.
    """
    looked = attention.measure(encoder, inputs, look, longest=max_length, shuffled=shuffled, seed=seed)
    return DistanceFeatures.of(looked, range(len(inputs)) if documents is None else documents, seed=seed)


def masses(features: Float[np.ndarray, "*heads feature"]) -> Float[np.ndarray, "*heads 3"]:
    """The 21 numbers as three that sum to 1: near (self and window 1), far (windows 2 to 16), the special kinds."""
    return np.stack([part.sum(-1) for part in np.split(features, (2, SPECIAL), axis=-1)], axis=-1)


# Groups


#: Heads that the chapter needs: half of them are put into groups, and must be more than the groups.
LEAST_HEADS = 2 * (len(TYPES) + 1)


def cluster(sets: np.ndarray, k: int = len(TYPES), starts: int = 10, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """K-means of many small sets: groups [set, point] and their means [set, group, feature].

    The same as those of scikit-learn's ``KMeans(k, n_init=starts, random_state=seed)``, in a seventh of the time.

    Args:
        sets: [set, point, feature].
    """
    tries = 2 + int(np.log(k))  # heads that k-means++ tries as each mean but the first, as in scikit-learn
    draws = check_random_state(seed).random_sample((starts, 1 + (k - 1) * tries))
    first, middles = (draws[:, :1] * sets.shape[1]).astype(int), sets.mean(1, keepdims=True)
    asked = draws[:, 1:].reshape(starts, k - 1, tries).swapaxes(0, 1)
    labels, means = zip(*(_best_start(heads, first, asked) for heads in sets - middles), strict=True)
    return np.stack(labels), np.stack(means) + middles


def _best_start(heads: np.ndarray, chosen: np.ndarray, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Groups and means of the best of all starts, which are made side by side; each begins at heads chosen by k-means++."""
    apart = cdist(heads, heads, "sqeuclidean")
    for draws in asked:  # [start, tried]
        nearest = apart[chosen].min(1)  # [start, head]
        total = nearest.cumsum(-1)
        tried = (total[:, None] < (draws * total[:, -1:])[..., None]).sum(-1)
        left = np.minimum(nearest[:, None], apart[tried]).sum(-1)
        chosen = np.c_[chosen, np.take_along_axis(tried, left.argmin(-1)[:, None], 1)]
    means, moving, enough = heads[chosen], np.ones(len(chosen), bool), 1e-4 * heads.var(0).mean()
    while moving.any():
        member = np.eye(means.shape[1])[_to_means(heads, means[moving]).argmin(-1)]
        new = member.swapaxes(1, 2) @ heads / member.sum(1).clip(1)[..., None]
        means[moving], moving[moving] = new, ((new - means[moving]) ** 2).sum((1, 2)) > enough
    squares = _to_means(heads, means)
    spread = squares.min(-1).sum(-1) + (heads**2).sum()
    best = (spread <= spread.min() * (1 + 1e-9)).argmax()
    return squares[best].argmin(-1), means[best]


def _to_means(heads: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Squared distances less those from 0, [start, head, mean]."""
    return (means**2).sum(-1)[:, None] - 2 * heads @ means.swapaxes(1, 2)


def refuse_small(encoder: Encoder) -> None:
    """Make sure that half of the heads can be put into as many groups as there are types.

    Raises:
        EncoderError: for fewer than :data:`LEAST_HEADS` heads.
    """
    if (count := encoder.layers * encoder.heads) < LEAST_HEADS:
        raise EncoderError(
            f"{encoder.name!r} has {count} heads in all. This chapter puts heads, and halves of them, into {len(TYPES)} groups, "
            f"for which it needs a model with at least {LEAST_HEADS} heads; chapter 14 names each head of yours by rule."
        )


# Names


def prototypes(even: Features) -> Float[np.ndarray, "type mass"]:
    """The three masses of a pure head of each of :data:`TYPES`.

    Dense: those of even attention; diagonal: all near; vertical: all on the special kinds; dense and vertical: half-way
    between the two.

    Args:
        even: what even attention gives each feature on the same texts (``DistanceFeatures.even``).
    """
    dense, near, special = masses(even), np.array([1.0, 0, 0]), np.array([0, 0, 1.0])
    return np.stack([dense, near, (dense + special) / 2, special])


def distances(features: Float[np.ndarray, "*heads feature"], even: Features) -> Float[np.ndarray, "*heads type"]:
    """Squared distance, in the three masses, to the prototype of each type."""
    return ((masses(features)[..., None, :] - prototypes(even)) ** 2).sum(-1)


@dataclass(frozen=True, eq=False)
class Types:
    """A group for every head; each group stands for one of the four types, and is called after it if it fits.

    Attributes:
        names: [layer, head], from :data:`TYPES`: the type that the head's group stands for.
        fits: type -> whether its prototype is also the one nearest to the group's mean. Where it is not, the type was left over:
            the model has no such group, and the group is called by its number (:func:`helpers.plots.group_names`).
    """

    names: np.ndarray
    fits: dict[str, bool]

    @classmethod
    def read(cls, recorded: Recorded) -> "Types":
        """The types that a run of chapter 08 has recorded."""
        fits = {row.of: bool(row.value) for row in recorded.rows("type_fits").itertuples()}
        return cls(recorded.array("type", column="label").astype(str), {name: fits[name] for name in TYPES})

    @property
    def shares(self) -> Float[np.ndarray, "type"]:
        """Share of heads of each type."""
        return np.array([(self.names == name).mean() for name in TYPES])

    @property
    def labels(self) -> Int[np.ndarray, "point"]:
        """Names as numbers, in the order of :data:`TYPES`, layer by layer."""
        return np.array([TYPES.index(name) for name in self.names.ravel()])


def types(features: np.ndarray, even: Features, *, seed: int = 0, starts: int = 100) -> Types:
    """K-means of [layer, head, feature] with four groups, the best of so many random starts; each stands for a type of its own."""
    [labels], [means] = cluster(points(features)[None], starts=starts, seed=seed)
    apart = distances(means, even)
    named, nearest = linear_sum_assignment(apart)[1], apart.argmin(-1)  # one each, with the smallest sum
    names = np.array(TYPES)[named[labels]].reshape(features.shape[:2])
    return Types(names, {name: bool(nearest[named == i] == i) for i, name in enumerate(TYPES)})


def by_rule(features: Float[np.ndarray, "*heads feature"], even: Features) -> np.ndarray:
    """Each head named after the prototype nearest to it, with no clustering: the simple baseline, ``(*heads)``."""
    return np.array(TYPES)[distances(features, even).argmin(-1)]


def type_shares(measured: DistanceFeatures, *, seed: int = 0) -> Estimate:
    """Share of heads of each type, (type,), clustered and named anew in every replicate of the bootstrap over documents."""
    whole = types(measured.all.value, measured.even, seed=seed).shares
    drawn = [types(heads, measured.even, seed=seed, starts=10) for heads in measured.all.replicates]
    return Estimate.of(whole, np.stack([each.shares for each in drawn]), measured.all.units)


def record(run: Run, measured: DistanceFeatures, named: Types, shares: Estimate) -> None:
    """Put the features and types of a model's heads into the table of chapter 08."""
    n = len(measured.texts)
    run.number("distance_feature", measured.all, axes=("layer", "head", FEATURES), n=n)
    run.number("type", named.names, n=n)
    run.number("type_share", dict(zip(TYPES, shares, strict=True)), n=n)
    record_fits(run, named, n=n)
    if named.fits["vertical"] and np.isin(["dense", "dense_vertical"], named.names).all():
        depths = {name: np.nonzero(named.names == name)[0].mean() + 1 for name in TYPES if name != "diagonal"}
        label = ", ".join(f"{name.replace('_', ' & ')} {depth:.1f}" for name, depth in depths.items())
        run.number("order_of_depth", np.mean([a < b for a, b in combinations(depths.values(), 2)]), label=label)


def record_fits(run: Run, named: Types, **columns: Any) -> None:
    """Which of the four groups have the marks of the type that they stand for."""
    for name, fit in named.fits.items():
        run.number("type_fits", fit, of=name, label="yes" if fit else "no", **columns)
    run.number("fitting_groups", sum(named.fits.values()), **columns)
