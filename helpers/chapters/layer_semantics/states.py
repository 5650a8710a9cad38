"""Hidden states of all layers, kept on disk, and what the probes of chapter 12 read of them."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from helpers import attention, controls, parallel, places
from helpers.chapters.layer_semantics.texts import Context, Target
from helpers.encoders import Encoder
from helpers.tokens import batches


@dataclass(frozen=True, eq=False)
class States:
    """Hidden states of all tokens of some contexts, special tokens left out, read from disk as they are needed.

    Attributes:
        values: memory-mapped, half precision; layer 0 is the output of the embeddings.
        start: for each context, the row of each word's first token, and after the last word the row that follows.
        file: where they lie.
    """

    values: Float[np.ndarray, "token layer width"]
    start: tuple[NDArray[np.int64], ...]
    file: Path

    @cached_property
    def scale(self) -> Float[np.ndarray, "layer"]:
        """Spread of each layer: root mean square distance of (at most 4,096) tokens from their mean, per dimension."""
        rows = np.linspace(0, len(self.values) - 1, min(len(self.values), 4096)).astype(int)
        return self.values[rows].astype(np.float64).std(0).__pow__(2).mean(-1) ** 0.5


def stream(encoder: Encoder, found: Sequence[Context], *, batch_size: int = 8, shuffled: int | None = None) -> States:
    """Run contexts through the encoder once and keep all layers' states in a file; use the file if it is there.

    The file is in the user's cache, named after the weights and the words, and is there only when it is whole.

    Args:
        shuffled: seed with which every head's scores are shuffled (:func:`helpers.controls.shuffling`); None leaves
            the heads as they are.
    """
    inputs = [list(c.words) for c in found]
    sizes = _tokens_of_words(encoder, inputs)
    ends = np.cumsum([sum(s) for s in sizes])
    start = tuple(np.cumsum([end - sum(s), *s]) for end, s in zip(ends, sizes, strict=True))
    how = "half" if shuffled is None else f"half{controls.SHUFFLED} {shuffled}"
    digest = hashlib.sha256(json.dumps([encoder.sha256, how, inputs]).encode()).hexdigest()[:24]
    file = places.cache() / "states" / f"{encoder.name.split('/')[-1]}-{digest}.npy"
    values = _opened(file, int(ends[-1]))
    if values is None:
        _write(encoder, inputs, start, file, batch_size, shuffled)
        values = np.load(file, mmap_mode="r")
    return States(values, start, file)


def _tokens_of_words(encoder: Encoder, inputs: Sequence[list[str]]) -> list[list[int]]:
    """How many tokens each word of each context has."""
    sizes: list[list[int]] = [[] for _ in inputs]
    for batch in batches(encoder, inputs, batch_size=64):
        for row, number in enumerate(batch.index):
            units = batch.unit[row][batch.mask[row] & ~batch.special[row]].cpu().numpy()
            sizes[number] = np.unique(units, return_counts=True)[1].tolist()
            if len(sizes[number]) != len(inputs[number]):
                raise ValueError(
                    f"Context {number} has {len(inputs[number])} words, but {len(sizes[number])} of them "
                    "have tokens; make contexts with layer_semantics.contexts, which leaves such words out."
                )
    return sizes


def _opened(file: Path, rows: int) -> np.ndarray | None:
    """The states, if the file is there and whole."""
    try:
        values = np.load(file, mmap_mode="r")
    except (OSError, ValueError, EOFError):  # missing, empty, or shorter than its own header says
        return None
    return values if values.ndim == 3 and len(values) == rows and values.dtype == np.float16 else None


def _write(
    encoder: Encoder,
    inputs: Sequence[list[str]],
    start: Sequence[NDArray[np.int64]],
    file: Path,
    batch_size: int,
    shuffled: int | None,
) -> None:
    size = 6 * batch_size  # contexts that are sorted by length together
    parts = ((first, inputs[first : first + size]) for first in range(0, len(inputs), size))
    with places.atomic_write(file) as scratch, tqdm(total=len(inputs), desc=f"{encoder.name}: contexts") as progress:
        values = None
        for found in parallel.each(encoder, _states, parts, batch_size, shuffled):
            for number, states in found:
                if values is None:
                    shape = (int(start[-1][-1]), *states.shape[1:])
                    values = np.lib.format.open_memmap(scratch, mode="w+", dtype=np.float16, shape=shape)
                values[start[number][0] : start[number][-1]] = states
            progress.update(len(found))
        values.flush()


@torch.inference_mode()
def _states(
    encoder: Encoder, part: tuple[int, Sequence[list[str]]], batch_size: int, shuffled: int | None
) -> list[tuple[int, Float[np.ndarray, "token layer width"]]]:
    """Numbers of a part's contexts, each with the states of its tokens."""
    first, inputs = part
    found = []
    for batch in batches(encoder, inputs, batch_size=batch_size, first=first):
        edit = None if shuffled is None else controls.shuffling(batch, shuffled)
        with attention.tap(encoder, edit=edit):
            layers = torch.stack(encoder.model(**batch.inputs, output_hidden_states=True).hidden_states, 2)
        plain = batch.mask & ~batch.special
        found += [(n, layers[row][plain[row]].half().cpu().numpy()) for row, n in enumerate(batch.index)]
    return found


@dataclass(frozen=True, eq=False)
class Part:
    """The targets of one task in one part of the corpus, and where their tokens are.

    Attributes:
        labels: names of the classes.
        truth: [target], index of the right class; -1 if the training part does not have it.
        document: [target], number of its document.
        low, high: [role, target], rows of the first token of each span, and after the last.
    """

    states: States
    targets: tuple[Target, ...]
    labels: tuple[str, ...]
    truth: NDArray[np.int64]
    document: NDArray[np.int64]
    low: Int[np.ndarray, "role target"]
    high: Int[np.ndarray, "role target"]

    def inputs(self, chosen: NDArray[np.int64]) -> "list[tuple[Tensor, Tensor]]":
        """For each role the states [layer, token, width] of the chosen targets' tokens, and whose each token is, [token]."""
        return [self._tokens(low[chosen], high[chosen]) for low, high in zip(self.low, self.high, strict=True)]

    def _tokens(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        size = high - low
        rows = np.repeat(low - np.cumsum(size) + size, size) + np.arange(size.sum())
        values = torch.from_numpy(np.asarray(self.states.values).take(rows, axis=0)).transpose(0, 1)
        owner = torch.from_numpy(np.repeat(np.arange(len(size)), size))
        return values.to(torch.float32, memory_format=torch.contiguous_format), owner


def part(states: States, found: Sequence[Context], chosen: Sequence[Target], labels: Sequence[str]) -> Part:
    """Make ready for a probe what :func:`targets` has chosen; ``labels`` are those of the training part."""
    place = {label: n for n, label in enumerate(labels)}
    spans = np.array([[(states.start[t.context][a], states.start[t.context][b]) for a, b in t.spans] for t in chosen])
    truth = np.array([place.get(t.label, -1) for t in chosen])
    document = np.array([found[t.context].document for t in chosen])
    return Part(states, tuple(chosen), tuple(labels), truth, document, spans[..., 0].T, spans[..., 1].T)
