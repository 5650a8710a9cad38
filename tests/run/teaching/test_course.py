"""A course of two chapters, made once: its files, the form it is made from, slides, guides, and a copy that runs."""

import re
import zipfile
from types import SimpleNamespace

import nbformat
import pytest
from click.testing import CliRunner

from helpers import places
from helpers.__main__ import main
from helpers.run import notebooks
from helpers.run.failures import NotebookError
from helpers.run.teaching import copies, form, guide, slides

pytest.importorskip("pybtex", reason="the extra lab is not installed")
pytest.importorskip("docutils", reason="the extra book is not installed")

CHAPTERS = ("04_dependency_heads", "11_head_importance")


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "heads"
    (folder / "students").mkdir(parents=True)
    (folder / "students" / "old.ipynb").write_text("{}")
    (folder / "mine.txt").write_text("kept")
    asked = ["course", "4", "head_importance", "--to", str(folder), "--no-pdf", "--nbgrader"]
    done = CliRunner().invoke(main, asked, catch_exceptions=False)
    return SimpleNamespace(folder=folder, done=done, whole=folder.with_name("heads.zip"))


def test_a_course_is_a_folder_and_a_zip(course):
    assert course.done.exit_code == 0 and "2 chapters in" in course.done.output
    for chapter in CHAPTERS:
        for place in ("students/{}.ipynb", "solutions/{}.ipynb", "slides/{}.html", "guide/{}.md", "guide/{}.html"):
            assert (course.folder / place.format(chapter)).is_file()
        assert (course.folder / "nbgrader" / "source" / chapter / f"{chapter}.ipynb").is_file()
    assert (course.folder / "mine.txt").read_text() == "kept"
    assert not (course.folder / "students" / "old.ipynb").exists()
    with zipfile.ZipFile(course.folder / "students.zip") as packed:
        assert sorted(packed.namelist()) == ["students/", *(f"students/{chapter}.ipynb" for chapter in CHAPTERS)]
    with zipfile.ZipFile(course.whole) as packed:
        assert {"heads/README.html", "heads/slides/reveal/reveal.js"} <= set(packed.namelist())


def test_pages_of_a_course_lead_to_its_files(course):
    for page in (course.folder / "README.html", *(course.folder / "slides").glob("*.html")):
        text = page.read_text("utf-8")
        linked = [name for name in re.findall(r'(?:href|src)="([^"#]+)"', text) if not name.startswith("http")]
        assert linked and [name for name in linked if not (page.parent / name).is_file()] == []
        assert not re.search(r'(?:src|rel="stylesheet" href)="(?:https?:)?//', text), "a page that asks the network"


# ---------------------------------------------------------------------------------------- the form


@pytest.fixture(scope="module", params=notebooks.chapters())
def told(request):
    return form.of(request.param)


def test_every_chapter_has_the_form(told):
    assert len(told.box) >= 3 and len(told.summary) >= 4 and len(told.misconceptions) >= 2
    assert told.predictions and told.limits and told.run and told.needs
    assert [one.kind for one in told.exercises][0::4] == ["Predict", "Open project"]
    assert all(one < told.chapter for one in told.before) and bool(told.before) == (told.number > 1)


def test_what_is_taught_fits_the_chapter(told):
    taught, figures = told.taught, {figure.name for section in told.sections for figure in section.figures}
    assert {taught["drawing"], *taught["claims"]} <= figures and 3 <= len(set(taught["claims"])) <= 4
    assert set(taught["skip"]) <= {section.title for section in told.sections}
    assert len(taught["predictions"]) == len(told.predictions)
    assert all(set(one) == {"usual", "why"} for one in taught["predictions"])
    assert all(set(one) == {"ask", "listen"} and "?" in one["ask"] for one in taught["discussion"])
    assert all(set(one) == {"task", "full", "half"} for one in taught["rubric"]) and len(taught["rubric"]) == 3


def test_a_lesson_fits_its_time(told):
    kept = [section for section in told.sections if section.title not in told.taught["skip"]]
    assert guide.lesson(kept, 1) <= 50 and guide.lesson(told.sections, len(told.taught["discussion"])) <= 80


def test_a_guide_is_a_page_or_two_and_whole(told):
    text = guide.text(told)
    assert 400 < len(text.split()) < 1500 and "undefined" not in text and "{" not in re.sub(r"\$[^$]*\$", "", text)
    wanted = [
        *told.taught["goals"],
        told.taught["rubric"][0]["full"],
        told.predictions[0].answer,
        told.exercises[0].title,
    ]
    assert [one for one in wanted if one.split("\n")[0] not in text] == []


