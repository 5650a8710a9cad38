"""Chapter 12: streamed states against the model, probes against a plain loop, scores by hand, the chapter's claims."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from helpers import corpora
from helpers.chapters import layer_semantics as semantics
from helpers.chapters.layer_semantics import OTHER, SAME, TASKS, Outcome, Probes, figures
from helpers.chapters.layer_semantics import states as on_disk
from helpers.engine import attention, controls, tokens
from helpers.engine.estimates import Estimate
from helpers.record import results


@pytest.fixture(scope="module")
def documents():
    return corpora.documents("encyclopedia", "dev")[:6]


@pytest.fixture(scope="module")
def found(minilm, documents):
    return semantics.contexts(minilm, documents)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache of the module's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BOOK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path))
    return tmp_path / "states"


@pytest.fixture(scope="module")
def states(minilm, found, cache):
    return semantics.stream(minilm, found)


def part(states, found, task, limit=40):
    chosen = semantics.targets(found, task, limit=limit)
    return semantics.part(states, found, chosen, sorted({t.label for t in chosen}))


# ------------------------------------------------------------------ treebanks of one's own


def without(found, **changes):
    """The same contexts without some annotation."""
    return [
        replace(
            c,
            **{k: v for k, v in changes.items() if k == "mentions"},
            sentences=tuple(
                replace(s, **{k: tuple("_" for _ in s.words) for k in changes if k != "mentions"})
                for s in c.sentences
            ),
        )
        for c in found
    ]


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({}, TASKS),
        ({"mentions": ()}, TASKS[:2]),
        ({"upos": "_"}, TASKS[1:]),
        ({"mentions": (), "upos": "_"}, ("dependency",)),
    ],
)
def test_tasks_without_annotation_are_named_and_left_out(found, changes, left):
    parts = {"train": found, "dev": found, "test": without(found, **changes)}
    tasks, missing = semantics.possible(parts)
    assert tasks == left and len(missing) == len(TASKS) - len(left)
    for task, told in zip([t for t in TASKS if t not in left], missing, strict=True):
        assert told.startswith(f"Without {task!r}: it needs ")


def test_a_treebank_without_relations_is_refused(found):
    with pytest.raises(corpora.CorpusError, match="names of relations"):
        semantics.possible({"train": found, "dev": found, "test": without(found, relations="_")})


# ------------------------------------------------------------------ contexts and targets


def test_contexts_are_whole_sentences_within_the_limit(minilm, documents):
    whole = semantics.contexts(minilm, documents)
    for limit in (40, 60, 128):
        cut = semantics.contexts(minilm, documents, limit=limit)
        assert [s.id for c in cut for s in c.sentences] == [
            s.id for c in whole for s in c.sentences if len(minilm.tokenizer(" ".join(s.words)).input_ids) <= limit
        ]
        for context in cut:
            assert len(minilm.tokenizer(" ".join(context.words)).input_ids) <= limit
            assert len({s.id.rsplit("-", 1)[0] for s in context.sentences}) == 1
        for before, after in pairwise(cut):  # the next sentence would not have fitted
            if before.document == after.document:
                joined = [*before.words, *after.sentences[0].words]
                assert len(minilm.tokenizer(" ".join(joined)).input_ids) > limit
    few = semantics.contexts(minilm, documents, most=2, seed=3)
    assert len({c.document for c in few}) == 2
    assert few == semantics.contexts(minilm, documents, most=2, seed=3)
    with pytest.raises(ValueError, match="at most 5 tokens"):
        semantics.contexts(minilm, documents, limit=5)


def test_mentions_keep_their_words(documents, found):
    for context in found:
        document = documents[context.document]
        own = [document.surface(m) for m in document.mentions]
        assert [" ".join(context.words[m.start : m.end]) for m in context.mentions] == own
        for m in context.mentions:
            assert m.start <= m.head < m.end and context.sentence_of(m.head) == m.sentence


def test_targets_are_what_the_annotation_says(found):
    tags = semantics.targets(found, "part of speech")
    assert [t.label for t in tags] == [u for c in found for s in c.sentences for u in s.upos]
    assert len(semantics.targets(found, "part of speech", limit=7)) == 7
    for t in semantics.targets(found, "dependency"):
        (word, _), (governor, _) = t.spans
        context = found[t.context]
        sentence = context.sentences[context.sentence_of(word)]
        start = context.first[context.sentence_of(word)]
        assert sentence.governors[word - start] == governor - start
        assert sentence.relations[word - start].split(":")[0] == t.label not in ("punct", "root")
    types = semantics.targets(found, "entity")
    assert [t.label for t in types] == [m.type for c in found for m in c.mentions]


def test_coreference_is_balanced_in_every_context(found):
    chosen = semantics.targets(found, "coreference")
    for number, context in enumerate(found):
        here = [t for t in chosen if t.context == number]
        chain = {(m.start, m.end): m.chain for m in context.mentions}
        for t in here:
            first, second = t.spans
            assert (first[0], -first[1]) < (second[0], -second[1]) and (chain[first] == chain[second]) == (
                t.label == SAME
            )
        assert sum(t.label == SAME for t in here) == sum(t.label == OTHER for t in here)
        assert len({t.spans for t in here}) == len(here), "no pair twice"


def test_what_a_corpus_must_have(minilm, documents, found):
    with pytest.raises(ValueError, match="Unknown task 'x'; there are part of speech"):
        semantics.targets(found, "x")
    bare = [semantics.Context(c.document, c.sentences) for c in found]
    with pytest.raises(ValueError, match=r"no annotation for 'entity': it needs entity types"):
        semantics.targets(bare, "entity")


# ------------------------------------------------------------------ states on disk


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "modernbert"])
def test_streamed_states_are_the_models_own(small_encoder, documents, empty_cache, family):
    encoder = small_encoder(family)
    some = semantics.contexts(encoder, documents[:3], limit=60)
    kept = semantics.stream(encoder, some, batch_size=3)
    assert kept.values.shape == (kept.start[-1][-1], encoder.layers + 1, 32) and kept.values.dtype == np.float16
    for context, start in zip(some, kept.start, strict=True):
        batch = tokens.encode(encoder, [list(context.words)])  # alone: no padding
        with torch.inference_mode():
            layers = encoder.model(**batch.inputs, output_hidden_states=True).hidden_states
        mine = torch.stack(layers, 2)[0][~batch.special[0]].numpy()
        assert np.allclose(kept.values[start[0] : start[-1]], mine, rtol=1e-3, atol=2e-3)
        units = batch.unit[0][~batch.special[0]].numpy()
        for word in range(len(context.words)):
            assert (units[start[word] - start[0] : start[word + 1] - start[0]] == word + 1).all()
        assert len(start) == len(context.words) + 1


def test_shuffled_states_are_those_of_a_model_that_runs_on_shuffled_maps(small_encoder, documents, empty_cache):
    encoder = small_encoder("bert")
    some = semantics.contexts(encoder, documents[:1], limit=40)[:3]
    own, dealt = (semantics.stream(encoder, some, shuffled=seed) for seed in (None, 5))
    assert own.file != dealt.file != semantics.stream(encoder, some, shuffled=6).file
    assert np.array_equal(own.values[:, 0], dealt.values[:, 0]), "the embeddings are as they were"
    assert not np.allclose(own.values[:, 1:], dealt.values[:, 1:], atol=1e-3)
    for number, (context, start) in enumerate(zip(some, dealt.start, strict=True)):
        batch = replace(tokens.encode(encoder, [list(context.words)]), index=(number,))
        with torch.inference_mode(), attention.tap(encoder, edit=controls.shuffling(batch, 5)):
            layers = encoder.model(**batch.inputs, output_hidden_states=True).hidden_states
        mine = torch.stack(layers, 2)[0][~batch.special[0]].numpy()
        assert np.allclose(dealt.values[start[0] : start[-1]], mine, rtol=1e-3, atol=2e-3)


def test_the_file_is_used_again_but_never_half_of_it(minilm, found, empty_cache, monkeypatch):
    some = found[:2]
    first = semantics.stream(minilm, some)
    whole, values = first.file.read_bytes(), np.array(first.values)
    written = []
    write = on_disk._write
    monkeypatch.setattr(on_disk, "_write", lambda *a: (written.append(a[3]), write(*a)))
    semantics.stream(minilm, some)
    assert not written, "it is there and whole"
    for broken in (whole[: len(whole) // 2], whole[:3], b""):
        first.file.unlink()  # a file that is mapped must not shrink
        first.file.write_bytes(broken)
        again = semantics.stream(minilm, some)
        assert written.pop() == first.file and first.file.read_bytes() == whole
        assert np.array_equal(again.values, values)
    (empty_cache / (first.file.stem + "x.tmp")).write_bytes(whole)
    first.file.unlink()
    semantics.stream(minilm, some)
    assert written, "what another run has not finished does not count"
    other = semantics.stream(minilm, found[:1])
    assert other.file != first.file


def test_a_run_that_fails_leaves_nothing(minilm, found, empty_cache, monkeypatch):
    calls = []

    def stop(*args, **kwargs):
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return forward(*args, **kwargs)

    forward = minilm.model.forward
    monkeypatch.setattr(minilm.model, "forward", stop)
    with pytest.raises(KeyboardInterrupt):
        semantics.stream(minilm, found[:4], batch_size=2)
    assert len(calls) == 2 and list(empty_cache.iterdir()) == []


# ------------------------------------------------------------------ probes


def by_loop(probes: Probes, part, number: int, prefix: int) -> np.ndarray:
    """The definition, token by token, for one probe and one target."""
    take = {name: p.detach().double().numpy()[prefix] for name, p in probes.named_parameters()}
    values = part.states.values.astype(np.float64)
    exponent = np.exp(take["a"][: prefix + 1])
    weights = exponent / exponent.sum()
    spans = []
    for role in range(len(part.low)):
        tokens_, scores = [], []
        for row in range(part.low[role, number], part.high[role, number]):
            mixed = sum(
                weights[layer] * values[row, layer] / probes.scale[layer].item() for layer in range(prefix + 1)
            )
            tokens_.append((take["gamma"] * mixed) @ take["project"][role])
            scores.append(tokens_[-1] @ take["attend"][role])
        attention = np.exp(np.array(scores) - max(scores))
        spans.append((attention / attention.sum()) @ np.array(tokens_))
    hidden = np.maximum(np.concatenate(spans) @ take["hidden"] + take["hidden_bias"][0], 0)
    logits = hidden @ take["out"] + take["out_bias"][0]
    return np.exp(logits) / np.exp(logits).sum()


@pytest.mark.parametrize("task", TASKS)
def test_probes_are_what_the_definition_says(states, found, task):
    ready = part(states, found, task, limit=12)
    probes = Probes(states.scale, 384, len(ready.labels), roles=len(ready.low), size=6, seed=1)
    with torch.no_grad():
        for name in ("a", "gamma", "attend", "hidden_bias", "out_bias"):
            getattr(probes, name).normal_(generator=torch.Generator().manual_seed(len(name)))
    given = semantics.answers(probes, ready)
    assert given.shape == (7, len(ready.targets), len(ready.labels))
    for number in (0, 5, len(ready.targets) - 1):
        for prefix in (0, 3, 6):
            assert np.allclose(given[prefix, number], by_loop(probes, ready, number, prefix), atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 99))
def test_pooling_is_a_mean_weighted_by_a_softmax(sizes, seed):
    generator = torch.Generator().manual_seed(seed)
    owner = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    given_, scores = (
        torch.randn(2, len(owner), 3, generator=generator),
        9 * torch.randn(2, len(owner), generator=generator),
    )
    got = semantics.pooled(given_, scores, owner)
    for probe in range(2):
        for target in range(len(sizes)):
            at = owner == target
            assert torch.allclose(got[probe, target], scores[probe, at].softmax(0) @ given_[probe, at], atol=1e-5)


def test_probes_trained_together_are_those_trained_alone(states, found):
    """A change of one probe's first weights changes no other probe, and a probe never reads a layer above its own."""
    ready = part(states, found, "part of speech", limit=60)
    options = {"steps": 12, "batch": 16, "every": 4, "size": 8}
    one = semantics.train(ready, ready, **options)
    original = Probes.__init__

    def disturbed(self, *args, **kwargs):
        original(self, *args, **kwargs)
        with torch.no_grad():
            self.out[4] *= -3

    Probes.__init__ = disturbed
    try:
        two = semantics.train(ready, ready, **options)
    finally:
        Probes.__init__ = original
    others = [n for n in range(7) if n != 4]
    for (name, a), (_, b) in zip(one.named_parameters(), two.named_parameters(), strict=True):
        assert torch.allclose(a[others], b[others], atol=1e-5), name
    assert not torch.allclose(one.out[4], two.out[4], atol=1e-3)
    weights = one.weights()
    assert torch.allclose(weights.sum(-1), torch.ones(7)) and (weights.triu(1) == 0).all()
    changed = [(torch.cat([v[:3], v[3:] + 5]), owner) for v, owner in ready.inputs(np.arange(9))]
    before, after = one(ready.inputs(np.arange(9))), one(changed)
    assert torch.allclose(before[:3], after[:3]) and not torch.allclose(before[3:], after[3:])


