"""How a reader's own corpus falls into parts: nothing is measured on what it was chosen or learnt on.

A treebank becomes ``train``, ``dev`` and ``test``: as its files are named, else by document, else by runs of sentences. A text
of a single article becomes runs of paragraphs, which stand for articles. What was done is said in one sentence
(:func:`helpers.corpora.readers.notes`), and recorded.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from helpers.corpora import sources, treebanks
from helpers.corpora.coreference import tags_of
from helpers.corpora.records import Corpus, Document
from helpers.corpora.sources import CorpusError

PARTS = ("train", "dev", "test")
SHARE = 0.2
"""Of the documents for ``dev``, and as many for ``test``; the rest is ``train``."""

SEED = 0
"""Of the draw; the same in every chapter, so that all of them score on the same documents."""

FEWEST_DOCUMENTS = 5
FEWEST_SENTENCES = 20
LONGEST_RUN = 10  # sentences or paragraphs
FEWEST_PARAGRAPHS = 8  # four runs of two: two to choose on, two to score on


@dataclass(frozen=True)
class Parted:
    """A treebank of one's own: the documents of each of :data:`PARTS`, and how they came to be there, in words."""

    train: tuple[Document, ...]
    dev: tuple[Document, ...]
    test: tuple[Document, ...]
    how: str

    @property
    def all(self) -> tuple[Document, ...]:
        """The documents of all parts, one part after another."""
        return self.train + self.dev + self.test


def treebank(name: str) -> Parted:
    """A treebank in three parts that share no document.

    Args:
        name: three paths with commas between (train, dev, test); a folder with files or folders so named (``*-ud-train.conllu``,
            ``train.conllu``, ``train/``); or any other file or folder, whose documents are then drawn, or runs of its sentences
            where it has fewer than five documents.

    Raises:
        CorpusError: for what is malformed, is the same file twice, or is too little for three parts.
    """
    paths = sources.given(name)
    files = [file for path in paths for file in sources.files(path)]
    return _parted(name, paths, tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in files))


@lru_cache(maxsize=4)
def _parted(name: str, paths: tuple[Path, ...], _state: tuple) -> Parted:
    """:func:`treebank` of files in their state of now: a chapter asks for each part by itself."""
    named = dict(zip(PARTS, [[path] for path in paths], strict=True)) if len(paths) == 3 else _named(paths[0])
    if not {"train", "test"} <= set(named):
        documents = _documents(_own_files(paths[0]))
        _refuse_few(name, documents)
        return _said(name, *_drawn(documents, {"dev": SHARE, "test": SHARE}))
    found = {part: _documents(files) for part, files in named.items()}
    _refuse_doubles(name, found)
    if "dev" in named:
        return _said(name, found, "as the files are named")
    parts, how = _drawn(found["train"], {"dev": SHARE / (1 - SHARE)})
    return _said(name, {**parts, "test": found["test"]}, f"as the files are named, dev of train {how}")


# ---------------------------------------------------------------------------------------- files and folders

_NAME = re.compile(r"(?:.+-ud-)?(train|dev|development|test)(?:-.+)?")


def _named(folder: Path) -> dict[str, list[Path]]:
    """The files and folders of a folder that are named after parts."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        match = _NAME.fullmatch(path.stem)
        if match and (path.is_dir() or path.name.endswith(("conllu", "conll"))):
            found.setdefault({"development": "dev"}.get(match[1], match[1]), []).append(path)
    return found


def _own_files(path: Path) -> list[Path]:
    """A file, or the CoNLL-U files of a folder; a folder without any is read whole, as one of CoNLL-2012 files."""
    return sorted(path.rglob("*.conllu")) or [path] if path.is_dir() else [path]


def _documents(paths: Sequence[Path]) -> tuple[Document, ...]:
    """The documents of some files; those whose names are in several files are told apart by the file's."""
    files = [file for path in paths for file in _own_files(path)]
    found = [(file, document) for file in files for document in treebanks.read(file)]
    if len({document.id for _, document in found}) == len(found):
        return tuple(document for _, document in found)
    return tuple(replace(document, id=f"{file.stem}: {document.id}") for file, document in found)


def _refuse_doubles(name: str, found: Mapping[str, Sequence[Document]]) -> None:
    """Make sure that no document of more than one sentence stands in two parts, under whichever name."""
    seen: dict[tuple, str] = {}
    for part, documents in found.items():
        for document in (d for d in documents if len(d.sentences) > 1):
            if (before := seen.setdefault(tuple(s.words for s in document.sentences), part)) != part:
                said = f"The document {document.id!r} of {part} stands in {before} as well."
                raise CorpusError(name, None, said, "others in each part: none is scored on that was learnt on.")


# ---------------------------------------------------------------------------------------- drawing


def _refuse_few(name: str, documents: Sequence[Document]) -> None:
    if len(documents) < FEWEST_DOCUMENTS and sum(len(d.sentences) for d in documents) < FEWEST_SENTENCES:
        wanted = f"{FEWEST_DOCUMENTS} documents or {FEWEST_SENTENCES} sentences at least, to learn on some and score on others"
        raise CorpusError(
            name, None, f"It has only {_count(documents)}.", f"{wanted}; or three files, train,dev,test."
        )


