"""Chapter 13: does attention know which words of a text matter?

How much attention each word of a document receives, from every head, and what that says about keyphrases: key words
against the others (mean relative attention), heads one by one and together as predictors, and a tagger of keyphrases
whose heads are taken away. After M. Štefánik's lecture on attention semantics, last part.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from torch import Tensor
from tqdm import tqdm

from helpers.corpora import phrases, sources
from helpers.engine import attention, inputs, shards, tasks
from helpers.engine.encoders import Encoder
from helpers.engine.estimates import Estimate, Numbers, StreamingMean
from helpers.engine.tasks import Example
from helpers.engine.tokens import Batch, Batches

STATISTICS = ("mean", "max")
"""What a word's attention received is summed up by: over all attending tokens, and the greatest single weight."""

Head = tuple[int, int]


# ---------------------------------------------------------------------------------------- documents


def parts(
    corpus: str, limits: Sequence[int | None] = (None, None, None), *, seed: int = 0
) -> tuple[list[Example], list[Example], list[Example]]:
    """Documents to fit on, to choose on, and to score on.

    They are the corpus's own training, development and test parts; in a corpus without parts a random half of the
    documents is for fitting and choosing alike, the other half for scoring.

    Args:
        limits: most documents of each, drawn at random.
    """
    known = sources.entry(corpus, "keyphrases")
    if known is not None and {"train", "dev", "test"} <= set(known.files):
        found = [tasks.examples("keywords", corpus, split) for split in ("train", "dev", "test")]
    else:
        everything = tasks.examples("keywords", corpus)
        chosen = set(np.random.default_rng(seed).permutation(len(everything))[: len(everything) // 2].tolist())
        half = [e for n, e in enumerate(everything) if n in chosen]
        found = [half, half, [e for n, e in enumerate(everything) if n not in chosen]]
    fit, choose, score = (_sample(part, limit, seed) for part, limit in zip(found, limits, strict=True))
    return fit, choose, score


def _sample(items: Sequence[Example], limit: int | None, seed: int) -> list[Example]:
    if limit is None or limit >= len(items):
        return list(items)
    return [items[i] for i in sorted(np.random.default_rng(seed).choice(len(items), limit, replace=False))]


def shortened(encoder: Encoder, examples: Sequence[Example], max_length: int) -> list[Example]:
    """The same documents, each cut after the last word that fits, so that every method sees the same words.

    Args:
        max_length: tokens, special ones included.
    """
    room = min(max_length, encoder.max_length) - encoder.tokenizer.num_special_tokens_to_add()
    return [_cut(encoder, example, room) for example in examples]


def _cut(encoder: Encoder, example: Example, room: int) -> Example:
    units, spans = example.spelled.units, example.spelled.spans
    offsets, _ = inputs.tokens_of(encoder, " ".join(units))
    if len(offsets) <= room:
        return example
    ends = np.cumsum([len(unit) + 1 for unit in units]) - 1  # in the joined text
    whole = int(np.searchsorted(ends, offsets[room, 0], side="right"))
    title, text = example.texts
    return replace(example, texts=(title, text[: max(0, spans[whole - 1][1] - len(title) - 1)]))


@dataclass(frozen=True, eq=False)
class Words:
    """The words of documents one after another, without punctuation marks.

    Attributes:
        examples: the documents.
        starts: [document + 1], where each document's words begin, and the end.
        key: [word], whether it is part of a keyphrase that stands in its document word for word.
        content: [word], whether it is no stop word, no number and no single letter.
    """

    examples: Sequence[Example]
    starts: Int[np.ndarray, "_"]
    key: Bool[np.ndarray, "word"]
    content: Bool[np.ndarray, "word"]

    @classmethod
    def of(cls, examples: Sequence[Example]) -> "Words":
        """Raises ValueError when no document holds any of its keyphrases."""
        sizes = [len(e.spelled.words) for e in examples]
        key = np.concatenate([phrases.key_words(e.spelled, e.keyphrases) for e in examples]).astype(bool)
        if not key.any():
            raise ValueError(
                "None of the documents holds any of its keyphrases word for word; nothing can be predicted."
            )
        content = np.concatenate([e.spelled.content for e in examples]).astype(bool)
        return cls(examples, np.concatenate([[0], np.cumsum(sizes)]), key, content)

    def __iter__(self) -> Iterator[slice]:
        """The words of each document in turn."""
        return (slice(int(a), int(b)) for a, b in zip(self.starts, self.starts[1:], strict=False))

    def present(self) -> list[set[str]]:
        """For each document the keyphrases that stand in it, in normal form."""
        return [set(phrases.locate(e.spelled, e.keyphrases)) for e in self.examples]

    def everything(self) -> list[set[str]]:
        """For each document all its keyphrases, in normal form."""
        return [set(filter(None, map(phrases.normal, e.keyphrases))) for e in self.examples]

    def rank(self) -> Float[np.ndarray, "word"]:
        """Each word's place in its document, 0 for the first word and almost 1 for the last."""
        sizes = np.diff(self.starts)
        return (np.arange(len(self.key)) - np.repeat(self.starts[:-1], sizes)) / np.repeat(sizes, sizes)


def over_documents(values: Float[np.ndarray, "document *rest"], *, seed: int = 0) -> Estimate:
    """Mean over documents, each alike, with a bootstrap over them; NaN marks a document without a value."""
    known = np.isfinite(values)
    sums = StreamingMean(values.shape[1:], seed=seed)
    sums.add(range(len(values)), np.where(known, values, 0), known.astype(np.float64))
    return sums.estimate()


# ---------------------------------------------------------------------------------------- attention received


def received(
    probabilities: Float[Tensor, "batch head query key"], batch: Batch
) -> Float[Tensor, "batch head key statistic"]:
    """What each token receives from the words and marks of its text: the sum of their weights, and the greatest.

    Special tokens are not counted among those that attend. With even weights over all tokens of an input a token would
    receive a sum of almost 1, whatever the length.
    """
    attending = (batch.text >= 0).to(probabilities.dtype)[:, None, :, None]
    shown = probabilities * attending
    return torch.stack([shown.sum(-2), shown.amax(-2)], dim=-1)


class Received:
    """Attention that each word receives from each head; an observer for :func:`helpers.engine.attention.sweep`.

    A split word receives the mean of what its pieces receive, and the greatest of their greatest weights. (The sum would
    count pieces: rare words have more of them, and are key more often.) Memory: two numbers for each word and head; no
    map is kept.

    Attributes:
        values: [word, layer, head, statistic] (:data:`STATISTICS`), float32.
        pieces: [word], how many tokens each word has.
        special: [layer, head], attention of words and marks that goes to special tokens, summed; ``attending`` of them.
    """

    def __init__(self, encoder: Encoder, words: Words) -> None:
        self.words = words
        self.values = np.zeros((len(words.key), encoder.layers, encoder.heads, len(STATISTICS)), np.float32)
        self.pieces = np.zeros(len(words.key))
        self.special = np.zeros((encoder.layers, encoder.heads))
        self.attending = 0

    def __call__(self, batch: Batch, layer: int, probabilities: Tensor, values: Tensor | None) -> None:
        if layer == 0:
            self._places = [_word_units(batch, row, self.words.examples[n]) for row, n in enumerate(batch.index)]
            self._unit = batch.unit.clamp_min(0)[:, None].expand(-1, probabilities.shape[1], -1)
            self._real = batch.mask[:, None].float()
            self._counts = torch.zeros(len(batch.index), max(map(len, batch.words)), device=batch.ids.device)
            self._counts.scatter_add_(1, self._unit[:, 0], self._real[:, 0])
            counts = self._counts.cpu().numpy()
            for row, (number, places) in enumerate(zip(batch.index, self._places, strict=True)):
                start = self.words.starts[number]
                self.pieces[start : start + len(places)] = counts[row, places]
            self.attending += int((batch.text >= 0).sum())
        tokens = received(probabilities, batch) * self._real[..., None]
        units = torch.zeros(*tokens.shape[:2], max(map(len, batch.words)), 2, device=tokens.device)
        units[..., 0].scatter_add_(2, self._unit, tokens[..., 0])
        units[..., 0] /= self._counts[:, None].clamp_min(1)
        units[..., 1].scatter_reduce_(2, self._unit, tokens[..., 1], "amax")
        self.special[layer] += (tokens[..., 0] * batch.special[:, None]).sum((0, 2)).double().cpu().numpy()
        found = units.transpose(1, 2).cpu().numpy()
        for row, (number, places) in enumerate(zip(batch.index, self._places, strict=True)):
            start = self.words.starts[number]
            self.values[start : start + len(places), layer] = found[row, places]

    def merge(self, other: "Received") -> "Received":
        """Both together; they must hold the same words and have seen different documents."""
        if self.words is not other.words:
            raise ValueError("Only sums over the same words can be merged.")
        merged = object.__new__(Received)
        merged.words = self.words
        for name in ("values", "pieces", "special", "attending"):
            setattr(merged, name, getattr(self, name) + getattr(other, name))
        return merged

    def to_special(self) -> Float[np.ndarray, "layer head"]:
        """Share of the attention of words and marks that goes to special tokens."""
        return self.special / max(1, self.attending)


def _word_units(batch: Batch, row: int, example: Example) -> Int[np.ndarray, "word"]:
    """Which units of a row are the words of its document."""
    first = int(batch.unit[row, batch.text[row] >= 0].min())
    places = np.array(example.spelled.places)
    if first + len(example.spelled.units) > len(batch.words[row]):
        raise ValueError(f"Document {example.id!r} was cut while it was encoded; cut it with shortened() before.")
    return first + places


def measure(encoder: Encoder, examples: Sequence[Example], *, batch_size: int = 16) -> Received:
    """Attention received by each word of documents that fit (:func:`shortened`), in one pass with a progress bar."""
    found = Received(encoder, Words.of(examples))
    batches = Batches(encoder, [list(e.spelled.units) for e in examples], batch_size=batch_size)
    attention.sweep(encoder, tqdm(batches, desc=f"{encoder.name}: {len(examples)} documents"), found)
    return found


def relative(found: Received, *, among: str = "words", summed: bool = False, seed: int = 0) -> Estimate:
    """Mean relative attention of each head: mean received by key words less the mean received by the others.

    Args:
        among: ``words``, or ``content`` to leave stop words and numbers out of the others (and of the key words).
        summed: let a split word receive the sum over its pieces instead of their mean.

    Returns:
        (layer, head), mean over documents with a bootstrap over them; 1 is what a token would get of even attention.
    """
    words, sums = found.words, found.values[..., 0].astype(np.float64)
    if summed:
        sums = sums * found.pieces[:, None, None]
    counted = words.content if among == "content" else np.ones_like(words.key)
    each = np.full((len(words.examples), *sums.shape[1:]), np.nan)
    for number, here in enumerate(words):
        key, other = (words.key[here] & counted[here], ~words.key[here] & counted[here])
        if key.any() and other.any():
            each[number] = sums[here][key].mean(0) - sums[here][other].mean(0)
    return over_documents(each, seed=seed)


# ---------------------------------------------------------------------------------------- predictors


def average_precision(scores: Float[np.ndarray, "word *rest"], key: Bool[np.ndarray, "word"]) -> Numbers:
    """Average precision of ranking one document's words by score: the mean, over key words, of the precision at their rank.

    Words with equal scores share the last rank of their group. Chance is about the share of key words.
    """
    order = np.argsort(-scores, axis=0, kind="stable")
    ranked = np.take_along_axis(scores, order, 0)
    hit, places = key[order], np.arange(len(key)).reshape(-1, *[1] * (scores.ndim - 1))
    last = np.concatenate([ranked[1:] != ranked[:-1], np.ones_like(ranked[:1], bool)])
    end = np.minimum.accumulate(np.where(last, places, len(key))[::-1], 0)[::-1]
    precision = np.take_along_axis(hit.cumsum(0) / (places + 1), end, 0)
    return (precision * hit).sum(0) / key.sum()


def precisions(
    words: Words, scores: Float[np.ndarray, "word *rest"], *, among: str = "words", seed: int = 0
) -> Estimate:
    """Mean average precision over documents; those without a key word are left out.

    Args:
        among: ``words``, or ``content`` to rank only words that are no stop words and no numbers.
    """
    counted = words.content if among == "content" else np.ones_like(words.key)
    each = np.full((len(words.examples), *scores.shape[1:]), np.nan)
    for number, here in enumerate(words):
        kept = counted[here]
        if words.key[here][kept].any():
            each[number] = average_precision(scores[here][kept], words.key[here][kept])
    return over_documents(each, seed=seed)


@dataclass(frozen=True, eq=False)
class Predictor:
    """A logistic regression on standardised features: probability that a word is key.

    Attributes:
        mean, deviation: [feature], of the words it was fitted on.
        weights: [feature], per standard deviation; ``bias`` comes on top.
    """

    mean: Float[np.ndarray, "feature"]
    deviation: Float[np.ndarray, "feature"]
    weights: Float[np.ndarray, "feature"]
    bias: float

    def __call__(self, features: Float[np.ndarray, "word feature"]) -> Float[np.ndarray, "word"]:
        """The probability for each word."""
        return 1 / (1 + np.exp(-((features - self.mean) / self.deviation @ self.weights + self.bias)))


def fit(
    features: Float[np.ndarray, "word feature"], key: Bool[np.ndarray, "word"], *, strength: float = 1.0
) -> Predictor:
    """Fit a logistic regression with an L2 penalty (C = ``strength``) on standardised features."""
    features = np.asarray(features, np.float64)
    mean, deviation = features.mean(0), features.std(0)
    deviation = np.where(deviation > 1e-12, deviation, 1.0)
    with threadpool_limits(1):
        model = LogisticRegression(C=strength, max_iter=500, tol=1e-4).fit((features - mean) / deviation, key)
    return Predictor(mean, deviation, model.coef_[0].astype(np.float64), float(model.intercept_[0]))


def cross_entropy(
    chances: Float[np.ndarray, "word *rest"], key: Bool[np.ndarray, "word"]
) -> Float[np.ndarray, "word *rest"]:
    """Of each word, in nats."""
    right = np.where(key.reshape(-1, *[1] * (chances.ndim - 1)), chances, 1 - chances)
    return -np.log(np.maximum(right, 1e-12))


@dataclass(frozen=True, eq=False)
class HeadPredictors:
    """A predictor for each head, of the mean and the greatest attention received.

    Attributes:
        weights: [layer, head, statistic], per standard deviation.
        fitted: [layer, head], cross-entropy on the documents fitted on, nats a word; the heads are ranked by it.
        entropy: (layer, head), cross-entropy on the documents scored on.
        precision, content: (layer, head), average precision there, among all words and among content words.
        chances: [word, layer, head], probabilities there.
        constant: cross-entropy of giving every word the share of key words of the documents fitted on.
    """

    weights: Float[np.ndarray, "layer head statistic"]
    fitted: Float[np.ndarray, "layer head"]
    entropy: Estimate
    precision: Estimate
    content: Estimate
    chances: Float[np.ndarray, "word layer head"]
    constant: Estimate

    @property
    def best(self) -> Head:
        """The head with the lowest cross-entropy on the documents fitted on."""
        return self.ranking()[0]

    def ranking(self) -> list[Head]:
        """All heads, from the lowest cross-entropy on the documents fitted on."""
        order = np.argsort(self.fitted, axis=None, kind="stable")
        return [(int(n) // self.fitted.shape[1], int(n) % self.fitted.shape[1]) for n in order]


def head_predictors(fitted_on: Received, scored_on: Received, *, seed: int = 0) -> HeadPredictors:
    """Fit each head's two statistics on some documents and score them on others."""
    layers, heads = fitted_on.values.shape[1:3]
    weights, fitted = np.zeros((layers, heads, len(STATISTICS))), np.zeros((layers, heads))
    chances = np.zeros((len(scored_on.words.key), layers, heads))
    for layer, head in tqdm(list(np.ndindex(layers, heads)), desc="predictors"):
        predictor = fit(fitted_on.values[:, layer, head], fitted_on.words.key)
        weights[layer, head] = predictor.weights
        own = cross_entropy(predictor(fitted_on.values[:, layer, head]), fitted_on.words.key)
        fitted[layer, head] = own.mean()
        chances[:, layer, head] = predictor(scored_on.values[:, layer, head])
    words = scored_on.words
    constant = np.full(len(words.key), fitted_on.words.key.mean())
    return HeadPredictors(
        weights,
        fitted,
        entropy(words, chances, seed=seed),
        precisions(words, chances, seed=seed),
        precisions(words, chances, among="content", seed=seed),
        chances,
        entropy(words, constant, seed=seed),
    )


def entropy(words: Words, chances: Float[np.ndarray, "word *rest"], *, seed: int = 0) -> Estimate:
    """Cross-entropy in nats, mean over all words, with a bootstrap over documents."""
    each = cross_entropy(chances, words.key)
    sums = StreamingMean(chances.shape[1:], denominators=(1,) * (chances.ndim - 1), seed=seed)
    totals = np.add.reduceat(each, words.starts[:-1], axis=0)
    sizes = np.diff(words.starts).astype(np.float64).reshape(-1, *[1] * (chances.ndim - 1))
    sums.add(range(len(totals)), totals, sizes)
    return sums.estimate()


def inverse_frequencies(words: Words) -> Callable[[Words], Float[np.ndarray, "word"]]:
    """ln((1 + N) / (1 + n)) of each word, for N documents of which n hold it: learned here, applied to any documents."""
    counted: dict[str, int] = {}
    for example in words.examples:
        for word in set(example.spelled.words):
            counted[word] = counted.get(word, 0) + 1
    total = 1 + len(words.examples)

    def apply(other: Words) -> Float[np.ndarray, "word"]:
        return np.array([np.log(total / (1 + counted.get(w, 0))) for e in other.examples for w in e.spelled.words])

    return apply


def counts(words: Words) -> Float[np.ndarray, "word"]:
    """How often each word occurs in its document."""
    found = []
    for example in words.examples:
        here = example.spelled.words
        found += [here.count(word) for word in here]
    return np.array(found, np.float64)


# ---------------------------------------------------------------------------------------- lists of phrases


@dataclass(frozen=True, eq=False)
class Listing:
    """How good the first phrases of a ranking are.

    Attributes:
        present: number of phrases -> F1 against the keyphrases that stand in the document, mean over documents.
        all: the same against all keyphrases.
    """

    present: dict[int, Estimate]
    all: dict[int, Estimate]


def listing(
    words: Words, scores: Float[np.ndarray, "word"], sizes: Sequence[int] = (5, 10), *, seed: int = 0
) -> Listing:
    """F1 of the first 5 and of the first 10 candidate phrases, ranked by :func:`helpers.corpora.phrases.ranked`."""
    found = [phrases.ranked(e.spelled, scores[h].tolist()) for e, h in zip(words.examples, words, strict=True)]

    def score(right: Sequence[set[str]], size: int) -> Estimate:
        return over_documents(
            np.array([phrases.f1(f[:size], r) for f, r in zip(found, right, strict=True)]), seed=seed
        )

    gold = {"present": words.present(), "all": words.everything()}
    return Listing(*({k: score(right, k) for k in sizes} for right in gold.values()))


@dataclass(frozen=True, eq=False)
class Method:
    """A way to tell key words.

    Attributes:
        words: [word], score of each word.
        ranking: [word], what candidate phrases are ranked by (:func:`helpers.corpora.phrases.ranked`).
        probability: whether ``words`` are probabilities.
    """

    words: Float[np.ndarray, "word"]
    ranking: Float[np.ndarray, "word"]
    probability: bool = False

    def scores(self, words: Words, *, seed: int = 0) -> dict[str, Estimate]:
        """Average precision (``precision``; ``content``: among content words), ``entropy`` where words have
        probabilities, and F1 of the first 5 and 10 phrases (``f1_5``, ``f1_10``; ``all_5``, ``all_10``).
        """
        listed = listing(words, self.ranking, seed=seed)
        found = {
            "precision": precisions(words, self.words, seed=seed),
            "content": precisions(words, self.words, among="content", seed=seed),
        }
        if self.probability:
            found["entropy"] = entropy(words, self.words, seed=seed)
        found |= {f"f1_{k}": e for k, e in listed.present.items()}
        return found | {f"all_{k}": e for k, e in listed.all.items()}


def all_heads(found: Received) -> Float[np.ndarray, "word feature"]:
    """Both statistics of every head side by side."""
    return found.values.reshape(len(found.values), -1).astype(np.float64)


def plain_features(words: Words, idf: Float[np.ndarray, "word"]) -> Float[np.ndarray, "word 4"]:
    """What needs no network: rarity, number of occurrences (logarithm), place in the document, content word or not."""
    return np.stack([idf, np.log(counts(words)), words.rank(), words.content.astype(np.float64)], axis=-1)


def methods(
    fitted_on: Received,
    scored_on: Received,
    heads: HeadPredictors,
    random: tuple[Received, Received] | None = None,
    tagger: Float[np.ndarray, "word"] | None = None,
) -> tuple[dict[str, Method], Predictor]:
    """Baselines without a network, the best head, all heads, controls, and the tagger if there is one.

    Args:
        heads: predictors of single heads, scored on the words of ``scored_on``.
        random: the random network on the same two sets of documents.
        tagger: the tagger's probabilities.

    Returns:
        the methods by name, and the predictor that reads all heads.
    """
    words, key = scored_on.words, fitted_on.words.key
    idf = inverse_frequencies(fitted_on.words)
    own, other = idf(fitted_on.words), idf(words)

    def learned(seen: np.ndarray, asked: np.ndarray) -> tuple[Method, Predictor]:
        predictor = fit(seen, key)
        chances = predictor(asked)
        return Method(chances, chances, True), predictor

    plain = [plain_features(fitted_on.words, own), plain_features(words, other)]
    every = [all_heads(fitted_on), all_heads(scored_on)]
    chances = heads.chances[:, *heads.best]
    together, predictor = learned(*every)
    found = {
        "first phrases": Method(-words.rank(), np.zeros(len(words.key))),
        "long and frequent": Method(words.content.astype(np.float64), np.ones(len(words.key))),
        "tf-idf": Method(counts(words) * other, other),
        "tf-idf and place, learned": learned(*plain)[0],
        "best head": Method(chances, chances, True),
        "all heads": together,
    }
    if random is not None:
        found["all heads, random network"] = learned(*map(all_heads, random))[0]
    both = [np.concatenate(pair, axis=-1) for pair in zip(every, plain, strict=True)]
    found["all heads, tf-idf and place"] = learned(*both)[0]
    if tagger is not None:
        found["tagger"] = Method(tagger, tagger, True)
    return found, predictor


def coverage(words: Words) -> dict[str, float | int]:
    """What can be found at all: key phrases in the text, those among the candidates, and words that are key."""
    present, everything = words.present(), words.everything()
    zeros = [[0.0] * len(e.spelled.words) for e in words.examples]
    offered = [set(phrases.ranked(e.spelled, z)) for e, z in zip(words.examples, zeros, strict=True)]
    shared = sum(len(o & p) for o, p in zip(offered, present, strict=True))
    return {
        "documents": len(words.examples),
        "words": len(words.key),
        "phrases": sum(map(len, everything)) / len(everything),
        "present": sum(map(len, present)) / sum(map(len, everything)),
        "candidates": sum(map(len, offered)) / len(offered),
        "reachable": shared / sum(map(len, present)),
        "key_words": float(words.key.mean()),
        "key_words_of_content": float(words.key[words.content].mean()),
    }


# ---------------------------------------------------------------------------------------- the tagger and its heads


@torch.no_grad()
def tagged_chances(tagger: Encoder, words: Words, *, batch_size: int = 16) -> Float[np.ndarray, "word"]:
    """The tagger's probability that a word is part of a keyphrase."""
    found = np.zeros(len(words.key))
    for asked in tasks.batches(tagger, words.examples, batch_size=batch_size, max_length=tagger.max_length):
        outside = tagger.logits(asked.batch).double().softmax(-1)[..., phrases.OUTSIDE].cpu()
        for row, number in enumerate(asked.example):
            values = 1 - outside[row, (asked.targets[row] != tasks.IGNORED).cpu()].numpy()
            found[words.starts[number] : words.starts[number] + len(values)] = values
    return found


SCORES = ("f1", "f1_all", "loss")
"""Scores of the tagger for each document, see :class:`helpers.engine.tasks.Scores`."""


def tagging(
    tagger: Encoder, examples: Sequence[Example], without: Sequence[Head] = ()
) -> Float[np.ndarray, "document 3"]:
    """The tagger's :data:`SCORES` of each document, with some heads' weights set to zero."""
    with attention.tap(tagger, edit=attention.zero(without)):
        scores = tasks.score(tagger, examples, max_length=tagger.max_length)
    return np.stack([scores.values[name] for name in SCORES], axis=-1)


@dataclass(frozen=True, eq=False)
class RemoveOne:
    """What the tagger loses or gains when one head is removed.

    Attributes:
        whole: [document, 3], the scores of the whole tagger.
        each: [layer, head, document, 3], without one head.
        change: (layer, head, 3), mean change over documents.
    """

    whole: Float[np.ndarray, "document score"]
    each: Float[np.ndarray, "layer head document score"]
    change: Estimate

    def order(self) -> list[Head]:
        """All heads, from the one whose removal raises the loss least (or lowers it most) to the one that is missed most."""
        loss = self.change.value[..., SCORES.index("loss")]
        found = np.argsort(loss, axis=None, kind="stable")
        return [(int(n) // loss.shape[1], int(n) % loss.shape[1]) for n in found]


def remove_one(tagger: Encoder, examples: Sequence[Example], *, seed: int = 0) -> RemoveOne:
    """Remove each head in turn."""
    sets = [(), *([head] for head in np.ndindex(tagger.layers, tagger.heads))]
    whole, *each = _each_set(tagger, examples, sets, "removing each head")
    each = np.stack(each).reshape(tagger.layers, tagger.heads, *whole.shape)
    return RemoveOne(whole, each, over_documents(np.moveaxis(each - whole, 2, 0), seed=seed))


def _each_set(
    tagger: Encoder, examples: Sequence[Example], sets: Sequence[Sequence[Head]], what: str
) -> Iterator[Float[np.ndarray, "document 3"]]:
    """:func:`tagging` without each set of heads, measured wherever :mod:`helpers.engine.shards` is told to."""
    found = shards.each(tagger, _without, sets, examples, what=what, total=len(sets))
    return iter(tqdm(found, desc=what, total=len(sets)))


def _without(tagger: Encoder, heads: Sequence[Head], examples: Sequence[Example]) -> Float[np.ndarray, "document 3"]:
    return tagging(tagger, examples, heads)


@dataclass(frozen=True, eq=False)
class Curve:
    """The tagger's scores as more and more heads are removed.

    Attributes:
        counts: how many heads are removed.
        each: [count, document, 3], scores.
        scores: (count, 3), mean over documents.
        change: (count, 3), mean change from the whole tagger.
    """

    counts: tuple[int, ...]
    each: Float[np.ndarray, "count document score"]
    scores: Estimate
    change: Estimate

    def most(self, score: str = "f1") -> int:
        """The number of heads without which the mean score is highest; the larger number where it is the same."""
        values = self.scores.value[:, SCORES.index(score)]
        return self.counts[int(np.flatnonzero(values == values.max())[-1])]


def remove_in_order(
    tagger: Encoder,
    examples: Sequence[Example],
    orders: Mapping[str, Sequence[Head]],
    counts: Sequence[int],
    *,
    seed: int = 0,
) -> dict[str, Curve]:
    """Remove the first heads of each order; sets of heads that several orders share are scored once.

    Args:
        counts: how many to remove; should begin with 0.
    """
    sets = {name: [frozenset(order[:count]) for count in counts] for name, order in orders.items()}
    distinct = list(dict.fromkeys(s for found in sets.values() for s in found))
    scored = _each_set(tagger, examples, list(map(sorted, distinct)), "removing heads")
    known = dict(zip(distinct, scored, strict=True))
    curves = {}
    for name, found in sets.items():
        each = np.stack([known[chosen] for chosen in found])
        scores, change = (over_documents(np.moveaxis(a, 1, 0), seed=seed) for a in (each, each - each[:1]))
        curves[name] = Curve(tuple(counts), each, scores, change)
    return curves


def orders(found: RemoveOne, *, random: int = 3, seed: int = 0) -> dict[str, list[Head]]:
    """Least missed first, most missed first, and random orders."""
    worst = found.order()
    shuffled = {
        f"random {n + 1}": [worst[i] for i in np.random.default_rng([seed, n]).permutation(len(worst))]
        for n in range(random)
    }
    return {"least missed first": worst, "most missed first": worst[::-1]} | shuffled


def averaged(curves: Mapping[str, Curve], *, seed: int = 0) -> Curve:
    """The mean of several curves over the same documents, such as random orders."""
    each = np.mean([c.each for c in curves.values()], axis=0)
    scores, change = (over_documents(np.moveaxis(a, 1, 0), seed=seed) for a in (each, each - each[:1]))
    return Curve(next(iter(curves.values())).counts, each, scores, change)


def steps(total: int, points: int) -> tuple[int, ...]:
    """About ``points`` numbers of heads from 0 to all."""
    return tuple(sorted({round(n * total / (points - 1)) for n in range(points)}))


def as_record(curve: Curve) -> dict[str, Any]:
    """A curve for recording."""
    return {"counts": curve.counts, "scores": curve.scores, "change": curve.change}
