"""A reader's own corpora: no sentence is scored on that was learnt or chosen on, and what was done is said."""

import shutil
from itertools import combinations
from pathlib import Path

import pytest
from samples import surface

from helpers import corpora, places
from helpers.corpora import sources, treebanks
from helpers.corpora.sources import CorpusError

TREEBANK = places.book_data() / "encyclopedia" / "treebank"


def written(file, documents: dict[str, int] | int, *, tag="NOUN", tree=True, word="w") -> str:
    """A treebank of so many sentences a document, or of so many without any document; its path."""
    lines = []
    for name, sentences in documents.items() if isinstance(documents, dict) else [(None, documents)]:
        lines += [f"# newdoc id = {name}"] if name else []
        for number in range(sentences):
            for place in (1, 2):
                head, relation = (("2", "nsubj"), ("0", "root"))[place - 1] if tree else ("_", "_")
                form = f"{word}{name or ''}{number}-{place}"
                lines.append("\t".join([str(place), form, form, tag, tag, "_", head, relation, "_", "_"]))
            lines.append("")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return str(file)


def sentences_of(documents) -> list[tuple[str, ...]]:
    return [s.words for d in documents for s in d.sentences]


def apart(name: str) -> list[int]:
    """How many sentences each part has, after making sure that no two parts share any, and that none is lost."""
    parts = [set(sentences_of(corpora.documents(name, part))) for part in treebanks.PARTS]
    assert all(not part & other for part, other in combinations(parts, 2)) and all(parts)
    assert set.union(*parts) == set(sentences_of(corpora.documents(name)))
    return [len(part) for part in parts]


def test_a_path_is_never_train_and_test_at_once(tmp_path):
    name = written(tmp_path / "mine.conllu", {f"d{n}": 3 for n in range(20)})
    assert apart(name) == [36, 12, 12]
    of_train, of_test = ({d.id for d in corpora.documents(name, part)} for part in ("train", "test"))
    assert len(of_train) == 12 and len(of_test) == 4 and not of_train & of_test, "documents stay whole"
    again = written(tmp_path / "other.conllu", {f"d{n}": 3 for n in range(20)})
    assert corpora.documents(again, "test") == corpora.documents(name, "test"), "the draw is seeded"
    (note,) = corpora.notes(name)
    assert note.startswith("mine.conllu: drawn by document, seed 0: train 12 documents (36 sentences); dev 4 ")
    assert corpora.notes("encyclopedia", corpora.read("encyclopedia")) == []


def test_a_file_without_documents_is_cut_into_runs(tmp_path):
    name = written(tmp_path / "flat.conllu", 57)
    assert sum(apart(name)) == 57
    for document in corpora.documents(name):
        numbers = [int(words[0][1:].partition("-")[0]) for words in sentences_of([document])]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) and len(numbers) >= 5, "neighbours"
    assert "by runs of neighbouring sentences (fewer than 5 different documents" in corpora.notes(name)[0]


@pytest.mark.parametrize(("documents", "told"), [(19, "1 document (19"), ({"a": 9, "b": 9}, "2 documents (18")])
def test_too_little_is_one_sentence(tmp_path, documents, told):
    name = written(tmp_path / "small.conllu", documents)
    with pytest.raises(CorpusError) as caught:
        corpora.documents(name, "train")
    assert told in str(caught.value) and "5 documents or 20 sentences at least" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_three_files_and_folders_keep_their_parts(tmp_path):
    for part, count in zip(treebanks.PARTS, (6, 2, 3), strict=True):
        documents = {f"{part}{n}": 2 for n in range(count)}
        written(tmp_path / "ud" / f"xx_mine-ud-{part}.conllu", documents)
        written(tmp_path / "folders" / {"dev": "development"}.get(part, part) / "a.conllu", documents)
    three = ",".join(str(tmp_path / "ud" / f"xx_mine-ud-{part}.conllu") for part in treebanks.PARTS)
    for name in (three, str(tmp_path / "ud"), str(tmp_path / "folders")):
        assert apart(name) == [12, 4, 6] and "as the files are named" in corpora.notes(name)[0]
        assert {d.id for d in corpora.documents(name, "dev")} == {"dev0", "dev1"}
    (tmp_path / "ud" / "xx_mine-ud-dev.conllu").unlink()
    assert apart(str(tmp_path / "ud")) == [8, 4, 6], "dev is drawn from train, test stays"
    (tmp_path / "ud" / "xx_mine-ud-test.conllu").unlink()
    assert sum(apart(str(tmp_path / "ud"))) == 12, "one part alone is drawn from as any folder"


