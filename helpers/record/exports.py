"""The long table of numbers as files: CSV, Parquet, JSON Lines, and LaTeX for a paper; what was written can be read back."""

import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from helpers import places
from helpers.record import quantities
from helpers.record.results import ResultError

SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".tex": "latex", ".jsonl": "jsonl"}
"""Ending of a file's name -> its format."""

LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
LATEX |= {mark: f"\\{mark}" for mark in "&%$#_{}"}


class ExportError(ResultError):
    """A table cannot be written, or read, as is asked."""


def as_bytes(table: pd.DataFrame, form: str) -> bytes:
    """A table of :data:`quantities.COLUMNS` in one of the formats of :data:`SUFFIXES`.

    Raises:
        ExportError: for another format.
    """
    if form not in WRITERS:
        raise ExportError(f"There is no format {form!r}; there are {', '.join(WRITERS)}.")
    return WRITERS[form](table)


def write(table: pd.DataFrame, file: Path, form: str | None = None) -> Path:
    """Write a table in one step; the format follows from the name of the file unless it is given.

    Raises:
        ExportError: for a name that says nothing of a format.
    """
    places.write(file, as_bytes(table, form or format_of(file)))
    return file


def format_of(file: Path) -> str:
    """The format that the name of a file asks for.

    Raises:
        ExportError: for a name that says nothing of a format.
    """
    if file.suffix not in SUFFIXES:
        raise ExportError(
            f"{file.name}: give a name that ends in {', '.join(SUFFIXES)}, or say which format you want."
        )
    return SUFFIXES[file.suffix]


def read(file: Path, form: str | None = None) -> pd.DataFrame:
    """What :func:`write` wrote: the same columns, kinds and numbers.

    Raises:
        ExportError: for a name that says nothing of a format, or a file without these columns.
    """
    table = READERS[form or format_of(file)](file.read_bytes())
    if lacking := [name for name in quantities.COLUMNS if name not in table]:
        raise ExportError(f"{file.name} has no column {', '.join(lacking)}; it is no table of this book's numbers.")
    return quantities.typed(table)


def _as_csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n").encode()


def _from_csv(content: bytes) -> pd.DataFrame:
    options = {"keep_default_na": False, "na_values": [""], "float_precision": "round_trip"}
    return pd.read_csv(io.BytesIO(content), dtype={"of": "str", "label": "str"}, **options)


def _as_parquet(table: pd.DataFrame) -> bytes:
    return table.to_parquet(index=False, compression="zstd")


def _from_parquet(content: bytes) -> pd.DataFrame:
    return pd.read_parquet(io.BytesIO(content))


def _as_jsonl(table: pd.DataFrame) -> bytes:
    return table.to_json(orient="records", lines=True, double_precision=15, force_ascii=False).encode()


def _from_jsonl(content: bytes) -> pd.DataFrame:
    table = pd.read_json(io.BytesIO(content), lines=True, dtype=False, convert_dates=False, precise_float=True)
    return table if len(table) else pd.DataFrame(columns=list(quantities.COLUMNS))


def _as_latex(table: pd.DataFrame) -> bytes:
    """A ``longtable`` in the manner of ``booktabs``: what all rows share stands in comments above it, not in columns."""
    shared = {name: _text(column.iloc[0]) for name, column in table.items() if column.nunique(dropna=False) == 1}
    shown = table.drop(columns=list(shared))
    kinds = "".join("r" if pd.api.types.is_numeric_dtype(kind) else "l" for kind in shown.dtypes)
    rows = [" & ".join(map(_escaped, row)) + r" \\" for row in shown.itertuples(index=False, name=None)]
    lines = [f"% {name}: {value}" for name, value in shared.items()]
    lines += [f"\\begin{{longtable}}{{{kinds}}}", r"\toprule", " & ".join(shown.columns) + r" \\", r"\midrule"]
    lines += [r"\endhead", *rows, r"\bottomrule", r"\end{longtable}"]
    return ("\n".join(lines) + "\n").encode()


def _from_latex(content: bytes) -> pd.DataFrame:
    text = content.decode()
    shared = dict(re.findall(r"^% (\w+): (.*)$", text, re.MULTILINE))
    columns = re.search(r"\\toprule\n(.*) \\\\\n\\midrule", text)[1].split(" & ")
    body = text.partition("\\endhead\n")[2].partition("\\bottomrule")[0].splitlines()
    rows = [re.split(r" (?<!\\)& ", line.removesuffix(r" \\")) for line in body]
    table = pd.DataFrame([[_unescaped(cell) for cell in row] for row in rows], columns=columns, dtype=object)
    table = table.assign(**shared).reindex(columns=list(quantities.COLUMNS))
    return _from_csv(_as_csv(table))


def _text(value: object) -> str:
    return "" if pd.isna(value) else repr(value) if isinstance(value, float) else str(value)


def _escaped(value: object) -> str:
    return "".join(LATEX.get(mark, mark) for mark in _text(value))


def _unescaped(cell: str) -> str:
    marks = {written: mark for mark, written in LATEX.items()}
    return re.sub("|".join(map(re.escape, marks)), lambda found: marks[found[0]], cell)


WRITERS: Mapping[str, Callable[[pd.DataFrame], bytes]] = {
    "csv": _as_csv,
    "parquet": _as_parquet,
    "latex": _as_latex,
    "jsonl": _as_jsonl,
}
READERS: Mapping[str, Callable[[bytes], pd.DataFrame]] = {
    "csv": _from_csv,
    "parquet": _from_parquet,
    "latex": _from_latex,
    "jsonl": _from_jsonl,
}
