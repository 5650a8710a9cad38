"""The commands of teaching, for ``python -m helpers``."""

import time
from pathlib import Path

import click

from helpers import places
from helpers.run import durations

BUILD = places.build()
FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("chapters", nargs=-1, required=True)
@click.option("--to", type=FOLDER, default=BUILD / "course", help="Folder of the course (default: _build/course).")
@click.option("--pdf/--no-pdf", default=True, help="Print the slides, too (default, where Chromium is here).")
@click.option("--nbgrader", is_flag=True, help="Write assignments for nbgrader, too.")
def course(chapters: tuple[str, ...], to: Path, pdf: bool, nbgrader: bool) -> None:
    """Make a course of CHAPTERS (numbers or names, or 'all'): a folder and a zip.

    For each chapter a copy without solutions for students, one with them, slides that need no network, and a guide. All of
    it is made from the chapters as they are; nothing is executed.
    """
    from helpers.run import notebooks
    from helpers.run.teaching import packing, slides

    start = time.perf_counter()
    names = notebooks.chapters() if chapters == ("all",) else [*dict.fromkeys(map(notebooks.find, chapters))]
    made = packing.make(names, to.resolve(), pdf=pdf, for_nbgrader=nbgrader)
    if pdf and not slides.browser_here():
        click.echo("No Chromium is here, so the slides were not printed; any browser shows them.", err=True)
    click.echo(f"Begin with {made.folder / 'README.html'}. For students: {made.students}. All of it: {made.whole}.")
    click.echo(f"{len(names)} chapters in {durations.in_words(time.perf_counter() - start)}.")


@click.command()
@click.argument("folder", metavar="SUBMISSIONS", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--chapter", required=True, help="The chapter that was assigned: a number or a name.")
@click.option("--to", type=FOLDER, help="Folder of the grades (default: _build/grades/CHAPTER).")
@click.option("--seconds", type=click.FloatRange(1), default=20, show_default=True, help="Time of each function.")
@click.option("--memory", type=click.FloatRange(0.5), default=2, show_default=True, help="GiB of each function.")
@click.option(
    "--seed", type=click.IntRange(0), help="Of the cases that no notebook shows (default: drawn, and said)."
)
@click.option("--trusted", is_flag=True, help="Grade without isolation where there is none; only what you have read.")
def grade(
    folder: Path, chapter: str, to: Path | None, seconds: float, memory: float, seed: int | None, trusted: bool
) -> None:
    """Grade what students handed in for a chapter: a table grades.csv, and a feedback file for each.

    SUBMISSIONS holds one notebook for each student, or one folder for each. Only the functions that the exercises ask for
    are run, each in a process of its own without network and with bounds, on the printed cases and on others.
    """
    from helpers.run import notebooks
    from helpers.run.teaching import grading, sandbox

    start, name = time.perf_counter(), notebooks.find(chapter)
    shut_in = sandbox.isolated()
    if not shut_in and not trusted:
        raise places.BookError(
            "This machine cannot shut a process in (Linux with util-linux's unshare can, in most containers too), so a "
            "submission could read and delete your files. Grade elsewhere, or read the submissions and say --trusted."
        )
    click.echo(sandbox.said(shut_in), err=True)
    limits = sandbox.Limits(seconds, int(memory * 2**30))
    target = to or BUILD / "grades" / name
    places.writable(target)
    grades, drawn = grading.grade(folder, name, seed=seed, limits=limits, shut_in=shut_in)
    table, feedback = grading.write(grades, target, name)
    took = durations.in_words(time.perf_counter() - start)
    click.echo(f"{sum(one.solved for one in grades)} of {len(grades)} functions are right. Table: {table}")
    click.echo(f"Feedback: {feedback}. The other cases are those of --seed {drawn}. {took} in all.")


COMMANDS = (course, grade)
