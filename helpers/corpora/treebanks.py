"""Sentences with trees from CoNLL-U, documents with coreference chains too; and their relations after Stanford's conventions.

Coreference is read from CoNLL-U, and from the columns of CoNLL-2012 and OntoGUM.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path

import conllu

from helpers.corpora.records import NOMINAL, PRONOUN, PROPER, Document, Mention, Sentence, depth
from helpers.corpora.sources import CorpusError, lines, once, reading

Rows = Sequence[tuple[int, str]]
"""Lines of a file, each with its number."""


def read(path: Path | str) -> tuple[Document, ...]:
    """Read a treebank or a coreference corpus, whichever format it is in.

    ``.conllu`` is CoNLL-U; a file or folder of ``.conll`` files whose first line is ``# begin document`` is
    OntoGUM; ``_conll`` or ``.conll`` otherwise is CoNLL-2012.
    """
    path = Path(path)
    return read_conll(path) if path.is_dir() or path.suffix != ".conllu" else read_conllu(path)


_AS_WRITTEN = dict.fromkeys(("xpos", "feats", "deps", "misc"), list.__getitem__)


def read_conllu(path: Path | str) -> tuple[Document, ...]:
    """Read documents from CoNLL-U, with coreference from ``Entity=`` in MISC (GUM and CorefUD style).

    ``# newdoc id`` begins a document; without any, the file is one. Multiword tokens give their words; empty
    nodes are skipped. Every sentence must be a tree.

    Raises:
        CorpusError: with the line, for anything that is not as it should be; nothing is half-loaded.
    """
    path = Path(path)
    layout, seen = ("eid", "etype", "head"), {}
    documents: list[tuple[str, Sequence[str], list[Sentence], list[Rows]]] = []  # layout is that of Entity=
    for number, metadata, tokens in _blocks(path):
        layout = (metadata.get("global.Entity") or "-".join(layout)).split("-")
        if "newdoc id" in metadata or "newdoc" in metadata or not documents:
            name = f"{path.stem}-{len(documents) + 1}" if "newdoc" in metadata else path.stem
            name = metadata.get("newdoc id") or name
            once(path, number, "document id", name, seen)
            documents.append((name, layout, [], []))
        if not any(isinstance(token["id"], int) for _, token in tokens):
            continue
        name, _, sentences, marks = documents[-1]
        identity = metadata.get("sent_id") or f"{name}-{len(sentences) + 1}"
        once(path, number, "sentence id", identity, seen)
        sentence, entities = _sentence(path, identity, tokens)
        sentences.append(sentence)
        marks.append(entities)
    kept = [Document(d[0], tuple(d[2]), mentions_of(path, d[2], d[3], d[1])) for d in documents if d[2]]
    if not kept:
        raise CorpusError(path, None, "The file has no sentence.", "CoNLL-U, ten tab-separated columns a word.")
    return tuple(kept)


def _blocks(path: Path) -> Iterator[tuple[int, dict, list[tuple[int, conllu.models.Token]]]]:
    """What stands between blank lines: the number of its first line, its comments, and its words with their lines' numbers."""
    block: list[tuple[int, str]] = []
    for number, line in enumerate([*lines(path), ""], 1):
        if line.strip():
            block.append((number, line))
            columns = line.split("\t")
            if line[0] != "#" and (len(columns) != 10 or not all(c.strip() for c in columns) or "  " in line):
                problem = f"{len(columns)} tab-separated columns, or an empty one, or two blanks in a row."
                wanted = "ten columns with single tabs between, and '_' for nothing."
                raise CorpusError(path, number, problem, wanted)
        elif block:
            with reading(path, "CoNLL-U.", block[0][0]):
                text = "\n".join(line for _, line in block)
                parsed = (conllu.parse(text, field_parsers=_AS_WRITTEN) or [conllu.TokenList()])[0]
            numbers = [n for n, line in block if line[0] != "#"]
            yield block[0][0], parsed.metadata, list(zip(numbers, parsed, strict=True))
            block = []


