"""Readers: what they read, and what they say when they cannot."""

import csv
import gzip
import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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


def test_the_encyclopedia_is_in_order():
    corpus = corpora.read("encyclopedia")
    assert check_encyclopedia(corpus) == []
    assert len(corpus.articles) >= 40
    assert len({a.topic for a in corpus.articles}) >= 20
    assert len({a.id for a in corpus.articles}) == len({a.title for a in corpus.articles}) == len(corpus.articles)


def test_the_card_counts_what_is_there():
    corpus = corpora.read("encyclopedia")
    words = sum(len(p.split()) for a in corpus.articles for p in a.paragraphs)
    sentences = sum(len(corpora.sentences(p)) for a in corpus.articles for p in a.paragraphs)
    card = (places.book_data() / "encyclopedia" / "README.md").read_text("utf-8")
    for count, unit in (
        (len(corpus.articles), "articles"),
        (3 * len(corpus.articles), "paragraphs"),
        (sentences, "sentences"),
        (words, "words"),
        (len({a.topic for a in corpus.articles}), "subject areas"),
    ):
        assert f"{count:,} {unit}" in card
    assert corpus.sha256 in card


BOOK = places.book_data() / "encyclopedia"


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


def test_wrong_encodings(tmp_path):
    file = tmp_path / "latin.txt"
    file.write_bytes("fine\nna\xefve".encode("latin-1"))
    with pytest.raises(corpora.CorpusError, match=r"line 2: It is not UTF-8.*Latin-1.*iconv"):
        corpora.read(str(file))


def test_missing_corpora(monkeypatch, tmp_path):
    monkeypatch.delenv("BOOK_DATA", raising=False)
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "cache"))
    with pytest.raises(corpora.CorpusError, match=r"fetch wikitext.*BOOK_DATA"):
        corpora.read("wikitext")
    with pytest.raises(corpora.CorpusError, match="no such file"):
        corpora.read("nowhere.txt")
    with pytest.raises(corpora.CorpusError, match="It is a folder"):
        corpora.read(str(tmp_path))


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
    with pytest.raises(
        corpora.CorpusError, match=r"(line 2: Pair .*the label is 'mine'|line 1: None of its columns).*label"
    ):
        corpora.pairs(str(file), task="nli")
    with pytest.raises(corpora.CorpusError, match="task= one of mrpc"):
        corpora.pairs(str(file))


def test_pairs_in_other_wrappings(tmp_path):
    for name, text in (("s1", "A man .\nA dog .\n"), ("s2", "He .\nIt .\n"), ("labels", "neutral\nentailment\n")):
        (tmp_path / f"{name}.dev.gz").write_bytes(gzip.compress(text.encode()))
    first, second = corpora.pairs(f"{tmp_path}/s1.dev.gz", task="snli")
    assert (first.first, first.second, first.label) == ("A man .", "He .", "neutral")
    assert (second.first, second.second, second.label) == ("A dog .", "It .", "entailment")
    (tmp_path / "labels.dev.gz").write_bytes(gzip.compress(b"neutral\n"))
    with pytest.raises(corpora.CorpusError, match="have 2, 2, 1 lines"):
        corpora.pairs(f"{tmp_path}/s1.dev.gz", task="snli")
    file = tmp_path / "mnli.csv"
    file.write_bytes(ASKED)
    (pair,) = corpora.pairs(str(file), task="mnli")
    assert (pair.first, pair.second, pair.label) == ("He ran.", "He moved.", "entailment")
    file.write_text("Question,Answer,Origin\nWhat?,entailment,mnli\n")
    with pytest.raises(corpora.CorpusError, match=r"line 2: .*no two quoted sentences"):
        corpora.pairs(str(file), task="mnli")


def test_inspec(tmp_path):
    file = tmp_path / "x.zip"
    file.write_bytes(zipped(ABSTRACT))
    nine, ten = corpora.keyphrases(str(file))
    assert nine == corpora.KeyedText("9", "Nine", "Text.", ("nine",))
    assert ten == corpora.KeyedText("10", "Ten titles", "The text goes on.", ("the text", "missing phrase"))
    assert ten.verbatim() == ("the text",)
    for members, says in (
        ({"9.abstr": b"T\nx"}, "x.zip/9.abstr: Its keyphrases are missing"),
        ({"9.abstr": b"caf\xe9", "9.uncontr": b"x"}, "x.zip/9.abstr, line 1: It is not UTF-8"),
        ({"readme": b"x"}, "Nothing is in it"),
    ):
        file.write_bytes(zipped(members))
        with pytest.raises(corpora.CorpusError, match=says):
            corpora.keyphrases(str(file))


def test_keyphrases_need_their_articles(tmp_path):
    written(tmp_path, ARTICLE)
    file = written(tmp_path, {"id": "a", "keyphrases": ["one"]}, name="keyphrases.jsonl")
    assert corpora.keyphrases(str(file)) == (corpora.KeyedText("a", "A", "One.\nTwo.\nThree.", ("one",)),)
    written(tmp_path, {"id": "b", "keyphrases": ["one"]}, name="keyphrases.jsonl")
    with pytest.raises(corpora.CorpusError, match=r"line 1: Text 'b': it is not in articles.jsonl"):
        corpora.keyphrases(str(file))


