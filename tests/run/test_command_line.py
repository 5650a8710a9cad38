"""python -m helpers."""

import hashlib
import os
import re

import pytest
from click.testing import CliRunner

from helpers import places
from helpers.__main__ import main, resolved
from helpers.run import notebooks


def run(*arguments):
    return CliRunner().invoke(main, arguments)


def test_help_names_every_command():
    text = run("--help").output
    for command in (
        "models",
        "corpora",
        "fetch",
        "run",
        "full",
        "book",
        "notebooks",
        "scoreboard",
        "course",
        "grade",
        "bench",
        "doctor",
    ):
        assert f"\n  {command} " in text
    for command in ("fetch", "run", "full", "bench"):
        assert run(command, "--help").exit_code == 0


def test_models(monkeypatch, tmp_path):
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path))
    text = run("models").output
    assert "minilm" in text and "not here yet: python -m helpers fetch mpnet" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("fetch", "mpnt"), "Did you mean 'mpnet'"),
        (("run", "99"), "There are: 01_"),
        (("run", "surface_paterns"), "There is no chapter 'surface_paterns'. Did you mean 'surface_patterns'?"),
        (("run", "02", "-p", "nonsense", "1"), "no parameter 'nonsense'"),
        (("run", "02", "-p", "segmens", "1"), "Did you mean 'segments'?"),
        (("run", "02", "-p", "segments", "[1,"), "segments must be a whole number from 1"),
        (("run", "02", "-p", "profile", "../../escape"), "profile must be a name of letters, digits"),
        (("run", "all", "-p", "segments", "5"), "01_transformer_refresher has no parameter 'segments'"),
        (("run", "surface_paterns", "--help"), "Did you mean 'surface_patterns'?"),
        (("full", "--chapters", "no-op"), "Did you mean 'no_op'?"),
    ],
)
def test_foreseen_errors_end_in_a_message(arguments, says):
    result = run(*arguments)
    assert result.exit_code == 1 and says in result.output and "Traceback" not in result.output


@pytest.mark.parametrize("empty", [("--models", ""), ("--models", " "), ("--chapters", "")])
def test_nothing_to_run_is_an_error(empty):
    result = run("full", *empty)
    assert result.exit_code == 2 and "Name at least one model" in result.output


def test_help_shows_the_parameters_of_a_chapter():
    text = run("run", "7", "--profile", "smoke", "--help").output
    assert "Parameters of 07_divergence_map (-p NAME VALUE), with their values in profile smoke" in text
    assert re.search(r"segments +a whole number from 1, or null for all \[24\]", text)
    assert re.search(r"seed +a whole number from 0 to 4294967295 \[0\]", text)
    assert "Parameters of 07" in run("run", "7", "-h").output
    for arguments in (("--help",), ("all", "--help"), ("-h",)):
        result = run("run", *arguments)
        assert result.exit_code == 0 and "Parameters of" not in result.output


def test_paths_are_meant_from_where_the_reader_stands(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "encyclopedia").mkdir()
    (tmp_path / "minilm").mkdir()
    for name in ("a.conllu", "b.conllu", "c,d.txt"):
        (tmp_path / name).write_text("")
    given = {
        "model": "{}/model",
        "model@random": "{}/model@random",
        "a.conllu,b.conllu": "{0}/a.conllu,{0}/b.conllu",
        "c,d.txt": "{}/c,d.txt",
        "encyclopedia": "encyclopedia",  # the book's
        "@random": "@random",
        "minilm": "minilm",  # the book's, too
        "minilm@random": "minilm@random",
        "org/model": "org/model",
    }
    assert {name: resolved(name) for name in given} == {n: path.format(tmp_path) for n, path in given.items()}
    seen = {}
    monkeypatch.setattr(notebooks, "run", lambda *_, given, **__: seen.update(given) or [])
    assert run("run", "04", "-p", "treebank", "a.conllu", "-p", "profile", "mine", "--to", "out").exit_code == 0
    assert seen == {"treebank": f"{tmp_path}/a.conllu", "profile": "mine"}


def test_corpora(monkeypatch, tmp_path):
    monkeypatch.setenv("BOOK_DATA", str(tmp_path))  # --data sets it in this very process; monkeypatch puts it back
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path))
    text = run("corpora").output
    assert "encyclopedia (text; CC0 1.0)" in text and "100 articles, 300 paragraphs" in text
    assert "not here; python -m helpers fetch gum" in text and "not here; --data DIR" in text
    (tmp_path / "mine" / "qa").mkdir(parents=True)
    (tmp_path / "mine" / "qa" / "xquad.en.json").write_text("{}")
    result = run("corpora", "--data", str(tmp_path / "mine"))
    assert result.exit_code == 1 and "layout is not SQuAD's" in result.output
    quick = run("corpora", "--quick", "--data", str(tmp_path / "mine"))
    assert quick.exit_code == 0 and "xquad.en.json" in quick.output and "100 articles" not in quick.output


def test_doctor():
    text = run("doctor").output
    for part in ("python", "torch", "cores", "device", "minilm", "cache", "real corpora", "hub"):
        assert part in text


def test_options_of_measuring_reach_the_chapters(monkeypatch, tmp_path):
    seen = {}
    monkeypatch.setattr(notebooks, "run", lambda *_, **__: seen.update(os.environ) or [])
    folder = tmp_path / "checkpoint-900"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    options = ("--dtype", "float64", "--batch-size", "3", "--name", "tuned", "--device", "cpu")
    done = run("run", "02", "--model", str(folder), *options)
    assert done.exit_code == 0, done.output
    assert {n: seen[f"BOOK_{n}"] for n in ("DTYPE", "BATCH_SIZE", "NAME", "DEVICE")} == {
        "DTYPE": "float64",
        "BATCH_SIZE": "3",
        "NAME": f"tuned={folder}",
        "DEVICE": "cpu",
    }
    assert "BOOK_NAME" not in os.environ
    digest = hashlib.sha256(b"weights").hexdigest()[:8]
    assert places.label(f"{folder}@random") == f"checkpoint-900-{digest}@random"
    monkeypatch.setenv("BOOK_NAME", f"tuned={folder}")
    assert places.label(f"{folder}@random") == f"tuned-{digest}@random"
    other = tmp_path / "other"
    other.mkdir()
    assert places.label(str(other)).startswith("other-"), "the name is that of one folder"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--name", "x"), "--name is for the one model that is named, when it is a folder"),
        (("--model", "minilm", "--name", "x"), "--name is for the one model"),
        (("--model", "HERE", "--name", "../x"), "give a name of letters, digits"),
        (("--dtype", "bfloat16"), "is not one of 'float32', 'float64'"),
        (("--batch-size", "0"), "0 is not in the range"),
    ],
)
def test_options_that_cannot_be_are_refused(options, says, tmp_path):
    done = run("run", "02", *(str(tmp_path) if o == "HERE" else o for o in options))
    assert done.exit_code == 2 and says in done.output
