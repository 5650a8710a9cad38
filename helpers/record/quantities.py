"""The numbers of all records in one long table: a row for each number, with whose it is, of what, and where it comes from.

Which numbers there are is data, in ``quantities.yml``; the numbers themselves come from records alone, and what a record
does not hold is absent. Layers and heads are numbered from 1, as the chapters show them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from helpers import places
from helpers.figures.look import head_name
from helpers.record import listed, results
from helpers.record.scoreboard import PROFILES, toc

COLUMNS = {
    "model": "name of the encoder; `@random` and `@shuffled` are its controls, recorded with it",
    "sha256": "checksum of the encoder's weights; absent where it was not recorded",
    "profile": "whether the run was on the book's own texts (`book`), on real corpora (`full`) or on a reader's (`own`)",
    "chapter": "which chapter measured it, by the name of its notebook",
    "quantity": "what was measured, see below",
    "layer": "from 1; 0 where hidden states are numbered and these are the embeddings; absent for a number of the whole model",
    "head": "from 1; absent for a number of a layer or of the model",
    "of": "which relation, task, kind of mention, other head …, where a quantity has several",
    "label": "a name, where a number comes with one or is one: a type, a direction",
    "corpus": "what it was measured on",
    "split": "which part of the corpus, where only one was used",
    "n": "how many of what was measured: tokens, words of the relation, mentions, examples …",
    "value": "the number",
    "low": "lower end of its 95 % interval, where one was recorded",
    "high": "upper end",
    "control": "the same number for what it is compared with",
    "against": "what it is compared with: `@random`, a fixed offset, a simple rule …",
    "unit": "of `value`, `low`, `high` and `control`",
}
"""Name of a column -> what is in it."""
KEY = ("model", "profile", "chapter", "quantity", "layer", "head", "of", "label")
"""Columns that tell every row from every other."""
WHOLE, NUMBERS = ("layer", "head", "n"), ("value", "low", "high", "control")
TEXT = "str" if int(pd.__version__.split(".")[0]) > 2 else object
"""What a column of texts is: pandas 2 would make the text "nan" of what is absent."""
RANDOM = "@random"
CONTROLS = (RANDOM, "@shuffled")


class QuantityError(results.ResultError):
    """The vocabulary of quantities cannot be read, or has no such name."""


@dataclass(frozen=True)
class Quantity:
    """A line of the vocabulary.

    Attributes:
        chapter: name of the chapter's module.
        name, unit, meaning: for readers.
        at: path into a record's values -> what the axes of the array there are: ``layer``, ``head``, ``state`` (a layer, from 0
            for the embeddings), ``{of: NAMES}`` (a list, or the path of one), ``{heads: PATH}`` (all heads of all layers, so many in
            each), ``{pairs: PATH}`` (all pairs of them), or a number, which picks one. ``*`` in a path is any name.
        networks: whose numbers, ``""`` or a control -> what words in braces in paths stand for; ``name`` and ``sha256`` are the
            paths of another model's.
        n, place, label, control: paths of what belongs to a value: how many, the layer and head that it is of, its name, what it
            stands against (by default, the same place of ``@random``).
        split, corpus: texts, or paths that begin with ``provenance``.
        against: what ``control`` is of.
    """

    chapter: str
    name: str
    unit: str
    meaning: str
    at: Mapping[str, Sequence[Any]]
    networks: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: {"": {}})
    n: str = ""
    place: str = ""
    label: str = ""
    control: str | None = None
    against: str = ""
    split: str = ""
    corpus: str = "provenance.corpus.name"


@lru_cache(maxsize=1)
def vocabulary() -> tuple[Quantity, ...]:
    """Every quantity, chapter by chapter.

    Raises:
        QuantityError: for a line that says something unknown, or leaves out what all must say.
    """
    written = yaml.safe_load(Path(__file__).with_name("quantities.yml").read_text("utf-8"))
    return tuple(
        _read(chapter, name, said, line)
        for chapter, said in written.items()
        for name, line in said["quantities"].items()
    )


def _read(chapter: str, name: str, said: Mapping[str, Any], line: Mapping[str, Any]) -> Quantity:
    shared = {key: value for key, value in said.items() if key != "quantities"}
    at = line["at"] if isinstance(line["at"], Mapping) else {line["at"]: ["layer", "head"]}
    try:
        return Quantity(chapter, name, **shared | dict(line) | {"at": at})
    except TypeError as error:
        raise QuantityError(f"quantities.yml, {chapter}, {name}: {error}.") from None


# ---------------------------------------------------------------------------------------- the table


def table(
    models: Iterable[str] | None = None, profiles: Iterable[str] = PROFILES, chapters: Iterable[str] = ()
) -> pd.DataFrame:
    """All recorded numbers in the long form of :data:`COLUMNS`.

    Args:
        models: names of encoders, whose controls come with them, or of controls (default: every one that is recorded).
        profiles: of which runs.
        chapters: names of their modules (default: all).

    Raises:
        ResultError: for a model of which nothing is recorded.
    """
    wanted, profiles = list(models or ()), list(profiles)
    runs = [
        (record, model)
        for chapter in list(chapters) or _chapters()
        for (_, model), record in listed.runs(chapter, profiles).items()
    ]
    # what a run of a control itself says counts before what its model's run says of it
    runs.sort(key=lambda run: run[1] == _trained(run[1]))
    meant = [run for run in runs if not wanted or _trained(run[1]) in map(_trained, wanted)]
    found = of_records(meant).drop_duplicates(list(KEY), ignore_index=True)
    if lacking := [model for model in wanted if model not in set(found.model)]:
        known = ", ".join(sorted({model for _, model in runs})) or "nothing"
        raise results.ResultError(
            f"Nothing is recorded of {', '.join(lacking)} with profile {' or '.join(profiles)}. Recorded: {known}. "
            f"Run: python -m helpers run all --model {lacking[0]}"
        )
    named = found.model.isin(wanted) | found.model.map(_trained).isin(wanted)
    return found[named].reset_index(drop=True) if wanted else found


@cache
def _trained(model: str) -> str:
    """The model that a control is of; a model itself."""
    return re.sub(f"({'|'.join(CONTROLS)})+$", "", model)


def chosen(frame: pd.DataFrame, column: str, wanted: Iterable[str]) -> pd.DataFrame:
    """The rows whose column has one of the values that are wanted; all rows if none is.

    Raises:
        QuantityError: for a value that no row has; the message lists those there are.
    """
    wanted, known = list(wanted), list(dict.fromkeys(frame[column].dropna()))
    if unknown := [value for value in wanted if value not in known]:
        raise QuantityError(f"No number of the {column} {', '.join(unknown)}; there are {', '.join(known)}.")
    return frame[frame[column].isin(wanted)] if wanted else frame


def of_records(records: Iterable[tuple[Mapping[str, Any], str]]) -> pd.DataFrame:
    """The long table of some records, each with the name of its model."""
    blocks = [block for record, model in records for block in _blocks(record, model)]
    columns = {name: np.concatenate([b[name] for b in blocks]) if blocks else np.array([]) for name in COLUMNS}
    return typed(pd.DataFrame(columns))


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns in order, as whole numbers that may be absent, float64, and texts; the same whatever the rows are."""
    kinds = dict.fromkeys(WHOLE, "Int64") | dict.fromkeys(NUMBERS, "float64")
    texts = {
        name: frame[name].astype(object).where(frame[name].notna(), np.nan) for name in COLUMNS if name not in kinds
    }
    return frame.assign(**texts)[list(COLUMNS)].astype({name: kinds.get(name, TEXT) for name in COLUMNS})


