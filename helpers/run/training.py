"""Training task adapters: LoRA on every linear map of the encoder's layers, and a head.

``python -m helpers train qa`` calls :func:`train`. A run can be killed at any moment: the same command goes on from the
last checkpoint and ends with the same weights, because everything random (order, masks, windows, dropout) is
drawn from seeds made of the run's seed and the number of the step. Whenever the score on the development part improves, the
adapter is written to its folder; :func:`finish` scores what lies there and writes its card.
"""

import json
import math
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from tqdm import tqdm

from helpers import corpora, places
from helpers.engine import adapters, encoders, tasks, tokens
from helpers.engine.adapters import AdapterError, Head
from helpers.engine.encoders import Encoder
from helpers.engine.estimates import StreamingMean
from helpers.engine.tasks import Asked, Example

BUCKET = 40  # batches whose inputs are sorted by length together
LOG_EVERY = 10  # steps
KEEP_EVERY = 50  # steps between checkpoints


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
    hidden: float = tasks.MASKED
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


RECIPES = {
    "paraphrase": Recipe(
        (("mrpc", "train"),),
        368,
        Settings(500, 32, 128, 50),
        (
            Evaluation("mrpc", "dev", floors={"accuracy": 0.76}),
            Evaluation("mrpc", "test"),
            Evaluation("encyclopedia"),
        ),
    ),
    "entailment": Recipe(
        (("mnli", "train"), ("snli", "dev")),
        600,
        Settings(1800, 32, 96, 150, warmup=100),
        (
            Evaluation("mnli", "dev", floors={"accuracy": 0.62}),
            Evaluation("snli", "test", limit=2000),
            Evaluation("encyclopedia"),
            Evaluation("rte", "dev", "rte", floors={"accuracy": 0.58}),
            Evaluation("encyclopedia", None, "rte"),
        ),
    ),
    "rte": Recipe(
        (("rte", "train"),),
        200,
        Settings(400, 16, 160, 40),
        (Evaluation("rte", "dev", floors={"accuracy": 0.58}), Evaluation("encyclopedia")),
    ),
    "qa": Recipe(
        (("squadshifts-wiki", "train"), ("squadshifts-reddit", "train"), ("squadshifts-amazon", "train")),
        300,
        Settings(3000, 16, 192, 250, rate=1.5e-3, warmup=100, dropout=False),
        (Evaluation("xquad", "test", floors={"f1": 0.60, "em": 0.45}), Evaluation("encyclopedia")),
    ),
    "mlm": Recipe(
        (("wikitext", "train"),),
        150,
        Settings(2000, 16, 128, 200, rate=2e-3, warmup=100, dropout=False, hidden=0.25),
        (Evaluation("wikitext", "test", limit=1000, floors={"accuracy": 0.45}), Evaluation("encyclopedia")),
    ),
    "keywords": Recipe(
        (("inspec", "train"),),
        150,
        Settings(500, 16, 256, 50),
        (Evaluation("inspec", "test", floors={"f1": 0.36}), Evaluation("encyclopedia")),
    ),
}


def native_precision(device: torch.device) -> str:
    """``bf16`` where the processor computes it natively, which is two to three times faster, else ``fp32``."""
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "fp32"
    return "bf16" if getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)() else "fp32"


# ---------------------------------------------------------------------------------------- data


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
        helpers.corpora.readers.CorpusError: when a corpus is not here.
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
            return tasks.asked_questions(self.encoder, [self._window(e, n, random) for n, e in enumerate(chosen)])
        texts = [tasks.texts_of(self.encoder, e) for e in chosen]
        batch = tokens.encode(self.encoder, texts, max_length=longest, overlong="truncate")
        if task == "mlm":
            return tasks.masked(
                self.encoder, batch, [(self.settings.seed, 4, step, n) for n in batch.index], self.settings.hidden
            )
        if task == "keywords":
            return tasks.tagged(batch, chosen)
        return Asked(task, batch, tasks.classes(chosen).to(self.encoder.device), batch.index)

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

    def _window(self, example: Example, number: int, random: np.random.Generator) -> tasks.Window:
        """The whole context if it fits, else a stretch around the answer, at random."""
        room = tasks.room_for_context(self.encoder, example.texts[0], self.settings.max_length)
        spans, words = tasks.tokens_of(self.encoder, example.texts[1])
        if len(spans) <= room:
            return tasks.window(example, number, 0, len(example.texts[1]))
        answer = tasks.usual_answer(example)
        assert answer is not None
        first = int(np.searchsorted(spans[:, 1], answer.start, side="right"))
        last = int(np.searchsorted(spans[:, 0], answer.start + len(answer.text), side="left"))
        borders = [n for n in range(len(words)) if n == 0 or words[n] != words[n - 1]]
        begins = [n for n in borders if last - room <= n <= first] or [first]
        begin = begins[random.integers(len(begins))]
        ends = [n for n in [*borders, len(words)] if last <= n <= begin + room] or [min(begin + room, len(words))]
        return tasks.window(example, number, int(spans[begin, 0]), int(spans[ends[-1] - 1, 1]))


