"""The command line, ``python -m helpers --help``: each command is a few lines over a function that a notebook can call, too."""

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from unittest.mock import patch

import click

from helpers import DTYPES, TASKS, places

BUILD = places.build()
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
THERE = click.Path(exists=True, file_okay=False, path_type=Path, resolve_path=True)
FROM_1 = click.IntRange(1)
Names = Sequence[str]
Place = Path | None
Given = Sequence[tuple[str, str]]


class Commands(click.Group):
    """Commands whose foreseen errors end in their message, not in a traceback, and that leave the environment as it was."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order in which a reader needs them

    def invoke(self, ctx: click.Context) -> object:
        try:
            with patch.dict(os.environ):
                return super().invoke(ctx)
        except BrokenPipeError:  # whoever read what is printed has seen enough
            raise
        except (places.BookError, OSError) as error:
            raise click.ClickException(str(error)) from None


def named(ctx: click.Context, parameter: click.Parameter, given: str | tuple[str, ...]) -> str | list[str]:
    """The model, or models, that a reader names; folders by their absolute path."""
    from helpers.run.notebooks import resolved

    return resolved(given) if isinstance(given, str) else [*dict.fromkeys(map(resolved, given))]


def into_environment(ctx: click.Context, parameter: click.Parameter, value: object) -> None:
    """Hand an option to the chapters' kernels: ``--batch-size 4`` as ``BOOK_BATCH_SIZE=4``."""
    if value is not None:
        os.environ[f"BOOK_{parameter.name.upper()}"] = str(value)


def in_checkout(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
    """Refuse to change the book's own files where it is an installed package."""
    if value and places.INSTALLED:
        raise click.UsageError(f"{parameter.opts[0]} needs a checkout; this is a wheel's package, in {places.HOME}.")
    return value


MODEL_HELP = "A short name, a hub id or a folder; may be repeated (default: minilm)."
MODEL = click.option(
    "--model", default="minilm", show_default=True, callback=named, help="A short name, a hub id or a folder."
)
MODELS = partial(click.option, "--model", "models", multiple=True, callback=named)
GIVEN = partial(click.option, "-p", "given", nargs=2, multiple=True, metavar="NAME VALUE")
PROFILE = partial(click.option, "--profile", type=click.Choice(["smoke", "book", "full"]), default="book")
TO = partial(click.option, "--to", type=FOLDER)
RECORD = partial(click.option, "--record", is_flag=True, callback=in_checkout)
SETTING = partial(click.option, callback=into_environment, expose_value=False)
DATA = SETTING("--data", type=THERE, help="Folder of real corpora (or BOOK_DATA).")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="attention-heads-book")
def main() -> None:
    """What do the attention heads of a BERT-like encoder look at, and which of them matter?"""


