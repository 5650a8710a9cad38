"""A course from chapters: copies for students and with solutions, slides, a guide, as a folder and a zip."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from tqdm import tqdm

from helpers import places
from helpers.run import address, launch
from helpers.run.teaching import copies, form, guide, nbgrader, slides
from helpers.run.templates import template

STUDENTS, SOLUTIONS, SLIDES, GUIDE, NBGRADER = "students", "solutions", "slides", "guide", "nbgrader"
OURS = (STUDENTS, SOLUTIONS, SLIDES, GUIDE, NBGRADER, "README.md", "README.html", "students.zip")
"""What a course's folder holds; anything else in it is the teacher's own and stays."""


@dataclass(frozen=True)
class Course:
    """Where a course was written: its folder, the zip of it all and that of the students' copies."""

    folder: Path
    whole: Path
    students: Path


def make(chapters: Sequence[str], folder: Path, *, pdf: bool = True, for_nbgrader: bool = False) -> Course:
    """Write a course of chapters, anew where it was written before.

    Args:
        chapters: names of their files, in the order of the course.
        folder: where to; other files in it stay.
        pdf: print the slides, too, where this machine has a Chromium.
        for_nbgrader: write assignments for nbgrader, too.
    """
    places.writable(folder)
    for name in OURS:
        _remove(folder / name)
    for chapter in tqdm(chapters, desc="course", unit="chapter"):
        _write_chapter(chapter, folder, pdf=pdf, for_nbgrader=for_nbgrader)
    _page(_about(chapters, for_nbgrader), "A course", folder / "README")
    students = _zipped(folder / STUDENTS, folder / "students.zip")
    return Course(folder, _zipped(folder, folder.with_name(f"{folder.name}.zip")), students)


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def _write_chapter(chapter: str, folder: Path, *, pdf: bool, for_nbgrader: bool) -> None:
    told, site = form.of(chapter), address.site()
    wheel = address.raw(launch.wheel_name()) or ""
    _notebook(copies.student(chapter, site, wheel), folder / STUDENTS / f"{chapter}.ipynb")
    _notebook(copies.solution(chapter, site, wheel), folder / SOLUTIONS / f"{chapter}.ipynb")
    slides.write(told, folder / SLIDES, pdf=pdf)
    _page(guide.text(told), told.title, folder / GUIDE / chapter)
    if for_nbgrader:
        _notebook(nbgrader.assignment(chapter, site), nbgrader.place(folder / NBGRADER, chapter))


def _notebook(notebook: nbformat.NotebookNode, file: Path) -> None:
    nbformat.validate(notebook)
    places.write(file, nbformat.writes(notebook) + "\n")


def _page(text: str, title: str, file: Path) -> None:
    """A page as Markdown and as HTML."""
    places.write(file.with_name(f"{file.name}.md"), text)
    given = {"title": title, "body": slides.html(text)}
    places.write(file.with_name(f"{file.name}.html"), template("course.html.j2", escaped=True).render(given))


def _about(chapters: Sequence[str], for_nbgrader: bool) -> str:
    every = [form.of(chapter) for chapter in chapters]
    return template("course.md.j2").render(forms=every, for_nbgrader=for_nbgrader)


def _zipped(folder: Path, target: Path) -> Path:
    """A zip of a folder, its name inside."""
    with places.whole(target) as made:
        made.unlink()
        packed = shutil.make_archive(str(made), "zip", folder.parent, folder.name)
        Path(packed).replace(made)
    return target
