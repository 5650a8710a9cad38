"""Batches: marks, words, lengths; nothing depends on batch size or padding."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from helpers import corpora, tokens
from helpers.corpora.records import Sentence

TEXT = "Sea-otters' fur isn't thick, it's unbelievably thick."


def test_marks_of_a_pair(minilm):
    batch = tokens.encode(minilm, [("One, two. Three!", "Four.")])
    assert batch.tokens[0] == ("[CLS]", "one", ",", "two", ".", "three", "!", "[SEP]", "four", ".", "[SEP]")
    assert batch.cls[0].nonzero().ravel().tolist() == [0]
    assert batch.sep[0].nonzero().ravel().tolist() == [7, 10]
    assert batch.special[0].nonzero().ravel().tolist() == [0, 7, 10]
    assert batch.stop[0].nonzero().ravel().tolist() == [2, 4, 9]
    assert batch.punctuation[0].nonzero().ravel().tolist() == [2, 4, 6, 9]
    assert batch.text[0].tolist() == [-1, 0, 0, 0, 0, 0, 0, -1, 1, 1, -1]
    assert batch.types[0].tolist() == [0] * 8 + [1] * 3
    assert batch.sentence[0].tolist() == [-1, 0, 0, 0, 0, 1, 1, -1, 2, 2, -1]
    assert batch.words[0] == ("One", ",", "two", ".", "Three", "!", "Four", ".")
    assert batch.unit[0].tolist() == [0, 1, 2, 3, 4, 5, 6, 0, 7, 8, 0]


def test_given_words_keep_their_borders(minilm):
    words = ["Sea-otters'", "fur", "isn't", "semiconducting", "."]
    batch = tokens.encode(minilm, [words, ["Hi"]])
    assert batch.words[0] == tuple(words)
    pieces = batch.tokens[0]
    for unit, word in enumerate(words, 1):
        own = [p.removeprefix("##") for p, u in zip(pieces, batch.unit[0].tolist(), strict=False) if u == unit]
        assert "".join(own) == word.lower()
    assert batch.unit[1].tolist()[:2] == [0, 1] and not batch.unit[1, 2:].any()


@pytest.mark.parametrize("special", [True, False])
def test_word_attention_against_loops(minilm, special):
    given = [TEXT, ("Unbelievable semiconductors.", "Yes!"), ["One", "\u200b", "unbelievable", "\u00ad"]]
    batch = tokens.encode(minilm, given)
    p = torch.rand(3, 2, *[batch.ids.shape[1]] * 2, generator=torch.Generator().manual_seed(0))
    for row, source in enumerate(given):
        text = tokens.EncodedText.of(batch, row, source)
        length, word = len(text.tokens), text.word.tolist()
        units = [[i for i, w in enumerate(word) if w == n] for n in range(len(text.words))]
        marks = [mark.nonzero().ravel().tolist() for mark in (text.cls, text.sep)]
        units = [*marks, *units] if special else units
        got = tokens.by_word(p[row, :, :length, :length], text, special=special)
        assert got.shape[-2:] == (len(units), len(units))
        for a, pieces_a in enumerate(units):
            for b, pieces_b in enumerate(units):
                sums = [sum(float(p[row, 1, i, j]) for j in pieces_b) for i in pieces_a]
                assert float(got[1, a, b]) == pytest.approx(sum(sums) / max(1, len(sums)), abs=1e-5)
    assert text.words == tuple(given[2]) and units[-1] == [] == units[-3], "words without a token keep their place"


def test_long_inputs_are_refused_or_cut(minilm):
    long = " ".join(["word"] * 700)
    with pytest.raises(tokens.TooLong, match="Input 1 has more tokens than the 512 that are allowed"):
        list(tokens.batches(minilm, ["short", long]))
    [batch] = tokens.batches(minilm, ["short", long, long], truncate=True, max_length=1000)
    assert batch.ids.shape[1] == 512 and batch.index == (1, 2, 0)


def test_the_longer_side_is_cut_first(minilm):
    short, long = " ".join(["a"] * 10), " ".join(["b"] * 60)
    batch = tokens.encode(minilm, [(short, long), (long, short)], max_length=40, truncate=True)
    for row, expected in ((0, (10, 27)), (1, (27, 10))):
        assert ((batch.text[row] == 0).sum(), (batch.text[row] == 1).sum()) == expected


@pytest.mark.parametrize(
    "bad", ["", "   ", "\u200b", [], ["ok", ""], ["\u200b", "\u00ad"], ("a", "b", "c"), ("a", " ")]
)
def test_empty_inputs_are_refused(minilm, bad):
    with pytest.raises(tokens.NoWords, match="Input 0"):
        tokens.encode(minilm, [bad])


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two.", 2),
        ("Mr. Smith met J. B. Priestley. He left.", 2),
        ('She said "no." Then she left?', 2),
        ("It cost 3.5 dollars. 40 people paid!", 2),
        ("no capital. after a stop", 1),
    ],
)
def test_sentences(text, count):
    spans = corpora.sentences(text)
    assert len(spans) == count
    assert spans[0][0] == 0 and spans[-1][1] == len(text)
    assert all(a[1] == b[0] for a, b in pairwise(spans))


def test_what_is_usable(small_encoder, capsys):
    def sentence(*words):
        return Sentence("s", words, governors=(-1,) * len(words), relations=("root",) * len(words))

    encoder = small_encoder("bert")
    fits, long, odd = sentence(*["word"] * 62), sentence(*["word"] * 63), sentence("a", "\u200b", "b")
    flat = replace(fits, governors=())
    assert tokens.usable(encoder, [fits, long, odd, flat]) == [fits], "64 with [CLS] and [SEP]"
    assert "3 of 4 sentences are left out" in capsys.readouterr().out


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
def test_special_tokens_that_are_typed_are_text(small_encoder, family):
    """Only what the tokenizer itself puts around a text is special; WikiText's ``<unk>`` is, where it is said to be."""
    encoder = small_encoder(family)
    special = encoder.tokenizer.all_special_tokens
    batch = tokens.encode(encoder, [f"otter {' '.join(special)} otter", ["otter", *special]])
    never = {*encoder.tokenizer.all_special_ids} - {encoder.tokenizer.unk_token_id}
    assert not never & {*batch.ids[batch.text >= 0].tolist()}
    assert batch.words[1] == ("otter", *special)
    (batch,) = tokens.batches(encoder, ["otter <unk> otter"], unknown="<unk>")
    assert batch.ids[0].tolist().count(encoder.tokenizer.unk_token_id) == 1
