"""Chapter 02: the page's functions against slow loops and the package; its claims against recorded numbers."""

import math
import re
from functools import partial

import conftest
import numpy as np
import pytest
import torch
from conftest import BOOK, MPNET
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import attention, controls, places, results, tokens
from helpers.corpora.readers import Segment
from helpers.corpora.sources import CorpusError
from helpers.measurements import surface
from helpers.tokens import EncodedText


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
    even = torch.full((2, len(text.tokens), len(text.tokens)), 1 / len(text.tokens))
    statistics, described = surface.look(maps, text), page.describe(torch.cat([maps, even[None]]), text)
    assert float(described.pop("largest_entropy").mean()) == pytest.approx(math.log(len(text.tokens)))
    assert described.keys() < statistics.keys() == surface.STATISTICS.keys()
    for place in np.ndindex(3, 2):  # below the layers stands one of even heads
        values = slow([*maps, even][place[0]][place[1]], text)
        for name, (sums, counts) in statistics.items():
            assert float(sums[place]) == pytest.approx(sum(values[name]), abs=2e-5), name
            assert counts[place] == len(values[name]), name
            assert name not in described or described[name][place].tolist() == pytest.approx(values[name], abs=2e-5)


def test_the_pages_shuffle_is_the_controls(page):
    maps = random_maps(9, 0)[:1]  # some weights are exactly 0
    fast = controls.shuffled(maps[0], (7,))
    for head in range(2):
        slow = page.shuffle(maps[0, head].numpy(), np.random.default_rng([7, head]))
        np.testing.assert_allclose(slow, fast[head], atol=1e-6)
    one_hot = page.shuffle(np.eye(512, dtype=np.float32), np.random.default_rng(0))
    np.testing.assert_allclose(one_hot.sum(-1), 1, atol=1e-12)


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "mpnet"])
def test_a_changed_encoder_reads_other_tokens_and_other_places(small_encoder, page, family):
    """The tables are changed, not the inputs: with the inputs changed the encoder as it was gives the same maps."""
    encoder = small_encoder(family)
    batch = tokens.encode(encoder, ["the otter dived."])
    [the] = encoder.tokenizer("the", add_special_tokens=False).input_ids
    padding = encoder.model.embeddings.position_embeddings.padding_idx
    start = 0 if padding is None else padding + 1
    for word, shift in ((None, 0), ("the", 0), (None, 5), ("the", 5)):
        maps = attention.maps(page.changed(encoder, word, shift), batch)
        ids = batch.ids.clone()
        ids[batch.cls] = the if word else ids[batch.cls]
        at = torch.arange(ids.shape[1])[None] + start + shift
        given = batch.inputs | {"input_ids": ids, "position_ids": at}
        torch.testing.assert_close(maps, maps_of(encoder, given))


def maps_of(encoder, given):
    """Maps [layer, row, head, query, key] of given inputs."""
    kept = []
    with torch.inference_mode(), attention.tap(encoder, observe=lambda _, maps, __: kept.append(maps)):
        encoder.model(**given)
    return torch.stack(kept)


def test_what_the_first_token_receives(small_encoder, page):
    """An even head gives it its even share; where all attend to it, it gets that n times; the strongest other is another."""
    text = encoded(small_encoder(), "the otter dived.")
    n = len(text.tokens)
    column = torch.tensor([0.75, 0, 0.25, *[0] * (n - 3)]).expand(2, 3, n, n)
    values = torch.ones(2, 3, n, 4)
    values[:, :, 0] = 0.5
    for maps, first, other in ((torch.full((2, 3, n, n), 1 / n), 1, 1), (column, 0.75 * n, 0.25 * n)):
        received, in_layers = page.received_most(maps, text), page.first_by_layer(maps, text, values)
        assert float(received["first_times_even"]) == pytest.approx(first)
        assert float(received["other_times_even"]) == pytest.approx(other)
        assert in_layers["first_times_even_in_layer"].tolist() == pytest.approx([first] * 2)
        assert in_layers["first_value_length"].tolist() == pytest.approx([0.5, 0.5])
        entropies = [-sum(w * np.log(w) for w in row.tolist() if w) for row in maps.reshape(-1, n)]
        assert float(received["mean_entropy"]) == pytest.approx(np.mean(entropies), rel=1e-5)
    assert received["other"] == text.tokens[2]


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_sharper_scores_are_so_many_times_as_large(small_encoder, page, family):
    """In the first layer, whose inputs are the same; what is added for the distance between two tokens stays as it is."""
    encoder = small_encoder(family)
    batch = tokens.encode(encoder, ["the otter dived ."])
    networks = (encoder, page.sharper(encoder), page.sharper(encoder, factor=0))
    logs = [attention.maps(read, batch)[0, 0].log() for read in networks]
    before, after, distance = (part - part.mean(-1, keepdim=True) for part in logs)
    assert (before - distance).std() > 1e-4, "there are scores"
    torch.testing.assert_close(after - distance, 16 * (before - distance), atol=1e-3, rtol=1e-3)


