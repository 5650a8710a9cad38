"""What is wrong with the book's own articles and trees, beyond what the readers refuse."""

import re

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from helpers import corpora
from helpers.corpora.records import Corpus, Document, Sentence

NEAR_DUPLICATE = 0.6


def check_encyclopedia(corpus: Corpus) -> list[str]:
    """What is wrong with the book's own articles, beyond the format: one message for each finding.

    Three paragraphs each, of 55 to 80 words; lower-case ids; plain ASCII; every paragraph ends a sentence; no
    sentence twice, and none that shares more than 60 % of its word triples with another.
    """
    problems, sentences = [], []
    for article in corpus.articles:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", article.id) or len(article.paragraphs) != 3:
            problems.append(
                f"{article.id}: another id than lower-case letters, digits and hyphens, or not three paragraphs"
            )
        for paragraph in article.paragraphs:
            if not 55 <= len(paragraph.split()) <= 80:
                problems.append(f"{article.id}: {len(paragraph.split())} words, not 55 to 80")
            if (
                not paragraph.isascii()
                or paragraph != " ".join(paragraph.split())
                or not re.search(r'[.?!]"?$', paragraph)
            ):
                problems.append(
                    f"{article.id}: beyond ASCII, stray white space, or no end of a sentence: {paragraph}"
                )
            sentences += [paragraph[a:b].strip() for a, b in corpora.sentences(paragraph)]
    triples = CountVectorizer(ngram_range=(3, 3), binary=True, token_pattern="[a-z0-9]+").fit_transform(sentences)
    sizes = np.maximum(triples.sum(1).A1, 1)
    shared = (triples @ triples.T).toarray() / np.minimum.outer(sizes, sizes)
    near = np.argwhere(np.triu(shared > NEAR_DUPLICATE, 1))
    return problems + [f"{sentences[a]!r} is close to {sentences[b]!r}" for a, b in near]


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
