"""Where things lie, and what is said of what is not there."""

import sys

import pytest

from helpers import places


def test_a_library_of_an_extra_is_named_with_the_extra():
    message = r"A thing needs nowhere_at_all.*pip install 'attention-heads-book\[long\]'"
    with pytest.raises(places.BookError, match=message), places.extra("long", "A thing"):
        import nowhere_at_all  # noqa: F401


@pytest.mark.skipif(sys.platform != "linux", reason="each system has a place of its own")
def test_what_is_fetched_lies_in_the_users_cache_or_where_a_reader_says(tmp_path, monkeypatch):
    monkeypatch.delenv("BOOK_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert places.cache() == tmp_path / "attention-heads-book"
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "named"))
    assert places.cache() == tmp_path / "named"
