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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from helpers import places
from helpers.corpora import records, sources, treebanks
from helpers.corpora.records import Answer, Article, Corpus, Documents, KeyedText, Pair, Question, Segment
from helpers.corpora.sources import TASKS, CorpusError, ending, lines, locate, reading, some


def read(name: str, split: str | None = None) -> Corpus:
    """Read a corpus of running text.

    Args:
        name: ``encyclopedia`` (travels with the book), ``wikitext``, or the path of a file in either format:
            ``.jsonl`` as the encyclopedia, ``.csv.gz`` with one article a row, anything else as plain text with one
            article after another (WikiText layout).
        split: ``train``, ``dev`` or ``test`` (wikitext only; default: test).
    """
    path, known = locate(name, "text", split), sources.entry(name, "text")
    if ending(path).removesuffix(".gz").endswith((".conllu", "conll")):
        raise CorpusError(
            path.name, None, "This is a treebank.", "running text; a treebank goes to the parameter treebank."
        )
    if ending(path).endswith((".jsonl", ".json")):
        articles = _json_lines(path, _article, ARTICLES)
    else:
        articles = _plain_text(path, wikitext=known is not None)
    wanted = f"a paragraph of {FEWEST_PARAGRAPH_WORDS} words or more on each line; without blanks, two letters count as a word."
    digest, articles = places.sha256(path), some(path, articles, wanted)
    corpus = Corpus(name if known else path.stem, digest, articles, own=not known)
    with suppress(CorpusError):  # too little for two halves, which not everybody needs
        corpus = replace(corpus, parts=halves(corpus)[1])
    return corpus


ARTICLES = "an object with id, title and paragraphs, a list of texts, on each line."


def _json_lines(path: Path, made: Callable[[Any], Any], expected: str) -> Iterator[Any]:
    """What is made of the object on each line."""
    for number, line in enumerate(lines(path), 1):
        if line.strip():
            with reading(path, expected, number):
                yield made(json.loads(line))


def _article(row: Mapping[str, Any]) -> Article:
    return Article(str(row["id"]), str(row["title"]), _texts(row["paragraphs"]))


def _texts(given: Any) -> tuple[str, ...]:
    """A list of texts; a text in place of one would be taken for its letters.

    Raises:
        ValueError: for anything else.
    """
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
        raise ValueError(f"{given!r:.60} is no list of texts")
    return tuple(given)


_HEADING = re.compile(r"^\s*=\s(?P<title>.*?)\s=\s*$")
FEWEST_PARAGRAPH_WORDS = 10  # shorter lines are captions, list items and formulas left over from the markup


#: Letters of scripts that are written without blanks between words: Thai, Lao, Tibetan, Burmese, Khmer, Japanese, Chinese.
_UNSPACED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def _plain_text(path: Path, *, wikitext: bool) -> list[Article]:
    """Articles from plain text, one after another, one paragraph a line (WikiText layout).

    `` = Title = `` begins an article; deeper headings (`` = = Section = = ``) and lines of fewer than 10
    words are left out, which is said of a reader's own text. Text before the first title is an article of its own. WikiText's spacing
    is undone where a text is in it: a corpus of the catalogue, or each line begins with a blank and ``@-@``, ``@,@`` or ``@.@`` stands in some.
    A ``.csv.gz`` file has one column and an article a row; a row without a title begins an article all the same.
    """
    import pandas as pd

    if ending(path).endswith(".csv.gz"):
        table = pd.read_csv(path, header=None, dtype=str, na_filter=False)[0]
        text = "\n".join(f" = {path.stem} {number} = \n{row}" for number, row in enumerate(table))
    else:
        text = "\n".join(lines(path))
    filled = [line for line in text.split("\n") if line.strip()]
    spaced = all(line[0] == " " for line in filled) and any(_MARKS[0][0].search(line) for line in filled)
    plain = detokenised if wikitext or spaced else str.strip
    articles: list[tuple[str, list[str]]] = [(path.stem, [])]
    short = 0
    for line in filled:
        heading = _HEADING.match(line)
        words = max(len(line.split()), len(_UNSPACED.findall(line)) // 2)  # where there are no blanks
        if heading and not heading["title"].startswith("="):
            articles.append((plain(heading["title"]), []))
        elif not heading and words >= FEWEST_PARAGRAPH_WORDS:
            articles[-1][1].append(plain(line))
        else:
            short += not heading
    if short and not wikitext:
        sources.say(path, f"{short} lines of fewer than {FEWEST_PARAGRAPH_WORDS} words are left out.")
    articles = articles if articles[0][1] else articles[1:]  # whether anything stands before the first title
    return [Article(f"{path.stem}-{n}", title, tuple(texts)) for n, (title, texts) in enumerate(articles) if texts]


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
        Segment(texts, document)
        for document, article in enumerate(halves(corpus)[0].articles)
        for texts in pairwise(article.paragraphs)
    ]
    return records.sample(pairs, limit, seed=seed)


