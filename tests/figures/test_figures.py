"""Figures and views: what they show, and that no third-party script is stored."""

import base64
import io
import json
import re
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba

from helpers.corpora import Answer, Question
from helpers.corpora.treebanks import Document, Mention, Sentence
from helpers.engine.estimates import Estimate
from helpers.figures.grids import grid, head_grids, relation_maps, thumbnails, type_grids
from helpers.figures.look import (
    COLOURS,
    HEAD_COLOURS,
    INK,
    TYPE_NAMES,
    group_names,
    head_name,
    ink_on,
    logarithmic,
    outer_labels,
    titled,
    use_style,
)
from helpers.figures.series import against_baseline, curves, heads_by_layer, intervals, stacked
from helpers.figures.views import attention_view, bertviz, vendored, without_frames
from helpers.figures.words import answers, coreference, dependency_tree, flow, heatmap, line_diagrams, lines


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
    pytest.importorskip("bertviz")
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


def test_where_bertviz_is_not_installed_its_place_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "bertviz", None)
    said = bertviz("head_view", maps(), ["[CLS]", "a", "b", "[SEP]"]).data
    assert "attention-heads-book[book]" in said and "iframe" not in said


def test_vendored_scripts_are_there():
    pytest.importorskip("bertviz")
    for name, file in vendored().items():
        assert file.is_file() and file.stat().st_size > 50_000, name


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
    assert [[0.5, 0]] in points and [[0.3, 1]] in points
    assert np.allclose(ax.collections[0].get_segments(), [[[0.4, 0], [0.6, 0]]])
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


def test_a_group_that_fits_no_name_is_called_by_its_number():
    fits = dict.fromkeys(TYPE_NAMES, True) | {"diagonal": False, "vertical": False}
    called = group_names(fits)
    assert list(called.values()) == ["dense", "group 2", "dense & vertical", "group 4"]
    legend = type_grids({"one": SOME_TYPES}, called=called).legends[0]
    assert [text.get_text() for text in legend.get_texts()] == list(called.values())


def test_changed_types_get_a_cross():
    other = SOME_TYPES.copy()
    other[0, 2] = "dense"
    figure = type_grids({"first": SOME_TYPES, "second": other})
    first, second = figure.axes[:2]
    assert not first.texts and [(t.get_text(), t.get_position()) for t in second.texts] == [("×", (1, 3))]
    assert (first.get_title(), second.get_title()) == ("first", "second: 1 changed")
    assert np.allclose(second.images[0].get_array()[2, 0], to_rgba(COLOURS["dense"]))


def test_head_grids_can_share_a_scale():
    grids = {"a": np.array([[0.1, -0.2]]), "b": np.array([[0.8, 0.0]])}
    for shared, wanted in ((False, [0.2, 0.8]), (True, [0.8, 0.8])):
        axes = head_grids(grids, bars=dict.fromkeys(grids, "x"), signed=list(grids), one_scale=shared).axes
        assert [ax.images[0].get_clim()[1] for ax in axes[:2]] == wanted


VALUES = np.array([[0.0, 0.2, np.nan], [1.0, 0.4, 0.9]])  # 2 layers, 3 heads: swapped axes would not fit


def test_tokens_are_drawn_as_they_are_typed():
    typed = [r"$\frac{", "$x$", r"\$5", "a_b^c"]
    with plt.rc_context({"svg.fonttype": "none"}):
        use_style()
        figure = heatmap(maps()[0, 0], typed)
        figure.axes[0].set_title("$both$")
        target = io.StringIO()
        figure.savefig(target, format="svg")
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", target.getvalue())
    assert all(shown.count(token) == 2 for token in typed) and "$both$" in shown


def test_shuffled_scores_look_the_same_in_every_comparison():
    for before in ([], ["head", "offset"], ["head", "rules", "@random", "nearest"]):
        ax = against_baseline(["a"], {name: [0.5] for name in (*before, "@shuffled, elsewhere")})
        looks = [(line.get_color(), line.get_marker()) for line in ax.axes[0].lines]
        assert looks[-1] == (COLOURS["shuffled"], "v") and len(set(looks)) == len(looks)


