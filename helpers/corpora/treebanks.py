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
from itertools import accumulate, groupby, islice, pairwise
from pathlib import Path

import numpy as np
import yaml

from helpers.corpora import sources
from helpers.corpora.records import NOMINAL, PRONOUN, PROPER, Document, Documents, Mention, Sentence, depth
from helpers.corpora.sources import CorpusError, ending, lines, locate, reading, some

#: Words and labels of English, by what they are for.
ENGLISH = yaml.safe_load(Path(__file__).with_name("english.yml").read_text("utf-8"))
#: Pronouns, and nouns for men and women -> number, gender and person, empty where unknown.
PRONOUNS, NOUNS = (
    {word: tuple(features.split("-")) for features, words in ENGLISH[kind].items() for word in words.split()}
    for kind in ("pronouns", "nouns")
)
#: Coreference brackets as written in one row: the first word that they are at, the last, and the brackets.
Mark = tuple[int, int, str]


CONLLU = "CoNLL-U: ten columns with tabs between, words numbered from 1, heads that are a tree, brackets such as Entity=(3 and 3)."
CONLL = "CoNLL-2012, '#begin document (name); part 000', rows of document, part, number from 0, word, …, coreference, and '#end document'; or OntoGUM's three columns."


def read(*paths: Path | str, trees: Mapping[str, Document] | None = None) -> Documents:
    """Read treebanks or coreference corpora: CoNLL-U, or the columns of CoNLL-2012 or OntoGUM; of a folder see :func:`files_of`.

    Documents whose names are in several files are told apart by the file's. What is left out of a file is said.

    Args:
        trees: for OntoGUM, documents of the ``gum`` treebank by id. Their sentences (with trees) are then used,
            which must have the same words. Without them sentences end at ``.``, ``!`` and ``?`` outside mentions.

    Raises:
        CorpusError: for what is malformed, for files without documents, and for one in which the words of a document are withheld.
    """
    documents: list[tuple[Path, Document]] = []
    for file in (file for path in paths for file in files_of(Path(path))):
        first = next((row for row in lines(file) if row.strip() and not row.startswith("#")), "")
        in_ten = ending(file).endswith((".conllu", ".conllu.gz")) or first.count("\t") == 9
        left_out: Counter[str] = Counter()
        made = _conllu(file, left_out) if in_ten else _conll(file, left_out, trees)
        filled = [document for document in made if document.sentences]
        for document in some(file, filled, CONLLU if in_ten else CONLL):
            documents.append((file, document))
            withheld = [s for s in document.sentences if {"_", "[WORD]"}.issuperset(s.words)]
            if len(withheld) == len(document.sentences) or any(len(s.words) > 2 for s in withheld):
                problem = f"The words of sentence {withheld[0].id!r} are withheld (all are {withheld[0].words[0]!r})."
                how = "the words themselves; whoever gives out the annotation says how to put them in."
                raise CorpusError(file, None, problem, how)
        if left_out:
            sources.say(file, f"left out: {', '.join(f'{n} {what}' for what, n in left_out.items())}.")
    some(paths[0], documents, "files in CoNLL-U (*.conllu), CoNLL-2012 or OntoGUM (*conll).")
    unique = len({document.id for _, document in documents}) == len(documents)
    return tuple(d if unique else replace(d, id=f"{file.stem}: {d.id}") for file, d in documents)


def files_of(path: Path) -> list[Path]:
    """The files of a treebank: of a folder those in CoNLL-U, else those in the columns of CoNLL-2012 or OntoGUM.

    Of OntoNotes' twins ``*_gold_conll`` and ``*_auto_conll``, which hold the same words, the gold one. What is not read is said.
    """
    if not path.is_dir():
        return [path]
    files = sources.files(path)
    in_ten = [f for f in files if ending(f).endswith((".conllu", ".conllu.gz"))]
    others = {f for f in files if ending(f).endswith(("conll", "conll.gz"))}
    twins = {f for f in others if "auto" in f.name and f.with_name(f.name.replace("auto", "gold")) in others}
    left_out, why = twins, "*_auto_conll are not read: *_gold_conll beside them have the same words"
    if in_ten:
        left_out, why = others, f"in other columns (*conll) are not read: {len(in_ten)} are in CoNLL-U"
    if left_out:
        sources.say(path, f"{len(left_out)} files {why}.")
    return in_ten or sorted(others - twins)


