"""Readers: what they read, and what they say when they cannot."""

import gzip
import json
from functools import partial
from pathlib import Path

import pytest
from samples import ABSTRACT, ARTICLE, ASKED, CONLLU, ONTOGUM, ONTONOTES, PAIRS, SQUAD, zipped

from helpers import corpora
from helpers.corpora import treebanks


def written(folder: Path, *lines: object, name: str = "articles.jsonl") -> Path:
    file = folder / name
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return file


def test_segments_are_neighbouring_paragraphs_of_one_article(tmp_path):
    corpus = corpora.read(str(written(tmp_path, ARTICLE, ARTICLE | {"id": "b", "paragraphs": ["Four.", "Five."]})))
    found = corpora.segments(corpus)
    assert [(*s.texts, s.document) for s in found] == [
        ("One.", "Two.", 0),
        ("Two.", "Three.", 0),
        ("Four.", "Five.", 1),
    ]
    assert len(corpora.segments(corpus, limit=2)) == 2


def test_plain_text(tmp_path):
    text = (
        " = First article = \n \n The 1 @,@ 234 well @-@ known dogs ' owners didn 't pay 3 @.@ 5 dollars , they said ( loudly ) .\n"
        ' = = Section = = \n short caption \n It was " a very good idea " that nobody had ever had before that day .\n'
        " = Second = \n This is the second article and it has more than ten words .\n"
    )
    for ends in ("\n", "\r\n"):
        file = tmp_path / "text.txt"
        file.write_bytes(text.replace("\n", ends).encode())
        corpus = corpora.read(str(file))
        assert [a.title for a in corpus.articles] == ["First article", "Second"]
        assert corpus.articles[0].paragraphs == (
            "The 1,234 well-known dogs' owners didn't pay 3.5 dollars, they said (loudly).",
            'It was "a very good idea" that nobody had ever had before that day.',
        )


READ = {
    "mrpc": corpora.Pair("7", 'He said "no.', 'He "declined".', "paraphrase"),
    "rte": corpora.Pair("0", "A dog ran.", "A dog.", "not_entailment"),
    "nli": corpora.Pair("0", "A dog ran.", "A cat ran.", "neutral"),
    "mnli": corpora.Pair("5", "A.", "B.", "contradiction"),
    "snli": corpora.Pair("3416.jpg#1", "A man.", "A cat.", "neutral"),
}


@pytest.mark.parametrize("task", PAIRS)
def test_pairs(tmp_path, task):
    file = tmp_path / "pairs.tsv"
    file.write_bytes(PAIRS[task].encode())
    assert corpora.pairs(str(file), task=task) == (READ[task],)


@pytest.mark.parametrize("label", ["\tlabel", "\tQuality", ""])
def test_pairs_of_ones_own_need_no_task(tmp_path, label):
    """Chapters 08 and 09 read two texts; what their label means is nobody's question there."""
    file = tmp_path / "pairs.tsv"
    file.write_text(f"sentence1\tsentence2{label}\nA.\tB.{chr(9) + 'mine' if label else ''}\n")
    assert corpora.pairs(str(file), labels=False) == (corpora.Pair("2", "A.", "B.", "mine" if label else ""),)
    with pytest.raises(corpora.CorpusError, match="line 2: the label is"):
        corpora.pairs(str(file), task="nli")


def test_pairs_in_other_wrappings(tmp_path):
    for name, text in (("s1", "A man .\nA dog .\n"), ("s2", "He .\nIt .\n"), ("labels", "neutral\nentailment\n")):
        (tmp_path / f"{name}.dev.gz").write_bytes(gzip.compress(text.encode()))
    first, second = corpora.pairs(f"{tmp_path}/s1.dev.gz", task="snli")
    assert (first.first, first.second, first.label) == ("A man .", "He .", "neutral")
    assert (second.first, second.second, second.label) == ("A dog .", "It .", "entailment")
    file = tmp_path / "mnli.csv"
    file.write_bytes(ASKED)
    (pair,) = corpora.pairs(str(file), task="mnli")
    assert (pair.first, pair.second, pair.label) == ("He ran.", "He moved.", "entailment")


def test_inspec(tmp_path):
    file = tmp_path / "x.zip"
    file.write_bytes(zipped(ABSTRACT))
    nine, ten = corpora.keyphrases(str(file))
    assert nine == corpora.KeyedText("9", "Nine", "Text.", ("nine",))
    assert ten == corpora.KeyedText("10", "Ten titles", "The text goes on.", ("the text", "missing phrase"))
    assert ten.verbatim() == ("the text",)
    file.write_bytes(zipped({"9.abstr": b"T\nx"}))
    with pytest.raises(corpora.CorpusError, match=r"x.zip.*9\.uncontr"):
        corpora.keyphrases(str(file))


def test_keyphrases_need_their_articles(tmp_path):
    written(tmp_path, ARTICLE)
    file = written(tmp_path, {"id": "a", "keyphrases": ["one"]}, name="keyphrases.jsonl")
    assert corpora.keyphrases(str(file)) == (corpora.KeyedText("a", "A", "One.\nTwo.\nThree.", ("one",)),)
    written(tmp_path, {"id": "b", "keyphrases": ["one"]}, name="keyphrases.jsonl")
    with pytest.raises(corpora.CorpusError, match="line 1: KeyError: 'b'"):
        corpora.keyphrases(str(file))


