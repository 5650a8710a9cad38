"""Each corpus format read into records: running text, questions, sentence pairs, keyphrases, word vectors.

Whatever is wrong with a file is reported as a :class:`~helpers.corpora.sources.CorpusError` that names the file, the line, what was found and what was
expected, and nothing is half-loaded. Trees and coreference are read in :mod:`helpers.corpora.treebanks`.
"""

import gzip
import json
import re
import zipfile
import zlib
from functools import partial
from pathlib import Path

import numpy as np

from helpers import places
from helpers.corpora.records import Answer, Article, Corpus, KeyedText, Pair, Question, Vectors
from helpers.corpora.sources import CorpusError, decoded, lines, once, read_bytes

# ---------------------------------------------------------------------------------------- encyclopedia


def read_encyclopedia(path: Path) -> Corpus:
    """Read articles from JSON lines: ``{"id", "title", "topic", "paragraphs": [str, ...]}``."""
    rows = _json_lines(path, {"id": str, "title": str, "topic": str, "paragraphs": list})
    articles = tuple(Article(**row | {"paragraphs": tuple(row["paragraphs"])}) for row in rows)
    return Corpus(path.stem, places.sha256(path), "unknown", articles)


def _json_lines(path: Path, fields: dict[str, type]) -> list[dict]:
    """Objects, one a line, with just these fields: non-empty texts, or lists of them; no id twice."""
    wrong = partial(CorpusError, path)
    records, seen = [], {}
    for number, line in enumerate(lines(path), 1):
        if not line.strip():
            continue
        record = _json(path, number, line)
        names = sorted(record) if isinstance(record, dict) else type(record).__name__
        if names != sorted(fields):
            raise wrong(number, f"The fields are {names}.", f"{sorted(fields)}.")
        for name, kind in fields.items():
            value = record[name]
            texts = value if kind is list else [value]
            if not isinstance(value, kind) or not value or not all(isinstance(t, str) and t.strip() for t in texts):
                raise wrong(number, f"{name!r} is {value!r:.60}.", "a text, or a list of texts, that is not empty.")
        once(path, number, "id", record["id"], seen)
        records.append(record)
    return records


def _json(path: Path, number: int | None, text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        line = number or getattr(error, "lineno", None)
        raise CorpusError(path, line, f"This is not JSON ({error}).", "whole, valid JSON.") from None


# ---------------------------------------------------------------------------------------- plain text

_HEADING = re.compile(r"^\s*=\s(?P<title>.*?)\s=\s*$")
FEWEST_PARAGRAPH_WORDS = 10  # shorter lines are captions, list items and formulas left over from the markup


def read_plain_text(path: Path) -> Corpus:
    """Read articles from plain text, one after another, one paragraph a line (WikiText layout).

    `` = Title = `` begins an article; deeper headings (`` = = Section = = ``) and lines of fewer than 10
    words are left out. Text before the first title is an article of its own. WikiText's spacing marks are undone.
    A ``.csv.gz`` file has one column and an article a row; a row without a title begins an article all the same.
    """
    rows = path.name.endswith(".csv.gz")
    articles: list[tuple[str, list[str]]] = []
    for text in _csv(path, header=None)[0] if rows else ["\n".join(lines(path))]:
        articles.append((f"{path.stem} {len(articles)}" if rows else path.stem, []))
        for line in text.split("\n"):
            heading = _HEADING.match(line)
            if heading and not heading["title"].startswith("="):
                articles.append((heading["title"], []))
            elif not heading and len(line.split()) >= FEWEST_PARAGRAPH_WORDS:
                articles[-1][1].append(detokenised(line))
    if not rows and not articles[0][1]:
        articles.pop(0)  # nothing stands before the first title
    kept = tuple(
        Article(f"{path.stem}-{number}", detokenised(title), "", tuple(paragraphs))
        for number, (title, paragraphs) in enumerate(articles)
        if paragraphs
    )
    if not kept:
        raise CorpusError(path, None, "No line has ten words or more.", "plain text, one paragraph a line.")
    return Corpus(path.stem, places.sha256(path), "unknown", kept)


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


# ---------------------------------------------------------------------------------------- questions


def read_squad(path: Path) -> tuple[Question, ...]:
    """Read questions in the layout of SQuAD v1.1; an answer must stand in its context, to the letter.

    Raises:
        CorpusError: naming the question, for anything that is not as it should be.
    """
    data = _json(path, None, decoded(path, read_bytes(path)))
    questions, seen = [], {}
    try:
        for article in data["data"]:
            title = str(article.get("title", ""))
            for paragraph in article["paragraphs"]:
                context = _text(paragraph["context"])
                for asked in paragraph["qas"]:
                    identity = _text(asked["id"])
                    once(path, None, "id", identity, seen)
                    for answer in asked["answers"]:
                        text, start = _text(answer["text"]), answer["answer_start"]
                        if not isinstance(start, int) or start < 0 or not context.startswith(text, start):
                            problem = f"{identity!r}: the answer {text[:60]!r} is not in the context at {start!r}."
                            raise CorpusError(path, None, problem, "answer_start in characters, counted from 0.")
                    answers = tuple(Answer(answer["text"], answer["answer_start"]) for answer in asked["answers"])
                    questions.append(Question(identity, title, context, _text(asked["question"]), answers))
    except (KeyError, TypeError, AttributeError) as error:
        last = f", after question {questions[-1].id!r}" if questions else ""
        problem = f"The layout is not SQuAD's{last} ({type(error).__name__}: {error})."
        layout = "data / paragraphs / context and qas / question, id, answers / text, answer_start."
        raise CorpusError(path, None, problem, layout) from None
    if not questions:
        raise CorpusError(path, None, "The file has no question.", "SQuAD v1.1.")
    return tuple(questions)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"{value!r:.40} where a text should be")
    return value


