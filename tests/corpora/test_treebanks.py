"""Trees and chains: three formats of one document read alike, and what is said of damaged ones."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from validators import check_trees, crossing

from helpers import corpora, places
from helpers.corpora import treebanks
from helpers.corpora.sources import CorpusError

WORDS = ("She", "saw", "the", "old", "dog", "near", "London", "and", "it", "barked")
UPOS = ("PRON", "VERB", "DET", "ADJ", "NOUN", "ADP", "PROPN", "CCONJ", "PRON", "VERB")
XPOS = ("PRP", "VBD", "DT", "JJ", "NN", "IN", "NNP", "CC", "PRP", "VBD")


def conllu(sentences, mentions, name="d", header="# global.Entity = eid-etype-head\n") -> str:
    """Write sentences (words, UPOS, XPOS, governors, relations) and mentions (sentence, start, end, chain)."""
    lines = [f"# newdoc id = {name}\n{header}"]
    for number, (words, upos, xpos, governors, relations) in enumerate(sentences):
        lines.append(f"# sent_id = {name}-{number + 1}\n# text = {' '.join(words)}\n")
        for i, word in enumerate(words):
            mark = brackets([m for m in mentions if m[0] == number], i, "{}-person-1")
            misc = f"Entity={mark}" if mark else "_"
            row = (i + 1, word, word.lower(), upos[i], xpos[i], "_", governors[i] + 1, relations[i], "_", misc)
            lines.append("\t".join(map(str, row)) + "\n")
        lines.append("\n")
    return "".join(lines)


def brackets(mentions, word, form="{}", between="") -> str:
    """The marks at one word: closing ones of several words first, then wholes and openings, outer before inner."""
    closing = sorted((m for m in mentions if m[2] == word + 1 and m[1] < word), key=lambda m: m[2] - m[1])
    opening = sorted((m for m in mentions if m[1] == word), key=lambda m: m[1] - m[2])
    marks = [f"{m[3]})" for m in closing]
    marks += [f"({form.format(m[3])}" + ")" * (m[2] == word + 1) for m in opening]
    return between.join(marks)


@st.composite
def documents(draw):
    """A random document: trees of random shape, nested or disjoint mentions of a few chains."""
    sentences, mentions = [], []
    for number in range(draw(st.integers(1, 3))):
        n = draw(st.integers(2, 9))
        order = draw(st.permutations(range(n)))
        governors = [-1] * n
        for place, word in enumerate(order[1:], 1):
            governors[word] = order[draw(st.integers(0, place - 1))]
        picks = [draw(st.integers(0, len(WORDS) - 1)) for _ in range(n)]
        sentences.append(
            (
                [WORDS[p] for p in picks],
                [UPOS[p] for p in picks],
                [XPOS[p] for p in picks],
                governors,
                ["root" if g < 0 else "dep" for g in governors],
            )
        )
        spans: set[tuple[int, int]] = set()
        for _ in range(draw(st.integers(0, 4))):
            a = draw(st.integers(0, n - 1))
            b = draw(st.integers(a + 1, n))
            if all(b <= c or d <= a or (c <= a and b <= d) or (a <= c and d <= b) for c, d in spans):
                spans.add((a, b))
        mentions += [(number, a, b, str(draw(st.integers(1, 3)))) for a, b in sorted(spans)]
    return sentences, mentions


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(given_=documents())
def test_three_formats_of_one_document_read_alike(tmp_path_factory, given_):
    sentences, mentions = given_
    folder = tmp_path_factory.mktemp("formats")
    (folder / "d.conllu").write_text(conllu(sentences, mentions), "utf-8")
    ontonotes, ontogum = ["#begin document (d); part 000\n"], ["# begin document \n"]
    for number, (words, _, xpos, _, _) in enumerate(sentences):
        own = [m for m in mentions if m[0] == number]
        for i, word in enumerate(words):
            row = ("d", 0, i, word, xpos[i], "*", "-", "-", "-", "-", "*", brackets(own, i, between="|") or "-")
            ontonotes.append("   ".join(map(str, row)) + "\n")
            ontogum.append(f"{len(ontogum) - 1}\t{word}\t{brackets(own, i) or '_'}\n")
        ontonotes.append("\n")
    (folder / "d_conll").write_text("".join([*ontonotes, "#end document\n"]), "utf-8")
    (folder / "d.conll").write_text("".join([*ontogum, "# end document\n"]), "utf-8")
    (tree,) = treebanks.read(folder / "d.conllu")
    (flat,) = treebanks.read(folder / "d_conll")
    (joined,) = treebanks.read_conll(folder / "d.conll", {"d": tree})
    spans = {(m.sentence, m.start, m.end, m.chain) for m in tree.mentions}
    assert spans == set(mentions) == {(m.sentence, m.start, m.end, m.chain) for m in flat.mentions}
    assert [(m.sentence, m.start, m.end, m.chain, m.head, m.kind) for m in tree.mentions] == [
        (m.sentence, m.start, m.end, m.chain, m.head, m.kind) for m in joined.mentions
    ]
    assert [s.words for s in flat.sentences] == [s.words for s in tree.sentences] == [tuple(s[0]) for s in sentences]
    assert [s.governors for s in tree.sentences] == [tuple(s[3]) for s in sentences]
    expected = {c for *_, c in mentions if sum(m[3] == c for m in mentions) > 1}
    assert set(tree.chains) == set(flat.chains) == expected
    for m in tree.mentions:
        governors = sentences[m.sentence][3]
        assert m.start <= m.head < m.end and governors[m.head] not in range(m.start, m.end)
        assert m.kind == {"PRON": "pronoun", "PROPN": "proper"}.get(sentences[m.sentence][1][m.head], "nominal") or (
            m.kind == "pronoun" and m.end - m.start == 1
        )


def test_multiword_tokens_empty_nodes_and_spaces(tmp_path):
    rows = [
        "# sent_id = 1",
        "1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_",
        "1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_",
        "2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_",
        "3\tstop\tstop\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No",
        "3.1\tstop\tstop\tVERB\tVB\t_\t_\t_\t0:root\t_",
        "4\t!\t!\tPUNCT\t.\t_\t3\tpunct\t_\tSpaceAfter=No",
    ]
    for end in ("\n", "\r\n"):
        for mark in (b"", b"\xef\xbb\xbf"):
            file = tmp_path / "x.conllu"
            file.write_bytes(mark + (end.join(rows) + end).encode())
            (document,) = treebanks.read(file)
            (sentence,) = document.sentences
            assert sentence.text == "Don't stop!" and document.id == "x"
            assert sentence.words == ("Do", "n't", "stop", "!") and sentence.governors == (2, 2, -1, 2)


GOOD = conllu(
    [(["She", "ran"], ["PRON", "VERB"], ["PRP", "VBD"], [1, -1], ["nsubj", "root"])] * 2,
    [(0, 0, 1, "1"), (1, 0, 1, "1")],
)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("1\tShe\tshe", "1\tShe she", 5, "9 tab-separated columns"),
        ("\t2\tnsubj", "\t7\tnsubj", 5, "The head of word 1 is 7"),
        ("\t2\tnsubj", "\t-1\tnsubj", 5, "The head of word 1 is -1"),
        ("\t2\tnsubj", "\tx\tnsubj", 5, "The head of word 1 is x"),
        ("\t2\tnsubj", "\t_\tnsubj", 5, "The head of word 1 is _"),
        ("\t2\tnsubj", "\t0\tnsubj", 6, "2 roots (lines 5, 6)"),
        ("\t0\troot", "\t1\troot", 5, "no root"),
        ("\t2\tnsubj", "\t1\tnsubj", 5, "cycle"),
        ("(1-person-1)", "(1-person-1", 5, "'1' is opened but not closed"),
        ("(1-person-1)", "1)", 5, "'1' is closed but was not opened"),
        ("(1-person-1)", "(1-person-1))", 5, "is no bracket"),
        ("(1-person-1)", "(1[1/2]-person-1)", 5, "has gaps"),
        ("# sent_id = d-2", "# sent_id = d-1", 8, "sentence id 'd-1' was there before (line"),
        ("2\tran", "3\tran", 6, "Word 3 stands where word 2 should be"),
        ("2\tran", "2-9\tran\t_\t_\t_\t_\t_\t_\t_\t_\n2\tran", 6, "Multiword token 2-9"),
        ("1\tShe\tshe", "1\t\tshe", 5, "an empty one"),
        ("1\tShe\tshe", "a\tShe\tshe", 5, "The word's id is 'a'"),
        ("1\tShe\tshe", "1\t" + "x" * 2_000_001 + "\tshe", 5, "2,000,0"),
    ],
)
def test_bad_conllu_names_file_and_line(tmp_path, old, new, line, says):
    file = tmp_path / "bad.conllu"
    assert old in GOOD
    file.write_text(GOOD.replace(old, new, 1), "utf-8")
    with pytest.raises(CorpusError) as caught:
        treebanks.read(file)
    assert says in str(caught.value) and f"{file}, line {line}:" in str(caught.value), str(caught.value)


def test_longer_cycles_second_documents_and_nothing(tmp_path):
    file = tmp_path / "x.conllu"
    rows = [f"{i}\tw\tw\tX\tX\t_\t{h}\tdep\t_\t_" for i, h in ((1, 2), (2, 3), (3, 1), (4, 0))]
    file.write_text("\n".join(rows) + "\n")
    with pytest.raises(CorpusError, match=r"line 1: Word 1 is part of, or hangs from, a cycle"):
        treebanks.read(file)
    file.write_text(GOOD + GOOD.replace("d-1", "d-8").replace("d-2", "d-9"))
    with pytest.raises(CorpusError, match=r"line 13: The document id 'd' was there before \(line 1\)"):
        treebanks.read(file)
    for content in ("", "\n \n", "# newdoc id = d\n"):
        file.write_text(content)
        with pytest.raises(CorpusError, match=r"is empty|no sentence"):
            treebanks.read(file)
    file.write_bytes("1\tcaf\xe9".encode("latin-1"))
    with pytest.raises(CorpusError, match=r"line 1: Byte 0xe9 is not UTF-8"):
        treebanks.read(file)


ONTONOTES = """#begin document (bc/x/00/x_0001); part 003
x 0 0 She PRP * - - - A * (4)
x 0 1 saw VBD * - - - A * -
x 0 2 the DT * - - - A * (5
x 0 3 dog NN * - - - A * 5)
x 0 4 -LRB- -LRB- * - - - A * -

