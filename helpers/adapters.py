"""What turns an encoder into a model for a task: a small adapter, or the head that a checkpoint came with.

An adapter lies in ``data/adapters/<model>-<task>/``: low-rank changes of the encoder's linear maps
(LoRA, Hu et al. 2022) and a head, as half-precision safetensors, with ``adapter.json`` and a card. Merging
adds ``scale · B A`` to each weight, after which the encoder is an ordinary one, with as many heads
as before, that the tap can observe and edit. Readers come here through ``encoders.load("minilm", task="qa")``;
adapters are made by :mod:`helpers.run.training`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import BaseModelOutput, BaseModelOutputWithPooling
from transformers.utils import ModelOutput

from helpers import models, places

#: The tasks, and what the last dimension of their logits stands for (mlm: the vocabulary).
LABELS: dict[str, tuple[str, ...]] = {
    "mlm": (),
    "qa": ("start", "end"),
    "paraphrase": ("not_paraphrase", "paraphrase"),
    "entailment": ("entailment", "neutral", "contradiction"),
    "rte": ("entailment", "not_entailment"),
    "keywords": ("outside", "begin", "inside"),
}

HUB_HEADS = {
    "mlm": AutoModelForMaskedLM,
    "qa": AutoModelForQuestionAnswering,
    "keywords": AutoModelForTokenClassification,
}
SYNONYMS = {"equivalent": "paraphrase", "not_equivalent": "not_paraphrase"}
SYNONYMS |= {"o": "outside", "b": "begin", "i": "inside"}
FORMAT = 1


class AdapterError(places.BookError, ValueError):
    """An adapter is missing or does not fit; the message says why and what to do next."""


class Head(nn.Module):
    """``head(hidden, batch) -> logits``, of a :class:`helpers.tokens.Batch`.

    ``hidden`` [batch, length, width] is the encoder's last layer. The logits are [batch, length, vocabulary] for
    ``mlm``, [batch, length, start or end] for ``qa``, [batch, length, class] for ``keywords``, and [batch, class] for
    pairs of sentences.

    Attributes:
        task: a key of :data:`LABELS`.
        labels: what the last dimension of the logits stands for.
        whole: whether it needs the hidden states of the whole batch, or ``mlm`` can ask for some positions only.
        sha256: digest of the file it was read from; empty for a head in the making.
    """

    whole = True

    def __init__(self, task: str, labels: tuple[str, ...] | None = None) -> None:
        super().__init__()
        self.task = task
        self.labels = LABELS[task] if labels is None else labels
        self.sha256 = ""


class MaskedWords(Head):
    """BERT's head for masked words: a transformation, then the word embeddings themselves, then a bias.

    Works position by position, so ``hidden`` may also be [position, width], only the masked ones, say.
    """

    whole = False

    def __init__(self, model: PreTrainedModel, task: str) -> None:
        super().__init__(task)
        words = model.get_input_embeddings().weight
        self.tied = (words,)  # in a tuple, so that it is no weight of the head's own
        self.dense = nn.Linear(model.config.hidden_size, words.shape[1])
        self.norm = nn.LayerNorm(words.shape[1])
        self.bias = nn.Parameter(torch.zeros(words.shape[0]))

    def forward(self, hidden: Tensor, batch: Any = None) -> Tensor:
        return self.norm(nn.functional.gelu(self.dense(hidden))) @ self.tied[0].T + self.bias


class TokenClasses(Head):
    """One linear map: how much each token looks like the first, and like the last, of the answer (qa); or like one outside, at the
    beginning of, or inside a keyphrase (keywords, with dropout in training).
    """

    def __init__(self, model: PreTrainedModel, task: str) -> None:
        super().__init__(task)
        self.dropout = nn.Dropout(getattr(model.config, "hidden_dropout_prob", 0.1) if task == "keywords" else 0.0)
        self.out = nn.Linear(model.config.hidden_size, len(self.labels))

    def forward(self, hidden: Tensor, batch: Any = None) -> Tensor:
        return self.out(self.dropout(hidden))


class PairClasses(Head):
    """Compares the mean vectors u and v of the two texts: a small network on u, v, their distance and their product.

    It sees ``[u, v, |u - v|, u · v]``, place by place. The vectors come from one forward pass over the pair, so each
    text has seen the other. The mean, not ``[CLS]``, is what the book's two embedded models were trained to use.
    """

    def __init__(self, model: PreTrainedModel, task: str) -> None:
        super().__init__(task)
        width = model.config.hidden_size
        self.dropout = nn.Dropout(getattr(model.config, "hidden_dropout_prob", 0.1))
        self.dense = nn.Linear(4 * width, width // 2)
        self.out = nn.Linear(width // 2, len(self.labels))

    def forward(self, hidden: Tensor, batch: Any) -> Tensor:
        member = torch.stack([batch.text == 0, batch.text == 1], dim=1).to(hidden.dtype)
        u, v = (member @ hidden / member.sum(-1, keepdim=True).clamp_min(1)).unbind(1)
        features = self.dropout(torch.cat([u, v, (u - v).abs(), u * v], dim=-1))
        return self.out(self.dropout(nn.functional.gelu(self.dense(features))))


class HubHead(Head):
    """The head that a checkpoint came with, whatever its family.

    The library's own task model runs on a stand-in for the encoder that returns the hidden states given, so nothing
    of the head is written anew here.
    """

    def __init__(self, model: PreTrainedModel, task: str, labels: tuple[str, ...]) -> None:
        super().__init__(task, LABELS[task] if task == "keywords" else labels)
        self.columns = [labels.index(name) for name in self.labels]
        setattr(model, model.base_model_prefix, _StandIn(model.base_model))
        self.model = model.eval().requires_grad_(False)

    def forward(self, hidden: Tensor, batch: Any) -> Tensor:
        output = self.model(**batch.inputs, inputs_embeds=hidden)
        if self.task == "qa":
            return torch.stack([output.start_logits, output.end_logits], -1)
        return output.logits[..., self.columns] if self.task == "keywords" else output.logits


class _StandIn(nn.Module):
    """Returns the "embeddings" given as its last layer; the pooler, where a family has one, is the encoder's own."""

    def __init__(self, encoder: PreTrainedModel) -> None:
        super().__init__()
        self.pooler = getattr(encoder, "pooler", None)
        self.activation = getattr(encoder, "pooler_activation", None)  # ALBERT keeps it beside its pooler
        self.embeddings = getattr(encoder, "embeddings", None)

    def forward(self, *_: object, inputs_embeds: Tensor, **__: object) -> ModelOutput:
        if self.pooler is None:
            return BaseModelOutput(last_hidden_state=inputs_embeds)
        pooled = self.activation(self.pooler(inputs_embeds[:, 0])) if self.activation else self.pooler(inputs_embeds)
        return BaseModelOutputWithPooling(last_hidden_state=inputs_embeds, pooler_output=pooled)


