"""How a reader's own corpus falls into parts: nothing is measured on what it was chosen or learnt on.

A treebank becomes ``train``, ``dev`` and ``test``: as its files are named, else by document, else by runs of sentences. A text
of a single article becomes runs of paragraphs, which stand for articles. What was done is said in one sentence
(:func:`helpers.corpora.readers.notes`), and recorded.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from helpers.corpora import sources, treebanks
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


def treebank(name: str) -> tuple[dict[str, tuple[Document, ...]], str]:
    """A treebank of one's own in three parts that share no document, by the names in :data:`PARTS`; and how they came to be, in words.

    Args:
        name: three paths with commas between (train, dev, test); a folder with files or folders so named (``*-ud-train.conllu``,
            ``train.conllu``, ``train/``); or any other file or folder, whose documents are then drawn, or runs of its sentences
            where it has fewer than five documents.

    Raises:
        CorpusError: for what is malformed, is the same file twice, or is too little for three parts.
    """
    paths = sources.treebank_paths(name)
    states = [(file, file.stat().st_mtime_ns, file.stat().st_size) for file in sources.files(*paths)]
    return _parted(name, tuple(paths), tuple(states))


@lru_cache(maxsize=4)
def _parted(name: str, paths: tuple[Path, ...], _states: tuple) -> tuple[dict[str, tuple[Document, ...]], str]:
    """:func:`treebank` of files in their state of now: a chapter asks for each part by itself."""
    named = {part: [path] for part, path in zip(PARTS, paths, strict=True)} if len(paths) == 3 else {}
    for path in sorted(paths[0].iterdir()) if paths[0].is_dir() else []:
        part = re.fullmatch(r"(?:.+-ud-)?(train|dev|test)(?:elopment)?(?:-.+)?", path.stem)
        if part and (path.is_dir() or path.name.endswith(("conllu", "conll"))):
            named.setdefault(part[1], []).append(path)
    if {"train", "test"} <= set(named):
        parts, how = {part: _documents(files) for part, files in named.items()}, "as the files are named"
        _refuse_doubles(name, parts)
        if "dev" not in parts:
            drawn, drawn_how = _drawn(parts["train"], {"dev": SHARE / (1 - SHARE)})
            parts, how = {**parts, **drawn}, f"{how}, dev of train {drawn_how}"
    else:
        documents = _documents(paths)
        if len(documents) < FEWEST_DOCUMENTS and sum(len(d.sentences) for d in documents) < FEWEST_SENTENCES:
            wanted = f"{FEWEST_DOCUMENTS} documents or {FEWEST_SENTENCES} sentences at least, to learn on some and score on others"
            problem = f"It has only {_count(documents)}."
            raise CorpusError(name, None, problem, f"{wanted}; or three files, train,dev,test.")
        parts, how = _drawn(documents, {"dev": SHARE, "test": SHARE})
    cut = [part for part in PARTS if len(parts[part]) == 1 and len(parts[part][0].sentences) > LONGEST_RUN]
    for part in cut:  # so that there is more than one to count
        parts[part] = tuple(sentence_runs(parts[part][0]))
    how += ", one document in runs of sentences" if cut else ""
    counts = "; ".join(f"{part} {_count(parts[part])}" for part in PARTS)
    return {part: parts[part] for part in PARTS}, f"{sources.label(name)}: {how}: {counts}."


def _documents(paths: Sequence[Path]) -> tuple[Document, ...]:
    """The documents of some files, of folders their CoNLL-U files; those whose names are in several files are told apart by the file's."""
    files = [file for path in paths for file in (sorted(path.rglob("*.conllu")) if path.is_dir() else []) or [path]]
    documents = [(file, document) for file in files for document in treebanks.read(file)]
    if len({document.id for _, document in documents}) == len(documents):
        return tuple(document for _, document in documents)
    return tuple(replace(document, id=f"{file.stem}: {document.id}") for file, document in documents)


def _words(document: Document) -> tuple[tuple[str, ...], ...]:
    return tuple(sentence.words for sentence in document.sentences)


def _refuse_doubles(name: str, parts: Mapping[str, Sequence[Document]]) -> None:
    """Make sure that no document of more than one sentence stands in two parts, under whichever name."""
    seen: dict[tuple, str] = {}
    for part, documents in parts.items():
        for document in documents:
            before = seen.setdefault(_words(document), part)
            if before != part and len(document.sentences) > 1:
                problem = f"The document {document.id!r} of {part} stands in {before} as well."
                raise CorpusError(name, None, problem, "others in each part: none is scored on that was learnt on.")


