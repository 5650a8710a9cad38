"""How long chapters took, kept beside the executed notebooks: for the time left, and so that the longest begin first."""

import json
import statistics
from pathlib import Path

from helpers import places

DURATIONS = "durations.json"


def in_words(seconds: float | int) -> str:
    """A length of time for people."""
    if seconds == float("inf"):
        return "unknown time"
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class Durations:
    """How long chapters took in earlier runs, kept beside the executed notebooks; all of a list, or nothing, is known."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self.seconds: dict[str, dict[str, float]] = json.loads(file.read_text("utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            self.seconds = {}

    def record(self, job: tuple[str, str], seconds: float | int) -> None:
        """Remember how long a model took for a chapter."""
        model, name = job
        self.seconds.setdefault(name, {})[places.label(model)] = round(seconds, 1)
        places.write(self.file, json.dumps(self.seconds, indent=1, sort_keys=True) + "\n")

    def of(self, job: tuple[str, str]) -> float | int:
        """Seconds that a chapter will take: as last time with this model, else as with others, else as other chapters do.

        Infinity when nothing is known.
        """
        model, name = job
        known = self.seconds.get(name, {})
        if places.label(model) in known:
            return known[places.label(model)]
        every = list(known.values()) or [s for models in self.seconds.values() for s in models.values()]
        return statistics.mean(every) if every else float("inf")

    def left(self, job: tuple[str, str], passed: float | int, share: float | None) -> float | int:
        """Seconds until a chapter under way ends, from earlier runs, or else from the share of its parts that is done."""
        whole = self.of(job)
        if whole == float("inf") and share:
            whole = passed / share
        return max(0.0, whole - passed)