def test_training_is_repeatable_keeps_the_best_and_can_hold_the_mix(states, found):
    ready = part(states, found, "part of speech", limit=80)
    options = {"steps": 20, "batch": 16, "every": 5, "size": 8, "seed": 3}
    one, two = (semantics.train(ready, ready, **options) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    chosen = np.arange(len(ready.targets))
    first = Probes(states.scale, 384, len(ready.labels), size=8, seed=3)
    with torch.inference_mode():
        assert (
            semantics.cross_entropy(one, ready, chosen).mean(1)
            < semantics.cross_entropy(first, ready, chosen).mean(1)
        ).all()
    uniform = semantics.train(ready, ready, uniform=True, **options).weights()
    assert np.allclose(uniform, np.tril(np.ones((7, 7))) / np.arange(1, 8)[:, None])


def test_an_unknown_class_is_never_right_and_teaches_nothing(states, found):
    chosen = semantics.targets(found, "part of speech", limit=50)
    labels = sorted({t.label for t in chosen} - {"NOUN"})
    ready = semantics.part(states, found, chosen, labels)
    unknown = np.array([t.label == "NOUN" for t in chosen])
    assert unknown.any() and (ready.truth[unknown] == -1).all()
    probes = Probes(states.scale, 384, len(labels), size=4)
    loss = semantics.cross_entropy(probes, ready, np.arange(50))
    assert (loss[:, unknown] == 0).all() and (loss[:, ~unknown] > 0).all()


def test_a_task_that_is_in_the_embeddings_gains_nothing_above(states, found):
    """Sanity check: whether a word is short. The first probe finds it, so that no layer adds much."""
    chosen = [
        semantics.Target(t.context, t.spans, "short" if len(t.key) < 4 else "long", t.key)
        for t in semantics.targets(found, "part of speech")
    ]
    ready = semantics.part(states, found, chosen, ["long", "short"])
    outcome = semantics.measure(
        {"train": ready, "dev": ready, "test": ready}, "part of speech", seeds=(0,), steps=60, size=16
    )
    assert outcome.scores.value[0] > 0.97 and abs(outcome.gain.value) < 0.03


# ------------------------------------------------------------------ scores


def test_expected_layer_by_hand():
    assert semantics.expected_layer(np.array([0.5, 0.7, 0.8, 0.8])) == pytest.approx((0.2 + 2 * 0.1) / 0.3)
    assert semantics.expected_layer(np.array([0.5, 0.5, 0.5, 0.9])) == pytest.approx(3)
    assert semantics.expected_layer(np.array([0.5, 0.9, 0.9, 0.9])) == pytest.approx(1)
    assert np.isnan(semantics.expected_layer(np.array([0.5, 0.6, 0.5])))
    many = semantics.expected_layer(np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]))
    assert many.tolist() == [1, 2]
    rows = np.array([[1, 0, 0], [0, 0.5, 0.5], [0.2, 0.3, 0.5]])
    assert semantics.centre_of_gravity(rows).tolist() == pytest.approx([0, 1.5, 1.3])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=8))