def _drawn(documents: Sequence[Document], shares: Mapping[str, float]) -> tuple[dict[str, tuple[Document, ...]], str]:
    """Documents, or runs of their sentences where they are few, by part (what no share asks for is ``train``); and how.

    What must stay in one part has one unit: CoNLL-2012 cuts long documents into parts, and some stand twice in a file.
    """
    same: dict[tuple, str] = {}
    units = [same.setdefault(_words(d), re.sub(r" part \d+$", "", d.id)) for d in documents]
    how = "by document"
    if len(set(units)) < FEWEST_DOCUMENTS:
        total = sum(len(d.sentences) for d in documents)
        documents = [run for d in documents for run in sentence_runs(d, total)]
        units = [d.id for d in documents]
        how = f"by runs of neighbouring sentences (fewer than {FEWEST_DOCUMENTS} documents; neighbours may be alike)"
    names = list(dict.fromkeys(units))
    order = [names[n] for n in np.random.default_rng(SEED).permutation(len(names))]
    part_of = dict.fromkeys(names, "train")
    for part, share in shares.items():
        part_of |= {order.pop(): part for _ in range(max(1, round(share * len(names))))}
    parts: dict[str, tuple[Document, ...]] = {}
    for document, unit in zip(documents, units, strict=True):
        parts[part_of[unit]] = (*parts.get(part_of[unit], ()), document)
    return parts, f"drawn {how}, seed {SEED}"


def runs(count: int, shortest: int = 1, total: int | None = None) -> list[slice]:
    """Neighbours cut into runs of one length, a tenth of ``total`` (default: ``count``) but at most ten; the last may be longer."""
    length = int(np.clip((total or count) // 10, shortest, LONGEST_RUN))
    starts = [*range(0, count - length + 1, length)] or [0]
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], count], strict=True)]


def sentence_runs(document: Document, total: int | None = None) -> list[Document]:
    """Runs of a document's sentences as documents; a chain goes on in each run by itself."""
    pieces = []
    for number, run in enumerate(runs(len(document.sentences), total=total), 1):
        inside = [m for m in document.mentions if run.start <= m.sentence < run.stop]
        mentions = tuple(replace(m, sentence=m.sentence - run.start) for m in inside)
        pieces.append(Document(f"{document.id}, run {number}", document.sentences[run], mentions))
    return pieces


def _count(documents: Sequence[Document]) -> str:
    sentences = sum(len(d.sentences) for d in documents)
    unit = "run" if any(", run " in d.id for d in documents) else "document"
    return f"{len(documents)} {unit}{'s' * (len(documents) != 1)} ({sentences} sentences)"


def untagged(documents: Sequence[Document]) -> str:
    """A sentence on mentions whose head words have no part of speech, and whose kind is therefore guessed by form."""
    tags = [treebanks.tags_of(d.sentences[m.sentence], m.head) for d in documents for m in d.mentions]
    if all(tags):
        return ""
    return f"{tags.count(set())} of {len(tags)} mentions have no part-of-speech tag: pronoun, proper or nominal by the form of the word."


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
        how = f"{corpus.name}: {len(corpus.articles) - len(long)} articles of one paragraph are left out."
        return replace(corpus, articles=tuple(corpus.articles[n] for n in long)), how
    article = max(corpus.articles, key=lambda a: len(a.paragraphs))
    count = len(article.paragraphs)
    if count < FEWEST_PARAGRAPHS:
        only = f"Only one article has two paragraphs or more, {count} in all."
        wanted = (
            "a text of several articles, two of them of two paragraphs or more (a line ' = Title = ' begins one), or one of "
            f"{FEWEST_PARAGRAPHS} paragraphs (lines of ten words or more): heads are chosen on one half and scored on the other."
        )
        raise CorpusError(corpus.name, None, only if long else "No article has two paragraphs.", wanted)
    pieces = [article.paragraphs[run] for run in runs(count, 2)]
    articles = (replace(article, id=f"{article.id}-{n}", paragraphs=piece) for n, piece in enumerate(pieces))
    how = f"{corpus.name}: one article, so {len(pieces)} runs of its {count} paragraphs stand for articles."
    return replace(corpus, articles=tuple(articles)), how
