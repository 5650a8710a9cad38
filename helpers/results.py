"""Numbers with their provenance: recorded by chapters, read back, as one long table, and exported; and the papers' numbers beside them.

A chapter's record is a JSON file in ``data/results/<profile>/<model>``. Beside it lies its table (CSV), in which a row is a number: what
was measured, of which head, with its interval and what it stands against. Layers and heads of a table are numbered from 1.
"""

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, cached_property
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import yaml
from tabulate import tabulate

import helpers
from helpers import places
from helpers.stats import Estimate

if TYPE_CHECKING:  # who reads records does not wait for torch
    from helpers.corpora.readers import Corpus
    from helpers.encoders import Encoder

VERSIONS = ("torch", "transformers", "numpy", "scikit-learn")
PROFILES = ("book", "full")
RANDOM, SHUFFLED = "@random", "@shuffled"
#: Decimals kept: float32 models do not carry more.
DIGITS = 6
WHOLE, NUMBERS = ("layer", "head", "n"), ("value", "low", "high", "control")
#: Columns that tell every row of the long table from every other.
KEY = ("model", "profile", "chapter", "quantity", "layer", "head", "of", "label")
#: Columns of the long table; ``data/columns.yml`` says what is in each.
COLUMNS = ("run", *KEY, "corpus", "split", "n", *NUMBERS, "against", "unit")
#: Columns that a stored table may have: ``network`` is "" or a control, ``model`` and ``sha256`` say so where rows are of another model;
#: what is the same in all rows is left out.
STORED = ("network", "model", "sha256", *KEY[3:], "corpus", "split", "n", *NUMBERS, "against")


class ResultError(places.BookError, ValueError):
    """A result cannot be recorded, or has not been recorded."""


def path(chapter: str, *, model: str, profile: str) -> Path:
    """Where a chapter's numbers lie: ``<results>/<profile>/<model>/<chapter>.json``, the model as :func:`helpers.places.label` has it.

    Raises:
        ResultError: for a profile or a model whose name would lead out of the folder of results.
    """
    folders = profile, places.label(model)
    for name in folders:
        if name in ("", "..") or Path(name).name != name:
            raise ResultError(f"Numbers cannot be kept under the name {name!r}: use letters, digits, - and _.")
    return places.results().joinpath(*folders, f"{chapter}.json")


class Recorded(dict[str, Any]):
    """What a run has recorded: ``chapter``, ``provenance``, ``run`` (a short id of these) and, as :attr:`table`, its numbers.

    Where :meth:`Run.save` was given ``values`` there are these, too.
    """

    @cached_property
    def table(self) -> pd.DataFrame:
        """Its rows, with all of :data:`STORED`."""
        return from_csv(self["file"]) if self["file"].is_file() else pd.DataFrame(columns=list(STORED))

    def rows(self, quantity: str, *, network: str = "", **where: Any) -> pd.DataFrame:
        """The rows of a quantity of a network in which columns have these values; ``head`` is a place (layer, head) from 0, and
        ``of=None`` asks for rows that are of nothing in particular.
        """
        if "head" in where:
            layer, head = where.pop("head")
            where |= {"layer": layer + 1, "head": head + 1}
        kept = (self.table.quantity == quantity) & (self.table.network == network)
        for column, wanted in where.items():
            kept &= self.table[column].isna() if wanted is None else self.table[column] == wanted
        return self.table[kept]

    def row(self, quantity: str, **where: Any) -> pd.Series:
        """The only one of :meth:`rows`.

        Raises:
            ResultError: where there is none, or more than one.
        """
        rows = self.rows(quantity, **where)
        if len(rows) != 1:
            raise ResultError(
                f"{self['chapter']}: {len(rows)} numbers are recorded of {quantity!r} with {where}; one is wanted."
            )
        return rows.iloc[0]

    def number(self, quantity: str, **where: Any) -> Estimate:
        """A number with its interval, without replicates; of a number that has no interval the ends are the number."""
        row = self.row(quantity, **where)[["value", "low", "high"]].astype(float)
        return Estimate.from_record(dict(row.fillna(row.value)))

    def estimates(self, quantity: str, **where: Any) -> dict[str, Estimate]:
        """What each number of a quantity is ``of`` -> the number with its interval, without replicates."""
        rows = self.rows(quantity, **where).set_index("of")[["value", "low", "high"]]
        return {of: Estimate.from_record(dict(row)) for of, row in rows.iterrows()}

    def array(self, quantity: str, *, column: str = "value", **where: Any) -> np.ndarray:
        """The numbers of all heads, [layer, head], or, with ``head=None`` not given and no head recorded, of all layers, [layer]."""
        rows = self.rows(quantity, **where)
        single = rows[rows["head"].notna()]
        if len(single):
            return single.pivot(index="layer", columns="head", values=column).to_numpy()
        return rows[rows.layer.notna()].sort_values("layer")[column].to_numpy()


