"""Chapter 13: the functions of its page against plain loops, and its sentences against recorded numbers."""

import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from helpers import attention, tokens
from helpers.corpora.records import Sentence
from helpers.tasks import Example

KEYED = {
    "The rings of Saturn are water ice, nothing else. Galileo saw them.": ("Saturn", "water ice", "comets"),
    "Otters dive; a sea otter dives for shellfish-like prey in 12 rivers.": ("sea otter", "prey"),
    "It said nothing at all.": ("comets",),
    "Vesuvius erupted and Pliny the Elder died.": ("Vesuvius", "Pliny the Elder"),
}
TEXTS = [Example("keywords", "", n, ("A title", text), keyphrases=k) for n, (text, k) in enumerate(KEYED.items())]
KEYS = [np.isin(t.spelled.words, " ".join(t.keyphrases).lower().split()) for t in TEXTS]


def spelled_as(text: str) -> Example:
    """An example without a title."""
    return Example("keywords", "", 0, ("", text))


def test_key_words_and_candidates(page):
    for text, key in zip(TEXTS, KEYS, strict=True):
        assert page.key_of(text).tolist() == key.tolist()
    for raw, stretches in {
        "The quick brown fox of 1999 saw ice, water-ice and a b. Fox": "quick brown fox/saw ice/water ice/fox",
        "State-of-the-art ice\nWater ice, and U.S. rings!": "state/art ice/water ice/rings",
        "Nothing...": "",
    }.items():
        text = spelled_as(raw)
        spans = ["/".join(" ".join(text.spelled.words[n] for n in s) for s in page.candidates(text))]
        assert spans == [stretches], "the longest between stop words, marks and line ends; hyphens and spaces join"


def test_a_candidate_scores_the_sum_over_its_occurrences(page):
    text = spelled_as("ice, water ice, rings, ice")
    assert page.ranked(text, [1.0, 1.0, 1.0, 3.0, 1.5]) == ["rings", "ice", "water ice"]
    assert page.ranked(text, [0.0] * 5) == ["ice", "water ice", "rings"], "text order decides between equals"


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_what_words_receive_is_what_loops_find(page, small_encoder, family):
    encoder = small_encoder(family)
    received = page.of_words(encoder, TEXTS)
    in_all = attention.measure(encoder, [list(text.spelled.units) for text in TEXTS], page.received_in_all)
    split = 0
    for text, given, total in zip(TEXTS, received, in_all, strict=True):
        batch = tokens.encode(encoder, [list(text.spelled.units)])
        maps = attention.maps(encoder, batch)[:, 0].double().numpy()
        rows = [i for i in range(maps.shape[-1]) if not batch.special[0, i]]
        first = int(batch.unit[0, rows[0]])
        for word, place in enumerate(text.spelled.places):
            pieces = [i for i in rows if batch.unit[0, i] == place + first]
            sums = [sum(maps[:, :, i, j] for i in rows) for j in pieces]
            most = [np.max([maps[:, :, i, j] for i in rows], axis=0) for j in pieces]
            np.testing.assert_allclose(given[word, ..., 0], np.mean(sums, axis=0), rtol=1e-4)
            np.testing.assert_allclose(given[word, ..., 1], np.mean(most, axis=0), rtol=1e-4)
            np.testing.assert_allclose(total[place], np.sum(sums, axis=0), rtol=1e-4)
            split += len(pieces) > 1
    assert split, "some word is split"


def test_texts_are_cut_after_the_last_word_that_fits(page, small_encoder):
    encoder = small_encoder("bert")
    for length in (8, 9, 11, 64):
        page.cut.__globals__.update(encoder=encoder, max_length=length)
        for text in TEXTS:
            units, cut = text.spelled.units, page.cut(text).spelled.units
            assert cut == units[: len(cut)] and tokens.encode(encoder, [list(cut)]).ids.shape[1] <= length
            if len(cut) < len(units):
                more = tokens.encode(encoder, [list(units[: len(cut) + 1])])
                assert more.ids.shape[1] > length, "one word more would not fit"
    tree = Sentence("1", ("Well-known", "otters", "do", "dive"), upos=("ADJ", "NOUN", "AUX", "VERB"))
    part, classes = page.tagged(TEXTS[0], SimpleNamespace(sentences=[tree]))
    assert part.spelled.words[-3:] == tree.words[1:] and tuple(classes[-3:]) == tree.upos[1:]


def test_what_key_words_receive_more_is_what_loops_find(page):
    rng = np.random.default_rng(0)
    for key in KEYS:
        given = rng.random((len(key), 2, 3, 2))
        more = page.lead(given, key, ~key)
        classes = rng.choice(["NOUN", "PROPN", "ADJ", "VERB", "DET"], len(key))
        counted = page.by_class(given[:, 1, 2, 0], key, classes)
        for kind, mean in zip(classes, page.class_means(given, classes), strict=True):
            assert mean == pytest.approx(np.mean([x for x, c in zip(given, classes, strict=True) if c == kind], 0))
        if not key.any():
            assert np.isnan(more).all()
            continue
        for at in np.ndindex(2, 3):
            own, others = ([x[at][0] for x, k in zip(given, key, strict=True) if k == kind] for kind in (True, False))
            assert more[at] == pytest.approx(sum(own) / len(own) - sum(others) / len(others))
        for c, name in enumerate(page.KINDS.values()):
            for k, kind in enumerate((True, False)):
                own = [x[1, 2, 0] for x, w, t in zip(given, key, classes, strict=True) if w == kind and t == name]
                assert counted[c, k, 1] == len(own) and counted[c, k, 0] == pytest.approx(sum(own))


