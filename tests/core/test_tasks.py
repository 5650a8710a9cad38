"""Examples, inputs, losses and scores of the tasks, against slow references."""

import copy
import itertools
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from helpers import adapters, encoders, inputs, phrases, tasks
from helpers.adapters import AdapterError
from helpers.tasks import IGNORED, Example

GIVEN = {task: examples(task) for task in ("qa", "paraphrase", "mlm", "keywords")}
QUESTIONS, SEGMENTS, KEYED = GIVEN["qa"], GIVEN["mlm"], GIVEN["keywords"]
LONG = QUESTIONS[1].texts[1]


class Knows(adapters.Head):
    """A head that gives prepared logits, for tests of what is made of them."""

    def __init__(self, task: str, make) -> None:
        super().__init__(task)
        self.make, self.unused = make, nn.Identity()

    def forward(self, hidden, batch):
        return self.make(hidden, batch)


@pytest.mark.parametrize(
    ("task", "count"),
    [("qa", 496), ("paraphrase", 340), ("entailment", 400), ("rte", 400), ("mlm", 200), ("keywords", 100)],
)
def test_examples_of_the_book_tier(task, count):
    listed = tasks.examples(task, "encyclopedia")
    assert len(listed) == count and len({e.document for e in listed}) == 100
    assert {e.label for e in listed} == ({""} if task in ("mlm", "qa", "keywords") else set(adapters.LABELS[task]))
    few = tasks.examples(task, "encyclopedia", limit=10, seed=3)
    assert len(few) == 10 and few == tasks.examples(task, "encyclopedia", limit=10, seed=3)


def test_rte_reads_three_classes_as_two(real_data):
    three, two = (tasks.examples(t, "mnli", "dev") for t in ("entailment", "rte"))
    assert [e.texts for e in three] == [e.texts for e in two]
    assert {(a.label, b.label) for a, b in zip(three, two, strict=True)} == {
        ("entailment", "entailment"),
        ("neutral", "not_entailment"),
        ("contradiction", "not_entailment"),
    }
    assert Counter(e.label for e in tasks.examples("rte", "rte", "dev")) == {"entailment": 146, "not_entailment": 131}


@pytest.mark.parametrize(("titles", "documents"), [(1, [0, 0, 1]), (2, [0, 0, 1])])
def test_questions_on_one_article_have_paragraphs_for_documents(tmp_path, titles, documents):
    asked = [("a", "A dog ran."), ("b", "A dog ran."), ("c", "A cat sat.")]
    rows = [
        {"context": c, "qas": [{"id": i, "question": "Who?", "answers": [{"text": "A", "answer_start": 0}]}]}
        for i, c in asked
    ]
    data = [rows] if titles == 1 else [rows[:2], rows[2:]]
    content = {"data": [{"title": str(n), "paragraphs": paragraphs} for n, paragraphs in enumerate(data)]}
    (tmp_path / "q.json").write_text(json.dumps(content), "utf-8")
    questions = tasks.examples("qa", str(tmp_path / "q.json"))
    assert [e.document for e in questions] == documents


def test_masks_and_samples_are_drawn_alike_with_every_version_of_the_libraries(minilm):
    """Else a record is of other words wherever it is repeated: NumPy's generators may change from version to version."""
    examples = tasks.examples("mlm", "encyclopedia", limit=3, seed=0)
    asked = list(tasks.batches(minilm, examples, batch_size=1, max_length=64, seed=0))
    places = {batch.example[0]: (batch.targets[0] != tasks.IGNORED).nonzero().flatten().tolist() for batch in asked}
    assert [example.id for example in examples] == ["102", "126", "168"]
    assert places[0] == [5, 9, 17, 21, 28, 36, 44, 53, 54] and places[2] == [9, 13, 14, 17, 27, 44, 46, 58, 60]
    assert {batch.example[0]: int(batch.batch.ids.sum()) for batch in asked} == {0: 172873, 1: 273442, 2: 251801}
    other = tasks.batches(minilm, examples, batch_size=1, max_length=64, seed=1)
    assert not any(torch.equal(batch.targets, again.targets) for batch, again in zip(asked, other, strict=True))


