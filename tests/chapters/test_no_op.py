"""Chapter 03: the functions of its page against slow loops, and its sentences against the recorded numbers."""

from functools import partial

import conftest
import numpy as np
import pytest
import torch
from conftest import BOOK, FULL, MPNET, USUAL
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import attention, inputs, tasks, tokens
from helpers.encoders import EncoderError
from helpers.tasks import IGNORED, Example

TEXTS = [
    ("The otter dives, fast.", "It cracks an urchin on a stone."),
    ("A short one.", "Yes."),
    ("Photosynthesis feeds plants.", "Light, water and air: that is all they need, it seems."),
]
EXAMPLES = [Example("mlm", str(n), n, texts) for n, texts in enumerate(TEXTS)]


def kind_of(page, token, hidden=False):
    """The number of a token's kind."""
    name = {"[CLS]": "cls", "[SEP]": "sep", ".": "stop", ",": "stop"}.get(token, "other")
    return page.KINDS.index("other" if hidden and name == "stop" else name)


@pytest.mark.parametrize("family", ["bert", "distilbert", "albert", "mpnet"])
def test_weighing_is_what_loops_count(page, small_encoder, family):
    encoder = small_encoder(family)
    functions = [partial(function, outputs=page.output_matrices(encoder)) for function in (page.weigh, page.add_up)]
    both = (attention.measure(encoder, TEXTS, function, values=True) for function in functions)
    for texts, *weighed in zip(TEXTS, *both, strict=True):
        batch = tokens.encode(encoder, [texts])
        kind = [kind_of(page, token) for token in batch.tokens[0]]
        n = len(kind)
        expected = {q: np.zeros(weighed[0]["length"].shape) for q in ("weight", "added", "weight × length", "length")}
        seen = {}
        with torch.no_grad(), attention.tap(encoder, observe=lambda la, p, v, seen=seen: seen.update({la: (p, v)})):
            encoder.model(**batch.inputs)
        for layer, module in enumerate(attention.output_projections(encoder)):
            weights, values = (t[0].double().numpy() for t in seen[layer])
            d = values.shape[-1]
            for head in range(encoder.heads):
                f = values[head] @ module.weight.double().detach().numpy()[:, head * d : head * d + d].T
                for j in range(n):
                    expected["length"][layer, head, kind[j]] += np.linalg.norm(f[j])
                for i, k in np.ndindex(n, 4):
                    vectors = [weights[head, i, j] * f[j] for j in range(n) if kind[j] == k]
                    at = (layer, head, k)
                    expected["weight"][at] += sum(weights[head, i, j] for j in range(n) if kind[j] == k)
                    expected["weight × length"][at] += sum(np.linalg.norm(x) for x in vectors)
                    expected["added"][at] += np.linalg.norm(sum(vectors, np.zeros(f.shape[1])))
        for name, numbers in expected.items():
            np.testing.assert_allclose((weighed[1] | weighed[0])[name], numbers, rtol=1e-3, atol=1e-5, err_msg=name)
        assert weighed[0]["tokens"].tolist() == np.bincount(kind, minlength=4).tolist() and weighed[0]["rows"] == n


def test_hidden_value_vectors_are_refused(page, small_encoder):
    with pytest.raises(EncoderError, match="value vectors"):
        attention.measure(small_encoder("deberta"), TEXTS[:1], page.kinds, values=True)


def ask(encoder, example, number=0, seed=0):
    return inputs.masked(encoder, tokens.encode(encoder, [example.texts]), [(seed, number)])


def loss_by_hand(encoder, asked, edit=None):
    """Mean cross-entropy of the hidden tokens, one after another."""
    with torch.no_grad(), attention.tap(encoder, edit=edit):
        logits = encoder.logits(asked.batch)[0].double()
    hidden = [(n, t) for n, t in enumerate(asked.targets[0].tolist()) if t != IGNORED]
    return np.mean([float(torch.logsumexp(logits[n], 0) - logits[n, t]) for n, t in hidden])


@pytest.mark.slow
@pytest.mark.parametrize("family", USUAL)
def test_slopes_are_central_differences(page, headed, family):
    """One weight a little up, a little down. (The softmax stays in single precision.)"""
    encoder = headed("mlm", family)
    encoder.model.double(), encoder.head.double()
    try:
        asked = ask(encoder, EXAMPLES[0])
        slopes = page.slopes(encoder, asked)
        for at in ((0, 1, 3, 0), (1, 3, 2, 4), (2, 0, 5, 6)):

            def nudge(size, at=at):
                def edit(layer, weights):
                    weights = weights.clone()
                    if layer == at[0]:
                        weights[0][at[1:]] += size
                    return weights

                return edit

            up, down = (loss_by_hand(encoder, asked, nudge(size)) for size in (1e-3, -1e-3))
            assert float(slopes[at]) == pytest.approx((up - down) / 2e-3, rel=2e-3, abs=1e-7)
    finally:
        encoder.model.float(), encoder.head.float()


