"""Words, phrases in a text, candidates, and F1 of lists."""

import pytest

from helpers import phrases
from helpers.phrases import BEGIN, INSIDE, OUTSIDE

TEXT = "State-of-the-art ice\nWater ice, and the rings of Saturn's moons. Ice 12 rings; U.S. water ice!"


def test_words_and_marks():
    spelled = phrases.spell(TEXT)
    assert spelled.units[:8] == ("State", "-", "of", "-", "the", "-", "art", "ice")
    assert spelled.words[:7] == ("state", "of", "the", "art", "ice", "water", "ice")
    assert [TEXT[a:b] for a, b in spelled.spans] == list(spelled.units)
    by_word = dict(zip(enumerate(spelled.words), spelled.joined, strict=True))
    assert by_word[1, "of"] and by_word[4, "ice"], "hyphens and spaces join"
    assert not by_word[0, "state"] and not by_word[5, "water"] and not by_word[7, "and"], (
        "line ends and commas do not"
    )
    assert phrases.spell("").words == () and phrases.spell("...").words == ()


def test_phrases_are_found_capitals_and_punctuation_aside():
    spelled = phrases.spell(TEXT)
    found = phrases.locate(spelled, ["water ice", "WATER-ICE", "Rings of Saturn", "state of the art", "comets", "  "])
    assert found == {"water ice": [5, 19], "rings of saturn": [9], "state of the art": [0]}
    assert phrases.normal("State-of-the-Art!") == "state of the art"
    assert phrases.locate(spelled, ["ices"]) == {}, "no stemming"


def test_tags_and_back():
    spelled = phrases.spell("Water ice in the rings of Saturn; ice")
    tags = phrases.tags(spelled, ["ice", "water ice", "rings of Saturn", "Saturn"])
    assert tags == [BEGIN, INSIDE, OUTSIDE, OUTSIDE, BEGIN, INSIDE, INSIDE, BEGIN]
    assert phrases.tagged(spelled, tags) == ("water ice", "rings of saturn", "ice")
    assert phrases.tagged(spelled, [INSIDE, BEGIN, OUTSIDE, INSIDE]) == ("water", "ice", "the")
    assert phrases.tagged(spelled, [BEGIN]) == ("water",), "what was cut off has no tag"


def test_candidates_are_the_longest_stretches_between_stop_words():
    spelled = phrases.spell("The quick brown fox of 1999 saw ice, water-ice and a b. Fox")
    found = [" ".join(spelled.words[s : s + n]) for s, n in phrases.candidates(spelled)]
    assert found == ["quick brown fox", "saw ice", "water ice", "fox"]


def test_a_candidate_scores_the_sum_over_its_occurrences():
    spelled = phrases.spell("ice, water ice, rings, ice")
    assert phrases.ranked(spelled, [1.0, 1.0, 1.0, 3.0, 1.5]) == ["rings", "ice", "water ice"]
    assert phrases.ranked(spelled, [0.0] * 5) == ["ice", "water ice", "rings"], "text order decides between equals"


@pytest.mark.parametrize(
    ("said", "right", "value"),
    [(["a", "b"], ["b", "c", "d"], 0.4), ([], [], 1.0), (["a"], [], 0.0), ([], ["a"], 0.0), (["a", "a"], ["a"], 1.0)],
)
def test_f1(said, right, value):
    assert phrases.f1(said, right) == pytest.approx(value)
