"""Figures and views: what they show, and that no third-party script is stored."""

import base64
import json
import re
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba

from helpers import figures
from helpers.corpora.readers import Answer, Question
from helpers.corpora.treebanks import Document, Mention, Sentence
from helpers.engine import tokens
from helpers.engine.estimates import Estimate


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


def test_heads_are_named_from_one():
    assert figures.head_name(7, 9) == "8-10"


def test_heads_by_layer_puts_layers_on_x_from_one():
    given = {"cls": estimate((3, 5)), "sep": estimate((3, 5))}
    ax = figures.heads_by_layer(given, ylabel="y", lines={"chance": 0.1}).axes[0]
    assert list(ax.get_xticks()) == [1, 2, 3] and ax.get_xlabel() == "layer"
    for points, name in zip(ax.collections, given, strict=True):
        offsets = np.asarray(points.get_offsets())
        assert np.allclose(np.sort(offsets[:, 1]), np.sort(given[name].value.ravel()))
        assert (np.round(offsets[:, 0]) == np.repeat([1, 2, 3], 5)).all()
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["[CLS]", "[SEP]", "chance"]


def test_heatmap_has_queries_on_rows():
    matrix = np.array([[0.9, 0.1], [0.2, 0.8]])
    ax = figures.heatmap(matrix, ["a", "b"], numbers=True).axes[0]
    assert np.array_equal(ax.images[0].get_array(), matrix)
    assert [t.get_text() for t in ax.texts] == ["0.90", "0.10", "0.20", "0.80"]
    assert ax.get_ylabel() == "attending token"


def test_lines_run_from_query_to_key():
    weights = np.zeros((3, 3))
    weights[0, 2] = weights[1, 0] = 0.7
    weights[2, 1] = 0.01
    ax = figures.line_diagrams({"h": weights}, ["a", "b", "c"]).axes[0]
    assert [list(line.get_ydata()) for line in ax.lines] == [[0, 2], [1, 0]]


def test_specialists_are_drawn_at_layer_and_head():
    figure = figures.specialist_map({(1, 2): "cls"}, (3, 4))
    from matplotlib.colors import to_hex

    blue = [p for p in figure.axes[0].patches if to_hex(p.get_facecolor()) == figures.COLOURS["cls"].lower()]
    assert len(blue) == 1 and blue[0].get_xy() == (1.55, 2.55)


def test_other_figures_draw(minilm):
    assert len(figures.all_heads(maps()).axes) == 6
    figures.input_diagram(tokens.encode(minilm, [("One two.", "Three.")]))


def test_the_books_view_keeps_every_weight():
    given = maps()
    html = figures.attention_view(given, ["a", "b", "</script>", "d"], layer=1, heads=[2]).data
    data = json.loads(re.search(r"application/json\">(.*?)</script>", html)[1].replace("<\\/", "</"))
    weights = np.frombuffer(base64.b64decode(data["weights"]), np.uint8).reshape(given.shape) / 255
    assert np.abs(weights - given).max() < 0.003
    assert (data["layer"], data["on"], data["tokens"][2]) == (1, [2], "</script>")
    assert len(set(figures.HEAD_COLOURS)) == 12
    with pytest.raises(ValueError, match="up to 40 tokens"):
        figures.attention_view(maps(length=41), ["x"] * 41)


@pytest.mark.parametrize("view", ["head_view", "model_view"])
def test_bertviz_draws_without_a_network_and_is_stored_without_scripts(view):
    live = figures.bertviz(
        view, maps(), ["[CLS]", "a", 'b"', "[SEP]"], second=2 if view == "head_view" else None
    ).data
    assert "cdnjs" not in live.replace("cdnjs.cloudflare.com/ajax/libs/d3/5.7.0", "").replace(
        "cdnjs.cloudflare.com/ajax/libs/jquery/2.0.0", ""
    )  # bertviz's own require.config names two addresses, which the shim never asks for
    assert "d3js.org" in live and "jQuery" in live
    stored = figures.without_frames(live)
    assert len(stored) < 3000 and "srcdoc" not in stored and "jQuery" not in stored and "data-bertviz" in stored
    assert (
        figures.bertviz(view, maps(), ["[CLS]", "a", 'b"', "[SEP]"], second=2 if view == "head_view" else None).data
        == live
    )


def test_vendored_scripts_are_there():
    for name, file in figures.vendored().items():
        assert file.is_file() and file.stat().st_size > 50_000, name
    assert figures.vendored()["tex-svg-full.js"].stat().st_size > 1_000_000


# ------------------------------------------------------------------ trees, chains, answers, grids


TREE = Sentence("s", ("She", "saw", "it", "."), upos=("PRON", "VERB", "PRON", "PUNCT"), governors=(1, -1, 1, 1),
                relations=("nsubj", "root", "obj", "punct"), spaces=(True, True, False, False))  # fmt: skip


def test_a_dependency_tree_has_every_word_tag_and_relation():
    ax = figures.dependency_tree(TREE, highlight=[2]).axes[0]
    texts = [t.get_text() for t in ax.texts]
    assert sorted(texts) == sorted([*TREE.words, *TREE.upos, "nsubj", "obj", "punct", "root"])
    assert [t.get_color() for t in ax.texts if t.get_text() == "obj"] == [figures.COLOURS["first"]]
    heights = {t.get_text(): t.get_position()[1] for t in ax.texts}
    assert heights["punct"] > heights["obj"], "an arc over another is higher"


def test_coreference_marks_every_mention_of_a_chain_and_nothing_else():
    mentions = (
        Mention(0, 0, 1, "a", 0, "pronoun"),
        Mention(0, 2, 3, "b", 2, "pronoun"),
        Mention(1, 0, 1, "a", 0, "pronoun"),
    )
    shown = figures.coreference(Document("d", (TREE, TREE), mentions)).data
    assert shown.count('class="mention"') == shown.count("</sub></span>") == 2, (
        "a mention without a partner is not shown"
    )
    assert re.sub(r"<sub.*?</sub>|<[^>]*>", "", shown) == "She saw it. She saw it."


