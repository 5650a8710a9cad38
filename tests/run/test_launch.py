"""Copies of the chapters: what they install, where they lead, what is left alone."""

import nbformat
import pytest
from click.testing import CliRunner

from helpers import places
from helpers.__main__ import main
from helpers.run import launch, notebooks

pytest.importorskip("pybtex", reason="the extra lab is not installed")


@pytest.fixture
def wheel(tmp_path):
    file = tmp_path / "dist" / launch.wheel_name()
    file.parent.mkdir()
    file.write_bytes(b"wheel")
    return file


def cells(file):
    return nbformat.read(file, as_version=4).cells


def test_the_branch_has_copies_that_install_its_wheel_and_what_binder_reads(wheel, tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_REPOSITORY", "https://github.com/example/attention")
    *files, packed = launch.branch(tmp_path / "out", wheel)
    assert [file.stem for file in files] == notebooks.chapters() and packed.read_bytes() == b"wheel"
    for file in files:
        title, page, install = cells(file)[:3]
        assert title.source.startswith("# ")
        assert f"https://example.github.io/attention/notebooks/{file.stem}.html" in page.source
        address = f"https://github.com/example/attention/raw/launch/{wheel.name}"
        assert f'%pip install --quiet "{address}"' in install.source
        assert not any(cell.get("outputs") for cell in cells(file))
    wanted = (tmp_path / "out" / "environment.yml").read_text("utf-8")
    assert "pytorch-cpu=" in wanted and f"./{wheel.name}[lab]" in wanted
    assert "torch==" not in (tmp_path / "out" / "environment.lock").read_text("utf-8")


def test_without_an_address_copies_install_the_wheel_beside_them(wheel, tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_REPOSITORY", "")
    first, *_ = launch.branch(tmp_path / "out", wheel)
    install = cells(first)[1].source
    assert f'"{tmp_path / "out" / wheel.name}"' in install and "http" not in install


def test_a_wheel_of_another_version_is_refused(tmp_path):
    with pytest.raises(places.BookError, match="wheel of this version"):
        launch.branch(tmp_path, tmp_path / "old.whl")


def test_lab_copies_chapters_and_keeps_what_a_reader_has_changed(tmp_path):
    def lab(*options):
        done = CliRunner().invoke(main, ["lab", str(tmp_path / "mine"), "--copy-only", *options])
        assert done.exit_code == 0, done.output
        return tmp_path / "mine" / "notebooks" / "02_surface_patterns.ipynb"

    file = lab()
    assert "install" not in [cell.id for cell in cells(file)], "the package that copies them is there"
    file.write_text("mine")
    assert lab().read_text() == "mine"
    assert lab("--replace").read_text() != "mine"
