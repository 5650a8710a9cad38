"""Sums that are kept while batches stream by, for the chapters that do not keep an array a text yet.

The Poisson bootstrap over documents (Chamandy et al. 2012) of :mod:`helpers.stats`, in one pass: each document is counted Poisson(1) times
in each of R replicate sums. Neither the order nor the batch size nor the number of workers changes a result.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from helpers.stats import REPLICATES, Estimate, resampled


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
        self.documents: dict[int, NDArray[np.bool_]] = {}  # document -> which denominators it has
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
        counts = resampled(documents, self.seed)[: len(self.numerator)]
        denominators = np.asarray(denominators, np.float64)
        for document, found in zip(documents, denominators, strict=True):
            there = self.documents.setdefault(document, np.zeros(self.denominator.shape[1:], bool))
            there[at] |= found > 0
        self.numerator[:, *at] += np.tensordot(counts, np.asarray(numerators, np.float64), axes=1)
        self.denominator[:, *at] += np.tensordot(counts, denominators, axes=1)

    def empty(self) -> "StreamingMean":
        """One of the same shape and seed that has seen nothing."""
        made = copy.copy(self)
        made.documents = {}
        made.numerator, made.denominator = np.zeros_like(self.numerator), np.zeros_like(self.denominator)
        return made

    def absorb(self, other: "StreamingMean") -> None:
        """Add another's sums to these; both must have the same shape and seed and cover different data."""
        if (self.numerator.shape, self.seed) != (other.numerator.shape, other.seed):
            raise ValueError("Only measurements of the same shape, replicates and seed can be added up.")
        for document, found in other.documents.items():
            self.documents[document] = self.documents.get(document, False) | found
        self.numerator += other.numerator
        self.denominator += other.denominator

    def estimate(self) -> Estimate:
        """Value and interval of every ratio; NaN where the denominator is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = self.numerator / self.denominator
        units = np.sum(list(self.documents.values()), 0) if self.documents else 0
        return Estimate.of(ratios[0], ratios[1:], np.broadcast_to(units, ratios.shape[1:]))


class Additive:
    """An accumulator whose work can be cut into parts: observers that inherit it are sharded by :func:`helpers.engine.sweeps.sweep`.

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
