"""Chapter 07: the functions of its page and the fast helper against slow loops, and its sentences against the recorded numbers."""

import copy
from dataclasses import replace
from itertools import combinations

import conftest
import numpy as np
import pytest
import torch
from conftest import RUNS
from scipy.spatial.distance import pdist, squareform
from scipy.special import rel_entr
from scipy.stats import spearmanr
from sklearn.manifold import smacof

from helpers import attention, tokens
from helpers.corpora.readers import Segment
from helpers.measurements import divergence
from helpers.measurements.divergence import Divergences

TEXTS = ["The cat sat on the mat.", "A longer sentence, with a comma.", "Short.", "One two three."]
SEGMENTS = [Segment((text, TEXTS[(n + 1) % 4]), n // 2) for n, text in enumerate(TEXTS)]


def softmax_maps(heads=5, queries=7, keys=7, sharp=3.0):
    return (torch.randn(heads, queries, keys, generator=torch.Generator().manual_seed(0)) * sharp).softmax(-1)


def relative_entropies(p, q) -> float:
    """The divergence by its other definition: the mean relative entropy to the middle."""
    middle = (p + q) / 2
    return max(0.0, (rel_entr(p, middle) + rel_entr(q, middle)).sum() / 2)


@pytest.mark.parametrize("shape", [(2, 1, 1), (5, 7, 7), (4, 3, 130), (9, 128, 128, 0.1)])  # the last nearly even
@pytest.mark.parametrize("threads", [1, 2])
def test_the_fast_helper_is_the_slow_definition(monkeypatch, page, shape, threads):
    maps = softmax_maps(*shape)
    if shape[-1] == 7:  # a head with all its attention on the first token: zeros, exactly
        maps[0, :, 1:], maps[0, :, 0] = 0, 1
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    distances = divergence.divergences(maps)
    assert np.array_equal(distances, distances.T) and (distances.diagonal() == 0).all() and (distances >= 0).all()
    assert np.allclose(distances / maps.shape[1], page.compare(maps[None], None), rtol=1e-5, atol=1e-9)
    for k, other in combinations(range(shape[0]), 2):
        slow = sum(map(relative_entropies, *maps[[k, other]].double().numpy()))
        assert distances[k, other] == pytest.approx(slow, rel=2e-5, abs=1e-9)


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_divergences_of_texts_are_means_over_their_tokens(small_encoder, page, family):
    encoder = small_encoder(family)
    every = divergence.measure(encoder, SEGMENTS)
    ordinary = divergence.measure(encoder, SEGMENTS, look=page.ordinary)
    total, places = 0, 0
    for number, segment in enumerate(SEGMENTS):
        batch = replace(tokens.encode(encoder, [segment.texts]), index=(number,))
        layers, kept = attention.maps(encoder, batch), np.flatnonzero(~batch.special[0].numpy())
        maps = layers[:, 0].flatten(0, 1).double().numpy()
        slow = np.array([sum(map(relative_entropies, p, q)) for p, q in combinations(maps, 2)])
        assert np.allclose(squareform(page.compare(layers[:, 0], None), checks=False), slow / len(maps[0]), atol=1e-9)
        rows = [[row[kept] / row[kept].sum() for row in head[kept]] for head in maps]
        without = [sum(map(relative_entropies, p, q)) for p, q in combinations(rows, 2)]
        assert np.allclose(ordinary.sums[number], without, rtol=1e-3, atol=1e-4)
        total, places = total + slow, places + len(maps[0])
    assert np.allclose(squareform(every.mean()), total / places, rtol=1e-4)


def random_divergences(layers=3, heads=4, texts=30, shift=0.0, seed=0) -> Divergences:
    """Random divergences in which pairs of one layer are closer by ``shift``."""
    rng, layer = np.random.default_rng(seed), np.repeat(np.arange(layers), heads)
    same = (layer[:, None] == layer)[np.triu_indices(len(layer), 1)]
    base, counts = rng.uniform(0.2, 0.5, len(same)) - shift * same, rng.integers(10, 100, texts)
    sums = (base + rng.normal(0, 0.01, (texts, len(same)))) * counts[:, None]
    return Divergences(layers, heads, sums.astype(np.float32), counts, np.arange(texts) // 2)


@pytest.mark.parametrize("labels", [[0] * 4 + [1] * 4 + [2] * 4, [0, 1, 0, 1, -1, -1, 2, 2, 2, 0, 0, -1]])
def test_closeness_is_what_loops_count_and_what_the_page_says(page, labels):
    of, labels = random_divergences(shift=0.05), np.array(labels)
    close, matrix, known = page.closeness(of, labels), of.mean(), np.flatnonzero(labels >= 0)
    pairs = [(matrix[i, j], labels[i] == labels[j]) for i, j in combinations(known, 2)]
    within, between = ([d for d, same in pairs if same == wanted] for wanted in (True, False))
    assert close["closeness"].value == pytest.approx(np.mean(within) / np.mean(between))
    one, two = (labels == label for label in (0, 1))
    own = np.mean([matrix[i, j] for i, j in combinations(np.flatnonzero(one), 2)])
    apart = np.mean([matrix[i, j] for i in np.flatnonzero(one) for j in np.flatnonzero(two)])
    assert page.compared(of, *page.group_and_others(one, two)).value == pytest.approx(own / apart)
    nearest = [min((m for m in known if m != k), key=lambda m, k=k: matrix[k, m]) for k in known]
    assert close["nearest_alike"] == pytest.approx(np.mean(labels[known] == labels[nearest]))
    own = matrix[np.ix_(known, known)], labels[known]
    assert page.ratio(*own) == pytest.approx(close["closeness"].value) and page.p_value(*own) == close["closeness_p"]


def test_shuffles_stay_in_their_group_and_labels_that_ask_nothing_are_left_out(page):
    groups = np.array([0, 1, 0, 2, 1, 1])
    orders = page.shuffles(groups)
    assert (np.sort(orders, axis=1) == np.arange(6)).all() and (groups[orders] == groups).all()
    others = np.arange(12), np.zeros(12, int), np.full(12, -1)
    assert page.comparable(groups) and not any(map(page.comparable, others))


@pytest.mark.parametrize("left_out", [np.eye(12, dtype=bool), np.arange(12)[:, None] // 3 == np.arange(12) // 3])
def test_labels_are_compared_as_loops_do(page, left_out):
    matrix, labels = (
        random_divergences(4, 3).mean(),
        np.arange(12) // 3 if left_out.sum() == 12 else np.arange(12) % 3,
    )
    grid = page.by_label(matrix, labels, left_out)
    for a, b in np.ndindex(grid.shape):
        pairs = [matrix[at] for at in np.ndindex(12, 12) if not left_out[at] and tuple(labels[[*at]]) == (a, b)]
        assert grid[a, b] == pytest.approx(np.mean(pairs))


def test_maps_of_the_page_and_of_the_library(page):
    points = np.random.default_rng(0).normal(size=(12, 2)) * [2, 1]
    distances, moved = squareform(pdist(points)), points + np.random.default_rng(1).normal(size=points.shape)
    shown = [(np.linalg.norm(moved[i] - moved[j]), distances[i, j]) for i, j in combinations(range(12), 2)]
    slow = np.sqrt(sum((a - b) ** 2 for a, b in shown) / sum(a**2 for a, _ in shown))
    assert divergence.stress(distances, moved) == pytest.approx(page.stress(distances, moved)) == pytest.approx(slow)
    matrix = divergence.divergences(softmax_maps(15, 30, 30)) / 30
    start = np.random.default_rng(2).normal(size=(15, 2))
    start -= start.mean(0)
    after, _ = smacof(matrix, init=start, n_init=1, max_iter=1, normalized_stress=False)
    assert np.allclose(page.move(start, matrix), after)
    for k, row in enumerate(page.near(distances, 3)):
        others = sorted((m for m in range(12) if m != k), key=lambda m, k=k: distances[k, m])
        assert set(np.flatnonzero(row)) == set(others[:3])


def test_a_behaviour_is_the_place_with_a_third_or_breadth(page):
    shares = dict.fromkeys(page.PLACES, np.zeros((1, 4)))
    shares |= {"cls": np.array([[0.5, 0.3, 0.4, 0.2]]), "sep": np.array([[0.2, 0.32, 0.45, 0.7]])}
    patterns = shares | {"entropy": np.array([[1.0, 1, 1, 2.71]]), "uniform": 3.0}
    assert page.behaviour(patterns).tolist() == ["cls", "", "sep", "broad"]


def recorded(run, chapter="divergence_map"):
    return conftest.recorded(chapter, RUNS[run])


@pytest.mark.parametrize("name", RUNS)
def test_what_the_text_says_of_every_run(page, name):
    run, mpnet = recorded(name), name == "mpnet"
    ends, layer = run.number("closeness_of_ends"), run.row("closeness", of="layer")
    looks = recorded(name, "surface_patterns")
    axis = run.array("map_x").ravel()
    stop, broad = (abs(spearmanr(axis, looks.array(q).ravel())[0]) for q in ("share_punctuation", "entropy"))
    assert (stop > 0.9 and broad < 0.25) if mpnet else broad > 0.9, "the axis is breadth, in mpnet stops"
    grid = run.rows("closer_than_breadth").value.to_numpy().reshape(2 * (12 if mpnet else 6,))
    if mpnet:
        assert grid[2:5, 2:5].min() > 0.51 > grid[2:5, [*range(2), *range(5, 12)]].max(), "a small block"
        assert grid[5:11, 5:11].min() > 0.53 > grid[:5, 5:11].max() and 0.45 > grid[1, 2:5].min() > 0.4, (
            "2 at the edge"
        )
        return
    assert 0.8 < ends.value / (1 - layer.value) < 0.84, "four fifths come from the ends"
    assert np.ptp(grid[0]) < 0.08 and grid[0].max() < 0.21, "heads of layer 1 are as close to any others"
    assert grid[1:5, 1:5].min() > 0.4 > grid[5, :5].max() and grid[4, 4] > grid[5, 5] > 0.45, "a block, and layer 6"
    inner, ordinary = (run.row("closeness", of=f"layer, {of}ordinary tokens").value for of in ("inner layers, ", ""))
    assert (inner - ordinary) / (1 - ordinary) > 0.6, "on ordinary tokens most of it comes from the ends"
    assert 50 * page.recorded_matrix(run, "@random").sum() < page.recorded_matrix(run).sum(), "hardly differ"


@pytest.mark.parametrize("name", RUNS)
def test_behaviours_lie_in_blocks_of_layers(page, name):
    surface_run, matrix = recorded(name, "surface_patterns"), page.recorded_matrix(recorded(name))
    patterns = page.statistics_of(surface_run)
    moved = abs(surface_run.array("entropy", network="@shuffled") - patterns["entropy"]).mean()
    assert f"{moved:.1f}" == ("0.2" if name == "mpnet" else "0.1"), "how much shuffling changes a mean entropy"
    assert (patterns["cls"].mean() < min(patterns[n].mean() for n in ("sep", "stop"))) == (name == "mpnet")
    kinds, layer = page.behaviour(patterns), np.indices(patterns["cls"].shape)[0].ravel() + 1
    layers = {kind: set(layer[kinds == kind].tolist()) for kind in np.unique(kinds)}
    assert layers["broad"] == {1} and layers["cls"] == {2, 3, 4, 5}
    kept = np.isin(kinds, [kind for kind in layers if kind and (kinds == kind).sum() > 1])
    by_behaviour = recorded(name).number("closeness", of="shared behaviour").value
    blocks = np.digitize(layer, (2, 6, 12) if name == "mpnet" else (2,))
    assert page.ratio(matrix, blocks, kept) == pytest.approx(by_behaviour, abs=1e-3)
    table = [page.ratio(matrix, layer, chosen) for chosen in (layer > 0, (layer > 1) & (layer < layer.max()))]
    rows = {"book": [0.790, 0.964], "full": [0.782, 0.960], "mpnet": [0.721, 0.727]}
    assert np.round(table, 3).tolist() == rows[name]
    rise = {at: page.mixed(matrix, layer, at) - table[0] for at in combinations(np.unique(layer), 2)}
    near, borders = [rise.pop((n, n + 1)) for n in range(1, layer.max())], [4, 10] if name == "mpnet" else [0, 4]
    least = np.take(near, borders).min() / np.mean([*rise.values()])  # over mixtures of layers that are no neighbours
    assert max(abs(np.delete(near, borders))) < 0.0105 and least > (0.5 if name == "mpnet" else 1), "only in a block"


def test_a_layers_terms_for_distance_go_to_other_heads(page, small_encoder):
    """In the first layer that is what permuted columns of the shared table give; the second layer has an order of its own."""
    encoder = small_encoder("mpnet")
    moved, terms = page.with_terms_moved(encoder, np.random.default_rng(1))
    orders = terms.reshape(encoder.layers, encoder.heads)
    assert (np.sort(orders) == np.arange(encoder.heads)).all()
    permuted = copy.deepcopy(encoder.model)
    table = permuted.encoder.relative_attention_bias.weight.data
    table.copy_(table[:, orders[0]])
    batch = tokens.encode(encoder, ["Ada saw the old letter"])
    maps = [attention.maps(version, batch)[0] for version in (moved, replace(encoder, model=permuted), encoder)]
    np.testing.assert_allclose(maps[0], maps[1], atol=1e-6)
    assert np.abs(maps[0] - maps[2]).max() > 1e-6 or (orders[0] == np.arange(encoder.heads)).all()
