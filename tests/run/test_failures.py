"""Whatever the system refuses, and whatever ends a chapter, is said in a sentence; nothing half-written stays."""

import errno
import os
import tempfile

import pytest
from click.testing import CliRunner

from helpers import places
from helpers.__main__ import main
from helpers.corpora import fetching
from helpers.engine import encoders
from helpers.run import bench, failures, long_runs, new, notebooks, pages, training

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/far/disk")
CLOSED = PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/far/disk")
LOCKED = OSError(errno.EROFS, os.strerror(errno.EROFS), "/far/disk")
COMMANDS = {
    ("fetch", "mpnet"): (encoders, "fetch"),
    ("fetch", "gum"): (fetching, "fetch"),
    ("run", "02", "--to", "{tmp}"): (notebooks, "run"),
    ("full", "--to", "{tmp}"): (long_runs, "run"),
    ("book",): (pages, "stage"),
    ("book", "--stored"): (pages, "stage_stored"),
    ("notebooks",): (notebooks, "run"),
    ("train", "mlm"): (training, "train"),
    ("new", "x"): (new, "new"),
    ("bench", "tap"): (bench, "tap"),
    ("models",): (encoders, "available"),
    ("scoreboard",): (places, "book_data"),
}


def run(*arguments):
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    monkeypatch.setattr("helpers.__main__.BUILD", tmp_path / "_build")
    monkeypatch.setattr(encoders, "load", lambda *_, **__: None)
    return tmp_path


@pytest.mark.parametrize(
    "error", [FULL, CLOSED, LOCKED, TimeoutError("Timed out")], ids=["full", "closed", "locked", "slow"]
)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_the_system_refuses_is_a_sentence(elsewhere, monkeypatch, command, error):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(*COMMANDS[command], refuse)
    result = run(*(part.format(tmp=elsewhere) for part in command))
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit), result.exception
    said = result.output.strip().splitlines()[-1]
    assert (
        said.startswith("Error: /far/disk: " if error.errno else "Error: Timed out")
        and "Traceback" not in result.output
    )
    assert not error.errno or "--to, BOOK_RESULTS or BOOK_CACHE" in said


def test_a_reader_of_the_output_that_has_seen_enough_is_no_error(monkeypatch):
    def closed():
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(encoders, "available", closed)
    result = run("models")
    assert result.exit_code == 1 and result.output == ""


def test_pages_are_built_of_what_is_kept_or_of_what_is_executed():
    result = run("book", "--stored", "--all")
    assert result.exit_code == 2 and "Say one of them" in result.output and "Traceback" not in result.output


def test_a_full_disk_is_seen_before_the_run_and_leaves_nothing(elsewhere, monkeypatch):
    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *_): ...
        def write(self, _):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full())
    monkeypatch.setattr(notebooks, "ProcessPoolExecutor", None)  # nothing is started
    result = run("run", "02", "--to", str(elsewhere / "to"))
    assert (
        result.exit_code == 1
        and f"Error: {elsewhere / 'to'}: No space left on device. Free some space" in result.output
    )
    assert list((elsewhere / "to").iterdir()) == []


def test_a_file_where_a_folder_is_needed(elsewhere, monkeypatch):
    file = elsewhere / "file"
    file.write_text("")
    result = run("run", "02", "--to", str(file / "to"))
    assert result.exit_code == 1 and "Not a directory. A folder is needed there" in result.output
    monkeypatch.setenv("BOOK_CACHE", str(file))
    to = ["--to", str(elsewhere / "to")]
    for command in (
        ["models"],
        ["corpora", "--quick"],
        ["fetch", "mpnet"],
        ["doctor"],
        ["run", "02", *to],
        ["full", *to],
    ):
        result = run(*command)
        assert result.exit_code == 1 and f"BOOK_CACHE names {str(file)!r}, which is not a folder" in result.output


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    file = tmp_path / "a.json"
    file.write_text("old")
    with pytest.raises(OSError, match="No space left on device") as error, places.whole(file) as scratch:
        scratch.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert error.value.filename == str(file)
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("name", "said", "kind", "says"),
    [
        ("EncoderError", "no", failures.Refused, "no"),
        ("UnknownModel", "There is\nno model.", failures.Refused, "There is no model."),
        ("UnsafeWeights", "no", failures.Refused, "no"),
        ("TapError", "no", failures.Refused, "no"),
        ("AdapterError", "no head", failures.Refused, "no head"),
        ("SystemExit", "needs qa", failures.Refused, "needs qa"),
        ("SystemExit", "", failures.Refused, "02_x ended itself in cell 7"),
        ("CorpusError", "x.txt, line 3: …", failures.NotebookError, "02_x: x.txt, line 3: …"),
        ("ResultError", "NaN", failures.NotebookError, "02_x: NaN"),
        ("BookError", "so it is", failures.NotebookError, "02_x: so it is"),
        ("FileNotFoundError", "The folder x is missing.", failures.NotebookError, "02_x: The folder x is missing."),
        (
            "OSError",
            "[Errno 28] No space left on device: '/d/x'",
            failures.NotebookError,
            "02_x: /d/x: No space left on device. Free",
        ),
        (
            "PermissionError",
            "[Errno 13] Permission denied: '/d/x'",
            failures.NotebookError,
            "02_x: /d/x: Permission denied. Take",
        ),
        (
            "OSError",
            "[Errno 28] No space left on device",
            failures.NotebookError,
            "02_x: No space left on device. Free",
        ),
        (
            "ZeroDivisionError",
            "division by zero",
            failures.NotebookError,
            "02_x failed in cell 7 with ZeroDivisionError: division by zero\n1 / 0",
        ),
    ],
)
def test_what_ends_a_chapter(name, said, kind, says):
    error = failures.of_cell("02_x", 7, name, said, ["\x1b[31m1 / 0\x1b[0m"])
    assert type(error) is kind and str(error).startswith(says)
    assert ("\n" in str(error)) == (name == "ZeroDivisionError")


def test_a_process_that_was_killed():
    error = failures.of_process("02_x", failures.BrokenProcessPool("A process was terminated abruptly"))
    assert str(error).startswith("02_x: its process was ended from outside") and "--at-a-time 1" in str(error)
    assert str(failures.of_process("02_x", FULL)).startswith("02_x: /far/disk: No space left")


def test_only_one_command_works_in_a_folder(elsewhere):
    (elsewhere / "_build").mkdir()
    for folder, command in (
        (elsewhere / "_build", ["book", "--stored"]),
        (elsewhere / "_build", ["notebooks"]),
        (elsewhere / "to", ["full", "--to", str(elsewhere / "to")]),
    ):
        with places.alone(folder):
            result = run(*command)
        assert result.exit_code == 1 and f"Another command is at work in {folder}. Wait" in result.output, (
            result.output
        )
    with places.alone(elsewhere / "to"):
        pass
