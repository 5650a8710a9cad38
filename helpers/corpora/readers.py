"""One call for each kind of text, by name or by path.

:func:`read` gives running text, :func:`documents` trees and coreference, :func:`questions`, :func:`pairs`,
:func:`keyphrases` and :func:`vectors` what their names say; each takes a corpus by name (the catalogue is in
:mod:`helpers.corpora.sources`) or by path. Whatever is wrong with a file is reported as a :class:`~helpers.corpora.sources.CorpusError` that names
the file, where it has lines the line, what was found and what was expected, and nothing is half-loaded.
"""

import csv
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from helpers import places
from helpers.corpora import records, sources, treebanks
from helpers.corpora.records import Answer, Article, Corpus, Document, KeyedText, Pair, Question, Segment, Vectors
from helpers.corpora.sources import TASKS, CorpusError, lines, locate, reading, some


def read(name: str, split: str | None = None) -> Corpus:
    """Read a corpus of running text.

    Args:
        name: ``encyclopedia`` (travels with the book), ``wikitext``, or the path of a file in either format:
            ``.jsonl`` as the encyclopedia, ``.csv.gz`` with one article a row, anything else as plain text with one
            article after another (WikiText layout).
        split: ``train``, ``dev`` or ``test`` (wikitext only; default: test).
    """
    path, known = locate(name, "text", split), sources.entry(name, "text")
    articles = tuple(_encyclopedia(path)) if path.suffix == ".jsonl" else _plain_text(path)
    some(path, articles, "articles; of plain text, a paragraph of ten words or more on each line.")
    title, licence = (name, known.licence) if known else (path.stem, "unknown")
    corpus = Corpus(title, places.sha256(path), licence, articles)
    if known:
        return corpus
    with suppress(CorpusError):  # too little for two halves, which not everybody needs
        corpus = replace(corpus, parts=halves(corpus)[1])
    return replace(corpus, own=True)


def _encyclopedia(path: Path) -> Iterator[Article]:
    """Articles from JSON lines: ``{"id", "title", "topic", "paragraphs": [str, ...]}``."""
    for number, row in _json_lines(path):
        with reading(path, "an object with id, title, topic and paragraphs, which are a list.", number):
            if isinstance(row["paragraphs"], str):  # each letter would be a paragraph
                raise ValueError("the paragraphs are one text")
            yield Article(**row | {"paragraphs": tuple(row["paragraphs"])})


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects, one a line, with their lines' numbers."""
    for number, line in enumerate(lines(path), 1):
        if line.strip():
            with reading(path, "an object of JSON on each line.", number):
                yield number, json.loads(line)


_HEADING = re.compile(r"^\s*=\s(?P<title>.*?)\s=\s*$")
FEWEST_PARAGRAPH_WORDS = 10  # shorter lines are captions, list items and formulas left over from the markup


def _plain_text(path: Path) -> tuple[Article, ...]:
    """Articles from plain text, one after another, one paragraph a line (WikiText layout).

    `` = Title = `` begins an article; deeper headings (`` = = Section = = ``) and lines of fewer than 10
    words are left out. Text before the first title is an article of its own. WikiText's spacing marks are undone.
    A ``.csv.gz`` file has one column and an article a row; a row without a title begins an article all the same.
    """
    import pandas as pd

    is_table = path.name.endswith(".csv.gz")
    articles: list[tuple[str, list[str]]] = []
    with reading(path, "CSV in UTF-8, a column."):
        table = pd.read_csv(path, header=None, dtype=str, na_filter=False)[0] if is_table else []
    texts = table if is_table else ["\n".join(lines(path))]
    for text in texts:
        articles.append((f"{path.stem} {len(articles)}" if is_table else path.stem, []))
        for line in text.split("\n"):
            heading = _HEADING.match(line)
            if heading and not heading["title"].startswith("="):
                articles.append((detokenised(heading["title"]), []))
            elif not heading and len(line.split()) >= FEWEST_PARAGRAPH_WORDS:
                articles[-1][1].append(detokenised(line))
    first = not is_table and not articles[0][1]  # nothing stands before the first title
    numbered = enumerate(articles[first:])
    return tuple(Article(f"{path.stem}-{n}", title, "", tuple(texts)) for n, (title, texts) in numbered if texts)


