"""Chapter 07: the functions of its page and the fast helper against slow loops, and its sentences against the recorded numbers."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from scipy.special import rel_entr
from sklearn.manifold import smacof

from helpers import attention, controls, corpora, results, tokens
from helpers.corpora.readers import Segment
from helpers.measurements import divergence, surface
from helpers.measurements.divergence import LARGEST, Divergences

TEXTS = [
    "The cat sat on the mat.",
    "A longer sentence, with a comma and a few more words.",
    "Short.",
    "One two three.",
]
SEGMENTS = [Segment(text, TEXTS[(n + 1) % 4], n // 2, "t") for n, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def page(methods):
    return methods("07_divergence_map")


def softmax_maps(heads=5, queries=7, keys=7, sharp=3.0):
    return (torch.randn(heads, queries, keys, generator=torch.Generator().manual_seed(0)) * sharp).softmax(-1)


def relative_entropies(p, q) -> float:
    """The divergence by its other definition: the mean relative entropy to the middle."""
    middle = (p + q) / 2
    return max(0.0, (rel_entr(p, middle) + rel_entr(q, middle)).sum() / 2)


@st.composite
def distributions(draw):
    """Two rows of one length, many of their weights exactly 0."""
    size = draw(st.integers(2, 12))
    weights = st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1.0)), min_size=size, max_size=size)
    rows = np.array([draw(weights.filter(lambda row: sum(row) > 1e-6)) for _ in range(2)])
    return rows / rows.sum(-1, keepdims=True)


@settings(max_examples=30, deadline=None)
@given(distributions())
@example(np.array([[1.0, 0], [0, 1]]))
def test_the_divergence_is_the_mean_relative_entropy_to_the_middle(page, rows):
    p, q = torch.tensor(rows)
    found = float(page.js(p, q))
    assert found == pytest.approx(relative_entropies(*rows), abs=1e-12) and -1e-12 < found < LARGEST + 1e-12
    assert found == page.js(q, p) and page.js(p, p) == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("shape", [(2, 1, 1), (5, 7, 7), (3, 40, 40), (4, 3, 130)])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_fast_helper_is_the_slow_definition(shape, threads):
    maps, before = softmax_maps(*shape), torch.get_num_threads()
    if shape[-1] > 1:  # a head with all its attention on the first token: zeros, exactly
        maps[0, :, 1:], maps[0, :, 0] = 0, 1
    try:
        torch.set_num_threads(threads)
        found = divergence.divergences(maps)
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(found, found.T) and (found.diagonal() == 0).all() and (found >= 0).all()
    rows, kernel = maps.double().numpy(), divergence.mixtures(maps, torch).numpy()
    assert np.allclose(kernel, divergence.mixtures(maps.numpy(), np), rtol=1e-5, atol=1e-4)
    for k, other in combinations(range(shape[0]), 2):
        slow = sum(map(relative_entropies, rows[k], rows[other]))
        assert found[k, other] == pytest.approx(slow, rel=2e-5, abs=1e-9)


def test_the_helper_keeps_its_digits_where_rows_are_long_or_nearly_even(page, minilm):
    text = [s.texts for s in corpora.segments(corpora.read("encyclopedia"))[:1]]
    batch = tokens.encode(minilm, text, max_length=128, truncate=True)
    real = attention.maps(minilm, batch)[:, 0].flatten(0, 1)[::4].contiguous()
    for maps in (real, softmax_maps(18, 128, 128, sharp=0.1)):
        slow = page.compare(maps[None], None).numpy()
        assert np.allclose(divergence.divergences(maps) / 128, slow, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
def test_divergences_of_texts_are_means_over_their_tokens(small_encoder, page, family):
    encoder = small_encoder(family)
    every = divergence.measure(encoder, SEGMENTS)
    ordinary = divergence.measure(encoder, SEGMENTS, look=page.ordinary)
    shuffled = divergence.measure(encoder, SEGMENTS, shuffled=True)
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
        assert ordinary.tokens[number] == len(kept)
        deal = controls.shuffling(batch)
        dealt = torch.cat([deal(layer, weights)[0] for layer, weights in enumerate(layers)])
        dealt = squareform(divergence.divergences(dealt), checks=False)
        assert np.allclose(shuffled.sums[number], dealt, rtol=1e-3, atol=1e-4)
        total, places = total + slow, places + len(maps[0])
    assert np.allclose(squareform(every.mean()), total / places, rtol=1e-4)
    assert every.documents.tolist() == [0, 0, 1, 1]
    assert np.allclose(every.first(2).mean(), every.mean(slice(2)))


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
    close, matrix, known = divergence.closeness(of, labels), of.mean(), np.flatnonzero(labels >= 0)
    pairs = [(matrix[i, j], labels[i] == labels[j]) for i, j in combinations(known, 2)]
    within, between = ([d for d, same in pairs if same == wanted] for wanted in (True, False))
    assert close.ratio.value == pytest.approx(np.mean(within) / np.mean(between))
    assert close.ratio.low < close.ratio.value < close.ratio.high
    ranks = {d: r for r, d in enumerate(sorted(d for d, _ in pairs), 1)}
    higher = np.mean([ranks[d] for d in between]) - np.mean([ranks[d] for d in within])
    assert close.r == pytest.approx(higher / (len(pairs) / 2))
    nearest = [min((m for m in known if m != k), key=lambda m, k=k: matrix[k, m]) for k in known]
    assert close.nearest == pytest.approx(np.mean(labels[known] == labels[nearest]))
    own = matrix[np.ix_(known, known)], labels[known]
    assert page.ratio(*own) == pytest.approx(close.ratio.value) and page.p_value(*own) == close.p


def test_planted_layers_are_found_and_chance_is_not(page):
    planted, layer = random_divergences(4, 5, shift=0.2), np.repeat(range(4), 5)
    assert page.p_value(planted.mean(), layer, times=499) == 1 / 500
    blank = [random_divergences(3, 4, 4, seed=seed).mean() for seed in range(60)]
    ps = [page.p_value(matrix, np.repeat(range(3), 4), times=99) for matrix in blank]
    assert sum(p <= 0.05 for p in ps) <= 9, "5 % of 60 are 3; more than 9 would happen once in 1,000"
    assert 0.35 < np.mean(ps) < 0.65


def test_shuffles_stay_in_their_group_and_labels_that_ask_nothing_are_refused():
    groups = np.array([0, 1, 0, 2, 1, 1])
    orders = divergence.shuffles(groups, 0)
    assert (np.sort(orders, axis=1) == np.arange(6)).all() and (groups[orders] == groups).all()
    assert len({tuple(order) for order in orders.tolist()}) == 2 * 6, "all orders that there are"
    for labels in (np.arange(12), np.zeros(12, int), np.full(12, -1)):
        with pytest.raises(ValueError, match="pairs of heads with the same label"):
            divergence.closeness(random_divergences(), labels)


def test_layers_are_compared_as_loops_do(page):
    matrix = random_divergences(4, 3).mean()
    grid, every = page.by_layers(matrix, 4), [matrix[i, j] for i, j in combinations(range(12), 2)]
    for a, b in np.ndindex(4, 4):
        pairs = [matrix[i, j] for i in range(12) for j in range(12) if i != j and (i // 3, j // 3) == (a, b)]
        assert grid[a, b] == pytest.approx(np.mean(pairs) / np.mean(every))


@pytest.mark.parametrize("shift", [0.0, 0.05])
def test_the_regression_finds_what_a_layer_adds(page, shift):
    """Divergences made of a property of the heads that goes with their layer, of closeness within layers, and of noise."""
    rng, layer = np.random.default_rng(0), np.repeat(range(4), 6)
    x = layer + rng.normal(size=24)
    pairs = [0.5 + 0.1 * abs(x[i] - x[j]) - shift * (layer[i] == layer[j]) for i, j in combinations(range(24), 2)]
    pairs = np.array(pairs) + rng.normal(0, 0.01, len(pairs))
    seen = page.columns([x, np.zeros(24)], layer)
    for row, (i, j) in zip(seen, combinations(range(24), 2), strict=True):
        assert np.allclose(row, [1, x[i] + x[j], abs(x[i] - x[j]), x[i] * x[j], 0, 0, 0, layer[i] == layer[j]])
    weight = np.linalg.pinv(seen)[-1] @ pairs
    assert weight == pytest.approx(np.linalg.lstsq(seen, pairs)[0][-1]) == pytest.approx(-shift, abs=0.005)
    p = page.p_of_last(pairs, seen, times=199)
    assert p == 1 / 200 if shift else p > 0.01


def test_maps_of_the_page_and_of_the_library(page):
    points = np.random.default_rng(0).normal(size=(12, 2)) * [2, 1]
    distances, moved = squareform(pdist(points)), points + np.random.default_rng(1).normal(size=points.shape)
    flat = divergence.classical(distances)
    assert np.allclose(squareform(pdist(flat)), distances) and divergence.stress(distances, flat) < 1e-7
    shown = [(np.linalg.norm(moved[i] - moved[j]), distances[i, j]) for i, j in combinations(range(12), 2)]
    slow = np.sqrt(sum((a - b) ** 2 for a, b in shown) / sum(a**2 for a, _ in shown))
    assert divergence.stress(distances, moved) == pytest.approx(slow)
    matrix, start = (
        divergence.divergences(softmax_maps(15, 30, 30)) / 30,
        np.random.default_rng(2).normal(size=(15, 2)),
    )
    start -= start.mean(0)
    after, _ = smacof(matrix, init=start, n_init=1, max_iter=1, normalized_stress=False)
    assert np.allclose(page.move(start, matrix), after)
    drawn = divergence.place(matrix)
    assert divergence.stress(matrix, drawn) <= divergence.stress(matrix, divergence.classical(matrix))
    assert np.allclose(drawn.mean(0), 0) and drawn.std(0)[0] >= drawn.std(0)[1]
    for k, row in enumerate(page.near(distances, 3)):
        others = sorted((m for m in range(12) if m != k), key=lambda m, k=k: distances[k, m])
        assert set(np.flatnonzero(row)) == set(others[:3])


def test_a_behaviour_is_the_place_with_a_third_or_breadth(page):
    shares = dict.fromkeys(page.PLACES, np.zeros((1, 4)))
    shares |= {"cls": np.array([[0.5, 0.3, 0.4, 0.2]]), "sep": np.array([[0.2, 0.32, 0.45, 0.7]])}
    patterns = shares | {"entropy": np.array([[1.0, 1, 1, 2.71]]), "uniform": 3.0}
    assert page.behaviour(patterns).tolist() == ["cls", "", "sep", "broad"]


BOOK, FULL, MPNET = ("minilm", "book"), ("minilm", "full"), ("mpnet", "full")
INNER = "layer, inner layers"
CLAIMS = [  # run, network, quantity, what it is of: the number and, where the page prints it, its interval
    (BOOK, "", "closeness", "layer", "0.790 [0.788, 0.791]"),
    (BOOK, "@shuffled", "closeness", "layer", "0.977"),
    (BOOK, "", "closeness", INNER, "0.964 [0.963, 0.965]"),
    (BOOK, "", "closeness_p", INNER, "0.03"),
    (BOOK, "@shuffled", "closeness", INNER, "1.000"),
    (BOOK, "", "layer_gap", "all tokens", "-0.064"),
    (BOOK, "", "layer_gap", "alike in both", "-0.024 [-0.024, -0.023]"),
    (BOOK, "@shuffled", "layer_gap", "alike in both", "-0.005"),
    (BOOK, "", "layer_gap", "ordinary tokens", "-0.040"),
    (BOOK, "", "closeness", f"{INNER}, ordinary tokens", "0.965"),
    (BOOK, "", "closeness_p", f"{INNER}, ordinary tokens", "0.05"),
    (BOOK, "", "layer_gap_left", None, "0.37"),
    (BOOK, "", "closeness", "shared behaviour", "0.630"),
    (BOOK, "", "closeness", "layer, shared behaviour", "0.648"),
    (BOOK, "", "closeness_p", "number", "0.84"),
    (BOOK, "", "layer_gap_held_p", None, "0.0005"),
    (BOOK, "@random", "layer_gap_held_p", None, "0.94"),
    (BOOK, "", "layer_gap_held_beyond_shuffled", None, "-0.019"),
    (MPNET, "", "layer_gap_held_beyond_shuffled", None, "-0.040"),
    (BOOK, "", "map_kept", "least", "0.49"),
    (BOOK, "", "map_kept", "most", "0.56"),
    (MPNET, "", "map_kept", "least", "0.39"),
    (MPNET, "", "map_kept", "most", "0.46"),
    (MPNET, "", "closeness", INNER, "0.73"),
    (MPNET, "", "closeness", "shared behaviour", "0.540"),
    (MPNET, "", "closeness", "layer, shared behaviour", "0.661"),
    (MPNET, "", "nearest_alike", "shared behaviour", "0.98"),
    (MPNET, "", "nearest_alike", "layer", "0.31"),
    (MPNET, "", "closeness", "number", "0.756 [0.754, 0.758]"),
    (MPNET, "", "nearest_alike", "number", "0.54"),
]


def recorded(run):
    return results.recorded("divergence_map", model=run[0], profile=run[1])


@pytest.mark.parametrize(("run", "network", "quantity", "of", "printed"), CLAIMS)
def test_numbers_of_the_text_are_recorded(run, network, quantity, of, printed):
    row = recorded(run).row(quantity, network=network, of=of)
    digits = len(printed.split()[0].partition(".")[2])
    ends = f" [{row.low:.{digits}f}, {row.high:.{digits}f}]" if "[" in printed else ""
    assert f"{row.value:.{digits}f}{ends}" == printed


@pytest.mark.parametrize("run", [BOOK, FULL, MPNET])
def test_what_the_text_says_of_every_run(run):
    said, ends = recorded(run), recorded(run).number("closeness_of_ends", of=None)
    assert said.number("closeness_p", of="layer").value < 0.001
    assert said.number("closeness", of="layer", network="@random").low > 0.99, "as if layers did not matter"
    for of in ("all tokens", "ordinary tokens"):
        assert said.number("layer_ratio_beyond_shuffled", of=of).high < 0
    left = said.number("layer_gap_left", of=None)
    assert said.number("layer_gap_held_beyond_shuffled").high < 0 and said.number("layer_gap_held_p").value < 0.001
    assert said.number("map_kept", of="least").value > 0.39 and said.number("map_kept", of="most").value < 0.6
    assert said.number("map_disparity").value < 0.01
    if run == MPNET:
        assert abs(ends.value) < 0.01 and left.low > 0.5, "the ends do not matter; more than half is left"
        assert said.number("closeness_p", of="number").value < 0.001
        assert said.row("nearest_alike", of="number").control == pytest.approx(0.06, abs=0.005)
        lead = [said.number("closeness", of=of) for of in ("shared behaviour", "layer, shared behaviour")]
        assert lead[0].high < lead[1].low, "behaviour is clearly ahead"
        of = [f"{of}, ordinary tokens" for of in ("behaviour", "layer, these heads", "number", "layer")]
        behaviour, its_layer, number, layer = (said.number("closeness", of=name) for name in of)
        assert behaviour.high < its_layer.low and number.high < layer.low, "and so they are on ordinary tokens"
        nearest = [said.row("nearest_alike", of=name).value for name in of[2:]]
        assert nearest[0] > nearest[1]
    else:
        assert ends.low > 0.15 and left.high < 0.4 and said.number("closeness_p", of="number").value > 0.1


def matrix_of(run, network=""):
    values = recorded(run).rows("divergence", network=network).value.to_numpy()
    count = int(len(values) ** 0.5) + 1
    matrix = np.zeros((count, count))
    matrix[~np.eye(count, dtype=bool)] = values
    return matrix


def test_what_the_grids_show(page):
    """The contrast of the ends in minilm; two blocks in mpnet; and in which layers the nearest head is of the same layer."""
    matrices = {run: matrix_of(run) for run in (BOOK, FULL, MPNET)}
    for run in (BOOK, FULL):
        grid = page.by_layers(matrices[run], 6)
        assert grid[0, 1:3].min() > 1.15 and grid[5, 1:3].min() > 1.1, "ends are far from layers 2 and 3"
        assert grid[3, 4] - grid[3, 3] < 0.03, "layer 4 is as near to layer 5 as to itself"
        assert (
            page.ratio(*some_layers(matrices[run], 6, 2, 3))
            > 1
            > 0.97
            > page.ratio(*some_layers(matrices[run], 6, 4, 5))
        )
        assert matrix_of(run, "@random").sum() < matrices[run].sum() / 50, "its heads hardly differ"
    blocks = page.by_layers(matrices[MPNET], 12)
    assert blocks[1:5, 1:5].max() < 1 and blocks[5:11, 5:11].max() < 0.9 < 1.05 < blocks[1:4, 6:11].min()
    for ends, printed in (((2, 5), "0.92"), ((6, 11), "0.93")):
        block = some_layers(matrices[MPNET], 12, *ends)
        assert f"{page.ratio(*block):.2f}" == printed and page.p_value(*block, times=499) < 0.02
    nearest = (matrices[BOOK] + np.diag(np.full(72, np.inf))).argmin(1) // 12 == np.repeat(range(6), 12)
    assert nearest.reshape(6, 12).sum(1).tolist() == [10, 3, 1, 7, 6, 11]


def some_layers(matrix, layers, first, last):
    layer = np.repeat(np.arange(1, layers + 1), len(matrix) // layers)
    kept = (layer >= first) & (layer <= last)
    return matrix[np.ix_(kept, kept)], layer[kept]


@pytest.mark.parametrize("run", [BOOK, FULL, MPNET])
def test_behaviours_lie_in_blocks_of_layers(page, run):
    patterns = surface.statistics_of(results.recorded("surface_patterns", model=run[0], profile=run[1]))
    kinds = page.behaviour(patterns).reshape(patterns["cls"].shape)
    layers = {kind: set((np.nonzero(kinds == kind)[0] + 1).tolist()) for kind in np.unique(kinds)}
    assert layers["broad"] == {1} and layers["cls"] == {2, 3, 4, 5}
    if run == MPNET:
        assert layers["stop"] == {6, 7, 8, 9, 10, 11}
        return
    assert all((kinds == kind).sum() == 1 for kind in set(layers) - {"", "broad", "cls"})
    kept = np.isin(kinds, ["broad", "cls"]).ravel()
    matrix, first = matrix_of(run)[np.ix_(kept, kept)], np.repeat(range(6), 12)[kept] == 0
    told = recorded(run).number("closeness", of="shared behaviour").value
    assert page.ratio(matrix, first) == pytest.approx(told, abs=1e-4), "layer 1 or not is the same label"


def test_breadth_explains_little_in_mpnet(page):
    patterns = surface.statistics_of(results.recorded("surface_patterns", model="mpnet", profile="full"))
    layer, pairs = np.repeat(range(12), 12), squareform(matrix_of(MPNET), checks=False)
    held = [[], [patterns["entropy"].ravel()], [patterns["cls"].ravel()]]
    nothing, breadth, sink = ((np.linalg.pinv(page.columns(known, layer)) @ pairs)[-1] for known in held)
    assert 0.9 < breadth / nothing < 1 and 0.55 < sink / nothing < 0.65, "almost nothing; two fifths"
