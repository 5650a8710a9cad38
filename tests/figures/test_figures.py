"""The primitives draw with their labels, and nothing in what is shown runs as a script or loads one."""

import base64
import json
import re
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pytest
from conftest import HOSTILE, random_tree

from helpers import plots
from helpers.corpora.treebanks import Document, Mention, Sentence
from helpers.drawing import Numbers, as_text, draw
from helpers.run.notebooks import without_frames
from helpers.stats import Estimate
from helpers.views import attention_view, bertviz, coreference

GRID = np.array([[0.1, 0.9, 0.3], [0.2, 0.2, 0.5]])
TREE = random_tree(np.random.default_rng(0))


def estimate(*shape):
    value = np.random.default_rng(0).random(shape)
    return Estimate(value, value - 0.1, value + 0.1, np.empty((0, *shape)))


def by_layer():
    plots.heads_by_layer({"cls": estimate(3, 5)}, plt.gca(), ylabel="y")
    plt.axhline(0.1, label="chance")
    plt.legend()


def head_grid():
    plots.grid(plt.gca(), GRID, words={(0, 1): "worst"}, marked=GRID > 0.4)


def rows_of_dots():
    figure = plots.dots(["x"], {"head": [estimate()], "offset": [0.2]})
    plots.legend_below(figure.axes[0])


@pytest.mark.parametrize(
    ("make", "labels"),
    [
        (by_layer, {"layer", "y", "[CLS]", "chance"}),
        (partial(plots.heatmap, GRID[:, :2], ["a", "b"], numbers=True), {"attending token", "a", "0.90"}),
        (partial(plots.line_diagrams, {"h": (["a", "b"], np.eye(2), {0: "#000000"})}), {"h", "a", "b"}),
        (partial(plots.dependency_tree, TREE, highlight=[2]), {*TREE.words, *TREE.upos, *TREE.relations}),
        (rows_of_dots, {"x", "head", "offset"}),
        (head_grid, {"layer", "head", "worst"}),
        (partial(plots.thumbnails, (2, 3), (3, 2), lambda *_: None), {"layer", "head", "3"}),
    ],
)
def test_primitives_draw_with_their_labels(make, labels):
    make()
    plt.gcf().canvas.draw()
    texts = {text.get_text() for text in plt.gcf().findobj(plt.Text)}
    assert labels <= texts, labels - texts


def test_the_drawing_of_a_head_shows_the_numbers_it_is_given():
    rng = np.random.default_rng(0)
    hidden, added, last = rng.normal(size=(3, 4, 16))
    query, key, value, output = rng.normal(size=(4, 4, 8))
    scores, weights, heads = *rng.normal(size=(2, 4, 4)), rng.normal(size=(4, 12, 8))
    stream = {"hidden": hidden, "added": added, "residual": hidden + added, "after": last}
    parts = {"query": query, "key": key, "value": value, "scores": scores, "weights": weights, "output": output}
    which = {"tokens": ("[CLS]", "she", "slept", "[SEP]"), "layer": 2, "head": 4, "layers": 6}
    draw(Numbers(**which, **parts, heads=heads, **stream))
    shown = {text.get_text() for text in plt.gca().texts}
    for numbers in (scores, weights, *(part[:, :3] for part in (hidden, query, output, last))):
        assert {as_text(number) for number in numbers.ravel()} <= shown


def test_the_view_of_attention_holds_every_weight():
    given = np.random.default_rng(0).random((2, 3, 4, 4))
    page = attention_view(given, ["a", "b", HOSTILE, "d"]).data
    data = json.loads(re.search(r"application/json\">(.*?)</script>", page)[1])
    weights = np.frombuffer(base64.b64decode(data["weights"]), np.uint8).reshape(given.shape) / 255
    assert np.abs(weights - given).max() < 0.003 and data["tokens"][2] == HOSTILE and HOSTILE not in page
    with pytest.raises(ValueError, match="up to 40 tokens"):
        attention_view(np.zeros((1, 1, 41, 41)), ["x"] * 41)


@pytest.mark.parametrize("view", ["head_view", "model_view"])
def test_bertviz_draws_without_a_network_and_is_stored_without_scripts(view):
    live = bertviz(view, np.zeros((2, 3, 4, 4)), ["[CLS]", HOSTILE, 'b"', "[SEP]"]).data
    assert "d3js.org" in live and "jQuery" in live and HOSTILE not in live
    stored = without_frames(live)
    assert "d3js.org" not in stored and "jQuery" not in stored and "data-bertviz" in stored


def test_words_of_a_text_are_escaped():
    twice = Sentence("s", (HOSTILE, "ran"))
    mentions = tuple(Mention(n, 0, 1, "a", 0, "pronoun") for n in (0, 1))
    assert "<img" not in coreference(Document("d", (twice, twice), mentions)).data
