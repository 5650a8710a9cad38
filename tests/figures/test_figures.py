"""Figures and views: what they show, and that no third-party script is stored."""

import base64
import json
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba

from helpers.corpora.readers import Answer, Question
from helpers.corpora.treebanks import Document, Mention, Sentence
from helpers.engine.estimates import Estimate
from helpers.figures.grids import head_grids, relation_maps, type_grids
from helpers.figures.look import COLOURS, HEAD_COLOURS, TYPE_NAMES, head_name
from helpers.figures.series import against_baseline, curves, heads_by_layer
from helpers.figures.views import attention_view, bertviz, vendored, without_frames
from helpers.figures.words import answers, coreference, dependency_tree, heatmap, line_diagrams


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def maps(layers=2, heads=3, length=4):
    weights = np.random.default_rng(0).random((layers, heads, length, length))
    return weights / weights.sum(-1, keepdims=True)


def estimate(shape):
    value = np.random.default_rng(0).random(shape)
    return Estimate(value, value - 0.1, value + 0.1, np.empty((0, *shape)))


TREE = Sentence(
    "s",
    ("She", "saw", "it", "."),
    upos=("PRON", "VERB", "PRON", "PUNCT"),
    governors=(1, -1, 1, 1),
    relations=("nsubj", "root", "obj", "punct"),
    spaces=(True, True, False, False),
)


SOME_TYPES = np.array([["dense", "diagonal", "vertical"], ["dense", "dense_vertical", "vertical"]])


def grey(colour: str) -> float:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_heads_are_named_from_one():
    assert head_name(7, 9) == "8-10"


def test_heads_by_layer_puts_layers_on_x_from_one():
    given = {"cls": estimate((3, 5)), "sep": estimate((3, 5))}
    ax = heads_by_layer(given, ylabel="y", lines={"chance": 0.1}).axes[0]
    assert list(ax.get_xticks()) == [1, 2, 3] and ax.get_xlabel() == "layer"
    for points, name in zip(ax.collections, given, strict=True):
        offsets = np.asarray(points.get_offsets())
        assert np.allclose(np.sort(offsets[:, 1]), np.sort(given[name].value.ravel()))
        assert (np.round(offsets[:, 0]) == np.repeat([1, 2, 3], 5)).all()
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["[CLS]", "[SEP]", "chance"]


def test_heatmap_has_queries_on_rows():
    matrix = np.array([[0.9, 0.1], [0.2, 0.8]])
    ax = heatmap(matrix, ["a", "b"], numbers=True).axes[0]
    assert np.array_equal(ax.images[0].get_array(), matrix)
    assert [t.get_text() for t in ax.texts] == ["0.90", "0.10", "0.20", "0.80"]
    assert ax.get_ylabel() == "attending token"


def test_lines_run_from_query_to_key():
    weights = np.zeros((3, 3))
    weights[0, 2] = weights[1, 0] = 0.7
    weights[2, 1] = 0.01
    ax = line_diagrams({"h": weights}, ["a", "b", "c"]).axes[0]
    assert [list(line.get_ydata()) for line in ax.lines] == [[0, 2], [1, 0]]


def test_the_books_view_keeps_every_weight():
    given = maps()
    html = attention_view(given, ["a", "b", "</script>", "d"], layer=1, heads=[2]).data
    data = json.loads(re.search(r"application/json\">(.*?)</script>", html)[1].replace("<\\/", "</"))
    weights = np.frombuffer(base64.b64decode(data["weights"]), np.uint8).reshape(given.shape) / 255
    assert np.abs(weights - given).max() < 0.003
    assert (data["layer"], data["on"], data["tokens"][2]) == (1, [2], "</script>")
    assert len(set(HEAD_COLOURS)) == 12
    with pytest.raises(ValueError, match="up to 40 tokens"):
        attention_view(maps(length=41), ["x"] * 41)


@pytest.mark.parametrize("view", ["head_view", "model_view"])
def test_bertviz_draws_without_a_network_and_is_stored_without_scripts(view):
    live = bertviz(view, maps(), ["[CLS]", "a", 'b"', "[SEP]"], second=2 if view == "head_view" else None).data
    assert "cdnjs" not in live.replace("cdnjs.cloudflare.com/ajax/libs/d3/5.7.0", "").replace(
        "cdnjs.cloudflare.com/ajax/libs/jquery/2.0.0", ""
    )  # bertviz's own require.config names two addresses, which the shim never asks for
    assert "d3js.org" in live and "jQuery" in live
    stored = without_frames(live)
    assert len(stored) < 3000 and "srcdoc" not in stored and "jQuery" not in stored and "data-bertviz" in stored
    assert (
        bertviz(view, maps(), ["[CLS]", "a", 'b"', "[SEP]"], second=2 if view == "head_view" else None).data == live
    )


def test_vendored_scripts_are_there():
    for name, file in vendored().items():
        assert file.is_file() and file.stat().st_size > 50_000, name
    assert vendored()["tex-svg-full.js"].stat().st_size > 1_000_000


