"""Words, phrases in a text, and F1 of lists."""

import pytest

from helpers import phrases
from helpers.phrases import BEGIN, INSIDE, OUTSIDE

TEXT = "State-of-the-art ice\nWater ice, and the rings of Saturn's moons. Ice 12 rings; U.S. water ice!"


def test_words_and_marks():
    spelled = phrases.spell(TEXT)
    assert spelled.units[:8] == ("State", "-", "of", "-", "the", "-", "art", "ice")
    assert spelled.words[:7] == ("state", "of", "the", "art", "ice", "water", "ice")
    assert [TEXT[a:b] for a, b in spelled.spans] == list(spelled.units)
    assert phrases.spell("").words == () and phrases.spell("...").words == ()


def test_phrases_are_found_capitals_and_punctuation_aside():
    spelled = phrases.spell(TEXT)
    spots = phrases.locate(spelled, ["water ice", "WATER-ICE", "Rings of Saturn", "state of the art", "comets", "  "])
    assert spots == {"water ice": [5, 19], "rings of saturn": [9], "state of the art": [0]}
    assert phrases.normal("State-of-the-Art!") == "state of the art"
    assert phrases.locate(spelled, ["ices"]) == {}, "no stemming"


def test_tags_and_back():
    spelled = phrases.spell("Water ice in the rings of Saturn; ice")
    tags = phrases.tags(spelled, ["ice", "water ice", "rings of Saturn", "Saturn"])
    assert tags == [BEGIN, INSIDE, OUTSIDE, OUTSIDE, BEGIN, INSIDE, INSIDE, BEGIN]
    assert phrases.tagged(spelled, tags) == ("water ice", "rings of saturn", "ice")
    assert phrases.tagged(spelled, [INSIDE, BEGIN, OUTSIDE, INSIDE]) == ("water", "ice", "the")
    assert phrases.tagged(spelled, [BEGIN]) == ("water",), "what was cut off has no tag"


@pytest.mark.parametrize(
    ("answer", "right", "value"),
    [(["a", "b"], ["b", "c", "d"], 0.4), ([], [], 1.0), (["a"], [], 0.0), ([], ["a"], 0.0), (["a", "a"], ["a"], 1.0)],
)
def test_f1(answer, right, value):
    assert phrases.f1(answer, right) == pytest.approx(value)
