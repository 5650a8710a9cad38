"""What a reader types: names that are nearly right, and models in folders."""

import difflib
from collections.abc import Iterable
from pathlib import Path


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` Did you mean …?`` where a known name is close to the given one, else nothing."""
    close = difflib.get_close_matches(name, list(known), 1)
    return f" Did you mean {close[0]!r}?" if close else ""


def resolved(model: str) -> str:
    """A model's name; of a folder its absolute path, since chapters run elsewhere. A name that the book knows is never a folder's."""
    from helpers.models import KNOWN

    base = model.removesuffix("@random")
    folder = Path(base).expanduser()
    if base in KNOWN or not folder.is_dir():
        return model
    return f"{folder.absolute()}{model.removeprefix(base)}"
