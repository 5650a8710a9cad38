"""Training and scoring task adapters: LoRA (peft) on the linear maps of an encoder's layers, and a head, by transformers' Trainer.

``python -m helpers train qa`` calls :func:`train`. A run that was interrupted, even killed, goes on from its last checkpoint when the
same call is made again. What is kept is the state that is best on a development part, by its loss: the loss moves with every answer,
where the best of many accuracies on a few hundred examples is often that of a state that is sure of its errors. A recipe may name
another score (``choose``). :func:`score` scores a finished adapter and writes its card: ``adapter.json`` for programs, ``README.md`` for
people.
"""

import json
import math
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
import yaml
from datasets import Dataset
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import EarlyStoppingCallback, Trainer, TrainingArguments

from helpers import adapters, encoders, inputs, places, stats, tasks, tokens
from helpers.corpora import CorpusError
from helpers.run import notebooks, template

#: Task -> how its adapter is trained, what it is scored on, and what its card says.
RECIPES: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("recipes.yml").read_text("utf-8"))
#: What the Trainer is told in every run.
ARGUMENTS: dict[str, Any] = RECIPES.pop("trainer")
#: The settings of a run, where a recipe does not say otherwise.
DEFAULTS: dict[str, Any] = RECIPES.pop("defaults")


def read_examples(task: str, seed: int = 0) -> tuple[list[tasks.Example], list[tasks.Example]]:
    """A recipe's training examples and its development part.

    The development part is documents of the first corpus, drawn at random (``mlm``, ``keywords``: that corpus's own part). Examples of
    further corpora are left out where one of their texts stands in a set that the adapter is scored on.

    Raises:
        helpers.corpora.sources.CorpusError: when a corpus is not here.
    """
    recipe = RECIPES[task]
    first, *further = (tasks.examples(task, corpus, split) for corpus, split in recipe["train"])
    if task in ("mlm", "keywords"):
        dev = tasks.examples(task, recipe["train"][0][0], "dev", limit=recipe["dev"], seed=seed)
    else:
        place = np.random.default_rng([seed, 1]).permutation(1 + max(row.document for row in first))
        dev = sorted(first, key=lambda row: place[row.document])[: min(recipe["dev"], len(first) // 4)]
        held = {row.document for row in dev}
        first = [row for row in first if row.document not in held]
    scored = set()
    for wanted in recipe["evaluations"]:
        with suppress(CorpusError):  # what is not here is not scored either
            given = tasks.examples(wanted.get("task", task), wanted["corpus"], wanted.get("split"))
            scored |= {_letters(text) for row in given for text in row.texts}
    train = first + [row for part in further for row in part if not scored & set(map(_letters, row.texts))]
    in_dev = {row.texts for row in dev}
    return [row for row in train if row.texts not in in_dev], dev


def _letters(text: str) -> str:
    """Letters and digits only, so that spacing and punctuation do not tell copies of a sentence apart."""
    return "".join(filter(str.isalnum, text.lower()))


class Student(nn.Module):
    """An encoder with trainable low-rank changes and a head; the encoder's own weights are frozen.

    Attributes:
        encoder: with the head; its maps carry the changes, not merged.
        weights: the trainable tensors, named as in an adapter's file.
    """

    def __init__(self, encoder: encoders.Encoder, task: str, settings: Mapping[str, Any]) -> None:
        """Changes that do nothing yet (B = 0) on every linear map of the layers, and a fresh head, drawn from the seed.

        Raises:
            BookError: when peft is missing, or for an unknown task.
        """
        super().__init__()
        with places.extra("train", "Training (loading a finished adapter does not)"):
            from peft import LoraConfig, inject_adapter_in_model
        self.settings, self.model = settings, encoder.model
        maps = {"target_modules": "all-linear", "exclude_modules": ".*(pooler|embeddings).*"}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings["seed"])
            self.head = adapters.new_head(self.model, task).to(encoder.device)
            config = LoraConfig(r=settings["rank"], lora_alpha=settings["alpha"], **maps)
            inject_adapter_in_model(config, self.model)
        self.encoder = replace(encoder, head=self.head)
        self.weights = {f"head.{name}": weight for name, weight in self.head.named_parameters()}
        for path, module in self.model.named_modules():
            if hasattr(module, "lora_A"):
                self.weights[f"lora.{path}.A"] = module.lora_A["default"].weight
                self.weights[f"lora.{path}.B"] = module.lora_B["default"].weight

    def train(self, mode: bool = True) -> "Student":
        """Training mode, in the encoder only where its own dropout is wanted."""
        super().train(mode)
        self.model.train(mode and self.settings["dropout"])
        return self

    def batches(self, examples: Sequence[tasks.Example]) -> list[inputs.Asked]:
        """Examples as batches with their targets, with hidden and blanked tokens drawn anew each time."""
        longest = self.settings["max_length"]
        if examples[0].task == "qa":  # of each question, one window with the answer
            rows = [inputs.windows(self.encoder, example, number, longest) for number, example in enumerate(examples)]
            holding = [[window for window in row if window.answer] for row in rows]
            return [inputs.asked_questions(self.encoder, [random.choice(row) for row in holding if row])]
        options = {"batch_size": len(examples), "max_length": longest, "share": self.settings["hidden"]}
        batches = list(inputs.batches(self.encoder, examples, seed=random.getrandbits(32), **options))
        if self.settings["blanked"]:
            for asked in batches:
                ids = asked.batch.ids
                blank = (torch.rand(ids.shape) < self.settings["blanked"]).to(ids.device) & (asked.batch.text >= 0)
                ids.masked_fill_(blank, self.encoder.tokenizer.mask_token_id)
        return batches

    def forward(self, batches: Sequence[inputs.Asked]) -> dict[str, Tensor]:
        """Mean ``loss`` over the rows that ask for something: a window without the answer to its question does not.

        Raises:
            AdapterError: when the loss is no number any more.
        """
        smoothing = self.settings["smoothing"] if self.training else 0.0
        losses = torch.cat([tasks.losses(self.encoder, asked, smoothing) for asked in batches])
        asks = [(asked.targets != inputs.IGNORED).reshape(len(asked.targets), -1).any(1) for asked in batches]
        loss = losses.float()[torch.cat(asks)].mean()
        if not torch.isfinite(loss):
            raise adapters.AdapterError(f"The loss is {loss}. Train with a smaller rate, -p rate …")
        return {"loss": loss}

    @torch.no_grad()
    def start_from(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over the weights of the same name and shape: of a finished adapter, the changes and most of the head."""
        for name, weight in self.weights.items():
            if name in tensors and tensors[name].shape == weight.shape:
                weight.copy_(tensors[name])


class TaskTrainer(Trainer):
    """The library's Trainer with the book's scores on the development part."""

    def evaluate(self, *_: object, **__: object) -> dict[str, float]:
        """Scores on the development part, the loss among them."""
        student = self.model.eval()
        scores = tasks.score(student.encoder, self.eval_dataset)
        metrics = {f"eval_{name}": scores.mean(name) for name in scores.values}
        if "eval_loss" not in metrics:
            batches = list(inputs.batches(student.encoder, self.eval_dataset))
            with torch.no_grad():
                metrics["eval_loss"] = student(batches)["loss"].item()
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


def train(
    task: str, model: str = "minilm", *, to: Path | None = None, fresh: bool = False, **changes: object
) -> dict[str, Any]:
    """Train the adapter of a model for a task, or go on with it; then score it and write its card.

    Args:
        to: folder of the adapter (default ``data/adapters/<model>-<task>``).
        fresh: begin anew, and replace an adapter that is there.
        changes: settings that differ from the recipe's, by the names in ``recipes.yml``.

    Returns:
        The content of ``adapter.json``.

    Raises:
        adapters.AdapterError, helpers.corpora.sources.CorpusError, helpers.encoders.EncoderError: each says what to do.
    """
    recipe, folder = RECIPES[task], to or adapters.folder_of(model, task)
    for name in changes.keys() - DEFAULTS.keys() - recipe["settings"].keys():
        raise adapters.AdapterError(notebooks.unknown("There is no setting", name, DEFAULTS | recipe["settings"]))
    if (folder / "adapter.json").exists() and not fresh:
        raise adapters.AdapterError(
            f"There is an adapter in {folder} already: --score it, make it --fresh, or name another --to."
        )
    encoder = encoders.load(model)
    settings = DEFAULTS | recipe["settings"] | changes
    settings["max_length"] = min(settings["max_length"], encoder.max_length)
    # runs with other settings or weights have another folder, so that none goes on with the checkpoints of another
    work = places.build() / "training" / f"{folder.name}-{joblib.hash((settings, encoder.sha256))[:8]}"
    if fresh:
        shutil.rmtree(work, ignore_errors=True)
    examples, dev = read_examples(task, settings["seed"])
    student = Student(encoder, task, settings)
    if task == "mlm":  # the head's bias begins with the log frequencies of words, less their mean
        batches = tokens.batches(encoder, [row.texts for row in examples[::4]], truncate=True, unknown="<unk>")
        ids = torch.cat([batch.ids[batch.text >= 0].cpu() for batch in batches])
        logs = (1 + torch.bincount(ids, minlength=len(student.weights["head.bias"]))).log()
        student.start_from({"head.bias": logs - logs.mean()})
    if recipe.get("start"):
        student.start_from(adapters.read(adapters.folder_of(model, recipe["start"])).tensors)
    run = trainer(student, examples, dev, work)
    states = work.glob("checkpoint-*/trainer_state.json")  # written last: a half checkpoint has none
    last = max(states, key=lambda state: state.stat().st_mtime_ns, default=None)
    run.train(resume_from_checkpoint=last and str(last.parent))
    _write(folder, run)
    return score(folder, model)


def trainer(
    student: Student, examples: Sequence[tasks.Example], dev: Sequence[tasks.Example], work: Path
) -> TaskTrainer:
    """A Trainer that groups inputs of like length, keeps checkpoints, and ends with the best state."""
    settings = student.settings
    every = min(settings["evaluate_every"], settings["steps"])
    arguments = TrainingArguments(
        str(work),
        max_steps=settings["steps"],
        per_device_train_batch_size=settings["batch_size"],
        learning_rate=settings["rate"],
        warmup_steps=settings["warmup"],
        weight_decay=settings["weight_decay"],
        seed=settings["seed"],
        **dict.fromkeys(("eval_steps", "save_steps", "logging_steps"), every),
        metric_for_best_model=settings["choose"],
        greater_is_better=settings["choose"] != "loss",
        bf16=settings["precision"] == "bf16",
        use_cpu=student.encoder.device.type == "cpu",
        **ARGUMENTS,
    )
    lengths = [sum(map(len, example.texts)) for example in examples]
    return TaskTrainer(
        student,
        arguments,
        train_dataset=Dataset.from_dict({"number": range(len(examples)), "length": lengths}),
        eval_dataset=dev,
        data_collator=lambda rows: {"batches": student.batches([examples[row["number"]] for row in rows])},
        callbacks=[EarlyStoppingCallback(settings["patience"])],
    )


def _write(folder: Path, trainer: TaskTrainer) -> None:
    """Write the adapter, in half precision, and what is known of it."""
    student, examples = trainer.model, len(trainer.train_dataset)
    settings, task = student.settings, student.head.task
    curve = defaultdict(dict)
    for logged in trainer.state.log_history:
        shown = [name for name in logged if name == "loss" or name.startswith("eval_")]
        curve[logged["step"]] |= {name.replace("eval_", "dev_"): round(logged[name], 4) for name in shown}
    name = student.encoder.name
    card = {"format": adapters.FORMAT, "task": task, "model": Path(name).name if Path(name).is_dir() else name}
    card |= {"model_sha256": student.encoder.sha256}
    card |= {"labels": student.head.labels, "head": type(student.head).__name__}
    card |= {"rank": settings["rank"], "scale": settings["alpha"] / settings["rank"], "settings": settings}
    card["data"] = {name: RECIPES[task].get(name, "") for name in ("train", "start")}
    card["data"] |= {"train_examples": examples, "dev_examples": len(trainer.eval_dataset)}
    card |= {"step": trainer.state.best_global_step, "steps_an_epoch": -(-examples // settings["batch_size"])}
    card["curve"] = [{"step": step} | row for step, row in curve.items() if "dev_loss" in row]
    card["versions"] = {library: version(library) for library in ("torch", "transformers", "peft")}
    folder.mkdir(parents=True, exist_ok=True)
    half = {name: weight.detach().cpu().half().contiguous() for name, weight in student.weights.items()}
    save_file(half, folder / "adapter.safetensors")
    places.write(folder / "adapter.json", json.dumps(card | {"scores": []}, indent=1) + "\n")


def score(folder: Path, model: str) -> dict[str, Any]:
    """Score the adapter in a folder as readers load it, in single precision, and write ``adapter.json`` and its card for people.

    A corpus that is not on this machine is left out, and the card says so.

    Returns:
        The content of ``adapter.json``.
    """
    card = adapters.read(folder).card
    encoder = encoders.load(model, task=str(folder))
    recipe = RECIPES[card["task"]]
    card |= {"reference": recipe.get("reference", ""), "notes": recipe.get("notes", [])}
    card["scores"] = [_scores(encoder, {"task": card["task"]} | wanted) for wanted in recipe["evaluations"]]
    places.write(folder / "adapter.json", json.dumps(card, indent=1) + "\n")
    places.write(folder / "README.md", as_markdown(card))
    if folder.parent.resolve() == places.adapters().resolve():
        places.write(folder.parent / "README.md", index(folder.parent))
    return card


def _scores(encoder: encoders.Encoder, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A set that is scored, with each score and its interval over documents, which a single document has not."""
    row = {"task": wanted["task"], "corpus": wanted["corpus"], "split": wanted.get("split")}
    row |= {"floors": wanted.get("floors", {}), "reason": wanted.get("reason", "")}
    try:
        given = tasks.examples(row["task"], row["corpus"], row["split"], limit=wanted.get("limit"))
    except CorpusError:
        return row | {"missing": True}
    scores = tasks.score(encoder, given, progress=True)
    row |= {"examples": len(given), "scores": {}}
    if not math.isnan(chance := tasks.majority(given)):
        row["majority"] = round(chance, 4)
    for name, values in scores.values.items():
        score = stats.ratio(zip(values * scores.weights, scores.weights, strict=True), scores.documents)
        ends = map(float, (score.value, score.low, score.high))
        row["scores"][name] = [None if math.isnan(end) else round(end, 4) for end in ends]
    return row


def as_markdown(card: Mapping[str, Any]) -> str:
    """The card for people: what it is, how it was made, what it scores."""
    return template("card.md.j2").render(card=card, name=RECIPES[card["task"]]["name"])


def index(folder: Path) -> str:
    """The cards of all scored adapters in a folder as one page, with a table of what is quoted from each."""
    cards = [json.loads(file.read_text("utf-8")) for file in sorted(folder.glob("*/adapter.json"))]
    cards = [card for card in cards if card["scores"]]
    texts = [re.sub("^#", "##", as_markdown(card).strip(), flags=re.MULTILINE) for card in cards]
    there = {card["task"] for card in cards if card["model"] == "minilm"} | {"rte"}  # entailment's serves for it
    without = [task for task in RECIPES if task not in there]
    return template("adapters.md.j2").render(cards=cards, texts=texts, without=without)
