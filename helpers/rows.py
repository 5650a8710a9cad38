"""A chapter's numbers as rows: what was measured, of which head, with its interval and what it stands against.

``tables.tidy(record)`` of a chapter gives blocks of :func:`rows`; :func:`helpers.results.record` writes them beside the record. Layers and heads
are numbered from 1, as the chapters show them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

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
WHOLE, NUMBERS = ("layer", "head", "n"), ("value", "low", "high", "control")
RANDOM, SHUFFLED = "@random", "@shuffled"
DIGITS = 6
"""Decimals kept: float32 models do not carry more."""
STORED = ("network", *(name for name in COLUMNS if name not in ("profile", "chapter", "unit")))
"""Columns that a stored table may have: ``network`` is "" or a control; what is the same in all rows is left out."""


def rows(
    quantity: str, found: Any, *axes: Any, place: Sequence[int] | None = None, control: Any = None, **columns: Any
) -> pd.DataFrame:
    """A block of the table: a number, an estimate or an array of them.

    Args:
        quantity: a name of ``data/quantities.yml``.
        found: a recorded number, yes or no, estimate (``{"value", "low", "high"}``), or array; names become labels; None gives no rows.
        axes: what each axis of the array is: ``"layer"``, ``"head"``, ``"state"`` (a layer, from 0 for the embeddings), or the
            names that become the column ``of``. Without axes an array is flat, and ``columns`` say what its places are.
        place: layer and head of a number, from 0.
        control: what the numbers stand against, in the same shape. Without one, and without ``against``, it is the same number of ``@random``.
        columns: others of :data:`STORED`: ``network``, ``of``, ``label``, ``n``, ``split``, ``corpus``, ``against``; ``against=""`` for nothing.
    """
    parts = found if isinstance(found, Mapping) else {"value": found}
    if parts["value"] is None:
        return pd.DataFrame()
    values = np.asarray(parts["value"])
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
    ends = {end: np.asarray(parts[end], float).ravel() for end in ("low", "high") if parts.get(end) is not None}
    if control is not None:
        control = control["value"] if isinstance(control, Mapping) else control
        ends["control"] = np.broadcast_to(np.asarray(control, float), values.shape).ravel()
    return pd.DataFrame(table | {"value": values.astype(float).ravel()} | ends)


def joined(blocks: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Blocks of :func:`rows` as one table of :data:`STORED`, with the numbers of ``@random`` as the controls of all rows that have no other."""
    table = pd.concat(list(blocks), ignore_index=True).reindex(columns=list(STORED))
    table["network"] = table.network.fillna("")
    key = ["quantity", "layer", "head", "of"]
    random = table[(table.network == RANDOM) & table.value.notna()].drop_duplicates(key)
    beside = table[key].merge(random[[*key, "value"]], "left", key).value
    open_ = table.against.isna() & table.control.isna() & (table.network != RANDOM) & table.value.notna()
    table["control"] = table.control.where(~open_, beside)
    table["against"] = table.against.where(~(open_ & beside.notna()), RANDOM).replace("", None)
    numbers = {name: table[name].astype(float).round(DIGITS) for name in NUMBERS}
    return table.assign(**numbers)


def as_csv(table: pd.DataFrame) -> str:
    """A stored table as text, without columns that are empty."""
    table = table.replace({"network": {"": None}}).dropna(axis="columns", how="all")
    whole = dict.fromkeys(table.columns.intersection(WHOLE), "Int64")
    return table.astype(whole).to_csv(index=False, lineterminator="\n")
