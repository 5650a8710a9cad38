"""Chapter 12: at which layer does the network know what?

Edge probing (Tenney et al. 2019): a small classifier reads a mixture of the hidden states of the layers 0 to l and labels a
span, or a pair of spans. How its score grows with l, and how it mixes the layers, tells where a network makes what the task
needs available. Layer 0 is the output of the embeddings.
"""

import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

from helpers import places
from helpers.corpora.treebanks import Document, Mention, Sentence
from helpers.engine import shards
from helpers.engine.encoders import Encoder
from helpers.engine.estimates import Estimate, StreamingMean
from helpers.engine.tokens import Batches, encode

TASKS = ("part of speech", "dependency", "entity", "coreference")
"""In the order of the paper's pipeline."""

SAME, OTHER = "same", "other"
"""The labels of coreference: two mentions refer to the same thing, or to different ones."""

CHUNK = 256
"""Spans, or pairs, that are scored at once."""


# ---------------------------------------------------------------------------------------- contexts and targets


@dataclass(frozen=True)
class Context:
    """Consecutive sentences of one document that the encoder reads together.

    Attributes:
        document: number of its document in the corpus.
        sentences: one or more.
        mentions: with ``start``, ``end`` and ``head`` counted through the whole context.
    """

    document: int
    sentences: tuple[Sentence, ...]
    mentions: tuple[Mention, ...] = ()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of all sentences."""
        return tuple(w for s in self.sentences for w in s.words)

    @cached_property
    def first(self) -> tuple[int, ...]:
        """Place of each sentence's first word."""
        return tuple(np.cumsum([0, *(len(s.words) for s in self.sentences[:-1])]).tolist())

    def sentence_of(self, word: int) -> int:
        """Index of the sentence that a word belongs to."""
        return int(np.searchsorted(self.first, word, side="right")) - 1


def contexts(
    encoder: Encoder, documents: Sequence[Document], *, limit: int = 128, most: int | None = None, seed: int = 0
) -> list[Context]:
    """Cut documents into runs of whole sentences, as long as ``limit`` tokens allow (special ones included).

    Sentences without a tree, longer than the limit, or with a word that has no token are left out.

    Args:
        most: so many documents, drawn at random; all when there are no more.
        seed: of the draw.

    Raises:
        ValueError: if nothing is left.
    """
    limit = min(limit, encoder.max_length)
    drawn = np.random.default_rng(seed).permutation(len(documents))[:most]
    found: list[Context] = []
    for number, document in ((n, documents[n]) for n in sorted(drawn.tolist())):
        run: list[int] = []
        total = 0
        for place, sentence in enumerate(document.sentences):
            size = _tokens(encoder, sentence)
            if size is None or size > limit:
                continue
            if run and total + size - 2 > limit:
                found.append(_context(number, document, run))
                run, total = [], 0
            total = total + size - 2 if run else size
            run.append(place)
        if run:
            found.append(_context(number, document, run))
    if not found:
        raise ValueError(f"No sentence of these documents has a tree and at most {limit} tokens.")
    return found


def _tokens(encoder: Encoder, sentence: Sentence) -> int | None:
    """Tokens of a sentence with the two special ones, or None if it cannot be used."""
    if (
        not sentence.governors
        or len(encoder.tokenizer(" ".join(sentence.words), verbose=False).input_ids) > encoder.max_length
    ):
        return None
    batch = encode(encoder, [list(sentence.words)])
    return int(batch.lengths[0]) if int(batch.is_word.sum()) == len(sentence.words) else None


def _context(number: int, document: Document, run: Sequence[int]) -> Context:
    sentences = tuple(document.sentences[place] for place in run)
    first = dict(zip(run, np.cumsum([0, *(len(s.words) for s in sentences)]).tolist(), strict=False))
    mentions = (
        Mention(
            run.index(m.sentence),
            m.start + first[m.sentence],
            m.end + first[m.sentence],
            m.chain,
            m.head + first[m.sentence],
            m.kind,
            m.type,
        )
        for m in document.mentions
        if m.sentence in first
    )
    return Context(number, sentences, tuple(mentions))


