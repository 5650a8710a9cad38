"""Sentences with trees from CoNLL-U, documents with coreference chains too; and their relations after Stanford's conventions.

Coreference is read from CoNLL-U, and from the columns of CoNLL-2012 and OntoGUM. A reader's own treebank falls into ``train``,
``dev`` and ``test``, so that nothing is measured on what it was chosen or learnt on: as its files are named, else by document, else
by runs of sentences. What was done is said in one sentence (:func:`helpers.corpora.readers.notes`), and recorded.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, islice, pairwise
from pathlib import Path

import numpy as np

from helpers.corpora import sources
from helpers.corpora.records import NOMINAL, PRONOUN, PROPER, Document, Mention, Sentence, depth
from helpers.corpora.sources import CorpusError, Faults, WrongRow, ending, lines, locate, some

Rows = Sequence[tuple[int, list[str]]]
"""Rows with the numbers of their lines, cut into columns."""
Mark = tuple[int, int, int, str]
"""Coreference brackets as written in one row: the row's line, the first word that they are at, and the last."""


def read(path: Path | str) -> tuple[Document, ...]:
    """Read a treebank or a coreference corpus: CoNLL-U, or the columns of :func:`read_conll`; of a folder see :func:`files_of`."""
    path = Path(path)
    if path.is_dir():
        return some(
            path, [d for file in files_of(path) for d in read(file)], "files in CoNLL-U, CoNLL-2012 or OntoGUM."
        )
    rows = [row for row in lines(path) if row.strip() and not row.startswith("#")]
    in_ten = ending(path).endswith((".conllu", ".conllu.gz")) or len(next(iter(rows), "").split("\t")) == len(COLUMNS)
    return read_conllu(path) if in_ten else read_conll(path)


def files_of(path: Path) -> list[Path]:
    """The files of a treebank: of a folder those in CoNLL-U, else those in the columns of CoNLL-2012 or OntoGUM.

    Of OntoNotes' twins ``*_gold_conll`` and ``*_auto_conll``, which hold the same words, the gold one. What is not read is said.
    """
    if not path.is_dir():
        return [path]
    found = sources.files(path)
    in_ten = [f for f in found if ending(f).endswith((".conllu", ".conllu.gz"))]
    others = [f for f in found if ending(f).endswith(("conll", "conll.gz"))]
    if in_ten and others:
        sources.say(
            path, f"{len(in_ten)} files in CoNLL-U are read, and not the {len(others)} in other columns (*conll)."
        )
    if in_ten:
        return in_ten
    gold = {f: path / re.sub(r"(?i)(?<![a-z])auto(?![a-z])", "gold", str(f.relative_to(path))) for f in others}
    twins = [f for f in others if gold[f] != f and gold[f] in gold]
    if twins:
        sources.say(
            path, f"{len(twins)} files *_auto_conll are not read: *_gold_conll beside them have the same words."
        )
    return [f for f in others if f not in twins]


COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
_COMMENT = re.compile(r"#\s*([^=]*?)\s*(?:=\s*(.*?)\s*)?")
_NUMBER = re.compile(r"(\d+)(?:-(\d+)|(\.\d+))?")


