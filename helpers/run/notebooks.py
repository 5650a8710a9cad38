"""Executing the chapters: one runner for the book, for the stored outputs, for tests and for full runs.

A notebook is executed again when anything that its outputs depend on has changed (:mod:`helpers.run.digests`); the digest of
it all is kept with the outputs, in ``metadata.book``.
"""

import ast
import base64
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from graphlib import TopologicalSorter
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import joblib
import nbformat
import psutil
import yaml
from tqdm import tqdm

from helpers import places
from helpers.engine import orphans
from helpers.figures.views import without_frames
from helpers.run import digests, executing, failures, images, settings
from helpers.run.durations import DURATIONS, PEAKS, Durations, Noted
from helpers.run.failures import NotebookError, Refused

FOLDER = places.ROOT / "notebooks"
PROFILES = ("smoke", "book", "full")
PROFILE_FOLDER = places.ROOT / "book" / "profiles"
MOST_AT_ONCE = 4
MEMORY = 2 << 30  # bytes that a chapter may need
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True)
class Run:
    """What happened to one chapter, with one model: the file written, whether it was executed now, seconds and MiB it took.

    ``problem`` is why there is no result, if there is none; ``failed`` tells a failure from a chapter that refused the model.
    """

    chapter: str
    file: Path
    executed: bool
    seconds: float
    problem: str = ""
    failed: bool = False
    model: str = ""
    memory: int = 0

    @classmethod
    def without_result(cls, chapter: str, file: Path, error: Exception, **others: Any) -> "Run":
        """One that an error has ended."""
        why = str(error).strip() or type(error).__name__
        return cls(chapter, file, False, problem=why, failed=not isinstance(error, Refused), **others)

    @property
    def state(self) -> str:
        """``executed`` now, ``kept`` because nothing had changed, ``skipped`` because the model lacks what the chapter needs, or
        ``failed``.
        """
        if self.problem:
            return "failed" if self.failed else "skipped"
        return "executed" if self.executed else "kept"


def chapters() -> list[str]:
    """Names of all chapters, in order: ``01_transformer_refresher``, …"""
    return sorted(file.stem for file in FOLDER.glob("[0-9][0-9]_*.ipynb"))


def find(name: str) -> str:
    """The chapter that a reader means by ``02``, ``surface_patterns`` or ``02_surface_patterns``."""
    matches = [c for c in chapters() if name in (c, c[:2], c[3:], str(int(c[:2])))]
    if not matches:
        hint = settings.meant(name, [*chapters(), *(c[3:] for c in chapters())])
        raise NotebookError(f"There is no chapter {name!r}.{hint} There are: {', '.join(chapters())}.")
    return matches[0]


# ---------------------------------------------------------------------------------------- parameters


