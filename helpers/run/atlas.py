"""The atlas of heads: what is measured for it, what its page shows of all that is recorded, and the page.

What no chapter records of a model (mean maps, three sentences) is measured on the book's own texts, with the numbers of a card
(:mod:`helpers.run.card`), so that models stand beside one another whatever else is recorded of them: a random network, an encoder with an
adapter, a model of a reader's own. :data:`Content` is what ``atlas.js`` shows of a model; a page has it as a script that assigns a variable,
not as a file to be asked for, so that the page works when it is opened from a disk.
"""

import base64
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import yaml
from jaxtyping import Float
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from helpers import adapters, attention, corpora, encoders, head_profiles, places, plots, results, tokens
from helpers.heads import Head
from helpers.measurements.surface import MOST_TOKENS
from helpers.plots import COLOURS, TYPE_NAMES, group_names
from helpers.run import card, notebooks, template
from helpers.views import as_bytes, asset, in_script

#: Where the numbers are kept: ``data/results/atlas/MODEL/heads.json``.
CHAPTER, PROFILE = "heads", "atlas"
#: Of two runs on the book's texts a chapter's own comes first, then what was measured for the atlas; real corpora stand apart.
PROFILES = ("book", PROFILE, "full")
CORPUS, CHOOSE_ON = "encyclopedia", ("train", "dev")  # as in the book's runs of chapters 02, 04, 05, 07 and 08
#: Rows and columns of a mean map: [CLS], the words of a sentence brought to 14 places, [SEP].
SIZE = 16
#: Tokens to the left and to the right that the profile of distance goes.
REACH = 8
PARAMETERS = {"corpus": CORPUS, "choose_on": list(CHOOSE_ON), "size": SIZE, "reach": REACH, "seed": 0}
DIGITS, ENOUGH = 5, 50  # words of a relation, of which a best head is named
#: What the head of a relation or a kind of mention stands against; another network's head that was chosen is another head.
RULES = ("best fixed offset", "nearest mention")
SOURCE, RUN = ["chapter", "profile", "corpus", "split"], ["of", "profile"]
CHOSEN = ["place", "quantity", "of", "label", "n", "source", "value", "low", "high", "against", "control"]
CHOSEN += ["value_lead", "low_lead", "high_lead"]
#: Which quantities the atlas shows, in what words.
SHOWN = yaml.safe_load(Path(__file__).with_name("atlas.yml").read_text("utf-8"))
HEAD = re.compile(r"(?<![\w./–-])(\d{1,2}-\d{1,2})(?![\w–-]|\.\d)")
CODE = re.compile(r"```.*?```|\$[^$]*\$", re.DOTALL)
#: Where the built book keeps script, style and data.
FOLDER = "_static/atlas"
Content = dict[str, Any]
Marks = NDArray[np.bool_]


# Measuring


def load(name: str) -> encoders.Encoder:
    """An encoder by the name it has in the atlas: as :func:`helpers.encoders.load` knows it, or that of an adapter's folder, ``minilm-qa``."""
    folder = places.adapters() / name
    if not (folder / "adapter.json").is_file():
        return encoders.load(name)
    about = adapters.read(folder).card
    return replace(encoders.load(about["model"], task=about["task"]), name=name)


def mean_map(maps: Float[Tensor, "layer head query key"], text: tokens.EncodedText) -> dict[str, NDArray[np.float32]]:
    """A sentence's maps brought to 16 places, [layer, head, 16, 16]; the sums of its weights by distance, and how many pairs each is of.

    ``[CLS]`` and ``[SEP]`` keep a row and a column of their own, and the tokens between them are brought to the same number of
    places: rows are averaged and columns summed in proportion, so that a row sums to 1. Distances are those between tokens of
    the text, by how far to the right of the one the other stands.
    """
    cls, sep, special = (marks.cpu().numpy() for marks in (text.cls, text.sep, text.special))
    weights, inner = maps.double().cpu().numpy(), ~special
    columns = places_of(cls, sep, inner)
    rows = columns / columns.sum(-1, keepdims=True).clip(1e-12)
    between, offsets = weights[:, :, inner][..., inner], range(-REACH, REACH + 1)
    sums = {
        "maps": rows @ weights @ columns.T,
        "profile": np.stack([between.diagonal(offset, -2, -1).sum(-1) for offset in offsets], -1),
        "pairs": np.array([max(inner.sum() - abs(offset), 0) for offset in offsets]),
    }
    return {name: array.astype(np.float32) for name, array in sums.items()}


