"""Chapter 04: heads read as parsers, against plain loops on random maps and random trees; its claims against recorded numbers."""

import numpy as np
import pytest
import torch
from conftest import BOOK, FULL, random_tree, recorded, word_maps

from helpers import attention, corpora, encoders, tokens
from helpers.corpora import treebanks
from helpers.corpora.records import numbered
from helpers.corpora.treebanks import Document, Sentence
from helpers.heads import Head
from helpers.measurements import syntax
from helpers.measurements.syntax import OFFSETS

SHAPE = (2, 3, 2)  # layers, heads, directions of random answers


def tree(words, upos, governors, relations) -> Sentence:
    """A sentence from lists with spaces; governors count from 0."""
    words, upos, relations = (tuple(names.split()) for names in (words, upos, relations))
    return Sentence("", words, upos=upos, governors=tuple(governors), relations=relations)


@pytest.fixture(scope="module")
def documents() -> tuple[Document, ...]:
    rng = np.random.default_rng(0)
    owner = tree("Anna 's cat sat", "PROPN PART NOUN VERB", (2, 0, 3, -1), "nmod:poss case nsubj root")
    return numbered(Document(f"d{i}", (*(random_tree(rng) for _ in range(4)), owner)) for i in range(8))


@pytest.fixture(scope="module")
def sentences(documents) -> list[Sentence]:
    return [s for d in documents for s in d.sentences]


def random_answers(sentences, seed=1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, len(s.words), (*SHAPE, len(s.words))) for s in sentences]


def pointed_in_loops(maps):
    """[layer, head, direction, word]: for each word, the other one with the largest weight from it, and to it."""
    n = maps.shape[-1]
    pointed = np.zeros((*maps.shape[:2], 2, n), int)
    for layer, head, word in np.ndindex(*maps.shape[:2], n):
        others = [other for other in range(n) if other != word] or [0]
        pointed[layer, head, 0, word] = max(others, key=lambda o: maps[layer, head, word, o])
        pointed[layer, head, 1, word] = max(others, key=lambda o: maps[layer, head, o, word])
    return pointed


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_heads_of_a_model_point_where_loops_say(small_encoder, page, sentences, family):
    encoder = small_encoder(family)
    [answers] = syntax.answers(encoder, sentences)
    own = attention.measure(encoder, sentences, page.point, units="words")
    special = attention.measure(encoder, sentences, page.to_special, units="words")
    for sentence, pointed, forward, given in zip(sentences, answers, own, special, strict=True):
        batch = tokens.encode(encoder, [list(sentence.words)])
        maps = word_maps(attention.maps(encoder, batch)[:, 0].numpy(), batch.unit[0].tolist())
        expected = pointed_in_loops(maps)
        at = np.arange(len(sentence.words))
        for direction, weights in enumerate((maps, maps.swapaxes(-1, -2))):  # of equal weights either may be found
            best, own = (weights[..., at, p[..., direction, :]].diagonal() for p in (expected, pointed))
            np.testing.assert_allclose(own, best, atol=1e-6)
        assert (pointed == expected).mean() > 0.99 and np.array_equal(forward, pointed[:, :, 0])
        np.testing.assert_allclose(given, 1 - maps.sum(-1), atol=1e-5)


def hits_in_loops(pointed, sentence, word, *, stanford=False):
    """[layer, head, direction] and [offset]: whether a word's governor is named, by the word itself or by its *'s*."""
    governor, mark = sentence.governors[word], None
    if sentence.relations[word] == ("poss" if stanford else "nmod:poss"):
        mark = treebanks.possessive(sentence, word)
    words = [w for w in (word, mark) if w is not None]
    heads = [any(pointed[(*at, w)] == governor for w in words) for at in np.ndindex(SHAPE)]
    return np.reshape(heads, SHAPE), [any(w + k == governor for w in words) for k in OFFSETS]


@pytest.mark.parametrize("stanford", [False, True])
def test_scores_are_what_loops_count(sentences, stanford):
    answers = random_answers(sentences)
    scores = syntax.score(answers, sentences, stanford=stanford)
    at, names, marks = 0, {"all"}, 0
    for sentence, pointed in zip(sentences, answers, strict=True):
        s = treebanks.stanford(sentence) if stanford else sentence
        for word, relation in enumerate(s.relations):
            assert scores.hits.documents[at] == scores.offsets.documents[at] == sentence.document
            if s.governors[word] < 0 or relation == "punct" or s.upos[word] == "PUNCT":
                assert scores.relation[at] == ""
            else:
                heads, offsets = hits_in_loops(pointed, s, word, stanford=stanford)
                assert scores.relation[at] == relation and np.array_equal(scores.hits.right[..., at], heads)
                assert scores.offsets.right[:, at].tolist() == offsets
                marks += relation in ("poss", "nmod:poss") and treebanks.possessive(s, word) is not None
                names.add(relation)
            at += 1
    assert set(scores.relations) == names and scores.relations[0] == "all" and marks
    assert scores.count("all") == sum(map(scores.count, scores.relations[1:]))


