"""Attention received, predictors and removed heads, against slow loops; and the claims of chapter 13."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from helpers import adapters, attention, controls, phrases, results, tasks, tokens
from helpers.chapters import keywords
from helpers.chapters.keywords import Words
from helpers.stats import Estimate, mean
from helpers.tasks import Example
from helpers.tokens import EncodedText

EXAMPLES = [
    Example("keywords", str(n), n, (title, text), keyphrases=keys)
    for n, (title, text, keys) in enumerate(
        [
            (
                "Saturn",
                "The rings of Saturn are water ice, nothing else. Galileo saw them.",
                ("Saturn", "water ice", "comets"),
            ),
            (
                "Sea otters",
                "Otters dive; a sea otter dives for shellfish-like prey in 12 rivers.",
                ("sea otter", "prey"),
            ),
            ("Nothing", "It said nothing at all.", ("comets",)),
            ("Volcanoes", "Vesuvius erupted and Pliny the Elder died.", ("Vesuvius", "Pliny the Elder")),
        ]
    )
]


@pytest.fixture(scope="module")
def encoder(small_encoder):
    return small_encoder("bert")


@pytest.fixture(scope="module")
def found(encoder):
    return keywords.measure(encoder, EXAMPLES)


@pytest.fixture(scope="module")
def tagger(small_encoder):
    encoder = small_encoder("bert")
    torch.manual_seed(1)
    return replace(encoder, head=adapters.new_head(encoder.model, "keywords").eval().requires_grad_(False))


def test_parts_do_not_overlap_and_a_corpus_with_parts_keeps_them(real_data):
    fit, choose, score = keywords.parts("encyclopedia", seed=1)
    assert fit == choose and len(fit) == len(score) == 50 and not {e.id for e in fit} & {e.id for e in score}
    assert keywords.parts("encyclopedia", (5, 2, 3)) == keywords.parts("encyclopedia", (5, 2, 3))
    fit, choose, score = keywords.parts("inspec", (30, 20, 10))
    assert [len(p) for p in (fit, choose, score)] == [30, 20, 10]
    assert {e.id for e in score} <= {e.id for e in tasks.examples("keywords", "inspec", "test")}


def test_documents_are_cut_after_the_last_word_that_fits(encoder):
    for length in (8, 9, 11, 64):
        for example, cut in zip(EXAMPLES, keywords.shortened(encoder, EXAMPLES, length), strict=True):
            units = cut.spelled.units
            assert units == example.spelled.units[: len(units)] and cut.keyphrases == example.keyphrases
            batch = tokens.encode(encoder, [list(units)])
            assert batch.ids.shape[1] <= length
            if len(units) < len(example.spelled.units):
                more = tokens.encode(encoder, [list(example.spelled.units[: len(units) + 1])])
                assert more.ids.shape[1] > length, "one word more would not fit"


def test_received_against_a_loop(encoder, found):
    """Sum and greatest weight of each column, over rows that are not special; pieces of a word joined."""
    for number, here in enumerate(found.words):
        spelled = EXAMPLES[number].spelled
        batch = tokens.encode(encoder, [list(spelled.units)])
        maps = attention.maps(encoder, batch)[:, 0].numpy()
        rows = [i for i in range(maps.shape[-1]) if not batch.special[0, i]]
        for w, place in enumerate(spelled.places):
            pieces = [i for i in rows if batch.unit[0, i] == place + 1]
            sums = np.mean([sum(maps[:, :, i, j] for i in rows) for j in pieces], axis=0)
            most = np.mean([np.max([maps[:, :, i, j] for i in rows], axis=0) for j in pieces], axis=0)
            np.testing.assert_allclose(found.values[here][w, ..., 0], sums, rtol=1e-4)
            np.testing.assert_allclose(found.values[here][w, ..., 1], most, rtol=1e-4)
            assert found.pieces[here][w] == len(pieces)
    assert found.pieces.max() > 1, "some word is split"


def test_the_share_of_special_tokens_and_shuffled_scores_beside(encoder, found):
    own, dealt = keywords.with_shuffled(encoder, EXAMPLES, seed=4)
    np.testing.assert_allclose(own.values, found.values, rtol=1e-3, atol=1e-5)
    given, alone, rows = 0, [], 0
    for number, example in enumerate(EXAMPLES):
        batch = tokens.encode(encoder, [list(example.spelled.units)])
        text, maps = EncodedText.of(batch, 0, example), attention.maps(encoder, batch)[:, 0]
        given += maps[:, :, ~text.special][..., text.special].sum((-1, -2)).numpy()
        rows += int((~text.special).sum())
        shuffled = controls.shuffled_maps(maps, number, 4)
        alone.append(keywords.of_words(shuffled, replace(text, number=number), EXAMPLES)["values"].numpy())
    np.testing.assert_allclose(found.to_special(), given / rows, rtol=1e-4)
    np.testing.assert_allclose(dealt.values, np.concatenate(alone), rtol=1e-3, atol=1e-5)
    assert not np.allclose(dealt.values, own.values, atol=1e-3)


def test_even_attention_gives_every_word_almost_one(encoder):
    batch = tokens.encode(encoder, [list(e.spelled.units) for e in EXAMPLES])
    even = batch.mask[:, None, None, :] / batch.lengths[:, None, None, None]
    received = keywords.received(even.float().expand(-1, 4, batch.ids.shape[1], -1), batch)
    share = (batch.lengths - 2) / batch.lengths
    for row, length in enumerate(batch.lengths.tolist()):
        torch.testing.assert_close(received[row, :, :length, 0], share[row].expand(4, length))


def test_a_document_that_was_cut_is_refused(encoder):
    [*_, long] = sorted(EXAMPLES, key=lambda e: len(e.spelled.units))
    with pytest.raises(ValueError, match="was cut"):
        attention.measure(encoder, [list(long.spelled.units)], partial(keywords.of_words, examples=[long]), longest=8)


@pytest.mark.parametrize("among", ["words", "content"])
def test_relative_attention_against_a_loop(found, among):
    each = []
    for here in found.words:
        kept = found.words.content[here] if among == "content" else np.ones(here.stop - here.start, bool)
        key = [n for n, k in enumerate(found.words.key[here]) if k and kept[n]]
        other = [n for n, k in enumerate(found.words.key[here]) if not k and kept[n]]
        if key and other:
            sums = found.values[here][..., 0]
            each.append(sums[key].mean(0) - sums[other].mean(0))
    assert len(each) == 3
    np.testing.assert_allclose(
        keywords.relative(found, among=among).value, np.mean(each, axis=0), rtol=1e-4, atol=1e-6
    )


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, (9, 2), elements=st.sampled_from([0.0, 0.1, 0.5, 2.0])), st.integers(1, 2**9 - 1))
def test_average_precision_is_scikit_learns_with_ties(scores, bits):
    key = np.array([bits >> n & 1 for n in range(9)], bool)
    expected = [average_precision_score(key, scores[:, n]) for n in range(2)]
    np.testing.assert_allclose(keywords.average_precision(scores, key), expected)


def test_precisions_leave_out_documents_without_key_words(found):
    rng = np.random.default_rng(0)
    scores = rng.random((len(found.words.key), 2))
    for among in ("words", "content"):
        each = []
        for here in found.words:
            kept = found.words.content[here] if among == "content" else np.ones(here.stop - here.start, bool)
            if found.words.key[here][kept].any():
                key = found.words.key[here][kept]
                each.append([average_precision_score(key, scores[here][kept][:, n]) for n in range(2)])
        assert len(each) == 3
        np.testing.assert_allclose(keywords.precisions(found.words, scores, among=among).value, np.mean(each, axis=0))


def test_a_predictor_is_scikit_learns(found):
    features = found.values[:, 1, 2].astype(np.float64)
    predictor = keywords.fit(features, found.words.key)
    standard = (features - features.mean(0)) / features.std(0)
    model = LogisticRegression(C=1.0, max_iter=500).fit(standard, found.words.key)
    np.testing.assert_allclose(predictor(features), model.predict_proba(standard)[:, 1], atol=1e-3)
    constant = keywords.fit(np.ones((len(features), 1)), found.words.key)
    np.testing.assert_allclose(constant(np.ones((1, 1))), found.words.key.mean(), atol=0.02)


def test_head_predictors_choose_on_one_set_and_score_on_another(encoder, found):
    other = keywords.measure(encoder, EXAMPLES[1:])
    heads = keywords.head_predictors(found, other)
    assert heads.precision.value.shape == heads.fitted.shape == (3, 4) and heads.weights.shape == (3, 4, 2)
    for layer, head in ((0, 0), (2, 3)):
        predictor = keywords.fit(found.values[:, layer, head], found.words.key)
        own, there = predictor(found.values[:, layer, head]), predictor(other.values[:, layer, head])
        loss = [-np.log(p if k else 1 - p) for p, k in zip(own, found.words.key, strict=True)]
        assert heads.fitted[layer, head] == pytest.approx(np.mean(loss))
        loss = [-np.log(p if k else 1 - p) for p, k in zip(there, other.words.key, strict=True)]
        assert heads.entropy.value[layer, head] == pytest.approx(np.mean(loss))
    assert heads.fitted[heads.best] == heads.fitted.min() and len(set(heads.ranking())) == 12
    share = found.words.key.mean()
    assert heads.constant.value == pytest.approx(
        np.mean([-np.log(share if k else 1 - share) for k in other.words.key])
    )


def test_rarity_and_counts():
    words = Words.of(EXAMPLES)
    idf = keywords.inverse_frequencies(words)(words)
    spelled = [w for e in EXAMPLES for w in e.spelled.words]
    for word, value in zip(spelled, idf, strict=True):
        assert value == pytest.approx(np.log(5 / (1 + sum(word in e.spelled.words for e in EXAMPLES))))
    unseen = keywords.inverse_frequencies(Words.of(EXAMPLES[:1]))(words)
    assert unseen[spelled.index("otter")] == pytest.approx(np.log(2))
    assert keywords.counts(words)[spelled.index("saturn")] == 2


def test_lists_of_phrases_against_a_loop():
    words = Words.of(EXAMPLES)
    scores = np.random.default_rng(1).random(len(words.key))
    listed = keywords.listing(words, scores)
    for size in (5, 10):
        present, everything = [], []
        for example, here in zip(EXAMPLES, words, strict=True):
            said = set(phrases.ranked(example.spelled, scores[here].tolist())[:size])
            for right, into in (
                (set(phrases.locate(example.spelled, example.keyphrases)), present),
                ({phrases.normal(k) for k in example.keyphrases}, everything),
            ):
                into.append(2 * len(said & right) / (len(said) + len(right)))
        assert listed[f"f1_{size}"].value == pytest.approx(np.mean(present))
        assert listed[f"all_{size}"].value == pytest.approx(np.mean(everything))


def test_coverage_counts():
    covered = keywords.coverage(Words.of(EXAMPLES))
    assert covered["documents"] == 4 and covered["phrases"] == 2 and covered["present"] == pytest.approx(6 / 8)
    assert 0 < covered["reachable"] <= 1 and covered["key_words"] < covered["key_words_of_content"]


def test_tagged_chances_against_a_loop(tagger):
    words = Words.of(EXAMPLES)
    chances = keywords.tagged_chances(tagger, words)
    for example, here in zip(EXAMPLES, words, strict=True):
        batch = tokens.encode(tagger, [list(example.spelled.units)])
        outside = tagger.logits(batch)[0].softmax(-1)[:, 0]
        first = [batch.unit[0].tolist().index(place + 1) for place in example.spelled.places]
        np.testing.assert_allclose(chances[here], 1 - outside[first].numpy(), rtol=1e-4, atol=1e-5)


def test_one_head_removed_is_one_head_removed(tagger):
    given = EXAMPLES[:2]
    removed = keywords.remove_one(tagger, given)
    assert removed.each.shape == (3, 4, 2, len(keywords.SCORES))
    with attention.tap(tagger, edit=attention.zero([(1, 2)])):
        scores = tasks.score(tagger, given)
    np.testing.assert_allclose(removed.each[1, 2, :, 2], scores.values["loss"], rtol=1e-5)
    np.testing.assert_allclose(removed.change.value, (removed.each - removed.whole).mean(2), atol=1e-12)
    order = removed.order()
    losses = [removed.change.value[head][2] for head in order]
    assert losses == sorted(losses) and len(set(order)) == 12
    ranks = [(-removed.change.value[head][0], removed.change.value[head][2]) for head in removed.order("f1")]
    assert ranks == sorted(ranks) and len(set(removed.order("f1"))) == 12


def test_heads_that_stand_are_tested_together(tagger):
    rng = np.random.default_rng(0)
    each = 0.1 * rng.normal(size=(3, 4, 9, len(keywords.SCORES)))
    each[1, 2, :, 2] += 3
    each[0, 0, :, 2] = 0  # nothing varies, nothing is tested
    removed = keywords.RemoveOne(np.zeros(each.shape[2:]), each, mean(np.moveaxis(each, 2, 0), range(9)))
    p = np.array([stats.ttest_1samp(row, 0).pvalue if row.any() else 1 for row in each[..., 2].reshape(12, 9)])
    wanted = stats.false_discovery_control(p) <= keywords.LEVEL
    found = removed.stands()
    assert np.array_equal(found, wanted.reshape(3, 4)) and found[1, 2] and not found[0, 0]
    alone = keywords.remove_one(tagger, EXAMPLES[:1])
    assert not alone.stands().any() and not alone.stands("f1").any(), "one document shows nothing"


def test_curves_begin_whole_and_end_with_all_heads_removed(tagger):
    given = EXAMPLES[:2]
    removed = keywords.remove_one(tagger, given)
    orders = keywords.orders(removed, random=2, seed=3)
    kinds = [f"{end} missed first, by {score}" for score in ("loss", "F1") for end in ("least", "most")]
    assert list(orders) == [*kinds, "random 1", "random 2"]
    assert orders[kinds[1]] == orders[kinds[0]][::-1] and orders[kinds[3]] == orders[kinds[2]][::-1]
    counts = keywords.steps(12, 4)
    assert counts == (0, 4, 8, 12)
    curves = keywords.remove_in_order(tagger, given, orders, counts)
    for name, curve in curves.items():
        np.testing.assert_allclose(curve.each[0], removed.whole)
        np.testing.assert_allclose(curve.each[-1], curves["random 1"].each[-1])
        np.testing.assert_allclose(curve.each[1], keywords.tagging(tagger, given, orders[name][:4]))
    mean = keywords.averaged({n: curves[n] for n in ("random 1", "random 2")})
    np.testing.assert_allclose(mean.each, (curves["random 1"].each + curves["random 2"].each) / 2)


@pytest.fixture(scope="module")
def recorded():
    return results.recorded("keywords")["values"]


def value(record, name: str, score: str = "precision") -> Estimate:
    return Estimate.from_record(record["scores"][name][score])


def test_claims_about_what_is_there_to_find(recorded):
    covered = recorded["coverage"]
    assert covered["documents"] == 50 and 0.6 < covered["reachable"] < 0.72, "about two thirds"
    assert [round(1 / covered[kind]) for kind in ("key_words", "key_words_of_content")] == [16, 8], "one word in …"


def test_the_key_words_of_the_first_sentence_are_cut_and_no_others(minilm):
    said = "Stalactites grow downwards from the first deposit , stalagmites upwards from the second ."
    sentence = said.split()
    cut = {word: len(minilm.tokenizer.tokenize(word)) for word in sentence}
    assert {word: n for word, n in cut.items() if n > 1} == {"Stalactites": 4, "stalagmites": 4}
    article = next(e for e in tasks.examples("keywords", "encyclopedia") if e.texts[0] == "Limestone Caves")
    assert " ".join(sentence[:7]) in " ".join(article.spelled.units)
    key = {
        w
        for w, k in zip(article.spelled.words, phrases.key_words(article.spelled, article.keyphrases), strict=True)
        if k
    }
    assert {word.lower() for word in sentence} & {word.lower() for word in key} == {"stalactites", "stalagmites"}


def favouring(record, key):
    """How many heads certainly give key words more, and how many less."""
    found = Estimate.from_record(record[key])
    return int((found.low > 0).sum()), int((found.high < 0).sum())


def test_claims_about_relative_attention(recorded):
    relative = Estimate.from_record(recorded["relative"])
    above = {end: (Estimate.from_record(recorded[f"content{end}"]).low > 0).sum(1) for end in ("", "_shuffled")}
    assert (above[""][:3].sum(), above[""][3:].sum()) == (10, 31) and above["_shuffled"].sum() == 2
    assert (relative.low[3:] > 0).sum() == 32, "nearly all heads of the upper half"
    by_layer = relative.value.mean(1)
    assert by_layer.argmax() == len(by_layer) - 1 and by_layer[-1] > 1.5 * by_layer[:-1].max(), "the last layer most"
    summed, blank = (Estimate.from_record(recorded[name]) for name in ("relative_summed", "relative_random"))
    assert (summed.low > 0).all(), "summed over pieces, every head of the random network favours key words"
    assert np.abs(blank.value).max() < min(0.1, summed.value.min())
    more, less = favouring(recorded, "relative_random")
    assert more + less == 55 and abs(more - less) < 6, "as often below as above"
    assert favouring(recorded, "relative_shuffled") == (0, 3)
    assert favouring(recorded, "content_random") == (23, 22), "as many above as below"
    assert np.abs(recorded["content_random"]["value"]).max() < 0.03, "by hundredths"


def test_claims_about_predictors(recorded):
    best = tuple(recorded["best"])
    chance = recorded["coverage"]["key_words"]
    precision = Estimate.from_record(recorded["heads"]["precision"])
    assert best == tuple(recorded["heads"]["order"][0])
    assert precision.low[best] > value(recorded, "first phrases").high
    assert precision.value[best] > value(recorded, "tf-idf").value
    gap = Estimate.from_record(recorded["over_rules"]["best head"])
    assert gap.high < 0, "the best single head ranks words worse than the learned rule"
    above_rule = precision.low > value(recorded, "learned rule").value
    assert not above_rule.any(), "no head is above it"
    assert precision.value[best] > 4 * chance
    order = [precision.value[tuple(h)] for h in recorded["heads"]["order"]]
    assert np.corrcoef(np.argsort(np.argsort(order)), -np.arange(len(order)))[0, 1] > 0.7, "nearly the same order"
    ten = [tuple(head) for head in recorded["heads"]["order"][:10]]
    assert [layer for layer, _ in ten[:6]].count(5) == 5, "in the last layer"
    assert not set(ten) & {(0, 2), (2, 0), (2, 4), (2, 8)}, "no head with a name in the book"
    weights = np.array([recorded["heads"]["weights"][layer][head] for layer, head in ten])
    assert (np.abs(weights[:, 0]) > np.abs(weights[:, 1])).sum() == 9, "in nine of ten heads the mean has more weight"
    assert Estimate.from_record(recorded["gains"]["all heads - best head"]).low > 0
    over = {n: [round(e[k], 2) for k in ("value", "low", "high")] for n, e in recorded["over_rules"].items()}
    assert over["all heads"] == [0.05, 0.01, 0.09] and over["all heads, and rule"][0] == 0.09
    assert over["all heads, @random"] == [-0.10, -0.14, -0.06]
    assert over["all heads, @random, and rule"] == [0.01, -0.02, 0.03]
    dealt = value(recorded, "all heads, @shuffled")
    assert chance < dealt.low and dealt.high < 1.6 * chance, "nearly at chance"


def test_claims_about_the_tagger(recorded):
    curves = recorded["curves"]
    assert {tuple(c["counts"]) for c in curves.values()} == {(0, 14, 29, 43, 58, 72)}
    scores = {n: np.array(c["scores"]["value"]) for n, c in curves.items()}
    silent, loud = (f"{end} missed first, by loss" for end in ("least", "most"))
    loss = {n: s[1:-1, 2].mean() for n, s in scores.items()}
    assert loss[silent] < loss["random order"] < loss[loud], "loss by order"
    given = {n: np.round(s[:, 3], 1).tolist() for n, s in scores.items()}
    assert (given[silent][0], given[silent][2], given[loud][2]) == (6.3, 2.9, 15.4)
    assert round(given[silent][-1]) == 24
    recall = np.round(curves[silent]["recall"]["value"], 2)
    assert (recall[0], recall[2]) == (0.38, 0.13)
    assert np.round(scores[silent][[2, -1], 0], 2).tolist() == [0.14, 0.17], (
        "a silent tagger and one without any head"
    )
    change = Estimate.from_record(curves[silent]["scores"])
    assert change.high[2, 0] > change.value[-1, 0], "chance could turn it round"
    assert recorded["removal"]["scored_on"] == 16
    assert curves[loud]["precision"]["value"][2] < 0.2, "few are right"
    kept = [*scores["least missed first, by F1"][[0, 2, 3], 0].tolist(), scores["random order"][2, 0]]
    assert np.round(kept, 2).tolist() == [0.24, 0.30, 0.28, 0.27] and recorded["pruned"]["heads"] == 43
    change = Estimate.from_record(recorded["removed"])
    assert not (change.low[..., 0] > 0).any() and not (change.high[..., 0] < 0).any(), "no head stands out in F1"
    assert ((change.low[..., 2] > 0).sum(), (change.high[..., 2] < 0).sum()) == (16, 5), "in the loss"
    stands = {by: np.array(found) for by, found in recorded["stands"].items()}
    assert stands["loss"].sum() == 6 and not stands["f1"].any(), "tested together"
    helped = np.argwhere(stands["loss"] & (change.value[..., 2] < 0))
    assert helped.tolist() == [[2, 11]], "without 3-12 the loss falls"
    gain = Estimate.from_record(recorded["pruned"]["change"])
    assert gain.low <= 0 <= gain.high, "pruned against whole cannot be told apart"


def test_claims_about_the_abstracts():
    found = results.recorded("keywords", model="minilm", profile="full")["values"]

    def precision(name):
        return [round(found["scores"][name]["precision"][k], 2) for k in ("value", "low", "high")]

    assert found["coverage"]["documents"] == 300
    assert precision("all heads") == [0.67, 0.65, 0.69]
    assert precision("learned rule") == [0.52, 0.50, 0.54]
    assert precision("all heads, @random")[0] == 0.48 and precision("tagger")[0] == 0.75
    upper = Estimate.from_record(found["content"]).low > 0
    assert (upper[3:].sum(), upper[:3].sum()) == (31, 11)
    random = found["over_rules"]["all heads, @random"]
    assert random["high"] < 0 and round(random["value"], 2) == -0.04
    beside = [found["over_rules"][f"all heads{kind}, and rule"] for kind in (", @random", "")]
    assert [round(beside[0][k], 2) for k in ("value", "low", "high")] == [0.03, 0.02, 0.04]
    assert round(beside[1]["value"], 2) == 0.16
    gains = {name: [round(g[k], 3) for k in ("value", "low", "high")] for name, g in found["gains"].items()}
    assert gains["all heads, and rule - all heads"] == pytest.approx([0.007, 0.003, 0.011], abs=0.002)
    below = found["over_rules"]["best head"]
    assert [round(below[k], 3) for k in ("value", "low", "high")] == [-0.043, -0.060, -0.024]
    weights = np.asarray(found["heads"]["weights"])[..., 0]
    ten = [tuple(head) for head in found["heads"]["order"][:10]]
    assert ten[0] == tuple(found["best"]) == (1, 6) and weights[1, 6] < 0
    assert sum(weights[head] < 0 for head in ten) == 4
    curves = {name: np.asarray(c["scores"]["value"]) for name, c in found["curves"].items()}
    assert {tuple(c["counts"]) for c in found["curves"].values()} == {(0, 12, 24, 36, 48, 60, 72)}
    silent = curves["least missed first, by loss"]
    assert np.round(silent[[0, 3], 3], 1).tolist() == [9.8, 4.8]
    assert np.round(silent[[0, 3], 0], 2).tolist() == [0.53, 0.10] and found["removal"]["scored_on"] == 80
    f1 = Estimate.from_record(found["curves"]["least missed first, by loss"]["scores"])[:, 0]
    assert f1.high[3] < f1.low[-1], "below that of a tagger without any head, for certain"
    assert round(curves["least missed first, by F1"][3, 0], 2) == 0.54
    assert round(curves["most missed first, by F1"][2, 0], 2) == 0.05
    assert round(curves["most missed first, by loss"][3, 0], 2) == 0.52, "the order by the loss stands on its head"
    high, ranks = tuple(found["extremes"][0]), found["heads"]["precision"]["value"]
    assert high == ten[5] == (5, 10) and (round(ranks[5][10], 2), round(ranks[1][6], 2)) == (0.55, 0.48)


def test_claims_about_both_networks_on_the_abstracts():
    runs = {m: results.recorded("keywords", model=m, profile="full")["values"] for m in ("minilm", "mpnet")}
    for found in runs.values():
        layers = np.mean(found["relative"]["value"], -1)
        assert layers.argmax() == len(layers) - 1 and round(layers[-1], 1) == 1.2
    found = runs["mpnet"]
    precision = found["scores"]["all heads"]["precision"]
    assert [round(precision[k], 2) for k in ("value", "low", "high")] == [0.70, 0.68, 0.71]
    assert round(found["scores"]["all heads, @random"]["precision"]["value"], 2) == 0.5
    assert found["best"] == [2, 4] and found["heads"]["weights"][2][4][0] < 0
    assert found["over_rules"]["best head"]["high"] < 0 and "tagger" not in found
    above = Estimate.from_record(found["content"]).low > 0
    assert (above[6:].sum(), above[:6].sum()) == (57, 26), "of 72 each"
    second = [found["heads"]["precision"][k][11][5] for k in ("value", "low", "high")]
    assert found["heads"]["order"][1] == [11, 5] and np.round(second, 2).tolist() == [0.60, 0.59, 0.62]
    assert second[1] > found["scores"]["learned rule"]["precision"]["high"]