# ---------------------------------------------------------------------------------------- pairs

NLI = ("entailment", "neutral", "contradiction")
TASKS: dict[str, tuple[str, ...]] = {
    "mrpc": ("not_paraphrase", "paraphrase"),
    "rte": ("entailment", "not_entailment"),
    "nli": NLI,
    "mnli": NLI,
    "snli": NLI,
}
"""Labels of each task. ``nli`` reads the three-class column of the book's entailment pairs."""

_FIRST, _SECOND = ("#1 String", "sentence1", "premise"), ("#2 String", "sentence2", "hypothesis")
_GOLD = ("gold_label", "label")
_LABEL = {"mrpc": ("Quality", "label"), "nli": ("label3", *_GOLD), None: (*_GOLD, "Quality", "score")}
_ID = ("pairID", "index", "#1 ID")
_ASKED = re.compile('For the statement, "(.*)", does the hypothesis "(.*)" represent entailment, contra.*', re.S)


def read_pairs(path: Path, task: str | None) -> tuple[Pair, ...]:
    """Read a file of sentence pairs, as GLUE, SNLI and MRPC give them out.

    Tab-separated with a header (bare quotation marks are ordinary characters); SNLI also as three parallel gzipped line
    files (give the path of ``s1.…``), MNLI also as a CSV of ready questions. Rows without a gold label (``-``) are left out, as is usual.

    Args:
        task: a key of :data:`TASKS`: which labels to expect, and in which column. None: labels as they stand, or none at all.

    Raises:
        CorpusError: with the line, for a wrong number of columns, an empty sentence or an unknown label.
    """
    wrong = partial(CorpusError, path)
    if task is not None and task not in TASKS:
        raise wrong(None, f"There is no task {task!r}.", f"one of {', '.join(TASKS)}.")
    reader = {".gz": _parallel_pairs, ".csv": _asked_pairs}.get(path.suffix, _tabbed_pairs)
    pairs = []
    for number, identity, first, second, label in reader(path, task):
        if label == "-":
            continue
        if not first.strip() or not second.strip():
            raise wrong(number, "A sentence is empty.", "two sentences.")
        if task == "mrpc":
            label = {"0": "not_paraphrase", "1": "paraphrase"}.get(label, label)
        if task is not None and label not in TASKS[task]:
            raise wrong(number, f"The label is {label[:40]!r}.", f"one of {', '.join(TASKS[task])}.")
        pairs.append(Pair(identity, first, second, label))
    if not pairs:
        raise wrong(None, "The file has no labelled pair.", "sentence pairs.")
    return tuple(pairs)


PairRow = tuple[int, str, str, str, str]
"""Line, id, both sentences, label as it stands."""


def _tabbed_pairs(path: Path, task: str | None) -> list[PairRow]:
    wrong = partial(CorpusError, path)
    (_, header), *rows = [(number, line.split("\t")) for number, line in enumerate(lines(path), 1) if line]
    names = (_FIRST, _SECOND, _LABEL.get(task, _GOLD))
    columns = [next((header.index(name) for name in given if name in header), None) for given in names]
    if None in (columns if task else columns[:2]):
        wanted = "; ".join(" | ".join(given) for given in names)
        raise wrong(1, f"The columns are {', '.join(header)[:200]}.", f"among them one of each: {wanted}.")
    key = next((header.index(name) for name in _ID if name in header), None)
    pairs = []
    for number, row in rows:
        if len(row) != len(header):
            raise wrong(number, f"{len(row)} tab-separated columns.", f"{len(header)}, as in the header.")
        identity = str(number) if key is None else row[key]
        pairs.append((number, identity, *("" if column is None else row[column] for column in columns)))
    return pairs


