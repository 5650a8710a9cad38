"""Every chapter, executed with papermill on small data; ordinary runs of chapters; what the runner says when it cannot."""

import dis
import json
import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise

import nbformat
import papermill
import pytest
from conftest import small_model

from helpers import places, results, scoreboard
from helpers.run import comparing, notebooks

CHAPTERS = notebooks.chapters()
RECORDING = [chapter for chapter in CHAPTERS if chapter != "01_transformer_refresher"]


def assert_whole(file, *, without=()):
    """Every cell executed, no error, nothing on stderr, a picture above every caption but for figures named; what is folded says what it is."""
    for cell in nbformat.read(file, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        assert cell.execution_count is not None, cell.source
        for output in cell.outputs:
            assert output.output_type != "error", output
            assert not (output.output_type == "stream" and output.name == "stderr"), output.text
        names = [output.get("name") for output in cell.outputs]
        assert not [name for name, following in pairwise(names) if name and name == following], (
            "one text in two boxes"
        )
        shown = cell.metadata.get("mystnb", {})
        assert ("code_prompt_show" in shown) == ("hide-input" in cell.metadata.get("tags", [])), cell.source
        figure = shown.get("figure")
        if figure and figure["name"] not in without:
            assert any("image/png" in output.get("data", {}) for output in cell.outputs), figure["name"]


def showing(file):
    """The cells of a notebook under which something stands."""
    return {cell.source for cell in nbformat.read(file, as_version=4).cells if cell.get("outputs")}


@pytest.fixture
def few_documents(tmp_path):
    """A treebank of a reader's own: the first documents of each part of the book's."""
    for file in (places.book_data() / "encyclopedia" / "treebank").glob("*.conllu"):
        documents = re.split(r"^(?=# newdoc)", file.read_text("utf-8"), flags=re.MULTILINE)
        places.write(tmp_path / "treebank" / file.name, "".join(documents[:2]))
    return str(tmp_path / "treebank")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_runs(chapter, few_documents, request, tmp_path):
    """It draws its figures, records finite numbers, and the headlines of its summary can be judged on them."""
    given = {"treebank": few_documents} if chapter[:2] in ("04", "05") else {}  # of the whole one a minute each
    if chapter == "14_your_own_model":  # one of the reader's own, in a folder, with 64 positions; and a second model
        given |= {"model": str(request.getfixturevalue("folder")), "other": "minilm"}
    [run] = notebooks.run([chapter], tmp_path, given=given, profile="smoke", results=tmp_path / "results")
    assert run.state == "executed", run
    assert_whole(run.file)
    stale = showing(notebooks.FOLDER / f"{chapter}.ipynb") - showing(run.file)
    assert given or not stale, "no longer made by their cells"
    records = list((tmp_path / "results").rglob("*.csv"))
    assert [file.stem for file in records] == ([chapter[3:]] if chapter in RECORDING else [])
    for file in records:
        provenance = json.loads(file.with_suffix(".json").read_text("utf-8"))["provenance"]
        table = results.from_csv(file)
        assert provenance["profile"] == "smoke" and len(table) and (table.value.notna() | table.label.notna()).all()
        numbers = scoreboard.numbers_of(table)
        assert all(scoreboard.judge(claim, numbers) for claim in scoreboard.chapters()[chapter]["headlines"])


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_stored_outputs_are_whole_and_of_the_books_parameters(chapter):
    file = notebooks.FOLDER / f"{chapter}.ipynb"
    assert_whole(file)
    text = file.read_text("utf-8")
    assert nbformat.reads(text, as_version=4).metadata.papermill.parameters == {}
    assert not [mark for mark in ("jQuery v", "d3js.org", "/site-packages/", "execution_time") if mark in text]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_cell_gives_a_parameter_another_value(chapter):
    """A later cell would read that one, and a run with a parameter of the reader's own go wrong without a word."""
    cells = nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4).cells
    later = [c.source for c in cells if c.cell_type == "code" and "parameters" not in c.metadata.get("tags", [])]
    steps = dis.get_instructions(compile("\n".join(later), chapter, "exec"))  # outside functions
    assert not {step.argval for step in steps if step.opname == "STORE_NAME"} & {*notebooks.defaults(chapter)}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_papermill_explains_every_parameter_and_profiles_have_their_name(chapter):
    own = notebooks.defaults(chapter)
    for name, parameter in papermill.inspect_notebook(notebooks.FOLDER / f"{chapter}.ipynb").items():
        kind = type(own[name]).__name__ if own[name] is not None else "None"
        assert parameter["help"] and parameter["inferred_type_name"] == kind, parameter
    for profile in ("smoke", "full"):
        assert notebooks.parameters(chapter, profile)["profile"] == profile


