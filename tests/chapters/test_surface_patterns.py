"""Chapter 02: the page's function and the fast one against slow loops; its claims against recorded numbers."""

import math

import numpy as np
import pytest
import torch
from conftest import as_printed
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import attention, corpora, results, tokens
from helpers.chapters.surface_patterns import tables
from helpers.corpora.readers import Segment
from helpers.corpora.sources import CorpusError
from helpers.measurements import surface
from helpers.tokens import EncodedText


@pytest.fixture(scope="module")
def page(methods):
    return methods("02_surface_patterns")


def encoded(encoder, texts) -> EncodedText:
    return EncodedText.of(tokens.encode(encoder, [texts]), 0, texts)


def random_maps(length, seed):
    """Random attention of 2 layers with 2 heads, some weights exactly 0."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(2, 2, length, length, generator=generator) * 3
    scores = scores.masked_fill(torch.rand(scores.shape, generator=generator) < 0.3, -torch.inf)
    scores[..., 0] = 0.0
    return scores.softmax(-1)


def slow(weights, text):
    """Every statistic of one map in plain loops: its value for each attending token that has one."""
    kinds = [
        "cls" if text.cls[j] else "sep" if text.sep[j] else "stop" if text.stop[j] else "other"
        for j in range(len(text.tokens))
    ]
    values = {name: [] for name in surface.STATISTICS}
    for i, row in enumerate(weights.tolist()):
        if i > 0:
            values["previous"].append(row[i - 1])
        if i < len(row) - 1:
            values["next"].append(row[i + 1])
        values["self"].append(row[i])
        to = {k: sum(w for w, kind in zip(row, kinds, strict=True) if kind == k) for k in ("cls", "sep", "stop")}
        entropy = -sum(w * math.log(w) for w in row if w > 0)
        for name, value in (to | {"other": 1 - sum(to.values()), "entropy": entropy, "peak": max(row)}).items():
            values[name].append(value)
        values["sep_from_sep" if kinds[i] == "sep" else "sep_from_other"].append(to["sep"])
        if kinds[i] == "cls":
            values["cls_from_cls"].append(to["cls"])
            values["entropy_from_cls"].append(entropy)
    return values


SIDE = st.lists(st.sampled_from(["a", "dog", ".", ",", "unbelievable", "!"]), min_size=1, max_size=6)


@settings(max_examples=8)
@given(texts=st.one_of(SIDE, st.tuples(SIDE, SIDE)), seed=st.integers(0, 1000))
def test_every_statistic_against_loops(minilm, page, texts, seed):
    text = encoded(minilm, texts)
    maps = random_maps(len(text.tokens), seed)
    on_page = page.look(maps, text)
    fast = surface.look(maps, text)
    for place in np.ndindex(2, 2):
        values = slow(maps[place], text)
        for n, name in enumerate(surface.STATISTICS):
            assert float(fast["sums"][place][n]) == pytest.approx(sum(values[name]), abs=2e-5), name
            assert fast["counts"][n] == len(values[name]), name
        for n, name in enumerate(page.NAMES):
            assert float(on_page["sums"][place][n]) == pytest.approx(sum(values[name]), abs=2e-5), name
            assert on_page["counts"][n] == len(values[name]), name


WORDS = ["the", "otter", ",", "dived", ".", "it", "cracked", "a", "shell", "on", "its", "unbelievable", "belly", "!"]


def segments(count):
    """Random pairs of different lengths, two an article."""
    rng = np.random.default_rng(0)
    sides = [" ".join(rng.choice(WORDS, size=rng.integers(3, 25))) for _ in range(2 * count)]
    return [Segment(*sides[2 * n : 2 * n + 2], n // 2, "t") for n in range(count)]


def patterns_of(encoder, sample, maps_of):
    """What is found where every text's maps are made by hand."""
    texts = [encoded(encoder, segment.texts) for segment in sample]
    found = [surface.look(maps_of(len(text.tokens), s), text) for text, s in zip(texts, sample, strict=True)]
    return surface.patterns(found, sample)


def test_even_attention_has_all_of_the_even_entropy_whatever_the_lengths(minilm):
    found = patterns_of(minilm, segments(12), lambda n, _: torch.full((2, 3, n, n), 1 / n))
    share = surface.relative_entropy(found)
    assert found["uniform"].high - found["uniform"].low > 0.05, "texts of different lengths"
    assert np.allclose([share.value, share.low, share.high], 1, atol=1e-6)
    for kind in ("cls", "sep", "stop"):
        np.testing.assert_allclose(found[kind].value, found[f"chance_{kind}"].value, atol=1e-6)


def test_specialists_are_found_where_they_were_planted_and_scored_on_other_articles(minilm):
    """Fails if anything is off by a position, a layer, a head, swaps queries and keys, or looks at the odd articles to choose."""

    def planted(n, segment):
        maps = torch.full((3, 4, n, n), 1 / n)
        if segment.document % 2 == 0:
            maps[0, 0] = torch.eye(n)[[0, *range(n - 1)]]
            maps[2, 1] = torch.eye(n)[[0] * n]
        maps[1, 2] = torch.eye(n)[[*range(1, n), n - 1]]
        return maps

    found = patterns_of(minilm, segments(6), planted)
    by_head = {(s.layer, s.head): s for s in surface.specialists(found)}
    named = {place: by_head.pop(place) for place in ((0, 0), (1, 2), (2, 1))}
    assert [s.role for s in named.values()] == ["previous", "next", "cls"]
    assert {s.role for s in by_head.values()} == {"broad"} and len(by_head) == 9
    assert [s.chosen for s in named.values()] == pytest.approx([1, 1, 1])
    assert named[1, 2].held_out.value == pytest.approx(1)
    assert max(named[place].held_out.value for place in ((0, 0), (2, 1))) < 0.1, "on odd articles they are even"


