"""Chapter 07: which heads behave alike?

Two heads are as far apart as the Jensen–Shannon divergence between what they attend to, on average over
tokens. All pairs of heads are compared, drawn as a map, and asked whether heads of one layer lie closer
than chance would have it. After Clark et al. 2019, section 6.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from scipy.cluster.hierarchy import cophenet, fcluster, linkage
from scipy.spatial import procrustes
from scipy.spatial.distance import squareform
from scipy.stats import rankdata
from sklearn.manifold import smacof
from torch import Tensor
from tqdm import tqdm

from helpers.corpora.readers import Segment
from helpers.engine import attention
from helpers.engine.encoders import Encoder, EncoderError
from helpers.engine.estimates import REPLICATES, Additive, Estimate, Numbers
from helpers.engine.tokens import Batch, Batches

MOST_TOKENS = 128  # Clark et al. 2019, section 3
LARGEST = float(np.log(2))  # nats, or one bit: the divergence of two distributions that share no token
TINY = float(np.finfo(np.float32).tiny)
PLACES = {"cpu": 2048, "other": 8192}  # weights of each head compared at a time: few, to stay in a processor's cache


def refuse_small(encoder: Encoder) -> None:
    """Make sure that there are heads of one layer and heads of different layers, which the chapter compares.

    Raises:
        EncoderError: for a single layer, or a single head in each.
    """
    if encoder.layers < 2 or encoder.heads < 2:
        raise EncoderError(
            f"{encoder.name!r} has {encoder.layers} x {encoder.heads} heads (layers x heads of each). This chapter asks whether "
            "heads of one layer lie closer together than heads of different layers, for which it needs a model with at least "
            "two layers of at least two heads."
        )


# ---------------------------------------------------------------------------------------- two rows, all pairs


def divergence(p: Float[np.ndarray, "*rows key"], q: Float[np.ndarray, "*rows key"]) -> Numbers:
    """Jensen–Shannon divergence of distributions, row by row, in nats; 0 · ln 0 = 0.

    The definition, in float64, for a few rows; :func:`divergences` is for all pairs of heads.
    """
    p, q = np.asarray(p, np.float64), np.asarray(q, np.float64)
    return np.maximum(entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2, 0.0)


def entropy(p: Float[np.ndarray, "*rows key"]) -> Numbers:
    """Entropy of distributions, row by row, in nats; 0 · ln 0 = 0."""
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(-1)


def divergences(maps: Float[Tensor, "head query key"]) -> Float[np.ndarray, "head head"]:
    """Jensen–Shannon divergence between all pairs of heads, summed over the attending tokens, in nats.

    Only Σ y log₂ y is computed, for y = n (p + q) / 2, each pair once and a few rows of all heads at a time: a mixture's
    entropy but for terms that cancel, and with all its digits also where heads attend nearly evenly (y near 1).

    Args:
        maps: of one input, without padding; rows sum to 1.
    """
    keys = maps.shape[-1]
    on_cpu = maps.device.type == "cpu"
    rows = max(1, PLACES["cpu" if on_cpu else "other"] // keys)
    chunks = maps.float().split(rows, dim=1)
    if on_cpu:
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            parts = list(pool.map(lambda chunk: mixtures(chunk.numpy(), np), chunks))
    else:
        parts = [np.asarray(mixtures(chunk, torch)) for chunk in chunks]
    mixed = np.sum(parts, axis=0, dtype=np.float64)
    own = mixed.diagonal()
    found = np.triu((own[:, None] + own) / 2 - mixed, 1).clip(min=0) * (LARGEST / keys)
    return found + found.T


def mixtures(maps: Any, xp: Any) -> Any:
    """Σ y log₂ y over all places, for y = n (p + q) / 2 of heads i ≤ j: the upper triangle of [head, head].

    Args:
        maps: [head, query, key], float32; weights of 0 become the smallest number, whose y log₂ y is 0.
        xp: NumPy for arrays (its logarithm is three times as fast as torch's on a processor), torch for tensors.
    """
    halves = (maps * (maps.shape[-1] / 2)).clip(TINY).reshape(len(maps), -1)
    sums = xp.zeros((len(maps), len(maps)))
    mixture, logarithm = xp.empty_like(halves), xp.empty_like(halves)
    for i in range(len(maps)):
        xp.add(halves[i], halves[i:], out=mixture[i:])
        xp.log2(mixture[i:], out=logarithm[i:])
        sums[i, i:] = xp.linalg.vecdot(mixture[i:], logarithm[i:])
    return sums


# ---------------------------------------------------------------------------------------- one pass over the corpus


@dataclass(frozen=True, eq=False)
class Divergences:
    """Divergences of all pairs of heads, kept for every segment.

    Attributes:
        layers, heads: of the encoder; head number k = layer · heads + head.
        sums: [segment, pair], summed over the segment's tokens, in nats; pairs k < l in the order of
            :func:`numpy.triu_indices`. float32, so that 1,000 segments of a 144-head encoder take 41 MB.
        tokens: [segment], attending tokens; 0 for segments not measured.
        documents: [segment], the document that each is from, the unit of the bootstrap.
        truncated: how many segments were cut to fit.
    """

    layers: int
    heads: int
    sums: Float[np.ndarray, "segment pair"]
    tokens: Int[np.ndarray, "segment"]
    documents: Int[np.ndarray, "segment"]
    truncated: int = 0

    @cached_property
    def layer(self) -> Int[np.ndarray, "head"]:
        """The layer of each head, from 0."""
        return np.repeat(np.arange(self.layers), self.heads)

    @cached_property
    def number(self) -> Int[np.ndarray, "head"]:
        """The number of each head in its layer, from 0."""
        return np.tile(np.arange(self.heads), self.layers)

    def mean(
        self, segments: NDArray[np.integer] | NDArray[np.bool_] | slice = slice(None)
    ) -> Float[np.ndarray, "head head"]:
        """Mean divergence per token over the segments named (default: all), as a symmetric matrix."""
        return squareform(self.sums[segments].sum(0, dtype=np.float64) / self.tokens[segments].sum())

    @property
    def overall(self) -> float:
        """Mean divergence of all pairs, per token."""
        return float(self.sums.mean(1, dtype=np.float64).sum() / self.tokens.sum())

    def name(self, head: int) -> tuple[int, int]:
        """Layer and head, from 0, of head number ``head``."""
        return divmod(int(head), self.heads)

    def replicates(self, replicates: int = REPLICATES, seed: int = 0) -> Float[np.ndarray, "replicate segment"]:
        """How often each bootstrap replicate counts each segment: Poisson(1), alike for segments of one document."""
        numbers, document = np.unique(self.documents, return_inverse=True)
        return np.random.default_rng(seed).poisson(1.0, (replicates, len(numbers)))[:, document].astype(np.float64)

    def estimate(self, weights: Float[np.ndarray, "pair *some"], *, seed: int = 0) -> Estimate:
        """A weighted sum of the mean divergences with its interval over documents.

        Args:
            weights: [pair] or [pair, statistic], such as 1 / (number of pairs) at pairs of one layer.
        """
        each = self.sums.astype(np.float64) @ weights
        drawn = self.replicates(seed=seed)
        with np.errstate(invalid="ignore"):  # a replicate of few documents may count none of them
            replicates = ((drawn @ each).T / (drawn @ self.tokens)).T
        return Estimate.of(each.sum(0) / self.tokens.sum(), replicates)


def measure(encoder: Encoder, segments: Sequence[Segment], *, batch_size: int = 4) -> Divergences:
    """Divergences of all pairs of heads over segments of at most 128 tokens, in one pass, with a progress bar."""
    texts, most = [s.texts for s in segments], min(MOST_TOKENS, encoder.max_length)
    batches = Batches(encoder, texts, batch_size=batch_size, max_length=most, overlong="truncate")
    accumulator = Accumulator(encoder, [s.document for s in segments])
    attention.sweep(encoder, tqdm(batches, desc=f"{encoder.name}: {len(segments)} segments"), accumulator)
    return accumulator.result(truncated=batches.truncated)


class Accumulator(Additive):
    """Divergences of every segment; an observer for :func:`helpers.engine.attention.sweep`.

    Heads of different layers are compared, so the maps of one batch are kept until its last layer has passed:
    4 · batch · layers · heads · tokens² bytes, 38 MB for four segments of 128 tokens and 144 heads.

    Args:
        documents: for each segment, the number of its document.
    """

    def __init__(self, encoder: Encoder, documents: Sequence[int]) -> None:
        self.encoder = encoder
        count = encoder.layers * encoder.heads
        self.sums = np.zeros((len(documents), count * (count - 1) // 2), np.float32)
        self.tokens = np.zeros(len(documents), np.int64)
        self.documents = np.asarray(documents)
        self.first = 0  # number of the first segment that has a row here

    def part(self, inputs: range) -> "Accumulator":
        """An empty one with rows for some of the segments."""
        made = super().part(inputs)
        made.sums, made.tokens = (
            np.zeros_like(rows[inputs.start : inputs.stop]) for rows in (self.sums, self.tokens)
        )
        made.documents, made.first = self.documents[inputs.start : inputs.stop], inputs.start
        return made

    def absorb(self, part: "Accumulator") -> None:
        """Put the rows of a part in their place."""
        here = slice(part.first, part.first + len(part.tokens))
        self.sums[here] += part.sums
        self.tokens[here] += part.tokens

    def __call__(self, batch: Batch, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        if layer == 0:
            self._maps: list[Tensor] = []
        self._maps.append(probabilities)
        if layer < self.encoder.layers - 1:
            return
        for row, (number, real) in enumerate(zip(batch.index, batch.mask, strict=True)):
            maps = torch.cat([layer_maps[row] for layer_maps in self._maps])[:, real][:, :, real]
            self.sums[number - self.first] = squareform(divergences(maps), checks=False)
            self.tokens[number - self.first] = maps.shape[1]
        self._maps = []

    def merge(self, other: "Accumulator") -> "Accumulator":
        """Both together; they must be of the same segments and cover different ones of them."""
        if not np.array_equal(self.documents, other.documents) or (self.tokens * other.tokens).any():
            raise ValueError(
                "Only accumulators that number the same segments and have measured different ones merge."
            )
        merged = Accumulator(self.encoder, self.documents.tolist())
        merged.sums, merged.tokens = self.sums + other.sums, self.tokens + other.tokens
        return merged

    def result(self, *, truncated: int = 0) -> Divergences:
        """What was measured.

        Raises:
            ValueError: if nothing was.
        """
        if not self.tokens.any():
            raise ValueError("No segment was measured: the list of segments is empty, or the sweep has not run.")
        encoder = self.encoder
        return Divergences(encoder.layers, encoder.heads, self.sums, self.tokens, self.documents, truncated)


# ---------------------------------------------------------------------------------------- the map


@dataclass(frozen=True, eq=False)
class Map:
    """Heads as points in the plane, by multidimensional scaling.

    Attributes:
        points: [head, 2], the solution with the least stress, turned to its principal axes.
        stress: its stress.
        starts: stress reached from each start, the classical solution first, then random ones.
        disparities: how far each of these maps is from ``points``, see :func:`disparity`.
        kept: how many of each head's nearest heads each of these maps keeps, see :func:`neighbours_kept`.
    """

    points: Float[np.ndarray, "head 2"]
    stress: float
    starts: Float[np.ndarray, "start"]
    disparities: Float[np.ndarray, "start"]
    kept: Float[np.ndarray, "start"]


def classical(distances: Float[np.ndarray, "head head"], dimensions: int = 2) -> Float[np.ndarray, "head dimension"]:
    """Classical (Torgerson) scaling: the points whose inner products are nearest to those that the distances imply."""
    centred = np.eye(len(distances)) - 1 / len(distances)
    products = -centred @ distances**2 @ centred / 2
    values, vectors = np.linalg.eigh(products)
    largest = np.argsort(-values)[:dimensions]
    return vectors[:, largest] * np.sqrt(values[largest].clip(min=0))


def stress(distances: Float[np.ndarray, "head head"], points: Float[np.ndarray, "head dimension"]) -> float:
    """Kruskal's stress-1: root of the squared differences between distances and those of the map, over the latter squared."""
    shown = np.linalg.norm(points[:, None] - points, axis=-1)
    return float(np.sqrt(((shown - distances) ** 2).sum() / (shown**2).sum()))


def scale(
    distances: Float[np.ndarray, "head head"], start: Float[np.ndarray, "head dimension"]
) -> Float[np.ndarray, "head dimension"]:
    """Metric multidimensional scaling (SMACOF) from one start, turned to its principal axes."""
    points, _ = smacof(
        distances,
        metric=True,
        n_components=start.shape[1],
        init=start,
        n_init=1,
        max_iter=1000,
        eps=1e-7,
        normalized_stress=False,
    )
    points = points - points.mean(0)
    points = points @ np.linalg.svd(points, full_matrices=False)[2].T
    return points * np.where((points**3).sum(0) < 0, -1.0, 1.0)  # the longer tail to the right and to the top


def embed(distances: Float[np.ndarray, "head head"], *, restarts: int = 8, seed: int = 0) -> Map:
    """The best of several runs of metric scaling: from the classical solution, and from random starts."""
    rng = np.random.default_rng(seed)
    first = classical(distances)
    starts = [first, *(rng.normal(scale=first.std(), size=first.shape) for _ in range(restarts))]
    runs = [scale(distances, start) for start in starts]
    reached = np.array([stress(distances, points) for points in runs])
    best = runs[int(reached.argmin())]
    apart = np.array([disparity(best, points) for points in runs])
    kept = np.array([neighbours_kept(distances, points) for points in runs])
    return Map(best, float(reached.min()), reached, apart, kept)


def disparity(one: Float[np.ndarray, "head 2"], other: Float[np.ndarray, "head 2"]) -> float:
    """Procrustes disparity of two maps: 0 if one can be moved, turned, mirrored and resized into the other, at most 1."""
    return float(procrustes(one, other)[2])


def neighbours_kept(
    distances: Float[np.ndarray, "head head"], points: Float[np.ndarray, "head 2"], *, count: int = 5
) -> float:
    """Share of each head's nearest heads that are also among its nearest on the map."""
    shown = np.linalg.norm(points[:, None] - points, axis=-1)
    away = np.diag(np.full(len(points), np.inf))
    near, drawn = (np.argsort(matrix + away, axis=1)[:, :count] for matrix in (distances, shown))
    return float((near[:, :, None] == drawn[:, None]).any(-1).mean())


def tree(distances: Float[np.ndarray, "head head"]) -> tuple[Float[np.ndarray, "merge 4"], float]:
    """Average-linkage tree of the heads, and its cophenetic correlation: how faithful its heights are to the distances."""
    pairs = squareform(distances, checks=False)
    links = linkage(pairs, "average", optimal_ordering=True)
    return links, float(cophenet(links, pairs)[0])


def branches(links: Float[np.ndarray, "merge 4"], count: int) -> list[list[int]]:
    """The heads of each branch when the tree is cut into at most ``count``, the largest branch first."""
    number = fcluster(links, count, "maxclust")
    found = [np.flatnonzero(number == n).tolist() for n in np.unique(number)]
    return sorted(found, key=lambda heads: (-len(heads), heads))


# ---------------------------------------------------------------------------------------- closer than chance?


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
        ratio=Estimate.of(within.value / between.value, within.replicates / between.replicates),
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

        def over(e: Estimate) -> Estimate:
            return Estimate(e.value / overall, e.low / overall, e.high / overall, e.replicates / overall)

        return over(self.mean), self.null / overall, over(self.each), self.null_each / overall


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


# ---------------------------------------------------------------------------------------- stability


@dataclass(frozen=True, eq=False)
class Stability:
    """How alike the maps of two sets of documents are that have none in common.

    Attributes:
        documents: [size], documents in each set.
        disparity: [size, draw], Procrustes disparity of the two maps.
        correlation: [size, draw], correlation of the two sets of divergences.
        shuffled: [draw], disparity of the largest sets' maps when the heads of one are shuffled.
    """

    documents: tuple[int, ...]
    disparity: Float[np.ndarray, "size draw"]
    correlation: Float[np.ndarray, "size draw"]
    shuffled: Float[np.ndarray, "draw"]


def stability(found: Divergences, sizes: Sequence[int], *, draws: int = 10, seed: int = 0) -> Stability:
    """Map two disjoint random sets of documents of each size, several times, and compare the two.

    Each map starts from its own classical solution.

    Raises:
        ValueError: if there are fewer than twice as many documents as a size asks for.
    """
    numbers = np.unique(found.documents)
    if 2 * max(sizes) > len(numbers):
        raise ValueError(f"Two sets of {max(sizes)} documents need {2 * max(sizes)}; there are {len(numbers)}.")
    rng = np.random.default_rng(seed)
    disparities, correlations = np.zeros((2, len(sizes), draws))
    shuffled = np.zeros(draws)
    for place, size in enumerate(sizes):
        for draw in range(draws):
            drawn = rng.permutation(numbers)
            matrices = [found.mean(np.isin(found.documents, s)) for s in (drawn[:size], drawn[size : 2 * size])]
            one, other = (scale(matrix, classical(matrix)) for matrix in matrices)
            disparities[place, draw] = disparity(one, other)
            correlations[place, draw] = np.corrcoef(*(squareform(m) for m in matrices))[0, 1]
            if size == max(sizes):
                shuffled[draw] = disparity(one, rng.permutation(other))
    return Stability(tuple(sizes), disparities, correlations, shuffled)


# ---------------------------------------------------------------------------------------- what the heads are known for

LEANING = 1 / 3
"""Share of its attention from which a head counts as attending to a place; chapter 02's specialists need half."""

BROAD = 0.9  # of the entropy of even attention, as in chapter 02
KINDS = ("previous", "self", "next", "cls", "sep", "stop", "broad")


def behaviours(patterns: Mapping[str, Any], shape: tuple[int, int]) -> Int[np.ndarray, "head"]:
    """What each head mostly does, by chapter 02's statistics: its number in :data:`KINDS`, or -1.

    ``broad`` if its entropy is at least 90 % of that of even attention; else the place with most of its attention,
    if that is a third or more.

    Args:
        patterns: statistic -> estimate (layer, head), fresh or recorded; empty if there is none.
        shape: layers and heads.
    """
    if not patterns:
        return np.full(shape[0] * shape[1], -1)
    value = {name: Estimate.from_record(patterns[name]).value for name in (*KINDS[:-1], "entropy", "uniform")}
    shares = np.stack([value[name] for name in KINDS[:-1]])
    leading = np.where(shares.max(0) >= LEANING, shares.argmax(0), -1)
    return np.where(value["entropy"] >= BROAD * value["uniform"], KINDS.index("broad"), leading).ravel()


def duties(
    dependencies: Mapping[str, Any] | None, coreference: Mapping[str, Any] | None
) -> dict[tuple[int, int], tuple[str, ...]]:
    """Heads that beat a baseline in chapter 04 or 05, and in what, by the numbers recorded there.

    Relations: the head chosen for one, if it beats the best fixed offset (p < 0.05 over all heads); the largest gain first.
    Coreference: the head chosen for all mentions, if it beats "nearest mention with the same head word, else nearest".

    Args:
        dependencies, coreference: ``values`` of the chapters' records; None if there is none.
    """
    found: dict[tuple[int, int], list[str]] = {}
    table = dependencies["ud"]["table"] if dependencies else {}
    for relation, row in sorted(table.items(), key=lambda item: -item[1]["gain"]["value"]):
        if relation != "all" and row["p"] < 0.05:
            found.setdefault((row["layer"], row["head"]), []).append(relation)
    if coreference:
        row = coreference["one_head"]["earlier"]["table"]["all"]
        if row["gains"]["head match, else nearest"]["low"] > 0:
            found.setdefault((row["layer"], row["head"]), []).append("coreference")
    return {head: tuple(names) for head, names in found.items()}


# ---------------------------------------------------------------------------------------- recording


def comparisons(found: Divergences, behaviour: Int[np.ndarray, "head"], *, seed: int = 0) -> dict[str, Closeness]:
    """The chapter's questions: same layer; same number in its layer; same behaviour; same layer, behaviour held.

    Two heads of one number are never of one layer, so numbers are shuffled within layers only. With behaviour held, layers
    are shuffled among heads of like behaviour only. The last two are left out where no two heads share a behaviour, or all do.
    """
    answers = {
        "layer": closeness(found, found.layer, seed=seed),
        "number": closeness(found, found.number, among=found.layer, seed=seed),
    }
    known = behaviour[behaviour >= 0]
    if len(set(known.tolist())) > 1 and len(set(known.tolist())) < len(known):
        answers["behaviour"] = closeness(found, behaviour, seed=seed)
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
        "segments": int((found.tokens > 0).sum()),
        "tokens": int(found.tokens.sum()),
        "pairs": squareform(found.mean()),
        "closeness": {name: vars(one) for name, one in compared.items()},
        "apart": {
            "mean": apart.mean,
            "each": apart.each,
            "null": apart.null,
            "null_each": apart.null_each,
            "p_adjacent": apart.p_adjacent,
        },
        "map": {
            "points": drawn.points,
            "stress": drawn.stress,
            "starts": drawn.starts,
            "disparities": drawn.disparities,
            "kept": drawn.kept,
        },
        "cophenetic": links,
    }
