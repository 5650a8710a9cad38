"""Files as people have them, in ``tests/data``: read right, or refused in a sentence that helps."""

import json
import shutil

import pytest
from samples import ABSTRACT, DATA, PAIRS, surface, zipped

from helpers import corpora, inputs, tokens
from helpers.corpora import treebanks
from helpers.corpora.sources import CorpusError
from helpers.examples import Example
from helpers.measurements import coreference


def surfaces(name) -> list[tuple[str, str, str]]:
    return [(surface(d, m), m.chain, m.kind) for d in treebanks.read(DATA / name) for m in d.mentions]


def test_the_header_names_the_order_of_fields():
    (old,), (new,) = treebanks.read(DATA / "old_layout.conllu"), treebanks.read(DATA / "new_layout.conllu")
    assert old.mentions == new.mentions and len(old.chains) == 2
    assert {m.type for m in old.mentions} == {"person", "letter"}


CLERK, IT = ("A clerk", "1", "nominal"), ("it", "2", "pronoun")
READ = {
    "empty_nodes.conllu": ([CLERK, IT, CLERK, IT], "1 mentions of empty nodes only"),
    "twice.conllu": ([CLERK, IT, ("it", "3", "pronoun"), IT], "1 mentions written twice"),
    "two_blanks.conllu": ([("reads  on", "1", "nominal")], ""),
    "five_columns.conll": ([CLERK, IT, ("She", "1", "pronoun"), IT], ""),
    "uneven_columns.conll": ([CLERK, IT], ""),
}


@pytest.mark.parametrize("name", READ)
def test_oddities_that_are_read(name, capsys):
    wanted, left_out = READ[name]
    assert surfaces(name) == wanted
    assert left_out in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["withheld.conllu", "skeleton_gold_conll", "torn.conllu", "half.conllu", "numbers_gold_conll"]
)
def test_oddities_that_are_refused(name):
    with pytest.raises(CorpusError):
        treebanks.read(DATA / name)


def test_of_a_folder_one_of_each_twin_is_read(tmp_path, capsys):
    for name in ("a_gold_conll", "a_auto_conll", "b_auto_conll", "._a_gold_conll"):
        shutil.copy(DATA / "five_columns.conll", tmp_path / name)
    assert [file.name for file in treebanks.files_of(tmp_path)] == ["a_gold_conll", "b_auto_conll"]
    shutil.copy(DATA / "twice.conllu", tmp_path / "C.CONLLU")
    assert [file.name for file in treebanks.files_of(tmp_path)] == ["C.CONLLU"]
    shown = capsys.readouterr().out
    assert "1 files *_auto_conll are not read" in shown and "3 files in other columns (*conll) are not read" in shown


def test_words_without_a_token_keep_their_places(minilm, capsys):
    documents = treebanks.read(DATA / "no_token.conllu")
    sentences = [s for d in documents for s in d.sentences]
    assert tokens.usable(minilm, sentences) == sentences[:1]
    assert "1 of 2 sentences are left out: 1 with a word that leaves no token" in capsys.readouterr().out
    assert tokens.tokens_of_words(minilm, sentences[1].words) == [0, 1, 1, 0, 1]
    (passage,) = coreference.passages(minilm, documents)
    assert [m.text for m in passage.mentions] == ["a clerk", "it", "clerks", "it"], "one mention has no token"
    batch = tokens.encode(minilm, [list(passage.words)])
    text = tokens.EncodedText.of(batch, 0, passage)
    for mention in passage.mentions:
        assert text.tokens[text.word.tolist().index(mention.head)] == mention.word
    example = Example("keywords", "0", 0, ("Clerks", "file\u200b. \u00ad The letter."), keyphrases=("letter",))
    (asked,) = inputs.batches(minilm, [example])
    assert [asked.batch.tokens[0][n] for n in (asked.targets[0] == 1).nonzero().ravel()] == ["letter"]


def test_questions_without_answers_and_in_other_units(capsys):
    questions = corpora.questions(str(DATA / "questions.json"))
    assert [(q.id, q.answers[0]) for q in questions] == [
        ("a", corpora.Answer("clerk", 6)),
        ("c", corpora.Answer("it", 20)),
    ]
    assert "1 questions without an answer are left out" in capsys.readouterr().out


@pytest.mark.parametrize(
    "context",
    ["checksum " + "e" * 90 + " was written down by the clerk", "办事员每天早上九点打开门把信放进柜子里" * 6],
)
def test_windows_end_also_inside_a_long_word(small_encoder, context):
    encoder = small_encoder("roberta")
    example = Example("qa", "q", 0, ("Who?", context), answers=(corpora.Answer(context[-5:], len(context) - 5),))
    windows = inputs.windows(encoder, example, 0, 32)
    covered = {n for w in windows for n in range(w.start, w.start + len(w.texts[1]))}
    assert len(windows) > 1 and any(w.answer for w in windows)
    assert {n for n, c in enumerate(context) if c != " "} <= covered


def test_texts_as_they_are_written(capsys):
    def paragraphs(name):
        return [p for a in corpora.read(str(DATA / name)).articles for p in a.paragraphs]

    assert paragraphs("quotes.txt") == (DATA / "quotes.txt").read_text("utf-8").splitlines()
    assert [len(corpora.sentences(p)) for p in paragraphs("russian.txt")] == [2, 2]
    assert [len(corpora.sentences(p)) for p in paragraphs("chinese.txt")] == [1, 3]
    assert "chinese.txt: 1 lines of fewer than 10 words are left out" in capsys.readouterr().out


def test_special_tokens_in_a_text_are_never_asked_for(minilm):
    (line,) = corpora.read(str(DATA / "tokens.txt")).articles[0].paragraphs
    asked = inputs.masked(minilm, tokens.encode(minilm, [(line, line)]), [(0, 0)], share=1.0)
    assert not {*asked.targets[0].tolist()} & {*minilm.tokenizer.all_special_ids}
    assert "[MASK]" in line and asked.batch.special.sum() == 3


def test_wrappings_of_spreadsheets_and_macs(tmp_path):
    text = PAIRS["rte"]
    (tmp_path / "mac.tsv").write_bytes(text.replace("\n", "\r").encode())
    assert corpora.pairs(str(tmp_path / "mac.tsv"), task="rte")[0].second == "A dog."
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "latin-1"):
        (tmp_path / "excel.tsv").write_bytes(text.replace("A dog", "A naïve dog").encode(encoding))
        with pytest.raises(CorpusError, match="iconv"):
            corpora.pairs(str(tmp_path / "excel.tsv"), task="rte")
    quoted = text.replace("A dog ran.", '"He said ""no"" twice."')
    (tmp_path / "quoted.TSV").write_text(quoted)
    assert corpora.pairs(str(tmp_path / "quoted.TSV"), task="rte")[0].first == 'He said "no" twice.'
    (tmp_path / "MINE.JSONL").write_text(json.dumps({"id": "a", "title": "A", "paragraphs": ["One.", "Two."]}))
    assert corpora.read(str(tmp_path / "MINE.JSONL")).articles[0].paragraphs == ("One.", "Two.")
    members = ABSTRACT | {"__MACOSX/._9.abstr": b"\xb0", "__MACOSX/._9.uncontr": b"\xb0"}
    (tmp_path / "x.ZIP").write_bytes(zipped(members))
    assert len(corpora.keyphrases(str(tmp_path / "x.ZIP"))) == 2
