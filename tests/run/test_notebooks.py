"""The runner, the stored outputs, and every chapter end to end."""

import ast
import json
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from helpers import places
from helpers.run import digests, executing, notebooks, pages, telling
from helpers.run.durations import DURATIONS, Durations

CHAPTERS = notebooks.chapters()


def code_cells(notebook):
    return [c for c in notebook.cells if c.cell_type == "code"]


# ------------------------------------------------------------------ what is in git


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_stored_outputs_are_fresh_and_whole(chapter):
    assert notebooks.problems(chapter) == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_is_built_like_a_chapter(chapter):
    notebook = nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4)
    prose = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    assert prose.startswith("# ") and prose.split("\n")[0].endswith("?"), "the title is a question"
    for part in ("In this chapter", "**Read:**", "**Run:**", "## Exercises", "## Summary", "**Further reading.**"):
        assert part in prose, part
    assert len(prose.split()) < 5000
    gated, whole = ([prose.count(f"{{{kind}{end}}}") for kind in ("exercise", "solution")] for end in ("-start", ""))
    assert gated == [prose.count("{exercise-end}"), prose.count("{solution-end}")]
    exercises, solutions = map(sum, zip(gated, whole, strict=True))
    kinds = [kind for kind, _, _ in telling.of(chapter).exercises]
    assert (exercises, solutions) == (len(kinds), len(kinds) - kinds.count("Open project"))
    checked = kinds.count("Build")
    shown = "\n".join(
        str(o.get("data", {}).get("text/markdown", "")) for c in code_cells(notebook) for o in c.outputs
    )
    assert shown.count("✅") == checked and shown.count("⬜") == checked
    figures = [c.metadata["mystnb"] for c in code_cells(notebook) if "mystnb" in c.metadata]
    assert len(figures) >= 5
    for figure in figures:
        assert len(figure["figure"]["caption"]) > 30 and figure["figure"]["name"].startswith("fig-")
        assert len(figure["image"]["alt"]) > 40, "alt text"
    assert (places.ROOT / "helpers" / "chapters" / chapter[3:] / "measures.py").exists()
    assert (places.ROOT / "tests" / "chapters" / f"test_{chapter[3:]}.py").exists()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_is_told_like_a_chapter(chapter):
    assert telling.problems(chapter) == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_stored_notebooks_hold_no_third_party_script_and_no_path(chapter):
    text = (notebooks.FOLDER / f"{chapter}.ipynb").read_text("utf-8")
    for mark in (
        "jQuery v",
        "d3js.org",
        "bertviz.py",
        "/site-packages/",
        str(places.ROOT),
        "papermill",
        "execution_time",
    ):
        assert mark not in text, mark
    assert len(text) < 4_000_000


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_book_profile_is_the_notebooks_default(chapter):
    assert notebooks.parameters(chapter, "book") == notebooks.defaults(chapter)


def test_the_cover_is_the_stored_figure():
    assert (places.ROOT / "book" / "_static" / "cover.png").read_bytes() == pages.cover()


def test_profiles_name_only_what_exists():
    for profile in notebooks.PROFILES:
        settings = yaml.safe_load((notebooks.PROFILE_FOLDER / f"{profile}.yml").read_text())
        assert settings["all"]["profile"] == profile
        assert set(settings) - {"all"} <= set(CHAPTERS)
        for chapter in CHAPTERS:
            notebooks.parameters(chapter, profile)


# ------------------------------------------------------------------ the runner


