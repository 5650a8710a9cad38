"""The command line: ``python -m helpers --help``."""

import errno
import functools
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from unittest.mock import patch

import click

from helpers import places
from helpers.engine import DTYPES, TASKS, orphans
from helpers.run import durations, exporting, failures, launching, publishing, settings
from helpers.run.atlas.command import atlas
from helpers.run.settings import resolved
from helpers.run.teaching import commands as teaching

BUILD = places.build()


class Plainly(click.Group):
    """Commands whose foreseen errors end in their message, not in a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except places.BookError as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever read what is printed has seen enough
                raise
            raise click.ClickException(failures.sentence(error)) from None


class OfChapter(click.Command):
    """A command whose help shows the parameters of the chapter that is named beside --help."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if set(args) & set(ctx.help_option_names):
            beside = click.Context(self, ctx.parent, resilient_parsing=True)
            super().parse_args(beside, [a for a in args if a not in ctx.help_option_names])
            ctx.meta["named"] = beside.params
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from helpers.run import notebooks

        named = ctx.meta["named"]
        if (chapter := named["chapter"]) in (None, "all"):
            return
        name, profile = notebooks.find(chapter), named["profile"] or "book"
        with formatter.section(f"Parameters of {name} (-p NAME VALUE), with their values in profile {profile}"):
            formatter.write_dl(notebooks.described(name, profile))


def since(start: float) -> str:
    """Time passed, for people."""
    return durations.in_words(time.perf_counter() - start)


def results_of(record: bool) -> Path:
    """Where a run keeps its numbers: with the book, or beside the executed notebooks."""
    if record:
        places.checkout("Recording with the book")
    return places.book_data() / "results" if record else BUILD / "runs" / "results"


def _named(ctx: click.Context, parameter: click.Parameter, folder: str | None) -> None:
    if folder:
        os.environ["BOOK_DATA"] = str(Path(folder).resolve())


DATA = click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False),
    help="Folder of real corpora (or BOOK_DATA).",
    expose_value=False,
    callback=_named,
)
TO = functools.partial(click.option, "--to", type=click.Path(file_okay=False, path_type=Path))
PROFILE = functools.partial(
    click.option, "--profile", type=click.Choice(["smoke", "book", "full"]), show_default=True
)
MODEL = functools.partial(click.option, "--model")
FROM_1 = click.IntRange(1)
ABOVE_0 = click.FloatRange(0, min_open=True)


def measuring(command: Callable[..., None]) -> Callable[..., None]:
    """The options of what measures, which chapters find in the environment."""

    @click.option("--device", help="cpu, cuda, cuda:1, mps, ... (or BOOK_DEVICE; default: the best that there is).")
    @click.option(
        "--dtype", type=click.Choice(DTYPES), help="What the model computes in (or BOOK_DTYPE; default: float32)."
    )
    @click.option(
        "--batch-size", type=FROM_1, help="Rows in a batch (or BOOK_BATCH_SIZE; default: each measurement's own)."
    )
    @click.option("--name", help="File the numbers of a model in a folder under this name instead of the folder's.")
    @click.option(
        "--workers",
        type=FROM_1,
        help="Processes that share the parts of a corpus pass (default 1; at most one for each core).",
    )
    @click.option(
        "--dask",
        metavar="ADDRESS",
        help="Dask scheduler whose workers measure the parts instead, such as tcp://node:8786.",
    )
    @functools.wraps(command)
    def with_options(
        device: str | None,
        dtype: str | None,
        batch_size: int | None,
        name: str | None,
        workers: int | None,
        dask: str | None,
        **others: object,
    ) -> None:
        if workers and dask:
            raise click.UsageError("Give --workers for processes on this machine, or --dask for a cluster, not both.")
        wanted = {"BOOK_DEVICE": device, "BOOK_DTYPE": dtype, "BOOK_DASK": dask}
        wanted |= {"BOOK_WORKERS": workers and str(workers), "BOOK_BATCH_SIZE": batch_size and str(batch_size)}
        wanted |= {"BOOK_NAME": name and _filed_as(name, others.get("model") or others.get("models"))}
        with patch.dict(os.environ, {name: value for name, value in wanted.items() if value}):
            if device:
                from helpers.engine import encoders

                encoders.best_device()
            command(**others)

    return with_options