def test_answers_are_marked_where_they_stand():
    asked = [Question(i, "d", "A <b> dog ran home.", q, (Answer(t, s),)) for i, q, t, s in
             (("1", "Who?", "dog", 6), ("2", "Where?", "home", 14))]  # fmt: skip
    shown = figures.answers(asked).data
    assert "A &lt;b&gt; <mark>dog</mark><sub>1</sub> ran <mark>home</mark><sub>2</sub>." in shown
    assert "<li>Who?</li><li>Where?</li>" in shown


def test_relation_maps_dot_the_heads_above_the_baseline():
    accuracy = {"obj": np.array([[0.1, 0.9], [0.2, 0.3]]), "det": np.full((2, 2), 0.4)}
    axes = figures.relation_maps(accuracy, {"obj": 0.25, "det": 0.5}, columns=2).axes
    assert [ax.get_title() for ax in axes[:2]] == ["obj (0.25)", "det (0.50)"]
    assert axes[0].lines[0].get_xydata().tolist() == [[1, 2], [2, 2]], "layer on x, head on y, from 1"
    assert len(axes[1].lines[0].get_xydata()) == 0


def test_a_row_of_the_baseline_figure_has_its_points_and_interval():
    estimate = Estimate(np.float64(0.5), np.float64(0.4), np.float64(0.6), np.zeros(2))
    ax = figures.against_baseline(["x", "y"], {"head": [estimate, 0.7], "offset": [0.2, 0.3]}).axes[0]
    points = [line.get_xydata().tolist() for line in ax.lines]
    assert [[0.4, 0], [0.6, 0]] in points and [[0.5, 0]] in points and [[0.3, 1]] in points
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["head", "offset"]


def test_labelled_grid_puts_layers_on_x():
    ax = figures.labelled_grid({(0, 2): "obj"}, np.arange(6.0).reshape(2, 3), bar="gain").axes[0]
    (text,) = ax.texts
    assert (text.get_text(), text.get_position()) == ("obj", (1, 3))


def test_pointing_colours_right_and_wrong_words():
    weights = np.array([[0.1, 0.8], [0.9, 0.05]])
    ax = figures.pointing({"t": (("She", "ran"), weights, {0: True, 1: False})}).axes[0]
    left = {t.get_text(): t.get_color() for t in ax.texts if t.get_position()[0] < 0}
    assert left == {"She": figures.COLOURS["stop"], "ran": figures.COLOURS["first"]}


