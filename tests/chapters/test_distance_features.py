"""Chapter 08: types of heads and the functions of its page against loops, scikit-learn and all permutations; its sentences against the records."""

from functools import partial
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from helpers import attention, corpora, encoders, results, tokens
from helpers.measurements import head_types
from helpers.measurements.head_types import TYPES, DistanceFeatures, Types, points
from helpers.stats import Estimate

INPUTS = [
    "One, two, three. Four",
    ("Unbelievable semiconductors, they say.", "Yes."),
    ("A, B.", "The cat sat on the mat, and the dog, which was old, slept near the fire all day."),
    "A few more words than sixteen tokens, so that the windows of distance get wider than one token each.",
]


@pytest.fixture(autouse=True, scope="module")
def _seed(page):
    """The page's parameter, which its functions draw with, how many sets they invent, and its name for the helper."""
    page.refits.__globals__.update(seed=0, twenty=20, cluster=head_types.cluster)


def by_loops(weights, names, cls, sep, length=None):
    """The definition, cell by cell, for one map of one input."""
    n, numbers = len(names), [0.0] * 21
    for i, j in np.ndindex(n, n):
        kinds = {cls: 17, sep: 18, ",": 19, ".": 20}
        wide = (length or n) / 16
        window = next(w for w in range(1, 17) if abs(i - j) < w * wide or w == 16)
        numbers[kinds.get(names[j], 0 if i == j else window)] += weights[i, j] / n
    return numbers


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
@pytest.mark.parametrize("length", [None, 8])
def test_features_are_what_loops_count(page, small_encoder, family, length):
    encoder = small_encoder(family)
    ends = encoder.special.cls, encoder.special.sep
    looked = attention.measure(encoder, INPUTS, partial(head_types.look, length=length))
    measured = DistanceFeatures.of(looked, range(len(INPUTS)))
    on_page = attention.measure(encoder, INPUTS, page.features)
    for number, text in enumerate(INPUTS):
        batch = tokens.encode(encoder, [text])
        for at in np.ndindex(encoder.layers, encoder.heads):
            weights = attention.maps(encoder, batch)[at[0], 0, at[1]].numpy()
            expected = by_loops(weights, batch.tokens[0], *ends, length)
            assert length or np.allclose(on_page[number][at], expected, atol=1e-6)
            assert np.allclose(measured.texts[number][at], expected, atol=1e-6) and sum(expected) == pytest.approx(1)
    assert np.allclose(measured.all.value, measured.texts.mean(0), atol=1e-6)
    names = [tokens.encode(encoder, [text]).tokens[0] for text in INPUTS]
    even = [by_loops(np.full((len(n), len(n)), 1 / len(n)), n, *ends, length) for n in names]
    assert np.allclose(measured.even, np.mean(even, 0), atol=1e-6)


def planted(per_group=9, noise=0.002, seed=0):
    """Features of heads in four clear groups, [4, head, 21], what even attention gives, and each head's type."""
    rng = np.random.default_rng(seed)
    even = np.array([0.01, *np.linspace(0.11, 0.02, 16), 0.01, 0.02, 0.03, 0.0])
    even[-1] = 1 - even[:-1].sum()
    near, special = np.zeros(21), np.zeros(21)
    near[:2], special[17:] = (0.2, 0.8), (0.5, 0.3, 0.1, 0.1)
    pure = {"dense": even, "diagonal": near, "dense_vertical": (even + special) / 2, "vertical": special}
    names = rng.permutation(np.repeat(TYPES, per_group))
    features = np.stack([pure[name] for name in names]) + noise * rng.normal(size=(len(names), 21))
    return features.clip(0).reshape(4, per_group, 21), even, names.reshape(4, per_group)


def as_measured(features, noise=0.002, seed=0):
    rng = np.random.default_rng(seed)
    texts, draws = (features + noise * rng.normal(size=(n, *features.shape)) for n in (40, 60))
    return DistanceFeatures(texts, Estimate.of(features, draws), planted()[1], 10.0)


def test_planted_groups_are_types_named_kept_and_recorded(page, small_encoder):
    features, even, names = planted(3)
    types = head_types.types(features, even)
    assert (types.names == names).all() and all(types.fits.values()) and np.allclose(types.shares, 0.25)
    assert (head_types.by_rule(features, even) == names).all()
    by_hand = [page.k_means(points(features), 4, np.random.default_rng(n)) for n in range(30)]
    assert adjusted_rand_score(min(by_hand, key=lambda start: start[1])[0], types.labels) == 1
    encoder = small_encoder("bert", num_hidden_layers=4, num_attention_heads=3, hidden_size=48)
    run = results.Run("distance_features", encoder, corpora.read("encyclopedia"), profile="smoke")
    measured = as_measured(features)
    head_types.record(run, measured, types, head_types.type_shares(measured))
    assert (Types.read(run.recorded).names == names).all() and Types.read(run.recorded).fits == types.fits


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_naming_and_matching_are_the_best_of_all_pairings(page, seed, k):
    rng = np.random.default_rng(seed)
    means, even = rng.dirichlet(np.ones(21), 4), rng.dirichlet(np.ones(21))
    cost = ((page.parts(means)[:, None] - head_types.prototypes(even)) ** 2).sum(-1)
    named, fits = page.name_groups(means, even)
    assert cost[range(4), named].sum() == pytest.approx(min(cost[range(4), p].sum() for p in permutations(range(4))))
    assert fits.tolist() == [cost[n, named[n]] == cost[n].min() for n in range(4)]
    labels, reference = rng.integers(0, k, (2, 20))
    best = max((np.array(p)[labels] == reference).sum() for p in permutations(range(k)))
    renumbered = page.renumber(labels, reference)
    assert (renumbered == reference).sum() == best and adjusted_rand_score(renumbered, labels) == 1


