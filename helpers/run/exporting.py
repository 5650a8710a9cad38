"""Recorded numbers for readers, as one long table or as a data set with what is in it, its licence and checksums."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.io.json import build_table_schema

from helpers import __version__, places, results
from helpers.run import template

#: Ending of a file's name -> how pandas writes it.
FORMATS = {
    ".csv": ("to_csv", {"index": False, "lineterminator": "\n"}),
    ".parquet": ("to_parquet", {"index": False, "compression": "zstd"}),
    ".jsonl": ("to_json", {"orient": "records", "lines": True, "double_precision": 15, "force_ascii": False}),
    ".tex": ("to_latex", {"index": False, "escape": True, "longtable": True, "na_rep": ""}),
}


def select(
    models: Iterable[str] = (),
    profile: str | None = None,
    chapters: Iterable[str] = (),
    quantities: Sequence[str] = (),
) -> pd.DataFrame:
    """The recorded numbers of some models (with their controls), a profile, chapters (names of notebooks) and quantities; of all where none is named.

    Raises:
        ResultError: for a model, a profile or a quantity of which nothing is recorded.
    """
    profiles = [profile] if profile else [*results.PROFILES, places.OWN]
    numbers = results.table(models, profiles, [name[3:] for name in chapters])
    known = set(numbers.quantity)
    for name in set(quantities) - known:
        raise results.ResultError(f"No number of the quantity {name}; there are {', '.join(sorted(known))}.")
    if numbers.empty:
        raise results.ResultError(
            f"Nothing is recorded of {profile or 'any profile'}. Runs with --profile smoke are tries, and in no table but their own."
        )
    return numbers[numbers.quantity.isin(quantities or known)]


def recorded_name(model: str) -> str:
    """The name that a model's numbers are recorded under: of a folder, and of a name given to one, that with the weights' digest."""
    known = sorted({name for name, _ in results.all_runs([*results.PROFILES, places.OWN])})
    label, folder = places.label(model), Path(model).is_absolute()
    digests = {name: name.rpartition("-") for name in known}
    same = [name for name, (of, _, sha) in digests.items() if (label.endswith(f"-{sha}") if folder else of == model)]
    return next((name for name in (model, label, *same) if name in known), model)


def write(numbers: pd.DataFrame, file: Path) -> list[Path]:
    """Write the long table (:func:`helpers.results.table`) in the format that the file's name ends in; beside it, as ``<name>.runs.json``,
    where it is from (:func:`helpers.results.provenance`), and as ``<name>.datapackage.json`` what its columns and quantities are (Frictionless).

    Raises:
        ResultError: for a name that says nothing of a format.
    """
    if file.suffix not in FORMATS:
        raise results.ResultError(f"{file.name}: give a name that ends in {', '.join(FORMATS)}.")
    method, options = FORMATS[file.suffix]
    shown = numbers.dropna(axis="columns", how="all") if file.suffix == ".tex" else numbers
    places.write(file, getattr(shown, method)(**options))
    beside = {".runs.json": results.provenance(numbers), ".datapackage.json": described(numbers, file)}
    for ending, content in beside.items():
        places.write(file.with_suffix(ending), json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return [file, *map(file.with_suffix, beside)]


def described(numbers: pd.DataFrame, file: Path) -> dict[str, Any]:
    """What a written long table holds, as a descriptor of Frictionless: type and meaning of its columns, unit and meaning of its quantities."""
    meanings, schema = results.from_yaml("columns"), build_table_schema(numbers, index=False, version=False)
    columns = [field | {"description": meanings[field["name"]]} for field in schema["fields"]]
    quantities = {}
    for chapter, rows in numbers.groupby("chapter"):
        known = results.from_yaml("quantities")[chapter[3:]]
        quantities[chapter] = {name: known[name] for name in known if name in set(rows.quantity)}
    table = {"name": "numbers", "type": "table", "path": file.name, "format": file.suffix[1:], "encoding": "utf-8"}
    runs = {"name": "runs", "path": file.with_suffix(".runs.json").name, "format": "json"}
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": "what-attention-heads-look-at",
        "version": __version__,
        "licenses": [{"name": "CC0-1.0", "path": "https://creativecommons.org/publicdomain/zero/1.0/"}],
        "resources": [table | {"schema": {"fields": columns, "missingValues": [""]}}, runs],
        "quantities": quantities,
    }


def write_data_set(folder: Path, models: Iterable[str], profiles: Iterable[str] = results.PROFILES) -> list[Path]:
    """Write the recorded results of some models as a data set; the same records give the same bytes.

    Returns:
        Its files, checksums last: ``sha256sum --check SHA256SUMS``.

    Raises:
        ResultError: for a model of which nothing is recorded.
    """
    numbers = results.table(models, profiles)
    page = template("dataset.md.j2").render(numbers=numbers, results=results, version=__version__)
    files = write(numbers, folder / "numbers.parquet")
    files += [folder / name for name in ("README.md", "LICENSE", "SHA256SUMS")]
    places.write(files[-3], page)
    places.write(files[-2], template("license.j2").render())
    places.write(files[-1], "".join(f"{places.sha256(file)}  {file.name}\n" for file in files[:-1]))
    return files
