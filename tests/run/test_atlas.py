"""The atlas of heads: its numbers are the chapters' own, a model of one's own joins, and a reader can use its page."""

import json

import numpy as np
import pytest
from conftest import HOSTILE

from helpers import results
from helpers.heads import Head
from helpers.run import atlas, card, template


@pytest.fixture(scope="module")
def shown():
    """What the page shows of a model with records of its own, and of its random twin."""
    return atlas.models(["minilm", "minilm@random"])


OF_CHAPTERS = {
    "surface_patterns": ("share_cls", None),
    "dependency_heads": ("finds_governor", "obj"),
    "coreference_heads": ("finds_antecedent", "all"),
    "distance_features": ("distance_feature", "window 1"),
}
"""A quantity of each chapter, and what a grid of it is of."""
MEASURED = [(chapter, quantity) for chapter, (quantity, _) in OF_CHAPTERS.items()]


@pytest.mark.parametrize(
    ("chapter", "quantity"), [*MEASURED, ("surface_patterns", "entropy"), ("divergence_map", "divergence")]
)
def test_what_is_measured_for_the_atlas_is_what_the_chapter_measures(chapter, quantity):
    key = ["layer", "head", "of"]
    own, recorded = (
        table[(table.quantity == quantity) & (table.network == "") & table["head"].notna()].set_index(key).value
        for table in (
            dict(results.all_runs([profile], [chapter]))["minilm"].table for profile in (atlas.PROFILE, "book")
        )
    )
    both = own.to_frame("own").join(recorded.rename("recorded"), how="left")
    assert len(both) >= 72 and np.allclose(both.own, both.recorded, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["book", "full"])
def test_the_page_shows_the_numbers_of_the_records(shown, profile):
    model = shown["minilm"]
    grids = {(g["quantity"], g["of"], model["sources"][g["source"]]["profile"]): g["value"] for g in model["grids"]}
    more = {"head_importance": ("removal_loss", "qa"), "keywords": ("key_word_attention", None)}
    for chapter, (quantity, of) in (OF_CHAPTERS | more).items():
        values = results.recorded(chapter, profile=profile).array(quantity, of=of)
        assert np.allclose(grids[quantity, of, profile], values.ravel(), atol=1e-5), quantity


@pytest.mark.slow
def test_chosen_heads_types_and_neighbours_are_those_of_the_records(shown):
    model = shown["minilm"]
    row = results.recorded("dependency_heads").row("best_for_relation", of="obj")
    chosen = [choice for choice in model["best"] if model["sources"][choice["source"]]["profile"] == "book"]
    best = next(choice for choice in chosen if (choice["quantity"], choice.get("of")) == ("best_for_relation", "obj"))
    assert best["place"] == (row.layer - 1) * model["heads"] + row["head"] - 1
    assert best["against"] == "best fixed offset"
    ours = [best[key] for key in ("value", "low", "high", "control")]
    assert np.allclose(ours, row[["value", "low", "high", "control"]].astype(float), atol=1e-5)
    rows = results.recorded("divergence_map").rows("divergence")
    names = [str(Head.of(place)) for place in np.ndindex(6, 12)]
    rows["one"] = rows.layer.astype(int).astype(str) + "-" + rows["head"].astype(int).astype(str)
    distance = rows.pivot(index="one", columns="of", values="value").loc[names, names].fillna(np.inf).to_numpy()
    for head, near in enumerate(model["nearest"]):
        assert np.allclose([far for _, far in near], np.sort(distance[head])[:5], atol=1e-5)
        assert np.allclose([far for _, far in near], distance[head][[other for other, _ in near]], atol=1e-5)


@pytest.mark.slow
def test_what_was_not_measured_of_a_model_is_named(shown):
    lacking = {part["group"]: part["chapter"] for part in shown["minilm@random"]["lacking"]}
    assert lacking["Cost of removal"] == "11" and shown["minilm"]["lacking"] == []


def test_a_mean_map_keeps_all_attention():
    place = np.arange(33)
    columns = atlas.places_of(place == 0, place == 32, (place > 0) & (place < 32))
    weights = np.random.default_rng(0).dirichlet(np.ones(33), 33)
    mean = columns / columns.sum(-1, keepdims=True) @ weights @ columns.T
    assert mean.shape == (16, 16) and np.allclose(mean.sum(-1), 1) and np.isclose(mean[0, -1], weights[0, -1])


@pytest.mark.journey
def test_a_model_of_ones_own_joins(small_encoder, tmp_path, monkeypatch):
    few = {"segments": 8, "documents": 5}
    sample = card.sample
    monkeypatch.setattr(card, "sample", lambda *corpora, **options: sample(*corpora, **options | few))
    encoder = small_encoder("bert")
    assert not atlas.known(encoder)
    values = json.loads(atlas.record(encoder).read_text("utf-8"))["values"]
    assert atlas.known(encoder) and values["missing"] == {} and len(values["examples"]) == 3
    measured = atlas.recorded()
    monkeypatch.setattr(atlas, "recorded", lambda: {encoder.name: measured[encoder.name]})
    index = atlas.write(tmp_path / "page")
    assert encoder.name in index.read_text("utf-8")
    script = index.with_name(atlas.file_of(encoder.name)).read_text("utf-8")
    own = json.loads(script.split("]=", 1)[1].rstrip(";\n"))
    assert (own["layers"], own["heads"]) == (3, 4) and "Probe" in {part["group"] for part in own["lacking"]}


@pytest.mark.slow
def test_a_reader_uses_the_atlas_with_the_keyboard(shown, chromium, tmp_path):
    example = next(iter(shown["minilm@random"]["examples"].values()))
    hostile = {HOSTILE: example | {"tokens": [HOSTILE] * len(example["tokens"])}}
    models = {"minilm": shown["minilm"], "other": shown["minilm@random"] | {"examples": hostile}}
    atlas.write_data(tmp_path, models)
    body = atlas.element(models, folder=".", page=False)
    (tmp_path / "index.html").write_text(template("atlas.html.j2").render(element=body), "utf-8")
    chromium.open(tmp_path / "index.html")
    chromium.wait("document.querySelectorAll('.tile').length === 72")

    def press(key, until):
        chromium.tab.keyboard.press(key)
        chromium.wait(until)

    def focused(start):
        return f"document.activeElement.getAttribute('aria-label')?.startsWith('{start}')"

    chromium.tab.locator(".tile").nth(28).focus()
    press("Enter", "document.querySelector('.head-card .title')?.textContent.startsWith('Head 3-5 of minilm')")
    shown_of_head = chromium.evaluate("document.querySelector('.head-card').innerText")
    assert "Where it looks" in shown_of_head and "05 " in shown_of_head.partition("Chapters that name it")[2]
    assert chromium.barriers() == []
    press("Escape", focused("Head 3-5"))
    press("ArrowRight", focused("Head 3-6"))
    press("a", "document.querySelector('.ways input:checked').value === 'alike'")
    press("/", "document.activeElement.type === 'search'")
    chromium.tab.keyboard.type("coreference")
    chromium.wait("document.querySelector('.found li')?.innerText.startsWith('3-5')")
    chromium.evaluate("location.hash = '#minilm/3-5+other/3-5'")
    chromium.wait("document.querySelectorAll('.head-card').length === 2")
    assert HOSTILE in chromium.evaluate("document.querySelectorAll('.head-card')[1].textContent")
    assert chromium.evaluate("document.title") == "The atlas of heads" and chromium.problems == []
