"""What chapters say in passing of several recorded runs: where a second run or a control bounds a claim."""

from itertools import combinations

import numpy as np
from scipy.stats import spearmanr

from helpers import results

BOOK, FULL, MPNET = ("minilm", "book"), ("minilm", "full"), ("mpnet", "full")


def of(chapter, run=BOOK):
    model, profile = run
    return results.recorded(chapter, model=model, profile=profile)["values"]


def array(found):
    return np.array(found["value"] if isinstance(found, dict) else found)


def clear(one):
    return one["low"] > 0 or one["high"] < 0


def test_11_importance_between_tasks():
    tasks = {name: array(one["importance"]).ravel() for name, one in of("head_importance", FULL)["tasks"].items()}
    between = {frozenset(pair): spearmanr(*(tasks[t] for t in pair))[0] for pair in combinations(tasks, 2)}
    assert round(between[frozenset({"paraphrase", "entailment"})], 2) == 0.81
    assert round(max(r for pair, r in between.items() if "mlm" in pair), 2) == 0.41
