"""The tap against the library's own attention, and editors against a layer written by hand."""

import math

import numpy as np
import pytest
import torch
from conftest import EVERY, FAMILIES, WITH_VALUES, from_data, small_model
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from torch import nn
from transformers import BertModel

from helpers import attention, controls, encoders, tokens
from helpers.encoders import EncoderError
from helpers.layers import batched_interventions, layers

TEXTS = ["A short one.", ("The otter dives for an urchin.", "It cracks it open on a stone!"), ["given", "words"]]


def run(encoder, batch):
    with torch.no_grad():
        return encoder.model(**batch.inputs).last_hidden_state


@pytest.mark.parametrize("family", EVERY)
def test_the_tap_sees_what_the_library_reports_and_leaves_no_trace(small_encoder, family):
    encoder = small_encoder(family)
    batch = tokens.encode(encoder, TEXTS)
    with torch.no_grad():
        reference = encoder.model(**batch.inputs, output_attentions=True)
    seen, values = {}, []
    with attention.tap(encoder, observe=lambda layer, p, v: (seen.update({layer: p.clone()}), values.append(v))):
        tapped = run(encoder, batch)
    if family in WITH_VALUES:
        assert all(v.shape == (3, 4, batch.ids.shape[1], 8) for v in values)
    assert sorted(seen) == list(range(encoder.layers)) == [0, 1, 2]
    for layer, expected in enumerate(reference.attentions):
        real = batch.mask[:, None, :, None]
        assert ((seen[layer] - expected) * real).abs().max() <= 1e-6
        assert seen[layer].shape == (3, 4, batch.ids.shape[1], batch.ids.shape[1])
    real = batch.mask[..., None]
    assert ((tapped - reference.last_hidden_state) * real).abs().max() <= 1e-6
    assert not torch.allclose(seen[0], seen[2], atol=1e-3), "layers must not be mixed up"
    with attention.tap(encoder, edit=attention.zero([(1, 2)])):
        edited = run(encoder, batch)
    assert ((edited - tapped) * real).abs().max() > 1e-4
    assert torch.equal(run(encoder, batch) * real, reference.last_hidden_state * real)
    assert encoder.model.config._attn_implementation == "eager"


