"""Chapter 10: editors against slow loops, the paper's rows, scores, controls, and what the chapter says."""

import dataclasses
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import adapters, attention, results, scoreboard, stats, tasks, tokens
from helpers.adapters import AdapterError
from helpers.chapters import ablation_by_type as ablate
from helpers.chapters.ablation_by_type import ACTIONS, ROWS, TABLE2, TABLE3, TYPES, Ablation, tables
from helpers.corpora import Answer
from helpers.measurements import head_types
from helpers.scoreboard import ALSO, FAILS, HOLDS, UNDECIDED
from helpers.stats import Estimate
from helpers.tasks import Example

CONTEXTS = (
    "The keeper lit the lamp. Then she went to bed. Nobody saw the ship, which had no light.",
    "Otters eat urchins. They crack them on stones.",
    "One sentence only here",
)


def question(number, text, context, answer, document):
    return Example("qa", str(number), document, (text, context), answers=(Answer(answer, context.index(answer)),))


QUESTIONS = [
    question(0, "What did the keeper light?", CONTEXTS[0], "the lamp", 0),
    question(1, "What had no light?", CONTEXTS[0], "the ship", 0),
    question(2, "Who eats urchins? And why?", CONTEXTS[1], "Otters", 1),
    question(3, "What is here?", CONTEXTS[2], "One sentence only", 2),
]


@pytest.fixture
def answerer(small_encoder):
    """Factory: a tiny encoder with an untrained head for questions."""

    def make(family="bert", **changes):
        encoder = small_encoder(family, **changes)
        torch.manual_seed(1)
        head = adapters.new_head(encoder.model, "qa").eval().requires_grad_(False)
        head.out.weight.mul_(20)
        return dataclasses.replace(encoder, head=head)

    return make


def batch_of(encoder, examples=QUESTIONS):
    return tokens.encode(encoder, [e.texts for e in examples])


def weights(batch, heads=4, seed=0):
    """Random attention that gives nothing to padding."""
    size, length = batch.mask.shape
    scores = torch.randn(size, heads, length, length, generator=torch.Generator().manual_seed(seed))
    return scores.masked_fill(~batch.mask[:, None, None], -torch.inf).softmax(-1)


NAMES = np.array(
    [["dense", "diagonal", "dense_vertical", "vertical"], ["dense"] * 4, ["vertical", "dense", "diagonal", "dense"]]
)


def test_the_rows_are_the_papers():
    done = {"pruned": "prune", "1/L": "substitute", "intra": "no_intra", "inter": "no_inter"}
    first, *table2 = results.paper("guan2020", "table2")["rows"]
    assert first["id"] == int(ablate.BASE) and {first[name] for name in TYPES} == {"kept"}
    for row, ours in zip(table2, TABLE2, strict=True):
        theirs = {name: done[row[name]] for name in TYPES if row[name] != "kept"}
        assert (row["id"], row["group"], theirs) == (ours.id, ours.part, ours.actions)
    for row, ours in zip(results.paper("guan2020", "table3")["rows"], TABLE3, strict=True):
        theirs = {name: done[what] for name, what in row["removed"].items()}
        assert (row["id"], row["part"].replace("all but dense_vertical", "all but dense_vertical"), theirs) == (
            ours.id,
            ours.part,
            ours.actions,
        )
    assert list(ROWS) == list(range(2, 20)) and TYPES == head_types.TYPES


def one_weight(batch, row, head, i, j, p, plan):
    """What becomes of one weight, in words: before any renormalising."""
    action = plan.actions[0, head]
    names = batch.tokens[row]
    if action == "keep":
        return float(p[row, head, i, j])
    if action == "prune":
        return 0.0
    if action == "substitute":
        return 1 / len(names) if j < len(names) else 0.0
    if i >= len(names) or j >= len(names):
        return float(p[row, head, i, j])
    special = [t in ("[CLS]", "[SEP]") for t in names]
    place = (batch.sentence if plan.span == "sentence" else batch.text)[row].tolist()
    if special[i] or special[j]:
        if plan.special == "kept":
            return float(p[row, head, i, j])
        inside = i == j
    else:
        inside = place[i] == place[j]
    return 0.0 if inside == (action == "no_intra") else float(p[row, head, i, j])


