"""Passes that share layers against whole ones."""

import pytest
import torch

from helpers import attention, tokens
from helpers.encoders import EncoderError
from helpers.layers import batched_interventions, layers

TEXTS = ["The otter dives, fast.", ("It cracks an urchin.", "On a stone, they say, by the sea.")]


@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet", "albert", "deberta-v2"])
def test_batched_interventions_give_what_whole_ones_give(small_encoder, family):
    """Passes that share a beginning, one that is given twice, and the plain one, each against a pass of its own."""
    encoder = small_encoder(family)
    batch = tokens.encode(encoder, TEXTS)
    paths = [[None, None, None], [None, 1, None], [None, 1, 2], [0, None, None], [None, 1, 2], [0, 1, 3]]
    asked = []

    def edit(layer, head, probabilities):
        asked.append((layer, head))
        return attention.zero([(layer, head)])(layer, probabilities)

    found = batched_interventions(encoder, batch, paths, edit, at_once=3)
    for path, hidden in zip(paths, found, strict=True):
        heads = [(layer, head) for layer, head in enumerate(path) if head is not None]
        with torch.inference_mode(), attention.tap(encoder, edit=attention.zero(heads)):
            whole = encoder.model(**batch.inputs).last_hidden_state
        assert torch.allclose(hidden, whole, atol=1e-5), path
    assert torch.equal(found[2], found[4]) and not torch.allclose(found[1], found[2], atol=1e-3)
    shared = [(0, 0), (1, 1), (1, 1), (2, 2), (2, 3)]
    assert sorted(asked) == shared or family == "albert", "what two passes have in common is computed once"


def test_layers_that_are_one_module_are_no_list(small_encoder):
    with pytest.raises(EncoderError, match="no list of modules"):
        layers(small_encoder("albert"))
    assert len(layers(small_encoder("mpnet"))) == 3
