"""Mentions and coreference chains: brackets in columns, head words, and the files of CoNLL-2012 and OntoGUM."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path

from helpers.corpora.records import NOMINAL, PRONOUN, PROPER, Document, Mention, Sentence, depth
from helpers.corpora.sources import CorpusError, lines

_BRACKET = re.compile(r"\((?P<one>[^()|]+)\)|\((?P<open>[^()|]+)|(?P<close>[^()|]+)\)|\|")


def mentions_of(
    path: Path,
    sentences: Sequence[Sentence],
    marks: Sequence[Sequence[tuple[int, str]]],
    layout: Sequence[str] = ("eid",),
) -> tuple[Mention, ...]:
    """Mentions from brackets such as ``(3``, ``3)``, ``(3)``, written side by side or with ``|`` between."""
    wrong = partial(CorpusError, path)
    found = []
    for number, (sentence, row) in enumerate(zip(sentences, marks, strict=True)):
        opened: dict[str, list[tuple[int, list[str], int]]] = {}
        for word, (line, mark) in enumerate(row):
            end = 0
            for bracket in _BRACKET.finditer(mark):
                if bracket.start() != end:
                    break
                end = bracket.end()
                fields = (bracket["one"] or bracket["open"] or bracket["close"] or "").split("-")
                if bracket["one"] or bracket["open"]:
                    if "[" in fields[0]:
                        raise wrong(line, f"The mention {fields[0]!r} has gaps.", "mentions without gaps.")
                    opened.setdefault(fields[0], []).append((word, fields, line))
                if bracket["one"] or bracket["close"]:
                    if not opened.get(fields[0]):
                        said = f"Mention {fields[0]!r} is closed but was not opened in this sentence."
                        raise wrong(line, said, "balanced brackets.")
                    start, given, _ = opened[fields[0]].pop()
                    span = start, word + 1
                    head, kind = head_word(sentence, *span), dict(zip(layout, given, strict=False)).get("etype", "")
                    found.append(Mention(number, *span, fields[0], head, _kind(sentence, *span, head), kind))
            if end != len(mark):
                raise wrong(line, f"{mark[end:]!r} is no bracket.", "(3 or 3) or (3), side by side.")
        for chain, left in opened.items():
            if left:
                said = f"Mention {chain!r} is opened but not closed in its sentence."
                raise wrong(left[-1][2], said, "balanced brackets.")
    return tuple(sorted(found, key=lambda m: (m.sentence, m.start, -m.end)))


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


_AFTER_THE_HEAD = frozenset(
    """
    of in on at by for from to with without about against between among into over under after before during since
    until through within across near toward towards upon as like than , ( - -- : ; who whom whose which that where
    when why -lrb-
    """.split()  # noqa: SIM905
)
_PRONOUNS = frozenset(
    """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves this that these those one who whom whose which
    """.split()  # noqa: SIM905
)


def tags_of(sentence: Sentence, word: int) -> set[str]:
    """The parts of speech that a word is tagged with; none where the columns are missing or say nothing."""
    return {column[word] for column in (sentence.upos, sentence.xpos) if column} - _NO_TAG


_NO_TAG = frozenset(("_", "-", "*"))


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
ONTONOTES_COLUMNS = 12
_ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "/.": ".", "/?": "?"}
_SENTENCE_ENDS = frozenset(".!?")


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
    if path.is_dir():
        files = sorted(p for p in path.rglob("*conll") if p.is_file())
        if not files:
            raise wrong(None, "The folder has no file that ends in 'conll'.", "CoNLL-2012 or OntoGUM files.")
        documents = [d for file in files for d in read_conll(file, trees)]
        return _distinct(path, documents)
    documents, name, first, rows = [], None, 0, []
    for number, line in enumerate(lines(path), 1):
        if begin := _BEGIN.match(line):
            if name is not None:
                raise wrong(number, f"Document {name!r} (line {first}) has no end.", "'#end document' before.")
            name = f"{begin['name']} part {int(begin['part'] or 0)}" if begin["name"] else path.stem
            named, first, rows = bool(begin["name"]), number, []
        elif line.replace(" ", "").startswith("#enddocument"):
            if name is None or not rows:
                raise wrong(number, "A document ends that has no words.", "'#begin document' and words before.")
            documents.append(_ontonotes(path, name, rows) if named else _ontogum(path, name, rows, trees))
            name = None
        elif name is None and line.strip():
            raise wrong(number, f"{line[:40]!r} stands outside a document.", "'#begin document (name); part 000'.")
        else:
            rows.append((number, line))
    if name is not None or not documents:
        said = "The document has no end." if name else "There is no document."
        raise wrong(first or None, said, "'#end document' as last line.")
    return _distinct(path, documents)


def _distinct(path: Path, documents: Sequence[Document]) -> tuple[Document, ...]:
    if twice := [d for d, n in Counter(d.id for d in documents).items() if n > 1]:
        raise CorpusError(path, None, f"The document id {twice[0]!r} occurs twice.", "one of its own for each.")
    return tuple(documents)


def _ontonotes(path: Path, name: str, rows: Sequence[tuple[int, str]]) -> Document:
    wrong = partial(CorpusError, path)
    sentences, marks, current = [], [], []
    for number, line in [*rows, (0, "")]:
        if columns := line.split():
            if len(columns) < ONTONOTES_COLUMNS:
                raise wrong(number, f"{len(columns)} columns.", f"at least {ONTONOTES_COLUMNS}, as in OntoNotes.")
            if columns[2] != str(len(current)):
                raise wrong(number, f"Word {columns[2]} stands where word {len(current)} should be.", "0, 1, 2 ...")
            if columns[3] == "[WORD]":
                raise wrong(
                    number, "The words are left out.", "files filled in with 'skeleton2conll' from LDC2013T19."
                )
            current.append((number, columns))
        elif current:
            words = tuple(_ESCAPED.get(c[3], c[3]) for _, c in current)
            sentences.append(Sentence(f"{name}-{len(sentences) + 1}", words, xpos=tuple(c[4] for _, c in current)))
            marks.append([(n, "" if c[-1] in "-_" else c[-1]) for n, c in current])
            current = []
    return Document(name, tuple(sentences), mentions_of(path, sentences, marks))


def _ontogum(
    path: Path, name: str, rows: Sequence[tuple[int, str]], trees: Mapping[str, Document] | None
) -> Document:
    wrong = partial(CorpusError, path)
    words, marks = [], []
    for number, line in rows:
        columns = line.split("\t")
        if len(columns) != 3 or columns[0] != str(len(words)):
            raise wrong(number, f"{line[:60]!r}.", f"three columns: {len(words)}, word, coreference.")
        words.append(columns[1] or "_")
        marks.append((number, columns[2].strip("_")))
    if trees is None:
        opened = list(accumulate(m.count("(") - m.count(")") for _, m in marks))  # no mention may cross a border
        ends = [i + 1 for i, w in enumerate(words) if (w in _SENTENCE_ENDS and opened[i] == 0) or i + 1 == len(words)]
        bounds = list(zip([0, *ends], ends, strict=False))
        sentences = tuple(Sentence(f"{name}-{i}", tuple(words[a:b])) for i, (a, b) in enumerate(bounds, 1))
    elif name not in trees:
        raise wrong(1, f"The treebank has no document {name!r}.", "the same documents in both.")
    else:
        sentences = trees[name].sentences
        own = [w for s in sentences for w in s.words]
        if bad := next((i for i, (a, b) in enumerate(zip(words, own, strict=False)) if a not in (b, "_")), None):
            raise wrong(marks[bad][0], f"{words[bad]!r}, where the treebank has {own[bad]!r}.", "the same words.")
        if len(own) != len(words):
            raise wrong(marks[-1][0], f"{len(words)} words, the treebank has {len(own)}.", "the same words.")
        ends = [sum(len(s.words) for s in sentences[: i + 1]) for i in range(len(sentences))]
        bounds = list(zip([0, *ends], ends, strict=False))
    return Document(name, sentences, mentions_of(path, sentences, [marks[a:b] for a, b in bounds]))