def test_expected_layer_of_a_rising_curve_is_a_layer(scores):
    curve = np.sort(scores)
    if curve[-1] - curve[0] > 1e-6:
        assert 1 - 1e-9 <= semantics.expected_layer(curve) <= len(curve) - 1 + 1e-9


def outcome(seed: int = 0, task: str = "entity") -> Outcome:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 50)
    logits = rng.normal(size=(2, 4, 50, 3)) + np.arange(4)[:, None, None] * np.eye(3)[truth]
    given_ = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    weights = rng.dirichlet(np.ones(4), 2)
    return Outcome(
        task,
        ("a", "b", "c"),
        (1, 2, 50),
        given_.argmax(-1) == truth,
        given_.mean(0),
        weights,
        np.ones(2),
        truth,
        np.sort(rng.integers(0, 8, 50)),
        {"majority": truth == 0},
    )


def test_scores_are_means_over_targets_and_seeds():
    o = outcome()
    assert np.allclose(o.scores.value, o.hits.mean((0, 2))) and np.allclose(o.seeds, o.hits.mean(2))
    assert (o.scores.low <= o.scores.value).all() and (o.scores.value <= o.scores.high).all()
    assert np.allclose(o.gains.value, np.diff(o.scores.value)) and np.isclose(o.gain.value, o.gains.value.sum())
    assert np.isclose(o.expected.value, (o.gains.value * [1, 2, 3]).sum() / o.gain.value)
    assert o.gravity.low <= o.gravity.value <= o.gravity.high
    assert np.isclose(o.baseline("majority").value, (o.truth == 0).mean())
    assert np.isclose(o.by_label()["b"][2], o.hits[:, 2, o.truth == 1].mean())
    record = semantics.as_dict({"entity": o})["entity"]
    assert np.isclose(sum(record["settled"]), 1) and (record["expected"] is None) == (o.gain.low <= 0)
    step = semantics.steps_between({"entity": o, "coreference": outcome(1, "coreference")})
    assert set(step) == {"entity to coreference"} and isinstance(step["entity to coreference"]["expected"], Estimate)
    rise = o.gain_by_label(("b",))["b"]
    assert (
        np.isclose(rise.value, o.by_label()["b"][-1] - o.by_label()["b"][0]) and rise.low <= rise.value <= rise.high
    )
    all_pairs = semantics.steps_between({task: outcome(n, task) for n, task in enumerate(TASKS)})
    assert len(all_pairs) == 6 and "part of speech to coreference" in all_pairs, (
        "also of tasks that are no neighbours"
    )


