"""Predictors of key words: each head's attention, all heads' together, rules without a network; and lists of phrases."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from helpers import phrases
from helpers.chapters.keywords.measures import STATISTICS, Received, Words
from helpers.stats import Estimate, Numbers, mean, ratio

Head = tuple[int, int]
Key = Bool[np.ndarray, "word"]
OfWords = Float[np.ndarray, "word *rest"]
"""A head; whether each word is key; one or more numbers of each word."""


def average_precision(scores: OfWords, key: Key) -> Numbers:
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


def precisions(words: Words, scores: OfWords, *, among: str = "words", seed: int = 0) -> Estimate:
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
    return mean(each, range(len(each)), seed=seed)


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


def fit(features: Float[np.ndarray, "word feature"], key: Key) -> Predictor:
    """Fit a logistic regression with an L2 penalty (C = 1) on standardised features."""
    features = np.asarray(features, np.float64)
    mean, deviation = features.mean(0), features.std(0)
    deviation = np.where(deviation > 1e-12, deviation, 1.0)
    with threadpool_limits(1):
        model = LogisticRegression(C=1.0, max_iter=500, tol=1e-4).fit((features - mean) / deviation, key)
    return Predictor(mean, deviation, model.coef_[0].astype(np.float64), float(model.intercept_[0]))


def cross_entropy(chances: OfWords, key: Key) -> OfWords:
    """Of each word, in nats."""
    right = np.where(key.reshape(-1, *[1] * (chances.ndim - 1)), chances, 1 - chances)
    return -np.log(np.maximum(right, 1e-12))


def in_order(values: Float[np.ndarray, "layer head"]) -> list[Head]:
    """All heads, from the least value."""
    return [divmod(int(n), values.shape[1]) for n in np.argsort(values, axis=None, kind="stable")]


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
        return in_order(self.fitted)


def head_predictors(fitted_on: Received, scored_on: Received, *, seed: int = 0) -> HeadPredictors:
    """Fit each head's two statistics on some documents and score them on others."""
    layers, heads = fitted_on.values.shape[1:3]
    weights, fitted = np.zeros((layers, heads, len(STATISTICS))), np.zeros((layers, heads))
    chances = np.zeros((len(scored_on.words.key), layers, heads))
    for layer, head in tqdm(list(np.ndindex(layers, heads)), desc="predictors"):
        seen = fitted_on.values[:, layer, head]
        predictor = fit(seen, fitted_on.words.key)
        weights[layer, head] = predictor.weights
        fitted[layer, head] = cross_entropy(predictor(seen), fitted_on.words.key).mean()
        chances[:, layer, head] = predictor(scored_on.values[:, layer, head])
    words = scored_on.words
    constant = np.full(len(words.key), fitted_on.words.key.mean())
    own, simple = (entropy(words, given, seed=seed) for given in (chances, constant))
    ranked = (precisions(words, chances, among=among, seed=seed) for among in ("words", "content"))
    return HeadPredictors(weights, fitted, own, *ranked, chances, simple)


def entropy(words: Words, chances: OfWords, *, seed: int = 0) -> Estimate:
    """Cross-entropy in nats, mean over all words, with a bootstrap over documents."""
    totals = np.add.reduceat(cross_entropy(chances, words.key), words.starts[:-1], axis=0)
    return ratio(zip(totals, np.diff(words.starts), strict=True), range(len(totals)), seed=seed)


def inverse_frequencies(words: Words) -> Callable[[Words], Float[np.ndarray, "word"]]:
    """ln((1 + N) / (1 + n)) of each word, for N documents of which n hold it: learned here, applied to any documents."""
    counted = Counter(word for example in words.examples for word in set(example.spelled.words))
    total = 1 + len(words.examples)

    def apply(other: Words) -> Float[np.ndarray, "word"]:
        return np.array([np.log(total / (1 + counted[w])) for e in other.examples for w in e.spelled.words])

    return apply


def counts(words: Words) -> Float[np.ndarray, "word"]:
    """How often each word occurs in its document."""
    texts = (example.spelled.words for example in words.examples)
    return np.array([text.count(word) for text in texts for word in text], np.float64)


