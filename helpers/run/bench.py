"""Benchmarks whose numbers the book quotes: ``python -m helpers bench tap``, ``… divergence``, ``… passes``, ``… sweep``, ``… pruning``.

Each returns its numbers by name, with the ``model`` that they belong to; :func:`as_text` shows any of them. All run on one thread and
count processor time, which a busy machine does not change much.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import yaml
from jaxtyping import Float
from tqdm import tqdm

from helpers import attention, corpora, encoders, places, results, tasks, tokens
from helpers.chapters import distance_features, divergence_map, head_importance, no_op
from helpers.engine import shards, sweeps
from helpers.measurements import surface
from helpers.run.templates import template

PASSES = {
    "forward": "forward pass, nothing observed",
    "surface_patterns": "chapter 02, all statistics",
    "no_op": "chapter 03, norms",
    "distance_features": "chapter 08, distance features",
    "divergence_map": "chapter 07, all pairs of heads",
}
"""The passes that are timed, and their names on the page about long runs."""


def timed(rounds: int, *runs: Callable[[], object]) -> Float[np.ndarray, "run round"]:
    """Processor seconds of each run in each round; every round runs all of them once, and a round before the first warms up."""
    stamps = []
    with shards.one_thread(), torch.inference_mode():
        for _ in tqdm(range(1 + rounds), desc="rounds", leave=False):
            stamps.append([time.process_time()])
            for run in runs:
                run()
                stamps[-1].append(time.process_time())
    return np.diff(stamps[1:]).T


def compared(seconds: Float[np.ndarray, "2 round"], slow: str, fast: str) -> dict[str, float]:
    """The medians of two runs, in seconds, and the median over rounds of the first divided by the second."""
    return {slow: np.median(seconds[0]), fast: np.median(seconds[1]), "ratio": np.median(seconds[0] / seconds[1])}


def texts(count: int) -> list[tuple[str, str]]:
    """The first segments of the encyclopedia."""
    return [segment.texts for segment in corpora.segments(corpora.read("encyclopedia"))[:count]]


def passes(model: str = "minilm", *, rounds: int = 3, names: Iterable[str] = PASSES) -> dict[str, Any]:
    """Time the passes of some chapters over 16 segments of 128 tokens, reading the text into tokens included.

    Returns:
        ``layers`` and ``heads`` of the model; ``rates``: pass -> tokens a second, one for each round.
    """
    encoder, documents = encoders.load(model, device="cpu"), range(16)
    batches = tokens.Batches(encoder, texts(16), batch_size=4, max_length=128, overlong="truncate")
    halves = distance_features.random_halves(16)
    observers = {
        "no_op": partial(no_op.NormSums, encoder, documents),
        "distance_features": partial(distance_features.Accumulator, encoder, documents, halves),
        "divergence_map": partial(divergence_map.Accumulator, encoder, documents),
    }

    def run(name: str) -> None:
        if name == "forward":
            for batch in batches:
                encoder.model(**batch.inputs)
        elif name == "surface_patterns":
            attention.measure(encoder, texts(16), surface.look, longest=128)
        else:
            sweeps.sweep(encoder, batches, observers[name]())

    seconds = timed(rounds, *(partial(run, name) for name in names))
    rates = {name: np.round(128 * 16 / row, 1).tolist() for name, row in zip(names, seconds, strict=True)}
    return {"model": model, "layers": encoder.layers, "heads": encoder.heads, "rates": rates}


def tap(model: str = "minilm", *, rounds: int = 30) -> dict[str, Any]:
    """Time chapter 02's pass, all its statistics, against the bare forward pass; ``ratio`` is what observing multiplies the time by."""
    found = passes(model, rounds=rounds, names=("forward", "surface_patterns"))
    forward, observed = map(np.array, found["rates"].values())
    return found | {"ratio": np.median(forward / observed)}


def divergence(model: str = "minilm", *, rounds: int = 10) -> dict[str, Any]:
    """Time all divergences of 144 maps of 128 tokens, as chapter 07 computes them (``ours_s``), against :func:`loop` (``loop_s``)."""
    encoder = encoders.load(model, device="cpu")
    batch = tokens.encode(encoder, texts(2), max_length=128, overlong="truncate")
    maps = attention.maps(encoder, batch).flatten(0, 2)[:144].contiguous()
    seconds = timed(rounds, partial(loop, maps.numpy()), partial(divergence_map.divergences, maps))
    return {"model": model, "maps": list(maps.shape), **compared(seconds, "loop_s", "ours_s")}


