"""Trees and chains: three formats of one document read alike, and what is said of damaged ones."""

import pytest
from samples import DATA

from helpers.corpora import treebanks


def test_three_formats_of_one_document_read_alike():
    (tree,), (flat,) = treebanks.read(DATA / "valid.conllu"), treebanks.read(DATA / "valid_conll")
    (joined,), (alone,) = (treebanks.read_conll(DATA / "valid.conll", trees) for trees in ({"valid": tree}, None))
    mentions = [
        ("Ann", "proper", 0),
        ("her dog", "nominal", 3),
        ("her", "pronoun", 2),
        ("She", "pronoun", 0),
        ("it", "pronoun", 2),
    ]
    for document in (tree, flat, joined):
        assert [(document.surface(m), m.kind, m.head) for m in document.mentions] == mentions
    for document in (tree, flat, joined, alone):
        assert [s.words for s in document.sentences] == [
            ("Ann", "sold", "her", "dog", "."),
            ("She", "missed", "it", "."),
        ]
        assert {c: [document.surface(m) for m in ms] for c, ms in document.chains.items()} == {
            "1": ["Ann", "her", "She"],
            "2": ["her dog", "it"],
        }
    assert [s.governors for s in tree.sentences] == [(1, -1, 3, 1, 1), (1, -1, 1, 1)]
    assert [m.type for m in tree.mentions] == ["person", "animal", "person", "person", "animal"]


def test_multiword_tokens_empty_nodes_and_spaces(tmp_path):
    text = (DATA / "multiword.conllu").read_text("utf-8")
    for end in ("\n", "\r\n"):
        for mark in (b"", b"\xef\xbb\xbf"):
            file = tmp_path / "x.conllu"
            file.write_bytes(mark + text.replace("\n", end).encode())
            (document,) = treebanks.read(file)
            (sentence,) = document.sentences
            assert sentence.text == "Don't stop!" and document.id == "x"
            assert sentence.words == ("Do", "n't", "stop", "!") and sentence.governors == (2, 2, -1, 2)


def test_head_words_without_a_tree():
    heads = {
        "the king of Spain": 1,
        "the dog 's": 1,
        "his sister , Caroline": 1,
        "people who came": 0,
        "it": 0,
        "of the house": 2,
    }
    for text, head in heads.items():
        sentence = treebanks.Sentence("s", tuple(text.split()))
        assert treebanks.head_word(sentence, 0, len(sentence.words)) == head, text


def sentence(text: str) -> treebanks.Sentence:
    """``word/UPOS/governor/relation ...``, governors from 1, 0 at the root."""
    rows = [w.split("/") for w in text.split()]
    words, upos, governors, relations = zip(*rows, strict=True)
    return treebanks.Sentence(
        "s", words, upos=upos, governors=tuple(int(g) - 1 for g in governors), relations=relations
    )


CASES = {  # word, part of speech, governor and relation before, governor and relation after
    "preposition": "She/PRON/2/nsubj/2/nsubj sat/VERB/0/root/0/root on/ADP/5/case/2/prep the/DET/5/det/5/det mat/NOUN/2/obl/3/pobj",
    "of a noun": "king/NOUN/0/root/0/root of/ADP/3/case/1/prep Spain/PROPN/1/nmod/2/pobj",
    "two": "came/VERB/0/root/0/root out/ADP/4/case/1/prep of/ADP/4/case/2/prep bed/NOUN/1/obl/3/pobj",
    "predicate": "She/PRON/4/nsubj/4/nsubj is/AUX/4/cop/4/cop in/ADP/4/case/0/root Rome/PROPN/0/root/3/pobj",
    "conjuncts": "in/ADP/2/case/0/root Rome/PROPN/0/root/1/pobj and/CCONJ/5/cc/5/cc in/ADP/5/case/1/conj Pisa/PROPN/2/conj/4/pobj",
    "possessive": "dog/NOUN/3/nmod:poss/3/poss 's/PART/1/case/1/possessive tail/NOUN/0/root/0/root",
    "passive": "It/PRON/3/nsubj:pass/3/nsubjpass was/AUX/3/aux:pass/3/auxpass taken/VERB/0/root/0/root by/ADP/5/case/3/prep "
    "me/PRON/3/obl:agent/4/pobj",
    "others": "He/PRON/2/nsubj/2/nsubj took/VERB/0/root/0/root up/ADP/2/compound:prt/2/prt chess/NOUN/5/compound/5/nn club/NOUN/2/obj/2/dobj",
    "no preposition": "last/ADJ/2/amod/2/amod year/NOUN/3/obl:unmarked/3/obl:unmarked came/VERB/0/root/0/root",
}


@pytest.mark.parametrize("name", CASES)
def test_stanford_relations(name):
    rows = [word.split("/") for word in CASES[name].split()]
    after = treebanks.stanford(sentence(" ".join("/".join(row[:4]) for row in rows)))
    assert [[str(g + 1), r] for g, r in zip(after.governors, after.relations, strict=True)] == [
        row[4:] for row in rows
    ]


def test_possessive_marks():
    found = sentence("dog/NOUN/3/nmod:poss 's/PART/1/case tail/NOUN/0/root")
    assert treebanks.possessive(found, 0) == 1 == treebanks.possessive(treebanks.stanford(found), 0)
    assert treebanks.possessive(found, 2) is None
