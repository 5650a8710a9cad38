"""Groups of heads: k-means of many samples against scikit-learn's of each, and tests of whether groups are there on heads that have some or none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from helpers import encoders
from helpers.measurements import group_tests, head_types


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 9_999), st.integers(2, 6), st.sampled_from([1, 3, 10]))
def test_k_means_of_many_samples_is_scikit_learns_of_each(seed, k, starts):
    rng = np.random.default_rng(seed)
    samples = rng.dirichlet(np.full(21, rng.uniform(0.2, 2)), size=(5, int(rng.integers(k + 2, 60))))
    clustering = head_types.k_means(samples, k, seed=seed, starts=starts)
    for sample, labels, centroids in zip(samples, clustering.labels, clustering.centroids, strict=True):
        # of two draws of k-means++ that are equally good, rounding takes one: it may be that of another order of the sums
        orders = (np.arange(21), *(rng.permutation(21) for _ in range(20)))
        fits = ((order, KMeans(k, n_init=starts, random_state=seed).fit(sample[:, order])) for order in orders)
        order, wanted = next(pair for pair in fits if adjusted_rand_score(labels, pair[1].labels_) == 1)
        groups = [labels[wanted.labels_ == group][0] for group in range(k)]
        assert np.allclose(centroids[groups][:, order], wanted.cluster_centers_, atol=1e-12)


def test_groups_are_counted_where_there_are_some():
    rng = np.random.default_rng(0)
    clouds = rng.normal(size=(21, 80, 5))
    assert group_tests.gap_groups(clouds[0], clouds[1:]) == 1
    best = KMeans(3, n_init=50).fit(clouds[0]).inertia_ / 80
    assert group_tests.inertia(clouds[:1], 3)[0] == pytest.approx(best, rel=0.02)
    heads = clouds[0] / 20 + np.repeat(10 * np.eye(4, 5), 20, axis=0)
    crowds = heads.mean(0) + heads.std(0) * clouds[1:]
    assert group_tests.gap_groups(heads, crowds) == 4 and group_tests.mixture_agreement(heads) == 1


def test_a_model_with_too_few_heads_is_refused(small_encoder):
    with pytest.raises(encoders.EncoderError, match=r"8 heads in all.* at least 10 heads"):
        head_types.refuse_small(small_encoder("bert", num_hidden_layers=4, num_attention_heads=2))
