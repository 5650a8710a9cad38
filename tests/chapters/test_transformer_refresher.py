"""Chapter 01: the worked example is what the model does."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from helpers import attention, drawing, encoders, tokens
from helpers.measurements import one_head

PAIR = ("The otter cracked a mollusc on its belly.", "Then it dived.")


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "albert", "distilbert", "mpnet"])
def test_one_head_by_hand_equals_the_models(small_encoder, page, family):
    encoder = small_encoder(family)
    batch = tokens.encode(encoder, [PAIR])
    maps, values = [], []
    with torch.no_grad(), attention.tap(encoder, observe=lambda _, p, v: (maps.append(p), values.append(v))):
        encoder.model(**batch.inputs)
    for layer, head in np.ndindex(3, 4):
        _, weights, outputs = page.one_head(encoder, batch, layer, head)
        assert torch.allclose(weights, maps[layer][0, head], atol=1e-6)
        assert torch.allclose(outputs, maps[layer][0, head] @ values[layer][0, head], atol=1e-5)


@pytest.mark.parametrize("family", ["modernbert", "deberta-v2", "roformer", "roberta-prelayernorm", "mobilebert"])
def test_families_with_other_scores_are_refused(small_encoder, page, family):
    encoder = small_encoder(family)
    with pytest.raises(encoders.EncoderError, match="does not fit it"):
        page.one_head(encoder, tokens.encode(encoder, [PAIR]), 1, 0)


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "albert", "distilbert", "mpnet"])
def test_the_numbers_of_the_drawing_follow_from_one_another(small_encoder, page, family):
    encoder = small_encoder(family)
    batch = tokens.encode(encoder, ["she slept"])
    for layer, head in ((0, 0), (2, 3)):
        numbers = drawing.numbers(encoder, batch, layer, head)
        term = one_head.position_term(encoder, torch.tensor(numbers.hidden).float())[head].numpy()
        assert term.any() == (family == "mpnet")
        by_hand = numbers.query @ numbers.key.T / np.sqrt(numbers.query.shape[1]) + term
        assert np.allclose(numbers.scores, by_hand, atol=1e-5)
        powers = np.exp(numbers.scores)
        assert np.allclose(numbers.weights, powers / powers.sum(-1, keepdims=True), atol=1e-6)
        assert np.allclose(numbers.output, numbers.weights @ numbers.value, atol=1e-5)
        assert np.array_equal(numbers.heads[:, head], numbers.output)
        assert np.allclose(numbers.residual, numbers.hidden + numbers.added, atol=1e-5)
        assert numbers.tokens == ("[CLS]", "she", "slept", "[SEP]") and numbers.layers == 3
        by_page = page.one_head(encoder, batch, layer, head)
        for drawn, part in zip((numbers.scores, numbers.weights, numbers.output), by_page, strict=True):
            assert np.allclose(drawn, part, atol=1e-5)


def test_what_is_added_to_the_stream_is_what_the_model_adds(minilm):
    """The first normalisation of a layer receives x + z, and what leaves the layer is the x of the next."""
    batch, seen, layer = tokens.encode(minilm, ["she slept"]), [], 2
    norm = minilm.model.encoder.layer[layer].attention.output.LayerNorm
    hook = norm.register_forward_hook(lambda _, given, __: seen.append(given[0][0].numpy()))
    numbers = drawing.numbers(minilm, batch, layer, 4)
    hook.remove()
    assert np.allclose(numbers.residual, seen[-1], atol=1e-5)
    assert np.allclose(numbers.after, drawing.numbers(minilm, batch, layer + 1, 0).hidden)


HEAD = (2, 4)  # 3-5


def largest(minilm, text):
    """Tokens, head 3-5's map, and for each row the token with the largest weight."""
    batch = tokens.encode(minilm, [text])
    names, weights = batch.tokens[0], attention.maps(minilm, batch)[HEAD[0], 0, HEAD[1]].numpy()
    return names, weights, [names[j] for j in weights.argmax(-1)]


def test_claims_of_the_puzzle(minilm):
    names, weights, most = largest(minilm, "Emma slept until her dog woke her")
    odd = [row for row, token in enumerate(most) if token != "[CLS]"]
    assert len(names) == 9 and [(names[row], most[row]) for row in odd] == [("her", "emma")] * 2
    assert [f"{weights[row].max():.2f}" for row in odd] == ["0.77", "0.64"]
    stares = np.delete(weights[:, 0], odd)
    assert (f"{stares.min():.2f}", f"{stares.max():.2f}") == ("0.42", "0.98")
    numbers = drawing.numbers(minilm, tokens.encode(minilm, ["Emma slept until her dog woke her"]), *HEAD)
    without = np.linalg.norm(numbers.output - numbers.weights[:, [1]] * numbers.value[1], axis=-1)
    given = np.linalg.norm(numbers.output, axis=-1)
    assert [f"{n:.2f}" for n in (*given[odd], *without[odd])] == ["3.91", "3.34", "0.07", "0.24"]
    assert np.delete(given, odd).max() < given[odd].min() / 2 and set(given.argsort()[:3]) == {0, 1, 2}
    assert [largest(minilm, "Mary slept until her dog woke her")[2][row] for row in odd] == ["mary", "[CLS]"]


OTHERS = {"Emma his him": ("0.27", "0.24"), "Adam his him": ("0.55", "0.43"), "Adam her her": ("0.11", "0.08")}


