"""python -m helpers."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from helpers import places
from helpers.__main__ import main


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
        (("run", "02", "-p", "nonsense", "1"), "no parameter 'nonsense'"),
    ],
)
def test_foreseen_errors_end_in_a_message(arguments, says):
    result = run(*arguments)
    assert result.exit_code == 1 and says in result.output and "Traceback" not in result.output


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


@pytest.mark.notebooks
def test_run_with_parameters_of_ones_own(tmp_path):
    """As a reader would: one's own text, through the command line, in a process of its own."""
    text = tmp_path / "mine.txt"
    paragraph = "The otter dived, and it came up with a shell. It laid the shell on its belly and cracked it."
    text.write_text("\n".join(f" = Article {n} = \n{paragraph}\n{paragraph}\n" for n in range(4)))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "helpers",
            "run",
            "02",
            "-p",
            "corpus",
            str(text),
            "--profile",
            "smoke",
            "--to",
            str(tmp_path),
        ],
        cwd=places.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "4 segments of 'mine'" in (tmp_path / "02_surface_patterns.ipynb").read_text("utf-8").replace("\\'", "'")