def _conllu(path: Path, left_out: Counter[str]) -> list[Document]:
    """Documents from CoNLL-U, with coreference from ``Entity=`` in MISC (GUM and CorefUD style).

    ``# newdoc id`` begins a document; without any, the file is one. Multiword tokens give their words; empty nodes are skipped: a
    mention that ends at one ends at the word before, and one of empty nodes only is left out. ``# global.Entity`` names the
    order of the fields in ``Entity``. Every sentence must be a tree, or all of its heads ``_``.

    Raises:
        CorpusError: with the line in which the sentence begins.
    """
    layout = "eid-etype-head"  # of what stands in Entity=
    documents: list[tuple[str, list[Sentence], list[Mention]]] = []
    for line, comments, rows in _sentences(lines(path)):
        layout = comments.get("global.Entity") or layout
        if {"newdoc", "newdoc id"} & comments.keys() or not documents:
            number = f"-{len(documents) + 1}" if "newdoc" in comments else ""
            documents.append((comments.get("newdoc id") or f"{path.stem}{number}", [], []))
        name, sentences, mentions = documents[-1]
        with reading(path, CONLLU, line):
            sentence, marks = _sentence(comments.get("sent_id") or f"{name}-{len(sentences) + 1}", rows)
            mentions += _mentions(len(sentences), sentence, marks, layout, left_out)
            sentences.append(sentence)
    return [Document(name, tuple(sentences), tuple(mentions)) for name, sentences, mentions in documents]


def _sentences(rows: Sequence[str]) -> Iterator[tuple[int, dict[str, str], list[list[str]]]]:
    """Where each sentence begins, its comments and its rows; comments with an empty line after them are those of the next one."""
    comments: dict[str, str] = {}
    words: list[list[str]] = []
    for number, row in enumerate([*rows, ""], 1):
        if row.startswith("#"):
            key, _, value = row[1:].partition("=")
            comments[key.strip()] = value.strip()
        elif row.strip(" \r"):
            words.append(row.rstrip("\r").split("\t"))
        elif words:
            yield number - len(words), comments, words
            comments, words = {}, []


def _sentence(identity: str, rows: Sequence[Sequence[str]]) -> tuple[Sentence, list[Mark]]:
    """A sentence, and what ``Entity=`` says in each of its rows.

    Raises:
        ValueError: for another number of columns, a wrong number of a word, or heads that are no tree.
    """
    words: list[Sequence[str]] = []
    spaces: dict[int, bool] = {}  # whether white space follows a word, first of those in a multiword token
    marks: list[Mark] = []
    for cells in rows:
        if len(cells) != 10:
            raise ValueError(f"the row {' '.join(cells)[:40]!r} has {len(cells)} columns in place of ten")
        misc = dict(item.partition("=")[::2] for item in cells[9].split("|"))
        spaced = misc.get("SpaceAfter") != "No"
        first, last = len(words), len(words) - 1  # of an empty node: after one word, and before the next
        if "-" in cells[0]:
            last = int(cells[0].partition("-")[2]) - 1
            spaces |= dict.fromkeys(range(first, last), False) | {last: spaced}
        elif "." not in cells[0]:
            last = first
            words.append(cells)
            spaces.setdefault(first, spaced)
            if cells[0] != str(len(words)):
                raise ValueError(f"the row {' '.join(cells)[:40]!r} stands where word {len(words)} is next")
        if misc.get("Entity"):
            marks.append((first, last, misc["Entity"]))
    _, *columns, heads, relations, _, _ = zip(*words, strict=True)  # forms, lemmas, parts of speech, features
    after = tuple(spaces[word] for word in range(len(words)))
    return Sentence(identity, *columns, *_tree(heads, relations), after), marks


