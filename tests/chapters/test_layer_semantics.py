"""Chapter 12: streamed states against the model, probes against a plain loop, scores by hand, the chapter's claims."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from helpers import attention, controls, corpora, results, tokens
from helpers.chapters import layer_semantics as semantics
from helpers.chapters.layer_semantics import OTHER, SAME, TASKS, Outcome, Probes


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


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
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


def test_half_a_file_is_never_used(minilm, found, empty_cache):
    some = found[:2]
    first = semantics.stream(minilm, some)
    whole, values = first.file.read_bytes(), np.array(first.values)
    for broken in (whole[: len(whole) // 2], b""):
        first.file.unlink()  # a file that is mapped must not shrink
        first.file.write_bytes(broken)
        assert np.array_equal(semantics.stream(minilm, some).values, values) and first.file.read_bytes() == whole
    assert semantics.stream(minilm, found[:1]).file != first.file


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


def test_a_probe_never_reads_a_layer_above_its_own(states, found):
    ready = part(states, found, "part of speech", limit=60)
    probes = semantics.train(ready, ready, steps=12, batch=16, every=4, size=8)
    weights = probes.weights()
    assert torch.allclose(weights.sum(-1), torch.ones(7)) and (weights.triu(1) == 0).all()
    changed = [(torch.cat([v[:3], v[3:] + 5]), owner) for v, owner in ready.inputs(np.arange(9))]
    before, after = probes(ready.inputs(np.arange(9))), probes(changed)
    assert torch.allclose(before[:3], after[:3]) and not torch.allclose(before[3:], after[3:])


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


def test_expected_layer_by_hand():
    assert semantics.expected_layer(np.array([0.5, 0.7, 0.8, 0.8])) == pytest.approx((0.2 + 2 * 0.1) / 0.3)
    assert semantics.expected_layer(np.array([0.5, 0.5, 0.5, 0.9])) == pytest.approx(3)
    assert semantics.expected_layer(np.array([0.5, 0.9, 0.9, 0.9])) == pytest.approx(1)
    assert np.isnan(semantics.expected_layer(np.array([0.5, 0.6, 0.5])))
    many = semantics.expected_layer(np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]))
    assert many.tolist() == [1, 2]
    rows = np.array([[1, 0, 0], [0, 0.5, 0.5], [0.2, 0.3, 0.5]])
    assert semantics.centre_of_gravity(rows).tolist() == pytest.approx([0, 1.5, 1.3])


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
    assert f"{alone['dependency'].gravity:.2f}".endswith("(no interval)")


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
        ("part of speech", 0.91, [0.04, 0.03, 0.05], [1.8, 1.4, 2.1]),
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
