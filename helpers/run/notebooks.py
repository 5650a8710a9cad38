"""Executing the chapters: one runner for the book, for the stored outputs, for tests and for full runs.

A notebook is executed again when anything it can see has changed: its code cells, its parameters, the
modules of ``helpers/`` it imports (directly or through others), the files of ``data/``, the recorded
results of other chapters that it reads, and the lock file. All of this goes into one digest, kept with the
outputs in ``metadata.book``.
"""

import ast
import base64
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import nbformat
import yaml
from tqdm import tqdm

from helpers import places
from helpers.figures.views import without_frames

FOLDER = places.ROOT / "notebooks"
LOCK = places.ROOT / "requirements.lock"
PROFILES = ("smoke", "book", "full")
PROFILE_FOLDER = places.ROOT / "book" / "profiles"


class NotebookError(RuntimeError):
    """A chapter does not exist, does not take a parameter, or failed."""


class Refused(NotebookError):
    """A chapter that cannot be run with this model, and says why: the model has no head for its task, for example."""


REFUSALS = ("AdapterError", "EncoderError", "NotAnEncoder", "TapError", "SystemExit")
"""Errors with which helpers refuse a model; anything else that ends a chapter is a failure."""


@dataclass(frozen=True)
class Run:
    """What happened to one chapter: the file written, whether it was executed now, seconds it took.

    ``problem`` is why there is no result, if there is none; ``failed`` tells a failure from a chapter that refused the model.
    """

    chapter: str
    file: Path
    executed: bool
    seconds: float
    problem: str = ""
    failed: bool = False


def chapters() -> list[str]:
    """Names of all chapters, in order: ``01_transformer_refresher``, …"""
    return sorted(file.stem for file in FOLDER.glob("[0-9][0-9]_*.ipynb"))


def find(name: str) -> str:
    """The chapter that a reader means by ``02``, ``surface_patterns`` or ``02_surface_patterns``."""
    matches = [c for c in chapters() if name in (c, c[:2], c[3:], str(int(c[:2])))]
    if not matches:
        raise NotebookError(f"There is no chapter {name!r}. There are: {', '.join(chapters())}.")
    return matches[0]


# ---------------------------------------------------------------------------------------- parameters


