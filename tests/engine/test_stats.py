"""Streaming means against plain arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import results, stats
from helpers.corpora import records
from helpers.engine import accumulators
from helpers.engine.accumulators import StreamingMean
from helpers.stats import Estimate


def streamed(documents, numerators, denominators, order, size, replicates=50):
    mean = StreamingMean(numerators.shape[1:], replicates=replicates)
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        mean.add([documents[r] for r in rows], numerators[rows], denominators[rows])
    return mean


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 8), st.integers(1, 9), st.integers(0, 10_000))
def test_order_and_batches_do_not_matter(rows, documents, size, seed):
    rng = np.random.default_rng(seed)
    numbers = rng.integers(documents, size=rows).tolist()
    numerators, denominators = rng.random((rows, 2, 3)), rng.random((rows, 2, 3)) + 0.1
    one = streamed(numbers, numerators, denominators, np.arange(rows), rows)
    other = streamed(numbers, numerators, denominators, rng.permutation(rows), size)
    np.testing.assert_allclose(one.numerator, other.numerator, atol=1e-9)
    np.testing.assert_allclose(one.estimate().value, numerators.sum(0) / denominators.sum(0))
    half = rows // 2
    parts = [
        streamed(numbers, numerators, denominators, part, size) for part in (np.arange(half), np.arange(half, rows))
    ]
    both = parts[0].empty()
    for part in parts:
        both.absorb(part)
    np.testing.assert_allclose(both.estimate().high, one.estimate().high)


def test_replicates_count_whole_documents():
    rng = np.random.default_rng(0)
    numbers = [0, 0, 1, 2, 2, 2]
    numerators, denominators = rng.random((6, 1)), np.ones((6, 1))
    estimate = streamed(numbers, numerators, denominators, np.arange(6), 4, replicates=20).estimate()
    for replicate, counts in enumerate(stats.resampled(numbers, seed=0)[1:21]):
        if counts.sum():
            assert estimate.replicates[replicate, 0] == pytest.approx(counts @ numerators[:, 0] / counts.sum())


def test_the_interval_covers_the_truth():
    """95 % intervals of the mean of 60 documents hold the truth in about 95 % of samples."""
    rng = np.random.default_rng(1)
    hits = 0
    for sample in range(200):
        values = rng.normal(3.0, 1.0, size=(60, 1))
        mean = StreamingMean((1,), replicates=200, seed=sample)
        mean.add(list(range(60)), values, np.ones((60, 1)))
        estimate = mean.estimate()
        hits += estimate.low[0] <= 3.0 <= estimate.high[0]
    assert 180 <= hits <= 198


@pytest.mark.parametrize("documents", [3, 5, 10, 20, 29, 30, 100])
def test_intervals_over_few_documents_keep_their_promise(documents):
    """1,000 samples at once, a column each: as the bootstrap alone would do it, and widened."""
    found = stats.mean(np.random.default_rng(documents).normal(3.0, 1.0, (documents, 1000)))
    bare = Estimate.of(found.value, found.replicates)
    alone, kept = (((e.low <= 3.0) & (e.high >= 3.0)).mean() for e in (bare, found))
    assert 0.92 <= kept <= 0.985, "within what a fixed draw of the documents leaves"
    assert kept == alone if documents >= stats.FEW else kept > alone
    assert documents != 5 or alone < 0.88, "the defect"


def test_the_widening_is_students_factor_by_hand():
    assert stats.widened(5) == pytest.approx((5 / 4) ** 0.5 * 2.7764451 / 1.9599640)
    assert [stats.widened(units) for units in (None, 30, 1000)] == [1, 1, 1]
    assert np.isnan(stats.widened(1)), "one document has no interval"


@pytest.mark.parametrize("keep", ["arrays", "sums"])
def test_what_few_documents_have_is_widened_by_their_number(keep):
    """5 of 100 documents have the thing: 95 % intervals of 1,000 samples hold the truth as often as they say."""
    rng = np.random.default_rng(0)
    have = np.zeros((100, 1))
    have[::20] = 1
    values = rng.normal(3.0, 1.0, (100, 1000)) * have
    counts = np.broadcast_to(have, values.shape)
    if keep == "arrays":
        found = stats.ratio(values, counts)
    else:
        sums = StreamingMean((1000,), denominators=(1,))
        for half in (slice(0, 50), slice(50, 100)):
            sums.add(list(range(100))[half], values[half], have[half])
        found = sums.estimate()
    assert set(np.ravel(found.units)) == {5}
    assert 0.9 <= ((found.low <= 3.0) & (found.high >= 3.0)).mean() <= 0.99


def test_one_document_gives_no_interval():
    found = stats.ratio(np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([[4.0, 2.0], [0.0, 4.0]]))
    assert found.units.tolist() == [1, 2] and np.isnan(found.low[0]) and not np.isnan(found.low[1])
    assert f"{found[0]:.2f}" == "0.50 (one document)" and stats.percent(found[0]) == "50 (one document)"
    recorded = results.to_json(found[0])
    assert recorded == {"value": 0.5, "low": None, "high": None} and np.isnan(Estimate.from_record(recorded).low)


@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 10_000))
def test_ratios_are_those_of_loops(rows, documents, seed):
    """Against slow loops: resampled sums of each document, one by one."""
    rng = np.random.default_rng(seed)
    by = rng.integers(documents, size=rows)
    sums, counts = rng.random((rows, 2)), rng.random((rows, 2)) + 0.1
    found = stats.ratio(sums, counts, by, seed=seed)
    weights = stats.resampled(range(documents), seed)
    for replicate in (0, 1, 2, 77):
        top, bottom = np.zeros(2), np.zeros(2)
        for row in range(rows):
            top += weights[replicate, by[row]] * sums[row]
            bottom += weights[replicate, by[row]] * counts[row]
        if bottom.all():
            there = found.value if replicate == 0 else found.replicates[replicate - 1]
            np.testing.assert_allclose(there, top / bottom)


def test_a_permutation_counts_the_best_of_all_candidates():
    differences = np.random.default_rng(0).normal(0, 1, (3, 7))
    differences[0] += 2
    found = stats.max_t(differences, permutations=500, seed=1)
    signs = np.random.default_rng(1).choice(np.float32([-1, 1]), (500, 7))
    for candidate in range(3):
        reached = sum(max((row * one).sum() for one in differences) >= differences[candidate].sum() for row in signs)
        assert found[candidate] == pytest.approx((1 + reached) / 501, abs=2e-3)
    factors = [stats.widened(units) for units in range(2, 31)]
    assert sorted(factors, reverse=True) == factors


def test_intervals_of_shares_end_at_none_and_all():
    hits = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    share = accumulators.ratio(hits)
    assert (share.low, share.high) == (0, 1) and stats.mean(hits[:, 0]).high == 1
    assert stats.mean(100 * hits[:, 0]).high > 100, "of what is no share, nothing is known"
    assert accumulators.ratio(hits * [3, 1]).high > 3
    assert stats.mean(hits[:, :1] - 0.5).low[0] < -0.5


def test_differences_are_paired():
    rng = np.random.default_rng(2)
    base = rng.normal(size=(40, 1)) * 10
    one, two = StreamingMean((1,)), StreamingMean((1,))
    one.add(list(range(40)), base + 1.0, np.ones((40, 1)))
    two.add(list(range(40)), base, np.ones((40, 1)))
    difference = (one.estimate() - two.estimate())[0]
    assert difference.value == pytest.approx(1.0)
    assert difference.high - difference.low < 1e-9 < one.estimate().high[0] - one.estimate().low[0]


def test_only_like_measurements_add_up():
    with pytest.raises(ValueError, match="same shape"):
        StreamingMean((2,)).absorb(StreamingMean((3,)))
    with pytest.raises(ValueError, match="seed"):
        StreamingMean((2,)).absorb(StreamingMean((2,), seed=1))


def test_map_mean_and_stack_keep_the_intervals_of_what_they_make():
    rng = np.random.default_rng(0)
    one, two = (Estimate.of(rng.random((2, 3)), rng.random((40, 2, 3))) for _ in range(2))
    for axis in (-1, -2, (-2, -1)):
        slow = np.array([replicate.mean(axis) for replicate in one.replicates])
        assert np.allclose(one.mean(axis).low, np.percentile(slow, 2.5, axis=0))
        assert np.allclose(one.mean(axis).value, one.value.mean(axis))
    both = stats.stack([one, two])
    assert both.value.shape == (2, 2, 3) and np.array_equal(both[1].low, two.low)
    assert np.array_equal(both.replicates[7, 1], two.replicates[7])
    bare = stats.stack([one, Estimate.from_record({"value": one.value, "low": one.low, "high": one.high})])
    assert bare.replicates.shape == (0, 2, 2, 3) and np.array_equal(bare.high[1], one.high)


def test_a_mean_is_of_what_is_known():
    values = np.array([[1.0, np.nan], [3.0, 4.0], [5.0, 8.0]])
    assert stats.mean(values).value.tolist() == [3.0, 6.0]
    same = stats.mean(values, [4, 4, 4])
    assert same.value.tolist() == [3.0, 6.0] and np.isnan([same.low, same.high]).all(), "one document has no interval"


def test_a_sample_keeps_its_order_and_its_seed():
    items = [f"item {n}" for n in range(20)]
    drawn = records.sample(items, 7, seed=3)
    assert (
        len(set(drawn)) == 7 and drawn == sorted(drawn, key=items.index) and drawn == records.sample(items, 7, seed=3)
    )
    assert drawn != records.sample(items, 7, seed=4)
    assert records.sample(items, 20) == records.sample(items, None) == items


def test_a_difference_of_shares_stays_possible():
    documents = [0, 0, 1, 1, 2]
    right, wrong = np.array([1.0, 1, 1, 0, 1]), np.array([0.0, 0, 0, 0, 1])
    one, other = (stats.mean(values, documents) for values in (right, wrong))
    difference = one - other
    assert -1 <= difference.low < difference.value < difference.high <= 1
    assert Estimate.of(difference.value, difference.replicates, 3).high > 1, "it would be wider than that"
    longer = stats.mean(3 * right, documents) - stats.mean(wrong, documents)
    assert longer.high > 1 and not stats.mean(3 * right, documents).is_share
