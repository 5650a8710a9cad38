"""Each corpus format read into records: running text, questions, sentence pairs, keyphrases, word vectors.

Whatever is wrong with a file is reported as a :class:`~helpers.corpora.sources.CorpusError` that names the file, the line, what was found and what was
expected, and nothing is half-loaded. Trees and coreference are read in :mod:`helpers.corpora.treebanks`.
"""

import csv
import gzip
import hashlib
import io
import json
import re
import sys
import zipfile
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from helpers.corpora.records import Answer, Article, Corpus, KeyedText, Pair, Question, Vectors
from helpers.corpora.sources import CorpusError, decoded, lines, once, read_bytes

# ---------------------------------------------------------------------------------------- encyclopedia

ARTICLE_FIELDS = {"id": str, "title": str, "topic": str, "paragraphs": list}


def read_encyclopedia(path: Path, *, name: str | None = None, licence: str = "unknown") -> Corpus:
    """Read articles from JSON lines: ``{"id", "title", "topic", "paragraphs": [str, ...]}``."""
    raw = read_bytes(path)
    rows = _json_lines(path, raw, ARTICLE_FIELDS)
    articles = tuple(Article(**row | {"paragraphs": tuple(row["paragraphs"])}) for row in rows)
    return Corpus(name or path.stem, hashlib.sha256(raw).hexdigest(), licence, articles)


def _json_lines(path: Path, raw: bytes, fields: dict[str, type]) -> list[dict]:
    """Objects, one a line, with just these fields, none empty, lists of non-empty strings; no id twice."""
    wrong = partial(CorpusError, path)
    records, seen = [], {}
    for number, line in enumerate(lines(path, raw), 1):
        if not line.strip():
            continue
        record = _json(path, number, line)
        found = sorted(record) if isinstance(record, dict) else type(record).__name__
        if found != sorted(fields):
            raise wrong(number, f"The fields are {found}.", f"{sorted(fields)}.")
        for name, kind in fields.items():
            value = record[name]
            if not isinstance(value, kind) or not value:
                raise wrong(number, f"{name!r} is {value!r:.60}.", f"a non-empty {kind.__name__}.")
            if kind is list and not all(isinstance(v, str) and v.strip() for v in value):
                raise wrong(number, f"An item of {name!r} is empty or no string.", "non-empty strings.")
        once(path, number, "id", record["id"], seen)
        records.append(record)
    return records


def _json(path: Path, number: int | None, text: str) -> object:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = number or getattr(error, "lineno", None)
        raise CorpusError(path, line, f"This is not JSON ({error}).", "whole, valid JSON.") from None
    if _LONE.search(text) and (lone := _SURROGATE.search(json.dumps(found, ensure_ascii=False))):
        said = f"There is half a character, \\u{ord(lone[0]):04x}."
        raise CorpusError(path, number, said, "a pair of surrogates, or the character itself in UTF-8.")
    return found


_LONE = re.compile(r"\\u[dD][89a-fA-F]")  # an escape that may be half a character
_SURROGATE = re.compile("[\ud800-\udfff]")


# ---------------------------------------------------------------------------------------- plain text

_HEADING = re.compile(r"^\s*=\s(?P<title>.*?)\s=\s*$")
FEWEST_PARAGRAPH_WORDS = 10  # shorter lines are captions, list items and formulas left over from the markup


def read_plain_text(path: Path, *, name: str | None = None, licence: str = "unknown") -> Corpus:
    """Read articles from plain text, one after another, one paragraph a line (WikiText layout).

    `` = Title = `` begins an article; deeper headings (`` = = Section = = ``) and lines of fewer than 10
    words are left out. Text before the first title is an article of its own. WikiText's spacing marks are undone.
    A ``.csv.gz`` file has one column and an article a row; a row without a title begins an article all the same.
    """
    raw = read_bytes(path)
    articles: list[tuple[str, list[str]]] = []
    rows = _csv_articles(path, raw) if path.name.endswith(".csv.gz") else [lines(path, raw)]
    for row in rows:
        if len(rows) > 1:
            articles.append((f"{path.stem} {len(articles)}", []))
        for line in row:
            if heading := _HEADING.match(line):
                if not heading["title"].startswith("="):
                    articles.append((heading["title"], []))
            elif len(line.split()) >= FEWEST_PARAGRAPH_WORDS:
                if not articles:
                    articles.append((path.stem, []))
                articles[-1][1].append(detokenised(line))
    kept = tuple(
        Article(f"{path.stem}-{number}", detokenised(title), "", tuple(paragraphs))
        for number, (title, paragraphs) in enumerate(articles)
        if paragraphs
    )
    if not kept:
        said = "The file has no paragraph of ten words or more."
        raise CorpusError(path, None, said, "plain text, one paragraph a line.")
    return Corpus(name or path.stem, hashlib.sha256(raw).hexdigest(), licence, kept)


