"""Benchmarks whose numbers the README quotes; ``python -m helpers bench tap``."""

import json
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

import torch
from tqdm import tqdm

from helpers import attention, corpora, encoders, surface_patterns, tokens


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

    for run in (bare, observed):
        run()
    times = [(_timed(bare), _timed(observed)) for _ in tqdm(range(rounds), desc="rounds", leave=False)]
    return TapBenchmark(
        model=model,
        batch=f"{rows} x {length} tokens",
        threads=torch.get_num_threads(),
        forward_ms=1e3 * statistics.median(t for t, _ in times),
        observed_ms=1e3 * statistics.median(t for _, t in times),
        ratio=statistics.median(o / f for f, o in times),
        peak_mib={n: _peak_mib(model, n) for n in tqdm((100, 1000), desc="memory", leave=False)},
    )


def _timed(run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


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
    code = f"from helpers import bench; bench.measure({model!r}, {count})"
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


def as_text(result: TapBenchmark) -> str:
    """The benchmark as lines to read."""
    fields = asdict(result)
    memory = fields.pop("peak_mib")
    lines = [
        f"{name:12} {value:.3f}" if isinstance(value, float) else f"{name:12} {value}"
        for name, value in fields.items()
    ]
    return "\n".join([*lines, *(f"peak memory  {mib:.0f} MiB at {n} segments" for n, mib in memory.items())])
