"""The heads that several chapters speak of: who they are by rule, on changed records; what the cards say of ours is what is recorded."""

import copy

import pytest

from helpers import head_profiles, results

MODEL = "minilm"


def records():
    """The records of the book, each with a table of its own that a test may change."""
    known = {chapter: copy.copy(recorded) for chapter, recorded in head_profiles.records_of(MODEL).items()}
    for recorded in known.values():
        recorded.table = recorded.table.copy()
    return known


def find(name, known):
    _, chapter, rule = head_profiles.SPECIALITIES[name]
    return rule(known[chapter])


def test_the_heads_are_those_that_chapters_single_out():
    profiles = {profile.speciality: profile for profile in head_profiles.of(MODEL)}
    assert 3 <= len(profiles) <= 5
    for profile in profiles.values():
        assert len(profile.facts) >= 2, profile
    row = results.recorded("coreference_heads").row("one_head", of="all")
    assert profiles["antecedent"].head == (row.layer - 1, row["head"] - 1)
    assert f"{100 * row.value:.0f}\N{NO-BREAK SPACE}%" in profiles["antecedent"].facts["05"]


@pytest.mark.parametrize("name", head_profiles.SPECIALITIES)
def test_no_head_is_singled_out_where_the_simple_baseline_is_as_good(name):
    known = records()
    assert find(name, known)
    for chapter, quantity in (("05", "one_head_lead"), ("04", "lead_for_relation")):
        known[chapter].table.loc[known[chapter].table.quantity == quantity, "low"] = -0.01
    table = known["02"].table
    known["02"].table = table[table.quantity != "specialist"]
    assert not find(name, known)
    rare, table = records(), known["04"].table
    objects = (table.quantity == "lead_for_relation") & (table.of == "obj")
    rare["04"].table.loc[objects, "n"] = head_profiles.FEWEST - 1
    assert name != "object" or not find(name, rare)


def test_a_card_grows_and_is_safe():
    profile = head_profiles.of(MODEL)[0]
    early, late = profile.card("02"), profile.card("13")
    assert early.count("<li>") == 1 and late.count("<li>") == len(profile.facts)
    assert profile.card("01").count("<li>") == 0
    known = records()
    head = find("object", known)[0]
    known["04"].table = known["04"].table.replace({"of": {"obj": "<b>obj</b>"}})
    assert "<b>" not in head_profiles.facts(known, head)["04"]


def test_a_chapter_shows_whom_it_adds_to_and_the_last_one_all():
    cards = {chapter: head_profiles.show(chapter, MODEL).data for chapter in ("05", "14")}
    for profile in head_profiles.of(MODEL):
        assert profile.card("14") in cards["14"] and (profile.card("05") in cards["05"]) == ("05" in profile.facts)
    assert "Nothing is recorded" in head_profiles.show("05", "nobody").data


def test_a_model_that_nobody_measured_has_no_such_heads():
    assert head_profiles.of("nobody") == ()
