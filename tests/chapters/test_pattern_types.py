"""Chapter 09: the functions of its page against plain loops, labels by what was drawn, its sentences against recorded numbers."""

from functools import partial
from itertools import product

import conftest
import numpy as np
import pytest
from conftest import BOOK, FULL, MPNET
from sklearn.metrics import f1_score

from helpers import results
from helpers.heads import Head
from helpers.measurements import pattern_types
from helpers.measurements.pattern_types import TYPES, Item, Label


def random_maps(*shape: int, seed: int = 0) -> np.ndarray:
    scores = np.exp(2 * np.random.default_rng(seed).normal(size=shape))
    return scores / scores.sum(-1, keepdims=True)


def test_two_numbers_and_the_rule_are_what_loops_find(page):
    maps = random_maps(6, 8, 8)
    for weights, numbers in zip(maps, page.two_numbers(maps), strict=True):
        column = max(sum(weights[i][j] for i in range(8)) / 8 for j in range(8))
        near = sum(weights[i][j] for i in range(8) for j in range(8) if abs(i - j) <= 1) / 8
        np.testing.assert_allclose(numbers, [column, near])
        kind = {(0, 0): "heterogeneous", (1, 0): "vertical", (0, 1): "diagonal", (1, 1): "vertical_diagonal"}
        for thresholds in product((column - 0.01, column + 0.01), (near - 0.01, near + 0.01)):
            called = kind[column >= thresholds[0], near >= thresholds[1]]
            assert TYPES[page.rule(numbers, *thresholds)] == called
    rng = np.random.default_rng(0)
    numbers, types = rng.random((30, 2)), rng.choice([0, 1, 2, 4], 30)
    options, steps = {"labels": [0, 1, 2, 4], "average": "macro"}, [n / 50 for n in range(1, 41)]
    scores = {p: f1_score(types, page.rule(numbers, *p), **options) for p in product(steps, repeat=2)}
    assert page.fit_rule(numbers, types) == max(scores, key=scores.get)


def test_three_numbers_are_those_of_the_helper_and_mixtures_are_maps(page):
    maps, texts = random_maps(3, 30, 30), np.repeat([0, 1], [12, 18])
    names = ("column: largest mean shade", "diagonal: contrast", "blocks: contrast")
    described = pattern_types.describe(maps, texts)
    for number, weights in enumerate(maps):
        np.testing.assert_allclose(page.three_numbers(weights, texts), [described[name][number] for name in names])
    made = page.mixture(30, (0.3, 0.5, 0.2), np.random.default_rng(0))
    np.testing.assert_allclose(made.sum(-1), 1)
    assert made.mean(0).max() > 0.3 and np.diagonal(made, -1).min() > 0.5


def label(head, kind):
    return Label("m", head, Item("text/0", "text", ("a", "b"), 0), "dev", kind, "")


def test_other_maps_vote(page):
    dev = [label(Head(*at), kind) for *at, kind in ((1, 1, "diagonal"), (1, 1, "diagonal"), (1, 1, "block"))]
    dev += [label(Head(1, 2), "block"), label(Head(2, 1), "vertical")]
    asked = [label(Head(*at), "vertical") for at in ((1, 1), (1, 3), (2, 1), (3, 3))]
    named = {
        f: [TYPES[k] if k >= 0 else None for k in page.named_by(asked, dev, f)]
        for f in (page.same_head, page.same_layer)
    }
    assert named[page.same_head] == ["diagonal", None, "vertical", None]
    assert named[page.same_layer] == ["block", "diagonal", None, None], "of ties the first type"
    assert {TYPES[k] for k in page.named_by(asked, dev, page.any_map)} == {"diagonal"}


def test_pairs_of_maps_are_what_loops_count(page):
    heads = np.random.default_rng(3).dirichlet(np.ones(5), (2, 3))
    alike = {pair: [] for pair in page.PAIRS}
    for one, other in product(np.ndindex(2, 3), repeat=2):
        found = sum(heads[one][k] * heads[other][k] for k in range(5))
        alike["of one head" if one == other else "of two heads"].append(found)
        if one != other and one[0] == other[0]:
            alike["of one layer"].append(found)
        elif one != other and one[1] == other[1]:
            alike["of one number"].append(found)
    np.testing.assert_allclose(page.same_type(heads), [np.mean(alike[pair]) for pair in page.PAIRS])


def test_pairs_of_labels_are_what_the_page_prints(page):
    """Of two maps of one head and of two, of one layer or one number; `minilm`'s are recorded, `mpnet`'s only counted."""
    labels, printed = pattern_types.read_labels(), {}
    for model in ("minilm", "mpnet"):
        for pair, same in page.pairs_alike([x for x in labels if x.model == model]).items():
            printed[model, pair] = f"{np.mean(same):.0%} of {len(same)}"
    assert printed == {
        ("minilm", "of one head"): "93% of 381",
        ("minilm", "of two heads"): "40% of 28299",
        ("minilm", "of one layer"): "56% of 4377",
        ("minilm", "of one number"): "32% of 1983",
        ("mpnet", "of one head"): "87% of 23",
        ("mpnet", "of two heads"): "49% of 2533",
        ("mpnet", "of one layer"): "44% of 209",
        ("mpnet", "of one number"): "80% of 211",
    }


recorded = partial(conftest.recorded, "pattern_types")


@pytest.mark.parametrize("run", [BOOK, FULL, MPNET])
def test_few_maps_are_of_other_types_and_those_of_dense_heads_are_vertical(run):
    shares = recorded(run).estimates("share_by_classifier")
    for way in {of.partition(", ")[2] for of in shares}:
        assert shares[f"heterogeneous, {way}"].value + shares[f"block, {way}"].value < 1 / 6
    if run != MPNET:
        dense = results.recorded("distance_features", profile=run[0]).array("type", column="label") == "dense"
        vertical = recorded(run).rows("pattern_share", of="vertical").dropna(subset=["head"]).value.to_numpy()
        assert vertical.reshape(6, 12)[dense].mean() > 0.5