x 0 0 It PRP * - - - A * (5)
#end document
"""


def test_ontonotes_columns(tmp_path):
    file = tmp_path / "x.v4_gold_conll"
    file.write_text(ONTONOTES)
    (document,) = treebanks.read(file)
    assert document.id == "bc/x/00/x_0001 part 3" and document.sentences[0].words[-1] == "("
    assert [document.surface(m) for m in document.chains["5"]] == ["the dog", "It"] and set(document.chains) == {"5"}
    assert [(m.head, m.kind) for m in document.mentions] == [(0, "pronoun"), (3, "nominal"), (0, "pronoun")]
    assert treebanks.read(tmp_path) == (document,)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("saw VBD * -", "saw VBD *", "line 3: 11 columns"),
        ("0 1 saw", "0 7 saw", "line 3: Word 7 stands where word 1"),
        ("saw", "[WORD]", "line 3: The words are left out"),
        ("(5\n", "-\n", "line 5: Mention '5' is closed but was not opened"),
        ("5)\n", "-\n", "line 4: Mention '5' is opened but not closed"),
        ("#end document\n", "", "line 1: The document has no end"),
        ("#begin document (bc/x/00/x_0001); part 003\n", "", "line 1: 'x 0 0 She"),
        ("#end document\n", "#end document\n#end document\n", "line 10: A document ends that has no words"),
        ("#end document\n", "#end document\n" + ONTONOTES, "'bc/x/00/x_0001 part 3' occurs twice"),
        (ONTONOTES, "", "is empty"),
    ],
)
def test_bad_ontonotes_names_file_and_line(tmp_path, old, new, says):
    file = tmp_path / "x_conll"
    file.write_text(ONTONOTES.replace(old, new, 1))
    with pytest.raises(CorpusError) as caught:
        treebanks.read(file)
    assert says in str(caught.value) and str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("words", "head"),
    [
        ("the king of Spain", 1),
        ("the dog 's", 1),
        ("his sister , Caroline", 1),
        ("people who came", 0),
        ("it", 0),
        ("a small red house", 3),
        ("of the house", 2),
    ],
)
def test_head_words_without_a_tree(words, head):
    sentence = treebanks.Sentence("s", tuple(words.split()))
    assert treebanks.head_word(sentence, 0, len(sentence.words)) == head


# ------------------------------------------------------------------ Stanford relations


def sentence(text: str) -> treebanks.Sentence:
    """``word/UPOS/governor/relation ...``, governors from 1, 0 at the root."""
    rows = [w.split("/") for w in text.split()]
    words, upos, governors, relations = zip(*rows, strict=True)
    return treebanks.Sentence(
        "s", words, upos=upos, governors=tuple(int(g) - 1 for g in governors), relations=relations
    )


CASES = {
    "preposition": (
        "She/PRON/2/nsubj sat/VERB/0/root on/ADP/5/case the/DET/5/det mat/NOUN/2/obl",
        "She/2/nsubj sat/0/root on/2/prep the/5/det mat/3/pobj",
    ),
    "of a noun": ("king/NOUN/0/root of/ADP/3/case Spain/PROPN/1/nmod", "king/0/root of/1/prep Spain/2/pobj"),
    "two prepositions": (
        "came/VERB/0/root out/ADP/4/case of/ADP/4/case bed/NOUN/1/obl",
        "came/0/root out/1/prep of/2/prep bed/3/pobj",
    ),
    "predicate": (
        "She/PRON/4/nsubj is/AUX/4/cop in/ADP/4/case Rome/PROPN/0/root",
        "She/4/nsubj is/4/cop in/0/root Rome/3/pobj",
    ),
    "conjuncts": (
        "in/ADP/2/case Rome/PROPN/0/root and/CCONJ/5/cc in/ADP/5/case Pisa/PROPN/2/conj",
        "in/0/root Rome/1/pobj and/5/cc in/1/conj Pisa/4/pobj",
    ),
    "possessive": ("dog/NOUN/3/nmod:poss 's/PART/1/case tail/NOUN/0/root", "dog/3/poss 's/1/possessive tail/0/root"),
    "passive": (
        "It/PRON/3/nsubj:pass was/AUX/3/aux:pass taken/VERB/0/root by/ADP/5/case me/PRON/3/obl:agent",
        "It/3/nsubjpass was/3/auxpass taken/0/root by/3/prep me/4/pobj",
    ),
    "others": (
        "He/PRON/2/nsubj took/VERB/0/root up/ADP/2/compound:prt chess/NOUN/5/compound club/NOUN/2/obj",
        "He/2/nsubj took/0/root up/2/prt chess/5/nn club/2/dobj",
    ),
    "no preposition": (
        "last/ADJ/2/amod year/NOUN/3/obl:unmarked came/VERB/0/root",
        "last/2/amod year/3/obl:unmarked came/0/root",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_stanford_relations(name):
    before, after = CASES[name]
    found = treebanks.stanford(sentence(before))
    shown = " ".join(
        f"{w}/{g + 1}/{r}" for w, g, r in zip(found.words, found.governors, found.relations, strict=True)
    )
    assert shown == after


def test_possessive_marks():
    found = sentence("dog/NOUN/3/nmod:poss 's/PART/1/case tail/NOUN/0/root")
    assert treebanks.possessive(found, 0) == 1 == treebanks.possessive(treebanks.stanford(found), 0)
    assert treebanks.possessive(found, 2) is None


def test_stanford_trees_are_trees():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(2, 12))
        order = rng.permutation(n)
        governors = [-1] * n
        for place, word in enumerate(order[1:], 1):
            governors[word] = int(order[rng.integers(0, place)])
        relations = tuple(
            "root" if g < 0 else str(rng.choice(["case", "obl", "conj", "nmod:poss", "obj"])) for g in governors
        )
        upos = tuple(str(u) for u in rng.choice(["ADP", "NOUN", "PART"], n))
        leaf = [i not in governors for i in range(n)]
        relations = tuple("obl" if r == "case" and not leaf[i] else r for i, r in enumerate(relations))
        before = treebanks.Sentence("s", ("w",) * n, upos=upos, governors=tuple(governors), relations=relations)
        after = treebanks.stanford(before)
        assert sum(g < 0 for g in after.governors) == 1
        for word in range(n):
            steps = 0
            while word >= 0:
                word, steps = after.governors[word], steps + 1
                assert steps <= n, "a cycle"


# ------------------------------------------------------------------ the book's own treebank


SPLITS = ("train", "dev", "test")


@pytest.fixture(scope="module")
def own() -> dict[str, tuple[treebanks.Document, ...]]:
    return {split: corpora.documents("encyclopedia", split) for split in SPLITS}


def test_the_treebank_is_in_order(own):
    documents = [d for split in SPLITS for d in own[split]]
    paragraphs = {f"{a.id}-1": a.paragraphs[0] for a in corpora.read("encyclopedia").articles}
    assert {d.id: d.text for d in documents} == paragraphs, "the words are those of the articles, to the letter"
    assert [len(own[split]) for split in SPLITS] == [60, 20, 20]
    assert [finding for d in documents for finding in check_trees(d)] == []


def test_the_treebank_is_large_and_varied_enough(own):
    documents = [d for split in SPLITS for d in own[split]]
    sentences = [s for d in documents for s in d.sentences]
    mentions = [m for d in documents for chain in d.chains.values() for m in chain]
    kinds = Counter(m.kind for m in mentions)
    relations = Counter(r for s in sentences for r in s.relations)
    assert len(sentences) >= 300 and sum(len(s.words) for s in sentences) >= 5_500
    assert len(mentions) >= 350 and sum(len(d.chains) for d in documents) >= 120
    assert min(kinds.values()) >= 100 and set(kinds) == {"pronoun", "proper", "nominal"}
    for relation in (
        "aux:pass",
        "nmod:poss",
        "compound:prt",
        "obl:agent",
        "acl:relcl",
        "ccomp",
        "xcomp",
        "iobj",
        "flat",
    ):
        assert relations[relation] >= 15, relation
    crossed = sum(bool(crossing(s)) for s in sentences)
    card = (places.book_data() / "encyclopedia" / "treebank.md").read_text("utf-8")
    counts = (
        (len(documents), "documents"),
        (len(sentences), "sentences"),
        (sum(len(s.words) for s in sentences), "words"),
    )
    found = (
        (len(mentions), "mentions"),
        (sum(len(d.chains) for d in documents), "chains"),
        (crossed, "are not projective"),
    )
    for count, unit in (*counts, *found, *((kinds[k], k) for k in kinds)):
        assert f"{count:,} {unit}" in card, (count, unit)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dog/NOUN/2/det ran/VERB/0/root", "det is not the relation of NOUN"),
        ("He/PRON/2/nsubj ran/VERB/0/root ./PUNCT/2/obj", "punctuation has the relation punct"),
        ("of/ADP/2/case it/PRON/0/root so/ADV/1/obj", "obj depends on case"),
        ("./PUNCT/2/punct ran/VERB/0/root he/PRON/1/nsubj", "punctuation governs it"),
        ("king/NOUN/0/root it/PRON/1/obj", "obj of a noun"),
        ("ran/VERB/0/root home/NOUN/1/nmod", "nmod of a verb"),
        ("Anna/PROPN/2/flat Smith/PROPN/0/root", "flat points backwards"),
        ("It/PRON/2/nsubj:pass took/VERB/0/root", "nsubj:pass without aux:pass"),
        ("It/PRON/3/nsubj was/AUX/3/aux:pass taken/VERB/0/root", "nsubj of a passive"),
        ("He/PRON/3/nsubj it/PRON/3/nsubj ran/VERB/0/root", "two subjects"),
        ("saw/VERB/0/root it/PRON/1/obj him/PRON/1/obj", "two objects"),
        ("ran/VERB/0/dep", "root and only the root"),
    ],
)
def test_the_validator_finds(text, says):
    found = sentence(text)
    found = replace(found, xpos=("VB",) * len(found.words))
    problems = check_trees(treebanks.Document("d", (found,)))
    assert any(says in p for p in problems) and len(problems) <= 2, problems


def test_the_validator_finds_bad_mentions_and_crossing_arcs():
    base = replace(sentence("He/PRON/2/nsubj saw/VERB/0/root old/ADJ/4/amod dogs/NOUN/2/obj"), xpos=("X",) * 4)
    mention = treebanks.Mention(0, 0, 1, "1", 0, "pronoun")
    two_heads = treebanks.Mention(0, 0, 3, "1", 0, "nominal")
    assert (
        "'He saw old' has not one head word" in check_trees(treebanks.Document("d", (base,), (mention, two_heads)))[0]
    )
    assert "chain 1 has one mention" in check_trees(treebanks.Document("d", (base,), (mention,)))[0]
    assert crossing(base) == ()
    crossed = replace(base, governors=(2, -1, 1, 1), relations=("dep", "root", "dep", "dep"))
    assert crossing(crossed) == (0, 3)


# ------------------------------------------------------------------ real corpora

GUM = {"train": (177, 10_224, 177_410, 49_649), "dev": (30, 1_575, 28_119, 7_897), "test": (30, 1_464, 28_397, 7_927)}
ONTOGUM = {"train": (177, 177_410, 23_320, 5_311), "dev": (30, 28_119, 3_818, 857), "test": (30, 28_397, 3_581, 858)}


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_gum_and_ontogum_have_their_counts(real_data: Path, split):
    trees = treebanks.read(real_data / "gum" / f"en_gum-ud-{split}.conllu")
    sentences = [s for d in trees for s in d.sentences]
    assert GUM[split] == (
        len(trees),
        len(sentences),
        sum(len(s.words) for s in sentences),
        sum(len(d.mentions) for d in trees),
    )
    for by_id in ({d.id: d for d in trees}, None):
        flat = treebanks.read_conll(real_data / "gum_coref" / split, by_id)
        words = sum(len(s.words) for d in flat for s in d.sentences)
        chains = sum(len({m.chain for m in d.mentions}) for d in flat)
        assert ONTOGUM[split] == (len(flat), words, sum(len(d.mentions) for d in flat), chains)


def test_the_head_rule_without_trees_mostly_agrees_with_the_trees(real_data: Path):
    """The stated rule, measured: on OntoGUM's test mentions it finds the tree's head word nine times in ten."""
    trees = {d.id: d for d in treebanks.read(real_data / "gum" / "en_gum-ud-test.conllu")}
    same = total = 0
    for document in treebanks.read_conll(real_data / "gum_coref" / "test", trees):
        for m in document.mentions:
            bare = treebanks.Sentence("s", document.sentences[m.sentence].words)
            same += treebanks.head_word(bare, m.start, m.end) == m.head
            total += 1
    assert same / total > 0.9


def test_text_agrees_with_forms_and_spaces(real_data: Path):
    text = (real_data / "gum" / "en_gum-ud-test.conllu").read_text("utf-8")
    written = [line.removeprefix("# text = ") for line in text.split("\n") if line.startswith("# text = ")]
    found = [s.text for d in treebanks.read(real_data / "gum" / "en_gum-ud-test.conllu") for s in d.sentences]
    assert np.mean([a == b for a, b in zip(written, found, strict=True)]) > 0.99