def test_governor_map_frames_the_right_candidates():
    probabilities = np.array([[0.1, 0.2, 0.7], [0.8, 0.1, 0.1]])
    ax = figures.governor_map(probabilities, ["She", "ran"], [2, 0]).axes[0]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["ROOT", "She", "ran"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["She", "ran"]
    assert np.array_equal(ax.images[0].get_array(), probabilities)
    assert [(f.get_x() + 0.5, f.get_y() + 0.5) for f in ax.patches] == [(2, 0), (0, 1)], "candidate on x, word on y"


def test_head_grids_put_layers_on_x_and_signs_in_two_colours():
    values = np.array([[0.1, 0.9, 0.3], [-2.0, 0.2, 0.5]])
    titles = {"alone": "UAS", "weight": "w"}
    found = figures.head_grids({"alone": values.clip(0), "weight": values}, bars=titles, signed=["weight"])
    plain, signed = found.axes[:2]
    assert np.array_equal(signed.images[0].get_array(), values.T)
    assert plain.images[0].get_clim() == (0, 0.9) and signed.images[0].get_clim() == (-2, 2)
    assert (plain.get_xlabel(), plain.get_ylabel()) == ("layer", "head")
    assert plain.images[0].get_extent() == [0.5, 2.5, 3.5, 0.5], "from 1"


def test_curves_show_lines_bands_and_references():
    series = {"a": estimate((3,)), "b": estimate((3,))}
    ax = figures.curves([1, 2, 4], series, xlabel="n", ylabel="y", lines={"guess": 0.2}, logarithmic=True).axes[0]
    assert ax.lines[0].get_xydata()[:, 1].tolist() == series["a"].value.tolist()
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b", "guess"]
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(series["a"].high.max())
    assert ax.get_xscale() == "log" and [t.get_text() for t in ax.get_xticklabels()] == ["1", "2", "4"]


# ------------------------------------------------------------------ chapter 07


def test_two_rows_stand_beside_each_other_with_their_mixture():
    p, q = np.array([0.9, 0.1]), np.array([0.1, 0.9])
    axes = figures.row_pairs({"near": ("1-1", p, "1-2", p), "far": ("1-1", p, "2-1", q)}, ["a", "b"]).axes
    assert [bar.get_height() for bar in axes[1].patches] == [0.9, 0.1, 0.1, 0.9]
    assert axes[1].lines[0].get_ydata().tolist() == [0.5, 0.5]
    assert [t.get_text() for t in axes[1].get_legend().get_texts()] == ["mixture", "1-1", "2-1"]
    assert [t.get_text() for t in axes[1].get_xticklabels()] == ["a", "b"]


def test_pair_matrices_part_the_layers():
    matrix = np.arange(36.0).reshape(6, 6)
    ax = figures.pair_matrices({"m": matrix}, 2, bar="nats").axes[0]
    shown = np.ma.filled(ax.images[0].get_array(), np.nan)
    assert np.isnan(shown.diagonal()).all() and shown[0, 5] == 5
    assert [t.get_text() for t in ax.get_xticklabels()] == ["1", "2", "3"] and list(ax.get_xticks()) == [
        0.5,
        2.5,
        4.5,
    ]
    assert sorted(line.get_ydata()[0] for line in ax.lines)[-2:] == [1.5, 3.5]


def test_head_map_colours_by_behaviour_and_by_layer():
    points = np.array([[0.0, 0], [1, 1], [2, 0.98], [3, 0]])
    figure = figures.head_map(points, ["", "cls", "cls", "broad"], [0, 0, 1, 1], {1: "1-2: obj", 2: "2-1: det"})
    left, right = figure.axes
    groups = {c.get_label(): np.asarray(c.get_offsets()).tolist() for c in left.collections}
    assert groups["[CLS]"] == [[1, 1], [2, 0.98]] and groups["none of these"] == [[0, 0]]
    assert {c.get_label(): len(c.get_offsets()) for c in right.collections} == {"1": 2, "2": 2}
    assert [t.get_text() for t in left.texts] == ["1-2: obj", "2-1: det"]
    assert len(figure.legends) == 2 and left.get_xlabel() == "nats"


def test_notes_on_one_side_do_not_overlap():
    points = np.array([[0.0, 0], [0, 1], [2, 0.5], [2, 0.51], [2, 0.52]])
    ax = figures.head_map(points, [""] * 5, [0] * 5, {2: "a", 3: "b", 4: "c"}).axes[0]
    heights = [t.get_position()[1] for t in ax.texts]
    assert min(-np.diff(heights)) >= 0.039


def test_closeness_by_layer_shows_bands_and_both_models():
    apart, each = estimate((3,)), estimate((3,))
    band = np.array([[0.9, 0.8, 0.7], [1.1, 1.2, 1.3]])
    given = {"m": (apart, band, each, band[:, 0]), "m@random": (each, band, apart, band[:, 0])}
    left, right = figures.closeness_by_layer(given).axes
    assert left.lines[0].get_ydata().tolist() == apart.value.tolist() and list(left.get_xticks()) == [0, 1, 2]
    assert right.lines[0].get_ydata().tolist() == each.value.tolist() and list(right.get_xticks()) == [1, 2, 3]
    labels = [t.get_text() for t in left.figure.legends[0].get_texts()]
    assert labels == ["m, heads shuffled", "m", "m@random, heads shuffled", "m@random"]


def test_head_tree_names_and_colours_its_leaves():
    from scipy.cluster.hierarchy import linkage

    points = np.array([[0.0], [5.0], [0.1], [5.2]])
    figure = figures.head_tree(
        linkage(points, "average"),
        ["1-1", "1-2", "2-1", "2-2"],
        ["cls", "", "cls", "broad"],
        [0, 0, 1, 1],
        ylabel="d",
    )
    ax, strip = figure.axes
    names = [t.get_text() for t in strip.get_xticklabels()]
    assert {frozenset(names[:2]), frozenset(names[2:])} == {frozenset({"1-1", "2-1"}), frozenset({"1-2", "2-2"})}
    colours = {(p.get_x() // 10, p.get_y()): p.get_facecolor() for p in strip.patches}
    at = names.index("1-1")
    assert colours[at, 0] == plt.matplotlib.colors.to_rgba(figures.COLOURS["cls"])
    assert colours[at, 1] == colours[names.index("1-2"), 1] != colours[names.index("2-1"), 1]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["[CLS]", "broad", "layer 1", "layer 2"]


def test_map_quality_shows_pairs_starts_and_draws():
    points = np.array([[0.0, 0], [3, 0], [0, 4]])
    distances = np.linalg.norm(points[:, None] - points, axis=-1)
    halves = np.array([[0.1, 0.2], [0.01, 0.02]])
    shepard, starts, resampled = figures.map_quality(
        distances, points, (np.array([0.2, 0.3]), np.array([0.0, 0.5])), [1, 5], halves, 0.9
    ).axes
    assert sorted(shepard.lines[0].get_ydata()) == sorted(shepard.lines[0].get_xdata()) == [3, 4, 5]
    assert [line.get_xydata().tolist() for line in starts.lines] == [[[0.3, 0.5]], [[0.2, 0.0]]]
    drawn = {line.get_label(): list(line.get_ydata()) for line in resampled.lines}
    assert np.allclose(drawn["median of draws"], [0.15, 0.015]) and drawn["heads shuffled"] == [0.9, 0.9]


# ------------------------------------------------------------------ chapter 08: features and types of heads


SOME_TYPES = np.array([["dense", "diagonal", "vertical"], ["dense", "dense_vertical", "vertical"]])


def grey(colour: str) -> float:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_the_four_types_differ_in_grey():
    shades = sorted(grey(figures.COLOURS[name]) for name in figures.TYPE_NAMES)
    assert min(np.diff(shades)) > 0.12
    assert len({figures.COLOURS[name] for name in figures.TYPE_NAMES} & set(figures.HEAD_COLOURS)) == 0


def test_feature_cells_have_the_colour_of_their_feature_and_windows_their_number():
    names = ("self", *(f"window {w}" for w in range(1, 17)), "cls", "sep", "comma", "period")
    cells = np.array([[17, 1, 18], [17, 0, 18], [17, 16, 18]])
    ax = figures.feature_cells(cells, ["[CLS]", "a", "[SEP]"], names).axes[0]
    shown = ax.images[0].get_array()
    assert np.allclose(shown[0, 0], to_rgba(figures.COLOURS["cls"]))
    assert np.allclose(shown[1, 1], to_rgba(figures.COLOURS["self"]))
    assert shown[0, 1, 0] < shown[2, 1, 0], "near windows are darker"
    assert {t.get_text(): t.get_position() for t in ax.texts} == {"1": (1, 0), "16": (1, 2)}


def test_feature_bars_and_boxes_show_the_numbers():
    names = ("self", "window 1", "window 2", "cls")
    even = [0.1, 0.4, 0.3, 0.2]
    axes = figures.feature_bars({"1-1": [0, 0.5, 0.2, 0.3], "1-2": even}, names, even=even).axes
    assert [p.get_height() for p in axes[0].patches] == [0, 0.5, 0.2, 0.3]
    assert axes[1].lines[0].get_ydata().tolist() == even and axes[0].get_title() == "1-1"
    values = np.random.default_rng(0).random((5, 4))
    axes = figures.feature_boxes(dict.fromkeys(figures.TYPE_NAMES, values), names, even=even).axes
    medians = [line.get_ydata()[0] for line in axes[0].lines if len(set(line.get_ydata())) == 1]
    assert set(np.round(np.median(values, 0), 6)) <= set(np.round(medians, 6))
    assert [ax.get_title() for ax in axes][2] == "dense & vertical (5 heads)"


def test_points_have_the_colour_of_their_type():
    places = np.arange(12.0).reshape(6, 2)
    axes = figures.embeddings({"a": (places, SOME_TYPES.ravel()), "b": (places, ["dense"] * 6)}).axes
    for points, name in zip(axes[0].collections, figures.TYPE_NAMES, strict=True):
        assert np.array_equal(points.get_offsets(), places[SOME_TYPES.ravel() == name])
        assert np.allclose(points.get_facecolor()[0], to_rgba(figures.COLOURS[name]))
    assert len(axes[1].collections[0].get_offsets()) == 6


def test_a_control_has_its_band():
    ours, control = estimate((3,)), estimate((3,))
    ax = figures.versus_control((2, 3, 4), {"t": (ours, control)}, xlabel="k", ylabels=["share"]).axes[0]
    assert ax.lines[0].get_ydata().tolist() == control.value.tolist() and ax.get_ylabel() == "share"
    assert {t.get_text() for t in ax.get_legend().get_texts()} == {"invented heads", "our heads"}


def test_the_triangle_puts_pure_heads_into_its_corners():
    pure = dict(zip(figures.TYPE_NAMES, [*np.eye(3), [0, 0.5, 0.5]], strict=True))
    ax = figures.type_triangle(np.eye(3), ["dense", "diagonal", "vertical"], corners=("near", "far", "special"),
                               prototypes=pure, centroids=pure).axes[0]  # fmt: skip
    offsets = [np.asarray(c.get_offsets()) for c in ax.collections]
    assert np.allclose(offsets[0], [[0, 0]]) and np.allclose(offsets[1], [[0.5, 3**0.5 / 2]])
    texts = {t.get_text(): t.get_position() for t in ax.texts}
    assert set(texts) == {"all near", "all far", "all special"} and texts["all special"][0] == 1


def test_examples_and_grids_of_maps_are_framed_by_type():
    shown = figures.type_examples({"dense": {"1-1": np.eye(4), "2-1": np.eye(4)}, "vertical": {"1-3": np.eye(4)}})
    titles = [ax.get_title() for ax in shown.axes]
    assert titles == ["dense\n1-1", "vertical\n1-3", "2-1", ""]
    grid = figures.typed_heads(maps(), SOME_TYPES)
    frames = [ax.spines["left"].get_edgecolor() for ax in grid.axes]
    assert all(np.allclose(f, to_rgba(figures.COLOURS[n])) for f, n in zip(frames, SOME_TYPES.flat, strict=True))
    assert [ax.get_title() for ax in grid.axes[:3]] == ["1", "2", "3"] and grid.axes[3].get_ylabel() == "2"


def test_bars_of_types_add_up_to_the_heads_of_a_layer():
    ax = figures.types_by_layer(SOME_TYPES).axes[0]
    heights = np.array([p.get_height() for p in ax.patches]).reshape(4, 2)
    assert heights.tolist() == [[1, 1], [1, 0], [0, 1], [1, 1]] and list(ax.get_xticks()) == [1, 2]


def test_changed_types_get_a_cross():
    other = SOME_TYPES.copy()
    other[0, 2] = "dense"
    figure = figures.type_grids({"first": SOME_TYPES, "second": other})
    first, second = figure.axes[:2]
    assert not first.lines and [line.get_xydata().tolist() for line in second.lines] == [[[1, 3]]]
    assert (first.get_title(), second.get_title()) == ("first", "second: 1 changed")
    assert np.allclose(second.images[0].get_array()[2, 0], to_rgba(figures.COLOURS["dense"]))


# ------------------------------------------------------------------ chapter 09


def test_grey_maps_are_relative_to_their_own_darkest_cells(minilm):
    weights = maps()[0, 0]
    batch = tokens.encode(minilm, [("a cat .", "a mat")])
    assert figures.marks(batch) == {0: "C", 3: ".", 4: "S", 7: "S"}
    figure = figures.grey_maps({"one": (weights, {0: "C"}), "half": (weights / 2, {}), "c": (weights, {})}, columns=2)
    one, half, _, empty = figure.axes
    shade = np.clip(weights / np.quantile(weights, 0.99), 0, 1) ** 0.7
    assert np.allclose(one.images[0].get_array(), shade) and np.allclose(half.images[0].get_array(), shade)
    assert [t.get_text() for t in one.get_xticklabels()] == ["C"] and one.get_title() == "one"
    assert not empty.axison


def test_type_scatter_draws_every_map_and_the_thresholds():
    points = {"vertical": np.array([[0.9, 0.1], [0.8, 0.2]]), "block": np.zeros((0, 2))}
    ax = figures.type_scatter(points, xlabel="x", ylabel="y", thresholds=(0.3, 0.4)).axes[0]
    assert np.allclose(ax.collections[0].get_offsets(), points["vertical"])
    assert ax.lines[0].get_xdata()[0] == 0.3 and ax.lines[1].get_ydata()[0] == 0.4


def test_share_tables_write_their_numbers():
    table = np.array([[3.0, 1.0], [0.0, 0.0]])
    ax = figures.share_table(
        table, rows=["a", "b"], columns=["x + y", "z"], ylabel="r", xlabel="c", counts=True
    ).axes[0]
    assert [t.get_text() for t in ax.texts] == ["3", "1", "0", "0"]
    assert np.allclose(ax.images[0].get_array(), [[0.75, 0.25], [0, 0]])
    shares = np.array([[0.25, 0.75], [np.nan, np.nan]])
    ax = figures.share_table(shares, rows=["a", "b"], columns=["x", "z"], ylabel="r", xlabel="c").axes[0]
    assert [t.get_text() for t in ax.texts] == ["25%", "75%"]


def test_type_shares_are_stacked_to_one():
    types = ("vertical", "diagonal", "block")
    ax = figures.type_shares({"a": [0.5, 0.48, 0.02], "b": [0.2, 0.0, 0.8]}, types).axes[0]
    widths = np.array([patch.get_width() for patch in ax.patches]).reshape(2, 3)
    assert np.allclose(widths, [[0.5, 0.48, 0.02], [0.2, 0.0, 0.8]])
    assert [t.get_text() for t in ax.texts] == ["50%", "48%", "20%", "80%"]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["vertical", "diagonal", "block"]


def test_types_and_changes_has_layers_on_x_from_one():
    types = ("vertical", "diagonal", "block")
    typical, entropy = np.array([[0, 0, 1], [1, 0, 0]]), np.arange(6.0).reshape(2, 3) / 6
    left, right = figures.types_and_changes(typical, entropy, types).axes[:2]
    assert list(left.get_xticks()) == [1, 2] and left.get_xlabel() == "layer"
    colours = [patch.get_facecolor() for patch in left.patches]
    assert colours[2] == colours[3] and colours[0] == colours[1] != colours[2]
    assert np.allclose(right.images[0].get_array(), entropy.T)
    assert right.images[0].get_clim() == (0, np.log(3))


# ------------------------------------------------------------------ chapter 03


def test_weights_and_gradient_share_their_tokens():
    weights, gradient = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[-0.5, 0.1], [0.0, 0.2]])
    axes = figures.weights_and_gradient(weights, gradient, ["a", "b"], title="h").axes
    assert np.array_equal(axes[0].images[0].get_array(), weights)
    assert np.array_equal(axes[1].images[0].get_array(), gradient) and axes[1].images[0].get_clim() == (-0.5, 0.5)
    assert axes[0].get_ylabel() == "attending token" and [t.get_text() for t in axes[1].get_xticklabels()] == [
        "a",
        "b",
    ]


def test_multiples_have_a_panel_for_each_kind_but_the_last():
    given = {"gradient": estimate((3, 3)), "length": estimate((3, 3))}
    axes = figures.multiples(given, ("cls", "sep", "other"), reference="as others", ylabel="y").axes
    assert [ax.get_title() for ax in axes] == ["[CLS]", "[SEP]"] and axes[0].get_yscale() == "log"
    for number, ax in enumerate(axes):
        for line, name in zip(ax.lines, given, strict=False):
            assert line.get_xydata().tolist() == [[n + 1, given[name].value[n, number]] for n in range(3)]
    assert [t.get_text() for t in axes[-1].get_legend().get_texts()] == ["gradient", "length"]


def test_loss_changes_keep_all_layers_at_once_apart():
    given = {"special": estimate((4,)), "random": estimate((4,)), "predicted": estimate((3,))}
    axes = figures.loss_changes({"t": given}, loss=2.5).axes
    points = [
        line.get_ydata()[0] for line in axes[0].lines if line.get_marker() in "oDx" and len(line.get_ydata()) == 1
    ]
    assert points == [given[name].value[n] for name in given for n in range(3)]
    last = [
        line.get_ydata()[0] for line in axes[1].lines if line.get_marker() in "oDx" and len(line.get_ydata()) == 1
    ]
    assert last == [given[name].value[3] for name in ("special", "random")]
    assert axes[1].get_title() == "loss itself: 2.50" and list(axes[0].get_xticks()) == [1, 2, 3]


def test_retreats_are_labelled_points():
    one = Estimate(np.float64(0.2), np.float64(0.1), np.float64(0.3), np.zeros(2))
    ax = figures.retreats({"obj": (0.7, one)}, xlabel="x", ylabel="y").axes[0]
    drawn = [line.get_xydata().tolist() for line in ax.lines]
    assert [[0.7, 0.1], [0.7, 0.3]] in drawn and [[0.7, 0.2]] in drawn and ax.texts[0].get_text() == "obj"


def test_head_grids_can_share_a_scale():
    grids = {"a": np.array([[0.1, -0.2]]), "b": np.array([[0.8, 0.0]])}
    for shared, wanted in ((False, [0.2, 0.8]), (True, [0.8, 0.8])):
        axes = figures.head_grids(grids, bars=dict.fromkeys(grids, "x"), signed=list(grids), one_scale=shared).axes
        assert [ax.images[0].get_clim()[1] for ax in axes[:2]] == wanted


# ------------------------------------------------------------------ chapter 10


def one_estimate(value, half=0.05):
    return Estimate(np.float64(value), np.float64(value - half), np.float64(value + half), np.empty(0))


def test_edited_maps_share_a_scale():
    given = {"as it is": np.array([[0.9, 0.1], [0.2, 0.8]]), "pruned": np.zeros((2, 2)), "1/n": np.full((2, 2), 0.5)}
    figure = figures.edited_maps(given | {"more": np.eye(2)}, ["a", "b"], borders=[1])
    shown = [ax for ax in figure.axes if ax.images]
    assert [ax.get_title() for ax in shown] == [*given, "more"]
    assert np.array_equal(shown[1].images[0].get_array(), given["pruned"])
    assert {ax.images[0].get_clim() for ax in shown} == {(0, 0.9)}
    assert [line.get_ydata()[0] for line in shown[0].lines] == [0.5, 0.0], "a line across and one down"


def test_ablation_rows_show_the_type_and_each_draw():
    rows = {"a": (one_estimate(-0.3), -0.25, [-0.1, -0.2]), "b": (one_estimate(0.1), 0.1, [])}
    axes = figures.ablation_rows(
        {"x": rows, "y": rows}, {"a": "#112233", "b": "#445566"}, xlabel="points", cuts=[1]
    ).axes
    assert [ax.get_title() for ax in axes] == ["x", "y"] and [t.get_text() for t in axes[0].get_yticklabels()] == [
        "a",
        "b",
    ]
    for ax in axes:
        drawn = [line.get_xydata().tolist() for line in ax.lines]
        assert np.allclose(drawn[0], [[-10, 0], [-20, 0]]) and np.allclose(drawn[1], [[-35, 0], [-25, 0]])
        assert np.allclose(drawn[2], [[-30, 0]]) and ax.lines[2].get_color() == "#112233"
        assert np.allclose(drawn[3], [[-25, 0]]) and ax.lines[3].get_markerfacecolor() == "white"
    assert axes[0].get_ylim()[0] > axes[0].get_ylim()[1], "the first row is on top"


def test_heads_and_loss_start_at_nothing():
    points = {"dense": (29, one_estimate(-0.3), [-0.4, -0.2])}
    ax = figures.heads_and_loss([12, 36], [[-0.1, -0.2], [-0.5, -0.6]], points, ylabel="y", floor=-0.9).axes[0]
    assert ax.lines[0].get_xydata().tolist() == [[0, 0], [12, -10], [36, -50]]
    dots = {tuple(line.get_xydata()[0]) for line in ax.lines if len(line.get_xydata()) == 1}
    assert dots == {(29, -30)} and ax.get_xlabel() == "heads pruned"
    assert "every head pruned" in [t.get_text() for t in ax.get_legend().get_texts()]


def test_stacked_bars_fill_the_whole():
    for figure, parts in (
        (figures.turned_bars({"a": [0.2, 0.5, 0.3], "b": [0.0, 1.0, 0.0]}, cuts=[1]), 3),
        (
            figures.attention_by_place(
                {"dense": [0.2, 0.3, 0.5], "all": [0.1, 0.6, 0.3]}, ("special", "intra", "inter")
            ),
            3,
        ),
    ):
        ax = figure.axes[0]
        widths = np.array([p.get_width() for p in ax.patches]).reshape(parts, 2)
        assert np.allclose(widths.sum(0), 100) and ax.get_xlim() == (0, 100)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["dense", "all"]


def test_readings_have_a_marker_each():
    names = list(figures.READING_STYLES)
    rows = {"12": {name: one_estimate(-0.1 * n) for n, name in enumerate(names)}}
    figure = figures.readings(rows, xlabel="x")
    drawn = [
        line.get_xdata()[0]
        for line in figure.axes[0].lines
        if len(line.get_xdata()) == 1 and line.get_marker() != "None"
    ]
    assert np.allclose(drawn, [0, -10, -20, -30])
    assert [t.get_text() for t in figure.legends[0].get_texts()] == names


# ------------------------------------------------------------------ chapter 12


def layer_estimate(*values):
    value = np.array(values, float)
    return Estimate(value, value - 0.1, value + 0.1, np.empty((0, *value.shape)))


def test_layers_of_tasks_has_two_bars_a_task_or_says_why_not():
    rows = {
        "tag": (layer_estimate(2.5)[0], layer_estimate(1.5)[0]),
        "coreference": (layer_estimate(3.0)[0], None),
    }
    one, two, three = layer_estimate(2.5, 1.5, 3.0)[0], layer_estimate(2.5, 1.5, 3.0)[1], layer_estimate(3.0)[0]
    rows = {"tag": (one, two), "coreference": (three, None)}
    ax = figures.layers_of_tasks(rows, layers=6).axes[0]
    widths = sorted(round(float(np.ravel(p.get_width())[0]), 3) for p in ax.patches)
    assert widths[-3:] == [1.5, 2.5, 3.0] and "no certain gain" in [t.get_text() for t in ax.texts]
    assert [t.get_text() for t in ax.get_yticklabels()] == list(rows) and ax.get_xlim()[0] == 0


def test_weights_and_gains_share_the_layers():
    weights, gains = np.array([[0.2, 0.5, 0.3], [0.4, 0.3, 0.3]]), layer_estimate(0.03, 0.01)
    ax = figures.weights_and_gains({"tag": (weights, gains), "entity": (weights, gains)}).axes[0]
    filled, outlined = ax.containers[:2]
    assert [round(float(b.get_height()), 6) for b in filled] == [0.3, 0.4, 0.3]
    assert [round(float(b.get_height()), 6) for b in outlined] == [0.75, 0.25], "shares of the gain"
    assert [round(b.get_x() + b.get_width() / 2, 6) for b in outlined] == [1, 2]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("last", [0.0, -0.01])
def test_a_model_without_a_gain_has_no_shares_of_it(last):
    """Layers of a small random network can add nothing."""
    figure = figures.weights_and_gains({"tag": (np.full((1, 3), 1 / 3), layer_estimate(0.0, last))})
    filled, outlined = figure.axes[0].containers[:2]
    assert all(np.isnan(b.get_height()) for b in outlined) and len(filled) == 3
    figure.canvas.draw()


def test_prefix_scores_start_at_the_embeddings():
    ours, control = layer_estimate(0.7, 0.8, 0.9), layer_estimate(0.7, 0.7, 0.7)
    figure = figures.prefix_scores({"tag": (ours, control, {"majority": 0.2})}, names=("ours", "random"))
    first, second, line = figure.axes[0].lines
    assert first.get_xydata().tolist() == [[n, v] for n, v in enumerate(ours.value)]
    assert second.get_ydata().tolist() == control.value.tolist() and line.get_ydata()[0] == 0.2
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["ours", "random", "majority"]


def test_cases_show_the_right_label_and_one_rival():
    class Case:
        task, words, label, rival = "entity", "a word " * 12, "person", "place"
        right, wrong = np.array([0.2, 0.9]), np.array([0.7, 0.1])

    figure = figures.cases_by_layer([Case(), Case(), Case()], title="A sentence.")
    ax = figure.axes[0]
    assert [[b.get_height() for b in c] for c in ax.containers] == [[0.2, 0.9], [0.7, 0.1]]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["person (right)", "place"]
    assert ax.get_title().endswith("…") and [a.get_visible() for a in figure.axes] == [True, True, True, False]
    assert figure.get_suptitle() == "A sentence."


def test_label_changes_are_sorted_by_the_change():
    ax = figures.label_changes({"det": (0.9, 0.9, 5), "obj": (0.2, 0.8, 7)}, xlabel="x", names=("a", "b")).axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["det (5)", "obj (7)"]
    assert ax.collections[0].get_offsets().tolist() == [[0.9, 0], [0.2, 1]]
    assert ax.collections[1].get_offsets().tolist() == [[0.9, 0], [0.8, 1]]


# ---------------------------------------------------------------------------------------- chapter 13


def test_shaded_text_prints_every_unit_and_underlines_key_words():
    units, places = ("Water", "-", "ice", "melts", "."), (0, 2, 3)
    values = np.array([0.1, 2.0, 0.5])
    figure = figures.shaded_text({"one": values, "two": values[::-1]}, units, places, [True, True, False])
    for ax in figure.axes:
        assert [t.get_text() for t in ax.texts] == list(units)
        assert [t.get_weight() for t in ax.texts] == ["bold", "normal", "bold", "normal", "normal"]
        assert len(ax.lines) == 2 and len(ax.patches) == 3, "underlined key words; marks have no shade"
    dark = [sum(p.get_facecolor()[:3]) for p in figure.axes[0].patches]
    assert dark[1] < dark[2] < dark[0], "more attention is darker"


def test_signed_grids_share_a_scale_around_zero():
    rng = np.random.default_rng(0)
    grids = {"a": rng.normal(size=(3, 4)), "b": 3 * rng.normal(size=(3, 4))}
    figure = figures.signed_grids(grids, bar="change", certain={n: g > 0 for n, g in grids.items()})
    limits = {ax.images[0].get_clim() for ax in figure.axes[:2]}
    assert len(limits) == 1 and (low := limits.pop())[0] == -low[1]
    for ax, values in zip(figure.axes, grids.values(), strict=False):
        assert ax.images[0].get_array().shape == (4, 3) and ax.get_xlabel() == "layer"
        assert len(ax.lines[0].get_xdata()) == (values > 0).sum()


def test_ranked_heads_are_in_order_and_named():
    value = np.arange(6.0).reshape(2, 3) / 10
    estimate = Estimate(value, value - 0.05, value + 0.05, np.empty((0, 2, 3)))
    order = [(1, 2), (0, 0), (1, 0), (0, 1), (0, 2), (1, 1)]
    figure = figures.ranked_heads(estimate, order, {"chance": 0.06}, named=2, ylabel="AP")
    ax = figure.axes[0]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [value[h] for h in order])
    assert [t.get_text() for t in ax.texts] == ["2-3", "1-1"]
    assert "chance" in [t.get_text() for t in ax.get_legend().get_texts()]


