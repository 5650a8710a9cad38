"""Sentences with trees from CoNLL-U, documents with coreference chains too; and their relations after Stanford's conventions.

Coreference is read from CoNLL-U, and from the columns of CoNLL-2012 and OntoGUM. A reader's own treebank falls into ``train``,
``dev`` and ``test``, so that nothing is measured on what it was chosen or learnt on: as its files are named, else by document, else
by runs of sentences. What was done is said in one sentence (:func:`helpers.corpora.readers.notes`), and recorded.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import accumulate, groupby, islice, pairwise
from pathlib import Path

import conllu
import numpy as np

from helpers.corpora import sources
from helpers.corpora.records import NOMINAL, PRONOUN, PROPER, Document, Mention, Sentence, depth
from helpers.corpora.sources import CorpusError, lines, locate, reading, some

Row = tuple[int, Sentence, Sequence[str]]
"""The line at which a sentence begins, the sentence, and the coreference brackets at each of its words."""


def read(path: Path | str) -> tuple[Document, ...]:
    """Read a treebank or a coreference corpus: ``.conllu`` is CoNLL-U, other files and folders are :func:`read_conll`'s."""
    path = Path(path)
    return read_conll(path) if path.is_dir() or path.suffix != ".conllu" else read_conllu(path)


_AS_WRITTEN = dict.fromkeys(("xpos", "feats", "deps", "misc"), list.__getitem__)


def read_conllu(path: Path) -> tuple[Document, ...]:
    """Read documents from CoNLL-U, with coreference from ``Entity=`` in MISC (GUM and CorefUD style).

    ``# newdoc id`` begins a document; without any, the file is one. Multiword tokens give their words; empty
    nodes are skipped. Every sentence must be a tree.

    Raises:
        CorpusError: with the line at which the sentence begins.
    """
    layout = "eid-etype-head"  # of what stands in Entity=
    documents: list[tuple[str, str, list[Row]]] = []
    for line, block in _blocks(lines(path)):
        with reading(path, "CoNLL-U: ten columns with tabs between, words from 1, heads that are a tree.", line):
            tokens = conllu.parse_token_and_metadata("\n".join(block), field_parsers=_AS_WRITTEN)
            layout = tokens.metadata.get("global.Entity") or layout
            if {"newdoc", "newdoc id"} & set(tokens.metadata) or not documents:
                number = f"-{len(documents) + 1}" if "newdoc" in tokens.metadata else ""
                documents.append((tokens.metadata.get("newdoc id") or f"{path.stem}{number}", layout, []))
            name, _, rows = documents[-1]
            if tokens:
                rows.append((line, *_sentence(tokens.metadata.get("sent_id") or f"{name}-{len(rows) + 1}", tokens)))
    found = [_document(path, name, rows, layout.split("-")) for name, layout, rows in documents if rows]
    return some(path, found, "sentences in CoNLL-U.")


def _blocks(rows: Iterable[str], first: int = 1) -> Iterator[tuple[int, tuple[str, ...]]]:
    """What stands between blank lines, with the number of its first line."""
    for filled, numbered in groupby(enumerate(rows, first), lambda row: bool(row[1].strip())):
        if filled:
            numbers, block = zip(*numbered, strict=True)
            yield numbers[0], block


def _sentence(identity: str, tokens: conllu.TokenList) -> tuple[Sentence, list[str]]:
    """A sentence, and what ``Entity=`` says at each of its words."""
    words = [token for token in tokens if isinstance(token["id"], int)]
    misc = [dict(item.partition("=")[::2] for item in word["misc"].split("|")) for word in words]
    ids, heads = [word["id"] for word in words], [word["head"] for word in words]
    spaces = [items.get("SpaceAfter") != "No" for items in misc]
    for token in tokens:
        if isinstance(token["id"], tuple) and "-" in token["id"]:
            first, _, last = token["id"]
            spaces[first - 1 : last] = [False] * (last - first) + ["SpaceAfter=No" not in token["misc"].split("|")]
    if ids != [*range(1, len(spaces) + 1)]:
        raise ValueError(f"the words are numbered {ids}")
    governors = relations = ()
    if set(heads) != {None}:  # a file without trees has '_' for every head
        governors, relations = tuple(head - 1 for head in heads), tuple(word["deprel"] for word in words)
        within = {0, *ids}.issuperset(heads)
        if heads.count(0) != 1 or not within or None in map(partial(depth, governors), range(len(words))):
            raise ValueError(f"the heads {heads} are no tree")
    columns = (tuple(word[key] for word in words) for key in ("form", "lemma", "upos", "xpos", "feats"))
    return Sentence(identity, *columns, governors, relations, tuple(spaces)), [one.get("Entity", "") for one in misc]


def _document(path: Path, name: str, rows: Sequence[Row], layout: Sequence[str] = ("eid",)) -> Document:
    """A document with the mentions that its brackets make."""
    mentions: list[Mention] = []
    for number, (line, sentence, marks) in enumerate(rows):
        with reading(path, "brackets (3 and 3) and (3), closed in their sentence; mentions without gaps.", line):
            mentions += _mentions(number, sentence, marks, layout)
    return Document(name, tuple(sentence for _, sentence, _ in rows), tuple(mentions))


