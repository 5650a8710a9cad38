"""Readers: what they read, and what they say when they cannot."""

import csv
import gzip
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score
from validators import check_encyclopedia

from helpers import corpora, places
from helpers.corpora import treebanks

ARTICLE = {"id": "a", "title": "A", "topic": "t", "paragraphs": ["One.", "Two.", "Three."]}


def written(folder: Path, *lines: object, name: str = "articles.jsonl") -> Path:
    file = folder / name
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return file


# ------------------------------------------------------------------ the book's own


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


def test_the_prose_has_the_variety_that_later_chapters_need():
    """Crude counts; the floor is far below what is there, and far above what a template would give."""
    text = " ".join(p for a in corpora.read("encyclopedia").articles for p in a.paragraphs).lower()
    words = len(text.split())
    for pattern, per_thousand in (
        (" his ", 3),
        (" her ", 3),
        (" it ", 6),
        (" she ", 3),
        (" who ", 3),
        (" which ", 2),
        ("'s ", 6),
        (" was ", 8),
        (", ", 40),
        (" that ", 8),
        (" because ", 0.4),
        (";", 1),
        (" up ", 1),
        (" by ", 4),
    ):
        assert 1000 * text.count(pattern) / words >= per_thousand, pattern


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"paragraphs": ["Too short."] * 3}, "words, not 55 to 80"),
        ({"paragraphs": ["One."]}, "1 paragraphs, not 3"),
        ({"id": "Not A Slug"}, "the id is not"),
        ({"paragraphs": ["An “odd” quotation."] * 3}, "beyond ASCII"),
        ({"paragraphs": ["No end"] * 3}, "does not end a sentence"),
        ({"paragraphs": ["Two  blanks."] * 3}, "stray white space"),
    ],
)
def test_the_validator_finds(change, finding):
    article = corpora.Article(**{**ARTICLE, **change} | {"paragraphs": tuple((ARTICLE | change)["paragraphs"])})
    corpus = corpora.Corpus("x", "0" * 64, "CC0", (article,))
    assert any(finding in problem for problem in check_encyclopedia(corpus))


def test_the_validator_finds_near_duplicates():
    first = "The queen bee lays more than a thousand eggs in a single day of summer."
    second = "In spring the queen bee lays more than a thousand eggs in a single day."
    other = "A worker tidies cells before she is allowed to fly out for nectar."
    articles = tuple(
        corpora.Article(i, i, "t", (s, other.replace("cells", i), s[::-1])) for i, s in (("a", first), ("b", second))
    )
    problems = check_encyclopedia(corpora.Corpus("x", "0", "CC0", articles))
    assert any("is close to" in p and "queen" in p for p in problems)


def test_the_questions_are_in_order():
    articles = {a.title: a for a in corpora.read("encyclopedia").articles}
    data = json.loads((places.book_data() / "encyclopedia" / "questions.json").read_text("utf-8"))["data"]
    ids, wordings, first_sentence, words = [], [], 0, set()
    for entry in data:
        article = articles[entry["title"]]
        for paragraph in entry["paragraphs"]:
            context = paragraph["context"]
            number = article.paragraphs.index(context) + 1
            for question in paragraph["qas"]:
                assert question["id"].startswith(f"{article.id}-{number}-") and question["question"].endswith("?")
                (answer,) = question["answers"]
                start, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
                assert context[start:end] == answer["text"] and answer["text"][-1] not in ".,;:?!", question["id"]
                assert not context[start - 1 : start].isalnum() and not context[end : end + 1].isalnum(), question[
                    "id"
                ]
                first_sentence += start < corpora.sentences(context)[0][1]
                words |= {w for w in question["question"].lower().replace("?", "").split() if w in QUESTION_WORDS}
                ids.append(question["id"])
                wordings.append(question["question"])
    assert len(ids) == len(set(ids)) == len(set(wordings)) >= 300
    assert len(data) == len(articles) and first_sentence < 0.3 * len(ids) and words == QUESTION_WORDS
    assert f"{len(ids)} questions" in (places.book_data() / "encyclopedia" / "questions.md").read_text("utf-8")


