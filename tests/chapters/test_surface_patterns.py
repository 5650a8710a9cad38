"""Chapter 02 against slow loops; its claims against recorded numbers."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import corpora
from helpers.chapters.surface_patterns import measures as surface_patterns
from helpers.corpora.readers import Segment
from helpers.corpora.sources import CorpusError
from helpers.engine import attention, tokens
from helpers.record import results


def slow(maps, batch):
    """Every statistic in plain loops over segments, heads, tokens: sums and counts."""
    sums: dict[str, np.ndarray] = {}
    counts: dict[str, float] = {}
    layers, rows, heads = maps.shape[:3]

    def add(name, layer, head, value):
        sums.setdefault(name, np.zeros((layers, heads)))[layer, head] += value

    for row in range(rows):
        n = int(batch.lengths[row])
        kinds = [
            "cls" if batch.cls[row, j] else "sep" if batch.sep[row, j] else "stop" if batch.stop[row, j] else "other"
            for j in range(n)
        ]
        for name, count in (("all", n), ("neighbour", n - 1), ("sep", kinds.count("sep")), ("segments", 1)):
            counts[name] = counts.get(name, 0) + count
        for layer in range(layers):
            for head in range(heads):
                for i in range(n):
                    weights = [float(w) for w in maps[layer, row, head, i, :n]]
                    if i > 0:
                        add("previous", layer, head, weights[i - 1])
                    if i < n - 1:
                        add("next", layer, head, weights[i + 1])
                    add("self", layer, head, weights[i])
                    for kind in ("cls", "sep", "stop", "other"):
                        add(kind, layer, head, sum(w for w, k in zip(weights, kinds, strict=True) if k == kind))
                    to_sep = sum(w for w, k in zip(weights, kinds, strict=True) if k == "sep")
                    add("sep_from_sep" if kinds[i] == "sep" else "sep_from_other", layer, head, to_sep)
                    entropy = -sum(w * math.log(w) for w in weights if w > 0)
                    add("entropy", layer, head, entropy)
                    if kinds[i] == "cls":
                        add("entropy_from_cls", layer, head, entropy)
                        add(
                            "cls_from_cls",
                            layer,
                            head,
                            sum(w for w, k in zip(weights, kinds, strict=True) if k == "cls"),
                        )
                    add("peak", layer, head, max(weights))
    size = {
        "previous": "neighbour",
        "next": "neighbour",
        "sep_from_sep": "sep",
        "entropy_from_cls": "segments",
        "cls_from_cls": "segments",
    }
    counts["rest"] = counts["all"] - counts["sep"]
    size["sep_from_other"] = "rest"
    return {name: total / counts[size.get(name, "all")] for name, total in sums.items()}


def random_maps(batch, layers, heads, seed):
    """Random attention, some weights exactly 0, none on padding."""
    generator = torch.Generator().manual_seed(seed)
    rows, length = batch.ids.shape
    scores = torch.randn(layers, rows, heads, length, length, generator=generator) * 3
    scores = scores.masked_fill(torch.rand(scores.shape, generator=generator) < 0.3, -torch.inf)
    scores[..., 0] = 0.0
    scores = scores.masked_fill(~batch.mask[None, :, None, None, :], -torch.inf)
    return scores.softmax(-1)


INPUTS = st.lists(
    st.tuples(*[st.lists(st.sampled_from(["a", "dog", ".", ",", "unbelievable", "!"]), min_size=1, max_size=6)] * 2),
    min_size=1,
    max_size=4,
)


@settings(max_examples=6, deadline=None)
@given(inputs=INPUTS, seed=st.integers(0, 1000))
def test_every_statistic_against_loops(minilm, inputs, seed):
    batch = tokens.encode(minilm, inputs)
    maps = random_maps(batch, minilm.layers, minilm.heads, seed)[:, :, :]
    accumulator = surface_patterns.Accumulator(minilm, list(range(len(inputs))))
    for layer in range(minilm.layers):
        accumulator(batch, layer, maps[layer], None)
    patterns = accumulator.result()
    reference = slow(maps[:2, :, :2], batch)
    for name in surface_patterns.STATISTICS:
        np.testing.assert_allclose(patterns[name].value[:2, :2], reference[name], atol=2e-5, err_msg=name)
    total = sum(patterns[name].value for name in ("cls", "sep", "stop", "other"))
    np.testing.assert_allclose(total, 1, atol=1e-5)


def segments(count):
    words = [
        "the",
        "otter",
        ",",
        "dived",
        ".",
        "it",
        "cracked",
        "a",
        "shell",
        "on",
        "its",
        "unbelievable",
        "belly",
        "!",
    ]
    rng = np.random.default_rng(0)
    pick = lambda: " ".join(rng.choice(words, size=rng.integers(3, 25)))  # noqa: E731
    return [Segment(pick(), pick(), n // 2, "t") for n in range(count)]


@pytest.mark.parametrize("family", ["bert", "mpnet", "modernbert"])
def test_batch_size_and_padding_do_not_matter(small_encoder, family):
    encoder = small_encoder(family, max_position_embeddings=200)
    sample = segments(11)
    one, other = (surface_patterns.measure(encoder, sample, batch_size=size) for size in (1, 7))
    np.testing.assert_allclose(one.all.value, other.all.value, atol=1e-5)
    np.testing.assert_allclose(one.all.low, other.all.low, atol=1e-4)
    assert (one.segments, one.tokens) == (other.segments, other.tokens) == (11, one.tokens)


def test_even_attention_has_all_of_the_even_entropy_whatever_the_lengths(small_encoder):
    encoder, sample = small_encoder("bert"), segments(12)
    found = surface_patterns.Accumulator(encoder, [s.document for s in sample])
    for batch in tokens.Batches(encoder, [s.texts for s in sample], batch_size=4):
        real = batch.mask.float()
        even = (real / real.sum(-1, keepdim=True))[:, None, None, :] * real[:, None, :, None]
        for layer in range(encoder.layers):
            found(batch, layer, even.expand(-1, encoder.heads, -1, -1), None)
    patterns = found.result()
    share = surface_patterns.relative_entropy(patterns)
    assert patterns["uniform"].high - patterns["uniform"].low > 0.05, "texts of different lengths"
    assert np.allclose([share.value, share.low, share.high], 1, atol=1e-6)


def planted(minilm):
    """Patterns of maps that are exactly a previous-token head (1-1), a next-token head (2-3), a [CLS] head (3-2), and even."""
    sample = segments(6)
    accumulator = surface_patterns.Accumulator(minilm, [s.document for s in sample])
    for batch in tokens.Batches(minilm, [s.texts for s in sample], batch_size=4):
        rows, length = batch.ids.shape
        real = batch.mask.float()
        even = (real / real.sum(-1, keepdim=True))[:, None, None, :].expand(rows, 12, length, length)
        for layer in range(6):
            maps = even.clone()
            eye = torch.eye(length)
            previous = eye.roll(-1, 1)
            previous[0] = eye[0]
            if layer == 0:
                maps[:, 0] = previous
            if layer == 1:
                for row, n in enumerate(batch.lengths.tolist()):
                    maps[row, 2] = eye.roll(1, 1)
                    maps[row, 2, n - 1] = eye[n - 1]
            if layer == 2:
                maps[:, 1] = eye[0].expand(length, length)
            accumulator(batch, layer, maps, None)
    return accumulator.result()


def test_specialists_are_found_where_they_were_planted(minilm):
    """Fails if anything is off by a position, a layer, a head, or swaps queries and keys."""
    patterns = planted(minilm)
    found = {(s.layer, s.head): s.role for s in surface_patterns.specialists(patterns)}
    assert found.pop((0, 0)) == "previous"
    assert found.pop((1, 2)) == "next"
    assert found.pop((2, 1)) == "cls"
    assert set(found.values()) == {"broad"} and len(found) == 69
    assert patterns["previous"].value[0, 0] == pytest.approx(1)
    assert patterns["next"].value[1, 2] == pytest.approx(1)
    np.testing.assert_allclose(patterns["entropy"].value[5], patterns["uniform"].value, atol=1e-5)
    np.testing.assert_allclose(patterns["cls"].value[5], patterns["chance_cls"].value, atol=1e-6)
    examples = surface_patterns.examples(patterns)
    assert list(examples) == ["broad", "next", "cls", "stop"]
    assert examples["next"] == (1, 2) and examples["cls"] == (2, 1)


def test_heads_are_chosen_and_scored_on_different_articles(minilm):
    sample = segments(6)  # documents 0, 0, 1, 1, 2, 2
    even = surface_patterns.measure(minilm, [s for s in sample if s.document % 2 == 0])
    odd = surface_patterns.measure(minilm, [s for s in sample if s.document % 2 == 1])
    both = surface_patterns.measure(minilm, sample)
    np.testing.assert_allclose(both.half(0, "cls").value, even["cls"].value, atol=1e-6)
    np.testing.assert_allclose(both.half(1, "cls").value, odd["cls"].value, atol=1e-6)


def summary(model="minilm", profile="book"):
    return results.recorded("surface_patterns", model=model, profile=profile)["values"]["summary"]


def control():
    return results.recorded("surface_patterns", model="minilm", profile="book")["values"]["control"]


def heads(found, role):
    return [(s["layer"] + 1, s["head"] + 1) for s in found["specialists"] if s["role"] == role]


RUNS = [("minilm", "book"), ("minilm", "full"), ("mpnet", "full")]


def test_position_heads_are_few_and_in_the_lower_half():
    found = summary()
    assert [layer for layer, _ in heads(found, "previous") + heads(found, "next")] == [1, 2]
    paper = (
        results.paper("clark2019", "heads_over_half_previous")["value"]
        + results.paper("clark2019", "heads_over_half_next")["value"]
    )
    assert paper > 2, "BERT has more of them"
    shares = {s["role"]: s["held_out"]["value"] for s in found["specialists"]}
    assert shares["previous"] > 0.95 and shares["next"] > 0.55
    assert heads(found, "next") and not heads(found, "self") and not heads(found, "stop") and not heads(found, "sep")


@pytest.mark.parametrize(("model", "profile"), RUNS)
def test_held_out_numbers_agree_with_those_chosen_on(model, profile):
    for specialist in summary(model, profile)["specialists"]:
        assert abs(specialist["chosen"] - specialist["held_out"]["value"]) < 0.03


def test_the_sink_is_cls_and_not_sep():
    for found in (summary(), summary(profile="full")):
        assert surface_patterns.sink_of(found)[0] == "cls"
        assert 0.2 < found["to_cls"]["value"] < 0.3
        assert found["to_cls"]["value"] / found["chance"]["cls"] > 25
        assert max(found["to_sep_by_layer"]["value"]) < 0.1
        assert found["to_sep"]["value"] < 2 * found["chance"]["sep"]
        assert max(found["sep_from_sep_by_layer"]["value"]) < 0.5
        assert all(share > 1 / 3 for share in found["to_cls_by_layer"]["value"][2:5])
    found = summary()
    assert 0.8 * found["chance"]["stop"] < found["to_stop"]["value"] < found["chance"]["stop"]


def shuffled():
    return results.recorded("surface_patterns", model="minilm", profile="book")["values"]["shuffled"]


def test_shuffled_scores_are_as_broad_and_aim_at_nothing():
    found, trained = shuffled(), summary()
    assert surface_patterns.sink_of(found) is None
    assert {s["role"] for s in found["specialists"]} == {"broad"}
    assert 0.5 * len(heads(trained, "broad")) < len(found["specialists"]) <= len(heads(trained, "broad")) + 1, "most"
    for kind in ("cls", "sep", "stop"):
        assert found[f"to_{kind}"]["value"] == pytest.approx(found["chance"][kind], rel=0.05)
    both = [np.array(one["entropy_by_layer"]["value"]) for one in (found, trained)]
    assert np.abs(both[0] - both[1]).max() < 0.3, "nearly as broad in the same places"
    assert found["entropy_from_cls_by_layer"]["value"][-1] > 0.7 * found["uniform"]
    narrower = [np.array(one["cls_narrower_by_layer"]["value"]) for one in (trained, found)]
    assert (narrower[0][1:5] > 1).all() and np.abs(narrower[1]).max() < 0.3


def test_the_control_learned_nothing():
    found = control()
    assert surface_patterns.sink_of(found) is None
    assert {s["role"] for s in found["specialists"]} == {"broad"} and len(found["specialists"]) >= 0.9 * 72
    for kind in ("cls", "sep", "stop"):
        assert found[f"to_{kind}"]["value"] == pytest.approx(found["chance"][kind], rel=0.35)


def test_the_first_layer_is_broad_and_the_last_cls_too():
    found = summary()
    broad = heads(found, "broad")
    assert sum(layer == 1 for layer, _ in broad) >= 0.8 * len(broad) and len(broad) >= 5
    from_all, from_cls = (found[f"entropy{s}_by_layer"]["value"] for s in ("", "_from_cls"))
    assert from_cls[-1] > 0.8 * found["uniform"] and from_cls[-1] == max(from_cls)
    assert all(c < a - 0.5 for a, c in zip(from_all[1:5], from_cls[1:5], strict=True))
    assert all(share > 0.5 for share in found["cls_from_cls_by_layer"]["value"][1:5])
    assert all(entropy < from_all[0] and entropy < from_all[5] for entropy in from_all[1:5])


def test_the_corpus_hardly_matters():
    book, full = summary(), summary(profile="full")
    assert abs(book["to_cls"]["value"] - full["to_cls"]["value"]) < 0.05
    for name in ("entropy_by_layer", "to_cls_by_layer"):
        assert np.abs(np.subtract(book[name]["value"], full[name]["value"])).max() < 0.35
    assert heads(book, "previous") == heads(full, "previous") and heads(book, "next") == heads(full, "next")


def test_mpnet_has_half_of_the_papers_order_of_depth():
    found = summary("mpnet", "full")
    kind, multiple = surface_patterns.sink_of(found)
    assert kind == "cls" and 15 < multiple < 21 and 6 < found["to_sep"]["value"] / found["chance"]["sep"] < 7.5
    assert found["chance"]["sep"] == pytest.approx(3 * found["chance"]["cls"]), "three </s> in a pair"
    assert not heads(found, "previous") and not heads(found, "next")
    assert found["to_stop"]["value"] > found["to_sep"]["value"] > found["to_cls"]["value"]
    to_cls, to_sep = (np.array(found[f"to_{kind}_by_layer"]["value"]) for kind in ("cls", "sep"))
    patterns = results.recorded("surface_patterns", model="mpnet", profile="full")["values"]["patterns"]
    to_stop = np.array(patterns["stop"]["value"]).mean(-1)
    assert to_cls.argmax() in (2, 3, 4) and to_cls.max() > 0.35
    assert (
        (to_sep[5:11] > 0.2).all()
        and (to_sep[5:11] < 0.3).all()
        and (to_stop[5:11] > to_sep[5:11] + to_cls[5:11]).all()
    )
    assert (np.abs(np.array(found["sep_from_sep_by_layer"]["value"]) - to_sep)[5:11] < 0.04).all()
    assert (to_cls[2:5] > np.maximum(to_sep, to_stop)[2:5]).all()
    position = {n: np.array(patterns[n]["value"]) for n in ("previous", "next")}
    assert 0.48 < position["next"].max() < 0.5 and position["next"].argmax() == 11
    assert 0.4 < position["previous"].max() < 0.45 and position["previous"].argmax() == 6


@pytest.fixture(scope="module")
def sentence(minilm):
    """The sentence of the puzzle, and the maps of all heads."""
    sample = corpora.segments(corpora.read("encyclopedia"), limit=1000, seed=0)
    batch, _ = surface_patterns.drawable(minilm, sample)
    return batch.tokens[0], attention.maps(minilm, batch)[:, 0].numpy()


def test_claims_of_the_puzzle(sentence):
    tokens, maps = sentence
    received = maps.mean((0, 1, 2))
    assert (len(tokens), tokens[0], f"{received[0]:.0%}") == (20, "[CLS]", "43%")
    assert (maps.mean(2).argmax(-1) == 0).sum() == 67 and maps.shape[:2] == (6, 12)
    assert received[1:].max() < 0.07 and np.median(received) < 0.05
    found = summary()
    assert 8 < received[0] * len(tokens) < 9 and found["to_cls"]["value"] / found["chance"]["cls"] > 30
    assert 0.5 * received[0] < found["to_cls"]["value"] and found["chance"]["cls"] < 0.05 / 6


def test_claims_of_what_heads_do_in_the_sentence(sentence):
    tokens, maps = sentence

    def looks(layer, head):
        return {tokens[q]: tokens[k] for q, k in enumerate(maps[layer - 1, head - 1].argmax(-1))}

    noun = looks(3, 9)
    assert (noun["the"], noun["that"], noun["with"]) == ("boy", "july", "smallpox")
    assert {noun[word] for word in ("boy", "july", "smallpox")} == {"[CLS]"}
    assert [q for q, k in looks(3, 5).items() if k != "[CLS]"] == [",", "."], "two rows"
    after = dict(pairwise(tokens))
    assert sum(k == after.get(q) for q, k in looks(2, 9).items()) > 0.75 * len(tokens)
    assert maps[3, 11, :, [t in ".," for t in tokens]].sum(0).mean() < 0.6


def test_claims_of_aim_and_breadth():
    values = results.recorded("surface_patterns")["values"]
    trained, dealt = values["patterns"], values["control_patterns"]["shuffled"]
    before, after = (np.ravel(one["entropy"]["value"]) for one in (trained, dealt))
    assert f"{np.corrcoef(before, after)[0, 1]:.2f}" == "0.99"
    assert np.abs(after - before).mean() < 0.15 and np.abs(after - before).max() < 0.6
    even = values["summary"]["chance"]["cls"]
    assert np.allclose(dealt["cls"]["value"], even, atol=0.002), "every head"
    head = values["patterns"]["cls"]["value"][2][4]
    assert 0.5 < head < 0.55, "3-5"


def test_every_trained_model_has_a_sink():
    for model, profile in RUNS:
        assert surface_patterns.sink_of(summary(model, profile)) is not None


def test_no_head_is_devoted_to_punctuation():
    most = np.array(results.recorded("surface_patterns")["values"]["patterns"]["stop"]["value"]).max()
    assert most < 0.5


def test_the_shuffled_control_is_measured_on_the_same_segments(minilm):
    sample = segments(4)
    trained, dealt = (surface_patterns.measure(minilm, sample, shuffled=s) for s in (False, True))
    assert (trained.segments, trained.tokens) == (dealt.segments, dealt.tokens)
    np.testing.assert_allclose(trained["uniform"].value, dealt["uniform"].value)
    assert dealt["previous"].value.max() < 0.1 < 0.9 < trained["previous"].value.max()
    apart = trained["entropy"].value.mean(-1) - trained["entropy_from_cls"].value.mean(-1)
    np.testing.assert_allclose(surface_patterns.summary(trained)["cls_narrower_by_layer"].value, apart)


def test_segments_of_one_half_are_refused_before_they_are_measured():
    segments = [Segment("a", "b", number, "t") for number in (0, 2, 4)]
    with pytest.raises(CorpusError, match=r"^3 segments: They are all from one half"):
        surface_patterns.refuse_few(segments)
    surface_patterns.refuse_few([*segments, Segment("a", "b", 1, "t")])