def test_word_vectors():
    glove = corpora.vectors()
    assert glove.matrix.shape == (400_000, 50) and len(glove.index) == 400_000
    rows = glove(["The", "the", "notawordatall"])
    assert (rows[0] == rows[1]).all() and rows[0].any() and not rows[2].any()


NLI = "sentence1\tsentence2\tlabel\nA.\tB.\tneutral\n"
WRONG = [  # a valid file, its reader, what is changed in it, and the line that is named
    ("articles.jsonl", json.dumps(ARTICLE), corpora.read, '"id": "a", ', "", 1),
    ("articles.jsonl", json.dumps(ARTICLE), corpora.read, '["One.", "Two.", "Three."]', '"One."', 1),
    ("squad.json", SQUAD, corpora.questions, '"answer_start": 4', '"answer_start": 5', None),
    ("squad.json", SQUAD, corpora.questions, '"dog"', '"cat"', None),
    ("squad.json", SQUAD, corpora.questions, '"answer_start": 4', '"answer_start": -8', None),
    ("squad.json", SQUAD, corpora.questions, '"paragraphs"', '"paragraph"', None),
    ("pairs.tsv", NLI, partial(corpora.pairs, task="nli"), "B.\t", "B.\textra\t", 2),
    ("pairs.tsv", NLI, partial(corpora.pairs, task="nli"), "sentence2", "other", 2),
    ("pairs.tsv", NLI, partial(corpora.pairs, task="nli"), "B.", " ", 2),
    ("pairs.tsv", NLI, partial(corpora.pairs, task="nli"), "neutral", "maybe", 2),
    ("trees.conllu", CONLLU, treebanks.read, "1\tAnn\tann", "1\tAnn ann", 4),
    ("trees.conllu", CONLLU, treebanks.read, "2\tsold", "3\tsold", 4),
    ("trees.conllu", CONLLU, treebanks.read, "\t2\tnsubj", "\t7\tnsubj", 4),
    ("trees.conllu", CONLLU, treebanks.read, "\t2\tnsubj", "\t_\tnsubj", 4),
    ("trees.conllu", CONLLU, treebanks.read, "\t2\tnsubj", "\t2\t_", 4),
    ("trees.conllu", CONLLU, treebanks.read, "\t2\tnsubj", "\t0\tnsubj", 4),
    ("trees.conllu", CONLLU, treebanks.read, "\t4\tnmod", "\t3\tnmod", 4),
    ("trees.conllu", CONLLU, treebanks.read, "(1-person-1)", "(1-person-1", 4),
    ("trees.conllu", CONLLU, treebanks.read, "(1-person-1)", "1)", 4),
    ("trees.conllu", CONLLU, treebanks.read, "(1-person-1)", "(1[1/2]-person-1)", 4),
    ("d_conll", ONTONOTES, treebanks.read, "d 0 1 sold VBD * - - - - * -", "d 0 1 sold", 13),
    ("d_conll", ONTONOTES, treebanks.read, "d 0 1 sold", "d 0 2 sold", 13),
    ("d_conll", ONTONOTES, treebanks.read, "#end document\n", "", None),
    ("d_conll", ONTONOTES, treebanks.read, "#begin document (d); part 000\n", "", 1),
    ("d.conll", ONTOGUM, treebanks.read, "3\tdog\t", "3\tdog", 11),
]


@pytest.mark.parametrize("name", ["trees.conllu", "TREES.CONLLU", "d.conll", "d_gold_conll"])
def test_a_treebank_is_no_running_text(tmp_path, name):
    (tmp_path / name).write_text(CONLLU)
    with pytest.raises(corpora.CorpusError, match="a treebank goes to the parameter treebank"):
        corpora.read(str(tmp_path / name))


@pytest.mark.parametrize(("name", "content", "reader", "old", "new", "line"), WRONG)
def test_a_wrong_file_is_named_with_its_line(tmp_path, name, content, reader, old, new, line):
    (tmp_path / name).write_text(content)
    assert reader(str(tmp_path / name)) and old in content
    (tmp_path / name).write_text(content.replace(old, new, 1))
    with pytest.raises(corpora.CorpusError) as caught:
        reader(str(tmp_path / name))
    assert str(caught.value).startswith(f"{tmp_path / name}{f', line {line}' if line else ''}: ")


REAL = {
    ("wikitext", "text", "test"): "62 articles, 200,302 words",
    ("gum", "treebank", "test"): "30 documents, 1,464 sentences, 28,397 words, 1,094 chains",
    ("gum-ontonotes", "treebank", "test"): "30 documents, 1,464 sentences, 28,397 words, 857 chains",
    ("squadshifts-wiki", "questions", "train"): "7,938 questions",
    ("mrpc", "pairs", "dev"): "129 not_paraphrase, 279 paraphrase",
    ("rte", "pairs", "dev"): "146 entailment, 131 not_entailment",
    ("mnli", "pairs", "dev"): "3,213 contradiction, 3,479 entailment, 3,123 neutral",
    ("mnli", "pairs", "train"): "3,394 contradiction, 3,239 entailment, 3,367 neutral",
    ("snli", "pairs", "test"): "3,237 contradiction, 3,368 entailment, 3,219 neutral",
    ("inspec", "keyphrases", "test"): "500 texts, 4,913 keyphrases",
}


@pytest.mark.parametrize(("name", "kind", "split"), REAL)
def test_real_corpora_have_their_counts(real_data, name, kind, split):
    assert corpora.count(name, kind, split) == REAL[name, kind, split]