QUESTION_WORDS = {"who", "whom", "whose", "what", "which", "when", "where", "why", "how"}


def test_the_entailment_pairs_are_in_order():
    folder = places.book_data() / "encyclopedia"
    with (folder / "entailment.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    articles = {a.id: a for a in corpora.read("encyclopedia").articles}
    assert len(rows) == len({r["index"] for r in rows}) == len({r["sentence2"] for r in rows}) == 4 * len(articles)
    for row in rows:
        article = articles[row["index"].rpartition("-")[0]]
        assert any(row["sentence1"] in paragraph for paragraph in article.paragraphs), row["index"]
        assert 5 <= len(row["sentence2"].split()) <= 22 and row["sentence2"][-1] in '.?"'
        assert (row["label"] == "entailment") == (row["label3"] == "entailment")
        assert row["label"] in ("entailment", "not_entailment")
    by_class = {c: [r for r in rows if r["label3"] == c] for c in ("entailment", "neutral", "contradiction")}
    assert [len(found) for found in by_class.values()] == [200, 100, 100]
    lengths = [np.mean([len(r["sentence2"].split()) for r in found]) for found in by_class.values()]
    assert max(lengths) - min(lengths) < 1
    for score in cheap_baselines(rows):
        assert score < 0.58, "a cheap cue gives the label away"


def cheap_baselines(rows):
    """Accuracy of the hypothesis alone, and of word overlap, in cross-validation by article."""
    labels = np.array([r["label"] == "entailment" for r in rows])
    groups = [r["index"].rpartition("-")[0] for r in rows]
    words = CountVectorizer(ngram_range=(1, 2), min_df=2).fit_transform([r["sentence2"] for r in rows])
    sets = [[set(r[k].lower().rstrip(".?").split()) for k in ("sentence1", "sentence2")] for r in rows]
    overlap = np.array([[len(a & b) / len(b), len(a & b), len(b), len(a)] for a, b in sets])
    for features in (words, (overlap - overlap.mean(0)) / overlap.std(0)):
        model = LogisticRegression(C=0.3, max_iter=500)
        yield cross_val_score(model, features, labels, groups=groups, cv=GroupKFold(10)).mean()


def test_the_paraphrase_pairs_are_in_order():
    folder = places.book_data() / "encyclopedia"
    articles = {a.id: " ".join(a.paragraphs) for a in corpora.read("encyclopedia").articles}
    found = corpora.pairs("encyclopedia-paraphrase")
    groups = [p.id.rpartition("-")[0] for p in found]
    assert set(groups) == set(articles)
    texts = [t for p in found for t in (p.first, p.second)]
    assert len(texts) == len(set(texts)) == 2 * len(found) and len(found) >= 300
    for pair, article in zip(found, groups, strict=True):
        for text in (pair.first, pair.second):
            assert 10 <= len(text.split()) <= 32 and text.isascii() and text == " ".join(text.split()), text
        assert pair.second not in articles[article], pair.second
    labels = np.array([p.label == "paraphrase" for p in found])
    assert 0.6 < labels.mean() < 0.72
    sets = [[set(t.lower().replace(",", "").rstrip(".").split()) for t in (p.first, p.second)] for p in found]
    cues = np.array(
        [
            [len(a & b) / len(a | b), len(a & b) / len(a), len(a & b) / len(b), len(a), len(b), abs(len(a) - len(b))]
            for a, b in sets
        ]
    )
    assert abs(cues[labels, 0].mean() - cues[~labels, 0].mean()) < 0.05, "one class shares more words"
    assert np.abs(cues[labels, 3:5].mean(0) - cues[~labels, 3:5].mean(0)).max() < 1, "one class is longer"
    words = CountVectorizer(ngram_range=(1, 2), min_df=2).fit_transform([p.second for p in found])
    for features in (words, (cues - cues.mean(0)) / cues.std(0)):
        for weight, score, limit in ((None, "accuracy", 0.69), ("balanced", "balanced_accuracy", 0.62)):
            model = LogisticRegression(max_iter=1000, class_weight=weight)
            folds = cross_val_score(model, features, labels, groups=groups, cv=GroupKFold(10), scoring=score)
            assert folds.mean() < limit, "a cheap cue gives the label away"
    card = (folder / "paraphrase.md").read_text("utf-8")
    assert f"{len(found)} pairs" in card and f"{labels.sum()} are paraphrases, {(~labels).sum()} are not" in card


def test_the_keyphrases_are_in_order():
    folder = places.book_data() / "encyclopedia"
    rows = [json.loads(line) for line in (folder / "keyphrases.jsonl").read_text("utf-8").splitlines()]
    articles = corpora.read("encyclopedia").articles
    assert [row["id"] for row in rows] == [a.id for a in articles]
    verbatim = total = 0
    for row, article in zip(rows, articles, strict=True):
        phrases = [p.lower() for p in row["keyphrases"]]
        assert 5 <= len(phrases) == len(set(phrases)) <= 10 and all(p == " ".join(p.split()) for p in phrases)
        verbatim += sum(p in " ".join(article.paragraphs).lower() for p in phrases)
        total += len(phrases)
    assert verbatim / total >= 0.85
    assert [k.keyphrases for k in corpora.keyphrases("encyclopedia")] == [tuple(r["keyphrases"]) for r in rows]
    card = (folder / "keyphrases.md").read_text("utf-8")
    assert f"{total} keyphrases" in card and f"{verbatim} of them" in card
    assert f"({sum(len(k.verbatim()) for k in corpora.keyphrases('encyclopedia'))} in title or paragraphs)" in card


# ------------------------------------------------------------------ reading


def test_segments_are_neighbouring_paragraphs_of_one_article(tmp_path):
    corpus = corpora.read(str(written(tmp_path, ARTICLE, ARTICLE | {"id": "b", "paragraphs": ["Four.", "Five."]})))
    found = corpora.segments(corpus)
    assert [(s.first, s.second, s.document) for s in found] == [
        ("One.", "Two.", 0),
        ("Two.", "Three.", 0),
        ("Four.", "Five.", 1),
    ]
    assert found[0].texts == ("One.", "Two.")


def test_a_sample_is_a_seeded_subset_in_order():
    corpus = corpora.read("encyclopedia")
    everything = corpora.segments(corpus)
    some = corpora.segments(corpus, limit=20, seed=1)
    places_ = [everything.index(s) for s in some]
    assert len(some) == 20 and places_ == sorted(set(places_))
    assert some == corpora.segments(corpus, limit=20, seed=1) != corpora.segments(corpus, limit=20, seed=2)
    assert corpora.segments(corpus, limit=10_000) == everything


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


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        ('{"id": "a"', 1, "not JSON"),
        (json.dumps(ARTICLE) + "\n[1, 2]", 2, "fields are list"),
        (json.dumps({"id": "a", "title": "A"}), 1, "fields are"),
        (json.dumps(ARTICLE | {"title": ""}), 1, "'title' is ''"),
        (json.dumps(ARTICLE | {"paragraphs": "text"}), 1, "non-empty list"),
        (json.dumps(ARTICLE | {"paragraphs": ["One.", 2]}), 1, "An item of 'paragraphs' is empty or no string"),
        (json.dumps(ARTICLE) + "\n\n" + json.dumps(ARTICLE), 3, "id 'a' was there before (line 1)"),
        ("", None, "The file is empty"),
        ("[" * 100_000, 1, "not JSON"),
    ],
)
def test_bad_articles_name_file_and_line(tmp_path, content, line, says):
    file = written(tmp_path, content)
    with pytest.raises(corpora.CorpusError) as caught:
        corpora.read(str(file))
    assert says in str(caught.value) and str(file) in str(caught.value) and "Expected:" in str(caught.value)
    assert line is None or f"line {line}:" in str(caught.value)


