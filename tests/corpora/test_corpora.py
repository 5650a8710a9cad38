"""Readers: what they read, and what they say when they cannot."""

import csv
import gzip
import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from samples import ABSTRACT, ARTICLE, ASKED, CONLLU, ONTOGUM, ONTONOTES, PAIRS, SQUAD, zipped
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score
from validators import check_encyclopedia

from helpers import corpora, places
from helpers.corpora import treebanks


def written(folder: Path, *lines: object, name: str = "articles.jsonl") -> Path:
    file = folder / name
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return file


BOOK = places.book_data() / "encyclopedia"


def test_the_encyclopedia_is_in_order():
    corpus = corpora.read("encyclopedia")
    assert check_encyclopedia(corpus) == []
    assert len(corpus.articles) >= 40
    assert len({a.topic for a in corpus.articles}) >= 20
    assert len({a.id for a in corpus.articles}) == len({a.title for a in corpus.articles}) == len(corpus.articles)
    words = sum(len(p.split()) for a in corpus.articles for p in a.paragraphs)
    sentences = sum(len(corpora.sentences(p)) for a in corpus.articles for p in a.paragraphs)
    counts = {"articles": len(corpus.articles), "paragraphs": 3 * len(corpus.articles), "sentences": sentences}
    counts |= {"words": words, "subject areas": len({a.topic for a in corpus.articles})}
    card = (BOOK / "README.md").read_text("utf-8")
    assert all(f"{count:,} {unit}" in card for unit, count in counts.items()) and corpus.sha256 in card


def test_the_questions_are_in_order():
    articles = {a.title: a for a in corpora.read("encyclopedia").articles}
    found = corpora.questions("encyclopedia")
    assert len(found) == len({q.id for q in found}) == len({q.question for q in found}) >= 300
    assert {q.document for q in found} == set(articles)
    for question in found:
        article, context = articles[question.document], question.context
        number = article.paragraphs.index(context) + 1
        assert question.id.startswith(f"{article.id}-{number}-") and question.question.endswith("?")
        (answer,) = question.answers
        end = answer.start + len(answer.text)
        assert answer.text[-1] not in ".,;:?!", question.id
        assert not context[answer.start - 1 : answer.start].isalnum() and not context[end : end + 1].isalnum(), (
            question.id
        )
    assert sum(q.answers[0].start < corpora.sentences(q.context)[0][1] for q in found) < 0.3 * len(found)
    assert f"{len(found)} questions" in (BOOK / "questions.md").read_text("utf-8")


def cue_scores(pairs, labels, groups, score="accuracy", weight=None):
    """What the second sentence alone, and word overlap, tell of the label, in cross-validation by article."""
    words = CountVectorizer(ngram_range=(1, 2), min_df=2).fit_transform([second for _, second in pairs])
    sets = [[set(text.lower().rstrip(".?").split()) for text in pair] for pair in pairs]
    overlap = np.array([[len(a & b) / len(a | b), len(a & b) / len(b), len(a), len(b)] for a, b in sets])
    for features in (words, (overlap - overlap.mean(0)) / overlap.std(0)):
        model = LogisticRegression(C=0.3, max_iter=1000, class_weight=weight)
        yield cross_val_score(model, features, labels, groups=groups, cv=GroupKFold(10), scoring=score).mean()


def test_the_entailment_pairs_are_in_order():
    rows = pd.read_csv(BOOK / "entailment.tsv", sep="\t", quoting=csv.QUOTE_NONE)
    articles = {a.id: a for a in corpora.read("encyclopedia").articles}
    groups = rows["index"].str.rpartition("-")[0]
    assert len(rows) == rows["index"].nunique() == rows.sentence2.nunique() == 4 * len(articles)
    for article, sentence in zip(groups, rows.sentence1, strict=True):
        assert any(sentence in paragraph for paragraph in articles[article].paragraphs), sentence
    assert ((rows.label == "entailment") == (rows.label3 == "entailment")).all()
    assert rows.label3.value_counts().to_dict() == {"entailment": 200, "neutral": 100, "contradiction": 100}
    lengths = rows.sentence2.str.split().str.len()
    assert lengths.between(5, 22).all() and np.ptp(lengths.groupby(rows.label3).mean()) < 1
    pairs = list(zip(rows.sentence1, rows.sentence2, strict=True))
    assert max(cue_scores(pairs, rows.label == "entailment", groups)) < 0.58, "a cheap cue gives the label away"


def test_the_paraphrase_pairs_are_in_order():
    articles = {a.id: " ".join(a.paragraphs) for a in corpora.read("encyclopedia").articles}
    found = corpora.pairs("encyclopedia-paraphrase")
    groups = [p.id.rpartition("-")[0] for p in found]
    pairs = [(p.first, p.second) for p in found]
    texts = [text for pair in pairs for text in pair]
    assert set(groups) == set(articles) and len(texts) == len(set(texts)) and len(found) >= 300
    assert all(10 <= len(t.split()) <= 32 and t.isascii() and t == " ".join(t.split()) for t in texts)
    assert not any(second in articles[article] for (_, second), article in zip(pairs, groups, strict=True))
    labels = np.array([p.label == "paraphrase" for p in found])
    assert max(cue_scores(pairs, labels, groups)) < 0.69, "a cheap cue gives the label away"
    assert max(cue_scores(pairs, labels, groups, "balanced_accuracy", "balanced")) < 0.62
    card = (BOOK / "paraphrase.md").read_text("utf-8")
    assert f"{len(found)} pairs" in card and f"{labels.sum()} are paraphrases, {(~labels).sum()} are not" in card


def test_the_keyphrases_are_in_order():
    articles = corpora.read("encyclopedia").articles
    found = corpora.keyphrases("encyclopedia")
    assert [k.id for k in found] == [a.id for a in articles]
    phrases = [[p.lower() for p in k.keyphrases] for k in found]
    assert all(5 <= len(ps) == len(set(ps)) <= 10 and all(p == " ".join(p.split()) for p in ps) for ps in phrases)
    verbatim = sum(p in k.text.lower().replace("\n", " ") for k, ps in zip(found, phrases, strict=True) for p in ps)
    total = sum(map(len, phrases))
    assert verbatim / total >= 0.85
    card = (BOOK / "keyphrases.md").read_text("utf-8")
    assert f"{total} keyphrases" in card and f"{verbatim} of them" in card
    assert f"({sum(len(k.verbatim()) for k in found)} in title or paragraphs)" in card


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
