"""What the atlas needs of a model beside the chapters' records: mean maps, distances, three sentences, and whom a head resembles.

Measured on the book's own texts with the chapters' own functions, so that models stand beside one another whatever else is
recorded of them: a random twin, an encoder with an adapter, a model of a reader's own.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from helpers import adapters, attention, corpora, encoders, places, results, tidy
from helpers.chapters.your_own_model.measures import MOST_TOKENS, Sample, sample
from helpers.corpora.treebanks import Sentence
from helpers.encoders import Encoder
from helpers.engine import sweeps
from helpers.engine.accumulators import Additive
from helpers.run import card
from helpers.tokens import Batch, Batches, fits

CHAPTER, PROFILE = "heads", "atlas"
"""Where the numbers are kept: ``data/results/atlas/MODEL/heads.json``."""
CORPUS, CHOOSE_ON = "encyclopedia", ("train", "dev")  # as in the book's runs of chapters 02, 04, 05, 07 and 08
SIZE = 16
"""Rows and columns of a mean map: [CLS], the words of a sentence brought to 14 places, [SEP]."""
REACH = 8
"""Tokens to the left and to the right that the profile of distance goes."""
DIGITS = 4  # kept of a share: no picture and no card shows more


# ---------------------------------------------------------------------------------------- models


def load(name: str) -> Encoder:
    """An encoder by the name it has in the atlas: as :func:`helpers.encoders.load` knows it, or that of an adapter's folder, ``minilm-qa``."""
    folder = places.adapters() / name
    if not (folder / "adapter.json").is_file():
        return encoders.load(name)
    card = adapters.read(folder).card
    return replace(encoders.load(card["model"], task=card["task"]), name=name)


# ---------------------------------------------------------------------------------------- mean maps