def test_wrong_encodings(tmp_path):
    file = tmp_path / "latin.txt"
    file.write_bytes("fine\nna\xefve".encode("latin-1"))
    with pytest.raises(corpora.CorpusError, match=r"line 2: Byte 0xef is not UTF-8.*iconv"):
        corpora.read(str(file))
    file = tmp_path / "bom.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(ARTICLE).encode())
    assert corpora.read(str(file)).articles[0].id == "a"


def test_missing_corpora(monkeypatch, tmp_path):
    monkeypatch.delenv("BOOK_DATA", raising=False)
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "cache"))
    with pytest.raises(corpora.CorpusError, match=r"fetch wikitext.*BOOK_DATA"):
        corpora.read("wikitext")
    with pytest.raises(corpora.CorpusError, match="no such file"):
        corpora.read("nowhere.txt")
    with pytest.raises(corpora.CorpusError, match="cannot be read"):
        corpora.read(str(tmp_path))
    with pytest.raises(corpora.CorpusError, match="two paragraphs"):
        corpora.segments(corpora.read(str(written(tmp_path, ARTICLE | {"paragraphs": ["One."]}))))


# ------------------------------------------------------------------ the other formats


def test_questions(tmp_path):
    found = corpora.questions("encyclopedia")
    assert len({q.document for q in found}) == 100
    for question in found:
        for answer in question.answers:
            assert question.context[answer.start : answer.start + len(answer.text)] == answer.text
    file = tmp_path / "q.json"
    file.write_text(SQUAD)
    (question,) = corpora.questions(str(file))
    assert (question.id, question.document, question.answers) == ("q1", "T", (corpora.Answer("dog", 4),))


