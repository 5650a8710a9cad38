"""Recording numbers with their provenance, reading them back, and the papers' numbers beside them."""

import json
import math
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from tabulate import tabulate

import helpers
from helpers import places
from helpers.rows import DIGITS, as_csv, joined
from helpers.stats import Estimate

if TYPE_CHECKING:  # who reads records does not wait for torch
    import pandas as pd

    from helpers.corpora.readers import Corpus
    from helpers.encoders import Encoder

VERSIONS = ("torch", "transformers", "numpy", "scikit-learn")


class ResultError(places.BookError, ValueError):
    """A result cannot be recorded, or has not been recorded."""


def path(chapter: str, *, model: str, profile: str, root: Path | None = None) -> Path:
    """Where a chapter's numbers lie: ``<results>/<profile>/<model>/<chapter>.json``, the model as :func:`helpers.places.label` has it.

    Raises:
        ResultError: for a profile or a model whose name would lead out of the folder of results.
    """
    folders = profile, places.label(model)
    for name in folders:
        if name in ("", "..") or Path(name).name != name:
            raise ResultError(
                f"Numbers cannot be kept under the name {name!r}. Give one of letters, digits, - and _."
            )
    return (root or places.results()).joinpath(*folders, f"{chapter}.json")


def record(
    chapter: str,
    values: Mapping[str, Any],
    *,
    encoder: "Encoder",
    corpus: "Corpus | None",
    profile: str,
    parameters: Mapping[str, Any],
    own: Sequence["Corpus"] = (),
    table: "Callable[[Mapping[str, Any]], Iterable[pd.DataFrame]] | None" = None,
) -> Path:
    """Write a chapter's numbers and where they come from; nothing half-written is ever left behind.

    A file that would differ only in its date is left alone, so that a repeated run changes nothing.

    Args:
        chapter: name of the chapter's module, such as ``surface_patterns``.
        values: numbers, strings, arrays, :class:`Estimate` objects, nested in dicts and lists.
        own: the reader's own among all that was read (:func:`helpers.corpora.own`). With any, or with a ``corpus`` that is one,
            the numbers are kept under :data:`helpers.places.OWN` and not under the profile.
        table: from the record to blocks of :func:`helpers.rows.rows`, which are kept beside it as CSV.

    Raises:
        ResultError: for NaN, infinity, or a type that JSON cannot hold; the message names the place.
    """
    provenance = {
        **_measured(encoder, corpus, own),
        "profile": profile,
        "parameters": plain(dict(parameters), "parameters"),
        **_machine(encoder),
        "date": datetime.now(UTC).date().isoformat(),
    }
    content = {"chapter": chapter, "provenance": provenance, "values": plain(values)}
    apart = bool(own) or (corpus is not None and corpus.own)
    file = path(chapter, model=encoder.name, profile=places.OWN if apart else profile)
    if not file.exists() or _without_date(json.loads(file.read_text("utf-8"))) != _without_date(content):
        places.write(file, _as_json(content) + "\n")
    if table is not None:
        places.write(file.with_suffix(".csv"), as_csv(joined(table(content))))
    return file


def _measured(encoder: "Encoder", corpus: "Corpus | None", own: Sequence["Corpus"]) -> dict[str, Any]:
    """Which weights and texts numbers are of."""
    return {
        "model": {"name": encoder.name, "class": type(encoder.model).__name__, "sha256": encoder.sha256},
        "head": None if encoder.head is None else {"task": encoder.task, "sha256": encoder.head.sha256},
        "corpus": None if corpus is None else _named(corpus),
        **({"own": [_named(one) for one in own]} if own else {}),
    }


def _machine(encoder: "Encoder") -> dict[str, Any]:
    """What numbers were computed with: the device, a precision other than single, and versions."""
    precision = str(encoder.dtype).removeprefix("torch.")
    return {
        "device": encoder.device.type,
        **({} if precision == "float32" else {"dtype": precision}),
        "versions": {"book": helpers.__version__, "python": platform.python_version()}
        | {name: version(name) for name in VERSIONS},
    }


