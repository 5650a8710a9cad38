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
import yaml
from tqdm import tqdm

from helpers import DTYPES, TASKS, places
from helpers.run import exporting, launching, publishing
from helpers.run.atlas.command import atlas
from helpers.run.names import did_you_mean, resolved
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
            where = f"{error.filename}: " if error.filename else ""
            raise click.ClickException(f"{where}{error.strerror or error}") from None


def since(start: float) -> str:
    """Time passed since ``start``, for people."""
    return tqdm.format_interval(time.perf_counter() - start)


def results_of(record: bool) -> Path:
    """Where a run keeps its numbers: with the book, or in ``_build/runs``."""
    if record:
        places.checkout("Recording with the book")
    return places.book_data() / "results" if record else places.results()


def _named(ctx: click.Context, parameter: click.Parameter, folder: str | None) -> None:
    if folder:
        os.environ["BOOK_DATA"] = str(Path(folder).resolve())


OWN = exporting.OWN
DATA = click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False),
    help="Folder of real corpora (or BOOK_DATA).",
    expose_value=False,
    callback=_named,
)
FOLDER = click.Path(file_okay=False, path_type=Path)
TO = functools.partial(click.option, "--to", type=FOLDER)
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
                from helpers import encoders

                encoders.best_device()
            command(**others)

    return with_options


def _filed_as(name: str, model: object) -> str:
    """What ``BOOK_NAME`` says when the model, one folder, is to be filed under a name."""
    folder = resolved(str(model)).removesuffix("@random")
    if not (Path(folder).is_absolute() and Path(folder).is_dir()):
        raise click.UsageError("--name is for the one model that is named, when it is a folder; others have a name.")
    if not name.replace("-", "").replace("_", "").isalnum():
        raise click.UsageError(f"--name {name!r}: give a name of letters, digits, - and _.")
    return f"{name}={folder}"


@click.group(cls=Plainly, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="attention-heads-book")
def main() -> None:
    """What do the attention heads of a BERT-like encoder look at, and which of them matter?"""


