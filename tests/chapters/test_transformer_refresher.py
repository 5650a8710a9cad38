"""Chapter 01: the worked example is what the model does."""

import numpy as np
import pytest
import torch

from helpers import attention, drawing, encoders, tokens
from helpers.measurements import one_head

PAIR = ("The otter cracked a mollusc on its belly.", "Then it dived.")


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "albert", "distilbert", "mpnet"])
def test_one_head_by_hand_equals_the_models(small_encoder, page, family):
    encoder = small_encoder(family)
    batch = tokens.encode(encoder, [PAIR])
    maps, values = {}, {}

    def look(layer, probabilities, value):
        maps[layer], values[layer] = probabilities, value

    with torch.no_grad(), attention.tap(encoder, observe=look):
        encoder.model(**batch.inputs)
    for layer in range(3):
        for head in range(4):
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
    assert len(names) == 9 and [names[row] for row in odd] == ["her", "her"]
    assert [most[row] for row in odd] == ["emma", "emma"]
    assert [f"{weights[row].max():.2f}" for row in odd] == ["0.77", "0.64"]
    stares = np.delete(weights[:, 0], odd)
    assert (f"{stares.min():.2f}", f"{stares.max():.2f}") == ("0.42", "0.98")


def test_claims_of_another_pronoun(minilm):
    names, weights, most = largest(minilm, "Emma slept until his dog woke him")
    assert set(most) == {"[CLS]"}
    for pronoun, (to_cls, to_emma) in {"his": ("0.59", "0.27"), "him": ("0.44", "0.24")}.items():
        row = weights[names.index(pronoun)]
        assert (f"{row[0]:.2f}", f"{row[1]:.2f}") == (to_cls, to_emma) and row[1:].argmax() == 0


def test_claims_of_two_words(minilm):
    numbers = drawing.numbers(minilm, tokens.encode(minilm, ["she slept"]), *HEAD)
    assert [f"{w:.2f}" for w in numbers.weights[1]] == ["0.86", "0.10", "0.00", "0.04"]
    assert (np.round(numbers.weights, 2).sum(-1) == 1).all(), "rows can be added up by eye"
    assert (numbers.scores.argmax(-1) == 0).all()
    assert 2 < numbers.scores[1, 0] - np.sort(numbers.scores[1])[-2] < 2.5
    assert 8 < numbers.weights[1, 0] / numbers.weights[1, 1] < 9
    lengths = np.linalg.norm(numbers.value, axis=-1)
    assert f"{lengths[0]:.2f}" == "0.11" and (np.round(lengths[1:]) == 4).all()
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
    assert (received.argmax(-1)[received.amax(-1) > 0.5] == 0).all()


def test_causal_attention(page):
    scores = torch.randn(2, 5, 5)
    masked = page.causal(scores)
    assert torch.allclose(masked.sum(-1), torch.ones(2, 5)) and (masked.triu(1) == 0).all()
    full = scores.softmax(-1).tril()
    assert torch.allclose(masked, full / full.sum(-1, keepdim=True), atol=1e-6)


def test_the_head_that_looks_ahead(minilm):
    """The chapter says that most of what this head looked at is gone under the mask."""
    maps = attention.maps(minilm, tokens.encode(minilm, [PAIR]))[:, 0].numpy()
    assert np.triu(maps, 1).sum(-1).mean(-1).max() > 0.5
