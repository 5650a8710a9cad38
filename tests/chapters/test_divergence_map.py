"""Chapter 07: divergences against scipy and slow loops, the map and the tests against known answers, claims against records."""

import warnings
from dataclasses import replace
from inspect import signature
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.spatial import procrustes
from scipy.spatial.distance import pdist, squareform
from scipy.special import rel_entr
from sklearn.manifold import MDS

from helpers import attention, controls, corpora, encoders, results, stats, tokens
from helpers.chapters import divergence_map
from helpers.chapters.divergence_map import KINDS, LARGEST, Divergences
from helpers.corpora.readers import Segment
from helpers.measurements import surface
from helpers.stats import Estimate
from helpers.tokens import EncodedText


def softmax_maps(heads=5, queries=7, keys=7, sharp=3.0, seed=0) -> torch.Tensor:
    scores = torch.randn(heads, queries, keys, generator=torch.Generator().manual_seed(seed)) * sharp
    return scores.softmax(-1)


@st.composite
def distributions(draw, count=2):
    """Rows of one length, many of their weights exactly 0."""
    size = draw(st.integers(2, 12))
    weights = st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1.0)), min_size=size, max_size=size)
    rows = np.array([draw(weights.filter(lambda row: sum(row) > 1e-6)) for _ in range(count)])
    return rows / rows.sum(-1, keepdims=True)


def relative_entropies(p, q) -> float:
    """The divergence as scipy's ``jensenshannon`` has it before it takes the root: of rows equal up to rounding the sum may
    be -1e-17, whose root is no number."""
    middle = (p + q) / 2
    return max(0.0, (rel_entr(p, middle) + rel_entr(q, middle)).sum() / 2)


@settings(max_examples=30, deadline=None)
@given(distributions())
@example(np.nextafter([np.arange(1, 6) / 15] * 2, [[0], [1]]))
def test_divergence_is_the_mean_relative_entropy_to_the_middle(rows):
    p, q = rows
    found = float(divergence_map.divergence(p, q))
    assert found == pytest.approx(relative_entropies(p, q), abs=1e-12)
    assert found == divergence_map.divergence(q, p) and 0 <= found <= LARGEST + 1e-12
    assert divergence_map.divergence(p, p) == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("shape", [(2, 1, 1), (5, 7, 7), (3, 40, 40), (4, 3, 130)])
@pytest.mark.parametrize("threads", [1, 2])
def test_all_pairs_are_those_of_the_slow_definition(shape, threads):
    maps = softmax_maps(*shape)
    if shape[-1] > 1:
        maps[0, :, 1:] = 0  # a head with all its attention on the first token: zeros, exactly
        maps[0, :, 0] = 1
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        found = divergence_map.divergences(maps)
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(found, found.T) and (found.diagonal() == 0).all() and (found >= 0).all()
    rows = maps.double().numpy()
    for k, other in combinations(range(shape[0]), 2):
        slow = sum(map(relative_entropies, rows[k], rows[other]))
        assert found[k, other] == pytest.approx(slow, rel=2e-5, abs=1e-9)


def test_digits_survive_on_long_rows_and_on_heads_that_hardly_differ(minilm):
    """128 tokens: 1e-5 relative to float64, for a trained model's maps and for nearly even ones."""
    texts = [s.texts for s in corpora.segments(corpora.read("encyclopedia"))[:1]]
    batch = tokens.encode(minilm, texts, max_length=128, truncate=True)
    real = attention.maps(minilm, batch)[:, 0].flatten(0, 1)[::4].contiguous()
    for maps in (real, softmax_maps(18, 128, 128, sharp=0.1)):
        found, exact = divergence_map.divergences(maps), maps.double().numpy()
        for k, other in combinations(range(0, 18, 2), 2):
            slow = divergence_map.divergence(exact[k], exact[other]).sum()
            assert found[k, other] == pytest.approx(slow, rel=1e-5)


