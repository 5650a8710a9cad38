"""The data set and the command that exports: files, checksums, the same bytes twice, what is asked for and nothing else."""

import hashlib

import pytest
from click.testing import CliRunner

from helpers import places
from helpers.__main__ import main
from helpers.record import exports, quantities
from helpers.run import dataset


def run(*arguments):
    return CliRunner().invoke(main, arguments)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("data")
    dataset.write(where, ["mpnet"], ["full"])
    return where


def test_the_data_set_holds_its_table_card_licence_and_checksums(folder):
    assert {file.name for file in folder.iterdir()} == {"numbers.parquet", "README.md", "LICENSE", "SHA256SUMS"}
    sums = dict(line.split("  ")[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {"numbers.parquet", "README.md", "LICENSE"}
    assert all(hashlib.sha256((folder / name).read_bytes()).hexdigest() == total for name, total in sums.items())
    assert "CC0 1.0" in (folder / "LICENSE").read_text()


def test_its_card_says_what_is_in_it(folder):
    table = exports.read(folder / "numbers.parquet")
    card = (folder / "README.md").read_text("utf-8")
    assert f"{len(table):,} numbers" in card
    for column in ("quantity", "corpus", "model"):
        assert all(f"`{value}`" in card for value in set(table[column].dropna())), column
    assert all(f"| `{name}` |" in card for name in quantities.COLUMNS)


def test_the_same_records_give_the_same_bytes(folder, tmp_path):
    dataset.write(tmp_path, ["mpnet"], ["full"])
    assert [(tmp_path / f.name).read_bytes() == f.read_bytes() for f in folder.iterdir()] == [True] * 4


def test_export_writes_what_is_asked_for(tmp_path):
    file = tmp_path / "few.jsonl"
    done = run(
        "export",
        "--models",
        "minilm",
        "--profile",
        "book",
        "--chapters",
        "04",
        "--quantities",
        "finds_governor",
        "--to",
        str(file),
    )
    assert done.exit_code == 0 and f"numbers in {file}" in done.output
    table = exports.read(file)
    assert set(table.quantity) == {"finds_governor"} and set(table.profile) == {"book"}
    assert set(table.model) == {"minilm", "minilm@random", "minilm@shuffled"}


def test_export_prints_text():
    done = run("export", "--models", "minilm", "--profile", "book", "--quantities", "stress", "--format", "latex")
    assert done.exit_code == 0 and done.output.startswith("% ") and r"\end{longtable}" in done.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("export", "--format", "parquet"), "Parquet is no text: say with --to which file to write."),
        (("export", "--models", "nobody"), "Nothing is recorded of nobody"),
        (("export", "--chapters", "99"), "There is no chapter '99'"),
        (("export", "--chapters", "04", "--quantities", "peek"), "No number of the quantity peek"),
        (("export", "--to", "numbers.xls"), "give a name that ends in .csv"),
        (("data", "--models", "nobody"), "Nothing is recorded of nobody"),
    ],
)
def test_a_mistake_is_answered(arguments, says, tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_RESULTS", str(places.book_data() / "results"))
    done = run(*arguments)
    assert done.exit_code and says in done.output and "Traceback" not in done.output
