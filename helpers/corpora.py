"""Read each corpus format into small frozen dataclasses.

Whatever is wrong with a file is reported as a :class:`CorpusError` that names the file, the line, what was
found and what was expected, and nothing is half-loaded.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from helpers import places


class CorpusError(ValueError):
    """A corpus file is missing or malformed."""

    def __init__(self, file: Path | str, line: int | None, found: str, expected: str) -> None:
        where = f"{file}, line {line}" if line else f"{file}"
        super().__init__(f"{where}: {found} Expected: {expected}")


@dataclass(frozen=True)
class Article:
    """A document of running text: consecutive paragraphs on one subject."""

    id: str
    title: str
    topic: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Corpus:
    """Articles and where they came from; ``sha256`` is of the file."""

    name: str
    sha256: str
    licence: str
    articles: tuple[Article, ...]


@dataclass(frozen=True)
class Segment:
    """Two consecutive paragraphs, the unit of BERT's pre-training: ``[CLS] first [SEP] second [SEP]``.

    ``document`` is the number of the article in its corpus: the unit that intervals resample.
    """

    first: str
    second: str
    document: int
    title: str

    @property
    def texts(self) -> tuple[str, str]:
        """The pair as an input for :class:`helpers.tokens.Batches`."""
        return self.first, self.second


def read(name: str) -> Corpus:
    """Read a corpus of running text.

    Args:
        name: ``encyclopedia`` (travels with the book), ``wikitext`` (``wikitext/wiki.test.raw`` in the
            folder that ``BOOK_DATA`` names), or the path of a file in either format: ``.jsonl`` as the
            encyclopedia, anything else as plain text with one article after another (WikiText layout).
    """
    if name == "encyclopedia":
        return read_encyclopedia(places.book_data() / "encyclopedia" / "articles.jsonl")
    if name == "wikitext":
        folder = places.full_data()
        if folder is None:
            raise CorpusError("wikitext", None, "No folder of real corpora is set.",
                              "the environment variable BOOK_DATA, or --data DIR, naming a folder that "
                              "holds wikitext/wiki.test.raw.")  # fmt: skip
        return read_plain_text(folder / "wikitext" / "wiki.test.raw", name="wikitext", licence="CC BY-SA 3.0")
    path = Path(name)
    if not path.exists():
        raise CorpusError(name, None, "There is no such file.", "'encyclopedia', 'wikitext', or a file's path.")
    return read_encyclopedia(path) if path.suffix == ".jsonl" else read_plain_text(path)


def segments(corpus: Corpus, *, limit: int | None = None, seed: int = 0) -> list[Segment]:
    """Every paragraph with the one that follows it in the same article.

    Args:
        limit: draw this many at random, without replacement; all when there are no more.
        seed: of the draw.
    """
    found = [
        Segment(first, second, document, article.title)
        for document, article in enumerate(corpus.articles)
        for first, second in zip(article.paragraphs, article.paragraphs[1:], strict=False)
    ]
    if not found:
        raise CorpusError(corpus.name, None, "No article has two paragraphs.", "at least one that has.")
    if limit is None or limit >= len(found):
        return found
    chosen = np.random.default_rng(seed).choice(len(found), size=limit, replace=False)
    return [found[i] for i in sorted(chosen)]


# ---------------------------------------------------------------------------------------- encyclopedia

ARTICLE_FIELDS = {"id": str, "title": str, "topic": str, "paragraphs": list}


def read_encyclopedia(path: Path) -> Corpus:
    """Read articles from JSON lines: ``{"id", "title", "topic", "paragraphs": [str, ...]}``."""
    raw = _bytes(path)
    articles, seen = [], {}
    for number, line in enumerate(_text(path, raw).split("\n"), 1):
        if not line.strip():
            continue
        article = _article(path, number, line)
        if article.id in seen:
            raise CorpusError(
                path, number, f"The id {article.id!r} is that of line {seen[article.id]}.", "one of its own."
            )
        seen[article.id] = number
        articles.append(article)
    if not articles:
        raise CorpusError(path, None, "The file has no articles.", "one JSON object a line.")
    return Corpus("encyclopedia", hashlib.sha256(raw).hexdigest(), "CC0 1.0", tuple(articles))


def _article(path: Path, number: int, line: str) -> Article:
    try:
        record = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise CorpusError(path, number, f"This is not JSON ({error}).", "one whole JSON object a line.") from None
    if not isinstance(record, dict) or set(record) != set(ARTICLE_FIELDS):
        raise CorpusError(path, number, f"The fields are {sorted(record) if isinstance(record, dict) else type(record).__name__}.",
                          f"{sorted(ARTICLE_FIELDS)}.")  # fmt: skip
    for field, kind in ARTICLE_FIELDS.items():
        if not isinstance(record[field], kind) or not record[field]:
            raise CorpusError(path, number, f"{field!r} is {record[field]!r:.60}.", f"a non-empty {kind.__name__}.")
    if not all(isinstance(p, str) and p.strip() for p in record["paragraphs"]):
        raise CorpusError(path, number, "A paragraph is empty or no string.", "non-empty strings.")
    return Article(record["id"], record["title"], record["topic"], tuple(record["paragraphs"]))


PARAGRAPHS, FEWEST_WORDS, MOST_WORDS, NEAR_DUPLICATE = 3, 55, 80, 0.6


def check_encyclopedia(corpus: Corpus) -> list[str]:
    """What is wrong with the book's own articles, beyond the format: one message for each finding.

    Three paragraphs each, of 55 to 80 words; lower-case ids; plain ASCII; every paragraph ends a sentence; no
    sentence twice, and none that shares more than 60 % of its word triples with another.
    """
    problems, seen = [], []
    for article in corpus.articles:
        where = article.id
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", article.id):
            problems.append(f"{where}: the id is not made of lower-case letters, digits and hyphens")
        if len(article.paragraphs) != PARAGRAPHS:
            problems.append(f"{where}: {len(article.paragraphs)} paragraphs, not {PARAGRAPHS}")
        for number, paragraph in enumerate(article.paragraphs, 1):
            words = len(paragraph.split())
            if not FEWEST_WORDS <= words <= MOST_WORDS:
                problems.append(f"{where}, paragraph {number}: {words} words, not {FEWEST_WORDS} to {MOST_WORDS}")
            if odd := sorted({c for c in paragraph if not 32 <= ord(c) < 127}):
                problems.append(f"{where}, paragraph {number}: characters beyond ASCII: {odd}")
            if paragraph != " ".join(paragraph.split()):
                problems.append(f"{where}, paragraph {number}: stray white space")
            if not re.search(r'[.?!]"?$', paragraph):
                problems.append(f"{where}, paragraph {number}: does not end a sentence")
            seen += [(where, paragraph[a:b].strip()) for a, b in sentences(paragraph)]
    return problems + _near_duplicates(seen)


def _near_duplicates(found: list[tuple[str, str]]) -> list[str]:
    triples = [_triples(sentence) for _, sentence in found]
    holders: dict[tuple[str, ...], list[int]] = {}
    problems = []
    for number, mine in enumerate(triples):
        rivals = {r for t in mine for r in holders.get(t, ())}
        for rival in rivals:
            shared = len(mine & triples[rival]) / min(len(mine), len(triples[rival]))
            if shared > NEAR_DUPLICATE:
                problems.append(
                    f"{found[number][0]}: {found[number][1]!r} is close to {found[rival][1]!r} in {found[rival][0]}"
                )
        for triple in mine:
            holders.setdefault(triple, []).append(number)
    return problems


def _triples(sentence: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[a-z0-9]+", sentence.lower())
    return {tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2))}


# ---------------------------------------------------------------------------------------- plain text

_HEADING = re.compile(r"^\s*=\s(?P<title>.*?)\s=\s*$")
FEWEST_PARAGRAPH_WORDS = 10  # shorter lines are captions, list items and formulas left over from the markup


def read_plain_text(path: Path, *, name: str | None = None, licence: str = "unknown") -> Corpus:
    """Read articles from plain text, one after another, one paragraph a line (WikiText layout).

    `` = Title = `` begins an article; deeper headings (`` = = Section = = ``) and lines of fewer than 10
    words are left out. Text before the first title is an article of its own. WikiText's spacing marks are undone.
    """
    raw = _bytes(path)
    articles: list[tuple[str, list[str]]] = []
    for line in _text(path, raw).replace("\r\n", "\n").split("\n"):
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
        raise CorpusError(
            path, None, "The file has no paragraph of ten words or more.", "plain text, one paragraph a line."
        )
    return Corpus(name or path.stem, hashlib.sha256(raw).hexdigest(), licence, kept)


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


# ---------------------------------------------------------------------------------------- files


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CorpusError(path, None, "There is no such file.", "a corpus file.") from None
    except (IsADirectoryError, PermissionError) as error:
        raise CorpusError(path, None, f"The file cannot be read ({error.strerror}).", "a readable file.") from None


def _text(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise CorpusError(
            path,
            line,
            f"Byte {raw[error.start]:#04x} is not UTF-8.",
            "UTF-8 text; convert the file with 'iconv -t utf-8'.",
        ) from None
