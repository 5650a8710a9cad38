"""Chapter 09: features and counts against plain loops, synthetic maps by their form, labels by what was drawn."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score

from helpers import attention, results
from helpers.chapters import pattern_types
from helpers.chapters.pattern_types import FEATURES, TYPES, Cell, Examples, Item, PatternTypes
from helpers.corpora.sources import CorpusError
from helpers.measurements.head_types import Types
from helpers.stats import Estimate


def random_maps(count: int, n: int, seed: int = 0) -> torch.Tensor:
    scores = np.random.default_rng(seed).normal(size=(count, n, n)) * 2
    return torch.from_numpy(scores).softmax(-1)


def slow_features(weights: np.ndarray, texts: list[int]) -> dict[str, float]:
    """Cell by cell, from the words of the chapter."""
    n = len(weights)
    cut = sorted(weights.ravel())[max(1, int(0.99 * n * n)) - 1]
    grey = [[min(1.0, weights[i][j] / cut) for j in range(n)] for i in range(n)]

    def lower_median(values):
        return sorted(values)[(len(values) - 1) // 2]

    medians = [lower_median([grey[i][j] for i in range(n)]) for j in range(n)]
    left = [[max(0.0, grey[i][j] - medians[j]) for j in range(n)] for i in range(n)]
    cells = [(i, j) for i in range(n) for j in range(n)]
    near = [c for c in cells if abs(c[0] - c[1]) <= 2]
    far = [c for c in cells if abs(c[0] - c[1]) > 3]
    inside = [c for c in far if texts[c[0]] == texts[c[1]]]
    across = [c for c in far if texts[c[0]] != texts[c[1]]]

    def mean(part):
        return sum(left[i][j] for i, j in part) / len(part) if part else 0.0

    def correlation(part, whole):
        x = np.array([left[i][j] for i, j in whole])
        y = np.array([float(c in set(part)) for c in whole])
        return float(np.corrcoef(x, y)[0, 1]) if len(whole) and x.std() > 0 and 0 < y.mean() < 1 else 0.0

    columns = [sum(grey[i][j] for i in range(n)) / n for j in range(n)]
    share = weights.mean(0)
    lines = [np.mean([left[i][i + k] for i in range(n) if 0 <= i + k < n]) for k in range(-3, 4)]
    dark = [any(left[i][j] >= 0.35 for j in range(n) if abs(i - j) <= 2) for i in range(n)]
    rows = [-sum(p * math.log(p) for p in row if p > 0) for row in weights]
    return {
        "column": max(lower_median(list(weights[:, j])) for j in range(n)),
        "steady": max(columns),
        "dark_rows": max(sum(grey[i][j] >= 0.35 for i in range(n)) / n for j in range(n)),
        "column_fit": float(np.var(columns) / np.var(grey)),
        "concentration": 1 + sum(p * math.log(p) for p in share if p > 0) / math.log(n),
        "line": max(lines),
        "dark_steps": sum(dark) / n,
        "band_contrast": math.log((mean(near) + 0.01) / (mean([c for c in cells if c not in set(near)]) + 0.01)),
        "band_fit": correlation(near, cells),
        "block_contrast": math.log((mean(inside) + 0.01) / (mean(across) + 0.01)) if across else 0.0,
        "block_fit": correlation(inside, far),
        "entropy": float(np.mean(rows) / math.log(n)),
    }


@pytest.mark.parametrize(("n", "border"), [(9, 4), (12, 12), (17, 3)])
def test_features_are_what_loops_find(n, border):
    texts = (torch.arange(n) >= border).long()
    maps = random_maps(3, n, seed=n)
    for weights, row in zip(maps, pattern_types.features(maps, texts[None]), strict=True):
        wanted = slow_features(weights.numpy(), texts.tolist())
        assert list(wanted) == list(FEATURES)
        np.testing.assert_allclose(row, list(wanted.values()), atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(n=st.integers(3, 20), border=st.integers(1, 20), sharp=st.floats(0, 30), seed=st.integers(0, 99))
def test_features_are_finite_for_any_map(n, border, sharp, seed):
    scores = torch.from_numpy(np.random.default_rng(seed).normal(size=(2, n, n)))
    texts = (torch.arange(n) >= border).long()[None]
    assert pattern_types.features((sharp * scores).softmax(-1), texts).isfinite().all()


def test_pure_maps_have_the_masses_one_expects():
    n = 10
    sink = torch.zeros(n, n, dtype=torch.float64)
    sink[:, 3] = 1
    both = torch.stack([sink, torch.eye(n, dtype=torch.float64), torch.full((n, n), 1 / n, dtype=torch.float64)])
    masses = pattern_types.masses(both).numpy()
    np.testing.assert_allclose(masses[:, 0], [1, 1 / n, 1 / n])
    np.testing.assert_allclose(masses[:, 1], [3 / n, 1, (3 * n - 2) / n**2])


@pytest.mark.parametrize("kind", TYPES)
def test_synthetic_maps_are_maps_and_reproducible(kind):
    texts = np.repeat([0, 1], [9, 21])
    one, again = (pattern_types.synthetic_map(kind, texts, np.random.default_rng(4)) for _ in range(2))
    assert one.shape == (30, 30) and (one >= 0).all() and np.array_equal(one, again)
    np.testing.assert_allclose(one.sum(-1), 1)


@pytest.fixture(scope="module")
def synthetic() -> Examples:
    return pattern_types.synthetic(600, seed=1)


@pytest.mark.parametrize("kind", pattern_types.KINDS)
def test_classifiers_tell_synthetic_maps_apart_and_are_reproducible(synthetic, kind):
    unseen = pattern_types.synthetic(200, seed=7)
    called = pattern_types.train(synthetic, kind)(unseen.features)
    assert np.mean(called == unseen.types) > 0.85
    assert np.array_equal(called, pattern_types.train(synthetic, kind)(unseen.features))


def test_scores_are_what_scikit_learn_says():
    rng = np.random.default_rng(0)
    labels = rng.choice([0, 1, 2, 4], 90)
    called = np.where(rng.random(90) < 0.7, labels, rng.integers(0, 5, 90))
    score = pattern_types.score(labels, called, np.arange(90), seed=3)
    assert np.array_equal(score.confusion, confusion_matrix(labels, called, labels=range(5)))
    occur = [0, 1, 2, 4]
    assert score.macro_f1.value == pytest.approx(f1_score(labels, called, labels=occur, average="macro"))
    assert score.accuracy.value == pytest.approx(accuracy_score(labels, called))
    assert np.isnan(score.f1[3]) and "block" not in score.as_dict()["f1"]
    for estimate in (score.macro_f1, score.accuracy):
        assert estimate.low < estimate.value < estimate.high
    redrawn = [rng.integers(0, 90, 90) for _ in range(800)]
    by_hand = np.percentile([accuracy_score(labels[k], called[k]) for k in redrawn], (2.5, 97.5))
    np.testing.assert_allclose([score.accuracy.low, score.accuracy.high], by_hand, atol=0.03)


def test_scores_are_redrawn_by_head():
    rng = np.random.default_rng(1)
    heads = np.repeat(np.arange(40), 6)
    right = np.repeat(rng.random(40) < 0.7, 6)  # a head is right on all of its maps, or on none
    labels = rng.integers(0, 2, 240)
    called = np.where(right, labels, 1 - labels)
    by_head = pattern_types.score(labels, called, heads).accuracy
    by_map = pattern_types.score(labels, called, np.arange(240)).accuracy
    assert by_head.units == 40 and by_head.value == by_map.value
    drawn = [right[::6][rng.integers(0, 40, 40)].mean() for _ in range(2000)]
    np.testing.assert_allclose([by_head.low, by_head.high], np.percentile(drawn, (2.5, 97.5)), atol=0.03)
    assert by_head.high - by_head.low > 2 * (by_map.high - by_map.low), "maps of a head are no independent witnesses"


def test_other_maps_of_a_head_vote():
    item = Item("text/0", "text", ("a", "b"), 0)

    def label(layer, head, kind):
        return pattern_types.Label("m", Cell(layer, head, item), "dev", kind, "")

    known = [
        label(0, 0, "diagonal"),
        label(0, 0, "diagonal"),
        label(0, 0, "block"),
        label(0, 1, "block"),
        label(1, 0, "vertical"),
    ]
    asked = [label(0, 0, "vertical"), label(0, 2, "vertical"), label(1, 0, "vertical"), label(2, 2, "vertical")]
    names = [TYPES[k] if k >= 0 else None for k in pattern_types.by_others(asked, known, pattern_types.same_head)]
    assert names == ["diagonal", None, "vertical", None]
    names = [TYPES[k] if k >= 0 else None for k in pattern_types.by_others(asked, known, pattern_types.layer_mates)]
    assert names == ["block", "diagonal", None, None], "of ties the first type"
    assert pattern_types.heads_of(asked).tolist() == [0, 2, 1000, 2002]


def test_there_must_be_something_to_judge_by(minilm):
    with pytest.raises(ValueError, match="no labelled maps"):
        pattern_types.score(*np.zeros((3, 0), int))
    with pytest.raises(ValueError, match="No map of 'minilm' is labelled"):
        pattern_types.labelled(minilm, [])


def small_items(count: int = 9) -> list[Item]:
    words = ["the", "cat", "sat", "on", "its", "mat", ",", "photosynthesis", "."]
    rng = np.random.default_rng(5)
    found = []
    for k in range(count):
        first, second = (" ".join(rng.choice(words, int(rng.integers(2, 14)))) for _ in range(2))
        found.append(Item(f"x/{k}", ("text", "question")[k % 2], (first, second), k // 2))
    return found


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
def test_counts_are_what_loops_find(small_encoder, synthetic, family):
    encoder, every = small_encoder(family), small_items()
    classifier = pattern_types.train(synthetic, "logistic")
    by_task = {task: [i for i in every if i.task == task] for task in ("text", "question")}
    found = pattern_types.measure(encoder, by_task, classifier)
    seen = {task: np.zeros((encoder.layers, encoder.heads, 5)) for task in by_task}
    targets = Counter()
    for item in every:
        weights, batch = pattern_types.map_of(encoder, Cell(1, 2, item))
        maps = attention.maps(encoder, batch)[:, 0].double()
        np.testing.assert_array_equal(maps[1, 2], weights)
        for layer, head in np.ndindex(encoder.layers, encoder.heads):
            kind = pattern_types.type_of(classifier, maps[layer, head].numpy(), batch)
            seen[item.task][layer, head, TYPES.index(kind)] += 1
            if kind == "vertical":
                column = int(pattern_types.greys(maps[layer, head][None])[0].mean(0).argmax())
                marks = (batch.cls[0, column], batch.sep[0, column], batch.punctuation[0, column], True)
                targets[next(k for k, mark in enumerate(marks) if mark)] += 1
    for task, counts in seen.items():
        np.testing.assert_allclose(found.tasks[task].value, counts / len(by_task[task]), atol=1e-12)
        np.testing.assert_allclose(found.share(task).value.sum(), 1)
    if total := sum(targets.values()):
        np.testing.assert_allclose(found.targets.value, [targets[k] / total for k in range(4)], atol=1e-12)
    assert found.inputs == {"text": 5, "question": 4} and found.truncated == 0


def test_dark_columns_and_where_heterogeneous_maps_are():
    value = np.zeros((2, 2, 5))
    value[0, :, 4], value[0, 0, 0], value[1, :, 2] = (0.5, 1.0), 0.5, 1.0
    heads = Estimate(value, value, value, np.stack([value] * 3))
    found = PatternTypes({"text": heads}, Estimate(*[np.zeros(4)] * 3, np.zeros((3, 4))), {"text": 1})
    assert found.column.value == (0.5 + 2) / 4 and found.first.value == 1
    none = PatternTypes({"text": heads[1:]}, found.targets, {"text": 1})
    assert "first" in found.as_dict() and "first" not in none.as_dict()


def test_items_are_pairs_with_stable_names():
    for task, corpus in pattern_types.BOOK_CORPORA.items():
        every = pattern_types.items(task, corpus)
        assert [i.id for i in every] == [f"{task}/{n}" for n in range(len(every))]
        assert all(isinstance(i.texts, tuple) and len(i.texts) == 2 for i in every)
        assert {i.document for i in every} == set(range(100)), "one document for each article"
        few = pattern_types.items(task, corpus, limit=7, seed=2)
        assert len(few) == 7 and set(few) <= set(every) and few == pattern_types.items(task, corpus, limit=7, seed=2)


def test_labels_are_of_the_cells_that_were_drawn(minilm, small_encoder):
    labels = [x for x in pattern_types.read_labels() if x.model == "minilm"]
    choice = [i for task, name in pattern_types.BOOK_CORPORA.items() for i in pattern_types.items(task, name)]
    assert [x.cell for x in labels] == pattern_types.draw(minilm, choice, 240, seed=0)
    labels = [x for x in pattern_types.read_labels() if x.model == "mpnet"]
    of_its_shape = small_encoder("bert", num_hidden_layers=12, num_attention_heads=12, hidden_size=48)
    assert [x.cell for x in labels] == pattern_types.draw(of_its_shape, choice, 72, seed=1)
    assert not any(x.cell.layer == 0 for x in labels), "as chapter 09 says"
    with pytest.raises(ValueError, match="give more items"):
        pattern_types.draw(minilm, choice[:1], 73, seed=0)


HEADER = ",".join(pattern_types.COLUMNS)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("model,layer\n", "line 1: The columns are model, layer"),
        (f"{HEADER}\nminilm,1,1,text,text/9999,dev,block,\n", "line 2: .*an input of the book tier"),
        (f"{HEADER}\nminilm,1,1,text,text/1,dev,stripes,\n", "line 2: The types are"),
        (f"{HEADER}\nminilm,1,1,text,text/1,dev,block,stripes\n", "line 2: The types are"),
        (f"{HEADER}\nminilm,0,1,text,text/1,dev,block,\n", "line 2: Layer '0'"),
        (f"{HEADER}\nminilm,1,text\n", "line 2: .*8 columns"),
    ],
)
def test_wrong_labels_are_refused_with_their_line(tmp_path, text, says):
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(CorpusError, match=says):
        pattern_types.read_labels(tmp_path / "labels.csv")


def test_agreement_is_counted_where_two_annotators_looked():
    item = Item("text/0", "text", ("a", "b"), 0)

    def label(first, second):
        return pattern_types.Label("m", Cell(0, 0, item), "dev", first, second)

    pairs = [label("block", "block"), label("vertical", "block"), label("vertical", "vertical"), label("block", "")]
    both = pattern_types.agreement(pairs)
    assert both["maps"] == 3 and both["agreement"] == pytest.approx(2 / 3) and both["kappa"] == pytest.approx(0.4)


def test_what_the_scores_say():
    values = results.recorded("pattern_types")["values"]
    new, known, every = (
        values["scores"][name] for name in (pattern_types.NEW, pattern_types.KNOWN, pattern_types.EVERY)
    )
    per_cent = {
        title: {name: round(100 * score["accuracy"]["value"]) for name, score in one.items()}
        for title, one in (("new", new), ("known", known))
    }
    assert (
        per_cent["new"][pattern_types.FOREST],
        per_cent["new"]["forest on dev maps"],
        per_cent["new"][pattern_types.RULE],
    ) == (89, 89, 73)
    assert (per_cent["known"][pattern_types.OWN_HEAD], per_cent["known"][pattern_types.FOREST]) == (95, 88)
    assert (per_cent["known"]["forest on dev maps"], per_cent["known"][pattern_types.LAYER]) == (93, 69)
    assert per_cent["known"][pattern_types.MAJORITY] == 50
    counts = {name: np.array(one[pattern_types.FOREST]["confusion"]).sum() for name, one in values["scores"].items()}
    assert counts == {pattern_types.NEW: 55, pattern_types.KNOWN: 105, pattern_types.EVERY: 160}
    gain = {n: [round(100 * g[end]) for end in ("value", "low", "high")] for n, g in values["gains"].items()}
    assert gain["forest"] == [16, 5, 32] and gain["head over forest"] == [8, -1, 17]
    assert gain["head"][1] > 0 > gain["majority"][0] and gain["majority over rule"][0] < 0
    assert gain["forest over forest on dev"][1] <= 0 <= gain["forest over forest on dev"][2]
    table = np.array(every[pattern_types.FOREST]["confusion"])
    assert table[1].sum() == 14 and table[4].sum() == 6 and table[3].sum() == 0 == table[:, 3].sum()


def test_the_parts_share_heads_as_the_chapter_and_the_card_say():
    labels = [x for x in pattern_types.read_labels() if x.model == "minilm"]
    known = {(x.cell.layer, x.cell.head) for x in labels if x.split == "dev"}
    test = [x for x in labels if x.split == "test"]
    assert len(test) == 160 and sum((x.cell.layer, x.cell.head) in known for x in test) == 105
    assert round(100 * (11 / 12) ** 72, 1) == 0.2, "a layer of mpnet that no label is of"


def test_the_chapters_claims():
    values = results.recorded("pattern_types")["values"]
    assert values["judged"] == {"model": "minilm", "maps": 160}

    shares = dict(zip(TYPES, values["all"]["value"], strict=True))
    assert shares["vertical"] == pytest.approx(0.5, abs=0.02) and shares["block"] < 0.005
    assert shares["vertical_diagonal"] == pytest.approx(0.35, abs=0.02)
    assert round(shares["vertical"] + shares["vertical_diagonal"], 2) == 0.87
    vertical = {task: share["value"][0] for task, share in values["tasks"].items()}
    assert min(vertical, key=vertical.get) == "text" and max(vertical, key=vertical.get) == "paraphrase"
    assert vertical["paraphrase"] - vertical["text"] == pytest.approx(0.06, abs=0.005)
    layers = np.array(values["layers"])
    assert layers[0, 4] > 0.5 and (layers[1:, 4] < 0.01).all() and (layers[1:, 1] < 0.03).all()
    assert (layers[1:3, 2] > 0.6).all() and (np.diff(layers[1:, 2]) < 0).all() and layers[5, 0] > 0.99
    assert values["alike"]["one type"] == pytest.approx(0.75, abs=0.01)
    assert values["alike"]["pairs"] == pytest.approx(0.9, abs=0.02)
    entropy = np.array(values["entropy"]["value"])
    assert np.unravel_index(entropy.argmax(), entropy.shape) == (3, 10), "4-11"
    assert values["targets"]["cls"]["value"] > 0.85
    assert values["random"]["all"]["value"][4] > 0.95 and values["controls"]["shuffled"]["all"]["value"][4] > 0.9
    assert round(100 * np.mean(np.max(values["controls"]["random"]["heads"], axis=-1) >= 0.95)) == 85, (
        "more than ours"
    )


def test_shares_by_hand_agree_with_the_classifier_for_the_frequent_types():
    shares = results.recorded("pattern_types")["values"]["all"]["value"]
    labels = [x.type for x in pattern_types.read_labels() if x.model == "minilm"]
    by_hand = [labels.count(name) / len(labels) for name in TYPES]
    error = [1.96 * math.sqrt(p * (1 - p) / len(labels)) for p in by_hand]
    assert abs(by_hand[0] - shares[0]) < error[0] and abs(by_hand[2] - shares[2]) < error[2]
    assert by_hand[1] > shares[1] and by_hand[4] < shares[4]


def test_what_the_chapter_says_of_the_clusters():
    clusters = Types.read(results.recorded("distance_features"))
    heads = np.array(results.recorded("pattern_types")["values"]["heads"])
    table = pattern_types.contingency(clusters.names.tolist(), pattern_types.CLUSTERS, heads)
    dense, diagonal, both, vertical = (dict(zip(TYPES, row, strict=True)) for row in table)
    assert diagonal["diagonal"] + diagonal["vertical_diagonal"] > 0.99
    assert vertical["vertical_diagonal"] > 0.9 and not clusters.fits["vertical"]
    assert both["vertical"] > 0.85 and 0.5 < dense["vertical"] < 0.8


def test_full_runs():
    book = results.recorded("pattern_types")["values"]
    minilm, mpnet = (
        results.recorded("pattern_types", model=m, profile="full")["values"] for m in ("minilm", "mpnet")
    )
    difference = np.abs(np.subtract(book["all"]["value"], minilm["all"]["value"]))
    assert difference.max() < 0.02
    assert mpnet["all"]["value"][2] > minilm["all"]["value"][2] + 0.1
    for values in (minilm, mpnet):
        assert values["all"]["value"][3] + values["all"]["value"][4] < 0.1
        assert values["random"]["all"]["value"][1] == values["random"]["all"]["value"][2] == 0
    targets = {name: round(share["value"], 2) for name, share in mpnet["targets"].items()}
    assert (targets["cls"], targets["sep"], targets["stop"]) == (0.45, 0.35, 0.15)
    assert minilm["targets"]["cls"]["value"] > 0.85
    judged = mpnet["scores"][pattern_types.EVERY]
    forest, rule = (judged[name]["macro_f1"] for name in (pattern_types.FOREST, pattern_types.RULE))
    assert round(forest["value"], 2) == 0.65 and round(judged["forest on dev maps"]["macro_f1"]["value"], 2) == 0.85
    assert mpnet["gains"]["forest"]["low"] < 0, "the forest does not beat the simple rule there"
    assert rule["value"] > forest["value"]
    table = np.array(judged[pattern_types.FOREST]["confusion"])
    assert table[0, 2] > 5 * table[2, 0]
    assert mpnet["random"]["all"]["value"][0] == pytest.approx(0.8, abs=0.02)
    assert minilm["random"]["all"]["value"][4] > 0.95


def maps(layers=2, heads=3, length=4):
    weights = np.random.default_rng(0).random((layers, heads, length, length))
    return weights / weights.sum(-1, keepdims=True)