def test_torch_and_numpy_share_the_kernel():
    maps = softmax_maps(6, 5, 8)
    maps[2] = torch.eye(8)[:5]
    ours = divergence_map.mixtures(maps.numpy(), np)
    assert np.allclose(divergence_map.mixtures(maps, torch).numpy(), ours, rtol=1e-5)
    y = 8 * (maps[1] + maps[2]).double() / 2
    assert ours[1, 2] == pytest.approx(float(torch.xlogy(y, y).sum() / np.log(2)), rel=1e-5) and ours[2, 1] == 0


TEXTS = [
    "The cat sat on the mat.",
    "A longer sentence, with a comma and a few more words.",
    "Short.",
    "One two three.",
]
SEGMENTS = [Segment(text, TEXTS[(n + 1) % 4], n // 2, "t") for n, text in enumerate(TEXTS)]


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
def test_divergences_of_a_corpus_are_means_over_its_tokens(small_encoder, family):
    encoder = small_encoder(family)
    found = divergence_map.measure(encoder, SEGMENTS)
    count = encoder.layers * encoder.heads
    assert found.sums.shape == (4, count * (count - 1) // 2)
    assert found.documents.tolist() == [0, 0, 1, 1]
    assert (found.tokens > 0).all()
    total, places = 0, 0
    for segment in SEGMENTS:
        batch = tokens.encode(encoder, [segment.texts])
        maps = attention.maps(encoder, batch)[:, 0].flatten(0, 1).double().numpy()
        total = total + np.array([divergence_map.divergence(p, q).sum() for p, q in combinations(maps, 2)])
        places += maps.shape[1]
    assert np.allclose(squareform(found.mean()), total / places, rtol=1e-4)
    assert found.overall == pytest.approx((total / places).mean(), rel=1e-4)
    assert found.layer[found.heads] == 1 and found.number[found.heads] == 0 and found.name(found.heads + 1) == (1, 1)


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_ordinary_tokens_alone_are_the_maps_without_special_ones(small_encoder, family):
    encoder = small_encoder(family)
    whole, found = divergence_map.measure_both(encoder, SEGMENTS)
    assert np.allclose(whole.sums, divergence_map.measure(encoder, SEGMENTS).sums, rtol=1e-4, atol=1e-5)
    for number, segment in enumerate(SEGMENTS):
        batch = tokens.encode(encoder, [segment.texts])
        kept = np.flatnonzero(~batch.special[0].numpy())
        maps = attention.maps(encoder, batch)[:, 0].flatten(0, 1).double().numpy()
        rows = [[row[kept] / row[kept].sum() for row in head[kept]] for head in maps]
        slow = [sum(map(relative_entropies, p, q)) for p, q in combinations(rows, 2)]
        assert np.allclose(found.sums[number], slow, rtol=1e-3, atol=1e-4) and found.tokens[number] == len(kept)
    some = found.some(slice(1, 3))
    assert (
        np.allclose(some.mean(), found.mean(slice(1, 3))) and some.documents.tolist() == found.documents[1:3].tolist()
    )


def test_a_row_that_looks_at_special_tokens_only_is_even(small_encoder):
    encoder = small_encoder("bert")
    text = EncodedText.of(tokens.encode(encoder, ["One two three."]), 0, "One two three.")
    maps = torch.zeros(encoder.layers, encoder.heads, *[len(text.tokens)] * 2)
    maps[..., 0] = 1
    even = divergence_map.ordinary(maps, text)
    assert torch.allclose(even, torch.full_like(even, 1 / (len(text.tokens) - 2)))


def test_shuffled_maps_are_those_of_the_control(small_encoder):
    encoder = small_encoder("bert")
    found, _ = divergence_map.measure_both(encoder, SEGMENTS, shuffled=True)
    for number, segment in enumerate(SEGMENTS):
        batch = replace(tokens.encode(encoder, [segment.texts]), index=(number,))
        deal = controls.shuffling(batch)
        maps = torch.cat([deal(layer, m)[0] for layer, m in enumerate(attention.maps(encoder, batch))])
        slow = divergence_map.divergences(maps)
        assert np.allclose(found.sums[number], squareform(slow, checks=False), rtol=1e-3, atol=1e-4)


def random_divergences(layers=3, heads=4, segments=30, shift=0.0, seed=0) -> Divergences:
    """Random divergences in which pairs of one layer are closer by ``shift``."""
    rng = np.random.default_rng(seed)
    count = layers * heads
    layer = np.repeat(np.arange(layers), heads)
    same = (layer[:, None] == layer)[np.triu_indices(count, 1)]
    base = rng.uniform(0.2, 0.5, len(same)) - shift * same
    tokens = rng.integers(10, 100, segments)
    sums = (base + rng.normal(0, 0.01, (segments, len(same)))) * tokens[:, None]
    return Divergences(layers, heads, sums.astype(np.float32), tokens, np.arange(segments) // 2)


def test_means_and_intervals_over_documents():
    found = random_divergences()
    some = np.array([2, 5, 6])
    slow = sum(found.sums[s].astype(float) for s in some) / sum(found.tokens[s] for s in some)
    assert np.allclose(squareform(found.mean(some)), slow)
    weights = np.full(found.sums.shape[1], 1 / found.sums.shape[1])
    estimate = found.estimate(weights, seed=3)
    assert estimate.value == pytest.approx(found.overall) and estimate.low < estimate.value < estimate.high
    counts = stats.resampled(found.documents, seed=3)[1:]  # segments of a document are drawn together
    by_hand = [(c @ found.sums.astype(float)).mean() / (c @ found.tokens) for c in counts[:5]]
    assert np.allclose(estimate.replicates[:5], by_hand)
    both = found.estimate(np.stack([weights, 2 * weights], axis=1), seed=3)
    assert np.allclose(both.low, [estimate.low, 2 * estimate.low])


def points_in_plane(count=12, seed=0):
    points = np.random.default_rng(seed).normal(size=(count, 2)) * [2, 1]
    return points, squareform(pdist(points))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(4, 20))
def test_distances_in_the_plane_are_recovered_exactly(seed, count):
    points, distances = points_in_plane(count, seed)
    found = divergence_map.classical(distances)
    assert np.allclose(squareform(pdist(found)), distances, atol=1e-8)
    assert divergence_map.stress(distances, found) == pytest.approx(0, abs=1e-8)
    assert divergence_map.disparity(points, found) == pytest.approx(0, abs=1e-12)


def test_stress_is_kruskals():
    points, distances = points_in_plane(6)
    points[0] += 0.5
    shown = [(np.linalg.norm(points[i] - points[j]), distances[i, j]) for i, j in combinations(range(6), 2)]
    slow = np.sqrt(sum((a - b) ** 2 for a, b in shown) / sum(a**2 for a, _ in shown))
    assert divergence_map.stress(distances, points) == pytest.approx(slow)


def test_the_map_is_the_best_of_its_starts_and_as_good_as_scikit_learns():
    distances = divergence_map.divergences(softmax_maps(15, 30, 30)) / 30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = divergence_map.embed(distances, restarts=4, seed=1)
        again = divergence_map.embed(distances, restarts=4, seed=1)
    assert np.array_equal(drawn.points, again.points), "same seed, same map"
    assert len(drawn.starts) == len(drawn.disparities) == len(drawn.kept) == 5
    assert drawn.stress == drawn.starts.min() == pytest.approx(divergence_map.stress(distances, drawn.points))
    assert drawn.disparities[drawn.starts.argmin()] == pytest.approx(0, abs=1e-9) and drawn.disparities.max() <= 1
    assert drawn.starts[0] <= divergence_map.stress(distances, divergence_map.classical(distances))
    options = {"n_init": 4, "max_iter": 1000, "eps": 1e-7, "random_state": 0}
    if "init" in signature(MDS).parameters:
        library = MDS(metric="precomputed", init="random", **options)
    else:  # as scikit-learn 1.6 calls it
        library = MDS(dissimilarity="precomputed", **options)
    assert drawn.stress <= divergence_map.stress(distances, library.fit_transform(distances)) + 0.005
    assert np.allclose(drawn.points.mean(0), 0) and drawn.points.std(0)[0] >= drawn.points.std(0)[1]


def test_disparity_ignores_what_a_map_does_not_show():
    points, _ = points_in_plane()
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    assert divergence_map.disparity(points, 3 * points @ turn * [1, -1] @ turn + 2) == pytest.approx(0, abs=1e-12)
    other = np.random.default_rng(5).normal(size=points.shape)
    found = divergence_map.disparity(points, other)
    assert found > 0.3 and found == pytest.approx(procrustes(points, other)[2])


def test_neighbours_kept():
    points, distances = points_in_plane(10)
    assert divergence_map.neighbours_kept(distances, points, count=3) == 1
    line, moved = (np.stack([x, np.zeros(4)], axis=1) for x in ([0.0, 1, 10, 12], [0.0, 30, 10, 12]))
    kept = divergence_map.neighbours_kept(squareform(pdist(line)), moved, count=1)
    assert kept == 0.5, "2 and 3 are still each other's nearest, 0 and 1 are not"


def slow_closeness(matrix, labels):
    pairs = [
        (matrix[i, j], labels[i] == labels[j])
        for i, j in combinations(range(len(labels)), 2)
        if min(labels[i], labels[j]) >= 0
    ]
    within, between = ([d for d, same in pairs if same is flag or bool(same) == flag] for flag in (True, False))
    ranks = {d: r for r, d in enumerate(sorted(d for d, _ in pairs), 1)}
    r = (np.mean([ranks[d] for d in between]) - np.mean([ranks[d] for d in within])) / (len(pairs) / 2)
    return np.mean(within), np.mean(between), r


@pytest.mark.parametrize("labels", [[0] * 4 + [1] * 4 + [2] * 4, [0, 1, 0, 1, -1, -1, 2, 2, 2, 0, 0, -1]])
def test_closeness_is_what_loops_count(labels):
    found, labels = random_divergences(shift=0.05), np.array(labels)
    one = divergence_map.closeness(found, labels, permutations=99)
    matrix = found.mean()
    within, between, r = slow_closeness(matrix, labels)
    assert (one.within.value, one.between.value) == pytest.approx((within, between))
    assert one.ratio.value == pytest.approx(within / between) and one.ratio.low < one.ratio.value < one.ratio.high
    assert one.r == pytest.approx(r)
    kept = np.flatnonzero(labels >= 0)
    nearest = [min((m for m in kept if m != k), key=lambda m, k=k: matrix[k, m]) for k in kept]
    assert one.nearest == pytest.approx(np.mean([labels[k] == labels[m] for k, m in zip(kept, nearest, strict=True)]))
    rng_orders = divergence_map.shuffles(np.zeros(len(kept), int), 99, 0)
    means = [slow_closeness(matrix[np.ix_(kept, kept)], labels[kept][order])[0] for order in rng_orders]
    assert one.p == pytest.approx((1 + sum(m <= within + 1e-9 for m in means)) / 100)
    assert one.expected == pytest.approx(np.mean(means))


def test_planted_layers_are_found_and_chance_is_not():
    planted = random_divergences(4, 5, shift=0.2)
    assert divergence_map.closeness(planted, planted.layer, permutations=499).p == pytest.approx(1 / 500)
    ps = []
    for seed in range(60):
        found = random_divergences(3, 4, 4, seed=seed)
        ps.append(divergence_map.closeness(found, found.layer, permutations=99).p)
    assert sum(p <= 0.05 for p in ps) <= 9, "5 % of 60 are 3; more than 9 would happen once in 1,000"
    assert 0.35 < np.mean(ps) < 0.65


def test_what_a_held_label_explains_is_not_found_again():
    """Layers follow behaviour, and only behaviour matters: with it held, layers do not."""
    behaviour = np.repeat([0, 0, 1, 1], 6)
    same = (behaviour[:, None] == behaviour)[np.triu_indices(24, 1)]
    free, held = [], []
    for seed in range(30):
        base = np.random.default_rng(seed).uniform(0.2, 0.5, len(same)) - 0.15 * same
        found = Divergences(4, 6, np.tile(base, (2, 1)).astype(np.float32), np.ones(2, int), np.arange(2))
        free.append(divergence_map.closeness(found, found.layer, permutations=99))
        held.append(divergence_map.closeness(found, found.layer, among=behaviour, permutations=99))
    assert np.mean([one.p <= 0.05 for one in free]) > 0.9
    assert sum(one.p <= 0.05 for one in held) <= 6, "5 % of 30 are 1.5; more than 6 would happen once in 1,000"
    assert all(a.expected > b.expected for a, b in zip(free, held, strict=True))


def test_shuffles_stay_in_their_group():
    groups = np.array([0, 1, 0, 2, 1, 1])
    orders = divergence_map.shuffles(groups, 50, 0)
    assert (np.sort(orders, axis=1) == np.arange(6)).all() and (groups[orders] == groups).all()
    assert len({tuple(o) for o in orders.tolist()}) > 5


def test_labels_that_ask_nothing_are_refused():
    found = random_divergences()
    for labels in (np.arange(12), np.zeros(12, int), np.full(12, -1)):
        with pytest.raises(ValueError, match="pairs of heads with the same label"):
            divergence_map.closeness(found, labels)
    assert set(divergence_map.comparisons(found, np.full(12, -1))) == {"layer", "number"}
    assert set(divergence_map.comparisons(found, np.repeat([0, 1, -1], 4))) == {
        "layer",
        "layer, these heads",
        "number",
        "behaviour",
        "layer, behaviour held",
    }


def test_layers_apart_is_what_loops_count():
    found = random_divergences(4, 3)
    apart, matrix = divergence_map.layers_apart(found, permutations=199), found.mean()
    for gap in range(4):
        pairs = [
            matrix[i, j] for i, j in combinations(range(12), 2) if abs(int(found.layer[i]) - found.layer[j]) == gap
        ]
        assert apart.mean.value[gap] == pytest.approx(np.mean(pairs))
        assert apart.null[0, gap] < apart.null[1, gap]
    for layer in range(4):
        inside = [matrix[i, j] for i, j in combinations(np.flatnonzero(found.layer == layer), 2)]
        assert apart.each.value[layer] == pytest.approx(np.mean(inside))
    mean, null, each, null_each = apart.relative(2.0)
    assert np.allclose(mean.value, apart.mean.value / 2) and np.allclose(null, apart.null / 2)
    assert np.allclose(each.low, apart.each.low / 2) and np.allclose(null_each, apart.null_each / 2)
    with pytest.raises(ValueError, match="single head"):
        divergence_map.layers_apart(Divergences(2, 1, np.ones((1, 1), np.float32), np.ones(1, int), np.zeros(1, int)))


def test_a_model_with_nothing_to_compare_is_refused(small_encoder):
    divergence_map.refuse_small(small_encoder("bert", num_hidden_layers=2, num_attention_heads=2))
    for layers, heads in ((1, 2), (2, 1)):
        small = small_encoder("bert", num_hidden_layers=layers, num_attention_heads=heads)
        with pytest.raises(
            encoders.EncoderError, match=f"has {layers} x {heads} heads.* at least two layers of at least two"
        ):
            divergence_map.refuse_small(small)


def with_properties(shift, seed=0):
    """Divergences made of one property of the heads, which goes with their layer, of closeness within layers, and of noise."""
    found = random_divergences(layers=4, heads=6, seed=seed)
    rng = np.random.default_rng(seed)
    value = found.layer + rng.normal(size=len(found.layer))
    one, other = np.triu_indices(len(value), 1)
    pairs = 0.5 + 0.1 * np.abs(value[one] - value[other]) - shift * (found.layer[one] == found.layer[other])
    pairs = pairs + rng.normal(0, 0.01, len(pairs))
    noise = rng.normal(0, 0.002, found.sums.shape)
    return replace(found, sums=((pairs + noise) * found.tokens[:, None]).astype(np.float32)), value


@pytest.mark.parametrize("shift", [0.0, 0.05])
def test_what_a_property_explains_is_that_of_a_least_squares_fit(shift):
    found, value = with_properties(shift)
    held = divergence_map.explained(found, {"x": value}, permutations=199)
    pairs, (one, other) = squareform(found.mean()), np.triu_indices(len(value), 1)
    same = found.layer[one] == found.layer[other]
    columns = [
        np.ones(len(pairs)),
        value[one] + value[other],
        abs(value[one] - value[other]),
        value[one] * value[other],
    ]
    fit = np.linalg.lstsq(np.stack(columns, 1), pairs, rcond=None)
    assert held.r2.value == pytest.approx(1 - fit[1][0] / ((pairs - pairs.mean()) ** 2).sum(), rel=1e-6)
    assert np.allclose(held.predicted, np.stack(columns, 1) @ fit[0])
    last = np.linalg.lstsq(np.stack([*columns, same], 1), pairs, rcond=None)[0][-1]
    assert held.held.value == pytest.approx(last, rel=1e-6) and last == pytest.approx(-shift, abs=0.005)
    assert -0.05 > held.gap.value == pytest.approx(pairs[same].mean() - pairs[~same].mean(), rel=1e-6)
    assert held.left.value == pytest.approx(last / held.gap.value, rel=1e-6)
    assert held.held.low <= last <= held.held.high and (held.p < 0.01 if shift else held.p > 0.01)
    nothing = divergence_map.explained(found, {}, permutations=19)
    assert nothing.held.value == pytest.approx(held.gap.value) and nothing.r2.value == pytest.approx(0, abs=1e-9)
    constant = divergence_map.explained(found, {"x": value, "none": np.zeros(len(value))}, permutations=19)
    assert constant.held.value == pytest.approx(held.held.value), "a property that no head has explains nothing"


def test_beyond_a_control_is_a_paired_difference():
    ours, control = random_divergences(shift=0.1), random_divergences(seed=1)
    made = divergence_map.beyond(ours, control, lambda d: ((c := divergence_map.closeness(d, d.layer)).ratio, c.p))
    ratios = [divergence_map.closeness(d, d.layer).ratio for d in (ours, control)]
    wanted = ratios[0] - ratios[1]
    assert (made["difference"].value, made["difference"].low) == (wanted.value, wanted.low)
    assert made["ours"].value == ratios[0].value and made["control"].value == ratios[1].value and made["p"] < 0.05


@pytest.fixture(scope="module")
def book():
    return results.recorded("divergence_map")["values"]


def test_heads_of_one_layer_are_closer_and_behaviour_explains_a_part(book):
    layer, held, behaviour = (book["model"]["closeness"][k] for k in ("layer", "layer, behaviour held", "behaviour"))
    assert layer["p"] < 0.001 and held["p"] < 0.001
    assert 0.77 < layer["ratio"]["low"] < layer["ratio"]["high"] < 0.82, "about four fifths"
    assert 0.45 < layer["nearest"] < 0.6 and 2.5 < layer["nearest"] / layer["nearest_by_chance"] < 3.8, "three times"
    assert 0.2 < layer["r"] < 0.5, "a tendency, not a partition"
    assert behaviour["ratio"]["high"] < layer["ratio"]["low"] and behaviour["r"] > 2 * layer["r"]
    explained = (layer["expected"] - held["expected"]) / (layer["expected"] - layer["within"]["value"])
    assert 0.2 < explained < 0.5, "a part, and the larger part is left"
    number = book["model"]["closeness"]["number"]
    assert number["p"] > 0.1 and 1 < number["ratio"]["value"] < 1.1


def test_the_layer_and_the_behaviour_of_the_same_heads(book):
    every, ordinary, dealt = (book[k]["closeness"] for k in ("model", "ordinary", "shuffled"))
    assert [round(every[k]["ratio"]["value"], 2) for k in ("behaviour", "layer, these heads")] == [0.57, 0.71]
    assert [round(ordinary[k]["ratio"]["value"], 2) for k in ("behaviour", "layer, these heads")] == [0.88, 0.83]
    assert ordinary["behaviour"]["p"] > 0.05 > 0.01 > ordinary["layer, these heads"]["p"]
    assert dealt["behaviour"]["ratio"]["value"] > 1 and round(dealt["layer"]["ratio"]["value"], 2) == 0.98
    assert round(dealt["layer, these heads"]["ratio"]["value"], 2) == 0.91


def test_the_sink_and_breadth_explain_most_of_the_closeness(book):
    held, dealt = book["held"]["model"], book["held"]["shuffled"]
    assert round(held["r2"]["value"], 2) == 0.83 and round(held["left"]["value"], 2) == 0.37
    assert [round(held[k]["value"], 3) for k in ("gap", "held")] == [-0.064, -0.024] and held["p"] < 0.001
    assert 4 < held["held"]["value"] / dealt["held"]["value"] < 6, "five times that of the shuffled maps"
    assert round(book["gaps"]["ordinary"]["value"], 3) == -0.040
    assert round(book["ordinary"]["closeness"]["layer"]["ratio"]["value"], 2) == 0.88
    for one in book["beyond"].values():
        assert (
            one["model"]["difference"]["high"] < 0 < one["random"]["difference"]["low"] and one["model"]["p"] < 0.05
        )


def test_the_control_has_no_such_order(book):
    control = book["control"]
    assert control["closeness"]["layer"]["p"] > 0.1 and abs(control["closeness"]["layer"]["r"]) < 0.05
    assert max(control["pairs"]) < 0.01 < min(book["model"]["pairs"]) and np.mean(control["pairs"]) == pytest.approx(
        0.005, abs=0.001
    )
    spread = [max(v) - min(v) for v in (book["model"]["pairs"], control["pairs"])]
    assert 80 < spread[0] / spread[1] < 300, "a scale about a hundred times finer"


def test_which_layers_are_tight(book):
    apart, pairs = book["model"]["apart"], np.mean(book["model"]["pairs"])
    mean, each = np.array(apart["mean"]["value"]), np.array(apart["each"]["value"])
    assert (np.diff(mean[:5]) > 0).all() and mean[5] < mean[2], "further apart up to four layers, not at five"
    assert apart["null"][0][5] < mean[5] < apart["null"][1][5] and mean[0] < apart["null"][0][0]
    low = apart["null_each"][0]
    assert (each[3:] < low).all() and (each[:3] > low).all()
    assert 0.95 < each[1] / pairs < 1.1 and 0.95 < each[2] / pairs < 1.1, "as diverse as the model"
    assert 1 / 16 < apart["p_adjacent"] < 1 / 10, "one order in thirteen"


def test_what_the_map_shows_and_how_far_it_can_be_trusted(book):
    model, drawn = book["model"], book["model"]["map"]
    starts, disparities, kept = (np.array(drawn[k]) for k in ("starts", "disparities", "kept"))
    close = starts < 1.04 * drawn["stress"]
    assert disparities[close].max() > 0.5, "other maps of nearly the same stress"
    assert kept.min() > 0.45 and kept.max() < 0.6, "about half of the nearest five"
    assert drawn["stress"] < book["stress_of_roots"] < book["control"]["map"]["stress"]
    entropy = results.recorded("surface_patterns").array("entropy").ravel()
    assert np.corrcoef(np.array(drawn["points"])[:, 0], entropy)[0, 1] < -0.85
    matrix = squareform(model["pairs"])
    previous, following = 2, 12 + 8  # heads 1-3 and 2-9
    assert matrix[previous, following] > 0.95 * LARGEST and matrix.sum(0).argmax() == previous
    stable = book["stability"]
    medians = np.median(stable["disparity"], axis=1)
    assert (np.diff(medians) < 0).all() and medians[-1] < 0.001 and medians[0] < 0.1 < np.mean(stable["shuffled"])
    shown = np.linalg.norm(np.array(drawn["points"])[:, None] - np.array(drawn["points"]), axis=-1)
    small = (matrix < np.quantile(model["pairs"], 0.25)) & (matrix > 0)
    assert (shown[small] < matrix[small]).mean() > 0.7, "most small divergences are drawn too small"


def test_known_heads_and_branches(book):
    dependencies, coreference = map(results.recorded, ("dependency_heads", "coreference_heads"))
    known = divergence_map.duties(dependencies, coreference)
    assert set(known) == {(2, 0), (5, 10), (2, 8), (2, 4)}
    patterns = surface.statistics_of(results.recorded("surface_patterns"))
    behaviour = divergence_map.behaviours(patterns, (6, 12))
    assert sum(behaviour[layer * 12 + head] == KINDS.index("cls") for layer, head in known) == 2
    broad = np.flatnonzero(behaviour == KINDS.index("broad"))
    assert (broad < 12).all() and len(broad) == 8
    links, _ = divergence_map.tree(squareform(book["model"]["pairs"]))
    cut = divergence_map.branches(links, 6)
    spread = next(branch for branch in cut if set(range(60, 72)) <= set(branch))
    assert set(broad) <= set(spread) and len(spread) <= 24, "layer 6 and the broad heads are one branch"
    entropy, cls = (patterns[k].ravel() for k in ("entropy", "cls"))
    narrow = [branch for branch in cut if cls[branch].mean() > 0.25]
    means = sorted(entropy[branch].mean() for branch in narrow)
    assert len(means) == 3 and means[1] < 2.3 and means[2] > 2.9
    assert {k // 12 for branch in narrow for k in branch} == {1, 2, 3, 4}
    assert links[-1, 2] == links[:, 2].max() and 2 in links[-1, :2], "the previous-token head joins last"


def test_full_runs_on_wikitext():
    runs = results.runs("divergence_map", profile="full")
    assert "minilm" in runs
    for name, run in runs.items():
        assert run["provenance"]["corpus"]["name"] == "wikitext"
        model, control = run["values"]["model"], run["values"]["control"]
        assert model["segments"] == 1000 and model["closeness"]["layer"]["p"] < 0.001
        assert model["closeness"]["layer, behaviour held"]["p"] < 0.001 < 0.05 < control["closeness"]["layer"]["p"]
        number = model["closeness"]["number"]
        if name == "mpnet":
            assert number["p"] < 0.001 and 0.4 < number["nearest"] < 0.65, "heads of one number share a term"
            trace = control["closeness"]["number"]
            assert trace["p"] < 0.05 and 0.98 < trace["ratio"]["value"] < 1, "so do those of the control, faintly"
            assert model["apart"]["p_adjacent"] < 0.01
            assert (
                model["closeness"]["layer"]["ratio"]["high"]
                < runs["minilm"]["values"]["model"]["closeness"]["layer"]["ratio"]["low"]
            )
        else:
            assert number["p"] > 0.1 and model["apart"]["p_adjacent"] > 0.05


def estimate(shape):
    value = np.random.default_rng(0).random(shape)
    return Estimate(value, value - 0.1, value + 0.1, np.empty((0, *shape)))


def test_claims_about_behaviour_without_the_special_tokens():
    full = {m: results.recorded("divergence_map", model=m, profile="full")["values"] for m in ("minilm", "mpnet")}
    found = full["mpnet"]["ordinary"]["closeness"]
    assert round(found["behaviour"]["ratio"]["value"], 2) == 0.64 and found["behaviour"]["p"] < 0.001
    assert round(found["layer, these heads"]["ratio"]["value"], 2) == 0.79
    assert full["minilm"]["ordinary"]["closeness"]["behaviour"]["p"] > 0.05
    held = full["mpnet"]["held"]["model"]
    assert (round(held["r2"]["value"], 2), round(held["left"]["value"], 2)) == (0.36, 0.54)
