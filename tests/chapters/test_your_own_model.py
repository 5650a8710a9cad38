"""Chapter 14: its one page of code against plain loops, and its sentences against recorded numbers."""

import numpy as np
import pytest

from helpers import attention, tokens
from helpers.corpora.treebanks import Sentence
from helpers.measurements import coreference, syntax


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_a_sink_is_what_loops_add_up(page, small_encoder, passages, family):
    encoder = small_encoder(family)
    for passage, sinks in zip(passages, attention.measure(encoder, passages, page.sink), strict=True):
        maps = attention.maps(encoder, tokens.encode(encoder, [list(passage.words)]))[:, 0].double().numpy()
        for at in np.ndindex(maps.shape[:2]):
            assert sinks[at] == pytest.approx(sum(row[0] for row in maps[at]), abs=1e-5)


def test_the_page_points_and_picks_as_the_helpers_do(page, small_encoder, passages):
    """The helpers are held against loops in the tests of chapters 04 and 05."""
    encoder = small_encoder()
    for own, helper in ((page.point, syntax.point), (page.choose, coreference.choose)):
        both = [attention.measure(encoder, passages, function, units="words") for function in (own, helper)]
        assert all(np.array_equal(by_page, other) for by_page, other in zip(*both, strict=True))
    for picked, passage in zip(both[0], passages, strict=True):
        chains = [{m.head for m in passage.antecedents(mention)} for mention in passage.mentions]
        expected = [word in chain if chain else np.nan for word, chain in zip(picked[0, 0], chains, strict=True)]
        assert np.array_equal(page.refers(picked, passage)[0, 0], expected, equal_nan=True)


def test_a_random_mention_is_right_as_often_as_every_finger(page, passages):
    chances = [page.random_mention(passage) for passage in passages]
    for passage, shares in zip(passages, chances, strict=True):
        expected = []
        for mention in passage.mentions:
            chain = {m.head for m in passage.mentions if m.chain == mention.chain}
            fingers = [w in chain for w in range(mention.head) if w in [m.head for m in passage.mentions]]
            if any(fingers):
                expected.append(np.mean(fingers))
        assert np.allclose(shares, expected)
    chosen = [np.zeros((1, 1, len(passage.mentions)), int) for passage in passages]
    scores = coreference.score(chosen, passages)
    assert np.allclose(scores.rules["random mention"].right, np.concatenate(chances)) and len(scores.hits) > 10


def test_right_words_and_fixed_distances_are_what_loops_find(page):
    sentence = Sentence("", ("a", "b", "c", "d"), relations=("det", "obj", "root", "obj"), governors=(1, 2, -1, 2))
    named = page.at_distances(sentence)
    for place, distance in enumerate([k for k in range(-10, 11) if k]):
        assert named[place].tolist() == [w + distance if 0 <= w + distance < 4 else -2 for w in range(4)]
        hits = page.governs(named, sentence, "obj")[place]
        assert hits.tolist() == [1 + distance == 2, 3 + distance == 2]
    assert page.governs(named, sentence, "nsubj").shape == (20, 0)
