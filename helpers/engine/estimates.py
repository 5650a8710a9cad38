"""Means with intervals, computed in one pass and in constant memory.

A measurement over a corpus is a ratio of two sums, such as (attention to the previous token, summed over
tokens) / (tokens). Its 95 % interval comes from a bootstrap over documents. Keeping the numbers of every
document would cost memory that grows with the corpus, so each document is instead counted Poisson(1) times
in each of R replicate sums while the data stream by: the Poisson bootstrap (Chamandy et al. 2012, the
streaming form of Efron & Tibshirani 1993). The counts depend on the seed and the document's number only:
neither the order nor the batch size nor the number of workers changes a result, and two models measured on
the same documents have replicates that can be subtracted pairwise. Where there are few documents, intervals are
widened by Student's factor (:func:`widened`), so that they keep their promise.
"""

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from scipy import stats

from helpers.corpora.records import sample as sample  # one sampler, of records and of what is measured on them

REPLICATES = 500
FEW = 30
"""Documents below which an interval is widened: the bootstrap alone holds the truth too seldom there (:func:`widened`)."""

Numbers = NDArray[np.float64] | np.float64
"""An array of any shape, down to a single number."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A value and its 95 % interval, elementwise over arrays of any shape.

    Attributes:
        value, low, high: the estimate and the ends of its interval.
        replicates: [replicate, ...] bootstrap replicates, for intervals of differences.
        units: how many documents (or what else was drawn) the interval comes from; None where it is not known.
    """

    value: Numbers
    low: Numbers
    high: Numbers
    replicates: NDArray[np.float64]
    units: int | None = None

    @classmethod
    def of(cls, value: Numbers, replicates: NDArray[np.float64], units: int | None = None) -> "Estimate":
        """The percentile interval of bootstrap replicates, wider for few units; replicates without data (NaN) are left out."""
        percentile = np.nanpercentile if np.isnan(replicates).any() else np.percentile
        with warnings.catch_warnings():  # where nothing was measured, NaN is the answer and needs no warning
            warnings.simplefilter("ignore", RuntimeWarning)
            low, high = percentile(replicates, (2.5, 97.5), axis=0)
        wider = widened(units)
        if wider != 1:
            low, high = value - wider * (value - low), value + wider * (high - value)
        return cls(value, low, high, replicates, units)

    @classmethod
    def from_record(cls, record: "Estimate | Mapping[str, Any]") -> "Estimate":
        """An estimate as :mod:`helpers.record.results` keeps it (without replicates); an Estimate is returned as it is."""
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
        return Estimate(self.value[index], self.low[index], self.high[index], self.replicates[:, *index], self.units)

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
        return f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"


def widened(units: int | None) -> float:
    """What the half-widths of a percentile interval are multiplied by, so that few documents do not promise too much.

    A bootstrap over n units underestimates the variance by (n - 1) / n, and takes the normal quantile where Student's with
    n - 1 degrees of freedom is due: with 5 documents, 95 % intervals hold the truth in 86 % of samples. The product of both
    corrections is that of Hesterberg's expanded percentile interval (2015), applied to the ends. From :data:`FEW` units on it is 1:
    the bootstrap keeps within two points of its promise.
    """
    if units is None or units >= FEW:
        return 1.0
    return (
        float(np.sqrt(units / (units - 1)) * stats.t.ppf(0.975, units - 1) / stats.norm.ppf(0.975))
        if units > 1
        else 1.0
    )


def _fewer(*estimates: Estimate) -> int | None:
    """The units of the estimate that has the fewest."""
    return min((one.units for one in estimates if one.units is not None), default=None)


def stack(estimates: Sequence[Estimate]) -> Estimate:
    """Estimates of one shape as one, with a new first axis; without replicates where their numbers differ."""
    value, low, high = (np.stack([getattr(one, end) for one in estimates]) for end in ("value", "low", "high"))
    if len({len(one.replicates) for one in estimates}) > 1:
        return Estimate(value, low, high, np.empty((0, *value.shape)), _fewer(*estimates))
    replicates = np.stack([one.replicates for one in estimates], axis=1)
    return Estimate(value, low, high, replicates, _fewer(*estimates))