def parameters(chapter: str, profile: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Parameters of a run: the profile's, as far as the notebook takes them, then those given.

    Raises:
        NotebookError: for an unknown profile, a given parameter that the notebook does not take, or a value that is not of
            its kind (:mod:`helpers.run.settings`).
    """
    if profile not in PROFILES:
        raise NotebookError(f"There is no profile {profile!r}. There are: {', '.join(PROFILES)}.")
    own = yaml.safe_load((PROFILE_FOLDER / f"{profile}.yml").read_text("utf-8"))
    taken = defaults(chapter)
    chosen = {k: v for k, v in own["all"].items() if k in taken}
    for name, value in {**(own.get(chapter) or {}), **(given or {})}.items():
        _takes(chapter, name, taken)
        chosen[name] = value
    values = taken | chosen
    if problem := settings.problem(chapter, values, taken):
        raise NotebookError(problem)
    if (named := values.get("profile", profile)) in PROFILES and named != profile:
        raise NotebookError(
            f"{chapter}: numbers of profile {profile} cannot be kept as those of {named}. Say --profile {named}."
        )
    return values


def _takes(chapter: str, name: str, taken: Mapping[str, Any]) -> None:
    if name not in taken:
        hint = settings.meant(name, taken)
        raise NotebookError(f"{chapter} has no parameter {name!r}.{hint} It takes: {', '.join(taken)}.")


def meant(chapter: str, name: str, given: str) -> Any:
    """The value of a parameter that a reader has written on the command line.

    Raises:
        NotebookError: for a parameter that the chapter does not take.
    """
    taken = defaults(chapter)
    _takes(chapter, name, taken)
    return settings.kind(chapter, name, taken[name]).read(given)


def defaults(chapter: str) -> dict[str, Any]:
    """The parameters a chapter takes and their values in its parameters cell."""
    return _defaults(_read(chapter), chapter)


def _defaults(notebook: nbformat.NotebookNode, chapter: str) -> dict[str, Any]:
    for cell in notebook.cells:
        if "parameters" in cell.metadata.get("tags", ()):
            tree = ast.parse(cell.source)
            return {
                target.id: ast.literal_eval(statement.value)
                for statement in tree.body
                if isinstance(statement, ast.Assign)
                for target in statement.targets
                if isinstance(target, ast.Name)
            }
    raise NotebookError(f"{chapter} has no cell tagged 'parameters'.")


def described(chapter: str, profile: str) -> list[tuple[str, str]]:
    """The parameters of a chapter, for people: name, and kind with the value in a profile."""
    return settings.described(chapter, parameters(chapter, profile), defaults(chapter))


def digest(chapter: str, values: Mapping[str, Any]) -> str:
    """What a run of the chapter with these parameters depends on (:mod:`helpers.run.digests`)."""
    return digests.digest(chapter, _read(chapter), values)


def _read(chapter: str) -> nbformat.NotebookNode:
    return nbformat.read(FOLDER / f"{chapter}.ipynb", as_version=4)


# ---------------------------------------------------------------------------------------- executing


def execute(
    chapter: str,
    target: Path,
    values: Mapping[str, Any],
    *,
    results: Path,
    force: bool = False,
    parts: Path | None = None,
) -> Run:
    """Bring ``target`` up to date: the chapter with outputs of a run with these parameters.

    When the digest kept in ``target`` is that of now, only the prose is renewed. A run that fails leaves the
    old file in place.

    Args:
        results: folder for the numbers that the chapter records.
        parts: folder in which finished parts of its passes are kept (:mod:`helpers.engine.shards`).

    Raises:
        NotebookError: with what ended it, or the failing cell and its traceback.
        Refused: when the chapter cannot be run with this model.
    """
    start = time.perf_counter()
    if not force and (kept := renewed(chapter, target, values)):
        return kept
    now = digest(chapter, values)
    before = defaults(chapter)
    variables = {"BOOK_RESULTS": str(results)} | ({} if parts is None else {"BOOK_SHARDS": str(parts)})
    with executing.environment(**variables):
        done = executing.executed(chapter, _read(chapter), {k: v for k, v in values.items() if v != before[k]})
    done.metadata["book"] = {"digest": now, "parameters": dict(values)}
    _write(normalised(done), target)
    return Run(chapter, target, executed=True, seconds=time.perf_counter() - start, memory=executing.memory())


def renewed(chapter: str, target: Path, values: Mapping[str, Any]) -> Run | None:
    """``target`` with the prose of now, if its outputs are those of now; else None."""
    start = time.perf_counter()
    if not target.exists():
        return None
    old = nbformat.read(target, as_version=4)
    if not _of_now(chapter, old, values):
        return None
    _write(_with_outputs_of(_read(chapter), old), target)
    return Run(chapter, target, executed=False, seconds=time.perf_counter() - start)


def take_stored(chapter: str, target: Path, results: Path) -> None:
    """Let ``target``, unless its own outputs are those of now, be the outputs kept in git if they are, with their records."""
    values = parameters(chapter, "book")
    if target.exists() and _of_now(chapter, nbformat.read(target, as_version=4), values):
        return
    if _of_now(chapter, _read(chapter), values):
        stored = places.book_data() / "results"
        for record in stored.glob(f"book/*/{chapter[3:]}.json"):
            places.write(results / record.relative_to(stored), record.read_bytes())
        places.write(target, (FOLDER / f"{chapter}.ipynb").read_bytes())


def _of_now(chapter: str, kept: nbformat.NotebookNode, values: Mapping[str, Any]) -> bool:
    """Whether outputs are of this code, with these data and parameters."""
    return kept.metadata.get("book", {}).get("digest") == digest(chapter, values)


def normalised(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without anything that differs from run to run: times, ids, papermill's marks, vendored scripts."""
    kept = {key: notebook.metadata[key] for key in ("kernelspec", "book") if key in notebook.metadata}
    notebook.metadata = nbformat.from_dict({**kept, "language_info": {"name": "python"}})
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:02d}"
        tags = cell.metadata.get("tags", [])
        if "injected-parameters" in tags and "remove-cell" not in tags:
            tags = [*tags, "remove-cell"]
        cell.metadata = nbformat.from_dict(
            {k: v for k, v in cell.metadata.items() if k not in ("papermill", "execution", "tags")}
            | ({"tags": tags} if tags else {})
        )
        if cell.cell_type == "code":
            cell.outputs = _merged_streams(cell.outputs)
            for output in cell.outputs:
                output.pop("execution_count", None)
                if output.output_type == "execute_result":
                    output["execution_count"] = cell.execution_count
                for kind, made in SMALLER.items():
                    if kind in output.get("data", {}):
                        output.data[kind] = made("".join(output.data[kind]))
    return notebook


