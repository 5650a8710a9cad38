"""What can be read from the layers 0 to l of an encoder: targets in runs of sentences, hidden states of their tokens, and probes of all l trained at once.

After Tenney et al. 2019 (edge probing). Layer 0 is the output of the embeddings.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, combinations
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from helpers import attention, controls, parallel
from helpers.corpora.sources import CorpusError
from helpers.corpora.treebanks import Document, Mention
from helpers.encoders import Encoder
from helpers.tokens import batches, tokens_of_words, usable

TASKS = ("part of speech", "dependency", "entity", "coreference")
"""In the order of the paper's pipeline."""
SAME, OTHER = "same", "other"
"""The labels of coreference: two mentions refer to the same thing, or to different ones."""
MOST_TOKENS = 128
"""Of a context, special ones included."""
BATCH, CHUNK = 64, 256
"""Targets in a step of training, and targets that are scored at once."""

Span = tuple[int, int]
"""First word, and the one after the last, counted through the context."""
Rows = Iterator[tuple[tuple[Span, ...], str]]
"""Spans and their label."""


# Contexts and the targets in them


def contexts(
    encoder: Encoder, documents: Sequence[Document], *, most: int | None = None, seed: int = 0
) -> list[Document]:
    """Cut documents into runs of whole sentences that the encoder reads together, as long as :data:`MOST_TOKENS` allow.

    Sentences without a tree, longer than that, or with a word that has no token are left out.

    Args:
        most: so many documents, drawn at random; all when there are no more.

    Raises:
        CorpusError: if nothing is left.
    """
    drawn = [documents[n] for n in sorted(np.random.default_rng(seed).permutation(len(documents))[:most])]
    kept = {id(s) for s in usable(encoder, [s for d in drawn for s in d.sentences], longest=MOST_TOKENS)}
    if not kept:
        problem = f"No sentence has a tree and at most {MOST_TOKENS} tokens."
        raise CorpusError("The treebank", None, problem, "trees of sentences that fit the model.")
    most_tokens = min(MOST_TOKENS, encoder.max_length) - encoder.tokenizer.num_special_tokens_to_add()
    contexts = []
    for document in drawn:
        runs, room = [], 0
        for place, sentence in enumerate(document.sentences):
            if id(sentence) in kept:
                size = sum(tokens_of_words(encoder, sentence.words))
                if size > room:
                    runs.append([])
                    room = most_tokens
                runs[-1].append(place)
                room -= size
        for places in runs:
            mentions = [
                replace(m, sentence=places.index(m.sentence)) for m in document.mentions if m.sentence in places
            ]
            sentences = tuple(document.sentences[place] for place in places)
            contexts.append(replace(document, sentences=sentences, mentions=tuple(mentions)))
    return contexts


class Target(NamedTuple):
    """A span, or a pair of spans, of a context, by its number, with the label that a probe should give it."""

    context: int
    spans: tuple[Span, ...]
    label: str


def targets(contexts: Sequence[Document], task: str, *, limit: int | None = None, seed: int = 0) -> list[Target]:
    """All targets of a task, or ``limit`` of them drawn at random, in the order of the text; none without such annotation.

    ``part of speech``: every word, universal tag. ``dependency``: every word with its governor, the relation without
    its subtype; roots and punctuation are left out. ``entity``: every mention that has a type. ``coreference``: pairs of
    mentions of one context, :data:`SAME` or :data:`OTHER`; of each label as many as the rarer one has in the context.
    """
    rng = np.random.default_rng([seed, TASKS.index(task)])
    every = [Target(number, *row) for number, context in enumerate(contexts) for row in _rows(context, task, rng)]
    if limit is None or limit >= len(every):
        return every
    return [every[i] for i in sorted(rng.choice(len(every), limit, replace=False))]


def words(context: Document) -> list[str]:
    """The words of all sentences."""
    return [word for sentence in context.sentences for word in sentence.words]


def possible(contexts: Mapping[str, Sequence[Document]]) -> list[str]:
    """The tasks that each part of a treebank has targets for; what is missing is said in a line.

    Raises:
        CorpusError: when parts of speech or relations, without which there is no chapter 12, are among the others.
    """
    tasks = []
    for task in TASKS:
        labels = [{t.label for t in targets(part, task)} for part in contexts.values()]
        if all(labels) and len(labels[0]) > 1:
            tasks.append(task)
        elif task in TASKS[:2]:
            raise CorpusError("The treebank", None, f"One of its parts has nothing for {task!r}.", _NEEDS[task])
        else:
            print(f"Without {task!r}: it needs {_NEEDS[task]} in each of {', '.join(contexts)}.")
    return tasks


