"""A model and its weights, read from a folder: no network, no pickle, no code of others, and nothing that is not there.

The library initialises weights that a file lacks at random and leaves out those that it does not know, without an error.
Both are refused here, by name.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import PreTrainedModel

from helpers.models import DamagedModel, readable

FROM_FOLDER = {
    "attn_implementation": "eager",
    "use_safetensors": True,
    "local_files_only": True,
    "trust_remote_code": False,
    "dtype": torch.float32,
    "ignore_mismatched_sizes": True,  # the library's own error does not name them; ours does
    "output_loading_info": True,
}
"""How every checkpoint is read."""


def read(kind: Any, folder: Path, files: Sequence[Path]) -> tuple[PreTrainedModel, list[str]]:
    """A model of a kind (``AutoModel``, …) with a folder's weights, and which weights of a task head are missing.

    Args:
        files: those that hold the weights (:func:`helpers.models.weights_files`).

    Raises:
        DamagedModel: when the files cannot be read, or the encoder's weights are not all there, have other shapes, or
            are more than the configuration tells of. A pooler may be missing: no chapter uses it, and a head that
            does comes with its own. A head of any kind may be there.
    """
    with readable(f"The model in {folder}"):
        model, report = kind.from_pretrained(folder, **FROM_FOLDER)
        wrong = _foreign(model, report, files)
    if wrong:
        raise DamagedModel(
            f"The weights in {folder} are not those of the {type(model.base_model).__name__} that its config.json describes: "
            f"{'; '.join(wrong)}. Save model and configuration together, with save_pretrained."
        )
    return model, sorted(key for key in report["missing_keys"] if not _pooler(key))


def _foreign(model: PreTrainedModel, report: Mapping[str, Iterable], files: Sequence[Path]) -> list[str]:
    """What is wrong with the encoder's weights, in words; empty when nothing is.

    A checkpoint with a head says ``bert.`` before the names of the encoder's weights. What stands beside them is the
    head; in a checkpoint without that word there is none.
    """
    prefix, parts = model.base_model_prefix + ".", {name for name, _ in model.base_model.named_children()}

    def of_encoder(key: str) -> bool:
        return key.removeprefix(prefix).split(".")[0] in parts and not _pooler(key)

    missing = [key for key in report["missing_keys"] if of_encoder(key)]
    shapes = [f"{key} {list(found)}, not {list(wanted)}" for key, found, wanted in report["mismatched_keys"]]
    unknown = [key for key in report["unexpected_keys"] if not _pooler(key)]
    if any(key.startswith(prefix) for key in _names(files, unknown)):
        unknown = [key for key in unknown if of_encoder(key)]
    found = {"without": missing, "of another shape": shapes, "unknown": unknown}
    return [f"{what} {_first(keys)}" for what, keys in found.items() if keys]


def _pooler(key: str) -> bool:
    return "pooler" in key.split(".")


def _names(files: Sequence[Path], needed: list[str]) -> list[str]:
    """Names of all weights in the files, if they are needed."""
    names: list[str] = []
    for file in files if needed else ():
        with safe_open(file, framework="pt") as opened:
            names += opened.keys()
    return names


def _first(keys: Iterable[str], most: int = 3) -> str:
    names = sorted(keys)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
