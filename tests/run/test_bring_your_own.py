"""The page "Bring your own": every block of it, exactly as it is printed, on the files that it shows."""

import json
import re
import shlex
import shutil

import pytest
from click.testing import CliRunner
from executed import assert_whole

import helpers.__main__
from helpers import corpora, places
from helpers.run import notebooks

BOOK = places.ROOT / "book"
PAGE = (BOOK / "bring_your_own.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.M | re.S)
COMMANDS = [line for language, text in BLOCKS if language == "bash" for line in text.splitlines()]
SHOWN = re.findall(r"{literalinclude} examples/(\S+)\n:language: \w+\n:caption: (\S+)\n", PAGE)
TASKS = {"03_no_op", "10_ablation_by_type", "11_head_importance", "13_keywords"}
"""Chapters that a model without a head skips (``test_another_model.py``): here they run with minilm, from start to end."""


def test_every_file_that_is_shown_has_its_name_and_can_be_taken_away():
    there = {f.relative_to(BOOK / "examples").as_posix() for f in (BOOK / "examples").rglob("*") if f.is_file()}
    assert {file for file, _ in SHOWN} == there and all(file == caption for file, caption in SHOWN)
    assert set(re.findall(r"{download}`[^`]+ <examples/(\S+)>`", PAGE)) == there
    given = set(re.findall(r"my_\w+(?:/\w+)?\.\w+", " ".join(COMMANDS)))
    assert given | {"my_keyphrases/articles.jsonl"} == there, "a command for each"


def test_every_block_is_one_of_those_that_are_run():
    assert {language for language, _ in BLOCKS} == {"bash", "python", "text"}
    assert {line for language, text in BLOCKS if language == "text" for line in text.splitlines()} == {
        "python -m helpers atlas --models my_model",
        "python -m helpers train qa --model mpnet --data folder/of/corpora",
        "python -m helpers run 04 -p treebank train.conllu,dev.conllu,test.conllu",
    }, "what takes longer, or is tested elsewhere, and what needs files that nobody has shown"
    assert COMMANDS[0] == "source .venv/bin/activate" and all(
        c.startswith("python -m helpers ") for c in COMMANDS[1:]
    )


def test_the_examples_are_the_smallest(tmp_path):
    """A line, a document, or a paragraph less, and they are refused."""
    for name, less, says in (
        ("my_text.txt", lambda text: text.split("\n", 1)[1], "8 paragraphs"),
        ("my_treebank.conllu", lambda text: text.split("\n\n# newdoc", 1)[1].join(("# newdoc", "")), "5 documents"),
    ):
        (tmp_path / name).write_text(less((BOOK / "examples" / name).read_text("utf-8")))
        with pytest.raises(corpora.CorpusError, match=says):
            if name.endswith("txt"):
                corpora.parts.halves(corpora.read(str(tmp_path / name)))
            else:
                corpora.documents(str(tmp_path / name), "test")


@pytest.mark.journey
@pytest.mark.notebooks
def test_chapters_that_need_a_head_of_the_model(tmp_path):
    names = sorted(TASKS)
    for done in notebooks.run(names, tmp_path, profile="smoke", results=tmp_path / "results", at_a_time=1):
        assert_whole(done)


@pytest.mark.journey
@pytest.mark.notebooks
@pytest.mark.timeout(1800)  # ten chapters, one after another
def test_the_commands_do_what_the_page_says(tmp_path, monkeypatch):
    shutil.copytree(BOOK / "examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(helpers.__main__, "BUILD", tmp_path / "_build")
    monkeypatch.setenv("BOOK_RESULTS", str(results := tmp_path / "_build" / "runs" / "results"))
    done = []
    ran = notebooks.run
    monkeypatch.setattr(notebooks, "run", lambda *given, **options: done.append(ran(*given, **options)) or done[-1])
    for text in (text for language, text in BLOCKS if language == "python"):
        exec(compile(text, "bring_your_own.md", "exec"), {})
    said = {command: _said(command) for command in COMMANDS[1:]}
    runs = [one for each in done for one in each]
    assert {run.chapter for run in runs} >= TASKS
    for run in runs:
        # so small a treebank has no cases for two of the drawings
        assert_whole(run, without=["fig-coref-links", "fig-dep-landing"])
    kept = {f.relative_to(results).as_posix() for f in results.rglob("*.json")}
    own = {run.chapter[3:] for run in runs} - {"surface_patterns"}
    assert {file for file in kept if file.startswith("own/")} == {
        f"own/minilm/{name}.json" for name in {*own, "surface_patterns"}
    }
    theirs = sorted(file.split("/")[1].rpartition("-")[0] for file in kept if file.startswith("smoke/"))
    assert theirs == ["tuned"], "a model of one's own on the book's texts"
    for name in own:
        record = json.loads((results / "own" / "minilm" / f"{name}.json").read_text("utf-8"))
        where = record["provenance"]
        files = [*where.get("own", []), *filter(lambda c: c and c.get("own"), [where["corpus"]])]
        assert files and all(len(f["sha256"]) == 64 and "/" not in f["name"] for f in files), "by name and sha256"
    assert "segments" in said["python -m helpers run 02 --help"]
    again = COMMANDS.index(next(c for c in COMMANDS if " run 13 " in c))
    _said(COMMANDS[again])
    assert not done[-1][0].executed, "nothing has changed"


def _said(command: str) -> str:
    result = CliRunner().invoke(helpers.__main__.main, shlex.split(command)[3:])
    assert result.exit_code == 0, f"{command}: {result.output}"
    return result.output
