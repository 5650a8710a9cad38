"""Every chapter on real corpora for several models, one after another: ``python -m helpers full``.

A run that was interrupted, even killed, goes on when the same command is given again: chapters whose digest is that of
now are kept (:func:`helpers.run.notebooks.execute`), and of the chapter that was under way the finished parts of its passes
(:mod:`helpers.engine.shards`). Nothing half-written counts.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from tqdm import tqdm

from helpers import places
from helpers.engine import orphans, shards
from helpers.run import failures, notebooks
from helpers.run.durations import DURATIONS, Durations, in_words
from helpers.run.notebooks import Run

REFRESH = 1.0  # seconds between two looks at how far a chapter is


def run(models: Sequence[str], folder: Path, *, results: Path, names: Sequence[str], profile: str) -> list[Run]:
    """Run every chapter for every model into ``folder/<model>/`` and show how much is left.

    Where the passes of a chapter are computed is up to ``BOOK_WORKERS`` and ``BOOK_DASK``. A chapter that fails does not
    stop the others.

    Args:
        results: folder for the numbers that the chapters record.
        names: chapters.

    Raises:
        NotebookError: before anything is run, for a parameter that a chapter does not take.
        OSError: before anything is run, where folders cannot be written.
    """
    jobs = [(model, name) for model in dict.fromkeys(models) for name in names]
    places.writable(folder, results)
    values = {(model, name): notebooks.parameters(name, profile, {"model": model}) for model, name in jobs}
    durations, done = Durations(folder / DURATIONS), []
    with tqdm(total=len(jobs), desc=f"chapters ({profile})", unit="chapter", bar_format=BAR) as bar:
        for number, (model, name) in enumerate(jobs):
            home = folder / places.label(model)
            kept = home / "parts" / name

            def show(start: float, kept: Path = kept, job: tuple[str, str] = (model, name), later: int = number + 1):
                share, where = progress(kept)
                left = durations.left(job, time.perf_counter() - start, share) + sum(map(durations.of, jobs[later:]))
                bar.set_postfix_str(f"{job[1]} with {places.label(job[0])}{where}; {in_words(left)} left")

            outcome = _one(name, model, home, values[model, name], results, kept, show)
            if outcome.executed:
                durations.record((model, name), outcome.seconds)
                shutil.rmtree(kept, ignore_errors=True)
            done.append(outcome)
            bar.update()
    return done


BAR = "{desc}: {n_fmt} of {total_fmt} |{bar:20}| {elapsed}{postfix}"


def _one(
    name: str, model: str, home: Path, values: dict, results: Path, kept: Path, show: Callable[[float], None]
) -> Run:
    start = time.perf_counter()
    options = {"results": results, "parts": kept}
    file, arguments = home / f"{name}.ipynb", (os.getpid(), os.cpu_count() or 1)
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=_begin, initargs=arguments) as pool:
        future = pool.submit(notebooks.execute, name, file, values, **options)
        while True:
            show(start)
            if not wait([future], timeout=REFRESH).done:
                continue
            try:
                return replace(future.result(), model=model)
            except (places.BookError, BrokenProcessPool, OSError, RuntimeError) as error:
                failed = failures.of_process(name, error)
                return Run.without_result(name, file, failed, seconds=time.perf_counter() - start, model=model)


def _begin(parent: int, threads: int) -> None:
    """Share the cores, and end with the parent: a run that was killed must not go on beside the one that takes it up."""
    orphans.end_with(parent)
    notebooks.share_cores(threads)


def table(done: Sequence[Run]) -> str:
    """What happened, one line a chapter and model."""
    width = max((len(places.label(one.model)) for one in done), default=0)
    lines = (
        f"{one.chapter:26} {places.label(one.model):{width}}  {one.state:8} {in_words(one.seconds):>9}  {one.problem}"
        for one in done
    )
    return "\n".join(line.split("\n")[0].rstrip() for line in lines)


# ---------------------------------------------------------------------------------------- time left


def progress(kept: Path) -> tuple[float | None, str]:
    """The share of the parts of a chapter's present pass that are finished, and the same in words."""
    try:
        found = json.loads((kept / shards.PROGRESS).read_text("utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None, ""
    total = found["total"]
    return (found["done"] / total if total else None), f" ({found['what']}: part {found['done']} of {total or '?'})"