def test_score_bars_show_every_method_and_kind():
    one = Estimate(np.float64(0.4), np.float64(0.3), np.float64(0.5), np.empty(0))
    figure = figures.score_bars({"a": {"x": one, "y": one}, "b": {"x": one, "y": one}}, xlabel="F1")
    ax = figure.axes[0]
    assert len(ax.patches) == 4 and all(p.get_width() == 0.4 for p in ax.patches) and len(ax.lines) == 4
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]


def test_removal_curves_draw_orders_and_the_range_of_random_ones():
    line = Estimate(np.array([0.5, 0.4, 0.0]), np.array([0.4, 0.3, 0.0]), np.array([0.6, 0.5, 0.1]), np.empty((0, 3)))
    series = {"least": line, "most": line, "random": line}
    figure = figures.removal_curves({"F1": series, "loss": series}, (0, 2, 4), ylabels={"F1": "f", "loss": "l"},
                                    range_of={"F1": np.zeros((2, 3))})  # fmt: skip
    assert [len(ax.lines) for ax in figure.axes] == [6, 4] and figure.axes[0].get_xlabel() == "heads removed"
    assert list(figure.axes[0].get_xticks()) == [0, 2, 4]


# ------------------------------------------------------------------ chapter 14: cards


def a_card(layers=2, heads=3, **changes):
    """Invented values of a card, as ``your_own_model.as_dict`` makes them."""
    row = {"count": 40, "layer": 1, "head": 2, "direction": "", "held_out": estimate(()), "baseline": estimate(()),
           "rules": estimate(()), "p": 0.01}  # fmt: skip
    return {
        "model": {"name": "some", "family": "SomeModel", "layers": layers, "heads": heads, "parameters": 2e6,
                  "max_length": 64, "sha256": "0123456789abcdef"},
        "units": {"segments": 5, "tokens": 60, "sentences": 4, "mentions": 3},
        "specialists": [{"layer": 1, "head": 2, "role": "cls"}],
        "shares": Estimate(np.full((layers, 4), 0.25), *np.full((2, layers, 4), 0.25), np.empty((0, layers, 4))),
        "entropy": estimate((layers,)), "uniform": 2.0,
        "types": np.resize(SOME_TYPES, (layers, heads)),
        "type_shares": {name: estimate(()) for name in figures.TYPE_NAMES},
        "fits": {name: name != "vertical" for name in figures.TYPE_NAMES},
        "relations": {"all": row, "obj": row | {"p": 0.5}}, "coreference": {"all": row},
        "map": {"points": np.arange(2.0 * layers * heads).reshape(-1, 2), "stress": 0.1},
        "missing": {},
    } | changes  # fmt: skip


