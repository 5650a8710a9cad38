"""Means, ratios and their intervals over documents, against slow loops and what they promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import stats
from helpers.corpora import records
from helpers.stats import Estimate


@pytest.mark.parametrize("documents", [3, 5, 10, 20, 29, 30, 100])
def test_intervals_over_few_documents_keep_their_promise(documents):
    """1,000 samples at once, a column each: as the bootstrap alone would do it, and widened."""
    means = stats.mean(np.random.default_rng(documents).normal(3.0, 1.0, (documents, 1000)), range(documents))
    bare = Estimate.of(means.value, means.replicates)
    alone, kept = (((e.low <= 3.0) & (e.high >= 3.0)).mean() for e in (bare, means))
    assert 0.92 <= kept <= 0.985, "within what a fixed draw of the documents leaves"
    assert kept == alone if documents >= stats.FEW else kept > alone
    assert documents != 5 or alone < 0.88, "the defect"


def test_the_widening_is_students_factor_by_hand():
    assert stats.widened(5) == pytest.approx((5 / 4) ** 0.5 * 2.7764451 / 1.9599640)
    assert [stats.widened(units) for units in (None, 30, 1000)] == [1, 1, 1]
    assert np.isnan(stats.widened(1)), "one document has no interval"


def test_one_document_gives_no_interval():
    ratio = stats.ratio([([2.0, 1.0], [4.0, 2.0]), ([0.0, 3.0], [0.0, 4.0])], [0, 1])
    assert ratio.units.tolist() == [1, 2], "of 2 documents one has the first thing"
    assert np.isnan(ratio.low[0]) and not np.isnan(ratio.low[1])
    assert f"{ratio[0]:.2f}" == "0.50 (no interval)" and stats.percent(ratio[0]) == "50 (no interval)"
    assert np.isnan(Estimate.from_record({"value": 0.5, "low": None, "high": None}).low)
    assert f"{Estimate.from_record({'value': 0.5, 'low': -np.inf, 'high': np.inf}):.1f}" == "0.5 (no interval)"


@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 10_000))
def test_ratios_are_those_of_loops(rows, documents, seed):
    """Against slow loops: resampled sums of each document, one by one."""
    rng = np.random.default_rng(seed)
    by = rng.integers(documents, size=rows)
    sums, counts = rng.random((rows, 2)), rng.random((rows, 2)) + 0.1
    ratios = stats.ratio(zip(sums, counts, strict=True), by, seed=seed)
    weights = stats.resampled(range(documents), seed)
    for replicate in (0, 1, 2, 77):
        top, bottom = np.zeros(2), np.zeros(2)
        for row in range(rows):
            top += weights[replicate, by[row]] * sums[row]
            bottom += weights[replicate, by[row]] * counts[row]
        if bottom.all():
            there = ratios.value if replicate == 0 else ratios.replicates[replicate - 1]
            np.testing.assert_allclose(there, top / bottom)


def test_fewer_units_widen_more():
    factors = [stats.widened(units) for units in range(2, 31)]
    assert sorted(factors, reverse=True) == factors


def test_intervals_of_shares_end_at_none_and_all():
    hits = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    share = stats.ratio(hits, range(3))
    assert (share.low, share.high) == (0, 1) and stats.mean(hits[:, 0], range(3)).high == 1
    assert stats.mean(100 * hits[:, 0], range(3)).high > 100, "of what is no share, nothing is known"
    assert stats.ratio(hits * [3, 1], range(3)).high > 3
    assert stats.mean(hits[:, :1] - 0.5, range(3)).low[0] < -0.5
    both = stats.mean(np.eye(4)[[0, 0, 1, 2]], range(4))
    f1 = both.map(lambda x: 2 * x[..., 0] / (1 + x[..., 0]))
    assert 0 <= f1.low < f1.high <= 1 and 0 <= both.mean().low <= both.mean().high <= 1
    assert not both.map(lambda x: 3 * x).limits


@given(st.integers(2, 60), st.integers(1, 3))
def test_a_share_of_none_or_all_has_the_bound_of_the_binomial(documents, rows):
    """No more than what 2.5 % of samples still show nothing of; over the documents that could have shown it."""
    by = np.repeat(np.arange(documents + 1), rows)
    hits = np.stack([np.zeros(len(by)), np.ones(len(by)), np.arange(len(by)) % 2], 1)
    hits[by == documents] = np.nan  # says nothing
    shares = stats.mean(hits, by)
    assert (1 - shares.high[0]) ** documents == pytest.approx(0.025) and shares.low[0] == 0
    assert shares.low[1] == pytest.approx(1 - shares.high[0]) and shares.high[1] == 1
    assert stats.stack([shares[0], shares[0]]).mean().high == pytest.approx(shares[0].high)


@given(st.integers(2, 12), st.integers(0, 10_000))
def test_words_of_texts_of_any_length_count_alike(texts, seed):
    rng = np.random.default_rng(seed)
    values = [rng.random((2, 3, rng.integers(5))) for _ in range(texts)]
    values[0] = np.full((2, 3, 1), np.nan)
    by = rng.integers(3, size=texts)
    words = [value.shape[-1] for value in values]
    by_text, flat = stats.mean(values, by, axis=-1), np.moveaxis(np.concatenate(values, -1), -1, 0)
    slow = stats.mean(flat, np.repeat(by, words)) if sum(words) > 1 else by_text
    asked = np.isin(np.unique(by), np.repeat(by, words))
    np.testing.assert_allclose(by_text.value, slow.value)
    if asked.all():
        np.testing.assert_allclose(by_text.high, slow.high)


def test_texts_know_their_documents():
    texts = [records.Sentence("s", ("a",), document=document) for document in (4, 4, 7, 9)]
    of_texts, other = stats.mean([0.1, 0.2, 0.6, 0.3], texts), stats.mean([0.1, 0.2, 0.6, 0.3], [4, 4, 7, 9])
    assert (of_texts.low, of_texts.high, of_texts.sample) == (other.low, other.high, (0, (4, 7, 9)))
    with pytest.raises(ValueError, match="1 rows and 3 documents"):
        stats.mean([0.3], [0, 1, 2])
    with pytest.raises(TypeError):
        stats.mean([0.3])


def test_differences_are_paired():
    base = np.random.default_rng(2).normal(size=40) * 10
    raised, plain = stats.mean(base + 1.0, range(40)), stats.mean(base, range(40))
    difference = raised - plain
    assert difference.value == pytest.approx(1.0)
    assert difference.high - difference.low < 1e-9 < raised.high - raised.low
    table = stats.mean(np.stack([base, base - 1], 1), range(40))
    assert (table - plain).value.tolist() == pytest.approx([0, -1]), "a number and an array pair as well"


@pytest.mark.parametrize("pair", [lambda a, b: a - b, lambda a, b: a / b])
def test_what_is_no_pair_has_no_difference(pair):
    base = np.random.default_rng(3).random(20)
    whole = stats.mean(base, range(20))
    for other in (stats.mean(base[1:], range(1, 20)), stats.mean(base, range(20), seed=1)):
        with pytest.raises(ValueError, match="different documents"):
            pair(whole, other)
    with pytest.raises(ValueError, match="recorded"):
        pair(whole, Estimate.from_record({"value": whole.value, "low": whole.low, "high": whole.high}))


def test_map_mean_and_stack_keep_the_intervals_of_what_they_make():
    rng = np.random.default_rng(0)
    first, second = (Estimate.of(rng.random((2, 3)), rng.random((40, 2, 3))) for _ in range(2))
    for axis in (-1, -2, (-2, -1)):
        slow = np.array([replicate.mean(axis) for replicate in first.replicates])
        assert np.allclose(first.mean(axis).low, np.percentile(slow, 2.5, axis=0))
        assert np.allclose(first.mean(axis).value, first.value.mean(axis))
    both = stats.stack([first, second])
    assert both.value.shape == (2, 2, 3) and np.array_equal(both[1].low, second.low)
    assert np.array_equal(both.replicates[7, 1], second.replicates[7])
    bare = stats.stack([first, Estimate.from_record({"value": first.value, "low": first.low, "high": first.high})])
    assert bare.replicates.shape == (0, 2, 2, 3) and np.array_equal(bare.high[1], first.high)


def test_a_sample_keeps_its_order_and_its_seed():
    items = [f"item {n}" for n in range(20)]
    drawn = records.sample(items, 7, seed=3)
    assert len(set(drawn)) == 7 and drawn == sorted(drawn, key=items.index)
    assert drawn == records.sample(items, 7, seed=3) != records.sample(items, 7, seed=4)
    assert records.sample(items, 20) == records.sample(items, None) == items


def test_a_difference_of_shares_stays_possible():
    documents = [0, 0, 1, 1, 2]
    right, wrong = np.array([1.0, 1, 1, 0, 1]), np.array([0.0, 0, 0, 0, 1])
    share, other = (stats.mean(values, documents) for values in (right, wrong))
    difference = share - other
    assert -1 <= difference.low < difference.value < difference.high <= 1
    assert Estimate.of(difference.value, difference.replicates, 3).high > 1, "it would be wider than that"
    longer = stats.mean(3 * right, documents) - stats.mean(wrong, documents)
    assert longer.high > 1 and not stats.mean(3 * right, documents).limits
