"""Executing chapters with papermill: for the pages, for the tests, for a reader's own model and corpora."""

import ast
import difflib
import os
import re
import shutil
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import joblib
import nbformat
import papermill
import yaml
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError
from tqdm import tqdm

from helpers import corpora, places
from helpers.corpora import sources

FOLDER = places.ROOT / "notebooks"
PROFILE_FOLDER = places.ROOT / "book" / "profiles"
#: Chapters that read what others of the same run have recorded.
LATER = ("07_divergence_map", "09_pattern_types", "10_ablation_by_type")
#: Errors with which a chapter says that a model lacks what it needs; any other is a failure.
REFUSALS = {"AdapterError", "EncoderError", "NotAnEncoder", "TapError", "SystemExit"}
QUIET = {"TQDM_DISABLE": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
#: With Linux's C library: each layer's maps get the memory of the last one's, which would else go back and be cleared anew each time.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}


class NotebookError(places.BookError):
    """A chapter does not exist, does not take a parameter, or failed."""


@dataclass(frozen=True)
class Run:
    """What happened to one chapter with one model.

    Attributes:
        file: the executed notebook.
        state: ``executed``, ``kept`` (it was there, made of the same sources with the same parameters), ``skipped`` (the model
            lacks what the chapter needs) or ``failed``.
        problem: why a chapter was skipped or failed.
    """

    chapter: str
    file: Path
    state: str
    seconds: float
    problem: str = ""

    def __str__(self) -> str:
        return f"{self.chapter}: {self.state}, {self.seconds:.0f} s" + (f": {self.problem}" if self.problem else "")


def chapters() -> list[str]:
    """Names of all chapters, in order: ``01_transformer_refresher``, …"""
    return sorted(file.stem for file in FOLDER.glob("[0-9][0-9]_*.ipynb"))


def find(name: str) -> str:
    """The chapter that a reader means by ``02``, ``surface_patterns`` or ``02_surface_patterns``.

    Raises:
        NotebookError: if there is none.
    """
    for chapter in chapters():
        if name in (chapter, chapter[:2], chapter[3:], str(int(chapter[:2]))):
            return chapter
    raise NotebookError(unknown("There is no chapter", name, chapters()))


def unknown(problem: str, name: str, known: Collection[str]) -> str:
    """The problem, the name that is not known, the one that was probably meant, and all that there are."""
    close = difflib.get_close_matches(name, known, 1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{problem} {name!r}.{hint} There are: {', '.join(known)}."


def select(names: Iterable[str]) -> list[str]:
    """The chapters that a reader names, in the order given; all for ``all``."""
    return chapters() if list(names) == ["all"] else [*dict.fromkeys(map(find, names))]


def resolved(model: str) -> str:
    """A model's name; of a folder its absolute path, since chapters run elsewhere. A name that the book knows is never a folder's."""
    base = model.removesuffix("@random")
    folder = Path(base).expanduser()
    if not folder.is_dir():
        return model
    from helpers.models import KNOWN  # with torch, which a run's own process does not need

    return model if base in KNOWN else f"{folder.absolute()}{model.removeprefix(base)}"


def read_values(given: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Parameters as a reader types them; paths are meant from where the reader stands, and chapters run elsewhere."""
    from_yaml = {name: read_yaml(name, text) for name, text in given if text[:1] in ("[", "{") and not is_path(text)}
    values = {name: from_yaml.get(name, text) for name, text in given}
    models = {name: resolved(values[name]) for name in ("model", "other") if name in values}
    return corpora.absolute(values) | models


def is_path(text: str) -> bool:
    """Whether a value names a file or a folder, or several with commas between."""
    return all(map(sources.exists, sources.names_in(text)))


def read_yaml(name: str, text: str) -> Any:
    """The value of a parameter that is no text: a number, a list, a mapping.

    Raises:
        NotebookError: for what is not YAML.
    """
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "it ends too early"
        wanted = "a file that is there, or YAML: 3, null, '[dev, test]', '{mlm: 40}'"
        raise NotebookError(f"{name}: {text!r} is neither a file nor YAML ({problem}). Expected: {wanted}.") from None


def defaults(chapter: str) -> dict[str, Any]:
    """The parameters that a chapter takes, with the values of its parameters cell: those of the book."""
    parameters = papermill.inspect_notebook(FOLDER / f"{chapter}.ipynb")
    return {name: ast.literal_eval(parameter["default"]) for name, parameter in parameters.items()}


def parameters(chapter: str, profile: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The parameters of a run that differ from the parameters cell.

    Args:
        given: values for parameters; a string is read as YAML where the parameter is not a text.

    Raises:
        NotebookError: for a parameter that the chapter does not take, or a value of another type.
    """
    own, chosen = defaults(chapter), {}
    if profile != "book":
        file = PROFILE_FOLDER / profile / f"{chapter}.yml"
        chosen = yaml.safe_load(file.read_text("utf-8")) if file.is_file() else {"profile": profile}
    for name, value in (given or {}).items():
        if name not in own:
            raise NotebookError(unknown(f"{chapter} has no parameter", name, own))
        chosen[name] = value if isinstance(own[name], str) or not isinstance(value, str) else read_yaml(name, value)
        wanted = type(own[name])
        if own[name] is not None and chosen[name] is not None and type(chosen[name]) is not wanted:
            raise NotebookError(
                f"{chapter}: {name} must be of type {wanted.__name__}, as {own[name]!r} is; {value!r} is not."
            )
    return {name: value for name, value in chosen.items() if value != own[name]}


def execute(chapter: str, target: Path, changed: dict[str, Any], results: Path, parts: bool, bar: bool) -> Run:
    """Execute a chapter with papermill and write the executed notebook; a run that fails leaves an older one in place.

    Args:
        changed: parameters that differ from the parameters cell.
        results: folder for the numbers that the chapter records.
        parts: keep finished parts of its passes beside the notebook, in ``parts/CHAPTER``, until it is finished.
        bar: show papermill's progress bar, a step for each cell.
    """
    start, state, problem = time.perf_counter(), "failed", ""
    scratch, kept = target.with_name(f"{chapter}.failed.ipynb"), target.parent / "parts" / chapter
    variables = QUIET | KEEP_MEMORY | {"BOOK_RESULTS": str(results)} | ({"BOOK_PARTS": str(kept)} if parts else {})
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with patch.dict(os.environ, variables):
            os.environ.pop("MPLBACKEND", None)  # "agg" would silently drop every inline figure
            done = _executed(FOLDER / f"{chapter}.ipynb", scratch, changed, bar)
        places.write(target, nbformat.writes(normalised(done)) + "\n")
        state = "executed"
    except PapermillExecutionError as error:
        problem = f"cell {error.exec_count} ended in {error.ename}: {error.evalue} (up to there: {scratch})"
        if error.ename in REFUSALS:
            problem, state = " ".join(str(error.evalue).split()), "skipped"
    except DeadKernelError:
        problem = "its kernel ended: it was stopped, or the memory was used up (then run one chapter at a time)"
    except (OSError, RuntimeError) as error:
        problem = str(error)
    if state != "failed":
        scratch.unlink()
        shutil.rmtree(kept, ignore_errors=True)
    return Run(chapter, target, state, time.perf_counter() - start, problem)


def _executed(source: Path, target: Path, given: dict[str, Any], bar: bool) -> nbformat.NotebookNode:
    """The notebook as papermill executes it; tried again if the kernel never answers.

    Kernels that start at the same moment can be given the same port, and one of them then cannot use it.
    """
    options = {"kernel_name": "python3", "cwd": str(places.ROOT), "progress_bar": bar}
    options |= {"extra_arguments": ["--IPKernelApp.log_level=CRITICAL"], "request_save_on_cell_execute": False}
    try:
        return papermill.execute_notebook(source, target, given, **options)
    except RuntimeError as error:
        if isinstance(error, DeadKernelError):
            raise
        return papermill.execute_notebook(source, target, given, **options)


def run(
    names: Iterable[str],
    folder: Path,
    *,
    profile: str,
    results: Path,
    given: Mapping[str, Any] | None = None,
    at_a_time: int = 1,
    keep: bool = False,
) -> list[Run]:
    """Execute chapters into a folder, several at a time; one that fails does not stop the others.

    Args:
        given: parameters beyond the profile's, for every chapter.
        profile: with ``full`` the finished parts of passes are kept, too, until a chapter is done (:func:`execute`).
        keep: leave alone what an earlier run has finished (:func:`is_current`).

    Raises:
        NotebookError: before anything is executed, for a parameter that a chapter does not take.
    """
    jobs = [(name, folder / f"{name}.ipynb", parameters(name, profile, given)) for name in names]
    done: dict[str, Run] = {}
    at_a_time = min(at_a_time, len(jobs))
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, joblib.cpu_count() // at_a_time)))
    with tqdm(total=len(jobs), desc="chapters", disable=len(jobs) == 1) as progress:
        for later in (False, True):
            waiting = [job for job in jobs if (job[0] in LATER) == later]
            if keep and not any(result.state == "executed" for result in done.values()):
                done |= {job[0]: Run(*job[:2], "kept", 0.0) for job in waiting if is_current(*job)}
            progress.update(len(done) - progress.n)
            waiting = [job for job in waiting if job[0] not in done]
            runs = [joblib.delayed(execute)(*job, results, profile == "full", at_a_time == 1) for job in waiting]
            for result in joblib.Parallel(at_a_time, return_as="generator_unordered")(runs):
                done[result.chapter] = result
                progress.update()
    return [done[name] for name, *_ in jobs]


def is_current(chapter: str, target: Path, changed: Mapping[str, Any]) -> bool:
    """Whether an executed notebook has these parameters and is newer than the chapter, the package and the book's data."""
    if not target.is_file():
        return False
    kept = nbformat.read(target, as_version=4).metadata.get("papermill", {}).get("parameters")
    sources = [FOLDER / f"{chapter}.ipynb", *(places.HOME / "helpers").rglob("*.*"), *places.book_data().rglob("*.*")]
    below = len(places.HOME.parts)
    made = [file.stat().st_mtime for file in sources if not {"results", "__pycache__"} & {*file.parts[below:]}]
    return kept == changed and target.stat().st_mtime > max(made)


def without_frames(output: str) -> str:
    """The HTML of :func:`helpers.views.bertviz` without its scripts, as it is kept in stored notebooks."""
    return re.sub(r' srcdoc="[^"]*"', ' srcdoc="Run this cell to draw the view."', output)


def normalised(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without what differs from run to run: times, ids, papermill's marks, scripts of other packages."""
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    about["papermill"] = {"parameters": notebook.metadata.papermill.get("parameters", {})}
    notebook.metadata = nbformat.from_dict(about)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:02d}"
        tags = cell.metadata.pop("tags", [])
        if tags:
            cell.metadata["tags"] = [*tags, "remove-cell"] if "injected-parameters" in tags else tags
        for name in ("papermill", "execution"):
            cell.metadata.pop(name, None)
        if "outputs" in cell:
            cell.outputs = joined(cell.outputs)
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = without_frames(output.data["text/html"])
    return notebook


def joined(outputs: Sequence[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Outputs of a cell; what it printed in one go is one text, however the kernel's messages cut it."""
    whole: list[nbformat.NotebookNode] = []
    for output in outputs:
        if whole and output.get("name") == whole[-1].get("name", "") and output.output_type == "stream":
            whole[-1].text += output.text
        else:
            whole.append(output)
    return whole