def sources() -> list[Path]:
    """Every file that the long table is made from."""
    roots = dict.fromkeys((places.results(), places.book_data() / "results"))
    found = (f for root in roots for profile in PROFILES for f in (root / profile).glob("*/*.json"))
    return [Path(__file__).with_name("quantities.yml"), toc(), *sorted(f for f in found if f.stem in _chapters())]


def _chapters() -> list[str]:
    return list(dict.fromkeys(one.chapter for one in vocabulary()))


@lru_cache(maxsize=1)
def notebooks() -> dict[str, str]:
    """Name of a chapter's module -> that of its notebook."""
    listed = [
        line.split("notebooks/")[-1].strip() for line in toc().read_text("utf-8").split("\n") if "notebooks/" in line
    ]
    return {name[3:]: name for name in listed}


# ---------------------------------------------------------------------------------------- from a record to rows


def _blocks(record: Mapping[str, Any], model: str) -> Iterator[dict[str, np.ndarray]]:
    """The rows of a record, column by column, quantity by quantity."""
    for quantity in vocabulary():
        if quantity.chapter == record["chapter"]:
            for network, words in quantity.networks.items():
                if network == RANDOM and model.endswith(RANDOM):
                    continue  # a random network beside a random network
                for path, axes in quantity.at.items():
                    yield from _Reading(record, model, quantity, network, words).blocks(path, axes)


