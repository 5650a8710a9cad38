"""An encoder on one page: ``c = card("my/encoder")`` measures, and ``c`` shows itself, saves itself, gives its numbers.

Measured on small samples by the functions of chapters 02, 04, 05, 07 and 08, and kept as these chapters record it, so that
the numbers come in the same long form (:func:`helpers.results.table`) as those that travel with the book.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from torch import Tensor

from helpers import attention, corpora, encoders, places, plots, results, stats, tokens
from helpers.corpora import readers, records, treebanks
from helpers.measurements import coreference as antecedents
from helpers.measurements import divergence, head_types, surface, syntax
from helpers.run import notebooks, template

PROFILE = "card"
#: Relations and neighbours that are shown of a head.
RELATIONS, NEAREST = 5, 5
#: Places whose shares are shown, as they are recorded, and as figures know them.
SHARES = {"cls": "cls", "sep": "sep", "punctuation": "stop", "previous": "previous", "self": "self", "next": "next"}
#: Words of a relation, or mentions of a kind: of fewer a card says nothing.
FEWEST = syntax.FEWEST
#: Fewer make no map.
FEWEST_HEADS = 3
#: What :func:`look` found in each segment, if they have been measured already.
Looks = Sequence[dict[str, Any]] | None
#: Likewise what heads name in the two parts of the trees, and how often they are right in those of the chains.
Named = tuple[Sequence[syntax.Answers], Sequence[antecedents.Scores]] | None


@dataclass(frozen=True, eq=False)
class Sample:
    """The texts that cards are measured on; the same for all models that are compared.

    Attributes:
        names: of the corpora, by what they are used for: ``corpus``, ``treebank``, ``coreference``.
        segments: plain text.
        trees, chains: documents to choose heads on, and documents to score them on.
    """

    names: dict[str, str]
    segments: tuple[readers.Segment, ...]
    trees: tuple[tuple[treebanks.Document, ...], tuple[treebanks.Document, ...]]
    chains: tuple[tuple[treebanks.Document, ...], tuple[treebanks.Document, ...]]


def sample(
    corpus: str = "encyclopedia",
    treebank: str = "encyclopedia",
    coreference: str = "encyclopedia",
    *,
    choose_on: Sequence[str] = ("train", "dev"),
    segments: int | None = 200,
    documents: int | None = None,
    seed: int = 0,
) -> Sample:
    """Draw small samples of three corpora, by name or path.

    Args:
        choose_on: parts of the treebanks on which heads are chosen; they are scored on the rest.
        segments: of plain text (None: all).
        documents: at most so many of each part of a treebank (default: all).

    Raises:
        CorpusError: when a text or a treebank is too small to choose heads on one part of it and to score them on another.
    """
    segments_read = tuple(corpora.segments(corpora.read(corpus), limit=segments, seed=seed))
    surface.refuse_few(segments_read)
    trees, chains = (
        tuple(
            records.numbered(records.sample(part, documents, seed=seed)) for part in corpora.held_out(name, choose_on)
        )
        for name in (treebank, coreference)
    )
    names = {"corpus": corpus, "treebank": treebank, "coreference": coreference}
    return Sample(names, segments_read, trees, chains)


def card(
    model: str | encoders.Encoder, *, seed: int = 0, looks: Looks = None, named: Named = None, **drawn: Any
) -> "Card":
    """Measure an encoder on small samples: under a minute for MiniLM on two cores, with a progress bar for each pass.

    Args:
        model: a name of the book, an id of the hub, a folder, or an encoder that is loaded.
        seed: of samples, bootstraps and clustering.
        looks: what :func:`look` found in the segments.
        named: what :func:`helpers.measurements.syntax.answers` and :func:`helpers.measurements.coreference.measure` found in the treebanks.
        drawn: the texts to measure on, as for :func:`sample`.

    Raises:
        BookError: for a model or a corpus that cannot be read, or that is too small.
    """
    encoder = encoders.load(notebooks.resolved(model), seed=seed) if isinstance(model, str) else model
    texts = sample(**drawn, seed=seed)
    read = {"dependency_heads": "treebank", "coreference_heads": "coreference"}

    def run(chapter: str) -> results.Run:
        made = results.Run(chapter, encoder, None, profile=PROFILE)
        made.provenance["corpus"] = {"name": texts.names[read.get(chapter, "corpus")]}
        return made

    runs, missing = measure(encoder, texts, run, seed=seed, looks=looks, named=named)
    name = Path(encoder.name).name  # of a folder its last part
    table = results.long((name, made.recorded) for made in runs)
    return Card(name, (encoder.layers, encoder.heads), encoder.sha256, table, missing)


def measure(
    encoder: encoders.Encoder,
    texts: Sample,
    run: Callable[[str], results.Run],
    *,
    seed: int = 0,
    looks: Looks = None,
    named: Named = None,
) -> tuple[list[results.Run], dict[str, str]]:
    """What chapters 02, 04, 05, 07 and 08 would record of an encoder, from one pass over plain text and one over each treebank.

    Args:
        run: opens the run of a chapter.
        looks, named: as for :func:`card`.

    Returns:
        The runs, and, where the encoder or the texts do not allow one, chapter -> why not.
    """
    looks = looks or attention.measure(encoder, texts.segments, look, longest=surface.MOST_TOKENS, seed=seed)
    pointed, mentions = named or (None, None)
    seen = {name: [of_text[name] for of_text in looks] for name in looks[0]}
    runs, missing = [run("surface_patterns"), run("distance_features")], {}
    surface.record(runs[0], surface.patterns(seen["patterns"], texts.segments, seed=seed))
    features = head_types.DistanceFeatures.of(seen["features"], texts.segments, seed=seed)
    head_types.record(runs[1], features, *typed(features, seed=seed))
    if encoder.layers * encoder.heads < FEWEST_HEADS:
        missing["divergence_map"] = f"{encoder.layers * encoder.heads} heads are too few for a map."
    else:
        divergences = divergence.Divergences.of(encoder, texts.segments, seen["pairs"])
        runs.append(run("divergence_map"))
        divergence.record(runs[-1], divergences, divergence.place(divergences.mean()))
    try:
        trees = [syntax.trees(encoder, part) for part in texts.trees]
        runs.append(run("dependency_heads"))
        answers = {"": pointed or syntax.answers(encoder, *trees)}
        syntax.record(runs[-1], answers, *trees, schemes=[False], seed=seed)
    except corpora.CorpusError as error:  # no sentence fits
        missing["dependency_heads"] = str(error)
    try:
        dev, test = mentions or (antecedents.measure(encoder, part) for part in texts.chains)
        runs.append(run("coreference_heads"))
        antecedents.record(runs[-1], antecedents.table(dev, test, seed=seed), test)
    except corpora.CorpusError as error:  # no chain does
        missing["coreference_heads"] = str(error)
    return runs, missing


def look(maps: Float[Tensor, "layer head query key"], text: tokens.EncodedText) -> dict[str, Any]:
    """What chapters 02, 08 and 07 measure of one text."""
    statistics = {"patterns": surface.look(maps, text), "features": head_types.look(maps, text)}
    return statistics | {"pairs": divergence.look(maps, text)}


def typed(features: head_types.DistanceFeatures, *, seed: int = 0) -> tuple[head_types.Types, stats.Estimate]:
    """The type of each head, and the shares of the types; heads too few for groups are named by rule, each by itself."""
    if len(features.points) > len(head_types.TYPES):
        types = head_types.types(features.all.value, features.even, seed=seed)
        return types, head_types.type_shares(features, seed=seed)

    def shares(numbers: Float[np.ndarray, "*draws layer head feature"]) -> Float[np.ndarray, "*draws type"]:
        names = head_types.by_rule(numbers, features.even)
        return (names[..., None] == np.array(head_types.TYPES)).mean((-3, -2))

    there = dict(zip(head_types.TYPES, (shares(features.all.value) > 0).tolist(), strict=True))
    return head_types.Types(head_types.by_rule(features.all.value, features.even), there), features.all.map(shares)


@dataclass(frozen=True, eq=False, repr=False)
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
        return self.heads[head]

    @cached_property
    def heads(self) -> dict[str, "Head"]:
        """Every head by its name, layer by layer."""
        table = self.table.assign(name=self.table.layer.astype(str) + "-" + self.table["head"].astype(str))
        types, of_heads = table[table.quantity == "type"].set_index("name").label, table.groupby("name")
        return {name: Head(name, self.types[kind], of_heads.get_group(name)) for name, kind in types.items()}

    @cached_property
    def types(self) -> dict[str, str]:
        """What each group of heads is called."""
        return plots.group_names(self.table[self.table.quantity == "type_fits"].set_index("of").value.astype(bool))

    def __repr__(self) -> str:
        return f"The card of {self.name}: {self.shape[0]} layers of {self.shape[1]} heads."

    def best(self) -> list[Any]:
        """The best head for each frequent relation and each kind of mention, chosen and scored on different documents."""
        return _frequent(self.table, "best_for_relation", "best_for_antecedent")

    def lead(self, row: Any) -> Any:
        """How far a row of :meth:`best` is ahead of its baseline."""
        rows = self.table[(self.table.quantity == row.quantity.replace("best", "lead")) & (self.table.of == row.of)]
        return next(rows.itertuples())

    def _repr_html_(self, whole: bool = False) -> str:
        grid = np.reshape(list(self.heads.values()), self.shape)
        colours = {called: plots.COLOURS.get(called, plots.COLOURS[kind]) for kind, called in self.types.items()}
        shown = {"card": self, "whole": whole, "grid": grid, "colours": colours, "ink": plots.ink_on}
        return template("encoder_card.html.j2", escaped=True).render(shown, number=number, between=between)

    def save(self, file: str | Path) -> Path:
        """Write the card as a page that needs no other file and no network, with a part for every head."""
        places.write(Path(file), self._repr_html_(whole=True))
        return Path(file)


@dataclass(frozen=True, eq=False, repr=False)
class Head:
    """One head of a card.

    Attributes:
        name: ``3-5``.
        type: what its type by distance is called, as in chapter 08.
        table: its numbers, in the long form.
    """

    name: str
    type: str
    table: pd.DataFrame

    def __repr__(self) -> str:
        return f"The card of head {self.name}: {self.type}."

    def relations(self) -> list[Any]:
        """The frequent relations in which it leads the best fixed distance most, a row each."""
        return list(leads(self.table).query("lead > 0").drop_duplicates("of").head(RELATIONS).itertuples())

    def _repr_html_(self) -> str:
        whole = {row.quantity: row for row in self.table[self.table.of.isna()].itertuples()}
        shown = {"shares": {plots.LABELS[kind]: whole[f"share_{name}"] for name, kind in SHARES.items()}}
        shown |= {"entropy": whole["entropy"], "antecedents": _frequent(self.table, "finds_antecedent")}
        shown["chosen"] = _frequent(self.table, "best_for_relation", "best_for_antecedent")
        near = self.table[self.table.quantity == "divergence"].nsmallest(NEAREST, "value")
        page = template("head_card.html.j2", escaped=True)
        return page.render(shown, head=self, nearest=list(near.itertuples()), number=number, between=between)


def leads(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of how often heads are right in frequent relations that have a baseline, and their ``lead`` over it, the greatest first."""
    rows = table[table.quantity.isin(["finds_governor", "found_by_governor"]) & (table.n >= FEWEST)]
    rows = rows.assign(lead=rows["value"] - rows.control).dropna(subset="lead")
    return rows.sort_values("lead", ascending=False, kind="stable")


def _frequent(table: pd.DataFrame, *quantities: str) -> list[Any]:
    """The rows of quantities that are of what occurs often enough."""
    return list(table[table.quantity.isin(quantities) & (table.n >= FEWEST)].itertuples())


def number(value: float) -> str:
    """Two decimals; nothing where there is no number."""
    return "" if pd.isna(value) else f"{value:z.2f}"


def between(row: Any) -> str:
    """A number with its interval, where it has one."""
    return number(row.value) + (f" [{number(row.low)}, {number(row.high)}]" if math.isfinite(row.low) else "")
