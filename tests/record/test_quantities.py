"""The long table: what it says of every head is what the chapters recorded, and nothing is there that was not."""

import copy
import json

import numpy as np
import pytest

from helpers.record import quantities, results


@pytest.fixture(scope="module")
def table():
    return quantities.table()


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
    assert not table.duplicated(list(quantities.KEY)).any()
    assert set(table.model) >= {"minilm", "minilm@random", "minilm@shuffled", "mpnet"}
    assert table.unit.notna().all() and (table.value.notna() | table.label.notna()).all()


def test_every_quantity_of_the_vocabulary_has_been_recorded(table):
    listed = {(quantities.notebooks()[one.chapter], one.name) for one in quantities.vocabulary()}
    assert listed == set(table[["chapter", "quantity"]].itertuples(index=False, name=None))
    assert all(one.meaning and one.unit for one in quantities.vocabulary())


def test_what_a_record_lacks_is_absent():
    record = copy.deepcopy(results.recorded("surface_patterns"))
    del record["values"]["control_patterns"], record["values"]["patterns"]["peak"], record["values"]["shuffled"]
    found = quantities.of_records([(record, "minilm")])
    assert "peak" not in set(found.quantity) and "share_self" in set(found.quantity)
    assert found[(found.quantity == "share_self")].control.isna().all()
    assert not {"minilm@shuffled"} & set(found.model)


def test_one_model_is_given_with_its_controls_and_an_unknown_one_refused():
    assert set(quantities.table(["mpnet"], ["full"]).model) == {"mpnet", "mpnet@random", "mpnet@shuffled"}
    with pytest.raises(
        results.ResultError, match=r"Nothing is recorded of nobody with profile book\. Recorded: minilm"
    ):
        quantities.table(["nobody"], ["book"])


def test_a_control_is_given_alone_and_its_own_run_counts_first(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_RESULTS", str(tmp_path))
    chosen = ["minilm@random"], ["book"], ["surface_patterns"]
    before = quantities.table(*chosen)
    assert set(before.model) == {"minilm@random"}
    record = copy.deepcopy(results.recorded("surface_patterns"))
    record["provenance"]["model"]["name"] = "minilm@random"
    record["values"]["patterns"]["cls"]["value"][0][0] = 0.5
    file = results.path("surface_patterns", model="minilm@random", profile="book")
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(record))
    after = quantities.table(*chosen)
    assert rows(after, "share_cls", layer=1, head=1).value.tolist() == [0.5]
    assert not after.duplicated(list(quantities.KEY)).any() and set(after.model) == {"minilm@random"}