def test_steps_by_the_mixing_weights_are_paired_over_seeds():
    own, twin = ({task: outcome(n + more, task) for n, task in enumerate(TASKS[:2])} for more in (0, 7))
    step = semantics.steps_between(own, twin)["part of speech to dependency"]
    each = {
        name: [sum(n * w for n, w in enumerate(row)) for row in of["dependency"].weights]
        for name, of in (("own", own), ("twin", twin))
    }
    before = {
        name: [sum(n * w for n, w in enumerate(row)) for row in of["part of speech"].weights]
        for name, of in (("own", own), ("twin", twin))
    }
    moved = {name: np.subtract(each[name], before[name]) for name in each}
    for key, values in (
        ("gravity", moved["own"]),
        ("random", moved["twin"]),
        ("beyond", moved["own"] - moved["twin"]),
    ):
        low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        assert np.allclose((step[key].value, step[key].low, step[key].high), (values.mean(), low, high))
    even = [
        [sum(w * np.log(w * 4) for w in row) for row in own[task].weights]
        for task in ("part of speech", "dependency")
    ]
    assert np.isclose(step["spread"].value, np.mean(np.subtract(*even)))
    assert np.isclose(semantics.concentration(np.array([[0.5, 0.5, 0.0, 0.0]]))[0], np.log(2))
    assert semantics.concentration(np.full((2, 7), 1 / 7)) == pytest.approx(0)
    alone = {task: replace(o, hits=o.hits[:1], weights=o.weights[:1], gamma=o.gamma[:1]) for task, o in own.items()}
    assert semantics.steps_between(alone)["part of speech to dependency"]["gravity"] is None, "one seed, no interval"
    assert alone["dependency"].gravity.low == alone["dependency"].gravity.high


def test_settling_is_the_first_layer_without_a_later_mistake():
    o = outcome()
    for number in range(50):
        right = [p[number].argmax() == o.truth[number] for p in o.probabilities]
        wanted = next((n for n in range(4) if all(right[n:])), 4)
        assert o.settled[number] == wanted