def _parallel_pairs(path: Path, task: str | None) -> list[PairRow]:
    """SNLI as ``s1``, ``s2`` and ``labels``, line by line."""
    files = [path.with_name(path.name.replace("s1", name, 1)) for name in ("s1", "s2", "labels")]
    columns = [lines(file, _unzipped(file)) for file in files]
    counts = [len(column) for column in columns]
    if len(set(counts)) > 1:
        raise CorpusError(path, None, f"The three files have {counts} lines.", "as many in each.")
    return [(number, str(number), *row) for number, row in enumerate(zip(*columns, strict=True), 1)]


def _asked_pairs(path: Path, task: str | None) -> list[PairRow]:
    """MNLI with both sentences inside a ready-made question: columns Question, Answer, Origin."""
    table = _csv(path)
    if list(table) != ["Question", "Answer", "Origin"]:
        raise CorpusError(path, 1, f"The columns are {', '.join(table)[:200]}.", "Question, Answer, Origin.")
    pairs = []
    for number, (question, answer) in enumerate(zip(table["Question"], table["Answer"], strict=True)):
        asked = _ASKED.fullmatch(question)
        if asked is None:
            raise CorpusError(path, number + 2, f"{question!r:.80}.", "a question that quotes two sentences.")
        pairs.append((number + 2, str(number), asked[1], asked[2], answer))
    return pairs


# ---------------------------------------------------------------------------------------- keyphrases


def read_keyphrases(path: Path) -> tuple[KeyedText, ...]:
    """Read keyphrases from JSON lines ``{"id", "keyphrases"}``; the texts are those of ``articles.jsonl`` beside it."""
    articles = {article.id: article for article in read_encyclopedia(path.with_name("articles.jsonl")).articles}
    texts = []
    for row in _json_lines(path, {"id": str, "keyphrases": list}):
        article = articles.get(row["id"])
        if article is None:
            raise CorpusError(path, None, f"There is no article {row['id']!r} in articles.jsonl.", "ids of articles.")
        texts.append(KeyedText(article.id, article.title, "\n".join(article.paragraphs), tuple(row["keyphrases"])))
    return tuple(texts)


def read_inspec(path: Path) -> tuple[KeyedText, ...]:
    """Read an Inspec archive: ``N.abstr`` (title, then abstract) and ``N.uncontr`` (keyphrases between semicolons).

    Lines that begin with a tab go on with the one before.

    Raises:
        CorpusError: for a damaged archive, and for a text without keyphrases.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception as error:  # zipfile and zlib raise a dozen kinds on damaged archives
        problem = f"The archive is damaged ({type(error).__name__}: {error})."
        raise CorpusError(path, None, problem, "a zip file.") from None
    texts = []
    for name in sorted((name for name in members if name.endswith(".abstr")), key=lambda name: (len(name), name)):
        keys = name.removesuffix("abstr") + "uncontr"
        title, *text = decoded(path / name, members[name]).replace("\n\t", " ").strip().split("\n")
        phrases = decoded(path / keys, members.get(keys, b"")).split(";")
        phrases = tuple(" ".join(phrase.split()) for phrase in phrases if phrase.strip())
        if not title.strip() or not phrases:
            raise CorpusError(path / name, None, "Title or keyphrases are missing.", f"{name} and {keys}.")
        title, text = (" ".join(words.split()) for words in (title, " ".join(text)))
        texts.append(KeyedText(name.removesuffix(".abstr"), title, text, phrases))
    if not texts:
        raise CorpusError(path, None, "The archive has no .abstr member.", "an Inspec archive.")
    return tuple(texts)


# ---------------------------------------------------------------------------------------- word vectors


def read_vectors(path: Path) -> Vectors:
    """Read word vectors: an array (``.npy``) with its index of words beside it."""
    import pyarrow.parquet as parquet

    words = parquet.read_table(path.with_name("glove_6B_index.parquet")).column(0).to_pylist()
    return Vectors({word: row for row, word in enumerate(words)}, np.load(path, mmap_mode="r"))


# ---------------------------------------------------------------------------------------- tables and archives


def _csv(path: Path, **options: object):
    """A table of texts, as pandas reads it."""
    import pandas as pd

    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False, **options)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise CorpusError(path, None, f"The table cannot be read ({error}).", "CSV in UTF-8.") from None


def _unzipped(path: Path) -> bytes:
    try:
        return gzip.decompress(read_bytes(path))
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(path, None, f"The file cannot be unpacked ({error}).", "a gzip file.") from None