def loop(maps: Float[np.ndarray, "head query key"]) -> Float[np.ndarray, "head head"]:
    """Jensen–Shannon divergences summed over tokens, each head against all, smoothed as in Clark et al.'s release: what one writes first."""
    even = np.float32(0.001 / maps.shape[-1]) + np.float32(0.999) * maps
    found = np.zeros((len(maps), len(maps)))
    for head, own in enumerate(even):
        mixture = (own + even) / 2
        found[head] = (-own * np.log(mixture / own) - even * np.log(mixture / even)).sum((-2, -1)) / 2
    return found


def sweep(model: str = "minilm", *, rounds: int = 3) -> dict[str, Any]:
    """Time the removal of every head and layer of a model with its adapter for paraphrases, on four pairs of sentences.

    Returns:
        ``naive_s``, one forward pass for each removal, and ``shared_s``, the same numbers from
        :class:`helpers.chapters.head_importance.sweep.Sweep`, with their ``ratio``.
    """
    encoder = encoders.load(model, task="paraphrase", device="cpu")
    job = head_importance.Job(encoder, tasks.examples("paraphrase", "encyclopedia", limit=4), batch_size=4)
    seconds = timed(rounds, *(partial(head_importance.remove_each, job, fast=fast) for fast in (False, True)))
    return {"model": model, "rounds": rounds, **compared(seconds, "naive_s", "shared_s")}


def pruning(model: str = "minilm", *, rounds: int = 9) -> dict[str, Any]:
    """Time forward passes of models whose heads are really gone: none, some of every layer, all of the last layers.

    Returns:
        ``inputs``, the shapes of what is timed, and ``variants``: name -> ``removed``, the share of heads, parameters (all, layers,
        attention), and the median milliseconds of a forward pass of one input and of a batch.
    """
    encoder = encoders.load(model, device="cpu")
    layers, heads = encoder.layers, encoder.heads
    removed: dict[str, list[tuple[int, int]]] = {"none": []}
    for count in [round(share * heads) for share in (1 / 12, 1 / 4, 1 / 2, 3 / 4, 11 / 12, 1)]:
        gone = [(layer, head) for layer in range(layers) for head in range(count)]
        removed[f"{count} of {heads} heads of every layer"] = gone
    for count in sorted({max(1, round(share * layers)) for share in (1 / 6, 1 / 3, 1 / 2)}):
        gone = [(layer, head) for layer in range(layers - count, layers) for head in range(heads)]
        removed[f"all heads of {count} of {layers} layers"] = gone
    pruned = {name: head_importance.prune(encoder, gone) for name, gone in removed.items()}
    inputs = {
        size: tokens.encode(encoder, texts(count), max_length=128, overlong="truncate").inputs
        for size, count in (("one", 1), ("batch", 16))
    }
    runs = [partial(pruned[name].model, **inputs[size]) for name in pruned for size in inputs]
    milliseconds = 1e3 * np.median(timed(rounds, *runs), 1).reshape(-1, 2)
    variants = {
        name: {"removed": len(removed[name]) / (layers * heads), **head_importance.sizes(pruned[name])}
        | dict(zip(("one_ms", "batch_ms"), times, strict=True))
        for name, times in zip(removed, milliseconds, strict=True)
    }
    shapes = {size: list(given["input_ids"].shape) for size, given in inputs.items()}
    return {"model": model, "rounds": rounds, "inputs": shapes, "variants": variants}


def keep_passes(result: Mapping[str, Any], machine: str) -> Path:
    """Keep what :func:`passes` measured in ``data/results/costs.json``, and write the page that the book includes beside it.

    Args:
        machine: what it was measured on, in plain words.
    """
    file = places.book_data() / "results" / "costs.json"
    kept = json.loads(file.read_text("utf-8")) | {"machine": machine, "segment": 128}
    kept["models"][result["model"]] = {name: result[name] for name in ("layers", "heads", "rates")}
    places.write(file, json.dumps(kept, indent=1, sort_keys=True) + "\n")
    places.write(file.with_suffix(".md"), template("costs.md.j2").render(kept, passes=PASSES, median=np.median))
    return file


def record(result: Mapping[str, Any], name: str, model: str) -> Path:
    """Keep a benchmark's numbers in ``data/results``, where chapters read them: ``results.runs(name, profile="bench")``."""
    values = {key: value for key, value in result.items() if key != "model"}
    where, encoder = str(places.book_data() / "results"), encoders.load(model, device="cpu")
    with patch.dict(os.environ, {"BOOK_RESULTS": where}):
        return results.record(name, values, encoder=encoder, corpus=None, profile="bench", parameters={})


def as_text(result: Mapping[str, Any]) -> str:
    """The benchmark as lines to read."""
    return yaml.safe_dump(results.plain(result), sort_keys=False, allow_unicode=True)