@pytest.mark.parametrize("how", ["twice", "copied", "two"])
def test_one_document_in_two_parts_is_refused(tmp_path, how):
    file, other = (written(tmp_path / f"{n}.conllu", {f"{n}{k}": 3 for k in range(5)}) for n in "ab")
    copy = shutil.copy(file, tmp_path / "copy.conllu")
    given = {"twice": f"{file},{other},{file}", "copied": f"{file},{other},{copy}", "two": f"{file},{other}"}[how]
    says = {"two": "2 paths with commas between"}.get(how, "'a0' of test stands in train as well")
    with pytest.raises(CorpusError, match=says):
        corpora.documents(given, "test")
    with pytest.raises(CorpusError, match="no such file"):
        corpora.documents(f"{file},{other},{tmp_path}/nowhere.conllu", "test")


def test_copies_of_a_document_stay_together(tmp_path):
    """Ten pairs of documents with the same sentences, under twenty names."""
    text = Path(written(tmp_path / "once.conllu", {f"d{n}": 3 for n in range(10)})).read_text("utf-8")
    (tmp_path / "twice.conllu").write_text(text + text.replace("# newdoc id = d", "# newdoc id = e"), "utf-8")
    assert apart(str(tmp_path / "twice.conllu")) == [18, 6, 6]


def test_documents_of_one_name_in_two_files_are_told_apart(tmp_path):
    for file in "abc":
        written(tmp_path / f"{file}.conllu", {"1": 3, "2": 3}, word=file)
    assert sum(apart(str(tmp_path))) == 18
    assert {d.id for d in corpora.documents(str(tmp_path))} == {f"{f}: {n}" for f in "abc" for n in "12"}


def test_a_treebank_without_trees_is_refused_where_they_are_needed(tmp_path):
    name = written(tmp_path / "flat.conllu", {f"d{n}": 3 for n in range(5)}, tree=False)
    assert len(corpora.documents(name, "test")) == 1
    with pytest.raises(CorpusError, match=r"part 'test' has a tree .*enough for chapter 05"):
        corpora.documents(name, "test", trees=True)


def test_mentions_without_tags_have_kinds_by_form(tmp_path):
    """The columns of many literary corpora: words and coreference, everything else an underscore."""
    rows = ["#begin document (book); part 000"]
    words = ["Then", "Emma", "saw", "her", "old", "friend", ",", "and", "she", "smiled"]
    marks = {1: "(1)", 3: "(1)|(2", 5: "2)", 8: "(1)"}
    for _ in range(20):
        rows += [f"book\t0\t{n}\t{w}" + 7 * "\t_" + f"\t{marks.get(n, '_')}" for n, w in enumerate(words)] + [""]
    file = tmp_path / "book_conll"
    file.write_text("\n".join([*rows, "#end document", ""]), "utf-8")
    documents = corpora.documents(str(file))
    kinds = {surface(d, m): m.kind for d in documents for m in d.mentions}
    assert kinds == {"Emma": "proper", "her": "pronoun", "her old friend": "nominal", "she": "pronoun"}
    _, note = corpora.notes(str(file))
    assert note.startswith("80 of 80 mentions have no part-of-speech tag: ")
    assert corpora.notes(str(TREEBANK))[1:] == [], "those with tags need no guess"


PARAGRAPH = "The otter dived number {} times and came up with a shell on its belly.\n"