@main.command()
def models() -> None:
    """List the models that need no hub, and whether they are on this machine."""
    from helpers import encoders

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

    NAMES: mpnet (a model); gum, ewt, squad, mrpc, rte, mnli, snli, wikitext, inspec, glove (corpora and word
    vectors). From official addresses, in pinned versions. What is there is kept; after a broken connection give
    the same command again.
    """
    from helpers import encoders
    from helpers.corpora import fetching

    known = [*encoders.KNOWN, *fetching.RECIPES]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
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
    for entry in sources.CATALOGUE:
        click.echo(f"\n{entry.name} ({entry.kind}; {entry.licence})")
        for split in entry.files:
            path = sources.find(entry, split)
            how = f"python -m helpers fetch {entry.name}" if entry.name in sources.RECIPES else "--data DIR"
            click.echo(f"  {split:10} {path or f'not here; {how}'}")
            if path and not quick:
                click.echo(f"  {'':10} {readers.count(entry.name, entry.kind, split)}")


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
    from helpers import adapters
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


@main.command()
@click.argument("chapter")
@MODEL(help="Model to measure (default: that of the profile, minilm).")
@PROFILE(default="book", help="smoke: seconds; book: what the pages show; full: real corpora.")
@click.option("-p", "given", nargs=2, multiple=True, metavar="NAME VALUE", help="Set any parameter of the chapter.")
@DATA
@TO(help="Folder for the executed notebooks (default: _build/runs/PROFILE/MODEL).")
@click.option("--record", is_flag=True, help="Keep the numbers in data/results instead of _build/runs/results.")
@click.option("--force", is_flag=True, help="With 'all': execute also what an earlier run has finished.")
@click.option(
    "--at-a-time", type=FROM_1, default=2, show_default=True, help="With 'all': chapters executed together."
)
@measuring
def run(
    chapter: str,
    model: str | None,
    profile: str,
    given: tuple[tuple[str, str], ...],
    to: Path | None,
    record: bool,
    force: bool,
    at_a_time: int,
) -> None:
    """Execute CHAPTER (a number, a name, or 'all') with papermill, with a model and a profile of your choice.

    'all' runs the whole book, goes on where an interrupted run stopped, and writes one HTML report of it, report.html, beside
    the executed notebooks. A chapter that needs a head which the model does not have is skipped, and the report says why.
    The parameters of a chapter: papermill --help-notebook notebooks/NAME.ipynb
    """
    from helpers import corpora
    from helpers.run import notebooks

    start = time.perf_counter()
    whole, results = chapter == "all", results_of(record)
    names = notebooks.chapters() if whole else [notebooks.find(chapter)]
    # lists and mappings are read here, since paths in them are meant from where the reader stands
    values = corpora.absolute({n: yaml.safe_load(v) if v[:1] in ("[", "{") else v for n, v in given})
    values |= {name: resolved(values[name]) for name in ("model", "other") if name in values}
    if model:
        values["model"] = resolved(model)
    folder = to or BUILD / "runs" / profile / places.label(values.get("model", "minilm"))
    if whole and model:
        from helpers import encoders

        encoders.load(values["model"])  # a model that cannot be loaded is one message, not one for each chapter
    done = notebooks.run(
        names, folder, profile=profile, results=results, given=values, keep=whole and not force, at_a_time=at_a_time
    )
    for one in done:
        click.echo(one)
    if whole:
        from helpers.run import report

        click.echo(f"Report: {report.write(done, folder / 'report.html', results=results, profile=profile)}")
        click.echo(f"Numbers: {results}. {since(start)} in all.")
    if any(one.problem for one in done) and (not whole or any(one.state == "failed" for one in done)):
        sys.exit(1)


@main.command()
@click.option("--models", default="minilm", show_default=True, help="Models to run, with spaces between them.")
@click.option("--chapters", "wanted", default="all", show_default=True, help="Chapters, with spaces between them.")
@PROFILE(default="full", help="full: real corpora; the others to try it out.")
@DATA
@TO(help="Folder for the executed notebooks (default: _build/runs/PROFILE).")
@click.option("--record", is_flag=True, help="Keep the numbers in data/results instead of _build/runs/results.")
@measuring
def full(models: str, wanted: str, profile: str, to: Path | None, record: bool) -> None:
    """Run every chapter on real corpora for the models named, one after another.

    The same command goes on where an interrupted run stopped, even a killed one: finished chapters are kept while nothing of
    the book has changed, and finished parts of the chapter that was under way. A chapter that a model cannot do is
    skipped, one that fails does not stop the others; the exit status is 1 if any failed.
    """
    from helpers.run import notebooks

    start = time.perf_counter()
    names = notebooks.chapters() if wanted == "all" else [notebooks.find(name) for name in wanted.split()]
    chosen = [*dict.fromkeys(map(resolved, models.split()))]
    if not chosen or not names:
        raise click.UsageError("Name at least one model with --models, and one chapter with --chapters.")
    from helpers import encoders

    for model in chosen:
        encoders.load(model)  # a model that cannot be loaded is known at once, not after hours
    results, folder, failed = results_of(record), to or BUILD / "runs" / profile, 0
    with places.alone(folder):
        for model in chosen:
            place, options = folder / places.label(model), {"keep": True, "parts": True}
            done = notebooks.run(names, place, profile=profile, results=results, given={"model": model}, **options)
            failed += sum(one.state == "failed" for one in done)
            for one in done:
                click.echo(f"{places.label(model)}  {one}")
    click.echo(f"Notebooks: {folder}. Numbers: {results}. {since(start)} in all.")
    if failed:
        raise click.ClickException(f"{failed} failed; the same command tries them again.")


@main.command("pages")
@click.argument("notebooks", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--results", type=FOLDER, help="Records to show first (default: data/results).")
@click.option("--to", type=FOLDER, default=places.ROOT, hidden=True)
def build(notebooks: Path, results: Path | None, to: Path) -> None:
    """Build the pages of the book from the executed chapters in the folder NOTEBOOKS ('make book', 'make site')."""
    from helpers.run import pages

    start = time.perf_counter()
    places.checkout("Building the pages")
    pages.stage(BUILD / "stage", notebooks)
    click.echo(f"Open {pages.build(BUILD / 'stage', to, results)}  ({since(start)})")


@main.command()
@click.argument("executed", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--keep", is_flag=True, help="Then keep the executed notebooks and their records with the book.")
def compare(executed: Path, keep: bool) -> None:
    """Compare the records of a run, EXECUTED/results, with those that the book keeps in data/results.

    Refitted probes may differ by what helpers/run/comparing.py allows; any other difference is listed, and ends in exit status 1.
    """
    from helpers.run import comparing

    places.checkout("Comparing with the book's records")
    found = comparing.differences(executed / "results", places.book_data() / "results")
    click.echo("\n".join(found.values()) or "Every record is the stored one.")
    if keep:
        comparing.keep(executed, places.ROOT)
    elif found:
        sys.exit(1)


@main.command()
@click.argument("chapter", required=False)
@MODEL(help="Show the runs of this model only.")
@OWN
def scoreboard(chapter: str | None, model: str | None) -> None:
    """Print what the papers report beside what was recorded here, and whether it holds.

    CHAPTER: a number or a name; without one, all.
    """
    from helpers import scoreboard as board

    click.echo(board.as_text(model and resolved(model), chapter))


@main.command()
@click.argument("what", type=click.Choice(["tap", "divergence", "passes", "sweep", "pruning"]))
@MODEL(default="minilm", show_default=True)
@click.option("--rounds", type=FROM_1, help="Default: each benchmark's own.")
@click.option(
    "--record", is_flag=True, help="Keep the figures for the pages that quote them (passes, sweep, pruning)."
)
@click.option("--machine", help="passes --record: what machine this is, in words.")
def bench(what: str, model: str, rounds: int | None, record: bool, machine: str | None) -> None:
    """Measure what things cost.

    tap: what observing adds to a forward pass; divergence: comparing all pairs of heads; passes: tokens a second of several
    chapters' passes on one thread; sweep: switching off every head and layer with and without sharing; pruning: a
    model whose heads are gone.
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

    from helpers import encoders, models

    facts = {"python": f"{platform.python_version()} ({sys.executable})"}
    for name in ("torch", "transformers", "numpy", "scikit-learn", "matplotlib", "jupyter-book", "papermill"):
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