def test_masks_follow_berts_rule(small_encoder):
    encoder = small_encoder("bert", max_position_embeddings=512)
    given = [replace(e, texts=(e.texts[0] * 6, e.texts[1] * 20)) for e in SEGMENTS * 20]
    hidden = kept = masked = 0
    for asked in tasks.batches(encoder, given, batch_size=8):
        original = torch.where(asked.targets == IGNORED, asked.batch.ids, asked.targets)
        there = asked.targets != IGNORED
        assert not (there & asked.batch.special).any() and not (there & ~asked.batch.mask).any()
        words = (asked.batch.mask & ~asked.batch.special).sum(-1)
        assert torch.equal(there.sum(-1), (0.15 * words.double()).round().clamp_min(1).long())
        assert torch.equal(asked.batch.ids[~there], original[~there])
        now, before = asked.batch.ids[there], original[there]
        hidden += len(now)
        masked += int((now == encoder.tokenizer.mask_token_id).sum())
        kept += int((now == before).sum())
    assert hidden > 2000
    assert (masked / hidden, kept / hidden) == pytest.approx((0.8, 0.1), abs=0.03), "the rest are other words"


def test_unknown_words_are_never_asked_about(small_encoder):
    encoder = small_encoder("bert")
    given = [Example("mlm", "0", 0, ("<unk> <unk> <unk> <unk> otter <unk>", "<unk> <unk> <unk>"))]
    (asked,) = tasks.batches(encoder, given)
    otter = encoder.tokenizer.encode("otter", add_special_tokens=False)
    assert asked.targets[asked.targets != IGNORED].tolist() == otter
    assert (asked.batch.ids == encoder.tokenizer.unk_token_id).sum() == 8


@pytest.mark.parametrize("max_length", [40, 64])
def test_windows_cover_the_context_and_overlap(minilm, max_length):
    windows = inputs.windows(minilm, QUESTIONS[1], 7, max_length)
    assert len(windows) > 3 and all(w.example == 7 for w in windows)
    assert windows[0].start == 0 and windows[-1].start + len(windows[-1].texts[1]) == len(LONG)
    for before, after in itertools.pairwise(windows):
        assert before.start < after.start < before.start + len(before.texts[1]), "they move on and overlap"
    for w in windows:
        assert LONG[w.start : w.start + len(w.texts[1])] == w.texts[1]
        assert w.start == 0 or not LONG[w.start - 1].isalnum() or not LONG[w.start].isalnum(), "between words"
        assert len(minilm.tokenizer(*w.texts)["input_ids"]) <= max_length
        assert (w.answer is not None) == ("Alice dived" in w.texts[1])
        if w.answer:
            assert w.texts[1][slice(*w.answer)] == "Alice dived", "the answer that most annotators gave"


def test_each_word_is_asked_about_at_its_first_piece(minilm):
    asked = next(iter(tasks.batches(minilm, KEYED, batch_size=3)))
    for row, number in enumerate(asked.example):
        spelled = KEYED[number].spelled
        at = (asked.targets[row] != IGNORED).nonzero().flatten().tolist()
        starts = [asked.batch.tokens[row][i] for i in at]
        assert len(at) == len(spelled.words)
        for word, piece in zip(spelled.words, starts, strict=True):
            assert word.startswith(piece.removeprefix("##"))
        assert asked.targets[row, at].tolist() == phrases.tags(spelled, KEYED[number].keyphrases)
    short = next(iter(tasks.batches(minilm, KEYED[:1], max_length=8)))
    assert short.batch.ids.shape[1] == 8
    assert (short.targets != IGNORED).sum() <= 6, "what is cut off is not asked about"