_NEEDS = {
    "part of speech": "universal part-of-speech tags of two kinds or more.",
    "dependency": "trees with names of relations.",
    "entity": "entity types, Entity= in the last column of CoNLL-U,",
    "coreference": "mentions of at least two chains in a context",
}


def _rows(context: Document, task: str, rng: np.random.Generator) -> Rows:
    """The targets of a task in a context."""
    starts = [*accumulate((len(s.words) for s in context.sentences), initial=0)]
    mentions = [((starts[m.sentence] + m.start, starts[m.sentence] + m.end), m) for m in context.mentions]
    if task == "entity":
        yield from (((span,), m.type) for span, m in mentions if m.type)
    elif task == "coreference":
        yield from _pairs(mentions, rng)
    for start, sentence in zip(starts, context.sentences, strict=False):
        if task == "part of speech":
            yield from ((((word, word + 1),), tag) for word, tag in enumerate(sentence.upos, start) if tag != "_")
        elif task == "dependency":
            arcs = zip(sentence.governors, sentence.relations, strict=True)
            for word, (governor, relation) in enumerate(arcs, start):
                if governor >= 0 and relation not in ("punct", "_"):
                    spans = (word, word + 1), (start + governor, start + governor + 1)
                    yield spans, relation.split(":")[0]


def _pairs(mentions: Sequence[tuple[Span, Mention]], rng: np.random.Generator) -> list[tuple[tuple[Span, ...], str]]:
    """Pairs of spans, of each label as many as the rarer one has."""
    of_label: dict[str, list[tuple[Span, ...]]] = {SAME: [], OTHER: []}
    for (span, m), (other, n) in combinations(mentions, 2):
        if span != other:
            of_label[SAME if m.chain == n.chain else OTHER].append((span, other))
    count, drawn = min(map(len, of_label.values())), []
    for label, pairs in of_label.items():
        drawn += [(pairs[i], label) for i in rng.choice(len(pairs), count, replace=False)]
    return sorted(drawn)


# Hidden states


@dataclass(frozen=True, eq=False)
class States:
    """Hidden states of all tokens of some contexts, special tokens left out, in half precision.

    Attributes:
        start: for each context the row of each word's first token, and after the last word the row that follows.
    """

    contexts: Sequence[Document]
    values: Float[np.ndarray, "token layer width"]
    start: Sequence[Int[np.ndarray, "_"]]

    @cached_property
    def scale(self) -> Float[Tensor, "layer"]:
        """Spread of each layer: root mean square distance of (at most 4,096) tokens from their mean, per dimension."""
        rows = np.linspace(0, len(self.values) - 1, min(len(self.values), 4096)).astype(int)
        return torch.tensor(self.values[rows].astype(np.float64).var(0).mean(-1) ** 0.5, dtype=torch.float32)


def states(encoder: Encoder, contexts: Sequence[Document], *, shuffled: int | None = None) -> States:
    """Run contexts through the encoder.

    Args:
        shuffled: seed with which every head's scores are shuffled (:func:`helpers.controls.shuffling`); None leaves them as they are.
    """
    inputs = [words(context) for context in contexts]
    pieces = [(first, inputs[first : first + 48]) for first in range(0, len(inputs), 48)]
    rows = [row for part in parallel.each(encoder, _states, pieces, shuffled) for row in part]
    ends = np.cumsum([0, *(len(values) for values, _ in rows)])
    start = [end + np.cumsum([0, *sizes]) for end, (_, sizes) in zip(ends, rows, strict=False)]
    return States(contexts, np.concatenate([values for values, _ in rows]), start)


@torch.inference_mode()
def _states(
    encoder: Encoder, piece: tuple[int, Sequence[list[str]]], shuffled: int | None
) -> list[tuple[Float[np.ndarray, "token layer width"], Int[np.ndarray, "word"]]]:
    """The states of each context's tokens, and how many tokens each word has."""
    first, inputs = piece
    states = {}
    for batch in batches(encoder, inputs, batch_size=8, first=first):
        edit = None if shuffled is None else controls.shuffling(batch, shuffled)
        with attention.tap(encoder, edit=edit):
            layers = torch.stack(encoder.model(**batch.inputs, output_hidden_states=True).hidden_states, 2)
        plain = batch.mask & ~batch.special
        for row, number in enumerate(batch.index):
            sizes = torch.unique_consecutive(batch.unit[row, plain[row]], return_counts=True)[1]
            states[number] = layers[row, plain[row]].half().cpu().numpy(), sizes.cpu().numpy()
    return [states[number] for number in sorted(states)]


