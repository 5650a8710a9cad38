"""The address comes from one place: the remote, or a variable; no file of the repository holds one."""

import re
import subprocess

import pytest
import yaml

from helpers import places
from helpers.run import address

CONFIG = "title: Toy\nhtml: {favicon: x.svg}\n"


@pytest.fixture
def remote(tmp_path, monkeypatch):
    """A checkout whose origin can be set."""
    monkeypatch.delenv("BOOK_REPOSITORY", raising=False)
    monkeypatch.delenv("BOOK_SITE", raising=False)
    monkeypatch.setattr(places, "ROOT", tmp_path)

    def origin(url):
        for command in (["init", "-q"], ["remote", "add", "origin", url]):
            subprocess.run(["git", "-C", str(tmp_path), *command], check=True)

    return origin


@pytest.mark.parametrize(
    ("url", "repository", "site"),
    [
        ("git@github.com:Owner/name.git", "https://github.com/Owner/name", "https://owner.github.io/name"),
        (
            "https://user:secret@github.com/owner/name",
            "https://github.com/owner/name",
            "https://owner.github.io/name",
        ),
        ("ssh://git@gitlab.com:22/a/b/c.git/", "https://gitlab.com/a/b/c", "https://a.gitlab.io/b/c"),
        (
            "https://github.com/owner/owner.github.io",
            "https://github.com/owner/owner.github.io",
            "https://owner.github.io",
        ),
        ("https://git.example.org/owner/name.git", "https://git.example.org/owner/name", None),
        ("/srv/git/book.git", None, None),
        ("../book", None, None),
        ("file:///srv/book.git", None, None),
    ],
)
def test_the_remote_says_where_the_book_is(remote, url, repository, site):
    remote(url)
    assert (address.repository(), address.site()) == (repository, site)


def test_without_a_remote_there_is_no_address_and_the_pages_have_no_buttons(remote):
    assert address.repository() is address.site() is address.raw("x") is None
    assert address.configured(CONFIG) == CONFIG


def test_a_variable_names_another_address_or_none(remote, monkeypatch):
    remote("git@github.com:owner/name.git")
    monkeypatch.setenv("BOOK_REPOSITORY", "https://github.com/other/book/")
    assert address.repository() == "https://github.com/other/book"
    monkeypatch.setenv("BOOK_SITE", "https://book.example.org/")
    assert address.site() == "https://book.example.org"
    monkeypatch.delenv("BOOK_SITE")
    monkeypatch.setenv("BOOK_REPOSITORY", "")
    assert address.repository() is address.site() is None


def test_a_repository_around_the_folder_is_not_its_own(remote, tmp_path, monkeypatch):
    remote("git@github.com:owner/name.git")
    (tmp_path / "copy").mkdir()
    monkeypatch.setattr(places, "ROOT", tmp_path / "copy")
    assert address.repository() is None


def test_buttons_follow_the_address(remote):
    remote("git@github.com:owner/name.git")
    made = yaml.safe_load(address.configured(CONFIG))
    assert made["repository"] == {"url": "https://github.com/owner/name", "path_to_book": "", "branch": "main"}
    assert made["title"] == "Toy" and made["html"]["favicon"] == "x.svg"
    assert made["html"]["use_edit_page_button"] and set(made["launch_buttons"]) >= {"binderhub_url", "colab_url"}


@pytest.mark.parametrize(
    ("button", "led"),
    [
        (
            "https://colab.research.google.com/github/main/name/blob/main/notebooks/01_a.ipynb",
            "https://colab.research.google.com/github/main/name/blob/launch/notebooks/01_a.ipynb",
        ),
        (
            "https://mybinder.org/v2/gh/owner/main/main?urlpath=lab/tree/notebooks/01_a.ipynb",
            "https://mybinder.org/v2/gh/owner/main/launch?urlpath=lab/tree/notebooks/01_a.ipynb",
        ),
    ],
)
def test_launching_leads_to_the_copies(button, led):
    assert address.in_launch(button) == led


def test_no_file_holds_an_address():
    files = ["README.md", "CITATION.cff", "pyproject.toml", "_config.yml", "environment.yml", "book/_toc.yml"]
    texts = [*map(places.ROOT.joinpath, files), *(places.ROOT / "book").glob("*.md")]
    held = {file.name: re.findall(r"git(?:hub|lab)\.com/[\w/-]+", file.read_text("utf-8")) for file in texts}
    assert {name: found for name, found in held.items() if any("attention-heads-book" in one for one in found)} == {}
