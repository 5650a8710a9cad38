"""Every chapter on real corpora for several models, one after another: ``python -m helpers full``.

A run that was interrupted, even killed, goes on when the same command is given again: chapters whose digest is that of
now are kept (:func:`helpers.run.notebooks.execute`), and of the chapter that was under way the finished parts of its passes
(:mod:`helpers.engine.shards`). Nothing half-written counts.
"""

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from tqdm import tqdm

from helpers.engine import shards
from helpers.run import notebooks
from helpers.run.durations import DURATIONS, Durations, label

REFRESH = 1.0  # seconds between two looks at how far a chapter is


@dataclass(frozen=True)
class Outcome:
    """What became of one chapter with one model.

    Attributes:
        state: ``executed`` now, ``kept`` because nothing had changed, ``skipped`` because the model lacks what the chapter
            needs, or ``failed``.
        why: of the last two, in one line.
    """

    chapter: str
    model: str
    state: str
    seconds: float | int
    why: str = ""


def run(
    models: Sequence[str],
    folder: Path,
    *,
    results: Path,
    names: Sequence[str] | None = None,
    profile: str = "full",
    threads: int | None = None,
) -> list[Outcome]:
    """Run every chapter for every model into ``folder/<model>/`` and show how much is left.

    Where the passes of a chapter are computed is up to ``BOOK_WORKERS`` and ``BOOK_DASK``. A chapter that fails does not
    stop the others.

    Args:
        results: folder for the numbers that the chapters record.
        names: chapters (default: all).
        threads: of the kernels (default: one for each core).

    Raises:
        helpers.run.notebooks.NotebookError: before anything is run, for a parameter that a chapter does not take.
    """
    jobs = [(model, name) for model in models for name in (names or notebooks.chapters())]
    values = {(model, name): notebooks.parameters(name, profile, {"model": model}) for model, name in jobs}
    durations, done = Durations(folder / DURATIONS), []
    with tqdm(total=len(jobs), desc=f"chapters ({profile})", unit="chapter", bar_format=BAR) as bar:
        for number, (model, name) in enumerate(jobs):
            home = folder / label(model)
            kept = home / "parts" / name

            def show(start: float, kept: Path = kept, job: tuple[str, str] = (model, name), later: int = number + 1):
                share, where = progress(kept)
                left = durations.left(job, time.perf_counter() - start, share) + sum(map(durations.of, jobs[later:]))
                bar.set_postfix_str(f"{job[1]} with {label(job[0])}{where}; {in_words(left)} left")

            outcome = _one(name, model, home, values[model, name], results, kept, threads, show)
            if outcome.state == "executed":
                durations.record((model, name), outcome.seconds)
                shutil.rmtree(kept, ignore_errors=True)
            done.append(outcome)
            bar.update()
    return done


BAR = "{desc}: {n_fmt} of {total_fmt} |{bar:20}| {elapsed}{postfix}"


def _one(
    name: str,
    model: str,
    home: Path,
    values: dict,
    results: Path,
    kept: Path,
    threads: int | None,
    show: Callable[[float], None],
) -> Outcome:
    start = time.perf_counter()
    options = {"results": results, "parts": kept}
    arguments = (os.getpid(), threads or os.cpu_count() or 1)
    pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=_begin, initargs=arguments)
    with pool:
        future = pool.submit(notebooks.execute, name, home / f"{name}.ipynb", values, **options)
        while True:
            show(start)
            if not wait([future], timeout=REFRESH).done:
                continue
            try:
                found = future.result()
            except notebooks.Refused as error:
                return Outcome(name, model, "skipped", time.perf_counter() - start, _line(error))
            except (notebooks.NotebookError, BrokenProcessPool, OSError, RuntimeError) as error:
                return Outcome(name, model, "failed", time.perf_counter() - start, _line(error))
            return Outcome(name, model, "executed" if found.executed else "kept", found.seconds)


def _begin(parent: int, threads: int) -> None:
    """Share the cores, and end with the parent: a run that was killed must not go on beside the one that takes it up."""
    notebooks.share_cores(threads)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(REFRESH)
        os.kill(os.getpid(), signal.SIGTERM)  # the kernel sees that this process is gone, and its workers follow

    threading.Thread(target=watch, daemon=True).start()


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).split("\n")[0]


def table(outcomes: Sequence[Outcome]) -> str:
    """What happened, one line a chapter and model."""
    width = max((len(label(o.model)) for o in outcomes), default=0)
    return "\n".join(
        f"{o.chapter:26} {label(o.model):{width}}  {o.state:8} {in_words(o.seconds):>9}  {o.why}".rstrip()
        for o in outcomes
    )


# ---------------------------------------------------------------------------------------- time left


def progress(kept: Path) -> tuple[float | None, str]:
    """The share of the parts of a chapter's present pass that are finished, and the same in words."""
    try:
        found = json.loads((kept / shards.PROGRESS).read_text("utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None, ""
    total = found["total"]
    return (found["done"] / total if total else None), f" ({found['what']}: part {found['done']} of {total or '?'})"


def in_words(seconds: float | int) -> str:
    """A length of time for people."""
    if seconds == float("inf"):
        return "unknown time"
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def failures(outcomes: Sequence[Outcome]) -> Iterator[Outcome]:
    """Those that failed."""
    return (outcome for outcome in outcomes if outcome.state == "failed")
