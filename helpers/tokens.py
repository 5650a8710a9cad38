"""From text to batches: which token is what, which tokens make a word, where sentences begin.

An input is a text (``str``), a text already split into words (``list`` of ``str``), or a pair of either
(``tuple`` of two), which becomes ``[CLS] first [SEP] second [SEP]``.
"""

import os
import unicodedata
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import accumulate
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from tokenizers import Encoding
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from helpers.corpora import sources
from helpers.corpora.readers import sentences
from helpers.corpora.records import Sentence
from helpers.encoder import Encoder
from helpers.places import BookError

Text = str | list[str]
Input = Text | tuple[Text, Text]
#: A pass says so when more than this share of its tokens is unknown to the vocabulary.
UNKNOWN = 0.05


class TooLong(BookError, ValueError):
    """An input has more tokens than the model, or the caller, allows."""


class NoWords(BookError, ValueError):
    """An input that cannot be encoded: empty, or with an empty word."""


class UnknownWords(UserWarning):
    """Much of a text is unknown to the vocabulary."""


T = TypeVar("T")


class OfTensors:
    """A dataclass with tensors that can move to another device or process.

    Tensors are pickled as arrays: then equal ones have equal pickles, by which finished parts of a measurement are found
    again (:mod:`helpers.parallel`), and what was on one device can be read on a machine without it.
    """

    def to(self: T, device: torch.device | str) -> T:
        """A copy with its tensors on another device."""
        return self._made(lambda part: part.to(device) if isinstance(part, Tensor) else part)

    def repeated(self: T, n: int) -> T:
        """A copy with its rows, tensors and tuples, ``n`` times over, one round after the other."""
        return self._made(lambda part: torch.cat([part] * n) if isinstance(part, Tensor) else part * n)

    def _made(self: T, change: Callable[[Any], Any]) -> T:
        own = ((f.name, getattr(self, f.name)) for f in fields(self))
        kept = ((k, v) for k, v in own if isinstance(v, Tensor | tuple | OfTensors))
        return replace(self, **{k: v._made(change) if isinstance(v, OfTensors) else change(v) for k, v in kept})

    def __getstate__(self) -> dict[str, Any]:
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: v.detach().cpu().numpy() if isinstance(v, Tensor) else v for k, v in given.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in state.items()})


@dataclass(frozen=True, eq=False)
class Marks(OfTensors):
    """What each token of a text, or of a batch of texts, is: all [token] or [batch, token].

    Attributes:
        special, cls, sep: true at special tokens; at the one in the role of ``[CLS]``; of ``[SEP]``.
        punctuation: true at tokens made of punctuation or symbols only.
        stop: true at full stops and commas, the papers' "punctuation" column.
        text: 0 or 1, which text of the input the token is from; -1 at special tokens and padding.
        sentence: index of the token's sentence through both texts; -1 at special tokens and padding.
    """

    special: Bool[Tensor, "... token"]
    cls: Bool[Tensor, "... token"]
    sep: Bool[Tensor, "... token"]
    punctuation: Bool[Tensor, "... token"]
    stop: Bool[Tensor, "... token"]
    text: Int[Tensor, "... token"]
    sentence: Int[Tensor, "... token"]


@dataclass(frozen=True, eq=False)
class Batch(Marks):
    """Encoded inputs, padded to one length, and what each of their tokens is.

    All tensors are [batch, token] and on the encoder's device. "Real" tokens are those that are not
    padding; special tokens are real.

    Attributes:
        ids, mask, types: the model's input ids, attention mask (true: real) and token types (None for
            families without them).
        unit: number of the token's word, from 1 and through both texts; 0 at special tokens and padding.
        index: for each row, which of the caller's inputs it is (from 0).
        tokens: the token strings, without padding.
        words: the surface form of each word. Of an input that was given in words each of them is one, also a word that leaves
            no token (a zero-width space, say), to which no token belongs.
    """

    ids: Int[Tensor, "batch token"]
    mask: Bool[Tensor, "batch token"]
    types: Int[Tensor, "batch token"] | None
    unit: Int[Tensor, "batch token"]
    index: tuple[int, ...]
    tokens: tuple[tuple[str, ...], ...]
    words: tuple[tuple[str, ...], ...]

    @cached_property
    def inputs(self) -> dict[str, Tensor]:
        """Keyword arguments for the model."""
        inputs = {"input_ids": self.ids, "attention_mask": self.mask.long()}
        return inputs if self.types is None else inputs | {"token_type_ids": self.types}

    @cached_property
    def lengths(self) -> Int[Tensor, "batch"]:
        """Number of real tokens in each row."""
        return self.mask.sum(-1)


