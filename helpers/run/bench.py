"""What measuring costs: the figures of the page about long runs, and those of chapter 11 about pruned models.

Both are timed on one thread, in processor time, which a busy machine does not change much. The stored figures are renewed by
``bench.keep_passes(bench.passes("minilm"), "a machine, in words")`` and ``bench.keep_pruning(bench.pruning("minilm"))``.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from timeit import timeit
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from jaxtyping import Float
from tqdm import trange

from helpers import attention, corpora, encoders, parallel, places, results, tokens
from helpers.chapters import distance_features, divergence_map, head_importance
from helpers.corpora.records import Segment
from helpers.measurements import surface
from helpers.run.templates import template

PASSES = {
    "forward": "forward pass, nothing observed",
    "surface_patterns": "chapter 02, all statistics",
    "distance_features": "chapter 08, distance features",
    "divergence_map": "chapter 07, all pairs of heads",
}
"""The passes that are timed, and their names on the page about long runs."""


def timed(rounds: int, *runs: Callable[[], object]) -> Float[np.ndarray, "run round"]:
    """Processor seconds of each run in each round; every round runs all of them once, and a round before the first warms up."""
    once = partial(timeit, timer=time.process_time, number=1)
    with parallel.one_thread(), torch.inference_mode():
        seconds = [list(map(once, runs)) for _ in trange(1 + rounds, desc="rounds", leave=False)]
    return np.transpose(seconds[1:])


def first(count: int) -> list[Segment]:
    """The first segments of the encyclopedia."""
    return corpora.segments(corpora.read("encyclopedia"))[:count]


def passes(model: str = "minilm", *, rounds: int = 3) -> dict[str, Any]:
    """Time :data:`PASSES` over 16 segments of 128 tokens, reading the text into tokens included.

    Returns:
        ``model``, its ``layers`` and ``heads``; ``rates``: pass -> tokens a second, one for each round.
    """
    encoder, segments = encoders.load(model, device="cpu"), first(16)
    texts = [segment.texts for segment in segments]

    def forward() -> None:
        for batch in tokens.batches(encoder, texts, batch_size=4, max_length=128, truncate=True):
            encoder.model(**batch.inputs)

    look = partial(attention.measure, encoder, texts, longest=128)
    statistics, features, pairs = (
        partial(look, chapter.look) for chapter in (surface, distance_features, divergence_map)
    )
    runs = (forward, statistics, features, pairs)
    rates = np.round(16 * 128 / timed(rounds, *runs), 1).tolist()
    found = {"model": model, "layers": encoder.layers, "heads": encoder.heads}
    return found | {"rates": dict(zip(PASSES, rates, strict=True))}


def keep_passes(found: Mapping[str, Any], machine: str) -> Path:
    """Keep :func:`passes` in ``data/results/costs.json``, and write the table that the page includes beside it.

    Args:
        machine: what it was measured on, in plain words.
    """
    file = places.book_data() / "results" / "costs.json"
    kept = json.loads(file.read_text("utf-8")) | {"machine": machine, "segment": 128}
    kept["models"][found["model"]] = {name: found[name] for name in ("layers", "heads", "rates")}
    places.write(file, json.dumps(kept, indent=1, sort_keys=True) + "\n")
    places.write(file.with_suffix(".md"), template("costs.md.j2").render(kept, passes=PASSES, median=np.median))
    return file


def pruning(model: str = "minilm", *, rounds: int = 9) -> dict[str, Any]:
    """Time forward passes of models whose heads are really gone: none, some of every layer, all of the last layers.

    Returns:
        ``inputs``, the shapes of what is timed, and ``variants``: name -> ``removed``, the share of heads, parameters (all, layers,
        attention), and the median milliseconds of a forward pass of one input and of a batch.
    """
    encoder = encoders.load(model, device="cpu")
    layers, heads = encoder.layers, encoder.heads
    removed = {"none": []}
    for count in [round(share * heads) for share in (1 / 12, 1 / 4, 1 / 2, 3 / 4, 11 / 12, 1)]:
        gone = [(layer, head) for layer in range(layers) for head in range(count)]
        removed[f"{count} of {heads} heads of every layer"] = gone
    for count in sorted({max(1, round(share * layers)) for share in (1 / 6, 1 / 3, 1 / 2)}):
        gone = [(layer, head) for layer in range(layers - count, layers) for head in range(heads)]
        removed[f"all heads of {count} of {layers} layers"] = gone
    pruned = [head_importance.prune(encoder, gone) for gone in removed.values()]
    both = [
        tokens.encode(encoder, [segment.texts for segment in first(n)], max_length=128, truncate=True).inputs
        for n in (1, 16)
    ]
    seconds = timed(rounds, *(partial(one.model, **given) for one in pruned for given in both))
    variants = {}
    for (name, gone), one, times in zip(removed.items(), pruned, np.median(seconds, 1).reshape(-1, 2), strict=True):
        variants[name] = {"removed": len(gone) / (layers * heads), **head_importance.sizes(one)}
        variants[name] |= {"one_ms": 1e3 * times[0], "batch_ms": 1e3 * times[1]}
    shapes = {size: list(given["input_ids"].shape) for size, given in zip(("one", "batch"), both, strict=True)}
    return {"model": model, "rounds": rounds, "inputs": shapes, "variants": variants}


def keep_pruning(found: Mapping[str, Any]) -> Path:
    """Keep :func:`pruning` in ``data/results``, where chapter 11 reads it."""
    values = {name: value for name, value in found.items() if name != "model"}
    encoder = encoders.load(found["model"], device="cpu")
    with patch.dict(os.environ, {"BOOK_RESULTS": str(places.book_data() / "results")}):
        return results.record("pruning_speed", values, encoder=encoder, corpus=None, profile="bench", parameters={})
