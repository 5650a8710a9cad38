"""Where things lie, and what is said of what is not there."""

import pytest

from helpers import places


def test_a_library_of_an_extra_is_named_with_the_extra():
    with (
        pytest.raises(
            places.BookError, match=r"A thing needs nowhere_at_all.*pip install 'attention-heads-book\[long\]'"
        ),
        places.extra("long", "A thing"),
    ):
        import nowhere_at_all  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match="nowhere"), places.extra("long", "A thing"):
        import helpers.nowhere  # noqa: F401


def test_a_checkout_can_do_all_and_writes_in_itself():
    places.checkout("Anything")
    assert places.ROOT == places.HOME and places.build() == places.ROOT / "_build"
