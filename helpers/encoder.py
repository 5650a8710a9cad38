"""A loaded model, and all that the book needs to know about it; :func:`helpers.encoders.load` makes one."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from helpers import adapters, places
from helpers.adapters import Head
from helpers.models import EncoderError


@dataclass(frozen=True)
class SpecialTokens:
    """The two special tokens that every input carries, by their role in BERT.

    ``cls`` opens an input and ``sep`` closes each of its texts. They are ``[CLS]`` and ``[SEP]`` in
    BERT's vocabulary, ``<s>`` and ``</s>`` in RoBERTa's and MPNet's.
    """

    cls: str
    sep: str
    cls_id: int
    sep_id: int
    pad_id: int


@dataclass(frozen=True, eq=False)
class Encoder:
    """A loaded model and all that the book needs to know about it.

    Attributes:
        name: the name given to :func:`load`.
        model: the model without a task head, in eval mode, float32 or float64, eager attention; an adapter is merged into it.
        tokenizer: its fast tokenizer.
        layers, heads: their numbers (a head is shown as ``layer-head``, both from 1).
        max_length: most tokens an input may have, special tokens included.
        special: which tokens play the roles of ``[CLS]`` and ``[SEP]``.
        sha256: digest of the weights file (for ``@random``: of the weights themselves).
        head: what makes logits of the last layer, for an encoder loaded with a task.
        source: name, task and seed that :func:`load` was given and :attr:`state` as it was then, so that another process can load
            the same; None for an encoder made in memory.
    """

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    layers: int
    heads: int
    max_length: int
    special: SpecialTokens
    sha256: str
    head: Head | None = None
    source: tuple[str, str | None, int, str] | None = None

    @property
    def label(self) -> str:
        """What pages call it: its name; of a folder, that of the folder with the first letters of its weights' sha256."""
        return places.label(self.name) if Path(self.name).is_absolute() else self.name

    @property
    def task(self) -> str | None:
        """What the head is for; None without one."""
        return self.head.task if self.head is not None else None

    def logits(self, batch: Any) -> torch.Tensor:
        """The head's answer to a batch, in one forward pass that the tap sees; shapes in :class:`helpers.adapters.Head`.

        Raises:
            EncoderError: without a head.
        """
        if self.head is None:
            raise EncoderError(
                f"{self.name!r} was loaded without a task; load it with task= one of {', '.join(adapters.LABELS)}."
            )
        return self.head(self.model(**batch.inputs).last_hidden_state, batch)

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        return self.model.dtype

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(p.numel() for p in self.model.parameters())

    @property
    def state(self) -> str:
        """Digest of all that decides what the encoder computes: weights, head, configuration, tokenizer."""
        passing = ("_name_or_path", "transformers_version", "dtype", "torch_dtype")
        config = {k: v for k, v in self.model.config.to_dict().items() if k not in passing}
        vocabulary = json.loads(self.tokenizer.backend_tokenizer.to_str())
        vocabulary |= {"truncation": None, "padding": None}  # of the last call
        names = ("special_tokens_map", "model_input_names", "truncation_side", "padding_side")
        roles = {name: getattr(self.tokenizer, name) for name in names}
        settings = json.dumps([config, vocabulary, roles, self.max_length], sort_keys=True, default=str)
        weights = [
            {name: tensor.numpy(force=True) for name, tensor in module.state_dict().items()}
            for module in (self.model, self.head)
            if module is not None
        ]
        head = self.head and (type(self.head).__name__, self.task, self.head.labels)
        return joblib.hash((type(self.model).__name__, settings, weights, head))

    def __repr__(self) -> str:
        task = f" with a head for {self.task!r}" if self.task else ""
        return (
            f"Encoder {self.name!r}: {type(self.model).__name__}, {self.layers} layers x {self.heads} heads{task}\n"
            f"{self.parameters / 1e6:.0f} M parameters, up to {self.max_length} tokens, on {self.device}\n"
            f"sha256 of the weights {self.sha256[:16]}…"
        )
