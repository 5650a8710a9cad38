"""The primitives draw with their labels, and nothing in what is shown runs as a script or loads one."""

import base64
import json
import re
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pytest

from helpers.corpora import Answer, Question
from helpers.corpora.treebanks import Document, Mention, Sentence
from helpers.drawing import Numbers, as_text, draw
from helpers.plots import (
    curves,
    dependency_tree,
    dots,
    head_grids,
    head_name,
    heads_by_layer,
    heatmap,
    intervals,
    layer_panels,
    line_diagrams,
    stacked,
    thumbnails,
)
from helpers.stats import Estimate
from helpers.views import answers, attention_view, bertviz, coreference, without_frames

HOSTILE = "</script><img src=x onerror=alert(1)>"
GRID = np.array([[0.1, 0.9, 0.3], [0.2, 0.2, 0.5]])
TREE = Sentence(
    "s",
    ("She", "saw", "it", "."),
    upos=("PRON", "VERB", "PRON", "PUNCT"),
    governors=(1, -1, 1, 1),
    relations=("nsubj", "root", "obj", "punct"),
    spaces=(True, True, False, False),
)


def maps(layers=2, heads=3, length=4):
    weights = np.random.default_rng(0).random((layers, heads, length, length))
    return weights / weights.sum(-1, keepdims=True)


def estimate(*shape):
    value = np.random.default_rng(0).random(shape)
    return Estimate(value, value - 0.1, value + 0.1, np.empty((0, *shape)))


def drawn_on_axes(draw_on, *arguments):
    figure, ax = plt.subplots()
    draw_on(ax, *arguments)
    return figure


def left_empty(ax, layer, head):
    pass


FIGURES = {
    "heads by layer": (
        partial(heads_by_layer, {"cls": estimate(3, 5)}, ylabel="y", lines={"chance": 0.1}),
        {"layer", "y", "[CLS]", "chance"},
    ),
    "panels of layers": (
        partial(layer_panels, {"a": {"cls": GRID}, "b": {"cls": GRID}}, ylabel="y", lines={"chance": 0.1}),
        {"a", "b", "layer", "y", "[CLS]", "chance"},
    ),
    "heat map": (partial(heatmap, GRID[:, :2], ["a", "b"], numbers=True), {"attending token", "a", "0.90"}),
    "lines of weights": (partial(line_diagrams, {"h": (["a", "b"], np.eye(2), {0: "#000000"})}), {"h", "a", "b"}),
    "dependency tree": (partial(dependency_tree, TREE, highlight=[2]), {*TREE.words, *TREE.upos, *TREE.relations}),
    "against a baseline": (partial(dots, ["x"], {"head": [estimate()], "offset": [0.2]}), {"x", "head", "offset"}),
    "grids of heads": (
        partial(head_grids, {"a": GRID, "b": -GRID}, bars="nats", signed=True),
        {"a", "b", "nats", "layer", "head"},
    ),
    "curves": (
        partial(
            curves, [1, 2, 4], {"a": estimate(3)}, xlabel="n", ylabel="y", lines={"guess": 0.2}, logarithmic=True
        ),
        {"n", "y", "a", "guess"},
    ),
    "thumbnails": (partial(thumbnails, (2, 3), (3, 2), left_empty), {"1", "2", "3"}),
    "intervals": (partial(drawn_on_axes, intervals, [1, 2, 3], estimate(3)), set()),
    "stacked bars": (
        partial(drawn_on_axes, stacked, [[0.6, 0.4]], {"a": {"color": "#000000"}, "b": {"color": "#ffffff"}}),
        set(),
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_primitives_draw_with_their_labels(name):
    make, labels = FIGURES[name]
    figure = make()
    figure.canvas.draw()
    texts = {text.get_text() for text in figure.findobj(plt.Text)}
    assert labels <= texts, labels - texts


def test_heads_are_named_from_one():
    assert head_name(7, 9) == "8-10"


def head_of_four_tokens():
    """Numbers of a head with random weights, each of which follows from those before."""
    rng = np.random.default_rng(0)
    hidden, added, last = rng.normal(size=(3, 4, 16))
    query, key, value = rng.normal(size=(3, 4, 8))
    scores = query @ key.T / np.sqrt(8)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    heads = rng.normal(size=(4, 12, 8))
    heads[:, 4] = weights @ value
    arrays = (hidden, query, key, value, scores, weights, heads[:, 4], heads, added, hidden + added, last)
    return Numbers(("[CLS]", "she", "slept", "[SEP]"), 2, 4, 6, *arrays)


def test_the_drawing_of_a_head_shows_the_numbers_it_is_given():
    given = head_of_four_tokens()
    figure = draw(given)
    figure.canvas.draw()
    shown = {text.get_text() for text in figure.axes[0].texts}
    for numbers in (
        given.scores,
        given.weights,
        *(getattr(given, name)[:, :3] for name in ("hidden", "query", "output", "after")),
    ):
        assert {as_text(number) for number in numbers.ravel()} <= shown


def test_the_view_of_attention_holds_every_weight():
    given = maps()
    page = attention_view(given, ["a", "b", HOSTILE, "d"], layer=1, heads=[2]).data
    data = json.loads(re.search(r"application/json\">(.*?)</script>", page)[1].replace("<\\/", "</"))
    weights = np.frombuffer(base64.b64decode(data["weights"]), np.uint8).reshape(given.shape) / 255
    assert np.abs(weights - given).max() < 0.003 and (data["layer"], data["on"]) == (1, [2])
    assert data["tokens"][2] == HOSTILE and HOSTILE not in page
    with pytest.raises(ValueError, match="up to 40 tokens"):
        attention_view(maps(length=41), ["x"] * 41)


@pytest.mark.parametrize("view", ["head_view", "model_view"])
def test_bertviz_draws_without_a_network_and_is_stored_without_scripts(view):
    live = bertviz(view, maps(), ["[CLS]", HOSTILE, 'b"', "[SEP]"]).data
    assert "d3js.org" in live and "jQuery" in live and HOSTILE not in live
    stored = without_frames(live)
    assert "d3js.org" not in stored and "jQuery" not in stored and "data-bertviz" in stored


def test_words_of_a_text_are_escaped():
    asked = [Question("1", "d", "A <b> dog ran.", "<i>Who?", (Answer("dog", 6),))]
    assert "A &lt;b&gt; <mark>dog</mark><sub>1</sub> ran." in answers(asked).data and "<i>" not in answers(asked).data
    twice = Sentence("s", (HOSTILE, "ran"))
    mentions = tuple(Mention(n, 0, 1, "a", 0, "pronoun") for n in (0, 1))
    assert "<img" not in coreference(Document("d", (twice, twice), mentions)).data
