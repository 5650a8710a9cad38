"""Mentions and coreference chains: brackets in columns, head words, and the files of CoNLL-2012 and OntoGUM."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path

from helpers.corpora.records import NOMINAL, PRONOUN, PROPER, Document, Mention, Sentence, depth
from helpers.corpora.sources import CorpusError, lines

_MARKS = re.compile(r"(?:\([^()|]+\)?|[^()|]+\)|\|)*")
_MARK = re.compile(r"\(?[^()|]+\)?")


def mentions_of(
    path: Path,
    sentences: Sequence[Sentence],
    marks: Sequence[Sequence[tuple[int, str]]],
    layout: Sequence[str] = ("eid",),
) -> tuple[Mention, ...]:
    """Mentions from brackets such as ``(3``, ``3)``, ``(3)``, written side by side or with ``|`` between."""
    wrong = partial(CorpusError, path)
    mentions = []
    for number, (sentence, row) in enumerate(zip(sentences, marks, strict=True)):
        opened: dict[str, list[tuple[int, list[str], int]]] = {}
        for word, (line, written) in enumerate(row):
            if not _MARKS.fullmatch(written):
                raise wrong(line, f"{written!r} is not made of brackets.", "(3 or 3) or (3), side by side.")
            for mark in _MARK.findall(written):
                fields = mark.strip("()").split("-")
                if "[" in fields[0]:
                    raise wrong(line, f"The mention {fields[0]!r} has gaps.", "mentions without gaps.")
                if mark.startswith("("):
                    opened.setdefault(fields[0], []).append((word, fields, line))
                if mark.endswith(")"):
                    if not opened.get(fields[0]):
                        raise wrong(
                            line, f"{fields[0]!r} is closed but was not opened.", "a sentence's own brackets."
                        )
                    start, fields, _ = opened[fields[0]].pop()
                    head = head_word(sentence, start, word + 1)
                    kind, entity = _kind(sentence, start, word + 1, head), dict(zip(layout, fields, strict=False))
                    mentions.append(Mention(number, start, word + 1, fields[0], head, kind, entity.get("etype", "")))
        for chain, left in opened.items():
            if left:
                raise wrong(left[-1][2], f"{chain!r} is opened but not closed.", "a sentence's own brackets.")
    return tuple(sorted(mentions, key=lambda m: (m.sentence, m.start, -m.end)))


def head_word(sentence: Sentence, start: int, end: int) -> int:
    """The head word of a stretch of words ``[start, end)``: an index in the sentence.

    With a tree: the word whose governor lies outside; of several, the one nearest to the root, then the
    first. Without: what follows the first preposition, comma, relative word or opening bracket is left out (unless
    nothing stands before it), a final possessive *'s* too, and the last word of the rest is taken.
    """
    span = range(start, end)
    if sentence.governors:
        tops = [w for w in span if sentence.governors[w] not in span]
        return min(tops, key=lambda w: (depth(sentence.governors, w), w))
    stop = next((w for w in span if w > start and sentence.words[w].lower() in _AFTER_THE_HEAD), end)
    while stop - 1 > start and sentence.words[stop - 1] in ("'s", "’s", "'", "’"):
        stop -= 1
    return stop - 1


_RELATIVE = "who whom whose which"
_AFTER_THE_HEAD = frozenset(
    "of in on at by for from to with without about against between among into over under after before during since until through within "
    f"across near toward towards upon as like than , ( - -- : ; -lrb- {_RELATIVE} that where when why".split()
)
_PRONOUNS = frozenset(
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its "
    f"itself they them their theirs themselves this that these those one {_RELATIVE}".split()
)
_NO_TAG = {"_", "-", "*"}


def tags_of(sentence: Sentence, word: int) -> set[str]:
    """The parts of speech that a word is tagged with; none where the columns are missing or say nothing."""
    return {column[word] for column in (sentence.upos, sentence.xpos) if column} - _NO_TAG


def _kind(sentence: Sentence, start: int, end: int, head: int) -> str:
    """Pronoun, proper or nominal: by the head word's tag, or by its form where there are no tags."""
    if tags := tags_of(sentence, head):
        if tags & {"PRON", "PRP", "PRP$", "WP", "WP$", "WDT"} or (tags & {"DT", "DET"} and end - start == 1):
            return PRONOUN
        return PROPER if tags & {"PROPN", "NNP", "NNPS"} else NOMINAL
    word = sentence.words[head]
    if end - start == 1 and word.lower() in _PRONOUNS:
        return PRONOUN
    return PROPER if word[:1].isupper() and head > 0 else NOMINAL


# ---------------------------------------------------------------------------------------- CoNLL-2012, OntoGUM

_BEGIN = re.compile(r"#\s?begin document\s*(?:\((?P<name>.*)\);(?:\s*part\s+(?P<part>\d+))?)?\s*$")
_ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "/.": ".", "/?": "?"}


