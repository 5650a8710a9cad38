"""What is on this machine: models, corpora, versions. Each function gives lines to read; ``python -m helpers info`` prints them."""

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import psutil
import torch

from helpers import corpora, encoders, models, places
from helpers.corpora import sources

LIBRARIES = ("torch", "transformers", "numpy", "scikit-learn", "matplotlib", "papermill", "jupyter-book")


def known_models() -> Iterator[str]:
    """The models that need no hub, and whether they are here."""
    for name, folder in encoders.available().items():
        known = encoders.KNOWN[name]
        yield f"{name:8} {known.what}"
        yield f"{'':8} {folder or 'not here yet: ' + known.how}"
    yield f"{'any':8} a Hugging Face hub id, or a local folder with safetensors weights"
    yield f"{'':8} add @random for the control: same architecture, embeddings kept, other weights drawn anew"


def known_corpora(*, counts: bool = True) -> Iterator[str]:
    """Every corpus that chapters know by name: where it was found, how much it is, its licence.

    Args:
        counts: read the files to count what is in them.
    """
    yield f"Looked in: {', '.join(map(str, sources.folders()))}"
    for entry in sources.CATALOGUE:
        yield f"\n{entry.name} ({entry.kind}; {entry.licence})"
        how = f"python -m helpers fetch {entry.name}" if entry.name in sources.RECIPES else "--data DIR"
        for split in entry.files:
            file = sources.find(entry, split)
            yield f"  {split:10} {file or f'not here; {how}'}"
            if file and counts:
                yield f"  {'':10} {corpora.count(entry.name, entry.kind, split)}"


def machine() -> Iterator[str]:
    """Versions, cores, memory, device, folders, and whether the hub can be reached."""
    yield f"{'python':13} {platform.python_version()} ({sys.executable})"
    for name in LIBRARIES:
        try:
            yield f"{name:13} {version(name)}"
        except PackageNotFoundError:
            yield f"{name:13} not installed"
    memory = psutil.virtual_memory().total / 2**30
    yield f"{'machine':13} {os.cpu_count()} cores, {memory:.0f} GiB of memory, {platform.platform()}"
    yield f"{'device':13} {encoders.best_device()}, {torch.get_num_threads()} threads"
    yield f"{'cache':13} {places.cache()}"
    yield f"{'real corpora':13} {places.full_data() or 'none: set BOOK_DATA or pass --data'}"
    yield f"{'hub':13} {models.hub_state()}"  # takes a while where it cannot be reached