# ---------------------------------------------------------------------------------------- the model in training


@dataclass(frozen=True, eq=False)
class Student:
    """An encoder with trainable low-rank changes and a head; the encoder's own weights are frozen.

    Attributes:
        encoder: with the head; its maps carry the changes, not merged.
        weights: the trainable tensors, named as in an adapter's file.
        scale: what the changes are multiplied with.
    """

    encoder: Encoder
    weights: dict[str, nn.Parameter]
    scale: float

    @classmethod
    def of(cls, encoder: Encoder, task: str, settings: Settings) -> "Student":
        """Fresh changes (B = 0) on every linear map of the layers, and a fresh head, drawn from the seed.

        Raises:
            AdapterError: when peft is missing, or for an unknown task.
        """
        try:
            from peft import LoraConfig, inject_adapter_in_model
        except ImportError:
            raise AdapterError(
                "Training needs peft, which is not installed: pip install -e . (or pip install peft). "
                "Loading a finished adapter does not."
            ) from None
        model = encoder.model
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            head = adapters.new_head(model, task).to(encoder.device)
            config = LoraConfig(r=settings.rank, lora_alpha=settings.alpha, target_modules=linear_maps(model))
            inject_adapter_in_model(config, model)
        weights: dict[str, nn.Parameter] = {}
        for path, module in model.named_modules():
            if hasattr(module, "lora_A"):
                weights[f"lora.{path}.A"] = module.lora_A["default"].weight
                weights[f"lora.{path}.B"] = module.lora_B["default"].weight
        weights |= {f"head.{n}": p for n, p in head.named_parameters()}
        return cls(replace(encoder, head=head), weights, settings.alpha / settings.rank)

    @property
    def head(self) -> Head:
        assert self.encoder.head is not None
        return self.encoder.head

    def train(self, mode: bool, dropout: bool) -> None:
        self.encoder.model.train(mode and dropout)
        self.head.train(mode)

    def tensors(self) -> dict[str, Tensor]:
        """A copy of the trainable tensors."""
        return {n: p.detach().cpu().clone().contiguous() for n, p in self.weights.items()}

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        for name, weight in self.weights.items():
            weight.copy_(tensors[name])


def linear_maps(model: nn.Module) -> list[str]:
    """Names of the linear maps of the layers: queries, keys, values, outputs and both feed-forward maps."""
    return [
        n
        for n, m in model.named_modules()
        if isinstance(m, nn.Linear) and "pooler" not in n and "embeddings" not in n
    ]


# ---------------------------------------------------------------------------------------- a run


