"""What the atlas shows of a model: the long table of recorded numbers and what was measured for it, as one object for the page."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from helpers import results, tidy
from helpers.figures.look import COLOURS, TYPE_NAMES, group_names, head_name
from helpers.record import characters
from helpers.results import Table
from helpers.run import notebooks
from helpers.run.atlas import measuring
from helpers.scoreboard import titled

PROFILES = ("book", measuring.PROFILE, "full")
"""Of two runs on the book's texts a chapter's own comes first, then what was measured for the atlas; real corpora stand apart."""
DIGITS = 5
NEAREST = 5
FEWEST = 30  # words of a relation, below which no head is said to be best at it
RULES = ("best fixed offset", "nearest mention")
"""What the head of a relation or a kind of mention stands against; another network's head that was chosen is another head."""

Content = dict[str, Any]
Row = Mapping[str, Any]


@lru_cache(maxsize=1)
def shown() -> dict[str, Any]:
    """``shown.yml``: which quantities the atlas shows, in what words."""
    return yaml.safe_load((files("helpers.run.atlas") / "shown.yml").read_text("utf-8"))


def table() -> pd.DataFrame:
    """Every number of the atlas: what chapters recorded, and what was measured for it."""
    frame = tidy.table(profiles=(*tidy.PROFILES, measuring.PROFILE))
    return frame[frame["chapter"] != notebooks.find("your_own_model")]


def models(names: Iterable[str] | None = None) -> dict[str, Content]:
    """The content of the atlas: model -> what the page shows of it; each has been measured for the atlas, in the order of the list."""
    frame, measured = table(), measuring.recorded()
    chosen = [name for name in measured if names is None or name in names]
    return {name: of(name, frame[frame["model"] == name], measured[name]) for name in chosen}


def holdings() -> Table:
    """What is recorded of which model: in the atlas, and by which chapters on the book's texts and on real corpora."""
    rows = []
    for model, there in tidy.models((*tidy.PROFILES, measuring.PROFILE)).items():
        chapters = (_spans(there.get(profile, ())) for profile in tidy.PROFILES)
        rows.append([f"`{model}`", "yes" if measuring.PROFILE in there else "–", *chapters])
    return Table(["model", "in the atlas", "chapters, the book's texts", "chapters, real corpora"], rows)


def _spans(modules: Iterable[str]) -> str:
    """Chapters by their numbers, those that follow one another as ``02–14``."""
    numbers = sorted(int(tidy.notebooks()[module][:2]) for module in modules)
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    return ", ".join("–".join(f"{n:02}" for n in dict.fromkeys((one[0], one[-1]))) for one in spans) or "–"


def of(model: str, frame: pd.DataFrame, measured: Mapping[str, Any]) -> Content:
    """What the page shows of one model; heads are numbered layer by layer, from 0.

    Args:
        frame: the rows of :func:`table` that are of the model.
        measured: its record of :mod:`helpers.run.atlas.measuring`.
    """
    values = measured["values"]
    shape = np.shape(values["scale"])
    pairs, frame = (frame[frame["quantity"].eq("divergence") == apart] for apart in (True, False))
    frame = frame.sort_values(["layer", "head"], kind="stable")
    sources = _Sources()
    rows = dict(list(preferred(frame[frame["head"].notna()]).groupby("quantity", sort=False)))
    grids = [grid for name in shown()["groups"] for grid in _group(name, rows, shape, sources)]
    lead = _best_relation(grids)
    return {
        "model": model,
        "layers": shape[0],
        "heads": shape[1],
        "sha256": measured["provenance"]["model"]["sha256"],
        "corpus": measured["provenance"]["corpus"]["name"],
        "task": (measured["provenance"]["head"] or {}).get("task"),
        **{name: values[name] for name in ("maps", "scale", "sentences", "profile", "examples")},
        "size": measuring.SIZE,
        "types": _types(frame, shape, sources),
        **_alike(pairs, frame, shape),
        "grids": [*grids, *lead],
        "best": _best(frame, shape, sources),
        "known": _known(model, shape),
        "mentions": mentions(model, shape),
        "lacking": _lacking(grids),
        "sources": sources.listed,
    }


class _Sources:
    """Where numbers are from, each said once."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []

    def number(self, row: Row) -> int:
        name, profile = row["chapter"], row["profile"]
        said = {"chapter": name[:2], "title": titled(name), "page": f"../notebooks/{name}.html", "profile": profile}
        said |= {key: None if pd.isna(row[key]) else row[key] for key in ("corpus", "split")}
        if said not in self.listed:
            self.listed.append(said)
        return self.listed.index(said)


# ---------------------------------------------------------------------------------------- what every head has


def _group(name: str, rows: Mapping[str, pd.DataFrame], shape: Sequence[int], sources: _Sources) -> Iterable[Content]:
    """The grids of a group: a number for every head, quantity by quantity, the most frequent relation first.

    Args:
        rows: of heads, by quantity.
    """
    there = ((q, told, rows[q]) for q, told in shown()["groups"][name]["quantities"].items() if q in rows)
    for quantity, told, here in there:
        for _, one in here.groupby(["of", "profile"], sort=False, dropna=False):
            if len(one) == shape[0] * shape[1]:
                yield {"group": name, "quantity": quantity, **_grid(one, told, sources)}


def preferred(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows without those measured for the atlas that a chapter has recorded on the same texts."""
    has = set(zip(*(rows.loc[rows["profile"] == "book", key] for key in ("quantity", "of")), strict=True))
    double = [
        p == measuring.PROFILE and key in has
        for p, *key in rows[["profile", "quantity", "of"]].itertuples(index=False)
        for key in [tuple(key)]
    ]
    return rows[~np.array(double, bool)]