SQUAD = json.dumps(
    {
        "version": "1.1",
        "data": [
            {
                "title": "T",
                "paragraphs": [
                    {
                        "context": "The dog ran.",
                        "qas": [
                            {"id": "q1", "question": "Who ran?", "answers": [{"text": "dog", "answer_start": 4}]}
                        ],
                    }
                ],
            }
        ],
    }
)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"answer_start": 4', '"answer_start": 5', "'q1': the answer 'dog' is not in the context at 5"),
        ('"answer_start": 4', '"answer_start": "4"', "is not in the context at '4'"),
        ('"answer_start": 4', '"answer_start": -8', "is not in the context at -8"),
        ('"text"', '"texts"', "layout is not SQuAD's"),
        ('"question": "Who ran?"', '"question": ""', "layout is not SQuAD's"),
        ('"data": [', '"data": 3, "x": [', "layout is not SQuAD's"),
        ("]}]}]}]}", "", "line 1: This is not JSON"),
        ('[{"id"', '[{"id": "q1", "question": "Who?", "answers": []}, {"id"', "'q1' was there before"),
        (SQUAD, '{"data": []}', "no question"),
    ],
)
def test_bad_questions(tmp_path, old, new, says):
    file = tmp_path / "q.json"
    assert old in SQUAD
    file.write_text(SQUAD.replace(old, new, 1))
    with pytest.raises(corpora.CorpusError) as caught:
        corpora.read_squad(file)
    assert says in str(caught.value) and str(file) in str(caught.value)