_MARKS = [
    (re.compile(r" @([-,.])@ "), r"\1"),  # well @-@ known, 1 @,@ 000, 3 @.@ 5
    (re.compile(r"\s+([,.;:!?%)\]}])"), r"\1"),
    (re.compile(r"([(\[{$£])\s+"), r"\1"),
    (re.compile(r"\s+('(?:s|re|ve|ll|d|m|t)?)(?=[\s.,;:!?)]|$)"), r"\1"),
    (re.compile(r"\s+(n't)\b"), r"\1"),
    (re.compile(r'"\s+([^"]*?)\s+"'), r'"\1"'),
    (re.compile(r"\s+"), " "),
]


def detokenised(line: str) -> str:
    """Undo WikiText's spacing, so that a tokenizer meets ordinary English punctuation."""
    for mark, plain in _MARKS:
        line = mark.sub(plain, line)
    return line.strip()


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
    article = max(corpus.articles, key=lambda article: len(article.paragraphs))
    count = len(article.paragraphs)
    if count < 8:  # four runs of two: two to choose on, two to score on
        problem = f"Of {len(corpus.articles)} articles the longest has {count} paragraphs."
        wanted = "a text of several articles (' = Title = '), two of them of two paragraphs or more (lines of ten words or more), or one of 8 paragraphs: heads are chosen on one half and scored on the other."
        raise CorpusError(corpus.name, None, problem, wanted)
    pieces = [article.paragraphs[run] for run in treebanks.runs(count, 2)]
    articles = (replace(article, id=f"{article.id}-{n}", paragraphs=piece) for n, piece in enumerate(pieces))
    how = f"{corpus.name}: one article, so {len(pieces)} runs of its {count} paragraphs stand for articles."
    return replace(corpus, articles=tuple(articles)), how


def segments(corpus: Corpus, *, limit: int | None = None, seed: int = 0) -> list[Segment]:
    """Every paragraph with the one that follows it in the same article, or run of paragraphs where there is one article only.

    Args:
        limit: draw this many at random, without replacement; all when there are no more.
        seed: of the draw.

    Raises:
        CorpusError: when there are too few paragraphs for two halves (:func:`halves`).
    """
    pairs = [
        Segment(first, second, document, article.title)
        for document, article in enumerate(halves(corpus)[0].articles)
        for first, second in pairwise(article.paragraphs)
    ]
    return records.sample(pairs, limit, seed=seed)


def documents(name: str, split: str | None = None, *, trees: bool = False) -> tuple[Document, ...]:
    """Read sentences with trees, and coreference chains.

    Args:
        name: ``encyclopedia``, ``gum``, ``gum-ontonotes`` (the GUM documents with coreference after the OntoNotes
            guidelines; with GUM's trees when ``gum`` is there), ``ewt``, or the path of a ``.conllu`` file, of a
            CoNLL-2012 file, of a folder of such files; or three paths with commas between.
        split: ``train``, ``dev`` or ``test`` (default). The documents of a path are drawn into these parts
            (:func:`helpers.corpora.treebanks.in_parts`); without a split all of them are read.
        trees: refuse documents without a single tree.

    Raises:
        CorpusError: for a file that is malformed, has no tree where ``trees`` are asked for, or is too little for three parts.
    """
    if sources.entry(name, "treebank") is None:
        by_part, _ = treebanks.in_parts(name)
        with reading(name, "a split: train, dev or test."):
            chosen = by_part[split] if split else sum(by_part.values(), ())
    else:
        path, gum = locate(name, "treebank", split), sources.find(sources.entry("gum", "treebank"), split or "test")
        of_gum = {d.id: d for d in treebanks.read(gum)} if gum and name == "gum-ontonotes" else None
        chosen = treebanks.read_conll(path, of_gum) if of_gum else treebanks.read(path)
    if trees and not any(s.governors for d in chosen for s in d.sentences):
        problem = f"No sentence of the part {split or 'all'!r} has a tree (governors, the column HEAD)."
        raise CorpusError(name, None, problem, "a treebank in CoNLL-U; mentions alone are enough for chapter 05.")
    return records.numbered(chosen)


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
    chosen_on = records.numbered(d for part in choose_on for d in documents(name, part, trees=trees))
    return chosen_on, documents(name, "test", trees=trees)


