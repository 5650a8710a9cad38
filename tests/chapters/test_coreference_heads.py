"""Chapter 05: heads read as resolvers, against plain loops on random maps, random mentions and random chains."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers import attention, corpora, results, tokens
from helpers.chapters import coreference_heads
from helpers.chapters.coreference_heads import (
    BASELINES,
    GROUPS,
    KINDS,
    PLACES,
    READINGS,
    Choices,
    Passage,
    Placed,
    removed,
)
from helpers.corpora.treebanks import NOMINAL, PRONOUN, PROPER, Document, Mention, Sentence

WORDS = ("the", "unbelievable", "cat", "she", "it", "her", "photosynthesis", "Mary", "cats", ",")
MOST = 24  # tokens kept of the random documents


def random_document(rng: np.random.Generator, number: int) -> Document:
    sentences, mentions = [], []
    for place in range(int(rng.integers(1, 5))):
        n = int(rng.integers(2, 9))
        sentences.append(Sentence(f"{number}-{place}", tuple(str(w) for w in rng.choice(WORDS, n))))
        for _ in range(int(rng.integers(0, 5))):
            start = int(rng.integers(0, n))
            end = int(rng.integers(start + 1, n + 1))
            chain, kind = str(rng.integers(0, 5)), str(rng.choice(KINDS[1:]))
            mentions.append(Mention(place, start, end, chain, int(rng.integers(start, end)), kind))
    return Document(f"d{number}", tuple(sentences), tuple(sorted(set(mentions))))


@pytest.fixture
def documents() -> list[Document]:
    rng = np.random.default_rng(0)
    return [random_document(rng, i) for i in range(14)]


def slow_passage(encoder, document):
    """The words whose tokens all survive the cut, and (start, end, head, mention) of what lies wholly in them."""
    words = [w for s in document.sentences for w in s.words]
    whole = tokens.encode(encoder, [words]).unit[0].tolist()
    kept = tokens.encode(encoder, [words], max_length=MOST, truncate=True).unit[0].tolist()
    count = sum(whole.count(w) == kept[:-1].count(w) for w in range(1, len(words) + 1))
    if len(whole) <= MOST:
        count = len(words)
    found = []
    for m in document.mentions:
        before = sum(len(s.words) for s in document.sentences[: m.sentence])
        alone = sum(other.chain == m.chain for other in document.mentions) == 1
        if not alone and before + m.end <= count:
            found.append((before + m.start, before + m.end, before + m.head, m))
    return words[:count], found


def slow_word_maps(maps, unit):
    """Sum to a word's pieces, mean from them; special tokens are words of their own."""
    size = max(unit) + 1
    by_word = np.zeros((*maps.shape[:2], size, size))
    for i, row in enumerate(unit):
        for j, column in enumerate(unit):
            by_word[..., row, column] += maps[..., i, j] / unit.count(row)
    return by_word


def slow_candidates(reading, head, heads, length):
    if reading == "earlier":
        return [w for w in range(length) if w in heads and w < head]
    return [w for w in range(length) if w != head and (reading == "words" or w in heads)]