PAIRS = {
    "mrpc": '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t7\t8\tHe said "no.\tHe "declined".\r\n',
    "rte": "index\tsentence1\tsentence2\tlabel\n0\tA dog ran.\tA dog.\tnot_entailment\n",
    "nli": "index\tsentence1\tsentence2\tlabel\tlabel3\n0\tA dog ran.\tA cat ran.\tnot_entailment\tneutral\n",
    "mnli": "index\tpromptID\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n5\t1\tfiction\tA.\tB.\tneutral\tcontradiction\n6\t2\tx\tC.\tD.\tneutral\t-\n",
    "snli": "gold_label\tsentence1_parse\tsentence1\tsentence2\tpairID\nneutral\t(A)\tA man.\tA cat.\t3416.jpg#1\n",
    "stsb": "index\tgenre\tsentence1\tsentence2\tscore\n0\tx\tA plane.\tA kite.\t1.250\n",
}
READ = {
    "mrpc": corpora.Pair("7", 'He said "no.', 'He "declined".', "paraphrase"),
    "rte": corpora.Pair("0", "A dog ran.", "A dog.", "not_entailment"),
    "nli": corpora.Pair("0", "A dog ran.", "A cat ran.", "neutral"),
    "mnli": corpora.Pair("5", "A.", "B.", "contradiction"),
    "snli": corpora.Pair("3416.jpg#1", "A man.", "A cat.", "neutral"),
    "stsb": corpora.Pair("0", "A plane.", "A kite.", 1.25),
}


@pytest.mark.parametrize("task", PAIRS)
def test_pairs(tmp_path, task):
    file = tmp_path / "pairs.tsv"
    file.write_bytes(PAIRS[task].encode())
    assert corpora.read_pairs(file, task) == corpora.pairs(str(file), task=task) == (READ[task],)


@pytest.mark.parametrize("label", ["\tlabel", "\tgold_label", "\tQuality", ""])
def test_pairs_of_ones_own_need_no_task(tmp_path, label):
    """Chapters 08 and 09 read two texts; what their label means is nobody's question there."""
    file = tmp_path / "pairs.tsv"
    file.write_text(f"sentence1\tsentence2{label}\nA.\tB.{chr(9) + 'mine' if label else ''}\n")
    assert corpora.pairs(str(file), labels=False) == (corpora.Pair("2", "A.", "B.", "mine" if label else ""),)
    with pytest.raises(
        corpora.CorpusError, match="The label is 'mine'" if label == "\tlabel" else "The columns are|The label is"
    ):
        corpora.pairs(str(file), task="nli")


@pytest.mark.parametrize(
    ("task", "old", "new", "says"),
    [
        ("rte", "A dog.\t", "A dog.\textra\t", "line 2: 5 tab-separated columns"),
        ("rte", "A dog.\tnot_entailment", "A dog.", "line 2: 3 tab-separated columns"),
        ("rte", "sentence2", "other", "line 1: The columns are index, sentence1, other, label"),
        ("rte", "A dog.", " ", "line 2: A sentence is empty"),
        ("rte", "\tnot_entailment", "\tmaybe", "line 2: The label is 'maybe'"),
        ("mrpc", "1\t7", "2\t7", "line 2: The label is '2'"),
        ("stsb", "1.250", "6", "line 2: The score is '6'"),
        ("stsb", "1.250", "high", "line 2: The score is 'high'"),
        ("snli", "neutral\t(A)\tA man.\tA cat.\t3416.jpg#1\n", "", "no labelled pair"),
        ("mnli", PAIRS["mnli"], " \n", "The file is empty"),
        ("rte", "A dog ran.", "A dog" + "n" * 2_000_000, "line 2: The line has 2,000,0"),
    ],
)
def test_bad_pairs(tmp_path, task, old, new, says):
    file = tmp_path / "pairs.tsv"
    assert old in PAIRS[task]
    file.write_bytes(PAIRS[task].replace(old, new, 1).encode())
    with pytest.raises(corpora.CorpusError) as caught:
        corpora.read_pairs(file, task)
    assert says in str(caught.value) and str(file) in str(caught.value)