def read_conllu(path: Path) -> tuple[Document, ...]:
    """Read documents from CoNLL-U, with coreference from ``Entity=`` in MISC (GUM and CorefUD style).

    ``# newdoc id`` begins a document; without any, the file is one. Multiword tokens give their words; empty nodes are skipped: a
    mention that ends at one ends at the word before, and one of empty nodes only is left out. ``# global.Entity`` names the
    order of the fields in ``Entity``. Every sentence must be a tree, or all of its heads ``_``.

    Raises:
        CorpusError: with the line of the row and the id of the sentence.
    """
    faults = Faults(
        path,
        "CoNLL-U: ten columns with tabs between, words numbered from 1, heads that are a tree, brackets such as Entity=(3 and 3).",
    )
    layout = ["eid", "etype", "head"]  # of what stands in Entity=
    documents: list[tuple[str, list[Sentence], list[Mention]]] = []
    left_out: Counter[str] = Counter()
    for comments, rows in _sentences(lines(path)):
        layout = comments["global.Entity"].split("-") if comments.get("global.Entity") else layout
        if {"newdoc", "newdoc id"} & comments.keys() or not documents:
            number = f"-{len(documents) + 1}" if "newdoc" in comments else ""
            documents.append((comments.get("newdoc id") or f"{path.stem}{number}", [], []))
        name, sentences, mentions = documents[-1]
        identity = comments.get("sent_id") or f"{name}-{len(sentences) + 1}"
        with faults.at(rows[0][0], f"Sentence {identity!r}"):
            sentence, marks = _sentence(identity, rows)
            mentions += _mentions(len(sentences), sentence, marks, layout, left_out)
            sentences.append(sentence)
    faults.report()
    return _checked(
        path, [Document(name, tuple(s), tuple(m)) for name, s, m in documents if s], left_out, "in CoNLL-U"
    )


def _sentences(rows: Sequence[str]) -> Iterator[tuple[dict[str, str], Rows]]:
    """The comments and the rows of each sentence; comments with an empty line after them are those of the next one."""
    comments: dict[str, str] = {}
    words: list[tuple[int, list[str]]] = []
    for number, row in enumerate([*rows, ""], 1):
        if row.startswith("#"):
            key, value = _COMMENT.fullmatch(row).groups()
            comments[key] = value or ""
        elif row.strip(" \r"):
            words.append((number, row.rstrip("\r").split("\t")))
        elif words:
            yield comments, words
            comments, words = {}, []


def _sentence(identity: str, rows: Rows) -> tuple[Sentence, list[Mark]]:
    """A sentence, and what ``Entity=`` says in each of its rows.

    Raises:
        WrongRow: for another number of columns, a wrong number of a word, or heads that are no tree.
    """
    words: list[tuple[int, list[str]]] = []
    together, marks = [], []  # multiword tokens: first and last word, and MISC
    for line, cells in rows:
        if len(cells) != len(COLUMNS):
            torn = "; a line break or a tab inside a word tears its row" if len(cells) > 1 else ", and no tab"
            count = f"{len(cells)} column{'s' * (len(cells) > 1)}"
            raise WrongRow(f"the row {_short(cells)} has {count} in place of ten{torn}", line)
        number = _NUMBER.fullmatch(cells[0])
        place = int(number[1]) if number else -1
        misc = dict(item.partition("=")[::2] for item in cells[9].split("|"))
        first, last = len(words), len(words) - 1  # of an empty node: after one word, and before the next
        if number and number[2]:
            last = int(number[2]) - 1
            together.append((line, place - 1, last, misc))
        elif number and not number[3]:
            last = len(words)
            words.append((line, cells))
        missing = "; is the empty line before it missing?" if place == 1 else ""
        if place != first + (not number or not number[3]):
            raise WrongRow(
                f"the row {_short(cells)} has the number {cells[0]!r} where {first + 1} is next{missing}", line
            )
        if not cells[1]:
            raise WrongRow(f"word {cells[0]} is empty", line)
        if misc.get("Entity"):
            marks.append((line, first, last, misc["Entity"]))
    spaces = [
        dict(item.partition("=")[::2] for item in cells[9].split("|")).get("SpaceAfter") != "No" for _, cells in words
    ]
    for line, first, last, misc in together:
        if not first < last < len(words):
            raise WrongRow(
                f"the token {first + 1}-{last + 1} has not that many words: the last is {len(words)}", line
            )
        spaces[first : last + 1] = [False] * (last - first) + [misc.get("SpaceAfter") != "No"]
    if not words:
        raise WrongRow("it has no word")
    columns = dict(zip(COLUMNS, zip(*(cells for _, cells in words), strict=True), strict=True))
    governors, relations = _tree(words, columns)
    given = (columns[name] for name in ("FORM", "LEMMA", "UPOS", "XPOS", "FEATS"))
    return Sentence(identity, *given, governors, relations, tuple(spaces)), marks