def _grid(rows: pd.DataFrame, told: Mapping[str, str], sources: _Sources) -> Content:
    first = rows.iloc[0]
    name = None if pd.isna(first["of"]) else first["of"]
    found = {"of": name, "title": _title(told, name), "as": told["as"], "words": told["words"]}
    found |= {"least": True} if told.get("least") else {}
    found |= {"unit": first["unit"], "source": sources.number(first), "n": _whole(first["n"])}
    columns = {key: rows[key].to_numpy(np.float64).round(DIGITS) for key in ("value", "low", "high", "control")}
    found |= {key: column.tolist() for key, column in columns.items() if not np.isnan(column).any()}
    if "control" not in found:
        return found
    alike = len(set(found["control"])) == 1
    return found | {"against": first["against"]} | ({"control": found["control"][0]} if alike else {})


def _title(told: Mapping[str, str], name: str | None) -> str:
    return told["whole"] if name == "all" and "whole" in told else told["title"].format(of=called(name))


def _whole(count: Any) -> int | None:
    return None if pd.isna(count) else int(count)


def called(name: str | None) -> str:
    """What something is called for readers."""
    return "" if name is None else shown()["called"].get(name, name)


def _best_relation(grids: Sequence[Content]) -> list[Content]:
    """For every head the relation in which it is furthest beyond the best fixed offset, in its better direction, for each run."""
    asked = [g for g in grids if g["quantity"] in ("finds_governor", "found_by_governor") and g["of"] != "all"]
    asked = [g for g in asked if "control" in g and (g["n"] or 0) >= FEWEST]
    found = []
    for source in dict.fromkeys(g["source"] for g in asked):
        here = [g for g in asked if g["source"] == source]
        leads = np.stack([np.subtract(g["value"], g["control"]) for g in here])
        best = leads.argmax(0)
        told = {
            "group": "Dependency",
            "quantity": "best_relation",
            "of": None,
            "title": "best relation, lead over the offset",
        }
        told |= {
            "as": "signed",
            "unit": "share",
            "source": source,
            "n": None,
            "words": "best relation lead speciality syntax dependency",
        }
        named = [here[b]["of"] for b in best]
        found.append(
            told | {"value": leads.max(0).round(DIGITS).tolist(), "labels": named, "against": "best fixed offset"}
        )
    return found


def _lacking(grids: Sequence[Content]) -> list[Content]:
    """Groups of which nothing is recorded, with the chapter that would."""
    here = {grid["group"] for grid in grids}
    missing = {name: told["chapter"] for name, told in shown()["groups"].items() if name not in here}
    return [{"group": name, "chapter": notebooks.find(chapter)[:2]} for name, chapter in missing.items()]


def _types(frame: pd.DataFrame, shape: Sequence[int], sources: _Sources) -> Content | None:
    """The type of every head, and what the types are called and drawn in."""
    rows = _first(frame[frame["quantity"] == "type"])
    if len(rows) != shape[0] * shape[1]:
        return None
    fits = frame[(frame["quantity"] == "type_fits") & (frame["profile"] == rows["profile"].iloc[0])]
    named = group_names({name: bool((fits.loc[fits["of"] == name, "value"] == 1).any()) for name in TYPE_NAMES})
    labels = rows["label"]
    said = {"of": [TYPE_NAMES.index(one) for one in labels], "names": [named[name] for name in TYPE_NAMES]}
    return said | {"colours": [COLOURS[name] for name in TYPE_NAMES], "source": sources.number(rows.iloc[0])}