def _csv_articles(path: Path, raw: bytes) -> list[list[str]]:
    rows = _rows(path, decoded(path, _unzipped(path, raw)), ",", quoted=True)
    return [cell.split("\n") for _, row in rows for cell in row]


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
    wrong = partial(CorpusError, path)
    data = _json(path, None, decoded(path, read_bytes(path)))
    found, seen = [], {}
    try:
        for article in data["data"]:
            title = str(article.get("title", ""))
            for paragraph in article["paragraphs"]:
                context = _string(paragraph["context"])
                for asked in paragraph["qas"]:
                    identity = _string(asked["id"])
                    once(path, None, "id", identity, seen)
                    answers = tuple(_answer(path, identity, context, a) for a in asked["answers"])
                    found.append(Question(identity, title, context, _string(asked["question"]), answers))
    except (KeyError, TypeError, AttributeError) as error:
        last = f", after question {found[-1].id!r}" if found else ""
        raise wrong(
            None,
            f"The layout is not SQuAD's{last} ({type(error).__name__}: {error}).",
            "data / paragraphs / context and qas / question, id, answers / text, answer_start.",
        ) from None
    if not found:
        raise wrong(None, "The file has no question.", "SQuAD v1.1.")
    return tuple(found)


def _answer(path: Path, identity: str, context: str, given: dict) -> Answer:
    text, start = _string(given["text"]), given["answer_start"]
    if not isinstance(start, int) or start < 0 or context[start : start + len(text)] != text:
        said = f"Question {identity!r}: the answer {text[:60]!r} is not in the context at {start!r}."
        raise CorpusError(path, None, said, "answer_start in characters, counted from 0.")
    return Answer(text, start)


def _string(value: object) -> str:
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
    "stsb": (),
}
"""Labels of each task; STS-B has scores. ``nli`` reads the three-class column of the book's entailment pairs."""

_FIRST, _SECOND = ("#1 String", "sentence1", "premise"), ("#2 String", "sentence2", "hypothesis")
_GOLD = ("gold_label", "label")
_LABEL = {
    "mrpc": ("Quality", "label"),
    "stsb": ("score",),
    "nli": ("label3", *_GOLD),
    None: (*_GOLD, "Quality", "score"),
}
_ID = ("pairID", "index", "#1 ID")
_STSB_TEST = ("genre", "file", "year", "id", "score", "sentence1", "sentence2")
_ASKED = re.compile(
    r'For the statement, "(.*)", does the hypothesis "(.*)" represent entailment, contradiction, or neutrality\?',
    re.S,
)


def read_pairs(path: Path, task: str | None) -> tuple[Pair, ...]:
    """Read a file of sentence pairs, as GLUE, SNLI and MRPC give them out.

    Tab-separated with a header (bare quotation marks are ordinary characters); STS-B's test file without; SNLI as three
    parallel gzipped line files (give the path of ``s1.…``); MNLI also as a CSV of ready questions. Rows without
    a gold label (``-``) are left out, as is usual.

    Args:
        task: a key of :data:`TASKS`: which labels to expect, and in which column. None: labels as they stand, or none at all.

    Raises:
        CorpusError: with the line, for a wrong number of columns, an empty sentence or an unknown label.
    """
    wrong = partial(CorpusError, path)
    if task is not None and task not in TASKS:
        raise wrong(None, f"There is no task {task!r}.", f"one of {', '.join(TASKS)}.")
    path = Path(path)
    found = []
    for number, identity, first, second, label in _pair_rows(path, task):
        if label != "-":
            if not first.strip() or not second.strip():
                raise wrong(number, "A sentence is empty.", "two sentences.")
            found.append(Pair(identity, first, second, _label(path, number, task, label)))
    if not found:
        raise wrong(None, "The file has no labelled pair.", "sentence pairs.")
    return tuple(found)


