"""The data set and the command that exports: files, checksums, the same bytes twice, what is asked for and nothing else."""

import hashlib

import pandas as pd
import pytest
from click.testing import CliRunner

from helpers import places, tidy
from helpers.__main__ import main
from helpers.run import dataset


@pytest.mark.slow
def test_a_data_set_holds_its_table_what_is_in_it_and_checksums(tmp_path):
    files = dataset.write(tmp_path / "once", ["mpnet"], ["full"])
    assert [file.name for file in files] == ["numbers.parquet", "README.md", "LICENSE", "SHA256SUMS"]
    sums = dict(line.split("  ")[::-1] for line in files[-1].read_text("utf-8").splitlines())
    assert sums == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files[:-1]}
    table, card = pd.read_parquet(files[0]), files[1].read_text("utf-8")
    named = set(tidy.COLUMNS).union(*(table[column].dropna() for column in ("quantity", "corpus", "model")))
    assert f"{len(table):,} numbers" in card and all(f"`{name}`" in card for name in named)
    again = dataset.write(tmp_path / "again", ["mpnet"], ["full"])
    assert [file.read_bytes() for file in again] == [file.read_bytes() for file in files]


@pytest.mark.slow
def test_export_writes_what_is_asked_for(tmp_path):
    asked = ["--models", "minilm", "--profile", "book", "--chapters", "04", "--quantities", "finds_governor"]
    done = CliRunner().invoke(main, ["export", *asked, "--to", str(tmp_path / "few.jsonl")])
    assert done.exit_code == 0, done.output
    table = pd.read_json(tmp_path / "few.jsonl", lines=True)
    assert set(table.quantity) == {"finds_governor"} and set(table.profile) == {"book"}
    assert set(table.model) == {"minilm", "minilm@random", "minilm@shuffled"}


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("export --format parquet", "say with --to which file to write"),
        ("export --chapters 99", "There is no chapter '99'"),
        ("export --chapters 04 --quantities peek", "No number of the quantity peek"),
        ("export --to numbers.xls", "give a name that ends in .csv"),
        ("data --models nobody", "Nothing is recorded of nobody"),
    ],
)
def test_a_mistake_is_answered(command, says, monkeypatch):
    monkeypatch.setenv("BOOK_RESULTS", str(places.book_data() / "results"))
    done = CliRunner().invoke(main, command.split())
    assert done.exit_code and says in done.output and "Traceback" not in done.output
