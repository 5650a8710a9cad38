"""What is wrong with the book's own articles and trees, beyond what the readers refuse."""

import re

from helpers import corpora
from helpers.corpora.records import Corpus, Document, Sentence

PARAGRAPHS, FEWEST_WORDS, MOST_WORDS, NEAR_DUPLICATE = 3, 55, 80, 0.6


def check_encyclopedia(corpus: Corpus) -> list[str]:
    """What is wrong with the book's own articles, beyond the format: one message for each finding.

    Three paragraphs each, of 55 to 80 words; lower-case ids; plain ASCII; every paragraph ends a sentence; no
    sentence twice, and none that shares more than 60 % of its word triples with another.
    """
    problems, seen = [], []
    for article in corpus.articles:
        where = article.id
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", article.id):
            problems.append(f"{where}: the id is not made of lower-case letters, digits and hyphens")
        if len(article.paragraphs) != PARAGRAPHS:
            problems.append(f"{where}: {len(article.paragraphs)} paragraphs, not {PARAGRAPHS}")
        for number, paragraph in enumerate(article.paragraphs, 1):
            words = len(paragraph.split())
            if not FEWEST_WORDS <= words <= MOST_WORDS:
                problems.append(f"{where}, paragraph {number}: {words} words, not {FEWEST_WORDS} to {MOST_WORDS}")
            if odd := sorted({c for c in paragraph if not 32 <= ord(c) < 127}):
                problems.append(f"{where}, paragraph {number}: characters beyond ASCII: {odd}")
            if paragraph != " ".join(paragraph.split()):
                problems.append(f"{where}, paragraph {number}: stray white space")
            if not re.search(r'[.?!]"?$', paragraph):
                problems.append(f"{where}, paragraph {number}: does not end a sentence")
            seen += [(where, paragraph[a:b].strip()) for a, b in corpora.sentences(paragraph)]
    return problems + _near_duplicates(seen)


def _near_duplicates(found: list[tuple[str, str]]) -> list[str]:
    triples = [_triples(sentence) for _, sentence in found]
    holders: dict[tuple[str, ...], list[int]] = {}
    problems = []
    for number, mine in enumerate(triples):
        rivals = {r for t in mine for r in holders.get(t, ())}
        for rival in rivals:
            shared = len(mine & triples[rival]) / min(len(mine), len(triples[rival]))
            if shared > NEAR_DUPLICATE:
                problems.append(
                    f"{found[number][0]}: {found[number][1]!r} is close to {found[rival][1]!r} in {found[rival][0]}"
                )
        for triple in mine:
            holders.setdefault(triple, []).append(number)
    return problems


def _triples(sentence: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[a-z0-9]+", sentence.lower())
    return {tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2))}


# ---------------------------------------------------------------------------------------- trees

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


def check_trees(document: Document) -> list[str]:
    """What breaks the conventions of UD English, beyond what :func:`helpers.corpora.treebanks.read_conllu` refuses: one message a finding.

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
