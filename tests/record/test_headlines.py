"""What the chapters claim in their summaries survives its control: each point is a finding that holds on the book's texts, or in the run that it names, and no control shows it."""

import re

import nbformat
import pytest
import yaml
from conftest import BOOK, FULL, MPNET, recorded

from helpers import places, results, scoreboard
from helpers.run import notebooks

KEY_WORDS = ("heads_that_favour_key_words_summed", "key_word_attention")
CHAPTERS = scoreboard.chapters()
APART = ("**How.**", "**Not shown.**")
"""What a point of a summary may begin with that is no headline: a method, or what stays open."""
OF_MPNET = ("03_no_op", "13_keywords", "14_your_own_model")
UNMEASURED = {"01_transformer_refresher": "it computes one head by hand and records nothing"}


def points(chapter: str) -> list[str]:
    """The points of the notebook's summary."""
    cells = nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4).cells
    text = next((cell.source for cell in cells if re.search("^## Summary", cell.source, re.M)), None)
    assert text, f"{chapter} has no '## Summary'"
    part = re.split(r"^## Summary$", text, flags=re.M)[1].split("**Further reading.**")[0].split("\n## ")[0]
    listed = [" ".join(point.split()) for point in re.split(r"^- ", part, flags=re.M)[1:]]
    return [point if point.startswith(APART) else re.sub(r"^\*\*(.+?)\*\*", r"\1", point) for point in listed]


@pytest.mark.parametrize("chapter", [c for c in notebooks.chapters() if c not in UNMEASURED])
def test_every_point_of_a_summary_is_a_headline(chapter):
    stated, told = points(chapter), [claim.claim for claim in CHAPTERS[chapter]["headlines"]]
    assert 3 <= len(stated) <= 7
    for point in stated:
        first = any(point == text or point.startswith((f"{text} ", f"{text}\n")) for text in told)
        assert first or point.startswith(APART), f"no headline of {chapter} is the first sentence of {point!r}"
    for text in told:
        assert any(point.startswith(text) for point in stated), f"{text!r} is not in the summary of {chapter}"
    assert told, "a chapter that measures claims something"


@pytest.mark.parametrize("chapter", [c for c, claims in CHAPTERS.items() if claims["headlines"]])
def test_every_headline_holds_and_no_control_shows_it(chapter):
    """In the run that it names, and in every other run of the model of the pages that has its number; some in mpnet's, too."""
    for run in (BOOK, FULL, MPNET)[: 2 + (chapter in OF_MPNET)]:
        if chapter[:2] > "14" and run != BOOK and run[1] not in results.runs(chapter[3:], profile=run[0], own=False):
            continue  # a new chapter: not on real corpora yet
        for claim in CHAPTERS[chapter]["headlines"]:
            if claim.run == "full" and run == BOOK:
                continue
            assert not claim.paper and claim.rule not in ("", "shown"), claim.claim
            cell = scoreboard.judge(claim, scoreboard.numbers_of(recorded(chapter[3:], run).table))
            named = claim.run == run[0] and run != MPNET
            assert cell.verdict == scoreboard.HOLDS or (cell.verdict == scoreboard.ABSENT and not named), (
                claim,
                cell,
            )


def test_the_front_pages_say_what_is_recorded():
    """Their findings, the counts of the scoreboard, and how many families can be read."""
    tally = scoreboard.tally(scoreboard.judged()).sum()
    counts = [int(tally[verdict]) for verdict in ("holds", "fails", "mixed", "undecided", "also the control")]
    best = results.recorded("dependency_heads").row("best_for_relation", of="obj")
    surface = results.recorded("surface_patterns")
    cls, times = surface.number("share_cls", layer=None).value, surface.number("times_even_share", of="cls").value
    the = surface.number("first_times_even", of="“the” at place 0").value
    words = results.recorded("keywords")
    random = {name: words.rows(name, network="@random").value for name in KEY_WORDS}
    assert abs(the / times - 1) < 0.05 and random[KEY_WORDS[0]].tolist() == [72] and random[KEY_WORDS[1]].max() < 0.04
    families = yaml.safe_load((places.HOME / "helpers" / "families.yml").read_text("utf-8"))
    assert f"of {len(families)} families" in (places.ROOT / "book" / "intro.md").read_text("utf-8")
    for page in ("README.md", "book/intro.md"):
        text = (places.ROOT / page).read_text("utf-8")
        assert f"lines of head {best.layer:.0f}-{best['head']:.0f} lead from" in text
        assert f"`[CLS]` gets {100 * cls:.0f} %, {times:.0f} times its even share" in text
        assert f"all {int(random[KEY_WORDS[0]].iloc[0])} heads seem to pick out key words" in text
        sentence = "into {} statements that our numbers can judge. On two sentence encoders {} hold and {} fail. Most others come out mixed or are undecided; {} come true, but a control passes"
        assert sentence.format(sum(counts), *counts[:2], counts[4]) in text and counts[4] < min(counts[2:4])
