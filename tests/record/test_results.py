"""Recording numbers, reading the papers' numbers, tables."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from helpers import corpora, places, results


@pytest.fixture
def record(minilm):
    def make(values, encoder=minilm):
        run = results.Run("surface_patterns", encoder, corpora.read("encyclopedia"), profile="smoke", seed=0)
        return run.save(values)

    return make


def test_what_is_recorded_comes_back(record):
    file = record({"b": np.arange(6).reshape(2, 3), "c": [1.23456789, "x", None, True], "d": np.float32(0.5)})
    got = results.recorded("surface_patterns", profile="smoke")
    assert {name: got[name] for name in ("chapter", "provenance", "values")} == json.loads(file.read_text())
    assert got["values"] == {"b": [[0, 1, 2], [3, 4, 5]], "c": [1.234568, "x", None, True], "d": 0.5}
    provenance = got["provenance"]
    assert provenance["head"] is None and provenance["parameters"] == {"seed": 0}
    assert provenance["model"]["sha256"].startswith("53aa5117") and provenance["corpus"]["name"] == "encyclopedia"
    assert {"torch", "transformers", "python", "book"} <= set(provenance["versions"])


@pytest.mark.parametrize("bad", [float("nan"), np.array([[1.0, np.inf]]), [{1}]])
def test_nothing_that_is_not_finite_and_no_unknown_type_is_recorded(record, bad):
    with pytest.raises(ValueError):
        record({"x": bad})
    assert not list(places.results().rglob("*"))


def test_missing_results_are_listed():
    with pytest.raises(results.ResultError, match=r"Recorded: .*book/minilm/surface_patterns.*python -m helpers run"):
        results.recorded("surface_patterns", model="nobody")


def test_every_claim_is_whole():
    bibliography = (places.ROOT / "book" / "references.bib").read_text("utf-8")
    for key, paper in results.from_yaml("papers").items():
        assert f"{{{key}," in bibliography
        for name, claim in paper["claims"].items():
            assert ("value" in claim) != ("rows" in claim), name
            assert {"what", "model", "where", "data", "chapter"} <= set(claim), (key, name)
            assert claim.get("bound", "about") in ("over", "at most", "about")


def test_tables():
    table = results.Table(["a", "b"], [[1, 0.12345], ["x|y", np.float64(2)]], digits=2)
    shown = MarkdownIt("commonmark").enable("table").render(table._repr_markdown_())
    assert re.findall("<t[hd]>(.*)</t[hd]>", shown) == ["a", "b", "1", "0.12", "x|y", "2.00"]
    with pytest.raises(results.ResultError, match="2 columns"):
        results.Table(["a", "b"], [[1]])


MARKUP = ("<b>", "`", "``", "\\", "x", " ", "&lt;", "|")


@given(st.lists(st.sampled_from(MARKUP), max_size=9).map("".join))
def test_no_cell_of_a_table_is_html(text):
    """Whatever stands in a cell, a reader of Markdown finds no HTML in it."""
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    shown = markdown.render(results.Table(["a", "b"], [[text, "y"]])._repr_markdown_())
    assert "<b>" not in shown and shown.count("<td>") == 2


@pytest.mark.parametrize("name", ["../../escape", "..", ".", "", "a/b", "/tmp/x"])
def test_no_name_leads_out_of_the_results(name):
    with pytest.raises(results.ResultError, match="cannot be kept under the name"):
        results.path("x", model="minilm", profile=name)
    assert results.path("x", model="org/model", profile="book").parts[-3:] == ("book", "org--model", "x.json")


def test_a_model_of_ones_own_is_filed_under_its_folder_and_its_weights(tmp_path, record, minilm):
    homes = [tmp_path / name / "mine" for name in "abc"]
    for home, weights in zip(homes, ("one", "two", "one"), strict=True):
        home.mkdir(parents=True)
        (home / "model.safetensors").write_text(weights)
    names = [places.label(str(home)) for home in homes]
    assert names[0] == names[2] != names[1] and names[0].startswith("mine-") and len(names[0]) == 13
    assert places.label(f"{homes[0]}@random") == f"{names[0]}@random"
    assert places.label("org/model@random") == "org--model@random"
    for number, home in enumerate(homes[:2]):
        assert record({"x": number}, encoder=replace(minilm, name=str(home))).parent.name == names[number]
    runs = results.runs("surface_patterns", profile="smoke")
    assert {name: run["values"]["x"] for name, run in runs.items()} == {str(homes[0]): 0, str(homes[1]): 1}
    assert results.recorded("surface_patterns", model=str(homes[2]), profile="smoke")["values"] == {"x": 0}
