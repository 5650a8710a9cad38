"""The atlas of heads: what is measured for it, that its page shows the chapters' own numbers, and that a reader can use it."""

import base64
import json
import re
from functools import partial

import numpy as np
import pytest
from browser import CHROMIUM, browser

from helpers.figures import atlas
from helpers.figures.touch import TooLarge
from helpers.record import listed, results, scoreboard
from helpers.run import notebooks
from helpers.run.atlas import content, measuring, page

HOSTILE = "</script><img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="session")
def frame():
    return content.table()


@pytest.fixture(scope="session")
def shown(frame):
    """What the page shows of the models with records of their own, and of a twin."""
    measured = measuring.recorded()
    names = [name for name in ("minilm", "mpnet", "minilm@random") if name in measured]
    return {name: content.of(name, frame[frame["model"] == name], measured[name]) for name in names}


# ---------------------------------------------------------------------------------------- what is measured


def of_length(words):
    cls, sep = np.zeros(words + 2, bool), np.zeros(words + 2, bool)
    cls[0] = sep[-1] = True
    return cls, sep, ~(cls | sep)


@pytest.mark.parametrize("words", [1, 5, 14, 33])
def test_a_mean_map_keeps_all_attention_and_its_places(words):
    columns = measuring.places_of(*of_length(words))
    assert columns.shape == (16, words + 2) and np.allclose(columns.sum(0), 1)
    rows = columns / columns.sum(-1, keepdims=True)
    weights = np.random.default_rng(0).dirichlet(np.ones(words + 2), words + 2)
    brought = rows @ weights @ columns.T
    assert np.allclose(brought.sum(-1), 1)
    assert np.isclose(brought[0, 0], weights[0, 0]) and np.isclose(brought[-1, -1], weights[-1, -1])
    if words == 14:
        assert np.allclose(brought, weights), "a sentence of as many words as places is left as it is"


def test_a_head_that_looks_back_is_seen_to(small_encoder):
    from helpers.engine.tokens import encode

    encoder = small_encoder("bert")
    found = measuring.MeanMaps(encoder)
    batch = encode(encoder, ["The cat sat on the mat and slept .", "A dog barked ."])
    length = batch.mask.shape[1]
    back = np.zeros((2, encoder.heads, length, length), np.float32)
    back[:, :, np.arange(length), np.maximum(np.arange(length) - 1, 0)] = 1
    import torch

    for layer in range(encoder.layers):
        found(batch, layer, torch.from_numpy(back), None)
    profile = found.profile[0, 0] / found.pairs
    assert found.sentences == 2 and np.allclose(profile[measuring.REACH - 1], 1) and np.isclose(profile.sum(), 1)
    assert np.allclose(found.maps[0, 0].sum(-1), 2)


STORED = {
    "surface_patterns": lambda v: {
        f"{k} {end}": v["patterns"][k][end] for k in ("cls", "previous", "entropy") for end in ("value", "low")
    },
    "distance_features": lambda v: {"features": v["features"]["value"]},
    "dependency_heads": lambda v: {r: v["ud"]["accuracy"][r] for r in ("all", "obj", "det", "nsubj")},
    "coreference_heads": lambda v: {kind: v["by_kind"]["accuracy"][kind] for kind in ("all", "pronoun")},
    "divergence_map": lambda v: {"pairs": v["model"]["pairs"]},
}


@pytest.mark.parametrize("chapter", STORED)
def test_what_is_measured_for_the_atlas_is_what_the_chapter_measures(chapter):
    own = measuring.recorded()["minilm"]["values"]["chapters"][chapter]
    theirs = results.recorded(chapter)["values"]
    for name, values in STORED[chapter](theirs).items():
        assert np.allclose(STORED[chapter](own)[name], values, atol=2e-4), name
    if chapter == "distance_features":
        assert own["types"] == theirs["types"]


