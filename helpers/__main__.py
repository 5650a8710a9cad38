"""The command line: ``python -m helpers --help``."""

import difflib
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click
import yaml

from helpers import places

BUILD = places.ROOT / "_build"


@contextmanager
def plainly() -> Iterator[None]:
    """Errors that the book foresees end in their message, not in a traceback."""
    from helpers.adapters import AdapterError
    from helpers.corpora import CorpusError
    from helpers.encoders import EncoderError
    from helpers.notebooks import NotebookError
    from helpers.results import ResultError
    from helpers.sources import FetchError

    try:
        yield
    except (
        AdapterError,
        EncoderError,
        CorpusError,
        FetchError,
        NotebookError,
        ResultError,
        FileNotFoundError,
    ) as error:
        raise click.ClickException(str(error)) from None


def since(start: float) -> str:
    """Time passed, for people."""
    seconds = round(time.perf_counter() - start)
    return f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{seconds} s"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
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

    NAMES: mpnet (a model); gum, ewt, squad, mrpc, rte, mnli, snli, stsb, wikitext, inspec, glove (corpora and word
    vectors). From official addresses, in pinned versions. What is there is kept; after a broken connection the same
    command goes on where it stopped.
    """
    from helpers import encoders, sources

    known = [*encoders.KNOWN, *sources.RECIPES]
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise click.ClickException(f"There is no recipe to fetch {name!r}.{hint} Known: {', '.join(known)}.")
    with plainly():
        for name in names:
            if name in encoders.KNOWN:
                click.echo(f"{name} is in {encoders.fetch(name)}")
            else:
                for file in sources.fetch(name):
                    click.echo(f"{name}: {file}")


@main.command()
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Folder of real corpora (or BOOK_DATA).")
@click.option("--quick", is_flag=True, help="Do not read the files to count what is in them.")
def corpora(data: str | None, quick: bool) -> None:
    """List every corpus that chapters know by name: where it was found, how much it is, its licence."""
    from helpers import corpora as readers
    from helpers import sources

    if data:
        os.environ["BOOK_DATA"] = str(Path(data).resolve())
    with plainly():
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
@click.argument("task", type=click.Choice(["mlm", "qa", "paraphrase", "entailment", "rte"]))
@click.option(
    "--model", default="minilm", show_default=True, help="The encoder to adapt: a short name, a folder, a hub id."
)
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Folder of real corpora (or BOOK_DATA).")
@click.option(
    "--to",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the adapter (default: data/adapters/MODEL-TASK).",
)
@click.option(
    "--minutes", type=click.FloatRange(0, min_open=True), help="Stop after so many; the same command goes on."
)
@click.option("--steps", type=click.IntRange(1), help="Length of the schedule (default: the task's own).")
@click.option("--batch-size", type=click.IntRange(1), help="Inputs a step (default: the task's own).")
@click.option(
    "--rate", type=click.FloatRange(0, min_open=True), help="Highest learning rate (default: the task's own)."
)
@click.option("--precision", type=click.Choice(["bf16", "fp32"]), help="Default: bf16 where the processor has it.")
@click.option("--seed", type=click.IntRange(0), help="Of everything random (default: 0).")
@click.option("--fresh", is_flag=True, help="Begin anew: forget an earlier run and replace an adapter that is there.")
@click.option("--score", is_flag=True, help="Train nothing; only score the adapter that is there and write its card.")
def train(task: str, model: str, data: str | None, to: Path | None, minutes: float | None, fresh: bool, score: bool,
          **changes: object) -> None:  # fmt: skip
    """Train an adapter (LoRA and a head) that lets an encoder do TASK.

    mlm: restore masked words (WikiText); qa: find answers in a text (SQuADShifts); paraphrase (MRPC); entailment: three
    classes (MNLI, SNLI); rte: two classes. The corpora are looked for as 'python -m helpers corpora' shows. A run that was
    interrupted, even killed, goes on from its last checkpoint when the same command is given again, and ends with the same
    weights. Afterwards encoders.load(MODEL, task=TASK) has the adapter in it.
    """
    from helpers import adapters, training

    start = time.perf_counter()
    if data:
        os.environ["BOOK_DATA"] = str(Path(data).resolve())
    with plainly():
        if score:
            folder, ended = to or adapters.folder_of(model, task), True
            training.finish(folder, model)
        else:
            folder, ended = training.train(task, model, to=to, minutes=minutes, fresh=fresh, **changes)
        for line in training.summary(folder):
            click.echo(line)
    click.echo(f"{folder}: {since(start)}" + ("" if ended else "; not at its end yet, the same command goes on"))


@main.command()
@click.argument("chapter")
@click.option("--model", help="Model to measure (default: that of the profile, minilm).")
@click.option("--profile", type=click.Choice(["smoke", "book", "full"]), default="book", show_default=True,
              help="smoke: seconds; book: what the pages show; full: real corpora.")  # fmt: skip
@click.option("-p", "given", nargs=2, multiple=True, metavar="NAME VALUE", help="Set any parameter of the chapter.")
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Folder of real corpora (or BOOK_DATA).")
@click.option("--to", type=click.Path(file_okay=False), help="Folder for the executed notebooks.")
@click.option("--record", is_flag=True, help="Keep the numbers in data/results instead of _build/runs/results.")
@click.option("--force", is_flag=True, help="Execute even if nothing has changed.")
@click.option("--workers", type=click.IntRange(1), help="Chapters executed at a time.")
def run(chapter: str, model: str | None, profile: str, given: tuple[tuple[str, str], ...], data: str | None,
        to: str | None, record: bool, force: bool, workers: int | None) -> None:  # fmt: skip
    """Execute CHAPTER (a number, a name, or 'all') with a model and a profile of your choice."""
    from helpers import notebooks

    start = time.perf_counter()
    if data:
        os.environ["BOOK_DATA"] = str(Path(data).resolve())
    values = {name: yaml.safe_load(value) for name, value in given}
    if model:
        values["model"] = str(Path(model).resolve()) if Path(model).is_dir() else model
    with plainly():
        names = notebooks.chapters() if chapter == "all" else [notebooks.find(chapter)]
        label = Path(values.get("model", "minilm")).name
        folder = Path(to) if to else BUILD / "runs" / profile / label
        results = places.book_data() / "results" if record else BUILD / "runs" / "results"
        done = notebooks.run(
            names, folder, profile=profile, results=results, given=values, workers=workers, force=force
        )
    for one in done:
        click.echo(f"{one.file}  ({'executed' if one.executed else 'up to date'}, {one.seconds:.0f} s)")
    click.echo(f"Numbers: {results}. {since(start)} in all.")


@main.command()
@click.option("--stored", is_flag=True, help="Build from the outputs kept in git, without executing anything.")
@click.option("--output", type=click.Path(file_okay=False), default=str(places.ROOT), hidden=True)
def book(stored: bool, output: str) -> None:
    """Execute the chapters that changed (profile book) and build the pages."""
    from helpers import notebooks

    start = time.perf_counter()
    folder = BUILD / ("site" if stored else "book")
    with plainly():
        notebooks.stage(folder)
        names = notebooks.chapters()
        if stored:
            for name in names:
                shutil.copyfile(notebooks.FOLDER / f"{name}.ipynb", folder / "notebooks" / f"{name}.ipynb")
        else:
            results = folder / "data" / "results"
            done = notebooks.run(names, folder / "notebooks", profile="book", results=results)
            click.echo(f"Executed {sum(r.executed for r in done)} of {len(done)} chapters in {since(start)}.")
        index = notebooks.build(folder, Path(output))
    click.echo(f"Open {index}  ({since(start)})")


@main.command("notebooks")
@click.option("--force", is_flag=True, help="Execute even those that are up to date.")
def refresh(force: bool) -> None:
    """Refresh the outputs kept in git (notebooks/ and data/results/), with profile book."""
    from helpers import notebooks

    with plainly():
        done = notebooks.run(
            notebooks.chapters(),
            notebooks.FOLDER,
            profile="book",
            results=places.book_data() / "results",
            force=force,
        )
        (places.ROOT / "book" / "_static" / "cover.png").write_bytes(notebooks.cover())
    for one in done:
        click.echo(f"{one.chapter}: {'executed' if one.executed else 'up to date'} in {one.seconds:.0f} s")


@main.command()
@click.argument("what", type=click.Choice(["tap", "divergence", "sweep", "pruning"]))
@click.option("--model", default="minilm", show_default=True)
@click.option("--rounds", type=click.IntRange(1), help="Default: each benchmark's own.")
@click.option("--record", is_flag=True, help="Keep the numbers for the chapters that quote them (sweep, pruning).")
def bench(what: str, model: str, rounds: int | None, record: bool) -> None:
    """Measure what observing costs, in time and memory (tap), comparing all pairs of heads (divergence), switching off
    every head of a 12 x 12 model with and without sharing (sweep), or a model whose heads are gone (pruning)."""
    from helpers import bench as benchmarks

    names = {"sweep": "removal_speed", "pruning": "pruning_speed"}
    if record and what not in names:
        raise click.UsageError(f"Only {' and '.join(names)} can be recorded.")
    with plainly():
        found = getattr(benchmarks, what)(model, **({} if rounds is None else {"rounds": rounds}))
        click.echo(benchmarks.as_text(found))
        if record:
            click.echo(f"Numbers: {benchmarks.record(found, names[what], model)}")


@main.command()
def doctor() -> None:
    """Show versions, cores, memory, device, what is cached and what can be reached."""
    import torch

    from helpers import encoders

    click.echo(f"python        {platform.python_version()} ({sys.executable})")
    for name in ("torch", "transformers", "numpy", "scikit-learn", "matplotlib", "jupyter-book", "papermill"):
        try:
            found = version(name)
        except PackageNotFoundError:
            found = "MISSING: run 'make book' or pip install -e ."
        click.echo(f"{name:13} {found}")
    pages, size = (os.sysconf(k) for k in ("SC_PHYS_PAGES", "SC_PAGE_SIZE")) if hasattr(os, "sysconf") else (0, 0)
    click.echo(
        f"{'machine':13} {os.cpu_count()} cores, {pages * size / 2**30:.0f} GiB of memory, {platform.platform()}"
    )
    device = encoders.best_device()
    click.echo(f"{'device':13} {device}, {torch.get_num_threads()} threads")
    for name, folder in encoders.available().items():
        click.echo(f"{name:13} {folder or 'not here yet: ' + encoders.KNOWN[name].how}")
    click.echo(f"{'cache':13} {places.cache()}")
    with plainly():
        click.echo(f"{'real corpora':13} {places.full_data() or 'none: set BOOK_DATA or pass --data'}")
    click.echo(f"{'hub':13} {encoders.hub_state()}")


if __name__ == "__main__":
    main()
