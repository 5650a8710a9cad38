"""Figures to touch: what is in the page, how much, that it is text, and that mouse, keyboard and finger reach it."""

import json
import re

import numpy as np
import pytest
from browser import Page
from bs4 import BeautifulSoup
from conftest import HOSTILE

from helpers import views

NAMES = ["1-1", "1-2", "2-1", "2-2"]
COLOURS = {
    "layer": (["1", "1", "2", "2"], {"1": "#0072B2", "2": "#D55E00"}),
    "role": (["a", "b", "a", "c"], {"a": "#009E73", "b": "#CC79A7", "c": "#E69F00", "none": "#999999"}),
}
MAPS = np.random.default_rng(0).dirichlet(np.ones(3), (4, 3))


def scatter(names=NAMES, **changes):
    given = {"xlabel": "x", "ylabel": "y", "alt": "Four heads.", "colours": COLOURS, "texts": [""] * 4}
    return views.points([0, 10, 0, 10], [0, 0, 5, 5], names, **given | {"maps": MAPS, "tokens": "abc"} | changes)


def data_of(figure):
    return json.loads(re.search(r'application/json">(.*?)</script>', figure.data)[1])


def test_texts_are_texts():
    named = {"xlabel": HOSTILE, "ylabel": HOSTILE, "alt": HOSTILE, "texts": [HOSTILE] * 4, "tokens": [HOSTILE] * 3}
    colours = {HOSTILE: ([HOSTILE] * 4, {HOSTILE: "#000000"})}
    figure = scatter([HOSTILE] * 4, colours=colours, **named)
    page = BeautifulSoup(figure.data, "html.parser")
    assert not page.find_all("img") and not page.find_all(attrs={"onerror": True})
    assert figure.data.count("</script") == 2 and HOSTILE in page.text
    assert data_of(scatter([HOSTILE] * 4))["names"] == [HOSTILE] * 4


@pytest.fixture
def page(chromium, tmp_path):
    """Factory: a page with figures, with options of playwright's for the tab."""
    tabs = []

    def opened(*figures, **options):
        tabs.append(Page(chromium.tab.context.browser.new_page(**options)))
        viewport = "<meta name='viewport' content='width=device-width'>"
        body = "".join(figure.data for figure in figures)
        (tmp_path / "page.html").write_text(f"<!doctype html><meta charset='utf-8'>{viewport}{body}", "utf-8")
        tabs[-1].tab.goto((tmp_path / "page.html").as_uri())
        return tabs[-1].tab

    yield opened
    for page in tabs:
        assert page.problems == []
        page.tab.close()


def says(tab):
    return tab.locator(".says").text_content()


def kept(tab):
    return tab.locator(".point").evaluate_all("all => all.map((c) => c.getAttribute('aria-pressed'))")


def fills(tab, what):
    return tab.locator(what).evaluate_all("all => all.map((c) => c.getAttribute('fill'))")


def point(tab, number, *, click=False, beside=0):
    box = tab.locator(".point").nth(number).bounding_box()
    where = box["x"] + box["width"] / 2 + beside, box["y"] + box["height"] / 2
    (tab.mouse.click if click else tab.mouse.move)(*where)


def test_the_mouse_names_a_point_shows_its_map_and_keeps_it(page):
    tab = page(scatter(tokens=["[CLS]", HOSTILE, "b"], texts=["w", "x", HOSTILE, "z"]))
    assert says(tab).startswith("1-1") and tab.locator(".map text").count() == 6
    before = fills(tab, ".map rect")
    point(tab, 2, beside=9)
    assert says(tab).startswith("2-1") and "layer: 2" in says(tab) and HOSTILE in says(tab), "near it is enough"
    assert fills(tab, ".map rect") != before
    cells = [sum(map(int, re.findall(r"\d+", cell))) for cell in fills(tab, ".map rect")[:9]]
    order = np.argsort(np.round(255 * MAPS[2].ravel()), kind="stable")
    assert (np.diff(np.array(cells)[order]) <= 0).all(), "more attention is darker"
    point(tab, 3, click=True)
    point(tab, 0)
    assert says(tab).startswith("2-2") and kept(tab) == ["false", "false", "false", "true"], "it is kept"
    point(tab, 3, click=True)
    point(tab, 0)
    assert says(tab).startswith("1-1") and tab.title() != "taken"


def test_the_keys_go_from_point_to_point(page):
    tab = page(scatter())
    assert tab.locator('.touch [tabindex="0"]').count() == 1, "one stop for the Tab key"
    for _stop in range(3):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.classList.contains('point')"):
            break
    keys = ("ArrowRight", "ArrowUp", "ArrowLeft", "ArrowLeft", "ArrowDown", "PageDown", "End")
    for key, name in zip(keys, ("1-2", "2-2", "2-1", "2-1", "1-1", "1-2", "2-2"), strict=True):
        tab.keyboard.press(key)
        assert says(tab).startswith(name), key
        assert tab.evaluate("document.activeElement.getAttribute('aria-label')") == name
    tab.keyboard.press("Enter")
    point(tab, 0)
    assert says(tab).startswith("2-2") and kept(tab)[3] == "true"
    tab.keyboard.press("Escape")
    point(tab, 1)
    assert says(tab).startswith("1-2")


def test_points_change_their_colours(page):
    tab = page(scatter())
    assert fills(tab, ".point") == ["#0072B2", "#0072B2", "#D55E00", "#D55E00"]
    tab.locator(".bar input").nth(1).click()
    assert fills(tab, ".point") == ["#009E73", "#CC79A7", "#009E73", "#E69F00"]
    assert tab.locator(".legend").text_content() == "abc" and "role: a" in says(tab)


def test_a_finger_on_a_phone(page):
    tab = page(scatter(), viewport={"width": 390, "height": 1400}, has_touch=True, is_mobile=True)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    tab.locator(".point").nth(3).tap()
    assert says(tab).startswith("2-2") and kept(tab)[3] == "true"


def test_without_a_script_everything_is_there_to_read(page):
    tab = page(scatter(), java_script_enabled=False)
    assert tab.locator(".point").count() == 4
    assert all(element.bounding_box()["width"] > 5 for element in tab.locator(".point").all())
