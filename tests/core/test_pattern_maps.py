"""Numbers of single attention maps against plain loops, synthetic maps, and what is recorded of a network's types."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from sklearn.metrics import f1_score

from helpers import attention, stats, tokens
from helpers.measurements import pattern_types
from helpers.measurements.pattern_types import TASKS, TYPES, Item
from helpers.results import Run


def random_maps(*shape: int, seed: int = 0) -> np.ndarray:
    scores = np.exp(2 * np.random.default_rng(seed).normal(size=shape))
    return scores / scores.sum(-1, keepdims=True)


def slow_description(weights, texts):
    """Cell by cell, from the words of the chapter."""
    n = len(weights)
    places, cells = range(n), [*product(range(n), repeat=2)]
    cut = sorted(weights.ravel())[max(1, int(0.99 * n * n)) - 1]
    grey = {(i, j): min(1.0, weights[i][j] / cut) for i, j in cells}
    medians = [sorted(grey[i, j] for i in places)[(n - 1) // 2] for j in places]
    rest = {(i, j): max(0.0, grey[i, j] - medians[j]) for i, j in cells}
    near, beyond = ([c for c in cells if (abs(c[0] - c[1]) <= 2) == here] for here in (True, False))
    far = [(i, j) for i, j in cells if abs(i - j) > 3]
    inside, across = ([c for c in far if (texts[c[0]] == texts[c[1]]) == same] for same in (True, False))

    def contrast(here, there):
        means = [sum(rest[c] for c in part) / len(part) + 0.01 for part in (here, there) if part]
        return math.log(means[0] / means[1]) if len(means) == 2 else 0.0

    def correlation(part, whole):
        x, y = np.array([(rest[c], float(c in part)) for c in whole]).T
        return float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 and 0 < y.mean() < 1 else 0.0

    def entropy(row):
        return -sum(p * math.log(p) for p in row if p > 0) / math.log(n)

    columns = [sum(grey[i, j] for i in places) / n for j in places]
    return [
        max(sorted(weights[:, j])[(n - 1) // 2] for j in places),
        max(columns),
        max(sum(grey[i, j] >= 0.35 for i in places) / n for j in places),
        float(np.var(columns) / np.var([*grey.values()])),
        1 - entropy(weights.mean(0)),
        max(np.mean([rest[i, i + k] for i in places if 0 <= i + k < n]) for k in range(-3, 4)),
        sum(any(rest[i, j] >= 0.35 for j in places if (i, j) in near) for i in places) / n,
        contrast(near, beyond),
        correlation(near, cells),
        contrast(inside, across),
        correlation(inside, far),
        float(np.mean([entropy(row) for row in weights])),
    ]


@pytest.mark.parametrize(("n", "border"), [(9, 4), (12, 12), (17, 3)])
def test_descriptions_are_what_loops_find(n, border):
    maps, texts = random_maps(2, 2, n, n, seed=n), (np.arange(n) >= border).astype(int)
    numbers = pattern_types.twelve(maps, texts)
    for at in np.ndindex(2, 2):
        np.testing.assert_allclose(numbers[at], slow_description(maps[at], texts.tolist()), atol=1e-9)


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_looking_at_texts_is_what_loops_find(small_encoder, family):
    encoder = small_encoder(family)
    items = [
        Item("x/0", "text", ("The cat sat, on its mat.", "A dog!"), 0),
        Item("x/1", "text", ("Yes", "On it."), 1),
    ]
    inputs = [item.texts for item in items]
    looked = attention.measure(encoder, inputs, lambda m, t: pattern_types.look(m.double().numpy(), t))
    for n, item in enumerate(items):
        batch = tokens.encode(encoder, [item.texts])
        maps = attention.maps(encoder, batch)[:, 0].double().numpy()
        texts = [
            max(0, *batch.text[0, : k + 1].tolist()) for k in range(maps.shape[-1])
        ]  # special tokens: the one before
        assert texts[0] == 0 and texts[-1] == 1
        for at in np.ndindex(maps.shape[:2]):
            np.testing.assert_allclose(looked[n]["twelve"][at], slow_description(maps[at], texts), atol=1e-4)
            darkest = np.sort(maps[at], None)[int(0.99 * maps[at].size) - 1]
            column = int(np.minimum(maps[at] / darkest, 1).mean(0).argmax())
            kinds = batch.cls[0, column], batch.sep[0, column], batch.punctuation[0, column], True
            assert looked[n]["target"][at] == [bool(kind) for kind in kinds].index(True)


def test_shares_columns_and_f1_are_what_loops_count():
    rng = np.random.default_rng(3)
    items = [Item(f"{task}/{n}", task, ("a", "b"), n // 2) for task in TASKS for n in range(6)]
    types = rng.integers(0, 5, (len(items), 2, 3))
    shares = pattern_types.shares_by_task(types, items)
    for t, task in enumerate(TASKS):
        own = [types[n] for n, item in enumerate(items) if item.task == task]
        for layer, head, kind in np.ndindex(2, 3, 5):
            assert shares.value[t, layer, head, kind] == np.mean([x[layer, head] == kind for x in own])
    target, vertical = rng.integers(0, 4, types.shape), types == 0
    counts = Counter(target[vertical].tolist())
    for k, share in enumerate(pattern_types.column_targets(target, vertical, items).values()):
        assert share.value == counts[k] / vertical.sum()
    truth, called = rng.choice([0, 1, 2, 4], 90), rng.integers(0, 5, 90)
    table = np.zeros((5, 5))
    np.add.at(table, (truth, called), 1)
    f1 = f1_score(truth, called, labels=[0, 1, 2, 4], average="macro")
    assert pattern_types.mean_f1(table) == pytest.approx(f1)


def test_what_is_recorded_of_a_network(small_encoder, tmp_path, monkeypatch):
    run = Run("pattern_types", small_encoder("bert", num_hidden_layers=2), None, profile="smoke")
    value = np.zeros((2, run.encoder.heads, 5))
    value[0, :, 4], value[0, 0, 4], value[0, 0, 0], value[1, :, 2] = 1.0, 0.5, 0.5, 1.0
    shares = stats.mean(np.stack([value] * 12), by=np.arange(12) // 3)
    pattern_types.record(run, "", stats.stack([shares] * 4))
    heads = run.encoder.heads
    assert run.recorded.number("dark_column").value == pytest.approx((0.5 + heads) / (2 * heads))
    assert run.recorded.number("heterogeneous_in_first_layer").value == 1
    assert run.recorded.array("pattern_type", column="label")[:, 1].tolist() == ["heterogeneous", "vertical_diagonal"]
    assert run.recorded.number("frequent_types").value == 3
    entropy = run.recorded.array("pattern_entropy")
    np.testing.assert_allclose(entropy[0, 0], math.log(2), atol=1e-6)


@pytest.mark.parametrize("kind", TYPES)
def test_synthetic_maps_are_maps_and_reproducible(kind):
    texts = np.repeat([0, 1], [9, 21])
    one, again = (pattern_types.synthetic_map(kind, texts, np.random.default_rng(4)) for _ in range(2))
    assert one.shape == (30, 30) and (one >= 0).all() and np.array_equal(one, again)
    np.testing.assert_allclose(one.sum(-1), 1)