def provenance(name: str, kind: str, *splits: str) -> Corpus:
    """Name, digest and licence of the files that a measurement read, for :func:`helpers.results.record`."""
    known = sources.entry(name, kind)
    if known:
        paths = [locate(name, kind, split) for split in splits or (None,)]
        return Corpus(name, places.sha256(*sources.files(*paths)), known.licence, ())
    if kind == "text":
        return replace(read(name), articles=())
    paths = [locate(path, kind) for path in (sources.names_in(name) if kind == "treebank" else [name])]
    how = treebanks.in_parts(name)[1] if kind == "treebank" else ""
    return Corpus(sources.label(name), places.sha256(*sources.files(*paths)), "unknown", (), own=True, parts=how)


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
            sentences.append(halves(corpus)[1])
        elif sources.entry(corpus, "treebank") is None:
            sentences += [treebanks.in_parts(corpus)[1], treebanks.untagged(documents(corpus))]
    return [sentence for sentence in dict.fromkeys(sentences) if sentence]


def questions(name: str, split: str | None = None) -> tuple[Question, ...]:
    """Read questions: ``encyclopedia``, ``squad``, ``xquad``, ``squadshifts-…``, or the path of a SQuAD v1.1 file.

    Raises:
        CorpusError: for another layout, and where an answer does not stand in its context, to the letter.
    """
    path, found = locate(name, "questions", split), []
    wanted = "SQuAD v1.1: data / paragraphs / context and qas / question, id, answers / text, answer_start (in characters, from 0)."
    with reading(path, wanted):
        for article in json.loads("\n".join(lines(path)))["data"]:
            for paragraph in article["paragraphs"]:
                context = paragraph["context"]
                for asked in paragraph["qas"]:
                    answers = tuple(Answer(answer["text"], answer["answer_start"]) for answer in asked["answers"])
                    if not all(a.text and context.startswith(a.text, a.start) for a in answers):
                        raise ValueError(f"{asked['id']!r}: {answers} are not all in the context")
                    title = str(article.get("title", ""))
                    found.append(Question(asked["id"], title, context, asked["question"], answers))
    return some(path, found, wanted)


_COLUMNS = {
    "first": ("#1 String", "sentence1", "premise"),
    "second": ("#2 String", "sentence2", "hypothesis"),
    "label": ("gold_label", "label", "Quality", "score"),
    "id": ("pairID", "index", "#1 ID"),
}
"""Names that the columns of sentence pairs may have."""
_ASKED = re.compile('For the statement, "(.*)", does the hypothesis "(.*)" represent entailment, contra.*', re.S)


