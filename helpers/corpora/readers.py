"""One call for each kind of text, by name or by path.

:func:`read` gives running text, :func:`documents` trees and coreference, :func:`questions`, :func:`pairs`,
:func:`keyphrases` and :func:`vectors` what their names say; each takes a corpus by name (the catalogue is in
:mod:`helpers.corpora.sources`) or by path. Whatever is wrong with a file is reported as a :class:`~helpers.corpora.sources.CorpusError` that names
the file, the line, what was found and what was expected, and nothing is half-loaded.
"""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from helpers import places
from helpers.corpora import formats, parts, sources, treebanks
from helpers.corpora.formats import read_pairs
from helpers.corpora.records import Corpus, Document, KeyedText, Pair, Question, Segment, Vectors, sample
from helpers.corpora.sources import TASKS, CorpusError, locate


def read(name: str, split: str | None = None) -> Corpus:
    """Read a corpus of running text.

    Args:
        name: ``encyclopedia`` (travels with the book), ``wikitext``, or the path of a file in either format:
            ``.jsonl`` as the encyclopedia, ``.csv.gz`` with one article a row, anything else as plain text with one
            article after another (WikiText layout).
        split: ``train``, ``dev`` or ``test`` (wikitext only; default: test).
    """
    path, known = locate(name, "text", split), sources.entry(name, "text")
    corpus = formats.read_encyclopedia(path) if path.suffix == ".jsonl" else formats.read_plain_text(path)
    if known:
        return replace(corpus, name=name, licence=known.licence)
    with suppress(CorpusError):  # too little for two halves, which not everybody needs
        corpus = replace(corpus, parts=parts.halves(corpus)[1])
    return replace(corpus, own=True)


def documents(name: str, split: str | None = None, *, trees: bool = False) -> tuple[Document, ...]:
    """Read sentences with trees, and coreference chains.

    Args:
        name: ``encyclopedia``, ``gum``, ``gum-ontonotes`` (the GUM documents with coreference after the OntoNotes
            guidelines; with GUM's trees when ``gum`` is there), ``ewt``, or the path of a ``.conllu`` file, of a
            CoNLL-2012 file, of a folder of such files; or three paths with commas between.
        split: ``train``, ``dev`` or ``test`` (default). The documents of a path are drawn into these parts
            (:func:`helpers.corpora.parts.treebank`); without a split all of them are read.
        trees: refuse documents without a single tree.

    Raises:
        CorpusError: for a file that is malformed, has no tree where ``trees`` are asked for, or is too little for three parts.
    """
    gum = name == "gum-ontonotes" and sources.find(sources.entry("gum", "treebank"), split or "test")
    if sources.entry(name, "treebank") is None:
        by_part, _ = parts.treebank(name)
        if split not in (None, *by_part):
            raise CorpusError(name, None, f"There is no split {split!r}.", f"one of {', '.join(by_part)}.")
        chosen = tuple(d for part in by_part if split in (None, part) for d in by_part[part])
    elif gum:
        of_gum = {document.id: document for document in treebanks.read(gum)}
        chosen = treebanks.read_conll(locate(name, "treebank", split), of_gum)
    else:
        chosen = treebanks.read(locate(name, "treebank", split))
    if trees and not any(s.governors for d in chosen for s in d.sentences):
        where = f"the part {split!r}" if split else "it"
        problem = f"No sentence of {where} has a tree (governors, the column HEAD)."
        raise CorpusError(name, None, problem, "a treebank in CoNLL-U; mentions alone are enough for chapter 05.")
    return chosen


def held_out(
    name: str, choose_on: Sequence[str], *, trees: bool = False
) -> tuple[tuple[Document, ...], tuple[Document, ...]]:
    """The documents of a treebank to choose heads on, its parts ``choose_on``, and those to score them on, its part ``test``.

    Args:
        trees: as in :func:`documents`.

    Raises:
        CorpusError: when ``test`` is among the parts to choose on, and as :func:`documents` does.
    """
    if "test" in choose_on:
        raise CorpusError(name, None, "The part 'test' is for scoring.", "'train', 'dev' or both to choose on.")
    chosen_on = tuple(d for part in choose_on for d in documents(name, part, trees=trees))
    return chosen_on, documents(name, "test", trees=trees)


def provenance(name: str, kind: str, *splits: str) -> Corpus:
    """Name, digest and licence of the files that a measurement read, for :func:`helpers.results.record`."""
    known = sources.entry(name, kind)
    if known is None and kind == "text":
        return replace(read(name), articles=())
    if known is None:
        paths = sources.treebank_paths(name) if kind == "treebank" else [locate(name, kind)]
        corpus = Corpus(sources.label(name), "", "unknown", (), own=True)
        corpus = replace(corpus, parts=parts.treebank(name)[1] if kind == "treebank" else "")
    else:
        paths = [locate(name, kind, split) for split in splits or (None,)]
        corpus = Corpus(name, "", known.licence, ())
    return replace(corpus, sha256=places.sha256(*sources.files(*paths)))


def own(**names: str | Sequence[str]) -> tuple[Corpus, ...]:
    """Of the corpora that a chapter reads, those that are a reader's own: ``own(treebank=treebank, pairs=[one, other])``.

    A record names them (:func:`helpers.results.record`), and is kept apart from the book's.
    """
    known = {entry.name for entry in sources.CATALOGUE}
    given = [(kind, name) for kind, some in names.items() for name in ([some] if isinstance(some, str) else some)]
    return tuple(provenance(name, kind) for kind, name in dict.fromkeys(given) if name not in known)