def test_classes_go_by_words_capitals_and_endings(page):
    trees = [Sentence("1", ("The", "ring", "rings", "a", "ring"), upos=("DET", "NOUN", "VERB", "DET", "NOUN"))]
    trees += [Sentence("2", ("Saturn", "has", "icy", "moons"), upos=("PROPN", "VERB", "ADJ", "NOUN"))]
    known = page.learn_classes(trees)
    assert known["ring"] == "NOUN" and known["-ngs"] == "VERB" and known["saturn"] == "PROPN"
    classes = page.classes_of(["Swings", "the", "Galileo", "spicy", "ring", ".", "Moons", "xyq"], known)
    assert classes.tolist() == ["VERB", "DET", "PROPN", "ADJ", "NOUN", "NOUN", "NOUN", "NOUN"]


def test_the_rules_are_what_loops_count(page, small_encoder):
    encoder = small_encoder("bert")
    seen = Counter(word for text in TEXTS for word in set(text.spelled.words))
    vectors = encoder.model.get_input_embeddings().weight.detach().numpy()
    for text in TEXTS:
        words = text.spelled.words
        rule = page.simple_rule(text, np.arange(1, len(words) + 1), seen, len(TEXTS))
        embedded = page.embeddings(encoder, text)
        for n, word in enumerate(words):
            rarity = math.log(5 / (1 + sum(word in other.spelled.words for other in TEXTS)))
            expected = [rarity, math.log(words.count(word)), math.log(n + 1), n / len(words)]
            np.testing.assert_allclose(rule[n], [*expected, page.content_of(text)[n]])
            ids = tokens.encode(encoder, [[text.spelled.units[text.spelled.places[n]]]]).ids[0, 1:-1]
            np.testing.assert_allclose(embedded[n], np.mean([vectors[i] for i in ids], axis=0), rtol=1e-5)


def test_look_alikes_are_content_words_that_are_not_key_and_of_the_same_class(page):
    rng = np.random.default_rng(5)
    known = [rng.normal(size=(len(key), 2)) for key in KEYS]
    marks = [(key, page.content_of(text)) for key, text in zip(KEYS, TEXTS, strict=True)]
    for rule, (key, content) in zip(known, marks, strict=True):
        classes = rng.choice(["NOUN", "VERB"], len(key))
        alike = page.look_alikes(rule, classes, key, content)
        assert (alike[~(key & content)] == -1).all() and len(used := alike[alike >= 0]) == len(set(used))
        assert (content & ~key)[used].all() and (classes[used] == classes[alike >= 0]).all()
        twins = np.array([rule[word] - rule[a] for word, a in enumerate(alike) if a >= 0] or [[np.nan] * 2])
        np.testing.assert_allclose(page.lead_over_alike(rule[:, None, :, None], alike)[0], twins.mean(0))


def test_average_precision_is_a_mean_over_key_words(page):
    scores = [np.random.default_rng(1).permutation(len(key)) / 7 for key in KEYS]
    for precision, score, key in zip(page.precisions(scores, KEYS), scores, KEYS, strict=True):
        order = sorted(range(len(key)), key=lambda n: -score[n])
        parts = [np.mean([key[m] for m in order[: n + 1]]) for n, w in enumerate(order) if key[w]]
        assert precision == pytest.approx(np.mean(parts)) if parts else np.isnan(precision)


def test_a_regression_is_scikit_learns_and_its_penalty_is_chosen_on_whole_texts(page):
    rng = np.random.default_rng(2)
    keys = [rng.random(40) < 0.3 for _ in range(9)]
    words = [rng.normal(size=(40, 4)) + key[:, None] for key in keys]
    model = page.fit("all heads", words, keys)
    assert len(model.cv_results_["params"]) > 1 and type(model.cv).__name__ == "GroupKFold"
    standard = (np.concatenate(words) - np.mean(words, (0, 1))) / np.std(words, (0, 1))
    how = {"C": model.best_params_["logisticregression__C"], "tol": 1e-6, "max_iter": 3000}
    alone = LogisticRegression(**how).fit(standard, np.concatenate(keys))
    chances, expected = np.concatenate(page.chances(model, words)), alone.predict_proba(standard)[:, 1]
    np.testing.assert_allclose(chances, expected, atol=1e-4)


def test_f1_of_phrases_is_what_a_loop_counts(page):
    given = set(page.ranked(TEXTS[0], scores := np.linspace(1, 0, len(TEXTS[0].spelled.words)))[:10])
    f1 = 2 * len(given & {"saturn", "water ice"}) / (len(given) + 2)
    assert page.phrase_f1(TEXTS[0], scores) == pytest.approx(f1)


def test_the_key_words_of_the_first_sentence_are_cut_and_no_others(minilm):
    sentence = "Stalactites grow downwards from the first deposit , stalagmites upwards from the second ."
    cut = {word: len(minilm.tokenizer.tokenize(word)) for word in sentence.split()}
    assert {word: n for word, n in cut.items() if n > 1} == {"Stalactites": 4, "stalagmites": 4}
