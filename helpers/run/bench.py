"""Benchmarks whose numbers the book quotes: ``python -m helpers bench tap``, ``… divergence``, ``… passes``, ``… sweep``, ``… pruning``."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
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
from helpers.engine.encoders import Encoder
from helpers.engine.tasks import Example
from helpers.record import results


@dataclass(frozen=True)
class TapBenchmark:
    """What observing costs.

    Attributes:
        forward_ms: median time of one eager forward pass with nothing observed, milliseconds.
        observed_ms: the same pass with all statistics of chapter 02 computed inside.
        ratio: median over rounds of observed / forward, each round running both.
        peak_mib: peak resident memory (MiB) of a process that measures this many segments.
    """

    model: str
    batch: str
    threads: int
    forward_ms: float
    observed_ms: float
    ratio: float
    peak_mib: dict[int, float]


def tap(model: str = "minilm", *, rounds: int = 30, rows: int = 16, length: int = 128) -> TapBenchmark:
    """Time the tap with chapter 02's accumulator against the bare eager forward pass, interleaved."""
    encoder = encoders.load(model)
    segments = _segments(rows)
    batches = tokens.Batches(
        encoder, [s.texts for s in segments], batch_size=rows, max_length=length, overlong="truncate"
    )
    batch = next(iter(batches))
    if tuple(batch.ids.shape) != (rows, length):
        raise ValueError(f"The benchmark needs {rows} x {length} tokens, got {tuple(batch.ids.shape)}.")

    def bare() -> None:
        with torch.inference_mode():
            encoder.model(**batch.inputs)

    accumulator = surface_patterns.Accumulator(encoder, [s.document for s in segments])

    def observed() -> None:
        attention.sweep(encoder, [batch], accumulator)

    times = _interleaved(rounds, bare, observed)
    return TapBenchmark(
        model=model,
        batch=f"{rows} x {length} tokens",
        threads=torch.get_num_threads(),
        forward_ms=1e3 * statistics.median(t for t, _ in times),
        observed_ms=1e3 * statistics.median(t for _, t in times),
        ratio=statistics.median(o / f for f, o in times),
        peak_mib={n: _peak_mib(model, n) for n in tqdm((100, 1000), desc="memory", leave=False)},
    )


def _interleaved(rounds: int, *runs: Callable[[], object]) -> list[tuple[float, ...]]:
    """Seconds of each run in each round; a first round warms up."""

    def timed(run: Callable[[], object]) -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    return [tuple(map(timed, runs)) for _ in tqdm(range(1 + rounds), desc="rounds", leave=False)][1:]