@main.command()
@click.argument("chapters", nargs=-1, required=True)
@MODELS(help=MODEL_HELP)
@PROFILE(help="smoke: seconds; book: what the pages show (default); full: real corpora.")
@GIVEN(help="Set any parameter of the chapters.")
@DATA
@SETTING("--device", help="cpu, cuda, cuda:1, mps, ... (default: the best that there is).")
@SETTING("--name", help="File the numbers of a model in a folder under this name instead of the folder's.")
@SETTING("--dtype", type=click.Choice(DTYPES), help="What the model computes in (default: float32).")
@SETTING("--batch-size", type=FROM_1, help="Rows in a batch (default: each measurement's own).")
@SETTING("--workers", type=FROM_1, help="Processes that measure together (default: 1).")
@SETTING("--dask", help="Address of a Dask scheduler whose workers measure instead: tcp://node:8786.")
@TO(help="Folder for the executed notebooks (default: _build/runs/PROFILE/MODEL).")
@RECORD(help="Keep the numbers in data/results instead of _build/runs/results.")
@click.option("--force", is_flag=True, help="Execute also what an earlier run of several chapters has finished.")
@click.option("--at-a-time", "jobs", type=FROM_1, help="Chapters executed together (default: 2; with full 1).")
def run(
    chapters: Names, models: Names, profile: str, given: Given, to: Place, record: bool, force: bool, jobs: int | None
) -> None:
    """Execute chapters on models and texts of your choice.

    CHAPTERS are numbers or names, or 'all'; papermill executes them. Several chapters go on where an interrupted run of the
    same command stopped, even a killed one; with --profile full also in the middle of a chapter. A chapter that a model
    cannot do is skipped, one that fails does not stop the others. 'all' ends in one HTML report for each model, report.html,
    beside the executed notebooks.

    The parameters of a chapter are shown by: papermill --help-notebook notebooks/NAME.ipynb
    """
    from filelock import FileLock

    from helpers.run import notebooks

    names, values = notebooks.select(chapters), notebooks.read_values(given)
    results = places.book_data() / "results" if record else places.results()
    several, problems = len(names) > 1, 0
    own = any(name not in ("model", "other") and notebooks.is_path(text) for name, text in given)
    if models:
        from helpers import encoders

        for model in models:
            encoders.load(model)  # one that cannot be loaded is one message, at once, not one for each chapter
    for model in models or [values.get("model", "minilm")]:
        kept = places.OWN if own and profile == "book" else profile
        folder = to if to and len(models) < 2 else (to or BUILD / "runs" / kept) / places.label(model)
        with FileLock(folder / ".lock", timeout=0) if several else nullcontext():  # one such command at a time
            options = {"profile": profile, "results": results, "given": values | {"model": model}}
            options |= {"at_a_time": jobs or (1 if profile == "full" else 2), "keep": several and not force}
            done = notebooks.run(names, folder, **options)
        click.echo("\n".join(f"{places.label(model)}  {result}" for result in done))
        click.echo(f"Executed: {folder}")
        if chapters == ("all",):
            from helpers.run import report

            click.echo(f"Report: {report.write(done, folder / 'report.html', results=results, profile=profile)}")
        problems += sum(result.state == "failed" or (bool(result.problem) and not several) for result in done)
    click.echo(f"Numbers: {results}{' (a try: no table has them)' * (profile == 'smoke')}")
    if problems:
        sys.exit(1)


@main.command()
@click.argument("sentence")
@MODEL
@click.option("--to", type=FILE, default=BUILD / "look.html", help="The page (default: _build/look.html).")
def look(sentence: str, model: str, to: Path) -> None:
    """Show where every head looks in a sentence of yours, on one page that needs no network."""
    from helpers import encoders
    from helpers.run import live

    places.write(to, live.look(sentence, encoders.load(model)))
    click.echo(f"Open {to}")


@main.command()
@MODEL
@click.option("--to", type=FILE, default=BUILD / "card.html", help="The page (default: _build/card.html).")
def card(model: str, to: Path) -> None:
    """Measure a model on small samples, and show its heads on one page that needs no network: chapter 14's card."""
    from helpers.run.card import card as measured

    click.echo(f"Open {measured(model).save(to)}")


@main.command()
@click.argument("what", nargs=-1, type=click.Choice(["models", "corpora", "machine"]))
@DATA
@click.option("--quick", is_flag=True, help="Do not read corpora to count what is in them.")
def info(what: Names, quick: bool) -> None:
    """Show which models and corpora are here, and what this machine is."""
    from helpers.run import info as here

    for part in what or ("models", "corpora", "machine"):
        click.echo(here.text(part, counts=not quick))


@main.command()
@click.argument("names", nargs=-1, required=True)
def fetch(names: Names) -> None:
    """Bring models or corpora onto this machine.

    NAMES: mpnet (a model); gum, ewt, squad, mrpc, rte, mnli, snli, wikitext, inspec, glove (corpora and word
    vectors). From official addresses, in pinned versions. What is there is kept; after a broken connection give
    the same command again.
    """
    from helpers import encoders
    from helpers.corpora import fetching
    from helpers.run.notebooks import unknown

    known = [*encoders.KNOWN, *fetching.RECIPES]
    for name in set(names) - set(known):
        raise places.BookError(unknown("There is no recipe to fetch", name, known))
    for name in names:
        files = [encoders.fetch(name)] if name in encoders.KNOWN else fetching.fetch(name)
        click.echo("\n".join(f"{name}: {file}" for file in files))