def slow_place(word, mention, found, head):
    same = [h for _, _, h, m in found if m.chain == mention.chain]
    if word == head:
        return "self"
    if word in same:
        return "antecedent" if word < head else "later"
    return "mention" if word in [h for _, _, h, _ in found] else "other"


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_heads_choose_what_loops_choose(small_encoder, documents, family):
    encoder = small_encoder(family)
    choices = coreference_heads.predict(encoder, documents, max_length=MOST)
    place = 0
    for document, passage in zip(documents, choices.passages, strict=True):
        words, found = slow_passage(encoder, document)
        assert passage.words == tuple(words) and len(passage.mentions) == len(found)
        batch = tokens.encode(encoder, [words])
        maps = slow_word_maps(attention.maps(encoder, batch)[:, 0].numpy(), batch.unit[0].tolist())
        np.testing.assert_allclose(maps.sum(-1), 1, atol=1e-5)
        for placed in passage.mentions:
            [mention] = [
                m
                for a, b, h, m in found
                if (a, b, h, m.chain, m.kind) == (placed.start, placed.end, placed.head, placed.chain, placed.kind)
            ]
            own = maps[:, :, 1 + placed.head]
            for number, reading in enumerate(READINGS):
                names = slow_candidates(reading, placed.head, [h for _, _, h, _ in found], len(words))
                got = choices.word[number, :, :, place]
                if not names:
                    assert (got == -1).all()
                    continue
                for layer, head in np.ndindex(encoder.layers, encoder.heads):
                    assert int(got[layer, head]) in names
                    weights = [own[layer, head, 1 + w] for w in names]
                    assert own[layer, head, 1 + got[layer, head]] == pytest.approx(max(weights), abs=1e-7)
            shares = dict.fromkeys(PLACES, 0.0)
            for word in range(len(words)):
                shares[slow_place(word, mention, found, placed.head)] += own[..., 1 + word]
            shares["cls"], shares["sep"] = own[..., 0], own[..., -1]
            for number, name in enumerate(PLACES):
                np.testing.assert_allclose(choices.share[:, :, place, number], shares[name], atol=1e-5, err_msg=name)
            place += 1
    assert place == choices.word.shape[-1] > 30
    assert any(
        len(p.words) < sum(len(s.words) for s in d.sentences)
        for p, d in zip(choices.passages, documents, strict=True)
    )


def random_passage(rng: np.random.Generator, document: int) -> Passage:
    words = [str(w) for w in rng.choice(WORDS, 25)]
    mentions = []
    for _ in range(int(rng.integers(0, 12))):
        start = int(rng.integers(0, 22))
        end = start + int(rng.integers(1, 4))
        head = int(rng.integers(start, end))
        features = tuple(
            str(rng.choice(values)) for values in (["", "Sing", "Plur"], ["", "Masc", "Fem"], ["1", "3"])
        )
        text = " ".join(words[start:end]).lower()
        mentions.append(
            Placed(
                start,
                end,
                head,
                str(rng.integers(0, 4)),
                str(rng.choice(KINDS[1:])),
                text,
                words[head].lower(),
                features,
            )
        )
    return Passage(document, f"p{document}", tuple(words), tuple(sorted(mentions, key=lambda m: m.head)))


def slow_rule(passage, mention, sieves):
    """Head word of the nearest earlier mention in the earliest sieve."""
    earlier = [m for m in passage.mentions if m.head < mention.head]
    for sieve in sieves:
        passing = {
            "text": [m for m in earlier if m.text == mention.text],
            "word": [m for m in earlier if m.word == mention.word],
            "agreement": [
                m
                for m in earlier
                if all(a == b or "" in (a, b) for a, b in zip(m.agreement, mention.agreement, strict=True))
            ],
            "any": earlier,
        }[sieve]
        if passing:
            return max(m.head for m in passing)
    return None


def random_choices(seed: int, count: int = 12) -> Choices:
    rng = np.random.default_rng(seed)
    passages = tuple(random_passage(rng, number) for number in range(count))
    mentions = [(p, m) for p in passages for m in p.mentions]
    word = np.full((len(READINGS), 2, 3, len(mentions)), -1, np.int16)
    for number, (p, m) in enumerate(mentions):
        for reading, name in enumerate(READINGS):
            names = slow_candidates(name, m.head, [o.head for o in p.mentions], len(p.words))
            if names:
                word[reading, :, :, number] = rng.choice(names, (2, 3))
    share = rng.dirichlet(np.ones(len(PLACES)), (2, 3, len(mentions))).astype(np.float32)
    return Choices(passages, word, share)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("reading", READINGS)
