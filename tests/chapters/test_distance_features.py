"""Chapter 08: types of heads and the functions of its page against loops, scikit-learn and all permutations; its sentences against the records."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from helpers import attention, corpora, encoders, results, tokens
from helpers.measurements import head_types
from helpers.measurements.head_types import FEATURES, TYPES, DistanceFeatures, Types, points
from helpers.stats import Estimate

INPUTS = [
    "One, two, three. Four",
    ("Unbelievable semiconductors, they say.", "Yes."),
    "Hi",
    ("A, B.", "The cat sat on the mat, and the dog, which was old, slept near the fire all day."),
    "A few more words than sixteen tokens, so that the windows of distance get wider than one token each.",
]


@pytest.fixture(scope="module")
def page(methods):
    return methods("08_distance_features")


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
    special = encoder.special
    found = head_types.measure(encoder, INPUTS, length=length)
    on_page = attention.measure(encoder, INPUTS, lambda m, t: page.features(m, t, length))
    for number, one in enumerate(INPUTS):
        batch = tokens.encode(encoder, [one])
        for at in np.ndindex(encoder.layers, encoder.heads):
            weights = attention.maps(encoder, batch)[at[0], 0, at[1]].numpy()
            expected = by_loops(weights, batch.tokens[0], special.cls, special.sep, length)
            assert np.allclose(on_page[number][at], expected, atol=1e-6)
            assert np.allclose(found.texts[number][at], expected, atol=1e-6) and sum(expected) == pytest.approx(1)
    assert np.allclose(found.all.value, found.texts.mean(0), atol=1e-6)
    even = np.mean([by_loops(np.full((n, n), 1 / n), names, special.cls, special.sep, length) for n, names in
                    ((len(b), b) for b in (tokens.encode(encoder, [one]).tokens[0] for one in INPUTS))], axis=0)  # fmt: skip
    assert np.allclose(found.even, even, atol=1e-6)


def test_commas_are_known_under_any_tokenizers_marks(page, minilm):
    text = tokens.EncodedText.of(tokens.encode(minilm, ["a , b ."]), 0, "a , b .")
    marked = replace(text, tokens=("<s>", "a", "\u0120,", "\u2581b", "\u2581.", "</s>"))
    for cells in (page.feature_of, head_types.cells):
        assert cells(text).tolist() == cells(marked).tolist()


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


def test_planted_groups_are_found_named_kept_and_recorded(page, small_encoder):
    features, even, names = planted(3)
    found = head_types.types(features, even)
    assert (found.names == names).all() and all(found.fits.values()) and np.allclose(found.shares, 0.25)
    assert (head_types.by_rule(features, even) == names).all()
    means = np.stack([points(features)[found.labels == group].mean(0) for group in range(4)])
    stands_for, fits = page.name_groups(means, even)
    assert stands_for.tolist() == [0, 1, 2, 3] and fits.all()
    by_hand = [page.k_means(points(features), 4, np.random.default_rng(n)) for n in range(30)]
    assert adjusted_rand_score(min(by_hand, key=lambda start: start[1])[0], found.labels) == 1
    encoder = small_encoder("bert", num_hidden_layers=4, num_attention_heads=3, hidden_size=48)
    run = results.Run("distance_features", encoder, corpora.read("encyclopedia"), profile="smoke")
    measured = as_measured(features)
    head_types.record(run, measured, found, head_types.type_shares(measured))
    assert (Types.read(run.recorded).names == names).all() and Types.read(run.recorded).fits == found.fits
    assert run.recorded.estimates("type_share")["dense"].value == 0.25
    assert run.recorded.row("order_of_depth").label.startswith("dense ")
    with pytest.raises(encoders.EncoderError, match=r"8 heads in all.* at least 10 heads"):
        head_types.refuse_small(small_encoder("bert", num_hidden_layers=4, num_attention_heads=2))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_naming_and_matching_are_the_best_of_all_pairings(page, seed, k):
    rng = np.random.default_rng(seed)
    means, even = rng.dirichlet(np.ones(21), 4), rng.dirichlet(np.ones(21))
    cost = ((page.parts(means)[:, None] - head_types.prototypes(even)) ** 2).sum(-1)
    named, fits = page.name_groups(means, even)
    assert named.tolist() == head_types.name_groups(means, even).tolist()
    assert cost[range(4), named].sum() == pytest.approx(min(cost[range(4), p].sum() for p in permutations(range(4))))
    assert fits.tolist() == [cost[n, named[n]] == cost[n].min() for n in range(4)]
    labels, reference = rng.integers(0, k, (2, 20))
    best = max((np.array(p)[labels] == reference).sum() for p in permutations(range(k)))
    for renumbered in (page.renumber(labels, reference), head_types.matched(labels, reference)):
        assert (renumbered == reference).sum() == best and adjusted_rand_score(renumbered, labels) == 1


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 9_999), st.integers(2, 6), st.sampled_from([1, 3, 10]))
def test_k_means_of_many_samples_is_scikit_learns_of_each(seed, k, starts):
    rng = np.random.default_rng(seed)
    samples = rng.dirichlet(np.full(21, rng.uniform(0.2, 2)), size=(5, int(rng.integers(k + 2, 60))))
    found = head_types.k_means(samples, k, seed=seed, starts=starts)
    for sample, labels, centroids in zip(samples, found.labels, found.centroids, strict=True):
        # of two draws of k-means++ that are equally good, rounding takes one: it may be that of another order of the sums
        orders = (np.arange(21), *(rng.permutation(21) for _ in range(20)))
        fits = ((order, KMeans(k, n_init=starts, random_state=seed).fit(sample[:, order])) for order in orders)
        order, wanted = next(pair for pair in fits if adjusted_rand_score(labels, pair[1].labels_) == 1)
        groups = [labels[wanted.labels_ == group][0] for group in range(k)]
        assert np.allclose(centroids[groups][:, order], wanted.cluster_centers_, atol=1e-12)


def test_stability_is_what_a_loop_counts(page):
    """On heads without groups, where refits differ: the page's plain form, its fast one, and loops."""
    rng = np.random.default_rng(0)
    heads = rng.dirichlet(np.ones(21), 30)
    samples = (heads + 0.01 * rng.normal(size=(10, 30, 21))).clip(0)
    refits = page.regroup(samples, heads)
    agreed = sum(all(refits[r, h] == refits[0, h] for r in range(10)) for h in range(30)) / 30
    assert 0 < agreed < 1 and page.stable(samples, heads) == pytest.approx(agreed)
    assert page.agreement(refits) == pytest.approx(np.full(200, agreed))
    half = page.random_halves(9, rng)
    assert half.shape == (50, 9) and (half.sum(1) == 4).all()
    texts = rng.random((9, 2, 3, 21))
    means = page.half_means(texts, np.random.default_rng(1))
    chosen = page.random_halves(9, np.random.default_rng(1))[7]
    assert np.allclose(means[7], points(texts[chosen].mean(0)))