def notes(*given: str | Corpus) -> list[str]:
    """What was done to a reader's own text, or treebanks (by name), so that a chapter can measure: a sentence for each, for printing.

    Nothing for corpora of the catalogue.
    """
    sentences = []
    for corpus in given:
        if isinstance(corpus, Corpus):
            sentences.append(parts.halves(corpus)[1])
        elif sources.entry(corpus, "treebank") is None:
            sentences += [parts.treebank(corpus)[1], parts.untagged(documents(corpus))]
    return [sentence for sentence in dict.fromkeys(sentences) if sentence]


def questions(name: str, split: str | None = None) -> tuple[Question, ...]:
    """Read questions: ``encyclopedia``, ``squad``, ``xquad``, ``squadshifts-…``, or the path of a SQuAD v1.1 file."""
    return formats.read_squad(locate(name, "questions", split))


def pairs(name: str, split: str | None = None, *, task: str | None = None, labels: bool = True) -> tuple[Pair, ...]:
    """Read sentence pairs: a name of the catalogue, or a path together with its ``task`` (see :func:`read_pairs`).

    Args:
        labels: whether they matter; where not, those of a path stay as they stand, and it needs no task.
    """
    known, path = sources.entry(name, "pairs"), locate(name, "pairs", split)
    if known is None and task is None and labels:
        raise CorpusError(name, None, "A path does not say what labels mean.", f"task= one of {', '.join(TASKS)}.")
    return read_pairs(path, task or (known.task if known else None))


def keyphrases(name: str, split: str | None = None) -> tuple[KeyedText, ...]:
    """Read texts with keyphrases: ``encyclopedia``, ``inspec``, or the path of a ``.jsonl`` or Inspec ``.zip`` file."""
    path = locate(name, "keyphrases", split)
    return formats.read_inspec(path) if path.suffix == ".zip" else formats.read_keyphrases(path)


def segments(corpus: Corpus, *, limit: int | None = None, seed: int = 0) -> list[Segment]:
    """Every paragraph with the one that follows it in the same article, or run of paragraphs where there is one article only.

    Args:
        limit: draw this many at random, without replacement; all when there are no more.
        seed: of the draw.

    Raises:
        CorpusError: when there are too few paragraphs for two halves (:func:`helpers.corpora.parts.halves`).
    """
    pairs = [
        Segment(first, second, document, article.title)
        for document, article in enumerate(parts.halves(corpus)[0].articles)
        for first, second in pairwise(article.paragraphs)
    ]
    return sample(pairs, limit, seed=seed)


@lru_cache(maxsize=1)
def vectors(name: str = "glove") -> Vectors:
    """Read word vectors: ``glove`` (GloVe 6B, 50 dimensions, 400,000 words), an array with its index of words beside it."""
    import pandas as pd

    path = locate(name, "vectors")
    words = pd.read_parquet(path.with_name("glove_6B_index.parquet")).iloc[:, 0]
    return Vectors({word: row for row, word in enumerate(words)}, np.load(path, mmap_mode="r"))


_SENTENCE_END = re.compile(r"""[.!?]["')\]]*\s+(?=["'(\[]*[A-Z0-9])""")
_ABBREVIATION = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Gen|Col|Capt|Lt|Sgt|Rev|Jr|Sr|No|Nos|vs|vol|pp|fig|ca|c|[A-Z])\.$"
)


def sentences(text: str) -> list[tuple[int, int]]:
    """Spans (start, end) of the sentences of a text, in characters; together they cover it.

    A rule, not a model: a sentence ends at ``.``, ``!`` or ``?`` (and closing quotes or brackets) followed
    by white space and a capital letter or digit, unless the stop belongs to a title, an initial or
    another common abbreviation.
    """
    spans, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        if match.group().startswith(".") and _ABBREVIATION.search(text[start : match.start() + 1]):
            continue
        spans.append((start, match.end()))
        start = match.end()
    return [*spans, (start, len(text))] if start < len(text) else spans


def count(name: str, kind: str, split: str) -> str:
    """How much there is in one split of a corpus of the catalogue, in words; it is read for that."""
    if kind == "text":
        articles = read(name, split).articles
        words = sum(len(paragraph.split()) for article in articles for paragraph in article.paragraphs)
        return f"{len(articles):,} articles, {words:,} words"
    if kind == "treebank":
        trees = documents(name, split)
        lengths = [len(sentence.words) for document in trees for sentence in document.sentences]
        chains = sum(len(document.chains) for document in trees)
        return f"{len(trees):,} documents, {len(lengths):,} sentences, {sum(lengths):,} words, {chains:,} chains"
    if kind == "pairs":
        labels = Counter(pair.label for pair in pairs(name, split))
        return ", ".join(f"{number:,} {label}" for label, number in sorted(labels.items()))
    if kind == "keyphrases":
        texts = keyphrases(name, split)
        return f"{len(texts):,} texts, {sum(len(text.keyphrases) for text in texts):,} keyphrases"
    if kind == "questions":
        return f"{len(questions(name, split)):,} questions"
    return f"{len(vectors(name).index):,} words"
