"""An encoder on one page from Python: ``c = card("my/encoder")`` measures, and ``c`` shows itself, saves itself, gives its numbers.

Measured with chapter 14's passes and the functions of chapters 02, 04, 05, 07 and 08; kept as these chapters record it, so that
the numbers come in the same long form (:func:`helpers.results.table`) as those that travel with the book.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from helpers import places, results
from helpers.chapters.your_own_model import measures as your_own_model
from helpers.chapters.your_own_model.measures import Sample
from helpers.corpora import CorpusError
from helpers.encoders import Encoder
from helpers.measurements import coreference as antecedents
from helpers.measurements import divergence, head_types, surface, syntax
from helpers.plots import COLOURS, LABELS, group_names, head_name, ink_on
from helpers.run.notebooks import resolved
from helpers.run.templates import template

PROFILE = "card"
RELATIONS, NEAREST = 5, 5
"""Relations and neighbours that are shown of a head."""
SHARES = {"share_cls": "cls", "share_sep": "sep", "share_punctuation": "stop", "share_previous": "previous"}
SHARES |= {"share_self": "self", "share_next": "next"}
FEWEST = syntax.FEWEST
"""Words of a relation, or mentions of a kind: of fewer a card says nothing."""


def card(
    model: str | Encoder,
    *,
    corpus: str = "encyclopedia",
    treebank: str = "encyclopedia",
    coreference: str = "encyclopedia",
    choose_on: Sequence[str] = ("train", "dev"),
    segments: int = 200,
    documents: int | None = None,
    seed: int = 0,
) -> "Card":
    """Measure an encoder on small samples: under a minute for MiniLM on two cores, with a progress bar for each pass.

    Args:
        model: a name of the book, an id of the hub, a folder, or an encoder that is loaded.
        corpus, treebank, coreference: texts to measure on, by name or path.
        choose_on: parts of the treebanks on which the best heads are chosen; they are scored on the rest.
        segments: of plain text.
        documents: at most so many of each part of a treebank (default: all).
        seed: of samples, bootstraps and clustering.

    Raises:
        BookError: for a model or a corpus that cannot be read, or that is too small.
    """
    encoder = your_own_model.load(resolved(model), seed=seed) if isinstance(model, str) else model
    names = {"corpus": corpus, "treebank": treebank, "coreference": coreference}
    choice = {"choose_on": choose_on, "segments": segments, "documents": documents, "seed": seed}
    texts = {"dependency_heads": treebank, "coreference_heads": coreference}

    def run(chapter: str) -> results.Run:
        made = results.Run(chapter, encoder, None, profile=PROFILE)
        made.provenance["corpus"] = {"name": texts.get(chapter, corpus)}
        return made

    runs, missing = measure(encoder, your_own_model.sample(*names.values(), **choice), run, seed=seed)
    name = your_own_model.short_name(encoder.name)
    table = results.long((name, made.recorded) for made in runs)
    return Card(name, (encoder.layers, encoder.heads), encoder.sha256, table, missing)


def measure(
    encoder: Encoder, texts: Sample, run: Callable[[str], results.Run], *, seed: int = 0
) -> tuple[list[results.Run], dict[str, str]]:
    """What chapters 02, 04, 05, 07 and 08 would record of an encoder, from two passes over plain text and one over each treebank.

    Args:
        run: opens the run of a chapter.

    Returns:
        The runs, and, where the encoder or the texts do not allow one, chapter -> why not.
    """
    patterns, features, divergences, _ = your_own_model.sweep(encoder, texts.segments, seed=seed)
    types, shares, _, fits = your_own_model.typed(features, seed=seed)
    runs, missing = [run("surface_patterns"), run("distance_features")], {}
    surface.record(runs[0], patterns)
    head_types.record(runs[1], features, head_types.Types(types, fits), shares)
    if divergences is None:
        missing["divergence_map"] = f"{encoder.layers * encoder.heads} heads are too few for a map."
    else:
        runs.append(run("divergence_map"))
        divergence.record(runs[-1], divergences, divergence.place(divergences.mean()))
    try:
        trees = [syntax.trees(encoder, part) for part in texts.trees]
        runs.append(run("dependency_heads"))
        syntax.record(runs[-1], syntax.answers(encoder, *trees), *trees, seed=seed)
    except CorpusError as error:  # no sentence fits
        missing["dependency_heads"] = str(error)
    try:
        dev, test = (antecedents.measure(encoder, part) for part in texts.chains)
        runs.append(run("coreference_heads"))
        antecedents.record(runs[-1], antecedents.table(dev, test, seed=seed), test)
    except CorpusError as error:  # no chain does
        missing["coreference_heads"] = str(error)
    return runs, missing


@dataclass(frozen=True, eq=False)
class Card:
    """An encoder's heads in numbers; shows itself in a notebook.

    Attributes:
        name, sha256: of the encoder, and of its weights.
        shape: layers, and heads in each.
        table: every number in the long form of :data:`helpers.results.COLUMNS`.
        missing: chapter -> why nothing of it is here.
    """

    name: str
    shape: tuple[int, int]
    sha256: str
    table: pd.DataFrame
    missing: dict[str, str]

    def __getitem__(self, head: str) -> "Head":
        """One head by the field's name for it, layer-head from 1: ``c["3-5"]``; KeyError for one that the encoder does not have."""
        return self._heads[head]

    @cached_property
    def _heads(self) -> dict[str, "Head"]:
        """Every head by its name, layer by layer."""
        names = self.table.layer.astype(str) + "-" + self.table["head"].astype(str)
        return {name: Head(name, rows, self.types) for name, rows in self.table.groupby(names, sort=False)}

    @cached_property
    def types(self) -> dict[str, str]:
        """What each group of heads is called."""
        return group_names(self.table[self.table.quantity == "type_fits"].set_index("of").value.astype(bool))

    def best(self) -> list[Any]:
        """The best head for each frequent relation and each kind of mention, chosen and scored on different documents."""
        return _frequent(self.table[self.table.quantity.isin(["best_for_relation", "best_for_antecedent"])])

    def _repr_html_(self) -> str:
        return self._page(whole=False)

    def save(self, file: str | Path) -> Path:
        """Write the card as a page that needs no other file and no network, with a part for every head."""
        places.write(Path(file), self._page(whole=True))
        return Path(file)

    def _page(self, *, whole: bool) -> str:
        layers, heads = map(range, self.shape)
        grid = [[self[head_name(layer, head)] for head in heads] for layer in layers]
        shown = {"card": self, "whole": whole, "grid": grid, "colours": COLOURS, "ink": ink_on}
        return template("encoder_card.html.j2", escaped=True).render(**shown, number=number, between=between)


