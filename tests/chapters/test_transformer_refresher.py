"""Chapter 01: the worked example is what the model does."""

import numpy as np
import pytest
import torch

from helpers.chapters.transformer_refresher import figures
from helpers.chapters.transformer_refresher import measures as transformer_refresher
from helpers.engine import attention, encoders, tokens

PAIR = ("The otter cracked a mollusc on its belly.", "Then it dived.")


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "albert", "distilbert", "mpnet"])
def test_one_head_by_hand_equals_the_models(small_encoder, family):
    encoder = small_encoder(family)
    batch = tokens.encode(encoder, [PAIR])
    maps, values = {}, {}

    def look(layer, probabilities, value):
        maps[layer], values[layer] = probabilities, value

    with torch.no_grad(), attention.tap(encoder, observe=look):
        encoder.model(**batch.inputs)
    for layer in range(3):
        for head in range(4):
            one = transformer_refresher.one_head(encoder, batch, layer, head)
            assert torch.allclose(one.probabilities, maps[layer][0, head], atol=1e-6)
            assert torch.allclose(one.value, values[layer][0, head], atol=1e-5)
            assert torch.allclose(one.output, maps[layer][0, head] @ values[layer][0, head], atol=1e-5)


@pytest.mark.parametrize("family", ["modernbert", "deberta-v2", "roformer", "roberta-prelayernorm", "mobilebert"])
def test_families_with_other_scores_are_refused(small_encoder, family):
    encoder = small_encoder(family)
    with pytest.raises(encoders.EncoderError, match="does not fit it"):
        transformer_refresher.one_head(encoder, tokens.encode(encoder, [PAIR]), 1, 0)


def test_causal_attention():
    scores = torch.randn(2, 5, 5)
    masked = transformer_refresher.causal(scores)
    assert torch.allclose(masked.sum(-1), torch.ones(2, 5)) and (masked.triu(1) == 0).all()
    full = scores.softmax(-1).tril()
    assert torch.allclose(masked, full / full.sum(-1, keepdim=True), atol=1e-6)


def test_corruption_has_the_papers_shares():
    ids = torch.full((50, 2000), 7)
    special = torch.zeros_like(ids, dtype=torch.bool)
    special[:, :100] = True
    corrupted, chosen = transformer_refresher.corrupt(ids, special, mask_id=1, vocabulary=1000, seed=3)
    assert not chosen[:, :100].any() and torch.equal(corrupted[~chosen], ids[~chosen])
    assert chosen[:, 100:].float().mean() == pytest.approx(0.15, abs=0.005)
    fate = corrupted[chosen]
    assert (fate == 1).float().mean() == pytest.approx(0.8, abs=0.01)
    assert (fate == 7).float().mean() == pytest.approx(0.1, abs=0.01)
    again, _ = transformer_refresher.corrupt(ids, special, mask_id=1, vocabulary=1000, seed=3)
    assert torch.equal(corrupted, again)


def test_the_head_that_looks_ahead(minilm):
    """The chapter says that most of what this head looked at is gone under the mask."""
    maps = attention.maps(minilm, tokens.encode(minilm, [PAIR]))[:, 0].numpy()
    assert np.triu(maps, 1).sum(-1).mean(-1).max() > 0.5


# ------------------------------------------------------------------ figures


def maps(layers=2, heads=3, length=4):
    weights = np.random.default_rng(0).random((layers, heads, length, length))
    return weights / weights.sum(-1, keepdims=True)


def test_other_figures_draw(minilm):
    assert len(figures.all_heads(maps()).axes) == 6
    figures.input_diagram(tokens.encode(minilm, [("One two.", "Three.")]))