class Run:
    """The numbers of a chapter's run: each recorded where it is made, all saved once, at the end of the page.

    Says in a line when a page is executed on another model than the one its text tells of.

    Args:
        chapter: name of its notebook without the number, such as ``surface_patterns``.
        encoder: of which the numbers are.
        corpus: that they were measured on; None where a number says so itself.
        own: the reader's own among all that was read (:func:`helpers.corpora.own`). With any, or with a ``corpus`` that is one,
            the numbers are kept under :data:`helpers.places.OWN` and not under the profile; those of a try stay under ``smoke``.
        profile, parameters: of the page.
    """

    def __init__(
        self,
        chapter: str,
        encoder: "Encoder",
        corpus: "Corpus | None",
        /,
        *,
        profile: str,
        own: Sequence["Corpus"] = (),
        **parameters: Any,
    ) -> None:
        self.chapter, self.encoder, self.blocks = chapter, encoder, []
        dtype = str(encoder.dtype).removeprefix("torch.")
        versions = {"book": helpers.__version__, "python": platform.python_version()}
        self.provenance = {
            "model": {"name": encoder.name, "class": type(encoder.model).__name__, "sha256": encoder.sha256},
            "head": encoder.head and {"task": encoder.task, "sha256": encoder.head.sha256},
            "corpus": corpus and _described(corpus),
            **({"own": [_described(texts) for texts in own]} if own else {}),
            "profile": profile,
            "parameters": to_json(parameters),
            "device": encoder.device.type,
            "processor": processor(),
            **({"dtype": dtype} if dtype != "float32" else {}),
            "versions": versions | {name: version(name) for name in VERSIONS},
            "date": datetime.now(UTC).date().isoformat(),
        }
        self.file = path(chapter, model=encoder.name, profile=_profile(self.provenance)).with_suffix(".csv")
        if profile in ("smoke", *PROFILES) and trained(encoder.name) != "minilm":
            print(f"The text of this page tells of minilm; its numbers, tables and figures are of {encoder.label}.")

    def number(
        self,
        quantity: str,
        value: Any,
        *,
        axes: Sequence[Any] | None = None,
        head: Sequence[int] | None = None,
        control: Any = None,
        **columns: Any,
    ) -> Any:
        """Record a number, or an array of them, and give it back.

        Args:
            quantity: a name of the chapter's in ``data/quantities.yml``.
            value: number, yes or no, name, :class:`Estimate`, or array of these; a mapping's keys become the column ``of``.
            axes: what each axis of an array is: ``"layer"``, ``"head"``, ``"state"`` (a layer, from 0 for the embeddings), or the names
                that become the column ``of``. By default an array of [layers] or [layers, heads] is of these.
            head: the place (layer, head), from 0, of one number.
            control: what it stands against, in the same shape. Without one, and without ``against``, it is the same number of ``@random``.
            columns: others of :data:`STORED`: ``network``, ``of``, ``label``, ``n``, ``split``, ``corpus``, ``against``; ``against=""`` for nothing.

        Raises:
            ResultError: for a quantity that is not listed, a number that is not finite, or an array without ``axes`` in another shape.
        """
        if quantity not in from_yaml("quantities").get(self.chapter, ()):
            raise ResultError(
                f"{quantity!r} is not among the quantities of {self.chapter} in data/quantities.yml; add its unit and meaning."
            )
        heads = (self.encoder.layers, self.encoder.heads)
        for of, given in value.items() if isinstance(value, Mapping) else [(columns.get("of"), value)]:
            numbers = np.asarray(_value(given))
            if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
                raise ResultError(f"{quantity} of {of}: only finite numbers are recorded.")
            if axes is None and numbers.shape not in ((), heads[:1], heads):
                raise ResultError(f"{quantity} of {of}: say what the axes of an array of shape {numbers.shape} are.")
            named = ("layer", "head")[: numbers.ndim] if axes is None else axes
            self.blocks.append(rows(quantity, given, *named, place=head, control=control, **columns | {"of": of}))
        return value

    @property
    def recorded(self) -> Recorded:
        """What has been recorded so far, to be read like an earlier run's."""
        recorded = Recorded(chapter=self.chapter, provenance=self.provenance, run="this", file=self.file)
        self.blocks = [pd.concat(self.blocks, ignore_index=True)]  # hundreds would take a second each time
        recorded.table = joined(self.blocks)
        return recorded

    def beside(
        self, quantity: str, *, networks: Iterable[str] = ("",), full: str = "full", itself: bool = False
    ) -> dict[str, dict[str, Estimate]]:
        """A quantity of this run, of its controls, and of models on real corpora: whose -> what it is of -> the number.

        Args:
            networks: of this run: ``""`` for the model itself, ``"@random"``, ``"@shuffled"``.
            full: what the real corpora are called.
            itself: this run's model on real corpora, too.
        """
        series = {name or self.encoder.label: self.recorded.estimates(quantity, network=name) for name in networks}
        for model, recorded in runs(self.chapter, profile="full").items():
            if itself or model != self.encoder.name:
                series[f"{model}, {full}"] = recorded.estimates(quantity)
        return {name: numbers for name, numbers in series.items() if numbers}

    def save(self, values: Mapping[str, Any] | None = None) -> Path:
        """Write the table and, beside it, where its numbers are from; a run that repeats an earlier one changes nothing, not even the date.

        Args:
            values: what is kept in the JSON file in place of a table: numbers, texts and arrays, nested in dicts and lists.

        Returns:
            The table, or, with ``values``, the JSON file.

        Raises:
            ResultError: for a number that was recorded twice, and for a value that JSON cannot hold.
        """
        about = {"chapter": self.chapter, "provenance": self.provenance}
        origin, texts = self.file.with_suffix(".json"), {}
        if values is None:
            table = self.recorded.table
            twice = table[table.duplicated(["network", "model", *KEY[3:]], keep=False)]
            if len(twice):
                raise ResultError(f"Recorded twice in {self.chapter}: {twice.iloc[0].dropna().to_dict()}.")
            texts[self.file] = as_csv(table)
        else:
            about["values"] = to_json(values)
        if origin.is_file():
            before = json.loads(origin.read_text("utf-8"))
            read, now = ([source["corpus"], source.get("own")] for source in (before["provenance"], self.provenance))
            if self.file.parts[-3] == places.OWN and read != now:
                print("These numbers take the place of earlier ones on other texts; another --name keeps both.")
            same = all(file.is_file() and file.read_text("utf-8") == text for file, text in texts.items())
            if same and before.get("values") == about.get("values"):
                about["provenance"] = self.provenance | {"date": before["provenance"]["date"]}
        texts[origin] = _as_text(about) + "\n"
        for file, text in texts.items():
            places.write(file, text)
        return next(iter(texts))