@dataclass(frozen=True, eq=False)
class Head:
    """One head of a card.

    Attributes:
        name: ``3-5``.
        table: its numbers, in the long form.
        types: what each type of heads is called.
    """

    name: str
    table: pd.DataFrame
    types: dict[str, str]

    def rows(self, *quantities: str) -> pd.DataFrame:
        """Its rows of some quantities."""
        return self.table[self.table.quantity.isin(quantities)]

    @cached_property
    def type(self) -> str:
        """Its type by distance, as in chapter 08."""
        return str(self.rows("type").label.iloc[0])

    def relations(self) -> list[Any]:
        """The frequent relations in which it leads the best fixed offset most, a row each."""
        found = self.rows("finds_governor", "found_by_governor")
        found = found[(found.n >= FEWEST) & (found["value"] > found.control)]
        found = found.assign(lead=found["value"] - found.control).sort_values("lead", ascending=False)
        return list(found.drop_duplicates("of").head(RELATIONS).itertuples())

    def nearest(self) -> list[Any]:
        """The heads whose attention is most like its own."""
        return list(self.rows("divergence").nsmallest(NEAREST, "value").itertuples())

    def _repr_html_(self) -> str:
        shares = {LABELS[SHARES[row.quantity]]: row for row in self.rows(*SHARES).itertuples()}
        lists = {
            "entropy": next(self.rows("entropy").itertuples()),
            "chosen": _frequent(self.rows("best_for_relation", "best_for_antecedent")),
            "antecedents": _frequent(self.rows("finds_antecedent")),
        }
        page = template("head_card.html.j2", escaped=True)
        return page.render(head=self, shares=shares, number=number, between=between, **lists)


def _frequent(found: pd.DataFrame) -> list[Any]:
    """The rows of what occurs often enough."""
    return list(found[found.n >= FEWEST].itertuples())


def number(value: float) -> str:
    """Two decimals; nothing where there is no number."""
    return "" if pd.isna(value) else f"{value:z.2f}"


def between(row: Any) -> str:
    """A number with its interval, where it has one."""
    return number(row.value) + (f" [{number(row.low)}, {number(row.high)}]" if math.isfinite(row.low) else "")