def by_hand(model: BertModel, inputs, replaced):
    """A BERT forward pass written out: embeddings, then for each layer attention, with maps of (layer, head) replaced, feed-forward."""
    with torch.no_grad():
        x = model.embeddings(inputs["input_ids"], inputs["token_type_ids"])
        for number, layer in enumerate(model.encoder.layer):
            own = layer.attention.self
            b, n, width = x.shape
            q, k, v = (f(x).view(b, n, 4, width // 4).permute(0, 2, 1, 3) for f in (own.query, own.key, own.value))
            scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(width // 4)
            scores = scores.masked_fill(inputs["attention_mask"][:, None, None, :] == 0, -1e30)
            weights = scores.softmax(-1)
            for head in range(4):
                weights[:, head] = replaced.get((number, head), weights[:, head])
            mixed = torch.einsum("bhqk,bhkd->bqhd", weights, v).reshape(b, n, width)
            x = layer.attention.output.LayerNorm(layer.attention.output.dense(mixed) + x)
            x = layer.output.LayerNorm(layer.output.dense(nn.functional.gelu(layer.intermediate.dense(x))) + x)
        return x


@pytest.mark.parametrize("kind", ["nothing", "zero", "uniform", "replacement"])
def test_editors_against_a_layer_written_by_hand(small_encoder, kind):
    encoder = small_encoder("bert")
    batch = tokens.encode(encoder, TEXTS)
    n = batch.ids.shape[1]
    even = torch.zeros(3, n)
    for row, length in enumerate(batch.lengths.tolist()):
        even[row, :length] = 1 / length
    torch.manual_seed(3)
    arbitrary = torch.rand(3, 4, n, n)

    ours, replaced = {
        "nothing": (None, {}),
        "zero": (attention.zero([(1, 3), (2, 0)]), {(1, 3): torch.tensor(0.0), (2, 0): torch.tensor(0.0)}),
        "uniform": (attention.uniform([(0, 1)], batch.mask), {(0, 1): even[:, None, :]}),
        "replacement": (lambda layer, w: arbitrary if layer == 1 else w, {(1, h): arbitrary[:, h] for h in range(4)}),
    }[kind]
    with attention.tap(encoder, edit=ours):
        got = run(encoder, batch)
    expected = by_hand(encoder.model, batch.inputs, replaced)
    real = batch.mask[..., None]
    assert ((got - expected) * real).abs().max() < 1e-5


def test_nested_taps_see_each_other_from_outside_in(small_encoder):
    encoder = small_encoder("mpnet")
    batch = tokens.encode(encoder, TEXTS)
    outer, inner, after = {}, {}, {}
    with (
        attention.tap(encoder, observe=lambda n, p, v: outer.update({n: p.clone()}), edit=attention.zero([(0, 0)])),
        attention.tap(encoder, observe=lambda n, p, v: inner.update({n: p.clone()}), edit=attention.zero([(0, 1)])),
        attention.tap(encoder, observe=lambda n, p, v: after.update({n: p.clone()})),
    ):
        run(encoder, batch)
    assert outer[0][:, 0].sum() > 0
    assert inner[0][:, 0].sum() == 0 and inner[0][:, 1].sum() > 0
    assert after[0][:, :2].sum() == 0


@pytest.mark.parametrize("family", ["bert", "mpnet", "albert"])
def test_an_exception_inside_leaves_the_model_as_it_was(small_encoder, family):
    encoder = small_encoder(family)
    batch = tokens.encode(encoder, TEXTS)
    before = run(encoder, batch)

    def fail(layer, probabilities, values):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"), attention.tap(encoder), attention.tap(encoder, observe=fail):
        run(encoder, batch)
    assert torch.equal(run(encoder, batch), before)
    layers = []
    with attention.tap(encoder, observe=lambda n, p, v: layers.append(n)):
        run(encoder, batch)
    assert layers == [0, 1, 2], "the layer count starts afresh after a failed pass"


@pytest.mark.parametrize("edit", [lambda n, p: p[..., :-1], lambda n, p: p * float("nan")])
def test_bad_edits_are_refused(small_encoder, edit):
    encoder = small_encoder("bert")
    batch = tokens.encode(encoder, TEXTS)
    with pytest.raises(attention.TapError), attention.tap(encoder, edit=edit):
        run(encoder, batch)


REFUSED = from_data("refused")


@pytest.mark.parametrize("family", REFUSED)
def test_a_family_that_cannot_be_measured_is_refused_when_it_is_wrapped(minilm, family):
    with pytest.raises(encoders.NotAnEncoder, match="'mine'"):
        encoders.wrap(small_model(family, **REFUSED[family]), minilm.tokenizer, name="mine", device="cpu")


def test_query_heads_that_share_keys_have_a_map_each(small_encoder):
    """Grouped queries against a layer written by hand: query heads 0 and 1 see the keys of head 0, 2 and 3 those of head 1."""
    encoder = small_encoder("eurobert")
    batch = tokens.encode(encoder, TEXTS[:1])
    seen, inputs, layer = [], [], encoder.model.layers[0].self_attn
    hook = layer.register_forward_pre_hook(lambda _, a, k: inputs.append((a, k)), with_kwargs=True)
    with torch.no_grad(), attention.tap(encoder, observe=lambda n, p, v: seen.append((p, v))):
        encoder.model(**batch.inputs)
        hook.remove()
        ((_, given),) = inputs
        x, (cos, sin) = given["hidden_states"], given["position_embeddings"]
        q, k, v = (f(x)[0].unflatten(-1, (-1, 8)).transpose(0, 1) for f in (layer.q_proj, layer.k_proj, layer.v_proj))

    def turned(a):
        left, right = a.chunk(2, -1)
        return a * cos[0] + torch.cat([-right, left], -1) * sin[0]

    assert [len(a) for a in (q, k, v)] == [4, 2, 2]
    for head in range(4):
        expected = (turned(q[head]) @ turned(k[head // 2]).T / math.sqrt(8)).softmax(-1)
        torch.testing.assert_close(seen[0][0][0, head], expected)
        torch.testing.assert_close(seen[0][1][0, head], v[head // 2])


@pytest.mark.slow
@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in ("bert", "distilbert")])
def test_the_longest_input_fits(small_encoder, family):
    """What is said of the longest input is true: where positions are counted from the padding's, for one."""
    encoder = small_encoder(family)
    batch = tokens.encode(encoder, ["otter " * 80, "short"], truncate=True)
    assert batch.ids.shape[1] == encoder.max_length <= 66
    assert torch.isfinite(run(encoder, batch)).all()


def test_attention_that_passes_by_unseen_is_an_error(small_encoder):
    """A model with more layers than it shows: never silently wrong."""
    encoder = small_encoder("bert")
    encoder.model.encoder.layer = encoder.model.encoder.layer[:2]
    batch = tokens.encode(encoder, TEXTS)
    with pytest.raises(attention.TapError, match="Only 2 of the 3 layers"), attention.tap(encoder):
        run(encoder, batch)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_graphics_processor_gives_the_same_maps():
    """To 1e-4: sums on a device that adds in another order."""
    texts = ["Emma slept until her dog woke her", ("The otter dived.", "Then it came up.")]
    here, there = (
        attention.maps(encoder, tokens.encode(encoder, texts))
        for encoder in (encoders.load("minilm", device=device) for device in ("cpu", "cuda"))
    )
    assert torch.allclose(here, there.cpu(), atol=1e-4)


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

    states = batched_interventions(encoder, batch, paths, edit, at_once=3)
    for path, hidden in zip(paths, states, strict=True):
        heads = [(layer, head) for layer, head in enumerate(path) if head is not None]
        with torch.inference_mode(), attention.tap(encoder, edit=attention.zero(heads)):
            whole = encoder.model(**batch.inputs).last_hidden_state
        assert torch.allclose(hidden, whole, atol=1e-5), path
    assert torch.equal(states[2], states[4]) and not torch.allclose(states[1], states[2], atol=1e-3)
    shared = [(0, 0), (1, 1), (1, 1), (2, 2), (2, 3)]
    assert sorted(asked) == shared or family == "albert", "what two passes have in common is computed once"


def test_layers_that_are_one_module_are_no_list(small_encoder):
    with pytest.raises(EncoderError, match="no list of modules"):
        layers(small_encoder("albert"))
    assert len(layers(small_encoder("mpnet"))) == 3


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(0, 9))
def test_scores_are_shuffled_among_the_pairs_of_each_map(seed: int, length: int, number: int) -> None:
    scores = np.random.default_rng(seed).normal(size=(2, 2, length, length))
    shuffled = controls.shuffled_maps(torch.from_numpy(softmax(scores, -1)), number, seed).numpy()
    for layer, head in np.ndindex(2, 2):
        centred = scores[layer, head] - scores[layer, head].mean(-1, keepdims=True)
        order = np.random.default_rng([seed, number, layer, head]).permutation(length * length)
        wanted = np.zeros((length, length))
        for place, source in enumerate(order):
            wanted[place // length, place % length] = centred[source // length, source % length]
        np.testing.assert_allclose(shuffled[layer, head], softmax(wanted, -1), atol=1e-12)