def _lean(picture: str) -> str:
    return base64.b64encode(images.lean(base64.b64decode(picture))).decode() + "\n"


SMALLER = {"text/html": without_frames, "image/png": _lean}


def _merged_streams(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Consecutive pieces of one stream as one output; how a kernel cuts them differs from run to run."""
    merged: list[nbformat.NotebookNode] = []
    for output in outputs:
        if merged and output.output_type == "stream" == merged[-1].output_type and output.name == merged[-1].name:
            merged[-1].text += output.text
        else:
            merged.append(output)
    return merged


def _with_outputs_of(source: nbformat.NotebookNode, old: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The source's cells, prose renewed, with the outputs of an earlier run of the same code."""
    earlier = iter([cell for cell in old.cells if cell.cell_type == "code"])
    cells = []
    for cell in source.cells:
        cells.append(cell)
        if cell.cell_type == "code":
            done = next(earlier)
            if "injected-parameters" in done.metadata.get("tags", ()):  # follows the parameters cell
                cells.insert(-1, done)
                done = next(earlier)
            cell.outputs, cell.execution_count = done.outputs, done.execution_count
    source.cells = cells
    source.metadata["book"] = old.metadata["book"]
    return normalised(source)


def _write(notebook: nbformat.NotebookNode, target: Path) -> None:
    places.write(target, nbformat.writes(notebook) + "\n")


def share_cores(threads: int) -> None:
    """Let the kernels of this worker use so many threads: more threads than cores slow each other down many times over."""
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))