def places_of(cls: Marks, sep: Marks, text: Marks) -> Float[np.ndarray, "place token"]:
    """How much of each token falls into each place of a mean map; the columns of special tokens and of the text sum to 1."""
    inner, count = SIZE - 2, max(int(text.sum()), 1)
    edges, shares = np.arange(inner + 1) * count / inner, np.zeros((SIZE, len(text)))
    shares[0, cls], shares[-1, sep] = 1, 1
    shares[1:-1, text] = np.diff(np.subtract.outer(edges, np.arange(text.sum())).clip(0, 1), axis=0)
    return shares


def examples(encoder: encoders.Encoder) -> dict[str, dict[str, Any]]:
    """Three short sentences of the development part: with an object, with a pronoun, with commas; tokens and weights of each that fits."""
    shown = {}
    for what, sentence in SHOWN["examples"].items():
        with suppress(tokens.TooLong, tokens.NoWords):
            batch = tokens.encode(encoder, [sentence.split()])
            weights = attention.maps(encoder, batch)[:, 0].double().numpy()
            shown[what] = {"tokens": list(batch.tokens[0]), "weights": as_bytes(weights)}
    return shown


def measure(encoder: encoders.Encoder, texts: card.Sample) -> dict[str, Any]:
    """What the atlas shows of a model that no chapter records.

    Returns:
        For recording. ``maps``: bytes of [layer, head, 16, 16] in base64, each map as parts of its largest weight ``scale``;
        ``profile``; ``examples``: tokens and bytes of [layer, head, query, key], parts of 1.
    """
    firsts = [segment.texts[0] for segment in texts.segments]
    single = [text[start:end].strip() for text in firsts for start, end in corpora.sentences(text)]
    each = attention.measure(encoder, single, mean_map, longest=MOST_TOKENS)
    sums = {name: sum(text[name].astype(float) for text in each) for name in ("maps", "profile", "pairs")}
    maps = sums["maps"] / len(single)
    scale = maps.max((-2, -1))
    return {
        "maps": as_bytes(maps / scale[..., None, None].clip(1e-12)),
        "scale": scale.round(4),
        "profile": {"offsets": range(-REACH, REACH + 1), "value": (sums["profile"] / sums["pairs"].clip(1)).round(4)},
        "sentences": len(single),
        "examples": examples(encoder),
    }


def record(encoder: encoders.Encoder) -> Path:
    """Measure a model, with progress bars, and keep the numbers: those of chapters as tables of the profile ``atlas``; what it cannot do is left out."""
    texts, corpus = card.sample(CORPUS, CORPUS, CORPUS, choose_on=CHOOSE_ON, segments=None), corpora.read(CORPUS)

    def run(chapter: str) -> results.Run:
        return results.Run(chapter, encoder, corpus, profile=PROFILE, **PARAMETERS)

    runs, missing = card.measure(encoder, texts, run)
    for made in runs:
        made.save()
    return run(CHAPTER).save(measure(encoder, texts) | {"missing": missing})


def known(encoder: encoders.Encoder) -> bool:
    """Whether these weights have been measured so already."""
    provenance = recorded().get(encoder.name, {}).get("provenance")
    if provenance is None or provenance["parameters"] != PARAMETERS:
        return False
    weights = provenance["model"]["sha256"], provenance["head"] and provenance["head"]["sha256"]
    return weights == (encoder.sha256, encoder.head and encoder.head.sha256)


def recorded() -> dict[str, dict[str, Any]]:
    """What was measured of every model: name -> record, the default model first."""
    runs = results.runs(CHAPTER, profile=PROFILE, own=False)
    return {model: runs[model] for model in sorted(runs, key=rank)}


def rank(model: str) -> tuple[bool, str]:
    """Where a model stands in a list: the default one first, adapters and controls after their model."""
    return not model.startswith("minilm"), model


# What the page shows


