"""What a training run sees: a task's recipe, its examples, and the batch of each step.

Everything random (order, masks, windows) is drawn from seeds made of the run's seed and the number of the step.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch.utils.data import DataLoader

from helpers import inputs, tasks, tokens
from helpers.corpora import CorpusError
from helpers.encoders import Encoder
from helpers.inputs import Asked
from helpers.tasks import Example

WORKERS = 3  # processes that make batches for another device than the processor
BUCKET = 40  # batches whose inputs are sorted by length together


@dataclass(frozen=True)
class Settings:
    """What decides the weights a run ends with, besides the data.

    Attributes:
        steps: of the whole schedule; ``warmup`` of them raise the learning rate to ``rate``, the rest let it fall to 0.
        max_length: tokens of a training input, special ones included; longer pairs are cut short.
        dropout: whether the encoder's own dropout is on.
        hidden: share of the tokens that are hidden in training (mlm only; scores are always with 15 %). More than 15 %
            teaches more a step (Wettig et al. 2023).
        precision: ``bf16`` (mixed) or ``fp32``.
        evaluate_every: steps between scores on the development part; ``patience`` of them without a better state end the run.
        smoothing: share of each target spread evenly over all classes in training (pairs, keywords; Szegedy et al. 2016).
        blanked: share of the tokens of pairs that are the mask in training, at random each time.
        choose: the score on the development part that decides which state is kept: the lowest loss, or the highest of another.
    """

    steps: int
    batch_size: int
    max_length: int
    evaluate_every: int
    rate: float = 1e-3
    warmup: int = 50
    rank: int = 16
    alpha: int = 32
    weight_decay: float = 0.01
    dropout: bool = True
    hidden: float = inputs.MASKED
    precision: str = "fp32"
    patience: int = 6
    seed: int = 0
    smoothing: float = 0.0
    blanked: float = 0.0
    choose: str = "loss"


@dataclass(frozen=True)
class Evaluation:
    """A set that the finished adapter is scored on; ``floors`` are the scores it should reach, for the ``reason`` given."""

    corpus: str
    split: str | None = None
    task: str | None = None
    limit: int | None = None
    floors: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class Recipe:
    """A task's data and settings.

    Attributes:
        train: corpora and splits to train on.
        dev: size of the development part, taken from the first corpus (mlm, keywords: that corpus's own part).
        evaluations: what the card reports; never trained on and never used to choose anything.
        start: the task whose finished adapter the run begins with, as far as its weights fit; none for fresh ones.
        reference: what a fully tuned model of this size reaches, and who says so.
        notes: what else the card says.
    """

    train: tuple[tuple[str, str], ...]
    dev: int
    settings: Settings
    evaluations: tuple[Evaluation, ...]
    start: str = ""
    reference: str = ""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Recipe":
        """An item of ``recipes.yml``."""
        settings, evaluations = Settings(**given["settings"]), (Evaluation(**e) for e in given["evaluations"])
        read = {"train": tuple(map(tuple, given["train"])), "settings": settings, "evaluations": tuple(evaluations)}
        return cls(**given | read | {"notes": tuple(given.get("notes", ()))})


RECIPES = {
    task: Recipe.of(given)
    for task, given in yaml.safe_load(Path(__file__).with_name("recipes.yml").read_text("utf-8")).items()
}
"""How each task's adapter is trained."""


@dataclass(frozen=True)
class Parts:
    """Training examples, and the development part that decides when to stop."""

    train: tuple[Example, ...]
    dev: tuple[Example, ...]


def parts(task: str, recipe: Recipe, seed: int) -> Parts:
    """Read a recipe's data and set the development part aside.

    Pairs are held out of the first corpus at random, questions by its whole articles; ``mlm`` and ``keywords`` use the first
    corpus's own part. Pairs of a further corpus with a sentence that stands in a set the adapter is scored on are left out.

    Raises:
        helpers.corpora.sources.CorpusError: when a corpus is not here.
    """
    read = [tasks.examples(task, name, split) for name, split in recipe.train]
    random = np.random.default_rng([seed, 1])
    if task in ("mlm", "keywords"):
        name = recipe.train[0][0]
        rows = [e for part in read for e in part]
        return Parts(tuple(rows), tuple(tasks.examples(task, name, "dev", limit=recipe.dev, seed=seed)))
    if task == "qa":
        dev: list[Example] = []
        documents = random.permutation(sorted({e.document for e in read[0]})).tolist()
        while len(dev) < recipe.dev and len(documents) > 1:
            held = documents.pop()
            dev += [e for e in read[0] if e.document == held]
        contexts = {e.texts[1] for e in dev}
        kept = [e for part in read for e in part if e.texts[1] not in contexts]
        chosen = random.permutation(len(dev))[: recipe.dev]
        return Parts(tuple(kept), tuple(dev[i] for i in sorted(chosen)))
    if task in ("entailment", "rte"):
        read = [[replace(e, texts=tuple(map(_stopped, e.texts))) for e in part] for part in read]
    scored = _scored(task, recipe)
    read[1:] = [[e for e in part if not scored & set(map(_letters, e.texts))] for part in read[1:]]
    rows = [e for part in read for e in part]
    order = random.permutation(len(read[0]))
    held = set(order[: min(recipe.dev, len(order) // 4)].tolist())
    dev_texts = {rows[i].texts for i in held}
    train = tuple(e for i, e in enumerate(rows) if i not in held and e.texts not in dev_texts)
    return Parts(train, tuple(rows[i] for i in sorted(held)))


def _scored(task: str, recipe: Recipe) -> set[str]:
    """The sentences of the sets that the adapter is scored on, as far as they are here."""
    found = set()
    for wanted in recipe.evaluations:
        with suppress(CorpusError):
            given = tasks.examples(wanted.task or task, wanted.corpus, wanted.split)
            found |= {_letters(text) for example in given for text in example.texts}
    return found


def _letters(text: str) -> str:
    """Letters and digits only, so that spacing and punctuation do not tell copies of a sentence apart."""
    return "".join(filter(str.isalnum, text.lower()))


def _stopped(text: str) -> str:
    """With a full stop at the end, which one copy of MNLI's training part has lost."""
    return text if text.rstrip()[-1:] in ".?!\"'" else f"{text.rstrip()}."


@dataclass(frozen=True, eq=False)
class Course:
    """Which inputs each step sees: a pure function of the settings and the step, so that a run can go on anywhere."""

    encoder: Encoder
    examples: Sequence[Example]
    settings: Settings

    @property
    def steps_an_epoch(self) -> int:
        return -(-len(self.examples) // self.settings.batch_size)

    def asked(self, step: int) -> Asked:
        """The batch of a step (from 0)."""
        epoch, place = divmod(step, self.steps_an_epoch)
        numbers = self._order(epoch)[place]
        chosen = [self.examples[n] for n in numbers]
        task, longest = chosen[0].task, self.settings.max_length
        if task == "qa":
            random = np.random.default_rng([self.settings.seed, 3, step])
            windows = [self._window(e, n, random) for n, e in enumerate(chosen)]
            return inputs.asked_questions(self.encoder, windows, bare=True)
        texts = [inputs.texts_of(self.encoder, e) for e in chosen]
        if task == "keywords":
            batch = tokens.encode(self.encoder, texts, max_length=longest, overlong="truncate")
            return inputs.tagged(batch, chosen)
        batch = tokens.bare(self.encoder, texts, max_length=longest)
        if task == "mlm":
            return inputs.masked(
                self.encoder, batch, [(self.settings.seed, 4, step, n) for n in batch.index], self.settings.hidden
            )
        if self.settings.blanked:
            random = np.random.default_rng([self.settings.seed, 5, step])
            blank = torch.from_numpy(random.random(tuple(batch.ids.shape)) < self.settings.blanked).to(
                batch.ids.device
            )
            blank &= batch.text >= 0
            batch = replace(batch, ids=batch.ids.masked_fill(blank, self.encoder.tokenizer.mask_token_id))
        return Asked(task, batch, inputs.classes(chosen).to(self.encoder.device), batch.index)

    __getitem__ = asked

    def ahead(self, first: int, last: int, workers: int) -> Iterator[Asked]:
        """The batches of the steps from first up to last, made ahead by so many other processes (0: by this one)."""
        if not workers:
            yield from map(self.asked, range(first, last))
            return
        steps = range(first, last)
        loader = DataLoader(
            self, None, sampler=steps, num_workers=workers, multiprocessing_context="fork", collate_fn=_as_it_is
        )  # type: ignore[arg-type]
        yield from loader

    def _order(self, epoch: int) -> list[list[int]]:
        """Batches of like length in random order."""
        kept = self.__dict__.get("_kept")
        if kept is None or kept[0] != epoch:
            random = np.random.default_rng([self.settings.seed, 2, epoch])
            order, size = random.permutation(len(self.examples)).tolist(), self.settings.batch_size
            found = []
            for start in range(0, len(order), size * BUCKET):
                bucket = sorted(
                    order[start : start + size * BUCKET], key=lambda n: sum(map(len, self.examples[n].texts))
                )
                found += [bucket[i : i + size] for i in range(0, len(bucket), size)]
            kept = (epoch, [found[i] for i in random.permutation(len(found))])
            object.__setattr__(self, "_kept", kept)
        return kept[1]

    def _window(self, example: Example, number: int, random: np.random.Generator) -> inputs.Window:
        """The whole context if it fits, else a stretch around the answer, at random."""
        room = inputs.room_for_context(self.encoder, example.texts[0], self.settings.max_length)
        spans, words = inputs.tokens_of(self.encoder, example.texts[1])
        if len(spans) <= room:
            return inputs.window(example, number, 0, len(example.texts[1]))
        answer = inputs.usual_answer(example)
        assert answer is not None
        first = int(np.searchsorted(spans[:, 1], answer.start, side="right"))
        last = int(np.searchsorted(spans[:, 0], answer.start + len(answer.text), side="left"))
        borders = [n for n in range(len(words)) if n == 0 or words[n] != words[n - 1]]
        begins = [n for n in borders if last - room <= n <= first] or [first]
        begin = begins[random.integers(len(begins))]
        ends = [n for n in [*borders, len(words)] if last <= n <= begin + room] or [min(begin + room, len(words))]
        return inputs.window(example, number, int(spans[begin, 0]), int(spans[ends[-1] - 1, 1]))


def _as_it_is(asked: Asked) -> Asked:
    return asked
