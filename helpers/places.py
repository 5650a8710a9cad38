"""Where things lie on disk, and how a file is written so that nobody ever sees half of it.

Notebooks record into ``_build/runs``; only what is asked to record changes tracked files.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
"""The folder that holds ``helpers/``."""

_PACKED = HOME / "helpers" / "packed"
"""What an installed wheel has in place of a checkout's folders (``setup.py``)."""

INSTALLED = _PACKED.is_dir()
"""Whether this is the package of a wheel, in which nothing is written, and not a checkout."""

ROOT = _PACKED if INSTALLED else HOME
"""The folder that holds ``data/``, ``notebooks/``, ``book/``: the checkout."""

OWN = "own"
"""Folder of results that were measured on a reader's own corpora, in place of a profile's: never among the book's."""


ROOM = 1 << 20
"""Bytes that must fit into a folder before work for it begins."""


class BookError(Exception):
    """An error that is an answer: it says what is wrong, where, and what to do next. The command line shows its message alone."""


def book_data() -> Path:
    """Folder of the small corpora, ``papers.yml`` and recorded results that travel with the book."""
    folder = ROOT / "data"
    if not folder.is_dir():
        raise FileNotFoundError(
            f"The book's data folder {folder} is missing. Install a wheel of the book, or a checkout: pip install -e ."
        )
    return folder


def full_data() -> Path | None:
    """Folder of the real corpora (``BOOK_DATA``), or None when the reader has not named one."""
    folder = os.environ.get("BOOK_DATA")
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise FileNotFoundError(f"BOOK_DATA names {folder!r}, which is not a folder.")
    return Path(folder)


def cache() -> Path:
    """Folder for fetched models and corpora (``BOOK_CACHE``, else the system's user cache).

    Raises:
        BookError: when ``BOOK_CACHE`` names something that is no folder.
    """
    if named := os.environ.get("BOOK_CACHE"):
        if Path(named).exists() and not Path(named).is_dir():
            raise BookError(f"BOOK_CACHE names {named!r}, which is not a folder. Name one, or unset it.")
        return Path(named)
    from platformdirs import user_cache_path

    return user_cache_path("attention-heads-book")


def build() -> Path:
    """Folder for what commands make: ``_build`` in the checkout; of an installed package, in the folder one stands in."""
    return (Path.cwd() if INSTALLED else ROOT) / "_build"


def results() -> Path:
    """Folder that runs record into: ``BOOK_RESULTS``, else ``_build/runs/results``, so that no run changes what the book keeps."""
    return Path(os.environ.get("BOOK_RESULTS") or build() / "runs" / "results")


def checkout(what: str) -> None:
    """Refuse what only a checkout can do.

    Raises:
        BookError: in an installed package.
    """
    if INSTALLED:
        raise BookError(
            f"{what} needs a checkout of the book's repository; this is the package of a wheel, in {HOME}."
        )


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Say which extra of the package brings a library that is imported here and not installed.

    Raises:
        BookError: for a library that is not there.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "helpers":
            raise
        raise BookError(
            f"{what} needs {error.name}, which is not installed. Get it with: pip install 'attention-heads-book[{name}]' "
            f"(in a checkout: pip install -e '.[{name}]')."
        ) from None


def adapters() -> Path:
    """Folder of the task adapters (``BOOK_ADAPTERS``, else ``data/adapters``)."""
    return Path(os.environ.get("BOOK_ADAPTERS") or book_data() / "adapters")


def label(model: str) -> str:
    """What files and folders of a model are called: its name; of a folder of one's own, the folder's and the sha256 of its weights.

    So models in folders of one name stay apart, and one that was moved stays the same. ``BOOK_NAME`` gives another name than
    the folder's.
    """
    base = model.removesuffix("@random")
    if not (Path(base).is_absolute() and Path(base).is_dir()):
        return model.replace("/", "--")
    weights = sorted(Path(base).glob("model*.safetensors"))
    state = _digest_of(tuple((file, file.stat().st_size, file.stat().st_mtime_ns) for file in weights))
    name = os.environ.get("BOOK_NAME", "").replace("/", "-") or Path(base).name
    return f"{name}-{state[:8]}{model.removeprefix(base)}"


@lru_cache(maxsize=64)
def _digest_of(files: tuple[tuple[Path, int, int], ...]) -> str:
    return sha256(*(file for file, *_ in files))


@contextmanager
def atomic_write(file: Path) -> Iterator[Path]:
    """A file to write beside ``file``, which becomes ``file`` in one step when all is written."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
    os.close(handle)
    scratch = Path(name)
    try:
        scratch.chmod(0o644)
        yield scratch
        with scratch.open("rb") as written:
            os.fsync(written.fileno())
        scratch.replace(file)
    except OSError as error:
        error.filename = error.filename or str(file)  # a full disk does not say which
        raise
    finally:
        with suppress(FileNotFoundError):
            scratch.unlink()


def writable(*folders: Path) -> None:
    """Make folders, and see that files fit into them, which is better known before hours of work than after.

    Raises:
        OSError: where not.
    """
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with tempfile.TemporaryFile(dir=folder) as scratch:
                scratch.write(bytes(ROOM))
        except OSError as error:
            error.filename = str(folder)
            raise


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[None]:
    """Be the only process that works in a folder; however the process ends, others may then.

    Raises:
        BookError: while another does.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BookError(
            f"Another command is at work in {folder}. Wait until it ends, or end it; then give this one again."
        ) from None
    try:
        yield
    finally:
        lock.release()


def write(file: Path, content: str | bytes) -> None:
    """Write a file in one step; one that would not change is left alone."""
    content = content.encode() if isinstance(content, str) else content
    if not (file.is_file() and file.read_bytes() == content):
        with atomic_write(file) as scratch:
            scratch.write_bytes(content)


def sha256(*files: Path) -> str:
    """Checksum of one file, or of several one after another."""
    total = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            while block := opened.read(1 << 20):
                total.update(block)
    return total.hexdigest()
