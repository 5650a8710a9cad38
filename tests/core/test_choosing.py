"""The best of many candidates, against loops and against chance."""

import numpy as np
import pytest

from helpers.measurements.choosing import Hits, choose


def random_hits(seed: int, rate: float = 0.3, items: int = 60) -> Hits:
    rng = np.random.default_rng(seed)
    return Hits(rng.random((2, 3, 2, items)) < rate, rng.integers(0, 8, items))


def test_a_candidate_is_chosen_on_one_part_and_scored_on_the_other():
    dev, test = random_hits(0), random_hits(1)
    shares = {at: np.mean([dev.right[(*at, item)] for item in range(60)]) for at in np.ndindex(2, 3, 2)}
    best = max(shares, key=shares.get)
    found = choose(dev, test)
    assert found.candidate == best and found.held_out.value == pytest.approx(test.right[best].mean())
    assert choose(dev, test, candidate=(1, 0, 1)).held_out.value == pytest.approx(test.right[1, 0, 1].mean())
    few = test[test.documents < 3]
    assert len(few) == (test.documents < 3).sum() and few.accuracy()[best] == few.right[best].mean()
    gain = found.held_out - test.estimate(0, 0, 0)
    assert gain.value == pytest.approx((test.right[best] - 1.0 * test.right[0, 0, 0]).mean())