@pytest.mark.parametrize(
    ("span", "special", "renormalise"),
    [("sentence", "kept", False), ("sentence", "apart", True), ("text", "kept", True), ("text", "apart", False)],
)
def test_editors_against_a_loop(small_encoder, span, special, renormalise):
    batch = batch_of(small_encoder(), QUESTIONS[2:3])
    for shift in (0, 1):
        actions = np.array([np.roll(ACTIONS, -shift)[:4]])
        plan = Ablation(actions, span=span, special=special, renormalise=renormalise)
        p = weights(batch)
        edited = ablate.editor(plan, batch)(0, p)
        for row, names in enumerate(batch.tokens):
            for head, i in np.ndindex(4, len(names)):
                wanted = [one_weight(batch, row, head, i, j, p, plan) for j in range(p.shape[-1])]
                if renormalise and actions[0, head].startswith("no_") and sum(wanted):
                    wanted = [w / sum(wanted) for w in wanted]
                assert np.allclose(edited[row, head, i], wanted, atol=1e-6), (actions[0, head], row, i)


def test_the_books_own_editors_agree(small_encoder):
    batch = batch_of(small_encoder())
    p, heads = weights(batch), [(0, 1), (0, 3)]
    for action, own in (("prune", attention.zero(heads)), ("substitute", attention.uniform(heads, batch.mask))):
        actions = np.array([["keep", action, "keep", action]])
        assert torch.equal(ablate.editor(Ablation(actions), batch)(0, p), own(0, p))


def test_intra_inter_and_special_share_out_the_map(small_encoder):
    batch = batch_of(small_encoder())
    real = batch.mask[:, :, None] & batch.mask[:, None, :]
    special = real & (batch.special[:, :, None] | batch.special[:, None, :])
    for span in ("sentence", "text"):
        intra, inter = ablate.relations(batch, span=span)
        assert (intra.int() + inter.int() + special.int()).eq(real.int()).all()
        intra, inter = ablate.relations(batch, span=span, special="apart")
        assert (intra.int() + inter.int()).eq(real.int()).all()
        diagonal = torch.eye(real.shape[-1], dtype=torch.bool) & real
        assert (intra & special).eq(diagonal & special).all()
    by_sentence, by_text = (ablate.relations(batch, span=s)[0] for s in ("sentence", "text"))
    assert (by_sentence <= by_text).all() and by_sentence.sum() < by_text.sum()


def test_a_row_that_loses_everything_stays_zero(small_encoder):
    batch = batch_of(small_encoder(), QUESTIONS[3:])
    plan = Ablation(np.array([["no_intra"] * 4]), span="text", special="apart", renormalise=True)
    p = torch.eye(batch.mask.shape[1]).expand(1, 4, -1, -1)
    assert (ablate.editor(plan, batch)(0, p) == 0).all()


def test_wrong_plans_are_refused():
    for options, message in (({"span": "word"}, "say 'sentence'"), ({"special": "gone"}, "say 'kept'")):
        with pytest.raises(ValueError, match=message):
            Ablation(NAMES, **options) if not options else ablate.ablation(NAMES, {}, **options)
    with pytest.raises(ValueError, match="Unknown types sparse; there are dense"):
        ablate.ablation(NAMES, {"sparse": "prune"})
    with pytest.raises(ValueError, match="Unknown actions mask; there are keep"):
        ablate.ablation(NAMES, {"dense": "mask"})