def _named(corpus: "Corpus") -> dict[str, Any]:
    found = {"name": corpus.name, "sha256": corpus.sha256}
    return found | ({"own": True, "parts": corpus.parts} if corpus.own else {})


def recorded(chapter: str, *, model: str = "minilm", profile: str = "book") -> dict[str, Any]:
    """Numbers recorded by an earlier run: ``{"chapter", "provenance", "values"}``.

    This run's own results come first (``BOOK_RESULTS``), then those that travel with the book.

    Raises:
        ResultError: if there are none; the message lists what there is.
    """
    roots = [places.results(), places.book_data() / "results"]
    for root in roots:
        file = path(chapter, model=model, profile=profile, root=root)
        if file.exists():
            return json.loads(file.read_text("utf-8"))
    known = sorted({str(f.relative_to(r).with_suffix("")) for r in roots for f in r.rglob(f"{chapter}.json")})
    raise ResultError(
        f"Nothing is recorded for {chapter!r} with model {model!r} and profile {profile!r}. "
        f"Recorded: {', '.join(known) or 'nothing'}. Run: python -m helpers run {chapter} --model {model} --profile {profile}"
    )


def runs(chapter: str, *, profile: str) -> dict[str, dict[str, Any]]:
    """Every recorded run of a chapter with a profile: name of the model -> what :func:`recorded` gives, by name."""
    return {model: json.loads(file.read_text("utf-8")) for model, file in files(chapter, profile=profile).items()}


def files(chapter: str, *, profile: str, suffix: str = ".json") -> dict[str, Path]:
    """Name of the model -> record (or ``.csv``: its table) of every run of a chapter with a profile, by name; own runs before those of the book."""
    roots = [places.book_data() / "results", places.results()]
    found = {file.parent.name: file for root in roots for file in (root / profile).glob(f"*/{chapter}{suffix}")}
    named = {_model_of(file): file for file in found.values()}
    return {model: named[model] for model in sorted(named)}


def _model_of(file: Path) -> str:
    """The name of the model that a record is of; a path, as long as the model is still there."""
    name, folder = (
        json.loads(file.with_suffix(".json").read_text("utf-8"))["provenance"]["model"]["name"],
        file.parent.name,
    )
    return name if places.label(name) == folder else folder.replace("--", "/")


def plain(value: Any, where: str = "values") -> Any:
    """What would be recorded of a value: the same in JSON's own types, rounded.

    Raises:
        ResultError: for NaN, infinity, or a type that JSON cannot hold; the message names the place.
    """
    if isinstance(value, Estimate):
        ends = {end: np.where(np.isnan(found := getattr(value, end)), None, found)[()] for end in ("low", "high")}
        return {key: plain(found, f"{where}.{key}") for key, found in ({"value": value.value} | ends).items()}
    if isinstance(value, Mapping):
        return {str(key): plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist(), where)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item, f"{where}[{n}]") for n, item in enumerate(value)]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            raise ResultError(f"{where} is {value}; only finite numbers are recorded.")
        return round(float(value), DIGITS)
    if isinstance(value, np.integer):
        return int(value)
    raise ResultError(f"{where} is of type {type(value).__name__}, which cannot be recorded.")


def _as_json(content: Any) -> str:
    """Indented JSON with each innermost list on one line: short diffs, small files."""

    def write(value: Any, indent: int) -> str:
        if isinstance(value, dict):
            pad = " " * (indent + 1)
            items = (f"{pad}{json.dumps(k)}: {write(v, indent + 1)}" for k, v in value.items())
            return "{\n" + ",\n".join(items) + "\n" + " " * indent + "}" if value else "{}"
        if isinstance(value, list) and any(isinstance(item, list | dict) for item in value):
            pad = " " * (indent + 1)
            return "[\n" + ",\n".join(pad + write(v, indent + 1) for v in value) + "\n" + " " * indent + "]"
        return json.dumps(value, ensure_ascii=False)

    return write(content, 0)


def _without_date(content: dict[str, Any]) -> dict[str, Any]:
    provenance = {k: v for k, v in content["provenance"].items() if k != "date"}
    return content | {"provenance": provenance}