def test_a_card_shows_types_specialists_shares_and_scores():
    axes = {ax.get_title(): ax for ax in figures.model_card(a_card()).axes}
    grid = axes["types and specialists"]
    shown = grid.images[0].get_array()  # [head, layer]
    assert np.allclose(shown[1, 0], to_rgba(figures.COLOURS["diagonal"]))
    assert np.allclose(shown[2, 0], to_rgba(figures.COLOURS["vertical"], 0.4)), "pale where the name does not fit"
    assert [(t.get_text(), t.get_position()) for t in grid.texts] == [("C", (2, 3))]
    legend = [t.get_text() for t in grid.get_legend().get_texts()]
    assert len(legend) == 4 and [text.endswith("*") for text in legend] == [False, False, False, True]
    bars = axes["where attention goes"].patches
    assert [p.get_height() for p in bars] == [0.25] * 8 and bars[2].get_y() == 0.25
    scores = axes["best head for each relation"]
    assert [t.get_text() for t in scores.get_yticklabels()] == ["all* 2-3", "obj 2-3"]
    assert scores.lines[1].get_xdata()[0] == estimate(()).value
    points = [c.get_offsets() for c in axes["map, by layer (stress 0.10)"].collections]
    assert np.array_equal(np.concatenate(points), np.arange(12.0).reshape(6, 2))


