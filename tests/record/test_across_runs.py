"""What chapters say in passing of several recorded runs: where a second run or a control bounds a claim."""

import numpy as np
import pytest

from helpers import results

BOOK, FULL, MPNET = ("minilm", "book"), ("minilm", "full"), ("mpnet", "full")


def of(chapter, run=BOOK):
    model, profile = run
    return results.recorded(chapter, model=model, profile=profile)["values"]


def array(found):
    return np.array(found["value"] if isinstance(found, dict) else found)


def clear(one):
    return one["low"] > 0 or one["high"] < 0


def test_10_readings_of_a_sentence():
    values = of("ablation_by_type", FULL)
    told = {"15": -41, "17": -59, "19": -20}
    assert {n: round(100 * values["variants"]["renormalised"][n]["f1_change"]["value"]) for n in told} == told
    assert all(clear(values["variants"]["renormalised"][n]["f1_beside"]) for n in told)
    old, new = np.array(values["types"]), np.array(values["tuned"]["types"])
    assert not ((old == "diagonal") & (new == "diagonal")).any(), "no head was diagonal before"
    here = of("ablation_by_type")
    old, new = np.array(here["types"]), np.array(here["tuned"]["types"])
    both = (old == "diagonal") & (new == "diagonal")
    assert (both.sum(), (old == "diagonal").sum(), (new == "diagonal").sum()) == (5, 6, 13)


@pytest.mark.parametrize("run, far", [(FULL, False), (MPNET, True)])
def test_13_single_heads_and_random_heads_on_abstracts(run, far):
    values = of("keywords", run)
    best, rule = array(values["heads"]["precision"]).max(), values["scores"]["learned rule"]["precision"]
    assert best > rule["value"] and (best > rule["high"] + 0.05) == far
    assert round(values["over_rules"]["all heads, @random, and rule"]["value"], 2) == 0.03
    assert values["over_rules"]["all heads, @random, and rule"]["low"] > 0