def models(names: Iterable[str] | None = None) -> dict[str, Content]:
    """The content of the atlas: model -> what the page shows of it; each has been measured for the atlas, in the order of the list."""
    numbers, measured = results.table(profiles=(*results.PROFILES, PROFILE)), recorded()
    numbers = numbers[numbers.chapter != notebooks.find("your_own_model")]
    chosen = [name for name in measured if names is None or name in names]
    return {name: of(name, numbers[numbers.model == name], measured[name]) for name in chosen}


shown = cache(models)


def of(model: str, numbers: pd.DataFrame, measured: Mapping[str, Any]) -> Content:
    """What the page shows of one model; heads are numbered layer by layer, from 0.

    Args:
        numbers: the rows of the long table that are of the model.
        measured: its record of :func:`record`.
    """
    values = measured["values"]
    shape = layers, heads = np.shape(values["scale"])
    numbers = numbers.replace({"low": -np.inf, "high": np.inf}, np.nan).sort_values(["layer", "head"], kind="stable")
    numbers["place"] = (numbers.layer - 1) * heads + numbers["head"] - 1
    numbers["source"] = numbers.groupby(SOURCE, dropna=False, sort=False).ngroup()
    sources = numbers.drop_duplicates("source").sort_values("source")
    what = numbers.quantity + "/" + numbers.of.fillna("")  # what a chapter has recorded on the same texts comes first
    numbers = numbers[~(numbers.profile.eq(PROFILE) & what.isin(what[numbers.profile == "book"]))]
    first = {name: rows[rows.profile == rows.profile.min()] for name, rows in numbers.groupby("quantity")}
    single = numbers[numbers.place.notna()]
    grids = [*_grids(pd.concat([single, _best_relation(single)]), layers * heads)]
    there = {grid["group"] for grid in grids}
    return {
        "model": model,
        "layers": layers,
        "heads": heads,
        **{name: values[name] for name in ("maps", "scale", "sentences", "profile", "examples")},
        "size": SIZE,
        "types": _types(first["type"], first["type_fits"]),
        "nearest": _nearest(first["divergence"], shape) if "divergence" in first else None,
        "alike": _alike(first["map_x"].value, first["map_y"].value, shape) if "map_x" in first else None,
        "grids": grids,
        "best": _best(numbers, single),
        "known": {str(profile.head): profile.speciality for profile in head_profiles.of(model)},
        "mentions": mentions() if model == "minilm" else {},
        "lacking": [
            {"group": name, "chapter": notebooks.find(told["chapter"])[:2]}
            for name, told in SHOWN["groups"].items()
            if name not in there
        ],
        "sources": _records(sources[SOURCE].assign(chapter=sources.chapter.str[:2])),
    }


def _records(rows: pd.DataFrame) -> list[Content]:
    """Rows for JSON: nothing where a cell is empty."""
    return rows.astype(object).where(rows.notna(), None).to_dict("records")


def called(name: str | None) -> str:
    """What something is called for readers."""
    return "" if name is None else SHOWN["called"].get(name, name)


def _best_relation(numbers: pd.DataFrame) -> pd.DataFrame:
    """For every head the relation in which it is furthest beyond the best fixed offset, in its better direction, for each run."""
    leads = card.leads(numbers[(numbers.of != "all") & (numbers.n >= ENOUGH)])
    best = leads.drop_duplicates(["source", "place"]).sort_values(["source", "place"])
    best = best.assign(
        towards=best.quantity == "finds_governor", quantity="best_relation", label=best.of, value=best.lead
    )
    return best[["quantity", "profile", "source", "place", "unit", "value", "label", "towards"]]


def _grids(numbers: pd.DataFrame, heads: int) -> Iterable[Content]:
    """The grids, a number for every head: group by group, quantity by quantity, the most frequent relation first."""
    of = dict(iter(numbers.groupby("quantity")))
    quantities = [(name, *item) for name, told in SHOWN["groups"].items() for item in told["quantities"].items()]
    for group, quantity, told in [listed for listed in quantities if listed[1] in of]:
        for _, rows in of[quantity].groupby(RUN, sort=False, dropna=False):
            if len(rows) != heads:
                continue
            first = rows.iloc[0].to_dict()  # what else the rows say
            first = {key: None if pd.isna(cell) else cell for key, cell in first.items()}
            title = told["whole"] if first["of"] == "all" and "whole" in told else told["title"]
            grid = {"group": group, "title": title.format(of=called(first["of"]))}
            grid |= {key: told[key] for key in ("as", "words", "least") if key in told}
            grid |= {key: first[key] for key in ("quantity", "of", "unit", "source", "n")}
            grid |= {key: rows[key].tolist() for key in (*results.NUMBERS, "towards") if not rows[key].hasnans}
            if "towards" in grid:
                grid["labels"] = rows.label.tolist()
            if "control" in grid:
                alike = len(set(grid["control"])) == 1
                grid |= {"against": first["against"], "control": grid["control"][0] if alike else grid["control"]}
            yield grid


