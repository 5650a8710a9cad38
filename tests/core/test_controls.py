"""Shuffled scores: what they keep of a map, what they lose, and that they are the same however the work is cut."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from helpers import attention, controls
from helpers.tokens import encode


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(0, 9))
def test_scores_are_shuffled_among_the_pairs_of_each_map(seed: int, length: int, number: int) -> None:
    scores = np.random.default_rng(seed).normal(size=(2, 2, length, length))
    found = controls.shuffled_maps(torch.from_numpy(softmax(scores, -1)), number, seed).numpy()
    for layer, head in np.ndindex(2, 2):
        centred = scores[layer, head] - scores[layer, head].mean(-1, keepdims=True)
        order = np.random.default_rng([seed, number, layer, head]).permutation(length * length)
        wanted = np.zeros((length, length))
        for place, source in enumerate(order):
            wanted[place // length, place % length] = centred[source // length, source % length]
        np.testing.assert_allclose(found[layer, head], softmax(wanted, -1), atol=1e-12)


TEXTS = [
    "A head looks back.",
    "The sink takes what is left.",
    "Two of them agree, the third does not.",
    "So it goes.",
]


def test_a_text_is_shuffled_alike_alone_and_in_a_batch(minilm) -> None:
    batch = encode(minilm, TEXTS)
    maps = attention.maps(minilm, batch)
    edit = controls.shuffling(batch)
    of_batch = torch.stack([edit(layer, one) for layer, one in enumerate(maps)])
    for row, n in enumerate(batch.lengths.tolist()):
        alone = controls.shuffled_maps(maps[:, row, :, :n, :n], row)
        torch.testing.assert_close(of_batch[:, row, :, :n, :n], alone)
        assert not of_batch[:, row, :, n:].any() and not of_batch[:, row, ..., n:].any()
        assert float((alone - maps[:, row, :, :n, :n]).abs().mean()) > 0.01
