"""The recorded results as a data set: the long table in Parquet, what is in it, its licence, checksums."""

from collections.abc import Iterable
from pathlib import Path

from helpers import __version__, places, tidy
from helpers.run.templates import template

TABLE, CARD, LICENCE, SUMS = "numbers.parquet", "README.md", "LICENSE", "SHA256SUMS"
"""The files of a data set."""
MODELS = ("minilm", "mpnet")
CC0 = """The numbers in this folder are dedicated to the public domain under Creative Commons Zero 1.0 Universal (CC0 1.0):
https://creativecommons.org/publicdomain/zero/1.0/

You may copy, change and share them, for any purpose, without asking. The corpora that they were measured on are not in
this folder and stay under the terms of their owners, the encoders under theirs.
"""


def write(folder: Path, models: Iterable[str] = MODELS, profiles: Iterable[str] = tidy.PROFILES) -> list[Path]:
    """Write the data set of some models into a folder; the same records give the same bytes.

    Returns:
        Its files, checksums last: ``sha256sum --check SHA256SUMS``.

    Raises:
        ResultError: for a model of which nothing is recorded.
    """
    table = tidy.table(models, profiles)
    page = template("dataset.md.j2").render(table=table, tidy=tidy, version=__version__, file=TABLE)
    files = [tidy.write(table, folder / TABLE), folder / CARD, folder / LICENCE]
    places.write(folder / CARD, page)
    places.write(folder / LICENCE, CC0)
    places.write(folder / SUMS, "".join(f"{places.sha256(file)}  {file.name}\n" for file in files))
    return [*files, folder / SUMS]