@pytest.mark.journey
@pytest.mark.slow
def test_a_model_of_ones_own_joins(small_encoder, tmp_path, monkeypatch):
    """Measured, recorded, known again, and on a page of its own beside the book's."""
    segments = measuring.corpora.segments
    monkeypatch.setattr(measuring.corpora, "segments", lambda corpus, **options: segments(corpus, limit=40))
    encoder = small_encoder("bert")
    assert not measuring.known(encoder)
    file = measuring.record(encoder)
    assert measuring.known(encoder) and file.is_relative_to(tmp_path)
    values = json.loads(file.read_text("utf-8"))["values"]
    assert values["missing"] == {} and len(values["examples"]) == 3
    own = content.models([encoder.name])[encoder.name]
    assert (own["layers"], own["heads"]) == (3, 4) and own["known"] == {} and own["mentions"] == {}
    assert {one["group"] for one in own["lacking"]} == {"Cost of removal", "Key words", "Pictures", "Probe"}
    page.write_data(tmp_path / "page", {encoder.name: own})
    assert (tmp_path / "page" / f"{encoder.name}.js").stat().st_size < 200_000


def test_an_encoder_with_an_adapter_has_a_name_of_its_own():
    assert "minilm-qa" in measuring.adapted()
    encoder = measuring.load("minilm-qa")
    assert (encoder.name, encoder.task) == ("minilm-qa", "qa")


def test_one_list_says_which_models_there_are():
    """The atlas, its table and the scoreboard's columns: the same models in the same order."""
    named = [*listed.models((*listed.PROFILES, measuring.PROFILE))]
    assert named == listed.ordered(reversed(named)) and named[0] == "minilm"
    assert [*measuring.recorded()] == [name for name in named if name in measuring.recorded()]
    assert {*measuring.adapted(), "mpnet", "minilm@random", "mpnet@random"} <= {*measuring.recorded()}
    for chapter in map(notebooks.find, ("surface_patterns", "head_importance")):
        there = {
            model
            for model, of in listed.models().items()
            if chapter[3:] in {*of.get("book", ()), *of.get("full", ())}
        }
        assert {run.model for run in scoreboard.records(chapter)} == there
    rows = {row[0].strip("`"): row[1:] for row in content.holdings().rows}
    assert [*rows] == named and rows["minilm"] == ["yes", "02–14", "02–14"]
    assert rows["minilm-qa"] == ["yes", "–", "–"] and rows["mpnet"][1] == "–"


def test_models_stand_beside_their_kin():
    names = ["b@random", "b", "a/c", "minilm@random", "minilm-qa", "minilm"]
    assert listed.ordered(names) == ["minilm", "minilm-qa", "minilm@random", "a/c", "b", "b@random"]


def test_a_head_that_attends_evenly_has_no_place(shown):
    titles = {one["label"]: one["title"] for one in shown["minilm"]["best"] if one["quantity"] == "specialist"}
    assert "half" in titles["previous"] and "half" not in titles["broad"]


# ---------------------------------------------------------------------------------------- the chapters' numbers


def full(rows, shape):
    """The rows of quantities that every head has, the ones that the page is to show."""
    wanted = {name for group in content.shown()["groups"].values() for name in group["quantities"]}
    rows = content.preferred(rows[rows["quantity"].isin(wanted) & rows["head"].notna()])
    return [
        one for _, one in rows.groupby(["quantity", "of", "profile"], dropna=False) if len(one) == shape[0] * shape[1]
    ]


def test_every_number_of_every_head_is_its_chapters(frame, shown):
    for model, one in shown.items():
        shape = one["layers"], one["heads"]
        wanted = full(frame[frame["model"] == model], shape)
        grids = {(g["quantity"], g["of"], one["sources"][g["source"]]["profile"]): g for g in one["grids"]}
        assert len(grids) == len(one["grids"]) and len(wanted) > 60
        assert len([g for g in one["grids"] if g["quantity"] != "best_relation"]) == len(wanted)
        for rows in wanted:
            first = rows.iloc[0]
            name = None if first["of"] != first["of"] else first["of"]
            grid = grids[first["quantity"], name, first["profile"]]
            rows = rows.sort_values(["layer", "head"])
            for key in ("value", "low", "high"):
                column = rows[key].to_numpy(float)
                assert np.isnan(column).any() or np.allclose(grid[key], column, atol=1e-5), (model, name, key)
            assert one["sources"][grid["source"]]["chapter"] == first["chapter"][:2]