CLAIMS = "paper: {claims: {own: {value: 1, chapter: tiny}, foreign: {value: 1, chapter: other}}}\n"


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A repository with one small chapter, to see when it is executed again."""
    for folder in ("helpers/package", "data/results/book/minilm", "notebooks", "book/profiles"):
        (tmp_path / folder).mkdir(parents=True)
    for name, text in {
        "helpers/__init__.py": "",
        "helpers/used.py": "from helpers import deeper, package\n",
        "helpers/deeper.py": "x = 1\n",
        "helpers/package/__init__.py": "from helpers.package.part import z\n",
        "helpers/package/part.py": "z = 1\n",
        "helpers/unused.py": "y = 1\n",
        "data/corpus.txt": "text",
        "data/README.md": "card",
        "data/papers.yml": CLAIMS,
        "requirements.lock": "a==1\ntorch==2\n",
        "data/results/book/minilm/other.json": "{}",
        "data/results/book/minilm/tiny.json": "{}",
        "data/results/book/minilm/unread.json": "{}",
        "book/profiles/book.yml": "all: {profile: book, n: 3}",
        "book/profiles/smoke.yml": "all: {profile: smoke, n: 1}",
    }.items():
        (tmp_path / name).write_text(text)
    cells = [
        nbformat.v4.new_markdown_cell("# Title?"),
        nbformat.v4.new_code_cell('n = 3\nprofile = "book"', metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(
            'print(n)\nif False:\n    from helpers import used, results\n    results.recorded("other")\n    results.recorded("tiny")'
        ),
    ]
    nbformat.write(
        nbformat.v4.new_notebook(
            cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "x", "language": "python"}}
        ),
        tmp_path / "notebooks" / "01_tiny.ipynb",
    )
    monkeypatch.setattr(places, "ROOT", tmp_path)
    monkeypatch.setattr(places, "HOME", tmp_path)
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path / "notebooks")
    monkeypatch.setattr(notebooks, "PROFILE_FOLDER", tmp_path / "book" / "profiles")
    return tmp_path


CHANGES = {
    "helpers/used.py": True,
    "helpers/deeper.py": True,
    "helpers/package/part.py": True,
    "helpers/unused.py": False,
    "data/corpus.txt": True,
    "data/README.md": False,
    "data/results/book/minilm/other.json": True,
    "data/results/book/minilm/unread.json": False,
    "data/results/book/minilm/tiny.json": False,  # what this very run writes
    "data/results/own/minilm/other.json": False,  # a reader's own
}


@pytest.mark.parametrize(("file", "matters"), CHANGES.items())
def test_what_counts_as_changed(tiny, file, matters):
    values = notebooks.parameters("01_tiny", "book")
    before = notebooks.digest("01_tiny", values)
    (tiny / file).parent.mkdir(parents=True, exist_ok=True)
    (tiny / file).write_text("import changed\n")
    assert (notebooks.digest("01_tiny", values) != before) == matters


LOCKS = {"a==2\ntorch==2\n": False, "torch==2\n": False, "a==1\ntorch==3\n": True, "a==1\n": True}


@pytest.mark.parametrize(("lock", "matters"), LOCKS.items())
def test_which_pinned_versions_count(tiny, lock, matters):
    before = notebooks.digest("01_tiny", {})
    (tiny / "requirements.lock").write_text(lock)
    assert (notebooks.digest("01_tiny", {}) != before) == matters


CELLS = {
    "n = (3)  # a comment\nprofile = 'book'": False,
    "n = 3;profile = 'book'": False,
    "n = 3\nprofile = 'book';": True,  # an end that hides the value of a last expression
    "n = 4\nprofile = 'book'": True,
    "n = 3\nprofile = 'book'\n'a text at the end is shown'": True,
    "n = 3\nprofile = 'book'\n%time n": True,
}


@pytest.mark.parametrize(("cell", "matters"), CELLS.items())
def test_what_counts_as_changed_in_a_cell(tiny, cell, matters):
    before = notebooks.digest("01_tiny", {})
    source = tiny / "notebooks" / "01_tiny.ipynb"
    notebook = nbformat.read(source, as_version=4)
    notebook.cells[1].source = cell
    nbformat.write(notebook, source)
    assert (notebooks.digest("01_tiny", {}) != before) == matters


@pytest.mark.parametrize(
    "named", ["mine.txt", "models/mine", "models/mine@random", "{root}/models/mine", "mine.txt, {root}/models/mine,x"]
)
def test_own_files_count_as_changed(tiny, named):
    (tiny / "models" / "mine").mkdir(parents=True)
    file = tiny / "mine.txt" if named.startswith("mine.txt") else tiny / "models" / "mine" / "model.safetensors"
    values = {"n": 3, "profile": "book", "given": [{"deep": named.format(root=tiny)}]}
    file.write_text("a")
    before = notebooks.digest("01_tiny", values)
    assert notebooks.digest("01_tiny", values) == before
    file.write_text("b")
    assert notebooks.digest("01_tiny", values) != before


def test_a_parameter_may_be_a_long_text(tiny):
    first, second = (notebooks.digest("01_tiny", {"text": "either/or " * 500 + end}) for end in "ab")
    assert first != second


def test_a_profile_is_not_the_folder_of_its_name(tiny):
    values = notebooks.parameters("01_tiny", "book")
    before = notebooks.digest("01_tiny", values)
    (tiny / "book" / "page.md").write_text("new")
    assert notebooks.digest("01_tiny", values) == before


def test_claims_of_papers_count_in_their_chapter(tiny):
    def now():
        return notebooks.digest("01_tiny", notebooks.parameters("01_tiny", "book"))

    before, papers = now(), tiny / "data" / "papers.yml"
    papers.write_text(CLAIMS.replace("{value: 1, chapter: other}", "{value: 2, chapter: other}"))
    assert now() == before
    papers.write_text(CLAIMS.replace("{value: 1, chapter: tiny}", "{value: 2, chapter: tiny}"))
    assert now() != before


def test_parameters_count_as_changed(tiny):
    book, smoke = (notebooks.digest("01_tiny", notebooks.parameters("01_tiny", p)) for p in ("book", "smoke"))
    assert book != smoke
    with pytest.raises(notebooks.NotebookError, match=r"no parameter 'm'\. It takes: n, profile"):
        notebooks.parameters("01_tiny", "book", {"m": 1})
    with pytest.raises(notebooks.NotebookError, match="no profile"):
        notebooks.parameters("01_tiny", "huge")


@pytest.mark.notebooks
def test_execution_is_incremental_and_failures_leave_the_old_file(tiny):
    target, source = tiny / "out" / "01_tiny.ipynb", tiny / "notebooks" / "01_tiny.ipynb"
    values = notebooks.parameters("01_tiny", "smoke")

    def run():
        return notebooks.execute("01_tiny", target, values, results=tiny / "r")

    assert run().executed
    first = target.read_text()
    notebook = nbformat.read(target, as_version=4)
    assert notebook.cells[-1].outputs[0].text == "1\n"
    assert [c.metadata.get("tags") for c in code_cells(notebook)][1] == ["injected-parameters", "remove-cell"]
    assert not run().executed and target.read_text() == first
    source.write_text(source.read_text().replace("# Title?", "# New title?"))
    assert not run().executed and "New title?" in target.read_text(), "prose is renewed without a run"
    assert nbformat.read(target, as_version=4).cells[-1].outputs[0].text == "1\n"
    kept = target.read_text()
    source.write_text(source.read_text().replace("print(n)", "print(n / 0)"))
    with pytest.raises(notebooks.NotebookError, match="ZeroDivisionError"):
        run()
    assert target.read_text() == kept
    source.write_text(source.read_text().replace("print(n / 0)", "print(n + 10)"))
    assert run().executed
    assert nbformat.read(target, as_version=4).cells[-1].outputs[0].text == "11\n"
    source.write_text(source.read_text().replace("print(n + 10)", "print(n)"))
    assert run().executed and target.read_text() == first.replace("# Title?", "# New title?"), "runs are reproducible"


def test_parameters_are_written_as_papermill_writes_them(tiny):
    """Readers run chapters with papermill too, and outputs of earlier runs hold cells that it wrote."""
    notebook = notebooks._read("01_tiny")
    changed = {
        "n": 7,
        "share": 0.5,
        "no": None,
        "so": True,
        "profile": 'a "q" \\ é\n',
        "all": [{"deep": ["x", -1e-9]}],
    }
    executing._inject(notebook, changed)
    (default, added) = (cell for cell in notebook.cells if cell.metadata.get("tags"))
    assert (default.metadata.tags, added.metadata.tags) == (["parameters"], ["injected-parameters"])
    assert added.source == (
        '# Parameters\nn = 7\nshare = 0.5\nno = None\nso = True\nprofile = "a \\"q\\" \\\\ \\xe9\\n"\n'
        'all = [{"deep": ["x", -1e-09]}]\n'
    )
    nbformat.validate(notebook)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_of_a_parameter_is_read_as_it_was_given(value):
    assert ast.literal_eval(executing._literal(value)) == value


def test_a_value_that_has_no_name_in_python():
    assert [executing._literal(float(name)) for name in ("inf", "-inf", "nan")] == [
        "float('inf')",
        "float('-inf')",
        "float('nan')",
    ]


def test_outputs_kept_in_git_stand_for_a_run_as_long_as_they_are_of_this_code(tiny):
    stored, target = tiny / "notebooks" / "01_tiny.ipynb", tiny / "out" / "01_tiny.ipynb"
    record = tiny / "r" / "book" / "minilm" / "tiny.json"

    def keep(marked):
        notebook = nbformat.read(stored, as_version=4)
        code_cells(notebook)[-1].outputs = [nbformat.v4.new_output("stream", name="stdout", text=marked)]
        notebook.metadata["book"] = {"digest": notebooks.digest("01_tiny", notebooks.parameters("01_tiny", "book"))}
        nbformat.write(notebook, stored)

    def taken():
        notebooks.take_stored("01_tiny", target, tiny / "r")
        return code_cells(nbformat.read(target, as_version=4))[-1].outputs[0].text if target.exists() else None

    assert taken() is None and not record.exists(), "what is in git is of no code"
    keep("kept")
    assert taken() == "kept" and record.read_text() == "{}"
    keep("another machine's")
    record.write_text("our own")
    assert taken() == "kept" and record.read_text() == "our own", "what was executed here, with this code, stays"
    (tiny / "helpers" / "used.py").write_text("import changed\n")
    assert taken() == "kept", "stale, and so is what is in git: this is for the runner"
    keep("newer")
    assert taken() == "newer" and record.read_text() == "{}"


def test_a_record_that_differs_from_the_one_in_git_is_told_anew(tiny):
    kept, made = tiny / "data" / "results", tiny / "r" / "book" / "minilm" / "tiny.json"
    assert not notebooks._told_anew("01_tiny", kept) and not notebooks._told_anew("01_tiny", tiny / "r")
    made.parent.mkdir(parents=True)
    for text, anew in {"{}": False, '{"changed": 1}': True}.items():
        made.write_text(text)
        assert notebooks._told_anew("01_tiny", tiny / "r") == anew


def test_stale_missing_and_broken_outputs_are_found(tiny):
    source = tiny / "notebooks" / "01_tiny.ipynb"
    assert any("stale" in p for p in notebooks.problems("01_tiny"))
    notebook = nbformat.read(source, as_version=4)
    notebook.metadata["book"] = {"digest": notebooks.digest("01_tiny", notebooks.parameters("01_tiny", "book"))}
    one, two = code_cells(notebook)
    one.execution_count = 1
    one.outputs = [
        nbformat.v4.new_output("stream", name="stderr", text="Warning"),
        nbformat.v4.new_output("display_data", data={}),
    ]
    two.metadata["mystnb"] = {"figure": {"caption": "c", "name": "fig-x"}}
    two.outputs = [nbformat.v4.new_output("error", ename="E", evalue="v", traceback=[])]
    nbformat.write(notebook, source)
    found = "\n".join(notebooks.problems("01_tiny"))
    for part in ("writes to stderr", "ends in E: v", "no figure", "empty output", "was not executed"):
        assert part in found
    assert "stale" not in found


def test_the_longest_chapters_begin_first(tmp_path):
    jobs = {chapter: {"model": "minilm"} for chapter in CHAPTERS}
    assert set(json.loads((notebooks.FOLDER / DURATIONS).read_text("utf-8"))) == set(CHAPTERS)
    alone = {chapter: set() for chapter in CHAPTERS}
    stored = notebooks._longest_first(CHAPTERS, tmp_path, jobs, alone)
    assert sorted(stored) == CHAPTERS and stored != CHAPTERS
    Durations(tmp_path / DURATIONS).record(("minilm", CHAPTERS[2]), 9)
    Durations(tmp_path / DURATIONS).record(("minilm", CHAPTERS[1]), 1)
    own = notebooks._longest_first(CHAPTERS[1:3], tmp_path, jobs, alone)
    assert own == [CHAPTERS[2], CHAPTERS[1]], "this folder's own run"
    Durations(tmp_path / DURATIONS).record(("minilm", CHAPTERS[3]), 8.5)
    waited_for = notebooks._longest_first(CHAPTERS[1:4], tmp_path, jobs, alone | {CHAPTERS[3]: {CHAPTERS[1]}})
    assert waited_for == [CHAPTERS[1], CHAPTERS[2], CHAPTERS[3]], "one that others wait for comes before them"


def test_a_chapter_waits_for_those_whose_records_it_reads(tmp_path, monkeypatch):
    assert {"surface_patterns", "dependency_heads", "coreference_heads"} <= digests.reads(
        notebooks._read("07_divergence_map")
    )
    names, log = ["01_a", "02_b", "03_c", "04_d"], []
    told = {"02_b": {"a", "b"}, "04_d": {"b"}}
    fresh = {"01_a", "02_b", "03_c"}  # as it is before the run

    def execute(name, target, values, **_):
        log.append((name, "begins"))
        time.sleep(0.05)
        log.append((name, "ends"))
        return notebooks.Run(name, target, executed=True, seconds=1.0)

    for name, stand_in in {
        "parameters": lambda *_: {},
        "_read": lambda name: name,
        "renewed": lambda name, *_: (
            notebooks.Run(name, tmp_path, executed=False, seconds=0.0) if name in fresh else None
        ),
        "execute": execute,
        "_begin": lambda *_: None,
        "get_context": lambda _: None,
        "ProcessPoolExecutor": lambda count, *_, **__: ThreadPoolExecutor(count),
    }.items():
        monkeypatch.setattr(notebooks, name, stand_in)
    monkeypatch.setattr(digests, "reads", lambda name: told.get(name, set()))
    run = lambda: notebooks.run(names, tmp_path, profile="book", results=tmp_path, at_a_time=2)  # noqa: E731
    assert [one.executed for one in run()] == [False, False, False, True]
    fresh.remove("01_a")
    log.clear()
    assert [one.executed for one in run()] == [True, True, False, True]
    assert log == [(name, what) for name in ("01_a", "02_b", "04_d") for what in ("begins", "ends")]


@pytest.mark.parametrize(
    ("cores", "gibibytes", "jobs", "wanted"),
    [(8, 64, 14, 4), (2, 64, 14, 2), (8, 5, 14, 2), (8, 1, 14, 1), (8, 64, 3, 3), (2, 64, 0, 1)],
)
def test_chapters_at_once_follow_cores_and_memory(monkeypatch, cores, gibibytes, jobs, wanted):
    monkeypatch.setattr(notebooks.joblib, "cpu_count", lambda: cores)
    monkeypatch.setattr(notebooks.psutil, "virtual_memory", lambda: SimpleNamespace(available=gibibytes << 30))
    monkeypatch.setattr(notebooks, "CONTAINER_LIMIT", Path("nowhere"))
    assert notebooks.at_once(jobs) == wanted


def test_a_container_may_have_less_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks.joblib, "cpu_count", lambda: 8)
    monkeypatch.setattr(notebooks.psutil, "virtual_memory", lambda: SimpleNamespace(available=64 << 30))
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(notebooks, "CONTAINER_LIMIT", limit)
    for text, wanted in {str(5 << 30): 2, "max": 4}.items():
        limit.write_text(text)
        assert notebooks.at_once(14) == wanted


def test_chapters_go_by_number_or_name():
    assert notebooks.find("2") == notebooks.find("02") == notebooks.find("surface_patterns") == "02_surface_patterns"
    with pytest.raises(notebooks.NotebookError, match="There are: 01_"):
        notebooks.find("99")


def test_the_table_of_contents_names_every_page():
    named = pages.pages_of(places.ROOT / "book" / "_toc.yml")
    assert len(named) == len(set(named))
    assert {f"notebooks/{c}" for c in CHAPTERS} <= set(named)
    assert {f.relative_to(places.ROOT).with_suffix("").as_posix() for f in (places.ROOT / "book").rglob("*.md")} == {
        p for p in named if p.startswith("book/")
    }


def test_the_repository_names_no_machine(tmp_path):
    """No tracked text file holds a path of the machine it was made on."""
    git = shutil.which("git")
    if git is None or not (places.ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run([git, "ls-files"], cwd=places.ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\n")):
        file = places.ROOT / name
        if file.suffix in {".py", ".md", ".yml", ".toml", ".json", ".ipynb", ".cff", ".lock"} and file.exists():
            assert "/site-packages/" not in file.read_text("utf-8") or file.name == Path(__file__).name, name
            assert json.dumps(str(Path.home()) + "/")[1:-1] not in file.read_text("utf-8"), name


def test_opening_a_notebook_builds_no_grammar_of_addresses():
    """A library that validates JSON would, in every process that opens one, and takes a second for it."""
    code = "import sys, helpers.run.notebooks; print('nbformat' in sys.modules, 'rfc3987_syntax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=places.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