@pytest.mark.parametrize(("count", "k", "starts"), [(72, 4, 10), (36, 6, 10), (30, 1, 3), (7, 5, 100)])
def test_groups_are_those_of_scikit_learn(count, k, starts):
    rng = np.random.default_rng(count)
    sets = rng.dirichlet(np.full(21, 0.5), count) + 0.02 * rng.normal(size=(8, count, 21))
    for heads, labels, means in zip(sets, *head_types.cluster(sets, k, starts), strict=True):
        fit = KMeans(k, n_init=starts, random_state=0).fit(heads)
        assert (labels == fit.labels_).all() and np.allclose(means, fit.cluster_centers_)


def test_stability_is_what_a_loop_counts(page):
    """On heads without groups, where refits differ."""
    rng = np.random.default_rng(0)
    heads = rng.dirichlet(np.ones(21), 30)
    samples = (heads + 0.01 * rng.normal(size=(10, 30, 21))).clip(0)
    refits = page.refits(samples, heads)
    for sample, labels in zip(samples, refits, strict=True):
        assert adjusted_rand_score(labels, KMeans(4, n_init=10, random_state=0).fit(sample).predict(heads)) == 1
    agreed = sum(all(refits[r, h] == refits[0, h] for r in range(10)) for h in range(30)) / 30
    assert 0 < agreed < 1
    assert page.agreement(refits) == pytest.approx(np.full(200, agreed))
    texts = rng.random((9, 2, 3, 21))
    halves = np.random.default_rng(1).random((50, 9)).argsort(-1) < 4
    means = page.half_means(texts, np.random.default_rng(1))
    assert np.allclose(means[7], points(texts[halves[7]].mean(0)))


def test_clear_groups_beat_invented_heads_and_a_cloud_does_not(page):
    one_cloud = page.invent(points(planted()[0]), np.random.default_rng(5)).reshape(4, 9, 21)
    clear, cloud = [as_measured(heads) for heads in (planted()[0], one_cloud)]
    (ours, theirs), (other, control) = page.clearness(clear.points), page.clearness(cloud.points)
    assert np.mean(page.on_texts(clear)[0]) == 1 and ours[0] > np.percentile(theirs, 97.5) + 0.1
    assert np.percentile(control, 2.5) < other[0] < np.percentile(control, 97.5)


def test_invented_heads_are_possible_and_have_the_mean_and_spread_of_the_real_ones(page):
    rng = np.random.default_rng(0)
    heads = rng.dirichlet(rng.uniform(0.5, 5, 21), 3000)
    heads[:, 4] = 0  # a window that is empty in every input
    invented = page.invent(heads, rng)
    assert (invented >= 0).all() and np.allclose(invented.sum(1), 1) and (invented[:, 4] < 1e-3).all()
    logs = [np.log(x.clip(1e-6)) for x in (heads, invented)]
    real, drawn = (x - x.mean(1, keepdims=True) for x in logs)
    assert np.allclose(real.mean(0), drawn.mean(0), atol=0.15)
    assert np.allclose(np.cov(real.T), np.cov(drawn.T), atol=0.35)


def test_changes_are_shares_of_heads_both_ways(page):
    features, even, names = planted()
    moved = features.copy()
    for at in ((0, 0), (0, 1)):
        moved[at] = features[names != names[at]][0]
    labels = head_types.types(features, even).labels
    old = [points(features)[labels == group].mean(0) for group in range(4)]
    sets = np.stack([points(features), points(moved)])
    for unmoved, changed in page.regroup(sets, old, labels) != labels:  # anew, and sorted
        assert unmoved.mean() == 0 and changed.mean() == 2 / 36


def test_a_mixture_agrees_on_groups_that_are_clear(page):
    assert page.mixture_agreement(points(planted()[0])[None]) == [1]


def test_a_model_with_too_few_heads_is_refused(small_encoder):
    with pytest.raises(encoders.EncoderError, match=r"8 heads in all.* at least 10 heads"):
        head_types.refuse_small(small_encoder("bert", num_hidden_layers=4, num_attention_heads=2))
