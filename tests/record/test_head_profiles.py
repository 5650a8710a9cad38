"""The characters: who they are by rule, on made-up records; what the cards say of ours is what is recorded."""

import copy

import pytest

from helpers import head_profiles, results

MODEL = "minilm"


def records():
    return copy.deepcopy(head_profiles.records_of(MODEL))


def find(name, known):
    return head_profiles.SPECIALITIES[name][1](known)


def test_the_characters_of_the_book_are_those_that_its_chapters_single_out():
    cast = {one.speciality: one for one in head_profiles.of(MODEL)}
    assert 3 <= len(cast) <= 5
    for one in cast.values():
        assert len(one.facts) >= 2, one.label
    values = results.recorded("coreference_heads")["values"]["one_head"]["earlier"]["table"]["all"]
    assert cast["antecedent"].head == (values["layer"], values["head"])
    assert f"{100 * values['held_out']['value']:.0f}\N{NO-BREAK SPACE}%" in cast["antecedent"].facts["05"]


@pytest.mark.parametrize("name", head_profiles.SPECIALITIES)
def test_no_head_plays_where_the_simple_rival_is_as_good(name):
    known = records()
    assert find(name, known) is not None
    known["05"]["one_head"]["earlier"]["table"]["all"]["gains"]["nearest"]["low"] = 0.0
    for entry in known["04"]["ud"]["table"].values():
        entry["gain"]["low"] = -0.01
    known["02"]["summary"]["specialists"] = []
    assert find(name, known) is None


@pytest.mark.parametrize("name", head_profiles.SPECIALITIES)
def test_what_is_not_recorded_makes_no_character(name):
    assert find(name, {}) is None


def test_a_rare_relation_makes_no_character():
    known = records()
    known["04"]["ud"]["table"]["obj"]["count"] = head_profiles.FEWEST - 1
    assert find("object", known) is None


def test_a_card_grows_and_is_safe():
    one = head_profiles.of(MODEL)[0]
    early, late = one.card("02"), one.card("13")
    assert early.count("<li>") == 1 and late.count("<li>") == len(one.facts)
    assert one.card("01").count("<li>") == 0
    known = records()
    table = known["04"]["ud"]["table"]
    table["<b>obj</b>"] = table.pop("obj")
    head = table["<b>obj</b>"]["layer"], table["<b>obj</b>"]["head"]
    assert "<b>" not in dict(head_profiles._facts(known, head))["04"]


def test_a_chapter_shows_whom_it_adds_to_and_the_last_one_all():
    cards = {chapter: head_profiles.show(chapter, MODEL).data for chapter in ("05", "14")}
    for one in head_profiles.of(MODEL):
        assert one.card("14") in cards["14"] and (one.card("05") in cards["05"]) == ("05" in one.facts)
    assert "Nothing is recorded" in head_profiles.show("05", "nobody").data


def test_a_model_that_nobody_measured_has_no_characters():
    assert head_profiles.of("nobody") == ()