def new_head(model: PreTrainedModel, task: str) -> Head:
    """An untrained head of the book's own kind, for a task of :data:`LABELS`."""
    return {"mlm": MaskedWords, "qa": TokenClasses, "keywords": TokenClasses}.get(task, PairClasses)(model, task)


@dataclass(frozen=True, eq=False)
class Adapter:
    """What an adapter's folder holds.

    Attributes:
        folder: where it lies.
        card: the content of ``adapter.json``: task, model, rank, scale, training, scores, floors.
        tensors: ``lora.<map>.A`` [rank, in], ``lora.<map>.B`` [out, rank] and ``head.<weight>``.
        sha256: digest of the weights' file.
    """

    folder: Path
    card: dict[str, Any]
    tensors: dict[str, Tensor]
    sha256: str


def folder_of(model: str, task: str) -> Path:
    """Where the adapter of a model for a task belongs."""
    return places.adapters() / f"{Path(model).name.replace('/', '--')}-{task}"


def find(model: str, task: str) -> Path | None:
    """The folder of an adapter: that of model and task, or ``task`` itself when it is a folder that holds one."""
    folder = Path(task) if (Path(task) / "adapter.json").is_file() else folder_of(model, task)
    if task not in LABELS and folder != Path(task):
        raise AdapterError(
            f"There is no task {task!r}, and no folder with an adapter.json of that name. "
            f"The tasks are {', '.join(LABELS)}."
        )
    return folder if (folder / "adapter.json").is_file() else None