def test_profiles_are_parameter_files_of_chapters():
    assert {file.stem for file in notebooks.PROFILE_FOLDER.rglob("*.yml")} <= {*CHAPTERS}


# A run that nobody asked to record


@pytest.fixture
def checkout(tmp_path):
    """A copy of the checkout under git, with what executing a chapter needs."""
    folder = tmp_path / "a checkout"
    for name in ("helpers", "notebooks", "data", "book/profiles"):
        ignored = shutil.ignore_patterns("__pycache__", "adapters", ".ipynb_checkpoints")
        shutil.copytree(places.ROOT / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "requirements.lock", ".gitignore"):
        shutil.copy(places.ROOT / name, folder)
    file = folder / "notebooks" / "02_surface_patterns.ipynb"
    tried = nbformat.read(file, as_version=4)
    first = next(n for n, cell in enumerate(tried.cells) if "results.Run(" in cell.source)
    saving = nbformat.v4.new_code_cell("run.number('share_cls', 0.5)\nrun.save()")
    tried.cells = [*tried.cells[: first + 1], saving]  # the rest of the chapter takes a minute
    nbformat.write(tried, file)
    for command in ("init -q", "add .", "-c user.name=x -c user.email=x@x commit -qm all"):
        subprocess.run(["git", *command.split()], cwd=folder, check=True)
    return folder


@pytest.mark.journey
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not on this machine")
def test_an_ordinary_run_changes_no_tracked_file(checkout):
    """From the notebook's folder, where editors execute it; what is kept lies in the checkout all the same."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BOOK_")}
    environment["PYTHONPATH"] = os.pathsep.join([str(checkout), environment["PYTHONPATH"]])
    command = "papermill 02_surface_patterns.ipynb out.ipynb -k python3 -p segments 20"
    command = [sys.executable, "-m", *command.split()]
    done = subprocess.run(command, cwd=checkout / "notebooks", env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    status = subprocess.run(["git", "status", "--porcelain"], cwd=checkout, capture_output=True, text=True).stdout
    assert status == "?? notebooks/out.ipynb\n"
    [record] = (checkout / "_build" / "runs" / "results").rglob("*.json")
    assert json.loads(record.read_text("utf-8"))["provenance"]["parameters"]["segments"] == 20


# A model that no test has seen


LACKING = {"10_ablation_by_type": "qa", "11_head_importance": "entailment"}
"""Chapters that need a head for a task, and which."""


@pytest.mark.journey
@pytest.mark.timeout(1800)
def test_a_new_model_goes_through_all_chapters_and_into_a_report(tmp_path, minilm):
    """A small DistilBERT with random weights, 64 positions and no head, in a folder."""
    from helpers.run import report

    folder = tmp_path / "mine"
    small_model("distilbert").save_pretrained(folder)
    minilm.tokenizer.save_pretrained(folder)
    kept = {"profile": "smoke", "results": tmp_path / "results"}
    done = notebooks.run(CHAPTERS, tmp_path / "out", given={"model": str(folder)}, at_a_time=2, **kept)
    for run in done:
        if run.chapter in LACKING:
            assert run.state == "skipped" and f"no head for {LACKING[run.chapter]!r}" in run.problem
        else:
            assert run.state == "executed", run
            assert_whole(run.file, without=["fig-dep-cost"])  # no head
    page = report.write(done, tmp_path / "report.html", **kept).read_text("utf-8")
    assert "DistilBertModel" in page and "10_ablation_by_type" in page
    finished = [name for name in CHAPTERS if name not in LACKING]
    again = notebooks.run(finished, tmp_path / "out", given={"model": str(folder)}, keep=True, **kept)
    assert {run.state for run in again} == {"kept"}, "the same command goes on where it stopped"


# The runner


def write_chapter(folder, name, parameters, *cells):
    """A chapter with a parameters cell and others."""
    first, *others = map(nbformat.v4.new_code_cell, (parameters, *cells))
    first.metadata.tags = ["parameters"]
    kernel = {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=[first, *others], metadata=kernel), folder / f"{name}.ipynb")


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A book of one chapter: ``tiny(cell, …, n=2)`` runs it."""
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path)

    def run(*cells, out="out", **given):
        write_chapter(tmp_path, "01_tiny", "n = 3\nprofile = 'book'", *cells)
        kept = {"profile": "book", "results": tmp_path / "results"}
        [done] = notebooks.run(["01_tiny"], tmp_path / out, given=given, **kept)
        return done

    return run


