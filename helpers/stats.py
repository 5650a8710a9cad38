"""Means, ratios and their 95 % intervals over documents, for what :func:`helpers.attention.measure` returns: one array a text.

An interval comes from a bootstrap over documents (Efron & Tibshirani 1993): in each of :data:`REPLICATES` replicates every document counts
Poisson(1) times. The counts depend on the seed and the document's number only, so that two models measured on the same documents have
replicates that can be subtracted pairwise. A replicate is one row of a matrix of counts, and all are one product:
(replicates × documents) @ (documents × numbers). Few documents widen an interval (:func:`widened`), and one gives none.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from scipy import stats

REPLICATES = 500
FEW = 30
"""Documents below which an interval is widened: the bootstrap alone holds the truth too seldom there."""

Numbers = NDArray[np.float64] | np.float64
"""An array of any shape, down to a single number."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A value and its 95 % interval, elementwise over arrays of any shape.

    Attributes:
        value, low, high: the estimate and the ends of its interval; the ends are NaN where one document says it all.
        replicates: [replicate, ...] bootstrap replicates, for intervals of differences.
        units: how many documents each number comes from, as one number or an array of the same shape; None where it is not known.
    """

    value: Numbers
    low: Numbers
    high: Numbers
    replicates: NDArray[np.float64]
    units: Any = None

    @classmethod
    def of(cls, value: Numbers, replicates: NDArray[np.float64], units: Any = None) -> "Estimate":
        """The percentile interval of bootstrap replicates, wider for few units; replicates without data (NaN) are left out."""
        percentile = np.nanpercentile if np.isnan(replicates).any() else np.percentile
        with warnings.catch_warnings():  # where nothing was measured, NaN is the answer and needs no warning
            warnings.simplefilter("ignore", RuntimeWarning)
            low, high = percentile(replicates, (2.5, 97.5), axis=0)
        if units is not None and np.ndim(units) and np.shape(units) != np.shape(value):
            units = np.min(units)  # a function of several numbers knows no more than the rarest
        wider = widened(units)
        if np.any(wider != 1):
            low, high = value - wider * (value - low), value + wider * (high - value)
        return cls(value, low, high, replicates, units)

    @classmethod
    def from_record(cls, record: "Estimate | Mapping[str, Any]") -> "Estimate":
        """An estimate as :mod:`helpers.results` keeps it (without replicates); an Estimate is returned as it is."""
        if isinstance(record, Estimate):
            return record
        value, low, high = (np.asarray(record[key], np.float64) for key in ("value", "low", "high"))
        return cls(value, low, high, np.empty((0, *value.shape)))

    def within(self, low: float, high: float) -> "Estimate":
        """The same with an interval that goes no farther than what is possible, 0 and 1 for a share."""
        return replace(self, low=np.clip(self.low, low, high), high=np.clip(self.high, low, high))

    def __getitem__(self, where: object) -> "Estimate":
        """The estimate of one cell or slice: ``estimate[layer, head]``."""
        index = where if isinstance(where, tuple) else (where,)
        units = self.units[index] if np.ndim(self.units) else self.units
        return Estimate(self.value[index], self.low[index], self.high[index], self.replicates[:, *index], units)

    def __sub__(self, other: "Estimate") -> "Estimate":
        """Difference with a paired interval, of two shares from -1 to 1; both must come from the same documents and seed."""
        found = Estimate.of(self.value - other.value, self.replicates - other.replicates, _fewer(self, other))
        return found.within(-1.0, 1.0) if self.is_share and other.is_share else found

    @property
    def is_share(self) -> bool:
        """Whether nothing of it is, or could by its replicates be, less than 0 or more than 1."""
        parts = (part[np.isfinite(part)] for part in (np.asarray(self.value), self.replicates))
        return all(((part >= 0) & (part <= 1)).all() for part in parts)

    def __truediv__(self, other: "Estimate") -> "Estimate":
        """Quotient with a paired interval; both must come from the same documents and seed."""
        return Estimate.of(self.value / other.value, self.replicates / other.replicates, _fewer(self, other))

    def map(self, function: Callable[[Numbers], Numbers]) -> "Estimate":
        """What a function of the last axes makes of the value and of every replicate, with the interval of that."""
        return Estimate.of(function(self.value), function(self.replicates), self.units)

    def mean(self, axis: int | tuple[int, ...] = -1) -> "Estimate":
        """The mean over axes, counted from the last: ``-1``, ``(-2, -1)``."""
        return self.map(lambda x: x.mean(axis))

    def __format__(self, spec: str) -> str:
        spec = spec or ".3f"
        if np.isnan(self.low):
            return f"{self.value:{spec}} (one document)"
        return f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"


def widened(units: Any) -> Any:
    """What the half-widths of a percentile interval are multiplied by, so that few documents do not promise too much.

    A bootstrap over n units underestimates the variance by (n - 1) / n, and takes the normal quantile where Student's with
    n - 1 degrees of freedom is due: with 5 documents, 95 % intervals hold the truth in 86 % of samples. The product of both
    corrections is that of Hesterberg's expanded percentile interval (2015), applied to the ends. From :data:`FEW` units on it is 1:
    the bootstrap keeps within two points of its promise. One unit has no interval: NaN.
    """
    if units is None:
        return 1.0
    n = np.asarray(units, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1) / stats.norm.ppf(0.975)
    return np.where(n >= FEW, 1.0, np.where(n > 1, factor, np.nan))[()]


def _fewer(*estimates: Estimate) -> Any:
    """The units of the estimate that has the fewer, number by number."""
    known = [one.units for one in estimates if one.units is not None]
    return np.minimum.reduce(np.broadcast_arrays(*known)) if known else None


def mean(values: Any, by: Any = None, *, seed: int = 0) -> Estimate:
    """Mean over rows with an interval over documents; values from 0 to 1 are shares.

    Args:
        values: [row, ...]; NaN marks a row without a value.
        by: the document of each row (default: each row is one).
    """
    values = np.asarray(values, np.float64)
    known = np.isfinite(values)
    found = ratio(np.where(known, values, 0), known, by, seed=seed)
    return found.within(0.0, 1.0) if ((values[known] >= 0) & (values[known] <= 1)).all() else found


def ratio(sums: Any, counts: Any, by: Any = None, *, seed: int = 0) -> Estimate:
    """Sums over all rows divided by counts over all rows, with an interval over documents; a share where no sum exceeds its count.

    Args:
        sums, counts: [row, ...], a row for each text (or sentence, or word), of shapes that fit each other: counts [row, 1, 13] go with sums [row, 144, 13].
        by: the document of each row (default: each row is one). Numbers keep their meaning from run to run, other names are numbered in their order.

    Returns:
        NaN where a count is 0; units are the documents whose count is not.
    """
    sums, counts = np.asarray(sums, np.float64), np.asarray(counts, np.float64)
    documents, place = np.unique(np.arange(len(sums)) if by is None else np.asarray(by), return_inverse=True)
    top, bottom = (np.zeros((len(documents), *rows.shape[1:])) for rows in (sums, counts))
    np.add.at(top, place, sums)
    np.add.at(bottom, place, counts)
    drawn = resampled(documents if documents.dtype.kind in "iu" else np.arange(len(documents)), seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.tensordot(drawn, top, 1) / np.tensordot(drawn, bottom, 1)
    units = np.broadcast_to((bottom > 0).sum(0), ratios.shape[1:])
    found = Estimate.of(ratios[0], ratios[1:], units)
    return found.within(0.0, 1.0) if ((sums >= 0) & (sums <= counts)).all() else found


def resampled(documents: Any, seed: int = 0) -> Float[np.ndarray, "replicate document"]:
    """How often each replicate counts each document; the first row is the estimate itself and counts each once."""
    drawn = [_counts(seed, int(document)) for document in documents]
    return np.array(drawn).reshape(len(drawn), 1 + REPLICATES).T


@lru_cache(maxsize=4096)
def _counts(seed: int, document: int) -> NDArray[np.float64]:
    return np.concatenate(([1.0], np.random.default_rng([seed, document]).poisson(1.0, REPLICATES)))


def stack(estimates: Sequence[Estimate]) -> Estimate:
    """Estimates of one shape as one, with a new first axis; without replicates where their numbers differ."""
    value, low, high = (np.stack([getattr(one, end) for one in estimates]) for end in ("value", "low", "high"))
    units = None
    if all(one.units is not None for one in estimates):
        units = np.stack([np.broadcast_to(one.units, np.shape(one.value)) for one in estimates])
    if len({len(one.replicates) for one in estimates}) > 1:
        return Estimate(value, low, high, np.empty((0, *value.shape)), units)
    return Estimate(value, low, high, np.stack([one.replicates for one in estimates], axis=1), units)


def percent(estimate: Estimate | Mapping[str, Any], spec: str = ".0f") -> str:
    """A fresh or recorded estimate in per cent, for a table: ``78 [71, 85]``; the interval carries no plus signs."""
    found = Estimate.from_record(estimate)
    if np.isnan(found.low):
        return f"{100 * found.value:{spec}} (one document)"
    ends = spec.lstrip("+")
    return f"{100 * found.value:{spec}} [{100 * found.low:{ends}}, {100 * found.high:{ends}}]"


def max_t(differences: Any, *, permutations: int = 999, seed: int = 0) -> Float[np.ndarray, "candidate"]:
    """For each candidate the chance of such a sum of differences [candidate, row] if their signs were random, corrected for having tried all.

    In each permutation every row (a document, a sentence) changes the sign of its difference or not, the same way for all candidates, and
    the *largest* sum over all candidates is kept. A candidate's p is the share of those that reach its own sum (Westfall & Young's max-T).
    """
    found = np.asarray(differences, np.float32)
    signs = np.random.default_rng(seed).choice(np.float32([-1, 1]), (permutations, found.shape[1]))
    largest = (signs @ found.T).max(-1)
    return (1 + (largest[:, None] >= found.sum(-1)).sum(0)) / (1 + permutations)