def test_the_page_and_its_distance_count_the_same(page, sentences):
    answers = random_answers(sentences)
    scores = syntax.score(answers, sentences)
    hits = [page.is_correct(pointed, s, "obj") for pointed, s in zip(answers, sentences, strict=True)]
    words = [(s, w) for s in sentences for w in range(len(s.words)) if s.relations[w] == "obj"]
    scored = [s.upos[w] != "PUNCT" for s, w in words]
    assert np.array_equal(np.concatenate(hits, -1)[..., scored], scores.hits.right[..., scores.asked("obj")])
    for k in (-2, -1, 1):
        hits = [page.is_correct(page.at_distance(s, k), s, "obj").tolist() for s in sentences]
        wanted = [[s.governors[w] - w == k for w, r in enumerate(s.relations) if r == "obj"] for s in sentences]
        assert hits == wanted and any(map(any, hits))


def test_heads_and_offsets_are_chosen_on_one_part_and_scored_on_the_other(sentences):
    parts = sentences[:20], sentences[20:]
    answers = [random_answers(part, seed) for seed, part in enumerate(parts)]
    for pointed, s in zip(answers[0], parts[0], strict=True):
        pointed[1, 2, 0] = s.governors  # always right where heads are chosen
    dev, test = map(syntax.score, answers, parts)
    rows = syntax.table(dev, test)
    assert next(iter(rows)) == "all"
    assert [row.count for row in rows.values()] == sorted(map(test.count, rows), reverse=True)
    for relation, row in rows.items():
        asked = test.asked(relation)
        right = test.hits.right[1, 2, 0][asked].mean()
        assert (row.head, row.direction) == (Head(2, 3), syntax.DIRECTIONS[0]) or dev.count(relation) < 4
        near = test.offsets.right[row.offset.candidate][asked].mean()
        assert row.offset.candidate == dev.offsets[dev.asked(relation)].best()
        if row.head == Head(2, 3):
            assert row.choice.held_out.value == pytest.approx(right)
            assert row.gain.value == pytest.approx(right - near)
    assert [*syntax.table(dev, test, ["det", "dobj"])] == ["det"]


def test_what_does_not_fit_or_has_no_tree_is_left_out(small_encoder, capsys):
    long = tree("word " * 80, "NOUN " * 80, range(-1, 79), "root " + "obj " * 79)
    flat = Sentence("f", ("no", "tree"))
    good = tree("It ran", "PRON VERB", (1, -1), "nsubj root")
    encoder = small_encoder("bert")
    assert syntax.trees(encoder, [Document("d", (long, flat, good))]) == [good]
    assert "1 without a tree" in capsys.readouterr().out
    with pytest.raises(corpora.CorpusError, match="No sentence"):
        syntax.trees(encoder, [Document("d", (long, flat))])


def test_a_treebank_without_the_usual_relations_is_read_all_the_same(sentences):
    dev, test = (syntax.score(random_answers(part), part) for part in (sentences[:20], sentences[20:]))
    assert syntax.select_relations(dev, test, "obj", "det") == ("obj", "det")
    assert syntax.select_relations(dev, test, "det", "dobj") == ("det",)
    assert syntax.select_relations(dev, test, "dobj") == (max(dev.relations[1:], key=dev.count),)
    rootless = [Sentence("s", ("a",), upos=("NOUN",), governors=(-1,), relations=("root",))]
    with pytest.raises(corpora.CorpusError, match="share no relation"):
        syntax.select_relations(dev, syntax.score(random_answers(rootless), rootless), "obj")


def test_nearest_words_are_those_of_a_loop(page, sentences):
    for sentence in sentences:
        n, tags = len(sentence.words), sentence.upos
        nouns = [p for p in range(n) if tags[p] in ("NOUN", "PROPN")]
        members = {name: [p for p in range(n) if tags[p] in page.CLASSES[name]] for name in ("verb", "content word")}
        members["end of a run of nouns"] = [p for p in nouns if p + 1 == n or tags[p + 1] not in ("NOUN", "PROPN")]
        named = dict(zip(page.CLASSES, page.rules(sentence).tolist(), strict=True))
        same = [[p for p in range(n) if tags[p] == tag and p != w] for w, tag in enumerate(tags)]
        last = [max((p for p in same[w] if p < w), default=-1) for w in range(n)]
        assert named["word of the same class"][0] == last
        for name, words in members.items():
            last = [max((p for p in words if p < w), default=-1) for w in range(n)]
            after = [min((p for p in words if p > w), default=-1) for w in range(n)]
            assert named[name] == [last, after]