def _drawn(documents: Sequence[Document], shares: Mapping[str, float]) -> tuple[dict[str, tuple[Document, ...]], str]:
    """Documents, or runs of their sentences where they are few, by part (what no share asks for is ``train``); and how."""
    units, how = _units(documents), "by document"
    if len(set(units)) < FEWEST_DOCUMENTS:
        total = sum(len(d.sentences) for d in documents)
        documents = [run for d in documents for run in sentence_runs(d, total)]
        units = [d.id for d in documents]
        how = f"by runs of neighbouring sentences (fewer than {FEWEST_DOCUMENTS} documents; neighbours may be alike)"
    names = list(dict.fromkeys(units))
    order = [names[n] for n in np.random.default_rng(SEED).permutation(len(names))]
    part_of, count = {}, len(order)
    for part, share in shares.items():
        part_of |= {order.pop(): part for _ in range(max(1, round(share * count)))}
    drawn = {
        part: [d for d, u in zip(documents, units, strict=True) if part_of.get(u, "train") == part] for part in PARTS
    }
    return {part: tuple(found) for part, found in drawn.items() if found}, f"drawn {how}, seed {SEED}"


def _units(documents: Sequence[Document]) -> list[str]:
    """What must stay in one part, for each document: CoNLL-2012 cuts long ones into parts, and some stand twice in a file."""
    same: dict[tuple, str] = {}
    names = [re.sub(r" part \d+$", "", document.id) for document in documents]
    return [same.setdefault(tuple(s.words for s in d.sentences), n) for d, n in zip(documents, names, strict=True)]


def runs(count: int, shortest: int = 1, total: int | None = None) -> list[slice]:
    """Neighbours cut into runs of one length, a tenth of ``total`` (default: ``count``) but at most ten; the last may be longer."""
    length = int(np.clip((total or count) // 10, shortest, LONGEST_RUN))
    starts = [*range(0, count - length + 1, length)] or [0]
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], count], strict=True)]


_RUN = ", run "  # in the name of a run, before its number


def sentence_runs(document: Document, total: int | None = None) -> list[Document]:
    """Runs of a document's sentences as documents; a chain goes on in each run by itself."""
    found = []
    for number, run in enumerate(runs(len(document.sentences), total=total), 1):
        inside = [m for m in document.mentions if run.start <= m.sentence < run.stop]
        mentions = tuple(replace(m, sentence=m.sentence - run.start) for m in inside)
        found.append(Document(f"{document.id}{_RUN}{number}", document.sentences[run], mentions))
    return found


def _said(name: str, found: Mapping[str, Sequence[Document]], how: str) -> Parted:
    """The three parts; one that is a single long document is cut into runs of sentences, so that there is more than one to count."""
    cut = {part: len(d) == 1 and len(d[0].sentences) > LONGEST_RUN for part, d in found.items()}
    parts = {part: tuple(sentence_runs(d[0]) if cut[part] else d) for part, d in found.items()}
    counts = "; ".join(f"{part} {_count(parts[part])}" for part in PARTS)
    runs = ", one document in runs of sentences" if any(cut.values()) else ""
    return Parted(**parts, how=f"{sources.label(name)}: {how}{runs}: {counts}.")


def _count(documents: Sequence[Document]) -> str:
    sentences = sum(len(d.sentences) for d in documents)
    unit = "run" if any(_RUN in d.id for d in documents) else "document"
    return f"{len(documents)} {unit}{'s' * (len(documents) != 1)} ({sentences} sentences)"


def untagged(documents: Sequence[Document]) -> str:
    """A sentence on mentions whose head words have no part of speech, and whose kind is therefore guessed by form."""
    heads = [(d.sentences[m.sentence], m.head) for d in documents for m in d.mentions]
    guessed = sum(not tags_of(sentence, head) for sentence, head in heads)
    if not guessed:
        return ""
    return f"{guessed} of {len(heads)} mentions have no part-of-speech tag: pronoun, proper or nominal by the form of the word."


# ---------------------------------------------------------------------------------------- running text


def halves(corpus: Corpus) -> tuple[Corpus, str]:
    """A text whose articles with even and with odd numbers both have neighbouring paragraphs, and what was done for that.

    Heads are chosen on the one half and scored on the other. A text with a single such article is cut into runs of paragraphs
    that stand for articles; articles of one paragraph are left out where the others alone would all be even or odd.

    Raises:
        CorpusError: when there is too little for two halves; says how much is needed.
    """
    long = [number for number, article in enumerate(corpus.articles) if len(article.paragraphs) > 1]
    if {number % 2 for number in long} == {0, 1}:
        return corpus, ""
    if len(long) > 1:
        said = f"{corpus.name}: {len(corpus.articles) - len(long)} articles of one paragraph are left out."
        return replace(corpus, articles=tuple(corpus.articles[n] for n in long)), said
    article = max(corpus.articles, key=lambda a: len(a.paragraphs))
    if (count := len(article.paragraphs)) < FEWEST_PARAGRAPHS:
        found = (
            f"Only one article has two paragraphs or more, {count} in all."
            if long
            else "No article has two paragraphs."
        )
        wanted = "a text of several articles, two of them of two paragraphs or more (a line ' = Title = ' begins one), or one of "
        why = "heads are chosen on one half and scored on the other"
        raise CorpusError(
            corpus.name, None, found, f"{wanted}{FEWEST_PARAGRAPHS} paragraphs (lines of ten words or more): {why}."
        )
    cut = runs(count, 2)
    pieces = tuple(
        replace(article, id=f"{article.id}-{n}", paragraphs=article.paragraphs[run]) for n, run in enumerate(cut)
    )
    said = f"{corpus.name}: one article, so {len(pieces)} runs of its {count} paragraphs stand for articles."
    return replace(corpus, articles=pieces), said
