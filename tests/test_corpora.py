"""Readers: what they read, and what they say when they cannot."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score

from helpers import corpora, places

ARTICLE = {"id": "a", "title": "A", "topic": "t", "paragraphs": ["One.", "Two.", "Three."]}
REAL = Path(os.environ.get("BOOK_DATA") or places.ROOT.parent / "shared" / "data")


def written(folder: Path, *lines: object, name: str = "articles.jsonl") -> Path:
    file = folder / name
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return file


# ------------------------------------------------------------------ the book's own


def test_the_encyclopedia_is_in_order():
    corpus = corpora.read("encyclopedia")
    assert corpora.check_encyclopedia(corpus) == []
    assert len(corpus.articles) >= 40
    assert len({a.topic for a in corpus.articles}) >= 20
    assert len({a.id for a in corpus.articles}) == len({a.title for a in corpus.articles}) == len(corpus.articles)


def test_the_card_counts_what_is_there():
    corpus = corpora.read("encyclopedia")
    words = sum(len(p.split()) for a in corpus.articles for p in a.paragraphs)
    sentences = sum(len(corpora.sentences(p)) for a in corpus.articles for p in a.paragraphs)
    card = (places.book_data() / "encyclopedia" / "README.md").read_text("utf-8")
    for count, unit in (
        (len(corpus.articles), "articles"), (3 * len(corpus.articles), "paragraphs"),
        (sentences, "sentences"), (words, "words"), (len({a.topic for a in corpus.articles}), "subject areas"),
    ):  # fmt: skip
        assert f"{count:,} {unit}" in card
    assert corpus.sha256 in card


def test_the_prose_has_the_variety_that_later_chapters_need():
    """Crude counts; the floor is far below what is there, and far above what a template would give."""
    text = " ".join(p for a in corpora.read("encyclopedia").articles for p in a.paragraphs).lower()
    words = len(text.split())
    for pattern, per_thousand in ((" his ", 3), (" her ", 3), (" it ", 6), (" she ", 3), (" who ", 3), (" which ", 2),
                                  ("'s ", 6), (" was ", 8), (", ", 40), (" that ", 8), (" because ", 0.4), (";", 1),
                                  (" up ", 1), (" by ", 4)):  # fmt: skip
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
    assert any(finding in problem for problem in corpora.check_encyclopedia(corpus))


def test_the_validator_finds_near_duplicates():
    first = "The queen bee lays more than a thousand eggs in a single day of summer."
    second = "In spring the queen bee lays more than a thousand eggs in a single day."
    other = "A worker tidies cells before she is allowed to fly out for nectar."
    articles = tuple(
        corpora.Article(i, i, "t", (s, other.replace("cells", i), s[::-1])) for i, s in (("a", first), ("b", second))
    )
    problems = corpora.check_encyclopedia(corpora.Corpus("x", "0", "CC0", articles))
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
    assert f"{total} keyphrases" in (folder / "keyphrases.md").read_text("utf-8")


# ------------------------------------------------------------------ reading


def test_segments_are_neighbouring_paragraphs_of_one_article(tmp_path):
    corpus = corpora.read(str(written(tmp_path, ARTICLE, ARTICLE | {"id": "b", "paragraphs": ["Four.", "Five."]})))
    found = corpora.segments(corpus)
    assert [(s.first, s.second, s.document) for s in found] == [
        ("One.", "Two.", 0), ("Two.", "Three.", 0), ("Four.", "Five.", 1)]  # fmt: skip
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
        (json.dumps(ARTICLE | {"paragraphs": ["One.", 2]}), 1, "paragraph is empty or no string"),
        (json.dumps(ARTICLE) + "\n\n" + json.dumps(ARTICLE), 3, "id 'a' is that of line 1"),
        ("", None, "no articles"),
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
    with pytest.raises(corpora.CorpusError, match="BOOK_DATA"):
        corpora.read("wikitext")
    with pytest.raises(corpora.CorpusError, match="no such file"):
        corpora.read("nowhere.txt")
    with pytest.raises(corpora.CorpusError, match="cannot be read"):
        corpora.read(str(tmp_path))
    with pytest.raises(corpora.CorpusError, match="two paragraphs"):
        corpora.segments(corpora.read(str(written(tmp_path, ARTICLE | {"paragraphs": ["One."]}))))


@settings(max_examples=300, deadline=None)
@given(raw=st.binary(max_size=300), jsonl=st.booleans(), at=st.integers(0, 150))
def test_garbage_ends_in_a_result_or_a_clear_error(tmp_path_factory, raw, jsonl, at):
    good = json.dumps(ARTICLE).encode()
    file = tmp_path_factory.mktemp("garbage") / ("x.jsonl" if jsonl else "x.txt")
    file.write_bytes(good[:at] + raw + good[at:])
    try:
        assert corpora.read(str(file)).articles
    except corpora.CorpusError as error:
        assert str(file) in str(error)


@pytest.mark.skipif(not (REAL / "wikitext").is_dir(), reason="real corpora are not here (set BOOK_DATA)")
def test_wikitext(monkeypatch):
    monkeypatch.setenv("BOOK_DATA", str(REAL))
    corpus = corpora.read("wikitext")
    assert corpus.sha256 == "4f3e427e4aff23acff917a8a51aeae21bf12832256e26914c8fc250dcef4103c"
    assert 60 <= len(corpus.articles) <= 64
    assert not any(
        mark in p for a in corpus.articles for p in a.paragraphs for mark in (" @-@ ", " @,@ ", " , ", " ' ")
    )
    assert len(corpora.segments(corpus, limit=1000)) == 1000