@dataclass(frozen=True)
class _Reading:
    """One quantity of one network in one record."""

    record: Mapping[str, Any]
    model: str
    quantity: Quantity
    network: str
    words: Mapping[str, str]

    def blocks(self, path: str, axes: Sequence[Any]) -> Iterator[dict[str, np.ndarray]]:
        for name, value in _found(self.record["values"], _spelled(path, self.words).split(".")):
            value = value if isinstance(value, Mapping) else {"value": value}
            if value.get("value") is not None:
                yield self._block(path, axes, name, value)

    def _block(self, path: str, axes: Sequence[Any], name: str, found: Mapping[str, Any]) -> dict[str, np.ndarray]:
        place = self._look(self.quantity.place, name) or {}
        values = np.asarray(found["value"])
        index, columns = self._places(axes, values.shape)
        size = values[index].size
        rows = {key: np.full(size, value, object) for key, value in self._whole(name).items()}
        rows |= {"layer": _one(place.get("layer"), size), "head": _one(place.get("head"), size)} | columns
        texts = values.dtype.kind in "US"
        for end in ("value", "low", "high"):
            given = None if texts else found.get(end)
            rows[end] = _numbers(given, index, size)
        if texts:
            rows["label"] = values[index].ravel().astype(object)
        rows["control"], rows["against"] = self._control(path, name, index, size)
        return rows

    def _whole(self, name: str) -> dict[str, Any]:
        """What all rows of a block share."""
        label, n = self._look(self.quantity.label, name), self._look(self.quantity.n, name)
        listed = isinstance(self._look(self.quantity.place, name), Mapping) and name.isdecimal()
        return self._whose() | {
            "profile": _profile(self.record["provenance"]),
            "chapter": notebooks().get(self.quantity.chapter, self.quantity.chapter),
            "quantity": self.quantity.name,
            "of": None if listed else name or None,
            "label": label,
            "corpus": self._said(self.quantity.corpus, name),
            "split": self._said(self.quantity.split, name),
            "n": n,
            "unit": self.quantity.unit,
        }

    def _whose(self) -> dict[str, Any]:
        """Model and weights: a random network's are its own, and not recorded; shuffled scores are of the model's weights."""
        if "name" in self.words:
            return {"model": self._look(self.words["name"], ""), "sha256": self._look(self.words["sha256"], "")}
        weights = self.record["provenance"]["model"]["sha256"]
        return {"model": self.model + self.network, "sha256": None if self.network == RANDOM else weights}

    def _places(self, axes: Sequence[Any], shape: tuple[int, ...]) -> tuple[tuple[Any, ...], dict[str, np.ndarray]]:
        """Which part of an array is meant, and the layer, head and name of each number there."""
        index = tuple(axis if isinstance(axis, int) else slice(None) for axis in axes)
        kept = [(axis, size) for axis, size in zip(axes, shape, strict=True) if not isinstance(axis, int)]
        if kept and isinstance(kept[0][0], Mapping) and "pairs" in kept[0][0]:
            return self._pairs(kept[0][0]["pairs"])
        if not kept:
            return index, {}
        grids = np.indices([size for _, size in kept]).reshape(len(kept), -1)
        columns: dict[str, np.ndarray] = {}
        for (axis, _), at in zip(kept, grids, strict=True):
            columns |= self._axis(axis, at)
        return index, columns

    def _axis(self, axis: Any, at: np.ndarray) -> dict[str, np.ndarray]:
        if axis in ("layer", "head"):
            return {axis: at + 1}
        if axis == "state":
            return {"layer": at}
        if "heads" in axis:
            layer, head = np.divmod(at, self._look(axis["heads"], ""))
            return {"layer": layer + 1, "head": head + 1}
        names = self._look(axis["of"], "") if isinstance(axis["of"], str) else axis["of"]
        return {"of": np.array(names, object)[at]}

    def _pairs(self, path: str) -> tuple[tuple[Any, ...], dict[str, np.ndarray]]:
        """Each pair twice: from either head to the other."""
        heads, pairs = self._look(path, ""), self._look(next(iter(self.quantity.at)), "")
        count = (1 + int(np.sqrt(1 + 8 * len(pairs)))) // 2
        one, other = np.triu_indices(count, 1)
        whose, whom = np.concatenate([one, other]), np.concatenate([other, one])
        named = np.array([head_name(*divmod(k, heads)) for k in range(count)], object)
        index = np.tile(np.arange(len(one)), 2)
        return (index,), {"layer": whose // heads + 1, "head": whose % heads + 1, "of": named[whom]}

    def _control(self, path: str, name: str, index: tuple[Any, ...], size: int) -> tuple[np.ndarray, np.ndarray]:
        """What the numbers stand against, and its name; nothing where it was not recorded."""
        if (where := self.quantity.control) is not None:
            found, against = self._look(where, name), self.quantity.against
        else:
            words = None if self.network == RANDOM else self.quantity.networks.get(RANDOM)
            found, against = words and self._look(path, name, words), RANDOM
        found = found.get("value") if isinstance(found, Mapping) else found
        if found is None or np.asarray(found).dtype.kind in "US":
            return _one(None, size), np.full(size, self.quantity.against or None, object)
        return _numbers(found, index, size), np.full(size, against, object)

    def _look(self, path: str, name: str, words: Mapping[str, str] | None = None) -> Any:
        """What lies at a path of the record's values, ``*`` being ``name``; None where there is nothing."""
        steps = [name if step == "*" else step for step in _spelled(path, words or self.words).split(".")]
        root = self.record if steps[0] == "provenance" else self.record["values"]
        return next((value for _, value in _found(root, steps)), None) if path else None

    def _said(self, text: str, name: str) -> str | None:
        return (self._look(text, name) if text.startswith("provenance.") else text) or None


def _profile(provenance: Mapping[str, Any]) -> str:
    """The run's, or that numbers are of a reader's own corpora."""
    own = provenance.get("own") or (provenance["corpus"] or {}).get("own")
    return places.OWN if own else provenance["profile"]


def _spelled(path: str, words: Mapping[str, str]) -> str:
    return path.format_map(words) if "{" in path else path


def _found(value: Any, steps: Sequence[str], name: str = "") -> Iterator[tuple[str, Any]]:
    """What lies at a path, with the name that stood for its ``*``; nothing where the record has no such place."""
    if not steps:
        yield name, value
    elif isinstance(value, list):
        numbers = range(len(value)) if steps[0] == "*" else [int(steps[0])]
        for number in numbers:
            yield from _found(value[number], steps[1:], str(number) if steps[0] == "*" else name)
    elif isinstance(value, Mapping):
        for key in value if steps[0] == "*" else [steps[0]] if steps[0] in value else []:
            yield from _found(value[key], steps[1:], key if steps[0] == "*" else name)


def _one(number: int | None, size: int) -> np.ndarray:
    """A layer or head as a record counts it, from 0, in every row; or nothing."""
    return np.full(size, None if number is None else number + 1, object)


def _numbers(found: Any, index: tuple[Any, ...], size: int) -> np.ndarray:
    """The part of an array that is meant, flat; one number is meant in every row."""
    if found is None:
        return np.full(size, np.nan)
    values = np.asarray(found, np.float64)
    return np.full(size, values) if values.ndim == 0 else values[index].ravel()