def pairs(name: str, split: str | None = None, *, task: str | None = None, labels: bool = True) -> tuple[Pair, ...]:
    """Read sentence pairs: a name of the catalogue, or a path together with its ``task``.

    Tab-separated with a header (bare quotation marks are ordinary characters), as GLUE, SNLI and MRPC give them out; SNLI also as
    three parallel gzipped line files (give the path of ``s1.…``), MNLI also as a CSV of ready questions. Rows without a gold label
    (``-``) are left out, as is usual.

    Args:
        task: a key of :data:`helpers.corpora.sources.TASKS`: which labels to expect.
        labels: whether they matter; where not, those of a path stay as they stand, and it needs no task.

    Raises:
        CorpusError: with the line, for a wrong number of columns, an empty sentence or an unknown label.
    """
    known, path, found = sources.entry(name, "pairs"), locate(name, "pairs", split), []
    task = task or (known.task if known else None)
    if labels and task not in TASKS:
        raise CorpusError(name, None, "A path does not say what labels mean.", f"task= one of {', '.join(TASKS)}.")
    names = _COLUMNS | ({"label": ("label3", *_COLUMNS["label"])} if task == "nli" else {})
    wanted = f"sentences ({names['first']}, {names['second']}), a label ({names['label']}) of {TASKS.get(task)}."
    for line, row in _rows(path):
        cells = {key: next((row[name] for name in given if name in row), "") for key, given in names.items()}
        if task == "mrpc":
            cells["label"] = {"0": "not_paraphrase", "1": "paraphrase"}.get(cells["label"], cells["label"])
        known_label = task is None or cells["label"] in (*TASKS[task], "-")
        if not (cells["first"].strip() and cells["second"].strip() and known_label):
            raise CorpusError(path, line, f"The row is {row}.", wanted)
        if cells["label"] != "-":
            found.append(Pair(cells["id"] or str(line), cells["first"], cells["second"], cells["label"]))
    return some(path, found, "labelled pairs.")


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a file of sentence pairs, by the names of their columns, and the numbers of their lines."""
    with reading(path, "lines of as many cells as the first has; of three files, as many lines each."):
        if path.suffix == ".gz":  # SNLI, a file a column
            columns = [lines(path.with_name(path.name.replace("s1", name, 1))) for name in ("s1", "s2", "labels")]
            rows = [(0, ("sentence1", "sentence2", "label")), *enumerate(zip(*columns, strict=True), 1)]
        elif path.suffix == ".csv":  # MNLI as ready questions
            rows = list(enumerate(csv.reader(io.StringIO("\n".join(lines(path)))), 1))
        else:
            rows = [(number, line.split("\t")) for number, line in enumerate(lines(path), 1) if line]
        (_, header), *rows = rows
    for line, row in rows:
        with reading(path, f"{len(header)} cells, as in the header; in a question, two quoted sentences.", line):
            cells = dict(zip(header, row, strict=True))
            if "Question" in cells:
                quoted = _ASKED.fullmatch(cells["Question"]).groups()
                ends = ".?!\"'"  # a full stop that was lost is put back
                first, second = (text if text.rstrip()[-1:] in ends else f"{text.rstrip()}." for text in quoted)
                cells |= {"sentence1": first, "sentence2": second, "label": cells["Answer"], "index": str(line - 2)}
        yield line, cells


def keyphrases(name: str, split: str | None = None) -> tuple[KeyedText, ...]:
    """Read texts with keyphrases: ``encyclopedia``, ``inspec``, or the path of a ``.jsonl`` or Inspec ``.zip`` file.

    JSON lines are ``{"id", "keyphrases"}``; the texts are those of ``articles.jsonl`` beside them. An Inspec archive has ``N.abstr`` (title,
    then abstract) and ``N.uncontr`` (keyphrases between semicolons); lines that begin with a tab go on with the one before.

    Raises:
        CorpusError: for a damaged file, and for keyphrases without a text.
    """
    path = locate(name, "keyphrases", split)
    with reading(path, "keyphrases with ids of articles.jsonl; or a zip archive of N.abstr and N.uncontr."):
        if path.suffix == ".zip":
            found = list(_inspec(zipfile.Path(path)))
        else:
            article = {article.id: article for article in _encyclopedia(path.with_name("articles.jsonl"))}
            found = []
            for _, row in _json_lines(path):
                text = article[row["id"]]
                found.append(KeyedText(text.id, text.title, "\n".join(text.paragraphs), tuple(row["keyphrases"])))
    return some(path, found, "texts with keyphrases.")


def _inspec(archive: zipfile.Path) -> Iterator[KeyedText]:
    """The texts of an Inspec archive, by number."""
    names = [name.removesuffix(".abstr") for name in archive.root.namelist() if name.endswith(".abstr")]
    for name in sorted(names, key=lambda name: (len(name), name)):
        title, *text = "\n".join(lines(archive / f"{name}.abstr")).replace("\n\t", " ").strip().split("\n")
        listed = "\n".join(lines(archive / f"{name}.uncontr")).split(";")
        phrases = tuple(" ".join(phrase.split()) for phrase in listed if phrase.strip())
        yield KeyedText(name, " ".join(title.split()), " ".join(" ".join(text).split()), phrases)


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
        counts = {"articles": len(articles), "words": words}
    elif kind == "treebank":
        found = documents(name, split)
        lengths = [len(sentence.words) for document in found for sentence in document.sentences]
        chains = sum(len(document.chains) for document in found)
        counts = {"documents": len(found), "sentences": len(lengths), "words": sum(lengths), "chains": chains}
    elif kind == "pairs":
        counts = dict(sorted(Counter(pair.label for pair in pairs(name, split)).items()))
    elif kind == "keyphrases":
        texts = keyphrases(name, split)
        counts = {"texts": len(texts), "keyphrases": sum(len(text.keyphrases) for text in texts)}
    elif kind == "questions":
        counts = {"questions": len(questions(name, split))}
    else:
        counts = {"words": len(vectors(name).index)}
    return ", ".join(f"{number:,} {unit}" for unit, number in counts.items())
