"""Names of heads, as people write them and as arrays count them."""

import pickle

import numpy as np
import pytest
import torch

from helpers import stats
from helpers.heads import Head


def test_a_head_counts_from_1_for_people_and_from_0_for_arrays():
    head = Head(3, 1)
    assert f"{head}" == str(head) == "3-1" and f"{head:>5}" == "  3-1" and head == (2, 0)
    assert Head.of((2, 0)) == head and {head: 1}[2, 0] == 1 and pickle.loads(pickle.dumps(head)) == head
    assert type(pickle.loads(pickle.dumps(head))) is Head and eval(repr(head)) == head
    layer, number = head
    array = np.random.default_rng(0).random((4, 3, 2, 5))
    assert np.array_equal(array[head], array[layer, number])
    assert torch.equal(torch.from_numpy(array)[head], torch.from_numpy(array)[layer, number])
    estimate = stats.mean(array, range(4))
    assert estimate[Head(1, 2)].value.tolist() == estimate.value[0, 1].tolist()


def test_the_best_head_has_the_largest_number():
    numbers = np.array([[0.1, 0.5], [np.nan, 0.9], [0.2, 0.3]])
    assert Head.best(numbers) == Head(2, 2) == Head.best(stats.mean(numbers[None], [0]))


@pytest.mark.parametrize("wrong", [(0, 1), (1, 0), (-1, 3)])
def test_there_is_no_head_0(wrong):
    with pytest.raises(ValueError, match="count from 1"):
        Head(*wrong)
    with pytest.raises(ValueError, match="count from 1"):
        Head.of([number - 1 for number in wrong])