def _tree(heads: Sequence[str], relations: Sequence[str]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The governors and the relations of a sentence; empty where each head is ``_``."""
    if {"_", ""}.issuperset(heads):
        return (), ()
    governors = tuple(int(head) - 1 for head in heads)
    inside = all(-1 <= governor < len(heads) for governor in governors) and governors.count(-1) == 1
    if not inside or any(depth(governors, word) is None for word in range(len(heads))):
        raise ValueError(f"the heads {', '.join(heads)} are no tree")
    if {"_", ""} & {*relations}:
        raise ValueError(f"a word has no relation: {', '.join(relations)}")
    return governors, tuple(relations)


def _mentions(number: int, sentence: Sentence, marks: list[Mark], layout: str, left_out: Counter) -> list[Mention]:
    """The mentions of a sentence, from brackets such as ``(3``, ``3)``, ``(3)``, side by side or with ``|`` between.

    Mentions of empty nodes only are left out, and one that is written twice counts once.

    Args:
        layout: the fields of an opening bracket, hyphens between. A closing one has the chain alone, or the fields up to it.
        left_out: counts mentions of empty nodes only, and those written twice.

    Raises:
        ValueError: for what is not made of brackets, not closed, or has gaps.
    """
    names = layout.lower().replace("grp", "eid").split("-")
    of_chain = names.index("eid")
    mentions: dict[tuple[int, int, str], Mention] = {}
    opened: dict[str, list[tuple[int, dict[str, str]]]] = defaultdict(list)
    for first, last, written in marks:
        brackets = re.findall(r"\([^()|]+\)?|[^()|]+\)", written)
        if "".join(brackets) != written.replace("|", "") or "[" in written:
            raise ValueError(f"{written!r} is not made of brackets around mentions without gaps")
        for bracket in brackets:
            fields = bracket.strip("()").split("-")
            chain = fields[min(of_chain, len(fields) - 1)]
            if bracket[0] == "(":
                opened[chain].append((first, dict(zip(names, fields, strict=False))))
            if bracket[-1] != ")":
                continue
            if not opened[chain]:
                raise ValueError(f"{chain!r} is closed but was not opened in this sentence")
            start, named = opened[chain].pop()
            span = (start, last + 1, chain)
            if start > last or span in mentions:
                left_out["mentions of empty nodes only" if start > last else "mentions written twice"] += 1
                continue
            head = head_word(sentence, start, last + 1)
            kind = _kind(sentence, start, last + 1, head)
            mentions[span] = Mention(number, *span, head, kind, named.get("etype", named.get("entity", "")))
    unclosed = [chain for chain, left in opened.items() if left]
    if unclosed:
        raise ValueError(f"chains {unclosed} are not closed in this sentence")
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
    outside = ENGLISH["after_the_head"].split()
    stop = next((w for w in span if w > start and sentence.words[w].lower() in outside), end)
    while stop - 1 > start and sentence.words[stop - 1] in ("'s", "’s", "'", "’"):
        stop -= 1
    return stop - 1


def tags_of(sentence: Sentence, word: int) -> set[str]:
    """The parts of speech that a word is tagged with; none where the columns are missing or say nothing."""
    return {column[word] for column in (sentence.upos, sentence.xpos) if column} - {"_", "-", "*"}


def _kind(sentence: Sentence, start: int, end: int, head: int) -> str:
    """Pronoun, proper or nominal: by the head word's tag, or by its form where there are no tags."""
    tags, word, alone = tags_of(sentence, head), sentence.words[head], end - start == 1
    if tags:
        pronoun = tags & {"PRON", "PRP", "PRP$", "WP", "WP$", "WDT"} or (tags & {"DT", "DET"} and alone)
        proper = tags & {"PROPN", "NNP", "NNPS"}
    else:
        pronoun = alone and word.lower() in {*PRONOUNS, *ENGLISH["further_pronouns"].split()}
        proper = word[:1].isupper() and head > 0
    return PRONOUN if pronoun else PROPER if proper else NOMINAL


_BEGIN = re.compile(r"#\s*begin document\b\s*(?:\(?(?P<name>.*?)\)?;?)?(?:\s*part\s+(?P<part>\d+))?\s*")
_ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "/.": ".", "/?": "?"}


