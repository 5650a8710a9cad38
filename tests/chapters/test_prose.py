"""What the pages say in their text is what was recorded: their numbers, digit by digit, and their summaries in every run that they speak of."""

import numpy as np
import pytest
from conftest import BOOK, FULL, MPNET, recorded

from helpers import scoreboard
from helpers.heads import Head

IN_5, IN_4 = {"of": "cls", "layer": 5}, {"of": "cls", "layer": 4}
LATER_SEP = {"of": "sep", "layer": range(6, 12)}
BETTER, WORSE = ["mlm", "paraphrase"], ["rte", "entailment", "keywords"]
PRINTED = {  # run, quantity, where, and what the page says: in per cent where it says so, with the interval where it has one
    "surface_patterns": [
        (BOOK, "share_cls", {"layer": None}, "0.26"),
        (BOOK, "best_specialist", {"of": "previous"}, "0.99"),
    ],
    "no_op": [
        (BOOK, "attention_share", IN_5, "0.371 [0.360, 0.381]"),
        (BOOK, "output_share", IN_5, "0.032 [0.031, 0.034]"),
        (BOOK, "length_ratio", IN_5, "0.031 [0.030, 0.031]"),
        (BOOK, "loss_added", {"of": "sink deleted"}, "0.05 [0.02, 0.08]"),
        (BOOK, "loss_added", {"of": "others louder"}, "0.58 [0.50, 0.65]"),
        (BOOK, "loss_added", {"of": "both"}, "0.44 [0.38, 0.51]"),
        (BOOK, "removal_beyond_others", {"of": "as_left"}, "-0.039 [-0.060, -0.020]"),
        (BOOK, "removal_beyond_others", {"of": "renormalised"}, "-0.021 [-0.043, -0.003]"),
        (BOOK, "removal_beyond_others", {"of": "spent"}, "0.018 [0.010, 0.025]"),
        (BOOK, "gradient_ratio", IN_5, "0.053 [0.052, 0.054]"),
        (BOOK, "gradient_ratio_untrained", IN_5, "0.025"),
        (BOOK, "copy_length_ratio", IN_5, "0.056"),
        (BOOK, "copy_attention_share", IN_5, "0.68"),
        (BOOK, "copy_output_share", IN_5, "0.17"),
        (MPNET, "attention_share", IN_4, "0.41"),
        (MPNET, "output_share", IN_4, "0.06"),
        (BOOK, "sink_norm_ratio", {}, "0.03"),
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
    "coreference_heads": [
        (BOOK, "one_head", {"of": "all", "head": Head(3, 5)}, "78% [71, 86]"),
        (BOOK, "one_head_lead", {"of": "all over nearest mention", "head": Head(3, 5)}, "17% [3, 30]"),
        (BOOK, "one_head_lead", {"of": "all over four-sieve rules", "head": Head(3, 5)}, "-2% [-8, 5]"),
        (BOOK, "one_head_lead", {"of": "pronoun over nearest mention", "head": Head(3, 5)}, "11% [-4, 25]"),
        (BOOK, "one_head", {"of": "new word", "head": Head(3, 5)}, "73% [66, 82]"),
        (BOOK, "one_head_lead", {"of": "new word over nearest mention", "head": Head(3, 5)}, "11% [-6, 27]"),
        (BOOK, "cls_before_cut", {"of": "pronouns, antecedent cut", "head": Head(3, 5)}, "38% [33, 43]"),
        (BOOK, "cls_after_cut", {"of": "pronouns, antecedent cut", "head": Head(3, 5)}, "63% [59, 68]"),
        (BOOK, "cls_change", {"of": "pronouns, antecedent cut", "head": Head(3, 5)}, "25% [22, 29]"),
        (BOOK, "cls_change", {"of": "pronouns, something else cut", "head": Head(3, 5)}, "0% [-1, 2]"),
        (BOOK, "cls_change", {"of": "pronouns, antecedent cut, same pronouns", "head": Head(3, 5)}, "27% [23, 31]"),
        (BOOK, "one_head_among_words", {"of": "all", "head": Head(3, 5)}, "42% [32, 51]"),
        (FULL, "one_head", {"of": "all", "head": Head(3, 5)}, "78% [71, 86]"),
        (FULL, "one_head_lead", {"of": "new word over nearest mention", "head": Head(3, 5)}, "25% [10, 41]"),
        (FULL, "one_head_lead", {"of": "new word over four-sieve rules", "head": Head(3, 5)}, "15% [0, 29]"),
        (FULL, "one_head_lead", {"of": "pronoun over nearest mention", "head": Head(3, 5)}, "40% [30, 50]"),
        (MPNET, "one_head_lead", {"of": "pronoun over nearest mention", "head": Head(3, 11)}, "39% [30, 48]"),
        (FULL, "cls_change", {"of": "pronouns, antecedent cut", "head": Head(3, 5)}, "16% [13, 19]"),
        (FULL, "one_head_among_words", {"of": "all", "head": Head(3, 10)}, "47% [39, 54]"),
        (FULL, "one_head_among_words", {"of": "repeated", "head": Head(3, 10)}, "80% [70, 90]"),
        (FULL, "one_head_among_words", {"of": "new word", "head": Head(3, 10)}, "9% [4, 12]"),
        (MPNET, "one_head", {"of": "all", "head": Head(3, 11)}, "83% [78, 88]"),
        (MPNET, "one_head_among_words", {"of": "all", "head": Head(3, 11)}, "61% [53, 68]"),
        (BOOK, "antecedent_by_rule", {"of": "all by four-sieve rules"}, "0.79"),
    ],
    "probing_classifiers": [
        (BOOK, "uas", {"of": "attention"}, "0.60"),
        (BOOK, "uas", {"of": "best single head"}, "0.43"),
    ],
    "divergence_map": [
        (BOOK, "closeness", {"of": "layer"}, "0.790 [0.788, 0.791]"),
        (BOOK, "closeness", {"of": "layer, inner layers"}, "0.964 [0.963, 0.965]"),
        (BOOK, "closeness_p", {"of": "layer, inner layers"}, "0.03"),
        (BOOK, "layer_gap", {"of": "all tokens"}, "-0.064"),
        (BOOK, "layer_gap", {"of": "alike in all four"}, "-0.023"),
        (BOOK, "layer_gap", {"of": "ordinary tokens"}, "-0.040"),
        (BOOK, "closeness", {"of": "shared behaviour"}, "0.630"),
        (BOOK, "closeness", {"of": "layer, shared behaviour"}, "0.648"),
        (BOOK, "map_kept", {"of": "most"}, "0.56"),
        (FULL, "map_kept", {"of": "least"}, "0.44"),
        (MPNET, "closeness", {"of": "layer, inner layers"}, "0.73"),
        (MPNET, "closeness", {"of": "layer"}, "0.72"),
        (MPNET, "closeness", {"of": "number"}, "0.756"),
        (MPNET, "closeness", {"of": "number, terms moved"}, "0.979 [0.977, 0.981]"),
        (MPNET, "closeness", {"of": "term, terms moved"}, "0.710 [0.701, 0.716]"),
        (MPNET, "layer_gap", {"of": "all tokens"}, "-0.093"),
        (MPNET, "layer_gap", {"of": "alike in all four"}, "-0.020"),
        (MPNET, "closeness", {"of": "shared behaviour"}, "0.54"),
        (MPNET, "closeness", {"of": "layer, shared behaviour"}, "0.66"),
        (MPNET, "map_kept", {"of": "least"}, "0.39"),
        (BOOK, "layer_ratio", {"of": "all tokens"}, "0.79"),
    ],
    "distance_features": [
        (BOOK, "stability", {"of": "plain text"}, "96% [92, 100]"),
        (BOOK, "stability_invented", {"of": "plain text"}, "96% [88, 100]"),
        (BOOK, "stability_invented", {"of": "real variance"}, "95% [85, 100]"),
        (BOOK, "changed_on_texts", {"of": "cut short"}, "46% [43, 47]"),
        (BOOK, "changed_sorted", {"of": "cut short"}, "24% [22, 25]"),
        (BOOK, "changed_sorted", {"of": "cut short, windows of 8"}, "15% [14, 15]"),
        (BOOK, "two_largest", {}, "87% [87, 88]"),
    ],
    "pattern_types": [
        (BOOK, "accuracy_known_heads", {"of": "other maps of the head"}, "95% [89, 100]"),
        (BOOK, "accuracy_known_heads", {"of": "forest on synthetic maps"}, "88%"),
        (BOOK, "accuracy_new_heads", {"of": "forest on synthetic maps"}, "89% [76, 100]"),
        (BOOK, "accuracy_gain", {"of": "other maps of the head over other heads of the layer"}, "27% [12, 41]"),
        (BOOK, "accuracy_gain", {"of": "forest on synthetic maps over always the majority type"}, "25% [-6, 55]"),
        (BOOK, "share_by_classifier", {"of": "vertical, forest on dev maps", "network": "@shuffled"}, "73%"),
        (BOOK, "share_by_classifier", {"of": "vertical, forest on synthetic maps", "network": "@shuffled"}, "0.2%"),
        (BOOK, "same_type", {"of": "of one head"}, "91%"),
        (BOOK, "same_type", {"of": "of two heads"}, "39%"),
        (BOOK, "same_type", {"of": "difference"}, "53%"),
        (BOOK, "same_type", {"of": "difference", "network": "@random"}, "1%"),
        (BOOK, "dark_column", {}, "87%"),
        (MPNET, "dark_column", {}, "92%"),
        (MPNET, "dark_column", {"network": "@random"}, "80%"),
        (MPNET, "same_type", {"of": "difference"}, "43%"),
        (MPNET, "same_type", {"of": "difference", "network": "@random"}, "14%"),
        (MPNET, "vertical_target", {"of": "other"}, "6%"),
        (MPNET, "vertical_target", {"of": "other", "network": "@random"}, "88%"),
    ],
    "ablation_by_type": [
        (FULL, "f1", {}, "72%"),
        (BOOK, "f1", {}, "59%"),
        (FULL, "f1_cost_of_row_tuned", {"of": "2"}, "-54% [-60, -49]"),
        (FULL, "f1_cost_of_row", {"of": "2"}, "-8%"),
        (BOOK, "f1_cost_of_row_tuned", {"of": "2"}, "-40%"),
        (BOOK, "f1_cost_of_row", {"of": "2"}, "-1%"),
        (FULL, "f1_cost_of_row_tuned", {"of": "3"}, "-37%"),
        (BOOK, "f1_cost_of_row_tuned", {"of": "3"}, "-14%"),
        (FULL, "f1_cost_of_row", {"of": "4"}, "-38%"),
        (FULL, "f1_cost_of_row_tuned", {"of": "4"}, "-9%"),
        (FULL, "f1_cost_of_row_tuned", {"of": "5"}, "0%"),
        (FULL, "f1_difference_tuned", {"of": "12-13"}, "-36% [-42, -31]"),
        (FULL, "f1_difference_of_shuffles_tuned", {"of": "12-13"}, "-6%"),
        (FULL, "f1_cost_of_random", {"of": "12", "label": "order 1"}, "-10%"),
        (FULL, "f1_cost_of_random", {"of": "12", "label": "order 2"}, "-1%"),
        (FULL, "f1_cost_of_part", {"of": "core"}, "-21% [-26, -16]"),
        (FULL, "f1_cost_of_part", {"of": "others"}, "-6%"),
        (BOOK, "f1_cost_of_part", {"of": "core"}, "-5%"),
        (FULL, "f1_beyond_parts", {}, "-14% [-20, -9]"),
    ],
    "layer_semantics": [
        (BOOK, "layers_gain", {"of": "dependency"}, "12% [10, 14]"),
        (BOOK, "relation_score", {"of": "obj, embeddings"}, "37%"),
        (BOOK, "relation_score", {"of": "obj, all layers"}, "70%"),
        (BOOK, "relation_score", {"of": "obj, all layers", "network": "@random"}, "33%"),
        (BOOK, "relation_gain", {"of": "obj"}, "33% [26, 42]"),
        (BOOK, "expected_layer", {"of": "dependency"}, "1.9 [1.7, 2.1]"),
        (BOOK, "expected_layer", {"of": "part of speech"}, "1.8"),
        (BOOK, "later_by_gravity", {"of": "dependency to coreference"}, "0.6"),
        (FULL, "later_by_gravity", {"of": "dependency to coreference"}, "0.93 [0.85, 1.02]"),
        (MPNET, "later_by_gravity", {"of": "dependency to coreference"}, "1.76 [1.61, 1.92]"),
        (MPNET, "later_by_expected_layer_both", {"of": "dependency to coreference"}, "1.1 [0.1, 2.0]"),
        (MPNET, "later_by_expected_layer_both", {"of": "dependency to entity"}, "1.2 [0.1, 1.8]"),
        (BOOK, "later_by_gravity", {"of": "dependency to coreference", "network": "@shuffled"}, "1.2 [1.0, 1.3]"),
    ],
    "head_importance": [
        (FULL, "importance_repeats", {"of": "mlm"}, "0.87 [0.79, 0.91]"),
        (FULL, "cost_repeats", {"of": "keywords"}, "0.62 [0.17, 0.86]"),
        (FULL, "slope_beyond_random", {"of": "qa"}, "0.26 [0.08, 0.44]"),
        (FULL, "needed_heads", {"of": "mlm"}, "4"),
        (FULL, "needed_heads", {"of": "paraphrase"}, "2"),
        (FULL, "pruned_score", {"of": "qa", "label": "none gone"}, "0.59"),
        (FULL, "pruned_score", {"of": "qa", "label": "43 gone, by slope"}, "0.57"),
        (FULL, "pruned_score", {"of": "qa", "label": "43 gone, by added loss"}, "0.20"),
        (FULL, "pruned_score", {"of": "qa", "label": "43 gone, by size of added loss"}, "0.54"),
        (FULL, "pruned_score", {"of": "keywords", "label": "43 gone, by size of added loss"}, "0.20"),
    ],
    "keywords": [
        (BOOK, "class_accuracy", {"split": "dev"}, "0.78"),
        (FULL, "class_accuracy", {"split": "dev"}, "0.90"),
        (BOOK, "all_heads_over_rule", {}, "0.06 [0.02, 0.10]"),
        (BOOK, "ranking_gain", {"of": "all heads over rule with tags"}, "0.02"),
        (BOOK, "ranking_gain", {"of": "heads + rule with embeddings over rule with embeddings"}, "0.07 [0.04, 0.10]"),
        (FULL, "ranking_gain", {"of": "heads + rule with embeddings over rule with embeddings"}, "0.08 [0.07, 0.09]"),
        (MPNET, "all_heads_over_rule", {}, "0.18"),
    ],
    "your_own_model": [
        (BOOK, "best_for_relation", {"of": "obj", "network": "@random"}, "0.07 [0.02, 0.13]"),
        (BOOK, "best_for_antecedent", {"of": "all", "network": "@random"}, "0.40 [0.28, 0.54]"),
        (BOOK, "lead_over_closed_eyes", {"of": "all"}, "0.37 [0.30, 0.44]"),
        (BOOK, "lead_over_closed_eyes", {"of": "all", "network": "@random"}, "0.00 [-0.14, 0.14]"),
        (BOOK, "lead_for_relation", {"of": "obj"}, "0.38 [0.25, 0.52]"),
        (BOOK, "lead_for_relation", {"of": "obj", "network": "@random"}, "-0.32"),
        (BOOK, "times_even_share", {}, "33.1 [32.8, 33.4]"),
        (BOOK, "times_even_share", {"network": "@random"}, "1.00"),
        (BOOK, "relative_entropy", {}, "0.63"),
        (BOOK, "relative_entropy", {"network": "@shuffled"}, "0.65"),
        (MPNET, "relative_entropy", {}, "0.55"),
        (MPNET, "relative_entropy", {"network": "@shuffled"}, "0.52"),
        (FULL, "times_even_share", {}, "32"),
        (MPNET, "times_even_share", {}, "18"),
        (BOOK, "paired_difference", {"of": "all over @random"}, "0.39"),
        (FULL, "paired_difference", {"of": "all over @random"}, "0.36"),
        (MPNET, "paired_difference", {"of": "all over @random"}, "0.31"),
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
    [(chapter, *row) for chapter, rows in PRINTED.items() for row in rows],
)
def test_a_number_of_a_page_is_recorded(chapter, run, quantity, where, printed):
    assert as_shown(recorded(chapter, run).number(quantity, **where), printed) == printed


ALL, ONE = (BOOK, FULL, MPNET), (FULL,)
BOUNDS = {  # what is said of several numbers at once: the words, runs, quantity, where, column, the least, the most
    "no_op": [
        ("thirty times shorter", (BOOK, FULL), "length_ratio", IN_5, "value", 1 / 34, 1 / 30),
        ("twenty times in mpnet", (MPNET,), "length_ratio", IN_4, "value", 1 / 21, 1 / 19),
        ("as long in @random", ALL, "length_ratio", {"of": "cls", "network": "@random"}, "value", 0.95, 1.06),
        ("[SEP] of mpnet, a fifth to a quarter", (MPNET,), "attention_share", LATER_SEP, "value", 0.2, 0.26),
        ("a little over a third as long", (MPNET,), "length_ratio", LATER_SEP, "value", 0.34, 0.39),
        ("within a factor of two", ALL, "slope_off_length", {}, "value", 1, 2),
    ],
    "head_importance": [
        ("none elsewhere", ONE, "needed_heads", {"of": ["qa", "rte", "entailment"]}, "value", 0, 0),
        ("none helps in the score", ONE, "harmful_heads", {}, "value", 0, 0),
        ("2 to 7 % would be overlooked", ONE, "smallest_cost_seen", {}, "value", 0.02, 0.075),
        ("at 0.87 or more", ONE, "importance_repeats", {}, "value", 0.865, 1),
        ("not at all on questions", ONE, "cost_repeats", {"of": "qa"}, "value", -0.05, 0.05),
        ("at most at 0.62", ONE, "cost_repeats", {}, "value", 0.025, 0.624),
        ("foretells on hidden words", ONE, "importance_foretells_cost", {"of": BETTER}, "low", 0.1, 1),
        ("may be chance on four", ONE, "importance_foretells_cost", {"of": ["qa", *WORSE]}, "low", -1, 0),
        ("above all 99", ONE, "slope_beyond_random_p", {"of": ["qa", "mlm"]}, "value", 0.01, 0.01),
        ("added loss is not ahead on questions", ONE, "loss_beyond_random", {"of": "qa"}, "low", -1, 0),
        (
            "slopes on all but entailment",
            ONE,
            "slope_beyond_random",
            {"of": [*BETTER, "rte", "keywords"]},
            "low",
            0.001,
            1,
        ),
        ("both on paraphrases and hidden words", ONE, "loss_beyond_random", {"of": BETTER}, "low", 0.001, 1),
        ("worse than random ones", ONE, "loss_beyond_random", {"of": WORSE}, "high", -1, -0.001),
        ("slopes are ahead on RTE only", ONE, "slope_beyond_random", {"of": "entailment"}, "low", -1, 0),
        (
            "lost score is ahead",
            ONE,
            "score_beyond_random",
            {"of": ["qa", "rte", "keywords", *BETTER]},
            "low",
            0.001,
            1,
        ),
        ("that importance is ahead of it is not shown", ONE, "slope_beyond_score", {}, "low", -1, 0),
        ("but on entailment", ONE, "score_beyond_random", {"of": "entailment"}, "low", -1, 0),
    ],
}


@pytest.mark.parametrize(
    ("chapter", "said", "runs", "quantity", "where", "column", "least", "most"),
    [(chapter, *row) for chapter, rows in BOUNDS.items() for row in rows],
)
def test_what_is_said_of_several_numbers_is_recorded(chapter, said, runs, quantity, where, column, least, most):
    for run in runs:
        found = recorded(chapter, run).rows(quantity, network=where.get("network", ""))
        for name in ("of", "layer"):
            found = found[found[name].isin(np.atleast_1d(where.get(name, found[name])))]
        assert len(found) and found[column].between(least, most).all(), (said, run, found[column].tolist())


SUMMARIES = {
    "03_no_op": (BOOK, FULL, MPNET),
    "09_pattern_types": (BOOK, FULL),
    "10_ablation_by_type": (BOOK, FULL),
    "11_head_importance": (BOOK, FULL),
    "13_keywords": (BOOK, FULL),
    "14_your_own_model": (BOOK, FULL, MPNET),
}
NOT_IN_ALL = ("03_no_op", "11_head_importance")
"""Chapters of which some runs lack a number that a headline speaks of."""


@pytest.mark.parametrize("run", [FULL, MPNET])
def test_on_gum_seven_of_eight_relations_are_ahead(run):
    leads = recorded("dependency_heads", run).estimates("lead_for_relation")
    assert [relation for relation in [*leads][1:9] if leads[relation].low <= 0] == ["nmod"]


@pytest.mark.parametrize(("chapter", "run"), [(chapter, run) for chapter, runs in SUMMARIES.items() for run in runs])
def test_a_summary_holds_in_every_run_that_it_speaks_of(chapter, run):
    numbers = scoreboard.numbers_of(recorded(chapter[3:], run).table)
    allowed = {scoreboard.HOLDS, scoreboard.ABSENT} if chapter in NOT_IN_ALL else {scoreboard.HOLDS}
    for claim in scoreboard.chapters()[chapter]["headlines"]:
        assert scoreboard.judge(claim, numbers).verdict in allowed, claim.claim
