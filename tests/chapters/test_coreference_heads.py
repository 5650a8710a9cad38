"""Chapter 05: heads that choose, against plain loops on random maps, mentions and chains; its claims against recorded numbers."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import MENTION_WORDS, word_maps

from helpers import attention, corpora, results, tokens
from helpers.corpora.treebanks import NOMINAL, PRONOUN, PROPER, Document, Mention, Sentence
from helpers.measurements import coreference
from helpers.measurements.coreference import GROUPS, KINDS, RULES


def random_document(rng: np.random.Generator, number: int) -> Document:
    sentences, mentions = [], []
    for place in range(int(rng.integers(1, 5))):
        n = int(rng.integers(2, 9))
        words = tuple(str(word) for word in rng.choice(MENTION_WORDS, n))
        sentences.append(Sentence(f"{number}-{place}", words, document=number))
        for _ in range(int(rng.integers(0, 5))):
            start = int(rng.integers(0, n))
            end = int(rng.integers(start + 1, n + 1))
            chain, kind = str(rng.integers(0, 5)), str(rng.choice(KINDS[1:]))
            mentions.append(Mention(place, start, end, chain, int(rng.integers(start, end)), kind))
    return Document(f"d{number}", tuple(sentences), tuple(sorted(set(mentions))), number)


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    rng = np.random.default_rng(0)
    return [random_document(rng, i) for i in range(14)]


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_heads_choose_what_loops_choose(small_encoder, page, documents, family):
    """Passages end with the last whole word; the page's function, the helper's and a loop choose alike."""
    encoder = replace(small_encoder(family), max_length=24)
    texts = coreference.passages(encoder, documents)
    whole = [[w for s in d.sentences for w in s.words] for d in documents]
    assert any(len(p.words) < len(w) for p, w in zip(texts, whole, strict=True))
    for p, words in zip(texts, whole, strict=True):
        assert len(tokens.encode(encoder, [list(p.words)]).tokens[0]) <= 24 and list(p.words) == words[: len(p.words)]
        more = words[: len(p.words) + 1]
        assert more == list(p.words) or len(tokens.encode(small_encoder(family), [more]).tokens[0]) > 24
    compared, same = 0, attention.measure(encoder, texts, coreference.choose, units="words")
    for among, earlier in {"earlier mentions": True, "all other words": False}.items():
        answers = attention.measure(encoder, texts, lambda m, t, a=among: page.choose(m, t, a), units="words")
        for passage, chosen, other in zip(texts, answers, same, strict=True):
            assert np.array_equal(chosen, other) or not earlier
            batch = tokens.encode(encoder, [list(passage.words)])
            maps = word_maps(attention.maps(encoder, batch)[:, 0].numpy(), batch.unit[0].tolist())
            heads = [m.head for m in passage.mentions]
            for number, head in enumerate(heads):
                names = [w for w in range(len(passage.words)) if (w in heads and w < head if earlier else w != head)]
                for at in np.ndindex(maps.shape[:2] if names else (0, 0)):
                    word = int(chosen[at][number])
                    most = max(maps[at][head, names])
                    assert word in names and maps[at][head, word] == pytest.approx(most, abs=1e-6)
                    compared += 1
    assert compared > 700


def rule_in_loops(mention, earlier, name):
    """Head word of the nearest earlier mention in the first sieve that finds one."""

    def agreeing(other):
        return all(a == b or "" in (a, b) for a, b in zip(other.agreement, mention.agreement, strict=True))

    sieves = {
        "text": [m for m in earlier if m.text == mention.text],
        "word": [m for m in earlier if m.word == mention.word],
        "agree": [m for m in earlier if agreeing(m)],
        "any": earlier,
    }
    orders = {"nearest mention": ["any"], "head match": ["word"], "head match, else nearest": ["word", "any"]}
    orders["four-sieve rules"] = ["text", "word", "agree", "any"]
    return next((max(m.head for m in sieves[sieve]) for sieve in orders[name] if sieves[sieve]), -1)


def test_scores_are_what_loops_count(page, passages):
    rng = np.random.default_rng(2)
    chosen = [rng.integers(0, 25, (2, 3, len(p.mentions))) for p in passages]
    scores = coreference.score(chosen, passages)
    right = {}
    for answers, passage in zip(chosen, passages, strict=True):
        own, of_kind = page.right(answers, passage), page.right(answers, passage, PRONOUN)
        for number, mention in enumerate(passage.mentions):
            earlier = [m for m in passage.mentions if m.head < mention.head]
            heads = {m.head for m in earlier if m.chain == mention.chain}
            assert np.isnan(own[..., number]).all() == (not heads)
            if not heads:
                continue
            assert np.isnan(of_kind[..., number]).all() == (mention.kind != PRONOUN)
            again = mention.word in {m.word for m in earlier if m.chain == mention.chain}
            groups = ["all", mention.kind, "repeated" if again else "new word"]
            groups += ["new name"] if not again and mention.kind != PRONOUN else []
            systems = {name: rule_in_loops(mention, earlier, name) in heads for name in RULES}
            for name, tests in RULES.items():
                assert page.rule_choices(passage, tests)[number] == rule_in_loops(mention, earlier, name)
            systems["random mention"] = len(heads) / len({m.head for m in earlier})
            for head in np.ndindex(2, 3):
                systems[head] = int(answers[(*head, number)]) in heads
                assert own[(*head, number)] == systems[head]
            for group in groups:
                for system, hit in systems.items():
                    right.setdefault((group, system), []).append(float(hit))
    assert {group for group, _ in right} == set(GROUPS)
    for (group, system), hits in right.items():
        of = scores.of(group)
        share = of.rules[system].estimate() if isinstance(system, str) else of.hits.estimate(*system)
        assert len(of.hits) == len(hits) and share.value == pytest.approx(np.mean(hits))


def test_rows_choose_on_one_part_and_are_recorded(minilm, passages):
    rng = np.random.default_rng(3)
    chosen = [rng.integers(0, 25, (6, 12, len(p.mentions))) for p in passages]
    dev, test = coreference.score(chosen[:6], passages[:6]), coreference.score(chosen[6:], passages[6:])
    rows = coreference.table(dev, test)
    run = results.Run("coreference_heads", minilm, corpora.read("encyclopedia"), profile="smoke")
    coreference.record(run, rows, test)
    for group, row in rows.items():
        assert row.head == dev.of(group).hits.best()
        assert row.gains["nearest mention"].value == row.choice.held_out.value - row.rules["nearest mention"].value
        best = run.recorded.number("best_for_antecedent", of=group, head=row.head).value
        assert best == pytest.approx(test.of(group).hits.accuracy()[row.head], abs=1e-6)
    assert {row.head for row in coreference.table(dev, test, head=(2, 4)).values()} == {(2, 4)}


def test_cuts_leave_out_an_antecedent_or_something_else(page, passages):
    counts = [0, 0]
    for passage in passages:
        for other, cuts in enumerate((page.cuts, page.other_cuts)):
            expected = []
            for m in passage.mentions:
                same = [a for a in passage.mentions if a.chain == m.chain and a.head < m.head]
                others = [o for o in passage.mentions if same and o.chain != m.chain and o.end <= same[-1].start]
                expected += [(m, first) for first in (others if other else same)[-1:] if first.end <= m.head]
            assert list(cuts(passage)) == expected
            counts[other] += len(expected)
            for text, at, gone, m, first in ((*page.case_of(passage, *pair), *pair) for pair in expected):
                assert text[at] == passage.words[m.head] and text[:gone] == [*passage.words[first.start : first.end]]
    assert min(counts) > 5


def test_what_words_give_cls_is_what_loops_count(small_encoder, page, documents, monkeypatch):
    encoder = small_encoder("bert")
    texts = [p for p in coreference.passages(encoder, documents) if p.mentions]
    words = [max(m.head for m in p.mentions) for p in texts]
    given = attention.measure(encoder, texts, lambda m, t: page.given(m, t, [(t, w, 2) for w in words]))
    for passage, word, shares in zip(texts, words, given, strict=True):
        batch = tokens.encode(encoder, [list(passage.words)])
        maps, unit = attention.maps(encoder, batch)[:, 0].numpy(), batch.unit[0].tolist()
        for to, keys in {"[CLS]": [0], "cut": [n for n, place in enumerate(unit) if place in (1, 2)]}.items():
            rows = [maps[..., token, keys].sum(-1) for token, place in enumerate(unit) if place == word + 1]
            np.testing.assert_allclose(shares[to], np.mean(rows, 0), atol=1e-6)
    case = p, m, first = next((p, *pair) for p in texts for pair in page.cuts(p))
    whole, cut = [list(p.words[at:]) for at in (first.start, first.end)]
    monkeypatch.setitem(page.cuts.__globals__, "encoder", encoder)
    held, before, alone, after = page.cut_out([page.case_of(*case)])
    how = (whole, m.head - first.start, len(whole) - len(cut)), (cut, m.head - first.end, 0)
    [long] = attention.measure(encoder, [whole], lambda maps, t: page.given(maps, t, how[:1]))
    [short] = attention.measure(encoder, [cut], lambda maps, t: page.given(maps, t, how[1:]))
    np.testing.assert_allclose([*held, *before, *after], [long["cut"], long["[CLS]"], short["[CLS]"]], atol=1e-6)
    np.testing.assert_allclose(alone[0] * (1 - long["cut"]), long["[CLS]"], atol=1e-6)


def test_preferences_are_what_loops_count(page, monkeypatch):
    monkeypatch.setitem(page.preferences.__globals__, "frames", ["a", "b"])
    weights = np.random.default_rng(4).random((48, 3, 4, 2))  # twelve names for each frame, her and his in turn
    for his, more in enumerate(page.preferences([*weights])):
        women, men = (weights[24 + first + his : 36 + first : 2].mean(0) for first in (0, 12))
        np.testing.assert_allclose(more[1], men - women if his else women - men)


def features(words, feats=(), mention=None, kind=PRONOUN, **more):
    sentence = Sentence("s", tuple(words), feats=tuple(feats), **more)
    return coreference.agreement(sentence, mention or Mention(0, 0, len(words), "1", 0, kind))


def test_agreement_from_features_and_from_lists():
    assert features(["she"], ["Gender=Fem|Number=Sing|Person=3"]) == features(["She"]) == ("Sing", "Fem", "3")
    assert features(["We"]) == ("Plur", "", "1") and features(["you"]) == ("", "", "2")
    plural = features(["cats"], ["Number=Plur"], kind=NOMINAL)
    assert plural == features(["cats"], xpos=("NNS",), kind=NOMINAL) == ("Plur", "", "3")
    assert features(["queen"], kind=NOMINAL)[1] == "Fem" and features(["mine"], kind=NOMINAL) == ("", "", "3")
    coordinated = {"governors": (-1, 2, 0), "relations": ("root", "cc", "conj"), "kind": PROPER}
    assert features(["Ann", "and", "Bob"], ["Number=Sing", "_", "Number=Sing"], **coordinated) == ("Plur", "", "3")


def test_singletons_are_left_out_and_texts_without_a_question_refused(small_encoder):
    words, mention = ("Ann", "saw", "Ann"), Mention(0, 0, 1, "1", 0, PROPER)
    twice = (mention, replace(mention, start=2, end=3, head=2), replace(mention, chain="2"))
    sentences = (Sentence("s", words),)
    [passage] = coreference.passages(small_encoder("bert"), [Document("d", sentences, twice)])
    assert [m.chain for m in passage.mentions] == ["1", "1"], "a chain of one mention is left out"
    with pytest.raises(corpora.CorpusError, match="has an antecedent within 64 tokens"):
        coreference.passages(small_encoder("bert"), [Document("d", sentences, (mention,))])