def _filed_as(name: str, model: object) -> str:
    """What ``BOOK_NAME`` says when the model, one folder, is to be filed under a name."""
    folder = resolved(str(model)).removesuffix("@random")
    if not (Path(folder).is_absolute() and Path(folder).is_dir()):
        raise click.UsageError("--name is for the one model that is named, when it is a folder; others have a name.")
    if not settings.NAME.fits(name):
        raise click.UsageError(f"--name {name!r}: give {settings.NAME.words}.")
    return f"{name}={folder}"


@click.group(cls=Plainly, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="attention-heads-book")
def main() -> None:
    """What do the attention heads of a BERT-like encoder look at, and which of them matter?"""
    if parent := os.environ.pop("BOOK_PARENT", ""):  # make, which may be killed
        orphans.end_with(int(parent))


@main.command()
def models() -> None:
    """List the models that need no hub, and whether they are on this machine."""
    from helpers.engine import encoders

    for name, folder in encoders.available().items():
        known = encoders.KNOWN[name]
        click.echo(f"{name:8} {known.what}\n{'':8} {folder or 'not here yet: ' + known.how}")
    click.echo(
        "any      a Hugging Face hub id or a local folder with safetensors weights\n"
        "         add @random for the control: same architecture, embeddings kept, other weights drawn anew"
    )


@main.command()
@click.argument("names", nargs=-1, required=True)
def fetch(names: tuple[str, ...]) -> None:
    """Bring models or corpora onto this machine.

    NAMES: mpnet (a model); gum, ewt, squad, mrpc, rte, mnli, snli, stsb, wikitext, inspec, glove (corpora and word
    vectors). From official addresses, in pinned versions. What is there is kept; after a broken connection the same
    command goes on where it stopped.
    """
    from helpers.corpora import fetching
    from helpers.engine import encoders

    known = [*encoders.KNOWN, *fetching.RECIPES]
    for name in names:
        if name not in known:
            hint = settings.meant(name, known)
            raise click.ClickException(f"There is no recipe to fetch {name!r}.{hint} Known: {', '.join(known)}.")
    for name in names:
        if name in encoders.KNOWN:
            click.echo(f"{name} is in {encoders.fetch(name)}")
        else:
            for file in fetching.fetch(name):
                click.echo(f"{name}: {file}")


@main.command()
@DATA
@click.option("--quick", is_flag=True, help="Do not read the files to count what is in them.")
def corpora(quick: bool) -> None:
    """List every corpus that chapters know by name: where it was found, how much it is, its licence."""
    from helpers import corpora as readers
    from helpers.corpora import sources

    click.echo(f"Looked in: {', '.join(map(str, sources.folders()))}")
    for found in readers.overview(counted=not quick):
        entry = found.entry
        click.echo(f"\n{entry.name} ({entry.kind}; {entry.licence})")
        for split in entry.files:
            where = found.paths.get(split)
            how = f"python -m helpers fetch {entry.name}" if entry.name in sources.RECIPES else "--data DIR"
            click.echo(f"  {split:10} {where or f'not here; {how}'}")
            if count := found.counts.get(split):
                click.echo(f"  {'':10} {count}")


