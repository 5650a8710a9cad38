"""Passes that begin in the middle against whole ones, bit for bit."""

import pytest
import torch
from conftest import EVERY

from helpers.engine import attention, tokens
from helpers.engine.encoders import EncoderError
from helpers.engine.layers import FirstPass, layers

TEXTS = ["The otter dives, fast.", ("It cracks an urchin.", "On a stone, they say, by the sea.")]


@pytest.mark.parametrize("family", EVERY)
def test_a_pass_above_a_layer_gives_what_a_whole_one_gives(small_encoder, family):
    encoder = small_encoder(family)
    batch, first = tokens.encode(encoder, TEXTS), FirstPass(encoder)

    def run(*, edit=None):
        seen = []
        with torch.inference_mode(), attention.tap(encoder, observe=lambda n, *_: seen.append(n), edit=edit):
            return encoder.model(**batch.inputs).last_hidden_state, seen

    with first.kept():
        plain, every = run()
    assert every == list(range(encoder.layers))
    for layer in range(encoder.layers):
        edit = attention.zero([(layer, 1), (encoder.layers - 1, 0)])
        whole, _ = run(edit=edit)
        with first.above(layer):
            found, seen = run(edit=edit)
        assert torch.equal(found, whole) and not torch.equal(found, plain)
        assert seen == (every[layer:] if first.layers else every), "no layer below is computed"
    with first.above(encoder.layers):
        assert torch.equal(run()[0], plain)
    assert torch.equal(run()[0], plain), "all layers are back"


def test_layers_come_back_after_an_error(small_encoder):
    encoder = small_encoder()
    batch, first = tokens.encode(encoder, TEXTS), FirstPass(encoder)
    with torch.inference_mode(), first.kept():
        plain = encoder.model(**batch.inputs).last_hidden_state
    with pytest.raises(KeyError), first.above(2):
        raise KeyError
    assert torch.equal(encoder.model(**batch.inputs).last_hidden_state, plain)


def test_layers_that_are_one_module_are_no_list(small_encoder):
    with pytest.raises(EncoderError, match="no list of modules"):
        layers(small_encoder("albert"))
    assert len(layers(small_encoder("mpnet"))) == 3