def test_baselines_by_hand():
    def t(key, label):
        return semantics.Target(0, ((0, 1),), label, key)

    train = [t("a", "x"), t("a", "y"), t("a", "y"), t("b", "x"), t("c", "x")]
    test = [t("a", "y"), t("a", "x"), t("b", "x"), t("new", "x"), t("new", "y")]
    found_ = semantics.baselines(train, test)
    assert found_["majority"].tolist() == [False, True, True, True, False]
    assert found_["look-up"].tolist() == [True, False, True, True, False]


def test_sentences_are_chosen_by_the_rule(minilm, found):
    chosen = {task: semantics.targets(found, task, limit=50, seed=1) for task in TASKS}
    outcomes = {task: outcome(n, task) for n, task in enumerate(TASKS)}
    o = outcomes[TASKS[0]]
    rise = {}
    for n in range(50):
        first, *_, last = o.probabilities[:, n]
        if first.argmax() != o.truth[n] and last.argmax() == o.truth[n]:
            rise[n] = last[o.truth[n]] - first[o.truth[n]]
    assert semantics.rises(o) == sorted(rise, key=lambda n: -rise[n])
    shown = semantics.turned(outcomes, found, chosen, most=3)
    assert len(shown) == 2 and shown[0][0] != shown[1][0]
    for (text, cases), task in zip(shown, TASKS, strict=False):
        assert any(text == s.text for c in found for s in c.sentences)
        assert 1 <= len(cases) <= 3 and cases[0].task == task
        risen = [c.right[-1] - c.right[0] for c in cases]
        assert risen[1:] == sorted(risen[1:], reverse=True)
        for one in cases:
            assert one.right[-1] > one.wrong[-1] and one.right.shape == (4,) and one.rival != one.label
    best = max(rise, key=rise.get)
    where, told = semantics.told_by_layer([o, outcome(7, TASKS[0])], found, chosen[TASKS[0]], best)
    own = [n for n, target in enumerate(chosen[TASKS[0]]) if target in where]
    assert chosen[TASKS[0]][best] in where and told.shape == (2, 4, len(where))
    assert {t.context for t in where} == {chosen[TASKS[0]][best].context}
    assert told[0].tolist() == [[o.labels[p[n].argmax()] for n in own] for p in o.probabilities]
    alone = semantics.case(o, found, chosen[TASKS[0]], best)
    p = o.probabilities[:, best]
    assert np.allclose(alone.right, p[:, o.truth[best]]) and np.allclose(shown[0][1][0].right, alone.right)
    wrong = [k for k in range(3) if k != o.truth[best]]
    assert np.allclose(alone.wrong, p[:, max(wrong, key=lambda k: p[:, k].mean())])


# ------------------------------------------------------------------ the whole way


def test_measuring_a_task_from_start_to_end(minilm, documents, empty_cache):
    parts = {
        "train": semantics.contexts(minilm, documents[:4]),
        "dev": semantics.contexts(minilm, documents[4:5]),
        "test": semantics.contexts(minilm, documents[5:]),
    }
    ready = semantics.prepare(minilm, parts, "dependency", limits=(80, 20, 30))
    o = semantics.measure(ready, "dependency", seeds=(0, 1), steps=10, batch=16, every=5, size=8)
    assert o.sizes == (80, 20, 30) and o.hits.shape == (2, 7, 30) and o.weights.shape == (2, 7)
    assert np.allclose(o.weights.sum(-1), 1) and np.allclose(o.probabilities.sum(-1), 1, atol=1e-5)
    assert set(o.labels) == {t.label for t in ready["train"].targets}
    options = {"steps": 10, "batch": 16, "every": 5, "size": 8}
    networks = [(minilm, None), (minilm, 3)]
    both = semantics.explore(networks, parts, ["dependency"], limits=(80, 20, 30), seeds=(0, 1), **options)
    dealt = semantics.prepare(minilm, parts, "dependency", limits=(80, 20, 30), shuffled=3)
    control = semantics.measure(dealt, "dependency", seeds=(1,), **options)
    joined = both["dependency"]
    assert np.array_equal(joined.hits[0], o.hits[0]), "the first seed's probes read the network's own states"
    assert np.array_equal(joined.hits[1], control.hits[0]), "the second's those of the shuffled one"
    assert np.allclose(joined.weights, [o.weights[0], control.weights[0]]) and joined.sizes == o.sizes
    assert np.allclose(
        semantics.together([o, control]).probabilities, (2 * o.probabilities + control.probabilities) / 3
    )


def test_real_corpora_have_all_four_tasks(minilm, real_data):
    found_ = semantics.contexts(minilm, corpora.documents("gum", "test"), most=1)
    assert {t.label for t in semantics.targets(found_, "entity")} <= {
        "abstract",
        "animal",
        "event",
        "object",
        "organization",
        "person",
        "place",
        "plant",
        "substance",
        "time",
    }
    assert all(semantics.targets(found_, task) for task in TASKS)


# ------------------------------------------------------------------ what the chapter says


@pytest.fixture(scope="module")
def recorded():
    return results.recorded("layer_semantics")["values"]


def ends(record, digits=1):
    return [round(record[key], digits) for key in ("value", "low", "high")]