def test_clear_groups_beat_invented_heads_and_a_cloud_does_not(page):
    clear, cloud = as_measured(planted()[0]), as_measured(page.invent(points(planted()[0]), np.random.default_rng(5)).reshape(4, 9, 21))  # fmt: skip
    (ours, theirs), (other, control) = page.beside_invented(clear), page.beside_invented(cloud)
    assert ours["stability"].value == 1 and ours["silhouette"].value > theirs["silhouette"].high + 0.1
    assert control["silhouette"].low < other["silhouette"].value < control["silhouette"].high
    heads = points(planted()[0])
    assert page.gap_groups(heads, page.invented_sets(heads, 20)) == 4 and page.mixture_agreement(heads) == 1
    sets = np.random.default_rng(0).normal(size=(21, 80, 5))
    assert page.gap_groups(sets[0], sets[1:]) == 1
    assert page.inertia(sets[:1], 3)[0] == pytest.approx(KMeans(3, n_init=50).fit(sets[0]).inertia_ / 80, rel=0.02)


def test_invented_heads_are_possible_and_have_the_mean_and_spread_of_the_real_ones(page):
    rng = np.random.default_rng(0)
    heads = rng.dirichlet(rng.uniform(0.5, 5, 21), 3000)
    heads[:, 4] = 0  # a window that is empty in every input
    invented = page.invent(heads, np.random.default_rng(1))
    assert (invented >= 0).all() and np.allclose(invented.sum(1), 1) and (invented[:, 4] < 1e-3).all()
    logs = [np.log(x.clip(1e-6)) for x in (heads, invented)]
    one, other = (x - x.mean(1, keepdims=True) for x in logs)
    assert np.allclose(one.mean(0), other.mean(0), atol=0.15) and np.allclose(
        np.cov(one.T), np.cov(other.T), atol=0.35
    )
    features = [recorded(BOOK).array("distance_feature", of=name) for name in FEATURES]
    heads = np.stack(features, -1).reshape(-1, 21)
    crowds = [rng.multivariate_normal(heads.mean(0), np.cov(heads.T), size=72, method="eigh") for _ in range(50)]
    assert np.mean([(crowd < -1e-9).any(1).mean() for crowd in crowds]) == pytest.approx(0.5, abs=0.1), "about half"


