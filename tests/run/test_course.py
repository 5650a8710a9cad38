"""A course of one chapter: copies for students and instructors, slides, guide, and what nbgrader makes of it."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import nbformat
import numpy as np
import pytest

from helpers import places
from helpers.run import course, launch, notebooks

if not all(map(find_spec, ("nbgrader", "sphinx_revealjs"))):  # looked for only: every process would import them
    pytest.skip("the extras book and course are not installed", allow_module_level=True)

CHAPTER = "04_dependency_heads"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a course, in a path with a space, that held something before."""
    folder = tmp_path_factory.mktemp("a course") / "heads"
    (folder / "students").mkdir(parents=True)
    (folder / "students" / "old.ipynb").write_text("{}")
    (folder / "mine.txt").write_text("kept")
    packed = folder.with_name(launch.WHEEL)
    packed.write_bytes(b"wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BOOK_REPOSITORY", "")
        course.make([CHAPTER], folder, packed)
    return folder


def test_a_course_is_a_folder_and_a_zip(folder):
    assert (folder / "mine.txt").read_text() == "kept" and not (folder / "students" / "old.ipynb").exists()
    with zipfile.ZipFile(folder / "students.zip") as packed:
        names = [name for name in packed.namelist() if not name.endswith("/")]
        assert sorted(names) == [f"students/{name}" for name in (f"{CHAPTER}.ipynb", "README.md", launch.WHEEL)]
        cells = json.loads(packed.read(f"students/{CHAPTER}.ipynb"))["cells"]
        assert any(f'wheel = "{launch.WHEEL}" if' in "".join(cell["source"]) for cell in cells)
    with zipfile.ZipFile(folder.with_name("heads.zip")) as packed:
        names = set(packed.namelist())
    assert {"heads/README.html", f"heads/solutions/{CHAPTER}.ipynb"} <= names
    assert f"heads/nbgrader/source/{CHAPTER}/{launch.WHEEL}" in names and "heads/mine.txt" not in names


def test_pages_of_a_course_lead_to_its_files(folder):
    for page in (folder / "README.html", folder / "guide" / f"{CHAPTER}.html", folder / "slides" / f"{CHAPTER}.html"):
        linked = re.findall(r'(?:href|src)="([^"#]+)"', page.read_text("utf-8"))
        own = [name for name in linked if not name.startswith(("https://", "data:"))]
        assert own and [name for name in own if not (page.parent / name).is_file()] == []


def everything(notebook):
    """All that is written in a notebook, its outputs included, one cell after another."""
    cells = [[cell.source, json.dumps(cell.get("outputs", []), ensure_ascii=False)] for cell in notebook.cells]
    return "\n".join(text for cell in cells for text in cell)


@pytest.mark.parametrize("chapter", notebooks.chapters())
def test_students_get_no_solution_and_instructors_get_both(chapter):
    stored = nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4)
    student, instructor = course.student(launch.copy(chapter, course.wheel())), course.instructor(chapter)
    gated = re.compile(r"^`{3,}\{solution-start\}.*?^`{3,}\{solution-end\}", re.MULTILINE | re.DOTALL)
    rest = gated.sub("", everything(stored))
    inside = "\n".join(solution[0] for solution in gated.finditer(everything(stored)))
    secret = {line for line in inside.split("\n") if len(line) > 20 and "{" not in line and line not in rest}
    assert len(secret) > 5 and [line for line in secret if line in everything(student)] == []
    assert "_solution" not in everything(student) and "Solution to" not in everything(student)
    for made in (student, instructor):
        nbformat.validate(made)
        checks = re.findall(r'exercises\.check\(\s*"\w+"', "\n".join(cell.source for cell in made.cells))
        assert checks == list(dict.fromkeys(re.findall(r'exercises\.check\(\s*"\w+"', rest)))