@dataclass(frozen=True, eq=False)
class EncodedText(Marks):
    """One input without padding: what each of its tokens is.

    Attributes:
        number: of the input, from 0.
        source: the input itself, as the caller gave it: a text, a pair, a :class:`helpers.corpora.records.Segment` or ``Sentence``.
        tokens, words: the token strings; the words.
        word: [token], which word a token is part of, counted through both texts; -1 at special tokens.
    """

    number: int
    source: Any
    tokens: tuple[str, ...]
    words: tuple[str, ...]
    word: Int[Tensor, "token"]

    @classmethod
    def of(cls, batch: Batch, row: int, source: Any) -> "EncodedText":
        """A row of a batch, without what pads it; nothing waits for the device."""
        length = len(batch.tokens[row])
        marks = {mark.name: getattr(batch, mark.name)[row, :length] for mark in fields(Marks)}
        inside = {"tokens": batch.tokens[row], "words": batch.words[row], "word": batch.unit[row, :length] - 1}
        return cls(number=batch.index[row], source=source, **inside, **marks)


def by_word(
    maps: Float[Tensor, "*layers head query key"], text: EncodedText, *, special: bool = False
) -> Float[Tensor, "*layers head word word"]:
    """Token-to-token attention as word-to-word attention (Clark et al. 2019, section 4.1).

    Attention *to* a split word is the sum over its pieces, attention *from* it their mean; a word without a token has zeros.

    Args:
        special: whether ``[CLS]`` and ``[SEP]`` stand before the words, as two words more, so that rows sum to 1; else they are left out.
    """
    places, count = text.word, len(text.words)
    if special:
        places, count = torch.where(text.cls, 0, torch.where(text.sep, 1, places + 2)), count + 2
    pieces = (places == torch.arange(count, device=maps.device)[:, None]).to(maps.dtype)
    *layers, length, _ = maps.shape
    to_words = (maps.reshape(-1, length) @ pieces.T).view(-1, length, count)  # one large product
    return ((pieces / pieces.sum(-1, keepdim=True).clamp_min(1)) @ to_words).view(*layers, count, count)


