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


@pytest.mark.parametrize("run, far", [(FULL, False), (MPNET, True)])
def test_13_single_heads_and_random_heads_on_abstracts(run, far):
    values = of("keywords", run)
    best, rule = array(values["heads"]["precision"]).max(), values["scores"]["learned rule"]["precision"]
    assert best > rule["value"] and (best > rule["high"] + 0.05) == far
    assert round(values["over_rules"]["all heads, @random, and rule"]["value"], 2) == 0.03
    assert values["over_rules"]["all heads, @random, and rule"]["low"] > 0
