"""Where things lie on disk, and how a file is written so that nobody ever sees half of it.

Notebooks record into ``_build/runs``; only what is asked to record changes tracked files.
"""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

from platformdirs import user_cache_path

#: The folder that holds ``helpers/``.
HOME = Path(__file__).resolve().parent.parent

#: What an installed wheel has in place of a checkout's folders (``setup.py``).
_PACKED = HOME / "helpers" / "packed"

#: Whether this is the package of a wheel, in which nothing is written, and not a checkout.
INSTALLED = _PACKED.is_dir()

#: The folder that holds ``data/``, ``notebooks/``, ``book/``: the checkout.
ROOT = _PACKED if INSTALLED else HOME

#: Folder of results that were measured on a reader's own corpora, in place of a profile's: never among the book's.
OWN = "own"


class BookError(Exception):
    """An error that is an answer: it says what is wrong, where, and what to do next. The command line shows its message alone."""


def book_data() -> Path:
    """Folder of the small corpora, ``papers.yml`` and recorded results that travel with the book."""
    return ROOT / "data"


def full_data() -> Path | None:
    """Folder of the real corpora (``BOOK_DATA``), or None when the reader has not named one.

    Raises:
        BookError: when it is not there, since older corpora in the cache would be read in its place.
    """
    folder = os.environ.get("BOOK_DATA")
    if folder and not Path(folder).is_dir():
        raise BookError(f"BOOK_DATA names {folder!r}, which is not a folder.")
    return Path(folder) if folder else None


def cache() -> Path:
    """Folder for fetched models and corpora (``BOOK_CACHE``, else the system's user cache)."""
    return Path(os.environ.get("BOOK_CACHE") or user_cache_path("attention-heads-book"))


def build() -> Path:
    """Folder for what commands make: ``_build`` in the checkout; of an installed package, in the folder one stands in."""
    return (Path.cwd() if INSTALLED else ROOT) / "_build"


def results() -> Path:
    """Folder that runs record into: ``BOOK_RESULTS``, else ``_build/runs/results``, so that no run changes what the book keeps."""
    return Path(os.environ.get("BOOK_RESULTS") or build() / "runs" / "results")


def adapters() -> Path:
    """Folder of the task adapters (``BOOK_ADAPTERS``, else ``data/adapters``)."""
    return Path(os.environ.get("BOOK_ADAPTERS") or book_data() / "adapters")


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Say which extra of the package brings a library that is imported here and not installed.

    Raises:
        BookError: for a library that is not there.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        install = f"pip install 'attention-heads-book[{name}]' (in a checkout: pip install -e '.[{name}]')"
        raise BookError(f"{what} needs {error.name}, which is not installed. Get it with: {install}.") from None


def label(model: str) -> str:
    """What files and folders of a model are called: its name; of a folder of one's own, the folder's and the sha256 of its weights.

    So models in folders of one name stay apart, and one that was moved stays the same. ``BOOK_NAME`` gives another name than
    the folder's.
    """
    base = model.removesuffix("@random")
    folder = Path(base)
    if not (folder.is_absolute() and folder.is_dir()):
        return model.replace("/", "--")
    weights = sorted(folder.glob("model*.safetensors"))
    digest = _weights_digest(tuple((file, file.stat().st_mtime_ns) for file in weights))
    name = os.environ.get("BOOK_NAME", "").replace("/", "-") or folder.name
    return f"{name}-{digest[:8]}{model.removeprefix(base)}"


@lru_cache
def _weights_digest(files: tuple[tuple[Path, int], ...]) -> str:
    """sha256 of files, computed again when their times have changed."""
    return sha256(*(file for file, _ in files))


def write(file: Path, content: str | bytes) -> None:
    """Write a file in one step: beside it, and then under its name. One that would not change is left alone.

    Raises:
        BookError: where the folder cannot be written; says how another one is named.
    """
    content = content.encode() if isinstance(content, str) else content
    if file.is_file() and file.read_bytes() == content:
        return
    scratch = file.with_name(f"{file.name}.{uuid4().hex}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch.write_bytes(content)
        scratch.replace(file)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        others = "name another folder with --to, or in BOOK_RESULTS (numbers) or BOOK_CACHE (models, corpora)"
        raise BookError(f"You may not write {file}: {others}.") from None
    finally:
        with suppress(OSError):  # mostly it is not there any more
            scratch.unlink()


def sha256(*files: Path) -> str:
    """Checksum of one file, or of several one after another."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            hashlib.file_digest(opened, lambda: digest)
    return digest.hexdigest()