@pytest.mark.parametrize(("words", "told"), OTHERS.items())
def test_claims_of_another_pronoun(minilm, words, told):
    _, weights, most = largest(minilm, "{} slept until {} dog woke {}".format(*words.split()))
    assert tuple(f"{weights[row, 1]:.2f}" for row in (4, 7)) == told
    name = "adam" if words == "Adam his him" else "[CLS]"
    assert [most[row] for row in (4, 7)] == [name, name]


def test_claims_of_what_twelve_heads_add(minilm):
    """The more of its attention *she* gives to [CLS], the less a head adds, but for 3-10; the value of [CLS] is short in all."""
    numbers = drawing.numbers(minilm, tokens.encode(minilm, ["she slept"]), *HEAD)
    x, w_v = torch.tensor(numbers.hidden).float(), one_head.projections(minilm, 2)[2]
    w_o = attention.output_projections(minilm)[2]
    values = w_v(x).unflatten(-1, (12, -1)).norm(dim=-1)
    assert values[0].max() < 0.41 < 2 < values[1:].min() and values[0].argmax() == 9
    maps = attention.maps(minilm, tokens.encode(minilm, ["she slept"]))[2, 0]
    outputs = torch.tensor(numbers.heads[1]).float()  # [head, d]
    added = torch.stack([o @ w for o, w in zip(outputs, w_o.weight.T.split(32), strict=True)]).norm(dim=-1)
    assert spearmanr(maps[:, 1, 0], added).statistic < -0.85
    assert abs(maps[9, 1, 0] - maps[11, 1, 0]) < 0.015 and added[9] > 2 * added[11]
    parts = zip(maps[:, 1, 0], w_v(x)[0].split(32), w_o.weight.T.split(32), strict=True)
    assert [f"{(a * v @ w).norm():.2f}" for a, v, w in parts][4:10:5] == ["0.12", "0.49"]


def test_claims_of_two_words(minilm):
    numbers = drawing.numbers(minilm, tokens.encode(minilm, ["she slept"]), *HEAD)
    assert [f"{w:.2f}" for w in numbers.weights[1]] == ["0.86", "0.10", "0.00", "0.04"]
    assert (np.round(numbers.weights, 2).sum(-1) == 1).all(), "rows can be added up by eye"
    assert (numbers.scores.argmax(-1) == 0).all()
    assert 2 < numbers.scores[1, 0] - np.sort(numbers.scores[1])[-2] < 2.5
    assert 8 < numbers.weights[1, 0] / numbers.weights[1, 1] < 9
    lengths = np.linalg.norm(numbers.value, axis=-1)
    assert f"{lengths[0]:.2f}" == "0.11" and (np.round(lengths[1:]) == 4).all()
    assert f"{np.linalg.norm(numbers.hidden[0]):.2f}" == "8.08", "of the state of [CLS], which is not empty"
    assert np.abs(np.round(numbers.value[0], 2)).max() < 0.1, "of all its numbers, not only of those shown"
    parts = np.abs(numbers.weights[1, :2, None] * numbers.value[:2, :3])
    assert parts[0].max() < 0.03 and f"{parts[1].max():.2f}" == "0.10" and (parts[1] > parts[0]).all()
    shown = np.round(numbers.weights, 2) @ np.round(numbers.value[:, :3], 2)
    assert np.abs(shown - np.round(numbers.output[:, :3], 2)).max() < 0.011, "weights times values, by eye"
    sums = np.round(numbers.hidden[:, :3], 2) + np.round(numbers.added[:, :3], 2)
    assert np.abs(sums - np.round(numbers.residual[:, :3], 2)).max() < 0.011
    assert set(np.argsort(np.abs(numbers.heads[:, :, 0]).max(0))[-2:]) == {3, 6}, "3-4 and 3-7"


def test_claims_of_stripes(minilm):
    received = attention.maps(minilm, tokens.encode(minilm, [PAIR]))[:, 0].mean(2)
    assert (received.argmax(-1) == 0).float().mean() > 0.9
    assert (received.argmax(-1)[received.amax(-1) > 0.5] == 0).all() and (received[..., 0] > 0.5).sum() == 23


def test_causal_attention(page):
    scores = torch.randn(2, 5, 5)
    masked = page.causal(scores)
    assert torch.allclose(masked.sum(-1), torch.ones(2, 5)) and (masked.triu(1) == 0).all()
    full = scores.softmax(-1).tril()
    assert torch.allclose(masked, full / full.sum(-1, keepdim=True), atol=1e-6)


def test_the_head_that_looks_ahead(minilm):
    """The chapter says that every word looks at the next token, and that most of this goes to [CLS] under the mask."""
    maps = attention.maps(minilm, tokens.encode(minilm, ["Emma slept until her dog woke her"]))[:, 0].numpy()
    ahead = np.triu(maps, 1).sum(-1)
    layer, head = np.unravel_index(ahead.mean(-1).argmax(), ahead.shape[:2])
    weights = maps[layer, head]
    assert (layer, head) == (1, 8) and (weights[1:-1].argmax(-1) == np.arange(2, 9)).all()
    masked = np.tril(weights) / np.tril(weights).sum(-1, keepdims=True)
    assert (masked - weights)[:, 0].sum() > 0.5 * ahead[layer, head].sum()
