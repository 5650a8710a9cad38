"""Chapter 14: the card against the chapters it repeats, odd models, comparisons, and models the book has never seen."""

import numpy as np
import pytest

from helpers import attention, results, tokens
from helpers.chapters.your_own_model import figures, tables
from helpers.chapters.your_own_model import measures as your_own_model
from helpers.chapters.your_own_model.measures import PLACES
from helpers.measurements import coreference, divergence, head_types, surface, syntax
from helpers.plots import head_name


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
    patterns = surface.measure(encoder, texts.segments)
    own = your_own_model.sweep(encoder, texts.segments)[0]
    for name in surface.STATISTICS:
        assert np.allclose(own[name].value, patterns[name].value, equal_nan=True)
        assert np.allclose(own.half(1, name).value, patterns.half(1, name).value, equal_nan=True)
    assert np.allclose(card["entropy"].value, patterns["entropy"].mean().value)
    names = [(s["layer"], s["head"], s["role"]) for s in card["specialists"]]
    assert names == [(s.layer, s.head, s.role) for s in surface.specialists(patterns)]
    plain, documents = [s.texts for s in texts.segments], [s.document for s in texts.segments]
    features = head_types.measure(encoder, plain, documents=documents)
    assert (card["types"] == head_types.types(features.all.value, features.even).names).all()
    rule = head_types.by_rule(features.all.value, features.even)
    assert all(np.isclose(card["rule_shares"][n].value, (rule == n).mean()) for n in head_types.TYPES)
    divergences = divergence.measure(encoder, texts.segments)
    near = divergence.closeness(divergences, divergences.layer)
    assert np.isclose(card["closeness"]["ratio"].value, near.ratio.value) and card["closeness"]["p"] == near.p
    points = card["map"]["points"]
    shown = np.linalg.norm(points[:, None] - points, axis=-1)
    assert np.isclose(
        card["map"]["stress"], np.sqrt(((shown - divergences.mean()) ** 2).sum() / (shown**2).sum()), atol=1e-5
    )


def test_heads_on_the_card_are_chosen_on_one_part_and_scored_on_the_other(measured, texts):
    encoder, card = measured
    parts = [syntax.trees(encoder, part) for part in texts.trees]
    dev, test = map(syntax.score, syntax.answers(encoder, *parts), parts)
    rows = card["relations"]
    assert next(iter(rows)) == "all" and len(rows) <= 1 + your_own_model.RELATIONS
    few = {relation for relation, row in syntax.table(dev, test).items() if row.few}
    for relation, row in rows.items():
        head = row["layer"], row["head"], syntax.DIRECTIONS.index(row["direction"])
        assert head == dev.hits[dev.asked(relation)].best()
        assert np.isclose(row["held_out"].value, test.accuracy(relation)[head])
        assert relation not in few
    counts = [row["count"] for row in rows.values()][1:]
    assert counts == sorted(counts, reverse=True)
    dev, test = (coreference.measure(encoder, part) for part in texts.chains)
    best = card["coreference"]["all"]
    assert (best["layer"], best["head"]) == dev.hits.best() and card["units"]["mentions"] == len(test.hits)


@pytest.mark.slow
def test_the_control_on_a_card_is_that_of_the_chapters(measured, texts):
    encoder, plain = measured
    card = your_own_model.card(encoder, texts, shuffled=True)
    assert plain["shuffled"] is None and np.allclose(card["entropy"].value, plain["entropy"].value)
    dealt = card["shuffled"]
    patterns = surface.measure(encoder, texts.segments, shuffled=True)
    assert np.allclose(dealt["entropy"].value, patterns["entropy"].mean().value)
    parts = [syntax.trees(encoder, part) for part in texts.trees]
    dev, test = map(syntax.score, syntax.answers(encoder, *parts, shuffled=True), parts)
    assert (
        dealt["relations"].keys() == card["relations"].keys()
        and dealt["coreference"].keys() == card["coreference"].keys()
    )
    for name, row in dealt["relations"].items():
        assert np.isclose(row["held_out"].value, test.accuracy(name)[dev.hits[dev.asked(name)].best()])
        assert np.isclose(row["gain"].value, row["held_out"].value - card["relations"][name]["baseline"].value)
    lines = {line.measure: line for line in your_own_model.compare(card, dealt)}
    assert lines["best head: all"].gap is not None, "paired on the same texts"
    assert lines["entropy, of even attention's"].other.value == dealt["breadth"].value


def test_shares_and_the_sink_are_what_loops_count(measured, texts):
    encoder, card = measured
    sums, even, rows = np.zeros((encoder.layers, 4)), np.zeros(3), 0
    for segment in texts.segments:
        batch = tokens.encode(encoder, [segment.texts], max_length=128, truncate=True)
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
        assert multiples.max() < surface.SINK_FACTOR
    else:
        kind, multiple = card["sink"].values()
        assert kind == ("cls", "sep")[multiples.argmax()] and np.isclose(multiple.value, multiples.max(), rtol=1e-4)


@pytest.mark.slow
def test_gaps_are_paired_where_they_can_be(measured, small_encoder, texts):
    _, one = measured
    same = {line.measure: line for line in your_own_model.compare(one, one)}
    assert {float(line.gap.value) for line in same.values()} == {0}
    assert all(line.gap.high == 0 or np.isnan(line.gap.high) for line in same.values()), "of one document no interval"
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


@pytest.mark.slow
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
    numbers = results.to_json({"card": values, "other": values})  # finite throughout
    found = results.joined(tables.tidy({"values": numbers, "provenance": {"parameters": {}}}))
    assert set(found.quantity) >= {"share", "entropy", "type"}
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


@pytest.fixture(scope="module")
def recorded():
    return results.recorded("your_own_model")["values"]


def test_only_a_random_second_model_is_a_control(recorded):
    for name, network in (("minilm@random", "@random"), ("mpnet", "mpnet")):
        model = recorded["other"]["model"] | {"name": name}
        values = recorded | {"other": recorded["other"] | {"model": model}}
        found = results.joined(tables.tidy({"values": values, "provenance": {"parameters": {}}}))
        assert set(found.network) == {"", "@shuffled", network}
        assert set(found.model[found.network == network]) == {name}


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
    widest = sorted(widths, key=widths.get)[-2:]
    assert widest == ["coreference: nominal", "coreference: proper"]
    assert all(widths[f"attention to {kind}"] < 0.01 for kind in ("[CLS]", "[SEP]", ". and ,"))


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