def test_reactions_are_what_loops_count(page, headed):
    encoder = headed("mlm")
    measured = tasks.measure(encoder, EXAMPLES, page.slopes_by_kind, seed=5)
    for number, (example, (sums, pairs)) in enumerate(zip(EXAMPLES, measured, strict=True)):
        asked = ask(encoder, example, number, seed=5)
        slopes = page.slopes(encoder, asked).double().numpy()
        hidden = (asked.targets[0] != IGNORED).tolist()
        kind = [kind_of(page, *token) for token in zip(asked.batch.tokens[0], hidden, strict=True)]
        expected, n = np.zeros(sums.shape), len(kind)
        for layer, head, i in np.ndindex(encoder.layers, encoder.heads, n):
            for j in range(n):
                expected[layer, head, kind[j]] += abs(slopes[layer, head, i, j])
        np.testing.assert_allclose(sums, expected, rtol=1e-3, atol=1e-7)
        assert pairs.tolist() == [n * kind.count(k) for k in range(4)]


def slow_louder(row, marked):
    """One row, token by token."""
    row, total = row.copy(), row[marked].sum()
    for j in set(range(len(row))) - set(marked):
        row[j] /= 1 - total
    return row


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_louder_others_are_what_loops_make(page, seed):
    rng = np.random.default_rng(seed)
    weights = torch.tensor(rng.normal(size=(2, 6, 6)) * 2).softmax(-1)
    louder = page.louder(weights, torch.tensor([True, False, False, False, True, False]))
    for at in np.ndindex(2, 6):
        np.testing.assert_allclose(louder[at], slow_louder(weights[at].numpy(), [0, 4]), atol=1e-9)


def test_a_table_of_losses_is_that_of_edited_weights(page, headed):
    """Nothing and [CLS] taken away, others as they are and louder; the two other parts are as long."""
    encoder = headed("mlm")
    asked = ask(encoder, EXAMPLES[0])
    cls = asked.batch.cls[0]
    page.loss_without.__globals__["seed"] = 0
    losses_of_text = page.losses_of(encoder, asked)
    edits = [[lambda w: w, lambda w: w * ~cls], [lambda w: page.louder(w, cls), lambda w: page.louder(w, cls) * ~cls]]
    for losses, row in zip(losses_of_text.tolist(), edits, strict=True):
        expected = [loss_by_hand(encoder, asked, lambda _, w, edit=edit: edit(w)) for edit in row]
        np.testing.assert_allclose(losses[:2], expected, rtol=1e-4)
        assert all(abs(loss - losses[0]) > 1e-6 for loss in losses[2:])
    random = np.random.default_rng(0)
    weights, values, w_o = (torch.tensor(random.random(size)) for size in ((2, 5, 5), (2, 5, 3), (6, 6)))
    parts = torch.stack([*page.taken_away(weights, values, w_o, 3, page.rotation(random, 6)).values()])
    slow = [sum(weights[h, i, 0] * w_o[:, 3 * h : 3 * h + 3] @ values[h, 0] for h in range(2)) for i in range(5)]
    np.testing.assert_allclose(parts[0], torch.stack(slow))
    lengths = parts.norm(dim=-1)
    assert (lengths[0] > 0).all()
    np.testing.assert_allclose(lengths[1:], lengths[[0, 0]])


recorded = partial(conftest.recorded, "no_op")


def test_slopes_are_what_lengths_say_but_for_sep_in_one_layer():
    for run in (BOOK, FULL):
        numbers = recorded(run)
        off = numbers.array("gradient_ratio", of="cls") / numbers.array("copy_length_ratio", of="cls")
        assert off.min() > 0.92 and off.max() < 1.16
    numbers = recorded(MPNET)
    off = numbers.array("gradient_ratio_untrained", of="sep") / numbers.array("length_ratio", of="sep")
    assert 2.05 < off[0] < 2.15 and off[1:].max() < 2
    share, left = (numbers.array(f"{name}_share", of="cls") for name in ("attention", "weighted"))
    assert (np.flatnonzero(share < left) == [5, 6, 7]).all(), "in layers 6 to 8 [CLS] gains"