def _described(texts: "Corpus") -> dict[str, Any]:
    """Which texts numbers are of."""
    about = {"name": texts.name, "sha256": texts.sha256}
    return about | {"own": True, "parts": texts.parts} if texts.own else about


def _profile(provenance: Mapping[str, Any]) -> str:
    """Under which profile a run counts: on a reader's own texts as ``own``, a try always as ``smoke``."""
    own = provenance.get("own") or (provenance["corpus"] or {}).get("own")
    return places.OWN if own and provenance["profile"] != "smoke" else provenance["profile"]


def processor() -> str:
    """This machine's processor; on one of the same name and model two runs give the same numbers."""
    described = Path("/proc/cpuinfo")
    told = described.read_text("utf-8") if described.is_file() else ""
    lines = re.findall(r"^(?:model name|cpu family|model|stepping)\s*: (.+)$", told.partition("\n\n")[0], re.M)
    return ", ".join(lines) or platform.processor() or platform.machine()


def recorded(chapter: str, *, model: str = "minilm", profile: str = "book") -> Recorded:
    """What an earlier run has recorded; this run's own results come first (``BOOK_RESULTS``), then those that travel with the book.

    Raises:
        ResultError: if there are none; the message lists what there is.
    """
    for name, run in runs(chapter, profile=profile).items():
        if places.label(name) == places.label(model):
            return run
    roots = (places.book_data() / "results", places.results())
    known = {"/".join(file.with_suffix("").parts[-3:]) for root in roots for file in root.glob(f"*/*/{chapter}.json")}
    raise ResultError(
        f"Nothing is recorded for {chapter!r} with model {model!r} and profile {profile!r}. Recorded: "
        f"{', '.join(sorted(known)) or 'nothing'}. Run: python -m helpers run {chapter} --model {model} --profile {profile}; "
        "with --record it is kept with the book, and --data names the folder of real corpora."
    )