def _first(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first of :data:`PROFILES` that has some."""
    return next((one for p in PROFILES if len(one := rows[rows["profile"] == p])), rows)


# ---------------------------------------------------------------------------------------- whom a head resembles


def _alike(pairs: pd.DataFrame, frame: pd.DataFrame, shape: Sequence[int]) -> Content:
    """For every head its nearest heads with their divergence, and its place on a grid on which neighbours are alike."""
    pairs, found = _first(pairs), {"nearest": None, "alike": None}
    if len(pairs):
        ranked = pairs.sort_values(["layer", "head", "value"]).groupby(["layer", "head"]).head(NEAREST)
        each = [one for _, one in ranked.groupby(["layer", "head"])]
        found["nearest"] = [
            [[number_of(n, shape), round(v, DIGITS)] for n, v in zip(one["of"], one["value"], strict=True)]
            for one in each
        ]
    if len(x := _first(frame[frame["quantity"] == "map_x"])):
        y = _first(frame[frame["quantity"] == "map_y"])
        found["alike"] = on_grid(np.stack([x["value"], y["value"]], -1), shape).tolist()
    return found


def number_of(name: str, shape: Sequence[int]) -> int:
    """A head's number among all, from its name."""
    layer, head = map(int, name.split("-"))
    return (layer - 1) * shape[1] + head - 1


def on_grid(points: NDArray[np.float64], shape: Sequence[int]) -> NDArray[np.int64]:
    """The row and column of each point when each gets a cell of a grid of its own, so that all are moved as little as may be."""
    rows, columns = shape
    if rows > columns:
        return on_grid(points[:, ::-1], (columns, rows))[:, ::-1]
    ranks = points[:, ::-1].argsort(0).argsort(0) / max(len(points) - 1, 1)
    cells = np.argwhere(np.ones((rows, columns)))
    places = cells / np.maximum([rows - 1, columns - 1], 1)
    cost = ((ranks[:, None] - places[None]) ** 2).sum(-1)
    return cells[linear_sum_assignment(cost)[1]]


# ---------------------------------------------------------------------------------------- what single heads are known for


def _best(frame: pd.DataFrame, shape: Sequence[int], sources: _Sources) -> list[Content]:
    """What single heads were chosen for on one part of the data, with their numbers on another."""
    found = []
    for quantity, told in shown()["best"].items():
        leads = {
            (one["of"], one["profile"]): one for one in frame[frame["quantity"] == told["lead"]].to_dict("records")
        }
        rows = preferred(frame[(frame["quantity"] == quantity) & frame["head"].notna()]).to_dict("records")
        found += [_chosen(row, leads.get((row["of"], row["profile"])), told, shape, sources) for row in rows]
    return found


def _chosen(row: Row, lead: Row | None, told: Mapping[str, Any], shape: Sequence[int], sources: _Sources) -> Content:
    label, name = (None if pd.isna(row[key]) else row[key] for key in ("label", "of"))
    found = {"head": int((row["layer"] - 1) * shape[1] + row["head"] - 1), "quantity": row["quantity"], "of": name}
    title = told.get("titles", {}).get(label, told["title"])
    found |= {"title": title.format(of=called(name), label=called(label)), "label": label}
    found |= {"n": _whole(row["n"]), "source": sources.number(row), "unit": row["unit"]}
    found |= {key: round(row[key], DIGITS) for key in ("value", "low", "high") if not pd.isna(row[key])}
    if row["against"] in RULES and not pd.isna(row["control"]):
        found |= {"against": row["against"], "control": round(row["control"], DIGITS)}
    if lead and not pd.isna(lead["low"]):  # of a single document there is no interval
        found["lead"] = [round(lead[key], DIGITS) for key in ("value", "low", "high")]
    return found


def _known(model: str, shape: Sequence[int]) -> dict[str, str]:
    """Heads that go by a name in the book, ``"3-5"`` -> "antecedent"."""
    try:
        return {head_name(*one.head): one.trade.name for one in characters.of(model)}
    except results.ResultError:
        return {}


HEAD = re.compile(r"(?<![\w./–-])(?:head |Head )?(\d{1,2})-(\d{1,2})(?![\w–-]|\.\d)")


def mentions(model: str, shape: Sequence[int]) -> dict[str, list[list[Any]]]:
    """Chapters whose text or tables name a head: ``"3-5"`` -> [[number, title, page, how often], …].

    A chapter speaks of the model that its stored outputs are of; heads of others are named in what is recorded of them.
    """
    found: dict[str, list[list[Any]]] = {}
    for chapter, speaks_of, named in _spoken():
        for (layer, head), count in named.items() if speaks_of == model else ():
            if 1 <= layer <= shape[0] and 1 <= head <= shape[1]:
                said = [chapter[:2], titled(chapter), f"../notebooks/{chapter}.html", count]
                found.setdefault(f"{layer}-{head}", []).append(said)
    return found


@lru_cache(maxsize=1)
def _spoken() -> list[tuple[str, str | None, Counter[tuple[int, int]]]]:
    """For each chapter its model and the heads that it names, with how often."""
    found = []
    for chapter in notebooks.chapters():
        notebook = nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4)
        named = Counter((int(a), int(b)) for a, b in HEAD.findall("\n".join(_texts(notebook))))
        found.append((chapter, notebook.metadata.get("book", {}).get("parameters", {}).get("model"), named))
    return found


def _texts(notebook: nbformat.NotebookNode) -> Iterable[str]:
    """What a reader reads: prose without code, tables, printed lines; not what figures hold for scripts."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield re.sub(r"```.*?```|\$[^$]*\$", " ", cell.source, flags=re.DOTALL)
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            yield data.get("text/markdown", "") or (output.get("text", "") if output.output_type == "stream" else "")