def _pair_rows(path: Path, task: str | None) -> list[tuple[int, str, str, str, str]]:
    wrong = partial(CorpusError, path)
    raw = read_bytes(path)
    if path.suffix == ".gz":
        return _parallel(path, raw)
    if path.suffix == ".csv":
        return _asked(path, raw)
    rows = _rows(path, "\n".join(lines(path, raw)), "\t")
    (number, header), spare = rows[0], 0
    if task == "stsb" and "score" not in header:
        number, header, rows, spare = 0, list(_STSB_TEST), [(0, []), *rows], 2
    label = _LABEL.get(task, _GOLD)
    places = [next((header.index(n) for n in names if n in header), None) for names in (_FIRST, _SECOND, label)]
    if None in (places if task else places[:2]):
        raise wrong(
            number or 1,
            f"The columns are {', '.join(header)[:200]}.",
            f"among them one of each: {' | '.join(_FIRST)}; {' | '.join(_SECOND)}; {' | '.join(label)}.",
        )
    key = next((header.index(n) for n in _ID if n in header), None)
    found = []
    for number, row in rows[1:]:
        if not len(header) <= len(row) <= len(header) + spare:
            raise wrong(number, f"{len(row)} tab-separated columns.", f"{len(header)}, as in the header.")
        identity = row[key] if key is not None else str(number)
        found.append((number, identity, *("" if p is None else row[p] for p in places)))
    return found


def _parallel(path: Path, raw: bytes) -> list[tuple[int, str, str, str, str]]:
    """SNLI as ``s1``, ``s2`` and ``labels``, line by line."""
    files = [path, *(path.with_name(path.name.replace("s1", other, 1)) for other in ("s2", "labels"))]
    columns = [lines(f, _unzipped(f, raw if f == path else read_bytes(f))) for f in files]
    if len(set(counts := [len(c) for c in columns])) > 1:
        said = f"The three files have {', '.join(map(str, counts))} lines."
        raise CorpusError(path, None, said, "as many in each.")
    return [(n, str(n), *row) for n, row in enumerate(zip(*columns, strict=True), 1)]


def _asked(path: Path, raw: bytes) -> list[tuple[int, str, str, str, str]]:
    """MNLI with both sentences inside a ready-made question: columns Question, Answer, Origin."""
    wrong = partial(CorpusError, path)
    (first, header), *rows = _rows(path, decoded(path, raw), ",", quoted=True)
    if header[:2] != ["Question", "Answer"]:
        raise wrong(first, f"The columns are {', '.join(header)[:200]}.", "Question, Answer, Origin.")
    found = []
    for number, row in rows:
        match = _ASKED.fullmatch(row[0]) if len(row) == len(header) else None
        if match is None:
            raise wrong(number, f"{row[:1]!r:.80} with {len(row)} columns.", "a question that quotes two sentences.")
        found.append((number, str(len(found)), match[1], match[2], row[1]))
    return found


def _label(path: Path, number: int, task: str | None, given: str) -> str | float:
    wrong = partial(CorpusError, path)
    if task is None:
        return given
    if task == "stsb":
        try:
            score = float(given)
        except ValueError:
            score = -1.0
        if not 0 <= score <= 5:
            raise wrong(number, f"The score is {given[:40]!r}.", "a number from 0 to 5.")
        return score
    label = TASKS[task][int(given)] if task == "mrpc" and given in ("0", "1") else given
    if label not in TASKS[task]:
        raise wrong(number, f"The label is {given[:40]!r}.", f"one of {', '.join(TASKS[task])}.")
    return label


# ---------------------------------------------------------------------------------------- keyphrases


def read_keyphrases(path: Path) -> tuple[KeyedText, ...]:
    """Read keyphrases from JSON lines ``{"id", "keyphrases"}``; the texts are those of ``articles.jsonl`` beside it."""
    rows = _json_lines(path, read_bytes(path), {"id": str, "keyphrases": list})
    articles = {a.id: a for a in read_encyclopedia(path.with_name("articles.jsonl")).articles}
    for row in rows:
        if row["id"] not in articles:
            raise CorpusError(path, None, f"There is no article {row['id']!r} in articles.jsonl.", "ids of articles.")
    return tuple(
        KeyedText(r["id"], articles[r["id"]].title, "\n".join(articles[r["id"]].paragraphs), tuple(r["keyphrases"]))
        for r in rows
    )


MOST_UNZIPPED = 200_000_000