@given(st.integers(0, 50), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_a_deal_keeps_every_layers_profile(draw, seed):
    dealt = ablate.deal(NAMES, draw, seed=seed)
    assert (np.sort(dealt, axis=1) == np.sort(NAMES, axis=1)).all()
    assert (dealt[1] == "dense").all(), "a layer of one type cannot change"
    assert (dealt == ablate.deal(NAMES, draw, seed=seed)).all()
    for row in ROWS.values():
        own, control = (ablate.ablation(n, row.actions).actions != "keep" for n in (NAMES, dealt))
        assert (own.sum(1) == control.sum(1)).all()


def test_a_ladder_climbs_one_order():
    rungs = ablate.ladder((3, 4), (2, 5, 12), 2)
    assert list(rungs) == [f"any {n} {d}" for d in range(2) for n in (2, 5, 12)]
    for d in range(2):
        pruned = [rungs[f"any {n} {d}"].actions == "prune" for n in (2, 5, 12)]
        assert [p.sum() for p in pruned] == [2, 5, 12] and (pruned[0] <= pruned[1]).all()
    assert (rungs["any 5 0"].actions != rungs["any 5 1"].actions).any()


def some_ablations(names=NAMES):
    chosen = ablate.table(names, (3, 9, 12, 17))
    return chosen | ablate.floors(names.shape) | {"12 apart": ablate.variants(names)["12 apart"]}


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "mpnet", "albert"])
def test_scores_are_those_of_the_tapped_model(answerer, family):
    """Against :func:`helpers.tasks.score` with the editor around it, one question at a time."""
    encoder, plans = answerer(family), some_ablations()
    found = ablate.measure(encoder, QUESTIONS, plans, batch_size=3)
    assert found.keys == ("1", *plans) and found.documents.tolist() == [0, 0, 1, 2]
    states = []
    encoder.model.register_forward_hook(lambda _model, _given, made: states.append(made[0].detach().clone()))
    for number, example in enumerate(QUESTIONS):
        for key, plan in {"1": None, **plans}.items():
            edit = None if plan is None else ablate.editor(plan, batch_of(encoder, [example]))
            states[1:] = []
            with attention.tap(encoder, edit=edit):
                wanted = tasks.score(encoder, [example])
            here = found.keys.index(key)
            assert found.predictions[here][number] == wanted.predictions[0]
            assert found.values[here, number].tolist() == [wanted.values["f1"][0], wanted.values["em"][0]]
            assert plan is None or (states[1] - states[0]).abs().max() > 1e-4, "ablations change what the model makes"
        states.clear()
    if family in ("bert", "mpnet"):  # which weights a seed draws for others depends on the version of transformers
        assert len(set(found.predictions)) > 3, "ablations change answers"


def test_batch_size_does_not_matter(answerer):
    encoder, plans = answerer(), some_ablations()
    one, two = (ablate.measure(encoder, QUESTIONS, plans, batch_size=n) for n in (1, 4))
    assert one.predictions == two.predictions and np.array_equal(one.values, two.values)


def test_long_contexts_go_in_windows(answerer):
    encoder = answerer()
    context = "The keeper lit the lamp. Then she went to bed. " * 6 + "Nobody saw the ship."
    long = [question(0, "What did nobody see?", context, "the ship", 0)]
    assert len(list(tasks.batches(encoder, long, batch_size=1))) > 1
    found = ablate.measure(encoder, long, {}, batch_size=2)
    assert found.predictions[0] == tasks.score(encoder, long).predictions
    ablate.measure(encoder, long, some_ablations(), batch_size=2)


def test_without_a_head_for_questions_it_says_so(minilm):
    with pytest.raises(AdapterError, match="task='qa'"):
        ablate.measure(minilm, QUESTIONS, {})


