"""Find, verify and load an encoder.

``load("minilm")`` works offline from an ordinary dependency; ``load("mpnet")`` after
``python -m helpers fetch mpnet``; any Hugging Face hub id or local folder with safetensors weights; and
``load(…, control="random")`` for the papers' control. Nothing here ever unpickles a file or runs code that
came with a model.
"""

import copy
import copyreg
import hashlib
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from torch import nn
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_MAPPING,
)

from helpers import DTYPES, adapters, models, places, validation
from helpers.adapters import Head
from helpers.encoder import Encoder, SpecialTokens
from helpers.models import KNOWN, WORKING_FAMILIES, EncoderError, NotAnEncoder, UnknownModel, available, fetch  # noqa: F401 (what callers of load need besides)


def _reduced(encoder: Encoder) -> tuple[Any, tuple[Any, ...]]:
    """Another process loads an encoder by its name where it is still as it was loaded; elsewhere the weights travel."""
    if encoder.source is None or encoder.source[-1] != encoder.state:
        return Encoder, tuple(getattr(encoder, field.name) for field in fields(encoder))
    name, task, seed, state = encoder.source
    device = "auto" if encoder.device == best_device() else str(encoder.device)
    return _loaded_again, (name, task, seed, device, str(encoder.dtype).removeprefix("torch."), state)


copyreg.pickle(Encoder, _reduced)


def _loaded_again(name: str, task: str | None, seed: int, device: str, dtype: str, state: str) -> Encoder:
    encoder = load(name, task=task, seed=seed, device=device, dtype=dtype)
    if encoder.state != state:
        raise EncoderError(
            f"{name!r} has other weights on this worker than where the run was started. Give all machines the same files "
            "(BOOK_CACHE, BOOK_ADAPTERS)."
        )
    return encoder


def load(
    name: str = "minilm",
    *,
    control: Literal["random"] | None = None,
    task: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    seed: int = 0,
) -> Encoder:
    """Load an encoder, verified and ready to be tapped.

    Args:
        name: ``minilm`` (default, offline), ``mpnet`` (after ``python -m helpers fetch mpnet``), a local
            folder, a Hugging Face hub id, or any of these followed by ``@random``.
        control: ``random`` for the same as ``@random`` behind the name: the same architecture with word and absolute
            position embeddings kept and every other weight drawn anew from the model's own initialisation (the
            control of Clark et al. 2019, section 5).
        task: ``mlm``, ``qa``, ``paraphrase``, ``entailment``, ``rte`` or ``keywords``, or the folder of an adapter. The model's adapter
            in ``data/adapters`` is merged and its head goes with the encoder; a model without one must be a
            checkpoint that brings the head itself.
        device: ``auto`` (cuda, else mps, else cpu) or a torch device.
        dtype: what it computes in: ``auto`` (what ``BOOK_DTYPE`` names, else float32), or one of :data:`DTYPES`.
        seed: of the control only; the same seed gives the same weights.

    Raises:
        UnknownModel, DamagedModel, NotAnEncoder: see each in :mod:`helpers.models`.
        helpers.adapters.AdapterError: when there is neither an adapter nor a head for the task.
    """
    name = f"{name.removesuffix('@random')}@{control}" if control else name
    base = name.removesuffix("@random")
    if task is not None and base != name:
        raise adapters.AdapterError(f"{name!r} has random weights, for which no adapter can be made. Load {base!r}.")
    adapter = adapters.find(base, task) if task is not None else None
    folder = models.find(base)
    config = models.read_config(base, folder)
    _refuse_others(base, config)
    weights = models.weights_files(base, folder)
    digest = models.verified(weights[0], base) if base in KNOWN else places.sha256(*weights)
    head = None
    with _quiet(), _same_draws(0):  # a pooler that the weights lack is drawn, alike each time
        if task is not None and adapter is None:
            model, head = adapters.load_with_head(folder, config, weights, task, name=base)
        else:
            model, _ = models.read_weights(AutoModel, folder, weights)
        tokenizer = models.read_tokenizer(base, folder)
    if adapter is not None:
        head = adapters.apply(adapters.read(adapter), model, name=base, sha256=digest)
    if Path(base).is_dir() and base not in KNOWN:  # one name of a folder, wherever one stands
        name = str(Path(base).resolve()) + name.removeprefix(base)
    if name.endswith("@random"):
        model = _randomised(model, seed)
        digest = _digest_of_tensors(model)
    encoder = wrap(model, tokenizer, name=name, sha256=digest, device=device, dtype=dtype, head=head)
    return replace(encoder, source=(name, task, seed, encoder.state))


