"""Chapter 10: the functions of its page against slow loops, and its sentences against the recorded numbers."""

from collections import Counter
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import attention, results, stats, tasks, tokens
from helpers.measurements.head_types import TYPES

QUESTIONS = examples("qa of sentences")
NAMES = [["dense", "diagonal", "dense_vertical", "vertical"], ["dense"] * 4, ["vertical", "dense"] * 2]
NAMES = np.array(NAMES, order="F")  # as grids that are read from records


def marks(batch):
    return tokens.EncodedText.of(batch, 0, None)


def test_edits_are_what_a_loop_makes(page, small_encoder):
    text = marks(tokens.encode(small_encoder(), [QUESTIONS[2].texts]))
    n, heads = len(text.tokens), torch.tensor(NAMES == "dense")
    maps = torch.randn(1, 4, n, n, generator=torch.Generator().manual_seed(0)).softmax(-1)
    special, place = [t in ("[CLS]", "[SEP]") for t in text.tokens], text.sentence.tolist()
    assert len(set(place)) == 5, "two sentences each, and special tokens"
    for kind in ("pruned", "even", "no intra", "no inter"):
        for layer in range(3):
            edited = (page.prune(heads) if kind == "pruned" else page.editor(kind, heads, text))(layer, maps)
            for head, i, j in np.ndindex(4, n, n):
                wanted = float(maps[0, head, i, j])
                if NAMES[layer][head] == "dense":
                    kept = special[i] or special[j] or (place[i] == place[j]) != (kind == "no intra")
                    wanted = {"pruned": 0.0, "even": 1 / n}.get(kind, wanted if kept else 0.0)
                assert float(edited[0, head, i, j]) == pytest.approx(wanted), (kind, layer, head, i, j)


def test_same_words_and_weights_taken_away_are_what_loops_find(page, small_encoder):
    batch = tokens.encode(small_encoder(), [QUESTIONS[2].texts])
    text, heads = marks(batch), (True, False, True, False)
    unit, side, n = text.word.tolist(), text.text.tolist(), len(text.tokens)
    maps = torch.randn(1, 4, n, n, generator=torch.Generator().manual_seed(0)).softmax(-1)
    taken = {kind: np.zeros((n, n), bool) for kind in page.KINDS if kind != "as much elsewhere"}
    for i, j in np.ndindex(n, n):
        if unit[i] >= 0 and unit[j] >= 0:
            taken["nothing inside" if side[i] == side[j] else "nothing between"][i, j] = True
            same = len({text.words[unit[at]].lower() for at in (i, j)}) == 1
            taken["no same word"][i, j] = same and side[i] != side[j]
    own = [maps[:, :, i, same].sum(-1) for i, same in enumerate(taken["no same word"]) if same.any()]
    assert 0 < len(own) < n, "some words stand in both texts"
    np.testing.assert_allclose(page.to_same_word(maps, text), np.mean(own, 0), atol=1e-6)
    edited = {k: page.rewire(SimpleNamespace(batch=batch), 0, (k, heads), maps) for k in page.KINDS}
    for kind, gone in taken.items():
        kept = maps.masked_fill(torch.tensor(heads)[:, None, None] & torch.tensor(gone), 0)
        assert torch.equal(edited[kind], kept) and not torch.equal(kept, maps), kind
    lost, same = maps - edited["as much elsewhere"], maps - edited["no same word"]
    assert torch.allclose(lost.sum((-2, -1)), same.sum((-2, -1)), atol=1e-5), "as much of each head"
    assert (lost > -1e-6).all() and (lost[same > 0] == 0).all() and (lost.sum(-1) > 1e-6).sum() >= 2 * len(own)
    page.weight_of.__globals__["pair"] = (0, 0), (0, 2)
    weights = torch.stack([(maps - edited[k])[0, [0, 2]].sum(-1).mean(-1) for k in page.KINDS], -1)
    assert torch.allclose(page.weight_of(maps, text), weights, atol=1e-6)


def test_the_rows_are_the_papers(page):
    done = {"pruned": "pruned", "1/L": "even", "intra": "no intra", "inter": "no inter"}
    theirs = {}
    for row in results.paper("guan2020", "table2")["rows"][1:]:
        theirs[row["id"]] = {name: done[row[name]] for name in TYPES if row[name] != "kept"}
    for row in results.paper("guan2020", "table3")["rows"]:
        theirs[row["id"]] = {name: done[what] for name, what in row["removed"].items()}
    assert {row: dict.fromkeys(on, kind) for row, (kind, *on) in page.ROWS.items()} == theirs
    for name, (kind, heads) in page.table(NAMES, " tuned").items():
        row = theirs[int(name.removesuffix(" tuned"))]
        assert np.array_equal(heads, np.vectorize(row.__contains__)(NAMES)) and set(row.values()) == {kind}


