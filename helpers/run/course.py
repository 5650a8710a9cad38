"""What a training run sees: a task's recipe, its examples, and the batch of each step.

Everything random (order, masks, windows) is drawn from seeds made of the run's seed and the number of the step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from helpers.engine import inputs, tasks, tokens
from helpers.engine.encoders import Encoder
from helpers.engine.inputs import Asked
from helpers.engine.tasks import Example

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
        evaluate_every: steps between scores on the development part; ``patience`` scores without a better one end the run.
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


@dataclass(frozen=True)
class Evaluation:
    """A set that the finished adapter is scored on; ``floors`` are the scores it should reach."""

    corpus: str
    split: str | None = None
    task: str | None = None
    limit: int | None = None
    floors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """A task's data and settings.

    Attributes:
        train: corpora and splits to train on.
        dev: size of the development part, taken from the training data (mlm, keywords: from the corpus's own).
        evaluations: what the card reports; never trained on and never used to choose anything.
    """

    train: tuple[tuple[str, str], ...]
    dev: int
    settings: Settings
    evaluations: tuple[Evaluation, ...]

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Recipe":
        """An item of ``recipes.yml``."""
        settings, evaluations = Settings(**given["settings"]), (Evaluation(**e) for e in given["evaluations"])
        return cls(tuple(map(tuple, given["train"])), given["dev"], settings, tuple(evaluations))


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

    Pairs are held out at random; questions by whole articles of the first corpus; ``mlm`` and ``keywords`` use the
    corpus's own part.

    Raises:
        helpers.corpora.sources.CorpusError: when a corpus is not here.
    """
    read = [tasks.examples(task, name, split) for name, split in recipe.train]
    random = np.random.default_rng([seed, 1])
    if task in ("mlm", "keywords"):
        name = recipe.train[0][0]
        return Parts(tuple(read[0]), tuple(tasks.examples(task, name, "dev", limit=recipe.dev, seed=seed)))
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
    rows = [e for part in read for e in part]
    order = random.permutation(len(read[0]))
    held = set(order[: min(recipe.dev, len(order) // 4)].tolist())
    dev_texts = {rows[i].texts for i in held}
    train = tuple(e for i, e in enumerate(rows) if i not in held and e.texts not in dev_texts)
    return Parts(train, tuple(rows[i] for i in sorted(held)))


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
            return inputs.asked_questions(self.encoder, [self._window(e, n, random) for n, e in enumerate(chosen)])
        texts = [inputs.texts_of(self.encoder, e) for e in chosen]
        batch = tokens.encode(self.encoder, texts, max_length=longest, overlong="truncate")
        if task == "mlm":
            return inputs.masked(
                self.encoder, batch, [(self.settings.seed, 4, step, n) for n in batch.index], self.settings.hidden
            )
        if task == "keywords":
            return inputs.tagged(batch, chosen)
        return Asked(task, batch, inputs.classes(chosen).to(self.encoder.device), batch.index)

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