def test_a_card_says_what_it_lacks():
    reasons = {"relations": "No sentence fits.", "map": "Too few heads."}
    figure = figures.model_card(a_card(relations={}, map=None, missing=reasons))
    texts = " ".join(t.get_text().replace("\n", " ") for ax in figure.axes for t in ax.texts)
    assert "Not on this card: No sentence fits." in texts and "Too few heads." in texts
    axes = figures.cards_beside(a_card(), a_card(3, 2, map=None, specialists=[], missing=reasons)).axes
    assert [ax.get_title() for ax in axes][::3] == ["some: types", "some: types"]
    assert [axes[n].images[0].get_array().shape[:2] for n in (0, 3)] == [(3, 2), (2, 3)]


def test_gaps_are_filled_where_they_exclude_zero():
    lines = [
        SimpleNamespace(measure=name, gap=None if low is None else Estimate.of(np.float64(low), np.array([low, low + 0.2])))
        for name, low in (("clear", 0.1), ("not", -0.1), ("no gap", None))
    ]  # fmt: skip
    ax = figures.gaps(lines, names=("one", "other")).axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["clear", "not"]
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert [dot.get_markerfacecolor() == "white" for dot in dots] == [False, True]
    assert ax.get_xlabel().startswith("one minus other")


# ------------------------------------------------------------------ chapter 11


