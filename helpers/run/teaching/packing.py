"""A course from chapters: copies for students and for instructors, slides, a guide, as a folder and a zip."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import nbformat
from tqdm import tqdm

from helpers import places
from helpers.run.teaching import copies, form, slides
from helpers.run.templates import template

OURS = ("students", "solutions", "slides", "guide", "static", "students.zip")
"""What is made anew in a course's folder; anything else in it is the teacher's own and stays."""

NBGRADER = """\
c = get_config()
c.CourseDirectory.course_id = "heads"
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError"}
c.ExecutePreprocessor.timeout = 900  # seconds of a cell
c.CsvExportPlugin.to = "grades.csv"
"""
"""The configuration of an nbgrader course."""


def make(chapters: Sequence[str], folder: Path, *, for_nbgrader: bool = False) -> Path:
    """Write a course of chapters, anew where it was written before, and return the zip of it all.

    Args:
        chapters: names of their files, in the order of the course.
        folder: where to; other files in it stay.
        for_nbgrader: write the folder of an nbgrader course, too.
    """
    places.writable(folder)
    for name in OURS:
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).unlink(missing_ok=True)
    forms = [form.of(chapter) for chapter in chapters]
    slides.carry(folder / "static")
    for told in tqdm(forms, desc="course", unit="chapter"):
        _notebook(copies.student(told.chapter), folder / "students" / f"{told.chapter}.ipynb")
        instructor = copies.instructor(told.chapter)
        _notebook(instructor, folder / "solutions" / f"{told.chapter}.ipynb")
        if for_nbgrader:
            source = folder / "nbgrader" / "source" / told.chapter / f"{told.chapter}.ipynb"
            _notebook(copies.without_solutions(instructor), source)
        slides.write(told, folder / "slides" / f"{told.chapter}.html")
        given = {"lesson": form.lesson, "prediction": form.PREDICTION, "discussion": form.DISCUSSION}
        guide = template("guide.md.j2").render(form=told, **given)
        _page(guide, told.title, folder / "guide" / told.chapter, "../")
    if for_nbgrader:
        places.write(folder / "nbgrader" / "nbgrader_config.py", NBGRADER)
    _page(template("course.md.j2").render(forms=forms, for_nbgrader=for_nbgrader), "A course", folder / "README")
    shutil.make_archive(str(folder / "students"), "zip", folder, "students")
    return Path(shutil.make_archive(str(folder), "zip", folder.parent, folder.name))


def _notebook(notebook: nbformat.NotebookNode, file: Path) -> None:
    nbformat.validate(notebook)
    places.write(file, nbformat.writes(notebook) + "\n")


def _page(text: str, title: str, file: Path, root: str = "") -> None:
    """A page as Markdown and as HTML; ``root`` leads from it to the folder of the course."""
    places.write(file.with_name(f"{file.name}.md"), text)
    page = template("course.html.j2").render(title=title, body=slides.html(text), root=root)
    places.write(file.with_name(f"{file.name}.html"), page)