def batches(
    encoder: Encoder,
    inputs: Iterable,
    *,
    batch_size: int = 16,
    max_length: int | None = None,
    truncate: bool = False,
    first: int = 0,
    cells: int | None = None,
    unknown: str | None = None,
) -> Iterator[Batch]:
    """Inputs in batches, those of like length together; rows keep the caller's numbering in ``Batch.index``.

    Args:
        batch_size: rows in a batch (:func:`rows_of`).
        max_length: most tokens an input may have, special ones included (default, and at most: the model's limit).
        truncate: cut longer inputs, a pair from its longer side first, instead of refusing them.
        first: number of the first input, when the inputs are a part of many.
        cells: most weights (rows × tokens × tokens) of one map in a batch: long inputs come in smaller batches.
        unknown: what stands in these texts for a word that nobody knows, as WikiText's ``<unk>`` does; it becomes the tokenizer's own.

    Raises:
        TooLong, NoWords: naming the input.
    """
    rows = [_row(encoder, number, given, max_length, truncate, unknown) for number, given in enumerate(inputs, first)]
    _warn_of_unknown_words(encoder, rows)
    rows.sort(key=lambda row: len(row.encoding.ids), reverse=True)
    most = rows_of(batch_size)
    while rows:
        longest = len(rows[0].encoding.ids)
        size = most if cells is None else max(1, min(most, cells // longest**2))
        yield _collate(encoder, rows[:size])
        rows = rows[size:]


def rows_of(batch_size: int) -> int:
    """Rows in a batch: as many as ``BOOK_BATCH_SIZE`` says, else as many as whoever measures finds best."""
    return int(os.environ.get("BOOK_BATCH_SIZE") or batch_size)


def encode(encoder: Encoder, inputs: Sequence, *, max_length: int | None = None, truncate: bool = False) -> Batch:
    """All inputs as one batch, in the order given; options as in :func:`batches`."""
    if not inputs:
        raise NoWords("There is nothing to encode: the list of inputs is empty.")
    return _collate(encoder, [_row(encoder, n, given, max_length, truncate) for n, given in enumerate(inputs)])


def spans_of(encoder: Encoder, text: str) -> tuple[Int[np.ndarray, "token 2"], list[int]]:
    """Where the tokens of a text lie in it, in characters, without special ones, and which word each is a piece of."""
    encoding = _encoding(encoder, text, add_special_tokens=False)
    return np.array(encoding.offsets, int).reshape(-1, 2), list(encoding.word_ids)


def tokens_of_words(encoder: Encoder, words: Sequence[str]) -> list[int]:
    """How many tokens each word of a sentence has, as :func:`batches` gives them; 0 for a word that leaves none."""
    text, given = _joined(words)
    counts = [0] * len(words)
    for start, end in _encoding(encoder, text, add_special_tokens=False).offsets:
        counts[_span_of(max(end - 1, start), given)] += 1
    return counts


def usable(encoder: Encoder, sentences: Sequence[Sentence], *, longest: int | None = None) -> list[Sentence]:
    """The sentences that an encoder can be measured on, in order; what is left out is counted and printed in one line.

    Left out are sentences without a tree, with more tokens than the model allows, and with a word that leaves no token.

    Args:
        longest: most tokens, special ones included (default, and at most: the model's limit).
    """
    most = min(longest or encoder.max_length, encoder.max_length)
    room = most - encoder.tokenizer.num_special_tokens_to_add()
    kept, left_out = [], Counter()
    for sentence in sentences:
        counts = tokens_of_words(encoder, sentence.words)
        if not sentence.governors:
            left_out["without a tree"] += 1
        elif sum(counts) > room:
            left_out[f"of more than {most} tokens"] += 1
        elif not all(counts):
            left_out["with a word that leaves no token"] += 1
        else:
            kept.append(sentence)
    if left_out:
        reasons = ", ".join(f"{number} {problem}" for problem, number in left_out.items())
        sources.say(encoder.name, f"{left_out.total()} of {len(sentences)} sentences are left out: {reasons}.")
    return kept


def _encoding(encoder: Encoder, *texts: str, split_special_tokens: bool = True, **options: Any) -> Encoding:
    """What a tokenizer makes of a text or a pair; a special token that is typed in a text, ``[SEP]`` say, is split as any text is."""
    return encoder.tokenizer(*texts, split_special_tokens=split_special_tokens, verbose=False, **options).encodings[0]


@dataclass(frozen=True)
class _Row:
    """An encoded input; ``marks`` and ``words`` as in :class:`Batch`."""

    number: int
    encoding: Encoding
    marks: dict[str, list[int]]
    words: tuple[str, ...]


def _row(
    encoder: Encoder, number: int, given: Any, max_length: int | None, truncate: bool, unknown: str | None = None
) -> _Row:
    texts, tokenizer = given if isinstance(given, tuple) else (given,), encoder.tokenizer
    # Of a text in which other special tokens are typed as well, all are text: a tokenizer cannot be told of one only
    known = unknown is not None and any(unknown in text for text in texts)
    known = known and not any(t in text for t in {*tokenizer.all_special_tokens} - {unknown} for text in texts)
    texts = [text.replace(unknown, str(tokenizer.unk_token)) for text in texts] if known else texts
    sides = [_side(text, number) for text in texts]
    if len(sides) > 2:
        raise NoWords(f"Input {number} is a tuple of {len(sides)} texts; a pair has two.")
    most = min(max_length or encoder.max_length, encoder.max_length)
    cut = {"truncation": "longest_first", "max_length": most, "padding": False}
    encoding = _encoding(encoder, *(text for text, _, _ in sides), split_special_tokens=not known, **cut)
    if encoding.overflowing and not truncate:
        raise TooLong(
            f"Input {number} has more tokens than the {most} that are allowed; say truncate=True to cut it, or split it."
        )
    return _marked(number, sides, encoding)


def _side(given: Text, number: int) -> tuple[str, list[tuple[int, int]] | None, list[tuple[int, int]]]:
    """One text of an input: its characters, and where its given words and its sentences lie in them."""
    if not "".join(given).strip():
        raise NoWords(f"Input {number} is empty.")
    if isinstance(given, str):
        return given, None, sentences(given)
    if "" in given:
        raise NoWords(f"Input {number} has an empty word: {given[:8]!r}.")
    text, words = _joined(given)
    return text, words, [(0, len(text))]


def _joined(words: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Words with blanks between, and where each lies in that."""
    ends = [end - 1 for end in accumulate(len(word) + 1 for word in words)]
    return " ".join(words), [(end - len(word), end) for word, end in zip(words, ends, strict=True)]


def _marked(number: int, sides: Sequence[tuple], encoding: Encoding) -> _Row:
    marks: dict[str, list[int]] = {name: [] for name in ("text", "sentence", "stop", "punctuation")}
    units: list[tuple[int, int] | None] = []  # of each token: which text, and which word there
    words: dict[tuple[int, int], str] = {}
    first_sentence = 0, len(sides[0][2])
    for side, word, (start, end) in zip(encoding.sequence_ids, encoding.word_ids, encoding.offsets, strict=True):
        piece, sentence, unit = "", -1, None
        if side is not None:
            text, given, sentence_spans = sides[side]
            piece = text[start:end].strip()
            # The last character decides: some tokenizers count the space before a word as its own
            spot = max(end - 1, start)
            sentence = first_sentence[side] + _span_of(spot, sentence_spans)
            unit = side, word if given is None else _span_of(spot, given)
            words[unit] = words.get(unit, "") + piece
        units.append(unit)
        marks["text"].append(-1 if side is None else side)
        marks["sentence"].append(sentence)
        marks["stop"].append(piece in (".", ","))
        marks["punctuation"].append(bool(piece) and all(unicodedata.category(c)[0] in "PS" for c in piece))
    if not words:
        raise NoWords(f"Input {number} has no word of which the tokenizer makes a token: {sides[0][0][:40]!r}.")
    # Given words count also without a token, but for those that were cut off
    for side, last in dict(sorted(words)).items():  # of each text, its last word with a token
        text, given, _ = sides[side]
        kept = (given or [])[: last + 1 if encoding.overflowing else None]
        words |= {(side, n): text[start:end] for n, (start, end) in enumerate(kept)}
    numbers = {unit: n for n, unit in enumerate(sorted(words), 1)}
    marks["unit"] = [numbers.get(unit, 0) for unit in units]
    return _Row(number, encoding, marks, tuple(words[unit] for unit in numbers))


def _span_of(spot: int, spans: list[tuple[int, int]]) -> int:
    return min(bisect_right(spans, spot, key=itemgetter(1)), len(spans) - 1)


def _warn_of_unknown_words(encoder: Encoder, rows: Sequence[_Row]) -> None:
    """Warn when more than :data:`UNKNOWN` of the tokens are unknown to the vocabulary: then a model reads little of a text."""
    pieces = [n for row in rows for n, text in zip(row.encoding.ids, row.marks["text"], strict=True) if text >= 0]
    unknown = pieces.count(encoder.tokenizer.unk_token_id)
    if unknown > UNKNOWN * len(pieces):
        warnings.warn(
            f"{unknown / len(pieces):.0%} of {len(pieces)} tokens are unknown to the vocabulary of {encoder.name!r} "
            f"({encoder.tokenizer.unk_token}; said above {UNKNOWN:.0%}): it reads little of this text. Is it for another language?",
            UnknownWords,
            stacklevel=3,
        )


def _collate(encoder: Encoder, rows: Sequence[_Row]) -> Batch:
    def pad(lists: Iterable[Sequence[int]], fill: int = 0) -> Tensor:
        tensors = [torch.tensor(values) for values in lists]
        return pad_sequence(tensors, batch_first=True, padding_value=fill).to(encoder.device)

    ids = pad((r.encoding.ids for r in rows), encoder.special.pad_id)
    mask = pad([True] * len(r.encoding.ids) for r in rows)
    marks = {
        name: pad((r.marks[name] for r in rows), -1 if name in ("text", "sentence") else 0) for name in rows[0].marks
    }
    special = mask & (marks["text"] < 0)
    # whether the model is told which text a token is from; with one row of types the second has none of its own
    told = "token_type_ids" in encoder.tokenizer.model_input_names
    typed = told and getattr(encoder.model.config, "type_vocab_size", 2) != 1
    return Batch(
        ids=ids,
        mask=mask,
        types=pad(r.encoding.type_ids for r in rows) if typed else None,
        special=special,
        cls=special & (ids == encoder.special.cls_id),
        sep=special & (ids == encoder.special.sep_id),
        **marks,
        index=tuple(r.number for r in rows),
        tokens=tuple(tuple(r.encoding.tokens) for r in rows),
        words=tuple(r.words for r in rows),
    )