class MeanMaps(Additive):
    """The mean map of every head over single sentences, and its profile of distance; an observer for a sweep.

    In a sentence's map ``[CLS]`` and ``[SEP]`` keep a row and a column of their own, and the tokens between them are brought
    to the same number of places: rows are averaged and columns summed in proportion, so that a row sums to 1.
    The profile takes weights from tokens of the text to tokens of the text, by how far to the right of the one the other stands.
    """

    ADDED = ("maps", "profile", "pairs", "sentences")

    def __init__(self, encoder: Encoder) -> None:
        self.maps = np.zeros((encoder.layers, encoder.heads, SIZE, SIZE))
        self.profile = np.zeros((encoder.layers, encoder.heads, 2 * REACH + 1))
        self.pairs = np.zeros(2 * REACH + 1)
        self.sentences = 0

    def __call__(self, batch: Batch, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        for row, length in enumerate(batch.lengths.tolist()):
            weights = probabilities[row, :, :length, :length].double().cpu().numpy()
            cls, sep, special = (
                getattr(batch, kind)[row, :length].cpu().numpy() for kind in ("cls", "sep", "special")
            )
            if not (text := ~special).any():
                continue
            columns = places_of(cls, sep, text)
            rows = columns / columns.sum(-1, keepdims=True).clip(1e-12)
            self.maps[layer] += rows @ weights @ columns.T
            self._count(layer, weights[:, text][:, :, text])

    def _count(self, layer: int, weights: NDArray[np.float64]) -> None:
        length = weights.shape[-1]
        for at, offset in enumerate(range(-REACH, REACH + 1)):
            self.profile[layer, :, at] += weights.diagonal(offset, -2, -1).sum(-1)
            self.pairs[at] += max(length - abs(offset), 0) if layer == 0 else 0
        self.sentences += layer == 0


def places_of(
    cls: NDArray[np.bool_], sep: NDArray[np.bool_], text: NDArray[np.bool_]
) -> Float[np.ndarray, "place token"]:
    """How much of each token falls into each place of a mean map; the columns of special tokens and of the text sum to 1."""
    inner, count = SIZE - 2, int(text.sum())
    edges = np.arange(count + 1) * inner / count
    low, high = np.maximum.outer(np.arange(inner), edges[:-1]), np.minimum.outer(np.arange(1, inner + 1), edges[1:])
    found = np.zeros((SIZE, len(text)))
    found[0, cls], found[-1, sep] = 1, 1
    found[1:-1, text] = (high - low).clip(0) * count / inner
    return found


# ---------------------------------------------------------------------------------------- sentences

WANTED: Mapping[str, Any] = {
    "an object": lambda s: {"nsubj", "obj", "case"} <= set(s.relations),
    "a pronoun": lambda s: "PRON" in s.upos[3:] and {"PROPN", "NOUN"} & set(s.upos[:3]),
    "commas": lambda s: s.words.count(",") > 1,
}
"""What the three sentences of a card have, and how such a sentence is known."""
WORDS = range(8, 15)


def sentences(encoder: Encoder) -> dict[str, Sentence]:
    """For each of :data:`WANTED` the first sentence of the development part that has it and is short, each another one."""
    found: dict[str, Sentence] = {}
    short = [
        s
        for d in corpora.documents(CORPUS, "dev")
        for s in d.sentences
        if len(s.words) in WORDS and fits(encoder, s.words)
    ]
    for what, has in WANTED.items():
        if chosen := next((s for s in short if has(s) and s not in found.values()), None):
            found[what] = chosen
    return found


# ---------------------------------------------------------------------------------------- all of it


def measure(encoder: Encoder, texts: Sample) -> dict[str, Any]:
    """What the atlas shows of a model that no chapter records.

    Returns:
        For recording. ``maps``: bytes of [layer, head, 16, 16] in base64, each map as parts of its largest weight ``scale``;
        ``profile``; ``examples``: for each of :data:`WANTED` tokens and bytes of [layer, head, query, key], parts of 1.
    """
    examples = {what: _example(encoder, s) for what, s in sentences(encoder).items()}
    return {**_maps(encoder, [segment.first for segment in texts.segments]), "examples": examples}


def record(encoder: Encoder, *, seed: int = 0) -> Path:
    """Measure a model, with progress bars, and keep the numbers: those of chapters as tables of the profile ``atlas``; what it cannot do is left out."""
    texts = sample(CORPUS, CORPUS, CORPUS, choose_on=CHOOSE_ON, segments=None, seed=seed)
    values, missing = card.measure(encoder, texts, seed=seed)
    about = {"encoder": encoder, "corpus": corpora.read(CORPUS), "profile": PROFILE, "parameters": _parameters(seed)}
    for chapter, found in values.items():
        results.record(chapter, {}, table=partial(_blocks, chapter, found), **about)
    return results.record(CHAPTER, measure(encoder, texts) | {"missing": missing}, **about)


def _blocks(chapter: str, values: dict[str, Any], record: Mapping[str, Any]) -> list[pd.DataFrame]:
    return [card.table(chapter, values)]


def _parameters(seed: int) -> dict[str, Any]:
    return {"corpus": CORPUS, "choose_on": list(CHOOSE_ON), "size": SIZE, "reach": REACH, "seed": seed}


def known(encoder: Encoder, *, seed: int = 0) -> bool:
    """Whether these weights have been measured so already."""
    try:
        found = results.recorded(CHAPTER, model=encoder.name, profile=PROFILE)["provenance"]
    except results.ResultError:
        return False
    head = encoder.head and encoder.head.sha256
    same = found["model"]["sha256"] == encoder.sha256 and (found["head"] or {}).get("sha256") == head
    return same and found["parameters"] == _parameters(seed)


def recorded() -> dict[str, dict[str, Any]]:
    """What was measured of every model: name -> record, the default model first."""
    found = results.runs(CHAPTER, profile=PROFILE)
    return {model: found[model] for model in sorted(found, key=tidy.rank)}


def _maps(encoder: Encoder, texts: Sequence[str]) -> dict[str, Any]:
    found = MeanMaps(encoder)
    single = [text[a:b].strip() for text in texts for a, b in corpora.sentences(text)]
    sweeps.accumulate(encoder, single, found, what=f"{len(single)} sentences", most=MOST_TOKENS)
    maps = found.maps / found.sentences
    scale = maps.max((-2, -1))
    return {
        "maps": packed(maps / scale[..., None, None].clip(1e-12)),
        "scale": scale.round(DIGITS),
        "profile": {
            "offsets": range(-REACH, REACH + 1),
            "value": (found.profile / found.pairs.clip(1)).round(DIGITS),
        },
        "sentences": found.sentences,
    }


def packed(shares: NDArray[np.float64]) -> str:
    """Numbers from 0 to 1 as bytes in base64."""
    return base64.b64encode(np.round(255 * shares.clip(0, 1)).astype(np.uint8).tobytes()).decode()


def _example(encoder: Encoder, sentence: Sentence) -> dict[str, Any]:
    batch = next(iter(Batches(encoder, [list(sentence.words)])))
    weights = attention.maps(encoder, batch)[:, 0].double().numpy()
    return {"tokens": list(batch.tokens[0]), "weights": packed(weights)}
