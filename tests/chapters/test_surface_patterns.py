"""Chapter 02: the page's functions against slow loops and the package; its claims against recorded numbers."""

import math
import re

import numpy as np
import pytest
import torch
from conftest import as_printed
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import attention, controls, places, results, tokens
from helpers.corpora.readers import Segment
from helpers.corpora.sources import CorpusError
from helpers.heads import Head
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
    even = torch.full((2, len(text.tokens), len(text.tokens)), 1 / len(text.tokens))
    for found in (page.look(maps, text), surface.look(maps, text)):
        assert found.keys() == surface.STATISTICS.keys()
        for place in np.ndindex(3, 2):  # below the layers stands one of even heads
            values = slow([*maps, even][place[0]][place[1]], text)
            for name, (sums, counts) in found.items():
                assert float(sums[place]) == pytest.approx(sum(values[name]), abs=2e-5), name
                assert counts[place] == len(values[name]), name


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
        found = attention.maps(page.changed(encoder, word, shift), batch)
        ids = batch.ids.clone()
        ids[batch.cls] = the if word else ids[batch.cls]
        at = torch.arange(ids.shape[1])[None] + start + shift
        given = batch.inputs | {"input_ids": ids, "position_ids": at}
        torch.testing.assert_close(found, maps_of(encoder, given))


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
    values = torch.ones(2, 3, n, 4)
    values[:, :, 0] = 0.5
    column = torch.zeros(2, 3, n, n)
    column[..., 0] = 0.75
    column[..., 2] = 0.25
    for maps, first, other in ((torch.full((2, 3, n, n), 1 / n), 1, 1), (column, 0.75 * n, 0.25 * n)):
        found = page.received_first(maps, text, values)
        assert float(found["first_times_even"]) == pytest.approx(first)
        assert float(found["other_times_even"]) == pytest.approx(other)
        assert found["first_value_length"].tolist() == pytest.approx([0.5, 0.5])
        entropies = [-sum(w * np.log(w) for w in row.tolist() if w) for row in maps.reshape(-1, n)]
        assert float(found["mean_entropy"]) == pytest.approx(np.mean(entropies), rel=1e-5)
    assert found["other"] == text.tokens[2]


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_sharper_scores_are_so_many_times_as_large(small_encoder, page, family):
    """In the first layer, whose inputs are the same; what is added for the distance between two tokens stays as it is."""
    encoder = small_encoder(family)
    batch = tokens.encode(encoder, ["the otter dived ."])
    networks = (encoder, page.sharper(encoder), page.sharper(encoder, times=0))
    logs = [attention.maps(read, batch)[0, 0].log() for read in networks]
    before, after, distance = (part - part.mean(-1, keepdim=True) for part in logs)
    assert (before - distance).std() > 1e-4, "there are scores"
    torch.testing.assert_close(after - distance, 16 * (before - distance), atol=1e-3, rtol=1e-3)


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
    by_head = surface.specialists(found)
    named, held_out = zip(*(by_head.pop(place) for place in ((0, 0), (1, 2), (2, 1))), strict=True)
    assert named == ("previous", "next", "cls")
    assert {role for role, _ in by_head.values()} == {"broad"} and len(by_head) == 9
    assert held_out[1].value == pytest.approx(1)
    assert max(held_out[0].value, held_out[2].value) < 0.1, "on odd articles they are even"


def test_segments_of_one_half_are_refused():
    of_even = [Segment("a", "b", number, "t") for number in (0, 2, 4)]
    with pytest.raises(CorpusError, match=r"^3 segments: They are all from one half"):
        surface.refuse_few(of_even)
    surface.refuse_few([*of_even, Segment("a", "b", 1, "t")])


RUNS = {"book": ("minilm", "book"), "full": ("minilm", "full"), "mpnet": ("mpnet", "full")}
KINDS = ("cls", "sep", "punctuation")
WAYS = ["[CLS] at place 0", "“the” at place 0", "[CLS] at place 50", "“the” at place 50"]


def recorded(run="book"):
    model, profile = RUNS[run]
    return results.recorded("surface_patterns", model=model, profile=profile)


def share(kind, run="book"):
    return recorded(run).array(f"share_{kind}")