def test_pairs_in_other_wrappings(tmp_path):
    for name, text in (("s1", "A man .\nA dog .\n"), ("s2", "He .\nIt .\n"), ("labels", "neutral\nentailment\n")):
        (tmp_path / f"{name}.dev.gz").write_bytes(gzip.compress(text.encode()))
    found = corpora.read_pairs(tmp_path / "s1.dev.gz", "snli")
    assert [(p.first, p.second, p.label) for p in found] == [
        ("A man .", "He .", "neutral"),
        ("A dog .", "It .", "entailment"),
    ]
    (tmp_path / "labels.dev.gz").write_bytes(gzip.compress(b"neutral\n"))
    with pytest.raises(corpora.CorpusError, match="2, 2, 1 lines"):
        corpora.read_pairs(tmp_path / "s1.dev.gz", "snli")
    (tmp_path / "labels.dev.gz").write_bytes(b"not gzip")
    with pytest.raises(corpora.CorpusError, match=r"labels\.dev\.gz: The file cannot be unpacked"):
        corpora.read_pairs(tmp_path / "s1.dev.gz", "snli")
    asked = 'For the statement, "He said ""no""", does the hypothesis "He spoke" represent entailment, contradiction, or neutrality?'
    file = tmp_path / "mnli.csv"
    file.write_text(
        f'Question,Answer,Origin\n"{asked.replace(chr(34), chr(34) * 2).replace(chr(34) * 4, chr(34) * 2)}",entailment,mnli\n'
    )
    (pair,) = corpora.read_pairs(file, "mnli")
    assert (pair.first, pair.second, pair.label) == ('He said "no"', "He spoke", "entailment")
    file.write_text("Question,Answer,Origin\nWhat?,entailment,mnli\n")
    with pytest.raises(corpora.CorpusError, match=r"line 2: .*'What\?'"):
        corpora.read_pairs(file, "mnli")
    file = tmp_path / "sts-test.tsv"
    file.write_text("captions\tf\t2012\t1\t2.5\tA.\tB.\ncaptions\tf\t2012\t2\t3\tC.\tD.\tmore\tstill\n")
    assert [(p.id, p.label) for p in corpora.read_pairs(file, "stsb")] == [("1", 2.5), ("2", 3.0)]
    with pytest.raises(corpora.CorpusError, match="task= one of mrpc"):
        corpora.pairs(str(file))
    with pytest.raises(corpora.CorpusError, match="no task 'sst'"):
        corpora.read_pairs(file, "sst")


def inspec(folder: Path, members: dict[str, bytes]) -> Path:
    file = folder / "x.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file


ABSTRACT = {
    "10.abstr": b"Ten\n\ttitles\r\nThe text\n\tgoes on.\n",
    "10.uncontr": b"the text; missing\n\tphrase;\n",
    "9.abstr": b"Nine\nText.\n",
    "9.uncontr": b"nine",
    "9.contr": b"ignored",
}


def test_inspec(tmp_path):
    nine, ten = corpora.keyphrases(str(inspec(tmp_path, ABSTRACT)))
    assert nine == corpora.KeyedText("9", "Nine", "Text.", ("nine",))
    assert ten == corpora.KeyedText("10", "Ten titles", "The text goes on.", ("the text", "missing phrase"))
    assert ten.verbatim() == ("the text",)


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"../9.abstr": b"x"}, "lies outside"),
        ({"/9.abstr": b"x"}, "lies outside"),
        ({"..\\9.abstr": b"x"}, "lies outside"),
        ({"9.abstr": b"T\nx"}, "keyphrases are missing"),
        ({"9.abstr": b"T\nx", "9.uncontr": b" ; "}, "keyphrases are missing"),
        ({"9.abstr": b"caf\xe9", "9.uncontr": b"x"}, "x.zip/9.abstr, line 1: Byte 0xe9 is not UTF-8"),
        ({"readme": b"x"}, "no .abstr member"),
    ],
)
def test_bad_archives(tmp_path, members, says):
    with pytest.raises(corpora.CorpusError) as caught:
        corpora.read_inspec(inspec(tmp_path, members))
    assert says in str(caught.value)


def test_keyphrases_need_their_articles(tmp_path):
    written(tmp_path, ARTICLE)
    file = written(tmp_path, {"id": "a", "keyphrases": ["one"]}, name="keyphrases.jsonl")
    assert corpora.keyphrases(str(file)) == (corpora.KeyedText("a", "A", "One.\nTwo.\nThree.", ("one",)),)
    written(tmp_path, {"id": "b", "keyphrases": ["one"]}, name="keyphrases.jsonl")
    with pytest.raises(corpora.CorpusError, match="no article 'b'"):
        corpora.keyphrases(str(file))