def test_scores_are_what_loops_count(seed, reading):
    choices = random_choices(seed)
    scores = coreference_heads.score(choices, reading=reading)
    right = {}
    number = -1
    for passage in choices.passages:
        for mention in passage.mentions:
            number += 1
            chain = [m for m in passage.mentions if m.chain == mention.chain and m.head < mention.head]
            antecedents, candidates = (
                {m.head for m in chain},
                {m.head for m in passage.mentions if m.head < mention.head},
            )
            if not antecedents:
                assert not scores.member[:, number].any()
                continue
            again = mention.word in {m.word for m in chain}
            groups = ["all", mention.kind, "repeated" if again else "new word"]
            groups += ["new name"] if not again and mention.kind != PRONOUN else []
            assert [g for g, m in zip(GROUPS, scores.member[:, number], strict=True) if m] == [
                g for g in GROUPS if g in groups
            ]
            answers = {name: slow_rule(passage, mention, sieves) in antecedents for name, sieves in BASELINES.items()}
            answers["random"] = len(antecedents) / len(candidates)
            for head in np.ndindex(2, 3):
                answers[head] = int(choices.word[(READINGS.index(reading), *head, number)]) in antecedents
            for group in groups:
                for system, hit in answers.items():
                    right.setdefault((group, system), []).append(float(hit))
    for (group, system), hits in right.items():
        assert scores.count(group) == len(hits)
        found = scores.estimate(group, system)
        assert found.value == pytest.approx(np.mean(hits)) and found.low <= found.value <= found.high
        if isinstance(system, tuple):
            assert scores.accuracy(group)[system] == pytest.approx(np.mean(hits))


def test_random_is_the_mean_of_many_draws():
    choices = random_choices(7)
    scores = coreference_heads.score(choices)
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(800):
        drawn = random_choices_again(choices, rng)
        draws.append(drawn)
    assert scores.estimate("all", "random").value == pytest.approx(np.mean(draws), abs=0.015)


def random_choices_again(choices, rng):
    hits = []
    for p in choices.passages:
        for m in p.mentions:
            earlier = sorted({o.head for o in p.mentions if o.head < m.head})
            gold = {o.head for o in p.mentions if o.chain == m.chain and o.head < m.head}
            if gold:
                hits.append(earlier[rng.integers(len(earlier))] in gold)
    return np.mean(hits)


def test_attention_shares_are_means_over_mentions():
    choices = random_choices(3)
    found = coreference_heads.attended(choices, (1, 2))
    groups = {"with antecedent": [], "of these, no pronouns": [], "first": []}
    number = 0
    for p in choices.passages:
        for m in p.mentions:
            has = any(o.chain == m.chain and o.head < m.head for o in p.mentions)
            groups["with antecedent" if has else "first"].append(choices.share[1, 2, number])
            if has and m.kind != PRONOUN:
                groups["of these, no pronouns"].append(choices.share[1, 2, number])
            number += 1
    for name, rows in groups.items():
        np.testing.assert_allclose(found[name].value, np.mean(rows, axis=0), atol=1e-6)
        assert found[name].value.sum() == pytest.approx(1, abs=1e-5)


def test_a_perfect_head_is_found_and_held_out_is_scored_elsewhere():
    dev, test = random_choices(1), random_choices(2)
    for choices in (dev, test):
        number = 0
        for p in choices.passages:
            for m in p.mentions:
                gold = [o.head for o in p.mentions if o.chain == m.chain and o.head < m.head]
                if gold:
                    choices.word[0, 1, 0, number] = gold[0]
                number += 1
    test.word[0, 0, 2] = test.word[0, 1, 0]  # as good on the test part only: must not be chosen
    rows = coreference_heads.table(*(coreference_heads.score(c) for c in (dev, test)))
    assert [r.group for r in rows] == list(GROUPS)
    for row in rows:
        assert row.head == (1, 0) and row.chosen == row.held_out.value == row.held_out.high == row.same_data[1] == 1
        assert row.gains["nearest"].value == pytest.approx(1 - row.rules["nearest"].value)
        assert row.few == (row.count < 30)
    [fixed] = [
        r
        for r in coreference_heads.table(coreference_heads.score(dev), coreference_heads.score(test), head=(0, 0))
        if r.group == "all"
    ]
    assert fixed.head == (0, 0) and fixed.held_out.value < 1 and fixed.same_data[1] == 1


def features(words, feats=(), mention=None, kind=PRONOUN, **more):
    sentence = Sentence("s", tuple(words), feats=tuple(feats), **more)
    return coreference_heads.agreement(sentence, mention or Mention(0, 0, len(words), "1", 0, kind))


