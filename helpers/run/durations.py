"""How long chapters took and how much memory, kept beside the executed notebooks: for the time left, so that the longest begin
first, and for the boxes at their heads.
"""

import json
import statistics
from pathlib import Path

from helpers import places

DURATIONS, PEAKS = "durations.json", "memory.json"


def in_words(seconds: float | int) -> str:
    """A length of time for people."""
    if seconds == float("inf"):
        return "unknown time"
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class Noted:
    """One number for each chapter and model, kept in a file; all of a list, or nothing, is known."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self.numbers: dict[str, dict[str, float]] = json.loads(file.read_text("utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            self.numbers = {}

    def record(self, job: tuple[str, str], number: float | int) -> None:
        """Remember what a model took for a chapter."""
        model, name = job
        self.numbers.setdefault(name, {})[places.label(model)] = round(number, 1)
        places.write(self.file, json.dumps(self.numbers, indent=1, sort_keys=True) + "\n")


class Durations(Noted):
    """How many seconds chapters took in earlier runs."""

    def of(self, job: tuple[str, str]) -> float | int:
        """Seconds that a chapter will take: as last time with this model, else as with others, else as other chapters do.

        Infinity when nothing is known.
        """
        model, name = job
        known = self.numbers.get(name, {})
        if places.label(model) in known:
            return known[places.label(model)]
        every = list(known.values()) or [s for models in self.numbers.values() for s in models.values()]
        return statistics.mean(every) if every else float("inf")

    def left(self, job: tuple[str, str], passed: float | int, share: float | None) -> float | int:
        """Seconds until a chapter under way ends, from earlier runs, or else from the share of its parts that is done."""
        whole = self.of(job)
        if whole == float("inf") and share:
            whole = passed / share
        return max(0.0, whole - passed)