def test_a_logarithmic_axis_begins_at_the_data():
    """An axis that began at or below 0 has no lower limit that a logarithm could draw; one that began above keeps its own."""
    small = Estimate(np.geomspace(1e-6, 1e-3, 10).reshape(2, 5), *np.zeros((2, 2, 5)), np.empty((0, 2, 5)))
    ax = heads_by_layer({"cls": small}, ylabel="y").axes[0]
    assert ax.get_ylim()[0] < 0
    logarithmic(ax.yaxis)
    low, high = ax.get_ylim()
    assert 2e-7 < low < 1e-6 and 1e-3 < high < 2e-3, "the points fill the panel"
    ax = plt.subplots()[1]
    ax.plot([1, 2], [0.5, 3])
    ax.set_ylim(0.1, 10)
    logarithmic(ax.yaxis)
    assert ax.get_ylim() == (0.1, 10)


@pytest.mark.parametrize("ends", [(0.0002, 30), (0.3, 4)])
def test_logarithmic_scales_have_plain_numbers(ends):
    use_style()
    ax = plt.figure().add_subplot(ylim=ends)
    logarithmic(ax.yaxis)
    ax.figure.draw_without_rendering()
    numbers = [float(label.get_text().replace("−", "-")) for label in ax.get_yticklabels()]
    assert ax.get_yscale() == "log" and sum(ends[0] <= n <= ends[1] for n in numbers) in range(3, 13)


def test_a_grid_has_layers_on_x_and_heads_downwards_from_one():
    ax = plt.subplots()[1]
    image = grid(ax, VALUES, words={(1, 2): "obj", (0, 1): "det"}, marked=VALUES > 0.5, every=(1, 2))
    assert np.array_equal(np.ma.filled(image.get_array(), np.nan), VALUES.T, equal_nan=True)
    assert image.get_extent() == [0.5, 2.5, 3.5, 0.5] and image.get_clim() == (0, 1)
    texts = {t.get_text(): (t.get_position(), t.get_color()) for t in ax.texts}
    assert texts == {"obj": ((2, 3), "white"), "det": ((1, 2), INK)}, "white where the cell is dark"
    assert ax.lines[0].get_xydata().tolist() == [[2, 1], [2, 3]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("layer", "head")
    assert (list(ax.get_xticks()), list(ax.get_yticks())) == ([1, 2], [1, 3])


def test_a_grid_of_names_has_their_colours():
    image = grid(plt.subplots()[1], SOME_TYPES, colours=COLOURS | {"dense": "#123456"}, apart=True)
    assert image.get_array().shape == (3, 2, 4)
    for (layer, head), name in np.ndenumerate(SOME_TYPES):
        assert np.allclose(image.get_array()[head, layer], to_rgba("#123456" if name == "dense" else COLOURS[name]))


def test_a_signed_grid_is_white_at_nothing():
    image = grid(plt.subplots()[1], VALUES - 0.5, scale=(-1, 1))
    assert image.get_cmap().name == "RdBu_r" and min(image.to_rgba(0.0)[:3]) > 0.95
    red, _, blue, _ = image.to_rgba(1.0)
    assert red > blue


def test_one_scale_has_one_bar_and_its_end_may_be_a_percentile():
    grids = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([[0.0, 0, 0], [0, 0, 100]])}
    figure = head_grids(grids, bars="nats", signed=True, one_scale=True, percentile=90)
    assert len(figure.axes) == 3 and figure.axes[2].get_ylabel() == "nats"
    most = np.percentile([*range(6), *[0] * 5, 100], 90)
    assert {ax.images[0].get_clim() for ax in figure.axes[:2]} == {(-most, most)}


def test_thumbnails_have_a_row_for_each_layer():
    called = []
    axes = thumbnails((2, 3), (3, 2), lambda ax, layer, head: called.append((layer, head))).axes
    assert called == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert [ax.get_title() for ax in axes] == ["1", "2", "3", "", "", ""]
    assert [ax.get_ylabel() for ax in axes] == ["1", "", "", "2", "", ""]