def invented(keys=("1", "2", "2 dealt 0", "2 dealt 1"), questions=30, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.choice([0.0, 0.5, 1.0], (len(keys), questions, 2))
    return ablate.Scores(keys, values, np.arange(questions) // 3, tuple(("",) * questions for _ in keys), seed)


def test_changes_are_paired():
    scores = invented()
    for score, place in (("f1", 0), ("em", 1)):
        v = scores.values[..., place]
        assert scores.mean("2", score).value == pytest.approx(v[1].mean())
        assert scores.change("2", score).value == pytest.approx((v[1] - v[0]).mean())
        both = ["2 dealt 0", "2 dealt 1"]
        assert scores.change("2", score, to=both).value == pytest.approx((v[1] - v[2:].mean(0)).mean())
    same = dataclasses.replace(scores, values=np.repeat(scores.values[:1], 4, axis=0) - [[[0.25, 0]]])
    paired = dataclasses.replace(same, values=np.concatenate([scores.values[:1], same.values[1:]]))
    change = paired.change("2")
    assert change.low == pytest.approx(-0.25) and change.high == pytest.approx(-0.25), "no interval where all agree"


def test_intervals_resample_documents():
    scores = invented(questions=60)
    counts = np.stack([np.random.default_rng([0, d]).poisson(1.0, 500) for d in range(20)], axis=1)
    per = scores.values[1, :, 0].reshape(20, 3).sum(1)
    replicates = (counts @ per) / (3 * counts.sum(1))
    value = scores.mean("2").value
    low, high = value + stats.widened(20) * (np.percentile(replicates, (2.5, 97.5)) - value)
    assert scores.mean("2").low == pytest.approx(low) and scores.mean("2").high == pytest.approx(high)


def test_questions_turn():
    scores = invented()
    v = scores.values[..., 0]
    assert np.allclose(scores.turned("2").value, [(v[1] < v[0]).mean(), (v[1] == v[0]).mean(), (v[1] > v[0]).mean()])


def test_weights_against_a_loop(answerer):
    encoder = answerer()
    found = ablate.weigh(encoder, QUESTIONS)
    sums, rows = np.zeros((3, 4, 3)), 0
    for example in QUESTIONS:
        batch = batch_of(encoder, [example])
        maps = attention.maps(encoder, batch)[:, 0].double().numpy()
        names, sentence = batch.tokens[0], batch.sentence[0].tolist()
        special = [n in ("[CLS]", "[SEP]") for n in names]
        for i, j in np.ndindex(len(names), len(names)):
            if not special[i]:
                sums[:, :, 0 if special[j] else 1 if sentence[i] == sentence[j] else 2] += maps[:, :, i, j]
        rows += special.count(False)
    assert found.rows == rows and np.allclose(found.sums, sums, atol=1e-5)
    shares = found.shares(NAMES)
    assert all(share.sum() == pytest.approx(1, abs=1e-5) for share in shares.values())
    assert np.allclose(shares["diagonal"], (sums[0, 1] + sums[2, 2]) / rows / 2, atol=1e-5)


def some_core():
    again = NAMES.copy()
    again[2, 1] = again[0, 2] = "vertical"
    return ablate.Core.of(NAMES, again, "dense", "vertical")


def test_the_core_is_in_both_types_and_the_sets_share_out_the_rest():
    core = some_core()
    assert np.argwhere(core.both).tolist() == [[2, 1]]
    sets = core.sets
    assert (sets["core"] ^ sets["alone"]).all() and not (sets["core"] & (sets["rest"] | sets["others"])).any()
    assert (sets["core"] | sets["rest"]).sum() == (NAMES == "dense").sum()
    for name, plan in core.plans().items():
        assert ((plan.actions == "prune") == sets[name]).all() and set(plan.actions.flat) <= {"prune", "keep"}
    for plan in core.controls(9).values():
        assert ((plan.actions == "prune").sum(1) == core.both.sum(1)).all(), "as many heads in the same layers"
    assert len({plan.actions.tobytes() for plan in core.controls(9).values()}) > 1


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=30), st.integers(-9, 9))
@settings(max_examples=30, deadline=None)
def test_by_chance_counts_deals_that_lie_as_far(dealt, own):
    mean = sum(dealt) / len(dealt)
    far = [one for one in dealt if one >= own] if own >= mean else [one for one in dealt if one <= own]
    assert ablate.by_chance(float(own), list(map(float, dealt))) == pytest.approx((1 + len(far)) / (1 + len(dealt)))


def test_what_is_beside_the_deals():
    scores = invented(("1", "2", "2 dealt 0", "2 dealt 1", "12", "12 dealt 0", "13", "13 dealt 0"))
    v = scores.values[..., 0]
    found = ablate.beside_deals(scores, "2")
    assert np.allclose(found["f1_dealt"], [(v[2] - v[0]).mean(), (v[3] - v[0]).mean()])
    assert found["f1_beyond"].value == pytest.approx((v[1] - v[2:4].mean(0)).mean())
    assert found["f1_p"] == ablate.by_chance(float(found["f1_change"].value), found["f1_dealt"])
    assert set(ablate.beside_deals(scores, "1")) == {"f1_change", "em_change", "f1_dealt", "em_dealt"}
    assert ablate.differences(scores)["12-13"].value == pytest.approx((v[4] - v[6]).mean())
    assert ablate.differences(scores, dealt=True)["12-13"].value == pytest.approx((v[5] - v[7]).mean())


