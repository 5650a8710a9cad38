"""python -m helpers: help, foreseen errors, whose numbers are shown; what the repository says of versions."""

import re
import shlex
import shutil
import tomllib

import nbformat
import pytest
import yaml
from click.testing import CliRunner
from conftest import from_data
from packaging.requirements import Requirement
from test_chapters import assert_whole, write_chapter

import helpers.__main__
from helpers import encoders, places, results
from helpers.__main__ import main
from helpers.run import notebooks
from helpers.run.notebooks import resolved

PROJECT = tomllib.loads((places.ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def run(*arguments):
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize("command", main.commands)
def test_every_command_has_help(command):
    done = run(command, "--help")
    assert done.exit_code == 0 and main.commands[command].help


@pytest.mark.parametrize(("command", "says"), from_data("mistakes"))
def test_a_foreseen_error_is_one_sentence(command, says):
    result = run(*shlex.split(command))
    assert result.exit_code != 0 and isinstance(result.exception, SystemExit)
    assert says in result.output and "Traceback" not in result.output


def test_paths_are_meant_from_where_the_reader_stands(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("model", "minilm"):
        (tmp_path / name).mkdir()
    given = {"model": "{}/model", "model@random": "{}/model@random", "minilm": "minilm", "org/model": "org/model"}
    assert {name: resolved(name) for name in given} == {n: path.format(tmp_path) for n, path in given.items()}


def test_own_runs_are_shown_when_asked_for_and_never_as_the_books(monkeypatch, tmp_path):
    """A run with other parameters is filed under the same profile and model."""
    monkeypatch.setattr(places, "build", lambda: tmp_path)
    monkeypatch.delenv("BOOK_RESULTS")
    record = places.book_data() / "results" / "book" / "minilm" / "surface_patterns.json"
    own = tmp_path / "runs" / "results" / "book" / "minilm" / "surface_patterns.json"
    own.parent.mkdir(parents=True)
    shutil.copyfile(record, own)
    table = results.from_csv(record.with_suffix(".csv"))
    table.loc[(table.quantity == "share_cls") & table.layer.isna(), "value"] = 0.987654
    own.with_suffix(".csv").write_text(results.as_csv(table), "utf-8")
    asked = ("scoreboard", "--model", "minilm", "--profile", "book", "--quantity", "share_cls", "--to")
    for options, shown in (((), False), (("--own",), True)):
        monkeypatch.delenv("BOOK_RESULTS", raising=False)
        assert run(*asked, str(tmp_path / "numbers.csv"), *options).exit_code == 0
        assert ("0.987654" in (tmp_path / "numbers.csv").read_text("utf-8")) == shown


def test_a_folder_or_its_name_names_what_was_recorded_of_it(folder, tmp_path, monkeypatch):
    """However the run named the folder, and wherever one stands."""
    monkeypatch.chdir(tmp_path)
    encoder = encoders.load("mine")
    monkeypatch.setenv("BOOK_NAME", "tuned")
    recorded = results.Run("surface_patterns", encoder, None, profile="book")
    recorded.number("share_cls", 0.25)
    label = recorded.save().parent.name
    monkeypatch.delenv("BOOK_NAME")
    assert re.fullmatch(r"tuned-[0-9a-f]{8}", label)
    for name in ("mine", "tuned", label):
        done = run("scoreboard", "02", "--own", "--model", name, "--to", "numbers.csv")
        assert done.exit_code == 0, done.output
        assert set(results.from_csv(tmp_path / "numbers.csv").model) == {label}
    assert "Nothing is recorded of another" in run("scoreboard", "--model", "another", "--to", "numbers.csv").output


@pytest.mark.slow
def test_a_sentence_of_ones_own_is_one_page_without_a_network(tmp_path):
    page = tmp_path / "look.html"
    done = run("look", "The <b>cat</b> sat.", "--to", str(page))
    assert done.exit_code == 0 and str(page) in done.output, done.output
    text = page.read_text("utf-8")
    assert "<h1>The &lt;b&gt;cat&lt;/b&gt; sat.</h1>" in text and not re.search(r"(?:src|href)=.?https?:", text)
    assert 'class="attention-view"' in text and "bertviz model_view" in text
    assert "The sentence has 52 tokens; a page shows 40 at most." in run("look", "cat " * 50).output


@pytest.mark.journey
def test_several_models_and_chapters_go_on_where_they_stopped(tmp_path, monkeypatch):
    for name, source in {"01_one": "print(n)", "02_two": "assert model != 'minilm@random', 'broken'"}.items():
        write_chapter(tmp_path, name, "model = 'minilm'\nn = 3", source)
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path)
    monkeypatch.setattr(notebooks, "is_current", lambda chapter, target, changed: target.is_file())
    command = shlex.split("run 1 two --at-a-time 1 -p n 2 --model minilm --model minilm@random --to")
    first, again = (run(*command, str(tmp_path / "out")) for _ in range(2))
    assert [done.exit_code for done in (first, again)] == [1, 1], first.output
    assert first.output.count(": executed, ") == 3 and again.output.count(": kept, ") == 3
    assert "minilm@random  02_two: failed" in again.output and "AssertionError: broken" in again.output
    assert nbformat.read(tmp_path / "out" / "minilm@random" / "01_one.ipynb", 4).cells[2].outputs[0].text == "2\n"


# Bring your own: the page's commands on the page's files

BOOK = places.ROOT / "book"
BLOCKS = re.findall(r"^```bash\n(.*?)^```", (BOOK / "bring_your_own.md").read_text("utf-8"), re.M | re.S)
COMMANDS = [line for text in BLOCKS for line in text.splitlines() if "-m helpers" in line and "my_model" not in line]


@pytest.mark.journey
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_bring_your_own_does_what_the_page_says(command, tmp_path, monkeypatch):
    shutil.copytree(BOOK / "examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(helpers.__main__, "BUILD", tmp_path / "_build")
    monkeypatch.setenv("BOOK_RESULTS", str(tmp_path / "results"))
    if " scoreboard " in command:  # of a run before it
        assert run("run", "02", *["--profile", "smoke", "-p", "corpus", "my_text.txt"]).exit_code == 0
    done = run(*shlex.split(command)[3:])
    assert done.exit_code == 0, done.output
    for file in (tmp_path / "_build").rglob("*.ipynb"):
        assert_whole(file)
    if " run " in command:
        assert [file.parts[-3] for file in (tmp_path / "results").rglob("*.json")] == ["smoke"]


# Versions


def pins(name):
    """What a file of versions says: name -> version."""
    lines = [line for line in (places.ROOT / name).read_text("utf-8").splitlines() if "==" in line]
    return {line.split("==")[0].replace("_", "-").lower(): line.split("==")[1] for line in lines}


def test_the_files_of_versions_agree():
    locked, oldest = pins("requirements.lock"), pins("requirements.oldest")
    core = [*map(Requirement, PROJECT["dependencies"])]
    for wanted in (
        *core,
        *(Requirement(name) for extra in PROJECT["optional-dependencies"].values() for name in extra),
    ):
        if wanted.name != "setuptools":  # the lock leaves it to pip
            assert wanted.specifier.contains(locked[wanted.name]), wanted
    assert all(needed.specifier.contains(oldest[needed.name]) for needed in core if needed.name in oldest)
    packages = yaml.safe_load((places.ROOT / "environment.yml").read_text("utf-8"))["dependencies"]
    assert f"pytorch-cpu={locked.pop('torch')}" in packages and pins("environment.lock") == locked


def test_a_parameter_is_read_as_yaml_where_it_is_not_a_text():
    given = {"limit": "5", "questions": "5", "tasks": "[qa]"}
    read = {"limit": 5, "questions": "5", "tasks": ["qa"]}
    assert notebooks.parameters("08_distance_features", "book", given) == read


def test_a_value_is_a_file_first_and_then_yaml(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "[draft] notes.txt").touch()
    values = [("corpus", "[draft] notes.txt"), ("choose_on", "[dev, test]"), ("sizes", "{mlm: 4}")]
    read = notebooks.read_values(values)
    assert read == {"corpus": f"{tmp_path}/[draft] notes.txt", "choose_on": ["dev", "test"], "sizes": {"mlm": 4}}
    with pytest.raises(places.BookError, match=r"other: '\[1,' is neither a file nor YAML"):
        notebooks.read_values([("other", "[1,")])


def test_a_library_of_an_extra_is_named_with_the_extra():
    message = r"A thing needs nowhere_at_all.*pip install 'attention-heads-book\[long\]'"
    with pytest.raises(places.BookError, match=message), places.extra("long", "A thing"):
        import nowhere_at_all  # noqa: F401
