"""The long table: what it says of every head is what the chapters recorded, and nothing is there that was not."""

import json

import numpy as np
import pytest
from conftest import estimate

from helpers import results, scoreboard
from helpers.results import rows as block


@pytest.fixture(scope="module")
def table():
    return results.table()


def rows(table, quantity, **wanted):
    chosen = table[table.quantity == quantity]
    for name, value in wanted.items():
        chosen = chosen[chosen[name] == value]
    return chosen


def test_no_two_rows_say_the_same(table):
    assert not table.duplicated(list(results.KEY)).any()
    assert set(table.model) >= {"minilm", "minilm@random", "minilm@shuffled", "mpnet"}
    assert table.unit.notna().all() and (table.value.notna() | table.label.notna()).all()


def test_every_quantity_and_column_has_a_line_and_every_quantity_has_been_recorded(table):
    lines = {
        (results.notebooks()[chapter], name): line
        for chapter, quantities in results.from_yaml("quantities").items()
        for name, line in quantities.items()
    }
    recorded = set(table[["chapter", "quantity"]].itertuples(index=False, name=None))
    without = lines.keys() - recorded - {("08_distance_features", "order_of_depth")}
    assert recorded <= lines.keys() and not without, f"not recorded: {without}; python -m helpers run NN --record"
    assert all(line["meaning"] and line["unit"] for line in lines.values())
    assert tuple(results.from_yaml("columns")) == results.COLUMNS


def test_a_control_is_given_alone_and_its_own_run_counts_first(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_RESULTS", str(tmp_path))
    chosen = ["minilm@random"], ["book"], ["surface_patterns"]
    before, record = results.table(*chosen), results.recorded("surface_patterns")
    assert set(before.model) == {"minilm@random"} and before.control.isna().all()
    values = rows(before, "share_cls").dropna(subset=["head"]).value.to_numpy().reshape(6, 12)
    np.testing.assert_array_equal(values, record.array("share_cls", network="@random"))
    table = record.table[record.table.network == "@random"].replace({"network": {"@random": ""}})
    first = (table.quantity == "share_cls") & (table.layer == 1) & (table["head"] == 1)
    table.loc[first, "value"] = 0.5
    file = results.path("surface_patterns", model="minilm@random", profile="book")
    file.parent.mkdir(parents=True)
    about = record["provenance"] | {"model": record["provenance"]["model"] | {"name": "minilm@random"}}
    file.write_text(json.dumps({"chapter": "surface_patterns", "provenance": about}))
    file.with_suffix(".csv").write_text(results.as_csv(table))
    after = results.table(*chosen)
    assert rows(after, "share_cls", layer=1, head=1).value.tolist() == [0.5]
    assert not after.duplicated(list(results.KEY)).any() and set(after.model) == {"minilm@random"}


def test_blocks_of_rows():
    blocks = [
        block("a", estimate([[1, 2], [3, 4]], [[0, 1], [2, 3]], [[2, 3], [4, 5]]), "layer", "head"),
        block("a", [[9, 8], [7, 6]], "layer", "head", network="@random"),
        block("b", [0.5, 0.25], ["x", "y"], n=3, control=[1, 2], against="a rule"),
        block("c", [1, 2], "state", against="", split="test"),
        block("d", ["p", "q"], "layer"),
        block("e", estimate(0.5, 0.1, 0.9), of="x", place=(2, 4)),
        block("f", None),
    ]
    table = results.joined(blocks)
    random = table[table.network == "@random"]
    parts = dict(iter(table[table.network == ""].groupby("quantity")))
    a = parts["a"][["layer", "head", "value", "low", "high", "control"]].to_numpy().tolist()
    assert a == [[1, 1, 1, 0, 2, 9], [1, 2, 2, 1, 3, 8], [2, 1, 3, 2, 4, 7], [2, 2, 4, 3, 5, 6]]
    assert set(parts["a"].against) == {"@random"} and random.control.isna().all()
    b = parts["b"][["of", "n", "value", "control", "against"]].to_numpy().tolist()
    assert b == [["x", 3, 0.5, 1, "a rule"], ["y", 3, 0.25, 2, "a rule"]]
    assert parts["c"].layer.tolist() == [0, 1] and parts["c"].against.isna().all()
    assert parts["d"].label.tolist() == ["p", "q"] and parts["d"].value.isna().all() and "f" not in parts
    assert parts["e"][["layer", "head"]].to_numpy().tolist() == [[3, 5]]


def test_a_number_of_one_document_is_not_taken_for_a_certain_one():
    """Its interval is open on both sides, in the file and for the scoreboard; that of a count is empty."""
    pairs = estimate([0.9, 0.8], [np.nan, 0.7], [np.nan, 0.85])
    table = results.joined([block("share", pairs[0]), block("heads", 3), block("pairs", pairs, ["x", "y"])])
    ends = [[-np.inf, np.inf], [0, 0], [-np.inf, np.inf], [0.7, 0.85]]
    assert table[["low", "high"]].fillna(0).to_numpy().tolist() == ends

    def verdict(**claim):
        return scoreboard.judge(
            scoreboard.Claim("04_dependency_heads", **claim), scoreboard.numbers_of(table)
        ).verdict

    for rule in ("above 50", "below 50", "below 95", "above 95", "about 90", "about 10"):
        assert verdict(ours="share", rule=rule, unit="%") == scoreboard.UNDECIDED
    assert verdict(ours="heads", rule="above 2", unit="count") == scoreboard.HOLDS
    assert verdict(ours="share", against="pairs/y", rule="above", unit="%") == scoreboard.UNDECIDED
