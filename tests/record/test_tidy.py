"""The long table: what it says of every head is what the chapters recorded, and nothing is there that was not."""

import json
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from helpers import results, tidy
from helpers.chapters.surface_patterns.tables import tidy as surface_patterns
from helpers.rows import rows as block


@pytest.fixture(scope="module")
def table():
    return tidy.table()


def rows(table, quantity, **wanted):
    found = table[table.quantity == quantity]
    for name, value in wanted.items():
        found = found[found[name].isna()] if value is None else found[found[name] == value]
    return found


HEADS = {  # quantity -> its chapter's record, where its numbers lie there, and what `of` says
    "share_cls": ("surface_patterns", lambda v: v["patterns"]["cls"]["value"], None),
    "entropy": ("surface_patterns", lambda v: v["patterns"]["entropy"]["value"], None),
    "share_punctuation": ("surface_patterns", lambda v: v["patterns"]["stop"]["value"], None),
    "finds_governor": ("dependency_heads", lambda v: np.array(v["ud"]["accuracy"]["obj"])[..., 0], "obj"),
    "found_by_governor": ("dependency_heads", lambda v: np.array(v["ud"]["accuracy"]["det"])[..., 1], "det"),
    "finds_antecedent": ("coreference_heads", lambda v: v["by_kind"]["accuracy"]["pronoun"], "pronoun"),
    "pattern_share": ("pattern_types", lambda v: np.array(v["heads"])[..., 1], "diagonal"),
    "distance_feature": ("distance_features", lambda v: np.array(v["features"]["value"])[..., 17], "cls"),
    "keyword_precision": ("keywords", lambda v: v["heads"]["precision"]["value"], None),
}
TASKS = {
    "removal_cost": lambda v: v["cost"]["score"]["heads"]["cost"]["value"],
    "removal_loss": lambda v: v["cost"]["loss"]["heads"]["cost"]["value"],
    "importance": lambda v: v["importance"]["value"],
}


def as_grid(found, column="value"):
    """Rows of one number for each head as [layer, head]."""
    grid = np.full((found.layer.max(), found["head"].max()), np.nan)
    grid[found.layer.to_numpy(int) - 1, found["head"].to_numpy(int) - 1] = found[column]
    return grid


@pytest.mark.slow
@pytest.mark.parametrize("quantity", HEADS)
@pytest.mark.parametrize(("model", "profile"), [("minilm", "book"), ("minilm", "full"), ("mpnet", "full")])
def test_every_head_has_the_number_of_its_chapter(table, quantity, model, profile):
    chapter, take, of = HEADS[quantity]
    values = results.recorded(chapter, model=model, profile=profile)["values"]
    found = rows(table, quantity, model=model, profile=profile, of=of)
    found = found[found["head"].notna()]
    np.testing.assert_array_equal(as_grid(found), np.array(take(values)))


@pytest.mark.parametrize("quantity", TASKS)
def test_every_head_has_the_number_of_each_task(table, quantity):
    tasks = results.recorded("head_importance")["values"]["tasks"]
    for task, values in tasks.items():
        found = rows(table, quantity, profile="book", of=task)
        found = found[found["head"].notna()]
        np.testing.assert_array_equal(as_grid(found), np.array(TASKS[quantity](values)))
        assert set(found.n) == {values["examples"]} and set(found.corpus) == {"encyclopedia"}


def test_divergences_are_those_of_the_chapter_from_either_head(table):
    values = results.recorded("divergence_map")["values"]["model"]
    found = rows(table, "divergence", model="minilm", profile="book")
    count = values["layers"] * values["heads"]
    assert len(found) == count * (count - 1)
    there = found[(found.layer == 1) & (found["head"] == 1)].set_index("of").value
    assert there["1-2"] == values["pairs"][0] and there["6-12"] == values["pairs"][count - 2]
    back = found[(found.layer == 6) & (found["head"] == 12)].set_index("of").value
    assert back["1-1"] == there["6-12"] and back["6-11"] == values["pairs"][-1]