def test_word_vectors():
    glove = corpora.vectors()
    assert glove.matrix.shape == (400_000, 50) and len(glove.index) == 400_000
    rows = glove(["The", "the", "notawordatall"])
    assert (rows[0] == rows[1]).all() and rows[0].any() and not rows[2].any()


TEXT = " = Title = \n \n This line of text has more than ten words in it , I believe . \n = = Part = = \n"
SEEDS = {
    "articles.jsonl": (json.dumps(ARTICLE), corpora.read),
    "text.txt": (TEXT, corpora.read),
    "text.csv.gz": (gzip.compress(f'"{TEXT}"\n'.encode()), corpora.read),
    "trees.conllu": (CONLLU, treebanks.read),
    "ontonotes_conll": (ONTONOTES, treebanks.read),
    "ontogum.conll": (ONTOGUM, treebanks.read),
    "squad.json": (SQUAD, corpora.questions),
    "keyphrases.jsonl": (json.dumps({"id": "a", "keyphrases": ["one"]}), corpora.keyphrases),
    "x.zip": (zipped(ABSTRACT), corpora.keyphrases),
    "s1.x.gz": (gzip.compress(b"A .\nB .\n"), partial(corpora.pairs, task="snli")),
    "mnli.csv": (ASKED, partial(corpora.pairs, task="mnli")),
    **{f"{task}.tsv": (text, partial(corpora.pairs, task=task)) for task, text in PAIRS.items()},
}
GOOD = json.dumps(ARTICLE)
BAD = [  # a format, what is changed in a valid file, and what is said
    ("articles.jsonl", '"id": "a", ', "", "line 1: Article '': 'id' is missing"),
    ("articles.jsonl", "]}", "]", "line 1: It is not JSON"),
    ("articles.jsonl", '["One.", "Two.", "Three."]', '"One."', "Article 'a': the paragraphs are no list of texts"),
    ("articles.jsonl", GOOD, "", "Nothing is in it"),
    ("articles.jsonl", GOOD, "[1]", "line 1: '[1]' is not an object"),
    (
        "squad.json",
        '"answer_start": 4',
        '"answer_start": 5',
        "line 1: Question 'q1': the answer 'dog' does not stand at character 5: it stands at 4",
    ),
    ("squad.json", '"dog"', '"cat"', "the answer 'cat' does not stand at character 4: it is not in its context"),
    ("squad.json", '"answer_start": 4', '"answer_start": "4"', "Question 'q1': 'answer_start' is '4'"),
    ("squad.json", '"text"', '"texts"', "Question 'q1': 'text' is missing"),
    ("squad.json", '"context"', '"contexts"', "Question 'q1': 'context' is missing"),
    ("squad.json", SQUAD, '{"data": []}', "Nothing is in it"),
    ("squad.json", SQUAD, '{"data": [{}]}', "Article 1: 'paragraphs' is missing"),
    ("rte.tsv", "A dog.\t", "A dog.\textra\t", "line 2: The row that begins with '0' has 5 cells, the header 4"),
    (
        "rte.tsv",
        "sentence2",
        "other",
        "line 1: None of its columns 'index', 'sentence1', 'other', 'label' is called one of #2 String",
    ),
    ("rte.tsv", "A dog.", " ", "line 2: Pair '0': the second sentence is empty"),
    ("rte.tsv", "\tnot_entailment", "\tmaybe", "line 2: Pair '0': the label is 'maybe'"),
    ("mrpc.tsv", "1\t7", "2\t7", "line 2: Pair '7': the label is '2'"),
    ("snli.tsv", "neutral\t(A)\tA man.\tA cat.\t3416.jpg#1\n", "", "labelled pairs"),
    ("trees.conllu", "1\tAnn\tann", "1\tAnn ann", "has 9 columns in place of ten"),
    (
        "trees.conllu",
        "1\tAnn\tann",
        "a\tAnn\tann",
        "line 4: Sentence 'd-1': the row 'a Ann ann PROPN NNP _ 2 nsubj _ Entity=(' has the number 'a' where 1 is next",
    ),
    ("trees.conllu", "2\tsold", "3\tsold", "has the number '3' where 2 is next"),
    (
        "trees.conllu",
        "\t2\tnsubj",
        "\t7\tnsubj",
        "line 4: Sentence 'd-1': the head '7' is none of the 5 words, nor 0",
    ),
    ("trees.conllu", "\t2\tnsubj", "\t_\tnsubj", "word 1 has no head ('_'): 1 of 5 words have none"),
    ("trees.conllu", "\t2\tnsubj", "\t2\t_", "a word with the head 2 has no relation"),
    ("trees.conllu", "\t2\tnsubj", "\t0\tnsubj", "the heads 0, 0, 4, 2, 2 are no tree: 2 words have the head 0"),
    ("trees.conllu", "\t0\troot", "\t1\troot", "the heads 2, 1, 4, 2, 2 are no tree: 0 words have the head 0"),
    (
        "trees.conllu",
        "\t4\tnmod",
        "\t3\tnmod",
        "the heads 2, 0, 3, 2, 2 are no tree: from word 3 they lead in a circle",
    ),
    (
        "trees.conllu",
        "2\tsold",
        "2-9\tsold" + 8 * "\t_" + "\n2\tsold",
        "the token 2-9 has not that many words: the last is 5",
    ),
    ("trees.conllu", "(1-person-1)", "(1-person-1", "line 4: Sentence 'd-1': '1' is opened but not closed"),
    ("trees.conllu", "(1-person-1)", "1)", "'1' is closed but was not opened"),
    ("trees.conllu", "(1-person-1)", "(1-person-1))", "is not made of brackets"),
    ("trees.conllu", "(1-person-1)", "(1[1/2]-person-1)", "the mention '1[1/2]' has gaps"),
    (
        "trees.conllu",
        "eid-etype-head",
        "what-else",
        "global.Entity names 'what-else', but no field 'eid' or 'GRP'. So is 1 more.",
    ),
    (
        "ontonotes_conll",
        "d 0 1 sold VBD * - - - - * -",
        "d 0 1 sold",
        "line 3: Sentence 'd part 0-1': the row has 4 columns in place of five or more",
    ),
    (
        "ontonotes_conll",
        "d 0 1 sold",
        "d 0 2 sold",
        "line 3: Sentence 'd part 0-1': the word 'sold' has the number 2 where 1 is next",
    ),
    (
        "ontonotes_conll",
        "d 0 0 She PRP * - - - - * (1)\n",
        "",
        "line 8: Sentence 'd part 0-2': the word 'missed' has the number 1 where 0 is next",
    ),
    (
        "ontogum.conll",
        "3\tdog\t",
        "3\tdog",
        "line 5: Document 'ontogum': the row '3 dog2)' is not 3, word, coreference",
    ),
    ("ontonotes_conll", "#end document\n", "", "the last document has no end"),
    (
        "ontonotes_conll",
        "#begin document (d); part 000\n",
        "",
        "line 1: 'd 0 0 Ann NNP * - - - - * (1)' stands outside of a document. So are",
    ),
    ("ontonotes_conll", "#end document\n", "#end document\n#end document\n", "stands outside of a document"),
]