def test_a_dependency_tree_has_every_word_tag_and_relation():
    ax = dependency_tree(TREE, highlight=[2]).axes[0]
    texts = [t.get_text() for t in ax.texts]
    assert sorted(texts) == sorted([*TREE.words, *TREE.upos, "nsubj", "obj", "punct", "root"])
    assert [t.get_color() for t in ax.texts if t.get_text() == "obj"] == [COLOURS["first"]]
    heights = {t.get_text(): t.get_position()[1] for t in ax.texts}
    assert heights["punct"] > heights["obj"], "an arc over another is higher"


def test_coreference_marks_every_mention_of_a_chain_and_nothing_else():
    mentions = (
        Mention(0, 0, 1, "a", 0, "pronoun"),
        Mention(0, 2, 3, "b", 2, "pronoun"),
        Mention(1, 0, 1, "a", 0, "pronoun"),
    )
    shown = coreference(Document("d", (TREE, TREE), mentions)).data
    assert shown.count('class="mention"') == shown.count("</sub></span>") == 2, (
        "a mention without a partner is not shown"
    )
    assert re.sub(r"<sub.*?</sub>|<[^>]*>", "", shown) == "She saw it. She saw it."


def test_answers_are_marked_where_they_stand():
    asked = [
        Question(i, "d", "A <b> dog ran home.", q, (Answer(t, s),))
        for i, q, t, s in (("1", "Who?", "dog", 6), ("2", "Where?", "home", 14))
    ]
    shown = answers(asked).data
    assert "A &lt;b&gt; <mark>dog</mark><sub>1</sub> ran <mark>home</mark><sub>2</sub>." in shown
    assert "<li>Who?</li><li>Where?</li>" in shown


def test_relation_maps_dot_the_heads_above_the_baseline():
    accuracy = {"obj": np.array([[0.1, 0.9], [0.2, 0.3]]), "det": np.full((2, 2), 0.4)}
    axes = relation_maps(accuracy, {"obj": 0.25, "det": 0.5}, columns=2).axes
    assert [ax.get_title() for ax in axes[:2]] == ["obj (0.25)", "det (0.50)"]
    assert axes[0].lines[0].get_xydata().tolist() == [[1, 2], [2, 2]], "layer on x, head on y, from 1"
    assert len(axes[1].lines[0].get_xydata()) == 0


def test_a_row_of_the_baseline_figure_has_its_points_and_interval():
    estimate = Estimate(np.float64(0.5), np.float64(0.4), np.float64(0.6), np.zeros(2))
    ax = against_baseline(["x", "y"], {"head": [estimate, 0.7], "offset": [0.2, 0.3]}).axes[0]
    points = [line.get_xydata().tolist() for line in ax.lines]
    assert [[0.4, 0], [0.6, 0]] in points and [[0.5, 0]] in points and [[0.3, 1]] in points
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["head", "offset"]


def test_head_grids_put_layers_on_x_and_signs_in_two_colours():
    values = np.array([[0.1, 0.9, 0.3], [-2.0, 0.2, 0.5]])
    titles = {"alone": "UAS", "weight": "w"}
    found = head_grids({"alone": values.clip(0), "weight": values}, bars=titles, signed=["weight"])
    plain, signed = found.axes[:2]
    assert np.array_equal(signed.images[0].get_array(), values.T)
    assert plain.images[0].get_clim() == (0, 0.9) and signed.images[0].get_clim() == (-2, 2)
    assert (plain.get_xlabel(), plain.get_ylabel()) == ("layer", "head")
    assert plain.images[0].get_extent() == [0.5, 2.5, 3.5, 0.5], "from 1"


def test_curves_show_lines_bands_and_references():
    series = {"a": estimate((3,)), "b": estimate((3,))}
    ax = curves([1, 2, 4], series, xlabel="n", ylabel="y", lines={"guess": 0.2}, logarithmic=True).axes[0]
    assert ax.lines[0].get_xydata()[:, 1].tolist() == series["a"].value.tolist()
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b", "guess"]
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(series["a"].high.max())
    assert ax.get_xscale() == "log" and [t.get_text() for t in ax.get_xticklabels()] == ["1", "2", "4"]


def test_the_four_types_differ_in_grey():
    shades = sorted(grey(COLOURS[name]) for name in TYPE_NAMES)
    assert min(np.diff(shades)) > 0.12
    assert len({COLOURS[name] for name in TYPE_NAMES} & set(HEAD_COLOURS)) == 0


def test_changed_types_get_a_cross():
    other = SOME_TYPES.copy()
    other[0, 2] = "dense"
    figure = type_grids({"first": SOME_TYPES, "second": other})
    first, second = figure.axes[:2]
    assert not first.lines and [line.get_xydata().tolist() for line in second.lines] == [[[1, 3]]]
    assert (first.get_title(), second.get_title()) == ("first", "second: 1 changed")
    assert np.allclose(second.images[0].get_array()[2, 0], to_rgba(COLOURS["dense"]))


def test_head_grids_can_share_a_scale():
    grids = {"a": np.array([[0.1, -0.2]]), "b": np.array([[0.8, 0.0]])}
    for shared, wanted in ((False, [0.2, 0.8]), (True, [0.8, 0.8])):
        axes = head_grids(grids, bars=dict.fromkeys(grids, "x"), signed=list(grids), one_scale=shared).axes
        assert [ax.images[0].get_clim()[1] for ax in axes[:2]] == wanted