def _types(rows: pd.DataFrame, fits: pd.DataFrame) -> Content:
    """The type of every head, and what the types are called and drawn in."""
    named = group_names(fits.set_index("of").value.astype(bool))
    return {
        "of": rows.label.map(TYPE_NAMES.index).tolist(),
        "names": [named[name] for name in TYPE_NAMES],
        "colours": [COLOURS.get(named[name], COLOURS[name]) for name in TYPE_NAMES],
        "source": int(rows.source.iloc[0]),
    }


def _nearest(pairs: pd.DataFrame, shape: Sequence[int]) -> list[Any]:
    """For every head the heads that attend most alike, each with its divergence."""
    names = [str(Head.of(place)) for place in np.ndindex(*shape)]
    pairs = pairs.assign(other=pairs.of.map(names.index)).sort_values(["place", "value"])
    of_head = pairs.groupby("place")[["other", "value"]]
    return [list(near.head(card.NEAREST).itertuples(index=False, name=None)) for _, near in of_head]


def _alike(x: pd.Series, y: pd.Series, shape: Sequence[int]) -> list[Any]:
    """For every head its row and column on a grid on which neighbours are alike: all are moved as little as may be to cells of their own."""
    cells = np.argwhere(np.ones(shape))
    places = cells / np.maximum(cells.max(0), 1)
    ranks = np.stack([y, x], -1).argsort(0).argsort(0) / max(len(x) - 1, 1)
    cost = ((ranks[:, None] - places[None]) ** 2).sum(-1)
    return cells[linear_sum_assignment(cost)[1]].tolist()


def _best(numbers: pd.DataFrame, single: pd.DataFrame) -> Iterable[Content]:
    """What single heads were chosen for on one part of the data, with their numbers on another."""
    listed = []
    for quantity, told in SHOWN["best"].items():
        leads = numbers[numbers.quantity == told["lead"]].drop_duplicates(RUN, keep="last")
        rows = single[single.quantity == quantity].merge(leads, "left", RUN, suffixes=("", "_lead"))
        rows[["against", "control"]] = rows[["against", "control"]].where(rows.against.isin(RULES))
        for row in _records(rows[CHOSEN]):
            title = told.get("titles", {}).get(row["label"], told["title"])
            title = title.format(of=called(row["of"]), label=called(row["label"]))
            listed.append({"title": title} | {key: cell for key, cell in row.items() if cell is not None})
    return listed


def mentions() -> dict[str, list[list[Any]]]:
    """Chapters whose text, which tells of the default model, names a head: ``"3-5"`` -> [[number, title, page, how often], …]."""
    links = defaultdict(list)
    for chapter in notebooks.chapters():
        cells = nbformat.read(notebooks.FOLDER / f"{chapter}.ipynb", as_version=4).cells
        texts = [CODE.sub(" ", cell.source) for cell in cells if cell.cell_type == "markdown"]
        for head, count in Counter(HEAD.findall("\n".join(texts))).items():
            links[head].append([chapter[:2], chapter[3:].replace("_", " "), f"../notebooks/{chapter}.html", count])
    return links


# The page


def file_of(model: str) -> str:
    """The name of a model's data."""
    return f"{places.label(model)}.js"


def data(model: str, content: Content) -> str:
    """A script that hands the content of a model to the page, rounded; nothing in it can end a script element."""
    content = json.loads(json.dumps(content), parse_float=lambda number: round(float(number), DIGITS))
    name, body = (in_script(json.dumps(part, separators=(",", ":"), allow_nan=False)) for part in (model, content))
    return f"(window.atlasModels=window.atlasModels||{{}})[{name}]={body};\n"


