"""What is done to each page: pictures that wait, tables that scroll in a region."""

import sys

import pytest
from PIL import Image

from helpers import places

sys.path.insert(0, str(places.ROOT / "book" / "_ext"))
legible = pytest.importorskip("legible", reason="the pages are not built here")
sys.path.pop(0)


@pytest.fixture
def pictures(tmp_path):
    """Three pictures and a drawing, by the names that pages know them by."""
    Image.new("RGB", (400, 100)).save(tmp_path / "wide.png")
    Image.new("RGB", (100, 100)).save(tmp_path / "square.png")
    Image.new("RGB", (1200, 800)).save(tmp_path / "large.png")
    (tmp_path / "drawn.svg").write_text('<svg viewBox="0 0 30 20"></svg>')
    return {name: tmp_path / name for name in ("wide.png", "square.png", "large.png", "drawn.svg")}


def test_a_picture_waits_and_keeps_its_place(pictures):
    said = legible.lazily('<img alt="a" src="../_images/square.png" />', pictures)
    assert (
        said == '<img alt="a" src="../_images/square.png" loading="lazy" decoding="async" width="100" height="100" />'
    )
    assert 'width="30" height="20"' in legible.lazily('<img src="../_images/drawn.svg">', pictures)


def test_a_wide_picture_and_its_link_are_marked(pictures):
    link = '<a class="reference image-reference" href="x"><img alt="a" class="figure" src="../_images/{}"/></a>'
    wide = legible.lazily(link.format("wide.png"), pictures)
    assert '<a class="wide reference image-reference" href="x">' in wide and 'class="wide figure"' in wide
    assert "wide" not in legible.lazily(link.format("square.png"), pictures)
    large = legible.lazily(link.format("large.png"), pictures)
    assert '<a class="broad reference image-reference" href="x">' in large and 'class="broad figure"' in large
    assert '<img class="wide" ' in legible.lazily('<img src="../_images/wide.png">', pictures)


@pytest.mark.parametrize("picture", ['<img src="data:image/png;base64,AA">', '<img src="../_static/mark.svg">'])
def test_other_pictures_stay(picture, pictures):
    assert legible.lazily(picture, pictures) == picture


def test_every_table_is_in_one_region_with_a_name_of_its_own():
    table = "<table><tr><th>head</th><th><b>a &amp; b</b></th></tr></table>"
    framed = f'<div class="pst-scrollable-table-container">{table}\n</div>'
    said = legible.in_regions(table + framed + "<table></table>")
    assert said.count("<div") == said.count("</div>") == said.count('role="region" tabindex="0"') == 3
    assert 'aria-label="Table 1: head, a &amp; b"' in said and 'aria-label="Table 2: head' in said
    assert 'aria-label="Table 3"' in said