def at_once(jobs: int) -> int:
    """How many chapters run together: no more than cores, than fit into the memory that is free, than there are."""
    free = psutil.virtual_memory().available
    with suppress(OSError, ValueError):  # not in a container, or "max": no limit
        free = min(free, int(CONTAINER_LIMIT.read_text()))
    return max(1, min(joblib.cpu_count(), free // MEMORY, jobs, MOST_AT_ONCE))


def _begin(parent: int, threads: int, warm: bool) -> None:
    orphans.end_with(parent)
    share_cores(threads)
    if warm:
        from helpers.run import kernels

        kernels.warm_up()


def run(
    names: Iterable[str],
    folder: Path,
    *,
    profile: str,
    results: Path,
    given: Mapping[str, Any] | None = None,
    at_a_time: int | None = None,
    force: bool = False,
    keep_going: bool = False,
) -> list[Run]:
    """Execute chapters into a folder, several at a time, with one progress bar.

    Args:
        names: chapters; those up to date are left alone.
        given: parameters beyond the profile's, for every chapter named.
        at_a_time: chapters executed together (default: :func:`at_once`; one when the passes of a chapter are themselves
            spread over processes or a cluster).
        keep_going: a chapter that refuses the model, or fails, is noted in its :class:`Run` and does not end the others.
    """
    names = list(names)
    jobs = {name: parameters(name, profile, given) for name in names}
    places.writable(folder, results)
    targets = {name: folder / f"{name}.ipynb" for name in names}
    waits = _waits(names)
    done: dict[str, Run] = {}
    for name in () if force else TopologicalSorter(waits).static_order():
        # who reads what is about to be written is looked at when it is there
        if waits[name] <= done.keys() and (kept := renewed(name, targets[name], jobs[name])):
            done[name] = kept
    longest = _longest_first([name for name in names if name not in done], folder, jobs, waits)
    spread = any(os.environ.get(name) for name in ("BOOK_WORKERS", "BOOK_DASK"))
    count = max(1, min(at_a_time or (1 if spread else at_once(len(longest))), len(longest)))
    shared = (os.getpid(), max(1, joblib.cpu_count() // count), len(longest) > count)
    with (
        tqdm(total=len(jobs), initial=len(done), desc=f"chapters ({profile})", unit="chapter") as bar,
        ProcessPoolExecutor(count, get_context("spawn"), initializer=_begin, initargs=shared) as pool,
    ):
        futures: dict[Future[Run], str] = {}
        while longest or futures:
            for name in [n for n in longest if not waits[n] & {*longest, *futures.values()}][: count - len(futures)]:
                longest.remove(name)
                anew = force or any(done[n].executed and _told_anew(n, results) for n in waits[name])
                futures[pool.submit(execute, name, targets[name], jobs[name], results=results, force=anew)] = name
            future = next(iter(wait(futures, return_when=FIRST_COMPLETED).done))
            name = futures.pop(future)
            try:
                finished = _finished(future, name, targets[name], keep_going)
            except NotebookError:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            if finished.executed:
                job = jobs[name].get("model", ""), name
                Durations(folder / DURATIONS).record(job, finished.seconds)
                Noted(folder / PEAKS).record(job, finished.memory)
            done[name] = finished
            bar.update()
            bar.set_postfix_str(f"{name} {'skipped' if finished.problem else f'in {finished.seconds:.0f} s'}")
    return [done[name] for name in names]


def _waits(names: Sequence[str]) -> dict[str, set[str]]:
    """The chapters of these whose records each reads."""
    reads = {name: digests.reads(_read(name)) for name in names}
    return {name: {n for n in names if n != name and n[3:] in reads[name]} for name in names}


def _told_anew(chapter: str, results: Path) -> bool:
    """Whether a chapter has recorded something else here than is kept in git, which digests go by."""
    kept = places.book_data() / "results"
    now = (
        file for file in results.glob(f"*/*/{chapter[3:]}.json") if file.relative_to(results).parts[0] != places.OWN
    )
    return any(
        not (old := kept / f.relative_to(results)).is_file() or old.read_bytes() != f.read_bytes() for f in now
    )


def _finished(future: Future[Run], name: str, target: Path, keep_going: bool) -> Run:
    """What became of a chapter; one that failed raises, or is noted in its :class:`Run`."""
    try:
        return future.result()
    except (places.BookError, OSError, BrokenProcessPool) as error:
        failed = failures.of_process(name, error)
        if keep_going:
            return Run.without_result(name, target, failed, seconds=0.0)
        raise failed from None


def _longest_first(
    names: Sequence[str], folder: Path, jobs: Mapping[str, Mapping[str, Any]], waits: Mapping[str, set[str]]
) -> list[str]:
    """By what they, and those that wait for their records, took in the folder's last run, or else when the stored outputs were made: so that all end together."""
    known = Durations(next((f for f in (folder / DURATIONS, FOLDER / DURATIONS) if f.exists()), folder / DURATIONS))
    took = {name: known.of((jobs[name].get("model", ""), name)) for name in names}
    after = {name: max((took[n] for n in names if name in waits[n]), default=0.0) for name in names}
    return sorted(names, key=lambda name: -took[name] - after[name])


# ---------------------------------------------------------------------------------------- stored outputs


def problems(chapter: str) -> list[str]:
    """What is wrong with a stored notebook: stale or missing outputs, errors, warnings, figures that are not there."""
    notebook = _read(chapter)
    found = []
    if not _of_now(chapter, notebook, parameters(chapter, "book")):
        found.append("its outputs are stale; run 'make notebooks'")
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            if output.output_type == "error":
                found.append(f"cell {number} ends in {output.ename}: {output.evalue}")
            if output.output_type == "stream" and output.name == "stderr":
                found.append(f"cell {number} writes to stderr: {output.text[:120]!r}")
        shows = [o for o in cell.outputs if o.output_type in ("display_data", "execute_result")]
        for output in shows:
            if len(base64.b64decode(output.data.get("image/png", ""))) > images.LIMIT:
                found.append(f"cell {number} has a figure of more than {images.LIMIT // 1000} kB")
        captioned = "figure" in cell.metadata.get("mystnb", {})
        if captioned and not any(o.data.get("image/png") or o.data.get("image/svg+xml") for o in shows):
            found.append(f"cell {number} has a caption but no figure")
        if any(o.get("data") == {} or o.get("text") == "" for o in cell.outputs):
            found.append(f"cell {number} has an empty output")
        if cell.execution_count is None:
            found.append(f"cell {number} was not executed")
    return found
