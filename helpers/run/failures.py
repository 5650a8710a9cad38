"""What ended a chapter or a command, said in a sentence: what, where, what to do next."""

import builtins
import errno
import re
from concurrent.futures.process import BrokenProcessPool
from functools import cache

from helpers import places


class NotebookError(places.BookError):
    """A chapter does not exist, does not take a parameter, or failed."""


class Refused(NotebookError):
    """A chapter that cannot be run with this model, and says why: the model has no head for its task, for example."""


REFUSALS = {"AdapterError", "EncoderError", "SystemExit"}
"""Errors with which helpers refuse a model, these and those that descend from them; any other that ends a chapter is a failure."""

ENDED = (
    "was ended from outside, most often because the memory was used up. Run fewer chapters at a time (--at-a-time 1), a "
    "smaller model or smaller samples; the same command goes on."
)

_ELSEWHERE = "or name another place: with --to, BOOK_RESULTS or BOOK_CACHE"
NEXT = {
    errno.ENOSPC: f"Free some space, {_ELSEWHERE}.",
    errno.EDQUOT: f"Free some space, {_ELSEWHERE}.",
    errno.EACCES: f"Take the right to it, {_ELSEWHERE}.",
    errno.EPERM: f"Take the right to it, {_ELSEWHERE}.",
    errno.EROFS: f"Make it writable, {_ELSEWHERE}.",
    errno.ENOTDIR: "A folder is needed there; name another place, or move the file that is in the way.",
    errno.EEXIST: "A folder is needed there; name another place, or move the file that is in the way.",
    errno.EISDIR: "A file is needed there; name another place, or move the folder that is in the way.",
    errno.ENOENT: "Check that it is there, and was not removed meanwhile.",
    errno.EMFILE: "Let a process open more files (ulimit -n 4096), or run fewer chapters at a time.",
}


def sentence(error: OSError) -> str:
    """What the system has refused, where, and what to do next."""
    if error.errno is None:
        return str(error) or type(error).__name__
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror}. {NEXT.get(error.errno, 'Check the place, and give the command again.')}"


def of_process(chapter: str, error: Exception) -> NotebookError:
    """The failure of a chapter whose process has raised an error, or was ended."""
    if isinstance(error, NotebookError):
        return error
    if isinstance(error, BrokenProcessPool):
        return NotebookError(f"{chapter}: its process {ENDED}")
    return NotebookError(f"{chapter}: {sentence(error) if isinstance(error, OSError) else str(error)}")


def of_cell(chapter: str, number: int, name: str, said: str, traceback: list[str]) -> NotebookError:
    """The failure, or refusal, of a chapter one of whose cells has raised an error; only one that nobody foresaw keeps its traceback.

    Args:
        name, said: class and message of the error.
        traceback: its lines.
    """
    kinds = {name} | ancestors(name)
    if kinds & REFUSALS:
        return Refused(" ".join(said.split()) or f"{chapter} ended itself in cell {number} and did not say why.")
    if "OSError" in kinds:
        found = re.fullmatch(r"\[Errno (\d+)\] (.*?)(?:: '(.*)')?", said, re.DOTALL)
        return NotebookError(f"{chapter}: {sentence(OSError(int(found[1]), *found.groups()[1:])) if found else said}")
    if "BookError" in kinds:
        return NotebookError(f"{chapter}: {said}")
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in traceback[-12:]]
    return NotebookError(f"{chapter} failed in cell {number} with {name}: {said}\n" + "\n".join(lines))


def ancestors(name: str) -> set[str]:
    """Names of the classes that an error of this package, or of Python, descends from; a kernel tells no more than its own name."""
    if isinstance(built_in := getattr(builtins, name, None), type):
        return {one.__name__ for one in built_in.__mro__[1:]}
    above = _bases().get(name, ())
    return set(above).union(*map(ancestors, above))


@cache
def _bases() -> dict[str, list[str]]:
    """Name of each class of the package -> names of those it inherits; read, not imported, which would take seconds."""
    modules = (file.read_text("utf-8") for file in (places.HOME / "helpers").rglob("*.py"))
    found = (re.findall(r"^class (\w+)\(([\w., ]+)\):", text, re.MULTILINE) for text in modules)
    return {name: re.findall(r"(\w+)(?:,|$)", bases) for every in found for name, bases in every}