def read_inspec(path: Path) -> tuple[KeyedText, ...]:
    """Read an Inspec archive: ``N.abstr`` (title, then abstract) and ``N.uncontr`` (keyphrases between semicolons).

    Lines that begin with a tab go on with the one before.

    Raises:
        CorpusError: for a damaged archive, a member outside its folder, a text without keyphrases.
    """
    wrong = partial(CorpusError, path)
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes(path))) as archive:
            if sum(i.file_size for i in archive.infolist()) > MOST_UNZIPPED:
                raise wrong(None, "The archive holds more than 200 MB.", "an archive of abstracts.")
            for name in archive.namelist():
                if name.startswith("/") or ".." in PurePosixPath(name.replace("\\", "/")).parts:
                    raise wrong(None, f"The member {name!r} lies outside the archive's folder.", "plain names.")
            wanted = [n for n in archive.namelist() if n.endswith((".abstr", ".uncontr"))]
            members = {n: decoded(Path(f"{path}/{n}"), archive.read(n)) for n in wanted}
    except CorpusError:
        raise
    except Exception as error:  # zipfile and zlib raise a dozen kinds on damaged archives
        raise wrong(None, f"The archive is damaged ({type(error).__name__}: {error}).", "a zip file.") from None
    found = []
    for name in sorted((n for n in members if n.endswith(".abstr")), key=_by_number):
        identity = name.removesuffix(".abstr")
        title, *text = members[name].replace("\n\t", " ").strip().split("\n")
        keys = (" ".join(k.split()) for k in members.get(f"{identity}.uncontr", "").split(";"))
        kept = tuple(k for k in keys if k)
        if not title.strip() or not kept:
            wanted = f"{name} and {identity}.uncontr."
            raise CorpusError(f"{path}/{name}", None, "Title or keyphrases are missing.", wanted)
        found.append(KeyedText(identity, " ".join(title.split()), " ".join(" ".join(text).split()), kept))
    if not found:
        raise wrong(None, "The archive has no .abstr member.", "an Inspec archive.")
    return tuple(found)


def _by_number(name: str) -> tuple[int, str]:
    digits = re.sub(r"\D", "", name)[:12]
    return int(digits or 0), name


# ---------------------------------------------------------------------------------------- word vectors


def read_vectors(path: Path) -> Vectors:
    """Read word vectors: an array (``.npy``) with its index of words beside it, or text, a word and its numbers in each line.

    Raises:
        CorpusError: for a line without as many numbers as the first.
    """
    if path.suffix == ".npy":
        import pyarrow.parquet as parquet

        words = parquet.read_table(path.with_name("glove_6B_index.parquet")).column(0).to_pylist()
        return Vectors({w: i for i, w in enumerate(words)}, np.load(path, mmap_mode="r"))
    index: dict[str, int] = {}
    rows = []
    for number, line in enumerate(lines(path), 1):
        word, *values = line.split(" ")
        try:
            row = np.array(values, np.float32)
        except ValueError:
            row = np.empty(0)
        if not len(row) or (rows and len(row) != len(rows[0])) or not np.isfinite(row).all():
            raise CorpusError(path, number, f"{line[:60]!r}.", "a word and its numbers, as many in each line.")
        index.setdefault(word, len(rows))
        rows.append(row)
    return Vectors(index, np.stack(rows))


# ---------------------------------------------------------------------------------------- tables


def _rows(path: Path, text: str, delimiter: str, *, quoted: bool = False) -> list[tuple[int, list[str]]]:
    """Rows of a table, each with the number of its (last) line; empty lines are passed over."""
    wrong = partial(CorpusError, path)
    csv.field_size_limit(sys.maxsize)
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=quoted)
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise wrong(reader.line_num, f"The table cannot be read ({error}).", "a table with closed quotes.") from None
    if not rows:
        raise wrong(None, "The file is empty.", "a table.")
    return rows


def _unzipped(path: Path, raw: bytes) -> bytes:
    wrong = partial(CorpusError, path)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
            content = stream.read(MOST_UNZIPPED + 1)
    except (OSError, EOFError, ValueError) as error:
        raise wrong(None, f"The file cannot be unpacked ({error}).", "a gzip file.") from None
    except Exception as error:  # zlib.error is not exported by gzip
        raise wrong(None, f"The file is damaged ({error}).", "a gzip file.") from None
    if len(content) > MOST_UNZIPPED:
        raise wrong(None, "The file unpacks to more than 200 MB.", "a corpus.")
    return content
