"""Chapter 12: its page's probes against a plain loop, targets and states against their sources, scores by hand, the chapter's claims."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from scipy import stats

from helpers import attention, controls, corpora, results, tokens

TASKS = ("part of speech", "dependency", "entity", "coreference")


@pytest.fixture(scope="module")
def documents():
    return corpora.documents("encyclopedia", "dev")[:6]


@pytest.fixture(scope="module")
def contexts(page, minilm, documents):
    return page.contexts_of(minilm, documents)


@pytest.fixture(scope="module")
def states(page, minilm, contexts):
    return page.states_of(minilm, [words for *_, words in contexts])


def in_order(contexts):
    """Every sentence of some contexts, and all their words."""
    return [d.sentences[n] for d, firsts, _ in contexts for n in firsts], [w for *_, words in contexts for w in words]


def test_contexts_are_whole_sentences_within_the_limit(page, minilm, documents, contexts, monkeypatch):
    def size(words):
        return len(minilm.tokenizer(" ".join(words)).input_ids)

    monkeypatch.setitem(page.contexts_of.__globals__, "MOST_TOKENS", 40)
    cut = page.contexts_of(minilm, documents)
    fitting = [s.id for s in in_order(contexts)[0] if size(s.words) <= 40]
    assert [s.id for s in in_order(cut)[0]] == fitting and max(size(words) for *_, words in cut) <= 40
    for (document, _, words), (after, firsts, _) in pairwise(cut):  # the next sentence would not have fitted
        both = [*words, *after.sentences[min(firsts)].words]
        assert document.document != after.document or size(both) > 40
    assert len(page.drawn(documents, 2, 3)) == 2
    monkeypatch.setitem(page.contexts_of.__globals__, "MOST_TOKENS", 5)
    with pytest.raises(corpora.CorpusError, match="nothing for 'part of speech'"):
        page.possible({"train": page.contexts_of(minilm, documents)}, (None,))


def test_targets_are_what_the_annotation_says(page, contexts):
    sentences, words = in_order(contexts)
    assert page.targets(contexts, "part of speech").label.tolist() == [u for s in sentences for u in s.upos]
    assert len(page.targets(contexts, "part of speech", limit=7)) == 7
    asked = [(s, w) for s in sentences for w, r in enumerate(s.relations) if s.governors[w] >= 0 and r != "punct"]
    relations = page.targets(contexts, "dependency")
    for (sentence, word), t in zip(asked, relations.itertuples(), strict=True):
        governor = sentence.governors[word]
        assert [words[slice(*span)] for span in t.spans] == [[sentence.words[word]], [sentence.words[governor]]]
        assert (t.document, t.label) == (sentence.document, sentence.relations[word].split(":")[0])
        assert t.spans[1][0] - t.spans[0][0] == governor - word
    mentions = [(d, firsts, m) for d, firsts, _ in contexts for m in d.mentions if m.sentence in firsts]
    types = page.targets(contexts, "entity")
    assert types.label.tolist() == [m.type for *_, m in mentions if m.type]
    surfaces = [" ".join(d.sentences[m.sentence].words[m.start : m.end]) for d, _, m in mentions if m.type]
    assert [" ".join(words[slice(*spans[0])]) for spans in types.spans] == surfaces
    for document, firsts, inside in contexts:
        pairs = page.targets([(document, firsts, inside)], "coreference")
        own = [(firsts[m.sentence], m) for m in document.mentions if m.sentence in firsts]
        chain = {(first + m.start, first + m.end): m.chain for first, m in own}
        spans = [(tuple(span), tuple(other)) for span, other in pairs.spans]
        labels = ["same" if chain[span] == chain[other] else "other" for span, other in spans]
        assert labels == pairs.label.tolist() and len({*spans}) == len(spans)
        assert labels.count("same") == labels.count("other"), "balanced"


def test_tasks_without_annotation_are_named_and_left_out_or_refused(page, contexts, capsys):
    def changed(change):
        return {"train": contexts, "test": [(change(document), *rest) for document, *rest in contexts]}

    assert [*page.possible(changed(replace), (None, None))] == [*TASKS] and not capsys.readouterr().out
    assert [*page.possible(changed(lambda d: replace(d, mentions=())), (None, None))] == [*TASKS[:2]]
    assert [line[:12] for line in capsys.readouterr().out.splitlines()] == ["Without 'ent", "Without 'cor"]
    for annotation, needed in (("relations", "names of relations"), ("upos", "part-of-speech tags")):

        def blank(document, annotation=annotation):
            sentences = [replace(s, **{annotation: ("_",) * len(s.words)}) for s in document.sentences]
            return replace(document, sentences=tuple(sentences))

        with pytest.raises(corpora.CorpusError, match=needed):
            page.possible(changed(blank), (None, None))


@pytest.mark.parametrize(("family", "shuffled"), [("bert", None), ("mpnet", None), ("bert", 5)])
def test_states_are_the_models_own(page, small_encoder, documents, family, shuffled):
    encoder = small_encoder(family)
    texts = [words for *_, words in page.contexts_of(encoder, documents[:2])]
    states, first, scale = page.states_of(encoder, texts, shuffled)
    assert states.shape == (encoder.layers + 1, first[-1], 32)
    assert np.allclose(scale, states.double().numpy().std(1).__pow__(2).mean(-1) ** 0.5)
    word = 0
    for number, words in enumerate(texts):
        start = first[word : word + len(words) + 1]
        batch = replace(tokens.encode(encoder, [words]), index=(number,))  # alone: no padding
        edit = None if shuffled is None else page.shuffling(batch, shuffled)
        with torch.inference_mode(), attention.tap(encoder, edit=edit):
            layers = encoder.model(**batch.inputs, output_hidden_states=True).hidden_states
        mine = torch.stack(layers)[:, 0, ~batch.special[0]].numpy()
        assert np.allclose(states[:, start[0] : start[-1]], mine, rtol=1e-3, atol=2e-3)
        for place, (low, high) in enumerate(pairwise(start - start[0])):
            assert (batch.unit[0][~batch.special[0]][low:high] == place + 1).all() and high > low
        word += len(words)
    assert len(first) == word + 1


def test_a_text_is_shuffled_alike_alone_and_in_a_batch(page, minilm):
    batch = tokens.encode(minilm, ["The cat sat.", "A dog, which barked, ran away from the cat."])
    maps = attention.maps(minilm, batch)
    edit = page.shuffling(batch, 0)
    of_batch = torch.stack([edit(layer, of_layer) for layer, of_layer in enumerate(maps)])
    for row, n in enumerate(batch.lengths.tolist()):
        alone = controls.shuffled_maps(maps[:, row, :, :n, :n], row)
        torch.testing.assert_close(of_batch[:, row, :, :n, :n], alone)
        assert not of_batch[:, row, :, n:].any() and not of_batch[:, row, ..., n:].any()
        assert float((alone - maps[:, row, :, :n, :n]).abs().mean()) > 0.01


def made(page, part, labels, **how):
    """A probe for each number of layers."""
    (states, _, scale), spans, _ = part
    return page.Probes(scale, states.shape[-1], len(labels), spans.shape[1], **how)


def by_loop(probes, top, part, number):
    """The definition, token by token, for one target."""
    take = {name: p[top].detach().double().numpy() for name, p in probes.named_parameters()}
    exponent = np.exp(take["a"][: top + 1])
    mixing, vectors, ((states, first, scale), spans, _) = exponent / exponent.sum(), [], part
    for role, span in enumerate(spans[number]):
        tokens_, scores = [], []
        for row in range(*first[span]):
            layers = states[:, row].double().numpy()
            mixed = sum(s * layers[k] / scale[k].item() for k, s in enumerate(mixing))
            tokens_.append((take["gamma"] * mixed) @ take["project"][role])
            scores.append(tokens_[-1] @ take["attend"][role, :, 0])
        vectors.append(np.average(tokens_, axis=0, weights=np.exp(np.array(scores) - max(scores))))
    hidden = np.maximum(np.concatenate(vectors) @ take["hidden"] + take["hidden_bias"], 0)
    return (hidden @ take["out"] + take["out_bias"])[0]


@pytest.mark.parametrize("task", TASKS)
@torch.no_grad()
def test_the_pages_probes_are_what_the_definition_says(page, contexts, states, task):
    tables = {"train": page.targets(contexts, task, limit=12)}
    labels, [part] = page.examples({"train": states}, tables)
    probes = made(page, part, labels, size=6, seed=1)
    for parameter in probes.parameters():
        parameter.add_(torch.randn(parameter.shape))  # mixing weights of 0 stay so
    given = page.scores_of(probes, *part[:2])
    for top, number in product((0, 3, 6), (0, 5, len(tables["train"]) - 1)):
        right = by_loop(probes, top, part, number)
        assert np.allclose(given[top, number], right, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("task", ["part of speech", "coreference"])
def test_probes_share_nothing_and_learn(page, contexts, states, task, monkeypatch):
    """With more steps than targets fill, and a development part that decides which step is kept."""

    def fitted(*changed, even=False, steps=40):
        probes = made(page, train, labels, seed=2)
        probes.a.requires_grad_(not even)
        for parameter in probes.parameters():
            parameter.data[[*changed]] += torch.randn(parameter[[*changed]].shape)
        return page.fit(probes, train, dev, steps, 2)

    tables = {"train": page.targets(contexts, task, 70), "dev": page.targets(contexts, task, 30, seed=1)}
    labels, (train, dev) = page.examples({"train": states, "dev": states}, tables)
    together = fitted()
    weights = together.a.softmax(-1)
    assert torch.allclose(weights.sum(-1), torch.ones(7)) and not weights.triu(1).any()
    assert torch.allclose(fitted(even=True).a[6].softmax(-1), torch.full((7,), 1 / 7))
    for mine, alone in zip(together.parameters(), fitted(0, 1, 3, 4, 5, 6).parameters(), strict=True):
        assert torch.allclose(mine[2], alone[2], atol=1e-4) and not torch.allclose(mine[5], alone[5], atol=1e-2)
    losses, looks = page.losses, []
    begun, done = (losses(fitted(steps=steps), *train) for steps in (1, 40))
    assert (done < 0.9 * begun).all()

    def watched(probes, states, spans, truth):
        of_each = losses(probes, states, spans, truth)
        if spans is dev[1]:
            looks.append(of_each)
        return of_each

    monkeypatch.setitem(losses.__globals__, "losses", watched)
    best = fitted(steps=100)
    assert len(looks) == 3 and (best.kept == 30).all(), "stopped: none has improved for 60 steps"
    assert torch.allclose(losses(best, *dev), torch.stack(looks).amin(0)), "each as it was best"


def test_places_of_tasks_by_hand(page):
    places = page.expected_layer(np.array([[0.5, 0.7, 0.8, 0.8], [0.5, 0.5, 0.5, 0.9], [0.5, 0.9, 0.9, 0.9]]))
    assert places == pytest.approx([(0.2 + 2 * 0.1) / 0.3, 3, 1])
    assert np.isnan(page.expected_layer(np.array([0.5, 0.6, 0.4]))), "without a gain no layer"
    assert page.centre_of_gravity([[1, 0, 0], [0, 0.5, 0.5], [0.2, 0.3, 0.5]]) == pytest.approx([0, 1.5, 1.3])
    values = np.array([1.0, 2.5, 0.5, 3.0])
    mean, ends = page.over_fits(values), stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (mean.value, mean.low, mean.high) == pytest.approx((values.mean(), *ends))
    assert np.isnan(page.over_fits([1.0]).low), "one fit has no interval"


def test_most_of_the_gain_on_relations_is_there_after_layer_2():
    relations = results.recorded("layer_semantics").array("scalar_mix_score", of="dependency")
    assert (relations[2] - relations[0]) / (relations[-1] - relations[0]) == pytest.approx(0.8, abs=0.02)