RAW = {
    ("share_cls", None): ("surface_patterns", lambda v: v["patterns"]["cls"]["value"]),
    ("entropy", None): ("surface_patterns", lambda v: v["patterns"]["entropy"]["value"]),
    ("finds_governor", "obj"): ("dependency_heads", lambda v: np.array(v["ud"]["accuracy"]["obj"])[..., 0]),
    ("finds_antecedent", "all"): ("coreference_heads", lambda v: v["by_kind"]["accuracy"]["all"]),
    ("distance_feature", "window 1"): ("distance_features", lambda v: np.array(v["features"]["value"])[..., 1]),
    ("removal_loss", "qa"): ("head_importance", lambda v: v["tasks"]["qa"]["cost"]["loss"]["heads"]["cost"]["value"]),
    ("key_word_attention", None): ("keywords", lambda v: v["relative"]["value"]),
}


@pytest.mark.parametrize("profile", ["book", "full"])
def test_numbers_are_those_of_the_record_itself(shown, profile):
    one = shown["minilm"]
    for (quantity, name), (chapter, take) in RAW.items():
        grid = next(
            g
            for g in one["grids"]
            if (g["quantity"], g["of"], one["sources"][g["source"]]["profile"]) == (quantity, name, profile)
        )
        values = np.ravel(take(results.recorded(chapter, profile=profile)["values"]))
        assert np.allclose(grid["value"], values, atol=1e-5), quantity


def test_a_head_that_was_chosen_stands_with_its_interval_and_rule(shown):
    one = shown["minilm"]
    row = results.recorded("dependency_heads")["values"]["ud"]["table"]["obj"]
    found = next(
        b
        for b in one["best"]
        if b["quantity"] == "best_for_relation"
        and b["of"] == "obj"
        and one["sources"][b["source"]]["profile"] == "book"
    )
    assert found["head"] == row["layer"] * one["heads"] + row["head"] and found["n"] == row["count"]
    assert np.allclose(
        [found[k] for k in ("value", "low", "high")],
        [row["held_out"][k] for k in ("value", "low", "high")],
        atol=1e-5,
    )
    assert (
        np.isclose(found["control"], row["baseline"]["value"], atol=1e-5) and found["against"] == "best fixed offset"
    )
    assert np.isclose(found["lead"][0], row["gain"]["value"], atol=1e-5)


def test_types_and_neighbours_are_the_records(shown):
    one = shown["minilm"]
    types = np.ravel(results.recorded("distance_features")["values"]["types"])
    assert [content.TYPE_NAMES[n] for n in one["types"]["of"]] == types.tolist()
    pairs = np.zeros((72, 72))
    pairs[np.triu_indices(72, 1)] = results.recorded("divergence_map")["values"]["model"]["pairs"]
    pairs += pairs.T + np.diag(np.full(72, np.inf))
    for head, near in enumerate(one["nearest"]):
        assert np.allclose([far for _, far in near], np.sort(pairs[head])[:5], atol=1e-5)
        assert all(np.isclose(pairs[head, other], far, atol=1e-5) for other, far in near)


def test_a_grid_moves_points_as_little_as_may_be():
    cells = np.argwhere(np.ones((3, 4)))
    points = cells[:, ::-1] + np.random.default_rng(0).uniform(-0.1, 0.1, (12, 2))
    assert (content.on_grid(points, (3, 4)) == cells).mean() > 0.8
    crowded = content.on_grid(np.random.default_rng(0).normal(size=(144, 2)) ** 3, (12, 12))
    assert len({tuple(one) for one in crowded}) == 144


@pytest.mark.parametrize(
    ("text", "heads"),
    [
        ("Head 3-5 finds them, and 12-1.", [("3", "5"), ("12", "1")]),
        ("(3-5)", [("3", "5")]),
        ("pages 2–3, 2026-11-23, BERT-1-2, 3-5.5, a 6 x 12 grid", []),
        ("| 3-5 | 72 |", [("3", "5")]),
    ],
)
def test_heads_that_a_text_names(text, heads):
    assert content.HEAD.findall(text) == heads