def test_changes_are_shares_of_heads_both_ways(page):
    features, _, names = planted()
    moved = features.copy()
    for at in ((0, 0), (0, 1)):
        moved[at] = features[names != names[at]][0]
    labels = head_types.types(features, planted()[1]).labels
    means = np.stack([points(features)[labels == group].mean(0) for group in range(4)])
    one, other = as_measured(features), as_measured(moved)
    for groups in (lambda m: page.clustered_anew(m, labels), lambda m: page.sorted_into(m, means)):
        share = page.changed(groups(one), groups(other), 50)
        assert share.value == share.low == share.high == pytest.approx(2 / 36)
        assert page.changed(groups(one), groups(one), 50).high == 0


BOOK, FULL, MPNET = ("minilm", "book"), ("minilm", "full"), ("mpnet", "full")
CLAIMS = [  # run, quantity, what it is of: in per cent with its interval, as the page prints it
    (BOOK, "stability", "plain text", "96 [92, 100]"),
    (BOOK, "stability_invented", "plain text", "96 [88, 100]"),
    (BOOK, "stability_invented", "real variance", "95 [85, 100]"),
    (BOOK, "stability", "paraphrase", "62 [56, 100]"),
    (BOOK, "stability_over_heads", "plain text", "57 [32, 72]"),
    (BOOK, "stability_over_heads_invented", "plain text", "39 [7, 62]"),
    (BOOK, "changed_on_texts", "cut short", "46 [43, 47]"),
    (BOOK, "changed_on_texts", "cut short, windows of 8", "12 [4, 49]"),
    (BOOK, "changed_sorted", "cut short", "24 [22, 25]"),
    (BOOK, "changed_sorted", "cut short, windows of 8", "15 [14, 15]"),
    (BOOK, "changed_on_texts", "tuned: qa", "33 [33, 36]"),
    (BOOK, "changed_sorted", "tuned: qa", "33 [32, 33]"),
    (BOOK, "two_largest", None, "87 [87, 88]"),
    (FULL, "changed_sorted", "cut short, windows of 8", "11 [10, 11]"),
    (MPNET, "changed_sorted", "cut short, windows of 8", "27 [22, 32]"),
    (MPNET, "changed_sorted", "cut short", "31 [25, 34]"),
    (MPNET, "changed_on_texts", "cut short", "30 [24, 33]"),
]


def recorded(run):
    return results.recorded("distance_features", model=run[0], profile=run[1])


@pytest.mark.parametrize(("run", "quantity", "of", "printed"), CLAIMS)
def test_numbers_of_the_text_are_recorded(run, quantity, of, printed):
    number = recorded(run).number(quantity, of=of)
    value, low, high = (f"{100 * getattr(number, end):.0f}" for end in ("value", "low", "high"))
    assert f"{value} [{low}, {high}]" == printed


