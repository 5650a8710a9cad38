"""``export`` and ``data``: the commands that hand recorded numbers to readers."""

import os
from pathlib import Path

import click

from helpers import places, tidy
from helpers.run.names import resolved

PROFILES = (*tidy.PROFILES, places.OWN)


def _whose(ctx: click.Context, parameter: click.Parameter, own: bool) -> None:
    os.environ.setdefault("BOOK_RESULTS", str(places.results() if own else places.book_data() / "results"))


OWN = click.option(
    "--own",
    is_flag=True,
    expose_value=False,
    callback=_whose,
    help="Show your own runs (_build/runs/results) too, before those that travel with the book.",
)


def _words(ctx: click.Context, parameter: click.Parameter, given: str | None) -> list[str]:
    return (given or "").split()


@click.command()
@click.option(
    "--models", callback=_words, help="Models, with spaces between them; their controls come along (default: all)."
)
@click.option("--profile", type=click.Choice(PROFILES), help="Only runs of this profile (default: all).")
@click.option("--chapters", callback=_words, help="Only these chapters (numbers or names), with spaces between them.")
@click.option("--quantities", "named", callback=_words, help="Only these quantities, with spaces between them.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(tidy.FORMATS.values())),
    help="Default: what the name of the file says, else csv.",
)
@click.option("--to", type=click.Path(dir_okay=False, path_type=Path), help="File to write (default: print it).")
@OWN
def export(
    models: list[str], profile: str | None, chapters: list[str], named: list[str], form: str | None, to: Path | None
) -> None:
    """Write the recorded numbers of heads, layers and models as one long table.

    A row is a number: model, sha256 of its weights, profile, chapter, quantity, layer and head (from 1), what it is of,
    corpus, split, n, value, interval, control, unit. The page "The numbers" of the book lists all quantities.
    """
    if to is None and form == "parquet":
        raise click.UsageError("Parquet is no text: say with --to which file to write.")
    from helpers.run import notebooks

    modules = [notebooks.find(name)[3:] for name in chapters]
    table = tidy.table([resolved(m) for m in models] or None, [profile] if profile else PROFILES, modules)
    table = tidy.chosen(table, "quantity", named)
    if to is None:
        click.echo(tidy.as_bytes(table, form or "csv"), nl=False)
        return
    tidy.write(table, to, form)
    click.echo(f"{len(table):,} numbers in {to}")


@click.command()
@click.option(
    "--models", default="minilm mpnet", show_default=True, callback=_words, help="Models, with spaces between them."
)
@click.option(
    "--to", type=click.Path(file_okay=False, path_type=Path), help="Folder to write (default: _build/data)."
)
def data(models: list[str], to: Path | None) -> None:
    """Write the recorded results that travel with the book as a data set: Parquet, README, licence, checksums.

    The same records give the same bytes.
    """
    from helpers.run import dataset

    for file in dataset.write(to or places.ROOT / "_build" / "data", map(resolved, models)):
        click.echo(file)