def test_chapters_that_name_a_head_are_found(shown):
    named = {number for number, *_ in shown["minilm"]["mentions"]["3-5"]}
    assert {"01", "05"} <= named and "05" in {n for n, *_ in shown["minilm"]["mentions"]["3-5"]}
    assert shown["minilm"]["known"]["3-5"] == "antecedent"


# ---------------------------------------------------------------------------------------- what is in the page


def test_what_a_model_has_not_is_said(shown):
    lacking = {one["group"]: one["chapter"] for one in shown["minilm@random"]["lacking"]}
    assert lacking["Cost of removal"] == "11" and shown["minilm"]["lacking"] == []


def test_data_are_small_and_nothing_in_them_is_code(shown):
    for model, one in shown.items():
        assert len(atlas.data(model, one)) < atlas.LIMIT
    one = shown["minilm"]
    example = {HOSTILE: {"tokens": [HOSTILE], "weights": ""}}
    script = atlas.data(HOSTILE, one | {"examples": example})
    assert "<" not in script and json.loads(script.split("]=", 1)[1].rstrip(";\n"))["examples"] == example
    element = atlas.element([HOSTILE], folder=".", still="")
    assert element.count("<script") == 1 and element.count("</script>") == 1 and "<img" not in element
    with pytest.raises(TooLarge, match="at most"):
        atlas.data("minilm", one | {"maps": "A" * atlas.LIMIT})


@pytest.mark.slow
def test_every_model_that_was_measured_is_on_the_page_and_small():
    found = content.models()
    assert [*found] == [*measuring.recorded()] and max(len(atlas.data(*one)) for one in found.items()) < atlas.LIMIT
    for name in (*measuring.adapted(), "minilm@random", "mpnet@random"):
        assert {"Cost of removal", "Probe"} <= {one["group"] for one in found[name]["lacking"]}, "said plainly"
    assert {one["task"] for name, one in found.items() if name in measuring.adapted()} >= {"mlm", "qa"}


def test_the_still_picture_shows_every_head(shown):
    one = shown["minilm"]
    figure = atlas.still(one)
    drawn = [ax for ax in figure.axes if ax.images]
    assert len(drawn) == 72
    maps = np.frombuffer(base64.b64decode(one["maps"]), np.uint8).reshape(72, 16, 16)
    assert np.allclose(drawn[28].images[0].get_array(), np.sqrt(maps[28] / 255))
    assert "72 heads" in page.still(one)


# ---------------------------------------------------------------------------------------- a reader


@pytest.fixture(scope="module")
def opened(shown, tmp_path_factory):
    """A page of its own, opened from disk in a browser without a network."""
    folder = tmp_path_factory.mktemp("atlas")
    page.write_data(folder, shown)
    element = atlas.element(shown, folder=".", still=page.still(shown["minilm"]), page=False)
    (folder / "index.html").write_text(page.PAGE.format(title="Atlas", element=element), "utf-8")
    with browser() as tab:
        yield tab, folder / "index.html"


def sized(tab, width, height=900):
    tab.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
    )


def press(tab, key):
    tab.tab.keyboard.press(key)
    tab.tab.wait_for_timeout(150)