def test_a_name_stands_in_its_column_and_has_no_number(table):
    types = results.recorded("distance_features")["values"]["types"]
    found = rows(table, "type", model="minilm", profile="book", chapter="08_distance_features")
    assert found.set_index(["layer", "head"]).label[3, 5] == types[2][4]
    assert found.value.isna().all() and found.low.isna().all()


def test_the_chosen_head_of_a_relation_stands_beside_its_offset(table):
    values = results.recorded("dependency_heads")["values"]["ud"]["table"]["obj"]
    (best,) = rows(
        table, "best_for_relation", model="minilm", profile="book", of="obj", chapter="04_dependency_heads"
    ).itertuples()
    assert (best.layer, best.head) == (values["layer"] + 1, values["head"] + 1)
    assert (best.value, best.low, best.high) == tuple(values["held_out"][k] for k in ("value", "low", "high"))
    assert (best.control, best.n, best.label) == (values["baseline"]["value"], values["count"], values["direction"])
    (head,) = rows(
        table, "finds_governor", model="minilm", profile="book", of="obj", layer=best.layer, head=best.head
    ).itertuples()
    assert head.value == best.value and head.control == best.control and head.against == "best fixed offset"


def test_controls_are_models_of_their_own_and_stand_beside_the_model(table):
    values = results.recorded("surface_patterns")["values"]["control_patterns"]["random"]["cls"]["value"]
    twin = rows(table, "share_cls", model="minilm@random", profile="book")
    np.testing.assert_array_equal(as_grid(twin[twin["head"].notna()]), np.array(values))
    assert twin.sha256.isna().all() and twin.control.isna().all()
    own = rows(table, "share_cls", model="minilm", profile="book")
    np.testing.assert_array_equal(as_grid(own[own["head"].notna()], "control"), np.array(values))
    assert set(own.against) == {"@random"} and own.sha256.str.len().eq(64).all()


def test_no_two_rows_say_the_same(table):
    assert not table.duplicated(list(tidy.KEY)).any()
    assert set(table.model) >= {"minilm", "minilm@random", "minilm@shuffled", "mpnet"}
    assert table.unit.notna().all() and (table.value.notna() | table.label.notna()).all()


def test_every_quantity_has_a_line_and_has_been_recorded(table):
    listed = {(tidy.notebooks()[chapter], name) for chapter, said in tidy.vocabulary().items() for name in said}
    recorded = set(table[["chapter", "quantity"]].itertuples(index=False, name=None))
    assert recorded <= listed and listed - recorded <= {("08_distance_features", "order_of_depth")}
    assert all(line["meaning"] and line["unit"] for said in tidy.vocabulary().values() for line in said.values())


@pytest.mark.parametrize("profile", tidy.PROFILES)
@pytest.mark.parametrize("chapter", tidy.vocabulary())
def test_a_stored_table_is_that_of_its_record(chapter, profile, tmp_path):
    """What the chapter's ``tidy`` makes of the record today is what lies beside it."""
    rows = import_module(f"helpers.chapters.{chapter}.tables").tidy
    for file in results.files(chapter, profile=profile).values():
        made = tidy.as_csv(tidy.joined(rows(json.loads(file.read_text("utf-8")))))
        assert file.with_suffix(".csv").read_text("utf-8") == made


def test_one_model_is_given_with_its_controls_and_an_unknown_one_refused():
    assert set(tidy.table(["mpnet"], ["full"]).model) == {"mpnet", "mpnet@random", "mpnet@shuffled"}
    with pytest.raises(
        results.ResultError, match=r"Nothing is recorded of nobody with profile book\. Recorded: minilm"
    ):
        tidy.table(["nobody"], ["book"])


