"""Figures to touch: what is in the page, how much, that it is text, and that mouse, keyboard and finger reach it."""

import base64
import html
import json
import re
import time
from html.parser import HTMLParser

import numpy as np
import pytest
from browser import CHROMIUM, browser

from helpers import views

HOSTILE = "</script><img src=x onerror=\"document.title='taken'\">"
NAMES = ["1-1", "1-2", "2-1", "2-2"]
COLOURS = {
    "layer": (["1", "1", "2", "2"], {"1": "#0072B2", "2": "#D55E00"}),
    "role": (["a", "b", "a", "c"], {"a": "#009E73", "b": "#CC79A7", "c": "#E69F00", "none": "#999999"}),
}


def maps(count=4, size=3):
    weights = np.random.default_rng(0).random((count, size, size))
    return weights / weights.sum(-1, keepdims=True)


def scatter(names=NAMES, **changes):
    given = {
        "xlabel": "x",
        "ylabel": "y",
        "alt": "Four heads.",
        "colours": COLOURS,
        "texts": [""] * 4,
        "maps": maps(),
    }
    return views.points([0, 10, 0, 10], [0, 0, 5, 5], names, **given | changes)


def steps(**changes):
    pieces = [[["the", ("cat", "#ffdd88")]], [["a", "dog"]], [["no", "animal"]]]
    given = {"labels": ["gate 0", "gate 0.5", "gate 1"], "pieces": pieces, "alt": "Answers by gate."}
    return views.frames(**given | changes)


def data_of(figure):
    return json.loads(re.search(r'application/json">(.*?)</script>', figure.data)[1])