def test_word_vectors(tmp_path):
    glove = corpora.vectors()
    assert glove.matrix.shape == (400_000, 50) and len(glove.index) == 400_000
    rows = glove(["The", "the", "notawordatall"])
    assert (rows[0] == rows[1]).all() and rows[0].any() and not rows[2].any()
    near = glove(["king", "queen", "cabbage"])
    near = near / np.linalg.norm(near, axis=1, keepdims=True)
    assert near[0] @ near[1] > 0.7 > near[0] @ near[2]
    file = tmp_path / "vectors.txt"
    file.write_text("a 1 2\nb 3 4\n")
    assert corpora.vectors(str(file))(["b", "c"]).tolist() == [[3, 4], [0, 0]]
    file = tmp_path / "other.txt"
    for bad in ("a 1 2\nb 3\n", "a 1 2\nb 3 x\n", "a 1 2\nb 3 nan\n"):
        file.write_text(bad)
        with pytest.raises(corpora.CorpusError, match="line 2"):
            corpora.vectors(str(file))


# ------------------------------------------------------------------ damaged files of every format

CONLLU = (
    "# newdoc id = d\n# global.Entity = eid-etype-head\n# sent_id = 1\n# text = Don't go.\n1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_\n2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_\n3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t"
    "Entity=(1-person-1(2-person-1)\n4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\tEntity=1)\n\n"
)
ONTONOTES = (
    "#begin document (a/b); part 000\n"
    + "".join(
        f"a/b 0 {i} {w} NN * - - - A * {c}\n"
        for i, (w, c) in enumerate([("He", "(1)"), ("saw", "-"), ("him", "(2|(1)"), (".", "2)")])
    )
    + "\n#end document\n"
)
ONTOGUM = "# begin document \n0\tHe\t(1)\n1\tsaw\t_\n2\thim\t(2(1)\n3\t.\t2)\n# end document\n"
TEXT = " = Title = \n \n This line of text has more than ten words in it , I believe . \n = = Part = = \n"
SEEDS = {
    "articles.jsonl": (json.dumps(ARTICLE).encode(), corpora.read_encyclopedia),
    "text.txt": (TEXT.encode(), corpora.read_plain_text),
    "text.csv.gz": (gzip.compress(f'"{TEXT}"\n'.encode()), corpora.read_plain_text),
    "trees.conllu": (CONLLU.encode(), treebanks.read),
    "ontonotes_conll": (ONTONOTES.encode(), treebanks.read),
    "ontogum.conll": (ONTOGUM.encode(), treebanks.read),
    "squad.json": (SQUAD.encode(), corpora.read_squad),
    "keyphrases.jsonl": (json.dumps({"id": "a", "keyphrases": ["one"]}).encode(), corpora.read_keyphrases),
    "s1.x.gz": (gzip.compress(b"A .\nB .\n"), lambda path: corpora.read_pairs(path, "snli")),
    "mnli.csv": (
        b'Question,Answer,Origin\n"For the statement, ""A"", does the hypothesis ""B"" represent entailment, '
        b'contradiction, or neutrality?",neutral,x\n',
        lambda path: corpora.read_pairs(path, "mnli"),
    ),
    **{
        f"{task}.tsv": (text.encode(), lambda path, task=task: corpora.read_pairs(path, task))
        for task, text in PAIRS.items()
    },
}
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
    """160 mutations of each of 16 formats (and the archive below): over 2,500 files."""
    content, read = SEEDS[name]
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "articles.jsonl").write_text(json.dumps(ARTICLE))
    (folder / "s2.x.gz").write_bytes(gzip.compress(b"C .\nD .\n"))
    (folder / "labels.x.gz").write_bytes(gzip.compress(b"neutral\nneutral\n"))
    (folder / name).write_bytes(content)
    assert read(folder / name), "the undamaged file is read"

    @settings(max_examples=160, deadline=None)
    @given(damaged=mutations(content))
    def check(damaged):
        (folder / name).write_bytes(damaged)
        try:
            assert read(folder / name)
        except corpora.CorpusError as error:
            assert str(folder) in str(error) and "Expected:" in str(error)

    check()


