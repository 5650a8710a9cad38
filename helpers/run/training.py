"""Training task adapters: LoRA on every linear map of the encoder's layers, and a head.

``python -m helpers train qa`` calls :func:`train`. A run can be killed at any moment: the same command goes on from the
last checkpoint and ends with the same weights, because everything random (order, masks, windows, dropout) is
drawn from seeds made of the run's seed and the number of the step. Whenever the loss on the development part falls, the
adapter is written to its folder; :func:`finish` scores what lies there and writes its card. The loss chooses because it moves
with every answer: the best of many accuracies on a few hundred examples is often that of a state that is sure of its errors.
A recipe may name another score (``choose``).
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

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from tqdm import tqdm

from helpers import adapters, encoders, inputs, places, tasks
from helpers.adapters import AdapterError, Head
from helpers.encoders import Encoder
from helpers.inputs import Asked
from helpers.run import cards
from helpers.run.cards import finish
from helpers.run.course import RECIPES, WORKERS, Course, Settings, parts
from helpers.tasks import Example

LOG_EVERY = 10  # steps
KEEP_EVERY = 50  # steps between checkpoints
PROGRESS = ("step", "seconds", "best_step", "curve", "recent", "corners")
"""Of a run, what a checkpoint keeps beside the weights, the optimiser's moments and the best value of what chooses."""


def native_precision(device: torch.device) -> str:
    """``bf16`` where the processor computes it natively, which is two to three times faster, else ``fp32``."""
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "fp32"
    return "bf16" if getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)() else "fp32"


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
            BookError: when peft is missing, or for an unknown task.
        """
        with places.extra("train", "Training (loading a finished adapter does not)"):
            from peft import LoraConfig, inject_adapter_in_model
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
    linear = (name for name, module in model.named_modules() if isinstance(module, nn.Linear))
    return [name for name in linear if "pooler" not in name and "embeddings" not in name]


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
    best: float = math.inf
    best_step: int = -1
    curve: list[dict[str, float | int]] = field(default_factory=list)
    recent: list[float] = field(default_factory=list)
    corners: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        weights = self.student.weights.values()
        decay, other = [p for p in weights if p.dim() > 1], [p for p in weights if p.dim() <= 1]
        kinds = {"params": decay, "weight_decay": self.settings.weight_decay}, {"params": other, "weight_decay": 0.0}
        self.optimizer = torch.optim.AdamW(kinds, lr=self.settings.rate)
        s, warmup = self.settings, max(1, min(self.settings.warmup, self.settings.steps - 1))
        self.corners = [[-1, 0.0], [warmup - 1, s.rate], [warmup, s.rate], [s.steps, 0.0]]

    # -- one step

    def rate(self, step: int) -> float:
        """Learning rate of a step: straight lines between the corners, up in the warm-up, then down to 0."""
        steps, rates = zip(*self.corners, strict=True)
        return float(np.interp(step, steps, rates))

    def advance(self, asked: Asked | None = None) -> float:
        """One step, on the course's own batch or the same made ahead; its mean loss.

        Raises:
            AdapterError: when the loss is no number any more.
        """
        self.student.train(True, self.settings.dropout)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(self.step)
        torch.manual_seed(self.settings.seed * 1_000_003 + self.step)  # dropout, whatever happened before
        with self._precision():
            asked = (asked or self.course.asked(self.step)).to(self.student.encoder.device)
            loss = tasks.losses(self.student.encoder, asked, self.settings.smoothing).float().mean()
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
        mixed = self.settings.precision == "bf16"
        return torch.autocast(self.student.encoder.device.type, torch.bfloat16, enabled=mixed)

    def evaluate(self) -> dict[str, float]:
        """Scores on the development part, the loss (:func:`helpers.tasks.losses`) among them."""
        self.student.train(False, False)
        with self._precision():
            scores = tasks.score(self.student.encoder, self.dev)
            found = {name: scores.mean(name) for name in scores.values}
            if "loss" not in found:
                found["loss"] = self._loss()
        return {name: round(value, 4) for name, value in found.items()}

    @torch.no_grad()
    def _loss(self) -> float:
        """Mean loss over the windows of the development part that hold the answer."""
        per: list[float] = []
        for asked in inputs.batches(self.student.encoder, self.dev):
            there = (asked.targets != inputs.IGNORED).all(-1)
            per += tasks.losses(self.student.encoder, asked)[there].float().tolist()
        return float(np.mean(per))

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
        best = self.best if self.best_step >= 0 else None
        state = {"task": self.task, "settings": asdict(self.settings), "best": best}
        state |= {name: getattr(self, name) for name in PROGRESS}
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
        begun = state["settings"]
        changed = {k: v for k, v in asdict(self.settings).items() if k != "steps" and begun.get(k, v) != v}
        if other := [f"{k} {begun.get(k)!r}, now {v!r}" for k, v in changed.items()]:
            raise AdapterError(
                f"The run in {self.work} was begun with other settings ({'; '.join(other)}). Give the same "
                "ones to go on, or --fresh to begin anew."
            )
        self.student.load(load_file(found[-1] / "weights.safetensors"))
        for name in PROGRESS:
            setattr(self, name, state[name])
        if self.settings.steps != self.corners[-1][0] and self.step < self.settings.steps:
            now = [self.step, self.rate(self.step)]
            self.corners = [*[c for c in self.corners if c[0] < self.step], now, [self.settings.steps, 0.0]]
        self.best = math.inf if state["best"] is None else state["best"]
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
                "start": RECIPES[self.task].start,
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
        with places.whole(self.out / "adapter.safetensors") as scratch:
            save_file(half, scratch)
        cards.write(self.out, card)

    def go(self, *, minutes: float | None = None, after_step: Callable[[int], None] | None = None) -> bool:
        """Train until the schedule ends, the development loss stops falling, or the minutes are over.

        Returns:
            Whether the run has come to its end (False: the minutes were over, and the same command goes on).
        """
        self.work.mkdir(parents=True, exist_ok=True)
        if not self.resume():
            self.keep()
        self.cut_log()
        started, before = time.monotonic(), self.seconds
        named = f"{label_of(self.student.encoder)}-{self.task}"
        elsewhere = self.student.encoder.device != self.course.encoder.device
        ahead = self.course.ahead(self.step, self.settings.steps, WORKERS if elsewhere else 0)
        with tqdm(total=self.settings.steps, initial=self.step, desc=named, unit="step") as bar:
            while self.step < self.settings.steps and not self.stalled():
                self.recent = [*self.recent[-49:], self.advance(next(ahead))]
                self.seconds, loss = before + time.monotonic() - started, float(np.mean(self.recent))
                bar.update()
                best = f"{abs(self.best):.3f}" if self.best_step >= 0 else "none yet"
                bar.set_postfix(loss=f"{loss:.3f}", dev=best, refresh=False)
                if self.step % LOG_EVERY == 0:
                    now = {"rate": self.rate(self.step - 1), "seconds": round(self.seconds, 1)}
                    self.log(step=self.step, loss=round(loss, 4), **now)
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
        """Whether none of the last states was the best on the development part."""
        return sum(row["step"] > self.best_step for row in self.curve) >= self.settings.patience

    def _judge(self, loss: float) -> None:
        scores = self.evaluate()
        row = {"step": self.step, "loss": round(loss, 4), **{f"dev_{k}": v for k, v in scores.items()}}
        self.curve.append(row)
        self.log(**row)
        chooses = self.settings.choose
        found = scores[chooses] if chooses == "loss" else -scores[chooses]
        if found < self.best:
            self.best, self.best_step = found, self.step
            self.export()


def label_of(encoder: Encoder) -> str:
    """The encoder's name; of a folder, its last part."""
    return Path(encoder.name).name if Path(encoder.name).is_dir() else encoder.name


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
        AdapterError, helpers.corpora.sources.CorpusError, helpers.encoders.EncoderError: each says what to do.
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
    work = work or places.build() / "training" / out.name
    if fresh:
        shutil.rmtree(work, ignore_errors=True)
    if not any(work.glob("step-*")) and (out / "adapter.json").exists() and not fresh:
        raise AdapterError(
            f"There is an adapter in {out} already. Name another folder with --to, or replace it with --fresh."
        )
    student = Student.of(encoder, task, settings)
    if not any(work.glob("step-*")):
        if task == "mlm":
            start_from_frequencies(student, found.train)
        if recipe.start:
            start_from_adapter(student, model, recipe.start)
    here = student.encoder.device.type == "cpu"
    course = Course(student.encoder if here else encoders.load(model, device="cpu"), found.train, settings)
    run = Run(task, student, settings, course, found.dev, work, out)
    ended = run.go(minutes=minutes)
    if not (out / "adapter.json").exists():
        raise AdapterError(
            f"There was no time for a first score (every {settings.evaluate_every} steps), so there is no adapter "
            f"yet. The run is at step {run.step}; the same command goes on."
        )
    cards.write(out, cards.read(out) | {"curve": run.curve})  # also what came after the best step
    finish(out, model, device=device, progress=progress)
    return out, ended