def entropies(run):
    """Before and after shuffling, of the same inputs."""
    return recorded(run).array("entropy_before_shuffling"), recorded(run).array("entropy", network="@shuffled")


def by_layer(quantity, run, network=""):
    return recorded(run).array(quantity, network=network).mean(-1)


def even(kind, run="book"):
    """The even share of a kind of token."""
    if kind == "punctuation":
        return {"book": 0.094219, "mpnet": 0.075211}[run]
    return share(kind, run).mean() / recorded(run).number("times_even_share", of=kind).value


def roles(run, *names):
    return [str(Head.of(place)) for place in np.argwhere(np.isin(surface.role_grid(recorded(run)), names))]


def first(way, run, quantity="first_times_even", network=""):
    return recorded(run).number(quantity, of=WAYS[way], network=network).value


def sharp(way, run, quantity="first_times_even"):
    return recorded(run).number(quantity, of=f"{WAYS[way]}, sharp", network="@random").value


def of_draws(quantity, run="book"):
    """What the first token gets in three random networks."""
    return recorded(run).rows(f"first_times_even_of_{quantity}", network="@random").value


def of_head(run="book"):
    return recorded(run).number("first_times_even_of_head").value


def changed(run):
    """How many heads shuffling makes broader or sharper, by the choice of constants."""
    return recorded(run).estimates("heads_changed_by_shuffling", network="@shuffled")


def lengths(run):
    """Of the first token's values in each layer, as multiples of those of the others."""
    return recorded(run).array("first_value_length", of=WAYS[0])


def moved(run):
    before, after = entropies(run)
    return after - before


def correlation(run):
    return np.corrcoef(*(part.ravel() for part in entropies(run)))[0, 1]


NUMBERS = [
    ("per cent to [CLS]", "26", lambda: 100 * share("cls").mean()),
    ("times its even share", "33", lambda: recorded().number("times_even_share", of="cls").value),
    ("times, mpnet", "18", lambda: recorded("mpnet").number("times_even_share", of="cls").value),
    ("1-3, per cent to the previous token", "99", lambda: 100 * share("previous")[Head(1, 3)]),
    ("2-9, per cent to the next token", "62", lambda: 100 * share("next")[Head(2, 9)]),
    ("mpnet's 1-12, to the next", "49", lambda: 100 * share("next", "mpnet").max()),
    ("mpnet's 1-7, to the previous", "43", lambda: 100 * share("previous", "mpnet").max()),
    ("neighbour heads in BERT", "9", lambda: sum(paper(f"heads_over_half_{n}") for n in ("previous", "next"))),
    *(
        (f"first token, way {w}", said, lambda w=w: first(w, "book"))
        for w, said in enumerate(["33", "33", "25", "1"])
    ),
    *(
        (f"the same, mpnet {w}", said, lambda w=w: first(w, "mpnet"))
        for w, said in enumerate(["18", "18", "13", "0.8"])
    ),
    ("its first token", "1.0", lambda: sharp(0, "book")),
    ("its head that gives most", "7", lambda: of_draws("head").iloc[0]),
    ("the model's", "91", of_head),
    ("mpnet's", "73", lambda: of_head("mpnet")),
    (
        "stops in mpnet, times their even share",
        "3.4",
        lambda: share("punctuation", "mpnet").mean() / even("punctuation", "mpnet"),
    ),
    ("per cent to them", "26", lambda: 100 * share("punctuation", "mpnet").mean()),
    ("broad by the authors' plot, in layer 6", "7", lambda: (recorded().array("entropy")[5] > 3.8).sum()),
    ("a random network of mpnet, most", "2.8", lambda: max(sharp(w, "mpnet") for w in range(4))),
    ("their heads, least", "18", lambda: of_draws("head", "mpnet").min()),
    ("most", "41", lambda: of_draws("head", "mpnet").max()),
    ("picked afterwards, a random network", "1.9", lambda: sharp(0, "book", "other_times_even")),
    ("the same, mpnet", "3.2", lambda: sharp(0, "mpnet", "other_times_even")),
    ("the same, mpnet, with a sink", "12", lambda: first(0, "mpnet", "other_times_even")),
    ("mpnet's full stop", "19", lambda: first(3, "mpnet", "other_times_even")),
    ("[SEP], about its even share", "1", lambda: recorded().number("times_even_share", of="sep").value),
    ("stops, about theirs", "1", lambda: share("punctuation").mean() / even("punctuation")),
    ("specialists", "6", lambda: len(roles("book", *surface.ROLES))),
    ("specialists of mpnet", "8", lambda: len(roles("mpnet", "cls", "stop"))),
    ("broad", "8", lambda: len(roles("book", "broad"))),
    ("layer 1, entropy", "3.89", lambda: by_layer("entropy", "book")[0]),
    ("layer 6, entropy", "3.89", lambda: by_layer("entropy", "book")[5]),
    ("strongest other token, with a sink", "2.4", lambda: first(0, "book", "other_times_even")),
    ("without one", "3.3", lambda: first(3, "book", "other_times_even")),
    *(
        (f"heads {what}, {run}", said, lambda run=run, what=what: changed(run)[what].value)
        for run, what, said in (
            ("book", "broader, means taken off", "25"),
            ("book", "sharper, means taken off", "3"),
            ("book", "broader, as they are", "49"),
            ("mpnet", "sharper, means taken off", "92"),
        )
    ),
    ("mean entropy with a sink", "3.1", lambda: first(0, "book", "mean_entropy")),
    ("without", "3.5", lambda: first(3, "book", "mean_entropy")),
    ("the best head of three random networks", "21", lambda: of_draws("head").max()),
    ("length of [CLS]'s values in layer 9 of mpnet", "0.4", lambda: lengths("mpnet")[8]),
    ("in layer 7", "1.0", lambda: lengths("mpnet")[6]),
    *(
        (
            f"per cent to [CLS] in its layer {layer}",
            "3",
            lambda layer=layer: 100 * share("cls", "mpnet").mean(-1)[layer - 1],
        )
        for layer in (7, 9)
    ),
    ("broad by the authors' plot", "19", lambda: (recorded().array("entropy") > 3.8).sum()),
    ("on [CLS] by the authors' plot", "2", lambda: (share("cls") > 0.6).sum()),
    ("correlation of entropies", "0.99", lambda: correlation("book")),
    ("correlation of entropies, mpnet", "0.93", lambda: correlation("mpnet")),
]