def middle(tab, head):
    """Where a head's tile is, when it has come to rest there in view."""
    tab.tab.wait_for_timeout(400)
    return tab.evaluate(
        f"(() => {{ const tile = document.querySelectorAll('.tile')[{head}]; tile.scrollIntoView({{ block: 'center' }});"
        " const box = tile.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )


def title(tab):
    return tab.evaluate("[...document.querySelectorAll('.head-card .title')].map((e) => e.textContent)")


@pytest.mark.journey
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_a_reader_uses_the_atlas(opened):
    tab, file = opened
    sized(tab, 1280)
    tab.open(file)
    tab.wait("document.querySelectorAll('.tile').length === 72")
    assert tab.evaluate("getComputedStyle(document.querySelector('.still')).display") == "none"
    ask = partial(tab.evaluate)

    # mouse
    x, y = middle(tab, 28)
    tab.tab.mouse.click(x, y)
    tab.wait("document.querySelector('.head-card')")
    assert title(tab) == ["Head 3-5 of minilm, the antecedent head"] and ask("location.hash") == "#minilm/3-5"
    text = ask("document.querySelector('.head-card').innerText")
    assert all(part in text for part in ("Where it looks", "antecedents of all", "Without it", "attend most alike"))
    assert ask("document.querySelectorAll('.head-card svg.lines').length") == 3
    assert ask("getComputedStyle(document.querySelector('.left')).position") == "sticky", "in view beside the card"

    # keyboard
    press(tab, "Escape")
    assert title(tab) == [] and ask("document.activeElement.getAttribute('aria-label')").startswith("Head 3-5")
    press(tab, "ArrowRight")
    press(tab, "ArrowDown")
    assert ask("document.activeElement.getAttribute('aria-label')").startswith("Head 4-6: ")
    press(tab, "Enter")
    assert title(tab)[0].startswith("Head 4-6 of minilm") and ask("document.activeElement.className") == "title"
    press(tab, "Escape")
    before = ask("document.querySelectorAll('.tile')[0].style.transform")
    for key, way in (("a", "alike"), ("t", "types"), ("l", "layers")):
        press(tab, key)
        assert ask("document.querySelector('.ways input:checked').value") == way
        assert (ask("document.querySelectorAll('.tile')[0].style.transform") == before) == (way == "layers")
    press(tab, "c")
    assert ask("document.querySelectorAll('.bar select')[2].selectedOptions[0].text") == "attention to [CLS]"
    press(tab, "/")
    assert ask("document.activeElement.type") == "search"

    # search
    for query, first, said in (
        ("objects", "3-1", "objects (obj)"),
        ("previous token", "1-3", "attention to the previous token"),
        ("coreference", "3-5", "antecedents of all mentions"),
        ("[SEP]", "3-8", "attention to [SEP]"),
    ):
        ask(
            f"(s => {{ s.value = {json.dumps(query)}; s.dispatchEvent(new Event('input')); }})(document.activeElement)"
        )
        found = ask("document.querySelector('.found').innerText")
        assert said in found and ask("document.querySelector('.found li').innerText").startswith(first)
        numbers = ask(
            "[...document.querySelectorAll('.found li')].map((e) => +e.innerText.match(/ ([−\\d.]+)/)[1].replace('−', '-'))"
        )
        assert numbers == sorted(numbers, reverse=True) and len(numbers) == 72
    press(tab, "Escape")
    assert ask("document.querySelector('.found').innerText") == ""

    # one head in two models, by address; one that is not there
    ask("location.hash = '#minilm/3-5+minilm@random/3-5'")
    tab.wait("document.querySelectorAll('.head-card').length === 2")
    assert [one.split(",")[0] for one in title(tab)] == ["Head 3-5 of minilm", "Head 3-5 of minilm@random"]
    assert "not recorded for this model" in ask("document.querySelectorAll('.head-card')[1].innerText")
    where = ask("getComputedStyle(document.querySelector('.left')).position")
    assert where != "sticky", "the heads would lie over cards that stand below them"
    tab.tab.mouse.move(2, 2)  # a head under the pointer would speak instead
    ask("location.hash = '#minilm/9-9'")
    tab.wait("document.querySelector('.says').textContent.includes('no head 9-9')")

    # a finger, on a phone, in the dark
    sized(tab, 390, 800)
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    tab.call("Emulation.setTouchEmulationEnabled", enabled=True)
    assert tab.problems == []
    tab.open(file)  # a page learns of fingers when it is opened
    tab.wait("document.querySelectorAll('.tile').length === 72")
    tab.tab.wait_for_timeout(500)
    x, y = middle(tab, 2)
    tab.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
    tab.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    tab.wait("document.querySelector('.head-card')")
    assert title(tab)[0].startswith("Head 1-3 of minilm")
    assert ask("document.documentElement.scrollWidth") <= 390
    assert min(ask("[...document.querySelectorAll('.tile')].map((t) => t.offsetWidth)")) >= 24
    light = re.findall(r"[\d.]+", ask("getComputedStyle(document.querySelector('.head-card')).color"))
    assert min(map(float, light[:3])) > 150, "light text where the page is dark"
    assert tab.barriers() == []
    assert tab.problems == [] and all(one.startswith(("file:", "data:")) for one in tab.requests)
