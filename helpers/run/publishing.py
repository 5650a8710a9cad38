"""The commands that make what a release carries beside the pages: ``pdf`` and ``zip``."""

import time
import zipfile
from pathlib import Path

import click
import yaml

import helpers
from helpers import places
from helpers.run import durations
from helpers.run.failures import NotebookError

NAME = "what-attention-heads-look-at"
"""What the files of a release are called, without their endings."""
PAGES = places.ROOT / "_build" / "html"
LEFT_OUT = {".map", ".doctree"}
LONG_AGO = (1980, 1, 1, 0, 0, 0)

TO = click.option("--to", type=click.Path(dir_okay=False, path_type=Path), help="File (default: in dist/).")


def packed(folder: Path, target: Path) -> int:
    """Zip a folder, the same bytes for the same files, and return how many files that are.

    Raises:
        NotebookError: if there is nothing in the folder.
    """
    found = sorted(f for f in folder.rglob("*") if f.is_file() and f.suffix not in LEFT_OUT)
    if not found:
        raise NotebookError(f"There is nothing in {folder}; say 'make site' or 'make data' first.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in found:
            entry = zipfile.ZipInfo(f"{target.stem}/{file.relative_to(folder).as_posix()}", LONG_AGO)
            archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return len(found)


@click.command("zip")
@click.option(
    "--of", type=click.Path(file_okay=False, path_type=Path), default=PAGES, help="Folder (default: the pages)."
)
@TO
def offline(of: Path, to: Path | None) -> None:
    """Pack the built pages, which need no network, or what else is in a folder, into one file."""
    target = to or places.ROOT / "dist" / f"{NAME}.zip"
    click.echo(f"{target}: {packed(of, target)} files, {target.stat().st_size / 1e6:.1f} MB")


@click.command("pdf")
@TO
def pdf(to: Path | None) -> None:
    """Print the built pages as one PDF: solutions at the back, the reference of the package left out.

    Needs Chromium or Chrome.
    """
    with places.extra("book", "Printing the book"):
        from helpers.run import paper

    start, target = time.perf_counter(), to or places.ROOT / "dist" / f"{NAME}.pdf"
    config = yaml.safe_load((places.ROOT / "_config.yml").read_text("utf-8"))
    below = f"{config['author']}. Version {helpers.__version__}."
    toc = places.ROOT / "book" / "_toc.yml"
    count = paper.make(PAGES, toc, target, title=config["title"], below=below)
    took = durations.in_words(time.perf_counter() - start)
    click.echo(f"{target}: {count} sheets, {target.stat().st_size / 1e6:.1f} MB ({took})")


COMMANDS = (pdf, offline)