def _sentence(path: Path, identity: str, tokens: Sequence) -> tuple[Sentence, Rows]:
    """A checked sentence, and what ``Entity=`` says at each of its words."""
    line, wrong = tokens[0][0], partial(CorpusError, path)
    words = [(n, token) for n, token in tokens if isinstance(token["id"], int)]
    ids, heads = [token["id"] for _, token in words], [token["head"] for _, token in words]
    if ids != list(range(1, len(ids) + 1)):
        raise wrong(line, f"The words are numbered {', '.join(map(str, ids))}.", "1, 2, 3 and so on.")
    spaces = ["SpaceAfter=No" not in token["misc"].split("|") for _, token in words]
    for n, token in tokens:
        if isinstance(token["id"], tuple) and token["id"][1] == "-":
            first, _, last = token["id"]
            if last > len(words):
                raise wrong(n, f"Multiword token {first}-{last} of {len(words)} words.", "a range of words.")
            spaces[first - 1 : last] = [False] * (last - first) + ["SpaceAfter=No" not in token["misc"].split("|")]
    governors = relations = ()
    if set(heads) != {None}:  # a file without trees has '_' for every head
        governors = tuple(head - 1 if head in (0, *ids) else len(ids) for head in heads)  # beyond the end: no word
        relations = tuple(token["deprel"] for _, token in words)
        if (
            governors.count(-1) != 1
            or len(ids) in governors
            or None in map(partial(depth, governors), range(len(ids)))
        ):
            problem = f"The heads {', '.join(map(str, heads))} are no tree."
            raise wrong(line, problem, f"one 0, from which all others hang, of 0 to {len(ids)}.")
    columns = (tuple(token[key] for _, token in words) for key in ("form", "lemma", "upos", "xpos", "feats"))
    marks = [(n, re.search(r"(?:^|\|)Entity=([^|]*)|$", token["misc"])[1] or "") for n, token in words]
    return Sentence(identity, *columns, governors, relations, tuple(spaces)), marks


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
    tags = tags_of(sentence, head)
    if tags:
        if tags & {"PRON", "PRP", "PRP$", "WP", "WP$", "WDT"} or (tags & {"DT", "DET"} and end - start == 1):
            return PRONOUN
        return PROPER if tags & {"PROPN", "NNP", "NNPS"} else NOMINAL
    word = sentence.words[head]
    if end - start == 1 and word.lower() in _PRONOUNS:
        return PRONOUN
    return PROPER if word[:1].isupper() and head > 0 else NOMINAL


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
    documents, seen = [], {}
    for file in sorted(f for f in path.rglob("*conll") if f.is_file()) if path.is_dir() else [path]:
        for header, rows in _between_headers(file):
            if header["name"] is None:
                document = _ontogum(file, rows, trees)
            else:
                document = _ontonotes(file, f"{header['name']} part {int(header['part'] or 0)}", rows)
            once(path, None, "document id", document.id, seen)
            documents.append(document)
    if not documents:
        raise CorpusError(path, None, "There is no document.", "files of CoNLL-2012 or OntoGUM.")
    return tuple(documents)


def _between_headers(path: Path) -> Iterator[tuple[re.Match, Rows]]:
    """For each document its ``#begin document`` and the lines up to its ``#end document``."""
    header, rows = None, []
    for number, line in enumerate(lines(path), 1):
        begin, end = _BEGIN.match(line), line.replace(" ", "").startswith("#enddocument")
        if (begin and header) or (end and not rows) or (line.strip() and not (begin or header)):
            wanted = "'#begin document', words, '#end document'."
            raise CorpusError(path, number, f"{line[:40]!r} is not expected here.", wanted)
        if begin:
            header, rows = begin, []
        elif end:
            yield header, rows
            header, rows = None, []
        elif header:
            rows.append((number, line))
    if header:
        raise CorpusError(path, None, "The last document has no end.", "'#end document' as last line.")


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


def _ontogum(path: Path, rows: Rows, trees: Mapping[str, Document] | None) -> Document:
    wrong = partial(CorpusError, path)
    name, words, marks = path.stem, [], []
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


RENAMED = {
    "obj": "dobj",
    "aux:pass": "auxpass",
    "nsubj:pass": "nsubjpass",
    "csubj:pass": "csubjpass",
    "nmod:poss": "poss",
    "compound": "nn",
    "compound:prt": "prt",
}
"""UD relations that have another name in Stanford dependencies; those not here keep theirs."""


def stanford(sentence: Sentence) -> Sentence:
    """The same sentence with Stanford-style relations, those of Table 1 in Clark et al. (2019).

    UD lets a preposition depend on its noun (``case``), Stanford dependencies put it between: the preposition becomes
    ``prep`` of the noun's governor, the noun its ``pobj``. Where a noun has several (*out of the box*), each is the
    ``prep`` of the one before. A prepositional phrase that is predicate or conjunct passes its relation on to the
    preposition. A possessive *'s* becomes ``possessive`` and stays with its noun. Others are renamed by
    :data:`RENAMED` or keep their name.
    """
    governors, relations = list(sentence.governors), [RENAMED.get(r, r) for r in sentence.relations]
    first: dict[int, int] = {}
    for noun in range(len(governors)):
        cases = [w for w in sentence.dependents(noun) if sentence.relations[w] == "case"]
        for word in [w for w in cases if sentence.upos[w] == "PART"]:
            relations[word] = "possessive"
        prepositions = [w for w in cases if sentence.upos[w] != "PART"]
        if not prepositions or sentence.relations[noun] == "nmod:poss":
            continue
        first[noun] = prepositions[0]
        oblique = sentence.relations[noun].split(":")[0] in ("nmod", "obl")
        relations[prepositions[0]] = "prep" if oblique else relations[noun]
        governors[prepositions[0]] = sentence.governors[noun]
        for outer, inner in pairwise(prepositions):
            governors[inner], relations[inner] = outer, "prep"
        governors[noun], relations[noun] = prepositions[-1], "pobj"
    for noun, preposition in first.items():
        above = sentence.governors[noun]
        if sentence.relations[noun].startswith("conj") and above in first:
            governors[preposition] = first[above]
    return replace(sentence, governors=tuple(governors), relations=tuple(relations))


def possessive(sentence: Sentence, word: int) -> int | None:
    """The *'s* (or bare apostrophe) that marks a word as possessor, if it has one.

    Clark et al. (2019, section 4.2) count a head as right on ``poss`` also when this mark, and not the possessor
    itself, picks the right governor.
    """
    marks = (w for w in sentence.dependents(word) if sentence.relations[w] in ("case", "possessive"))
    return next((w for w in marks if sentence.upos[w] == "PART"), None)
