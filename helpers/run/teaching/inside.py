"""What runs in the process of one submission: find the function that was handed in, call it, write down its results.

Everything here runs beside code that nobody has read, so it decides nothing: the cases come from the grader, the results go
back as plain data (never as pickles, which run code when they are opened), and what they are worth is found out over there.
It imports nothing of the book, so that it starts quickly.
"""

import ast
import base64
import io
import json
import os
import pickle
import re
import symtable
import sys
from collections.abc import Iterator, Mapping
from typing import Any

SAID = 300
"""Characters of an error that are handed on."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
WHOLE = (*DEFINITIONS, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
"""Statements that bind a name whatever it was; a loop or a condition may leave it."""


class Missing(Exception):
    """The notebook does not hold what is asked for, or is none."""


def cells(content: bytes) -> list[ast.Module]:
    """The cells of code of a notebook, as far as they are Python."""
    return [tree for source in sources(content) if (tree := _parsed(source)) is not None]


def sources(content: bytes) -> list[str]:
    """The text of the cells of code of a notebook.

    Raises:
        Missing: for what is no notebook.
    """
    try:
        found = json.loads(content)["cells"]
        return ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Missing("this file is no notebook.") from None


def _parsed(source: str) -> ast.Module | None:
    """The tree of a cell; lines for IPython alone (``%magic``, ``!command``) are left out."""
    try:
        return ast.parse(re.sub(r"(?m)^\s*[%!].*$", "", source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def handed_in(lines: list[ast.stmt], exercise: str) -> tuple[ast.expr, int]:
    """What the notebook gives to the last check of an exercise, apart from the book's own solution, and the number of that line.

    Without a check the function of the exercise's name, at the end.
    """
    found: tuple[ast.expr, int] = ast.Name(exercise, ast.Load()), len(lines)
    for number, line in enumerate(lines):
        for call in (node for node in ast.walk(line) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "check" and len(call.args) == 2:
                name, answer = call.args
                if isinstance(name, ast.Constant) and name.value == exercise and not _solution(answer):
                    found = answer, number
    return found


def _solution(answer: ast.expr) -> bool:
    return isinstance(answer, ast.Name) and answer.id.endswith("_solution")


def needed(lines: list[ast.stmt], wanted: ast.expr, end: int) -> list[ast.stmt]:
    """The statements that bind the names which an expression on line ``end`` needs, directly or through others, in their order.

    A name is what it was bound to last: what else in the notebook bears it is left alone.
    """
    bound = [_bound(line) for line in lines]
    waiting, seen, kept = [(name, end) for name in _globals(ast.Expr(wanted))], set(), set()
    while waiting:
        name, before = asked = waiting.pop()
        if asked in seen:
            continue
        seen.add(asked)
        for number in _last(lines, [n for n, binds in enumerate(bound) if name in binds], before):
            kept.add(number)
            read = end if isinstance(lines[number], DEFINITIONS) else number  # a function reads when it is called
            waiting += [(other, read) for other in _globals(lines[number])]
    return [lines[number] for number in sorted(kept)]


def _last(lines: list[ast.stmt], numbers: list[int], before: int) -> list[int]:
    """Of the lines that bind a name the last one before a line, and those before it as long as one may leave the name as it was."""
    earlier = [number for number in numbers if number < before]
    if not earlier:
        return numbers
    whole = [number for number in earlier if isinstance(lines[number], WHOLE)]
    return [number for number in earlier if not whole or number >= whole[-1]]


def parts(trees: list[ast.Module]) -> list[ast.stmt]:
    """The statements of all cells, an import of several names as one for each."""
    return [part for tree in trees for line in tree.body for part in _parts(line)]


def _parts(line: ast.stmt) -> Iterator[ast.stmt]:
    if not isinstance(line, ast.Import | ast.ImportFrom):
        yield line
    elif isinstance(line, ast.Import):
        yield from (ast.Import([alias]) for alias in line.names)
    else:
        yield from (ast.ImportFrom(line.module, [alias], line.level) for alias in line.names)


def _table(line: ast.stmt) -> symtable.SymbolTable:
    return symtable.symtable(ast.unparse(ast.fix_missing_locations(line)), "cell", "exec")


def _bound(line: ast.stmt) -> set[str]:
    return {s.get_name() for s in _table(line).get_symbols() if s.is_assigned() or s.is_imported()}


def _globals(line: ast.stmt) -> set[str]:
    """Names of the module that a statement reads, functions in it included."""
    top = _table(line)
    inner, found = list(top.get_children()), {s.get_name() for s in top.get_symbols() if s.is_referenced()}
    while inner:
        table = inner.pop()
        inner += table.get_children()
        found |= {s.get_name() for s in table.get_symbols() if s.is_global()}
    return found


def answer_of(content: bytes, exercise: str) -> Any:
    """The function that a notebook hands in for an exercise; nothing else of the notebook is run.

    Raises:
        Missing: when there is none.
    """
    every = parts(cells(content))
    wanted, end = handed_in(every, exercise)
    lines = needed(every, wanted, end)
    if isinstance(wanted, ast.Name) and not any(wanted.id in _bound(line) for line in lines):
        broken = " At least one of its cells is not Python." if None in map(_parsed, sources(content)) else ""
        raise Missing(f"there is no function `{wanted.id}` in this notebook.{broken}")
    module = ast.fix_missing_locations(ast.Module(lines, []))
    space: dict[str, Any] = {"__name__": "submission"}
    exec(compile(module, "submission", "exec"), space)
    return eval(compile(ast.fix_missing_locations(ast.Expression(wanted)), "submission", "eval"), space)


def plain(value: Any) -> Any:
    """A result as data that JSON can hold; :func:`helpers.run.teaching.grading.opened` turns it back."""
    import numpy as np

    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if hasattr(value, "__array__"):
        packed = io.BytesIO()
        np.save(packed, np.asarray(value), allow_pickle=False)
        return {"array": base64.b64encode(packed.getvalue()).decode()}
    if isinstance(value, Mapping):
        return {"list": [plain(key) for key in value]}
    kind = next((kind for kind in (tuple, set, frozenset) if isinstance(value, kind)), list)
    return {"set" if kind is frozenset else kind.__name__: [plain(one) for one in value]}


def limit(seconds: int, memory: int) -> None:
    """Bound this process: time of the processor, memory and size of files in bytes, no dump of its memory."""
    import resource

    bounds = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_FSIZE: 64 << 20,
        resource.RLIMIT_CORE: 0,
    }
    for what, most in bounds.items():
        resource.setrlimit(what, (most, most))


def without_network() -> None:
    """Let Python open no connection; code that is meant to can get round this, which a network of its own prevents."""
    import socket

    def refused(*given: Any, **named: Any) -> None:
        raise OSError("There is no network while a submission is graded.")

    class Refused(socket.socket):  # a class, since ssl, which many libraries import, makes one of its own from it
        __init__ = refused

    socket.socket, socket.create_connection, socket.getaddrinfo = Refused, refused, refused  # type: ignore[misc,assignment]


def main() -> None:
    """Read a job, write a line of JSON for each case: the result, or the error that the function or the notebook raised."""
    job = pickle.load(sys.stdin.buffer)
    report = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    limit(job["seconds"], job["memory"])
    without_network()

    def say(**said: Any) -> None:
        report.write(json.dumps(said) + "\n")
        report.flush()

    try:
        answer = answer_of(job["notebook"], job["exercise"])
        for case in job["cases"]:
            result = plain(answer(*case))
            after = [plain(one) if hasattr(one, "__array__") else None for one in case] if job["untouched"] else []
            say(result=result, after=after)
    except BaseException as error:  # whatever it raises, exit included, is said and costs nobody else anything
        say(error=type(error).__name__, message=str(error)[:SAID])


if __name__ == "__main__":
    main()