def runs(chapter: str, *, profile: str, own: bool = True) -> dict[str, Recorded]:
    """Every recorded run of a chapter with a profile, by name of the model; own runs before those of the book.

    Args:
        own: read those of ``_build/runs``, too; where ``BOOK_RESULTS`` names a folder, that is read in any case.
    """
    roots = [places.book_data() / "results"]
    if own or os.environ.get("BOOK_RESULTS"):
        roots.append(places.results())
    files = {file.parent.name: file for root in roots for file in root.glob(f"{profile}/*/{chapter}.json")}
    recorded = {}
    for folder, file in files.items():
        record = json.loads(file.read_text("utf-8"))
        stated = json.dumps([record["chapter"], record["provenance"]]).encode()
        name = record["provenance"]["model"]["name"]  # a path, as long as the model is still there
        name = name if places.label(name) == folder else folder.replace("--", "/")
        run = hashlib.sha256(stated).hexdigest()[:8]
        recorded[name] = Recorded(record, run=run, file=file.with_suffix(".csv"))
    return dict(sorted(recorded.items()))


def all_runs(profiles: Iterable[str] = PROFILES, chapters: Iterable[str] = ()) -> list[tuple[str, Recorded]]:
    """Name of the model and what it has recorded, of every run that has a table; of some chapters (default: all).

    These are the book's runs; own ones, which come before them, only where ``BOOK_RESULTS`` names their folder. A folder's
    model goes by its label.
    """
    return [
        (run["file"].parent.name if Path(model).is_absolute() else model, run)
        for chapter in list(chapters) or from_yaml("quantities")
        for profile in profiles
        for model, run in runs(chapter, profile=profile, own=False).items()
        if run["file"].is_file()
    ]


def to_json(value: Any) -> Any:
    """What is recorded of a value: the same in JSON's own types, rounded.

    Raises:
        ValueError, TypeError: for NaN, infinity, or a type that JSON cannot hold.
    """
    text = json.dumps(value, default=lambda array: np.asarray(array).tolist(), allow_nan=False)
    return json.loads(text, parse_float=lambda digits: round(float(digits), DIGITS))


def _as_text(value: Any, indent: str = "") -> str:
    """Indented JSON with each innermost list on one line: short diffs, small files."""
    if isinstance(value, dict) and value:
        parts, brackets = [f"{json.dumps(key)}: {_as_text(item, indent + ' ')}" for key, item in value.items()], "{}"
    elif isinstance(value, list) and any(isinstance(item, list | dict) for item in value):
        parts, brackets = [_as_text(item, indent + " ") for item in value], "[]"
    else:
        return json.dumps(value, ensure_ascii=False)
    return f"{brackets[0]}\n{indent} " + f",\n{indent} ".join(parts) + f"\n{indent}{brackets[1]}"


# The tables beside the records


def rows(
    quantity: str, numbers: Any, *axes: Any, place: Sequence[int] | None = None, control: Any = None, **columns: Any
) -> pd.DataFrame:
    """A block of a chapter's table: a number, an estimate or an array of them.

    Args:
        quantity: a name of ``data/quantities.yml``.
        numbers: a number, yes or no, :class:`Estimate`, or array of these; names become labels; None gives no rows.
            An estimate that comes from one document has no ends; its interval is then from -inf to inf, which decides nothing.
        axes: what each axis of the array is, as for :meth:`Run.number`; without axes an array is flat, and ``columns`` say what its places are.
        place: layer and head of a number, from 0.
        control, columns: as for :meth:`Run.number`.
    """
    if numbers is None:
        return pd.DataFrame()
    values = np.asarray(_value(numbers))
    table: dict[str, Any] = {"quantity": quantity, **columns}
    if place is not None:
        table |= {"layer": place[0] + 1, "head": place[1] + 1}
    for axis, at in zip(axes, np.indices(values.shape).reshape(values.ndim, values.size), strict=False):
        if axis == "state":
            table["layer"] = at
        elif isinstance(axis, str):
            table[axis] = at + 1
        else:
            table["of"] = np.array(list(axis), object)[at]
    if values.dtype.kind in "US":
        return pd.DataFrame(table | {"label": values.ravel()})
    table["value"] = values.astype(float).ravel()
    if isinstance(numbers, Estimate):
        for end, open_end in {"low": -np.inf, "high": np.inf}.items():
            table[end] = np.nan_to_num(np.ravel(getattr(numbers, end)), nan=open_end)
    if control is not None:
        table["control"] = np.broadcast_to(np.asarray(_value(control), float), values.shape).ravel()
    return pd.DataFrame(table)


