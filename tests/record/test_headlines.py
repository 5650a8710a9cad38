"""What the chapters claim in their summaries survives its control: each point is a finding that holds on the book's texts, and no control shows it."""

import re

import nbformat
import pytest

from helpers import places, results, scoreboard
from helpers.run import notebooks

CHAPTERS = scoreboard.chapters()
APART = ("**How.**", "**Not shown.**")
"""What a point of a summary may begin with that is no headline: a method, or what stays open."""
UNMEASURED = {"01_transformer_refresher": "it computes one head by hand and records nothing"}


def points(chapter: str) -> list[str]:
    """The points of the notebook's summary."""
    cells = nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4).cells
    text = next(cell.source for cell in cells if re.search("^## Summary", cell.source, re.M))
    part = re.split(r"^## Summary$", text, flags=re.M)[1].split("**Further reading.**")[0].split("\n## ")[0]
    said = [" ".join(point.split()) for point in re.split(r"^- ", part, flags=re.M)[1:]]
    return [point if point.startswith(APART) else re.sub(r"^\*\*(.+?)\*\*", r"\1", point) for point in said]


@pytest.mark.parametrize("chapter", [c for c in notebooks.chapters() if c not in UNMEASURED])
def test_every_point_of_a_summary_is_a_headline(chapter):
    found, told = points(chapter), [claim.claim for claim in CHAPTERS[chapter]["headlines"]]
    assert 3 <= len(found) <= 7
    for point in found:
        first = any(point == text or point.startswith((f"{text} ", f"{text}\n")) for text in told)
        assert first or point.startswith(APART), f"no headline of {chapter} is the first sentence of {point!r}"
    for text in told:
        assert any(point.startswith(text) for point in found), f"{text!r} is not in the summary of {chapter}"
    assert told, "a chapter that measures claims something"


@pytest.mark.parametrize("chapter", [c for c, said in CHAPTERS.items() if said["headlines"]])
def test_every_headline_holds_and_no_control_shows_it(chapter):
    found = scoreboard.numbers_of(dict(results.all_runs(["book"], [chapter[3:]]))["minilm"].table)
    for claim in CHAPTERS[chapter]["headlines"]:
        assert not claim.paper and claim.rule not in ("", "shown"), claim.claim
        assert scoreboard.judge(claim, found).verdict == scoreboard.HOLDS, (
            claim.claim,
            scoreboard.judge(claim, found),
        )


def test_the_front_pages_say_what_is_recorded():
    """Their findings, and the counts of the scoreboard."""
    tally = scoreboard.tally(scoreboard.judged()).sum()
    counted = tally.sum() - tally["no number"]
    found = results.recorded("dependency_heads").row("best_for_relation", of="obj")
    share, low, high, distance = (f"{100 * found[column]:.0f}" for column in ("value", "low", "high", "control"))
    surface = results.recorded("surface_patterns")
    cls = surface.number("share_cls", layer=None).value
    times = surface.number("times_even_share", of="cls").value
    the = surface.number("first_times_even", of="the, its place").value
    readme, intro = ((places.ROOT / name).read_text("utf-8") for name in ("README.md", "book/intro.md"))
    assert (
        f"Of {counted} findings" in readme
        and f"{tally['holds']} hold, {tally['fails']} fail, and 9 hold of a control" in readme
    )
    assert (
        f"of {counted} findings about the heads of BERT, {tally['holds']} hold on our encoders, {tally['fails']} fail"
        in intro
    )
    assert f"Nine of the {counted} findings" in readme and tally["also the control"] == 9
    assert f"Head {found.layer:.0f}-{found['head']:.0f}" in readme
    assert (
        f"{share} % of the time [{low}, {high}] on our test documents; the best fixed distance reaches {distance} %"
        in readme
    )
    assert f"{share} % of the time, where the best fixed distance reaches {distance} %" in intro
    assert f"gets {100 * cls:.0f} %, thirty times its even share" in readme and 30 < times < 35
    assert "put *the* in its place, and *the* gets as much" in readme and abs(the / times - 1) < 0.05
