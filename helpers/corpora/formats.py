"""Each corpus format read into records: running text, questions, sentence pairs, keyphrases.

Whatever is wrong with a file is reported as a :class:`~helpers.corpora.sources.CorpusError` that names the file, the line, what was found and what was
expected, and nothing is half-loaded. Trees and coreference are read in :mod:`helpers.corpora.treebanks`.
"""

import json
import re
import zipfile
from functools import partial
from pathlib import Path

from helpers import places
from helpers.corpora.records import Answer, Article, Corpus, KeyedText, Pair, Question
from helpers.corpora.sources import TASKS, CorpusError, lines, once, reading


def read_encyclopedia(path: Path) -> Corpus:
    """Read articles from JSON lines: ``{"id", "title", "topic", "paragraphs": [str, ...]}``."""
    rows = _json_lines(path, {"id": str, "title": str, "topic": str, "paragraphs": list})
    articles = tuple(Article(**row | {"paragraphs": tuple(row["paragraphs"])}) for row in rows)
    return Corpus(path.stem, places.sha256(path), "unknown", articles)


def _json_lines(path: Path, fields: dict[str, type]) -> list[dict]:
    """Objects, one a line, with just these fields: non-empty texts, or lists of them; no id twice."""
    records, seen = [], {}
    for number, line in enumerate(lines(path), 1):
        if not line.strip():
            continue
        with reading(path, "valid JSON.", number):
            record = json.loads(line)
        names = sorted(record) if isinstance(record, dict) else type(record).__name__
        if names != sorted(fields):
            raise CorpusError(path, number, f"The fields are {names}.", f"{sorted(fields)}.")
        for name, kind in fields.items():
            texts = record[name] if kind is list else [record[name]]
            if not isinstance(record[name], kind) or not texts or not all(map(_is_text, texts)):
                wanted = "a text, or a list of texts, that is not empty."
                raise CorpusError(path, number, f"{name!r} is {record[name]!r:.60}.", wanted)
        once(path, number, "id", record["id"], seen)
        records.append(record)
    return records


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


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


SQUAD = "SQuAD v1.1: data / paragraphs / context and qas / question, id, answers / text, answer_start."


def read_squad(path: Path) -> tuple[Question, ...]:
    """Read questions in the layout of SQuAD v1.1; an answer must stand in its context, to the letter.

    Raises:
        CorpusError: naming the question, for anything that is not as it should be.
    """
    questions, seen = [], {}
    with reading(path, SQUAD):
        for article in json.loads("\n".join(lines(path)))["data"]:
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    once(path, None, "id", asked["id"], seen)
                    questions.append(_question(path, str(article.get("title", "")), paragraph["context"], asked))
    if not questions:
        raise CorpusError(path, None, "The file has no question.", SQUAD)
    return tuple(questions)


