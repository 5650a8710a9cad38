"""Copies of the chapters: nothing of MyST is left, nothing that was said is lost, and what they install and where they lead."""

import html
import re

import nbformat
import pytest
from conftest import from_data

from helpers import places
from helpers.run import launch, notebooks

SITE = "https://example.org/book"
LEFT = re.compile(r"\{[\w:.-]+\}`|^\s*:{3,}|^\s*[`~]{3,}\{|^:[\w-]+: ", re.MULTILINE)


def rendered(*cells, site=None):
    """The cells of a toy chapter in plain Markdown."""
    return launch.rendered(nbformat.v4.new_notebook(cells=cells), "02_toy", site).cells


def prose(notebook):
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


@pytest.mark.parametrize("chapter", notebooks.chapters())
def test_a_chapter_is_plain_and_whole(chapter):
    stored = nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4)
    made = launch.rendered(stored, chapter, SITE)
    nbformat.validate(made)
    assert LEFT.search(prose(stored)) and LEFT.findall(prose(made)) == []
    bare = re.sub(r"\{solution.*|\{[\w:-]+\}(`[^`]*`)?|^:[\w-]+:.*$", " ", prose(stored), flags=re.MULTILINE)
    assert set(re.findall(r"[a-z]{5,}", bare)) - set(re.findall(r"[a-z]{5,}", prose(made))) == set()
    code = [[(c.source, c.outputs) for c in book.cells if c.cell_type == "code"] for book in (stored, made)]
    assert code[0] == code[1] and len({cell.id for cell in made.cells}) == len(made.cells)
    figures = [cell for cell in stored.cells if "figure" in cell.metadata.get("mystnb", {})]
    numbers = re.findall(r"^\*\*Fig\. ([\d.]+)\*\* \S", prose(made), re.MULTILINE)
    assert numbers == [f"{int(chapter[:2])}.{n}" for n in range(1, len(figures) + 1)]
    pages = re.findall(rf"\]\({SITE}/([\w/]+)\.html\)", prose(made))
    assert all(any((places.ROOT / page).with_suffix(end).is_file() for end in (".md", ".ipynb")) for page in pages)


@pytest.mark.parametrize(("source", "plain"), from_data("myst"))
def test_each_construct_has_its_plain_form(source, plain):
    assert [cell.source for cell in rendered(nbformat.v4.new_markdown_cell(source), site=SITE)] == [plain]


def test_exercises_are_numbered_and_solutions_marked():
    sources = (
        "```{exercise-start} First\n:label: ex-a\n```\nDo.\n```{exercise-end}\n```\n````{solution-start} ex-a\n````\nSo.",
        "````{solution-end}\n````\nAfter {ref}`ex-a`.",
    )
    first, last = map(nbformat.v4.new_markdown_cell, sources)
    made = rendered(first, nbformat.v4.new_code_cell("1"), last)
    assert [cell.source for cell in made if cell.metadata.get("jp-MarkdownHeadingCollapsed")] == [made[1].source]
    assert [(cell.source, launch.SOLUTION in cell.metadata.get("tags", ())) for cell in made] == [
        ("### Exercise 2.1: First\n\nDo.", False),
        ("#### Solution to Exercise 2.1", True),
        ("So.", True),
        ("1", True),
        ("After Exercise 2.1.", False),
    ]


def test_what_the_page_hides_is_hidden_and_parameters_are_not():
    tags = (["hide-input"], ["hide-output"], ["parameters", "hide-input"], [])
    made = rendered(*(nbformat.v4.new_code_cell("a", metadata={"tags": [*group]}) for group in tags))
    hidden = [{"source_hidden": True}, {"outputs_hidden": True}, {"source_hidden": False}, {}]
    assert [cell.metadata.get("jupyter") for cell in made] == hidden


@pytest.fixture
def wheel(tmp_path):
    file = tmp_path / "dist" / launch.WHEEL
    file.parent.mkdir()
    file.write_bytes(b"wheel")
    return file


@pytest.mark.parametrize("repository", ["https://github.com/example/attention", ""])
def test_the_branch_has_copies_that_install_its_wheel_and_what_binder_reads(wheel, tmp_path, monkeypatch, repository):
    monkeypatch.setenv("BOOK_REPOSITORY", repository)
    copies = launch.branch(tmp_path / "out", wheel)
    assert [file.stem for file in copies] == notebooks.chapters()
    address = f"{repository}/raw/launch/{wheel.name}" if repository else tmp_path / "out" / wheel.name
    for file in copies:
        cells = nbformat.read(file, as_version=4).cells
        assert cells[0].source.startswith("# ") and f'else "{address}"' in cells[1].source
        assert (f"https://example.github.io/attention/notebooks/{file.stem}.html" in cells[2].source) == bool(
            repository
        )
        assert not any(cell.get("outputs") for cell in cells)
    wanted = (tmp_path / "out" / "environment.yml").read_text("utf-8")
    assert "pytorch-cpu=" in wanted and f"./{wheel.name}[lab]" in wanted and "--editable" not in wanted
    assert "torch==" not in (tmp_path / "out" / "environment.lock").read_text("utf-8")
    assert (tmp_path / "out" / wheel.name).read_bytes() == b"wheel"


@pytest.mark.parametrize(("name", "says"), [("old.whl", "is no wheel of this version"), ("no.whl", "does not exist")])
def test_a_wheel_of_another_version_is_refused_and_so_is_none(tmp_path, name, says):
    (tmp_path / "old.whl").touch()
    with pytest.raises(places.BookError, match=f"{says}.* Build it with: make wheel"):
        launch.branch(tmp_path, tmp_path / name)


def test_copies_for_jupyterlab_have_outputs_and_those_that_a_reader_has_changed_are_kept(tmp_path):
    """``make lab``: figures and bertviz' views are there before anything is executed."""
    file = launch.write(tmp_path, outputs=True)[0]
    cells = nbformat.read(file, as_version=4).cells
    assert "install" not in [cell.id for cell in cells], "the package is there"
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", ())]
    assert any("image/png" in data for data in outputs)
    [frame] = [data["text/html"] for data in outputs if 'class="bertviz"' in data.get("text/html", "")]
    assert "head_view" in frame and "<!doctype html>" in html.unescape(frame)
    file.write_text("mine")
    assert launch.write(tmp_path, replace=False)[0].read_text() == "mine"