def _conll(path: Path, left_out: Counter[str], trees: Mapping[str, Document] | None) -> Iterator[Document]:
    """Coreference in the column format of CoNLL-2012 (OntoNotes) or of OntoGUM.

    OntoNotes files have a name in the header, a blank line between sentences, the word in the fourth column, its part of speech
    in the fifth where there are six or more, and coreference in the last. OntoGUM files have three columns, no sentence ends,
    and their name for a document's.

    Raises:
        CorpusError: with the line in which the document ends.
    """
    header, rows = None, []
    for number, row in enumerate(lines(path), 1):
        begin = _BEGIN.fullmatch(row)
        with reading(path, CONLL, number):
            if begin and not header:
                header, rows = begin, []
            elif header and re.match(r"#\s*end document", row):
                name = f"{header['name']} part {int(header['part'] or 0)}" if header["name"] else path.stem
                parts = [*_ontonotes(name, rows)] if header["name"] else _ontogum(name, rows, trees and trees[name])
                mentions = [m for n, part in enumerate(parts) for m in _mentions(n, *part, "eid", left_out)]
                yield Document(name, tuple(sentence for sentence, _ in parts), tuple(mentions))
                header = None
            elif header and not begin:
                rows.append(row)
            elif row.strip():
                raise ValueError(f"{row[:40]!r} stands {'inside' if header else 'outside'} of a document")
    if header:
        raise CorpusError(path, None, "The last document has no end.", CONLL)


def _ontonotes(name: str, rows: Sequence[str]) -> Iterator[tuple[Sentence, list[Mark]]]:
    """The sentences of a document of CoNLL-2012, and the brackets in them."""
    cells_of = [row.rstrip().split("\t" if row.rstrip().count("\t") > 3 else None) for row in rows]
    start = int(next(filter(None, cells_of), [])[2:3] == ["1"])  # of the words' numbers
    blocks = (list(block) for filled, block in groupby(cells_of, bool) if filled)
    for number, block in enumerate(blocks, 1):
        fewest = min(map(len, block))
        if fewest < 5 or [cells[2] for cells in block] != [str(start + n) for n in range(len(block))]:
            raise ValueError(f"sentence {number} has fewer than five columns, or numbers that jump: {block[0]}")
        words = (cells[3].strip() for cells in block)
        tags = tuple(cells[4].strip() for cells in block) if fewest > 5 else ()
        sentence = Sentence(f"{name}-{number}", tuple(_ESCAPED.get(word, word) for word in words), xpos=tags)
        yield sentence, [(n, n, cells[-1].strip(" -_")) for n, cells in enumerate(block)]


def _ontogum(name: str, rows: Sequence[str], tree: Document | None) -> list[tuple[Sentence, list[Mark]]]:
    """The sentences of a document of OntoGUM, the treebank's where there are any, and the brackets in them."""
    cut = [row.split("\t") for row in rows if row.strip()]
    if [(len(cells), cells[0]) for cells in cut] != [(3, str(number)) for number in range(len(cut))]:
        raise ValueError(f"the rows of {name!r} are not number, word and coreference with tabs between")
    words, marks = [cells[1] or "_" for cells in cut], [cells[2].strip("_") for cells in cut]
    if tree:
        sentences = tree.sentences
        in_tree = [word for sentence in sentences for word in sentence.words]
        if not all(word in (other, "_") for word, other in zip(words, in_tree, strict=True)):
            raise ValueError(f"its words are not those of {name!r} in the treebank")
    else:
        opened = accumulate(mark.count("(") - mark.count(")") for mark in marks)  # no mention may cross a border
        ends = [n for n, inside in enumerate(opened, 1) if words[n - 1] in (".", "!", "?") and not inside]
        bounds = pairwise(dict.fromkeys([0, *ends, len(words)]))
        sentences = tuple(Sentence(f"{name}-{n}", tuple(words[a:b])) for n, (a, b) in enumerate(bounds, 1))
    rest = iter(marks)
    return [(s, [(n, n, mark) for n, mark in enumerate(islice(rest, len(s.words)))]) for s in sentences]


