"""Chapter 11: heads switched off and cut out, the functions of its page against slow loops, and its sentences against the recorded numbers."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import FAMILIES, USUAL, examples
from scipy import stats as scipy_stats

from helpers import attention, inputs, results, stats, tasks
from helpers.adapters import AdapterError
from helpers.encoders import EncoderError


def same(measured, expected):
    for name in ("score", "loss"):
        np.testing.assert_allclose(getattr(measured, name), getattr(expected, name), rtol=1e-4, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "distilbert", "albert", "mpnet", "deberta-v2"])
def test_the_sweep_gives_what_whole_passes_give(page, headed, family):
    encoder, given = headed(family=family), examples("paraphrase")
    whole, heads, layers = page.one_by_one(encoder, given, longest=40)
    each = [[], *([(layer, head)] for layer in range(3) for head in range(4))]
    swept = page.without(encoder, given, [*each, [(1, head) for head in range(4)]], longest=40)
    even = page.without(encoder, given, each, edit=page.evened, longest=40)
    same(swept[-1], layers[1])
    for n, off in enumerate(each):
        same(swept[n], heads[off[0]] if off else whole)
        with attention.tap(encoder, edit=attention.zero(off)):
            scores = tasks.score(encoder, given, max_length=40).values
        np.testing.assert_allclose(swept.loss[n], scores["loss"], rtol=1e-4, atol=2e-5)
        for asked in inputs.batches(encoder, given, batch_size=1, max_length=40):
            with torch.no_grad(), attention.tap(encoder, edit=attention.uniform(off, asked.batch.mask)):
                loss = tasks.losses(encoder, asked).item()
            assert even.loss[n, asked.example[0]] == pytest.approx(loss, rel=1e-4, abs=2e-5)
    assert np.abs(heads.loss - whole.loss).max() > 1e-3, "switching off does something"


@pytest.mark.parametrize(
    ("task", "longest"),
    [("mlm", 28), ("qa", 28), ("qa", 60), ("paraphrase", 60), ("entailment", 28), ("keywords", 60)],
)
def test_scores_are_those_of_tasks_under_an_editor(page, headed, task, longest):
    """For questions, 28 tokens are several windows."""
    encoder, given, how = headed(task), examples(task), {"seed": 3}
    whole, heads, layers = page.one_by_one(encoder, given, longest=longest, **how)
    for off, by_page in (([], whole), ([(1, 2)], heads[1, 2]), ([(2, h) for h in range(4)], layers[2])):
        with attention.tap(encoder, edit=attention.zero(off)):
            scores = tasks.score(encoder, given, max_length=longest, batch_size=2, **how)
        np.testing.assert_allclose(by_page.score, next(iter(scores.values.values())), atol=1e-6)
        assert by_page.mean() == pytest.approx(scores.mean(), abs=1e-6)
        if "loss" in scores.values:
            np.testing.assert_allclose(by_page.loss, scores.values["loss"], rtol=1e-4)


def test_a_wrong_head_is_refused_and_a_three_class_head_answers_rte(page, headed):
    with pytest.raises(AdapterError, match="Load it with task='qa'"):
        page.without(headed(), examples("qa"), [[]])
    measured = page.without(headed("entailment"), examples("rte"), [[]])
    scores = tasks.score(headed("entailment"), examples("rte"))
    np.testing.assert_allclose(measured.score[0], scores.values["accuracy"])


def test_tasks_without_an_adapter_are_named(page):
    loaded, missing = page.loaded("minilm", ["paraphrase", "rte", "nonsense"])
    assert list(loaded) == ["paraphrase", "rte"] and loaded["rte"].task == "entailment"
    assert len(missing) == 1 and missing[0].startswith("nonsense: left out.")
    with pytest.raises(AdapterError, match=r"at least 1 of qa, mlm\. 'minilm@random' has random weights"):
        page.loaded("minilm@random", ["qa", "mlm"])


TAKEN = [[], [(0, 0), (0, 3), (2, 1)], [(1, h) for h in range(4)], [(n, h) for n in range(3) for h in range(4)]]
"""No heads, some, a whole layer, all."""
MAPS = {"query", "key", "value", "q", "k", "v", "q_lin", "k_lin", "v_lin", "Wqkv"}
MAPS |= {"query_proj", "key_proj", "value_proj", "pos_query_proj", "pos_key_proj"}


def sizes(encoder):
    """Numbers of parameters: in all, without the embeddings, and in the attention (Q, K, V, O)."""
    inside = set()
    for name, module in encoder.model.named_modules():
        if name.rpartition(".")[2] in MAPS or attention.OUTPUT_PROJECTION.fullmatch(name):
            inside |= {id(parameter) for parameter in module.parameters()}
    every = list(encoder.model.named_parameters())
    outside = sum(p.numel() for name, p in every if "embeddings" in name.split("."))
    within = sum(p.numel() for _, p in every if id(p) in inside)
    return {"all": encoder.parameters, "layers": encoder.parameters - outside, "attention": within}


@pytest.mark.parametrize("family", [pytest.param(f, marks=[] if f in USUAL else pytest.mark.slow) for f in FAMILIES])
def test_a_smaller_model_answers_as_the_one_with_gates(page, headed, family):
    encoder = headed(family=family)
    [asked] = inputs.batches(encoder, examples("paraphrase"), max_length=40)
    before = copy.deepcopy(encoder.model.state_dict())
    for heads in TAKEN:
        try:
            smaller = page.cut_out(encoder, heads)
        except EncoderError as error:
            assert family not in USUAL or family == "albert", error
            return
        with torch.no_grad(), attention.tap(encoder, edit=attention.zero(heads)):
            wanted = encoder.logits(asked.batch)
        with torch.no_grad():
            assert torch.allclose(smaller.logits(asked.batch), wanted, rtol=1e-4, atol=1e-5)
        full, cut = sizes(encoder), sizes(smaller)
        gone = {part: full[part] - cut[part] for part in full}
        if family in USUAL:
            assert gone["all"] == gone["layers"] == gone["attention"] and (gone["all"] > 0) == bool(heads)
        if family == "bert":
            assert gone["all"] == len(heads) * (4 * 32 * 8 + 3 * 8), "four maps and three biases"
    assert all(torch.equal(before[k], weight) for k, weight in encoder.model.state_dict().items())
    with pytest.raises(IndexError):
        page.cut_out(encoder, [(3, 0)])
    smaller = page.cut_out(encoder, [(0, 0)])
    with pytest.raises(EncoderError), attention.tap(smaller):
        smaller.model(**asked.batch.inputs)


# The functions of the page


@pytest.mark.parametrize("task", ["mlm", "qa", "paraphrase"])
def test_slopes_are_central_differences(page, headed, task):
    encoder = headed(task)
    encoder.model.double(), encoder.head.double()
    try:
        asked = next(inputs.batches(encoder, examples(task)[:1], max_length=60, batch_size=1))
        slopes = page.slopes(encoder, asked)
        for at in ((0, 1), (1, 3), (2, 0)):
            up, down = (page.loss_at(encoder, asked, at, gate) for gate in (1 + 1e-3, 1 - 1e-3))
            assert slopes[at] == pytest.approx((up - down) / 2e-3, rel=5e-3, abs=1e-6)
    finally:
        encoder.model.float(), encoder.head.float()


def scores(score, loss, weights):
    """Scores of :mod:`helpers.tasks`, in one pass or in several."""
    return tasks.Scores({"f1": score}, loss, np.broadcast_to(weights, score.shape), np.zeros(score.shape, int), score)


def test_costs_p_values_and_what_a_test_sees(page):
    rng = np.random.default_rng(0)
    loss, documents = rng.normal(size=(400, 60)), np.repeat(np.arange(30), 2)
    by = [SimpleNamespace(document=document) for document in documents]
    zero = scores(np.zeros(60), np.zeros(60), np.ones(60))
    cost = page.cost(zero, scores(loss, loss, np.ones(60)), "loss", by)
    np.testing.assert_allclose(cost.value, [np.mean(row) for row in loss])
    p = page.p_values(cost)
    assert abs(np.mean(p < 0.05) - 0.05) < 0.04, "no change at all is seldom called one"
    shifted = page.cost(zero, scores(1 + loss, 1 + loss, np.ones(60)), "loss", by)
    assert (page.p_values(shifted) <= 0.01).mean() > 0.9
    ranked = np.sort(p)
    steps = [k for k in range(1, 401) if ranked[k - 1] <= 0.05 * k / 400]
    assert page.stands(p).sum() == max(steps, default=0)
    least = page.smallest_seen(cost, 0.01)
    moved = page.cost(zero, scores(loss + least, loss, np.ones(60)), "score", by)
    assert np.mean(page.p_values(moved) < 0.01) == pytest.approx(0.8, abs=0.1)
    weights = np.where(documents == 0, 3.0, 1.0)
    weighed = page.cost(zero, scores(loss, loss, weights), "score", by)
    assert weighed.value[0] != cost.value[0]


def test_orders_halves_and_random_orders_of_the_same_layers(page):
    values = np.array([[3.0, 1.0], [0.5, 2.0]])
    order = page.in_order(values)
    assert [f"{head}" for head in order] == ["2-1", "1-2", "2-2", "1-1"]
    rng = np.random.default_rng(0)
    made = {tuple(page.same_layers(order, 2, np.random.default_rng(n))) for n in range(40)}
    assert len(made) == 4 and all([head[0] for head in drawn] == [1, 0, 1, 0] for drawn in made)
    by = [SimpleNamespace(document=n // 3) for n in range(15)]
    half, rest = page.halves(by)
    assert not {by[n].document for n in half} & {by[n].document for n in rest} and len(half) + len(rest) == 15
    score = rng.random((2, 2, 6)).round(1)
    whole = scores(np.ones(6), np.zeros(6), np.ones(6))
    heads = scores(score, score, np.ones(6))
    made = page.orders_of(-rng.random((6, 2, 2)), whole, heads)
    lost = [1 - score[head].mean() for head in made["by lost score"]]
    assert lost == sorted(lost) and set(made["by added loss"]) == set(order)


def test_an_advantage_and_a_repetition_are_what_loops_count(page):
    rng, by = np.random.default_rng(0), [SimpleNamespace(document=n % 7) for n in range(20)]
    order, others, weights = rng.random(20), rng.random((5, 20)), rng.integers(1, 4, 20).astype(float)
    ahead = page.advantage(order, others, weights, by)
    mean = sum(np.average(other, weights=weights) for other in others) / 5
    assert ahead.value == pytest.approx(np.average(order, weights=weights) - mean) and ahead.low < ahead.high
    counts = stats.resampled(np.arange(7))[1:]
    alone = page.advantage(order, order[None], weights, by)
    assert alone.low == alone.high == 0, "nothing is ahead of itself"
    for replicate, drawn in zip(page.advantage(order, others[:1], weights, by).replicates[:5], counts, strict=False):
        times = np.array([drawn[example.document] for example in by]) * weights
        assert replicate == pytest.approx(np.average(order - others[0], weights=times))
    heads = np.tile(np.arange(10.0), (20, 1)) + 0.01 * rng.normal(size=(20, 10))
    assert page.repeats(heads, heads, by).value == pytest.approx(1) and page.repeats(heads, -heads, by).value < -0.99
    noise = page.repeats(rng.normal(size=(20, 10)), rng.normal(size=(20, 10)), by)
    assert noise.low < 0 < noise.high
    drawn = np.random.default_rng(0).permutation(7) < 4
    first = np.array([drawn[example.document] for example in by])
    values = rng.normal(size=(20, 10))
    sides = values[first].sum(0), values[~first].sum(0)
    wanted = scipy_stats.spearmanr(*sides).statistic
    assert page.repeats(values, values, by, splits=1).value == pytest.approx(wanted)


# What the page says


def test_what_the_page_says_of_layers_and_of_all_heads(page):
    recorded = results.recorded("head_importance", profile="full")
    assert f"{recorded.array('removal_loss', of='qa').sum(1)[4]:.2f}" == "0.12", "layer 5, one by one"
    third = recorded.rows("removal_loss", of="paraphrase", layer=3).query("head.isna()").iloc[0]
    assert third.high < recorded.array("removal_loss", of="paraphrase").sum(1)[2], "less than its sum"
    p = recorded.array("removal_loss_p", of="mlm")
    assert page.stands(p).sum() == 49, "dots of the figure"
    harmful = {}
    for of in ("qa", "keywords", "paraphrase", "mlm", "rte", "entailment"):
        loss, p = (recorded.array(f"removal_loss{end}", of=of) for end in ("", "_p"))
        harmful[of] = int((page.stands(p) & (loss < 0)).sum())
    assert harmful == {"qa": 1, "keywords": 11, "paraphrase": 0, "mlm": 0, "rte": 3, "entailment": 0}
