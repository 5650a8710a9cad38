"""Copies of the chapters: what they install, where they lead, what is left alone."""

import json
import sys

import nbformat
import pytest
from click.testing import CliRunner

from helpers import places
from helpers.__main__ import main
from helpers.run import launch, notebooks

pytest.importorskip("pybtex", reason="the extra lab is not installed")

SITE = "https://example.github.io/attention"


@pytest.fixture
def published(monkeypatch):
    monkeypatch.setenv("BOOK_REPOSITORY", "https://github.com/example/attention")


@pytest.fixture
def nowhere(monkeypatch):
    monkeypatch.setenv("BOOK_REPOSITORY", "")


@pytest.fixture
def wheel(tmp_path):
    file = tmp_path / "dist" / launch.wheel_name()
    file.parent.mkdir()
    file.write_bytes(b"wheel")
    return file


def cells(file):
    return nbformat.read(file, as_version=4).cells


def test_the_branch_has_copies_that_install_its_wheel_and_what_binder_reads(published, wheel, tmp_path):
    made = launch.branch(tmp_path / "out", wheel)
    assert [file.stem for file in made[:-1]] == notebooks.chapters() and made[-1].read_bytes() == b"wheel"
    for file in made[:-1]:
        title, page, install = cells(file)[:3]
        assert title.source.startswith("# ") and f"({SITE}/notebooks/{file.stem}.html)" in page.source
        address = f"https://github.com/example/attention/raw/launch/{wheel.name}"
        assert f'%pip install --quiet "{address}"' in install.source
    wanted = (tmp_path / "out" / "environment.yml").read_text("utf-8")
    assert f"pytorch-cpu={launch.torch_version()}" in wanted and f"./{wheel.name}[lab]" in wanted
    assert "torch==" not in (tmp_path / "out" / "environment.lock").read_text("utf-8")


def test_copies_have_no_outputs_and_are_the_same_each_time(published, wheel, tmp_path):
    first, second = (launch.branch(tmp_path / name, wheel) for name in ("a", "b"))
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]
    for file in first[:-1]:
        assert not any(cell.get("outputs") for cell in cells(file))
        assert "book" not in json.loads(file.read_text("utf-8"))["metadata"]
        nbformat.validate(nbformat.read(file, as_version=4))


def test_without_an_address_copies_install_the_wheel_beside_them(nowhere, wheel, tmp_path):
    made = launch.branch(tmp_path / "out", wheel)
    _, install = cells(made[0])[:2]
    assert f'"{tmp_path / "out" / wheel.name}"' in install.source and "http" not in install.source


def test_a_wheel_of_another_version_is_refused(nowhere, tmp_path):
    with pytest.raises(places.BookError, match=r"old\.whl is no wheel of this version, attention_heads_book-"):
        launch.branch(tmp_path, tmp_path / "old.whl")


@pytest.mark.parametrize("there", [True, False])
def test_the_install_cell_does_nothing_where_the_package_is(there, monkeypatch):
    """The cell as IPython runs it, with its magic recorded instead of obeyed."""
    from IPython.core.inputtransformer2 import TransformerManager

    called = []

    class Shell:
        def run_line_magic(self, name, line, *_):
            called.append((name, line))

    if not there:
        monkeypatch.setattr(sys, "meta_path", [])
        monkeypatch.setattr(sys, "path", [])
        for name in [one for one in sys.modules if one.partition(".")[0] == "helpers"]:
            monkeypatch.delitem(sys.modules, name)
    code = TransformerManager().transform_cell(launch.INSTALL.format(wheel="https://x/y.whl"))
    exec(code, {"get_ipython": Shell})
    assert called == ([] if there else [("pip", 'install --quiet "https://x/y.whl"')])


def test_lab_copies_chapters_and_keeps_what_a_reader_has_changed(nowhere, tmp_path):
    def run(*options):
        done = CliRunner().invoke(main, ["lab", str(tmp_path / "mine"), "--copy-only", *options])
        assert done.exit_code == 0, done.output
        return tmp_path / "mine" / "notebooks" / "02_surface_patterns.ipynb"

    file = run()
    assert "install" not in [cell.id for cell in cells(file)], "the package that copies them is there"
    file.write_text("mine")
    assert run().read_text() == "mine"
    assert run("--replace").read_text() != "mine"
