"""A reader's own progress: what is solved and which hints were read, kept in the folder of the notebook.

Only notebooks keep it, in ``progress.json`` of the folder that they run in, and only for answers of the reader's own: a
cell of the book's solutions, or a run of the whole book, leaves no trace.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from helpers import places
from helpers.chapters import checks
from helpers.chapters.checks import Verdict

FILE = "progress.json"


@dataclass(frozen=True)
class Text:
    """A few lines for a reader."""

    text: str

    def _repr_markdown_(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def desk(names: Mapping[str, Any]) -> tuple[Callable[[str, Callable], Verdict], Callable[[str], Text], Callable]:
    """What a chapter's module of exercises offers its readers: ``check(name, answer)``, ``hint(name)`` and ``progress()``."""
    return partial(check, names), partial(hint, names), partial(progress, names)


def check(names: Mapping[str, Any], name: str, answer: Callable) -> Verdict:
    """Try an answer (:func:`helpers.chapters.checks.check`), and remember a right one that is the reader's own."""
    found = checks.check(names, name, answer)
    if found.solved and not getattr(answer, "__name__", "").endswith("_solution"):
        _keep(names, name, solved=True)
    return found


def hint(names: Mapping[str, Any], name: str, number: int = 0) -> Text:
    """The first hint of an exercise; asked again, the second; or that of a number, from 1.

    Raises:
        ValueError: there is no such exercise.
    """
    hints = checks.named(names, name).hints
    seen = number - 1 if number else _kept(names).get(name, {}).get("hints", 0)
    if seen >= len(hints):
        said = "\n".join(f"{number}. {one}" for number, one in enumerate(hints, 1))
        return Text(
            f"**{name}**, all hints:\n\n{said}\n\nThe solution stands folded under the exercise on the book's page."
        )
    _keep(names, name, hints=seen + 1)
    return Text(f"**{name}**, hint {seen + 1} of {len(hints)}: {hints[seen]}")


def progress(names: Mapping[str, Any]) -> Text:
    """What is solved of the chapter, the minutes left, and what comes next."""
    kept, minutes = _kept(names), _minutes(names)
    every = list(checks.exercises(names))
    open_ = [name for name in every if not kept.get(name, {}).get("solved")]
    rows = [_row(name, kept.get(name, {}), minutes.get(name)) for name in every]
    left = sum(minutes.get(name, 0) for name in open_)
    state = f"**{len(every) - len(open_)} of {len(every)}** solved"
    after = f", about {left} minutes left. Next: `{open_[0]}`." if open_ else ". Next: the open project."
    table = "\n".join(["| exercise | state | minutes |", "| --- | --- | --- |", *rows])
    return Text(f"{table}\n\n{state}{after}")


def _row(name: str, kept: Mapping[str, Any], minutes: int | None) -> str:
    hints = f", {kept['hints']} of its hints read" if kept.get("hints") else ""
    return f"| `{name}` | {'✅ solved' if kept.get('solved') else '⬜ open'}{hints} | {minutes or ''} |"


def _minutes(names: Mapping[str, Any]) -> dict[str, int]:
    """Minutes of each exercise, as the chapter's notebook says; none where there is no notebook."""
    found: dict[str, int] = {}
    for file in (places.ROOT / "notebooks").glob(f"[0-9][0-9]_{_chapter(names)}.ipynb"):
        said = 0
        for cell in json.loads(file.read_text("utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown" and (line := re.search(r"★[★☆]{2}, (\d+) minutes", source)):
                said = int(line[1])
            elif asked := re.search(r"exercises\.check\(\s*\"(\w+)\"", source):
                found.setdefault(asked[1], said)
    return found


def _chapter(names: Mapping[str, Any]) -> str:
    return names["__name__"].split(".")[-2]


def _kept(names: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is kept of the chapter; a file that cannot be read holds nothing."""
    return _all().get(_chapter(names), {})


def _all() -> dict[str, Any]:
    with suppress(OSError, ValueError):
        if isinstance(found := json.loads(Path(FILE).read_text("utf-8")), dict):
            return found
    return {}


def _keep(names: Mapping[str, Any], name: str, **state: Any) -> None:
    """Note the state of an exercise, in a notebook; a folder that takes no files keeps nothing, and the check goes on."""
    if not _in_notebook():
        return
    every = _all()
    own = every.setdefault(_chapter(names), {})
    own[name] = {**own.get(name, {}), **state}
    with suppress(OSError):
        places.write(Path(FILE), json.dumps(every, indent=1, sort_keys=True) + "\n")


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None