@dataclass(eq=False)
class Examples:
    """The targets of one task in one part of the corpus, and where their tokens are.

    Attributes:
        labels: names of the classes, those of the training part.
        truth: [target], index of the right class; -1 if the training part does not have it.
        low, high: [role, target], rows of the first token of each span, and after the last.
        texts: the context of each target.
        width, scale: of the hidden states, and the spread of each layer (:attr:`States.scale`).
    """

    states: States
    targets: Sequence[Target]
    labels: Sequence[str]

    def __post_init__(self) -> None:
        start, known = self.states.start, {label: n for n, label in enumerate(self.labels)}
        rows = np.array([[start[t.context][list(span)] for span in t.spans] for t in self.targets])
        self.low, self.high = rows[..., 0].T, rows[..., 1].T
        self.truth = np.array([known.get(t.label, -1) for t in self.targets])
        self.texts = [self.states.contexts[t.context] for t in self.targets]
        self.width, self.scale = self.states.values.shape[-1], self.states.scale

    def seen_in(self, states: States) -> "Examples":
        """The same targets in the states of another network."""
        return Examples(states, self.targets, self.labels)

    def inputs(self, chosen: Int[np.ndarray, "target"]) -> list[tuple[Tensor, Tensor]]:
        """For each role the states [layer, token, width] of the chosen targets' tokens, and whose each token is, [token]."""
        inputs = []
        for low, high in zip(self.low[:, chosen], self.high[:, chosen], strict=True):
            size = high - low
            rows = np.repeat(low - np.cumsum(size) + size, size) + np.arange(size.sum())
            values = torch.from_numpy(self.states.values.take(rows, axis=0)).transpose(0, 1)
            owner = torch.from_numpy(np.repeat(np.arange(len(size)), size))
            inputs.append((values.to(torch.float32, memory_format=torch.contiguous_format), owner))
        return inputs


def examples(
    read: Mapping[str, States], task: str, *, limits: Sequence[int | None] = (None, None, None), seed: int = 0
) -> dict[str, Examples]:
    """The targets of a task in each part of a corpus, in the order train, dev, test, with the states of their tokens.

    Args:
        read: part -> states.
        limits: most targets in each part; drawn at random, the same for every encoder.
    """
    rows = zip(read.items(), limits, strict=True)
    drawn = {part: targets(of.contexts, task, limit=limit, seed=seed) for (part, of), limit in rows}
    labels = sorted({t.label for t in drawn["train"]})
    return {part: Examples(read[part], chosen, labels) for part, chosen in drawn.items()}


# Probes


class Probes(nn.Module):
    """Probes side by side that share nothing: probe ``l`` reads a mixture of the layers 0 to ``l``.

    All parameters have the probe as first axis, so that training all at once equals training each alone; what one of them does is written
    out in chapter 12.
    """

    def __init__(
        self, scale: Float[Tensor, "layer"], width: int, labels: int, spans: int, size: int = 48, seed: int = 0
    ) -> None:
        super().__init__()
        count, random = len(scale), torch.Generator().manual_seed(seed)

        def drawn(*shape: int) -> nn.Parameter:
            first = torch.randn(shape, generator=random) / shape[-2] ** 0.5
            return nn.Parameter(first.expand(count, *shape).clone())

        self.register_buffer("scale", scale)
        self.a = nn.Parameter(torch.zeros(count, count))
        self.gamma = nn.Parameter(torch.ones(count))
        self.project = drawn(spans, width, size)
        self.attend = nn.Parameter(torch.zeros(count, spans, size))
        self.hidden, self.hidden_bias = drawn(spans * size, size), nn.Parameter(torch.zeros(count, 1, size))
        self.out, self.out_bias = drawn(size, labels), nn.Parameter(torch.zeros(count, 1, labels))

    def weights(self) -> Float[Tensor, "probe layer"]:
        """Mixing weights s of each probe; 0 for the layers that it does not read."""
        above = torch.ones_like(self.a).triu(1).bool()
        return self.a.masked_fill(above, -torch.inf).softmax(-1)

    def forward(self, spans: Sequence[tuple[Tensor, Tensor]]) -> Float[Tensor, "probe target label"]:
        """Logits of every probe; spans as :meth:`Examples.inputs` gives them."""
        vectors = []
        mixing = self.gamma[:, None] * self.weights() / self.scale
        # unbound at once: the gradient of a part that is picked by its number fills an array of zeros as large as the whole
        roles = zip(spans, self.project.unbind(1), self.attend.unbind(1), strict=True)
        for (states, owner), project, attend in roles:
            mixed = (mixing @ states.flatten(1)).view(-1, *states.shape[1:])
            tokens = mixed @ project
            vectors.append(_pooled(tokens, (tokens * attend[:, None]).sum(-1), owner))
        hidden = (torch.cat(vectors, -1) @ self.hidden + self.hidden_bias).relu()
        return hidden @ self.out + self.out_bias