@pytest.mark.parametrize("chapter", notebooks.chapters())
def test_instructors_answers_pass_the_tests_and_the_stub_fails(chapter):
    module = import_module(f"helpers.exercises.{chapter[3:]}")
    marked = [c for c in course.instructor(chapter).cells if "nbgrader" in c.metadata and c.cell_type == "code"]
    assert len(marked) >= 2
    for answer, test in zip(marked[::2], marked[1::2], strict=True):
        space = {"np": np, "exercises": module}
        exec(answer.source, space)
        exec(test.source, space)
        exec(answer.source.partition("### BEGIN SOLUTION")[0], space)
        with pytest.raises(AssertionError, match="not solved yet"):
            exec(test.source, space)


@pytest.mark.journey
def test_nbgrader_gives_all_points_to_the_solutions_and_fewer_to_a_wrong_answer(folder, tmp_path):
    """The way of nbgrader's documentation from the source to the table; of the chapter only exercises are run."""
    root = tmp_path / "a course"
    shutil.copytree(folder / "nbgrader", root)

    def nbgrader(*arguments):
        command = [sys.executable, "-m", "nbgrader", *arguments]
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # where nbgrader finds alembic
        done = subprocess.run(command, cwd=root, env=os.environ | {"PATH": path}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def shortened(notebook):
        needed = f"import numpy as np\nfrom helpers.exercises import {CHAPTER[3:]} as exercises"
        exercises = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
        notebook.cells = [*notebook.cells[:2], nbformat.v4.new_code_cell(needed, id="needed"), *exercises]
        return notebook

    def hand_in(student, notebook):
        file = root / "submitted" / student / CHAPTER / f"{CHAPTER}.ipynb"
        file.parent.mkdir(parents=True)
        nbformat.write(notebook, file)

    source = root / "source" / CHAPTER / f"{CHAPTER}.ipynb"
    nbformat.write(shortened(nbformat.read(source, as_version=4)), source)
    nbgrader("generate_assignment", CHAPTER)
    given = sorted(file.name for file in (root / "release" / CHAPTER).iterdir())
    assert given == [f"{CHAPTER}.ipynb", "README.md", launch.WHEEL]
    released = nbformat.read(root / "release" / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
    assert "SOLUTION" not in everything(released) and "member" not in everything(released)
    hand_in("right", shortened(nbformat.read(folder / "solutions" / f"{CHAPTER}.ipynb", as_version=4)))
    for cell in released.cells:  # one is solved, the other as it was given out
        if "def offset_parser" in cell.source:
            cell.source += "\n\noffset_parser = lambda *case: [*exercises.offset_parser.results(*case).values()][0]"
    hand_in("half", released)
    nbgrader("autograde", CHAPTER)
    nbgrader("export")
    with (root / "grades.csv").open() as table:
        scores = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(table)}
    assert scores == {"right": (4, 4), "half": (2, 4)}
    assert not [*root.glob("autograded/**/*.whl")]


@pytest.mark.parametrize("chapter", notebooks.chapters())
def test_slides_and_guide_have_all_parts_of_a_chapter(chapter):
    told = course.outline(chapter)
    assert set(told["skip"]) <= {section["title"] for section in told["sections"]}
    assert all(told[part] for part in ("box", "limits", "summary", "misconceptions", "discussion", "predictions"))
    assert [told["exercises"][n]["kind"] for n in (0, -1)] == ["Predict", "Open project"]
    slides = [cell for cell in course.deck(told).cells if "tags" in cell.metadata]
    assert sum(cell.metadata.tags == ["figure"] for cell in slides) >= 4


def test_slides_are_whole_without_a_network(folder, chromium):
    chromium.open(folder / "slides" / f"{CHAPTER}.html", settle=2)
    assert chromium.problems == []
    assert chromium.evaluate("Reveal.getTotalSlides()") == len(course.deck(course.outline(CHAPTER)).cells) / 2
    assert chromium.evaluate("[...document.images].every((one) => one.naturalWidth > 400)")
    assert chromium.evaluate("document.querySelectorAll('mjx-container svg').length") > 0


def test_the_page_on_teaching_has_every_chapter_and_every_question(assemble):
    page = assemble.filled((places.ROOT / "book" / "teaching.md").read_text("utf-8"), places.ROOT)
    assert "generated:" not in page
    for chapter in notebooks.chapters():
        assert f"<../notebooks/{chapter}>" in page
        assert [item["ask"] for item in course.outline(chapter)["discussion"] if item["ask"] not in page] == []