@main.command()
@click.argument("task", type=click.Choice(TASKS))
@MODEL
@DATA
@TO(help="Folder of the adapter (default: data/adapters/MODEL-TASK).")
@GIVEN(help="Set any setting of a recipe, such as rate, steps, batch_size, precision, seed.")
@click.option("--fresh", is_flag=True, help="Begin anew, and replace an adapter that is there.")
@click.option("--score", is_flag=True, help="Train nothing; only score the adapter that is there and write its card.")
def train(task: str, model: str, to: Path | None, given: Given, fresh: bool, score: bool) -> None:
    """Train an adapter that lets an encoder do a task, and score it.

    An adapter is LoRA and a head. mlm: restore masked words (WikiText); qa: find answers in a text (SQuADShifts); paraphrase (MRPC); entailment: three
    classes (MNLI, SNLI); rte: two classes; keywords: tag the words of keyphrases (Inspec). 'python -m helpers info corpora'
    shows where the corpora are looked for. A run that was interrupted, even killed, goes on from its last checkpoint when
    the same command is given again. Afterwards encoders.load(MODEL, task=TASK) has the adapter in it.
    """
    from helpers import adapters
    from helpers.run import notebooks, training

    folder = to or adapters.folder_of(model, task)
    if score:
        card = training.score(folder, model)
    else:
        changes = {name: notebooks.read_yaml(name, value) for name, value in given}
        card = training.train(task, model, to=folder, fresh=fresh, **changes)
    click.echo(training.as_markdown(card))
    click.echo(f"The adapter is in {folder}")


@main.command()
@MODELS(help=MODEL_HELP)
@RECORD(help="Keep the numbers in data/results, for the book's own atlas, and redraw its picture.")
@click.option("--force", is_flag=True, help="Measure also what has been measured with these weights.")
@TO(default=BUILD / "atlas", help="Folder of the page (default: _build/atlas).")
def atlas(models: Names, record: bool, force: bool, to: Path) -> None:
    """Measure models for the atlas of heads, and write its page.

    The page shows all models that are measured. A model is a short name, a hub id, a folder, any of these with @random, or
    the name of an adapter's folder (minilm-qa). Measured on the book's own texts, on one core a minute for minilm; what
    chapters have recorded is shown beside it.
    """
    from helpers.run import atlas as heads

    os.environ["BOOK_RESULTS"] = str((places.book_data() if record else BUILD / "runs") / "results")
    for name in models or ["minilm"]:
        encoder = heads.load(name)
        measured = force or not heads.known(encoder)
        click.echo(
            f"{name}: {heads.record(encoder) if measured else 'measured already (a quantity that is new needs --force)'}"
        )
    if record:
        picture, first = places.ROOT / "book" / "_static" / "atlas.png", next(iter(heads.recorded()))
        places.write(picture, heads.picture(heads.models([first])[first]))  # for the README and the welcome page
        click.echo(f"Picture: {picture}")
    click.echo(f"Open {heads.write(to)}")


@main.command()
@click.argument("chapters", nargs=-1)
@MODELS(help="Only this model, with --to also its controls; may be repeated (default: all that are recorded).")
@click.option("--own", is_flag=True, help="Show your own runs (_build/runs/results), too, before the book's.")
@click.option("--to", type=FILE, help="File to write: .csv, .parquet, .jsonl or .tex.")
@click.option("--profile", help="With --to, only runs of this profile: book, full, or own (on corpora of yours).")
@click.option("--quantity", "quantities", multiple=True, help="With --to, only this quantity; may be repeated.")
def scoreboard(chapters: Names, models: Names, own: bool, to: Place, profile: str | None, quantities: Names) -> None:
    """Print the papers' results beside ours, or write all numbers.

    Of each finding of CHAPTERS (numbers or names; default: all): what the paper reports, what was recorded here, and whether
    it holds. With --to FILE, write the recorded numbers themselves as one long table, a row a number: model, profile,
    chapter, quantity, layer and head (from 1), value, interval, control and more; beside it where they are from
    (FILE.runs.json) and what columns and quantities are (FILE.datapackage.json). The page "The numbers" lists all
    quantities. Numbers of runs with --profile smoke mean nothing, and are written only with that profile.
    """
    from helpers import scoreboard as board
    from helpers.run import exporting, notebooks, part

    if own:
        os.environ.setdefault("BOOK_RESULTS", str(places.results()))
    names, models = notebooks.select(chapters), [exporting.recorded_name(name) for name in models]
    if to is None:
        about = {"board": board.select(models, names), "whole": not names}
        click.echo(part("scoreboard.txt.j2", "text", scoreboard=board, **about).rstrip("\n"))
        return
    numbers = exporting.select(models, profile, names, quantities)
    for file in exporting.write(numbers, to):
        click.echo(file)
    if own and profile is None and (tries := len(board.results.all_runs(["smoke"]))):
        click.echo(f"Not in it: {tries} tries (--profile smoke).")


