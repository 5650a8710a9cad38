"""What code says, apart from how it is written, and which code other code uses.

Numbers become stale when the code that made them changes, not when a comment, a docstring or the layout does, and
not when other code of the package changes. The outputs of chapters (:mod:`helpers.run.digests`) and the finished
parts of long passes (:mod:`helpers.engine.shards`) are kept by these digests.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from helpers import places

_NOT_CODE = ("ctx", "kind", "type_ignores", "type_comment")  # fields of the tree that say nothing more


def parsed(tree: ast.AST) -> str:
    """The code of a tree without comments, docstrings and layout, in a form that all versions of Python agree on."""

    def text(node: Any) -> str:
        if isinstance(node, ast.AST):
            fields = ((name, value) for name, value in ast.iter_fields(node) if name not in _NOT_CODE)
            said = ((name, _without_nothing(node, value)) for name, value in fields)
            return (
                f"{type(node).__name__}({','.join(f'{n}={text(v)}' for n, v in said if v is not None and v != [])})"
            )
        return f"[{','.join(map(text, node))}]" if isinstance(node, list) else ascii(node)

    return text(tree)


def _without_nothing(node: ast.AST, value: Any) -> Any:
    """A field without what says nothing: statements that are a text, and the empty ends of f-strings, which Python 3.12 has."""
    if not isinstance(value, list):
        return value
    if isinstance(node, ast.JoinedStr):
        return [one for one in value if getattr(one, "value", None) != ""]
    return [one for one in value if not is_text(one)]


def is_text(node: Any) -> bool:
    """Whether a statement is nothing but a text."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def tree_of(source: str) -> ast.Module:
    """The tree of a module or of a notebook's cell; a line for IPython alone (``%magic``, ``!command``) counts as a call.

    Raises:
        SyntaxError: for what is no Python.
    """
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.parse(re.sub(r"(?m)^(\s*)([%!].*)$", lambda line: f"{line[1]}ipython({line[2]!r})", source))


@dataclass(frozen=True, eq=False)
class Code:
    """A module.

    Attributes:
        said: :func:`parsed` of it.
        imports: what it imports, absolute: ``helpers.engine.tokens`` or ``helpers.engine.tokens.batches``.
        texts: all texts in it, among which are the names of the files it reads.
        shown: function or class -> its lines without a docstring, as ``inspect.getsource`` would show them.
    """

    said: str
    imports: frozenset[str]
    texts: frozenset[str]
    shown: dict[str, str]


@lru_cache(maxsize=4096)  # more than all modules and cells together
def code_of(source: str, package: str = "") -> Code:
    """The code of a source; ``package`` is what its relative imports begin from."""
    tree, lines = tree_of(source), source.split("\n")
    nodes = list(ast.walk(tree))
    defined = (n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))
    return Code(
        parsed(tree),
        frozenset(name for node in nodes for name in _imported(node, package)),
        frozenset(n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)),
        {n.name: _lines(n, lines) for n in defined},
    )


def _lines(node: Any, lines: list[str]) -> str:
    told = {i for inner in ast.walk(node) if is_text(inner) for i in range(inner.lineno, inner.end_lineno + 1)}
    return "\n".join(lines[i - 1] for i in range(node.lineno, node.end_lineno + 1) if i not in told)


def _imported(node: ast.AST, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = [*above, *filter(None, [node.module])]
        yield from (".".join([*base, alias.name]) for alias in node.names)


def module(file: Path) -> Code:
    """The code of a file of the package."""
    return code_of(file.read_text("utf-8"), ".".join(file.relative_to(places.HOME).parent.parts))


def used(imports: Iterable[str]) -> list[Path]:
    """Files of the package that are used by whoever imports these: modules, directly or through others, and what they read.

    A file that is no module is used by a module of its folder in which its name stands.
    """
    found: set[Path] = set()
    waiting, met = set(imports), set()
    while waiting - met:
        met |= (now := waiting - met)
        for file in {file for name in now for file in _files(name)} - found:
            found.add(file)
            code = module(file)
            waiting |= code.imports
            found |= {f for f in file.parent.iterdir() if f.name in code.texts and f.suffix != ".py" and f.is_file()}
    return sorted(found)


def _files(name: str) -> Iterator[Path]:
    """Files that importing a dotted name runs: its packages from the outermost on, and the module."""
    folder, *rest = places.HOME, *name.split(".")
    if rest[0] != "helpers":
        return
    for part in rest:
        if (single := folder / f"{part}.py").is_file():
            yield single
            return
        folder = folder / part
        if not (folder / "__init__.py").is_file():
            return  # a name in a module, not a module
        yield folder / "__init__.py"


def digest(files: Iterable[Path]) -> str:
    """sha256 over what files of the package say: modules as :func:`parsed`, others byte by byte."""
    total = hashlib.sha256()
    for file in files:
        said = module(file).said.encode() if file.suffix == ".py" else file.read_bytes()
        total.update(f"{file.relative_to(places.HOME).as_posix()} {len(said)}\n".encode() + said)
    return total.hexdigest()