def test_segments_of_one_half_are_refused():
    of_even = [Segment("a", "b", number, "t") for number in (0, 2, 4)]
    with pytest.raises(CorpusError, match=r"^3 segments: They are all from one half"):
        surface.refuse_few(of_even)
    surface.refuse_few([*of_even, Segment("a", "b", 1, "t")])


def recorded(model="minilm", profile="book"):
    return results.recorded("surface_patterns", model=model, profile=profile)["values"]


def heads(summary, *roles):
    return [f"{s['layer'] + 1}-{s['head'] + 1}" for s in summary["specialists"] if s["role"] in roles]


def test_the_pages_numbers_follow_from_the_records():
    values = recorded()
    patterns, shuffled = values["patterns"], values["control_patterns"]["shuffled"]
    summary, elsewhere = values["summary"], recorded("mpnet", "full")["summary"]
    held_out = {
        s["role"]: s["held_out"]["value"] for s in summary["specialists"] if s["role"] in ("previous", "next")
    }
    entropies = [np.ravel(one["entropy"]["value"]) for one in (patterns, shuffled)]
    table = [
        ("per cent to [CLS]", "26", 100 * summary["to_cls"]["value"]),
        ("times an even share", "33", tables.sink_of(summary)[1]),
        ("times, minilm on WikiText", "33", tables.sink_of(recorded(profile="full")["summary"])[1]),
        ("times, mpnet", "18", tables.sink_of(elsewhere)[1]),
        ("1-3, per cent to the previous token", "99", 100 * patterns["previous"]["value"][0][2]),
        ("the same, on odd articles", "99", 100 * held_out["previous"]),
        ("2-9, per cent to the next token", "62", 100 * patterns["next"]["value"][1][8]),
        ("the same, on odd articles", "62", 100 * held_out["next"]),
        ("entropy of [CLS] in the last layer", "4.06", summary["entropy_from_cls_by_layer"]["value"][-1]),
        ("of the average token", "3.89", summary["entropy_by_layer"]["value"][-1]),
        ("of [CLS] with shuffled scores", "3.82", values["shuffled"]["entropy_from_cls_by_layer"]["value"][-1]),
        ("correlation of entropies", "0.99", np.corrcoef(*entropies)[0, 1]),
        ("specialists", "6", len(heads(summary, *surface.ROLES))),
        ("broad heads", "8", len(heads(summary, "broad"))),
        ("neighbour heads in BERT", "9", sum(paper(f"heads_over_half_{n}") for n in ("previous", "next"))),
    ]
    assert {what: as_printed(number, printed) for what, printed, number in table} == {row[0]: row[1] for row in table}
    from_cls, from_all = (summary[f"entropy{source}_by_layer"]["value"] for source in ("_from_cls", ""))
    assert [c < a for c, a in zip(from_cls, from_all, strict=True)] == [True] * 5 + [False]
    assert [share > 0.5 for share in summary["cls_from_cls_by_layer"]["value"]] == [False, *[True] * 4, False]


def paper(name):
    return results.paper("clark2019", name)["value"]


@pytest.mark.parametrize(("model", "profile"), [("minilm", "book"), ("minilm", "full"), ("mpnet", "full")])
def test_what_the_page_says_of_every_run(model, profile):
    values = recorded(model, profile)
    summary, controls = values["summary"], (values["control"], values["shuffled"])
    neighbours = ["1-3", "2-9"] if model == "minilm" else []
    assert heads(summary, "previous", "next", "self") == neighbours
    assert all(abs(s["chosen"] - s["held_out"]["value"]) < 0.03 for s in summary["specialists"])
    assert tables.sink_of(summary)[0] == "cls" and not heads(summary, "sep")
    for control in controls:
        assert tables.sink_of(control) is None and not heads(control, *surface.ROLES)
        assert control["to_cls"]["value"] == pytest.approx(control["chance"]["cls"], rel=0.03)
    assert len(heads(controls[0], "broad")) == summary["layers"] * summary["heads"]
    assert len(heads(controls[1], "broad")) >= len(heads(summary, "broad")) - 2, "nearly as many"


def test_the_sink_of_mpnet_changes_with_the_layer():
    summary = recorded("mpnet", "full")["summary"]
    times = [np.array(summary[f"to_{kind}_by_layer"]["value"]) / summary["chance"][kind] for kind in ("cls", "sep")]
    assert list(np.flatnonzero(times[1] > times[0]) + 1) == [6, 7, 8, 9], "token for token"


def test_what_the_page_says_of_its_sentence(minilm):
    sample = corpora.segments(corpora.read("encyclopedia"), limit=1000, seed=0)
    batch, _ = surface.drawable(minilm, sample)
    words, maps = batch.tokens[0], attention.maps(minilm, batch)[:, 0].numpy()
    assert (len(words), words[0], f"{maps[..., 0].mean():.0%}") == (20, "[CLS]", "43%")
    to = {words[q]: words[k] for q, k in enumerate(maps[2, 8].argmax(-1))}
    assert (to["the"], to["that"], to["with"]) == ("boy", "july", "smallpox")
    assert {to[word] for word in ("boy", "july", "smallpox")} == {"[CLS]"}