@main.command()
@click.argument("chapters", nargs=-1, required=True)
@TO(default=BUILD / "course", help="Folder of the course (default: _build/course).")
@click.option("--wheel", type=FILE, help="What students install (default: the wheel in dist/).")
def course(chapters: Names, to: Path, wheel: Place) -> None:
    """Make a course of chapters, to teach with.

    CHAPTERS are numbers or names, or 'all'. A course is a folder and a zip. For each chapter it has a copy without solutions
    for students, one with them, slides that need no network, a guide, and an assignment for nbgrader. All of it is made from
    the chapters as they are; nothing is executed.
    """
    from helpers.run import course as teaching
    from helpers.run import launch, notebooks

    wheel = wheel or places.ROOT / "dist" / launch.WHEEL
    packed = teaching.make(notebooks.select(chapters), to.resolve(), wheel)
    click.echo(f"Begin with {to / 'README.html'}. For students: {to / 'students.zip'}. All of it: {packed}")


@main.command()
@click.argument("what", type=click.Choice(["pages", "pdf", "zip", "live", "launch", "notebooks", "data"]))
@MODELS(help="data: of which models; may be repeated (default: minilm and mpnet); live: of which (default: minilm).")
@click.option("--of", type=THERE, help="pages: folder of executed notebooks/ and results/; zip: folder to pack.")
@click.option("--to", type=click.Path(path_type=Path), help="File or folder (default: in _build/ or dist/).")
def build(what: str, models: Names, of: Path | None, to: Path | None) -> None:
    """Build what is published: pages, PDF, zip, notebooks, data; or a live page of your own.

    pages: the book, from stored or executed chapters; pdf: the built pages, printed by Chromium; zip: the built pages, or a
    folder, as one file; launch: copies of the chapters for hosted notebooks, and the wheel that they install; notebooks:
    copies in plain Markdown with their outputs, for JupyterLab (those that are there are left alone); data: the recorded
    results as a data set; live: a page on which a reader's browser runs the model that --model names, a small BERT.
    """
    from helpers.run import exporting, launch, pages

    if what in ("pages", "pdf", "launch") and places.INSTALLED:
        raise click.UsageError(f"build {what} needs a checkout; this is a wheel's package, in {places.HOME}.")
    dist = places.ROOT / "dist"
    if what == "pages":
        pages.stage(BUILD / "stage", (of or places.ROOT) / "notebooks")
        made = pages.build(BUILD / "stage", to or places.ROOT, of and of / "results")
    elif what == "pdf":
        made = pages.write_pdf(to or dist / f"{pages.NAME}.pdf")
    elif what == "zip":
        made = pages.pack(of or pages.HTML, to or dist / f"{pages.NAME}.zip")
    elif what == "live":
        from helpers import encoders
        from helpers.run import live

        made = (to or BUILD / "live") / "index.html"
        places.write(made, live.write(encoders.load(*models[:1]), made.parent))
    elif what == "launch":
        made = launch.branch(to or BUILD / "launch", dist / launch.WHEEL)[0].parent
    elif what == "notebooks":
        made = launch.write(to or Path("chapters"), replace=False, outputs=True)[0].parent
    else:
        made = exporting.write_data_set(to or BUILD / "data", models or ["minilm", "mpnet"])[0].parent
    weight = f", {made.stat().st_size / 1e6:.0f} MB" if what in ("pdf", "zip") else ""
    click.echo(f"Made {made}{weight}")


@main.command()
@click.argument("executed", type=THERE)
@click.option("--keep", is_flag=True, callback=in_checkout, help="Then keep the notebooks and records in the book.")
def compare(executed: Path, keep: bool) -> None:
    """Compare the tables of a run with those that the book keeps.

    Those of the run are in EXECUTED/results, the book's in data/results. Between processors refitted probes may differ by what helpers/run/tolerances.yml allows; any other difference is listed, and ends in exit status 1.
    """
    from helpers.run import comparing

    both = executed / "results", places.book_data() / "results"
    apart = comparing.differences(*both)
    click.echo(comparing.rule_of(*both))
    click.echo("\n".join(apart.values()) or "Every table is the stored one.")
    if keep:
        comparing.keep(executed, places.ROOT)
    elif apart:
        sys.exit(1)


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):  # a console that knows few letters shows '?' for the others
        stream.reconfigure(errors="replace")
    main()