def _value(number: Any) -> Any:
    return number.value if isinstance(number, Estimate) else number


def joined(blocks: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Blocks of :func:`rows` as one table of :data:`STORED`, with the numbers of ``@random`` as the controls of all rows that have no other."""
    table = pd.concat(list(blocks), ignore_index=True).reindex(columns=list(STORED)).fillna({"network": ""})
    key, numbers = ["quantity", "layer", "head", "of"], table.value.notna()
    random = table[(table.network == RANDOM) & numbers].drop_duplicates(key)
    same = table[key].merge(random[[*key, "value"]], "left", key).value
    without = table.against.isna() & table.control.isna() & (table.network != RANDOM) & numbers
    table["control"] = table.control.where(~without, same)
    table["against"] = table.against.where(~(without & same.notna()), RANDOM).replace("", None)
    return table.astype(dict.fromkeys(NUMBERS, float)).round(DIGITS)


def as_csv(table: pd.DataFrame) -> str:
    """A stored table as text, without columns that are empty."""
    table = table.replace({"network": {"": None}}).dropna(axis="columns", how="all")
    whole = dict.fromkeys(table.columns.intersection(WHOLE), "Int64")
    return table.astype(whole).to_csv(index=False, lineterminator="\n")


def from_csv(file: Path) -> pd.DataFrame:
    """A stored table with all of :data:`STORED`."""
    texts = {name: "str" for name in STORED if name not in (*WHOLE, *NUMBERS)}
    table = pd.read_csv(file, dtype=texts, keep_default_na=False, na_values={name: [""] for name in STORED})
    return table.reindex(columns=list(STORED)).fillna({"network": ""})


# The long table


@cache
def from_yaml(name: str) -> dict[str, Any]:
    """What ``data/NAME.yml`` says: ``papers`` (paper -> ``claims`` -> claim: what the papers report), ``quantities`` (chapter -> quantity -> unit
    and meaning), ``columns`` (of the long table -> what is in it), ``claims/NN_chapter`` (:func:`helpers.scoreboard.chapters`), ``beliefs``.

    Raises:
        yaml.YAMLError: for what is no YAML; the message names the file and the line.
    """
    with (places.book_data() / f"{name}.yml").open(encoding="utf-8") as file:
        return yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # in C ten times as fast


@cache
def notebooks() -> dict[str, str]:
    """Name of a chapter's module -> that of its notebook, in the order of the book."""
    return {file.stem[3:]: file.stem for file in sorted((places.ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))}


def trained(model: str) -> str:
    """The model that a control is of; a model itself."""
    return re.sub(f"({RANDOM}|{SHUFFLED})+$", "", model)


def table(
    models: Iterable[str] = (), profiles: Iterable[str] = PROFILES, chapters: Iterable[str] = ()
) -> pd.DataFrame:
    """All numbers that the book has recorded in one long table of :data:`COLUMNS`, a row a number; own runs as for :func:`all_runs`.

    Args:
        models: names of encoders, whose controls come with them, or of controls (default: every one that is recorded).
        profiles: of which runs.
        chapters: names of their modules (default: all).

    Raises:
        ResultError: for a model of which nothing is recorded.
    """
    models, profiles = list(models), list(profiles)
    # a control's own run says more than that of its model
    stored = sorted(all_runs(profiles, chapters), key=lambda run: run[0] == trained(run[0]))
    numbers = long(stored).drop_duplicates(list(KEY), ignore_index=True)
    if lacking := [model for model in models if model not in set(numbers.model)]:
        known = ", ".join(sorted({model for model, _ in stored})) or "nothing"
        raise ResultError(
            f"Nothing is recorded of {', '.join(lacking)} with profile {' or '.join(profiles)}. Recorded: {known}. "
            f"Run: python -m helpers run all --model {lacking[0]}"
        )
    if models:
        numbers = numbers[numbers.model.isin(models) | numbers.model.map(trained).isin(models)]
    return numbers.reset_index(drop=True)


def long(stored: Iterable[tuple[str, Recorded]]) -> pd.DataFrame:
    """The long table of some runs, each with the name of its model, as :func:`all_runs` gives them."""
    parts = [pd.DataFrame(columns=list(COLUMNS))]
    for model, run in stored:
        table, provenance = run.table, run["provenance"]
        if model.endswith(RANDOM):  # a random network beside a random network
            table = table[table.network != RANDOM]
        corpus, chapter = provenance["corpus"] or {}, run["chapter"]
        table = table.assign(
            run=run["run"],
            model=table.model.fillna(model + table.network),
            profile=_profile(provenance),
            chapter=notebooks().get(chapter, chapter),
            corpus=table.corpus.fillna(corpus.get("name") or np.nan),
            unit=table.quantity.map(pd.DataFrame(from_yaml("quantities")[chapter]).loc["unit"]),
        )
        parts.append(table[list(COLUMNS)])
    kinds = dict.fromkeys(WHOLE, "Int64") | dict.fromkeys(NUMBERS, "float64")
    return pd.concat(parts, ignore_index=True).fillna(np.nan).astype(kinds)


def provenance(numbers: pd.DataFrame) -> list[dict[str, Any]]:
    """Where the numbers of a long table are from: for each of its runs the chapter, weights, texts, parameters, versions and date."""
    wanted = set(numbers.run)
    stored = [run for _, run in all_runs(numbers.profile.unique()) if run["run"] in wanted]
    return [{name: run[name] for name in ("run", "chapter")} | run["provenance"] for run in stored]


# The papers


def paper(key: str, claim: str) -> dict[str, Any]:
    """What a paper reports: value or rows, unit, model, where; KeyError for a paper or a claim that ``data/papers.yml`` does not have."""
    return from_yaml("papers")[key]["claims"][claim]


def paper_text(claim: Mapping[str, Any]) -> str:
    """A claim of ``data/papers.yml`` as a table cell: value and unit, or the paper's words, and where it stands."""
    if "words" in claim:
        return f"{claim['words']} ({claim['where']})"
    value = claim["value"]
    if isinstance(value, Mapping):
        value = [f"{key}: {item}" for key, item in value.items()]
    shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    unit = " %" if claim.get("unit") == "%" else ""
    minus = re.sub(r"(?<![\w.])-(?=\d)", "−", shown)
    return f"{claim.get('bound', '')} {minus}{unit} ({claim['where']})".lstrip()


# Tables on pages


class Table:
    """A table that shows itself as Markdown in a notebook and in the book.

    Args:
        columns: headings.
        rows: one sequence of cells each.
        digits: decimals of floats and estimates (an estimate is shown with its interval).
    """

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, digits: int = 3) -> None:
        self.columns, self.cells, self.digits = list(columns), [list(row) for row in rows], digits
        for row in self.cells:
            if len(row) != len(self.columns):
                raise ResultError(f"The row {row} has {len(row)} cells for {len(self.columns)} columns.")

    def __repr__(self) -> str:
        lines = [[as_markdown(cell, self.digits) for cell in line] for line in (self.columns, *self.cells)]
        return tabulate(lines[1:], lines[0], tablefmt="github", disable_numparse=True)

    _repr_markdown_ = __repr__


_CODE_OR_HTML = re.compile(r"(?<![\\`])(`+)(?!`).+?(?<!`)\1(?!`)|[<>&]")


def as_markdown(cell: object, digits: int = 3) -> str:
    """A cell in Markdown in which no HTML is: a name, a token or a text of somebody's own is shown as it is typed, tags and all."""
    if isinstance(cell, float | np.floating | Estimate):
        return format(cell, f"z.{digits}f")  # z: a number that rounds to nothing has no sign
    kept = _CODE_OR_HTML.sub(lambda match: match[0] if match[1] else escape(match[0], quote=False), str(cell))
    return kept.replace("|", "\\|")
