"""What the parameters of chapters may be: a kind for each, checked before a kernel starts and shown by ``run CHAPTER --help``.

A parameter that is not in the table, such as a new chapter's, may be whatever is of the same type as its value in the
parameters cell.
"""

import difflib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import yaml

from helpers.engine import TASKS

LONGEST = 4096
"""Characters of a text: a path is no longer anywhere."""

SEEDS = 2**32 - 1
"""Largest seed that every library takes."""


@dataclass(frozen=True)
class Kind:
    """A kind of value: what it is in words, whether a value is of this kind, and whether such values are texts."""

    words: str
    fits: Callable[[Any], bool]
    text: bool = False

    def read(self, given: str) -> Any:
        """The value that a reader means by what stands on the command line: a text is taken as it stands, the rest is YAML.

        What is not YAML stays a text, which then does not fit.
        """
        if self.text:
            return given
        with suppress(ValueError):
            return int(given)
        with suppress(yaml.YAMLError, ValueError, RecursionError):
            value = yaml.safe_load(given)
            return given if isinstance(value, int) and not isinstance(value, bool) else value  # 1:30 is no number
        return given


def whole(low: int, high: int | None = None) -> Kind:
    """A whole number."""

    def fits(value: Any) -> bool:
        return type(value) is int and low <= value and (high is None or value <= high)

    return Kind(f"a whole number from {low}" + (f" to {high}" if high is not None else ""), fits)


def or_all(kind: Kind) -> Kind:
    """That, or no limit."""
    return Kind(f"{kind.words}, or null for all", lambda value: value is None or kind.fits(value))


def list_of(kind: Kind, *, exactly: int | None = None) -> Kind:
    """A list that is not empty; with ``exactly``, one item for each of train, dev and test."""

    def fits(value: Any) -> bool:
        long_enough = isinstance(value, list | tuple) and (len(value) == exactly if exactly else len(value) > 0)
        return long_enough and all(map(kind.fits, value))

    how = f"a list of {exactly} (train, dev, test)" if exactly else "a list"
    return Kind(f"{how}, each {kind.words}", fits)


def some_of(names: Collection[str]) -> Kind:
    """A list of names, each once."""

    def fits(value: Any) -> bool:
        named = isinstance(value, list | tuple) and all(isinstance(one, str) and one in names for one in value)
        return named and 0 < len(value) == len(set(value))

    return Kind(f"a list of some of {', '.join(names)}", fits)


def by_task(kind: Kind, *, least: int = 0) -> Kind:
    """A value for each of several tasks."""

    def fits(value: Any) -> bool:
        named = isinstance(value, Mapping) and len(value) >= least and set(value) <= set(TASKS)
        return named and all(map(kind.fits, value.values()))

    return Kind(f"{{TASK: {kind.words}, ...}}, TASK one of {', '.join(TASKS)}", fits)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value) <= LONGEST and not {"\0", "\n"} & set(value)


def _is_plain_name(value: Any) -> bool:
    return isinstance(value, str) and value[:1].isalnum() and all(c.isalnum() or c in "-_" for c in value)


TEXT = Kind("a name or a path", _is_text, text=True)
NAME = Kind("a name of letters, digits, - and _", _is_plain_name, text=True)
SHARE = Kind("a number from 0 to 1", lambda value: type(value) in (int, float) and 0 <= value <= 1)
SWITCH = Kind("true or false", lambda value: isinstance(value, bool))
MANY = whole(1)
LIMIT = or_all(MANY)
TOKENS = whole(8)
PARTS = list_of(LIMIT, exactly=3)

KINDS: dict[str, Kind] = {
    "model": TEXT,
    "profile": NAME,
    "seed": whole(0, SEEDS),
    "corpus": TEXT,
    "treebank": TEXT,
    "coreference": TEXT,
    "questions": TEXT,
    "paraphrases": TEXT,
    "entailment": TEXT,
    "keyphrases": TEXT,
    "other": TEXT,
    "choose_on": some_of(("train", "dev")),
    "segments": LIMIT,
    "shuffled_segments": MANY,
    "limit": LIMIT,
    "control_limit": MANY,
    "removed_from": MANY,
    "removed_choose": MANY,
    "removed_score": MANY,
    "removed_tokens": TOKENS,
    "max_length": TOKENS,
    "draws": MANY,
    "few": MANY,
    "fits": MANY,
    "networks": MANY,
    "ladders": MANY,
    "shuffles": MANY,
    "restarts": MANY,
    "points": whole(2),
    "epochs": MANY,
    "steps": MANY,
    "fewest": MANY,
    "seeds": list_of(whole(0, SEEDS)),
    "sizes": list_of(MANY),
    "dealt": list_of(MANY),
    "even": some_of(TASKS),
    "limits": PARTS,
    "documents": PARTS,
    "tasks": some_of(TASKS),
    "texts": by_task(TEXT, least=1),
    "splits": by_task(TEXT),
    "longest": by_task(or_all(TOKENS)),
    "shares": list_of(SHARE),
    "keep": SWITCH,
    # where a name means something else
    "11_head_importance.sizes": by_task(LIMIT, least=1),
    "14_your_own_model.documents": LIMIT,
}
"""The kind of each parameter, ``NAME`` or ``CHAPTER.NAME``."""

WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
}


def kind(chapter: str, name: str, default: Any) -> Kind:
    """The kind of a chapter's parameter; of one that the table does not have, the type of its default."""
    of_type = type(default)
    fits = (lambda value: True) if default is None else (lambda value: type(value) is of_type)
    like = Kind(WORDS.get(of_type, "any value"), fits, text=of_type is str)
    return KINDS.get(f"{chapter}.{name}") or KINDS.get(name) or like


def problem(chapter: str, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """What is wrong with a chapter's parameters, in one sentence; empty when nothing is."""
    for name, value in values.items():
        wanted = kind(chapter, name, defaults[name])
        if not wanted.fits(value):
            given = repr(value)
            shown = given if len(given) <= 80 else f"{given[:79]}…"
            return f"{chapter}: {name} must be {wanted.words}, not {shown} (in the book: {defaults[name]!r})."
    if isinstance(texts := values.get("texts"), Mapping) and (
        missing := set(texts) - set(values.get("sizes", texts))
    ):
        return f"{chapter}: sizes must say how many examples of {', '.join(sorted(missing))} to take, since texts names it."
    return ""


def described(chapter: str, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each parameter with its kind and its value, for people."""
    return [(name, f"{kind(chapter, name, defaults[name]).words} [{values[name]!r}]") for name in defaults]


def meant(name: str, known: Collection[str]) -> str:
    """`` Did you mean …?`` where a known name is close to what was given, else nothing."""
    close = difflib.get_close_matches(name, known, 1)
    return f" Did you mean {close[0]!r}?" if close else ""


def resolved(model: str) -> str:
    """A model's name; of a folder, its path from anywhere, since chapters run elsewhere. A name that the book knows is never a folder's."""
    from helpers import corpora

    base = model.removesuffix("@random")
    path = corpora.absolute({"corpus": base})["corpus"]
    if path != base:
        from helpers.engine.models import KNOWN

        path = base if base in KNOWN else path
    return path + model.removeprefix(base)
