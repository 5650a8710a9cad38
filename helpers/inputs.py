"""Examples of tasks as batches with their targets: masked words, windows on long contexts, tagged words, pairs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from helpers import phrases, tokens
from helpers.adapters import LABELS, AdapterError
from helpers.encoders import Encoder
from helpers.examples import Example
from helpers.tokens import Batch

#: The target of a position that is not asked about.
IGNORED = -100
MASKED, SHOWN_AS_MASK, SHOWN_AS_ANOTHER = 0.15, 0.8, 0.1  # BERT's rule, Devlin et al. 2019, section 3.1
STRIDE = 64  # tokens that two consecutive windows of a long context share
#: Tokens of an input when scoring, special ones included.
MAX_LENGTH = {"mlm": 256, "qa": 384, "paraphrase": 256, "entailment": 256, "rte": 384, "keywords": 384}


@dataclass(frozen=True, eq=False)
class Asked(tokens.OfTensors):
    """A batch with what is right for it.

    Attributes:
        task: of the examples, a key of :data:`helpers.adapters.LABELS`.
        batch: the inputs. ``batch.index`` numbers the rows' *inputs*; ``example`` says whose they are.
        targets: mlm: [batch, length], the token that was there, :data:`IGNORED` where nothing is asked; qa:
            [batch, 2], first and last token of the answer, :data:`IGNORED` in a window without it; keywords: [batch,
            length], the class of each word at its first piece, :data:`IGNORED` elsewhere; pairs: [batch], the class.
        example: for each row, the number of its example.
        spans: for qa, where each token of the context lies in it, in characters: one array [token, 2] a row.
        words: for keywords, which words of its text a row asks about, in order: those that leave a token and were not cut off.
    """

    task: str
    batch: Batch
    targets: Tensor
    example: tuple[int, ...]
    spans: tuple[Int[np.ndarray, "_ 2"], ...] = ()
    words: tuple[Int[np.ndarray, "_"], ...] = ()


@dataclass(frozen=True)
class Window:
    """A question with a stretch of its context; ``start`` is where the stretch begins, in characters."""

    example: int
    texts: tuple[str, str]
    start: int
    answer: tuple[int, int] | None  # in the stretch, in characters


def batches(
    encoder: Encoder,
    examples: Sequence[Example],
    *,
    batch_size: int = 16,
    max_length: int | None = None,
    seed: int = 0,
    share: float = MASKED,
) -> Iterator[Asked]:
    """Batches of inputs of like length, with their targets.

    Long contexts of questions are cut into overlapping windows, a row each; other long inputs are cut short. Of keywords the encoder
    is given the words and marks of title and text.

    Args:
        seed: which tokens are masked (mlm); an example's masks depend on the seed and its number only.
        share: of the tokens that are hidden (mlm).
    """
    if not examples:
        raise tokens.NoWords("There is no example to score.")
    task = examples[0].task
    longest = min(max_length or MAX_LENGTH[task], encoder.max_length)
    if task == "qa":
        rows = [w for n, e in enumerate(examples) for w in windows(encoder, e, n, longest)]
        batch_size = tokens.rows_of(batch_size)
        order = sorted(range(len(rows)), key=lambda i: -len(rows[i].texts[1]))
        for start in range(0, len(order), batch_size):
            yield asked_questions(encoder, [rows[i] for i in order[start : start + batch_size]])
        return
    texts = [list(e.spelled.units) if task == "keywords" else e.texts for e in examples]
    how = {"batch_size": batch_size, "max_length": longest, "truncate": True}
    for batch in tokens.batches(encoder, texts, unknown="<unk>" if task == "mlm" else None, **how):
        if task == "mlm":
            yield masked(encoder, batch, [(seed, n) for n in batch.index], share)
        elif task == "keywords":
            yield tagged(batch, examples)
        else:
            targets = [LABELS[task].index(examples[n].label) for n in batch.index]
            yield Asked(task, batch, torch.tensor(targets, device=encoder.device), batch.index)


def tagged(batch: Batch, examples: Sequence[Example]) -> Asked:
    """The class of each word of each row (:func:`helpers.phrases.tags`), at its first piece.

    Args:
        examples: those that ``batch.index`` numbers.
    """
    targets, asked = torch.full_like(batch.ids, IGNORED), []
    for row, number in enumerate(batch.index):
        spelled, at = examples[number].spelled, np.flatnonzero(batch.text[row].cpu() >= 0)
        units, first = np.unique(batch.unit[row].cpu().numpy()[at] - 1, return_index=True)  # unit 0 is [CLS]
        is_word = np.isin(units, spelled.places)
        words = np.searchsorted(spelled.places, units[is_word])
        tags = np.array(phrases.tags(spelled, examples[number].keyphrases))
        targets[row, at[first[is_word]]] = torch.from_numpy(tags[words]).to(targets)
        asked.append(words)
    return Asked("keywords", batch, targets, batch.index, words=tuple(asked))


def masked(encoder: Encoder, batch: Batch, keys: Sequence[tuple[int, ...]], share: float = MASKED) -> Asked:
    """Hide tokens after BERT's rule: of 15 % of them, 80 % become the mask, 10 % another word, 10 % stay.

    Args:
        keys: seeds, one a row.
        share: how many of the row's words and pieces are hidden, rounded, at least 1.
    """
    given = batch.ids.cpu().numpy()
    ids, targets = given.copy(), np.full_like(given, IGNORED)
    unknown, mask = encoder.tokenizer.unk_token_id, encoder.tokenizer.mask_token_id
    special = set(encoder.tokenizer.all_special_ids)
    words = np.setdiff1d(np.arange(len(encoder.tokenizer)), list(special))
    candidates = (batch.mask & ~batch.special & (batch.ids != (-1 if unknown is None else unknown))).cpu().numpy()
    for row, key in enumerate(keys):
        random = np.random.default_rng(list(key))
        places = candidates[row].nonzero()[0]
        chosen = random.permutation(places)[: max(1, round(share * len(places)))]
        targets[row, chosen] = given[row, chosen]
        fate = random.random(len(chosen))
        others = words[random.integers(len(words), size=len(chosen))]
        ids[row, chosen[fate < SHOWN_AS_MASK]] = mask
        swap = (fate >= SHOWN_AS_MASK) & (fate < SHOWN_AS_MASK + SHOWN_AS_ANOTHER)
        ids[row, chosen[swap]] = others[swap]
    hidden, wanted = (torch.from_numpy(part).to(batch.ids.device) for part in (ids, targets))
    return Asked("mlm", replace(batch, ids=hidden), wanted, batch.index)


def windows(encoder: Encoder, example: Example, number: int, max_length: int) -> list[Window]:
    """The question with overlapping stretches of its context, each of at most ``max_length`` tokens.

    Stretches begin and end between words, and share :data:`STRIDE` tokens or a little more.
    """
    question, context = example.texts
    # A margin of two, for tokenizers that cut a text's first word in another way
    special = encoder.tokenizer.num_special_tokens_to_add(pair=True)
    room = max_length - len(tokens.spans_of(encoder, question)[0]) - special - 2
    if room < 16:
        raise tokens.TooLong(
            f"Question {example.id!r} ({question[:60]!r}) leaves no room for its context in {max_length} tokens."
        )
    counted = Counter(answer.text for answer in example.answers)
    answer = max(example.answers, key=lambda answer: counted[answer.text], default=None)  # that most annotators gave
    spans, words = tokens.spans_of(encoder, context)
    starts = [n for n in range(len(words)) if n == 0 or words[n] != words[n - 1]] + [len(words)]
    stretches, begin, end = [], 0, 0
    while end < len(words):
        first, end = int(spans[begin, 0]), max(s for s in starts if s <= begin + room)
        if end == begin:  # a word longer than a window, as a Chinese sentence is to some tokenizers, is cut inside
            end = begin + room
        while len(tokens.spans_of(encoder, context[first : spans[end - 1, 1]])[0]) > room + 2:
            end -= 1  # the rest of a word may have more pieces
        last = int(spans[end - 1, 1])
        inside = answer is not None and first <= answer.start and answer.start + len(answer.text) <= last
        span = (answer.start - first, answer.start - first + len(answer.text)) if inside else None
        stretches.append(Window(number, (question, context[first:last]), first, span))
        again = max(end - min(STRIDE, room // 2), begin + 1)
        begin = max((s for s in starts if begin < s <= again), default=again)
    return stretches


def asked_questions(encoder: Encoder, rows: Sequence[Window]) -> Asked:
    """One batch of windows."""
    batch = tokens.encode(encoder, [row.texts for row in rows], max_length=encoder.max_length)
    spans, targets = [], torch.full((len(rows), 2), IGNORED)
    for n, row in enumerate(rows):
        here, _ = tokens.spans_of(encoder, row.texts[1])
        at = (batch.text[n] == 1).nonzero().flatten().tolist()
        if len(at) != len(here):
            raise AdapterError(f"The tokenizer of {encoder.name!r} cuts a context in another way beside a question.")
        spans.append(here + row.start)
        if row.answer is not None:
            first = int(np.searchsorted(here[:, 1], row.answer[0], side="right"))
            last = int(np.searchsorted(here[:, 0], row.answer[1], side="left")) - 1
            if first <= last:
                targets[n] = torch.tensor([at[first], at[last]])
    return Asked("qa", batch, targets.to(encoder.device), tuple(r.example for r in rows), tuple(spans))