def percent(estimate: Estimate | Mapping[str, Any], spec: str = ".0f") -> str:
    """A fresh or recorded estimate in per cent, for a table: ``78 [71, 85]``; the interval carries no plus signs."""
    found = Estimate.from_record(estimate)
    ends = spec.lstrip("+")
    return f"{100 * found.value:{spec}} [{100 * found.low:{ends}}, {100 * found.high:{ends}}]"


def over(
    values: Float[np.ndarray, "row *rest"], documents: Sequence[int] | None = None, *, seed: int = 0
) -> Estimate:
    """Mean over rows with a bootstrap over documents; NaN marks a row without a value, and values from 0 to 1 are shares.

    Args:
        documents: number of the document of each row; by default each row is one.
    """
    known = np.isfinite(values)
    sums = StreamingMean(values.shape[1:], seed=seed)
    numbers = np.asarray(range(len(values)) if documents is None else documents)
    measured = known.reshape(len(values), -1).any(1)
    sums.add(numbers[measured].tolist(), np.where(known, values, 0)[measured], known[measured].astype(float))
    found = sums.estimate()
    return found.within(0.0, 1.0) if ((values[known] >= 0) & (values[known] <= 1)).all() else found


def ratio(sums: Float[np.ndarray, "sentence 2"], *, replicates: int = REPLICATES, seed: int = 0) -> Estimate:
    """Sum of the first column over sum of the second, with a bootstrap over the rows (sentences); a share where none exceeds the other."""
    counts = np.random.default_rng(seed).poisson(1.0, (replicates, len(sums)))
    drawn = counts @ sums
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.float64(sums[:, 0].sum() / sums[:, 1].sum())
        found = Estimate.of(value, drawn[:, 0] / drawn[:, 1], int((sums[:, 1] > 0).sum()))
    return found.within(0.0, 1.0) if ((sums[:, 0] >= 0) & (sums[:, 0] <= sums[:, 1])).all() else found