def paper(name):
    return results.paper("clark2019", name)["value"]


@pytest.mark.parametrize(("what", "printed", "number"), NUMBERS, ids=[row[0] for row in NUMBERS])
def test_a_number_of_the_page_follows_from_the_records(what, printed, number):
    assert as_printed(number(), printed) == printed


@pytest.mark.parametrize("run", RUNS)
def test_what_the_page_says_of_every_run(run):
    found = recorded(run)
    random, shuffled = (found.rows("specialists", network=network) for network in ("@random", "@shuffled"))
    neighbours = roles(run, "previous", "next", "self")
    assert neighbours == ([] if run == "mpnet" else ["1-3", "2-9"]) and not roles(run, "sep")
    assert {name[:2] for name in roles(run, "broad")} == {"1-"}, "in layer 1, as in the paper"
    assert int(random[random.of == "broad"].value.iloc[0]) == found.array("entropy").size
    assert not shuffled[shuffled.of.isin(surface.ROLES)].value.any()
    for network in ("@random", "@shuffled"):
        assert max(found.array(f"share_{k}", network=network).max() for k in ("previous", "self", "next")) < 0.01
    from_cls, from_all = by_layer("entropy_from_cls", run), by_layer("entropy", run)
    assert from_cls[-1] > from_all[-1] and from_cls[-1] > by_layer("entropy_from_cls", run, "@shuffled")[-1]
    most = [int(share(kind, run).mean(-1).argmax()) + 1 for kind in KINDS]
    assert most == ([4, 9, 9] if run == "mpnet" else [5, 4, 4])


def test_the_specialists_that_the_page_picks_are_the_recorded_ones():
    """The rule stands on the page and, for every network, in the package."""
    page = (places.ROOT / "notebooks" / "02_surface_patterns.ipynb").read_text("utf-8")
    on_page = re.findall(r"\| (\d+-\d+) +\| [^|]+\| (0\.\d+) +\| (0\.\d+) \[", page)
    rows = recorded().rows("specialist", network="")
    rows = rows[rows.label != "broad"]
    kept = [f"{row.layer:.0f}-{row.head:.0f} {row.value:.3f}" for row in rows.itertuples()]
    assert [f"{head} {odd}" for head, _, odd in dict.fromkeys(on_page)] == kept


