"""Trees and chains: three formats of one document read alike, and what is said of damaged ones."""

import gzip

import pytest
from samples import DATA, READERS, surface

from helpers.corpora import treebanks


def test_three_formats_of_one_document_read_alike():
    (tree,), (flat,) = treebanks.read(DATA / "valid.conllu"), treebanks.read(DATA / "valid_conll")
    (joined,), (alone,) = (treebanks.read(DATA / "valid.conll", trees=t) for t in ({"valid": tree}, None))
    mentions = [
        ("Ann", "proper", 0),
        ("her dog", "nominal", 3),
        ("her", "pronoun", 2),
        ("She", "pronoun", 0),
        ("it", "pronoun", 2),
    ]
    for document in (tree, flat, joined):
        assert [(surface(document, m), m.kind, m.head) for m in document.mentions] == mentions
    for document in (tree, flat, joined, alone):
        assert [s.words for s in document.sentences] == [
            ("Ann", "sold", "her", "dog", "."),
            ("She", "missed", "it", "."),
        ]
        assert {c: [surface(document, m) for m in ms] for c, ms in document.chains.items()} == {
            "1": ["Ann", "her", "She"],
            "2": ["her dog", "it"],
        }
    assert [s.governors for s in tree.sentences] == [(1, -1, 3, 1, 1), (1, -1, 1, 1)]
    assert [m.type for m in tree.mentions] == ["person", "animal", "person", "person", "animal"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize(("name", "packed"), [("x.conllu", bytes), ("x.CoNLLU.gz", gzip.compress)])
def test_multiword_tokens_empty_nodes_and_spaces(tmp_path, end, encoding, name, packed):
    text = (DATA / "multiword.conllu").read_text("utf-8")
    (tmp_path / name).write_bytes(packed(text.replace("\n", end).encode(encoding)))
    (document,) = treebanks.read(tmp_path / name)
    (sentence,) = document.sentences
    assert sentence.text == "Don't stop!" and document.id.startswith("x")
    assert sentence.words == ("Do", "n't", "stop", "!") and sentence.governors == (2, 2, -1, 2)


def test_head_words_without_a_tree():
    for text, head in READERS["heads"].items():
        sentence = treebanks.Sentence("s", tuple(text.split()))
        assert treebanks.head_word(sentence, 0, len(sentence.words)) == head, text


def sentence(text: str) -> treebanks.Sentence:
    """``word/UPOS/governor/relation ...``, governors from 1, 0 at the root."""
    rows = [w.split("/") for w in text.split()]
    words, upos, governors, relations = zip(*rows, strict=True)
    return treebanks.Sentence(
        "s", words, upos=upos, governors=tuple(int(g) - 1 for g in governors), relations=relations
    )


@pytest.mark.parametrize("name", READERS["stanford"])
def test_stanford_relations(name):
    rows = [word.split("|") for word in READERS["stanford"][name].split()]
    after = treebanks.stanford(sentence(" ".join("/".join(row[:4]) for row in rows)))
    assert [[str(g + 1), r] for g, r in zip(after.governors, after.relations, strict=True)] == [
        row[4:] for row in rows
    ]


def test_possessive_marks():
    tree = sentence("dog/NOUN/3/nmod:poss 's/PART/1/case tail/NOUN/0/root")
    assert treebanks.possessive(tree, 0) == 1 == treebanks.possessive(treebanks.stanford(tree), 0)
    assert treebanks.possessive(tree, 2) is None
