"""The heads of chapter 07 as points in the plane and as leaves of a tree, and how stable the map is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.cluster.hierarchy import cophenet, fcluster, linkage
from scipy.spatial import procrustes
from scipy.spatial.distance import pdist, squareform

from helpers.chapters.divergence_map.measures import Divergences

STEPS, EPSILON = 1000, 1e-7
"""Most steps of a map's scaling; it ends when a step lowers the stress, over all squared distances, by less."""


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
    shown = squareform(pdist(points))
    return float(np.sqrt(((shown - distances) ** 2).sum() / (shown**2).sum()))


def scale(
    distances: Float[np.ndarray, "head head"], start: Float[np.ndarray, "head dimension"]
) -> Float[np.ndarray, "head dimension"]:
    """Metric multidimensional scaling (SMACOF) from one start, turned to its principal axes.

    The steps and the end are those of :func:`sklearn.manifold.smacof`, which checks its arguments in each step and is
    four times as slow with so few points.
    """
    points, before = start, np.inf
    shown = squareform(pdist(points))
    for _ in range(STEPS):
        shares = distances / np.where(shown == 0, 1e-5, shown)
        points = (np.diag(shares.sum(1)) - shares) @ points / len(points)
        shown = squareform(pdist(points))
        left = ((shown - distances) ** 2).sum() / 2
        if before - left < EPSILON * (shown**2).sum() / 2:
            break
        before = left
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
    shown = squareform(pdist(points))
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
