"""Shuffled scores: what they keep of a map, what they lose, and that they are the same however the work is cut."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from helpers import attention, controls
from helpers.engine import sweeps
from helpers.engine.accumulators import Additive
from helpers.tokens import Batches, encode


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(0, 3))
def test_scores_are_dealt_anew_among_real_pairs(seed: int, length: int, padding: int) -> None:
    random = np.random.default_rng(seed)
    scores = random.normal(size=(1, 2, length, length))
    maps = np.zeros((1, 2, length + padding, length + padding))
    maps[..., :length, :length] = softmax(scores, -1)
    mask = torch.arange(length + padding)[None] < length
    found = controls.shuffled(torch.from_numpy(maps), mask, lambda row, head: [seed, head]).numpy()
    assert not found[..., length:, :].any() and not found[..., length:].any()
    for head in range(2):
        centred = scores[0, head] - scores[0, head].mean(-1, keepdims=True)
        order = np.random.default_rng([seed, head]).permutation(length * length)
        wanted = np.zeros((length, length))
        for place, source in enumerate(order):
            wanted[place // length, place % length] = centred[source // length, source % length]
        np.testing.assert_allclose(found[0, head, :length, :length], softmax(wanted, -1), atol=1e-12)


class _Rows(Additive):
    """The sum of squared weights and of weights over all real rows, for each layer."""

    ADDED = ("squares", "rows")

    def __init__(self, layers: int) -> None:
        self.squares, self.rows = np.zeros(layers), np.zeros(layers)

    def __call__(self, batch, layer, probabilities, values) -> None:
        real = probabilities.double().transpose(1, 2)[batch.mask]
        self.squares[layer] += float((real**2).sum())
        self.rows[layer] += float(real.sum())


TEXTS = [
    "A head looks back.",
    "The sink takes what is left.",
    "Two of them agree, the third does not.",
    "So it goes.",
]


def test_a_shuffled_observer_is_the_same_in_parts_and_leaves_the_model_alone(minilm) -> None:
    found = []
    for size in (1, 4):
        batches = Batches(minilm, TEXTS, batch_size=size)
        trained, control = _Rows(minilm.layers), _Rows(minilm.layers)
        sweeps.sweep(minilm, batches, trained, sweeps.Shuffled(control))
        found.append((trained.squares, control.squares, control.rows))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4)
    plain = _Rows(minilm.layers)
    sweeps.sweep(minilm, Batches(minilm, TEXTS, batch_size=4), plain)
    np.testing.assert_array_equal(plain.squares, found[1][0])
    assert (abs(found[1][1] / found[1][0] - 1) > 0.01).any()


def test_a_model_that_runs_on_shuffled_maps(minilm) -> None:
    batch = encode(minilm, TEXTS)
    with torch.inference_mode():
        whole = minilm.model(**batch.inputs).last_hidden_state
        with attention.tap(minilm, edit=controls.shuffling(batch)):
            found = minilm.model(**batch.inputs).last_hidden_state
        alone = encode(minilm, TEXTS[:1])
        with attention.tap(minilm, edit=controls.shuffling(alone)):
            first = minilm.model(**alone.inputs).last_hidden_state
    assert float((found - whole)[batch.mask].abs().mean()) > 0.01
    torch.testing.assert_close(found[0, : first.shape[1]], first[0], atol=1e-4, rtol=1e-4)
    with torch.inference_mode():
        again = minilm.model(**batch.inputs).last_hidden_state
    torch.testing.assert_close(again, whole)
