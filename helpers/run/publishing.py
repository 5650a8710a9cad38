"""The commands that make what a release carries beside the pages: ``pdf`` and ``zip``."""

import zipfile
from pathlib import Path

import click

from helpers import places

NAME = "what-attention-heads-look-at"
"""What the files of a release are called, without their endings."""
PAGES = places.ROOT / "_build" / "html"
TO = click.option("--to", type=click.Path(dir_okay=False, path_type=Path), help="File (default: in dist/).")


def pack(folder: Path, target: Path) -> None:
    """Zip a folder, so that it unpacks into a folder named like the file.

    Raises:
        BookError: if there is nothing in the folder.
    """
    found = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.suffix != ".map"]
    if not found:
        raise places.BookError(f"There is nothing in {folder}. Run: make site (for the data set: make data)")
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in found:
            archive.write(file, Path(target.stem) / file.relative_to(folder))


@click.command("zip")
@click.option(
    "--of", type=click.Path(file_okay=False, path_type=Path), default=PAGES, help="Folder (default: the pages)."
)
@TO
def zip_folder(of: Path, to: Path | None) -> None:
    """Pack the built pages, which need no network, or another folder, into one file."""
    target = to or places.ROOT / "dist" / f"{NAME}.zip"
    pack(of, target)
    click.echo(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


@click.command("pdf")
@TO
def pdf(to: Path | None) -> None:
    """Print the built pages as one PDF, without the reference of the package. Needs Chromium or Chrome."""
    with places.extra("book", "Printing the book"):
        from helpers.run import paper

    target = to or places.ROOT / "dist" / f"{NAME}.pdf"
    paper.write(PAGES, places.ROOT / "book" / "_toc.yml", target)
    click.echo(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


COMMANDS = (pdf, zip_folder)
