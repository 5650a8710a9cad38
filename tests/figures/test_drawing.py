"""The drawing that grows: it shows the numbers that it is given, and nothing in it covers anything else."""

from itertools import combinations, pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

from helpers import places
from helpers.figures import drawing
from helpers.figures.drawing import PARTS, SHOWN, STEPS, Numbers, as_text, draw, schema
from helpers.figures.look import use_style


@pytest.fixture(autouse=True)
def _style():
    with plt.rc_context():
        use_style()
        yield
    plt.close("all")


def example(tokens=("[CLS]", "she", "slept", "[SEP]"), *, heads=12, layer=2, head=4, layers=6, d=8, width=16, seed=0):
    """Numbers of a head with random weights, each of which follows from those before."""
    rng, n = np.random.default_rng(seed), len(tokens)
    hidden, (query, key) = rng.normal(size=(n, width)), rng.normal(size=(2, n, d)) * 1.5
    of_all = rng.normal(size=(n, heads, d))
    value = rng.normal(size=(n, d))
    scores = query @ key.T / np.sqrt(d)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    of_all[:, head] = weights @ value
    added = rng.normal(size=(n, width))
    arrays = (hidden, query, key, value, scores, weights, of_all[:, head], of_all, added, hidden + added)
    return Numbers(tuple(tokens), layer, head, layers, *arrays, rng.normal(size=(n, width)))


def texts(figure):
    return [t for t in figure.axes[0].texts if t.get_text()]


def written(figure):
    return [t.get_text() for t in texts(figure)]


@pytest.mark.parametrize(("number", "text"), [(1.005, "1.00"), (-0.5, "−0.50"), (-0.004, "0.00"), (12.345, "12.35")])
def test_numbers_have_two_decimals_and_a_true_minus(number, text):
    assert as_text(number) == text
    assert as_text(number, inside=True) == (f"({text})" if text.startswith("−") else text)


def test_the_drawing_grows_step_by_step():
    before, height = [], 0
    for step in STEPS:
        figure = draw(example(), step)
        now, lines = written(figure), [t for t in written(figure) if " = " in t]
        assert len(now) - len(lines) > len(before) or step == "embeddings"
        assert figure.get_figheight() >= height and figure.get_figwidth() == drawing.WIDE
        before, height = [t for t in now if " = " not in t], figure.get_figheight()


def test_all_numbers_of_a_step_are_those_given():
    given = example()
    shown = written(draw(given))
    for name in ("hidden", "query", "key", "value", "output", "added", "residual", "after"):
        for number in getattr(given, name)[:, :SHOWN].ravel():
            assert as_text(number) in shown, name
    for number in np.concatenate([given.scores.ravel(), given.weights.ravel(), given.heads[:, :, 0].ravel()]):
        assert as_text(number) in shown
    assert shown.count("3 of 8 dimensions") == 4 and shown.count("3 of 16 dimensions") == 5
    assert "1 of 8 dimensions each" in shown


def test_blocks_stand_where_their_names_stand():
    given = example()
    figure = draw(given, "projections")
    spot = {t.get_text(): t.get_position()[0] for t in texts(figure)}
    for title, numbers in {"queries q": given.query, "keys k": given.key, "values v": given.value}.items():
        column = [t for t in texts(figure) if abs(t.get_position()[0] - spot[title]) < 0.01 and "." in t.get_text()]
        assert [t.get_text() for t in column] == [as_text(x) for x in numbers[:, 1]], title


def test_the_lines_of_arithmetic_can_be_checked():
    given = example()
    q, k = given.query[2], given.key[0]
    (line,) = [t for t in written(draw(given, "scores", row=2)) if t.startswith("slept, [CLS]:")]
    assert f"{as_text(q @ k - q[:3] @ k[:3], inside=True)} from the other 5 = {as_text(q @ k)};" in line
    assert line.endswith(f"/ √8 = {as_text(given.scores[2, 0])}")
    (line,) = [t for t in written(draw(given, "weights", row=2)) if t.endswith(f"=  {as_text(given.weights[2, 0])}")]
    assert line.count("$e^") == 5
    (line,) = [t for t in written(draw(given, "values", row=2)) if t.endswith(f" = {as_text(given.output[2, 0])}")]
    terms = [t.split("·") for t in line.split(" = ")[0].split(" + ")]
    plain = [[float(x.strip("()").replace("−", "-")) for x in pair] for pair in terms]
    assert np.allclose(plain, np.stack([given.weights[2], given.value[:, 0]], -1), atol=0.0051)
    (line,) = [t for t in written(draw(given, "residual", row=2)) if " = " in t and t[0] in "0123456789−"]
    assert line.endswith(f"= {as_text(given.residual[2, 0])}")


