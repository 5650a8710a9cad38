"""Numbers recorded where they are made, saved once, and read back as a table."""

import re
from dataclasses import replace

import numpy as np
import pytest

from helpers import corpora, places, results
from helpers.results import ResultError, Run
from helpers.stats import Estimate

SHARE, ENTROPY = "share_cls", "entropy"


def estimate(values):
    values = np.asarray(values, float)
    return Estimate.from_record({"value": values, "low": values - 0.1, "high": values + 0.1})


@pytest.fixture
def run(minilm):
    return Run(
        "surface_patterns", minilm, corpora.read("encyclopedia"), profile="smoke", corpus="encyclopedia", seed=0
    )


def test_what_is_recorded_is_given_back_and_read_back(run):
    shares = estimate(np.random.default_rng(0).random((6, 12)))
    assert run.number(SHARE, shares, n=10) is shares
    run.number(SHARE, np.full((6, 12), 0.25), network="@random")
    run.number(ENTROPY, [1.0] * 6)
    run.number("sink", "[CLS]")
    run.number("times_even_share", {"cls": estimate(3.0), "sep": 1.0}, against="")
    run.number("best_specialist", 0.5, head=(2, 4), of="cls", control=0.1, against="a baseline")
    run.save()
    back = results.recorded("surface_patterns", profile="smoke")
    for record in (run.recorded, back):
        np.testing.assert_allclose(record.array(SHARE), shares.value, atol=1e-6)
        np.testing.assert_allclose(record.array(SHARE, column="low"), shares.low, atol=1e-6)
        assert (record.array(SHARE, column="control") == 0.25).all() and record.row("sink").label == "[CLS]"
        assert record.array(ENTROPY).tolist() == [1] * 6
        number = record.number("times_even_share", of="cls")
        assert (number.value, number.low, number.high) == (3.0, 2.9, 3.1)
        assert record.number("times_even_share", of="sep").low == 1.0
        assert record.row("best_specialist", head=(2, 4)).against == "a baseline"
    assert "values" not in back and back["provenance"]["parameters"] == {"corpus": "encyclopedia", "seed": 0}
    with pytest.raises(ResultError, match="0 numbers are recorded of 'times_even_share'"):
        back.number("times_even_share", of="stop")


@pytest.mark.parametrize(
    ("quantity", "value", "message"),
    [
        ("share_of_nothing", 1.0, "'share_of_nothing' is not among the quantities of surface_patterns"),
        (SHARE, np.nan, "only finite numbers"),
        (SHARE, {"a": np.inf}, "share_cls of a: only finite"),
        (SHARE, np.zeros((3, 4)), r"axes of an array of shape \(3, 4\)"),
    ],
)
def test_what_cannot_be_recorded_is_refused(run, quantity, value, message):
    with pytest.raises(ResultError, match=message):
        run.number(quantity, value)
    assert not run.blocks


def test_a_number_is_recorded_once(run):
    run.number(SHARE, 0.5)
    run.number(SHARE, 0.6)
    with pytest.raises(ResultError, match="Recorded twice in surface_patterns"):
        run.save()
    assert not places.results().exists()


def test_a_repeated_run_changes_nothing_and_another_number_its_date(run):
    run.number(SHARE, 0.5)
    origin = run.save().with_suffix(".json")
    origin.write_text(re.sub(r'"date": ".*?"', '"date": "2001-01-01"', origin.read_text()))
    run.save()
    assert '"2001-01-01"' in origin.read_text()
    run.number(ENTROPY, 1.0)
    run.save()
    assert '"2001-01-01"' not in origin.read_text()
    assert sorted(file.name for file in origin.parent.iterdir()) == ["surface_patterns.csv", "surface_patterns.json"]


def test_a_readers_own_corpus_never_stands_under_a_profile(minilm):
    """Neither alone nor beside one of the book's; the scoreboard reads profiles only."""
    folder = places.book_data() / "encyclopedia"
    own = corpora.provenance(str(folder / "treebank" / "dev.conllu"), "treebank")
    for profile, kept, corpus, others in (
        ("book", places.OWN, corpora.read("encyclopedia"), corpora.own(text=str(folder / "articles.jsonl"))),
        ("book", places.OWN, own, ()),
        ("smoke", "smoke", own, ()),  # a try is a try
    ):
        run = Run("dependency_heads", minilm, corpus, profile=profile, own=others)
        run.number("best_offset", 0.5, of="obj")
        assert run.save().parts[-3] == kept
        texts = [run.provenance["corpus"], *run.provenance.get("own", ())]
        assert texts[0].keys() == ({"name", "sha256", "own", "parts"} if corpus is own else {"name", "sha256"})
    assert own.name == texts[0]["name"] and "drawn by document, seed 0: train 12 documents" in texts[0]["parts"]
    assert places.OWN not in results.PROFILES


def test_numbers_on_other_texts_of_ones_own_are_replaced_and_it_is_said(minilm, capsys):
    for part, lines in (("dev", 0), ("dev", 0), ("test", 1)):
        path = places.book_data() / "encyclopedia" / "treebank" / f"{part}.conllu"
        run = Run("dependency_heads", minilm, corpora.provenance(str(path), "treebank"), profile="book")
        run.number("best_offset", 0.5, of="obj")
        run.save()
        assert capsys.readouterr().out.count("take the place of earlier ones") == lines


def test_a_page_says_when_it_is_executed_on_another_model(minilm, tmp_path, capsys):
    for model in ("minilm", "minilm@random"):
        Run("surface_patterns", replace(minilm, name=model), None, profile="book")
    assert capsys.readouterr().out == ""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.safetensors").write_text("weights")
    Run("surface_patterns", replace(minilm, name=str(tmp_path / "mine")), None, profile="smoke")
    printed = capsys.readouterr().out
    assert re.search(r" are of mine-[0-9a-f]{8}\.$", printed) and printed.count("\n") == 1