def picture(content: Content) -> bytes:
    """All heads as mean maps, layers from left to right, framed in the colours of their types, as a PNG file."""
    plots.use_style()
    layers, heads, size = content["layers"], content["heads"], content["size"]
    maps = np.frombuffer(base64.b64decode(content["maps"]), np.uint8).reshape(layers, heads, size, size)
    types = content["types"]

    def draw(ax: Axes, head: int, layer: int) -> None:
        ax.imshow(np.sqrt(maps[layer, head] / 255), cmap="Greys", vmin=0, vmax=1.08)
        ax.spines[:].set(visible=True, color=types["colours"][types["of"][layer * heads + head]], linewidth=2.2)

    inches = (0.62 * layers + 0.6, 0.62 * heads + 0.6)
    figure = plots.thumbnails((heads, layers), inches, draw)
    squares = [Patch(color=types["colours"][kind], label=types["names"][kind]) for kind in sorted(set(types["of"]))]
    figure.legend(handles=squares, loc="outside lower center", ncols=len(squares), fontsize=8)
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=110, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
    return target.getvalue()


def data_files(models: Iterable[str], folder: str, page: bool | str) -> Content:
    """What ``atlas.js`` is told of its data.

    Args:
        models: in the order of the list, the first is opened.
        folder: where their data lie, from the page.
        page: whether the chapters stand beside the page, to be linked to; in a chapter, where the atlas is.
    """
    return {"folder": f"{folder}/", "files": {name: file_of(name) for name in models}, "page": page}


def element(models: Mapping[str, Content], *, folder: str, page: bool = True) -> str:
    """The atlas in a page: what a reader without scripts, or of a print, sees (the first model), and what ``atlas.js`` needs (:func:`data_files`)."""
    first = next(iter(models.values()))
    png, told = base64.b64encode(picture(first)).decode(), json.dumps(data_files(models, folder, page))
    return template("atlas_element.html.j2", escaped=True).render(first=first, png=png, told=Markup(in_script(told)))


def write_data(folder: Path, models: Mapping[str, Content]) -> None:
    """Script, style, and the data of each model."""
    for kind in ("js", "css"):
        places.write(folder / f"atlas.{kind}", asset(f"atlas.{kind}"))
    for name, content in models.items():
        places.write(folder / file_of(name), data(name, content))


def inline(content: Content) -> str:
    """The atlas of one model with its script, style and data, for a page that is one file."""
    model = content["model"]
    body = element({model: content}, folder=".", page=False)
    return f"<style>{asset('atlas.css')}</style>{body}<script>{data(model, content)}</script><script>{asset('atlas.js')}</script>"


def write(folder: Path) -> Path:
    """A page of all models that have been measured, with its data beside it, that opens from a disk; returns the page."""
    contents = models()
    write_data(folder, contents)
    body = element(contents, folder=".", page=False)
    places.write(folder / "index.html", template("atlas.html.j2").render(element=body))
    return folder / "index.html"


def holdings() -> results.Table:
    """What is recorded of which model: in the atlas, and by which chapters on the book's texts and on real corpora."""
    runs = [
        [model, run["provenance"]["profile"], int(results.notebooks()[run["chapter"]][:2])]
        for model, run in results.all_runs(PROFILES)
    ]
    there = pd.DataFrame(runs, columns=["model", "profile", "chapter"])
    cells = there.groupby(["model", "profile"]).chapter.agg(spans).unstack(fill_value="–")
    cells = cells.reindex(columns=["atlas", "book", "full"]).loc[sorted(cells.index, key=rank)]
    cells["atlas"] = cells["atlas"].where(cells["atlas"] == "–", "yes")
    lines = [[f"`{model}`", *line] for model, line in cells.iterrows()]
    return results.Table(["model", "in the atlas", "chapters, the book's texts", "chapters, real corpora"], lines)


def spans(numbers: pd.Series) -> str:
    """Chapters by their numbers, those that follow one another as ``02–14``."""
    runs = numbers.groupby(numbers.sort_values().diff().ne(1).cumsum()).agg(["min", "max"])
    return ", ".join("–".join(f"{n:02}" for n in dict.fromkeys(ends)) for ends in runs.itertuples(index=False))