@dataclass(eq=False)
class Run:
    """A training run and the folder it keeps its checkpoints in.

    The newest complete ``step-<n>`` folder is the checkpoint: the tensors, the optimiser's moments, and ``state.json``. It is
    written beside its place and moved there in one piece, so that no kill leaves half of one.
    """

    task: str
    student: Student
    settings: Settings
    course: Course
    dev: Sequence[Example]
    work: Path
    out: Path
    step: int = 0
    seconds: float = 0.0
    best: float = -math.inf
    best_step: int = -1
    curve: list[dict[str, float | int]] = field(default_factory=list)
    recent: list[float] = field(default_factory=list)
    corners: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        decay = [p for p in self.student.weights.values() if p.dim() > 1]
        other = [p for p in self.student.weights.values() if p.dim() <= 1]
        groups = [
            {"params": decay, "weight_decay": self.settings.weight_decay},
            {"params": other, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=self.settings.rate)
        s, warmup = self.settings, max(1, min(self.settings.warmup, self.settings.steps - 1))
        self.corners = [[-1, 0.0], [warmup - 1, s.rate], [warmup, s.rate], [s.steps, 0.0]]

    # -- one step

    def rate(self, step: int) -> float:
        """Learning rate of a step: straight lines between the corners, up in the warm-up, then down to 0."""
        steps, rates = zip(*self.corners, strict=True)
        return float(np.interp(step, steps, rates))

    def advance(self) -> float:
        """One step; its mean loss.

        Raises:
            AdapterError: when the loss is no number any more.
        """
        self.student.train(True, self.settings.dropout)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(self.step)
        torch.manual_seed(self.settings.seed * 1_000_003 + self.step)  # dropout, whatever happened before
        with self._precision():
            loss = tasks.losses(self.student.encoder, self.course.asked(self.step)).float().mean()
        if not torch.isfinite(loss):
            raise AdapterError(
                f"The loss is {loss.item()} at step {self.step + 1}. Train with a smaller --rate "
                f"(now {self.settings.rate:g})."
            )
        loss.backward()
        nn.utils.clip_grad_norm_(list(self.student.weights.values()), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return loss.item()

    def _precision(self) -> torch.autocast:
        return torch.autocast(
            self.student.encoder.device.type, torch.bfloat16, enabled=self.settings.precision == "bf16"
        )

    def evaluate(self) -> dict[str, float]:
        """Scores on the development part."""
        self.student.train(False, False)
        with self._precision():
            scores = tasks.score(self.student.encoder, self.dev)
        return {name: round(scores.mean(name), 4) for name in scores.values}

    # -- checkpoints

    def keep(self) -> None:
        """Write a checkpoint, then remove the older ones."""
        unfinished, place = self.work / "unfinished", self.work / f"step-{self.step:07d}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        save_file(self.student.tensors(), unfinished / "weights.safetensors")
        moments = {}
        for name, weight in self.student.weights.items():
            if state := self.optimizer.state.get(weight):
                moments |= {f"{k}.{name}": state[k].detach().cpu().contiguous() for k in ("exp_avg", "exp_avg_sq")}
        if moments:
            save_file(moments, unfinished / "optimizer.safetensors")
        state = {
            "task": self.task,
            "settings": asdict(self.settings),
            "step": self.step,
            "seconds": self.seconds,
            "best": self.best if self.best_step >= 0 else None,
            "best_step": self.best_step,
            "curve": self.curve,
            "recent": self.recent,
            "corners": self.corners,
        }
        (unfinished / "state.json").write_text(json.dumps(state), "utf-8")
        for file in unfinished.iterdir():
            with file.open("rb") as stream:
                os.fsync(stream.fileno())
        shutil.rmtree(place, ignore_errors=True)
        unfinished.replace(place)
        for old in self.checkpoints():
            if old != place:
                shutil.rmtree(old)

    def checkpoints(self) -> list[Path]:
        return sorted(self.work.glob("step-*"))

    def resume(self) -> bool:
        """Go on from the newest checkpoint, if there is one; with another number of steps, the learning rate falls to
        0 there in a straight line from where it is.

        Raises:
            AdapterError: when it was made with other settings.
        """
        if not (found := self.checkpoints()):
            return False
        state = json.loads((found[-1] / "state.json").read_text("utf-8"))
        now = asdict(self.settings)
        other = [
            f"{k} {state['settings'].get(k)!r}, now {v!r}"
            for k, v in now.items()
            if k != "steps" and state["settings"].get(k, v) != v
        ]
        if other:
            raise AdapterError(
                f"The run in {self.work} was begun with other settings ({'; '.join(other)}). Give the same "
                "ones to go on, or --fresh to begin anew."
            )
        self.student.load(load_file(found[-1] / "weights.safetensors"))
        self.step, self.seconds, self.curve = state["step"], state["seconds"], state["curve"]
        self.best_step, self.recent = state["best_step"], state["recent"]
        self.corners = state["corners"]
        if self.settings.steps != self.corners[-1][0] and self.step < self.settings.steps:
            now = [self.step, self.rate(self.step)]
            self.corners = [*[c for c in self.corners if c[0] < self.step], now, [self.settings.steps, 0.0]]
        self.best = -math.inf if state["best"] is None else state["best"]
        if self.step:
            moments = load_file(found[-1] / "optimizer.safetensors")
            for name, weight in self.student.weights.items():
                self.optimizer.state[weight] = {"step": torch.tensor(float(self.step))} | {
                    k: moments[f"{k}.{name}"].to(weight) for k in ("exp_avg", "exp_avg_sq")
                }
        return True

    def log(self, **row: float | int) -> None:
        """One more line of ``log.jsonl``."""
        with (self.work / "log.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")

    def cut_log(self) -> None:
        """Forget what was logged after the checkpoint."""
        file = self.work / "log.jsonl"
        if file.exists():
            rows = [line for line in file.read_text("utf-8").splitlines() if line.endswith("}")]
            kept = [line for line in rows if json.loads(line)["step"] <= self.step]
            file.write_text("".join(f"{line}\n" for line in kept), "utf-8")

    # -- the result

    def export(self) -> None:
        """Write the adapter as it is now, in half precision, and what is known of it."""
        self.out.mkdir(parents=True, exist_ok=True)
        encoder = self.student.encoder
        card = {
            "format": adapters.FORMAT,
            "task": self.task,
            "model": label_of(encoder),
            "model_sha256": encoder.sha256,
            "labels": list(self.student.head.labels),
            "head": type(self.student.head).__name__,
            "rank": self.settings.rank,
            "scale": self.student.scale,
            "settings": asdict(self.settings),
            "data": {
                "train": [list(t) for t in RECIPES[self.task].train],
                "train_examples": len(self.course.examples),
                "dev_examples": len(self.dev),
            },
            "corners": self.corners,
            "step": self.step,
            "steps_an_epoch": self.course.steps_an_epoch,
            "minutes": round(self.seconds / 60, 1),
            "curve": self.curve,
            "versions": {n: version(n) for n in ("torch", "transformers", "peft")},
            "scores": [],
        }
        half = {n: t.half() for n, t in self.student.tensors().items()}
        save_file(half, self.out / "unfinished.safetensors")
        (self.out / "unfinished.safetensors").chmod(0o644)
        (self.out / "unfinished.safetensors").replace(self.out / "adapter.safetensors")
        write_card(self.out, card)

    def go(self, *, minutes: float | None = None, after_step: Callable[[int], None] | None = None) -> bool:
        """Train until the schedule ends, the development score stops rising, or the minutes are over.

        Returns:
            Whether the run has come to its end (False: the minutes were over, and the same command goes on).
        """
        self.work.mkdir(parents=True, exist_ok=True)
        if not self.resume():
            self.keep()
        self.cut_log()
        started, before = time.monotonic(), self.seconds
        bar = tqdm(
            total=self.settings.steps,
            initial=self.step,
            desc=f"{label_of(self.student.encoder)}-{self.task}",
            unit="step",
        )
        with bar:
            while self.step < self.settings.steps and not self.stalled():
                self.recent = [*self.recent[-49:], self.advance()]
                self.seconds, loss = before + time.monotonic() - started, float(np.mean(self.recent))
                bar.update()
                bar.set_postfix(
                    loss=f"{loss:.3f}", dev=f"{self.best:.3f}" if self.best_step >= 0 else "none yet", refresh=False
                )
                if self.step % LOG_EVERY == 0:
                    self.log(
                        step=self.step,
                        loss=round(loss, 4),
                        rate=self.rate(self.step - 1),
                        seconds=round(self.seconds, 1),
                    )
                if self.step % self.settings.evaluate_every == 0 or self.step == self.settings.steps:
                    self._judge(loss)
                    self.seconds = before + time.monotonic() - started
                    self.keep()
                elif self.step % KEEP_EVERY == 0:
                    self.keep()
                if after_step is not None:
                    after_step(self.step)
                if minutes is not None and time.monotonic() - started > 60 * minutes:
                    self.keep()
                    return False
        return True

    def stalled(self) -> bool:
        """Whether the last scores on the development part were none of them the best."""
        return sum(row["step"] > self.best_step for row in self.curve) >= self.settings.patience

    def _judge(self, loss: float) -> None:
        scores = self.evaluate()
        row = {"step": self.step, "loss": round(loss, 4), **{f"dev_{k}": v for k, v in scores.items()}}
        self.curve.append(row)
        self.log(**row)
        if (found := next(iter(scores.values()))) > self.best:
            self.best, self.best_step = found, self.step
            self.export()


def label_of(encoder: Encoder) -> str:
    """The encoder's name; of a folder, its last part."""
    return Path(encoder.name).name if Path(encoder.name).is_dir() else encoder.name


def write_card(folder: Path, card: Mapping[str, Any]) -> None:
    """Write ``adapter.json`` and the card for people."""
    for name, text in (("adapter.json", json.dumps(card, indent=1) + "\n"), ("README.md", as_markdown(card))):
        unfinished = folder / f"unfinished.{name}"
        unfinished.write_text(text, "utf-8")
        unfinished.replace(folder / name)


def train(
    task: str,
    model: str = "minilm",
    *,
    to: Path | None = None,
    work: Path | None = None,
    device: str = "auto",
    minutes: float | None = None,
    fresh: bool = False,
    progress: bool = True,
    **changes: object,
) -> tuple[Path, bool]:
    """Train the adapter of a model for a task, or go on with it; then score it and write its card.

    Args:
        to: folder of the adapter (default ``data/adapters/<model>-<task>``).
        work: folder of the run's checkpoints and log (default ``_build/training/<model>-<task>``).
        minutes: stop after so many, to go on another time.
        fresh: forget an earlier run.
        changes: settings that differ from the recipe's, by name.

    Returns:
        The adapter's folder and whether the run has come to its end.

    Raises:
        AdapterError, helpers.corpora.readers.CorpusError, helpers.engine.encoders.EncoderError: each says what to do.
    """
    if task not in RECIPES:
        raise AdapterError(f"There is no task {task!r}. The tasks are {', '.join(RECIPES)}.")
    recipe = RECIPES[task]
    encoder = encoders.load(model, device=device)
    given = {"precision": native_precision(encoder.device)} | {k: v for k, v in changes.items() if v is not None}
    settings = replace(recipe.settings, **given)  # type: ignore[arg-type]
    settings = replace(settings, max_length=min(settings.max_length, encoder.max_length))
    found = parts(task, recipe, settings.seed)
    out = to or adapters.folder_of(model, task)
    work = work or places.ROOT / "_build" / "training" / out.name
    if fresh:
        shutil.rmtree(work, ignore_errors=True)
    if not any(work.glob("step-*")) and (out / "adapter.json").exists() and not fresh:
        raise AdapterError(
            f"There is an adapter in {out} already. Name another folder with --to, or replace it with --fresh."
        )
    student = Student.of(encoder, task, settings)
    if task == "mlm" and not any(work.glob("step-*")):
        start_from_frequencies(student, found.train)
    course = Course(student.encoder, found.train, settings)
    run = Run(task, student, settings, course, found.dev, work, out)
    ended = run.go(minutes=minutes)
    if (out / "adapter.json").exists():
        card = json.loads((out / "adapter.json").read_text("utf-8"))
        write_card(out, card | {"curve": run.curve})  # also what came after the best step
    else:
        raise AdapterError(
            f"There was no time for a first score (every {settings.evaluate_every} steps), so there is no adapter "
            f"yet. The run is at step {run.step}; the same command goes on."
        )
    finish(out, model, device=device, progress=progress)
    return out, ended


@torch.no_grad()
def start_from_frequencies(student: Student, examples: Sequence[Example]) -> None:
    """Let the bias over the vocabulary begin at the words' log frequencies, less their mean."""
    bias = student.weights["head.bias"]
    counts = torch.ones(len(bias))
    for example in examples[::4]:
        ids = student.encoder.tokenizer(
            tasks.texts_of(student.encoder, example)[0], add_special_tokens=False, verbose=False
        )
        counts += torch.bincount(torch.tensor(ids["input_ids"], dtype=torch.long), minlength=len(bias))
    logs = counts.log()
    bias.copy_(logs - logs.mean())


# ---------------------------------------------------------------------------------------- scores and the card


def finish(folder: Path, model: str, *, device: str = "auto", progress: bool = True) -> dict[str, Any]:
    """Score the adapter in a folder as readers load it, in single precision, and write the scores into its card.

    A corpus that is not on this machine is left out, and the card says so.
    """
    card = json.loads((folder / "adapter.json").read_text("utf-8"))
    encoder = encoders.load(model, task=str(folder), device=device)
    card["scores"] = [_scored(encoder, card["task"], e, progress) for e in RECIPES[card["task"]].evaluations]
    write_card(folder, card)
    if folder.parent.resolve() == places.adapters().resolve():
        (folder.parent / "README.md").write_text(index(folder.parent), "utf-8")
    return card


def index(folder: Path) -> str:
    """All cards of the adapters in a folder as one page, and which tasks ``minilm`` has none for yet."""
    cards = [json.loads(f.read_text("utf-8")) for f in sorted(folder.glob("*/adapter.json"))]
    scored = [card for card in cards if card["scores"]]
    lines = [
        "# The adapters",
        "",
        "| adapter | trained on | quoted score | on the book's own texts |",
        "| --- | --- | --- | --- |",
    ]
    for card in scored:
        there = [row for row in card["scores"] if row["task"] == card["task"] and not row.get("missing")]
        cells = [
            _quoted(there, lambda row: bool(row["floors"])),
            _quoted(there, lambda row: row["corpus"] == BOOK_TIER),
        ]
        trained = ", ".join(name for name, _ in card["data"]["train"])
        lines.append(f"| {card['model']}-{card['task']} | {trained} | {cells[0]} | {cells[1]} |")
    without = [
        t for t in adapters.LABELS if t != "rte" and ("minilm", t) not in {(c["model"], c["task"]) for c in scored}
    ]
    if without:
        lines += [
            "",
            f"None for `minilm` yet: {', '.join(without)}. Train it with `python -m helpers train TASK`, or load a "
            "checkpoint that has the head.",
        ]
    for card in scored:
        text = as_markdown(card).strip().split("\n")
        lines += ["", *(f"#{line}" if line.startswith("#") else line for line in text)]
    return "\n".join([*lines, ""])


def _quoted(rows: Sequence[Mapping[str, Any]], wanted: Callable[[Mapping[str, Any]], bool]) -> str:
    """The scores of the first row that is wanted, but the loss."""
    row = next((r for r in rows if wanted(r)), None)
    if row is None:
        return ""
    values = ", ".join(f"{name} {found[0]:.3f}" for name, found in row["scores"].items() if name != "loss")
    return f"{row['corpus']} {row['split'] or ''}".strip() + f": {values}"


def _scored(encoder: Encoder, task: str, wanted: Evaluation, progress: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "task": wanted.task or task,
        "corpus": wanted.corpus,
        "split": wanted.split,
        "floors": dict(wanted.floors),
    }
    try:
        given = tasks.examples(row["task"], wanted.corpus, wanted.split, limit=wanted.limit)
    except corpora.CorpusError:
        return row | {"missing": True}
    scores = tasks.score(encoder, given, progress=progress)
    row |= {"examples": len(given), "scores": {}}
    if not math.isnan(chance := tasks.majority(given)):
        row["majority"] = round(chance, 4)
    for name in scores.values:
        mean = StreamingMean((1,))
        values = scores.values[name] * scores.weights
        mean.add(scores.documents.tolist(), values[:, None], scores.weights[:, None])
        estimate = mean.estimate()
        row["scores"][name] = [round(float(v[0]), 4) for v in (estimate.value, estimate.low, estimate.high)]
    return row


def summary(folder: Path) -> list[str]:
    """A line for each score of a finished adapter."""
    card = json.loads((folder / "adapter.json").read_text("utf-8"))
    found = []
    for row in card["scores"]:
        where = f"{row['corpus']} {row['split'] or ''}".strip() + (
            f" as {row['task']}" if row["task"] != card["task"] else ""
        )
        if row.get("missing"):
            found.append(f"{where}: not on this machine, not scored")
        for name, (value, low, high) in row.get("scores", {}).items():
            floor = f", floor {row['floors'][name]:.2f}" if name in row["floors"] else ""
            found.append(f"{where}: {name} {value:.3f} [{low:.3f}, {high:.3f}]{floor}")
    return found


NAMES = {
    "mlm": "masked words",
    "qa": "extractive question answering",
    "paraphrase": "paraphrase or not",
    "entailment": "entailment, neutral or contradiction",
    "rte": "entailment or not",
    "keywords": "keyphrases",
}
BOOK_TIER = "encyclopedia"


def as_markdown(card: Mapping[str, Any]) -> str:
    """The card for people: what it is, how it was made, what it scores."""
    s, data = card["settings"], card["data"]
    epochs = card["step"] / card["steps_an_epoch"]
    trained = ", ".join(f"{name} ({split})" for name, split in data["train"])
    corners = card["corners"]
    hidden = f"{s['hidden']:.0%} of the tokens hidden; " if card["task"] == "mlm" else ""
    falling = (
        "falling to 0 at the last step"
        if len(corners) == 4
        else "then through " + ", ".join(f"{rate:.2g} at step {step:g}" for step, rate in corners[3:])
    )
    lines = [
        f"# {card['model']}-{card['task']}: {NAMES[card['task']]}",
        "",
        f"A task adapter for `{card['model']}`: low-rank changes of every linear map of its layers (LoRA, rank {card['rank']}, scale "
        f"{card['scale']:g}) and a head (`helpers.engine.adapters.{card['head']}`). It loads with "
        f'`encoders.load("{card["model"]}", task="{card["task"]}")`, which adds the changes to the weights with sha256 '
        f"`{card['model_sha256'][:16]}…`. Made with `python -m helpers train {card['task']}`.",
        "",
        "## Training",
        "",
        f"Data: {trained}; {data['train_examples']:,} examples, and {data['dev_examples']} more held out as the development part. "
        "The book's own corpora were not trained on and nothing was chosen by the sets below.",
        "",
        f"Stopped at the best development score: step {card['step']:,} of {s['steps']:,} ({epochs:.1f} passes over the data, "
        f"{card['minutes']:g} minutes until then), batches of {s['batch_size']}, inputs of up to {s['max_length']} tokens, AdamW with "
        f"learning rate {s['rate']:g} after {s['warmup']} steps of warm-up, {falling}; "
        f"{'with' if s['dropout'] else 'without'} the encoder's dropout; {hidden}{s['precision']}; seed {s['seed']}.",
        "",
        *_table(card["curve"], {"loss": "training loss (nats)"}),
        "",
        "## Scores",
        "",
    ]
    versions = ", ".join(f"{n} {v}" for n, v in card["versions"].items())
    notes = [f"\n{note}" for note in card.get("notes", [])]
    return "\n".join(
        [
            *lines,
            *_scores(card),
            *notes,
            "",
            f"Made with {versions}. The texts it was trained on are under their own licences "
            "(`python -m helpers corpora`); none of them is in this folder.",
            "",
        ]
    )


def _scores(card: Mapping[str, Any]) -> list[str]:
    """The table of scores, beside majorities and floors."""
    if not card["scores"]:
        return ["Not scored yet."]
    lines = [
        "In single precision, with 95 % bootstrap intervals over documents. A floor is what the book asks for.",
        "",
        "| set | examples | score | value | majority | floor |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in card["scores"]:
        where = row["corpus"] + (f" ({row['split']})" if row["split"] else " (the book's own)")
        where += f", as {row['task']}" if row["task"] != card["task"] else ""
        if row.get("missing"):
            lines.append(f"| {where} | not here when scored | | | | |")
            continue
        for name, (value, low, high) in row["scores"].items():
            floor = row["floors"].get(name)
            kept = "" if floor is None else f"{floor:.2f}: {'reached' if value >= floor else 'missed'}"
            chance = f"{row['majority']:.3f}" if name == "accuracy" and "majority" in row else ""
            lines.append(
                f"| {where} | {row['examples']:,} | {name} | {value:.3f} [{low:.3f}, {high:.3f}] | {chance} | {kept} |"
            )
    return lines


def _table(rows: Sequence[Mapping[str, float | int]], names: Mapping[str, str]) -> list[str]:
    if not rows:
        return ["No score yet."]
    columns = list(rows[0])
    head = [names.get(c, c.replace("dev_", "development ")) for c in columns]
    body = ["| " + " | ".join(f"{row[c]:g}" for c in columns) + " |" for row in rows]
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(columns), *body]