def stanford(sentence: Sentence) -> Sentence:
    """The same sentence with Stanford-style relations, those of Table 1 in Clark et al. (2019).

    UD lets a preposition depend on its noun (``case``), Stanford dependencies put it between: the preposition becomes
    ``prep`` of the noun's governor, the noun its ``pobj``. Where a noun has several (*out of the box*), each is the
    ``prep`` of the one before. A prepositional phrase that is predicate or conjunct passes its relation on to the
    preposition. A possessive *'s* becomes ``possessive`` and stays with its noun. Others are renamed by
    :data:`ENGLISH` or keep their name.
    """
    governors, relations = list(sentence.governors), [ENGLISH["stanford"].get(r, r) for r in sentence.relations]
    first: dict[int, int] = {}  # preposition of each noun
    for noun, relation in enumerate(sentence.relations):
        cases = [w for w in sentence.dependents(noun) if sentence.relations[w] == "case"]
        prepositions = [w for w in cases if sentence.upos[w] != "PART"]
        for word in {*cases} - {*prepositions}:
            relations[word] = "possessive"
        if prepositions and relation != "nmod:poss":
            first[noun], above = prepositions[0], sentence.governors[noun]
            above = first.get(above, above) if relation.startswith("conj") else above  # conjuncts follow the first
            passed_on = "prep" if relation.split(":")[0] in ("nmod", "obl") else relations[noun]
            for outer, inner in pairwise([above, *prepositions, noun]):
                governors[inner], relations[inner] = outer, "prep"
            relations[first[noun]], relations[noun] = passed_on, "pobj"
    return replace(sentence, governors=tuple(governors), relations=tuple(relations))


def possessive(sentence: Sentence, word: int) -> int | None:
    """The *'s* (or bare apostrophe) that marks a word as possessor, if it has one.

    Clark et al. (2019, section 4.2) count a head as right on ``poss`` also when this mark, and not the possessor
    itself, picks the right governor.
    """
    marks = (w for w in sentence.dependents(word) if sentence.relations[w] in ("case", "possessive"))
    return next((w for w in marks if sentence.upos[w] == "PART"), None)


PARTS = ("train", "dev", "test")
_PART = re.compile(r"(?:[^/]+-ud-)?(train|dev|test)(?:elopment)?(?:[-.][^/]+)?(?:/.+)?")
SEED = 0  # of the draw; the same in every chapter, so that all of them score on the same documents
FEWEST_DOCUMENTS = 5
LONGEST_RUN = 10  # sentences or paragraphs


def in_parts(name: str) -> tuple[dict[str, Documents], str]:
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
def _parted(name: str, paths: tuple[Path, ...], _states: tuple) -> tuple[dict[str, Documents], str]:
    """The parts of files in their state of now: a chapter asks for each part by itself."""
    named = {part: [path] for part, path in zip(PARTS, paths, strict=True)} if len(paths) == 3 else {}
    for file in files_of(paths[0]) if len(paths) == 1 else []:
        part = _PART.fullmatch(file.relative_to(paths[0]).as_posix().lower())
        if part:
            named.setdefault(part[1], []).append(file)
    if {"train", "test"} <= set(named):
        parts, how = {part: read(*files) for part, files in named.items()}, "as the files are named"
        part_of: dict[tuple, str] = {}
        for part, document in ((part, d) for part, documents in parts.items() for d in documents):
            if len(document.sentences) > 1 and part_of.setdefault(_words(document), part) != part:
                problem = f"The document {document.id!r} of {part} stands in {part_of[_words(document)]} as well."
                raise CorpusError(name, None, problem, "others in each part: none is scored on that was learnt on.")
        if "dev" not in parts:
            drawn, drawn_how = _drawn(parts["train"], {"dev": 0.25})
            parts, how = parts | drawn, f"{how}, dev of train {drawn_how}"
    else:
        documents = read(*paths)
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


def _words(document: Document) -> tuple[tuple[str, ...], ...]:
    return tuple(sentence.words for sentence in document.sentences)


def _drawn(documents: Sequence[Document], shares: Mapping[str, float]) -> tuple[dict[str, Documents], str]:
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
        how = f"by runs of neighbouring sentences (fewer than {FEWEST_DOCUMENTS} different documents; neighbours may be alike)"
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
