"""What each chapter measures, draws, asks and finds: one folder a chapter; none imports another."""

from importlib import import_module
from typing import TYPE_CHECKING

from helpers import places

if TYPE_CHECKING:
    from helpers.record.scoreboard import Scoreboard


def scoreboard() -> "Scoreboard":
    """The findings of every chapter that has some, in the order of the notebooks."""
    from helpers.record.scoreboard import Scoreboard  # here, since opening one chapter needs no scoreboard

    folder = places.HOME / "helpers" / "chapters"
    notebooks = sorted(file.stem for file in (places.ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    written = [name for name in notebooks if (folder / name[3:] / "findings.py").is_file()]
    return Scoreboard({name: import_module(f"helpers.chapters.{name[3:]}.findings") for name in written})
