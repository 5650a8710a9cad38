"""``python -m helpers atlas``: models join the atlas."""

import os
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import click

from helpers import places
from helpers.run.names import resolved


@click.command()
@click.option("--models", default="minilm", show_default=True, help="Models, with spaces between them.")
@click.option(
    "--record", is_flag=True, help="Keep the numbers in data/results, so that the book's own atlas has them."
)
@click.option("--force", is_flag=True, help="Measure also what has been measured with these weights.")
@click.option(
    "--to",
    type=click.Path(file_okay=False, path_type=Path),
    default=places.build() / "atlas",
    help="Folder of the page (default: _build/atlas).",
)
def atlas(models: str, record: bool, force: bool, to: Path) -> None:
    """Measure what the atlas of heads shows of each model, and make a page of all models that are measured.

    A model is a short name, a hub id, a folder, any of these with @random, or the name of an adapter's folder (minilm-qa).
    Measured on the book's own texts, on one core a minute for minilm; what chapters have recorded is shown beside it.
    """
    from helpers.run.atlas import measuring, page

    names = [*dict.fromkeys(map(resolved, models.split()))]
    if not names:
        raise click.UsageError("Name at least one model with --models.")
    results = (places.book_data() if record else places.build() / "runs") / "results"
    with patch.dict(os.environ, {"BOOK_RESULTS": str(results)}):
        _measure(names, force=force)
        if record:
            click.echo(f"Picture: {page.picture()}")
        index = page.write(to)
        click.echo(f"Numbers: {results / measuring.PROFILE}. Open {index}")


def _measure(names: Sequence[str], *, force: bool) -> None:
    from helpers.run.atlas import measuring

    for name in names:
        encoder = measuring.load(name)
        if not force and measuring.known(encoder):
            click.echo(f"{name}: measured already")
        else:
            click.echo(f"{name}: {measuring.record(encoder)}")