def text(file, *counts, titled=True) -> str:
    lines = []
    for number, count in enumerate(counts):
        lines += [f" = Article {number} = \n"] if titled else []
        lines += [PARAGRAPH.format(f"{number}.{k}") for k in range(count)]
    file.write_text("".join(lines), "utf-8")
    return str(file)


@pytest.mark.parametrize("titled", [True, False])
@pytest.mark.parametrize("count", [8, 33])
def test_a_text_of_one_article_has_two_halves(tmp_path, count, titled):
    corpus = corpora.read(text(tmp_path / "one.txt", count, titled=titled))
    pairs = corpora.segments(corpus)
    halves = [{p for s in pairs if s.document % 2 == n for p in s.texts} for n in (0, 1)]
    assert len(halves[0] | halves[1]) == count and not halves[0] & halves[1], "no paragraph is in both"
    assert len({s.document for s in pairs}) >= 4
    (note,) = corpora.notes(corpus)
    assert note == corpus.parts and f"one article, so {len({s.document for s in pairs})} runs of its {count}" in note


def test_articles_of_one_paragraph_do_not_empty_a_half(tmp_path):
    corpus = corpora.read(text(tmp_path / "some.txt", 3, 1, 3, 1, 2))
    assert {s.document for s in corpora.segments(corpus)} == {0, 1, 2}
    assert corpora.notes(corpus) == ["some: 2 articles of one paragraph are left out."]
    whole = corpora.read(text(tmp_path / "whole.txt", 3, 3, 1))
    assert {s.document for s in corpora.segments(whole)} == {0, 1} and corpora.notes(whole) == []


@pytest.mark.parametrize(
    ("counts", "problem"), [((1, 1), "longest has 1 par"), ((7,), "longest has 7"), ((1, 2), "longest has 2")]
)
def test_too_little_text_is_refused_at_once(tmp_path, counts, problem):
    with pytest.raises(CorpusError, match=rf"{problem}.*text of several articles.*or one of 8 paragraphs"):
        corpora.segments(corpora.read(text(tmp_path / "small.txt", *counts)))


def test_a_readers_own_is_named_as_such(tmp_path):
    file = tmp_path / "mine.jsonl"
    shutil.copy(places.book_data() / "encyclopedia" / "articles.jsonl", file)
    own, known = corpora.read(str(file)), corpora.read("encyclopedia")
    assert (own.name, own.own, own.sha256) == ("mine", True, known.sha256)
    assert (known.name, known.own) == ("encyclopedia", False)
    listed = corpora.own(treebank=["encyclopedia", str(TREEBANK)], text=str(file), pairs="mrpc")
    assert [(corpus.name, corpus.own) for corpus in listed] == [("treebank", True), ("mine", True)]
    assert listed[0].parts == treebanks.in_parts(str(TREEBANK))[1]
    three = ",".join(str(TREEBANK / f"{part}.conllu") for part in treebanks.PARTS)
    joined, other = (corpora.provenance(n, "treebank", *treebanks.PARTS) for n in (three, "encyclopedia"))
    assert joined.name == "train.conllu, dev.conllu, test.conllu" and joined.sha256 == other.sha256


def test_paths_hold_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.conllu", "b.conllu", "c.conllu", "encyclopedia", "book", "x,y.txt"):
        (tmp_path / name).touch()
    given = {"corpus": "x,y.txt", "treebank": "a.conllu, b.conllu,./c.conllu", "coreference": "a.conllu,nowhere"}
    given |= {"texts": {"mlm": "a.conllu", "qa": "encyclopedia"}, "profile": "book", "questions": "", "limit": 3}
    paths = sources.absolute(given)
    assert paths["corpus"] == f"{tmp_path}/x,y.txt"
    assert paths["treebank"] == ",".join(f"{tmp_path}/{n}.conllu" for n in "abc")
    assert paths["texts"] == {"mlm": f"{tmp_path}/a.conllu", "qa": "encyclopedia"}, "a name of the catalogue is one"
    assert all(paths[name] == given[name] for name in ("coreference", "profile", "questions", "limit"))