@pytest.mark.parametrize("run", RUNS)
def test_either_makes_the_sink(run):
    ways = [first(way, run) for way in range(4)]
    assert min(ways[:3]) > 10 and ways[3] < 1.5 and ways[1] > 0.95 * ways[0]
    assert all(0.8 < first(way, run, network="@random") < 1.3 for way in range(4))
    for way in range(3):  # as uneven as the model, or more so, and no sink
        assert sharp(way, run, "mean_entropy") < first(way, run, "mean_entropy") and sharp(way, run) < ways[way] / 6
    assert of_draws("network", run).max() < first(0, run) / 6 and of_draws("head", run).max() < 0.6 * of_head(run)
    values = recorded(run).rows("first_value_length", network="@random").value
    assert values.min() > 0.9 and values.max() < 1.1, "short values are learnt"
    other = first(3, run, "other_times_even")
    assert other > 10 if run == "mpnet" else other < 5
    late = [recorded(run).array("first_value_length", of=way)[-2] for way in WAYS]
    assert max(late[:3]) < 0.15 and 0.9 < late[3] < 1.1
    if run == "mpnet":
        assert (
            share("cls", run).mean(-1)[8] < 0.03
            and 0.3 < recorded(run).array("first_value_length", of=WAYS[0])[8] < 0.4
        )
    else:
        assert f"{recorded(run).array('first_value_length', of=WAYS[3])[5]:.2f}" == "0.37"
    if run == "book":
        assert [f"{length:.2f}" for length in late] == ["0.04", "0.04", "0.04", "0.94"]
        assert share("cls").mean(-1).argmax() == 4, "where the sink is strongest"


@pytest.mark.parametrize(("run", "heads", "part"), [("book", 72, 2 / 3), ("full", 72, 2 / 3), ("mpnet", 144, 1 / 2)])
def test_with_other_constants_shuffling_makes_no_head_sharper(run, heads, part):
    counts = changed(run)
    if run == "book":
        assert min(recorded(run).array("peak")[head] for head in (Head(5, 6), Head(2, 12), Head(1, 3))) > 0.6
    assert counts["sharper, as they are"].value == 0
    assert counts["broader, as they are"].value / heads == pytest.approx(part, abs=0.05)


def test_what_the_page_says_of_layers():
    narrower = by_layer("entropy", "book")[:-1] - by_layer("entropy_from_cls", "book")[:-1]
    assert narrower.min() > 0.5
    narrow = by_layer("entropy", "mpnet")[:-1] > by_layer("entropy_from_cls", "mpnet")[:-1]
    assert (np.flatnonzero(~narrow) + 1).tolist() == [5, 6, 7, 8]
    assert share("sep", "mpnet").mean() > share("cls", "mpnet").mean()
    assert share("cls", "mpnet").mean(-1)[:6].mean() > 2 * share("cls", "mpnet").mean(-1)[6:].mean()
    itself = 100 * by_layer("share_cls_from_cls", "book")
    assert (itself[1:5] > 50).all()
    others = np.delete(np.stack([share(k) for k in ("previous", "next")]).ravel(), [2, 72 + 12 + 8])
    assert f"{100 * others.max():.0f}" == "37"
    assert str(Head.best(moved("book"))) == "5-6" and np.sort(moved("mpnet").ravel())[1] < -1


def test_what_the_page_says_of_its_sentence(minilm):
    batch = tokens.encode(minilm, ["When he inoculated him with smallpox that July, the boy did not fall ill."])
    words, maps = batch.tokens[0], attention.maps(minilm, batch)[:, 0].numpy()
    received = maps.mean((0, 1, 2))
    assert (len(words), words[0], f"{received[0]:.0%}") == (20, "[CLS]", "43%") and received[1:].max() < 0.07
    to = {words[q]: words[k] for q, k in enumerate(maps[Head(3, 9)].argmax(-1))}
    assert (to["the"], to["that"], to["with"]) == ("boy", "july", "smallpox")
    assert {to[word] for word in ("boy", "july", "smallpox")} == {"[CLS]"}
