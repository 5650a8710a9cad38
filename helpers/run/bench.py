"""Benchmarks whose numbers the book quotes: ``python -m helpers bench tap``, ``… divergence``, ``… passes``, ``… sweep``, ``… pruning``, ``… atlas``.

Each gives its numbers by name, and says what they are of; :func:`as_text` shows any of them. Times are medians over rounds that run
everything compared once.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from tqdm import tqdm
from transformers import BertConfig, BertModel

from helpers import corpora, places
from helpers.chapters import distance_features, divergence_map, head_importance, no_op
from helpers.chapters.surface_patterns import measures as surface_patterns
from helpers.engine import adapters, attention, encoders, shards, tokens
from helpers.engine.tasks import Example
from helpers.record import results
from helpers.run.atlas.timing import atlas as atlas  # one of the benchmarks
from helpers.run.templates import template

Found = dict[str, Any]
"""What a benchmark has found: ``model`` and other words that say what was timed, and numbers."""


def tap(model: str = "minilm", *, rounds: int = 30, rows: int = 16, length: int = 128) -> Found:
    """Time the tap with chapter 02's accumulator against the bare eager forward pass, interleaved.

    Returns:
        ``forward_ms``, one eager forward pass with nothing observed, and ``observed_ms``, the same with all statistics of
        chapter 02 computed inside; ``ratio`` of the second to the first; ``peak_mib``, peak resident memory (MiB) of a
        process that measures so many segments.
    """
    encoder = encoders.load(model)
    segments = _segments(rows)
    batches = tokens.Batches(
        encoder, [s.texts for s in segments], batch_size=rows, max_length=length, overlong="truncate"
    )
    batch = next(iter(batches))
    if tuple(batch.ids.shape) != (rows, length):
        raise ValueError(f"The benchmark needs {rows} x {length} tokens, got {tuple(batch.ids.shape)}.")

    @torch.inference_mode()
    def bare() -> None:
        encoder.model(**batch.inputs)

    accumulator = surface_patterns.Accumulator(encoder, [s.document for s in segments])

    def observed() -> None:
        attention.sweep(encoder, [batch], accumulator)

    return {
        "model": model,
        "batch": f"{rows} x {length} tokens",
        "threads": torch.get_num_threads(),
        **_compared(_interleaved(rounds, observed, bare), "observed_ms", "forward_ms"),
        "peak_mib": {n: _peak_mib(model, n) for n in tqdm((100, 1000), desc="memory", leave=False)},
    }


def _interleaved(
    rounds: int, *runs: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> list[list[float]]:
    """Seconds of each run in each round, a list for each run; a round before the first warms up."""

    def timed(run: Callable[[], object]) -> float:
        start = clock()
        run()
        return clock() - start

    found = [[timed(run) for run in runs] for _ in tqdm(range(1 + rounds), desc="rounds", leave=False)]
    return [list(times) for times in zip(*found[1:], strict=True)]


def _compared(times: Sequence[Sequence[float]], *names: str) -> dict[str, float]:
    """Medians of two runs under their names, in the unit that these end in, and of the first by the second, round by round."""
    medians = {n: statistics.median(t) * (1e3 if n.endswith("_ms") else 1) for n, t in zip(names, times, strict=True)}
    return medians | {"ratio": statistics.median(slow / fast for slow, fast in zip(*times, strict=True))}


def _segments(count: int) -> list[corpora.Segment]:
    """The encyclopedia's segments, over and over, each time as other documents."""
    found = corpora.segments(corpora.read("encyclopedia"))
    documents = 1 + max(s.document for s in found)
    rounds = range(-(-count // len(found)))
    return [replace(s, document=s.document + n * documents) for n in rounds for s in found][:count]


def _peak_mib(model: str, count: int) -> float:
    """Peak resident memory of a fresh process that measures this many segments."""
    code = f"from helpers.run import bench; bench.measure({model!r}, {count})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(model: str, count: int) -> None:
    """Run chapter 02's pass over ``count`` segments and print the process's peak memory in MiB."""
    import resource  # not on Windows

    encoder = encoders.load(model)
    segments = _segments(count)
    batches = tokens.Batches(encoder, [s.texts for s in segments], max_length=128, overlong="truncate")
    accumulator = surface_patterns.Accumulator(encoder, [s.document for s in segments])
    attention.sweep(encoder, batches, accumulator)
    accumulator.result()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(peak / (1024 if sys.platform != "darwin" else 1024**2)))


def divergence(model: str = "minilm", *, rounds: int = 30, heads: int = 144, length: int = 128) -> Found:
    """Time all divergences of 144 maps of 128 tokens against the obvious NumPy loop, interleaved.

    A model with fewer heads shows its maps of several segments.

    Returns:
        ``loop_ms`` of :func:`loop` and ``ours_ms`` of :func:`helpers.chapters.divergence_map.measures.divergences` on the
        same maps; ``ratio`` of the first to the second.
    """
    encoder = encoders.load(model, device="cpu")
    segments = _segments(-(-heads // (encoder.layers * encoder.heads)))
    batch = tokens.encode(encoder, [s.texts for s in segments], max_length=length, overlong="truncate")
    maps = attention.maps(encoder, batch).flatten(0, 2)[:heads].contiguous()
    if tuple(maps.shape) != (heads, length, length):
        raise ValueError(f"The benchmark needs {heads} maps of {length} tokens, got {tuple(maps.shape)}.")
    weights = maps.numpy()
    times = _interleaved(rounds, lambda: loop(weights), lambda: divergence_map.divergences(maps))
    return {
        "model": model,
        "maps": f"{heads} maps of {length} tokens",
        "threads": torch.get_num_threads(),
        **_compared(times, "loop_ms", "ours_ms"),
    }


def loop(maps: Float[np.ndarray, "head query key"]) -> Float[np.ndarray, "head head"]:
    """Jensen–Shannon divergences summed over tokens, each head against all: what one writes first.

    The smoothing (a thousandth of even attention, against ln 0) and the order of the steps are those of Clark et al.'s release.
    """
    found = np.zeros((len(maps), len(maps)))
    even = np.float32(0.001 / maps.shape[-1])
    for head in range(len(maps)):
        one, every = even + np.float32(0.999) * maps[head], even + np.float32(0.999) * maps
        mixture = (one + every) / 2
        terms = -one * np.log(mixture / one) - every * np.log(mixture / every)
        found[head] = (terms / 2).sum(-1).sum(-1)
    return found


# ---------------------------------------------------------------------------------------- passes over a corpus


PASSES: dict[str, str] = {
    "forward": "forward pass, nothing observed",
    "surface_patterns": "chapter 02, all statistics",
    "no_op": "chapter 03, norms",
    "distance_features": "chapter 08, distance features",
    "divergence_map": "chapter 07, all pairs of heads",
}
"""What is timed, and its name on the page about long runs."""


def passes(model: str = "minilm", *, rounds: int = 3, rows: int = 16) -> Found:
    """Time the passes of some chapters on one thread, in segments of 128 tokens.

    Processor time is taken, not time by the clock: for one thread they are the same on a machine that has nothing else to
    do, and on a busy one only the first can be measured.

    Returns:
        ``layers``, ``heads`` and ``parameters`` of the model; ``rates``: pass -> tokens a second, one for each round.
    """
    encoder = encoders.load(model, device="cpu")
    segments = _segments(rows)
    documents = [s.document for s in segments]
    halves = distance_features.random_halves(rows)
    batches = tokens.Batches(encoder, [s.texts for s in segments], batch_size=4, max_length=128, overlong="truncate")
    observers: dict[str, Callable[[], Any]] = {
        "surface_patterns": lambda: surface_patterns.Accumulator(encoder, documents),
        "no_op": lambda: no_op.NormSums(encoder, documents),
        "distance_features": lambda: distance_features.Accumulator(encoder, documents, halves),
        "divergence_map": lambda: divergence_map.Accumulator(encoder, documents),
    }

    @torch.inference_mode()
    def run(name: str) -> None:
        if name in observers:
            attention.sweep(encoder, batches, observers[name]())
        else:
            for batch in batches:
                encoder.model(**batch.inputs)

    with shards.one_thread():
        times = _interleaved(rounds, *(partial(run, name) for name in PASSES), clock=time.process_time)
    rates = {n: [round(128 * rows / t, 1) for t in seconds] for n, seconds in zip(PASSES, times, strict=True)}
    return {
        "model": model,
        "layers": encoder.layers,
        "heads": encoder.heads,
        "parameters": encoder.parameters,
        "rates": rates,
    }


COSTS = Path("data") / "results" / "costs.json"


def keep_passes(result: Found, machine: str, *, root: Path = places.ROOT) -> Path:
    """Keep what was measured, and renew the card that the page about long runs includes.

    Args:
        machine: what it was measured on, in plain words.
    """
    file = root / COSTS
    kept = json.loads(file.read_text("utf-8")) if file.exists() else {"models": {}}
    kept |= {"machine": machine, "segment": 128}
    kept["models"][result["model"]] = {k: v for k, v in result.items() if k != "model"}
    places.write(file, json.dumps(kept, indent=1, sort_keys=True) + "\n")
    places.write(file.with_suffix(".md"), card(kept))
    return file


def card(kept: Mapping[str, Any]) -> str:
    """The measured figures as a page: tokens a second, and what a thousand million tokens take."""
    models = kept["models"]
    names = sorted(models, key=lambda name: models[name]["layers"])
    rates = {n: {what: statistics.median(r) for what, r in models[n]["rates"].items()} for n in names}
    beyond = {
        n: {what: 1 / rate - 1 / found["forward"] for what, rate in found.items()} for n, found in rates.items()
    }
    rounds = [r for found in models.values() for r in found["rates"].values()]
    spread = max((max(r) - min(r)) / statistics.median(r) for r in rounds)
    shown = {"kept": kept, "names": names, "passes": PASSES, "rates": rates, "beyond": beyond, "spread": spread}
    return template("costs.md.j2").render(shown, rounds=min(map(len, rounds)))


def sweep(model: str = "minilm", *, rounds: int = 3, rows: int = 4, length: int = 64, width: int = 384) -> Found:
    """Time all removals from a random network of 12 layers × 12 heads both ways, interleaved, on one thread (processor time).

    Args:
        model: whose tokenizer is used.

    Returns:
        ``naive_s``, one forward pass for each head and each layer, and ``shared_s``, the same numbers from
        :class:`helpers.chapters.head_importance.sweep.Sweep`; ``ratio`` of the first to the second;
        ``largest_difference`` between the two, in the loss, over all heads and examples.
    """
    torch.manual_seed(0)
    network = BertModel(BertConfig(hidden_size=width, intermediate_size=4 * width), add_pooling_layer=False)
    encoder = encoders.wrap(network, encoders.load(model, device="cpu").tokenizer, name="random", device="cpu")
    encoder = replace(encoder, head=adapters.new_head(network, "paraphrase").eval().requires_grad_(False))
    examples = [Example("paraphrase", s.title, n, s.texts, "paraphrase") for n, s in enumerate(_segments(rows))]
    job = head_importance.Job(encoder, examples, batch_size=rows, max_length=length)
    found: dict[bool, head_importance.Removals] = {}

    def run(fast: bool) -> None:
        found[fast] = head_importance.remove_each(job, fast=fast)

    with shards.one_thread():
        times = _interleaved(rounds, partial(run, False), partial(run, True), clock=time.process_time)
    return {
        "model": f"{encoder.layers} layers x {encoder.heads} heads, width {width}, random weights",
        "batch": f"{rows} x {length} tokens",
        "threads": 1,
        "rounds": rounds,
        **_compared(times, "naive_s", "shared_s"),
        "largest_difference": float(np.abs(found[True].heads.loss - found[False].heads.loss).max()),
    }


def taken(layers: int, heads: int) -> dict[str, list[tuple[int, int]]]:
    """What is removed: nothing; the same number of heads from every layer; all heads of the last layers."""
    found: dict[str, list[tuple[int, int]]] = {"none": []}
    for share in (1 / 12, 1 / 4, 1 / 2, 3 / 4, 11 / 12, 1):
        count = round(share * heads)
        found[f"{count} of {heads} heads of every layer"] = [
            (layer, h) for layer in range(layers) for h in range(count)
        ]
    for count in sorted({max(1, round(share * layers)) for share in (1 / 6, 1 / 3, 1 / 2)}):
        gone = range(layers - count, layers)
        found[f"all heads of {count} of {layers} layers"] = [(layer, h) for layer in gone for h in range(heads)]
    return found


def pruning(model: str = "minilm", *, rounds: int = 9, rows: int = 16, length: int = 128) -> Found:
    """Time forward passes of models whose heads are really gone, interleaved, on one thread (processor time).

    Returns:
        ``inputs``, the shapes of what is timed, and ``variants``: name -> share of heads removed, parameters (all, layers,
        attention), and median milliseconds of a forward pass of one input and of a batch, with the first and third quartile.
    """
    encoder = encoders.load(model, device="cpu")
    removed = taken(encoder.layers, encoder.heads)
    pruned = {name: head_importance.prune(encoder, heads) for name, heads in removed.items()}
    texts = [s.texts for s in _segments(rows)]
    shown = {"one": texts[:1], "batch": texts}
    batches = {n: tokens.encode(encoder, t, max_length=length, overlong="truncate") for n, t in shown.items()}
    variants = {
        name: {"removed": len(heads) / (encoder.layers * encoder.heads)} | head_importance.sizes(pruned[name])
        for name, heads in removed.items()
    }

    @torch.inference_mode()
    def run(name: str, size: str) -> None:
        pruned[name].model(**batches[size].inputs)

    timed = [(name, size) for name in pruned for size in batches]
    with shards.one_thread():
        times = _interleaved(rounds, *(partial(run, *what) for what in timed), clock=time.process_time)
    for (name, size), seconds in zip(timed, times, strict=True):
        low, middle, high = (1e3 * np.percentile(seconds, (25, 50, 75))).tolist()
        variants[name] |= {f"{size}_ms": middle, f"{size}_quartiles_ms": [low, high]}
    shapes = {size: f"{b.ids.shape[0]} x {b.ids.shape[1]} tokens" for size, b in batches.items()}
    return {"model": model, "threads": 1, "rounds": rounds, "inputs": shapes, "variants": variants}


def record(result: Found, name: str, model: str) -> Path:
    """Keep a benchmark's numbers where chapters can read them: ``results.runs(name, profile="bench")``."""
    values, parameters = {k: v for k, v in result.items() if k != "model"}, {"what": result["model"]}
    encoder = encoders.load(model, device="cpu")
    return results.record(name, values, encoder=encoder, corpus=None, profile="bench", parameters=parameters)


def as_text(result: Found) -> str:
    """The benchmark as lines to read."""
    fields = dict(result)
    memory, variants = fields.pop("peak_mib", {}), fields.pop("variants", {})
    for name, rates in fields.pop("rates", {}).items():
        rounds = ", ".join(f"{r:,.0f}" for r in rates)
        fields[name] = f"{statistics.median(rates):,.0f} tokens a second (rounds: {rounds})"
    lines = [
        f"{name:17} {value:.3f}" if isinstance(value, float) else f"{name:17} {value}"
        for name, value in fields.items()
    ]
    lines += [
        f"{v['removed']:5.0%} of heads gone ({name}): {v['all'] / 1e6:.2f} M parameters, {v['attention'] / 1e6:.2f} M in attention; "
        f"one input {v['one_ms']:.1f} ms, a batch {v['batch_ms']:.0f} ms"
        for name, v in variants.items()
    ]
    return "\n".join([*lines, *(f"peak memory  {mib:.0f} MiB at {n} segments" for n, mib in memory.items())])