def read(folder: Path) -> Adapter:
    """Read an adapter's files, nothing else than JSON and safetensors.

    Raises:
        AdapterError: for a file that is missing, damaged or not of this format.
    """
    weights = folder / "adapter.safetensors"
    try:
        card = json.loads((folder / "adapter.json").read_text("utf-8"))
        tensors = {name: tensor.float() for name, tensor in load_file(weights).items()}
    except (OSError, ValueError, SafetensorError) as error:
        raise AdapterError(
            f"The adapter in {folder} cannot be read ({error}). Restore the folder, or train it "
            "anew: python -m helpers train --help"
        ) from None
    if card.get("format") != FORMAT or card.get("task") not in LABELS:
        raise AdapterError(f"{folder / 'adapter.json'} is not an adapter of format {FORMAT} for a task of the book.")
    return Adapter(folder, card, tensors, places.sha256(weights))


def apply(adapter: Adapter, model: PreTrainedModel, *, name: str, sha256: str) -> Head:
    """Merge an adapter into the bare encoder, in place, and return its head.

    Raises:
        AdapterError: when the adapter was made for other weights.
    """
    made_for = adapter.card["model_sha256"]
    if made_for != sha256:
        raise AdapterError(
            f"The adapter in {adapter.folder} was made for {adapter.card['model']!r} with other weights than those "
            f"of {name!r}.\n  made for sha256 {made_for}\n  found    sha256 {sha256}\n"
            f"Train one: python -m helpers train {adapter.card['task']} --model {name}"
        )
    merge(model, adapter.tensors, adapter.card["scale"])
    head = new_head(model, adapter.card["task"])
    own = {n.removeprefix("head."): t for n, t in adapter.tensors.items() if n.startswith("head.")}
    head.load_state_dict(own)
    head.sha256 = adapter.sha256
    return head.eval().requires_grad_(False)


@torch.no_grad()
def merge(model: nn.Module, tensors: dict[str, Tensor], scale: float) -> None:
    """Add ``scale · B A`` to the weight of each map that has a ``lora.<map>.A`` and ``.B``."""
    for name, a in tensors.items():
        if name.startswith("lora.") and name.endswith(".A"):
            path = name.removeprefix("lora.").removesuffix(".A")
            weight = model.get_submodule(path).weight
            weight += (scale * tensors[f"lora.{path}.B"] @ a).to(weight)


def load_with_head(
    folder: Path, config: PretrainedConfig, files: Sequence[Path], task: str, *, name: str
) -> tuple[PreTrainedModel, Head]:
    """A checkpoint's encoder and its own head for a task, from safetensors.

    Raises:
        AdapterError: when the checkpoint has no such head, or one for other classes.
        DamagedModel: see :func:`helpers.models.read_weights`.
    """
    kind = HUB_HEADS.get(task, AutoModelForSequenceClassification)
    train = f"python -m helpers train {task} --model {name}"
    advice = f"Train an adapter: {train}; or name a checkpoint that has the head."
    if type(config) not in kind._model_mapping:
        raise AdapterError(
            f"{name!r} can have no head for {task!r}: its family, {config.model_type}, has none. {advice}"
        )
    model, missing = models.read_weights(kind, folder, files)
    if missing:
        raise AdapterError(f"{name!r} has no head for {task!r} (no {', '.join(missing[:3])}). {advice}")
    labels = LABELS[task] if task in ("mlm", "qa") else _labels(model, task, name)
    return model.base_model, HubHead(model, task, labels)


def _labels(model: PreTrainedModel, task: str, name: str) -> tuple[str, ...]:
    """The checkpoint's classes in the book's words; nameless ones (LABEL_0, …) are taken to be in GLUE's order."""
    named = [str(model.config.id2label[i]).lower().replace(" ", "_") for i in range(model.config.num_labels)]
    if len(named) == len(LABELS[task]) and all(n == f"label_{i}" for i, n in enumerate(named)):
        return LABELS[task]
    labels = tuple(SYNONYMS.get(n.removesuffix("-key"), n) for n in named)
    if sorted(labels) != sorted(LABELS[task]):
        raise AdapterError(
            f"The classes of {name!r} are {', '.join(named)}; {task!r} needs {', '.join(LABELS[task])}."
        )
    return labels