def recorded_parts(whole, core, rest, beside):
    """A record in which changes of F1 have intervals of these half widths."""
    widths = {name: results.to_json(one_estimate(-0.2, half)) for name, half in (("core", core), ("rest", rest))}
    rows = {name: {"f1_change": found, "heads": 3} for name, found in widths.items()}
    rows["rest"]["f1_beside"] = results.to_json(one_estimate(0, beside))
    own = {"4": {"f1_change": results.to_json(one_estimate(-0.5, whole))}}
    tuned = {"rows": {"2": {}}}
    return {"rows": own, "tuned": tuned, "core": {"first": "dense_vertical", "second": "dense", "rows": rows}}


@pytest.mark.parametrize(
    ("beside", "both"), [(0.5, 0.5), (0.1, 0.7), (0.7, 0.1)], ids=["unrelated", "together", "against each other"]
)
def test_a_record_gives_the_widest_interval_of_a_sum(beside, both):
    """With half widths 3 and 4 tenths of the parts, their sum has 5 if they are unrelated, 7 if they go together, 1 if they go against each other."""
    found = ablate.beyond(recorded_parts(0.2, 0.3, 0.4, beside))
    assert found.value == pytest.approx(-0.1) and found.high - found.value == pytest.approx(0.2 + both)


def spoken_of(profile="book"):
    return results.recorded("ablation_by_type", profile=profile)["values"]


def points(found):
    """A change of F1 in points, as prose has it."""
    return round(100 * float(estimate(found).value))


def change(values, row, where="rows"):
    found = values["control"]["rows"] if where == "control" else values[where]
    return Estimate.from_record(
        found[str(row)]["f1_change"] if where != "tuned" else found["rows"][str(row)]["f1_change"]
    )


def estimate(found):
    return Estimate.from_record(found)


def test_claim_the_type_stands_out_but_some_deals_do_as_much_harm():
    values = spoken_of()
    for row in (4, 10):
        others = [change(values, n).value for n in (2, 3, 5, 8, 9, 11)]
        assert change(values, row).value < min(others) - 0.15, "worse than every other single type"
    control = values["control"]["rows"]["4"]
    worse = sum(one <= control["f1_change"]["value"] for one in control["f1_dealt"])
    assert len(control["f1_dealt"]) == 19 and (worse, control["f1_p"]) == (3, 0.2)
    assert points(control["f1_beyond"]) == -24
    values = spoken_of("full")
    control = values["control"]["rows"]["4"]
    worse = sum(one <= control["f1_change"]["value"] for one in control["f1_dealt"])
    assert len(control["f1_dealt"]) == 99 and (worse, control["f1_p"]) == (5, 0.06)
    assert change(values, 4).value < min(change(values, n).value for n in (2, 3, 5)) - 0.1
    assert points(values["rows"]["5"]["f1_change"]) == -24


def test_claim_no_deal_comes_near_even_weights_or_diagonal_heads():
    for profile, deals in (("book", 2), ("full", 5)):
        control = spoken_of(profile)["control"]["rows"]
        for row in ("10", "3", "9") if profile == "full" else ("10",):
            assert len(control[row]["f1_dealt"]) == deals
            assert control[row]["f1_change"]["value"] < min(control[row]["f1_dealt"])
            assert estimate(control[row]["f1_beyond"]).high < 0
        least = min(control[row]["f1_p"] for row in control if len(control[row]["f1_dealt"]) == deals)
        assert least >= 1 / (deals + 1) - 1e-6


@pytest.mark.parametrize(
    ("profile", "deals", "apart", "together"), [("book", 19, (-6, 1), -31), ("full", 99, (-21, -2), -38)]
)
def test_claim_the_whole_costs_more_than_its_parts(profile, deals, apart, together):
    values = spoken_of(profile)
    core, control = values["core"], values["control"]["core"]["core"]
    assert (core["first"], core["second"]) == ("dense_vertical", "dense")
    sizes = {name: row["heads"] for name, row in core["rows"].items()}
    assert sizes == {"core": 7, "rest": 13, "others": 25, "alone": 65}
    own, again = (np.array(types) for types in (values["types"], values["tuned"]["types"]))
    assert core["heads"] == np.argwhere((own == core["first"]) & (again == core["second"])).tolist()
    assert len(control["f1_dealt"]) == deals and control["f1_p"] == pytest.approx(1 / (deals + 1), abs=1e-6)
    assert control["f1_change"]["value"] < min(control["f1_dealt"]), "no deal does as much harm"
    assert tuple(points(core["rows"][name]["f1_change"]) for name in ("core", "rest")) == apart
    assert points(values["rows"]["4"]["f1_change"]) == together
    floor = estimate(values["floors"]["all prune"]["f1"])
    assert estimate(core["rows"]["alone"]["f1"]).low < floor.high, "the seven alone are not enough"
    assert points(ablate.beyond(values)) == {"book": -26, "full": -14}[profile]
    assert own[2][4] == core["first"] and [2, 4] not in core["heads"], "head 3-5 is one of the thirteen"


