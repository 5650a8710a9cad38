"""Where things lie, and what is said of what is not there."""

import pytest

from helpers import places


def test_a_library_of_an_extra_is_named_with_the_extra():
    message = r"A thing needs nowhere_at_all.*pip install 'attention-heads-book\[long\]'"
    with pytest.raises(places.BookError, match=message), places.extra("long", "A thing"):
        import nowhere_at_all  # noqa: F401