def documents(name: str, split: str | None = None, *, trees: bool = False) -> Documents:
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
        chosen = by_part[split] if split else sum(by_part.values(), ())
    else:
        path, gum = locate(name, "treebank", split), sources.find(sources.entry("gum", "treebank"), split or "test")
        of_gum = {d.id: d for d in treebanks.read(gum)} if gum and name == "gum-ontonotes" else None
        chosen = treebanks.read(path, trees=of_gum)
    if trees and not any(s.governors for d in chosen for s in d.sentences):
        problem = f"No sentence of the part {split or 'all'!r} has a tree (governors, the column HEAD)."
        raise CorpusError(name, None, problem, "a treebank in CoNLL-U; mentions alone are enough for chapter 05.")
    return records.numbered(chosen)


def held_out(name: str, choose_on: Sequence[str], *, trees: bool = False) -> tuple[Documents, Documents]:
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
    """Name and digest of the files that a measurement read, for :class:`helpers.results.Run`."""
    known = sources.entry(name, kind)
    if kind == "text" and not known:
        return replace(read(name), articles=())
    paths = dict.fromkeys(locate(n, kind, split) for n in sources.names_in(name) for split in splits or (None,))
    parts = treebanks.in_parts(name)[1] if kind == "treebank" and not known else ""
    return Corpus(sources.label(name), places.sha256(*sources.files(*paths)), own=not known, parts=parts)


