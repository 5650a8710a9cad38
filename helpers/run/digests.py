"""What a chapter's outputs depend on, in one number: they are stale when it differs from that of the run they are from.

It follows the code as it is used (:mod:`helpers.engine.code`): the chapter's cells and parameters, the modules of
``helpers/`` that they import, directly or through others, the files of ``data/``, the recorded results of other chapters
that the cells read, files that parameters name, and the pinned versions of the libraries that compute and draw.
Comments, docstrings, layout and prose are no part of it; the lines of a function that the chapter prints are.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
import yaml

from helpers import places
from helpers.corpora import sources
from helpers.engine import code

LIBRARIES = ("torch", "transformers", "numpy", "scikit-learn", "matplotlib")
"""Libraries whose pinned versions count; others only carry, store and show."""


def digest(chapter: str, notebook: nbformat.NotebookNode, values: Mapping[str, Any]) -> str:
    """sha256 over everything that a run of the chapter with these parameters can see."""
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    used = code.used(["helpers", *(name for cell in cells for name in code.code_of(cell).imports)])
    seen = [
        [_said(cell) for cell in cells],
        [_shown(cell, used) for cell in cells],
        dict(values),
        code.digest(used),
        [(str(f.relative_to(places.ROOT)), places.sha256(f)) for f in _data_files(chapter, "\n".join(cells), values)],
        _claims(chapter, "\n".join(cells)),
        [places.sha256(file) for file in _own_files(values)],
        _pins(),
        *filter(None, [os.environ.get("BOOK_DTYPE")]),
    ]
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()


@lru_cache(maxsize=1024)
def _said(cell: str) -> list[Any]:
    """A cell's code; what it ends in decides whether its value is shown."""
    last = code.tree_of(cell).body[-1:]
    text = [one.value.value for one in last if code.is_text(one)]
    rest = [cell.split("\n")[one.end_lineno - 1].encode()[one.end_col_offset :].lstrip() for one in last]
    return [code.code_of(cell).said, text, [after[:1] == b";" for after in rest]]


def _shown(cell: str, used: Iterable[Path]) -> list[str]:
    """Lines of the functions that a cell prints with ``inspect.getsource``, wherever one of its names is defined."""
    if "inspect.getsource" not in cell:
        return []
    names = set(re.findall(r"\w+", cell))
    modules = [code.module(file) for file in used if file.suffix == ".py"]
    return [lines for module in modules for name, lines in module.shown.items() if name in names]


def _pins() -> list[str]:
    """Lines of the lock file that name the libraries."""
    lines = (places.ROOT / "requirements.lock").read_text("utf-8").split("\n")
    return sorted(line for line in lines if line.partition("==")[0] in LIBRARIES)


def _claims(chapter: str, cells: str) -> list[Any]:
    """The claims of papers that the chapter stands beside its numbers: its own, and those that its cells name."""
    papers = _papers((places.book_data() / "papers.yml").read_text("utf-8"))
    return [
        [key, name, claim]
        for key, paper in papers.items()
        for name, claim in paper["claims"].items()
        if claim["chapter"] == chapter[3:] or f'"{name}"' in cells
    ]


@lru_cache(maxsize=2)
def _papers(text: str) -> dict[str, Any]:
    return yaml.safe_load(text) or {}


READS = re.compile(r"""results\.(?:recorded|runs)\(\s*["'](\w+)["']""")


def reads(notebook: nbformat.NotebookNode) -> set[str]:
    """The names of the records that a notebook's code reads."""
    return {name for cell in notebook.cells if cell.cell_type == "code" for name in READS.findall(cell.source)}


def _data_files(chapter: str, cells: str, values: Mapping[str, Any]) -> list[Path]:
    """All of ``data/`` but results, adapters and the papers' claims; the results that the code reads, ``results.recorded("name", …)``; and the
    adapters if it loads a model with ``task=``.
    """
    data = places.book_data()
    stored = data / "results"
    apart = {stored} if re.search(r"\btask\s*=", cells) else {stored, data / "adapters"}
    found = (f for f in data.rglob("*") if f.is_file() and apart.isdisjoint(f.parents))
    files = [f for f in found if f.suffix != ".md" and f.name != "papers.yml"]
    for name in set(READS.findall(cells)):
        for file in stored.rglob(f"{name}.json"):
            profile = file.relative_to(stored).parts[0]
            written_by_this_run = name == chapter[3:] and profile == values.get("profile")
            if not written_by_this_run and profile != places.OWN:
                files.append(file)
    return sorted(files)


def _own_files(value: Any) -> Iterator[Path]:
    """Files that parameters name: a text or a treebank of your own, and what is in a folder, such as a model's."""
    if isinstance(value, Mapping | list | tuple):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _own_files(one)
    if not isinstance(value, str) or not value:
        return
    names = [value] if "," not in value or sources.exists(places.ROOT / value) else value.split(",")
    for name in names:  # several for the parts of a treebank
        path = places.ROOT / name.strip().removesuffix("@random")
        folder = os.sep in name  # "book" is a profile, not the folder of that name
        if sources.exists(path) and (folder or path.is_file()):
            yield from sources.files(path)