def _question(path: Path, title: str, context: str, asked: dict) -> Question:
    given = [(answer["text"], answer["answer_start"]) for answer in asked["answers"]]
    if not all(map(_is_text, (context, asked["id"], asked["question"], *(text for text, _ in given)))):
        raise CorpusError(path, None, f"{asked['id']!r}: a text is empty or missing.", SQUAD)
    for text, start in given:
        if not isinstance(start, int) or start < 0 or not context.startswith(text, start):
            problem = f"{asked['id']!r}: the answer {text[:60]!r} is not in the context at {start!r}."
            raise CorpusError(path, None, problem, "answer_start in characters, counted from 0.")
    return Question(asked["id"], title, context, asked["question"], tuple(Answer(*answer) for answer in given))


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
        task: a key of :data:`helpers.corpora.sources.TASKS`: which labels to expect, and in which column. None: labels as they
            stand, or none at all.

    Raises:
        CorpusError: with the line, for a wrong number of columns, an empty sentence or an unknown label.
    """
    wrong = partial(CorpusError, path)
    if task is not None and task not in TASKS:
        raise wrong(None, f"There is no task {task!r}.", f"one of {', '.join(TASKS)}.")
    if path.suffix == ".gz":
        rows = _parallel_pairs(path)
    else:
        rows = _asked_pairs(path) if path.suffix == ".csv" else _tabbed_pairs(path, task)
    pairs = []
    for line, identity, first, second, label in rows:
        if label == "-":
            continue
        if not first.strip() or not second.strip():
            raise wrong(line, "A sentence is empty.", "two sentences.")
        if task == "mrpc":
            label = {"0": "not_paraphrase", "1": "paraphrase"}.get(label, label)
        if task is not None and label not in TASKS[task]:
            raise wrong(line, f"The label is {label[:40]!r}.", f"one of {', '.join(TASKS[task])}.")
        pairs.append(Pair(identity, first, second, label))
    if not pairs:
        raise wrong(None, "The file has no labelled pair.", "sentence pairs.")
    return tuple(pairs)


PairRow = tuple[int, str, str, str, str]
"""Line, id, both sentences, label as it stands."""


def _tabbed_pairs(path: Path, task: str | None) -> list[PairRow]:
    (_, header), *rows = [(number, line.split("\t")) for number, line in enumerate(lines(path), 1) if line]
    names = (_FIRST, _SECOND, _LABEL.get(task, _GOLD), _ID)
    columns = [next((name for name in given if name in header), None) for given in names]
    if None in columns[: 3 if task else 2]:
        wanted = "; ".join(" | ".join(given) for given in names[:3])
        raise CorpusError(
            path, 1, f"The columns are {', '.join(header)[:200]}.", f"among them one of each: {wanted}."
        )
    pairs = []
    for number, row in rows:
        if len(row) != len(header):
            problem = f"{len(row)} tab-separated columns."
            raise CorpusError(path, number, problem, f"{len(header)}, as in the header.")
        named = {None: str(number)} | dict(zip(header, row, strict=True))
        first, second, identity = (named[columns[place]] for place in (0, 1, 3))
        pairs.append((number, identity, first, second, named[columns[2]] if columns[2] else ""))
    return pairs


def _parallel_pairs(path: Path) -> list[PairRow]:
    """SNLI as ``s1``, ``s2`` and ``labels``, line by line."""
    columns = [lines(path.with_name(path.name.replace("s1", name, 1))) for name in ("s1", "s2", "labels")]
    with reading(path, "three files with as many lines each."):
        return [(number, str(number), *row) for number, row in enumerate(zip(*columns, strict=True), 1)]


def _asked_pairs(path: Path) -> list[PairRow]:
    """MNLI with both sentences inside a ready-made question: columns Question, Answer, Origin. Lost full stops are put back."""
    table, pairs = _csv(path), []
    with reading(path, "the columns Question, Answer, Origin."):
        rows = list(zip(table["Question"], table["Answer"], strict=True))
    for number, (question, answer) in enumerate(rows):
        asked = _ASKED.fullmatch(question)
        if asked is None:
            raise CorpusError(path, number + 2, f"{question!r:.80}.", "a question that quotes two sentences.")
        first, second = (text if text.rstrip()[-1:] in ".?!\"'" else f"{text.rstrip()}." for text in asked.groups())
        pairs.append((number + 2, str(number), first, second, answer))
    return pairs


def _csv(path: Path, **options: object):
    """A table of texts, as pandas reads it."""
    import pandas as pd

    with reading(path, "CSV in UTF-8."):
        return pd.read_csv(path, dtype=str, keep_default_na=False, **options)


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
    with reading(path, "a zip archive of N.abstr and N.uncontr."):
        archive = zipfile.Path(path)
        names = [name for name in archive.root.namelist() if name.endswith(".abstr")]
    texts = []
    for name in sorted(names, key=lambda name: (len(name), name)):
        title, *text = "\n".join(lines(archive / name)).replace("\n\t", " ").strip().split("\n")
        listed = "\n".join(lines(archive / f"{name.removesuffix('abstr')}uncontr")).split(";")
        phrases = tuple(" ".join(phrase.split()) for phrase in listed if phrase.strip())
        if not phrases:
            raise CorpusError(archive / name, None, "It has no keyphrases.", "some, between semicolons.")
        title, text = (" ".join(words.split()) for words in (title, " ".join(text)))
        texts.append(KeyedText(name.removesuffix(".abstr"), title, text, phrases))
    if not texts:
        raise CorpusError(path, None, "The archive has no .abstr member.", "an Inspec archive.")
    return tuple(texts)