def test_agreement_from_features_and_from_lists():
    assert features(["she"], ["Gender=Fem|Number=Sing|Person=3"]) == features(["She"]) == ("Sing", "Fem", "3")
    assert features(["We"]) == ("Plur", "", "1") and features(["you"]) == ("", "", "2")
    assert (
        features(["cats"], ["Number=Plur"], kind=NOMINAL)
        == features(["cats"], xpos=("NNS",), kind=NOMINAL)
        == ("Plur", "", "3")
    )
    assert features(["queen"], kind=NOMINAL)[1] == "Fem" and features(["mine"], kind=NOMINAL) == ("", "", "3")
    pair = features(
        ["Ann", "and", "Bob"],
        ["Number=Sing", "_", "Number=Sing"],
        kind=PROPER,
        governors=(-1, 2, 0),
        relations=("root", "cc", "conj"),
    )
    assert pair == ("Plur", "", "3"), "coordinated names are plural"
    placed = [
        Placed(0, 1, i, "1", PRONOUN, "", "", f)
        for i, f in enumerate([("Sing", "", "3"), ("", "Fem", "3"), ("Plur", "", "3")])
    ]
    assert coreference_heads.agree(placed[0], placed[1]) and not coreference_heads.agree(placed[0], placed[2])


def test_singletons_are_left_out_and_shared_head_words_are_no_antecedents(small_encoder):
    words = ("Ann", "saw", "Ann", "and", "Bob")
    mentions = (
        Mention(0, 0, 1, "1", 0, PROPER),
        Mention(0, 2, 3, "1", 2, PROPER),
        Mention(0, 2, 5, "2", 2, PROPER),
        Mention(0, 4, 5, "3", 4, PROPER),
    )
    [passage] = coreference_heads.passages(small_encoder("bert"), [Document("d", (Sentence("s", words),), mentions)])
    assert [m.chain for m in passage.mentions] == ["1", "1"], "chains of one mention"
    both = (*mentions[:3], Mention(0, 4, 5, "2", 4, PROPER))
    [passage] = coreference_heads.passages(small_encoder("bert"), [Document("d", (Sentence("s", words),), both)])
    assert passage.antecedent.sum() == 2 and not passage.earlier[[1, 2], [2, 1]].any()
    assert passage.candidates["earlier"][-1].tolist() == [True, False, True, False, False]


def test_documents_without_a_question_are_refused(small_encoder):
    with pytest.raises(ValueError, match="No mention of these documents has an antecedent within 24"):
        coreference_heads.passages(
            small_encoder("bert"), [Document("d", (Sentence("s", ("a", "b")),))], max_length=24
        )
    with pytest.raises(ValueError, match="say one of earlier, mentions, words"):
        coreference_heads.score(random_choices(0), reading="all")


def test_parts_never_overlap(tmp_path):
    dev, test = corpora.held_out("encyclopedia", ["train", "dev"])
    assert (len(dev), len(test)) == (80, 20) and not {d.id for d in dev} & {d.id for d in test}
    with pytest.raises(ValueError, match="for scoring"):
        corpora.held_out("encyclopedia", ["dev", "test"])
    path = Path(corpora.locate("encyclopedia", "treebank", "dev"))
    for chosen, count in ((["dev"], 4), (["train", "dev"], 16)):
        one, other = corpora.held_out(str(path), chosen)
        assert (len(one), len(other)) == (count, 4) and not {d.id for d in one} & {d.id for d in other}


def test_a_treebank_without_chains_is_refused_before_anything_is_measured(documents):
    bare = [replace(d, mentions=()) for d in documents]
    coreference_heads.refuse_unlinked(documents, documents)
    with pytest.raises(corpora.CorpusError, match="No document has two mentions of one thing"):
        coreference_heads.refuse_unlinked(documents, bare)


RUNS = [("minilm", "book"), ("minilm", "full"), ("mpnet", "full")]


def recorded(model="minilm", profile="book"):
    return results.recorded("coreference_heads", model=model, profile=profile)["values"]


def one(model, profile, reading="earlier"):
    return recorded(model, profile)["one_head"][reading]["table"]


def test_one_head_is_as_good_as_the_rules():
    rows = recorded()["by_kind"]["table"]
    assert (rows["all"]["layer"], rows["all"]["head"]) == (2, 4), "3-5"
    assert 0.77 < rows["all"]["held_out"]["value"] < 0.79 < rows["all"]["rules"]["rules"]["value"] < 0.8
    assert rows["all"]["gains"]["rules"]["low"] < 0 < rows["all"]["gains"]["rules"]["high"]
    assert rows["all"]["gains"]["nearest"]["low"] > 0 > rows["pronoun"]["gains"]["nearest"]["low"]
    assert rows["proper"]["count"] == 5 and rows["nominal"]["count"] == 16
    assert rows["nominal"]["same_data"]["value"] > rows["nominal"]["held_out"]["value"] + 0.15