@pytest.mark.parametrize("across", [True, False])
def test_intervals_stand_upright_or_lie_across(across):
    given, ax = estimate((3,)), plt.subplots()[1]
    intervals(ax, [1, 2, 3], given, across=across, scale=100, color="#112233")
    points = ax.lines[0].get_xydata()
    bars = np.array(ax.collections[0].get_segments())
    if across:
        points, bars = points[:, ::-1], bars[..., ::-1]
    assert np.allclose(points, np.stack([[1, 2, 3], 100 * given.value], 1))
    assert np.allclose(bars[..., 0], [[1, 1], [2, 2], [3, 3]])
    assert np.allclose(bars[..., 1], 100 * np.stack([given.low, given.high], 1))
    assert ax.lines[0].get_color() == "#112233" and ax.lines[0].get_linestyle() == "None"


def test_stacked_parts_begin_where_the_last_ends():
    rows = [[0.6, 0.1, 0.3], [0.0, 0.98, 0.02]]
    parts = {"a": {"color": "#000000"}, "b": {"color": "#ffffff"}, "c": {"color": "#000000"}}
    across, upright = plt.subplots(1, 2)[1]
    stacked(across, rows, parts, least=0.1)
    stacked(upright, rows, parts, upright=True)
    drawn = [[(round(p.get_x(), 6), round(p.get_width(), 6), p.get_y()) for p in bars] for bars in across.containers]
    assert drawn == [[(0, 0.6, -0.35)], [(0.6, 0.1, -0.35), (0, 0.98, 0.65)], [(0.7, 0.3, -0.35), (0.98, 0.02, 0.65)]]
    texts = [(t.get_text(), t.get_color(), t.get_position()[1]) for t in across.texts]
    assert texts == [("60%", "white", 0), ("10%", INK, 0), ("98%", INK, 1), ("30%", "white", 0)]
    assert [p.get_x() + p.get_width() / 2 for p in upright.containers[1]] == pytest.approx([1, 2]), "from 1"
    assert [p.get_y() for p in upright.containers[1]] == [0.6, 0] and not upright.texts


def test_panels_in_no_use_are_empty_and_the_lowest_in_use_are_labelled():
    figure, axes = titled(["a", "b", "c"], (2, 1), columns=2, margin=(1, 0.5))
    outer_labels(axes, "x", "y")
    assert figure.get_size_inches().tolist() == [5, 2.5]
    assert [ax.get_title() for ax in axes.flat] == ["a", "b", "c", ""] and not axes[1, 1].axison
    assert [ax.get_xlabel() for ax in axes.flat] == ["", "x", "x", ""]
    assert [ax.get_ylabel() for ax in axes.flat] == ["y", "", "y", ""]


def test_text_can_be_read_on_every_colour():
    def luminance(colour):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgba(colour)[:3]]
        return np.dot(linear, (0.2126, 0.7152, 0.0722))

    for name, colour in COLOURS.items():
        high, low = sorted((luminance(colour), luminance(ink_on(colour))), reverse=True)
        assert (high + 0.05) / (low + 0.05) > 3, name


def test_text_on_a_pale_colour_is_dark():
    assert ink_on(COLOURS["vertical"]) == "white" and ink_on((COLOURS["vertical"], 0.4)) == INK


def test_chosen_lines_and_words_have_their_colour():
    weights, ax = np.array([[0.1, 0.8], [0.9, 0.05]]), plt.subplots()[1]
    lines(ax, weights, ["a", "b"], {1: "#112233"}, colour="#999999", least=0.1, widths=(1, 2))
    drawn = [(list(line.get_ydata()), line.get_color(), line.get_linewidth()) for line in ax.lines]
    assert drawn == [([0, 0], "#999999", 1), ([0, 1], "#999999", 1), ([1, 0], "#112233", 2)]
    assert [t.get_color() for t in ax.texts] == [INK, INK, "#112233", INK], "the attended words keep their colour"


def test_text_flows_into_lines():
    words = ["a", "bb", "ccc", ".", "dddd", "e"]
    joined = [word == "." for word in words]
    spots = flow(words, 8, joined)
    set_in = [[" "] * 8 for _ in range(1 + spots[-1][1])]
    for (column, line), word in zip(spots, words, strict=True):
        set_in[line][column : column + len(word)] = word
    assert ["".join(line).rstrip() for line in set_in] == ["a bb ccc", ". dddd e"]
    assert flow(words, 80, joined)[3] == (8, 0), "no space before a mark"