# ---------------------------------------------------------------------------------------- the papers


@lru_cache(maxsize=1)
def _papers() -> dict[str, Any]:
    return yaml.safe_load((places.book_data() / "papers.yml").read_text("utf-8"))


def paper(key: str, claim: str) -> dict[str, Any]:
    """What a paper reports, from ``data/papers.yml``: value or rows, unit, model, where.

    Raises:
        ResultError: for an unknown paper or claim; the message lists those there are.
    """
    papers = _papers()
    if key not in papers:
        raise ResultError(f"No paper {key!r} in data/papers.yml; there are {', '.join(papers)}.")
    claims = papers[key]["claims"]
    if claim not in claims:
        raise ResultError(f"No claim {claim!r} of {key} in data/papers.yml; there are {', '.join(claims)}.")
    return claims[claim]


BOUNDS = {"lower": "over ", "upper": "at most ", "approx": "about "}


def paper_text(claim: Mapping[str, Any]) -> str:
    """A claim of ``data/papers.yml`` as a table cell: value and unit, or the paper's words, and where it stands."""
    if "words" in claim:
        return f"{claim['words']} ({claim['where']})"
    value = claim["value"]
    if isinstance(value, Mapping):
        shown = ", ".join(f"{key}: {item}" for key, item in value.items())
    else:
        shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    shown = re.sub(r"(?<![\w.])-(?=\d)", "−", shown)
    unit = {"%": " %"}.get(claim.get("unit"), "")
    return f"{BOUNDS.get(claim.get('bound'), '')}{shown}{unit} ({claim['where']})"


# ---------------------------------------------------------------------------------------- tables


class Table:
    """A table that shows itself as Markdown in a notebook and in the book.

    Args:
        columns: headings.
        rows: one sequence of cells each.
        digits: decimals of floats and estimates (an estimate is shown with its interval).
    """

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, digits: int = 3) -> None:
        self.columns, self.cells = list(columns), [list(row) for row in rows]
        for row in self.cells:
            if len(row) != len(self.columns):
                raise ResultError(f"The row {row} has {len(row)} cells for {len(self.columns)} columns.")
        number = float | np.floating | Estimate
        shown = f"z.{digits}f"  # z: a number that rounds to nothing has no sign
        self.rows = [
            [format(cell, shown) if isinstance(cell, number) else str(cell) for cell in row] for row in self.cells
        ]

    def __repr__(self) -> str:
        headings, *rows = ([_as_markdown(cell) for cell in row] for row in [self.columns, *self.rows])
        return tabulate(rows, headings, tablefmt="github", disable_numparse=True)

    _repr_markdown_ = __repr__

    def frame(self) -> "pd.DataFrame":
        """The table as a data frame, with numbers as they are, not rounded.

        A column with estimates becomes three: its own name for the values, and with ``low`` and ``high`` after it for the ends of
        their intervals, empty where a cell is no estimate.
        """
        import pandas as pd  # here, since showing a table needs none of it

        columns = []
        for number, name in enumerate(self.columns):
            cells = [row[number] for row in self.cells]
            columns.append((name, [float(c.value) if isinstance(c, Estimate) else c for c in cells]))
            for end in ("low", "high") if any(isinstance(c, Estimate) for c in cells) else ():
                ends = [float(getattr(c, end)) if isinstance(c, Estimate) else None for c in cells]
                columns.append((f"{name} {end}", ends))
        series = [pd.Series(cells, name=name) for name, cells in columns]
        return pd.concat(series, axis=1) if series else pd.DataFrame()


_CODE = re.compile(r"(?<![\\`])(`+)(?!`)(.+?)(?<!`)\1(?!`)")


def _as_markdown(cell: str) -> str:
    """Markdown in which no HTML is: a name, a token or a text of somebody's own is shown as it is typed, tags and all."""
    shown, end = "", 0
    for code in _CODE.finditer(cell):  # what is in code spans is no HTML anyway
        shown += escape(cell[end : code.start()], quote=False) + code[0]
        end = code.end()
    return (shown + escape(cell[end:], quote=False)).replace("|", "\\|")