@settings(max_examples=160, deadline=None)
@given(data=st.data())
def test_damaged_archives_end_in_a_result_or_a_clear_error(tmp_path_factory, data):
    file = inspec(tmp_path_factory.mktemp("damaged"), ABSTRACT)
    file.write_bytes(data.draw(mutations(file.read_bytes())))
    try:
        assert corpora.read_inspec(file)
    except corpora.CorpusError as error:
        assert str(file) in str(error)


# ------------------------------------------------------------------ real corpora


QUESTIONS = {
    "squadshifts-wiki": (48, 1_581, 7_938, 22_794),
    "squadshifts-reddit": (1, 2_033, 9_803, 27_692),
    "squadshifts-amazon": (413, 2_050, 9_885, 27_318),
    "xquad": (48, 240, 1_190, 1_190),
}
LABELLED = {
    ("mrpc", "train"): (3_668, "paraphrase", 2_474),
    ("mrpc", "dev"): (408, "paraphrase", 279),
    ("mrpc", "test"): (1_725, "paraphrase", 1_147),
    ("rte", "train"): (2_490, "entailment", 1_249),
    ("rte", "dev"): (277, "entailment", 146),
    ("mnli", "dev"): (9_815, "entailment", 3_479),
    ("mnli", "train"): (10_000, "neutral", 3_367),
    ("stsb", "train"): (5_749, 5.0, None),
    ("stsb", "dev"): (1_500, 5.0, None),
    ("stsb", "test"): (1_379, 5.0, None),
    ("snli", "dev"): (9_842, "neutral", None),
    ("snli", "test"): (9_824, "neutral", None),
}
KEYED = {"train": (1_000, 9_788, 7_562), "dev": (500, 4_575, 3_517), "test": (500, 4_913, 3_847)}


@pytest.mark.parametrize("name", QUESTIONS)
def test_real_questions_have_their_counts(real_data, name):
    found = corpora.questions(name)
    contexts = {q.context for q in found}
    answers = sum(len(q.answers) for q in found)
    assert QUESTIONS[name] == (len({q.document for q in found}), len(contexts), len(found), answers)


@pytest.mark.parametrize(("name", "split"), LABELLED)
def test_real_pairs_have_their_counts(real_data, name, split):
    found = corpora.pairs(name, split)
    total, label, count = LABELLED[name, split]
    assert len(found) == total and (count is None or sum(p.label == label for p in found) == count)
    assert name != "stsb" or all(0 <= p.label <= 5 for p in found)


@pytest.mark.parametrize("split", KEYED)
def test_real_keyphrases_have_their_counts(real_data, split):
    found = corpora.keyphrases("inspec", split)
    phrases, verbatim = (
        sum(len(k) for k in keys) for keys in zip(*((k.keyphrases, k.verbatim()) for k in found), strict=True)
    )
    assert KEYED[split] == (len(found), phrases, verbatim)


@pytest.mark.parametrize(("split", "articles"), [("dev", 60), ("test", 62), ("train", 600)])
def test_wikitext_has_its_articles(real_data, split, articles):
    corpus = corpora.read("wikitext", split)
    assert articles <= len(corpus.articles) <= articles * 1.05


def test_wikitext(real_data):
    corpus = corpora.read("wikitext")
    assert corpus.sha256 == "4f3e427e4aff23acff917a8a51aeae21bf12832256e26914c8fc250dcef4103c"
    assert 60 <= len(corpus.articles) <= 64
    assert not any(
        mark in p for a in corpus.articles for p in a.paragraphs for mark in (" @-@ ", " @,@ ", " , ", " ' ")
    )
    assert len(corpora.segments(corpus, limit=1000)) == 1000
