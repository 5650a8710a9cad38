"""The numbers of all records in one long table, a row each, with whose they are; and that table for readers."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from helpers import places, results
from helpers.rows import COLUMNS, NUMBERS, RANDOM, SHUFFLED, STORED, WHOLE, as_csv, joined

PROFILES = ("book", "full")
KEY = ("model", "profile", "chapter", "quantity", "layer", "head", "of", "label")
"""Columns that tell every row from every other."""
TEXT = "str" if int(pd.__version__.split(".")[0]) > 2 else object
"""What a column of texts is: pandas 2 would make the text "nan" of what is absent."""
DEFAULT = "minilm"


# ---------------------------------------------------------------------------------------- read


def renew(root: Path) -> None:
    """Write the table beside every record in a folder again: after a new quantity."""
    for chapter in vocabulary():
        for file in (file for profile in PROFILES for file in root.glob(f"{profile}/*/{chapter}.json")):
            blocks = import_module(f"helpers.chapters.{chapter}.tables").tidy(json.loads(file.read_text("utf-8")))
            places.write(file.with_suffix(".csv"), as_csv(joined(blocks)))


@cache
def vocabulary() -> dict[str, dict[str, dict[str, str]]]:
    """Chapter -> quantity -> unit and meaning, from ``data/quantities.yml``."""
    return yaml.safe_load((places.book_data() / "quantities.yml").read_text("utf-8"))


def runs_of(chapter: str, profile: str) -> dict[str, dict[str, Any]]:
    """Name of the model -> provenance and table of every recorded run of a chapter that has a table, by name."""
    found = {}
    for model, file in results.files(chapter, profile=profile, suffix=".csv").items():
        record = json.loads(file.with_suffix(".json").read_text("utf-8"))
        found[model] = {name: record[name] for name in ("chapter", "provenance")} | {"table": from_csv(file)}
    return found


def from_csv(file: Path) -> pd.DataFrame:
    """A stored table with all of :data:`STORED`."""
    texts = {name: "str" for name in STORED if name not in (*WHOLE, *NUMBERS)}
    table = pd.read_csv(file, dtype=texts, keep_default_na=False, na_values={name: [""] for name in STORED})
    table = table.reindex(columns=list(STORED))
    return table.assign(network=table.network.fillna(""))


def table(
    models: Iterable[str] | None = None, profiles: Iterable[str] = PROFILES, chapters: Iterable[str] = ()
) -> pd.DataFrame:
    """All recorded numbers in the long form of :data:`COLUMNS`.

    Args:
        models: names of encoders, whose controls come with them, or of controls (default: every one that is recorded).
        profiles: of which runs.
        chapters: names of their modules (default: all).

    Raises:
        ResultError: for a model of which nothing is recorded.
    """
    wanted, profiles = list(models or ()), list(profiles)
    runs = [
        (record, model)
        for chapter in list(chapters) or vocabulary()
        for profile in profiles
        for model, record in runs_of(chapter, profile).items()
    ]
    # what a run of a control itself says counts before what its model's run says of it
    runs.sort(key=lambda run: run[1] == trained(run[1]))
    found = of_records(runs).drop_duplicates(list(KEY), ignore_index=True)
    if lacking := [model for model in wanted if model not in set(found.model)]:
        known = ", ".join(sorted({model for _, model in runs})) or "nothing"
        raise results.ResultError(
            f"Nothing is recorded of {', '.join(lacking)} with profile {' or '.join(profiles)}. Recorded: {known}. "
            f"Run: python -m helpers run all --model {lacking[0]}"
        )
    named = found.model.isin(wanted) | found.model.map(trained).isin(wanted)
    return found[named].reset_index(drop=True) if wanted else found


@cache
def trained(model: str) -> str:
    """The model that a control is of; a model itself."""
    return re.sub(f"({RANDOM}|{SHUFFLED})+$", "", model)


def of_records(records: Iterable[tuple[Mapping[str, Any], str]]) -> pd.DataFrame:
    """The long table of some records, each with the name of its model."""
    return typed(pd.concat([pd.DataFrame(columns=list(COLUMNS)), *(_of_record(*one) for one in records)]))


def _of_record(record: Mapping[str, Any], model: str) -> pd.DataFrame:
    found, provenance = record["table"], record["provenance"]
    if model.endswith(RANDOM):  # a random network beside a random network
        found = found[found.network != RANDOM]
    weights = pd.Series(provenance["model"]["sha256"], found.index).where(found.network != RANDOM)
    corpus = provenance["corpus"] or {}
    units = {name: said["unit"] for name, said in vocabulary()[record["chapter"]].items()}
    whose = {
        "model": found.model.where(found.model.notna(), model + found.network),
        "sha256": found.sha256.where(found.model.notna(), weights),
        "profile": places.OWN if provenance.get("own") or corpus.get("own") else provenance["profile"],
        "chapter": notebooks().get(record["chapter"], record["chapter"]),
        "corpus": found.corpus.where(found.corpus.notna(), corpus.get("name")).replace("", None),
        "unit": found.quantity.map(units),
    }
    return found.assign(**whose)[list(COLUMNS)]


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns in order, as whole numbers that may be absent, float64, and texts; the same whatever the rows are."""
    kinds = dict.fromkeys(WHOLE, "Int64") | dict.fromkeys(NUMBERS, "float64")
    texts = {
        name: frame[name].astype(object).where(frame[name].notna(), np.nan) for name in COLUMNS if name not in kinds
    }
    frame = frame.assign(**texts)[list(COLUMNS)].astype({name: kinds.get(name, TEXT) for name in COLUMNS})
    return frame.reset_index(drop=True)