def _segments(count: int) -> list[corpora.Segment]:
    """The encyclopedia's segments, over and over, each time as other documents."""
    found = corpora.segments(corpora.read("encyclopedia"))
    documents = 1 + max(s.document for s in found)
    return [
        corpora.Segment(s.first, s.second, s.document + round_ * documents, s.title)
        for round_ in range(-(-count // len(found)))
        for s in found
    ][:count]


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


@dataclass(frozen=True)
class DivergenceBenchmark:
    """What comparing all pairs of heads costs.

    Attributes:
        loop_ms: median time of :func:`loop`, milliseconds.
        ours_ms: the same of :func:`helpers.chapters.divergence_map.measures.divergences`, on the same maps.
        ratio: median over rounds of loop / ours, each round running both.
    """

    model: str
    maps: str
    threads: int
    loop_ms: float
    ours_ms: float
    ratio: float


def divergence(
    model: str = "minilm", *, rounds: int = 30, heads: int = 144, length: int = 128
) -> DivergenceBenchmark:
    """Time all divergences of 144 maps of 128 tokens against the obvious NumPy loop, interleaved.

    A model with fewer heads shows its maps of several segments.
    """
    encoder = encoders.load(model, device="cpu")
    segments = _segments(-(-heads // (encoder.layers * encoder.heads)))
    batch = tokens.encode(encoder, [s.texts for s in segments], max_length=length, overlong="truncate")
    maps = attention.maps(encoder, batch).flatten(0, 2)[:heads].contiguous()
    if tuple(maps.shape) != (heads, length, length):
        raise ValueError(f"The benchmark needs {heads} maps of {length} tokens, got {tuple(maps.shape)}.")
    weights = maps.numpy()
    times = _interleaved(rounds, lambda: loop(weights), lambda: divergence_map.divergences(maps))
    return DivergenceBenchmark(
        model=model,
        maps=f"{heads} maps of {length} tokens",
        threads=torch.get_num_threads(),
        loop_ms=1e3 * statistics.median(t for t, _ in times),
        ours_ms=1e3 * statistics.median(t for _, t in times),
        ratio=statistics.median(slow / fast for slow, fast in times),
    )


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


@dataclass(frozen=True)
class PassesBenchmark:
    """How many tokens a second one thread measures, in segments of 128.

    Attributes:
        layers, heads, parameters: of the model.
        rates: pass -> tokens a second, one for each round.
    """

    model: str
    layers: int
    heads: int
    parameters: int
    rates: dict[str, list[float]]


PASSES: dict[str, str] = {
    "forward": "forward pass, nothing observed",
    "surface_patterns": "chapter 02, all statistics",
    "no_op": "chapter 03, norms",
    "distance_features": "chapter 08, distance features",
    "divergence_map": "chapter 07, all pairs of heads",
}
"""What is timed, and its name on the page about long runs."""


def passes(model: str = "minilm", *, rounds: int = 3, rows: int = 16) -> PassesBenchmark:
    """Time the passes of some chapters on one thread, in rounds that run each of them once.

    Processor time is taken, not time by the clock: for one thread they are the same on a machine that has nothing else to
    do, and on a busy one only the first can be measured.
    """
    encoder = encoders.load(model, device="cpu")
    segments = _segments(rows)
    documents = [s.document for s in segments]
    halves = distance_features.random_halves(rows)
    observers: dict[str, Callable[[], Any]] = {
        "forward": lambda: None,
        "surface_patterns": lambda: surface_patterns.Accumulator(encoder, documents),
        "no_op": lambda: no_op.NormSums(encoder, documents),
        "distance_features": lambda: distance_features.Accumulator(encoder, documents, halves),
        "divergence_map": lambda: divergence_map.Accumulator(encoder, documents),
    }
    rates: dict[str, list[float]] = {name: [] for name in PASSES}
    with shards.one_thread():
        for name in PASSES:  # what is slow only once is not counted
            _rate(encoder, [s.texts for s in segments[:4]], observers[name]())
        for _ in tqdm(range(rounds), desc=f"{model}: rounds", leave=False):
            for name in PASSES:
                rates[name].append(round(_rate(encoder, [s.texts for s in segments], observers[name]()), 1))
    return PassesBenchmark(model, encoder.layers, encoder.heads, encoder.parameters, rates)


def _rate(encoder: Encoder, texts: list, observer: Any) -> float:
    """Tokens a second of processor time."""
    batches = tokens.Batches(encoder, texts, batch_size=4, max_length=128, overlong="truncate")
    count = 128 * len(texts)
    start = time.process_time()
    if observer is None:
        for batch in batches:
            with torch.inference_mode():
                encoder.model(**batch.inputs)
    else:
        attention.sweep(encoder, batches, observer)
    return count / (time.process_time() - start)


COSTS = Path("data") / "results" / "costs.json"
MANY = 10**9  # tokens of the run whose length is worked out


def keep_passes(result: PassesBenchmark, machine: str, *, root: Path = places.ROOT) -> Path:
    """Keep what was measured, and renew the card that the page about long runs includes.

    Args:
        machine: what it was measured on, in plain words.
    """
    file = root / COSTS
    kept = json.loads(file.read_text("utf-8")) if file.exists() else {"models": {}}
    kept |= {"machine": machine, "segment": 128}
    kept["models"][result.model] = {k: v for k, v in asdict(result).items() if k != "model"}
    places.write(file, json.dumps(kept, indent=1, sort_keys=True) + "\n")
    places.write(file.with_suffix(".md"), card(kept))
    return file


def card(kept: Mapping[str, Any]) -> str:
    """The measured figures as a page: tokens a second, and what a thousand million tokens take."""
    models = kept["models"]
    names = sorted(models, key=lambda name: models[name]["layers"])
    rounds = {len(rates) for found in models.values() for rates in found["rates"].values()}
    lines = [
        f"Measured with `python -m helpers bench passes` on {kept['machine']}, in segments of {kept['segment']} tokens, one thread; "
        f"median of {min(rounds)} rounds. A pass includes reading the text into tokens and the forward pass.",
        "",
        "| pass | "
        + " | ".join(
            f"{n}, {models[n]['layers']} × {models[n]['heads']} heads: tokens a second | {n}: 10⁹ tokens take"
            for n in names
        )
        + " |",
        "| --- | " + " | ".join(["---: | ---:"] * len(names)) + " |",
    ]
    for what, named in PASSES.items():
        cells = []
        for name in names:
            rate = statistics.median(models[name]["rates"][what])
            cells.append(f"{rate:,.0f} | {MANY / rate / 86400:,.1f} core-days")
        lines.append(f"| {named} | " + " | ".join(cells) + " |")
    spread = max((max(r) - min(r)) / statistics.median(r) for f in models.values() for r in f["rates"].values())
    lines += ["", f"The rounds of a pass differ by {spread:.0%} of their median at most."]
    if len(names) > 1:
        small, large = models[names[0]], models[names[-1]]
        heads = large["layers"] * large["heads"] / (small["layers"] * small["heads"])
        extra = {what: _beyond(large, what) / _beyond(small, what) for what in ("surface_patterns", "divergence_map")}
        lines.append(
            f"{names[-1]} has {heads:.0f} times as many heads as {names[0]}; what observing adds to its forward pass is "
            f"{extra['surface_patterns']:.1f} times as much in chapter 02 and {extra['divergence_map']:.1f} times in chapter 07."
        )
    return "\n".join(lines) + "\n"


def _beyond(found: Mapping[str, Any], what: str) -> float:
    """Seconds a token that a pass takes beyond the forward pass."""
    with_it, without = (statistics.median(found["rates"][name]) for name in (what, "forward"))
    return 1 / with_it - 1 / without


@dataclass(frozen=True)
class SweepBenchmark:
    """What switching off every head of a 12 x 12 model costs, with and without sharing.

    Attributes:
        naive_s: median processor time of one forward pass for each head and each layer, seconds.
        shared_s: the same numbers from :class:`helpers.chapters.head_importance.sweep.Sweep`.
        ratio: median over rounds of naive / shared, each round running both.
        largest_difference: between the two, in the loss, over all heads and examples.
    """

    model: str
    batch: str
    threads: int
    rounds: int
    naive_s: float
    shared_s: float
    ratio: float
    largest_difference: float


def sweep(
    model: str = "minilm", *, rounds: int = 3, rows: int = 4, length: int = 64, width: int = 384
) -> SweepBenchmark:
    """Time all removals from a random network of 12 layers × 12 heads both ways, interleaved, on one thread.

    Args:
        model: whose tokenizer is used.
    """
    torch.manual_seed(0)
    network = BertModel(BertConfig(hidden_size=width, intermediate_size=4 * width), add_pooling_layer=False)
    encoder = encoders.wrap(network, encoders.load(model, device="cpu").tokenizer, name="random", device="cpu")
    encoder = replace(encoder, head=adapters.new_head(network, "paraphrase").eval().requires_grad_(False))
    examples = [Example("paraphrase", s.title, n, s.texts, "paraphrase") for n, s in enumerate(_segments(rows))]
    job = head_importance.Job(encoder, examples, batch_size=rows, max_length=length)
    found: dict[bool, head_importance.Removals] = {}

    def run(fast: bool) -> float:
        start = time.process_time()
        found[fast] = head_importance.remove_each(job, fast=fast)
        return time.process_time() - start

    with shards.one_thread():
        times = [(run(False), run(True)) for _ in tqdm(range(rounds), desc="rounds", leave=False)]
    return SweepBenchmark(
        model=f"{encoder.layers} layers x {encoder.heads} heads, width {width}, random weights",
        batch=f"{rows} x {length} tokens",
        threads=1,
        rounds=rounds,
        naive_s=statistics.median(n for n, _ in times),
        shared_s=statistics.median(s for _, s in times),
        ratio=statistics.median(n / s for n, s in times),
        largest_difference=float(np.abs(found[True].heads.loss - found[False].heads.loss).max()),
    )


@dataclass(frozen=True)
class PruningBenchmark:
    """Parameters and latency of an encoder whose heads are gone.

    Attributes:
        variants: name -> share of heads removed, parameters (all, layers, attention), and median milliseconds of a forward
            pass of one input and of a batch, with the first and third quartile.
    """

    model: str
    threads: int
    rounds: int
    inputs: dict[str, str]
    variants: dict[str, dict[str, float | list[float]]]


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


def pruning(model: str = "minilm", *, rounds: int = 9, rows: int = 16, length: int = 128) -> PruningBenchmark:
    """Time forward passes of models whose heads are really gone, interleaved, on one thread (processor time)."""
    encoder = encoders.load(model, device="cpu")
    pruned = {n: head_importance.prune(encoder, heads) for n, heads in taken(encoder.layers, encoder.heads).items()}
    texts = [s.texts for s in _segments(rows)]
    settings = {"max_length": length, "overlong": "truncate"}
    batches = {
        "one": tokens.encode(encoder, texts[:1], **settings),
        "batch": tokens.encode(encoder, texts, **settings),
    }

    def run(one: encoders.Encoder, batch: tokens.Batch) -> float:
        start = time.process_time()
        with torch.inference_mode():
            one.model(**batch.inputs)
        return 1e3 * (time.process_time() - start)

    times: dict[tuple[str, str], list[float]] = {(n, size): [] for n in pruned for size in batches}
    with shards.one_thread():
        for _ in tqdm(range(1 + rounds), desc="rounds", leave=False):
            for name, size in times:
                times[name, size].append(run(pruned[name], batches[size]))
    every = encoder.layers * encoder.heads
    variants: dict[str, dict[str, float | list[float]]] = {}
    for name, heads in taken(encoder.layers, encoder.heads).items():
        variants[name] = {"removed": len(heads) / every} | head_importance.sizes(pruned[name])
        for size in batches:
            low, middle, high = np.percentile(times[name, size][1:], (25, 50, 75))  # the first round warms up
            variants[name] |= {f"{size}_ms": float(middle), f"{size}_quartiles_ms": [float(low), float(high)]}
    shapes = {size: f"{b.ids.shape[0]} x {b.ids.shape[1]} tokens" for size, b in batches.items()}
    return PruningBenchmark(model, 1, rounds, shapes, variants)


def record(result: PruningBenchmark | SweepBenchmark, name: str, model: str) -> Path:
    """Keep a benchmark's numbers where chapters can read them: ``results.runs(name, profile="bench")``."""
    values = {k: v for k, v in asdict(result).items() if k != "model"}
    encoder = encoders.load(model, device="cpu")
    return results.record(
        name, values, encoder=encoder, corpus=None, profile="bench", parameters={"what": result.model}
    )


def as_text(result: TapBenchmark | DivergenceBenchmark | PassesBenchmark | SweepBenchmark | PruningBenchmark) -> str:
    """The benchmark as lines to read."""
    fields = asdict(result)
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