@dataclass(frozen=True)
class Target:
    """A span, or a pair of spans, with the label that a probe should give it.

    Attributes:
        context: index of its context.
        spans: ``(first word, one after the last)``, one or two of them, counted through the context.
        label: the right answer.
        key: what the look-up baseline knows it by.
    """

    context: int
    spans: tuple[tuple[int, int], ...]
    label: str
    key: str


def targets(found: Sequence[Context], task: str, *, limit: int | None = None, seed: int = 0) -> list[Target]:
    """All targets of a task, or ``limit`` of them drawn at random, in the order of the text.

    ``part of speech``: every word, universal tag. ``dependency``: every word with its governor, the relation without
    its subtype; roots and punctuation are left out. ``entity``: every mention that has a type. ``coreference``: pairs of
    mentions of one context, :data:`SAME` or :data:`OTHER`; of each label as many as the rarer one has in the context.

    Raises:
        ValueError: for an unknown task, or if the corpus has no such annotation.
    """
    if task not in TASKS:
        raise ValueError(f"Unknown task {task!r}; there are {', '.join(TASKS)}.")
    rng = np.random.default_rng([seed, TASKS.index(task)])
    every = [t for number, context in enumerate(found) for t in _TARGETS[task](number, context, rng)]
    if not every:
        raise ValueError(f"These documents have no annotation for {task!r}: {_NEEDS[task]}.")
    if limit is None or limit >= len(every):
        return every
    return [every[i] for i in sorted(rng.choice(len(every), limit, replace=False))]


def _parts_of_speech(number: int, context: Context, _: np.random.Generator) -> Iterator[Target]:
    tags = [tag for s in context.sentences for tag in s.upos]
    for place, (word, tag) in enumerate(zip(context.words, tags, strict=True)):
        yield Target(number, ((place, place + 1),), tag, word.lower())


def _dependencies(number: int, context: Context, _: np.random.Generator) -> Iterator[Target]:
    for start, sentence in zip(context.first, context.sentences, strict=True):
        for place, (governor, relation) in enumerate(zip(sentence.governors, sentence.relations, strict=True)):
            if governor >= 0 and relation != "punct":
                spans = ((start + place, start + place + 1), (start + governor, start + governor + 1))
                yield Target(number, spans, relation.split(":")[0], sentence.words[place].lower())


def _entities(number: int, context: Context, _: np.random.Generator) -> Iterator[Target]:
    for m in context.mentions:
        if m.type:
            yield Target(number, ((m.start, m.end),), m.type, context.words[m.head].lower())


def _coreference(number: int, context: Context, rng: np.random.Generator) -> Iterator[Target]:
    by_label: dict[str, list[Target]] = {SAME: [], OTHER: []}
    for a, b in combinations(context.mentions, 2):
        if (a.start, a.end) != (b.start, b.end):
            label = SAME if a.chain == b.chain else OTHER
            words = [context.words[m.head].lower() for m in (a, b)]
            key = "same head word" if words[0] == words[1] else "other head word"
            by_label[label].append(Target(number, ((a.start, a.end), (b.start, b.end)), label, key))
    count = min(map(len, by_label.values()))
    drawn = [of[i] for of in by_label.values() for i in rng.choice(len(of), count, replace=False)] if count else []
    yield from sorted(drawn, key=lambda t: t.spans)


_TARGETS = dict(zip(TASKS, (_parts_of_speech, _dependencies, _entities, _coreference), strict=True))
_NEEDS = {
    "part of speech": "it needs universal part-of-speech tags",
    "dependency": "it needs dependency trees",
    "entity": "it needs entity types, Entity= in the last column of CoNLL-U",
    "coreference": "it needs mentions of at least two chains in a context",
}


# ---------------------------------------------------------------------------------------- hidden states on disk