def test_the_layers_of_controls_bring_nothing_and_ours_bring_syntax_by_layer_three(recorded):
    for task, one in recorded["tasks"].items():
        for control in ("random", "shuffled"):
            assert recorded[control][task]["gain"]["low"] <= 0, "nothing for certain"
            assert one["scores"]["value"][-1] > recorded[control][task]["scores"]["value"][-1]
    for task, first, gain, layer in (
        ("part of speech", 0.91, [0.04, 0.03, 0.05], [1.8, 1.4, 2.2]),
        ("dependency", 0.70, [0.12, 0.10, 0.14], [1.9, 1.7, 2.1]),
    ):
        one = recorded["tasks"][task]
        scores = np.array(one["scores"]["value"])
        assert round(scores[0], 2) == first and ends(one["gain"], 2) == gain and ends(one["expected"]) == layer
        assert np.abs(scores[3:] - scores[3]).max() < 0.01, "nearly flat from layer 3 on"
        assert scores[0] > one["baselines"]["look-up"]["value"] + 0.1 > one["baselines"]["majority"]["value"]
        assert (np.array(one["weights"])[:, 2:4].sum(1) > 0.55).all(), "layers 2 and 3 are read most"
    relations = np.array(recorded["tasks"]["dependency"]["scores"]["value"])
    assert 0.78 < (relations[2] - relations[0]) / (relations[-1] - relations[0]) < 0.82, "four fifths after layer 2"
    assert round(recorded["tasks"]["part of speech"]["baselines"]["look-up"]["value"], 1) == 0.8
    entity, coreference = (recorded["tasks"][task] for task in TASKS[2:])
    assert ends(entity["gain"], 2) == [0.07, 0.03, 0.11] and abs(coreference["gain"]["low"]) < 0.01
    assert (entity["sizes"][0], coreference["sizes"][0]) == (563, 1430)


def test_no_order_survives_its_controls(recorded):
    order = recorded["order"]
    for pair, step in order["trained"].items():
        if "entity" not in pair:
            found = step["expected"]
            assert found is None or found["low"] < 0 < found["high"], "no two of the paper's tasks by the gains"
    late = {name: of["dependency to coreference"] for name, of in order.items()}
    assert round(late["trained"]["gravity"]["value"], 1) == 0.6 and late["trained"]["gravity"]["low"] < 0
    assert ends(late["shuffled"]["gravity"]) == [1.2, 1.0, 1.3]
    assert ends(late["trained"]["beyond"]) == [0.4, -0.4, 1.2]
    entity = {name: round(of["dependency to entity"]["gravity"]["value"], 1) for name, of in order.items()}
    assert (entity["trained"], entity["shuffled"]) == (1.3, 1.9)
    for name in ("trained", "shuffled"):
        assert late[name]["spread"]["low"] > 0, "relations lie on fewer layers"
    for task in ("entity", "coreference"):
        layer = recorded["tasks"][task]["expected"]
        assert layer is None or layer["high"] - layer["low"] > 2.5, "too wide to place it"


def test_what_context_is_needed_for(recorded):
    trained, random = recorded["similar"]
    assert trained[0] > 0.999 and trained[-1] < 0.65 and min(random) > 0.99
    relations = recorded["relations"]
    assert [[round(n, 2) for n in relations[name][:2]] for name in ("obj", "nsubj")] == [[0.37, 0.7], [0.65, 0.87]]
    for name in ("obj", "nsubj"):
        assert relations[name][2] < relations[name][0], "the random network's layers do not help"
    for name in ("det", "case", "aux"):
        assert relations[name][0] > 0.9
    first, second = (case["targets"][0] for case in recorded["cases"])
    assert [round(first[kind][n], 2) for kind, n in (("wrong", 0), ("right", 1))] == [0.99, 0.74]
    assert [round(second[kind][n], 2) for kind, n in (("wrong", 0), ("right", 2))] == [0.88, 0.92]
    assert max(t["settled"] for case in recorded["cases"] for t in case["targets"]) == 2, (
        "no target needs more layers"
    )
    eggs = recorded["cases"][0]["targets"][1]
    assert (eggs["words"], eggs["rival"], eggs["label"], eggs["settled"]) == ("eggs / lay", "nsubj", "obj", 2)
    stay = [round(recorded["tasks"][task]["settled"][0], 2) for task in TASKS[:2]]
    assert stay == [0.89, 0.67], "right at layer 0 and ever after"
    wrong = [round(recorded["tasks"][task]["settled"][-1], 2) for task in TASKS[:2]]
    assert wrong == [0.05, 0.16], "at the top"
    assert (first["words"], first["label"], first["rival"]) == ("head", "VERB", "NOUN")
    assert first["wrong"][0] > 0.9 and first["right"][1] > 0.6 and first["settled"] == 1
    assert (second["label"], second["rival"], second["settled"]) == ("mark", "case", 2)