def test_another_word_is_the_nearest_content_word_but_the_governor(page):
    ate = tree(
        "He ate the old cake quietly",
        "PRON VERB DET ADJ NOUN ADV",
        (1, -1, 4, 4, 1, 1),
        "nsubj root det amod obj advmod",
    )
    assert page.another(ate, 4) == 3 and page.another(ate, 0) == 3, "not ate, which is the governor of both"


def test_heads_point_from_hidden_words_where_loops_say(page, small_encoder, sentences):
    encoder = small_encoder()
    for sentence in sentences[:5]:
        word = len(sentence.words) - 1
        batch = tokens.encode(encoder, [list(sentence.words)])
        unit = batch.unit[0].tolist()
        batch.ids[0, [j for j, u in enumerate(unit) if u == word + 1]] = encoder.tokenizer.mask_token_id
        pointed = pointed_in_loops(word_maps(attention.maps(encoder, batch)[:, 0].numpy(), unit))[:, :, 0, word]
        expected = pointed == sentence.governors[word]
        assert np.array_equal(page.finds_from_hidden(encoder, sentence, word).numpy(), expected)


def test_losses_are_those_of_exactly_the_hidden_words(page):
    """One sentence after another, without a tap; of a word in several pieces all are hidden, and their mean counts."""
    encoder = encoders.load("minilm", task="mlm", device="cpu")
    texts = ("The keeper lit the lamp .", "Photosynthesis feeds every unbelievable plant in the old garden .")
    split = [tuple(text.split()) for text in texts]
    sentences = [Sentence("", words, governors=(*tuple(range(1, len(words))), 0)) for words in split]  # the next word
    hidden = [(sentences[t], place) for t, place in ((0, 4), (1, 3), (1, 0), (0, 1))]
    expected = []
    for sentence, place in hidden:
        batch = tokens.encode(encoder, [list(sentence.words)])
        at = [j for j, unit in enumerate(batch.unit[0].tolist()) if unit == place + 1]
        right = batch.ids[0, at].clone()
        batch.ids[0, at] = encoder.tokenizer.mask_token_id
        with torch.inference_mode():
            chances = encoder.logits(batch)[0, at].log_softmax(-1)
        expected.append(-float(chances[range(len(at)), right].mean()))
    alone = [(s, [w]) for s, w in hidden]
    losses = page.losses(encoder, alone)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    both = [(s, [w, s.governors[w]]) for s, w in hidden]
    assert np.abs(page.losses(encoder, both) - losses).min() > 1e-3, "the governor is hidden, too"
    without = page.losses(encoder, alone, [(layer, head) for layer in (2, 3) for head in range(encoder.heads)])
    assert np.abs(without - losses).min() > 1e-3


PUZZLE = tree(
    "The girl put an old letter under the bed .",
    "DET NOUN VERB DET ADJ NOUN ADP DET NOUN PUNCT",
    (1, 2, -1, 5, 5, 2, 8, 8, 2, 2),
    "det nsubj root det amod obj case det obl punct",
)


def test_the_puzzle(minilm, page):
    """Three words point to *put*, two to *under*; the other head finds six arcs of the tree."""

    def with_weights(maps, text):
        return {"pointed": page.point(maps, text), "maps": maps}

    [answer] = attention.measure(minilm, [PUZZLE], with_weights, units="words")
    first, second = (answer["pointed"][head] for head in (Head(3, 1), Head(3, 9)))
    words = PUZZLE.words
    strong = {words[w]: words[p] for w, p in enumerate(first) if answer["maps"][Head(3, 1)][w, p] >= 0.2}
    assert strong == {"an": "put", "old": "put", "letter": "put", "the": "under", "bed": "under"}
    assert [(head[:-1] == PUZZLE.governors[:-1]).sum() for head in (first, second)] == [1, 6]


@pytest.mark.parametrize("run", [BOOK, FULL])
def test_over_all_heads_attention_shifts_the_other_way_round(run):
    assert recorded("dependency_heads", run).array("attention_shift", of="obj").mean() < -0.03


def test_the_cue_is_the_nearest_verb_or_preposition_before_a_word(page, sentences):
    ofs = tree("OF ran of in it", "ADP VERB ADP ADP PRON", [1, -1, 4, 4, 1], "a b c d e")
    for s in [*sentences, ofs]:
        cues = [c == "VERB" or (c == "ADP" and w.lower() != "of") for c, w in zip(s.upos, s.words, strict=True)]
        for word, named in enumerate(page.last_cue(s)):
            place = word - 1
            while place >= 0 and not cues[place]:
                place -= 1
            assert named == place