def _short(cells: Sequence[str]) -> str:
    return repr(" ".join(cells)[:40])


def _tree(words: Rows, columns: Mapping[str, Sequence[str]]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The governors and the relations of a sentence; empty where each head is ``_``."""
    heads, relations = columns["HEAD"], columns["DEPREL"]
    missing = [n for n, head in enumerate(heads) if head in ("_", "")]
    if len(missing) == len(words):
        return (), ()
    if missing:
        problem = f"word {missing[0] + 1} has no head ('_'): {len(missing)} of {len(words)} words have none, the others have one"
        raise WrongRow(problem, words[missing[0]][0])
    for (line, _), head, relation in zip(words, heads, relations, strict=True):
        if not (head.isdecimal() and int(head) <= len(words)):
            raise WrongRow(f"the head {head!r} is none of the {len(words)} words, nor 0", line)
        if relation in ("_", ""):
            raise WrongRow(f"a word with the head {head} has no relation", line)
    governors = tuple(int(head) - 1 for head in heads)
    roots = [n for n, governor in enumerate(governors) if governor < 0]
    if len(roots) != 1:
        problem = f"the heads {', '.join(heads)} are no tree: {len(roots)} words have the head 0"
        raise WrongRow(problem, words[roots[1] if roots else 0][0])
    circle = next((n for n in range(len(words)) if depth(governors, n) is None), None)
    if circle is not None:
        raise WrongRow(
            f"the heads {', '.join(heads)} are no tree: from word {circle + 1} they lead in a circle",
            words[circle][0],
        )
    return governors, relations


_WITHHELD = {"_", "[WORD]"}


def _checked(
    path: Path, documents: Sequence[Document], left_out: Mapping[str, int], what: str
) -> tuple[Document, ...]:
    """The documents of a file, which must have words; what was left out is said.

    Raises:
        CorpusError: for a file without documents, and for one in which the words of a document are withheld.
    """
    withheld = [d for d in documents if all(_WITHHELD.issuperset(s.words) for s in d.sentences)]
    withheld += [
        d
        for d in documents
        if d not in withheld and any(len(s.words) > 2 and _WITHHELD.issuperset(s.words) for s in d.sentences)
    ]
    if withheld:
        one = next(s for s in withheld[0].sentences if _WITHHELD.issuperset(s.words))
        found = f"The words of sentence {one.id!r} are withheld (all are {one.words[0]!r}), so in {len(withheld)} of {len(documents)} documents."
        raise CorpusError(
            path, None, found, "the words themselves; whoever gives out the annotation says how to put them in."
        )
    if left_out:
        sources.say(path, f"left out: {', '.join(f'{n} {what}' for what, n in left_out.items())}.")
    return some(path, documents, f"sentences {what}.")


def _mentions(
    number: int, sentence: Sentence, marks: Sequence[Mark], layout: Sequence[str], left_out: Counter[str]
) -> list[Mention]:
    """The mentions of a sentence, from brackets such as ``(3``, ``3)``, ``(3)``, side by side or with ``|`` between.

    Args:
        layout: the fields of an opening bracket, hyphens between. A closing one has the chain alone, or the fields up to it.
        left_out: counts mentions of empty nodes only, and those written twice.

    Raises:
        WrongRow: for what is not made of brackets, or not closed.
    """
    of_chain = next((n for n, name in enumerate(layout) if name.lower() in ("eid", "grp")), None)
    if of_chain is None:
        raise WrongRow(f"global.Entity names {'-'.join(layout)!r}, but no field 'eid' or 'GRP'")
    mentions: dict[tuple[int, int, str], Mention] = {}
    opened: dict[str, list[tuple[int, int, list[str]]]] = defaultdict(list)
    for line, first, last, written in marks:
        brackets = re.findall(r"\([^()|]+\)?|[^()|]+\)", written)
        if "".join(brackets) != written.replace("|", ""):
            raise WrongRow(f"{written!r} is not made of brackets", line)
        for bracket in brackets:
            fields = bracket.strip("()").split("-")
            chain = fields[of_chain] if len(fields) > of_chain else fields[-1]
            if "[" in chain:
                raise WrongRow(f"the mention {chain!r} has gaps", line)
            if bracket[0] == "(":
                opened[chain].append((line, first, fields))
            if bracket[-1] == ")":
                if not opened[chain]:
                    raise WrongRow(f"{chain!r} is closed but was not opened in this sentence", line)
                _, start, fields = opened[chain].pop()
                key = (start, last + 1, chain)
                if start > last or key in mentions:
                    left_out["mentions of empty nodes only" if start > last else "mentions written twice"] += 1
                    continue
                head = head_word(sentence, start, last + 1)
                entity = dict(zip(layout, fields, strict=False)).get("etype" if "etype" in layout else "entity", "")
                mentions[key] = Mention(number, *key, head, _kind(sentence, start, last + 1, head), entity)
    for chain, left in opened.items():
        if left:
            raise WrongRow(f"{chain!r} is opened but not closed in this sentence", left[0][0])
    return sorted(mentions.values(), key=lambda mention: (mention.start, -mention.end))


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
    tags, word, alone = tags_of(sentence, head), sentence.words[head], end - start == 1
    if tags:
        pronoun = tags & {"PRON", "PRP", "PRP$", "WP", "WP$", "WDT"} or (tags & {"DT", "DET"} and alone)
        proper = tags & {"PROPN", "NNP", "NNPS"}
    else:
        pronoun = alone and word.lower() in _PRONOUNS
        proper = word[:1].isupper() and head > 0
    if pronoun:
        return PRONOUN
    return PROPER if proper else NOMINAL


_BEGIN = re.compile(r"#\s*begin document\b\s*(?:\(?(?P<name>.*?)\)?;?)?(?:\s*part\s+(?P<part>\d+))?\s*")
_ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "/.": ".", "/?": "?"}


def read_conll(path: Path | str, trees: Mapping[str, Document] | None = None) -> tuple[Document, ...]:
    """Read coreference in the column format of CoNLL-2012 (OntoNotes) or of OntoGUM; of a folder :func:`files_of`.

    OntoNotes files have a name in the header, a blank line between sentences, the word in the fourth column, its part of speech
    in the fifth where there are six or more, and coreference in the last. OntoGUM files have three columns, no sentence ends,
    and their name for a document's.

    Args:
        trees: for OntoGUM, documents of the ``gum`` treebank by id. Their sentences (with trees) are then used,
            which must have the same words. Without them sentences end at ``.``, ``!`` and ``?`` outside mentions.

    Raises:
        CorpusError: with the line of the row and the id of the sentence.
    """
    path = Path(path)
    if path.is_dir():
        return some(
            path, [d for file in files_of(path) for d in read_conll(file, trees)], "files of CoNLL-2012 or OntoGUM."
        )
    wanted = "CoNLL-2012, '#begin document (name); part 000', rows of document, part, number from 0, word, …, coreference, and '#end document'; or OntoGUM's three columns."
    faults = Faults(path, wanted)
    documents, left_out, header, rows = [], Counter(), None, []
    for number, row in enumerate(lines(path), 1):
        begin, end = _BEGIN.fullmatch(row), re.match(r"#\s*end document", row)
        with faults.at(number):
            if (begin and header) or (not begin and not header and row.strip()):
                raise WrongRow(f"{row[:40]!r} stands {'inside' if begin else 'outside'} of a document")
        if begin:
            header, rows = begin, []
        elif end and header:
            made = (
                _ontonotes(faults, header, rows, left_out)
                if header["name"]
                else _ontogum(faults, path.stem, rows, trees, left_out)
            )
            documents += [made] if made.sentences else []
            header = None
        elif header:
            rows.append((number, row))
    with faults.at(None):
        if header:
            raise WrongRow("the last document has no end")
    faults.report()
    return _checked(path, documents, left_out, "in the columns of CoNLL-2012 or OntoGUM")


def _ontonotes(faults: Faults, header: re.Match, rows: Sequence[tuple[int, str]], left_out: Counter[str]) -> Document:
    """A document of CoNLL-2012."""
    name = f"{header['name']} part {int(header['part'] or 0)}"
    sentences: list[Sentence] = []
    mentions: list[Mention] = []
    cut = [(line, row.rstrip().split("\t" if row.rstrip().count("\t") > 3 else None)) for line, row in rows]
    start = None
    blank = [n for n, (_, row) in enumerate(rows) if not row.strip()]
    for a, b in pairwise([-1, *blank, len(rows)]):
        block = cut[a + 1 : b]
        if not block:
            continue
        identity = f"{name}-{len(sentences) + 1}"
        with faults.at(block[0][0], f"Sentence {identity!r}"):
            for place, (line, cells) in enumerate(block):
                if len(cells) < 5:
                    raise WrongRow(f"the row has {len(cells)} columns in place of five or more", line)
                if not cells[3].strip():
                    raise WrongRow("the word is empty", line)
                start = int(cells[2] == "1") if start is None else start
                if cells[2] != str(start + place):
                    raise WrongRow(
                        f"the word {cells[3]!r} has the number {cells[2]} where {start + place} is next", line
                    )
            words = tuple(_ESCAPED.get(cells[3].strip(), cells[3].strip()) for _, cells in block)
            tags = tuple(cells[4].strip() for _, cells in block) if min(len(cells) for _, cells in block) > 5 else ()
            sentence = Sentence(identity, words, xpos=tags)
            marks = [(line, n, n, cells[-1].strip(" -_")) for n, (line, cells) in enumerate(block)]
            mentions += _mentions(len(sentences), sentence, marks, ("eid",), left_out)
            sentences.append(sentence)
    return Document(name, tuple(sentences), tuple(mentions))


def _ontogum(
    faults: Faults,
    name: str,
    rows: Sequence[tuple[int, str]],
    trees: Mapping[str, Document] | None,
    left_out: Counter[str],
) -> Document:
    """A document of OntoGUM, with the treebank's sentences where there are any."""
    cut = [(line, row.split("\t")) for line, row in rows if row.strip()]
    sentences: Sequence[Sentence] = ()
    mentions: list[Mention] = []
    with faults.at(cut[0][0] if cut else None, f"Document {name!r}"):
        for place, (line, cells) in enumerate(cut):
            if len(cells) != 3 or cells[0] != str(place):
                raise WrongRow(f"the row {_short(cells)} is not {place}, word, coreference with tabs between", line)
        words, marks = [cells[1] or "_" for _, cells in cut], [cells[2].strip("_") for _, cells in cut]
        if trees is None:
            opened = accumulate(mark.count("(") - mark.count(")") for mark in marks)  # no mention may cross a border
            ends = [n for n, inside in enumerate(opened, 1) if words[n - 1] in (".", "!", "?") and not inside]
            bounds = pairwise(dict.fromkeys([0, *ends, len(words)]))
            sentences = [Sentence(f"{name}-{n}", tuple(words[a:b])) for n, (a, b) in enumerate(bounds, 1)]
        else:
            if name not in trees:
                raise WrongRow(f"the treebank has no document {name!r}")
            sentences = trees[name].sentences
            in_tree = [word for sentence in sentences for word in sentence.words]
            other = [n for n, (word, tree) in enumerate(zip(words, in_tree, strict=False)) if word not in (tree, "_")]
            if other or len(words) != len(in_tree):
                line = cut[other[0] if other else -1][0]
                raise WrongRow(f"its {len(words)} words are not the {len(in_tree)} of {name!r} in the treebank", line)
        rest = iter(zip(cut, marks, strict=True))
        for number, sentence in enumerate(sentences):
            of_words = enumerate(islice(rest, len(sentence.words)))
            own = [(line, n, n, mark) for n, ((line, _), mark) in of_words]
            mentions += _mentions(number, sentence, own, ("eid",), left_out)
    return Document(name, tuple(sentences), tuple(mentions))


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


PARTS = ("train", "dev", "test")
SEED = 0  # of the draw; the same in every chapter, so that all of them score on the same documents
FEWEST_DOCUMENTS = 5
LONGEST_RUN = 10  # sentences or paragraphs


def in_parts(name: str) -> tuple[dict[str, tuple[Document, ...]], str]:
    """A treebank of one's own in three parts that share no document, by the names in :data:`PARTS`; and how they came to be, in words.

    Args:
        name: three paths with commas between (train, dev, test); a folder with files or folders so named (``*-ud-train.conllu``,
            ``train.conllu``, ``train/``); or any other file or folder, whose documents are then drawn, or runs of its sentences
            where it has fewer than five documents.

    Raises:
        CorpusError: for what is malformed, is the same file twice, or is too little for three parts.
    """
    paths = tuple(locate(path, "treebank") for path in sources.names_in(name))
    if len(paths) not in (1, 3):
        raise CorpusError(name, None, f"{len(paths)} paths with commas between.", "one, or three: train,dev,test.")
    return _parted(name, paths, tuple((f, f.stat().st_mtime_ns, f.stat().st_size) for f in sources.files(*paths)))


@lru_cache(maxsize=4)
def _parted(name: str, paths: tuple[Path, ...], _states: tuple) -> tuple[dict[str, tuple[Document, ...]], str]:
    """The parts of files in their state of now: a chapter asks for each part by itself."""
    named = {part: [path] for part, path in zip(PARTS, paths, strict=True)} if len(paths) == 3 else {}
    inside = files_of(paths[0]) if paths[0].is_dir() else []
    for path in sorted({paths[0] / file.relative_to(paths[0]).parts[0] for file in inside}):
        part = re.fullmatch(r"(?:.+-ud-)?(train|dev|test)(?:elopment)?(?:[-.].+)?", ending(path))
        if part:
            named.setdefault(part[1], []).append(path)
    if {"train", "test"} <= set(named):
        parts, how = {part: _documents(files) for part, files in named.items()}, "as the files are named"
        part_of: dict[tuple, str] = {}
        for part, document in ((part, d) for part, documents in parts.items() for d in documents):
            if len(document.sentences) > 1 and part_of.setdefault(_words(document), part) != part:
                problem = f"The document {document.id!r} of {part} stands in {part_of[_words(document)]} as well."
                raise CorpusError(name, None, problem, "others in each part: none is scored on that was learnt on.")
        if "dev" not in parts:
            drawn, drawn_how = _drawn(parts["train"], {"dev": 0.25})
            parts, how = parts | drawn, f"{how}, dev of train {drawn_how}"
    else:
        documents = _documents(paths)
        if len(documents) < FEWEST_DOCUMENTS and sum(len(d.sentences) for d in documents) < 20:
            wanted = "5 documents or 20 sentences at least, to learn on some and score on others; or three files, train,dev,test."
            raise CorpusError(name, None, f"It has only {_count(documents)}.", wanted)
        parts, how = _drawn(documents, {"dev": 0.2, "test": 0.2})
    parts = {part: parts[part] for part in PARTS}
    alone = [part for part in PARTS if len(parts[part]) == 1 and len(parts[part][0].sentences) > LONGEST_RUN]
    parts |= {part: tuple(sentence_runs(parts[part][0])) for part in alone}  # so that there is more than one to count
    how += ", one document in runs of sentences" if alone else ""
    counts = "; ".join(f"{part} {_count(documents)}" for part, documents in parts.items())
    return parts, f"{sources.label(name)}: {how}: {counts}."


def _documents(paths: Sequence[Path]) -> tuple[Document, ...]:
    """The documents of some files and folders; those whose names are in several files are told apart by the file's."""
    documents = [(file, document) for path in paths for file in files_of(path) for document in read(file)]
    some(paths[0], documents, "files in CoNLL-U (*.conllu), CoNLL-2012 or OntoGUM (*conll).")
    unique = len({document.id for _, document in documents}) == len(documents)
    return tuple(d if unique else replace(d, id=f"{file.stem}: {d.id}") for file, d in documents)


def _words(document: Document) -> tuple[tuple[str, ...], ...]:
    return tuple(sentence.words for sentence in document.sentences)


def _drawn(documents: Sequence[Document], shares: Mapping[str, float]) -> tuple[dict[str, tuple[Document, ...]], str]:
    """Documents, or runs of their sentences where they are few, by part (what no share asks for is ``train``); and how.

    What must stay in one part has one unit: CoNLL-2012 cuts long documents into parts, and some stand twice in a file.
    """
    same: dict[tuple, str] = {}
    units = [same.setdefault(_words(d), re.sub(r" part \d+$", "", d.id)) for d in documents]
    how = "by document"
    if len(set(units)) < FEWEST_DOCUMENTS:
        total = sum(len(d.sentences) for d in documents)
        documents = [run for d in documents for run in sentence_runs(d, total)]
        units = [d.id for d in documents]
        how = f"by runs of neighbouring sentences (fewer than {FEWEST_DOCUMENTS} documents; neighbours may be alike)"
    names = list(dict.fromkeys(units))
    order = [names[n] for n in np.random.default_rng(SEED).permutation(len(names))]
    part_of = dict.fromkeys(names, "train")
    for part, share in shares.items():
        part_of |= {order.pop(): part for _ in range(max(1, round(share * len(names))))}
    chosen = [(part_of[unit], document) for unit, document in zip(units, documents, strict=True)]
    parts = {part: tuple(d for other, d in chosen if other == part) for part in ("train", *shares)}
    return parts, f"drawn {how}, seed {SEED}"


def runs(count: int, shortest: int = 1, total: int | None = None) -> list[slice]:
    """Neighbours cut into runs of one length, a tenth of ``total`` (default: ``count``) but at most ten; the last may be longer."""
    length = int(np.clip((total or count) // 10, shortest, LONGEST_RUN))
    starts = [*range(0, count - length + 1, length)] or [0]
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], count], strict=True)]


def sentence_runs(document: Document, total: int | None = None) -> list[Document]:
    """Runs of a document's sentences as documents; a chain goes on in each run by itself."""
    pieces = []
    for number, run in enumerate(runs(len(document.sentences), total=total), 1):
        inside = [m for m in document.mentions if run.start <= m.sentence < run.stop]
        mentions = tuple(replace(m, sentence=m.sentence - run.start) for m in inside)
        pieces.append(Document(f"{document.id}, run {number}", document.sentences[run], mentions))
    return pieces


def _count(documents: Sequence[Document]) -> str:
    sentences = sum(len(d.sentences) for d in documents)
    unit = "run" if any(", run " in d.id for d in documents) else "document"
    return f"{len(documents)} {unit}{'s' * (len(documents) != 1)} ({sentences} sentences)"


def untagged(documents: Sequence[Document]) -> str:
    """A sentence on mentions whose head words have no part of speech, and whose kind is therefore guessed by form."""
    tags = [tags_of(d.sentences[m.sentence], m.head) for d in documents for m in d.mentions]
    if all(tags):
        return ""
    return f"{tags.count(set())} of {len(tags)} mentions have no part-of-speech tag: pronoun, proper or nominal by the form of the word."