def test_a_control_is_given_alone_and_its_own_run_counts_first(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_RESULTS", str(tmp_path))
    chosen = ["minilm@random"], ["book"], ["surface_patterns"]
    before = tidy.table(*chosen)
    assert set(before.model) == {"minilm@random"}
    record = results.recorded("surface_patterns")
    record["provenance"]["model"]["name"] = "minilm@random"
    record["values"]["patterns"]["cls"]["value"][0][0] = 0.5
    file = results.path("surface_patterns", model="minilm@random", profile="book")
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(record))
    file.with_suffix(".csv").write_text(tidy.as_csv(tidy.joined(surface_patterns(record))))
    after = tidy.table(*chosen)
    assert rows(after, "share_cls", layer=1, head=1).value.tolist() == [0.5]
    assert not after.duplicated(list(tidy.KEY)).any() and set(after.model) == {"minilm@random"}


def test_blocks_of_rows():
    blocks = [
        block("a", {"value": [[1, 2], [3, 4]], "low": [[0, 1], [2, 3]], "high": [[2, 3], [4, 5]]}, "layer", "head"),
        block("a", [[9, 8], [7, 6]], "layer", "head", network="@random"),
        block("b", [0.5, 0.25], ["x", "y"], n=3, control=[1, 2], against="a rule"),
        block("c", [1, 2], "state", against="", split="test"),
        block("d", ["p", "q"], "layer"),
        block("e", {"value": 0.5, "low": 0.1, "high": 0.9}, of="x", place=(2, 4)),
        block("f", None),
    ]
    table = tidy.joined(blocks)
    a = table[(table.quantity == "a") & (table.network == "")]
    assert a[["layer", "head", "value", "low", "high", "control"]].to_numpy().tolist() == [
        [1, 1, 1, 0, 2, 9],
        [1, 2, 2, 1, 3, 8],
        [2, 1, 3, 2, 4, 7],
        [2, 2, 4, 3, 5, 6],
    ]
    assert set(a.against) == {"@random"} and table[table.network == "@random"].control.isna().all()
    assert table[table.quantity == "b"][["of", "n", "value", "control", "against"]].to_numpy().tolist() == [
        ["x", 3, 0.5, 1, "a rule"],
        ["y", 3, 0.25, 2, "a rule"],
    ]
    assert table[table.quantity == "c"].layer.tolist() == [0, 1] and table[table.quantity == "c"].against.isna().all()
    assert table[table.quantity == "d"].label.tolist() == ["p", "q"]
    assert table[table.quantity == "e"][["layer", "head"]].to_numpy().tolist() == [[3, 5]]


@pytest.mark.parametrize(("suffix", "read"), [(".csv", pd.read_csv), (".parquet", pd.read_parquet), (".jsonl", None)])
def test_what_was_written_can_be_read(table, suffix, read, tmp_path):
    some = table.iloc[::500].reset_index(drop=True)
    file = tidy.write(some, tmp_path / f"numbers{suffix}")
    back = pd.read_json(file, lines=True, precise_float=True) if read is None else read(file)
    assert list(back) == list(tidy.COLUMNS) and np.array_equal(back.value, some.value, equal_nan=True)
    assert back["quantity"].tolist() == some["quantity"].tolist()


def test_latex_shows_every_number_and_a_name_without_a_format_is_refused(table, tmp_path):
    some = table[(table.quantity == "best_for_relation") & (table.profile == "book")].head(5)
    text = tidy.write(some, tmp_path / "numbers.tex").read_text("utf-8")
    assert (
        "longtable" in text and r"best\_for\_relation" in text and all(f"{value:f}" in text for value in some.value)
    )
    with pytest.raises(results.ResultError, match=r"numbers\.xls: give a name that ends in \.csv"):
        tidy.write(some, tmp_path / "numbers.xls")


def test_rows_are_chosen_by_what_is_there(table):
    assert set(tidy.chosen(table, "quantity", ["type", "peak"]).quantity) == {"type", "peak"}
    assert tidy.chosen(table, "quantity", []) is table
    with pytest.raises(results.ResultError, match=r"No number of the quantity peek; there are "):
        tidy.chosen(table, "quantity", ["peek"])
