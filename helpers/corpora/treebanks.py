"""Sentences with trees from CoNLL-U, documents with coreference chains too; and their relations after Stanford's conventions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import conllu

from helpers.corpora.coreference import head_word, mentions_of, read_conll  # noqa: F401 (handed on)
from helpers.corpora.records import NOMINAL, PRONOUN, PROPER, Document, Mention, Sentence, depth  # noqa: F401
from helpers.corpora.sources import CorpusError, lines, once


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

_ID = re.compile(r"[0-9]{1,6}([-.][0-9]{1,6})?")
_AS_WRITTEN = dict.fromkeys(("lemma", "upos", "xpos", "feats", "head", "deps", "misc"), list.__getitem__)


def read_conllu(path: Path | str) -> tuple[Document, ...]:
    """Read documents from CoNLL-U, with coreference from ``Entity=`` in MISC (GUM and CorefUD style).

    ``# newdoc id`` begins a document; without any, the file is one. Multiword tokens give their words; empty
    nodes are skipped. Every sentence must be a tree.

    Raises:
        CorpusError: with the line, for anything that is not as it should be; nothing is half-loaded.
    """
    path = Path(path)
    layout, seen = ("eid", "etype", "head"), {}
    documents: list[
        tuple[str, tuple[str, ...], list[Sentence], list]
    ] = []  # name, layout of Entity, sentences, marks
    for number, block in _blocks(path):
        metadata, tokens = _parsed(path, number, block)
        layout = tuple(metadata["global.Entity"].split("-")) if metadata.get("global.Entity") else layout
        if "newdoc id" in metadata or "newdoc" in metadata or not documents:
            name = metadata.get("newdoc id") or (
                f"{path.stem}-{len(documents) + 1}" if "newdoc" in metadata else path.stem
            )
            once(path, number, "document id", name, seen)
            documents.append((name, layout, [], []))
        if not any(isinstance(token["id"], int) for _, token in tokens):
            continue
        name, _, sentences, marks = documents[-1]
        identity = metadata.get("sent_id") or f"{name}-{len(sentences) + 1}"
        once(path, number, "sentence id", identity, seen)
        sentence, entity = _sentence(path, identity, tokens)
        sentences.append(sentence)
        marks.append(entity)
    if not any(sentences for _, _, sentences, _ in documents):
        raise CorpusError(path, None, "The file has no sentence.", "CoNLL-U, ten tab-separated columns a word.")
    return tuple(
        Document(name, tuple(sentences), mentions_of(path, sentences, marks, layout))
        for name, layout, sentences, marks in documents
        if sentences
    )


def _blocks(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines between blank ones, each with the number of its first line."""
    block: list[str] = []
    for number, line in enumerate([*lines(path), ""], 1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _parsed(path: Path, number: int, block: list[str]) -> tuple[dict, list[tuple[int, conllu.models.Token]]]:
    """The comments of a block and its words, each with the number of its line."""
    wrong = partial(CorpusError, path)
    rows = [(n, line) for n, line in enumerate(block, number) if not line.startswith("#")]
    for n, line in rows:
        columns = line.split("\t")
        if len(columns) != 10 or not all(c.strip() for c in columns) or "  " in line:
            problem = f"{len(columns)} tab-separated columns, or an empty one, or two blanks in a row."
            raise wrong(n, problem, "ten columns with single tabs between, and '_' for nothing.")
        if not _ID.fullmatch(columns[0]):
            raise wrong(n, f"The word's id is {columns[0]!r}.", "1, 2, 3; 4-5 for a multiword token; 5.1.")
    try:
        sentence = (conllu.parse("\n".join(block), field_parsers=_AS_WRITTEN) or [conllu.TokenList()])[0]
        return sentence.metadata, [(n, token) for (n, _), token in zip(rows, sentence, strict=True)]
    except (conllu.exceptions.ParseException, ValueError) as error:
        raise wrong(number, f"The sentence cannot be parsed ({error}).", "CoNLL-U.") from None


def _sentence(path: Path, identity: str, tokens: Sequence) -> tuple[Sentence, list[tuple[int, str]]]:
    """A checked sentence, and what ``Entity=`` says at each of its words."""
    wrong = partial(CorpusError, path)
    words = [(n, t) for n, t in tokens if isinstance(t["id"], int)]
    for place, (n, token) in enumerate(words, 1):
        if token["id"] != place:
            raise wrong(n, f"Word {token['id']} stands where word {place} should be.", "1, 2, 3 and so on.")
    spaces = ["SpaceAfter=No" not in t["misc"].split("|") for _, t in words]
    for n, token in tokens:
        if isinstance(token["id"], tuple) and token["id"][1] == "-":
            first, _, last = token["id"]
            if not 1 <= first <= last <= len(words):
                raise wrong(n, f"Multiword token {first}-{last} of {len(words)} words.", "a range of words.")
            spaces[first - 1 : last] = [False] * (last - first) + ["SpaceAfter=No" not in token["misc"].split("|")]
    governors, relations = _tree(path, words)
    columns = (tuple(t[key] for _, t in words) for key in ("form", "lemma", "upos", "xpos", "feats"))
    entities = [next((m[7:] for m in t["misc"].split("|") if m.startswith("Entity=")), "") for _, t in words]
    marks = [(n, entity) for (n, _), entity in zip(words, entities, strict=True)]
    return Sentence(identity, *columns, governors, relations, tuple(spaces)), marks


def _tree(path: Path, words: Sequence) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Governors and relations; empty when the file has no trees (every HEAD is ``_``)."""
    wrong = partial(CorpusError, path)
    if all(token["head"] == "_" for _, token in words):
        return (), ()
    governors = []
    for n, token in words:
        head = int(token["head"]) if re.fullmatch(r"[0-9]{1,9}", token["head"]) else -1
        if not 0 <= head <= len(words):
            raise wrong(n, f"The head of word {token['id']} is {token['head']}.", f"0 to {len(words)}.")
        governors.append(head - 1)
    roots = [n for (n, _), governor in zip(words, governors, strict=True) if governor < 0]
    if len(roots) != 1:
        raise wrong((roots or [words[0][0]])[-1], f"The sentence has {len(roots)} roots.", "one word with head 0.")
    for start, (n, _) in enumerate(words):
        if depth(governors, start) is None:
            raise wrong(n, f"Word {start + 1} is part of, or hangs from, a cycle.", "a tree.")
    return tuple(governors), tuple(token["deprel"] for _, token in words)


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