def test_a_deck_has_its_parts_and_no_more_than_twenty(told):
    deck = slides.deck(told)
    titles, shown = [slide.title for slide in deck], [slide.figure.name for slide in deck if slide.figure]
    assert 12 <= len(deck) <= 20
    assert titles.count("Predict") == len(told.predictions) == titles.count("What comes out")
    assert set(shown) >= {told.taught["drawing"], *told.taught["claims"]} and len(set(shown)) == len(shown)
    assert titles[-5:] == ["What this does not show", "One might think …", "Summary", "To discuss", "Exercises"]
    assert all(len(slide.text.split()) <= max(slides.MOST_LISTED, 170) for slide in deck)
    assert all(slide.figure.number.startswith(f"Fig. {told.number}.") for slide in deck if slide.figure)
    assert all(
        slide.notes for slide in deck if slide.title in ("In this chapter", "Summary", "To discuss", "Exercises")
    )
    assert sum(len(note.split()) for slide in deck for note in slide.notes) > 600, "the prose is in the notes"


def test_a_chapter_without_its_file_or_with_another_key_is_told_so(monkeypatch, tmp_path):
    monkeypatch.setattr(places, "ROOT", tmp_path)
    with pytest.raises(NotebookError, match="is missing"):
        form.teaching("04_toy")
    file = tmp_path / "helpers" / "chapters" / "toy" / "teaching.yml"
    file.parent.mkdir(parents=True)
    file.write_text("goals: []\nslides: []\n")
    with pytest.raises(NotebookError, match="claims, discussion, drawing, predictions, rubric, skip, slides"):
        form.teaching("04_toy")


def test_a_bold_claim_right_under_a_figure_is_what_its_slide_says():
    section = form.Section("", 0, [form.Figure("fig-a", "Fig. 1.1", "A caption.", b"", "")])
    form._add(section, "**It is so.** Look at the dots. They rise.")
    form._add(section, "**It is not so.** This stands further down.")
    assert slides._seen(section.items[0]) == "**It is so.** Look at the dots. They rise."
    form._add(section, "**What to notice.** The last word.")
    assert section.items[0].claim == "The last word."


def test_points_keep_the_sentences_that_lean_on_them():
    assert slides._limits("A rule. It leans on A. Another one. And that a head points says little.") == [
        "A rule. It leans on A.",
        "Another one.",
        "That a head points says little.",
    ]
    assert slides._limits(" ".join(f"Point {'long ' * 50}{n}." for n in range(9)))[-1].endswith("1.")


def test_a_number_stays_with_its_sign_and_a_head_on_one_line():
    made = slides.html("9 % of 3-5, see [here](https://example.org/3-5)")
    assert "9\u00a0% of 3\u20115" in made and 'href="https://example.org/3-5"' in made


def test_html_in_prose_is_text_and_formulas_are_formulas():
    made = slides.html("a <script> and $x_1 < y$")
    assert "&lt;script&gt;" in made and "<math" in made and "$" not in made


# ---------------------------------------------------------------------------------------- running, looking


@pytest.mark.notebooks
@pytest.mark.journey
def test_a_students_copy_runs_from_top_to_bottom(monkeypatch, tmp_path):
    chapter = CHAPTERS[0]
    (tmp_path / "in").mkdir()
    nbformat.write(copies.student(chapter), tmp_path / "in" / f"{chapter}.ipynb")
    values = notebooks.parameters(chapter, "smoke")
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path / "in")
    run = notebooks.execute(chapter, tmp_path / "out.ipynb", values, results=tmp_path / "results")
    cells = [cell for cell in nbformat.read(run.file, as_version=4).cells if cell.cell_type == "code"]
    said = [str(o) for cell in cells if "exercises.check(" in cell.source for o in cell.outputs]
    assert len(said) == 2 and all("not solved yet" in one for one in said)


@pytest.mark.browser
@pytest.mark.skipif(slides.browser_here() is None, reason="Chromium is not here")
def test_slides_open_without_a_network_and_are_printed(course):
    browser = pytest.importorskip("browser")
    with browser.browser() as page:
        page.open(course.folder / "slides" / f"{CHAPTERS[0]}.html", settle=1)
        count = page.evaluate("Reveal.getTotalSlides()")
        overflowing = """[...document.querySelectorAll('.frame')].filter((one) => one.scrollHeight > 721).length"""
        assert page.problems == [] and count == len(slides.deck(form.of(CHAPTERS[0])))
        assert page.evaluate(overflowing) == 0
        page.evaluate("Reveal.slide(2)")
        assert page.evaluate("document.querySelector('section.present img').naturalWidth") > 400
    slides.write(form.of(CHAPTERS[0]), course.folder / "printed")
    assert (course.folder / "printed" / f"{CHAPTERS[0]}.pdf").stat().st_size > 100_000
