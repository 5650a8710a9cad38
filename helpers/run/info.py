"""What is on this machine: models, corpora, versions, as ``python -m helpers info`` prints it (``info.txt.j2``)."""

import os
import platform
import sys
from importlib.metadata import distributions

import psutil
import torch

from helpers import corpora, encoders, models, places
from helpers.corpora import sources
from helpers.run import part

LIBRARIES = ("torch", "transformers", "numpy", "scikit-learn", "matplotlib", "papermill", "jupyter-book")


def text(what: str, *, counts: bool = True) -> str:
    """The part on ``models``, ``corpora`` or the ``machine``.

    Args:
        counts: read the files of corpora to count what is in them.
    """
    known = {"encoders": encoders, "sources": sources, "count": corpora.count, "counts": counts, "facts": facts}
    return part("info.txt.j2", what, **known)


def facts() -> dict[str, str]:
    """Versions, cores, memory, device, folders, and whether the hub can be reached."""
    installed = {distribution.name: distribution.version for distribution in distributions()}
    memory = psutil.virtual_memory().total / 2**30
    about = {"python": f"{platform.python_version()} ({sys.executable})"}
    about |= {name: installed.get(name, "not installed") for name in LIBRARIES}
    return about | {
        "machine": f"{os.cpu_count()} cores, {memory:.0f} GiB of memory, {platform.platform()}",
        "device": f"{encoders.best_device()}, {torch.get_num_threads()} threads",
        "cache": str(places.cache()),
        "real corpora": str(places.full_data() or "none: set BOOK_DATA or pass --data"),
        "hub": models.hub_state(),  # takes a while where it cannot be reached
    }