@pytest.mark.parametrize(("model", "profile"), RUNS)
def test_the_random_network_is_a_random_mention(model, profile):
    row = recorded(model, profile)["random"]["table"]["all"]
    assert row["gains"]["random"]["low"] < 0 < row["gains"]["random"]["high"]
    assert row["gains"]["rules"]["high"] < 0
    if profile == "book":
        assert row["chosen"] > row["held_out"]["value"] + 0.1, "what choosing on the same data is worth"


def test_shuffled_scores_are_a_random_mention():
    row = recorded()["shuffled"]["table"]["all"]
    assert row["gains"]["random"]["low"] < 0 < row["gains"]["random"]["high"]
    assert row["gains"]["rules"]["high"] < 0


def test_the_darkest_cells_of_the_grids():
    rows = recorded()["by_kind"]["table"]
    darkest = {kind: (rows[kind]["layer"] + 1, rows[kind]["head"] + 1) for kind in KINDS}
    assert darkest == {"all": (3, 5), "pronoun": (3, 5), "proper": (5, 6), "nominal": (3, 10)}


def test_the_shuffled_control_chooses_among_the_same(minilm):
    documents = corpora.documents("encyclopedia", "dev")[:2]
    own, dealt = (coreference_heads.predict(minilm, documents, shuffled=s) for s in (False, True))
    assert [p.words for p in own.passages] == [p.words for p in dealt.passages]
    chosen = own.word[0] >= 0
    assert np.array_equal(chosen, dealt.word[0] >= 0) and (own.word[0] != dealt.word[0])[chosen].mean() > 0.2


def test_the_head_does_more_than_match_words():
    here = one("minilm", "book")
    assert here["repeated"]["rules"]["head match"]["value"] == 1 > 0.9 > here["repeated"]["held_out"]["value"]
    assert here["new word"]["gains"]["random"]["low"] > 0.25 and here["new name"]["gains"]["random"]["low"] > 0
    for model in ("minilm", "mpnet"):
        there = one(model, "full")
        assert there["new word"]["gains"]["nearest"]["low"] > 0 > here["new word"]["gains"]["nearest"]["low"]
        for group in ("new word", "new name"):
            assert there[group]["gains"]["rules"]["low"] > 0
        assert there["new name"]["rules"]["rules"]["value"] < there["new name"]["rules"]["random"]["value"]
    assert one("minilm", "full")["repeated"]["gains"]["rules"]["high"] < 0


def test_pronouns_and_not_antecedents_move_attention_off_cls():
    cls, antecedent = PLACES.index("cls"), PLACES.index("antecedent")
    for profile in ("book", "full"):
        shares = {k: v["value"] for k, v in recorded("minilm", profile)["attended"].items()}
        assert shares["first"][cls] - shares["with antecedent"][cls] > 0.25
        assert abs(shares["first"][cls] - shares["of these, no pronouns"][cls]) < 0.04
        assert all(sum(v) == pytest.approx(1, abs=1e-4) for v in shares.values())
        assert shares["with antecedent"][antecedent] < 0.16 and shares["of these, no pronouns"][antecedent] < 0.08
    mpnet = recorded("mpnet", "full")["attended"]
    assert mpnet["first"]["low"][cls] > mpnet["of these, no pronouns"]["high"][cls]
    assert 0.35 < mpnet["of these, no pronouns"]["value"][antecedent] < 0.42


ODD = ("{} slept until {} dog woke {}", (4, 7))
"""The puzzle's frame, and the places of its two pronouns among the tokens."""
SWAPS = {  # from each pronoun to the name and to [CLS]
    ("Emma", "her", "her"): (0.77, 0.20, 0.64, 0.27),
    ("Paul", "her", "her"): (0.07, 0.80, 0.05, 0.61),
    ("Paul", "his", "him"): (0.41, 0.49, 0.27, 0.41),
    ("Emma", "his", "him"): (0.27, 0.59, 0.24, 0.44),
}


