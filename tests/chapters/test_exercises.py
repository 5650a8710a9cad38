"""Checks accept right answers, and say what is wrong with wrong ones."""

import math
from importlib import import_module

import numpy as np
import pytest

from helpers import places
from helpers.chapters import checks as exercises

for folder in sorted((places.ROOT / "helpers" / "chapters").glob("*/exercises.py")):
    import_module(f"helpers.chapters.{folder.parent.name}.exercises")

WRONG = [
    ("attention_received", lambda w, s: w.sum(0), "leave their rows out"),
    ("attention_received", lambda w, s: w[:, ~s].sum(1), "stands in its column"),
    ("received_without_special", lambda w, s: w[~s][:, ~s].sum(0), "do not sum to 1 any more"),
    ("received_without_special", lambda w, s: w[~s].sum(0), "shape|rescale"),
    (
        "average_precision",
        lambda s, k: ((h := k[np.argsort(s)]).cumsum() / np.arange(1, 13))[h].mean(),
        "highest comes first",
    ),
    (
        "average_precision",
        lambda s, k: (k[np.argsort(-s)].cumsum() / np.arange(1, 13)).mean(),
        "only the ranks of key words",
    ),
    ("softmax", lambda s: np.exp(s) / np.exp(s).sum(), "check the axis"),
    ("softmax", lambda s: np.exp(s) / np.exp(s).sum(-1, keepdims=True), "overflows"),
    ("softmax", lambda s: None, "returns None"),
    ("softmax", lambda s: s[0], "shape"),
    ("softmax", lambda s: 1 / 0, "ZeroDivisionError"),
    ("strongest", lambda w, t, q: t[int(w[q].argmax())], "special token"),
    ("strongest", lambda w, t, q: t[1 + int(w[1:4, q].argmax())], "Rows are attending|it says"),
    ("causal_attention", lambda w: np.triu(w) / np.triu(w).sum(-1, keepdims=True), "still sees a later one"),
    ("causal_attention", np.tril, "do not sum to 1"),
    ("to_previous", lambda w: np.diagonal(w, 1).mean(), "That is the next token"),
    ("entropy", lambda r: -(r * np.log2(r + 1e-300)).sum(), "natural logarithm"),
    ("entropy", lambda r: -sum(p * math.log(p) for p in r), "ValueError"),
    ("sinks", lambda c, s, p: [tuple(x) for x in np.argwhere(c + s + p > 0.5)], "counted from 0"),
    ("sinks", lambda c, s, p: [(1, 1)], "it lists 1 heads"),
    ("governor_scores", lambda m, w, u: np.tensordot(w, m, 1) + np.tensordot(u, m, 1).T, "directions are mixed up"),
    ("governor_scores", lambda m, w, u: np.tensordot(w, m, 1).T, "summed over k"),
    ("edges_by_guessing", lambda n: 0.5, "only if the pairs are balanced"),
    ("edges_by_guessing", lambda n: 2 / n, "the share of pairs with an edge"),
    (
        "undirected_score",
        lambda g, p: sum((w, v) in p or (v, w) in p for w, v in enumerate(g)) / len(g),
        "four edges",
    ),
    ("undirected_score", lambda g, p: sum((w, v) in p for w, v in enumerate(g)) / 4, "either direction"),
    ("norm_weighted", lambda w, v, o: w * np.linalg.norm(v, axis=-1), "still have to go through"),
    ("norm_weighted", lambda w, v, o: w * np.linalg.norm(v @ o, axis=-1)[:, None], "of the *attended* token"),
    ("norm_weighted", lambda w, v, o: w, "times the length"),
    ("without_sink", lambda w, s: np.where(np.isin(np.arange(w.shape[1]), s), 0, w), "does not sum to 1"),
    (
        "without_sink",
        lambda w, s: (x := np.where(np.isin(np.arange(4), s), 0, w)) / x.sum(-1, keepdims=True),
        "stay zero",
    ),
    (
        "without_sink",
        lambda w, s: (x := np.where(np.isin(np.arange(4), s), 0, w)) / x.sum(),
        "keep their proportions",
    ),
    ("gradient_per_example", lambda b: np.abs(np.concatenate(b)).mean(0), "multiply it back"),
    (
        "gradient_per_example",
        lambda b: np.abs(np.concatenate([len(x) * x for x in b]).mean(0)),
        "opposite sign cancel",
    ),
    ("gradient_per_example", lambda b: np.mean([np.abs(len(x) * x).mean(0) for x in b], axis=0), "mean of batches"),
    ("even_weights", lambda m: np.full((len(m), 9, 9), 1 / 9), "padding gets weight"),
    ("even_weights", lambda m: np.repeat(m[:, None] * 1.0, 9, axis=1), "each of the n real tokens gets 1/n"),
    ("even_weights", lambda m: m / m.sum(-1, keepdims=True), "shape"),
    ("inside_only", lambda w, s, r: np.where(s[:, None] == s[None], w, 0), "belongs to no sentence and stays"),
    ("inside_only", lambda w, s, r: w, "stay as they were|weights between two different"),
    (
        "inside_only",
        lambda w, s, r: np.where((s[:, None] == s) | (s < 0)[:, None] | (s < 0), w, 0),
        "every row has to sum to 1 again",
    ),
    ("deal_anew", lambda n, g: g.permutation(n.ravel()).reshape(n.shape), "from layer to layer"),
    ("deal_anew", lambda n, g: n, "hardly any different"),
    ("deal_anew", lambda n, g: np.stack([g.permutation(x) for x in n.T]).T, "from layer to layer"),
    ("expected_layer", lambda s: (np.diff(s) * np.arange(len(s) - 1)).sum() / (s[-1] - s[0]), "counts layers from 0"),
    ("expected_layer", lambda s: (np.diff(s) * np.arange(1, len(s))).sum(), "divided by their sum"),
    ("expected_layer", lambda s: (s * np.arange(len(s))).sum() / s.sum(), "weights the layers by the scores"),
    (
        "mixture",
        lambda s, a, g, t: g * (np.exp(a) / np.exp(a).sum())[: t + 1] @ s[: t + 1],
        "cut before|sum to 1|gamma times",
    ),
    ("mixture", lambda s, a, g, t: np.exp(a[: t + 1]) / np.exp(a[: t + 1]).sum() @ s[: t + 1], "gamma is missing"),
    ("mixture", lambda s, a, g, t: g * s[: t + 1].mean(0), "uniform mixture"),
    ("letters", lambda w: sum(c.isalpha() for c in w), "wrap the number"),
    ("letters", lambda w: str(min(len(w), 10)), "do not count"),
    ("letters", lambda w: str(sum(c.isalpha() for c in w)), "from ten on"),
    ("letters", lambda w: "0", "it should be"),
    ("gate_importance", lambda b: np.abs(np.concatenate(b)).mean(0), "divided by the size of its batch"),
    ("gate_importance", lambda b: np.mean([np.abs(len(x) * x).mean(0) for x in b], axis=0), "not over batches"),
    ("gate_importance", lambda b: np.abs(np.concatenate([len(x) * x for x in b]).mean(0)), "opposite sign cancel"),
    ("size_before_mean", lambda g: np.stack([np.abs(g.mean(0)), np.abs(g).mean(0)]), "exchanged"),
    ("size_before_mean", lambda g: np.stack([g.mean(0), np.abs(g.mean(0))]), "the first row is"),
    ("cut_head", lambda q, k, v, o, h, n: (q, k, v, o), "shape"),
    ("cut_head", lambda q, k, v, o, h, n: (q[3:], k[3:], v[3:], o[:, 3:]), "should be gone"),
    ("cut_head", lambda q, k, v, o, h, n: (q[3:], k[3:], v[3:]), "instead of four"),
    ("cut_head", lambda q, k, v, o, h, n: None, "returns None"),
]


@pytest.mark.parametrize(("name", "answer", "says"), WRONG)
def test_wrong_answers_are_told_why(name, answer, says):
    with np.errstate(all="ignore"):
        verdict = exercises.check(name, answer)
    assert not verdict.solved
    assert any(part in verdict.message for part in says.split("|")), verdict.message


def test_open_exercises():
    def todo(*_):
        raise NotImplementedError

    assert "not solved yet" in exercises.check("softmax", todo).message
    with pytest.raises(ValueError, match="There are: softmax"):
        exercises.check("nothing", todo)
