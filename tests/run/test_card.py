"""The card from Python: its numbers are the chapters' own, one head is found by its name, the page needs nothing else."""

import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from browser import CHROMIUM, browser

from helpers import card
from helpers.chapters.dependency_heads import measures as dependency_heads
from helpers.chapters.surface_patterns import measures as surface_patterns
from helpers.chapters.your_own_model import measures as your_own_model
from helpers.figures.look import LABELS
from helpers.record import exports, quantities
from helpers.run.card import CardError

SMALL = {"segments": 8, "documents": 5, "choose_on": ("dev",)}


@pytest.fixture(scope="module")
def encoder(small_encoder):
    return small_encoder("distilbert", max_position_embeddings=128)


@pytest.fixture(scope="module")
def made(encoder):
    return card(encoder, **SMALL)


@pytest.fixture(scope="module")
def texts():
    return your_own_model.sample("encyclopedia", "encyclopedia", "encyclopedia", **SMALL)


def test_every_head_has_the_numbers_of_chapter_02(made, encoder, texts):
    patterns = surface_patterns.measure(encoder, texts.segments)
    found = made.table[(made.table.quantity == "share_cls") & made.table["head"].notna()]
    grid = found.value.to_numpy().reshape(made.shape)
    assert np.allclose(grid, patterns["cls"].value, atol=1e-6) and set(found.corpus) == {"encyclopedia"}


def test_every_head_has_the_numbers_of_chapter_04(made, encoder, texts):
    test = dependency_heads.score(dependency_heads.predict(encoder, texts.trees[1]))
    found = made.table[(made.table.quantity == "found_by_governor") & (made.table.of == "det")]
    assert np.allclose(found.value.to_numpy().reshape(made.shape), test.accuracy("det")[..., 1], atol=1e-6)
    assert set(found.n) == {int(test.count[test.relations.index("det")])}


def test_the_table_is_of_the_long_form_and_can_be_exported(made, tmp_path):
    assert list(made.table) == list(quantities.COLUMNS)
    assert set(made.table.profile) == {"card"} and set(made.table.model) == {made.name}
    assert not made.table.duplicated(list(quantities.KEY)).any()
    back = exports.read(exports.write(made.table, tmp_path / "card.csv"))
    assert (back.value.fillna(-1) == made.table.value.fillna(-1)).all()


def test_a_head_is_found_by_its_name(made):
    head = made["2-1"]
    assert set(head.table.layer) == {2} and set(head.table["head"]) == {1}
    assert head.shares()[LABELS["cls"]].value == head.rows("share_cls").value.iloc[0]
    assert len(head.nearest()) == min(5, made.shape[0] * made.shape[1] - 1)
    leads = [row.value - row.control for row in head.relations()]
    assert leads == sorted(leads, reverse=True) and all(lead > 0 for lead in leads)
    assert "2-1" in head._repr_html_() and LABELS["sep"] in head._repr_html_()


@pytest.mark.parametrize("name", ["0-1", "1-0", "99-1", "1-99", "head", "1-1-1", ""])
def test_a_head_that_is_not_there_is_refused(made, name):
    layers, heads = made.shape
    with pytest.raises(CardError, match=rf"no head {name!r}; it has 1-1 to {layers}-{heads}, layer first"):
        made[name]


@pytest.mark.journey
@pytest.mark.slow
def test_the_package_hands_the_card_on_and_stays_cheap():
    code = "import helpers, sys; assert not {'torch', 'pandas', 'matplotlib'} & set(sys.modules); from helpers import card; print(card.__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "helpers.run.card\n", done.stderr
    with pytest.raises(ImportError, match="cannot import name 'carde' from 'helpers'"):
        from helpers import carde  # noqa: F401


class Ids(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if "href" in found else []


def test_the_page_has_a_part_for_every_head_and_needs_nothing_else(made, tmp_path):
    text = made.save(tmp_path / "head.html").read_text("utf-8")
    page = Ids(text)
    names = [f"{layer}-{head}" for layer in range(1, made.shape[0] + 1) for head in range(1, made.shape[1] + 1)]
    assert page.ids == names and page.links == [f"#{name}" for name in names]
    assert not re.search(r"<script|\bsrc=|url\(|@import", text)
    assert Ids(made._repr_html_()).ids == [], "in a notebook other cards may stand beside it"


def test_what_could_not_be_measured_is_said(encoder, monkeypatch):
    monkeypatch.setattr("helpers.chapters.your_own_model.measures.FEWEST_HEADS", 10**6)
    found = card(encoder, **SMALL)
    assert "divergence_map" in found.missing and "too few for a map" in found._repr_html_()
    assert found["1-1"].nearest() == [] and "divergence" not in set(found.table.quantity)


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_the_page_works_by_keyboard_and_fits_a_phone(made, tmp_path):
    file = made.save(tmp_path / "head.html")
    with browser() as page:
        page.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
        page.open(file)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.evaluate("document.querySelector('a[href=\"#2-1\"]').focus()")
        for kind in ("keyDown", "keyUp"):
            page.call(
                "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r"
            )
        page.wait("location.hash === '#2-1'")
        assert page.evaluate("document.querySelector(':target h3').textContent").startswith("2-1")
        assert page.problems == []