def test_phrases_are_scored_against_those_in_the_text_and_against_all(small_encoder):
    """A head that knows the right classes finds all that stands in what was read, and nothing else."""
    encoder = small_encoder("bert")
    answers = {
        tuple(a.batch.ids[r].tolist()): a.targets[r]
        for a in tasks.batches(encoder, KEYED, batch_size=3)
        for r in range(3)
    }

    def knows(hidden, batch):
        rows = torch.stack([answers[tuple(ids.tolist())] for ids in batch.ids])
        return 9.0 * torch.nn.functional.one_hot(rows.clamp_min(0), 3).float()

    scores = tasks.score(replace(encoder, head=Knows("keywords", knows)), KEYED, batch_size=3)
    assert scores.predictions.tolist() == ["sea otter; state of the art", "rain", ""]
    np.testing.assert_allclose(scores.values["f1"], [1, 1, 1])
    np.testing.assert_allclose(scores.values["f1_all"], [0.8, 1, 0])
    assert (scores.values["loss"] < 1e-3).all() and np.isnan(tasks.majority(KEYED))

    def always(hidden, batch):
        return torch.nn.functional.one_hot(torch.ones(hidden.shape[:-1], dtype=torch.long), 3).float()

    scores = tasks.score(replace(encoder, head=Knows("keywords", always)), KEYED)
    assert scores.predictions[2] == "nothing; of; note; said; here" and scores.values["f1"][2] == 0
    np.testing.assert_allclose(scores.values["f1"][1], 2 / (1 + 5))


def test_losses_against_loops(small_encoder):
    for task, known in GIVEN.items():
        encoder = encoders.with_new_head(small_encoder("bert", max_position_embeddings=512), task)
        for asked in tasks.batches(encoder, known, batch_size=2, max_length=64):
            logits, losses = encoder.logits(asked.batch), tasks.losses(encoder, asked)
            for row in range(len(losses)):
                if task == "paraphrase":
                    expected = -logits[row].log_softmax(-1)[asked.targets[row]]
                elif task in ("mlm", "keywords"):
                    at = (asked.targets[row] != IGNORED).nonzero().flatten().tolist()
                    expected = sum(-logits[row, i].log_softmax(-1)[asked.targets[row, i]] for i in at) / len(at)
                else:
                    inside = (asked.batch.text[row] == 1).nonzero().flatten().tolist()
                    first, last = asked.targets[row].tolist()
                    expected = torch.tensor(0.0)
                    if first != IGNORED:
                        chances = logits[row, inside].log_softmax(0)
                        expected = -(chances[inside.index(first), 0] + chances[inside.index(last), 1]) / 2
                torch.testing.assert_close(losses[row], expected, rtol=1e-4, atol=1e-4)


def test_classes_of_a_head_may_come_in_another_order_or_be_added_up(small_encoder):
    encoder = encoders.with_new_head(small_encoder("bert"), "entailment")
    wanted = adapters.LABELS["entailment"]
    asked = next(tasks.batches(encoder, examples("entailment")))
    turn = [2, 0, 1]
    other = copy.deepcopy(encoder.head)
    other.labels = tuple(wanted[i] for i in turn)
    with torch.no_grad():
        other.out.weight.copy_(encoder.head.out.weight[turn])
        other.out.bias.copy_(encoder.head.out.bias[turn])
    turned = replace(encoder, head=other)
    torch.testing.assert_close(tasks.losses(turned, asked), tasks.losses(encoder, asked))
    chances = encoder.logits(asked.batch).softmax(-1)
    expected = -torch.stack([chances[0, 0], 1 - chances[1, 0], 1 - chances[2, 0]]).log()
    for version in (encoder, turned):
        torch.testing.assert_close(tasks.losses(version, next(tasks.batches(version, examples("rte")))), expected)
        scores = tasks.score(version, examples("rte"))
        np.testing.assert_allclose(scores.values["loss"], expected.detach().numpy(), rtol=1e-4)
        assert [p == "entailment" for p in scores.predictions] == (chances[:, 0] > 0.5).tolist()


