"""Readers: what they read, and what they say when they cannot."""

import gzip
import json
from functools import partial
from pathlib import Path

import pytest
from samples import ABSTRACT, ARTICLE, ASKED, CONLLU, ONTOGUM, ONTONOTES, PAIRS, READERS, SQUAD, zipped

from helpers import corpora
from helpers.corpora import treebanks


def written(folder: Path, *lines: object, name: str = "articles.jsonl") -> Path:
    file = folder / name
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return file


def test_segments_are_neighbouring_paragraphs_of_one_article(tmp_path):
    corpus = corpora.read(str(written(tmp_path, ARTICLE, ARTICLE | {"id": "b", "paragraphs": ["Four.", "Five."]})))
    segments = corpora.segments(corpus)
    assert [(*s.texts, s.document) for s in segments] == [
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


@pytest.mark.parametrize("task", PAIRS)
def test_pairs(tmp_path, task):
    file = tmp_path / "pairs.tsv"
    file.write_bytes(PAIRS[task].encode())
    assert corpora.pairs(str(file), task=task) == (corpora.Pair(*READERS["pairs"][task][1]),)


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


NLI = "sentence1\tsentence2\tlabel\nA.\tB.\tneutral\n"
VALID = {
    "articles.jsonl": (json.dumps(ARTICLE), corpora.read),
    "squad.json": (SQUAD, corpora.questions),
    "pairs.tsv": (NLI, partial(corpora.pairs, task="nli")),
    "trees.conllu": (CONLLU, treebanks.read),
    "d_conll": (ONTONOTES, treebanks.read),
    "d.conll": (ONTOGUM, treebanks.read),
}


@pytest.mark.parametrize("name", ["trees.conllu", "TREES.CONLLU", "d.conll", "d_gold_conll"])
def test_a_treebank_is_no_running_text(tmp_path, name):
    (tmp_path / name).write_text(CONLLU)
    with pytest.raises(corpora.CorpusError, match="a treebank goes to the parameter treebank"):
        corpora.read(str(tmp_path / name))


@pytest.mark.parametrize(("name", "old", "new", "line"), READERS["wrong"])
def test_a_wrong_file_is_named_with_its_line(tmp_path, name, old, new, line):
    content, reader = VALID[name]
    (tmp_path / name).write_text(content)
    assert reader(str(tmp_path / name)) and old in content
    (tmp_path / name).write_text(content.replace(old, new, 1))
    with pytest.raises(corpora.CorpusError) as caught:
        reader(str(tmp_path / name))
    assert str(caught.value).startswith(f"{tmp_path / name}{f', line {line}' if line else ''}: ")


@pytest.mark.parametrize(("name", "kind", "split", "counted"), READERS["real"])
def test_real_corpora_have_their_counts(real_data, name, kind, split, counted):
    assert corpora.count(name, kind, split) == counted
