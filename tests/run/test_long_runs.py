"""python -m helpers full: every chapter for several models, one after another."""

import json
import re
from functools import partial
from pathlib import Path

import nbformat
import pytest
import yaml
from click.testing import CliRunner
from tqdm import tqdm

from helpers import places
from helpers.__main__ import main
from helpers.engine import encoders
from helpers.run import bench, executing, long_runs, notebooks
from helpers.run.durations import Durations, in_words
from helpers.run.notebooks import Run

HEAD = "# Title?"
CELLS = {
    "01_good": "from helpers.engine import adapters\nprint(model)",
    "02_bad": "1 / 0",
    "03_task": "from helpers.engine.adapters import AdapterError\nif model == 'other':\n    raise AdapterError('no head for qa')",
    "04_says": "raise SystemExit('This chapter needs a model that answers.')",
}


@pytest.fixture
def four(tmp_path, monkeypatch):
    """A repository with four small chapters."""
    for folder in ("helpers/engine", "data/results", "notebooks", "book/profiles"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("__init__", "engine/__init__", "engine/adapters"):
        (tmp_path / "helpers" / f"{name}.py").write_text("")
    for name in ("requirements.lock", "data/papers.yml"):
        (tmp_path / name).write_text("")
    for profile in notebooks.PROFILES:
        (tmp_path / "book" / "profiles" / f"{profile}.yml").write_text(yaml.safe_dump({"all": {"profile": profile}}))
    kernel = {"kernelspec": {"name": "python3", "display_name": "x", "language": "python"}}
    for chapter, code in CELLS.items():
        cells = [
            nbformat.v4.new_markdown_cell(HEAD),
            nbformat.v4.new_code_cell('model = "minilm"\nprofile = "book"', metadata={"tags": ["parameters"]}),
            nbformat.v4.new_code_cell(code),
        ]
        nbformat.write(
            nbformat.v4.new_notebook(cells=cells, metadata=kernel), tmp_path / "notebooks" / f"{chapter}.ipynb"
        )
    return tmp_path


def in_this_process(monkeypatch, four):
    """The runner's child process would not see a patched package."""
    from concurrent.futures import Future

    class Here:
        def __init__(self, *_, **__): ...
        def __enter__(self):
            return self

        def __exit__(self, *_): ...
        def submit(self, function, *arguments, **options):
            future = Future()
            try:
                future.set_result(function(*arguments, **options))
            except Exception as error:
                future.set_exception(error)
            return future

    monkeypatch.setattr(long_runs, "ProcessPoolExecutor", Here)
    monkeypatch.setattr(places, "ROOT", four)
    monkeypatch.setattr(places, "HOME", four)
    monkeypatch.setattr(notebooks, "FOLDER", four / "notebooks")
    monkeypatch.setattr(notebooks, "PROFILE_FOLDER", four / "book" / "profiles")
    ran = []

    def executed(chapter, source, changed):
        """Run the cells without a kernel."""
        ran.append((chapter, changed.get("model", "minilm")))
        names = {}
        for cell in source.cells[1:]:
            try:
                exec(cell.source.replace("print(model)", ""), names)
            except (SystemExit, Exception) as error:
                kind = type(error).__name__
                if kind in ("AdapterError", "SystemExit"):
                    raise notebooks.Refused(f"{chapter}: {error}") from None
                raise notebooks.NotebookError(f"{chapter} failed with {kind}\nmore") from None
            names |= changed
            cell.execution_count = 1
        return source

    monkeypatch.setattr(executing, "executed", executed)
    monkeypatch.setattr(encoders, "load", lambda name: None)
    return ran


def test_full_keeps_what_is_done_and_goes_on_after_failures(four, monkeypatch):
    ran = in_this_process(monkeypatch, four)
    monkeypatch.setattr(long_runs, "tqdm", partial(tqdm, disable=False))
    monkeypatch.delenv("COLUMNS", raising=False)  # or a line would be cut
    places.book_data()
    command = ["full", "--models", "minilm other", "--profile", "smoke", "--to", str(four / "out")]
    monkeypatch.setattr("helpers.__main__.BUILD", four / "_build")
    first = CliRunner().invoke(main, command)
    assert first.exit_code == 1 and "2 of 8 failed" in first.output, first.output
    assert re.search(r"1 of 8 \|.{20}\| \d\d:\d\d, 02_bad with minilm; .* left", first.stderr), first.stderr
    lines = {tuple(line.split()[:2]): line for line in first.stdout.split("\n") if line[:2].isdigit()}
    assert len(lines) == 8 == len(ran)
    assert "executed" in lines["01_good", "minilm"] and "executed" in lines["03_task", "minilm"]
    assert "failed" in lines["02_bad", "other"] and lines["02_bad", "other"].endswith(
        "02_bad failed with ZeroDivisionError"
    )
    assert "skipped" in lines["03_task", "other"] and lines["03_task", "other"].endswith("no head for qa")
    assert "skipped" in lines["04_says", "minilm"] and "needs a model that answers" in lines["04_says", "minilm"]
    durations = json.loads((four / "out" / long_runs.DURATIONS).read_text())
    assert set(durations) == {"01_good", "03_task"} and set(durations["01_good"]) == {"minilm", "other"}
    again = CliRunner().invoke(main, [*command, "--chapters", "1 3"])
    assert again.exit_code == 0 and again.output.count(" kept ") == 3, "and one skipped"
    assert (four / "out" / "other" / "01_good.ipynb").exists()


def test_workers_and_dask_reach_the_chapters_and_nothing_else(monkeypatch, tmp_path):
    seen = {}

    def run(*_, **__):
        import os

        seen.update({name: os.environ.get(name) for name in ("BOOK_WORKERS", "BOOK_DASK", "BOOK_DEVICE")})
        return []

    for name in ("BOOK_WORKERS", "BOOK_DASK", "BOOK_DEVICE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(notebooks, "run", run)
    monkeypatch.setattr(long_runs, "run", run)
    monkeypatch.setattr(encoders, "load", lambda *_, **__: None)
    for command in (["run", "02"], ["full", "--to", str(tmp_path)]):
        assert CliRunner().invoke(main, [*command, "--workers", "3"]).exit_code == 0
        assert seen == {"BOOK_WORKERS": "3", "BOOK_DASK": None, "BOOK_DEVICE": None}
        assert CliRunner().invoke(main, [*command, "--dask", "tcp://here:1"]).exit_code == 0
        assert seen == {"BOOK_WORKERS": None, "BOOK_DASK": "tcp://here:1", "BOOK_DEVICE": None}
        assert CliRunner().invoke(main, [*command, "--device", "cpu"]).exit_code == 0
        assert seen["BOOK_DEVICE"] == "cpu"
        wrong = CliRunner().invoke(main, [*command, "--device", "gpu"])
        assert wrong.exit_code == 1 and "There is no device 'gpu' here" in wrong.output
        both = CliRunner().invoke(main, [*command, "--dask", "tcp://here:1", "--workers", "2"])
        assert both.exit_code == 2 and "not both" in both.output
    import os

    assert "BOOK_WORKERS" not in os.environ and "BOOK_DASK" not in os.environ


def test_time_left(tmp_path):
    durations = Durations(tmp_path / "durations.json")
    job = ("minilm", "02_x")
    assert durations.of(job) == float("inf") and durations.left(job, 10, None) == float("inf")
    assert durations.left(job, 10, 0.25) == 30, "judged by the share that is done"
    durations.record(("mpnet", "02_x"), 100)
    durations.record(("mpnet", "03_y"), 300)
    again = Durations(tmp_path / "durations.json")
    assert again.of(("mpnet", "02_x")) == again.of(job) == 100, "another model's time, if there is no own"
    assert again.of(("minilm", "04_z")) == 200, "else that of other chapters"
    assert again.left(job, 40, 0.9) == 60 and again.left(job, 400, None) == 0
    assert in_words(59.6) == "1 min 0 s" and in_words(7300) == "2 h 1 min"
    assert in_words(float("inf")) == "unknown time"


def test_progress_is_read_from_beside_the_parts(tmp_path):
    assert long_runs.progress(tmp_path) == (None, "")
    (tmp_path / "progress.json").write_text('{"what": "minilm: 9 segments", "done": 1, "total": 4}')
    assert long_runs.progress(tmp_path) == (0.25, " (minilm: 9 segments: part 1 of 4)")


def test_the_table_has_a_line_for_each():
    failed = Run("02_x", Path(), False, 3.0, "why\nand where", failed=True, model="org/model")
    text = long_runs.table([failed, Run("02_x", Path(), False, 0.0, model="m")])
    assert [line.split() for line in text.split("\n")] == [
        ["02_x", "org--model", "failed", "3", "s", "why"],
        ["02_x", "m", "kept", "0", "s"],
    ]


# ------------------------------------------------------------------ what it costs


def test_the_card_of_costs_is_the_one_that_was_measured():
    kept = json.loads((places.ROOT / bench.COSTS).read_text("utf-8"))
    assert (places.ROOT / bench.COSTS).with_suffix(".md").read_text("utf-8") == bench.card(kept)
    for found in kept["models"].values():
        assert set(found["rates"]) == set(bench.PASSES) and all(len(r) >= 3 for r in found["rates"].values())


def test_a_thousand_million_tokens():
    rates = {name: [8640.0, 10_000.0, 12_000.0] for name in bench.PASSES} | {"forward": [20_000.0] * 3}
    model = {"layers": 6, "heads": 12, "parameters": 1, "rates": rates}
    text = bench.card({"machine": "a machine", "segment": 128, "models": {"small": model}})
    assert "| chapter 02, all statistics | 10,000 | 1.2 core-days |" in text and "on a machine" in text
    assert "differ by 34%" in text