def _mentions(number: int, sentence: Sentence, marks: Sequence[str], layout: Sequence[str]) -> list[Mention]:
    """The mentions of a sentence, from brackets such as ``(3``, ``3)``, ``(3)``, side by side or with ``|`` between."""
    mentions, opened = [], defaultdict(list)
    for word, written in enumerate(marks):
        found = re.findall(r"\([^()|]+\)?|[^()|]+\)", written)
        if "".join(found) != written.replace("|", "") or "[" in written:
            raise ValueError(f"{written!r} is not made of brackets")
        for mark in found:
            fields = mark.strip("()").split("-")
            if mark[0] == "(":
                opened[fields[0]].append((word, fields))
            if mark[-1] == ")":
                if not opened[fields[0]]:
                    raise ValueError(f"{fields[0]!r} is closed but was not opened")
                start, fields = opened[fields[0]].pop()
                head = head_word(sentence, start, word + 1)
                kind = _kind(sentence, start, word + 1, head)
                entity = dict(zip(layout, fields, strict=False)).get("etype", "")
                mentions.append(Mention(number, start, word + 1, fields[0], head, kind, entity))
    if any(opened.values()):
        raise ValueError(f"{[chain for chain, left in opened.items() if left]} opened but not closed")
    return sorted(mentions, key=lambda mention: (mention.start, -mention.end))


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


_DOCUMENT = re.compile(
    r"^# ?begin document(?: *\((?P<name>[^\n]*)\);(?: *part +(?P<part>\d+))?)? *\n(?P<rows>.*?)^# ?end document[^\n]*",
    re.M | re.S,
)
_ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "/.": ".", "/?": "?"}


def read_conll(path: Path | str, trees: Mapping[str, Document] | None = None) -> tuple[Document, ...]:
    """Read coreference in the column format of CoNLL-2012 (OntoNotes) or of OntoGUM; all ``*conll`` files of a folder.

    OntoNotes files have a name in the header, a blank line between sentences, part of speech in the fifth column and
    coreference in the last. OntoGUM files have three columns, no sentence ends, and their name for a document's.

    Args:
        trees: for OntoGUM, documents of the ``gum`` treebank by id. Their sentences (with trees) are then used,
            which must have the same words. Without them sentences end at ``.``, ``!`` and ``?`` outside mentions.

    Raises:
        CorpusError: with the line at which the sentence (of OntoGUM the document) begins.
    """
    path, documents = Path(path), []
    for file in sorted(f for f in path.rglob("*conll") if f.is_file()) if path.is_dir() else [path]:
        text = "\n".join(lines(file))
        with reading(file, "'#begin document', rows of words, '#end document'."):
            if _DOCUMENT.sub("", text).strip():
                raise ValueError("something stands outside of documents")
        for match in _DOCUMENT.finditer(text):
            first = 1 + text.count("\n", 0, match.start("rows"))
            name = f"{match['name']} part {int(match['part'] or 0)}" if match["name"] else file.stem
            rows = []
            for line, block in _blocks(match["rows"].split("\n"), first):
                with reading(file, "CoNLL-2012; or three columns (OntoGUM), with the treebank's words.", line):
                    if match["name"]:
                        rows.append((line, *_ontonotes(f"{name}-{len(rows) + 1}", block)))
                    else:
                        rows += [(line, *row) for row in _ontogum(name, block, trees and trees[name])]
            documents.append(_document(file, name, rows))
    return some(path, documents, "documents in the columns of CoNLL-2012 or OntoGUM.")


def _ontonotes(identity: str, block: Sequence[str]) -> tuple[Sentence, list[str]]:
    """A sentence of CoNLL-2012, and the brackets at its words."""
    columns = list(zip(*(row.split() for row in block), strict=True))
    words = tuple(_ESCAPED.get(word, word) for word in columns[3])
    return Sentence(identity, words, xpos=columns[4]), [mark.strip("-_") for mark in columns[-1]]


def _ontogum(name: str, block: Sequence[str], tree: Document | None) -> list[tuple[Sentence, list[str]]]:
    """The sentences of a document of OntoGUM, and the brackets at their words."""
    _, forms, marks = zip(*(row.split("\t") for row in block), strict=True)
    words, marks = tuple(form or "_" for form in forms), [mark.strip("_") for mark in marks]
    if tree is None:
        opened = accumulate(mark.count("(") - mark.count(")") for mark in marks)  # no mention may cross a border
        ends = [n for n, inside in enumerate(opened, 1) if words[n - 1] in (".", "!", "?") and not inside]
        bounds = pairwise(dict.fromkeys([0, *ends, len(words)]))
        return [(Sentence(f"{name}-{n}", words[a:b]), marks[a:b]) for n, (a, b) in enumerate(bounds, 1)]
    in_tree = [word for sentence in tree.sentences for word in sentence.words]
    if any(word not in (other, "_") for word, other in zip(words, in_tree, strict=True)):
        raise ValueError(f"the words are not those of {name!r} in the treebank")
    rest = iter(marks)
    return [(sentence, list(islice(rest, len(sentence.words)))) for sentence in tree.sentences]


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
    for path in sorted(paths[0].iterdir()) if paths[0].is_dir() else []:
        part = re.fullmatch(r"(?:.+-ud-)?(train|dev|test)(?:elopment)?(?:-.+)?", path.stem)
        if part and (path.is_dir() or path.name.endswith(("conllu", "conll"))):
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
    """The documents of some files, of folders their CoNLL-U files; those whose names are in several files are told apart by the file's."""
    files = [file for path in paths for file in (sorted(path.rglob("*.conllu")) if path.is_dir() else []) or [path]]
    documents = [(file, document) for file in files for document in read(file)]
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