@dataclass(frozen=True, eq=False)
class States:
    """Hidden states of all tokens of some contexts, special tokens left out, read from disk as they are needed.

    Attributes:
        values: memory-mapped, half precision; layer 0 is the output of the embeddings.
        start: for each context, the row of each word's first token, and after the last word the row that follows.
        file: where they lie.
    """

    values: Float[np.ndarray, "token layer width"]
    start: tuple[NDArray[np.int64], ...]
    file: Path

    @cached_property
    def scale(self) -> Float[np.ndarray, "layer"]:
        """Spread of each layer: root mean square distance of (at most 4,096) tokens from their mean, per dimension."""
        rows = np.linspace(0, len(self.values) - 1, min(len(self.values), 4096)).astype(int)
        return self.values[rows].astype(np.float64).std(0).__pow__(2).mean(-1) ** 0.5


def stream(encoder: Encoder, found: Sequence[Context], *, batch_size: int = 8, folder: Path | None = None) -> States:
    """Run contexts through the encoder once and keep all layers' states in a file; use the file if it is there.

    The file is named after the weights and the words. It is written under another name and renamed when it is whole.

    Args:
        folder: default: ``states`` in the user's cache.
    """
    inputs = [list(c.words) for c in found]
    sizes = _tokens_of_words(encoder, inputs)
    ends = np.cumsum([sum(s) for s in sizes])
    start = tuple(np.cumsum([end - sum(s), *s]) for end, s in zip(ends, sizes, strict=True))
    folder = folder or places.cache() / "states"
    file = folder / f"{encoder.name.split('/')[-1]}-{_digest(encoder, inputs)}.npy"
    values = _opened(file, int(ends[-1]))
    if values is None:
        _write(encoder, inputs, start, file, batch_size)
        values = np.load(file, mmap_mode="r")
    return States(values, start, file)


def _tokens_of_words(encoder: Encoder, inputs: Sequence[list[str]]) -> list[list[int]]:
    """How many tokens each word of each context has."""
    sizes: list[list[int]] = [[] for _ in inputs]
    for batch in Batches(encoder, inputs, batch_size=64):
        for row, number in enumerate(batch.index):
            units = batch.unit[row][batch.mask[row] & ~batch.special[row]].cpu().numpy()
            sizes[number] = np.unique(units, return_counts=True)[1].tolist()
            if len(sizes[number]) != len(inputs[number]):
                raise ValueError(
                    f"Context {number} has {len(inputs[number])} words, but {len(sizes[number])} of them "
                    "have tokens; make contexts with layer_semantics.contexts, which leaves such words out."
                )
    return sizes


def _digest(encoder: Encoder, inputs: Sequence[list[str]]) -> str:
    return hashlib.sha256(json.dumps([encoder.sha256, "half", list(inputs)]).encode()).hexdigest()[:24]


def _opened(file: Path, rows: int) -> np.ndarray | None:
    """The states, if the file is there and whole."""
    try:
        values = np.load(file, mmap_mode="r")
    except (OSError, ValueError, EOFError):  # missing, empty, or shorter than its own header says
        return None
    return values if values.ndim == 3 and len(values) == rows and values.dtype == np.float16 else None


def _write(
    encoder: Encoder, inputs: Sequence[list[str]], start: Sequence[NDArray[np.int64]], file: Path, batch_size: int
) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=file.parent, prefix=file.stem, suffix=".unfinished")
    os.close(handle)
    values = None
    progress = tqdm(total=len(inputs), desc=f"{encoder.name}: contexts")
    try:
        for batch in Batches(encoder, inputs, batch_size=batch_size):
            with torch.inference_mode():
                layers = torch.stack(encoder.model(**batch.inputs, output_hidden_states=True).hidden_states, 2)
            if values is None:
                shape = (int(start[-1][-1]), *layers.shape[2:])
                values = np.lib.format.open_memmap(scratch, mode="w+", dtype=np.float16, shape=shape)
            for row, number in enumerate(batch.index):
                kept = layers[row][batch.mask[row] & ~batch.special[row]]
                values[start[number][0] : start[number][-1]] = kept.half().cpu().numpy()
            progress.update(len(batch.index))
        values.flush()
        Path(scratch).replace(file)
    finally:
        progress.close()
        Path(scratch).unlink(missing_ok=True)