class StreamingMean:
    """Ratios of sums over documents, with a Poisson bootstrap over documents.

    Args:
        shape: shape of one measurement, usually (layer, head, statistic).
        denominators: shape of the denominators, of the same length, with 1 where they do not differ, such
            as (layer, 1, statistic); default: ``shape``.
        replicates: bootstrap replicates kept (memory: 8 bytes for each number and replicate).
        seed: of the bootstrap.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        denominators: tuple[int, ...] | None = None,
        replicates: int = REPLICATES,
        seed: int = 0,
    ) -> None:
        self.seed = seed
        self.documents: set[int] = set()
        self.numerator = np.zeros((1 + replicates, *shape))  # row 0 counts every document once
        self.denominator = np.zeros((1 + replicates, *(denominators or shape)))

    def add(
        self,
        documents: Sequence[int],
        numerators: NDArray[np.floating],
        denominators: NDArray[np.floating],
        at: tuple[int | slice, ...] = (),
    ) -> None:
        """Add the sums of a batch.

        Args:
            documents: number of the document that each row belongs to; the unit that is resampled.
            numerators, denominators: [row, ...], each of its own shape, or of the part of it at ``at``.
            at: the part of the measurement to add to, such as ``(layer,)``.
        """
        if not len(documents):
            return
        replicates = len(self.numerator) - 1
        self.documents.update(documents)
        counts = np.stack([_counts(self.seed, d, replicates) for d in documents], axis=1)
        self.numerator[:, *at] += np.tensordot(counts, np.asarray(numerators, np.float64), axes=1)
        self.denominator[:, *at] += np.tensordot(counts, np.asarray(denominators, np.float64), axes=1)

    def empty(self) -> "StreamingMean":
        """One of the same shape and seed that has seen nothing."""
        made = copy.copy(self)
        made.documents = set()
        made.numerator, made.denominator = np.zeros_like(self.numerator), np.zeros_like(self.denominator)
        return made

    def absorb(self, other: "StreamingMean") -> None:
        """Add another's sums to these; both must have the same shape and seed and cover different data."""
        if (self.numerator.shape, self.seed) != (other.numerator.shape, other.seed):
            raise ValueError("Only measurements of the same shape, replicates and seed can be added up.")
        self.documents |= other.documents
        self.numerator += other.numerator
        self.denominator += other.denominator

    def estimate(self) -> Estimate:
        """Value and interval of every ratio; NaN where the denominator is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = self.numerator / self.denominator
        return Estimate.of(ratios[0], ratios[1:], len(self.documents))


@lru_cache(maxsize=512)
def _counts(seed: int, document: int, replicates: int) -> NDArray[np.float64]:
    """How often each replicate counts a document; first the 1 of the estimate itself."""
    draws = np.random.default_rng([seed, document]).poisson(1.0, replicates)
    return np.concatenate(([1.0], draws))


class Additive:
    """An accumulator whose work can be cut into parts: observers that inherit it are sharded by :func:`helpers.engine.attention.sweep`.

    A part is measured by a copy (:meth:`part`) that starts at nothing, knows only its own inputs, and may travel to another
    process; its sums are then added to the whole (:meth:`absorb`), part after part in the order of the inputs. Attributes
    whose name begins with ``_`` live within a batch and do not travel; ``encoder`` does not either and is set again.

    Class attributes:
        ADDED: names of the attributes that add up: numbers, arrays, :class:`StreamingMean`, tuples and dicts of them.
        PER_INPUT: names of sequences with one item for each input.
    """

    ADDED: ClassVar[tuple[str, ...]] = ()
    PER_INPUT: ClassVar[tuple[str, ...]] = ()

    def part(self, inputs: range) -> "Additive":
        """An empty accumulator for some of the inputs, which keep their numbers."""
        made = copy.copy(self)
        for name in self.ADDED:
            setattr(made, name, _empty(getattr(self, name)))
        for name in self.PER_INPUT:
            items = getattr(self, name)
            setattr(made, name, {number: items[number] for number in inputs})
        return made

    def attach(self, encoder: Any) -> None:
        """Called where a part begins, with the encoder of the process it is in."""
        if "encoder" in vars(self):
            self.encoder = encoder

    def absorb(self, part: "Additive") -> None:
        """Add what a part has seen."""
        for name in self.ADDED:
            setattr(self, name, _together(getattr(self, name), getattr(part, name)))

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return state | {"encoder": None} if "encoder" in state else state


class InRows(Additive):
    """An accumulator that keeps a row, or several, of each input instead of sums; a part holds the rows of its own inputs.

    Attributes:
        starts: place of each input's first row, and the end of the last.
        first: number of the first input that has rows here.

    Class attributes:
        ROWS: names of the arrays, each with the axis that counts rows.
    """

    ROWS: ClassVar[tuple[tuple[str, int], ...]] = ()
    starts: NDArray[np.int64]
    first: int = 0

    def rows(self, number: int) -> slice:
        """Where the rows of an input are."""
        return slice(*self.starts[number - self.first : number - self.first + 2])

    def _range(self, inputs: range, axis: int, ndim: int) -> tuple[slice, ...]:
        at = [slice(None)] * ndim
        at[axis] = slice(self.starts[inputs.start - self.first], self.starts[inputs.stop - self.first])
        return tuple(at)

    def part(self, inputs: range) -> "InRows":
        """An empty accumulator with rows for some of the inputs."""
        made = super().part(inputs)
        for name, axis in self.ROWS:
            array = getattr(self, name)
            setattr(made, name, array[self._range(inputs, axis, array.ndim)].copy())
        made.starts = self.starts[inputs.start : inputs.stop + 1] - self.starts[inputs.start]
        made.first = inputs.start
        return made

    def absorb(self, part: "InRows") -> None:
        """Put the rows of a part in their place, and add its sums."""
        super().absorb(part)
        inputs = range(part.first, part.first + len(part.starts) - 1)
        for name, axis in self.ROWS:
            array = getattr(self, name)
            array[self._range(inputs, axis, array.ndim)] = getattr(part, name)


def _empty(sums: Any) -> Any:
    """The same shape of sums, at nothing."""
    if isinstance(sums, StreamingMean):
        return sums.empty()
    if isinstance(sums, Mapping):
        return {name: _empty(value) for name, value in sums.items()}
    if isinstance(sums, tuple | list):
        return type(sums)(map(_empty, sums))
    return np.zeros_like(sums) if isinstance(sums, np.ndarray) else type(sums)()


def _together(one: Any, other: Any) -> Any:
    """Both sums added, in the place of the first where it has one."""
    if isinstance(one, StreamingMean):
        one.absorb(other)
        return one
    if isinstance(one, Mapping):
        return {name: _together(value, other[name]) for name, value in one.items()}
    if isinstance(one, tuple | list):
        return type(one)(_together(a, b) for a, b in zip(one, other, strict=True))
    return one + other