def chosen(frame: pd.DataFrame, column: str, wanted: Iterable[str]) -> pd.DataFrame:
    """The rows whose column has one of the values that are wanted; all rows if none is.

    Raises:
        ResultError: for a value that no row has; the message lists those there are.
    """
    wanted, known = list(wanted), list(dict.fromkeys(frame[column].dropna()))
    if unknown := [value for value in wanted if value not in known]:
        raise results.ResultError(f"No number of the {column} {', '.join(unknown)}; there are {', '.join(known)}.")
    return frame[frame[column].isin(wanted)] if wanted else frame


@cache
def notebooks() -> dict[str, str]:
    """Name of a chapter's module -> that of its notebook, in the order of the book."""
    toc = (places.ROOT / "book" / "_toc.yml").read_text("utf-8")
    return {name[3:]: name for name in re.findall(r"notebooks/(\w+)", toc)}


def models(profiles: Sequence[str] = PROFILES) -> dict[str, dict[str, list[str]]]:
    """Every model that has a table, the default one first, its adapters and controls after it: model -> profile -> names of the chapters' modules."""
    found: dict[str, dict[str, list[str]]] = {}
    for profile in profiles:
        for chapter in vocabulary():
            for model in results.files(chapter, profile=profile, suffix=".csv"):
                found.setdefault(model, {}).setdefault(profile, []).append(chapter)
    return {model: found[model] for model in sorted(found, key=rank)}


def rank(model: str) -> tuple[bool, str, bool, str]:
    """Where a model stands in a list: what names are sorted by."""
    family = model.split("@")[0].split("-")[0]
    return family != DEFAULT, family, "@" in model, model


# ---------------------------------------------------------------------------------------- for readers


FORMATS = {".csv": "csv", ".parquet": "parquet", ".tex": "latex", ".jsonl": "jsonl"}
"""Ending of a file's name -> its format."""


def as_bytes(table: pd.DataFrame, form: str) -> bytes:
    """The long table in one of :data:`FORMATS`; LaTeX without columns that are empty."""
    if form == "csv":
        return table.to_csv(index=False, lineterminator="\n").encode()
    if form == "parquet":
        return table.to_parquet(index=False, compression="zstd")
    if form == "jsonl":
        return table.to_json(orient="records", lines=True, double_precision=15, force_ascii=False).encode()
    return (
        table.dropna(axis="columns", how="all").to_latex(index=False, escape=True, longtable=True, na_rep="").encode()
    )


def write(table: pd.DataFrame, file: Path, form: str | None = None) -> Path:
    """Write the long table; the format follows from the name of the file unless it is given.

    Raises:
        ResultError: for a name that says nothing of a format.
    """
    form = form or FORMATS.get(file.suffix)
    if form is None:
        raise results.ResultError(
            f"{file.name}: give a name that ends in {', '.join(FORMATS)}, or say which format you want."
        )
    places.write(file, as_bytes(table, form))
    return file


def columns() -> results.Table:
    """The columns and what is in each."""
    kinds = dict.fromkeys(WHOLE, "whole number") | dict.fromkeys(NUMBERS, "number")
    rows = [[f"`{name}`", kinds.get(name, "text"), said] for name, said in COLUMNS.items()]
    return results.Table(["column", "kind", "what is in it"], rows)


def encoders(table: pd.DataFrame) -> results.Table:
    """Each model with its weights and how many layers, heads in each, and numbers there are."""
    rows = []
    for (model, profile), found in table.groupby(["model", "profile"], sort=True):
        weights = next(iter(found.sha256.dropna()), "")
        shown = f"`{weights[:16]}…`" if weights else ""
        rows.append([f"`{model}`", profile, shown, found.layer.max(), found["head"].max(), f"{len(found):,}"])
    return results.Table(["model", "profile", "sha256 of the weights", "layers", "heads", "numbers"], rows)


def corpora(table: pd.DataFrame) -> results.Table:
    """Each corpus with the profile and the chapters that measured on it."""
    groups = table.dropna(subset="corpus").groupby(["corpus", "profile"], sort=True)
    rows = [
        [f"`{corpus}`", profile, ", ".join(sorted({name[:2] for name in found.chapter}))]
        for (corpus, profile), found in groups
    ]
    return results.Table(["corpus", "profile", "chapters"], rows)


def quantities(table: pd.DataFrame) -> str:
    """A heading for each chapter and its quantities, in Markdown: unit, meaning, whether of heads, layers or models, how many, and for which encoders."""
    parts = []
    for chapter, there in table.groupby("chapter", sort=True):
        rows = []
        for name, said in vocabulary()[chapter[3:]].items():
            found = there[there.quantity == name]
            heads, layers = found["head"].notna(), found.layer.notna()
            levels = {"heads": heads, "layers": ~heads & layers, "models": ~layers}
            of = ", ".join(level for level, is_there in levels.items() if is_there.any())
            if len(found):
                rows.append(
                    [
                        f"`{name}`",
                        said["unit"],
                        said["meaning"],
                        of,
                        f"{len(found):,}",
                        ", ".join(found.model.unique()),
                    ]
                )
        listed = results.Table(["quantity", "unit", "what it is", "of", "numbers", "encoders"], rows)
        parts.append(f"## {chapter[:2]} {chapter[3:].replace('_', ' ')}\n\n{listed}")
    return "\n\n".join(parts)