def _pooled(
    tokens: Float[Tensor, "probe token size"], scores: Float[Tensor, "probe token"], owner: Int[Tensor, "token"]
) -> Float[Tensor, "probe target size"]:
    """The tokens of each target, weighted by a softmax of their scores; every target has at least one token."""
    count = int(owner.max()) + 1
    at = owner.expand(len(scores), -1)
    top = scores.new_full((len(scores), count), -torch.inf).scatter_reduce(1, at, scores.detach(), "amax")
    weights = (scores - top.gather(1, at)).exp()
    total = torch.zeros_like(top).index_add(1, owner, weights)
    summed = tokens.new_zeros(len(scores), count, tokens.shape[-1]).index_add(1, owner, tokens * weights[..., None])
    return summed / total[..., None]


def fit(
    train: Examples, dev: Examples, *, steps: int = 250, every: int = 30, seed: int = 0, even: bool = False
) -> Probes:
    """Train the probes of all prefixes of layers at once with Adam, as chapter 12 trains one; each ends as it was when it was best on dev.

    Args:
        every: steps between looks at the development part.
        seed: of the first weights and the order of the targets.
        even: keep the mixing weights equal instead of learning them.
    """
    probes = Probes(train.scale, train.width, len(train.labels), len(train.low), seed=seed)
    probes.a.requires_grad_(not even)
    mixing = [probes.a, probes.gamma]
    rest = [p for p in probes.parameters() if all(p is not m for m in mixing)]
    rates = [{"params": rest, "lr": 0.003}, {"params": mixing, "lr": 0.03}]
    optimiser = torch.optim.Adam(rates, fused=True)  # all weights at once
    shrink = LambdaLR(optimiser, lambda step: 1 - step / steps)
    rng, count = np.random.default_rng(seed), len(train.targets)
    order = np.concatenate([rng.permutation(count) for _ in range(BATCH * steps // count + 1)])
    least, kept = torch.full((len(probes.gamma),), torch.inf), {}
    with parallel.one_thread():
        for step in range(1, steps + 1):
            optimiser.zero_grad()
            _loss(probes, train, order[BATCH * (step - 1) : BATCH * step]).sum(0).mean().backward()
            optimiser.step()
            shrink.step()
            if step % every == 0 or step == steps:
                with torch.inference_mode():
                    loss = torch.cat([_loss(probes, dev, c) for c in _chunks(dev)], 1).mean(1)
                for name, p in probes.named_parameters():
                    kept.setdefault(name, p.detach().clone())[loss < least] = p.detach()[loss < least]
                least = torch.minimum(loss, least)
    probes.load_state_dict(kept, strict=False)
    return probes.requires_grad_(False)


def _loss(probes: Probes, part: Examples, chosen: Int[np.ndarray, "target"]) -> Float[Tensor, "probe target"]:
    """Cross-entropy of each probe's answer to the chosen targets; 0 where the right class is unknown."""
    truth = torch.from_numpy(part.truth[chosen]).expand(len(probes.gamma), -1)
    logits = probes(part.inputs(chosen)).transpose(1, 2)
    return nn.functional.cross_entropy(logits, truth, ignore_index=-1, reduction="none")


def _chunks(part: Examples) -> list[Int[np.ndarray, "target"]]:
    return np.split(np.arange(len(part.targets)), range(CHUNK, len(part.targets), CHUNK))


@torch.no_grad()
def answers(probes: Probes, part: Examples) -> Float[np.ndarray, "probe target label"]:
    """Probabilities of all labels, by every probe."""
    with parallel.one_thread():
        return torch.cat([probes(part.inputs(chosen)).softmax(-1) for chosen in _chunks(part)], 1).numpy()