def _cost(seed=0):
    return np.random.default_rng(seed).normal(size=(3, 4))


def test_cost_grids_are_red_where_it_hurts_and_mark_what_stands():
    cost, stands = _cost(), np.zeros((3, 4), bool)
    stands[1, 2] = True
    figure = figures.cost_grids(
        {"a": cost, "b": 2 * cost, "c": -cost}, dict.fromkeys("abc", stands), bars=dict.fromkeys("abc", "nats")
    )
    for ax, factor in zip(figure.axes[:3], (1, 2, -1), strict=True):
        image = ax.images[0]
        assert np.allclose(image.get_array(), factor * cost.T), "layers on x, heads downwards"
        low, high = image.get_clim()
        assert low == -high and high == pytest.approx(np.abs(factor * cost).max())
        (dots,) = ax.lines
        assert dots.get_xydata().tolist() == [[2, 3]]
    assert figure.axes[3].axison is False


def test_layer_costs_are_filled_where_they_stand():
    value = np.array([0.5, -0.2, 0.1])
    cost = Estimate(value, value - 0.1, value + 0.2, np.empty((0, 3)))
    figure = figures.layer_costs({"qa": cost}, {"qa": [True, False, False]}, ylabel="nats")
    bars = figure.axes[0].patches
    assert [round(b.get_height(), 3) for b in bars] == [0.5, -0.2, 0.1]
    white = (1.0, 1.0, 1.0, 1.0)
    assert [b.get_facecolor() == white for b in bars] == [False, True, True]
    assert bars[1].get_edgecolor() != bars[0].get_edgecolor(), "gains look different from losses"


