"""Chapter 12: its page's probe against a plain loop, the helper's probes against the page's, scores by hand, the chapter's claims."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats

from helpers import attention, controls, corpora, results, tokens
from helpers.measurements import layer_probes
from helpers.measurements.layer_probes import OTHER, SAME, TASKS, Examples, words


@pytest.fixture(scope="module")
def documents():
    return corpora.documents("encyclopedia", "dev")[:6]


@pytest.fixture(scope="module")
def contexts(minilm, documents):
    return layer_probes.contexts(minilm, documents)


@pytest.fixture(scope="module")
def states(minilm, contexts):
    return layer_probes.states(minilm, contexts)


def examples(states, task, limit=40):
    chosen = layer_probes.targets(states.contexts, task, limit=limit)
    return Examples(states, chosen, sorted({t.label for t in chosen}))


def test_contexts_are_whole_sentences_within_the_limit(minilm, documents, contexts, monkeypatch):
    def size(words):
        return len(minilm.tokenizer(" ".join(words)).input_ids)

    monkeypatch.setattr(layer_probes, "MOST_TOKENS", 40)
    cut = layer_probes.contexts(minilm, documents)
    fitting = [s.id for c in contexts for s in c.sentences if size(s.words) <= 40]
    assert [s.id for c in cut for s in c.sentences] == fitting and max(size(words(c)) for c in cut) <= 40
    for before, after in pairwise(cut):  # the next sentence would not have fitted
        both = [*words(before), *after.sentences[0].words]
        assert before.document != after.document or size(both) > 40
    few = layer_probes.contexts(minilm, documents, most=2, seed=3)
    assert len({c.document for c in few}) == 2 and few == layer_probes.contexts(minilm, documents, most=2, seed=3)
    monkeypatch.setattr(layer_probes, "MOST_TOKENS", 5)
    with pytest.raises(corpora.CorpusError, match="at most 5 tokens"):
        layer_probes.contexts(minilm, documents)


def test_targets_are_what_the_annotation_says(contexts):
    tags = layer_probes.targets(contexts, "part of speech")
    assert [t.label for t in tags] == [u for c in contexts for s in c.sentences for u in s.upos]
    assert len(layer_probes.targets(contexts, "part of speech", limit=7)) == 7
    placed = [(n, s, w) for n, c in enumerate(contexts) for s in c.sentences for w in range(len(s.words))]
    asked = [(n, s, w) for n, s, w in placed if s.governors[w] >= 0 and s.relations[w] != "punct"]
    relations = layer_probes.targets(contexts, "dependency")
    for (number, sentence, word), t in zip(asked, relations, strict=True):
        spans = [words(contexts[number])[slice(*span)] for span in t.spans]
        assert spans == [[sentence.words[word]], [sentence.words[sentence.governors[word]]]]
        assert (t.context, t.label) == (number, sentence.relations[word].split(":")[0])
        assert t.spans[1][0] - t.spans[0][0] == sentence.governors[word] - word
    types = layer_probes.targets(contexts, "entity")
    assert [t.label for t in types] == [m.type for c in contexts for m in c.mentions if m.type]
    surfaces = [c.surface(m) for c in contexts for m in c.mentions if m.type]
    assert [" ".join(words(contexts[t.context])[slice(*t.spans[0])]) for t in types] == surfaces
    pairs = layer_probes.targets(contexts, "coreference")
    for number, context in enumerate(contexts):
        here = [t for t in pairs if t.context == number]
        starts = np.cumsum([0, *(len(s.words) for s in context.sentences)])
        chain = {(starts[m.sentence] + m.start, starts[m.sentence] + m.end): m.chain for m in context.mentions}
        assert all((chain[t.spans[0]] == chain[t.spans[1]]) == (t.label == SAME) for t in here)
        assert 2 * sum(t.label == OTHER for t in here) == len(here) == len({t.spans for t in here}), "balanced"


def test_tasks_without_annotation_are_named_and_left_out_or_refused(contexts, capsys):
    assert layer_probes.possible({"train": contexts, "test": contexts}) == [*TASKS] and not capsys.readouterr().out
    without = [replace(c, mentions=()) for c in contexts]
    assert layer_probes.possible({"train": contexts, "test": without}) == [*TASKS[:2]]
    assert [line[:12] for line in capsys.readouterr().out.splitlines()] == ["Without 'ent", "Without 'cor"]
    for annotation, needed in (("relations", "names of relations"), ("upos", "part-of-speech tags")):
        blank = [[replace(s, **{annotation: ("_",) * len(s.words)}) for s in c.sentences] for c in contexts]
        blank = [replace(c, sentences=tuple(some)) for c, some in zip(contexts, blank, strict=True)]
        with pytest.raises(corpora.CorpusError, match=needed):
            layer_probes.possible({"train": contexts, "test": blank})


@pytest.mark.parametrize(("family", "shuffled"), [("bert", None), ("mpnet", None), ("bert", 5)])
def test_states_are_the_models_own(small_encoder, documents, family, shuffled):
    encoder = small_encoder(family)
    some = layer_probes.contexts(encoder, documents[:2])
    read = layer_probes.states(encoder, some, shuffled=shuffled)
    assert read.values.shape == (read.start[-1][-1], encoder.layers + 1, 32)
    for number, (context, start) in enumerate(zip(some, read.start, strict=True)):
        batch = replace(tokens.encode(encoder, [words(context)]), index=(number,))  # alone: no padding
        edit = None if shuffled is None else controls.shuffling(batch, shuffled)
        with torch.inference_mode(), attention.tap(encoder, edit=edit):
            layers = encoder.model(**batch.inputs, output_hidden_states=True).hidden_states
        mine = torch.stack(layers, 2)[0][~batch.special[0]].numpy()
        assert np.allclose(read.values[start[0] : start[-1]], mine, rtol=1e-3, atol=2e-3)
        units = batch.unit[0][~batch.special[0]].numpy()
        for word, (first, after) in enumerate(pairwise(start - start[0])):
            assert (units[first:after] == word + 1).all() and after > first
        assert len(start) == len(words(context)) + 1


def by_loop(probe, part, number):
    """The definition, token by token, for one target."""
    take = {name: p.detach().double().numpy() for name, p in probe.named_parameters()}
    exponent = np.exp(take["a"])
    mixing, spans = exponent / exponent.sum(), []
    for role in range(len(part.low)):
        tokens_, scores = [], []
        for row in range(part.low[role, number], part.high[role, number]):
            layers = part.states.values[row].astype(np.float64)
            mixed = sum(s * layers[k] / part.scale[k].item() for k, s in enumerate(mixing))
            tokens_.append((take["gamma"] * mixed) @ take["project"][role])
            scores.append(tokens_[-1] @ take["attend"][role])
        counts = np.exp(np.array(scores) - max(scores))
        spans.append((counts / counts.sum()) @ np.array(tokens_))
    hidden = np.maximum(np.concatenate(spans) @ take["hidden"] + take["hidden_bias"], 0)
    return hidden @ take["out"] + take["out_bias"]


@pytest.mark.parametrize("task", TASKS)
def test_the_pages_probe_is_what_the_definition_says(page, states, task):
    part = examples(states, task, limit=12)
    for top in (0, 3, 6):
        probe = page.Probe(top, part.scale, part.width, len(part.labels), spans=len(part.low), size=6, seed=1)
        with torch.no_grad():
            for name, parameter in probe.named_parameters():
                parameter.normal_(generator=torch.Generator().manual_seed(len(name)))
            given = probe(part.inputs(np.arange(len(part.targets))))
        for number in (0, 5, len(part.targets) - 1):
            assert np.allclose(given[number], by_loop(probe, part, number), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("task", ["part of speech", "coreference"])
def test_probes_trained_at_once_are_those_of_the_page(page, states, task):
    """With more steps than targets fill, and a development part that decides which step is kept."""
    train = examples(states, task, limit=70)
    dev = Examples(states, layer_probes.targets(states.contexts, task, limit=30, seed=1), train.labels)
    together = layer_probes.fit(train, dev, steps=40, seed=2)
    chances, weights = layer_probes.answers(together, dev), together.weights()
    assert torch.allclose(weights.sum(-1), torch.ones(7)) and (weights.triu(1) == 0).all()
    assert torch.allclose(layer_probes.fit(train, dev, steps=4, even=True).weights()[6], torch.full((7,), 1 / 7))
    for top in (0, 2, 6):
        probe = page.Probe(top, train.scale, train.width, len(train.labels), len(train.low), seed=2)
        page.fit(probe, train, dev, 40, 2)
        mine = probe(dev.inputs(np.arange(len(dev.targets)))).softmax(-1).detach().numpy()
        assert np.allclose(chances[top], mine, atol=2e-3)
        assert np.allclose(weights[top, : top + 1], probe.a.softmax(0).detach(), atol=1e-3)


def test_places_of_tasks_by_hand(page):
    places = page.expected_layer(np.array([[0.5, 0.7, 0.8, 0.8], [0.5, 0.5, 0.5, 0.9], [0.5, 0.9, 0.9, 0.9]]))
    assert places == pytest.approx([(0.2 + 2 * 0.1) / 0.3, 3, 1])
    assert np.isnan(page.expected_layer(np.array([0.5, 0.6, 0.4]))), "without a gain no layer"
    rows = np.array([[1, 1e-9, 1e-9], [1e-9, 0.5, 0.5], [0.2, 0.3, 0.5]])
    assert page.centre_of_gravity(rows) == pytest.approx([0, 1.5, 1.3], abs=1e-6)
    values = np.array([1.0, 2.5, 0.5, 3.0])
    mean, ends = page.over_fits(values), stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (mean.value, mean.low, mean.high) == pytest.approx((values.mean(), *ends))
    assert np.isnan(page.over_fits([1.0]).low), "one fit has no interval"


def test_most_of_the_gain_on_relations_is_there_after_layer_2():
    relations = results.recorded("layer_semantics").array("scalar_mix_score", of="dependency")
    assert (relations[2] - relations[0]) / (relations[-1] - relations[0]) == pytest.approx(0.8, abs=0.02)
