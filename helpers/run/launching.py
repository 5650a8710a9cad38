"""The commands that write copies of the chapters (:mod:`helpers.run.launch`): ``launch`` and ``lab``."""

import subprocess
import sys
from pathlib import Path

import click

from helpers import places

FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.option("--to", type=FOLDER, required=True, help="Folder for what is made.")
@click.option("--wheel", type=click.Path(path_type=Path), help="Wheel that copies install (default: in dist/).")
def launch(to: Path, wheel: Path | None) -> None:
    """Write copies of the chapters that hosted notebooks can run, and the wheel that they install.

    Publishing makes a branch of this folder; the buttons of the built book open its notebooks.
    """
    from helpers.run import launch as copies

    *chapters, installed = copies.branch(to, wheel or places.ROOT / "dist" / copies.wheel_name())
    click.echo(f"{len(chapters)} notebooks in {to / 'notebooks'}; they install {installed.name}")


@click.command()
@click.argument("folder", type=FOLDER)
@click.option("--copy-only", is_flag=True, help="Write the notebooks without opening them.")
@click.option("--replace", is_flag=True, help="Write chapters again that are there; changes in them are lost.")
def lab(folder: Path, copy_only: bool, replace: bool) -> None:
    """Copy the chapters into FOLDER, in plain Markdown, and open them in JupyterLab."""
    from helpers.run import launch as copies

    files = copies.write(folder, replace=replace)
    click.echo(f"{len(files)} chapters in {files[0].parent}")
    if not copy_only:
        with places.extra("lab", "Opening chapters"):
            import jupyterlab  # noqa: F401
        sys.exit(subprocess.call([sys.executable, "-m", "jupyterlab", f"--notebook-dir={files[0].parent}"]))


COMMANDS = (launch, lab)