@main.command()
@click.argument("task", type=click.Choice(TASKS))
@MODEL(default="minilm", show_default=True, help="The encoder to adapt: a short name, a folder, a hub id.")
@DATA
@TO(help="Folder of the adapter (default: data/adapters/MODEL-TASK).")
@click.option("--minutes", type=ABOVE_0, help="Stop after so many; the same command goes on.")
@click.option("--steps", type=FROM_1, help="Length of the schedule (default: the task's own).")
@click.option("--batch-size", type=FROM_1, help="Inputs a step (default: the task's own).")
@click.option("--rate", type=ABOVE_0, help="Highest learning rate (default: the task's own).")
@click.option("--precision", type=click.Choice(["bf16", "fp32"]), help="Default: bf16 where the processor has it.")
@click.option("--seed", type=click.IntRange(0), help="Of everything random (default: 0).")
@click.option("--fresh", is_flag=True, help="Begin anew: forget an earlier run and replace an adapter that is there.")
@click.option("--score", is_flag=True, help="Train nothing; only score the adapter that is there and write its card.")
def train(
    task: str, model: str, to: Path | None, minutes: float | None, fresh: bool, score: bool, **changes: object
) -> None:
    """Train an adapter (LoRA and a head) that lets an encoder do TASK.

    mlm: restore masked words (WikiText); qa: find answers in a text (SQuADShifts); paraphrase (MRPC); entailment: three
    classes (MNLI, SNLI); rte: two classes; keywords: tag the words of keyphrases (Inspec). The corpora are looked for as 'python -m helpers corpora' shows. A run that was
    interrupted, even killed, goes on from its last checkpoint when the same command is given again, and ends with the same
    weights. Afterwards encoders.load(MODEL, task=TASK) has the adapter in it.
    """
    from helpers.engine import adapters
    from helpers.run import cards, training

    start = time.perf_counter()
    if score:
        folder, ended = to or adapters.folder_of(model, task), True
        cards.finish(folder, model)
    else:
        folder, ended = training.train(task, model, to=to, minutes=minutes, fresh=fresh, **changes)
    for line in cards.summary(folder):
        click.echo(line)
    click.echo(f"{folder}: {since(start)}" + ("" if ended else "; not at its end yet, the same command goes on"))


@main.command(cls=OfChapter)
@click.argument("chapter")
@MODEL(help="Model to measure (default: that of the profile, minilm).")
@PROFILE(default="book", help="smoke: seconds; book: what the pages show; full: real corpora.")
@click.option("-p", "given", nargs=2, multiple=True, metavar="NAME VALUE", help="Set any parameter of the chapter.")
@DATA
@TO(help="Folder for the executed notebooks.")
@click.option("--record", is_flag=True, help="Keep the numbers in data/results instead of _build/runs/results.")
@click.option("--force", is_flag=True, help="Execute even if nothing has changed.")
@click.option("--at-a-time", type=FROM_1, help="Chapters executed together (default: one for each core, at most 4).")
@measuring
def run(
    chapter: str,
    model: str | None,
    profile: str,
    given: tuple[tuple[str, str], ...],
    to: Path | None,
    record: bool,
    **options: object,
) -> None:
    """Execute CHAPTER (a number, a name, or 'all') with a model and a profile of your choice.

    'all' runs the whole book and writes one HTML report of it, report.html, beside the executed notebooks. A chapter that
    needs a head which the model does not have is skipped, and the report says why. The same command goes on where an
    interrupted run stopped. 'CHAPTER --help' shows the parameters of that chapter.
    """
    from helpers import corpora
    from helpers.run import notebooks

    start = time.perf_counter()
    whole, results = chapter == "all", results_of(record)
    names = notebooks.chapters() if whole else [notebooks.find(chapter)]
    values = {name: notebooks.meant(names[0], name, value) for name, value in given}
    values = corpora.absolute(values) | {n: resolved(values[n]) for n in ("model", "other") if n in values}
    if model:
        values["model"] = resolved(model)
    folder = to or BUILD / "runs" / profile / places.label(values.get("model", "minilm"))
    places.cache(), places.full_data()  # named wrongly, they would be found out by a kernel
    if whole and model:
        from helpers.engine import encoders

        encoders.load(values["model"])  # a model that cannot be loaded is one message, not one for each chapter
    done = notebooks.run(names, folder, profile=profile, results=results, given=values, keep_going=whole, **options)
    for one in done:
        state = f"{'executed' if one.executed else 'up to date'}, {one.seconds:.0f} s"
        ended = f"{one.chapter} {'FAILED' if one.failed else 'skipped'}: {one.problem}"
        click.echo(ended if one.problem else f"{one.file}  ({state})")
    if whole:
        from helpers.run import report

        click.echo(f"Report: {report.write(done, folder / 'report.html', results=results, profile=profile)}")
    click.echo(f"Numbers: {results}. {since(start)} in all.")
    if any(one.failed for one in done):
        raise click.ClickException("Some chapters failed; the same command goes on with them.")


