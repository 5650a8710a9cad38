"""Sentences with trees and documents with coreference chains, from CoNLL-U, CoNLL-2012 and OntoGUM files.

Words are counted from 0. A word's *governor* is the word it depends on (the "head" of the dependency
literature, a term this book keeps for attention heads); the root's governor is -1.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path

import conllu

from helpers.corpora.sources import CorpusError, lines

PRONOUN, PROPER, NOMINAL = "pronoun", "proper", "nominal"


@dataclass(frozen=True)
class Sentence:
    """A sentence of words. All tuples have one item a word; those a format does not have are empty.

    Attributes:
        id: unique in its document.
        words: surface forms; a multiword token such as *don't* counts as its words *do* and *n't*.
        lemmas, upos, xpos, feats: lemma, universal and language-specific part of speech, features as written.
        governors: index of the word's governor in this sentence, -1 at the root.
        relations: dependency relation to the governor.
        spaces: whether white space follows the word.
    """

    id: str
    words: tuple[str, ...]
    lemmas: tuple[str, ...] = ()
    upos: tuple[str, ...] = ()
    xpos: tuple[str, ...] = ()
    feats: tuple[str, ...] = ()
    governors: tuple[int, ...] = ()
    relations: tuple[str, ...] = ()
    spaces: tuple[bool, ...] = ()

    @property
    def text(self) -> str:
        """The sentence as it is written."""
        spaces = self.spaces or (True,) * len(self.words)
        return "".join(w + " " * s for w, s in zip(self.words, spaces, strict=True)).rstrip()


@dataclass(frozen=True, order=True)
class Mention:
    """A stretch of words of one sentence that refers to something.

    Attributes:
        sentence: index of the sentence in its document.
        start, end: first word, and the one after the last.
        chain: what it refers to; mentions of one document with the same chain corefer.
        head: index of the word of the mention on which the others depend (a *head word*).
        kind: ``pronoun``, ``proper`` or ``nominal``, by the head word's tag.
        type: entity type, where the format has one.
    """

    sentence: int
    start: int
    end: int
    chain: str
    head: int
    kind: str
    type: str = ""


@dataclass(frozen=True)
class Document:
    """Sentences in order, and all their mentions, in order; also those that corefer with no other."""

    id: str
    sentences: tuple[Sentence, ...]
    mentions: tuple[Mention, ...] = ()

    @cached_property
    def chains(self) -> dict[str, tuple[Mention, ...]]:
        """Coreference chains: the mentions of everything that is mentioned at least twice."""
        found: dict[str, list[Mention]] = {}
        for mention in self.mentions:
            found.setdefault(mention.chain, []).append(mention)
        return {chain: tuple(m) for chain, m in found.items() if len(m) > 1}

    @property
    def text(self) -> str:
        """Sentences joined by blanks."""
        return " ".join(s.text for s in self.sentences)

    def surface(self, mention: Mention) -> str:
        """The words of a mention."""
        return " ".join(self.sentences[mention.sentence].words[mention.start : mention.end])


def read(path: Path | str) -> tuple[Document, ...]:
    """Read a treebank or a coreference corpus, whichever format it is in.

    ``.conllu`` is CoNLL-U; a file or folder of ``.conll`` files whose first line is ``# begin document`` is
    OntoGUM; ``_conll`` or ``.conll`` otherwise is CoNLL-2012.
    """
    path = Path(path)
    if path.is_dir() or path.suffix != ".conllu":
        return read_conll(path)
    return read_conllu(path)


# ---------------------------------------------------------------------------------------- CoNLL-U

COLUMNS = 10
_ID = re.compile(r"[0-9]{1,6}([-.][0-9]{1,6})?")
AS_WRITTEN = {name: (lambda line, i: line[i]) for name in ("lemma", "upos", "xpos", "feats", "head", "deps", "misc")}


def read_conllu(path: Path | str) -> tuple[Document, ...]:
    """Read documents from CoNLL-U, with coreference from ``Entity=`` in MISC (GUM and CorefUD style).

    ``# newdoc id`` begins a document; without any, the file is one. Multiword tokens give their words; empty
    nodes are skipped. Every sentence must be a tree.

    Raises:
        CorpusError: with the line, for anything that is not as it should be; nothing is half-loaded.
    """
    path = Path(path)
    layout, documents, name, sentences, marks = ("eid", "etype", "head"), [], path.stem, [], []
    seen: dict[tuple[str, str], int] = {}
    for number, block in _blocks(path):
        metadata, tokens = _sentence_block(path, number, block)
        if "newdoc id" in metadata or "newdoc" in metadata:
            if sentences:
                documents.append(Document(name, tuple(sentences), _mentions(path, sentences, marks, layout)))
            name, sentences, marks = metadata.get("newdoc id") or f"{path.stem}-{len(documents) + 1}", [], []
            _once(path, number, "document", name, seen)
        if "global.Entity" in metadata:
            layout = tuple((metadata["global.Entity"] or "").split("-"))
        if not any(isinstance(token["id"], int) for _, token in tokens):
            continue
        identity = metadata.get("sent_id") or f"{name}-{len(sentences) + 1}"
        _once(path, number, "sentence", identity, seen)
        sentence, entity = _sentence(path, identity, tokens)
        sentences.append(sentence)
        marks.append(entity)
    if sentences:
        documents.append(Document(name, tuple(sentences), _mentions(path, sentences, marks, layout)))
    if not documents:
        raise CorpusError(path, None, "The file has no sentence.", "CoNLL-U, ten tab-separated columns a word.")
    return tuple(documents)


def _once(path: Path, number: int, what: str, identity: str, seen: dict[tuple[str, str], int]) -> None:
    if (what, identity) in seen:
        raise CorpusError(
            path, number, f"The {what} id {identity!r} is that of line {seen[what, identity]}.", "one of its own."
        )
    seen[what, identity] = number


def _blocks(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines between blank ones, each with the number of its first line."""
    block: list[str] = []
    found = lines(path)
    for number, line in enumerate([*found, ""], 1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _sentence_block(path: Path, number: int, block: list[str]):
    """Parse one block into its comments and its words, each with the number of its line."""
    numbered = [(n, line) for n, line in enumerate(block, number) if not line.startswith("#")]
    for n, line in numbered:
        columns = line.split("\t")
        if len(columns) != COLUMNS or not all(c.strip() for c in columns) or "  " in line:
            raise CorpusError(
                path,
                n,
                f"{len(columns)} tab-separated columns, or an empty one, or two blanks in a row.",
                "ten columns with single tabs between, and '_' for nothing.",
            )
        if not _ID.fullmatch(columns[0]):
            raise CorpusError(
                path, n, f"The word's id is {columns[0]!r}.", "1, 2, 3; 4-5 for a multiword token; 5.1."
            )
    try:
        parsed = conllu.parse("\n".join(block), field_parsers=AS_WRITTEN)
        tokens = parsed[0] if parsed else []
        pairs = [(n, token) for (n, _), token in zip(numbered, tokens, strict=True)]
    except (conllu.exceptions.ParseException, ValueError) as error:
        raise CorpusError(path, number, f"The sentence cannot be parsed ({error}).", "CoNLL-U.") from None
    return (parsed[0].metadata if parsed else {}), pairs


def _sentence(path: Path, identity: str, tokens: Sequence) -> tuple[Sentence, list[tuple[int, str]]]:
    """A checked sentence, and what ``Entity=`` says at each of its words."""
    words = [(n, t) for n, t in tokens if isinstance(t["id"], int)]
    for place, (n, token) in enumerate(words, 1):
        if token["id"] != place:
            raise CorpusError(
                path, n, f"Word {token['id']} stands where word {place} should be.", "1, 2, 3 and so on."
            )
    spaces = ["SpaceAfter=No" not in t["misc"].split("|") for _, t in words]
    for n, token in tokens:
        if isinstance(token["id"], tuple) and token["id"][1] == "-":
            first, _, last = token["id"]
            if not 1 <= first <= last <= len(words):
                raise CorpusError(
                    path, n, f"Multiword token {first}-{last} of {len(words)} words.", "a range of words."
                )
            spaces[first - 1 : last] = [False] * (last - first) + ["SpaceAfter=No" not in token["misc"].split("|")]
    governors, relations = _tree(path, words)
    column = lambda key: tuple(t[key] for _, t in words)  # noqa: E731
    sentence = Sentence(
        identity,
        column("form"),
        column("lemma"),
        column("upos"),
        column("xpos"),
        column("feats"),
        governors,
        relations,
        tuple(spaces),
    )
    entity = (next((m[7:] for m in t["misc"].split("|") if m.startswith("Entity=")), "") for _, t in words)
    return sentence, [(n, mark) for (n, _), mark in zip(words, entity, strict=True)]


def _tree(path: Path, words: Sequence) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Governors and relations; empty when the file has no trees (every HEAD is ``_``)."""
    if all(token["head"] == "_" for _, token in words):
        return (), ()
    governors = []
    for n, token in words:
        head = int(token["head"]) if re.fullmatch(r"[0-9]{1,9}", token["head"]) else -1
        if not 0 <= head <= len(words):
            raise CorpusError(path, n, f"The head of word {token['id']} is {token['head']}.", f"0 to {len(words)}.")
        governors.append(head - 1)
    roots = [words[i][0] for i, g in enumerate(governors) if g < 0]
    if len(roots) != 1:
        found = f"{len(roots)} roots (lines {', '.join(map(str, roots))})." if roots else "The sentence has no root."
        raise CorpusError(path, roots[1] if roots else words[0][0], found, "one word with head 0.")
    for start in range(len(governors)):
        if _depth(governors, start) is None:
            raise CorpusError(
                path, words[start][0], f"Word {start + 1} is part of, or hangs from, a cycle.", "a tree."
            )
    return tuple(governors), tuple(token["deprel"] for _, token in words)


def _depth(governors: Sequence[int], word: int) -> int | None:
    """Arcs between a word and the root; None when a cycle is in the way."""
    for depth in range(len(governors) + 1):
        if governors[word] < 0:
            return depth
        word = governors[word]
    return None


# ---------------------------------------------------------------------------------------- coreference

_BRACKET = re.compile(r"\((?P<one>[^()|]+)\)|\((?P<open>[^()|]+)|(?P<close>[^()|]+)\)|\|")


def _mentions(
    path: Path,
    sentences: Sequence[Sentence],
    marks: Sequence[Sequence[tuple[int, str]]],
    layout: Sequence[str] = ("eid",),
) -> tuple[Mention, ...]:
    """Mentions from brackets such as ``(3``, ``3)``, ``(3)``, written side by side or with ``|`` between."""
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
                        raise CorpusError(
                            path, line, f"The mention {fields[0]!r} has gaps.", "mentions without gaps."
                        )
                    opened.setdefault(fields[0], []).append((word, fields, line))
                if bracket["one"] or bracket["close"]:
                    if not opened.get(fields[0]):
                        raise CorpusError(
                            path,
                            line,
                            f"Mention {fields[0]!r} is closed but was not opened in this sentence.",
                            "balanced brackets.",
                        )
                    start, given, _ = opened[fields[0]].pop()
                    kind = (
                        given[layout.index("etype")]
                        if "etype" in layout and len(given) > layout.index("etype")
                        else ""
                    )
                    found.append(_mention(sentence, number, start, word + 1, fields[0], kind))
            if end != len(mark):
                raise CorpusError(path, line, f"{mark[end:]!r} is no bracket.", "(3 or 3) or (3), side by side.")
        for chain, left in opened.items():
            if left:
                raise CorpusError(
                    path,
                    left[-1][2],
                    f"Mention {chain!r} is opened but not closed in its sentence.",
                    "balanced brackets.",
                )
    return tuple(sorted(found, key=lambda m: (m.sentence, m.start, -m.end)))


def _mention(sentence: Sentence, number: int, start: int, end: int, chain: str, kind: str) -> Mention:
    head = head_word(sentence, start, end)
    return Mention(number, start, end, chain, head, _kind(sentence, start, end, head), kind)


def head_word(sentence: Sentence, start: int, end: int) -> int:
    """The head word of a stretch of words ``[start, end)``: an index in the sentence.

    With a tree: the word whose governor lies outside; of several, the one nearest to the root, then the
    first. Without: what follows the first preposition, comma, relative word or opening bracket is left out (unless
    nothing stands before it), a final possessive *'s* too, and the last word of the rest is taken.
    """
    span = range(start, end)
    if sentence.governors:
        tops = [w for w in span if sentence.governors[w] not in span]
        return min(tops, key=lambda w: (_depth(sentence.governors, w), w))
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


def _kind(sentence: Sentence, start: int, end: int, head: int) -> str:
    """Pronoun, proper or nominal: by the head word's tag, or by its form where there are no tags."""
    if sentence.upos or sentence.xpos:
        tags = {s[head] for s in (sentence.upos, sentence.xpos) if s}
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
    if path.is_dir():
        files = sorted(p for p in path.rglob("*conll") if p.is_file())
        if not files:
            raise CorpusError(
                path, None, "The folder has no file that ends in 'conll'.", "CoNLL-2012 or OntoGUM files."
            )
        documents = [d for file in files for d in read_conll(file, trees)]
        if twice := [d for d, n in Counter(d.id for d in documents).items() if n > 1]:
            raise CorpusError(path, None, f"The document id {twice[0]!r} occurs twice.", "one of its own for each.")
        return tuple(documents)
    documents, name, first, rows = [], None, 0, []
    for number, line in enumerate(lines(path), 1):
        if begin := _BEGIN.match(line):
            if name is not None:
                raise CorpusError(
                    path, number, f"Document {name!r} (line {first}) has no end.", "'#end document' before."
                )
            name = f"{begin['name']} part {int(begin['part'] or 0)}" if begin["name"] else path.stem
            named, first, rows = bool(begin["name"]), number, []
        elif line.replace(" ", "").startswith("#enddocument"):
            if name is None or not rows:
                raise CorpusError(
                    path, number, "A document ends that has no words.", "'#begin document' and words before."
                )
            documents.append(_ontonotes(path, name, rows) if named else _ontogum(path, name, rows, trees))
            name = None
        elif name is None and line.strip():
            raise CorpusError(
                path, number, f"{line[:40]!r} stands outside a document.", "'#begin document (name); part 000'."
            )
        else:
            rows.append((number, line))
    if name is not None or not documents:
        raise CorpusError(
            path,
            first or None,
            "The document has no end." if name else "There is no document.",
            "'#end document' as last line.",
        )
    if twice := [d for d, n in Counter(d.id for d in documents).items() if n > 1]:
        raise CorpusError(path, None, f"The document id {twice[0]!r} occurs twice.", "one of its own for each.")
    return tuple(documents)


def _ontonotes(path: Path, name: str, rows: Sequence[tuple[int, str]]) -> Document:
    sentences, marks, current = [], [], []
    for number, line in [*rows, (0, "")]:
        if columns := line.split():
            if len(columns) < ONTONOTES_COLUMNS:
                raise CorpusError(
                    path, number, f"{len(columns)} columns.", f"at least {ONTONOTES_COLUMNS}, as in OntoNotes."
                )
            if columns[2] != str(len(current)):
                raise CorpusError(
                    path, number, f"Word {columns[2]} stands where word {len(current)} should be.", "0, 1, 2 ..."
                )
            if columns[3] == "[WORD]":
                raise CorpusError(
                    path, number, "The words are left out.", "files filled in with 'skeleton2conll' from LDC2013T19."
                )
            current.append((number, columns))
        elif current:
            words = tuple(_ESCAPED.get(c[3], c[3]) for _, c in current)
            sentences.append(Sentence(f"{name}-{len(sentences) + 1}", words, xpos=tuple(c[4] for _, c in current)))
            marks.append([(n, "" if c[-1] in "-_" else c[-1]) for n, c in current])
            current = []
    return Document(name, tuple(sentences), _mentions(path, sentences, marks))


def _ontogum(
    path: Path, name: str, rows: Sequence[tuple[int, str]], trees: Mapping[str, Document] | None
) -> Document:
    words, marks = [], []
    for number, line in rows:
        columns = line.split("\t")
        if len(columns) != 3 or columns[0] != str(len(words)):
            raise CorpusError(path, number, f"{line[:60]!r}.", f"three columns: {len(words)}, word, coreference.")
        words.append(columns[1] or "_")
        marks.append((number, columns[2].strip("_")))
    if trees is None:
        opened = list(accumulate(m.count("(") - m.count(")") for _, m in marks))  # no mention may cross a border
        ends = [i + 1 for i, w in enumerate(words) if (w in _SENTENCE_ENDS and opened[i] == 0) or i + 1 == len(words)]
        bounds = list(zip([0, *ends], ends, strict=False))
        sentences = tuple(Sentence(f"{name}-{i}", tuple(words[a:b])) for i, (a, b) in enumerate(bounds, 1))
    elif name not in trees:
        raise CorpusError(path, 1, f"The treebank has no document {name!r}.", "the same documents in both.")
    else:
        sentences = trees[name].sentences
        own = [w for s in sentences for w in s.words]
        if bad := next((i for i, (a, b) in enumerate(zip(words, own, strict=False)) if a not in (b, "_")), None):
            raise CorpusError(
                path, marks[bad][0], f"{words[bad]!r}, where the treebank has {own[bad]!r}.", "the same words."
            )
        if len(own) != len(words):
            raise CorpusError(
                path, marks[-1][0], f"{len(words)} words, the treebank has {len(own)}.", "the same words."
            )
        ends = [sum(len(s.words) for s in sentences[: i + 1]) for i in range(len(sentences))]
        bounds = list(zip([0, *ends], ends, strict=False))
    return Document(name, sentences, _mentions(path, sentences, [marks[a:b] for a, b in bounds]))


# ---------------------------------------------------------------------------------------- Stanford relations

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
        cases = [
            w
            for w, (g, r) in enumerate(zip(sentence.governors, sentence.relations, strict=True))
            if g == noun and r == "case"
        ]
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
    return next(
        (
            w
            for w, (g, r) in enumerate(zip(sentence.governors, sentence.relations, strict=True))
            if g == word and r in ("case", "possessive") and sentence.upos[w] == "PART"
        ),
        None,
    )


# ---------------------------------------------------------------------------------------- validation

TAGS = {
    "det": {"DET"},
    "case": {"ADP", "PART", "SCONJ", "VERB", "ADV", "ADJ"},
    "aux": {"AUX"},
    "aux:pass": {"AUX"},
    "cop": {"AUX"},
    "punct": {"PUNCT"},
    "nummod": {"NUM"},
    "expl": {"PRON"},
    "compound:prt": {"ADP", "ADV"},
    "cc": {"CCONJ", "ADV", "ADP", "SCONJ", "ADJ"},
    "mark": {"SCONJ", "PART", "ADP", "ADV", "VERB"},
    "nmod:poss": {"PRON", "NOUN", "PROPN", "NUM", "ADJ"},
}
"""Parts of speech that a relation's dependent may have, where Universal Dependencies restrict them."""
NO_DEPENDENTS = {"punct", "case", "cc", "aux", "aux:pass", "cop", "mark", "expl"}
MODIFIERS_OF_THOSE = {"fixed", "conj", "cc", "advmod", "punct", "obl", "obl:unmarked", "goeswith", "orphan"}


def crossing(sentence: Sentence) -> tuple[int, ...]:
    """Words whose arc crosses another, so that the tree is not projective."""
    arcs = [(min(w, g), max(w, g), w) for w, g in enumerate(sentence.governors) if g >= 0]
    return tuple(w for a, b, w in arcs if any(a < c < b < d or c < a < d < b for c, d, _ in arcs))


def check(document: Document) -> list[str]:
    """What breaks the conventions of UD English, beyond what :func:`read_conllu` refuses: one message a finding.

    Tags that a relation does not allow; dependents of function words and punctuation; objects of nouns; two
    subjects or objects of one word; ``obl`` of a noun and ``nmod`` of a verb; passives without their auxiliary; ``fixed``,
    ``flat``, ``conj`` and ``appos`` that point backwards; mentions that are not one constituent; chains of one mention.
    """
    found = [f"{s.id}, word {w + 1} {s.words[w]!r}: {what}" for s in document.sentences for w, what in _findings(s)]
    for m in document.mentions:
        governors = document.sentences[m.sentence].governors
        if sum(governors[w] not in range(m.start, m.end) for w in range(m.start, m.end)) != 1:
            found.append(f"{document.sentences[m.sentence].id}: {document.surface(m)!r} has not one head word")
    alone = {m.chain for m in document.mentions} - set(document.chains)
    return found + [f"{document.id}: chain {chain} has one mention" for chain in sorted(alone)]


def _findings(s: Sentence) -> list[tuple[int, str]]:
    found = []
    below: dict[int, list[str]] = {}
    for governor, relation in zip(s.governors, s.relations, strict=True):
        below.setdefault(governor, []).append(relation)
    for w, (governor, relation, tag) in enumerate(zip(s.governors, s.relations, s.upos, strict=True)):
        own, above = below.get(w, []), s.relations[governor]
        noun = s.upos[governor] in ("NOUN", "PROPN", "PRON")
        predicate = {"cop", "nsubj", "nsubj:pass", "case", "aux"} & set(below.get(governor, ()))
        rules = {
            f"{relation} is not the relation of {tag}": tag not in TAGS.get(relation, {tag}),
            "root and only the root has no governor": (relation == "root") != (governor < 0),
            "punctuation has the relation punct": tag == "PUNCT" and relation not in ("punct", "root"),
            f"{relation} depends on {above}": governor >= 0
            and above in NO_DEPENDENTS
            and relation not in MODIFIERS_OF_THOSE,
            "punctuation governs it": governor >= 0 and s.upos[governor] == "PUNCT",
            f"{relation} of a noun": governor >= 0 and relation in ("obj", "iobj") and noun and not predicate,
            "nmod of a verb": governor >= 0
            and relation == "nmod"
            and s.upos[governor] == "VERB"
            and s.xpos[governor] != "VBG",
            f"{relation} points backwards": relation in ("fixed", "flat", "conj", "appos") and governor > w,
            "nsubj:pass without aux:pass": relation == "nsubj:pass"
            and "aux:pass" not in below.get(governor, ())
            and s.xpos[governor] != "VBN",
            "nsubj of a passive": relation == "nsubj" and "aux:pass" in below.get(governor, ()),
            "two subjects": sum(r in ("nsubj", "nsubj:pass", "csubj", "csubj:pass") for r in own) > 1,
            "two objects": own.count("obj") > 1,
        }
        found += [(w, what) for what, broken in rules.items() if broken]
    return found
