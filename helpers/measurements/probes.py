"""What is read of a sentence besides the attention of all heads: its words, pairs of its words, its hidden states.

After Clark et al. 2019, section 5 (words, distances), Coenen et al. 2019 (pairs) and Hewitt & Manning 2019 (trees in hidden states).
"""

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path
from torch import Tensor, nn

from helpers import stats, tokens
from helpers.corpora.treebanks import Sentence
from helpers.encoders import Encoder
from helpers.stats import Estimate

FARTHEST = 10
"""The distance from which on :func:`read_pairs` tells none from another."""
READERS = {
    "attention": ("attention",),
    "distance": ("distance",),
    "words": ("words",),
    "words and distance": ("words", "distance"),
    "attention, words and distance": ("attention", "words", "distance"),
}
"""What a classifier of pairs may read, by name."""


def counted(sentence: Sentence) -> Bool[np.ndarray, "word"]:
    """Which words count: all but punctuation."""
    marks = zip(sentence.relations, sentence.upos, strict=True)
    return np.array([r != "punct" and u != "PUNCT" for r, u in marks])


def drawn(word: str, choices: int, seed: int = 0) -> int:
    """A number below ``choices``, drawn once for all for a word form, upper case ignored."""
    return int(np.random.default_rng([seed, zlib.crc32(word.lower().encode())]).integers(choices))


# Pairs of words

Chosen = list[tuple[int, int, int | str]]
"""Pairs of words of one sentence: first, second, and whether an arc joins them or the name of its relation."""


def relation_pairs(sentences: Sequence[Sentence], relations: Sequence[str] = (), *, fewest: int = 1) -> list[Chosen]:
    """For each sentence its words with their governors and the names of their relations; punctuation is left out.

    Args:
        relations: only these (default: those with at least ``fewest`` words; all where fewer than two have so many).
    """
    rows = []
    for s in sentences:
        words = zip(s.governors, s.relations, counted(s), strict=True)
        rows.append([(w, g, r) for w, (g, r, counts) in enumerate(words) if counts and g >= 0])
    counts = Counter(r for row in rows for *_, r in row)
    often = [r for r in counts if counts[r] >= fewest]
    known = set(relations) or set(often if len(often) > 1 else counts)
    return [[pair for pair in row if pair[-1] in known] for row in rows]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of words and what is asked of them.

    Attributes:
        inputs: what may be read of them, by the names in :data:`READERS`: the weights of all heads from the first word to the second and back,
            the vectors of both, and which of 21 distances, −10 to 10, the rest at the ends.
        labels: [pair], 1 where an arc joins them, or the name of its relation.
        sentences: of each pair.
    """

    inputs: Mapping[str, Float[np.ndarray, "pair _"]]
    labels: np.ndarray
    sentences: Sequence[Sentence]


def read_pairs(
    chosen: Sequence[Chosen],
    sentences: Sequence[Sentence],
    maps: Sequence[Float[Tensor, "_ _ head"]],
    vectors: Sequence[Float[Tensor, "_ dimension"]],
    *,
    most: int = 40_000,
) -> Pairs:
    """What may be read of the first ``most`` pairs (those of the sentence that reaches it included); [CLS] and [SEP] are the first two units, and have no vector."""
    parts: list[dict[str, np.ndarray]] = []
    labels: list[int | str] = []
    by: list[Sentence] = []
    for pairs, sentence, weights, words in zip(chosen, sentences, maps, vectors, strict=True):
        if not pairs or len(by) >= most:
            continue
        first, second = (np.array(place) for place in list(zip(*pairs, strict=True))[:2])
        attention = [weights[here + 2, other + 2].float() for here, other in ((first, second), (second, first))]
        read = {"attention": np.hstack(attention), "words": np.hstack([words[first], words[second]])}
        distance = (second - first).clip(-FARTHEST, FARTHEST) + FARTHEST
        read["distance"] = np.eye(2 * FARTHEST + 1, dtype=np.float32)[distance]
        parts.append(read)
        labels += [label for *_, label in pairs]
        by += [sentence] * len(pairs)
    return Pairs({name: np.vstack([part[name] for part in parts]) for name in parts[0]}, np.array(labels), by)


# Trees in hidden states


class TreeProbe(nn.Module):
    """The structural probe: squared distances of mapped hidden states, which should be distances in the tree (Hewitt & Manning 2019)."""

    rate = 0.001

    def __init__(self, width: int, rank: int = 64) -> None:
        super().__init__()
        self.map = nn.Parameter(torch.randn(width, rank) / (width * rank) ** 0.5)

    def forward(self, states: Float[Tensor, "word width"]) -> Float[Tensor, "word word"]:
        """Squared distance of all pairs of words."""
        mapped = states @ self.map
        return (mapped[:, None] - mapped).square().sum(-1)


@torch.no_grad()
def states_of(encoder: Encoder, sentence: Sentence) -> Float[Tensor, "layer word width"]:
    """Hidden states of a sentence's words, embeddings first, in half precision."""
    batch = tokens.encode(encoder, [list(sentence.words)])
    output = encoder.model(**batch.inputs, output_hidden_states=True)
    layers = [tokens.word_states(states, batch) for states in output.hidden_states]
    return torch.cat(layers).half().cpu()


@cache
def tree_distances(governors: tuple[int, ...]) -> Float[Tensor, "word word"]:
    """Number of arcs between two words of a tree."""
    arcs = np.zeros((len(governors), len(governors)))
    for word, governor in enumerate(governors):
        if governor >= 0:
            arcs[word, governor] = 1
    return torch.tensor(shortest_path(arcs, directed=False), dtype=torch.float32)


def control_tree(sentence: Sentence, seed: int = 0) -> list[int]:
    """A tree without syntax: each word form always hangs on the first or on the last word that counts, and these are joined."""
    words = np.flatnonzero(counted(sentence))
    first, last = (int(words[0]), int(words[-1])) if len(words) else (0, 0)
    tree = [(first, last)[drawn(word, 2, seed)] for word in sentence.words]
    tree[last] = first
    tree[first] = -1
    return tree


def spanning_arcs(
    distances: Float[np.ndarray, "word word"], words: Int[np.ndarray, "counted"]
) -> list[tuple[int, int]]:
    """The arcs of the tree that joins some words at the least total distance."""
    near = np.triu(distances[np.ix_(words, words)].astype(np.float64) + 1e-9, 1)  # for scipy a zero is no arc
    rows, columns = minimum_spanning_tree(near).nonzero()
    return list(zip(words[rows].tolist(), words[columns].tolist(), strict=True))


def arcs_found(
    arcs: Sequence[tuple[int, int]], governors: Sequence[int], counted: Bool[np.ndarray, "word"]
) -> tuple[int, int]:
    """How many of a tree's arcs between words that count are among some arcs, in either direction, and how many there are."""
    true = {frozenset((w, g)) for w, g in enumerate(governors) if g >= 0 and counted[w] and counted[g]}
    return len(true & set(map(frozenset, arcs))), len(true)


def neighbours_joined(sentences: Sequence[Sentence], *, seed: int = 0) -> Estimate:
    """Share of arcs (UUAS) of the rule that joins each word that counts to the next one."""
    shares = []
    for sentence in sentences:
        words = counted(sentence)
        arcs = [*pairwise(np.flatnonzero(words).tolist())]
        shares.append(arcs_found(arcs, sentence.governors, words))
    return stats.ratio(shares, by=sentences, seed=seed)
