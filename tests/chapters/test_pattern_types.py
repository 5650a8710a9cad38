"""Chapter 09: the functions of its page against plain loops, labels by what was drawn, its sentences against recorded numbers."""

import math
from collections import Counter
from functools import partial
from itertools import product

import conftest
import numpy as np
import pytest
from sklearn.metrics import f1_score

from helpers import attention, places, stats, tokens
from helpers.corpora.sources import CorpusError
from helpers.heads import Head
from helpers.results import Run

TYPES = ("vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous")
LABELS = places.book_data() / "pattern_labels.csv"


def random_maps(*shape: int, seed: int = 0) -> np.ndarray:
    scores = np.exp(2 * np.random.default_rng(seed).normal(size=shape))
    return scores / scores.sum(-1, keepdims=True)


def test_two_features_and_the_rule_are_what_loops_find(page):
    maps = random_maps(6, 8, 8)
    for weights, numbers in zip(maps, page.two_features(maps), strict=True):
        column = max(sum(weights[i][j] for i in range(8)) / 8 for j in range(8))
        near = sum(weights[i][j] for i in range(8) for j in range(8) if abs(i - j) <= 1) / 8 / (3 / 8)
        np.testing.assert_allclose(numbers, [column, near])
        kind = {(0, 0): "heterogeneous", (1, 0): "vertical", (0, 1): "diagonal", (1, 1): "vertical_diagonal"}
        for thresholds in product((column - 0.01, column + 0.01), (near - 0.01, near + 0.01)):
            called = kind[column >= thresholds[0], near >= thresholds[1]]
            assert TYPES[page.rule(numbers, *thresholds)] == called
    rng = np.random.default_rng(0)
    numbers, types = rng.random((30, 2)) * (1, 10), rng.choice([0, 1, 2, 4], 30)
    options, steps = {"labels": [0, 1, 2, 4], "average": "macro"}, [n / 50 for n in range(1, 41)]
    called = {p: tuple(page.rule(numbers, *p)) for p in product(steps, [10 * step for step in steps])}
    scores = {names: f1_score(types, names, **options) for names in set(called.values())}
    assert page.fit_rule(numbers, types) == max(called, key=lambda p: scores[called[p]])


def test_other_maps_vote(page):
    def label(head, kind):
        return page.Label("m", head, None, "dev", kind, "")

    dev = [label(Head(*at), kind) for *at, kind in ((1, 1, "diagonal"), (1, 1, "diagonal"), (1, 1, "block"))]
    dev += [label(Head(1, 2), "block"), label(Head(2, 1), "vertical")]
    asked = [label(Head(*at), "vertical") for at in ((1, 1), (1, 3), (2, 1), (3, 3))]
    named = {
        pair: [TYPES[k] if k >= 0 else None for k in page.named_by(asked, dev, pair)] for pair in (*page.PAIRS, None)
    }
    assert named["of one head"] == ["diagonal", None, "vertical", None]
    assert named[page.PAIRS[2]] == ["block", "diagonal", None, None], "of ties the first type"
    assert named[page.PAIRS[3]] == ["vertical", None, "diagonal", None] and set(named[None]) == {"diagonal"}


def test_pairs_of_maps_are_what_loops_count(page):
    heads = np.random.default_rng(3).dirichlet(np.ones(5), (2, 3))
    alike = {pair: [] for pair in page.PAIRS}
    for head, other in product(np.ndindex(2, 3), repeat=2):
        likeness = sum(heads[head][k] * heads[other][k] for k in range(5))
        alike["of one head" if head == other else "of two heads"].append(likeness)
        if head != other and head[0] == other[0]:
            alike[page.PAIRS[2]].append(likeness)
        elif head != other and head[1] == other[1]:
            alike[page.PAIRS[3]].append(likeness)
    np.testing.assert_allclose(page.same_type(heads), [np.mean(alike[pair]) for pair in page.PAIRS])