def test_a_run_that_fails_leaves_the_older_notebook(tiny):
    cells = "print(n)", "assert n > 1, 'too few'"
    done = tiny(*cells, n="2")
    before = done.file.read_bytes()
    assert nbformat.read(done.file, as_version=4).metadata.papermill.parameters == {"n": 2}
    assert notebooks.is_current("01_tiny", done.file, {"n": 2})
    assert not notebooks.is_current("01_tiny", done.file, {"n": 1})
    failed = tiny(*cells, n=1)
    assert failed.state == "failed" and "AssertionError: too few" in failed.problem and "\n" not in str(failed)
    assert done.file.read_bytes() == before
    assert not notebooks.is_current("01_tiny", done.file, {"n": 2}), "the chapter was written again"


@pytest.mark.parametrize(
    ("cell", "out", "state", "says"),
    [
        ("raise SystemExit('not this model')", "out", "skipped", "not this model"),
        ("import os; os._exit(9)", "out", "failed", "its kernel ended"),
        ("", "01_tiny.ipynb/out", "failed", "01_tiny.ipynb"),
    ],
    ids=["refuses", "ends", "nowhere"],
)
def test_what_becomes_of_a_chapter_that_cannot_be_executed(tiny, cell, out, state, says):
    done = tiny(cell, out=out)
    assert done.state == state and says in done.problem


def test_a_kernel_that_never_answers_is_started_again(tiny, monkeypatch):
    execute, calls = notebooks.papermill.execute_notebook, []

    def answers_the_second_time(*given, **options):
        calls.append(given)
        if len(calls) == 1:
            raise RuntimeError("Kernel didn't respond in 60 seconds")
        return execute(*given, **options)

    monkeypatch.setattr(notebooks.papermill, "execute_notebook", answers_the_second_time)
    assert (tiny("print(n)").state, len(calls)) == ("executed", 2)


@pytest.fixture
def tables(tmp_path):
    """A stored table under several names: ``tables("new", change, processor)`` changes one number of it."""
    stored = results.recorded("probing_classifiers")

    def make(folder, change=0.0, processor="one", name="probing_classifiers", device="cpu"):
        table = stored.table.copy()
        table.loc[table.quantity == "uas", "value"] += change
        file = tmp_path / folder / "book" / "minilm" / f"{name}.csv"
        file.parent.mkdir(parents=True)
        file.write_text(results.as_csv(table))
        about = {"chapter": name, "provenance": stored["provenance"] | {"processor": processor, "device": device}}
        file.with_suffix(".json").write_text(json.dumps(about))
        return tmp_path / folder

    return make


def test_comparing_finds_what_differs_beyond_its_tolerance(tables):
    old, same, new = tables("old"), tables("same", 5e-5), tables("new", 1e-3)
    assert comparing.differences(same, old) == {}
    [line] = comparing.differences(new, old).values()
    count = (results.recorded("probing_classifiers").table.quantity == "uas").sum()
    assert f"{count} numbers differ; uas 3.0 9.0 best single head, value is" in line
    elsewhere = tables("elsewhere", 1e-3, "another")
    assert comparing.differences(elsewhere, old) == {} and "0 of 1 tables" in comparing.rule_of(elsewhere, old)
    assert comparing.differences(tables("far", 0.1, "another"), old)
    assert comparing.differences(tables("card", 1e-3, device="cuda"), old) == {}, "adds in another order, too"
    other = tables("other", name="surface_patterns")
    missing = comparing.differences(other, old).values()
    assert [text.partition(".csv is not among the ")[2] for text in missing] == ["new tables.", "stored tables."]


def test_no_row_is_missed_by_a_comparison():
    """One that is gone, one that is new, another name."""
    table = results.recorded("distance_features").table
    names = table.assign(label=table.label.where(table.quantity != "type", "another"))
    assert len(comparing.differing(table, table, {})) == 0
    assert len(comparing.differing(table.iloc[1:], table, {})) and len(comparing.differing(table, table.iloc[1:], {}))
    assert len(comparing.differing(names, table, {})) == (table.quantity == "type").sum()


def test_keeping_copies_notebooks_and_draws_the_cover_of_what_was_executed(tmp_path):
    executed, root = tmp_path / "executed", tmp_path / "root"
    for folder in (
        executed / "notebooks",
        executed / "results",
        root / "notebooks",
        root / "data/results",
        root / "book/_static",
    ):
        folder.mkdir(parents=True)
    stored = notebooks.FOLDER / "04_dependency_heads.ipynb"
    shutil.copy2(stored, executed / "notebooks")
    comparing.keep(executed, root)
    assert (root / "notebooks" / stored.name).read_bytes() == stored.read_bytes()
    assert (root / "book/_static/cover.png").read_bytes()[1:4] == b"PNG"