def test_gate_lines_have_their_tangent():
    gates = [0, 0.5, 1]
    figure = figures.gate_lines(gates, {(0, 1): [3.0, 2.5, 2.0]}, {(0, 1): -1.0})
    curve, tangent, _ = figure.axes[0].lines
    assert curve.get_ydata().tolist() == [3.0, 2.5, 2.0] and tangent.get_ydata().tolist() == [3.0, 2.5, 2.0]
    assert "head 1-2" in [t.get_text() for t in figure.axes[0].get_legend().get_texts()]


def test_importance_and_cost_names_the_largest():
    value, cost = np.arange(12.0).reshape(3, 4), np.zeros((3, 4))
    cost[0, 0] = 1
    figure = figures.importance_and_cost({"a": (value, cost), "b": (value, cost)}, names=1)
    for ax in figure.axes[:2]:
        assert np.allclose(ax.collections[0].get_offsets(), np.stack([value.ravel(), cost.ravel()], 1))
        assert sorted(t.get_text() for t in ax.texts) == ["1-1", "3-4"]


def test_pruning_curves_show_means_bands_and_the_majority_class():
    def one(v):
        value = np.array(v)
        return {
            "mean": Estimate(value, value - 0.1, value + 0.1, np.empty((0, 3))),
            "least": value - 0.2,
            "most": value + 0.2,
        }

    curves = {"paraphrase": {"I_h": one([0.9, 0.8, 0.3]), "random": one([0.9, 0.6, 0.3])}}
    figure = figures.pruning_curves(
        [0, 0.5, 1], curves, ylabels={"paraphrase": "score"}, baselines={"paraphrase": 0.5}
    )
    first, second, floor = figure.axes[0].lines
    assert first.get_xdata().tolist() == [0, 50, 100] and second.get_ydata().tolist() == [0.9, 0.6, 0.3]
    assert floor.get_ydata()[0] == 0.5
    bands = [c.get_paths()[0].vertices[:, 1] for c in figure.axes[0].collections]
    assert bands[0].min() == pytest.approx(0.2) and bands[1].min() == pytest.approx(0.1), "all draws for random"
    assert len(figure.legends[0].get_texts()) == 3


def test_size_and_speed_are_multiples_of_the_whole():
    row = {"removed": 0.0, "all": 20, "layers": 10, "attention": 4, "one_ms": 8.0, "batch_ms": 80.0}
    variants = {
        "none": row, "6 of 12 heads of every layer": row | {"removed": 0.5, "all": 18, "attention": 2, "one_ms": 6.0},
        "all heads of 3 of 6 layers": row | {"removed": 0.5, "one_ms": 4.0},
    }  # fmt: skip
    figure = figures.size_and_speed(variants)
    by_label = {line.get_label(): line for ax in figure.axes for line in ax.lines}
    assert by_label["attention"].get_ydata().tolist() == [1, 0.5] and by_label[
        "whole model"
    ].get_ydata().tolist() == [1, 0.9]
    assert by_label["one input, the same from every layer"].get_ydata().tolist() == [1, 0.75]
    assert by_label["one input, whole layers"].get_xydata().tolist() == [[50, 0.5]]


def test_grids_of_reads_records():
    record = {
        "cost": {
            "loss": {"heads": {"cost": {"value": [[1.0]], "low": [[0.0]], "high": [[2.0]]}, "significant": [[True]]}}
        }
    }
    costs, stands = figures.grids_of({"qa": record}, "loss")
    assert costs["qa"].tolist() == [[1.0]] and stands["qa"].tolist() == [[True]]