class Elements(HTMLParser):
    """The tags of a page as a browser would find them, with their attributes, and its text."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def test_the_data_of_points_are_those_given():
    figure = scatter(tokens=["[CLS]", "a", "b"], texts=["w", "x", "y", "z"], first=2)
    data = data_of(figure)
    kept = np.frombuffer(base64.b64decode(data["maps"]), np.uint8).reshape(4, 3, 3) / 255
    assert np.abs(kept - maps()).max() <= 0.5 / 255
    assert (data["names"], data["tokens"], data["first"], data["size"]) == (NAMES, ["[CLS]", "a", "b"], 2, 3)
    assert data["texts"][3] == "z"
    title, labels, palette = data["colourings"][1]
    assert (title, [palette[n][0] for n in labels]) == ("role", ["a", "b", "a", "c"])
    assert ["none", "#999999"] not in palette, "the legend names what there is"


def test_the_steps_of_a_slider_are_all_in_the_page():
    figure = steps()
    assert data_of(figure)["labels"] == ["gate 0", "gate 0.5", "gate 1"]
    assert figure.data.count("<details") == 3 and figure.data.count("<details open>") == 1
    assert '<span class="word" style="--colour:#ffdd88">cat</span>' in figure.data


def test_texts_are_texts():
    lists = {"texts": [HOSTILE] * 4, "tokens": [HOSTILE] * 3, "lines": {HOSTILE: 1.0}}
    named = {"xlabel": HOSTILE, "ylabel": HOSTILE, "alt": HOSTILE}
    colours = {HOSTILE: ([HOSTILE] * 4, {HOSTILE: "#000000"})}
    for figure in (
        scatter([HOSTILE] * 4, colours=colours, **lists, **named),
        steps(labels=[HOSTILE] * 3, pieces=[[[HOSTILE, (HOSTILE, "#ffdd88")]]] * 3, alt=HOSTILE),
    ):
        page = Elements(figure.data)
        assert not {"img"} & {tag for tag, _ in page.found} and not [a for _, a in page.found if "onerror" in a]
        assert figure.data.count("</script") == 2 and HOSTILE in html.unescape(page.text)
    assert data_of(scatter([HOSTILE] * 4))["names"] == [HOSTILE] * 4


def test_a_figure_asks_for_nothing():
    for figure in (scatter(), steps()):
        without_names = figure.data.replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//cdn|\bfetch\(|XMLHttp|import\(|@import|url\(", without_names)


def test_a_figure_that_is_too_large_is_refused():
    with pytest.raises(views.TooLarge):
        scatter(texts=["x" * views.LIMIT] * 4)


needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")


@pytest.fixture(scope="module")
def tab():
    with browser() as page:
        yield page


@pytest.fixture
def page(tab, tmp_path):
    """A page with a figure, as wide as a desktop's or a phone's."""

    def opened(*figures, width=1000, around=""):
        tab.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=1400, deviceScaleFactor=1, mobile=width < 500
        )
        tab.call("Emulation.setTouchEmulationEnabled", enabled=width < 500)
        viewport = "<meta name='viewport' content='width=device-width'>"
        body = "".join(figure.data for figure in figures)
        (tmp_path / "page.html").write_text(f"<!doctype html><meta charset='utf-8'>{viewport}{around}{body}", "utf-8")
        tab.open(tmp_path / "page.html", settle=0.1)
        return tab

    yield opened
    tab.call("Emulation.clearDeviceMetricsOverride")
    tab.call("Emulation.setTouchEmulationEnabled", enabled=False)


SAYS = "document.querySelector('.says').textContent"
FILLS = "[...document.querySelectorAll('.point')].map((c) => c.getAttribute('fill'))"
CELLS = "[...document.querySelectorAll('.map rect')].slice(0, 9).map((c) => c.getAttribute('fill'))"
KEPT = "[...document.querySelectorAll('.point')].map((c) => c.getAttribute('aria-pressed'))"


def spot(page, selector):
    """The middle of an element on the screen."""
    box = f"document.querySelectorAll({selector[0]!r})[{selector[1]}].getBoundingClientRect()"
    return page.evaluate(f"((b) => ({{x: b.x + b.width / 2, y: b.y + b.height / 2}}))({box})")


def mouse(page, at, *, press=False):
    page.call("Input.dispatchMouseEvent", type="mouseMoved", **at)
    for kind in ("mousePressed", "mouseReleased") if press else ():
        page.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)


def tap(page, at):
    page.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[at])
    page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    time.sleep(0.4)  # the click that the browser makes of it


def press(page, key):
    code = {"Enter": 13, "Tab": 9, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39}
    code |= {"ArrowDown": 40, "Escape": 27, "PageDown": 34}
    for kind in ("rawKeyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code[key])


@needs_chromium
@pytest.mark.browser
def test_the_mouse_names_a_point_shows_its_map_and_keeps_it(page):
    tab = page(scatter(tokens=["[CLS]", HOSTILE, "b"], texts=["w", "x", HOSTILE, "z"]))
    assert tab.evaluate(SAYS).startswith("1-1") and tab.evaluate("document.querySelectorAll('.map text').length") == 6
    before = tab.evaluate(CELLS)
    near = spot(tab, (".point", 2))
    mouse(tab, near | {"x": near["x"] + 9})
    said = tab.evaluate(SAYS)
    assert said.startswith("2-1") and "layer: 2" in said and HOSTILE in said, "near it is enough"
    cells = [list(map(int, re.findall(r"\d+", cell))) for cell in tab.evaluate(CELLS)]
    assert tab.evaluate(CELLS) != before
    order = np.argsort(np.round(255 * maps()[2].ravel()), kind="stable")
    assert (np.diff([sum(cells[n]) for n in order]) <= 0).all(), "more attention is darker"
    mouse(tab, spot(tab, (".point", 3)), press=True)
    mouse(tab, spot(tab, (".point", 0)))
    assert tab.evaluate(SAYS).startswith("2-2"), "it is kept"
    assert tab.evaluate(KEPT) == ["false", "false", "false", "true"]
    mouse(tab, spot(tab, (".point", 3)), press=True)
    mouse(tab, spot(tab, (".point", 0)))
    assert tab.evaluate(SAYS).startswith("1-1")
    assert tab.problems == [] and tab.evaluate("document.title") != "taken"


@needs_chromium
@pytest.mark.browser
def test_the_keys_go_from_point_to_point(page):
    tab = page(scatter())
    assert tab.evaluate("document.querySelectorAll('.touch [tabindex=\"0\"]').length") == 1, (
        "one stop for the Tab key"
    )
    for _stop in range(3):
        press(tab, "Tab")
        if tab.evaluate("document.activeElement.classList.contains('point')"):
            break
    for key, name in (
        ("ArrowRight", "1-2"),
        ("ArrowUp", "2-2"),
        ("ArrowLeft", "2-1"),
        ("ArrowLeft", "2-1"),
        ("ArrowDown", "1-1"),
        ("PageDown", "1-2"),
        ("End", "2-2"),
    ):
        press(tab, key)
        assert tab.evaluate(SAYS).startswith(name), key
        assert tab.evaluate("document.activeElement.getAttribute('aria-label')") == name
    press(tab, "Enter")
    mouse(tab, spot(tab, (".point", 0)))
    assert tab.evaluate(SAYS).startswith("2-2") and tab.evaluate(KEPT)[3] == "true"
    press(tab, "Escape")
    mouse(tab, spot(tab, (".point", 1)))
    assert tab.evaluate(SAYS).startswith("1-2") and tab.problems == []


@needs_chromium
@pytest.mark.browser
@pytest.mark.parametrize("control", ("buttons", "slider"))
def test_points_change_their_colours(page, control):
    tab = page(scatter(control=control))
    assert tab.evaluate(FILLS) == ["#0072B2", "#0072B2", "#D55E00", "#D55E00"]
    if control == "buttons":
        mouse(tab, spot(tab, (".bar input", 1)), press=True)
    else:
        tab.evaluate("document.querySelector('.bar input').focus()")
        press(tab, "ArrowRight")
        assert tab.evaluate("document.querySelector('.bar input').getAttribute('aria-valuetext')") == "role"
    assert tab.evaluate(FILLS) == ["#009E73", "#CC79A7", "#009E73", "#E69F00"]
    assert tab.evaluate("document.querySelector('.legend').textContent") == "abc"
    assert "role: a" in tab.evaluate(SAYS) and tab.problems == []


@needs_chromium
@pytest.mark.browser
def test_a_finger_on_a_phone(page):
    tab = page(scatter(), steps(), width=390)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    tap(tab, spot(tab, (".point", 3)))
    assert tab.evaluate(SAYS).startswith("2-2") and tab.evaluate(KEPT)[3] == "true"
    assert tab.problems == []


@needs_chromium
@pytest.mark.browser
def test_the_slider_shows_one_step(page):
    tab = page(steps())
    shown = "[...document.querySelectorAll('.steps details')].filter((d) => !d.hidden && d.open).map((d) => d.textContent)"
    assert [text.split("\n")[0] for text in tab.evaluate(shown)] == ["gate 0the cat"]
    tab.evaluate("document.querySelector('.bar input').focus()")
    press(tab, "ArrowRight")
    assert tab.evaluate(shown) == ["gate 0.5a dog"]
    press(tab, "End")
    assert tab.evaluate(shown) == ["gate 1no animal"] and tab.problems == []


@needs_chromium
@pytest.mark.browser
def test_without_a_script_everything_is_there_to_read(page, tab):
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.call("Page.navigate", url="about:blank")
        document = tab.call("Page.getFrameTree")["frameTree"]["frame"]["id"]
        tab.call("Page.setDocumentContent", frameId=document, html=scatter().data + steps().data)
        root = tab.call("DOM.getDocument", depth=-1)["root"]["nodeId"]
        circles = tab.call("DOM.querySelectorAll", nodeId=root, selector=".point")["nodeIds"]
        steps_there = tab.call("DOM.querySelectorAll", nodeId=root, selector="details")["nodeIds"]
        assert len(circles) == 4 and len(steps_there) == 3
        assert all(tab.call("DOM.getBoxModel", nodeId=one)["model"]["width"] > 5 for one in (*circles, *steps_there))
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)
