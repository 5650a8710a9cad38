"""Of which models the book has records: the list of the atlas and of the long table, and that of the scoreboard's columns."""

from collections.abc import Iterable, Sequence
from typing import Any

from helpers import places
from helpers.record import results
from helpers.record.scoreboard import PROFILES

DEFAULT = "minilm"


def runs(chapter: str, profiles: Iterable[str] = PROFILES) -> dict[tuple[str, str], dict[str, Any]]:
    """Every record of a chapter: (profile, model) -> record, profile by profile, the models in order."""
    found = {profile: results.runs(chapter, profile=profile) for profile in profiles}
    return {(profile, model): own[model] for profile, own in found.items() for model in ordered(own)}


def models(profiles: Sequence[str] = PROFILES) -> dict[str, dict[str, list[str]]]:
    """Every model of which something is recorded, in order: model -> profile -> names of the chapters' modules."""
    roots = dict.fromkeys((places.results(), places.book_data() / "results"))
    files = (file for root in roots for profile in profiles for file in (root / profile).glob("*/*.json"))
    found: dict[str, dict[str, list[str]]] = {}
    for chapter in sorted({file.stem for file in files}):
        for profile, model in runs(chapter, profiles):
            found.setdefault(model, {}).setdefault(profile, []).append(chapter)
    return {model: found[model] for model in ordered(found)}


def ordered(names: Iterable[str]) -> list[str]:
    """The default model first, then by name; a model's adapters and controls after it."""
    return sorted(names, key=place)


def place(name: str) -> tuple[bool, str, bool, str]:
    """Where a model stands in the order: what names are sorted by."""
    kin = name.split("@")[0].split("-")[0]
    return kin != DEFAULT, kin, "@" in name, name