def test_claims_about_the_runs_on_gum():
    runs = {m: results.recorded("layer_semantics", model=m, profile="full")["values"] for m in ("minilm", "mpnet")}
    for values in runs.values():
        assert all(one["gain"]["low"] > 0 for one in values["tasks"].values())
        assert all(one["gain"]["low"] <= 0 for one in values["random"].values()), "no random network gains"
        at = {task: one["gravity"]["value"] for task, one in values["tasks"].items()}
        assert at["part of speech"] < at["dependency"] < at["coreference"], "the paper's order"
    minilm, mpnet = (values["order"]["trained"] for values in runs.values())
    pairs = ("part of speech to dependency", "part of speech to coreference", "dependency to coreference")
    certain = [[pair for pair in pairs if order[pair]["expected"]["low"] > 0] for order in (minilm, mpnet)]
    assert certain == [[], ["dependency to coreference"]]
    assert (
        round(minilm[pairs[2]]["gravity"]["value"], 2) == 0.95
        and round(minilm[pairs[2]]["random"]["value"], 1) == 0.7
    )
    dealt = runs["minilm"]["order"]["shuffled"][pairs[2]]["gravity"]
    assert round(dealt["value"], 1) == 1.3 and dealt["low"] > 0
    for values in runs.values():
        assert all(one["gain"]["low"] < 0.005 for one in values["shuffled"].values()), "nor with shuffled scores"
    assert minilm[pairs[2]]["beyond"]["low"] < 0, "no more than in the random networks"
    surely = [m for m, v in runs.items() if v["order"]["trained"]["dependency to entity"]["expected"]["low"] > 0]
    assert surely == ["mpnet"], "to entity types, by the expected layer"
    assert ends(minilm["dependency to entity"]["expected"], 2) == [-0.18, -0.92, 0.33]


def test_equal_numbers_of_targets_leave_coreference_late_and_not_entity_types(recorded):
    runs = {m: results.recorded("layer_semantics", model=m, profile="full")["values"] for m in ("minilm", "mpnet")}
    for values in runs.values():
        assert {one["sizes"][0] for one in values["tasks"].values()} == {4000}, "of every task"
    assert sorted(one["sizes"][0] for one in recorded["tasks"].values())[0] == 563
    minilm, mpnet = (values["order"] for values in runs.values())
    for order in (minilm, mpnet):
        assert ends(order["shuffled"]["dependency to coreference"]["gravity"]) == [1.3, 0.8, 1.8]
    coreference = mpnet["trained"]["dependency to coreference"]
    assert (ends(coreference["random"])[0], ends(coreference["gravity"])[0]) == (1.8, 1.7)
    assert coreference["beyond"]["value"] < 0 < coreference["beyond"]["high"]
    entity = [of["order"]["shuffled"]["dependency to entity"]["gravity"] for of in (recorded, *runs.values())]
    assert [ends(one)[0] for one in entity] == [1.9, 0.4, 0.4]
    assert ends(mpnet["trained"]["dependency to entity"]["gravity"])[0] == 2.2
    assert mpnet["trained"]["dependency to entity"]["gravity"]["low"] > entity[2]["high"]
    trained = minilm["trained"]["dependency to entity"]
    assert ends(trained["gravity"])[0] == 1.2 and trained["gravity"]["low"] > entity[1]["high"]
    assert ends(trained["beyond"], 2) == [0.95, -0.35, 2.24], "of the random networks it is not certain"
    assert ends(mpnet["trained"]["dependency to entity"]["beyond"])[:2] == [1.7, 0.6]
    assert ends(mpnet["trained"]["part of speech to dependency"]["beyond"], 2) == [0.95, 0.07, 1.84]
    for values in runs.values():
        at = {task: one["gravity"]["value"] for task, one in values["tasks"].items()}
        assert max(at, key=at.get) == "entity", "entity types come last"


# ------------------------------------------------------------------ figures


def test_steps_have_a_row_each_and_a_point_for_each_network():
    one, two = (layer_estimate(0.5, 1.5)[n] for n in range(2))
    full = {"trained": {"a → b": one, "a → c": two}, "@random": {"a → b": two, "a → c": one}}
    run = figures.steps_of_tasks({"first": full, "second": {"trained": {"a → c": two}, "@random": {}}})
    first, second = run.axes
    assert [t.get_text() for t in first.get_yticklabels()] == ["a → b", "a → c"]
    points = [line.get_xydata() for line in first.lines if line.get_marker() in "oD"]
    assert [p[:, 0].tolist() for p in points] == [[0.5, 1.5], [1.5, 0.5]] and (np.diff(points[0][:, 1]) == 1).all()
    (alone,) = [line.get_xydata() for line in second.lines if line.get_marker() == "o"]
    assert alone[:, 0].tolist() == [1.5] and round(alone[0, 1]) == 1, "in the row of its step"
    assert [t.get_text() for t in run.legends[0].get_texts()] == ["trained", "@random"]


def layer_estimate(*values):
    value = np.array(values, float)
    return Estimate(value, value - 0.1, value + 0.1, np.empty((0, *value.shape)))


def test_layers_of_tasks_has_a_point_for_each_network_or_says_why_not():
    one, two, three = (layer_estimate(2.5, 1.5, 3.0)[n] for n in range(3))
    gravity = {"ours": {"tag": one, "coreference": three}, "@random": {"tag": two, "coreference": three}}
    expected = {"ours": {"tag": two, "coreference": None}, "@random": {"tag": None, "coreference": None}}
    measures = {"centre of gravity": gravity, "expected layer": expected}
    deep = {"centre of gravity": 6, "expected layer": 12}
    left, right = figures.layers_of_tasks(measures, layers=deep, even={"centre of gravity": 3}).axes
    assert (left.get_xlim()[1], right.get_xlim()[1]) == (6.1, 12.1), "models differ in their number of layers"
    points = [[float(x) for x in line.get_xdata()] for line in left.lines if line.get_marker() in "oD"]
    assert [p for p in points if p] == [[2.5], [3.0], [1.5], [3.0]]
    assert 3 in [line.get_xdata()[0] for line in left.lines if line.get_marker() == "None"], "where even weights lie"
    assert [t.get_text() for t in right.texts] == ["no certain gain"], (
        "of ours; a control without a gain has no point"
    )
    assert [t.get_text() for t in left.get_yticklabels()] == ["tag", "coreference"]