def test_pairs_of_labels_are_what_the_page_prints(page):
    labels, printed = page.read_labels(LABELS), {}
    for model in ("minilm", "mpnet"):
        own = [label for label in labels if label.model == model]
        alike, gaps = page.pairs_alike(own), [page.gap_of_labels(own, pair) for pair in page.PAIRS[1::2]]
        printed[model] = [f"{np.mean(alike[pair]):.0%} of {len(alike[pair])}" for pair in page.PAIRS]
        printed[model] += map(stats.percent, gaps)
    assert printed["minilm"][:4] == ["93% of 381", "40% of 28299", "56% of 4377", "32% of 1983"]
    assert printed["mpnet"][:4] == ["87% of 23", "49% of 2533", "44% of 209", "80% of 211"]
    assert printed["minilm"][4:] + printed["mpnet"][4:] == [
        "54 [43, 62]",
        "61 [46, 76]",
        "38 [16, 54]",
        "7 [-13, 35]",
    ]


recorded = partial(conftest.recorded, "pattern_types")


def slow_shades(weights):
    """Cell by cell, from the words of the chapter."""
    places = range(len(weights))
    cut = sorted(weights.ravel())[max(1, int(0.99 * weights.size)) - 1]
    shades = [[min(1.0, weights[i][j] / cut) for j in places] for i in places]
    columns = [sum(shades[i][j] for i in places) / len(places) for j in places]
    beyond = {k: [shades[i][i + k] - columns[i + k] for i in places if i + k in places] for k in (-1, 0, 1)}
    return [max(columns), max(sum(line) / len(line) for line in beyond.values())]


def slow_block(weights, texts):
    """The same of the third feature."""
    far = [(i, j) for i, j in product(range(len(weights)), repeat=2) if abs(i - j) > 3]
    parts = [[weights[i][j] for i, j in far if (texts[i] == texts[j]) == same] for same in (True, False)]
    within, between = (np.median(part) + 1e-6 if part else 1.0 for part in parts)
    return math.log(within / between) if all(parts) else 0.0


@pytest.mark.parametrize(("n", "border"), [(9, 4), (12, 12), (17, 3)])
def test_shades_and_blocks_are_what_loops_find(page, n, border):
    maps, texts = random_maps(2, 2, n, n, seed=n), (np.arange(n) >= border).astype(int)
    shades, blocks = page.two_shades(maps), page.block_feature(maps, texts)
    for at in np.ndindex(2, 2):
        np.testing.assert_allclose(shades[at], slow_shades(maps[at]))
        assert blocks[at] == pytest.approx(slow_block(maps[at], texts.tolist()))
    three = page.three_features(maps, texts)
    np.testing.assert_array_equal(three, np.dstack([page.two_features(maps), blocks]))


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_looking_at_texts_is_what_loops_find(page, small_encoder, family):
    encoder = small_encoder(family)
    inputs = [("The cat sat, on its mat.", "A dog!"), ("Yes", "On it.")]
    looked = attention.measure(encoder, inputs, page.look)
    for n, pair in enumerate(inputs):
        batch = tokens.encode(encoder, [pair])
        maps = attention.maps(encoder, batch)[:, 0].double().numpy()
        # special tokens: the one before
        texts = [max(0, *batch.text[0, : k + 1].tolist()) for k in range(maps.shape[-1])]
        assert texts[0] == 0 and texts[-1] == 1
        for at in np.ndindex(maps.shape[:2]):
            np.testing.assert_allclose(looked[n]["shades"][at], slow_shades(maps[at]), atol=1e-4)
            assert looked[n]["blocks"][at] == pytest.approx(slow_block(maps[at], texts), abs=1e-4)
            column = int(maps[at].mean(0).argmax())
            assert looked[n]["weights"][at][0] == pytest.approx(maps[at].mean(0)[column], abs=1e-6)
            kinds = batch.cls[0, column], batch.sep[0, column], batch.punctuation[0, column], True
            assert looked[n]["target"][at] == [bool(kind) for kind in kinds].index(True)