def start_from_adapter(student: Student, model: str, task: str) -> None:
    """Take over what fits of a finished adapter: the low-rank changes, and the head's weights of the same shape.

    Raises:
        AdapterError: when there is none, or one of another scale.
    """
    folder = adapters.find(model, task)
    if folder is None:
        raise AdapterError(
            f"The run begins with the adapter for {task!r}, which is not here. Make it first: "
            f"python -m helpers train {task} --model {model}"
        )
    adapter = adapters.read(folder)
    if adapter.card["scale"] != student.scale:
        raise AdapterError(
            f"The adapter in {folder} has the scale {adapter.card['scale']:g}, the run {student.scale:g}."
        )
    own = student.tensors()
    student.load(own | {n: t for n, t in adapter.tensors.items() if n in own and t.shape == own[n].shape})


@torch.no_grad()
def start_from_frequencies(student: Student, examples: Sequence[Example]) -> None:
    """Let the bias over the vocabulary begin at the words' log frequencies, less their mean."""
    bias = student.weights["head.bias"]
    counts = torch.ones(len(bias))
    for example in examples[::4]:
        text = inputs.texts_of(student.encoder, example)[0]
        ids = student.encoder.tokenizer(text, add_special_tokens=False, verbose=False)
        counts += torch.bincount(torch.tensor(ids["input_ids"], dtype=torch.long), minlength=len(bias))
    logs = counts.log()
    bias.copy_(logs - logs.mean())
