"""Chapter 14: the card against the chapters it repeats, odd models, comparisons, and models the book has never seen."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from helpers import corpora
from helpers.chapters import distance_features, divergence_map
from helpers.chapters.coreference_heads import measures as coreference_heads
from helpers.chapters.dependency_heads import measures as dependency_heads
from helpers.chapters.surface_patterns import measures as surface_patterns
from helpers.chapters.your_own_model import figures
from helpers.chapters.your_own_model import measures as your_own_model
from helpers.chapters.your_own_model.measures import PLACES
from helpers.engine import attention, controls, tokens
from helpers.engine.estimates import Estimate
from helpers.figures.look import COLOURS, TYPE_NAMES, head_name
from helpers.record import results


@pytest.fixture(scope="module")
def texts():
    return your_own_model.sample("encyclopedia", "encyclopedia", "encyclopedia", segments=8, documents=5)


@pytest.fixture(scope="module")
def measured(small_encoder, texts):
    encoder = small_encoder("distilbert", max_position_embeddings=128)
    return encoder, your_own_model.card(encoder, texts)


def test_a_sample_is_the_same_for_all_and_has_two_halves(texts, tmp_path):
    again = your_own_model.sample("encyclopedia", "encyclopedia", "encyclopedia", segments=8, documents=5)
    assert again.segments == texts.segments and again.trees == texts.trees
    assert len(texts.segments) == 8 and [len(p) for p in texts.trees] == [5, 5]
    assert not {d.id for d in texts.trees[0]} & {d.id for d in texts.trees[1]}
    alone = tmp_path / "one.txt"
    paragraph = "The otter dived, and it came up with a shell that it laid on its belly.\n"
    alone.write_text(" = One = \n" + 4 * paragraph)
    with pytest.raises(ValueError, match="text of several articles"):
        your_own_model.sample(str(alone), "encyclopedia", "encyclopedia", segments=2)


def test_the_card_has_the_chapters_own_numbers(measured, texts):
    encoder, card = measured
    patterns = surface_patterns.measure(encoder, texts.segments, batch_size=3)
    own = your_own_model.sweep(encoder, texts.segments)[0]
    assert np.allclose(own.all.value, patterns.all.value, equal_nan=True)
    assert np.allclose(own.halves[1].value, patterns.halves[1].value, equal_nan=True)
    assert np.allclose(card["entropy"].value, patterns["entropy"].mean().value)
    names = [(s["layer"], s["head"], s["role"]) for s in card["specialists"]]
    assert names == [(s.layer, s.head, s.role) for s in surface_patterns.specialists(patterns)]
    plain, documents = [s.texts for s in texts.segments], [s.document for s in texts.segments]
    features = distance_features.measure(encoder, plain, documents=documents, draws=2)
    assert (card["types"] == distance_features.types(features.all.value, features.even).names).all()
    rule = distance_features.by_rule(features.all.value, features.even)
    assert all(np.isclose(card["rule_shares"][n].value, (rule == n).mean()) for n in distance_features.TYPES)
    divergences = divergence_map.measure(encoder, texts.segments)
    near = divergence_map.closeness(divergences, divergences.layer)
    assert np.isclose(card["closeness"]["ratio"].value, near.ratio.value) and card["closeness"]["p"] == near.p
    points = card["map"]["points"]
    shown = np.linalg.norm(points[:, None] - points, axis=-1)
    assert np.isclose(
        card["map"]["stress"], np.sqrt(((shown - divergences.mean()) ** 2).sum() / (shown**2).sum()), atol=1e-5
    )


def test_heads_on_the_card_are_chosen_on_one_part_and_scored_on_the_other(measured, texts):
    encoder, card = measured
    dev, test = (dependency_heads.score(dependency_heads.predict(encoder, part)) for part in texts.trees)
    rows = card["relations"]
    assert next(iter(rows)) == "all" and len(rows) <= 1 + your_own_model.RELATIONS
    few = {row.relation for row in dependency_heads.table(dev, test) if row.few}
    for relation, row in rows.items():
        head = row["layer"], row["head"], dependency_heads.DIRECTIONS.index(row["direction"])
        assert head == dev.best(relation)
        assert np.isclose(row["held_out"].value, test.accuracy(relation)[head])
        assert relation not in few
    counts = [row["count"] for row in rows.values()][1:]
    assert counts == sorted(counts, reverse=True)
    made = [coreference_heads.score(coreference_heads.predict(encoder, part)) for part in texts.chains]
    best = card["coreference"]["all"]
    assert (best["layer"], best["head"]) == made[0].best("all") and card["units"]["mentions"] == made[1].count("all")


def test_the_control_on_a_card_is_that_of_the_chapters(measured, texts):
    encoder, plain = measured
    card = your_own_model.card(encoder, texts, shuffled=True)
    assert plain["shuffled"] is None and np.allclose(card["entropy"].value, plain["entropy"].value)
    dealt = card["shuffled"]
    own = surface_patterns.Accumulator(encoder, [s.document for s in texts.segments])
    batches = tokens.Batches(encoder, [s.texts for s in texts.segments], max_length=128, overlong="truncate")
    attention.sweep(encoder, batches, controls.Shuffled(own))
    assert np.allclose(dealt["entropy"].value, own.result()["entropy"].mean().value, rtol=1e-4)
    dev, test = (dependency_heads.score(dependency_heads.predict(encoder, p, shuffled=True)) for p in texts.trees)
    assert (
        dealt["relations"].keys() == card["relations"].keys()
        and dealt["coreference"].keys() == card["coreference"].keys()
    )
    for name, row in dealt["relations"].items():
        assert np.isclose(row["held_out"].value, test.accuracy(name)[dev.best(name)])
        assert np.isclose(row["gain"].value, row["held_out"].value - card["relations"][name]["baseline"].value)
    lines = {line.measure: line for line in your_own_model.compare(card, dealt)}
    assert lines["best head: all"].gap is not None, "paired on the same texts"
    assert lines["entropy, of even attention's"].other.value == dealt["breadth"].value


def test_shares_and_the_sink_are_what_loops_count(measured, texts):
    encoder, card = measured
    sums, even, rows = np.zeros((encoder.layers, 4)), np.zeros(3), 0
    for segment in texts.segments:
        batch = tokens.encode(encoder, [segment.texts], max_length=128, overlong="truncate")
        maps = attention.maps(encoder, batch)[:, 0].numpy().mean(1)
        kinds = [batch.cls[0].numpy(), batch.sep[0].numpy(), batch.stop[0].numpy()]
        for n, kind in enumerate(kinds):
            sums[:, n] += maps[:, :, kind].sum((1, 2))
            even[n] += kind.sum()
        sums[:, 3] += maps[:, :, ~np.logical_or.reduce(kinds)].sum((1, 2))
        rows += maps.shape[1]
    assert np.allclose(card["shares"].value, sums / rows, atol=1e-5) and np.allclose(card["shares"].value.sum(-1), 1)
    multiples = sums[:, :2].mean(0) / even[:2]
    if card["sink"] is None:
        assert multiples.max() < surface_patterns.SINK_FACTOR
    else:
        kind, multiple = card["sink"].values()
        assert kind == ("cls", "sep")[multiples.argmax()] and np.isclose(multiple.value, multiples.max(), rtol=1e-4)


def test_a_card_survives_being_recorded(measured, tmp_path, monkeypatch):
    encoder, values = measured
    monkeypatch.setenv("BOOK_RESULTS", str(tmp_path))
    source = corpora.provenance("encyclopedia", "text")
    file = results.record(
        "your_own_model", {"card": values}, encoder=encoder, corpus=source, profile="smoke", parameters={}
    )
    again = json.loads(file.read_text())["values"]["card"]
    assert your_own_model.summary(again) == your_own_model.summary(values)
    one, two = figures.model_card(values), figures.model_card(again)
    assert [a.get_title() for a in one.axes] == [a.get_title() for a in two.axes]
    assert all(line.gap is None for line in your_own_model.compare(again, values)), (
        "recorded numbers have no replicates"
    )
    words = dict(your_own_model.summary(values))
    assert words["model"].startswith("small-distilbert: DistilBertModel, 3 × 4 heads")


@pytest.mark.slow
def test_gaps_are_paired_where_they_can_be(measured, small_encoder, texts):
    _, one = measured
    same = {line.measure: line for line in your_own_model.compare(one, one)}
    assert all(line.gap.value == 0 == line.gap.high for line in same.values())
    other = your_own_model.card(small_encoder("bert", num_hidden_layers=1, num_attention_heads=2), texts)
    lines = {line.measure: line for line in your_own_model.compare(one, other)}
    gap = lines["attention to [CLS]"].gap
    assert np.allclose(gap.replicates, one["to"]["cls"].replicates - other["to"]["cls"].replicates, equal_nan=True)
    assert lines["divergence within layers ÷ between"].other is None
    fewer = other["units"]["sentences"] != one["units"]["sentences"]
    assert (lines["best head: all"].gap is None) == fewer
    assert len(figures.gaps(list(lines.values()), names=("a", "b")).axes[0].get_yticks()) == sum(
        line.gap is not None for line in lines.values()
    )
    assert len(figures.cards_beside(one, other).axes) == 6


@pytest.mark.parametrize(
    ("family", "changes", "without"),
    [
        ("bert", {"num_hidden_layers": 1, "num_attention_heads": 2}, {"map"}),
        ("roberta", {"num_hidden_layers": 1}, set()),
        ("mpnet", {"num_attention_heads": 1}, set()),
        ("deberta-v2", {}, set()),
        ("bert", {"max_position_embeddings": 8}, {"relations", "coreference"}),
    ],
)
def test_odd_models_have_a_card_too(small_encoder, texts, family, changes, without):
    encoder = small_encoder(family, **changes)
    values = your_own_model.card(encoder, texts)
    assert set(values["missing"]) == without
    assert np.shape(values["types"]) == (encoder.layers, encoder.heads)
    assert values["shares"].value.shape == (encoder.layers, len(PLACES))
    results.plain(values)  # finite throughout
    axes = {ax.get_title() for ax in figures.model_card(values).axes}
    assert {"types and specialists", "where attention goes", "entropy"} <= axes
    rows = dict(your_own_model.summary(values))
    assert {f"no {part}" for part in without} <= set(rows)


def test_the_second_model_goes_by_the_first():
    control = your_own_model.load("@random", beside="minilm")
    assert control.name == "minilm@random"
    again = your_own_model.load("@random", beside="minilm@random")
    assert again.name == control.name and again.sha256 != control.sha256, "another draw"
    assert your_own_model.short_name("/some/where/model") == "model"


# ------------------------------------------------------------------ what the prose says


@pytest.fixture(scope="module")
def recorded():
    return results.recorded("your_own_model")["values"]


def test_claims_about_the_default_card(recorded):
    card = recorded["card"]
    by_role = {}
    for s in card["specialists"]:
        by_role.setdefault(s["role"], []).append(head_name(s["layer"], s["head"]))
    assert {role: len(heads) for role, heads in by_role.items()} == {"broad": 8, "cls": 4, "previous": 1, "next": 1}
    assert all(name.startswith("1-") for name in by_role["broad"])
    assert by_role["previous"] == ["1-3"] and by_role["next"] == ["2-9"] and "3-5" in by_role["cls"]
    assert card["sink"]["kind"] == "cls" and round(card["sink"]["multiple"]["value"]) == 33
    assert round(100 * card["to"]["cls"]["value"]) == 26
    assert np.argmax(np.array(card["shares"]["value"])[:, 0]) == 4
    assert set(np.argsort(card["entropy"]["value"])[:2]) == {1, 2}
    relations = card["relations"]
    assert [n for n, r in relations.items() if r["p"] < 0.05 and n != "all"] == ["case", "obj"] and len(
        relations
    ) == 9
    for name in ("det", "amod", "nmod:poss"):
        assert (
            relations[name]["held_out"]["value"] > relations[name]["baseline"]["value"]
            and relations[name]["p"] >= 0.05
        )
    best = card["coreference"]["all"]
    assert (best["layer"], best["head"]) == (2, 4) and round(100 * best["held_out"]["value"]) == 78
    dealt = card["shuffled"]
    assert dealt["to"]["cls"]["value"] < 0.01 and abs(dealt["breadth"]["value"] - card["breadth"]["value"]) < 0.02
    for name, row in dealt["relations"].items():
        assert row["gain"]["high"] < 0 and recorded["other"]["relations"][name]["gain"]["high"] < 0, (
            "below the offset"
        )
    assert round(100 * dealt["coreference"]["all"]["held_out"]["value"]) == 47
    assert best["rules"]["value"] > best["held_out"]["value"]
    assert [name for name, fits in card["fits"].items() if not fits] == ["vertical"]


def test_claims_about_the_random_card(recorded):
    card = recorded["other"]
    assert {s["role"] for s in card["specialists"]} == {"broad"} and len(card["specialists"]) == 72
    assert round(100 * card["breadth"]["value"], 1) == 99.8 and card["sink"] is None
    assert all(r["p"] >= 0.05 for r in card["relations"].values())
    assert sum(not fits for fits in card["fits"].values()) == 3
    assert np.abs(card["map"]["points"]).max() < 0.01
    assert round(100 * card["coreference"]["all"]["held_out"]["value"]) == 40


def test_claims_about_the_gaps(recorded):
    one, other = recorded["card"], recorded["other"]
    lines = {line.measure: line for line in your_own_model.compare(one, other)}
    gap = {name: float(line.one.value - line.other.value) for name, line in lines.items()}
    assert round(100 * gap["attention to [CLS]"]) == 25
    heads = {name: value for name, value in gap.items() if name.startswith("best head") and not name.endswith("all")}
    assert min(heads, key=heads.get) == "best head: obl" and max(heads, key=heads.get) == "best head: amod"
    assert round(100 * min(heads.values())) == 16 and round(100 * max(heads.values())) == 80
    counts = {kind: one["coreference"][kind]["count"] for kind in ("proper", "nominal")}
    assert counts == {"proper": 5, "nominal": 16}
    widths = {name: float(line.one.high - line.one.low) for name, line in lines.items()}
    widest = sorted(widths, key=widths.get)[-3:]
    assert widest == ["best head: advmod", "coreference: nominal", "coreference: proper"]
    assert all(widths[f"attention to {kind}"] < 0.01 for kind in ("[CLS]", "[SEP]", ". and ,"))


def test_full_cards_are_of_real_corpora():
    for run in results.runs("your_own_model", profile="full").values():
        assert run["provenance"]["corpus"]["name"] == "wikitext"
        for card in (run["values"]["card"], run["values"]["other"]):
            assert np.allclose(np.array(card["shares"]["value"]).sum(-1), 1, atol=1e-4)
            assert figures.model_card(card).axes and Estimate.from_record(card["breadth"]).value <= 1


def test_claims_about_the_full_cards():
    runs = {m: results.recorded("your_own_model", model=m, profile="full")["values"] for m in ("minilm", "mpnet")}
    cards = {m: run["card"] for m, run in runs.items()}
    roles = {m: [s["role"] for s in card["specialists"]] for m, card in cards.items()}
    assert {m: len(found) for m, found in roles.items()} == {"minilm": 13, "mpnet": 13}
    assert {m: [found.count(r) for r in ("previous", "next", "stop")] for m, found in roles.items()} == {
        "minilm": [1, 1, 0],
        "mpnet": [0, 0, 3],
    }
    beaten = {
        m: {n for n, r in card["relations"].items() if n != "all" and r["p"] < 0.05} for m, card in cards.items()
    }
    assert {m: len(b) for m, b in beaten.items()} == {"minilm": 5, "mpnet": 5}
    assert len(beaten["minilm"] & beaten["mpnet"]) == 4
    per_cent = {m: round(100 * c["to"]["cls"]["value"]) for m, c in cards.items()}
    times = {m: round(c["sink"]["multiple"]["value"]) for m, c in cards.items()}
    breadth = {m: round(100 * c["breadth"]["value"]) for m, c in cards.items()}
    assert (per_cent, times, breadth) == (
        {"minilm": 27, "mpnet": 15},
        {"minilm": 32, "mpnet": 18},
        {"minilm": 63, "mpnet": 55},
    )
    best = {m: c["coreference"]["all"] for m, c in cards.items()}
    ends = {m: [round(100 * b["held_out"][k]) for k in ("value", "low", "high")] for m, b in best.items()}
    assert ends == {"minilm": [72, 63, 84], "mpnet": [80, 73, 88]}
    assert [round(100 * best["mpnet"]["rules"][k]) for k in ("value", "low", "high")] == [77, 68, 87]
    assert sum(not fits for fits in cards["mpnet"]["fits"].values()) == 3
    assert all(c["closeness"]["p"] < 0.01 for c in cards.values())
    for run in runs.values():
        blind = run["other"]
        assert blind["sink"] is None and blind["closeness"]["p"] > 0.05
        assert all(r["p"] >= 0.05 for n, r in blind["relations"].items() if n != "all")


# ------------------------------------------------------------------ figures


def estimate(shape):
    value = np.random.default_rng(0).random(shape)
    return Estimate(value, value - 0.1, value + 0.1, np.empty((0, *shape)))


SOME_TYPES = np.array([["dense", "diagonal", "vertical"], ["dense", "dense_vertical", "vertical"]])


def a_card(layers=2, heads=3, **changes):
    """Invented values of a card, as ``your_own_model.card`` makes them."""
    row = {
        "count": 40,
        "layer": 1,
        "head": 2,
        "direction": "",
        "held_out": estimate(()),
        "baseline": estimate(()),
        "rules": estimate(()),
        "p": 0.01,
    }
    return {
        "model": {
            "name": "some",
            "family": "SomeModel",
            "layers": layers,
            "heads": heads,
            "parameters": 2e6,
            "max_length": 64,
            "sha256": "0123456789abcdef",
        },
        "units": {"segments": 5, "tokens": 60, "sentences": 4, "mentions": 3},
        "specialists": [{"layer": 1, "head": 2, "role": "cls"}],
        "shares": Estimate(np.full((layers, 4), 0.25), *np.full((2, layers, 4), 0.25), np.empty((0, layers, 4))),
        "entropy": estimate((layers,)),
        "uniform": 2.0,
        "types": np.resize(SOME_TYPES, (layers, heads)),
        "type_shares": {name: estimate(()) for name in TYPE_NAMES},
        "fits": {name: name != "vertical" for name in TYPE_NAMES},
        "relations": {"all": row, "obj": row | {"p": 0.5}},
        "coreference": {"all": row},
        "map": {"points": np.arange(2.0 * layers * heads).reshape(-1, 2), "stress": 0.1},
        "missing": {},
    } | changes


def test_a_card_shows_types_specialists_shares_and_scores():
    axes = {ax.get_title(): ax for ax in figures.model_card(a_card()).axes}
    grid = axes["types and specialists"]
    shown = grid.images[0].get_array()  # [head, layer]
    assert np.allclose(shown[1, 0], to_rgba(COLOURS["diagonal"]))
    assert np.allclose(shown[2, 0], to_rgba(COLOURS["vertical"]))
    assert [(t.get_text(), t.get_position()) for t in grid.texts] == [("C", (2, 3))]
    legend = [t.get_text() for t in grid.get_legend().get_texts()]
    assert [text.rsplit(" ", 1)[0] for text in legend] == ["dense", "diagonal", "dense & vertical", "group 4"]
    bars = axes["where attention goes"].patches
    assert [p.get_height() for p in bars] == [0.25] * 8 and bars[2].get_y() == 0.25
    scores = axes["best head for each relation"]
    assert [t.get_text() for t in scores.get_yticklabels()] == ["all* 2-3", "obj 2-3"]
    assert scores.lines[1].get_xdata()[0] == estimate(()).value
    points = [c.get_offsets() for c in axes["map, by layer (stress 0.10)"].collections]
    assert np.array_equal(np.concatenate(points), np.arange(12.0).reshape(6, 2))


def test_a_card_with_its_control_shows_it_beside_entropy_and_accuracies():
    dealt = {"entropy": estimate((2,)), "relations": {"obj": {"held_out": estimate(())}}, "coreference": {}}
    axes = {ax.get_title(): ax for ax in figures.model_card(a_card(shuffled=dealt)).axes}

    def triangles(title):
        return [line.get_xydata().tolist() for line in axes[title].lines if line.get_marker() == "v"]

    value = float(estimate(()).value)
    assert triangles("entropy") == [[[1, dealt["entropy"].value[0]], [2, dealt["entropy"].value[1]]]]
    assert triangles("best head for each relation") == [[[value, 1]]] and triangles("coreference") == []
    assert "shuffled scores" in [t.get_text() for t in axes["entropy"].get_legend().get_texts()]


def test_the_footer_gives_each_sign_one_meaning():
    roles = [{"layer": 0, "head": 0, "role": "stop"}, {"layer": 1, "head": 2, "role": "cls"}]
    footer = figures.model_card(a_card(specialists=roles)).get_supxlabel()
    assert footer.startswith("letters: C for [CLS]; • for . or ,; * better than the best fixed offset, p < 0.05\n")
    row = a_card()["relations"]["all"] | {"p": 0.5}
    assert "*" not in figures.model_card(a_card(relations={"all": row})).get_supxlabel()


def test_groups_without_a_head_are_not_in_the_legend():
    types = np.full((2, 3), "dense")
    grid = {ax.get_title(): ax for ax in figures.model_card(a_card(types=types)).axes}["types and specialists"]
    assert [t.get_text().split()[0] for t in grid.get_legend().get_texts()] == ["dense"]


def test_a_card_says_what_it_lacks():
    reasons = {"relations": "No sentence fits.", "map": "Too few heads."}
    figure = figures.model_card(a_card(relations={}, map=None, missing=reasons))
    texts = " ".join(t.get_text().replace("\n", " ") for ax in figure.axes for t in ax.texts)
    assert "Not on this card: No sentence fits." in texts and "Too few heads." in texts
    axes = figures.cards_beside(a_card(), a_card(3, 2, map=None, specialists=[], missing=reasons)).axes
    assert [ax.get_title() for ax in axes][::3] == ["some: types", "some: types"]
    assert [axes[n].images[0].get_array().shape[:2] for n in (0, 3)] == [(3, 2), (2, 3)]


def test_gaps_are_filled_where_they_exclude_zero():
    lines = [
        SimpleNamespace(
            measure=name, gap=None if low is None else Estimate.of(np.float64(low), np.array([low, low + 0.2]))
        )
        for name, low in (("clear", 0.1), ("not", -0.1), ("no gap", None))
    ]
    ax = figures.gaps(lines, names=("one", "other")).axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["clear", "not"]
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert [dot.get_markerfacecolor() == "white" for dot in dots] == [False, True]
    assert ax.get_xlabel().startswith("one minus other")
