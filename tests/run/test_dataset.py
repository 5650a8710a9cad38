"""The data set and exported files: formats, checksums, the same bytes twice, what is asked for and nothing else."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest

from helpers import results
from helpers.run import exporting


@pytest.fixture(scope="module")
def numbers():
    return exporting.select(["minilm"], "book", ["04_dependency_heads"])


@pytest.mark.journey
def test_a_data_set_holds_its_table_where_it_is_from_what_is_in_it_and_checksums(tmp_path):
    files = exporting.write_data_set(tmp_path / "once", ["mpnet"], ["full"])
    names = ["numbers.parquet", "numbers.runs.json", "numbers.datapackage.json", "README.md", "LICENSE", "SHA256SUMS"]
    assert [file.name for file in files] == names
    sums = dict(line.split("  ")[::-1] for line in files[-1].read_text("utf-8").splitlines())
    assert sums == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files[:-1]}
    table, readme = pd.read_parquet(files[0]), files[3].read_text("utf-8")
    named = set(results.COLUMNS).union(*(table[column].dropna() for column in ("quantity", "corpus", "model")))
    assert f"{len(table):,} numbers" in readme and all(f"`{name}`" in readme for name in named)
    assert {run["run"] for run in json.loads(files[1].read_text("utf-8"))} == set(table.run)
    again = exporting.write_data_set(tmp_path / "again", ["mpnet"], ["full"])
    assert [file.read_bytes() for file in again] == [file.read_bytes() for file in files]


def test_what_is_asked_for_and_nothing_else(numbers):
    assert set(numbers.chapter) == {"04_dependency_heads"} and set(numbers.profile) == {"book"}
    assert set(numbers.model) == {"minilm", "minilm@random", "minilm@shuffled"}


@pytest.mark.parametrize(("suffix", "read"), [(".csv", pd.read_csv), (".parquet", pd.read_parquet), (".jsonl", None)])
def test_what_was_written_can_be_read(numbers, suffix, read, tmp_path):
    some = numbers.iloc[::50].reset_index(drop=True)
    file, *_ = exporting.write(some, tmp_path / f"numbers{suffix}")
    back = pd.read_json(file, lines=True, precise_float=True) if read is None else read(file)
    assert list(back) == list(results.COLUMNS) and np.array_equal(back.value, some.value, equal_nan=True)
    assert back["quantity"].tolist() == some["quantity"].tolist()


def test_a_table_is_read_by_its_description_as_it_was(numbers, tmp_path):
    """Whole numbers stay whole, also with the line that the page "The numbers" gives."""
    file, _, described = exporting.write(numbers, tmp_path / "numbers.csv")
    package = json.loads(described.read_text("utf-8"))
    fields = package["resources"][0]["schema"]["fields"]
    kinds = {"integer": "Int64", "number": "float64", "string": "str"}
    back = pd.read_csv(
        tmp_path / package["resources"][0]["path"], dtype={f["name"]: kinds[f["type"]] for f in fields}
    )
    whole = pd.read_csv(file, dtype_backend="numpy_nullable")
    for name in results.WHOLE:
        assert back[name].equals(numbers[name].reset_index(drop=True)) and back[name].equals(whole[name])
    assert np.array_equal(back.value, numbers.value, equal_nan=True) and all(f["description"] for f in fields)
    known = {(chapter, name) for chapter, listed in package["quantities"].items() for name in listed}
    assert known == {*zip(numbers.chapter, numbers.quantity, strict=True)}


def test_latex_shows_every_number(numbers, tmp_path):
    some = numbers[numbers.quantity == "best_for_relation"].head(5)
    text = exporting.write(some, tmp_path / "numbers.tex")[0].read_text("utf-8")
    assert "longtable" in text and r"best\_for\_relation" in text
    assert all(f"{value:f}" in text for value in some.value)