@pytest.mark.parametrize(("name", "old", "new", "says"), BAD)
def test_a_wrong_file_is_named_with_its_line(tmp_path, name, old, new, says):
    content, read = SEEDS[name]
    assert old in content
    (tmp_path / name).write_bytes(content.replace(old, new, 1).encode())
    with pytest.raises(corpora.CorpusError) as caught:
        read(str(tmp_path / name))
    assert (
        says in str(caught.value) and f"{tmp_path / name}" in str(caught.value) and "Expected:" in str(caught.value)
    )


SPECIAL = b'\t\n\r\x00\xff\xef\xbb\xbf()[]{}|_-"\\,;0123456789 #=.\xe2\x80\xa8\x85'


@st.composite
def mutations(draw, content: bytes) -> bytes:
    """One to four small accidents: bytes lost, doubled, moved, overwritten, put in; the end cut off."""
    for _ in range(draw(st.integers(1, 4))):
        a = draw(st.integers(0, len(content)))
        b = min(len(content), a + draw(st.integers(0, 40)))
        piece = draw(st.one_of(st.sampled_from([bytes([c]) for c in SPECIAL]), st.binary(max_size=6)))
        kind = draw(st.sampled_from(["lose", "double", "put in", "overwrite", "cut", "move"]))
        content = {
            "lose": content[:a] + content[b:],
            "double": content[:b] + content[a:],
            "put in": content[:a] + piece + content[a:],
            "overwrite": content[:a] + piece + content[a + len(piece) :],
            "cut": content[:a],
            "move": content[:a] + content[b:] + content[a:b],
        }[kind]
    return content


@pytest.mark.slow
@pytest.mark.parametrize("name", SEEDS)
def test_damaged_files_end_in_a_result_or_a_clear_error(tmp_path_factory, name):
    """160 mutations of each of 16 formats: over 2,500 files."""
    content, read = SEEDS[name]
    content = content.encode() if isinstance(content, str) else content
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "articles.jsonl").write_text(json.dumps(ARTICLE))
    (folder / "s2.x.gz").write_bytes(gzip.compress(b"C .\nD .\n"))
    (folder / "labels.x.gz").write_bytes(gzip.compress(b"neutral\nneutral\n"))
    (folder / name).write_bytes(content)
    assert read(str(folder / name)), "the undamaged file is read"

    @settings(max_examples=160, deadline=None)
    @given(damaged=mutations(content))
    def check(damaged):
        (folder / name).write_bytes(damaged)
        try:
            assert read(str(folder / name))
        except corpora.CorpusError as error:
            assert str(folder) in str(error) and "Expected:" in str(error)

    check()


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