WORDS = ["the", "otter", ",", "dived", ".", "it", "cracked", "a", "shell", "on", "its", "unbelievable", "belly", "!"]


def segments(count):
    """Random pairs of different lengths, two an article."""
    rng = np.random.default_rng(0)
    sides = [" ".join(rng.choice(WORDS, size=rng.integers(3, 25))) for _ in range(2 * count)]
    return [Segment(tuple(sides[2 * n : 2 * n + 2]), n // 2) for n in range(count)]


def patterns_of(encoder, sample, maps_of):
    """What is found where every text's maps are made by hand."""
    texts = [encoded(encoder, segment.texts) for segment in sample]
    looks = [surface.look(maps_of(len(text.tokens), s), text) for text, s in zip(texts, sample, strict=True)]
    return surface.patterns(looks, sample)


def test_even_attention_has_all_of_the_even_entropy_whatever_the_lengths(minilm):
    patterns = patterns_of(minilm, segments(12), lambda n, _: torch.full((2, 3, n, n), 1 / n))
    share = surface.relative_entropy(patterns)
    assert patterns["uniform"].high - patterns["uniform"].low > 0.05, "texts of different lengths"
    assert np.allclose([share.value, share.low, share.high], 1, atol=1e-6)
    for kind in ("cls", "sep", "stop"):
        np.testing.assert_allclose(patterns[kind].value, patterns[f"chance_{kind}"].value, atol=1e-6)


def test_specialists_are_found_where_they_were_planted_and_scored_on_other_articles(minilm):
    """Fails if anything is off by a position, a layer, a head, swaps queries and keys, or looks at the odd articles to choose."""

    def planted(n, segment):
        maps = torch.full((3, 4, n, n), 1 / n)
        if segment.document % 2 == 0:
            maps[0, 0] = torch.eye(n)[[0, *range(n - 1)]]
            maps[2, 1] = torch.eye(n)[[0] * n]
        maps[1, 2] = torch.eye(n)[[*range(1, n), n - 1]]
        return maps

    patterns = patterns_of(minilm, segments(6), planted)
    by_head = surface.specialists(patterns)
    named, held_out = zip(*(by_head.pop(place) for place in ((0, 0), (1, 2), (2, 1))), strict=True)
    assert named == ("previous", "next", "cls")
    assert {role for role, _ in by_head.values()} == {"broad"} and len(by_head) == 9
    assert held_out[1].value == pytest.approx(1)
    assert max(held_out[0].value, held_out[2].value) < 0.1, "on odd articles they are even"


def test_segments_of_one_half_are_refused():
    of_even = [Segment(("a", "b"), number) for number in (0, 2, 4)]
    with pytest.raises(CorpusError, match=r"^3 segments: They are all from one half"):
        surface.refuse_few(of_even)
    surface.refuse_few([*of_even, Segment(("a", "b"), 1)])


recorded = partial(conftest.recorded, "surface_patterns")


def test_the_specialists_that_the_page_picks_are_the_recorded_ones():
    """The rule stands on the page and, for every network, in the package."""
    page = (places.ROOT / "notebooks" / "02_surface_patterns.ipynb").read_text("utf-8")
    on_page = re.findall(r"\| (\d+-\d+) +\| [^|]+\| (0\.\d+) +\| (0\.\d+) \[", page)
    rows = recorded(BOOK).rows("specialist", network="")
    rows = rows[rows.label != "broad"]
    kept = [f"{row.layer:.0f}-{row.head:.0f} {row.value:.3f}" for row in rows.itertuples()]
    assert [f"{head} {odd}" for head, _, odd in dict.fromkeys(on_page)] == kept


def by_layer(quantity, run):
    return recorded(run).array(quantity).mean(-1)


def test_what_the_page_says_of_layers():
    narrower, of_mpnet = (by_layer("entropy", run) - by_layer("entropy_from_cls", run) for run in (BOOK, MPNET))
    assert narrower[:-1].min() > 0.5 and (np.flatnonzero(of_mpnet[:-1] <= 0) + 1).tolist() == [5, 6, 7, 8]
    early, late = by_layer("share_cls", MPNET).reshape(2, 6).mean(-1)
    assert early > 2 * late and (by_layer("share_cls_from_cls", BOOK)[1:5] > 0.5).all()
    assert sum(results.paper("clark2019", f"heads_over_half_{n}")["value"] for n in ("previous", "next")) == 9


def test_what_the_page_says_of_its_sentence(minilm):
    batch = tokens.encode(minilm, ["When he inoculated him with smallpox that July, the boy did not fall ill."])
    words, maps = batch.tokens[0], attention.maps(minilm, batch)[:, 0].numpy()
    received = maps.mean((0, 1, 2))
    assert (len(words), words[0], f"{received[0]:.0%}") == (20, "[CLS]", "43%") and received[1:].max() < 0.07
