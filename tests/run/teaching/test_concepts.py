"""The page *Teach with it*: what builds on what, and the lists that follow from the chapters."""

import re
import xml.etree.ElementTree as ET

import pytest

from helpers.run import contents, notebooks
from helpers.run.teaching import concepts, form

CHAIN = {"01_a": [], "02_b": ["01_a"], "03_c": ["01_a", "02_b"], "04_d": ["01_a"]}


def test_what_stands_behind_another_is_no_line_of_its_own():
    assert concepts.directly(CHAIN) == {"01_a": [], "02_b": ["01_a"], "03_c": ["02_b"], "04_d": ["01_a"]}


def test_rows_are_by_depth():
    assert concepts.rows(CHAIN) == [["01_a"], ["02_b", "04_d"], ["03_c"]]


def test_boxes_stand_apart_and_lines_lead_down():
    drawn = ET.fromstring(concepts.drawn(CHAIN, "{}.html").partition("\n")[2].rpartition("\n")[0])
    boxes = [(float(one.get("x")), float(one.get("y"))) for one in drawn.iter("rect")]
    assert len(boxes) == 4 and [one.get("href") for one in drawn.iter("a")] == [f"{name}.html" for name in CHAIN]
    for n, (x, y) in enumerate(boxes):
        assert all(abs(x - a) >= concepts.WIDTH or abs(y - b) >= concepts.HEIGHT for a, b in boxes[:n])
    for line in drawn.iter("path"):
        start, *_, end = [float(y) for y in re.findall(r"[\d.]+ ([\d.]+)", line.get("d"))]
        assert start < end


def test_the_page_holds_every_chapter_and_every_question():
    pytest.importorskip("pybtex", reason="the extra lab is not installed")
    page = contents.filled((contents.places.ROOT / "book" / "teaching.md").read_text("utf-8"))
    assert "generated:" not in page
    for chapter in notebooks.chapters():
        assert f"../notebooks/{chapter}.html" in page
        assert [one["ask"] for one in form.of(chapter).taught["discussion"] if one["ask"] not in page] == []