@main.command()
@click.option("--models", default="minilm", show_default=True, help="Models to run, with spaces between them.")
@click.option(
    "--chapters",
    "wanted",
    default="all",
    show_default=True,
    help="Chapters (numbers or names), with spaces between them.",
)
@PROFILE(default="full", help="full: real corpora; the others to try it out.")
@DATA
@TO(help="Folder for the executed notebooks (default: _build/runs/PROFILE).")
@click.option(
    "--record/--no-record",
    default=False,
    help="Keep the numbers in data/results, or (default) in _build/runs/results.",
)
@measuring
def full(models: str, wanted: str, profile: str, to: Path | None, record: bool) -> None:
    """Run every chapter on real corpora for the models named, one after another, with an estimate of the time left.

    The same command goes on where an interrupted run stopped, even a killed one: finished chapters are kept while nothing
    that they see has changed, and finished parts of the chapter that was under way. A chapter that a model cannot do is
    skipped, one that fails does not stop the others; the exit status is 1 if any failed.
    """
    from helpers.run import notebooks

    start = time.perf_counter()
    names = notebooks.chapters() if wanted == "all" else [notebooks.find(name) for name in wanted.split()]
    chosen = [*dict.fromkeys(map(resolved, models.split()))]
    if not chosen or not names:
        raise click.UsageError("Name at least one model with --models, and one chapter with --chapters.")
    places.cache(), places.full_data()
    from helpers.engine import encoders
    from helpers.run import long_runs

    for model in chosen:
        encoders.load(model)  # a model that cannot be loaded is known at once, not after hours
    results, folder = results_of(record), to or BUILD / "runs" / profile
    with places.alone(folder):
        done = long_runs.run(chosen, folder, results=results, names=names, profile=profile)
    click.echo(long_runs.table(done))
    click.echo(f"Notebooks: {folder}. Numbers: {results}. {since(start)} in all.")
    if failed := sum(one.failed for one in done):
        raise click.ClickException(f"{failed} of {len(done)} failed; the same command tries them again.")


@main.command()
@click.option("--stored", is_flag=True, help="Build from the outputs kept in git, without executing anything.")
@click.option("--all", "everything", is_flag=True, help="Execute every chapter, also those that have not changed.")
@click.option("--output", type=click.Path(file_okay=False), default=str(places.ROOT), hidden=True)
def book(stored: bool, everything: bool, output: str) -> None:
    """Execute the chapters that changed (profile book) and build the pages.

    A chapter has changed when its outputs, those kept in git or of an earlier call, are not of this code, these data and
    these versions of the libraries.
    """
    from helpers.run import notebooks, pages

    if stored and everything:
        raise click.UsageError("--stored executes nothing, --all everything. Say one of them.")
    start = time.perf_counter()
    places.checkout("Building the pages")
    folder = BUILD / ("site" if stored else "book")
    with places.alone(BUILD):
        pages.stage(folder)
        if stored:
            pages.stage_stored(folder)
        else:
            results = folder / "data" / "results"
            for chapter in notebooks.chapters() if not everything else ():
                notebooks.take_stored(chapter, folder / "notebooks" / f"{chapter}.ipynb", results)
            done = notebooks.run(
                notebooks.chapters(), folder / "notebooks", profile="book", results=results, force=everything
            )
            click.echo(f"Executed {sum(r.executed for r in done)} of {len(done)} chapters in {since(start)}.")
        index = pages.build(folder, Path(output))
    click.echo(f"Open {index}  ({since(start)})")


@main.command("notebooks")
@click.option("--force", is_flag=True, help="Execute even those that are up to date.")
def refresh(force: bool) -> None:
    """Refresh the outputs kept in git (notebooks/ and data/results/), with profile book."""
    from helpers.run import notebooks, pages, telling

    places.checkout("Refreshing stored outputs")
    results = places.book_data() / "results"
    with places.alone(BUILD):
        done = notebooks.run(notebooks.chapters(), notebooks.FOLDER, profile="book", results=results, force=force)
        places.write(places.ROOT / "book" / "_static" / "cover.png", pages.cover())
    for one in done:
        telling.renew(one.chapter)
        click.echo(f"{one.chapter}: {'executed' if one.executed else 'up to date'} in {one.seconds:.0f} s")