def test_weights_and_gains_share_the_layers():
    weights, gains = np.array([[0.2, 0.5, 0.3], [0.4, 0.3, 0.3]]), layer_estimate(0.03, 0.01)
    blank = np.array([[0.5, 0.3, 0.2]])
    ax = figures.weights_and_gains({"tag": (weights, gains, blank), "entity": (weights, gains, blank)}).axes[0]
    filled, outlined = ax.containers[:2]
    assert [round(float(b.get_height()), 6) for b in filled] == [0.3, 0.4, 0.3]
    assert [round(float(b.get_height()), 6) for b in outlined] == [0.75, 0.25], "shares of the gain"
    assert [round(b.get_x() + b.get_width() / 2, 6) for b in outlined] == [1, 2]
    assert [0.5, 0.3, 0.2] in [list(line.get_ydata()) for line in ax.lines], "the random network's weights"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("last", [0.0, -0.01])
def test_a_model_without_a_gain_has_no_shares_of_it(last):
    """Layers of a small random network can add nothing."""
    figure = figures.weights_and_gains(
        {"tag": (np.full((1, 3), 1 / 3), layer_estimate(0.0, last), np.ones((1, 3)) / 3)}
    )
    filled, outlined = figure.axes[0].containers[:2]
    assert all(np.isnan(b.get_height()) for b in outlined) and len(filled) == 3
    figure.canvas.draw()


def test_prefix_scores_start_at_the_embeddings():
    ours, control = layer_estimate(0.7, 0.8, 0.9), layer_estimate(0.7, 0.7, 0.7)
    figure = figures.prefix_scores({"tag": ({"ours": ours, "random": control}, {"majority": 0.2})})
    first, second, line = figure.axes[0].lines
    assert first.get_xydata().tolist() == [[n, v] for n, v in enumerate(ours.value)]
    assert second.get_ydata().tolist() == control.value.tolist() and line.get_ydata()[0] == 0.2
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["ours", "random", "majority"]


def test_cases_show_the_right_label_and_one_rival():
    class Case:
        task, words, label, rival = "entity", "a word " * 12, "person", "place"
        right, wrong = np.array([0.2, 0.9]), np.array([0.7, 0.1])

    figure = figures.cases_by_layer([Case(), Case(), Case()], title="A sentence.")
    ax = figure.axes[0]
    assert [[b.get_height() for b in c] for c in ax.containers] == [[0.2, 0.9], [0.7, 0.1]]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["person (right)", "place"]
    assert ax.get_title().endswith("…") and [a.axison for a in figure.axes] == [True, True, True, False]
    assert figure.get_suptitle() == "A sentence."


def test_tags_stand_above_their_words_and_wrong_ones_are_hatched():
    told = np.array([["NOUN", "NOUN"], ["NOUN", "VERB"]])
    figure = figures.tags_by_layer(
        {"ours": told, "@random": told[:1].repeat(2, 0)}, ("it", "heads"), ("NOUN", "VERB")
    )
    for ax, wrong in zip(figure.axes, ([(1, 0)], [(1, 0), (1, 1)]), strict=True):
        assert [t.get_text() for t in ax.get_xticklabels()] == ["it", "heads"]
        hatched = [p for p in ax.patches if p.get_hatch() and p.get_width()]
        assert [(round(p.get_x() + 0.47), round(p.get_y() + 0.42)) for p in hatched] == [(x, y) for x, y in wrong]
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["right", "wrong"]


def test_label_changes_are_sorted_by_the_change():
    ax = figures.label_changes({"det": (0.9, 0.9, 0.8, 5), "obj": (0.2, 0.8, 0.3, 7)}, names=("a", "b", "c")).axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["det (5)", "obj (7)"]
    assert ax.collections[0].get_offsets().tolist() == [[0.9, 0], [0.2, 1]]
    assert ax.collections[1].get_offsets().tolist() == [[0.9, 0], [0.8, 1]]
    assert ax.collections[2].get_offsets().tolist() == [[0.8, 0], [0.3, 1]]


def test_a_sentence_goes_up_the_layers_by_a_slider():
    networks = {"ours": [["NOUN", "ADV"], ["VERB", "ADV"]], "@random": [["NOUN", "ADV"], ["NOUN", "ADP"]]}
    shown = figures.sentence_to_touch(networks, ["head", "<north>"], ["VERB", "ADV"]).data
    steps = re.findall(r"<details.*?<summary>(.*?)</summary>(.*?)</details>", shown)
    assert [name for name, _ in steps] == ["layer 0", "layer 1"] and "<north>" not in shown
    wrong = [re.findall(r">(\S+) (\w+) ✗<", step) for _, step in steps]
    assert wrong == [[("head", "NOUN")] * 2, [("head", "NOUN"), ("&lt;north&gt;", "ADP")]]