def test_shares_and_columns_are_what_loops_count(page):
    rng = np.random.default_rng(3)
    items = [page.Item(f"{task}/{n}", task, ("a", "b"), n // 2) for task in page.TASKS for n in range(6)]
    types = rng.integers(0, 5, (len(items), 2, 3))
    shares = page.shares_by_task(types, items)
    for t, task in enumerate(page.TASKS):
        own = [types[n] for n, item in enumerate(items) if item.task == task]
        for layer, head, kind in np.ndindex(2, 3, 5):
            assert shares.value[t, layer, head, kind] == np.mean([x[layer, head] == kind for x in own])
    target, vertical = rng.integers(0, 4, types.shape), types == 0
    counts = Counter(target[vertical].tolist())
    for k, share in enumerate(page.column_targets(target, vertical, items).values()):
        assert share.value == counts[k] / vertical.sum()


def test_what_is_recorded_of_a_network(small_encoder, page):
    run = Run("pattern_types", small_encoder("bert", num_hidden_layers=2), None, profile="smoke")
    value = np.zeros((2, run.encoder.heads, 5))
    value[0, :, 4], value[0, 0, 4], value[0, 0, 0], value[1, :, 2] = 1.0, 0.5, 0.5, 1.0
    shares = stats.mean(np.stack([value] * 12), by=np.arange(12) // 3)
    page.record_shares.__globals__["run"] = run
    page.record_shares("", stats.stack([shares] * 4))
    page.record_claims("", shares)
    heads = run.encoder.heads
    assert run.recorded.number("dark_column").value == pytest.approx((0.5 + heads) / (2 * heads))
    assert run.recorded.number("heterogeneous_in_first_layer").value == 1
    assert run.recorded.array("pattern_type", column="label")[:, 1].tolist() == ["heterogeneous", "vertical_diagonal"]
    assert run.recorded.number("heterogeneous_or_block_heads").value == pytest.approx((heads - 1) / (2 * heads))
    entropy = run.recorded.array("pattern_entropy")
    np.testing.assert_allclose(entropy[0, 0], math.log(2), atol=1e-6)


@pytest.mark.parametrize("kind", TYPES)
def test_synthetic_maps_are_maps_and_reproducible(page, kind):
    texts = np.repeat([0, 1], [9, 21])
    drawn, again = (page.synthetic_map(kind, texts, np.random.default_rng(4)) for _ in range(2))
    assert drawn.shape == (30, 30) and (drawn >= 0).all() and np.array_equal(drawn, again)
    np.testing.assert_allclose(drawn.sum(-1), 1)


def test_labels_are_of_the_maps_that_were_drawn(page, minilm, small_encoder):
    choice = [item for of_task in page.BOOK_CORPORA.items() for item in page.items_of(*of_task)]
    assert {i.document for i in choice} == set(range(100)), "one document for each article"
    of_its_shape = small_encoder("bert", num_hidden_layers=12, num_attention_heads=12, hidden_size=48)
    for seed, (encoder, name, count) in enumerate(((minilm, "minilm", 240), (of_its_shape, "mpnet", 72))):
        labels = [x for x in page.read_labels(LABELS) if x.model == name]
        assert [(x.head, x.item) for x in labels] == page.draw(encoder, choice, count, seed=seed)
    assert not any(x.head[0] == 0 or x.type not in ("vertical", "vertical_diagonal") for x in labels), "mpnet's"
    with pytest.raises(ValueError, match="give more items"):
        page.draw(minilm, choice[:1], 73, seed=0)


def test_wrong_labels_are_refused_with_their_line(page, tmp_path):
    file = tmp_path / "labels.csv"
    wrong = {"minilm,1,1,text,text/9999,dev,block,": "text/9999", "minilm,1,text": "values to unpack"}
    wrong |= {
        "minilm,1,1,text,text/1,dev,block,stripes": "a type",
        "minilm,0,1,text,text/1,dev,block,": "no head 0-1",
    }
    for row, says in wrong.items():
        file.write_text(f"{page.COLUMNS}\n{row}\n")
        with pytest.raises(CorpusError, match=f"line 2: .*{says}"):
            page.read_labels(file)
