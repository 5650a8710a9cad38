"""Exports: what was written in a format is read back as it was; a paper's table is LaTeX that shows every number."""

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from helpers.record import exports, quantities


@pytest.fixture(scope="module")
def table():
    """All of one run, with rows whose texts have marks of their own in every format."""
    found = quantities.table(["minilm"], ["book"])
    hostile = found.head(6).assign(of=['a,"b"', "a & b", r"50 % \ {x} ~ ^", "$x_1$ #", "NA", "née → x\\&"])
    return quantities.typed(pd.concat([found, hostile], ignore_index=True))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", exports.SUFFIXES)
def test_what_was_written_is_read_back(table, suffix, tmp_path):
    some = table if suffix != ".tex" else pd.concat([table.iloc[::50], table.tail(6)])
    file = exports.write(some, tmp_path / f"numbers{suffix}")
    assert_frame_equal(exports.read(file), some.reset_index(drop=True), check_exact=True)


def test_a_name_without_a_format_and_a_file_of_something_else_are_refused(tmp_path):
    with pytest.raises(exports.ExportError, match=r"numbers\.xls: give a name that ends in \.csv"):
        exports.format_of(tmp_path / "numbers.xls")
    with pytest.raises(exports.ExportError, match="no format 'xls'; there are csv, parquet, latex, jsonl"):
        exports.as_bytes(pd.DataFrame(), "xls")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(exports.ExportError, match=r"other\.csv has no column model, sha256"):
        exports.read(tmp_path / "other.csv")


def test_rows_are_chosen_by_what_is_there(table):
    assert set(quantities.chosen(table, "quantity", ["type", "peak"]).quantity) == {"type", "peak"}
    assert quantities.chosen(table, "quantity", []) is table
    with pytest.raises(quantities.QuantityError, match=r"No number of the quantity peek; there are share_previous, "):
        quantities.chosen(table, "quantity", ["peek"])