# ---------------------------------------------------------------------------------------- what a probe reads


@dataclass(frozen=True, eq=False)
class Part:
    """The targets of one task in one part of the corpus, and where their tokens are.

    Attributes:
        labels: names of the classes.
        truth: [target], index of the right class; -1 if the training part does not have it.
        document: [target], number of its document.
        low, high: [role, target], rows of the first token of each span, and after the last.
    """

    states: States
    targets: tuple[Target, ...]
    labels: tuple[str, ...]
    truth: NDArray[np.int64]
    document: NDArray[np.int64]
    low: Int[np.ndarray, "role target"]
    high: Int[np.ndarray, "role target"]

    def inputs(self, chosen: NDArray[np.int64]) -> "list[tuple[Tensor, Tensor]]":
        """For each role the states [layer, token, width] of the chosen targets' tokens, and whose each token is, [token]."""
        return [self._tokens(low[chosen], high[chosen]) for low, high in zip(self.low, self.high, strict=True)]

    def _tokens(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        size = high - low
        rows = np.repeat(low - np.cumsum(size) + size, size) + np.arange(size.sum())
        values = torch.from_numpy(np.ascontiguousarray(self.states.values[rows].transpose(1, 0, 2))).float()
        return values, torch.from_numpy(np.repeat(np.arange(len(size)), size))


def part(states: States, found: Sequence[Context], chosen: Sequence[Target], labels: Sequence[str]) -> Part:
    """Make ready for a probe what :func:`targets` has chosen; ``labels`` are those of the training part."""
    place = {label: n for n, label in enumerate(labels)}
    spans = np.array([[(states.start[t.context][a], states.start[t.context][b]) for a, b in t.spans] for t in chosen])
    return Part(
        states,
        tuple(chosen),
        tuple(labels),
        np.array([place.get(t.label, -1) for t in chosen]),
        np.array([found[t.context].document for t in chosen]),
        spans[..., 0].T,
        spans[..., 1].T,
    )


# ---------------------------------------------------------------------------------------- probes


class Probes(nn.Module):
    """Probes side by side that share nothing: probe ``l`` reads a mixture of the layers 0 to ``l``.

    A token's mixed state is projected; the tokens of a span are pooled by attention; the pooled spans go through one hidden
    layer (Tenney et al. 2019). All parameters have the probe as first axis, so training all at once equals training each
    alone.

    Args:
        scale: [layer], spread of each layer's states, which is divided out.
        width: of the hidden states.
        classes: number of labels.
        roles: spans of a target, 1 or 2; each has its own projection and pooling.
        size: width of the projection and of the hidden layer.
        uniform: keep the mixing weights equal instead of learning them.
        seed: of the first weights, which are the same for all probes.
    """

    def __init__(
        self,
        scale: Float[np.ndarray, "layer"],
        width: int,
        classes: int,
        *,
        roles: int = 1,
        size: int = 48,
        uniform: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        count, generator = len(scale), torch.Generator().manual_seed(seed)

        def drawn(*shape: int) -> nn.Parameter:
            one = torch.randn(*shape, generator=generator) / shape[-2] ** 0.5
            return nn.Parameter(one.expand(count, *shape).clone())

        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float32))
        self.register_buffer("reads", torch.ones(count, count).tril().bool())
        self.a = nn.Parameter(torch.zeros(count, count), requires_grad=not uniform)
        self.gamma = nn.Parameter(torch.ones(count))
        self.project = drawn(roles, width, size)
        self.attend = nn.Parameter(torch.zeros(count, roles, size))
        self.hidden, self.hidden_bias = drawn(roles * size, size), nn.Parameter(torch.zeros(count, 1, size))
        self.out, self.out_bias = drawn(size, classes), nn.Parameter(torch.zeros(count, 1, classes))

    def weights(self) -> Float[Tensor, "probe layer"]:
        """Mixing weights s of each probe; 0 for the layers that it does not read."""
        return self.a.masked_fill(~self.reads, -torch.inf).softmax(-1)

    def mixed(self, states: Float[Tensor, "layer token width"]) -> Float[Tensor, "probe token width"]:
        """Each probe's mixture of the layers."""
        weights = self.gamma[:, None] * self.weights() / self.scale
        return (weights @ states.flatten(1)).view(-1, *states.shape[1:])

    def forward(self, inputs: "list[tuple[Tensor, Tensor]]") -> Float[Tensor, "probe target label"]:
        """Logits of every probe; inputs as :meth:`Part.inputs` gives them."""
        spans = []
        for role, (states, owner) in enumerate(inputs):
            tokens = self.mixed(states) @ self.project[:, role]
            scores = (tokens * self.attend[:, role, None]).sum(-1)
            spans.append(pooled(tokens, scores, owner))
        hidden = (torch.cat(spans, -1) @ self.hidden + self.hidden_bias).relu()
        return hidden @ self.out + self.out_bias


