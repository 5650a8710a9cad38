"""What the pages say in their text is what was recorded: their numbers, digit by digit."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from conftest import BOOK, FULL, MPNET, recorded

from helpers.heads import Head

RUNS = {"book": BOOK, "full": FULL, "mpnet": MPNET}
PROSE = yaml.safe_load((Path(__file__).parents[1] / "data" / "prose.yml").read_text("utf-8"))
PRINTED = {  # run, quantity, where, and what the page says: in per cent where it says so, with the interval where it has one
    "surface_patterns": [
        (BOOK, "share_cls", {"layer": None}, "0.26"),
        (BOOK, "best_specialist", {"of": "previous"}, "0.99"),
    ],
    "dependency_heads": [
        (BOOK, "best_for_relation", {"of": "all"}, "46%"),
        (FULL, "best_for_relation", {"of": "all"}, "45%"),
        (MPNET, "best_for_relation", {"of": "all"}, "42%"),
        (BOOK, "rule_for_relation", {"of": "all"}, "46%"),
        (FULL, "rule_for_relation", {"of": "all"}, "46%"),
        (FULL, "verb_beyond_another_word", {}, "0.22 [0.11, 0.32]"),
        (BOOK, "object_head_to_special", {"of": "no nouns"}, "44%"),
        (MPNET, "object_head_to_special", {"of": "no nouns"}, "50%"),
        (FULL, "cost_beyond_its_layer", {}, "0.05"),
        (BOOK, "best_for_relation", {"of": "obj"}, "77% [71, 85]"),
        (BOOK, "best_offset", {"of": "obj"}, "39%"),
        (BOOK, "rule_for_relation", {"of": "obj"}, "94%"),
        (BOOK, "lines_landing", {"of": "objects: verb"}, "72% [57, 85]"),
        (BOOK, "lines_landing", {"of": "nouns after a preposition: verb"}, "9% [1, 19]"),
        (BOOK, "lines_landing", {"of": "nouns after a preposition: preposition"}, "84% [71, 93]"),
        (FULL, "object_head_to_special", {"of": "other nouns"}, "41%"),
        (FULL, "object_head_to_special", {"of": "no nouns"}, "37%"),
        (BOOK, "finds_from_hidden", {}, "77%"),
        (BOOK, "cost_on_hidden_objects", {"of": "verb hidden"}, "0.73 [0.39, 1.05]"),
        (BOOK, "verb_beyond_another_word", {}, "0.54 [0.17, 0.88]"),
        (BOOK, "cost_on_hidden_objects", {"of": "3-1"}, "0.02 [-0.05, 0.09]"),
        (BOOK, "lead_for_relation", {"of": "nmod"}, "-0.31"),
        (FULL, "lead_for_relation", {"of": "obj"}, "0.38 [0.34, 0.42]"),
        (MPNET, "lead_for_relation", {"of": "obj"}, "0.31 [0.28, 0.34]"),
        (FULL, "lead_for_relation", {"of": "all"}, "10%"),
        (MPNET, "lead_for_relation", {"of": "all"}, "8%"),
        (MPNET, "lead_for_relation", {"of": "nmod"}, "-0.05 [-0.09, -0.01]"),
        (FULL, "object_head_to_special", {"of": "determiners, near"}, "15%"),
        (FULL, "object_head_to_special", {"of": "determiners, not near"}, "49%"),
        (FULL, "object_head_to_special", {"of": "punctuation"}, "65%"),
        (BOOK, "object_head_to_special", {"of": "determiners, near"}, "19%"),
        (BOOK, "share_to_special", {"of": "determiners, near, all heads"}, "27%"),
        (BOOK, "share_to_special", {"of": "determiners, not near, all heads"}, "33%"),
        (MPNET, "share_to_special", {"of": "obj, all heads"}, "47%"),
        (FULL, "share_to_special", {"of": "obl, 3-1"}, "29%"),
        (FULL, "object_head_to_special", {"of": "with the relation"}, "24%"),
        (MPNET, "object_head_to_special", {"of": "with the relation"}, "47%"),
        (FULL, "cost_on_hidden_objects", {"of": "3-1"}, "0.07 [0.05, 0.10]"),
        (FULL, "cost_on_hidden_objects", {"of": "3-1, verb hidden"}, "0.00 [-0.03, 0.02]"),
        (BOOK, "cost_through_verb", {"of": "3-1"}, "0.07 [0.01, 0.14]"),
        (FULL, "cost_on_hidden_objects", {"of": "3-1, another word hidden"}, "0.08 [0.05, 0.11]"),
        (FULL, "lines_landing", {"of": "words before two nouns: governor"}, "35%"),
        (FULL, "lines_landing", {"of": "nmod, near, after of: there"}, "32%"),
        (FULL, "lines_landing", {"of": "obl, near, after of: there"}, "25%"),
        (FULL, "lines_landing", {"of": "nmod, near, after another word: there"}, "73%"),
        (FULL, "lines_landing", {"of": "obl, near, after another word: there"}, "73%"),
        (MPNET, "lines_landing", {"of": "nmod, near, after of: there"}, "18%"),
        (MPNET, "lines_landing", {"of": "obl, near, after of: there"}, "25%"),
        (MPNET, "lines_landing", {"of": "nmod, near, after another word: there"}, "63%"),
        (MPNET, "lines_landing", {"of": "obl, near, after another word: there"}, "67%"),
        (MPNET, "lines_landing", {"of": "words before two nouns: governor"}, "63%"),
        (MPNET, "rule_beyond_next_noun", {}, "76%"),
        (BOOK, "rule_of_six_classes", {"of": "all"}, "32%"),
        (FULL, "rule_of_six_classes", {"of": "all"}, "33%"),
        (FULL, "rule_of_six_classes", {"of": "advmod"}, "42%"),
        (MPNET, "share_to_special", {"of": "obl, 3-5"}, "48%"),
        (BOOK, "cost_on_hidden_objects", {"of": "whole layer"}, "0.27"),
        (FULL, "cost_on_hidden_objects", {"of": "whole layer"}, "0.31"),
    ],
}


def as_shown(number, printed):
    """A number with the decimals that the page prints, in per cent where it does, and with its interval where it does."""
    said, scale = printed.split()[0], 100 if "%" in printed else 1
    digits = len(said.rstrip("%").partition(".")[2])
    value, *ends = (f"{scale * end:z.{digits}f}" for end in (number.value, number.low, number.high))
    return value + "%" * ("%" in printed) + f" [{', '.join(ends)}]" * ("[" in printed)


@pytest.mark.parametrize(
    ("chapter", "run", "quantity", "where", "printed"),
    [(chapter, *row) for chapter, rows in (PRINTED | PROSE["printed"]).items() for row in rows],
)
def test_a_number_of_a_page_is_recorded(chapter, run, quantity, where, printed):
    if "head" in where:
        where = where | {"head": Head(*where["head"])}
    assert as_shown(recorded(chapter, RUNS.get(run, run)).number(quantity, **where), printed) == printed


@pytest.mark.parametrize(
    ("chapter", "runs", "quantity", "where", "column", "least", "most", "said"),
    [(chapter, *row) for chapter, rows in PROSE["said"].items() for row in rows],
)
def test_what_is_said_of_several_numbers_is_recorded(chapter, runs, quantity, where, column, least, most, said):
    for run in runs:
        numbers = recorded(chapter, RUNS[run]).rows(quantity, network=where.get("network", ""))
        for name in where.keys() - {"network"}:
            numbers = numbers[numbers[name].isin(np.atleast_1d(where[name]))]
        assert len(numbers) and numbers[column].between(least, most).all(), (said, run, numbers[column].tolist())


@pytest.mark.parametrize("run", [FULL, MPNET])
def test_on_gum_seven_of_eight_relations_are_ahead(run):
    leads = recorded("dependency_heads", run).estimates("lead_for_relation")
    assert [relation for relation in [*leads][1:9] if leads[relation].low <= 0] == ["nmod"]