def listing(words: Words, scores: Float[np.ndarray, "word"], *, seed: int = 0) -> dict[str, Estimate]:
    """F1 of the first 5 and 10 candidate phrases, ranked by :func:`helpers.phrases.ranked`, mean over documents.

    Against the keyphrases that stand in the document (``f1_5``, ``f1_10``), and against all of them (``all_5``, ``all_10``).
    """
    found = [phrases.ranked(e.spelled, scores[h].tolist()) for e, h in zip(words.examples, words, strict=True)]
    scored = {}
    for kind, right in (("f1", words.present()), ("all", words.everything())):
        for size in (5, 10):
            each = [phrases.f1(f[:size], r) for f, r in zip(found, right, strict=True)]
            scored[f"{kind}_{size}"] = mean(each, range(len(each)), seed=seed)
    return scored


@dataclass(frozen=True, eq=False)
class Method:
    """A way to tell key words.

    Attributes:
        words: [word], score of each word.
        ranking: [word], what candidate phrases are ranked by (:func:`helpers.phrases.ranked`).
        probability: whether ``words`` are probabilities.
    """

    words: Float[np.ndarray, "word"]
    ranking: Float[np.ndarray, "word"]
    probability: bool = False

    def scores(self, words: Words, *, seed: int = 0) -> dict[str, Estimate]:
        """Average precision (``precision``; ``content``: among content words), ``entropy`` where words have
        probabilities, and F1 of the first phrases (:func:`listing`).
        """
        found = {
            "precision": precisions(words, self.words, seed=seed),
            "content": precisions(words, self.words, among="content", seed=seed),
        }
        if self.probability:
            found["entropy"] = entropy(words, self.words, seed=seed)
        return found | listing(words, self.ranking, seed=seed)


def all_heads(found: Received) -> Float[np.ndarray, "word feature"]:
    """Both statistics of every head side by side."""
    return found.values.reshape(len(found.values), -1).astype(np.float64)


def plain_features(
    words: Words, idf: Float[np.ndarray, "word"], pieces: Float[np.ndarray, "word"]
) -> Float[np.ndarray, "word 5"]:
    """What needs no network: rarity, number of occurrences and of pieces (logarithms), place in the document, content word or not."""
    return np.stack(
        [idf, np.log(counts(words)), np.log(pieces), words.rank(), words.content.astype(np.float64)], axis=-1
    )


def methods(
    fitted_on: Received,
    scored_on: Received,
    heads: HeadPredictors,
    controls: Mapping[str, tuple[Received, Received]] | None = None,
    tagger: Float[np.ndarray, "word"] | None = None,
) -> tuple[dict[str, Method], Predictor]:
    """Baselines without a network, the best head, all heads and controls, alone and with the rules, and the tagger if there is one.

    Args:
        heads: predictors of single heads, scored on the words of ``scored_on``.
        controls: name -> a control on the same two sets of documents.
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

    plain = [plain_features(fitted_on.words, own, fitted_on.pieces), plain_features(words, other, scored_on.pieces)]
    every = [all_heads(fitted_on), all_heads(scored_on)]
    chances = heads.chances[:, *heads.best]
    together, predictor = learned(*every)
    found = {
        "first phrases": Method(-words.rank(), np.zeros(len(words.key))),
        "long and frequent": Method(words.content.astype(np.float64), np.ones(len(words.key))),
        "tf-idf": Method(counts(words) * other, other),
        "learned rule": learned(*plain)[0],
        "best head": Method(chances, chances, True),
        "all heads": together,
    }
    dealt = {f", {name}": list(map(all_heads, pair)) for name, pair in (controls or {}).items()}
    found |= {f"all heads{name}": learned(*seen)[0] for name, seen in dealt.items()}
    for name, seen in ({"": every} | dealt).items():
        both = [np.concatenate(pair, axis=-1) for pair in zip(seen, plain, strict=True)]
        found[f"all heads{name}, and rule"] = learned(*both)[0]
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