@main.command()
@click.argument("name")
@click.option("--question", default="What does this chapter ask?", show_default=True, help="The chapter's title.")
def new(name: str, question: str) -> None:
    """Write the skeleton of a new chapter NAME (such as sentence_order): notebook, folder, test, line of contents.

    The notebook runs as it is: python -m helpers run NAME --profile smoke.
    """
    from helpers.run import new as skeleton

    places.checkout("A new chapter")
    for file in skeleton.new(name, question):
        click.echo(file.relative_to(places.ROOT))


@main.command()
@click.argument("chapter", required=False)
@MODEL(help="Show the runs of this model only.")
def scoreboard(chapter: str | None, model: str | None) -> None:
    """Print what the papers report beside what was recorded here, and whether it holds.

    CHAPTER: a number or a name; without one, all. Numbers of your own runs (_build/runs/results) come before those that
    travel with the book.
    """
    from helpers import chapters

    os.environ.setdefault("BOOK_RESULTS", str(BUILD / "runs" / "results"))
    click.echo(chapters.scoreboard().as_text(model and resolved(model), chapter))


@main.command()
@click.argument("what", type=click.Choice(["tap", "divergence", "passes", "sweep", "pruning", "atlas"]))
@MODEL(default="minilm", show_default=True)
@click.option("--rounds", type=FROM_1, help="Default: each benchmark's own.")
@click.option(
    "--record", is_flag=True, help="Keep the figures for the pages that quote them (passes, sweep, pruning)."
)
@click.option("--machine", help="passes --record: what machine this is, in words.")
def bench(what: str, model: str, rounds: int | None, record: bool, machine: str | None) -> None:
    """Measure what things cost.

    tap: observing, in time and memory; divergence: comparing all pairs of heads; passes: tokens a second of several
    chapters' passes on one thread; sweep: switching off every head of a 12 x 12 model with and without sharing; pruning: a
    model whose heads are gone; atlas: a key in the atlas of heads, until it is painted (needs Chromium).
    """
    from helpers.run import bench as benchmarks

    names = {"sweep": "removal_speed", "pruning": "pruning_speed"}
    if record and what not in (*names, "passes"):
        raise click.UsageError("Only passes, sweep and pruning can be recorded.")
    if record and what == "passes" and not machine:
        raise click.UsageError("Say with --machine, in words, what machine this is.")
    found = getattr(benchmarks, what)(model, **({} if rounds is None else {"rounds": rounds}))
    click.echo(benchmarks.as_text(found))
    if record:
        passes = what == "passes"
        kept = benchmarks.keep_passes(found, machine) if passes else benchmarks.record(found, names[what], model)
        click.echo(f"Kept in {kept}")


main.add_command(exporting.export)
main.add_command(exporting.data)


@main.command()
def doctor() -> None:
    """Show versions, cores, memory, device, what is cached and what can be reached."""
    import psutil
    import torch

    from helpers.engine import encoders, models

    facts = {"python": f"{platform.python_version()} ({sys.executable})"}
    for name in ("torch", "transformers", "numpy", "scikit-learn", "matplotlib", "jupyter-book", "nbclient"):
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = "not installed: it belongs to the extra 'book'" if name == "jupyter-book" else "MISSING"
    memory = psutil.virtual_memory().total / 2**30
    facts["machine"] = f"{os.cpu_count()} cores, {memory:.0f} GiB of memory, {platform.platform()}"
    facts["device"] = f"{encoders.best_device()}, {torch.get_num_threads()} threads"
    facts |= {n: folder or f"not here yet: {encoders.KNOWN[n].how}" for n, folder in encoders.available().items()}
    facts["cache"] = places.cache()
    facts["real corpora"] = places.full_data() or "none: set BOOK_DATA or pass --data"
    for name, fact in facts.items():
        click.echo(f"{name:13} {fact}")
    click.echo(f"{'hub':13} {models.hub_state()}")  # takes a while where it cannot be reached


for command in (atlas, *teaching.COMMANDS, *launching.COMMANDS, *publishing.COMMANDS):
    main.add_command(command)

if __name__ == "__main__":
    main()