def test_claim_the_seven_cost_more_than_half_on_real_questions():
    values, thirty = spoken_of("full"), spoken_of()
    rows = values["core"]["rows"]
    assert estimate(rows["core"]["f1_change"]).high < 0 < estimate(thirty["core"]["rows"]["core"]["f1_change"]).high
    assert rows["core"]["f1_change"]["value"] < values["rows"]["4"]["f1_change"]["value"] / 2
    assert all(ablate.beyond(values, rest).high < 0 for rest in ablate.WHOLES)
    shared = [head for head in values["core"]["heads"] if head in thirty["core"]["heads"]]
    assert len(shared) == 6
    assert sum(points(rows[name]["f1_change"]) for name in ("core", "rest")) in (-23, -24)


def test_claim_the_tuned_dense_heads_stand_out():
    for profile, whole in (("book", -25), ("full", -54)):
        values = spoken_of(profile)
        assert points(values["tuned"]["rows"]["2"]["f1_change"]) == whole
        control = values["tuned"]["control"]["2"]
        assert control["f1_change"]["value"] < min(control["f1_dealt"]) - 0.25
        assert ablate.beyond(values, "others").value < -0.15
    assert points(control["f1_change"]) == -50 and len(control["f1_dealt"]) == 5 and min(control["f1_dealt"]) > -0.2
    assert points(values["tuned"]["rows"]["4"]["f1_change"]) == -9
    own, tuned = np.array(values["types"]), np.array(values["tuned"]["types"])
    assert (own != tuned).mean() > 1 / 3


def test_claim_what_is_needed_inside_and_between_sentences():
    values = spoken_of()
    for row in (14, 15):
        assert change(values, row).low < 0 < change(values, row).high
    assert estimate(values["differences"]["18-19"]).high < 0 and change(values, 19).high > 0
    few = values["control"]["rows"]["15"]
    assert sum(one <= few["f1_change"]["value"] for one in few["f1_dealt"]) == 0, "on the control's questions"
    for row in ("16", "17"):
        assert values["control"]["rows"][row]["shared"] > 0.9
    assert not values["variants"], "the longer run's are drawn"


def test_claim_what_is_needed_inside_and_between_real_sentences():
    values = spoken_of("full")
    control = values["control"]["rows"]
    assert [points(values["rows"][row]["f1_change"]) for row in ("18", "15", "14")] == [-42, -18, -6]
    assert (
        change(values, 15).high < 0
        and change(values, 14).high < 0
        and estimate(values["differences"]["15-14"]).high < 0
    )
    assert estimate(values["control"]["differences"]["15-14"]).low > 0, "dealt heads need what is inside more"
    assert max(control["18"]["f1_dealt"]) < -0.195 and estimate(values["control"]["differences"]["18-19"]).high < 0
    for row in ("18", "19"):
        assert estimate(control[row]["f1_beyond"]).low < 0 < estimate(control[row]["f1_beyond"]).high
    few = control["15"]
    assert sum(one <= few["f1_change"]["value"] for one in few["f1_dealt"]) == 7 and few["f1_p"] == 0.08
    plain = {name: readings["15"]["f1_change"]["value"] for name, readings in values["variants"].items()}
    again = plain.pop("renormalised")
    assert all(1.9 < again / one < 3.3 for one in (*plain.values(), few["f1_change"]["value"]))
    for readings in values["variants"].values():
        assert abs(readings["13"]["f1_change"]["value"]) < 0.02 and readings["18"]["f1_change"]["high"] < 0


def test_claim_which_rows_have_many_deals():
    for profile, many, few in (("book", 19, 2), ("full", 99, 5)):
        control = spoken_of(profile)["control"]
        counts = {row: len(one["f1_dealt"]) for row, one in control["rows"].items()}
        assert {row for row, n in counts.items() if n == many} == {"4", "15"} and set(counts.values()) == {many, few}
        assert len(control["core"]["core"]["f1_dealt"]) == many
        assert {len(one["f1_dealt"]) for one in spoken_of(profile)["tuned"]["control"].values()} == {few}