@pytest.mark.parametrize("swap", SWAPS)
def test_one_word_changed(minilm, swap):
    frame, rows = ODD
    weights = attention.maps(minilm, tokens.encode(minilm, [frame.format(*swap)]))[2][0, 4].numpy()
    assert [weights[row, key] for row in rows for key in (1, 0)] == pytest.approx(SWAPS[swap], abs=0.006)
    if swap == ("Emma", "her", "her"):
        assert [row for row in range(9) if weights[row].argmax() != 0] == list(rows), "seven of nine rows"


def test_cuts_are_the_nearest_antecedent_and_something_else_before_it(minilm):
    kept = coreference_heads.passages(minilm, corpora.documents("encyclopedia", "dev")[:3])
    for passage, mention, first in removed.cuts(kept):
        chain = [m for m in passage.mentions if m.chain == mention.chain and m.head < mention.head]
        assert first == chain[-1] and first.end <= mention.head
    others = list(removed.cuts(kept, other=True))
    assert others
    for passage, mention, first in others:
        nearest = [m for m in passage.mentions if m.chain == mention.chain and m.head < mention.head][-1]
        assert first.chain != mention.chain and first.end <= nearest.start
        between = [m for m in passage.mentions if first.head < m.head and m.end <= nearest.start]
        assert all(m.chain == mention.chain for m in between), "no other stands nearer"


def test_weights_to_cls_are_those_of_the_cut_texts(minilm):
    kept = coreference_heads.passages(minilm, corpora.documents("encyclopedia", "dev")[:1])
    sums = {kind: [] for kind in ("with", "without")}
    for passage, mention, first in removed.cuts(kept):
        if mention.kind == PRONOUN:
            for kind, start in (("with", first.start), ("without", first.end)):
                batch = tokens.encode(minilm, [list(passage.words[start:])])
                pieces = batch.unit[0] == 1 + mention.head - start
                sums[kind].append(float(attention.maps(minilm, batch)[2, 0, 4, pieces, 0].mean()))
    found = removed.without(minilm, kept, (2, 4))["pronouns"]
    for kind, weights in sums.items():
        assert found[kind].value == pytest.approx(np.mean(weights), abs=1e-5)


def test_no_first_mention_of_the_test_part_is_a_pronoun(minilm):
    kept = coreference_heads.passages(minilm, corpora.documents("encyclopedia", "test"))
    firsts = [m.kind for p in kept for m, has in zip(p.mentions, p.antecedent.any(-1), strict=True) if not has]
    assert PRONOUN not in firsts and len(firsts) > 30
    assert sum(m.kind == PRONOUN for p in kept for m in p.mentions) == 110


def test_what_a_head_may_choose_from_decides():
    earlier, mentions, words = (one("minilm", "book", r)["all"] for r in READINGS)
    assert earlier["held_out"] == mentions["held_out"] and words["held_out"]["value"] < 0.45
    assert words["gains"]["head match"]["low"] > 0 > words["gains"]["nearest"]["high"]
    assert one("minilm", "full", "words")["all"]["gains"]["head match"]["high"] < 0, "the finding fails here"
    mpnet = one("mpnet", "full", "words")["all"]
    paper = {r["system"]: r for r in results.paper("clark2019", "table2")["rows"]}["Head 5-4"]["all"] / 100
    assert mpnet["gains"]["head match"]["low"] > 0 and mpnet["held_out"]["low"] < paper < mpnet["held_out"]["high"]


def test_the_papers_finding_holds_among_mentions_of_gum():
    for model in ("minilm", "mpnet"):
        rows = one(model, "full")
        assert rows["all"]["gains"]["head match"]["low"] > 0.1 and rows["all"]["gains"]["rules"]["high"] > 0
        match = rows["all"]["rules"]["head match"]["value"]
        assert abs(match - 0.52) < 0.02 and rows["all"]["rules"]["rules"]["value"] > 0.7
    assert (
        one("mpnet", "full")["nominal"]["gains"]["rules"]["low"]
        > 0
        > one("minilm", "full")["nominal"]["gains"]["rules"]["low"]
    )