@pytest.mark.parametrize("family", ["bert", "mpnet", pytest.param("albert", marks=pytest.mark.slow)])
def test_answers_are_those_of_the_tapped_model(page, headed, family):
    """Of the page's function, one by one, and of the fast helper, against :func:`helpers.tasks.score` with the edit around it."""
    encoder, plans = headed("qa", family), {"as it is": ("pruned", NAMES == "nothing")}
    plans |= {name: plan for name, plan in page.table(NAMES).items() if name in ("3", "9", "12", "17")}
    under = partial(tasks.scores_under_edits, encoder, QUESTIONS)
    scores = under([page.steps(heads, kind) for kind, heads in plans.values()], page.edit_step)
    given, windows = scores.predictions.tolist(), Counter()
    for turn, (kind, heads) in enumerate(plans.values()):
        for number, example in enumerate(QUESTIONS):
            inputs, spans = list(tasks.batches(encoder, [example], batch_size=1)), []
            windows[len(inputs)] += 1
            for asked in inputs:
                edit = page.editor(kind, torch.tensor(heads), marks(asked.batch))
                with attention.tap(encoder, edit=edit), torch.inference_mode():
                    logits = encoder.logits(asked.batch)[0].double().numpy()[asked.batch.text[0] == 1]
                value, first, last = tasks.best_span(logits)
                spans.append((value, asked.spans[0][first, 0], asked.spans[0][last, 1]))
                assert page.answer(encoder, asked, edit) == spans[-1][1:]
            _, begin, end = max(spans)
            assert given[turn][number] == example.texts[1][begin:end]
            em, f1 = tasks.em_and_f1(given[turn][number], tuple(a.text for a in example.answers))
            assert (scores.values["f1"][turn, number], scores.values["em"][turn, number]) == (f1, em)
    assert under([page.steps(plans["3"][1])], page.prune_step).predictions.tolist() == given[1:2]
    assert given[0] == tasks.score(encoder, QUESTIONS).predictions.tolist() and len(windows) > 1
    assert family == "albert" or len(set(map(tuple, given))) > 1, "edits change answers"


@given(st.integers(0, 50))
@settings(max_examples=30, deadline=None)
def test_shuffles_keep_what_they_should(page, seed):
    shuffled = page.shuffle_heads(NAMES, np.random.default_rng(seed))
    assert (np.sort(shuffled, axis=1) == np.sort(NAMES, axis=1)).all() and (shuffled[1] == "dense").all()
    whole = NAMES == "dense"
    assert np.array_equal(page.shuffle_heads(whole, np.random.default_rng(seed)), shuffled == "dense")
    always = page.shuffle_with(NAMES == "diagonal", whole, np.random.default_rng(seed))
    assert (always.sum(1) == whole.sum(1)).all() and always[NAMES == "diagonal"].all()
    core = whole & (np.random.default_rng(seed).random(whole.shape) < 0.5)
    group = whole | (NAMES == "vertical")
    others, left = group & ~core, group & ~page.leave_on(core, group, np.random.default_rng(seed))
    assert left.sum() == min(core.sum(), others[:-1].sum()) and others[left].all() and not left[-1].any()


def test_changes_are_paired_and_counted(page, headed):
    rng = np.random.default_rng(0)
    names = ("as it is", "2", "a", "b", *(f"2 shuffle {n}" for n in range(5)))
    scores = {name: rng.choice([0.0, 0.5, 1.0], (60, 2)) for name in names}
    run = results.Run("ablation_by_type", headed("qa"), None, profile="smoke")
    asked = [SimpleNamespace(document=n // 2) for n in range(60)]
    given = {"scores": scores, "asked": asked, "limit": 60, "seed": 0, "run": run, "fits": dict.fromkeys(TYPES, True)}
    page.mean.__globals__.update(given)
    f1 = {name: values[:, 0] for name, values in scores.items()}
    counts = stats.resampled(range(30))
    for effect, by_hand in (
        (page.cost("2"), f1["as it is"] - f1["2"]),
        (page.change("2"), f1["2"] - f1["as it is"]),
        (page.change("2", to=["a", "b"]), f1["2"] - (f1["a"] + f1["b"]) / 2),
    ):
        replicates = counts @ by_hand.reshape(30, 2).sum(1) / (2 * counts.sum(1))
        assert effect.value == pytest.approx(by_hand.mean())
        np.testing.assert_allclose([effect.low, effect.high], np.percentile(replicates[1:], (2.5, 97.5)), atol=1e-9)
    page.beside_shuffles("2", names[4:])
    page.record("2", "row", "2")
    own = f1["2"].mean()
    costly = sum(f1[name].mean() <= own for name in names[4:])
    assert run.recorded.row("shuffles_as_costly", of="2").label == f"{costly} of 5"
    each = run.recorded.rows("f1_cost_of_shuffle", of="2").value
    np.testing.assert_allclose(each, [f1[name].mean() - f1["as it is"].mean() for name in names[4:]], atol=1e-6)
    left = run.recorded.number("f1_left_in_row", of="2").value
    assert left == pytest.approx(own / f1["as it is"].mean(), abs=1e-6)
