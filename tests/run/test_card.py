"""The card from Python: its numbers are the chapters' own, a head is found by its name, the page needs nothing else."""

import re

import numpy as np
import pandas as pd
import pytest
from browser import CHROMIUM, browser

from helpers import card, results
from helpers.chapters.your_own_model import measures as your_own_model
from helpers.measurements import surface, syntax
from helpers.run import exporting

SMALL = {"segments": 8, "documents": 5, "choose_on": ("dev",)}


@pytest.fixture(scope="module")
def encoder(small_encoder):
    return small_encoder("distilbert", max_position_embeddings=128)


@pytest.fixture(scope="module")
def made(encoder):
    return card(encoder, **SMALL)


@pytest.mark.slow
def test_every_head_has_the_numbers_of_the_chapters(made, encoder):
    def grid(quantity, of=None):
        rows = made.table[(made.table.quantity == quantity) & made.table["head"].notna()]
        return rows[rows.of == of if of else rows.of.isna()].value.to_numpy().reshape(made.shape)

    texts = your_own_model.sample("encyclopedia", "encyclopedia", "encyclopedia", **SMALL)
    patterns = surface.measure(encoder, texts.segments)
    assert np.allclose(grid("share_cls"), patterns["cls"].value, atol=1e-6)
    trees = syntax.trees(encoder, texts.trees[1])
    scores = syntax.score(*syntax.answers(encoder, trees), trees)
    assert np.allclose(grid("found_by_governor", "det"), scores.accuracy("det")[..., 1], atol=1e-6)


@pytest.mark.slow
def test_the_table_is_of_the_long_form_and_can_be_exported(made, tmp_path):
    assert list(made.table) == list(results.COLUMNS) and set(made.table.model) == {made.name}
    back = pd.read_csv(exporting.write(made.table, tmp_path / "card.csv")[0])
    assert (back.value.fillna(-1) == made.table.value.fillna(-1)).all()


@pytest.mark.slow
def test_a_head_is_found_by_its_name(made):
    head = made["2-1"]
    assert set(head.table.layer) == {2} and set(head.table["head"]) == {1} and "2-1" in head._repr_html_()
    leads = [row.value - row.control for row in head.relations()]
    assert leads == sorted(leads, reverse=True) and all(lead > 0 for lead in leads)
    for name in ("0-1", "1-0", "99-1", "1-99", "head", "1-1-1", ""):
        with pytest.raises(KeyError, match=name or "''"):
            made[name]


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_page_needs_nothing_else_and_works_by_keyboard(made, tmp_path):
    file = made.save(tmp_path / "head.html")
    text = file.read_text("utf-8")
    assert len(re.findall(r' id="\d+-\d+"', text)) == made.shape[0] * made.shape[1]
    assert not re.search(r"<script|\bsrc=|url\(|@import", text)
    with browser() as page:
        page.open(file)
        page.tab.focus('a[href="#2-1"]')
        page.tab.keyboard.press("Enter")
        page.wait("document.querySelector(':target h3').textContent.startsWith('2-1')")
        assert page.problems == []