def test_claim_one_of_five_deals_needs_what_is_inside_as_much_as_diagonal_heads():
    values = spoken_of("full")
    rows = values["control"]["rows"]

    def of_deals(low, high):
        both = zip(rows[low]["f1_dealt"], rows[high]["f1_dealt"], strict=False)
        own = rows[low]["f1_change"]["value"] - rows[high]["f1_change"]["value"]
        return sum(one - other <= own for one, other in both)

    assert estimate(values["differences"]["12-13"]).high < 0
    assert (of_deals("12", "13"), of_deals("15", "14")) == (1, 0)


def test_claim_diagonal_heads_are_not_vital():
    values = spoken_of()
    assert values["counts"]["diagonal"] == 6 and points(values["rows"]["3"]["f1_change"]) == -3
    assert points(spoken_of("full")["rows"]["3"]["f1_change"]) == -9
    assert change(values, 12).value <= change(values, 13).value
    assert len(values["control"]["rows"]["3"]["f1_dealt"]) < tables.TELLING
    paper = {row["id"]: row["f1"] for row in results.paper("guan2020", "table2")["rows"]}
    assert paper[1] - paper[3] > 80 and paper[1] - paper[4] < 8


def test_claim_dense_heads_cost_little():
    values = spoken_of()
    assert change(values, 2).low < 0 < change(values, 2).high and change(values, 2).value > -0.1
    assert 0.38 < values["counts"]["dense"] / 72 < 0.42
    assert not values["fits"]["vertical"], "group 4 has no name"


def test_claim_verdicts_change_with_the_types():
    values = spoken_of()
    own, tuned = np.array(values["types"]), np.array(values["tuned"]["types"])
    assert round(100 * values["tuned"]["changed"]) == 33 == round(100 * (own != tuned).mean())
    rows = values["tuned"]["rows"]
    assert change(values, 2, "tuned").high < 0 < change(values, 4, "tuned").high
    assert estimate(rows["2"]["f1_beside"]).high < 0 < estimate(rows["4"]["f1_beside"]).low


def test_claim_most_edits_help_some_questions():
    rows = spoken_of()["rows"]
    dense, both = ([round(100 * share) for share in rows[n]["turned"]["value"]] for n in ("2", "4"))
    assert (dense[0], dense[2], both[0], both[2]) == (13, 20, 37, 10)
    dense = [round(100 * share) for share in spoken_of("full")["rows"]["2"]["turned"]["value"]]
    assert (dense[0], dense[2]) == (23, 10)


def test_claim_prose_has_the_recorded_numbers():
    """Every change with an interval that the chapter's text quotes is in the record."""

    import nbformat

    from helpers.run import notebooks

    cells = nbformat.read(notebooks.FOLDER / "10_ablation_by_type.ipynb", as_version=4).cells
    prose = "\n".join(c.source for c in cells if c.cell_type == "markdown").replace("−", "-")
    interval = r"[+-]\d+ \[[+-]\d+, [+-]\d+\]"
    printed = "\n".join(out.get("text", "") for c in cells for out in c.get("outputs", ()))
    known = set(re.findall(interval, printed))
    for values in (spoken_of(), spoken_of("full")):
        differences = (*values["differences"].values(), *values["control"]["differences"].values())
        known |= {ablate.percent(one, "+.0f") for one in differences}
        for found in (run["rows"] for run in (values, values["control"], values["tuned"], values["core"])):
            for row in found.values():
                known |= {
                    ablate.percent(e, "+.0f")
                    for key, e in row.items()
                    if key.startswith("f1_") and isinstance(e, dict)
                }
    quoted = re.findall(interval, prose)
    assert len(quoted) >= 30 and set(quoted) <= known, set(quoted) - known