def parameters(chapter: str, profile: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Parameters of a run: the profile's, as far as the notebook takes them, then those given.

    Raises:
        NotebookError: for an unknown profile, or a given parameter that the notebook does not take.
    """
    if profile not in PROFILES:
        raise NotebookError(f"There is no profile {profile!r}. There are: {', '.join(PROFILES)}.")
    settings = yaml.safe_load((PROFILE_FOLDER / f"{profile}.yml").read_text("utf-8"))
    taken = defaults(chapter)
    chosen = {k: v for k, v in settings["all"].items() if k in taken}
    for name, value in {**(settings.get(chapter) or {}), **(given or {})}.items():
        if name not in taken:
            raise NotebookError(f"{chapter} has no parameter {name!r}. It takes: {', '.join(taken)}.")
        chosen[name] = value
    return taken | chosen


def defaults(chapter: str) -> dict[str, Any]:
    """The parameters a chapter takes and their values in its parameters cell."""
    return _defaults(nbformat.read(FOLDER / f"{chapter}.ipynb", as_version=4), chapter)


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


# ---------------------------------------------------------------------------------------- what a notebook sees


def digest(chapter: str, values: Mapping[str, Any]) -> str:
    """sha256 over everything that a run of the chapter with these parameters can see."""
    notebook = nbformat.read(FOLDER / f"{chapter}.ipynb", as_version=4)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    total = hashlib.sha256(json.dumps([code, dict(values)], sort_keys=True).encode())
    for file in (*sorted(_modules("\n".join(code))), *_data_files(chapter, code, values), LOCK):
        total.update(file.relative_to(places.ROOT).as_posix().encode())
        total.update(file.read_bytes())
    for file in _own_files(values):
        with file.open("rb") as opened:
            total.update(hashlib.file_digest(opened, "sha256").digest())
    return total.hexdigest()


def _own_files(value: Any) -> list[Path]:
    """Files that parameters name: a text or a treebank of your own, and what is in a folder, such as a model's."""
    if isinstance(value, Mapping | list | tuple):
        inner = value.values() if isinstance(value, Mapping) else value
        return [file for one in inner for file in _own_files(one)]
    if not isinstance(value, str) or not value:
        return []
    path = places.ROOT / value.removesuffix("@random")
    try:
        if path.is_file():
            return [path]
        named_as_path = os.sep in value and path.is_dir()  # "book" is a profile, not the folder of that name
    except OSError:  # a text too long to be a name
        return []
    return sorted(f for f in path.rglob("*") if f.is_file()) if named_as_path else []


def _modules(code: str) -> set[Path]:
    """Files of ``helpers/`` that the code imports, directly or through other modules of ``helpers/``."""
    package = places.ROOT / "helpers"
    seen: set[Path] = {package / "__init__.py"}
    waiting = [code]
    while waiting:
        for name in _imported(waiting.pop()):
            found = [package / f"{name}.py"] if (package / f"{name}.py").exists() else (package / name).glob("*.py")
            for file in set(found) - seen:
                seen.add(file)
                waiting.append(file.read_text("utf-8"))
                if name == "figures":
                    seen |= {package / "book.mplstyle", package / "attention_view.js"}
    return seen


def _imported(code: str) -> Iterable[str]:
    plain = "\n".join(line for line in code.split("\n") if not line.lstrip().startswith(("%", "!")))
    for node in ast.walk(ast.parse(plain)):
        if isinstance(node, ast.ImportFrom) and node.module == "helpers":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("helpers."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("helpers."))


def _data_files(chapter: str, code: list[str], values: Mapping[str, Any]) -> list[Path]:
    """All of ``data/`` but results and adapters; the results that the code reads, ``results.recorded("name", …)``; and the
    adapters if it loads a model with ``task=``.
    """
    data = places.book_data()
    stored = data / "results"
    apart = {stored} if re.search(r"\btask\s*=", "\n".join(code)) else {stored, data / "adapters"}
    files = [f for f in data.rglob("*") if f.is_file() and not apart & set(f.parents) and f.suffix != ".md"]
    for name in set(re.findall(r"""results\.(?:recorded|runs)\(\s*["'](\w+)["']""", "\n".join(code))):
        for file in stored.rglob(f"{name}.json"):
            written_by_this_run = name == chapter[3:] and file.relative_to(stored).parts[0] == values.get("profile")
            if not written_by_this_run:
                files.append(file)
    return sorted(files)


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
        NotebookError: with the failing cell and its error.
        Refused: when the chapter cannot be run with this model.
    """
    start = time.perf_counter()
    now = digest(chapter, values)
    source = nbformat.read(FOLDER / f"{chapter}.ipynb", as_version=4)
    if not force and target.exists():
        old = nbformat.read(target, as_version=4)
        if old.metadata.get("book", {}).get("digest") == now:
            _write(_with_outputs_of(source, old), target)
            return Run(chapter, target, executed=False, seconds=time.perf_counter() - start)
    changed = {k: v for k, v in values.items() if v != _defaults(source, chapter)[k]}
    variables = {"BOOK_RESULTS": str(results)} | ({} if parts is None else {"BOOK_SHARDS": str(parts)})
    with tempfile.TemporaryDirectory() as scratch, _environment(**variables):
        executed = _papermill(chapter, Path(scratch) / "executed.ipynb", changed)
    executed.metadata["book"] = {"digest": now, "parameters": dict(values)}
    _write(normalised(executed), target)
    return Run(chapter, target, executed=True, seconds=time.perf_counter() - start)


def _papermill(chapter: str, target: Path, changed: Mapping[str, Any]) -> nbformat.NotebookNode:
    import papermill
    from papermill.exceptions import PapermillExecutionError

    bare = nbformat.read(FOLDER / f"{chapter}.ipynb", as_version=4)
    for cell in bare.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    source = target.with_name("source.ipynb")
    nbformat.write(bare, source)
    for attempt in range(3):
        try:
            papermill.execute_notebook(
                source,
                target,
                parameters=dict(changed),
                kernel_name="python3",
                progress_bar=False,
                cwd=str(places.ROOT),
                execution_timeout=24 * 3600,
                extra_arguments=["--IPKernelApp.log_level=ERROR"],
            )
            break
        except PapermillExecutionError as error:
            if error.ename in REFUSALS:
                raise Refused(" ".join(error.evalue.split())) from None
            lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in error.traceback[-12:]]
            raise NotebookError(
                f"{chapter} failed in cell {error.exec_count} with {error.ename}: {error.evalue}\n" + "\n".join(lines)
            ) from None
        except RuntimeError as error:  # two kernels that start together may pick the same port
            if "Kernel died before replying" not in str(error) or attempt == 2:
                raise
    return nbformat.read(target, as_version=4)


@contextmanager
def _environment(**variables: str):
    """Environment of a kernel: this interpreter's kernels first, inline figures, the given variables."""
    wanted = {"JUPYTER_PREFER_ENV_PATH": "1", "TQDM_DISABLE": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1", **variables}
    before = {name: os.environ.get(name) for name in (*wanted, "MPLBACKEND")}
    os.environ.update(wanted)
    os.environ.pop("MPLBACKEND", None)  # 'agg' would silently drop every inline figure
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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
                if "text/html" in output.get("data", {}):
                    output.data["text/html"] = without_frames("".join(output.data["text/html"]))
    return notebook


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
    """Write at once, and only when something differs."""
    text = nbformat.writes(notebook) + "\n"
    if target.exists() and target.read_text("utf-8") == text:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_suffix(".tmp")
    scratch.write_text(text, "utf-8")
    scratch.replace(target)


def share_cores(threads: int) -> None:
    """Let the kernels of this worker use so many threads: more threads than cores slow each other down many times over."""
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))


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
        at_a_time: chapters executed together (default: one for each core, at most four; one when the passes of a chapter
            are themselves spread over processes or a cluster).
        keep_going: a chapter that refuses the model, or fails, is noted in its :class:`Run` and does not end the others.
    """
    names = list(names)
    jobs = {name: parameters(name, profile, given) for name in names}
    spread = any(os.environ.get(name) for name in ("BOOK_WORKERS", "BOOK_DASK"))
    count = max(1, min(at_a_time or (1 if spread else os.cpu_count() or 1), len(jobs), 4))
    done: dict[str, Run] = {}
    bar = tqdm(total=len(jobs), desc=f"chapters ({profile})", unit="chapter")
    threads = max(1, (os.cpu_count() or 1) // count)
    with ProcessPoolExecutor(count, get_context("spawn"), initializer=share_cores, initargs=(threads,)) as pool:
        futures = {
            pool.submit(execute, name, folder / f"{name}.ipynb", values, results=results, force=force): name
            for name, values in jobs.items()
        }
        for future in as_completed(futures):
            try:
                finished = future.result()
            except NotebookError as error:
                if not keep_going:
                    raise
                name, failed = futures[future], not isinstance(error, Refused)
                finished = Run(name, folder / f"{name}.ipynb", False, 0.0, str(error), failed)
            done[finished.chapter] = finished
            bar.update()
            bar.set_postfix_str(
                f"{finished.chapter} {'in' if finished.executed else 'skipped,' if finished.problem else 'kept,'} {finished.seconds:.0f} s"
            )
    bar.close()
    return [done[name] for name in names]


# ---------------------------------------------------------------------------------------- stored outputs


def problems(chapter: str) -> list[str]:
    """What is wrong with a stored notebook: stale or missing outputs, errors, warnings, figures that are not there."""
    notebook = nbformat.read(FOLDER / f"{chapter}.ipynb", as_version=4)
    found = []
    kept = notebook.metadata.get("book", {})
    if kept.get("digest") != digest(chapter, parameters(chapter, "book")):
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
        captioned = "figure" in cell.metadata.get("mystnb", {})
        if captioned and not any(o.data.get("image/png") or o.data.get("image/svg+xml") for o in shows):
            found.append(f"cell {number} has a caption but no figure")
        if any(o.get("data") == {} or o.get("text") == "" for o in cell.outputs):
            found.append(f"cell {number} has an empty output")
        if cell.execution_count is None:
            found.append(f"cell {number} was not executed")
    return found


COVER = ("02_surface_patterns", "fig-special")


def cover() -> bytes:
    """PNG of the figure that the README and the welcome page show, from the stored outputs."""
    chapter, name = COVER
    for cell in nbformat.read(FOLDER / f"{chapter}.ipynb", as_version=4).cells:
        if cell.metadata.get("mystnb", {}).get("figure", {}).get("name") == name:
            for output in cell.outputs:
                if "image/png" in output.get("data", {}):
                    return base64.b64decode(output.data["image/png"])
    raise NotebookError(f"{chapter} has no figure {name!r} among its stored outputs; run 'make notebooks'.")


# ---------------------------------------------------------------------------------------- the book


def stage(folder: Path) -> None:
    """Copy what the book is built from (pages, data cards), except the notebooks, into a folder of the same layout."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(places.ROOT / "_config.yml", folder / "_config.yml")
    shutil.copytree(places.ROOT / "book", folder / "book", dirs_exist_ok=True)
    for card in places.book_data().rglob("*.md"):
        copy = folder / card.relative_to(places.ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(card, copy)
    (folder / "notebooks").mkdir(exist_ok=True)


def build(folder: Path, output: Path) -> Path:
    """Build the staged book with warnings as errors and return its first page.

    Raises:
        NotebookError: if the build fails or a page of the table of contents is missing.
    """
    import subprocess
    import sys

    command = [
        sys.executable,
        "-c",
        "from jupyter_book.cli.main import main; main()",
        "build",
        str(folder),
        "--path-output",
        str(output),
        "--toc",
        str(folder / "book" / "_toc.yml"),
        "--config",
        str(folder / "_config.yml"),
        "-W",
        "--keep-going",
        "--quiet",
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "BOOK_STAGE": str(folder), "BOOK_RESULTS": str(folder / "data" / "results")},
    )
    pages = output / "_build" / "html"
    if done.returncode:
        raise NotebookError(f"jupyter-book failed:\n{done.stdout[-4000:]}\n{done.stderr[-6000:]}")
    missing = [page for page in pages_of(folder / "book" / "_toc.yml") if not (pages / f"{page}.html").is_file()]
    if missing or not (pages / "index.html").is_file():
        raise NotebookError(f"The build ended without these pages: {', '.join(missing) or 'index'}.")
    return pages / "index.html"


def pages_of(toc: Path) -> list[str]:
    """Every page that a table of contents names."""

    def walk(node: Any) -> Iterable[str]:
        if isinstance(node, dict):
            yield from (node[key] for key in ("root", "file") if key in node)
            for value in node.values():
                yield from walk(value)
        elif isinstance(node, list):
            for item in node:
                yield from walk(item)

    return list(walk(yaml.safe_load(toc.read_text("utf-8"))))