def own(**names: str | Sequence[str]) -> tuple[Corpus, ...]:
    """Of the corpora that a chapter reads, those that are a reader's own: ``own(treebank=treebank, pairs=[one, other])``.

    A record names them (:class:`helpers.results.Run`), and is kept apart from the book's.
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
            sentences.append(treebanks.in_parts(corpus)[1])
            mentions = [(d.sentences[m.sentence], m.head) for d in documents(corpus) for m in d.mentions]
            untagged = sum(not treebanks.tags_of(*head) for head in mentions)
            if untagged:
                how = "pronoun, proper or nominal by the form of the word"
                sentences.append(f"{untagged} of {len(mentions)} mentions have no part-of-speech tag: {how}.")
    return [sentence for sentence in dict.fromkeys(sentences) if sentence]


def questions(name: str, split: str | None = None) -> tuple[Question, ...]:
    """Read questions: ``encyclopedia``, ``squad``, ``xquad``, ``squadshifts-…``, or the path of a file in SQuAD's layout.

    Questions without an answer (SQuAD 2.0) are left out.

    Raises:
        CorpusError: for another layout, and where an answer does not stand in its context, to the letter.
    """
    path, complete, left_out = locate(name, "questions", split), [], 0
    wanted = "SQuAD: data / paragraphs / context and qas / question, id, answers / text, answer_start (in characters, from 0)."
    with reading(path, wanted):
        for article in json.loads("\n".join(lines(path)))["data"]:
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    answers = tuple(_answer(paragraph["context"], asked["id"], **a) for a in asked["answers"])
                    about = str(asked["id"]), str(article.get("title", "")), paragraph["context"], asked["question"]
                    complete += [Question(*about, answers)] if answers else []
                    left_out += not answers
    if left_out and not sources.entry(name, "questions"):
        sources.say(path, f"{left_out} questions without an answer are left out.")
    return some(path, complete, wanted)


def _answer(context: str, question: str, text: str, answer_start: int, **_: object) -> Answer:
    """An answer, which must stand in its context; also where it is counted in the units of UTF-16 or of UTF-8.

    Raises:
        ValueError: where it does not.
    """
    for encoding, width in (("utf-32-le", 4), ("utf-16-le", 2), ("utf-8", 1)):
        before = context.encode(encoding, "surrogatepass")[: answer_start * width].decode(encoding, "ignore")
        if answer_start >= 0 and text.strip() and context.startswith(text, len(before)):
            return Answer(text, len(before))
    raise ValueError(f"question {question!r}: the answer {text!r:.60} does not stand at character {answer_start}")


#: Names that the columns of sentence pairs may have, in small letters.
_COLUMNS = {
    "first": ("#1 string", "sentence1", "premise"),
    "second": ("#2 string", "sentence2", "hypothesis"),
    "label": ("gold_label", "label", "quality", "score", "answer"),
    "id": ("pairid", "index", "#1 id"),
}
_ASKED = re.compile('For the statement, "(.*)", does the hypothesis "(.*)" represent entailment, contra.*', re.S)


def pairs(name: str, split: str | None = None, *, task: str | None = None, labels: bool = True) -> tuple[Pair, ...]:
    """Read sentence pairs: a name of the catalogue, or a path together with its ``task``.

    Tab-separated with a header (bare quotation marks are ordinary characters), as GLUE, SNLI and MRPC give them out; ``.csv`` with commas; SNLI also as
    three parallel gzipped line files (give the path of ``s1.…``), MNLI also as a CSV of ready questions. Rows without a gold label
    (``-``) are left out, as is usual.

    Args:
        task: a key of :data:`helpers.corpora.sources.TASKS`: which labels to expect.
        labels: whether they matter; where not, those of a path stay as they stand, and it needs no task.

    Raises:
        CorpusError: with the line, for a wrong number of columns, an empty sentence or an unknown label.
    """
    known, path, collected = sources.entry(name, "pairs"), locate(name, "pairs", split), []
    task = task or (known.task if known else None)
    allowed = (*TASKS[task], "-") if task or labels else None
    names = _COLUMNS | ({"label": ("label3", *_COLUMNS["label"])} if task == "nli" else {})
    (_, header), *rows = _rows(path)
    columns = [column.strip().lower() for column in header]
    wanted = f"as many cells as in {header}: sentences ({names['first']}, {names['second']}), a label ({names['label']}) of {allowed}."
    for line, row in rows:
        with reading(path, wanted, line):
            cells = dict(zip(columns, row, strict=True))
            if "Question" in header:
                cells |= _asked(cells["question"]) | {"index": str(line - 2)}
            pair = {key: next((cells[n] for n in given if n in cells), "") for key, given in names.items()}
            if task == "mrpc":
                pair["label"] = {"0": "not_paraphrase", "1": "paraphrase"}.get(pair["label"], pair["label"])
            if not (pair["first"].strip() and pair["second"].strip()):
                raise ValueError("a sentence is empty or has no column")
            if allowed and pair["label"] not in allowed:
                raise ValueError(f"the label is {pair['label']!r}")
            collected.append(Pair(**pair | {"id": pair["id"] or str(line)}))
    complete = [pair for pair in collected if pair.label != "-"]
    if len(complete) < len(collected) and not known:
        sources.say(path, f"{len(collected) - len(complete)} pairs without a label ('-') are left out.")
    return some(path, complete, "labelled pairs.")


def _rows(path: Path) -> Sequence[tuple[int, Sequence[str]]]:
    """The header of a file of sentence pairs, and its rows, with the numbers of their lines."""
    if path.name.startswith("s1.") and ending(path).endswith(".gz"):  # SNLI, a file a column
        files = [lines(path.with_name(path.name.replace("s1", name, 1))) for name in ("s1", "s2", "labels")]
        return [(0, ("sentence1", "sentence2", "label")), *enumerate(zip(*files, strict=True), 1)]
    if ending(path).endswith((".csv", ".csv.gz")):
        table = csv.reader(io.StringIO("\n".join(lines(path))))
        rows = [(table.line_num - sum(cell.count("\n") for cell in row), row) for row in table]
    else:
        rows = [(n, [_unquoted(cell) for cell in line.split("\t")]) for n, line in enumerate(lines(path), 1)]
    return some(path, [(line, row) for line, row in rows if any(cell.strip() for cell in row)], "sentence pairs.")


def _unquoted(cell: str) -> str:
    """A cell as it was before a spreadsheet put it in quotation marks and doubled those inside."""
    inside = cell[1:-1]
    quoted = len(cell) > 1 and cell[0] == cell[-1] == '"' and '""' in inside and '"' not in inside.replace('""', "")
    return inside.replace('""', '"') if quoted else cell


def _asked(question: str) -> dict[str, str]:
    """The two sentences that are quoted in a ready question of MNLI; a full stop that was lost is put back.

    Raises:
        ValueError: where there are none.
    """
    quoted = _ASKED.fullmatch(question)
    if quoted is None:
        raise ValueError("there is no question with two quoted sentences")
    texts = [text if text.rstrip()[-1:] in ".?!\"'" else f"{text.rstrip()}." for text in quoted.groups()]
    return dict(zip(("sentence1", "sentence2"), texts, strict=True))


def keyphrases(name: str, split: str | None = None) -> tuple[KeyedText, ...]:
    """Read texts with keyphrases: ``encyclopedia``, ``inspec``, or the path of a ``.jsonl`` or Inspec ``.zip`` file.

    JSON lines are ``{"id", "keyphrases"}``; the texts are those of ``articles.jsonl`` beside them. An Inspec archive has ``N.abstr`` (title,
    then abstract) and ``N.uncontr`` (keyphrases between semicolons); lines that begin with a tab go on with the one before.

    Raises:
        CorpusError: for a damaged file, and for keyphrases without a text.
    """
    path = locate(name, "keyphrases", split)
    wanted = "keyphrases, a list, with ids of articles.jsonl; or a zip archive of N.abstr and N.uncontr."
    if ending(path).endswith(".zip"):
        with reading(path, wanted):
            return some(path, _inspec(zipfile.Path(path)), wanted)
    articles = {a.id: a for a in _json_lines(path.with_name("articles.jsonl"), _article, ARTICLES)}

    def keyed(row: Mapping[str, Any]) -> KeyedText:
        text = articles[str(row["id"])]
        return KeyedText(text.id, text.title, "\n".join(text.paragraphs), _texts(row["keyphrases"]))

    return some(path, _json_lines(path, keyed, wanted), wanted)


def _inspec(archive: zipfile.Path) -> Iterator[KeyedText]:
    """The texts of an Inspec archive, by number."""
    inside = [name for name in archive.root.namelist() if not sources.hidden(name)]
    names = [name.removesuffix(".abstr") for name in inside if name.endswith(".abstr")]
    for name in sorted(names, key=lambda name: (len(name), name)):
        title, *text = "\n".join(lines(archive / f"{name}.abstr")).replace("\n\t", " ").strip().split("\n")
        listed = "\n".join(lines(archive / f"{name}.uncontr")).split(";")
        phrases = tuple(" ".join(phrase.split()) for phrase in listed if phrase.strip())
        yield KeyedText(name, " ".join(title.split()), " ".join(" ".join(text).split()), phrases)


@lru_cache(maxsize=1)
def vectors(name: str = "glove") -> tuple[dict[str, int], Float[np.ndarray, "word dimension"]]:
    """Word vectors that do not depend on context, of words in lower case: the row of each word, and all rows (GloVe 6B: 50 dimensions, 400,000 words)."""
    import pandas as pd

    path = locate(name, "vectors")
    words = pd.read_parquet(path.with_name("glove_6B_index.parquet")).iloc[:, 0]
    return {word: row for row, word in enumerate(words)}, np.load(path, mmap_mode="r")


_SENTENCE_END = re.compile(
    r"""(?:[.!?؟۔।॥։።]["'”’»)\]]*\s+|[。！？｡]["'”’」』）)\]]*\s*)(?=["'“‘«„「『（(\[¿¡]*(.))"""
)
_ABBREVIATION = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Gen|Col|Capt|Lt|Sgt|Rev|Jr|Sr|No|Nos|vs|vol|pp|fig|ca|c|[A-ZÀ-ÞА-ЯЁ])\.$"
)


def sentences(text: str) -> list[tuple[int, int]]:
    """Spans (start, end) of the sentences of a text, in characters; together they cover it.

    A rule, not a model: a sentence ends at ``.``, ``!`` or ``?``, or their like in other scripts (and closing quotes or brackets),
    followed by white space and a capital letter, a letter of a script without capitals or a digit, unless the stop belongs to a
    title, an initial or another common abbreviation. After ``。`` there need not be white space.
    """
    spans, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        if match[0].startswith(".") and _ABBREVIATION.search(text[start : match.start() + 1]):
            continue
        if match[1].isdecimal() or (match[1].isalpha() and not match[1].islower()) or match[0][0] in "。！？｡":
            spans.append((start, match.end()))
            start = match.end()
    return [*spans, (start, len(text))] if start < len(text) else spans


def count(name: str, kind: str, split: str) -> str:
    """How much there is in one split of a corpus of the catalogue, in words; it is read for that."""
    counts: Counter[str] = Counter()
    if kind == "text":
        for article in read(name, split).articles:
            counts.update(articles=1, words=sum(len(paragraph.split()) for paragraph in article.paragraphs))
    elif kind == "treebank":
        for document in documents(name, split):
            words = sum(len(sentence.words) for sentence in document.sentences)
            counts.update(documents=1, sentences=len(document.sentences), words=words, chains=len(document.chains))
    elif kind == "pairs":
        counts.update(sorted(pair.label for pair in pairs(name, split)))
    elif kind == "keyphrases":
        for text in keyphrases(name, split):
            counts.update(texts=1, keyphrases=len(text.keyphrases))
    elif kind == "questions":
        counts.update(questions=len(questions(name, split)))
    else:
        counts.update(words=len(vectors(name)[0]))
    return ", ".join(f"{number:,} {unit}" for unit, number in counts.items())
