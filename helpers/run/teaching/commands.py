"""The command of teaching, for ``python -m helpers``."""

from pathlib import Path

import click

from helpers import places

FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("chapters", nargs=-1, required=True)
@click.option("--to", type=FOLDER, help="Folder of the course (default: _build/course).")
@click.option("--nbgrader", is_flag=True, help="Write the folder of an nbgrader course, too.")
def course(chapters: tuple[str, ...], to: Path | None, nbgrader: bool) -> None:
    """Make a course of CHAPTERS (numbers or names, or 'all'): a folder and a zip.

    For each chapter a copy without solutions for students, one with them, slides that need no network, and a guide. All of
    it is made from the chapters as they are; nothing is executed.
    """
    from helpers.run import notebooks
    from helpers.run.teaching import packing

    names = notebooks.chapters() if chapters == ("all",) else [*dict.fromkeys(map(notebooks.find, chapters))]
    folder = (to or places.build() / "course").resolve()
    packed = packing.make(names, folder, for_nbgrader=nbgrader)
    click.echo(f"Begin with {folder / 'README.html'}. For students: {folder / 'students.zip'}. All of it: {packed}.")


COMMANDS = (course,)