def pooled(
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


def train(
    train: Part,
    dev: Part,
    *,
    steps: int = 300,
    batch: int = 64,
    rate: float = 0.003,
    mixing: float = 0.03,
    every: int = 30,
    size: int = 48,
    uniform: bool = False,
    seed: int = 0,
) -> Probes:
    """Train the probes of all prefixes of layers at once with Adam; both rates fall to 0 along a line.

    Args:
        steps, batch: steps of training and targets in each; passes over the training part follow from them.
        rate, mixing: first learning rate of the classifier, and of a and gamma.
        every: steps between looks at the development part; each probe ends as it was when its cross-entropy was least.
        size, uniform, seed: see :class:`Probes`; the seed also orders the targets.
    """
    width = train.states.values.shape[-1]
    probes = Probes(
        train.states.scale, width, len(train.labels), roles=len(train.low), size=size, uniform=uniform, seed=seed
    )
    mix = [p for name, p in probes.named_parameters() if name in ("a", "gamma")]
    rest = [p for name, p in probes.named_parameters() if name not in ("a", "gamma")]
    optimiser = torch.optim.Adam([{"params": rest, "lr": rate}, {"params": mix, "lr": mixing}])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)
    best, kept = None, {}
    with shards.one_thread():
        for step, chosen in enumerate(_batches(len(train.targets), batch, steps, seed), 1):
            optimiser.zero_grad()
            cross_entropy(probes, train, chosen).sum(0).mean().backward()
            optimiser.step()
            schedule.step()
            if step % every == 0 or step == steps:
                with torch.inference_mode():
                    loss = torch.cat([cross_entropy(probes, dev, c) for c in _chunks(len(dev.targets))], 1).mean(1)
                best, kept = _keep(probes, loss, best, kept)
    probes.load_state_dict(kept)
    return probes.requires_grad_(False)


def cross_entropy(probes: Probes, part: Part, chosen: NDArray[np.int64]) -> Float[Tensor, "probe target"]:
    """Of each probe's answer to the chosen targets, in nats; 0 where the right class is unknown."""
    truth = torch.from_numpy(part.truth[chosen]).expand(len(probes.gamma), -1)
    return nn.functional.cross_entropy(
        probes(part.inputs(chosen)).transpose(1, 2), truth, ignore_index=-1, reduction="none"
    )


def _keep(
    probes: Probes, loss: Tensor, best: Tensor | None, kept: dict[str, Tensor]
) -> tuple[Tensor, dict[str, Tensor]]:
    """For each probe by itself the better of its present and its kept state."""
    now = {name: value.clone() for name, value in probes.state_dict().items()}
    if best is None:
        return loss, now
    better = loss < best
    learned = {name for name, _ in probes.named_parameters()}
    for name in learned:
        kept[name][better] = now[name][better]
    return torch.minimum(loss, best), kept


def _batches(count: int, batch: int, steps: int, seed: int) -> Iterator[NDArray[np.int64]]:
    rng, queue = np.random.default_rng(seed), np.empty(0, np.int64)
    for _ in range(steps):
        while len(queue) < min(batch, count):
            queue = np.concatenate([queue, rng.permutation(count)])
        yield queue[:batch]
        queue = queue[batch:]