def read_conll(path: Path | str, trees: Mapping[str, Document] | None = None) -> tuple[Document, ...]:
    """Read coreference in the column format of CoNLL-2012 (OntoNotes) or of OntoGUM; all ``*conll`` files of a folder.

    OntoNotes files have a name in the header, a blank line between sentences, at least 12 columns, part of
    speech in the fifth and coreference in the last. OntoGUM files have three columns, no sentence ends, and
    their name for a document's.

    Args:
        trees: for OntoGUM, documents of the ``gum`` treebank by id. Their sentences (with trees) are then used,
            which must have the same words. Without them sentences end at ``.``, ``!`` and ``?`` outside mentions.

    Raises:
        CorpusError: with the line, for anything that is not as it should be; nothing is half-loaded.
    """
    path = Path(path)
    wrong = partial(CorpusError, path)
    documents, name, named, rows = [], None, False, []
    if path.is_dir():
        documents = [d for file in sorted(path.rglob("*conll")) if file.is_file() for d in read_conll(file, trees)]
    for number, line in enumerate([] if path.is_dir() else lines(path), 1):
        begin, end = _BEGIN.match(line), line.replace(" ", "").startswith("#enddocument")
        if (begin and name) or (end and not rows) or (line.strip() and not (begin or name)):
            raise wrong(number, f"{line[:40]!r} is not expected here.", "'#begin document', words, '#end document'.")
        if begin:
            named, rows = bool(begin["name"]), []
            name = f"{begin['name']} part {int(begin['part'] or 0)}" if named else path.stem
        elif end:
            documents.append(_ontonotes(path, name, rows) if named else _ontogum(path, name, rows, trees))
            name, rows = None, []
        else:
            rows.append((number, line))
    if name or not documents:
        problem = "The last document has no end." if name else "There is no document."
        raise wrong(None, problem, "files of CoNLL-2012 or OntoGUM, '#end document' as last line.")
    if twice := [d for d, n in Counter(d.id for d in documents).items() if n > 1]:
        raise wrong(None, f"The document id {twice[0]!r} occurs twice.", "one of its own for each.")
    return tuple(documents)


Rows = Sequence[tuple[int, str]]
"""Lines of a document, each with its number."""


def _ontonotes(path: Path, name: str, rows: Rows) -> Document:
    wrong = partial(CorpusError, path)
    sentences, marks, current = [], [], []
    for number, line in [*rows, (0, "")]:
        columns = line.split()
        if columns:
            if len(columns) < 12:
                raise wrong(number, f"{len(columns)} columns.", "at least 12, as in OntoNotes.")
            if columns[2] != str(len(current)):
                raise wrong(number, f"Word {columns[2]} stands where word {len(current)} should be.", "0, 1, 2 ...")
            if columns[3] == "[WORD]":
                raise wrong(number, "The words are left out.", "files filled in with 'skeleton2conll'.")
            current.append((number, columns))
        elif current:
            words = tuple(_ESCAPED.get(c[3], c[3]) for _, c in current)
            sentences.append(Sentence(f"{name}-{len(sentences) + 1}", words, xpos=tuple(c[4] for _, c in current)))
            marks.append([(n, "" if c[-1] in "-_" else c[-1]) for n, c in current])
            current = []
    return Document(name, tuple(sentences), mentions_of(path, sentences, marks))


def _ontogum(path: Path, name: str, rows: Rows, trees: Mapping[str, Document] | None) -> Document:
    wrong = partial(CorpusError, path)
    words, marks = [], []
    for number, line in rows:
        columns = line.split("\t")
        if len(columns) != 3 or columns[0] != str(len(words)):
            raise wrong(number, f"{line[:60]!r}.", f"three columns: {len(words)}, word, coreference.")
        words.append(columns[1] or "_")
        marks.append((number, columns[2].strip("_")))
    if trees is None:
        opened = accumulate(m.count("(") - m.count(")") for _, m in marks)  # no mention may cross a border
        final = [word in (".", "!", "?") and not inside for word, inside in zip(words, opened, strict=True)]
        ends = [number for number, ends_here in enumerate(final, 1) if ends_here]
        bounds = list(pairwise(dict.fromkeys([0, *ends, len(words)])))
        sentences = tuple(Sentence(f"{name}-{i}", tuple(words[a:b])) for i, (a, b) in enumerate(bounds, 1))
    elif name not in trees:
        raise wrong(1, f"The treebank has no document {name!r}.", "the same documents in both.")
    else:
        sentences = trees[name].sentences
        own = [w for s in sentences for w in s.words]
        other = [number for (number, _), word, w in zip(marks, words, own, strict=False) if word not in (w, "_")]
        if other or len(own) != len(words):
            problem = f"Its {len(words)} words are not the {len(own)} of {name!r} in the treebank."
            raise wrong(other[0] if other else marks[-1][0], problem, "the same words.")
        bounds = pairwise(accumulate((len(s.words) for s in sentences), initial=0))
    return Document(name, sentences, mentions_of(path, sentences, [marks[a:b] for a, b in bounds]))