def test_a_term_for_the_distance_is_named():
    given = example()
    moved = Numbers(**{**vars(given), "scores": given.scores + 0.7})
    assert any("+ 0.70 for the distance" in t for t in written(draw(moved, "scores")))
    assert not any("distance" in t for t in written(draw(given, "scores")))


def test_what_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"no part 'softmax' here\. There are: embeddings, projections"):
        draw(example(), "softmax")
    with pytest.raises(ValueError, match="no part 'layers' here"):
        draw(example(), "scores", lit=("layers",))
    with pytest.raises(ValueError, match="no token 4: the input has 4"):
        draw(example(), row=4)
    with pytest.raises(ValueError, match=r"no part 'ghost' here.*gate"):
        schema(lit=("values", "ghost"))
    with pytest.raises(ValueError, match="room for 2 to 6 tokens, not for 7"):
        example("abcdefg")


def boxes(figure):
    figure.draw_without_rendering()
    return [(t, t.get_window_extent()) for t in texts(figure)]


def segments(figure):
    """Every straight piece of a line, as points in pixels."""
    for line in figure.axes[0].lines:
        points = line.get_transform().transform(line.get_xydata())
        yield from pairwise(points)


def overlap(one, other, by=1.0):
    return min(one.x1, other.x1) - max(one.x0, other.x0) > by and min(one.y1, other.y1) - max(one.y0, other.y0) > by


CASES = {
    "as in chapter 01": {},
    "the last head of the last layer": {"layer": 5, "head": 11},
    "sixteen heads of 24 layers": {"heads": 16, "head": 15, "layer": 20, "layers": 24},
    "two heads of two layers": {"heads": 2, "head": 1, "layer": 0, "layers": 2},
    "six tokens, some long": {"tokens": ("<s>", "Ġunbelievable", "Ġshe", "Ġslept", "##ing", "</s>")},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("step", STEPS)
def test_nothing_covers_a_text(step, case):
    clear(draw(example(**CASES[case]), step))


@pytest.mark.parametrize("lit", [(), *((part,) for part in PARTS), ("embeddings", "residual"), PARTS])
def test_nothing_covers_a_text_of_the_schema(lit):
    figure = schema(lit)
    clear(figure)
    assert tuple(figure.get_size_inches()) == (7.2, 2.0)


def clear(figure):
    """Texts lie on the sheet, apart from one another, no line runs through them, and no cell ends within one."""
    found, page = boxes(figure), figure.bbox
    for text, box in found:
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1, text
    for (one, a), (other, b) in combinations(found, 2):
        assert not overlap(a, b), (one.get_text(), other.get_text())
    for (x0, y0), (x1, y1) in segments(figure):
        for text, box in found:
            crossed = (
                min(x0, x1) < box.x1 - 1
                and max(x0, x1) > box.x0 + 1
                and min(y0, y1) < box.y1 - 1
                and max(y0, y1) > box.y0 + 1
            )
            assert not crossed or text.get_text() in ("+", "$W_O$"), text  # these two stand on a white ground
    for patch in figure.axes[0].patches[1:]:
        cell = patch.get_window_extent()
        for text, box in found:
            inside = (
                cell.x0 - 1 <= box.x0 and box.x1 <= cell.x1 + 1 and cell.y0 - 1 <= box.y0 and box.y1 <= cell.y1 + 1
            )
            assert inside or not overlap(cell, box), (text.get_text(), patch)


def test_what_is_new_is_lit_and_the_rest_is_grey():
    found = {t.get_text(): t.get_color() for t in texts(draw(example(), "weights"))}
    assert found["weights α"] == drawing.COLOURS["weight"] and found["queries q"] == drawing.OLD
    found = {t.get_text(): t.get_color() for t in texts(draw(example(), "weights", lit=("projections",)))}
    assert found["weights α"] == drawing.OLD and found["queries q"] == drawing.COLOURS["query"]


def test_a_part_of_the_schema_is_lit_by_weight_too():
    for part, label in {
        "values": "v",
        "embeddings": "hidden states x",
        "layers": "next layers",
        "gate": "gate",
    }.items():
        weights = {t.get_text(): t.get_weight() for t in texts(schema((part,)))}
        assert weights[label] == "bold" and weights["q"] == "normal"
    assert "gate" not in written(schema()), "a model has no gate"


def test_the_mark_in_the_book_is_the_one_drawn():
    assert (places.ROOT / "book" / "_static" / "mark.svg").read_text("utf-8") == drawing.mark()
    for part in range(1, 16, 5):
        assert f'x="{part}" y="{part}"' in drawing.mark(), "on whole pixels of an icon of 16"