def test_claim_number_matters():
    ladder = spoken_of()["ladder"]
    means = np.mean(ladder["f1_change"], axis=1)
    assert ladder["sizes"] == [6, 12, 24, 48] and abs(means[:3]).max() < 0.05 and means[3] < -0.4
    values = spoken_of("full")
    climb = dict(zip(values["ladder"]["sizes"], values["ladder"]["f1_change"], strict=True))
    assert [round(100 * one) for one in (*climb[24], np.mean(climb[48]))] == [-22, -10, -52]
    assert round(100 * ablate.doubled(values["ladder"])[24]) == -20 and ablate.doubled(ladder)[24] < -0.3
    assert change(values, 4).value < np.min(climb[24]) - 0.1, "below the lines, with twenty heads"
    lines = [np.interp(values["counts"]["dense"], list(climb), line) for line in zip(*climb.values(), strict=True)]
    assert change(values, 2).high > max(lines) and change(values, 2).value > max(lines) + 0.1, "above the lines"
    first = dict(zip(ladder["sizes"], ladder["f1_change"], strict=True))
    bends = [many - 2 * few for run in (first, climb) for few, many in zip(run[24], run[48], strict=True)]
    assert sum(one < -0.1 for one in bends) == 3 and len(bends) == 4, "three of four lines bend"


def test_claim_what_each_edit_removes():
    weights = spoken_of()["weights"]
    _, intra, inter = (dict(zip(weights, column, strict=True)) for column in zip(*weights.values(), strict=True))
    assert min(intra["diagonal"], intra["vertical"]) > 0.5 > max(inter["diagonal"], inter["vertical"])
    assert inter["dense_vertical"] > intra["dense_vertical"] and inter["dense"] > intra["dense"]


def judged(kind, profile="book"):
    """Claim -> its cell in a recorded run."""
    found = scoreboard.numbers_in(spoken_of(profile), tables.tidy)
    claims = scoreboard.chapters()["10_ablation_by_type"][kind]
    return {claim.claim: scoreboard.judge(claim, found) for claim in claims}


def test_every_headline_holds_on_real_questions_too():
    assert {cell.verdict for cell in judged("headlines", "full").values()} == {HOLDS}


def test_the_numbers_of_the_headlines_are_those_of_the_records():
    here, longer = spoken_of(), spoken_of("full")
    diagonal, _, thirteen = judged("headlines")
    lost = [round(-100 * change(v, 3).value) for v in (longer, here)]
    assert diagonal.endswith("F1 falls by {} points on XQuAD and by {} on the book's thirty questions.".format(*lost))
    assert {v["counts"]["diagonal"] for v in (here, longer)} == {6}
    rest = longer["core"]["rows"]["rest"]["f1_change"]["value"]
    assert f"F1 falls by {round(-100 * rest)} points on XQuAD, by nothing visible" in thirteen
    assert here["core"]["rows"]["rest"]["f1_change"]["value"] > 0
    for v in (here, longer):
        heads = [v["core"]["rows"][part]["heads"] for part in ("core", "rest")]
        assert (*heads, v["counts"]["dense_vertical"]) == (7, 13, 20)


@pytest.mark.parametrize(("profile", "held", "undecided"), [("book", 0, 10), ("full", 4, 2)])
def test_claim_how_many_of_the_papers_statements_hold(profile, held, undecided):
    found = [cell.verdict for cell in judged("claims", profile).values()]
    assert (len(found), found.count(HOLDS), found.count(UNDECIDED)) == (19, held, undecided)
    named = {claim.split(":")[0]: cell.verdict for claim, cell in judged("claims", profile).items()}
    few, more = (HOLDS, ALSO) if profile == "full" else (UNDECIDED, UNDECIDED)
    assert named["Diagonal heads"] == named["Dense & vertical heads"] == few
    assert named["All heads but dense & vertical ones"] == more
    assert found[0] == found[1] == FAILS, "diagonal heads are not vital"
    assert spoken_of(profile)["questions"] == {"book": 30, "full": 300}[profile]


def test_a_control_on_few_questions_decides_nothing():
    """What holds on the book's own questions, but for its control, is undecided, since eight questions are few."""
    claims = [c for c in scoreboard.chapters()["10_ablation_by_type"]["claims"] if c.power]
    found = scoreboard.numbers_in(spoken_of(), tables.tidy)
    assert [scoreboard.judge(claim, found).verdict for claim in claims] == [UNDECIDED] * 2
    assert [scoreboard.compare(claim, found).verdict for claim in claims] == [HOLDS] * 2


def one_estimate(value, half=0.05):
    return Estimate(np.float64(value), np.float64(value - half), np.float64(value + half), np.empty(0))