def _chunks(count: int) -> Iterator[NDArray[np.int64]]:
    for low in range(0, count, CHUNK):
        yield np.arange(low, min(low + CHUNK, count))


def answers(probes: Probes, part: Part) -> Float[np.ndarray, "probe target label"]:
    """Probabilities of all labels, by every probe."""
    with shards.one_thread(), torch.inference_mode():
        found = [probes(part.inputs(chosen)).softmax(-1) for chosen in _chunks(len(part.targets))]
    return torch.cat(found, 1).numpy()


# ---------------------------------------------------------------------------------------- scores


def expected_layer(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean layer at which the score is gained, from scores [..., layer] of the prefixes 0 to L; NaN without a gain.

    The sum of l times Delta(l) over the sum of Delta(l), for l from 1 to L (Tenney et al. 2019, equation 4).
    """
    gains = np.diff(scores, axis=-1)
    total = gains.sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, (gains * np.arange(1, gains.shape[-1] + 1)).sum(-1) / total, np.nan)


def centre_of_gravity(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean layer under mixing weights [..., layer] of the layers 0 to L (Tenney et al. 2019, equation 2)."""
    return (np.asarray(weights, np.float64) * np.arange(np.shape(weights)[-1])).sum(-1)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A task on the test part.

    Attributes:
        task, labels: one of :data:`TASKS`, and its classes.
        sizes: number of targets for training, development and test.
        hits: [seed, prefix, target], whether each probe's first choice is right.
        probabilities: [prefix, target, label], mean over the seeds.
        weights: [seed, layer], mixing weights of the probes that read all layers.
        gamma: [seed], their scale.
        truth, document: [target], index of the right label (-1: not in the training part), number of the document.
        baselines: ``majority`` and ``look-up`` -> whether each target is right, [target].
    """

    task: str
    labels: tuple[str, ...]
    sizes: tuple[int, int, int]
    hits: Bool[np.ndarray, "seed prefix target"]
    probabilities: Float[np.ndarray, "prefix target label"]
    weights: Float[np.ndarray, "seed layer"]
    gamma: Float[np.ndarray, "seed"]
    truth: NDArray[np.int64]
    document: NDArray[np.int64]
    baselines: Mapping[str, Bool[np.ndarray, "target"]]

    @cached_property
    def scores(self) -> Estimate:
        """[prefix], share of right answers, mean over the seeds; interval over documents."""
        return _share(self.hits.mean(0).T, self.document)

    @cached_property
    def seeds(self) -> Float[np.ndarray, "seed prefix"]:
        """Share of right answers of every seed's probes."""
        return self.hits.mean(-1)

    def baseline(self, name: str) -> Estimate:
        """Share of right answers of a baseline, with an interval over documents."""
        return _share(self.baselines[name].astype(np.float64)[:, None], self.document)[0]

    @cached_property
    def gains(self) -> Estimate:
        """[layer], differential scores of the layers 1 to L, paired over documents."""
        return self.scores[1:] - self.scores[:-1]

    @cached_property
    def gain(self) -> Estimate:
        """What all layers bring together, above the embeddings."""
        return self.scores[-1] - self.scores[0]

    @cached_property
    def expected(self) -> Estimate:
        """Expected layer; worth reading only where ``gain`` is clearly above 0."""
        return Estimate.of(expected_layer(self.scores.value), expected_layer(self.scores.replicates))

    @cached_property
    def gravity(self) -> Estimate:
        """Centre of gravity: mean over the seeds, and the range from the least to the greatest seed as interval."""
        each = centre_of_gravity(self.weights)
        return Estimate(np.float64(each.mean()), np.float64(each.min()), np.float64(each.max()), each[:, None][:, 0])

    @cached_property
    def settled(self) -> NDArray[np.int64]:
        """[target], first layer from which on the right label has the highest probability; L + 1 if never."""
        right = self.probabilities.argmax(-1) == self.truth
        stays = np.logical_and.accumulate(right[::-1], axis=0)[::-1]
        return np.where(stays.any(0), stays.argmax(0), len(right))

    def by_label(self, *, fewest: int = 1) -> dict[str, Float[np.ndarray, "prefix"]]:
        """Label -> share of its targets that are right, mean over seeds; for labels with ``fewest`` test targets or more."""
        found = {}
        for n, label in enumerate(self.labels):
            if (self.truth == n).sum() >= fewest:
                found[label] = self.hits[:, :, self.truth == n].mean((0, 2))
        return found


def _share(right: Float[np.ndarray, "target k"], document: NDArray[np.int64]) -> Estimate:
    numbers, place = np.unique(document, return_inverse=True)
    sums = np.stack([np.bincount(place, column, len(numbers)) for column in right.T], 1)
    mean = StreamingMean((right.shape[1],), denominators=(1,))
    mean.add(numbers.tolist(), sums, np.bincount(place, minlength=len(numbers)).astype(np.float64)[:, None])
    return mean.estimate()


def baselines(train: Sequence[Target], test: Sequence[Target]) -> dict[str, Bool[np.ndarray, "target"]]:
    """Whether two rules without a network are right on each test target.

    ``majority`` always gives the most frequent label of the training part; ``look-up`` the most frequent one of the same
    word there (word, head word of the mention, or whether the two head words are the same), else the majority's.
    """
    common = Counter(t.label for t in train).most_common(1)[0][0]
    seen: dict[str, Counter[str]] = {}
    for t in train:
        seen.setdefault(t.key, Counter())[t.label] += 1
    known = {key: count.most_common(1)[0][0] for key, count in seen.items()}
    return {
        "majority": np.array([t.label == common for t in test]),
        "look-up": np.array([t.label == known.get(t.key, common) for t in test]),
    }


# ---------------------------------------------------------------------------------------- measuring


def prepare(
    encoder: Encoder,
    parts: Mapping[str, Sequence[Context]],
    task: str,
    *,
    limits: Sequence[int | None] = (None, None, None),
    seed: int = 0,
    folder: Path | None = None,
) -> dict[str, Part]:
    """The targets of a task in the training, development and test part, with the encoder's states.

    Args:
        parts: ``train``, ``dev`` and ``test`` -> contexts.
        limits: most targets in each part; drawn at random, the same for every encoder.
        folder: of the states, see :func:`stream`.
    """
    drawn = {
        n: targets(parts[n], task, limit=limit, seed=seed)
        for n, limit in zip(("train", "dev", "test"), limits, strict=True)
    }
    labels = sorted({t.label for t in drawn["train"]})
    return {
        name: part(stream(encoder, parts[name], folder=folder), parts[name], chosen, labels)
        for name, chosen in drawn.items()
    }


def measure(ready: Mapping[str, Part], task: str, *, seeds: Sequence[int] = (0, 1), **options: Any) -> Outcome:
    """Train probes for all prefixes of layers with several seeds and score them on the test part.

    Args:
        ready: what :func:`prepare` gives.
        options: of :func:`train`.
    """
    test = ready["test"]
    trained = [train(ready["train"], ready["dev"], seed=seed, **options) for seed in seeds]
    given = np.stack([answers(probes, test) for probes in trained])
    weights = np.stack([probes.weights()[-1].double().numpy() for probes in trained])
    gamma = np.array([float(probes.gamma[-1]) for probes in trained])
    return Outcome(
        task,
        test.labels,
        tuple(len(ready[n].targets) for n in ("train", "dev", "test")),
        given.argmax(-1) == test.truth,
        given.mean(0),
        weights,
        gamma,
        test.truth,
        test.document,
        baselines(ready["train"].targets, test.targets),
    )


# ---------------------------------------------------------------------------------------- sentences layer by layer


@dataclass(frozen=True, eq=False)
class Case:
    """One target of a sentence, followed through the layers.

    Attributes:
        task: which task it is of.
        words: the span, or both.
        label, rival: the right label, and the wrong one with the highest mean probability over the prefixes.
        right, wrong: [prefix], their probabilities.
        settled: first layer from which on the right label wins; L + 1 if never.
    """

    task: str
    words: str
    label: str
    rival: str
    right: Float[np.ndarray, "prefix"]
    wrong: Float[np.ndarray, "prefix"]
    settled: int


def case(outcome: Outcome, found: Sequence[Context], chosen: Sequence[Target], number: int) -> Case:
    """A test target with its probabilities."""
    target, given = chosen[number], outcome.probabilities[:, number].astype(np.float64)
    truth = outcome.truth[number]
    rival = np.where(np.arange(given.shape[1]) == truth, -1.0, given.mean(0)).argmax()
    right = given[:, truth] if truth >= 0 else np.zeros(len(given))
    words = " / ".join(" ".join(found[target.context].words[a:b]) for a, b in target.spans)
    return Case(
        outcome.task, words, target.label, outcome.labels[rival], right, given[:, rival], int(outcome.settled[number])
    )


def turned(
    outcomes: Mapping[str, Outcome],
    found: Sequence[Context],
    chosen: Mapping[str, Sequence[Target]],
    *,
    tasks: Sequence[str] = TASKS[:2],
    most: int = 4,
) -> list[tuple[str, list[Case]]]:
    """For each of ``tasks`` the sentence with the target whose right label rises most, and what else turns in it.

    A target turns if its right label loses to another with the embeddings alone and wins with all layers; it rises by the
    difference of the two probabilities. With the target that chose the sentence, which comes first, are shown the others
    of its sentence that turn, of all tasks: those that rise most, ``most`` in all. No sentence is taken twice.
    """
    shown: list[tuple[str, list[Case]]] = []
    taken: set[tuple[int, int]] = set()
    for task in tasks:
        for number in rises(outcomes[task]):
            place = _sentence(found, chosen[task][number])
            if place not in taken:
                taken.add(place)
                others = [
                    case(outcomes[t], found, chosen[t], n)
                    for t in outcomes
                    for n in rises(outcomes[t])
                    if _sentence(found, chosen[t][n]) == place and (t, n) != (task, number)
                ]
                others.sort(key=lambda c: c.right[0] - c.right[-1])
                cases = [case(outcomes[task], found, chosen[task], number), *others[: most - 1]]
                shown.append((found[place[0]].sentences[place[1]].text, cases))
                break
    return shown


def rises(outcome: Outcome) -> list[int]:
    """Targets that are wrong with the embeddings alone and right with all layers; the greatest rise first."""
    right = outcome.probabilities.argmax(-1) == outcome.truth
    numbers = np.flatnonzero(~right[0] & right[-1])
    rise = (outcome.probabilities[-1] - outcome.probabilities[0])[numbers, outcome.truth[numbers]]
    return numbers[np.argsort(-rise, kind="stable")].tolist()


def _sentence(found: Sequence[Context], target: Target) -> tuple[int, int]:
    return target.context, found[target.context].sentence_of(target.spans[-1][0])


# ---------------------------------------------------------------------------------------- recording


def as_dict(outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """Numbers for :func:`helpers.record.results.record`; ``expected`` is None where the layers bring nothing for certain."""
    return {
        task: {
            "sizes": o.sizes,
            "labels": len(o.labels),
            "scores": o.scores,
            "seeds": o.seeds,
            "gains": o.gains,
            "gain": o.gain,
            "expected": o.expected if o.gain.low > 0 else None,
            "gravity": o.gravity,
            "weights": o.weights,
            "gamma": o.gamma,
            "baselines": {name: o.baseline(name) for name in o.baselines},
            "settled": np.bincount(o.settled, minlength=len(o.probabilities) + 1) / len(o.settled),
        }
        for task, o in outcomes.items()
    }


def steps_between(outcomes: Mapping[str, Outcome]) -> dict[str, dict[str, Estimate | None]]:
    """For any two tasks, by how many layers the second comes later: ``expected`` (paired over documents), None where the
    layers bring nothing for certain to one of the two."""
    known = {name: bool(outcome.gain.low > 0) for name, outcome in outcomes.items()}
    return {
        f"{a} to {b}": {"expected": outcomes[b].expected - outcomes[a].expected if known[a] and known[b] else None}
        for a, b in combinations(outcomes, 2)
    }
