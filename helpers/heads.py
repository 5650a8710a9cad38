"""The name of an attention head: ``Head(3, 1)`` counts from 1, as people do, and indexes arrays, which count from 0."""

from collections.abc import Sequence
from typing import Any

import numpy as np


class Head(tuple[int, int]):
    """The head ``3-1``: the tuple ``(2, 0)`` of layer and head from 0, so that ``array[head]`` is its cell of a [layer, head, ...] array.

    Raises:
        ValueError: for a layer or head below 1.
    """

    __slots__ = ()

    def __new__(cls, layer: int, head: int) -> "Head":
        """Layer and head counted from 1."""
        if layer < 1 or head < 1:
            raise ValueError(f"Layers and heads count from 1; there is no head {layer}-{head}.")
        return super().__new__(cls, (int(layer) - 1, int(head) - 1))

    @classmethod
    def of(cls, indices: Sequence[int]) -> "Head":
        """The head at two indices, ``(layer, head)``, counted from 0."""
        layer, head = indices
        return cls(layer + 1, head + 1)

    @classmethod
    def best(cls, numbers: Any) -> "Head":
        """The head with the largest number of an array [layer, head], or of an estimate of such; NaN is no number."""
        numbers = np.asarray(getattr(numbers, "value", numbers))
        return cls.of(np.unravel_index(np.nanargmax(numbers), numbers.shape))

    def within(self, encoder: Any) -> "Head":
        """This head, or the last layer or head that a smaller model has."""
        return Head(min(self[0] + 1, encoder.layers), min(self[1] + 1, encoder.heads))

    def __getnewargs__(self) -> tuple[int, int]:
        return self[0] + 1, self[1] + 1

    def __str__(self) -> str:
        return f"{self[0] + 1}-{self[1] + 1}"

    def __repr__(self) -> str:
        return f"Head({self[0] + 1}, {self[1] + 1})"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)