def wrap(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    name: str,
    sha256: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    head: Head | None = None,
) -> Encoder:
    """Make an :class:`Encoder` of a model and a fast tokenizer that are already in memory.

    Raises:
        NotAnEncoder: for a decoder, a model of images, a slow tokenizer, or attention that the tap cannot reach.
        DamagedModel: when model and tokenizer do not fit, or the weights are no numbers; see :mod:`helpers.validation`.
    """
    _refuse_others(name, model.config)
    cls, sep = tokenizer.cls_token or tokenizer.bos_token, tokenizer.sep_token or tokenizer.eos_token
    if cls is None or sep is None:
        raise NotAnEncoder(f"The tokenizer of {name!r} has no tokens in the roles of [CLS] and [SEP].")
    ids = tokenizer.convert_tokens_to_ids([cls, sep])
    tokenizer.truncation_side = tokenizer.padding_side = "right"  # the beginning of a text is read, whoever saved it
    place = {"device": best_device() if device == "auto" else device, "dtype": precision(dtype)}
    model = model.to(**place).eval().requires_grad_(False)
    encoder = Encoder(
        name=name,
        model=model,
        tokenizer=tokenizer,
        layers=model.config.num_hidden_layers,
        heads=model.config.num_attention_heads,
        max_length=_max_length(model),
        special=SpecialTokens(cls, sep, *ids, tokenizer.pad_token_id or 0),
        sha256=sha256 or _digest_of_tensors(model),
        head=head and head.to(**place),
    )
    validation.check(encoder)
    return encoder


def with_new_head(encoder: Encoder, task: str, *, seed: int = 0) -> Encoder:
    """The same encoder with a head that has learned nothing: what a measurement shows without any skill."""
    with _same_draws(seed):
        head = adapters.new_head(encoder.model, task)
    return replace(encoder, head=head.eval().requires_grad_(False).to(encoder.device))


def _refuse_others(name: str, config: transformers.PretrainedConfig) -> None:
    """Refuse what its configuration shows to be no encoder of text, before any weights are read."""
    kind = type(config)
    takes = getattr(MODEL_MAPPING[kind], "main_input_name", "input_ids") if kind in MODEL_MAPPING else "nothing known"
    causal = kind in MODEL_FOR_CAUSAL_LM_MAPPING and kind not in MODEL_FOR_MASKED_LM_MAPPING
    decoder = config.is_encoder_decoder or causal or getattr(config, "is_decoder", False)
    layers, heads = (getattr(config, key, None) for key in ("num_hidden_layers", "num_attention_heads"))
    problems = {
        f"takes {takes}, not the tokens of a text": takes != "input_ids",
        "is a decoder: a token sees only its past": decoder,
        f"has {layers} layers of {heads} heads": not (layers and heads),
    }
    for problem, there in problems.items():
        if there:
            raise NotAnEncoder(
                f"{name!r} ({config.model_type}) {problem}; the book's measurements are defined for bidirectional "
                f"encoders of text. Families that work: {WORKING_FAMILIES}."
            )


def best_device() -> torch.device:
    """The device that ``auto`` means here: the one that ``BOOK_DEVICE`` names, else cuda, else mps, else cpu."""
    there = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    return torch.zeros(1, device=os.environ.get("BOOK_DEVICE") or there).device


def precision(dtype: str = "auto") -> torch.dtype:
    """What ``auto`` means here: what ``BOOK_DTYPE`` names, else float32.

    Raises:
        EncoderError: for a type that is not one of :data:`DTYPES`.
    """
    named = (os.environ.get("BOOK_DTYPE") or "float32") if dtype == "auto" else dtype
    if named not in DTYPES:
        raise EncoderError(f"Models compute in {' or '.join(DTYPES)} here, not in {named!r}.")
    return getattr(torch, named)


def _max_length(model: PreTrainedModel) -> int:
    positions = getattr(model.config, "max_position_embeddings", None) or sys.maxsize
    for name, module in model.named_modules():
        # RoBERTa and MPNet count positions from padding_idx + 1
        if name.endswith("position_embeddings") and isinstance(getattr(module, "weight", None), nn.Parameter):
            padding = getattr(module, "padding_idx", None)
            positions = min(positions, len(module.weight) - (0 if padding is None else padding + 1))
    return int(positions)


def _digest_of_tensors(model: PreTrainedModel) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _randomised(model: PreTrainedModel, seed: int) -> PreTrainedModel:
    """The same architecture, its word and absolute position embeddings kept, all else drawn anew."""
    with _same_draws(seed), _quiet():
        fresh = AutoModel.from_config(copy.deepcopy(model.config), attn_implementation="eager")
    old = dict(model.named_parameters())
    words = {id(model.get_input_embeddings().weight)}
    with torch.no_grad():
        for name, weight in fresh.named_parameters():
            if id(old[name]) in words or name.endswith("position_embeddings.weight"):
                weight.copy_(old[name])
    return fresh


@contextmanager
def _same_draws(seed: int) -> Iterator[None]:
    """Draw by a seed, and leave the caller's generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' loading bars and notices about unused heads out of notebooks."""
    logging, level = transformers.utils.logging, transformers.utils.logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    with ExitStack() as after, warnings.catch_warnings(action="ignore"):
        after.callback(logging.enable_progress_bar)
        after.callback(logging.set_verbosity, level)
        yield
