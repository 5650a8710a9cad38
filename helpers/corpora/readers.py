"""One call for each kind of text, by name or by path.

:func:`read` gives running text, :func:`documents` trees and coreference, :func:`questions`, :func:`pairs`,
:func:`keyphrases` and :func:`vectors` what their names say; each takes a corpus by name (the catalogue is in
:mod:`helpers.corpora.sources`) or by path. Whatever is wrong with a file is reported as a :class:`~helpers.corpora.sources.CorpusError` that names
the file, the line, what was found and what was expected, and nothing is half-loaded.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from helpers.corpora import formats, parts, sources, treebanks
from helpers.corpora.formats import TASKS, read_pairs
from helpers.corpora.records import Corpus, Document, KeyedText, Pair, Question, Segment, Vectors, sample
from helpers.corpora.sources import CorpusError, locate


def read(name: str, split: str | None = None) -> Corpus:
    """Read a corpus of running text.

    Args:
        name: ``encyclopedia`` (travels with the book), ``wikitext``, or the path of a file in either format:
            ``.jsonl`` as the encyclopedia, ``.csv.gz`` with one article a row, anything else as plain text with one
            article after another (WikiText layout).
        split: ``train``, ``dev`` or ``test`` (wikitext only; default: test).
    """
    path, known = locate(name, "text", split), sources.entry(name, "text")
    reader = formats.read_encyclopedia if path.suffix == ".jsonl" else formats.read_plain_text
    if known:
        return reader(path, name=name, licence=known.licence)
    found = replace(reader(path), own=True)
    with suppress(CorpusError):  # too little for two halves, which not everybody needs
        found = replace(found, parts=parts.halves(found)[1])
    return found


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
    found = _documents(name, split)
    if trees and not any(s.governors for d in found for s in d.sentences):
        said = f"No sentence of {f'the part {split!r}' if split else 'it'} has a tree (governors, the column HEAD)."
        raise CorpusError(name, None, said, "a treebank in CoNLL-U; mentions alone are enough for chapter 05.")
    return found


def _documents(name: str, split: str | None) -> tuple[Document, ...]:
    if sources.entry(name, "treebank") is None:
        own = parts.treebank(name)
        if split not in (None, *parts.PARTS):
            raise CorpusError(name, None, f"There is no split {split!r}.", f"one of {', '.join(parts.PARTS)}.")
        return own.all if split is None else getattr(own, split)
    path = locate(name, "treebank", split)
    if name != "gum-ontonotes":
        return treebanks.read(path)
    gum = sources.find(sources.entry("gum", "treebank"), split or "test")
    return treebanks.read_conll(path, {d.id: d for d in treebanks.read(gum)} if gum else None)


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
        said = "The part 'test' is for scoring, and heads are to be chosen on it."
        raise CorpusError(name, None, said, "'train', 'dev' or both to choose on.")
    chosen_on = tuple(d for part in choose_on for d in documents(name, part, trees=trees))
    return chosen_on, documents(name, "test", trees=trees)


def provenance(name: str, kind: str, *splits: str) -> Corpus:
    """Name, digest and licence of the files that a measurement read, for :func:`helpers.record.results.record`."""
    known = sources.entry(name, kind)
    if known:
        paths = [locate(name, kind, split) for split in splits or (None,)]
        return Corpus(Path(name).name, sources.digest(paths), known.licence, ())
    if kind == "text":
        return replace(read(name), articles=())
    paths = sources.given(name) if kind == "treebank" else (locate(name, kind),)
    how = parts.treebank(name).how if kind == "treebank" else ""
    return Corpus(sources.label(name), sources.digest(paths), "unknown", (), own=True, parts=how)


def own(**names: str | Sequence[str]) -> tuple[Corpus, ...]:
    """Of the corpora that a chapter reads, those that are a reader's own: ``own(treebank=treebank, pairs=[one, other])``.

    A record names them (:func:`helpers.record.results.record`), and is kept apart from the book's.
    """
    listed = [
        (kind, name) for kind, given in names.items() for name in ([given] if isinstance(given, str) else given)
    ]
    known = {entry.name for entry in sources.CATALOGUE}
    return tuple(provenance(name, kind) for kind, name in dict.fromkeys(listed) if name not in known)


def notes(*given: str | Corpus) -> list[str]:
    """What was done to a reader's own text, or treebanks (by name), so that a chapter can measure: a sentence for each, for printing.

    Nothing for corpora of the catalogue.
    """
    found = []
    for one in given:
        if isinstance(one, Corpus):
            found.append(parts.halves(one)[1])
        elif sources.entry(one, "treebank") is None:
            treebank = parts.treebank(one)
            found += [treebank.how, parts.untagged(treebank.all)]
    return [said for said in dict.fromkeys(found) if said]


def questions(name: str, split: str | None = None) -> tuple[Question, ...]:
    """Read questions: ``encyclopedia``, ``squad``, ``xquad``, ``squadshifts-…``, or the path of a SQuAD v1.1 file."""
    return formats.read_squad(locate(name, "questions", split))


def pairs(name: str, split: str | None = None, *, task: str | None = None, labels: bool = True) -> tuple[Pair, ...]:
    """Read sentence pairs: a name of the catalogue, or a path together with its ``task`` (see :func:`read_pairs`).

    Args:
        labels: whether they matter; where not, those of a path stay as they stand, and it needs no task.
    """
    known = sources.entry(name, "pairs")
    path = locate(name, "pairs", split)
    if known is None and task is None and labels:
        wanted = f"task= one of {', '.join(TASKS)}."
        raise CorpusError(name, None, "A path does not say what the labels mean.", wanted)
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
    found = [
        Segment(first, second, document, article.title)
        for document, article in enumerate(parts.halves(corpus)[0].articles)
        for first, second in zip(article.paragraphs, article.paragraphs[1:], strict=False)
    ]
    return sample(found, limit, seed=seed)


@lru_cache(maxsize=1)
def vectors(name: str = "glove") -> Vectors:
    """Read word vectors: ``glove`` (GloVe 6B, 50 dimensions, 400,000 words), or the path of a text file in GloVe's format.

    Raises:
        CorpusError: for a missing file, or a line without as many numbers as the first.
    """
    return formats.read_vectors(locate(name, "vectors"))


# ---------------------------------------------------------------------------------------- sentences

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
        stop = match.group().rstrip()
        if stop[0] == "." and _ABBREVIATION.search(text[start : match.start() + 1]):
            continue
        spans.append((start, match.end()))
        start = match.end()
    return [*spans, (start, len(text))] if start < len(text) else spans


# ---------------------------------------------------------------------------------------- overview


@dataclass(frozen=True)
class Found:
    """One row of the overview: an entry of the catalogue, where it lies and how much is there, by split."""

    entry: sources.Entry
    paths: dict[str, Path]
    counts: dict[str, str]


def overview(*, counted: bool = True) -> list[Found]:
    """Every corpus of the catalogue, what of it is on this machine, and how much (which reads it all)."""
    found = []
    for entry in sources.CATALOGUE:
        paths = {split: p for split in entry.files if (p := sources.find(entry, split))}
        counts = {split: COUNTS[entry.kind](entry.name, split) for split in paths} if counted else {}
        found.append(Found(entry, paths, counts))
    return found


def _text_counts(name: str, split: str) -> str:
    articles = read(name, split).articles
    paragraphs = [p for a in articles for p in a.paragraphs]
    return f"{len(articles):,} articles, {len(paragraphs):,} paragraphs, {sum(len(p.split()) for p in paragraphs):,} words"


def _treebank_counts(name: str, split: str) -> str:
    found = documents(name, split)
    trees = [s for d in found for s in d.sentences]
    chains = [c for d in found for c in d.chains.values()]
    size = f"{len(found):,} documents, {len(trees):,} sentences, {sum(len(s.words) for s in trees):,} words"
    return f"{size}, {sum(map(len, chains)):,} mentions, {len(chains):,} chains"


def _question_counts(name: str, split: str) -> str:
    found = questions(name, split)
    return f"{len({q.context for q in found}):,} paragraphs, {len(found):,} questions"


def _pair_counts(name: str, split: str) -> str:
    found = pairs(name, split)
    labels = Counter(p.label for p in found if isinstance(p.label, str))
    return f"{len(found):,} pairs" + "".join(f", {count:,} {label}" for label, count in sorted(labels.items()))


def _keyphrase_counts(name: str, split: str) -> str:
    found = keyphrases(name, split)
    every, verbatim = sum(len(k.keyphrases) for k in found), sum(len(k.verbatim()) for k in found)
    return f"{len(found):,} texts, {every:,} keyphrases, {verbatim:,} of them verbatim"


COUNTS: dict[str, Callable[[str, str], str]] = {
    "text": _text_counts,
    "treebank": _treebank_counts,
    "questions": _question_counts,
    "pairs": _pair_counts,
    "keyphrases": _keyphrase_counts,
    "vectors": lambda name, split: f"{len(vectors(name).index):,} words",
}
"""How to say, for each kind, how much there is."""