@pytest.mark.parametrize("task", list(GIVEN))
def test_batches_and_padding_do_not_matter(small_encoder, task):
    encoder = encoders.with_new_head(small_encoder("bert", max_position_embeddings=512), task)
    single, four = (tasks.score(encoder, GIVEN[task], batch_size=size, max_length=64) for size in (1, 4))
    assert single.predictions.tolist() == four.predictions.tolist()
    for name in single.values:
        np.testing.assert_allclose(single.values[name], four.values[name], rtol=1e-4, atol=1e-5)
    alone = [tasks.score(encoder, [e], max_length=64).mean() for e in GIVEN[task]]
    if task != "mlm":  # there the mask depends on the example's number
        np.testing.assert_allclose(single.values[next(iter(single.values))], alone, rtol=1e-4)


def test_masked_accuracy_is_right_over_hidden(small_encoder):
    """A head that always says "otter" restores the hidden otters and nothing else."""
    encoder = small_encoder("bert")
    otter = encoder.tokenizer.convert_tokens_to_ids("otter")

    def always(hidden, batch):
        return torch.nn.functional.one_hot(torch.full(hidden.shape[:-1], otter), 30522).float()

    scores = tasks.score(replace(encoder, head=Knows("mlm", always)), SEGMENTS)
    right = hidden = 0
    for asked in tasks.batches(encoder, SEGMENTS):
        right += int((asked.targets == otter).sum())
        hidden += int((asked.targets != IGNORED).sum())
    assert scores.weights.sum() == hidden and scores.mean() == pytest.approx(right / hidden)
    assert scores.mean("accuracy") == scores.mean()


def test_a_perfect_reader_of_answers(small_encoder):
    """Logits that point at the answer's tokens, in whatever window it stands, get full marks."""
    encoder = small_encoder("bert", max_position_embeddings=512)
    targets = {}
    for asked in tasks.batches(encoder, QUESTIONS, max_length=64, batch_size=1):
        targets[tuple(asked.batch.ids[0].tolist())] = asked.targets[0].tolist()

    def point(hidden, batch):
        logits = torch.zeros(*hidden.shape[:2], 2)
        for row, ids in enumerate(batch.ids):
            first, last = targets[tuple(ids.tolist())]
            if first != IGNORED:
                logits[row, first, 0] = logits[row, last, 1] = 5
        logits[:, 0] = 99  # outside the context, which no answer may touch
        return logits

    scores = tasks.score(replace(encoder, head=Knows("qa", point)), QUESTIONS, max_length=64, batch_size=1)
    assert scores.predictions.tolist() == ["Alice", "Alice dived", "it had rained"]
    assert scores.mean("em") == scores.mean("f1") == 1 and next(iter(scores.values)) == "f1"


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_the_best_span_against_two_loops(length, seed):
    logits = np.random.default_rng(seed).normal(size=(length, 2))
    options = [
        (logits[i, 0] + logits[j, 1], i, j)
        for i in range(length)
        for j in range(i, min(length, i + tasks.LONGEST_ANSWER))
    ]
    assert tasks.best_span(logits) == pytest.approx(max(options))


@pytest.mark.parametrize(
    ("prediction", "answers", "scores"),
    [
        ("The otter.", ["an Otter", "a seal"], (1, 1)),
        ("cold river", ["the river's cold water", "cold"], (0, 2 / 3)),
        ("a", ["the"], (1, 1)),
        ("otter", ["seal"], (0, 0)),
        ("", ["otter"], (0, 0)),
    ],
)
def test_exact_match_and_f1_are_the_best_over_the_answers(prediction, answers, scores):
    assert tasks.em_and_f1(prediction, tuple(answers)) == pytest.approx(scores)


def test_what_does_not_fit_a_task_is_refused(small_encoder):
    with pytest.raises(AdapterError, match="no task 'summary'"):
        tasks.examples("summary", "encyclopedia")
    with pytest.raises(AdapterError, match="task='qa', the examples are of 'mlm'"):
        tasks.score(encoders.with_new_head(small_encoder("bert"), "qa"), SEGMENTS)