def test_the_groups_of_the_book():
    types = Types.read(recorded(BOOK))
    assert {name: len(types.of(name)) for name in TYPES} == {
        "dense": 29,
        "diagonal": 6,
        "dense_vertical": 20,
        "vertical": 17,
    }
    assert [types.names[at] for at in ((0, 2), (2, 0), (2, 8), (2, 4))] == ["diagonal", "vertical", "vertical", "dense_vertical"]  # fmt: skip
    assert {layer for layer, _ in types.of("diagonal")} == {0, 1} and (types.names[-1] == "dense").all()
    heads = np.stack([recorded(BOOK).array("distance_feature", of=name) for name in FEATURES], -1)
    near, _, special = head_types.masses(heads[types.names == "vertical"].mean(0))
    assert (round(near, 2), round(special, 2)) == (0.39, 0.45)
    dense = {k: head_types.k_means(points(heads), k).labels[types.names.ravel() == "dense"] for k in range(3, 7)}
    assert [np.bincount(labels).max() for labels in dense.values()] == [29, 29, 27, 27]
    lead = recorded(BOOK).row("silhouette", of="as they are").value
    assert lead > recorded(BOOK).number("silhouette_invented", of="real variance").high


@pytest.mark.parametrize("run", [BOOK, FULL, MPNET])
def test_what_the_text_says_of_every_run(run):
    record = recorded(run)
    features = np.stack([record.array("distance_feature", of=name) for name in FEATURES], -1)
    assert np.allclose(features.sum(-1), 1, atol=2e-5)
    types, minilm = Types.read(record), run[0] == "minilm"
    assert types.fits == dict(zip(TYPES, (minilm, minilm, True, False), strict=True))
    for network in ("@random", "@shuffled"):
        assert record.row("fitting_groups", network=network).value == 1
        assert record.row("type_fits", of="dense", network=network).value == 1
    two, random = (record.number("two_largest", network=n).value for n in ("", "@random"))
    assert (two > 0.8) == (two > random) == minilm
    assert record.number("stability_invented", of="plain text").value > 0.94
    above = (
        record.number("stability", of="plain text").value > record.number("stability_invented", of="plain text").high
    )
    assert above == (not minilm)
    inside = {
        of: record.row("silhouette", of=of).value < record.number("silhouette_invented", of=of).high
        for of in ("as they are", "standardised", "square roots", "paraphrase", "entailment")
    }
    assert [*inside.values()] == [False, False, not minilm, True, True]
    cut_short = (
        record.row("silhouette", of="cut short").value < record.number("silhouette_invented", of="cut short").high
    )
    assert cut_short == (run != FULL)
    asked = record.row("silhouette", of="questions").value < record.number("silhouette_invented", of="questions").high
    assert asked == minilm
    over_heads = record.number("stability_over_heads", of="plain text").value
    chance = record.number("stability_over_heads_invented", of="plain text")
    assert chance.value + 0.1 < over_heads < chance.high
    assert 0.28 < record.number("stability", of="plain text", network="@random").value < 0.73
    gaps = [record.row("gap_groups", of=scale).value for scale in ("as they are", "standardised", "square roots")]
    assert gaps[0] == (1 if minilm else 2) and set(gaps[1:]) <= {2, 3}
    windows = record.number("changed_sorted", of="cut short, windows of 8")
    assert (windows.high < record.number("changed_sorted", of="cut short").low) == minilm
    cut = record.number("changed_on_texts", of="cut short")
    assert cut.low > 0.15 > record.row("changed_in_half").value


def test_the_papers_stability_is_no_share_of_its_heads_and_its_types_leave_a_whole_number_of_diagonal_ones():
    for row in results.paper("guan2020", "table1")["rows"]:
        assert row["stability"] not in {round(100 * count / 384, 2) for count in range(385)}
    shares = {r["type"]: r["share"] for r in results.paper("guan2020", "type_shares")["rows"]}
    whole = {name: round(384 * share / 100) for name, share in shares.items() if name != "diagonal"}
    assert all(round(100 * count / 384, 2) == shares[name] for name, count in whole.items())
    assert round(100 * (384 - sum(whole.values())) / 384, 2) == 26.56
