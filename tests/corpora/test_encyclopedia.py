"""The book's own corpora: the layers fit the articles, the cards count what is there, and no cheap cue gives a label away."""

import csv
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from samples import surface
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score

from helpers import corpora, places
from helpers.corpora import treebanks

FOLDER = places.book_data() / "encyclopedia"


@pytest.fixture(scope="module")
def corpus():
    return corpora.read("encyclopedia")


def assert_counted(card, counts):
    text = (FOLDER / card).read_text("utf-8")
    assert [f"{count:,} {unit}" for unit, count in counts.items() if f"{count:,} {unit}" not in text] == []


def test_articles(corpus):
    articles, paragraphs = corpus.articles, [p for a in corpus.articles for p in a.paragraphs]
    sentences = [p[start:end].strip() for p in paragraphs for start, end in corpora.sentences(p)]
    assert len({a.id for a in articles}) == len({a.title for a in articles}) == len(articles)
    assert len(set(sentences)) == len(sentences) and {len(a.paragraphs) for a in articles} == {3}
    counts = {"articles": len(articles), "paragraphs": len(paragraphs), "sentences": len(sentences)}
    counts |= {
        "words": sum(len(p.split()) for p in paragraphs),
        "subject areas": pd.read_json(FOLDER / "articles.jsonl", lines=True).topic.nunique(),
    }
    assert_counted("README.md", counts)
    assert corpus.sha256 in (FOLDER / "README.md").read_text("utf-8")


def test_questions_and_keyphrases(corpus):
    asked, keyed = corpora.questions("encyclopedia"), corpora.keyphrases("encyclopedia")
    assert len({q.id for q in asked}) == len({q.question for q in asked}) == len(asked)
    paragraphs = {f"{a.id}-{n}": (a.title, p) for a in corpus.articles for n, p in enumerate(a.paragraphs, 1)}
    assert all(paragraphs[q.id.rpartition("-")[0]] == (q.document, q.context) for q in asked)
    assert_counted("questions.md", {"questions": len(asked)})
    assert [k.id for k in keyed] == [a.id for a in corpus.articles]
    phrases = [(k.text.lower().replace("\n", " "), p.lower()) for k in keyed for p in k.keyphrases]
    assert len(set(phrases)) == len(phrases)
    assert_counted("keyphrases.md", {"keyphrases": len(phrases), "of them": sum(p in text for text, p in phrases)})


def best_by_cues(firsts, seconds, labels, groups):
    """Balanced accuracy of the words of the second sentence alone, or of the overlap with the first, in cross-validation by article."""
    words = CountVectorizer(ngram_range=(1, 2), min_df=2).fit_transform(seconds)
    sets = [[set(text.lower().rstrip(".?").split()) for text in pair] for pair in zip(firsts, seconds, strict=True)]
    overlap = np.array([[len(a & b) / len(a | b), len(a & b) / len(b), len(a), len(b)] for a, b in sets])
    model, how = LogisticRegression(C=0.3, max_iter=1000, class_weight="balanced"), {"cv": GroupKFold(10)}
    how |= {"groups": groups, "scoring": "balanced_accuracy"}
    return max(cross_val_score(model, x, labels, **how).mean() for x in (words, overlap / overlap.std(0)))


def test_pairs(corpus):
    texts = {a.id: " ".join(a.paragraphs) for a in corpus.articles}
    rows = pd.read_csv(FOLDER / "entailment.tsv", sep="\t", quoting=csv.QUOTE_NONE)
    groups = rows["index"].str.rpartition("-")[0]
    assert all(sentence in texts[article] for article, sentence in zip(groups, rows.sentence1, strict=True))
    assert rows.sentence2.is_unique and Counter(groups) == dict.fromkeys(texts, 4)
    assert ((rows.label == "entailment") == (rows.label3 == "entailment")).all()
    assert rows.label3.value_counts().to_dict() == {"entailment": 200, "neutral": 100, "contradiction": 100}
    assert best_by_cues(rows.sentence1, rows.sentence2, rows.label, groups) < 0.58
    pairs = pd.DataFrame(corpora.pairs("encyclopedia-paraphrase"))
    groups, counts = pairs.id.str.rpartition("-")[0], pairs.label.value_counts()
    assert set(groups) == set(texts) and pd.concat([pairs["first"], pairs.second]).is_unique
    assert not any(second in texts[article] for article, second in zip(groups, pairs.second, strict=True))
    assert best_by_cues(pairs["first"], pairs.second, pairs.label, groups) < 0.62
    assert_counted("paraphrase.md", {"pairs": len(pairs), "are paraphrases": counts.paraphrase})


def test_trees(corpus):
    parts = [corpora.documents("encyclopedia", split) for split in treebanks.PARTS]
    documents = [d for part in parts for d in part]
    sentences, mentions = [s for d in documents for s in d.sentences], [m for d in documents for m in d.mentions]
    assert {d.id: d.text for d in documents} == {f"{a.id}-1": a.paragraphs[0] for a in corpus.articles}
    assert [len(part) for part in parts] == [60, 20, 20]
    for s in sentences:
        above = [s.relations[governor] if governor >= 0 else "" for governor in s.governors]
        assert all((relation == "root") == (upper == "") for relation, upper in zip(s.relations, above, strict=True))
        assert not {"punct", "case", "aux", "cop", "mark"} & {
            upper for upper, relation in zip(above, s.relations, strict=True) if relation in ("nsubj", "obj", "det")
        }
    for d in documents:
        assert {m.chain for m in d.mentions} == set(d.chains), "no chain of one mention"
        for m in d.mentions:
            governors = d.sentences[m.sentence].governors[m.start : m.end]
            assert sum(not m.start <= governor < m.end for governor in governors) == 1, surface(d, m)
    counts = {"documents": len(documents), "sentences": len(sentences), "mentions": len(mentions)}
    counts |= {"words": sum(len(s.words) for s in sentences), "chains": sum(len(d.chains) for d in documents)}
    assert_counted("treebank.md", counts | Counter(m.kind for m in mentions))
